//! The register map of the RTL, walked; the behavioural NIC is walked by the same body (`tests/tests/registers.rs`).
#![cfg(feature = "rtl")]

use beeline_nic_rtl::{RtlConfig, RtlNic};
use beeline_tests::registers;

#[test]
fn a_reset_gives_every_register_its_first_value_again() {
    let mut nic = RtlNic::new(&RtlConfig::default()).expect("sizes that are built");
    registers::are_as_new_after_a_reset(&mut nic);
    assert!(!nic.has_failed(), "an assertion of the RTL failed");
}

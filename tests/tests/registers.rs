//! The register map of the behavioural NIC, walked; the RTL is walked by the same body (`nic/rtl/tests/registers.rs`).

use beeline_nic_model::{Nic, NicConfig};
use beeline_tests::registers;

#[test]
fn a_reset_gives_every_register_its_first_value_again() {
    let config = NicConfig { queues: 4, contexts: 4, pool_lines: 4 * 1024, ..NicConfig::default() };
    registers::are_as_new_after_a_reset(&mut Nic::new(config).expect("sizes that make sense"));
}

//! Shared test vectors: what a device must do with a sequence of writes, as data.
//!
//! A case (`cases/*.json`, described in README.md) is read and checked by [`load`]; [`run`](fn@run) plays it through
//! any [`Device`](beeline_contract_device::Device) by its registers and windows alone, so the behavioural NIC, the RTL and
//! whatever comes later run the same files. A host-side receiver plays a blank case's writes into memory and compares
//! messages itself.
//!
//! Not here: random tests (an adversary with a seed says less about why) and timing. The cases come from HotOS'25 §3
//! (reorder unit), kPIO+WC §III.A and figure 3, the papers that the other interfaces come from (docs/nic.md), and the rules of
//! `spec/formats.toml`.
#![forbid(unsafe_code)]

mod case;
mod check;
mod file;
mod host;
mod lap;
mod notation;
mod run;

pub use case::{
    Action, Bytes, Case, Count, DeviceParameters, Doorbell, Event, Expectation, HostSide, QueueStatus, Then,
    WindowKind, Write,
};
pub use file::{LoadError, load, load_folder};
pub use host::Area;
pub use lap::{LapCase, LapEvent, load_laps};
pub use notation::{NotationError, parse_bytes, parse_word};
pub use run::{Mismatch, run};

//! Guests: a stock Linux of Debian under emulation, without KVM, in which programs and drivers of the project meet a real kernel and a
//! real PCI function.
//!
//! [`Setup::prepare`] brings what they are made of, [`Guest::boot`] boots one, [`Guest::run`] runs a command in it:
//!
//! ```text
//! let setup = Setup::prepare()?;
//! let memory = SharedMemory::make(1 << 20)?;
//! let options = Options { devices: vec![memory.device()], files: vec![AddedFile::of(program)], ..Options::default() };
//! let mut guest = Guest::boot(&setup, &options)?;
//! let output = guest.run("lspci -nn")?;
//! assert_eq!(output.status, 0);
//! ```
//!
//! What a guest cannot show is how long something takes, or in what order stores of a write-combining mapping arrive: record 0089.

mod agent;
mod apt;
mod archive;
pub mod commands;
mod console;
pub mod driver;
mod elf;
mod folder;
mod image;
mod kernel;
mod lost;
mod machine;
mod modules;
mod packages;
pub mod programs;
mod qemu;
mod setup;
mod shared;
mod sysroot;

pub use image::AddedFile;
pub use lost::Cause;
pub use machine::{Guest, Options};
pub use packages::Packages;
pub use setup::Setup;
pub use shared::SharedMemory;

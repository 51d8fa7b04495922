//! Owners of a transmit queue at the pins of a device: one that keeps every rule of its interface, and one that keeps
//! none.
//!
//! What an owner can do is store into its window, ring its doorbell and write its own memory; who sets its queue up and
//! stops it is somebody else. The host halves of `host/driver` keep the rules by their types, so a bench that needs both
//! kinds, and counts writes one by one, has owners of its own: small, slow, and the same for every device.
//!
//! Enter from: `nic/rtl/tests/isolation` (the RTL, cycle by cycle), `fuzz` (the behavioural NIC). Leave to: a [`Bench`].

mod descriptor;
mod enso;
mod entry;
mod inline;
mod kpio;
mod mmio;
mod niq;
mod owner;
mod resources;
mod store;

use beeline_spec::Interface;

pub use descriptor::Descriptor;
pub use enso::Enso;
pub use inline::Inline;
pub use kpio::Kpio;
pub use mmio::Mmio;
pub use niq::Niq;
pub use owner::{Bench, Owner};
pub use resources::QueueResources;
pub use store::Store;

/// The one list of owners: each has the name of its interface.
macro_rules! owners {
    ($($interface:ident)*) => {
        /// Interfaces that have an owner here. Entries of coherent lines are no writes at the pins.
        pub const INTERFACES: [Interface; [$(stringify!($interface)),*].len()] = [$(Interface::$interface),*];

        /// An owner of a queue.
        ///
        /// # Panics
        /// For an interface without one.
        pub fn owner(interface: Interface, resources: QueueResources) -> Box<dyn Owner> {
            match interface {
                $(Interface::$interface => Box::new($interface::new(resources)),)*
                interface => panic!("{interface} has no owner at the pins"),
            }
        }
    };
}

owners! { Mmio Kpio Descriptor Inline Enso Niq }

//! The library, and descriptors.

use beeline_ffi::{Handle, Kind, Out, Outcome};

use crate::constants::SCI_FLAG_THREAD_SAFE;
use crate::edge::{Error, edge, edge_without_code};
use crate::flags::Flags;
use crate::handles::{Object, Table};
use crate::session::{self, Belongs};
use crate::uses::Uses;

/// `sci_desc_t`: what segments and connections are made of.
pub(crate) struct Descriptor {
    belongs: Belongs,
    pub(crate) uses: Uses,
}

impl Kind for Descriptor {
    const NAME: &'static str = "sci_desc_t";
    const TAG: u8 = 0x51;
}

impl Object for Descriptor {
    fn belongs(&self) -> &Belongs {
        &self.belongs
    }
}

pub(crate) static DESCRIPTORS: Table<Descriptor> = Table::new();

/// All threads may use a descriptor anyway.
const OPEN: Flags = Flags { done: SCI_FLAG_THREAD_SAFE, not_done: 0 };

pub(crate) fn initialize(flags: u32, error: Error<'_>) {
    edge("SCIInitialize", error, (), || {
        Flags::NONE.check(flags)?;
        session::initialize()
    });
}

pub(crate) fn terminate() {
    edge_without_code("SCITerminate", (), || {
        session::terminate();
        Ok(())
    });
}

pub(crate) fn open(descriptor: Out<'_, Handle<Descriptor>>, flags: u32, error: Error<'_>) {
    edge("SCIOpen", error, (), || {
        descriptor.put(Handle::NULL, "sd")?;
        OPEN.check(flags)?;
        let session = session::open()?;
        let make = |belongs| Descriptor { belongs, uses: Uses::default() };
        descriptor.put(DESCRIPTORS.make(&session, make, remove)?, "sd")
    });
}

pub(crate) fn close(descriptor: Handle<Descriptor>, flags: u32, error: Error<'_>) {
    edge("SCIClose", error, (), || {
        // A handle of nothing first, whatever the flags are.
        DESCRIPTORS.with(descriptor, |_| Flags::NONE.check(flags))?;
        remove(descriptor)
    });
}

pub(crate) fn remove(descriptor: Handle<Descriptor>) -> Outcome<()> {
    DESCRIPTORS.with_last(descriptor, |descriptor| descriptor.uses.end())?;
    DESCRIPTORS.remove(descriptor).map(drop)
}

//! Interrupts without bytes.

use core::ffi::c_void;
use std::time::Duration;

use beeline_fabric::{InterruptNumber, Refusal};
use beeline_ffi::Handle;

use crate::callback::check_waits;
use crate::constants::{
    SCI_FLAG_CONDITIONAL_INTERRUPT, SCI_FLAG_COUNTING_INT, SCI_FLAG_FIXED_INTNO, SCI_FLAG_SHARED_INT,
    SCI_FLAG_USE_CALLBACK,
};
use crate::edge::{Error, edge, refused};
use crate::errors;
use crate::flags::Flags;
use crate::handles::Table;
use crate::interrupt::{self, Own, Target, Triggers};
use crate::member::{Interrupt, Options, Trigger, Watch};
use crate::node::timeout_nanos;
use crate::session::Session;

/// `sci_local_interrupt_t`.
pub(crate) type Local = interrupt::Local<Interrupt>;

/// `sci_remote_interrupt_t`.
pub(crate) type Remote = interrupt::Remote<Trigger>;

/// `sci_cb_interrupt_t`.
pub(crate) type InterruptCallback = extern "C" fn(*mut c_void, Handle<Local>, u32) -> u32;

static LOCALS: Table<Local> = Table::new();
static REMOTES: Table<Remote> = Table::new();

impl Own for Interrupt {
    const HANDLE: (&'static str, u8) = ("sci_local_interrupt_t", 0x5d);
    const FUNCTIONS: [&'static str; 2] = ["SCICreateInterrupt", "SCIRemoveInterrupt"];
    const CREATE: Flags = Flags {
        done: SCI_FLAG_USE_CALLBACK | SCI_FLAG_FIXED_INTNO | SCI_FLAG_COUNTING_INT | SCI_FLAG_SHARED_INT,
        not_done: SCI_FLAG_CONDITIONAL_INTERRUPT,
    };
    type Callback = InterruptCallback;
    type Event = ();

    fn table() -> &'static Table<Local> {
        &LOCALS
    }

    fn create(session: &Session, number: Option<InterruptNumber>, flags: u32) -> Result<Self, Refusal> {
        let is_counting = flags & SCI_FLAG_COUNTING_INT != 0;
        let is_shared = flags & SCI_FLAG_SHARED_INT != 0;
        session.member().create_interrupt(Options { number, is_shared, is_counting, ..Options::default() })
    }

    fn number(&self) -> InterruptNumber {
        Interrupt::number(self)
    }

    fn remove(&self) -> Result<(), Refusal> {
        Interrupt::remove(self)
    }

    fn next(&self) -> Option<()> {
        self.try_take().ok()?.then_some(())
    }

    fn watch(&self) -> Watch {
        Interrupt::watch(self)
    }

    fn tell(callback: InterruptCallback, argument: *mut c_void, handle: Handle<Local>, (): ()) -> u32 {
        callback(argument, handle, errors::OK)
    }
}

impl Triggers for Trigger {
    const HANDLE: (&'static str, u8) = ("sci_remote_interrupt_t", 0x5f);
    const FUNCTIONS: [&'static str; 2] = ["SCIConnectInterrupt", "SCIDisconnectInterrupt"];
    const CONNECT: Flags = Flags::NONE;

    fn table() -> &'static Table<Remote> {
        &REMOTES
    }

    fn connect(session: &Session, to: Target) -> Result<Self, Refusal> {
        session.member().connect_interrupt(to.node, to.number, to.adapter, to.timeout)
    }
}

pub(crate) fn wait(interrupt: Handle<Local>, timeout: u32, flags: u32, error: Error<'_>) {
    edge("SCIWaitForInterrupt", error, (), || {
        LOCALS.with(interrupt, |local| {
            Flags::NONE.check(flags)?;
            check_waits(local.caller.is_some())?;
            local.interrupt.wait(timeout_nanos(timeout).map(Duration::from_nanos)).map_err(refused)
        })
    });
}

pub(crate) fn trigger(interrupt: Handle<Remote>, flags: u32, error: Error<'_>) {
    edge("SCITriggerInterrupt", error, (), || {
        REMOTES.with(interrupt, |remote| {
            Flags::NONE.check(flags)?;
            remote.trigger.trigger().map_err(refused)
        })
    });
}

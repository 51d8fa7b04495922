//! Interrupts that come with bytes.

use core::ffi::c_void;
use std::time::Duration;

use beeline_fabric::{InterruptNumber, MAX_MESSAGE_BYTES, Refusal};
use beeline_fabric_process::NotTaken;
use beeline_ffi::{Bytes, Failure, Handle, Memory, Outcome};

use crate::callback::check_waits;
use crate::constants::{SCI_FLAG_BROADCAST, SCI_FLAG_FIXED_INTNO, SCI_FLAG_USE_CALLBACK};
use crate::edge::{Error, edge, failure, refused};
use crate::errors;
use crate::flags::Flags;
use crate::handles::Table;
use crate::interrupt::{self, Own, Target, Triggers};
use crate::member::{DataInterrupt, DataTrigger, Options, Watch};
use crate::node::timeout_nanos;
use crate::session::Session;

/// `sci_local_data_interrupt_t`.
pub(crate) type Local = interrupt::Local<DataInterrupt>;

/// `sci_remote_data_interrupt_t`.
pub(crate) type Remote = interrupt::Remote<DataTrigger>;

/// `sci_cb_data_interrupt_t`.
pub(crate) type DataCallback = extern "C" fn(*mut c_void, Handle<Local>, *mut c_void, u32, u32) -> u32;

static LOCALS: Table<Local> = Table::new();
static REMOTES: Table<Remote> = Table::new();

impl Own for DataInterrupt {
    const HANDLE: (&'static str, u8) = ("sci_local_data_interrupt_t", 0x61);
    const FUNCTIONS: [&'static str; 2] = ["SCICreateDataInterrupt", "SCIRemoveDataInterrupt"];
    const CREATE: Flags =
        Flags { done: SCI_FLAG_USE_CALLBACK | SCI_FLAG_FIXED_INTNO | SCI_FLAG_BROADCAST, not_done: 0 };
    type Callback = DataCallback;
    type Event = Vec<u8>;

    fn table() -> &'static Table<Local> {
        &LOCALS
    }

    fn create(session: &Session, number: Option<InterruptNumber>, flags: u32) -> Result<Self, Refusal> {
        let is_group = flags & SCI_FLAG_BROADCAST != 0;
        let options = Options { number, is_group, ..Options::default() };
        session.member().create_data_interrupt(options)
    }

    fn number(&self) -> InterruptNumber {
        DataInterrupt::number(self)
    }

    fn remove(&self) -> Result<(), Refusal> {
        DataInterrupt::remove(self)
    }

    fn next(&self) -> Option<Vec<u8>> {
        if !self.has_message().ok()? {
            return None;
        }
        let mut message = vec![0; MAX_MESSAGE_BYTES];
        let bytes = self.wait(&mut message, Some(Duration::ZERO)).ok()?;
        message.truncate(bytes);
        Some(message)
    }

    fn watch(&self) -> Watch {
        DataInterrupt::watch(self)
    }

    fn tell(
        callback: DataCallback,
        argument: *mut c_void,
        handle: Handle<Local>,
        mut message: Vec<u8>,
    ) -> u32 {
        let bytes = message.len() as u32;
        callback(argument, handle, message.as_mut_ptr().cast(), bytes, errors::OK)
    }
}

impl Triggers for DataTrigger {
    const HANDLE: (&'static str, u8) = ("sci_remote_data_interrupt_t", 0x63);
    const FUNCTIONS: [&'static str; 2] = ["SCIConnectDataInterrupt", "SCIDisconnectDataInterrupt"];
    const CONNECT: Flags = Flags { done: SCI_FLAG_BROADCAST, not_done: 0 };

    fn table() -> &'static Table<Remote> {
        &REMOTES
    }

    fn connect(session: &Session, to: Target) -> Result<Self, Refusal> {
        session.member().connect_data_interrupt(to.node, to.number, to.adapter, to.timeout)
    }
}

/// Where C says how much room there is, and is told how much came.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct LengthVariable(*mut u32);

impl LengthVariable {
    fn read(self) -> Outcome<usize> {
        if self.0.is_null() {
            return Err(Failure::invalid("length is NULL"));
        }
        // SAFETY: not NULL (checked above), so a variable that C has set to the bytes of its memory.
        Ok(unsafe { self.0.read() } as usize)
    }

    /// `read` has looked at the pointer.
    fn put(self, bytes: usize) {
        if !self.0.is_null() {
            // SAFETY: not NULL (checked above), so a variable of C, which this call alone uses.
            unsafe { self.0.write(bytes as u32) };
        }
    }
}

pub(crate) fn wait(
    interrupt: Handle<Local>,
    data: Memory<'_>,
    length: LengthVariable,
    timeout: u32,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCIWaitForDataInterrupt", error, (), || {
        LOCALS.with(interrupt, |local| {
            Flags::NONE.check(flags)?;
            check_waits(local.caller.is_some())?;
            let memory = data.fill(length.read()?, "data")?;
            match local.interrupt.wait(memory, timeout_nanos(timeout).map(Duration::from_nanos)) {
                Ok(bytes) => {
                    length.put(bytes);
                    Ok(())
                }
                Err(NotTaken::Overflow { bytes }) => {
                    length.put(bytes);
                    Err(failure(errors::OVERFLOW, format!("the next message has {bytes} bytes")))
                }
                Err(NotTaken::Refused(refusal)) => Err(refused(refusal)),
            }
        })
    });
}

pub(crate) fn trigger(interrupt: Handle<Remote>, data: Bytes<'_>, length: u32, flags: u32, error: Error<'_>) {
    edge("SCITriggerDataInterrupt", error, (), || {
        REMOTES.with(interrupt, |remote| {
            Flags::NONE.check(flags)?;
            let message = data.read(length as usize, "data")?;
            remote.trigger.trigger(message).map_err(|refusal| not_sent(refusal, message.len()))
        })
    });
}

/// Why a message of so many bytes is not sent.
#[cold]
fn not_sent(refusal: Refusal, bytes: usize) -> Failure {
    match refusal {
        Refusal::IllegalParameter if bytes > MAX_MESSAGE_BYTES => {
            Failure::invalid(format!("length is {bytes}, and {MAX_MESSAGE_BYTES} at most"))
        }
        Refusal::Nospc => {
            let why = format!("the interrupt's queue has no room for {bytes} bytes until some are taken");
            failure(errors::NOSPC, why)
        }
        other => refused(other),
    }
}

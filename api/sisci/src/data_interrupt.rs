//! Interrupts that come with bytes, and connections to those of other programs.

use core::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use beeline_fabric::MAX_MESSAGE_BYTES;
use beeline_fabric_process::{DataInterrupt, DataTrigger, InterruptOptions, NotTaken};
use beeline_ffi::{Bytes, Failure, Handle, Kind, Memory, Out, Outcome};

use crate::callback::{Argument, Caller, check_waits};
use crate::constants::{SCI_FLAG_BROADCAST, SCI_FLAG_FIXED_INTNO, SCI_FLAG_USE_CALLBACK};
use crate::edge::{Error, edge, failure, refused};
use crate::errors;
use crate::flags::Flags;
use crate::handles::{Object, Table};
use crate::interrupt::{NumberVariable, Target, begin};
use crate::lifecycle::{DESCRIPTORS, Descriptor};
use crate::node::timeout_nanos;
use crate::session::Belongs;
use crate::uses::Use;

/// `sci_local_data_interrupt_t`.
pub(crate) struct Local {
    belongs: Belongs,
    _of_descriptor: Use,
    interrupt: Arc<DataInterrupt>,
    /// Of its callback, if it has one.
    caller: Option<Caller>,
}

/// `sci_remote_data_interrupt_t`.
pub(crate) struct Remote {
    belongs: Belongs,
    _of_descriptor: Use,
    trigger: DataTrigger,
}

impl Kind for Local {
    const NAME: &'static str = "sci_local_data_interrupt_t";
    const TAG: u8 = 0x61;
}

impl Kind for Remote {
    const NAME: &'static str = "sci_remote_data_interrupt_t";
    const TAG: u8 = 0x63;
}

impl Object for Local {
    fn belongs(&self) -> &Belongs {
        &self.belongs
    }
}

impl Object for Remote {
    fn belongs(&self) -> &Belongs {
        &self.belongs
    }
}

static LOCALS: Table<Local> = Table::new();
static REMOTES: Table<Remote> = Table::new();

/// `sci_cb_data_interrupt_t`.
pub(crate) type DataCallback = extern "C" fn(*mut c_void, Handle<Local>, *mut c_void, u32, u32) -> u32;

const CREATE: Flags =
    Flags { done: SCI_FLAG_USE_CALLBACK | SCI_FLAG_FIXED_INTNO, not_done: SCI_FLAG_BROADCAST };
const CONNECT: Flags = Flags { done: 0, not_done: SCI_FLAG_BROADCAST };

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

#[expect(clippy::too_many_arguments, reason = "the signature of SISCI")]
pub(crate) fn create(
    descriptor: Handle<Descriptor>,
    interrupt: Out<'_, Handle<Local>>,
    adapter: u32,
    number: NumberVariable,
    callback: Option<DataCallback>,
    argument: *mut c_void,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCICreateDataInterrupt", error, (), || {
        interrupt.put(Handle::NULL, "interrupt")?;
        let (session, of_descriptor) = begin(descriptor, adapter, (&CREATE, flags), callback.is_some())?;
        let options = InterruptOptions { number: number.wanted(flags)?, ..InterruptOptions::default() };
        let made = Arc::new(session.member().create_data_interrupt(options).map_err(refused)?);
        let callback = callback.filter(|_| flags & SCI_FLAG_USE_CALLBACK != 0);
        let make = |belongs| Local {
            belongs,
            _of_descriptor: of_descriptor,
            interrupt: Arc::clone(&made),
            caller: callback.map(|_| Caller::default()),
        };
        let handle = LOCALS.make(&session, make, remove)?;
        // Before the first callback, which may look at both.
        number.put(made.number());
        interrupt.put(handle, "interrupt")?;
        if let Some(callback) = callback
            && let Err(failure) = begin_calls(handle, &made, callback, argument)
        {
            interrupt.put(Handle::NULL, "interrupt")?;
            remove(handle)?;
            return Err(failure);
        }
        Ok(())
    });
}

/// Begins to give the callback of an interrupt the bytes that it is triggered with.
fn begin_calls(
    handle: Handle<Local>,
    interrupt: &Arc<DataInterrupt>,
    callback: DataCallback,
    argument: *mut c_void,
) -> Outcome<()> {
    let (argument, waited) = (Argument::of(argument), Arc::clone(interrupt));
    LOCALS.with(handle, |local| {
        let next = move || {
            let mut message = vec![0; MAX_MESSAGE_BYTES];
            let bytes = waited.wait(&mut message, None).ok()?;
            message.truncate(bytes);
            Some(message)
        };
        let call = move |mut message: Vec<u8>| {
            let bytes = message.len() as u32;
            callback(argument.get(), handle, message.as_mut_ptr().cast(), bytes, errors::OK)
        };
        local.caller.as_ref().map_or(Ok(()), |caller| caller.begin(next, call))
    })
}

pub(crate) fn remove_interrupt(interrupt: Handle<Local>, flags: u32, error: Error<'_>) {
    edge("SCIRemoveDataInterrupt", error, (), || {
        LOCALS.with(interrupt, |_| Flags::NONE.check(flags))?;
        remove(interrupt)
    });
}

fn remove(interrupt: Handle<Local>) -> Outcome<()> {
    // Who waits for it is told, and leaves it.
    LOCALS.with_last(interrupt, |local| local.interrupt.remove().map_err(refused))?;
    let removed = LOCALS.remove(interrupt)?;
    if let Some(caller) = &removed.caller {
        caller.stop();
    }
    Ok(())
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

#[expect(clippy::too_many_arguments, reason = "the signature of SISCI")]
pub(crate) fn connect(
    descriptor: Handle<Descriptor>,
    interrupt: Out<'_, Handle<Remote>>,
    node: u32,
    adapter: u32,
    number: u32,
    timeout: u32,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCIConnectDataInterrupt", error, (), || {
        interrupt.put(Handle::NULL, "interrupt")?;
        // The descriptor is not held while this waits: who closes it is told that it is in use.
        let (session, of_descriptor) = DESCRIPTORS.with(descriptor, |descriptor| {
            CONNECT.check(flags)?;
            Ok((descriptor.session().clone(), descriptor.uses.begin()?))
        })?;
        let Target { node, adapter, number, timeout } = Target::of(node, adapter, number, timeout)?;
        let member = session.member();
        let trigger = member.connect_data_interrupt(node, number, adapter, timeout).map_err(refused)?;
        let make = |belongs| Remote { belongs, _of_descriptor: of_descriptor, trigger };
        interrupt.put(REMOTES.make(&session, make, end)?, "interrupt")
    });
}

pub(crate) fn disconnect(interrupt: Handle<Remote>, flags: u32, error: Error<'_>) {
    edge("SCIDisconnectDataInterrupt", error, (), || {
        REMOTES.with(interrupt, |_| Flags::NONE.check(flags))?;
        end(interrupt)
    });
}

fn end(interrupt: Handle<Remote>) -> Outcome<()> {
    REMOTES.remove(interrupt).map(drop)
}

pub(crate) fn trigger(interrupt: Handle<Remote>, data: Bytes<'_>, length: u32, flags: u32, error: Error<'_>) {
    edge("SCITriggerDataInterrupt", error, (), || {
        REMOTES.with(interrupt, |remote| {
            Flags::NONE.check(flags)?;
            remote.trigger.trigger(data.read(length as usize, "data")?).map_err(refused)
        })
    });
}

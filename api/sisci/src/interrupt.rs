//! Interrupts, and connections to those of other programs.

use core::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use beeline_fabric::{AdapterNumber, InterruptNumber, NodeId};
use beeline_fabric_process::{Interrupt, InterruptOptions, Trigger};
use beeline_ffi::{Failure, Handle, Kind, Out, Outcome};

use crate::callback::{Argument, Caller, check_callback, check_waits};
use crate::constants::{
    SCI_FLAG_CONDITIONAL_INTERRUPT, SCI_FLAG_COUNTING_INT, SCI_FLAG_FIXED_INTNO, SCI_FLAG_SHARED_INT,
    SCI_FLAG_USE_CALLBACK,
};
use crate::edge::{Error, edge, refused};
use crate::errors;
use crate::flags::Flags;
use crate::handles::{Object, Table};
use crate::lifecycle::{DESCRIPTORS, Descriptor};
use crate::node::{node_id, timeout_nanos};
use crate::session::{Belongs, Session};
use crate::uses::Use;

/// `sci_local_interrupt_t`.
pub(crate) struct Local {
    belongs: Belongs,
    _of_descriptor: Use,
    interrupt: Arc<Interrupt>,
    /// Of its callback, if it has one.
    caller: Option<Caller>,
}

/// `sci_remote_interrupt_t`.
pub(crate) struct Remote {
    belongs: Belongs,
    _of_descriptor: Use,
    trigger: Trigger,
}

impl Kind for Local {
    const NAME: &'static str = "sci_local_interrupt_t";
    const TAG: u8 = 0x5d;
}

impl Kind for Remote {
    const NAME: &'static str = "sci_remote_interrupt_t";
    const TAG: u8 = 0x5f;
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

/// `sci_cb_interrupt_t`.
pub(crate) type InterruptCallback = extern "C" fn(*mut c_void, Handle<Local>, u32) -> u32;

const CREATE: Flags = Flags {
    done: SCI_FLAG_USE_CALLBACK | SCI_FLAG_FIXED_INTNO | SCI_FLAG_COUNTING_INT,
    not_done: SCI_FLAG_SHARED_INT | SCI_FLAG_CONDITIONAL_INTERRUPT,
};

/// The number of an interrupt, where C gives the one that it wants and is given the one that was taken.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct NumberVariable(*mut u32);

impl NumberVariable {
    /// The number that C wants, if its flags say so.
    ///
    /// # Errors
    /// It is NULL.
    pub(crate) fn wanted(self, flags: u32) -> Outcome<Option<InterruptNumber>> {
        if self.0.is_null() {
            return Err(Failure::invalid("interruptNo is NULL"));
        }
        if flags & SCI_FLAG_FIXED_INTNO == 0 {
            return Ok(None);
        }
        // SAFETY: not NULL (checked above), so a variable that C has set: what the flag says.
        Ok(Some(InterruptNumber(unsafe { self.0.read() })))
    }

    /// Puts the number that was taken. `wanted` has looked at the pointer.
    pub(crate) fn put(self, number: InterruptNumber) {
        if !self.0.is_null() {
            // SAFETY: not NULL (checked above), so a variable of C, which this call alone uses.
            unsafe { self.0.write(number.0) };
        }
    }
}

/// What a program makes an interrupt of.
pub(crate) fn begin(
    descriptor: Handle<Descriptor>,
    adapter: u32,
    (known, flags): (&Flags, u32),
    has_callback: bool,
) -> Outcome<(Arc<Session>, Use)> {
    let (session, of_descriptor) = DESCRIPTORS.with(descriptor, |descriptor| {
        known.check(flags)?;
        check_callback(flags, has_callback)?;
        Ok((descriptor.session().clone(), descriptor.uses.begin()?))
    })?;
    let adapter = AdapterNumber::new(adapter).map_err(refused)?;
    // For what it says of an adapter that is not there: interrupts are of all adapters.
    session.member().is_link_up(adapter).map_err(refused)?;
    Ok((session, of_descriptor))
}

/// Where a program connects to.
pub(crate) struct Target {
    pub(crate) node: NodeId,
    pub(crate) adapter: AdapterNumber,
    pub(crate) number: InterruptNumber,
    pub(crate) timeout: Option<Duration>,
}

impl Target {
    pub(crate) fn of(node: u32, adapter: u32, number: u32, timeout: u32) -> Outcome<Self> {
        Ok(Target {
            node: node_id(node)?,
            adapter: AdapterNumber::new(adapter).map_err(refused)?,
            number: InterruptNumber(number),
            timeout: timeout_nanos(timeout).map(Duration::from_nanos),
        })
    }
}

#[expect(clippy::too_many_arguments, reason = "the signature of SISCI")]
pub(crate) fn create(
    descriptor: Handle<Descriptor>,
    interrupt: Out<'_, Handle<Local>>,
    adapter: u32,
    number: NumberVariable,
    callback: Option<InterruptCallback>,
    argument: *mut c_void,
    flags: u32,
    error: Error<'_>,
) {
    edge("SCICreateInterrupt", error, (), || {
        interrupt.put(Handle::NULL, "interrupt")?;
        let (session, of_descriptor) = begin(descriptor, adapter, (&CREATE, flags), callback.is_some())?;
        let is_counting = flags & SCI_FLAG_COUNTING_INT != 0;
        let options =
            InterruptOptions { number: number.wanted(flags)?, is_counting, ..InterruptOptions::default() };
        let made = Arc::new(session.member().create_interrupt(options).map_err(refused)?);
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
        if let Some(callback) = callback {
            let (argument, waited) = (Argument::of(argument), Arc::clone(&made));
            let begun = LOCALS.with(handle, |local| {
                let next = move || waited.wait(None).ok();
                let call = move |()| callback(argument.get(), handle, errors::OK);
                local.caller.as_ref().map_or(Ok(()), |caller| caller.begin(next, call))
            });
            if let Err(failure) = begun {
                interrupt.put(Handle::NULL, "interrupt")?;
                remove(handle)?;
                return Err(failure);
            }
        }
        Ok(())
    });
}

pub(crate) fn remove_interrupt(interrupt: Handle<Local>, flags: u32, error: Error<'_>) {
    edge("SCIRemoveInterrupt", error, (), || {
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

pub(crate) fn wait(interrupt: Handle<Local>, timeout: u32, flags: u32, error: Error<'_>) {
    edge("SCIWaitForInterrupt", error, (), || {
        LOCALS.with(interrupt, |local| {
            Flags::NONE.check(flags)?;
            check_waits(local.caller.is_some())?;
            local.interrupt.wait(timeout_nanos(timeout).map(Duration::from_nanos)).map_err(refused)
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
    edge("SCIConnectInterrupt", error, (), || {
        interrupt.put(Handle::NULL, "interrupt")?;
        // The descriptor is not held while this waits: who closes it is told that it is in use.
        let (session, of_descriptor) = DESCRIPTORS.with(descriptor, |descriptor| {
            Flags::NONE.check(flags)?;
            Ok((descriptor.session().clone(), descriptor.uses.begin()?))
        })?;
        let Target { node, adapter, number, timeout } = Target::of(node, adapter, number, timeout)?;
        let trigger = session.member().connect_interrupt(node, number, adapter, timeout).map_err(refused)?;
        let make = |belongs| Remote { belongs, _of_descriptor: of_descriptor, trigger };
        interrupt.put(REMOTES.make(&session, make, end)?, "interrupt")
    });
}

pub(crate) fn disconnect(interrupt: Handle<Remote>, flags: u32, error: Error<'_>) {
    edge("SCIDisconnectInterrupt", error, (), || {
        REMOTES.with(interrupt, |_| Flags::NONE.check(flags))?;
        end(interrupt)
    });
}

fn end(interrupt: Handle<Remote>) -> Outcome<()> {
    REMOTES.remove(interrupt).map(drop)
}

pub(crate) fn trigger(interrupt: Handle<Remote>, flags: u32, error: Error<'_>) {
    edge("SCITriggerInterrupt", error, (), || {
        REMOTES.with(interrupt, |remote| {
            Flags::NONE.check(flags)?;
            remote.trigger.trigger().map_err(refused)
        })
    });
}

//! What interrupts with and without bytes have in common: they are made, connected to, and removed.

use core::ffi::c_void;
use std::sync::Arc;
use std::time::Duration;

use beeline_fabric::{AdapterNumber, InterruptNumber, NodeId, Refusal};
use beeline_ffi::{Failure, Handle, Kind, Out, Outcome, Text};

use crate::callback::{Argument, Caller, check_callback};
use crate::constants::{
    SCI_FLAG_COUNTING_INT, SCI_FLAG_FIXED_INTNO, SCI_FLAG_SHARED_INT, SCI_FLAG_USE_CALLBACK,
};
use crate::edge::{Error, edge, refused};
use crate::flags::Flags;
use crate::handles::{Object, Table};
use crate::lifecycle::{DESCRIPTORS, Descriptor};
use crate::member::Watch;
use crate::node::{node_or_group, timeout_nanos};
use crate::session::{Belongs, Session};
use crate::uses::Use;

/// Bytes of the longest name of an interrupt.
const MAX_NAME_BYTES: usize = 240;

/// A kind of interrupt of this process.
pub(crate) trait Own: Sized + Send + Sync + 'static {
    /// The name of its handles in C, and their tag.
    const HANDLE: (&'static str, u8);
    /// The functions that make and remove one.
    const FUNCTIONS: [&'static str; 2];
    const CREATE: Flags;
    /// The function that C gives to be called.
    type Callback: Copy + Send + 'static;
    /// What the callback is told.
    type Event: Send + 'static;

    fn table() -> &'static Table<Local<Self>>;
    fn create(session: &Session, number: Option<InterruptNumber>, flags: u32) -> Result<Self, Refusal>;
    fn number(&self) -> InterruptNumber;
    fn remove(&self) -> Result<(), Refusal>;
    /// Takes the next event, if there is one.
    fn next(&self) -> Option<Self::Event>;
    /// Has whoever waits for several things woken by this one.
    fn watch(&self) -> Watch;
    fn tell(
        callback: Self::Callback,
        argument: *mut c_void,
        handle: Handle<Local<Self>>,
        event: Self::Event,
    ) -> u32;
}

/// A kind of connection to an interrupt of another program.
pub(crate) trait Triggers: Sized + Send + Sync + 'static {
    /// The name of its handles in C, and their tag.
    const HANDLE: (&'static str, u8);
    /// The functions that connect and disconnect.
    const FUNCTIONS: [&'static str; 2];
    const CONNECT: Flags;

    fn table() -> &'static Table<Remote<Self>>;
    fn connect(session: &Session, to: Target) -> Result<Self, Refusal>;
}

/// `sci_local_interrupt_t` and `sci_local_data_interrupt_t`.
pub(crate) struct Local<I> {
    belongs: Belongs,
    _of_descriptor: Use,
    pub(crate) interrupt: Arc<I>,
    /// Of its callback, if it has one.
    pub(crate) caller: Option<Caller>,
}

/// `sci_remote_interrupt_t` and `sci_remote_data_interrupt_t`.
pub(crate) struct Remote<T> {
    belongs: Belongs,
    _of_descriptor: Use,
    pub(crate) trigger: T,
}

impl<I: Own> Kind for Local<I> {
    const NAME: &'static str = I::HANDLE.0;
    const TAG: u8 = I::HANDLE.1;
}

impl<T: Triggers> Kind for Remote<T> {
    const NAME: &'static str = T::HANDLE.0;
    const TAG: u8 = T::HANDLE.1;
}

impl<I: Own> Object for Local<I> {
    fn belongs(&self) -> &Belongs {
        &self.belongs
    }
}

impl<T: Triggers> Object for Remote<T> {
    fn belongs(&self) -> &Belongs {
        &self.belongs
    }
}

/// The number of an interrupt, where C gives the one that it wants and is given the one that was taken.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub(crate) struct NumberVariable(*mut u32);

impl NumberVariable {
    /// The number that C wants, if its flags say so.
    ///
    /// # Errors
    /// It is NULL.
    fn wanted(self, flags: u32) -> Outcome<Option<InterruptNumber>> {
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
    fn put(self, number: InterruptNumber) {
        if !self.0.is_null() {
            // SAFETY: not NULL (checked above), so a variable of C, which this call alone uses.
            unsafe { self.0.write(number.0) };
        }
    }
}

/// Where a program connects to.
pub(crate) struct Target {
    pub(crate) node: NodeId,
    pub(crate) adapter: AdapterNumber,
    pub(crate) number: InterruptNumber,
    pub(crate) timeout: Option<Duration>,
}

/// How a program wants an interrupt.
struct Wish<'a, I: Own> {
    /// Where the handle is put.
    interrupt: Out<'a, Handle<Local<I>>>,
    adapter: u32,
    callback: Option<I::Callback>,
    argument: *mut c_void,
    flags: u32,
    /// What the function knows of these.
    known: &'a Flags,
}

/// Makes an interrupt. `wanted` gives the number that the program wants, and `made` takes the one that was taken.
fn make<I: Own>(
    descriptor: Handle<Descriptor>,
    wish: &Wish<'_, I>,
    wanted: impl FnOnce() -> Outcome<Option<InterruptNumber>>,
    taken: impl FnOnce(InterruptNumber),
) -> Outcome<()> {
    let Wish { interrupt, flags, .. } = *wish;
    interrupt.put(Handle::NULL, "interrupt")?;
    let (session, of_descriptor) = DESCRIPTORS.with(descriptor, |descriptor| {
        wish.known.check(flags)?;
        check_callback(flags, wish.callback.is_some())?;
        Ok((descriptor.session().clone(), descriptor.uses.begin()?))
    })?;
    let adapter = AdapterNumber::new(wish.adapter).map_err(refused)?;
    // For what it says of an adapter that is not there: interrupts are of all adapters.
    session.member().is_link_up(adapter).map_err(refused)?;
    let made = Arc::new(I::create(&session, wanted()?, flags).map_err(refused)?);
    let callback = wish.callback.filter(|_| flags & SCI_FLAG_USE_CALLBACK != 0);
    let make = |belongs| Local {
        belongs,
        _of_descriptor: of_descriptor,
        interrupt: Arc::clone(&made),
        caller: callback.map(|_| Caller::default()),
    };
    let handle = I::table().make(&session, make, remove)?;
    // Before the first callback, which may look at both.
    taken(made.number());
    interrupt.put(handle, "interrupt")?;
    if let Some(callback) = callback
        && let Err(failure) = begin_calls(handle, made, callback, wish.argument)
    {
        interrupt.put(Handle::NULL, "interrupt")?;
        remove(handle)?;
        return Err(failure);
    }
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "the signature of SISCI")]
pub(crate) fn create<I: Own>(
    descriptor: Handle<Descriptor>,
    interrupt: Out<'_, Handle<Local<I>>>,
    adapter: u32,
    number: NumberVariable,
    callback: Option<I::Callback>,
    argument: *mut c_void,
    flags: u32,
    error: Error<'_>,
) {
    edge(I::FUNCTIONS[0], error, (), || {
        let wish = Wish { interrupt, adapter, callback, argument, flags, known: &I::CREATE };
        make(descriptor, &wish, || number.wanted(flags), |taken| number.put(taken))
    });
}

/// Makes an interrupt whose number is that of a name.
#[expect(clippy::too_many_arguments, reason = "the signature of SISCI")]
pub(crate) fn create_named<I: Own>(
    descriptor: Handle<Descriptor>,
    interrupt: Out<'_, Handle<Local<I>>>,
    adapter: u32,
    name: Text<'_>,
    callback: Option<I::Callback>,
    argument: *mut c_void,
    flags: u32,
    error: Error<'_>,
) {
    const KNOWN: Flags =
        Flags { done: SCI_FLAG_USE_CALLBACK | SCI_FLAG_SHARED_INT | SCI_FLAG_COUNTING_INT, not_done: 0 };
    edge("SCICreateNamedInterrupt", error, (), || {
        let wish = Wish { interrupt, adapter, callback, argument, flags, known: &KNOWN };
        let wanted = || {
            let name = name.read("name")?;
            if name.is_empty() || name.len() > MAX_NAME_BYTES {
                let why = format!("name has {} bytes, and not 1 to {MAX_NAME_BYTES}", name.len());
                return Err(Failure::invalid(why));
            }
            Ok(Some(InterruptNumber::of_name(name.as_bytes())))
        };
        make(descriptor, &wish, wanted, |_| {})
    });
}

/// Begins to tell the callback of an interrupt what triggers it.
fn begin_calls<I: Own>(
    handle: Handle<Local<I>>,
    interrupt: Arc<I>,
    callback: I::Callback,
    argument: *mut c_void,
) -> Outcome<()> {
    let argument = Argument::of(argument);
    I::table().with(handle, |local| {
        let watch = interrupt.watch();
        let next = move || {
            let _kept = &watch;
            interrupt.next()
        };
        let call = move |event| I::tell(callback, argument.get(), handle, event);
        local.caller.as_ref().map_or(Ok(()), |caller| local.session().begin_calls(caller, next, call))
    })
}

pub(crate) fn remove_interrupt<I: Own>(interrupt: Handle<Local<I>>, flags: u32, error: Error<'_>) {
    edge(I::FUNCTIONS[1], error, (), || {
        I::table().with(interrupt, |_| Flags::NONE.check(flags))?;
        remove(interrupt)
    });
}

fn remove<I: Own>(interrupt: Handle<Local<I>>) -> Outcome<()> {
    // Who waits for it is told, and leaves it.
    I::table().with_last(interrupt, |local| local.interrupt.remove().map_err(refused))?;
    let removed = I::table().remove(interrupt)?;
    if let Some(caller) = &removed.caller {
        caller.stop();
    }
    Ok(())
}

#[expect(clippy::too_many_arguments, reason = "the signature of SISCI")]
pub(crate) fn connect<T: Triggers>(
    descriptor: Handle<Descriptor>,
    interrupt: Out<'_, Handle<Remote<T>>>,
    node: u32,
    adapter: u32,
    number: u32,
    timeout: u32,
    flags: u32,
    error: Error<'_>,
) {
    edge(T::FUNCTIONS[0], error, (), || {
        interrupt.put(Handle::NULL, "interrupt")?;
        // The descriptor is not held while this waits: who closes it is told that it is in use.
        let (session, of_descriptor) = DESCRIPTORS.with(descriptor, |descriptor| {
            T::CONNECT.check(flags)?;
            Ok((descriptor.session().clone(), descriptor.uses.begin()?))
        })?;
        let target = Target {
            node: node_or_group(node, flags)?,
            adapter: session.adapter(adapter)?,
            number: InterruptNumber(number),
            timeout: timeout_nanos(timeout).map(Duration::from_nanos),
        };
        let trigger = T::connect(&session, target).map_err(refused)?;
        let make = |belongs| Remote { belongs, _of_descriptor: of_descriptor, trigger };
        interrupt.put(T::table().make(&session, make, end)?, "interrupt")
    });
}

pub(crate) fn disconnect<T: Triggers>(interrupt: Handle<Remote<T>>, flags: u32, error: Error<'_>) {
    edge(T::FUNCTIONS[1], error, (), || {
        T::table().with(interrupt, |_| Flags::NONE.check(flags))?;
        end(interrupt)
    });
}

fn end<T: Triggers>(interrupt: Handle<Remote<T>>) -> Outcome<()> {
    T::table().remove(interrupt).map(drop)
}

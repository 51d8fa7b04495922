//! This process as a user of the library: from `SCIInitialize` to `SCITerminate`, and a member of a fabric from the first `SCIOpen` on.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::Duration;

use beeline_domain::{Domain, DomainError};
use beeline_fabric::{AdapterNumber, Call, Refusal, Value};
use beeline_fabric_process::{ConfigError, Configuration};
use beeline_ffi::{EINVAL, Failure, Outcome, set_errno};
use beeline_mmio::{PerProcess, ThisProcess};

use crate::callback::Caller;
use crate::callback::pool::{Events, Pool};
use crate::edge::{failure, refused};
use crate::errors;
use crate::member::Member;

/// The library in this process. A child of fork has one of its own, which is not initialized.
static LIBRARY: PerProcess<Mutex<Library>> = PerProcess::new();

/// How often, and after how long, something is tried again that another thread is about to let go of.
const ATTEMPTS: u32 = 1000;
const REST: Duration = Duration::from_millis(1);

#[derive(Default)]
struct Library {
    /// Calls of `SCIInitialize` without one of `SCITerminate`.
    initialized: u32,
    config: Option<Configuration>,
    session: Option<Arc<Session>>,
}

/// A membership of the fabric, and what the program has of it.
pub(crate) struct Session {
    process: ThisProcess,
    member: Member,
    /// The adapters of its node, and whether each that a program names means any.
    adapters: (Vec<AdapterNumber>, bool),
    /// Whether `SCITerminate` has ended it. A thread that is in a call keeps the session until the call returns.
    is_over: AtomicBool,
    objects: Mutex<Objects>,
    /// The threads that call callbacks.
    calls: Arc<Pool>,
}

/// Removes something that the program has, by force where there is one.
pub(crate) type Removal = Box<dyn Fn() -> Outcome<()> + Send>;

/// What the program has, by numbers that grow: what was made of something comes after it.
struct Objects {
    /// Nothing once the session ends.
    live: Option<BTreeMap<u64, Removal>>,
    next: u64,
}

/// A place among what the program has, given up where this is dropped.
pub(crate) struct Belongs {
    session: Arc<Session>,
    number: u64,
}

pub(crate) fn initialize() -> Outcome<()> {
    let mut library = library();
    if library.initialized == 0 {
        let config = Configuration::read().map_err(|error| misconfigured(&error))?;
        if config.one_memory.is_none() {
            Domain::check(&config.fabric.domain).map_err(|error| no_place(&error))?;
        }
        library.config = Some(config);
    }
    library.initialized = library.initialized.saturating_add(1);
    Ok(())
}

/// Programs look at `errno` for what `SCI_ERR_SYSTEM` is.
fn misconfigured(error: &ConfigError) -> Failure {
    let number = match error {
        ConfigError::Unreadable { error, .. } => error.raw_os_error(),
        _ => None,
    };
    set_errno(number.unwrap_or(EINVAL));
    failure(errors::SYSTEM, error.to_string())
}

/// The folder in which programs meet cannot be used.
fn no_place(error: &DomainError) -> Failure {
    set_errno(EINVAL);
    failure(errors::SYSTEM, format!("programs cannot meet where the configuration says: {error}"))
}

/// Ends what `initialize` began. What the program still has is removed with the last end.
pub(crate) fn terminate() {
    let mut library = library();
    library.initialized = library.initialized.saturating_sub(1);
    if library.initialized == 0 {
        library.config = None;
        let session = library.session.take();
        drop(library);
        if let Some(session) = session {
            session.end();
        }
    }
}

pub(crate) fn is_initialized() -> bool {
    library().initialized > 0
}

/// The fabric that this process is configured for.
pub(crate) fn config() -> Outcome<Configuration> {
    library().config.clone().ok_or_else(not_initialized)
}

/// The session, begun if need be.
pub(crate) fn open() -> Outcome<Arc<Session>> {
    let mut library = library();
    let config = library.config.clone().ok_or_else(not_initialized)?;
    if let Some(session) = &library.session {
        session.member.check()?;
        return Ok(Arc::clone(session));
    }
    let adapters = (config.fabric.adapters.clone(), config.fails_over);
    let member = Member::open(config)?;
    let objects = Mutex::new(Objects { live: Some(BTreeMap::new()), next: 0 });
    let (process, is_over) = (ThisProcess::get(), AtomicBool::new(false));
    let session = Arc::new(Session { process, member, adapters, is_over, objects, calls: Arc::default() });
    library.session = Some(Arc::clone(&session));
    Ok(session)
}

/// The session, if the process has joined the fabric.
pub(crate) fn current() -> Option<Arc<Session>> {
    library().session.clone()
}

fn library() -> MutexGuard<'static, Library> {
    lock(LIBRARY.get_or_init(Mutex::default))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cold]
pub(crate) fn not_initialized() -> Failure {
    failure(errors::NOT_INITIALIZED, "SCIInitialize was not called in this process, or SCITerminate was")
}

/// What a handle of a session that is over is refused with.
#[cold]
fn ended() -> Failure {
    if is_initialized() {
        Failure::invalid("the handle is from before SCITerminate")
    } else {
        not_initialized()
    }
}

impl Session {
    /// Fails in a child of fork, which has nothing of its parent's, and once the session is over.
    #[inline]
    pub(crate) fn check(&self) -> Outcome<()> {
        self.check_process()?;
        // Relaxed: a call that does not see it yet has begun before the end.
        if self.is_over.load(Ordering::Relaxed) { Err(ended()) } else { Ok(()) }
    }

    /// Whether [`Session::check`] would find nothing; it may also find nothing where this is `false`.
    #[inline(always)]
    pub(crate) fn goes_on(&self) -> bool {
        self.process.is_surely_this() && !self.is_over.load(Ordering::Relaxed)
    }

    /// Fails in a child of fork.
    #[inline]
    pub(crate) fn check_process(&self) -> Outcome<()> {
        if self.process.is_this() { Ok(()) } else { Err(not_initialized()) }
    }

    pub(crate) fn member(&self) -> &Member {
        &self.member
    }

    /// The adapter that a program's number means: any, where the configuration says so.
    ///
    /// # Errors
    /// No node has so many; this node has none of the number, and it would mean any.
    pub(crate) fn adapter(&self, number: u32) -> Outcome<AdapterNumber> {
        let number = AdapterNumber::new(number).map_err(refused)?;
        match &self.adapters {
            (_, false) => Ok(number),
            (adapters, true) if adapters.contains(&number) => Ok(AdapterNumber::ANY),
            (_, true) => Err(refused(Refusal::NoSuchAdapterno)),
        }
    }

    pub(crate) fn call(&self, call: Call) -> Outcome<Value> {
        self.member.call(call).map_err(refused)
    }

    /// Begins to call a callback with what `next` finds.
    ///
    /// # Errors
    /// The process is out of threads.
    pub(crate) fn begin_calls<E: Send + 'static>(
        self: &Arc<Self>,
        caller: &Caller,
        next: impl FnMut() -> Option<E> + Send + 'static,
        call: impl Fn(E) -> u32 + Clone + Send + 'static,
    ) -> Outcome<()> {
        self.calls.begin(caller, self, next, call)
    }

    /// A place for something that is about to be made.
    pub(crate) fn place(self: &Arc<Self>) -> Belongs {
        let mut objects = lock(&self.objects);
        objects.next += 1;
        Belongs { session: Arc::clone(self), number: objects.next }
    }

    /// Puts what was made into its place; whether the session still goes on.
    pub(crate) fn put(&self, number: u64, removal: Removal) -> bool {
        lock(&self.objects).live.as_mut().map(|live| live.insert(number, removal)).is_some()
    }

    fn end(self: Arc<Self>) {
        self.is_over.store(true, Ordering::Relaxed);
        let live = lock(&self.objects).live.take();
        // The last first: what was made of something is removed before it. What is in use by something older, as a segment by a transfer of
        // a queue, or by another thread that is about to let go of it, is tried again when the others are gone.
        let mut left: Vec<_> = live.into_iter().flat_map(BTreeMap::into_values).rev().collect();
        for _ in 0..ATTEMPTS {
            // Each time: a thread that has begun its call before the end may come to its attempt only now.
            self.member.cancel_attempts();
            left.retain(
                |remove| matches!(remove(), Err(failure) if failure.status.cast_unsigned() == errors::BUSY),
            );
            if left.is_empty() {
                break;
            }
            sleep(REST);
        }
        self.calls.end(&*self);
    }
}

impl Events for Session {
    fn wait(&self, look: &mut dyn FnMut() -> bool) {
        self.member.wait_until(look);
    }

    fn look_again(&self) {
        self.member.look_again();
    }
}

impl Belongs {
    pub(crate) fn session(&self) -> &Arc<Session> {
        &self.session
    }

    pub(crate) fn number(&self) -> u64 {
        self.number
    }
}

impl Drop for Belongs {
    fn drop(&mut self) {
        if let Some(live) = &mut lock(&self.session.objects).live {
            live.remove(&self.number);
        }
    }
}

//! Subscriptions: what C calls, and the thread of its callback.

use core::ffi::{c_int, c_void};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use beeline::{Answer, CallbackThread, Domain, Notification, Subscription};
use beeline_domain::Token;
use beeline_ffi::{
    EmptySpace, Failure, Handle, HandleVariable, Kind, Out, Outcome, Parcel, ParcelPointer, Pinned,
    SpacePointer, Text, edge,
};

use super::callback::{Context, numbers, without_unwinding};
use crate::admission::{self, beeline_token};
use crate::domain::{DOMAINS, beeline_rpc_domain};
use crate::window::status::{EMPTY, NO_SPACE, OK, REFUSED, duration, of_connect, of_end};

/// `beeline_subscription_told`.
type Told = unsafe extern "C-unwind" fn(context: *mut c_void, status: c_int, told: *const Parcel<'_>);

/// A subscription of C. Any thread may use it.
pub struct beeline_subscription {
    subscription: Subscription,
    /// What the notifier answered first, until C takes it.
    first: Mutex<Option<Answer>>,
    /// Taken, and given back because C had no room for it.
    held: Mutex<Option<Notification>>,
    callback: Mutex<Option<CallbackThread>>,
}

impl Kind for beeline_subscription {
    const NAME: &'static str = "subscription";
    const TAG: u8 = 0x37;
}

static SUBSCRIPTIONS: Pinned<beeline_subscription> = Pinned::new();

/// Locks what is never left half changed.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What a subscription is opened with.
struct Subscribing<'a> {
    domain: Domain,
    name: &'a str,
    request: &'a [u8],
    fds: Vec<OwnedFd>,
    timeout: Duration,
}

impl Subscribing<'_> {
    fn subscribe(self, token: Option<Token>) -> Outcome<Subscription> {
        let Subscribing { domain, name, request, fds, timeout } = self;
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        let subscribed = match token {
            None => domain.subscribe_with(name, request, &fds, timeout),
            Some(token) => domain.subscribe_proving(name, token.into(), request, &fds, timeout),
        };
        subscribed.map_err(|error| of_connect(&error))
    }
}

#[cold]
fn no_space(bytes: usize, fds: usize, and: &str) -> Failure {
    Failure::new(
        NO_SPACE,
        format!("{bytes} bytes and {fds} descriptors have no room in the memory for them; {and}"),
    )
}

impl beeline_subscription {
    fn first_answer(&self, space: EmptySpace<'_>) -> Outcome<c_int> {
        let mut first = lock(&self.first);
        let Some(Answer { payload, fds }) = first.take() else { return Ok(EMPTY) };
        match space.put(&payload, fds) {
            Ok(()) => Ok(OK),
            Err(fds) => {
                let failure = no_space(payload.len(), fds.len(), "it stays");
                *first = Some(Answer { payload, fds });
                Err(failure)
            }
        }
    }

    fn next(&self, timeout_ns: u64, space: EmptySpace<'_>) -> Outcome<c_int> {
        let held = lock(&self.held).take();
        let found = match held {
            Some(held) => Some(held),
            None => self.subscription.next_timeout(duration(timeout_ns)).map_err(|ended| of_end(&ended))?,
        };
        let Some(Notification { payload, fds, answers_before }) = found else { return Ok(EMPTY) };
        match space.put(&payload, fds) {
            Ok(()) => Ok(OK),
            Err(fds) => {
                let failure = no_space(payload.len(), fds.len(), "it stays the next");
                *lock(&self.held) = Some(Notification { payload, fds, answers_before });
                Err(failure)
            }
        }
    }

    fn deliver_to(&self, told: Told, context: Context) -> Outcome<c_int> {
        let mut callback = lock(&self.callback);
        if callback.is_some() {
            return Err(Failure::invalid("told: this subscription has a callback already"));
        }
        let thread = self.subscription.deliver_to(move |given| {
            let (status, notification) = match given {
                Ok(notification) => (OK, Some(notification)),
                Err(ended) => (of_end(&ended).status, None),
            };
            let (payload, shown) = notification
                .as_ref()
                .map_or_else(Default::default, |it| (it.payload.as_slice(), numbers(&it.fds)));
            let parcel = Parcel::of(payload, &shown);
            let parcel = if notification.is_some() { &raw const parcel } else { core::ptr::null() };
            without_unwinding(|| {
                // SAFETY: what C gave to `beeline_subscription_deliver_to` as a callback, with the context that goes with it; the
                // header has it be callable by a thread of the library until the subscription is closed, and the parcel is
                // there until it returns.
                unsafe { told(context.get(), status, parcel) }
            });
        });
        *callback = Some(thread.map_err(|error| {
            Failure::new(REFUSED, format!("no thread can be started for the callback: {error}"))
        })?);
        Ok(OK)
    }
}

fn open(
    domain: Handle<beeline_rpc_domain>,
    name: Text<'_>,
    request: ParcelPointer<'_>,
    timeout_ns: u64,
    subscribe: impl FnOnce(Subscribing<'_>) -> Outcome<Subscription>,
) -> Outcome<beeline_subscription> {
    let domain = DOMAINS.get(domain)?;
    let (name, (request, fds)) = (name.read("name")?, request.read("request")?);
    let (domain, timeout) = domain.facade_within(duration(timeout_ns))?;
    let mut opened = subscribe(Subscribing { domain, name, request, fds, timeout })?;
    let fds = opened.take_fds();
    let first = Answer { payload: opened.first_answer().payload.clone(), fds };
    Ok(beeline_subscription {
        subscription: opened,
        first: Mutex::new(Some(first)),
        held: Mutex::default(),
        callback: Mutex::default(),
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_subscription_open(
    domain: Handle<beeline_rpc_domain>,
    name: Text<'_>,
    request: ParcelPointer<'_>,
    timeout_ns: u64,
    subscription: Out<'_, Handle<beeline_subscription>>,
) -> c_int {
    edge("beeline_subscription_open", || {
        subscription.put(Handle::NULL, "subscription")?;
        let new = open(domain, name, request, timeout_ns, |by| by.subscribe(None))?;
        subscription.put(SUBSCRIPTIONS.insert(new)?, "subscription")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_subscription_open_proving(
    domain: Handle<beeline_rpc_domain>,
    name: Text<'_>,
    token: Handle<beeline_token>,
    request: ParcelPointer<'_>,
    timeout_ns: u64,
    subscription: Out<'_, Handle<beeline_subscription>>,
) -> c_int {
    edge("beeline_subscription_open_proving", || {
        subscription.put(Handle::NULL, "subscription")?;
        let new =
            open(domain, name, request, timeout_ns, |by| by.subscribe(Some(admission::use_up(token)?)))?;
        subscription.put(SUBSCRIPTIONS.insert(new)?, "subscription")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_subscription_close(subscription: HandleVariable<'_, beeline_subscription>) -> c_int {
    edge("beeline_subscription_close", || {
        SUBSCRIPTIONS.close(&subscription, |closed| {
            let thread = lock(&closed.callback).take();
            if let Some(thread) = &thread {
                // First, so that the callback is not told of the end.
                thread.stop();
            }
            // Threads that wait in another function of it end, also the callback's, which the drop waits for.
            closed.subscription.unsubscribe();
            drop(thread);
        })?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_subscription_first_answer(
    subscription: Handle<beeline_subscription>,
    answer: SpacePointer<'_>,
) -> c_int {
    edge("beeline_subscription_first_answer", || {
        let space = answer.empty("answer")?;
        SUBSCRIPTIONS.with(subscription, |subscription| subscription.first_answer(space))?
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_subscription_next(
    subscription: Handle<beeline_subscription>,
    timeout_ns: u64,
    told: SpacePointer<'_>,
) -> c_int {
    edge("beeline_subscription_next", || {
        let space = told.empty("told")?;
        SUBSCRIPTIONS.with(subscription, |subscription| subscription.next(timeout_ns, space))?
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_subscription_descriptor(
    subscription: Handle<beeline_subscription>,
    descriptor: Out<'_, c_int>,
) -> c_int {
    edge("beeline_subscription_descriptor", || {
        descriptor.put(-1, "descriptor")?;
        let own = SUBSCRIPTIONS.with(subscription, |it| it.subscription.as_fd().as_raw_fd())?;
        descriptor.put_if_wanted(own);
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_subscription_call(
    subscription: Handle<beeline_subscription>,
    request: ParcelPointer<'_>,
    timeout_ns: u64,
    answer: SpacePointer<'_>,
) -> c_int {
    edge("beeline_subscription_call", || {
        let space = answer.empty("answer")?;
        let (request, fds) = request.read("request")?;
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        let answered = SUBSCRIPTIONS
            .with(subscription, |it| it.subscription.call_timeout(request, &fds, duration(timeout_ns)))?;
        let Answer { payload, fds } = answered.map_err(|error| of_connect(&error))?;
        match space.put(&payload, fds) {
            Ok(()) => Ok(OK),
            Err(fds) => Err(no_space(payload.len(), fds.len(), "the answer is dropped")),
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_subscription_deliver_to(
    subscription: Handle<beeline_subscription>,
    told: Option<Told>,
    context: *mut c_void,
) -> c_int {
    edge("beeline_subscription_deliver_to", || {
        SUBSCRIPTIONS.with(subscription, |subscription| {
            let told = told.ok_or_else(|| Failure::invalid("told is NULL"))?;
            subscription.deliver_to(told, Context(context))
        })?
    })
}

//! Notifiers: what C calls, and its callback for requests.

use core::ffi::{c_int, c_void};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::Arc;

use beeline::{Answer, Notified, Notifier, NotifierEvent, NotifierOptions, NotifyError, Subscriber};
use beeline_ffi::{
    Array, Failure, Handle, HandleVariable, Kind, MAX_FDS, Options, OptionsOfC, Out, Outcome, Parcel,
    ParcelPointer, Shared, Space, Text, duplicate_all, edge,
};

use super::answering::Answering;
use super::callback::{Context, numbers, without_unwinding};
use crate::admission::{self, beeline_admissions};
use crate::domain::{DOMAINS, beeline_rpc_domain};
use crate::window::status::{EMPTY, FULL, OK, duration, of_notify, of_offer};

/// `BEELINE_MAX_ANSWER_BYTES`.
const MAX_ANSWER_BYTES: usize = 65_000;

/// `beeline_notifier_answer`.
type AnswerOfC = unsafe extern "C-unwind" fn(
    context: *mut c_void,
    subscriber: u64,
    request: *const Parcel<'_>,
    answer: *mut Space,
) -> c_int;

/// A notifier of C. Any thread may use it.
pub struct beeline_notifier {
    notifier: Notifier,
    answering: Arc<Answering>,
}

impl Kind for beeline_notifier {
    const NAME: &'static str = "notifier";
    const TAG: u8 = 0x35;
}

static NOTIFIERS: Shared<beeline_notifier> = Shared::new();

impl beeline_notifier {
    fn subscriber(&self, number: u64) -> Outcome<Subscriber> {
        self.notifier.subscriber(number).ok_or_else(|| of_notify(&NotifyError::Gone))
    }
}

/// `struct beeline_notifier_options`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct beeline_notifier_options<'a> {
    size: usize,
    max_subscribers: usize,
    allowed_uids: Array<'a, u32>,
    allowed_uid_count: usize,
    admissions: Handle<beeline_admissions>,
}

const _: () = assert!(size_of::<beeline_notifier_options<'_>>() == 40);

// SAFETY: `#[repr(C)]` above; integers and pointers, the first the size.
unsafe impl OptionsOfC for beeline_notifier_options<'_> {
    const FIRST_BYTES: usize = 32;
}

/// `struct beeline_notifier_event`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct beeline_notifier_event {
    subscriber: u64,
    kind: u32,
    pid: u32,
    uid: u32,
    reserved: u32,
}

fn options(given: &Options<'_, beeline_notifier_options<'_>>) -> Outcome<NotifierOptions> {
    let Some(given) = given.read()? else { return Ok(NotifierOptions::new()) };
    let uids = given.allowed_uids.read(given.allowed_uid_count, 65_536, "options.allowed_uids")?;
    let mut options = NotifierOptions::new().allowed_uids(uids.iter().copied());
    if let Some(admissions) = admission::admissions(given.admissions)? {
        options = options.admissions(&admissions.into());
    }
    Ok(match given.max_subscribers {
        0 => options,
        subscribers => options.max_subscribers(subscribers),
    })
}

/// What C answers to a request, or its reason for a refusal. What it says that it has put into the memory is checked.
fn answer(
    of_c: (AnswerOfC, Context),
    answering: &Answering,
    subscriber: u64,
    request: &[u8],
    fds: &[OwnedFd],
) -> Result<Answer, String> {
    let (mut bytes, mut given) = (vec![0; MAX_ANSWER_BYTES], [-1; MAX_FDS]);
    let shown = numbers(fds);
    let parcel = Parcel::of(request, &shown);
    let mut space = Space::over(&mut bytes, &mut given);
    let (call, context) = of_c;
    let refused = answering.run(|| {
        // SAFETY: what C gave to `beeline_notifier_offer` as a callback, with the context that goes with it; the header has it be
        // callable by any thread until the notifier is closed, which waits for this, and both structs are there until it returns.
        without_unwinding(|| unsafe { call(context.get(), subscriber, &raw const parcel, &raw mut space) })
    });
    let refused = refused.ok_or("the notifier is closed")?;
    let (length, fd_count) = space.filled();
    if length > MAX_ANSWER_BYTES || fd_count > MAX_FDS {
        return Err(format!(
            "the notifier says that it has answered {length} bytes and {fd_count} descriptors"
        ));
    }
    if refused != 0 {
        return Err(String::from_utf8_lossy(&bytes[..length]).into_owned());
    }
    let fds = duplicate_all(&given[..fd_count], "answer").map_err(|failure| failure.why.clone())?;
    bytes.truncate(length);
    Ok(Answer { payload: bytes, fds })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_notifier_offer(
    domain: Handle<beeline_rpc_domain>,
    name: Text<'_>,
    given: Options<'_, beeline_notifier_options<'_>>,
    answer_of_c: Option<AnswerOfC>,
    context: *mut c_void,
    notifier: Out<'_, Handle<beeline_notifier>>,
) -> c_int {
    edge("beeline_notifier_offer", || {
        notifier.put(Handle::NULL, "notifier")?;
        let domain = DOMAINS.get(domain)?;
        let (name, options) = (name.read("name")?, options(&given)?);
        let domain = domain.facade()?;
        let context = Context(context);
        let answering = Arc::new(Answering::new());
        let gate = Arc::clone(&answering);
        let offered =
            domain.notifier_with(name, options, move |subscriber, request, fds| match answer_of_c {
                Some(call) => answer((call, context), &gate, subscriber.id().number(), request, &fds),
                None if request.is_empty() => Ok(Answer::default()),
                None => Err("this notifier answers nothing".to_owned()),
            });
        let offered = offered.map_err(|error| of_offer(&error))?;
        let new = beeline_notifier { notifier: offered, answering: Arc::clone(&answering) };
        // Somebody may have subscribed already.
        let handle = NOTIFIERS.insert(new).inspect_err(|_| answering.end())?;
        notifier.put(handle, "notifier")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_notifier_close(notifier: HandleVariable<'_, beeline_notifier>) -> c_int {
    edge("beeline_notifier_close", || {
        if let Some(closed) = NOTIFIERS.close(&notifier)? {
            let answering = Arc::clone(&closed.answering);
            // First, so that subscribers are told of the end and not refused.
            drop(closed);
            answering.end();
        }
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_notifier_next_event(
    notifier: Handle<beeline_notifier>,
    timeout_ns: u64,
    event: Out<'_, beeline_notifier_event>,
) -> c_int {
    edge("beeline_notifier_next_event", || {
        event.check("event")?;
        let notifier = NOTIFIERS.get(notifier)?;
        let Some(found) = notifier.notifier.event_timeout(duration(timeout_ns)) else { return Ok(EMPTY) };
        let kind = match &found {
            NotifierEvent::Joined(_) => 0,
            NotifierEvent::HasRoom(_) => 1,
            NotifierEvent::Left(_) => 2,
            _ => return Err(Failure::new(beeline_ffi::status::INTERNAL, "an event without a number")),
        };
        let of = found.subscriber();
        let (subscriber, pid, uid) = (of.id().number(), of.pid().unwrap_or(0), of.uid());
        event.put(beeline_notifier_event { subscriber, kind, pid, uid, reserved: 0 }, "event")?;
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_notifier_descriptor(
    notifier: Handle<beeline_notifier>,
    descriptor: Out<'_, c_int>,
) -> c_int {
    edge("beeline_notifier_descriptor", || {
        descriptor.put(-1, "descriptor")?;
        descriptor.put_if_wanted(NOTIFIERS.get(notifier)?.notifier.as_fd().as_raw_fd());
        Ok(OK)
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_notifier_notify(
    notifier: Handle<beeline_notifier>,
    subscriber: u64,
    told: ParcelPointer<'_>,
) -> c_int {
    edge("beeline_notifier_notify", || {
        let subscriber = NOTIFIERS.get(notifier)?.subscriber(subscriber)?;
        let (bytes, fds) = told.read("told")?;
        let fds: Vec<_> = fds.iter().map(AsFd::as_fd).collect();
        match subscriber.notify(bytes, &fds).map_err(|error| of_notify(&error))? {
            Notified::Accepted => Ok(OK),
            Notified::WouldBlock => Ok(FULL),
        }
    })
}

#[unsafe(no_mangle)]
extern "C" fn beeline_notifier_disconnect(notifier: Handle<beeline_notifier>, subscriber: u64) -> c_int {
    edge("beeline_notifier_disconnect", || {
        let subscriber = NOTIFIERS.get(notifier)?.subscriber(subscriber)?;
        if subscriber.is_gone() {
            return Err(of_notify(&NotifyError::Gone));
        }
        subscriber.disconnect();
        Ok(OK)
    })
}

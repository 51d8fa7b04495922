//! SCILib: queues of messages between two processes (`scilib.h`). Its functions give their code as they return, and have names of their own
//! kind.

use core::time::Duration;
use std::time::Instant;

use beeline_fabric::{Refusal, SegmentId};
use beeline_fabric_process::{MessageQueue, QueueConfig, Received, Sent};
use beeline_ffi::{Bytes, Failure, Handle, HandleVariable, Kind, Memory, Out, Outcome, edge_or};

use crate::constants::{
    MSG_QUEUE_LIB_IDENTIFIER_MASK, SCIL_FLAG_ERROR_CHECK_DATA, SCIL_FLAG_ERROR_CHECK_PROT,
    SCIL_FLAG_MSG_FLUSH, SCIL_FLAG_SEND_RECEIVE_PAIRS_ONLY,
};
use crate::edge::{code_of, failure, refused};
use crate::errors;
use crate::flags::Flags;
use crate::handles::{Object, Table};
use crate::node::{node_id, timeout_nanos};
use crate::session::{self, Belongs};

/// `sci_msq_queue_t`.
pub(crate) struct Queue {
    belongs: Belongs,
    ends: MessageQueue,
    /// Of the longest message.
    max_message_bytes: u32,
}

impl Kind for Queue {
    const NAME: &'static str = "sci_msq_queue_t";
    const TAG: u8 = 0x65;
}

impl Object for Queue {
    fn belongs(&self) -> &Belongs {
        &self.belongs
    }
}

static QUEUES: Table<Queue> = Table::new();

/// Both do no more here than without: a receive takes the bytes of any messages.
const CREATE: Flags = Flags { done: SCIL_FLAG_SEND_RECEIVE_PAIRS_ONLY, not_done: 0 };
const CHECKS: u32 = SCIL_FLAG_ERROR_CHECK_DATA | SCIL_FLAG_ERROR_CHECK_PROT | SCIL_FLAG_MSG_FLUSH;
const SEND: Flags = Flags { done: CHECKS, not_done: 0 };
/// The other end's words are checked in any case.
const RECEIVE: Flags = Flags { done: SCIL_FLAG_ERROR_CHECK_PROT, not_done: 0 };

/// How long a queue is held that is being opened: whoever removes it waits as long.
const SLICE: Duration = Duration::from_millis(20);

/// The code of a function that returns it.
fn coded(name: &str, body: impl FnOnce() -> Outcome<()>) -> u32 {
    edge_or(name, code_of, || body().map(|()| errors::OK))
}

pub(crate) fn initialize(flags: u32) -> u32 {
    coded("SCILInit", || {
        Flags::NONE.check(flags)?;
        session::initialize()
    })
}

pub(crate) fn destroy(flags: u32) -> u32 {
    coded("SCILDestroy", || {
        Flags::NONE.check(flags)?;
        if !session::is_initialized() {
            return Err(session::not_initialized());
        }
        session::terminate();
        Ok(())
    })
}

#[expect(clippy::too_many_arguments, reason = "the signature of SCILib")]
pub(crate) fn create(
    queue: HandleVariable<'_, Queue>,
    adapter: u32,
    node: u32,
    local: u32,
    remote: u32,
    max_messages: u32,
    max_message_bytes: u32,
    timeout: u32,
    flags: u32,
) -> u32 {
    // SCILConnectMsgQueue() is the same function.
    coded("SCILCreateMsgQueue or SCILConnectMsgQueue", || {
        queue.check("msq")?;
        if let Some(held) = queue.held() {
            QUEUES.with(held, |_| CREATE.check(flags))?;
            return open(held, timeout);
        }
        CREATE.check(flags)?;
        let session = session::open()?;
        let config = QueueConfig {
            node: node_id(node)?,
            adapter: session.adapter(adapter)?,
            local: segment_id(local)?,
            remote: segment_id(remote)?,
            max_messages,
            max_message_bytes,
        };
        let ends = session.member().message_queue(config).map_err(|refusal| match refusal {
            Refusal::IllegalParameter => Failure::invalid(format!(
                "maxMsgCount is {max_messages} and maxMsgSize {max_message_bytes}, and each is at least 1"
            )),
            Refusal::Nospc => {
                let why = format!("{max_messages} messages of {max_message_bytes} bytes are more than 1 GiB");
                failure(errors::NOSPC, why)
            }
            other => refused(other),
        })?;
        let made = QUEUES.make(&session, |belongs| Queue { belongs, ends, max_message_bytes }, remove)?;
        match open(made, timeout) {
            Err(failure) if is_for_good(failure.status.cast_unsigned()) => {
                // It is gone already if the library was ended meanwhile.
                let _gone = remove(made);
                Err(failure)
            }
            opened => {
                queue.put(made);
                opened
            }
        }
    })
}

/// Whether a queue is not kept to be opened again: nothing that another process does makes it better.
fn is_for_good(code: u32) -> bool {
    [
        errors::SEGMENTID_USED,
        errors::NO_SUCH_ADAPTERNO,
        errors::NO_SUCH_NODEID,
        errors::NOSPC,
        errors::SYSTEM,
        errors::MAX_ENTRIES,
        errors::ILLEGAL_PARAMETER,
        errors::NOT_INITIALIZED,
        errors::CANCELLED,
    ]
    .contains(&code)
}

/// Numbers of queues are those of segments that programs leave to them.
fn segment_id(number: u32) -> Outcome<SegmentId> {
    if number & MSG_QUEUE_LIB_IDENTIFIER_MASK != 0 {
        let why = format!("the number {number:#x} of a queue has the bit {MSG_QUEUE_LIB_IDENTIFIER_MASK:#x}");
        return Err(failure(errors::ILLEGAL_PARAMETER, why));
    }
    Ok(SegmentId(number | MSG_QUEUE_LIB_IDENTIFIER_MASK))
}

/// Opens a queue within a time, and lets go of it in between. Without a time it is tried once, and the reason is given.
fn open(queue: Handle<Queue>, timeout: u32) -> Outcome<()> {
    let end = timeout_nanos(timeout).map(|nanos| Instant::now() + Duration::from_nanos(nanos));
    let mut reason = None;
    loop {
        let left = end.map_or(SLICE, |end| end.saturating_duration_since(Instant::now()).min(SLICE));
        if let Some(reason) = reason.filter(|_| left.is_zero()) {
            return Err(refused(reason));
        }
        let opened = QUEUES.with(queue, |queue| Ok(queue.ends.open(left))).map_err(|failure| {
            // It was there before: somebody has removed it, or ended the library.
            if reason.is_some() { cancelled() } else { failure }
        });
        match opened? {
            Err(refusal)
                if timeout != 0 && (refusal.is_timeout() || refusal == Refusal::ConnectionRefused) =>
            {
                reason = Some(refusal);
            }
            opened => return opened.map_err(refused),
        }
    }
}

#[cold]
fn cancelled() -> Failure {
    failure(errors::CANCELLED, "the queue was removed while this waited")
}

pub(crate) fn send(
    queue: Handle<Queue>,
    message: Bytes<'_>,
    bytes: u32,
    free: Out<'_, u32>,
    flags: u32,
) -> u32 {
    coded("SCILSendMsg", || {
        QUEUES.with(queue, |queue| {
            SEND.check(flags)?;
            let message = message.read(bytes as usize, "msg")?;
            let sent =
                if flags & CHECKS == 0 { queue.ends.send(message) } else { queue.ends.send_checked(message) };
            let sent = sent.map_err(|refusal| match refusal {
                Refusal::IllegalParameter => {
                    let most = queue.max_message_bytes;
                    Failure::invalid(format!(
                        "the message has {bytes} bytes, and those of the queue {most} at most"
                    ))
                }
                other => refused(other),
            })?;
            free.put_if_wanted(u32::try_from(queue.ends.free_bytes()).unwrap_or(u32::MAX));
            match sent {
                Sent::Sent => Ok(()),
                Sent::Full => Err(failure(errors::EWOULD_BLOCK, "the queue has no room for the message")),
            }
        })
    })
}

pub(crate) fn receive(
    queue: Handle<Queue>,
    into: Memory<'_>,
    bytes: u32,
    left: Out<'_, u32>,
    flags: u32,
) -> u32 {
    coded("SCILReceiveMsg", || {
        QUEUES.with(queue, |queue| {
            RECEIVE.check(flags)?;
            let received = queue.ends.receive(into.fill(bytes as usize, "msg")?).map_err(refused)?;
            left.put_if_wanted(u32::try_from(queue.ends.kept_bytes()).unwrap_or(u32::MAX));
            match received {
                Received::All => Ok(()),
                Received::TooFew => Err(failure(errors::EWOULD_BLOCK, "so many bytes have not come")),
            }
        })
    })
}

pub(crate) fn remove_queue(queue: HandleVariable<'_, Queue>, flags: u32) -> u32 {
    coded("SCILRemoveMsgQueue or SCILDisconnectMsgQueue", || {
        queue.check("msq")?;
        let held = queue.held().unwrap_or(Handle::NULL);
        QUEUES.with(held, |_| Flags::NONE.check(flags))?;
        remove(held)?;
        queue.clear();
        Ok(())
    })
}

fn remove(queue: Handle<Queue>) -> Outcome<()> {
    QUEUES.remove(queue).map(drop)
}

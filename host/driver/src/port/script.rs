//! The control path as a script: register writes and reads that leave one after the other, none of which blocks.
//!
//! A link may refuse a write for now and answers a read by and by; a device may take its time to start or stop a
//! queue. So every change of configuration is a list of steps here, and [`Script::poll`] takes as many as it can. A
//! step that waits too long fails the operation it belongs to; the others go on. Time comes from the caller, so that
//! virtual time works too. Control path only: it may allocate.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use beeline_contract_link::{Link, RegisterRead};
use beeline_spec::regs;

use crate::error::PortError;
use crate::port::status::QueueStatus;

/// Names an operation of a port.
pub(crate) type Ticket = u64;

/// One step of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    /// Post a register write.
    Write { offset: u32, value: u64 },
    /// Read a register and keep its value as the operation's outcome.
    Read { offset: u32, what: &'static str },
    /// Read a register until the bits of `mask` are `value`. `fatal` is for queue status registers only: the operation
    /// fails at once when any of these bits is set.
    Until { offset: u32, mask: u64, value: u64, fatal: u64, what: &'static str },
    /// Read a queue's window size; fail unless it is what the link gave.
    WindowLines { queue: u32, offset: u32, lines: u32 },
}

impl Step {
    /// The register it concerns, and what the device is asked to do, for the error that says that it did not.
    fn about(self) -> (u32, &'static str) {
        match self {
            Step::Write { offset, .. } => (offset, "take a register write"),
            Step::Read { offset, what } | Step::Until { offset, what, .. } => (offset, what),
            Step::WindowLines { offset, .. } => (offset, "tell the size of a window"),
        }
    }
}

#[derive(Debug)]
struct Operation {
    ticket: Ticket,
    steps: VecDeque<Step>,
    last: Option<u64>,
}

/// How an operation went: the last value read (0 if none was), or why it failed.
pub(crate) type Outcome = Result<u64, PortError>;

/// Operations that wait for their turn, the one under way, and the results nobody has taken yet.
#[derive(Debug)]
pub(crate) struct Script {
    operations: VecDeque<Operation>,
    reading: Option<RegisterRead>,
    /// Time at which the current step was first tried.
    since_ns: Option<u64>,
    next_ticket: Ticket,
    outcomes: Vec<(Ticket, Outcome)>,
    timeout_ns: u64,
}

impl Script {
    /// An empty script whose steps may take `timeout_ns` each.
    pub(crate) fn new(timeout_ns: u64) -> Self {
        Script {
            operations: VecDeque::new(),
            reading: None,
            since_ns: None,
            next_ticket: 0,
            outcomes: Vec::new(),
            timeout_ns,
        }
    }

    /// Appends an operation.
    pub(crate) fn push(&mut self, steps: impl IntoIterator<Item = Step>) -> Ticket {
        let ticket = self.next_ticket;
        self.next_ticket += 1;
        self.operations.push_back(Operation { ticket, steps: steps.into_iter().collect(), last: None });
        ticket
    }

    /// Whether nothing is under way.
    pub(crate) fn is_idle(&self) -> bool {
        self.operations.is_empty()
    }

    /// The outcome of an operation; `None` while it is under way.
    pub(crate) fn take(&mut self, ticket: Ticket) -> Option<Outcome> {
        if let Some(at) = self.outcomes.iter().position(|(t, _)| *t == ticket) {
            return Some(self.outcomes.swap_remove(at).1);
        }
        let waiting = self.operations.iter().any(|o| o.ticket == ticket);
        if waiting { None } else { Some(Err(PortError::NoSuchOperation { ticket })) }
    }

    /// Ends every operation with this error.
    pub(crate) fn fail_all(&mut self, error: &PortError) {
        self.reading = None;
        self.since_ns = None;
        self.outcomes.extend(self.operations.drain(..).map(|o| (o.ticket, Err(error.clone()))));
    }

    /// Takes as many steps as the link lets it, at most each once. A link that fails, fails every operation.
    pub(crate) fn poll(&mut self, link: &mut impl Link, now_ns: u64) -> Result<(), PortError> {
        let result = self.run(link, now_ns);
        if let Err(error) = &result {
            self.fail_all(error);
        }
        result
    }

    fn run(&mut self, link: &mut impl Link, now_ns: u64) -> Result<(), PortError> {
        while let Some(operation) = self.operations.front_mut() {
            let Some(&step) = operation.steps.front() else {
                let outcome = Ok(operation.last.unwrap_or(0));
                self.end(outcome);
                continue;
            };
            let since_ns = *self.since_ns.get_or_insert(now_ns);
            let waited_ns = now_ns.saturating_sub(since_ns);
            match advance(step, link, &mut self.reading, &mut operation.last)? {
                Advance::Done => {
                    operation.steps.pop_front();
                    self.since_ns = None;
                }
                Advance::Fatal(error) => self.end(Err(error)),
                Advance::Wait if waited_ns < self.timeout_ns => return Ok(()),
                Advance::Wait => {
                    let (offset, what) = step.about();
                    let last = operation.last;
                    // An answer that comes after all belongs to nobody; the link forgets it with the tag's next use.
                    self.reading = None;
                    self.end(Err(PortError::NoAnswer { what, offset, last, waited_ns }));
                }
            }
        }
        Ok(())
    }

    fn end(&mut self, outcome: Outcome) {
        if let Some(operation) = self.operations.pop_front() {
            self.outcomes.push((operation.ticket, outcome));
        }
        self.since_ns = None;
    }
}

enum Advance {
    Done,
    Wait,
    Fatal(PortError),
}

fn advance(
    step: Step,
    link: &mut impl Link,
    reading: &mut Option<RegisterRead>,
    last: &mut Option<u64>,
) -> Result<Advance, PortError> {
    let (offset, _) = step.about();
    if let Step::Write { value, .. } = step {
        return Ok(if link.write_register(offset, value)? { Advance::Done } else { Advance::Wait });
    }
    if reading.is_none() {
        *reading = link.start_read(offset)?;
    }
    let Some(read) = *reading else { return Ok(Advance::Wait) };
    let Some(found) = link.poll_read(read)? else { return Ok(Advance::Wait) };
    *reading = None;
    *last = Some(found);
    Ok(match step {
        Step::Until { fatal, .. } if found & fatal != 0 => Advance::Fatal(PortError::FailedAtStart {
            queue: offset.saturating_sub(regs::QUEUE) / regs::QUEUE_STRIDE,
            status: QueueStatus::from_register(found),
        }),
        Step::WindowLines { queue, lines, .. } if found != u64::from(lines) => {
            Advance::Fatal(PortError::WindowSize { queue, register: found, window: lines })
        }
        // Another read, in the next poll: the device may take its time, and this poll must end.
        Step::Until { mask, value, .. } if found & mask != value => Advance::Wait,
        _ => Advance::Done,
    })
}

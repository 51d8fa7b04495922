//! The side that answers: a process of its own, which does so many trips and then waits for its next job.

use std::sync::mpsc::{Receiver, channel};

use beeline_bench_echo::{EchoServer, Failure};
use beeline_domain::CallbackThread;
use beeline_session::PrivateDomain;

use super::end::{End, send_one, take};
use super::meet::Meeting;
use super::role::{BYTES, Role, Waiting, Work};

/// A side that answers.
pub(crate) struct Answering {
    role: Role,
    state: State,
    domain: PrivateDomain,
}

enum State {
    /// The other side has not been met.
    Alone(Option<Box<Meeting>>),
    Met(Box<dyn End>),
    /// A callback has the end; what it says of each.
    Called {
        said: Receiver<Result<(), String>>,
        _thread: CallbackThread,
    },
}

impl Answering {
    /// In a domain of its own, where the side that asks connects.
    pub(crate) fn offer(role: Role) -> Result<Self, Failure> {
        let domain = PrivateDomain::new()?;
        let meet = Meeting::answering(domain.config(), role)?;
        Ok(Answering { role, state: State::Alone(Some(Box::new(meet))), domain })
    }

    /// Returns the address that the side that asks connects to.
    pub(crate) fn address(&self) -> &str {
        self.domain.name()
    }
}

impl EchoServer for Answering {
    fn begin(&mut self, _: usize) -> Result<(), Failure> {
        let State::Alone(meet) = &mut self.state else { return Ok(()) };
        let meet = meet.take().ok_or("a side that failed to meet the other one")?;
        self.state = if self.role.waiting == Waiting::Callback {
            let (echoed, said) = channel();
            State::Called { said, _thread: meet.callback(echoed)? }
        } else {
            State::Met(meet.end()?)
        };
        Ok(())
    }

    fn serve(&mut self, trips: u64) -> Result<(), Failure> {
        let (mut bytes, mut left) = ([0; BYTES], trips);
        match (&mut self.state, self.role.work) {
            (State::Alone(_), _) => Err("it serves nobody".into()),
            (State::Called { said, .. }, _) => (0..trips).try_for_each(|_| Ok(said.recv()??)),
            (State::Met(end), Work::Echo) => (0..trips).try_for_each(|_| {
                take(&mut **end, self.role.waiting, &mut bytes)?;
                send_one(&mut **end, &bytes)
            }),
            (State::Met(end), Work::Take) => {
                while left > 0 {
                    let taken = take(&mut **end, self.role.waiting, &mut bytes)?;
                    left = left.checked_sub(taken).ok_or("more than were sent")?;
                }
                send_one(&mut **end, &bytes)
            }
        }
    }
}

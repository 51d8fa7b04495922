//! This target is a client of calls, whose server may send any messages. Each call ends once, and what no server says ends
//! them all.
#![no_main]

use std::collections::{HashSet, VecDeque};
use std::time::Duration;

use arbitrary::Arbitrary;
use beeline_rpc::{CallId, Client, Deadline, Loss, Method, Started, Transport, WaitPolicy};
use beeline_window::Sent;
use libfuzzer_sys::fuzz_target;

/// A server that answers what the input says, with calls' own numbers now and then.
#[derive(Default)]
struct Scripted {
    coming: VecDeque<Vec<u8>>,
    current: Vec<u8>,
    /// First words of requests that were sent.
    asked: Vec<u64>,
    room: u32,
    is_lost: bool,
}

impl Transport for Scripted {
    type Message<'a> = &'a [u8];

    fn max_message_bytes(&self) -> usize {
        128
    }
    fn try_send(&mut self, head: &[u8], rest: &[u8]) -> Result<Sent, Loss> {
        assert!(head.len() + rest.len() <= 128);
        if self.room == 0 {
            return Ok(Sent::Full);
        }
        self.room -= 1;
        self.asked.push(u64::from_le_bytes(*head.first_chunk().expect("a request has a word")));
        Ok(Sent::Sent)
    }
    fn try_send_prefixed(&mut self, word: u64, bytes: &[u8]) -> Result<Sent, Loss> {
        let message = [&word.to_le_bytes()[..], bytes].concat();
        self.try_send(&message, &[])
    }
    fn poll(&mut self) -> Option<&[u8]> {
        self.current = self.coming.pop_front()?;
        Some(&self.current)
    }
    fn encode_deadline(&self, deadline: Deadline) -> u64 {
        deadline.as_ns()
    }
    fn cancel(&mut self, _number: u32, slot: usize) {
        assert!(slot < 8);
    }
    fn uncancel(&mut self, slot: usize) {
        assert!(slot < 8);
    }
    fn tend(&mut self) -> Result<(), Loss> {
        if std::mem::take(&mut self.is_lost) { Err(Loss::Died { pid: Some(1) }) } else { Ok(()) }
    }
    fn reconnect(&mut self) -> bool {
        self.coming.clear();
        self.asked.clear();
        true
    }
    fn prepare_sleep(&mut self) {}
    fn has_news(&mut self) -> bool {
        !self.coming.is_empty()
    }
    fn park(&mut self, _limit: Duration) {}
    fn cancel_sleep(&mut self) {}
}

#[derive(Arbitrary, Debug)]
enum Operation {
    Start {
        bytes: u8,
        deadline: bool,
    },
    Cancel(u8),
    /// An answer to some call that was asked: its number, these upper bits, these bytes.
    Answer {
        which: u8,
        upper: u32,
        payload: Vec<u8>,
    },
    Raw(Vec<u8>),
    Poll(u8),
    Room(u8),
    Lose,
}

fn take_steps(
    client: &mut Client<Scripted>,
    operations: Vec<Operation>,
    with: impl Fn(&mut Client<Scripted>, Vec<u8>),
) {
    let (mut begun, mut ids): (HashSet<CallId>, Vec<CallId>) = Default::default();
    for operation in operations {
        match operation {
            Operation::Start { bytes, deadline } => {
                let deadline = deadline.then(|| Deadline::after(Duration::ZERO));
                if let Ok(Started::Call(id)) = client.start(Method(1), &vec![7; bytes.into()], deadline) {
                    assert!(begun.insert(id), "an outstanding call's number again");
                    ids.push(id);
                }
            }
            Operation::Cancel(which) if !ids.is_empty() => {
                let id = ids[usize::from(which) % ids.len()];
                client.cancel(id);
            }
            Operation::Answer { which, upper, payload } => {
                let asked = &client.transport().asked;
                if !asked.is_empty() {
                    let word = asked[usize::from(which) % asked.len()] as u32;
                    let word = u64::from(word) | u64::from(upper) << 32;
                    with(client, [&word.to_le_bytes()[..], &payload].concat());
                }
            }
            Operation::Raw(message) => with(client, message),
            Operation::Poll(count) => {
                for _ in 0..count {
                    if let Some(completion) = client.poll() {
                        assert!(begun.remove(&completion.id), "a call ends once");
                        if let Ok(mut body) = completion.result {
                            assert_eq!(body.to_vec().len(), body.len());
                        }
                    }
                }
            }
            Operation::Room(room) => client.transport_mut().room += u32::from(room),
            Operation::Lose => client.transport_mut().is_lost = true,
            Operation::Cancel(_) => {}
        }
        assert!(client.outstanding() <= begun.len());
    }
}

fuzz_target!(|operations: Vec<Operation>| {
    let transport = Scripted { room: 8, ..Scripted::default() };
    let mut client = Client::over(transport, 8, WaitPolicy::SPIN);
    take_steps(&mut client, operations, |client, message| client.transport_mut().coming.push_back(message));
});

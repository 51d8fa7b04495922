//! Calls on message queues in lines. Queues have the names that a test gives them.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use beeline_fabric::{AdapterNumber, NodeId, Refusal, SegmentId};
use beeline_fabric_transfer::{MessageQueue, QueueConfig, Received};
use beeline_window::Sent;

use super::Member;
use super::random::Random;
use super::words::{number, timeout};

/// What a member has of message queues, by name.
#[derive(Default)]
pub struct Queues(HashMap<String, MessageQueue>);

impl Queues {
    /// Makes a call; `None` if it is none on queues.
    pub fn play(&mut self, member: &Member, words: &[&str]) -> Option<String> {
        Some(match *words {
            ["queue", name, node, local, remote, messages, bytes] => {
                let config = QueueConfig {
                    node: NodeId(number(node)),
                    adapter: AdapterNumber::new(0).unwrap(),
                    local: SegmentId(number(local)),
                    remote: SegmentId(number(remote)),
                    max_messages: number(messages),
                    max_message_bytes: number(bytes),
                };
                match member.message_queue(config) {
                    Ok(queue) => {
                        self.0.insert(name.to_owned(), queue);
                        "ok".to_owned()
                    }
                    Err(refusal) => format!("{refusal:?}"),
                }
            }
            ["queue-open", name, micros] => {
                let opened = self.0[name].open(timeout(micros).unwrap_or(Duration::MAX));
                opened.map_or_else(|refusal| format!("{refusal:?}"), |()| "ok".to_owned())
            }
            ["queue-send", name, text] => said(self.0[name].send(text.as_bytes())),
            ["queue-send-checked", name, text] => said(self.0[name].send_checked(text.as_bytes())),
            ["queue-send-bytes", name, bytes] => said(self.0[name].send(&vec![7; number(bytes)])),
            ["queue-receive", name, bytes] => self.receive(name, number(bytes)),
            ["queue-kept", name] => self.0[name].kept_bytes().to_string(),
            ["queue-stream", name, seed, bytes] => stream(&self.0[name], number(seed), number(bytes)),
            ["queue-remove", name] => self.0.remove(name).map_or("nothing", |_| "ok").to_owned(),
            _ => return None,
        })
    }

    fn receive(&self, name: &str, bytes: usize) -> String {
        let mut into = vec![b'?'; bytes];
        match self.0[name].receive(&mut into) {
            Ok(Received::All) => String::from_utf8(into).unwrap(),
            Ok(Received::TooFew) => {
                assert!(into.iter().all(|byte| *byte == b'?'), "what is too little is not looked at");
                "TooFew".to_owned()
            }
            Err(refusal) => format!("{refusal:?}"),
        }
    }
}

fn said(outcome: Result<Sent, Refusal>) -> String {
    match outcome {
        Ok(sent) => format!("{sent:?}"),
        Err(refusal) => format!("{refusal:?}"),
    }
}

/// The byte of a stream at a place. Zeros and words of ones are among them, and everything between.
fn byte_at(place: u64) -> u8 {
    let word = (place / 8).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56;
    if word < 64 { [0, 0xff][(word % 2) as usize] } else { (place.wrapping_mul(31) >> 3) as u8 ^ word as u8 }
}

/// Sends so many bytes in pieces of any size, and receives as many in others, until the other end has done the same or has gone.
fn stream(queue: &MessageQueue, seed: u64, bytes: u64) -> String {
    let mut random = Random::of(seed);
    let (mut sent, mut received) = (0, 0);
    let began = Instant::now();
    while sent < bytes || received < bytes {
        let size = (1 + random.below(300)).min(bytes - sent);
        let message: Vec<u8> = (sent..sent + size).map(byte_at).collect();
        let outcome = if random.below(8) == 0 { queue.send_checked(&message) } else { queue.send(&message) };
        match outcome {
            Ok(Sent::Sent) => sent += size,
            Ok(Sent::Full) => std::thread::yield_now(),
            Err(refusal) => return format!("{refusal:?}"),
        }
        let mut into = vec![0; (random.below(700) as usize).min((bytes - received) as usize)];
        match queue.receive(&mut into) {
            Ok(Received::All) => {
                let expected: Vec<u8> = (received..received + into.len() as u64).map(byte_at).collect();
                assert_eq!(into, expected, "from byte {received} on");
                received += into.len() as u64;
            }
            Ok(Received::TooFew) => {}
            Err(refusal) => return format!("{refusal:?}"),
        }
        assert!(began.elapsed() < Duration::from_secs(60), "{sent} sent, {received} received");
    }
    "all".to_owned()
}

//! Calls on data interrupts in lines. Interrupts and triggers have the names that a test gives them.
#![allow(dead_code, reason = "each kind of member uses its own part")]

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use beeline_fabric::{AdapterNumber, InterruptNumber, NodeId, Refusal};

use super::words::{number, timeout};
use super::{DataInterrupt, DataTrigger, Member, NotTaken, interrupt_options};

/// What a member has of data interrupts, by name.
#[derive(Default)]
pub struct Messages {
    own: HashMap<String, Arc<DataInterrupt>>,
    triggers: HashMap<String, DataTrigger>,
    /// The number of the next message of each sender, by the interrupt.
    next: HashMap<(String, u64), u64>,
}

fn said(outcome: Result<(), Refusal>) -> String {
    outcome.map_or_else(|refusal| format!("{refusal:?}"), |()| "ok".to_owned())
}

/// What a message of so many bytes is that is filled with a text.
pub fn message(text: &str, bytes: usize) -> Vec<u8> {
    text.bytes().cycle().take(bytes).collect()
}

/// A message that says who sends it, and how many it has sent before.
fn numbered(sender: u64, sent: u64) -> Vec<u8> {
    [sender, sent].map(u64::to_le_bytes).concat()
}

fn numbers_of(message: &[u8]) -> [u64; 2] {
    [0, 8].map(|at| u64::from_le_bytes(message[at..at + 8].try_into().unwrap()))
}

impl Messages {
    /// Makes a call; `None` if it is none on data interrupts.
    pub fn play(&mut self, member: &Member, words: &[&str]) -> Option<String> {
        Some(match *words {
            ["data-interrupt", name, ref rest @ ..] => self.create(member, name, rest),
            ["data-trigger-of", name, node, of, wait] => {
                let (node, of) = (NodeId(number(node)), InterruptNumber(number(of)));
                let adapter = AdapterNumber::new(0).unwrap();
                let connected = member.connect_data_interrupt(node, of, adapter, timeout(wait));
                said(connected.map(|trigger| drop(self.triggers.insert(name.to_owned(), trigger))))
            }
            ["trigger-data", name, text, bytes] => {
                said(self.triggers[name].trigger(&message(text, number(bytes))))
            }
            ["trigger-until-full", name, text, bytes] => {
                let message = message(text, number(bytes));
                let sent = (0..).take_while(|_| self.triggers[name].trigger(&message).is_ok()).count();
                format!("{sent} {}", said(self.triggers[name].trigger(&message)))
            }
            ["ping-data", trigger, own, rounds] => self.exchange((trigger, own), number(rounds), true),
            ["pong-data", trigger, own, rounds] => self.exchange((trigger, own), number(rounds), false),
            ["storm-data", name, sender, bytes] => self.storm(name, number(sender), number(bytes)),
            ["take-storm", name, sender, count] => self.take_storm(name, number(sender), number(count)),
            ["wait-data", name, bytes, wait] => self.wait(name, number(bytes), timeout(wait)),
            ["remove-interrupt", name] => said(self.own[name].remove()),
            ["untrigger", name] => self.triggers.remove(name).map_or("nothing", |_| "ok").to_owned(),
            _ => return None,
        })
    }

    pub fn own(&self, name: &str) -> &DataInterrupt {
        &self.own[name]
    }

    pub fn has_own(&self, name: &str) -> bool {
        self.own.contains_key(name)
    }

    pub fn has_trigger(&self, name: &str) -> bool {
        self.triggers.contains_key(name)
    }

    fn create(&mut self, member: &Member, name: &str, words: &[&str]) -> String {
        match member.create_data_interrupt(interrupt_options(words)) {
            Ok(own) => {
                let number = own.number().0;
                self.own.insert(name.to_owned(), Arc::new(own));
                format!("ok {number}")
            }
            Err(refusal) => format!("{refusal:?}"),
        }
    }

    /// Triggers and waits by turns.
    fn exchange(&self, (trigger, own): (&str, &str), rounds: usize, is_first: bool) -> String {
        let (trigger, own) = (&self.triggers[trigger], &self.own[own]);
        for round in 0..rounds {
            let mut buffer = [0; 8];
            let message = (round as u64).to_le_bytes();
            if is_first {
                trigger.trigger(&message).unwrap();
            }
            assert_eq!(own.wait(&mut buffer, None), Ok(8));
            assert_eq!(buffer, message);
            if !is_first {
                trigger.trigger(&message).unwrap();
            }
        }
        said(Ok(()))
    }

    /// Sends numbered messages until it is killed, as fast as they are taken.
    fn storm(&self, name: &str, sender: u64, bytes: usize) -> String {
        let mut sent = 0_u64;
        loop {
            let mut message = numbered(sender, sent);
            message.resize(bytes, sent as u8);
            match self.triggers[name].trigger(&message) {
                Ok(()) => sent += 1,
                Err(Refusal::Nospc) => std::thread::yield_now(),
                Err(refusal) => return format!("{refusal:?}"),
            }
        }
    }

    /// Takes numbered messages until so many of a sender have come. Those of each come in order, and none is left out.
    fn take_storm(&mut self, name: &str, of: u64, count: usize) -> String {
        let mut left = count;
        while left > 0 {
            let mut buffer = [0; 64];
            let bytes = match self.own[name].wait(&mut buffer, None) {
                Ok(bytes) => bytes,
                Err(refused) => return format!("{refused:?}"),
            };
            let [sender, sent] = numbers_of(&buffer[..bytes]);
            if let Some(expected) = self.next.insert((name.to_owned(), sender), sent + 1)
                && sent != expected
            {
                return format!("message {sent} of {sender}, and not {expected}");
            }
            left -= usize::from(sender == of);
        }
        said(Ok(()))
    }

    fn wait(&self, name: &str, bytes: usize, wait: Option<Duration>) -> String {
        let mut buffer = vec![0; bytes];
        match self.own[name].wait(&mut buffer, wait) {
            Ok(taken) => format!("{taken} {}", String::from_utf8_lossy(&buffer[..taken.min(8)])),
            Err(NotTaken::Overflow { bytes }) => format!("Overflow {bytes}"),
            Err(NotTaken::Refused(refusal)) => format!("{refusal:?}"),
        }
    }
}

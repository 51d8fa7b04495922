//! Calls on interrupts in lines. Interrupts and triggers have the names that a test gives them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use beeline_contract_memory::WaitPolicy;
use beeline_fabric::{AdapterNumber, InterruptNumber, NodeId, Refusal};
use beeline_fabric_process::{
    DataInterrupt, DataTrigger, FabricMember, Interrupt, InterruptOptions, NotTaken, Trigger,
};

use super::words::{number, timeout};

/// What a member has of interrupts, by name.
#[derive(Default)]
pub struct Interrupts {
    own: HashMap<String, Arc<Interrupt>>,
    own_data: HashMap<String, Arc<DataInterrupt>>,
    triggers: HashMap<String, Trigger>,
    data_triggers: HashMap<String, DataTrigger>,
}

/// Policies that a test sleeps at once with, or never.
pub fn sleeping() -> WaitPolicy {
    WaitPolicy::new().spins(0).yields(0).sleep(Some(Duration::from_secs(3600)))
}

fn said(outcome: Result<(), Refusal>) -> String {
    outcome.map_or_else(|refusal| format!("{refusal:?}"), |()| "ok".to_owned())
}

/// Options by words: a number or `auto`, then `counting`, `forgets`, `spin`.
fn options(words: &[&str]) -> InterruptOptions {
    InterruptOptions {
        number: words.first().filter(|word| **word != "auto").map(|word| InterruptNumber(number(word))),
        is_shared: words.contains(&"shared"),
        is_group: words.contains(&"group"),
        is_counting: words.contains(&"counting"),
        forgets: words.contains(&"forgets"),
        wait: if words.contains(&"spin") { WaitPolicy::SPIN } else { sleeping() },
    }
}

/// What a message of so many bytes is that is filled with a text.
pub fn message(text: &str, bytes: usize) -> Vec<u8> {
    text.bytes().cycle().take(bytes).collect()
}

impl Interrupts {
    /// Makes a call; `None` if it is none on interrupts.
    pub fn play(&mut self, member: &FabricMember, words: &[&str]) -> Option<String> {
        Some(match *words {
            ["interrupt", name, ref rest @ ..] => self.create(member, name, options(rest)),
            ["data-interrupt", name, ref rest @ ..] => self.create_data(member, name, options(rest)),
            ["trigger-of", name, node, of, wait] => {
                let (node, of) = (NodeId(number(node)), InterruptNumber(number(of)));
                self.connect(member, name, (node, of), timeout(wait))
            }
            ["data-trigger-of", name, node, of, wait] => {
                let (node, of) = (NodeId(number(node)), InterruptNumber(number(of)));
                self.connect_data(member, name, (node, of), timeout(wait))
            }
            ["trigger", name] => said(self.triggers[name].trigger()),
            ["trigger", name, times] => {
                said((0..number(times)).try_for_each(|_| self.triggers[name].trigger()))
            }
            ["trigger-without-calls", name, times] => self.trigger_without_calls(name, number(times)),
            ["trigger-data", name, text, bytes] => {
                said(self.data_triggers[name].trigger(&message(text, number(bytes))))
            }
            ["trigger-until-full", name, text, bytes] => {
                let message = message(text, number(bytes));
                let sent = (0..).take_while(|_| self.data_triggers[name].trigger(&message).is_ok()).count();
                format!("{sent} {}", said(self.data_triggers[name].trigger(&message)))
            }
            ["ping", trigger, own, rounds] => self.exchange((trigger, own), number(rounds), true),
            ["pong", trigger, own, rounds] => self.exchange((trigger, own), number(rounds), false),
            ["ping-data", trigger, own, rounds] => self.exchange_data((trigger, own), number(rounds), true),
            ["pong-data", trigger, own, rounds] => self.exchange_data((trigger, own), number(rounds), false),
            ["storm", name] => loop {
                self.triggers[name].trigger().unwrap();
            },
            ["storm-data", name, sender, bytes] => self.storm_data(name, number(sender), number(bytes)),
            ["wait", name, wait] => said(self.own[name].wait(timeout(wait))),
            ["wait-all", name] => {
                let taken = (0..).take_while(|_| self.own[name].wait(Some(Duration::ZERO)).is_ok()).count();
                format!("{taken}")
            }
            ["wait-forever", own, own_data] => loop {
                let _taken = self.own[own].wait(Some(Duration::from_micros(50)));
                let _taken = self.own_data[own_data].wait(&mut [0; 64], Some(Duration::from_micros(50)));
            },
            ["wait-data", name, bytes, wait] => self.wait_data(name, number(bytes), timeout(wait)),
            ["wait-twice-and-remove", name] => self.wait_twice_and_remove(name),
            ["remove-interrupt", name] => said(match self.own.get(name) {
                Some(own) => own.remove(),
                None => self.own_data[name].remove(),
            }),
            ["untrigger", name] => {
                let (plain, data) = (self.triggers.remove(name), self.data_triggers.remove(name));
                (if plain.is_some() || data.is_some() { "ok" } else { "nothing" }).to_owned()
            }
            _ => return None,
        })
    }

    fn create(&mut self, member: &FabricMember, name: &str, options: InterruptOptions) -> String {
        match member.create_interrupt(options) {
            Ok(own) => {
                let number = own.number().0;
                self.own.insert(name.to_owned(), Arc::new(own));
                format!("ok {number}")
            }
            Err(refusal) => format!("{refusal:?}"),
        }
    }

    fn create_data(&mut self, member: &FabricMember, name: &str, options: InterruptOptions) -> String {
        match member.create_data_interrupt(options) {
            Ok(own) => {
                let number = own.number().0;
                self.own_data.insert(name.to_owned(), Arc::new(own));
                format!("ok {number}")
            }
            Err(refusal) => format!("{refusal:?}"),
        }
    }

    fn connect(
        &mut self,
        member: &FabricMember,
        name: &str,
        (node, of): (NodeId, InterruptNumber),
        wait: Option<Duration>,
    ) -> String {
        let connected = member.connect_interrupt(node, of, AdapterNumber::new(0).unwrap(), wait);
        said(connected.map(|trigger| drop(self.triggers.insert(name.to_owned(), trigger))))
    }

    fn connect_data(
        &mut self,
        member: &FabricMember,
        name: &str,
        (node, of): (NodeId, InterruptNumber),
        wait: Option<Duration>,
    ) -> String {
        let connected = member.connect_data_interrupt(node, of, AdapterNumber::new(0).unwrap(), wait);
        said(connected.map(|trigger| drop(self.data_triggers.insert(name.to_owned(), trigger))))
    }

    /// Triggers in a mode in which the kernel kills who asks it for anything but to read and to write, and says so itself.
    fn trigger_without_calls(&self, name: &str, times: usize) -> ! {
        use rustix::thread::{SecureComputingMode, set_secure_computing_mode};
        let trigger = &self.triggers[name];
        set_secure_computing_mode(SecureComputingMode::Strict).unwrap();
        let is_done = (0..times).all(|_| trigger.trigger().is_ok());
        let said: &[u8] = if is_done { b"@ok\n" } else { b"@refused\n" };
        let _written = rustix::io::write(std::io::stdout(), said);
        loop {
            // To end takes a call, too. The test kills this process.
            std::hint::spin_loop();
        }
    }

    /// Triggers and waits by turns.
    fn exchange(&self, (trigger, own): (&str, &str), rounds: usize, is_first: bool) -> String {
        let (trigger, own) = (&self.triggers[trigger], &self.own[own]);
        for _ in 0..rounds {
            let done = if is_first {
                trigger.trigger().and_then(|()| own.wait(None))
            } else {
                own.wait(None).and_then(|()| trigger.trigger())
            };
            if done.is_err() {
                return said(done);
            }
        }
        said(Ok(()))
    }

    fn exchange_data(&self, (trigger, own): (&str, &str), rounds: usize, is_first: bool) -> String {
        let (trigger, own) = (&self.data_triggers[trigger], &self.own_data[own]);
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
    fn storm_data(&self, name: &str, sender: u64, bytes: usize) -> String {
        let mut sent = 0_u64;
        loop {
            let mut message = [sender.to_le_bytes(), sent.to_le_bytes()].concat();
            message.resize(bytes, sent as u8);
            match self.data_triggers[name].trigger(&message) {
                Ok(()) => sent += 1,
                Err(Refusal::Nospc) => std::thread::yield_now(),
                Err(refusal) => return format!("{refusal:?}"),
            }
        }
    }

    fn wait_data(&self, name: &str, bytes: usize, wait: Option<Duration>) -> String {
        let mut buffer = vec![0; bytes];
        match self.own_data[name].wait(&mut buffer, wait) {
            Ok(taken) => format!("{taken} {}", String::from_utf8_lossy(&buffer[..taken.min(8)])),
            Err(NotTaken::Overflow { bytes }) => format!("Overflow {bytes}"),
            Err(NotTaken::Refused(refusal)) => format!("{refusal:?}"),
        }
    }

    /// Removes an interrupt while two other threads wait for it.
    fn wait_twice_and_remove(&self, name: &str) -> String {
        let own = &self.own[name];
        let begun = Arc::new(std::sync::Barrier::new(3));
        let waits = [(), ()].map(|()| {
            let (own, begun) = (Arc::clone(own), Arc::clone(&begun));
            std::thread::spawn(move || {
                begun.wait();
                own.wait(None)
            })
        });
        begun.wait();
        // They may wait or not yet; both end in the same way but for the code.
        std::thread::sleep(Duration::from_millis(20));
        let removed = said(own.remove());
        let ended = waits.map(|wait| said(wait.join().unwrap()));
        format!("{removed} {} {} {}", ended[0], ended[1], said(own.wait(None)))
    }
}

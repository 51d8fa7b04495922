//! Calls on interrupts in lines. Interrupts and triggers have the names that a test gives them.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use beeline_contract_memory::WaitPolicy;
use beeline_fabric::{AdapterNumber, InterruptNumber, NodeId, Refusal};
use beeline_fabric_process::{FabricMember, Interrupt, InterruptOptions, Trigger};

use super::messages::Messages;
use super::words::{number, timeout};

/// What a member has of interrupts, by name.
#[derive(Default)]
pub struct Interrupts {
    own: HashMap<String, Arc<Interrupt>>,
    triggers: HashMap<String, Trigger>,
    messages: Messages,
}

/// Policies that a test sleeps at once with, or never.
pub fn sleeping() -> WaitPolicy {
    WaitPolicy::new().spins(0).yields(0).sleep(Some(Duration::from_secs(3600)))
}

fn said(outcome: Result<(), Refusal>) -> String {
    outcome.map_or_else(|refusal| format!("{refusal:?}"), |()| "ok".to_owned())
}

/// Options by words: a number or `auto`, then `counting`, `forgets`, `spin`.
pub fn options(words: &[&str]) -> InterruptOptions {
    InterruptOptions {
        number: words.first().filter(|word| **word != "auto").map(|word| InterruptNumber(number(word))),
        is_shared: words.contains(&"shared"),
        is_group: words.contains(&"group"),
        is_counting: words.contains(&"counting"),
        forgets: words.contains(&"forgets"),
        wait: if words.contains(&"spin") { WaitPolicy::SPIN } else { sleeping() },
    }
}

impl Interrupts {
    /// Makes a call; `None` if it is none on interrupts.
    pub fn play(&mut self, member: &FabricMember, words: &[&str]) -> Option<String> {
        Some(match *words {
            ["interrupt", name, ref rest @ ..] => self.create(member, name, options(rest)),
            ["trigger-of", name, node, of, wait] => {
                let (node, of) = (NodeId(number(node)), InterruptNumber(number(of)));
                self.connect(member, name, (node, of), timeout(wait))
            }
            ["trigger", name] => said(self.triggers[name].trigger()),
            ["trigger", name, times] => {
                said((0..number(times)).try_for_each(|_| self.triggers[name].trigger()))
            }
            ["trigger-without-calls", name, times] => self.trigger_without_calls(name, number(times)),
            ["ping", trigger, own, rounds] => self.exchange((trigger, own), number(rounds), true),
            ["pong", trigger, own, rounds] => self.exchange((trigger, own), number(rounds), false),
            ["storm", name] => loop {
                self.triggers[name].trigger().unwrap();
            },
            ["wait", name, wait] => said(self.own[name].wait(timeout(wait))),
            ["wait-all", name] => {
                let taken = (0..).take_while(|_| self.own[name].wait(Some(Duration::ZERO)).is_ok()).count();
                format!("{taken}")
            }
            ["wait-forever", own, own_data] => loop {
                let _taken = self.own[own].wait(Some(Duration::from_micros(50)));
                let _taken = self.messages.own(own_data).wait(&mut [0; 64], Some(Duration::from_micros(50)));
            },
            ["wait-twice-and-remove", name] => self.wait_twice_and_remove(name),
            ["remove-interrupt", name] if self.own.contains_key(name) => said(self.own[name].remove()),
            ["untrigger", name] if self.triggers.remove(name).is_some() => "ok".to_owned(),
            _ => return self.messages.play(member, words),
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

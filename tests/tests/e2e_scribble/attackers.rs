//! Processes that connect as honest ones do, go on with what they came for, and scribble over all that they share meanwhile.
//!
//! The library runs in them too, over memory that is written behind its back: it may give errors, and may not panic.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use beeline::rpc::{Deadline, Method};
use beeline::{Domain, PortOptions, ReceiverOptions};
use beeline_contract_memory::WaitPolicy;
use beeline_kv::{Key, KvClient};
use beeline_rpc::shm::ClientOptions;

use crate::arenas::{self, Receivers, Senders};
use crate::e2e_support::{argument, domain_config, say, stop_flag};
use crate::scribbler::Scribbler;
use crate::victims::{domain, echo};

const MOMENT: Duration = Duration::from_millis(1);
/// Deeds between two honest steps, in turn: hardly any, some, and far more than an honest peer does in the time.
const INTENSITIES: [u64; 3] = [1, 40, 2000];
/// Steps of one connection at most; then another begins, with memory that is whole.
const STEPS: u64 = 300;

/// Plays the attacker that the test asks for until the test hangs up.
pub fn run() {
    let (stop, domain) = (stop_flag(), domain());
    let mut attack = Attack { stop, scribbler: Scribbler::new(), connections: 0 };
    match argument("ATTACKER").as_deref() {
        Some("sender") => attack.each(
            || domain.sender("evil").ok(),
            |sender, step| {
                let bytes = vec![3; (step * 97 % 3000) as usize];
                sender.send_timeout(&bytes, MOMENT).is_ok()
            },
        ),
        Some("receiver") => {
            let options = ReceiverOptions::new().lines(64);
            let mut receiver = domain.receiver_with("evil", options).unwrap();
            // A window comes with each sender, so that there is nothing to connect anew; its errors are the sender's fate.
            attack.each(
                || Some(()),
                |(), step| {
                    let taken = if step % 2 == 0 {
                        receiver.drain(4, |_| ())
                    } else {
                        receiver.recv_timeout(MOMENT).map(|_| 0)
                    };
                    taken.is_ok()
                },
            );
        }
        Some("bytes") => attack.each(
            || Some(domain.sender("evil").ok()?.into_bytes()),
            |sender, step| {
                let bytes = vec![3; (step * 97 % 3000) as usize];
                sender.write_timeout(&bytes, MOMENT).is_ok()
            },
        ),
        Some("client") => attack.each(
            || domain.client("calls").ok(),
            |client, step| {
                let asked = vec![5; (step * 131 % 9000) as usize];
                let deadline = Deadline::after(2 * MOMENT);
                client.call(Method(step as u16 % 3), &asked, &mut Vec::new(), Some(deadline)).is_ok()
            },
        ),
        Some("server") => {
            let (_server, mut worker) = domain.server("evil").unwrap();
            attack.each(
                || Some(()),
                |(), _| {
                    worker.poll(&mut echo);
                    true
                },
            );
        }
        Some("store") => {
            let below = beeline_domain::Domain::open(&domain_config()).unwrap();
            let connect = || KvClient::connect(&below, "store", ClientOptions::default()).ok();
            attack.each(connect, |client, step| {
                let deadline = Some(Deadline::after(2 * MOMENT));
                let key = Key::from_text(&format!("evil {}", step % 50)).unwrap();
                let set = client.set(key, &vec![9; (step * 53 % 5000) as usize], deadline);
                set.is_ok() && client.get(key, &mut Vec::new(), deadline).is_ok()
            });
        }
        Some("arena sender") => attack.arena_sender(),
        Some("arena owner") => attack.arena_owner(),
        Some("port") => attack.port(&domain),
        other => panic!("no attacker {other:?}"),
    }
    let Attack { scribbler, connections, .. } = attack;
    say(&format!("done {} {connections} {}", scribbler.stores(), scribbler.holes()));
}

struct Attack {
    stop: &'static AtomicBool,
    scribbler: Scribbler,
    connections: u64,
}

impl Attack {
    /// Connects again and again, and takes honest steps and scribbles by turns until a step fails.
    fn each<T>(
        &mut self,
        mut connect: impl FnMut() -> Option<T>,
        mut honest: impl FnMut(&mut T, u64) -> bool,
    ) {
        let mut said = false;
        while !self.stop.load(Ordering::Relaxed) {
            let Some(mut connection) = connect() else {
                std::thread::yield_now();
                continue;
            };
            self.connections += 1;
            let intensity = INTENSITIES[(self.connections % 3) as usize];
            for step in 0..STEPS {
                let goes_on = honest(&mut connection, step);
                if step.is_multiple_of(16) {
                    self.scribbler.look();
                }
                if self.scribbler.scribble(intensity) && !said {
                    say("scribbles");
                    said = true;
                }
                if !goes_on || self.stop.load(Ordering::Relaxed) {
                    break;
                }
            }
            self.scribbler.forget();
        }
    }

    fn arena_sender(&mut self) {
        let domain = arenas::domain();
        self.each(|| Senders::join(&domain, "windows"), |senders, _| senders.try_step().is_ok());
    }

    fn arena_owner(&mut self) {
        let listener = arenas::offer(&arenas::domain(), "evil");
        let mut receivers = Receivers::default();
        // No process has the number 0, so no client is taken for an honest one.
        self.each(
            || Some(()),
            |(), _| {
                receivers.step(&listener, 0);
                true
            },
        );
    }

    /// A port of a NIC over the interface that the test names.
    fn port(&mut self, domain: &Domain) {
        let interface = argument("INTERFACE").unwrap().parse().unwrap();
        let wait = WaitPolicy::new().spins(50).yields(1).sleep(Some(MOMENT));
        let options = PortOptions::new().interface(interface).wait(wait);
        self.each(
            || domain.port_with("nic", options).ok(),
            |port, step| {
                let mut frame = vec![step as u8; 60 + (step * 71 % 1400) as usize];
                // To everybody at times, and to itself.
                let own = port.mac();
                frame[..6].copy_from_slice(if step % 4 == 0 { &[0xff; 6] } else { &own });
                frame[6..12].copy_from_slice(&own);
                port.try_send(&frame).is_ok() && port.try_recv().is_ok()
            },
        );
    }
}

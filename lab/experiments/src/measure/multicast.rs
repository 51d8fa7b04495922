//! Reflective memory: a store that a central switch copies to the memory of several nodes, and their answers.

use beeline_contract_device::SimTime;
use beeline_contract_link::DmaMemory;
use beeline_contract_memory::StorePort;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::{CoreId, DeviceId, MachineSettings, Next, Pause, Sim};
use beeline_platforms::{Kind, Time};

use super::{Bench, aperture};
use crate::branches::branch_out;
use crate::devices::Replier;
use crate::{LabError, machine};

/// Messages that are answered.
const ROUNDS: u64 = 8;
/// A pause before each, so that nothing of the one before is under way.
const PAUSE: Picoseconds = Picoseconds::from_ns(20_000);
/// Bytes between flags: each has a line of its own.
const FLAG_STRIDE_BYTES: usize = 64;

impl Bench<'_> {
    /// ns of one way of a ping-pong of so many nodes, hosts alike: half of the time from the call that stores a word, which the
    /// central switch copies to all others, to the poll that finds the last of their answers.
    ///
    /// Each of the others polls its memory and stores an answer to a flag of its own in the sender's memory. The answers meet
    /// at the switch, and share the way to the sender; the sender looks at the flags in turn, and each costs it a line.
    ///
    /// # Errors
    /// The platform has no central switch, or one of fewer ports; it is no bridge to another host's memory.
    pub fn multicast_ns(&self, nodes: u64) -> Result<f64, LabError> {
        let settings = self.reflective(nodes)?;
        let memory_ps = |time: Time| Picoseconds(time.picoseconds());
        let (core, root) = (&self.platform.core, &self.platform.root_complex);
        // What the far host does is in the way of nobody else: its times add.
        let turnaround = memory_ps(root.write_visible_ns.value)
            + memory_ps(core.line_wake_ns.value)
            + memory_ps(core.poll_ns.value)
            + memory_ps(core.message_ns.value)
            + memory_ps(core.store_ns.value)
            + memory_ps(root.write_latency_ns.value);
        let turnaround = SimTime(turnaround.0);
        let repliers = (1..nodes).map(|_| Replier::new(turnaround)).collect();
        let sim = Sim::with_devices(repliers, settings, self.seed)?;
        let total: u64 = self.rounds(&sim, nodes - 1)?.iter().map(|time| time.0).sum();
        Ok(total as f64 / 1000.0 / ROUNDS as f64 / 2.0)
    }

    /// The machine of the sender: its own links to the central switch, and behind it a branch for each other node.
    fn reflective(&self, nodes: u64) -> Result<MachineSettings, LabError> {
        let platform = self.platform;
        let wrong = |what: String, advice| Err(LabError::Traffic { what, advice });
        let Some(central) = platform.switch.as_ref().filter(|_| platform.kind == Kind::Ntb) else {
            let what = format!("{} has no [switch] section that joins boards", platform.name);
            return wrong(what, "add one to the file of a platform whose kind is \"ntb\"");
        };
        if !(2..=u64::from(central.ports.value)).contains(&nodes) {
            let what = format!("{nodes} nodes at a central switch of {} ports", central.ports.value);
            return wrong(what, "ask for 2 nodes to as many as there are ports");
        }
        let mut settings = machine(platform, 1, aperture(1), self.data)?;
        let others = nodes as u16 - 1;
        // Hops stand from one board to the other; the switch joins the boards in the middle.
        branch_out(platform, &mut settings, others)?;
        settings.switch.iter_mut().for_each(|switch| switch.groups.push((0..others).collect()));
        Ok(settings)
    }

    fn rounds(&self, sim: &Sim<Replier>, others: u64) -> Result<Vec<Picoseconds>, LabError> {
        let core = CoreId(0);
        let mut link = sim.link_to(core, DeviceId(0));
        let mut window = link.multicast_window(0, 0)?;
        let flag = |node: u64| node as usize * FLAG_STRIDE_BYTES;
        let mut flags = beeline_contract_link::Link::memory(&mut link, flag(others))?;
        sim.with(|machine| {
            for (node, replier) in (0..).zip(machine.devices()) {
                replier.flag_address = flags.address() + flag(node) as u64;
            }
        });
        let times = &self.platform.core;
        let message = Picoseconds(times.message_ns.value.picoseconds());
        let poll = Picoseconds(times.poll_ns.value.picoseconds());
        let (mut round_trips, mut sent) = (Vec::new(), None);
        sim.end_turn(core, Next::At(PAUSE));
        while (round_trips.len() as u64) < ROUNDS {
            let round = round_trips.len() as u64 + 1;
            let Some(Pause::Turn(_)) = sim.advance(Picoseconds::NEVER) else {
                let at = sim.with(|machine| machine.now());
                return Err(LabError::Stuck { at, done: round - 1, wanted: ROUNDS });
            };
            let next = match &mut sent {
                None => {
                    sent = Some((sim.with(|machine| machine.core_clock(core)), 0));
                    sim.work(core, message);
                    window.store_word(0, 0, round);
                    window.fence();
                    Next::Poll
                }
                Some((begun, found)) => {
                    while *found < others && flags.load(flag(*found)) == round {
                        sim.work(core, poll);
                        *found += 1;
                    }
                    if *found < others {
                        Next::Poll
                    } else {
                        let clock = sim.with(|machine| machine.core_clock(core));
                        round_trips.push(clock.since(*begun));
                        sent = None;
                        Next::At(clock + PAUSE)
                    }
                }
            };
            sim.end_turn(core, next);
        }
        Ok(round_trips)
    }
}

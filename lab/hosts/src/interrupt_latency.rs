//! Latencies of interrupts between hosts, by programs of members: one triggers, the other one polls until it has taken that.

use beeline_experiments::LabError;
use beeline_fabric::InterruptNumber;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::hosts::{HostId, Hosts};
use beeline_platforms::Platform;

use crate::assembly::{Shape, hosts};
use crate::between::{START, no_hosts};
use crate::interrupt::InterruptOptions;
use crate::member::HostMember;
use crate::programs::{Core, Program, run};
use crate::wiring::{Wiring, node_of};

const ROUNDS: u64 = 8;
/// From one trigger to the next: nothing of the one before is under way then.
const PAUSE: Picoseconds = Picoseconds::from_ns(50_000);
/// No run takes as long.
const END: Picoseconds = Picoseconds::from_ns(1_000_000_000);
const NUMBER: InterruptNumber = InterruptNumber(1);

/// The interrupt that is timed.
#[derive(Clone, Copy)]
enum Kind {
    Plain,
    Message { bytes: usize },
}

/// ns from the call that triggers an interrupt of another host until the program that polls there has taken it.
///
/// # Errors
/// The platform joins no hosts.
pub fn interrupt_latency_ns(platform: &Platform, seed: u64) -> Result<f64, LabError> {
    latency_ns(platform, Kind::Plain, seed)
}

/// As [`interrupt_latency_ns`], of a data interrupt: until the message is whole and copied out.
///
/// # Errors
/// The platform joins no hosts.
pub fn message_latency_ns(platform: &Platform, bytes: usize, seed: u64) -> Result<f64, LabError> {
    latency_ns(platform, Kind::Message { bytes }, seed)
}

fn latency_ns(platform: &Platform, kind: Kind, seed: u64) -> Result<f64, LabError> {
    let mut hosts = Hosts::new(hosts(platform, &Shape::Pair)?, seed).map_err(|error| no_hosts(&error))?;
    let wiring = Wiring::new(&mut hosts, 2);
    let other = wiring.clone();
    let call = Picoseconds(platform.core.message_ns.value.picoseconds());
    let programs: Vec<Program<'_, Vec<Picoseconds>>> = vec![
        (HostId(0), Box::new(move |core| trigger(&core, &wiring, kind, call, seed))),
        (HostId(1), Box::new(move |core| take(&core, &other, kind, seed))),
    ];
    let (results, _) = run(hosts, programs);
    let spans = results[0].iter().zip(&results[1]).map(|(begun, taken)| taken.since(*begun).0);
    Ok(spans.sum::<u64>() as f64 / 1000.0 / ROUNDS as f64)
}

fn trigger(core: &Core, wiring: &Wiring, kind: Kind, call: Picoseconds, seed: u64) -> Vec<Picoseconds> {
    let mut member = HostMember::new(core, wiring, seed);
    let node = node_of(HostId(1));
    let connected = "an interrupt that there is can be connected to";
    let mut send: Box<dyn FnMut(&mut HostMember)> = match kind {
        Kind::Plain => {
            let mut interrupt = member.connect_interrupt(node, NUMBER, None).expect(connected);
            Box::new(move |member| member.trigger(&mut interrupt).expect("it is there"))
        }
        Kind::Message { bytes } => {
            let mut interrupt = member.connect_data_interrupt(node, NUMBER, None).expect(connected);
            let message = vec![0x5a; bytes];
            Box::new(move |member| member.trigger_with(&mut interrupt, &message).expect("there is room"))
        }
    };
    member.serve(START, |_| false);
    let rounds = (1..=ROUNDS).map(|round| {
        core.sleep_until(START + PAUSE * round);
        let begun = core.now();
        core.work(call);
        send(&mut member);
        begun
    });
    rounds.collect()
}

fn take(core: &Core, wiring: &Wiring, kind: Kind, seed: u64) -> Vec<Picoseconds> {
    let mut member = HostMember::new(core, wiring, seed);
    let made = "a new member has room for an interrupt";
    let mut taken: Box<dyn FnMut(&mut HostMember)> = match kind {
        Kind::Plain => {
            let options = InterruptOptions { number: Some(NUMBER), ..InterruptOptions::default() };
            let mut interrupt = member.create_interrupt(options).expect(made);
            Box::new(move |member| member.wait_for_interrupt(&mut interrupt, END).expect("it comes"))
        }
        Kind::Message { .. } => {
            let mut interrupt = member.create_data_interrupt(Some(NUMBER)).expect(made);
            Box::new(move |member| drop(member.wait_for_message(&mut interrupt, END).expect("it comes")))
        }
    };
    let rounds = (0..ROUNDS).map(|_| {
        taken(&mut member);
        core.now()
    });
    rounds.collect()
}

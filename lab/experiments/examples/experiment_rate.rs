//! How many packets a second of real time the whole path does on one core: host half, write-combining buffers, root
//! complex, link, NIC; unfenced frames of one line by `mmio`, on the machine of HotOS'25.
//!
//! `cargo run --release -p beeline-experiments --example experiment_rate`: what a profiler is pointed at. Figures are of this
//! machine and of now; those that are reported are of `bench`.

use std::time::Instant;

use beeline_driver::Choice;
use beeline_experiments::{Arrivals, Data, NicShape, Run, Station, Traffic, machine, model_nic};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::Sim;
use beeline_link_sim::pcie::Side;
use beeline_platforms::Platform;
use beeline_spec::Interface;

fn main() {
    let platform = Platform::named("epyc-7543-cx6dx").expect("a platform that is there");
    for burst in [1, 16] {
        let shape = NicShape::for_cores(1);
        let nic = model_nic(&shape).expect("sizes of a NIC");
        let settings =
            machine(&platform, 1, shape.aperture(), Data::default()).expect("parameters of a machine");
        let sim = Sim::new(nic, settings, 1).expect("a machine");
        let mut station = Station::new(sim).expect("the port comes up");
        let run = Run {
            choice: Choice::of(Interface::Mmio, 7),
            traffic: Traffic { sizes: vec![56], frames: 2_000_000, arrivals: Arrivals::Always { burst } },
            message: Picoseconds::ZERO,
            warm_up: 0,
            seed: 1,
        };
        let start = Instant::now();
        run.on(&mut station, 1).expect("the frames leave");
        let seconds = start.elapsed().as_secs_f64();
        let (packets, events) = station.sim.with(|machine| {
            let link = &machine.links()[0];
            let tlps = |side| link.carried(side).tlps.iter().map(|kind| kind.packets).sum::<u64>();
            (tlps(Side::Upstream) + tlps(Side::Downstream), machine.events())
        });
        println!(
            "burst {burst}: {:.2} M TLP/s, {:.2} M events/s, {:.2} events a packet",
            packets as f64 / seconds / 1e6,
            events as f64 / seconds / 1e6,
            events as f64 / packets as f64
        );
    }
}

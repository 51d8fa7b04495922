//! Frames through every interface in virtual time.

mod machine;

use beeline_driver::Choice;
use beeline_lab::{Arrivals, NicShape, Run, Station, Traffic, model_nic};
use beeline_link_sim::machine::Sim;
use beeline_spec::Interface;
use machine::{ns, settings};

#[test]
fn every_interface_sends() {
    for interface in Interface::ALL {
        for (arrivals, frames) in [(Arrivals::OneByOne, 200), (Arrivals::Always { burst: 1 }, 2000)] {
            let shape = NicShape::for_cores(1);
            let sim = Sim::new(model_nic(&shape).unwrap(), settings(&shape, 1), 1).unwrap();
            let mut station = Station::new(sim).unwrap();
            let run = Run {
                choice: Choice::of(interface, 7),
                traffic: Traffic { sizes: vec![60], frames, arrivals: arrivals.clone() },
                message: ns(5),
                warm_up: frames / 10,
                seed: 1,
            };
            let outcome = run.on(&mut station, 1).unwrap();
            let summary = outcome.to_wire.summary();
            println!(
                "{interface:?} {arrivals:?}: p50 {:.1} ns, {:.1} Gbit/s, {:.2} M/s",
                summary.p50_ns,
                outcome.goodput_gbps(),
                outcome.frames_per_second() / 1e6
            );
        }
    }
}

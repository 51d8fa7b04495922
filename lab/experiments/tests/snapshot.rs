//! What a seed gives for each interface, to the picosecond, on the machine of these tests. A change of a line here is a
//! change of every figure: it is one that was meant, or it is an error.

mod machine;

use std::fmt::Write;

use beeline_driver::Choice;
use beeline_experiments::{Arrivals, NicShape, Run, Station, Traffic, model_nic};
use beeline_link_sim::cpu::Release;
use beeline_link_sim::machine::Sim;
use beeline_link_sim::pcie::Side;
use beeline_spec::Interface;
use machine::{ns, settings_for};

fn line(interface: Interface, arrivals: Arrivals, cores: u16) -> String {
    let shape = NicShape::for_cores(cores);
    let mut machine = settings_for(interface, &shape, cores);
    if interface == Interface::Mmio {
        machine.core.release = Release::OldestRandom;
        machine.core.split_per_mille = 100;
    }
    let nic = model_nic(&shape).expect("sizes of a NIC");
    let sim = Sim::new(nic, machine, 1).expect("a machine");
    let mut station = Station::new(sim).expect("the port comes up");
    let run = Run {
        choice: Choice::of(interface, 7),
        traffic: Traffic { sizes: vec![60, 300, 1514], frames: 500, arrivals: arrivals.clone() },
        message: ns(5),
        warm_up: 50,
        seed: 1,
    };
    let outcome = run.on(&mut station, cores).expect("the frames leave");
    let summary = outcome.to_wire.summary();
    station.sim.with(|machine| {
        let carried = |side| {
            let tlps = machine.links()[0].carried(side).tlps;
            tlps.iter().map(|kind| kind.wire_bytes).sum::<u64>()
        };
        format!(
            "{interface:?} {arrivals:?} x{cores}: {} ps, {:.3} {:.3} ns, {} and {} bytes",
            outcome.elapsed.0,
            summary.mean_ns,
            summary.most_ns,
            carried(Side::Upstream),
            carried(Side::Downstream)
        )
    })
}

#[test]
fn every_interface_gives_what_it_gave() {
    let mut found = String::new();
    for interface in Interface::ALL {
        for (arrivals, cores) in [
            (Arrivals::OneByOne, 1),
            (Arrivals::Always { burst: 8 }, 2),
            (Arrivals::Poisson { per_second: 2e6 }, 1),
        ] {
            writeln!(found, "{}", line(interface, arrivals, cores)).unwrap();
        }
    }
    assert_eq!(found, include_str!("snapshot.txt"), "found:\n{found}");
}

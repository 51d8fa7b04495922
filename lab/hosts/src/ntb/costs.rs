//! What a bridge costs where it is asked something, and until it has interrupted somebody.

use beeline_experiments::LabError;
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::hosts::{HostId, Hosts, NtbSettings};
use beeline_platforms::Platform;

use super::port::NtbPort;
use crate::assembly::{Shape, hosts};
use crate::between::no_hosts;
use crate::programs::{Core, Program, run};

/// When the other side has given its memory and listens.
const START: Picoseconds = Picoseconds::from_ns(100_000);
const DOORBELL: u64 = 1;

/// Times of one core, with nothing else under way. All of them are of virtual time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NtbCosts {
    /// A load of a register of the own side.
    pub register_read_ns: f64,
    /// A load of the other side's memory, through a window.
    pub memory_read_ns: f64,
    /// From the store that rings, behind one into the window, to the first instruction of who is interrupted there.
    pub doorbell_ns: f64,
    /// Whether that one found what was stored before.
    pub is_behind: bool,
}

/// What a bridge between two hosts of a platform costs.
///
/// # Errors
/// The platform joins no hosts by a hop.
pub fn ntb_costs(platform: &Platform, ntb: &NtbSettings, seed: u64) -> Result<NtbCosts, LabError> {
    let settings = hosts(platform, &Shape::Pair)?;
    let mut hosts = Hosts::with_ntb(settings, ntb.clone(), seed).map_err(|error| no_hosts(&error))?;
    let memory = hosts.add_memory(HostId(1), 4096);
    let asks = |core: Core| {
        let port = NtbPort::new(&core);
        port.link_enable();
        core.sleep_until(START);
        let window = port.peer_mw_get_addr(0).expect("a bridge has a window");
        let begun = core.now();
        port.db_read();
        let near = core.now();
        core.load_across(window);
        let far = core.now();
        core.sleep_until(far + START);
        let rung = core.now();
        core.store_line(window, &[DOORBELL; 8]);
        port.peer_db_set(DOORBELL);
        (vec![near.since(begun), far.since(near)], rung, false)
    };
    let hears = move |core: Core| {
        let port = NtbPort::new(&core);
        port.link_enable();
        port.mw_set_trans(0, memory).expect("a page can be translated to");
        core.sleep_until(Picoseconds(START.0 / 2));
        port.db_clear(u64::MAX);
        port.db_unmask_only(DOORBELL);
        port.await_interrupt(port.interrupts(), Picoseconds::NEVER);
        let at = core.now();
        (Vec::new(), at, core.load(memory, 0) == DOORBELL)
    };
    let programs: Vec<Program<'_, (Vec<Picoseconds>, Picoseconds, bool)>> =
        vec![(HostId(0), Box::new(asks)), (HostId(1), Box::new(hears))];
    let (results, _) = run(hosts, programs);
    let ns = |span: Picoseconds| span.0 as f64 / 1000.0;
    Ok(NtbCosts {
        register_read_ns: ns(results[0].0[0]),
        memory_read_ns: ns(results[0].0[1]),
        doorbell_ns: ns(results[1].1.since(results[0].1)),
        is_behind: results[1].2,
    })
}

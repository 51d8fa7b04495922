//! There and back over a wire between two network namespaces: our calls past the kernel's network, over AF_XDP and over
//! AF_PACKET, and the kernel's UDP with blocking sockets, with SO_BUSY_POLL, and with sockets that are polled.
//!
//! The wire is a veth pair ([`Veth`]); both sides have a core. What is measured is the same echo as between processes of
//! one machine (`rpc_round_trip.rs`), begun at the other end of the wire. veth copies every frame: zero-copy is n/a. Each of
//! our paths has a wire of its own, because AF_XDP takes our frames from everybody else on its interface.

use beeline_ethernet::AfXdp;

use crate::echo::{Launch, RPC_AF_PACKET, RPC_AF_XDP};
use crate::rivals::OVER_A_WIRE;
use crate::rpc_round_trip::{Contender, SIZES, alternate, start_rivals};
use crate::veth::{ADDRESSES, Veth};
use crate::{BenchError, Bound, Check, Figure, Missing, Report, Settings};
use beeline_session::with_causes;

const BENCH: &str = "wire-round-trip";
/// Times fewer trips in a round than of the fastest path of one machine.
const SLOWNESS: u32 = 5;
/// What figures are called whose path is checked, and which it is checked against.
const OURS: &str = "beeline RPC, AF_XDP";
const BLOCKING: &str = "UDP";

/// Runs both of ours and every rival; without a wire there is no figure.
///
/// # Errors
/// [`BenchError`]; a machine on which there can be no wire, or no AF_XDP, is no error.
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let mut wires = Vec::new();
    for _ in 0..3 {
        match Veth::new()? {
            Ok(veth) => wires.push(veth),
            Err(why) => {
                return Ok(Report { missing: vec![not_here("every path", why)], ..Report::default() });
            }
        }
    }
    let on = |wire: &Veth, launch: Launch| launch.through(wire.enter(0), wire.enter(1));
    let mut ours = vec![("beeline RPC, AF_PACKET", RPC_AF_PACKET)];
    let mut missing = Vec::new();
    match AfXdp::probe() {
        Ok(()) => ours.insert(0, (OURS, RPC_AF_XDP)),
        Err(error) => missing.push(not_here(OURS, with_causes(&error))),
    }
    let mut contenders = Vec::new();
    for ((name, role), wire) in ours.into_iter().zip(&wires[1..]) {
        let launch = on(wire, Launch::role(name, &settings.program, role));
        contenders.push(Contender::start(&launch, "veth", SLOWNESS, settings)?);
    }
    let (mut rivals, mut absent) = start_rivals(BENCH, OVER_A_WIRE, settings, |launch| {
        on(&wires[0], launch).env("ECHO_BIND", ADDRESSES[0])
    })?;
    contenders.append(&mut rivals);
    missing.append(&mut absent);
    let placed = alternate(&mut contenders, settings)?;
    let figures: Vec<_> = contenders.into_iter().map(|one| one.figures(BENCH)).collect::<Result<_, _>>()?;
    let checks = |figures: &[Figure]| SIZES.iter().flat_map(|bytes| checks_of(figures, *bytes)).collect();
    Ok(Report { missing, ..placed.report(BENCH, &figures.concat(), checks) })
}

/// Ours against every other path, of this size: to be ahead of blocking sockets.
fn checks_of(figures: &[Figure], bytes: usize) -> Vec<Check> {
    let name = |path: &str| format!("{path}, {bytes} B");
    let Some(ours) = figures.iter().find(|figure| figure.name == name(OURS)) else { return Vec::new() };
    let others =
        figures.iter().filter(|figure| figure.size_bytes == ours.size_bytes && figure.name != ours.name);
    let bound =
        |figure: &Figure| if figure.name == name(BLOCKING) { Bound::AtMost(1.0) } else { Bound::Shown };
    others.map(|other| Check::ratio(BENCH, ours, other, bound(other))).collect()
}

fn not_here(name: &str, why: String) -> Missing {
    Missing { bench: BENCH.to_owned(), name: name.to_owned(), why }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Row;

    #[test]
    fn ours_is_judged_against_blocking_sockets_of_its_size() {
        let figure = |name: &str, size_bytes, rate| {
            let row = Row { bench: BENCH, name, kernel: "-", memory: "-", size_bytes, count: 1 };
            Figure::rate(row, vec![rate])
        };
        let figures = [
            figure("UDP, 10 B", 10, 60.0),
            figure("UDP, polled, 10 B", 10, 4.0),
            figure("UDP, 100 B", 100, 1.0),
            figure("beeline RPC, AF_XDP, 10 B", 10, 6.0),
        ];
        let checks = checks_of(&figures, 10);
        let found: Vec<_> = checks.iter().map(|v| (v.found, v.bound)).collect();
        assert_eq!(found, [(0.1, Bound::AtMost(1.0)), (1.5, Bound::Shown)]);
        assert_eq!(checks_of(&figures, 100), []);
    }
}

//! There and back between two network namespaces: by a veth pair, as hosts would by a cable, and by `beeline ip up` at both ends, whose members meet
//! in a domain, or in a file that both have mapped and in nothing else. UDP with blocking sockets and with sockets that are polled.
//!
//! The two programs have a core each; those that carry packets for them share these cores with them, as there are no others.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use beeline_session::Role;

use crate::rivals::OVER_A_WIRE;
use crate::rpc_round_trip::{SIZES, alternate, start_rivals};
use crate::veth::{ADDRESSES, Veth};
use crate::{BenchError, Bound, Check, Figure, Missing, Report, Settings};

const BENCH: &str = "ip-round-trip";
/// By what packets go.
const VETH: &str = "veth";
const DOMAIN: &str = "ip up, domain";
const FILE: &str = "ip up, file";
/// Nodes at the two ends.
const NODES: [u16; 2] = [4, 8];
const STARTS_WITHIN: Duration = Duration::from_secs(20);

/// `beeline ip up` at both ends, as long as this is kept.
struct Up {
    name: &'static str,
    address: String,
    _ends: [Role; 2],
}

impl Up {
    /// The number tells its network and its devices from others'.
    fn start(
        name: &'static str,
        number: u8,
        (veth, beeline, root): (&Veth, &Path, &Path),
        memory: &[&str],
    ) -> Result<Self, BenchError> {
        let mut ends = Vec::new();
        for (end, node) in NODES.into_iter().enumerate() {
            let (enter, other) = (veth.enter(end), NODES[1 - end].to_string());
            let (interface, network) = (format!("bee{number}"), format!("10.{number}.0.0/16"));
            let mut command = Command::new(&enter[0]);
            command.args(&enter[1..]).arg(beeline).args(["ip", "up", "--json", "--peers", &other]);
            command.args(["--interface", &interface, "--net", &network]).args(memory);
            command.env("BEELINE_ROOT", root).env("BEELINE_NODE", node.to_string()).stderr(Stdio::inherit());
            ends.push(Role::start(&mut command)?);
        }
        for end in &mut ends {
            while !end.line_within(STARTS_WITHIN)?.ok_or_else(|| failed(name))?.contains("\"came\"") {}
        }
        let address = format!("10.{number}.0.{}", NODES[0]);
        let ends = ends.try_into().unwrap_or_else(|_| unreachable!("there is one for each node"));
        Ok(Up { name, address, _ends: ends })
    }
}

fn failed(name: &str) -> BenchError {
    BenchError::Rival { rival: name.to_owned(), what: "`beeline ip up` ended".to_owned() }
}

/// Runs every path in turn; without namespaces there is no figure.
///
/// # Errors
/// [`BenchError`]; a machine on which there can be no namespace is no error.
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    let missing = |why| {
        let missing = Missing { bench: BENCH.to_owned(), name: "every path".to_owned(), why };
        Ok(Report { missing: vec![missing], ..Report::default() })
    };
    let veth = match Veth::new()? {
        Ok(veth) => veth,
        Err(why) => return missing(why),
    };
    let beeline = settings.program.path().with_file_name("beeline");
    if !beeline.is_file() {
        return missing(format!("{} is not built: `make build`", beeline.display()));
    }
    let folder = tempfile::tempdir_in("/dev/shm")?;
    let (root, file) = (folder.path().join("root"), folder.path().join("memory"));
    let ground = (&veth, &*beeline, &*root);
    let memory = ["--memory", &file.display().to_string(), "--memory-bytes", "64MiB"];
    let ups = [Up::start(DOMAIN, 101, ground, &[])?, Up::start(FILE, 102, ground, &memory)?];
    let paths = [(VETH, ADDRESSES[0])].into_iter().chain(ups.iter().map(|up| (up.name, &*up.address)));
    let (mut contenders, mut absent) = (Vec::new(), Vec::new());
    for (name, address) in paths {
        let (mut started, mut not_here) = start_rivals(BENCH, OVER_A_WIRE, settings, |mut launch| {
            launch.name = format!("{}, {name}", launch.name);
            launch.through(veth.enter(0), veth.enter(1)).env("ECHO_BIND", address)
        })?;
        contenders.append(&mut started);
        absent.append(&mut not_here);
    }
    let placed = alternate(&mut contenders, settings)?;
    let figures: Vec<_> = contenders.into_iter().map(|one| one.figures(BENCH)).collect::<Result<_, _>>()?;
    Ok(Report { missing: absent, ..placed.report(BENCH, &figures.concat(), checks) })
}

/// What a network of processes costs beside one of the kernel's: shown.
fn checks(figures: &[Figure]) -> Vec<Check> {
    let named = |name: &str| figures.iter().find(|figure| figure.name == name);
    let pairs = SIZES.iter().flat_map(|bytes| {
        [DOMAIN, FILE].map(|path| [path, VETH].map(|path| named(&format!("UDP, {path}, {bytes} B"))))
    });
    let ratio = |pair: [Option<&Figure>; 2]| Some(Check::ratio(BENCH, pair[0]?, pair[1]?, Bound::Shown));
    pairs.filter_map(ratio).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::figure::Row;

    #[test]
    fn each_network_of_ours_is_shown_beside_the_kernels_of_its_size() {
        let figure = |name: &str, size_bytes, rate| {
            let row = Row { bench: BENCH, name, kernel: "-", memory: "-", size_bytes, count: 1 };
            Figure::rate(row, vec![rate])
        };
        let [small, large] = SIZES;
        let figures = [
            figure(&format!("UDP, veth, {small} B"), small as u32, 60.0),
            figure(&format!("UDP, ip up, file, {small} B"), small as u32, 30.0),
            figure(&format!("UDP, ip up, domain, {large} B"), large as u32, 4.0),
        ];
        let checks = checks(&figures);
        assert_eq!(checks.iter().map(|check| check.bound).collect::<Vec<_>>(), [Bound::Shown]);
    }
}

//! `beeline stat`: the live counters of a running NIC, as totals and as rates.

use std::time::{Duration, Instant};

use beeline_nic_process::{Statistics, StatisticsError, StatisticsFeed};
use clap::Args;
use comfy_table::{CellAlignment, Table, presets};

use crate::failure::Failure;
use crate::options::ReachArgs;
use crate::waiting::WaitArgs;
use crate::{out, waiting};

/// Options of `stat`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline stat                            counters of the NIC called nic, once a second
  beeline stat --once --json              one snapshot for a script
  beeline stat --timeout-ms 5000          as soon as the NIC is there, if that is within 5 s
  beeline stat --owner 1000               the NIC of user 1000, started with --allow-uid and your uid")]
pub struct StatArgs {
    /// Name of the NIC
    #[arg(long, default_value = "nic", value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub reach: ReachArgs,
    #[command(flatten)]
    pub wait: WaitArgs,
    /// Print one snapshot and stop
    #[arg(long)]
    pub once: bool,
    /// Milliseconds between snapshots
    #[arg(long, default_value_t = 1000, value_name = "MS", value_parser = clap::value_parser!(u64).range(50..=60_000))]
    pub interval_ms: u64,
    /// Show counters that are zero too
    #[arg(long)]
    pub all: bool,
    /// Print JSON, one object a snapshot
    #[arg(long)]
    pub json: bool,
}

/// One counter of one part of the NIC.
struct Line {
    part: String,
    name: String,
    total: u64,
}

/// Runs `beeline stat`.
pub fn run(args: &StatArgs) -> Result<(), Failure> {
    let (feed, first) = open(args)?;
    show(args, &first, None)?;
    if args.once {
        return Ok(());
    }
    let mut before = first;
    loop {
        std::thread::sleep(Duration::from_millis(args.interval_ms));
        let now = match feed.next() {
            Ok(now) => now,
            Err(error) if is_departure(&error) => {
                out::remark(error);
                return Ok(());
            }
            // A NIC that is silent is not gone: it may be stopped, or its loop stuck.
            Err(error) => return Err(Failure::new("the NIC does not answer").because(error)),
        };
        show(args, &now, Some(&before))?;
        before = now;
    }
}

/// Asks the NIC for the first time, and waits for it as long as was said.
fn open(args: &StatArgs) -> Result<(StatisticsFeed, Statistics), Failure> {
    let (name, domain, timeout) = (&args.name, &args.reach.domain.name, args.wait.timeout());
    let called = Instant::now();
    let _waiting = waiting::say_if_it_takes_long(format!("NIC {name} in domain {domain}"), timeout);
    let nic = format!("nic --name {name}");
    let opened = args.reach.open(timeout).map_err(|error| {
        args.reach.advise(Failure::new(format!("cannot open domain {domain}")), &error, &nic).because(error)
    })?;
    let asked = match args.wait.timeout_ms {
        // A NIC that is there has as long to answer as it takes.
        None | Some(0) => StatisticsFeed::open(&opened, name),
        Some(_) => StatisticsFeed::open_awaiting(&opened, name, timeout.saturating_sub(called.elapsed())),
    };
    // What could not be done is in the error; saying it again would hide why.
    asked.map_err(|error| args.reach.advise(Failure::new(error.to_string()), &error, &nic))
}

/// Whether the NIC is known to have ended; watching it then ends too, in good order.
fn is_departure(error: &StatisticsError) -> bool {
    use beeline_domain::ConnectError::{Absent, Closed, OwnerDied};
    matches!(error, StatisticsError::Connect { error: Absent { .. } | OwnerDied { .. } | Closed { .. }, .. })
}

fn show(args: &StatArgs, now: &Statistics, before: Option<&Statistics>) -> Result<(), Failure> {
    let text = if args.json {
        serde_json::to_string(now).map_err(|e| Failure::new("cannot write JSON").because(e))?
    } else {
        table(args, now, before)
    };
    out::line(text)
}

/// Every counter of a snapshot, flattened: numbers at any depth of its JSON form, so that none is forgotten here.
fn lines(snapshot: &Statistics) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut part = |part: &str, value: serde_json::Result<serde_json::Value>| {
        let Ok(serde_json::Value::Object(map)) = value else { return };
        for (name, value) in map {
            if let Some(total) = value.as_u64() {
                lines.push(Line { part: part.to_owned(), name, total });
            }
        }
    };
    part("loop", serde_json::to_value(snapshot.rounds));
    part("switch", serde_json::to_value(snapshot.switch));
    for port in &snapshot.ports {
        let function = port.function.as_ref().map(|path| format!("function {}", path.display()));
        let host = function.unwrap_or_else(|| match port.pid {
            // The kernel's answer for a process of another pid namespace: it has no number where the NIC runs.
            0 => "outside the NIC's pid namespace".to_owned(),
            pid => format!("pid {pid}"),
        });
        let name = format!("port {} ({host})", port.port);
        part(&name, serde_json::to_value(port.link));
        part(&name, serde_json::to_value(&port.device));
    }
    for uplink in &snapshot.uplinks {
        part(&uplink.name, serde_json::to_value(uplink));
    }
    lines
}

fn table(args: &StatArgs, now: &Statistics, before: Option<&Statistics>) -> String {
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_header(["part", "counter", "total", "per second"]);
    for column in table.column_iter_mut().skip(2) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    let earlier = before.map(lines).unwrap_or_default();
    let seconds = before.map_or(0.0, |before| now.uptime_ms.saturating_sub(before.uptime_ms) as f64 / 1e3);
    for line in lines(now).iter().filter(|line| args.all || line.total > 0) {
        let was = earlier.iter().find(|old| (&old.part, &old.name) == (&line.part, &line.name));
        let rate = match was {
            Some(was) if seconds > 0.0 => {
                format!("{:.0}", line.total.saturating_sub(was.total) as f64 / seconds)
            }
            _ => String::new(),
        };
        table.add_row([line.part.clone(), line.name.clone(), line.total.to_string(), rate]);
    }
    let seconds = now.uptime_ms as f64 / 1e3;
    format!("NIC {} (pid {}), up {seconds:.1} s, {} ports\n{table}", now.service, now.pid, now.ports.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::{DomainArgs, RootArgs};
    use beeline_nic_process::PortStatistics;

    #[test]
    fn only_a_nic_that_has_ended_is_gone() {
        let path = std::path::PathBuf::from("/run/nic.sock");
        let connect = |error| StatisticsError::Connect { service: "nic".to_owned(), error };
        use beeline_domain::ConnectError::{Absent, OwnerDied};
        assert!(is_departure(&connect(OwnerDied { path: path.clone(), pid: Some(7) })));
        assert!(is_departure(&connect(Absent { path })));
        let odd = StatisticsError::Answer { service: "nic".to_owned(), reason: "no JSON".to_owned() };
        assert!(!is_departure(&odd));
    }

    #[test]
    fn a_device_counter_is_shown_with_its_port_and_rate() {
        let snapshot = |uptime_ms, frames| {
            let mut port = PortStatistics { port: 3, pid: 42, ..PortStatistics::default() };
            port.device.insert("tx_frames".to_owned(), frames);
            Statistics { uptime_ms, ports: vec![port], ..Statistics::default() }
        };
        let args = StatArgs {
            name: "nic".to_owned(),
            reach: ReachArgs {
                domain: DomainArgs { name: "default".to_owned(), root: RootArgs::default() },
                owner: None,
            },
            wait: WaitArgs::default(),
            once: true,
            interval_ms: 1000,
            all: false,
            json: false,
        };
        let text = table(&args, &snapshot(3000, 700), Some(&snapshot(1000, 100)));
        let line = text.lines().find(|line| line.contains("tx_frames")).unwrap();
        assert!(line.contains("port 3 (pid 42)") && line.contains("700") && line.contains("300"), "{line}");
    }
}

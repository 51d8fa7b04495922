//! Connections in the text format of Prometheus.

use std::fmt::Write;

use beeline_socket_rules::{Carrier, Counters};

use super::view::{Connection, Look, Process, name};

/// All counters of all connections.
pub fn text(look: &Look) -> String {
    let mut text = String::new();
    let by_carrier = |of: fn(&Counters) -> u64| {
        move |connection: &Connection| {
            let mut samples = Vec::new();
            for (way, direction) in &connection.directions {
                for (carrier, counters) in
                    [(Carrier::Socket, &direction.socket), (Carrier::Window, &direction.window)]
                {
                    let labels = format!(",direction=\"{way}\",path=\"{}\"", name(carrier));
                    samples.push((labels, of(counters)));
                }
            }
            samples
        }
    };
    let one =
        |of: fn(&Connection) -> u64| move |connection: &Connection| vec![(String::new(), of(connection))];
    each(&mut text, look, "bytes", "Bytes of a connection.", by_carrier(|it| it.bytes));
    each(&mut text, look, "messages", "Calls that moved bytes.", by_carrier(|it| it.messages));
    each(&mut text, look, "fail_overs", "Changes from a window to the socket.", one(|it| it.fail_overs));
    each(
        &mut text,
        look,
        "fail_forwards",
        "Changes from the socket to a window.",
        one(|it| it.fail_forwards),
    );
    each(&mut text, look, "spins", "Waits that ended before a sleep.", one(|it| it.spins));
    each(&mut text, look, "sleeps", "Waits that slept.", one(|it| it.sleeps));
    each(&mut text, look, "rings", "Sleepers that were woken.", one(|it| it.rings));
    each(&mut text, look, "dropped", "Datagrams for which a window had no room.", one(|it| it.dropped));
    heading(&mut text, "beeline_socket_ended_total", "counter", "Connections that have ended.");
    for process in &look.processes {
        for ended in &process.ended {
            let (labels, why) = (of_process(process), ended.why.unwrap_or(""));
            let _ =
                writeln!(text, "beeline_socket_ended_total{{{labels},why=\"{why}\"}} {}", ended.connections);
        }
    }
    heading(&mut text, "beeline_socket_connections", "gauge", "Connections that there are.");
    for process in &look.processes {
        let labels = of_process(process);
        let _ = writeln!(text, "beeline_socket_connections{{{labels}}} {}", process.connections.len());
    }
    text
}

fn heading(text: &mut String, name: &str, kind: &str, help: &str) {
    let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} {kind}");
}

fn each(
    text: &mut String,
    look: &Look,
    what: &str,
    help: &str,
    samples: impl Fn(&Connection) -> Vec<(String, u64)>,
) {
    let name = format!("beeline_socket_{what}_total");
    heading(text, &name, "counter", help);
    for process in &look.processes {
        for connection in &process.connections {
            let ends = format!(
                "{},socket=\"{}\",local=\"{}\",peer=\"{}\"",
                of_process(process),
                connection.socket,
                connection.local,
                connection.peer
            );
            for (labels, value) in samples(connection) {
                let _ = writeln!(text, "{name}{{{ends}{labels}}} {value}");
            }
        }
    }
}

fn of_process(process: &Process) -> String {
    let program = process.program.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("pid=\"{}\",program=\"{program}\"", process.pid)
}

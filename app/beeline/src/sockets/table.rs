//! Connections as a table for a terminal.

use bytesize::ByteSize;
use comfy_table::{CellAlignment, ContentArrangement, Table, presets};

use super::view::{Connection, Look, Process};

/// Columns from which on there are numbers.
const FIRST_NUMBER: usize = 5;

/// The table, and below it what has no row in it.
pub fn text(look: &Look, with_rates: bool, all: bool) -> String {
    let count: usize = look.processes.iter().map(|process| process.connections.len()).sum();
    let mut parts = Vec::new();
    if count > 0 {
        parts.push(table(look, with_rates, all).to_string());
    }
    if all {
        parts.extend(look.processes.iter().filter_map(about));
    }
    let unlisted: u64 = look.processes.iter().map(|process| process.unlisted).sum();
    if unlisted > 0 {
        parts.push(format!("{unlisted} connections had no room on their boards, and are not listed"));
    }
    if look.are_down {
        parts
            .push("windows of the domain are down; `beeline sockets up` lets connections go back".to_owned());
    }
    if parts.is_empty() {
        parts.push(
            "no connection of a program with the socket library; `beeline run -- CMD` starts one".to_owned(),
        );
    }
    parts.join("\n")
}

fn table(look: &Look, with_rates: bool, all: bool) -> Table {
    let mut header = vec!["pid", "program", "local", "peer", "path", "bytes", "by window", "messages"];
    if with_rates {
        header.extend(["bytes/s", "messages/s"]);
    }
    header.extend(["fail-overs", "spins", "sleeps"]);
    if all {
        header.push("why");
    }
    let mut table = Table::new();
    table.load_style(presets::UTF8_BORDERS_ONLY);
    table.set_content_arrangement(ContentArrangement::Dynamic);
    let numbers = header.len() - FIRST_NUMBER - usize::from(all);
    table.set_header(header);
    for column in table.column_iter_mut().skip(FIRST_NUMBER).take(numbers) {
        column.set_cell_alignment(CellAlignment::Right);
    }
    for process in &look.processes {
        for connection in &process.connections {
            table.add_row(row(process, connection, with_rates, all));
        }
    }
    table
}

fn row(process: &Process, connection: &Connection, with_rates: bool, all: bool) -> Vec<String> {
    let mut row = vec![
        process.pid.to_string(),
        process.program.clone(),
        connection.local.clone(),
        connection.peer.clone(),
        connection.path(),
        size(connection.bytes),
        format!("{:.1} %", connection.by_window * 100.0),
        connection.messages.to_string(),
    ];
    if with_rates {
        row.push(connection.bytes_per_second.map(|bytes| size(bytes as u64)).unwrap_or_default());
        row.push(connection.messages_per_second.map(|number| format!("{number:.0}")).unwrap_or_default());
    }
    row.extend([connection.fail_overs, connection.spins, connection.sleeps].map(|number| number.to_string()));
    if all {
        row.push(connection.reason.unwrap_or_default().to_owned());
    }
    row
}

fn size(bytes: u64) -> String {
    ByteSize(bytes).display().iec().to_string()
}

/// A process without connections, and what has ended.
fn about(process: &Process) -> Option<String> {
    let name = format!("{} (pid {}, {})", process.program, process.pid, process.state);
    let ended: Vec<_> = process
        .ended
        .iter()
        .map(|ended| {
            format!("{} {}", ended.connections, ended.why.unwrap_or("without a reason against them"))
        })
        .collect();
    match (ended.as_slice(), process.connections.is_empty()) {
        ([], false) => None,
        ([], true) => Some(format!("{name}: no connection")),
        (ended, _) => Some(format!("{name}: ended: {}", ended.join(", "))),
    }
}

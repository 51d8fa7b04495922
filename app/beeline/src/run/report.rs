//! `beeline run --why`: what carried each connection of the run's processes, and why.

use std::fmt::Write;
use std::path::Path;

use beeline_socket_engine::end_name;
use beeline_socket_rules::{BoardView, Carrier, Life, RowView, Run, boards_of_run};

use crate::out;
use crate::sockets::program_name::shown;

/// Says on standard error what the boards of a run have, and removes them.
pub fn say_why(domain: &Path, run: Run) {
    match boards_of_run(domain, run) {
        Ok(boards) => out::remark(text(&boards).trim_end()),
        Err(error) => out::remark(format_args!("beeline: cannot say why: {error}")),
    }
}

fn text(boards: &[BoardView]) -> String {
    let mut text = String::new();
    if boards.is_empty() {
        text.push_str(
            "beeline: no connection of the run is listed: none moved enough (begin_after_messages, begin_after_bytes), or its program has no \
             library, as one that is linked statically\n",
        );
    }
    for board in boards {
        let (program, pid) = (shown(&board.program), board.pid());
        let runs = if board.life() == Life::Ended { "" } else { ", still running" };
        let _ = writeln!(text, "beeline: {program} (pid {pid}{runs})");
        for row in &board.rows {
            let _ = writeln!(text, "  {} to {}: {}", end_name(row.local), end_name(row.peer), why(row));
        }
        for (why, count) in &board.ended {
            let why = why.map_or("no reason against it", |why| why.sentence());
            let _ = writeln!(text, "  {count} more that ended: {why}");
        }
        if board.unlisted > 0 {
            let _ = writeln!(text, "  {} more, for which the board had no row", board.unlisted);
        }
        if board.rows.is_empty() && board.ended.is_empty() && board.unlisted == 0 {
            let _ = writeln!(text, "  no connection of TCP");
        }
    }
    text
}

fn why(row: &RowView) -> String {
    let both = [row.sending, row.receiving];
    let window: u64 = both.iter().map(|way| way.window.bytes).sum();
    let socket: u64 = both.iter().map(|way| way.socket.bytes).sum();
    let is_up = row.is_open && both.iter().any(|way| way.carrier == Carrier::Window);
    let what = match row.why {
        Some(why) if window > 0 => format!("accelerated, and then left to the kernel: {why}"),
        Some(why) => format!("not accelerated: {why}"),
        None if window > 0 || is_up => "accelerated".to_owned(),
        None => "not accelerated, and nothing was against it".to_owned(),
    };
    match (window, socket) {
        // The kernel's bytes are counted only while the connection may leave it.
        (0, 0) => what,
        (0, _) => format!("{what}; {socket} bytes by the socket"),
        _ => format!("{what}; {window} bytes by windows, {socket} by the socket"),
    }
}

//! What became of each case, and the table of it in `docs/sockets.md`.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use crate::runs::{Case, Mode, Run};

const BEGIN: &str = "<!-- The matrix: generated from results by `cargo test -p beeline-sockets --test conformance`, with BEELINE_WRITE_MATRIX=1. -->";
const END: &str = "<!-- The end of the matrix. -->";
/// Lines of a difference that are shown.
const SHOWN: usize = 6;

/// Cases that see something else than natively, and what that is; the matrix says so.
const KNOWN: &[(&str, &[&str])] = &[
    (
        "datagrams that lie in a window are of the process that had the socket",
        &["udp_fork_unread", "udp_exec_unread"],
    ),
    (
        "a killed process has no unread bytes in its socket: no `POLLERR`; a receive is reset",
        &["unix_killed_unread"],
    ),
];

/// What a case sees that is known to see something else than natively.
pub fn known(case: &str) -> Option<&'static str> {
    KNOWN.iter().find(|(_, cases)| cases.contains(&case)).map(|(what, _)| *what)
}

/// What a case saw with the library, beside what it saw natively.
#[derive(Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The same; and whether its connections were carried by windows at its point.
    Same {
        is_accelerated: bool,
    },
    Differs(String),
}

impl Outcome {
    pub fn of(native: &Run, ours: &Run) -> Self {
        if ours.ended_well() && ours.lines == native.lines {
            return Outcome::Same { is_accelerated: ours.is_accelerated };
        }
        let is_in = |lines: &[String], line: &String| lines.contains(line);
        let missing =
            native.lines.iter().filter(|line| !is_in(&ours.lines, line)).map(|line| format!("- {line}"));
        let added =
            ours.lines.iter().filter(|line| !is_in(&native.lines, line)).map(|line| format!("+ {line}"));
        let differing: Vec<String> = missing.take(SHOWN).chain(added.take(SHOWN)).collect();
        Outcome::Differs(format!("{}\n  {}", ours.end(), differing.join("\n  ")))
    }

    pub fn is_same(&self) -> bool {
        matches!(self, Outcome::Same { .. })
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Outcome::Same { is_accelerated: true } => out.write_str("same, accelerated"),
            Outcome::Same { is_accelerated: false } => out.write_str("same"),
            Outcome::Differs(how) => out.write_str(how),
        }
    }
}

/// A line of the table.
pub struct Row {
    name: String,
    protocol: String,
    what: String,
    two: String,
    one: String,
}

impl Row {
    pub fn all(judged: &[(Case, Mode, Outcome)]) -> Vec<Self> {
        let mut rows: Vec<Row> = Vec::new();
        for (case, mode, outcome) in judged {
            if rows.last().is_none_or(|row| row.name != case.name) {
                let Case { name, protocol, what, .. } = case.clone();
                rows.push(Row { name, protocol, what, two: String::new(), one: String::new() });
            }
            let said = match outcome {
                Outcome::Same { is_accelerated: true } => "the same, accelerated".to_owned(),
                Outcome::Same { is_accelerated: false } => "the same, by the kernel".to_owned(),
                Outcome::Differs(how) => format!("**differs**: {how}"),
            };
            let row = rows.last_mut().unwrap();
            match mode {
                Mode::TwoProcesses => row.two = said,
                Mode::OneProcess => row.one = said,
            }
        }
        rows
    }
}

/// The table of a protocol.
fn table(rows: &[Row], of: &str) -> String {
    let mut table = format!("| case of {of} | what it does | between two processes | in one |\n");
    table += "|---|---|---|---|\n";
    for Row { name, what, two, one, .. } in rows.iter().filter(|row| row.protocol == of) {
        table += &format!("| `{name}` | {what} | {two} | {one} |\n");
    }
    table
}

fn page() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/sockets.md")
}

/// Fails if the page has another matrix than what was seen; writes it where that is asked for.
pub fn check(rows: &[Row]) {
    let page = page();
    let text = fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once(BEGIN).expect("the page has a matrix");
    let (matrix, behind) = rest.split_once(END).expect("the matrix has an end");
    let seen = ["TCP", "UDP", "RDS", "AF_UNIX"].map(|protocol| table(rows, protocol));
    let seen = format!("\n\n{}\n", seen.join("\n"));
    if matrix == seen {
        return;
    }
    if std::env::var_os("BEELINE_WRITE_MATRIX").is_some() {
        fs::write(&page, format!("{before}{BEGIN}{seen}{END}{behind}")).unwrap();
        return;
    }
    let stale: Vec<&str> = seen.lines().filter(|line| !matrix.lines().any(|old| old == *line)).collect();
    panic!("docs/sockets.md has another matrix (BEELINE_WRITE_MATRIX=1 writes it):\n{}", stale.join("\n"));
}

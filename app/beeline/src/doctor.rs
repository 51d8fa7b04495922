//! `beeline doctor`: what this machine can and cannot do, in words, with what to do about it.
//!
//! It measures mappings and kernels only as far as a sentence needs it; figures to compare come from `compare`.

pub mod args;
mod bar;
mod finding;
pub mod mapping;
mod tuning;
mod windows;

use std::fmt::Write;

use beeline_domain::support;
use beeline_ethernet::{AfPacket, AfXdp, UplinkError};
use beeline_mmio::selftest::MemoryType;
use beeline_mmio::{KernelState, MemoryOptions, SharedMemory, clock, cpu, kernel_report};

use args::DoctorArgs;
use finding::{Finding, State};

use crate::failure::Failure;
use crate::{machine, out};

/// Columns that words may take, on a wider screen too.
const COLUMNS: usize = 100;

/// Bytes that may be locked before a window of the default size with its ring no longer fits.
const LOCK_BYTES: u64 = 8 << 20;

/// Runs `beeline doctor`.
pub fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let mut findings = Vec::new();
    machine_facts(&mut findings);
    kernels(&mut findings);
    findings.extend(tuning::look(args.tune));
    memory(&mut findings);
    processes(&mut findings);
    network(&mut findings);
    findings.extend(bar::look(args)?);
    if args.json {
        out::json(&findings)
    } else {
        out::text(in_words(&findings, textwrap::termwidth().min(COLUMNS)))
    }
}

/// Every finding under its heading, wrapped to `columns`, then what follows from all of them.
fn in_words(findings: &[Finding], columns: usize) -> String {
    // Names of kernels and files have hyphens that are no place to break.
    let options = |first| {
        textwrap::Options::new(columns)
            .initial_indent(first)
            .subsequent_indent("      ")
            .word_splitter(textwrap::WordSplitter::NoHyphenation)
    };
    let mut text = String::new();
    let mut section = "";
    for finding in findings {
        if finding.section != section {
            section = finding.section;
            // Writing to a String cannot fail, here and below.
            let _ = writeln!(text, "\n{section}");
        }
        let mark = match finding.state {
            State::Good => "  ✓ ",
            State::Limited => "  ! ",
            State::Missing => "  ✗ ",
            State::Fact => "    ",
        };
        let line = format!("{}: {}", finding.what, finding.words);
        let _ = writeln!(text, "{}", textwrap::fill(&line, options(mark)));
    }
    let _ = writeln!(text, "\n{}", textwrap::fill(&conclusion(findings), options("").subsequent_indent("")));
    text
}

/// Summarises the findings in one sentence.
fn conclusion(findings: &[Finding]) -> String {
    let count = |state| findings.iter().filter(|finding| finding.state == state).count();
    let limits = match count(State::Limited) {
        0 => "without limits".to_owned(),
        1 => "with 1 limit, marked !".to_owned(),
        n => format!("with {n} limits, marked !"),
    };
    match count(State::Missing) {
        0 => format!("Beeline works here, {limits}. `beeline compare` shows the costs."),
        n => format!(
            "Beeline does not work here until what is marked ✗ ({n}) is mended; the rest works {limits}."
        ),
    }
}

fn machine_facts(findings: &mut Vec<Finding>) {
    let cores = cpu::allowed_cores();
    let machine = machine::look(&cores);
    let mut fact = |what: &str, words: String| {
        findings.push(Finding::new("Machine", what, State::Fact, words));
    };
    fact("CPU", machine.cpu);
    fact("kernel", machine.kernel);
    fact("hypervisor", machine.hypervisor);
    let (state, words) = match cores.len() {
        1 => (
            State::Limited,
            "1 core: everything works, but two sides that spin share it; use sleeping waits".to_owned(),
        ),
        n => (State::Good, format!("{n} cores; a latency measurement wants two for itself")),
    };
    findings.push(Finding::new("Machine", "cores", state, words));
    let (state, words) = if clock::is_steady() {
        (State::Good, "the cycle counter runs at a fixed rate and times everything here")
    } else {
        (
            State::Limited,
            "the cycle counter changes its rate; times come from the kernel's clock and cost more",
        )
    };
    findings.push(Finding::new("Machine", "clock", state, words));
}

fn kernels(findings: &mut Vec<Finding>) {
    const SECTION: &str = "Store kernels";
    for (kernel, found) in kernel_report() {
        let state = match found {
            KernelState::RunHere => State::Good,
            KernelState::Wrong => State::Missing,
            KernelState::DeviceOnly | KernelState::NotRunHere(_) | KernelState::NotBuilt(_) => State::Fact,
        };
        findings.push(Finding::new(SECTION, kernel.to_string(), state, found.to_string()));
    }
}

fn memory(findings: &mut Vec<Finding>) {
    const SECTION: &str = "Memory";
    match SharedMemory::create("beeline-doctor", 4096, MemoryOptions::default())
        .and_then(|memory| memory.map())
    {
        Ok(region) => {
            let words = "windows can be shared; no peer can truncate them";
            findings.push(Finding::new(SECTION, "sealed shared memory", State::Good, words));
            findings.extend(mapping::look(SECTION, "shared memory", &region, 0, MemoryType::Cached));
        }
        Err(e) => findings.push(Finding::new(SECTION, "sealed shared memory", State::Missing, e.to_string())),
    }
    let mut add = |what: &str, state, words: String| {
        findings.push(Finding::new(SECTION, what, state, words));
    };
    let limit = rustix::process::getrlimit(rustix::process::Resource::Memlock).current;
    match limit {
        Some(bytes) if bytes <= LOCK_BYTES => add(
            "locked memory",
            State::Limited,
            format!(
                "at most {} KiB (`ulimit -l`); windows work without locking, but may be swapped out; raise it in \
                 /etc/security/limits.conf (memlock) or with LimitMEMLOCK= in a unit",
                bytes / 1024
            ),
        ),
        Some(bytes) => add("locked memory", State::Good, format!("up to {} MiB", bytes >> 20)),
        None => add("locked memory", State::Good, "no limit".to_owned()),
    }
    let huge = MemoryOptions { huge_pages: true, ..MemoryOptions::default() };
    match SharedMemory::create("beeline-doctor", 2 << 20, huge).and_then(|memory| memory.map()) {
        Ok(_) => add("huge pages", State::Good, "there are some; large windows may use them".to_owned()),
        Err(e) => add("huge pages", State::Limited, format!("{e}; small pages work")),
    }
}

/// What no domain works without; the rest costs something where it is missing.
const NEEDED: [&str; 2] = ["pidfd", "paths under /proc/self/fd"];

fn processes(findings: &mut Vec<Finding>) {
    for found in support::findings() {
        let state = match found.is_there {
            true => State::Good,
            false if NEEDED.contains(&found.what) => State::Missing,
            false => State::Limited,
        };
        findings.push(Finding::new("Processes", found.what, state, found.meaning));
    }
}

fn network(findings: &mut Vec<Finding>) {
    let open = rustix::fs::open(
        "/dev/net/tun",
        rustix::fs::OFlags::RDWR | rustix::fs::OFlags::CLOEXEC,
        rustix::fs::Mode::empty(),
    );
    let (state, words) = match open {
        Ok(_) => {
            (State::Good, "/dev/net/tun opens; creating an interface also needs CAP_NET_ADMIN".to_owned())
        }
        Err(e) => (
            State::Limited,
            format!(
                "/dev/net/tun: {e}; everything but `beeline nic --tap` works; load the tun module or run as root"
            ),
        ),
    };
    findings.push(Finding::new("Network", "TAP up-link", state, words));
    let words = "a raw socket can be made; frames of any interface, a system call each";
    findings.push(uplink("AF_PACKET up-link", AfPacket::probe(), words));
    let words =
        "socket, memory and program can be made; whether a driver does zero-copy is found when it is opened";
    findings.push(uplink("AF_XDP up-link", AfXdp::probe(), words));
}

/// An up-link that can be had, or why it cannot.
fn uplink(what: &str, probed: Result<(), UplinkError>, words: &str) -> Finding {
    match probed {
        Ok(()) => Finding::new("Network", what, State::Good, words),
        Err(error) => {
            Finding::new("Network", what, State::Limited, format!("{error}; everything else works"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_up_link_that_cannot_be_had_is_a_limit_with_its_reason() {
        let missing = UplinkError::TakesNone { name: "pcap-in x".into() };
        let found = uplink("AF_XDP up-link", Err(missing), "fine");
        assert_eq!(found.state, State::Limited);
        assert!(found.words.contains("takes no frames") && found.words.contains("everything else works"));
        assert_eq!(uplink("AF_XDP up-link", Ok(()), "fine").words, "fine");
    }

    fn finding(section: &'static str, state: State, words: &str) -> Finding {
        Finding::new(section, "x", state, words)
    }

    #[test]
    fn findings_are_grouped_marked_and_summed_up() {
        let text = in_words(
            &[
                finding("A", State::Good, "y"),
                finding("A", State::Limited, "y"),
                finding("B", State::Fact, "y"),
            ],
            COLUMNS,
        );
        let all = "\nA\n  ✓ x: y\n  ! x: y\n\nB\n    x: y\n\nBeeline works here, with 1 limit, marked !. `beeline \
                   compare` shows the costs.\n";
        assert_eq!(text, all);
        let missing = [finding("A", State::Missing, "y")];
        assert!(
            in_words(&missing, COLUMNS).contains("does not work here until what is marked ✗ (1) is mended")
        );
    }

    #[test]
    fn long_words_are_wrapped_and_indented() {
        let words = "nt-avx512 is a name, and ".repeat(12);
        for columns in [40, 100] {
            let text = in_words(&[finding("A", State::Good, &words)], columns);
            assert!(text.lines().all(|line| line.chars().count() <= columns), "{text}");
            assert!(text.lines().skip(3).any(|line| line.starts_with("      ")), "{text}");
            assert_eq!(text.matches("nt-avx512").count(), 12, "a name was broken:\n{text}");
        }
    }

    #[test]
    fn what_is_needed_is_among_what_is_looked_at() {
        let found: Vec<&str> = support::findings().iter().map(|finding| finding.what).collect();
        assert!(NEEDED.iter().all(|needed| found.contains(needed)), "{found:?}");
    }

    #[test]
    fn every_section_has_something_to_say_on_any_machine() {
        let mut findings = Vec::new();
        machine_facts(&mut findings);
        kernels(&mut findings);
        memory(&mut findings);
        processes(&mut findings);
        network(&mut findings);
        for section in ["Machine", "Store kernels", "Memory", "Processes", "Network"] {
            assert!(
                findings.iter().any(|f| f.section == section && !f.words.is_empty()),
                "{section} is silent"
            );
        }
    }
}

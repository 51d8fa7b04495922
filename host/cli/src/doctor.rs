//! `beeline doctor`: what this machine can and cannot do, in words, with what to do about it.

use std::fmt::Write;

use beeline_domain::support;
use beeline_mmio::{Choice, KernelState, MemoryOptions, SharedMemory, Traffic, clock, cpu, kernel_report};
use serde::Serialize;

use crate::args::DoctorArgs;
use crate::failure::Failure;
use crate::machine;

/// How something stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum State {
    /// As it should be.
    Good,
    /// Works, but costs something; the text says what.
    Limited,
    /// Does not work; the text says what to do.
    Missing,
    /// A fact that is neither.
    Fact,
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
struct Finding {
    section: &'static str,
    what: String,
    state: State,
    words: String,
}

/// Bytes that may be locked before a window of the default size with its ring no longer fits.
const LOCK_BYTES: u64 = 8 << 20;

/// Runs `beeline doctor`.
pub fn run(args: &DoctorArgs) -> Result<(), Failure> {
    let mut findings = Vec::new();
    machine_facts(&mut findings);
    kernels(&mut findings);
    memory(&mut findings);
    processes(&mut findings);
    network(&mut findings);
    crate::bar::look(args.bar.as_deref(), &mut |what, good, words| {
        let state = if good { State::Good } else { State::Limited };
        findings.push(Finding { section: "Real BARs", what, state, words });
    })?;
    if args.json {
        let text = serde_json::to_string_pretty(&findings);
        println!("{}", text.map_err(|e| Failure::new("cannot write JSON").because(e))?);
    } else {
        print!("{}", in_words(&findings));
    }
    Ok(())
}

fn in_words(findings: &[Finding]) -> String {
    let mut text = String::new();
    let mut section = "";
    for finding in findings {
        if finding.section != section {
            section = finding.section;
            // Writing to a String cannot fail.
            let _ = writeln!(text, "\n{section}");
        }
        let mark = match finding.state {
            State::Good => "✓",
            State::Limited => "!",
            State::Missing => "✗",
            State::Fact => " ",
        };
        let _ = writeln!(text, "  {mark} {}: {}", finding.what, finding.words);
    }
    text
}

fn machine_facts(findings: &mut Vec<Finding>) {
    let cores = cpu::allowed_cores();
    let machine = machine::look(&cores);
    let mut fact = |what: &str, words: String| {
        findings.push(Finding { section: "Machine", what: what.to_owned(), state: State::Fact, words });
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
    findings.push(Finding { section: "Machine", what: "cores".to_owned(), state, words });
    let (state, words) = if clock::is_steady() {
        (State::Good, "the cycle counter runs at a fixed rate and times everything here")
    } else {
        (
            State::Limited,
            "the cycle counter changes its rate; times come from the kernel's clock and cost more",
        )
    };
    findings.push(Finding { section: "Machine", what: "clock".to_owned(), state, words: words.to_owned() });
}

fn kernels(findings: &mut Vec<Finding>) {
    const SECTION: &str = "Store kernels";
    for (kernel, found) in kernel_report() {
        let state = match found {
            KernelState::RunHere => State::Good,
            KernelState::Wrong => State::Missing,
            KernelState::DeviceOnly | KernelState::NotRunHere(_) | KernelState::NotBuilt(_) => State::Fact,
        };
        findings.push(Finding {
            section: SECTION,
            what: kernel.to_string(),
            state,
            words: found.to_string(),
        });
    }
    for traffic in [Traffic::Latency, Traffic::Stream] {
        let choice = Choice::timed(traffic);
        let times: Vec<String> =
            choice.timings.iter().map(|timing| format!("{} {:.1} ns", timing.kernel, timing.ns)).collect();
        let words = format!("{} (timed just now: {})", choice.kernel, times.join(", "));
        findings.push(Finding {
            section: SECTION,
            what: format!("for {traffic}"),
            state: State::Fact,
            words,
        });
    }
}

fn memory(findings: &mut Vec<Finding>) {
    let mut add = |what: &str, state, words: String| {
        findings.push(Finding { section: "Memory", what: what.to_owned(), state, words });
    };
    let sealed = SharedMemory::create("beeline-doctor", 4096, MemoryOptions::default());
    match sealed.and_then(|memory| memory.map()) {
        Ok(_) => add(
            "sealed shared memory",
            State::Good,
            "windows can be shared; no peer can truncate them".to_owned(),
        ),
        Err(e) => add("sealed shared memory", State::Missing, e.to_string()),
    }
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

fn processes(findings: &mut Vec<Finding>) {
    for found in support::findings() {
        let state = if found.is_there { State::Good } else { State::Limited };
        findings.push(Finding {
            section: "Processes",
            what: found.what.to_owned(),
            state,
            words: found.meaning.to_owned(),
        });
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
    findings.push(Finding { section: "Network", what: "TAP up-link".to_owned(), state, words });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn findings_are_grouped_and_marked() {
        let finding =
            |section, state| Finding { section, what: "x".to_owned(), state, words: "y".to_owned() };
        let text =
            in_words(&[finding("A", State::Good), finding("A", State::Missing), finding("B", State::Fact)]);
        assert_eq!(text, "\nA\n  ✓ x: y\n  ✗ x: y\n\nB\n    x: y\n");
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

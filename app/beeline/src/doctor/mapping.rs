//! The doctor's look at one mapping: what the CPU makes of it, and whether lines leave a core whole.
//!
//! It measures with `os/mmio`'s self-test and puts the results into words; it opens nothing itself. HotOS'25 §2.1
//! needs a BAR that is write-combining, kPIO+WC §III.A lines that leave whole.

use std::time::Duration;

use beeline_mmio::selftest::{self, MappingReport, MemoryType, WholeLines};
use beeline_mmio::{Region, StoreKernel};
use serde_json::{Value, json};

use super::{Finding, State};

/// Bytes that the self-test overwrites.
pub const SCRATCH_BYTES: usize = 1024;
/// How long each kernel stores while another core watches.
const WATCHED: Duration = Duration::from_millis(20);

/// Measures the mapping by overwriting [`SCRATCH_BYTES`] at `offset` (a multiple of 64), which must mean nothing to
/// whoever else has it. `name` says which mapping it is, `expected` what it should be.
pub fn look(
    section: &'static str,
    name: &str,
    region: &Region,
    offset: usize,
    expected: MemoryType,
) -> Vec<Finding> {
    let report = selftest::mapping(region, offset);
    let mut findings = vec![what_it_is(section, name, &report, expected)];
    if report.memory_type == MemoryType::Uncached {
        // The report has said that lines never leave whole; a store takes too long to watch many.
        return findings;
    }
    if !reads_back(region, offset) {
        let words = format!(
            "nothing is known, because what is stored at offset {offset} does not read back; name other bytes with \
             --scratch"
        );
        findings.push(Finding::new(section, format!("whole lines, {name}"), State::Fact, words));
        return findings;
    }
    let kernels =
        StoreKernel::available().into_iter().filter(|kernel| kernel.is_for_memory() || region.is_device());
    let mut watched = Vec::new();
    for kernel in kernels {
        match selftest::whole_lines(region, offset, kernel, WATCHED) {
            Ok(lines) => watched.push(lines),
            Err(why) => {
                let what = format!("whole lines, {name}");
                findings.push(Finding::new(section, what, State::Limited, why.to_string()));
                return findings;
            }
        }
    }
    findings.extend(whole_or_not(section, name, &watched));
    findings
}

/// Whether a word that is stored is there afterwards: a register may keep some of its bits, or none.
fn reads_back(region: &Region, offset: usize) -> bool {
    let word = region.word(offset);
    [0x5aa5_0ff0_1234_8765, !0x5aa5_0ff0_1234_8765].into_iter().all(|value| {
        word.store(value);
        word.load() == value
    })
}

fn what_it_is(section: &'static str, name: &str, report: &MappingReport, expected: MemoryType) -> Finding {
    let (state, more) = if report.memory_type == expected {
        (State::Good, String::new())
    } else {
        let more = format!(
            "; it should be {expected}: see `dmesg | grep -i -e pat -e mtrr`, and in a guest, what the hypervisor \
             makes of it"
        );
        (State::Limited, more)
    };
    let measured = json!({
        "memory_type": report.memory_type.to_string(),
        "expected": expected.to_string(),
        "load_ns": report.load_ns,
        "store_ns": report.store_ns,
        "flushed_line_ns": report.flushed_line_ns,
    });
    Finding { measured: Some(measured), ..Finding::new(section, name, state, format!("{report}{more}")) }
}

/// One finding for the kernels whose lines were only seen whole, one for those whose lines were seen in part, one for
/// those of which nothing was seen. None of them is a fault: windows need whole words, only `kpio` needs whole lines.
fn whole_or_not(section: &'static str, name: &str, watched: &[WholeLines]) -> Vec<Finding> {
    let group = |is_one: fn(&WholeLines) -> bool| -> Vec<&WholeLines> {
        watched.iter().filter(|lines| is_one(lines)).collect()
    };
    let finding = |what: &str, group: Vec<&WholeLines>, words: String| {
        let measured = Value::Array(group.iter().map(|lines| figures(lines)).collect());
        Finding {
            measured: Some(measured),
            ..Finding::new(section, format!("{what}, {name}"), State::Fact, words)
        }
    };
    let mut findings = Vec::new();
    let whole = group(|lines| lines.seen > 0 && lines.partial == 0);
    if !whole.is_empty() {
        let seen: u64 = whole.iter().map(|lines| lines.seen).sum();
        let words = format!(
            "with {}, as far as another core saw: of {seen} lines none in part",
            listed(&whole, |lines| lines.kernel.to_string())
        );
        findings.push(finding("lines leave whole", whole, words));
    }
    let parts = group(|lines| lines.partial > 0);
    if !parts.is_empty() {
        let words = format!(
            "with {}, so no receiver may count on whole lines; windows do not, only `kpio` does",
            listed(&parts, |lines| format!("{} ({} of {} seen)", lines.kernel, lines.partial, lines.seen))
        );
        findings.push(finding("lines leave in parts", parts, words));
    }
    let unseen = group(|lines| lines.seen == 0);
    if !unseen.is_empty() {
        let kernels = listed(&unseen, |lines| lines.kernel.to_string());
        let words = format!("another core saw none with {kernels}, so nothing is known");
        findings.push(finding("lines not seen", unseen, words));
    }
    findings
}

fn listed(group: &[&WholeLines], one: impl Fn(&WholeLines) -> String) -> String {
    group.iter().map(|lines| one(lines)).collect::<Vec<_>>().join(", ")
}

fn figures(lines: &WholeLines) -> Value {
    json!({
        "kernel": lines.kernel.to_string(),
        "stored": lines.stored,
        "seen": lines.seen,
        "partial": lines.partial,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_cached_and_every_kernel_is_watched() {
        let region = Region::private(4096);
        let findings = look("Mappings", "memory", &region, 1024, MemoryType::Cached);
        assert_eq!(findings[0].state, State::Good, "{findings:?}");
        assert!(findings[0].words.starts_with("this mapping is cached"), "{findings:?}");
        let watched: usize =
            findings[1..].iter().filter_map(|f| f.measured.as_ref()?.as_array().map(Vec::len)).sum();
        let kernels = StoreKernel::available().into_iter().filter(|kernel| kernel.is_for_memory()).count();
        // On one core nobody can watch, and the words say so.
        assert!(watched == kernels || findings[1].words.contains("one core"), "{findings:?}");
        assert_eq!((region.word(1016).load(), region.word(2048).load()), (0, 0), "neighbours");
    }

    #[test]
    fn a_mapping_that_is_not_what_it_should_be_is_told_with_what_to_do() {
        let report = MappingReport {
            memory_type: MemoryType::Uncached,
            load_ns: 650.0,
            store_ns: 60.0,
            flushed_line_ns: 500.0,
        };
        let finding = what_it_is("Real BARs", "resource2_wc", &report, MemoryType::WriteCombining);
        assert_eq!(finding.state, State::Limited);
        assert!(finding.words.contains("should be write-combining: see `dmesg"), "{}", finding.words);
        assert_eq!(finding.measured.unwrap()["memory_type"], "uncached");
    }

    #[test]
    fn kernels_are_grouped_by_what_was_seen_of_their_lines() {
        let lines = |kernel, seen, partial| WholeLines { kernel, stored: 9, seen, partial };
        let findings = whole_or_not(
            "Mappings",
            "memory",
            &[
                lines(StoreKernel::Cached, 7, 2),
                lines(StoreKernel::NtSse2, 8, 0),
                lines(StoreKernel::NtAvx2, 4, 0),
                lines(StoreKernel::Nt8, 0, 0),
            ],
        );
        let words: Vec<String> = findings.iter().map(|f| format!("{}: {}", f.what, f.words)).collect();
        assert_eq!(
            words,
            [
                "lines leave whole, memory: with nt-sse2, nt-avx2, as far as another core saw: of 12 lines none in part",
                "lines leave in parts, memory: with cached (2 of 7 seen), so no receiver may count on whole lines; \
                 windows do not, only `kpio` does",
                "lines not seen, memory: another core saw none with nt8, so nothing is known",
            ]
        );
    }
}

//! Rings of libraries in C between two threads: Concurrency Kit's and DPDK's, each used as well as its calls allow.
//!
//! Both threads, the loops and the clock are in a program in C (`bench/rivals/c/stream.h`, the twin of `peers/spsc.rs`): the
//! calls of both rings are inline functions of a header. A round is a process of its own, which pins its threads to the
//! cores of the settings; its sum is compared here. Not here: ring crates (`peers/spsc.rs`).

use std::path::PathBuf;
use std::process::Command;
use std::time::Duration;

use super::{InC, Library, Workshop};
use crate::{BenchError, Missing, Settings};
use beeline_floor::{Source, Sum};

/// A ring of a library in C.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ring {
    /// Name of the ring in figures.
    pub name: &'static str,
    /// Chunk sizes that are tried; the best one counts.
    pub chunks: &'static [usize],
    program: InC,
    /// Name that the ring's own program has for it.
    variant: &'static str,
}

const CK_RING: InC = InC {
    name: "ck_ring",
    text: include_str!("../../rivals/c/ck_ring.c"),
    library: Some(Library::Debian { name: "ck", package: "libck-dev" }),
};
const RTE_RING: InC = InC {
    name: "rte_ring",
    text: include_str!("../../rivals/c/rte_ring.c"),
    library: Some(Library::Debian { name: "libdpdk", package: "libdpdk-dev" }),
};
const CHUNKS: &[usize] = &crate::peers::spsc::CHUNKS;

/// Every ring that is tried; the best one counts.
pub const ALL: [Ring; 3] = [
    // It publishes each message; how many the receiver waits for made no difference.
    Ring { name: "ck_ring", chunks: &[64], program: CK_RING, variant: "each" },
    Ring { name: "rte_ring", chunks: CHUNKS, program: RTE_RING, variant: "copied" },
    Ring { name: "rte_ring in place", chunks: CHUNKS, program: RTE_RING, variant: "in-place" },
];

impl Ring {
    /// What a figure of it is called.
    pub fn title(&self, chunk: usize) -> String {
        match self.chunks {
            [_] => self.name.to_owned(),
            _ => format!("{} in chunks of {chunk}", self.name),
        }
    }
}

/// A ring whose program can be started.
#[derive(Clone, Debug)]
pub struct Built {
    pub ring: Ring,
    program: PathBuf,
}

/// Builds the rings that can be built here; says of the others why not.
///
/// # Errors
/// [`BenchError::Rival`]: all it needs is installed and it does not compile.
pub fn build(bench: &str, workshop: &Workshop) -> Result<(Vec<Built>, Vec<Missing>), BenchError> {
    let (mut built, mut missing) = (Vec::new(), Vec::new());
    for ring in ALL {
        match workshop.compiled(&ring.program)? {
            Ok(program) => built.push(Built { ring, program }),
            Err(why) => missing.push(Missing { bench: bench.to_owned(), name: ring.name.to_owned(), why }),
        }
    }
    Ok((built, missing))
}

impl Built {
    /// Messages a second through a fresh ring of as many slots as a window has lines, in chunks of this size.
    ///
    /// # Errors
    /// [`BenchError::Rival`]: the program fails; [`BenchError::Floor`]: a message was lost or changed.
    pub fn rate(&self, settings: &Settings, chunk: usize) -> Result<f64, BenchError> {
        let messages = settings.stream_messages();
        let (sum, took) = self.round(settings, chunk)?;
        Source::new().check(self.ring.name, sum, messages, 8)?;
        Ok(beeline_floor::rate(messages, took))
    }

    /// What the receiver made of the messages, and how long they took.
    fn round(&self, settings: &Settings, chunk: usize) -> Result<(Sum, Duration), BenchError> {
        let failed = |what: String| BenchError::Rival { rival: self.ring.name.to_owned(), what };
        let cores = [settings.cores.first, settings.cores.second];
        let numbers = [settings.stream_messages() as usize, settings.window_lines as usize, chunk];
        let output = Command::new(&self.program)
            .arg(self.ring.variant)
            .args(cores.iter().chain(&numbers).map(usize::to_string))
            .output()
            .map_err(|error| failed(format!("cannot start {}: {error}", self.program.display())))?;
        if !output.status.success() {
            let said = String::from_utf8_lossy(&output.stderr);
            return Err(failed(format!("{}: {}", output.status, said.trim())));
        }
        let said = String::from_utf8_lossy(&output.stdout);
        parse(&said).ok_or_else(|| failed(format!("it said {said:?} and not a time and a sum")))
    }
}

/// What a program says of a round: nanoseconds, and the sum in hexadecimal.
fn parse(said: &str) -> Option<(Sum, Duration)> {
    let (nanoseconds, sum) = said.trim().split_once(' ')?;
    let sum = u64::from_str_radix(sum, 16).ok()?;
    Some((Sum::from(sum), Duration::from_nanos(nanoseconds.parse().ok()?)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use beeline_floor::FloorError;
    use beeline_session::Program;

    /// A ring of a few lines, which flips a bit of the 1000th message or forgets it, if asked to.
    const PLAIN: &str = r#"
        #include "start.h"
        #include "message.h"
        struct ring { struct message *slots; size_t mask; _Atomic size_t head, tail; size_t flipped, forgotten; };
        static void *touched(size_t bytes);
        static void open_ring(struct ring *r, const char *variant, size_t slots, size_t chunk) {
            (void)chunk, r->slots = touched(slots * sizeof(*r->slots)), r->mask = slots - 1;
            r->flipped = strcmp(variant, "flips") == 0 ? 999 : SIZE_MAX;
            r->forgotten = strcmp(variant, "forgets") == 0 ? 999 : SIZE_MAX;
            if (strcmp(variant, "dies") == 0) die("no ring today");
        }
        static size_t put(struct ring *r, const struct message *messages, size_t count) {
            size_t tail = r->tail;
            if (tail + count - r->head > r->mask) return 0;
            for (size_t i = 0; i < count; i++) if (tail + i != r->forgotten) r->slots[(tail + i) & r->mask] = messages[i];
            if (r->flipped - tail < count) r->slots[r->flipped & r->mask].words[7] ^= 1;
            r->tail = tail + count;
            return count;
        }
        static size_t take(struct ring *r, size_t wanted, uint64_t *sum) {
            size_t head = r->head;
            if (r->tail - head < wanted) return 0;
            for (size_t i = 0; i < wanted; i++) add(sum, &r->slots[(head + i) & r->mask]);
            r->head = head + wanted;
            return wanted;
        }
        #include "stream.h"
    "#;

    fn rate(
        workshop: &Workshop,
        settings: &Settings,
        variant: &'static str,
    ) -> Option<Result<f64, BenchError>> {
        let program = InC { name: "plain", text: PLAIN, library: None };
        let ring = Ring { name: "plain", chunks: CHUNKS, program, variant };
        let program = workshop.compiled(&program).expect("it compiles").ok()?;
        Some(Built { ring, program }.rate(settings, 16))
    }

    #[test]
    fn ring_that_loses_or_changes_a_word_has_no_figure() -> Result<(), BenchError> {
        let Ok(settings) = Settings::quick() else { return Ok(()) };
        let settings = Settings { stream_thousands: 3, window_lines: 1024, ..settings };
        let workshop = Workshop::new(&Program::at("/nowhere/beeline-bench"))?;
        let Some(sound) = rate(&workshop, &settings, "sound") else {
            println!("skipped: no C compiler");
            return Ok(());
        };
        assert!(sound? > 0.0);
        for variant in ["flips", "forgets"] {
            let wrong = rate(&workshop, &settings, variant);
            assert!(
                matches!(wrong, Some(Err(BenchError::Floor(FloorError::Corrupt { .. })))),
                "{variant}: {wrong:?}"
            );
        }
        match rate(&workshop, &settings, "dies") {
            Some(Err(BenchError::Rival { what, .. })) => assert!(what.contains("no ring today"), "{what}"),
            other => panic!("{other:?}"),
        }
        Ok(())
    }

    #[test]
    fn chunks_that_go_round_the_end_of_a_ring_arrive_whole() -> Result<(), BenchError> {
        let Ok(settings) = Settings::quick() else { return Ok(()) };
        let settings = Settings { stream_thousands: 3, window_lines: 1024, ..settings };
        let workshop = Workshop::new(&settings.program)?;
        let (built, missing) = build("rings", &workshop)?;
        missing.iter().for_each(|missing| println!("{}: {}", missing.name, missing.why));
        assert_eq!(built.len() + missing.len(), ALL.len());
        for built in built {
            // No power of two, so that no lap of the ring ends where a chunk does.
            assert!(built.rate(&settings, 48)? > 0.0, "{}", built.ring.name);
        }
        Ok(())
    }

    #[test]
    fn line_that_is_no_time_and_sum_gives_nothing() {
        let sum = Sum::from(0xff);
        assert_eq!(parse("12 ff\n"), Some((sum, Duration::from_nanos(12))));
        for said in ["", "12", "12 fg", "x ff", "-1 ff", "12 ff 3"] {
            assert_eq!(parse(said), None, "{said:?}");
        }
    }
}

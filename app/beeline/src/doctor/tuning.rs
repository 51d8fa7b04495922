//! How windows are used here: what was chosen, from which timings, for which placement of the cores, and how to have it
//! otherwise.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use beeline_floor::LineTrip;
use beeline_mmio::{KERNEL_VARIABLE, NotChosen, StoreKernel, kernel_from_environment};
use beeline_tuning::{Basis, Found, NotFollowed, Overrides, TUNING_VARIABLE, Timing, kept_file};
use serde_json::json;

use super::finding::{Finding, State};

const SECTION: &str = "Tuning";

/// What is looked up, or timed: `anew` whatever is kept.
pub fn look(anew: bool) -> Vec<Finding> {
    let found = if anew { Found::anew(None) } else { Found::now(None) };
    let file = kept_file().map(|file| file.display().to_string());
    let named = Named { kernel: kernel_from_environment(), tuning: Overrides::from_environment() };
    findings(&found, file.as_deref(), &named, SystemTime::now())
}

/// What the environment names.
struct Named {
    kernel: Result<Option<StoreKernel>, NotChosen>,
    tuning: Result<Overrides, NotFollowed>,
}

fn findings(found: &Found, file: Option<&str>, named: &Named, now: SystemTime) -> Vec<Finding> {
    let fact = |what: &str, words: String| Finding::new(SECTION, what, State::Fact, words);
    let (tuning, receive) = (found.tuning, found.tuning.receive);
    let chosen =
        |what: &str, of: &str, choice: String| fact(what, choice + &from_timings(&found.timings, of));
    let mut findings = vec![Finding { measured: Some(figures(found)), ..origin(found, file, now) }];
    findings.extend([
        chosen("store kernel for latency", "latency", tuning.latency.to_string()),
        chosen("store kernel for streams", "stream", tuning.stream.to_string()),
        chosen("lines tested together", "group", receive.group_lines().to_string()),
        chosen("prefetch", "prefetch", receive.prefetch.to_string()),
        chosen("credits", "credits", format!("pushed for each 1/{} of the window", receive.credit_parts)),
    ]);
    findings.extend(named.findings());
    let again = "beeline doctor --tune times anew";
    let overrides = format!("{KERNEL_VARIABLE}={} and {TUNING_VARIABLE}={receive}", tuning.stream);
    findings.push(fact("to have it otherwise", format!("{overrides} name it; {again}")));
    findings
}

/// Where the tuning comes from, and what it holds for.
fn origin(found: &Found, file: Option<&str>, now: SystemTime) -> Finding {
    let line = |ns: f64| {
        let placement = LineTrip { p50_ns: ns }.placement();
        format!("a line takes {ns:.0} ns there and back ({placement})")
    };
    let age = found.found.map(|then| age(now.duration_since(then).unwrap_or_default()));
    let age = age.as_deref().unwrap_or("never");
    let (state, words) = match (found.basis, found.line_ns) {
        (Basis::Timed, line_ns) => {
            let kept = file
                .map_or("not kept, for want of a cache folder".to_owned(), |file| format!("kept in {file}"));
            (State::Good, format!("timed just now, {}; {kept}", line_ns.map(line).unwrap_or_default()))
        }
        (Basis::Kept, line_ns) => {
            let then = found.line_then_ns.unwrap_or_default();
            let words = format!(
                "timed {age}, when a line took {then:.0} ns; now {}, and it is timed again where that differs by half; kept in {}",
                line_ns.map(line).unwrap_or_default(),
                file.unwrap_or("no file")
            );
            (State::Good, words)
        }
        (Basis::Untimed(why), _) if found.found.is_some() => {
            (State::Limited, format!("not timed now: {why}; windows use what was timed {age}"))
        }
        (Basis::Untimed(why), _) => (State::Limited, format!("not timed: {why}; windows use the defaults")),
    };
    Finding::new(SECTION, "chosen by timing", state, words)
}

/// What a choice was made from.
fn from_timings(timings: &[Timing], of: &str) -> String {
    let mut timed: Vec<&Timing> = timings.iter().filter(|timing| timing.of == of).collect();
    timed.sort_by(|a, b| a.ns.total_cmp(&b.ns));
    if timed.is_empty() {
        return String::new();
    }
    let each: Vec<String> =
        timed.iter().map(|timing| format!("{} {:.2}", timing.candidate, timing.ns)).collect();
    let unit = if of == "latency" { "ns there and back" } else { "ns a message" };
    format!(" (in {unit}: {})", each.join(", "))
}

impl Named {
    fn findings(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        let mut add = |variable: &str, state, words: String| {
            findings.push(Finding::new(SECTION, variable, state, words));
        };
        match &self.kernel {
            Ok(None) => {}
            Ok(Some(kernel)) => {
                add(KERNEL_VARIABLE, State::Fact, format!("{kernel} stores, whatever was timed"));
            }
            Err(error) => add(KERNEL_VARIABLE, State::Limited, format!("ignored: {error}")),
        }
        match &self.tuning {
            Ok(overrides) if *overrides == Overrides::default() => {}
            Ok(_) => {
                add(TUNING_VARIABLE, State::Fact, "says how receivers look, whatever was timed".to_owned())
            }
            Err(error) => add(TUNING_VARIABLE, State::Limited, format!("ignored: {error}")),
        }
        findings
    }
}

/// How long ago, in the largest unit that is whole.
fn age(age: Duration) -> String {
    let seconds = age.as_secs();
    let (count, unit) = match seconds {
        0..60 => return "less than a minute ago".to_owned(),
        60..3600 => (seconds / 60, "minute"),
        3600..86400 => (seconds / 3600, "hour"),
        _ => (seconds / 86400, "day"),
    };
    format!("{count} {unit}{} ago", if count == 1 { "" } else { "s" })
}

fn figures(found: &Found) -> serde_json::Value {
    let (tuning, receive) = (found.tuning, found.tuning.receive);
    let seconds = |then: SystemTime| then.duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    let basis = match found.basis {
        Basis::Timed => "timed",
        Basis::Kept => "kept",
        Basis::Untimed(_) => "untimed",
    };
    json!({
        "basis": basis,
        "line_ns": found.line_ns,
        "line_then_ns": found.line_then_ns,
        "found_unix_s": found.found.map(seconds),
        "latency": tuning.latency.name(),
        "stream": tuning.stream.name(),
        "group_lines": receive.group_lines(),
        "prefetch": receive.prefetch.to_string(),
        "credit_parts": receive.credit_parts,
        "timings": found.timings,
    })
}

#[cfg(test)]
mod tests {
    use beeline_tuning::{NotTimed, Tuning};

    use super::*;

    fn found(basis: Basis, ago: Option<Duration>) -> Found {
        let timing = |of: &str, candidate: &str, ns: f64| Timing {
            of: of.to_owned(),
            candidate: candidate.to_owned(),
            ns,
        };
        Found {
            tuning: Tuning::default(),
            basis,
            line_ns: Some(121.0),
            line_then_ns: Some(117.0),
            found: ago.map(|ago| now() - ago),
            timings: vec![timing("stream", "nt8", 7.5), timing("stream", "cached", 4.25)],
        }
    }

    fn now() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(2_000_000_000)
    }

    fn words(found: &Found, named: &Named) -> Vec<(State, String)> {
        let findings = findings(found, Some("/cache/tuning.json"), named, now());
        findings.into_iter().map(|found| (found.state, format!("{}: {}", found.what, found.words))).collect()
    }

    fn nothing() -> Named {
        Named { kernel: Ok(None), tuning: Ok(Overrides::default()) }
    }

    #[test]
    fn what_was_chosen_is_shown_with_its_timings_placement_and_age() {
        let words = words(&found(Basis::Kept, Some(Duration::from_secs(3 * 3600 + 5))), &nothing());
        assert_eq!(words[0].0, State::Good);
        for part in ["timed 3 hours ago", "took 117 ns", "121 ns there and back (near)", "/cache/tuning.json"]
        {
            assert!(words[0].1.contains(part), "{part}: {words:?}");
        }
        let stream = "store kernel for streams: cached (in ns a message: cached 4.25, nt8 7.50)";
        assert!(words.iter().any(|(_, words)| words == stream), "{words:?}");
        assert!(words.iter().any(|(_, words)| words == "prefetch: write:32"), "{words:?}");
        let last = &words.last().unwrap().1;
        for part in
            ["BEELINE_STORE_KERNEL=cached", "BEELINE_TUNING=prefetch=write:32,group=8,credits=8", "--tune"]
        {
            assert!(last.contains(part), "{part}: {last}");
        }
    }

    #[test]
    fn what_was_not_timed_is_a_limit_with_its_reason() {
        let untimed = Basis::Untimed(NotTimed::OneCore);
        for (ago, expected) in [
            (None, "one core only; windows use the defaults"),
            (Some(Duration::from_secs(86400)), "one core only; windows use what was timed 1 day ago"),
        ] {
            let words = words(&found(untimed, ago), &nothing());
            assert_eq!(words[0].0, State::Limited);
            assert!(words[0].1.contains(expected), "{words:?}");
        }
        assert!(
            words(&found(Basis::Timed, Some(Duration::ZERO)), &nothing())[0].1.contains("timed just now")
        );
    }

    #[test]
    fn what_the_environment_names_is_shown_or_refused() {
        let named = Named { kernel: Ok(Some(StoreKernel::Nt8)), tuning: "group=1".parse() };
        let shown = words(&found(Basis::Timed, None), &named);
        assert!(
            shown.contains(&(State::Fact, "BEELINE_STORE_KERNEL: nt8 stores, whatever was timed".to_owned()))
        );
        assert!(
            shown
                .iter()
                .any(|(state, words)| *state == State::Fact && words.starts_with("BEELINE_TUNING: says"))
        );
        let named =
            Named { kernel: "fast".parse().map(Some).map_err(NotChosen::Unknown), tuning: "x=1".parse() };
        let shown = words(&found(Basis::Timed, None), &named);
        let refused =
            shown.iter().filter(|(state, words)| *state == State::Limited && words.contains("ignored: `"));
        assert_eq!(refused.count(), 2, "{shown:?}");
    }

    #[test]
    fn figures_are_there_for_programs() {
        let findings = findings(&found(Basis::Kept, Some(Duration::ZERO)), None, &nothing(), now());
        let figures = findings[0].measured.as_ref().unwrap();
        assert_eq!((&figures["basis"], &figures["line_ns"]), (&json!("kept"), &json!(121.0)));
        assert_eq!(figures["found_unix_s"], json!(2_000_000_000));
        assert_eq!(figures["timings"][1]["candidate"], json!("cached"));
    }
}

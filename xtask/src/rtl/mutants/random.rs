//! `rtl-mutants --random N`: faults that nobody chose, each put into a copy of the RTL, and which check sees it.
//!
//! A module is drawn by its lines of logic, then an operator ([`super::operators`]), then a place. What the lint lane refuses
//! is seen already, and drawn again. Proofs come first, then the benches in cocotb, then the tests of the compiled NIC. Killed means
//! that a check that passes on the RTL as it is has failed: an `UNKNOWN` of a proof kills nothing. A fault that changes
//! nothing that can be seen (an equivalent one) survives too: only who reads it can tell, so each survivor is written down.

use std::collections::BTreeMap;
use std::fs;
use std::sync::Mutex;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

use similar::TextDiff;

use super::checks::{Check, Checks, Seen};
use super::operators::{Fault, Operator, faults};
use super::{PROVED, copy_of};
use crate::failure::{Context, Failure, Outcome};
use crate::rtl::{Tools, sources, work_folder};
use crate::run::{Program, root};
use crate::workers;

/// Faults that the long lane draws.
pub const LONG_COUNT: u32 = 40;
/// Draws that the lint lane refuses before something else must be wrong.
const DRAWS: u32 = 50;

/// What to draw.
#[derive(Debug, Clone, Copy)]
pub struct Wanted {
    pub count: u32,
    /// The same seed draws the same faults from the same RTL.
    pub seed: Option<u64>,
    /// Of the benches only what the short lane builds.
    pub is_quick: bool,
}

/// A file and what can be wrong in it.
#[derive(Debug)]
struct Source {
    path: String,
    text: String,
    faults: BTreeMap<Operator, Vec<Fault>>,
    /// Lines in which something can be wrong.
    lines: usize,
}

/// A fault that was drawn.
#[derive(Debug)]
struct Mutant<'a> {
    number: u32,
    source: &'a Source,
    fault: &'a Fault,
}

/// Runs them, says what became of each, and writes the survivors down.
pub fn run(wanted: Wanted) -> Outcome {
    let tools = Tools::install()?;
    let work = work_folder("rtl-random")?;
    let seed = wanted.seed.unwrap_or_else(seed_of_now);
    println!("  {} faults by chance, --seed {seed}", wanted.count);
    let sources = sources_with_faults()?;
    let mutants = drawn(&tools, &work, &sources, &mut Chance(seed), wanted.count)?;
    let checks = Checks::find(&tools, &work, wanted.is_quick)?;
    let printed = Mutex::new(());
    let seen = workers::each(&mutants, |mutant| {
        let start = Instant::now();
        let seen = fate(&checks, &work, mutant)?;
        let _one_line = printed.lock().expect("nobody panics while printing");
        println!(
            "  {:>3} {} {:.0} s: {}",
            mutant.number,
            mutant.named(),
            start.elapsed().as_secs_f64(),
            seen.shown()
        );
        Ok(seen)
    });
    let seen: Vec<Seen> = seen.into_iter().collect::<Outcome<_>>()?;
    told(&work, &mutants, &seen)
}

/// The table, the rate, and the file of those that nobody saw.
fn told(work: &str, mutants: &[Mutant<'_>], seen: &[Seen]) -> Outcome {
    println!("  {:<24} {:>4}  {:<16} killed by", "module", "line", "operator");
    let (mut killed, mut survivors) = (0, String::new());
    for (mutant, seen) in mutants.iter().zip(seen) {
        let line = mutant.fault.line(&mutant.source.text);
        println!("  {:<24} {line:>4}  {:<16} {}", mutant.source.stem(), mutant.operator(), seen.shown());
        match seen {
            Seen::Killed { .. } => killed += 1,
            Seen::Survived { tried } => survivors += &format!("{}# tried: {tried}\n\n", mutant.diff()),
        }
    }
    let file = format!("{work}/survivors.diff");
    fs::write(root().join(&file), &survivors).while_doing(format!("write {file}"))?;
    let share = f64::from(100 * killed) / (mutants.len().max(1) as f64);
    println!("  {killed} of {} killed, {share:.0} %; those that survive are in {file}", mutants.len());
    // Some faults change nothing; when most survive, the checks check nothing.
    if 2 * killed as usize >= mutants.len() {
        Ok(())
    } else {
        Err(Failure::new("more faults survive than are killed"))
    }
}

fn seed_of_now() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.map_or(1, |since| since.as_nanos() as u64 % 1_000_000)
}

/// Every file of the list that has logic.
fn sources_with_faults() -> Outcome<Vec<Source>> {
    let mut sources = Vec::new();
    for path in sources::listed()?.into_iter().filter(|path| path.starts_with("nic/rtl/")) {
        let text = fs::read_to_string(root().join(&path)).while_doing(format!("read {path}"))?;
        sources.push(Source::new(path, text));
    }
    sources.retain(|source| source.lines > 0);
    Ok(sources)
}

impl Source {
    fn new(path: String, text: String) -> Self {
        let (mut by_operator, mut lines) = (BTreeMap::<_, Vec<Fault>>::new(), Vec::new());
        for fault in faults(&text) {
            lines.push(fault.line(&text));
            by_operator.entry(fault.operator).or_default().push(fault);
        }
        lines.sort_unstable();
        lines.dedup();
        Source { path, text, faults: by_operator, lines: lines.len() }
    }

    fn stem(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or_default().trim_end_matches(".sv")
    }
}

/// So many different faults that the simulator takes without a warning.
fn drawn<'a>(
    tools: &Tools,
    work: &str,
    sources: &'a [Source],
    chance: &mut Chance,
    count: u32,
) -> Outcome<Vec<Mutant<'a>>> {
    let mut mutants: Vec<Mutant<'a>> = Vec::new();
    for number in 1..=count {
        let mutant = (0..DRAWS).find_map(|_| {
            let (source, fault) = draw(sources, chance)?;
            let is_new = mutants.iter().all(|other| other.source.path != source.path || other.fault != fault);
            let mutant = Mutant { number, source, fault };
            match is_new.then(|| mutant.is_built(tools, work))? {
                Ok(true) => Some(Ok(mutant)),
                Ok(false) => None,
                Err(cause) => Some(Err(cause)),
            }
        });
        mutants.push(
            mutant.ok_or_else(|| Failure::new(format!("{DRAWS} faults that the lint lane refuses")))??,
        );
    }
    Ok(mutants)
}

/// A module by its lines of logic, one of the operators that find something there, and one of its places.
fn draw<'a>(sources: &'a [Source], chance: &mut Chance) -> Option<(&'a Source, &'a Fault)> {
    let mut line = chance.below(sources.iter().map(|source| source.lines).sum());
    let source = sources.iter().find(|source| {
        let is_here = line < source.lines;
        line = if is_here { line } else { line - source.lines };
        is_here
    })?;
    let operator = source.faults.keys().nth(chance.below(source.faults.len()))?;
    let faults = &source.faults[operator];
    faults.get(chance.below(faults.len())).map(|fault| (source, fault))
}

impl Mutant<'_> {
    fn folder(&self, work: &str) -> String {
        format!("{work}/{}", self.number)
    }

    fn operator(&self) -> String {
        format!("{:?}", self.fault.operator)
    }

    fn named(&self) -> String {
        format!("{}:{} {}", self.source.path, self.fault.line(&self.source.text), self.operator())
    }

    fn diff(&self) -> String {
        let mutated = self.fault.applied(&self.source.text);
        let path = &self.source.path;
        TextDiff::from_lines(&self.source.text, &mutated).unified_diff().header(path, path).to_string()
    }

    /// Puts the fault into a copy.
    fn apply(&self, copy: &str) -> Outcome {
        let file = root().join(copy).join(&self.source.path);
        fs::write(&file, self.fault.applied(&self.source.text))
            .while_doing(format!("write {}", file.display()))
    }

    /// Makes the copy with the fault; whether the simulator takes it without a warning.
    fn is_built(&self, tools: &Tools, work: &str) -> Outcome<bool> {
        let copy = self.folder(work);
        copy_of(&PROVED, &copy)?;
        copy_of(&["nic/tb", "nic/tools"], &copy)?;
        self.apply(&copy)?;
        let arguments = ["--lint-only", "-Wall", "--quiet", "nic/tools/verilator.vlt", "-f", sources::LIST];
        let lint = Program::new(tools.bin.join("verilator")).quiet().args(arguments);
        Ok(lint.args(["--top-module", self.source.stem()]).current_dir(&root().join(copy)).succeeds())
    }
}

/// Tries one check after the other until one sees the fault.
fn fate(checks: &Checks<'_>, work: &str, mutant: &Mutant<'_>) -> Outcome<Seen> {
    let copy = mutant.folder(work);
    let mut tried = Vec::new();
    for check in checks.of(&mutant.source.path) {
        let failed = match &check {
            // One copy of the workspace for all, so that little of it is built anew.
            Check::Compiled => checks.compiled(|whole| mutant.apply(whole))?,
            check => checks.failed(check, &copy)?,
        };
        match failed {
            Some(said) if checks.passes_unchanged(&check)? => {
                return Ok(Seen::Killed { check: check.to_string(), said });
            }
            Some(_) => tried.push(format!("{check} (fails without the fault too)")),
            None => tried.push(check.to_string()),
        }
    }
    let tried = if tried.is_empty() { "nothing that reads it".to_owned() } else { tried.join(", ") };
    Ok(Seen::Survived { tried })
}

/// Numbers by chance: SplitMix64.
#[derive(Debug)]
struct Chance(u64);

impl Chance {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    /// Less than `limit`, which is not 0.
    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sources() -> Vec<Source> {
        let source = |path: &str, text: &str| Source::new(path.to_owned(), text.to_owned());
        vec![
            source("nic/rtl/a.sv", "assign a = b && c;\n"),
            source("nic/rtl/b.sv", &"assign a = b + c;\n".repeat(9)),
        ]
    }

    #[test]
    fn the_same_seed_draws_the_same_faults() {
        let sources = sources();
        let picks = |seed: u64| {
            let mut chance = Chance(seed);
            let faults = (0..20).map(|_| draw(&sources, &mut chance).unwrap());
            faults.map(|(source, fault)| (source.path.clone(), fault.clone())).collect::<Vec<_>>()
        };
        assert_eq!(picks(7), picks(7));
        assert_ne!(picks(7), picks(8));
    }

    #[test]
    fn modules_are_drawn_by_their_lines_of_logic() {
        let sources = sources();
        assert_eq!(sources.iter().map(|source| source.lines).collect::<Vec<_>>(), [1, 9]);
        let mut chance = Chance(1);
        let of_b = (0..1000).filter(|_| draw(&sources, &mut chance).unwrap().0.stem() == "b").count();
        assert!((850..950).contains(&of_b), "{of_b} of 1000");
    }

    #[test]
    fn a_survivor_is_written_down_as_a_difference() {
        let sources = sources();
        let fault = &sources[0].faults[&Operator::Swap][0];
        let mutant = Mutant { number: 1, source: &sources[0], fault };
        assert!(mutant.diff().contains("-assign a = b && c;\n+assign a = b || c;\n"));
        assert_eq!(mutant.named(), "nic/rtl/a.sv:1 Swap");
    }
}

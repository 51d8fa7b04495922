//! One case both ways, and what of it has to be the same.

use std::time::Duration;

use beeline_bench::BenchError;
use beeline_bench::programs::{Ended, Ground, Job, Share, Tools, Way};

/// How long a client may take; far more than any needs.
pub const LIMIT: Duration = Duration::from_secs(60);
/// The part of the bytes that windows have to carry.
const LEAST_SHARE: f64 = 0.95;
const SOCKETS_PAGE: &str = include_str!("../../../../docs/sockets.md");

/// How often a case is run that moved less by windows: where other jobs have the cores, a short run may end before its processes have agreed.
const TRIES: usize = 3;

/// What carries the bytes of a case where both ends run by `beeline run`.
#[derive(Clone, Copy, Debug)]
pub enum Carried {
    /// At least 95 %, and so many bytes that a connection which nobody counted does not pass for one.
    ByWindows { at_least: u64 },
    /// Less, for a reason that `docs/sockets.md` has in the same words.
    ByKernel { because: &'static str },
}

/// Why windows carry less of large transfers where cores are busy; a share that depends on what else runs is no result of a test.
pub const LARGE: Carried = Carried::ByKernel {
    because: "Where a window stays full, because its receiver has no core, the sender fills the socket instead: of large transfers on a busy machine the kernel carries a part",
};

/// What a case has seen.
#[derive(Debug, Default)]
pub struct Seen {
    lines: Vec<String>,
    share: Share,
}

impl Seen {
    /// Something that has to be the same both ways.
    pub fn says(&mut self, what: &str, value: impl ToString) {
        self.lines.push(format!("{what}: {}", value.to_string().trim()));
    }

    /// What windows carried of the connections of a program.
    pub fn counts(&mut self, ended: &Ended) {
        self.share += ended.share();
    }

    /// Runs a client, counts its connections, and gives what it said.
    pub fn run(&mut self, ground: &Ground, job: Job) -> Result<String, BenchError> {
        let ended = ground.run(job, LIMIT)?;
        self.counts(&ended);
        Ok(ended.out)
    }
}

/// Runs a case natively, and by `beeline run`.
pub fn both(
    programs: &[&str],
    carried: Carried,
    case: impl Fn(&Ground, &mut Seen) -> Result<(), BenchError>,
) {
    programs.iter().for_each(|program| assert_installed(program));
    let tools = tools();
    let one_way = |way| {
        let mut seen = Seen::default();
        let ground = Ground::new(way, &tools).unwrap();
        if let Err(error) = case(&ground, &mut seen) {
            panic!("{way:?}: {error}\nuntil then: {seen:#?}");
        }
        seen
    };
    let native = one_way(Way::Native);
    assert!(!native.lines.is_empty() && native.share == Share::default(), "{native:?}");
    for left in (0..TRIES).rev() {
        let ours = one_way(Way::Accelerated);
        assert_eq!(ours.lines, native.lines);
        println!("{} bytes by windows, {} by sockets", ours.share.by_windows, ours.share.by_socket);
        match carried.assess(&ours.share) {
            Ok(()) => return,
            Err(why) => assert!(left > 0, "{why}: {:#?}", ours.share),
        }
    }
}

impl Carried {
    /// What is wrong with a share, if anything.
    fn assess(self, share: &Share) -> Result<(), String> {
        match self {
            Carried::ByWindows { at_least } => {
                let is_enough = share.by_window().is_some_and(|part| part >= LEAST_SHARE);
                let is_carried = is_enough && share.by_windows >= at_least;
                is_carried
                    .then_some(())
                    .ok_or(format!("windows carried too little, and {at_least} bytes at least"))
            }
            Carried::ByKernel { because } => {
                let page = SOCKETS_PAGE.split_whitespace().collect::<Vec<_>>().join(" ");
                page.contains(because).then_some(()).ok_or(format!("docs/sockets.md does not say: {because}"))
            }
        }
    }
}

/// The library as it was built beside this test, and the program.
fn tools() -> Tools {
    let library = std::env::current_exe().unwrap().parent().unwrap().join("libbeeline_sockets.so");
    Tools { beeline: env!("CARGO_BIN_EXE_beeline").into(), library }
}

fn assert_installed(program: &str) {
    let folders = std::env::var_os("PATH").unwrap_or_default();
    let system = ["/usr/sbin", "/usr/lib/postgresql"].map(std::path::PathBuf::from);
    let is_there = std::env::split_paths(&folders).chain(system).any(|folder| folder.join(program).exists());
    assert!(
        is_there,
        "{program} is not installed: `cargo xtask real-programs` installs what these tests need, on Debian and as root"
    );
}

/// The first line that begins so, and what is behind that.
pub fn after<'a>(said: &'a str, beginning: &str) -> &'a str {
    let mut lines = said.lines().map(str::trim);
    lines.find_map(|line| line.strip_prefix(beginning)).unwrap_or_else(|| panic!("no {beginning} in {said}"))
}

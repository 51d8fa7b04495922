//! Debian packages that are fetched and unpacked, not installed: a private state of apt, so that any suite can be asked from any
//! Debian, without root, and nothing of the machine changes.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::failure::{Context, Failure, Outcome};
use crate::run::Program;

const MIRROR: &str = "http://deb.debian.org";
const KEYS: &str = "/usr/share/keyrings/debian-archive-keyring.gpg";
/// One call of apt, which may fetch 150 MB over a slow line.
const LIMIT: Duration = Duration::from_mins(15);

/// A folder below the mirror, and a suite in it: `("debian", "bookworm")`.
pub type Suite = (&'static str, &'static str);

/// What apt knows of some suites.
pub struct Apt {
    folder: PathBuf,
}

impl Apt {
    /// Fetches the lists of these suites. apt checks them against Debian's keys, and packages against the lists.
    pub fn of(folder: PathBuf, suites: &[Suite]) -> Outcome<Self> {
        if !Path::new(KEYS).exists() {
            let advice = "install the package debian-archive-keyring";
            return Err(Failure::new(format!(
                "{KEYS} is missing, by which Debian's packages are checked: {advice}"
            )));
        }
        for inside in ["state/lists/partial", "cache/archives/partial", "preferences.d"] {
            let inside = folder.join(inside);
            fs::create_dir_all(&inside).while_doing(format!("make {}", inside.display()))?;
        }
        let line = |(path, suite): &Suite| format!("deb [signed-by={KEYS}] {MIRROR}/{path} {suite} main\n");
        let sources: String = suites.iter().map(line).collect();
        fs::write(folder.join("sources.list"), sources).while_doing("write a list of suites")?;
        fs::write(folder.join("preferences"), "").while_doing("write an empty list of preferences")?;
        fs::write(folder.join("status"), "").while_doing("write an empty list of installed packages")?;
        let apt = Apt { folder };
        fs::write(apt.folder.join("apt.conf"), apt.settings()).while_doing("write settings of apt")?;
        apt.call("apt-get", &["update", "-q"])?;
        Ok(apt)
    }

    /// The newest version of a package in these suites, or in the one that is named.
    pub fn candidate(&self, package: &str, suite: Option<&str>) -> Outcome<String> {
        let shown = self.call("apt-cache", &["madison", package])?;
        let of_suite = |line: &&str| suite.is_none_or(|suite| line.contains(&format!("{suite}/")));
        let versions = shown.lines().filter(of_suite).filter_map(|line| line.split('|').nth(1));
        // apt lists the newest first.
        let newest = versions.map(str::trim).next();
        newest.map(str::to_owned).ok_or_else(|| Failure::new(format!("the mirror has no package {package}")))
    }

    /// The field of what the list says of a package in its newest version.
    pub fn field(&self, package: &str, name: &str) -> Outcome<String> {
        let shown = self.call("apt-cache", &["show", "--no-all-versions", package])?;
        let found = shown.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        found.map(str::to_owned).ok_or_else(|| Failure::new(format!("{package} has no field {name}")))
    }

    /// Whether one version of a package can be had.
    pub fn has(&self, package: &str, version: &str) -> bool {
        self.call("apt-cache", &["madison", package]).is_ok_and(|shown| {
            shown.lines().any(|line| line.split('|').nth(1).is_some_and(|found| found.trim() == version))
        })
    }

    /// Fetches these packages alone, each as `name` or `name=version`.
    pub fn fetch(&self, packages: &[String]) -> Outcome {
        let program = self.program("apt-get").current_dir(&self.archives());
        answer(program.args(["download", "-q"]).args(packages)).map(drop)
    }

    /// Fetches these packages and what they depend on, from the suite that is named before others.
    pub fn fetch_with_dependencies(&self, packages: &[String], suite: Option<&str>) -> Outcome {
        let options = ["install", "-y", "-q", "--download-only", "--no-install-recommends"];
        let program = self.program("apt-get").args(options).args(packages);
        answer(suite.iter().fold(program, |program, suite| program.args(["-t", suite]))).map(drop)
    }

    /// Unpacks what was fetched into `root`, and takes the packages away. Gives their names with versions.
    pub fn unpack(&self, root: &Path) -> Outcome<Vec<String>> {
        fs::create_dir_all(root).while_doing(format!("make {}", root.display()))?;
        let archives = self.archives();
        let mut names = Vec::new();
        for entry in fs::read_dir(&archives).while_doing("list what was fetched")? {
            let path = entry.while_doing("list what was fetched")?.path();
            if path.extension().is_some_and(|extension| extension == "deb") {
                Program::new("dpkg-deb").arg("-x").arg(&path).arg(root).quiet().output()?;
                fs::remove_file(&path).while_doing("take away what was unpacked")?;
                names.push(path.file_stem().unwrap_or_default().to_string_lossy().replace("%3a", ":"));
            }
        }
        names.sort();
        Ok(names)
    }

    fn archives(&self) -> PathBuf {
        self.folder.join("cache/archives")
    }

    fn call(&self, tool: &str, args: &[&str]) -> Outcome<String> {
        answer(self.program(tool).args(args))
    }

    fn program(&self, tool: &str) -> Program {
        let settings = self.folder.join("apt.conf");
        Program::new(tool).quiet().within(Some(LIMIT)).env("LC_ALL", "C").arg("-c").arg(settings)
    }

    /// Settings behind those of the machine, which may name a proxy: other lists, and nothing of what is installed.
    fn settings(&self) -> String {
        let folder = self.folder.display();
        format!(
            r#"Dir::State "{folder}/state";
Dir::State::status "{folder}/status";
Dir::Cache "{folder}/cache";
Dir::Etc::sourcelist "{folder}/sources.list";
Dir::Etc::sourceparts "-";
Dir::Etc::preferences "{folder}/preferences";
Dir::Etc::preferencesparts "{folder}/preferences.d";
APT::Architecture "amd64";
APT::Architectures "amd64";
APT::Sandbox::User "root";
// Otherwise `update` succeeds when it has fetched nothing.
APT::Update::Error-Mode "any";
Acquire::Languages "none";
Acquire::IndexTargets::deb::DEP-11::DefaultEnabled "false";
Acquire::Retries "2";
Acquire::http::Timeout "30";
Debug::NoLocking "1";
"#
        )
    }
}

/// What apt says; if it fails, one sentence with what it calls errors.
fn answer(program: Program) -> Outcome<String> {
    program.output().map_err(|cause| {
        let text = cause.to_string();
        let errors: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("E: ")).collect();
        let why = errors.first().copied().unwrap_or(&text);
        Failure::new(format!("Debian's packages cannot be had from {MIRROR}: {why}"))
    })
}

//! Programs that a test compiles, and how they run.

use std::ffi::OsStr;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The folder of this package.
pub fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The library as it was built beside the test.
pub fn library() -> PathBuf {
    std::env::current_exe().unwrap().parent().unwrap().join("libbeeline_sockets.so")
}

/// A program with libraries preloaded, in order.
pub fn preloaded(libraries: &[&PathBuf], program: impl AsRef<OsStr>) -> Command {
    let list: Vec<&str> = libraries.iter().map(|library| library.to_str().unwrap()).collect();
    let mut command = Command::new(program);
    command.env("LD_PRELOAD", list.join(" "));
    command
}

/// A folder of what a test compiles.
pub struct Ground(tempfile::TempDir);

impl Ground {
    pub fn new() -> Self {
        Ground(tempfile::tempdir().unwrap())
    }

    /// A program with the library preloaded, whose domain is in this folder.
    pub fn preloaded(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = preloaded(&[&library()], program);
        command.env("BEELINE_ROOT", self.0.path());
        command
    }

    /// As [`Ground::preloaded`], where connections leave the kernel with their first bytes.
    pub fn at_once(&self, program: impl AsRef<OsStr>) -> Command {
        let mut command = self.preloaded(program);
        command.env("BEELINE_SOCKETS_BEGIN_AFTER_MESSAGES", "0");
        command
    }

    /// Compiles a file of `tests/programs`.
    pub fn compile(&self, name: &str, flags: &[&str]) -> PathBuf {
        let built = self.0.path().join(name).with_extension("built");
        let mut command = Command::new("cc");
        command.args(["-std=gnu11", "-O1", "-Wall", "-Wextra", "-Wno-nonnull", "-Wno-unused-result"]);
        command.arg("-o").arg(&built).arg(here().join("tests/programs").join(name)).args(flags);
        succeed(&mut command);
        built
    }
}

/// What a program printed, and how it ended.
#[derive(Debug, PartialEq, Eq)]
pub struct Run {
    pub out: String,
    pub err: String,
    pub code: Option<i32>,
    pub signal: Option<i32>,
}

impl Run {
    pub fn of(command: &mut Command) -> Self {
        let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let text = |bytes: Vec<u8>| String::from_utf8_lossy(&bytes).into_owned();
        Run {
            out: text(output.stdout),
            err: text(output.stderr),
            code: output.status.code(),
            signal: output.status.signal(),
        }
    }

    pub fn ended_well(&self) -> bool {
        self.code == Some(0)
    }
}

pub fn succeed(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{out}{err}", output.status);
    out.into_owned()
}

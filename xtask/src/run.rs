//! Running programs: each is echoed before it runs, and a failure says which program and how it ended.

use std::ffi::OsStr;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::bounded;
use crate::cores::{self, Core};
use crate::failure::{Context, Failure, Outcome};

/// The folder of the workspace, where every program is run unless it is told otherwise.
pub fn root() -> PathBuf {
    // CARGO_MANIFEST_DIR is xtask/ as it was when this program was built, so a moved checkout has to be found again.
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap_or(Path::new(".")).to_owned();
    match std::env::var_os("CARGO_MANIFEST_DIR") {
        Some(now) => Path::new(&now).parent().map_or(built, Path::to_owned),
        None => built,
    }
}

/// A program to run.
#[derive(Debug)]
pub struct Program {
    command: Command,
    shown: Vec<String>,
    quiet: bool,
    /// How long it may take, where its output is given back.
    limit: Option<Duration>,
    /// Held until the program has ended.
    cores: Vec<Core>,
}

impl Program {
    /// The program called `name`, in the root of the workspace.
    pub fn new(name: impl AsRef<OsStr>) -> Self {
        let mut command = Command::new(&name);
        command.current_dir(root());
        let shown = vec![shown(name.as_ref())];
        Program { command, shown, quiet: false, limit: None, cores: Vec::new() }
    }

    /// The cargo that runs this program. Settings that cargo and rustup hand to their children are taken out, because
    /// a `+nightly` or a changed RUSTFLAGS of ours must win over them.
    pub fn cargo() -> Self {
        let mut program = Program::new("cargo");
        for name in ["RUSTUP_TOOLCHAIN", "CARGO", "CARGO_MANIFEST_DIR", "CARGO_PKG_NAME", "RUSTC", "RUSTDOC"]
        {
            program.command.env_remove(name);
        }
        program
    }

    /// Adds one argument.
    pub fn arg(mut self, arg: impl AsRef<OsStr>) -> Self {
        self.shown.push(shown(arg.as_ref()));
        self.command.arg(arg);
        self
    }

    /// Adds arguments.
    pub fn args<S: AsRef<OsStr>>(mut self, args: impl IntoIterator<Item = S>) -> Self {
        for arg in args {
            self = self.arg(arg);
        }
        self
    }

    /// Sets an environment variable, shown before the program.
    pub fn env(mut self, name: &str, value: impl AsRef<OsStr>) -> Self {
        self.shown.insert(0, format!("{name}={}", shown(value.as_ref())));
        self.command.env(name, value);
        self
    }

    /// Keeps an environment variable of ours from the program.
    pub fn env_remove(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Runs it elsewhere.
    pub fn current_dir(mut self, folder: &Path) -> Self {
        self.command.current_dir(folder);
        self
    }

    /// Waits for a core, and gives both to a cargo that finds the other one idle. Not inside a job of `workers::each`,
    /// which has its core already.
    pub fn on_cores(mut self) -> Self {
        if std::env::var_os(cores::FOLDER).is_some() {
            self.cores = [Some(Core::take()), Core::take_idle()].into_iter().flatten().collect();
            self.command.env("CARGO_BUILD_JOBS", self.cores.len().to_string());
        }
        self
    }

    /// Does not echo the command.
    pub fn quiet(mut self) -> Self {
        self.quiet = true;
        self
    }

    /// Has [`Self::output`] kill it, with what it has started, when it has not ended by then.
    pub fn within(mut self, limit: Option<Duration>) -> Self {
        self.limit = limit;
        self
    }

    /// Runs it with our output; fails when it does.
    pub fn run(mut self) -> Outcome {
        self.echo();
        let line = self.shown.join(" ");
        let status = self.command.status().while_doing(format!("run `{line}`"))?;
        if status.success() { Ok(()) } else { Err(Failure::new(format!("`{line}` failed: {status}"))) }
    }

    /// Runs it and gives what it wrote to standard output; its errors are shown when it fails.
    pub fn output(mut self) -> Outcome<String> {
        self.echo();
        let line = self.shown.join(" ");
        let ended = bounded::run(&mut self.command, self.limit).while_doing(format!("run `{line}`"))?;
        if ended.hung.is_none() && ended.status.success() {
            return String::from_utf8(ended.out).while_doing(format!("read what `{line}` wrote"));
        }
        let how = match (&ended.hung, self.limit) {
            (Some(_), Some(limit)) => format!("did not end within {} s", limit.as_secs()),
            _ => format!("failed: {}", ended.status),
        };
        let [text, errors] = [&ended.out, &ended.err].map(|bytes| String::from_utf8_lossy(bytes));
        let hung = ended.hung.unwrap_or_default();
        Err(Failure::new(format!("`{line}` {how}\n{text}{errors}{hung}")))
    }

    /// Starts it with both its outputs in one file, and does not wait for it.
    pub fn start(mut self, output: File) -> Outcome<Child> {
        let line = self.shown.join(" ");
        let errors = output.try_clone().while_doing(format!("keep what `{line}` writes"))?;
        self.command.stdin(Stdio::null()).stdout(output).stderr(errors);
        self.command.spawn().while_doing(format!("run `{line}`"))
    }

    /// Whether it runs and succeeds; its output is thrown away.
    pub fn succeeds(mut self) -> bool {
        let silent = self.command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        silent.status().is_ok_and(|status| status.success())
    }

    fn echo(&self) {
        if !self.quiet {
            println!("  $ {}", self.shown.join(" "));
        }
    }
}

fn shown(text: &OsStr) -> String {
    let text = text.to_string_lossy();
    if text.is_empty() || text.contains([' ', '\n', '\'', '"', '*']) {
        format!("'{text}'")
    } else {
        text.into_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failing_program_is_named() {
        let message = Program::new("false").quiet().run().unwrap_err().to_string();
        assert!(message.starts_with("`false` failed"), "{message}");
        let message = Program::new("no-such-program-here").quiet().run().unwrap_err().to_string();
        assert!(message.contains("cannot run `no-such-program-here`"), "{message}");
        assert!(!Program::new("false").succeeds());
    }

    #[test]
    fn output_is_given_back() {
        assert_eq!(Program::new("echo").arg("two words").quiet().output().unwrap(), "two words\n");
        assert!(root().join("Cargo.toml").is_file());
    }
}

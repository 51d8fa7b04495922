//! Programs that use the library, as processes of their own: this very test program, started again, which makes the calls that a test
//! tells it in lines (`actor.rs`).
//!
//! A test file has one test named `role`, which does nothing unless it was started by [`Program::start`]. A line is answered by one line:
//! the name of the code without `SCI_ERR_`, and what the call gave. Programs end when their input ends; a watchdog ends the test if an
//! answer does not come.
#![allow(dead_code, reason = "each test file uses its own part")]

mod actor;
mod data;
mod interrupts;
mod queues;
mod sci;
mod told;

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

/// How long a test may take before it is taken for hung; far more than any needs.
const WATCHDOG: Duration = Duration::from_secs(120);
const IS_PROGRAM: &str = "BEELINE_TEST_PROGRAM";

/// A fabric of its own, with a watchdog that ends the test when it hangs.
pub struct Fabric {
    root: tempfile::TempDir,
    _watchdog: Sender<()>,
}

impl Fabric {
    pub fn new() -> Self {
        let (alive, ended) = channel::<()>();
        let test = std::thread::current().name().unwrap_or("?").to_owned();
        std::thread::spawn(move || {
            if ended.recv_timeout(WATCHDOG) == Err(RecvTimeoutError::Timeout) {
                eprintln!("watchdog: test `{test}` hangs");
                std::process::abort();
            }
        });
        Fabric { root: tempfile::tempdir().unwrap(), _watchdog: alive }
    }

    /// Has programs that begin from now on find this configuration.
    pub fn configure(&self, text: &str) {
        std::fs::write(self.configuration(), text).unwrap();
    }

    /// Takes the file away of which programs were told that are running.
    pub fn remove_configuration(&self) {
        std::fs::remove_file(self.configuration()).unwrap();
    }

    /// Changes who may use the folder in which programs meet.
    pub fn set_mode(&self, mode: u32) {
        let permissions = std::os::unix::fs::PermissionsExt::from_mode(mode);
        std::fs::set_permissions(self.root.path(), permissions).unwrap();
    }

    fn configuration(&self) -> std::path::PathBuf {
        self.root.path().join("beeline.toml")
    }

    /// A program on a node, which has called nothing yet.
    pub fn program(&self, node: &str) -> Program {
        let mut command = Command::new(std::env::current_exe().unwrap());
        if self.configuration().exists() {
            command.env("BEELINE_CONFIG", self.configuration());
        }
        let mut child = command
            .args(["--exact", "role", "--nocapture", "--test-threads=1"])
            .env(IS_PROGRAM, "1")
            .env("BEELINE_NODE", node)
            .env("BEELINE_ROOT", self.root.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let input = child.stdin.take();
        let output = BufReader::new(child.stdout.take().unwrap());
        Program { child, input, output }
    }

    /// A program on a node that has opened the descriptor `sd`.
    pub fn opened(&self, node: &str) -> Program {
        let mut program = self.program(node);
        program.expect("initialize", "OK");
        program.expect("open sd", "OK");
        program
    }
}

/// A process that uses the library.
pub struct Program {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
}

impl Program {
    /// Has it make a call, and says what came of it.
    pub fn call(&mut self, line: &str) -> String {
        writeln!(self.input.as_mut().unwrap(), "{line}").unwrap();
        let mut answer = String::new();
        loop {
            answer.clear();
            let bytes = self.output.read_line(&mut answer).unwrap();
            assert_ne!(bytes, 0, "`{line}`: the program ended without a word");
            // The test runner of the program prints lines of its own.
            if let Some((_, said)) = answer.trim_end().split_once('@') {
                return said.to_owned();
            }
        }
    }

    /// Has it make a call that must give this.
    #[track_caller]
    pub fn expect(&mut self, line: &str, outcome: &str) {
        assert_eq!(self.call(line), outcome, "`{line}`");
    }

    /// Has it make calls that must be done.
    #[track_caller]
    pub fn run(&mut self, lines: &[&str]) {
        for line in lines {
            self.expect(line, "OK");
        }
    }

    /// Has it make a call over and over until it gives this.
    #[track_caller]
    pub fn until(&mut self, line: &str, outcome: &str) {
        let started = Instant::now();
        loop {
            let now = self.call(line);
            if now == outcome {
                return;
            }
            assert!(started.elapsed() < WATCHDOG / 4, "`{line}` still gives {now}, and not {outcome}");
        }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.input = None;
        if std::thread::panicking() {
            let _ = self.child.kill();
        }
        let ended = self.child.wait();
        if !std::thread::panicking() {
            assert!(
                ended.is_ok_and(|status| status.success() || status.code().is_none()),
                "a program did not end well"
            );
        }
    }
}

/// Plays the program of a test that has started this process; returns at once in the test itself.
pub fn play() {
    if std::env::var_os(IS_PROGRAM).is_some() {
        actor::run();
    }
}

//! Both rivals, as both sides, in processes of their own: what is asked comes back. No times are looked at.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A side that ends with the test.
struct Side {
    child: Child,
    output: BufReader<ChildStdout>,
}

impl Side {
    fn start(args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_beeline-bench-rivals"));
        let mut child = command.args(args).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Side { child, output }
    }

    fn tell(&mut self, line: &str) {
        writeln!(self.child.stdin.as_mut().unwrap(), "{line}").unwrap();
    }

    fn line(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line.trim_end().to_owned()
    }

    fn end(mut self) -> bool {
        drop(self.child.stdin.take());
        self.child.wait().unwrap().success()
    }
}

impl Drop for Side {
    fn drop(&mut self) {
        // It may have ended already; both calls are then harmless errors.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The client compares every answer with its request, so ticks mean right answers.
fn echoes(rival: &str) {
    let mut server = Side::start(&[rival, "server", "0"]);
    let ready = server.line();
    let address = ready.strip_prefix("ready ").unwrap();
    // A core for both where there is one only: they take turns then.
    let core = if std::thread::available_parallelism().unwrap().get() > 1 { "1" } else { "0" };
    let mut client = Side::start(&[rival, "client", core, address]);
    assert_eq!(client.line(), "ready");
    for (bytes, trips) in [(10, 20), (100, 30), (32, 1), (10, 5)] {
        let job = format!("echo {bytes} 2 {trips}");
        server.tell(&job);
        assert_eq!(server.line(), "serving");
        client.tell(&job);
        assert_eq!(client.line(), format!("ticks {trips}"));
        let mut ticks = vec![0; trips * 8];
        client.output.read_exact(&mut ticks).unwrap();
        assert!(ticks.as_chunks::<8>().0.iter().all(|ticks| u64::from_le_bytes(*ticks) > 0));
        assert_eq!(server.line(), "served");
    }
    assert!(client.end());
    assert!(server.end());
}

#[test]
fn iceoryx2_echoes() {
    echoes("iceoryx2");
}

#[test]
fn grpc_echoes() {
    echoes("grpc");
}

#[test]
fn iceoryx2_leaves_nothing_behind() {
    let mut server = Side::start(&["iceoryx2", "server", "0"]);
    let ready = server.line();
    let folder = std::path::Path::new(ready.strip_prefix("ready ").unwrap());
    let prefix = folder.file_name().unwrap().to_string_lossy().into_owned();
    let left = || {
        let names = std::fs::read_dir("/dev/shm").unwrap().flatten().map(|entry| entry.file_name());
        names.filter(|name| name.to_string_lossy().starts_with(&prefix)).count()
    };
    assert!(left() > 0 && folder.is_dir());
    assert!(server.end());
    assert_eq!(left(), 0);
    assert!(!folder.exists());
}

#[test]
fn an_unknown_side_is_refused() {
    for args in [&["nobody", "server", "0"][..], &["grpc", "judge", "0"], &[]] {
        assert!(!Side::start(args).end(), "{args:?}");
    }
}

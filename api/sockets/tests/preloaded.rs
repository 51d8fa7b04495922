//! Programs in C, run as they are and with the library preloaded: what they print, and how they end, is the same.

#[expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]
mod ground;

use std::collections::BTreeSet;
use std::fs;
use std::process::Command;

use ground::{Ground, Run, library, preloaded};

/// Runs a program of `tests/programs` both ways.
fn same(name: &str, flags: &[&str], arguments: &[&str]) -> Run {
    let ground = Ground::new();
    let program = ground.compile(name, flags);
    let native = Run::of(Command::new(&program).args(arguments));
    let ours = Run::of(preloaded(&[&library()], &program).args(arguments));
    assert_eq!(ours, native, "{name} {arguments:?}");
    native
}

#[test]
fn each_call_gives_what_it_gives_natively() {
    let run = same("calls.c", &[], &[]);
    assert!(run.ended_well() && run.out.lines().count() > 150, "{run:?}");
}

#[test]
fn signals_interrupt_calls_and_come_of_writes_to_nobody() {
    let run = same("interrupted.c", &["-pthread"], &[]);
    assert!(run.ended_well() && run.out.contains("= -1 EINTR") && run.out.contains("pending: 0"), "{run:?}");
}

#[test]
fn numbers_are_copied_used_again_and_closed_under_a_receive() {
    let run = same("numbers.c", &["-pthread"], &[]);
    assert!(run.ended_well() && run.out.contains("received: 4"), "{run:?}");
}

#[test]
fn children_by_every_way_have_the_connections_that_they_have_natively() {
    let run = same("children.c", &[], &[]);
    assert!(run.ended_well(), "{run:?}");
    assert_eq!(run.out.matches("child\nparent").count(), 9, "{run:?}");
}

#[test]
fn process_that_restricts_itself_or_cancels_a_thread_goes_on() {
    let run = same("restricted.c", &["-pthread"], &[]);
    assert!(run.ended_well() && run.out.contains("cleaned: a frame of the thread"), "{run:?}");
}

#[test]
fn checked_calls_receive_what_has_room_and_end_the_process_for_more() {
    let checked = ["-O2", "-U_FORTIFY_SOURCE", "-D_FORTIFY_SOURCE=2"];
    let run = same("checked.c", &checked, &["16"]);
    assert!(run.ended_well(), "{run:?}");
    for call in ["0", "1", "2"] {
        let run = same("checked.c", &checked, &["17", call]);
        assert_eq!(run.signal, Some(libc::SIGABRT), "{run:?}");
        assert!(run.err.contains("buffer overflow detected"), "{run:?}");
    }
}

#[test]
fn loaded_library_receives_from_connections_of_the_program() {
    let ground = Ground::new();
    let plugin = ground.compile("plugin.c", &["-shared", "-fPIC"]);
    let program = ground.compile("loads.c", &[]);
    let native = Run::of(Command::new(&program).arg(&plugin));
    let ours = Run::of(preloaded(&[&library()], &program).arg(&plugin));
    assert_eq!(ours, native);
    assert_eq!(native.out.matches("plugin\n").count(), 4, "{native:?}");
}

#[test]
fn static_program_runs_as_it_is() {
    let run = same("calls.c", &["-static"], &[]);
    assert!(run.ended_well(), "{run:?}");
}

#[test]
fn other_preloaded_library_is_called_before_and_after_whatever_the_order() {
    let ground = Ground::new();
    let early = ground.compile("early.c", &["-shared", "-fPIC"]);
    let program = ground.compile("calls.c", &[]);
    let native = Run::of(&mut preloaded(&[&early], &program));
    assert!(native.ended_well() && native.err.contains("recv was seen: 1"), "{native:?}");
    for order in [[&early, &library()], [&library(), &early]] {
        let ours = Run::of(&mut preloaded(&order, &program));
        assert_eq!(ours, native, "{order:?}");
    }
}

#[test]
fn python_exchanges_bytes_and_runs_programs() {
    const TEXT: &str = r#"
import os, socket, subprocess, threading
listener = socket.create_server(("127.0.0.1", 0))
def serve():
    for _ in range(3):
        peer, address = listener.accept()
        with peer, peer.makefile("rwb") as stream:
            for line in stream:
                stream.write(line.upper()); stream.flush()
thread = threading.Thread(target=serve); thread.start()
for turn in range(3):
    with socket.create_connection(listener.getsockname(), timeout=30) as peer:
        for size in (1, 100, 100_000):
            peer.sendall(b"x" * size + b"\n")
            got = b""
            while not got.endswith(b"\n"):
                got += peer.recv(65536)
            print(turn, len(got), got[:3])
        print(subprocess.run(["/bin/echo", "child"], capture_output=True).stdout)
        pid = os.fork()
        if pid == 0:
            os._exit(5)
        print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
        peer.settimeout(0.01)
        try: peer.recv(1)
        except TimeoutError as error: print(error)
thread.join()
"#;
    let arguments = ["-c", TEXT];
    let native = Run::of(Command::new("python3").args(arguments));
    assert!(native.ended_well() && native.out.lines().count() == 18, "{native:?}");
    assert_eq!(Run::of(preloaded(&[&library()], "python3").args(arguments)), native);
}

#[test]
fn curl_fetches_what_a_server_has() {
    const SERVER: &str = r#"
import http.server, threading, subprocess, os
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def do_GET(self):
        body = bytes(range(256)) * 4000
        self.send_response(200); self.send_header("Content-Length", str(len(body))); self.end_headers()
        self.wfile.write(body)
    def log_message(self, *arguments): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
url = "http://127.0.0.1:%d/" % server.server_port
print(subprocess.run(["sh", "-c", f"curl -s {url}[1-20] | sha256sum"], capture_output=True).stdout)
server.shutdown()
"#;
    if Command::new("curl").arg("--version").output().is_err() {
        return;
    }
    let arguments = ["-c", SERVER];
    let native = Run::of(Command::new("python3").args(arguments));
    assert!(native.ended_well(), "{native:?}");
    let ground = Ground::new();
    assert_eq!(Run::of(ground.at_once("python3").args(arguments)), native);
}

/// Connections are those of a process with itself, and each is carried before the program begins with it.
#[test]
fn programs_are_the_same_where_no_byte_goes_through_the_kernel() {
    let programs = [
        ("calls.c", &["without splice"][..]),
        ("interrupted.c", &[]),
        ("numbers.c", &[]),
        ("children.c", &[]),
    ];
    for (name, arguments) in programs {
        let ground = Ground::new();
        let program = ground.compile(name, &["-pthread"]);
        // What is a known difference is left out of both runs.
        let native = Run::of(Command::new(&program).args(arguments).env("CARRIED", ""));
        let ours = Run::of(ground.at_once(&program).args(arguments).env("CARRIED", "all"));
        assert_eq!(ours, native, "{name}");
    }
}

#[test]
fn two_programs_exchange_bytes_most_of_which_the_kernel_never_sees() {
    let ground = Ground::new();
    let program = ground.compile("exchange.c", &[]);
    for (rounds, bytes) in [("100000", "64"), ("2000", "100000")] {
        let native = Run::of(Command::new(&program).args([rounds, bytes]));
        let ours = Run::of(ground.preloaded(&program).args([rounds, bytes]));
        assert_eq!((&ours.out, ours.code), (&native.out, Some(0)), "{ours:?}");
        let told: Vec<u64> = ours.err.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [kernel, all] = told[..] else { panic!("{ours:?}") };
        assert!(kernel < all / 2, "the kernel carried {kernel} of {all} bytes");
    }
}

/// A server that forks for each connection, and clients that say what part of their bytes the kernel acknowledged.
const FORKING: &str = r#"
import os, socket, struct, sys, time
def answer(peer):
    while data := peer.recv(4096): peer.sendall(data)
listener = socket.create_server(("127.0.0.1", 0))
server = os.fork()
if server == 0:
    kept, own = [], os.getpid()
    for _ in range(4):
        peer, address = listener.accept()
        if os.fork() == 0:
            listener.close(); answer(peer); os._exit(0)
        if sys.argv[1] == "keeps": kept.append(peer)
        elif sys.argv[1] == "forks":
            # A second child that has it, and does nothing.
            if os.fork() == 0:
                while os.getppid() == own: time.sleep(0.05)
                os._exit(0)
            peer.close()
        else: peer.close()
    os.wait(); os._exit(0)
peers = [socket.create_connection(listener.getsockname(), timeout=60) for _ in range(4)]
for turn in range(6000):
    for peer in peers:
        peer.sendall(b"x" * 64)
        got = b""
        while len(got) < 64: got += peer.recv(64)
for peer in peers:
    acknowledged = struct.unpack_from("Q", peer.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 256), 120)[0]
    print("kernel" if acknowledged > 6000 * 64 // 2 else "windows")
os.kill(server, 9)
"#;

#[test]
fn child_that_serves_what_its_parent_accepted_and_closed_is_carried() {
    let said = |mode: &str| {
        let ground = Ground::new();
        let run = Run::of(ground.preloaded("python3").args(["-c", FORKING, mode]));
        assert!(run.ended_well(), "{run:?}");
        run.out
    };
    assert_eq!(said("closes"), "windows\n".repeat(4));
    // Somebody else has it still, and could use it.
    assert_eq!(said("keeps"), "kernel\n".repeat(4));
}

#[test]
fn list_of_exported_functions_is_what_programs_call() {
    let said =
        ground::succeed(Command::new("nm").args(["-D", "--defined-only", "--format=posix"]).arg(library()));
    let exported: BTreeSet<&str> = said.lines().filter_map(|line| line.split_whitespace().next()).collect();
    let sources = ["src/calls.rs", "src/prepared.rs", "src/asked.rs"];
    let sources: String =
        sources.iter().map(|path| fs::read_to_string(ground::here().join(path)).unwrap()).collect();
    for name in &exported {
        assert!(sources.contains(name), "{name} is exported and is on no list");
    }
    for name in ["read", "__read_chk", "fcntl64", "accept4", "closefrom", "dprintf", "execl", "syscall"] {
        assert!(exported.contains(name), "{name} is not exported");
    }
}

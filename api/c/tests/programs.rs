//! Programs in C and C++: that they compile as users compile, against the library as it is installed, and that they do
//! what they should, with each other and with Rust.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::io::Write;
use std::path::Path;
use std::process::Command;

use beeline_domain::{Domain, DomainConfig};
use beeline_rpc::shm::{Client, ClientOptions, Server, ServerOptions};
use beeline_rpc::{CallError, CallFailure, Method, Replied, Reply, Request, WaitPolicy};

mod support;

use support::{C11, CPP17, HERE, Installed, Running, STRICT, make, run, succeed};

/// The package by its first name, as programs ask that were written before the library had windows.
fn installed() -> &'static Installed {
    support::installed("beeline_rpc")
}

fn server(program: &Path, root: &str) -> Running {
    let mut server = Running::start(program, &["sums", root]);
    assert_eq!(server.line(), "sums is served");
    server
}

fn domain(root: &Path) -> Domain {
    Domain::open(&DomainConfig { root: Some(root.into()), name: "default".into() }).unwrap()
}

#[test]
fn each_header_stands_alone_in_c_and_cpp() {
    let installed = installed();
    for header in [
        "beeline.h",
        "beeline_admission.h",
        "beeline_arena.h",
        "beeline_bytes.h",
        "beeline_notify.h",
        "beeline_rpc.h",
        "beeline_segment.h",
        "beeline_window.h",
    ] {
        let header = installed.folder.path().join("include").join(header);
        for compiler in [["cc", "-std=c11", "-x", "c"], ["c++", "-std=c++17", "-x", "c++"]] {
            let mut command = Command::new(compiler[0]);
            succeed(command.args(&compiler[1..]).args(STRICT).args(["-fsyntax-only"]).arg(&header));
        }
    }
}

#[test]
fn examples_work_with_each_other_in_every_language_and_linkage() {
    let installed = installed();
    let (shared, archive) = (installed.shared(), installed.archive());
    let all_static = [&["-static".to_owned()], &*archive].concat();
    // As a program is linked that does not ask pkg-config.
    let by_first_name: Vec<String> =
        shared.iter().map(|word| word.replace("-lbeeline", "-lbeeline_rpc")).collect();
    for (name, compiler, link) in [
        ("c", &C11[..], &shared),
        ("c-first-name", &C11[..], &by_first_name),
        ("c-archive", &C11[..], &archive),
        ("c-static", &C11[..], &all_static),
        ("cpp", &CPP17[..], &shared),
    ] {
        let serve = installed.compile(compiler, "examples/server.c", &format!("server-{name}"), link);
        let call = installed.compile(compiler, "examples/client.c", &format!("client-{name}"), link);
        let place = tempfile::tempdir().unwrap();
        let root = place.path().to_str().unwrap();
        let mut server = server(&serve, root);
        let out = succeed(Command::new(&call).args(["sums", root, "20000"]));
        assert_eq!(
            out.lines().collect::<Vec<_>>(),
            ["40 + 2 = 42, in 8 bytes", "300000 bytes are as they should be", "20000 calls, sum 200010000"],
            "{name}"
        );
        succeed(Command::new("kill").args(["-TERM", &server.child.id().to_string()]));
        assert_eq!(server.line(), "20002 requests answered");
        assert!(server.child.wait().unwrap().success());
    }
}

#[test]
fn a_client_in_python_calls_a_c_server() {
    if Command::new("python3").arg("--version").output().is_err() {
        eprintln!("there is no python3 here; not tested");
        return;
    }
    let installed = installed();
    let serve = installed.compile(&C11, "examples/server.c", "server-of-python", &installed.shared());
    let place = tempfile::tempdir().unwrap();
    let _server = server(&serve, place.path().to_str().unwrap());
    let mut python = Command::new("python3");
    python.arg(Path::new(HERE).join("examples/client.py")).arg("sums").arg(place.path());
    let out = succeed(python.arg(installed.folder.path().join("lib/libbeeline.so.0")));
    assert_eq!(out, "40 + 2 = 42\n");
}

#[test]
fn a_c_client_waits_for_a_server_that_is_not_there_yet() {
    let installed = installed();
    let program = installed.compile(&CPP17, "tests/foreign.c", "patient", &installed.shared());
    let place = tempfile::tempdir().unwrap();
    let root = place.path().to_str().unwrap();
    // The second waits for the domain too, which it opens as another user would.
    let (later, own_uid) = (format!("{root}/later"), succeed(Command::new("id").arg("-u")));
    for (root, args) in [(root, vec!["wait", root]), (&later, vec!["call", &later, own_uid.trim(), "60000"])]
    {
        let mut client = Running::start(&program, &args);
        assert_eq!(client.line(), "waiting");
        let mut server = Running::start(&program, &["serve", root, "65534"]);
        assert_eq!(server.line(), "ready");
        assert_eq!(client.line(), "across");
        assert!(client.child.wait().unwrap().success());
    }
}

#[test]
fn a_c_client_of_another_user_calls_a_server_that_allows_it_and_no_other() {
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let is_root = succeed(Command::new("id").arg("-u")).trim() == "0";
    if !is_root {
        eprintln!("only root can run a client as another user; not tested");
        return;
    }
    // Not 65534: in a container that leaves users out, that number is nobody in particular.
    let (allowed, other) = (65_533, 65_532);
    let installed = installed();
    let program = installed.compile(&C11, "tests/foreign.c", "foreign", &installed.archive());
    // The program must be there for users who may not enter a temporary folder.
    std::fs::set_permissions(installed.folder.path(), std::fs::Permissions::from_mode(0o755)).unwrap();
    let place = tempfile::tempdir().unwrap();
    std::fs::set_permissions(place.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
    let root = place.path().to_str().unwrap();
    let client = |uid, root: &str, owner_uid, timeout_ms| {
        let mut client = Command::new(&program);
        client.args(["call", root, owner_uid, timeout_ms]).uid(uid).gid(uid);
        client
    };
    let call = |uid, root, owner_uid| {
        let output = client(uid, root, owner_uid, "20").env("BEELINE_ROOT", place.path()).output().unwrap();
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap())
    };
    let (_, said) = call(allowed, root, "0");
    let absent = format!("beeline_rpc_client_connect: uid 0 has no folder {root}/default;");
    assert!(said.starts_with(&absent), "{said}");
    let mut early = Running::spawn(&mut client(allowed, root, "0", "60000"));
    assert_eq!(early.line(), "waiting");
    let mut server = Running::start(&program, &["serve", root, &allowed.to_string()]);
    assert_eq!(server.line(), "ready");
    assert_eq!(early.line(), "across");
    let mut by_default = client(allowed, "-", "0", "60000");
    assert_eq!(succeed(by_default.env("BEELINE_ROOT", place.path())), "waiting\nacross\n");
    let (_, said) = call(other, root, "0");
    assert!(said.contains("65532 is not on the offer's list"), "{said}");
    let (said_first, said) = call(allowed, root, "1");
    assert!(said_first.is_empty() && said.contains("belongs to uid 0, expected 1"), "{said}");
}

#[test]
fn a_c_client_calls_a_rust_server() {
    let installed = installed();
    let call = installed.compile(&C11, "examples/client.c", "client-of-rust", &installed.shared());
    let place = tempfile::tempdir().unwrap();
    let (_server, mut workers) =
        Server::offer(&domain(place.path()), "sums", ServerOptions::default()).unwrap();
    std::thread::spawn(move || {
        let mut serve = |request: &mut Request<'_>, reply: Reply<'_>| -> Replied {
            match request.method() {
                Method(1) => {
                    let sum = (0..request.len() / 8).map(|index| request.word(index)).sum::<u64>();
                    reply.send(&sum.to_le_bytes())
                }
                _ => {
                    let bytes: Vec<u8> = (0..request.word(0)).map(|place| (place * 31 % 251) as u8).collect();
                    reply.send(&bytes)
                }
            }
        };
        workers[0].run(&mut serve, &WaitPolicy::default(), &std::sync::atomic::AtomicBool::new(false));
    });
    let out = succeed(Command::new(call).args(["sums", place.path().to_str().unwrap(), "5000"]));
    assert!(out.ends_with("5000 calls, sum 12502500\n"), "{out}");
}

#[test]
fn a_rust_client_calls_a_c_server() {
    let installed = installed();
    let serve = installed.compile(&C11, "examples/server.c", "server-of-rust", &installed.shared());
    let place = tempfile::tempdir().unwrap();
    let _server = server(&serve, place.path().to_str().unwrap());
    let mut client = Client::connect(&domain(place.path()), "sums", ClientOptions::default()).unwrap();
    let mut answer = Vec::new();
    let words: Vec<u8> = (1..=100u64).flat_map(u64::to_le_bytes).collect();
    client.call(Method(1), &words, &mut answer, None).unwrap();
    assert_eq!(answer, 5050u64.to_le_bytes());
    for bytes in [0u64, 1, 55, 56, 57, 5000, 1 << 20] {
        client.call(Method(2), &bytes.to_le_bytes(), &mut answer, None).unwrap();
        assert!(answer.iter().enumerate().all(|(place, byte)| *byte == (place * 31 % 251) as u8));
        assert_eq!(answer.len() as u64, bytes);
    }
    let refused = client.call(Method(2), &u64::MAX.to_le_bytes(), &mut answer, None).unwrap_err();
    let detail = b"at most 1 MiB"[..].into();
    assert_eq!(refused, CallFailure::Call(CallError::Failed { code: 1, detail }));
    let unknown = client.call(Method(9), &[], &mut answer, None).unwrap_err();
    assert_eq!(unknown, CallFailure::Call(CallError::UnknownMethod));
}

#[test]
fn what_a_program_does_wrong_is_a_code_and_a_text() {
    let installed = installed();
    for (name, compiler) in [("c", &C11[..]), ("cpp", &CPP17[..])] {
        let gnu: Vec<&str> = compiler.iter().copied().chain(["-D_POSIX_C_SOURCE=200809L"]).collect();
        let program =
            installed.compile(&gnu, "tests/misuse.c", &format!("misuse-{name}"), &installed.shared());
        let place = tempfile::tempdir().unwrap();
        let output = run(&program, &[place.path().to_str().unwrap()]);
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{name}: {}\n{out}{err}", output.status);
    }
}

/// Memory that is freed twice, used afterwards or never freed is found, the library's too: it takes its memory from the
/// same allocator.
#[test]
fn what_a_program_does_wrong_costs_no_memory() {
    let installed = installed();
    let sanitize = ["cc", "-std=c11", "-g", "-D_POSIX_C_SOURCE=200809L", "-fsanitize=address,undefined"];
    if !support::has_sanitizers(&sanitize) {
        eprintln!("the C compiler has no sanitizers here; not looked for");
        return;
    }
    let program = installed.compile(&sanitize, "tests/misuse.c", "misuse-sanitized", &installed.archive());
    let place = tempfile::tempdir().unwrap();
    let output = run(&program, &[place.path().to_str().unwrap()]);
    let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}\n{out}{err}", output.status);
}

#[test]
fn a_server_that_is_killed_ends_every_call_and_is_found_again() {
    let installed = installed();
    let shared = installed.shared();
    let serve = installed.compile(&C11, "examples/server.c", "server-to-kill", &shared);
    let endure = installed.compile(&C11, "tests/endure.c", "endure", &shared);
    let place = tempfile::tempdir().unwrap();
    let root = place.path().to_str().unwrap();
    let mut running = server(&serve, root);
    let times = 3;
    let mut client = Running::start(&endure, &["sums", root, &times.to_string()]);
    for _ in 0..times {
        assert_eq!(client.line(), "calling");
        running.kill();
        assert_eq!(client.line(), "lost");
        running = server(&serve, root);
    }
    assert_eq!(client.line(), "calling");
    assert_eq!(client.line(), "every call ended once");
    assert!(client.child.wait().unwrap().success());
}

#[test]
fn worker_client_and_pipe_stand_in_one_epoll() {
    let installed = installed();
    for (name, compiler) in [("c", &C11[..]), ("cpp", &CPP17[..])] {
        let name = format!("readiness-{name}");
        let program = installed.compile(compiler, "examples/readiness.c", &name, &installed.shared());
        let place = tempfile::tempdir().unwrap();
        let out = succeed(Command::new(program).arg(place.path()).arg("2000"));
        assert_eq!(out, "2000 turns\n");
    }
}

#[test]
fn killed_server_wakes_a_client_that_waits_by_descriptor() {
    let installed = installed();
    let shared = installed.shared();
    let serve = installed.compile(&C11, "examples/server.c", "server-to-wait-for", &shared);
    for (name, compiler) in [("c", &C11[..]), ("cpp", &CPP17[..])] {
        let program = installed.compile(compiler, "tests/sleeping.c", &format!("sleeping-{name}"), &shared);
        let place = tempfile::tempdir().unwrap();
        let root = place.path().to_str().unwrap();
        let first = server(&serve, root);
        let mut client = Running::start(&program, &["sums", root]);
        assert_eq!(client.line(), "waiting");
        first.kill();
        assert_eq!(client.line(), "lost");
        let second = server(&serve, root);
        assert_eq!(client.line(), "found");
        succeed(Command::new("kill").args(["-STOP", &second.child.id().to_string()]));
        client.child.stdin.take().unwrap().write_all(b"\n").unwrap();
        assert_eq!(client.line(), "timed out");
        assert!(client.child.wait().unwrap().success());
    }
}

#[test]
fn restarted_server_answers_no_call_of_its_predecessor() {
    let installed = installed();
    for (name, compiler) in [("c", &C11[..]), ("cpp", &CPP17[..])] {
        let gnu: Vec<&str> = compiler.iter().copied().chain(["-D_DEFAULT_SOURCE"]).collect();
        let program =
            installed.compile(&gnu, "tests/restart.c", &format!("restart-{name}"), &installed.shared());
        let place = tempfile::tempdir().unwrap();
        let out = succeed(Command::new(program).arg(place.path()));
        assert_eq!(out, "800 calls ended once\n");
    }
}

#[test]
fn a_client_without_a_server_says_so() {
    let installed = installed();
    let call = installed.compile(&C11, "examples/client.c", "client-alone", &installed.shared());
    let place = tempfile::tempdir().unwrap();
    let output = run(&call, &["nobody", place.path().to_str().unwrap()]);
    let err = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(err.starts_with("client: beeline_rpc_client_connect: ") && err.contains("nobody"), "{err}");
}

#[test]
fn what_is_installed_is_taken_away_again() {
    let built = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let folder = tempfile::tempdir().unwrap();
    let files = || {
        let mut files = Vec::new();
        let mut folders = vec![folder.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().map(Result::unwrap) {
                match entry.file_type().unwrap().is_dir() {
                    true => folders.push(entry.path()),
                    false => files.push(entry.file_name().into_string().unwrap()),
                }
            }
        }
        files.sort();
        files
    };
    make(folder.path(), &["install-built", &format!("built={}", built.display())]);
    let version = concat!("libbeeline.so.", env!("CARGO_PKG_VERSION"));
    let expected = [
        "beeline.h",
        "beeline.pc",
        "beeline_admission.h",
        "beeline_arena.h",
        "beeline_bytes.h",
        "beeline_notify.h",
        "beeline_rpc.h",
        "beeline_rpc.pc",
        "beeline_segment.h",
        "beeline_window.h",
        "libbeeline.a",
        "libbeeline.so",
        "libbeeline.so.0",
        version,
        "libbeeline_rpc.a",
        "libbeeline_rpc.so",
    ];
    assert_eq!(files(), expected);
    make(folder.path(), &["uninstall"]);
    assert_eq!(files(), [""; 0]);
}

//! The program among others: what it writes to pipes and full disks, where its processes meet, what a killed run leaves.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

/// A folder of domains for one test.
struct Root(tempfile::TempDir);

impl Root {
    fn new() -> Self {
        Root(tempfile::tempdir().unwrap())
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn beeline(&self, args: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_beeline"));
        command.args(args.split_whitespace()).env("BEELINE_ROOT", self.path()).current_dir(self.path());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn run(&self, args: &str) -> (Option<i32>, String, String) {
        words(self.beeline(args).output().unwrap())
    }

    /// A NIC that ends with its standard input, once it has said that it is ready.
    fn nic(&self, args: &str) -> Nic {
        let mut command = self.beeline(&format!("nic --until-stdin-closes {args}"));
        let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        Nic(child)
    }

    fn files(&self, folder: &str) -> Vec<String> {
        let entries = std::fs::read_dir(self.path().join(folder)).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }
}

fn words(output: Output) -> (Option<i32>, String, String) {
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

/// A NIC that ends with the test, however the test ends.
struct Nic(Child);

impl Drop for Nic {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn closed_pipe_ends_every_command_quietly() {
    let root = Root::new();
    for args in
        ["platforms epyc-7543-cx6dx", "trace", "platforms", "--help", "generate completions bash", "doctor"]
    {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let (code, _, err) = words(root.beeline(args).stdout(writer).output().unwrap());
        assert_eq!((code, err.as_str()), (Some(0), ""), "beeline {args}");
    }
}

#[test]
fn full_disk_is_a_failure_with_its_reason() {
    let root = Root::new();
    for args in ["platforms epyc-7543-cx6dx", "trace", "--help", "generate completions bash"] {
        let full = File::options().write(true).open("/dev/full").unwrap();
        let (code, _, err) = words(root.beeline(args).stdout(full).output().unwrap());
        assert_eq!(code, Some(1), "beeline {args}");
        assert!(
            err.starts_with("beeline: cannot write to standard output: No space left"),
            "beeline {args}: {err}"
        );
    }
}

#[test]
fn core_that_is_not_there_is_refused_before_anything_is_ready() {
    let root = Root::new();
    for args in ["nic --core 1000", "kv serve --core 1000", "ping --cores 0,1000", "compare --cores 0,1000"] {
        let (code, out, err) = root.run(args);
        assert_eq!((code, out.as_str()), (Some(1), ""), "beeline {args}: {err}");
        assert!(
            err.contains("may not run on core 1000") && err.lines().count() == 2,
            "beeline {args}: {err}"
        );
        assert!(root.files("").is_empty(), "beeline {args} opened a domain");
    }
}

#[test]
fn loopback_nic_is_named_when_ping_meets_one() {
    let root = Root::new();
    let _nic = root.nic("--loopback");
    let (code, _, err) = root.run("ping --nic nic --count 10 --cores 0,0");
    assert!(code == Some(1) && err.contains("without --loopback"), "{err}");
}

#[test]
fn nic_that_comes_within_the_timeout_is_asked_and_without_one_nothing_waits() {
    let root = Root::new();
    for args in
        ["stat --once --json --timeout-ms 60000", "ping --nic nic --timeout-ms 60000 --count 10 --cores 0,0"]
    {
        let mut waiting = root.beeline(args).spawn().unwrap();
        // It says so when it has found no NIC and waits.
        let mut said = BufReader::new(waiting.stderr.take().unwrap()).lines();
        assert_eq!(
            said.next().unwrap().unwrap(),
            "waiting for NIC nic in domain default, 60 s at most; Ctrl-C ends it",
            "beeline {args}"
        );
        let nic = root.nic("");
        let output = waiting.wait_with_output().unwrap();
        assert!(output.status.success() && !output.stdout.is_empty(), "beeline {args}: {:?}", said.next());
        drop(nic);
    }
    for args in ["stat --once", "ping --nic nic --cores 0,0"] {
        let (code, _, err) = root.run(args);
        assert!(code == Some(1) && err.contains("try: beeline nic --name nic --domain default"), "{err}");
        assert!(!err.contains("waiting"), "{err}");
    }
    let (code, _, err) = root.run("ping --timeout-ms 5");
    assert!(code == Some(2) && err.contains("--nic"), "{err}");
    let (code, _, err) = root.run("ping --owner 5 --cores 0,0");
    assert!(code == Some(1) && err.contains("--nic NAME beside --owner"), "{err}");
}

#[test]
fn option_goes_before_variable_and_an_error_names_the_folder() {
    let (root, other) = (Root::new(), Root::new());
    let option = format!("--root {}", other.path().display());
    let nic = root.nic(&option);
    assert_eq!(
        (root.files("").len(), other.files("default")),
        (0, vec!["nic.lock".into(), "nic.sock".into()])
    );
    assert_eq!(root.run(&format!("stat --once {option}")).0, Some(0));
    let (code, _, err) = root.run("stat --once");
    let looked = root.path().join("default/nic.sock");
    assert!(
        code == Some(1) && err.contains(looked.to_str().unwrap()) && err.contains("BEELINE_ROOT"),
        "{err}"
    );
    // The variable, and without a login session's variables.
    assert_eq!(other.beeline("stat --once").env_remove("XDG_RUNTIME_DIR").status().unwrap().code(), Some(0));
    drop(nic);
    let relative = root.beeline("kv get k").env("BEELINE_ROOT", "here").output().unwrap();
    assert!(words(relative).2.contains("BEELINE_ROOT is here, which is no absolute path"));
    let command = format!("kv get k --timeout-ms 1 --domain nobody-{}", std::process::id());
    let in_namespace = words(root.beeline(&command).env("BEELINE_ROOT", "@net").output().unwrap()).2;
    assert!(in_namespace.contains("nobody offers @beeline/"), "{in_namespace}");
}

#[test]
fn folder_of_another_user_is_the_default_one_of_that_user() {
    let output =
        Root::new().beeline("stat --once --owner 54329").env_remove("BEELINE_ROOT").output().unwrap();
    let err = words(output).2;
    assert!(err.contains("uid 54329 has no folder /tmp/beeline-54329"), "{err}");
}

#[test]
fn folder_that_others_may_write_to_is_refused() {
    use std::os::unix::fs::PermissionsExt;
    let root = Root::new();
    std::fs::set_permissions(root.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
    for args in ["stat --once".to_owned(), format!("kv get k --root {}", root.path().display())] {
        let (code, _, err) = root.run(&args);
        assert!(code == Some(1) && err.contains("others could use it"), "beeline {args}: {err}");
    }
}

#[test]
fn killed_nic_and_killed_run_leave_nothing_after_the_next_run() {
    let root = Root::new();
    let mut nic = root.nic("");
    nic.0.kill().unwrap();
    nic.0.wait().unwrap();
    assert_eq!(root.files("default"), ["nic.lock", "nic.sock"]);
    let (code, _, err) = root.run("stat --once");
    assert!(code == Some(1) && !err.contains("process 0"), "{err}");
    assert!(root.files("default").is_empty());
    // A private NIC whose parent is killed ends by itself; its folder stays until the next run.
    let mut ping = root.beeline("ping --count 100000000 --cores 0,0").spawn().unwrap();
    while root.files("").len() < 2 {
        assert!(ping.try_wait().unwrap().is_none(), "ping ended");
        std::thread::yield_now();
    }
    ping.kill().unwrap();
    ping.wait().unwrap();
    let left: Vec<String> = root.files("").into_iter().filter(|name| name.starts_with("private-")).collect();
    let is_left = |root: &Root| root.files("").iter().any(|name| left.contains(name));
    while is_left(&root) {
        root.run("ping --count 10 --size 10 --cores 0,0");
    }
}

#[test]
fn warning_into_a_pipe_has_no_colour_and_is_printed_once() {
    let root = Root::new();
    // A frame of which the capture holds 60 of 100 bytes.
    let mut bytes: Vec<u8> = [0xa1b2_c3d4_u32, 2 | 4 << 16, 0, 0, 65535, 1, 0, 0, 60, 100]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    bytes.extend([2; 60]);
    std::fs::write(root.path().join("snap.pcap"), bytes).unwrap();
    let (code, _, err) = root.run("send snap.pcap --out out.pcap");
    assert_eq!((code, err.matches("cut frames are sent as captured").count()), (Some(0), 1), "{err}");
    assert!(!err.contains('\u{1b}'), "{err:?}");
}

#[test]
fn report_in_a_missing_folder_is_refused_and_no_folder_is_made() {
    let root = Root::new();
    let (code, out, err) = root.run("compare --cores 0,0 --report missing/x.html");
    assert_eq!((code, out.as_str()), (Some(1), ""));
    assert!(err.contains("cannot write missing/x.html") && !root.path().join("missing").exists(), "{err}");
}

#[test]
fn completions_have_platform_names_and_no_hidden_command() {
    let root = Root::new();
    for shell in ["bash", "zsh", "fish"] {
        let (_, text, _) = root.run(&format!("generate completions {shell}"));
        assert!(text.contains("epyc-7543-cx6dx"), "{shell} completes no platform");
        assert!(
            !["private-nic", "private__nic", "__worker"].iter().any(|name| text.contains(name)),
            "{shell} completes a hidden command"
        );
    }
}

#[test]
fn man_pages_have_the_sections_that_users_look_for() {
    let root = Root::new();
    assert_eq!(root.run("generate man --out man").0, Some(0));
    let mut page = String::new();
    File::open(root.path().join("man/beeline-nic.1")).unwrap().read_to_string(&mut page).unwrap();
    for words in [
        ".SH \"EXAMPLES\"\n.nf\n  beeline nic  ",
        ".SH \"FILES\"",
        ".SH \"ENVIRONMENT\"",
        ".SH \"EXIT STATUS\"",
        "[\\fB\\-\\-root\\fR \\fIDIR\\fR]",
        "BEELINE_ROOT",
    ] {
        assert!(page.contains(words), "no {words:?} in {page}");
    }
    assert!(!page.contains("EXTRA") && !root.files("man").contains(&"beeline-private-nic.1".to_owned()));
}

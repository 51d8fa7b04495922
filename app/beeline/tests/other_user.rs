//! The program as two users: what one offers to the other, what it keeps to itself, and what both are told.
//!
//! Only root can become another user; anybody else skips this, and says so.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// On the list of what root offers here.
const LISTED: u32 = 54_321;
/// On no list.
const UNLISTED: u32 = 54_322;
/// Longer than any start takes; a wait for it ends as soon as what is waited for is there.
const LONG_MS: &str = "60000";

/// A folder for one test, in which there is a copy of the program that every user may run.
struct TwoUsers(tempfile::TempDir);

impl TwoUsers {
    /// `None`, and a word about it, where this process cannot become other users.
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        if folder.path().metadata().unwrap().uid() != 0 {
            eprintln!("skipped: only root can become another user");
            return None;
        }
        if Command::new("true").uid(UNLISTED).gid(UNLISTED).status().is_err() {
            eprintln!("skipped: this user namespace has no uid {UNLISTED}");
            return None;
        }
        let users = TwoUsers(folder);
        users.let_pass(users.path(), 0o711);
        // By another process: a descriptor of this one that writes the file would be in whatever another test forks just now,
        // and a file that somebody can write to is not run.
        let copied = Command::new("cp").arg(env!("CARGO_BIN_EXE_beeline")).arg(users.program()).status();
        assert!(copied.unwrap().success());
        users.let_pass(&users.program(), 0o755);
        Some(users)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn program(&self) -> PathBuf {
        self.path().join("beeline")
    }

    fn let_pass(&self, path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// A command of a user in the domains of root, which lie in a folder of this test.
    fn command(&self, uid: u32, args: &str) -> Command {
        let mut command = Command::new(self.program());
        command.args(args.split_whitespace()).arg("--root").arg(self.path().join("root"));
        command.env_remove("BEELINE_ROOT").current_dir("/").stdin(Stdio::null()).uid(uid).gid(uid);
        command
    }

    /// Exit code, standard output and standard error of a command of a user who is not root.
    fn run(&self, uid: u32, args: &str) -> (Option<i32>, String, String) {
        let output = self.command(uid, args).args(["--owner", "0"]).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        (output.status.code(), text(output.stdout), text(output.stderr))
    }

    fn fail(&self, uid: u32, args: &str) -> String {
        let (code, out, err) = self.run(uid, args);
        assert_eq!((code, out.as_str()), (Some(1), ""), "beeline {args}: {err}");
        err
    }

    /// Something that root offers; the lines that it says on standard error before clients can connect.
    fn serve(&self, args: &str, lines: usize) -> (Ended, Vec<String>) {
        let mut child = self.command(0, args).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().unwrap();
        let said = BufReader::new(child.stderr.take().unwrap()).lines().take(lines).map(Result::unwrap);
        let said = said.collect();
        (Ended(child), said)
    }
}

/// A process that ends with the test, however the test ends.
struct Ended(Child);

impl Drop for Ended {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn listed_user_has_the_store_and_an_unlisted_one_is_told_what_to_do() {
    let Some(users) = TwoUsers::new() else { return };
    let serve = format!("kv serve --allow-uid {LISTED},{}", LISTED + 9);
    let (_store, said) = users.serve(&serve, 2);
    let root = users.path().join("root");
    let invitation =
        format!("for uid 54321, 54330 too, by: --owner 0 --domain default --root {}", root.display());
    assert_eq!(said[1], invitation);
    assert_eq!(users.run(LISTED, "kv set k mine"), (Some(0), String::new(), String::new()));
    assert_eq!(users.run(LISTED, "kv get k").1, "mine");
    let refused = users.fail(UNLISTED, "kv get k");
    assert!(refused.contains("uid 54322 is not on the offer's list"), "{refused}");
    assert!(refused.contains("--allow-uid 54322"), "{refused}");
    // The folder is open to others now; what lets nobody in stays closed.
    let (_own, _) = users.serve("kv serve --name own", 1);
    let closed = users.fail(LISTED, "kv get k --name own");
    assert!(closed.contains("uid 54321 may not connect to") && closed.contains("own.sock"), "{closed}");
    assert!(closed.contains("--allow-uid 54321"), "{closed}");
    // Whose the folder is must be said, and offering is the owner's alone.
    let unsaid = users.command(LISTED, "kv get k").output().unwrap();
    assert_eq!(unsaid.status.code(), Some(1));
    let offered = users.command(LISTED, "kv serve --name theirs").output().unwrap();
    assert_eq!(offered.status.code(), Some(1));
}

#[test]
fn listed_user_has_ports_and_statistics_of_the_nic_and_an_unlisted_one_has_none() {
    let Some(users) = TwoUsers::new() else { return };
    let (_nic, said) = users.serve(&format!("nic --allow-uid {LISTED}"), 2);
    assert!(said[1].starts_with("for uid 54321 too, by: --owner 0"), "{said:?}");
    let ping = format!("ping --nic nic --count 10 --size 10 --cores 0,0 --json --timeout-ms {LONG_MS}");
    let (code, rows, err) = users.run(LISTED, &ping);
    assert_eq!(code, Some(0), "{err}");
    let rows: serde_json::Value = serde_json::from_str(&rows).unwrap();
    assert_eq!(rows[0]["count"], 10);
    let (_, snapshot, err) = users.run(LISTED, "stat --once --json");
    let snapshot: serde_json::Value = serde_json::from_str(&snapshot).unwrap_or_else(|_| panic!("{err}"));
    assert_eq!(snapshot["rounds"]["ports_opened"], 2);
    for args in [ping.as_str(), "stat --once"] {
        let refused = users.fail(UNLISTED, args);
        assert!(refused.contains("uid 54322 is not on the offer's list"), "beeline {args}: {refused}");
        assert!(!refused.contains("try: "), "beeline {args} advises to start what is there: {refused}");
    }
}

#[test]
fn folder_of_another_user_that_is_absent_or_closed_or_somebody_elses_is_named() {
    let Some(users) = TwoUsers::new() else { return };
    let root = users.path().join("root");
    let name = root.display();
    for args in ["kv get k --timeout-ms 20", "stat --once", "ping --nic nic"] {
        let absent = users.fail(LISTED, args);
        assert!(absent.contains(&format!("uid 0 has no folder {name}")), "beeline {args}: {absent}");
        assert!(absent.contains("try: have uid 0 run: beeline "), "beeline {args}: {absent}");
        assert!(absent.contains("--allow-uid 54321"), "beeline {args}: {absent}");
    }
    // Its owner has a domain there and offers nothing to others.
    let (_store, _) = users.serve("kv serve", 1);
    let closed = users.fail(LISTED, "kv get k --timeout-ms 20");
    assert!(
        closed.contains(&format!("uid 54321 may not enter the folder {name}; its owner opens it")),
        "{closed}"
    );
    let wrong = users.command(LISTED, "kv get k --owner 7 --timeout-ms 20").output().unwrap();
    let wrong = String::from_utf8(wrong.stderr).unwrap();
    assert!(wrong.contains("belongs to uid 0, expected 7") && wrong.contains("`--owner 0`"), "{wrong}");
    // A folder above it lets nobody through: the owner hears of it, and so does the other user.
    users.let_pass(users.path(), 0o700);
    let above = users.path().display();
    let (_other, said) = users.serve(&format!("kv serve --name other --allow-uid {LISTED}"), 3);
    assert!(said[2].contains(&format!("but {above} lets no other user through")), "{said:?}");
}

#[test]
fn command_of_another_user_waits_until_the_owner_offers_to_it() {
    let Some(users) = TwoUsers::new() else { return };
    // The folder is there and closed; one that is not there yet is waited for in the tests of `os/domain`.
    let (_own, _) = users.serve("kv serve --name own", 1);
    let mut get = users.command(LISTED, &format!("kv get k --timeout-ms {LONG_MS}"));
    let mut get = Ended(get.args(["--owner", "0"]).stderr(Stdio::piped()).spawn().unwrap());
    // It says that it waits: from here on it has looked at least once, and found the folder closed.
    let mut said = BufReader::new(get.0.stderr.take().unwrap()).lines();
    assert_eq!(
        said.next().unwrap().unwrap(),
        "waiting for store kv in domain default, 60 s at most; Ctrl-C ends it"
    );
    let (_store, _) = users.serve(&format!("kv serve --allow-uid {LISTED}"), 2);
    assert_eq!(get.0.wait().unwrap().code(), Some(3), "nothing is under the key");
    assert_eq!(said.next().unwrap().unwrap(), "beeline: nothing under key k in store kv");
}

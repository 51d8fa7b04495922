//! Programs of two users, which share connections where both say that they want to.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

#[allow(dead_code, reason = "each test uses a part of it")]
mod ground;

use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::{PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use ground::{Ground, Run, library, succeed};

/// A user who owns nothing. Not 65534: in a container that leaves users out, that number is nobody in particular.
const OTHER: u32 = 65_533;

/// A folder that both users may enter, with a program, the library, and a folder for the domains of each.
struct Both {
    folder: tempfile::TempDir,
    program: PathBuf,
}

impl Both {
    /// `None`, and a word about it, where this process cannot become another user.
    fn new() -> Option<Self> {
        if !rustix::process::geteuid().is_root() {
            eprintln!("skipped: only root can start a process of another user");
            return None;
        }
        let folder = tempfile::tempdir().unwrap();
        let allow =
            |path: &Path, mode| std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
        allow(folder.path(), 0o711);
        for uid in [0, OTHER] {
            let domains = folder.path().join(uid.to_string());
            std::fs::create_dir(&domains).unwrap();
            chown(domains, Some(uid), Some(uid)).unwrap();
        }
        let ground = Ground::new();
        let program = folder.path().join("many");
        // A process of its own copies it: a child that another test starts meanwhile would have a descriptor of this one that writes to it, and what
        // somebody has open for writing is not executed.
        succeed(Command::new("cp").arg(ground.compile("many.c", &[])).arg(&program));
        succeed(Command::new("cp").arg(library()).arg(folder.path().join("library.so")));
        allow(&program, 0o755);
        allow(&folder.path().join("library.so"), 0o755);
        let both = Both { folder, program };
        if Command::new("true").uid(OTHER).status().is_err() {
            eprintln!("skipped: this user namespace has no uid {OTHER}");
            return None;
        }
        Some(both)
    }

    fn command(&self, uid: u32, other_users: bool, arguments: &str) -> Command {
        let mut command = Command::new(&self.program);
        command.uid(uid).gid(uid).current_dir("/").args(arguments.split_whitespace());
        command.env("LD_PRELOAD", self.folder.path().join("library.so"));
        command.env("BEELINE_ROOT", self.folder.path().join("%u"));
        command.env("BEELINE_SOCKETS_BEGIN_AFTER_MESSAGES", "0");
        command.env("BEELINE_SOCKETS_OTHER_USERS", other_users.to_string());
        command
    }

    /// A server of root's and a client of the other user's that opens so many connections twice; what the client says.
    fn run(&self, [server_wants, client_wants]: [bool; 2], connections: u32) -> String {
        let mut server = self.command(0, server_wants, "").stdout(Stdio::piped()).spawn().unwrap();
        let mut said = BufReader::new(server.stdout.take().unwrap());
        let mut port = String::new();
        said.read_line(&mut port).unwrap();
        let asks = format!("{} {connections} 2 2 0", port.trim_start_matches("port ").trim());
        let client = Run::of(&mut self.command(OTHER, client_wants, &asks));
        if !client.ended_well() {
            server.kill().unwrap();
        }
        let mut all = String::new();
        said.read_to_string(&mut all).unwrap();
        assert!(client.ended_well() && server.wait().unwrap().success(), "{client:?}\n{all}");
        client.out
    }
}

#[test]
fn connections_of_two_users_are_carried_where_both_want_to() {
    let Some(both) = Both::new() else { return };
    let said = both.run([true, true], 40);
    assert_eq!(said.matches("40 of 40 carried").count(), 2, "{said}");
}

#[test]
fn connections_of_two_users_are_the_kernels_where_one_of_them_does_not_want_to() {
    let Some(both) = Both::new() else { return };
    let said = both.run([true, false], 3);
    assert_eq!(said.matches("0 of 3 carried").count(), 2, "{said}");
}

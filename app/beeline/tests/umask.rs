//! The program under a umask that takes rights from the owner: what it makes has exact modes, and nothing stays broken.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Who runs the program where the test is root's: root passes by every mode.
const PLAIN_USER: u32 = 54_321;

/// A folder of a user who is not root, with a copy of the program.
struct Home(tempfile::TempDir);

impl Home {
    fn new() -> Self {
        let home = Home(tempfile::tempdir().unwrap());
        // By another process: a descriptor of this one that writes the file would be in whatever another test forks just now,
        // and a file that somebody can write to is not run.
        let copied =
            Command::new("cp").arg(env!("CARGO_BIN_EXE_beeline")).arg(home.path().join("beeline")).status();
        assert!(copied.unwrap().success());
        if is_root() {
            std::os::unix::fs::chown(home.path(), Some(PLAIN_USER), Some(PLAIN_USER)).unwrap();
        }
        home
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn root(&self) -> PathBuf {
        self.path().join("root")
    }

    /// The program under a umask, its domains in a folder that is not there yet.
    fn beeline(&self, umask: &str, args: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", "umask \"$0\" && exec ./beeline \"$@\"", umask]).args(args.split_whitespace());
        command.env("BEELINE_ROOT", self.root());
        command.current_dir(self.path()).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        if is_root() {
            command.uid(PLAIN_USER).gid(PLAIN_USER);
        }
        command
    }

    /// A NIC that ends with its standard input, once it has said that it is ready.
    fn nic(&self, umask: &str) -> Ended {
        let mut child =
            self.beeline(umask, "nic --until-stdin-closes").stdin(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let mut errors = String::new();
        if line != "ready\n" {
            std::io::Read::read_to_string(&mut child.stderr.take().unwrap(), &mut errors).unwrap();
        }
        assert_eq!(line, "ready\n", "umask {umask}: {errors}");
        Ended(child)
    }

    fn mode(&self, path: &str) -> u32 {
        std::fs::symlink_metadata(self.path().join(path)).unwrap().permissions().mode() & 0o777
    }

    fn set_mode(&self, path: &str, mode: u32) {
        std::fs::set_permissions(self.path().join(path), std::fs::Permissions::from_mode(mode)).unwrap();
    }
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}

fn words(output: Output) -> (Option<i32>, String) {
    (output.status.code(), String::from_utf8(output.stderr).unwrap())
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
fn everything_made_has_its_mode_whatever_the_umask() {
    for umask in ["0777", "0277", "0477", "0", "0022"] {
        let home = Home::new();
        let nic = home.nic(umask);
        for (path, mode) in [
            ("root", 0o700),
            ("root/default", 0o700),
            ("root/default/nic.lock", 0o600),
            ("root/default/nic.sock", 0o600),
        ] {
            assert_eq!(home.mode(path), mode, "{path} under umask {umask}");
        }
        let (code, err) = words(home.beeline(umask, "stat --once").output().unwrap());
        assert_eq!(code, Some(0), "umask {umask}: {err}");
        drop(nic);
        // What the killed one left, the next one takes over.
        drop(home.nic(umask));
    }
}

#[test]
fn many_that_start_at_once_under_a_hostile_umask_all_find_the_folder() {
    let home = Home::new();
    let started: Vec<Child> = (0..8).map(|_| home.beeline("0777", "stat --once").spawn().unwrap()).collect();
    for child in started {
        let (_, err) = words(child.wait_with_output().unwrap());
        assert!(err.contains("try: beeline nic"), "{err}");
    }
}

#[test]
fn domain_that_an_earlier_umask_closed_is_opened_again() {
    let home = Home::new();
    drop(home.nic("0022"));
    for mode in [0o000, 0o500, 0o300] {
        home.set_mode("root/default/nic.lock", 0o000);
        home.set_mode("root/default", mode);
        drop(home.nic("0022"));
        assert_eq!(
            (home.mode("root/default"), home.mode("root/default/nic.lock")),
            (0o700, 0o600),
            "{mode:04o}"
        );
    }
}

#[test]
fn root_that_keeps_its_owner_out_is_refused_with_the_remedy() {
    let home = Home::new();
    drop(home.nic("0022"));
    for mode in [0o000, 0o500] {
        home.set_mode("root", mode);
        let (code, err) = words(home.beeline("0022", "stat --once").output().unwrap());
        let root = home.root();
        let remedy =
            format!("has mode {mode:04o}, which keeps its owner out; run: chmod 700 {}", root.display());
        assert!(code == Some(1) && err.contains(&remedy), "{err}");
        assert_eq!(home.mode("root"), mode, "a folder that the user named is the user's to change");
    }
}

//! What the programs of a test have in common: a kernel, or a file alone.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::OnceLock;

/// What separates a process from all others of this machine.
const UNSHARE: [&str; 9] =
    ["unshare", "--user", "--map-root-user", "--pid", "--fork", "--kill-child", "--ipc", "--net", "--uts"];

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ground {
    /// The kernel, and a folder where the domain of the fabric is.
    Kernel,
    /// A file. Each program has namespaces of its own where the kernel allows that.
    File,
}

impl Ground {
    pub fn name(self) -> &'static str {
        match self {
            Ground::Kernel => "kernel",
            Ground::File => "file",
        }
    }

    /// A folder in which programs meet, four of them at the same time.
    pub fn place(self) -> tempfile::TempDir {
        self.place_of(4)
    }

    /// As [`Ground::place`], of so many programs.
    pub fn place_of(self, members: usize) -> tempfile::TempDir {
        let place = match self {
            Ground::Kernel => tempfile::tempdir().unwrap(),
            Ground::File => tempfile::tempdir_in("/dev/shm").unwrap(),
        };
        if self == Ground::File {
            let text = format!(
                "[fabric]\nmemory = {:?}\nmembers = {members}\nbytes = {}\n",
                memory(place.path()),
                64 << 20
            );
            std::fs::write(place.path().join("beeline.toml"), text).unwrap();
        }
        place
    }

    /// Takes all of the file away but so many bytes.
    pub fn cut(self, place: &Path, bytes: u64) {
        assert_eq!(self, Ground::File);
        std::fs::File::options().write(true).open(memory(place)).unwrap().set_len(bytes).unwrap();
    }

    /// Deletes the file, which the next program makes anew.
    pub fn delete(self, place: &Path) {
        assert_eq!(self, Ground::File);
        std::fs::remove_file(memory(place)).unwrap();
    }

    /// A program that finds the others in a folder.
    pub fn command(self, program: impl AsRef<OsStr>, place: &Path, node: &str) -> Command {
        let mut command = match self {
            Ground::File if can_unshare() => {
                let mut command = Command::new(UNSHARE[0]);
                command.args(&UNSHARE[1..]).arg(program);
                command
            }
            _ => Command::new(program),
        };
        command.env("BEELINE_ROOT", place).env("BEELINE_NODE", node);
        let config = place.join("beeline.toml");
        if config.exists() {
            command.env("BEELINE_CONFIG", config);
        }
        command
    }

    /// The number of the program itself, which a child may be that is alone in its namespaces.
    pub fn process_id(self, child: &Child) -> u32 {
        let id = child.id();
        if self == Ground::Kernel {
            return id;
        }
        let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children"));
        // `unshare` waits for the program, which is its only child.
        children.ok().and_then(|children| children.trim().parse().ok()).unwrap_or(id)
    }
}

fn memory(place: &Path) -> PathBuf {
    place.join("memory")
}

/// Whether this machine lets a process leave its namespaces.
fn can_unshare() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        let tried = Command::new(UNSHARE[0]).args(&UNSHARE[1..]).arg("true").output();
        let can = tried.is_ok_and(|output| output.status.success());
        if !can {
            eprintln!("programs share their namespaces: this machine does not let them leave those");
        }
        can
    })
}

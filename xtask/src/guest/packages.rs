//! What a guest is made of: packages of Debian, fetched once into `target/guest` and unpacked there.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde::{Deserialize, Serialize};

use super::apt::{Apt, Suite};
use super::sysroot::Sysroot;
use crate::failure::{Context, Failure, Outcome};
use crate::install;
use crate::run::root;

const FOLDER: &str = "target/guest";
/// Raised when what is brought, or how it is unpacked, changes: everything is brought anew.
const RECIPE: u32 = 1;
/// Kernel and emulator that the lane was seen to pass with; while the mirror has them, they are taken. Otherwise the newest of the
/// same suite is.
const KERNEL: (&str, &str) = ("6.1.0-56-amd64", "6.1.192-2");
const QEMU: &str = "1:11.1.3+ds-1~bpo13+1";
const STABLE: [Suite; 2] = [("debian", "bookworm"), ("debian-security", "bookworm-security")];
const BACKPORTS: [Suite; 2] = [("debian", "trixie"), ("debian", "trixie-backports")];
/// Programs of the guest. `usr-is-merged` spares Perl.
const PROGRAMS: [&str; 9] = [
    "busybox-static",
    "dash",
    "ethtool",
    "iperf3",
    "iproute2",
    "iputils-ping",
    "kmod",
    "pciutils",
    "usr-is-merged",
];

/// What was brought, as it is noted beside it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Note {
    recipe: u32,
    kernel: String,
    kernel_version: String,
    qemu_version: String,
    has_vfio_user: bool,
}

/// Packages that are there, unpacked.
#[derive(Debug, Clone)]
pub struct Packages {
    folder: PathBuf,
    note: Note,
}

impl Packages {
    /// Fetches what is not there. That it fails says that something cannot be had on this machine, and nothing of the project.
    pub fn bring() -> Outcome<Self> {
        let folder = root().join(FOLDER);
        fs::create_dir_all(&folder).while_doing(format!("make {}", folder.display()))?;
        // Another run that brings the same is waited for.
        let lock = File::create(folder.join("lock")).while_doing("make a lock for target/guest")?;
        lock.lock().while_doing("lock target/guest")?;
        if let Some(note) = read(&folder) {
            return Ok(Packages { folder, note });
        }
        if std::env::consts::ARCH != "x86_64" {
            return Err(Failure::new(
                "guests are emulated on x86-64 only: their emulator is a program for it",
            ));
        }
        for (program, package) in [("apt-get", "apt"), ("apt-cache", "apt"), ("dpkg-deb", "dpkg")] {
            if !install::has_program(program) {
                return Err(Failure::new(format!(
                    "`{program}` is missing, which brings Debian's packages: install {package}"
                )));
            }
        }
        let note = fetch(&folder)?;
        let text = serde_json::to_string_pretty(&note).while_doing("write what was fetched")?;
        fs::write(folder.join("packages.json"), text).while_doing("note what was fetched")?;
        Ok(Packages { folder, note })
    }

    /// Where they are, with room for what is made of them.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The guest's files.
    pub fn guest(&self) -> Sysroot {
        Sysroot::new(self.folder.join("root"))
    }

    /// The emulator's files.
    pub fn emulator(&self) -> Sysroot {
        Sysroot::new(self.folder.join("qemu"))
    }

    /// The kernel as `uname -r` names it.
    pub fn kernel(&self) -> &str {
        &self.note.kernel
    }

    /// The version of the kernel's package.
    pub fn kernel_version(&self) -> &str {
        &self.note.kernel_version
    }

    pub fn qemu_version(&self) -> &str {
        &self.note.qemu_version
    }

    /// Whether the emulator is a client of vfio-user.
    pub fn has_vfio_user(&self) -> bool {
        self.note.has_vfio_user
    }
}

fn read(folder: &Path) -> Option<Note> {
    let note: Note = serde_json::from_str(&fs::read_to_string(folder.join("packages.json")).ok()?).ok()?;
    (note.recipe == RECIPE).then_some(note)
}

fn fetch(folder: &Path) -> Outcome<Note> {
    println!(
        "  fetching a kernel, its headers, a few programs and QEMU (apt, into {FOLDER}, 750 MB unpacked): guests are made of them"
    );
    let start = Instant::now();
    for old in ["root", "qemu", "apt", "made"] {
        let old = folder.join(old);
        if old.exists() {
            fs::remove_dir_all(&old).while_doing(format!("remove {}", old.display()))?;
        }
    }
    let apt = folder.join("apt");
    let stable = Apt::of(apt.join("stable"), &STABLE)?;
    let (kernel, kernel_version) = fetch_guest(&stable, &folder.join("root"))?;
    let (qemu_version, has_vfio_user) = match fetch_qemu(&apt, folder) {
        Ok(version) => (version, true),
        Err(why) => {
            println!(
                "  QEMU with vfio-user cannot be had, so the one of bookworm is taken, which has ivshmem only:\n  {why}"
            );
            (fetch_older_qemu(&stable, folder)?, false)
        }
    };
    fs::remove_dir_all(&apt).while_doing("remove apt's lists")?;
    println!(
        "  brought Linux {kernel_version} ({kernel}) and QEMU {qemu_version} in {:.0} s",
        start.elapsed().as_secs_f64()
    );
    Ok(Note { recipe: RECIPE, kernel, kernel_version, qemu_version, has_vfio_user })
}

/// The kernel, what modules are built with, and programs. Gives the kernel's release and version.
fn fetch_guest(stable: &Apt, root: &Path) -> Outcome<(String, String)> {
    let (mut release, mut version) = (KERNEL.0.to_owned(), KERNEL.1.to_owned());
    if !stable.has(&format!("linux-image-{release}"), &version) {
        let newest = stable.field("linux-image-amd64", "Depends")?;
        let named = newest.strip_prefix("linux-image-").and_then(|rest| rest.split_once(" (= "));
        let named =
            named.ok_or_else(|| Failure::new(format!("linux-image-amd64 names no kernel: {newest}")))?;
        (release, version) = (named.0.to_owned(), named.1.trim_end_matches(')').to_owned());
        println!(
            "  the mirror has no Linux {} any more, so the newest of bookworm is taken: {version}",
            KERNEL.1
        );
    }
    let (series, _) = release.split_once(".0-").unwrap_or((&release, ""));
    let [image, headers, common] = ["image", "headers", "headers"].map(|kind| format!("linux-{kind}-"));
    let names = [image + &release, headers + &release, common + &release.replace("-amd64", "-common")];
    let mut packages = names.map(|name| format!("{name}={version}")).to_vec();
    // Tools of the build, which serve every kernel of the series and have a version of their own.
    packages.push(format!("linux-kbuild-{series}"));
    stable.fetch(&packages)?;
    stable.fetch_with_dependencies(&PROGRAMS.map(str::to_owned), None)?;
    say(&stable.unpack(root)?);
    Ok((release, version))
}

/// QEMU with a client of vfio-user, which Debian has in backports only.
fn fetch_qemu(apt: &Path, folder: &Path) -> Outcome<String> {
    let (_, suite) = BACKPORTS[1];
    let backports = Apt::of(apt.join("backports"), &BACKPORTS)?;
    let version = if backports.has("qemu-system-x86", QEMU) {
        QEMU.to_owned()
    } else {
        let newest = backports.candidate("qemu-system-x86", Some(suite))?;
        println!(
            "  the mirror has no QEMU {QEMU} any more, so the newest of trixie-backports is taken: {newest}"
        );
        newest
    };
    let packages = [format!("qemu-system-x86={version}"), "seabios".to_owned()];
    backports.fetch_with_dependencies(&packages, Some(suite))?;
    say(&backports.unpack(&folder.join("qemu"))?);
    Ok(version)
}

fn fetch_older_qemu(stable: &Apt, folder: &Path) -> Outcome<String> {
    let root = folder.join("qemu");
    if root.exists() {
        fs::remove_dir_all(&root).while_doing("remove what was unpacked of another QEMU")?;
    }
    let version = stable.candidate("qemu-system-x86", None)?;
    let packages = [format!("qemu-system-x86={version}"), "seabios".to_owned()];
    stable.fetch_with_dependencies(&packages, None)?;
    say(&stable.unpack(&root)?);
    Ok(version)
}

/// Each package with its version: what a bug that came with one of them is found by.
fn say(names: &[String]) {
    println!("  {}", names.join(" "));
}

//! The Linux driver in a guest: the NIC's process on this machine, two PCI functions of it on the guest's bus, and the driver's module
//! loaded, so that the guest has chi0 and chi1, joined by the NIC's switch.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use super::folder::Folder;
use super::image::AddedFile;
use super::machine::{Guest, Options};
use super::programs;
use super::qemu::Device;
use super::setup::Setup;
use crate::failure::{Context, Failure, Outcome};
use crate::run::{Program, root};

/// The functions, and what Linux calls them.
const FUNCTIONS: [&str; 2] = ["chi0", "chi1"];
const MODULE: &str = "beeline.ko";
/// Files that the driver is built of, from the project's root.
const SOURCES: [&str; 3] = ["kmod", "kmod/include", "spec/generated/c"];
/// How long the NIC may take to listen.
const START_LIMIT: Duration = Duration::from_secs(30);

/// The process that is the NIC; it ends with this.
#[derive(Debug)]
pub struct Nic {
    child: Child,
    folder: Folder,
}

impl Nic {
    /// Builds the program and starts a NIC with two functions.
    pub fn start() -> Outcome<Self> {
        // As the tests of the workspace build it: alone it has other features of what it needs, and all of that is built anew.
        let built = ["test", "--workspace", "--no-run", "--test", "real_programs"];
        Program::cargo().args(built).on_cores().run()?;
        let folder = Folder::make(0)?;
        let mut command = Command::new(root().join("target/debug/beeline"));
        command.args(["nic", "--lossless", "--until-stdin-closes", "--root"]).arg(folder.path("domain"));
        for name in FUNCTIONS {
            command.arg("--vfio-user").arg(folder.path(name));
        }
        let said = fs::File::create(folder.path("nic")).while_doing("make a file for what the NIC says")?;
        let child = command.stdin(Stdio::piped()).stdout(Stdio::null()).stderr(said).spawn();
        let mut nic = Nic { child: child.while_doing("start the NIC")?, folder };
        nic.wait()?;
        Ok(nic)
    }

    fn wait(&mut self) -> Outcome {
        let until = Instant::now() + START_LIMIT;
        while !FUNCTIONS.iter().all(|name| self.folder.path(name).exists()) {
            let has_ended = self.child.try_wait().while_doing("look after the NIC")?.is_some();
            if has_ended || Instant::now() >= until {
                let said = fs::read_to_string(self.folder.path("nic")).unwrap_or_default();
                return Err(Failure::new(format!("the NIC does not serve its functions: {said}")));
            }
            thread::sleep(Duration::from_millis(10));
        }
        Ok(())
    }

    /// Its functions, as devices of a guest.
    pub fn devices(&self) -> Vec<Device> {
        FUNCTIONS.iter().map(|name| Device::VfioUser(self.folder.path(name))).collect()
    }
}

impl Drop for Nic {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Builds the driver for the guest's kernel, from a copy of its files: kbuild writes beside them.
pub fn build(setup: &Setup) -> Outcome<PathBuf> {
    let copy = setup.packages().folder().join("made/driver");
    for folder in SOURCES {
        copy_files(&root().join(folder), &copy.join(folder))?;
    }
    let folder = copy.join("kmod");
    programs::build_modules(setup, &folder)?;
    Ok(folder.join(MODULE))
}

/// Copies the files of a folder that differ, so that what has not changed is not built anew.
fn copy_files(from: &Path, to: &Path) -> Outcome {
    let doing = || format!("copy {}", from.display());
    fs::create_dir_all(to).while_doing(doing())?;
    for entry in fs::read_dir(from).while_doing(doing())? {
        let entry = entry.while_doing(doing())?;
        if !entry.file_type().while_doing(doing())?.is_file() {
            continue;
        }
        let (bytes, copy) = (fs::read(entry.path()).while_doing(doing())?, to.join(entry.file_name()));
        if fs::read(&copy).is_ok_and(|found| found == bytes) {
            continue;
        }
        fs::write(copy, bytes).while_doing(doing())?;
    }
    Ok(())
}

/// Boots a guest with the functions of `nic` and loads the driver.
pub fn boot(setup: &Setup, nic: &Nic, module: PathBuf) -> Outcome<Guest> {
    let options =
        Options { devices: nic.devices(), files: vec![AddedFile::of(module)], ..Options::default() };
    let mut guest = Guest::boot(setup, &options)?;
    guest.output(&format!("insmod /beeline/{MODULE}"))?;
    Ok(guest)
}

/// Puts the two ends into namespaces of their own, so that everything between 10.9.0.1 and 10.9.0.2 crosses the device.
pub const WIRE: &str = "ip netns add far && ip link set chi1 netns far && \
    ip addr add 10.9.0.1/24 dev chi0 && ip link set chi0 up && \
    ip -n far addr add 10.9.0.2/24 dev chi1 && ip -n far link set chi1 up && ip -n far link set lo up";

/// Shows what the driver does: what `cargo xtask guest driver` prints.
pub fn show() -> Outcome {
    let setup = Setup::prepare()?;
    let module = build(&setup)?;
    let nic = Nic::start()?;
    let mut guest = boot(&setup, &nic, module)?;
    println!("  the driver is loaded {:.1} s after the start of the guest", guest.boot_took().as_secs_f64());
    for command in [
        "lspci -nnk -d 1234:bee1",
        "dmesg | grep beeline",
        WIRE,
        "ip -brief link",
        "ping -c 5 -i 0.2 10.9.0.2",
        "(ip netns exec far iperf3 -s -1 -D) && sleep 0.5 && iperf3 -c 10.9.0.2 -t 3 | tail -4",
        "ethtool -S chi0",
    ] {
        println!("\n$ {command}\n{}", guest.output(command)?.trim_end());
    }
    println!("\nThe guest is emulated: what it does is real, how fast it does it is not.");
    Ok(())
}

//! The command line of the emulator.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::json;

use super::packages::Packages;
use crate::failure::{Context, Failure, Outcome};
use crate::install;

/// A PCI function beside those of the machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Device {
    /// What a server of vfio-user at this socket is.
    VfioUser(PathBuf),
    /// A file of this machine as BAR 2 of an `ivshmem-plain` (1af4:1110). Its size is a power of two.
    IvshmemFile(PathBuf),
}

/// What is emulated.
#[derive(Debug, Clone)]
pub struct Machine {
    pub memory_mib: u32,
    pub cpus: u32,
    pub devices: Vec<Device>,
    /// Arguments of QEMU behind all others.
    pub arguments: Vec<String>,
    /// Words of the kernel's command line behind all others.
    pub kernel_words: Vec<String>,
}

/// Where the serial lines go.
#[derive(Debug, Clone, Copy)]
pub enum Serial<'p> {
    /// The console into a file, the agent to a socket at which somebody listens.
    Agent { console: &'p Path, socket: &'p Path },
    /// The console on this terminal.
    Terminal,
}

/// Files of one boot.
#[derive(Debug, Clone, Copy)]
pub struct Files<'p> {
    pub kernel: &'p Path,
    pub first_files: &'p Path,
}

/// The emulator with all arguments.
pub fn command(packages: &Packages, machine: &Machine, files: Files, serial: Serial) -> Outcome<Command> {
    let root = packages.emulator();
    let mut words: Vec<OsString> = Vec::new();
    if install::has_program("setpriv") {
        // A guest ends with the thread that booted it, also when that is killed.
        words.extend(["setpriv", "--pdeathsig", "KILL"].map(OsString::from));
    }
    words.extend(root.command("qemu-system-x86_64")?);
    words.extend(fixed(machine)?.into_iter().map(OsString::from));
    for folder in ["usr/share/qemu", "usr/share/seabios", "usr/lib/ipxe/qemu"] {
        words.extend(["-L".into(), root.folder().join(folder).into()]);
    }
    let memory = json!({
        // Sealed: a device that is another process maps no memory that could be cut off under it.
        "qom-type": "memory-backend-memfd", "id": "mem0", "share": true, "seal": true,
        "size": u64::from(machine.memory_mib) << 20,
    });
    words.extend(["-object".into(), memory.to_string().into()]);
    words.extend(["-kernel".into(), files.kernel.into(), "-initrd".into(), files.first_files.into()]);
    words.extend(["-append".into(), kernel_line(machine, serial).into()]);
    words.extend(serial_lines(serial)?.into_iter().map(OsString::from));
    for (index, device) in machine.devices.iter().enumerate() {
        words.extend(device_arguments(device, index, packages)?.into_iter().map(OsString::from));
    }
    words.extend(machine.arguments.iter().map(OsString::from));
    let mut words = words.into_iter();
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).env("QEMU_MODULE_DIR", root.folder().join("usr/lib/x86_64-linux-gnu/qemu"));
    Ok(command)
}

/// What all guests have. Each word is there by a measurement: record 0089.
fn fixed(machine: &Machine) -> Outcome<Vec<String>> {
    if machine.memory_mib < 128 || machine.cpus == 0 {
        return Err(Failure::new("a guest has at least 128 MiB and one CPU"));
    }
    let (cpus, memory) = (machine.cpus.to_string(), format!("{}M", machine.memory_mib));
    let words = [
        ["-accel", "tcg,thread=multi,tb-size=512"],
        ["-M", "q35,memory-backend=mem0"],
        ["-cpu", "max"],
        ["-bios", "qboot.rom"],
        ["-display", "none"],
        ["-smp", &cpus],
        ["-m", &memory],
    ];
    Ok(words
        .as_flattened()
        .iter()
        .chain(&["-no-reboot", "-nodefaults"])
        .map(|word| (*word).to_owned())
        .collect())
}

/// What the kernel is told. An emulator beside eight other programs on two cores is late, which is no fault of the guest: without the
/// last line one boot of eight was a panic ("IO-APIC + timer doesn't work"), and slowness is told as a soft lockup.
const KERNEL_WORDS: [&str; 3] = [
    // Warnings are on the console; an oops is a panic; a panic ends the emulator.
    "console=ttyS0 loglevel=5 oops=panic panic=-1",
    "nokaslr mitigations=off cryptomgr.notests",
    "no_timer_check nowatchdog rcupdate.rcu_cpu_stall_suppress=1",
];

fn kernel_line(machine: &Machine, serial: Serial) -> String {
    let mut words = KERNEL_WORDS.map(str::to_owned).to_vec();
    if matches!(serial, Serial::Terminal) {
        words.push("beeline.shell".to_owned());
    }
    words.extend(machine.kernel_words.iter().cloned());
    words.join(" ")
}

fn serial_lines(serial: Serial) -> Outcome<Vec<String>> {
    let words = match serial {
        // With QEMU's own keys, ctrl-a x among them.
        Serial::Terminal => vec!["-serial".to_owned(), "mon:stdio".to_owned()],
        Serial::Agent { console, socket } => vec![
            "-chardev".to_owned(),
            format!("file,id=console,path={}", text(console)?),
            "-serial".to_owned(),
            "chardev:console".to_owned(),
            "-chardev".to_owned(),
            format!("socket,id=agent,server=off,path={}", text(socket)?),
            "-serial".to_owned(),
            "chardev:agent".to_owned(),
        ],
    };
    Ok(words)
}

fn device_arguments(device: &Device, index: usize, packages: &Packages) -> Outcome<Vec<String>> {
    match device {
        Device::VfioUser(_) if !packages.has_vfio_user() => Err(Failure::new(format!(
            "QEMU {} is no client of vfio-user: one that is could not be fetched when target/guest was made; remove that folder to try again",
            packages.qemu_version()
        ))),
        Device::VfioUser(socket) => {
            let device = json!({
                "driver": "vfio-user-pci", "id": format!("function{index}"),
                "socket": { "path": text(socket)?, "type": "unix" },
            });
            Ok(vec!["-device".to_owned(), device.to_string()])
        }
        Device::IvshmemFile(path) => {
            let size = fs::metadata(path).while_doing(format!("look at {}", path.display()))?.len();
            if !size.is_power_of_two() {
                return Err(Failure::new(format!(
                    "{} has {size} bytes, and a BAR has a power of two",
                    path.display()
                )));
            }
            let memory = json!({
                "qom-type": "memory-backend-file", "id": format!("shared{index}"), "share": true,
                "mem-path": text(path)?, "size": size,
            });
            let device = json!({ "driver": "ivshmem-plain", "id": format!("function{index}"), "memdev": format!("shared{index}") });
            Ok(vec!["-object".to_owned(), memory.to_string(), "-device".to_owned(), device.to_string()])
        }
    }
}

fn text(path: &Path) -> Outcome<&str> {
    path.to_str().ok_or_else(|| Failure::new(format!("{} is no UTF-8, as QEMU wants it", path.display())))
}

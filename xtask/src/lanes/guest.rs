//! Guests do what lanes that use them rely on: they boot, answer, share memory with this machine and with each other, and say so when
//! they break.

use std::fs;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use crate::failure::{Context, Failure, Outcome};
use crate::guest::{AddedFile, Cause, Guest, Options, Packages, Setup, SharedMemory, programs};

/// Of the BAR that the host, a guest and another guest share.
const BAR_BYTES: u64 = 1 << 20;
/// The function that a guest's first device is.
const FUNCTION: &str = "0000:00:01.0";

/// A module that does what a driver must not, and goes on.
const MODULE: (&str, &str) = (
    "obj-m := warns.o\n",
    "#include <linux/module.h>\n\
     static int __init warns(void) { WARN(1, \"as it is meant to\\n\"); return 0; }\n\
     static void __exit gone(void) { }\n\
     module_init(warns);\nmodule_exit(gone);\nMODULE_LICENSE(\"GPL\");\n",
);

/// Boots two guests and checks them; skipped, with the reason, where Debian's packages cannot be had.
pub fn run() -> Outcome {
    let Some(setup) = setup_or_skip("no guest was booted", false)? else { return Ok(()) };
    let reader = programs::build_static("beeline-mmio", "--example", "bar_words")?;
    let shared = SharedMemory::make(BAR_BYTES)?;
    let options = Options {
        devices: vec![shared.device()],
        files: vec![AddedFile::of(reader), AddedFile::of(module(&setup)?)],
        ..Options::default()
    };
    let mut one = boot(&setup, &options)?;
    answers(&mut one)?;
    let mut other = boot(&setup, &options)?;
    shares_memory(&shared, &mut one, &mut other)?;
    loads_a_module(&mut one)?;
    tells_a_panic(&mut one)?;
    // The other one is another machine.
    other.output("true").map(drop)
}

fn boot(setup: &Setup, options: &Options) -> Outcome<Guest> {
    let guest = Guest::boot(setup, options)?;
    println!("  a guest took commands after {:.1} s", guest.boot_took().as_secs_f64());
    Ok(guest)
}

fn answers(guest: &mut Guest) -> Outcome {
    let kernel = guest.output("uname -sr; echo to both >&2")?;
    require("both outputs come back", kernel.starts_with("Linux 6.") && kernel.ends_with("to both\n"))?;
    let failed = guest.run("echo before; exit 7")?;
    require("a status comes back", failed.status == 7 && failed.bytes == b"before\n")?;
    let start = Instant::now();
    for number in 0..20 {
        let said = guest.output(&format!("echo {number}"))?;
        require("each answer is of its command", said == format!("{number}\n"))?;
    }
    println!("  a command took {:.0} ms", start.elapsed().as_secs_f64() * 1e3 / 20.0);
    let long = guest.output("printf %b '\\0001\\r\\n@@1 0 0\\n' && seq 2000")?;
    require(
        "output comes back as it is",
        long.starts_with("\u{1}\r\n@@1 0 0\n1\n") && long.ends_with("\n2000\n"),
    )?;
    let word = "w".repeat(10_000);
    require("a long command arrives", guest.output(&format!("echo {word} | wc -c"))?.trim() == "10001")?;
    let late = guest.run_within("sleep 2; echo late", Duration::from_millis(200));
    require("a wait ends", late.is_err_and(|lost| matches!(lost.cause, Cause::Silent(_))))?;
    require("a late answer is nobody's", guest.output("echo next")? == "next\n")?;
    match guest.console().complaint() {
        None => Ok(()),
        Some(line) => Err(Failure::new(format!("the guest's kernel complains: {line}"))),
    }
}

/// Words go from the host to a guest, from it to the host, and from one guest to the other, each through the BAR.
fn shares_memory(shared: &SharedMemory, one: &mut Guest, other: &mut Guest) -> Outcome {
    for guest in [&mut *one, other] {
        let functions = guest.output("lspci -n")?;
        require("the guest has the function", functions.contains("00:01.0 0500: 1af4:1110"))?;
        guest.output(&format!("echo 1 > /sys/bus/pci/devices/{FUNCTION}/enable"))?;
    }
    shared.write(64, 0x1122_3344_5566_7788)?;
    let said = one.output(&format!("bar_words {FUNCTION} 2 load 64 1"))?;
    require("a guest reads what the host wrote", said.trim() == "0x1122334455667788")?;
    one.output(&format!("bar_words {FUNCTION} 2 store 4096 0xfeed 0xface"))?;
    require(
        "the host reads what a guest wrote",
        shared.read(4096)? == 0xfeed && shared.read(4104)? == 0xface,
    )?;
    let said = other.output(&format!("bar_words {FUNCTION} 2 load 4096 2"))?;
    require("a guest reads what another one wrote", said.split_whitespace().eq(["0xfeed", "0xface"]))
}

/// Builds the module against the headers of the guest's kernel.
fn module(setup: &Setup) -> Outcome<PathBuf> {
    let folder = setup.packages().folder().join("made/module");
    fs::create_dir_all(&folder).while_doing("make a folder for a module")?;
    for (name, text) in [("Makefile", MODULE.0), ("warns.c", MODULE.1)] {
        fs::write(folder.join(name), text).while_doing("write a module")?;
    }
    programs::build_modules(setup, &folder)?;
    Ok(folder.join("warns.ko"))
}

/// A module is loaded, its warning is told, and the guest goes on.
fn loads_a_module(guest: &mut Guest) -> Outcome {
    guest.output("insmod /beeline/warns.ko && lsmod | grep warns && rmmod warns")?;
    let warned = guest.console().complaint().is_some_and(|line| line.contains("WARNING"));
    require("a warning of the kernel is told", warned)?;
    guest.output("true").map(drop)
}

fn tells_a_panic(guest: &mut Guest) -> Outcome {
    let lost = match guest.run("echo c > /proc/sysrq-trigger") {
        Err(lost) => lost,
        Ok(output) => {
            return Err(Failure::new(format!("a guest answers behind a panic: {}", output.text())));
        }
    };
    let is_told = matches!(&lost.cause, Cause::Panicked(_)) && lost.console.contains("sysrq");
    require(&format!("a panic is told as one: {lost}"), is_told)
}

/// What guests are made of; where it cannot be had, `None`, and it is said that `what` was left out. `needs_vfio_user`: so does the
/// emulator that comes instead where the one with that client cannot be had.
pub fn setup_or_skip(what: &str, needs_vfio_user: bool) -> Outcome<Option<Setup>> {
    let packages = match Packages::bring() {
        Ok(packages) => packages,
        Err(why) => {
            println!("  SKIPPED: {what}, because what a guest is made of cannot be had:\n  {why}");
            return Ok(None);
        }
    };
    println!("  Linux {} under QEMU {}", packages.kernel_version(), packages.qemu_version());
    if needs_vfio_user && !packages.has_vfio_user() {
        println!("  SKIPPED: {what}, because this QEMU has no client of vfio-user");
        return Ok(None);
    }
    Setup::of(packages).map(Some)
}

pub fn require(what: &str, holds: bool) -> Outcome {
    if holds { Ok(()) } else { Err(Failure::new(format!("it does not hold that {what}"))) }
}

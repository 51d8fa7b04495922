//! `cargo xtask guest`: a guest to look at.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::{Args, Subcommand};

use super::driver;
use super::image::AddedFile;
use super::machine::{self, Guest, Options};
use super::qemu::Device;
use super::setup::Setup;
use crate::failure::{Context, Outcome};

const EXAMPLES: &str = "Examples:
  cargo xtask guest boot
  cargo xtask guest driver
  cargo xtask guest run -- uname -a
  cargo xtask guest run --add target/nic.ko -- 'insmod /beeline/nic.ko && dmesg | tail'
  truncate -s 16M /dev/shm/bar && cargo xtask guest boot --ivshmem-file /dev/shm/bar
  cargo xtask guest shell --vfio-user /run/user/1000/nic.socket --module tun

The first call fetches Debian's packages into target/guest; `rm -r target/guest` has them fetched anew.
Guests are emulated (no KVM): about three seconds of an idle core to boot, memory in /dev/shm.";

/// What is done with a guest.
#[derive(Subcommand, Debug, Clone, PartialEq, Eq)]
#[command(after_help = EXAMPLES)]
pub enum Request {
    /// Boot one, and show its kernel, how long it took, its PCI functions and its links
    #[command(after_help = EXAMPLES)]
    Boot(Wanted),
    /// Boot one and run a command of its shell: prints what it says, and ends with its status
    #[command(after_help = EXAMPLES)]
    Run {
        #[command(flatten)]
        wanted: Wanted,
        /// Seconds that the command may take
        #[arg(long, default_value_t = 600)]
        seconds: u64,
        /// The command; several words are joined by spaces, as ssh does
        #[arg(last = true, required = true)]
        command: Vec<String>,
    },
    /// Build the Linux driver, load it on two functions of a NIC, and send from chi0 to chi1; prints what happened
    #[command(after_help = EXAMPLES)]
    Driver,
    /// Boot one with its console on this terminal; `exit`, or ctrl-a x, ends it
    #[command(after_help = EXAMPLES)]
    Shell(Wanted),
}

/// What the guest is like.
#[derive(Args, Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// A PCI function that is served at this socket (vfio-user); may be given several times
    #[arg(long, value_name = "SOCKET")]
    vfio_user: Vec<PathBuf>,
    /// A file, with a power of two of bytes, as BAR 2 of an ivshmem function; may be given several times
    #[arg(long, value_name = "PATH")]
    ivshmem_file: Vec<PathBuf>,
    /// A file for the guest, with the libraries or modules that it needs: at PATH, or in /beeline, which is in its path
    #[arg(long, value_name = "FILE[:PATH]")]
    add: Vec<AddedFile>,
    /// A module of the kernel, with those it needs, for `modprobe`
    #[arg(long, value_name = "NAME")]
    module: Vec<String>,
    /// MiB of memory
    #[arg(long, default_value_t = 512, value_name = "MIB")]
    memory: u32,
    /// CPUs; a second one makes the boot slower
    #[arg(long, default_value_t = 1)]
    cpus: u32,
}

impl Wanted {
    fn options(self) -> Options {
        let served = self.vfio_user.into_iter().map(Device::VfioUser);
        let devices = served.chain(self.ivshmem_file.into_iter().map(Device::IvshmemFile)).collect();
        Options {
            memory_mib: self.memory,
            cpus: self.cpus,
            devices,
            files: self.add,
            modules: self.module,
            ..Options::default()
        }
    }
}

/// Does what was asked for.
pub fn run(request: Request) -> Outcome {
    match request {
        Request::Boot(wanted) => boot(&wanted.options()),
        Request::Run { wanted, seconds, command } => {
            let limit = Duration::from_secs(seconds);
            let status = run_command(&wanted.options(), &command.join(" "), limit)?;
            std::process::exit(status)
        }
        Request::Driver => driver::show(),
        Request::Shell(wanted) => {
            let status = machine::on_terminal(&Setup::prepare()?, &wanted.options())?;
            std::process::exit(status.code().unwrap_or(1))
        }
    }
}

fn boot(options: &Options) -> Outcome {
    let setup = Setup::prepare()?;
    let packages = setup.packages();
    println!("  Linux {} under QEMU {}", packages.kernel_version(), packages.qemu_version());
    let mut guest = Guest::boot(&setup, options)?;
    println!("  took commands after {:.1} s", guest.boot_took().as_secs_f64());
    for command in ["uname -srvm", "lspci -nn", "ip -brief link"] {
        let start = Instant::now();
        let said = guest.output(command)?;
        println!("\n$ {command}    ({:.0} ms)\n{}", start.elapsed().as_secs_f64() * 1e3, said.trim_end());
    }
    Ok(())
}

/// The status of a command, whose output is written as it is. The guest has ended by then.
fn run_command(options: &Options, command: &str, limit: Duration) -> Outcome<i32> {
    let mut guest = Guest::boot(&Setup::prepare()?, options)?;
    let output = guest.run_within(command, limit)?;
    io::stdout().write_all(&output.bytes).while_doing("print what the guest says")?;
    Ok(output.status)
}

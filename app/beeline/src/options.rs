//! Options that several commands have. They know no command.

use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use beeline_domain::{Domain, DomainConfig, DomainError, DomainPlace, MayArrive, NETWORK_NAMESPACE};
use beeline_experiments::NicKind;
use beeline_mmio::{StoreKernel, Traffic};
use beeline_nic_rtl::RtlError;
use beeline_session::how_to_start;
use beeline_window::FencePolicy;
use clap::{Args, ValueEnum};

use crate::choices::{KernelName, policy, uid};
use crate::failure::Failure;

/// Where domains lie.
#[derive(Args, Debug, Clone, Default)]
pub struct RootArgs {
    /// Folder of the domains [default: $BEELINE_ROOT, or /tmp/beeline-UID]
    ///
    /// Processes meet in it, so they all need the same. It is made if it is not there; one that belongs to another user or
    /// that others may write to is refused. The word @net, instead of a folder, is the network namespace: for processes that
    /// share one and no folder. %u in the name stands for the uid of its owner.
    #[arg(long, value_name = "DIR", value_hint = clap::ValueHint::DirPath)]
    pub root: Option<PathBuf>,
}

/// The domain that a command opens: its name, and where it lies.
#[derive(Args, Debug, Clone)]
pub struct DomainArgs {
    /// Domain: the group of processes that can find each other
    #[arg(id = "domain", long = "domain", default_value = "default", value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub root: RootArgs,
}

impl DomainArgs {
    /// Returns the configuration that opens the domain.
    pub fn config(&self) -> DomainConfig {
        DomainConfig { root: self.root.root.clone(), name: self.name.clone() }
    }
}

/// The users that an offer lets in besides the domain's owner.
#[derive(Args, Debug, Clone, Default)]
pub struct AllowArgs {
    /// Other users who may use this, by uid, with commas between [default: none]
    ///
    /// `id -u NAME` prints the uid of a user. Their commands name yours with --owner. SECURITY.md says what a user who is let
    /// in can do.
    #[arg(long = "allow-uid", value_delimiter = ',', value_name = "UID", allow_negative_numbers = true, value_parser = uid())]
    pub uids: Vec<u32>,
}

impl AllowArgs {
    /// What the other users type to get here; `None` where there are none.
    pub fn invitation(&self, domain: &DomainArgs) -> Option<String> {
        if self.uids.is_empty() {
            return None;
        }
        let uids: Vec<_> = self.uids.iter().map(u32::to_string).collect();
        let (config, own_uid) = (domain.config(), rustix::process::geteuid().as_raw());
        let root = match config.place() {
            DomainPlace::Folder(root) => std::path::absolute(&root).unwrap_or(root),
            DomainPlace::NetworkNamespace => PathBuf::from(NETWORK_NAMESPACE),
        };
        let typed = format!("--owner {own_uid} --domain {} --root {}", config.name, root.display());
        let mut invitation = format!("for uid {} too, by: {typed}", uids.join(", "));
        if let Some(closed) = closed_above(&root) {
            let closed = closed.display();
            invitation +=
                &format!("\n  but {closed} lets no other user through (chmod o+x, or another --root)");
        }
        Some(invitation)
    }
}

/// The first folder above that others may not enter, as far as its mode tells.
fn closed_above(folder: &Path) -> Option<&Path> {
    let mut above: Vec<_> = folder.ancestors().skip(1).collect();
    above.reverse();
    above.into_iter().find(|above| above.metadata().is_ok_and(|data| data.mode() & 0o001 == 0))
}

/// The domain in which a command looks for something, of this user or of another.
#[derive(Args, Debug, Clone)]
pub struct ReachArgs {
    #[command(flatten)]
    pub domain: DomainArgs,
    /// Uid of the domain's owner, if that is another user
    ///
    /// The owner must let you in: --allow-uid with your uid (`id -u`). The folder is then /tmp/beeline-UID of the owner,
    /// unless --root or $BEELINE_ROOT names another.
    #[arg(long, value_name = "UID", allow_negative_numbers = true, value_parser = uid())]
    pub owner: Option<u32>,
}

impl ReachArgs {
    /// Adds to a failure the command that would offer what was looked for, where nobody offers it.
    ///
    /// Whoever is there and refuses says what to do, and so does what keeps this user out of the folder.
    pub fn advise(&self, failure: Failure, error: &impl MayArrive, command: &str) -> Failure {
        match error.absence() {
            Some(_) => failure.remedy(how_to_start(command, &self.domain.config(), self.owner)),
            None => failure,
        }
    }

    /// Opens the domain; one of another user is waited for until its owner opens it to others.
    ///
    /// # Errors
    /// Those of [`Domain::open`] and [`Domain::open_foreign_awaiting`].
    pub fn open(&self, timeout: Duration) -> Result<Domain, DomainError> {
        match self.owner {
            Some(owner_uid) => Domain::open_foreign_awaiting(&self.domain.config(), owner_uid, timeout),
            None => Domain::open(&self.domain.config()),
        }
    }
}

/// How lines leave the core.
#[derive(Args, Debug, Clone, Copy, Default)]
pub struct KernelArgs {
    /// Instructions that store a line [default: cached, or one that is clearly faster by timing]
    ///
    /// The store kernel of transmit windows. What was timed is kept for the next command, as long as a line between two cores
    /// takes about the same time; `compare` always times, `doctor` shows what is kept. kpio needs its lines in order and always has cached stores.
    #[arg(long = "kernel", value_name = "NAME", value_parser = KernelName)]
    pub named: Option<StoreKernel>,
}

impl KernelArgs {
    /// The kernel that was named, or else the best for this traffic: kept from before, or timed, which takes some milliseconds.
    pub fn choose(self, traffic: Traffic) -> StoreKernel {
        self.named.unwrap_or_else(|| beeline_tuning::kernel_now(traffic))
    }
}

/// Where a sender fences.
#[derive(Args, Debug, Clone, Copy, Default)]
pub struct FenceArgs {
    /// Where the sender fences, by mmio only: the price of what its receiver does without
    #[arg(long = "fences", default_value_t = FencePolicy::None, value_name = "POLICY", value_parser = policy())]
    pub policy: FencePolicy,
}

/// Where machine-readable results go.
#[derive(Args, Debug, Clone, Default)]
pub struct OutputArgs {
    /// Print the results as JSON on standard output instead of tables
    #[arg(long)]
    pub json: bool,
    /// Also write the raw results as CSV files into this folder
    #[arg(long, value_name = "DIR")]
    pub csv: Option<PathBuf>,
}

/// Devices that can stand behind a link.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeviceName {
    /// The behavioural NIC (by `send` and `compare` in a process of its own)
    Model,
    /// The NIC's RTL, Verilated, in this process (make rtl-tools, then build with --features rtl)
    Rtl,
}

impl std::fmt::Display for DeviceName {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.to_possible_value().map_or(Ok(()), |value| out.write_str(value.get_name()))
    }
}

/// The device of a machine in virtual time.
#[derive(Args, Debug, Clone, Copy)]
pub struct SimDeviceArgs {
    /// Device behind the link: `rtl` takes the cycles of its clock beside what the platform's device takes
    #[arg(long, default_value = "model", value_name = "NAME")]
    pub device: DeviceName,
    /// With `--device rtl`: its clock in MHz
    #[arg(long, default_value_t = 250, value_name = "MHZ", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub clock_mhz: u32,
}

impl SimDeviceArgs {
    /// The NIC of an experiment.
    ///
    /// # Errors
    /// This program was built without the RTL.
    pub fn nic(self) -> Result<NicKind, Failure> {
        match self.device {
            DeviceName::Model => Ok(NicKind::Model),
            DeviceName::Rtl => rtl(self.clock_mhz).map_err(|error| Failure::new("no RTL").because(error)),
        }
    }
}

#[cfg(feature = "rtl")]
fn rtl(clock_mhz: u32) -> Result<NicKind, RtlError> {
    let clock = beeline_nic_rtl::ClockPeriod::from_mhz(clock_mhz)?;
    // Found out here and once, instead of at each point of a sweep.
    beeline_experiments::rtl_nic(clock, 1)?;
    Ok(NicKind::Rtl { clock })
}

#[cfg(not(feature = "rtl"))]
fn rtl(_clock_mhz: u32) -> Result<NicKind, RtlError> {
    Err(RtlError::NotBuilt)
}

/// What an idle NIC does.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Idle {
    /// Poll without pause: lowest latency, one core
    Spin,
    /// Give the core to others between polls
    Yield,
    /// Sleep until a store wakes it: no CPU
    Sleep,
}

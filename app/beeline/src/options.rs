//! Options that several commands have. They know no command.

use std::path::PathBuf;

use beeline_domain::DomainConfig;
use beeline_experiments::NicKind;
use beeline_mmio::{StoreKernel, Traffic};
use beeline_nic_rtl::RtlError;
use beeline_window::FencePolicy;
use clap::{Args, ValueEnum};

use crate::choices::{KernelName, policy};
use crate::failure::Failure;

/// Where domains lie.
#[derive(Args, Debug, Clone, Default)]
pub struct RootArgs {
    /// Folder of the domains [default: $BEELINE_ROOT, or /tmp/beeline-UID]
    ///
    /// Processes meet in it, so they all need the same. It is made if it is not there; one that belongs to another user or
    /// that others may write to is refused.
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

    /// What another command needs to open the same, as it is typed.
    pub fn typed(&self) -> String {
        let root = self.root.root.as_ref().map(|root| format!(" --root {}", root.display()));
        format!("--domain {}{}", self.name, root.unwrap_or_default())
    }
}

/// How lines leave the core.
#[derive(Args, Debug, Clone, Copy, Default)]
pub struct KernelArgs {
    /// Instructions that store a line [default: cached, or one that is clearly faster, timed now]
    ///
    /// The store kernel of transmit windows. kpio needs its lines in order and always has cached stores.
    #[arg(long = "kernel", value_name = "NAME", value_parser = KernelName)]
    pub named: Option<StoreKernel>,
}

impl KernelArgs {
    /// The kernel that was named, or else the best for this traffic; that takes some milliseconds.
    pub fn choose(self, traffic: Traffic) -> StoreKernel {
        self.named.unwrap_or_else(|| StoreKernel::choose(traffic))
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

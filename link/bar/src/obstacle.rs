//! What keeps a BAR from being a window.

use std::fmt;
use std::path::PathBuf;

use beeline_mmio::{BarKind, PciAddress};

use crate::function::{BarRegion, BarRights, Function};

/// A reason why a region is no window, which prints as a phrase with what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Obstacle {
    /// A driver of the kernel uses the function, and stores of somebody else could break what it does.
    DriverBound {
        address: PciAddress,
        driver: String,
    },
    /// It has no address on the bus.
    Unassigned,
    /// Its loads or stores may have side effects.
    NotPrefetchable,
    /// The function does not answer loads and stores.
    MemoryOff {
        enable: PathBuf,
    },
    /// Nobody has enabled the function, without which it is not mapped.
    NotEnabled {
        enable: PathBuf,
    },
    NoFile {
        path: PathBuf,
    },
    /// The kernel maps it uncached only.
    NoWriteCombining {
        path: PathBuf,
    },
    NotPermitted {
        path: PathBuf,
        rights: BarRights,
    },
}

impl Obstacle {
    /// Whether a part of the region can be scratched in spite of it: stores that are not combined are slow, and do no harm.
    pub fn is_harmless(&self) -> bool {
        matches!(self, Obstacle::NoWriteCombining { .. })
    }
}

impl Function {
    /// Everything that keeps a region of this function from being a window; what could do harm comes first. Empty: it could be
    /// one.
    pub fn obstacles(&self, region: &BarRegion) -> Vec<Obstacle> {
        let mut found = Vec::new();
        if let Some(driver) = self.driver.as_ref().filter(|driver| !is_of_user_space(driver)) {
            found.push(Obstacle::DriverBound { address: self.address, driver: driver.clone() });
        }
        if !region.is_assigned {
            found.push(Obstacle::Unassigned);
        }
        if !region.is_prefetchable {
            found.push(Obstacle::NotPrefetchable);
        }
        if self.decodes_memory == Some(false) {
            found.push(Obstacle::MemoryOff { enable: self.folder.join("enable") });
        } else if self.is_enabled == Some(false) {
            found.push(Obstacle::NotEnabled { enable: self.folder.join("enable") });
        }
        let file = |kind| self.file(region.index, kind);
        match (region.file, region.combining_file) {
            (None, None) => found.push(Obstacle::NoFile { path: file(BarKind::Uncached) }),
            (Some(_), None) if region.is_prefetchable => {
                found.push(Obstacle::NoWriteCombining { path: file(BarKind::WriteCombining) });
            }
            _ => {}
        }
        let with_kind = [(region.combining_file, BarKind::WriteCombining), (region.file, BarKind::Uncached)];
        let mapped = with_kind.into_iter().find_map(|(rights, kind)| Some((rights?, kind)));
        if let Some((rights, kind)) = mapped.filter(|(rights, _)| !rights.may_open) {
            found.push(Obstacle::NotPermitted { path: file(kind), rights });
        }
        found
    }
}

/// Whether a driver leaves the BARs to programs: those of VFIO and UIO, and the one that does nothing.
fn is_of_user_space(driver: &str) -> bool {
    driver == "pci-stub" || driver.split(['-', '_']).any(|part| ["vfio", "uio"].contains(&part))
}

impl fmt::Display for Obstacle {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Obstacle::DriverBound { address, driver } => write!(
                out,
                "the kernel's driver {driver} uses the function (`echo {address} > /sys/bus/pci/drivers/{driver}/unbind` as root ends \
                 that, and whatever depends on the device)"
            ),
            Obstacle::Unassigned => {
                out.write_str("it has no address on the bus (`dmesg | grep BAR` says why)")
            }
            Obstacle::NotPrefetchable => out.write_str(
                "it is not prefetchable, so it may be registers, whose loads and stores have effects",
            ),
            Obstacle::MemoryOff { enable } => write!(
                out,
                "memory decoding is off in the command register (`echo 1 > {}` as root switches it on)",
                enable.display()
            ),
            Obstacle::NotEnabled { enable } => {
                write!(
                    out,
                    "the function is not enabled (`echo 1 > {}` as root enables it)",
                    enable.display()
                )
            }
            Obstacle::NoFile { path } => {
                write!(out, "the kernel has made no file {} to map it by", path.display())
            }
            Obstacle::NoWriteCombining { path } => write!(
                out,
                "there is no {}, so the kernel maps it uncached only (on x86: `dmesg | grep PAT`, and no `nopat` on its command line)",
                path.display()
            ),
            Obstacle::NotPermitted { path, rights } => {
                let BarRights { mode, uid, gid, .. } = rights;
                let group = if mode & 0o060 == 0o060 { format!(", join group {gid}") } else { String::new() };
                let path = path.display();
                write!(
                    out,
                    "{path} has mode {mode:04o}, owner {uid} and group {gid}: run as that owner{group}, or give this user the file \
                     (as root: `chown $USER {path}`; for ever, by a udev rule)"
                )
            }
        }
    }
}

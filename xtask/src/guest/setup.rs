//! What every guest is booted from, ready: kernel, first files, emulator.

use std::fs;
use std::path::PathBuf;

use super::image;
use super::kernel;
use super::packages::Packages;
use crate::failure::{Context, Outcome};
use crate::run::Program;

/// Everything that a boot needs, under `target/guest`.
#[derive(Debug, Clone)]
pub struct Setup {
    packages: Packages,
}

impl Setup {
    /// Brings the packages unless they are there, and makes of them what is booted: about a minute once, then nothing.
    pub fn prepare() -> Outcome<Self> {
        Setup::of(Packages::bring()?)
    }

    /// As [`Setup::prepare`], with packages that are there.
    pub fn of(packages: Packages) -> Outcome<Self> {
        let setup = Setup { packages };
        let made = setup.made();
        fs::create_dir_all(&made).while_doing(format!("make {}", made.display()))?;
        let kernel = setup.packages.kernel();
        let guest = setup.packages.guest();
        if !setup.kernel().exists() {
            setup.index_modules()?;
            setup.relocate_headers()?;
            let image = guest.folder().join(format!("boot/vmlinuz-{kernel}"));
            let partial = made.join("partial");
            kernel::extract(&image, &partial)?;
            // Under its name it is whole.
            fs::rename(&partial, setup.kernel()).while_doing("name the kernel")?;
        }
        Ok(setup)
    }

    pub fn packages(&self) -> &Packages {
        &self.packages
    }

    /// The kernel as an ELF that QEMU starts.
    pub fn kernel(&self) -> PathBuf {
        self.made().join("vmlinux")
    }

    /// What a module is built with: `make -C` this folder `M=` the module's.
    pub fn kernel_build(&self) -> PathBuf {
        let folder = format!("usr/src/linux-headers-{}", self.packages.kernel());
        self.packages.guest().folder().join(folder)
    }

    /// The files that all guests have. They are read anew for each boot, in a tenth of a second, so that none is stale.
    pub fn base(&self) -> Outcome<Vec<u8>> {
        image::base(&self.packages.guest(), self.packages.kernel())
    }

    fn made(&self) -> PathBuf {
        self.packages.folder().join("made")
    }

    /// Debian makes `modules.dep` when a kernel is installed, which this one is not.
    fn index_modules(&self) -> Outcome {
        let guest = self.packages.guest();
        let command = guest.command("depmod")?;
        let (linker, rest) = command.split_first().unwrap_or((&command[0], &[]));
        let depmod = Program::new(linker).args(rest).arg("-b").arg(guest.folder());
        depmod.arg(self.packages.kernel()).quiet().output().map(drop)
    }

    /// The headers name the folder that they are installed in, which is another one here.
    fn relocate_headers(&self) -> Outcome {
        let path = self.kernel_build().join("Makefile");
        let text = fs::read_to_string(&path).while_doing(format!("read {}", path.display()))?;
        let here = format!("include {}/usr/src/", self.packages.guest().folder().display());
        let lines = text.lines().map(|line| match line.strip_prefix("include /usr/src/") {
            Some(rest) => format!("{here}{rest}\n"),
            None => format!("{line}\n"),
        });
        fs::write(&path, lines.collect::<String>()).while_doing(format!("write {}", path.display()))
    }
}

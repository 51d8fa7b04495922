//! Modules of the guest's kernel: which files a module is loaded from, by what `depmod` found out.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use crate::failure::{Context, Failure, Outcome};

/// `modules.dep` and `modules.builtin` of one kernel.
#[derive(Debug, Default)]
pub struct Modules {
    /// By name: the file, and the files that are loaded before it.
    files: BTreeMap<String, Vec<String>>,
    built_in: Vec<String>,
}

impl Modules {
    /// Reads both files of `/lib/modules/RELEASE`.
    pub fn read(folder: &Path) -> Outcome<Self> {
        let read = |name: &str| {
            let path = folder.join(name);
            fs::read_to_string(&path).while_doing(format!("read {}", path.display()))
        };
        Ok(Modules::parse(&read("modules.dep")?, &read("modules.builtin")?))
    }

    fn parse(dependencies: &str, built_in: &str) -> Self {
        let lines = dependencies.lines().filter_map(|line| line.split_once(':'));
        let files = lines.map(|(file, before)| {
            let all = std::iter::once(file).chain(before.split_whitespace()).map(str::to_owned);
            (name(file), all.collect())
        });
        Modules { files: files.collect(), built_in: built_in.lines().map(name).collect() }
    }

    /// The files of a module, by paths below `/lib/modules/RELEASE`; none for one that is in the kernel.
    pub fn files(&self, module: &str) -> Outcome<&[String]> {
        let module = name(module);
        match self.files.get(&module) {
            Some(files) => Ok(files),
            None if self.built_in.contains(&module) => Ok(&[]),
            None => Err(Failure::new(format!("the guest's kernel has no module {module}"))),
        }
    }
}

/// The name of a module by its file, or as somebody writes it: the kernel takes `-` for `_`.
fn name(file: &str) -> String {
    let stem = file.rsplit('/').next().unwrap_or(file);
    stem.split(".ko").next().unwrap_or(stem).replace('-', "_")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_a_module_are_its_own_and_those_before() {
        let dependencies = "kernel/drivers/net/tun.ko:\n\
            kernel/drivers/virtio/virtio-pci.ko: kernel/drivers/virtio/virtio.ko kernel/lib/ring.ko.xz\n";
        let modules = Modules::parse(dependencies, "kernel/drivers/tty/serial/8250/8250_pci.ko\n");
        assert_eq!(modules.files("tun").unwrap(), ["kernel/drivers/net/tun.ko"]);
        let virtio = modules.files("virtio_pci").unwrap();
        assert_eq!(virtio.len(), 3);
        assert_eq!(virtio, modules.files("virtio-pci").unwrap());
        assert!(virtio[0].ends_with("virtio-pci.ko") && virtio[2].ends_with("ring.ko.xz"));
        assert!(modules.files("8250_pci").unwrap().is_empty());
        assert!(modules.files("none").unwrap_err().to_string().contains("no module none"));
    }
}

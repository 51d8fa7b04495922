//! What a program, a library or a kernel module says that it needs.

use object::Endianness;
use object::elf::{DT_NEEDED, FileHeader64, PT_INTERP};
use object::read::elf::{Dyn, ElfFile64, FileHeader, ProgramHeader};
use object::{Object, ObjectSection};

use crate::failure::{Context, Outcome};

/// The files without which the dynamic linker does not start a program.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The dynamic linker, as a path.
    pub interpreter: Option<String>,
    /// Names of libraries, as in `libc.so.6`.
    pub libraries: Vec<String>,
}

/// What an ELF needs; nothing if it is static, or no ELF.
pub fn needs(bytes: &[u8]) -> Outcome<Needs> {
    if !bytes.starts_with(b"\x7fELF") {
        return Ok(Needs::default());
    }
    read_needs(bytes).while_doing("read what an ELF needs")
}

fn read_needs(bytes: &[u8]) -> object::Result<Needs> {
    let header = FileHeader64::<Endianness>::parse(bytes)?;
    let endian = header.endian()?;
    let mut found = Needs::default();
    for segment in header.program_headers(endian, bytes)? {
        if segment.p_type(endian) == PT_INTERP {
            let path = segment.data(endian, bytes).unwrap_or_default();
            found.interpreter = Some(text(path));
        }
    }
    let sections = header.sections(endian, bytes)?;
    if let Some((entries, names)) = sections.dynamic(endian, bytes)? {
        let names = sections.strings(endian, bytes, names)?;
        for entry in entries.iter().filter(|entry| entry.tag32(endian) == Some(DT_NEEDED)) {
            found.libraries.push(text(entry.string(endian, names)?));
        }
    }
    Ok(found)
}

/// The names of the modules that a kernel module needs.
pub fn module_needs(bytes: &[u8]) -> Outcome<Vec<String>> {
    let file = ElfFile64::<Endianness>::parse(bytes).while_doing("read a kernel module")?;
    let section = file.section_by_name(".modinfo").map(|section| section.data());
    let info = section.transpose().while_doing("read what a kernel module says of itself")?;
    Ok(module_info_needs(info.unwrap_or_default()))
}

/// `depends=a,b` among words that end with NUL.
fn module_info_needs(info: &[u8]) -> Vec<String> {
    let words = info.split(|byte| *byte == 0).map(|word| String::from_utf8_lossy(word).into_owned());
    let named = words.filter_map(|word| word.strip_prefix("depends=").map(str::to_owned)).next();
    named
        .iter()
        .flat_map(|named| named.split(','))
        .filter(|name| !name.is_empty())
        .map(str::to_owned)
        .collect()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).trim_end_matches('\0').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_program_needs_libc_and_a_linker() {
        let own = std::fs::read("/proc/self/exe").unwrap();
        let needs = needs(&own).unwrap();
        assert!(needs.libraries.iter().any(|name| name.starts_with("libc.so")), "{needs:?}");
        assert!(needs.interpreter.unwrap().contains("ld-linux"));
    }

    #[test]
    fn script_needs_nothing_and_a_cut_program_is_told() {
        assert_eq!(needs(b"#!/bin/sh\n").unwrap(), Needs::default());
        assert!(needs(b"\x7fELF\x02\x01").is_err());
    }

    #[test]
    fn names_of_modules_are_read() {
        let info = b"license=GPL\0depends=virtio_ring,virtio\0retpoline=Y\0";
        assert_eq!(module_info_needs(info), ["virtio_ring", "virtio"]);
        assert!(module_info_needs(b"depends=\0name=tun\0").is_empty());
        assert!(module_info_needs(b"").is_empty());
    }
}

//! `cargo xtask gen`: everything under `spec/generated/`, from `spec/nic.rdl` and `spec/formats.toml`.
//!
//! PeakRDL reads the SystemRDL and writes IP-XACT and the C overlay; the emitters here write the rest from the
//! IP-XACT. Before anything is kept, the C compiler proves that both ways agree, and Verilator, slang and Verible read
//! the SystemVerilog package. `docs/decisions/0001-one-register-source.md` says which tool makes what and why.

mod drift;
mod emit;
mod formats;
mod generated;
mod ipxact;
mod naming;
mod peakrdl;
mod proof;
mod registers;
mod type_names;

pub use proof::SLANG;

use std::fs;
use std::path::Path;

use formats::Formats;
use generated::Generated;
use registers::Map;

use crate::failure::{Context, Failure, Outcome};
use crate::install;
use crate::run::root;

/// Generates; with `check`, compares with what is committed instead of writing.
pub fn run(check: bool) -> Outcome {
    let sources = root().join("spec");
    let formats = Formats::parse(&read(&sources.join("formats.toml"))?)?;
    let venv = install::spec_tools()?;
    let scratch = root().join("target/gen");
    fs::create_dir_all(&scratch).while_doing("make target/gen")?;
    let from_rdl = peakrdl::export(&venv, &sources.join("nic.rdl"), &scratch)?;
    let files = generate(&formats, from_rdl)?;
    proof::prove(&venv, &scratch, &files.files, &files.proof)?;
    let kept = sources.join("generated");
    if check { drift::check(&kept, &files.files) } else { drift::write(&kept, &files.files) }
}

struct Files {
    files: Vec<Generated>,
    proof: String,
}

fn generate(formats: &Formats, from_rdl: peakrdl::Exports) -> Outcome<Files> {
    let types = type_names::TypeNames::parse(&from_rdl.typed_header, "beeline_nic")?;
    let map = ipxact::parse(&from_rdl.ipxact, &types)?;
    map.check()?;
    agree(formats, &map)?;
    let texts = [
        ("c/beeline_formats.h", emit::c::emit(formats, &map)),
        ("c/beeline_nic.h", from_rdl.header),
        ("docs/formats.md", emit::markdown::formats(formats)),
        ("docs/registers.md", emit::markdown::registers(&map)),
        ("ipxact/beeline_nic.xml", from_rdl.ipxact),
        ("rust/formats.rs", emit::rust_formats::emit(formats)),
        ("rust/regs.rs", emit::rust_registers::emit(&map)),
        ("sv/nic_pkg.sv", emit::sv::emit(formats, &map)),
    ];
    let files = texts.map(|(path, text)| Generated { path, text }).into();
    Ok(Files { files, proof: emit::c::emit_proof(formats, &map) })
}

/// What the two sources both say must be the same.
fn agree(formats: &Formats, map: &Map) -> Outcome {
    let queues = formats.size("max_queues")?;
    for name in ["queue", "doorbell"] {
        let count = map.block(name)?.array.map_or(1, |array| array.count);
        if count != queues {
            return Err(Failure::new(format!(
                "spec/nic.rdl has {count} `{name}` blocks, spec/formats.toml says max_queues = {queues}"
            )));
        }
    }
    let register = map.register_types().into_iter().find(|register| register.type_name == "queue_control");
    let field = register.and_then(|register| register.fields.iter().find(|field| field.name == "iface"));
    let in_map: Vec<_> = field.iter().flat_map(|f| &f.values).map(|v| (v.name.as_str(), v.value)).collect();
    let interfaces = formats.enums.iter().find(|(name, _)| name == "interface");
    let in_formats: Vec<_> =
        interfaces.iter().flat_map(|(_, e)| &e.values).map(|v| (v.name.as_str(), v.value)).collect();
    if in_map == in_formats {
        return Ok(());
    }
    Err(Failure::new(format!(
        "the interfaces of spec/nic.rdl (iface_e) and spec/formats.toml (enum.interface) differ: {in_map:?}, {in_formats:?}"
    )))
}

fn read(path: &Path) -> Outcome<String> {
    fs::read_to_string(path).while_doing(format!("read {}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::registers::{Array, Block, Field, Item, Register, Value};
    use super::*;

    const FORMATS: &str = include_str!("../../../spec/formats.toml");

    /// A map with what [`agree`] looks at: `queues` blocks of each kind, and an `iface` field with these values.
    fn map(queues: u64, interfaces: &[(&str, u64)]) -> Map {
        let text = |text: &str| text.to_owned();
        let value =
            |(name, value): &(&str, u64)| Value { name: text(name), doc: text("One."), value: *value };
        let iface = Field {
            name: text("iface"),
            doc: text("Which."),
            lsb: 4,
            width: 4,
            access: text("read-write"),
            write_effect: None,
            volatile: false,
            reset: Some(0),
            values: interfaces.iter().map(value).collect(),
        };
        let control = Register {
            name: text("control"),
            type_name: text("queue_control"),
            title: text("Queue control"),
            doc: text("Set-up."),
            offset: 0,
            array: None,
            fields: vec![iface],
        };
        let block = |name: &str, offset, registers| {
            Item::Block(Block {
                name: text(name),
                type_name: text(name),
                title: text(name),
                doc: text("Of a queue."),
                offset,
                array: Some(Array { count: queues, stride: 0x100 }),
                bytes: 8,
                registers,
            })
        };
        let items = vec![block("queue", 0, vec![control]), block("doorbell", 0x100_000, Vec::new())];
        Map { title: text("NIC"), doc: text("A NIC."), bytes: 0x200_000, items }
    }

    #[test]
    fn sources_that_disagree_are_refused() {
        let formats = Formats::parse(FORMATS).unwrap();
        let (_, interfaces) = formats.enums.iter().find(|(name, _)| name == "interface").unwrap();
        let mut interfaces: Vec<_> = interfaces.values.iter().map(|v| (v.name.as_str(), v.value)).collect();
        assert_eq!(agree(&formats, &map(1024, &interfaces)), Ok(()));
        let said = agree(&formats, &map(512, &interfaces)).unwrap_err().to_string();
        assert!(said.contains("512 `queue` blocks") && said.contains("max_queues = 1024"), "{said}");
        interfaces[5].1 = 9;
        let said = agree(&formats, &map(1024, &interfaces)).unwrap_err().to_string();
        assert!(said.contains("iface_e") && said.contains("9"), "{said}");
    }
}

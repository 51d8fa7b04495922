//! Reads the IP-XACT file (IEEE 1685-2014) that PeakRDL makes of `nic.rdl` into a [`Map`].
//!
//! IP-XACT is the hand-over because it is a standard and because it keeps everything but the names of register types,
//! which come from [`super::type_names`]. Only what PeakRDL-ipxact writes is read; anything else is an error, so that
//! a new kind of node is noticed and not lost.

use roxmltree::{Document, Node};

use super::naming::one_line;
use super::registers::{Array, Block, Field, Item, Map, REGISTER_BYTES, Register, Value};
use super::type_names::TypeNames;
use crate::failure::{Context, Failure, Outcome};

/// Reads `xml`; `types` gives each instance its type.
pub fn parse(xml: &str, types: &TypeNames) -> Outcome<Map> {
    let document = Document::parse(xml).while_doing("read the IP-XACT file that PeakRDL wrote")?;
    let block = document
        .descendants()
        .find(|node| node.has_tag_name_local("addressBlock"))
        .ok_or_else(|| Failure::new("the IP-XACT file has no address block"))?;
    let mut items = Vec::new();
    for node in block.children().filter(Node::is_element) {
        match node.tag_name().name() {
            "register" => items.push(Item::Register(register(node, &types.of_map)?)),
            "registerFile" => items.push(Item::Block(register_file(node, types)?)),
            "name" | "displayName" | "description" | "baseAddress" | "range" | "width" => {}
            other => return Err(unknown(other, "the address block")),
        }
    }
    items.sort_by_key(|item| match item {
        Item::Register(register) => register.offset,
        Item::Block(block) => block.offset,
    });
    Ok(Map {
        title: text(block, "displayName").unwrap_or_default(),
        doc: one_line(&text(block, "description").unwrap_or_default()),
        bytes: number(block, "range")?,
        items,
    })
}

/// Tag comparison that does not care about the namespace prefix.
trait LocalName {
    fn has_tag_name_local(&self, name: &str) -> bool;
}

impl LocalName for Node<'_, '_> {
    fn has_tag_name_local(&self, name: &str) -> bool {
        self.tag_name().name() == name
    }
}

fn unknown(tag: &str, parent: &str) -> Failure {
    Failure::new(format!("the IP-XACT file has a `{tag}` in {parent}, which the generator does not know"))
}

fn text(node: Node<'_, '_>, tag: &str) -> Option<String> {
    let child = node.children().find(|child| child.has_tag_name_local(tag))?;
    Some(child.text().unwrap_or_default().to_owned())
}

fn required(node: Node<'_, '_>, tag: &str) -> Outcome<String> {
    text(node, tag).ok_or_else(|| {
        let whose = text(node, "name").unwrap_or_default();
        Failure::new(format!("the IP-XACT file gives no `{tag}` for `{whose}`"))
    })
}

/// A number as IP-XACT writes it: decimal, or `'h` and hexadecimal digits.
fn parse_number(text: &str) -> Option<u64> {
    match text.split_once("'h") {
        Some((_, digits)) => u64::from_str_radix(digits, 16).ok(),
        None => text.parse().ok(),
    }
}

fn number(node: Node<'_, '_>, tag: &str) -> Outcome<u64> {
    let digits = required(node, tag)?;
    parse_number(&digits).ok_or_else(|| Failure::new(format!("`{digits}` is not a number (IP-XACT `{tag}`)")))
}

fn small(node: Node<'_, '_>, tag: &str) -> Outcome<u32> {
    let value = number(node, tag)?;
    u32::try_from(value).map_err(|_| Failure::new(format!("{value} is too large for IP-XACT `{tag}`")))
}

/// The repetition of an instance: at most one dimension.
fn dimension(node: Node<'_, '_>, stride: u64) -> Outcome<Option<Array>> {
    let mut dims = node.children().filter(|child| child.has_tag_name_local("dim"));
    let Some(first) = dims.next() else { return Ok(None) };
    if dims.next().is_some() {
        let name = required(node, "name")?;
        return Err(Failure::new(format!("`{name}` has two dimensions; the generated constants know one")));
    }
    let count = first.text().and_then(parse_number);
    Ok(Some(Array { count: count.ok_or_else(|| Failure::new("an IP-XACT `dim` is not a number"))?, stride }))
}

fn register_file(node: Node<'_, '_>, types: &TypeNames) -> Outcome<Block> {
    let name = required(node, "name")?;
    let block = types.block(&name)?;
    let mut registers = Vec::new();
    for child in node.children().filter(Node::is_element) {
        match child.tag_name().name() {
            "register" => registers.push(register(child, &block.registers)?),
            "name" | "displayName" | "description" | "dim" | "addressOffset" | "range" => {}
            other => return Err(unknown(other, &format!("register file `{name}`"))),
        }
    }
    registers.sort_by_key(|register| register.offset);
    let end = |r: &Register| r.offset + r.array.map_or(REGISTER_BYTES, |a| a.count * a.stride);
    Ok(Block {
        type_name: block.type_name.clone(),
        title: text(node, "displayName").unwrap_or_default(),
        doc: one_line(&text(node, "description").unwrap_or_default()),
        offset: number(node, "addressOffset")?,
        array: dimension(node, number(node, "range")?)?,
        bytes: registers.iter().map(end).max().unwrap_or(0),
        registers,
        name,
    })
}

fn register(node: Node<'_, '_>, types: &[(String, String)]) -> Outcome<Register> {
    let name = required(node, "name")?;
    let bits = number(node, "size")?;
    if bits != REGISTER_BYTES * 8 {
        return Err(Failure::new(format!("register `{name}` has {bits} bits; every register has 64")));
    }
    let type_name = types.iter().find(|(member, _)| *member == name).map(|(_, type_name)| type_name.clone());
    let mut fields = node
        .children()
        .filter(|child| child.has_tag_name_local("field"))
        .map(field)
        .collect::<Outcome<Vec<_>>>()?;
    fields.sort_by_key(|field| field.lsb);
    Ok(Register {
        type_name: type_name.ok_or_else(|| {
            Failure::new(format!("PeakRDL's C header does not say which type register `{name}` has"))
        })?,
        title: text(node, "displayName").unwrap_or_default(),
        doc: one_line(&text(node, "description").unwrap_or_default()),
        offset: number(node, "addressOffset")?,
        array: dimension(node, REGISTER_BYTES)?,
        fields,
        name,
    })
}

fn field(node: Node<'_, '_>) -> Outcome<Field> {
    let nested = |tag| node.descendants().find(|child| child.has_tag_name_local(tag));
    let reset = match nested("reset") {
        Some(reset) => Some(number(reset, "value")?),
        None => None,
    };
    let values = node
        .descendants()
        .filter(|child| child.has_tag_name_local("enumeratedValue"))
        .map(|value| {
            Ok(Value {
                name: required(value, "name")?,
                doc: one_line(&text(value, "description").unwrap_or_default()),
                value: number(value, "value")?,
            })
        })
        .collect::<Outcome<Vec<_>>>()?;
    Ok(Field {
        name: required(node, "name")?,
        doc: one_line(&text(node, "description").unwrap_or_default()),
        lsb: small(node, "bitOffset")?,
        width: small(node, "bitWidth")?,
        access: required(node, "access")?,
        write_effect: text(node, "modifiedWriteValue"),
        volatile: text(node, "volatile").is_some_and(|volatile| volatile == "true"),
        reset,
        values,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::type_names::BlockTypes;

    fn types() -> TypeNames {
        TypeNames {
            of_map: vec![("control".into(), "control".into())],
            blocks: vec![BlockTypes {
                instance: "queue".into(),
                type_name: "queue".into(),
                registers: vec![("status".into(), "queue_status".into())],
            }],
        }
    }

    fn map(inside: &str) -> Outcome<Map> {
        let head = "<x:c xmlns:x='http://www.accellera.org/XMLSchema/IPXACT/1685-2014'><x:addressBlock>\
                    <x:name>nic</x:name><x:range>'h2000</x:range>";
        parse(&format!("{head}{inside}</x:addressBlock></x:c>"), &types())
    }

    fn register_xml(name: &str, extra: &str) -> String {
        format!(
            "<x:register><x:name>{name}</x:name><x:description>What.</x:description>{extra}<x:addressOffset>'h18\
             </x:addressOffset><x:size>64</x:size><x:field><x:name>enable</x:name><x:description>On.</x:description>\
             <x:bitOffset>4</x:bitOffset><x:resets><x:reset><x:value>'h1</x:value></x:reset></x:resets>\
             <x:bitWidth>2</x:bitWidth><x:access>read-write</x:access></x:field></x:register>"
        )
    }

    #[test]
    fn a_register_and_a_block_are_read() {
        let block = format!(
            "<x:registerFile><x:name>queue</x:name><x:description>Q.</x:description><x:dim>4</x:dim>\
             <x:addressOffset>'h1000</x:addressOffset><x:range>'h100</x:range>{}</x:registerFile>",
            register_xml("status", "")
        );
        let map = map(&(block + &register_xml("control", ""))).unwrap();
        assert_eq!(map.check(), Ok(()));
        let control = map.registers().next().unwrap();
        assert_eq!((control.offset, control.fields[0].mask(), control.fields[0].reset), (0x18, 3, Some(1)));
        let queue = map.block("queue").unwrap();
        assert_eq!(queue.array, Some(Array { count: 4, stride: 0x100 }));
        assert_eq!((queue.bytes, queue.registers[0].type_name.as_str()), (0x20, "queue_status"));
        assert!(map.block("absent").is_err());
    }

    #[test]
    fn what_is_not_known_is_an_error() {
        let message = |inside: &str| map(inside).unwrap_err().to_string();
        assert!(message("<x:bank/>").contains("`bank`"));
        assert!(message(&register_xml("other", "")).contains("which type register `other`"));
        assert!(
            message(&register_xml("control", "<x:dim>2</x:dim><x:dim>2</x:dim>")).contains("two dimensions")
        );
        assert!(message(&register_xml("control", "").replace(">64<", ">32<")).contains("has 32 bits"));
        assert!(message(&register_xml("control", "").replace("'h18", "'hzz")).contains("is not a number"));
        assert!(parse("<a><b></a>", &types()).unwrap_err().to_string().contains("IP-XACT"));
    }

    #[test]
    fn the_rules_of_the_map_are_checked() {
        let finding = |inside: &str| map(inside).unwrap().check().unwrap_err().to_string();
        assert!(
            finding(&register_xml("control", "").replace("What.", " ")).contains("`control` has no desc")
        );
        assert!(
            finding(&register_xml("control", "").replace("'h18", "'h1c")).contains("0x1c, not a multiple")
        );
        assert!(finding(&register_xml("control", "").replace(">enable<", ">class<")).contains("keyword"));
    }
}

//! Packets as a protocol analyser prints them: as a table, as CSV, as JSON.

use beeline_experiments::{Numbered, Trace};
use beeline_link_sim::pcie::{Class, Dllp, Header, Kind, Packet, Side, Tlp};
use comfy_table::Table;
use serde::Serialize;

use crate::compare::table::empty as empty_table;

/// A line of the table.
#[derive(Debug, Serialize)]
pub struct Line {
    /// Number of the packet, from 1.
    pub packet: u64,
    /// Whether it goes to the device or to the host.
    pub direction: &'static str,
    pub r#type: String,
    /// First byte that it is about.
    pub address: Option<u64>,
    pub length_bytes: Option<u32>,
    /// Tag of the request; requester and tag together name a transaction.
    pub tag: Option<u16>,
    /// Bytes or credits that an answer is about, in words.
    pub note: String,
    /// Of an acknowledgement: the last packet that it answers for.
    pub acknowledges: Option<u64>,
    /// When its first symbol left, from T0.
    pub at_ns: f64,
    /// When its last symbol left.
    pub ends_at_ns: f64,
}

pub fn lines(trace: &Trace) -> Vec<Line> {
    trace.packets.iter().map(|packet| line(trace, packet)).collect()
}

fn line(trace: &Trace, numbered: &Numbered) -> Line {
    let passed = &numbered.passed;
    let since = |at: beeline_link_sim::des::Picoseconds| at.since(trace.t0).0 as f64 / 1000.0;
    let empty = Line {
        packet: numbered.number,
        direction: if passed.from == Side::Upstream { "to device" } else { "to host" },
        r#type: String::new(),
        address: None,
        length_bytes: None,
        tag: None,
        note: String::new(),
        acknowledges: numbered.acknowledges,
        at_ns: since(passed.at),
        ends_at_ns: since(passed.ends_at),
    };
    match &passed.packet {
        Packet::Tlp(tlp) => {
            let is_answer = tlp.kind.class() == Class::Completion;
            let is_posted = tlp.kind.class() == Class::Posted;
            Line {
                r#type: kind(tlp),
                address: (!is_answer).then_some(tlp.address),
                length_bytes: Some(tlp.length_bytes),
                // A request that nobody answers needs no tag.
                tag: (!is_posted).then_some(tlp.tag),
                ..empty
            }
        }
        Packet::Dllp(Dllp::Acknowledge) => {
            let note = numbered
                .acknowledges
                .map_or("of one before T0".to_owned(), |number| format!("of packet {number}"));
            Line { r#type: "ACK".to_owned(), note, ..empty }
        }
        Packet::Dllp(Dllp::UpdateCredits { class, given }) => {
            let class = match class {
                Class::Posted => "P",
                Class::NonPosted => "NP",
                Class::Completion => "Cpl",
            };
            let note = format!("{} headers, {} x 16 B", given.headers, given.data_units);
            Line { r#type: format!("UpdateFC-{class}"), note, ..empty }
        }
    }
}

/// The name of a packet, with the width of its address where it has one.
fn kind(tlp: &Tlp) -> String {
    let width = if tlp.header == Header::FourDw { 64 } else { 32 };
    match tlp.kind {
        Kind::MemoryWrite => format!("MWr({width})"),
        Kind::MemoryRead => format!("MRd({width})"),
        Kind::Message => "Msg".to_owned(),
        Kind::NonPostedWrite => "CfgWr".to_owned(),
        Kind::Atomic => format!("AtomicOp({width})"),
        Kind::CompletionWithData => "CplD".to_owned(),
        Kind::Completion => "Cpl".to_owned(),
    }
}

pub fn table(lines: &[Line]) -> Table {
    let header = ["packet", "direction", "type", "address", "bytes", "tag", "T0 + ns", "about"];
    let mut table = empty_table(header.map(str::to_owned).to_vec());
    for column in [1, 2, 7] {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(comfy_table::CellAlignment::Left);
        }
    }
    for line in lines {
        let optional = |value: Option<String>| value.unwrap_or_default();
        table.add_row([
            line.packet.to_string(),
            line.direction.to_owned(),
            line.r#type.clone(),
            optional(line.address.map(|address| format!("{address:#x}"))),
            optional(line.length_bytes.map(|bytes| bytes.to_string())),
            optional(line.tag.map(|tag| tag.to_string())),
            format!("{:.1}", line.at_ns),
            line.note.clone(),
        ]);
    }
    table
}

pub fn csv(lines: &[Line]) -> String {
    let mut text = String::from(
        "label,packet,direction,type,address,length_bytes,tag,acknowledges,at_ns,ends_at_ns,note\n",
    );
    for line in lines {
        let optional = |value: Option<u64>| value.map_or(String::new(), |value| value.to_string());
        text += &format!(
            "simulated,{},{},{},{},{},{},{},{:.3},{:.3},{}\n",
            line.packet,
            line.direction,
            line.r#type,
            line.address.map_or(String::new(), |address| format!("{address:#x}")),
            optional(line.length_bytes.map(u64::from)),
            optional(line.tag.map(u64::from)),
            optional(line.acknowledges),
            line.at_ns,
            line.ends_at_ns,
            // The only comma of a note stands between headers and data.
            line.note.replace(", ", " and "),
        );
    }
    text
}

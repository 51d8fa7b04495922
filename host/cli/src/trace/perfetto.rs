//! A trace as trace events of Chrome's format, which Perfetto reads: a track for each core, the root complex, each
//! direction of the link, and the device. Times are from the first call, in microseconds.

use beeline_lab::{Act, Trace};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::pcie::Side;
use serde_json::{Value, json};

use super::packets::Line;

/// One process for all tracks, so that they stand together.
const PROCESS: u32 = 1;
const LINK_TO_DEVICE: u32 = 2001;
const LINK_TO_HOST: u32 = 2002;
const ROOT_COMPLEX: u32 = 2000;
const DEVICE: u32 = 2003;
const WIRE: u32 = 2004;
/// Track of core 0; the others follow.
const CORES: u32 = 1000;

/// The events of a trace; `lines` are its packets.
pub fn events(trace: &Trace, lines: &[Line], title: &str) -> Value {
    let from = trace.frames.iter().map(|frame| frame.begun_at).min().unwrap_or(trace.t0).min(trace.t0);
    let track = Tracks { from };
    let mut events =
        vec![json!({"ph": "M", "pid": PROCESS, "name": "process_name", "args": {"name": title}})];
    let mut cores: Vec<u16> = trace.frames.iter().map(|frame| frame.core.0).collect();
    cores.sort_unstable();
    cores.dedup();
    for core in cores {
        events.extend(name(CORES + u32::from(core), &format!("core {core}")));
    }
    for (id, label) in [
        (ROOT_COMPLEX, "root complex: reads"),
        (LINK_TO_DEVICE, "link down, to the device"),
        (LINK_TO_HOST, "link up, to the host"),
        (DEVICE, "device"),
        (WIRE, "wire"),
    ] {
        events.extend(name(id, label));
    }
    for (number, frame) in (1..).zip(&trace.frames) {
        let core = CORES + u32::from(frame.core.0);
        let label = format!("send frame {number}, {} B", frame.bytes);
        events.push(track.slice(core, &label, frame.begun_at, frame.returned_at, json!({})));
        let label = format!("frame {number}, {} B", frame.bytes);
        events.push(track.slice(WIRE, &label, frame.starts_at, frame.ends_at, json!({})));
    }
    for (line, packet) in lines.iter().zip(&trace.packets) {
        let id = if packet.passed.from == Side::Upstream { LINK_TO_DEVICE } else { LINK_TO_HOST };
        let label = match line.length_bytes {
            Some(bytes) => format!("{} {bytes} B", line.r#type),
            None => format!("{} {}", line.r#type, line.note),
        };
        let args = serde_json::to_value(line).unwrap_or_default();
        events.push(track.slice(id, &label, packet.passed.at, packet.passed.ends_at, args));
    }
    for (number, (at, ends_at, address, bytes)) in (1u64..).zip(trace.answered_reads()) {
        let args = json!({"address": format!("{address:#x}"), "bytes": bytes});
        events.extend(track.overlapping(
            ROOT_COMPLEX,
            number,
            &format!("read {bytes} B"),
            (at, ends_at),
            &args,
        ));
    }
    events.extend(trace.notes.iter().map(|noted| track.instant(DEVICE, &act(&noted.act), noted.at)));
    json!({"displayTimeUnit": "ns", "traceEvents": events, "otherData": {"label": "simulated"}})
}

/// What a device did, in words.
fn act(act: &Act) -> String {
    match act {
        Act::Write { offset_bytes, bytes } => format!("takes {bytes} B at {offset_bytes:#x}"),
        Act::Load { offset_bytes } => format!("is asked for {offset_bytes:#x}"),
        Act::DmaRead { address, bytes, tag } => format!("wants {bytes} B at {address:#x} (read {tag})"),
        Act::DmaDone { tag } => format!("has the data of read {tag}"),
        Act::LineChanged { tag } => format!("sees that line {tag} has changed"),
        Act::DmaWrite { address, bytes } => format!("writes {bytes} B to {address:#x}"),
        Act::Transmit { bytes } => format!("lets a frame of {bytes} B go"),
        Act::Interrupt => "interrupts".to_owned(),
    }
}

/// The name and the place of a track.
fn name(track: u32, name: &str) -> [Value; 2] {
    [
        json!({"ph": "M", "pid": PROCESS, "tid": track, "name": "thread_name", "args": {"name": name}}),
        json!({"ph": "M", "pid": PROCESS, "tid": track, "name": "thread_sort_index", "args": {"sort_index": track}}),
    ]
}

/// Events at times from `from` on.
struct Tracks {
    from: Picoseconds,
}

impl Tracks {
    fn us(&self, at: Picoseconds) -> f64 {
        at.since(self.from).0 as f64 / 1e6
    }

    fn slice(&self, track: u32, name: &str, at: Picoseconds, ends_at: Picoseconds, args: Value) -> Value {
        let (ts, dur) = (self.us(at), ends_at.since(at).0 as f64 / 1e6);
        json!({"ph": "X", "pid": PROCESS, "tid": track, "name": name, "ts": ts, "dur": dur, "args": args})
    }

    /// A slice that may overlap others of its track.
    fn overlapping(
        &self,
        track: u32,
        id: u64,
        name: &str,
        (at, ends_at): (Picoseconds, Picoseconds),
        args: &Value,
    ) -> [Value; 2] {
        [("b", at), ("e", ends_at)].map(|(phase, at)| {
            json!({"ph": phase, "cat": "root complex", "id": id, "pid": PROCESS, "tid": track, "name": name,
                   "ts": self.us(at), "args": args})
        })
    }

    fn instant(&self, track: u32, name: &str, at: Picoseconds) -> Value {
        json!({"ph": "i", "s": "t", "pid": PROCESS, "tid": track, "name": name, "ts": self.us(at)})
    }
}

//! A trace as trace events of Chrome's format, which Perfetto reads: a track for each core, the root complex, each
//! direction of the link, and the device. Times are from the first call, in microseconds.
//!
//! Perfetto keeps whole nanoseconds. It rounds a beginning and a duration apart, so that packets which follow each other
//! within a fraction of one would overlap, and it drops a slice that overlaps another of its track. So both ends are cut
//! to nanoseconds here, where they stay in order; the picoseconds are in a packet's arguments. What does overlap, reads at
//! the root complex, lies on as many tracks as it takes, since an asynchronous slice gets a track named after itself.

use beeline_experiments::{Act, Trace};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::pcie::Side;
use serde_json::{Value, json};

use super::packets::Line;

/// One process for all tracks, so that they stand together.
const PROCESS: u32 = 1;
/// Track of core 0; the others follow.
const CORES: u32 = 1000;
/// First track of reads at the root complex; the others follow.
const ROOT_COMPLEX: u32 = 2000;
const LINK_TO_DEVICE: u32 = 4001;
const LINK_TO_HOST: u32 = 4002;
const DEVICE: u32 = 4003;
const WIRE: u32 = 4004;

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
    let mut free_at: Vec<Picoseconds> = Vec::new();
    for (at, ends_at, address, bytes) in trace.answered_reads() {
        let place = place(&mut free_at, at, ends_at);
        let args = json!({"address": format!("{address:#x}"), "bytes": bytes});
        events.push(track.slice(ROOT_COMPLEX + place, &format!("read {bytes} B"), at, ends_at, args));
    }
    // There is one even where nothing is read: it shows that.
    for number in 0..free_at.len().max(1) as u32 {
        events.extend(name(ROOT_COMPLEX + number, &format!("root complex: reads {}", number + 1)));
    }
    events.extend(trace.notes.iter().map(|noted| track.instant(DEVICE, &act(&noted.act), noted.at)));
    json!({"displayTimeUnit": "ns", "traceEvents": events, "otherData": {"label": "simulated"}})
}

/// The first place that is free from `at` on, taken until `ends_at`; there are as many as were ever in use at a time.
fn place(free_at: &mut Vec<Picoseconds>, at: Picoseconds, ends_at: Picoseconds) -> u32 {
    let found = free_at.iter().position(|free| *free <= at).unwrap_or(free_at.len());
    match free_at.get_mut(found) {
        Some(free) => *free = ends_at,
        None => free_at.push(ends_at),
    }
    found as u32
}

/// Describes an operation of a device in words.
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
    /// Whole nanoseconds, as the reader keeps them.
    fn ns(&self, at: Picoseconds) -> u64 {
        at.since(self.from).as_ns()
    }

    fn slice(&self, track: u32, name: &str, at: Picoseconds, ends_at: Picoseconds, args: Value) -> Value {
        let (ts, dur) = (us(self.ns(at)), us(self.ns(ends_at) - self.ns(at)));
        json!({"ph": "X", "pid": PROCESS, "tid": track, "name": name, "ts": ts, "dur": dur, "args": args})
    }

    fn instant(&self, track: u32, name: &str, at: Picoseconds) -> Value {
        json!({"ph": "i", "s": "t", "pid": PROCESS, "tid": track, "name": name, "ts": us(self.ns(at))})
    }
}

fn us(ns: u64) -> f64 {
    ns as f64 / 1000.0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slices_that_follow_each_other_do_not_overlap_when_a_reader_rounds_them() {
        let track = Tracks { from: Picoseconds(700) };
        // What 64 bytes take on 16 lanes of Gen4, end to end.
        let ends: Vec<Picoseconds> = (0..1000).map(|number| Picoseconds(700 + number * 2794)).collect();
        let slices: Vec<Value> =
            ends.windows(2).map(|ends| track.slice(1, "x", ends[0], ends[1], json!({}))).collect();
        let ns = |slice: &Value, key: &str| (slice[key].as_f64().unwrap_or(-1.0) * 1000.0).round() as u64;
        for pair in slices.windows(2) {
            assert_eq!(ns(&pair[0], "ts") + ns(&pair[0], "dur"), ns(&pair[1], "ts"));
        }
    }

    #[test]
    fn what_overlaps_lies_on_places_of_its_own() {
        let mut free_at = Vec::new();
        let spans = [(0, 10), (5, 15), (10, 20), (12, 13), (15, 16)];
        let places: Vec<u32> = spans
            .iter()
            .map(|(at, ends_at)| place(&mut free_at, Picoseconds(*at), Picoseconds(*ends_at)))
            .collect();
        assert_eq!((places, free_at.len()), (vec![0, 1, 0, 2, 1], 3));
    }
}

//! What must hold for a case before any device is blamed for failing it.

use beeline_spec::formats::{MAX_FRAME_BYTES, MIN_FRAME_BYTES};
use beeline_spec::regs::counter;
use beeline_spec::{Interface, LINE_BYTES, WORD_BYTES, escape};

use crate::case::{Action, Bytes, Case, Count, DeviceParameters, WindowKind, Write};

/// Most bytes of a write that has byte enables: bits of the mask.
const MASKED_BYTES: usize = 64;

/// Says what is wrong with a case, if anything.
pub(crate) fn check(case: &Case) -> Result<(), String> {
    if case.why.trim().is_empty() || case.source.trim().is_empty() {
        return Err("a case says why it is there and where its rule comes from".to_owned());
    }
    device(&case.device)?;
    if case.events.is_empty() {
        return Err("nothing happens".to_owned());
    }
    for (index, event) in case.events.iter().enumerate() {
        let wrong = |why: String| format!("event {index}: {why}");
        match &event.action {
            Action::Write(write) => self::write(&case.device, write).map_err(wrong)?,
            Action::Frame(_) => {}
            _ if event.then.refused => {
                return Err(wrong("only a write or a frame can be refused".to_owned()));
            }
            Action::Memory(bytes) => self::memory(bytes).map_err(wrong)?,
            Action::Read { at, words } => read(&case.device, *at, *words).map_err(wrong)?,
            _ => {}
        }
        event.then.memory.iter().try_for_each(self::memory).map_err(wrong)?;
        for frame in &event.then.frames {
            let longest = case.device.max_frame_bytes as usize;
            if !(MIN_FRAME_BYTES..=longest).contains(&frame.len()) {
                return Err(wrong(format!("no frame of {} bytes leaves this device", frame.len())));
            }
        }
    }
    counters(case)
}

fn device(device: &DeviceParameters) -> Result<(), String> {
    for (what, lines) in [("window_lines", device.window_lines), ("span_lines", device.span_lines)] {
        if !lines.is_power_of_two() {
            return Err(format!("{what} = {lines} is not a power of two"));
        }
    }
    if device.span_lines > device.window_lines {
        return Err(format!("span_lines = {} is more than the window has", device.span_lines));
    }
    if device.contexts == 0 || device.pool_lines == 0 {
        return Err("a device has at least one context and one pool line".to_owned());
    }
    if !(MIN_FRAME_BYTES..=MAX_FRAME_BYTES).contains(&(device.max_frame_bytes as usize)) {
        return Err(format!("max_frame_bytes = {} is not one a port can have", device.max_frame_bytes));
    }
    match device.window {
        WindowKind::Blank(blank) if !escape::is_blank_value(blank) => {
            Err(format!("{blank:016x} is no blank: bit 63 is clear"))
        }
        _ if device.interface == Interface::Descriptor => {
            Err("descriptors do not come by a window".to_owned())
        }
        _ => Ok(()),
    }
}

fn memory(bytes: &Bytes) -> Result<(), String> {
    let end = bytes.at.saturating_add(bytes.bytes.len() as u64);
    if bytes.bytes.is_empty() || end > bytes.area.bytes() {
        return Err(format!(
            "{} bytes at {} do not lie in an area of {}",
            bytes.bytes.len(),
            bytes.at,
            bytes.area.bytes()
        ));
    }
    Ok(())
}

fn read(device: &DeviceParameters, at: u64, words: u32) -> Result<(), String> {
    let (bytes, window_bytes) = (u64::from(words) * 8, u64::from(device.window_lines) * LINE_BYTES as u64);
    if words == 0 || at.saturating_add(bytes) > window_bytes {
        return Err(format!("{words} words at {at} are no read of a window of {window_bytes} bytes"));
    }
    Ok(())
}

fn write(device: &DeviceParameters, write: &Write) -> Result<(), String> {
    let Write { at, bytes, enables } = write;
    let window_bytes = u64::from(device.window_lines) * LINE_BYTES as u64;
    if bytes.is_empty() || at.saturating_add(bytes.len() as u64) > window_bytes {
        return Err(format!(
            "{} bytes at {at} are no write to a window of {window_bytes} bytes",
            bytes.len()
        ));
    }
    if let Some(mask) = *enables {
        let beyond = bytes.len() < MASKED_BYTES && mask >> bytes.len() != 0;
        if bytes.len() > MASKED_BYTES || beyond || mask == 0 {
            return Err(format!("enables {mask:016x} do not fit a write of {} bytes", bytes.len()));
        }
    }
    let WindowKind::Blank(blank) = device.window else { return Ok(()) };
    let words = bytes.as_chunks::<WORD_BYTES>();
    if at % WORD_BYTES as u64 != 0 || !words.1.is_empty() || enables.is_some() {
        return Err("only whole aligned words arrive in a blank window".to_owned());
    }
    if words.0.iter().any(|word| u64::from_le_bytes(*word) == blank) {
        return Err("a sender never stores the blank; it stores a link".to_owned());
    }
    Ok(())
}

fn counters(case: &Case) -> Result<(), String> {
    for name in case.expect.counters.keys() {
        counter_offset(name).ok_or_else(|| format!("`{name}` is no counter of spec/nic.rdl"))?;
    }
    let listed = |name: &str| case.expect.counters.get(name).copied();
    let frames = case.frames().count() as u64;
    if listed("tx_frames").is_some_and(|count| count != Count::Exactly(frames)) {
        return Err(format!("tx_frames is not the {frames} frames that leave"));
    }
    let writes = case.events.iter().filter(|event| matches!(event.action, Action::Write(_))).count() as u64;
    let taken = |name: &str| match listed(name) {
        Some(Count::Exactly(count)) => count,
        _ => 0,
    };
    let (taken, dropped) = (taken("tx_writes"), taken("quarantined_writes"));
    // Saturating: the file may say any numbers.
    if taken.saturating_add(dropped) > writes {
        return Err(format!("tx_writes and quarantined_writes are {taken} + {dropped} of {writes} writes"));
    }
    Ok(())
}

/// Byte offset in the counter block of a counter, or of an element of a histogram (`tlp_bytes_histogram[7]`).
pub(crate) fn counter_offset(name: &str) -> Option<u32> {
    let (base, index) = match name.split_once('[') {
        Some((base, rest)) => (base, rest.strip_suffix(']')?.parse::<u32>().ok()?),
        None => (name, 0),
    };
    let (_, offset) = counter::ALL.iter().find(|(known, _)| *known == base)?;
    let (count, stride) = match *offset {
        counter::TLP_BYTES_HISTOGRAM => {
            (counter::TLP_BYTES_HISTOGRAM_COUNT, counter::TLP_BYTES_HISTOGRAM_STRIDE)
        }
        counter::DISPLACEMENT_HISTOGRAM => {
            (counter::DISPLACEMENT_HISTOGRAM_COUNT, counter::DISPLACEMENT_HISTOGRAM_STRIDE)
        }
        _ => (0, 0),
    };
    match (name.ends_with(']'), count) {
        (false, 0) => Some(*offset),
        (true, count) if index < count => Some(offset + index * stride),
        _ => None,
    }
}

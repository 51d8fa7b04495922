//! Cases of lap windows: what their receivers make of words, and what their senders store. No device has such a window, so
//! these cases have a folder and members of their own.

use std::path::Path;

use serde::Deserialize;

use crate::case::Write;
use crate::file::{LoadError, RawWrite, check_name, load_each, said};
use crate::notation::parse_bytes;

/// One vector of a lap window.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LapCase {
    /// Name, which is the file's without its ending.
    pub name: String,
    /// The rule that the case shows, in a sentence.
    pub why: String,
    /// Where the rule is stated.
    pub source: String,
    /// Lines of the window, a power of two.
    pub window_lines: u32,
    /// Epoch of the window.
    pub epoch: u8,
    /// Events, in order.
    pub events: Vec<LapEvent>,
}

/// Whole words that become visible, and what a receiver that looks then must find.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LapEvent {
    /// What a reader should know about it; may be empty.
    pub note: String,
    pub write: Write,
    /// Messages that are complete now and were not before, in order.
    pub messages: Vec<Vec<u8>>,
    /// Next start in lines since the window was made.
    pub next_start: u64,
    /// Whether the receiver finds what no sender stores.
    pub fails: bool,
}

/// Every case of a lap window, by name.
///
/// # Errors
/// The first file that cannot be read or makes no sense.
pub fn load_laps() -> Result<Vec<LapCase>, LoadError> {
    load_each(&Path::new(env!("CARGO_MANIFEST_DIR")).join("laps"), |name, raw: RawCase| {
        check_name(&raw.name, name)?;
        raw.decode()
    })
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCase {
    name: String,
    why: String,
    source: String,
    window_lines: u32,
    epoch: u8,
    events: Vec<RawEvent>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEvent {
    #[serde(default)]
    note: String,
    write: RawWrite,
    then: RawThen,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawThen {
    #[serde(default)]
    messages: Vec<String>,
    next_start: u64,
    #[serde(default)]
    fails: bool,
}

impl RawCase {
    fn decode(self) -> Result<LapCase, String> {
        if !self.window_lines.is_power_of_two() {
            return Err(format!("{} lines are not a power of two", self.window_lines));
        }
        let window_bytes = u64::from(self.window_lines) * 64;
        let events = self.events.into_iter().map(|event| event.decode(window_bytes));
        Ok(LapCase {
            events: events.collect::<Result<_, _>>()?,
            name: self.name,
            why: self.why,
            source: self.source,
            window_lines: self.window_lines,
            epoch: self.epoch,
        })
    }
}

impl RawEvent {
    fn decode(self, window_bytes: u64) -> Result<LapEvent, String> {
        let write = self.write.decode()?;
        let bytes = write.bytes.len() as u64;
        if write.enables.is_some() || !write.at.is_multiple_of(8) || !bytes.is_multiple_of(8) {
            return Err(format!("`{}` is not of whole words", self.note));
        }
        if write.at.checked_add(bytes).is_none_or(|end| end > window_bytes) {
            return Err(format!("`{}` is outside the window", self.note));
        }
        let messages = self.then.messages.iter();
        let messages = messages.map(|bytes| parse_bytes(bytes).map_err(|error| said("message", &error)));
        Ok(LapEvent {
            note: self.note,
            write,
            messages: messages.collect::<Result<_, _>>()?,
            next_start: self.then.next_start,
            fails: self.then.fails,
        })
    }
}

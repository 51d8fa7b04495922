//! The files: JSON, one case each, read into [`Case`]. Unknown members are errors, so that a slip is not ignored.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use beeline_spec::Interface;
use beeline_spec::formats::KPIO_EOP_DEFAULT;
use beeline_spec::regs::field::queue_status::cause;
use beeline_spec::regs::field::rx_mode::mode;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::case::{
    Action, Bytes, Case, Count, DeviceParameters, Doorbell, Event, Expectation, HostSide, QueueStatus, Then,
    WindowKind, Write,
};
use crate::check;
use crate::host::Area;
use crate::notation::{NotationError, parse_bytes, parse_word};

/// Longest frame of a device that does not say.
const MAX_FRAME_BYTES: u32 = 1514;

/// Why cases cannot be used.
#[derive(Debug, Error)]
pub enum LoadError {
    /// A file or the folder cannot be read.
    #[error("cannot read {path}: {cause}")]
    Read {
        /// File or folder.
        path: PathBuf,
        cause: std::io::Error,
    },
    /// A file is not JSON, or lacks members, or has unknown ones.
    #[error("{path}: {cause}")]
    Json {
        /// File.
        path: PathBuf,
        cause: serde_json::Error,
    },
    /// A case makes no sense.
    #[error("{path}: {problem}")]
    Case {
        /// File.
        path: PathBuf,
        problem: String,
    },
    /// There is no case.
    #[error("no case in {0}")]
    Empty(PathBuf),
}

/// Every case of the project, by name.
///
/// # Errors
/// The first file that cannot be read or makes no sense.
pub fn load() -> Result<Vec<Case>, LoadError> {
    load_folder(&Path::new(env!("CARGO_MANIFEST_DIR")).join("cases"))
}

/// Every `*.json` in a folder, by name.
///
/// # Errors
/// The first file that cannot be read or makes no sense.
pub fn load_folder(folder: &Path) -> Result<Vec<Case>, LoadError> {
    load_each(folder, |name, raw: RawCase| {
        let case = raw.decode()?;
        check_name(&case.name, name)?;
        check::check(&case)?;
        Ok(case)
    })
}

/// Reads every `*.json` in a folder, by name, and makes a case of each, or says what is wrong with it.
pub(crate) fn load_each<Raw: DeserializeOwned, Case>(
    folder: &Path,
    make: impl Fn(&str, Raw) -> Result<Case, String>,
) -> Result<Vec<Case>, LoadError> {
    let unreadable = |cause| LoadError::Read { path: folder.to_owned(), cause };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|ext| ext == "json") {
            paths.push(path);
        }
    }
    paths.sort();
    let mut cases = Vec::new();
    for path in paths {
        let text =
            std::fs::read_to_string(&path).map_err(|cause| LoadError::Read { path: path.clone(), cause })?;
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let raw =
            serde_json::from_str(&text).map_err(|cause| LoadError::Json { path: path.clone(), cause })?;
        cases.push(make(&name, raw).map_err(|problem| LoadError::Case { path, problem })?);
    }
    if cases.is_empty() { Err(LoadError::Empty(folder.to_owned())) } else { Ok(cases) }
}

/// A case is called as its file is.
pub(crate) fn check_name(case: &str, file: &str) -> Result<(), String> {
    if case == file { Ok(()) } else { Err(format!("the case is called `{case}`, its file `{file}`")) }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawCase {
    name: String,
    why: String,
    source: String,
    device: RawDevice,
    events: Vec<RawEvent>,
    expect: RawExpectation,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawDevice {
    interface: String,
    window: RawWindow,
    window_lines: u32,
    span_lines: u32,
    epoch: u8,
    blank: Option<String>,
    contexts: Option<u32>,
    pool_lines: Option<u32>,
    max_frame_bytes: Option<u32>,
    #[serde(default)]
    hole_timeout_ns: u64,
    #[serde(default)]
    backpressure: bool,
    #[serde(default)]
    checksums: bool,
    #[serde(default)]
    cut_through_lines: u16,
    kpio_eop: Option<String>,
    host: Option<RawHostSide>,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct RawHostSide {
    ring_lines: u32,
    self_test: u32,
    entry_lines_log2: u32,
    entry_hold_ns: u32,
    rx_mode: Option<String>,
    rx_lines: u32,
    notifications: u32,
    rx_reads: bool,
    rx_entry_lines_log2: Option<u32>,
    rx_buffers: u32,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum RawWindow {
    Observed,
    Blank,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEvent {
    #[serde(default)]
    note: String,
    write: Option<RawWrite>,
    time_ns: Option<u64>,
    wire_ready: Option<bool>,
    wire_beats: Option<u32>,
    restart: Option<RawRestart>,
    memory: Option<RawBytes>,
    doorbell: Option<RawDoorbell>,
    frame: Option<String>,
    read: Option<RawRead>,
    dma_ready: Option<bool>,
    #[serde(default)]
    then: RawThen,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBytes {
    area: String,
    at: u64,
    bytes: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "snake_case")]
enum RawDoorbell {
    TxTail(u64),
    RxFreed(u64),
    EntriesFreed(u64),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRead {
    at: u64,
    words: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RawWrite {
    at: u64,
    bytes: String,
    enables: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawRestart {
    epoch: u8,
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, default)]
struct RawThen {
    frames: Vec<String>,
    aborted: Vec<String>,
    next_start: Option<u64>,
    freed_lines: Option<u64>,
    status: Option<RawStatus>,
    refused: bool,
    answers: Vec<String>,
    memory: Vec<RawBytes>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawStatus {
    active: bool,
    quarantined: bool,
    cause: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawExpectation {
    status: RawStatus,
    freed_lines: u64,
    counters: BTreeMap<String, RawCount>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum RawCount {
    Exactly(u64),
    AtLeast(String),
}

pub(crate) fn said(what: &str, error: &NotationError) -> String {
    format!("{what}: {error}")
}

impl RawCase {
    fn decode(self) -> Result<Case, String> {
        let events = self.events.into_iter().enumerate();
        let events =
            events.map(|(index, event)| event.decode().map_err(|why| format!("event {index}: {why}")));
        Ok(Case {
            name: self.name,
            why: self.why,
            source: self.source,
            device: self.device.decode()?,
            events: events.collect::<Result<_, _>>()?,
            expect: self.expect.decode()?,
        })
    }
}

impl RawDevice {
    fn decode(self) -> Result<DeviceParameters, String> {
        let interface: Interface =
            self.interface.parse().map_err(|why| format!("`{}`: {why}", self.interface))?;
        let word = |what: &str, digits: &str| parse_word(digits).map_err(|error| said(what, &error));
        let window = match (self.window, self.blank) {
            (RawWindow::Observed, None) => WindowKind::Observed,
            (RawWindow::Blank, Some(blank)) => WindowKind::Blank(word("blank", &blank)?),
            (RawWindow::Observed, Some(_)) => return Err("an observed window has no blank".to_owned()),
            (RawWindow::Blank, None) => return Err("a blank window needs its blank".to_owned()),
        };
        Ok(DeviceParameters {
            interface,
            window,
            window_lines: self.window_lines,
            span_lines: self.span_lines,
            contexts: self.contexts.unwrap_or(1),
            pool_lines: self.pool_lines.unwrap_or(self.window_lines),
            max_frame_bytes: self.max_frame_bytes.unwrap_or(MAX_FRAME_BYTES),
            epoch: self.epoch,
            hole_timeout_ns: self.hole_timeout_ns,
            backpressure: self.backpressure,
            checksums: self.checksums,
            cut_through_lines: self.cut_through_lines,
            kpio_eop: match self.kpio_eop {
                Some(eop) => word("kpio_eop", &eop)?,
                None => KPIO_EOP_DEFAULT,
            },
            host: self.host.map(RawHostSide::decode).transpose()?.unwrap_or_default(),
        })
    }
}

impl RawHostSide {
    fn decode(self) -> Result<HostSide, String> {
        let rx_mode = match &self.rx_mode {
            None => mode::OFF as u8,
            Some(name) => {
                let known = mode::ALL.iter().find(|(known, _)| known == name);
                known.map(|(_, value)| *value as u8).ok_or_else(|| format!("`{name}` is no receive mode"))?
            }
        };
        Ok(HostSide {
            has_memory: true,
            ring_lines: self.ring_lines,
            self_test: self.self_test,
            entry_lines_log2: self.entry_lines_log2,
            entry_hold_ns: self.entry_hold_ns,
            rx_mode,
            rx_lines: self.rx_lines,
            notifications: self.notifications,
            rx_reads: self.rx_reads,
            rx_entry_lines_log2: self.rx_entry_lines_log2,
            rx_buffers: self.rx_buffers,
        })
    }
}

impl RawBytes {
    fn decode(self) -> Result<Bytes, String> {
        let known = Area::ALL.iter().find(|(name, _)| *name == self.area);
        let area = known.ok_or_else(|| format!("`{}` is no area of the host's memory", self.area))?.1;
        let bytes = parse_bytes(&self.bytes).map_err(|error| said("bytes", &error))?;
        Ok(Bytes { area, at: self.at, bytes })
    }
}

impl RawDoorbell {
    fn decode(self) -> Action {
        match self {
            RawDoorbell::TxTail(value) => Action::Doorbell(Doorbell::TxTail, value),
            RawDoorbell::RxFreed(value) => Action::Doorbell(Doorbell::RxFreed, value),
            RawDoorbell::EntriesFreed(value) => Action::Doorbell(Doorbell::EntriesFreed, value),
        }
    }
}

impl RawEvent {
    fn decode(self) -> Result<Event, String> {
        let actions = [
            self.write.map(RawWrite::decode).transpose()?.map(Action::Write),
            self.time_ns.map(Action::Time),
            self.wire_ready.map(Action::WireReady),
            self.wire_beats.map(Action::WireBeats),
            self.restart.map(|restart| Action::Restart { epoch: restart.epoch }),
            self.memory.map(RawBytes::decode).transpose()?.map(Action::Memory),
            self.doorbell.map(RawDoorbell::decode),
            self.frame
                .map(|frame| parse_bytes(&frame).map_err(|error| said("frame", &error)))
                .transpose()?
                .map(Action::Frame),
            self.read.map(|read| Action::Read { at: read.at, words: read.words }),
            self.dma_ready.map(Action::DmaReady),
        ];
        let mut actions = actions.into_iter().flatten();
        match (actions.next(), actions.next()) {
            (Some(action), None) => Ok(Event { note: self.note, action, then: self.then.decode()? }),
            _ => Err(
                "one of write, time_ns, wire_ready, wire_beats, restart, memory, doorbell, frame, read and \
                      dma_ready is needed, and only one"
                    .to_owned(),
            ),
        }
    }
}

impl RawWrite {
    pub(crate) fn decode(self) -> Result<Write, String> {
        let bytes = parse_bytes(&self.bytes).map_err(|error| said("bytes", &error))?;
        let enables =
            self.enables.as_deref().map(parse_word).transpose().map_err(|error| said("enables", &error))?;
        Ok(Write { at: self.at, bytes, enables })
    }
}

impl RawThen {
    fn decode(self) -> Result<Then, String> {
        let bytes_of = |frames: &[String]| {
            let bytes = frames.iter().map(|frame| parse_bytes(frame).map_err(|error| said("frame", &error)));
            bytes.collect::<Result<Vec<_>, _>>()
        };
        Ok(Then {
            frames: bytes_of(&self.frames)?,
            aborted: bytes_of(&self.aborted)?,
            next_start: self.next_start,
            freed_lines: self.freed_lines,
            status: self.status.map(RawStatus::decode).transpose()?,
            refused: self.refused,
            answers: self
                .answers
                .iter()
                .map(|word| parse_word(word).map_err(|error| said("answer", &error)))
                .collect::<Result<_, _>>()?,
            memory: self.memory.into_iter().map(RawBytes::decode).collect::<Result<_, _>>()?,
        })
    }
}

impl RawStatus {
    fn decode(self) -> Result<QueueStatus, String> {
        let known = cause::ALL.iter().find(|(name, _)| *name == self.cause).map(|(_, value)| *value as u8);
        let cause = known.ok_or_else(|| format!("`{}` is no cause of queue status", self.cause))?;
        Ok(QueueStatus { active: self.active, quarantined: self.quarantined, cause })
    }
}

impl RawExpectation {
    fn decode(self) -> Result<Expectation, String> {
        let mut counters = BTreeMap::new();
        for (name, count) in self.counters {
            let count = match count {
                RawCount::Exactly(count) => Count::Exactly(count),
                RawCount::AtLeast(text) => {
                    let least = text.strip_prefix(">=").and_then(|digits| digits.trim().parse().ok());
                    Count::AtLeast(
                        least.ok_or_else(|| format!("counter {name}: `{text}` is not like \">=1\""))?,
                    )
                }
            };
            counters.insert(name, count);
        }
        Ok(Expectation { status: self.status.decode()?, freed_lines: self.freed_lines, counters })
    }
}

#[cfg(test)]
mod tests;

//! The up-link whose frames come from a capture file.

use std::fs::File;
use std::io::BufReader;
use std::path::Path;

use crate::records::Records;
use crate::{Accept, Traits, Uplink, UplinkError};

/// Gives the frames of a capture, in order, as fast as they are taken; takes none.
///
/// A frame that the capture cut short (`tcpdump -s`) is given as captured, counted, and warned about once.
pub struct PcapIn {
    name: String,
    records: Records<BufReader<File>>,
    is_finished: bool,
    frames: u64,
    cut_frames: u64,
    captured_at_ns: Option<u64>,
    warns: bool,
}

impl PcapIn {
    /// Opens a capture and reads its header.
    pub fn open(path: &Path) -> Result<Self, UplinkError> {
        let open = |error| UplinkError::Open { path: path.to_owned(), error };
        let file = File::open(path).map_err(open)?;
        if file.metadata().map_err(open)?.is_dir() {
            return Err(open(std::io::ErrorKind::IsADirectory.into()));
        }
        let records = Records::new(path, BufReader::new(file))?;
        let name = format!("pcap-in {}", path.display());
        Ok(PcapIn {
            name,
            records,
            is_finished: false,
            frames: 0,
            cut_frames: 0,
            captured_at_ns: None,
            warns: true,
        })
    }

    /// The same without a warning of cut frames: for a capture that is read again.
    #[must_use]
    pub fn without_warnings(self) -> Self {
        PcapIn { warns: false, ..self }
    }

    /// Frames given so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// When the last frame that was given had been captured, in nanoseconds since the epoch, where the capture says it.
    pub fn captured_at_ns(&self) -> Option<u64> {
        self.captured_at_ns
    }

    /// Frames given so far of which the capture holds only the beginning.
    pub fn cut_frames(&self) -> u64 {
        self.cut_frames
    }
}

impl Uplink for PcapIn {
    fn name(&self) -> &str {
        &self.name
    }

    fn traits(&self) -> Traits {
        Traits { takes: false, mirrors: false, gives: true, waits: true, learns: true }
    }

    fn send(&mut self, _frame: &[u8]) -> Result<Accept, UplinkError> {
        Err(UplinkError::TakesNone { name: self.name.clone() })
    }

    fn poll(&mut self, frame: &mut Vec<u8>) -> Result<bool, UplinkError> {
        if self.is_finished {
            return Ok(false);
        }
        // After an error the place in the file is unknown, so nothing more is read.
        let next = self.records.next(frame).inspect_err(|_| self.is_finished = true)?;
        let Some(record) = next else {
            self.is_finished = true;
            return Ok(false);
        };
        self.frames += 1;
        self.captured_at_ns = record.captured_at_ns;
        if (frame.len() as u64) < u64::from(record.original_bytes) {
            if self.cut_frames == 0 && self.warns {
                tracing::warn!(
                    "{}: the frame at byte {} has {} bytes of {}; cut frames are sent as captured",
                    self.records.path().display(),
                    record.offset_bytes,
                    frame.len(),
                    record.original_bytes
                );
            }
            self.cut_frames += 1;
        }
        Ok(true)
    }

    fn is_finished(&self) -> bool {
        self.is_finished
    }
}

#[cfg(test)]
#[path = "pcap_tests.rs"]
mod tests;

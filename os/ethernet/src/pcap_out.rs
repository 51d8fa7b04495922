//! The up-link that records what it is sent.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use pcap_file::pcap::PcapHeader;
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};

use crate::{Accept, Traits, Uplink, UplinkError};

/// Snapshot length that the header claims: what libpcap allows at most.
const SNAP_BYTES: u32 = 262_144;

/// Writes every frame it is sent to a classic capture with nanosecond timestamps; gives none.
///
/// Writes are buffered; [`Uplink::flush`] and dropping it bring them to the file.
#[derive(Debug)]
pub struct PcapOut {
    name: String,
    path: PathBuf,
    // Not `PcapWriter`: it cannot be flushed without being given up.
    writer: BufWriter<File>,
    frames: u64,
}

impl PcapOut {
    /// Creates the file, replacing one that is there, and writes its header.
    pub fn create(path: &Path) -> Result<Self, UplinkError> {
        let failed = |error| UplinkError::Write { path: path.to_owned(), error };
        let mut writer = BufWriter::new(File::create(path).map_err(failed)?);
        let header = PcapHeader {
            snaplen: SNAP_BYTES,
            datalink: DataLink::ETHERNET,
            ts_resolution: TsResolution::NanoSecond,
            endianness: Endianness::Little,
            ..PcapHeader::default()
        };
        header.write_to(&mut writer).map_err(|error| {
            failed(match error {
                PcapError::IoError(error) => error,
                other => io::Error::other(other),
            })
        })?;
        writer.flush().map_err(failed)?;
        Ok(PcapOut { name: format!("pcap-out {}", path.display()), path: path.to_owned(), writer, frames: 0 })
    }

    /// Frames written so far.
    pub fn frames(&self) -> u64 {
        self.frames
    }

    fn failed(&self, error: io::Error) -> UplinkError {
        UplinkError::Write { path: self.path.clone(), error }
    }
}

impl Uplink for PcapOut {
    fn name(&self) -> &str {
        &self.name
    }

    fn traits(&self) -> Traits {
        Traits { takes: true, mirrors: true, gives: false, waits: false, learns: false }
    }

    fn send(&mut self, frame: &[u8]) -> Result<Accept, UplinkError> {
        // A clock before 1970 gives time 0; what matters is the order of the records.
        let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let bytes = u32::try_from(frame.len()).unwrap_or(u32::MAX);
        let mut head = [0; 16];
        for (place, field) in
            head.chunks_exact_mut(4).zip([now.as_secs() as u32, now.subsec_nanos(), bytes, bytes])
        {
            place.copy_from_slice(&field.to_le_bytes());
        }
        self.writer.write_all(&head).map_err(|error| self.failed(error))?;
        self.writer.write_all(frame).map_err(|error| self.failed(error))?;
        self.frames += 1;
        Ok(Accept::Taken)
    }

    fn poll(&mut self, _frame: &mut Vec<u8>) -> Result<bool, UplinkError> {
        Ok(false)
    }

    fn flush(&mut self) -> Result<(), UplinkError> {
        self.writer.flush().map_err(|error| self.failed(error))
    }
}

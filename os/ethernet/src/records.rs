//! The records of a capture file: classic pcap (microseconds and nanoseconds, both byte orders) and pcapng.
//!
//! Every length is checked before it is used, so any bytes at all give records or one error with the offset of the
//! record it is about. Timestamps are handed on; frames are replayed as fast as they are taken.

use std::io::{self, BufRead, Read};
use std::path::{Path, PathBuf};

use pcap_file::pcap::PcapReader;
use pcap_file::{PcapError, TsResolution};

use crate::UplinkError;

/// Longest record that is read, in bytes: what libpcap itself allows.
const MAX_RECORD_BYTES: u32 = 262_144;
/// Link type of Ethernet.
const ETHERNET: u32 = 1;
/// Bytes of the file header of a classic capture.
const PCAP_HEADER_BYTES: u64 = 24;
const PCAP_RECORD_HEADER_BYTES: u64 = 16;

/// First word of a pcapng file; a palindrome, so that it says nothing about the byte order.
const SECTION_HEADER: u32 = 0x0a0d_0d0a;
const INTERFACE_DESCRIPTION: u32 = 1;
const OBSOLETE_PACKET: u32 = 2;
const SIMPLE_PACKET: u32 = 3;
const ENHANCED_PACKET: u32 = 6;
/// Longest block of any kind that is read; longer ones are damage.
const MAX_BLOCK_BYTES: u32 = 16 << 20;

/// What a record says besides its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// Offset of the record in the file.
    pub(crate) offset_bytes: u64,
    /// Bytes the frame had on the wire; more than were captured if the capture cut it.
    pub(crate) original_bytes: u32,
    /// When it was captured, in nanoseconds since the epoch, where the capture says it.
    pub(crate) captured_at_ns: Option<u64>,
}

/// Reads a capture record by record.
pub(crate) struct Records<R: BufRead> {
    path: PathBuf,
    offset_bytes: u64,
    format: Format<R>,
}

enum Format<R: BufRead> {
    Pcap(PcapReader<R>),
    PcapNg { reader: R, big_endian: bool, interfaces: Vec<CapturedInterface>, body: Vec<u8> },
}

/// A network interface that a pcapng section describes.
#[derive(Clone, Copy)]
struct CapturedInterface {
    link_type: u32,
    snap_bytes: u32,
    /// Resolution of the interface's timestamps.
    ticks_per_s: u64,
}

impl<R: BufRead> Records<R> {
    /// Looks at the first bytes and reads the file header.
    pub(crate) fn new(path: &Path, mut reader: R) -> Result<Self, UplinkError> {
        let path = path.to_owned();
        let first = match reader.fill_buf() {
            Ok(first) => &first[..first.len().min(4)],
            Err(error) => return Err(UplinkError::Read { path, offset_bytes: 0, error }),
        };
        if first == SECTION_HEADER.to_be_bytes() {
            let format =
                Format::PcapNg { reader, big_endian: false, interfaces: Vec::new(), body: Vec::new() };
            return Ok(Records { path, offset_bytes: 0, format });
        }
        const MAGICS: [u32; 2] = [0xa1b2_c3d4, 0xa1b2_3c4d];
        let found = first.to_vec();
        let is_pcap = MAGICS.iter().any(|magic| first == magic.to_be_bytes() || first == magic.to_le_bytes());
        if !is_pcap {
            return Err(UplinkError::NotCapture { path, found });
        }
        let reader = PcapReader::new(reader).map_err(|error| pcap_error(&path, 0, error))?;
        let found = u32::from(reader.header().datalink);
        if found != ETHERNET {
            return Err(UplinkError::LinkType { path, offset_bytes: 20, found });
        }
        Ok(Records { path, offset_bytes: PCAP_HEADER_BYTES, format: Format::Pcap(reader) })
    }

    /// The file, as it was named.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts the bytes of the next record into `data`; `None` at the end of the file.
    pub(crate) fn next(&mut self, data: &mut Vec<u8>) -> Result<Option<Record>, UplinkError> {
        let (path, offset_bytes) = (&self.path, &mut self.offset_bytes);
        match &mut self.format {
            Format::Pcap(reader) => next_pcap(path, offset_bytes, reader, data),
            Format::PcapNg { reader, big_endian, interfaces, body } => loop {
                let at = *offset_bytes;
                let Some(kind) = next_block(path, offset_bytes, reader, big_endian, body)? else {
                    return Ok(None);
                };
                let block = Block { path, offset_bytes: at, big_endian: *big_endian, body };
                if let Some(record) = block.read(kind, interfaces, data)? {
                    return Ok(Some(record));
                }
            },
        }
    }
}

fn pcap_error(path: &Path, offset_bytes: u64, error: PcapError) -> UplinkError {
    let path = path.to_owned();
    match error {
        PcapError::IoError(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
            UplinkError::Truncated { path, offset_bytes }
        }
        PcapError::IoError(error) => UplinkError::Read { path, offset_bytes, error },
        other => UplinkError::Malformed { path, offset_bytes, reason: format!("is not readable: {other}") },
    }
}

fn next_pcap<R: BufRead>(
    path: &Path,
    offset_bytes: &mut u64,
    reader: &mut PcapReader<R>,
    data: &mut Vec<u8>,
) -> Result<Option<Record>, UplinkError> {
    let at = *offset_bytes;
    // The checked reader refuses frames longer than the snapshot length, which every capture with `tcpdump -s` has.
    let ns_per_fraction = match reader.header().ts_resolution {
        TsResolution::MicroSecond => 1000,
        TsResolution::NanoSecond => 1,
    };
    let raw = match reader.next_raw_packet() {
        None => return Ok(None),
        Some(raw) => raw.map_err(|error| pcap_error(path, at, error))?,
    };
    check_lengths(path, at, raw.incl_len, raw.orig_len)?;
    data.clear();
    data.extend_from_slice(&raw.data);
    *offset_bytes += PCAP_RECORD_HEADER_BYTES + u64::from(raw.incl_len);
    let captured_at_ns =
        Some(u64::from(raw.ts_sec) * 1_000_000_000 + u64::from(raw.ts_frac) * ns_per_fraction);
    Ok(Some(Record { offset_bytes: at, original_bytes: raw.orig_len, captured_at_ns }))
}

fn malformed(path: &Path, offset_bytes: u64, reason: String) -> UplinkError {
    UplinkError::Malformed { path: path.to_owned(), offset_bytes, reason }
}

fn check_lengths(path: &Path, offset_bytes: u64, captured: u32, original: u32) -> Result<(), UplinkError> {
    if captured > MAX_RECORD_BYTES {
        let reason =
            format!("claims {captured} captured bytes, more than the {MAX_RECORD_BYTES} any capture has");
        return Err(malformed(path, offset_bytes, reason));
    }
    if captured > original {
        let reason = format!("claims {captured} captured bytes of a frame of {original}");
        return Err(malformed(path, offset_bytes, reason));
    }
    Ok(())
}

/// Reads one pcapng block into `body`, without its type and lengths; `None` at the end of the file.
fn next_block<R: BufRead>(
    path: &Path,
    offset_bytes: &mut u64,
    reader: &mut R,
    big_endian: &mut bool,
    body: &mut Vec<u8>,
) -> Result<Option<u32>, UplinkError> {
    let at = *offset_bytes;
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::UnexpectedEof => UplinkError::Truncated { path: path.to_owned(), offset_bytes: at },
        _ => UplinkError::Read { path: path.to_owned(), offset_bytes: at, error },
    };
    if reader.fill_buf().map_err(failed)?.is_empty() {
        return Ok(None);
    }
    let mut head = [0; 12];
    reader.read_exact(&mut head).map_err(failed)?;
    let is_section = head[..4] == SECTION_HEADER.to_be_bytes();
    if is_section {
        *big_endian = match head[8..12] {
            [0x1a, 0x2b, 0x3c, 0x4d] => true,
            [0x4d, 0x3c, 0x2b, 0x1a] => false,
            _ => return Err(malformed(path, at, "is a section header without a byte-order magic".into())),
        };
    }
    let number = |bytes: &[u8]| number_of(bytes, *big_endian);
    let (kind, length) = (number(&head[..4]), number(&head[4..8]));
    if !length.is_multiple_of(4) || !(12..=MAX_BLOCK_BYTES).contains(&length) {
        return Err(malformed(path, at, format!("is a block that claims {length} bytes")));
    }
    body.clear();
    body.extend_from_slice(&head[8..12]);
    // The last four bytes repeat the length; in the shortest block they are the ones already read.
    let rest = u64::from(length - 12);
    let got = reader.by_ref().take(rest).read_to_end(body).map_err(failed)?;
    if (got as u64) < rest {
        return Err(UplinkError::Truncated { path: path.to_owned(), offset_bytes: at });
    }
    let trailer = number(&body[body.len() - 4..]);
    if trailer != length {
        return Err(malformed(
            path,
            at,
            format!("is a block of {length} bytes at its start and {trailer} at its end"),
        ));
    }
    body.truncate(body.len() - 4);
    *offset_bytes += u64::from(length);
    Ok(Some(kind))
}

/// Four bytes, or two, as a number.
fn number_of(bytes: &[u8], big_endian: bool) -> u32 {
    let fold = |value: u32, byte: &u8| value << 8 | u32::from(*byte);
    if big_endian { bytes.iter().fold(0, fold) } else { bytes.iter().rev().fold(0, fold) }
}

/// A block that was read whole.
struct Block<'a> {
    path: &'a Path,
    offset_bytes: u64,
    big_endian: bool,
    body: &'a [u8],
}

impl Block<'_> {
    fn number(&self, range: std::ops::Range<usize>) -> Result<u32, UplinkError> {
        let bytes = self.body.get(range.clone()).ok_or_else(|| {
            let reason =
                format!("is a block with a body of {} bytes that needs {}", self.body.len(), range.end);
            malformed(self.path, self.offset_bytes, reason)
        })?;
        Ok(number_of(bytes, self.big_endian))
    }

    /// Takes what the block says about interfaces, or its frame into `data`; blocks of other kinds are skipped.
    fn read(
        &self,
        kind: u32,
        interfaces: &mut Vec<CapturedInterface>,
        data: &mut Vec<u8>,
    ) -> Result<Option<Record>, UplinkError> {
        match kind {
            SECTION_HEADER => interfaces.clear(),
            INTERFACE_DESCRIPTION => {
                let (link_type, snap_bytes) = (self.number(0..2)?, self.number(4..8)?);
                interfaces.push(CapturedInterface { link_type, snap_bytes, ticks_per_s: self.ticks_per_s() });
            }
            ENHANCED_PACKET => {
                let (captured, original) = (self.number(12..16)?, self.number(16..20)?);
                let interface = self.interface(interfaces, self.number(0..4)?)?;
                let at = self.captured_at_ns(interface)?;
                return self.frame(20, captured, original, at, data).map(Some);
            }
            OBSOLETE_PACKET => {
                let (captured, original) = (self.number(12..16)?, self.number(16..20)?);
                let interface = self.interface(interfaces, self.number(0..2)?)?;
                let at = self.captured_at_ns(interface)?;
                return self.frame(20, captured, original, at, data).map(Some);
            }
            SIMPLE_PACKET => {
                let original = self.number(0..4)?;
                let interface = self.interface(interfaces, 0)?;
                let limit = if interface.snap_bytes == 0 { u32::MAX } else { interface.snap_bytes };
                return self.frame(4, original.min(limit), original, None, data).map(Some);
            }
            _ => {}
        }
        Ok(None)
    }

    fn interface(
        &self,
        interfaces: &[CapturedInterface],
        index: u32,
    ) -> Result<CapturedInterface, UplinkError> {
        let interface = interfaces.get(index as usize).copied().ok_or_else(|| {
            let reason = format!("names interface {index} of {}", interfaces.len());
            malformed(self.path, self.offset_bytes, reason)
        })?;
        if interface.link_type != ETHERNET {
            let (path, offset_bytes) = (self.path.to_owned(), self.offset_bytes);
            return Err(UplinkError::LinkType { path, offset_bytes, found: interface.link_type });
        }
        Ok(interface)
    }

    /// Ticks a second of the timestamps of the interface that this block describes: its option 9, or microseconds.
    fn ticks_per_s(&self) -> u64 {
        const OPTIONS_AT: usize = 8;
        const RESOLUTION: u32 = 9;
        let mut rest = self.body.get(OPTIONS_AT..).unwrap_or_default();
        while let (Some(code), Some(length)) = (rest.get(..2), rest.get(2..4)) {
            let code = number_of(code, self.big_endian);
            let length = number_of(length, self.big_endian) as usize;
            if let (RESOLUTION, Some(value)) = (code, rest.get(4)) {
                let power = u32::from(value & 0x7f);
                let ticks =
                    if value & 0x80 == 0 { 10u64.checked_pow(power) } else { 1u64.checked_shl(power) };
                return ticks.unwrap_or(u64::MAX);
            }
            rest = rest.get(4 + length.next_multiple_of(4)..).unwrap_or_default();
        }
        1_000_000
    }

    /// The timestamp of a packet block in nanoseconds.
    fn captured_at_ns(&self, interface: CapturedInterface) -> Result<Option<u64>, UplinkError> {
        let ticks = u64::from(self.number(4..8)?) << 32 | u64::from(self.number(8..12)?);
        let ns = u128::from(ticks) * 1_000_000_000 / u128::from(interface.ticks_per_s);
        Ok(u64::try_from(ns).ok())
    }

    fn frame(
        &self,
        at: usize,
        captured: u32,
        original: u32,
        captured_at_ns: Option<u64>,
        data: &mut Vec<u8>,
    ) -> Result<Record, UplinkError> {
        check_lengths(self.path, self.offset_bytes, captured, original)?;
        let bytes = self.body.get(at..at + captured as usize).ok_or_else(|| {
            let reason = format!("claims {captured} captured bytes in a body of {}", self.body.len());
            malformed(self.path, self.offset_bytes, reason)
        })?;
        data.clear();
        data.extend_from_slice(bytes);
        Ok(Record { offset_bytes: self.offset_bytes, original_bytes: original, captured_at_ns })
    }
}

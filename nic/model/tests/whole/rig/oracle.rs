//! What the reorder unit must do, as plainly as it can be said: a map from byte positions to bytes, no contexts, no
//! pool, no lists. For one queue whose frames leave as soon as they are complete.

use std::collections::BTreeMap;

use beeline_contract_device::Enables;
use beeline_spec::regs::field::queue_status::cause;
use beeline_spec::{Header, HeaderError, Kind};

/// The queue as it must be.
#[derive(Debug)]
pub struct Oracle {
    window_lines: u64,
    span_lines: u64,
    max_frame_bytes: usize,
    epoch: u8,
    blank: u64,
    backpressure: bool,
    /// First line that has not wholly arrived.
    frontier: u64,
    /// Start of the earliest incomplete message, in lines.
    pub next_start: u64,
    /// Lines that may be written again.
    freed: u64,
    /// Bytes that have arrived of messages that are not complete.
    arrived: BTreeMap<u64, u8>,
    /// Frames that left.
    pub frames: Vec<Vec<u8>>,
    /// Why it failed; `cause::NONE` while it has not.
    pub cause: u64,
}

impl Oracle {
    pub fn new(
        window_lines: u64,
        span_lines: u64,
        max_frame_bytes: usize,
        epoch: u8,
        blank: u64,
        backpressure: bool,
    ) -> Self {
        Oracle {
            window_lines,
            span_lines,
            max_frame_bytes,
            epoch,
            blank,
            backpressure,
            frontier: 0,
            next_start: 0,
            freed: 0,
            arrived: BTreeMap::new(),
            frames: Vec::new(),
            cause: cause::NONE,
        }
    }

    /// A write arrived, and everything that follows from it happened.
    pub fn write(&mut self, at: u64, data: &[u8], enables: Enables) {
        let mut lines: BTreeMap<u64, Vec<(u64, u8)>> = BTreeMap::new();
        for (i, byte) in data.iter().enumerate().filter(|(i, _)| enables.has(*i)) {
            let place = at + i as u64;
            lines.entry(place / 64).or_default().push((place % 64, *byte));
        }
        for (line, bytes) in lines {
            if self.cause != cause::NONE {
                return;
            }
            if let Err(cause) = self.line_written(line, &bytes) {
                self.cause = cause;
            }
        }
        self.freed = if self.backpressure { self.frontier } else { self.next_start };
    }

    fn line_written(&mut self, line: u64, bytes: &[(u64, u8)]) -> Result<(), u64> {
        let ahead = (line + self.window_lines - self.frontier % self.window_lines) % self.window_lines;
        let position = self.frontier + ahead;
        if position >= self.freed + self.window_lines {
            return Err(cause::OVERRUN);
        }
        if ahead >= self.span_lines {
            return Err(cause::SPAN_EXCEEDED);
        }
        if bytes.iter().any(|(i, _)| self.arrived.contains_key(&(position * 64 + i))) {
            return Err(cause::CLOBBER);
        }
        self.arrived.extend(bytes.iter().map(|(i, byte)| (position * 64 + i, *byte)));
        while (0..64).all(|i| self.arrived.contains_key(&(self.frontier * 64 + i))) {
            self.line_complete()?;
        }
        Ok(())
    }

    fn word(&self, index: u64) -> u64 {
        let start = self.next_start * 64 + index * 8;
        u64::from_le_bytes(std::array::from_fn(|i| self.arrived[&(start + i as u64)]))
    }

    fn line_complete(&mut self) -> Result<(), u64> {
        let header =
            Header::decode(self.word(0), self.window_lines as u32, self.epoch).map_err(
                |error| match error {
                    HeaderError::TooLong { .. } => cause::BAD_LENGTH,
                    _ => cause::BAD_HEADER,
                },
            )?;
        if header.kind == Kind::Data && header.length_bytes as usize > self.max_frame_bytes {
            return Err(cause::BAD_LENGTH);
        }
        if header.escape_last != 0 && self.blank == 0 {
            return Err(cause::BAD_HEADER);
        }
        if self.backpressure {
            self.freed = self.frontier + 1;
        }
        if self.frontier + 1 == self.next_start + u64::from(header.lines()) {
            self.message_complete(&header).inspect_err(|_| self.frontier += 1)?;
            let start = (self.frontier + 1) * 64;
            self.arrived.retain(|position, _| *position >= start);
            self.next_start = self.frontier + 1;
        }
        self.frontier += 1;
        Ok(())
    }

    fn message_complete(&mut self, header: &Header) -> Result<(), u64> {
        let words = 1 + u64::from(header.length_bytes).div_ceil(8);
        let mut message: Vec<u64> = (0..words).map(|index| self.word(index)).collect();
        let mut escaped = u64::from(header.escape_last);
        while escaped != 0 {
            let link = std::mem::replace(&mut message[escaped as usize], self.blank);
            if link >= escaped {
                return Err(cause::BAD_HEADER);
            }
            escaped = link;
        }
        let mut payload: Vec<u8> = message[1..].iter().flat_map(|word| word.to_le_bytes()).collect();
        payload.truncate(header.length_bytes as usize);
        let mut frames = match header.kind {
            Kind::Void => vec![],
            Kind::Data => vec![payload],
            Kind::Batch => self.records(&payload)?,
        };
        frames.retain(|frame| frame.len() >= 14);
        self.frames.extend(frames);
        Ok(())
    }

    fn records(&self, mut payload: &[u8]) -> Result<Vec<Vec<u8>>, u64> {
        let mut records = Vec::new();
        while !payload.is_empty() {
            let (length, rest) = payload.split_first_chunk::<2>().ok_or(cause::BAD_LENGTH)?;
            let length = usize::from(u16::from_le_bytes(*length));
            if length > rest.len() || length > self.max_frame_bytes {
                return Err(cause::BAD_LENGTH);
            }
            records.push(rest[..length].to_vec());
            payload = &payload[(2 + length).next_multiple_of(8).min(payload.len())..];
        }
        Ok(records)
    }
}

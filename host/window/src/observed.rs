//! Observed windows: the receiver sees each write, not memory that changes.
//!
//! This is the reorder unit of HotOS'25 §3.1 in host memory: a *data buffer* that writes fill at their own offsets
//! and a *valid vector* of one bit a byte. Writes may be of any size up to the window, carry any byte enables and come
//! in any order; a byte that comes twice is an error, since PCIe neither duplicates nor replays posted writes. The
//! behavioural NIC has a unit of its own with a bounded span and buffer pool (`nic/model`); this one spans its whole
//! window and relies on credits, for receivers that are programs.

use alloc::boxed::Box;
use alloc::vec;

use beeline_contract_memory::{CreditSink, Line, LoadPort};
use beeline_spec::{LINE_BYTES, WORD_BYTES, WORDS_PER_LINE};

use crate::arrival::ArrivalTest;
use crate::error::ReceiveError;
use crate::payload;
use crate::{Receiver, WindowConfig};

/// The data buffer of an observed window.
#[derive(Debug)]
pub struct DataBuffer {
    lines: Box<[Line]>,
}

impl DataBuffer {
    /// Returns a buffer of `lines` lines, all zero.
    pub fn new(lines: u32) -> Self {
        DataBuffer { lines: vec![[0; WORDS_PER_LINE]; lines as usize].into_boxed_slice() }
    }

    fn put(&mut self, offset: usize, byte: u8) {
        let word = &mut self.lines[offset / LINE_BYTES][offset % LINE_BYTES / WORD_BYTES];
        let shift = offset % WORD_BYTES * 8;
        *word = *word & !(0xff << shift) | u64::from(byte) << shift;
    }
}

impl LoadPort for DataBuffer {
    beeline_contract_memory::group_line_by_line! {}

    fn lines(&self) -> u32 {
        self.lines.len() as u32
    }

    fn load_word(&self, line: u32, word: u32) -> u64 {
        self.lines[line as usize][word as usize]
    }

    fn load_line(&mut self, line: u32) -> Line {
        self.lines[line as usize]
    }

    fn load_lines(&mut self, first_line: u32, bytes: &mut [u8]) {
        for (line, chunk) in self.lines[first_line as usize..].iter().zip(bytes.chunks_exact_mut(LINE_BYTES))
        {
            chunk.copy_from_slice(&payload::line_bytes(line));
        }
    }

    fn blank_line(&mut self, _line: u32, _blank: u64) {
        // What is free is told by the valid vector; the bytes need not change.
    }
}

/// The valid vector: one bit for each byte of the window.
#[derive(Debug)]
pub struct Observed {
    valid: Box<[u64]>,
}

impl Observed {
    /// Nothing has arrived yet in a window of `lines` lines.
    pub fn new(lines: u32) -> Self {
        Observed { valid: vec![0; lines as usize].into_boxed_slice() }
    }

    fn whole_words(mut valid: u64) -> u8 {
        // And each byte's eight bits into its lowest one, then gather those.
        valid &= valid >> 4;
        valid &= valid >> 2;
        valid &= valid >> 1;
        (0..WORDS_PER_LINE).fold(0, |mask, word| mask | ((valid >> (8 * word) & 1) as u8) << word)
    }
}

impl ArrivalTest for Observed {
    fn arrived_head<L: LoadPort>(&mut self, port: &mut L, line: u32) -> (u8, u64) {
        (Self::whole_words(self.valid[line as usize]), port.load_word(line, 0))
    }

    fn arrived_words<L: LoadPort>(&mut self, _port: &mut L, line: u32) -> u8 {
        Self::whole_words(self.valid[line as usize])
    }

    fn touched<L: LoadPort>(&mut self, _port: &mut L, line: u32) -> u8 {
        !Self::whole_words(!self.valid[line as usize])
    }

    fn prefix_bytes<L: LoadPort>(&mut self, _port: &mut L, line: u32) -> u32 {
        self.valid[line as usize].trailing_ones()
    }

    fn free<L: LoadPort>(&mut self, _port: &mut L, line: u32) {
        self.valid[line as usize] = 0;
    }

    fn blank(&self) -> Option<u64> {
        None
    }
}

impl<S: CreditSink> Receiver<DataBuffer, S, Observed> {
    /// The receiver's end of an observed window of `lines` lines, a power of two.
    pub fn observed(lines: u32, sink: S, config: WindowConfig) -> Self {
        Receiver::with_test(DataBuffer::new(lines), sink, Observed::new(lines), config)
    }

    /// A write arrived: `bytes` at `offset_bytes` of the window, of which those are enabled whose bit is set in
    /// `enables` (`None`: all; a mask covers the first 64 bytes and disables the rest).
    ///
    /// # Errors
    /// [`ReceiveError::Outside`] and [`ReceiveError::Clobber`]: the sender cannot be believed any more; no byte was
    /// taken and later polls give the same error. After any error the write is dropped.
    pub fn write_arrived(
        &mut self,
        offset_bytes: u64,
        bytes: &[u8],
        enables: Option<u64>,
    ) -> Result<(), ReceiveError> {
        self.check_alive()?;
        let window_bytes = self.lines() as u64 * LINE_BYTES as u64;
        if offset_bytes.checked_add(bytes.len() as u64).is_none_or(|end| end > window_bytes) {
            return Err(self.poison(ReceiveError::Outside {
                offset_bytes,
                bytes: bytes.len(),
                window_bytes,
            }));
        }
        let first = offset_bytes as usize;
        let enabled = |i: usize| enables.is_none_or(|mask| i < u64::BITS as usize && mask >> i & 1 == 1);
        let mut offsets = (0..bytes.len()).filter(|i| enabled(*i)).map(|i| first + i);
        if let Some(at) = offsets.find(|at| self.test.valid[at / LINE_BYTES] >> (at % LINE_BYTES) & 1 == 1) {
            return Err(self.poison(ReceiveError::Clobber { offset_bytes: at as u64 }));
        }
        for (i, byte) in bytes.iter().enumerate().filter(|(i, _)| enabled(*i)) {
            let at = first + i;
            self.port.put(at, *byte);
            self.test.valid[at / LINE_BYTES] |= 1 << (at % LINE_BYTES);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_whole_when_its_eight_bytes_are_valid() {
        for word in 0..8 {
            assert_eq!(Observed::whole_words(0xff << (8 * word)), 1 << word);
            for bit in 0..8 {
                assert_eq!(Observed::whole_words(!(1 << (8 * word + bit))), !(1 << word));
            }
        }
    }

    #[test]
    fn bytes_land_where_they_belong() {
        let mut buffer = DataBuffer::new(2);
        for offset in (0..128).rev() {
            buffer.put(offset, offset as u8);
        }
        let mut bytes = [0; 128];
        buffer.load_lines(0, &mut bytes);
        assert!(bytes.iter().enumerate().all(|(i, byte)| i == *byte as usize));
        assert_eq!(buffer.load_word(1, 7), u64::from_le_bytes([120, 121, 122, 123, 124, 125, 126, 127]));
    }
}

//! Messages in the pool: putting escaped words back, taking batches apart, and the frame at a queue's head.
//!
//! Everything here works on a message that has wholly arrived and lies in the pool as a list of lines. Nothing a host
//! wrote is trusted: chains and records are checked before the message counts as complete. Comes from:
//! [`super::tx_queue`]. Goes to: the arbiter, as slices. Formats: `spec/src/{header,escape,batch}.rs`.

use beeline_spec::batch::{BatchError, Cursor};
use beeline_spec::escape::{self, EscapeError};
use beeline_spec::formats::MIN_FRAME_BYTES;
use beeline_spec::{Header, LINE_BYTES, WORD_BYTES, WORDS_PER_LINE};

use super::buffer_pool::{BufferPool, NONE};

/// A place in a message's list of lines that only moves forward.
#[derive(Clone, Copy, Debug)]
struct Seek {
    line: u32,
    index: u32,
    /// Whether all lines lie one after the other in memory, as they mostly do: then there is nothing to walk.
    is_run: bool,
}

impl Seek {
    /// At the first line of a message.
    fn new(pool: &BufferPool, first: u32, header: &Header) -> Self {
        Seek { line: first, index: 0, is_run: pool.is_run(first, header.lines()) }
    }

    #[inline]
    fn to(&mut self, pool: &BufferPool, index: u32) -> u32 {
        if self.is_run {
            return self.line + index;
        }
        while self.index < index {
            self.line = pool.successor(self.line);
            self.index += 1;
        }
        self.line
    }
}

/// Why a batch is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BatchFault {
    /// A record does not fit the message.
    Record(BatchError),
    /// A frame is longer than the port carries: its bytes.
    TooLong(u16),
}

/// The frame of a record is long enough to be sent.
const fn is_frame(bytes: u16) -> bool {
    bytes as usize >= MIN_FRAME_BYTES
}

#[inline]
fn load_payload_word(pool: &BufferPool, seek: &mut Seek, payload_word: u32) -> u64 {
    let word = 1 + payload_word;
    let line = seek.to(pool, word / WORDS_PER_LINE as u32);
    pool.word(line, word as usize % WORDS_PER_LINE)
}

/// Walks a batch once; returns how many of its records are too short to be frames.
pub(crate) fn check_batch(
    pool: &BufferPool,
    first: u32,
    header: &Header,
    max_frame_bytes: u32,
) -> Result<u64, BatchFault> {
    let mut cursor = Cursor::new(header.length_bytes);
    let mut seek = Seek::new(pool, first, header);
    let mut runts = 0;
    loop {
        let record =
            cursor.next(|word| load_payload_word(pool, &mut seek, word)).map_err(BatchFault::Record)?;
        let Some(record) = record else { return Ok(runts) };
        if u32::from(record.length_bytes) > max_frame_bytes {
            return Err(BatchFault::TooLong(record.length_bytes));
        }
        runts += u64::from(!is_frame(record.length_bytes));
    }
}

/// Puts the blank back where the sender escaped it; returns how many words that were. `lines` is scratch space with
/// room for every line of the message.
pub(crate) fn restore_escapes(
    pool: &mut BufferPool,
    first: u32,
    header: &Header,
    blank: u64,
    lines: &mut Vec<u32>,
) -> Result<u32, EscapeError> {
    lines.clear();
    // The chain runs backwards and the list forwards, so the lines up to the last escaped word are noted first.
    let mut line = first;
    for _ in 0..=header.escape_last as usize / WORDS_PER_LINE {
        lines.push(line);
        line = pool.successor(line);
    }
    let place = |index: u32| (lines[index as usize / WORDS_PER_LINE], index as usize % WORDS_PER_LINE);
    let mut index = header.escape_last;
    let mut count = 0;
    while index != 0 {
        let (line, word) = place(index);
        let before = escape::previous(index, pool.word(line, word))?;
        pool.set_word(line, word, blank);
        index = before;
        count += 1;
    }
    Ok(count)
}

/// Where a frame lies: from `offset` of pool line `line` on along the list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Frame {
    pub line: u32,
    pub offset: u32,
    /// Bytes of the frame; 0: there is none.
    pub bytes: u32,
}

impl Frame {
    pub(crate) const NONE: Frame = Frame { line: NONE, offset: 0, bytes: 0 };

    /// The frame of a data message that starts in pool line `line`.
    #[inline]
    pub(crate) const fn of_data(line: u32, length_bytes: u32) -> Frame {
        Frame { line, offset: WORD_BYTES as u32, bytes: length_bytes }
    }

    /// The frame in one piece: in place when its lines lie one after the other, as they mostly do, otherwise gathered.
    #[inline]
    pub(crate) fn gather<'a>(&self, pool: &'a BufferPool, into: &'a mut [u8]) -> &'a [u8] {
        let (offset, bytes) = (self.offset as usize, self.bytes as usize);
        if let Some(run) = pool.run(self.line, offset, bytes) {
            return run;
        }
        let into = &mut into[..bytes];
        let (head, rest) = into.split_at_mut(LINE_BYTES - offset);
        head.copy_from_slice(&pool.line(self.line)[offset..]);
        let mut line = pool.successor(self.line);
        let (whole_lines, rest) = rest.as_chunks_mut::<LINE_BYTES>();
        for whole in whole_lines {
            *whole = *pool.line(line);
            line = pool.successor(line);
        }
        if !rest.is_empty() {
            rest.copy_from_slice(&pool.line(line)[..rest.len()]);
        }
        into
    }
}

/// A batch whose frames go out one by one.
#[derive(Clone, Debug)]
pub(crate) struct BatchWalk {
    cursor: Cursor,
    seek: Seek,
}

impl BatchWalk {
    /// At the first record of a checked batch.
    pub(crate) fn new(pool: &BufferPool, first: u32, header: &Header) -> Self {
        BatchWalk { cursor: Cursor::new(header.length_bytes), seek: Seek::new(pool, first, header) }
    }

    /// Whether the batch lies in one piece.
    #[inline]
    pub(crate) fn is_run(&self) -> bool {
        self.seek.is_run
    }

    /// The next record that is long enough to be sent; [`Frame::NONE`] when there are no more.
    #[inline]
    pub(crate) fn next_frame(&mut self, pool: &BufferPool) -> Frame {
        let at = next_frame(&mut self.cursor, |word| load_payload_word(pool, &mut self.seek, word));
        at.map_or(Frame::NONE, |(at, bytes)| self.frame_at(pool, at, bytes))
    }

    /// Where the frame of `bytes` bytes lies that is `at` bytes behind the start of the message.
    #[inline]
    fn frame_at(&mut self, pool: &BufferPool, at: u32, bytes: u32) -> Frame {
        Frame { line: self.seek.to(pool, at / LINE_BYTES as u32), offset: at % LINE_BYTES as u32, bytes }
    }

    /// Gives `wire` the frames of a batch that lies in one piece, from `frame` on, until it takes no other. Returns the next
    /// one; [`Frame::NONE`] when there are no more.
    ///
    /// What a record says of the next one is all that a step waits for: nothing else is looked up or stored on the way.
    #[inline(always)]
    pub(crate) fn leave(
        &mut self,
        pool: &BufferPool,
        frame: Frame,
        mut wire: impl FnMut(&[u8]) -> bool,
    ) -> Frame {
        let first = self.seek.line;
        let message = pool.bytes_from(first, self.cursor.end_bytes() as usize + WORD_BYTES);
        let words = message.as_chunks::<WORD_BYTES>().0;
        let mut cursor = self.cursor.clone();
        let mut next = Some(((frame.line - first) * LINE_BYTES as u32 + frame.offset, frame.bytes));
        while let Some((at, bytes)) = next {
            let goes_on = wire(&message[at as usize..(at + bytes) as usize]);
            next = next_frame(&mut cursor, |word| u64::from_le_bytes(words[1 + word as usize]));
            if !goes_on {
                break;
            }
        }
        self.cursor = cursor;
        next.map_or(Frame::NONE, |(at, bytes)| self.frame_at(pool, at, bytes))
    }
}

/// The next record of a batch that is long enough to be sent: how many bytes behind the start of the message, and how long.
#[inline(always)]
fn next_frame(cursor: &mut Cursor, mut load_word: impl FnMut(u32) -> u64) -> Option<(u32, u32)> {
    // A record that does not fit ends the walk here too, but `check_batch` has refused such a message before.
    while let Ok(Some(record)) = cursor.next(&mut load_word) {
        if is_frame(record.length_bytes) {
            return Some((WORD_BYTES as u32 + record.offset_bytes, record.length_bytes.into()));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::super::buffer_pool::Account;
    use super::*;
    use beeline_spec::Kind;

    /// A message as the sender lays it out, in the pool.
    fn in_pool(pool: &mut BufferPool, header: &Header, payload: &[u8]) -> u32 {
        let mut bytes = header.encode().to_le_bytes().to_vec();
        bytes.extend_from_slice(payload);
        bytes.resize(header.lines() as usize * LINE_BYTES, 0);
        let lines = bytes.as_chunks::<LINE_BYTES>().0;
        pool.take(Account::Shared, lines).expect("the pool is large enough").first
    }

    fn batch_of(records: &[&[u8]]) -> Vec<u8> {
        let mut payload = Vec::new();
        for record in records {
            payload.extend_from_slice(&(record.len() as u16).to_le_bytes());
            payload.extend_from_slice(record);
            payload.resize(payload.len().next_multiple_of(8), 0);
        }
        payload
    }

    fn frames(pool: &BufferPool, first: u32, header: &Header) -> Vec<Vec<u8>> {
        let mut buffer = vec![0; 9216];
        if header.kind == Kind::Data {
            return vec![Frame::of_data(first, header.length_bytes).gather(pool, &mut buffer).to_vec()];
        }
        let mut walk = BatchWalk::new(pool, first, header);
        let mut out = Vec::new();
        loop {
            let frame = walk.next_frame(pool);
            if frame == Frame::NONE {
                return out;
            }
            out.push(frame.gather(pool, &mut buffer).to_vec());
        }
    }

    #[test]
    fn a_frame_of_any_length_is_gathered_unchanged() {
        for bytes in [14, 55, 56, 57, 119, 120, 121, 1514, 9000] {
            let mut pool = BufferPool::new(200);
            let payload: Vec<u8> = (0..bytes).map(|i| (i * 7) as u8).collect();
            let header = Header::new(Kind::Data, bytes, 0);
            let first = in_pool(&mut pool, &header, &payload);
            assert_eq!(frames(&pool, first, &header), [payload], "{bytes} bytes");
        }
    }

    #[test]
    fn a_batch_gives_its_frames_in_order_and_leaves_runts_out() {
        let mut pool = BufferPool::new(64);
        let long = [9; 300];
        let payload = batch_of(&[&[1; 14], &[2; 13], &long, &[], &[3; 60]]);
        let header = Header::new(Kind::Batch, payload.len() as u32, 0);
        let first = in_pool(&mut pool, &header, &payload);
        assert_eq!(check_batch(&pool, first, &header, 1514), Ok(2));
        assert_eq!(frames(&pool, first, &header), [vec![1; 14], long.to_vec(), vec![3; 60]]);
        assert_eq!(check_batch(&pool, first, &header, 299), Err(BatchFault::TooLong(300)));
        let short = Header::new(Kind::Batch, payload.len() as u32 - 8, 0);
        assert!(matches!(check_batch(&pool, first, &short, 1514), Err(BatchFault::Record(_))));
    }

    #[test]
    fn escaped_words_are_put_back_over_line_ends() {
        let blank = escape::blank_from_random(42);
        let mut payload = [0u8; 200];
        for (word, value) in [(2, escape::link(0)), (9, escape::link(3)), (20, escape::link(10))] {
            payload[8 * word..8 * word + 8].copy_from_slice(&value.to_le_bytes());
        }
        let header = Header { escape_last: 21, ..Header::new(Kind::Data, 200, 0) };
        let mut pool = BufferPool::new(8);
        let first = in_pool(&mut pool, &header, &payload);
        let mut scratch = Vec::new();
        assert_eq!(restore_escapes(&mut pool, first, &header, blank, &mut scratch), Ok(3));
        for word in [2, 9, 20] {
            payload[8 * word..8 * word + 8].copy_from_slice(&blank.to_le_bytes());
        }
        assert_eq!(frames(&pool, first, &header), [payload]);
        // The words are blanks now, and a blank is no link.
        assert!(restore_escapes(&mut pool, first, &header, blank, &mut scratch).is_err());
    }
}

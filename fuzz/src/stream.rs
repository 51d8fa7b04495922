//! What arrived in one window, in the order of the window and not of time, and whether a frame is in it.

use crate::device::LINES;

/// Every word that arrived since the port was opened; those of a queue's later lives follow those of the earlier.
#[derive(Debug, Default)]
pub struct Stream {
    words: Vec<Option<u64>>,
    /// First line of the present life.
    first_line: usize,
    /// First line of which a word is missing.
    frontier: usize,
    /// Byte behind the last frame that was found: frames of a queue keep their order.
    end_of_last: usize,
}

impl Stream {
    /// The window is blank, and its positions begin anew.
    pub fn restart(&mut self) {
        self.words.resize(self.words.len().next_multiple_of(8), None);
        self.first_line = self.words.len() / 8;
        self.frontier = self.first_line;
    }

    /// A word of a line of the window arrived.
    pub fn word(&mut self, line: u32, word: usize, value: u64) {
        let lines = LINES as usize;
        let ahead = (line as usize + lines - (self.frontier - self.first_line) % lines) % lines;
        let place = (self.frontier + ahead) * 8 + word;
        if self.words.len() <= place {
            self.words.resize(place + 1, None);
        }
        assert_eq!(self.words[place].replace(value), None, "word {word} of line {line} arrived twice");
        while self
            .words
            .get(self.frontier * 8..self.frontier * 8 + 8)
            .is_some_and(|line| !line.contains(&None))
        {
            self.frontier += 1;
        }
    }

    /// Whether the bytes of a frame arrived next to each other, behind those of the frame before it. A byte of the
    /// blank stands where the sender escaped one.
    pub fn has_frame(&mut self, frame: &[u8], blank: u64) -> bool {
        let end = (self.words.len() * 8 + 1).saturating_sub(frame.len());
        // A frame starts behind a header word or on a line, or behind the two bytes of a record's length.
        let starts = (self.end_of_last..end).filter(|start| start % 8 == 0 || start % 8 == 2);
        let found = starts.into_iter().find(|start| self.is_at(*start, frame, blank.to_le_bytes()));
        if let Some(start) = found {
            self.end_of_last = start + frame.len();
        }
        found.is_some()
    }

    /// Whether every line of a frame arrived whole, in whatever order: kPIO+WC takes lines as they become whole, and
    /// leaves it to its senders that they do so in order.
    pub fn has_lines(&self, frame: &[u8]) -> bool {
        let whole = self.words.as_chunks::<8>().0.iter().filter(|line| !line.contains(&None));
        let whole: Vec<Vec<u8>> =
            whole.map(|line| line.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()).collect();
        frame.chunks(64).all(|part| whole.iter().any(|line| line.starts_with(part)))
    }

    fn is_at(&self, start: usize, frame: &[u8], blank: [u8; 8]) -> bool {
        (start..).zip(frame).all(|(at, byte)| {
            let Some(word) = self.words[at / 8] else { return false };
            word.to_le_bytes()[at % 8] == *byte || blank[at % 8] == *byte
        })
    }
}

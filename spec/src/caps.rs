//! The capability list: TLVs that old software skips when it does not know them.

use crate::formats::capability as kind;

/// What a device says it can do; `None` where the list is silent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// Lines from the frontier's line on that may be held out of order.
    pub reorder_span_lines: Option<u32>,
    /// Offset of the first window in the BAR, and bytes a queue.
    pub aperture: Option<(u64, u64)>,
    /// Queues of this port.
    pub queues: Option<u32>,
    /// Whether the windows are blank (`true`) or observed.
    pub blank: Option<bool>,
    /// Bit i is set when interface i is there.
    pub interfaces: Option<u32>,
    /// Lines of buffer memory shared by the queues.
    pub pool_lines: Option<u32>,
    /// Reorder contexts shared by the queues.
    pub contexts: Option<u32>,
    /// Longest frame in bytes.
    pub max_frame_bytes: Option<u32>,
    /// Bit i is set when feature i is there.
    pub features: Option<u32>,
}

/// Why a list cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CapsError {
    /// The list has no end marker.
    NoEnd,
    /// A value reaches past the list: kind, word index of its header.
    Truncated(u16, usize),
    /// A known capability has a wrong size: kind, bytes found.
    Size(u16, u16),
}

impl core::fmt::Display for CapsError {
    fn fmt(&self, out: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            CapsError::NoEnd => out.write_str("capability list without an end marker"),
            CapsError::Truncated(kind, at) => {
                write!(out, "capability {kind} at word {at} reaches past the list")
            }
            CapsError::Size(kind, bytes) => write!(out, "capability {kind} with a value of {bytes} bytes"),
        }
    }
}

impl core::error::Error for CapsError {}

/// The header word of a capability.
pub const fn header(kind: u8, bytes: u16) -> u64 {
    kind as u64 | (bytes as u64) << 16
}

impl Capabilities {
    /// Reads a list of words; unknown kinds are skipped.
    pub fn parse(words: &[u64]) -> Result<Self, CapsError> {
        let mut caps = Capabilities::default();
        let mut at = 0;
        while let Some(&head) = words.get(at) {
            let (code, bytes) = (head as u16, (head >> 16) as u16);
            if code == kind::END as u16 {
                return Ok(caps);
            }
            let value = words
                .get(at + 1..at + 1 + (bytes as usize).div_ceil(8))
                .ok_or(CapsError::Truncated(code, at))?;
            caps.take(code, bytes, value)?;
            at += 1 + value.len();
        }
        Err(CapsError::NoEnd)
    }

    fn take(&mut self, code: u16, bytes: u16, value: &[u64]) -> Result<(), CapsError> {
        let slot = match u8::try_from(code) {
            Ok(kind::REORDER_SPAN) => &mut self.reorder_span_lines,
            Ok(kind::QUEUES) => &mut self.queues,
            Ok(kind::INTERFACES) => &mut self.interfaces,
            Ok(kind::POOL_LINES) => &mut self.pool_lines,
            Ok(kind::CONTEXTS) => &mut self.contexts,
            Ok(kind::MAX_FRAME) => &mut self.max_frame_bytes,
            Ok(kind::FEATURES) => &mut self.features,
            Ok(kind::APERTURE) => {
                let &[offset, size] = value else { return Err(CapsError::Size(code, bytes)) };
                self.aperture = Some((offset, size));
                return Ok(());
            }
            Ok(kind::WINDOW_KIND) => {
                let &[which] = value else { return Err(CapsError::Size(code, bytes)) };
                self.blank = Some(which as u32 == 2);
                return Ok(());
            }
            _ => return Ok(()),
        };
        let &[number] = value else { return Err(CapsError::Size(code, bytes)) };
        *slot = Some(number as u32);
        Ok(())
    }

    /// Writes the list, end marker included, with `push` for each word.
    pub fn write(&self, mut push: impl FnMut(u64)) {
        let numbers = [
            (kind::REORDER_SPAN, self.reorder_span_lines),
            (kind::QUEUES, self.queues),
            (kind::WINDOW_KIND, self.blank.map(|blank| if blank { 2 } else { 1 })),
            (kind::INTERFACES, self.interfaces),
            (kind::POOL_LINES, self.pool_lines),
            (kind::CONTEXTS, self.contexts),
            (kind::MAX_FRAME, self.max_frame_bytes),
        ];
        for (code, value) in numbers {
            if let Some(value) = value {
                push(header(code, 4));
                push(value as u64);
            }
        }
        if let Some((offset, size)) = self.aperture {
            push(header(kind::APERTURE, 16));
            push(offset);
            push(size);
        }
        if let Some(features) = self.features {
            push(header(kind::FEATURES, 4));
            push(features as u64);
        }
        push(header(kind::END, 0));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn list(caps: &Capabilities) -> ([u64; 32], usize) {
        let (mut words, mut n) = ([0; 32], 0);
        caps.write(|word| {
            words[n] = word;
            n += 1;
        });
        (words, n)
    }

    #[test]
    fn a_list_comes_back() {
        let caps = Capabilities {
            reorder_span_lines: Some(16),
            aperture: Some((1 << 22, 1 << 18)),
            blank: Some(true),
            ..Default::default()
        };
        let (words, n) = list(&caps);
        assert_eq!(Capabilities::parse(&words[..n]), Ok(caps));
        assert!(Capabilities::parse(&words[..n - 1]).is_err());
    }

    #[test]
    fn an_unknown_capability_is_skipped() {
        let words = [header(200, 24), 1, 2, 3, header(kind::QUEUES, 4), 7, 0];
        assert_eq!(Capabilities::parse(&words).unwrap().queues, Some(7));
    }
}

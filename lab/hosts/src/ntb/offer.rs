//! What a side of a bridge says of itself by scratchpads, and what of the other side's is believed.
//!
//! Scratchpads keep what was last stored: by a peer that is there, by one that was there before it began anew, or by one that means ill. An
//! offer has a sum, so that words of two offers are none; it names an epoch, and which epoch of the other side it answers. Only an answer to
//! the own epoch, which nobody knew before, makes a link.

use beeline_spec::escape;

/// Scratchpads that an offer takes.
pub const OFFER_WORDS: u16 = 7;
/// What the first word of an offer is. Another layout of the words has another one.
const KIND: u32 = 0xbee1_0001;

/// What a side offers the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Offer {
    /// Not zero, and another one each time that this side begins anew.
    pub epoch: u32,
    /// The epoch of the other side that this one has seen; zero: none.
    pub answers: u32,
    /// Lines of the window that the other side stores messages into.
    pub lines: u32,
    /// What a free word of it is.
    pub blank: u64,
}

/// What a side bears of an offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The fewest lines of a window that the largest message goes by.
    pub least_lines: u32,
    /// As many as there are behind a window of the bridge.
    pub most_lines: u32,
}

/// Why what is in the scratchpads is no offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum Unfit {
    #[error("the other side has not said anything")]
    Nothing,
    /// All ones: the bridge does not answer.
    #[error("the bridge does not answer")]
    Gone,
    #[error("the other side speaks another protocol: {0:#x}")]
    Kind(u32),
    /// Of two offers, or of nobody's.
    #[error("the words do not belong together")]
    Sum,
    #[error("an epoch that is none")]
    Epoch,
    #[error("a window of {0} lines")]
    Lines(u32),
    #[error("a blank that could be a header: {0:#x}")]
    Blank(u64),
}

impl Offer {
    /// The words, in the order of the scratchpads. They are stored from the last one to the first, and the first is made zero before.
    pub fn words(&self) -> [u32; OFFER_WORDS as usize] {
        let (low, high) = (self.blank as u32, (self.blank >> 32) as u32);
        [KIND, self.epoch, self.answers, self.lines, low, high, self.sum()]
    }

    /// Which of the words says what this offer answers: it alone changes while an offer stands.
    pub const ANSWERS: u16 = 2;

    /// Of everything but the answer.
    fn sum(&self) -> u32 {
        let words = [self.epoch, self.lines, self.blank as u32, (self.blank >> 32) as u32];
        words.iter().fold(KIND, |sum, word| (sum ^ word).wrapping_mul(0x0100_0193).rotate_left(13))
    }

    /// Reads an offer, each word of which was loaded once.
    ///
    /// # Errors
    /// Why it is none that this side can do anything with.
    pub fn read(words: [u32; OFFER_WORDS as usize], limits: Limits) -> Result<Offer, Unfit> {
        let [kind, epoch, answers, lines, low, high, sum] = words;
        match kind {
            KIND => {}
            0 => return Err(Unfit::Nothing),
            u32::MAX => return Err(Unfit::Gone),
            other => return Err(Unfit::Kind(other)),
        }
        let offer = Offer { epoch, answers, lines, blank: u64::from(high) << 32 | u64::from(low) };
        if offer.sum() != sum {
            return Err(Unfit::Sum);
        }
        if epoch == 0 {
            return Err(Unfit::Epoch);
        }
        if !lines.is_power_of_two() || lines < limits.least_lines || lines > limits.most_lines {
            return Err(Unfit::Lines(lines));
        }
        if !escape::is_blank_value(offer.blank) {
            return Err(Unfit::Blank(offer.blank));
        }
        Ok(offer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits { least_lines: 16, most_lines: 1024 };

    fn offer() -> Offer {
        Offer { epoch: 7, answers: 9, lines: 256, blank: escape::blank_from_random(0x1234_5678_9abc_def0) }
    }

    fn with(change: impl Fn(&mut Offer)) -> Result<Offer, Unfit> {
        let mut offer = offer();
        change(&mut offer);
        Offer::read(offer.words(), LIMITS)
    }

    #[test]
    fn offer_is_what_was_offered() {
        assert_eq!(with(|_| {}), Ok(offer()));
    }

    /// Whoever knows the sum, as a peer that means ill does, still gets no more than the bounds.
    #[test]
    fn words_of_a_hostile_peer_are_refused_each_by_its_reason() {
        assert_eq!(with(|offer| offer.epoch = 0), Err(Unfit::Epoch));
        for lines in [0, 8, 100, 2048, u32::MAX] {
            assert_eq!(with(|offer| offer.lines = lines), Err(Unfit::Lines(lines)));
        }
        assert_eq!(with(|offer| offer.blank = 5), Err(Unfit::Blank(5)));
        assert_eq!(Offer::read([0; 7], LIMITS), Err(Unfit::Nothing));
        assert_eq!(Offer::read([u32::MAX; 7], LIMITS), Err(Unfit::Gone));
        assert_eq!(
            Offer::read([4, 1, 2, 16, 0, 0, 0], LIMITS),
            Err(Unfit::Kind(4)),
            "ntb_transport's version"
        );
    }

    /// Scratchpads are stored one by one: words of an offer between which another one begins are none.
    #[test]
    fn words_of_two_offers_are_none() {
        let next = Offer { epoch: 8, lines: 512, blank: escape::blank_from_random(99), ..offer() };
        let (old, new) = (offer().words(), next.words());
        for stored in 1..6 {
            let mut words = old;
            words[7 - stored..].copy_from_slice(&new[7 - stored..]);
            assert_eq!(Offer::read(words, LIMITS), Err(Unfit::Sum), "{stored} words");
        }
        let mut answered = old;
        answered[usize::from(Offer::ANSWERS)] = 77;
        assert_eq!(Offer::read(answered, LIMITS), Ok(Offer { answers: 77, ..offer() }));
    }
}

//! A transaction layer packet, as far as its time, its order and its credits depend on it.

use super::Encoding;

/// What a packet is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Kind {
    /// A memory write (posted).
    MemoryWrite,
    /// A message (posted).
    Message,
    MemoryRead,
    /// A write to I/O or configuration space, which is answered.
    NonPostedWrite,
    /// An atomic operation, which carries operands and is answered with data.
    Atomic,
    /// The answer to a read or an atomic operation, or a part of it.
    CompletionWithData,
    /// The answer to a write to I/O or configuration space.
    Completion,
}

/// The three classes that have credits of their own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Class {
    /// Requests that nobody answers.
    Posted,
    /// Requests that are answered.
    NonPosted,
    /// Answers.
    Completion,
}

impl Kind {
    /// How many kinds there are, for tables indexed by kind.
    pub const COUNT: usize = 7;

    /// Returns the credit class of the kind.
    #[inline]
    pub const fn class(self) -> Class {
        match self {
            Kind::MemoryWrite | Kind::Message => Class::Posted,
            Kind::MemoryRead | Kind::NonPostedWrite | Kind::Atomic => Class::NonPosted,
            Kind::CompletionWithData | Kind::Completion => Class::Completion,
        }
    }

    /// Whether bytes of its address range travel with it.
    #[inline]
    pub const fn has_data(self) -> bool {
        !matches!(self, Kind::MemoryRead | Kind::Completion)
    }
}

impl Class {
    /// All of them, in the order of their numbers.
    pub const ALL: [Class; 3] = [Class::Posted, Class::NonPosted, Class::Completion];
}

/// How long a header is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Header {
    /// 12 bytes: addresses below 4 GiB, and all completions.
    ThreeDw,
    /// 16 bytes: addresses above, and messages.
    FourDw,
}

impl Header {
    /// Returns the header's length on the wire, without a digest.
    #[inline]
    pub const fn bytes(self) -> u32 {
        match self {
            Header::ThreeDw => 12,
            Header::FourDw => 16,
        }
    }
}

/// A packet. It carries no bytes: `body` says where its owner keeps them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tlp {
    /// First byte that it writes, asks for or brings.
    pub address: u64,
    /// Bytes from there on. Zero is a packet whose only double word has no byte enabled, as in a read that flushes.
    pub length_bytes: u32,
    /// What its owner likes; the link carries it.
    pub body: u32,
    /// What holds its place in the switch that it leaves; nobody else looks at it.
    pub hold: u32,
    /// Requester ID; of a completion, that of the request.
    pub requester: u16,
    /// Completer ID, of completions.
    pub completer: u16,
    /// Tag; with the requester ID it names a transaction.
    pub tag: u16,
    pub kind: Kind,
    pub header: Header,
    /// Whether it has an end-to-end digest of 4 bytes.
    pub digest: bool,
    /// The attribute relaxed ordering.
    pub relaxed: bool,
    /// The attribute ID-based ordering.
    pub id_ordered: bool,
}

impl Tlp {
    /// A packet with the header that its kind and address need, no digest, and no attributes.
    pub const fn new(kind: Kind, address: u64, length_bytes: u32) -> Tlp {
        let long = address >> 32 != 0 && !matches!(kind.class(), Class::Completion);
        let header = if long || matches!(kind, Kind::Message) { Header::FourDw } else { Header::ThreeDw };
        Tlp {
            address,
            length_bytes,
            body: 0,
            hold: 0,
            requester: 0,
            completer: 0,
            tag: 0,
            kind,
            header,
            digest: false,
            relaxed: false,
            id_ordered: false,
        }
    }

    /// Double words that its range touches; at least one. Its length field has this number, also when it is a read.
    #[inline]
    pub const fn length_dw(&self) -> u32 {
        let spanned = ((self.address & 3) as u32 + self.length_bytes).div_ceil(4);
        if spanned == 0 { 1 } else { spanned }
    }

    /// Bytes of payload, rounded to double words.
    #[inline]
    pub const fn payload_bytes(&self) -> u32 {
        if self.kind.has_data() { self.length_dw() * 4 } else { 0 }
    }

    /// Units of 16 bytes that its payload takes of the data credits.
    #[inline]
    pub const fn data_units(&self) -> u32 {
        self.payload_bytes().div_ceil(16)
    }

    /// Byte enables of the first and of the last double word, bit 0 for the lowest address; the last is 0 if there is
    /// only one double word (Base Specification, section 2.2.5).
    pub const fn enables(&self) -> (u8, u8) {
        let skipped = (self.address & 3) as u32;
        let end = skipped + self.length_bytes;
        let first = (0xf << skipped) & 0xf;
        if end <= 4 {
            return ((first & !(0xf_u32 << end)) as u8 & 0xf, 0);
        }
        let beyond = self.length_dw() * 4 - end;
        (first as u8, 0xf >> beyond)
    }

    /// Bytes on the wire, those of the data link and physical layer included.
    ///
    /// With 8b/10b these are STP, sequence number (2), LCRC (4) and END; with 128b/130b an STP token with the sequence
    /// number (4) and LCRC (4): eight either way. In a flit there are none, but a request with byte enables other than
    /// all, a completion that does not start at a double word, and every I/O or configuration request have one double
    /// word of orthogonal header content (Base Specification 6.0, sections 2.2.5.2 and 2.2.9.2). PADs are not counted:
    /// STP may stand in every fourth lane.
    #[inline]
    pub const fn wire_bytes(&self, encoding: Encoding) -> u32 {
        let digest = if self.digest { 4 } else { 0 };
        let packet = self.header.bytes() + self.payload_bytes() + digest;
        match encoding {
            Encoding::Symbols8b10b | Encoding::Blocks128b130b => packet + 8,
            Encoding::Flits => packet + if self.has_orthogonal_content() { 4 } else { 0 },
        }
    }

    const fn has_orthogonal_content(&self) -> bool {
        match self.kind {
            Kind::NonPostedWrite => true,
            Kind::Message | Kind::Completion => false,
            Kind::CompletionWithData => self.address & 3 != 0,
            Kind::MemoryWrite | Kind::MemoryRead | Kind::Atomic => {
                (self.address | self.length_bytes as u64) & 3 != 0 || self.length_bytes == 0
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_of_the_specification() {
        let write = Tlp::new(Kind::MemoryWrite, 1 << 32, 64);
        assert_eq!(write.wire_bytes(Encoding::Symbols8b10b), 88);
        assert_eq!(write.wire_bytes(Encoding::Blocks128b130b), 88);
        assert_eq!(write.wire_bytes(Encoding::Flits), 80);
        assert_eq!(Tlp { digest: true, ..write }.wire_bytes(Encoding::Blocks128b130b), 92);
        let read = Tlp::new(Kind::MemoryRead, 0, 512);
        assert_eq!((read.wire_bytes(Encoding::Symbols8b10b), read.length_dw()), (20, 128));
        let answer = Tlp::new(Kind::CompletionWithData, 1 << 40, 256);
        assert_eq!(answer.wire_bytes(Encoding::Blocks128b130b), 276, "completions have short headers");
        assert_eq!(Tlp::new(Kind::Message, 0, 4).header, Header::FourDw);
        assert_eq!(size_of::<Tlp>(), 32);
    }

    #[test]
    fn bytes_round_to_double_words_with_enables() {
        for (address, length_bytes, dw, enables) in [
            (0, 4, 1, (0b1111, 0)),
            (1, 2, 1, (0b0110, 0)),
            (3, 1, 1, (0b1000, 0)),
            (3, 2, 2, (0b1000, 0b0001)),
            (2, 6, 2, (0b1100, 0b1111)),
            (0, 9, 3, (0b1111, 0b0001)),
            (5, 64, 17, (0b1110, 0b0001)),
            (8, 0, 1, (0, 0)),
            (9, 0, 1, (0, 0)),
        ] {
            let tlp = Tlp::new(Kind::MemoryWrite, address, length_bytes);
            assert_eq!((tlp.length_dw(), tlp.enables()), (dw, enables), "{length_bytes} at {address}");
            let whole = enables.0 == 0xf && (enables.1 == 0xf || dw == 1);
            assert_eq!(tlp.wire_bytes(Encoding::Flits), 12 + dw * 4 + if whole { 0 } else { 4 });
        }
    }

    #[test]
    fn credits_count_sixteen_bytes() {
        let units = |kind, length_bytes| Tlp::new(kind, 0, length_bytes).data_units();
        assert_eq!(units(Kind::MemoryWrite, 64), 4);
        assert_eq!(units(Kind::MemoryWrite, 65), 5);
        assert_eq!(units(Kind::MemoryRead, 4096), 0);
        assert_eq!(units(Kind::NonPostedWrite, 4), 1);
        assert_eq!(units(Kind::Completion, 4), 0);
    }
}

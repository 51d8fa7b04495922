//! What somebody asks of a member who is none: one request, one answer, and the connection ends.
//!
//! Little-endian, exact lengths. Neither side is trusted: an answer that does not fit is an error.

use beeline_fabric::{
    AdapterNumber, Holding, LinkReport, MemberReport, Name, NameKind, NodeId, SegmentId, SegmentReport,
    SegmentStage,
};

/// Version of questions and answers.
const VERSION: u16 = 2;
const QUESTION: &[u8; 4] = b"BEEQ";
const ANSWER: &[u8; 4] = b"BEEA";
const ADAPTERS: u32 = 16;
const QUESTION_BYTES: usize = 24;
const HEADER_BYTES: usize = 24;
const LINKS_BYTES: usize = 8 * ADAPTERS as usize;
const SEGMENT_BYTES: usize = 40;

/// Segments of one answer at most: a packet has room for more.
pub(crate) const SEGMENTS_AT_ONCE: usize = 1024;

/// What is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Question {
    /// What the member has, with segments beyond this number.
    Report { after: u64 },
    /// To take the link of an adapter up or down.
    SetLink { adapter: AdapterNumber, is_up: bool },
    /// To remove a segment or the member's part of a group, with `is_forced` from its users too.
    Remove { name: Name, is_forced: bool },
}

/// Why a packet is no question, or no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AnswerError {
    /// So many bytes, which no such packet has.
    #[error("{0} bytes are none")]
    Length(usize),
    /// It begins as none does.
    #[error("it does not begin as those of the fabric do")]
    Magic,
    /// Another version of this library sent it.
    #[error("it is of version {0}, this program speaks version {VERSION}")]
    Version(u16),
    /// A value that nothing has.
    #[error("it says what no member can")]
    Value,
    /// It does not go on where the one before ended.
    #[error("its segments are not in order")]
    Order,
}

/// The bytes of a packet that were not taken yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn take<const N: usize>(&mut self) -> Result<[u8; N], AnswerError> {
        let (first, rest) = self.0.split_first_chunk().ok_or(AnswerError::Length(self.0.len()))?;
        self.0 = rest;
        Ok(*first)
    }

    fn u16(&mut self) -> Result<u16, AnswerError> {
        self.take().map(u16::from_le_bytes)
    }

    fn u32(&mut self) -> Result<u32, AnswerError> {
        self.take().map(u32::from_le_bytes)
    }

    fn u64(&mut self) -> Result<u64, AnswerError> {
        self.take().map(u64::from_le_bytes)
    }

    /// Takes what a packet of this kind and version begins with.
    fn begin(packet: &[u8], magic: [u8; 4]) -> Result<Rest<'_>, AnswerError> {
        let mut rest = Rest(packet);
        if rest.take::<4>()? != magic {
            return Err(AnswerError::Magic);
        }
        match rest.u16()? {
            VERSION => Ok(rest),
            other => Err(AnswerError::Version(other)),
        }
    }
}

impl Question {
    /// Whether a packet says that it is a question.
    pub(crate) fn is_one(packet: &[u8]) -> bool {
        packet.starts_with(QUESTION)
    }

    /// `magic:4 | version:2 | which:2 | number:8 | flag:8`
    pub(crate) fn to_bytes(self) -> Vec<u8> {
        let (which, number, flag): (u16, u64, bool) = match self {
            Question::Report { after } => (1, after, false),
            Question::SetLink { adapter, is_up } => (2, adapter.number().into(), is_up),
            Question::Remove { name, is_forced } if name.kind == NameKind::Group => {
                (4, name.number.into(), is_forced)
            }
            Question::Remove { name, is_forced } => (3, name.number.into(), is_forced),
        };
        let (which, number) = (which.to_le_bytes(), number.to_le_bytes());
        let flag = u64::from(flag).to_le_bytes();
        [QUESTION.as_slice(), &VERSION.to_le_bytes(), &which, &number, &flag].concat()
    }

    pub(crate) fn of(packet: &[u8]) -> Result<Self, AnswerError> {
        if packet.len() != QUESTION_BYTES {
            return Err(AnswerError::Length(packet.len()));
        }
        let mut rest = Rest::begin(packet, *QUESTION)?;
        let (which, number, flag) = (rest.u16()?, rest.u64()?, rest.u64()?);
        let small = u32::try_from(number).map_err(|_| AnswerError::Value);
        match (which, flag) {
            (1, 0) => Ok(Question::Report { after: number }),
            (2, 0 | 1) => {
                let adapter = AdapterNumber::new(small?).map_err(|_| AnswerError::Value)?;
                Ok(Question::SetLink { adapter, is_up: flag == 1 })
            }
            (3 | 4, 0 | 1) => {
                let kind = if which == 4 { NameKind::Group } else { NameKind::Segment };
                Ok(Question::Remove { name: Name { kind, number: small? }, is_forced: flag == 1 })
            }
            _ => Err(AnswerError::Value),
        }
    }
}

/// The answer to [`Question::Report`]: the member, and some of its segments.
///
/// `magic:4 | version:2 | node:2 | consumers:4 | connections:4 | segments:4 | zero:4`, a word for each of 16 adapters
/// (`epoch:63 | up:1`, 0: not there), segments.
pub(crate) fn report_to_bytes(report: &MemberReport, segments: &[SegmentReport]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER_BYTES + LINKS_BYTES + SEGMENT_BYTES * segments.len());
    bytes.extend_from_slice(ANSWER);
    bytes.extend_from_slice(&VERSION.to_le_bytes());
    bytes.extend_from_slice(&report.node.0.to_le_bytes());
    for number in [report.consumers, report.connections, report.segments, 0] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    let mut links = [0; ADAPTERS as usize];
    for link in &report.links {
        links[link.adapter.number() as usize] = link.epoch << 1 | u64::from(link.is_up);
    }
    links.iter().for_each(|link| bytes.extend_from_slice(&link.to_le_bytes()));
    segments.iter().for_each(|segment| bytes.extend_from_slice(&segment_to_bytes(segment)));
    bytes
}

/// `number:8 | bytes:8 | memory:8 | id:4 | connections:4 | maps:4 | available:2 | stage:1 | holding:1`
fn segment_to_bytes(segment: &SegmentReport) -> Vec<u8> {
    let stage = match segment.stage {
        SegmentStage::Empty => 0,
        SegmentStage::NotPrepared => 1,
        SegmentStage::Prepared => 2,
        SegmentStage::Available => 3,
    };
    let holding = match segment.holding {
        Holding::Alone => 0,
        Holding::Private => 1,
        Holding::Shared => 2,
        Holding::Group => 3,
    };
    let mut bytes = [segment.number, segment.bytes, segment.memory].map(u64::to_le_bytes).concat();
    for number in [segment.id.0, segment.connections, segment.maps] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(&segment.available.to_le_bytes());
    bytes.extend_from_slice(&[stage, holding]);
    bytes
}

/// Reads an answer to [`Question::Report`]; all of its segments lie beyond `after`, in order.
pub(crate) fn report_of(
    packet: &[u8],
    mut after: u64,
) -> Result<(MemberReport, Vec<SegmentReport>), AnswerError> {
    let is_whole = packet.len().checked_sub(HEADER_BYTES + LINKS_BYTES).is_some_and(|segments| {
        segments.is_multiple_of(SEGMENT_BYTES) && segments / SEGMENT_BYTES <= SEGMENTS_AT_ONCE
    });
    if !is_whole {
        return Err(AnswerError::Length(packet.len()));
    }
    let mut rest = Rest::begin(packet, *ANSWER)?;
    let node = NodeId(rest.u16()?);
    let [consumers, connections, segments, _] = [rest.u32()?, rest.u32()?, rest.u32()?, rest.u32()?];
    let mut links = Vec::new();
    for number in 0..ADAPTERS {
        let (word, adapter) = (rest.u64()?, AdapterNumber::new(number).map_err(|_| AnswerError::Value)?);
        if word != 0 {
            links.push(LinkReport { adapter, is_up: word & 1 == 1, epoch: word >> 1 });
        }
    }
    let mut reports = Vec::new();
    while !rest.0.is_empty() {
        let report = segment_of(&mut rest)?;
        if report.number <= after {
            return Err(AnswerError::Order);
        }
        after = report.number;
        reports.push(report);
    }
    Ok((MemberReport { node, links, consumers, connections, segments }, reports))
}

fn segment_of(rest: &mut Rest<'_>) -> Result<SegmentReport, AnswerError> {
    let (number, bytes, memory, id) = (rest.u64()?, rest.u64()?, rest.u64()?, SegmentId(rest.u32()?));
    let (connections, maps, available) = (rest.u32()?, rest.u32()?, rest.u16()?);
    let [stage, holding] = rest.take()?;
    let stage = match stage {
        0 => SegmentStage::Empty,
        1 => SegmentStage::NotPrepared,
        2 => SegmentStage::Prepared,
        3 => SegmentStage::Available,
        _ => return Err(AnswerError::Value),
    };
    let holding = match holding {
        0 => Holding::Alone,
        1 => Holding::Private,
        2 => Holding::Shared,
        3 => Holding::Group,
        _ => return Err(AnswerError::Value),
    };
    Ok(SegmentReport { number, id, bytes, stage, holding, memory, available, connections, maps })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn adapter(number: u32) -> AdapterNumber {
        AdapterNumber::new(number).unwrap()
    }

    fn report() -> MemberReport {
        let link = |number, is_up, epoch| LinkReport { adapter: adapter(number), is_up, epoch };
        MemberReport {
            node: NodeId(0x0804),
            links: vec![link(0, true, 1), link(15, false, 2)],
            consumers: 1,
            connections: 2,
            segments: 3,
        }
    }

    fn segment(number: u64, stage: SegmentStage, holding: Holding) -> SegmentReport {
        let (id, available, memory) = (SegmentId(0xfedc_ba98), 0x8001, 0xfedc_ba98_7654_3210 - number);
        let (bytes, connections, maps) = (1 << 40, 4, 5);
        SegmentReport { number, id, bytes, stage, holding, memory, available, connections, maps }
    }

    #[test]
    fn questions_come_back_and_others_are_none() {
        let questions = [
            Question::Report { after: u64::MAX },
            Question::SetLink { adapter: adapter(15), is_up: true },
            Question::SetLink { adapter: adapter(0), is_up: false },
            Question::Remove { name: Name::segment(SegmentId(u32::MAX)), is_forced: true },
            Question::Remove { name: Name::segment_of(NodeId::GROUPS, SegmentId(7)), is_forced: false },
        ];
        for question in questions {
            let bytes = question.to_bytes();
            assert!(Question::is_one(&bytes));
            assert_eq!(Question::of(&bytes), Ok(question));
            assert_eq!(Question::of(&bytes[..23]), Err(AnswerError::Length(23)));
        }
        let with = |at: usize, value: u8| {
            let mut bytes = questions[1].to_bytes();
            bytes[at] = value;
            Question::of(&bytes)
        };
        let odd = [(0, AnswerError::Magic), (4, AnswerError::Version(9)), (6, AnswerError::Value)];
        odd.into_iter().for_each(|(at, error)| assert_eq!(with(at, 9), Err(error), "byte {at}"));
        for (at, value) in [(8, 16), (12, 1), (16, 2), (23, 1)] {
            assert_eq!(with(at, value), Err(AnswerError::Value), "byte {at}");
        }
    }

    #[test]
    fn reports_come_back() {
        use SegmentStage::{Available, Empty, NotPrepared, Prepared};
        let stages = [Empty, NotPrepared, Prepared, Available];
        let holdings = [Holding::Alone, Holding::Private, Holding::Shared, Holding::Group];
        let segments: Vec<_> = stages
            .iter()
            .zip(holdings)
            .zip(8..)
            .map(|((stage, holding), it)| segment(it, *stage, holding))
            .collect();
        let bytes = report_to_bytes(&report(), &segments);
        assert_eq!(report_of(&bytes, 7), Ok((report(), segments)));
        assert_eq!(report_of(&bytes, 8), Err(AnswerError::Order), "it would be asked for for ever");
        let most: Vec<_> =
            (1..=SEGMENTS_AT_ONCE as u64).map(|number| segment(number, Empty, Holding::Alone)).collect();
        let bytes = report_to_bytes(&report(), &most);
        assert!(bytes.len() <= beeline_domain::MAX_PAYLOAD_BYTES);
        assert_eq!(report_of(&bytes, 0), Ok((report(), most)));
    }

    #[test]
    fn answers_of_no_member_are_errors() {
        let one = report_to_bytes(&report(), &[segment(1, SegmentStage::Prepared, Holding::Alone)]);
        for length in (0..one.len()).filter(|length| *length != HEADER_BYTES + LINKS_BYTES) {
            assert_eq!(report_of(&one[..length], 0), Err(AnswerError::Length(length)));
        }
        let with = |at: usize, value: u8| {
            let mut bytes = one.clone();
            bytes[at] = value;
            report_of(&bytes, 0)
        };
        assert_eq!(with(0, b'b'), Err(AnswerError::Magic));
        assert_eq!(with(4, 1), Err(AnswerError::Version(1)));
        let last = one.len() - 1;
        assert_eq!((with(last, 4), with(last - 1, 4)), (Err(AnswerError::Value), Err(AnswerError::Value)));
        let twice = report_to_bytes(&report(), &[segment(1, SegmentStage::Prepared, Holding::Alone); 2]);
        assert_eq!(report_of(&twice, 0), Err(AnswerError::Order));
    }
}

//! One queue's sender: what it has laid out and not written, and what must have become of what it wrote.

use std::collections::VecDeque;

use beeline_spec::LINE_BYTES;

/// A line of a message, in pieces that have not been written.
#[derive(Clone, Debug)]
pub struct Line {
    pub bytes: [u8; LINE_BYTES],
    pub left: Vec<u64>,
}

impl Line {
    /// Bytes that have been written.
    pub fn written(&self) -> u64 {
        !self.left.iter().fold(0, |all, piece| all | piece)
    }
}

/// A message under way.
#[derive(Clone, Debug)]
pub struct Message {
    /// Positions of its first line and behind its last.
    pub first: u64,
    pub end: u64,
    pub frames: Vec<Vec<u8>>,
    /// The reader fails the queue when it comes to it.
    pub is_malformed: bool,
}

/// How exactly the two devices agree about a life of a queue. Both judge pieces in the order in which they arrive, and what
/// follows from that alone is equal. The RTL is later than the model in everything else: in seeing that a line is free,
/// in reading a message, in what has left when the queue is stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Agreement {
    /// Frames, state, cause, next start and credits are equal, and the frames are those that were written.
    All,
    /// The queue failed by a line that is beyond the span and perhaps not free either: which of the two is the cause follows
    /// from what has left. All else is equal.
    AllButCause,
    /// A message was malformed: the model fails the queue when its first line is contiguous, the RTL when its reader comes
    /// to it. What is written in between may break another rule, and fills the pool of a queue without credits. Frames,
    /// state and next start are equal.
    Frames,
    /// The life ended by a stop or a time-out in the middle of traffic: what had not left is dropped. The frames of either
    /// device are the first of those that were written.
    FirstFrames,
}

/// The state of a queue between a start and the next stop.
#[derive(Clone, Debug)]
pub struct Life {
    /// Frames of messages that are whole, since the last comparison.
    pub frames: Vec<Vec<u8>>,
    pub agreement: Agreement,
}

/// The sender of a queue.
#[derive(Clone, Debug)]
pub struct Sender {
    pub epoch: u8,
    /// Position of `lines[0]`: the earliest line that lacks something.
    pub frontier: u64,
    /// Position behind the last line.
    pub end: u64,
    pub lines: VecDeque<Line>,
    pub messages: VecDeque<Message>,
    /// Those since the last comparison; the last one is the present one.
    pub lives: Vec<Life>,
    /// It keeps no rule any more: nothing of what it writes now becomes a frame.
    pub is_broken: bool,
}

impl Default for Sender {
    fn default() -> Self {
        Sender {
            epoch: 0,
            frontier: 0,
            end: 0,
            lines: VecDeque::new(),
            messages: VecDeque::new(),
            lives: vec![Life { frames: Vec::new(), agreement: Agreement::All }],
            is_broken: false,
        }
    }
}

impl Sender {
    /// The queue is started with this epoch.
    pub fn begins(&mut self, epoch: u8) {
        let mut lives = std::mem::take(&mut self.lives);
        lives.push(Life { frames: Vec::new(), agreement: Agreement::All });
        *self = Sender { epoch, lives, ..Sender::default() };
    }

    /// Everything so far was compared.
    pub fn was_compared(&mut self) {
        self.lives.drain(..self.lives.len() - 1);
        self.life().frames.clear();
    }

    pub fn life(&mut self) -> &mut Life {
        self.lives.last_mut().expect("there is one always")
    }

    pub fn agreement(&self) -> Agreement {
        self.lives.last().expect("there is one always").agreement
    }

    /// From here on no piece of the queue has an effect that lasts. Who was broken before stays so for that reason.
    pub fn breaks(&mut self, agreement: Agreement) {
        if !self.is_broken {
            self.life().agreement = agreement;
        }
        self.is_broken = true;
    }

    /// The life ends before the devices have settled.
    pub fn is_cut_short(&mut self) {
        self.life().agreement = Agreement::FirstFrames;
        self.is_broken = true;
    }

    /// Lays a line out behind the others.
    pub fn lay_line(&mut self, bytes: [u8; LINE_BYTES], left: Vec<u64>) {
        self.lines.push_back(Line { bytes, left });
        self.end += 1;
    }

    /// Moves on over lines that were written; gives how many.
    pub fn note_progress(&mut self) -> u64 {
        let before = self.frontier;
        while self.lines.front().is_some_and(|line| line.left.is_empty()) {
            self.lines.pop_front();
            self.frontier += 1;
        }
        while let Some(message) = self.messages.front() {
            let (is_refused, is_whole) =
                (message.is_malformed && message.first < self.frontier, message.end <= self.frontier);
            if is_refused {
                self.breaks(Agreement::Frames);
            }
            if !is_whole {
                break;
            }
            let message = self.messages.pop_front().expect("it is there");
            if !self.is_broken {
                self.life().frames.extend(message.frames);
            }
        }
        self.frontier - before
    }

    /// Checks the frames that a device sent since the last comparison.
    pub fn check(&self, queue: u16, device: &str, sent: &[Vec<u8>]) {
        let mut at = 0;
        for (number, life) in self.lives.iter().enumerate() {
            let same = life.frames.iter().zip(&sent[at..]).take_while(|(wrote, sent)| wrote == sent).count();
            let is_all = same == life.frames.len();
            assert!(
                is_all || life.agreement == Agreement::FirstFrames,
                "queue {queue}, {device}: of {} frames of life {number} of {} ({:?}) the first {same} were sent as they \
                 were written; {} more were sent, of {:?} bytes, where {:?} were written",
                life.frames.len(),
                self.lives.len(),
                life.agreement,
                sent.len() - at - same,
                sent[at + same..].iter().map(Vec::len).collect::<Vec<_>>(),
                life.frames[same..].iter().map(Vec::len).collect::<Vec<_>>(),
            );
            at += same;
        }
        assert_eq!(at, sent.len(), "queue {queue}, {device}: frames that nobody wrote, or out of order");
    }
}

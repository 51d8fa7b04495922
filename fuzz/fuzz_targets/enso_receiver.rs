//! This target receives from pipes of several queues behind one ring of notifications (`EnsoReceiver`). A hostile device
//! controls every word of the ring and of the pipes, while queues join, leave and are recovered. The receiver does not
//! panic, does not hang, does not read outside a pipe, and gives no frame that is longer than what was told of. What a
//! device that has not lied tells of comes to the byte, by its queue and in order, and nothing comes of a life before a
//! recovery. Freed counts never run ahead. An error needs a lie, and stays.
#![no_main]

use std::collections::VecDeque;

use arbitrary::Arbitrary;
use beeline_driver::{
    EnsoReceiver, JoinError, Port, QueueHalf, Receive, RxEnsoConfig, RxEnsoMember, RxEnsoMemberConfig,
    RxError,
};
use beeline_fuzz::Word;
use beeline_fuzz::fillers::{LINES, MAX_FRAME_BYTES, NOTIFICATIONS, NotifyFiller, Pipe, Says, truth};
use beeline_fuzz::opened::{Opened, Words, rung};
use beeline_fuzz::received::{Lies, frame};
use beeline_fuzz::scripted::{Bell, Memory, Scripted};
use beeline_spec::pipe::{self, Notification};
use beeline_spec::regs::doorbell::RX_FREED;
use libfuzzer_sys::fuzz_target;

const QUEUES: usize = 4;
const OWNER: usize = 1;

#[derive(Arbitrary, Debug)]
enum Operation {
    /// A frame is appended to a pipe, and told of if it is time.
    Append {
        which: u8,
        bytes: u16,
        fill: u8,
        lies: Lies,
    },
    /// What has not been told is, if it is time.
    Tell {
        which: u8,
    },
    /// A notification that nobody has a reason for.
    Wild {
        queue: u8,
        more_lines: i16,
        epoch: Option<u8>,
    },
    /// Frames are received.
    Receive {
        times: u8,
    },
    /// The host asks whether it may sleep.
    Look,
    /// A pipe is taken in, or given back.
    Join {
        which: u8,
    },
    Leave {
        which: u8,
    },
    /// A queue that has left is recovered.
    Recover {
        which: u8,
    },
    /// The receiver is taken apart; the owner is recovered, and with it the others, whose notifications are lost.
    RecoverAll,
    /// A word of a queue's memory.
    Poke {
        which: u8,
        word: u16,
        value: Word,
    },
}

/// One queue: its pipe as the device sees it, and the frames that the host has not taken.
struct Side {
    pipe: Pipe,
    words: Words,
    frames: VecDeque<Vec<u8>>,
    taken_frames: u64,
    taken_lines: u64,
    last: Option<u64>,
    /// The host's half while it is not in the receiver.
    away: Option<Opened<RxEnsoMember<Memory, Bell>>>,
    is_joined: bool,
}

struct Bench {
    link: Scripted,
    port: Port<Scripted>,
    /// There but while it is taken apart.
    rx: Option<EnsoReceiver<Memory, Bell>>,
    ring: NotifyFiller,
    /// Notifications so far, and those of them that the host is known to have seen.
    told: u64,
    seen: u64,
    sides: Vec<Side>,
    is_lie: bool,
    failed: Option<RxError>,
}

impl Bench {
    fn new() -> Self {
        let link = Scripted::sound(LINES);
        let mut port = link.ready();
        let config = RxEnsoConfig { lines: LINES, notifications: NOTIFICATIONS, ..Default::default() };
        let owner =
            Opened::new(&mut port, &link, |port| port.rx_enso(OWNER as u32, config)).expect("a sound device");
        let ring = NotifyFiller::new(owner.words());
        let sides = (0..QUEUES as u32).map(|queue| match queue as usize {
            OWNER => Side::new(Pipe::new(queue, 0, owner.words(), 8), owner.words(), None),
            _ => {
                let config = RxEnsoMemberConfig { lines: LINES, ..Default::default() };
                let member =
                    Opened::new(&mut port, &link, |port| port.rx_enso_member(queue, OWNER as u32, config));
                let member = member.expect("a sound device");
                let pipe = Pipe::new(queue, member.epoch(), member.words(), 0);
                Side::new(pipe, member.words(), Some(member))
            }
        });
        let sides = sides.collect();
        let rx = Some(port.enso_receiver(owner.half));
        Bench { link, port, rx, ring, told: 0, seen: 0, sides, is_lie: false, failed: None }
    }

    fn rx(&mut self) -> &mut EnsoReceiver<Memory, Bell> {
        self.rx.as_mut().expect("it is put together again at once")
    }

    /// The side of a queue, which is one of the members for `which` of 0 to 2.
    fn member(which: u8) -> usize {
        [0, 2, 3][usize::from(which % 3)]
    }

    fn append(&mut self, which: u8, (bytes, fill): (u16, u8), lies: Lies) {
        let side = &mut self.sides[usize::from(which) % QUEUES];
        let frame = frame(bytes, fill);
        let is_lie = &mut self.is_lie;
        let mut lie = |says, word| {
            let told = lies.tell(says, word);
            *is_lie |= told != word;
            told
        };
        if side.pipe.append(&self.link, &frame, &mut lie) {
            side.frames.push_back(frame);
        }
        self.tell(which, &mut |says, word| lies.tell(says, word));
    }

    /// Tells of a pipe if it is time, and if the ring has an entry that the host has seen the last of.
    fn tell(&mut self, which: u8, lie: &mut dyn FnMut(Says, u64) -> u64) {
        let side = &mut self.sides[usize::from(which) % QUEUES];
        let Some(notification) = side.pipe.due(&self.link) else { return };
        // It is time because the host has seen the last one of this pipe.
        self.seen = self.seen.max(side.last.map_or(0, |last| last + 1));
        if self.told - self.seen >= NOTIFICATIONS.into() {
            return;
        }
        let is_lie = &mut self.is_lie;
        self.ring.tell(notification, &mut |says, word| {
            let told = lie(says, word);
            *is_lie |= told != word;
            told
        });
        side.pipe.was_told();
        side.last = Some(self.told);
        self.told += 1;
    }

    fn wild(&mut self, queue: u8, more_lines: i16, epoch: Option<u8>) {
        let known = &self.sides[usize::from(queue) % QUEUES].pipe;
        let told = known.notification();
        let wild = Notification {
            tail_lines: told.tail_lines.wrapping_add_signed(more_lines.into()),
            // Now and then of a queue that the port does not have.
            queue: u16::from(queue % (QUEUES as u8 + 1)),
            epoch: epoch.unwrap_or(told.epoch),
        };
        self.ring.tell(wild, &mut truth);
        self.told += 1;
        self.is_lie = true;
    }

    fn receive(&mut self) {
        (0..QUEUES as u8).for_each(|which| self.tell(which, &mut truth));
        let mut bytes = [0; MAX_FRAME_BYTES];
        let found = self.rx().poll_pipes().map(|found| {
            found.map(|(queue, mut frame)| {
                let length = frame.copy_out(&mut bytes);
                assert!(length == frame.len() && length <= MAX_FRAME_BYTES);
                (0..=length.div_ceil(8)).for_each(|at| assert_eq!(frame.word(at).is_some(), at * 8 < length));
                (queue as usize, length)
            })
        });
        match (found, self.failed) {
            (Err(error), failed) => {
                assert_eq!(failed.unwrap_or(error), error, "an error is final");
                assert!(self.is_lie, "an error without a lie: {error}");
                self.failed = Some(error);
            }
            (Ok(_), Some(_)) => panic!("a poll went well after an error"),
            (Ok(None), None) => {
                let is_all = |side: &Side| side.taken_frames == side.pipe.told_frames();
                let here = self.sides.iter().filter(|side| side.is_joined);
                assert!(self.is_lie || here.clone().all(is_all), "a frame is not found");
            }
            (Ok(Some((queue, length))), None) => {
                let side = &mut self.sides[queue];
                assert!(side.is_joined, "a frame of a queue that is not here");
                let is_it = side.frames.pop_front().is_some_and(|frame| frame == bytes[..length]);
                assert!(self.is_lie || is_it, "another frame");
                side.taken_frames += 1;
                side.taken_lines += u64::from(pipe::lines_of(length as u32));
            }
        }
        for (queue, side) in self.sides.iter().enumerate() {
            let told = rung(&self.link, queue as u32, RX_FREED);
            assert!(
                told <= side.taken_lines,
                "the device is told that {told} of {} are free",
                side.taken_lines
            );
        }
    }

    fn look(&mut self) {
        match self.rx().wants_interrupt() {
            Ok(true) => assert!(matches!(self.rx().poll_pipes(), Ok(None)), "asleep beside a frame"),
            Ok(false) => {}
            Err(error) => assert!(self.is_lie, "an error without a lie: {error}"),
        }
    }

    fn join(&mut self, which: u8) {
        let side = &mut self.sides[Self::member(which)];
        let Some(Opened { half, .. }) = side.away.take() else { return };
        side.is_joined = true;
        match self.rx().join(half) {
            Ok(()) => {}
            Err(JoinError::Device(error)) => {
                assert!(self.is_lie, "an error without a lie: {error}");
                self.failed = Some(self.failed.unwrap_or(error));
            }
            Err(JoinError::NotOurs(_)) => panic!("a member is not taken"),
        }
    }

    fn leave(&mut self, which: u8) {
        let queue = Self::member(which);
        let side = &self.sides[queue];
        assert_eq!(side.is_joined, side.away.is_none());
        let Some(half) = self.rx().leave(queue as u32) else { return };
        let side = &mut self.sides[queue];
        side.is_joined = false;
        side.away = Some(Opened::around(half, queue as u32, side.words.clone()));
    }

    fn recover(&mut self, which: u8) {
        let side = &mut self.sides[Self::member(which)];
        let Some(member) = side.away.take() else { return };
        let member = member.recovered(&mut self.port).expect("a sound device");
        side.begins(member.epoch());
        side.is_joined = false;
        side.away = Some(member);
    }

    /// What comes after it is of new lives alone: no lie of an earlier one is an excuse any more.
    fn recover_all(&mut self) {
        let Some(rx) = self.rx.take() else { return };
        let (owner, members) = rx.into_parts();
        let words = self.sides[OWNER].words.clone();
        let owner = Opened::around(owner, OWNER as u32, words).recovered(&mut self.port);
        self.rx = Some(self.port.enso_receiver(owner.expect("a sound device").half));
        self.ring.restart();
        self.sides[OWNER].begins(0);
        for member in members {
            let queue = member.queue() as usize;
            let side = &mut self.sides[queue];
            side.away = Some(Opened::around(member, queue as u32, side.words.clone()));
        }
        (0..3).for_each(|which| self.recover(which));
        (self.told, self.seen, self.is_lie, self.failed) = (0, 0, false, None);
    }

    fn run(&mut self, operation: Operation) {
        match operation {
            Operation::Append { which, bytes, fill, lies } => self.append(which, (bytes, fill), lies),
            Operation::Tell { which } => self.tell(which, &mut truth),
            Operation::Wild { queue, more_lines, epoch } => self.wild(queue, more_lines, epoch),
            Operation::Receive { times } => (0..times % 16).for_each(|_| self.receive()),
            Operation::Look => self.look(),
            Operation::Join { which } => self.join(which),
            Operation::Leave { which } => self.leave(which),
            Operation::Recover { which } => self.recover(which),
            Operation::RecoverAll => self.recover_all(),
            Operation::Poke { which, word, value } => {
                let mut words = self.sides[usize::from(which) % QUEUES].words.borrow_mut();
                let word = usize::from(word) % words.len();
                words[word] = value.value();
                self.is_lie = true;
            }
        }
    }
}

impl Side {
    fn new(pipe: Pipe, words: Words, away: Option<Opened<RxEnsoMember<Memory, Bell>>>) -> Self {
        let is_joined = away.is_none();
        Side {
            pipe,
            words,
            frames: VecDeque::new(),
            taken_frames: 0,
            taken_lines: 0,
            last: None,
            away,
            is_joined,
        }
    }

    /// The queue has a new life.
    fn begins(&mut self, epoch: u8) {
        self.pipe.restart();
        self.pipe.epoch = epoch;
        self.frames.clear();
        (self.taken_frames, self.taken_lines, self.last) = (0, 0, None);
    }
}

fuzz_target!(|operations: Vec<Operation>| {
    let mut bench = Bench::new();
    operations.into_iter().for_each(|operation| bench.run(operation));
});

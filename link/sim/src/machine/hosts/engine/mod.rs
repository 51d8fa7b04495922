//! The DMA engine of a port: what it was told to transfer, what it has under way, and what waits to leave it or to be seen.
//!
//! It stands where the root complex is, so it reads memory of its own host without a link, and a write or a request of it is a packet of the
//! port like those of the cores. Packets leave in the order in which they were made. No count of cycles says that anything has come: a transfer
//! is over when each of its writes is on the link and each of its requests is answered or timed out, and its status word lands behind what it
//! has brought.
//!
//! From: a program, by `Hosts::start_transfer`. To: `engines.rs`, which moves the packets. Not here: what a transfer is part of, and whether
//! links were down meanwhile.

mod landing;
mod reads;
mod settings;
mod transfer;

use std::collections::VecDeque;

pub use settings::EngineSettings;
pub use transfer::{Outcome, Transfer, Way};

pub(super) use landing::Landing;
use reads::{Read, Reads};
use transfer::Job;

use crate::des::Picoseconds;
use crate::device::Server;
use crate::pcie::Tlp;

/// What a job does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// So many bytes more, from this offset on: as many as one packet may have or ask for.
    Move(Transfer, u64),
    /// A word across is read, behind what was written.
    Ask(Transfer, u64),
    /// Its status lands, and it is over.
    End(Transfer, Outcome, u64),
}

/// The engine of one port.
#[derive(Debug)]
pub(super) struct Engine {
    settings: EngineSettings,
    jobs: VecDeque<Job>,
    pub reads: Reads,
    /// Of which transfers packets with data are that have not left, in the order in which they leave.
    held: VecDeque<u32>,
    /// Packets, with the time at which they may leave, which never decreases.
    outgoing: VecDeque<(Picoseconds, Tlp)>,
    /// When an event will come for the first of them.
    pub sends_at: Option<Picoseconds>,
    /// Whether the cores have sent since it has: one packet of each leaves in turn.
    pub is_its_turn: bool,
    landings: VecDeque<(Picoseconds, Landing)>,
    /// Local memory gives lines one after the other.
    pub memory: Server,
    path: Server,
}

impl Engine {
    pub(super) fn new(settings: &EngineSettings) -> Self {
        Engine {
            settings: settings.clone(),
            jobs: VecDeque::new(),
            reads: Reads::new(settings.tags),
            held: VecDeque::new(),
            outgoing: VecDeque::new(),
            sends_at: None,
            is_its_turn: false,
            landings: VecDeque::new(),
            memory: Server::default(),
            path: Server::default(),
        }
    }

    /// Whether nothing is under way.
    pub(super) fn is_idle(&self) -> bool {
        self.jobs.is_empty() && self.outgoing.is_empty() && self.landings.is_empty()
    }

    /// Takes a transfer, which begins when it is told so. `false` if it has as many as it takes.
    pub(super) fn take(&mut self, transfer: Transfer) -> bool {
        let has_place = self.jobs.len() < EngineSettings::TRANSFERS;
        if has_place {
            self.jobs.push_back(Job::new(transfer));
        }
        has_place
    }

    /// The first transfer that has not begun begins.
    pub(super) fn begin(&mut self) {
        if let Some(job) = self.jobs.iter_mut().find(|job| !job.is_begun) {
            job.is_begun = true;
        }
    }

    /// Nothing more of a transfer is begun. What is under way goes on.
    pub(super) fn abort(&mut self, number: u32) {
        if let Some(job) = self.job(number) {
            job.is_aborted = true;
        }
    }

    fn job(&mut self, number: u32) -> Option<&mut Job> {
        self.jobs.iter_mut().find(|job| job.transfer.number == number)
    }

    /// What it can do now. What it does is said by [`Engine::moves`] or [`Engine::asks`], and an end by nothing.
    pub(super) fn next_step(&mut self) -> Option<Step> {
        if let Some(at) = self.jobs.iter().position(Job::has_ended)
            && let Some(job) = self.jobs.remove(at)
        {
            return Some(Step::End(job.transfer, job.outcome(), job.shown));
        }
        let has_tag = self.reads.has_tag();
        if let Some(job) = self.jobs.iter().find(|job| job.can_ask())
            && has_tag
            && let Some(address) = job.transfer.answer
        {
            return Some(Step::Ask(job.transfer, address));
        }
        // In the order in which they came.
        let job = self.jobs.iter().find(|job| !job.is_all_begun())?;
        let has_room = match job.transfer.way {
            Way::Out => self.held.len() < self.settings.buffers,
            Way::In => has_tag,
        };
        (job.is_begun && has_room).then_some(Step::Move(job.transfer, job.begun_bytes))
    }

    /// So many bytes more of a transfer are under way: requested, or held until they leave.
    pub(super) fn moves(&mut self, number: u32, bytes: u64) {
        let Some(job) = self.job(number) else { return };
        job.begun_bytes += bytes;
        job.owed += 1;
        if job.transfer.way == Way::Out {
            self.held.push_back(number);
        }
    }

    /// The word behind a transfer is asked for.
    pub(super) fn asks(&mut self, number: u32) {
        if let Some(job) = self.job(number) {
            job.has_asked = true;
            job.owed += 1;
        }
    }

    /// A part of a transfer that was under way is over.
    fn settles(&mut self, number: u32, is_lost: bool) {
        if let Some(job) = self.job(number) {
            job.owed -= 1;
            job.has_failed |= is_lost;
        }
    }

    /// A transfer is of what is no memory of its own host.
    pub(super) fn fails(&mut self, number: u32) {
        if let Some(job) = self.job(number) {
            job.has_failed = true;
        }
    }

    /// A packet is to leave, once it has passed the data path.
    pub(super) fn push(&mut self, ready: Picoseconds, tlp: Tlp, bytes: u64) {
        let span = self.settings.rate.time(bytes).max(self.settings.interval);
        let at = self.path.begin(ready, span) + self.settings.rate.time(bytes);
        let at = self.outgoing.back().map_or(at, |(last, _)| at.max(*last));
        self.outgoing.push_back((at, tlp));
    }

    /// When the first packet may leave.
    pub(super) fn sends_next(&self) -> Option<Picoseconds> {
        self.outgoing.front().map(|(at, _)| *at)
    }

    /// The packet that may leave.
    pub(super) fn pop(&mut self, now: Picoseconds) -> Option<Tlp> {
        self.sends_next().filter(|at| *at <= now)?;
        self.outgoing.pop_front().map(|(_, tlp)| tlp)
    }

    /// The next write is on the link, or lost because that is down.
    pub(super) fn left(&mut self) {
        if let Some(number) = self.held.pop_front() {
            self.settles(number, false);
        }
    }

    /// A part of an answer is there: what lands of it, if it is one.
    pub(super) fn answered(&mut self, tlp: &Tlp) -> Option<Landing> {
        let read = self.reads.answered(tlp)?;
        let landing = read.landing(tlp);
        if read.missing_bytes > 0 {
            return landing;
        }
        let Read { number, is_answer, .. } = *read;
        let word = read.word();
        let is_refused = read.is_refused;
        self.reads.free(tlp.tag);
        if is_answer && let Some(job) = self.job(number) {
            job.shown = word;
        }
        self.settles(number, is_refused);
        landing
    }

    /// Nobody answers a request any more. Whether it was under way still.
    pub(super) fn times_out(&mut self, id: u32) -> bool {
        let Some(number) = self.reads.lose(id) else { return false };
        self.settles(number, true);
        true
    }

    /// Bytes land at a time, or behind those that land before. Returns when, if an event is to be scheduled.
    pub(super) fn land(&mut self, at: Picoseconds, landing: Landing) -> Option<Picoseconds> {
        let at = self.landings.back().map_or(at, |(last, _)| at.max(*last));
        self.landings.push_back((at, landing));
        (self.landings.len() == 1).then_some(at)
    }

    /// What lands now, and when the next does.
    pub(super) fn landed(&mut self) -> Option<(Landing, Option<Picoseconds>)> {
        let (_, landing) = self.landings.pop_front()?;
        Some((landing, self.landings.front().map(|(at, _)| *at)))
    }
}

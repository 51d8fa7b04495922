//! The members of one memory, as somebody sees them who takes no part. Looking stores nothing and asks nobody; what is to be done the members are
//! asked for (`questions.rs`).
//!
//! Anybody may have written what is found, so each word is loaded once and means something whatever it is.

use std::time::{Duration, Instant};

use beeline_contract_adapter::ViewPort;
use beeline_fabric::{
    AdapterNumber, EntryReport, LinkReport, MemberNumber, Name, NameKind, NodeId, SegmentId, Slot,
};
use beeline_mmio::OnLoss;

use crate::claim::free_silent;
use crate::error::OpenError;
use crate::memory::BarMemory;
use crate::questions::{BarAskError, Question, ask};
use crate::space::Space;
use crate::words::View;

/// Between two looks at who beats.
const PAUSE: Duration = Duration::from_millis(10);

/// Looks at a memory that members share.
#[derive(Debug)]
pub struct BarSurvey {
    space: Space,
}

/// A slot that has a member, or had one that ended without leaving.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BarReport {
    pub slot: usize,
    pub number: MemberNumber,
    /// It has beaten while it was watched. One that has not is dead, or stands still.
    pub is_alive: bool,
    /// Names that it has put.
    pub names: usize,
    pub links: Vec<LinkReport>,
    /// Connections of it to segments and interrupts of others.
    pub connections: u32,
    /// Members that are connected to what it has.
    pub consumers: u32,
    pub segments: Vec<BarEntry>,
    pub interrupts: Vec<BarEntry>,
}

/// A segment or an interrupt that has a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarEntry {
    pub entry: EntryReport,
    /// Connections of all members together.
    pub connections: u32,
}

/// What [`BarSurvey::sweep`] has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BarSwept {
    /// Members whose slots are free now, and the names that they had.
    pub members: usize,
    pub names: usize,
    /// Members that are not heard, and whose memory somebody has mapped.
    pub held: usize,
}

impl BarSurvey {
    /// Maps a memory that somebody has used.
    ///
    /// # Errors
    /// It is not to be had, or nobody has used it as members of this version do.
    pub fn open(memory: &BarMemory, on_loss: OnLoss) -> Result<Self, OpenError> {
        Ok(BarSurvey { space: Space::look(memory, on_loss)? })
    }

    /// Every slot that has somebody. Who lives beats, which is waited for as long as `patience` says; members beat often in each second.
    pub fn members(&self, patience: Duration) -> Vec<BarReport> {
        let slots = 0..self.space.layout.members;
        let beats = || slots.clone().map(|slot| self.beat(slot)).collect::<Vec<_>>();
        let (before, until) = (beats(), Instant::now() + patience);
        let mut now = beats();
        let is_settled =
            |now: &[(u64, u64)]| now.iter().zip(&before).all(|(now, was)| now.0 == 0 || now != was);
        while !is_settled(&now) && Instant::now() < until {
            std::thread::sleep(PAUSE);
            now = beats();
        }
        let there = now.iter().zip(&before).enumerate().filter(|(_, (now, _))| now.0 != 0);
        let report =
            |(slot, (now, was)): (usize, (&(u64, u64), &(u64, u64)))| self.report(slot, now.0, now != was);
        there.map(report).collect()
    }

    /// Asks a member to take the link of an adapter up or down, as it sees it.
    ///
    /// # Errors
    /// It does not answer in time, or has no such adapter.
    pub fn set_link(
        &self,
        member: &BarReport,
        (adapter, is_up): (AdapterNumber, bool),
        patience: Duration,
    ) -> Result<(), BarAskError> {
        self.ask(member, Question::SetLink { adapter, is_up }, patience)
    }

    /// Asks a member to remove a segment of its node, or of [`NodeId::GROUPS`] its part of a group, with `is_forced` from its users too. Its
    /// program has a handle of nothing then.
    ///
    /// # Errors
    /// It does not answer in time; it has no such segment, or one that is in use.
    pub fn remove(
        &self,
        member: &BarReport,
        (node, id, is_forced): (NodeId, SegmentId, bool),
        patience: Duration,
    ) -> Result<(), BarAskError> {
        self.ask(member, Question::Remove { name: Name::segment_of(node, id), is_forced }, patience)
    }

    fn ask(&self, member: &BarReport, question: Question, patience: Duration) -> Result<(), BarAskError> {
        ask(&self.space, (member.slot, member.number), question, patience)
    }

    /// Frees the slots of members of a node that are not heard for the bound of the heartbeat, with all that they have left, as whoever comes next
    /// would. Nobody can tell who was killed from who stands still: that one is a member no more. A slot whose memory somebody has mapped stays.
    ///
    /// # Errors
    /// The kernel gives no random numbers.
    pub fn sweep(&self, node: NodeId) -> Result<BarSwept, OpenError> {
        let random = getrandom::u64().map_err(OpenError::Random)?;
        let names: Vec<usize> = (0..self.space.layout.members).map(|slot| self.names(slot)).collect();
        let is_meant = |number| number != 0 && MemberNumber(number).node() == node;
        let found = free_silent(&self.space, MemberNumber::new(node, random | 1 << 16).0, is_meant);
        Ok(BarSwept {
            members: found.freed.len(),
            names: found.freed.iter().map(|slot| names[*slot]).sum(),
            held: found.held.len(),
        })
    }

    fn names(&self, slot: usize) -> usize {
        let names = self.space.names(slot);
        (0..names.count() / 2).filter(|at| names.load_acquire(2 * at) != 0).count()
    }

    /// Whether nothing of what was found was loaded from memory that is gone.
    pub fn is_intact(&self) -> bool {
        self.space.is_intact()
    }

    fn beat(&self, slot: usize) -> (u64, u64) {
        (self.space.number(slot).load_acquire(), self.space.beat(slot).load_acquire())
    }

    fn report(&self, slot: usize, number: u64, is_alive: bool) -> BarReport {
        let space = &self.space;
        let board = View::new(space.board(slot));
        let others = || (0..space.layout.members).filter(|other| *other != slot);
        let claims = |from, to| View::new(space.uses(from, to));
        let entries: Vec<_> = (0..space.layout.entries)
            .filter_map(|at| EntryReport::of(&board, Slot(at as u16)))
            .map(|entry| {
                let of = others().map(|other| entry.connections(&claims(other, slot)));
                BarEntry { entry, connections: of.sum() }
            })
            .collect();
        let uses = |from: usize, to: usize| {
            let (claims, board) = (claims(from, to), View::new(space.board(to)));
            let all = (0..space.layout.entries).filter(|at| claims.load(*at) != 0);
            let entries = all.filter_map(|at| EntryReport::of(&board, Slot(at as u16)));
            entries.map(|entry| entry.connections(&claims)).sum::<u32>()
        };
        let is_segment = |it: &BarEntry| matches!(it.entry.name.kind, NameKind::Segment | NameKind::Group);
        let (segments, interrupts) = entries.into_iter().partition(is_segment);
        BarReport {
            slot,
            number: MemberNumber(number),
            is_alive,
            names: self.names(slot),
            links: LinkReport::all_of(&board),
            connections: others().map(|other| uses(slot, other)).sum(),
            consumers: others().filter(|other| uses(*other, slot) != 0).count() as u32,
            segments,
            interrupts,
        }
    }
}

//! The two accounts against each other, over two queues: whatever both sides do and whenever the other hears of it, no part has two
//! owners, nothing honest is out of place, and everything comes back.

use std::collections::{BTreeSet, VecDeque};
use std::sync::OnceLock;

use beeline_mmio::{Arena, Part, Region, Unpaced};
use proptest::prelude::*;
use proptest::sample::Index;

use super::leases::Leases;
use super::messages::{Lease, Note, Tell};
use super::options::CONTROL_BYTES;
use super::slots::Slots;

const LINES: u32 = 64;
const PAGES: usize = 6;
const MOST: u32 = 5;

#[derive(Clone, Debug)]
enum Step {
    Lend,
    Open,
    EndSender(Index),
    DropSender(Index),
    EndReceiver(Index),
    DropReceiver(Index),
    OwnerHears,
    ClientHears,
}

fn step() -> impl Strategy<Value = Step> {
    let index = any::<Index>;
    prop_oneof![
        3 => Just(Step::Lend),
        3 => Just(Step::Open),
        1 => index().prop_map(Step::EndSender),
        2 => index().prop_map(Step::DropSender),
        1 => index().prop_map(Step::EndReceiver),
        2 => index().prop_map(Step::DropReceiver),
        4 => Just(Step::OwnerHears),
        4 => Just(Step::ClientHears),
    ]
}

/// Both sides, and what is under way between them.
struct Pair {
    arena: Arena,
    slots: Slots<(Part, Lease)>,
    leases: Leases,
    tells: VecDeque<Tell>,
    notes: VecDeque<Note>,
    /// Windows that are open at the client, and whether each has been ended.
    senders: Vec<(Lease, bool)>,
    /// Those that the owner has heard of and whose receiver has a handle.
    receivers: Vec<Lease>,
}

impl Pair {
    fn new() -> Self {
        // One for all cases: most of its bytes are lines of windows that are not looked at here.
        static REGION: OnceLock<Region> = OnceLock::new();
        let region = REGION.get_or_init(|| Region::private(CONTROL_BYTES + PAGES * 4096)).clone();
        Pair {
            leases: Leases::new(region.bytes(), LINES),
            arena: Arena::new(region, CONTROL_BYTES, 4096),
            slots: Slots::new(MOST),
            tells: VecDeque::new(),
            notes: VecDeque::new(),
            senders: Vec::new(),
            receivers: Vec::new(),
        }
    }

    fn lend(&mut self) {
        let Ok(part) = self.arena.lend(4096, &Unpaced) else { return };
        let offset_bytes = part.offset_bytes() as u64;
        let lease = |name| Lease { name, lines: LINES, offset_bytes, blank: 1 << 63, epoch: 0 };
        if let Some(name) = self.slots.reserve() {
            self.slots.lend(name, (part, lease(name)));
            self.notes.push_back(Note::Lent(vec![lease(name)]));
        }
    }

    fn open(&mut self) {
        if let Some(lease) = self.leases.take() {
            self.senders.push((lease, false));
            self.tells.push_back(Tell::Open { name: lease.name, kernel: None });
        }
    }

    fn end_sender(&mut self, which: Index) {
        if let Some((lease, is_ended)) = pick(&mut self.senders, which)
            && !std::mem::replace(is_ended, true)
        {
            self.tells.push_back(Tell::End { name: lease.name });
        }
    }

    fn drop_sender(&mut self, which: Index) {
        if self.senders.is_empty() {
            return;
        }
        let (lease, _) = self.senders.swap_remove(which.index(self.senders.len()));
        self.leases.give_up(lease.name);
        self.tells.push_back(Tell::Return { name: lease.name });
    }

    fn end_receiver(&mut self, which: Index) {
        if let Some(lease) = pick(&mut self.receivers, which).copied()
            && self.slots.receiver_ended(lease.name)
        {
            self.notes.push_back(Note::Ended { name: lease.name });
        }
    }

    fn drop_receiver(&mut self, which: Index) {
        if self.receivers.is_empty() {
            return;
        }
        let lease = self.receivers.swap_remove(which.index(self.receivers.len()));
        let left = self.slots.receiver_gone(lease.name);
        if left.tells_sender {
            self.notes.push_back(Note::Ended { name: lease.name });
        }
    }

    /// What an honest client says is never out of place.
    fn owner_hears(&mut self) {
        match self.tells.pop_front() {
            Some(Tell::Open { name, .. }) => {
                let (_, lease) = self.slots.open(name).expect("it was lent");
                self.receivers.push(*lease);
            }
            Some(Tell::End { name }) => self.slots.sender_ended(name).expect("it is open"),
            Some(Tell::Return { name }) => drop(self.slots.returned(name).expect("it is open")),
            None => {}
        }
    }

    /// What an honest owner lends is never refused.
    fn client_hears(&mut self) {
        match self.notes.pop_front() {
            Some(Note::Lent(leases)) => {
                leases.into_iter().for_each(|lease| self.leases.take_in(lease).expect("it is free here"));
            }
            Some(Note::Ended { .. }) | None => {}
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Lend => self.lend(),
            Step::Open => self.open(),
            Step::EndSender(which) => self.end_sender(which),
            Step::DropSender(which) => self.drop_sender(which),
            Step::EndReceiver(which) => self.end_receiver(which),
            Step::DropReceiver(which) => self.drop_receiver(which),
            Step::OwnerHears => self.owner_hears(),
            Step::ClientHears => self.client_hears(),
        }
        // No two halves of one side share bytes or a name, and a half of the other side that does is of the same window.
        let apart = |leases: &[Lease]| {
            let starts: BTreeSet<_> = leases.iter().map(|lease| lease.offset_bytes).collect();
            let names: BTreeSet<_> = leases.iter().map(|lease| lease.name).collect();
            assert_eq!((starts.len(), names.len()), (leases.len(), leases.len()), "{leases:?}");
        };
        apart(&self.senders.iter().map(|(lease, _)| *lease).collect::<Vec<_>>());
        apart(&self.receivers);
        for (sender, _) in &self.senders {
            for receiver in &self.receivers {
                let is_same = sender.name == receiver.name;
                assert_eq!(is_same, sender.offset_bytes == receiver.offset_bytes, "{sender:?} {receiver:?}");
            }
        }
    }
}

fn pick<T>(things: &mut [T], which: Index) -> Option<&mut T> {
    let at = if things.is_empty() { None } else { Some(which.index(things.len())) };
    at.map(|at| &mut things[at])
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn both_accounts_agree_whoever_hears_first(
        steps in prop::collection::vec(step(), 1..150),
        which in any::<Index>(),
    ) {
        let mut pair = Pair::new();
        steps.into_iter().for_each(|step| pair.take(step));
        // Everybody opens what is lent, drops what there is, and hears of everything.
        while !(pair.tells.is_empty() && pair.notes.is_empty() && pair.senders.is_empty() && pair.receivers.is_empty()) {
            pair.client_hears();
            pair.open();
            pair.drop_sender(which);
            pair.owner_hears();
            pair.drop_receiver(which);
        }
        while let Some(lease) = pair.leases.take() {
            prop_assert!(pair.slots.open(lease.name).is_ok());
            prop_assert!(pair.slots.returned(lease.name).is_ok());
            prop_assert!(pair.slots.receiver_gone(lease.name).part.is_some());
        }
        prop_assert_eq!(pair.arena.free_bytes(), PAGES * 4096);
    }

    /// Whatever a client says, in any order: it is done or refused, and no part goes back while the receiver has it.
    #[test]
    fn no_words_of_a_client_take_a_window_from_its_receiver(words in prop::collection::vec((0u32..7, 0u8..4), 1..100)) {
        let mut slots = Slots::new(MOST);
        let mut receivers = BTreeSet::new();
        for (name, code) in words {
            match code {
                0 => if let Some(name) = slots.reserve() {
                    slots.lend(name, name);
                },
                1 => if let Ok(name) = slots.open(name) {
                    prop_assert!(receivers.insert(*name));
                },
                2 => drop(slots.sender_ended(name)),
                _ => if let Ok(Some(name)) = slots.returned(name) {
                    prop_assert!(!receivers.contains(&name));
                },
            }
        }
        slots.end();
        for name in receivers {
            prop_assert_eq!(slots.receiver_gone(name).part, Some(name));
        }
    }
}

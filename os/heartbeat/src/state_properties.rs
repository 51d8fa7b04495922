//! Properties in virtual time: an adversary loses, holds up, repeats, tears and forges what is pushed, and stops either side as
//! long as it likes.

use std::collections::{HashMap, HashSet, VecDeque};

use proptest::prelude::*;

use super::tests::{BOUND, DECLARED, HALF, PERIOD, Pair, side};
use super::*;

/// What the adversary does; `at` is the side that has pushed, or looks.
#[derive(Clone, Debug)]
enum Step {
    /// Time goes by, then a side looks, and speaks.
    Look { at: usize, after_us: u64 },
    /// The oldest lines under way arrive.
    Carry { at: usize, lines: usize },
    /// The oldest line under way is lost.
    Lose { at: usize },
    /// The oldest line under way arrives in part: the first so many of its stores.
    Tear { at: usize, stores: usize },
    /// A line that has arrived once arrives again.
    Repeat { at: usize, back: usize },
    /// Something stands there instead.
    Forge { at: usize, line: Line },
    /// A word of what stands there is changed.
    Flip { at: usize, word: usize, bits: u64 },
    /// Somebody takes the link down on this side, or lets it come up.
    Order { at: usize, disables: bool },
}

fn step() -> impl Strategy<Value = Step> {
    let at = 0..2usize;
    let (period, bound) = (PERIOD.as_micros() as u64, BOUND.as_micros() as u64);
    let pause = prop_oneof![6 => 0..period / 2, 2 => 0..2 * period, 1 => 0..3 * bound];
    prop_oneof![
        12 => (at.clone(), pause).prop_map(|(at, after_us)| Step::Look { at, after_us }),
        12 => (at.clone(), 1..4usize).prop_map(|(at, lines)| Step::Carry { at, lines }),
        1 => at.clone().prop_map(|at| Step::Lose { at }),
        2 => (at.clone(), 1..8usize).prop_map(|(at, stores)| Step::Tear { at, stores }),
        1 => (at.clone(), 0..20usize).prop_map(|(at, back)| Step::Repeat { at, back }),
        1 => (at.clone(), any::<Line>()).prop_map(|(at, line)| Step::Forge { at, line }),
        1 => (at.clone(), 0..8usize, any::<u64>()).prop_map(|(at, word, bits)| Step::Flip { at, word, bits }),
        1 => (at, any::<bool>()).prop_map(|(at, disables)| Step::Order { at, disables }),
    ]
}

/// A pair between which an adversary stands, and what is known of it from outside.
struct Watched {
    pair: Pair,
    seen: [Line; 2],
    under_way: [VecDeque<Line>; 2],
    arrived: [Vec<Line>; 2],
    heard_at: [Duration; 2],
    given_up: [HashSet<u64>; 2],
    /// Which incarnation of the other side each of its own has taken, as it says.
    taken: [HashMap<u32, u32>; 2],
    forged: bool,
}

impl Watched {
    fn new(seed: u64) -> Self {
        Watched {
            pair: Pair::new(seed),
            seen: [[0; 8]; 2],
            under_way: Default::default(),
            arrived: Default::default(),
            heard_at: [Duration::ZERO; 2],
            given_up: Default::default(),
            taken: Default::default(),
            forged: false,
        }
    }

    fn arrive(&mut self, at: usize, line: Line) {
        self.seen[at] = line;
        self.arrived[at].push(line);
    }

    fn carry(&mut self, at: usize, lines: usize) {
        for _ in 0..lines {
            let Some(line) = self.under_way[at].pop_front() else { return };
            self.arrive(at, line);
        }
    }

    fn look(&mut self, at: usize) {
        let now = self.pair.now;
        let (before, side) = (self.pair.sides[at].clone(), &mut self.pair.sides[at]);
        let Some(line) = side.look(now, &self.seen[1 - at], None) else { panic!("nobody leaves") };
        self.under_way[at].push_back(line);
        let said = Said::decode(&line).expect("what a side says can be read");
        if said.accepted != 0 {
            let taken = *self.taken[at].entry(said.incarnation).or_insert(said.accepted);
            assert_eq!(taken, said.accepted, "one incarnation takes one peer");
        }
        let after = self.pair.sides[at].clone();
        if after.counters.beats_heard > before.counters.beats_heard {
            self.heard_at[at] = now;
        }
        self.check(at, &before, &after);
    }

    fn check(&mut self, at: usize, before: &LinkState, after: &LinkState) {
        let [was, is] = [before, after].map(|side| side.status.session().map(Session::number));
        if was == is {
            return;
        }
        if let Some(was) = was {
            self.given_up[at].insert(was);
        }
        if let Status::Down { reason: Down::Silent { silence }, .. } = after.status {
            assert!(silence >= BOUND && self.pair.now - self.heard_at[at] >= BOUND, "down too soon");
        }
        let (Some(is), Some(said)) = (is, Said::decode(&self.seen[1 - at])) else { return };
        assert!(!after.is_disabled() && !said.is_disabled, "somebody has taken it down");
        assert!(!self.given_up[at].contains(&is), "a session came back");
        let taken = self.taken[1 - at].get(&said.incarnation);
        assert!(self.forged || taken == Some(&after.ours.incarnation), "the other side never took this one");
    }

    fn obey(&mut self, step: &Step) {
        match *step {
            Step::Look { at, after_us } => {
                self.pair.now += Duration::from_micros(after_us);
                self.look(at);
            }
            Step::Carry { at, lines } => self.carry(at, lines),
            Step::Lose { at } => drop(self.under_way[at].pop_front()),
            Step::Tear { at, stores } => {
                if let Some(line) = self.under_way[at].front() {
                    self.seen[at][1..=stores.min(7)].copy_from_slice(&line[1..=stores.min(7)]);
                }
            }
            Step::Repeat { at, back } => {
                if let Some(line) = self.arrived[at].iter().rev().nth(back) {
                    self.seen[at] = *line;
                }
            }
            Step::Forge { at, line } => (self.seen[at], self.forged) = (line, true),
            Step::Flip { at, word, bits } => {
                self.seen[at][word] ^= bits;
                self.forged = true;
            }
            Step::Order { at, disables: true } => self.pair.sides[at].disable(),
            Step::Order { at, disables: false } => self.pair.sides[at].enable(),
        }
    }

    /// The adversary is gone: everything arrives at once, and both sides look in each half period.
    fn recover(&mut self, offset: Duration) {
        for at in 0..2 {
            self.carry(at, usize::MAX);
            self.pair.sides[at].enable();
        }
        let looks = 2 * BOUND.div_duration_f64(PERIOD) as u32 + 24;
        for _ in 0..looks {
            for (at, after) in [(0, offset), (1, HALF - offset)] {
                self.pair.now += after;
                self.look(at);
                self.carry(at, usize::MAX);
            }
        }
        assert!(self.pair.both_up(), "{:?}", self.pair.statuses());
    }
}

proptest! {
    #[test]
    fn whatever_an_adversary_does_no_session_comes_back_and_all_is_well_without_it(
        seed: u64,
        steps in prop::collection::vec(step(), 0..400),
        offset_us in 0..=HALF.as_micros() as u64,
    ) {
        let mut watched = Watched::new(seed);
        for step in &steps {
            watched.obey(step);
        }
        watched.recover(Duration::from_micros(offset_us));
    }

    /// Nobody is declared down who beats in time, whatever stops both sides together.
    #[test]
    fn peer_that_beats_in_time_is_never_declared_down(
        seed: u64,
        turns in prop::collection::vec((any::<bool>(), 0..10_000u64, 0..50u64), 1..500),
    ) {
        let mut pair = Pair::new(seed);
        pair.run(10);
        prop_assert!(pair.both_up());
        let mut last = [pair.now; 2];
        for (second, after_us, stop) in turns {
            // A stop of both, as of a machine that sleeps: seldom, and as long as it likes.
            if stop == 0 {
                let pause = Duration::from_micros(after_us) * 1000;
                pair.now += pause;
                last = last.map(|at| at + pause);
            }
            pair.now += Duration::from_micros(after_us).min(PERIOD / 2);
            pair.look(usize::from(second));
            last[usize::from(second)] = pair.now;
            // Each has its turn within a period.
            for (at, last) in last.iter_mut().enumerate() {
                if pair.now - *last > PERIOD / 2 {
                    pair.look(at);
                    *last = pair.now;
                }
            }
        }
        prop_assert_eq!(pair.sides.each_ref().map(|side| side.counters.times_down), [0; 2]);
    }

    /// A peer that stops is down within a bound and a period of its last beat, and it gives the session up at its first look.
    #[test]
    fn peer_that_stops_is_down_in_time(
        seed: u64,
        gaps in prop::collection::vec(1..=HALF.as_micros() as u64, 200),
        stopped in any::<bool>(),
        period_ms in 1..20u16,
        periods in 2..20u16,
    ) {
        let declared = Heartbeat::from_millis(period_ms, periods * period_ms);
        let mut pair = Pair::new(seed);
        pair.sides = [1, 2].map(|n| LinkState::declaring(declared, Acceptance::AtOnce, seed ^ n, None));
        let half_us = declared.period().as_micros() as u64 / 2;
        let (other, stopped) = (usize::from(!stopped), usize::from(stopped));
        for _ in 0..10 {
            pair.now += declared.period() / 2;
            pair.look(other);
            pair.look(stopped);
        }
        prop_assert!(pair.both_up());
        let last_beat = pair.now;
        let mut gaps = gaps.iter().cycle();
        while pair.sides[other].status().is_up() {
            let gap_us = gaps.next().map_or(1, |gap| 1 + gap * half_us.saturating_sub(1) / 5000);
            pair.now += Duration::from_micros(gap_us);
            pair.look(other);
            prop_assert!(pair.now - last_beat <= declared.bound() + declared.period());
        }
        prop_assert!(pair.now - last_beat >= declared.bound());
        prop_assert!(pair.sides[stopped].status().is_up());
        pair.look(stopped);
        let is_told = matches!(pair.statuses()[stopped], Status::Down { reason: Down::DeclaredDown, .. });
        prop_assert!(is_told, "{:?}", pair.statuses());
    }

    /// While lines arrive at once, no side is up after its look in a session that the other has given up.
    #[test]
    fn look_ends_what_the_other_side_has_ended(
        seed: u64,
        looks in prop::collection::vec((0..2usize, 0..60_000u64), 1..400),
    ) {
        let mut watched = Watched::new(seed);
        for (at, after_us) in looks {
            // Mostly soon enough.
            let after_us = if after_us < 50_000 { after_us % 5000 } else { after_us };
            watched.pair.now += Duration::from_micros(after_us);
            watched.look(at);
            watched.carry(at, usize::MAX);
            let session = watched.pair.statuses()[at].session().map(Session::number);
            prop_assert!(!session.is_some_and(|session| watched.given_up[1 - at].contains(&session)));
        }
        watched.recover(HALF / 2);
    }

    /// No side takes an incarnation that holds on to another one of this side: stores are visible before their sender looks again,
    /// but not at once.
    #[test]
    fn nobody_takes_a_peer_in_vain(
        seed: u64,
        // Runs of one side's looks are what makes the other side silent past the bound.
        looks in prop::collection::vec(
            (0..2usize, prop_oneof![2 => Just(1), 1 => 2..9usize], any::<bool>(), 0..20_000u64),
            1..300,
        ),
    ) {
        let mut watched = Watched::new(seed);
        for (at, times, is_late, after_us) in looks {
            for _ in 0..times {
                watched.pair.now += Duration::from_micros(after_us);
                watched.carry(at, usize::MAX);
                let taken = watched.taken[at].len();
                watched.look(at);
                if watched.taken[at].len() == taken {
                    continue;
                }
                let [ours, other] = [at, 1 - at].map(|at| watched.pair.sides[at].ours);
                let back = watched.taken[1 - at].get(&ours.accepted);
                prop_assert!(back.is_none_or(|back| *back == ours.incarnation), "it has taken {back:x?}");
                let is_wanted = other.accepted != ours.incarnation || other.incarnation == ours.accepted;
                prop_assert!(is_wanted, "another incarnation of the other side has taken this one");
            }
            if !is_late {
                watched.carry(at, usize::MAX);
            }
        }
        watched.recover(HALF / 2);
    }

    /// What a hostile peer pushes does nothing but have the link up or down.
    #[test]
    fn hostile_lines_do_no_harm(
        random: u64,
        lines in prop::collection::vec((any::<[u8; 8]>(), any::<u32>(), 0..3usize), 1..300),
    ) {
        let mut state = side(random, Acceptance::AtOnce);
        let mut mine = [0; 8];
        for (n, (picks, value, kind)) in lines.into_iter().enumerate() {
            let ours = (mine[0] >> 32) as u32;
            let pick = |pick: u8| [0, 1, value, ours, n as u32, u32::MAX][usize::from(pick) % 6];
            let said = Said {
                incarnation: [7, 8, pick(picks[0])][kind],
                beat: [n as u32, n as u32, pick(picks[1])][kind],
                accepted: pick(picks[2]),
                declared_down: pick(picks[3]),
                declared: [DECLARED.to_bits(), DECLARED.to_bits(), pick(picks[4])][kind],
                is_disabled: picks[6] % 4 == 0,
            };
            let now = Duration::from_micros(u64::from(pick(picks[5])));
            mine = state.look(now, &said.encode(), Some(&mine)).expect("only this side ends a link");
            prop_assert_eq!(state.declared, DECLARED);
        }
    }
}

//! One thing at a time, with both sides looking each half period and everything carried at once.

use super::*;

pub(super) const DECLARED: Heartbeat = Heartbeat::from_millis(10, 50);
pub(super) const PERIOD: Duration = DECLARED.period();
pub(super) const BOUND: Duration = DECLARED.bound();
pub(super) const HALF: Duration = Duration::from_millis(5);

/// Two sides and the lines that they have pushed.
pub(super) struct Pair {
    pub(super) now: Duration,
    pub(super) sides: [LinkState; 2],
    pub(super) lines: [Line; 2],
}

pub(super) fn side(random: u64, acceptance: Acceptance) -> LinkState {
    LinkState::declaring(DECLARED, acceptance, random, None)
}

impl Pair {
    pub(super) fn new(seed: u64) -> Self {
        let sides = [side(seed, Acceptance::AtOnce), side(!seed, Acceptance::AtOnce)];
        Pair { now: Duration::ZERO, sides, lines: [[0; 8]; 2] }
    }

    fn up(seed: u64) -> Self {
        let mut pair = Pair::new(seed);
        pair.run(10);
        assert!(pair.both_up(), "{:?}", pair.statuses());
        pair
    }

    pub(super) fn look(&mut self, at: usize) {
        let pushed = self.lines[at];
        if let Some(line) = self.sides[at].look(self.now, &self.lines[1 - at], Some(&pushed)) {
            self.lines[at] = line;
        }
    }

    /// Both sides look so many times, half a period apart.
    pub(super) fn run(&mut self, looks: u32) {
        for _ in 0..looks {
            self.now += HALF;
            self.look(0);
            self.look(1);
        }
    }

    /// One side alone looks.
    fn run_alone(&mut self, at: usize, looks: u32) {
        for _ in 0..looks {
            self.now += HALF;
            self.look(at);
        }
    }

    pub(super) fn statuses(&self) -> [Status; 2] {
        [self.sides[0].status(), self.sides[1].status()]
    }

    pub(super) fn both_up(&self) -> bool {
        let [ours, theirs] = self.statuses().map(|status| status.session().map(Session::number));
        ours.is_some() && ours == theirs
    }

    fn reason(&self, at: usize) -> Option<Down> {
        match self.sides[at].status() {
            Status::Down { reason, .. } => Some(reason),
            _ => None,
        }
    }
}

#[test]
fn sides_that_beat_come_up_in_one_session() {
    let mut pair = Pair::new(1);
    assert_eq!(pair.statuses(), [Status::NeverUp; 2]);
    pair.run(1);
    assert_eq!(pair.statuses(), [Status::NeverUp; 2], "one beat may be an old one");
    pair.run(5);
    assert!(pair.both_up());
    assert_ne!(pair.statuses()[0].session().map(Session::number), Some(0));
    pair.run(1000);
    assert_eq!(pair.sides[0].counters().times_down, 0);
    assert!(pair.sides[1].counters().beats_heard > 1000);
}

#[test]
fn line_that_a_dead_peer_left_behind_brings_nobody_up() {
    let mut pair = Pair::up(2);
    pair.sides[1] = side(99, Acceptance::AtOnce);
    pair.lines[1] = [0; 8];
    pair.run_alone(1, 1000);
    assert_eq!(pair.sides[1].status(), Status::NeverUp);
}

#[test]
fn silent_peer_is_down_after_the_bound_and_learns_it_when_it_comes_back() {
    let mut pair = Pair::up(3);
    let session = pair.statuses()[0].session();
    // The first look sees the last beat.
    pair.run_alone(0, 10);
    assert!(pair.sides[0].status().is_up(), "a silence of 45 ms of 50");
    pair.run_alone(0, 1);
    assert_eq!(pair.reason(0), Some(Down::Silent { silence: BOUND }));
    assert!(pair.sides[1].status().is_up(), "it was stopped and has not looked");
    pair.run_alone(0, 10_000);
    pair.run(1);
    assert_eq!(pair.reason(1), Some(Down::DeclaredDown));
    pair.run(10);
    assert!(pair.both_up() && pair.statuses()[0].session() != session);
    let [a, b] = [pair.sides[0].counters(), pair.sides[1].counters()];
    assert_eq!((a.times_up, a.times_down, a.silent, a.declared_down), (2, 1, 1, 0));
    assert_eq!((b.times_up, b.times_down, b.silent, b.declared_down), (2, 1, 0, 1));
    assert!(a.longest_silence >= BOUND && b.longest_pause > Duration::from_secs(50));
    assert_eq!(b.longest_silence, Duration::ZERO, "this side's own pause is no silence of the peer");
}

#[test]
fn beats_of_an_incarnation_that_was_declared_down_bring_nothing_back() {
    let mut pair = Pair::up(4);
    let mut old = Said::decode(&pair.lines[1]).unwrap();
    pair.run_alone(0, 11);
    assert!(pair.reason(0).is_some());
    // It beats on without ever looking.
    let ours = Said::decode(&pair.lines[0]).unwrap();
    assert_eq!((ours.accepted, ours.declared_down), (0, old.incarnation));
    for _ in 0..1000 {
        old.beat = next_beat(old.beat);
        pair.lines[1] = old.encode();
        pair.run_alone(0, 1);
        assert!(!pair.sides[0].status().is_up());
        let now = Said::decode(&pair.lines[0]).unwrap();
        assert_eq!(now, Said { beat: now.beat, ..ours }, "it is not taken");
    }
}

#[test]
fn beat_that_comes_again_is_none() {
    let mut pair = Pair::up(15);
    let newest = pair.lines[1];
    let mut old = Said::decode(&newest).unwrap();
    old.beat -= 3;
    for look in 0..11 {
        pair.lines[1] = if look % 2 == 0 { newest } else { old.encode() };
        pair.run_alone(0, 1);
    }
    assert!(matches!(pair.reason(0), Some(Down::Silent { .. })), "{:?}", pair.statuses());
}

#[test]
fn peer_is_taken_at_its_second_beat_after_a_look_that_came_after_a_push() {
    let mut state = side(16, Acceptance::AtOnce);
    let mut said = Said {
        incarnation: 5,
        beat: 1,
        accepted: 0,
        declared_down: 0,
        declared: DECLARED.to_bits(),
        is_disabled: false,
    };
    let mut now = Duration::ZERO;
    let mut look = |beat: u32| {
        (said.beat, now) = (beat, now + HALF);
        let line = state.look(now, &said.encode(), None).unwrap();
        Said::decode(&line).unwrap().accepted
    };
    assert_eq!([1, 100, 101, 101, 102].map(&mut look), [0, 0, 0, 0, 5]);
    // Silent past the bound: what it stores next may have been under way when this side came anew.
    assert_eq!([102; 10].map(&mut look), [5, 5, 5, 5, 5, 5, 5, 5, 5, 0]);
    assert_eq!([104, 105, 106].map(&mut look), [0, 0, 5]);
}

#[test]
fn stop_of_both_sides_is_no_silence_of_either() {
    let mut pair = Pair::up(5);
    for pause in [Duration::from_millis(51), Duration::from_secs(3600)] {
        pair.now += pause;
        pair.look(0);
        pair.now += HALF;
        pair.look(0);
        assert!(pair.sides[0].status().is_up(), "the other side has not had its turn");
        pair.run(3);
        assert!(pair.both_up());
    }
    assert_eq!(pair.sides.each_ref().map(|side| side.counters().times_down), [0; 2]);
}

#[test]
fn peer_that_leaves_and_comes_anew_is_told_apart_from_a_silent_one() {
    let mut pair = Pair::up(6);
    pair.lines[1] = pair.sides[1].leave(pair.now).unwrap();
    assert_eq!(pair.reason(1), Some(Down::Closed));
    assert_eq!(pair.sides[1].leave(pair.now), None);
    pair.run(100);
    assert_eq!((pair.reason(0), pair.reason(1)), (Some(Down::Left), Some(Down::Closed)));
    pair.sides[1] = LinkState::declaring(DECLARED, Acceptance::AtOnce, !6, Some(&pair.lines[1]));
    pair.run(10);
    assert!(pair.both_up());
    // Killed, and its successor is quick.
    pair.sides[1] = LinkState::declaring(DECLARED, Acceptance::AtOnce, 7, Some(&pair.lines[1]));
    pair.run(2);
    assert_eq!(pair.reason(0), Some(Down::Restarted));
    pair.run(10);
    assert!(pair.both_up());
}

#[test]
fn link_that_is_taken_down_stays_down_on_both_sides_and_comes_up_in_another_session() {
    let mut pair = Pair::up(17);
    let session = pair.statuses()[0].session();
    pair.sides[0].disable();
    assert!(pair.sides[0].is_disabled() && pair.both_up(), "a look does it");
    pair.run(1);
    assert_eq!([0, 1].map(|at| pair.reason(at)), [Some(Down::Disabled), Some(Down::PeerDisabled)]);
    pair.run(1000);
    assert_eq!([0, 1].map(|at| pair.reason(at)), [Some(Down::Disabled), Some(Down::PeerDisabled)]);
    assert!(
        pair.sides[1].is_peer_disabled() && !pair.sides[0].is_peer_disabled() && !pair.sides[1].is_disabled()
    );
    // The other side too: one alone does not bring it up.
    pair.sides[1].disable();
    pair.run(1);
    pair.sides[0].enable();
    pair.run(100);
    assert_eq!([0, 1].map(|at| pair.reason(at)), [Some(Down::Disabled); 2], "why it went down");
    assert!(pair.sides[0].is_peer_disabled() && !pair.sides[1].is_peer_disabled());
    pair.sides[1].enable();
    pair.run(10);
    assert!(pair.both_up() && pair.statuses()[0].session() != session);
    for counters in pair.sides.each_ref().map(LinkState::counters) {
        assert_eq!((counters.times_up, counters.times_down, counters.disabled), (2, 1, 1));
        assert_eq!((counters.silent, counters.declared_down), (0, 0));
    }
}

#[test]
fn link_may_be_taken_down_before_anybody_comes_and_a_dead_peer_does_not_keep_it_so() {
    let mut pair = Pair::new(18);
    pair.sides[0] = side(19, Acceptance::WhenTold);
    pair.sides[0].disable();
    pair.run(100);
    assert_eq!((pair.reason(0), pair.statuses()[1]), (Some(Down::Disabled), Status::NeverUp));
    assert!(pair.sides[1].is_peer_disabled() && pair.sides[0].offered().is_none());
    pair.run_alone(1, 11);
    assert!(!pair.sides[1].is_peer_disabled(), "nothing is heard of it");
    pair.sides[0].enable();
    pair.run(10);
    let offered = pair.sides[0].offered().unwrap();
    // Nothing is prepared for a peer that is disabled.
    pair.sides[1].disable();
    pair.run(10);
    assert!(pair.sides[0].offered().is_none() && !pair.sides[0].accept(offered));
    pair.sides[1].enable();
    pair.run(10);
    let offered = pair.sides[0].offered().unwrap();
    // Taken back while it is on offer.
    pair.sides[0].disable();
    pair.run(1);
    assert!(pair.sides[0].offered().is_none() && !pair.sides[0].accept(offered));
    pair.sides[0].enable();
    pair.run(10);
    let offered = pair.sides[0].offered().unwrap();
    assert!(pair.sides[0].accept(offered));
    pair.run(5);
    assert!(pair.both_up());
}

#[test]
fn process_whose_side_another_one_has_taken_stores_nothing_more() {
    let mut pair = Pair::up(8);
    let mut stopped = pair.sides[1].clone();
    pair.sides[1] = LinkState::declaring(DECLARED, Acceptance::AtOnce, 80, Some(&pair.lines[1]));
    pair.run(10);
    assert!(pair.both_up());
    assert_eq!(stopped.look(pair.now, &pair.lines[0], Some(&pair.lines[1])), None);
    assert!(matches!(stopped.status(), Status::Down { reason: Down::Displaced, .. }));
    assert_eq!(stopped.look(pair.now, &pair.lines[0], Some(&pair.lines[1])), None);
    assert_eq!(stopped.leave(pair.now), None, "not even a farewell, which would be the other one's");
    pair.run(10);
    assert!(pair.both_up());
}

#[test]
fn link_waits_for_the_side_that_prepares() {
    let mut pair = Pair::new(9);
    pair.sides[0] = side(10, Acceptance::WhenTold);
    pair.run(100);
    assert_eq!(pair.statuses(), [Status::NeverUp; 2]);
    let offered = pair.sides[0].offered().unwrap();
    pair.sides[1] = LinkState::declaring(DECLARED, Acceptance::AtOnce, 11, Some(&pair.lines[1]));
    pair.run(10);
    assert!(!pair.sides[0].accept(offered), "that peer has gone");
    let offered = pair.sides[0].offered().unwrap();
    assert!(pair.sides[0].accept(offered) && !pair.sides[0].accept(offered));
    pair.run(2);
    assert!(pair.both_up() && pair.statuses()[0].session() == Some(offered));
    // It leaves while it is on offer.
    pair.run_alone(0, 11);
    pair.run(10);
    assert!(pair.sides[0].offered().is_some());
    pair.lines[1] = pair.sides[1].leave(pair.now).unwrap();
    pair.run(1);
    assert_eq!(pair.sides[0].offered(), None);
}

#[test]
fn sides_that_declare_different_bounds_do_not_come_up() {
    let mut pair = Pair::new(12);
    let other = Heartbeat::from_millis(10, 51);
    pair.sides[1] = LinkState::declaring(other, Acceptance::AtOnce, 13, None);
    pair.run(100);
    assert_eq!(pair.statuses(), [Status::NeverUp; 2]);
    assert!(pair.sides.iter().all(LinkState::is_mismatch));
}

#[test]
fn peer_that_takes_back_what_it_said_is_down() {
    for (accepted, is_disabled) in [(Some(0), false), (Some(77), false), (None, true)] {
        let mut pair = Pair::up(14);
        let mut said = Said::decode(&pair.lines[1]).unwrap();
        (said.accepted, said.beat) = (accepted.unwrap_or(said.accepted), next_beat(said.beat));
        said.is_disabled = is_disabled;
        pair.lines[1] = said.encode();
        pair.run_alone(0, 1);
        assert_eq!(pair.reason(0), Some(Down::Unsound), "{accepted:?}");
    }
}

#[test]
fn incarnations_are_not_zero_and_never_repeat_at_once() {
    let mut state = side(0, Acceptance::AtOnce);
    for _ in 0..100_000 {
        let before = state.ours.incarnation;
        state.come_anew(0);
        assert!(state.ours.incarnation != 0 && state.ours.incarnation != before);
    }
}

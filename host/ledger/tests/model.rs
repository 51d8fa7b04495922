//! The switch of paths as a model, written from record 0068 and not from the code: in no order of steps a byte is lost, doubled or moved,
//! and nothing waits for ever. Each rule of the record, left out, is found.

use stateright::{Checker, HasDiscoveries, Model, Property};

/// Bytes of the stream, each with its own place as its value.
const BYTES: u8 = 3;
const UPS: u8 = 2;

/// A rule that is left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    /// The ledger is looked at before the socket is.
    LookBeforePeek,
    /// The sender goes up though the receiver reads the socket without the ledger.
    UpWithoutReady,
    /// Bytes leave by the new path before the entry is published.
    BytesBeforeEntry,
    /// The entry is published while stores to the window are under way.
    NoFence,
    /// A resumption says which byte comes next, and not behind how many bytes in the socket.
    ResumeWithOneNumber,
    /// A call that gives bytes to the socket has not returned.
    UpInsideACall,
    /// The receiver has not come to the last change.
    UpWhileBehind,
    /// Nor has it taken its question back.
    UpWhileAsked,
    /// At the end of the socket the window is not looked at once more.
    EndWithoutLook,
    /// Whoever stops to read by the ledger looks for an entry, and is not looked for.
    StopUnseen,
    /// A sender that leaves for ever sends anew, whether the receiver has stopped meanwhile or not.
    LeaveUnseen,
    /// Nor does it wait for a receiver that is about to look for the last time.
    LeaveUndecided,
    /// Bytes that come anew and were taken already are taken once more.
    TakenAgain,
    /// A receiver stops while such bytes are in the socket.
    StopBeforeAgain,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Kind {
    Up,
    Down,
    Resume,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Entry {
    kind: Kind,
    offset: u8,
    given: u8,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum At {
    Kernel,
    Window,
    Lost,
    /// It reads the socket as any program does, for ever.
    Plain,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    // The sender.
    sent: u8,
    counted: u8,
    given: u8,
    by_window: bool,
    ups: u8,
    /// Where it began anew last, in entries.
    answered: u8,
    /// An entry that has yet to be published, by a fault.
    owed: Option<Entry>,
    /// Going up, it has found that it may; and has yet to look whether the receiver has stopped since.
    is_going_up: bool,
    is_checking: bool,
    /// Where the stream left the socket last, and whether it has begun anew since.
    left_at: u8,
    is_anew: bool,
    has_left: bool,
    /// It has found that it has to begin anew, from this byte on.
    anew_from: Option<u8>,
    /// It leaves, and has yet to look whether the receiver has stopped; what it had sent.
    is_leaving: Option<u8>,
    // What is between them.
    ledger: Vec<Entry>,
    socket: Vec<u8>,
    is_ended: bool,
    window: Vec<u8>,
    seen: u8,
    is_scribbled: bool,
    // The receiver.
    at: At,
    is_ready: bool,
    /// It is about to look for the last time; what it found; and it reads by the ledger no more.
    is_stopping: bool,
    found_none: Option<bool>,
    has_stopped: bool,
    passed: u8,
    taken: u8,
    received: u8,
    /// Bytes in the socket that it has already.
    again: u8,
    question: Option<u8>,
    /// Bytes in the socket, and whether there was its end.
    peeked: Option<(u8, bool)>,
    looked: Option<Option<Entry>>,
    is_over: bool,
    is_wrong: bool,
    is_lost: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Action {
    Send,
    Give,
    Return,
    See,
    Up,
    Check,
    Publish,
    Down,
    Land,
    Scribble,
    Resume,
    Leave,
    Anew,
    CheckLeave,
    End,
    Peek,
    Look,
    Take,
    Stop,
    TryStop,
    LookLast,
    SayFound,
}

struct Switch {
    fault: Option<Fault>,
    scribbles: bool,
    stops: bool,
    leaves: bool,
}

impl Switch {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    fn next(&self, state: &State) -> Option<Entry> {
        state.ledger.get(usize::from(state.passed)).copied()
    }

    /// Publishes an entry, or owes it.
    fn publish(&self, state: &mut State, entry: Entry) {
        if self.has(Fault::BytesBeforeEntry) { state.owed = Some(entry) } else { state.ledger.push(entry) }
    }

    fn may_go_up(&self, s: &State) -> bool {
        let published = s.ledger.len() as u8;
        !s.by_window
            && !s.has_left
            && s.ups < UPS
            && s.owed.is_none()
            && (s.is_ready || self.has(Fault::UpWithoutReady))
            && (s.passed == published || self.has(Fault::UpWhileBehind))
            && (s.question.is_none() || self.has(Fault::UpWhileAsked))
            && (s.counted == s.given || self.has(Fault::UpInsideACall))
    }

    fn go_down(&self, s: &mut State) {
        if !self.has(Fault::NoFence) {
            s.seen = s.window.len() as u8;
        }
        s.by_window = false;
        let entry = Entry { kind: Kind::Down, offset: s.counted_sent(), given: s.counted };
        self.publish(s, entry);
    }

    /// One step of a sender that leaves for ever.
    fn leave(&self, s: &mut State, action: Action) -> Option<()> {
        match action {
            Action::Leave => {
                (s.has_left, s.is_anew) = (true, true);
                s.anew_from = Some(s.taken.max(s.left_at));
            }
            Action::Anew => {
                let (was_in_window, sent) = (s.by_window, s.sent);
                (s.sent, s.by_window) = (s.anew_from.take()?, false);
                let entry = Entry { kind: Kind::Resume, offset: s.sent, given: s.counted };
                self.publish(s, entry);
                s.answered = s.ledger.len() as u8;
                let is_surely_seen = was_in_window || self.has(Fault::LeaveUnseen);
                s.is_leaving = (!is_surely_seen).then_some(sent);
            }
            Action::CheckLeave => {
                let sent = s.is_leaving.take()?;
                if s.has_stopped {
                    s.sent = sent;
                }
            }
            _ => unreachable!("a step of leaving"),
        }
        Some(())
    }

    /// One step of a receiver that stops to read by the ledger.
    fn stop(&self, s: &mut State, action: Action) -> Option<()> {
        match action {
            Action::Stop => s.is_ready = false,
            Action::TryStop => s.is_stopping = true,
            Action::LookLast => s.found_none = Some(self.next(s).is_none()),
            Action::SayFound => {
                s.is_stopping = false;
                if s.found_none.take()? {
                    (s.at, s.has_stopped) = (At::Plain, true);
                }
            }
            _ => unreachable!("a step of stopping"),
        }
        Some(())
    }

    /// One read, behind what was peeked at and looked up.
    fn take(&self, s: &mut State) {
        let (peeked, is_end) = s.peeked.take().unwrap_or((0, false));
        let entry = s.looked.take().flatten();
        match s.at {
            At::Plain => s.take_of_socket(peeked, is_end),
            At::Kernel if s.again > 0 => {
                let bytes = peeked.min(s.again);
                s.again -= bytes;
                s.drop_of_socket(bytes);
                s.is_wrong |= is_end;
            }
            At::Kernel => match entry {
                Some(Entry { kind: Kind::Resume, offset, given }) if given <= s.received => {
                    s.begin_anew(offset, self.has(Fault::TakenAgain));
                }
                Some(Entry { kind: Kind::Resume, given, .. }) => {
                    s.take_of_socket(peeked.min(given - s.received), false);
                }
                Some(Entry { kind: Kind::Up, offset, .. }) if offset == s.taken => s.pass(At::Window),
                Some(Entry { kind: Kind::Up, offset, .. }) if offset > s.taken => {
                    s.take_of_socket(peeked.min(offset - s.taken), false);
                }
                Some(_) => s.is_wrong = true,
                None => s.take_of_socket(peeked, is_end),
            },
            At::Window if s.is_scribbled => {
                s.at = At::Lost;
                s.question = Some(s.taken);
            }
            At::Window if s.seen > 0 && !(is_end && self.has(Fault::EndWithoutLook)) => s.take_of_window(),
            At::Window => match entry {
                Some(Entry { kind: Kind::Down, offset, .. }) if offset == s.taken => s.pass(At::Kernel),
                Some(Entry { kind: Kind::Down, .. }) => {
                    s.at = At::Lost;
                    s.question = Some(s.taken);
                    s.is_lost = true;
                }
                Some(Entry { kind: Kind::Resume, offset, given }) if given == s.received => {
                    s.begin_anew(offset, self.has(Fault::TakenAgain));
                }
                Some(_) => s.is_wrong = true,
                None if peeked > 0 => s.is_wrong = true,
                None => s.is_over = is_end,
            },
            At::Lost => match entry {
                Some(Entry { kind: Kind::Down, .. }) => s.pass(At::Lost),
                Some(Entry { kind: Kind::Resume, offset, given }) => {
                    let before = given.saturating_sub(s.received);
                    if before == 0 || self.has(Fault::ResumeWithOneNumber) {
                        s.begin_anew(offset, self.has(Fault::TakenAgain));
                    } else {
                        s.drop_of_socket(peeked.min(before));
                    }
                }
                Some(_) => s.is_wrong = true,
                None => s.drop_of_socket(peeked),
            },
        }
    }
}

impl State {
    fn counted_sent(&self) -> u8 {
        self.sent - (self.given - self.counted)
    }

    fn is_in_leaving(&self) -> bool {
        self.anew_from.is_some() || self.is_leaving.is_some()
    }

    fn give(&mut self) {
        self.socket.push(self.sent);
        self.sent += 1;
        self.given += 1;
    }

    fn pass(&mut self, to: At) {
        self.at = to;
        self.passed += 1;
    }

    fn begin_anew(&mut self, offset: u8, takes_again: bool) {
        self.is_wrong |= offset > self.taken;
        self.again = if takes_again { 0 } else { self.taken.saturating_sub(offset) };
        self.question = None;
        self.pass(At::Kernel);
    }

    fn get(&mut self, byte: u8) {
        self.is_wrong |= byte != self.taken;
        self.taken += 1;
    }

    fn take_of_socket(&mut self, bytes: u8, is_end: bool) {
        for _ in 0..bytes {
            let byte = self.socket.remove(0);
            self.received += 1;
            self.get(byte);
        }
        self.is_over = bytes == 0 && is_end;
    }

    fn drop_of_socket(&mut self, bytes: u8) {
        self.socket.drain(..usize::from(bytes));
        self.received += bytes;
    }

    fn take_of_window(&mut self) {
        let byte = self.window.remove(0);
        self.seen -= 1;
        self.get(byte);
    }
}

impl Model for Switch {
    type State = State;
    type Action = Action;

    fn init_states(&self) -> Vec<State> {
        vec![State {
            sent: 0,
            counted: 0,
            given: 0,
            by_window: false,
            ups: 0,
            answered: 0,
            owed: None,
            is_going_up: false,
            is_checking: false,
            left_at: 0,
            is_anew: false,
            has_left: false,
            anew_from: None,
            is_leaving: None,
            ledger: vec![],
            socket: vec![],
            is_ended: false,
            window: vec![],
            seen: 0,
            is_scribbled: false,
            at: if self.has(Fault::UpWithoutReady) { At::Plain } else { At::Kernel },
            is_ready: !self.has(Fault::UpWithoutReady),
            is_stopping: false,
            found_none: None,
            has_stopped: false,
            passed: 0,
            taken: 0,
            received: 0,
            again: 0,
            question: None,
            peeked: None,
            looked: None,
            is_over: false,
            is_wrong: false,
            is_lost: false,
        }]
    }

    fn actions(&self, s: &State, actions: &mut Vec<Action>) {
        if s.is_wrong || s.is_over {
            return;
        }
        let is_inside = s.given != s.counted && !s.by_window;
        let is_free = !is_inside && !s.is_checking && !s.is_going_up && !s.is_in_leaving();
        let mut may = |action, when: bool| actions.extend(when.then_some(action));
        may(Action::Send, is_free && s.sent < BYTES && !s.is_ended);
        may(Action::Give, is_free && !s.by_window && s.sent < BYTES && s.owed.is_none() && !s.is_ended);
        may(Action::Return, s.given != s.counted);
        let is_between = !s.is_checking && !s.is_going_up && !s.is_ended && !s.is_in_leaving();
        may(Action::See, is_between && self.may_go_up(s));
        may(Action::Up, s.is_going_up);
        may(Action::Check, s.is_checking);
        may(Action::Publish, s.owed.is_some());
        may(Action::Down, is_free && s.by_window && s.owed.is_none() && !s.is_ended);
        may(Action::Land, usize::from(s.seen) < s.window.len());
        may(Action::Scribble, self.scribbles && s.by_window && !s.is_scribbled && s.question.is_none());
        let is_asked = s.question.is_some() && s.passed >= s.answered;
        may(Action::Resume, is_free && is_asked && s.owed.is_none());
        let is_settled = !s.by_window && usize::from(s.passed) == s.ledger.len() && s.question.is_none();
        let may_leave = self.leaves && !s.has_left && !s.is_anew && !is_settled && s.question.is_none();
        may(Action::Leave, is_free && may_leave && s.owed.is_none() && !s.is_ended);
        may(Action::Anew, s.anew_from.is_some());
        let is_known = !s.is_stopping || self.has(Fault::LeaveUndecided);
        may(Action::CheckLeave, s.is_leaving.is_some() && is_known);
        // It ends once nothing can be asked of it any more.
        let is_safe = !self.scribbles || s.taken == BYTES || s.has_left;
        may(Action::End, is_free && s.sent == BYTES && !s.is_ended && s.owed.is_none() && is_safe);
        if self.has(Fault::LookBeforePeek) {
            may(Action::Look, s.looked.is_none());
            may(Action::Peek, s.looked.is_some() && s.peeked.is_none());
        } else {
            may(Action::Peek, s.peeked.is_none() && !s.is_stopping);
            may(Action::Look, s.peeked.is_some() && s.looked.is_none());
        }
        may(Action::Take, s.peeked.is_some() && s.looked.is_some());
        may(Action::Stop, self.stops && s.is_ready && s.peeked.is_none());
        let has_none_again = s.again == 0 || self.has(Fault::StopBeforeAgain);
        let may_stop = !s.is_ready && s.at == At::Kernel && has_none_again && self.next(s).is_none();
        may(Action::TryStop, may_stop && !s.is_stopping && s.peeked.is_none());
        may(Action::LookLast, s.is_stopping && s.found_none.is_none());
        may(Action::SayFound, s.found_none.is_some());
    }

    fn next_state(&self, last: &State, action: Action) -> Option<State> {
        let mut s = last.clone();
        match action {
            Action::Send if s.by_window => {
                s.window.push(s.sent);
                s.sent += 1;
            }
            Action::Send => {
                s.give();
                s.counted = s.given;
            }
            Action::Give => s.give(),
            Action::Return => s.counted = s.given,
            Action::See => s.is_going_up = true,
            Action::Up => {
                s.is_going_up = false;
                s.by_window = true;
                s.ups += 1;
                (s.left_at, s.is_anew) = (s.counted_sent(), false);
                let entry = Entry { kind: Kind::Up, offset: s.counted_sent(), given: s.counted };
                self.publish(&mut s, entry);
                if s.at != At::Window && s.passed as usize + 1 == s.ledger.len() {
                    (s.window, s.seen, s.is_scribbled) = (vec![], 0, false);
                }
                s.is_checking = !self.has(Fault::StopUnseen) && !self.has(Fault::UpWithoutReady);
            }
            Action::Check => {
                s.is_checking = false;
                if !s.is_ready {
                    self.go_down(&mut s);
                    // Nothing was in the window, and nobody may be there who reads what would be sent anew.
                    s.is_anew = true;
                }
            }
            Action::Publish => s.ledger.extend(s.owed.take()),
            Action::Down => self.go_down(&mut s),
            Action::Land => s.seen += 1,
            Action::Scribble => s.is_scribbled = true,
            Action::Resume => {
                s.sent = s.question?;
                s.by_window = false;
                let entry = Entry { kind: Kind::Resume, offset: s.sent, given: s.counted };
                self.publish(&mut s, entry);
                s.answered = s.ledger.len() as u8;
                s.is_anew = true;
            }
            Action::Leave | Action::Anew | Action::CheckLeave => self.leave(&mut s, action)?,
            Action::End => {
                // A call into the kernel takes locks, and a locked instruction empties the buffers that combine writes.
                s.seen = s.window.len() as u8;
                s.is_ended = true;
            }
            Action::Peek => s.peeked = Some((s.socket.len() as u8, s.socket.is_empty() && s.is_ended)),
            Action::Look => s.looked = Some(self.next(&s)),
            Action::Take => self.take(&mut s),
            Action::Stop | Action::TryStop | Action::LookLast | Action::SayFound => {
                self.stop(&mut s, action)?
            }
        }
        (s != *last).then_some(s)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        vec![
            Property::always("bytes come once and in order", |_, s: &State| !s.is_wrong),
            Property::always("a window is lost only where it was scribbled over", |_, s: &State| !s.is_lost),
            Property::always("the stream ends behind its last byte", |_, s: &State| {
                !s.is_over || s.taken == BYTES
            }),
            Property::always("somebody can go on until it has ended", |model: &Switch, s: &State| {
                s.is_over || s.is_wrong || model.next_steps(s).iter().any(|(_, next)| next != s)
            }),
            Property::sometimes("all of it comes by both paths", |_, s: &State| s.is_over && s.ups == UPS),
        ]
    }
}

#[test]
fn no_byte_is_lost_doubled_or_moved() {
    let runs = [
        (false, false, false),
        (true, false, false),
        (false, true, false),
        (false, true, true),
        (true, false, true),
    ];
    for (scribbles, stops, leaves) in runs {
        let checker = Switch { fault: None, scribbles, stops, leaves }.checker().spawn_bfs().join();
        let states = checker.unique_state_count();
        println!("scribbles: {scribbles}, stops: {stops}, leaves: {leaves}: {states} states");
        checker.assert_properties();
    }
}

#[test]
fn each_rule_that_is_left_out_is_found() {
    let faults = [
        (Fault::LookBeforePeek, false, false, false),
        (Fault::UpWithoutReady, false, false, false),
        (Fault::BytesBeforeEntry, false, false, false),
        (Fault::NoFence, false, false, false),
        (Fault::ResumeWithOneNumber, true, false, false),
        (Fault::UpInsideACall, false, false, false),
        (Fault::UpWhileBehind, false, false, false),
        (Fault::UpWhileAsked, true, false, false),
        (Fault::EndWithoutLook, false, false, false),
        (Fault::StopUnseen, false, true, false),
        (Fault::LeaveUnseen, false, true, true),
        (Fault::LeaveUndecided, false, true, true),
        (Fault::TakenAgain, false, false, true),
        (Fault::StopBeforeAgain, false, true, true),
    ];
    for (fault, scribbles, stops, leaves) in faults {
        let switch = Switch { fault: Some(fault), scribbles, stops, leaves };
        let checker = switch.checker().finish_when(HasDiscoveries::AnyFailures).spawn_bfs().join();
        assert!(
            checker.discoveries().keys().any(|property| !property.starts_with("all of it")),
            "{fault:?} is not found"
        );
    }
}

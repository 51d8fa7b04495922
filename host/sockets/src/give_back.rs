//! Bytes that nobody has received go back to who sent them, and come again by the socket, so that whoever has it next finds them there.
//!
//! Behind the window's bytes the socket has others, and what is put into it comes last. So all of them are taken, up to the last byte that the
//! other side has sent before it waits, and all of them are given back (record 0076).

use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use beeline_ledger::{Path, Received};

use crate::debts;
use crate::endpoint::{AgreedSlot, Endpoint, In, Reader};
use crate::poll::sleep_for;
use crate::process::Process;
use crate::returns::{Answer, Returns};

/// How long taking and giving back may last.
pub(crate) const GIVEN_BACK_WITHIN: Duration = Duration::from_millis(500);
/// How long it is looked before it is slept, and how long it is slept then.
const LOOKED_FOR: Duration = Duration::from_micros(100);
const BETWEEN_LOOKS: Duration = Duration::from_micros(50);
/// Bytes that are taken out of the socket at a time.
const PART_BYTES: usize = 256 << 10;

/// How far the bytes of a connection are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Back {
    /// All that was not received is in the socket.
    All,
    /// Nothing has changed: the other side does not answer, or cannot.
    Nothing,
    /// Some were taken, and are not in the socket.
    Lost(&'static str),
}

/// A question to the sender, which waits until this is dropped.
struct Question<'a> {
    endpoint: &'a Endpoint,
    agreed: &'a AgreedSlot,
    returns: Returns,
    number: u64,
    until: Instant,
    started: Instant,
}

impl Endpoint {
    /// Brings what nobody has received back into the socket. It is the kernel's already. The lock is kept meanwhile: what another thread received
    /// in the middle would come before what was taken here.
    pub(crate) fn give_back(&self, process: &Process, socket: BorrowedFd<'_>, until: Instant) -> Back {
        let mut reader = self.lock_reader();
        // One that broke the rules stays, and says so to whoever receives.
        self.stop_reading(process, &mut reader);
        let Some(agreed) = reader.slot.clone().filter(|_| reader.stream.is_some()) else {
            return Back::All;
        };
        let mut question = Question::ask(self, &agreed, until);
        if agreed.is_kept {
            let back = question.wait_for_socket(&mut reader, socket);
            drop(question);
            if back == Back::All {
                self.end_reading(process, &mut reader);
            }
            return back;
        }
        let Reader { stream: Some(stream), .. } = &mut *reader else { return Back::All };
        let back = match question.wait_for_answer(|| is_all_in_socket(self, stream, socket)) {
            Some(Answer::Sent(sent)) => {
                // What is taken has to go back, however late the answer came.
                question.until = until.max(Instant::now() + GIVEN_BACK_WITHIN);
                question.take_and_give(stream, socket, sent)
            }
            Some(Answer::Refused) | None if is_all_in_socket(self, stream, socket) => Back::All,
            // One that is gone has stored all that it ever did.
            None if agreed.has_gone() && is_window_empty(stream) => Back::All,
            Some(Answer::Refused) | None => Back::Nothing,
        };
        drop(question);
        if back == Back::All {
            self.end_reading(process, &mut reader);
        }
        back
    }

    /// Waits until what its program has sent, and what came back of it, is in the socket.
    pub(crate) fn settle_sending(&self, until: Instant) -> bool {
        let started = Instant::now();
        while Self::owes(&mut self.lock_writer()) {
            if Instant::now() >= until {
                return false;
            }
            pause(started);
        }
        true
    }
}

/// Whether every byte that was not taken is in the socket, or will be. It takes none but those that come anew behind a window that is lost.
fn is_all_in_socket(endpoint: &Endpoint, stream: &mut In, socket: BorrowedFd<'_>) -> bool {
    // Passes entries that stand at the byte that comes next.
    let found = stream.peek(&mut [0], &mut endpoint.socket(socket));
    let is_behind_window = stream.path() == Path::Kernel && stream.stop() == Ok(true);
    is_behind_window || stream.path() == Path::Window && matches!(found, Ok(Received::End))
}

/// Whether the stream stands in a window that has nothing and goes on there.
fn is_window_empty(stream: &mut In) -> bool {
    stream.has_window_bytes() == Ok(false) && stream.path() == Path::Window && stream.has_entry() == Ok(false)
}

fn pause(started: Instant) {
    if started.elapsed() < LOOKED_FOR {
        std::thread::yield_now();
    } else {
        sleep_for(BETWEEN_LOOKS);
    }
}

impl<'a> Question<'a> {
    fn ask(endpoint: &'a Endpoint, agreed: &'a AgreedSlot, until: Instant) -> Self {
        let returns = agreed.slot.received_returns();
        let number = returns.ask();
        Endpoint::ring_other_thread(agreed);
        Question { endpoint, agreed, returns, number, until, started: Instant::now() }
    }

    /// Waits a little, unless it has lasted too long, or the other process is gone. What that asks of this one is done meanwhile: it may give
    /// bytes back as well.
    fn wait(&self) -> bool {
        if Instant::now() >= self.until || self.agreed.has_gone() {
            return false;
        }
        self.endpoint.answer_return_meanwhile();
        debts::pay();
        pause(self.started);
        true
    }

    /// The answer, if one comes; none is needed any more where `is_done` says so.
    fn wait_for_answer(&self, mut is_done: impl FnMut() -> bool) -> Option<Answer> {
        loop {
            if let Some(answer) = self.returns.answer(self.number) {
                return Some(answer);
            }
            if !self.wait() || is_done() {
                return None;
            }
        }
    }

    /// Waits until the sender, which has a copy, has left its window, so that every byte is in the socket or will be.
    fn wait_for_socket(&self, reader: &mut Reader, socket: BorrowedFd<'_>) -> Back {
        let Some(stream) = &mut reader.stream else { return Back::All };
        loop {
            // What breaks the rules is never all there. One that does not answer has left what the window has to whoever receives next.
            let _ = stream.skip_to_anew();
            if is_all_in_socket(self.endpoint, stream, socket) {
                return Back::All;
            }
            if !self.wait() {
                let is_whole = self.agreed.has_gone() && is_window_empty(stream);
                return if is_whole { Back::All } else { Back::Nothing };
            }
        }
    }

    fn take_and_give(&self, stream: &mut In, socket: BorrowedFd<'_>, sent: u64) -> Back {
        if is_all_in_socket(self.endpoint, stream, socket) {
            return Back::All;
        }
        match sent.checked_sub(stream.taken_bytes()) {
            Some(bytes) if bytes <= debts::MOST_BYTES => {}
            _ => return Back::Nothing,
        }
        match self.take(stream, socket, sent) {
            Ok(bytes) if self.give(&bytes) => Back::All,
            Ok(_) => Back::Lost("the other process did not take bytes back"),
            Err(why) => Back::Lost(why),
        }
    }

    /// Takes all bytes before this one of the stream.
    fn take(&self, stream: &mut In, socket: BorrowedFd<'_>, end: u64) -> Result<Vec<u8>, &'static str> {
        let (mut taken, mut part) = (Vec::new(), vec![0; PART_BYTES]);
        while stream.taken_bytes() < end {
            let most = usize::try_from(end - stream.taken_bytes()).unwrap_or(PART_BYTES).min(PART_BYTES);
            let mut tcp = self.endpoint.socket(socket);
            match stream.receive(&mut part[..most], &mut tcp) {
                Ok(Received::Bytes(bytes)) => taken.extend_from_slice(&part[..bytes]),
                Ok(Received::Nothing) if self.wait() => {}
                Ok(Received::Nothing) => return Err("the other process has said that it has sent more"),
                Ok(Received::End) | Err(_) => return Err("it has ended, so that nothing can be sent anew"),
            }
        }
        Ok(taken)
    }

    /// Gives bytes back, piece by piece.
    fn give(&self, bytes: &[u8]) -> bool {
        bytes.chunks(self.returns.place_bytes()).zip(1..).all(|(piece, number)| {
            self.returns.put(number, piece);
            Endpoint::ring_other_thread(self.agreed);
            while !self.returns.is_copied(number) {
                if !self.wait() {
                    return false;
                }
            }
            true
        })
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        self.returns.end(self.number);
        Endpoint::ring_other_thread(self.agreed);
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::{AsFd, AsRawFd};

    use beeline_domain::DomainConfig;
    use beeline_ledger::{Receiver, Sender};
    use beeline_mmio::Region;
    use beeline_socket_rules::{Rules, Why};
    use beeline_stream::{Outgoing, Sent, Tcp};
    use beeline_tcp::Side;

    use super::*;
    use crate::endpoint::{Meeting, Out};
    use crate::memory::{PairMemory, Slot, memory_bytes};
    use crate::windows::{WindowReader, WindowWriter};

    /// An end whose window has unread bytes, and the other end's part, which the test plays.
    struct Ends {
        process: Process,
        endpoint: &'static Endpoint,
        socket: TcpStream,
        other: TcpStream,
        other_slot: Slot,
        _sender: Out,
    }

    fn ends(unread: &[u8]) -> Ends {
        ends_that_keep(unread, false)
    }

    fn ends_that_keep(unread: &[u8], is_kept: bool) -> Ends {
        let listener = TcpListener::bind(("127.0.0.1", 0)).unwrap();
        let other = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let socket = listener.accept().unwrap().0;
        let region = Region::private(memory_bytes(1));
        let slot = |side| PairMemory::new(region.clone(), 1, side).slot(0).unwrap();
        let (slot, other_slot) = (slot(0), slot(1));
        slot.open(1, is_kept);
        other_slot.open(2, is_kept);
        let endpoint = Box::leak(Box::new(Endpoint::new(0)));
        let meeting = Meeting { side: Side::Accepted, is_unix: false, agreed: None, is_decided: false };
        endpoint.begin(socket.as_raw_fd(), 1, meeting, false);
        let agreed = AgreedSlot { slot: slot.clone(), other_cookie: 2, peer: None, is_kept };
        let checked = agreed.checked(2, 1);
        assert!(endpoint.agree(agreed.clone()));
        let (own, theirs) = slot.receiver_ends();
        let mut stream: In = In::new(Receiver::new(own, theirs, 0));
        stream.set_window(WindowReader::new(slot.offer_window(64, 1), checked));
        *endpoint.lock_reader() = Reader { stream: Some(stream), slot: Some(agreed), ..Reader::default() };
        let (own, theirs) = other_slot.sender_ends();
        let mut sender: Out = Outgoing::new(Sender::new(own, theirs, 0));
        sender.set_window(WindowWriter::new(other_slot.offered_window().unwrap(), checked)).unwrap();
        let mut tcp = Tcp::new(other.try_clone().unwrap(), Side::Connected);
        sender.go_up(&mut tcp).unwrap();
        assert!(matches!(sender.send(unread, &mut tcp), Ok(Sent::Bytes(sent)) if sent == unread.len()));
        sender.go_down();
        let domain = DomainConfig { root: None, name: "d".to_owned() };
        let process = Process::new(Rules::default().for_this_program(), domain);
        Ends { process, endpoint, socket, other, other_slot, _sender: sender }
    }

    impl Ends {
        /// Gives back while the other end does this over and over.
        fn give_back(&self, mut other: impl FnMut(&Returns, u64) + Send) -> Back {
            let is_over = std::sync::atomic::AtomicBool::new(false);
            self.endpoint.forbid(Why::Executed);
            let returns = self.other_slot.sent_returns();
            std::thread::scope(|scope| {
                scope.spawn(|| {
                    while !is_over.load(std::sync::atomic::Ordering::Relaxed) {
                        returns.asked().into_iter().for_each(|number| other(&returns, number));
                        std::thread::yield_now();
                    }
                });
                let until = Instant::now() + Duration::from_millis(50);
                let back = self.endpoint.give_back(&self.process, self.socket.as_fd(), until);
                is_over.store(true, std::sync::atomic::Ordering::Relaxed);
                back
            })
        }

        fn received(&self) -> Vec<u8> {
            let mut out = vec![0; 64];
            let mut reader = self.endpoint.lock_reader();
            let mut tcp = Tcp::new(self.socket.as_fd(), Side::Accepted);
            match reader.stream.as_mut().unwrap().receive(&mut out, &mut tcp) {
                Ok(Received::Bytes(bytes)) => out[..bytes].to_vec(),
                found => panic!("{found:?}"),
            }
        }
    }

    #[test]
    fn unread_bytes_are_taken_back_by_who_sent_them() {
        let ends = ends(b"unread");
        let mut came_back = Vec::new();
        let back = ends.give_back(|returns, number| {
            returns.say_sent(number, 6);
            if returns.take(1, &mut came_back).is_some() {
                returns.say_copied(1);
            }
        });
        assert_eq!(back, Back::All);
        assert!(came_back.starts_with(b"unread"));
        assert!(ends.endpoint.lock_reader().stream.is_none());
    }

    #[test]
    fn sender_that_says_that_it_sent_less_than_was_received_gets_nothing_back() {
        let ends = ends(b"unread");
        let mut out = [0; 3];
        let mut tcp = Tcp::new(ends.socket.as_fd(), Side::Accepted);
        let found = ends.endpoint.lock_reader().stream.as_mut().unwrap().receive(&mut out, &mut tcp);
        assert_eq!(found, Ok(Received::Bytes(3)));
        assert_eq!(ends.give_back(|returns, number| returns.say_sent(number, 2)), Back::Nothing);
        assert_eq!(ends.received(), b"ead");
    }

    #[test]
    fn sender_that_says_that_it_sent_more_than_can_be_gets_nothing_back() {
        let ends = ends(b"unread");
        assert_eq!(ends.give_back(|returns, number| returns.say_sent(number, u64::MAX)), Back::Nothing);
        assert_eq!(ends.received(), b"unread");
    }

    #[test]
    fn sender_that_says_that_it_sent_more_than_it_did_has_lost_its_connection() {
        let ends = ends(b"unread");
        let back = ends.give_back(|returns, number| returns.say_sent(number, 7));
        assert!(matches!(back, Back::Lost(_)), "{back:?}");
    }

    #[test]
    fn sender_that_does_not_acknowledge_or_acknowledges_what_is_not_there_has_lost_its_connection() {
        let ends = ends(b"unread");
        let back = ends.give_back(|returns, number| {
            returns.say_sent(number, 6);
            returns.say_copied(u64::MAX);
        });
        assert!(matches!(back, Back::Lost(_)), "{back:?}");
    }

    #[test]
    fn sender_that_refuses_or_says_nothing_leaves_all_as_it_was() {
        let ends = ends(b"unread");
        assert_eq!(ends.give_back(|returns, number| returns.refuse(number)), Back::Nothing);
        assert_eq!(ends.give_back(|_, _| {}), Back::Nothing);
        assert_eq!(ends.received(), b"unread");
    }

    #[test]
    fn window_of_a_sender_that_keeps_copies_and_does_not_answer_is_received_still() {
        let ends = ends_that_keep(b"unread", true);
        assert_eq!(ends.give_back(|_, _| {}), Back::Nothing);
        assert_eq!(ends.received(), b"unread");
    }

    #[test]
    fn whether_copies_are_kept_is_decided_once() {
        for is_kept in [false, true] {
            let ends = ends_that_keep(b"unread", is_kept);
            assert!(ends.endpoint.agreed().is_some_and(|(_, agreed)| agreed.is_kept == is_kept));
            ends.other_slot.open(2, !is_kept);
            assert!(ends.endpoint.agreed().is_some_and(|(_, agreed)| agreed.is_kept == is_kept));
        }
    }

    #[test]
    fn sender_that_has_ended_its_direction_cannot_take_bytes_back() {
        let ends = ends(b"unread");
        ends.other.shutdown(std::net::Shutdown::Write).unwrap();
        let back = ends.give_back(|returns, number| returns.say_sent(number, 7));
        assert!(matches!(back, Back::Lost(_)), "{back:?}");
    }
}

//! Both ends in one thread, step by step.
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

mod support;

use std::cell::Cell;
use std::rc::Rc;

use beeline_contract_adapter::{PublishPort, Unconfirmed};
use beeline_ledger::{Anew, KernelPath, Path, Peeked, Received, Receiver, Sender, WindowLost, WindowPath};
use beeline_stream::*;
use rustix::io::Errno;
use support::ends::{bytes, ends, receive_all};
use support::*;

fn send<W: Windows>(sender: &mut End<W>, count: u64) -> Sent {
    let bytes = bytes(sender.outgoing.sent_bytes(), count);
    sender.outgoing.send(&bytes, &mut sender.tcp).unwrap()
}

#[test]
fn bytes_are_kept_from_when_the_stream_leaves_the_socket_until_it_is_back() {
    let (mut sender, mut receiver, _memory) = ends::<Checked>();
    assert_eq!(send(&mut sender, 100), Sent::Bytes(100));
    assert_eq!(sender.outgoing.kept_bytes(), 0);
    assert!(sender.go_up());
    assert_eq!(send(&mut sender, 1000), Sent::Bytes(1000));
    sender.outgoing.go_down();
    assert_eq!(send(&mut sender, 10), Sent::Bytes(10));
    assert_eq!((sender.outgoing.kept_bytes(), sender.outgoing.untaken_bytes()), (1010, 1110));
    receive_all(&mut receiver, 1110);
    assert!(sender.outgoing.leave(&mut sender.tcp).unwrap());
    assert_eq!((sender.outgoing.kept_bytes(), sender.outgoing.untaken_bytes()), (0, 0));
}

/// Spoils the header that comes next in the window.
fn spoil<W: Windows>(memory: &Memory, sender: &End<W>) {
    let start = memory.direction(0).window_bytes(sender.counts.windows).unwrap();
    memory.region().fill(start, WINDOW_BYTES, 0x55);
}

#[test]
fn window_that_is_lost_is_sent_again_before_anything_else() {
    let (mut sender, mut receiver, memory) = ends::<Checked>();
    assert!(sender.go_up());
    assert_eq!(send(&mut sender, 3000), Sent::Bytes(3000));
    spoil(&memory, &sender);
    assert_eq!(receiver.receive().unwrap(), Received::Nothing);
    assert!(!receiver.incoming.has_window());
    sender.outgoing.go_down();
    // Offered before the question was answered: an answer would take it for the window that is lost.
    receiver.offer();
    sender.take_window();
    assert_eq!(sender.counts.windows, 1);
    // It has room again when the new bytes come, and those that are owed are first all the same.
    (sender.tcp.room_bytes, sender.tcp.refusals) = (1000, 1);
    assert_eq!(send(&mut sender, 5), Sent::SocketFull);
    assert_eq!((sender.outgoing.owed_bytes(), sender.outgoing.path()), (3000, Path::Kernel));
    assert_eq!(send(&mut sender, 5), Sent::SocketFull);
    assert_eq!((sender.outgoing.owed_bytes(), sender.outgoing.has_window()), (2000, false));
    // The receiver has all that the socket has, and is behind every change.
    receive_all(&mut receiver, 1000);
    sender.take_window();
    assert_eq!(sender.outgoing.go_up(&mut sender.tcp), Err(Unmoved::Owes));
    sender.tcp.room_bytes = usize::MAX;
    assert_eq!(send(&mut sender, 5), Sent::Bytes(5));
    receive_all(&mut receiver, 3005);
    assert!(sender.go_up());
    assert_eq!(send(&mut sender, 500), Sent::Bytes(500));
    receive_all(&mut receiver, 3505);
    assert_eq!((receiver.incoming.path(), sender.counts.windows), (Path::Window, 2));
}

/// The receiver has 500 bytes of those in the window when its sender leaves it, and more since.
fn window_that_is_left(is_spoiled: bool, goes_down: bool) {
    let (mut sender, mut receiver, memory) = ends::<Checked>();
    assert_eq!(send(&mut sender, 100), Sent::Bytes(100));
    assert!(sender.go_up());
    assert_eq!(send(&mut sender, 3000), Sent::Bytes(3000));
    if goes_down {
        sender.outgoing.go_down();
        assert_eq!(send(&mut sender, 30), Sent::Bytes(30));
    }
    let mut out = [0; 600];
    assert_eq!(receiver.incoming.receive(&mut out, &mut receiver.tcp), Ok(Received::Bytes(100)));
    assert_eq!(receiver.incoming.receive(&mut out[..500], &mut receiver.tcp), Ok(Received::Bytes(500)));
    let sent = sender.outgoing.sent_bytes();
    // What the socket does not take is given to it by whoever has it.
    sender.tcp.room_bytes = 2000;
    assert!(!sender.outgoing.leave(&mut sender.tcp).unwrap());
    assert_eq!((sender.outgoing.sent_bytes(), sender.outgoing.owed_bytes()), (sent, sent - 600 - 2000));
    let owed = Vec::from(sender.outgoing.take_owed());
    assert_eq!(owed, bytes(2600, sent - 2600));
    sender.tcp.room_bytes = usize::MAX;
    assert_eq!(sender.tcp.send(&owed), Ok(owed.len()));
    if is_spoiled {
        spoil(&memory, &sender);
    } else {
        assert_eq!(receiver.incoming.receive(&mut out[..150], &mut receiver.tcp), Ok(Received::Bytes(150)));
    }
    sender.tcp.shut_down();
    while receiver.incoming.taken_bytes() < sent {
        assert!(matches!(receiver.receive(), Ok(Received::Bytes(_) | Received::Nothing)));
    }
    while receiver.receive().unwrap() != Received::End {}
    assert!(receiver.incoming.stop().unwrap());
}

#[test]
fn window_that_is_left_for_ever_needs_nobody_who_could_be_asked_for_it() {
    for is_spoiled in [false, true] {
        for goes_down in [false, true] {
            window_that_is_left(is_spoiled, goes_down);
        }
    }
}

#[test]
fn receiver_does_not_stop_while_bytes_come_anew_that_it_has() {
    let (mut sender, mut receiver, _memory) = ends::<Checked>();
    assert!(sender.go_up());
    assert_eq!(send(&mut sender, 300), Sent::Bytes(300));
    sender.tcp.room_bytes = 100;
    assert!(!sender.outgoing.leave(&mut sender.tcp).unwrap());
    while receiver.incoming.taken_bytes() < 300 {
        receiver.receive().unwrap();
    }
    assert_eq!(receiver.receive().unwrap(), Received::Nothing);
    assert!(!receiver.incoming.stop().unwrap());
    sender.tcp.room_bytes = usize::MAX;
    assert!(sender.outgoing.leave(&mut sender.tcp).unwrap());
    while !receiver.incoming.stop().unwrap() {
        assert_eq!(receiver.receive().unwrap(), Received::Nothing);
    }
}

#[test]
fn bytes_that_nobody_has_taken_are_in_the_socket_in_one_piece_behind_a_window_that_is_left() {
    for takes_window in [false, true] {
        let (mut sender, mut receiver, _memory) = ends::<Checked>();
        assert!(sender.go_up());
        assert_eq!(send(&mut sender, 300), Sent::Bytes(300));
        let mut out = [0; 400];
        assert_eq!(receiver.incoming.receive(&mut out[..100], &mut receiver.tcp), Ok(Received::Bytes(100)));
        sender.outgoing.go_down();
        assert_eq!(send(&mut sender, 50), Sent::Bytes(50));
        assert!(sender.outgoing.leave(&mut sender.tcp).unwrap());
        let mut taken = 100;
        while takes_window && taken < 300 {
            let Ok(Received::Bytes(bytes)) =
                receiver.incoming.receive(&mut out[..300 - taken], &mut receiver.tcp)
            else {
                panic!()
            };
            taken += bytes;
        }
        // Some of a message of the window, or of the bytes behind it, is unread.
        while !receiver.incoming.stop().unwrap() {
            receiver.incoming.skip_to_anew().unwrap();
            let _found = receiver.incoming.peek(&mut [0], &mut receiver.tcp).unwrap();
        }
        assert_eq!(receiver.incoming.taken_bytes(), taken as u64);
        let Peeked::Bytes(found) = receiver.tcp.peek(&mut out).unwrap() else { panic!() };
        assert_eq!(out[..found], bytes(taken as u64, 350 - taken as u64));
    }
}

#[test]
fn bytes_in_front_of_a_window_that_is_left_stay_where_they_are() {
    for goes_down in [false, true] {
        let (mut sender, mut receiver, _memory) = ends::<Checked>();
        assert_eq!(send(&mut sender, 200), Sent::Bytes(200));
        let mut out = [0; 1000];
        assert_eq!(receiver.incoming.receive(&mut out[..50], &mut receiver.tcp), Ok(Received::Bytes(50)));
        assert!(sender.go_up());
        assert_eq!(send(&mut sender, 300), Sent::Bytes(300));
        if goes_down {
            sender.outgoing.go_down();
        }
        receiver.incoming.skip_to_anew().unwrap();
        assert!(!receiver.incoming.stop().unwrap());
        assert!(sender.outgoing.leave(&mut sender.tcp).unwrap());
        receiver.incoming.skip_to_anew().unwrap();
        assert!(receiver.incoming.stop().unwrap());
        let Peeked::Bytes(found) = receiver.tcp.peek(&mut out).unwrap() else { panic!() };
        assert_eq!(out[..found], bytes(50, 450));
    }
}

#[test]
fn window_that_is_left_can_be_read_until_its_sender_sends_anew() {
    let (mut sender, mut receiver, _memory) = ends::<Checked>();
    assert!(sender.go_up());
    assert_eq!(send(&mut sender, 300), Sent::Bytes(300));
    sender.outgoing.go_down();
    assert!(!receiver.incoming.stop().unwrap());
    receiver.incoming.skip_to_anew().unwrap();
    receive_all(&mut receiver, 300);
}

#[test]
fn one_receive_takes_away_all_that_comes_in_front_of_what_is_sent_anew() {
    let (mut sender, mut receiver, memory) = ends::<Checked>();
    assert!(sender.go_up());
    assert_eq!(send(&mut sender, 3000), Sent::Bytes(3000));
    sender.outgoing.go_down();
    let mut sent = 3000;
    while sent < 600_000 {
        let Sent::Bytes(bytes) = send(&mut sender, 100_000) else { panic!() };
        sent += bytes as u64;
    }
    spoil(&memory, &sender);
    assert_eq!(receiver.incoming.has_window_bytes(), Ok(false));
    // What its socket does not take before some of it is read is sent by whoever has it.
    let _is_all = sender.outgoing.leave(&mut sender.tcp).unwrap();
    let mut out = [0; 100];
    assert_eq!(receiver.incoming.receive(&mut out, &mut receiver.tcp), Ok(Received::Bytes(100)));
    assert_eq!(out[..], bytes(0, 100));
}

#[test]
fn window_that_is_left_while_its_copy_was_too_long_is_received() {
    let (mut sender, mut receiver, _memory) = ends::<Checked>();
    sender.outgoing = sender.outgoing.keeping(2000);
    assert!(sender.go_up());
    assert_eq!(send(&mut sender, 2001), Sent::Bytes(2001));
    assert!(sender.outgoing.leave(&mut sender.tcp).unwrap());
    receive_all(&mut receiver, 2001);
    assert_eq!(receiver.incoming.path(), Path::Kernel);
}

#[test]
fn bytes_that_the_other_program_has_are_forgotten_though_nothing_is_sent() {
    let (mut sender, mut receiver, _memory) = ends::<Checked>();
    assert!(sender.go_up());
    assert_eq!(send(&mut sender, 3000), Sent::Bytes(3000));
    let mut out = [0; 1000];
    assert_eq!(receiver.incoming.receive(&mut out, &mut receiver.tcp), Ok(Received::Bytes(1000)));
    assert_eq!((sender.outgoing.kept_bytes(), sender.outgoing.bytes_to_leave()), (3000, 2000));
    sender.outgoing.release();
    assert_eq!((sender.outgoing.kept_bytes(), sender.outgoing.bytes_to_leave()), (2000, 2000));
    assert!(sender.outgoing.leave(&mut sender.tcp).unwrap());
    assert_eq!(sender.outgoing.bytes_to_leave(), 0);
    receive_all(&mut receiver, 3000);
}

#[test]
fn receiver_that_has_stopped_has_stopped_whatever_the_ledger_says_then() {
    let memory = Memory::new();
    let direction = memory.direction(0);
    let mut sender = Sender::new(direction.sender_words(), direction.theirs_of_sender(), 0);
    let mut receiver = Receiver::new(direction.receiver_words(), direction.theirs_of_receiver(), 0);
    assert_eq!(receiver.stop(), Ok(true));
    assert_eq!(sender.begin_anew(0), Ok(Anew::Needless));
    assert_eq!(receiver.stop(), Ok(true));
}

#[test]
fn stream_that_is_begun_anew_while_the_receiver_looks_for_the_last_time_is_looked_at_again() {
    const READY: u64 = 1 << 63;
    const STOPPING: u64 = 1 << 61;
    const STOPPED: u64 = 1 << 60;
    for (found, anew) in [(STOPPED | 2, Anew::Needless), (2, Anew::Begun)] {
        let memory = Memory::new();
        let direction = memory.direction(0);
        let mut sender = Sender::new(direction.sender_words(), direction.theirs_of_sender(), 0);
        let mut receiver = direction.receiver_words();
        receiver.publish(0, READY);
        sender.go_up(0).unwrap();
        sender.count(5);
        sender.go_down();
        receiver.publish(0, STOPPING | 2);
        assert_eq!(sender.begin_anew(0), Ok(Anew::Unknown));
        receiver.publish(0, found);
        assert_eq!(sender.look_again(), Ok(anew));
        assert_eq!(sender.sent_bytes(), if anew == Anew::Needless { 5 } else { 0 });
    }
}

/// Both ends of a window of direction 0, by these streams.
fn checked_window(
    sends: StreamId,
    receives: StreamId,
) -> (impl WindowSink + use<>, CheckedReader<beeline_mmio::LoadWindow, Pushed>) {
    let memory = Memory::new();
    let mut direction = memory.direction(0);
    let receiver = direction.next_window(1).unwrap();
    direction.tell_offered();
    let (_, writer) = direction.offered(0).unwrap();
    (CheckedWriter::new(writer, sends), CheckedReader::new(receiver, receives))
}

#[test]
fn message_of_another_stream_is_no_message() {
    let [one, other] = [0, 1].map(stream_id);
    for (sends, receives) in [(one, one), (one, other), (other, one)] {
        let (mut writer, mut reader) = checked_window(sends, receives);
        assert_eq!(writer.write(7, b"message"), Ok(7));
        writer.settle();
        let read = reader.read(7, &mut [0; 7]);
        assert_eq!(read, if sends == receives { Ok(7) } else { Err(WindowLost) });
    }
}

#[test]
fn peeks_of_a_stream_that_goes_on_hold_no_more_than_they_show() {
    let (mut writer, mut reader) = checked_window(stream_id(0), stream_id(0));
    let (mut sent, mut taken, mut out) = (0, 0, [0; 1000]);
    for _ in 0..300 {
        sent += writer.write(sent, &bytes(sent, 1500)).unwrap() as u64;
        writer.settle();
        assert_eq!(reader.peek(taken, &mut out), Ok(1000));
        assert_eq!(reader.read(taken, &mut out[..900]), Ok(900));
        assert_eq!(out[..900], bytes(taken, 900));
        taken += 900;
    }
    assert!(reader.held_bytes() <= 4 * CHECKED_MESSAGE_BYTES, "{}", reader.held_bytes());
    assert_eq!(reader.peek(taken, &mut vec![0; 6000]), Ok(6000.min((sent - taken) as usize)));
    while taken < sent {
        taken += reader.read(taken, &mut out).unwrap() as u64;
    }
    assert_eq!(reader.held_bytes(), CHECKED_MESSAGE_BYTES);
}

#[test]
fn bytes_that_are_missing_in_front_of_a_window_s_end_are_missed_by_who_only_looks() {
    let (mut sender, mut receiver, memory) = ends::<Checked>();
    assert!(sender.go_up());
    receive_all(&mut receiver, 0);
    assert_eq!(send(&mut sender, 300), Sent::Bytes(300));
    let start = memory.direction(0).window_bytes(sender.counts.windows).unwrap();
    let mut blank = [0; 64];
    memory.region().copy_out(start + WINDOW_BYTES - 64, &mut blank);
    memory.region().copy_in(start, &blank.repeat(WINDOW_BYTES / 64));
    assert_eq!(receiver.incoming.has_window_bytes(), Ok(false));
    sender.outgoing.go_down();
    assert_eq!(receiver.incoming.has_window_bytes(), Ok(false));
    assert!(receiver.incoming.is_lost());
    sender.outgoing.tend(&mut sender.tcp).unwrap();
    receive_all(&mut receiver, 300);
}

#[test]
fn message_in_the_place_of_another_one_is_no_message() {
    let (mut sender, mut receiver, memory) = ends::<Checked>();
    assert!(sender.go_up());
    assert_eq!(send(&mut sender, 40), Sent::Bytes(40));
    assert_eq!(send(&mut sender, 40), Sent::Bytes(40));
    let start = memory.direction(0).window_bytes(1).unwrap();
    let mut line = [0; 64];
    memory.region().copy_out(start, &mut line);
    memory.region().copy_in(start + 64, &line);
    receive_all(&mut receiver, 40);
    assert!(!receiver.incoming.has_window());
    sender.outgoing.tend(&mut sender.tcp).unwrap();
    receive_all(&mut receiver, 80);
}

#[test]
fn window_that_is_lost_resets_a_connection_that_keeps_nothing() {
    let (mut sender, mut receiver, memory) = ends::<Plain>();
    assert!(sender.go_up());
    assert_eq!(send(&mut sender, 3000), Sent::Bytes(3000));
    spoil(&memory, &sender);
    assert_eq!(receiver.receive().unwrap(), Received::Nothing);
    let failure = sender.outgoing.tend(&mut sender.tcp).unwrap_err();
    assert_eq!(failure, Failure::Reset(Reset::NotKept { from: 0 }));
    assert!(failure.to_string().contains("behind byte 0, and those bytes were not kept"), "{failure}");
}

#[test]
fn copy_that_grows_too_long_is_dropped_and_the_connection_reset_if_it_is_asked_for() {
    let (mut sender, mut receiver, memory) = ends::<Checked>();
    sender.outgoing = sender.outgoing.keeping(2000);
    assert!(sender.go_up());
    assert_eq!(send(&mut sender, 2000), Sent::Bytes(2000));
    assert_eq!(sender.outgoing.kept_bytes(), 2000);
    assert_eq!(send(&mut sender, 1), Sent::Bytes(1));
    assert_eq!(sender.outgoing.kept_bytes(), 0);
    spoil(&memory, &sender);
    assert_eq!(receiver.receive().unwrap(), Received::Nothing);
    let failure = sender.outgoing.tend(&mut sender.tcp).unwrap_err();
    assert_eq!(failure, Failure::Reset(Reset::NotKept { from: 0 }));
}

#[test]
fn full_window_is_said_and_left_for_the_socket() {
    let (mut sender, mut receiver, _memory) = ends::<Plain>();
    assert!(sender.go_up());
    let Sent::Bytes(sent) = send(&mut sender, 100_000) else { panic!() };
    assert!((1..WINDOW_BYTES).contains(&sent), "{sent}");
    assert_eq!(send(&mut sender, 1), Sent::WindowFull);
    sender.outgoing.go_down();
    assert_eq!(send(&mut sender, 700), Sent::Bytes(700));
    receive_all(&mut receiver, sent as u64 + 700);
    assert_eq!(receiver.incoming.path(), Path::Kernel);
}

#[test]
fn sender_goes_on_by_the_socket_where_the_receiver_frees_what_was_never_sent() {
    let (mut sender, _receiver, memory) = ends::<Plain>();
    assert!(sender.go_up());
    memory.direction(0).credit_word(1).store(1 << 40);
    let mut by_socket = 0;
    while by_socket < 1000 {
        match send(&mut sender, 1000) {
            Sent::Bytes(sent) if sender.outgoing.path() == Path::Kernel => by_socket += sent,
            Sent::Bytes(_) => {}
            full => panic!("{full:?}"),
        }
    }
    assert!(!sender.outgoing.has_window());
}

/// A socket that fails in the moment in which the other end has stored its last bytes in the window.
struct Fails<'e>(&'e mut End<Plain>);

impl KernelPath for Fails<'_> {
    type Error = TcpError;

    fn peek(&mut self, _out: &mut [u8]) -> Result<Peeked, TcpError> {
        assert_eq!(send(self.0, 100), Sent::Bytes(100));
        Err(Errno::CONNRESET.into())
    }

    fn take(&mut self, _bytes: usize) -> Result<(), TcpError> {
        unreachable!("it has no bytes")
    }
}

#[test]
fn failure_of_the_socket_comes_behind_bytes_that_came_while_it_was_looked_at() {
    let (mut sender, mut receiver, _memory) = ends::<Plain>();
    assert!(sender.go_up());
    assert_eq!(send(&mut sender, 10), Sent::Bytes(10));
    receive_all(&mut receiver, 10);
    let mut out = [0; 200];
    let mut socket = Fails(&mut sender);
    assert_eq!(receiver.incoming.receive(&mut out, &mut socket), Ok(Received::Bytes(100)));
    assert_eq!(out[..100], bytes(10, 100));
    let failure = Err(Failure::Socket(TcpError::System(Errno::CONNRESET)));
    assert_eq!(receiver.incoming.receive(&mut out, &mut socket), failure);
    assert_eq!(receiver.incoming.peek(&mut out, &mut socket), Ok(Received::Bytes(100)));
    assert_eq!(receiver.incoming.receive(&mut out, &mut socket), Ok(Received::Bytes(100)));
    assert_eq!(receiver.incoming.peek(&mut out, &mut socket), failure);
}

/// A window that says whether it was settled, and words that want it to be.
struct Settles(Rc<Cell<bool>>);

impl WindowSink for Settles {
    fn write(&mut self, _offset: u64, bytes: &[u8]) -> Result<usize, WindowFailed> {
        self.0.set(false);
        Ok(bytes.len())
    }

    fn settle(&mut self) {
        self.0.set(true);
    }
}

impl PublishPort for Settles {
    fn publish(&mut self, _word: u32, _value: u64) {
        assert!(self.0.get(), "an entry is published before the stores that are in front of it");
    }

    fn barrier(&mut self) -> Result<(), Unconfirmed> {
        Ok(())
    }
}

#[test]
fn stores_to_the_window_are_ordered_before_the_entry_behind_them() {
    let (mut real, _receiver, memory) = ends::<Plain>();
    let is_settled = Rc::new(Cell::new(true));
    let ledger = Sender::new(Settles(Rc::clone(&is_settled)), memory.direction(0).theirs_of_sender(), 0);
    let mut outgoing = Outgoing::new(ledger);
    assert!(outgoing.set_window(Settles(Rc::clone(&is_settled))).is_ok());
    outgoing.go_up(&mut real.tcp).unwrap();
    assert_eq!(outgoing.send(&[1], &mut real.tcp).unwrap(), Sent::Bytes(1));
    assert!(!is_settled.get());
    outgoing.go_down();
    assert_eq!(outgoing.path(), Path::Kernel);
}

/// What is peeked at is there still, also where it is more than a message or ends in the middle of one.
fn peek_takes_nothing<W: Windows>() {
    let (mut sender, mut receiver, _memory) = ends::<W>();
    assert!(sender.go_up());
    assert_eq!(send(&mut sender, 3000), Sent::Bytes(3000));
    assert_eq!(send(&mut sender, 2000), Sent::Bytes(2000));
    let mut out = vec![0; 6000];
    for want in [1, 3000, 4500, 6000] {
        let found = receiver.incoming.peek(&mut out[..want], &mut receiver.tcp).unwrap();
        assert_eq!(found, Received::Bytes(want.min(5000)));
        assert_eq!(out[..want.min(5000)], bytes(0, want.min(5000) as u64));
    }
    assert_eq!(receiver.incoming.taken_bytes(), 0);
    receive_all(&mut receiver, 5000);
}

#[test]
fn peek_leaves_the_bytes_of_a_window() {
    peek_takes_nothing::<Plain>();
    peek_takes_nothing::<Checked>();
}

#[test]
fn only_the_socket_ends_a_stream() {
    let (mut sender, mut receiver, _memory) = ends::<Plain>();
    assert!(sender.go_up());
    assert_eq!(send(&mut sender, 300), Sent::Bytes(300));
    let End { tcp, outgoing, .. } = sender;
    drop(outgoing);
    receive_all(&mut receiver, 300);
    tcp.shut_down();
    assert_eq!(receiver.receive().unwrap(), Received::End);
}

#[test]
fn receiver_that_stops_has_the_rest_by_the_socket() {
    let (mut sender, mut receiver, _memory) = ends::<Plain>();
    assert!(sender.go_up());
    assert_eq!(send(&mut sender, 300), Sent::Bytes(300));
    assert!(!receiver.incoming.stop().unwrap());
    assert_eq!(send(&mut sender, 50), Sent::Bytes(50));
    assert_eq!(sender.outgoing.path(), Path::Kernel);
    assert!(!sender.go_up());
    receive_all(&mut receiver, 350);
    assert!(receiver.incoming.stop().unwrap());
}

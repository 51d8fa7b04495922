//! Byte streams through the public API: between two processes, between threads that share an end, and in poll.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

use std::io::{ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::AsFd;
use std::path::Path;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use beeline::{
    Armed, ByteRead, ByteReceiver, ByteSender, Domain, Flushed, Polled, ReceiverOptions, RecvError,
    SendError, Shared,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// Longer than any machine needs; only a hang takes it.
const WATCHDOG: Duration = Duration::from_secs(60);
/// Says to a copy of this test which folder it is to meet in.
const FOLDER: &str = "BEELINE_TEST_BYTES_FOLDER";

/// SplitMix64: sizes and contents.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Mostly small, sometimes some windows long.
    fn size(&mut self) -> usize {
        let most = [16, 100, 3000, 20_000][self.next() as usize % 4];
        1 + self.next() as usize % most
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        (0..count.div_ceil(8)).flat_map(|_| self.next().to_le_bytes()).take(count).collect()
    }
}

/// FNV-1a, and how many bytes it is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Hash(u64, u64);

impl Hash {
    const EMPTY: Hash = Hash(0xcbf2_9ce4_8422_2325, 0);

    fn add(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
        self.1 += bytes.len() as u64;
    }
}

/// A copy of this program that runs the test of this name as the other process.
fn other_process(test: &str, folder: &Path) -> Child {
    let mut other = Command::new(std::env::current_exe().unwrap());
    other.args(["--exact", test, "--nocapture"]).env(FOLDER, folder);
    other.spawn().unwrap()
}

fn domain(folder: &Path) -> Domain {
    Domain::open_in(folder, "test").unwrap()
}

/// The other process: writes some megabytes, shuts down, and reads what the receiver says it got.
fn write_and_compare(folder: &Path) {
    let domain = domain(folder);
    let mut back = domain.receiver("back").unwrap().into_bytes();
    let mut sender = domain.sender_timeout("there", WATCHDOG).unwrap().into_bytes();
    let (mut random, mut hash) = (Random(std::process::id().into()), Hash::EMPTY);
    while hash.1 < 4 << 20 {
        let size = random.size();
        let bytes = random.bytes(size);
        let taken = match random.next() % 5 {
            0 => sender.write_more(&bytes).unwrap(),
            1 => {
                let (first, second) = bytes.split_at(size / 3);
                let slices = [IoSlice::new(first), IoSlice::new(&[]), IoSlice::new(second)];
                Write::write_vectored(&mut sender, &slices).unwrap()
            }
            2 => sender.try_write(&bytes).unwrap(),
            3 => sender.write(&bytes).unwrap(),
            _ => {
                sender.write_all(&bytes).unwrap();
                size
            }
        };
        hash.add(&bytes[..taken]);
    }
    sender.shut_down().unwrap();
    assert!(matches!(sender.write(b"more"), Err(SendError::ShutDown)));
    // This direction has ended; the other goes on.
    let mut answer = Vec::new();
    back.read_to_end(&mut answer).unwrap();
    assert_eq!(answer, [hash.0.to_le_bytes(), hash.1.to_le_bytes()].concat(), "{hash:?} was written");
    assert_eq!(sender.wait_acknowledged(WATCHDOG).unwrap(), Flushed::All);
    assert_eq!(sender.unacknowledged_bytes().unwrap(), 0);
}

/// Reads a whole stream in pieces of any size.
fn read_whole(receiver: &mut ByteReceiver) -> Hash {
    let (mut random, mut hash) = (Random(7), Hash::EMPTY);
    let (mut bytes, mut peeked) = (vec![0; 20_001], [0; 50]);
    loop {
        let offset = random.next() as usize % 100;
        let looked = match receiver.peek(offset as u64, &mut peeked).unwrap() {
            ByteRead::Bytes(count) => offset..offset + count,
            _ => 0..0,
        };
        let queued = receiver.queued_bytes();
        assert!(queued >= looked.end as u64);
        let size = random.size();
        let count = match random.next() % 4 {
            0 => {
                let (first, second) = bytes[..size].split_at_mut(size / 2);
                let slices = &mut [IoSliceMut::new(first), IoSliceMut::new(second)];
                Read::read_vectored(receiver, slices).unwrap()
            }
            1 => receiver.read_full(&mut bytes[..size]).unwrap(),
            2 => match receiver.read_timeout(&mut bytes[..size], WATCHDOG).unwrap() {
                ByteRead::Bytes(count) => count,
                other => {
                    assert_eq!(other, ByteRead::End);
                    0
                }
            },
            _ => receiver.read(&mut bytes[..size]).unwrap(),
        };
        assert!(count as u64 >= queued.min(size as u64), "{count} of {queued} queued bytes were read");
        if looked.end <= count && !looked.is_empty() {
            assert_eq!(bytes[looked.clone()], peeked[..looked.len()], "what was looked at is what is read");
        }
        if count == 0 {
            assert!(receiver.is_at_end());
            assert_eq!(receiver.try_read(&mut bytes).unwrap(), ByteRead::End);
            return hash;
        }
        hash.add(&bytes[..count]);
    }
}

#[test]
fn stream_of_another_process_comes_out_whole_and_the_other_direction_goes_on() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return write_and_compare(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let domain = domain(folder.path());
    // One that goes round often, and the default.
    for options in [ReceiverOptions::new().lines(128), ReceiverOptions::new()] {
        let mut receiver = domain.receiver_with("there", options).unwrap().into_bytes();
        let test = "stream_of_another_process_comes_out_whole_and_the_other_direction_goes_on";
        let mut other = other_process(test, folder.path());
        let hash = read_whole(&mut receiver);
        let mut back = domain.sender_timeout("back", WATCHDOG).unwrap().into_bytes();
        back.write_all(&hash.0.to_le_bytes()).unwrap();
        back.write_all(&hash.1.to_le_bytes()).unwrap();
        drop(back);
        assert!(other.wait().unwrap().success(), "{hash:?} was read");
        assert!(hash.1 >= 4 << 20);
    }
}

/// The other process: writes and ends without a word.
fn write_and_die(folder: &Path) {
    let mut sender = domain(folder).sender_timeout("there", WATCHDOG).unwrap().into_bytes();
    sender.write_all(&[3; 1000]).unwrap();
    assert_eq!(sender.write_more(&[4; 10]).unwrap(), 10);
    std::process::abort();
}

#[test]
fn process_that_ends_without_an_end_is_an_error_after_its_bytes_and_another_may_follow() {
    if let Some(folder) = std::env::var_os(FOLDER) {
        return write_and_die(Path::new(&folder));
    }
    let folder = tempfile::tempdir().unwrap();
    let domain = domain(folder.path());
    let mut receiver = domain.receiver("there").unwrap().into_bytes();
    let test = "process_that_ends_without_an_end_is_an_error_after_its_bytes_and_another_may_follow";
    let mut other = other_process(test, folder.path());
    let mut bytes = [0; 2000];
    assert_eq!(receiver.read_full(&mut bytes).unwrap(), 1000, "what was kept back is lost with its sender");
    for _ in 0..2 {
        let error = receiver.read(&mut bytes).unwrap_err();
        assert!(matches!(error, RecvError::SenderGone), "{error}");
        assert_eq!(Read::read(&mut receiver, &mut bytes).unwrap_err().kind(), ErrorKind::ConnectionReset);
        assert!(receiver.has_sender() && !receiver.is_at_end());
    }
    assert!(!other.wait().unwrap().success());
    receiver.next_stream();
    assert_eq!(receiver.try_read(&mut bytes).unwrap(), ByteRead::Nothing);
    let mut next = domain.sender("there").unwrap().into_bytes();
    next.write_all(b"next").unwrap();
    drop(next);
    let mut rest = String::new();
    receiver.read_to_string(&mut rest).unwrap();
    assert_eq!((&rest[..], receiver.is_at_end()), ("next", true));
}

/// Whether `child` returns `true` in a forked child, and does not panic.
fn is_true_in_a_forked_child(child: impl FnOnce() -> bool + std::panic::UnwindSafe) -> bool {
    let (mut said, mut say) = std::io::pipe().unwrap();
    if let fork::Fork::Child = fork::fork().unwrap() {
        let is_true = std::panic::catch_unwind(child).unwrap_or(false);
        let _ = say.write_all(&[is_true.into()]);
        // Not an exit, which would run what the test harness of the parent has registered.
        let _ = rustix::process::kill_process(rustix::process::getpid(), rustix::process::Signal::KILL);
    }
    drop(say);
    let mut answer = [0];
    said.read_exact(&mut answer).is_ok() && answer == [1]
}

#[test]
fn receiver_without_a_sender_in_a_forked_child_is_an_error_and_no_end() {
    let folder = tempfile::tempdir().unwrap();
    let domain = domain(folder.path());
    let mut bytes = domain.receiver("bytes").unwrap().into_bytes();
    let mut messages = domain.receiver("messages").unwrap();
    let forked = |found: Result<usize, RecvError>| matches!(found, Err(RecvError::Forked));
    let child = std::panic::AssertUnwindSafe(|| {
        let all = [
            forked(bytes.read(&mut [0])),
            forked(bytes.read_full(&mut [0])),
            Read::read(&mut bytes, &mut [0]).is_err_and(|error| error.kind() == ErrorKind::NotConnected),
            forked(messages.recv().map(|message| message.len())),
        ];
        all == [true; 4]
    });
    assert!(is_true_in_a_forked_child(child));
}

struct Pair {
    sender: ByteSender,
    receiver: ByteReceiver,
    _domain: Domain,
    _folder: tempfile::TempDir,
}

fn pair(lines: u32) -> Pair {
    let folder = tempfile::tempdir().unwrap();
    let domain = domain(folder.path());
    let receiver = domain.receiver_with("window", ReceiverOptions::new().lines(lines)).unwrap();
    let sender = domain.sender("window").unwrap().into_bytes();
    Pair { sender, receiver: receiver.into_bytes(), _domain: domain, _folder: folder }
}

#[test]
fn threads_that_share_a_sender_do_not_mix_their_writes() {
    let Pair { sender, mut receiver, .. } = pair(64);
    let shared = Shared::new(sender);
    std::thread::scope(|scope| {
        for thread in 0..4u8 {
            let shared = shared.clone();
            scope.spawn(move || {
                let mut random = Random(thread.into());
                for _ in 0..100 {
                    // Often more than the window holds: a write waits in the middle, and nobody else writes meanwhile.
                    let size = random.size() as u32;
                    let record = [&[thread][..], &size.to_le_bytes(), &vec![thread; size as usize]].concat();
                    let deadline = Some(Instant::now() + WATCHDOG);
                    shared.turn_until(deadline).expect("nobody hangs").write_all(&record).unwrap();
                }
            });
        }
        let (mut head, mut body) = ([0; 5], vec![0; 20_000]);
        for _ in 0..400 {
            assert_eq!(receiver.read_full(&mut head).unwrap(), 5);
            let size = u32::from_le_bytes([head[1], head[2], head[3], head[4]]) as usize;
            assert_eq!(receiver.read_full(&mut body[..size]).unwrap(), size);
            assert!(body[..size].iter().all(|byte| *byte == head[0]), "a write of another thread is in it");
        }
    });
    assert_eq!(receiver.queued_bytes(), 0);
    drop(shared);
    assert_eq!(receiver.read(&mut [0]).unwrap(), 0, "the last clone ends the stream");
}

#[test]
fn full_stream_takes_nothing_and_counts_are_those_of_both_ends() {
    let Pair { mut sender, mut receiver, .. } = pair(16);
    assert!(receiver.has_sender() || receiver.queued_bytes() == 0);
    let room = sender.room_bytes().unwrap();
    assert_eq!(sender.try_write(&[1; 5000]).unwrap(), room);
    assert_eq!(sender.write_timeout(&[1], Duration::from_millis(1)).unwrap(), 0);
    assert_eq!((sender.unacknowledged_bytes().unwrap(), receiver.queued_bytes()), (room as u64, room as u64));
    assert_eq!(sender.wait_acknowledged(Duration::from_millis(1)).unwrap(), Flushed::TimedOut);
    let mut bytes = [0; 5000];
    assert_eq!(receiver.read(&mut bytes).unwrap(), room);
    assert_eq!(receiver.read_timeout(&mut bytes, Duration::from_millis(1)).unwrap(), ByteRead::Nothing);
    assert_eq!((sender.unacknowledged_bytes().unwrap(), sender.room_bytes().unwrap()), (0, room));
    assert_eq!(sender.write_more(b"kept").unwrap(), 4);
    assert_eq!((receiver.queued_bytes(), sender.unacknowledged_bytes().unwrap()), (0, 4));
    sender.send_kept();
    assert_eq!((receiver.queued_bytes(), sender.is_receiver_gone()), (4, false));
}

/// Whether the descriptor becomes readable in time.
fn is_readable(fd: impl AsFd, seconds: i64) -> bool {
    let limit = Timespec { tv_sec: seconds, tv_nsec: 0 };
    poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&limit)).unwrap() == 1
}

#[test]
fn stream_in_poll_is_ready_for_bytes_and_for_its_end() {
    let Pair { mut sender, receiver, .. } = pair(64);
    let mut receiver = Polled::new(receiver).unwrap();
    let mut bytes = [0; 10];
    while receiver.arm() == Armed::Ready {
        assert_eq!(receiver.try_read(&mut bytes).unwrap(), ByteRead::Nothing);
    }
    assert!(!is_readable(&receiver, 0));
    sender.write_all(b"bytes").unwrap();
    assert!(is_readable(&receiver, 60));
    assert_eq!(receiver.try_read(&mut bytes[..2]).unwrap(), ByteRead::Bytes(2));
    assert_eq!(receiver.arm(), Armed::Ready, "half a message is left");
    assert_eq!(receiver.try_read(&mut bytes).unwrap(), ByteRead::Bytes(3));
    while receiver.arm() == Armed::Ready {
        assert_eq!(receiver.try_read(&mut bytes).unwrap(), ByteRead::Nothing);
    }
    sender.shut_down().unwrap();
    assert!(is_readable(&receiver, 60));
    assert_eq!(receiver.try_read(&mut bytes).unwrap(), ByteRead::End);
    assert_eq!(receiver.arm(), Armed::Ready, "an end stays");
}

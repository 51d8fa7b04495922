//! Another tuning in the middle of traffic: the sender's kernel and how the receiver looks change at any time, and every message
//! arrives once, whole and in order.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

use std::error::Error as _;
use std::time::{Duration, Instant};

use beeline::{
    Domain, Prefetch, ReceiveTuning, ReceiverOptions, RecvError, SenderOptions, Sent, StoreKernel, Traffic,
};

/// Longer than any machine needs; only a hang takes it.
const WATCHDOG: Duration = Duration::from_secs(60);
const LINES: u32 = 512;

/// Numbers that look random and are the same each time (Marsaglia's xorshift64).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % end
    }

    fn tuning(&mut self) -> ReceiveTuning {
        let lines = self.below(80) as u32;
        let prefetch =
            [Prefetch::None, Prefetch::Read { lines }, Prefetch::Write { lines }][self.below(3) as usize];
        ReceiveTuning { prefetch, in_groups: self.below(2) == 0, credit_parts: 1 << self.below(10) }
    }

    fn kernel(&mut self) -> StoreKernel {
        let kernels: Vec<_> =
            StoreKernel::available().into_iter().filter(|kernel| kernel.is_for_memory()).collect();
        kernels[self.below(kernels.len() as u64) as usize]
    }
}

/// What is sent as message `number`: up to seven lines, most of them one.
fn message(number: u64) -> Vec<u8> {
    let bytes = if number.is_multiple_of(5) { number * 31 % 400 } else { number * 7 % 57 };
    (0..bytes.max(8)).map(|at| (number.wrapping_mul(0x9e37_79b9) >> (at % 8 * 8)) as u8 ^ at as u8).collect()
}

#[test]
fn messages_arrive_whatever_changes_between_them() {
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(folder.path(), "test").unwrap();
    let mut receiver = domain.receiver_with("window", ReceiverOptions::new().lines(LINES)).unwrap();
    let mut sender = domain.sender("window").unwrap();
    let (mut random, mut sent, mut received) = (Random(7), 0u64, 0u64);
    while received < 40_000 {
        let kernel = random.kernel();
        sender.set_kernel(kernel).unwrap();
        assert_eq!(sender.kernel(), kernel);
        for _ in 0..random.below(600) {
            if sender.try_send(&message(sent)).unwrap() == Sent::Full {
                break;
            }
            sent += 1;
        }
        receiver.set_tuning(random.tuning());
        let mut bytes = Vec::new();
        let max = random.below(600) as usize;
        receiver
            .drain(max, |mut given| {
                bytes.clear();
                given.copy_to(&mut bytes);
                assert_eq!(bytes, message(received));
                received += 1;
            })
            .unwrap();
    }
}

#[test]
fn two_threads_that_change_at_random_lose_nothing() {
    const COUNT: u64 = 300_000;
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(folder.path(), "test").unwrap();
    let mut receiver = domain.receiver_with("window", ReceiverOptions::new().lines(LINES)).unwrap();
    // Set before there is a sender: it is for every window that comes.
    receiver.set_tuning(Random(3).tuning());
    let sending = std::thread::spawn({
        let domain = domain.clone();
        move || {
            let options = SenderOptions::new().traffic(Traffic::Stream).timeout(WATCHDOG);
            let mut sender = domain.sender_with("window", options).unwrap();
            let mut random = Random(11);
            for number in 0..COUNT {
                if random.below(200) == 0 {
                    sender.set_kernel(random.kernel()).unwrap();
                }
                assert_eq!(sender.send_timeout(&message(number), WATCHDOG).unwrap(), Sent::Sent);
            }
        }
    });
    let (mut random, mut received, mut moved) = (Random(13), 0, Instant::now());
    while received < COUNT {
        assert!(moved.elapsed() < WATCHDOG, "{received} messages");
        if random.below(200) == 0 {
            receiver.set_tuning(random.tuning());
        }
        if let Some(given) = receiver.recv_timeout(Duration::from_millis(100)).unwrap() {
            assert_eq!(given.to_vec(), message(received));
            (received, moved) = (received + 1, Instant::now());
        }
    }
    sending.join().unwrap();
    assert!(matches!(receiver.recv_timeout(WATCHDOG), Err(RecvError::SenderGone)));
}

#[test]
fn kernel_that_cannot_be_used_is_refused_and_the_last_one_stays() {
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(folder.path(), "test").unwrap();
    let mut receiver = domain.receiver("window").unwrap();
    let mut sender = domain.sender("window").unwrap();
    let before = sender.kernel();
    let error = sender.set_kernel(StoreKernel::St64b).unwrap_err();
    assert!(error.source().unwrap().to_string().contains("st64b"), "{error}");
    assert_eq!(sender.kernel(), before);
    sender.send(b"still there").unwrap();
    assert_eq!(receiver.recv().unwrap().to_vec(), b"still there");
}

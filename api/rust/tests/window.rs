//! Windows through the public API: what a program sees of sending, receiving, batches, and of the other side's end.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

use std::error::Error as _;
use std::io::Write;
use std::time::Duration;

use beeline::{
    ConnectError, Domain, FencePolicy, Flushed, OpenError, Prefetch, ReceiveTuning, Receiver,
    ReceiverOptions, RecvError, SendError, Sender, SenderEnd, SenderOptions, Sent, StoreKernel, Taken,
    Tuning, WaitPolicy,
};

/// Longer than any machine needs; only a hang takes it.
const WATCHDOG: Duration = Duration::from_secs(60);

struct Pair {
    sender: Sender,
    receiver: Receiver,
    domain: Domain,
    _folder: tempfile::TempDir,
}

fn pair(lines: u32, fences: FencePolicy) -> Pair {
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(folder.path(), "test").unwrap();
    let receiver = domain.receiver_with("window", ReceiverOptions::new().lines(lines)).unwrap();
    let sender = domain.sender_with("window", SenderOptions::new().fences(fences)).unwrap();
    Pair { sender, receiver, domain, _folder: folder }
}

fn recv(receiver: &mut Receiver) -> Vec<u8> {
    receiver.recv_timeout(WATCHDOG).unwrap().expect("a message").to_vec()
}

#[test]
fn messages_of_every_size_arrive_while_the_window_wraps() {
    for fences in FencePolicy::ALL {
        let Pair { mut sender, mut receiver, domain: _domain, _folder } = pair(64, fences);
        for bytes in (0..=sender.max_message_bytes()).step_by(13) {
            let message: Vec<u8> = (0..bytes).map(|i| (i * 7 + bytes) as u8).collect();
            sender.send(&message).unwrap();
            assert_eq!(recv(&mut receiver), message, "{bytes} bytes, fences {fences}");
        }
        let error = sender.send(&vec![0; sender.max_message_bytes() + 1]).unwrap_err();
        assert!(error.remedy().contains("more lines"), "{error}");
    }
}

/// A tuning decides speed alone, whatever its values are.
#[test]
fn messages_arrive_whatever_the_tuning_is() {
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(folder.path(), "test").unwrap();
    let default = ReceiveTuning::for_sender(Some(StoreKernel::Cached));
    let far = Prefetch::Write { lines: u32::MAX };
    let tunings = [
        ReceiveTuning { prefetch: Prefetch::None, in_groups: false, credit_parts: 0 },
        ReceiveTuning { prefetch: far, credit_parts: u32::MAX, ..default },
        ReceiveTuning { prefetch: Prefetch::Read { lines: 1 }, credit_parts: 1, ..default },
        Tuning::kept().receive,
    ];
    for (index, tuning) in tunings.into_iter().enumerate() {
        let name = format!("window-{index}");
        let options = ReceiverOptions::new().lines(64).tuning(tuning);
        let mut receiver = domain.receiver_with(&name, options).unwrap();
        let mut sender = domain.sender(&name).unwrap();
        let (mut sent, mut received) = (0u64, 0u64);
        while received < 1000 {
            while sender.try_send(&sent.to_le_bytes()).unwrap() == Sent::Sent {
                sent += 1;
            }
            let mut check = |word| {
                assert_eq!(word, received, "{tuning}");
                received += 1;
            };
            receiver.drain(17, |message| check(message.word(0))).unwrap();
            if let Some(message) = receiver.try_recv().unwrap() {
                check(message.word(0));
            }
        }
    }
}

#[test]
fn full_and_empty_are_said_and_not_errors() {
    let Pair { mut sender, mut receiver, domain: _domain, _folder } = pair(8, FencePolicy::None);
    assert!(receiver.try_recv().unwrap().is_none());
    assert!(receiver.recv_timeout(Duration::from_millis(1)).unwrap().is_none());
    let sent = (0..100).take_while(|_| sender.try_send(b"one line").unwrap() == Sent::Sent).count();
    assert_eq!(sent, 8);
    assert_eq!(sender.flush(Duration::from_millis(1)).unwrap(), Flushed::TimedOut, "nothing was received");
    let moment = Duration::from_millis(1);
    assert_eq!(sender.send_timeout(b"one line", moment).unwrap(), Sent::Full);
    assert!(!sender.wait_for_room(8, moment).unwrap());
    assert!(sender.wait_for_room(1000, moment).is_err(), "no window of 8 lines ever has that room");
    for _ in 0..sent {
        assert_eq!(recv(&mut receiver), b"one line");
    }
    assert!(receiver.try_recv().unwrap().is_none());
    assert_eq!(sender.flush(WATCHDOG).unwrap(), Flushed::All);
    assert!(sender.wait_for_room(sender.max_message_bytes(), Duration::ZERO).unwrap());
    assert_eq!(sender.send_timeout(b"one line", Duration::ZERO).unwrap(), Sent::Sent);
    assert_eq!(recv(&mut receiver), b"one line");
}

#[test]
fn domain_of_the_layer_below_is_the_same_one() {
    let Pair { sender: _sender, receiver: _receiver, domain, _folder } = pair(8, FencePolicy::None);
    let root = Some(_folder.path().to_owned());
    let config = beeline_domain::DomainConfig { root, name: domain.name().to_owned() };
    let below = Domain::from(beeline_domain::Domain::open(&config).unwrap());
    assert_eq!(below.name(), domain.name());
    assert!(below.receiver("window").is_err(), "the name is offered already");
}

#[test]
fn a_message_is_read_in_place() {
    let Pair { mut sender, mut receiver, domain: _domain, _folder } = pair(8, FencePolicy::None);
    sender.send(b"abcdefghij").unwrap();
    let mut message = receiver.recv_timeout(WATCHDOG).unwrap().unwrap();
    assert_eq!((message.len(), message.is_empty()), (10, false));
    assert_eq!(message.word(0), u64::from_le_bytes(*b"abcdefgh"));
    assert_eq!(message.word(1), u64::from(u16::from_le_bytes(*b"ij")));
    assert_eq!(message.word(2), 0);
    let mut front = [0; 4];
    assert_eq!((message.copy_out(&mut front), &front), (4, b"abcd"));
    assert_eq!((message.copy_out_from(1, &mut front), &front), (2, b"ijcd"));
    assert_eq!(message.copy_out_from(2, &mut front), 0);
    assert_eq!(message.copy_out_from(usize::MAX, &mut front), 0);
    drop(message);
    sender.send(&[7; 100]).unwrap();
    let mut bytes = [0; 200];
    assert_eq!(receiver.drain(1, |mut last| assert_eq!(last.copy_out_from(2, &mut bytes), 84)).unwrap(), 1);
    assert_eq!((&bytes[..84], &bytes[84..]), (&[7; 84][..], &[0; 116][..]));
}

#[test]
fn a_message_is_built_in_place_or_given_up() {
    let Pair { mut sender, mut receiver, domain: _domain, _folder } = pair(64, FencePolicy::None);
    let mut message = sender.reserve(300).unwrap();
    message.put_u64(7).unwrap();
    message.write(b"text ").unwrap();
    write!(message, "and {}", 42).unwrap();
    assert_eq!(message.write(&[0; 300]).unwrap_err().reserved_bytes, 300);
    assert_eq!(message.left_bytes(), 300 - 8 - 11);
    message.commit();
    sender.reserve(100).unwrap().write(b"given up").unwrap();
    sender.send(b"after").unwrap();
    assert_eq!(recv(&mut receiver), [&7u64.to_le_bytes()[..], b"text and 42"].concat());
    assert_eq!(recv(&mut receiver), b"after");
}

#[test]
fn a_batch_is_received_message_by_message() {
    let Pair { mut sender, mut receiver, domain: _domain, _folder } = pair(64, FencePolicy::None);
    let mut batch = sender.batch(64).unwrap();
    assert!(batch.is_empty());
    let count = (0..100u8).take_while(|n| batch.push(&[*n; 6]).unwrap() == Sent::Sent).count();
    assert_eq!((count, batch.len()), (8, 8));
    batch.send();
    for n in 0..8 {
        assert_eq!(recv(&mut receiver), [n; 6]);
    }
    drop(sender.batch(64).unwrap());
    sender.send(b"an empty batch leaves no trace").unwrap();
    assert_eq!(recv(&mut receiver).len(), 30);
}

#[test]
fn batch_left_by_an_error_publishes_nothing() {
    fn half_a_batch(sender: &mut Sender) -> beeline::Result<()> {
        let mut batch = sender.batch(500)?;
        for _ in 0..20 {
            assert_eq!(batch.push(&[1; 20])?, Sent::Sent);
        }
        let _ = batch.push(&[2; 600])?;
        batch.send();
        Ok(())
    }
    let Pair { mut sender, mut receiver, domain: _domain, _folder } = pair(64, FencePolicy::None);
    assert!(half_a_batch(&mut sender).is_err(), "600 bytes never fit a batch of 500");
    sender.send(b"after").unwrap();
    assert_eq!(recv(&mut receiver), b"after");
}

#[test]
fn one_sender_after_the_other() {
    let Pair { mut sender, mut receiver, domain, _folder } = pair(64, FencePolicy::None);
    let error = domain.sender("window").unwrap_err();
    assert!(matches!(error, ConnectError::Refused { .. }), "a window has one sender: {error}");
    for round in 0..3u8 {
        sender.send(&[round]).unwrap();
        drop(sender);
        assert_eq!(recv(&mut receiver), [round], "what a sender completed is received after its end");
        let end = receiver.recv().map(|message| message.len());
        assert!(matches!(end, Err(RecvError::SenderGone)), "{end:?}");
        assert!(!receiver.has_sender());
        sender = domain.sender("window").unwrap();
    }
    drop(receiver);
    let gone = std::iter::repeat_with(|| sender.send(&[0; 1000])).find_map(Result::err);
    assert!(matches!(gone, Some(SendError::ReceiverGone)), "{gone:?}");
    assert!(sender.is_receiver_gone());
    assert!(matches!(domain.sender("window"), Err(ConnectError::Absent { .. })));
}

#[test]
fn sender_that_closes_in_the_middle_of_a_message_is_said_to_have_closed() {
    type Look = fn(&mut Receiver) -> Option<RecvError>;
    let looks: [Look; 3] = [
        |receiver| receiver.recv_timeout(WATCHDOG).err(),
        |receiver| std::iter::repeat_with(|| receiver.try_recv().err()).find_map(|error| error),
        |receiver| std::iter::repeat_with(|| receiver.drain(9, |_| ()).err()).find_map(|error| error),
    ];
    for look in looks {
        let Pair { mut sender, mut receiver, domain: _domain, _folder } = pair(64, FencePolicy::None);
        leave_half_a_message(&mut sender);
        drop(sender);
        let error = look(&mut receiver);
        assert_closed(error);
    }
    let Pair { mut sender, receiver, domain: _domain, _folder } = pair(64, FencePolicy::None);
    leave_half_a_message(&mut sender);
    drop(sender);
    let mut stream = receiver.into_bytes();
    assert_closed(stream.read(&mut [0; 8]).err());
}

/// What a program leaves that forgets a reservation: some lines, and no header.
fn leave_half_a_message(sender: &mut Sender) {
    let mut message = sender.reserve(1000).unwrap();
    message.write_all(&[7; 512]).unwrap();
    std::mem::forget(message);
}

fn assert_closed(error: Option<RecvError>) {
    let text = error.as_ref().map(ToString::to_string).unwrap_or_default();
    assert!(matches!(error, Some(RecvError::Torn(torn)) if torn.sender == SenderEnd::Closed), "{text}");
    assert!(text.starts_with("the sender closed the window and left a torn message"), "{text}");
}

#[test]
fn two_threads_and_a_small_window_lose_nothing_however_they_wait() {
    let sleepy = WaitPolicy::new().spins(10).yields(0).sleep(Some(Duration::from_millis(100)));
    let yielding = WaitPolicy::new().spins(10).yields(0).sleep(None);
    for wait in [sleepy, yielding] {
        let folder = tempfile::tempdir().unwrap();
        let domain = Domain::open_in(folder.path(), "test").unwrap();
        let mut receiver =
            domain.receiver_with("window", ReceiverOptions::new().lines(8).wait(wait)).unwrap();
        let sending = std::thread::spawn(move || {
            let mut sender = domain.sender_with("window", SenderOptions::new().wait(wait)).unwrap();
            for number in 0..5000u64 {
                sender.send(&number.to_le_bytes()).unwrap();
            }
        });
        for number in 0..5000 {
            let message = receiver.recv_timeout(WATCHDOG).unwrap().expect("a message");
            assert_eq!(message.word(0), number);
        }
        sending.join().unwrap();
        assert!(matches!(receiver.recv(), Err(RecvError::SenderGone)));
    }
}

#[test]
fn errors_say_where_and_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(folder.path(), "test").unwrap();
    assert_eq!(domain.name(), "test");
    let error = domain.sender("nobody").unwrap_err();
    assert!(error.to_string().contains("nobody") && error.remedy().contains("start the receiver"), "{error}");
    let error = domain.receiver_with("odd", ReceiverOptions::new().lines(3)).unwrap_err();
    assert!(error.source().is_some_and(|source| source.to_string().contains("power of two")), "{error}");
    let error = Domain::open("no/such").unwrap_err();
    assert!(matches!(&error, OpenError::Name { name, .. } if name == "no/such"), "{error}");
    let error = domain.port("nic").unwrap_err();
    assert!(error.remedy().contains("beeline nic"), "{error}");
}

#[test]
fn drain_takes_what_has_arrived_and_frees_it() {
    let Pair { mut sender, mut receiver, domain: _domain, _folder } = pair(8, FencePolicy::None);
    assert_eq!(receiver.drain(10, |_| panic!("nothing was sent")).unwrap(), 0);
    for number in 0..100u64 {
        for part in 0..3 {
            sender.send(&(number * 3 + part).to_le_bytes()).unwrap();
        }
        let mut words = Vec::new();
        assert_eq!(receiver.drain(2, |message| words.push(message.word(0))).unwrap(), 2);
        let mut sum = 0;
        let rest = receiver.drain(9, |message| {
            words.push(message.word(0));
            sum = message.fold_words(sum, u64::wrapping_add);
            message.for_each_word(|word| assert_eq!(word, number * 3 + 2));
        });
        assert_eq!((rest.unwrap(), sum), (1, number * 3 + 2));
        assert_eq!(words, [number * 3, number * 3 + 1, number * 3 + 2]);
    }
    sender.send(b"last").unwrap();
    drop(sender);
    let mut text = [0; 4];
    let end = std::iter::repeat_with(|| {
        receiver.drain(9, |mut message| assert_eq!(message.copy_out(&mut text), 4))
    })
    .find_map(Result::err);
    assert!(matches!(end, Some(RecvError::SenderGone)), "{end:?}");
    assert_eq!(&text, b"last");
}

/// More than a window of messages in one call, taken in bulk by a receiver that sleeps in between.
#[test]
fn messages_sent_in_bulk_arrive_in_order_and_wake_a_sleeping_receiver() {
    let sleepy = WaitPolicy::new().spins(1).yields(0).sleep(Some(Duration::from_secs(5)));
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(folder.path(), "test").unwrap();
    let mut receiver = domain.receiver_with("window", ReceiverOptions::new().lines(32).wait(sleepy)).unwrap();
    let messages: Vec<Vec<u8>> = (0..2000usize)
        .map(|number| number.to_le_bytes().repeat(if number % 50 == 49 { 30 } else { 1 + number % 7 }))
        .collect();
    let sent = messages.clone();
    let sending = std::thread::spawn(move || {
        let mut sender = domain.sender_with("window", SenderOptions::new().wait(sleepy)).unwrap();
        sender.send_all(&sent).unwrap();
        let too_long = vec![0; sender.max_message_bytes() + 1];
        // The receiver may have freed nothing of the last ones yet.
        assert!(sender.wait_for_room(4, Duration::from_secs(60)).unwrap());
        assert_eq!(sender.try_send_all(&[&b"last"[..], &too_long]).unwrap(), Taken(1));
        assert!(matches!(sender.send_all(&[too_long]), Err(SendError::TooLong { .. })));
    });
    let mut found = Vec::new();
    while found.len() < messages.len() {
        // The first of a burst is waited for, the rest is taken in bulk.
        found.push(recv(&mut receiver));
        let _ = receiver.drain(100, |mut message| {
            let mut bytes = Vec::new();
            message.copy_to(&mut bytes);
            found.push(bytes);
        });
    }
    sending.join().unwrap();
    if found.len() == messages.len() {
        found.push(recv(&mut receiver));
    }
    assert_eq!(found.pop().as_deref(), Some(&b"last"[..]));
    assert_eq!(found, messages);
}

#[test]
fn sender_waits_for_a_receiver_that_comes_later() {
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(folder.path(), "test").unwrap();
    let (other, short) = (domain.clone(), Duration::from_millis(20));
    let error = domain.sender_timeout("late", short).unwrap_err();
    assert!(matches!(&error, ConnectError::TimedOut { waited, .. } if *waited == short), "{error}");
    assert!(error.to_string().contains("20 ms for window `late`"), "{error}");
    let waiting = std::thread::spawn(move || {
        other.sender_timeout("late", WATCHDOG).map(|mut sender| sender.send(b"here"))
    });
    let mut receiver = domain.receiver("late").unwrap();
    assert_eq!(recv(&mut receiver), b"here");
    waiting.join().unwrap().unwrap().unwrap();
}

#[test]
fn named_kernel_is_used_and_one_this_machine_lacks_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(folder.path(), "test").unwrap();
    let mut receiver = domain.receiver("window").unwrap();
    let lacking = if cfg!(target_arch = "aarch64") { StoreKernel::NtSse2 } else { StoreKernel::Stnp };
    let error = domain.sender_with("window", SenderOptions::new().kernel(lacking)).unwrap_err();
    assert!(matches!(error, ConnectError::Options { .. }), "{error}");
    for kernel in StoreKernel::available().into_iter().filter(|kernel| kernel.is_for_memory()) {
        let mut sender = domain.sender_with("window", SenderOptions::new().kernel(kernel)).unwrap();
        sender.send(kernel.name().as_bytes()).unwrap();
        assert_eq!(recv(&mut receiver), kernel.name().as_bytes());
        drop(sender);
        assert!(matches!(receiver.recv(), Err(RecvError::SenderGone)));
    }
}

#[test]
fn no_message_allocates() {
    let Pair { mut sender, mut receiver, domain: _domain, _folder } = pair(64, FencePolicy::None);
    let message = [7; 200];
    let mut bytes = [0; 200];
    // A receiver without a sender waits in the kernel; from here on it has one.
    sender.send(&message).unwrap();
    assert_eq!(recv(&mut receiver), message);
    let counted = allocation_counter::measure(|| {
        for round in 0..1000 {
            let length = round % 200;
            while sender.try_send(&message[..length]).unwrap() == Sent::Full {}
            let mut batch = sender.batch(64).unwrap();
            while batch.push(&message[..6]).unwrap() == Sent::Sent {}
            batch.send();
            let mut reserved = sender.reserve(100).unwrap();
            reserved.write(&message[..50]).unwrap();
            reserved.commit();
            for _ in 0..10 {
                receiver.recv_timeout(WATCHDOG).unwrap().expect("a message").copy_out(&mut bytes);
            }
            assert!(receiver.try_recv().unwrap().is_none());
        }
    });
    assert_eq!(counted.count_total, 0);
}

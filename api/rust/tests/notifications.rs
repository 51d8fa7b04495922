//! Notifiers and subscriptions of one process; `os/domain` has the processes that end and that are hostile.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc;
use std::time::Duration;

use beeline::{
    Answer, ConnectError, Domain, Error, Notified, Notifier, NotifierEvent, NotifierOptions, NotifyError,
    OfferError, Subscriber, SubscriptionEnded, Target,
};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

/// More than anything here takes on the busiest machine.
const WATCHDOG: Duration = Duration::from_secs(60);

fn domain() -> (tempfile::TempDir, Domain) {
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(folder.path(), "test").unwrap();
    (folder, domain)
}

fn joined(notifier: &Notifier) -> Subscriber {
    match notifier.event_timeout(WATCHDOG) {
        Some(NotifierEvent::Joined(subscriber)) => subscriber,
        other => panic!("nobody has joined: {other:?}"),
    }
}

fn is_readable(descriptor: impl AsFd, limit_s: i64) -> bool {
    let limit = Timespec { tv_sec: limit_s, tv_nsec: 0 };
    poll(&mut [PollFd::new(&descriptor, PollFlags::IN)], Some(&limit)).unwrap() == 1
}

#[test]
fn notifications_and_answers_come_in_one_order() {
    let (_folder, domain) = domain();
    let options = NotifierOptions::new();
    let mut told = 0u64;
    let notifier = domain.notifier_with("table", options, move |subscriber, request, _| {
        let count = u64::from(request.first().copied().unwrap_or(0));
        for _ in 0..count {
            told += 1;
            let outcome = subscriber.notify(&told.to_le_bytes(), &[]).map_err(|error| error.to_string())?;
            assert_eq!(outcome, Notified::Accepted);
        }
        Ok(Answer::new(told.to_le_bytes()))
    });
    let _notifier = notifier.unwrap();
    let table = domain.subscribe_with("table", &[2], &[], Duration::ZERO).unwrap();
    assert_eq!(table.first_answer().payload, 2u64.to_le_bytes());
    let mut next = 1u64;
    for count in [0u8, 1, 5] {
        let answer = table.call(&[count], &[]).unwrap();
        let all = u64::from_le_bytes(answer.payload.try_into().unwrap());
        // All that was told before the answer is there without a wait.
        while let Some(notification) = table.try_next().unwrap() {
            assert_eq!(notification.payload, next.to_le_bytes());
            next += 1;
        }
        assert_eq!(next, all + 1);
    }
}

#[test]
fn descriptors_travel_both_ways() {
    let (_folder, domain) = domain();
    let notifier = domain.notifier_with("memory", NotifierOptions::new(), |_, _, fds: Vec<OwnedFd>| {
        // Back to where it came from.
        Ok(Answer { payload: vec![fds.len() as u8], fds })
    });
    let notifier = notifier.unwrap();
    let (mut reader, writer) = std::io::pipe().unwrap();
    let mut memory = domain.subscribe_with("memory", b"", &[writer.as_fd()], Duration::ZERO).unwrap();
    drop(writer);
    assert_eq!(memory.first_answer().payload, [1]);
    let [back] = <[OwnedFd; 1]>::try_from(memory.take_fds()).unwrap();
    assert!(memory.take_fds().is_empty());
    let told = joined(&notifier).notify(b"here", &[back.as_fd()]).unwrap();
    assert_eq!(told, Notified::Accepted);
    drop(back);
    let mut notification = memory.next().unwrap();
    let mut file = std::fs::File::from(notification.fds.pop().unwrap());
    std::io::Write::write_all(&mut file, b"through two descriptors").unwrap();
    drop(file);
    let mut found = String::new();
    std::io::Read::read_to_string(&mut reader, &mut found).unwrap();
    assert_eq!(found, "through two descriptors");
}

#[test]
fn subscriber_without_room_is_told_nothing_and_said_to_have_room_later() {
    let (_folder, domain) = domain();
    let notifier = domain.notifier("fast").unwrap();
    assert!(!is_readable(&notifier, 0));
    let slow = domain.subscribe("fast").unwrap();
    assert!(is_readable(&notifier, 60));
    let subscriber = joined(&notifier);
    assert!(!is_readable(&notifier, 0) && notifier.try_event().is_none());
    let mut accepted = 0u64;
    while subscriber.notify(&accepted.to_le_bytes(), &[]).unwrap() == Notified::Accepted {
        accepted += 1;
        assert!(accepted < 100_000, "somebody holds without bound");
    }
    assert!(accepted >= 256);
    assert!(is_readable(&slow, 60));
    for number in 0..accepted {
        assert_eq!(slow.next().unwrap().payload, number.to_le_bytes());
    }
    assert!(matches!(notifier.event_timeout(WATCHDOG), Some(NotifierEvent::HasRoom(_))));
    assert_eq!(subscriber.notify(b"again", &[]).unwrap(), Notified::Accepted);
    assert_eq!(slow.next_timeout(WATCHDOG).unwrap().unwrap().payload, b"again");
}

#[test]
fn coming_and_going_fills_no_queue() {
    let (_folder, domain) = domain();
    let notifier = domain.notifier("door").unwrap();
    let stays = domain.subscribe("door").unwrap();
    let first = joined(&notifier);
    let number = first.id().number();
    assert_eq!(notifier.subscriber(number).map(|it| it.id()), Some(first.id()));
    for _ in 0..50 {
        drop(domain.subscribe("door").unwrap());
    }
    // Those that the program never heard of have left no trace; the last one may be on its way out.
    let last = domain.subscribe("door").unwrap();
    let mut events = 0;
    while notifier.subscribers().len() > 2 {
        std::thread::yield_now();
    }
    while let Some(event) = notifier.try_event() {
        assert!(matches!(event, NotifierEvent::Joined(_)), "{event:?}");
        events += 1;
    }
    assert_eq!(events, 1, "the one that is there");
    drop(stays);
    match notifier.event_timeout(WATCHDOG) {
        Some(NotifierEvent::Left(subscriber)) => assert_eq!(subscriber.id(), first.id()),
        other => panic!("{other:?}"),
    }
    assert!(first.is_gone() && matches!(first.notify(b"", &[]), Err(NotifyError::Gone)));
    assert!(notifier.subscriber(number).is_none());
    assert_eq!(first.pid(), Some(std::process::id()));
    drop(last);
}

#[test]
fn callback_may_call_and_ends_with_the_reason() {
    let (_folder, domain) = domain();
    let notifier = domain
        .notifier_with("echo", NotifierOptions::new(), |_, request, _| Ok(Answer::new(request)))
        .unwrap();
    let echo = std::sync::Arc::new(domain.subscribe("echo").unwrap());
    let (say, said) = mpsc::channel();
    let thread = echo.deliver_to({
        let echo = std::sync::Arc::clone(&echo);
        move |told| {
            let text = match told {
                Ok(notification) => echo.call(&notification.payload, &[]).unwrap().payload,
                Err(ended) => ended.to_string().into_bytes(),
            };
            say.send(text).unwrap();
        }
    });
    let thread = thread.unwrap();
    let subscriber = joined(&notifier);
    assert_eq!(subscriber.notify(b"called", &[]).unwrap(), Notified::Accepted);
    assert_eq!(said.recv_timeout(WATCHDOG).unwrap(), b"called");
    subscriber.disconnect();
    assert_eq!(said.recv_timeout(WATCHDOG).unwrap(), b"the notifier has ended the subscription");
    drop(thread);
    assert!(matches!(echo.next(), Err(SubscriptionEnded::Closed)));
}

#[test]
fn what_cannot_be_says_why_and_what_to_do() {
    let (_folder, domain) = domain();
    let absent = domain.subscribe("nobody").unwrap_err();
    assert_eq!(absent.to_string().split(':').next(), Some("nobody offers notifier `nobody`"));
    assert!(absent.remedy().contains("start the notifier"));
    let timed_out = domain.subscribe_timeout("nobody", Duration::from_millis(1)).unwrap_err();
    assert!(
        matches!(&timed_out, ConnectError::TimedOut { target: Target::Notifier(name), .. } if name == "nobody")
    );
    let silent = domain.notifier("silent").unwrap();
    assert!(matches!(domain.notifier("silent"), Err(OfferError::Taken { .. })));
    let refused = domain.subscribe_with("silent", b"please", &[], Duration::ZERO).unwrap_err();
    assert!(refused.to_string().contains("answers nothing"), "{refused}");
    assert!(silent.subscribers().is_empty() && silent.try_event().is_none(), "who is refused has not joined");
    let subscription = domain.subscribe("silent").unwrap();
    assert!(subscription.call(b"please", &[]).is_err());
    let subscriber = joined(&silent);
    let too_large = subscriber.notify(&[0; 4097], &[]).unwrap_err();
    assert!(matches!(too_large, NotifyError::TooLarge { bytes: 4097, fds: 0 }));
    assert!(Error::from(too_large).remedy().contains("4096 bytes"));
    drop(silent);
    let ended = subscription.next().unwrap_err();
    assert!(matches!(ended, SubscriptionEnded::Closed), "{ended}");
    assert!(ended.remedy().contains("subscribe again"));
}

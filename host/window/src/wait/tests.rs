use std::time::{Duration, Instant};

use beeline_wait::{Sleeper, Waiter};

use super::*;
use crate::WaitPolicy;
use crate::test_memory::TestWindow;
use crate::writer::tests::pair;

/// A sleeper that writes down what it is asked and does something while it "sleeps".
struct Script<F> {
    calls: Vec<&'static str>,
    asleep: F,
    peer_gone: bool,
}

impl<F: FnMut()> Script<F> {
    fn new(asleep: F) -> Self {
        Script { calls: Vec::new(), asleep, peer_gone: false }
    }
}

impl<F: FnMut()> Sleeper for Script<F> {
    fn prepare(&mut self) {
        self.calls.push("prepare");
    }

    fn park(&mut self, limit: Duration) {
        assert!(limit <= Duration::from_secs(60));
        self.calls.push("park");
        (self.asleep)();
    }

    fn cancel(&mut self) {
        self.calls.push("cancel");
    }

    fn is_peer_gone(&self) -> bool {
        self.peer_gone
    }
}

const SLEEP_AT_ONCE: WaitPolicy = WaitPolicy::new().spins(0).yields(0).sleep(Some(Duration::from_secs(60)));

#[test]
fn a_receiver_sleeps_until_a_message_is_there() -> Result<(), ReceiveError> {
    let (_, mut writer, mut receiver) = pair(8);
    let mut naps = 0;
    let mut sleeper = Script::new(|| {
        naps += 1;
        if naps == 2 {
            assert_eq!(writer.try_send(b"awake"), Ok(Sent::Sent));
        }
    });
    let message =
        receiver.recv_wait(&mut Waiter::new(&SLEEP_AT_ONCE, &mut sleeper, None))?.expect("no deadline");
    assert_eq!(message.len(), 5);
    drop(message);
    assert_eq!(sleeper.calls, ["prepare", "park", "prepare", "park"], "one nap woke for no reason");
    Ok(())
}

#[test]
fn what_arrives_between_announcing_and_sleeping_is_not_slept_on() -> Result<(), ReceiveError> {
    struct Late<'w>(&'w mut Writer<TestWindow, TestWindow>, bool);
    impl Sleeper for Late<'_> {
        fn prepare(&mut self) {
            assert_eq!(self.0.try_send(b"late"), Ok(Sent::Sent));
        }
        fn park(&mut self, _limit: Duration) {
            panic!("slept on a message");
        }
        fn cancel(&mut self) {
            self.1 = true;
        }
    }
    let (_, mut writer, mut receiver) = pair(8);
    let mut sleeper = Late(&mut writer, false);
    assert!(receiver.recv_wait(&mut Waiter::new(&SLEEP_AT_ONCE, &mut sleeper, None))?.is_some());
    assert!(sleeper.1, "the announcement is withdrawn");
    Ok(())
}

#[test]
fn a_sender_waits_for_credits() -> Result<(), SendError> {
    let (_, mut writer, mut receiver) = pair(4);
    for _ in 0..4 {
        assert_eq!(writer.try_send(b"x")?, Sent::Sent);
    }
    let mut sleeper = Script::new(|| while receiver.poll().is_ok_and(|found| found.is_some()) {});
    assert_eq!(
        writer.send_wait(&[1; 200], &mut Waiter::new(&SLEEP_AT_ONCE, &mut sleeper, None))?,
        Sent::Sent
    );
    assert_eq!(sleeper.calls, ["prepare", "park"]);
    Ok(())
}

#[test]
fn a_deadline_that_is_past_ends_the_wait() {
    let (_, mut writer, mut receiver) = pair(1);
    let past = Some(Instant::now());
    let mut sleeper = Script::new(|| {});
    for policy in [WaitPolicy::SPIN, WaitPolicy::default(), SLEEP_AT_ONCE] {
        assert!(
            receiver
                .recv_wait(&mut Waiter::new(&policy, &mut sleeper, past))
                .is_ok_and(|found| found.is_none())
        );
    }
    assert_eq!(writer.try_send(b"x"), Ok(Sent::Sent));
    assert_eq!(
        writer.send_wait(b"y", &mut Waiter::new(&WaitPolicy::SPIN, &mut sleeper, past)),
        Ok(Sent::Full)
    );
}

#[test]
fn a_peer_that_is_gone_ends_every_wait() {
    for policy in [WaitPolicy::SPIN, WaitPolicy::new().spins(3).yields(5).sleep(None), SLEEP_AT_ONCE] {
        let (_, mut writer, mut receiver) = pair(1);
        let mut sleeper = Script::new(|| {});
        sleeper.peer_gone = true;
        assert_eq!(writer.try_send(b"x"), Ok(Sent::Sent));
        assert_eq!(
            writer.send_wait(b"y", &mut Waiter::new(&policy, &mut sleeper, None)),
            Err(SendError::ReceiverGone)
        );
        let found = receiver.recv_wait(&mut Waiter::new(&policy, &mut sleeper, None));
        assert!(found.is_ok_and(|found| found.is_some()), "what is complete is still delivered");
        let found = receiver.recv_wait(&mut Waiter::new(&policy, &mut sleeper, None));
        assert_eq!(found.map(|_| ()), Err(ReceiveError::Gone));
    }
}

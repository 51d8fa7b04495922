//! Impairments of any kind: whatever the network does, every message that was taken is told once, in order, or the end of the
//! connection is; nothing is told after the end, and no bound is passed.
//!
//! The receiving side checks each message as it comes (`support::Side`), so what is left to check here is the end.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use beeline_datagram::{Config, MOST_WINDOW, Pacing};
use beeline_spec::formats::datagram_frame as f;
use proptest::prelude::*;
use support::{Impairments, Net, Shared, Side, endpoint, mac, pair, run_until, seed};

const SECOND: u64 = 1_000_000_000;

/// How the endpoints are set up.
#[derive(Clone, Copy, Debug)]
struct Setup {
    windows: [u8; 2],
    ack_every: u8,
    paced: u8,
    small: bool,
}

impl Setup {
    fn apply(self, mut config: Config) -> Config {
        [config.send_window, config.receive_window] = self.windows;
        config.ack_every = self.ack_every;
        config.pacing = match self.paced {
            0 => Pacing::Off,
            1 => Pacing::AfterLoss,
            _ => Pacing::FramesPerSecond(200_000.try_into().unwrap()),
        };
        if self.small {
            config.frame_bytes = 96;
        }
        config
    }
}

fn setup() -> impl Strategy<Value = Setup> {
    (1..=MOST_WINDOW, 1..=MOST_WINDOW, 1..=32_u8, 0..3_u8, any::<bool>()).prop_map(
        |(send, receive, ack_every, paced, small)| Setup {
            windows: [send, receive],
            ack_every,
            paced,
            small,
        },
    )
}

fn impairments(most_loss: u32) -> impl Strategy<Value = Impairments> {
    let chances = (0..=most_loss, 0..=200_u32, 0..=500_u32, 0..=100_u32, 0..=100_u32);
    (chances, 0..=200_000_u64, 100..=200_000_u64, 0..=8_u32).prop_map(
        |((loss, duplicate, late, refuse, garbage), late_ns, delay_ns, burst)| {
            // Bursts make losses more; the sum stays what was asked for.
            let loss = loss / (1 + burst / 2);
            Impairments { loss, duplicate, late, late_ns, delay_ns, burst, refuse, garbage }
        },
    )
}

/// What must hold however a run ended.
fn check_end(from: &Side, to: &Side) {
    assert!(from.acknowledged() <= to.received, "{} acknowledged, {} told", from.acknowledged(), to.received);
    assert!(to.received <= from.sent, "nothing is told that was not sent");
    if from.down.is_none() && to.down.is_none() {
        assert_eq!((from.sent, to.received), (from.to_send, from.to_send), "both live, so everything came");
    }
}

/// No side ever has more under way than both windows allow.
fn check_windows(net: &Shared, windows: [u8; 2]) {
    let net = net.lock().unwrap();
    let most = u32::from(windows[0].min(windows[1]));
    let field = |frame: &[u8], at: usize| u32::from_le_bytes(frame[at..at + 4].try_into().unwrap());
    let mut acknowledged = [None::<u32>; 2];
    for (from, frame) in net.log.as_ref().unwrap() {
        let kind = frame[f::KIND_OFFSET];
        if kind != beeline_spec::formats::datagram_kind::DATA
            && kind != beeline_spec::formats::datagram_kind::ACK
        {
            continue;
        }
        // Written by the receiver before it left, this is the most that the other side can know.
        let number = field(frame, f::ACKNOWLEDGED_OFFSET);
        let known = acknowledged[1 - from].get_or_insert(number);
        if number.wrapping_sub(*known) < 1 << 31 {
            *known = number;
        }
        if let (Some(known), beeline_spec::formats::datagram_kind::DATA) = (acknowledged[*from], kind) {
            let ahead = field(frame, f::NUMBER_OFFSET).wrapping_sub(known) as i32;
            assert!(ahead < most as i32, "a message {ahead} ahead with a window of {most}");
        }
        assert!(u32::from(frame[f::ROOM_OFFSET]) <= u32::from(windows[1]));
    }
}

/// Two sides talk over this network until all is said, or an hour has gone.
fn talk(seed: u64, impairments: [Impairments; 2], setup: Setup, messages: [u64; 2]) -> (Shared, Side, Side) {
    let net = Net::new(seed, impairments);
    net.lock().unwrap().log = Some(Vec::new());
    let mut client = Side::new(endpoint(&net, 0, seed as u8, |c| setup.apply(c)), [1, 2], messages[0]);
    let mut server = Side::new(endpoint(&net, 1, !seed as u8, |c| setup.apply(c)), [2, 1], messages[1]);
    client.id = Some(client.endpoint.connect(mac(1)).unwrap());
    run_until(&net, &mut [&mut client, &mut server], 3600 * SECOND, |sides| {
        let all_is_said = sides[0].received == sides[1].to_send && sides[1].received == sides[0].to_send;
        all_is_said || sides.iter().any(|side| side.down.is_some())
    });
    check_end(&client, &server);
    check_end(&server, &client);
    check_windows(&net, setup.windows);
    (net, client, server)
}

/// 150 cases, or as many as PROPTEST_CASES says.
fn config() -> ProptestConfig {
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(150);
    ProptestConfig { cases, max_shrink_iters: 500, failure_persistence: None, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn every_message_comes_once_in_order_or_the_end_does(
        seed in any::<u64>(),
        impairments in [impairments(600), impairments(600)],
        setup in setup(),
        messages in [0..300_u64, 0..300_u64],
    ) {
        talk(seed, impairments, setup, messages);
    }

    #[test]
    fn moderate_impairments_lose_no_message_and_no_connection(
        seed in any::<u64>(),
        impairments in [impairments(200), impairments(200)],
        setup in setup(),
        messages in [0..200_u64, 0..200_u64],
    ) {
        let (_, client, server) = talk(seed, impairments, setup, messages);
        prop_assert_eq!((client.down, server.down), (None, None));
    }

    #[test]
    fn a_restart_in_the_middle_is_seen_by_the_other_side(
        seed in any::<u64>(),
        impairments in [impairments(200), impairments(200)],
        at_ns in 0..30_000_000_u64,
        is_server in any::<bool>(),
    ) {
        restart(seed, impairments, at_ns, is_server);
    }

    #[test]
    fn a_close_in_the_middle_loses_nothing_that_was_taken(
        seed in any::<u64>(),
        impairments in [impairments(200), impairments(200)],
        setup in setup(),
        messages in 0..100_u64,
    ) {
        let net = Net::new(seed, impairments);
        let (mut client, mut server) = pair(&net, |config| setup.apply(config));
        client.to_send = messages;
        let is_sent = run_until(&net, &mut [&mut client, &mut server], 3600 * SECOND, |s| s[0].sent == messages);
        prop_assert!(is_sent);
        client.endpoint.close(client.id.unwrap());
        let is_over = run_until(&net, &mut [&mut client, &mut server], 7200 * SECOND, |sides| {
            sides.iter().all(|side| side.down.is_some())
        });
        prop_assert!(is_over);
        prop_assert_eq!(server.received, messages);
        prop_assert_eq!(client.down, Some((beeline_datagram::Down::Closed, 0)));
        prop_assert_eq!(server.down, Some((beeline_datagram::Down::ClosedByPeer, 0)));
    }
}

/// One side is killed at some moment and started again; the client then connects again, and both talk on.
fn restart(seed: u64, impairments: [Impairments; 2], at_ns: u64, is_server: bool) {
    let net = Net::new(seed, impairments);
    let (mut client, mut server) = pair(&net, |config| config);
    (client.to_send, server.to_send) = (2000, 2000);
    let at = net.lock().unwrap().now + at_ns;
    run_until(&net, &mut [&mut client, &mut server], at, |_| false);
    let left;
    if is_server {
        server = Side::new(endpoint(&net, 1, 77, |config| config), [4, 3], 100);
        let is_down =
            run_until(&net, &mut [&mut client, &mut server], at + 600 * SECOND, |s| s[0].down.is_some());
        assert!(is_down, "the client is told");
        left = client.sent - client.acknowledged();
        assert_eq!(server.opened, 0, "late frames bring nothing back");
        client = again(client, [3, 4]);
    } else {
        let old = server.id;
        client = Side::new(endpoint(&net, 0, 77, |config| config), [3, 4], 100);
        client.id = Some(client.endpoint.connect(mac(1)).unwrap());
        let is_down =
            run_until(&net, &mut [&mut client, &mut server], at + 600 * SECOND, |s| s[1].down.is_some());
        assert!(is_down, "the server is told");
        left = server.sent - server.acknowledged();
        assert_eq!(server.id, old, "the new connection is told after the old one's end");
        server = again_server(server, [4, 3]);
    }
    assert!(left <= u64::from(MOST_WINDOW));
    let is_done = run_until(&net, &mut [&mut client, &mut server], at + 1200 * SECOND, |sides| {
        sides.iter().all(|side| side.received == 100)
    });
    assert!(is_done, "{:?} {} {:?} {}", client.down, client.received, server.down, server.received);
}

/// The same endpoint, with a new connection.
fn again(old: Side, streams: [u64; 2]) -> Side {
    let mut side = Side::new(old.endpoint, streams, 100);
    side.id = Some(side.endpoint.connect(mac(1)).unwrap());
    side
}

/// The same endpoint, with the connection that came after the old one, or waiting for it.
fn again_server(old: Side, streams: [u64; 2]) -> Side {
    let mut side = Side::new(old.endpoint, streams, 100);
    side.id = old.next;
    side
}

/// Frames that left for each message, both directions together, at this loss, in thousandths.
fn frames_a_message(loss: u32, reorder: bool) -> f64 {
    let seed = seed(20_260_727) + u64::from(loss);
    let base = Impairments { loss, ..Impairments::UNIMPAIRED };
    let impairments =
        if reorder { Impairments { late: 100, late_ns: 3_000, duplicate: 20, ..base } } else { base };
    let net = Net::new(seed, [impairments; 2]);
    let (mut client, mut server) = pair(&net, |config| config);
    let before = net.lock().unwrap().sent;
    client.to_send = 20_000;
    let is_done =
        run_until(&net, &mut [&mut client, &mut server], 3600 * SECOND, |s| s[1].received == 20_000);
    assert!(is_done, "{:?} {:?}", client.down, server.down);
    let after = net.lock().unwrap().sent;
    (after[0] - before[0] + after[1] - before[1]) as f64 / 20_000.0
}

#[test]
fn losses_cost_little_more_than_what_was_lost() {
    // A message at loss p leaves 1 / (1 - p) times; the rest is acknowledgements, which gaps make more frequent.
    for (loss, most) in [(0, 1.08), (50, 1.5), (200, 2.1), (500, 3.6)] {
        let frames = frames_a_message(loss, false);
        assert!(frames < most, "{frames} frames a message at {} % loss, at most {most}", loss / 10);
    }
}

#[test]
fn messages_leave_hardly_more_often_than_they_must() {
    for (loss, most) in [(50, 1.08), (200, 1.32), (500, 2.3)] {
        let impairments = Impairments { loss, ..Impairments::UNIMPAIRED };
        let net = Net::new(seed(4) + u64::from(loss), [impairments; 2]);
        let (mut client, mut server) = pair(&net, |config| config);
        let before = net.lock().unwrap().sent[0];
        client.to_send = 20_000;
        assert!(run_until(&net, &mut [&mut client, &mut server], 3600 * SECOND, |s| s[1].received == 20_000));
        let each = (net.lock().unwrap().sent[0] - before) as f64 / 20_000.0;
        assert!(each < most, "a message leaves {each} times at {} % loss, at most {most}", loss / 10);
    }
}

#[test]
fn reordering_within_the_degree_costs_no_repeats() {
    let frames = frames_a_message(0, true);
    assert!(frames < 1.6, "{frames} frames a message");
}

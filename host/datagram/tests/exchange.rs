//! What a connection costs and keeps when nothing, or something scripted, goes wrong: frames counted one by one.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod support;

use std::time::Duration;

use beeline_datagram::{ConnectError, Down, Event, HEAD_BYTES, SendError, Sent};
use beeline_spec::formats::{datagram_frame as f, datagram_kind as kind};
use support::{Fate, Impairments, Net, Side, endpoint, mac, message, pair, run_until};

const UNIMPAIRED: [Impairments; 2] = [Impairments::UNIMPAIRED; 2];
const SECOND: u64 = 1_000_000_000;

fn run(net: &support::Shared, sides: &mut [&mut Side], ns: u64) {
    let until = net.lock().unwrap().now + ns;
    run_until(net, sides, until, |_| false);
}

/// Sends one message from one side and waits for it at the other.
fn send_one(net: &support::Shared, from: &mut Side, to: &mut Side) {
    from.to_send += 1;
    let (wanted, until) = (to.received + 1, net.lock().unwrap().now + SECOND);
    assert!(run_until(net, &mut [&mut *from, &mut *to], until, |sides| sides[1].received == wanted));
}

/// Lets the server answer from where it is told of the question, as programs do, and waits for the answer.
fn answer_one(net: &support::Shared, server: &mut Side, client: &mut Side) {
    for _ in 0..1000 {
        if let Some(Event::Message { id, .. }) = server.endpoint.poll().unwrap() {
            let question = server.endpoint.message().to_vec();
            assert_eq!(server.endpoint.try_send(id, &question, b"!"), Ok(Sent::Sent));
        }
        if let Some(Event::Message { .. }) = client.endpoint.poll().unwrap() {
            assert!(client.endpoint.message().ends_with(b"?!"));
            return;
        }
        net.lock().unwrap().now += 1000;
    }
    panic!("no answer came");
}

#[test]
fn a_connection_opens_with_three_frames_and_an_answer() {
    let net = Net::new(1, UNIMPAIRED);
    let (mut client, mut server) = pair(&net, |config| config);
    let elapsed = net.lock().unwrap().now - 1_000_000;
    assert!(elapsed < 50_000, "{elapsed} ns for one round trip and a half");
    run(&net, &mut [&mut client, &mut server], 1_000_000);
    // Open, welcome, question whether it was heard, answer.
    assert_eq!(net.lock().unwrap().sent, [2, 2]);
    assert!(client.endpoint.is_idle(client.id.unwrap()) && server.endpoint.is_idle(server.id.unwrap()));
}

#[test]
fn a_question_and_its_answer_cost_two_frames() {
    for window in [1, 2, 64] {
        let net = Net::new(1, UNIMPAIRED);
        let (mut client, mut server) = pair(&net, |mut config| {
            (config.send_window, config.receive_window) = (window, window);
            config
        });
        run(&net, &mut [&mut client, &mut server], 1_000_000);
        let before = net.lock().unwrap().sent;
        for number in 0..1000_u32 {
            let id = client.id.unwrap();
            assert_eq!(client.endpoint.try_send(id, &number.to_le_bytes(), b"?"), Ok(Sent::Sent));
            answer_one(&net, &mut server, &mut client);
        }
        let after = net.lock().unwrap().sent;
        assert_eq!([after[0] - before[0], after[1] - before[1]], [1000, 1000], "window {window}");
        run(&net, &mut [&mut client, &mut server], 400_000);
        let alone = net.lock().unwrap().sent;
        assert_eq!(
            [alone[0] - after[0], alone[1] - after[1]],
            [1, 0],
            "only the last answer is acknowledged alone"
        );
    }
}

#[test]
fn a_stream_costs_few_acknowledgements() {
    let net = Net::new(1, UNIMPAIRED);
    let (mut client, mut server) = pair(&net, |config| config);
    let before = net.lock().unwrap().sent;
    client.to_send = 10_000;
    assert!(
        run_until(&net, &mut [&mut client, &mut server], 60 * SECOND, |sides| sides[1].received == 10_000)
    );
    let after = net.lock().unwrap().sent;
    assert_eq!(after[0] - before[0], 10_000, "nothing is repeated");
    let acks = after[1] - before[1];
    assert!((10_000 / 64..=10_000 / 12).contains(&acks), "{acks} acknowledgements for 10000 messages");
}

#[test]
fn frame_overtaken_by_four_is_repeated_and_by_three_is_not() {
    for (overtaken_by, repeats) in [(1, 0), (3, 0), (4, 1)] {
        let net = Net::new(1, UNIMPAIRED);
        let (mut client, mut server) = pair(&net, |config| config);
        run(&net, &mut [&mut client, &mut server], 1_000_000);
        let mut seen = 0;
        // Each following message leaves 1000 ns later, so this one arrives right behind the one it is overtaken by.
        net.lock().unwrap().script(move |from, frame| {
            seen += u64::from(from == 0 && frame[f::KIND_OFFSET] == kind::DATA);
            if from == 0 && seen == 1 { Fate::Delay(overtaken_by * 1000 + 500) } else { Fate::Pass }
        });
        for _ in 0..10 {
            client.to_send += 1;
            run(&net, &mut [&mut client, &mut server], 1000);
        }
        run(&net, &mut [&mut client, &mut server], SECOND / 10);
        let stats = client.endpoint.stats(client.id.unwrap()).unwrap();
        assert_eq!((stats.repeated_early, stats.timeouts), (repeats, 0), "overtaken by {overtaken_by}");
        assert_eq!(server.received, 10);
        assert_eq!(server.endpoint.stats(server.id.unwrap()).unwrap().duplicates, repeats);
    }
}

#[test]
fn a_lost_frame_is_repeated_once_without_a_timeout() {
    let net = Net::new(1, UNIMPAIRED);
    let (mut client, mut server) = pair(&net, |config| config);
    let before = net.lock().unwrap().sent[0];
    let mut seen = 0;
    net.lock().unwrap().script(move |from, frame| {
        seen += u64::from(from == 0 && frame[f::KIND_OFFSET] == kind::DATA);
        if from == 0 && [10, 11, 30].contains(&seen) && frame[f::KIND_OFFSET] == kind::DATA {
            Fate::Lose
        } else {
            Fate::Pass
        }
    });
    client.to_send = 60;
    assert!(run_until(&net, &mut [&mut client, &mut server], SECOND, |sides| sides[1].received == 60));
    run(&net, &mut [&mut client, &mut server], SECOND / 100);
    let stats = client.endpoint.stats(client.id.unwrap()).unwrap();
    assert_eq!((stats.repeated_early, stats.timeouts, stats.unacknowledged), (3, 0, 0));
    assert_eq!(net.lock().unwrap().sent[0] - before, 63);
}

#[test]
fn lost_repeat_is_repeated_without_a_timeout_while_others_arrive() {
    let net = Net::new(1, UNIMPAIRED);
    let (mut client, mut server) = pair(&net, |config| config);
    let mut copies = 0;
    net.lock().unwrap().script(move |from, frame| {
        let number = u32::from_le_bytes(frame[f::NUMBER_OFFSET..f::NUMBER_OFFSET + 4].try_into().unwrap());
        let session = u32::from_le_bytes(frame[f::FROM_SESSION_OFFSET..][..4].try_into().unwrap());
        let is_it = from == 0 && frame[f::KIND_OFFSET] == kind::DATA && number.wrapping_sub(session) == 5;
        copies += u32::from(is_it);
        if is_it && copies <= 3 { Fate::Lose } else { Fate::Pass }
    });
    for _ in 0..100 {
        client.to_send += 1;
        run(&net, &mut [&mut client, &mut server], 1000);
    }
    assert!(run_until(&net, &mut [&mut client, &mut server], SECOND, |sides| sides[1].received == 100));
    let stats = client.endpoint.stats(client.id.unwrap()).unwrap();
    assert_eq!((stats.repeated_early, stats.timeouts), (3, 0));
}

#[test]
fn a_lost_tail_comes_after_one_timeout() {
    let net = Net::new(1, UNIMPAIRED);
    let (mut client, mut server) = pair(&net, |config| config);
    for _ in 0..20 {
        send_one(&net, &mut client, &mut server);
        send_one(&net, &mut server, &mut client);
    }
    let mut seen = 0;
    net.lock().unwrap().script(move |from, frame| {
        seen += u64::from(from == 0 && frame[f::KIND_OFFSET] == kind::DATA);
        if from == 0 && (5..=10).contains(&seen) && frame[f::KIND_OFFSET] == kind::DATA {
            Fate::Lose
        } else {
            Fate::Pass
        }
    });
    client.to_send += 10;
    let (start, wanted) = (net.lock().unwrap().now, server.received + 10);
    assert!(
        run_until(&net, &mut [&mut client, &mut server], start + SECOND, |sides| sides[1].received == wanted)
    );
    let stats = client.endpoint.stats(client.id.unwrap()).unwrap();
    assert_eq!((stats.timeouts, stats.repeated_early), (1, 5), "one by time, the others because it arrived");
    let elapsed = net.lock().unwrap().now - start;
    assert!((500_000..1_000_000).contains(&elapsed), "{elapsed} ns: one least time-out and some round trips");
}

#[test]
fn timeouts_back_off_and_the_silent_side_is_given_up() {
    let net = Net::new(1, UNIMPAIRED);
    let (mut client, mut server) = pair(&net, |config| config);
    send_one(&net, &mut client, &mut server);
    run(&net, &mut [&mut client, &mut server], SECOND / 100);
    let start = net.lock().unwrap().now;
    let before = net.lock().unwrap().sent[0];
    net.lock().unwrap().script(|_, _| Fate::Lose);
    client.to_send += 2;
    let is_down = run_until(&net, &mut [&mut client, &mut server], start + 20 * SECOND, |sides| {
        sides.iter().all(|side| side.down.is_some())
    });
    assert!(is_down);
    let (why, unacknowledged) = client.down.unwrap();
    let Down::Silent { after } = why else { panic!("{why:?}") };
    assert!((Duration::from_secs(3)..Duration::from_millis(3600)).contains(&after), "{after:?}");
    assert_eq!(unacknowledged, 2);
    // 0.5, 1, 2, ... 64 ms, then every 100 ms, and a question now and then: not hundreds of frames a second.
    let sent = net.lock().unwrap().sent[0] - before;
    assert!((30..60).contains(&sent), "{sent} frames into the silence");
    assert!(matches!(server.down, Some((Down::Silent { .. }, 0))), "nothing to send, and still noticed");
    let id = client.id.unwrap();
    assert_eq!(client.endpoint.try_send(id, b"x", b""), Err(SendError::NotOpen { id }));
}

#[test]
fn an_idle_connection_lives_on_keep_alives() {
    let net = Net::new(1, UNIMPAIRED);
    let (mut client, mut server) = pair(&net, |config| config);
    let before = net.lock().unwrap().sent;
    run(&net, &mut [&mut client, &mut server], 60 * SECOND);
    assert_eq!((client.down, server.down), (None, None));
    let after = net.lock().unwrap().sent;
    let frames = after[0] - before[0] + after[1] - before[1];
    assert!((120..=480).contains(&frames), "{frames} frames in 60 s at one question every 500 ms");
    send_one(&net, &mut server, &mut client);
}

#[test]
fn program_that_pauses_polling_keeps_its_connections() {
    let net = Net::new(1, UNIMPAIRED);
    let (mut client, mut server) = pair(&net, |config| config);
    send_one(&net, &mut client, &mut server);
    run(&net, &mut [&mut client, &mut server], SECOND / 100);
    // Neither is polled for ten minutes.
    net.lock().unwrap().now += 600 * SECOND;
    send_one(&net, &mut client, &mut server);
    send_one(&net, &mut server, &mut client);
    assert_eq!((client.down, server.down), (None, None));
}

#[test]
fn closing_delivers_everything_and_both_sides_say_so() {
    let net = Net::new(1, UNIMPAIRED);
    let (mut client, mut server) = pair(&net, |config| config);
    (client.to_send, server.to_send) = (500, 0);
    assert!(run_until(&net, &mut [&mut client, &mut server], 10 * SECOND, |sides| sides[0].sent == 500));
    let id = client.id.unwrap();
    client.endpoint.close(id);
    assert_eq!(client.endpoint.try_send(id, b"", b""), Err(SendError::Closing { id }));
    assert!(run_until(&net, &mut [&mut client, &mut server], 10 * SECOND, |sides| {
        sides.iter().all(|side| side.down.is_some())
    }));
    assert_eq!((client.down, server.down), (Some((Down::Closed, 0)), Some((Down::ClosedByPeer, 0))));
    assert_eq!(server.received, 500);
    assert!(client.endpoint.stats(id).is_none() && client.endpoint.is_idle(id));
    let next = client.endpoint.connect(mac(1)).unwrap();
    assert_ne!(next, id, "a name is used once");
    assert_eq!(client.endpoint.try_send(id, b"x", b""), Err(SendError::NotOpen { id }));
}

#[test]
fn close_completes_when_its_acknowledgement_is_lost() {
    let net = Net::new(1, UNIMPAIRED);
    let (mut client, mut server) = pair(&net, |config| config);
    send_one(&net, &mut client, &mut server);
    run(&net, &mut [&mut client, &mut server], SECOND / 100);
    let mut lost = 0;
    net.lock().unwrap().script(move |from, _| {
        lost += u32::from(from == 1);
        if from == 1 && lost <= 2 { Fate::Lose } else { Fate::Pass }
    });
    client.to_send += 3;
    client.run();
    client.endpoint.close(client.id.unwrap());
    assert!(run_until(&net, &mut [&mut client, &mut server], 10 * SECOND, |sides| {
        sides.iter().all(|side| side.down.is_some())
    }));
    assert_eq!((client.down, server.down), (Some((Down::Closed, 0)), Some((Down::ClosedByPeer, 0))));
    assert_eq!(server.endpoint.endpoint_stats().ended_session, 2, "the first answer was lost as well");
}

#[test]
fn both_sides_may_close_at_once() {
    let net = Net::new(1, UNIMPAIRED);
    let (mut client, mut server) = pair(&net, |config| config);
    (client.to_send, server.to_send) = (20, 30);
    client.run();
    server.run();
    client.endpoint.close(client.id.unwrap());
    server.endpoint.close(server.id.unwrap());
    assert!(run_until(&net, &mut [&mut client, &mut server], 10 * SECOND, |sides| {
        sides.iter().all(|side| side.down.is_some())
    }));
    assert_eq!((client.down, server.down), (Some((Down::Closed, 0)), Some((Down::Closed, 0))));
    assert_eq!((client.received, server.received), (30, 20));
}

#[test]
fn an_abort_reaches_the_other_side() {
    let net = Net::new(1, UNIMPAIRED);
    let (mut client, mut server) = pair(&net, |config| config);
    client.endpoint.abort(client.id.unwrap());
    assert!(run_until(&net, &mut [&mut client, &mut server], 10 * SECOND, |sides| {
        sides.iter().all(|side| side.down.is_some())
    }));
    assert_eq!((client.down, server.down), (Some((Down::Closed, 0)), Some((Down::Aborted, 0))));
}

#[test]
fn a_paused_side_holds_its_window_and_then_the_sender_waits() {
    let net = Net::new(1, UNIMPAIRED);
    let (mut client, mut server) = pair(&net, |mut config| {
        config.receive_window = 8;
        config
    });
    server.endpoint.pause(server.id.unwrap());
    client.to_send = 100;
    run(&net, &mut [&mut client, &mut server], 20 * SECOND);
    assert_eq!((client.sent, client.acknowledged(), server.received), (8, 8, 0));
    assert_eq!((client.down, server.down), (None, None), "a side that is held back is not dead");
    server.endpoint.resume(server.id.unwrap());
    let until = net.lock().unwrap().now + SECOND;
    assert!(run_until(&net, &mut [&mut client, &mut server], until, |sides| sides[1].received == 100));
}

#[test]
fn a_lost_word_of_new_room_is_asked_for() {
    let net = Net::new(1, UNIMPAIRED);
    let (mut client, mut server) = pair(&net, |mut config| {
        config.receive_window = 4;
        config
    });
    server.endpoint.pause(server.id.unwrap());
    client.to_send = 8;
    run(&net, &mut [&mut client, &mut server], SECOND / 1000);
    let mut lost = 0;
    net.lock().unwrap().script(move |from, _| {
        lost += u32::from(from == 1);
        if from == 1 && lost == 1 { Fate::Lose } else { Fate::Pass }
    });
    server.endpoint.resume(server.id.unwrap());
    let until = net.lock().unwrap().now + SECOND / 10;
    let is_done = run_until(&net, &mut [&mut client, &mut server], until, |sides| sides[1].received == 8);
    assert!(is_done, "sooner than a keep-alive would");
}

#[test]
fn what_cannot_be_is_refused_with_a_reason() {
    let net = Net::new(1, UNIMPAIRED);
    let (mut client, _server) = pair(&net, |config| config);
    let id = client.id.unwrap();
    let max_bytes = client.endpoint.max_message_bytes();
    assert_eq!(max_bytes, 1514 - HEAD_BYTES);
    let long = vec![0; max_bytes];
    assert_eq!(
        client.endpoint.try_send(id, &long, b"x"),
        Err(SendError::TooLong { bytes: max_bytes + 1, max_bytes })
    );
    assert_eq!(client.endpoint.try_send(id, &long[1..], b"x"), Ok(Sent::Sent));
    let remote = mac(1).into();
    assert_eq!(client.endpoint.connect(mac(1)), Err(ConnectError::Exists { remote, id }));
    assert!(matches!(client.endpoint.connect(mac(0)), Err(ConnectError::NoStation { .. })));
}

#[test]
fn connect_to_silence_times_out_and_to_a_non_listener_is_refused() {
    let net = Net::new(1, UNIMPAIRED);
    let mut client = Side::new(endpoint(&net, 0, 1, |config| config), [1, 2], 0);
    client.id = Some(client.endpoint.connect(mac(1)).unwrap());
    assert!(run_until(&net, &mut [&mut client], 10 * SECOND, |sides| sides[0].down.is_some()));
    assert_eq!(client.down, Some((Down::Silent { after: Duration::from_secs(3) }, 0)));

    let mut deaf = endpoint(&net, 1, 2, |mut config| {
        config.listens = false;
        config
    });
    while deaf.poll().unwrap().is_some() {}
    let mut client = Side::new(endpoint(&net, 0, 3, |config| config), [1, 2], 0);
    client.id = Some(client.endpoint.connect(mac(1)).unwrap());
    let mut server = Side::new(deaf, [2, 1], 0);
    let until = net.lock().unwrap().now + SECOND;
    assert!(run_until(&net, &mut [&mut client, &mut server], until, |sides| sides[0].down.is_some()));
    assert_eq!(client.down, Some((Down::Refused, 0)));
}

#[test]
fn frames_of_two_lengths_are_refused_from_either_side() {
    for (client_bytes, server_bytes) in [(1514, 1000), (1000, 1514)] {
        let net = Net::new(1, UNIMPAIRED);
        let with = |bytes| {
            move |mut config: beeline_datagram::Config| {
                config.frame_bytes = bytes;
                config
            }
        };
        let mut client = Side::new(endpoint(&net, 0, 1, with(client_bytes)), [1, 2], 0);
        let mut server = Side::new(endpoint(&net, 1, 2, with(server_bytes)), [2, 1], 0);
        client.id = Some(client.endpoint.connect(mac(1)).unwrap());
        assert!(run_until(&net, &mut [&mut client, &mut server], SECOND, |sides| sides[0].down.is_some()));
        let expected = Down::FrameBytes {
            ours_bytes: client_bytes - HEAD_BYTES,
            theirs_bytes: server_bytes - HEAD_BYTES,
        };
        assert_eq!(client.down, Some((expected, 0)));
        assert_eq!(server.opened, 0);
    }
}

#[test]
fn both_sides_may_ask_at_once() {
    let net = Net::new(1, UNIMPAIRED);
    let mut one = Side::new(endpoint(&net, 0, 1, |config| config), [1, 2], 50);
    let mut two = Side::new(endpoint(&net, 1, 2, |config| config), [2, 1], 50);
    one.id = Some(one.endpoint.connect(mac(1)).unwrap());
    two.id = Some(two.endpoint.connect(mac(0)).unwrap());
    let done = run_until(&net, &mut [&mut one, &mut two], 10 * SECOND, |sides| {
        sides.iter().all(|side| side.received == 50)
    });
    assert!(done, "{:?} {:?}", one.down, two.down);
    assert_eq!((one.opened, two.opened), (1, 1));
}

#[test]
fn a_burst_is_flushed_once() {
    let net = Net::new(1, UNIMPAIRED);
    let (mut client, _server) = pair(&net, |config| config);
    let before = net.lock().unwrap().flushes;
    let id = client.id.unwrap();
    for index in 0..10 {
        assert_eq!(client.endpoint.try_send(id, &message(1, index, 100), b""), Ok(Sent::Sent));
    }
    assert_eq!(client.endpoint.poll().unwrap(), None::<Event>);
    assert_eq!(net.lock().unwrap().flushes - before, 1);
}

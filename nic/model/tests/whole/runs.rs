//! Lines that arrive together and frames that leave together, against the same lines and frames one by one.

use beeline_contract_device::{Device, QueueId};
use beeline_spec::regs::{field, queue as r};
use beeline_spec::{Header, Kind, escape};

use crate::rig::{PlacedLine, QueueSetup, Random, Rig, Sender, for_seeds, small_config};

/// Messages of every kind, good and bad; as many lines as are free in the window.
fn messages(random: &mut Random, sender: &mut Sender, free_lines: usize) -> Vec<PlacedLine> {
    let mut lines = Vec::new();
    loop {
        let before = sender.position;
        let bytes = random.within(0, 700) as usize;
        let mut payload = random.bytes(bytes);
        if sender.blank != 0 && bytes >= 8 && random.once_in(3) {
            payload[..8].copy_from_slice(&sender.blank.to_le_bytes());
        }
        let message = match random.below(12) {
            0 => sender.message(Kind::Void, &payload),
            1..4 => {
                let records: Vec<_> =
                    (0..random.within(1, 5)).map(|_| random.within(0, 90) as usize).collect();
                sender.batch(&records.into_iter().map(|bytes| random.bytes(bytes)).collect::<Vec<_>>())
            }
            4 if random.once_in(40) => {
                let mut bad = sender.frame(&payload);
                bad[0].bytes[..8].copy_from_slice(&Header::new(Kind::Data, 60, 9).encode().to_le_bytes());
                bad
            }
            _ => sender.frame(&payload),
        };
        if lines.len() + message.len() > free_lines {
            sender.position = before;
            return lines;
        }
        lines.extend(message);
    }
}

/// Takes everything that the device wants: frames in runs where it gives them, of random length.
fn settle_in_runs(rig: &mut Rig, random: &mut Random) {
    loop {
        let (mut left, most) = (random.within(1, 4), random.within(1, 9) as u32);
        let frames = &mut rig.frames;
        let given = rig.nic.transmit_run(most, |QueueId(queue), frame| {
            frames.push((queue, frame.to_vec()));
            left -= 1;
            left > 0
        });
        assert!(given <= most);
        if !rig.take_want() && given == 0 {
            return;
        }
    }
}

#[test]
fn lines_and_frames_in_runs_mean_what_they_mean_one_by_one() {
    for_seeds(300, |random| {
        let config = small_config();
        let (mut single, mut in_runs) = (Rig::new(config.clone()), Rig::new(config.clone()));
        let backpressure = random.once_in(3);
        let blank = if random.once_in(2) { escape::blank_from_random(random.word()) } else { 0 };
        let setup = QueueSetup { backpressure, blank, credit_lines: 3, ..QueueSetup::default() };
        for rig in [&mut single, &mut in_runs] {
            rig.enable(1, &setup);
        }
        let mut sender = Sender::new(1, blank);
        for _ in 0..20 {
            let lines = messages(random, &mut sender, config.window_lines as usize);
            single.write_lines(1, &lines);
            let mut rest = &lines[..];
            while let Some(first) = rest.first() {
                // A run does not go past the end of the window.
                let until_end =
                    u64::from(config.window_lines) - first.position % u64::from(config.window_lines);
                let count = random.within(1, until_end.min(rest.len() as u64)) as usize;
                let bytes: Vec<[u8; 64]> = rest[..count].iter().map(|line| line.bytes).collect();
                assert_eq!(in_runs.write_run(1, first.position, &bytes), count);
                rest = &rest[count..];
                if random.once_in(2) {
                    settle_in_runs(&mut in_runs, random);
                }
            }
            settle_in_runs(&mut in_runs, random);
            assert_eq!(in_runs.frames, single.frames);
            assert_eq!(in_runs.credits, single.credits);
            let mut counted = [single.nic.counters(), in_runs.nic.counters()];
            // Lines freed together share a push, whatever else is the same.
            counted.iter_mut().for_each(|counters| counters.credit_pushes = 0);
            let [one, other] = counted;
            assert_eq!(other, one);
            assert_eq!((in_runs.status(1), in_runs.next_start(1)), (single.status(1), single.next_start(1)));
        }
        for mut rig in [single, in_runs] {
            rig.disable(1);
            rig.assert_empty();
        }
    });
}

#[test]
fn queue_that_stops_inside_a_message_keeps_no_line() {
    for_seeds(20, |random| {
        let mut rig = Rig::new(small_config());
        // More lives than the pool could bear if each kept a line that was set aside, which no count tells.
        for epoch in 1..100 {
            let mut messages = [0u16, 1].map(|queue| {
                rig.enable(queue, &QueueSetup { epoch, ..QueueSetup::default() });
                let mut sender = Sender::new(epoch, 0);
                let bytes = [random.within(60, 500) as usize, random.within(60, 400) as usize];
                bytes.map(|bytes| sender.frame(&random.bytes(bytes))).concat().into_iter()
            });
            // The queues in turn, so that their lines of the pool would be mixed if none were set aside.
            for _ in 0..random.within(1, 15) {
                for (queue, lines) in (0..).zip(&mut messages) {
                    rig.write_lines(queue, lines.next().as_slice());
                }
            }
            rig.disable(0);
            rig.disable(1);
            rig.assert_empty();
        }
    });
}

#[test]
fn device_waits_for_the_lines_that_the_earliest_message_lacks() {
    let mut rig = Rig::new(small_config());
    rig.enable(1, &QueueSetup::default());
    let message = Sender::new(1, 0).frame(&[1; 300]);
    assert_eq!(rig.awaited_lines(1, 0), 0, "no header is there");
    for (position, line) in (1..).zip(&message) {
        rig.write_lines(1, std::slice::from_ref(line));
        let expected = message.len() as u32 - position as u32;
        assert_eq!((rig.awaited_lines(1, position), rig.awaited_lines(1, position + 1)), (expected, 0));
    }
    assert_eq!((rig.frames_of(1).len(), rig.awaited_lines(2, 0)), (1, 0));

    // Where a frame may begin early, its lines are wanted as they come.
    let cut_through = Rig::queue_register(0, r::CUT_THROUGH);
    rig.set(cut_through, 4 << field::cut_through::LINES_LSB);
    rig.enable(0, &QueueSetup::default());
    rig.write_lines(0, &message[..1]);
    assert_eq!(rig.awaited_lines(0, 1), 0);
}

//! No vector is idle: a device that does as it says fails it once it was tampered with.
//!
//! The device is the behavioural NIC; that it agrees with the vectors as they are is its own test (`nic/model/tests`).

use beeline_nic_model::{Nic, NicConfig};
use beeline_vectors::{Action, Case, WindowKind, load, run};

/// A NIC as the case wants it, with one queue.
fn nic(case: &Case) -> Nic {
    let device = &case.device;
    let config = NicConfig {
        queues: 1,
        window_lines: device.window_lines,
        span_lines: device.span_lines,
        contexts: device.contexts,
        pool_lines: device.pool_lines,
        blank: device.window != WindowKind::Observed,
        max_frame_bytes: device.max_frame_bytes,
        ..NicConfig::default()
    };
    Nic::new(config).unwrap_or_else(|error| panic!("case {}: {error}", case.name))
}

fn cases() -> Vec<Case> {
    load().unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn a_write_left_out_is_noticed_in_every_vector() {
    for mut case in cases() {
        // What the queue gets by other ways counts as a write.
        let is_write = |event: &beeline_vectors::Event| {
            matches!(event.action, Action::Write(_) | Action::Doorbell(..) | Action::Frame(_))
        };
        // A queue of coherent lines gets nothing but what the host stores into its own memory.
        let is_store = |event: &beeline_vectors::Event| matches!(event.action, Action::Memory(_));
        let events = &case.events;
        let first = events.iter().position(is_write).or_else(|| events.iter().position(is_store)).unwrap();
        case.events.remove(first);
        assert!(run(&case, nic(&case)).is_err(), "{} passes without its first write", case.name);
    }
}

#[test]
fn a_wrong_answer_and_a_wrong_byte_in_memory_are_noticed_in_every_vector() {
    for case in cases() {
        for (index, event) in case.events.iter().enumerate() {
            let mut answer = case.clone();
            if let Some(first) = answer.events[index].then.answers.first_mut() {
                *first ^= 1;
                assert!(run(&answer, nic(&case)).is_err(), "{}: an answer of event {index}", case.name);
            }
            for what in 0..event.then.memory.len() {
                let mut memory = case.clone();
                memory.events[index].then.memory[what].bytes[0] ^= 1;
                assert!(run(&memory, nic(&case)).is_err(), "{}: memory after event {index}", case.name);
            }
        }
    }
}

#[test]
fn tampered_bytes_credits_and_causes_are_noticed_in_every_vector() {
    for case in cases() {
        let fails = |tamper: fn(&mut Case)| {
            let mut tampered = case.clone();
            tamper(&mut tampered);
            tampered == case || run(&tampered, nic(&case)).is_err()
        };
        assert!(fails(|case| case.expect.freed_lines += 1), "{}: freed lines", case.name);
        assert!(fails(|case| case.expect.status.cause ^= 1), "{}: cause", case.name);
        assert!(
            fails(|case| case
                .events
                .iter_mut()
                .flat_map(|e| &mut e.then.frames)
                .take(1)
                .for_each(|f| f[0] ^= 1)),
            "{}: first byte of the first frame",
            case.name
        );
    }
}

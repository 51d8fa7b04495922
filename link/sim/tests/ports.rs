//! The ports of a device by themselves.

use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::device::{DeviceSettings, Ports, Rate};
use beeline_link_sim::pcie::{Kind, Tlp};

fn settings() -> DeviceSettings {
    DeviceSettings {
        ingress_interval: Picoseconds(10),
        ingress_rate: Rate::from_gbps(8.0),
        ingress_latency: Picoseconds(700),
        read_start: Picoseconds(300),
        read_finish: Picoseconds(200),
        read_tags: 2,
        read_interval: Picoseconds(40),
        write_start: Picoseconds(100),
        write_interval: Picoseconds(25),
        data_rate: Rate::from_gbps(16.0),
        shared_rate: Rate::UNLIMITED,
        read_transfer: Picoseconds(0),
        register_read: Picoseconds(500),
        transmit_latency: Picoseconds(0),
        receive_latency: Picoseconds(0),
        wire_rate: Rate::UNLIMITED,
    }
}

fn write(length: u32) -> Tlp {
    Tlp::new(Kind::MemoryWrite, 0, length)
}

const READ: Tlp = Tlp::new(Kind::MemoryRead, 0, 8);

#[test]
fn writes_are_taken_at_the_slower_of_interval_and_rate() {
    for (rate, interval, each) in [(8.0, 10, 64_000), (8.0, 90_000, 90_000), (0.0, 10, 10)] {
        let settings = DeviceSettings {
            ingress_rate: Rate::from_gbps(rate),
            ingress_interval: Picoseconds(interval),
            ..settings()
        };
        let mut ports = Ports::new(&settings);
        assert_eq!(ports.came(Picoseconds(1000), write(64), &settings), Some(Picoseconds(1700)));
        assert_eq!(ports.came(Picoseconds(1000), write(64), &settings), None, "an event is coming");
        // A load takes no time of its own, and passes no write in front of it.
        let loaded = (1000 + 2 * each).max(1700 + each);
        assert_eq!(ports.came(Picoseconds(1001), READ, &settings), None);
        assert_eq!(ports.incoming.pop(), Some((write(64), Some(Picoseconds(1700 + each)))));
        assert_eq!(ports.incoming.pop(), Some((write(64), Some(Picoseconds(loaded)))));
        assert_eq!(ports.incoming.pop(), Some((READ, None)));
    }
}

#[test]
fn requests_start_an_interval_apart_and_take_tags() {
    let settings = settings();
    let mut ports = Ports::new(&settings);
    assert_eq!(ports.request(Picoseconds(1000), READ, &settings), Some(Picoseconds(1300)));
    assert_eq!(ports.request(Picoseconds(1000), READ, &settings), None);
    assert_eq!(ports.requests.pop(), Some((READ, Some(Picoseconds(1340)))));
    assert_eq!(ports.tags_left(), 2);
    let (first, second) = (ports.take_tag(), ports.take_tag());
    assert!(first.is_some() && second.is_some() && first != second);
    assert_eq!((ports.take_tag(), ports.tags_left()), (None, 0));
    // The first request waits for a tag: one that is free is its event, not a time.
    ports.requests.pop();
    ports.awaits_tag = true;
    assert_eq!(ports.request(Picoseconds(5000), READ, &settings), None);
    ports.free_tag(first.expect("a tag"));
    assert_eq!(ports.take_tag(), first);
}

#[test]
fn data_pass_the_path_one_transfer_after_the_other() {
    let settings = settings();
    let mut ports = Ports::new(&settings);
    // 512 bytes at 16 Gbit/s are 256 ns.
    let path_ps = 256_000;
    let first = ports.completed(Picoseconds(1000), 1, 512, &settings);
    assert_eq!(first, Some(Picoseconds(1000 + path_ps + 200)));
    assert_eq!(ports.completed(Picoseconds(2000), 2, 512, &settings), None);
    assert_eq!(ports.data.pop(), Some((1, Some(Picoseconds(1000 + 2 * path_ps + 200)))));
    // What is written has a path of its own.
    assert_eq!(ports.store(Picoseconds(3000), 512, &settings), Picoseconds(3000 + path_ps));
    assert_eq!(ports.store(Picoseconds(3000), 512, &settings), Picoseconds(3000 + 2 * path_ps));
}

#[test]
fn both_paths_wait_for_what_they_share() {
    // Each path alone does 16 Gbit/s, both together 20: 512 bytes are 256 ns on one and 204.8 ns of what is shared.
    let settings = DeviceSettings { shared_rate: Rate::from_gbps(20.0), ..settings() };
    let mut ports = Ports::new(&settings);
    let (path_ps, shared_ps) = (256_000, 204_800);
    assert_eq!(ports.store(Picoseconds(1000), 512, &settings), Picoseconds(1000 + path_ps));
    let read = ports.completed(Picoseconds(1000), 1, 512, &settings);
    assert_eq!(read, Some(Picoseconds(1000 + 2 * shared_ps + 200)), "behind the write");
    assert_eq!(ports.store(Picoseconds(1000), 512, &settings), Picoseconds(1000 + 3 * shared_ps));
    // One direction alone is as fast as its own path.
    let mut ports = Ports::new(&settings);
    for transfers in 1..=10 {
        let left = ports.store(Picoseconds::ZERO, 512, &settings);
        assert_eq!(left, Picoseconds(transfers * path_ps));
    }
}

#[test]
fn writes_pass_answers_and_answers_pass_no_write() {
    let settings = settings();
    let mut ports = Ports::new(&settings);
    let answer = Tlp::new(Kind::CompletionWithData, 0, 8);
    assert_eq!(ports.write(Picoseconds(1000), write(64), &settings), Some(Picoseconds(1100)));
    assert_eq!(ports.answer(Picoseconds(1000), answer, &settings), Some(Picoseconds(1500)));
    // The answer's register is being read until 1500; a write that is wanted meanwhile does not wait for it.
    assert_eq!(ports.write(Picoseconds(1001), write(32), &settings), None);
    assert_eq!(ports.outgoing.pop(), Some((write(64), Some(Picoseconds(1125)))));
    assert_eq!(ports.outgoing.pop(), Some((write(32), None)));
    // A write that leaves after the register has been read is in front of an answer that is wanted after it.
    assert_eq!(ports.write(Picoseconds(3000), write(16), &settings), Some(Picoseconds(3100)));
    assert_eq!(ports.answer(Picoseconds(2500), answer, &settings), None);
    assert_eq!(ports.answers.pop(), Some((answer, Some(Picoseconds(3100)))));
    assert_eq!(ports.waiting(), 2);
}

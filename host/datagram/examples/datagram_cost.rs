//! What the protocol costs apart from the wire: two endpoints in one thread, with memory between them.
//!
//! `cargo run --release -p beeline-datagram --example datagram_cost` prints nanoseconds a message, both sides together: for a
//! question and its answer (four calls a message: send, find nothing, find it, and the copy of memory that stands for
//! the wire), and for a stream.

use std::collections::VecDeque;
use std::error::Error;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use beeline_datagram::{Config, ConnectionId, Endpoint, Event, MacAddress, Sent};
use beeline_ethernet::{Accept, Traits, Uplink, UplinkError};

/// Frames on their way from one end to the other, and buffers that are free.
#[derive(Default)]
struct Lane {
    frames: VecDeque<Vec<u8>>,
    free: Vec<Vec<u8>>,
}

/// One end of a wire made of memory.
struct End {
    out: Arc<Mutex<Lane>>,
    into: Arc<Mutex<Lane>>,
}

fn wire() -> [End; 2] {
    let [one, other] = [Arc::<Mutex<Lane>>::default(), Arc::default()];
    [End { out: one.clone(), into: other.clone() }, End { out: other, into: one }]
}

impl Uplink for End {
    fn name(&self) -> &str {
        "memory"
    }

    fn traits(&self) -> Traits {
        Traits { takes: true, mirrors: false, gives: true, waits: false, learns: true }
    }

    fn send(&mut self, frame: &[u8]) -> Result<Accept, UplinkError> {
        let mut lane = self.out.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut buffer = lane.free.pop().unwrap_or_default();
        buffer.clear();
        buffer.extend_from_slice(frame);
        lane.frames.push_back(buffer);
        Ok(Accept::Taken)
    }

    fn poll(&mut self, frame: &mut Vec<u8>) -> Result<bool, UplinkError> {
        let mut lane = self.into.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let Some(mut next) = lane.frames.pop_front() else { return Ok(false) };
        std::mem::swap(frame, &mut next);
        lane.free.push(next);
        Ok(true)
    }
}

/// Polls until a message comes; gives its length.
fn wait(endpoint: &mut Endpoint<End>) -> Result<(ConnectionId, usize), Box<dyn Error>> {
    loop {
        if let Some(Event::Message { id, bytes }) = endpoint.poll()? {
            return Ok((id, bytes));
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    const COUNT: u32 = 2_000_000;
    let macs = [1, 2].map(|last| MacAddress([2, 0, 0, 0, 0, last]));
    let [one, other] = wire();
    let mut client = Endpoint::new(one, Config::client(macs[0]))?;
    let mut server = Endpoint::new(other, Config::server(macs[1]))?;
    let to_server = client.connect(macs[1])?;
    let mut opened = 0;
    while opened < 2 {
        opened += u32::from(client.poll()?.is_some()) + u32::from(server.poll()?.is_some());
    }

    for bytes in [10, 100, 1400] {
        let message = vec![7; bytes];
        let start = Instant::now();
        for _ in 0..COUNT / 2 {
            assert_eq!(client.try_send(to_server, &message, &[])?, Sent::Sent);
            let (id, _) = wait(&mut server)?;
            assert_eq!(server.try_send(id, &message, &[])?, Sent::Sent);
            wait(&mut client)?;
        }
        println!(
            "question and answer, {bytes:4} B: {:6.1} ns a message",
            start.elapsed().as_nanos() as f64 / f64::from(COUNT)
        );

        let start = Instant::now();
        let (mut sent, mut received) = (0, 0);
        while received < COUNT {
            while sent < COUNT && client.try_send(to_server, &message, &[])? == Sent::Sent {
                sent += 1;
            }
            while let Some(event) = server.poll()? {
                received += u32::from(matches!(event, Event::Message { .. }));
            }
            client.poll()?;
        }
        println!(
            "stream, {bytes:4} B:              {:6.1} ns a message",
            start.elapsed().as_nanos() as f64 / f64::from(COUNT)
        );

        let [mut one, mut other] = wire();
        let (frame, mut buffer) = (vec![7; bytes + beeline_datagram::HEAD_BYTES], Vec::new());
        let start = Instant::now();
        for _ in 0..COUNT {
            assert_eq!(one.send(&frame)?, Accept::Taken);
            other.poll(&mut buffer)?;
        }
        println!(
            "the memory alone, {bytes:4} B:    {:6.1} ns a message",
            start.elapsed().as_nanos() as f64 / f64::from(COUNT)
        );
    }
    println!("{:#?}", client.stats(to_server));
    Ok(())
}

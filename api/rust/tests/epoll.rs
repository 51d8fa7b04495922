//! One thread waits in one epoll for a window, a port, a server, a client and a pipe; each of them has to wake it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::os::fd::{AsFd, OwnedFd};

use beeline::rpc::{Client, Method, Replied, Reply, Request, Server, Started, Worker};
use beeline::{Armed, Domain, NicPort, Polled, PortOptions, Receiver, Sender};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use support::Nic;

/// Only a lost wake-up takes so long.
const LOST_AFTER: Timespec = Timespec { tv_sec: 60, tv_nsec: 0 };

/// What the thread waits for, and its number in the epoll.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waited {
    Window,
    Port,
    Worker,
    Client,
    Pipe,
}

const WAITED: [Waited; 5] = [Waited::Window, Waited::Port, Waited::Worker, Waited::Client, Waited::Pipe];

fn frame(port: &NicPort, number: u8) -> Vec<u8> {
    let mut frame = vec![number; 64];
    frame[..6].fill(0xff);
    frame[6..12].copy_from_slice(&port.mac());
    frame[12..14].copy_from_slice(&[0x88, 0xb5]);
    frame
}

fn double(request: &mut Request<'_>, reply: Reply<'_>) -> Replied {
    reply.send(&(request.word(0) * 2).to_le_bytes())
}

/// The far ends, which this thread uses without waiting for them.
struct Far {
    sender: Sender,
    port: NicPort,
    client: Client,
    worker: Worker,
    pipe: OwnedFd,
    _servers: [Server; 2],
}

struct Near {
    receiver: Polled<Receiver>,
    port: Polled<NicPort>,
    worker: Polled<Worker>,
    client: Polled<Client>,
    pipe: OwnedFd,
    set: OwnedFd,
}

fn open(domain: &Domain) -> (Near, Far) {
    let receiver = Polled::new(domain.receiver("window").unwrap()).unwrap();
    let sender = domain.sender("window").unwrap();
    let far_port = domain.port_with("nic", PortOptions::new()).unwrap();
    let port = Polled::new(domain.port_with("nic", PortOptions::new()).unwrap()).unwrap();
    let (near_server, worker) = domain.server("near").unwrap();
    let (far_server, far_worker) = domain.server("far").unwrap();
    let (worker, client) =
        (Polled::new(worker).unwrap(), Polled::new(domain.client("far").unwrap()).unwrap());
    let (read_end, write_end) = rustix::pipe::pipe().unwrap();
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let descriptors = [receiver.as_fd(), port.as_fd(), worker.as_fd(), client.as_fd(), read_end.as_fd()];
    for (waited, descriptor) in WAITED.into_iter().zip(descriptors) {
        epoll::add(&set, descriptor, EventData::new_u64(waited as u64), EventFlags::IN).unwrap();
    }
    let far = Far {
        sender,
        port: far_port,
        client: domain.client("near").unwrap(),
        worker: far_worker,
        pipe: write_end,
        _servers: [near_server, far_server],
    };
    (Near { receiver, port, worker, client, pipe: read_end, set }, far)
}

impl Far {
    /// Sends what this round's source is to be woken by.
    fn send(&mut self, waited: Waited, round: u8) {
        match waited {
            Waited::Window => self.sender.send(&[round]).unwrap(),
            Waited::Port => self.port.send(&frame(&self.port, round)).unwrap(),
            Waited::Worker => assert!(matches!(
                self.client.start(Method(1), &u64::from(round).to_le_bytes(), None).unwrap(),
                Started::Call(_)
            )),
            Waited::Client => {
                assert_eq!(self.worker.poll(&mut double), 1, "the call that was started before")
            }
            Waited::Pipe => assert_eq!(rustix::io::write(&self.pipe, &[round]), Ok(1)),
        }
    }
}

impl Near {
    /// Looks everywhere; what has brought this round's number.
    fn look(&mut self, far: &mut Far, round: u8) -> Option<Waited> {
        if let Some(message) = self.receiver.try_recv().unwrap() {
            assert_eq!(message.to_vec(), [round]);
            return Some(Waited::Window);
        }
        if let Some(mut got) = self.port.try_recv().unwrap() {
            let mut bytes = Vec::new();
            got.copy_to(&mut bytes);
            assert_eq!(bytes[14..], [round; 50]);
            return Some(Waited::Port);
        }
        if let Some(completion) = self.client.poll() {
            assert_eq!(completion.result.unwrap().word(0), u64::from(round) * 2);
            return Some(Waited::Client);
        }
        self.worker.poll(&mut double);
        let completion = far.client.poll()?;
        assert_eq!(completion.result.unwrap().word(0), u64::from(round) * 2);
        Some(Waited::Worker)
    }

    /// Whether nothing is there, and every source announced that it is waited for.
    fn is_armed(&mut self) -> bool {
        let armed = [self.receiver.arm(), self.port.arm(), self.worker.arm(), self.client.arm()];
        armed == [Armed::Wait; 4]
    }

    /// What the epoll says is readable.
    fn wait(&self) -> Vec<u64> {
        let mut events = Vec::with_capacity(8);
        epoll::wait(self.set.as_fd(), spare_capacity(&mut events), Some(&LOST_AFTER)).unwrap();
        assert!(!events.is_empty(), "a wake-up is lost");
        events.iter().map(|event| event.data.u64()).collect()
    }
}

/// Everything is armed before anything is sent: only what is sent then ends the wait.
fn wake_by(waited: Waited, round: u8, near: &mut Near, far: &mut Far) {
    if waited == Waited::Client {
        let started = near.client.start(Method(1), &u64::from(round).to_le_bytes(), None).unwrap();
        assert!(matches!(started, Started::Call(_)));
    }
    let (mut came, mut is_sent) = (None, false);
    while came.is_none() {
        came = near.look(far, round);
        if came.is_some() || !near.is_armed() {
            continue;
        }
        if !is_sent {
            is_sent = true;
            far.send(waited, round);
        }
        if near.wait().contains(&(Waited::Pipe as u64)) {
            let mut byte = [0];
            assert_eq!((rustix::io::read(&near.pipe, &mut byte), byte), (Ok(1), [round]));
            came = Some(Waited::Pipe);
        }
    }
    assert_eq!(came, Some(waited));
}

/// The one test that opens ports, so that no two are opened at a time on a loaded machine.
#[test]
fn window_port_server_client_and_pipe_stand_in_one_epoll() {
    let folder = tempfile::tempdir().unwrap();
    let domain = Domain::open_in(folder.path(), support::DOMAIN).unwrap();
    let mut nic = Nic::start(folder.path());
    let (mut near, mut far) = open(&domain);
    for round in 0..50u8 {
        wake_by(WAITED[usize::from(round) % WAITED.len()], round, &mut near, &mut far);
    }
    while near.port.arm() != Armed::Wait {
        assert!(near.port.try_recv().unwrap().is_none());
    }
    nic.end();
    let mut set = [PollFd::new(&near.port, PollFlags::IN)];
    assert_eq!(poll(&mut set, Some(&LOST_AFTER)), Ok(1), "the end of the NIC");
}

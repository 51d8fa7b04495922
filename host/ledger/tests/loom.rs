//! Both sides in two threads, under every order that memory allows.
#![cfg(loom)]
#![expect(clippy::unwrap_used, reason = "what a test does not expect fails it")]

use std::collections::VecDeque;

use beeline_contract_adapter::{PublishPort, Unconfirmed, ViewPort};
use beeline_ledger::*;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::sync::{Arc, Mutex};
use loom::thread;

struct Words(Vec<AtomicU64>);

impl Words {
    fn new() -> Arc<Self> {
        Arc::new(Words((0..16).map(|_| AtomicU64::new(0)).collect()))
    }
}

struct Own(Arc<Words>);

impl PublishPort for Own {
    fn publish(&mut self, word: u32, value: u64) {
        self.0.0[word as usize].store(value, Ordering::Release);
    }

    fn barrier(&mut self) -> Result<(), Unconfirmed> {
        fence(Ordering::SeqCst);
        Ok(())
    }
}

struct Theirs(Arc<Words>);

impl ViewPort for Theirs {
    fn load(&self, word: u32) -> u64 {
        self.0.0[word as usize].load(Ordering::Acquire)
    }
}

/// A socket of the kernel, whose calls are one after the other.
#[derive(Clone)]
struct Socket(Arc<Mutex<VecDeque<u8>>>);

impl KernelPath for Socket {
    type Error = ();

    fn peek(&mut self, out: &mut [u8]) -> Result<Peeked, ()> {
        let socket = self.0.lock().unwrap();
        let bytes = socket.len().min(out.len());
        out.iter_mut().zip(socket.iter()).for_each(|(to, from)| *to = *from);
        Ok(if bytes == 0 { Peeked::Nothing } else { Peeked::Bytes(bytes) })
    }

    fn take(&mut self, bytes: usize) -> Result<(), ()> {
        self.0.lock().unwrap().drain(..bytes);
        Ok(())
    }
}

/// A word that is no byte.
const SCRIBBLE: u64 = u64::MAX;

/// A window of bytes that say themselves that they have come.
struct Window {
    bytes: Arc<Words>,
    read: usize,
}

impl WindowPath for Window {
    fn read(&mut self, _offset: u64, out: &mut [u8]) -> Result<usize, WindowLost> {
        match self.bytes.0[self.read].load(Ordering::Relaxed) {
            0 => Ok(0),
            SCRIBBLE => Err(WindowLost),
            byte => {
                self.read += 1;
                out[0] = byte as u8;
                Ok(1)
            }
        }
    }

    fn peek(&mut self, _offset: u64, _out: &mut [u8]) -> Result<usize, WindowLost> {
        unreachable!("nobody peeks here")
    }
}

struct Stream {
    ledger: Arc<Words>,
    answers: Arc<Words>,
    window: Arc<Words>,
    socket: Socket,
}

impl Stream {
    fn new() -> Self {
        let socket = Socket(Arc::new(Mutex::new(VecDeque::new())));
        Stream { ledger: Words::new(), answers: Words::new(), window: Words::new(), socket }
    }

    fn receiver(&self) -> (Receiver<Own, Theirs>, Socket, Window) {
        let receiver = Receiver::new(Own(self.answers.clone()), Theirs(self.ledger.clone()), 0);
        (receiver, self.socket.clone(), Window { bytes: self.window.clone(), read: 0 })
    }

    fn sender(&self) -> Sending {
        let sender = Sender::new(Own(self.ledger.clone()), Theirs(self.answers.clone()), 0);
        Sending { sender, socket: self.socket.clone(), window: self.window.clone(), given: 0, stored: 0 }
    }
}

struct Sending {
    sender: Sender<Own, Theirs>,
    socket: Socket,
    window: Arc<Words>,
    given: u64,
    stored: usize,
}

impl Sending {
    /// Sends the next byte; each is one more than the one before it.
    fn send(&mut self) {
        let byte = self.sender.sent_bytes() + 1;
        match self.sender.path() {
            Path::Kernel => {
                self.socket.0.lock().unwrap().push_back(byte as u8);
                self.given += 1;
            }
            Path::Window => {
                self.window.0[self.stored].store(byte, Ordering::Relaxed);
                self.stored += 1;
            }
        }
        self.sender.count(1);
    }
}

#[test]
fn bytes_keep_their_order_while_the_path_changes() {
    loom::model(|| {
        let stream = Stream::new();
        let (mut receiver, mut kernel, mut window) = stream.receiver();
        let mut sending = stream.sender();
        let sender = thread::spawn(move || {
            sending.sender.go_up(sending.given).unwrap();
            sending.send();
            sending.sender.go_down();
            sending.send();
        });
        let mut got = Vec::<u8>::new();
        while got.len() < 2 {
            let mut out = [0; 2];
            match receiver.receive(&mut out, &mut kernel, &mut window).unwrap() {
                Received::Bytes(bytes) => got.extend(&out[..bytes]),
                _ => thread::yield_now(),
            }
        }
        assert_eq!(got, [1, 2]);
        sender.join().unwrap();
    });
}

#[test]
fn who_stops_to_read_by_the_ledger_finds_the_rest_in_the_socket() {
    loom::model(|| {
        let stream = Stream::new();
        let (mut receiver, mut kernel, mut window) = stream.receiver();
        let mut sending = stream.sender();
        let sender = thread::spawn(move || {
            let _stays = sending.sender.go_up(0);
            sending.send();
        });
        let mut out = [0; 1];
        while !receiver.stop().unwrap() {
            match receiver.receive(&mut out, &mut kernel, &mut window).unwrap() {
                Received::Bytes(_) => break,
                _ => thread::yield_now(),
            }
        }
        sender.join().unwrap();
        if receiver.taken_bytes() == 0 {
            assert_eq!(kernel.peek(&mut out), Ok(Peeked::Bytes(1)));
        }
        assert_eq!(out, [1]);
    });
}

#[test]
fn question_where_to_resume_is_answered_once() {
    loom::model(|| {
        let stream = Stream::new();
        let (mut receiver, mut kernel, mut window) = stream.receiver();
        let mut sending = stream.sender();
        let sender = thread::spawn(move || {
            sending.sender.go_up(0).unwrap();
            sending.window.0[0].store(SCRIBBLE, Ordering::Relaxed);
            sending.sender.count(1);
            while sending.sender.resume_from().unwrap().is_none() {
                thread::yield_now();
            }
            sending.sender.resume(0);
            sending.send();
            // It is asked again, or not any more, and never anew.
            assert_eq!(sending.sender.resume_from(), Ok(None));
            assert_eq!(sending.sender.resume_from(), Ok(None));
        });
        let mut out = [0; 1];
        while receiver.receive(&mut out, &mut kernel, &mut window).unwrap() != Received::Bytes(1) {
            thread::yield_now();
        }
        assert_eq!(out, [1]);
        sender.join().unwrap();
    });
}

//! Both sides of a stream in one thread. Whatever the receiver does, the sender may act in the middle of it, at each load, peek, take and
//! read.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

use beeline_contract_adapter::{PublishPort, Unconfirmed, ViewPort};
use beeline_ledger::*;

/// What a sender does, at any moment.
#[derive(Clone, Copy, Debug)]
pub enum Act {
    Send(u8),
    Up,
    Down,
    /// So many bytes in the window are seen.
    Land(u8),
    /// The window is scribbled over.
    Scribble,
    Resume,
    /// It leaves the window for ever, and sends anew what the receiver may not have.
    Leave,
    /// A call gives bytes to the socket, and returns later.
    Give,
    Return,
    /// The receiver goes on.
    Wait,
}

#[derive(Default)]
pub struct Words([Cell<u64>; 16]);

#[derive(Clone)]
pub struct Own(Rc<Words>);

impl PublishPort for Own {
    fn publish(&mut self, word: u32, value: u64) {
        self.0.0[word as usize].set(value);
    }

    fn barrier(&mut self) -> Result<(), Unconfirmed> {
        Ok(())
    }
}

pub struct Theirs(Rc<Words>, Option<Rc<World>>);

impl ViewPort for Theirs {
    fn load(&self, word: u32) -> u64 {
        if let Some(world) = &self.1 {
            world.turn();
        }
        self.0.0[word as usize].get()
    }
}

/// Bytes in the window: those behind `seen` are stored and not there yet.
#[derive(Default)]
struct Stored {
    bytes: VecDeque<u8>,
    seen: usize,
    is_lost: bool,
}

pub struct World {
    stream: Vec<u8>,
    ledger: Rc<Words>,
    answers: Rc<Words>,
    socket: RefCell<VecDeque<u8>>,
    given: Cell<u64>,
    /// Given by a call that has not returned.
    inside: Cell<u64>,
    window: RefCell<Stored>,
    sender: RefCell<Sender<Own, Theirs>>,
    acts: RefCell<VecDeque<Act>>,
    /// Windows lost to scribbles.
    pub scribbles: Cell<u64>,
    pub ups: Cell<u64>,
    /// Where the stream left the socket last.
    left_at: Cell<u64>,
    /// Bytes that are sent once more, by a sender that has left for ever.
    pub again: Cell<u64>,
    has_left: Cell<bool>,
    /// The stream was begun anew since it left the socket last.
    is_answering: Cell<bool>,
    /// The sender ends now, whatever it has yet to send.
    pub ends_anyway: Cell<bool>,
}

impl World {
    pub fn new(bytes: usize, acts: Vec<Act>) -> Rc<Self> {
        let (ledger, answers) = (Rc::<Words>::default(), Rc::<Words>::default());
        let sender = Sender::new(Own(Rc::clone(&ledger)), Theirs(Rc::clone(&answers), None), 0);
        Rc::new(World {
            stream: (0..bytes).map(|at| (at * 7 + at / 251) as u8).collect(),
            ledger,
            answers,
            socket: RefCell::default(),
            given: Cell::default(),
            inside: Cell::default(),
            window: RefCell::default(),
            sender: RefCell::new(sender),
            acts: RefCell::new(acts.into()),
            scribbles: Cell::default(),
            ups: Cell::default(),
            left_at: Cell::default(),
            again: Cell::default(),
            has_left: Cell::default(),
            is_answering: Cell::default(),
            ends_anyway: Cell::default(),
        })
    }

    pub fn receiver(self: &Rc<Self>) -> Receiver<Own, Theirs> {
        let theirs = Theirs(Rc::clone(&self.ledger), Some(Rc::clone(self)));
        Receiver::new(Own(Rc::clone(&self.answers)), theirs, 0)
    }

    pub fn stream(&self) -> &[u8] {
        &self.stream
    }

    fn has_acts(&self) -> bool {
        !self.acts.borrow().is_empty()
    }

    /// The sender has nothing more to do, and ends the socket: once all is sent, and taken if it may have to send it anew.
    fn is_over(&self) -> bool {
        let sender = self.sender.borrow();
        let is_safe = self.has_left.get()
            || self.scribbles.get() == 0
            || sender.untaken_bytes() == 0 && sender.path() == Path::Kernel;
        self.ends_anyway.get()
            || !self.has_acts() && sender.sent_bytes() == self.stream.len() as u64 && is_safe
    }

    /// Acts of the sender, up to one that lets the receiver go on.
    pub fn turn(&self) {
        loop {
            let next = self.acts.borrow_mut().pop_front();
            match next {
                None | Some(Act::Wait) => return,
                Some(act) => self.act(act),
            }
        }
    }

    /// What a sender does in the end: it goes down, answers, and sends the rest.
    pub fn finish(&self) {
        if !self.has_acts() {
            for act in [Act::Return, Act::Resume, Act::Down, Act::Send(255)] {
                self.act(act);
            }
        }
    }

    pub fn act(&self, act: Act) {
        let mut sender = self.sender.borrow_mut();
        match act {
            Act::Return => sender.count(self.inside.take()),
            // One call at a time: whoever sends or goes down waits for the call inside.
            Act::Send(_) | Act::Down | Act::Resume | Act::Leave | Act::Give if self.inside.get() != 0 => {}
            Act::Send(most) => self.send(&mut sender, most.into()),
            Act::Up if self.has_left.get() => {}
            Act::Up => {
                if sender.path() == Path::Kernel && sender.go_up(self.given.get()).is_ok() {
                    self.ups.set(self.ups.get() + 1);
                    self.left_at.set(sender.sent_bytes());
                    self.is_answering.set(false);
                    *self.window.borrow_mut() = Stored::default();
                }
            }
            Act::Down => {
                let mut window = self.window.borrow_mut();
                window.seen = window.bytes.len();
                sender.go_down();
            }
            Act::Land(bytes) => {
                let mut window = self.window.borrow_mut();
                window.seen = window.bytes.len().min(window.seen + usize::from(bytes));
            }
            Act::Scribble => {
                self.window.borrow_mut().is_lost = true;
                self.scribbles.set(self.scribbles.get() + 1);
            }
            Act::Resume => {
                if let Some(from) = sender.resume_from().unwrap() {
                    sender.resume(from);
                    self.is_answering.set(true);
                }
            }
            Act::Leave if self.has_left.get() => {}
            Act::Leave => {
                self.has_left.set(true);
                if let Some(from) = sender.resume_from().unwrap() {
                    sender.resume(from);
                } else if !sender.is_settled().unwrap() && !self.is_answering.get() {
                    let from = self.left_at.get().max(sender.sent_bytes() - sender.untaken_bytes());
                    self.again.set(sender.sent_bytes() - from);
                    assert_eq!(sender.begin_anew(from), Ok(Anew::Begun), "the receiver does not stop");
                }
            }
            Act::Give if sender.path() == Path::Kernel => {
                self.inside.set(self.give(&sender, 3));
            }
            Act::Give | Act::Wait => {}
        }
    }

    fn send(&self, sender: &mut Sender<Own, Theirs>, most: usize) {
        if sender.path() == Path::Window && sender.is_asked_down().unwrap() {
            let mut window = self.window.borrow_mut();
            window.seen = window.bytes.len();
            sender.go_down();
        }
        let sent = match sender.path() {
            Path::Kernel => self.give(sender, most),
            Path::Window => {
                let from = sender.sent_bytes() as usize;
                let bytes = &self.stream[from..self.stream.len().min(from + most)];
                self.window.borrow_mut().bytes.extend(bytes);
                bytes.len() as u64
            }
        };
        sender.count(sent);
    }

    fn give(&self, sender: &Sender<Own, Theirs>, most: usize) -> u64 {
        let from = sender.sent_bytes() as usize;
        let bytes = &self.stream[from..self.stream.len().min(from + most)];
        self.socket.borrow_mut().extend(bytes);
        self.given.set(self.given.get() + bytes.len() as u64);
        bytes.len() as u64
    }
}

pub struct Socket(pub Rc<World>);

impl KernelPath for Socket {
    type Error = ();

    fn peek(&mut self, out: &mut [u8]) -> Result<Peeked, ()> {
        self.0.turn();
        let peeked = {
            let socket = self.0.socket.borrow();
            let bytes = socket.len().min(out.len());
            out.iter_mut().zip(socket.iter()).for_each(|(to, from)| *to = *from);
            match bytes {
                0 if self.0.is_over() => {
                    // A call into the kernel takes locks, and a locked instruction empties the buffers that combine writes.
                    let mut window = self.0.window.borrow_mut();
                    window.seen = window.bytes.len();
                    Peeked::End
                }
                0 => Peeked::Nothing,
                bytes => Peeked::Bytes(bytes),
            }
        };
        self.0.turn();
        Ok(peeked)
    }

    fn take(&mut self, bytes: usize) -> Result<(), ()> {
        self.0.turn();
        self.0.socket.borrow_mut().drain(..bytes);
        Ok(())
    }
}

pub struct Window(pub Rc<World>);

impl WindowPath for Window {
    fn read(&mut self, offset: u64, out: &mut [u8]) -> Result<usize, WindowLost> {
        let bytes = self.peek(offset, out)?;
        let mut window = self.0.window.borrow_mut();
        window.seen -= bytes;
        window.bytes.drain(..bytes);
        Ok(bytes)
    }

    fn peek(&mut self, offset: u64, out: &mut [u8]) -> Result<usize, WindowLost> {
        self.0.turn();
        let window = self.0.window.borrow();
        if window.is_lost {
            return Err(WindowLost);
        }
        let bytes = window.seen.min(out.len());
        out.iter_mut().zip(&window.bytes).for_each(|(to, from)| *to = *from);
        assert!(self.0.stream[offset as usize..].starts_with(&out[..bytes]), "not byte {offset}");
        Ok(bytes)
    }
}

//! The owner's account of the windows of one arena: which are lent, open, given up by which side, and free.
//!
//! Names begin at 1. What the client says of a name that does not fit what is known of it is out of place, and the end of the
//! connection. A window's part is given out again only when the sender has returned it and the receiver's half is gone.

/// The client said something that its windows do not allow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct OutOfPlace;

/// The windows of one arena; `P` is what each has of its memory.
#[derive(Debug)]
pub(super) struct Slots<P> {
    slots: Vec<Slot<P>>,
    /// Indices of those that are free.
    free: Vec<u32>,
    most: u32,
    /// Windows that are lent and not open.
    in_stock: u32,
    /// Whether the client has gone, and with it what it had.
    is_over: bool,
}

#[derive(Debug)]
enum Slot<P> {
    Free,
    /// The client has it and has not opened it.
    Lent(P),
    Open {
        part: P,
        sender: Sender,
        has_receiver: bool,
        /// Whether the client was told that the receiver has given it up.
        is_told: bool,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sender {
    Sending,
    /// It sends nothing more, and may still have stores under way.
    Ended,
    Returned,
}

/// What is to be done after a receiver's half has gone.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Left<P> {
    /// The part, if nobody has the window any more.
    pub part: Option<P>,
    pub tells_sender: bool,
}

impl<P> Slots<P> {
    /// There are at most `most` windows.
    pub(super) fn new(most: u32) -> Self {
        Slots { slots: Vec::new(), free: Vec::new(), most, in_stock: 0, is_over: false }
    }

    /// Windows that are lent and not open.
    pub(super) fn in_stock(&self) -> u32 {
        self.in_stock
    }

    /// A window's name and part, unless there are as many as there may be: then `make` is not called.
    pub(super) fn lend(&mut self, make: impl FnOnce(u32) -> P) -> Option<&P> {
        let index = match self.free.pop() {
            Some(index) => index,
            None if (self.slots.len() as u32) < self.most => {
                self.slots.push(Slot::Free);
                self.slots.len() as u32 - 1
            }
            None => return None,
        };
        self.in_stock += 1;
        let slot = &mut self.slots[index as usize];
        *slot = Slot::Lent(make(index + 1));
        let Slot::Lent(part) = slot else { unreachable!("it was just made so") };
        Some(part)
    }

    fn slot(&mut self, name: u32) -> Result<&mut Slot<P>, OutOfPlace> {
        let index = name.checked_sub(1).ok_or(OutOfPlace)?;
        self.slots.get_mut(index as usize).ok_or(OutOfPlace)
    }

    /// The client has opened a window.
    pub(super) fn open(&mut self, name: u32) -> Result<&P, OutOfPlace> {
        let slot = self.slot(name)?;
        match std::mem::replace(slot, Slot::Free) {
            Slot::Lent(part) => {
                *slot = Slot::Open { part, sender: Sender::Sending, has_receiver: true, is_told: false };
            }
            other => {
                *slot = other;
                return Err(OutOfPlace);
            }
        }
        self.in_stock -= 1;
        match self.slot(name)? {
            Slot::Open { part, .. } => Ok(part),
            Slot::Free | Slot::Lent(_) => Err(OutOfPlace),
        }
    }

    /// The client sends nothing more in a window.
    pub(super) fn sender_ended(&mut self, name: u32) -> Result<(), OutOfPlace> {
        match self.slot(name)? {
            Slot::Open { sender: sender @ Sender::Sending, .. } => {
                *sender = Sender::Ended;
                Ok(())
            }
            _ => Err(OutOfPlace),
        }
    }

    /// The client has no handle of a window any more; gives its part, if its receiver has none either.
    pub(super) fn returned(&mut self, name: u32) -> Result<Option<P>, OutOfPlace> {
        let Slot::Open { sender, has_receiver, .. } = self.slot(name)? else { return Err(OutOfPlace) };
        if *sender == Sender::Returned {
            return Err(OutOfPlace);
        }
        *sender = Sender::Returned;
        if *has_receiver {
            return Ok(None);
        }
        Ok(self.set_free(name))
    }

    /// The receiver reads a window no more; whether the client is to be told.
    pub(super) fn receiver_ended(&mut self, name: u32) -> bool {
        let is_over = self.is_over;
        match self.slot(name) {
            Ok(Slot::Open { sender: Sender::Sending, is_told, .. }) => {
                !std::mem::replace(is_told, true) && !is_over
            }
            _ => false,
        }
    }

    /// The receiver has no handle of a window any more.
    pub(super) fn receiver_gone(&mut self, name: u32) -> Left<P> {
        let tells_sender = self.receiver_ended(name);
        let is_over = self.is_over;
        let is_free = match self.slot(name) {
            Ok(Slot::Open { sender, has_receiver, .. }) => {
                *has_receiver = false;
                is_over || *sender == Sender::Returned
            }
            _ => false,
        };
        Left { part: if is_free { self.set_free(name) } else { None }, tells_sender }
    }

    fn set_free(&mut self, name: u32) -> Option<P> {
        match std::mem::replace(self.slot(name).ok()?, Slot::Free) {
            Slot::Open { part, .. } => {
                self.free.push(name - 1);
                Some(part)
            }
            Slot::Free | Slot::Lent(_) => None,
        }
    }

    /// The client has gone: it has no window any more.
    pub(super) fn end(&mut self) {
        self.is_over = true;
    }
}

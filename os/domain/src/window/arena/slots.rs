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
        /// Whether the client is told that the receiver has given it up, or was.
        is_told: bool,
        /// Whether a thread tells it so now.
        is_being_told: bool,
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

    /// A name for a window that is to be lent, unless there are as many as there may be.
    pub(super) fn reserve(&mut self) -> Option<u32> {
        if let Some(index) = self.free.pop() {
            return Some(index + 1);
        }
        if self.slots.len() as u32 >= self.most {
            return None;
        }
        self.slots.push(Slot::Free);
        Some(self.slots.len() as u32)
    }

    /// Lends a window by a name that was reserved for it.
    pub(super) fn lend(&mut self, name: u32, part: P) {
        let slot = &mut self.slots[name as usize - 1];
        debug_assert!(matches!(slot, Slot::Free), "window {name} is lent already");
        *slot = Slot::Lent(part);
        self.in_stock += 1;
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
                *slot = Slot::Open {
                    part,
                    sender: Sender::Sending,
                    has_receiver: true,
                    is_told: false,
                    is_being_told: false,
                };
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
        let Slot::Open { sender, .. } = self.slot(name)? else { return Err(OutOfPlace) };
        if *sender == Sender::Returned {
            return Err(OutOfPlace);
        }
        *sender = Sender::Returned;
        Ok(self.take_if_left(name))
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
        if let Ok(Slot::Open { has_receiver, .. }) = self.slot(name) {
            *has_receiver = false;
        }
        Left { part: self.take_if_left(name), tells_sender }
    }

    /// A thread is about to tell the client of the receiver's end. Until it has, the name is no other window's, which the client would
    /// take to have ended.
    pub(super) fn begin_telling(&mut self, name: u32) {
        if let Ok(Slot::Open { is_being_told, .. }) = self.slot(name) {
            *is_being_told = true;
        }
    }

    /// It has told the client, or found no room; gives the window's part, if nobody has the window any more.
    pub(super) fn end_telling(&mut self, name: u32) -> Option<P> {
        if let Ok(Slot::Open { is_being_told, .. }) = self.slot(name) {
            *is_being_told = false;
        }
        self.take_if_left(name)
    }

    /// The part of a window that nobody has any more, whose name is free then.
    fn take_if_left(&mut self, name: u32) -> Option<P> {
        let is_over = self.is_over;
        match self.slot(name) {
            Ok(Slot::Open { sender, has_receiver: false, is_being_told: false, .. })
                if is_over || *sender == Sender::Returned =>
            {
                self.set_free(name)
            }
            _ => None,
        }
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

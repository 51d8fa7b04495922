//! The sender's side: joining an arena and opening windows in it.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use beeline_mmio::{MemoryOptions, Region, SharedMemory, StoreKernel, fence};
use beeline_spec::formats::{arena_client_memory, credit_page, window_control};

use super::leases::Leases;
use super::messages::{Ask, Hello, Lease, Note, Tell, Terms};
use super::options::{CLIENT_BYTES, CONTROL_BYTES, CREDIT_BYTES, control_offset, credit_offset};
use super::tells::{TellRing, Teller};
use crate::credits::{receiver_waker, sender_sleeper};
use crate::error::{ConnectError, MisuseError};
use crate::mailbox::TakesNotices;
use crate::peer::EndsBranches;
use crate::protocol::Departure;
use crate::window::options::{WindowError, check_lines, line_bytes};
use crate::window::{PeerWindow, SenderParts};
use crate::{Connection, Domain, MemoryCredits, Peer, Token, Waker, sleeper};

/// An arena that this process has joined. Clones are the same one; the connection stands as long as there is one, or a window that
/// was opened in it.
#[derive(Clone, Debug)]
pub struct SenderArena(Arc<Joined>);

#[derive(Debug)]
struct Joined {
    connection: Connection,
    /// The lines of the windows, in the owner's memory.
    region: Region,
    /// The credits of the windows and what this side tells, in memory of this process.
    credits: Region,
    told: TellRing,
    /// Wakes the owner where it waits for windows.
    waiting: Waker,
    /// Lines of the windows in stock.
    lines: u32,
    most_lines: u32,
    account: Mutex<Account>,
    /// Held while what the owner told is taken, so that it is taken in order.
    taking: Mutex<()>,
}

/// What is lent, and what was told of it.
#[derive(Debug)]
struct Account {
    leases: Leases,
    teller: Teller,
}

/// Kept by every handle that a sender has of a window.
#[derive(Debug)]
struct SenderHalf {
    arena: Arc<Joined>,
    name: u32,
}

/// Joins the receiver that offers windows under `name`, to open windows of `lines` lines: a power of two, no more than the receiver
/// offers.
///
/// # Errors
/// Nobody offers the name; the receiver has too many clients or offers no such windows; its answer or memory is not in order.
pub fn join_windows(domain: &Domain, name: &str, lines: u32) -> Result<SenderArena, WindowError> {
    join(domain, name, lines, None)
}

/// Joins a receiver as [`join_windows`] does, if it is the process with which a token was exchanged in a connection
/// ([`Domain::connect_proving`]).
///
/// # Errors
/// As [`join_windows`]; the receiver is not that process, or the token is no longer good.
pub fn join_windows_proving(
    domain: &Domain,
    token: &Token,
    name: &str,
    lines: u32,
) -> Result<SenderArena, WindowError> {
    join(domain, name, lines, Some(token))
}

fn join(domain: &Domain, name: &str, lines: u32, token: Option<&Token>) -> Result<SenderArena, WindowError> {
    check_lines(lines)?;
    let reached = domain.reach(name, token)?;
    let memory =
        SharedMemory::create(&format!("beeline-credits-{name}"), CLIENT_BYTES, MemoryOptions::default())?;
    let (connection, reply) = reached.ask(&Hello::encode(lines), &[memory.fd()])?;
    let terms = Terms::decode(&reply.payload)?;
    if lines > terms.lines {
        return Err(WindowError::Malformed { what: format!("windows of at most {} lines", terms.lines) });
    }
    let [fd] = <[OwnedFd; 1]>::try_from(reply.fds).map_err(|fds| WindowError::Malformed {
        what: format!("{} descriptors instead of one", fds.len()),
    })?;
    let bytes = CONTROL_BYTES + terms.bytes;
    let region = SharedMemory::from_fd(fd, bytes)?.map_sparse()?;
    let credits = memory.map_sparse()?;
    let waiting = credits.flag(CREDIT_BYTES + arena_client_memory::OWNER_WAITING_OFFSET);
    let joined = Arc::new(Joined {
        waiting: Waker::new(waiting, connection.peer()),
        connection,
        region,
        told: TellRing::of(&credits),
        credits,
        lines,
        most_lines: terms.lines,
        account: Mutex::new(Account { leases: Leases::new(bytes, lines), teller: Teller::default() }),
        taking: Mutex::new(()),
    });
    let taker: Weak<Joined> = Arc::downgrade(&joined);
    joined.connection.mailbox.taken_by(taker);
    // What came before is taken here.
    joined.notified();
    Ok(SenderArena(joined))
}

impl SenderArena {
    /// Opens a window, which is fresh and nobody else's. A small one (16 KiB) that was lent before costs a few stores, and one system
    /// call if the receiver sleeps for it; otherwise the receiver is asked for some.
    ///
    /// # Errors
    /// The receiver has gone, has lent as many windows or bytes as it offers, or has broken the protocol; this process was forked
    /// from the one that joined.
    pub fn open(&self, kernel: StoreKernel) -> Result<SenderParts, WindowError> {
        let arena = &self.0;
        arena.check_process()?;
        let in_stock = if arena.connection.peer().is_alive() { arena.lock().leases.take() } else { None };
        let lease = match in_stock {
            Some(lease) => lease,
            // What the owner lent before it refused is there.
            None => arena.ask(arena.lines).or_else(|error| {
                let is_refused = matches!(error, WindowError::Connect(ConnectError::Refused { .. }));
                let came = if is_refused { arena.lock().leases.take() } else { None };
                came.ok_or(error)
            })?,
        };
        Joined::open(arena, lease, kernel)
    }

    /// Opens a window of another number of lines than the usual one; the receiver is asked for it.
    ///
    /// # Errors
    /// As [`SenderArena::open`]; the number of lines cannot be or is more than the receiver offers.
    pub fn open_sized(&self, lines: u32, kernel: StoreKernel) -> Result<SenderParts, WindowError> {
        if lines == self.0.lines {
            return self.open(kernel);
        }
        check_lines(lines)?;
        if lines > self.0.most_lines {
            return Err(WindowError::Arena {
                what: format!("a window of {lines} lines, the receiver offers at most {}", self.0.most_lines),
            });
        }
        self.0.check_process()?;
        let lease = self.0.ask(lines)?;
        Joined::open(&self.0, lease, kernel)
    }

    /// The receiver's process. It is gone when the connection has ended, and every window with it.
    pub fn peer(&self) -> &Peer {
        self.0.connection.peer()
    }
}

impl Joined {
    fn lock(&self) -> MutexGuard<'_, Account> {
        // Every change is finished before anything that could panic.
        self.account.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn check_process(&self) -> Result<(), WindowError> {
        // Before any lock: a thread that a child of fork does not have may hold it.
        if self.connection.peer().is_own() {
            return Ok(());
        }
        let opened_by = self.connection.channel.opened_by();
        Err(ConnectError::from(MisuseError::Forked { opened_by, pid: std::process::id() }).into())
    }

    /// Asks the owner for windows of so many lines; gives one, and keeps the others.
    fn ask(&self, lines: u32) -> Result<Lease, WindowError> {
        let reply = self.connection.call(&Ask { lines }.encode(), &[])?;
        self.lent(lines, &reply.payload).inspect_err(|_| {
            // It may have been meant for harm; nothing more of the owner is used.
            self.connection.peer().disconnect();
        })
    }

    /// Takes in what the owner answered, which is not trusted.
    fn lent(&self, lines: u32, answer: &[u8]) -> Result<Lease, WindowError> {
        let Note::Lent(leases) = Note::decode(answer)? else { return Err(malformed("no windows")) };
        let (first, others) = leases.split_first().ok_or_else(|| malformed("no window"))?;
        if first.lines != lines {
            return Err(malformed("a window of another size"));
        }
        // Not into the stock, where another thread could find it.
        self.checked(|leases| leases.add(*first))?;
        others.iter().try_for_each(|lease| self.checked(|leases| leases.take_in(*lease)))?;
        Ok(*first)
    }

    fn checked(&self, take: impl FnOnce(&mut Leases) -> Result<(), String>) -> Result<(), WindowError> {
        take(&mut self.lock().leases).map_err(|what| WindowError::Malformed { what })
    }

    fn open(this: &Arc<Self>, lease: Lease, kernel: StoreKernel) -> Result<SenderParts, WindowError> {
        if !this.connection.peer().is_alive() || this.connection.channel.is_closed_here() {
            // It ended meanwhile; the answer says how.
            return Err(this.ask(this.lines).err().unwrap_or_else(|| malformed("an answer after the end")));
        }
        let Lease { name, lines, offset_bytes, blank, epoch } = lease;
        // The last receiver of the name has no handle any more.
        this.credits.fill(credit_offset(name), credit_page::BYTES, 0);
        let half = Arc::new(SenderHalf { arena: Arc::clone(this), name });
        let weak: Weak<Self> = Arc::downgrade(this);
        let peer = this.connection.peer().branch(name, weak, None);
        let credits = this.credits.part(credit_offset(name), credit_page::BYTES, Arc::clone(&half));
        let control = this.region.part(control_offset(name), window_control::BYTES, Arc::clone(&half));
        let window = this.region.part(offset_bytes as usize, line_bytes(lines), half);
        let store = window.store_window(0, lines, kernel);
        let parts = SenderParts {
            store: PeerWindow::new(store, receiver_waker(&credits, &peer)),
            credits: MemoryCredits::new(&credits, &peer),
            blank,
            epoch,
            needs_fence_per_message: peer.needs_full_fence(),
            sleeper: sender_sleeper(&control, &peer),
            peer,
        };
        this.tell(Tell::Open { name, kernel: Some(kernel) });
        this.waiting.wake_if_asleep();
        Ok(parts)
    }

    fn tell(&self, tell: Tell) {
        self.lock().teller.tell(&self.told, tell.encode());
    }

    /// Has the receiver of a window see that nothing more is sent, before it hears of that.
    fn show_end(&self, name: u32) {
        // Every store of this thread is out before the receiver sees the end, and before the owner hears that it may lend the window
        // anew. Those that other threads made with non-temporal stores are out too: see the drop of `PeerWindow`.
        fence::order_all();
        self.credits.word(credit_offset(name) + credit_page::SENDER_ENDED_OFFSET).store_release(1);
    }

    /// Wakes the receiver of a window that has ended. If the name is another window's by now, that one's looks for nothing.
    fn wake_receiver(&self, name: u32) {
        let flag = self.credits.flag(credit_offset(name) + credit_page::RECEIVER_WAITING_OFFSET);
        let peer = self.connection.peer();
        sleeper::wake_if_asleep(&flag, peer, || peer.ring_branch(name));
    }

    /// Takes what the owner has told, if it is in order.
    fn heard(&self, payload: &[u8]) -> Result<(), WindowError> {
        match Note::decode(payload)? {
            Note::Lent(leases) => {
                leases.into_iter().try_for_each(|lease| self.checked(|leases| leases.take_in(lease)))
            }
            Note::Ended { name } => {
                let trunk = self.connection.peer();
                let is_held = self.lock().leases.receiver_ended(name);
                if !is_held {
                    // The owner may not have heard that it was returned, and has no half of it any more whose end would have it look.
                    trunk.ring_taken();
                } else if let Some(peer) = trunk.find_branch(name) {
                    peer.depart(Departure::Closed);
                }
                Ok(())
            }
        }
    }
}

fn malformed(what: &str) -> WindowError {
    WindowError::Malformed { what: what.to_owned() }
}

impl TakesNotices for Joined {
    fn notified(&self) {
        let _in_order = self.taking.lock().unwrap_or_else(PoisonError::into_inner);
        while let Ok(Some(taken)) = self.connection.mailbox.notices.take() {
            if let Some(count) = taken.tell
                && let Ok(socket) = self.connection.channel.live()
            {
                self.connection.channel.outbox().tell_taken(socket.as_fd(), count);
            }
            if let Err(error) = self.heard(&taken.notification.payload) {
                tracing::warn!(%error, pid = self.connection.peer().pid(), "an owner of windows is disconnected");
                self.connection.peer().disconnect();
            }
        }
    }
}

impl EndsBranches for Joined {
    fn end_branch(self: Arc<Self>, name: u32) {
        self.show_end(name);
        {
            let mut account = self.lock();
            // The owner tells no end of its own from here on, so the return has to ring.
            account.leases.receiver_ended(name);
            account.teller.tell(&self.told, Tell::End { name }.encode());
        }
        self.wake_receiver(name);
    }
}

impl Drop for SenderHalf {
    /// No handle of the window is left in this process.
    fn drop(&mut self) {
        let (arena, name) = (&self.arena, self.name);
        let trunk = arena.connection.peer();
        // In a child of fork a lock may be held by a thread that is not there, and the window is the parent's.
        if !trunk.is_own() {
            return;
        }
        if let Some(peer) = trunk.find_branch(name) {
            peer.depart(Departure::Closed);
        }
        trunk.forget_branch(name);
        arena.show_end(name);
        let has_receiver_ended = {
            let mut account = arena.lock();
            // Before it is told: the owner may lend the same bytes and the same name at once.
            let has_receiver_ended = account.leases.give_up(name);
            account.teller.tell(&arena.told, Tell::Return { name }.encode());
            has_receiver_ended
        };
        arena.wake_receiver(name);
        if has_receiver_ended {
            // The owner has no half of it whose end would have it look.
            trunk.ring_taken();
        }
    }
}

//! Pairs: processes that share connections of TCP, and agree on which ones over one connection of the domain.
//!
//! A process says which of its sockets it would like to share ([`Pairs::meet`]). Who may be at the other end the table of connections
//! says ([`crate::ConnectionTable`]); with that process a connection of the domain is opened in the background, at most one for each
//! pair. Who lets the other in hands out a memory, which both map. Over the connection both say which socket is connected to which, each by the kernel's word for the other's, and agree on a slot. Nobody
//! waits: what is not known yet is asked for again, and a process that is stopped leaves its own connections as they are.
//!
//! Processes of other users are met where that is asked for ([`others`], record 0082).
//!
//! What a slot stands for, where it lies in the memory and what is written there, others know. The kernel is asked by who opens the pairs: this asks nothing of a socket
//! itself.

mod agreements;
mod claims;
mod link;
mod links;
mod opening;
mod others;
mod said;

use std::fmt;
use std::num::NonZeroU64;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use beeline_mmio::Region;
use beeline_tcp::{OtherSocket, Progress};
pub use link::Agreed;
use link::{NotOpened, ProcessKey};
use links::{Links, Standing, Talk, Wanted};
use opening::{Hello, KNOCK, make_memory, name_of};
use others::Others;
use said::{Claim, Said};

use crate::connection_table::{ConnectionEnds, ConnectionTable, OtherProcess};
use crate::error::OfferError;
use crate::folder::own_uid;
use crate::pairs::agreements::{Message, Saying};
use crate::registry::RegistryError;
use crate::{
    Answer, Domain, DomainConfig, Notifications, Offer, OfferOptions, Peer, Refusal, Reply, Ringer, Service,
};

/// What the kernel says of a socket: the cookie of the established one with these ends, local first; `None` where there is none.
pub type CookieOf = dyn Fn(&ConnectionEnds) -> Option<u64> + Send + Sync;

/// As [`CookieOf`], and whose the socket is.
pub type SocketOf = dyn Fn(&ConnectionEnds) -> Option<OtherSocket> + Send + Sync;

/// What went through this process's socket with this cookie so far ([`beeline_tcp::progress`]); `None` where it has none.
pub type ProgressOf = dyn Fn(u64) -> Option<Progress> + Send + Sync;

/// Which processes are met, and how the kernel is asked for what they have.
pub struct PairsOptions<'a> {
    /// Bytes of the memory of a pair ([`Domain::pairs`]).
    pub memory_bytes: usize,
    pub socket_of: Box<SocketOf>,
    /// How this domain was opened, where processes of other users are met, too: those that have the other end of a connection, by the
    /// kernel's word, `socket_of` ([`ConnectionEnds::socket_at_the_kernel`]). Another user's domain is that of the same name whose root
    /// [`DomainConfig::root_folder_of`] that user is. The table of this user's connections is readable by others from then on, and its
    /// folder can be searched ([`ConnectionTable::let_others_read`]).
    pub other_users: Option<&'a DomainConfig>,
    /// Has processes in other network namespaces met, too, for connections that are said to be between hosts
    /// ([`ConnectionEnds::between_hosts`]). There the kernel has no word for the other end: what each process says of its own is
    /// compared with what this gives. Processes of other users are not met so.
    pub progress_of: Option<Box<ProgressOf>>,
}

/// The processes with which this one shares connections. Dropping it ends what it has with them.
#[derive(Debug)]
pub struct Pairs {
    domain: Domain,
    core: Arc<Core>,
    _offer: Offer,
}

/// Who is at the other end of a connection.
#[derive(Clone, Debug)]
pub enum Met {
    /// Nobody is known yet, or not confirmed: ask again later.
    NotYet,
    /// Both ends are this one socket.
    SameSocket,
    /// This process, which has asked for the other end as well.
    ThisProcess { other_cookie: u64 },
    /// Both processes have confirmed it.
    Agreed(Agreed),
}

/// What is left behind a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Turned {
    /// Messages that were heard.
    pub heard: usize,
    /// Connections that others have agreed on, and processes that this one is connected with since the last turn: what was not known yet is known now. A refusal is none.
    pub news: usize,
    /// There is something that had no room, or was not heard yet: take another turn, later and later while nothing is heard.
    pub is_unfinished: bool,
}

/// How many processes this one is connected with, and what they did wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PairCounts {
    /// Other processes with which a connection of the domain is open.
    pub open: usize,
    /// Those to which one is being opened.
    pub opening: usize,
    /// What others have said, or handed out as memory, that could not be; it was refused.
    pub wrong: u64,
    /// Connections that were not opened because this process could not make or map the memory (`ulimit -v`, `-f`, `-n`).
    pub without_memory: u64,
}

/// Why there are no pairs.
#[derive(Debug, thiserror::Error)]
pub enum PairsError {
    #[error(transparent)]
    Table(#[from] RegistryError),
    /// This process cannot be reached.
    #[error(transparent)]
    Offer(#[from] OfferError),
}

struct Core {
    table: ConnectionTable,
    /// None where processes of other users are not met.
    others: Option<Others>,
    socket_of: Box<SocketOf>,
    progress_of: Option<Box<ProgressOf>>,
    memory_bytes: usize,
    own_uid: u32,
    links: Mutex<Links>,
    wake: OnceLock<Box<dyn Fn() + Send + Sync>>,
}

impl fmt::Debug for Core {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("Core").field("table", &self.table).finish_non_exhaustive()
    }
}

impl Domain {
    /// Joins the table of connections, and lets other processes of this user connect that find this one there. `cookie_of` asks the
    /// kernel ([`ConnectionEnds::established_cookie`]); it is called on threads that call [`Pairs`], never on the domain's.
    ///
    /// Each pair of processes shares one memory of `memory_bytes`, whose pages come when they are written. Processes that ask for
    /// different sizes share no connections.
    ///
    /// # Errors
    /// The table cannot be joined ([`Domain::connection_table`]); this process cannot offer a name.
    pub fn pairs(&self, cookie_of: Box<CookieOf>, memory_bytes: usize) -> Result<Pairs, PairsError> {
        let uid = own_uid();
        let of_this_user =
            move |ends: &_| cookie_of(ends).map(|cookie| OtherSocket { cookie, uid, inode: 1 });
        let socket_of = Box::new(of_this_user);
        self.pairs_with(PairsOptions { memory_bytes, socket_of, other_users: None, progress_of: None })
    }

    /// As [`Domain::pairs`], with what these options say.
    ///
    /// # Errors
    /// As [`Domain::pairs`]; for other users, the domain has no folder.
    pub fn pairs_with(&self, options: PairsOptions<'_>) -> Result<Pairs, PairsError> {
        let PairsOptions { memory_bytes, socket_of, other_users, progress_of } = options;
        let others = other_users.map(|config| Others::new(config.clone()));
        let table = self.connection_table()?;
        if others.is_some() {
            table.let_others_read()?;
        }
        let (number, own_uid) = (table.number(), own_uid());
        let links = Mutex::new(Links::new(ProcessKey { uid: own_uid, number }, self.disposer()));
        let admissions = others.as_ref().map(|others| others.admissions.clone());
        let wake = OnceLock::new();
        let core = Core { table, others, socket_of, progress_of, memory_bytes, own_uid, links, wake };
        let core = Arc::new(core);
        let service = Box::new(Doorkeeper(Arc::clone(&core)));
        let options = OfferOptions { max_connections: 8192, admissions, ..OfferOptions::default() };
        let offer = self.offer_with(&name_of(number), service, options)?;
        Ok(Pairs { domain: self.clone(), core, _offer: offer })
    }
}

impl Pairs {
    /// Says that this process would share the connection whose socket it has under `own_cookie`, and how far that is. Call it again
    /// while it says [`Met::NotYet`]; between the calls [`Pairs::turn`] hears what others say. Never waits.
    ///
    /// # Errors
    /// The table fails ([`ConnectionTable::find`]).
    pub fn meet(&self, own_cookie: u64, ends: &ConnectionEnds) -> Result<Met, RegistryError> {
        // Before the lock, which a thread may have that a child of fork does not have.
        self.core.table.check_process()?;
        {
            let links = &mut *self.core.links();
            links.want(own_cookie, ends);
            match links.talk(own_cookie) {
                Talk::Agreed(agreed) => return Ok(Met::Agreed(agreed)),
                Talk::UnderWay => return Ok(Met::NotYet),
                Talk::None => {}
            }
        }
        match self.core.table.find(ends)? {
            OtherProcess::NotYet => {
                self.meet_another_user(own_cookie, ends);
                Ok(Met::NotYet)
            }
            OtherProcess::SameSocket => Ok(Met::SameSocket),
            OtherProcess::ThisProcess => Ok(self.meet_here(ends)),
            OtherProcess::Found(candidate) => {
                let process = ProcessKey { uid: self.core.own_uid, number: candidate.number };
                self.meet_there(own_cookie, ends, process, || {
                    (self.core.socket_of)(&ends.mirrored())
                        .or_else(|| self.meet_between_hosts(own_cookie, ends, process))
                });
                Ok(Met::NotYet)
            }
        }
    }

    /// Has `wake` called when a process has connected, or that says something, or this one has connected to one: who sleeps takes a [`Pairs::turn`] then. It is called on threads of
    /// the library, and is set once. What others say is in [`Pairs::notifications`].
    pub fn wake_by(&self, wake: impl Fn() + Send + Sync + 'static) {
        let _ = self.core.wake.set(Box::new(wake));
    }

    /// What is readable when a process that has let this one in says something. One that does not listen is left out, since it is not heard.
    pub fn notifications(&self) -> Vec<Notifications> {
        if self.is_own() { self.core.links().notifications() } else { Vec::new() }
    }

    /// Hears what other processes say, and answers; some messages of each.
    pub fn turn(&self) -> Turned {
        if !self.is_own() {
            return Turned::default();
        }
        let messages = self.core.links().hear();
        let heard = messages.len();
        for (process, said) in messages {
            let message = match said {
                Said::Claim(claim) => {
                    self.compare(process, &claim);
                    continue;
                }
                Said::Message(message) => message,
            };
            let is_shared = matches!(message.saying, Saying::Announce(_)) && self.is_shared(process, message);
            self.core.links().take(process, message, is_shared);
        }
        let mut links = self.core.links();
        links.flush();
        Turned { heard, news: links.take_news(), is_unfinished: links.are_unfinished() }
    }

    /// Has `empty` give back what slots of a memory have of pages that nobody uses: both processes have released them, and neither gets one
    /// before that. Some stay as they are, for connections that come next.
    pub fn empty_slots(&self, empty: impl Fn(&Region, u32)) {
        if !self.is_own() {
            return;
        }
        let to_empty = self.core.links().take_to_empty();
        for (process, memory, slots) in to_empty {
            slots.iter().for_each(|slot| empty(&memory, *slot));
            self.core.links().emptied(process, slots);
        }
    }

    /// This process has done with a connection. Its slot is free when the other one has, too.
    pub fn release(&self, own_cookie: u64) {
        if !self.is_own() {
            return;
        }
        let mut links = self.core.links();
        links.release(own_cookie);
        links.flush();
    }

    /// What there is now; nothing in a child of fork.
    pub fn counts(&self) -> PairCounts {
        if !self.is_own() {
            return PairCounts::default();
        }
        let links = self.core.links();
        let (open, opening) = links.count();
        PairCounts { open, opening, wrong: links.wrong(), without_memory: links.without_memory() }
    }

    fn is_own(&self) -> bool {
        self.core.table.check_process().is_ok()
    }

    /// Whether the other end is one that this process has asked for, by the kernel's word.
    fn meet_here(&self, ends: &ConnectionEnds) -> Met {
        let other = ends.mirrored();
        let Some(OtherSocket { cookie: other_cookie, .. }) = (self.core.socket_of)(&other) else {
            return Met::NotYet;
        };
        match self.core.links().wanted.get(&other_cookie) {
            Some(wanted) if wanted.ends == other => Met::ThisProcess { other_cookie },
            _ => Met::NotYet,
        }
    }

    /// Goes on with a process that may have the other end. `other` is what the kernel has there, which is asked for only once the process is met.
    fn meet_there(
        &self,
        own_cookie: u64,
        ends: &ConnectionEnds,
        process: ProcessKey,
        other: impl FnOnce() -> Option<OtherSocket>,
    ) {
        let standing = self.core.links().standing(process);
        match standing {
            Standing::Open => {}
            Standing::Opening => return,
            Standing::None => return self.open(process),
        }
        let Some(other) = other().filter(|other| self.core.may_have(process, ends, *other)) else { return };
        let mut links = self.core.links();
        links.announce(process, own_cookie, other.cookie);
        links.flush();
    }

    /// Says to a process in another network namespace which socket this one has, and gives what that has said of its own, if it fits.
    fn meet_between_hosts(
        &self,
        own_cookie: u64,
        ends: &ConnectionEnds,
        process: ProcessKey,
    ) -> Option<OtherSocket> {
        if !ends.are_between_hosts() {
            return None;
        }
        if self.core.links().is_to_be_told(process, own_cookie) {
            let progress = self.core.progress_of.as_ref()?(own_cookie)?;
            let claim = Claim { cookie: own_cookie, tuple: ends.tuple(), progress };
            self.core.links().claim(process, claim);
        }
        let links = self.core.links();
        links.claimed(own_cookie, process).map(|cookie| OtherSocket { cookie, uid: process.uid, inode: 1 })
    }

    /// Compares what a process says of its socket with what this one has.
    fn compare(&self, process: ProcessKey, claim: &Claim) {
        let Some(own_cookie) = self.core.links().own_cookie_of(process, claim) else { return };
        // Read now: behind what the other one has read.
        let own = self.core.progress_of.as_ref().and_then(|progress_of| progress_of(own_cookie));
        let Some(progress) = own.filter(|own| own.may_be_the_other_end_of(&claim.progress)) else {
            tracing::debug!(own_cookie, ?own, ?claim, "a connection between hosts is not confirmed");
            return;
        };
        let mut links = self.core.links();
        // At once: what this process has claimed before, the other one may not have looked for yet. It answers only what is new to it, too.
        if links.believe(own_cookie, process, claim) {
            links.claim(process, Claim { cookie: own_cookie, tuple: claim.tuple.mirrored(), progress });
        }
    }

    /// Looks whether the other end is another user's, and who of its processes has it.
    fn meet_another_user(&self, own_cookie: u64, ends: &ConnectionEnds) {
        let Some(others) = self.core.others.as_ref().filter(|_| ends.is_connection()) else { return };
        let Some(other) = (self.core.socket_of)(&ends.mirrored()) else { return };
        if other.uid == self.core.own_uid {
            return;
        }
        // First, so that of two that look for each other the second one is let in.
        self.core.links().admit(own_cookie, || others.admit(other));
        if let Some(number) = others.find(other.uid, ends) {
            self.meet_there(own_cookie, ends, ProcessKey { uid: other.uid, number }, || Some(other));
        }
    }

    /// Has a thread connect to a process.
    fn open(&self, process: ProcessKey) {
        let Some(domain) = self.domain_of(process.uid) else { return };
        let mut links = self.core.links();
        if !links.may_open(process) {
            return;
        }
        links.begin(process);
        drop(links);
        let core = Arc::downgrade(&self.core);
        let hello = self.core.hello();
        let gives_ringer = self.core.gives_ringer(process.uid);
        let connect = move || {
            let is_wanted = || core.strong_count() > 0;
            let opened = hello.connect_to(&domain, process.number, gives_ringer, &is_wanted);
            let Some(core) = core.upgrade() else { return };
            let unneeded = core.links().opened(process, opened);
            drop(unneeded);
            core.wake();
        };
        if let Err(error) = beeline_mmio::thread::start("beeline-pair", connect) {
            tracing::debug!(%error, "no thread to connect to a process");
            self.core.links().opened(process, Err(NotOpened::Absent));
        }
    }

    /// The domain in which processes of a user are; none of another user whose domain is not open.
    fn domain_of(&self, uid: u32) -> Option<Domain> {
        if uid == self.core.own_uid {
            return Some(self.domain.clone());
        }
        Some(self.core.others.as_ref()?.user(uid)?.domain.clone())
    }

    /// Whether this process wants the connection that another one announces, and the kernel has both sockets as it says.
    fn is_shared(&self, process: ProcessKey, message: Message) -> bool {
        let links = self.core.links();
        let wanted = links.wanted.get(&message.cookies.other).copied();
        // Another user may say it as often as it likes.
        if links.have_agreed_on(process, message.cookies.mirrored()) {
            return true;
        }
        drop(links);
        wanted.is_some_and(|Wanted { ends, .. }| match (self.core.socket_of)(&ends.mirrored()) {
            Some(other) => other.cookie == message.cookies.own && self.core.may_have(process, &ends, other),
            None => {
                let claimed = self.core.links().claimed(message.cookies.other, process);
                claimed == Some(message.cookies.own)
            }
        })
    }
}

impl Drop for Pairs {
    fn drop(&mut self) {
        if !self.is_own() {
            return;
        }
        // The domain's thread has the service, which has the connections, which have the domain.
        let ended = self.core.links().clear();
        drop(ended);
    }
}

impl Core {
    /// Whether a process may say that it has a socket: another user's only of those of its user, and no socket of UDP. Who closes
    /// one can go on to say that it has it, when somebody else has its address; a connection has an end that both see.
    fn may_have(&self, process: ProcessKey, ends: &ConnectionEnds, socket: OtherSocket) -> bool {
        process.uid == self.own_uid || ends.is_connection() && process.uid == socket.uid
    }

    /// Whether who comes is the process that has the place of its number in its user's table.
    fn is_member(&self, peer: &Peer, place: u16, number: NonZeroU64) -> bool {
        match &self.others {
            Some(others) if peer.uid() != self.own_uid => others.is_member(peer.uid(), place, number),
            _ => self.table.is_member(place, number, peer.pid()),
        }
    }

    /// A ringer that was handed out, where one of this process does not do. Closing a stranger's socket may wait, and is done elsewhere.
    fn keep_or_dispose(&self, ringer: Ringer) -> Option<Arc<Ringer>> {
        if ringer.is_of_another_namespace() {
            return Some(Arc::new(ringer));
        }
        self.links().dispose(ringer);
        None
    }

    fn hello(&self) -> Hello {
        let (number, place) = (self.table.number(), self.table.place());
        Hello { memory_bytes: self.memory_bytes, number, place }
    }

    /// Whether processes of a user may be in other network namespaces, and have to ring there.
    fn gives_ringer(&self, uid: u32) -> bool {
        self.progress_of.is_some() && uid == self.own_uid
    }

    fn wake(&self) {
        if let Some(wake) = self.wake.get() {
            wake();
        }
    }

    fn links(&self) -> MutexGuard<'_, Links> {
        // Changed by single inserts and removals.
        self.links.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Lets other processes in.
struct Doorkeeper(Arc<Core>);

impl Service for Doorkeeper {
    fn connected(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let refusal = |why| Ok(Answer::refusal(Refusal::new(why), Vec::new()));
        if request == KNOCK && fds.is_empty() && peer.uid() == self.0.own_uid {
            self.0.wake();
            return refusal("this process is awake");
        }
        let refused_with = |fds| Ok(Answer::refusal(Refusal::new("no such descriptor is wanted here"), fds));
        let ringer = match <[OwnedFd; 1]>::try_from(fds) {
            Ok([fd]) if peer.uid() == self.0.own_uid => match Ringer::handed_out(fd) {
                Ok(ringer) => Some(ringer),
                Err(fd) => return refused_with(vec![fd]),
            },
            Ok([fd]) => return refused_with(vec![fd]),
            Err(fds) if fds.is_empty() => None,
            Err(fds) => return refused_with(fds),
        };
        let hello = Hello::from_bytes(request).filter(|hello| hello.memory_bytes == self.0.memory_bytes);
        let Some(Hello { number, place, .. }) = hello else {
            return refusal("another version of this library, or another size of memory");
        };
        if !self.0.is_member(peer, place, number) {
            return refusal("this process has not joined the table under this number");
        }
        let refused = "there is a connection between these processes, or will be";
        let process = ProcessKey { uid: peer.uid(), number };
        // Before memory is made for it: two processes that share connections begin at the same moment.
        if !self.0.links().may_come(process) {
            return Err(Refusal::new(refused));
        }
        let (memory, fd) = make_memory(self.0.memory_bytes).map_err(|error| {
            tracing::debug!(%error, "a pair's memory cannot be made");
            self.0.links().lacks_memory();
            Refusal::new("there is no room for the memory of a pair")
        })?;
        let mut fds = vec![fd];
        if ringer.is_some() && self.0.gives_ringer(process.uid) {
            fds.push(Ringer::to_hand_out().map_err(|_| Refusal::new("there is no descriptor left"))?);
        }
        // Whoever gives none gets none, and cannot be rung elsewhere.
        let ringer = ringer.filter(|_| fds.len() > 1).and_then(|ringer| self.0.keep_or_dispose(ringer));
        if !self.0.links().let_in(process, peer, memory, ringer) {
            return Err(Refusal::new(refused));
        }
        self.0.wake();
        Ok(Reply { payload: Vec::new(), fds }.into())
    }

    fn requested(&mut self, _: &Peer, _: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Ok(Answer::refusal(Refusal::new("nothing is asked here"), fds))
    }

    fn departed(&mut self, peer: &Peer) {
        self.0.links().departed(peer);
    }

    fn told(&mut self, peer: &Peer, message: &[u8]) {
        let is_first = self.0.links().told(peer, message);
        if is_first {
            self.0.wake();
        }
    }
}

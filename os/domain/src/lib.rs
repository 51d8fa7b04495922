//! Who is there: rendezvous, sealed memory passed by descriptor, liveness, wake-up.
//!
//! - **Rendezvous** ([`Domain`], [`Service`], [`Connection`]): an owner offers a name in an owner-only folder, or in a network
//!   namespace; a client
//!   connects, sends a request with descriptors, gets an answer with descriptors. No daemon, no root.
//! - **Notifications** ([`Peer::notify`], [`Notifications`]): an owner tells a client something unasked, in order with its
//!   answers, without waiting for it; the client waits by descriptor, by timeout or with callbacks on a thread.
//! - **Liveness** ([`Peer`]): one background thread, asleep in the kernel, learns of a peer's death from its pidfd,
//!   never from silence; a hot path asks with one relaxed load. A stopped peer is alive; a forked peer's children do
//!   not keep it alive. A name whose owner died is reclaimed by the next comer.
//! - **Wake-up** ([`MemorySleeper`], [`Waker`]): whoever sleeps pays for the ordering, so that senders do not fence
//!   (docs/design.md, decision 5). [`MemoryCredits`] and [`MemoryCreditSink`] are built on it.
//! - **Readiness** ([`Polled`], [`Readiness`], [`Source`], [`Event`]): whoever waits in poll or epoll announces
//!   it the same way; the other side's wake-up is a packet, for which the domain's thread signals a descriptor of this
//!   process.
//! - **Windows** ([`offer_window`], [`connect_window`]): the two halves of a window between processes; and thousands of them in an
//!   arena ([`offer_windows`], [`join_windows`]).
//!
//! It does not know messages (`host/window`), NICs (`link/shm`) or other machines. Frames never pass through here:
//! this crate is called when things begin, end, or have been quiet for a while. Memory comes from `os/mmio`, which
//! has all of the unsafe code.
//!
//! What is promised against a hostile peer: memory safety, bounds, and that it delays nobody but itself. The boundary
//! is the user id; an offer can name others. Sources: docs/design.md, decisions 3 to 7; HotOS'25 §2.5 for why senders
//! must not fence.
#![forbid(unsafe_code)]

mod admissions;
mod arrival;
mod bell;
mod callbacks;
mod channel;
mod claim;
mod config;
mod connection;
mod connection_table;
mod credits;
mod descriptor;
mod dialogue;
mod disposer;
mod domain;
mod error;
mod event;
mod evidence;
mod fair_lock;
mod file_identity;
mod folder;
#[cfg(fuzzing)]
pub mod fuzzing;
mod group_ends;
mod high_copy;
mod in_use;
mod inbox;
mod links;
mod mailbox;
mod modes;
mod moving;
mod name;
mod namespace;
mod notices;
mod notifications;
mod notify;
mod numbers;
mod opening;
mod outbox;
mod pairs;
mod peer;
mod place;
mod polled;
mod port_marks;
mod protocol;
mod reactor;
mod record_lock;
mod registry;
mod rings;
mod service;
mod shared;
mod shared_connection;
mod shares;
mod sleeper;
mod socket;
pub mod support;
mod sync;
mod table;
mod token;
mod uid;
mod watchers;
mod window;
mod wire;
mod workers;

pub use admissions::{Admissions, AdmitError, Admitted};
pub use arrival::{Absence, MayArrive};
pub use callbacks::CallbackThread;
pub use config::{DomainConfig, DomainPlace, NETWORK_NAMESPACE, ROOT_VARIABLE};
pub use connection::{Connection, DEFAULT_TIMEOUT};
pub use connection_table::{Candidate, ConnectionEnds, ConnectionTable, OtherProcess, OthersConnectionTable};
pub use credits::{MemoryCreditSink, MemoryCredits};

pub use bell::{Bell, BellAddress, Ringer, Rung};
pub use disposer::Disposer;
pub use domain::{Domain, Offer};
pub use error::{ConnectError, DomainError, MisuseError, OfferError, process_name};
pub use event::Event;
pub use folder::FolderError;
pub use group_ends::GroupMember;
pub use high_copy::HighCopy;
pub use in_use::remove_unused_domains;
pub use moving::move_descriptors_above;
pub use name::{MAX_NAME_BYTES, MAX_NAMESPACE_NAME_BYTES, NameError};
pub use namespace::NamespaceError;
pub use notifications::Notifications;
pub use notify::{Notification, NotificationsEnded, Notified, NotifyError};
pub use numbers::{Purpose, descriptors, place_descriptors_above};
pub use pairs::{
    Agreed, CookieOf, Met, PairCounts, Pairs, PairsError, PairsOptions, ProgressOf, SocketOf, Turned,
};
pub use peer::{Peer, PeerId};
pub use polled::{Armed, Polled, Readiness, Source};
pub use port_marks::{PortMarks, PortMarksError};
pub use protocol::Departure;
pub use registry::{Entry, Found, Holder, Kind, Life, PutError, Registry, RegistryError, Resident};
pub use rings::RingWatch;
pub use service::{Afterwards, Answer, OfferOptions, Refusal, Reply, Service, Work};
pub use shared_connection::{NotShared, OtherEnd};
pub use shares::{Exceeded, Process, Shares};
pub use sleeper::{MAX_SLEEP, MemorySleeper, Slept, Waker, listen_all, park_any, prepare_all};
pub use token::{ExchangeError, Token};
pub use window::{
    ArenaListener, ArenaOptions, CreditPage, FreshWindow, MAX_ARENA_BYTES, MAX_ARENA_WINDOWS,
    MAX_WINDOW_LINES, PeerWindow, ReceiverParts, SenderArena, SenderParts, StoreOptions, WindowError,
    WindowListener, WindowOptions, WindowTerms, connect_window, connect_window_proving, join_windows,
    join_windows_proving, offer_window, offer_windows,
};
pub use wire::{
    MAX_FDS, MAX_MESSAGE_BYTES, MAX_NOTIFICATION_BYTES, MAX_NOTIFICATION_FDS, MAX_PAYLOAD_BYTES,
    MAX_UNTAKEN_FDS, MAX_UNTAKEN_NOTIFICATIONS, WireError,
};

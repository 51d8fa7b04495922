//! A domain: the processes of one user that meet under one name.

use std::os::fd::BorrowedFd;
use std::path::Path;
use std::sync::{Arc, Weak};
use std::time::Duration;

use beeline_mmio::PerProcess;

use crate::claim::Claim;
use crate::connection::{DEFAULT_TIMEOUT, Reached};
use crate::descriptor::Descriptor;
use crate::error::{ConnectError, DomainError, MisuseError, OfferError};
use crate::folder::{FolderError, own_uid};
use crate::moving::{self, Registered};
use crate::name::Name;
use crate::numbers::Purpose;
use crate::place::{Offered, Place};
use crate::shared::Shared;
use crate::token::Token;
use crate::{Connection, Disposer, DomainConfig, OfferOptions, Reply, Service};

/// An open domain. Clones are the same one; its thread ends, and its connections close, when the last clone, offer and
/// connection are gone.
///
/// A process that was forked from the one that opened it may use it too: its first offer or connection starts a thread of
/// its own, in the folder that was checked when the domain was opened. It waits for no lock that a thread of the parent may
/// have held. What the parent offered and connected stays the parent's: there every call of the child fails with
/// [`MisuseError::Forked`], and dropping the child's copies does the parent no harm.
#[derive(Clone, Debug)]
pub struct Domain(Arc<Opened>);

/// A domain's place, and what each process that uses it has of its own.
#[derive(Debug)]
struct Opened {
    place: Arc<Place>,
    processes: PerProcess<Arc<Shared>>,
    _moves: Registered,
}

impl Domain {
    /// Opens this user's domain, making its folder if it is not there, and registers the process for membarriers. Names
    /// whose owners have died are removed.
    ///
    /// # Errors
    /// The name is none; the folder is not this user's alone; the process is out of threads or descriptors.
    pub fn open(config: &DomainConfig) -> Result<Domain, DomainError> {
        Self::in_place(Place::open_own(config)?)
    }

    /// Whether a domain can be opened where a configuration says: its folder is made if it is not there, and nothing is started.
    ///
    /// # Errors
    /// As [`Domain::open`].
    pub fn check(config: &DomainConfig) -> Result<(), DomainError> {
        Place::open_own(config).map(drop)
    }

    /// Opens a domain that belongs to another user, to connect to offers whose [`OfferOptions::allowed_uids`] have
    /// this one. Its folder is [`DomainConfig::root_folder_of`] that user. In a network namespace nothing is there to be
    /// opened, and opening succeeds also where nobody has offered anything.
    ///
    /// # Errors
    /// As [`Domain::open`]; the folder is not there, or belongs to somebody else than `owner_uid`.
    pub fn open_foreign(config: &DomainConfig, owner_uid: u32) -> Result<Domain, DomainError> {
        Self::in_place(Place::open_foreign(config, owner_uid)?)
    }

    fn in_place(place: Place) -> Result<Domain, DomainError> {
        let place = Arc::new(place);
        let moves: Weak<Place> = Arc::downgrade(&place);
        let opened = Opened { place, processes: PerProcess::new(), _moves: moving::register(moves) };
        opened.of_this_process()?;
        Ok(Domain(Arc::new(opened)))
    }

    pub(crate) fn place(&self) -> &Place {
        &self.0.place
    }

    /// What drops things for this domain on a thread of its own; for a thread that must not take the time.
    pub fn disposer(&self) -> Disposer {
        // A child of fork that cannot open the domain has none to share, and starts one of its own.
        self.0.of_this_process().map(|shared| shared.reactor.disposer().clone()).unwrap_or_default()
    }

    /// The domain's folder; in a network namespace, what the names of its sockets begin with, `@beeline/<uid>/<domain>`.
    pub fn path(&self) -> &Path {
        self.0.place.path()
    }

    /// The names that have a socket, sorted; a dead owner's may be among them, and in a network namespace those that another
    /// user has taken.
    ///
    /// # Errors
    /// The folder cannot be listed, as a foreign one cannot.
    pub fn names(&self) -> Result<Vec<String>, FolderError> {
        let mut names = self.0.place.names()?;
        names.sort_unstable();
        Ok(names)
    }

    /// Offers `name` to this user's processes with default [`OfferOptions`].
    ///
    /// # Errors
    /// As [`Domain::offer_with`].
    pub fn offer(&self, name: &str, service: Box<dyn Service>) -> Result<Offer, OfferError> {
        self.offer_with(name, service, OfferOptions::default())
    }

    /// Offers `name`: `service` answers whoever connects, on the domain's thread and its workers. A name whose owner died is
    /// reclaimed, also if children of that owner live.
    ///
    /// # Errors
    /// The name has an owner that is alive; the name is none; the folder is not ours; the process may not.
    pub fn offer_with(
        &self,
        name: &str,
        service: Box<dyn Service>,
        options: OfferOptions,
    ) -> Result<Offer, OfferError> {
        let shared = self.0.of_this_process().map_err(|error| OfferError::Reopen(Box::new(error)))?;
        let name = Name::new(name)?;
        shared.check_thread()?;
        let owner = shared.place.owner_uid();
        if owner != shared.identity.uid {
            return Err(MisuseError::NotOwner { owner }.into());
        }
        let Offered { listener, claim } = shared.place.offer(&name, options.is_for_others())?;
        let listener = Descriptor::new(listener, Purpose::Offer);
        let number = shared.reactor.offer(listener, service, options).map_err(|errno| {
            OfferError::System { what: "watch the socket", path: shared.place.socket_path(&name), errno }
        })?;
        Ok(Offer { shared: Arc::clone(shared), number, name, _claim: claim })
    }

    /// Whether a process that lives offers `name` now, this one or another; a stopped process lives. In a folder it is one look
    /// at a record lock and nobody is woken; in a network namespace it is a connection that is closed at once. There, somebody
    /// may listen who cannot be told: where more have connected than were heard, as where the owner has been stopped for long, or
    /// where an old kernel shows nothing of a process of another pid namespace. That counts as offered.
    ///
    /// # Errors
    /// The name is none; the kernel refused something; the folder is another user's, who alone may look at its locks: connect, which
    /// tells the same.
    pub fn is_offered(&self, name: &str) -> Result<bool, OfferError> {
        let (name, place) = (Name::new(name)?, self.place());
        place.check()?;
        if place.keeps_others_out() && place.owner_uid() != own_uid() {
            return Err(MisuseError::NotOwner { owner: place.owner_uid() }.into());
        }
        place.is_offered(&name)
    }

    /// Connects to the owner of `name`, who is to be asked within [`DEFAULT_TIMEOUT`].
    pub(crate) fn reach<'a>(
        &'a self,
        name: &str,
        token: Option<&'a Token>,
    ) -> Result<Reached<'a>, ConnectError> {
        let shared = self.0.of_this_process().map_err(|error| ConnectError::Reopen(Box::new(error)))?;
        Reached::reach(shared, name, (DEFAULT_TIMEOUT, &|| true), token)
    }

    /// Connects to the owner of `name` with a first request; waits at most [`DEFAULT_TIMEOUT`].
    ///
    /// # Errors
    /// As [`Domain::connect_within`].
    pub fn connect(
        &self,
        name: &str,
        request: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> Result<(Connection, Reply), ConnectError> {
        self.connect_within(name, request, fds, DEFAULT_TIMEOUT)
    }

    /// Connects to the owner of `name` with a first request and descriptors for it; gives its answer. Waits at most
    /// `timeout`; a death of the owner ends the wait at once.
    ///
    /// # Errors
    /// Nobody offers the name; its owner died, refused, is another user, or did not answer in time; the request is too
    /// large; this thread or process may not connect.
    pub fn connect_within(
        &self,
        name: &str,
        request: &[u8],
        fds: &[BorrowedFd<'_>],
        timeout: Duration,
    ) -> Result<(Connection, Reply), ConnectError> {
        let shared = self.0.of_this_process().map_err(|error| ConnectError::Reopen(Box::new(error)))?;
        Connection::open(shared, name, request, fds, (timeout, &|| true), None)
    }

    /// Connects as [`Domain::connect_within`] does, and gives up some 20 ms after `is_wanted` says `false`: the owner may be stopped, and
    /// who wanted the connection may end meanwhile. That is [`ConnectError::TimedOut`].
    ///
    /// # Errors
    /// As [`Domain::connect_within`].
    pub fn connect_while(
        &self,
        name: &str,
        request: &[u8],
        fds: &[BorrowedFd<'_>],
        (timeout, is_wanted): (Duration, &dyn Fn() -> bool),
    ) -> Result<(Connection, Reply), ConnectError> {
        let shared = self.0.of_this_process().map_err(|error| ConnectError::Reopen(Box::new(error)))?;
        Connection::open(shared, name, request, fds, (timeout, is_wanted), None)
    }

    /// Connects as [`Domain::connect_within`] does, and first proves that this process has the other side of a token that was
    /// exchanged in a connection ([`crate::Token::exchange`]), and has the owner prove its side. Nothing is sent to a process that is
    /// not the one at the other end of that connection.
    ///
    /// # Errors
    /// As [`Domain::connect_within`]; the owner is not that process, or the token is no longer good. Where nobody offers the name, the
    /// token is as good as before.
    pub fn connect_proving(
        &self,
        token: &Token,
        name: &str,
        request: &[u8],
        fds: &[BorrowedFd<'_>],
        timeout: Duration,
    ) -> Result<(Connection, Reply), ConnectError> {
        let shared = self.0.of_this_process().map_err(|error| ConnectError::Reopen(Box::new(error)))?;
        Connection::open(shared, name, request, fds, (timeout, &|| true), Some(token))
    }
}

impl Opened {
    fn of_this_process(&self) -> Result<&Arc<Shared>, DomainError> {
        self.processes.get_or_try_init(|| Shared::start(Arc::clone(&self.place)).map(Arc::new))
    }
}

/// A name that this process offers. Dropping it withdraws the name, says goodbye to whoever is connected, and drops
/// the service.
#[derive(Debug)]
pub struct Offer {
    shared: Arc<Shared>,
    number: u64,
    name: Name,
    /// Given up after the thread has let go of the socket.
    _claim: Option<Claim>,
}

impl Offer {
    /// The name offered.
    pub fn name(&self) -> &str {
        self.name.as_str()
    }

    pub(crate) fn is_own(&self) -> bool {
        self.shared.is_own()
    }
}

impl Drop for Offer {
    fn drop(&mut self) {
        if self.shared.is_own() {
            self.shared.reactor.withdraw(self.number);
        }
    }
}

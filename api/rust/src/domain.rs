//! Where programs find each other, and the windows they open there.

use std::path::PathBuf;
use std::time::Duration;

use beeline_domain::{
    DomainConfig, SenderParts, StoreOptions, WindowError, connect_window, connect_window_proving,
    offer_window,
};

use crate::origin::Origin;
use crate::{
    ConnectError, OfferError, OpenError, Receiver, ReceiverOptions, Sender, SenderOptions, Target, Token,
};

/// The programs of one user that meet under a name. Clones are the same domain; what was opened in it keeps it open.
///
/// `Send` and `Sync`: threads share it, or clone it.
#[derive(Clone, Debug)]
pub struct Domain {
    pub(crate) inner: beeline_domain::Domain,
    name: String,
}

/// A domain that was opened by the layer below, for programs that use both: it is the same one.
impl From<beeline_domain::Domain> for Domain {
    fn from(inner: beeline_domain::Domain) -> Self {
        // Its folder has its name.
        let name = inner.path().file_name().unwrap_or_default().to_string_lossy().into_owned();
        Domain { inner, name }
    }
}

impl Domain {
    /// Opens this user's domain of that name, making it if it is not there. It lies in the
    /// folder that `BEELINE_ROOT` names, or in `/tmp/beeline-<uid>`.
    ///
    /// # Errors
    /// The name is not one, or the folder cannot be made or is not this user's alone.
    pub fn open(name: &str) -> Result<Self, OpenError> {
        Self::open_with(DomainConfig::named(name))
    }

    /// Opens a domain in a folder of your own choice, as [`Domain::open`] does in the default one.
    ///
    /// # Errors
    /// As [`Domain::open`].
    pub fn open_in(root: impl Into<PathBuf>, name: &str) -> Result<Self, OpenError> {
        Self::open_with(DomainConfig { root: Some(root.into()), name: name.to_owned() })
    }

    /// Opens a domain that belongs to the user `owner_uid`, to reach what is offered there to this user
    /// ([`ReceiverOptions::allowed_uids`]). `root` is the folder in which its owner opened it; nothing can be offered in it.
    ///
    /// # Errors
    /// The folder is not there, may not be entered, or belongs to somebody else.
    pub fn open_foreign(root: impl Into<PathBuf>, name: &str, owner_uid: u32) -> Result<Self, OpenError> {
        Self::open_foreign_timeout(root, name, owner_uid, Duration::ZERO)
    }

    /// Opens another user's domain that may not be there yet: waits until its owner has made it and offers something to other
    /// users, for at most `timeout`. [`Domain::sender_timeout`] and its like then wait for the name.
    ///
    /// # Errors
    /// As [`Domain::open_foreign`]: when the time is over, or at once for what waiting does not cure.
    pub fn open_foreign_timeout(
        root: impl Into<PathBuf>,
        name: &str,
        owner_uid: u32,
        timeout: Duration,
    ) -> Result<Self, OpenError> {
        let config = DomainConfig { root: Some(root.into()), name: name.to_owned() };
        let opened = beeline_domain::Domain::open_foreign_awaiting(&config, owner_uid, timeout);
        Self::opened(config, opened)
    }

    fn open_with(config: DomainConfig) -> Result<Self, OpenError> {
        let opened = beeline_domain::Domain::open(&config);
        Self::opened(config, opened)
    }

    fn opened(
        config: DomainConfig,
        opened: Result<beeline_domain::Domain, beeline_domain::DomainError>,
    ) -> Result<Self, OpenError> {
        match opened {
            Ok(inner) => Ok(Domain { inner, name: config.name }),
            Err(error) => Err(OpenError::new(config.name, error)),
        }
    }

    /// The name it was opened with.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Offers a window of 1 MiB under `name`. Does not wait for a sender; receiving does.
    ///
    /// How its lines are prefetched, whether they are tested in groups and how often credits are pushed follows, in this order,
    /// from [`ReceiverOptions::tuning`], the environment variable `BEELINE_TUNING` (`prefetch=write:32,group=8,credits=8`, any of
    /// them; `default`), what [`crate::Tuning::find`] or `beeline doctor` found last, and the defaults. Nothing is timed here.
    ///
    /// # Errors
    /// Somebody offers the name already.
    pub fn receiver(&self, name: &str) -> Result<Receiver, OfferError> {
        self.receiver_with(name, ReceiverOptions::new())
    }

    /// Offers a window with options, as [`Domain::receiver`] does with the default ones.
    ///
    /// # Errors
    /// Somebody offers the name already; an option is out of bounds.
    pub fn receiver_with(&self, name: &str, options: ReceiverOptions) -> Result<Receiver, OfferError> {
        let listener = offer_window(&self.inner, name, options.window)
            .map_err(|error| OfferError::window(Target::Window(name.to_owned()), error))?;
        Ok(Receiver::new(Origin::Name(listener), options.wait, options.tuning))
    }

    /// Becomes the sender of the window that a receiver offers under `name`.
    ///
    /// Which instructions store fastest differs between machines. The first sender on a machine times them, which takes some
    /// milliseconds and two cores, and keeps the result in the file `beeline/tuning.json` of this user's cache folder
    /// (`$XDG_CACHE_HOME` or `~/.cache`) for this CPU, kernel, release and placement of the cores. [`SenderOptions::kernel`] and
    /// the environment variable `BEELINE_STORE_KERNEL` name one instead. [`crate::Tuning`] finds more than the kernel.
    ///
    /// # Errors
    /// Nobody offers the window, or it has a sender.
    pub fn sender(&self, name: &str) -> Result<Sender, ConnectError> {
        self.sender_with(name, SenderOptions::new())
    }

    /// Becomes the sender of a window that may not be there yet: waits for a receiver to offer it, for at most `timeout`. The
    /// kernel wakes the thread when the name appears.
    ///
    /// # Errors
    /// [`ConnectError::TimedOut`]: nobody offered it in time; or it has a sender.
    pub fn sender_timeout(&self, name: &str, timeout: Duration) -> Result<Sender, ConnectError> {
        self.sender_with(name, SenderOptions::new().timeout(timeout))
    }

    /// Becomes the sender of a window with options, as [`Domain::sender`] does with the default ones.
    ///
    /// # Errors
    /// Nobody offers the window, or it has a sender; an option is out of bounds.
    pub fn sender_with(&self, name: &str, options: SenderOptions) -> Result<Sender, ConnectError> {
        self.sender_by(name, options, |store| connect_window(&self.inner, name, store))
    }

    /// Becomes the sender of a window of the process with which `token` was exchanged; nothing is sent to another one. The domain is
    /// that of [`Token::uid`] ([`Domain::open_foreign`]).
    ///
    /// # Errors
    /// As [`Domain::sender_with`]; the receiver is another process, or the token was used before.
    pub fn sender_proving(
        &self,
        name: &str,
        token: Token,
        options: SenderOptions,
    ) -> Result<Sender, ConnectError> {
        self.sender_by(name, options, |store| connect_window_proving(&self.inner, &token.0, name, store))
    }

    /// Becomes the sender of the window that `connect` asks for, again and again while nobody offers it and there is time.
    fn sender_by(
        &self,
        name: &str,
        options: SenderOptions,
        mut connect: impl FnMut(StoreOptions) -> Result<SenderParts, WindowError>,
    ) -> Result<Sender, ConnectError> {
        let target = || Target::Window(name.to_owned());
        let kernel = options
            .store_kernel()
            .map_err(|error| ConnectError::Options { target: target(), source: error.into() })?;
        let store = StoreOptions { kernel, memory: options.memory };
        let parts = self
            .inner
            .retry_until_offered(options.timeout, |_| connect(store))
            .map_err(|error| ConnectError::window(target(), error).after(options.timeout))?;
        Ok(Sender::new(parts, options))
    }
}

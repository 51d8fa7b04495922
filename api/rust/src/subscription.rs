//! A process's subscription to a notifier.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::time::Duration;

use beeline_domain::{CallbackThread, Connection, Notification, Notifications, Reply};

use crate::{Answer, ConnectError, Domain, SubscriptionEnded, Target, Token};

/// What a notifier tells this process, in order with its answers. Made by [`Domain::subscribe`]; dropping it unsubscribes.
///
/// What was told waits here, 256 notifications at most, whether the program looks or not; the notifier is told when there is no
/// room. The descriptor is readable while something waits, and at the end. Any thread may do anything with it; each
/// notification is given once.
///
/// ```no_run
/// # fn main() -> Result<(), beeline::Error> {
/// let prices = beeline::Domain::open("demo")?.subscribe("prices")?;
/// loop {
///     let price = prices.next()?;
///     println!("{}", String::from_utf8_lossy(&price.payload));
/// }
/// # }
/// ```
#[derive(Debug)]
pub struct Subscription {
    connection: Connection,
    notifications: Notifications,
    name: String,
    first_answer: Answer,
}

impl Subscription {
    /// The next notification; waits for it.
    ///
    /// # Errors
    /// There is none and none will come: [`SubscriptionEnded`] says why.
    pub fn next(&self) -> Result<Notification, SubscriptionEnded> {
        loop {
            // A time without end is over when the clock's range is.
            if let Some(notification) = self.next_timeout(Duration::MAX)? {
                return Ok(notification);
            }
        }
    }

    /// The next notification, waited for for at most `timeout`; `None` when none came.
    ///
    /// # Errors
    /// As [`Subscription::next`].
    pub fn next_timeout(&self, timeout: Duration) -> Result<Option<Notification>, SubscriptionEnded> {
        Ok(self.notifications.next_within(timeout)?)
    }

    /// The next notification; `None` when there is none now. Never waits.
    ///
    /// # Errors
    /// As [`Subscription::next`].
    pub fn try_next(&self) -> Result<Option<Notification>, SubscriptionEnded> {
        Ok(self.notifications.try_next()?)
    }

    /// Starts a thread that gives each notification to `callback`, one at a time and in order, and at last why no more will
    /// come. The thread ends with what is returned; what was not given stays to be taken.
    ///
    /// The callback may use the whole API, this subscription too. All signals are blocked on the thread. A panic of the callback
    /// is reported to the log, and the next notification is given.
    ///
    /// # Errors
    /// The process is out of threads.
    pub fn deliver_to<F>(&self, mut callback: F) -> std::io::Result<CallbackThread>
    where
        F: FnMut(Result<Notification, SubscriptionEnded>) + Send + 'static,
    {
        self.notifications.clone().deliver_to(move |given| callback(given.map_err(Into::into)))
    }

    /// Asks the notifier for something and waits for its answer, for at most 10 s. Calls of several threads follow each other.
    ///
    /// # Errors
    /// The notifier refused, has ended, or did not answer in time; the request has more than 65,000 bytes or 32
    /// descriptors.
    pub fn call(&self, request: &[u8], fds: &[BorrowedFd<'_>]) -> Result<Answer, ConnectError> {
        self.call_timeout(request, fds, beeline_domain::DEFAULT_TIMEOUT)
    }

    /// As [`Subscription::call`], waiting for at most `timeout`.
    ///
    /// # Errors
    /// As [`Subscription::call`].
    pub fn call_timeout(
        &self,
        request: &[u8],
        fds: &[BorrowedFd<'_>],
        timeout: Duration,
    ) -> Result<Answer, ConnectError> {
        let answered = self.connection.call_within(request, fds, timeout);
        let reply =
            answered.map_err(|error| ConnectError::new(Target::Notifier(self.name.clone()), error))?;
        Ok(Answer { payload: reply.payload, fds: reply.fds })
    }

    /// Ends the subscription. Threads that wait in another of its calls are told so.
    pub fn unsubscribe(&self) {
        self.connection.peer().disconnect();
    }

    /// What the notifier answered when this process subscribed.
    pub fn first_answer(&self) -> &Answer {
        &self.first_answer
    }

    /// The descriptors of the first answer, which are then this caller's. Empty the second time.
    pub fn take_fds(&mut self) -> Vec<OwnedFd> {
        std::mem::take(&mut self.first_answer.fds)
    }
}

impl AsFd for Subscription {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.notifications.as_fd()
    }
}

impl AsRawFd for Subscription {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl Domain {
    /// Subscribes to what is offered under `name`.
    ///
    /// # Errors
    /// Nobody offers it, or its owner refuses.
    pub fn subscribe(&self, name: &str) -> Result<Subscription, ConnectError> {
        self.subscribe_with(name, b"", &[], Duration::ZERO)
    }

    /// Subscribes to what may not be offered yet: waits for it, for at most `timeout`.
    ///
    /// # Errors
    /// [`ConnectError::TimedOut`]: nobody offered it in time; or its owner refuses.
    pub fn subscribe_timeout(&self, name: &str, timeout: Duration) -> Result<Subscription, ConnectError> {
        self.subscribe_with(name, b"", &[], timeout)
    }

    /// Subscribes with a first request and descriptors for the notifier, whose answer is [`Subscription::first_answer`]; waits
    /// for at most `timeout` until the name is offered.
    ///
    /// # Errors
    /// As [`Domain::subscribe_timeout`].
    pub fn subscribe_with(
        &self,
        name: &str,
        request: &[u8],
        fds: &[BorrowedFd<'_>],
        timeout: Duration,
    ) -> Result<Subscription, ConnectError> {
        self.subscribe_by(name, timeout, || self.inner.connect(name, request, fds))
    }

    /// Subscribes as [`Domain::subscribe_with`] does, at the process with which `token` was exchanged; nothing is sent to another
    /// one. The domain is that of [`Token::uid`] ([`Domain::open_foreign`]).
    ///
    /// # Errors
    /// As [`Domain::subscribe_with`]; the notifier is another process, or the token was used before.
    pub fn subscribe_proving(
        &self,
        name: &str,
        token: Token,
        request: &[u8],
        fds: &[BorrowedFd<'_>],
        timeout: Duration,
    ) -> Result<Subscription, ConnectError> {
        let connect =
            || self.inner.connect_proving(&token.0, name, request, fds, beeline_domain::DEFAULT_TIMEOUT);
        self.subscribe_by(name, timeout, connect)
    }

    /// Subscribes by `connect`, again and again while nobody offers the name and there is time.
    fn subscribe_by(
        &self,
        name: &str,
        timeout: Duration,
        mut connect: impl FnMut() -> Result<(Connection, Reply), beeline_domain::ConnectError>,
    ) -> Result<Subscription, ConnectError> {
        let target = || Target::Notifier(name.to_owned());
        let (connection, reply) = self
            .inner
            .retry_until_offered(timeout, |_| connect())
            .map_err(|error| ConnectError::new(target(), error).after(timeout))?;
        let notifications = connection
            .notifications()
            .map_err(|error| ConnectError::System { target: target(), source: error.into() })?;
        let first_answer = Answer { payload: reply.payload, fds: reply.fds };
        Ok(Subscription { connection, notifications, name: name.to_owned(), first_answer })
    }
}

//! Readiness by descriptor: how a client, a worker or a receiver stands in poll or epoll beside sockets, pipes and timers.
//!
//! One whose descriptor nobody asks for has none: descriptors are scarcer than handles.

use core::ffi::c_int;
use core::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, AsRawFd};

use beeline_domain::{Armed, Readiness, Source};
use beeline_ffi::{Failure, Out, Outcome};

use crate::status::{EMPTY, OK, REFUSED};

/// The descriptor of a client, a worker or a receiver, once it was asked for.
#[derive(Debug, Default)]
pub(crate) struct Descriptor(Option<Readiness>);

impl Descriptor {
    fn open(&mut self) -> Outcome<&mut Readiness> {
        if self.0.is_none() {
            let made = Readiness::new().map_err(|error| {
                Failure::new(
                    REFUSED,
                    format!("no descriptor can be made: {error}; raise the limit, or close some"),
                )
            })?;
            self.0 = Some(made);
        }
        Ok(self.0.as_mut().expect("it was made above if it was not there"))
    }

    /// Makes the descriptor at the first call, and puts its number where C wants it.
    pub(crate) fn tell(&mut self, descriptor: Out<'_, c_int>) -> Outcome<c_int> {
        let number = self.open()?.as_fd().as_raw_fd();
        descriptor.put_if_wanted(number);
        Ok(OK)
    }

    /// Prepares a wait for `source`, and tells C for how long it may wait.
    pub(crate) fn arm(&mut self, source: &mut impl Source, at_most_ns: Out<'_, u64>) -> Outcome<c_int> {
        let (status, nanos) = match self.open()?.arm(source) {
            Armed::Ready => (OK, 0),
            Armed::Wait => (EMPTY, u64::MAX),
            Armed::WaitAtMost(limit) => (EMPTY, u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX - 1)),
        };
        at_most_ns.put_if_wanted(nanos);
        Ok(status)
    }

    /// Says that there is something already, without preparing a wait; the descriptor is readable.
    pub(crate) fn find_ready(
        &mut self,
        source: &mut impl Source,
        at_most_ns: Out<'_, u64>,
    ) -> Outcome<c_int> {
        self.open()?.disarm(source);
        at_most_ns.put_if_wanted(0);
        Ok(OK)
    }

    /// Ends a wait for `source` that was prepared.
    pub(crate) fn disarm(&mut self, source: &mut impl Source) {
        if let Some(readiness) = &mut self.0 {
            readiness.disarm(source);
        }
    }

    /// Prepares the end of `source`.
    pub(crate) fn withdraw(&mut self, source: &mut impl Source) {
        if let Some(readiness) = &mut self.0 {
            readiness.withdraw(source);
        }
    }
}

/// A source and its descriptor, for those that nothing borrows. Its drop prepares the end of the source.
#[derive(Debug)]
pub(crate) struct Described<T: Source> {
    source: T,
    descriptor: Descriptor,
}

impl<T: Source> Described<T> {
    pub(crate) fn new(source: T) -> Self {
        Described { source, descriptor: Descriptor::default() }
    }

    /// Makes the descriptor at the first call, and puts its number where C wants it.
    pub(crate) fn tell(&mut self, descriptor: Out<'_, c_int>) -> Outcome<c_int> {
        self.descriptor.tell(descriptor)
    }

    /// Prepares a wait, and tells C for how long it may wait.
    pub(crate) fn arm(&mut self, at_most_ns: Out<'_, u64>) -> Outcome<c_int> {
        self.descriptor.arm(&mut self.source, at_most_ns)
    }

    /// Ends a wait that was prepared.
    pub(crate) fn disarm(&mut self) {
        self.descriptor.disarm(&mut self.source);
    }
}

impl<T: Source> Deref for Described<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.source
    }
}

impl<T: Source> DerefMut for Described<T> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut T {
        &mut self.source
    }
}

impl<T: Source> Drop for Described<T> {
    fn drop(&mut self) {
        self.descriptor.withdraw(&mut self.source);
    }
}

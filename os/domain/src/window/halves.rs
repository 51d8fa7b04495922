//! The two halves of a window, made by whoever has a connection: for services that give a peer more than one window.
//!
//! [`crate::offer_window`] is one such service and `host/rpc` another. A window belongs to its receiver, who makes it
//! ([`FreshWindow`]) and passes its descriptor and its terms; the sender maps it ([`WindowTerms::join`]) and passes the
//! descriptor of its [`CreditPage`]. How they travel is the service's business.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use beeline_mmio::{LoadWindow, MapError, MemoryOptions, Pace, Region, SharedMemory, StoreKernel, Unpaced};
use beeline_spec::LINE_BYTES;
use beeline_spec::escape::{blank_from_random, is_blank_value};
use beeline_spec::formats::CONTROL_PAGE_BYTES;
use serde::{Deserialize, Serialize};

use super::PeerWindow;
use super::options::{StoreOptions, WindowError, check_lines, window_bytes};
use crate::credits::{receiver_sleeper, receiver_waker, sender_sleeper};
use crate::{MemoryCreditSink, MemoryCredits, MemorySleeper, Peer};

/// Largest huge page that a window may be rounded up to.
const MAX_PAGE_BYTES: usize = 1 << 30;

/// What a receiver tells its sender about a window, besides the descriptor. It travels in the rendezvous, never in
/// shared memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WindowTerms {
    pub lines: u32,
    /// Bytes of its memory, control page and rounding included.
    pub bytes: usize,
    /// Value of a free word.
    pub blank: u64,
    /// Epoch of the messages in it.
    pub epoch: u8,
}

impl WindowTerms {
    /// Checks terms of a process that is not trusted. Mapping brings every page in, so the bytes are what the window
    /// needs; only a sender that accepts huge pages, from a receiver that it trusts, takes as many as fill those.
    ///
    /// # Errors
    /// [`WindowError::Lines`] or [`WindowError::Malformed`].
    pub fn check(&self, has_huge_pages: bool) -> Result<(), WindowError> {
        let WindowTerms { lines, bytes, blank, .. } = *self;
        check_lines(lines)?;
        let least = window_bytes(lines);
        let most = if has_huge_pages { least.next_multiple_of(MAX_PAGE_BYTES) } else { least };
        if !(least..=most).contains(&bytes) {
            let what = format!(
                "{bytes} bytes for a window of {lines} lines, which needs {least}; if they are huge pages and the \
                 receiver is trusted, allow them in the options"
            );
            return Err(WindowError::Malformed { what });
        }
        if !is_blank_value(blank) {
            return Err(WindowError::Malformed { what: format!("blank {blank:#018x} has bit 63 clear") });
        }
        Ok(())
    }

    /// The sender's half: maps the window behind `window_fd`. `peer` is the receiver, `page` the credit page whose
    /// descriptor it got or gets.
    ///
    /// # Errors
    /// The terms make no sense, or the memory is not what they say.
    pub fn join(
        &self,
        window_fd: OwnedFd,
        page: &CreditPage,
        peer: &Peer,
        options: StoreOptions,
    ) -> Result<SenderParts, WindowError> {
        self.join_paced(window_fd, page, peer, options, &Unpaced)
    }

    /// As [`WindowTerms::join`]; `pace` decides when each piece of the window is mapped.
    ///
    /// # Errors
    /// As [`WindowTerms::join`].
    pub fn join_paced(
        &self,
        window_fd: OwnedFd,
        page: &CreditPage,
        peer: &Peer,
        options: StoreOptions,
        pace: &dyn Pace,
    ) -> Result<SenderParts, WindowError> {
        self.check(options.memory.huge_pages)?;
        let memory = SharedMemory::from_fd_with(window_fd, self.bytes, options.memory)?;
        let window = memory.map_paced(pace)?;
        let lines = window.store_window(CONTROL_PAGE_BYTES, self.lines, options.kernel);
        Ok(SenderParts {
            store: PeerWindow::new(lines, receiver_waker(&page.region, peer)),
            credits: MemoryCredits::new(&page.region, peer).of_window(window.clone()),
            blank: self.blank,
            epoch: self.epoch,
            needs_fence_per_message: peer.needs_full_fence(),
            sleeper: sender_sleeper(&window, peer),
            peer: peer.clone(),
        })
    }
}

/// A sender's half of one window. The window is its own as long as `credits` lives.
#[derive(Debug)]
pub struct SenderParts {
    /// The window's lines, write-only.
    pub store: PeerWindow,
    /// The lines that the receiver has freed. Dropping it gives the window up.
    pub credits: MemoryCredits,
    /// The receiver.
    pub peer: Peer,
    /// Value of a free word; a payload word equal to it is escaped.
    pub blank: u64,
    /// Epoch that messages carry.
    pub epoch: u8,
    /// Whether the writer must use the fence policy `per-message`: this process or the receiver's lacks membarrier.
    pub needs_fence_per_message: bool,
    /// How the sender waits for credits.
    pub sleeper: MemorySleeper,
}

/// A receiver's half of one window. When the peer has gone, what it left is still there to be read; then drop it and
/// accept the next sender's.
#[derive(Debug)]
pub struct ReceiverParts {
    /// The window's lines.
    pub load: LoadWindow,
    /// How the sender says it stores, if this version knows that way; nothing but speed rests on it.
    pub kernel: Option<StoreKernel>,
    /// Where freed lines are counted. Dropping it disconnects the sender.
    pub sink: MemoryCreditSink,
    /// The sender.
    pub peer: Peer,
    /// Value of a free word.
    pub blank: u64,
    /// Epoch of the messages in this window.
    pub epoch: u8,
    /// How the receiver waits for messages.
    pub sleeper: MemorySleeper,
}

/// Memory of the sender into which the receiver pushes credits.
#[derive(Debug)]
pub struct CreditPage {
    memory: SharedMemory,
    region: Region,
}

impl CreditPage {
    /// A fresh page for a window of this name.
    ///
    /// # Errors
    /// The system has no memory or no descriptor left.
    pub fn create(name: &str) -> Result<Self, WindowError> {
        UnmappedCreditPage::create(name)?.map()
    }

    /// The page behind a descriptor of a process that is not trusted.
    ///
    /// # Errors
    /// It is not sealed memory of a page.
    pub fn from_fd(fd: OwnedFd) -> Result<Self, WindowError> {
        UnmappedCreditPage::from_fd(fd)?.map()
    }

    /// The descriptor to pass.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.memory.fd()
    }

    /// The page, for what a service keeps behind the credits in it.
    pub fn region(&self) -> &Region {
        &self.region
    }
}

/// A credit page that can be passed and is not mapped yet: whoever is passed it goes on meanwhile.
#[derive(Debug)]
pub(super) struct UnmappedCreditPage(SharedMemory);

impl UnmappedCreditPage {
    pub(super) fn create(name: &str) -> Result<Self, WindowError> {
        let name = format!("beeline-credits-{name}");
        Ok(UnmappedCreditPage(SharedMemory::create(&name, CONTROL_PAGE_BYTES, MemoryOptions::default())?))
    }

    pub(super) fn from_fd(fd: OwnedFd) -> Result<Self, WindowError> {
        Ok(UnmappedCreditPage(SharedMemory::from_fd(fd, CONTROL_PAGE_BYTES)?))
    }

    pub(super) fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd()
    }

    pub(super) fn map(self) -> Result<CreditPage, WindowError> {
        let region = self.region()?;
        Ok(self.mapped(region))
    }

    /// What [`UnmappedCreditPage::mapped`] is to be given.
    pub(super) fn region(&self) -> Result<Region, MapError> {
        self.0.map()
    }

    pub(super) fn mapped(self, region: Region) -> CreditPage {
        CreditPage { memory: self.0, region }
    }
}

/// A window that its receiver has made: all blank, nobody's yet.
#[derive(Debug)]
pub struct FreshWindow {
    memory: SharedMemory,
    mapped: MappedWindow,
}

/// The receiver's side of a window, without a descriptor.
#[derive(Debug)]
pub(super) struct MappedWindow {
    region: Region,
    pub(super) terms: WindowTerms,
}

impl FreshWindow {
    /// A window of `lines` lines with a random blank.
    ///
    /// # Errors
    /// The number of lines cannot be; the system has no memory, no descriptor or no random number left.
    pub fn create(name: &str, lines: u32, memory: MemoryOptions, epoch: u8) -> Result<Self, WindowError> {
        Self::create_paced(name, lines, memory, epoch, &Unpaced)
    }

    /// As [`FreshWindow::create`]; `pace` decides when each piece of its memory is made.
    ///
    /// # Errors
    /// As [`FreshWindow::create`].
    pub fn create_paced(
        name: &str,
        lines: u32,
        memory: MemoryOptions,
        epoch: u8,
        pace: &dyn Pace,
    ) -> Result<Self, WindowError> {
        check_lines(lines)?;
        let memory = SharedMemory::create(&format!("beeline-window-{name}"), window_bytes(lines), memory)?;
        let region = memory.map_paced(pace)?;
        let random =
            getrandom::u64().map_err(|e| WindowError::Malformed { what: format!("no random blank: {e}") })?;
        let blank = blank_from_random(random);
        region.fill_paced(CONTROL_PAGE_BYTES, lines as usize * LINE_BYTES, blank, pace);
        let terms = WindowTerms { lines, bytes: memory.bytes(), blank, epoch };
        Ok(FreshWindow { memory, mapped: MappedWindow { region, terms } })
    }

    /// Returns the terms that the sender must be told.
    pub fn terms(&self) -> &WindowTerms {
        &self.mapped.terms
    }

    /// The descriptor to pass.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.memory.fd()
    }

    /// The descriptor to pass, and what stays.
    pub(super) fn split(self) -> (OwnedFd, MappedWindow) {
        (self.memory.into_fd(), self.mapped)
    }

    /// A descriptor of its own to pass.
    ///
    /// # Errors
    /// The process is out of descriptors.
    pub fn clone_fd(&self) -> Result<OwnedFd, WindowError> {
        self.memory.fd().as_fd().try_clone_to_owned().map_err(|error| WindowError::Malformed {
            what: format!("cannot duplicate the window's descriptor: {error}"),
        })
    }

    /// The window's lines; `kernel` is how the sender says it stores, if this version knows that way. Threads that
    /// share a window ask for one each.
    pub fn load(&self, kernel: Option<StoreKernel>) -> LoadWindow {
        self.mapped.load(kernel)
    }

    /// Where freed lines are counted, in the sender's page. Unlike that of a [`crate::WindowListener`], it may be
    /// dropped without disconnecting the sender.
    pub fn sink(&self, page: &CreditPage, peer: &Peer) -> MemoryCreditSink {
        self.mapped.sink(&page.region, peer)
    }

    /// How the receiver waits for messages; each thread that shares a window has its own.
    pub fn sleeper(&self, page: &CreditPage, peer: &Peer) -> MemorySleeper {
        receiver_sleeper(&page.region, peer)
    }
}

impl MappedWindow {
    pub(super) fn load(&self, kernel: Option<StoreKernel>) -> LoadWindow {
        let load = self.region.load_window(CONTROL_PAGE_BYTES, self.terms.lines);
        match kernel {
            Some(kernel) => load.for_sender(kernel),
            None => load,
        }
    }

    pub(super) fn sink(&self, page: &Region, peer: &Peer) -> MemoryCreditSink {
        MemoryCreditSink::new(page, &self.region, peer)
    }
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    const GOOD: WindowTerms = WindowTerms { lines: 64, bytes: 8192, blank: 1 << 63 | 5, epoch: 3 };

    #[test]
    fn hostile_terms_are_refused() {
        for has_huge_pages in [false, true] {
            assert!(GOOD.check(has_huge_pages).is_ok());
            for terms in [
                WindowTerms { lines: 63, ..GOOD },
                WindowTerms { lines: 0, ..GOOD },
                WindowTerms { bytes: 8191, ..GOOD },
                WindowTerms { bytes: usize::MAX, ..GOOD },
                WindowTerms { blank: 5, ..GOOD },
            ] {
                assert!(terms.check(has_huge_pages).is_err(), "{terms:?}");
            }
        }
    }

    #[test]
    fn memory_larger_than_its_window_needs_acceptance_of_huge_pages() {
        for bytes in [8193, 12288, 2 << 20, 1 << 30] {
            let terms = WindowTerms { bytes, ..GOOD };
            assert!(matches!(terms.check(false), Err(WindowError::Malformed { .. })), "{bytes}");
            assert!(terms.check(true).is_ok());
        }
        assert!(WindowTerms { bytes: (1 << 30) + 1, ..GOOD }.check(true).is_err());
    }
}

//! How two processes of a pair are connected: what who connects says, and what each hands out.

use std::num::NonZeroU64;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use beeline_mmio::{MapError, MemoryOptions, Region, SharedMemory};

use super::link::{NotOpened, Opened};
use crate::{Domain, FolderError, Ringer};

/// How long a thread that connects waits for a process.
const TIMEOUT: Duration = Duration::from_secs(2);
const HELLO_BYTES: usize = 26;
const VERSION: [u8; 8] = *b"BeePair\x04";
/// In the place of a hello: somebody who only wakes the process. It is refused.
pub(super) const KNOCK: [u8; 8] = *b"BeeKnock";
const NAME_START: &str = "connections-";
/// How long a process is waited for that is woken.
const KNOCK_TIMEOUT: Duration = Duration::from_millis(100);

/// What a process says that connects: the size of memory that it asks for, and under which number and in which place it has joined the
/// table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    pub(super) memory_bytes: usize,
    pub(super) number: NonZeroU64,
    pub(super) place: u16,
}

/// What a process that has joined the table under this number offers.
pub(super) fn name_of(number: NonZeroU64) -> String {
    format!("{NAME_START}{number:016x}")
}

impl Domain {
    /// Wakes every process of this domain that has [`crate::Pairs`], as [`crate::Pairs::wake_by`] says, in whichever network namespace it is: a
    /// bell is rung within one. Some ten system calls for each, as long as `is_wanted` says so; one that is stopped is waited for a little.
    ///
    /// # Errors
    /// The names of the domain cannot be listed.
    pub fn wake_all_pairs(&self, is_wanted: &dyn Fn() -> bool) -> Result<(), FolderError> {
        let names = self.names()?;
        let offers = names.iter().filter(|name| name.starts_with(NAME_START));
        for name in offers.take_while(|_| is_wanted()) {
            // It is refused where it is heard.
            let _ = self.connect_while(name, &KNOCK, &[], (KNOCK_TIMEOUT, is_wanted));
        }
        Ok(())
    }
}

impl Hello {
    fn to_bytes(self) -> [u8; HELLO_BYTES] {
        let mut hello = [0; HELLO_BYTES];
        hello[..8].copy_from_slice(&VERSION);
        hello[8..16].copy_from_slice(&(self.memory_bytes as u64).to_le_bytes());
        hello[16..24].copy_from_slice(&self.number.get().to_le_bytes());
        hello[24..].copy_from_slice(&self.place.to_le_bytes());
        hello
    }

    /// `None` where it is of another version.
    pub(super) fn from_bytes(request: &[u8]) -> Option<Self> {
        let request: &[u8; HELLO_BYTES] = request.try_into().ok()?;
        let (version, rest) = request.split_first_chunk::<8>()?;
        let (bytes, rest) = rest.split_first_chunk::<8>()?;
        let (number, place) = rest.split_first_chunk::<8>()?;
        let memory_bytes = usize::try_from(u64::from_le_bytes(*bytes)).ok()?;
        let number = NonZeroU64::new(u64::from_le_bytes(*number))?;
        let place = u16::from_le_bytes(place.try_into().ok()?);
        (*version == VERSION).then_some(Hello { memory_bytes, number, place })
    }

    /// Connects to a process, and maps what it hands out. With `gives_ringer` each hands out what rings its bells.
    pub(super) fn connect_to(
        &self,
        domain: &Domain,
        process: NonZeroU64,
        gives_ringer: bool,
        is_wanted: &dyn Fn() -> bool,
    ) -> Result<Opened, NotOpened> {
        let given = gives_ringer.then(Ringer::to_hand_out).transpose().map_err(|_| NotOpened::NoRoom)?;
        let given: Vec<_> = given.iter().map(AsFd::as_fd).collect();
        let connected =
            domain.connect_while(&name_of(process), &self.to_bytes(), &given, (TIMEOUT, is_wanted));
        let (connection, reply) = connected.map_err(|_| NotOpened::Absent)?;
        let notifications = connection.notifications().map_err(|_| NotOpened::Absent)?;
        let mut fds = reply.fds;
        // Behind the memory; a process that meets nobody in other namespaces hands none out.
        let handed_out = if gives_ringer && fds.len() > 1 { fds.pop() } else { None };
        let ringer = match handed_out.map(Ringer::handed_out) {
            Some(Err(_)) => return Err(NotOpened::WrongMemory),
            Some(Ok(ringer)) => ringer.is_of_another_namespace().then(|| Arc::new(ringer)),
            None => None,
        };
        let [fd] = <[OwnedFd; 1]>::try_from(fds).map_err(|_| NotOpened::WrongMemory)?;
        let memory = SharedMemory::from_fd(fd, self.memory_bytes).map_err(|error| {
            tracing::warn!(%error, pid = connection.peer().pid(), "a process hands out what is not the pair's memory");
            NotOpened::WrongMemory
        })?;
        let memory = memory.map_sparse().map_err(|error| {
            tracing::debug!(%error, "a pair's memory cannot be mapped");
            NotOpened::NoRoom
        })?;
        Ok(Opened { connection, notifications, memory, ringer })
    }
}

/// Makes the memory of a pair: mapped, and its descriptor for the other process.
pub(super) fn make_memory(bytes: usize) -> Result<(Region, OwnedFd), MapError> {
    let memory = SharedMemory::create("beeline-pair", bytes, MemoryOptions::default())?;
    Ok((memory.map_sparse()?, memory.into_fd()))
}

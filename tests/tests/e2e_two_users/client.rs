//! A client of another user: it sends, writes, takes notifications and uses the segment that it is lent, and connects again
//! whenever the owner dies, or after so many steps.

use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use beeline::{ByteSender, Sender, SenderOptions, StoreKernel};
use beeline_domain::{Connection, Departure, Domain, Notifications, NotificationsEnded};
use beeline_mmio::{MappedSegment, Region, SegmentOptions};

use crate::e2e_support::items::{item, notification};
use crate::e2e_support::{PAUSE, WATCHDOG, argument, domain_config, say, stop_flag};
use crate::owner::SEGMENT_BYTES;

const SHORT: Duration = Duration::from_millis(20);
/// Steps after which a word is said, so that whoever listens knows that things flow.
const WORD: u64 = 20;

/// All that one client has of an owner.
struct Client {
    connection: Connection,
    notifications: Notifications,
    segment: Region,
    taken: u64,
    /// A client that stands beside another one sends nothing.
    sends: Option<(Sender, ByteSender)>,
    life: u64,
    sent: u64,
    /// Items of the byte stream, and what is left to write of the last.
    written: u64,
    rest: Vec<u8>,
}

/// Repeats what fails while there is no owner, or the one before is not known to be dead.
fn again<T, E: std::fmt::Display>(stop: &AtomicBool, mut attempt: impl FnMut() -> Result<T, E>) -> Option<T> {
    let begun = Instant::now();
    while !stop.load(Ordering::Relaxed) {
        match attempt() {
            Ok(value) => return Some(value),
            Err(error) => assert!(begun.elapsed() < WATCHDOG, "{error}"),
        }
        std::thread::sleep(PAUSE);
    }
    None
}

impl Client {
    fn connect(domain: &Domain, stop: &AtomicBool, life: u64, sends: bool) -> Option<Self> {
        let facade = beeline::Domain::from(domain.clone());
        let within = |left| domain.connect_within("notes", b"", &[], left);
        let (connection, mut reply) = again(stop, || domain.retry_until_offered(SHORT, within))?;
        // Not there when the owner died meanwhile: then all of this fails, and begins again.
        let notifications = connection.notifications().ok()?;
        let lent = reply.fds.pop()?;
        let segment = MappedSegment::memory(lent.as_fd(), &SegmentOptions::default()).unwrap().region()?;
        // A process that lives for some milliseconds has no time to choose a kernel.
        let options = SenderOptions::new().kernel(StoreKernel::Cached).timeout(SHORT);
        let open = |name| {
            again(stop, || {
                if connection.peer().is_alive() {
                    facade.sender_with(name, options).map(Some)
                } else {
                    Ok(None)
                }
            })
            .flatten()
        };
        let sends = if sends { Some((open("window")?, open("bytes")?.into_bytes())) } else { None };
        Some(Client {
            connection,
            notifications,
            segment,
            taken: 0,
            sends,
            life,
            sent: 0,
            written: 0,
            rest: Vec::new(),
        })
    }

    /// Does a little of everything; `false` when the owner has gone.
    fn step(&mut self) -> bool {
        while let Some(told) = match self.notifications.try_next() {
            Ok(next) => next,
            Err(ended) => return self.has_ended(ended),
        } {
            assert_eq!(told.payload, notification(self.taken), "notification {}", self.taken);
            self.taken += 1;
        }
        // The owner writes the number before it or a later one at this place, never an earlier one.
        let told = self.segment.word((self.taken % 4096) as usize * 8).load();
        assert!(told == 0 || told % 4096 == self.taken % 4096, "{told} in the segment after {}", self.taken);
        self.segment.word(SEGMENT_BYTES / 2).store(self.taken);
        let Some((sender, writer)) = &mut self.sends else {
            return self.connection.call(b"beside", &[]).is_ok_and(|reply| reply.payload == b"beside");
        };
        match sender.try_send(&item(self.life, self.sent)) {
            Ok(beeline::Sent::Sent) => self.sent += 1,
            Ok(_) => {}
            Err(_) => return false,
        }
        if self.rest.is_empty() {
            self.rest = item(self.life, self.written);
            self.written += 1;
        }
        match writer.try_write(&self.rest) {
            Ok(count) => drop(self.rest.drain(..count)),
            Err(_) => return false,
        }
        !sender.is_receiver_gone() && !writer.is_receiver_gone()
    }

    fn has_ended(&self, ended: NotificationsEnded) -> bool {
        assert_eq!(ended, NotificationsEnded::OwnerDied);
        false
    }

    /// The owner has gone: it has died, and that is known of every connection.
    fn mourn(&self) {
        let begun = Instant::now();
        while self.connection.peer().is_alive() {
            assert!(begun.elapsed() < WATCHDOG, "the death of the owner is not seen");
            std::thread::yield_now();
        }
        assert_eq!(self.connection.peer().departure(), Some(Departure::Died));
        while self
            .sends
            .as_ref()
            .is_some_and(|(sender, writer)| !sender.is_receiver_gone() || !writer.is_receiver_gone())
        {
            assert!(begun.elapsed() < WATCHDOG, "the death of the receiver is not seen");
            std::thread::yield_now();
        }
        say(&format!("lost {}", self.connection.peer().pid()));
    }

    /// Closes in good order: the stream ends with a whole item.
    fn close(mut self) {
        let Some((_, writer)) = &mut self.sends else { return };
        let begun = Instant::now();
        while let Ok(count) = writer.try_write(&self.rest) {
            self.rest.drain(..count);
            if self.rest.is_empty() {
                // The owner may die now; then there is nobody to tell.
                let _ = writer.shut_down();
                return;
            }
            assert!(begun.elapsed() < WATCHDOG, "the stream does not go on");
            std::thread::yield_now();
        }
    }
}

/// Plays a client until the test hangs up. It closes after `STEPS` steps, for ever anew; without them it stays.
pub fn run() {
    let stop = stop_flag();
    let owner: u32 = argument("OWNER").unwrap().parse().unwrap();
    let steps: u64 = argument("STEPS").map_or(u64::MAX, |steps| steps.parse().unwrap());
    let sends = argument("BESIDE").is_none();
    let Some(domain) = again(stop, || Domain::open_foreign(&domain_config(), owner)) else { return };
    assert!(domain.names().is_err(), "another user lists the names of a domain");
    let (mut lives, mut all_steps) = (0_u64, 0_u64);
    while !stop.load(Ordering::Relaxed) {
        lives += 1;
        let life = u64::from(std::process::id()) << 32 | lives;
        let Some(mut client) = Client::connect(&domain, stop, life, sends) else { continue };
        if lives == 1 || steps == u64::MAX {
            say(&format!("connected {}", client.connection.peer().pid()));
        }
        let mut step = 0_u64;
        let has_owner = loop {
            if !client.step() {
                break false;
            }
            (step, all_steps) = (step + 1, all_steps + 1);
            std::thread::sleep(PAUSE);
            if all_steps.is_multiple_of(WORD) {
                say("flows");
            }
            if step >= steps || stop.load(Ordering::Relaxed) {
                break true;
            }
        };
        if has_owner { client.close() } else { client.mourn() }
    }
}

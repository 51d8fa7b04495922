//! Descriptors of the library beside a program that closes and numbers its own: listed, placed above, and not mistaken for
//! another file when they are lost.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd, RawFd};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use beeline_domain::{
    Answer, ConnectError, Connection, Domain, Event, MisuseError, Notifications, NotificationsEnded,
    NotifyError, Offer, OfferError, Peer, Purpose, Refusal, Reply, Service, StoreOptions, WindowOptions,
    connect_window, descriptors, offer_window, place_descriptors_above,
};
use beeline_mmio::StoreKernel;
use harness::{Role, TestFolder, WATCHDOG, say, wait_until};

struct Echo(Sender<Peer>);

impl Service for Echo {
    fn connected(&mut self, peer: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let _ = self.0.send(peer.clone());
        Ok(Reply::default().into())
    }

    fn requested(&mut self, _: &Peer, request: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Ok(Reply::new(request).into())
    }

    fn departed(&mut self, _: &Peer) {}
}

/// Everything of a domain that has descriptors, both ends in this process.
struct Everything {
    domain: Domain,
    offer: Offer,
    connection: Connection,
    notifications: Notifications,
    peer: Peer,
}

impl Everything {
    fn new(role: &Role) -> Self {
        let domain = role.open();
        let (peers, connected) = channel();
        let offer = domain.offer("name", Box::new(Echo(peers))).unwrap();
        let (connection, _) = domain.connect("name", b"", &[]).unwrap();
        let notifications = connection.notifications().unwrap();
        let peer = connected.recv_timeout(WATCHDOG).unwrap();
        Everything { domain, offer, connection, notifications, peer }
    }

    fn works(&self) -> bool {
        self.connection.call(b"ab", &[]).is_ok_and(|reply| reply.payload == b"ab")
            && self.domain.connect("name", b"", &[]).is_ok()
    }
}

fn open_numbers() -> BTreeSet<RawFd> {
    let entries = std::fs::read_dir("/proc/self/fd").unwrap();
    let number =
        |entry: std::io::Result<std::fs::DirEntry>| entry.unwrap().file_name().to_str().unwrap().parse();
    let mut numbers: BTreeSet<RawFd> = entries.map(|entry| number(entry).unwrap()).collect();
    // The one that was read is closed again.
    numbers.retain(|number| std::fs::symlink_metadata(format!("/proc/self/fd/{number}")).is_ok());
    numbers
}

fn listed() -> BTreeSet<RawFd> {
    descriptors().into_iter().map(|(number, _)| number).collect()
}

#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    let _watchdog = harness::watchdog();
    match role.name.as_str() {
        "lister" => lister(&role),
        "placer" => placer(&role),
        "loser" => loser(&role),
        "waiter" => waiter(&role),
        "closer" => closer(&role),
        other => panic!("unknown role {other}"),
    }
    say("done");
}

fn lister(role: &Role) {
    let before = open_numbers();
    let everything = Everything::new(role);
    let options = WindowOptions { lines: 64, ..WindowOptions::default() };
    let listener = offer_window(&everything.domain, "window", options).unwrap();
    let store = StoreOptions::with_kernel(StoreKernel::Cached);
    let sender = connect_window(&everything.domain, "window", store).unwrap();
    let receiver = listener.accept(WATCHDOG).unwrap();
    let event = Event::new().unwrap();
    let waiting = wait_for("later", &everything.domain);
    // The memory that was passed is still mapped or closed by other threads; then there is nothing that is not listed.
    let opened = || open_numbers().difference(&before).copied().collect::<BTreeSet<_>>();
    let purposes = || descriptors().into_iter().map(|(_, purpose)| purpose).collect::<BTreeSet<_>>();
    wait_until(|| purposes().contains(&Purpose::Arrival) && opened() == listed());
    assert_eq!(purposes().len(), 8, "{:?}", purposes());
    let later = everything.domain.offer("later", Box::new(Echo(channel().0))).unwrap();
    waiting.join().unwrap();
    drop((everything, listener, sender, receiver, event, later));
    // The domain's thread may still be closing the last connection.
    wait_until(|| listed().is_empty() && open_numbers() == before);
}

/// A program that closes all that it thinks is its own, as daemons do.
fn placer(role: &Role) {
    const LOWEST: RawFd = 600;
    place_descriptors_above(LOWEST).unwrap();
    let before = open_numbers();
    let everything = Everything::new(role);
    for (number, purpose) in descriptors() {
        assert!(number >= LOWEST, "{purpose} has the number {number}");
    }
    assert_eq!(open_numbers().range(..LOWEST).copied().collect::<BTreeSet<_>>(), before);
    for number in 3..LOWEST {
        let _ = nix::unistd::close(number);
    }
    assert!(everything.works());
    assert!(matches!(
        everything.domain.offer("name", Box::new(Echo(channel().0))),
        Err(OfferError::Taken { .. })
    ));
    assert_eq!(everything.offer.name(), "name");
}

/// Connects to a name on a thread of its own as soon as it is offered.
fn wait_for(name: &'static str, domain: &Domain) -> JoinHandle<()> {
    let domain = domain.clone();
    std::thread::spawn(move || {
        domain.retry_until_offered(WATCHDOG, |left| domain.connect_within(name, b"", &[], left)).unwrap();
    })
}

/// Has a file of the program take a number of ours; gives the copy that has it.
fn take(number: RawFd, file: &impl AsFd) -> OwnedFd {
    nix::unistd::close(number).unwrap();
    // Another thread may have something open under the number for a moment.
    let mut copy = rustix::io::fcntl_dupfd_cloexec(file, number).unwrap();
    wait_until(|| {
        if copy.as_raw_fd() != number {
            copy = rustix::io::fcntl_dupfd_cloexec(file, number).unwrap();
        }
        copy.as_raw_fd() == number
    });
    copy
}

/// Has a pipe of the program take the number by which a thread waits for an offer.
fn waiter(role: &Role) {
    let domain = role.open();
    let waiting = wait_for("later", &domain);
    let number = || descriptors().into_iter().find(|(_, purpose)| *purpose == Purpose::Arrival);
    wait_until(|| number().is_some());
    let (reader, mut writer) = std::io::pipe().unwrap();
    let copy = take(number().unwrap().0, &reader);
    writer.write_all(b"the program's").unwrap();
    let _later = domain.offer("later", Box::new(Echo(channel().0))).unwrap();
    waiting.join().unwrap();
    // Nothing was read from the program's pipe, and its copy was not closed.
    assert_eq!(rustix::io::ioctl_fionread(&copy), Ok(13));
    assert!(std::io::PipeReader::from(copy).read_exact(&mut [0; 13]).is_ok());
}

/// Has a pipe of the program take the numbers of all descriptors of one purpose after the other.
fn loser(role: &Role) {
    use Purpose::{Claim, Connection, Epoll, Folder, Process};
    for purpose in [Connection, Folder, Epoll, Purpose::Event, Process, Claim, Purpose::Offer] {
        let everything = Everything::new(role);
        assert!(everything.works());
        // Others may still be closing the connection of before, its socket first, then its process; what is closed just when
        // another file takes its number is what no look before the use can prevent.
        let ends = |wanted| descriptors().into_iter().filter(|(_, found)| *found == wanted).count();
        wait_until(|| ends(Connection) == 2 && ends(Process) == 2);
        let (reader, writer) = std::io::pipe().unwrap();
        let numbers: Vec<_> = descriptors().into_iter().filter(|(_, found)| *found == purpose).collect();
        assert!(!numbers.is_empty(), "{purpose}");
        let copies: Vec<_> = numbers.into_iter().map(|(number, _)| take(number, &writer)).collect();
        notices(&everything, purpose);
        drop(everything);
        // The end of the connections wakes the domain's thread, which has noticed the loss when it has ended.
        wait_until(|| listed().is_empty());
        // Nothing of ours was written to the program's pipe, and no copy of it was closed.
        assert_eq!(rustix::io::ioctl_fionread(&reader), Ok(0), "{purpose}");
        for mut copy in copies.into_iter().map(std::fs::File::from) {
            copy.write_all(b"x").unwrap();
        }
        remove_files(role);
    }
}

/// What was lost stays as files, for the next owner to remove; this process still holds the name of an offer that hangs.
fn remove_files(role: &Role) {
    for entry in std::fs::read_dir(role.config.root_folder().join("test")).unwrap() {
        let _ = std::fs::remove_file(entry.unwrap().path());
    }
}

/// Calls of every kind end, with an error where they would have used what was lost.
fn notices(everything: &Everything, purpose: Purpose) {
    let is_lost = |error: &ConnectError| matches!(error, ConnectError::Misuse(MisuseError::DescriptorLost));
    let quick = Duration::from_millis(200);
    let called = everything.connection.call_within(b"ab", &[], quick);
    let connected = everything.domain.connect_within("name", b"", &[], quick);
    let offered = everything.domain.offer("other", Box::new(Echo(channel().0)));
    let notified = everything.peer.notify(b"", &[]);
    match purpose {
        Purpose::Connection => {
            assert!(called.is_err_and(|error| is_lost(&error)));
            assert_eq!(notified, Err(NotifyError::Misuse(MisuseError::DescriptorLost)));
            assert!(connected.is_ok() && offered.is_ok(), "others work on");
        }
        Purpose::Folder | Purpose::Epoll | Purpose::Event => {
            assert!(called.as_ref().is_err_and(is_lost), "{purpose}: {called:?}");
            assert!(connected.is_err_and(|error| is_lost(&error)), "{purpose}");
            assert!(
                matches!(offered, Err(OfferError::Misuse(MisuseError::DescriptorLost))),
                "{purpose}: {offered:?}"
            );
        }
        // Nobody connects any more, and who is connected stays.
        Purpose::Offer => assert!(called.is_ok() && connected.is_err() && offered.is_ok()),
        _ => assert!(called.is_ok() && connected.is_ok() && offered.is_ok(), "{purpose}"),
    }
}

/// Closes every descriptor but the standard ones, as `closefrom(3)` does, while a thread waits for the owner.
fn closer(role: &Role) {
    let everything = Everything::new(role);
    for number in open_numbers().into_iter().filter(|number| *number > 2) {
        let _ = nix::unistd::close(number);
    }
    let files: Vec<_> = (0..100).map(|_| std::fs::File::open("/proc/self/status").unwrap()).collect();
    let called = everything.connection.call_within(b"ab", &[], WATCHDOG);
    assert!(matches!(called, Err(ConnectError::Misuse(MisuseError::DescriptorLost))), "{called:?}");
    assert!(everything.domain.connect("name", b"", &[]).is_err());
    let next = everything.notifications.try_next();
    // The other end was closed too, and its hang-up may have come first.
    let is_end = |ended| matches!(ended, NotificationsEnded::Misuse(_) | NotificationsEnded::CutOff { .. });
    assert!(next.as_ref().map_or_else(|ended| is_end(*ended), Option::is_none), "{next:?}");
    drop(everything);
    for file in files {
        assert!(file.as_fd().try_clone_to_owned().is_ok(), "a file of the program was closed");
    }
}

fn play(role: &str) {
    let folder = TestFolder::new();
    let mut helper = folder.helper(role, "");
    helper.expect("done");
    assert!(helper.finish().success());
}

#[test]
fn all_that_are_open_are_listed() {
    play("lister");
}

#[test]
fn program_that_closes_below_the_lowest_number_closes_none_of_ours() {
    play("placer");
}

#[test]
fn another_file_under_a_lost_number_is_neither_used_nor_closed() {
    play("loser");
}

#[test]
fn file_under_the_number_of_a_wait_for_an_offer_is_neither_read_nor_closed() {
    play("waiter");
}

#[test]
fn loss_of_all_descriptors_ends_calls_with_an_error() {
    play("closer");
}

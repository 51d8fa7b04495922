//! Rendezvous in a network namespace: who meets there, who does not, and what somebody gets who takes a name first.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use beeline_contract_memory::{CreditSink, CreditSource, LoadPort, StorePort};
use beeline_domain::{
    Answer, ConnectError, Departure, Domain, DomainConfig, DomainError, MisuseError, NameError, Notified,
    Offer, OfferError, OfferOptions, Peer, Refusal, Reply, Service, StoreOptions, WindowOptions,
    connect_window, offer_window,
};
use beeline_mmio::StoreKernel;
use harness::users::{LISTED, UNLISTED, Users};
use harness::{Helper, Role, WATCHDOG, fork_a_bystander, listen, say, wait_for_end, wait_until, watchdog};
use nix::mount::{MsFlags, mount};
use nix::sched::{CloneFlags, unshare};
use rustix::net::{AddressFamily, RecvFlags, SocketAddrUnix, SocketFlags, SocketType};

/// Notifies whoever connects, answers with the request, and tells how peers go.
struct Teller(Sender<Departure>);

impl Service for Teller {
    fn connected(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        assert_eq!(peer.notify(b"welcome", &[]).unwrap(), Notified::Accepted);
        self.requested(peer, request, fds)
    }

    fn requested(&mut self, _: &Peer, request: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Ok(Reply::new(request).into())
    }

    fn departed(&mut self, peer: &Peer) {
        let _ = self.0.send(peer.departure().unwrap());
    }
}

fn offer(
    domain: &Domain,
    name: &str,
    allowed_uids: &[u32],
) -> Result<(Offer, Receiver<Departure>), OfferError> {
    let (sender, departures) = channel();
    let options = OfferOptions { allowed_uids: allowed_uids.to_vec(), ..OfferOptions::default() };
    domain.offer_with(name, Box::new(Teller(sender)), options).map(|offer| (offer, departures))
}

/// A domain of a test's own: every process of the machine that is in this network namespace sees its name.
fn fresh() -> DomainConfig {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    DomainConfig::in_network_namespace(format!("test-{}-{number}", std::process::id()))
}

fn open(config: &DomainConfig) -> Domain {
    Domain::open(config).unwrap()
}

fn start(role: &str, argument: &str) -> Helper {
    Helper::start(role, std::path::Path::new("/nowhere"), argument)
}

/// Has the process see none of the folders in which others meet.
fn hide_folders() {
    let none: Option<&str> = None;
    unshare(CloneFlags::CLONE_NEWNS).unwrap();
    mount(none, "/", none, MsFlags::MS_REC | MsFlags::MS_PRIVATE, none).unwrap();
    for folder in ["/tmp", "/run", "/dev/shm"] {
        mount(Some("none"), folder, Some("tmpfs"), MsFlags::empty(), none).unwrap();
    }
}

/// Offers `told` and `window`, and says what comes of them.
fn own(domain: &Domain, allowed_uids: &[u32]) {
    let (_offer, departures) = offer(domain, "told", allowed_uids).unwrap();
    let (_own, _) = offer(domain, "own", &[]).unwrap();
    let options =
        WindowOptions { lines: 64, allowed_uids: allowed_uids.to_vec(), ..WindowOptions::default() };
    let listener = offer_window(domain, "window", options).unwrap();
    say("ready");
    while let Some(order) = listen() {
        match order.as_str() {
            "window" => {
                let mut parts = listener.accept(WATCHDOG).unwrap();
                wait_until(|| parts.load.load_word(3, 0) == 77);
                parts.sink.publish(5);
                say(&format!("word of uid {}", parts.peer.uid()));
                wait_until(|| !parts.peer.is_alive());
                say(&format!("{:?}", parts.peer.departure().unwrap()));
            }
            "departure" => say(&format!("{:?}", departures.recv_timeout(WATCHDOG).unwrap())),
            other => panic!("unknown order {other}"),
        }
    }
}

/// Uses everything that [`own`] offers, and keeps it until the test says so.
fn use_all(domain: &Domain) {
    let (connection, reply) = domain.connect("told", b"hello", &[]).unwrap();
    assert_eq!(reply.payload, b"hello");
    let notifications = connection.notifications().unwrap();
    assert_eq!(notifications.next_within(WATCHDOG).unwrap().unwrap().payload, b"welcome");
    assert_eq!(connection.call(b"again", &[]).unwrap().payload, b"again");
    let mut sender =
        connect_window(domain, "window", StoreOptions::with_kernel(StoreKernel::Cached)).unwrap();
    sender.store.store_word(3, 0, 77);
    sender.store.wake_receiver();
    wait_until(|| sender.credits.freed_lines() == 5);
    say("used");
    if listen().as_deref() == Some("death") {
        let end = loop {
            if let Err(end) = notifications.next_within(WATCHDOG) {
                break end;
            }
        };
        wait_until(|| !sender.peer.is_alive());
        say(&format!("{end:?} {:?}", sender.peer.departure().unwrap()));
        wait_for_end();
    }
}

#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    let _watchdog = watchdog();
    let mut arguments = role.argument.split(',');
    let config = DomainConfig::in_network_namespace(arguments.next().unwrap());
    let owner_uid = || Domain::open_foreign(&config, 0).unwrap();
    match role.name.as_str() {
        "owner" => own(&open(&config), &[LISTED]),
        "hidden owner" => {
            hide_folders();
            own(&open(&config), &[]);
        }
        "client" => use_all(&open(&config)),
        "hidden client" => {
            hide_folders();
            use_all(&open(&config));
        }
        "other user" => use_all(&owner_uid()),
        "refused user" => {
            for name in ["told", "window", "own"] {
                say(&owner_uid().connect(name, b"", &[]).unwrap_err().to_string());
            }
            say(&Domain::open_foreign(&config, 0)
                .unwrap()
                .offer("mine", Box::new(Teller(channel().0)))
                .unwrap_err()
                .to_string());
        }
        "elsewhere" => {
            let before = open(&config);
            unshare(CloneFlags::CLONE_NEWNET).unwrap();
            let left = before.connect("told", b"", &[]).unwrap_err();
            assert!(matches!(left, ConnectError::Misuse(MisuseError::OtherNamespace)), "{left}");
            let domain = open(&config);
            let absent = domain.connect("told", b"", &[]).unwrap_err();
            assert!(matches!(absent, ConnectError::Absent { .. }), "{absent}");
            own(&domain, &[]);
        }
        "forker" => {
            let (_offer, _) = offer(&open(&config), "told", &[]).unwrap();
            fork_a_bystander();
            say("forked");
            wait_for_end();
        }
        "squatter" => squat(arguments.next().unwrap()),
        other => panic!("unknown role {other}"),
    }
}

/// Listens under a name that is another user's, and says what it got from each who comes.
fn squat(name: &str) {
    let address = SocketAddrUnix::new_abstract_name(name.as_bytes()).unwrap();
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap();
    rustix::net::bind(&socket, &address).unwrap();
    rustix::net::listen(&socket, 8).unwrap();
    say("squats");
    while let Some(order) = listen() {
        assert_eq!(order, "next");
        let comer = rustix::net::accept(&socket).unwrap();
        let mut buffer = [0; 1000];
        let got = rustix::net::recv(&comer, &mut buffer[..], RecvFlags::empty());
        let bytes = got.map_or(0, |(bytes, _)| bytes);
        say(&format!("got {bytes}"));
    }
}

#[test]
fn names_windows_and_notifications_need_no_folder_and_deaths_are_seen_on_both_sides() {
    let _watchdog = watchdog();
    let config = fresh();
    let mut owner = start("owner", &config.name);
    owner.expect("ready");
    let mut client = start("client", &config.name);
    owner.tell("window");
    assert!(owner.hear().starts_with("word of uid "));
    client.expect("used");
    assert_eq!(open(&config).names().unwrap(), ["own", "told", "window"]);
    client.kill();
    owner.expect("Died");
    owner.tell("departure");
    owner.expect("Died");
    let mut client = start("client", &config.name);
    owner.tell("window");
    owner.hear();
    client.expect("used");
    client.tell("death");
    owner.kill();
    client.expect("OwnerDied Died");
    // The kernel has given the names up with the process.
    let domain = open(&config);
    let absent = domain.connect("told", b"", &[]).unwrap_err();
    assert!(matches!(absent, ConnectError::Absent { .. }), "{absent}");
    offer(&domain, "told", &[]).unwrap();
}

#[test]
fn name_that_is_not_there_yet_is_waited_for() {
    let _watchdog = watchdog();
    let config = fresh();
    let domain = open(&config);
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| {
            domain
                .retry_until_offered(WATCHDOG, |left| domain.connect_within("told", b"x", &[], left))
                .unwrap()
        });
        std::thread::sleep(Duration::from_millis(20));
        let _offered = offer(&open(&config), "told", &[]).unwrap();
        assert_eq!(waiting.join().unwrap().1.payload, b"x");
    });
}

#[test]
fn same_name_in_another_network_namespace_is_another_domain() {
    let _watchdog = watchdog();
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can leave a network namespace");
        return;
    }
    let config = fresh();
    let mut here = start("owner", &config.name);
    here.expect("ready");
    let mut elsewhere = start("elsewhere", &config.name);
    elsewhere.expect("ready");
}

#[test]
fn processes_that_share_no_folder_meet_in_their_network_namespace() {
    let _watchdog = watchdog();
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can leave a mount namespace");
        return;
    }
    let config = fresh();
    let mut owner = start("hidden owner", &config.name);
    owner.expect("ready");
    let mut client = start("hidden client", &config.name);
    owner.tell("window");
    owner.expect("word of uid 0");
    client.expect("used");
    client.tell("death");
    owner.kill();
    client.expect("OwnerDied Died");
}

#[test]
fn listed_user_is_let_in_by_a_network_namespace_and_an_unlisted_one_is_not() {
    let Some(users) = Users::new() else { return };
    let config = fresh();
    let mut owner = start("owner", &config.name);
    owner.expect("ready");
    let mut other = users.helper(LISTED, "other user", &config.name);
    owner.tell("window");
    owner.expect(&format!("word of uid {LISTED}"));
    other.expect("used");
    let mut refused = users.helper(UNLISTED, "refused user", &config.name);
    for _ in ["told", "window", "own"] {
        let said = refused.hear();
        assert!(said.contains(&format!("uid {UNLISTED} is not on the offer's list")), "{said}");
    }
    let said = refused.hear();
    assert!(said.contains("only its owner may offer"), "{said}");
    other.tell("death");
    owner.kill();
    other.expect("OwnerDied Died");
}

#[test]
fn squatter_is_recognised_and_gets_nothing_but_a_denial() {
    let Some(users) = Users::new() else { return };
    let config = fresh();
    let domain = open(&config);
    let name = format!("beeline/0/{}/told", config.name);
    let mut squatter = users.helper(UNLISTED, "squatter", &format!("{},{name}", config.name));
    squatter.expect("squats");
    let impostor = domain.connect("told", b"secret", &[]).unwrap_err();
    assert!(matches!(impostor, ConnectError::Impostor { found: UNLISTED, expected: 0, .. }), "{impostor}");
    squatter.tell("next");
    squatter.expect("got 0");
    let squatted = offer(&domain, "told", &[]).unwrap_err();
    assert!(matches!(squatted, OfferError::Squatted { uid: UNLISTED, .. }), "{squatted}");
    squatter.tell("next");
    squatter.expect("got 0");
    // Of another name nothing is denied.
    offer(&domain, "other", &[]).unwrap();
}

#[test]
fn name_that_a_forked_child_holds_is_reported_with_its_dead_owner() {
    let _watchdog = watchdog();
    let config = fresh();
    let mut owner = start("forker", &config.name);
    owner.expect("forked");
    let domain = open(&config);
    let taken = offer(&domain, "told", &[]).unwrap_err();
    assert!(matches!(taken, OfferError::Taken { pid, .. } if pid == owner.pid()), "{taken}");
    owner.kill();
    let died = domain.connect("told", b"", &[]).unwrap_err();
    assert!(matches!(died, ConnectError::OwnerDied { .. }), "{died}");
    let orphaned = offer(&domain, "told", &[]).unwrap_err();
    assert!(
        matches!(orphaned, OfferError::Orphaned { pid: Some(pid), .. } if pid == owner.pid()),
        "{orphaned}"
    );
}

#[test]
fn of_two_who_offer_one_name_at_once_one_is_told_of_the_other() {
    let _watchdog = watchdog();
    let config = fresh();
    let offer_again = || {
        let domain = open(&config);
        for _ in 0..300 {
            match offer(&domain, "told", &[]) {
                Ok(offered) => drop(offered),
                Err(OfferError::Taken { pid, .. }) => assert_eq!(pid, std::process::id()),
                // The other's thread that would answer has no core.
                Err(OfferError::Unanswered { .. }) => {}
                Err(other) => panic!("{other}"),
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(offer_again);
        scope.spawn(offer_again);
    });
}

#[test]
fn domain_whose_name_is_too_long_for_a_network_namespace_is_refused() {
    let error = Domain::open(&DomainConfig::in_network_namespace("n".repeat(40))).unwrap_err();
    assert!(matches!(error, DomainError::Name(NameError::TooLongForNamespace { bytes: 40 })), "{error}");
}

//! Names, requests and answers between real processes.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::io::{Read, Seek, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use beeline_domain::{
    Answer, ConnectError, Departure, Domain, DomainConfig, MayArrive, MisuseError, Notified, OfferError,
    OfferOptions, Peer, Refusal, Reply, Service,
};
use harness::held::Held;
use harness::{Helper, Role, TestFolder, fork_a_bystander, listen, open_fds, say, wait_for_end, wait_until};
use rustix::fs::MemfdFlags;
use rustix::process::Signal;

/// Answers with what it got, reversed; refuses `no`; tells the test who comes and goes.
struct Echo(Sender<(Peer, &'static str)>);

impl Service for Echo {
    fn connected(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let reply = self.requested(peer, request, fds)?;
        let _ = self.0.send((peer.clone(), "connected"));
        Ok(reply)
    }

    fn requested(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        match request {
            b"no" => Err(Refusal::new("asked to refuse")),
            b"fds" => Ok(Reply::new(open_fds().to_string()).into()),
            b"who" => Ok(Reply::new(peer.pid().to_string()).into()),
            b"pid" => Ok(Reply::new(std::process::id().to_string()).into()),
            b"panic" => panic!("a service that panics, on purpose"),
            _ => Ok(Reply { payload: request.iter().rev().copied().collect(), fds }.into()),
        }
    }

    fn departed(&mut self, peer: &Peer) {
        let _ = self.0.send((peer.clone(), "departed"));
    }
}

fn echo() -> (Box<dyn Service>, Receiver<(Peer, &'static str)>) {
    let (sender, receiver) = channel();
    (Box::new(Echo(sender)), receiver)
}

/// The owner reads nothing for a while, and the connection is full of what it was told.
#[test]
fn call_waits_for_room_in_the_connection() {
    let folder = TestFolder::new();
    let (domain, theirs) = (folder.open(), folder.open());
    let (service, _events) = echo();
    let _offer = domain.offer("name", service).unwrap();
    let (connection, _) = theirs.connect("name", b"", &[]).unwrap();
    let held = Held::new(&domain, folder.open());
    while connection.tell(&[7; 4096]) == Ok(Notified::Accepted) {}
    std::thread::scope(|scope| {
        let calling = scope.spawn(|| connection.call(b"abc", &[]));
        std::thread::sleep(Duration::from_millis(50));
        held.go_on();
        assert_eq!(calling.join().unwrap().unwrap().payload, b"cba");
    });
    // No longer than it was told to.
    let held = Held::new(&domain, folder.open());
    while connection.tell(&[7; 4096]) == Ok(Notified::Accepted) {}
    let late = connection.call_within(b"abc", &[], Duration::from_millis(20)).unwrap_err();
    assert!(matches!(late, ConnectError::TimedOut { .. }), "{late}");
    held.go_on();
}

#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    if role.name == "other_user" {
        return other_user(&role);
    }
    let domain = role.open();
    match role.name.as_str() {
        "owner" => {
            // Nobody keeps the events: a peer that is kept keeps its descriptors.
            let name = role.argument.strip_prefix("name=").unwrap_or("name");
            let _offer = domain.offer(name, echo().0).unwrap();
            if role.argument == "forks" {
                fork_a_bystander();
            }
            say("ready");
            wait_for_end();
        }
        "comer" => comer(&domain),
        "client" => client(&domain, &role.argument),
        "forker" => forker(&domain),
        "leaker" => leaker(&domain),
        "opener" => opener(&role),
        other => panic!("unknown role {other}"),
    }
}

/// Offers the name when told to, and says how that went.
fn comer(domain: &Domain) {
    say("ready");
    listen();
    let (service, _events) = echo();
    let offer = domain.offer("name", service);
    match &offer {
        Ok(_) => say("won"),
        Err(OfferError::Taken { pid, .. }) => say(&format!("taken by {pid}")),
        Err(error) => say(&format!("failed: {error}")),
    }
    wait_for_end();
}

/// Connects, and leaves as it is told to.
fn client(domain: &Domain, how: &str) {
    let (connection, _) = domain.connect("name", b"hello", &[]).unwrap();
    if how == "forks" {
        fork_a_bystander();
    }
    say("connected");
    listen();
    drop(connection);
    if how == "stays" {
        say("closed");
        wait_for_end();
    }
}

/// Forks, and has the child use the domain and misuse everything else it inherited.
fn forker(domain: &Domain) {
    let (connection, _) = domain.connect("name", b"hello", &[]).unwrap();
    let (service, _events) = echo();
    let offer = domain.offer("own", service).unwrap();
    let parent = std::process::id();
    let (reader, writer) = std::io::pipe().unwrap();
    if let fork::Fork::Child = fork::fork().unwrap() {
        let is_forked = |error: &MisuseError| matches!(error, MisuseError::Forked { opened_by, .. } if *opened_by == parent);
        let pid = std::process::id().to_string().into_bytes();
        let other = domain.offer("other", echo().0);
        let answers = [
            matches!(connection.call(b"x", &[]), Err(ConnectError::Misuse(error)) if is_forked(&error)),
            matches!(connection.notifications(), Err(error) if error.to_string().contains("was forked from it")),
            // The owner's evidence is of this process, not of its parent.
            domain.connect("name", b"who", &[]).is_ok_and(|(_, reply)| reply.payload == pid),
            other.is_ok()
                && domain.connect("other", b"pid", &[]).is_ok_and(|(_, reply)| reply.payload == pid),
            matches!(domain.offer("own", echo().0), Err(OfferError::Taken { pid, .. }) if pid == parent),
        ];
        // Dropping the copies must neither hang nor harm the parent.
        drop((connection, offer, other, domain.clone()));
        let _ = rustix::io::write(&writer, &answers.map(u8::from));
        let _ = rustix::process::kill_process(rustix::process::getpid(), Signal::KILL);
        unreachable!();
    }
    drop(writer);
    let mut answers = Vec::new();
    std::io::BufReader::new(reader).read_to_end(&mut answers).unwrap();
    say(&format!("child {answers:?}"));
    let answer = connection.call(b"ab", &[]).unwrap();
    say(&format!("parent {}", String::from_utf8(answer.payload).unwrap()));
    let (_own, reply) = domain.connect("own", b"cd", &[]).unwrap();
    say(&format!("own {}", String::from_utf8(reply.payload).unwrap()));
    drop(offer);
}

/// Connects, calls, is refused, offers, all with descriptors, and looks whether any is left over on either side.
fn leaker(domain: &Domain) {
    let (steady, _) = domain.connect("name", b"hello", &[]).unwrap();
    let owner_fds = || String::from_utf8(steady.call(b"fds", &[]).unwrap().payload).unwrap();
    let (ours, theirs) = (open_fds(), owner_fds());
    for _ in 0..100 {
        let file = memory(b"x");
        let (connection, _) = domain.connect("name", b"hello", &[file.as_fd(); 3]).unwrap();
        connection.call(b"again", &[file.as_fd(); 5]).unwrap();
        assert!(matches!(connection.call(b"no", &[file.as_fd()]), Err(ConnectError::Refused { .. })));
        assert!(matches!(domain.connect("name", b"no", &[file.as_fd()]), Err(ConnectError::Refused { .. })));
        drop(domain.offer("other", echo().0).unwrap());
    }
    // Both threads may still be closing the last connection.
    wait_until(|| open_fds() <= ours && owner_fds() == theirs);
    say("done");
}

/// Opens and drops domains with everything on them, and looks whether descriptors or threads are left over.
fn opener(role: &Role) {
    let threads = || std::fs::read_dir("/proc/self/task").unwrap().count();
    let before = (open_fds(), threads());
    for _ in 0..20 {
        let domain = role.open();
        let offer = domain.offer("opened", echo().0).unwrap();
        let (connection, _) = domain.connect("opened", b"x", &[]).unwrap();
        drop((domain, connection, offer));
    }
    wait_until(|| open_fds() <= before.0 && threads() <= before.1);
    say("done");
}

#[test]
fn foreign_domain_is_waited_for_until_its_owner_makes_it() {
    let folder = TestFolder::new();
    let config = DomainConfig { root: Some(folder.path().join("later")), ..DomainConfig::default() };
    let owner = rustix::process::geteuid().as_raw();
    let open = |timeout| Domain::open_foreign_awaiting(&config, owner, timeout);
    let absent = open(Duration::from_millis(20)).unwrap_err().to_string();
    assert!(absent.contains(&format!("uid {owner} has no folder")) && absent.contains("later"), "{absent}");
    std::thread::scope(|scope| {
        let opened = scope.spawn(|| open(Duration::from_secs(60)));
        std::thread::sleep(Duration::from_millis(30));
        let owned = Domain::open(&config).unwrap();
        assert_eq!(opened.join().unwrap().unwrap().path(), owned.path());
    });
}

/// A process of another user, on a domain that is not its own.
fn other_user(role: &Role) {
    let owner: u32 = role.argument.parse().unwrap();
    let domain = Domain::open_foreign(&role.config, owner).unwrap();
    // Nothing is offered to another user in this one, so it is to be waited for.
    let later = DomainConfig { name: "later".into(), ..role.config.clone() };
    let closed = Domain::open_foreign(&later, owner).unwrap_err();
    say(&format!("later: {} {closed}", closed.owner_may_come()));
    for name in ["open", "closed", "others"] {
        match domain.connect(name, b"pid", &[]) {
            Ok((connection, _)) => say(&format!("{name}: connected to uid {}", connection.peer().uid())),
            Err(ConnectError::NotAllowed { uid, .. }) => say(&format!("{name}: uid {uid} is not allowed")),
            Err(error) => say(&format!("{name}: {error}")),
        }
    }
    let refused = domain.offer("mine", echo().0);
    say(&format!("offer: {}", matches!(refused, Err(OfferError::Misuse(MisuseError::NotOwner { .. })))));
}

fn memory(content: &[u8]) -> std::fs::File {
    let mut file = std::fs::File::from(rustix::fs::memfd_create("test", MemfdFlags::CLOEXEC).unwrap());
    file.write_all(content).unwrap();
    file
}

#[test]
fn requests_and_descriptors_travel_both_ways() {
    let folder = TestFolder::new();
    let mut owner = folder.helper("owner", "");
    owner.expect("ready");
    let domain = folder.open();
    let sent = memory(b"through two processes");
    let (connection, mut reply) = domain.connect("name", b"hello", &[sent.as_fd()]).unwrap();
    assert_eq!(reply.payload, b"olleh");
    let mut back = std::fs::File::from(reply.fds.pop().unwrap());
    back.rewind().unwrap();
    let mut text = String::new();
    back.read_to_string(&mut text).unwrap();
    assert_eq!(text, "through two processes");
    assert_eq!(connection.peer().pid(), owner.pid());
    assert!(connection.peer().is_alive() && connection.peer().has_membarrier());
    for length in [0, 1, 1000, beeline_domain::MAX_PAYLOAD_BYTES] {
        assert_eq!(connection.call(&vec![7; length], &[]).unwrap().payload.len(), length);
    }
    let too_long = vec![0; beeline_domain::MAX_PAYLOAD_BYTES + 1];
    assert!(matches!(connection.call(&too_long, &[]), Err(ConnectError::TooLarge { .. })));
    let refused = connection.call(b"no", &[]).unwrap_err();
    assert!(
        matches!(&refused, ConnectError::Refused { reason, .. } if reason == "asked to refuse"),
        "{refused}"
    );
    assert!(refused.to_string().contains(&owner.pid().to_string()));
    assert!(matches!(domain.connect("name", b"no", &[]), Err(ConnectError::Refused { .. })));
    // A panic of the service costs the request, not the connection nor the owner.
    let panicked = connection.call(b"panic", &[]);
    assert!(matches!(panicked, Err(ConnectError::Refused { .. })));
    assert_eq!(connection.call(b"ab", &[]).unwrap().payload, b"ba");
    assert_eq!(domain.names().unwrap(), ["name"]);
}

#[test]
fn what_is_not_there_is_said_so() {
    let folder = TestFolder::new();
    let domain = folder.open();
    assert!(matches!(domain.connect("name", b"", &[]), Err(ConnectError::Absent { .. })));
    assert!(matches!(domain.connect("../name", b"", &[]), Err(ConnectError::Name(_))));
    assert!(matches!(domain.offer("Name", echo().0), Err(OfferError::Name(_))));
    let long = "x".repeat(beeline_domain::MAX_NAME_BYTES);
    let _offer = domain.offer(&long, echo().0).unwrap();
    assert_eq!(domain.connect(&long, b"ab", &[]).unwrap().1.payload, b"ba");
}

#[test]
fn connecting_before_the_offer_waits_for_it() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let (said_absent, absent) = channel();
    std::thread::scope(|scope| {
        let connected = scope.spawn(|| {
            let mut absences = 0;
            let connected = domain.retry_until_offered(harness::WATCHDOG, |left| {
                let connected = domain.connect_within("name", b"ab", &[], left);
                if let Err(error) = &connected {
                    // The socket is there a moment before its owner listens on it.
                    assert!(error.absence().is_some(), "{error}");
                    absences += 1;
                    // The watch is set up after the first attempt: from the second on the thread sleeps.
                    if absences == 2 {
                        said_absent.send(()).unwrap();
                    }
                }
                connected
            });
            connected.map(|(_, reply)| reply.payload)
        });
        absent.recv().unwrap();
        let _offer = domain.offer("name", echo().0).unwrap();
        assert_eq!(connected.join().unwrap().unwrap(), b"ba");
    });
}

#[test]
fn connecting_to_a_killed_owner_waits_for_the_next_one() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let mut owner = folder.helper("owner", "");
    owner.expect("ready");
    owner.kill();
    let mut attempts = 0;
    let mut next = None;
    let (connection, _) = domain
        .retry_until_offered(harness::WATCHDOG, |left| {
            attempts += 1;
            if attempts == 3 {
                next = Some(domain.offer("name", echo().0).unwrap());
            }
            domain.connect_within("name", b"ab", &[], left)
        })
        .unwrap();
    assert_eq!((connection.peer().pid(), attempts), (std::process::id(), 3));
}

#[test]
fn an_offer_that_does_not_come_is_absent_when_the_time_is_over() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let limit = Duration::from_millis(30);
    let started = std::time::Instant::now();
    let mut attempts = 0;
    let never = domain.retry_until_offered(limit, |left| {
        attempts += 1;
        domain.connect_within("name", b"", &[], left)
    });
    assert!(matches!(never, Err(ConnectError::Absent { .. })));
    assert!(started.elapsed() >= limit && attempts >= 2);
    // An error that no arrival cures ends the wait at once, and no time at all is one attempt.
    for (name, limit) in [("../name", harness::WATCHDOG), ("name", Duration::ZERO)] {
        let mut attempts = 0;
        let ended = domain.retry_until_offered(limit, |left| {
            attempts += 1;
            domain.connect_within(name, b"", &[], left)
        });
        assert!(ended.is_err() && attempts == 1, "{name}");
    }
}

#[test]
fn a_long_path_is_no_hindrance() {
    // Longer than the 108 bytes of a socket address.
    let folder = TestFolder::new();
    let root = folder.path().join("r".repeat(150));
    let config = beeline_domain::DomainConfig { root: Some(root), name: "d".repeat(48) };
    let domain = Domain::open(&config).unwrap();
    let _offer = domain.offer("name", echo().0).unwrap();
    assert_eq!(domain.connect("name", b"ab", &[]).unwrap().1.payload, b"ba");
}

#[test]
fn an_owner_that_lives_keeps_its_name_even_when_stopped() {
    let folder = TestFolder::new();
    let mut owner = folder.helper("owner", "");
    owner.expect("ready");
    let domain = folder.open();
    let (connection, _) = domain.connect("name", b"hello", &[]).unwrap();
    let is_taken = || {
        let error = domain.offer("name", echo().0).unwrap_err();
        assert!(matches!(&error, OfferError::Taken { pid, .. } if *pid == owner.pid()), "{error}");
        assert!(error.to_string().contains(&format!("process {}", owner.pid())), "{error}");
    };
    is_taken();
    owner.stop();
    is_taken();
    let quick = Duration::from_millis(50);
    assert!(matches!(connection.call_within(b"x", &[], quick), Err(ConnectError::TimedOut { .. })));
    assert!(matches!(domain.connect_within("name", b"", &[], quick), Err(ConnectError::TimedOut { .. })));
    assert!(connection.peer().is_alive());
    owner.signal(Signal::CONT);
    // The answers that came too late are not taken for this one's.
    assert_eq!(connection.call(b"ab", &[]).unwrap().payload, b"ba");
}

#[test]
fn a_dead_owners_name_is_reclaimed() {
    for argument in ["", "forks"] {
        let folder = TestFolder::new();
        let domain = folder.open();
        let mut owner = folder.helper("owner", argument);
        owner.expect("ready");
        let (connection, _) = domain.connect("name", b"hello", &[]).unwrap();
        owner.kill();
        wait_until(|| !connection.peer().is_alive());
        assert_eq!(connection.peer().departure(), Some(Departure::Died), "{argument}");
        assert!(matches!(connection.call(b"x", &[]), Err(ConnectError::OwnerDied { .. })));
        // The socket is still there; with a child that inherited it, it even takes connections.
        let stale = domain.connect("name", b"x", &[]).unwrap_err();
        assert!(matches!(stale, ConnectError::OwnerDied { .. }), "{argument}: {stale}");
        assert!(!stale.to_string().contains("process 0"), "{argument}: {stale}");
        let (service, _events) = echo();
        let offer = domain.offer("name", service).unwrap();
        let (connection, _) = domain.connect("name", b"x", &[]).unwrap();
        assert_eq!(connection.peer().pid(), std::process::id());
        drop(offer);
        wait_until(|| !connection.peer().is_alive());
        assert_eq!(connection.peer().departure(), Some(Departure::Closed));
        assert!(matches!(domain.connect("name", b"x", &[]), Err(ConnectError::Absent { .. })));
    }
}

#[test]
fn files_of_a_killed_owner_are_removed_by_the_next_open() {
    let folder = TestFolder::new();
    let (mut killed, mut alive) = (folder.helper("owner", ""), folder.helper("owner", "name=other"));
    killed.expect("ready");
    alive.expect("ready");
    killed.kill();
    let domain = folder.open();
    assert_eq!(domain.names().unwrap(), ["other"]);
    assert!(!domain.path().join("name.lock").exists() && domain.path().join("other.lock").exists());
    assert!(matches!(domain.connect("name", b"x", &[]), Err(ConnectError::Absent { .. })));
    assert!(domain.connect("other", b"x", &[]).is_ok());
}

#[test]
fn of_comers_at_once_one_reclaims_a_stale_name() {
    let folder = TestFolder::new();
    let mut last: Option<Helper> = None;
    for round in 0..10 {
        let mut comers: Vec<_> = (0..3).map(|_| folder.helper("comer", "")).collect();
        comers.iter_mut().for_each(|comer| comer.expect("ready"));
        if let Some(mut winner) = last.take() {
            winner.kill();
        }
        comers.iter_mut().for_each(|comer| comer.tell("go"));
        let said: Vec<_> = comers.iter_mut().map(Helper::hear).collect();
        let winners: Vec<_> = (0..comers.len()).filter(|i| said[*i] == "won").collect();
        assert_eq!(winners.len(), 1, "round {round}: {said:?}");
        let winner = comers.swap_remove(winners[0]);
        let taken = format!("taken by {}", winner.pid());
        assert_eq!(said.iter().filter(|said| **said == taken).count(), 2, "round {round}: {said:?}");
        let (connection, _) = folder.open().connect("name", b"x", &[]).unwrap();
        assert_eq!(connection.peer().pid(), winner.pid());
        last = Some(winner);
    }
}

#[test]
fn death_is_told_from_an_orderly_end() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let (service, events) = echo();
    let _offer = domain.offer("name", service).unwrap();
    // How the client behaves, whether it is killed, what its peer must see.
    for (argument, is_killed, departure) in [
        ("stays", false, Departure::Closed),
        ("exits", false, Departure::Closed),
        ("stays", true, Departure::Died),
        ("forks", true, Departure::Died),
    ] {
        let mut client = folder.helper("client", argument);
        client.expect("connected");
        let (peer, what) = events.recv().unwrap();
        assert_eq!((peer.pid(), what), (client.pid(), "connected"));
        assert!(peer.is_alive());
        if is_killed {
            client.kill();
        } else {
            client.tell("go");
        }
        let (gone, what) = events.recv().unwrap();
        assert_eq!(
            (gone.id(), what, gone.departure()),
            (peer.id(), "departed", Some(departure)),
            "{argument}"
        );
        assert!(!peer.is_alive());
    }
}

#[test]
fn a_stopped_client_is_alive() {
    let folder = TestFolder::new();
    let domain = folder.open();
    let (service, events) = echo();
    let _offer = domain.offer("name", service).unwrap();
    let mut client = folder.helper("client", "stays");
    client.expect("connected");
    let (peer, _) = events.recv().unwrap();
    client.stop();
    // The domain's thread has been through its epoll at least once for each of these.
    for _ in 0..20 {
        domain.connect("name", b"x", &[]).unwrap();
    }
    assert!(peer.is_alive());
    assert!(events.try_iter().all(|(other, _)| other.id() != peer.id()));
    client.signal(Signal::KILL);
    wait_until(|| !peer.is_alive());
    assert_eq!(peer.departure(), Some(Departure::Died));
}

#[test]
fn forked_child_uses_the_domain_and_cannot_harm_what_it_inherits() {
    let folder = TestFolder::new();
    let mut owner = folder.helper("owner", "");
    owner.expect("ready");
    let mut forker = folder.helper("forker", "");
    forker.expect("child [1, 1, 1, 1, 1]");
    forker.expect("parent ba");
    forker.expect("own dc");
    assert!(forker.finish().success());
}

#[test]
fn nothing_leaks() {
    let folder = TestFolder::new();
    let mut owner = folder.helper("owner", "");
    owner.expect("ready");
    // In a process of its own: the other tests of this one open descriptors all the time.
    for role in ["leaker", "opener"] {
        let mut helper = folder.helper(role, "");
        helper.expect("done");
        assert!(helper.finish().success());
    }
}

#[test]
fn another_user_needs_to_be_on_the_list() {
    // Not 65534: in a container that leaves users out, that number is nobody in particular.
    const OTHER_USER: u32 = 65_533;
    if !rustix::process::geteuid().is_root() {
        eprintln!("not run: only root can start a process of another user");
        return;
    }
    let folder = TestFolder::new();
    // The test program must be where that user can run it, and so must the folder.
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::process::CommandExt;
    let program = folder.path().join("program");
    // A process of its own copies it: a descriptor of this one, open for writing, would be inherited by whatever another test
    // starts meanwhile, and a program that somebody has open for writing cannot be executed (ETXTBSY).
    let copied =
        std::process::Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status();
    assert!(copied.unwrap().success());
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
    let domain = folder.open();
    let later = DomainConfig { name: "later".into(), ..folder.config() };
    let _later = Domain::open(&later).unwrap();
    let options = OfferOptions { allowed_uids: vec![OTHER_USER], ..OfferOptions::default() };
    let (open_service, events) = echo();
    let _open = domain.offer_with("open", open_service, options).unwrap();
    let _closed = domain.offer("closed", echo().0).unwrap();
    // Its socket lets everybody in, so only the kernel's word keeps the other user out.
    let options = OfferOptions { allowed_uids: vec![OTHER_USER - 1], ..OfferOptions::default() };
    let (others_service, others_events) = echo();
    let _others = domain.offer_with("others", others_service, options).unwrap();
    let mut command = std::process::Command::new(&program);
    command.args(["--exact", "role", "--nocapture", "--test-threads=1"]).uid(OTHER_USER).gid(OTHER_USER);
    let mut other_user = Helper::run(&mut command, "other_user", folder.path(), "0");
    let later = other_user.hear();
    let closed = "later: true uid 65533 may not enter the folder ";
    assert!(later.starts_with(closed) && later.contains("/later;"), "{later}");
    other_user.expect("open: connected to uid 0");
    other_user.expect("closed: uid 65533 is not allowed");
    let refused = other_user.hear();
    assert!(
        refused.starts_with("others: ") && refused.contains("uid 65533 is not on the offer's list"),
        "{refused}"
    );
    other_user.expect("offer: true");
    assert!(others_events.try_recv().is_err());
    let (peer, _) = events.recv().unwrap();
    assert_eq!(peer.uid(), OTHER_USER);
}

//! Pairs of processes of different users: they agree on the connections that they share by the kernel's word, and on no others.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::path::Path;

use beeline_domain::{ConnectionEnds, Domain, DomainConfig, Met, Pairs, PairsOptions, SocketOf};
use beeline_tcp::OtherSocket;
use harness::pairs::{MEMORY_BYTES, SERVER, agree_on_all, agreed, cookie, hello_of, meet};
use harness::users::{LISTED, UNLISTED, Users};
use harness::{Helper, Role, listen, say, wait_for_end, wait_until};

/// Clients' ends of connections with these ports are of the listed user, others and all servers' ends of the superuser.
const OF_LISTED: std::ops::Range<u16> = 1..20;
const OF_SUPERUSER: u16 = 30;

fn config(folder: &Path) -> DomainConfig {
    DomainConfig { root: Some(folder.join("%u")), name: "d".to_owned() }
}

fn kernel_says(ends: &ConnectionEnds) -> Option<OtherSocket> {
    let is_listed = ends.remote().port() == SERVER && OF_LISTED.contains(&ends.local().port());
    Some(OtherSocket { cookie: cookie(ends), uid: if is_listed { LISTED } else { 0 }, inode: 1 })
}

fn pairs(folder: &Path, socket_of: Box<SocketOf>) -> Pairs {
    let config = config(folder);
    let other_users = Some(&config);
    let options = PairsOptions { memory_bytes: MEMORY_BYTES, socket_of, other_users, progress_of: None };
    Domain::open(&config).unwrap().pairs_with(options).unwrap()
}

/// Folders of the domains of all three users.
fn users() -> Option<Users> {
    let users = Users::new()?;
    for uid in [0, LISTED, UNLISTED] {
        let folder = users.folder().join(uid.to_string());
        std::fs::create_dir(&folder).unwrap();
        std::os::unix::fs::chown(&folder, Some(uid), Some(uid)).unwrap();
    }
    Some(users)
}

#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    match role.name.as_str() {
        "client" => be_client(&role),
        "stranger" => be_stranger(&role),
        other => panic!("{other}"),
    }
}

fn root_of(role: &Role) -> &Path {
    role.config.root.as_deref().unwrap()
}

/// Asks for the clients' ends of these ports, to whomever they belong.
fn be_client(role: &Role) {
    let pairs = pairs(root_of(role), Box::new(kernel_says));
    say("ready");
    while let Some(told) = listen() {
        match told.split_once(' ').unwrap() {
            ("agree", past) => {
                let all = agree_on_all(&pairs, false, 1..past.parse().unwrap());
                assert!(all.iter().all(|agreed| agreed.peer.uid() == 0));
                say(&format!("{:?}", all.iter().map(|agreed| agreed.slot).collect::<Vec<_>>()));
            }
            (_, port) => loop {
                let _ = meet(&pairs, false, port.parse().unwrap());
                pairs.turn();
                std::thread::yield_now();
            },
        }
        // Answers what comes later.
        (0..100).for_each(|_| _ = pairs.turn());
    }
}

/// Shares no connection, and comes nevertheless.
fn be_stranger(role: &Role) {
    let own = Domain::open(&config(root_of(role))).unwrap().connection_table().unwrap();
    own.let_others_read().unwrap();
    let domain = Domain::open_foreign(&config(root_of(role)), 0).unwrap();
    let hello = hello_of(MEMORY_BYTES, own.number(), 0);
    let refused = domain.connect(&role.argument, &hello, &[]).err().map(|error| error.to_string());
    say(&refused.unwrap_or_default());
    wait_for_end();
}

fn client(users: &Users, uid: u32) -> Helper {
    let mut client = users.helper(uid, "client", "");
    client.expect("ready");
    client
}

#[test]
fn users_agree_on_the_connections_that_they_share() {
    let Some(users) = users() else { return };
    let ours = pairs(users.folder(), Box::new(kernel_says));
    for _ in 0..2 {
        let mut client = client(&users, LISTED);
        client.tell("agree 9");
        let all = agree_on_all(&ours, true, 1..9);
        let slots: Vec<u32> = all.iter().map(|agreed| agreed.slot).collect();
        assert!(all.iter().all(|agreed| agreed.peer.uid() == LISTED && agreed.peer.pid() == client.pid()));
        client.expect(&format!("{slots:?}"));
        assert_eq!((ours.counts().open, ours.counts().wrong), (1, 0));
        // The next is another process of the same user.
        client.kill();
        wait_until(|| {
            ours.turn();
            (1..9).all(|port| agreed(&ours, true, port).is_none())
        });
    }
}

/// A user who shares a connection says to have the other end of one that it has not.
#[test]
fn user_says_nothing_of_connections_of_others() {
    let Some(users) = users() else { return };
    let ours = pairs(users.folder(), Box::new(kernel_says));
    let mut liar = client(&users, LISTED);
    liar.tell("agree 3");
    agree_on_all(&ours, true, 1..3);
    assert!(matches!(meet(&ours, true, OF_SUPERUSER), Met::NotYet));
    liar.tell(&format!("lie {OF_SUPERUSER}"));
    wait_until(|| {
        ours.turn();
        assert!(agreed(&ours, true, OF_SUPERUSER).is_none());
        ours.counts().wrong > 0
    });
    assert!(agreed(&ours, true, 1).is_some(), "what is shared stays");
}

#[test]
fn user_without_a_connection_is_not_let_in() {
    let Some(users) = users() else { return };
    let ours = pairs(users.folder(), Box::new(kernel_says));
    let domain = Domain::open(&config(users.folder())).unwrap();
    let name = domain.names().unwrap().into_iter().find(|name| name.starts_with("connections-")).unwrap();
    // Somebody else is being let in meanwhile.
    assert!(matches!(meet(&ours, true, 1), Met::NotYet));
    let mut stranger = users.helper(UNLISTED, "stranger", &name);
    let refused = stranger.hear();
    assert!(refused.contains("--allow-uid"), "{refused}");
    assert_eq!(ours.counts().open, 0);
}

/// What the kernel says of a socket that waits to be accepted is not its user's.
#[test]
fn nobody_is_let_in_for_a_socket_that_was_not_accepted() {
    let Some(users) = users() else { return };
    let not_accepted = |ends: &_| kernel_says(ends).map(|socket| OtherSocket { inode: 0, ..socket });
    let ours = pairs(users.folder(), Box::new(not_accepted));
    let domain = Domain::open(&config(users.folder())).unwrap();
    let name = domain.names().unwrap().into_iter().find(|name| name.starts_with("connections-")).unwrap();
    assert!(matches!(meet(&ours, true, 1), Met::NotYet));
    let mut stranger = users.helper(LISTED, "stranger", &name);
    let refused = stranger.hear();
    assert!(refused.contains("--allow-uid"), "{refused}");
}

#[test]
fn pairs_of_one_user_let_nobody_else_in_and_open_nothing() {
    let Some(users) = users() else { return };
    let domain = Domain::open(&config(users.folder())).unwrap();
    let _ours = domain.pairs(Box::new(|ends| Some(cookie(ends))), MEMORY_BYTES).unwrap();
    let mode = |path: &Path| std::os::unix::fs::MetadataExt::mode(&std::fs::metadata(path).unwrap()) & 0o777;
    assert_eq!(mode(domain.path()), 0o700);
    assert_eq!(mode(&domain.path().join("connections.table")), 0o600);
}

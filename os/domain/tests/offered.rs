//! Whether a name is offered, as processes see it that do not connect.
#![cfg(not(loom))]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod harness;

use std::os::fd::{AsRawFd, OwnedFd};

use beeline_domain::{
    Answer, Domain, DomainConfig, MisuseError, OfferError, OfferOptions, Peer, Refusal, Service,
};
use harness::users::{LISTED, Users};
use harness::{Role, TestFolder, fork_a_bystander, say, wait_for_end};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

struct Silent;

impl Service for Silent {
    fn connected(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        panic!("somebody connected");
    }

    fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        panic!("somebody asks");
    }

    fn departed(&mut self, _: &Peer) {}
}

#[test]
fn role() {
    let Some(role) = Role::of_this_process() else { return };
    if role.name == "foreign" {
        let domain = Domain::open_foreign(&role.config, role.argument.parse().unwrap()).unwrap();
        let refused = domain.is_offered("name").unwrap_err();
        return say(&format!(
            "{}",
            matches!(refused, OfferError::Misuse(MisuseError::NotOwner { owner: 0 }))
        ));
    }
    let config = if role.argument.is_empty() { role.config.clone() } else { in_namespace(&role.argument) };
    let domain = Domain::open(&config).unwrap();
    if role.name == "short of descriptors" {
        return look_without_descriptors(&domain);
    }
    let offer = domain.offer("name", Box::new(Silent));
    if let Err(OfferError::Taken { .. }) = offer {
        return say("taken");
    }
    if role.name == "parent" {
        fork_a_bystander();
    }
    say("ready");
    wait_for_end();
}

/// Looks with one descriptor, which is enough to connect and not to ask who is there, and then with all.
fn look_without_descriptors(domain: &Domain) {
    let limits = getrlimit(Resource::Nofile);
    let lowest_free = rustix::io::dup(std::io::stdin()).unwrap().as_raw_fd();
    let one_more = Rlimit { current: Some(lowest_free as u64 + 1), maximum: limits.maximum };
    setrlimit(Resource::Nofile, one_more).unwrap();
    let failed = domain.is_offered("name");
    setrlimit(Resource::Nofile, limits).unwrap();
    let is_told = matches!(failed, Err(OfferError::System { errno: Errno::MFILE, .. }));
    say(&format!("{is_told} {:?}", domain.is_offered("name")));
}

fn in_namespace(name: &str) -> DomainConfig {
    DomainConfig::in_network_namespace(name)
}

#[test]
fn name_is_offered_while_its_owner_lives_whoever_inherited_its_socket() {
    let folder = TestFolder::new();
    let domain = folder.open();
    assert!(!domain.is_offered("name").unwrap());
    assert!(matches!(domain.is_offered("../name"), Err(OfferError::Name(_))));
    let mut owner = folder.helper("parent", "");
    owner.expect("ready");
    assert!(domain.is_offered("name").unwrap());
    owner.stop();
    assert!(domain.is_offered("name").unwrap(), "a stopped process lives");
    owner.kill();
    assert!(!domain.is_offered("name").unwrap(), "a child of the killed one has its socket and lives");
}

#[test]
fn looking_at_a_name_of_ones_own_ends_no_offer() {
    let folder = TestFolder::new();
    let domain = folder.open();
    // A second opening is the same process.
    let again = folder.open();
    let offer = domain.offer("name", Box::new(Silent)).unwrap();
    assert!(again.is_offered("name").unwrap() && domain.is_offered("name").unwrap());
    // Whoever opens the domain sweeps what is nobody's.
    let mut other = folder.helper("owner", "");
    other.expect("taken");
    assert!(offer.name() == "name" && folder.path().join("test/name.sock").exists());
    drop(offer);
    assert!(!again.is_offered("name").unwrap());
}

#[test]
fn name_in_a_network_namespace_is_offered_while_its_owner_lives() {
    let _watchdog = harness::watchdog();
    let name = format!("offered-{}", std::process::id());
    let domain = Domain::open(&in_namespace(&name)).unwrap();
    assert!(!domain.is_offered("name").unwrap());
    let mut owner = harness::Helper::start("parent", std::path::Path::new("/nowhere"), &name);
    owner.expect("ready");
    assert!(domain.is_offered("name").unwrap());
    owner.kill();
    assert!(!domain.is_offered("name").unwrap());
}

#[test]
fn owner_in_a_network_namespace_that_hears_nobody_offers_its_name() {
    let _watchdog = harness::watchdog();
    let name = format!("crowded-{}", std::process::id());
    let domain = Domain::open(&in_namespace(&name)).unwrap();
    let mut owner = harness::Helper::start("owner", std::path::Path::new("/nowhere"), &name);
    owner.expect("ready");
    owner.stop();
    // Each look waits to be heard; there is room for fewer.
    for look in 0..200 {
        assert!(domain.is_offered("name").unwrap(), "look {look}");
    }
    let unanswered = domain.offer("name", Box::new(Silent)).unwrap_err();
    assert!(matches!(unanswered, OfferError::Unanswered { .. }), "{unanswered}");
    owner.kill();
    assert!(!domain.is_offered("name").unwrap());
}

#[test]
fn who_has_no_descriptors_left_is_not_told_that_a_name_is_not_offered() {
    let _watchdog = harness::watchdog();
    let name = format!("short-{}", std::process::id());
    let start = |role| harness::Helper::start(role, std::path::Path::new("/nowhere"), &name);
    let mut owner = start("owner");
    owner.expect("ready");
    start("short of descriptors").expect("true Ok(true)");
}

#[test]
fn locks_of_another_users_names_are_not_looked_at() {
    let Some(users) = Users::new() else { return };
    let config = DomainConfig { root: Some(users.folder().to_owned()), name: "test".into() };
    let domain = Domain::open(&config).unwrap();
    let options = OfferOptions { allowed_uids: vec![LISTED], ..OfferOptions::default() };
    let _offer = domain.offer_with("name", Box::new(Silent), options).unwrap();
    users.helper(LISTED, "foreign", "0").expect("true");
}

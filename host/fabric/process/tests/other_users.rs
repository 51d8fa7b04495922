//! Processes of other users: none is let into a fabric, wherever else in its domain it is let in.
//!
//! Only root can start processes of two users; anybody else skips this, and says so.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::os::fd::OwnedFd;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use beeline_domain::{Answer, Domain, OfferOptions, Peer, Refusal, Reply, Service};
use beeline_fabric_process::FabricMember;
use support::segments::available;
use support::{Fabric, config_in};

/// A user who owns nothing.
const OTHER: u32 = 65_532;
const FABRIC_ROOT: &str = "BEELINE_TEST_FABRIC";
const FILES: &str = "BEELINE_TEST_FILES";
const MEMBER: &str = "BEELINE_TEST_MEMBER";

/// Lets in whoever is on its list.
struct Welcoming;

impl Service for Welcoming {
    fn connected(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Ok(Answer::Now(Reply::default()))
    }

    fn requested(&mut self, _: &Peer, _: &[u8], _: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Err(Refusal::new("no"))
    }

    fn departed(&mut self, _: &Peer) {}
}

/// What the process of the other user does: it says what each attempt gives.
#[test]
fn role() {
    let Some(root) = std::env::var_os(FABRIC_ROOT) else { return };
    let (root, member) = (Path::new(&root), std::env::var(MEMBER).unwrap());
    let config = config_in(root, 8);
    match FabricMember::open(config.clone()) {
        Ok(_) => support::say("it has joined"),
        Err(error) => support::say(&format!("join: {error}")),
    }
    let domain = Domain::open_foreign(&config.domain, 0).unwrap();
    support::say(&format!("open: {}", domain.connect("open", b"", &[]).is_ok()));
    match domain.connect(&format!("fabric.4.{member}"), b"", &[]) {
        Ok(_) => support::say("it is connected"),
        Err(error) => support::say(&format!("connect: {error}")),
    }
    let files = std::env::var(FILES).unwrap();
    let read = files.split(':').filter(|file| std::fs::read(file).is_ok());
    support::say(&format!("read: {:?}", read.collect::<Vec<_>>()));
}

#[test]
fn process_of_another_user_is_refused_though_its_domain_lets_it_in() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can start a process of another user");
        return;
    }
    let fabric = Fabric::new();
    let owner = FabricMember::open(fabric.config(4)).unwrap();
    available(&owner, 7, 4096);
    let options = OfferOptions { allowed_uids: vec![OTHER], ..OfferOptions::default() };
    let _open = fabric.domain().offer_with("open", Box::new(Welcoming), options).unwrap();

    let users = tempfile::tempdir().unwrap();
    let program = users.path().join("program");
    // By a process of its own: a program that somebody has open for writing is not executed.
    assert!(
        Command::new("cp").arg(std::env::current_exe().unwrap()).arg(&program).status().unwrap().success()
    );
    for path in [users.path(), &program] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(0o755)).unwrap();
    }
    let mut other = Command::new(&program);
    other.uid(OTHER).gid(OTHER).current_dir("/").env(FABRIC_ROOT, fabric.root());
    // Its registry among them.
    let files = std::fs::read_dir(fabric.root().join("fabric")).unwrap().map(|file| file.unwrap().path());
    let files: Vec<_> = files.map(|path| path.into_os_string().into_string().unwrap()).collect();
    assert!(files.iter().any(|file| file.contains("fabric.4")), "{files:?}");
    other.env(FILES, files.join(":"));
    other.env(MEMBER, format!("{:016x}", owner.number().0));
    let Ok(output) = other.args(["--exact", "role", "--nocapture", "--test-threads=1"]).output() else {
        eprintln!("skipped: this user namespace has no uid {OTHER}");
        return;
    };
    let said = String::from_utf8_lossy(&output.stdout);
    let said: Vec<_> = said.lines().filter_map(|line| Some(line.split_once('@')?.1)).collect();
    let [join, open, connect, read] = said[..] else { panic!("{said:?}, {output:?}") };
    assert!(join.contains("belongs to uid 0"), "{join}");
    assert_eq!(open, "open: true");
    assert!(connect.contains("is offered to its owner's processes alone"), "{connect}");
    assert_eq!(read, "read: []");
}

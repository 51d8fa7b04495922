//! Processes of other users: none is let into a fabric, wherever else in its domain it is let in.
//!
//! Only root can start processes of two users; anybody else skips this, and says so.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

mod support;

use std::ffi::OsStr;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Output};
use std::time::Duration;

use beeline_domain::{Answer, Domain, OfferOptions, Peer, Refusal, Reply, Service};
use beeline_fabric::{
    Access, AdapterNumber, Call, InterruptNumber, LocalSegment, NodeId, Part, SegmentId, Value,
};
use beeline_fabric_process::{FabricMember, InterruptOptions, NodeOfUser, OtherUsers};
use support::segments::{available, connect};
use support::{Fabric, config_in};

/// A user who owns nothing.
const OTHER: u32 = 65_532;
const FABRIC_ROOT: &str = "BEELINE_TEST_FABRIC";
const FILES: &str = "BEELINE_TEST_FILES";
const MEMBER: &str = "BEELINE_TEST_MEMBER";
/// The folder of the domain that the other user has.
const OWN_ROOT: &str = "BEELINE_TEST_OWN_ROOT";

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

/// Runs a role as a process of the other user; nothing where there is none.
fn as_other(role: &str, fabric: &Fabric, owner: &FabricMember, more: (&str, &OsStr)) -> Option<Output> {
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
    other.uid(OTHER).gid(OTHER).current_dir("/").env(FABRIC_ROOT, fabric.root()).env(more.0, more.1);
    other.env(MEMBER, format!("{:016x}", owner.number().0));
    let output = other.args(["--exact", role, "--nocapture", "--test-threads=1"]).output();
    if output.is_err() {
        eprintln!("skipped: this user namespace has no uid {OTHER}");
    }
    output.ok()
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

    // Its registry among them.
    let files = std::fs::read_dir(fabric.root().join("fabric")).unwrap().map(|file| file.unwrap().path());
    let files: Vec<_> = files.map(|path| path.into_os_string().into_string().unwrap()).collect();
    assert!(files.iter().any(|file| file.contains("fabric.4")), "{files:?}");
    let Some(output) = as_other("role", &fabric, &owner, (FILES, files.join(":").as_ref())) else { return };
    let said = String::from_utf8_lossy(&output.stdout);
    let said: Vec<_> = said.lines().filter_map(|line| Some(line.split_once('@')?.1)).collect();
    let [join, open, connect, read] = said[..] else { panic!("{said:?}, {output:?}") };
    assert!(join.contains("belongs to uid 0"), "{join}");
    assert_eq!(open, "open: true");
    assert!(connect.contains("is offered to its owner's processes alone"), "{connect}");
    assert_eq!(read, "read: []");
}

/// Which memories this process has descriptors of or has mapped, by the name and the number that the kernel gives each.
fn memories() -> Vec<(String, u64)> {
    let name = |path: &str| Some(path.strip_prefix("/memfd:")?.split(' ').next()?.to_owned());
    let files = std::fs::read_dir("/proc/self/fd").unwrap().flatten().map(|file| file.path());
    let has = files.filter_map(|file| {
        let name = name(&std::fs::read_link(&file).ok()?.to_string_lossy())?;
        Some((name, std::fs::metadata(&file).ok()?.ino()))
    });
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let mapped = maps.lines().filter_map(|line| {
        let mut words = line.split_whitespace().skip(4);
        let number = words.next()?.parse().ok()?;
        Some((name(words.next()?)?, number))
    });
    has.chain(mapped).collect()
}

/// A member of another user: it says what it may connect to and map, and which memories it has then.
#[test]
fn role_of_member() {
    let (Some(root), Some(own)) = (std::env::var_os(FABRIC_ROOT), std::env::var_os(OWN_ROOT)) else { return };
    let (theirs, ours) = (config_in(Path::new(&root), 4), config_in(Path::new(&own), 8));
    let nodes = vec![NodeOfUser { node: NodeId(4), uid: 0, domain: theirs.domain }];
    let member = FabricMember::open_with(ours, OtherUsers { nodes, ..OtherUsers::default() }).unwrap();
    let outcome = |id| connect(&member, 4, id).map(|_| ());
    support::say(&format!("{:?} {:?} {:?}", outcome(7), outcome(8), outcome(9)));
    let remote = connect(&member, 4, 7).unwrap();
    let map = member.map_remote(remote, Part { offset: 0, bytes: 64 }).unwrap();
    let mut hello = [0; 5];
    map.copy_out(0, &mut hello).unwrap();
    map.copy_in(5, b" world").unwrap();
    let number = InterruptNumber(5);
    let adapter = AdapterNumber::new(0).unwrap();
    let trigger = member.connect_interrupt(NodeId(4), number, adapter, Some(Duration::ZERO)).map(|_| ());
    support::say(&format!("{} {trigger:?}", String::from_utf8_lossy(&hello)));
    let name = format!("fabric.4.{}", std::env::var(MEMBER).unwrap());
    let asked =
        Domain::open_foreign(&config_in(Path::new(&root), 4).domain, 0).unwrap().connect(&name, b"BEEQ", &[]);
    support::say(&asked.unwrap_err().to_string());
    support::say(&format!("{:?}", memories().into_iter().map(|(_, number)| number).collect::<Vec<_>>()));
}

/// Makes a segment to which those may connect that `access` says.
fn exported(member: &FabricMember, id: u32, access: Access) -> LocalSegment {
    let (is_auto, is_private, is_empty, has_callback) = (false, false, false, false);
    let (id, bytes) = (SegmentId(id), 64);
    let create = Call::CreateSegment { id, is_auto, bytes, is_private, is_empty, has_callback };
    let Value::Local(local, _) = member.call(create).unwrap() else { panic!("no segment was made") };
    member.export(local, access).unwrap();
    let adapter = AdapterNumber::new(0).unwrap();
    member.call(Call::Prepare(local, adapter)).unwrap();
    member.call(Call::SetAvailable(local, adapter)).unwrap();
    local
}

#[test]
fn member_of_another_user_has_the_memory_of_what_is_exported_to_it_and_no_other() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("skipped: only root can start a process of another user");
        return;
    }
    let fabric = Fabric::new();
    let users = OtherUsers { admitted: vec![OTHER], ..OtherUsers::default() };
    let owner = FabricMember::open_with(fabric.config(4), users).unwrap();
    let to = |users: &[u32]| Access { users: users.to_vec(), ..Access::default() };
    let local = exported(&owner, 7, to(&[OTHER]));
    let hidden = exported(&owner, 8, to(&[OTHER + 1]));
    available(&owner, 9, 64);
    let options = InterruptOptions { number: Some(InterruptNumber(5)), ..InterruptOptions::default() };
    let _interrupt = owner.create_interrupt(options).unwrap();
    let whole = Part { offset: 0, bytes: 64 };
    let map = owner.map_local(local, whole).unwrap();
    let _hidden = owner.map_local(hidden, whole).unwrap();
    map.copy_in(0, b"hello").unwrap();
    let own = tempfile::tempdir().unwrap();
    std::os::unix::fs::chown(own.path(), Some(OTHER), Some(OTHER)).unwrap();
    let before = memories();
    let more = (OWN_ROOT, own.path().as_os_str());
    let Some(output) = as_other("role_of_member", &fabric, &owner, more) else { return };
    let said = String::from_utf8_lossy(&output.stdout);
    let said: Vec<_> = said.lines().filter_map(|line| Some(line.split_once('@')?.1)).collect();
    let [connected, hello, asked, theirs] = said[..] else { panic!("{said:?}, {output:?}") };
    assert_eq!(connected, "Ok(()) Err(ConnectionRefused) Err(ConnectionRefused)");
    assert_eq!(hello, "hello Err(ConnectionRefused)");
    assert!(asked.contains("questions are answered to this user alone"), "{asked}");
    let mut came = [0; 11];
    map.copy_out(0, &mut came).unwrap();
    assert_eq!(&came, b"hello world");
    // Of the memories of this process it has the one that is exported to it, and the board, which it cannot store into.
    let theirs: Vec<u64> =
        theirs[1..theirs.len() - 1].split(", ").map(|number| number.parse().unwrap()).collect();
    let mut shared: Vec<_> = before.into_iter().filter(|(_, number)| theirs.contains(number)).collect();
    shared.sort_unstable();
    shared.dedup();
    let names: Vec<_> = shared.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["beeline-board", "beeline-exported"], "{shared:?}");
}

//! A window whose sender is another user, who is on its list.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

use std::io::{BufRead, BufReader};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use beeline::{ConnectError, Domain, ReceiverOptions};

#[path = "support/other_user.rs"]
mod other_user;

use other_user::{OTHER_UID, as_other_user};

const WATCHDOG: Duration = Duration::from_secs(60);
/// Says to a copy of this test which folder it is to send in.
const FOLDER: &str = "BEELINE_TEST_FOREIGN_FOLDER";

/// What the other user's program prints before it waits for the domain.
const WAITING: &str = "waits for the domain";

/// The other user's program: a copy of this test that finds [`FOLDER`] in its environment.
fn send_as_another_user(folder: &Path, owner_uid: u32) {
    let early = Domain::open_foreign(folder, "shared", owner_uid).unwrap_err();
    assert!(early.remedy().contains("as its owner"), "{early}: {}", early.remedy());
    println!("{WAITING}");
    let domain = Domain::open_foreign_timeout(folder, "shared", owner_uid, WATCHDOG).unwrap();
    domain.sender_timeout("open", WATCHDOG).unwrap().send(b"from another user").unwrap();
    let refused = domain.sender("others").unwrap_err();
    assert!(matches!(&refused, ConnectError::Refused { .. }), "{refused}");
    let closed = domain.sender("own").unwrap_err();
    assert!(closed.remedy().contains("allowed_uids"), "{closed}: {}", closed.remedy());
    let absent = Domain::open_foreign(folder, "absent", owner_uid).unwrap_err();
    assert!(absent.remedy().contains("as its owner"), "{absent}: {}", absent.remedy());
    assert!(domain.receiver("mine").is_err(), "only the owner offers");
}

#[test]
fn listed_user_sends_and_another_is_refused() {
    if let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) {
        let owner_uid = std::fs::metadata(&folder).unwrap().uid();
        return send_as_another_user(&folder, owner_uid);
    }
    let folder = tempfile::tempdir().unwrap();
    let name = "listed_user_sends_and_another_is_refused";
    let Some(mut other) = as_other_user(folder.path(), name) else { return };
    let mut other = other.env(FOLDER, folder.path()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = BufReader::new(other.stdout.take().unwrap()).lines();
    assert!(said.any(|line| line.unwrap().contains(WAITING)), "the other user's program ended");
    let domain = Domain::open_in(folder.path(), "shared").unwrap();
    let offer = |name, uid| domain.receiver_with(name, ReceiverOptions::new().allowed_uids([uid])).unwrap();
    let _own = domain.receiver("own").unwrap();
    // The last: the other user's program tries all three once it is there.
    let (_others, mut open) = (offer("others", OTHER_UID - 1), offer("open", OTHER_UID));
    let message = open.recv_timeout(WATCHDOG).unwrap().expect("the other user sends").to_vec();
    assert_eq!(message, b"from another user");
    assert!(other.wait().unwrap().success());
}

#[test]
fn domain_of_another_user_that_is_not_made_in_time_is_an_error_and_a_wrong_owner_one_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let owner_uid = folder.path().metadata().unwrap().uid();
    let (started, limit) = (Instant::now(), Duration::from_millis(30));
    let late = Domain::open_foreign_timeout(folder.path(), "absent", owner_uid, limit).unwrap_err();
    assert!(started.elapsed() >= limit && late.remedy().contains("as its owner"), "{late}");
    let wrong = Domain::open_foreign_timeout(folder.path(), "absent", owner_uid + 1, WATCHDOG).unwrap_err();
    assert!(started.elapsed() < WATCHDOG && wrong.remedy().contains("open_foreign"), "{wrong}");
}

#[test]
fn domain_is_waited_for_until_its_owner_makes_it() {
    let folder = tempfile::tempdir().unwrap();
    let (root, owner_uid) = (folder.path().join("later"), folder.path().metadata().unwrap().uid());
    std::thread::scope(|scope| {
        let sender = scope.spawn(|| {
            let domain = Domain::open_foreign_timeout(&root, "shared", owner_uid, WATCHDOG).unwrap();
            domain.sender_timeout("name", WATCHDOG).unwrap().send(b"late").unwrap();
        });
        let mut receiver = Domain::open_in(&root, "shared").unwrap().receiver("name").unwrap();
        assert_eq!(receiver.recv_timeout(WATCHDOG).unwrap().unwrap().to_vec(), b"late");
        sender.join().unwrap();
    });
}

//! A window whose sender is another user, who is on its list.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking, its helper functions too")]

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use beeline::{ConnectError, Domain, ReceiverOptions};

const WATCHDOG: Duration = Duration::from_secs(60);
/// A user who owns nothing. Not 65534: in a container that leaves users out, that number is nobody in particular.
const OTHER_UID: u32 = 65_533;
/// Says to a copy of this test which folder it is to send in.
const FOLDER: &str = "BEELINE_TEST_FOREIGN_FOLDER";

/// The other user's program: a copy of this test that finds [`FOLDER`] in its environment.
fn send_as_another_user(folder: &Path, owner_uid: u32) {
    let domain = Domain::open_foreign(folder, "shared", owner_uid).unwrap();
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
    if folder.path().metadata().unwrap().uid() != 0 {
        eprintln!("skipped: only root can become another user");
        return;
    }
    std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o711)).unwrap();
    let domain = Domain::open_in(folder.path(), "shared").unwrap();
    let offer = |name, uid| domain.receiver_with(name, ReceiverOptions::new().allowed_uids([uid])).unwrap();
    let (mut open, _others) = (offer("open", OTHER_UID), offer("others", OTHER_UID - 1));
    let _own = domain.receiver("own").unwrap();
    // Where nobody else may enter the build's folder, a copy of the program is run.
    let program = folder.path().join("program");
    std::fs::copy(std::env::current_exe().unwrap(), &program).unwrap();
    let mut other = Command::new(&program);
    other.args(["--exact", "listed_user_sends_and_another_is_refused", "--nocapture"]);
    let mut other = other.env(FOLDER, folder.path()).uid(OTHER_UID).gid(OTHER_UID).spawn().unwrap();
    let message = open.recv_timeout(WATCHDOG).unwrap().expect("the other user sends").to_vec();
    assert_eq!(message, b"from another user");
    assert!(other.wait().unwrap().success());
}

//! Who may come in, and whom to believe: the kernel's word about the process at the other end, whatever the folder lets pass.

use std::os::unix::fs::{MetadataExt, PermissionsExt};

use beeline_domain::{ConnectError, Domain, DomainConfig};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

use crate::e2e_support::users::{ALLOWED, OWNER, Users};
use crate::start_owner;

#[test]
fn who_is_not_listed_is_refused_root_too_and_who_serves_anothers_name_is_found_out() {
    let Some(users) = Users::new() else { return };
    let mut owner = start_owner(&users);
    owner.expect("ready");
    // This process is root's: every folder and socket lets it pass.
    let config = DomainConfig { root: Some(users.root()), name: "e2e".into() };
    let domain = Domain::open_foreign(&config, OWNER).unwrap();
    let refused = domain.connect("notes", b"", &[]).unwrap_err().to_string();
    assert!(refused.contains("uid 0 is not on the offer's list"), "{refused}");
    let wrong = Domain::open_foreign(&config, ALLOWED).unwrap_err().to_string();
    assert!(wrong.contains(&format!("belongs to uid {OWNER}, expected {ALLOWED}")), "{wrong}");
    // Other users pass through the folders, and may neither list them nor make anything in them.
    for folder in [users.root(), users.root().join("e2e")] {
        let folder = std::fs::metadata(folder).unwrap();
        assert_eq!((folder.uid(), folder.permissions().mode() & 0o777), (OWNER, 0o711));
    }
    // A name in the owner's folder that a process of somebody else serves.
    let path = users.root().join("e2e").join("squat.sock");
    let listener = rustix::net::socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    rustix::net::bind(&listener, &SocketAddrUnix::new(&path).unwrap()).unwrap();
    rustix::net::listen(&listener, 1).unwrap();
    let impostor = domain.connect("squat", b"", &[]).unwrap_err();
    assert!(matches!(impostor, ConnectError::Impostor { found: 0, expected: OWNER, .. }), "{impostor}");
    owner.end();
}

//! Who owns a name, and who is let in, where the numbers of processes and users differ between containers.

use std::os::unix::fs::PermissionsExt;

use crate::host::{HERE, Host, Place, Process, THERE, User};

/// The uid by which the kernel shows every user that a user namespace does not map.
const OVERFLOW_UID: &str = "65534";
/// A container of a user who does not own the shared folder.
const OTHER: Place = Place { user: User::Other, inside_uid: 0, seen_at: "/other" };
/// A container in which the owner has the overflow uid, as `nobody` of an image has.
const NOBODY: Place = Place { user: User::Owner, inside_uid: 65_534, seen_at: "/nobody" };

pub fn name_has_one_owner_and_is_free_after_its_death(host: &Host) {
    let offer = |place| host.container(place, &["offers", "window"]);
    let mut first = offer(HERE);
    first.expect("offered");
    let mut second = offer(THERE);
    let taken = second.expect("not offered: ");
    assert_eq!(taken, "cannot offer window `window`: a process that is not visible here offers it already");
    second.end();
    first.kill();
    let mut third = offer(THERE);
    third.expect("offered");
    third.end();
}

/// A domain that no other run of this test has: the machine's network namespace is everybody's.
fn own_domain() -> String {
    format!("containers-{}", std::process::id())
}

pub fn network_namespaces_of_two_containers_are_two_domains(host: &Host) {
    let domain = own_domain();
    let role = ["offers-in-namespace", &domain, "window"];
    let offer = |place| host.container(place, &role);
    let mut here = offer(HERE);
    here.expect("offered");
    let mut there = offer(THERE);
    there.expect("offered");
    let mut outside = host.plain(User::Owner, &role);
    outside.expect("offered");
    [here, there, outside].into_iter().for_each(Process::end);
}

pub fn user_with_the_overflow_uid_has_no_domain_in_a_network_namespace(host: &Host) {
    let mut nobody = host.container(NOBODY, &["offers-in-namespace", &own_domain(), "window"]);
    let refused = nobody.expect("not opened: ");
    assert!(refused.contains("stands for every user that this user namespace does not map"), "{refused}");
    nobody.end();
}

pub fn user_with_the_overflow_uid_uses_its_own_folder(host: &Host) {
    for sender_at in [NOBODY, HERE] {
        let mut receiver = host.container(NOBODY, &["receives", "window", "in-epoll"]);
        receiver.expect("waiting");
        let mut sender = host.container(sender_at, &["sends", "window"]);
        sender.expect("ready");
        sender.tell("7");
        receiver.expect("got 7");
        receiver.expect("waiting");
        sender.end();
        receiver.expect("end: ");
        receiver.end();
    }
}

pub fn container_of_another_user_is_refused(host: &Host) {
    let mut owner = host.container(HERE, &["offers", "window"]);
    owner.expect("offered");
    let mut other = host.container(OTHER, &["opens", "own"]);
    let refused = other.expect("not opened: ");
    assert!(
        refused.contains("the folder /other belongs to a user whom this user namespace does not map")
            && refused.contains("give this container the same user mapping"),
        "{refused}"
    );
    other.end();
    // In no container the owner has a number, which is said.
    let mut other = host.plain(User::Other, &["opens", "own"]);
    let refused = other.expect("not opened: ");
    let owners = format!("belongs to uid {}, expected {}", host.uid(User::Owner), host.uid(User::Other));
    assert!(refused.contains(&owners), "{refused}");
    other.end();
    let (status, _, err) = host.beeline(OTHER, "kv get key");
    assert!(!status.success() && err.contains("does not map"), "{err}");
    owner.end();
}

pub fn list_with_the_overflow_uid_lets_nobody_in(host: &Host) {
    let mut owner = host.container(HERE, &["offers", "window", OVERFLOW_UID]);
    owner.expect("offered");
    // Seen by the owner as the overflow uid, which is on the list; outside of containers the folder's owner has a number.
    let owner_uid = host.uid(User::Owner).to_string();
    let mut other = host.plain(User::Other, &["opens", "of", &owner_uid, "window"]);
    let refused = other.expect("not let in: ");
    assert!(refused.contains("the user namespace of the offer's owner does not map your user"), "{refused}");
    other.end();
    // Seen from a container, the owner has none, and cannot be asked for by the number that stands for all.
    let mut other = host.container(OTHER, &["opens", "of", OVERFLOW_UID, "window"]);
    let refused = other.expect("not opened: ");
    assert!(refused.contains("does not map"), "{refused}");
    other.end();
    // The owner's own processes need no list.
    let mut own = host.container(THERE, &["sends", "window"]);
    own.expect("ready");
    own.end();
    owner.end();
}

pub fn folder_of_another_user_is_not_taken_for_ones_own(host: &Host) {
    host.give_share(User::Other);
    std::fs::set_permissions(host.share(), PermissionsExt::from_mode(0o755)).unwrap();
    // Of a user that is not mapped, the folder shows the very uid that this process has.
    let mut nobody = host.container(NOBODY, &["opens", "own"]);
    let refused = nobody.expect("not opened: ");
    assert!(refused.contains("belongs to a user whom this user namespace does not map"), "{refused}");
    nobody.end();
}

//! Two containers that share a folder and nothing else: what a domain does between them is what it does on one machine.
//!
//! Each process of these tests has user, pid, ipc, mount, network and host name namespaces of its own, made without a
//! privilege, a root of its own, and the shared folder under a path of its own. Where the test is root it becomes an ordinary
//! user first, and starts processes of a second user, who must be kept out.
//!
//! A machine may forbid such namespaces (a sysctl, a security module, a container around the test). Then nothing can be
//! tested here, and the program says SKIPPED and which step was refused. It has no test harness but its own, because it must
//! say so even though it succeeds, and because only a process of one thread can leave its user namespace.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod access;
mod enter;
mod host;
mod messages;
mod notifications;
mod payload;
mod programs;
mod roles;

use std::panic::catch_unwind;
use std::process::ExitCode;
use std::time::Instant;

use host::Host;

/// A test, and whether it needs a second user.
struct Test {
    name: &'static str,
    needs_other_user: bool,
    run: fn(&Host),
}

const fn test(name: &'static str, run: fn(&Host)) -> Test {
    Test { name, needs_other_user: false, run }
}

const fn test_of_two_users(name: &'static str, run: fn(&Host)) -> Test {
    Test { name, needs_other_user: true, run }
}

const TESTS: [Test; 16] = [
    test("windows_carry_every_byte_both_ways", messages::windows_carry_every_byte_both_ways),
    test("calls_are_answered_byte_for_byte", messages::calls_are_answered_byte_for_byte),
    test("sleeping_receiver_is_woken_by_each_message", messages::sleeping_receiver_is_woken_by_each_message),
    test(
        "killed_sender_wakes_its_receiver_which_is_told",
        messages::killed_sender_wakes_its_receiver_which_is_told,
    ),
    test(
        "killed_receiver_wakes_its_sender_which_is_told",
        messages::killed_receiver_wakes_its_sender_which_is_told,
    ),
    test(
        "notifications_come_from_another_container_and_end_with_its_death",
        messages::notifications_come_from_another_container_and_end_with_its_death,
    ),
    test(
        "network_namespaces_of_two_containers_are_two_domains",
        access::network_namespaces_of_two_containers_are_two_domains,
    ),
    test(
        "user_with_the_overflow_uid_has_no_domain_in_a_network_namespace",
        access::user_with_the_overflow_uid_has_no_domain_in_a_network_namespace,
    ),
    test("killed_server_ends_an_outstanding_call", messages::killed_server_ends_an_outstanding_call),
    test(
        "name_has_one_owner_and_is_free_after_its_death",
        access::name_has_one_owner_and_is_free_after_its_death,
    ),
    test(
        "user_with_the_overflow_uid_uses_its_own_folder",
        access::user_with_the_overflow_uid_uses_its_own_folder,
    ),
    test(
        "programs_serve_other_containers_and_the_machine",
        programs::programs_serve_other_containers_and_the_machine,
    ),
    test("nic_answers_pings_of_another_container", programs::nic_answers_pings_of_another_container),
    test_of_two_users("container_of_another_user_is_refused", access::container_of_another_user_is_refused),
    test_of_two_users(
        "list_with_the_overflow_uid_lets_nobody_in",
        access::list_with_the_overflow_uid_lets_nobody_in,
    ),
    test_of_two_users(
        "folder_of_another_user_is_not_taken_for_ones_own",
        access::folder_of_another_user_is_not_taken_for_ones_own,
    ),
];

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.split_first() {
        Some((first, rest)) if first == enter::CONTAINER => enter::enter(rest),
        Some((first, rest)) if first == enter::PLAIN => {
            enter::end_with_parent();
            roles::play(rest[0].as_ref(), &rest[1..])
        }
        _ if args.iter().any(|arg| arg == "--list") => {
            TESTS.iter().for_each(|test| println!("{}: test", test.name));
            ExitCode::SUCCESS
        }
        _ => run_tests(&args),
    }
}

/// Runs the tests whose names have one of the arguments in them, and reports as Rust's test harness does.
fn run_tests(args: &[String]) -> ExitCode {
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let is_wanted =
        |test: &&Test| filters.is_empty() || filters.iter().any(|filter| test.name.contains(*filter));
    let tests: Vec<&Test> = TESTS.iter().filter(is_wanted).collect();
    println!("running {} tests", tests.len());
    let (host, begun) = (Host::new(), Instant::now());
    let (mut passed, mut failed, mut skipped) = (0, 0, 0);
    let refusal = host.refusal();
    for test in tests {
        let obstacle = match &refusal {
            Some(_) => Some("no containers here"),
            None if test.needs_other_user && !host.has_other_user() => Some("only root can be another user"),
            None => None,
        };
        if let Some(obstacle) = obstacle {
            skipped += 1;
            println!("test {} ... ignored, {obstacle}", test.name);
            continue;
        }
        host.new_share();
        let begun = Instant::now();
        let is_good = catch_unwind(std::panic::AssertUnwindSafe(|| (test.run)(&host))).is_ok();
        *(if is_good { &mut passed } else { &mut failed }) += 1;
        let seconds = begun.elapsed().as_secs_f64();
        let result = if is_good { format!("ok ({seconds:.1} s)") } else { "FAILED".to_owned() };
        println!("test {} ... {result}", test.name);
    }
    if let Some(step) = refusal {
        println!(
            "\n  SKIPPED: a domain between containers was not tested, because this machine does not allow it:\n  {step}\n  \
             Where that is a namespace or a mount, see user.max_user_namespaces and \
             kernel.apparmor_restrict_unprivileged_userns (sysctl), and what is around this test."
        );
    } else if skipped > 0 {
        println!(
            "\n  SKIPPED: {skipped} tests of another user's containers, because this process is not root."
        );
    }
    let result = if failed == 0 { "ok" } else { "FAILED" };
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "\ntest result: {result}. {passed} passed; {failed} failed; {skipped} ignored; finished in {seconds:.2}s"
    );
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

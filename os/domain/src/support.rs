//! What this machine gives a domain, in words.

use std::fmt;

use beeline_mmio::membarrier;

use crate::evidence::{peer_pidfd_is_supported, pidfd_is_supported};

/// One thing a domain needs from the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub what: &'static str,
    pub is_there: bool,
    /// Consequence of the finding, in a sentence.
    pub meaning: &'static str,
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = if self.is_there { "yes" } else { "no" };
        write!(out, "{}: {mark}; {}", self.what, self.meaning)
    }
}

/// Looks at what this machine gives a domain. It registers this process for membarriers, as opening a domain does.
pub fn findings() -> Vec<Finding> {
    let membarrier = membarrier::register().is_ok() && membarrier::global_expedited().is_ok();
    findings_for(
        membarrier,
        pidfd_is_supported(),
        peer_pidfd_is_supported(),
        own_descriptors_have_paths(),
        beeline_tcp::is_supported(),
    )
}

/// Whether `/proc/self/fd` leads to open files, which is how sockets are reached through the checked folder.
fn own_descriptors_have_paths() -> bool {
    rustix::fs::open("/", rustix::fs::OFlags::PATH | rustix::fs::OFlags::CLOEXEC, rustix::fs::Mode::empty())
        .is_ok_and(|root| {
            use std::os::fd::AsRawFd;
            std::fs::metadata(format!("/proc/self/fd/{}/.", root.as_raw_fd())).is_ok()
        })
}

fn findings_for(
    membarrier: bool,
    pidfd: bool,
    peer_pidfd: bool,
    proc_paths: bool,
    sock_diag: bool,
) -> Vec<Finding> {
    let finding =
        |what, is_there, good, bad| Finding { what, is_there, meaning: if is_there { good } else { bad } };
    vec![
        finding(
            "membarrier (global expedited)",
            membarrier,
            "senders do not fence; whoever sleeps pays",
            "every message to or from this process is fenced, which costs senders up to a factor of ten or more; \
             Linux 4.16 has it, a seccomp filter may forbid it",
        ),
        finding(
            "pidfd",
            pidfd,
            "a peer's death is seen as soon as the kernel knows it",
            "domains do not work here; Linux 5.3 has it, a seccomp filter may forbid it",
        ),
        finding(
            "pidfd of a socket's peer",
            peer_pidfd,
            "peers are identified by the kernel, in any pid namespace",
            "peers are identified by process id and start time, and only in this pid namespace; Linux 6.5 has it",
        ),
        finding(
            "paths under /proc/self/fd",
            proc_paths,
            "sockets are reached through the checked folder",
            "domains do not work here; mount /proc",
        ),
        finding(
            "socket lists by netlink (sock_diag)",
            sock_diag,
            "the user at the other end of a TCP connection is asked for at once",
            "the user at the other end of a TCP connection is looked for in /proc, which takes longer the more connections there are",
        ),
    ]
}

#[cfg(test)]
#[cfg(not(loom))]
mod tests {
    use super::*;

    #[test]
    fn every_finding_has_words_for_both_outcomes() {
        let all = |is_there: bool| findings_for(is_there, is_there, is_there, is_there, is_there);
        for (good, bad) in all(true).into_iter().zip(all(false)) {
            assert_eq!(good.what, bad.what);
            assert_ne!(good.meaning, bad.meaning);
            assert!(good.to_string().contains("yes;") && bad.to_string().contains("no;"));
        }
    }

    #[test]
    fn this_machine_can_run_the_other_tests() {
        for finding in findings().into_iter().filter(|f| {
            !["pidfd of a socket's peer", "socket lists by netlink (sock_diag)"].contains(&f.what)
        }) {
            assert!(finding.is_there, "{finding}");
        }
    }
}

//! What the kernel's answers go through first, reachable for the fuzz targets alone (`fuzz/`).

use crate::{proc_net, sock_diag};

/// Whether a socket is read out of an answer of the kernel's socket list.
pub fn socket_answer(bytes: &[u8]) -> bool {
    sock_diag::answer(bytes).is_ok_and(|found| found.is_some())
}

/// Whether a socket is read out of a line of `/proc/net/tcp` or `tcp6`.
pub fn socket_line(line: &str) -> bool {
    proc_net::line(line).is_some()
}

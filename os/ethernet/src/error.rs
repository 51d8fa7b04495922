//! Why an up-link cannot go on: what, where, and what to do.

use std::io;
use std::path::PathBuf;

#[cfg(target_os = "linux")]
use beeline_mmio::XskError;

/// Why an up-link failed. Names the file or interface, the place in it, and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum UplinkError {
    /// A capture cannot be opened.
    #[error("cannot open capture {}: {error}; check the path and that you may read it", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        error: io::Error,
    },
    /// Reading failed in the middle.
    #[error("reading capture {} failed at byte {offset_bytes}: {error}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Offset of the record that could not be read.
        offset_bytes: u64,
        error: io::Error,
    },
    #[error(
        "{} is not a capture: it begins with {found:02x?}, neither pcap nor pcapng; \
         convert it with `editcap -F pcap` or capture with `tcpdump -w`", path.display()
    )]
    NotCapture {
        /// The file.
        path: PathBuf,
        /// First bytes of the file.
        found: Vec<u8>,
    },
    /// The file ends inside a record.
    #[error(
        "{} is cut short: it ends inside the record that begins at byte {offset_bytes}; copy it again, or drop the \
         last record with `editcap`", path.display()
    )]
    Truncated {
        /// The file.
        path: PathBuf,
        /// Where the unfinished record begins.
        offset_bytes: u64,
    },
    /// A record makes no sense.
    #[error(
        "{} is damaged: the record that begins at byte {offset_bytes} {reason}; repair it with `pcapfix` or capture \
         again", path.display()
    )]
    Malformed {
        /// The file.
        path: PathBuf,
        /// Where the record begins.
        offset_bytes: u64,
        reason: String,
    },
    /// The frames are not Ethernet.
    #[error(
        "{} holds frames of link type {found} (record at byte {offset_bytes}), a Beeline NIC carries Ethernet (1); \
         capture on an Ethernet interface", path.display()
    )]
    LinkType {
        /// The file.
        path: PathBuf,
        /// Where the record or header begins that says so.
        offset_bytes: u64,
        /// The link type found.
        found: u32,
    },
    /// A capture cannot be written.
    #[error("cannot write capture {}: {error}; check the path, your permission and the space left", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        error: io::Error,
    },
    /// A TAP interface cannot be had.
    #[error("cannot open TAP interface {name} through /dev/net/tun: {error}; {remedy}")]
    TapOpen {
        /// The interface asked for.
        name: String,
        error: io::Error,
        remedy: &'static str,
    },
    /// A TAP interface stopped working.
    #[error("TAP interface {name} failed: {error}; check that it still exists with `ip link show {name}`")]
    Tap {
        /// The interface.
        name: String,
        error: io::Error,
    },
    /// A TUN interface cannot be had.
    #[error("cannot open TUN interface {name} through /dev/net/tun: {error}; {remedy}")]
    TunOpen {
        /// The interface asked for.
        name: String,
        error: io::Error,
        remedy: &'static str,
    },
    /// A TUN interface stopped working.
    #[error("TUN interface {name} failed: {error}; check that it still exists with `ip link show {name}`")]
    Tun {
        /// The interface.
        name: String,
        error: io::Error,
    },
    /// There is no such interface.
    #[error("there is no interface `{name}` in this network namespace: {error}; see `ip link`")]
    NoInterface {
        /// The interface asked for.
        name: String,
        error: io::Error,
    },
    /// A network namespace cannot be entered.
    #[error("cannot use network namespace `{name}`: cannot {step}: {error}; {remedy}")]
    Namespace {
        /// The namespace asked for.
        name: String,
        step: &'static str,
        error: io::Error,
        remedy: &'static str,
    },
    /// A socket cannot be opened.
    #[error("cannot open an {socket}: cannot {step}: {error}; {remedy}")]
    SocketOpen {
        /// The kind of socket, and where: `AF_XDP socket on eth0, queue 0`.
        socket: String,
        step: &'static str,
        error: io::Error,
        remedy: String,
    },
    /// A driver does not let its memory be shared.
    #[error(
        "n/a: driver {driver} of {interface} offers no zero-copy AF_XDP on queue {queue} ({error}); choose the mode \
         copy, or auto"
    )]
    NoZeroCopy { interface: String, driver: String, queue: u32, error: io::Error },
    /// The memory of an AF_XDP socket cannot be set up.
    #[cfg(target_os = "linux")]
    #[error("cannot open an {socket}: {error}; {remedy}")]
    RingsOpen {
        /// Where: `AF_XDP socket on eth0, queue 0`.
        socket: String,
        error: XskError,
        remedy: &'static str,
    },
    /// The kernel refused the program that steers frames.
    #[error(
        "cannot open an {socket}: the kernel refused the program that steers frames to it: {error}; {remedy}{}",
        if words.is_empty() { String::new() } else { format!("; it said: {words}") }
    )]
    Program {
        /// Where: `AF_XDP socket on eth0, queue 0`.
        socket: String,
        error: io::Error,
        /// What the verifier said; empty when it was not asked.
        words: String,
        remedy: &'static str,
    },
    /// A socket stopped working.
    #[error(
        "{name} cannot {step}: {error}; check that the interface still exists with `ip link show {interface}`"
    )]
    Socket {
        /// The up-link.
        name: String,
        interface: String,
        step: &'static str,
        error: io::Error,
    },
    /// The rings of an AF_XDP socket hold what cannot be.
    #[cfg(target_os = "linux")]
    #[error("{name} failed: {error}")]
    Rings {
        /// The up-link.
        name: String,
        error: XskError,
    },
    /// A frame was sent to an up-link that takes none.
    #[error("{name} takes no frames; it only gives them")]
    TakesNone {
        /// The up-link.
        name: String,
    },
}

#[cfg(test)]
mod tests {
    use std::error::Error as _;

    use super::*;

    #[test]
    fn chain_of_an_error_has_each_reason_once() {
        let (path, name) = (PathBuf::from("/x.pcap"), || "eth0".to_owned());
        let reason = || io::Error::from_raw_os_error(13);
        let errors = [
            UplinkError::Open { path: path.clone(), error: reason() },
            UplinkError::Read { path: path.clone(), offset_bytes: 24, error: reason() },
            UplinkError::Write { path, error: reason() },
            UplinkError::TapOpen { name: name(), error: reason(), remedy: "run as root" },
            UplinkError::Tap { name: name(), error: reason() },
            UplinkError::TunOpen { name: name(), error: reason(), remedy: "run as root" },
            UplinkError::Tun { name: name(), error: reason() },
            UplinkError::NoInterface { name: name(), error: reason() },
            UplinkError::Namespace { name: name(), step: "enter it", error: reason(), remedy: "run as root" },
            UplinkError::SocketOpen { socket: name(), step: "bind it", error: reason(), remedy: name() },
            UplinkError::NoZeroCopy { interface: name(), driver: name(), queue: 0, error: reason() },
            UplinkError::Program { socket: name(), error: reason(), words: name(), remedy: "run as root" },
            UplinkError::Socket { name: name(), interface: name(), step: "send", error: reason() },
        ];
        for error in errors {
            assert!(error.to_string().contains(&reason().to_string()), "{error}");
            assert!(error.source().is_none(), "{error}: a printer of chains would print its reason twice");
        }
    }
}

//! Why an up-link cannot go on: what, where, and what to do.

use std::io;
use std::path::PathBuf;

#[cfg(target_os = "linux")]
use beeline_mmio::XskError;

/// Why an up-link failed. Names the file or interface, the place in it, and the remedy.
#[derive(Debug, thiserror::Error)]
pub enum UplinkError {
    /// A capture cannot be opened.
    #[error("cannot open capture {}: {source}; check the path and that you may read it", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        source: io::Error,
    },
    /// Reading failed in the middle.
    #[error("reading capture {} failed at byte {offset_bytes}: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Offset of the record that could not be read.
        offset_bytes: u64,
        source: io::Error,
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
    #[error("cannot write capture {}: {source}; check the path, your permission and the space left", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        source: io::Error,
    },
    /// A TAP interface cannot be had.
    #[error("cannot open TAP interface {name} through /dev/net/tun: {source}; {remedy}")]
    TapOpen {
        /// The interface asked for.
        name: String,
        source: io::Error,
        remedy: &'static str,
    },
    /// A TAP interface stopped working.
    #[error("TAP interface {name} failed: {source}; check that it still exists with `ip link show {name}`")]
    Tap {
        /// The interface.
        name: String,
        source: io::Error,
    },
    /// There is no such interface.
    #[error("there is no interface `{name}` in this network namespace: {source}; see `ip link`")]
    NoInterface {
        /// The interface asked for.
        name: String,
        source: io::Error,
    },
    /// A network namespace cannot be entered.
    #[error("cannot use network namespace `{name}`: cannot {step}: {source}; {remedy}")]
    Namespace {
        /// The namespace asked for.
        name: String,
        step: &'static str,
        source: io::Error,
        remedy: &'static str,
    },
    /// A socket cannot be opened.
    #[error("cannot open an {socket}: cannot {step}: {source}; {remedy}")]
    SocketOpen {
        /// The kind of socket, and where: `AF_XDP socket on eth0, queue 0`.
        socket: String,
        step: &'static str,
        source: io::Error,
        remedy: String,
    },
    /// A driver does not let its memory be shared.
    #[error(
        "n/a: driver {driver} of {interface} offers no zero-copy AF_XDP on queue {queue} ({source}); choose the mode \
         copy, or auto"
    )]
    NoZeroCopy { interface: String, driver: String, queue: u32, source: io::Error },
    /// The memory of an AF_XDP socket cannot be set up.
    #[cfg(target_os = "linux")]
    #[error("cannot open an {socket}: {source}; {remedy}")]
    RingsOpen {
        /// Where: `AF_XDP socket on eth0, queue 0`.
        socket: String,
        source: XskError,
        remedy: &'static str,
    },
    /// The kernel refused the program that steers frames.
    #[error(
        "cannot open an {socket}: the kernel refused the program that steers frames to it: {source}; {remedy}{}",
        if words.is_empty() { String::new() } else { format!("; it said: {words}") }
    )]
    Program {
        /// Where: `AF_XDP socket on eth0, queue 0`.
        socket: String,
        source: io::Error,
        /// What the verifier said; empty when it was not asked.
        words: String,
        remedy: &'static str,
    },
    /// A socket stopped working.
    #[error(
        "{name} cannot {step}: {source}; check that the interface still exists with `ip link show {interface}`"
    )]
    Socket {
        /// The up-link.
        name: String,
        interface: String,
        step: &'static str,
        source: io::Error,
    },
    /// The rings of an AF_XDP socket hold what cannot be.
    #[cfg(target_os = "linux")]
    #[error("{name} failed: {source}")]
    Rings {
        /// The up-link.
        name: String,
        source: XskError,
    },
    /// A frame was sent to an up-link that takes none.
    #[error("{name} takes no frames; it only gives them")]
    TakesNone {
        /// The up-link.
        name: String,
    },
}

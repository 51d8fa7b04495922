//! From an interface's name to a socket that frames are steered to, and what to do where that fails.
//!
//! The program is attached before the socket is bound, as drivers expect it; with no socket in its map it passes every
//! frame on, so that the interface goes on working meanwhile. Everything is undone by dropping it.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, Instant};

use beeline_ethernet_sys::{AttachMode, IntOption, SocketMap, XdpLink, XdpProgram, make_promiscuous, set};
use beeline_mmio::{XskError, XskRings, XskStep};
use rustix::io::Errno;
use rustix::net::sockopt::xdp_options;
use rustix::net::xdp::{SocketAddrXdp, SocketAddrXdpFlags, XdpOptionsFlags};
use rustix::net::{AddressFamily, SocketFlags, SocketType, bind, socket_with};

use super::{AfXdpConfig, BusyPoll, XdpAttach, XdpCopy};
use crate::UplinkError;
use crate::net_interface::NetInterface;
use crate::redirect;

const NEEDS_RAW: &str = "it needs CAP_NET_RAW: run as root, or once `sudo setcap \
                         cap_net_raw,cap_net_admin,cap_bpf+ep` on the program";
const NEEDS_BPF: &str = "it needs CAP_BPF and CAP_NET_ADMIN: run as root, or once `sudo setcap \
                         cap_net_raw,cap_net_admin,cap_bpf+ep` on the program";
const NO_AF_XDP: &str = "the kernel has no AF_XDP (CONFIG_XDP_SOCKETS); use af-packet";
const PINNED: &str = "raise the limit of locked memory with `ulimit -l <KiB>` or `memlock` in \
                      /etc/security/limits.conf, give the program CAP_IPC_LOCK, or take fewer frames";
const TAKEN: &str = "another socket has the queue: end its program, or choose another queue";
const NO_QUEUE: &str = "the interface may have no such queue: see `ethtool -l NAME`";
const ATTACHED: &str = "another XDP program is attached: see `ip link show`, take it off with `ip link set dev NAME \
                        xdp off`, or end the program that holds it";
const NOT_NATIVE: &str = "the driver runs no XDP program here, or frames may be too long for it: lower the MTU of \
                          the interface, or choose the attachment generic, or auto";
const OTHER: &str = "see `ip link` and the kernel log";

/// How long an interface or a queue that another socket has is asked for again. The kernel gives the queue of a closed
/// socket back only some milliseconds after the close, and a child between fork and exec keeps both a little longer.
const RELEASE_LIMIT: Duration = Duration::from_millis(500);
/// Pause between two tries.
const RELEASE_STEP: Duration = Duration::from_millis(5);

/// Everything that is open.
pub(super) struct Opened {
    /// Before the socket, so that frames stop coming first.
    pub(super) steering: Steering,
    pub(super) socket: OwnedFd,
    pub(super) rings: XskRings,
    pub(super) is_zero_copy: bool,
    pub(super) is_native: bool,
}

/// What keeps frames coming as long as it is open.
pub(super) struct Steering {
    _link: XdpLink,
    _map: SocketMap,
    _membership: Option<OwnedFd>,
}

/// Opens a socket on an interface.
pub(super) fn open(config: &AfXdpConfig, interface: &NetInterface) -> Result<Opened, UplinkError> {
    let failed = |step, error| refused(config, step, error);
    let Prepared { socket, rings, map, program } = prepare(config)?;
    let (link, is_native) =
        attach(&program, interface, config.attach).map_err(|error| failed(ATTACH, error))?;
    bind_to_queue(&socket, config, interface)?;
    map.set(config.queue, &socket).map_err(|error| failed(STEER, error))?;
    let membership = config.is_promiscuous.then(|| membership(interface.index)).transpose();
    let membership = membership.map_err(|error| failed("receive frames to any station", error))?;
    let is_zero_copy =
        xdp_options(&socket).is_ok_and(|options| options.contains(XdpOptionsFlags::XDP_OPTIONS_ZEROCOPY));
    let steering = Steering { _link: link, _map: map, _membership: membership };
    Ok(Opened { steering, socket, rings, is_zero_copy, is_native })
}

/// What can be had without touching an interface.
pub(super) struct Prepared {
    socket: OwnedFd,
    rings: XskRings,
    map: SocketMap,
    program: XdpProgram,
}

/// Makes the socket, its memory, and the program with an empty map.
pub(super) fn prepare(config: &AfXdpConfig) -> Result<Prepared, UplinkError> {
    let failed = |step, error| refused(config, step, error);
    let socket = socket_with(AddressFamily::XDP, SocketType::RAW, SocketFlags::CLOEXEC, None)
        .map_err(|error| failed(MAKE, error))?;
    let rings = XskRings::map(&socket, config.sizes).map_err(|error| UplinkError::RingsOpen {
        socket: socket_name(config),
        remedy: memory_remedy(&error),
        error,
    })?;
    if let Some(busy_poll) = config.busy_poll {
        set_busy_poll(&socket, busy_poll).map_err(|error| failed("poll the device", error))?;
    }
    let map = SocketMap::new(config.queue.saturating_add(1)).map_err(|error| failed(STEER, error))?;
    let code = redirect::program(config.ether_type, map.as_fd().as_raw_fd());
    let program =
        XdpProgram::load(&code, "beeline_steer").map_err(|(error, words)| UplinkError::Program {
            socket: socket_name(config),
            error: error.into(),
            words,
            remedy: if error == Errno::PERM { NEEDS_BPF } else { OTHER },
        })?;
    Ok(Prepared { socket, rings, map, program })
}

fn socket_name(config: &AfXdpConfig) -> String {
    format!("AF_XDP socket on {}, queue {}", config.interface, config.queue)
}

#[cold]
fn refused(config: &AfXdpConfig, step: &'static str, error: Errno) -> UplinkError {
    let remedy = remedy(step, error).replace("NAME", &config.interface);
    UplinkError::SocketOpen { socket: socket_name(config), step, remedy, error: error.into() }
}

fn set_busy_poll(socket: &OwnedFd, busy_poll: BusyPoll) -> Result<(), Errno> {
    set(socket, IntOption::PreferBusyPoll, 1)?;
    set(socket, IntOption::BusyPollMicroseconds, busy_poll.microseconds.into())?;
    set(socket, IntOption::BusyPollBudget, busy_poll.budget.into())
}

/// Attaches the program; whether in the driver.
fn attach(
    program: &XdpProgram,
    interface: &NetInterface,
    wanted: XdpAttach,
) -> Result<(XdpLink, bool), Errno> {
    let is_faster_after = wanted == XdpAttach::Auto && interface.driver == "veth";
    if wanted != XdpAttach::Generic && !is_faster_after {
        match when_released(|| XdpLink::attach(program, interface.index, AttachMode::Native)) {
            Ok(link) => return Ok((link, true)),
            Err(error) if wanted == XdpAttach::Native => return Err(error),
            Err(error) => tracing::info!(
                "driver {} of {} runs no XDP program ({error}); frames are steered after it",
                interface.driver,
                interface.name
            ),
        }
    }
    let link = when_released(|| XdpLink::attach(program, interface.index, AttachMode::Generic))?;
    Ok((link, false))
}

/// Does what somebody else may be in the way of, again while it may be somebody who is just going.
fn when_released<T>(attempt: impl Fn() -> Result<T, Errno>) -> Result<T, Errno> {
    let began = Instant::now();
    loop {
        match attempt() {
            Err(Errno::BUSY | Errno::EXIST) if began.elapsed() < RELEASE_LIMIT => {
                std::thread::sleep(RELEASE_STEP);
            }
            other => return other,
        }
    }
}

fn bind_to_queue(
    socket: &OwnedFd,
    config: &AfXdpConfig,
    interface: &NetInterface,
) -> Result<(), UplinkError> {
    let mut flags = SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
    match config.copy {
        XdpCopy::Copy => flags |= SocketAddrXdpFlags::XDP_COPY,
        XdpCopy::ZeroCopy => flags |= SocketAddrXdpFlags::XDP_ZEROCOPY,
        XdpCopy::Auto => {}
    }
    let address = SocketAddrXdp::new(flags, interface.index, config.queue);
    when_released(|| bind(socket, &address)).map_err(|error| match error {
        Errno::OPNOTSUPP if config.copy == XdpCopy::ZeroCopy => UplinkError::NoZeroCopy {
            interface: interface.name.clone(),
            driver: interface.driver.clone(),
            queue: config.queue,
            error: error.into(),
        },
        _ => refused(config, BIND, error),
    })
}

/// A socket that receives nothing and keeps the interface promiscuous.
fn membership(interface_index: u32) -> Result<OwnedFd, Errno> {
    let socket = socket_with(AddressFamily::PACKET, SocketType::RAW, SocketFlags::CLOEXEC, None)?;
    make_promiscuous(&socket, interface_index)?;
    Ok(socket)
}

const MAKE: &str = "make it";
const BIND: &str = "bind it to the queue";
const STEER: &str = "steer frames to it";
const ATTACH: &str = "attach the program that steers frames to it";

fn remedy(step: &'static str, error: Errno) -> &'static str {
    match (step, error) {
        (MAKE, Errno::PERM | Errno::ACCESS) => NEEDS_RAW,
        (_, Errno::PERM | Errno::ACCESS) => NEEDS_BPF,
        (MAKE, Errno::AFNOSUPPORT) | (STEER, Errno::INVAL) => NO_AF_XDP,
        (BIND, Errno::BUSY) => TAKEN,
        (BIND, Errno::INVAL) => NO_QUEUE,
        (ATTACH, Errno::BUSY | Errno::EXIST) => ATTACHED,
        (ATTACH, Errno::OPNOTSUPP | Errno::RANGE | Errno::INVAL) => NOT_NATIVE,
        (_, Errno::NOBUFS | Errno::NOMEM) => PINNED,
        _ => OTHER,
    }
}

fn memory_remedy(error: &XskError) -> &'static str {
    match error {
        XskError::Setup { step: XskStep::Register, errno: Errno::NOBUFS | Errno::NOMEM, .. } => PINNED,
        XskError::Sizes { .. } => "choose other sizes",
        _ => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_failure_that_people_meet_has_its_own_remedy() {
        for (step, error, word) in [
            (MAKE, Errno::PERM, "CAP_NET_RAW"),
            (MAKE, Errno::AFNOSUPPORT, "CONFIG_XDP_SOCKETS"),
            (STEER, Errno::PERM, "CAP_BPF"),
            (ATTACH, Errno::BUSY, "xdp off"),
            (ATTACH, Errno::RANGE, "MTU"),
            (BIND, Errno::BUSY, "another queue"),
            (BIND, Errno::INVAL, "ethtool -l"),
        ] {
            assert!(remedy(step, error).contains(word), "{step} {error}: {}", remedy(step, error));
        }
        let config = AfXdpConfig { queue: 3, ..AfXdpConfig::new("eth0") };
        let text = refused(&config, ATTACH, Errno::BUSY).to_string();
        assert!(text.contains("ip link set dev eth0 xdp off"), "{text}");
        let error = XskError::Setup { step: XskStep::Register, bytes: 1 << 20, errno: Errno::NOBUFS };
        let remedy = memory_remedy(&error);
        let text = UplinkError::RingsOpen { socket: socket_name(&config), error, remedy }.to_string();
        assert!(text.contains("eth0, queue 3") && text.contains("1048576 bytes"), "{text}");
        assert!(text.contains("ulimit -l"), "{text}");
    }

    #[test]
    fn zero_copy_that_a_driver_refuses_is_not_applicable() {
        let error = UplinkError::NoZeroCopy {
            interface: "eth0".into(),
            driver: "veth".into(),
            queue: 1,
            error: Errno::OPNOTSUPP.into(),
        };
        assert!(error.to_string().starts_with("n/a: driver veth of eth0"), "{error}");
    }
}

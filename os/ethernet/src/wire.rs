//! An up-link on a socket, as people write it: `af-xdp:eth0,queue=1,copy=auto`.

use std::fmt;
use std::str::FromStr;

use crate::{
    AfPacket, AfPacketConfig, AfXdp, AfXdpConfig, BusyPoll, ETHER_TYPE, Uplink, UplinkError, XdpAttach,
    XdpCopy, in_network_namespace,
};

/// Which kind of socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WireKind {
    /// AF_XDP, or opening fails.
    AfXdp,
    /// AF_PACKET, or opening fails.
    AfPacket,
    /// AF_XDP where it can be had, else AF_PACKET.
    Auto,
}

/// A socket on an interface: `KIND:INTERFACE[,OPTION=VALUE]...`, where KIND is `af-xdp`, `af-packet` or `auto`.
///
/// | option | values | for |
/// |---|---|---|
/// | `netns` | a name that `ip netns` knows | both |
/// | `type` | an EtherType, `0x88b5` unless told, or `all` | both |
/// | `promiscuous` | `yes`, `no` | both |
/// | `queue` | a number | AF_XDP |
/// | `copy` | `auto`, `copy`, `zero-copy` | AF_XDP |
/// | `attach` | `auto`, `native`, `generic` | AF_XDP |
/// | `frames` | frames that may wait in each direction, a power of two | AF_XDP |
/// | `busy-poll` | microseconds, and after a slash frames: `20/8` | AF_XDP |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WireConfig {
    /// The kind of socket.
    pub kind: WireKind,
    /// The network namespace to open it in; this thread's when it is `None`.
    pub namespace: Option<String>,
    /// What AF_XDP is told; AF_PACKET takes what concerns it from here.
    pub options: AfXdpConfig,
}

impl WireConfig {
    /// Opens the up-link, inside its namespace.
    ///
    /// # Errors
    /// As [`AfXdp::open`], [`AfPacket::open`] and [`in_network_namespace`].
    pub fn open(&self) -> Result<Box<dyn Uplink>, UplinkError> {
        match &self.namespace {
            Some(name) => in_network_namespace(name, || self.open_here())?,
            None => self.open_here(),
        }
    }

    fn open_here(&self) -> Result<Box<dyn Uplink>, UplinkError> {
        match self.kind {
            WireKind::AfXdp => Ok(Box::new(AfXdp::open(&self.options)?)),
            WireKind::AfPacket => Ok(Box::new(AfPacket::open(&self.for_packets())?)),
            WireKind::Auto => match AfXdp::open(&self.options) {
                Ok(uplink) => Ok(Box::new(uplink)),
                Err(error @ UplinkError::NoInterface { .. }) => Err(error),
                Err(error) => {
                    tracing::warn!("{error}; af-packet takes its place");
                    Ok(Box::new(AfPacket::open(&self.for_packets())?))
                }
            },
        }
    }

    /// The same, but receiving frames to other stations too: what a switch behind the up-link needs.
    pub fn promiscuous(mut self) -> Self {
        self.options.is_promiscuous = true;
        self
    }

    /// Returns the part that AF_PACKET needs.
    pub fn for_packets(&self) -> AfPacketConfig {
        AfPacketConfig {
            interface: self.options.interface.clone(),
            ether_type: self.options.ether_type,
            is_promiscuous: self.options.is_promiscuous,
        }
    }
}

/// Why a description of an up-link cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadWire {
    /// It does not begin with a kind.
    #[error(
        "`{text}` names no kind of up-link: write af-xdp:INTERFACE, af-packet:INTERFACE or auto:INTERFACE"
    )]
    Kind { text: String },
    /// The kind has no such option.
    #[error("{kind} has no option `{option}`; it has {known}")]
    Option {
        kind: WireKind,
        option: String,
        /// The options it has.
        known: &'static str,
    },
    /// An option cannot have this value.
    #[error("`{value}` is no value of {option}: {expected}")]
    Value {
        option: &'static str,
        value: String,
        /// Values that are allowed.
        expected: &'static str,
    },
}

const FOR_BOTH: &str = "netns, type, promiscuous";
const FOR_XDP: &str = "netns, type, promiscuous, queue, copy, attach, frames, busy-poll";

impl FromStr for WireConfig {
    type Err = BadWire;

    fn from_str(text: &str) -> Result<Self, BadWire> {
        let no_kind = || BadWire::Kind { text: text.to_owned() };
        let (kind, rest) = text.split_once(':').ok_or_else(no_kind)?;
        let kind = match kind {
            "af-xdp" => WireKind::AfXdp,
            "af-packet" => WireKind::AfPacket,
            "auto" => WireKind::Auto,
            _ => return Err(no_kind()),
        };
        let mut parts = rest.split(',');
        let interface = parts.next().filter(|name| !name.is_empty()).ok_or_else(no_kind)?;
        let mut wire = WireConfig { kind, namespace: None, options: AfXdpConfig::new(interface) };
        for part in parts {
            let (option, value) = part.split_once('=').unwrap_or((part, ""));
            wire.set(option, value)?;
        }
        Ok(wire)
    }
}

impl WireConfig {
    fn set(&mut self, option: &str, value: &str) -> Result<(), BadWire> {
        let bad = |option: &'static str, expected: &'static str| {
            let value = value.to_owned();
            move || BadWire::Value { option, value, expected }
        };
        let options = &mut self.options;
        match option {
            "netns" if value.is_empty() => return Err(bad("netns", "a name that `ip netns` knows")()),
            "netns" => self.namespace = Some(value.to_owned()),
            "type" => options.ether_type = ether_type(value).ok_or_else(bad("type", TYPE))?,
            "promiscuous" => {
                options.is_promiscuous = match value {
                    "yes" => true,
                    "no" => false,
                    _ => return Err(bad("promiscuous", "yes or no")()),
                }
            }
            _ if self.kind == WireKind::AfPacket => {
                return Err(BadWire::Option { kind: self.kind, option: option.to_owned(), known: FOR_BOTH });
            }
            "queue" => options.queue = value.parse().ok().ok_or_else(bad("queue", "a number"))?,
            "copy" => {
                options.copy = match value {
                    "auto" => XdpCopy::Auto,
                    "copy" => XdpCopy::Copy,
                    "zero-copy" => XdpCopy::ZeroCopy,
                    _ => return Err(bad("copy", "auto, copy or zero-copy")()),
                }
            }
            "attach" => {
                options.attach = match value {
                    "auto" => XdpAttach::Auto,
                    "native" => XdpAttach::Native,
                    "generic" => XdpAttach::Generic,
                    _ => return Err(bad("attach", "auto, native or generic")()),
                }
            }
            "frames" => {
                let frames: Option<u32> = value.parse().ok().filter(|frames: &u32| frames.is_power_of_two());
                options.sizes.receive = frames.ok_or_else(bad("frames", "a power of two"))?;
                options.sizes.transmit = options.sizes.receive;
            }
            "busy-poll" => options.busy_poll = Some(busy_poll(value).ok_or_else(bad("busy-poll", BUSY))?),
            _ => {
                return Err(BadWire::Option { kind: self.kind, option: option.to_owned(), known: FOR_XDP });
            }
        }
        Ok(())
    }
}

const TYPE: &str = "an EtherType, 0x0600 to 0xffff, or all";
const BUSY: &str = "microseconds, and after a slash the frames of one look: 20/8";

/// One type, or `all`; types below 0x600 are lengths.
fn ether_type(value: &str) -> Option<Option<u16>> {
    if value == "all" {
        return Some(None);
    }
    let number = match value.strip_prefix("0x") {
        Some(digits) => u16::from_str_radix(digits, 16).ok()?,
        None => value.parse().ok()?,
    };
    (number >= 0x600).then_some(Some(number))
}

fn busy_poll(value: &str) -> Option<BusyPoll> {
    let (microseconds, budget) = value.split_once('/').unwrap_or((value, "8"));
    let poll = BusyPoll { microseconds: microseconds.parse().ok()?, budget: budget.parse().ok()? };
    (poll.budget > 0).then_some(poll)
}

impl fmt::Display for WireKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            WireKind::AfXdp => "af-xdp",
            WireKind::AfPacket => "af-packet",
            WireKind::Auto => "auto",
        })
    }
}

impl fmt::Display for WireConfig {
    /// What people write, and every option that is not as it is unless told.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let usual = AfXdpConfig::new("");
        let options = &self.options;
        write!(out, "{}:{}", self.kind, options.interface)?;
        if let Some(namespace) = &self.namespace {
            write!(out, ",netns={namespace}")?;
        }
        match options.ether_type {
            None => out.write_str(",type=all")?,
            Some(ETHER_TYPE) => {}
            Some(other) => write!(out, ",type={other:#06x}")?,
        }
        if options.is_promiscuous {
            out.write_str(",promiscuous=yes")?;
        }
        if options.queue != 0 {
            write!(out, ",queue={}", options.queue)?;
        }
        match options.copy {
            XdpCopy::Auto => {}
            XdpCopy::Copy => out.write_str(",copy=copy")?,
            XdpCopy::ZeroCopy => out.write_str(",copy=zero-copy")?,
        }
        match options.attach {
            XdpAttach::Auto => {}
            XdpAttach::Native => out.write_str(",attach=native")?,
            XdpAttach::Generic => out.write_str(",attach=generic")?,
        }
        if options.sizes != usual.sizes {
            write!(out, ",frames={}", options.sizes.receive)?;
        }
        if let Some(BusyPoll { microseconds, budget }) = options.busy_poll {
            write!(out, ",busy-poll={microseconds}/{budget}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_what_is_printed() {
        for text in [
            "af-xdp:eth0",
            "auto:eth0,netns=blue",
            "af-packet:lo,netns=a,type=all,promiscuous=yes",
            "af-xdp:veth1,type=0x0800,queue=3,copy=zero-copy,attach=generic,frames=64,busy-poll=20/8",
            "af-xdp:eth0,copy=copy,attach=native",
        ] {
            let wire: WireConfig = text.parse().unwrap();
            assert_eq!(wire.to_string(), text);
        }
    }

    #[test]
    fn every_option_reaches_its_place() {
        let text = "af-xdp:e,queue=2,type=2048,frames=128,busy-poll=5,promiscuous=yes,copy=auto,attach=auto";
        let wire: WireConfig = text.parse().unwrap();
        assert_eq!((wire.options.queue, wire.options.ether_type), (2, Some(0x800)));
        assert_eq!((wire.options.sizes.receive, wire.options.sizes.transmit), (128, 128));
        assert_eq!(wire.options.busy_poll, Some(BusyPoll { microseconds: 5, budget: 8 }));
        assert!(wire.for_packets().is_promiscuous && wire.for_packets().ether_type == Some(0x800));
        let usual: WireConfig = "auto:e".parse().unwrap();
        assert_eq!(usual.options, AfXdpConfig::new("e"));
    }

    #[test]
    fn what_makes_no_sense_is_refused_with_what_does() {
        for (text, word) in [
            ("eth0", "af-xdp:INTERFACE"),
            ("af-xdp:", "INTERFACE"),
            ("xdp:eth0", "no kind"),
            ("af-xdp:e,speed=9", "busy-poll"),
            ("af-packet:e,queue=1", "af-packet has no option `queue`"),
            ("af-xdp:e,queue=x", "a number"),
            ("af-xdp:e,type=0x5ff", "0x0600"),
            ("af-xdp:e,type=0x10000", "0xffff"),
            ("af-xdp:e,frames=100", "power of two"),
            ("af-xdp:e,frames=0", "power of two"),
            ("af-xdp:e,busy-poll=1/0", "slash"),
            ("af-xdp:e,copy=none", "zero-copy"),
            ("af-xdp:e,attach=", "generic"),
            ("af-xdp:e,netns=", "ip netns"),
            ("af-xdp:e,promiscuous", "yes or no"),
        ] {
            let error = text.parse::<WireConfig>().unwrap_err().to_string();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}

//! How an AF_XDP socket is opened.

use beeline_mmio::XskSizes;

/// Whether the driver shares the memory for frames.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XdpCopy {
    /// The kernel copies each frame; every driver.
    Copy,
    /// The device reads and writes the memory itself, or opening fails.
    ZeroCopy,
    /// Without copies where the driver can.
    #[default]
    Auto,
}

/// Where in the receive path frames are steered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum XdpAttach {
    /// Attached in the driver; opening fails where the driver cannot.
    Native,
    /// After the driver, for every driver.
    Generic,
    /// In the driver where that is faster and it can. A veth's frames are the kernel's packets before any program sees
    /// them, and steering in the driver copies them once more, so that there they are steered after it.
    #[default]
    Auto,
}

/// Polling of the device by whoever looks for frames, in place of interrupts.
///
/// It takes the work from the interrupts of other cores into our looks, each of which is a system call then. It helps
/// where a device interrupts; veth does not: there the sender's system call does the receiver's work, and a receiver
/// that looks without a system call is faster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BusyPoll {
    /// How long a look may poll the device, in microseconds.
    pub microseconds: u16,
    /// Frames that one look may take from the device, 1 to 64 without CAP_NET_ADMIN.
    pub budget: u16,
}

/// An AF_XDP socket on one queue of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AfXdpConfig {
    pub interface: String,
    /// The queue of the interface; frames that come in by others are not seen.
    pub queue: u32,
    /// Whether frames are copied.
    pub copy: XdpCopy,
    /// Where in the kernel frames are redirected.
    pub attach: XdpAttach,
    /// Frames of this EtherType are taken from the kernel, all others go on to it. `None` takes every frame: nothing
    /// else works on the interface then.
    pub ether_type: Option<u16>,
    /// Frames that may wait in each direction. Many wait longer without loss; few stay in the caches.
    pub sizes: XskSizes,
    /// Polling of the device.
    pub busy_poll: Option<BusyPoll>,
    /// Receive frames to other stations too, for a switch behind this up-link.
    pub is_promiscuous: bool,
}

impl AfXdpConfig {
    /// Frames of Beeline's EtherType on the first queue of an interface, by whatever is fastest there.
    pub fn new(interface: &str) -> Self {
        AfXdpConfig {
            interface: interface.to_owned(),
            queue: 0,
            copy: XdpCopy::Auto,
            attach: XdpAttach::Auto,
            ether_type: Some(crate::ETHER_TYPE),
            sizes: XskSizes { receive: 512, transmit: 256 },
            busy_poll: None,
            is_promiscuous: false,
        }
    }
}

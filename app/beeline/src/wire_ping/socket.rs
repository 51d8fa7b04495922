//! The up-link of one side: a socket of either kind, with the address of its station.

use beeline_datagram::MacAddress;
use beeline_ethernet::{
    Accept, AfPacket, AfXdp, Traits, Uplink, UplinkError, WireConfig, WireKind, in_network_namespace,
};

/// A socket on an interface.
pub enum Socket {
    Xdp(Box<AfXdp>),
    Packet(AfPacket),
}

impl Socket {
    /// Opens it, inside its namespace.
    pub fn open(wire: &WireConfig) -> Result<Self, UplinkError> {
        match &wire.namespace {
            Some(name) => in_network_namespace(name, || Self::open_here(wire))?,
            None => Self::open_here(wire),
        }
    }

    fn open_here(wire: &WireConfig) -> Result<Self, UplinkError> {
        let xdp = || AfXdp::open(&wire.options).map(|socket| Socket::Xdp(Box::new(socket)));
        let packet = || AfPacket::open(&wire.for_packets()).map(Socket::Packet);
        match wire.kind {
            WireKind::AfXdp => xdp(),
            WireKind::AfPacket => packet(),
            WireKind::Auto => match xdp() {
                Err(error) if !matches!(error, UplinkError::NoInterface { .. }) => {
                    tracing::warn!("{error}; af-packet takes its place");
                    packet()
                }
                other => other,
            },
        }
    }

    /// The address of the interface's station.
    pub fn station(&self) -> MacAddress {
        MacAddress(match self {
            Socket::Xdp(socket) => socket.station_address(),
            Socket::Packet(socket) => socket.station_address(),
        })
    }
}

impl Uplink for Socket {
    fn name(&self) -> &str {
        match self {
            Socket::Xdp(socket) => socket.name(),
            Socket::Packet(socket) => socket.name(),
        }
    }

    fn traits(&self) -> Traits {
        match self {
            Socket::Xdp(socket) => socket.traits(),
            Socket::Packet(socket) => socket.traits(),
        }
    }

    #[inline]
    fn send(&mut self, frame: &[u8]) -> Result<Accept, UplinkError> {
        match self {
            Socket::Xdp(socket) => socket.send(frame),
            Socket::Packet(socket) => socket.send(frame),
        }
    }

    #[inline]
    fn poll(&mut self, frame: &mut Vec<u8>) -> Result<bool, UplinkError> {
        match self {
            Socket::Xdp(socket) => socket.poll(frame),
            Socket::Packet(socket) => socket.poll(frame),
        }
    }

    fn longest_frame_bytes(&self) -> usize {
        match self {
            Socket::Xdp(socket) => socket.longest_frame_bytes(),
            Socket::Packet(socket) => socket.longest_frame_bytes(),
        }
    }

    fn flush(&mut self) -> Result<(), UplinkError> {
        match self {
            Socket::Xdp(socket) => socket.flush(),
            Socket::Packet(socket) => socket.flush(),
        }
    }
}

//! Our calls over a wire (`host/rpc` on `host/datagram`, past the kernel's network), as one side of an echo.
//!
//! Each side is in the network namespace of its end of a [`crate::veth::Veth`] and polls its up-link in the thread that
//! calls or answers. The server serves by count, so that it does not spin while rivals are measured.

use std::hint::spin_loop;
use std::time::{Duration, Instant};

use beeline_bench_echo::{EchoClient, EchoServer, Failure};
use beeline_datagram::{Config, MacAddress};
use beeline_ethernet::{AfPacket, AfPacketConfig, AfXdp, AfXdpConfig, ETHER_TYPE, Uplink, UplinkError};
use beeline_rpc::wire::{self, WireServer};
use beeline_rpc::{Replied, Reply, Request, Service, WaitPolicy};

use super::rpc::{ECHO, MOST_BYTES, trip};
use crate::veth::INTERFACE;

/// Calls that may be outstanding; there is one.
const OUTSTANDING: u32 = 16;
/// Between two jobs nobody polls, and that is no death: longer than all the rounds of the others take.
const SILENCE: Duration = Duration::from_secs(3600);
/// How long a server polls after the last answer: several times what a frame waits for before it is sent again.
const LINGER: Duration = Duration::from_millis(100);

/// An up-link that knows the address of its interface.
pub(super) trait Wire: Uplink + Sized {
    /// On the end of the wire that is in this network namespace.
    fn open() -> Result<Self, UplinkError>;

    /// The interface's.
    fn station(&self) -> [u8; 6];
}

impl Wire for AfXdp {
    fn open() -> Result<Self, UplinkError> {
        AfXdp::open(&AfXdpConfig::new(INTERFACE))
    }

    fn station(&self) -> [u8; 6] {
        self.station_address()
    }
}

impl Wire for AfPacket {
    fn open() -> Result<Self, UplinkError> {
        let ether_type = Some(ETHER_TYPE);
        AfPacket::open(&AfPacketConfig { interface: INTERFACE.to_owned(), ether_type, is_promiscuous: false })
    }

    fn station(&self) -> [u8; 6] {
        self.station_address()
    }
}

/// Gives requests back, and counts them.
struct Echo {
    served: u64,
    bytes: [u8; MOST_BYTES],
}

impl Service for Echo {
    #[inline]
    fn call(&mut self, request: &mut Request<'_>, reply: Reply<'_>) -> Replied {
        self.served += 1;
        let count = request.copy_out(&mut self.bytes);
        reply.send(&self.bytes[..count])
    }
}

/// The side that answers.
pub(super) struct Server<U> {
    server: WireServer<U>,
    echo: Echo,
    station: MacAddress,
}

impl<U: Wire> Server<U> {
    /// Listens on this end of the wire.
    pub(super) fn open() -> Result<Self, Failure> {
        let uplink = U::open()?;
        let station = MacAddress(uplink.station());
        let server = WireServer::new(uplink, Config { silent_after: SILENCE, ..Config::server(station) })?;
        Ok(Server { server, echo: Echo { served: 0, bytes: [0; MOST_BYTES] }, station })
    }

    /// Returns the address that a client connects to.
    pub(super) fn address(&self) -> String {
        self.station.to_string()
    }
}

impl<U: Wire> EchoServer for Server<U> {
    fn begin(&mut self, _: usize) -> Result<(), Failure> {
        Ok(())
    }

    fn serve(&mut self, trips: u64) -> Result<(), Failure> {
        let enough = self.echo.served + trips;
        while self.echo.served < enough {
            if !self.server.poll(&mut self.echo)? {
                spin_loop();
            }
        }
        // A frame that is lost is sent again only by who polls: the client that lacks the last answer would wait for ever.
        let served = Instant::now();
        while served.elapsed() < LINGER {
            self.server.poll(&mut self.echo)?;
            spin_loop();
        }
        Ok(())
    }
}

/// The side that asks.
pub(super) struct Client<U>(wire::Client<U>);

impl<U: Wire> Client<U> {
    /// Connects to the server at this station.
    pub(super) fn open(address: &str) -> Result<Self, Failure> {
        let uplink = U::open()?;
        let config = Config { silent_after: SILENCE, ..Config::client(MacAddress(uplink.station())) };
        let remote: MacAddress = address.parse()?;
        Ok(Client(wire::Client::open(uplink, config, remote.into(), OUTSTANDING, WaitPolicy::SPIN)?))
    }
}

impl<U: Wire> EchoClient for Client<U> {
    fn begin(&mut self, _: usize) -> Result<(), Failure> {
        while !self.0.transport().is_open() {
            if self.0.poll().is_some() {
                return Err("the end of a call that nobody began".into());
            }
        }
        Ok(())
    }

    #[inline]
    fn trip(&mut self, request: &[u8], answer: &mut [u8]) -> Result<(), Failure> {
        trip(&mut self.0, ECHO, request, answer)
    }
}

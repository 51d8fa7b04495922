//! How an endpoint is set up, and what may be set.

use std::num::{NonZeroU16, NonZeroU32};
use std::time::Duration;

use crate::error::EndpointError;
use crate::{Address, HEAD_BYTES, MOST_WINDOW, MacAddress, Port};

/// One connection of so many is kept for other stations than the one that has the rest.
const KEPT_FOR_OTHERS: usize = 16;

/// How close together the frames of a connection leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pacing {
    /// As fast as the up-link takes them, whatever is lost. For a network of two.
    Off,
    /// At once until something is lost, then spaced by a share of the round trip until a window arrives whole.
    AfterLoss,
    /// Never more than so many frames a second.
    FramesPerSecond(NonZeroU32),
}

/// How an endpoint is set up. Start from [`Config::client`] or [`Config::server`].
#[derive(Clone, Debug)]
pub struct Config {
    /// Address of the station the up-link belongs to.
    pub local: MacAddress,
    /// Which endpoint of that station this is. Endpoints that share an interface need different ones.
    pub port: Port,
    /// Whether connections of others are accepted.
    pub listens: bool,
    /// Connections at most; one more is refused. Each takes 128 times [`Config::frame_bytes`] of memory.
    pub max_connections: u16,
    /// Connections with one station from which on it may begin no more, so that others find some left; those that this side
    /// begins have no such limit. `None`: all but a sixteenth, and all but one at least. One machine may well run every client
    /// of a server, so it has nearly all; half for each station would be wasted there.
    pub station_share: Option<NonZeroU16>,
    /// Messages under way that this side allows itself, 1 to [`MOST_WINDOW`].
    pub send_window: u8,
    /// Messages that this side holds for a connection, 1 to [`MOST_WINDOW`]; the other side is told.
    pub receive_window: u8,
    /// Bytes of the longest frame, Ethernet header included and FCS not. The up-link may allow less. Both sides of a
    /// connection need the same, as all stations of one Ethernet do.
    pub frame_bytes: usize,
    /// An acknowledgement waits this long for a message to travel on.
    pub ack_delay: Duration,
    /// Messages that one acknowledgement may stand for.
    pub ack_every: u8,
    /// How long an answer is waited for before one was timed.
    pub first_timeout: Duration,
    /// Nothing is repeated earlier, however short the round trip. Longer than [`Config::ack_delay`] of the other side.
    pub least_timeout: Duration,
    /// However often the wait doubles, it stays below this.
    pub most_timeout: Duration,
    /// After so long a silence the other side is asked whether it is there.
    pub keep_alive: Duration,
    /// After so long a silence, and three questions unanswered, the connection is given up.
    pub silent_after: Duration,
    /// Least distance in time between two frames.
    pub pacing: Pacing,
}

impl Config {
    /// An endpoint that opens connections and accepts none.
    pub fn client(local: MacAddress) -> Self {
        Config {
            local,
            port: Port::default(),
            listens: false,
            max_connections: 64,
            station_share: None,
            send_window: MOST_WINDOW,
            receive_window: MOST_WINDOW,
            frame_bytes: 1514,
            ack_delay: Duration::from_micros(100),
            ack_every: 16,
            first_timeout: Duration::from_millis(5),
            least_timeout: Duration::from_micros(500),
            most_timeout: Duration::from_millis(100),
            keep_alive: Duration::from_millis(500),
            silent_after: Duration::from_secs(3),
            pacing: Pacing::AfterLoss,
        }
    }

    /// An endpoint that accepts connections, and can open some too.
    pub fn server(local: MacAddress) -> Self {
        Config { listens: true, ..Config::client(local) }
    }

    /// The endpoint's own address.
    pub fn address(&self) -> Address {
        Address { mac: self.local, port: self.port }
    }

    /// Connections with one station from which on it may begin no more.
    pub(crate) fn most_of_station(&self) -> usize {
        let all = usize::from(self.max_connections);
        let default = || (all - all.div_ceil(KEPT_FOR_OTHERS)).max(1);
        self.station_share.map_or_else(default, |share| share.get().into())
    }

    /// Bytes of the longest message.
    pub(crate) fn message_bytes(&self) -> usize {
        self.frame_bytes - HEAD_BYTES
    }

    /// Refuses a value that is out of range.
    pub(crate) fn check(&self) -> Result<(), EndpointError> {
        let windows = [self.send_window, self.receive_window];
        let wrong = if !self.local.is_station() {
            format!("{} is no address of one station; give the interface's own", self.local)
        } else if windows.iter().any(|window| !(1..=MOST_WINDOW).contains(window)) {
            format!("windows of {windows:?} messages; give 1 to {MOST_WINDOW} for each")
        } else if !(HEAD_BYTES..=HEAD_BYTES + usize::from(u16::MAX)).contains(&self.frame_bytes) {
            format!("frames of {} bytes; give {HEAD_BYTES} at least", self.frame_bytes)
        } else if self.max_connections == 0 {
            "no connection is allowed; give at least 1".to_owned()
        } else if self.least_timeout > self.most_timeout || self.least_timeout.is_zero() {
            let (least, most) = (self.least_timeout, self.most_timeout);
            format!("time-outs from {least:?} to {most:?}; give a least above 0 and a most not below it")
        } else if self.keep_alive.is_zero() {
            "a keep-alive of 0 would ask without pause; give an interval".to_owned()
        } else {
            return Ok(());
        };
        Err(EndpointError::Config { wrong })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_station_has_nearly_all_connections_and_one_at_least() {
        let config = Config::server(MacAddress([2, 0, 0, 0, 0, 1]));
        for (all, share) in [(1, 1), (2, 1), (4, 3), (16, 15), (17, 15), (64, 60), (1024, 960)] {
            assert_eq!(Config { max_connections: all, ..config.clone() }.most_of_station(), share);
        }
        let config = Config { station_share: NonZeroU16::new(7), ..config };
        assert_eq!(config.most_of_station(), 7);
    }

    #[test]
    fn what_cannot_work_is_refused_with_a_reason() {
        let good = Config::server(MacAddress([2, 0, 0, 0, 0, 1]));
        good.check().unwrap();
        let bad = [
            Config { local: MacAddress([1, 0, 0, 0, 0, 1]), ..good.clone() },
            Config { send_window: 0, ..good.clone() },
            Config { receive_window: 65, ..good.clone() },
            Config { frame_bytes: 55, ..good.clone() },
            Config { frame_bytes: 70_000, ..good.clone() },
            Config { max_connections: 0, ..good.clone() },
            Config { least_timeout: Duration::from_secs(1), ..good.clone() },
            Config { least_timeout: Duration::ZERO, ..good.clone() },
            Config { keep_alive: Duration::ZERO, ..good },
        ];
        for config in bad {
            let error = config.check().unwrap_err().to_string();
            assert!(error.contains("give"), "says what to do: {error}");
        }
    }
}

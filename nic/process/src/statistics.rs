//! How a NIC process is: every counter of every port, of the link and of the switch, as one JSON object.
//!
//! The loop copies its counters when it is asked, in one pass between two rounds; turning them into text is done by
//! the thread that was asked.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use beeline_domain::{Connection, DEFAULT_TIMEOUT, Domain};
use beeline_link_shm::PortCounters;
use beeline_nic_model::Counters;
use serde::{Deserialize, Serialize};

use crate::{StatisticsError, SwitchCounters};

/// What is asked of the service besides what the link asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum Question {
    /// Every counter.
    Statistics,
}

/// A snapshot of a NIC process.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Statistics {
    /// Name under which it offers ports.
    pub service: String,
    /// Process id of the NIC process.
    pub pid: u32,
    /// Milliseconds since it started.
    pub uptime_ms: u64,
    pub rounds: LoopCounters,
    pub switch: SwitchCounters,
    /// Station addresses that the switch knows.
    pub addresses: u64,
    pub ports: Vec<PortStatistics>,
    /// Ports besides these whose host is gone and whose last frames wait for their receivers.
    pub leaving: u64,
    pub uplinks: Vec<UplinkStatistics>,
}

/// Rounds of the NIC's loop and what they did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LoopCounters {
    /// Rounds over all ports.
    pub rounds: u64,
    /// Rounds in which something was done.
    pub busy: u64,
    /// Times it gave the core to others.
    pub yields: u64,
    /// Times it slept.
    pub sleeps: u64,
    /// Sleeps that ended by their limit and not by the store that had come meanwhile: lost wake-ups.
    pub slept_through: u64,
    pub ports_opened: u64,
    /// Ports that ended because their host closed them or died.
    pub ports_departed: u64,
    /// Ports closed because their host broke the protocol.
    pub ports_expelled: u64,
    /// Queues of departed ports in which a message was left torn.
    pub torn_messages: u64,
}

/// Counters and state of one port, as `beeline stat` shows them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct PortStatistics {
    pub port: u32,
    /// The process of its host, in the pid namespace of the NIC; 0 for one outside of it.
    pub pid: u32,
    /// The user of that process, in the user namespace of the NIC.
    pub uid: u32,
    /// The socket of the PCI function that it is, and no process's port.
    pub function: Option<PathBuf>,
    /// Whether it gets its own frames back.
    pub is_loop_back: bool,
    /// Whether a frame of it waits until a receiver has room.
    pub is_held: bool,
    pub link: PortCounters,
    /// Its device's counters, by their names in the register map.
    pub device: BTreeMap<String, u64>,
    /// Writes to its windows by size: up to 8, 16, …, 56 bytes, and from 57 on.
    pub tlp_bytes_histogram: Vec<u64>,
    /// Writes to its windows by distance from the frontier's line: 0 to 14 lines, and 15 or more.
    pub displacement_histogram: Vec<u64>,
}

/// One up-link.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct UplinkStatistics {
    pub name: String,
    /// Frames that came from it.
    pub frames_in: u64,
    /// Frames sent to it.
    pub frames_out: u64,
    /// Whether no more frames will come from it.
    pub is_finished: bool,
    /// Why it failed, if it did.
    pub failure: Option<String>,
}

/// A port as the loop copies it: no text yet.
#[derive(Clone, Debug)]
pub(crate) struct RawPort {
    pub(crate) port: u32,
    pub(crate) pid: u32,
    pub(crate) uid: u32,
    pub(crate) function: Option<PathBuf>,
    pub(crate) is_loop_back: bool,
    pub(crate) is_held: bool,
    pub(crate) link: PortCounters,
    pub(crate) device: Counters,
}

/// Everything the loop copies.
#[derive(Clone, Debug)]
pub(crate) struct Raw {
    pub(crate) uptime_ms: u64,
    pub(crate) rounds: LoopCounters,
    pub(crate) switch: SwitchCounters,
    pub(crate) addresses: u64,
    pub(crate) ports: Vec<RawPort>,
    pub(crate) leaving: u64,
    pub(crate) uplinks: Vec<UplinkStatistics>,
}

impl Raw {
    /// Names the counters as other programs read them.
    pub(crate) fn into_statistics(self, service: &str) -> Statistics {
        let ports = self.ports.into_iter().map(|port| PortStatistics {
            port: port.port,
            pid: port.pid,
            uid: port.uid,
            function: port.function,
            is_loop_back: port.is_loop_back,
            is_held: port.is_held,
            link: port.link,
            device: port.device.named().map(|(name, count)| (name.to_owned(), count)).collect(),
            tlp_bytes_histogram: port.device.tlp_bytes_histogram.to_vec(),
            displacement_histogram: port.device.displacement_histogram.to_vec(),
        });
        Statistics {
            service: service.to_owned(),
            pid: std::process::id(),
            uptime_ms: self.uptime_ms,
            rounds: self.rounds,
            switch: self.switch,
            addresses: self.addresses,
            ports: ports.collect(),
            leaving: self.leaving,
            uplinks: self.uplinks,
        }
    }
}

impl Statistics {
    /// Asks the NIC process that offers `service` in `domain`, once.
    ///
    /// # Errors
    /// Nobody offers it, it does not answer, or it answers something else.
    pub fn fetch(domain: &Domain, service: &str) -> Result<Statistics, StatisticsError> {
        Ok(StatisticsFeed::open(domain, service)?.1)
    }
}

/// A connection to a NIC process that can be asked again and again.
#[derive(Debug)]
pub struct StatisticsFeed {
    connection: Connection,
    service: String,
}

impl StatisticsFeed {
    /// Connects to the NIC process that offers `service` in `domain`; gives the first snapshot too.
    ///
    /// # Errors
    /// As [`Statistics::fetch`].
    pub fn open(domain: &Domain, service: &str) -> Result<(Self, Statistics), StatisticsError> {
        Self::open_within(domain, service, DEFAULT_TIMEOUT)
    }

    /// Connects as [`StatisticsFeed::open`] does, and waits for a NIC process that does not offer `service` yet. All of it
    /// takes at most `timeout`.
    ///
    /// # Errors
    /// As [`Statistics::fetch`].
    pub fn open_awaiting(
        domain: &Domain,
        service: &str,
        timeout: Duration,
    ) -> Result<(Self, Statistics), StatisticsError> {
        domain.retry_until_offered(timeout, |left| Self::open_within(domain, service, left))
    }

    fn open_within(
        domain: &Domain,
        service: &str,
        timeout: Duration,
    ) -> Result<(Self, Statistics), StatisticsError> {
        let connect = |error| StatisticsError::Connect { service: service.to_owned(), error };
        let (connection, reply) =
            domain.connect_within(service, &question(), &[], timeout).map_err(connect)?;
        let feed = StatisticsFeed { connection, service: service.to_owned() };
        let first = feed.parse(&reply.payload)?;
        Ok((feed, first))
    }

    /// The next snapshot, taken now.
    ///
    /// # Errors
    /// As [`Statistics::fetch`].
    pub fn next(&self) -> Result<Statistics, StatisticsError> {
        let connect = |error| StatisticsError::Connect { service: self.service.clone(), error };
        let reply = self.connection.call(&question(), &[]).map_err(connect)?;
        self.parse(&reply.payload)
    }

    fn parse(&self, payload: &[u8]) -> Result<Statistics, StatisticsError> {
        serde_json::from_slice(payload).map_err(|error| StatisticsError::Answer {
            service: self.service.clone(),
            reason: error.to_string(),
        })
    }
}

fn question() -> Vec<u8> {
    serde_json::to_vec(&Question::Statistics).expect("the question has only string keys")
}

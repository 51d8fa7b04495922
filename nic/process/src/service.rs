//! The thread that answers hosts: it opens ports and hands them to the loop.

use std::collections::{BTreeSet, HashMap};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, sync_channel};
use std::time::Duration;

use beeline_domain::{Peer, PeerId, Refusal, Reply, Service};
use beeline_link_shm::PortControl;
use beeline_nic_model::{Nic, NicConfig};

use crate::NicProcessConfig;
use crate::engine::Command;
use crate::statistics::Question;

/// How long the loop may take to copy its counters; it takes microseconds unless it is stopped.
const STATISTICS_LIMIT: Duration = Duration::from_secs(2);

/// A port's slow half, and its number.
struct Opened {
    number: u32,
    control: PortControl,
}

/// What a NIC process offers in its domain.
pub(crate) struct PortService {
    config: NicProcessConfig,
    commands: Sender<Command>,
    event: Arc<OwnedFd>,
    opened: HashMap<PeerId, Opened>,
    free: BTreeSet<u32>,
    /// Numbers of ports that the loop has let go of.
    left: Receiver<u32>,
}

impl PortService {
    pub(crate) fn new(
        config: NicProcessConfig,
        commands: Sender<Command>,
        left: Receiver<u32>,
        event: Arc<OwnedFd>,
    ) -> Self {
        let free = (0..config.max_ports).collect();
        PortService { config, commands, event, opened: HashMap::new(), free, left }
    }

    fn tell(&self, command: Command) -> Result<(), Refusal> {
        self.commands.send(command).map_err(|_| Refusal::new("the NIC process is stopping"))?;
        self.wake_loop();
        Ok(())
    }

    fn wake_loop(&self) {
        // It fails only when the count is full, and then the loop is awake anyway. No other process has this event.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    fn statistics(&self) -> Result<Reply, Refusal> {
        let (answer, raw) = sync_channel(1);
        self.tell(Command::Statistics(answer))?;
        let raw = raw.recv_timeout(STATISTICS_LIMIT).map_err(|_| {
            Refusal::new("the NIC's loop does not answer; is its process stopped or its core taken?")
        })?;
        let statistics = raw.into_statistics(&self.config.service);
        let payload = serde_json::to_vec(&statistics).map_err(|error| Refusal::new(error.to_string()))?;
        Ok(Reply::new(payload))
    }

    fn open(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Result<Reply, Refusal> {
        self.free.extend(self.left.try_iter());
        let most = self.config.max_ports;
        let full = || Refusal::new(format!("all {most} ports are open; start the NIC with more (`--ports`)"));
        let number = self.free.first().copied().ok_or_else(full)?;
        let device =
            Nic::new(device_config(&self.config.nic, number)).map_err(|e| Refusal::new(e.to_string()))?;
        let (control, link, reply) = PortControl::open(device, &self.config.port, Some(peer), request, fds)
            .map_err(|error| Refusal::new(error.to_string()))?;
        self.tell(Command::Open { number, peer: peer.clone(), link: Box::new(link) })?;
        self.free.remove(&number);
        self.opened.insert(peer.id(), Opened { number, control });
        Ok(reply)
    }
}

/// The device of one port: blank windows, because its link is memory, frames refused rather than dropped, because the
/// switch decides about that, and a station address of its own.
pub(crate) fn device_config(config: &NicConfig, number: u32) -> NicConfig {
    let mut config = NicConfig { blank: true, rx_lossless: true, ..config.clone() };
    let [.., high, low] = &mut config.mac;
    let sum = u16::from_be_bytes([*high, *low]).wrapping_add(number as u16);
    [*high, *low] = sum.to_be_bytes();
    config
}

fn is_question(request: &[u8]) -> bool {
    serde_json::from_slice::<Question>(request).is_ok()
}

impl Service for PortService {
    fn connected(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Result<Reply, Refusal> {
        if is_question(request) { self.statistics() } else { self.open(peer, request, fds) }
    }

    fn requested(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Result<Reply, Refusal> {
        if is_question(request) {
            return self.statistics();
        }
        let opened =
            self.opened.get_mut(&peer.id()).ok_or_else(|| Refusal::new("no port was opened before"))?;
        let answer = opened.control.request(request, fds).map_err(|error| Refusal::new(error.to_string()));
        // What was opened or closed waits for the loop, and only so much may wait.
        self.wake_loop();
        answer
    }

    fn departed(&mut self, peer: &Peer) {
        let Some(opened) = self.opened.remove(&peer.id()) else { return };
        // The loop gives the number back once the last frames of this host have gone. When it has ended there is nobody
        // to tell, and no port to come.
        let _ = self.tell(Command::Departed { number: opened.number, id: peer.id() });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_port_has_its_own_station_address() {
        let base = NicConfig { mac: [2, 0xbe, 0xe1, 0x1e, 0, 0xfe], ..NicConfig::default() };
        assert_eq!(device_config(&base, 0).mac, base.mac);
        assert_eq!(device_config(&base, 3).mac, [2, 0xbe, 0xe1, 0x1e, 1, 1]);
        assert!(device_config(&base, 9).blank);
    }

    #[test]
    fn only_the_question_is_a_question() {
        assert!(is_question(br#"{"request":"statistics"}"#));
        for other in [&b"{}"[..], br#"{"request":"open","version":1}"#, b"statistics", b""] {
            assert!(!is_question(other));
        }
    }
}

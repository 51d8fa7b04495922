//! The threads that answer hosts: ports are opened on the domain's workers and handed to the loop.

use std::collections::{BTreeSet, HashMap};
use std::os::fd::OwnedFd;
use std::sync::mpsc::{Receiver, Sender, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use beeline_domain::{Answer, Disposer, Peer, PeerId, Process, Refusal, Reply, Service, Shares};
use beeline_link_shm::{MemoryAccount, PortControl};
use beeline_nic_model::{Nic, NicConfig};

use crate::NicProcessConfig;
use crate::config::station_address;
use crate::engine::Command;
use crate::statistics::Question;

/// How long the loop may take to copy its counters; it takes microseconds unless it is stopped.
const STATISTICS_LIMIT: Duration = Duration::from_secs(2);

/// What all ports of one process may have mapped together, in times what one port may.
const PROCESS_MEMORY_PORTS: u64 = 2;
/// What all ports of one user besides the owner may have mapped together.
const OTHER_USER_MEMORY_PORTS: u64 = 4;

/// A port's slow half and its number. The half is there once the port is open; a worker has it while it answers.
struct Opened {
    number: u32,
    control: Arc<Mutex<Option<PortControl>>>,
}

/// What a NIC process offers in its domain.
pub(crate) struct PortService {
    config: NicProcessConfig,
    nic_loop: LoopHandle,
    disposer: Disposer,
    opened: HashMap<PeerId, Opened>,
    /// Whose the ports are, those included that their hosts have left.
    holders: HashMap<u32, Process>,
    accounts: Accounts,
    free: BTreeSet<u32>,
    /// Numbers of ports that the loop has let go of.
    left: Receiver<u32>,
}

/// How the loop is told something.
#[derive(Clone)]
pub(crate) struct LoopHandle {
    commands: Sender<Command>,
    event: Arc<OwnedFd>,
}

impl LoopHandle {
    /// Commands go where `commands` leads; after each, `event` is signalled.
    pub(crate) fn new(commands: Sender<Command>, event: Arc<OwnedFd>) -> Self {
        LoopHandle { commands, event }
    }

    fn tell(&self, command: Command) -> Result<(), Refusal> {
        self.commands.send(command).map_err(|_| Refusal::new("the NIC process is stopping"))?;
        self.wake();
        Ok(())
    }

    /// Has the loop look at everything soon.
    pub(crate) fn wake(&self) {
        // It fails only when the count is full, and then the loop is awake anyway. No other process has this event.
        let _ = rustix::io::write(&self.event, &1u64.to_ne_bytes());
    }

    fn statistics(&self, service: &str) -> Result<Reply, Refusal> {
        let (answer, raw) = sync_channel(1);
        self.tell(Command::Statistics(answer))?;
        let raw = raw.recv_timeout(STATISTICS_LIMIT).map_err(|_| {
            Refusal::new("the NIC's loop does not answer; is its process stopped or its core taken?")
        })?;
        let statistics = raw.into_statistics(service);
        let payload = serde_json::to_vec(&statistics).map_err(|error| Refusal::new(error.to_string()))?;
        Ok(Reply::new(payload))
    }
}

impl PortService {
    pub(crate) fn new(
        config: NicProcessConfig,
        nic_loop: LoopHandle,
        left: Receiver<u32>,
        disposer: Disposer,
    ) -> Self {
        // The first ones are the functions'.
        let free = (config.functions.len() as u32..config.max_ports).collect();
        let accounts = Accounts::new(config.port.max_memory_bytes);
        let (opened, holders) = (HashMap::new(), HashMap::new());
        PortService { config, nic_loop, disposer, opened, holders, accounts, free, left }
    }

    fn statistics(&self, fds: Vec<OwnedFd>) -> Answer {
        let (nic_loop, service) = (self.nic_loop.clone(), self.config.service.clone());
        Answer::later(move |_| {
            drop(fds);
            nic_loop.statistics(&service)
        })
    }

    fn open(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Answer {
        let process = Process::of(peer);
        let number = match self.take_number(process) {
            Ok(number) => number,
            Err(full) => return Answer::refusal(full, fds),
        };
        let control = Arc::new(Mutex::new(None));
        self.opened.insert(peer.id(), Opened { number, control: Arc::clone(&control) });
        let (nic_loop, peer, request) = (self.nic_loop.clone(), peer.clone(), request.to_vec());
        let (nic, port) = (device_config(&self.config.nic, number), self.config.port);
        let accounts = self.accounts.of(process);
        Answer::later(move |_| {
            let device = Nic::new(nic).map_err(refused)?;
            let (mut opened, link, reply) =
                PortControl::open(device, &port, Some(&peer), &request, fds).map_err(refused)?;
            opened.charge_also(accounts);
            nic_loop.tell(Command::Open { number, peer, link: Box::new(link) })?;
            *lock(&control) = Some(opened);
            Ok(reply)
        })
    }

    /// A number for a port of a process, if there is one within its share and its user's.
    fn take_number(&mut self, process: Process) -> Result<u32, Refusal> {
        for number in self.left.try_iter() {
            self.holders.remove(&number);
            self.free.insert(number);
        }
        let most = self.config.max_ports;
        let number = self.free.first().copied().ok_or_else(|| {
            Refusal::new(format!("all {most} ports are open; start the NIC with more (`--ports`)"))
        })?;
        if let Err(exceeded) = Shares::of(most as usize).check(process, self.holders.values().copied()) {
            return Err(Refusal::new(format!("of the {most} ports {exceeded}")));
        }
        self.free.remove(&number);
        self.holders.insert(number, process);
        Ok(number)
    }

    fn request(&self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Answer {
        let Some(opened) = self.opened.get(&peer.id()) else {
            return Answer::refusal(Refusal::new("no port was opened before"), fds);
        };
        let (nic_loop, control, request) =
            (self.nic_loop.clone(), Arc::clone(&opened.control), request.to_vec());
        Answer::later(move |pace| {
            let mut control = lock(&control);
            let control = control.as_mut().ok_or_else(|| Refusal::new("no port was opened before"))?;
            let answer = control.request_paced(&request, fds, pace).map_err(refused);
            // What was opened or closed waits for the loop, and only so much may wait.
            nic_loop.wake();
            answer
        })
    }
}

fn lock(control: &Mutex<Option<PortControl>>) -> MutexGuard<'_, Option<PortControl>> {
    // A panic of a port's request is that port's; its host is told, and the port goes on.
    control.lock().unwrap_or_else(PoisonError::into_inner)
}

fn refused(error: impl std::fmt::Display) -> Refusal {
    Refusal::new(error.to_string())
}

/// What processes and users may have mapped, over all of their ports.
struct Accounts {
    /// Bytes of one port.
    of_port: u64,
    of_processes: HashMap<Process, MemoryAccount>,
    of_users: HashMap<u32, MemoryAccount>,
}

impl Accounts {
    fn new(of_port: u64) -> Self {
        Accounts { of_port, of_processes: HashMap::new(), of_users: HashMap::new() }
    }

    /// The accounts of a process, and of its user if that is not ours.
    fn of(&mut self, process: Process) -> Vec<MemoryAccount> {
        self.of_processes.retain(|_, account| !account.is_closed());
        self.of_users.retain(|_, account| !account.is_closed());
        let account = |ports: u64| MemoryAccount::new(self.of_port.saturating_mul(ports));
        let mut accounts = Vec::new();
        if process.pid != 0 {
            let of_process = self.of_processes.entry(process);
            accounts.push(of_process.or_insert_with(|| account(PROCESS_MEMORY_PORTS)).clone());
        }
        if process.is_foreign() {
            let of_user = self.of_users.entry(process.uid);
            accounts.push(of_user.or_insert_with(|| account(OTHER_USER_MEMORY_PORTS)).clone());
        }
        accounts
    }
}

/// The device of one port: blank windows, because its link is memory, frames refused rather than dropped, because the
/// switch decides about that, and a station address of its own.
pub(crate) fn device_config(config: &NicConfig, number: u32) -> NicConfig {
    let mac = station_address(config.mac, number);
    NicConfig { blank: true, rx_lossless: true, mac, ..config.clone() }
}

fn is_question(request: &[u8]) -> bool {
    serde_json::from_slice::<Question>(request).is_ok()
}

impl Service for PortService {
    fn connected(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Ok(if is_question(request) { self.statistics(fds) } else { self.open(peer, request, fds) })
    }

    fn requested(&mut self, peer: &Peer, request: &[u8], fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        Ok(if is_question(request) { self.statistics(fds) } else { self.request(peer, request, fds) })
    }

    fn departed(&mut self, peer: &Peer) {
        let Some(Opened { number, control }) = self.opened.remove(&peer.id()) else { return };
        if lock(&control).is_none() {
            // It was refused: the loop has never heard of it.
            self.holders.remove(&number);
            self.free.insert(number);
            return;
        }
        // The loop gives the number back once the last frames of this host have gone. When it has ended there is nobody
        // to tell, and no port to come.
        let _ = self.nic_loop.tell(Command::Departed { number, id: peer.id() });
        self.disposer.dispose(control);
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
    fn ports_of_a_process_share_an_account_and_those_of_another_user_too() {
        let mut accounts = Accounts::new(100);
        let own = Process { pid: 7, uid: rustix::process::geteuid().as_raw() };
        let foreign = |pid| Process { pid, uid: own.uid + 1 };
        let (first, second) = (accounts.of(own), accounts.of(own));
        let limits =
            |accounts: &[MemoryAccount]| accounts.iter().map(MemoryAccount::limit).collect::<Vec<_>>();
        assert_eq!((limits(&first), limits(&second)), (vec![200], vec![200]));
        assert_eq!(limits(&accounts.of(foreign(8))), [200, 400]);
        let kept = accounts.of(foreign(9));
        assert_eq!((accounts.of_processes.len(), accounts.of_users.len()), (2, 1));
        drop((first, second, kept));
        accounts.of(Process { pid: 0, ..own });
        assert_eq!((accounts.of_processes.len(), accounts.of_users.len()), (0, 0), "they are forgotten");
    }

    #[test]
    fn only_the_question_is_a_question() {
        assert!(is_question(br#"{"request":"statistics"}"#));
        for other in [&b"{}"[..], br#"{"request":"open","version":1}"#, b"statistics", b""] {
            assert!(!is_question(other));
        }
    }
}

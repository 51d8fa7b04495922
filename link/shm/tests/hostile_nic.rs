//! A NIC process that answers anything: the host's side says what is wrong, makes no memory for it, and never waits.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::mpsc::channel;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use beeline_contract_link::{Doorbell, Link, LinkError};
use beeline_domain::{Answer, Domain, DomainConfig, Offer, Peer, Refusal, Reply, Service};
use beeline_link_shm::{ConnectError, ShmLink, ShmOptions};
use beeline_mmio::{MemoryOptions, Region, SharedMemory};
use beeline_spec::formats::{port_device_memory as device_memory, port_host_memory as host};
use beeline_spec::regs;

/// Only to end a test that hangs.
const WATCHDOG: Duration = Duration::from_secs(60);

/// What it passes where an event belongs.
#[derive(Clone, Copy)]
enum Event {
    /// A socket, which nobody reads.
    Socket,
    FullPipe,
}

struct Nic {
    event: Event,
    /// Lines it says its windows have; their memory is as large.
    lines: u32,
    refusal: Option<&'static str>,
    kept: Vec<OwnedFd>,
    host: Arc<OnceLock<Region>>,
}

fn fd(memory: &SharedMemory) -> OwnedFd {
    memory.fd().try_clone_to_owned().unwrap()
}

fn memory(bytes: usize) -> SharedMemory {
    SharedMemory::create("hostile", bytes, MemoryOptions::default()).unwrap()
}

fn full_pipe() -> (OwnedFd, OwnedFd) {
    let (reader, writer) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
    while rustix::io::write(&writer, &[0; 4096]).is_ok() {}
    rustix::fs::fcntl_setfl(&writer, rustix::fs::OFlags::empty()).unwrap();
    (reader, writer)
}

impl Service for Nic {
    fn connected(&mut self, _peer: &Peer, _request: &[u8], mut fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        let host = SharedMemory::from_fd(fds.remove(0), host::BYTES).unwrap().map().unwrap();
        self.host.set(host).unwrap();
        let device = memory(device_memory::BYTES + 4096);
        let (ours, theirs) = match self.event {
            Event::Socket => {
                let (ours, theirs) = UnixStream::pair().unwrap();
                (ours.into(), theirs.into())
            }
            Event::FullPipe => full_pipe(),
        };
        self.kept.push(ours);
        let payload = br#"{"answer":"opened","queues":4}"#.to_vec();
        Ok(Reply { payload, fds: vec![fd(&device), theirs] }.into())
    }

    fn requested(&mut self, _peer: &Peer, request: &[u8], _fds: Vec<OwnedFd>) -> Result<Answer, Refusal> {
        if let Some(refusal) = self.refusal {
            return Err(Refusal::new(refusal));
        }
        if !request.starts_with(br#"{"request":"window""#) {
            return Ok(Reply::new(br#"{"answer":"done"}"#).into());
        }
        let window = memory((self.lines as usize * 64).max(64));
        let payload = format!(r#"{{"answer":"window","lines":{}}}"#, self.lines).into_bytes();
        Ok(Reply { payload, fds: vec![fd(&window)] }.into())
    }

    fn departed(&mut self, _peer: &Peer) {}
}

struct Offered {
    _offer: Offer,
    /// The memory of the host that connected.
    host: Arc<OnceLock<Region>>,
}

fn offer(root: &Path, event: Event, lines: u32, refusal: Option<&'static str>) -> Offered {
    let domain = Domain::open(&DomainConfig { root: Some(root.to_owned()), name: "test".into() }).unwrap();
    let host = Arc::default();
    let nic = Nic { event, lines, refusal, kept: Vec::new(), host: Arc::clone(&host) };
    let offer = domain.offer("nic", Box::new(nic)).unwrap();
    Offered { _offer: offer, host }
}

fn connect(root: &Path) -> Result<ShmLink, ConnectError> {
    let domain = Domain::open(&DomainConfig { root: Some(root.to_owned()), name: "test".into() }).unwrap();
    ShmLink::connect(&domain, &ShmOptions::default())
}

#[test]
fn a_window_larger_than_any_is_not_mapped() {
    // The last is sound, and shows that the others are refused for their lines.
    for (lines, is_sound) in
        [(0, false), (1, false), (48, false), (1 << 19, false), (1 << 24, false), (1 << 18, true)]
    {
        let folder = tempfile::tempdir().unwrap();
        let _nic = offer(folder.path(), Event::Socket, lines, None);
        let mut link = connect(folder.path()).unwrap();
        match link.window(2) {
            Ok(_) => assert!(is_sound, "{lines} lines were believed"),
            Err(LinkError::Unsound { what: "a window", found }) => {
                assert!(!is_sound && found.contains(&lines.to_string()), "{lines}: {found}");
            }
            Err(other) => panic!("{lines}: {other}"),
        }
    }
}

#[test]
fn a_refusal_comes_with_its_reason() {
    let folder = tempfile::tempdir().unwrap();
    let _nic = offer(folder.path(), Event::Socket, 64, Some("not on a Monday"));
    let mut link = connect(folder.path()).unwrap();
    for _ in 0..2 {
        let error = link.window(1).unwrap_err();
        assert_eq!(error.to_string(), "the NIC refused a window: not on a Monday");
    }
    assert!(link.memory(64).unwrap_err().to_string().contains("device-visible memory: not on a Monday"));
    assert!(link.doorbell(regs::DOORBELL).unwrap_err().to_string().contains("a doorbell: not on a Monday"));
}

#[test]
fn an_event_that_could_keep_the_host_waiting_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let _nic = offer(folder.path(), Event::FullPipe, 64, None);
    let error = connect(folder.path()).unwrap_err().to_string();
    assert!(error.contains("an event that is no socket"), "{error}");
}

#[test]
fn nic_that_sleeps_and_never_reads_its_event_blocks_no_doorbell() {
    let (done, watch) = channel();
    std::thread::spawn(move || {
        let folder = tempfile::tempdir().unwrap();
        let nic = offer(folder.path(), Event::Socket, 64, None);
        let mut link = connect(folder.path()).unwrap();
        let mut doorbell = link.doorbell(regs::DOORBELL).unwrap();
        let waiting = nic.host.get().unwrap().flag(host::NIC_WAITING_OFFSET);
        for value in 0..5000 {
            waiting.store(1);
            doorbell.ring(value);
            assert_eq!(waiting.load(), 0, "every ring signalled");
        }
        done.send(()).unwrap();
    });
    watch.recv_timeout(WATCHDOG).expect("a store waits for the NIC, or the test has failed");
}

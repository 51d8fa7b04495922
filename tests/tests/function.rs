//! The conformance bodies over vfio-user: a NIC as a PCI function, driven by a client of its socket as a guest drives it through its
//! emulator. Windows are memory that both map, registers are trapped, the guest's memory is reached by its addresses.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use beeline_contract_device::{QueueId, SimTime};
use beeline_contract_link::Link;
use beeline_driver::{Port, PortConfig, PortError, PortState};
use beeline_link_shm::{DevicePort, PortConfig as LoopConfig, Wire, Wired};
use beeline_link_vfio_user::{Function, FunctionHost, FunctionLink, FunctionStop};
use beeline_mmio::{MemoryOptions, StoreKernel};
use beeline_nic_model::{Nic, NicConfig};
use beeline_spec::{Interface, regs};
use beeline_tests::Rig;
use beeline_tests::conformance::{self, Disorder, Reception, Setup};

/// Only to end a test that hangs.
const WATCHDOG: Duration = Duration::from_secs(300);

/// A wire that gives every frame back.
struct Back;

impl Wire for Back {
    fn transmit(&mut self, _queue: QueueId, _frame: &[u8]) -> Wired {
        Wired::Back
    }
}

/// A function, what runs its device, and a driver that has connected to it. Another thread serves the socket; the device makes its turns
/// where the rig steps, so that what bodies say of order does not depend on when threads run.
struct FunctionRig {
    path: PathBuf,
    port: Option<Port<FunctionLink>>,
    device: DevicePort<Nic, FunctionHost>,
    begun: Instant,
    stop: FunctionStop,
    thread: Option<JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

fn nic() -> Nic {
    Nic::new(NicConfig {
        queues: 4,
        window_lines: 64,
        span_lines: 16,
        contexts: 4,
        pool_lines: 4 * 64,
        blank: true,
        max_frame_bytes: 1518,
        ..NicConfig::default()
    })
    .unwrap()
}

impl FunctionRig {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("function");
        let (mut function, mut device) = Function::open(nic(), &LoopConfig::default(), &path, || {}).unwrap();
        device.set_lossless(true);
        let (stop, begun) = (function.stop(), Instant::now());
        let thread = Some(std::thread::spawn(move || function.serve()));
        let mut rig = FunctionRig { path, port: None, device, begun, stop, thread, _folder: folder };
        rig.restart();
        rig
    }

    fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }
}

fn turn(device: &mut DevicePort<Nic, FunctionHost>, now_ns: u64) {
    device.time_passed(SimTime::from_ns(now_ns));
    device.poll().unwrap();
    device.drive(&mut Back);
}

impl Drop for FunctionRig {
    fn drop(&mut self) {
        self.port = None;
        self.stop.stop();
        let served = self.thread.take().map(JoinHandle::join);
        assert!(served.is_some_and(|ended| ended.is_ok()) || std::thread::panicking(), "serving has failed");
        assert!(!self.path.exists(), "the socket goes with its function");
    }
}

impl Rig for FunctionRig {
    type Link = FunctionLink;

    fn port(&mut self) -> &mut Port<FunctionLink> {
        self.port.as_mut().unwrap()
    }

    fn step(&mut self) -> Result<(), PortError> {
        // An answer to a read is behind every access before it: the serving thread has had its turn, too.
        let link = self.port.as_mut().unwrap().link();
        let read = link.start_read(regs::MAGIC).unwrap().unwrap();
        while link.poll_read(read).unwrap().is_none() {
            turn(&mut self.device, self.begun.elapsed().as_nanos() as u64);
            assert!(self.begun.elapsed() < WATCHDOG, "the function answers no more");
            std::thread::yield_now();
        }
        let now_ns = self.now_ns();
        self.port().poll(now_ns).map(|_| ())
    }

    fn restart(&mut self) {
        // One client at a time: the next is served when this one has gone.
        self.port = None;
        let (is_connected, begun, device) = (AtomicBool::new(false), self.begun, &mut self.device);
        let link = std::thread::scope(|scope| {
            scope.spawn(|| {
                while !is_connected.load(Ordering::Relaxed) {
                    turn(device, begun.elapsed().as_nanos() as u64);
                    std::thread::yield_now();
                }
            });
            let link = FunctionLink::connect(&self.path, StoreKernel::Cached, MemoryOptions::default());
            is_connected.store(true, Ordering::Relaxed);
            link.unwrap()
        });
        self.port = Some(Port::new(link, PortConfig::default()));
        while self.port().state() != PortState::Ready {
            self.step().unwrap();
        }
    }

    fn max_idle_steps(&self) -> usize {
        100_000
    }
}

fn conforms(interface: Interface) {
    let mut rig = FunctionRig::new();
    for reception in [Reception::Ring, Reception::Descriptors, Reception::Pipe, Reception::Lines] {
        conformance::all(&mut rig, &Setup::new(interface, Disorder::None, reception));
    }
}

#[test]
fn mmio_conforms_over_a_function() {
    conforms(Interface::Mmio);
}

#[test]
fn kpio_conforms_over_a_function() {
    conforms(Interface::Kpio);
}

#[test]
fn descriptor_conforms_over_a_function() {
    conforms(Interface::Descriptor);
}

#[test]
fn inline_conforms_over_a_function() {
    conforms(Interface::Inline);
}

#[test]
fn enso_conforms_over_a_function() {
    conforms(Interface::Enso);
}

#[test]
fn niq_conforms_over_a_function() {
    conforms(Interface::Niq);
}

#[test]
fn coherent_conforms_over_a_function() {
    conforms(Interface::Coherent);
}

//! The conformance bodies over vfio-user: a NIC as a PCI function, driven by a client of its socket as a guest drives it through its
//! emulator. Windows are memory that both map, registers are trapped, the guest's memory is reached by its addresses.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use beeline_contract_device::{QueueId, SimTime};
use beeline_driver::{Port, PortConfig, PortError, PortState};
use beeline_link_shm::{PortConfig as LoopConfig, Wire, Wired};
use beeline_link_vfio_user::{Function, FunctionLink, FunctionStop};
use beeline_mmio::{MemoryOptions, StoreKernel};
use beeline_nic_model::{Nic, NicConfig};
use beeline_spec::Interface;
use beeline_tests::Rig;
use beeline_tests::conformance::{self, Disorder, Reception, Setup};

/// A wire that gives every frame back.
struct Back;

impl Wire for Back {
    fn transmit(&mut self, _queue: QueueId, _frame: &[u8]) -> Wired {
        Wired::Back
    }
}

/// A function that two threads of this process serve, and a driver that has connected to it.
struct FunctionRig {
    path: PathBuf,
    port: Option<Port<FunctionLink>>,
    begun: Instant,
    stop: FunctionStop,
    is_over: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
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
        let (mut function, mut port) = Function::open(nic(), &LoopConfig::default(), &path, || {}).unwrap();
        port.set_lossless(true);
        let (stop, is_over) = (function.stop(), Arc::new(AtomicBool::new(false)));
        let over = Arc::clone(&is_over);
        let threads = vec![
            std::thread::spawn(move || function.serve()),
            std::thread::spawn(move || {
                let begun = Instant::now();
                while !over.load(Ordering::Relaxed) {
                    port.time_passed(SimTime::from_ns(begun.elapsed().as_nanos() as u64));
                    if !(port.poll().unwrap() | (port.drive(&mut Back).wants > 0)) {
                        std::thread::yield_now();
                    }
                }
            }),
        ];
        let begun = Instant::now();
        let mut rig = FunctionRig { path, port: None, begun, stop, is_over, threads, _folder: folder };
        rig.restart();
        rig
    }

    fn now_ns(&self) -> u64 {
        self.begun.elapsed().as_nanos() as u64
    }
}

impl Drop for FunctionRig {
    fn drop(&mut self) {
        self.port = None;
        self.stop.stop();
        self.is_over.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            assert!(thread.join().is_ok() || std::thread::panicking(), "a thread of the function has failed");
        }
        assert!(!self.path.exists(), "the socket goes with its function");
    }
}

impl Rig for FunctionRig {
    type Link = FunctionLink;

    fn port(&mut self) -> &mut Port<FunctionLink> {
        self.port.as_mut().unwrap()
    }

    fn step(&mut self) -> Result<(), PortError> {
        std::thread::sleep(Duration::from_micros(1));
        let now_ns = self.now_ns();
        self.port().poll(now_ns).map(|_| ())
    }

    fn restart(&mut self) {
        // One client at a time: the next is served when this one has gone.
        self.port = None;
        let kernel = StoreKernel::Cached;
        let link = FunctionLink::connect(&self.path, kernel, MemoryOptions::default()).unwrap();
        self.port = Some(Port::new(link, PortConfig::default()));
        for _ in 0..self.max_idle_steps() {
            let now_ns = self.now_ns();
            if self.port().poll(now_ns).unwrap() == PortState::Ready {
                return;
            }
            std::thread::sleep(Duration::from_micros(1));
        }
        panic!("the port does not become ready");
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

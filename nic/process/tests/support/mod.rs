//! A NIC process on a thread, and stations that are hosts of it.
#![allow(dead_code, reason = "each test file uses its own part of this module")]

use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use beeline_contract_link::Link;
use beeline_domain::{Domain, DomainConfig};
use beeline_driver::{
    MmioConfig, Pending, Port, PortConfig, PortState, Progress, Receive, RxRing, RxRingConfig, Sent,
    Transmit, TxMmio,
};
use beeline_link_shm::{ShmLink, ShmOptions};
use beeline_nic_process::{NicProcess, NicProcessConfig, Statistics};
use beeline_wait::WaitPolicy;

/// Only to end a test that hangs: no single wait takes so long. A whole test may, where its threads seldom run.
pub const WATCHDOG: Duration = Duration::from_secs(30);

/// What an error and its causes say.
pub fn reasons(error: &dyn Error) -> String {
    let (mut text, mut cause) = (error.to_string(), error.source());
    while let Some(error) = cause {
        text = format!("{text}: {error}");
        cause = error.source();
    }
    text
}

pub struct Running {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Statistics>>,
}

impl Running {
    pub fn start(config: NicProcessConfig) -> Self {
        let mut process = NicProcess::new(config).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = std::thread::spawn(move || process.run(&seen).unwrap());
        Running { stop, thread: Some(thread) }
    }

    pub fn stop(mut self) -> Statistics {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

pub fn config(root: &Path) -> NicProcessConfig {
    let limit = Duration::from_millis(20);
    NicProcessConfig {
        domain: DomainConfig { root: Some(root.to_owned()), name: "test".into() },
        idle: WaitPolicy::new().spins(50).yields(50).sleep(Some(limit)),
        ..NicProcessConfig::default()
    }
}

pub fn domain(root: &Path) -> Domain {
    Domain::open(&DomainConfig { root: Some(root.to_owned()), name: "test".into() }).unwrap()
}

pub struct Station<L: Link = ShmLink> {
    pub port: Port<L>,
    pub tx: TxMmio<L::Window, L::Memory>,
    pub rx: RxRing<L::Memory, L::Doorbell>,
    pub start: Instant,
    address: u8,
}

fn finish<L: Link, T>(port: &mut Port<L>, mut pending: Pending<T>, start: Instant) -> T {
    loop {
        port.poll(start.elapsed().as_nanos() as u64).unwrap();
        match port.finish(pending).unwrap() {
            Progress::Done(value) => return value,
            Progress::Pending(more) => pending = more,
        }
        std::thread::yield_now();
    }
}

impl Station {
    pub fn connect(root: &Path, address: u8, loop_back: bool, ring_lines: u32) -> Self {
        let options = ShmOptions { loop_back, ..ShmOptions::default() };
        Station::on(ShmLink::connect(&domain(root), &options).unwrap(), address, ring_lines)
    }
}

impl<L: Link + 'static> Station<L> {
    pub fn on(link: L, address: u8, ring_lines: u32) -> Self {
        let start = Instant::now();
        let mut port = Port::new(link, PortConfig::default());
        while port.poll(start.elapsed().as_nanos() as u64).unwrap() != PortState::Ready {
            std::thread::yield_now();
        }
        let rx = port.rx_ring(0, RxRingConfig { lines: ring_lines, ..RxRingConfig::default() }).unwrap();
        let tx =
            port.mmio(0, MmioConfig { random: u64::from(address) << 20, ..MmioConfig::default() }).unwrap();
        let pending = port.open(tx.with(rx).unwrap());
        let (tx, rx) = finish(&mut port, pending, start);
        Station { port, tx, rx, start, address }
    }

    pub fn frame(&self, to: u8, number: u16, bytes: usize) -> Vec<u8> {
        let mut frame = vec![number as u8; bytes];
        frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, to]);
        if to == 0xff {
            frame[..6].fill(0xff);
        }
        frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, self.address]);
        frame[12..16].copy_from_slice(&[0x88, 0xb5, (number >> 8) as u8, number as u8]);
        frame
    }

    pub fn send(&mut self, frame: &[u8]) {
        let begun = Instant::now();
        while self.tx.try_send(frame).unwrap() != Sent::Sent {
            self.tx.progress().unwrap();
            assert!(begun.elapsed() < WATCHDOG, "the queue stays full");
            std::thread::yield_now();
        }
        self.tx.progress().unwrap();
    }

    pub fn try_receive(&mut self) -> Option<Vec<u8>> {
        let mut got = Vec::new();
        let mut frame = self.rx.poll().unwrap()?;
        frame.copy_to(&mut got);
        Some(got)
    }

    pub fn receive(&mut self) -> Vec<u8> {
        let begun = Instant::now();
        loop {
            if let Some(frame) = self.try_receive() {
                return frame;
            }
            assert!(begun.elapsed() < WATCHDOG, "no frame comes");
            std::thread::yield_now();
        }
    }

    /// Waits until everything sent has left, which is also when its copies have reached their receivers.
    pub fn drain(&mut self) {
        let begun = Instant::now();
        while !self.tx.is_idle() {
            self.tx.progress().unwrap();
            assert!(begun.elapsed() < WATCHDOG, "frames stay");
            std::thread::yield_now();
        }
    }
}

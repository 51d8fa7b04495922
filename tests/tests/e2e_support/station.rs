//! A program on a port: opens it with one interface, sends and receives labelled frames.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use beeline_domain::DomainConfig;
use beeline_driver::{
    DescriptorConfig, KpioConfig, MmioConfig, Pending, Port, PortConfig, PortError, PortState, Progress,
    QueueHalf, Receive, RxRing, RxRingConfig, Sent, Stopped, Transmit, TxError,
};
use beeline_link_shm::{ShmDoorbell, ShmLink, ShmMemory, ShmOptions};
use beeline_mmio::StoreKernel;

use super::frames::{self, Label};
use super::{WATCHDOG, connect, domain_config, say};

/// The receive half that every station uses.
pub type Ring = RxRing<ShmMemory, ShmDoorbell>;

/// A port that is up.
pub struct Station {
    pub port: Port<ShmLink>,
    start: Instant,
}

impl Station {
    /// Opens a port as soon as there is a NIC; `None` when the role is to stop or the NIC went away meanwhile.
    pub fn open(options: &ShmOptions, stop: &AtomicBool) -> Option<Self> {
        Self::open_in(&domain_config(), options, stop)
    }

    pub fn open_in(config: &DomainConfig, options: &ShmOptions, stop: &AtomicBool) -> Option<Self> {
        let link = connect(config, options, stop)?;
        let mut station = Station { port: Port::new(link, PortConfig::default()), start: Instant::now() };
        while station.poll().ok()? != PortState::Ready {
            std::thread::yield_now();
        }
        Some(station)
    }

    fn poll(&mut self) -> Result<PortState, PortError> {
        assert!(self.start.elapsed() < WATCHDOG, "the port does not come up");
        self.port.poll(self.start.elapsed().as_nanos() as u64)
    }

    /// Waits for an operation; `None` when the NIC went away.
    pub fn finish<T>(&mut self, mut pending: Pending<T>) -> Option<T> {
        self.start = Instant::now();
        loop {
            self.poll().ok()?;
            match self.port.finish(pending).ok()? {
                Progress::Done(value) => return Some(value),
                Progress::Pending(more) => pending = more,
            }
            std::thread::yield_now();
        }
    }

    pub fn open_queue<H: QueueHalf>(&mut self, half: Result<Stopped<H>, PortError>) -> Option<H> {
        let pending = self.port.open(half.ok()?);
        self.finish(pending)
    }

    /// Opens a receive ring on queue 0.
    pub fn ring(&mut self) -> Option<Ring> {
        let half = self.port.rx_ring(0, RxRingConfig::default());
        self.open_queue(half)
    }

    /// Whether the NIC is gone, as far as the kernel has shown.
    pub fn is_nic_gone(&mut self) -> bool {
        use beeline_contract_link::Link;
        self.port.link().is_device_gone()
    }
}

/// How a sender's life ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// It sent everything, or was told to stop.
    Done,
    /// The NIC went away.
    NicGone,
}

/// Sends frames 0, 1, 2, … of `life` from station `from` to station `to` until `count` are sent.
pub fn send(
    station: &mut Station,
    tx: &mut impl Transmit,
    (from, to): (u8, u8),
    life: u64,
    count: u64,
    stop: &AtomicBool,
) -> Ended {
    let multiple = tx.declared().frame_multiple_bytes();
    let (mut frame, mut number) = (Vec::new(), 0);
    frames::write(&mut frame, from, to, Label { life, number }, multiple);
    let mut waits = 0u32;
    while number < count && !stop.load(Ordering::Relaxed) {
        match tx.try_send(&frame) {
            Ok(Sent::Sent) => {
                number += 1;
                waits = 0;
                frames::write(&mut frame, from, to, Label { life, number }, multiple);
            }
            Ok(Sent::Full) => {
                tx.progress().expect("the NIC keeps its promises");
                waits += 1;
                if waits > 100 {
                    std::thread::yield_now();
                }
                if waits.is_multiple_of(1000) && station.is_nic_gone() {
                    return Ended::NicGone;
                }
            }
            Err(TxError::Length { .. }) => panic!("frames have lengths that every interface takes"),
            Err(error) => panic!("{error}"),
        }
    }
    while !tx.is_idle() {
        tx.progress().expect("the NIC keeps its promises");
        if station.is_nic_gone() {
            return Ended::NicGone;
        }
        std::thread::yield_now();
    }
    Ended::Done
}

/// The role of a sender: sends until told to stop, through every NIC that comes. Each NIC is a new life.
pub fn run_sender(stop: &AtomicBool) {
    let interface = super::argument("INTERFACE").unwrap_or_else(|| "mmio".into());
    let kernel: StoreKernel =
        super::argument("KERNEL").map_or(StoreKernel::Cached, |name| name.parse().unwrap());
    let count = super::argument("COUNT").map_or(u64::MAX, |count| count.parse().unwrap());
    let options = ShmOptions { kernel, ..ShmOptions::default() };
    let ends = (1, 2);
    let mut lives = 0;
    while !stop.load(Ordering::Relaxed) {
        let Some(mut station) = Station::open(&options, stop) else { continue };
        lives += 1;
        let life = u64::from(std::process::id()) << 16 | lives;
        let port = &mut station.port;
        let ended = match interface.as_str() {
            "mmio" => {
                let half = port.mmio(1, MmioConfig { random: life, ..MmioConfig::default() });
                let Some(mut tx) = station.open_queue(half) else { continue };
                say(&format!("life {life}"));
                send(&mut station, &mut tx, ends, life, count, stop)
            }
            "kpio" => {
                let half = port.kpio(1, KpioConfig { random: life, ..KpioConfig::default() });
                let Some(mut tx) = station.open_queue(half) else { continue };
                say(&format!("life {life}"));
                send(&mut station, &mut tx, ends, life, count, stop)
            }
            _ => {
                let half = port.descriptor(1, DescriptorConfig::default());
                let Some(mut tx) = station.open_queue(half) else { continue };
                say(&format!("life {life}"));
                send(&mut station, &mut tx, ends, life, count, stop)
            }
        };
        if ended == Ended::Done {
            say("done");
            // The port stays, so that its counters can be asked for.
            while !stop.load(Ordering::Relaxed) {
                std::thread::yield_now();
            }
        }
    }
}

/// The role of a receiver: checks every byte of every frame and the order of each life, through every NIC that comes.
pub fn run_receiver(stop: &AtomicBool) {
    let multiple = super::argument("MULTIPLE").map_or(1, |multiple| multiple.parse().unwrap());
    let may_lose = super::argument("MAY_LOSE").is_some();
    let (mut frame, mut expected) = (Vec::new(), Vec::new());
    while !stop.load(Ordering::Relaxed) {
        let Some(mut station) = Station::open(&ShmOptions::default(), stop) else { continue };
        let Some(mut ring) = station.ring() else { continue };
        say("listening");
        let (mut life, mut next, mut silent) = (0, 0, 0u64);
        while !stop.load(Ordering::Relaxed) {
            let Some(mut received) = ring.poll().expect("the NIC keeps its promises") else {
                silent += 1;
                if silent > 200 {
                    std::thread::yield_now();
                }
                if silent.is_multiple_of(1000) && station.is_nic_gone() {
                    break;
                }
                continue;
            };
            silent = 0;
            received.copy_to(&mut frame);
            drop(received);
            let label = frames::check(&frame, &mut expected, multiple);
            if label.life != life {
                assert!(
                    may_lose || label.number == 0,
                    "life {} begins with frame {}",
                    label.life,
                    label.number
                );
                (life, next) = (label.life, label.number);
                say(&format!("heard {life}"));
            }
            // Whoever was killed, what comes is in order; without a kill nothing is missing either.
            assert!(
                label.number >= next && (may_lose || label.number == next),
                "{label:?} where {next} was due"
            );
            next = label.number + 1;
            if next.is_multiple_of(500) {
                say(&format!("frames {next}"));
            }
        }
        say(&format!("last {next}"));
    }
}

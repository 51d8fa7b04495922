//! The simulator that measures: machines in virtual time, by `beeline-experiments`, put together from platform files.

use beeline_experiments::measure::{self, Bench, DmaEngine, Fences};
use beeline_experiments::{Data, LabError};
use beeline_platforms::{DataIn, Kind, Platform, PlatformError};

use crate::freeze::PlatformFile;
use crate::quantity::{Direction, Engine, Fence, Interface, Quantity, Stamp, Target};
use crate::simulator::{Card, NotModelled, Parameter, Replacement, Setting, Simulator};
use crate::sources::solved_from;

/// Platforms, and the seed of everything random on them.
#[derive(Clone, Debug)]
pub struct VirtualTime {
    platforms: Vec<Platform>,
    seed: u64,
}

impl VirtualTime {
    /// The platforms that are built in.
    ///
    /// # Errors
    /// A built-in file is wrong, which a test forbids.
    pub fn new(seed: u64) -> Result<VirtualTime, PlatformError> {
        Ok(VirtualTime { platforms: Platform::all()?, seed })
    }

    /// The files of the platforms that are built in, as the freeze compares them.
    pub fn files() -> Vec<PlatformFile> {
        Platform::files().map(|(name, text)| PlatformFile { name, text: text.to_owned() }).collect()
    }

    fn find(&self, name: &str) -> Result<&Platform, NotModelled> {
        let found = self.platforms.iter().find(|platform| platform.name == name);
        found.ok_or_else(|| NotModelled::because(format!("there is no platform {name}")))
    }
}

impl Simulator for VirtualTime {
    fn platforms(&self) -> Vec<Card> {
        self.platforms.iter().map(card).collect()
    }

    fn measure_with(
        &mut self,
        platform: &str,
        replacements: &[Replacement],
        quantity: &Quantity,
    ) -> Result<f64, NotModelled> {
        let mut platform = self.find(platform)?.clone();
        for Replacement { key, value } in replacements {
            let value = match value {
                Setting::Number(number) => number.to_string(),
                Setting::Word(word) => word.clone(),
            };
            platform = platform.with(key, &value).map_err(|error| NotModelled::because(error.to_string()))?;
        }
        measure(&platform, quantity, self.seed)
    }
}

/// What the scoring wants to know of a platform.
fn card(platform: &Platform) -> Card {
    let rows = platform.rows();
    let mut parts: Vec<String> = rows
        .iter()
        .filter(|row| row.shared)
        .filter_map(|row| row.location.as_ref().map(|location| location.file.clone()))
        .collect();
    parts.sort();
    parts.dedup();
    let parameters = rows.into_iter().filter(|row| !row.value.is_empty()).map(|row| Parameter {
        key: row.key,
        value: setting(&row.value),
        is_knob: row.knob,
        solved_from: row.source.map(|source| solved_from(&source.to_text())).unwrap_or_default(),
    });
    Card {
        name: platform.name.clone(),
        kind: platform.kind.word().to_owned(),
        parts,
        generation: platform.link.generation.value as u8,
        parameters: parameters.collect(),
    }
}

fn setting(value: &str) -> Setting {
    let word = || Setting::Word(value.trim_matches('"').to_owned());
    value.parse().map_or_else(|_| word(), Setting::Number)
}

fn measure(platform: &Platform, quantity: &Quantity, seed: u64) -> Result<f64, NotModelled> {
    let bench = Bench { platform, seed, data: data(platform) };
    let is_nic = platform.kind == Kind::Nic;
    let figure = match *quantity {
        Quantity::TransmitLatency { interface, bytes } if is_nic => {
            bench.transmit_latency_ns(interface, bytes)
        }
        Quantity::TransmitDone { interface, bytes, frames } if is_nic => {
            bench.transmit_done_ns(interface, bytes, frames)
        }
        Quantity::FrameRate { interface, bytes, cores, burst } if is_nic => {
            bench.frame_rate_gbps(interface, bytes, cores as u16, burst as usize)
        }
        Quantity::DescriptorShare { bytes, burst } if is_nic => {
            bench.descriptor_share_percent(bytes, burst as usize)
        }
        Quantity::PingPong { interface, bytes } if is_nic => bench.ping_pong_ns(interface, bytes),
        Quantity::TraceStamp(stamp) if is_nic => traced(&bench, stamp),
        _ => return of_stores(&bench, quantity).map_err(|error| NotModelled::because(error.to_string())),
    };
    figure.map_err(|error| NotModelled::because(error.to_string()))
}

fn of_stores(bench: &Bench<'_>, quantity: &Quantity) -> Result<f64, LabError> {
    match *quantity {
        Quantity::LineInterval => bench.line_interval_ns(),
        // Through the map of a segment, by a member on a host that is joined to another one.
        Quantity::StoreTime { bytes, fence } if bench.platform.kind == Kind::Ntb => {
            beeline_hosts::store_time_ns(bench.platform, bytes as usize, fences(fence), bench.seed)
        }
        Quantity::StoreRate { bytes, fence, target: Target::Window } if bench.platform.kind == Kind::Ntb => {
            beeline_hosts::store_rate_gbps(bench.platform, bytes as usize, fences(fence), bench.seed)
        }
        Quantity::StoreTime { bytes, fence } => bench.store_time_ns(bytes, fences(fence)),
        Quantity::StoreRate { bytes, fence, target: Target::Window } => {
            bench.store_rate_gbps(bytes, fences(fence), 1)
        }
        // Lines to memory pass no link: nothing but the stores is in the way.
        Quantity::StoreRate { target: Target::Memory, .. } => Ok(bench.memory_store_gbps()),
        Quantity::WriteLatency { bytes } => bench.write_latency_ns(bytes),
        Quantity::WriteThenRead { .. } => bench.write_then_read_ns(),
        Quantity::ReadRoundTrip { bytes } => bench.read_round_trip_ns(bytes),
        Quantity::WindowLatency { bytes: 0..=8 } => {
            beeline_hosts::store_latency_ns(bench.platform, bench.seed)
        }
        Quantity::WindowPingPong { bytes: 0..=8 } => beeline_hosts::ping_pong_ns(bench.platform, bench.seed),
        Quantity::WindowLatency { bytes } | Quantity::WindowPingPong { bytes } => Err(LabError::Traffic {
            what: format!("a flag of {bytes} bytes between two hosts"),
            advice: "ask for a word, of at most 8 bytes",
        }),
        Quantity::InterruptLatency => beeline_hosts::interrupt_latency_ns(bench.platform, bench.seed),
        Quantity::MessageLatency { bytes } => {
            beeline_hosts::message_latency_ns(bench.platform, bytes as usize, bench.seed)
        }
        Quantity::DmaReadLatency { engine, bytes } => bench.dma_read_latency_ns(part(engine), bytes),
        Quantity::DmaWriteReadLatency { engine, bytes } => {
            bench.dma_write_read_latency_ns(part(engine), bytes)
        }
        Quantity::DmaRate { direction, bytes } => bench.dma_rate_gbps(way(direction), bytes),
        Quantity::DmaPushLatency { bytes } => {
            let dma = beeline_hosts::Mover::Dma;
            beeline_hosts::move_latency_ns(bench.platform, dma, bytes as usize, bench.seed)
        }
        Quantity::Multicast { nodes } => {
            beeline_hosts::multicast_ns(bench.platform, nodes as u16, bench.seed)
        }
        Quantity::DmaPushRate { bytes } => {
            beeline_hosts::dma_rate_gbps(bench.platform, bytes as usize, bench.seed)
        }
        Quantity::TransmitLatency { .. }
        | Quantity::TransmitDone { .. }
        | Quantity::FrameRate { .. }
        | Quantity::DescriptorShare { .. }
        | Quantity::PingPong { .. }
        | Quantity::TraceStamp(_) => Err(LabError::Traffic {
            what: format!("{} is no NIC and sends no frames", bench.platform.name),
            advice: "ask for stores or transfers",
        }),
    }
}

/// What an analyser shows of the frame of NAS'15's ping: 104 bytes by kPIO+WC, 100 by descriptors.
fn traced(bench: &Bench<'_>, stamp: Stamp) -> Result<f64, LabError> {
    use measure::Stamp as Measured;
    match stamp {
        Stamp::FirstLineAck => bench.trace_stamp_ns(Interface::Kpio, 104, Measured::Acknowledgement(0)),
        Stamp::SecondLineAck => bench.trace_stamp_ns(Interface::Kpio, 104, Measured::Acknowledgement(1)),
        Stamp::FirstLoopBackWrite => bench.loop_back_stamp_ns(0),
        Stamp::SecondLoopBackWrite => bench.loop_back_stamp_ns(1),
        Stamp::DoorbellAck => bench.trace_stamp_ns(Interface::Descriptor, 100, Measured::Acknowledgement(0)),
        Stamp::DescriptorAck => {
            bench.trace_stamp_ns(Interface::Descriptor, 100, Measured::CompletionAcknowledged(0))
        }
        Stamp::PayloadSent => bench.trace_stamp_ns(Interface::Descriptor, 100, Measured::LastCompletionSent),
        Stamp::PayloadAck => {
            bench.trace_stamp_ns(Interface::Descriptor, 100, Measured::LastCompletionAcknowledged)
        }
    }
}

/// Where the data lie that the device reads.
fn data(platform: &Platform) -> Data {
    let lies_in = platform.root_complex.data_in.value;
    Data { is_cold: lies_in == DataIn::Dram, is_remote: lies_in == DataIn::OtherSocket, is_translated: false }
}

fn fences(fence: Fence) -> Fences {
    match fence {
        Fence::None => Fences::None,
        Fence::PerMessage => Fences::PerMessage,
        Fence::PerLine => Fences::PerLine,
    }
}

fn part(engine: Engine) -> DmaEngine {
    match engine {
        Engine::Command => DmaEngine::Command,
        Engine::Bulk => DmaEngine::Bulk,
    }
}

fn way(direction: Direction) -> measure::Direction {
    match direction {
        Direction::Read => measure::Direction::Read,
        Direction::Write => measure::Direction::Write,
        Direction::ReadWrite => measure::Direction::ReadWrite,
    }
}

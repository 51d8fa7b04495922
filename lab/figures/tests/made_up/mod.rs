//! A made-up simulator: closed forms that look like machines and are none. It exists so that scoring, tables and plots can be
//! tested; no figure of it leaves the tests.

use beeline_figures::quantity::{Direction, Fence, Interface, Quantity, Stamp, Target};
use beeline_figures::{Card, NotModelled, Parameter, Replacement, Setting, Simulator};

/// Name, kind, parts, generation, lanes.
const PLATFORMS: [(&str, &str, &str, u8, u8); 28] = [
    ("i5-2400s-virtex5", "nic", "client", 1, 4),
    ("i5-2400s-82575eb", "nic", "client", 1, 4),
    ("host-82599", "nic", "server", 2, 8),
    ("i82573e", "nic", "client", 1, 1),
    ("epyc-7543-cx6dx", "nic", "amd", 4, 16),
    ("niq-netfpga", "nic", "server", 1, 8),
    ("niq-x520", "nic", "server", 2, 8),
    ("vpx3-1259-gen2x4-linux", "ntb", "client", 2, 4),
    ("vpx3-1259-gen2x4-vxworks", "ntb", "client", 2, 4),
    ("vpx3-1259-gen2x8", "ntb", "client", 2, 8),
    ("vpx3-1259-gen3x4", "ntb", "client", 3, 4),
    ("vpx3-1259-gen3x8", "ntb", "client", 3, 8),
    ("champ-xd1-gen3x4", "ntb", "server", 3, 4),
    ("vpx3-133-gen2x4", "dma", "power", 2, 4),
    ("xeon-v100", "nic", "server", 3, 16),
    ("snb-nfp6000", "nic", "server", 3, 8),
    ("snb-nfp6000-iommu", "nic", "server", 3, 8),
    ("ib-nfp6000-local", "nic", "server", 3, 8),
    ("ib-nfp6000-remote", "nic", "server", 3, 8),
    ("hsw-2637v3-nfp6000", "nic", "server", 3, 8),
    ("hsw-2620v3-nfp6000", "nic", "server", 3, 8),
    ("hsw-2620v3-nfp6000-iommu", "nic", "server", 3, 8),
    ("bdw-nfp6000-local", "nic", "server", 3, 8),
    ("dolphin-ntb", "ntb", "server", 3, 8),
    ("ccnic-icelake", "nic", "server", 4, 16),
    ("icelake-connectx", "nic", "server", 4, 16),
    ("enzian-eci", "nic", "arm", 3, 16),
    ("thunderx2-cx5", "nic", "arm", 3, 16),
];

/// The simulator.
#[derive(Default)]
pub struct MadeUp {
    /// Rows that a knob of the first platform was solved from.
    pub fitted_to: Vec<&'static str>,
}

impl Simulator for MadeUp {
    fn platforms(&self) -> Vec<Card> {
        let parameter = |key: &str, value, is_knob| Parameter {
            key: key.to_owned(),
            value,
            is_knob,
            solved_from: Vec::new(),
        };
        let mut cards: Vec<Card> = PLATFORMS
            .iter()
            .map(|(name, kind, part, generation, lanes)| Card {
                name: (*name).to_owned(),
                kind: (*kind).to_owned(),
                parts: vec![(*part).to_owned()],
                generation: *generation,
                parameters: vec![
                    parameter("core.fence_waits_for", Setting::Word("uncore".to_owned()), false),
                    parameter("core.fence_ns", Setting::Number(30.0 + f64::from(*lanes)), true),
                ],
            })
            .collect();
        if !self.fitted_to.is_empty() {
            let knob = &mut cards[0].parameters[1];
            knob.solved_from = self.fitted_to.iter().map(|id| (*id).into()).collect();
        }
        cards
    }

    fn measure_with(
        &mut self,
        platform: &str,
        replacements: &[Replacement],
        quantity: &Quantity,
    ) -> Result<f64, NotModelled> {
        let unknown = || NotModelled::because(format!("the made-up simulator has no `{platform}`"));
        let (_, _, _, generation, lanes) = PLATFORMS.iter().find(|p| p.0 == platform).ok_or_else(unknown)?;
        let raw = [2.0, 4.0, 7.877, 15.754, 31.508][usize::from(*generation) - 1] * f64::from(*lanes);
        let number = |key: &str, default: f64| {
            replacements.iter().find(|r| r.key == key).map_or(default, |r| match &r.value {
                Setting::Number(number) => *number,
                Setting::Word(word) => match word.as_str() {
                    "uncore" => 50.0,
                    "root-complex" => 150.0,
                    "device" => 450.0,
                    _ => 0.0,
                },
            })
        };
        let fence_ns =
            number("core.fence_ns", 30.0 + f64::from(*lanes)) + number("core.fence_waits_for", 50.0);
        closed_form(quantity, raw, fence_ns)
    }
}

fn lines(bytes: u64) -> f64 {
    bytes.div_ceil(64) as f64
}

/// Gbit/s on the link become ns and back by packets of 64 B and 24 B around them.
fn closed_form(quantity: &Quantity, raw_gbps: f64, fence_ns: f64) -> Result<f64, NotModelled> {
    let line_ns = (88.0 * 8.0 / raw_gbps).max(4.0);
    let fetch_ns = |bytes: u64| 450.0 + bytes as f64 * 8.0 / raw_gbps;
    let transmit = |interface, bytes: u64| match interface {
        Interface::Kpio => 20.0 + line_ns * lines(bytes + 8),
        Interface::Mmio | Interface::Inline | Interface::Niq => 20.0 + line_ns * lines(bytes),
        Interface::Coherent => 10.0 + line_ns * lines(bytes),
        Interface::Descriptor => 100.0 + fetch_ns(16) + fetch_ns(bytes),
        Interface::Enso => 100.0 + fetch_ns(bytes),
    };
    let fenced = |bytes: u64, fence| match fence {
        Fence::None => 0.0,
        Fence::PerMessage => fence_ns,
        Fence::PerLine => fence_ns * lines(bytes),
    };
    Ok(match quantity {
        Quantity::LineInterval => line_ns,
        Quantity::StoreTime { bytes, fence } => line_ns * lines(*bytes) + fenced(*bytes, *fence),
        Quantity::StoreRate { bytes, fence, target } => {
            let ns = match target {
                Target::Window => line_ns * lines(*bytes),
                Target::Memory => 2.6 * lines(*bytes),
            };
            *bytes as f64 * 8.0 / (ns + fenced(*bytes, *fence))
        }
        Quantity::WriteLatency { bytes } => 400.0 + line_ns * lines(*bytes),
        Quantity::WriteThenRead { .. } | Quantity::ReadRoundTrip { .. } => 640.0,
        Quantity::TransmitLatency { interface, bytes } => transmit(*interface, *bytes),
        Quantity::TransmitDone { bytes, frames, .. } => 4000.0 / f64::from(*frames) + 50.0 * *bytes as f64,
        Quantity::FrameRate { interface: Interface::Descriptor, bytes, cores, .. } => {
            (*bytes as f64 * 8.0 * f64::from(*cores) / 400.0)
                .min(raw_gbps * *bytes as f64 / (*bytes as f64 + 60.0))
        }
        Quantity::FrameRate { bytes, .. } => *bytes as f64 * 8.0 / (line_ns * lines(bytes + 8)),
        Quantity::PingPong { interface, bytes } => 2.0 * transmit(*interface, *bytes) + 900.0,
        Quantity::DescriptorShare { bytes, .. } => 100.0 * 60.0 / (*bytes as f64 + 90.0),
        Quantity::TraceStamp(stamp) => match stamp {
            Stamp::FirstLineAck => 480.0,
            Stamp::SecondLineAck => 690.0,
            Stamp::FirstLoopBackWrite => 1292.0,
            Stamp::SecondLoopBackWrite => 1380.0,
            Stamp::DoorbellAck => 190.0,
            Stamp::DescriptorAck => 1050.0,
            Stamp::PayloadSent => 1900.0,
            Stamp::PayloadAck => 1990.0,
        },
        Quantity::DmaReadLatency { bytes, .. } => 540.0 + 0.3 * *bytes as f64,
        Quantity::DmaWriteReadLatency { bytes, .. } => 750.0 + 0.5 * *bytes as f64,
        Quantity::DmaRate { bytes, direction } => {
            let share = *bytes as f64 / (*bytes as f64 + 40.0);
            raw_gbps * share * if *direction == Direction::ReadWrite { 0.8 } else { 0.9 }
        }
        Quantity::InterruptLatency => 900.0,
        Quantity::MessageLatency { bytes } => 1000.0 + *bytes as f64 * 8.0 / raw_gbps,
        Quantity::DmaPushLatency { bytes } => 1500.0 + *bytes as f64 * 8.0 / raw_gbps,
        Quantity::DmaPushRate { bytes } => raw_gbps * *bytes as f64 / (*bytes as f64 * 1.2 + 2000.0),
        Quantity::Multicast { .. } => return Err(NotModelled::because("made up to be missing")),
        Quantity::WindowLatency { .. } => 550.0,
        Quantity::WindowPingPong { .. } => 1100.0,
    })
}

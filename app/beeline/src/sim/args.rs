//! Options of `beeline sim`, and the small languages of their values.

use std::path::PathBuf;

use beeline_spec::Interface;
use beeline_spec::formats::{MAX_FRAME_BYTES, MIN_FRAME_BYTES};
use beeline_window::FencePolicy;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::choices::{PlatformName, policy};
use crate::options::SimDeviceArgs;

/// The machine whose figures started this design (HotOS'25).
pub const PLATFORM: &str = "epyc-7543-cx6dx";

/// Options of `sim`.
#[derive(Args, Debug, Clone)]
#[command(after_help = "\
Examples:
  beeline sim                             every interface, alone and in a stream, on one platform
  beeline sim --interface mmio,descriptor --sizes 64..1500 --arrivals one-by-one --html sim.html
  beeline sim --set core.wc_buffers=4,8,12 --interface mmio --arrivals always --sizes 64
  beeline sim --arrivals poisson:2M,bursts:2M:16 --cores 1,4 --fences none,per-message
  beeline sim --devices 1,2,4 --set switch.latency_ns=100 --set switch.ports=5 --arrivals always
                                          NICs behind one switch, a core for each
  beeline sim --pcap in.pcap --interface mmio   sizes and gaps of a capture
  beeline sim --device rtl --interface mmio --frames 500   the NIC's RTL, cycle by cycle
  beeline sim --resume sweep.jsonl --csv sweep.csv   goes on where it was interrupted
  beeline sim --shard 1/4 --resume one.jsonl    a quarter of the points, for a batch engine
  beeline sim --merge one.jsonl two.jsonl three.jsonl four.jsonl --csv sweep.csv
Every figure is simulated: it is of the platform that is named, not of this machine. docs/simulation.md says how.")]
pub struct SimArgs {
    /// Platforms: names of built-in ones (`beeline platforms` lists them), or files
    #[arg(long, value_delimiter = ',', default_value = PLATFORM, value_name = "NAME|FILE", value_parser = PlatformName, hide_possible_values = true)]
    pub platform: Vec<String>,
    /// Change a parameter of every platform; several values are swept. A section that it has not needs all of its parameters
    #[arg(long, value_name = "KEY=VALUE[,VALUE...]")]
    pub set: Vec<Change>,
    /// Interfaces to send by
    #[arg(long, value_delimiter = ',', default_value = "all", value_name = "NAME", value_parser = interfaces())]
    pub interface: Vec<Chosen>,
    /// Frame sizes in bytes, FCS excluded: N; A..B doubles from A up to B; A..B:S goes in steps of S
    #[arg(long, alias = "size", value_delimiter = ',', default_value = "64,128,256,512,1024,1500", value_name = "SIZES", value_parser = sizes)]
    pub sizes: Vec<Sizes>,
    /// Take the sizes of frames, and the gaps between them, from a capture
    #[arg(long, value_name = "FILE", conflicts_with = "sizes")]
    pub pcap: Option<PathBuf>,
    #[command(flatten)]
    pub device: SimDeviceArgs,
    /// When frames come to each core: one-by-one, always[:BURST], poisson:RATE, bursts:RATE:BURST, or recorded (with --pcap)
    ///
    /// one-by-one: the next frame when the one before has left (latency alone). always: the core is never without a frame,
    /// and hands over BURST at a time. RATE is in frames a second for each core, as 250K or 2M; an open loop, whose latency
    /// counts from the arrival. recorded: with the gaps of the capture, and the default there.
    #[arg(long, value_delimiter = ',', value_name = "WHEN", value_parser = when)]
    pub arrivals: Vec<When>,
    /// Cores that send, each by a queue of its own; all share the link
    #[arg(long, value_delimiter = ',', default_values_t = [1u16], value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    pub cores: Vec<u16>,
    /// NICs behind one switch, which the cores take in turn, each by a queue of its own
    ///
    /// Core i of N devices sends by device i mod N; where there are fewer cores than devices, as many cores as devices send.
    /// Several need the platform's [switch]: in its file, or by --set switch.latency_ns=NS --set switch.ports=PORTS, of which
    /// one leads to the host. It stands behind the first half of the hops; each device has the other half, and a wire, for
    /// itself. One device has no switch before it, and is the platform as its file says. Figures are of all devices together;
    /// CSV and JSON have the Gbit/s of each. `coherent` has one device.
    #[arg(long, value_delimiter = ',', default_values_t = [1u16], value_name = "N", value_parser = clap::value_parser!(u16).range(1..=16))]
    pub devices: Vec<u16>,
    /// Where `mmio` fences; the others have no place for a fence and are not repeated
    #[arg(long, value_delimiter = ',', default_values_t = [FencePolicy::None], value_name = "POLICY", value_parser = policy())]
    pub fences: Vec<FencePolicy>,
    /// Where the data lie that a device reads: several hold together
    ///
    /// warm: in the last-level cache of its socket. cold: in memory (root_complex.cache_miss_ns more). remote: on the other
    /// socket (numa_ns more). translated: behind a translation that is not cached (iommu_ns more). A platform that does not
    /// give the parameter has n/a; --set gives it.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "warm",
        value_name = "WHERE",
        value_enum,
        hide_possible_values = true
    )]
    pub data: Vec<Placed>,
    /// Split and permute stores with this seed, within what each interface declares it bears
    #[arg(long, value_name = "SEED")]
    pub adversary: Option<u64>,
    /// Frames of each core and point; a tenth more are sent before counting begins
    #[arg(long, default_value_t = 10_000, value_name = "N", value_parser = clap::value_parser!(u64).range(10..=1_000_000_000))]
    pub frames: u64,
    /// Seed of everything that is random
    #[arg(long, default_value_t = 1, value_name = "SEED")]
    pub seed: u64,
    /// Points at a time [default: as many as there are CPUs]
    #[arg(long, short, value_name = "N")]
    pub jobs: Option<std::num::NonZeroUsize>,
    /// Do only every Nth point, from the Ith on: 1/4, 2/4, ...
    #[arg(long, value_name = "I/N", value_parser = shard)]
    pub shard: Option<Shard>,
    /// Append each finished point to this file, and do not repeat those that are in it
    #[arg(long, value_name = "FILE")]
    pub resume: Option<PathBuf>,
    /// Put the results of shards together instead: files of --resume or --json
    #[arg(long, num_args = 1.., value_name = "FILE", conflicts_with_all = [
        "platform", "set", "interface", "sizes", "pcap", "arrivals", "cores", "devices", "fences", "adversary", "data", "frames", "seed",
        "device", "clock_mhz", "jobs", "shard", "resume",
    ])]
    pub merge: Vec<PathBuf>,
    /// Write the results as CSV
    #[arg(long, value_name = "FILE")]
    pub csv: Option<PathBuf>,
    /// Write the results as JSON; `-` for standard output, without tables
    #[arg(long, value_name = "FILE")]
    pub json: Option<PathBuf>,
    /// Write a page with plots, tables and raw data
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Where data lie that a device reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Placed {
    /// In the last-level cache.
    Warm,
    /// In memory.
    Cold,
    /// On the other socket.
    Remote,
    /// Behind a translation that is not cached.
    Translated,
}

/// One interface, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Chosen {
    One(Interface),
    All,
}

fn interfaces() -> impl TypedValueParser<Value = Chosen> {
    let names = Interface::ALL.map(Interface::name).into_iter().chain(["all"]);
    PossibleValuesParser::new(names).map(|name| name.parse::<Interface>().map_or(Chosen::All, Chosen::One))
}

/// A parameter and the values that it is given in turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// Section and name.
    pub key: String,
    /// Values, as text.
    pub values: Vec<String>,
}

impl std::str::FromStr for Change {
    type Err = String;

    fn from_str(text: &str) -> Result<Change, String> {
        let (key, values) =
            text.split_once('=').ok_or("write KEY=VALUE, as core.wc_buffers=12 or core.wc_buffers=4,8,12")?;
        let values: Vec<String> = values.split(',').map(|value| value.trim().to_owned()).collect();
        if values.iter().any(String::is_empty) {
            return Err("a value is missing".to_owned());
        }
        Ok(Change { key: key.trim().to_owned(), values })
    }
}

/// Sizes of frames that one word of `--sizes` stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sizes(pub Vec<u32>);

fn sizes(text: &str) -> Result<Sizes, String> {
    let size = |text: &str| -> Result<u32, String> {
        let bytes: u32 = text.trim().parse().map_err(|_| format!("{text:?} is no number of bytes"))?;
        if (MIN_FRAME_BYTES..=MAX_FRAME_BYTES).contains(&(bytes as usize)) {
            return Ok(bytes);
        }
        Err(format!("a frame has {MIN_FRAME_BYTES} to {MAX_FRAME_BYTES} bytes"))
    };
    let Some((first, rest)) = text.split_once("..") else { return Ok(Sizes(vec![size(text)?])) };
    let (last, step) = match rest.split_once(':') {
        Some((last, step)) => (last, Some(step)),
        None => (rest, None),
    };
    let (first, last) = (size(first)?, size(last)?);
    if first > last {
        return Err(format!("{first} is more than {last}"));
    }
    if let Some(step) = step {
        let step = step.parse::<u32>().ok().filter(|step| *step > 0);
        let step = step.ok_or("a step is a number of bytes above 0")?;
        return Ok(Sizes((first..=last).step_by(step as usize).collect()));
    }
    let mut sizes: Vec<u32> =
        std::iter::successors(Some(first), |size| Some(size * 2)).take_while(|size| *size < last).collect();
    sizes.push(last);
    Ok(Sizes(sizes))
}

/// When frames come, by name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum When {
    OneByOne,
    /// Always, so many at a time.
    Always(usize),
    /// At random.
    Poisson(f64),
    /// In bursts, at random.
    Bursts(f64, u32),
    /// As in the capture.
    Recorded,
}

fn when(text: &str) -> Result<When, String> {
    let mut words = text.split(':');
    let name = words.next().unwrap_or_default();
    let rest: Vec<&str> = words.collect();
    let burst = |word: &str| {
        word.parse::<u32>().ok().filter(|n| (1..=4096).contains(n)).ok_or("a burst has 1 to 4096 frames")
    };
    Ok(match (name, rest.as_slice()) {
        ("one-by-one", []) => When::OneByOne,
        ("always", []) => When::Always(1),
        ("always", [frames]) => When::Always(burst(frames)? as usize),
        ("poisson", [per_second]) => When::Poisson(rate(per_second)?),
        ("bursts", [per_second, frames]) => When::Bursts(rate(per_second)?, burst(frames)?),
        ("recorded", []) => When::Recorded,
        _ => {
            return Err(
                "write one-by-one, always[:BURST], poisson:RATE, bursts:RATE:BURST or recorded".to_owned()
            );
        }
    })
}

/// Frames a second: a number, with K, M or G.
fn rate(text: &str) -> Result<f64, String> {
    let (number, factor) = match text.as_bytes().last() {
        Some(b'K' | b'k') => (&text[..text.len() - 1], 1e3),
        Some(b'M') => (&text[..text.len() - 1], 1e6),
        Some(b'G') => (&text[..text.len() - 1], 1e9),
        _ => (text, 1.0),
    };
    let rate = number.parse::<f64>().ok().map(|number| number * factor);
    rate.filter(|rate| (1.0..=1e12).contains(rate))
        .ok_or_else(|| format!("{text:?} is no rate; write frames a second, as 250K or 2M"))
}

impl std::fmt::Display for When {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            When::OneByOne => out.write_str("one-by-one"),
            When::Always(burst) => write!(out, "always:{burst}"),
            When::Poisson(rate) => write!(out, "poisson:{rate}"),
            When::Bursts(rate, burst) => write!(out, "bursts:{rate}:{burst}"),
            When::Recorded => out.write_str("recorded"),
        }
    }
}

/// Every so manyth point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    /// Number of the part, from 1.
    pub number: u64,
    pub of: u64,
}

impl Shard {
    /// Whether a point is in it.
    pub fn has(self, index: u64) -> bool {
        index % self.of == self.number - 1
    }
}

fn shard(text: &str) -> Result<Shard, String> {
    let parse = || {
        let (number, of) = text.split_once('/')?;
        Some(Shard { number: number.parse().ok()?, of: of.parse().ok()? })
    };
    parse()
        .filter(|shard| shard.number >= 1 && shard.number <= shard.of)
        .ok_or_else(|| "write I/N with I from 1 to N, as 1/4".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_numbers_and_ranges() {
        let of = |text: &str| sizes(text).map(|sizes| sizes.0);
        assert_eq!(of("64"), Ok(vec![64]));
        assert_eq!(of("256..1500"), Ok(vec![256, 512, 1024, 1500]));
        assert_eq!(of("64..64"), Ok(vec![64]));
        assert_eq!(of("60..68:4"), Ok(vec![60, 64, 68]));
        for wrong in ["", "13", "9217", "64..", "128..64", "64..128:0", "many"] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn arrivals_say_themselves_again() {
        for text in ["one-by-one", "always:16", "poisson:250000", "bursts:2000000:8", "recorded"] {
            assert_eq!(when(text).unwrap().to_string(), text);
        }
        assert_eq!(when("poisson:250K"), Ok(When::Poisson(250e3)));
        assert_eq!(when("always"), Ok(When::Always(1)));
        for wrong in ["", "poisson", "poisson:0", "poisson:fast", "always:0", "bursts:2M", "one-by-one:2"] {
            assert!(when(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn shards_have_each_point_once() {
        let shards: Vec<Shard> = ["1/3", "2/3", "3/3"].iter().map(|text| shard(text).unwrap()).collect();
        for index in 0..10 {
            assert_eq!(shards.iter().filter(|shard| shard.has(index)).count(), 1);
        }
        for wrong in ["", "0/3", "4/3", "1/0", "1", "a/b"] {
            assert!(shard(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_change_has_a_key_and_values() {
        let change: Change = "core.wc_buffers=4, 8".parse().unwrap();
        assert_eq!((change.key.as_str(), change.values), ("core.wc_buffers", vec!["4".into(), "8".into()]));
        assert!("core.wc_buffers".parse::<Change>().is_err() && "a=1,".parse::<Change>().is_err());
    }
}

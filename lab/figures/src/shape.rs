//! Shapes: what words say of curves whose points are lost, as tests on our own curves.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::quantity::{FRAMES_A_CALL, Fence, Interface, Quantity, Target};
use crate::simulator::{NotModelled, Replacement, Setting, Simulator};

/// A property of a curve that the source states in words. Without a machine of its own a shape is about the platform
/// its entry stands under.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "kebab-case", deny_unknown_fields)]
pub enum Shape {
    /// Transmit latency rises once a line of 64 bytes and nowhere else; that of another interface rises in smaller steps.
    Staircase {
        /// Platform of the staircase.
        machine: String,
        interface: Interface,
        /// Platform of the smooth curve.
        smooth_machine: String,
        smooth_interface: Interface,
    },
    /// Frame rate is better than a rival's for small frames, nearly its own for large ones, and drops behind each line.
    Converges {
        /// Platform.
        machine: String,
        interface: Interface,
        /// Platform of the rival.
        rival_machine: String,
        rival: Interface,
        /// Frames a doorbell of the rival.
        rival_burst: u32,
        /// Parameters of its platform that are replaced.
        #[serde(default)]
        rival_set: BTreeMap<String, f64>,
    },
    /// The rate of unfenced stores is the same at all sizes and above a rate.
    FlatAbove {
        /// The rate.
        gbps: f64,
        /// Least size.
        from_bytes: u64,
        /// Greatest size.
        to_bytes: u64,
    },
    /// The rate of unfenced stores is that of 64 KiB from a size on.
    FlatFrom {
        /// The size.
        bytes: u64,
    },
    /// Frames of a size, and none half as large, reach a rate.
    SaturatesFrom {
        interface: Interface,
        /// The rate.
        gbps: f64,
        /// The size.
        bytes: u64,
    },
    /// The curve of another platform, each as a share of its own greatest rate.
    ScaledLike {
        /// The other platform.
        machine: String,
    },
    /// Rate and time of copies are equal on some platforms below a size.
    EqualBelow {
        /// The size.
        bytes: u64,
        /// The platforms.
        machines: Vec<String>,
    },
    /// The rate of copies is equal on some platforms at every size.
    Alike {
        /// The platforms.
        machines: Vec<String>,
    },
}

/// Whether a shape holds, and by which figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    pub holds: bool,
    /// The figures, in one clause.
    pub evidence: String,
}

/// Two rates are called equal when they differ by at most this share.
const EQUAL: f64 = 0.05;
/// Two curves are called similar when their shares differ by at most this.
const SIMILAR: f64 = 0.10;
/// Greatest message of the rate curves.
const LARGE_BYTES: u64 = 65536;
/// A line, whose size is the step of a staircase.
const LINE_BYTES: u64 = 64;

type Tested = Result<Finding, NotModelled>;

impl Shape {
    /// Every platform that the shape names.
    pub fn machines(&self) -> Vec<String> {
        match self {
            Shape::Staircase { machine, smooth_machine, .. } => vec![machine.clone(), smooth_machine.clone()],
            Shape::Converges { machine, rival_machine, .. } => vec![machine.clone(), rival_machine.clone()],
            Shape::ScaledLike { machine } => vec![machine.clone()],
            Shape::EqualBelow { machines, .. } | Shape::Alike { machines } => machines.clone(),
            Shape::FlatAbove { .. } | Shape::FlatFrom { .. } | Shape::SaturatesFrom { .. } => Vec::new(),
        }
    }

    /// The curve that the rival of a shape has, if it has one of frames: platform, quantity at a size, replaced parameters.
    pub fn rival(&self, bytes: u64) -> Option<(&str, Quantity, Vec<Replacement>)> {
        let Shape::Converges { rival_machine, rival, rival_burst, rival_set, .. } = self else { return None };
        let quantity = Quantity::FrameRate { interface: *rival, bytes, cores: 1, burst: *rival_burst };
        let set = rival_set
            .iter()
            .map(|(key, value)| Replacement { key: key.clone(), value: Setting::Number(*value) });
        Some((rival_machine, quantity, set.collect()))
    }

    /// The rival's rate for a small and for a large frame.
    fn rival_rates(&self, simulator: &mut dyn Simulator) -> Result<[f64; 2], NotModelled> {
        let mut rate = |bytes| {
            let (machine, quantity, set) =
                self.rival(bytes).ok_or_else(|| NotModelled::because("a shape without a rival"))?;
            simulator.measure_with(machine, &set, &quantity)
        };
        Ok([rate(SMALL_FRAME)?, rate(LARGE_FRAME)?])
    }

    /// Tests the shape; `machine` is the platform of its entry.
    pub fn test(&self, simulator: &mut dyn Simulator, machine: Option<&str>) -> Tested {
        let own = machine.ok_or_else(|| NotModelled::because("no platform"));
        match self {
            Shape::Staircase { machine, interface, smooth_machine, smooth_interface } => {
                staircase(simulator, (machine, *interface), (smooth_machine, *smooth_interface))
            }
            Shape::Converges { machine, interface, .. } => {
                let rates = self.rival_rates(simulator)?;
                converges(simulator, (machine, *interface), rates)
            }
            Shape::FlatAbove { gbps, from_bytes, to_bytes } => {
                let rates =
                    store_rates(simulator, own?, &powers_of_two(*from_bytes, *to_bytes), Fence::None)?;
                let (least, most) = extremes(&rates);
                let holds = least > *gbps && spread(least, most) <= SIMILAR;
                Ok(Finding {
                    holds,
                    evidence: format!("{least:.1} to {most:.1} Gbit/s, above {gbps:.0} asked"),
                })
            }
            Shape::FlatFrom { bytes } => {
                let rates = store_rates(simulator, own?, &powers_of_two(*bytes, LARGE_BYTES), COPY)?;
                let (least, most) = extremes(&rates);
                let holds = spread(least, most) <= EQUAL;
                Ok(Finding { holds, evidence: format!("{least:.2} to {most:.2} Gbit/s from {bytes} B on") })
            }
            Shape::SaturatesFrom { interface, gbps, bytes } => {
                saturates(simulator, own?, *interface, *gbps, *bytes)
            }
            Shape::ScaledLike { machine } => scaled_like(simulator, own?, machine),
            Shape::EqualBelow { bytes, machines } => {
                equal(simulator, machines, &powers_of_two(8, bytes - 1), true)
            }
            Shape::Alike { machines } => equal(simulator, machines, &powers_of_two(8, LARGE_BYTES), false),
        }
    }
}

/// Powers of two in a range, both ends included.
pub fn powers_of_two(from: u64, to: u64) -> Vec<u64> {
    std::iter::successors(Some(from.next_power_of_two()), |size| size.checked_mul(2))
        .take_while(|size| *size <= to)
        .collect()
}

/// Copies of the SISCI API end with a flush of the write-combining buffers.
const COPY: Fence = Fence::PerMessage;

fn store_rate(bytes: u64, fence: Fence) -> Quantity {
    Quantity::StoreRate { bytes, fence, target: Target::Window }
}

fn store_rates(
    simulator: &mut dyn Simulator,
    machine: &str,
    sizes: &[u64],
    fence: Fence,
) -> Result<Vec<f64>, NotModelled> {
    sizes.iter().map(|bytes| simulator.measure(machine, &store_rate(*bytes, fence))).collect()
}

fn extremes(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(least, most), v| (least.min(*v), most.max(*v)))
}

/// How far apart two values are, as a share of the greater.
fn spread(least: f64, most: f64) -> f64 {
    (most - least) / most
}

fn staircase(simulator: &mut dyn Simulator, stairs: (&str, Interface), smooth: (&str, Interface)) -> Tested {
    let sizes: Vec<u64> = (LINE_BYTES..=6 * LINE_BYTES).step_by(8).collect();
    let mut rises = |(machine, interface): (&str, Interface)| -> Result<Vec<f64>, NotModelled> {
        let times: Vec<f64> = sizes
            .iter()
            .map(|bytes| simulator.measure(machine, &Quantity::TransmitLatency { interface, bytes: *bytes }))
            .collect::<Result<_, _>>()?;
        Ok(times.windows(2).map(|pair| pair[1] - pair[0]).collect())
    };
    let (stairs, smooth) = (rises(stairs)?, rises(smooth)?);
    let step = extremes(&stairs).1;
    // A rise is a stair when it is more than a tenth of the greatest; between stairs nothing may happen.
    let places: Vec<usize> = (0..stairs.len()).filter(|place| stairs[*place] > step / 10.0).collect();
    let every_line = places.windows(2).all(|pair| 8 * (pair[1] - pair[0]) as u64 == LINE_BYTES);
    let smooth_step = extremes(&smooth).1;
    let holds = step > 0.0 && places.len() >= 5 && every_line && smooth_step < step / 2.0;
    let evidence = format!(
        "{} steps of at most {step:.0} ns from {} to {} B; the other curve rises by at most {smooth_step:.0} ns each 8 B",
        places.len(),
        sizes[0],
        sizes[sizes.len() - 1],
    );
    Ok(Finding { holds, evidence })
}

/// Frames at the ends of the curves of throughput.
const SMALL_FRAME: u64 = 64;
const LARGE_FRAME: u64 = 1496;

fn converges(simulator: &mut dyn Simulator, ours: (&str, Interface), rival_rates: [f64; 2]) -> Tested {
    let mut rate = |(machine, interface): (&str, Interface), bytes| {
        let quantity = Quantity::FrameRate { interface, bytes, cores: 1, burst: FRAMES_A_CALL };
        simulator.measure(machine, &quantity)
    };
    let small = rate(ours, SMALL_FRAME)? / rival_rates[0];
    let large = rate(ours, LARGE_FRAME)? / rival_rates[1];
    // 8 bytes of each frame's last line are the signature: a frame of 56 + 64 n fills its lines.
    let mut drops = 0;
    for full in (1..=8).map(|lines| lines * LINE_BYTES - 8) {
        drops += u32::from(rate(ours, full)? > rate(ours, full + 8)?);
    }
    let holds = small > 1.0 && (1.0 - EQUAL * 3.0..small).contains(&large) && drops == 8;
    let evidence = format!(
        "{small:.2} times the rival's rate at {SMALL_FRAME} B, {large:.2} at {LARGE_FRAME} B; it drops behind {drops} of 8 lines"
    );
    Ok(Finding { holds, evidence })
}

fn saturates(
    simulator: &mut dyn Simulator,
    machine: &str,
    interface: Interface,
    gbps: f64,
    bytes: u64,
) -> Tested {
    let quantity = |bytes| Quantity::FrameRate { interface, bytes, cores: 1, burst: FRAMES_A_CALL };
    let mut rate = |bytes| simulator.measure(machine, &quantity(bytes));
    let (there, half) = (rate(bytes)?, rate(bytes / 2)?);
    let enough = (1.0 - EQUAL) * gbps;
    let evidence =
        format!("{there:.1} Gbit/s at {bytes} B, {half:.1} at half of it; saturated is {enough:.0}");
    Ok(Finding { holds: there >= enough && half < enough, evidence })
}

fn scaled_like(simulator: &mut dyn Simulator, own: &str, other: &str) -> Tested {
    let sizes = powers_of_two(64, LARGE_BYTES);
    let ours = store_rates(simulator, own, &sizes, COPY)?;
    let theirs = store_rates(simulator, other, &sizes, COPY)?;
    let (our_peak, their_peak) = (extremes(&ours).1, extremes(&theirs).1);
    let apart =
        ours.iter().zip(&theirs).map(|(a, b)| (a / our_peak - b / their_peak).abs()).fold(0.0, f64::max);
    let evidence = format!(
        "shares of the peaks ({our_peak:.1} and {their_peak:.1} Gbit/s) are at most {:.0} % apart",
        100.0 * apart
    );
    Ok(Finding { holds: apart <= SIMILAR && our_peak > their_peak, evidence })
}

fn equal(simulator: &mut dyn Simulator, machines: &[String], sizes: &[u64], times_too: bool) -> Tested {
    let mut worst = (0.0, 0);
    for bytes in sizes {
        let mut quantities = vec![store_rate(*bytes, COPY)];
        if times_too {
            quantities.push(Quantity::StoreTime { bytes: *bytes, fence: COPY });
        }
        for quantity in quantities {
            let values: Vec<f64> = machines
                .iter()
                .map(|machine| simulator.measure(machine, &quantity))
                .collect::<Result<_, _>>()?;
            let (least, most) = extremes(&values);
            if spread(least, most) > worst.0 {
                worst = (spread(least, most), *bytes);
            }
        }
    }
    let evidence =
        format!("{} platforms are at most {:.1} % apart (at {} B)", machines.len(), 100.0 * worst.0, worst.1);
    Ok(Finding { holds: worst.0 <= EQUAL, evidence })
}

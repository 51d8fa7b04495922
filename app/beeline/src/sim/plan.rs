//! Which points a sweep has, in which order, and what each is called.

use std::hash::Hasher;

use beeline_experiments::{Arrivals, Data, Experiment, LabError, Measured, NicKind, Traffic, check_devices};
use beeline_platforms::Platform;
use beeline_spec::Interface;
use beeline_window::FencePolicy;
use siphasher::sip::SipHasher13;

use super::args::{Change, Chosen, Placed, SimArgs, When};
use super::capture::Capture;
use super::row::{Figures, Row};
use crate::failure::Failure;
use crate::options::DeviceName;
use crate::platforms::{find, refused};

/// A sweep: every combination of what was asked for.
pub struct Plan {
    machines: Vec<Machine>,
    capture: Option<Capture>,
    nic: NicKind,
    device: String,
    adversary: Option<u64>,
    data: Data,
    frames: u64,
    seed: u64,
    points: Vec<Point>,
    keys: Vec<String>,
    /// Tells sweeps apart.
    name: String,
}

/// A platform and what was changed of it.
struct Machine {
    platform: Platform,
    set: String,
    /// Tells machines apart that have the same name: over all parameters.
    digest: u64,
}

/// Parameters that differ between the points of a sweep.
#[derive(Clone, Copy)]
struct Point {
    machine: usize,
    interface: Interface,
    fences: Option<FencePolicy>,
    cores: u16,
    devices: u16,
    arrivals: When,
    /// Size of the frames; `None` for those of a capture.
    frame_bytes: Option<u32>,
}

impl Plan {
    /// Every point that the options ask for.
    ///
    /// # Errors
    /// A platform or a capture cannot be used, or the options contradict each other.
    pub fn new(args: &SimArgs) -> Result<Plan, Failure> {
        let capture = args.pcap.as_deref().map(Capture::read).transpose()?;
        let arrivals = arrivals(args, capture.as_ref())?;
        let mut plan = Plan {
            machines: machines(&args.platform, &args.set)?,
            capture,
            nic: args.device.nic()?,
            device: match args.device.device {
                DeviceName::Model => "model".to_owned(),
                DeviceName::Rtl => format!("rtl at {} MHz", args.device.clock_mhz),
            },
            adversary: args.adversary,
            data: placed(args)?,
            frames: args.frames,
            seed: args.seed,
            points: Vec::new(),
            keys: Vec::new(),
            name: String::new(),
        };
        refuse_impossible(args, plan.data, &plan.machines)?;
        let sizes: Vec<Option<u32>> = match plan.capture {
            Some(_) => vec![None],
            None => args.sizes.iter().flat_map(|sizes| &sizes.0).copied().map(Some).collect(),
        };
        for machine in 0..plan.machines.len() {
            for arrivals in &arrivals {
                for (devices, cores) in device_and_core_counts(args) {
                    for (interface, fences) in interface_variants(args) {
                        for frame_bytes in &sizes {
                            let (arrivals, frame_bytes) = (*arrivals, *frame_bytes);
                            plan.add(Point {
                                machine,
                                interface,
                                fences,
                                cores,
                                devices,
                                arrivals,
                                frame_bytes,
                            });
                        }
                    }
                }
            }
        }
        let mut hasher = SipHasher13::new();
        plan.keys.iter().for_each(|key| hasher.write(key.as_bytes()));
        plan.name = format!("{:016x}", hasher.finish());
        Ok(plan)
    }

    /// Adds a point, unless it was asked for before.
    fn add(&mut self, point: Point) {
        let key = self.key(&point);
        if !self.keys.contains(&key) {
            self.points.push(point);
            self.keys.push(key);
        }
    }

    /// Returns the number of points.
    pub fn len(&self) -> u64 {
        self.points.len() as u64
    }

    /// The place of the point with this key.
    pub fn find(&self, key: &str) -> Option<u64> {
        self.keys.iter().position(|known| known == key).map(|index| index as u64)
    }

    /// A row of an earlier sweep as one of this, if it has the point.
    pub fn adopt(&self, row: Row) -> Option<Row> {
        let index = self.find(&row.key)?;
        Some(Row { sweep: self.name.clone(), index, points: self.len(), ..row })
    }

    /// Returns the label of a point for the progress bar.
    pub fn label(&self, index: u64) -> String {
        let point = &self.points[index as usize];
        let size = point.frame_bytes.map_or("pcap".to_owned(), |bytes| format!("{bytes} B"));
        format!("{}, {size}", point.interface)
    }

    /// Runs a point.
    pub fn run(&self, index: u64) -> Row {
        let point = &self.points[index as usize];
        let experiment = self.experiment(point);
        let outcome = experiment.measure();
        self.row(index, &experiment, outcome)
    }

    fn experiment(&self, point: &Point) -> Experiment<'_> {
        let gaps = self.capture.as_ref().and_then(|capture| capture.gaps.clone());
        let arrivals = match point.arrivals {
            When::OneByOne => Arrivals::OneByOne,
            When::Always(burst) => Arrivals::Always { burst },
            When::Poisson(per_second) => Arrivals::Poisson { per_second },
            When::Bursts(per_second, burst) => Arrivals::Bursts { per_second, burst },
            When::Recorded => Arrivals::Recorded { gaps: gaps.unwrap_or_else(|| [].into()) },
        };
        let sizes = match (point.frame_bytes, &self.capture) {
            (None, Some(capture)) => capture.sizes.clone(),
            (bytes, _) => bytes.into_iter().map(|bytes| bytes as usize).collect(),
        };
        let warm_up = self.frames / 10;
        Experiment {
            platform: &self.machines[point.machine].platform,
            nic: self.nic,
            interface: point.interface,
            fences: point.fences.unwrap_or(FencePolicy::None),
            data: self.data,
            adversary: self.adversary,
            cores: point.cores,
            devices: point.devices,
            traffic: Traffic { sizes, frames: self.frames + warm_up, arrivals },
            warm_up,
            seed: self.seed,
        }
    }

    fn row(
        &self,
        index: u64,
        experiment: &Experiment<'_>,
        outcome: Result<Measured, beeline_experiments::LabError>,
    ) -> Row {
        let point = &self.points[index as usize];
        let machine = &self.machines[point.machine];
        let (figures, why_not) = match outcome {
            Ok(measured) => (Some(Figures::of(experiment, &measured)), None),
            Err(error) => (None, Some(error.to_string())),
        };
        Row {
            sweep: self.name.clone(),
            index,
            points: self.len(),
            key: self.keys[index as usize].clone(),
            platform: machine.platform.name.clone(),
            set: machine.set.clone(),
            device: self.device.clone(),
            interface: point.interface.name().to_owned(),
            fences: fences(point).to_owned(),
            adversary: self.adversary,
            cores: point.cores,
            devices: point.devices,
            arrivals: point.arrivals.to_string(),
            frame_bytes: match (point.frame_bytes, &self.capture) {
                (None, Some(capture)) => capture.mean_bytes(),
                (bytes, _) => f64::from(bytes.unwrap_or(0)),
            },
            capture: self.capture.as_ref().map(|capture| capture.name.clone()),
            frames: self.frames,
            seed: self.seed,
            figures,
            why_not,
        }
    }

    /// Everything that a result depends on.
    fn key(&self, point: &Point) -> String {
        let machine = &self.machines[point.machine];
        let adversary = self.adversary.map_or("none".to_owned(), |seed| seed.to_string());
        let frame = match (point.frame_bytes, &self.capture) {
            (None, Some(capture)) => format!("pcap:{:016x}", capture.digest),
            (bytes, _) => bytes.unwrap_or(0).to_string(),
        };
        let Data { is_cold, is_remote, is_translated } = self.data;
        let places = [(is_cold, ",cold"), (is_remote, ",remote"), (is_translated, ",translated")];
        let data: String = places.iter().filter(|(applies, _)| *applies).map(|(_, word)| *word).collect();
        // Keys of one device are those of before there could be several.
        let devices = if point.devices == 1 { String::new() } else { format!(" devices={}", point.devices) };
        format!(
            "version={} platform={}:{:016x} device={} interface={} fences={} adversary={adversary} cores={}{devices} arrivals={} \
             frame={frame} frames={} seed={}{}{data}",
            env!("CARGO_PKG_VERSION"),
            machine.platform.name,
            machine.digest,
            self.device,
            point.interface,
            fences(point),
            point.cores,
            point.arrivals,
            self.frames,
            self.seed,
            // Keys of data that are where a read is fastest are those of before there was a choice.
            if data.is_empty() { "" } else { " data=warm" },
        )
    }
}

fn fences(point: &Point) -> &'static str {
    point.fences.map_or("-", FencePolicy::name)
}

/// How many devices, and how many cores take them in turn: none of them is without one.
fn device_and_core_counts(args: &SimArgs) -> Vec<(u16, u16)> {
    let counts = |devices: u16| args.cores.iter().map(move |cores| (devices, devices.max(*cores)));
    args.devices.iter().copied().flat_map(counts).collect()
}

/// Each chosen interface, once for each fence policy if it has any.
fn interface_variants(args: &SimArgs) -> Vec<(Interface, Option<FencePolicy>)> {
    let interfaces = args.interface.iter().flat_map(|chosen| match chosen {
        Chosen::One(interface) => vec![*interface],
        Chosen::All => Interface::ALL.to_vec(),
    });
    let variants = interfaces.flat_map(|interface| match interface {
        Interface::Mmio => args.fences.iter().map(|policy| (interface, Some(*policy))).collect(),
        _ => vec![(interface, None)],
    });
    variants.collect()
}

/// Refuses what no machine of the sweep can do; where one can, the others say n/a.
fn refuse_impossible(args: &SimArgs, data: Data, machines: &[Machine]) -> Result<(), Failure> {
    let check = |check: &dyn Fn(&Platform) -> Result<(), LabError>| {
        let mut refusals = machines.iter().map(|machine| check(&machine.platform).err());
        let first = refusals.next().flatten();
        // Only where every other machine refuses too.
        first
            .filter(|_| refusals.all(|refusal| refusal.is_some()))
            .map_or(Ok(()), |error| Err(Failure::new("no machine of this sweep can do that").because(error)))
    };
    for devices in args.devices.iter().filter(|devices| **devices > 1) {
        check(&|platform| check_devices(platform, *devices))?;
    }
    check(&|platform| data.check(platform))
}

/// Returns the memory that holds the data of a sweep.
fn placed(args: &SimArgs) -> Result<Data, Failure> {
    let has = |place| args.data.contains(&place);
    if has(Placed::Warm) && has(Placed::Cold) {
        return Err(Failure::new("--data warm,cold: data are in a cache or they are not")
            .remedy("one of them; two runs for both"));
    }
    Ok(Data {
        is_cold: has(Placed::Cold),
        is_remote: has(Placed::Remote),
        is_translated: has(Placed::Translated),
    })
}

fn arrivals(args: &SimArgs, capture: Option<&Capture>) -> Result<Vec<When>, Failure> {
    let wanted = match (args.arrivals.as_slice(), capture) {
        ([], None) => vec![When::OneByOne, When::Always(1)],
        ([], Some(_)) => vec![When::Recorded],
        (given, _) => given.to_vec(),
    };
    if wanted.contains(&When::Recorded) {
        let Some(capture) = capture else {
            return Err(Failure::new("--arrivals recorded needs a capture").remedy("--pcap FILE beside it"));
        };
        if capture.gaps.is_none() {
            return Err(Failure::new(format!("{} does not say when its frames came", capture.name)).remedy(
                "--arrivals always, one-by-one or poisson:RATE with --pcap: then only its sizes count",
            ));
        }
    }
    Ok(wanted)
}

/// Every platform with every combination of changes.
fn machines(names: &[String], changes: &[Change]) -> Result<Vec<Machine>, Failure> {
    // Changes are made together: a section that a platform has not needs all of its parameters at once.
    let mut combinations: Vec<Vec<(&str, &str)>> = vec![Vec::new()];
    for change in changes {
        let mut longer = Vec::new();
        for before in &combinations {
            for value in &change.values {
                longer.push([&before[..], &[(&change.key, value)]].concat());
            }
        }
        combinations = longer;
    }
    let mut machines = Vec::new();
    for name in names {
        let platform = find(name)?;
        for combination in &combinations {
            let changed = platform.with_all(combination.iter().copied()).map_err(refused)?;
            let set: Vec<String> = combination.iter().map(|(key, value)| format!("{key}={value}")).collect();
            machines.push((changed, set.join(" ")));
        }
    }
    let digest = |platform: &Platform| {
        let mut hasher = SipHasher13::new();
        for row in platform.rows() {
            hasher.write(row.key.as_bytes());
            hasher.write(b"=");
            hasher.write(row.value.as_bytes());
            hasher.write(b"\n");
        }
        hasher.finish()
    };
    let machine = |(platform, set): (Platform, String)| Machine { digest: digest(&platform), platform, set };
    Ok(machines.into_iter().map(machine).collect())
}

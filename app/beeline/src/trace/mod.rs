//! `beeline trace`: a few frames in virtual time, packet by packet, as a protocol analyser on the link shows them
//! (kPIO+WC, figures 5 and 6).

pub mod args;
mod packets;
mod perfetto;

use std::path::Path;

use args::TraceArgs;
use beeline_experiments::{Arrivals, Experiment, Trace, Traffic};
use beeline_link_sim::des::Picoseconds;
use beeline_platforms::Platform;

use crate::choices::check_fences;
use crate::failure::Failure;
use crate::options::DeviceName;
use crate::out;
use crate::platforms::{find, refused};

/// Runs `beeline trace`.
pub fn run(args: &TraceArgs) -> Result<(), Failure> {
    check_fences(args.fences.policy, &[args.interface])?;
    let platform = platform(args)?;
    let arrivals = if args.back_to_back { Arrivals::Always { burst: 1 } } else { Arrivals::OneByOne };
    let experiment = Experiment {
        data: beeline_experiments::Data::default(),
        platform: &platform,
        nic: args.device.nic()?,
        interface: args.interface,
        fences: args.fences.policy,
        adversary: None,
        cores: 1,
        devices: 1,
        traffic: Traffic { sizes: vec![args.size as usize], frames: args.skip + args.frames, arrivals },
        warm_up: args.skip,
        seed: args.seed,
    };
    let trace = experiment
        .trace(args.link, Picoseconds::from_ns(args.tail_ns))
        .map_err(|error| Failure::new(format!("{} cannot be traced here", args.interface)).because(error))?;
    publish(args, &platform, &trace)
}

fn platform(args: &TraceArgs) -> Result<Platform, Failure> {
    let mut platform = find(&args.platform)?;
    for change in &args.set {
        let [value] = change.values.as_slice() else {
            return Err(Failure::new(format!(
                "--set {} has several values; a trace is of one machine",
                change.key
            ))
            .remedy("`beeline sim` sweeps"));
        };
        platform = platform.with(&change.key, value).map_err(refused)?;
    }
    Ok(platform)
}

fn publish(args: &TraceArgs, platform: &Platform, trace: &Trace) -> Result<(), Failure> {
    let write = |path: &Path, text: String| {
        std::fs::write(path, text).map_err(|error| {
            Failure::new(format!("cannot write {}", path.display()))
                .because(error)
                .remedy("name a file you may write")
        })
    };
    let failed = |error: serde_json::Error| Failure::new("cannot write JSON").because(error);
    let lines = packets::lines(trace);
    let device = match args.device.device {
        DeviceName::Model => String::new(),
        DeviceName::Rtl => format!(" with the RTL at {} MHz", args.device.clock_mhz),
    };
    let title = format!("{} B by {} on {}{device}", args.size, args.interface, platform.name);
    let is_stdout = args.json.as_deref() == Some(Path::new("-"));
    if !is_stdout {
        out::line(format_args!("{title}, link {} (simulated)", args.link))?;
        out::line(packets::table(&lines))?;
        for (number, frame) in (1..).zip(&trace.frames) {
            let ns = |at: Picoseconds| (at.0 as f64 - trace.t0.0 as f64) / 1000.0;
            out::line(format_args!(
                "frame {number}: called at T0 {:+.1} ns, returned {:+.1}, decided {:+.1}, first bit on the wire {:+.1}",
                ns(frame.begun_at),
                ns(frame.returned_at),
                ns(frame.decided_at),
                ns(frame.starts_at)
            ))?;
        }
    }
    if let Some(path) = &args.json {
        let document = serde_json::json!({"label": "simulated", "platform": platform.name, "packets": lines});
        let text = serde_json::to_string_pretty(&document).map_err(failed)?;
        if is_stdout { out::line(text)? } else { write(path, text + "\n")? }
    }
    if let Some(path) = &args.csv {
        write(path, packets::csv(&lines))?;
    }
    if let Some(path) = &args.perfetto {
        write(path, serde_json::to_string(&perfetto::events(trace, &lines, &title)).map_err(failed)?)?;
    }
    Ok(())
}

//! `beeline nic`: runs the NIC process until a signal, or the end of its standard input, stops it.

use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use beeline_domain::DomainConfig;
use beeline_nic_model::NicConfig;
use beeline_nic_process::{IdlePolicy, NicProcess, NicProcessConfig, Statistics, UplinkConfig};
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::args::{Idle, NicArgs};
use crate::failure::Failure;
use crate::private_nic::READY;

/// Runs `beeline nic`.
pub fn run(args: &NicArgs) -> Result<(), Failure> {
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|e| Failure::new("cannot catch the signals that end a NIC").because(e))?;
    }
    let mut process = NicProcess::new(config(args)).map_err(|e| {
        Failure::new(format!("cannot start NIC {} in domain {}", args.name, args.domain)).because(e)
    })?;
    if args.until_stdin_closes {
        watch_stdin(&stop)?;
    } else {
        eprintln!("NIC {} in domain {}; end it with Ctrl-C", process.service(), args.domain);
    }
    println!("{READY}");
    std::io::stdout().flush().map_err(|e| Failure::new("cannot say that the NIC is ready").because(e))?;
    let last = process.run(&stop).map_err(|e| Failure::new("the NIC stopped").because(e))?;
    if !args.until_stdin_closes {
        summarise(&last);
    }
    match last.uplinks.iter().find_map(|uplink| uplink.failure.as_ref().map(|why| (&uplink.name, why))) {
        Some((name, why)) => Err(Failure::new(format!("up-link {name} failed: {why}"))),
        None => Ok(()),
    }
}

fn config(args: &NicArgs) -> NicProcessConfig {
    let mut uplinks = Vec::new();
    uplinks.extend(args.pcap_in.clone().map(UplinkConfig::PcapIn));
    uplinks.extend(args.pcap_out.clone().map(UplinkConfig::PcapOut));
    uplinks.extend(args.tap.clone().map(UplinkConfig::Tap));
    let queues = u32::from(args.queues);
    NicProcessConfig {
        domain: DomainConfig { root: None, name: args.domain.clone() },
        service: args.name.clone(),
        max_ports: u32::from(args.ports),
        nic: NicConfig {
            queues,
            window_lines: args.window,
            span_lines: args.span,
            contexts: queues,
            pool_lines: queues.saturating_mul(args.window),
            blank: true,
            rx_lossless: true,
            ..NicConfig::default()
        },
        loop_back: args.loopback,
        is_lossless: args.lossless || args.pcap_out.is_some(),
        uplinks,
        idle: match args.idle {
            Idle::Spin => IdlePolicy::Spin,
            Idle::Yield => IdlePolicy::Yield { spin_rounds: 1_000 },
            Idle::Sleep => IdlePolicy::default(),
        },
        core: args.core,
        ..NicProcessConfig::default()
    }
}

/// Ends the NIC when whoever started it closes the pipe, which also happens when he is killed.
fn watch_stdin(stop: &Arc<AtomicBool>) -> Result<(), Failure> {
    let stop = Arc::clone(stop);
    let watch = move || {
        let mut nothing = [0; 64];
        while std::io::stdin().read(&mut nothing).is_ok_and(|count| count > 0) {}
        // Relaxed: the loop only has to see it some time, and no other memory goes with it.
        stop.store(true, Ordering::Relaxed);
    };
    std::thread::Builder::new()
        .name("stdin".to_owned())
        .spawn(watch)
        .map(|_| ())
        .map_err(|e| Failure::new("cannot start the thread that watches standard input").because(e))
}

fn summarise(last: &Statistics) {
    let uptime = Duration::from_millis(last.uptime_ms);
    let opened = last.rounds.ports_opened;
    eprintln!("stopped after {uptime:.1?}; {opened} ports were opened");
    for uplink in &last.uplinks {
        eprintln!("  {}: {} frames in, {} out", uplink.name, uplink.frames_in, uplink.frames_out);
    }
}

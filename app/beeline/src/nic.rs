//! `beeline nic`: runs the NIC process until a signal, or the end of its standard input, stops it.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use beeline_domain::DomainConfig;
use beeline_nic_process::{NicProcess, NicProcessConfig, Statistics, UplinkConfig};
use beeline_session::{Sizes, check_uplinks, end_with_stdin, process_config, run_ready};
use beeline_window::WaitPolicy;
use signal_hook::consts::{SIGINT, SIGTERM};

use crate::args::{Idle, NicArgs};
use crate::failure::Failure;

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
        end_with_stdin(&stop)?;
    } else {
        eprintln!("NIC {} in domain {}; end it with Ctrl-C", process.service(), args.domain);
    }
    let last = run_ready(&mut process, &stop)?;
    if !args.until_stdin_closes {
        summarise(&last);
    }
    Ok(check_uplinks(&last)?)
}

fn config(args: &NicArgs) -> NicProcessConfig {
    let mut uplinks = Vec::new();
    uplinks.extend(args.pcap_in.clone().map(UplinkConfig::PcapIn));
    uplinks.extend(args.pcap_out.clone().map(UplinkConfig::PcapOut));
    uplinks.extend(args.tap.clone().map(UplinkConfig::Tap));
    uplinks.extend(args.uplink.iter().map(|wire| UplinkConfig::Wire(Box::new(wire.clone()))));
    NicProcessConfig {
        domain: DomainConfig::named(&args.domain),
        service: args.name.clone(),
        loop_back: args.loopback,
        is_lossless: args.lossless,
        uplinks,
        idle: match args.idle {
            Idle::Spin => WaitPolicy::SPIN,
            Idle::Yield => WaitPolicy { spins: 1_000, yields: 0, sleep: None },
            Idle::Sleep => NicProcessConfig::default().idle,
        },
        core: args.core,
        ..process_config(sizes(args))
    }
}

fn sizes(args: &NicArgs) -> Sizes {
    Sizes {
        ports: args.ports.into(),
        queues: args.queues.into(),
        window_lines: args.window,
        span_lines: args.span,
    }
}

fn summarise(last: &Statistics) {
    let uptime = Duration::from_millis(last.uptime_ms);
    let opened = last.rounds.ports_opened;
    eprintln!("stopped after {uptime:.1?}; {opened} ports were opened");
    for uplink in &last.uplinks {
        eprintln!("  {}: {} frames in, {} out", uplink.name, uplink.frames_in, uplink.frames_out);
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::args::{Cli, Command};

    #[test]
    fn a_nic_that_is_told_nothing_is_the_one_that_is_measured() {
        let Command::Nic(args) = Cli::parse_from(["beeline", "nic"]).command else { unreachable!() };
        assert_eq!(sizes(&args), Sizes::default());
        assert_eq!(config(&args).uplinks, []);
    }

    #[test]
    fn every_up_link_on_the_command_line_is_one_of_the_nic() {
        let line = [
            "beeline",
            "nic",
            "--tap",
            "bee0",
            "--uplink",
            "auto:eth0",
            "--uplink",
            "af-packet:eth1,type=all",
        ];
        let Command::Nic(args) = Cli::parse_from(line).command else { unreachable!() };
        let wire = |text: &str| UplinkConfig::Wire(Box::new(text.parse().unwrap()));
        let expected = [UplinkConfig::Tap("bee0".into()), wire("auto:eth0"), wire("af-packet:eth1,type=all")];
        assert_eq!(config(&args).uplinks, expected);
        let refused = Cli::try_parse_from(["beeline", "nic", "--uplink", "af-xdp:eth0,queue=x"]).unwrap_err();
        assert!(refused.to_string().contains("`x` is no value of queue: a number"), "{refused}");
    }
}

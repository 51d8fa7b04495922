//! Being a NIC: what a private NIC's process does, and what `beeline nic` has in common with it.

use std::ffi::OsString;
use std::io::{Read, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use beeline_domain::DomainConfig;
use beeline_nic_model::NicConfig;
use beeline_nic_process::{NicProcess, NicProcessConfig, Statistics, UplinkConfig};
use beeline_window::WaitPolicy;
use clap::Args;

use crate::NicError;
use crate::nic_options::{NicOptions, READY, SERVICE};

/// Sizes of a NIC that is told none; `beeline nic` has an option for each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Ports at most.
    pub ports: u32,
    /// Queues of each port.
    pub queues: u32,
    /// Lines of each queue's window.
    pub window_lines: u32,
    /// Reorder span in lines.
    pub span_lines: u32,
}

impl Default for Sizes {
    fn default() -> Self {
        Sizes { ports: 16, queues: 4, window_lines: 4096, span_lines: 64 }
    }
}

/// A NIC process of these sizes: every queue can have its whole window at once, and a full receiver loses nothing.
pub fn process_config(sizes: Sizes) -> NicProcessConfig {
    let Sizes { ports, queues, window_lines, span_lines } = sizes;
    NicProcessConfig {
        max_ports: ports,
        nic: NicConfig {
            queues,
            window_lines,
            span_lines,
            contexts: queues,
            pool_lines: queues.saturating_mul(window_lines),
            blank: true,
            rx_lossless: true,
            ..NicConfig::default()
        },
        ..NicProcessConfig::default()
    }
}

/// For a NIC that is measured: it polls without pause while anything happens, and leaves its core to others some milliseconds
/// after the last frame, so that a floor can be measured on the same core in the same run ([`crate::PrivateNic::until_asleep`]).
const SPIN_THEN_SLEEP: WaitPolicy =
    WaitPolicy::new().spins(50_000).yields(0).sleep(Some(Duration::from_millis(100)));

/// What a private NIC's process is started with, by [`crate::PrivateNic`] only.
#[derive(Args, Clone, Debug, PartialEq, Eq)]
pub struct ServeArgs {
    /// Domain of the NIC.
    #[arg(long)]
    pub domain: String,
    #[command(flatten)]
    pub options: NicOptions,
}

impl ServeArgs {
    /// As they are written on a command line.
    pub(super) fn to_args(&self) -> Vec<OsString> {
        let NicOptions { loopback, lossless, spin, core, pcap_out, root } = &self.options;
        let mut args: Vec<OsString> = vec!["--domain".into(), (&self.domain).into()];
        let flags = [(loopback, "--loopback"), (lossless, "--lossless"), (spin, "--spin")];
        args.extend(flags.iter().filter(|(is_set, _)| **is_set).map(|(_, name)| name.into()));
        if let Some(core) = core {
            args.extend(["--core".into(), core.to_string().into()]);
        }
        if let Some(path) = pcap_out {
            args.extend(["--pcap-out".into(), path.into()]);
        }
        if let Some(path) = root {
            args.extend(["--root".into(), path.into()]);
        }
        args
    }

    fn config(&self) -> NicProcessConfig {
        let NicOptions { loopback, lossless, spin, core, pcap_out, root } = &self.options;
        NicProcessConfig {
            domain: DomainConfig { root: root.clone(), name: self.domain.clone() },
            service: SERVICE.to_owned(),
            loop_back: *loopback,
            is_lossless: *lossless || pcap_out.is_some(),
            uplinks: pcap_out.clone().map(UplinkConfig::PcapOut).into_iter().collect(),
            idle: if *spin { SPIN_THEN_SLEEP } else { WaitPolicy::new().spins(1_000).yields(0).sleep(None) },
            core: *core,
            ..process_config(Sizes::default())
        }
    }
}

/// Is a private NIC until standard input ends: what the hidden subcommand `private-nic` does.
///
/// # Errors
/// It cannot be one, or its up-link failed.
pub fn serve(args: &ServeArgs) -> Result<(), NicError> {
    let domain = args.domain.clone();
    let failed = |source| NicError::Serve { nic: SERVICE.to_owned(), domain, source: Box::new(source) };
    let mut process = NicProcess::new(args.config()).map_err(failed)?;
    let stop = Arc::new(AtomicBool::new(false));
    end_with_stdin(&stop)?;
    check_uplinks(&run_ready(&mut process, &stop)?)
}

/// Says that ports can reach the NIC, and runs it until it is stopped. Gives its last counters.
///
/// # Errors
/// Nobody can be told, or the core it is to run on cannot be had.
pub fn run_ready(process: &mut NicProcess, stop: &AtomicBool) -> Result<Statistics, NicError> {
    let said = writeln!(std::io::stdout(), "{READY}").and_then(|()| std::io::stdout().flush());
    said.map_err(|source| NicError::Talk { what: "say that the NIC is ready", source })?;
    process.run(stop).map_err(|source| NicError::Stopped(Box::new(source)))
}

/// Whether every up-link lasted.
///
/// # Errors
/// The first one that did not.
pub fn check_uplinks(last: &Statistics) -> Result<(), NicError> {
    let failed = last.uplinks.iter().find_map(|uplink| {
        let reason = uplink.failure.clone()?;
        Some(NicError::Uplink { uplink: uplink.name.clone(), reason })
    });
    failed.map_or(Ok(()), Err)
}

/// Has a NIC end when whoever started it closes the pipe, which also happens when he is killed.
///
/// # Errors
/// There is no thread to be had.
pub fn end_with_stdin(stop: &Arc<AtomicBool>) -> Result<(), NicError> {
    let stop = Arc::clone(stop);
    let watch = move || {
        let mut nothing = [0; 64];
        while std::io::stdin().read(&mut nothing).is_ok_and(|count| count > 0) {}
        // Relaxed: the loop only has to see it some time, and no other memory goes with it.
        stop.store(true, Ordering::Relaxed);
    };
    beeline_mmio::thread::start("beeline-stdin", watch)
        .map(|_| ())
        .map_err(|source| NicError::Talk { what: "start the thread that watches standard input", source })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: ServeArgs,
    }

    #[test]
    fn options_come_back_from_a_command_line() {
        let every = NicOptions {
            loopback: true,
            lossless: true,
            spin: true,
            core: Some(3),
            pcap_out: Some("a folder/out.pcap".into()),
            root: Some("/a folder".into()),
        };
        for options in [NicOptions::default(), NicOptions { spin: true, ..NicOptions::default() }, every] {
            let args = ServeArgs { domain: "private-1".to_owned(), options };
            let line = std::iter::once("program".into()).chain(args.to_args());
            assert_eq!(Line::parse_from(line).args, args);
        }
    }

    #[test]
    fn a_capture_is_whole_or_fails() {
        let options = NicOptions { pcap_out: Some("out.pcap".into()), ..NicOptions::default() };
        let config = ServeArgs { domain: "d".to_owned(), options }.config();
        assert!(config.is_lossless);
        assert!(config.validate().is_ok());
        let uplink = |failure: Option<&str>| beeline_nic_process::UplinkStatistics {
            name: "out.pcap".to_owned(),
            failure: failure.map(str::to_owned),
            ..Default::default()
        };
        let last = |uplinks| Statistics { uplinks, ..Statistics::default() };
        assert!(check_uplinks(&last(vec![uplink(None)])).is_ok());
        let error = check_uplinks(&last(vec![uplink(None), uplink(Some("disk full"))]));
        assert!(matches!(error, Err(NicError::Uplink { reason, .. }) if reason == "disk full"));
    }
}

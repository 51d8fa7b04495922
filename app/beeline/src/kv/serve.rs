//! `beeline kv serve`: a thread for each worker until a signal.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use beeline_domain::Domain;
use beeline_kv::{Hashing, KvOptions, KvService, KvStats};
use beeline_mmio::cpu::{PinError, pin_current_thread};
use beeline_mmio::thread::{self, Running};
use beeline_rpc::WaitPolicy;
use beeline_rpc::shm::{Server, ServerOptions, Worker};
use bytesize::ByteSize;
use signal_hook::consts::{SIGINT, SIGTERM};

use super::args::ServeArgs;
use crate::failure::Failure;
use crate::options::Idle;
use crate::{cores, out};

/// Looks at a window before a thread that yields or sleeps does so.
const SPINS: u32 = 10_000;

/// Runs `beeline kv serve`.
pub fn run(args: &ServeArgs) -> Result<(), Failure> {
    let (name, domain, workers) = (&args.name, &args.domain.name, usize::from(args.workers));
    if !args.core.is_empty() && args.core.len() != workers {
        let cores = args.core.len();
        let what = format!("{cores} cores for {workers} threads");
        return Err(Failure::new(what).remedy("name one core for each thread, or none"));
    }
    cores::check("--core", args.core.iter().copied())?;
    if args.preallocate {
        check_preallocation(args, std::fs::read_to_string("/proc/meminfo").ok().as_deref())?;
    }
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&stop))
            .map_err(|e| Failure::new("cannot catch the signals that end a store").because(e))?;
    }
    let failed = || Failure::new(format!("cannot serve store {name} in domain {domain}"));
    let services = KvService::open(workers, options(args)).map_err(|e| failed().because(e))?;
    let opened = Domain::open(&args.domain.config()).map_err(|e| failed().because(e))?;
    let allowed_uids = args.allow.uids.clone();
    let options = ServerOptions { workers, allowed_uids, ..ServerOptions::default() };
    let (server, workers) = Server::offer(&opened, name, options).map_err(|e| failed().because(e))?;
    out::remark(format_args!(
        "store {name} in domain {domain}, up to {}; end it with Ctrl-C",
        args.max_memory.display().iec()
    ));
    if let Some(invitation) = args.allow.invitation(&args.domain) {
        out::remark(invitation);
    }
    let cores = args.core.iter().copied().map(Some).chain(std::iter::repeat(None));
    let mut threads = Vec::new();
    for ((service, worker), core) in services.into_iter().zip(workers).zip(cores) {
        threads.push(start(service, worker, core, policy(args.idle), Arc::clone(&stop))?);
    }
    let mut last = KvStats::default();
    for thread in threads {
        last = thread.join().map_err(|_| Failure::new("a thread of the store panicked"))??;
    }
    drop(server);
    let KvStats { items, used_bytes, hits, misses, sets, deletes, .. } = last;
    let used = ByteSize(used_bytes).display().iec();
    out::remark(format_args!(
        "stopped with {items} items in {used}; {hits} hits, {misses} misses, {sets} sets, {deletes} deletes"
    ));
    Ok(())
}

/// Refuses what would have the kernel end a process for want of memory.
fn check_preallocation(args: &ServeArgs, meminfo: Option<&str>) -> Result<(), Failure> {
    if args.workers != 1 {
        let what =
            format!("--preallocate with {} threads, whose memory is taken piece by piece", args.workers);
        return Err(Failure::new(what).remedy("leave one of --preallocate and --workers out"));
    }
    let available =
        meminfo.into_iter().flat_map(str::lines).find_map(|line| line.strip_prefix("MemAvailable:"));
    let available_kib = available.and_then(|line| line.trim().trim_end_matches(" kB").parse::<u64>().ok());
    match available_kib.map(|kib| kib << 10).filter(|bytes| *bytes < args.max_memory.as_u64()) {
        Some(bytes) => {
            let [asked, left] =
                [args.max_memory, ByteSize(bytes)].map(|size| size.display().iec().to_string());
            Err(Failure::new(format!("--preallocate would take {asked}, and this machine has {left} left"))
                .remedy("a smaller --max-memory"))
        }
        None => Ok(()),
    }
}

fn options(args: &ServeArgs) -> KvOptions {
    KvOptions {
        max_memory_bytes: args.max_memory.as_u64(),
        max_value_bytes: args.max_value_bytes as usize,
        hashing: if args.secret_hash { Hashing::Secret } else { Hashing::Quick },
        is_preallocated: args.preallocate,
    }
}

fn policy(idle: Idle) -> WaitPolicy {
    match idle {
        Idle::Spin => WaitPolicy::SPIN,
        Idle::Yield => WaitPolicy::new().spins(SPINS).yields(0).sleep(None),
        Idle::Sleep => WaitPolicy::default(),
    }
}

/// Starts the thread of one worker; what the store has done when it ends.
fn start(
    mut service: KvService,
    mut worker: Worker,
    core: Option<usize>,
    policy: WaitPolicy,
    stop: Arc<AtomicBool>,
) -> Result<Running<Result<KvStats, Failure>>, Failure> {
    let work = move || {
        if let Some(core) = core {
            // The other threads are to end too.
            pin(core).inspect_err(|_| stop.store(true, std::sync::atomic::Ordering::Relaxed))?;
        }
        worker.run(&mut service, &policy, &stop);
        Ok(service.stats())
    };
    thread::start("beeline-kv", work)
        .map_err(|e| Failure::new("cannot start a thread of the store").because(e))
}

fn pin(core: usize) -> Result<(), Failure> {
    pin_current_thread(core).map_err(|error: PinError| {
        Failure::new(format!("cannot run on core {core}"))
            .because(error)
            .remedy("name a core of this machine with --core")
    })
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::kv::args::{KvAction, KvArgs};

    fn refusal(args: &str, meminfo: Option<&str>) -> Option<String> {
        let Command::Kv(KvArgs { action: KvAction::Serve(args) }) = Cli::parse_from(args.split(' ')).command
        else {
            panic!("no store is served")
        };
        check_preallocation(&args, meminfo).err().map(|failure| failure.to_string())
    }

    #[test]
    fn memory_that_is_not_there_is_not_taken() {
        let meminfo = Some("MemTotal:       9000000 kB\nMemAvailable:    1048575 kB\n");
        let refused = refusal("beeline kv serve --preallocate", meminfo).unwrap();
        assert!(refused.contains("would take 1.0 GiB"), "{refused}");
        assert_eq!(refusal("beeline kv serve --preallocate --max-memory 1023MiB", meminfo), None);
        assert_eq!(refusal("beeline kv serve --preallocate", None), None);
        let threads = refusal("beeline kv serve --preallocate --workers 2", None).unwrap();
        assert!(threads.contains("with 2 threads"), "{threads}");
    }
}

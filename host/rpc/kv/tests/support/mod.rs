//! A store in threads of this program, in a domain of its own for each test.
#![allow(dead_code, reason = "shared by tests of which each uses a part")]
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use beeline_domain::{Domain, DomainConfig};
use beeline_kv::{KvClient, KvOptions, KvService};
use beeline_rpc::shm::{ClientOptions, Server, ServerOptions};
use beeline_rpc::{Deadline, WaitPolicy};

/// Gives the core away at once: tests share theirs.
pub const POLITE: WaitPolicy =
    WaitPolicy::new().spins(100).yields(100).sleep(Some(Duration::from_millis(100)));

pub fn domain(folder: &Path) -> Domain {
    Domain::open(&DomainConfig { root: Some(folder.into()), name: "store".into() }).unwrap()
}

/// Far longer than any call takes.
pub fn watchdog() -> Option<Deadline> {
    Some(Deadline::after(Duration::from_secs(60)))
}

/// Memory that this process has, of its own and shared.
pub fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

pub struct Store {
    pub folder: tempfile::TempDir,
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<KvService>>,
    server: Option<Server>,
}

impl Store {
    pub fn serve(workers: usize, options: KvOptions) -> Self {
        Self::serve_in(tempfile::tempdir().unwrap(), workers, options)
    }

    pub fn serve_in(folder: tempfile::TempDir, workers: usize, options: KvOptions) -> Self {
        let services = KvService::open(workers, options).unwrap();
        let offered = ServerOptions { workers, ..ServerOptions::default() };
        let (server, workers) = Server::offer(&domain(folder.path()), "kv", offered).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let thread = |(mut service, mut worker): (KvService, beeline_rpc::shm::Worker)| {
            let stop = Arc::clone(&stop);
            std::thread::spawn(move || {
                worker.run(&mut service, &POLITE, &stop);
                service
            })
        };
        let threads = services.into_iter().zip(workers).map(thread).collect();
        Store { folder, stop, threads, server: Some(server) }
    }

    pub fn client(&self) -> KvClient {
        connect(self.folder.path())
    }

    pub fn rpc_client(&self) -> beeline_rpc::shm::Client {
        beeline_rpc::shm::Client::connect(&domain(self.folder.path()), "kv", options()).unwrap()
    }

    /// Ends the threads; what they counted.
    pub fn end(mut self) -> beeline_kv::KvStats {
        drop(self.server.take());
        self.stop.store(true, Ordering::Relaxed);
        let mut services = self.threads.drain(..).map(|thread| thread.join().unwrap());
        services.next_back().unwrap().stats()
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
    }
}

fn options() -> ClientOptions {
    ClientOptions { policy: POLITE, ..ClientOptions::default() }
}

pub fn connect(folder: &Path) -> KvClient {
    KvClient::connect(&domain(folder), "kv", options()).unwrap()
}

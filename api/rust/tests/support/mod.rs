//! A NIC on another thread of this process, for tests of ports.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use beeline_domain::DomainConfig;
use beeline_nic_process::{NicProcess, NicProcessConfig};

/// The domain below the folder that the NIC is in.
pub const DOMAIN: &str = "test";

/// A running NIC. Dropping it ends it.
pub struct Nic {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Nic {
    pub fn start(folder: &Path) -> Self {
        Self::run(Self::silent(folder))
    }

    /// A NIC whose ports can be opened, and that answers nothing until it runs.
    pub fn silent(folder: &Path) -> NicProcess {
        let config = DomainConfig { root: Some(folder.to_owned()), name: DOMAIN.to_owned() };
        NicProcess::new(NicProcessConfig { domain: config, ..Default::default() }).unwrap()
    }

    pub fn run(mut nic: NicProcess) -> Self {
        let stop = Arc::new(AtomicBool::new(false));
        let told = Arc::clone(&stop);
        let thread = std::thread::spawn(move || {
            nic.run(&told).unwrap();
        });
        Nic { stop, thread: Some(thread) }
    }

    /// Ends the NIC and waits until it has.
    pub fn end(&mut self) {
        // Relaxed: the NIC looks at nothing else that this thread wrote.
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            thread.join().unwrap();
        }
    }
}

impl Drop for Nic {
    fn drop(&mut self) {
        self.end();
    }
}

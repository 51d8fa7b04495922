//! A NIC process: started from a configuration, run until it is told to stop.

use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::channel;

use beeline_domain::{Domain, Offer, OfferOptions};
use beeline_ethernet::{Loopback, PcapIn, PcapOut, Tap, Uplink};
use beeline_link_vfio_user::{Function, FunctionStop};
use beeline_mmio::{cpu, membarrier, thread};
use beeline_nic_model::Nic;
use beeline_wait::Idle;
use rustix::event::{EventfdFlags, eventfd};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::departures::Departures;
use crate::endpoints::{Endpoints, Host};
use crate::engine::Engine;
use crate::port_link::PortLink;
use crate::service::{LoopHandle, PortService, device_config};
use crate::{NicProcessConfig, NicProcessError, Statistics, UplinkConfig};

/// A NIC whose ports can be opened. Dropping it withdraws its name.
pub struct NicProcess {
    engine: Engine,
    offer: Offer,
    core: Option<usize>,
    functions: Vec<Function>,
}

impl NicProcess {
    /// Opens the up-links and offers the ports. From here on hosts can connect; they are served by
    /// [`NicProcess::run`].
    ///
    /// # Errors
    /// A value of the configuration makes no sense, this process may not run on its core, an up-link cannot be opened,
    /// or the name is taken.
    pub fn new(config: NicProcessConfig) -> Result<Self, NicProcessError> {
        config.validate()?;
        config.core.map_or(Ok(()), check_core)?;
        let uplinks = config.uplinks.iter().map(open_uplink).collect::<Result<_, _>>()?;
        // So that hosts may sleep without our stores being fenced, and be told so when they connect.
        if let Err(error) = membarrier::register() {
            tracing::debug!("no membarrier: {error}; sleeping hosts cost a fence");
        }
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        let event: Arc<OwnedFd> = Arc::new(event.map_err(|error| NicProcessError::Event(error.into()))?);
        let (sender, commands) = channel();
        let (leaver, left) = channel();
        let domain = Domain::open(&config.domain)?;
        let mut endpoints = Endpoints::new(&config, uplinks, domain.disposer());
        let nic_loop = LoopHandle::new(sender, Arc::clone(&event));
        let functions = open_functions(&config, &nic_loop, &mut endpoints)?;
        let idle = Idle::new(config.idle);
        let departures = Departures::new(config.departure_limit, leaver);
        let engine = Engine::new(endpoints, commands, event, idle, departures);
        let (service, core) = (config.service.clone(), config.core);
        let options = OfferOptions { allowed_uids: config.allowed_uids.clone(), ..OfferOptions::default() };
        let ports = PortService::new(config, nic_loop, left, domain.disposer());
        let offer = domain.offer_with(&service, Box::new(ports), options)?;
        Ok(NicProcess { engine, offer, core, functions })
    }

    /// The name under which ports can be opened.
    pub fn service(&self) -> &str {
        self.offer.name()
    }

    /// Serves the ports on this thread until `stop` is set, then tells every host that the NIC is gone and brings
    /// captures to their files. Gives the last counters.
    ///
    /// # Errors
    /// The core of the configuration cannot be had, or a thread for a function.
    pub fn run(&mut self, stop: &AtomicBool) -> Result<Statistics, NicProcessError> {
        if let Some(core) = self.core {
            pin_to(core)?;
        }
        let NicProcess { engine, functions, .. } = self;
        let stops = Stops(functions.iter().map(Function::stop).collect());
        let last = std::thread::scope(|scope| {
            // Each serves the client of one function; with the loop they all end.
            let mut serving = functions.iter_mut().map(|function| {
                thread::spawn_in(scope, "beeline-vfio", || function.serve()).map_err(NicProcessError::Thread)
            });
            // Dropped here however it ends: the scope waits for the threads.
            let _stops = stops;
            serving.try_for_each(|thread| thread.map(|_| ())).map(|()| engine.run(stop))
        })?;
        Ok(last.into_statistics(self.offer.name()))
    }
}

/// Ends the serving of functions when it is dropped.
struct Stops(Vec<FunctionStop>);

impl Drop for Stops {
    fn drop(&mut self) {
        self.0.iter().for_each(FunctionStop::stop);
    }
}

/// Opens the ports that are PCI functions.
fn open_functions(
    config: &NicProcessConfig,
    nic_loop: &LoopHandle,
    endpoints: &mut Endpoints,
) -> Result<Vec<Function>, NicProcessError> {
    let opened = (0..).zip(&config.functions).map(|(number, path)| {
        let device = Nic::new(device_config(&config.nic, number))?;
        let nic_loop = nic_loop.clone();
        let (function, link) = Function::open(device, &config.port, path, move || nic_loop.wake())?;
        endpoints.open(number, Host::Function(path.clone()), PortLink::Function(link));
        Ok(function)
    });
    opened.collect()
}

fn open_uplink(config: &UplinkConfig) -> Result<Box<dyn Uplink>, NicProcessError> {
    Ok(match config {
        UplinkConfig::Loopback => Box::new(Loopback::default()),
        UplinkConfig::PcapIn(path) => Box::new(PcapIn::open(path)?),
        UplinkConfig::PcapOut(path) => Box::new(PcapOut::create(path)?),
        UplinkConfig::Tap(name) => Box::new(Tap::open(name)?),
        // Frames to the stations behind the switch are to other stations than the interface's own.
        UplinkConfig::Wire(wire) => wire.clone().promiscuous().open()?,
    })
}

/// Refuses a core that this process may not run on, before anybody can be told that the NIC is there. A thread of its
/// own tries it: the caller's stays where it is, and one that is pinned elsewhere may still be given the core.
fn check_core(core: usize) -> Result<(), NicProcessError> {
    let tried = std::thread::scope(|scope| {
        // Without a thread nothing is known against the core.
        thread::spawn_in(scope, "beeline-core", || cpu::pin_current_thread(core)).map(|tries| tries.join())
    });
    match tried {
        Ok(Ok(Err(error))) => Err(NicProcessError::Core { core, error: error.errno.into() }),
        Ok(_) | Err(_) => Ok(()),
    }
}

fn pin_to(core: usize) -> Result<(), NicProcessError> {
    if core >= CpuSet::MAX_CPU {
        let error = std::io::ErrorKind::InvalidInput.into();
        return Err(NicProcessError::Core { core, error });
    }
    let mut cores = CpuSet::new();
    cores.set(core);
    sched_setaffinity(None, &cores).map_err(|error| NicProcessError::Core { core, error: error.into() })
}

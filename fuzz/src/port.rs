//! A port in shared memory whose host is the fuzzer.

use std::os::fd::OwnedFd;

use beeline_domain::Reply;
use beeline_link_contract::StorePort;
use beeline_link_shm::{DevicePort, PortConfig, PortControl, Wire, Wired};
use beeline_mmio::{MemoryOptions, Region, SharedMemory, StoreKernel};
use beeline_nic_contract::{QueueId, SimTime};
use beeline_nic_model::Nic;
use beeline_spec::formats::{PORT_REGISTER_LINES, port_device_memory as device, port_host_memory as host};

use crate::device::{LINES, QUEUES, config};

/// A wire that gives every frame back.
#[derive(Debug)]
pub struct Back;

impl Wire for Back {
    fn transmit(&mut self, _queue: QueueId, _frame: &[u8]) -> Wired {
        Wired::Back
    }
}

/// A port and the memory its host maps.
pub struct Bench {
    /// Where the host's requests go.
    pub control: PortControl,
    /// What the NIC process runs.
    pub port: DevicePort<Nic>,
    /// Memory the host lent when it opened the port.
    pub host: Region,
    /// Register channel and doorbells.
    pub device: Region,
    /// Windows of queues, in the order they were opened.
    pub windows: Vec<Region>,
    posted: u32,
    now_ns: u64,
    is_closed: bool,
}

/// A new sealed memory, and where it is mapped.
pub fn memory(bytes: usize) -> (OwnedFd, Region) {
    let memory = SharedMemory::create("fuzz", bytes, MemoryOptions::default()).expect("memory is to be had");
    (memory.fd().try_clone_to_owned().expect("a descriptor too"), memory.map().expect("and address space"))
}

fn region_of(mut reply: Reply, bytes: usize) -> Region {
    let memory = SharedMemory::from_fd(reply.fds.remove(0), bytes).expect("the port made it");
    memory.map().expect("there is address space")
}

impl Bench {
    /// Opens a port as an honest host does.
    pub fn new() -> Self {
        let (fd, host) = memory(host::BYTES);
        let nic = Nic::new(config(true, true)).expect("the sizes are sound");
        let port = PortConfig { max_memory_bytes: 1 << 20, max_regions: 8, ..PortConfig::default() };
        let open = br#"{"request":"open","version":1,"loop_back":true}"#;
        let opened = PortControl::open(nic, &port, None, open, vec![fd]).expect("an honest opening");
        let device = region_of(opened.2, device::BYTES + 4096);
        Bench {
            control: opened.0,
            port: opened.1,
            host,
            device,
            windows: Vec::new(),
            posted: 0,
            now_ns: 0,
            is_closed: false,
        }
    }

    /// Opens a queue's window, once more perhaps.
    pub fn reopen(&mut self, queue: u8) {
        let queue = u32::from(queue) % QUEUES;
        let request = format!(r#"{{"request":"window","queue":{queue},"is_cached":true}}"#);
        let Ok(reply) = self.control.request(request.as_bytes(), Vec::new()) else { return };
        self.windows.push(region_of(reply, LINES as usize * 64));
    }

    /// Lets the NIC process run so many turns, `ns` apart, unless it has closed the port.
    pub fn turns(&mut self, count: u8, ns: u64) {
        for _ in 0..count {
            self.now_ns += ns;
            self.port.time_passed(SimTime::from_ns(self.now_ns));
            self.is_closed = self.is_closed || self.port.poll().is_err();
            if self.is_closed {
                self.port.close(None);
                return;
            }
            self.port.drive(&mut Back);
        }
    }

    /// Posts a register write in good form.
    pub fn post(&mut self, offset: u32, value: u64) {
        let mut channel = self.device.store_window(0, PORT_REGISTER_LINES as u32, StoreKernel::Cached);
        let line = [u64::from(offset) | 1 << 32, value & 0xffff_ffff, value >> 32, 0, 0, 0, 0, 0];
        channel.store_line(self.posted % PORT_REGISTER_LINES as u32, &line);
        self.posted += 1;
    }
}

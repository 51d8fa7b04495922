//! The NIC process's half of a port in shared memory. A hostile host controls the requests it sends and every word of
//! the register channel, the windows, the doorbells and the memory it lends. The port goes on or closes with an error;
//! the process neither panics nor hangs nor touches memory it was not given.
#![no_main]

use std::os::fd::OwnedFd;

use arbitrary::Arbitrary;
use beeline_domain::Reply;
use beeline_fuzz::Word;
use beeline_fuzz::device::{LINES, Place, QUEUES, Setup, config, offset_of};
use beeline_link_contract::StorePort;
use beeline_link_shm::{DevicePort, PortConfig, PortControl, Wire, Wired};
use beeline_mmio::{MemoryOptions, Region, SharedMemory, StoreKernel};
use beeline_nic_contract::{QueueId, SimTime};
use beeline_nic_model::Nic;
use beeline_spec::formats::{PORT_REGISTER_LINES, port_device_memory as device, port_host_memory as host};
use libfuzzer_sys::fuzz_target;

const LENT_BYTES: usize = 64 << 10;

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    SetUp(Setup),
    Register {
        place: Place,
        value: Word,
    },
    /// A word of the register channel, whatever stands there.
    Channel {
        line: u8,
        word: u8,
        value: Word,
    },
    Window {
        queue: u8,
        line: u8,
        word: u8,
        words: Vec<Word>,
    },
    Doorbell {
        word: u8,
        value: Word,
    },
    HostMemory {
        word: u16,
        value: Word,
    },
    Lent {
        word: u16,
        value: Word,
    },
    Request(&'a [u8]),
    Reopen {
        queue: u8,
    },
    Frame {
        bytes: u16,
    },
    Turns {
        count: u8,
        ns: u16,
    },
}

struct Back;

impl Wire for Back {
    fn transmit(&mut self, _queue: QueueId, _frame: &[u8]) -> Wired {
        Wired::Back
    }
}

struct Bench {
    control: PortControl,
    port: DevicePort<Nic>,
    host: Region,
    device: Region,
    windows: Vec<Region>,
    posted: u32,
}

fn memory(bytes: usize) -> (OwnedFd, Region) {
    let memory = SharedMemory::create("fuzz", bytes, MemoryOptions::default()).expect("memory is to be had");
    (memory.fd().try_clone_to_owned().expect("a descriptor too"), memory.map().expect("and address space"))
}

fn region_of(mut reply: Reply, bytes: usize) -> Region {
    let memory = SharedMemory::from_fd(reply.fds.remove(0), bytes).expect("the port made it");
    memory.map().expect("there is address space")
}

impl Bench {
    fn new() -> Self {
        let (fd, host) = memory(host::BYTES);
        let nic = Nic::new(config(true, true)).expect("the sizes are sound");
        let port = PortConfig { max_memory_bytes: 1 << 20, max_regions: 8, ..PortConfig::default() };
        let open = br#"{"request":"open","version":1,"loop_back":true}"#;
        let opened = PortControl::open(nic, &port, None, open, vec![fd]).expect("an honest opening");
        let device = region_of(opened.2, device::BYTES + 4096);
        Bench { control: opened.0, port: opened.1, host, device, windows: Vec::new(), posted: 0 }
    }

    fn reopen(&mut self, queue: u8) {
        let queue = u32::from(queue) % QUEUES;
        let request = format!(r#"{{"request":"window","queue":{queue},"is_cached":true}}"#);
        let Ok(reply) = self.control.request(request.as_bytes(), Vec::new()) else { return };
        self.windows.push(region_of(reply, LINES as usize * 64));
    }

    fn post(&mut self, offset: u32, value: u64) {
        let mut channel = self.device.store_window(0, PORT_REGISTER_LINES as u32, StoreKernel::Cached);
        let line = [u64::from(offset) | 1 << 32, value & 0xffff_ffff, value >> 32, 0, 0, 0, 0, 0];
        channel.store_line(self.posted % PORT_REGISTER_LINES as u32, &line);
        self.posted += 1;
    }
}

fuzz_target!(|steps: Vec<Step<'_>>| {
    let mut bench = Bench::new();
    let (fd, lent) = memory(LENT_BYTES);
    let request = format!(r#"{{"request":"memory","bytes":{LENT_BYTES}}}"#);
    bench.control.request(request.as_bytes(), vec![fd]).expect("an honest loan");
    (0..QUEUES as u8).for_each(|queue| bench.reopen(queue));
    bench.post(beeline_spec::regs::CONTROL, 1);
    let (mut now_ns, mut is_open) = (0, true);
    for step in steps {
        match step {
            Step::SetUp(setup) => setup.registers(|offset, value| bench.post(offset, value)),
            Step::Register { place, value } => bench.post(offset_of(place), value.value()),
            Step::Channel { line, word, value } => {
                let mut channel =
                    bench.device.store_window(0, PORT_REGISTER_LINES as u32, StoreKernel::Cached);
                channel.store_word(
                    u32::from(line) % PORT_REGISTER_LINES as u32,
                    u32::from(word % 8),
                    value.value(),
                );
            }
            Step::Window { queue, line, word, words } => {
                let Some(place) = usize::from(queue).checked_rem(bench.windows.len()) else { continue };
                let mut window = bench.windows[place].store_window(0, LINES, StoreKernel::Cached);
                for (at, value) in (u32::from(line) * 8 + u32::from(word % 8)..).zip(words) {
                    window.store_word(at / 8 % LINES, at % 8, value.value());
                }
            }
            Step::Doorbell { word, value } => {
                bench.device.word(device::BYTES + usize::from(word) * 8).store(value.value());
            }
            Step::HostMemory { word, value } => {
                bench.host.word(usize::from(word) % 512 * 8).store(value.value())
            }
            Step::Lent { word, value } => lent.word(usize::from(word) % 8192 * 8).store(value.value()),
            Step::Request(request) => drop(bench.control.request(request, Vec::new())),
            Step::Reopen { queue } => bench.reopen(queue),
            Step::Frame { bytes } => drop(bench.port.frame_arrived(&vec![7; usize::from(bytes % 2048)])),
            Step::Turns { count, ns } if is_open => {
                for _ in 0..count % 32 {
                    now_ns += u64::from(ns);
                    bench.port.time_passed(SimTime::from_ns(now_ns));
                    if bench.port.poll().is_err() {
                        bench.port.close(None);
                        is_open = false;
                        break;
                    }
                    bench.port.drive(&mut Back);
                }
            }
            Step::Turns { .. } => {}
        }
    }
});

//! A host that writes anything anywhere: the port ends with an error or goes on, and the process that plays the NIC
//! neither panics nor touches memory it was not given.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::os::fd::OwnedFd;

use beeline_contract_device::{QueueId, SimTime};
use beeline_contract_memory::{LoadPort, StorePort};
use beeline_domain::{Domain, DomainConfig, Reply};
use beeline_link_shm::{ControlError, DevicePort, PortConfig, PortControl, Wire, Wired};
use beeline_mmio::{MemoryOptions, Region, SharedMemory, StoreKernel};
use beeline_nic_model::{Nic, NicConfig};
use beeline_spec::formats::{port_device_memory as device_memory, port_host_memory as host};
use beeline_spec::regs;

const QUEUES: u32 = 4;
const WINDOW_LINES: u32 = 64;

struct Back;

impl Wire for Back {
    fn transmit(&mut self, _queue: QueueId, _frame: &[u8]) -> Wired {
        Wired::Back
    }
}

/// A small generator, so that a seed is all that a failure needs to be run again.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    /// A value that is often near something that matters.
    fn value(&mut self) -> u64 {
        let base =
            [0, 1, 63, 64, 4096, 1 << 24, 1 << 32, 2 << 32, (1 << 32) + 4096, u64::MAX, 1 << 63, self.next()]
                [self.below(12) as usize];
        base.wrapping_add(self.below(3)).wrapping_sub(1)
    }
}

fn memory(bytes: usize) -> (SharedMemory, Region) {
    let memory = SharedMemory::create("hostile", bytes, MemoryOptions::default()).unwrap();
    let region = memory.map().unwrap();
    (memory, region)
}

fn copy(memory: &SharedMemory) -> OwnedFd {
    memory.fd().try_clone_to_owned().unwrap()
}

struct Rig {
    control: PortControl,
    device: DevicePort<Nic>,
    host: Region,
    registers: Region,
    posted: u32,
}

fn rig() -> Rig {
    let nic = NicConfig {
        queues: QUEUES,
        window_lines: WINDOW_LINES,
        span_lines: 16,
        contexts: 4,
        pool_lines: 512,
        blank: true,
        ..NicConfig::default()
    };
    let (host_memory, host) = memory(host::BYTES);
    let open = br#"{"request":"open","version":1,"loop_back":true}"#;
    let config = PortConfig { max_memory_bytes: 1 << 20, ..PortConfig::default() };
    let (control, device, reply) =
        PortControl::open(Nic::new(nic).unwrap(), &config, None, open, vec![copy(&host_memory)]).unwrap();
    let registers = region_of(reply, device_memory::BYTES + 4096);
    Rig { control, device, host, registers, posted: 0 }
}

fn region_of(mut reply: Reply, bytes: usize) -> Region {
    SharedMemory::from_fd(reply.fds.remove(0), bytes).unwrap().map().unwrap()
}

impl Rig {
    fn window(&mut self, queue: u32) -> Region {
        let request = format!(r#"{{"request":"window","queue":{queue},"is_cached":true}}"#);
        let reply = self.control.request(request.as_bytes(), Vec::new()).unwrap();
        region_of(reply, WINDOW_LINES as usize * 64)
    }

    /// Posts a well-formed register write.
    fn write(&mut self, offset: u32, value: u64) {
        let mut channel = self.registers.store_window(0, 64, StoreKernel::Cached);
        let line = [u64::from(offset) | 1 << 32, value & 0xffff_ffff, value >> 32, 0, 0, 0, 0, 0];
        channel.store_line(self.posted % 64, &line);
        self.posted += 1;
    }

    fn turns(&mut self, count: u64) -> bool {
        for turn in 0..count {
            self.device.time_passed(SimTime::from_ns(turn * 1000));
            if self.device.poll().is_err() {
                self.device.close(None);
                return false;
            }
            self.device.drive(&mut Back);
        }
        true
    }
}

/// Registers that a driver sets, with values it never would.
fn wild_register(random: &mut Random) -> (u32, u64) {
    let queue = regs::QUEUE + random.below(u64::from(QUEUES) + 1) as u32 * regs::QUEUE_STRIDE;
    match random.below(8) {
        0 => (random.next() as u32, random.next()),
        1 => (regs::CONTROL, random.below(64)),
        2 | 3 => {
            let enable = 1 | random.below(9) << 4 | random.below(4) << 8 | random.below(2) << 32;
            (queue + regs::queue::CONTROL, enable)
        }
        4 => (regs::DOORBELL + random.below(5) as u32 * 64 + random.below(2) as u32 * 8, random.value()),
        _ => (queue + random.below(0x12) as u32 * 8, random.value()),
    }
}

#[test]
fn whatever_a_host_writes_the_nic_goes_on_or_closes_the_port() {
    let first: u64 = std::env::var("BEELINE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let rounds = if std::env::var_os("BEELINE_SEED").is_some() { 1 } else { 150 };
    for seed in first..first + rounds {
        println!("seed {seed}: run again with BEELINE_SEED={seed}");
        let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        let mut rig = rig();
        let (given, lent) = memory(64 << 10);
        let request = br#"{"request":"memory","bytes":65536}"#;
        rig.control.request(request, vec![copy(&given)]).unwrap();
        let windows: Vec<Region> = (0..QUEUES).map(|queue| rig.window(queue)).collect();
        for queue in 0..QUEUES {
            let doorbell = regs::DOORBELL + queue * regs::DOORBELL_STRIDE;
            let request = format!(r#"{{"request":"doorbell","offset_bytes":{doorbell}}}"#);
            rig.control.request(request.as_bytes(), Vec::new()).unwrap();
        }
        rig.write(regs::CONTROL, 1);
        for _ in 0..400 {
            match random.below(16) {
                0..5 => {
                    let (offset, value) = wild_register(&mut random);
                    rig.write(offset, value);
                }
                5..12 => {
                    let window = &windows[random.below(u64::from(QUEUES)) as usize];
                    let mut store = window.store_window(0, WINDOW_LINES, StoreKernel::Cached);
                    for _ in 0..random.below(20) {
                        let header = random.below(200) | 1 << 46 | random.below(4) << 50;
                        let value = if random.below(2) == 0 { header } else { random.value() };
                        store.store_word(random.below(64) as u32, random.below(8) as u32, value);
                    }
                }
                12 => lent.word(random.below(8192) as usize * 8).store(random.value()),
                13 => rig.registers.word(4096 + random.below(32) as usize * 8).store(random.value()),
                14 => rig.host.word(random.below(512) as usize * 8).store(random.value()),
                _ => {}
            }
            if !rig.turns(1 + random.below(3)) {
                break;
            }
        }
        rig.turns(50);
    }
}

#[test]
fn a_host_has_no_more_memory_than_its_account_however_fast_it_opens() {
    let mut rig = rig();
    let window = br#"{"request":"window","queue":0,"is_cached":true}"#;
    let limit = 256;
    for round in 0..3 {
        // A window is 4096 bytes of the account's 1 MiB, and the loop takes nothing over meanwhile.
        let mut open = 0;
        for _ in 0..10_000 {
            match rig.control.request(window, Vec::new()) {
                Ok(_) => open += 1,
                Err(error) => assert!(matches!(error, ControlError::TooMuchMemory { .. }), "{error}"),
            }
        }
        // From the second round on the loop has the last one of the round before.
        assert_eq!(open, if round == 0 { limit } else { limit - 1 });
        rig.device.apply_updates();
    }
    // Regions that come and go count until the loop has let them go.
    let (mut lent, mut refused) = (0, 0);
    for _ in 0..1000 {
        let (sealed, _) = memory(65536);
        let request = br#"{"request":"memory","bytes":65536}"#;
        match rig.control.request(request, vec![copy(&sealed)]) {
            Ok(_) => {
                lent += 1;
                rig.control.request(br#"{"request":"release","region":1}"#, Vec::new()).unwrap();
            }
            Err(_) => refused += 1,
        }
    }
    assert_eq!((lent, refused), (15, 985));
    rig.device.apply_updates();
    let (sealed, _) = memory(65536);
    rig.control.request(br#"{"request":"memory","bytes":65536}"#, vec![copy(&sealed)]).unwrap();
}

#[test]
fn what_a_host_opens_without_memory_has_an_end_too() {
    let mut rig = rig();
    let request = format!(r#"{{"request":"doorbell","offset_bytes":{}}}"#, regs::DOORBELL);
    let opened = (0..10_000).filter(|_| rig.control.request(request.as_bytes(), Vec::new()).is_ok()).count();
    assert_eq!(opened, 512);
    let refused = rig.control.request(request.as_bytes(), Vec::new()).unwrap_err();
    assert!(matches!(refused, ControlError::Behind { updates: 512 }), "{refused}");
    rig.device.apply_updates();
    rig.control.request(request.as_bytes(), Vec::new()).unwrap();
}

#[test]
fn garbage_in_the_register_channel_closes_the_port() {
    for seed in 1..200u64 {
        let mut random = Random(seed);
        let mut rig = rig();
        let mut channel = rig.registers.store_window(0, 64, StoreKernel::Cached);
        // Bits that no access has; a line of them never looks like one.
        channel.store_line(0, &core::array::from_fn(|_| random.next() | 1 << 60));
        assert!(!rig.turns(2), "seed {seed}");
        assert_ne!(rig.host.word(host::CLOSED_OFFSET).load(), 0);
        let late = rig.control.request(br#"{"request":"window","queue":0,"is_cached":true}"#, Vec::new());
        assert!(matches!(late, Err(ControlError::Closed(_))), "{late:?}");
    }
}

#[test]
fn torn_register_access_waits_without_effect() {
    let mut rig = rig();
    let mut channel = rig.registers.store_window(0, 64, StoreKernel::Cached);
    channel.store_word(0, 0, u64::from(regs::MUX_PORTS) | 1 << 32);
    assert!(rig.turns(100));
    let load = rig.registers.load_window(0, 64);
    assert_eq!(load.load_word(0, 0), u64::from(regs::MUX_PORTS) | 1 << 32, "it is still there");
}

#[test]
fn requests_are_checked() {
    let mut rig = rig();
    let (sealed, _) = memory(4096);
    let cases: [(&str, Vec<OwnedFd>, &str); 11] = [
        ("", vec![], "not a request"),
        ("{}", vec![], "not a request"),
        (r#"{"request":"open","version":1,"loop_back":false}"#, vec![], "wrong time"),
        (r#"{"request":"window","queue":4,"is_cached":true}"#, vec![], "queue 4 of a port that has 4"),
        (r#"{"request":"window","queue":0,"is_cached":true}"#, vec![copy(&sealed)], "1 descriptors"),
        (r#"{"request":"doorbell","offset_bytes":0}"#, vec![], "not the offset of a doorbell"),
        (r#"{"request":"memory","bytes":4096}"#, vec![], "0 descriptors"),
        (r#"{"request":"memory","bytes":8192}"#, vec![copy(&sealed)], "8192"),
        (r#"{"request":"memory","bytes":0}"#, vec![copy(&sealed)], "memory"),
        (r#"{"request":"memory","bytes":1048577}"#, vec![copy(&sealed)], "1048577 more bytes"),
        (r#"{"request":"release","region":1}"#, vec![], "region 1 is not registered"),
    ];
    for (request, fds, said) in cases {
        let error = rig.control.request(request.as_bytes(), fds).unwrap_err().to_string();
        assert!(error.contains(said), "{request}: {error}");
    }
    assert!(rig.turns(10));
}

#[test]
fn only_sealed_memory_of_the_right_size_opens_a_port() {
    let open = br#"{"request":"open","version":1,"loop_back":false}"#;
    let nic = || Nic::new(NicConfig { blank: true, ..NicConfig::default() }).unwrap();
    let config = PortConfig::default();
    let attempt = |request: &[u8], fds| {
        PortControl::open(nic(), &config, None, request, fds).map(|_| ()).unwrap_err().to_string()
    };
    let (small, _) = memory(1024);
    assert!(attempt(open, vec![copy(&small)]).contains("1024"));
    assert!(attempt(open, vec![]).contains("0 descriptors"));
    let file: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
    assert!(attempt(open, vec![file]).contains("memfd"));
    let other = br#"{"request":"open","version":2,"loop_back":false}"#;
    assert!(attempt(other, vec![copy(&small)]).contains("version 2"));
    assert!(attempt(br#"{"request":"window","queue":0,"is_cached":true}"#, vec![]).contains("wrong time"));
    let observed = Nic::new(NicConfig { blank: false, ..NicConfig::default() }).unwrap();
    let (good, _) = memory(host::BYTES);
    let error = PortControl::open(observed, &config, None, open, vec![copy(&good)]).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("observed windows"), "{error}");
}

/// Mappings of this process with this many bytes, of memory that a test calls "hostile".
fn mappings(bytes: usize) -> usize {
    let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
    let size = |line: &str| {
        let (start, end) = line.split_once(' ')?.0.split_once('-')?;
        let number = |text: &str| usize::from_str_radix(text, 16).ok();
        Some(number(end)? - number(start)?)
    };
    maps.lines().filter(|line| line.contains("memfd:hostile") && size(line) == Some(bytes)).count()
}

#[test]
fn what_a_host_closes_is_unmapped_elsewhere_and_counted_until_then() {
    /// Holds the thread that drops things.
    struct Held(std::sync::mpsc::Receiver<()>);
    impl Drop for Held {
        fn drop(&mut self) {
            let _: Result<(), _> = self.0.recv();
        }
    }
    const BYTES: usize = 700 << 10;
    let folder = tempfile::tempdir().unwrap();
    let config = DomainConfig { root: Some(folder.path().to_owned()), name: "test".into() };
    let domain = Domain::open(&config).unwrap();
    let mut rig = rig();
    rig.device.dispose_with(domain.disposer());
    let register = format!(r#"{{"request":"memory","bytes":{BYTES}}}"#);
    let ask = |rig: &mut Rig| {
        let sealed = SharedMemory::create("hostile", BYTES, MemoryOptions::default()).unwrap();
        rig.control.request(register.as_bytes(), vec![copy(&sealed)]).map(drop)
    };
    ask(&mut rig).unwrap();
    rig.device.apply_updates();
    let (go, held) = std::sync::mpsc::channel();
    domain.disposer().dispose(Held(held));
    rig.control.request(br#"{"request":"release","region":1}"#, Vec::new()).unwrap();
    rig.device.apply_updates();
    // The loop has let it go; nobody has unmapped it, and the account of 1 MiB has no room for another.
    assert_eq!(mappings(BYTES), 1);
    assert!(matches!(ask(&mut rig), Err(ControlError::TooMuchMemory { .. })));
    go.send(()).unwrap();
    while mappings(BYTES) > 0 {
        std::thread::yield_now();
    }
    while ask(&mut rig).is_err() {
        std::thread::yield_now();
    }
}

#[test]
fn a_large_window_is_blanked_over_many_turns_before_its_queue_starts() {
    const LINES: u32 = 1 << 15;
    let nic = NicConfig { window_lines: LINES, blank: true, ..NicConfig::default() };
    let queues = nic.queues;
    let (host_memory, host) = memory(host::BYTES);
    let open = br#"{"request":"open","version":1,"loop_back":true}"#;
    let config = PortConfig::default();
    let (control, device, reply) =
        PortControl::open(Nic::new(nic).unwrap(), &config, None, open, vec![copy(&host_memory)]).unwrap();
    let doorbells = (queues as usize * 64).next_multiple_of(4096);
    let registers = region_of(reply, 4096 + doorbells);
    let mut rig = Rig { control, device, host, registers, posted: 0 };
    let reply = rig.control.request(br#"{"request":"window","queue":0,"is_cached":true}"#, Vec::new());
    let window = region_of(reply.unwrap(), LINES as usize * 64);
    let mut store = window.store_window(0, LINES, StoreKernel::Cached);
    for line in [0, LINES - 1] {
        store.store_line(line, &[1; 8]);
    }
    rig.write(regs::CONTROL, 1);
    rig.write(regs::QUEUE + regs::queue::CONTROL, 1);
    let taken = |rig: &Rig| rig.host.word(host::REGISTERS_TAKEN_OFFSET).load();
    let mut turns = 0;
    while taken(&rig) < 2 {
        assert!(rig.device.poll().unwrap(), "it is not done, and says so");
        turns += 1;
        // No turn is long, and none is in vain.
        let blank = |line: u32| window.word(line as usize * 64).load() >> 63 == 1;
        assert_eq!(taken(&rig) == 2, blank(LINES - 1), "turn {turns}");
        assert!(blank(0));
    }
    assert_eq!(turns, LINES / 1024);
}

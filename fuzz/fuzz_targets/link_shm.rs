//! The NIC process's half of a port in shared memory. A hostile host controls the requests it sends and every word of
//! the register channel, the windows, the doorbells and the memory it lends. The port goes on or closes with an error;
//! the process neither panics nor hangs nor touches memory it was not given.
#![no_main]

use arbitrary::Arbitrary;
use beeline_fuzz::device::{LINES, Place, QUEUES, Setup, offset_of};
use beeline_fuzz::port::{Bench, memory};
use beeline_fuzz::{Word, message};
use beeline_link_contract::StorePort;
use beeline_mmio::StoreKernel;
use beeline_spec::formats::{PORT_REGISTER_LINES, port_device_memory as device};
use libfuzzer_sys::fuzz_target;

const CHANNEL_LINES: u32 = PORT_REGISTER_LINES as u32;
const LENT_BYTES: usize = 256 << 10;

#[derive(Arbitrary, Debug)]
enum Step<'a> {
    /// A queue is set up.
    SetUp(Setup),
    /// A register is written.
    Register { place: Place, value: Word },
    /// A word of the register channel, whatever stands there.
    Channel { line: u8, word: u8, value: Word },
    /// Words of a window.
    Window { queue: u8, line: u8, word: u8, words: Vec<Word> },
    /// A message where the next one of a queue starts, or some lines after.
    Message { queue: u8, ahead: u8, header: Word, words: Vec<Word> },
    /// A doorbell, or a word behind them.
    Doorbell { word: u8, value: Word },
    /// A word of the memory that the host lent with the port.
    HostMemory { word: u16, value: Word },
    /// A word of memory it lent for DMA.
    Lent { word: u16, value: Word },
    /// A request.
    Request(&'a [u8]),
    /// A window is opened again.
    Reopen { queue: u8 },
    /// A frame comes from the wire.
    Frame { bytes: u16 },
    /// The NIC process runs.
    Turns { count: u8, ns: u16 },
}

fuzz_target!(|steps: Vec<Step<'_>>| {
    let mut bench = Bench::new();
    let (fd, lent) = memory(LENT_BYTES);
    let request = format!(r#"{{"request":"memory","bytes":{LENT_BYTES}}}"#);
    bench.control.request(request.as_bytes(), vec![fd]).expect("an honest loan");
    (0..QUEUES as u8).for_each(|queue| bench.reopen(queue));
    bench.post(beeline_spec::regs::CONTROL, 1);
    // The first queue lies in memory that is lent; the others know none.
    for queue in 0..QUEUES as u8 {
        Setup::honest(queue, queue + 1).registers(|offset, value| bench.post(offset, value));
    }
    bench.turns(64, 0);

    for step in steps {
        match step {
            Step::SetUp(setup) => setup.registers(|offset, value| bench.post(offset, value)),
            Step::Register { place, value } => bench.post(offset_of(place), value.value()),
            Step::Channel { line, word, value } => {
                let mut channel = bench.device.store_window(0, CHANNEL_LINES, StoreKernel::Cached);
                channel.store_word(u32::from(line) % CHANNEL_LINES, u32::from(word % 8), value.value());
            }
            Step::Window { queue, line, word, words } => {
                let Some(place) = usize::from(queue).checked_rem(bench.windows.len()) else { continue };
                let mut window = bench.windows[place].store_window(0, LINES, StoreKernel::Cached);
                for (at, value) in (u32::from(line) * 8 + u32::from(word % 8)..).zip(words) {
                    window.store_word(at / 8 % LINES, at % 8, value.value());
                }
            }
            Step::Message { queue, ahead, header, words } => {
                let queue = u32::from(queue) % QUEUES;
                let start = bench.port.lines_taken(queue).unwrap_or(0) + u64::from(ahead % 4);
                let mut window = bench.windows[queue as usize].store_window(0, LINES, StoreKernel::Cached);
                for (line, words) in (start..).zip(message(header, &words, LINES).as_chunks::<8>().0) {
                    window.store_line((line % u64::from(LINES)) as u32, words);
                }
                bench.turns(4, 1);
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
            Step::Frame { bytes } => {
                let _ = bench.port.frame_arrived(&vec![7; usize::from(bytes % 2048)]);
            }
            Step::Turns { count, ns } => bench.turns(count % 32, ns.into()),
        }
    }
});

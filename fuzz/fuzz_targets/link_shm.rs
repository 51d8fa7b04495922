//! This target is the NIC process's half of a port in shared memory, with the behavioural NIC behind it. A hostile host
//! controls the requests it sends and every word of the register channel, the windows, the doorbells and the memory it
//! lends, and may die at any time. The port goes on or closes with an error; the process neither panics nor is kept busy
//! for ever. What the device hears was stored, once; what it wants is carried out inside lent memory and nowhere else; what
//! it puts on the wire was completely written; no other word of shared memory changes.
#![no_main]

use arbitrary::Arbitrary;
use beeline_fuzz::Word;
use beeline_fuzz::device::{QUEUES, RegisterAddress, Setup, offset_of};
use beeline_fuzz::port::{Bench, LENT_BYTES};
use beeline_fuzz::sender::{Flaw, Sender, Senders};
use beeline_spec::formats::{PORT_REGISTER_LINES, port_device_memory as device};
use beeline_spec::regs::{self, queue as r};
use libfuzzer_sys::fuzz_target;

/// Registers that hold an address.
const ADDRESSES: [u32; 5] =
    [r::CREDIT_ADDRESS, r::TX_HEAD_ADDRESS, r::TX_RING_ADDRESS, r::RX_RING_ADDRESS, r::RX_COMPLETION_ADDRESS];
/// Turns after an operation: enough for a small frame to go out and come back.
const TURNS: u8 = 3;

#[derive(Arbitrary, Debug)]
enum Operation<'a> {
    /// A frame in the format of the queue's interface, with a flaw perhaps, and the turns it takes.
    Send {
        queue: u8,
        bytes: u16,
        fill: u8,
        flaw: Flaw,
    },
    /// The same, and the NIC process does not look yet.
    SendUnseen {
        queue: u8,
        bytes: u16,
        fill: u8,
        flaw: Flaw,
    },
    /// A queue is set up anew, its rings moved.
    SetUp {
        setup: Setup,
        shift: i16,
    },
    /// A register is written.
    Register {
        address: RegisterAddress,
        value: Word,
    },
    /// A register gets an address near a region's end.
    Address {
        queue: u8,
        register: u8,
        region: u8,
        before_end: i16,
    },
    Read {
        address: RegisterAddress,
        tag: u16,
    },
    /// A word of the register channel, whatever stands there.
    Channel {
        word: u16,
        value: Word,
    },
    Window {
        queue: u8,
        address: u16,
        words: Vec<Word>,
    },
    /// A doorbell, or a word behind them.
    Doorbell {
        word: u8,
        value: Word,
    },
    /// Lines or buffers of the receive ring are given back.
    Freed {
        queue: u8,
        count: u16,
    },
    /// A word of the memory that the host lent with the port.
    HostMemory {
        word: u16,
        value: Word,
    },
    /// A word of memory it lent for DMA.
    Lent {
        which: bool,
        word: u16,
        value: Word,
    },
    /// Memory is lent, with a size that may be a lie.
    Lend {
        which: bool,
        more: i8,
    },
    /// A region is taken back.
    Release {
        number: u8,
    },
    Request(&'a [u8]),
    /// A window is opened again.
    Reopen {
        queue: u8,
    },
    /// Any doorbell is to be looked at.
    AskDoorbell {
        queue: u8,
        inside: u8,
    },
    /// A frame comes from the wire.
    Frame {
        bytes: u16,
        fill: u8,
    },
    /// The wire takes so many frames; 255: any number.
    Wire {
        room: u8,
    },
    /// The NIC process runs.
    Turns {
        count: u8,
        ns: u16,
    },
    /// The host dies.
    Die,
}

fn run(bench: &mut Bench, senders: &mut Senders, operation: Operation<'_>) {
    let queue_of = |queue: u8| u32::from(queue) % QUEUES;
    match operation {
        Operation::Send { queue, bytes, fill, flaw } => {
            senders[queue_of(queue) as usize].send(bench, queue_of(queue), bytes % 1024, fill, flaw);
            bench.turns(TURNS, 10);
        }
        Operation::SendUnseen { queue, bytes, fill, flaw } => {
            senders[queue_of(queue) as usize].send(bench, queue_of(queue), bytes % 1024, fill, flaw);
        }
        Operation::SetUp { setup, shift } => {
            senders[setup.queue().0 as usize] = Sender::set_up(bench, &setup, shift);
        }
        Operation::Register { address, value } => bench.write(offset_of(address), value.value()),
        Operation::Address { queue, register, region, before_end } => {
            let register = ADDRESSES[usize::from(register) % ADDRESSES.len()];
            let end = LENT_BYTES[usize::from(region % 2)] as u64;
            let address = (u64::from(region % 4) << 32 | end).wrapping_add_signed(-i64::from(before_end));
            bench.write(regs::QUEUE + queue_of(queue) * regs::QUEUE_STRIDE + register, address);
        }
        Operation::Read { address, tag } => bench.post(2 | u64::from(tag) << 8, offset_of(address), 0),
        Operation::Channel { word, value } => {
            bench.store_device(usize::from(word) % (PORT_REGISTER_LINES * 8), value.value());
        }
        Operation::Window { queue, address, words } => {
            for (address, word) in (u64::from(address)..).zip(words) {
                bench.store(queue_of(queue), address, word.value());
            }
        }
        Operation::Doorbell { word, value } => {
            bench.store_device(device::BYTES / 8 + usize::from(word), value.value())
        }
        Operation::Freed { queue, count } => bench.ring(queue_of(queue), true, count.into()),
        Operation::HostMemory { word, value } => bench.store_host(word.into(), value.value()),
        Operation::Lent { which, word, value } => {
            bench.store_lent(which.into(), usize::from(word) * 8, &value.value().to_le_bytes());
        }
        Operation::Lend { which, more } => {
            bench
                .lend(which.into(), (LENT_BYTES[usize::from(which)] as u64).wrapping_add_signed(more.into()));
        }
        Operation::Release { number } => bench.release(u32::from(number % 6)),
        Operation::Request(request) => bench.request(request),
        Operation::Reopen { queue } => bench.reopen(queue_of(queue)),
        Operation::AskDoorbell { queue, inside } => {
            bench.doorbell(regs::DOORBELL + u32::from(queue % 4) * regs::DOORBELL_STRIDE + u32::from(inside));
        }
        Operation::Frame { bytes, fill } => {
            let _ = bench.port.frame_arrived(&vec![fill; usize::from(bytes % 1024)]);
        }
        Operation::Wire { room } => bench.set_wire((room < 255).then_some(room)),
        Operation::Turns { count, ns } => bench.turns(count % 32, ns.into()),
        Operation::Die => bench.close(),
    }
}

fuzz_target!(|input: (bool, Vec<Setup>, Vec<Operation<'_>>)| {
    let (rx_lossless, setups, operations) = input;
    let mut bench = Bench::new(rx_lossless);
    bench.write(regs::CONTROL, 1);
    let mut senders = Senders::default();
    // Every queue that is not set up in a way of its own has an interface of its own.
    let honest = (0..QUEUES as u8).map(|queue| Setup::honest(queue, queue + 1));
    for setup in honest.skip(setups.len()).chain(setups.into_iter().take(QUEUES as usize)) {
        senders[setup.queue().0 as usize] = Sender::set_up(&mut bench, &setup, 0);
    }
    for operation in operations {
        run(&mut bench, &mut senders, operation);
        if bench.is_closed() {
            break;
        }
    }
    bench.finish();
});

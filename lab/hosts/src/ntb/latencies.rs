//! Messages through a bridge, by windows and as `ntb_transport` sends them: how late each is, and how fast many are.

use beeline_experiments::{LabError, LatencyHistogram, Summary};
use beeline_link_sim::des::Picoseconds;
use beeline_link_sim::machine::Next;
use beeline_link_sim::machine::hosts::{HostId, Hosts, NtbSettings, Region};
use beeline_platforms::Platform;

use super::link::NtbLink;
use super::transport::{Queue, Told};
use crate::assembly::{Shape, hosts};
use crate::between::no_hosts;
use crate::programs::{Core, Program, run};

/// When both sides have a link, and the first message is sent.
const START: Picoseconds = Picoseconds::from_ns(1_000_000);
/// The least time from one message to the next, where each is alone; as much again is random.
const GAP_NS: u64 = 10_000;

/// Times of messages, and how many of these were what was sent.
type Times = (Vec<Picoseconds>, u64);

/// How messages cross.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NtbMethod {
    /// A frame, a fence, a flag and a doorbell for each message; the receiver is woken by its interrupt.
    TransportInterrupt,
    /// The same without a doorbell; the receiver polls the flag.
    TransportPolled,
    /// Plain stores into a window, no fence, no doorbell; the receiver polls and recovers the order.
    Window,
}

impl NtbMethod {
    /// All of them, slowest first.
    pub const ALL: [NtbMethod; 3] =
        [NtbMethod::TransportInterrupt, NtbMethod::TransportPolled, NtbMethod::Window];

    /// How a table says it.
    pub const fn name(self) -> &'static str {
        match self {
            NtbMethod::TransportInterrupt => "ntb_transport-style, doorbell and interrupt",
            NtbMethod::TransportPolled => "ntb_transport-style, polled, no doorbell",
            NtbMethod::Window => "window, polled",
        }
    }
}

/// One line of a table. All of it is of virtual time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NtbRow {
    pub method: NtbMethod,
    pub bytes: usize,
    /// From the call that sends a message, of which none is under way, until it was copied out.
    pub alone: Summary,
    /// ns a message, of those that are sent back to back.
    pub each_ns: f64,
    /// Messages of both that were taken.
    pub taken: u64,
    /// Those of them that were what was sent, in its order.
    pub whole: u64,
}

/// A bridge with as much of everything as a server's has, whose interrupts take `interrupt_ns` from the root complex to whoever is woken.
pub fn ntb_of(interrupt_ns: u64, passes: usize) -> NtbSettings {
    NtbSettings {
        windows: 2,
        window_bytes: 1 << 20,
        align_bytes: 4096,
        scratchpads: 16,
        doorbells: 15,
        requesters: 32,
        passes,
        interrupt: Picoseconds::from_ns(interrupt_ns),
    }
}

/// Sends so many messages alone, and as many back to back, through a bridge between two hosts of a platform.
///
/// # Errors
/// The platform joins no hosts by a hop.
pub fn ntb_latencies(
    platform: &Platform,
    ntb: &NtbSettings,
    method: NtbMethod,
    bytes: usize,
    messages: u64,
    seed: u64,
) -> Result<NtbRow, LabError> {
    let call = Picoseconds(platform.core.message_ns.value.picoseconds());
    let settings = hosts(platform, &Shape::Pair)?;
    let timed = |gap_ns: u64| {
        let made = Hosts::with_ntb(settings.clone(), ntb.clone(), seed).map_err(|error| no_hosts(&error))?;
        Ok::<_, LabError>(crossings(made, method, bytes, messages, gap_ns, call, seed))
    };
    let (begun, (taken, whole)) = timed(GAP_NS)?;
    let mut alone = LatencyHistogram::new();
    begun.iter().zip(&taken).for_each(|(begun, taken)| alone.add(taken.since(*begun)));
    let (_, (streamed, also_whole)) = timed(0)?;
    let tenth = streamed.len() / 10;
    let span = streamed.last().zip(streamed.get(tenth)).map_or(0, |(last, first)| last.since(*first).0);
    let each_ns = span as f64 / 1000.0 / (streamed.len() - tenth - 1) as f64;
    let taken = (taken.len() + streamed.len()) as u64;
    Ok(NtbRow { method, bytes, alone: alone.summary(), each_ns, taken, whole: whole + also_whole })
}

/// When each message was begun, when it was taken, and how many of those were what was sent.
fn crossings(
    mut hosts: Hosts,
    method: NtbMethod,
    bytes: usize,
    messages: u64,
    gap_ns: u64,
    call: Picoseconds,
    seed: u64,
) -> (Vec<Picoseconds>, Times) {
    let ends = [HostId(0), HostId(1)];
    let [near, far] = match method {
        NtbMethod::Window => ends.map(|host| NtbLink::memory(&mut hosts, host)),
        _ => ends.map(|host| Queue::memory(&mut hosts, host)),
    };
    let sender = move |core: Core| {
        let mut end = Way::open(&core, method, near, random(seed, 0));
        core.sleep_until(START);
        let send = |nth| {
            let at = core.now();
            core.work(call);
            end.send(&core, &message(nth, bytes));
            core.wait(Next::Again, Picoseconds::NEVER);
            if gap_ns > 0 {
                let gap = gap_ns + random(seed, nth + 2) % gap_ns;
                core.sleep_until(core.now() + Picoseconds::from_ns(gap));
            }
            at
        };
        let times = (0..messages).map(send).collect();
        (times, 0)
    };
    let receiver = move |core: Core| {
        let mut end = Way::open(&core, method, far, random(seed, 1));
        let mut whole = 0;
        let take = |nth| {
            whole += u64::from(end.receive() == message(nth, bytes));
            core.now()
        };
        let times = (0..messages).map(take).collect();
        (times, whole)
    };
    let programs: Vec<Program<'_, Times>> = vec![(ends[0], Box::new(sender)), (ends[1], Box::new(receiver))];
    let mut results = run(hosts, programs).0.into_iter();
    let (begun, _) = results.next().unwrap_or_default();
    (begun, results.next().unwrap_or_default())
}

/// One end of what is timed.
enum Way {
    Window(Box<NtbLink>),
    Queue(Queue),
}

impl Way {
    fn open(core: &Core, method: NtbMethod, memory: Region, random: u64) -> Way {
        let queue = |told| Queue::open(core, memory, told).map(Way::Queue);
        let opened = match method {
            NtbMethod::TransportInterrupt => queue(Told::ByInterrupt),
            NtbMethod::TransportPolled => queue(Told::ByPolling),
            NtbMethod::Window => {
                NtbLink::open(core, memory, random, START).map(|link| Way::Window(Box::new(link)))
            }
        };
        opened.expect("a bridge whose other side does the same")
    }

    fn send(&mut self, core: &Core, message: &[u8]) {
        let mut is_sent = || match self {
            Way::Window(link) => link.send(message).expect("a link that stays up"),
            Way::Queue(queue) => queue.send(message),
        };
        while !is_sent() {
            core.wait(Next::Poll, Picoseconds::NEVER);
        }
    }

    fn receive(&mut self) -> Vec<u8> {
        match self {
            Way::Window(link) => link.wait().expect("a link that stays up"),
            Way::Queue(queue) => queue.receive(),
        }
    }
}

fn message(nth: u64, bytes: usize) -> Vec<u8> {
    let mut made: Vec<u8> = (0..bytes).map(|at| (at as u64 ^ nth.wrapping_mul(31)) as u8).collect();
    let number = nth.to_le_bytes();
    made.iter_mut().zip(number).for_each(|(byte, number)| *byte = number);
    made
}

/// A number of a seed and a name, as splitmix64 makes it.
fn random(seed: u64, nth: u64) -> u64 {
    let mut mixed = seed.wrapping_add((nth + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

//! The parameters of the machine, section by section. `docs/platforms.md` says how each is measured.

use crate::section::{section, words};
use crate::{Bounds, Time};

/// Bounds of a time within a machine.
const TIME: Bounds = Bounds::Between(0.0, 1_000_000.0);
/// Bounds of a time that divides, so that a rate comes out.
const INTERVAL: Bounds = Bounds::Between(0.001, 1_000_000.0);
/// Bounds of a time between interrupts: up to a second.
const INTERRUPTS: Bounds = Bounds::Between(0.0, 1_000_000_000.0);
/// Bounds of a rate where 0 stands for no limit. A megabit a second is less than any link of a NIC, and a frame's time at it is
/// still far from what the clock of a run can hold.
const RATE: Bounds = Bounds::ZeroOr(0.001, 100_000.0);
/// Sizes of packets.
const SIZE: Bounds = Bounds::OneOf(&[128, 256, 512, 1024, 2048, 4096]);
/// Credits of a link; 0 stands for infinite.
const CREDITS: Bounds = Bounds::Whole(0, 65_535);

words! {
    /// Which write-combining buffer leaves first among those that are full.
    pub enum WcRelease {
        /// The one that was opened first.
        Fifo = "fifo",
        /// Most often the oldest, sometimes another.
        OldestRandom = "oldest-random",
        /// Any of them.
        Random = "random",
    }
}

words! {
    /// What a store fence waits for, beside write-combining buffers that are empty.
    pub enum FenceWait {
        /// No further acknowledgement.
        None = "none",
        /// The uncore has taken the lines.
        Uncore = "uncore",
        /// The root complex has taken the lines.
        RootComplex = "root-complex",
        /// The device has acknowledged the lines.
        Device = "device",
    }
}

words! {
    /// Where the data are that a device reads.
    pub enum DataIn {
        /// In the last-level cache.
        Cache = "cache",
        /// In DRAM: cache_miss_ns is added.
        Dram = "dram",
        /// On the other socket: numa_ns is added. What the device has just written is nearer, in its own socket's cache.
        OtherSocket = "other-socket",
    }
}

words! {
    /// How a read is cut into completions.
    pub enum Answers {
        /// As few as payload size and boundary allow.
        Longest = "longest",
        /// One from each boundary to the next.
        EachBoundary = "each-boundary",
    }
}

words! {
    /// What stands between two links.
    pub enum HopKind {
        /// A transparent switch.
        Switch = "switch",
        /// A non-transparent bridge, which translates addresses.
        Ntb = "ntb",
    }
}

words! {
    /// What is at the far end.
    pub enum Kind {
        /// A NIC, or a card that measures as one.
        Nic = "nic",
        /// Memory of another host, behind a non-transparent bridge.
        Ntb = "ntb",
        /// Memory of another host, written by a DMA engine of this one.
        Dma = "dma",
        /// Memory of a device.
        Memory = "memory",
    }
}

section! {
    /// A core and its write-combining (WC) buffers.
    pub struct Core {
        /// Clock of the core.
        clock_ghz: f64, Bounds::Between(0.1, 10.0);
        /// Width of a WC or cached store.
        store_bytes: u32, Bounds::OneOf(&[8, 16, 32, 64]);
        /// From one such store to the next, into an open buffer.
        store_ns: Time, INTERVAL;
        /// WC buffers of a core.
        wc_buffers: u32, Bounds::Whole(1, 64);
        /// Which full buffer leaves first.
        wc_release: WcRelease, Bounds::Words(WcRelease::WORDS);
        /// From a full line leaving its buffer until the buffer is free, the uncore idle: a core does not do more lines than
        /// wc_buffers in this time and that of filling one.
        wc_busy_ns: Time, TIME;
        /// From one line leaving the buffers to the next; 0 where only the number of buffers limits them.
        wc_interval_ns: Time, TIME, or Time::ZERO;
        /// A line that is not full leaves after this; 0 for never.
        wc_timeout_ns: Time, TIME;
        /// Share of full lines that leave in two pieces.
        wc_split_percent: f64, Bounds::Between(0.0, 100.0);
        /// Widest uncached store.
        uncached_store_bytes: u32, Bounds::OneOf(&[4, 8, 16]);
        /// From one uncached store to the next.
        uncached_store_ns: Time, INTERVAL;
        /// Widest uncached load.
        uncached_load_bytes: u32, Bounds::OneOf(&[4, 8, 16, 32, 64]);
        /// The host's share of an uncached load, beside links and device.
        uncached_load_ns: Time, TIME;
        /// To store or copy a line in cached memory.
        cached_line_ns: Time, INTERVAL;
        /// A poll that hits the cache and finds nothing.
        poll_ns: Time, INTERVAL;
        /// From visible in memory to the polling core having the line.
        line_wake_ns: Time, TIME;
        /// Software a message: call, checks and header, without what goes to the link.
        message_ns: Time, TIME;
        /// Software of a call that copies a message into a window and ends with a fence, besides stores and fence.
        copy_call_ns: Time, TIME, or Time::ZERO;
        /// The core's own part of a store fence.
        fence_ns: Time, TIME;
        /// Whose acknowledgement a store fence waits for.
        fence_waits_for: FenceWait, Bounds::Words(FenceWait::WORDS);
        /// From one interrupt of a core to the next, in the mean, at random; 0 for none.
        interrupt_interval_ns: Time, INTERRUPTS, or Time::ZERO;
        /// How long a core stands still for an interrupt; what its WC buffers hold leaves.
        interrupt_ns: Time, TIME, or Time::ZERO;
    }
}

section! {
    /// The root complex: between the cores, memory and the link.
    pub struct RootComplex {
        /// From a WC buffer or an uncached store until the first symbol may go on the wire.
        write_latency_ns: Time, TIME;
        /// Added at random to write_latency_ns, up to this much for each line: lines overtake each other.
        write_jitter_ns: Time, TIME, or Time::ZERO;
        /// From one line to the next, all cores together.
        write_interval_ns: Time, TIME;
        /// Lines that it holds; while it is full WC buffers stay busy.
        write_queue_lines: u32, Bounds::Whole(1, 4096);
        /// Largest write that it makes of neighbouring lines which both wait.
        write_merge_bytes: u32, Bounds::OneOf(&[64, 128, 256]);
        /// From a DMA read request until the first completion may leave; the data in the last-level cache.
        read_latency_ns: Time, TIME;
        /// From one 64 B of completions to the next.
        read_interval_ns: Time, TIME;
        /// From a DMA write there until loads see it.
        write_visible_ns: Time, TIME;
        /// From one 64 B of DMA writes to the next.
        write_ingest_ns: Time, TIME;
        /// Added to read_latency_ns where the data are in DRAM: see data_in.
        cache_miss_ns: Time, TIME, or Time::ZERO;
        /// Added to read_latency_ns where the data are on the other socket: see data_in.
        numa_ns: Time, TIME, or Time::ZERO;
        /// Added to read_latency_ns where the address translation misses.
        iommu_ns: Time, TIME, or Time::ZERO;
        /// Where the data are that a device reads, unless a run says otherwise.
        data_in: DataIn, Bounds::Words(DataIn::WORDS), or DataIn::Cache;
        /// Whole lines that devices read and write and that cores fill, all together; 0 for no limit.
        memory_gbps: f64, RATE, or 0.0;
    }
}

section! {
    /// A link. Credits are those that the device's side gives; 0 stands for infinite.
    pub struct Link {
        /// Generation that it runs at.
        generation: u32, Bounds::Whole(1, 6);
        /// Lanes that it has.
        lanes: u32, Bounds::OneOf(&[1, 2, 4, 8, 12, 16, 32]);
        /// Maximum payload of a packet, as software has set it (MPS).
        max_payload_bytes: u32, SIZE;
        /// Maximum size of a read request, as software has set it (MRRS).
        max_read_request_bytes: u32, SIZE;
        /// Read completion boundary (RCB).
        completion_boundary_bytes: u32, Bounds::OneOf(&[64, 128]);
        /// Double words of a request's header.
        header_dw: u32, Bounds::OneOf(&[3, 4]);
        /// From the last symbol on the wire to the packet in the other end's transaction layer.
        flight_ns: Time, TIME;
        /// Whether a read is answered by the longest completions or by one a boundary.
        answers: Answers, Bounds::Words(Answers::WORDS);
        /// Posted packets that may be on their way.
        posted_headers: u32, CREDITS, or 0;
        /// Units of 16 B of them.
        posted_data_units: u32, CREDITS, or 0;
        /// Reads that may be on their way.
        nonposted_headers: u32, CREDITS, or 0;
        /// Completions that may be on their way.
        completion_headers: u32, CREDITS, or 0;
        /// Units of 16 B of them.
        completion_data_units: u32, CREDITS, or 0;
        /// A receiver acknowledges a packet after this; left out, the limit of the specification.
        ack_ns: Option<Time>, TIME, or None;
    }
}

section! {
    /// What a hop is, beside the link behind it.
    pub struct HopHead {
        /// Switch or bridge.
        kind: HopKind, Bounds::Words(HopKind::WORDS);
        /// From the packet in one port's transaction layer until its first symbol may leave by the other.
        latency_ns: Time, TIME;
    }
}

section! {
    /// A central switch that joins several boards, or a host and several devices, between the first half of the hops and the
    /// others' half; the links at its ports are as the one that leads to it.
    pub struct CentralSwitch {
        /// From the packet in one port's transaction layer until its first symbol may leave by another.
        latency_ns: Time, TIME;
        /// Ports that it has: a board each, or the host and a device each.
        ports: u32, Bounds::Whole(2, 64);
    }
}

section! {
    /// What is at the far end.
    pub struct Device {
        /// From one write packet to the next.
        ingress_interval_ns: Time, TIME;
        /// Payload that it takes; 0 for no limit.
        ingress_gbps: f64, RATE;
        /// From a packet there until its logic acts on it.
        ingress_latency_ns: Time, TIME;
        /// From the decision to read until the request may leave.
        read_start_ns: Time, TIME;
        /// From the last completion there until its logic has the data.
        read_finish_ns: Time, TIME;
        /// From one read request to the next.
        read_interval_ns: Time, TIME, or Time::ZERO;
        /// What a read takes of the data path besides its bytes.
        read_transfer_ns: Time, TIME, or Time::ZERO;
        /// Read requests that may be outstanding.
        read_tags: u32, Bounds::Whole(1, 4096);
        /// From the decision to write until the packet may leave.
        write_start_ns: Time, TIME;
        /// From one DMA write packet to the next.
        write_interval_ns: Time, TIME;
        /// Data path between PCIe and its memory, store and forward a transfer; 0 for none.
        dma_gbps: f64, RATE;
        /// What both directions of that path share inside, added up; 0 where they do not meet.
        dma_both_gbps: f64, RATE, or 0.0;
        /// From a read request there until the completion may leave.
        register_read_ns: Time, TIME;
        /// From a frame whole and decided until its first bit is on the wire.
        transmit_latency_ns: Time, TIME;
        /// From the last bit of a frame on its wire until its logic has the frame; 0 where that is counted elsewhere.
        receive_latency_ns: Time, TIME, or Time::ZERO;
        /// Rate of its wire; 0 for none.
        wire_gbps: f64, RATE;
    }
}

section! {
    /// A coherent interconnect between core and device.
    pub struct Coherent {
        /// One transfer of a line's ownership.
        line_ns: Time, TIME;
        /// From one transfer to the next.
        interval_ns: Time, INTERVAL;
        /// Transfers that may be outstanding.
        depth: u32, Bounds::Whole(1, 4096);
    }
}

section! {
    /// Energy, for comparisons only: nobody published these.
    pub struct Energy {
        /// Power of a core that works.
        core_watts: f64, Bounds::Between(0.0, 1000.0);
        /// A bit across the link.
        link_pj_per_bit: f64, Bounds::Between(0.0, 10_000.0);
        /// A bit to or from memory.
        memory_pj_per_bit: f64, Bounds::Between(0.0, 10_000.0);
    }
}

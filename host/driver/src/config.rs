//! What a caller chooses when a port and its queues are set up, with defaults that suit a polled port.
//!
//! Plain data only: nothing here touches a device. Values that a device can contradict (window size, longest frame)
//! are not here; they are read from it. Randomness and time come from outside: a blank is made of `random`, which the
//! caller draws, so that the simulator can run the same code from a seed.

use beeline_window::FencePolicy;

/// How a port is brought up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortConfig {
    /// Station address to set; `None` leaves the device's.
    pub mac: Option<[u8; 6]>,
    /// Whether to reset the device first, so that queues a former owner left behind are off.
    pub reset: bool,
    /// Which transmit path the device forwards (kPIO+WC §III, "MUX").
    pub mux: Mux,
    /// How long the device may take to answer a register read or to start or stop, in ns of the caller's clock.
    pub answer_timeout_ns: u64,
}

impl Default for PortConfig {
    fn default() -> Self {
        PortConfig { mac: None, reset: true, mux: Mux::Both, answer_timeout_ns: 2_000_000_000 }
    }
}

/// Which frames the device forwards from its kPIO queues and which from its descriptor queues.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Mux {
    /// Everything from everywhere.
    #[default]
    Both,
    /// Descriptor queues only.
    DescriptorOnly,
    /// kPIO queues only: the control bit of kPIO+WC §III.B, first variant.
    KpioOnly,
    /// By TCP destination port: these by kPIO, all else by descriptor; kPIO+WC §III.B, second variant.
    ByPort(PortRange),
}

/// TCP destination ports, both ends included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PortRange {
    /// First port of the range.
    pub first: u16,
    /// Last port of the range, included.
    pub last: u16,
}

impl PortRange {
    /// Whether `port` lies in the range.
    #[inline]
    pub const fn contains(self, port: u16) -> bool {
        self.first <= port && port <= self.last
    }
}

/// What every transmit queue has in common.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TxQueueConfig {
    /// Epoch the queue starts with; recovery raises it by one.
    pub epoch: u8,
    /// Strict priority class, 0 served first; at most 15.
    pub class: u8,
    /// Weight inside the class; 0 reads as 1.
    pub weight: u8,
    /// Whether complete messages may wait in the device's pool instead of counting on credits alone.
    pub backpressure: bool,
    /// Whether the device fills in the checksums of IPv4, TCP and UDP; it must have the feature.
    pub checksums: bool,
    /// How long the device lets a hole stand before it quarantines the queue, in ns; 0 leaves the device's default.
    pub hole_timeout_ns: u64,
}

impl Default for TxQueueConfig {
    fn default() -> Self {
        TxQueueConfig {
            epoch: 1,
            class: 0,
            weight: 1,
            backpressure: false,
            checksums: false,
            hole_timeout_ns: 0,
        }
    }
}

/// When the device pushes the credit count into the sender's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CreditCoalescing {
    /// At the latest after this many freed lines; 0 takes an eighth of the window.
    pub lines: u32,
    /// At the latest after this many ns.
    pub time_ns: u32,
}

impl Default for CreditCoalescing {
    fn default() -> Self {
        CreditCoalescing { lines: 0, time_ns: 2_000 }
    }
}

/// A queue fed by plain stores in any order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MmioConfig {
    /// What all queues have.
    pub queue: TxQueueConfig,
    /// 64 random bits; the blank is made of them where the device's windows are blank, and they are unused elsewhere.
    pub random: u64,
    /// Where the sender fences; `none` is the principle, the others are rivals.
    pub fence_policy: FencePolicy,
    /// When credits come back.
    pub credits: CreditCoalescing,
    /// Which frames of a burst share a message.
    pub batching: Batching,
    /// Lines of a message with which the device may begin its frame before all of it is there (cut-through); 0: only
    /// whole messages begin. Worth it where the wire is slower than the sender stores: a wire that runs dry costs the
    /// frame's front, and the message leaves whole later. The device must have the feature, and does not use it for a
    /// queue with `checksums`.
    pub cut_through_lines: u16,
}

/// Which frames of a burst are packed into batch messages.
///
/// Consecutive frames of at most `max_frame_bytes` are gathered until the batch would pass `max_lines`; they are sent
/// as one message if that takes fewer lines than one message each, and one by one if it does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batching {
    /// Longest frame that is packed; longer ones gain less than one line in `max_frame_bytes / 64`. 0 packs nothing.
    pub max_frame_bytes: usize,
    /// Lines of the longest batch: what a receiver waits for before the first frame of it moves on. Cut to half the
    /// window.
    pub max_lines: u32,
}

impl Batching {
    /// Every frame is a message of its own.
    pub const OFF: Batching = Batching { max_frame_bytes: 0, max_lines: 0 };
}

impl Default for Batching {
    fn default() -> Self {
        Batching { max_frame_bytes: 256, max_lines: 16 }
    }
}

/// A queue fed by whole lines in order, frames ended by EOP words (kPIO+WC §III.A).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KpioConfig {
    /// What all queues have.
    pub queue: TxQueueConfig,
    /// 64 random bits; as in [`MmioConfig`].
    pub random: u64,
    /// The 8-byte end-of-packet signature.
    pub eop: u64,
    /// When credits come back.
    pub credits: CreditCoalescing,
}

impl Default for KpioConfig {
    fn default() -> Self {
        KpioConfig {
            queue: TxQueueConfig::default(),
            random: 0,
            eop: beeline_spec::formats::KPIO_EOP_DEFAULT,
            credits: CreditCoalescing::default(),
        }
    }
}

/// A queue of descriptors in host memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescriptorConfig {
    /// What all queues have.
    pub queue: TxQueueConfig,
    /// Entries of the ring, a power of two.
    pub entries: u32,
    /// Bytes of the memory that frames are copied to; a power of two and at least twice the longest frame.
    pub buffer_bytes: usize,
    /// The device writes its head back after this many frames; at most half the entries.
    pub completion_frames: u32,
    /// And at the latest after this many ns.
    pub completion_time_ns: u32,
    /// Whether the last frame of each burst asks for an interrupt when it is done.
    pub interrupts: bool,
}

impl Default for DescriptorConfig {
    fn default() -> Self {
        DescriptorConfig {
            queue: TxQueueConfig::default(),
            entries: 1024,
            buffer_bytes: 256 * 1024,
            completion_frames: 32,
            completion_time_ns: 2_000,
            interrupts: false,
        }
    }
}

/// A queue of entries that are pushed (HotOS'25 §2.4, BlueFlame).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InlineConfig {
    /// What all queues have. `hole_timeout_ns` is how long a push may be incomplete before its entry is fetched.
    pub queue: TxQueueConfig,
    /// 64 random bits; as in [`MmioConfig`].
    pub random: u64,
    /// Lines of the ring of entries, a power of two.
    pub ring_lines: u32,
    /// Bytes of the memory that long frames are copied to; a power of two and at least twice the longest frame.
    pub buffer_bytes: usize,
    /// The device writes its head back after this many frames; at most half the lines.
    pub completion_frames: u32,
    /// And at the latest after this many ns.
    pub completion_time_ns: u32,
    /// Of a window in memory: when credits come back.
    pub credits: CreditCoalescing,
    /// Every so many pushes one is not used, so that the fall-back is exercised; 0: none.
    pub self_test: u32,
}

impl Default for InlineConfig {
    fn default() -> Self {
        InlineConfig {
            queue: TxQueueConfig::default(),
            random: 0,
            ring_lines: 1024,
            buffer_bytes: 256 * 1024,
            completion_frames: 32,
            completion_time_ns: 2_000,
            credits: CreditCoalescing::default(),
            self_test: 0,
        }
    }
}

/// A transmit pipe (Ensō).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EnsoConfig {
    /// What all queues have.
    pub queue: TxQueueConfig,
    /// Lines of the pipe, a power of two, enough for the longest frame twice.
    pub lines: u32,
    /// The device writes its head back after this many frames; at most half the lines.
    pub completion_frames: u32,
    /// And at the latest after this many ns.
    pub completion_time_ns: u32,
}

impl Default for EnsoConfig {
    fn default() -> Self {
        EnsoConfig {
            queue: TxQueueConfig::default(),
            lines: 4096,
            completion_frames: 32,
            completion_time_ns: 2_000,
        }
    }
}

/// A receive pipe (Ensō).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxEnsoConfig {
    /// Epoch the queue starts with where it has no transmit half, whose epoch is otherwise the queue's; recovery raises it
    /// by one. Behind [`RxNiqConfig`] it says nothing.
    pub epoch: u8,
    /// Lines of the pipe, a power of two, enough for the longest frame twice.
    pub lines: u32,
    /// Entries of the notification ring, a power of two; one at least for each pipe that it tells of.
    pub notifications: u32,
    /// Freed lines are told to the device after this many, and whenever a batch is used up; 0 takes a quarter of the
    /// pipe.
    pub freed_coalesce: u32,
    /// When received frames interrupt a host that is armed for it.
    pub interrupts: InterruptModeration,
}

impl Default for RxEnsoConfig {
    fn default() -> Self {
        RxEnsoConfig {
            epoch: 1,
            lines: 4096,
            notifications: 64,
            freed_coalesce: 0,
            interrupts: InterruptModeration::default(),
        }
    }
}

/// A receive pipe told of in the notification ring of another queue (Ensō).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxEnsoMemberConfig {
    /// Epoch the queue starts with, as [`TxQueueConfig::epoch`]: that of the transmit half where there is one.
    pub epoch: u8,
    /// Lines of the pipe, a power of two, enough for the longest frame twice.
    pub lines: u32,
    /// As in [`RxEnsoConfig`].
    pub freed_coalesce: u32,
    /// When received frames interrupt a host that is armed for it.
    pub interrupts: InterruptModeration,
}

impl Default for RxEnsoMemberConfig {
    fn default() -> Self {
        RxEnsoMemberConfig {
            epoch: 1,
            lines: 4096,
            freed_coalesce: 0,
            interrupts: InterruptModeration::default(),
        }
    }
}

/// A queue of entries in the BAR (NIQ).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NiqConfig {
    /// What all queues have.
    pub queue: TxQueueConfig,
    /// 64 random bits; as in [`MmioConfig`].
    pub random: u64,
    /// An entry has 2 to this power lines: 0, 1 or 2. Short frames of up to 48, 112 or 240 bytes fit one.
    pub entry_lines_log2: u32,
    /// Bytes of the memory that long frames are copied to; a power of two and at least twice the longest frame.
    pub buffer_bytes: usize,
    /// The device writes its head back after this many entries; at most half of those that the window holds.
    pub completion_frames: u32,
    /// And at the latest after this many ns.
    pub completion_time_ns: u32,
}

impl Default for NiqConfig {
    fn default() -> Self {
        NiqConfig {
            queue: TxQueueConfig::default(),
            random: 0,
            entry_lines_log2: 1,
            buffer_bytes: 256 * 1024,
            completion_frames: 16,
            completion_time_ns: 2_000,
        }
    }
}

/// Receiving by reads of entries in the BAR (NIQ).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxNiqConfig {
    /// Epoch the queue starts with, as [`TxQueueConfig::epoch`]: that of the transmit half where there is one.
    pub epoch: u8,
    /// An entry has 2 to this power lines: 0, 1 or 2. A transmit half of the queue must have the same.
    pub entry_lines_log2: u32,
    /// How long the device may hold a read of an entry that is not there, in ns; 0: not at all. Shorter than the host's
    /// PCIe completion time-out, which is 50 us or more.
    pub hold_ns: u32,
    /// Freed entries are told to the device after this many, and whenever a read was held in vain; 0 takes a quarter of
    /// those that the window holds, and half of them is the most.
    pub freed_coalesce: u32,
    /// Whether the next entry is asked for while the frame of one is used, so that frames which follow each other do not each
    /// wait for a crossing. Not for a program that answers a frame on a processor that stands still in an uncached load: its
    /// answer would wait for the next frame.
    pub reads_ahead: bool,
    /// Where frames go that do not fit an entry. `interrupts` in it says nothing.
    pub long: LongFrameConfig,
    /// When received frames interrupt a host that is armed for it.
    pub interrupts: InterruptModeration,
}

impl Default for RxNiqConfig {
    fn default() -> Self {
        RxNiqConfig {
            epoch: 1,
            entry_lines_log2: 1,
            hold_ns: 10_000,
            freed_coalesce: 0,
            reads_ahead: true,
            long: LongFrameConfig::default(),
            interrupts: InterruptModeration::default(),
        }
    }
}

/// Where frames go that do not fit an entry in the BAR.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LongFrameConfig {
    /// Nowhere: the device drops and counts them.
    Dropped,
    /// A contiguous ring.
    Ring(RxRingConfig),
    /// Lent buffers.
    Descriptors(RxDescriptorConfig),
    /// A pipe.
    Pipe(RxEnsoConfig),
}

impl Default for LongFrameConfig {
    fn default() -> Self {
        LongFrameConfig::Ring(RxRingConfig::default())
    }
}

/// A queue of coherent lines (CC-NIC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoherentConfig {
    /// What all queues have.
    pub queue: TxQueueConfig,
    /// Entries of the ring, a power of two. Few, so that they stay in the caches.
    pub entries: u32,
    /// An entry has 2 to this power lines: 0, 1 or 2. A frame of up to 56, 120 or 248 bytes fits one; one names up to 7,
    /// 15 or 31 frames of a burst.
    pub entry_lines_log2: u32,
    /// Buffers of two lines, for short frames of bursts.
    pub short_buffers: u32,
    /// Buffers of the longest frame, at least one.
    pub long_buffers: u32,
}

impl Default for CoherentConfig {
    fn default() -> Self {
        CoherentConfig {
            queue: TxQueueConfig::default(),
            entries: 64,
            entry_lines_log2: 1,
            short_buffers: 512,
            long_buffers: 128,
        }
    }
}

/// A ring of coherent lines that the device fills (CC-NIC).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxCoherentConfig {
    /// Epoch the queue starts with where it has no transmit half, whose epoch is otherwise the queue's; recovery raises it
    /// by one.
    pub epoch: u8,
    /// Entries of the ring, a power of two; one a frame.
    pub entries: u32,
    /// An entry has 2 to this power lines: 0, 1 or 2. A frame of up to 56, 120 or 248 bytes fits one.
    pub entry_lines_log2: u32,
    /// Buffers for longer frames, at least one, each of the port's longest.
    pub buffers: u32,
    /// When received frames interrupt a host that is armed for it.
    pub interrupts: InterruptModeration,
}

impl Default for RxCoherentConfig {
    fn default() -> Self {
        RxCoherentConfig {
            epoch: 1,
            entries: 256,
            entry_lines_log2: 1,
            buffers: 128,
            interrupts: InterruptModeration::default(),
        }
    }
}

/// When frames raise an interrupt; the default raises one for every frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InterruptModeration {
    /// After this many frames; 0 reads as 1.
    pub frames: u32,
    /// At the latest after this many ns.
    pub time_ns: u32,
}

/// A contiguous receive ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxRingConfig {
    /// Epoch the queue starts with where it has no transmit half, whose epoch is otherwise the queue's; recovery raises it
    /// by one. Behind [`RxNiqConfig`] it says nothing.
    pub epoch: u8,
    /// Lines of the ring, a power of two, enough for the longest frame twice.
    pub lines: u32,
    /// Freed lines are told to the device after this many, and whenever the ring is found empty; 0 takes a quarter
    /// of the ring.
    pub freed_coalesce: u32,
    /// When received frames interrupt a host that is armed for it.
    pub interrupts: InterruptModeration,
}

impl Default for RxRingConfig {
    fn default() -> Self {
        RxRingConfig { epoch: 1, lines: 4096, freed_coalesce: 0, interrupts: InterruptModeration::default() }
    }
}

/// A ring of receive buffers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RxDescriptorConfig {
    /// Epoch the queue starts with where it has no transmit half, whose epoch is otherwise the queue's; recovery raises it
    /// by one. Behind [`RxNiqConfig`] it says nothing.
    pub epoch: u8,
    /// Buffers, a power of two.
    pub entries: u32,
    /// Bytes of each buffer, a multiple of 64; frames that are longer are dropped by the device and counted. 0 takes
    /// the device's longest frame.
    pub buffer_bytes: usize,
    /// Freed buffers are told to the device after this many, and whenever none is complete; 0 takes a quarter.
    pub freed_coalesce: u32,
    /// When received frames interrupt a host that is armed for it.
    pub interrupts: InterruptModeration,
}

impl Default for RxDescriptorConfig {
    fn default() -> Self {
        RxDescriptorConfig {
            epoch: 1,
            entries: 512,
            buffer_bytes: 0,
            freed_coalesce: 0,
            interrupts: InterruptModeration::default(),
        }
    }
}

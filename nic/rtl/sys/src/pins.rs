//! The pins of `nic_top` for one clock cycle, as `pins.h` has them.

/// What is driven in a cycle. `wr_*`: a line written to BAR 0; `rd_*`: a register read.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Inputs {
    /// Time in nanoseconds.
    pub now_ns: u64,
    /// Byte enables of the line.
    pub wr_be: u64,
    /// The line, byte 0 in the low byte of word 0.
    pub wr_data: [u64; 8],
    /// A beat of an answer to a DMA read.
    pub rdcpl_data: [u64; 8],
    /// A beat of a frame from the wire.
    pub rx_data: [u64; 8],
    /// Offset of the line in the BAR, a multiple of 64.
    pub wr_address: u32,
    /// Offset of the register.
    pub rd_address: u32,
    /// Echoed in the answer.
    pub rd_tag: u16,
    /// 0: reset.
    pub rst_n: u8,
    /// A line is offered.
    pub wr_valid: u8,
    /// The first beat of a write.
    pub wr_first: u8,
    /// The last beat of a write.
    pub wr_last: u8,
    /// A read is offered.
    pub rd_valid: u8,
    /// Answers are taken.
    pub rc_ready: u8,
    /// DMA writes are taken.
    pub dmawr_ready: u8,
    /// Interrupts are taken.
    pub irq_ready: u8,
    /// The wire takes beats.
    pub frame_ready: u8,
    /// No frame may begin to leave.
    pub frame_pause: u8,
    /// DMA reads are taken.
    pub rdreq_ready: u8,
    /// A beat of an answer to a DMA read is there.
    pub rdcpl_valid: u8,
    /// The last beat of a read completion.
    pub rdcpl_last: u8,
    /// The read failed.
    pub rdcpl_error: u8,
    /// Tag of the read that is answered.
    pub rdcpl_tag: u8,
    /// A beat of a frame from the wire is there.
    pub rx_valid: u8,
    /// Bytes of it, 1 to 64.
    pub rx_bytes: u8,
    /// The last beat of a frame from the wire.
    pub rx_last: u8,
    /// Padding.
    pub unused: [u8; 4],
}

/// What the NIC says in a cycle; data of a group mean nothing unless its `valid` is 1.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Outputs {
    /// Value of the register that was read.
    pub rc_value: u64,
    /// Bus address of a DMA write.
    pub dmawr_address: u64,
    /// Its bytes.
    pub dmawr_data: [u64; 8],
    /// A beat of a frame.
    pub frame_data: [u64; 8],
    /// Bus address of a DMA read.
    pub rdreq_address: u64,
    /// Pool lines that nobody has.
    pub free_lines: u32,
    /// Reorder contexts that nobody has, but for the two that stand ready in front of the reorder unit.
    pub free_contexts: u32,
    /// Tag of the read that is answered.
    pub rc_tag: u16,
    /// Vector of an interrupt.
    pub irq_vector: u16,
    /// Queue that the frame comes from.
    pub frame_queue: u16,
    /// Bytes of a DMA read, 1 to 4096.
    pub rdreq_bytes: u16,
    /// The line is taken.
    pub wr_ready: u8,
    /// The read is taken.
    pub rd_ready: u8,
    /// An answer is there.
    pub rc_valid: u8,
    /// A DMA write is there.
    pub dmawr_valid: u8,
    /// Bytes of it, 1 to 64.
    pub dmawr_bytes: u8,
    /// An interrupt is there.
    pub irq_valid: u8,
    /// A beat is there.
    pub frame_valid: u8,
    /// Bytes of it, 1 to 64.
    pub frame_bytes: u8,
    /// The last beat of a frame to the wire.
    pub frame_last: u8,
    /// The frame ends here, cut short.
    pub frame_abort: u8,
    /// A DMA read is there.
    pub rdreq_valid: u8,
    pub rdreq_tag: u8,
    /// The beat from the wire is taken.
    pub rx_ready: u8,
    /// Registers, windows and the reorder unit have nothing under way but what waits for the wire.
    pub is_idle: u8,
    /// Padding.
    pub unused: [u8; 2],
}

/// Sizes in use, constant for the life of a simulation.
#[derive(Clone, Copy, Debug, Default)]
#[repr(C)]
pub struct Straps {
    /// Station address, byte 0 in the low byte.
    pub mac: u64,
    pub window_lines: u32,
    /// Lines of the reorder span.
    pub span_lines: u32,
    /// Reorder contexts.
    pub contexts: u32,
    pub pool_lines: u32,
    /// Longest frame in bytes.
    pub max_frame_bytes: u32,
    /// 1: frames from the wire are held while the host lends no room; 0: they are dropped.
    pub rx_lossless: u32,
}

const _: () = assert!(size_of::<Inputs>() == 240 && size_of::<Outputs>() == 184 && size_of::<Straps>() == 32);

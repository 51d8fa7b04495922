// nic_top as the simulation behind the device trait has it: with registers at its pins.
//
// Logic that hangs on an input is evaluated anew in every call of the simulation, logic behind a register only when that
// changes; the ready of a pin reaches far into the engines, and straps reach everywhere. With the registers a cycle takes
// half the time.
//
// Guarantees: what goes in and out is nic_top's, a cycle later each way, but for writes, which have no register; straps
// and reset have one too.

`default_nettype none

module nic_sim #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // Lines of a queue's window: a power of two, at least twice SpanLines.
  parameter int unsigned WindowLines = 64,
  // Reorder span in lines: a power of two, 2 to 256.
  parameter int unsigned SpanLines = 16,
  // Reorder contexts, 2 or more.
  parameter int unsigned NumContexts = 16,
  // Lines of the pool.
  parameter int unsigned PoolLines = 512,
  // Strict priority classes, 1 to 16.
  parameter int unsigned NumClasses = 4,
  // What is there beside mmio: kPIO+WC, descriptors, pushed entries, pipes, NIQ, receive.
  parameter bit HasKpio = 1'b1,
  parameter bit HasDescriptor = 1'b1,
  parameter bit HasInline = 1'b1,
  parameter bit HasEnso = 1'b1,
  parameter bit HasNiq = 1'b1,
  parameter bit HasReceive = 1'b1,
  parameter bit HasChecksums = 1'b1,
  // Bits of an offset in BAR 0: 2 MiB of registers and the windows behind them, each at least a page.
  localparam int unsigned StrideLog2 = ($clog2(WindowLines) + 6 > 12) ? $clog2(WindowLines) + 6 : 12,
  localparam int unsigned AddressW = ($clog2(NumQueues) + StrideLog2 > 21) ? $clog2(NumQueues) + StrideLog2 + 1 : 22,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [47:0]         now_ns_i,

  // Straps.
  input  logic [31:0]         strap_window_lines_i,
  input  logic [31:0]         strap_span_lines_i,
  input  logic [31:0]         strap_contexts_i,
  input  logic [31:0]         strap_pool_lines_i,
  input  logic [31:0]         strap_max_frame_bytes_i,
  input  logic [47:0]         strap_mac_i,

  // Lines written to BAR 0; the address is a multiple of 64.
  input  logic                wr_valid_i,
  output logic                wr_ready_o,
  input  logic [AddressW-1:0] wr_address_i,
  input  logic [511:0]        wr_data_i,
  input  logic [63:0]         wr_be_i,
  input  logic                wr_first_i,
  input  logic                wr_last_i,

  // Reads of aligned 64-bit registers; each pushes the writes that were taken before it.
  input  logic                rd_valid_i,
  output logic                rd_ready_o,
  input  logic [AddressW-1:0] rd_address_i,
  input  logic [15:0]         rd_tag_i,
  output logic                rc_valid_o,
  input  logic                rc_ready_i,
  output logic [15:0]         rc_tag_o,
  output logic [63:0]         rc_value_o,

  // DMA writes: at most a line, the bytes from the lowest on.
  output logic                dmawr_valid_o,
  input  logic                dmawr_ready_i,
  output logic [63:0]         dmawr_address_o,
  output logic [511:0]        dmawr_data_o,
  output logic [6:0]          dmawr_bytes_o,

  // DMA reads of at most 4096 bytes that cross no 4 KiB boundary. Answers come in any order of tags, each as beats of 64
  // bytes from the first byte asked for on, the last one marked; a failed read is answered by one beat with `error`.
  output logic                rdreq_valid_o,
  input  logic                rdreq_ready_i,
  output logic [63:0]         rdreq_address_o,
  output logic [12:0]         rdreq_bytes_o,
  output logic [7:0]          rdreq_tag_o,
  input  logic                rdcpl_valid_i,
  input  logic [7:0]          rdcpl_tag_i,
  input  logic [511:0]        rdcpl_data_i,
  input  logic                rdcpl_last_i,
  input  logic                rdcpl_error_i,

  // Interrupts.
  output logic                irq_valid_o,
  input  logic                irq_ready_i,
  output logic [QueueW-1:0]   irq_vector_o,

  // Frames to the MAC; `abort` with the last beat: the frame must not arrive whole. While `pause` is high (IEEE 802.3
  // annex 31B) no frame begins to leave its engine; those in the arbiters, a few lines, still do.
  input  logic                frame_pause_i,
  output logic                frame_valid_o,
  input  logic                frame_ready_i,
  output logic [511:0]        frame_data_o,
  output logic [6:0]          frame_bytes_o,
  output logic                frame_last_o,
  output logic                frame_abort_o,
  output logic [QueueW-1:0]   frame_queue_o,

  // Frames from the MAC, and whether one is held (1) or dropped (0) while the host lends no room.
  input  logic                rx_lossless_i,
  input  logic                rx_valid_i,
  output logic                rx_ready_o,
  input  logic [511:0]        rx_data_i,
  input  logic [6:0]          rx_bytes_i,
  input  logic                rx_last_i,

  // Registers, windows and the reorder unit have nothing under way but what waits for the wire. (Descriptors and
  // receive have always something to look at; their pins tell what they do.)
  output logic                is_idle_o,

  // Names of pool lines and of reorder contexts that nobody has. They are no pins of nic_top: what its accounts say can be
  // right while a name is lost, and only a test asks.
  output logic [31:0]         free_lines_o,
  output logic [31:0]         free_contexts_o
);

  // ------------------------------------------------------------------------------ what seldom changes
  logic [31:0] window_lines_q, span_lines_q, contexts_q, pool_lines_q, max_frame_bytes_q;
  logic [47:0] mac_q, now_ns_q;
  logic        rst_q, lossless_q, pause_q;

  always_ff @(posedge clk_i) begin
    window_lines_q    <= strap_window_lines_i;
    span_lines_q      <= strap_span_lines_i;
    contexts_q        <= strap_contexts_i;
    pool_lines_q      <= strap_pool_lines_i;
    max_frame_bytes_q <= strap_max_frame_bytes_i;
    mac_q             <= strap_mac_i;
    now_ns_q          <= now_ns_i;
    rst_q             <= rst_ni;
    lossless_q        <= rx_lossless_i;
    pause_q           <= frame_pause_i;
  end

  // ------------------------------------------------------------------------------ what goes in
  localparam int unsigned ReadW  = AddressW + 16;
  localparam int unsigned BeatW  = 512 + 7 + 1;
  logic                rd_valid, rd_ready, rx_valid, rx_ready, rx_last;
  logic [AddressW-1:0] rd_address;
  logic [511:0]        rx_data, cpl_data_q;
  logic [15:0]         rd_tag;
  logic [6:0]          rx_bytes;
  logic                cpl_valid_q, cpl_last_q, cpl_error_q;
  logic [7:0]          cpl_tag_q;

  // Writes go in as they are, for a write that the NIC refuses must be seen to be refused; a read stands behind them.
  fifo #(.Width(ReadW), .Depth(2)) u_reads (
    .clk_i, .rst_ni(rst_q), .push_valid_i(rd_valid_i), .push_ready_o(rd_ready_o),
    .push_data_i({rd_address_i, rd_tag_i}),
    .pop_valid_o(rd_valid), .pop_ready_i(rd_ready), .pop_data_o({rd_address, rd_tag}), .count_o()
  );
  fifo #(.Width(BeatW), .Depth(2)) u_received (
    .clk_i, .rst_ni(rst_q), .push_valid_i(rx_valid_i), .push_ready_o(rx_ready_o),
    .push_data_i({rx_data_i, rx_bytes_i, rx_last_i}),
    .pop_valid_o(rx_valid), .pop_ready_i(rx_ready), .pop_data_o({rx_data, rx_bytes, rx_last}), .count_o()
  );
  always_ff @(posedge clk_i) begin
    cpl_valid_q <= rst_q && rdcpl_valid_i;
    cpl_tag_q   <= rdcpl_tag_i;
    cpl_data_q  <= rdcpl_data_i;
    cpl_last_q  <= rdcpl_last_i;
    cpl_error_q <= rdcpl_error_i;
  end

  // ------------------------------------------------------------------------------ what comes out
  logic              rc_valid, rc_ready, dw_valid, dw_ready, dr_valid, dr_ready, irq_valid, irq_ready;
  logic              frame_valid, frame_ready, frame_last, frame_abort, is_idle;
  logic [15:0]       rc_tag;
  logic [63:0]       rc_value, dw_address, dr_address;
  logic [511:0]      dw_data, frame_data;
  logic [6:0]        dw_bytes, frame_bytes;
  logic [12:0]       dr_bytes;
  logic [7:0]        dr_tag;
  logic [QueueW-1:0] irq_vector, frame_queue;

  fifo #(.Width(16 + 64), .Depth(2)) u_answers (
    .clk_i, .rst_ni(rst_q), .push_valid_i(rc_valid), .push_ready_o(rc_ready), .push_data_i({rc_tag, rc_value}),
    .pop_valid_o(rc_valid_o), .pop_ready_i(rc_ready_i), .pop_data_o({rc_tag_o, rc_value_o}), .count_o()
  );
  fifo #(.Width(64 + 512 + 7), .Depth(2)) u_dma_writes (
    .clk_i, .rst_ni(rst_q), .push_valid_i(dw_valid), .push_ready_o(dw_ready),
    .push_data_i({dw_address, dw_data, dw_bytes}),
    .pop_valid_o(dmawr_valid_o), .pop_ready_i(dmawr_ready_i),
    .pop_data_o({dmawr_address_o, dmawr_data_o, dmawr_bytes_o}), .count_o()
  );
  fifo #(.Width(64 + 13 + 8), .Depth(2)) u_dma_reads (
    .clk_i, .rst_ni(rst_q), .push_valid_i(dr_valid), .push_ready_o(dr_ready),
    .push_data_i({dr_address, dr_bytes, dr_tag}),
    .pop_valid_o(rdreq_valid_o), .pop_ready_i(rdreq_ready_i),
    .pop_data_o({rdreq_address_o, rdreq_bytes_o, rdreq_tag_o}), .count_o()
  );
  fifo #(.Width(QueueW), .Depth(2)) u_interrupts (
    .clk_i, .rst_ni(rst_q), .push_valid_i(irq_valid), .push_ready_o(irq_ready), .push_data_i(irq_vector),
    .pop_valid_o(irq_valid_o), .pop_ready_i(irq_ready_i), .pop_data_o(irq_vector_o), .count_o()
  );
  fifo #(.Width(BeatW + 1 + QueueW), .Depth(2)) u_frames (
    .clk_i, .rst_ni(rst_q), .push_valid_i(frame_valid), .push_ready_o(frame_ready),
    .push_data_i({frame_data, frame_bytes, frame_last, frame_abort, frame_queue}),
    .pop_valid_o(frame_valid_o), .pop_ready_i(frame_ready_i),
    .pop_data_o({frame_data_o, frame_bytes_o, frame_last_o, frame_abort_o, frame_queue_o}), .count_o()
  );
  assign is_idle_o = is_idle && !rd_valid && !rx_valid && !rc_valid_o && !dmawr_valid_o && !rdreq_valid_o
      && !irq_valid_o;

  nic_top #(
    .NumQueues(NumQueues), .WindowLines(WindowLines), .SpanLines(SpanLines), .NumContexts(NumContexts),
    .PoolLines(PoolLines), .NumClasses(NumClasses), .HasKpio(HasKpio), .HasDescriptor(HasDescriptor),
    .HasInline(HasInline), .HasEnso(HasEnso), .HasNiq(HasNiq), .HasReceive(HasReceive), .HasChecksums(HasChecksums)
  ) u_nic (
    .clk_i, .rst_ni(rst_q), .now_ns_i(now_ns_q),
    .strap_window_lines_i(window_lines_q), .strap_span_lines_i(span_lines_q), .strap_contexts_i(contexts_q),
    .strap_pool_lines_i(pool_lines_q), .strap_max_frame_bytes_i(max_frame_bytes_q), .strap_mac_i(mac_q),
    .wr_valid_i, .wr_ready_o, .wr_address_i, .wr_data_i, .wr_be_i, .wr_first_i, .wr_last_i,
    .rd_valid_i(rd_valid), .rd_ready_o(rd_ready), .rd_address_i(rd_address), .rd_tag_i(rd_tag),
    .rc_valid_o(rc_valid), .rc_ready_i(rc_ready), .rc_tag_o(rc_tag), .rc_value_o(rc_value),
    .dmawr_valid_o(dw_valid), .dmawr_ready_i(dw_ready), .dmawr_address_o(dw_address), .dmawr_data_o(dw_data),
    .dmawr_bytes_o(dw_bytes),
    .rdreq_valid_o(dr_valid), .rdreq_ready_i(dr_ready), .rdreq_address_o(dr_address), .rdreq_bytes_o(dr_bytes),
    .rdreq_tag_o(dr_tag),
    .rdcpl_valid_i(cpl_valid_q), .rdcpl_tag_i(cpl_tag_q), .rdcpl_data_i(cpl_data_q), .rdcpl_last_i(cpl_last_q),
    .rdcpl_error_i(cpl_error_q),
    .irq_valid_o(irq_valid), .irq_ready_i(irq_ready), .irq_vector_o(irq_vector),
    .frame_pause_i(pause_q), .frame_valid_o(frame_valid), .frame_ready_i(frame_ready), .frame_data_o(frame_data),
    .frame_bytes_o(frame_bytes), .frame_last_o(frame_last), .frame_abort_o(frame_abort), .frame_queue_o(frame_queue),
    .rx_lossless_i(lossless_q), .rx_valid_i(rx_valid), .rx_ready_o(rx_ready), .rx_data_i(rx_data),
    .rx_bytes_i(rx_bytes), .rx_last_i(rx_last),
    .is_idle_o(is_idle)
  );

  assign free_lines_o    = 32'(u_nic.u_transmit.u_mmio.g_one.u_mmio.lines_free);
  assign free_contexts_o = 32'(u_nic.u_transmit.u_mmio.g_one.u_mmio.contexts_free);

endmodule

`default_nettype wire

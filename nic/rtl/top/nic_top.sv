// The NIC of one port, without its PCIe core and MAC.
//
// In front: lines that were written to BAR 0 and reads of its registers, in order, from any PCIe core (an adapter for
// UltraScale+ is in nic/rtl/pcie). Behind: a stream of whole frames. Beside: DMA writes and interrupts.
//
// Guarantees: those of the parts; see nic/README.md for the path of a frame. Parameters are the sizes that are built,
// straps the sizes that are used; straps are constant after reset and at most the parameters (tied off they cost
// nothing). Twin: nic/model/src/nic.rs.

`default_nettype none

module nic_top #(
  // Queues, 1 to 1024.
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
  // Bits of an offset in BAR 0: 2 MiB of registers and the windows behind them, each at least a page.
  localparam int unsigned StrideLog2 = ($clog2(WindowLines) + 6 > 12) ? $clog2(WindowLines) + 6 : 12,
  localparam int unsigned AddressW = ($clog2(NumQueues) + StrideLog2 > 21) ? $clog2(NumQueues) + StrideLog2 + 1 : 22,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned LineW = $clog2(WindowLines)
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

  // DMA writes.
  output logic                dmawr_valid_o,
  input  logic                dmawr_ready_i,
  output logic [63:0]         dmawr_address_o,
  output logic [511:0]        dmawr_data_o,
  output logic [6:0]          dmawr_bytes_o,

  // Interrupts.
  output logic                irq_valid_o,
  input  logic                irq_ready_i,
  output logic [QueueW-1:0]   irq_vector_o,

  // Frames to the MAC.
  output logic                frame_valid_o,
  input  logic                frame_ready_i,
  output logic [511:0]        frame_data_o,
  output logic [6:0]          frame_bytes_o,
  output logic                frame_last_o,
  output logic [QueueW-1:0]   frame_queue_o,

  // Nothing is under way but what waits for the wire or the host.
  output logic                is_idle_o
);

  localparam int unsigned NumCounters = 96;
  localparam int unsigned RingW = $clog2(SpanLines) + 1;

  if (NumQueues < 1 || NumQueues > nic_pkg::MaxQueues) begin : g_bad_queues
    $fatal(1, "nic_top: NumQueues must be 1 to 1024");
  end
  if (AddressW > 31) begin : g_bad_bar
    $fatal(1, "nic_top: the windows of all queues must fit a BAR of 2 GiB");
  end

  // ------------------------------------------------------------------------------ straps
  logic [AddressW-1:0] aperture;
  logic [4:0]          stride_log2;
  logic [LineW-1:0]    window_mask;
  logic [RingW-1:0]    span_lines, ring_mask;
  logic [31:0]         window_mask_wide, ring_lines;

  assign window_mask_wide = strap_window_lines_i - 1'b1;
  assign window_mask      = window_mask_wide[LineW-1:0];
  assign ring_lines       = (strap_span_lines_i * 2 < strap_window_lines_i) ? strap_span_lines_i * 2
                                                                            : strap_window_lines_i;
  assign span_lines       = strap_span_lines_i[RingW-1:0];
  assign ring_mask        = RingW'(ring_lines - 1'b1);

  // A window takes its own size, or a page; the first one stands behind the registers, at a multiple of that.
  always_comb begin
    stride_log2 = 5'd12;
    for (int i = 7; i < 20; i++) if (strap_window_lines_i[i]) stride_log2 = 5'(i + 6);
  end
  assign aperture = (stride_log2 > 5'd21) ? AddressW'(1) << stride_log2 : AddressW'(1) << 21;

  // ------------------------------------------------------------------------------ ingress
  logic                engines_reset_n, ingress_idle, bad_access_ingress;
  logic [QueueW-1:0]   route_queue;
  logic [3:0]          route;
  logic                piece_valid, piece_ready, piece_whole, piece_first, piece_last;
  logic [3:0]          piece_route;
  logic [QueueW-1:0]   piece_queue;
  logic [LineW-1:0]    piece_line;
  logic [511:0]        piece_data;
  logic [63:0]         piece_be;
  logic                register_valid, register_ready;
  logic [AddressW-1:0] register_address;
  logic [63:0]         register_value;
  logic                settled, mmio_settled, mmio_idle, mmio_piece_ready, mmio_full, mmio_full_q;
  logic                registers_hold, registers_idle;

  bar_ingress #(.NumQueues(NumQueues), .LineW(LineW), .AddressW(AddressW)) u_ingress (
    .clk_i, .rst_ni,
    .aperture_i(aperture), .stride_log2_i(stride_log2), .window_mask_i(window_mask),
    .hold_i(registers_hold || mmio_full),
    .wr_valid_i, .wr_ready_o, .wr_address_i, .wr_data_i, .wr_be_i, .wr_first_i, .wr_last_i,
    .route_queue_o(route_queue), .route_i(route),
    .piece_valid_o(piece_valid), .piece_ready_i(piece_ready), .piece_route_o(piece_route),
    .piece_queue_o(piece_queue), .piece_line_o(piece_line), .piece_data_o(piece_data), .piece_be_o(piece_be),
    .piece_whole_o(piece_whole), .piece_first_o(piece_first), .piece_last_o(piece_last),
    .register_valid_o(register_valid), .register_ready_i(register_ready), .register_address_o(register_address),
    .register_value_o(register_value), .is_idle_o(ingress_idle), .count_bad_accesses_o(bad_access_ingress)
  );

  // ------------------------------------------------------------------------------ registers
  logic                start_valid, stop_valid, engines_busy, failed_valid, failed_ready;
  logic [QueueW-1:0]   setup_queue, failed_queue, next_start_queue;
  logic [3:0]          failed_cause;
  nic_rtl_pkg::queue_settings_t settings;
  logic [47:0]         next_start;
  logic [6:0]          counter;
  logic [63:0]         count;
  logic                counters_busy, bad_access_registers, doorbell_counted, irq_failed_valid;
  logic [15:0]         depth_max;
  logic [QueueW-1:0]   irq_failed_queue;
  logic                registers_ready;

  // A write waits until those before it have been judged, where it may start or stop a queue.
  assign register_ready = registers_ready && settled;

  registers #(.NumQueues(NumQueues), .AddressW(AddressW), .Interfaces(16'h0002)) u_registers (
    .clk_i, .rst_ni,
    .window_lines_i(strap_window_lines_i), .span_lines_i(strap_span_lines_i), .pool_lines_i(strap_pool_lines_i),
    .contexts_i(strap_contexts_i), .max_frame_bytes_i(strap_max_frame_bytes_i), .aperture_i(aperture),
    .stride_log2_i(stride_log2), .mac_i(strap_mac_i),
    .wr_valid_i(register_valid && settled), .wr_ready_o(registers_ready), .wr_address_i(register_address),
    .wr_value_i(register_value),
    .rd_valid_i(rd_valid_i && ingress_idle), .rd_ready_o, .rd_address_i, .rd_tag_i,
    .rc_valid_o, .rc_ready_i, .rc_tag_o, .rc_value_o,
    .settled_i(settled), .hold_o(registers_hold), .is_idle_o(registers_idle),
    .route_queue_i(route_queue), .route_o(route),
    .start_valid_o(start_valid), .stop_valid_o(stop_valid), .setup_queue_o(setup_queue),
    .setup_settings_o(settings), .engines_busy_i(engines_busy), .engines_reset_no(engines_reset_n),
    .failed_valid_i(failed_valid), .failed_ready_o(failed_ready), .failed_queue_i(failed_queue),
    .failed_cause_i(failed_cause),
    .tx_tail_valid_o(), .rx_freed_valid_o(), .doorbell_queue_o(), .doorbell_value_o(),
    .next_start_queue_o(next_start_queue), .next_start_i(next_start), .counter_o(counter), .count_i(count),
    .counters_busy_i(counters_busy), .reorder_depth_max_i(depth_max),
    .mux_o(), .mux_ports_o(),
    .cause_tx_completion_i(1'b0), .cause_rx_frame_i(1'b0), .irq_mask_o(),
    .irq_failed_valid_o(irq_failed_valid), .irq_failed_queue_o(irq_failed_queue),
    .count_bad_accesses_o(bad_access_registers), .count_doorbells_o(doorbell_counted)
  );

  // ------------------------------------------------------------------------------ the mmio engine
  logic                rst_engines_n, mmio_busy, credits_busy;
  logic                freed_valid;
  logic [QueueW-1:0]   freed_queue;
  logic [31:0]         freed_lines;
  logic                is_mmio_q, starts_mmio;

  always_ff @(posedge clk_i) mmio_full_q <= mmio_full && wr_valid_i;
  assign rst_engines_n = rst_ni && engines_reset_n;
  assign starts_mmio   = settings.iface == nic_pkg::QueueControlIfaceMmio;
  assign piece_ready   = mmio_piece_ready;
  assign engines_busy  = mmio_busy || credits_busy;
  assign settled       = mmio_settled;

  logic       count_tx_writes, count_quarantined_writes, count_reordered_writes, count_split_lines;
  logic       count_refused_writes, count_tx_messages, count_tx_voids, count_tx_batches, count_no_context;
  logic       count_no_pool;
  logic [1:0] count_runts;
  logic       count_holes, count_hole_timeouts, count_credit_pushes;
  logic [6:0] count_tx_write_bytes;
  logic [7:0] count_tlp_bytes;
  logic [15:0] count_displacement;

  mmio #(
    .NumQueues(NumQueues), .WindowLines(WindowLines), .SpanLines(SpanLines), .NumContexts(NumContexts),
    .PoolLines(PoolLines), .NumClasses(NumClasses)
  ) u_mmio (
    .clk_i, .rst_ni(rst_engines_n),
    .window_mask_i(window_mask), .span_lines_i(span_lines), .ring_mask_i(ring_mask),
    .pool_lines_i(strap_pool_lines_i[15:0]), .contexts_i(strap_contexts_i[15:0]),
    .max_frame_bytes_i(strap_max_frame_bytes_i[13:0]),
    .piece_valid_i(piece_valid && piece_route == nic_pkg::QueueControlIfaceMmio), .piece_ready_o(mmio_piece_ready),
    .piece_queue_i(piece_queue), .piece_line_i(piece_line), .piece_data_i(piece_data), .piece_be_i(piece_be),
    .piece_whole_i(piece_whole), .piece_first_i(piece_first), .piece_last_i(piece_last),
    .now_ns_i,
    .start_valid_i(start_valid && starts_mmio), .start_queue_i(setup_queue), .start_settings_i(settings),
    .stop_valid_i(stop_valid), .stop_queue_i(setup_queue), .busy_o(mmio_busy),
    .failed_valid_o(failed_valid), .failed_ready_i(failed_ready), .failed_queue_o(failed_queue),
    .failed_cause_o(failed_cause),
    .frame_valid_o, .frame_ready_i, .frame_data_o, .frame_bytes_o, .frame_last_o, .frame_queue_o,
    .freed_valid_o(freed_valid), .freed_queue_o(freed_queue), .freed_lines_o(freed_lines),
    .look_queue_i(next_start_queue), .look_next_start_o(next_start),
    .is_idle_o(mmio_idle), .is_settled_o(mmio_settled), .is_full_o(mmio_full),
    .count_tx_writes_o(count_tx_writes), .count_tx_write_bytes_o(count_tx_write_bytes),
    .count_quarantined_writes_o(count_quarantined_writes), .count_reordered_writes_o(count_reordered_writes),
    .count_tlp_bytes_histogram_o(count_tlp_bytes), .count_displacement_histogram_o(count_displacement),
    .reorder_depth_max_o(depth_max), .count_split_lines_o(count_split_lines),
    .count_refused_writes_o(count_refused_writes), .count_tx_messages_o(count_tx_messages),
    .count_tx_voids_o(count_tx_voids), .count_tx_batches_o(count_tx_batches), .count_runts_o(count_runts),
    .count_no_context_o(count_no_context),
    .count_no_pool_o(count_no_pool), .count_holes_o(count_holes), .count_hole_timeouts_o(count_hole_timeouts)
  );

  credit_return #(.NumQueues(NumQueues)) u_credits (
    .clk_i, .rst_ni(rst_engines_n), .now_ns_i, .busy_o(credits_busy),
    .start_valid_i(start_valid), .start_queue_i(setup_queue), .start_settings_i(settings),
    .stop_valid_i(stop_valid), .stop_queue_i(setup_queue),
    .freed_valid_i(freed_valid), .freed_queue_i(freed_queue), .freed_lines_i(freed_lines),
    .dmawr_valid_o, .dmawr_ready_i, .dmawr_address_o, .dmawr_data_o, .dmawr_bytes_o,
    .count_credit_pushes_o(count_credit_pushes)
  );

  // ------------------------------------------------------------------------------ interrupts
  fifo #(.Width(QueueW), .Depth((NumQueues < 2) ? 2 : 1 << $clog2(NumQueues))) u_interrupts (
    .clk_i, .rst_ni(rst_engines_n), .push_valid_i(irq_failed_valid), .push_ready_o(), .push_data_i(irq_failed_queue),
    .pop_valid_o(irq_valid_o), .pop_ready_i(irq_ready_i), .pop_data_o(irq_vector_o), .count_o()
  );

  // ------------------------------------------------------------------------------ counters
  logic [NumCounters-1:0][7:0] increments;
  logic                        frame_done, failed_told;
  assign frame_done  = frame_valid_o && frame_ready_i;
  assign failed_told = failed_valid && failed_ready;

  always_comb begin
    increments = '0;
    increments[nic_pkg::CounterTxWritesOffset >> 3]          = 8'(count_tx_writes);
    increments[nic_pkg::CounterTxWriteBytesOffset >> 3]      = 8'(count_tx_write_bytes);
    increments[nic_pkg::CounterTxMessagesOffset >> 3]        = 8'(count_tx_messages);
    increments[nic_pkg::CounterTxFramesOffset >> 3]          = 8'(frame_done && frame_last_o);
    increments[nic_pkg::CounterTxFrameBytesOffset >> 3]      = frame_done ? 8'(frame_bytes_o) : '0;
    increments[nic_pkg::CounterTxVoidsOffset >> 3]           = 8'(count_tx_voids);
    increments[nic_pkg::CounterTxBatchesOffset >> 3]         = 8'(count_tx_batches);
    increments[nic_pkg::CounterReorderedWritesOffset >> 3]   = 8'(count_reordered_writes);
    increments[nic_pkg::CounterSplitLinesOffset >> 3]        = 8'(count_split_lines);
    increments[nic_pkg::CounterHolesOffset >> 3]             = 8'(count_holes);
    increments[nic_pkg::CounterHoleTimeoutsOffset >> 3]      = 8'(count_hole_timeouts);
    increments[nic_pkg::CounterQuarantinedWritesOffset >> 3] = 8'(count_quarantined_writes);
    increments[nic_pkg::CounterRuntsOffset >> 3]             = 8'(count_runts);
    increments[nic_pkg::CounterBadAccessesOffset >> 3]       = 8'(bad_access_ingress) + 8'(bad_access_registers);
    increments[nic_pkg::CounterRefusedWritesOffset >> 3]     = 8'(count_refused_writes)
                                                               + 8'(mmio_full && !mmio_full_q && wr_valid_i);
    increments[nic_pkg::CounterCreditPushesOffset >> 3]      = 8'(count_credit_pushes);
    increments[nic_pkg::CounterDoorbellsOffset >> 3]         = 8'(doorbell_counted);
    increments[nic_pkg::CounterInterruptsOffset >> 3]        = 8'(irq_valid_o && irq_ready_i);
    // A queue fails once, and each cause has its counter.
    if (failed_told) begin
      unique case (failed_cause)
        nic_pkg::QueueStatusCauseSpanExceeded: increments[nic_pkg::CounterSpanExceededOffset >> 3] = 8'd1;
        nic_pkg::QueueStatusCauseBadHeader:    increments[nic_pkg::CounterBadHeadersOffset >> 3]   = 8'd1;
        nic_pkg::QueueStatusCauseClobber:      increments[nic_pkg::CounterClobbersOffset >> 3]     = 8'd1;
        nic_pkg::QueueStatusCauseOverrun:      increments[nic_pkg::CounterOverrunsOffset >> 3]     = 8'd1;
        nic_pkg::QueueStatusCauseBadLength:    increments[nic_pkg::CounterBadLengthsOffset >> 3]   = 8'd1;
        nic_pkg::QueueStatusCauseNoContext:    increments[nic_pkg::CounterNoContextOffset >> 3]    = 8'd1;
        nic_pkg::QueueStatusCauseNoPool:       increments[nic_pkg::CounterNoPoolOffset >> 3]       = 8'd1;
        default: ;
      endcase
    end
    for (int i = 0; i < 8; i++) begin
      increments[(nic_pkg::CounterTlpBytesHistogramOffset >> 3) + i] = 8'(count_tlp_bytes[i]);
    end
    for (int i = 0; i < 16; i++) begin
      increments[(nic_pkg::CounterDisplacementHistogramOffset >> 3) + i] = 8'(count_displacement[i]);
    end
  end

  counters #(.Counters(NumCounters)) u_counters (
    .clk_i, .rst_ni(rst_engines_n), .increments_i(increments), .look_i(counter), .count_o(count),
    .busy_o(counters_busy)
  );

  assign is_idle_o = ingress_idle && registers_idle && !engines_busy && mmio_idle && !dmawr_valid_o && !irq_valid_o
      && !rc_valid_o;

  logic unused;
  assign unused = &{1'b0, is_mmio_q, count_no_context, count_no_pool, window_mask_wide[31:LineW]};
  assign is_mmio_q = 1'b0;

endmodule

`default_nettype wire

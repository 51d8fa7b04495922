// The interface mmio as a transmit path of the port: the engine, its credits, and what is counted of it.
//
// Guarantees: those of mmio/mmio.sv, or with two lanes of mmio_pair.sv: two lines a cycle come in, and frames leave in two
// streams, those of even queues in stream 0. Only queues that start with the interface mmio are its own.
// Twin: nic/model/src/mmio/mod.rs.

`default_nettype none

module mmio_path #(
  // Those of mmio/mmio.sv.
  parameter int unsigned NumQueues = 64,
  parameter int unsigned WindowLines = 64,
  parameter int unsigned SpanLines = 16,
  parameter int unsigned NumContexts = 16,
  parameter int unsigned PoolLines = 512,
  parameter int unsigned NumClasses = 4,
  // Lines a cycle, 1 or 2.
  parameter int unsigned Lanes = 1,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned LineW = $clog2(WindowLines)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic [47:0]       now_ns_i,

  // Straps, see mmio/mmio.sv.
  input  logic [LineW-1:0]  window_mask_i,
  input  logic [$clog2(SpanLines):0] span_lines_i,
  input  logic [$clog2(SpanLines):0] ring_mask_i,
  input  logic [15:0]       pool_lines_i,
  input  logic [15:0]       contexts_i,
  input  logic [13:0]       max_frame_bytes_i,

  output logic              busy_o,
  input  logic              start_valid_i,
  input  logic [QueueW-1:0] start_queue_i,
  input  nic_rtl_pkg::queue_settings_t start_settings_i,
  input  logic              stop_valid_i,
  input  logic [QueueW-1:0] stop_queue_i,
  output logic              failed_valid_o,
  input  logic              failed_ready_i,
  output logic [QueueW-1:0] failed_queue_o,
  output logic [3:0]        failed_cause_o,

  // Pieces of lines of its queues: piece 0 was written before piece 1, and both are taken or none.
  input  logic [Lanes-1:0]  piece_valid_i,
  output logic              piece_ready_o,
  input  logic [Lanes-1:0][QueueW-1:0] piece_queue_i,
  input  logic [Lanes-1:0][LineW-1:0] piece_line_i,
  input  logic [Lanes-1:0][511:0] piece_data_i,
  input  logic [Lanes-1:0][63:0] piece_be_i,
  input  logic [Lanes-1:0]  piece_whole_i,
  input  logic [Lanes-1:0]  piece_first_i,
  input  logic [Lanes-1:0]  piece_last_i,

  output logic [Lanes-1:0]  frame_valid_o,
  input  logic [Lanes-1:0]  frame_ready_i,
  output logic [Lanes-1:0][511:0] frame_data_o,
  output logic [Lanes-1:0][6:0] frame_bytes_o,
  output logic [Lanes-1:0]  frame_last_o,
  output logic [Lanes-1:0][QueueW-1:0] frame_queue_o,
  output logic [Lanes-1:0]  frame_early_o,
  output logic [Lanes-1:0]  frame_abort_o,
  input  logic [Lanes-1:0]  shown_valid_i,
  input  logic [Lanes-1:0]  shown_bad_i,
  input  logic [Lanes-1:0]  shown_broken_i,

  // Credits.
  output logic              dmawr_valid_o,
  input  logic              dmawr_ready_i,
  output logic [63:0]       dmawr_address_o,
  output logic [511:0]      dmawr_data_o,
  output logic [6:0]        dmawr_bytes_o,

  // What registers tell.
  input  logic [QueueW-1:0] look_queue_i,
  output logic [47:0]       look_next_start_o,
  output logic [15:0]       reorder_depth_max_o,

  // See mmio/mmio.sv.
  output logic              is_idle_o,
  output logic              is_settled_o,
  output logic              is_full_o,

  output nic_rtl_pkg::increments_t increments_o
);

  if (Lanes < 1 || Lanes > 2) begin : g_bad_lanes
    $fatal(1, "mmio_path: Lanes must be 1 or 2");
  end

  logic              starts, mmio_busy, credits_busy, freed_counts, credit_pushes, failed;
  logic [QueueW-1:0] freed_queue;
  logic [31:0]       freed_lines;
  // Up to one in a cycle from each of the engines.
  logic [Lanes-1:0]  tx_writes, quarantined, reordered, split_lines, refused, messages, voids, batches,
                     cut_through_frames, unused_no_context, unused_no_pool, holes, hole_timeouts;
  logic [Lanes:0]    runts;
  logic [Lanes+5:0]  tx_write_bytes;
  logic [7:0][Lanes-1:0]  tlp_bytes;
  logic [15:0][Lanes-1:0] displacement;

  assign starts = start_valid_i && start_settings_i.iface == 4'(nic_pkg::QueueControlIfaceMmio);
  assign busy_o = mmio_busy || credits_busy;
  assign failed = failed_valid_o && failed_ready_i;

  if (Lanes == 1) begin : g_one
    logic              freed_valid, starting_q;
    logic [QueueW-1:0] starting_queue_q;

    mmio #(
      .NumQueues(NumQueues), .WindowLines(WindowLines), .SpanLines(SpanLines), .NumContexts(NumContexts),
      .PoolLines(PoolLines), .NumClasses(NumClasses)
    ) u_mmio (
      .clk_i, .rst_ni,
      .window_mask_i, .span_lines_i, .ring_mask_i, .pool_lines_i, .contexts_i, .max_frame_bytes_i,
      .piece_valid_i, .piece_ready_o, .piece_queue_i, .piece_line_i, .piece_data_i, .piece_be_i,
      .piece_whole_i, .piece_first_i, .piece_last_i,
      .now_ns_i,
      .start_valid_i(starts), .start_queue_i, .start_settings_i, .stop_valid_i, .stop_queue_i, .busy_o(mmio_busy),
      .failed_valid_o, .failed_ready_i, .failed_queue_o, .failed_cause_o,
      .frame_valid_o, .frame_ready_i, .frame_data_o, .frame_bytes_o, .frame_last_o, .frame_queue_o, .frame_early_o,
      .frame_abort_o, .shown_valid_i, .shown_bad_i, .shown_broken_i,
      .freed_valid_o(freed_valid), .freed_queue_o(freed_queue), .freed_lines_o(freed_lines),
      .look_queue_i, .look_next_start_o,
      .is_idle_o, .is_settled_o, .is_full_o,
      .count_tx_writes_o(tx_writes), .count_tx_write_bytes_o(tx_write_bytes),
      .count_quarantined_writes_o(quarantined), .count_reordered_writes_o(reordered),
      .count_tlp_bytes_histogram_o(tlp_bytes), .count_displacement_histogram_o(displacement), .reorder_depth_max_o,
      .count_split_lines_o(split_lines), .count_refused_writes_o(refused), .count_tx_messages_o(messages),
      .count_tx_voids_o(voids), .count_tx_batches_o(batches), .count_runts_o(runts),
      .count_cut_through_frames_o(cut_through_frames), .count_no_context_o(unused_no_context),
      .count_no_pool_o(unused_no_pool), .count_holes_o(holes), .count_hole_timeouts_o(hole_timeouts)
    );

    // The engine starts a queue when the last frame of its former life has gone; what that frees is nobody's credit.
    always_ff @(posedge clk_i) begin
      // The engine is busy from the cycle after the pulse on.
      if (!rst_ni)     starting_q <= 1'b0;
      else if (starts) starting_q <= 1'b1;
      else             starting_q <= starting_q && mmio_busy;
      if (starts) starting_queue_q <= start_queue_i;
    end
    assign freed_counts = freed_valid && !(starting_q && freed_queue == starting_queue_q);
  end else if (Lanes == 2) begin : g_two
    mmio_pair #(
      .NumQueues(NumQueues), .WindowLines(WindowLines), .SpanLines(SpanLines), .NumContexts(NumContexts),
      .PoolLines(PoolLines), .NumClasses(NumClasses)
    ) u_pair (
      .clk_i, .rst_ni,
      .window_mask_i, .span_lines_i, .ring_mask_i, .pool_lines_i, .contexts_i, .max_frame_bytes_i,
      .pair_valid_i(piece_valid_i), .pair_ready_o(piece_ready_o), .pair_queue_i(piece_queue_i),
      .pair_line_i(piece_line_i), .pair_data_i(piece_data_i), .pair_be_i(piece_be_i), .pair_whole_i(piece_whole_i),
      .pair_first_i(piece_first_i), .pair_last_i(piece_last_i),
      .now_ns_i,
      .start_valid_i(starts), .start_queue_i, .start_settings_i, .stop_valid_i, .stop_queue_i, .busy_o(mmio_busy),
      .failed_valid_o, .failed_ready_i, .failed_queue_o, .failed_cause_o,
      .frame_valid_o, .frame_ready_i, .frame_data_o, .frame_bytes_o, .frame_last_o, .frame_queue_o, .frame_early_o,
      .frame_abort_o, .shown_valid_i, .shown_bad_i, .shown_broken_i,
      .freed_valid_o(freed_counts), .freed_queue_o(freed_queue), .freed_lines_o(freed_lines),
      .look_queue_i, .look_next_start_o,
      .is_idle_o, .is_settled_o, .is_full_o,
      .count_tx_writes_o(tx_writes), .count_tx_write_bytes_o(tx_write_bytes),
      .count_quarantined_writes_o(quarantined), .count_reordered_writes_o(reordered),
      .count_tlp_bytes_histogram_o(tlp_bytes), .count_displacement_histogram_o(displacement), .reorder_depth_max_o,
      .count_split_lines_o(split_lines), .count_refused_writes_o(refused), .count_tx_messages_o(messages),
      .count_tx_voids_o(voids), .count_tx_batches_o(batches), .count_runts_o(runts),
      .count_cut_through_frames_o(cut_through_frames), .count_no_context_o(unused_no_context),
      .count_no_pool_o(unused_no_pool), .count_holes_o(holes), .count_hole_timeouts_o(hole_timeouts)
    );
  end

  credit_return #(.NumQueues(NumQueues)) u_credits (
    .clk_i, .rst_ni, .now_ns_i, .busy_o(credits_busy),
    .start_valid_i(starts), .start_queue_i, .start_settings_i, .stop_valid_i, .stop_queue_i,
    .freed_valid_i(freed_counts), .freed_queue_i(freed_queue), .freed_lines_i(freed_lines),
    .dmawr_valid_o, .dmawr_ready_i, .dmawr_address_o, .dmawr_data_o, .dmawr_bytes_o,
    .count_credit_pushes_o(credit_pushes)
  );

  always_comb begin
    increments_o = '0;
    increments_o[nic_pkg::CounterTxWritesOffset >> 3]          = 8'(tx_writes);
    increments_o[nic_pkg::CounterTxWriteBytesOffset >> 3]      = 8'(tx_write_bytes);
    increments_o[nic_pkg::CounterTxMessagesOffset >> 3]        = 8'(messages);
    increments_o[nic_pkg::CounterTxVoidsOffset >> 3]           = 8'(voids);
    increments_o[nic_pkg::CounterTxBatchesOffset >> 3]         = 8'(batches);
    increments_o[nic_pkg::CounterReorderedWritesOffset >> 3]   = 8'(reordered);
    increments_o[nic_pkg::CounterSplitLinesOffset >> 3]        = 8'(split_lines);
    increments_o[nic_pkg::CounterHolesOffset >> 3]             = 8'(holes);
    increments_o[nic_pkg::CounterHoleTimeoutsOffset >> 3]      = 8'(hole_timeouts);
    increments_o[nic_pkg::CounterQuarantinedWritesOffset >> 3] = 8'(quarantined);
    increments_o[nic_pkg::CounterRuntsOffset >> 3]             = 8'(runts);
    increments_o[nic_pkg::CounterRefusedWritesOffset >> 3]     = 8'(refused);
    increments_o[nic_pkg::CounterCreditPushesOffset >> 3]      = 8'(credit_pushes);
    increments_o[nic_pkg::CounterCutThroughFramesOffset >> 3]  = 8'(cut_through_frames);
    // A queue fails once, and each cause has its counter.
    unique case (failed_cause_o)
      nic_pkg::QueueStatusCauseSpanExceeded: increments_o[nic_pkg::CounterSpanExceededOffset >> 3] = 8'(failed);
      nic_pkg::QueueStatusCauseBadHeader:    increments_o[nic_pkg::CounterBadHeadersOffset >> 3]   = 8'(failed);
      nic_pkg::QueueStatusCauseClobber:      increments_o[nic_pkg::CounterClobbersOffset >> 3]     = 8'(failed);
      nic_pkg::QueueStatusCauseOverrun:      increments_o[nic_pkg::CounterOverrunsOffset >> 3]     = 8'(failed);
      nic_pkg::QueueStatusCauseBadLength:    increments_o[nic_pkg::CounterBadLengthsOffset >> 3]   = 8'(failed);
      nic_pkg::QueueStatusCauseNoContext:    increments_o[nic_pkg::CounterNoContextOffset >> 3]    = 8'(failed);
      nic_pkg::QueueStatusCauseNoPool:       increments_o[nic_pkg::CounterNoPoolOffset >> 3]       = 8'(failed);
      default: ;
    endcase
    for (int i = 0; i < 8; i++) begin
      increments_o[(nic_pkg::CounterTlpBytesHistogramOffset >> 3) + i] = 8'(tlp_bytes[i]);
    end
    for (int i = 0; i < 16; i++) begin
      increments_o[(nic_pkg::CounterDisplacementHistogramOffset >> 3) + i] = 8'(displacement[i]);
    end
  end

  logic unused_bits;
  assign unused_bits = ^{unused_no_context, unused_no_pool};

endmodule

`default_nettype wire

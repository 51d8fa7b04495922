// Two mmio engines that look like one and take two lines a cycle: even queues are one's, odd queues the other's.
//
//   pairs -> line_pair -+-> mmio (queues 0, 2, ..) -> frames 0
//                       +-> mmio (queues 1, 3, ..) -> frames 1
//
// Everything that names a queue goes to its engine, and back with the queue's own number. Frames leave on two streams,
// one an engine: a stream of 512 bits carries a beat a cycle, so two engines need two (or frame_arbiter behind them,
// which makes one of them again, and half of the rate).
//
// Guarantees
//   - Those of mmio/mmio.sv for every queue; of the pieces of a pair, piece 0 was written before piece 1.
//   - Two lines a cycle sustained while each engine has one to take, and two messages of one line.
//   - `freed_*` tells the newest count of every queue, one queue a cycle; older ones may be left out, and so is all of
//     a life before the last start.
// Limits
//   - One queue, or queues of one parity, have the rate of one engine: see line_pair for what is between. A driver
//     hands out queue numbers so that busy ones have different parity.
//   - Pool and contexts are halved (odd ones rounded down): queues of one parity have half of them, and a start is
//     refused or a queue without credits fails for want of them while the other half may have some. A capability
//     tells both halves together, so a driver that counts what it was granted must count by parity.
//   - Starts and stops are given when `is_settled_o` holds: lines of the queue may still wait in front of its engine.
//   - Classes and weights hold inside each stream, not across them.
//   - `is_full_o` stops both engines when one is full.
// Latency: 1 cycle more than mmio/mmio.sv to the frames, 5 more to `freed_*`.
// Cost: twice an engine of half the queues, pool and contexts, whose logic does not halve, and the other two.
// Twin: nic/model/src/mmio/mod.rs, which has one pool.

`default_nettype none

module mmio_pair #(
  // Queues of both, even, 4 to 1024.
  parameter int unsigned NumQueues = 64,
  // Those of mmio/mmio.sv; contexts and pool lines of both, even.
  parameter int unsigned WindowLines = 64,
  parameter int unsigned SpanLines = 16,
  parameter int unsigned NumContexts = 32,
  parameter int unsigned PoolLines = 1024,
  parameter int unsigned NumClasses = 4,
  // Lines that may wait for each engine: a power of two, 4 to 128.
  parameter int unsigned FifoLines = 64,
  localparam int unsigned QueueW = $clog2(NumQueues),
  localparam int unsigned LineW = $clog2(WindowLines)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // Straps, see mmio/mmio.sv; pool lines and contexts of both engines together.
  input  logic [LineW-1:0]       window_mask_i,
  input  logic [$clog2(SpanLines):0] span_lines_i,
  input  logic [$clog2(SpanLines):0] ring_mask_i,
  input  logic [15:0]            pool_lines_i,
  input  logic [15:0]            contexts_i,
  input  logic [13:0]            max_frame_bytes_i,

  // Two pieces, either or both.
  input  logic [1:0]             pair_valid_i,
  output logic                   pair_ready_o,
  input  logic [1:0][QueueW-1:0] pair_queue_i,
  input  logic [1:0][LineW-1:0]  pair_line_i,
  input  logic [1:0][511:0]      pair_data_i,
  input  logic [1:0][63:0]       pair_be_i,
  input  logic [1:0]             pair_whole_i,
  input  logic [1:0]             pair_first_i,
  input  logic [1:0]             pair_last_i,

  input  logic [47:0]            now_ns_i,

  // Set-up.
  input  logic                   start_valid_i,
  input  logic [QueueW-1:0]      start_queue_i,
  input  nic_rtl_pkg::queue_settings_t start_settings_i,
  input  logic                   stop_valid_i,
  input  logic [QueueW-1:0]      stop_queue_i,
  output logic                   busy_o,
  output logic                   failed_valid_o,
  input  logic                   failed_ready_i,
  output logic [QueueW-1:0]      failed_queue_o,
  output logic [3:0]             failed_cause_o,

  // Frames: a stream an engine. What became of early ones is told by each stream's own guard; see mmio/mmio.sv.
  output logic [1:0]             frame_valid_o,
  input  logic [1:0]             frame_ready_i,
  output logic [1:0][511:0]      frame_data_o,
  output logic [1:0][6:0]        frame_bytes_o,
  output logic [1:0]             frame_last_o,
  output logic [1:0][QueueW-1:0] frame_queue_o,
  output logic [1:0]             frame_early_o,
  output logic [1:0]             frame_abort_o,
  input  logic [1:0]             shown_valid_i,
  input  logic [1:0]             shown_bad_i,
  input  logic [1:0]             shown_broken_i,

  // Credits; and the next start of a queue, a cycle after it is asked for.
  output logic                   freed_valid_o,
  output logic [QueueW-1:0]      freed_queue_o,
  output logic [31:0]            freed_lines_o,
  input  logic [QueueW-1:0]      look_queue_i,
  output logic [47:0]            look_next_start_o,

  // See mmio/mmio.sv; of both.
  output logic                   is_idle_o,
  output logic                   is_settled_o,
  output logic                   is_full_o,

  // Counters, as those of mmio/mmio.sv but up to 2 a cycle where they had 1.
  output logic [1:0]             count_tx_writes_o,
  output logic [7:0]             count_tx_write_bytes_o,
  output logic [1:0]             count_quarantined_writes_o,
  output logic [1:0]             count_reordered_writes_o,
  output logic [7:0][1:0]        count_tlp_bytes_histogram_o,
  output logic [15:0][1:0]       count_displacement_histogram_o,
  output logic [15:0]            reorder_depth_max_o,
  output logic [1:0]             count_split_lines_o,
  output logic [1:0]             count_refused_writes_o,
  output logic [1:0]             count_tx_messages_o,
  output logic [1:0]             count_tx_voids_o,
  output logic [1:0]             count_tx_batches_o,
  output logic [1:0]             count_cut_through_frames_o,
  output logic [2:0]             count_runts_o,
  output logic [1:0]             count_no_context_o,
  output logic [1:0]             count_no_pool_o,
  output logic [1:0]             count_holes_o,
  output logic [1:0]             count_hole_timeouts_o
);

  if (NumQueues < 4 || NumQueues > nic_pkg::MaxQueues || NumQueues % 2 != 0) begin : g_bad_queues
    $fatal(1, "mmio_pair: NumQueues must be even, 4 to 1024");
  end
  if (NumContexts < 4 || NumContexts % 2 != 0 || PoolLines % 2 != 0) begin : g_bad_halves
    $fatal(1, "mmio_pair: NumContexts must be even and 4 or more, PoolLines even");
  end

  localparam int unsigned Each = NumQueues / 2;
  localparam int unsigned LocalW = $clog2(Each);

  // ------------------------------------------------------------------------------ lines
  logic [1:0]             piece_valid, piece_ready, piece_whole, piece_first, piece_last;
  logic [1:0][LocalW-1:0] piece_queue;
  logic [1:0][LineW-1:0]  piece_line;
  logic [1:0][511:0]      piece_data;
  logic [1:0][63:0]       piece_be;
  logic                   lines_empty;

  line_pair #(.NumQueues(NumQueues), .LineW(LineW), .Depth(FifoLines)) u_lines (
    .clk_i, .rst_ni,
    .pair_valid_i, .pair_ready_o, .pair_queue_i, .pair_line_i, .pair_data_i, .pair_be_i, .pair_whole_i,
    .pair_first_i, .pair_last_i,
    .piece_valid_o(piece_valid), .piece_ready_i(piece_ready), .piece_queue_o(piece_queue),
    .piece_line_o(piece_line), .piece_data_o(piece_data), .piece_be_o(piece_be), .piece_whole_o(piece_whole),
    .piece_first_o(piece_first), .piece_last_o(piece_last), .is_empty_o(lines_empty)
  );

  // ------------------------------------------------------------------------------ engines
  logic [1:0]             starts, busy, failed_valid, failed_ready, told_valid, idle, settled, full;
  logic [1:0][LocalW-1:0] failed_queue, frame_queue, told_queue;
  logic [1:0][3:0]        failed_cause;
  logic [1:0][31:0]       told_lines;
  logic [1:0][47:0]       next_start;
  logic [1:0]             tx_writes, quarantined, reordered, split_lines, refused, messages, voids, batches,
                          no_context, no_pool, holes, hole_timeouts, cut_through_frames;
  logic [1:0][6:0]        tx_write_bytes;
  logic [1:0][7:0]        tlp_bytes;
  logic [1:0][15:0]       displacement, depth_max;
  logic [1:0][1:0]        runts;

  assign starts = {start_valid_i && start_queue_i[0], start_valid_i && !start_queue_i[0]};

  for (genvar e = 0; e < 2; e++) begin : g_engine
    mmio #(
      .NumQueues(Each), .WindowLines(WindowLines), .SpanLines(SpanLines), .NumContexts(NumContexts / 2),
      .PoolLines(PoolLines / 2), .NumClasses(NumClasses)
    ) u_mmio (
      .clk_i, .rst_ni, .window_mask_i, .span_lines_i, .ring_mask_i, .pool_lines_i({1'b0, pool_lines_i[15:1]}),
      .contexts_i({1'b0, contexts_i[15:1]}), .max_frame_bytes_i,
      .piece_valid_i(piece_valid[e]), .piece_ready_o(piece_ready[e]), .piece_queue_i(piece_queue[e]),
      .piece_line_i(piece_line[e]), .piece_data_i(piece_data[e]), .piece_be_i(piece_be[e]),
      .piece_whole_i(piece_whole[e]), .piece_first_i(piece_first[e]), .piece_last_i(piece_last[e]),
      .now_ns_i,
      .start_valid_i(starts[e]), .start_queue_i(start_queue_i[QueueW-1:1]),
      .start_settings_i, .stop_valid_i(stop_valid_i && stop_queue_i[0] == 1'(e)),
      .stop_queue_i(stop_queue_i[QueueW-1:1]), .busy_o(busy[e]),
      .failed_valid_o(failed_valid[e]), .failed_ready_i(failed_ready[e]), .failed_queue_o(failed_queue[e]),
      .failed_cause_o(failed_cause[e]),
      .frame_valid_o(frame_valid_o[e]), .frame_ready_i(frame_ready_i[e]), .frame_data_o(frame_data_o[e]),
      .frame_bytes_o(frame_bytes_o[e]), .frame_last_o(frame_last_o[e]), .frame_queue_o(frame_queue[e]),
      .frame_early_o(frame_early_o[e]), .frame_abort_o(frame_abort_o[e]), .shown_valid_i(shown_valid_i[e]),
      .shown_bad_i(shown_bad_i[e]), .shown_broken_i(shown_broken_i[e]),
      .count_cut_through_frames_o(cut_through_frames[e]),
      .freed_valid_o(told_valid[e]), .freed_queue_o(told_queue[e]), .freed_lines_o(told_lines[e]),
      .look_queue_i(look_queue_i[QueueW-1:1]), .look_next_start_o(next_start[e]),
      .is_idle_o(idle[e]), .is_settled_o(settled[e]), .is_full_o(full[e]),
      .count_tx_writes_o(tx_writes[e]), .count_tx_write_bytes_o(tx_write_bytes[e]),
      .count_quarantined_writes_o(quarantined[e]), .count_reordered_writes_o(reordered[e]),
      .count_tlp_bytes_histogram_o(tlp_bytes[e]), .count_displacement_histogram_o(displacement[e]),
      .reorder_depth_max_o(depth_max[e]), .count_split_lines_o(split_lines[e]),
      .count_refused_writes_o(refused[e]), .count_tx_messages_o(messages[e]), .count_tx_voids_o(voids[e]),
      .count_tx_batches_o(batches[e]), .count_runts_o(runts[e]), .count_no_context_o(no_context[e]),
      .count_no_pool_o(no_pool[e]), .count_holes_o(holes[e]), .count_hole_timeouts_o(hole_timeouts[e])
    );
    assign frame_queue_o[e] = {frame_queue[e], 1'(e)};
  end

  // ------------------------------------------------------------------------------ both as one
  logic credits_empty, credits_busy, look_odd_q, failed_held_q, failed_odd_q, failed_odd;

  // An engine starts a queue when the last frame of its former life has gone; what that frees is nobody's credit.
  logic [1:0]        starting_q, told_of_start, told_counts;
  logic [LocalW-1:0] starting_queue_q;

  for (genvar e = 0; e < 2; e++) begin : g_told
    assign told_of_start[e] = (starts[e] && told_queue[e] == start_queue_i[QueueW-1:1])
                              || (starting_q[e] && told_queue[e] == starting_queue_q);
    assign told_counts[e]   = told_valid[e] && !told_of_start[e];
  end

  always_ff @(posedge clk_i) begin
    // The engine is busy from the cycle after the pulse on.
    starting_q <= rst_ni ? starts | (starting_q & busy) : '0;
    if (start_valid_i) starting_queue_q <= start_queue_i[QueueW-1:1];
  end

  line_pair_credits #(.NumQueues(NumQueues)) u_credits (
    .clk_i, .rst_ni, .start_valid_i, .start_queue_i, .told_valid_i(told_counts), .told_queue_i(told_queue),
    .told_lines_i(told_lines), .freed_valid_o, .freed_queue_o, .freed_lines_o, .busy_o(credits_busy),
    .is_empty_o(credits_empty)
  );

  // What is told of a failure stands still until it is taken.
  assign failed_odd     = failed_held_q ? failed_odd_q : !failed_valid[0];
  assign failed_valid_o = failed_valid != '0;
  assign failed_ready   = {failed_ready_i && failed_odd, failed_ready_i && !failed_odd};
  assign failed_queue_o = {failed_queue[failed_odd], failed_odd};
  assign failed_cause_o = failed_cause[failed_odd];

  always_ff @(posedge clk_i) begin
    look_odd_q    <= look_queue_i[0];
    failed_held_q <= rst_ni && failed_valid_o && !failed_ready_i;
    failed_odd_q  <= failed_odd;
  end

  assign busy_o            = busy != '0 || credits_busy;
  assign look_next_start_o = next_start[look_odd_q];
  assign is_settled_o      = &settled && lines_empty;
  assign is_idle_o         = &idle && lines_empty && credits_empty;
  assign is_full_o         = full != '0;

  assign count_tx_writes_o          = 2'(tx_writes[0]) + 2'(tx_writes[1]);
  assign count_tx_write_bytes_o     = 8'(tx_write_bytes[0]) + 8'(tx_write_bytes[1]);
  assign count_quarantined_writes_o = 2'(quarantined[0]) + 2'(quarantined[1]);
  assign count_reordered_writes_o   = 2'(reordered[0]) + 2'(reordered[1]);
  assign reorder_depth_max_o        = (depth_max[0] < depth_max[1]) ? depth_max[1] : depth_max[0];
  assign count_split_lines_o        = 2'(split_lines[0]) + 2'(split_lines[1]);
  assign count_refused_writes_o     = 2'(refused[0]) + 2'(refused[1]);
  assign count_tx_messages_o        = 2'(messages[0]) + 2'(messages[1]);
  assign count_tx_voids_o           = 2'(voids[0]) + 2'(voids[1]);
  assign count_tx_batches_o         = 2'(batches[0]) + 2'(batches[1]);
  assign count_cut_through_frames_o = 2'(cut_through_frames[0]) + 2'(cut_through_frames[1]);
  assign count_runts_o              = 3'(runts[0]) + 3'(runts[1]);
  assign count_no_context_o         = 2'(no_context[0]) + 2'(no_context[1]);
  assign count_no_pool_o            = 2'(no_pool[0]) + 2'(no_pool[1]);
  assign count_holes_o              = 2'(holes[0]) + 2'(holes[1]);
  assign count_hole_timeouts_o      = 2'(hole_timeouts[0]) + 2'(hole_timeouts[1]);
  for (genvar i = 0; i < 8; i++) begin : g_tlp_bytes
    assign count_tlp_bytes_histogram_o[i] = 2'(tlp_bytes[0][i]) + 2'(tlp_bytes[1][i]);
  end
  for (genvar i = 0; i < 16; i++) begin : g_displacement
    assign count_displacement_histogram_o[i] = 2'(displacement[0][i]) + 2'(displacement[1][i]);
  end

  // An odd line of the pool, or context, is nobody's.
  logic unused;
  assign unused = &{1'b0, pool_lines_i[0], contexts_i[0]};

`ifndef SYNTHESIS
  logic              stalled_q;
  logic [QueueW+3:0] stalled_failure_q;
  always_ff @(posedge clk_i) begin
    stalled_q         <= rst_ni && failed_valid_o && !failed_ready_i;
    stalled_failure_q <= {failed_queue_o, failed_cause_o};
    if (rst_ni) begin
      a_failure_stands : assert (!stalled_q
                                 || (failed_valid_o && stalled_failure_q == {failed_queue_o, failed_cause_o}));
      a_setup_settled  : assert (!(start_valid_i || stop_valid_i) || lines_empty);
      a_queue_exists   : assert ((!start_valid_i || 32'(start_queue_i) < NumQueues)
                                 && (!stop_valid_i || 32'(stop_queue_i) < NumQueues));
    end
  end
`endif

endmodule

`default_nettype wire

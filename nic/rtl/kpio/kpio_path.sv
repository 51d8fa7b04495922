// kPIO+WC as a transmit path of the port: the engine, what is counted of the writes to its windows, and its credits.
//
// Guarantees: those of kpio/kpio.sv. Only queues that start with the interface kpio are its own.
// Limits: whether a write met an active queue is looked up as it comes in; the engine knows of a failure up to 20 cycles
//   later, and writes that come between count as taken and as quarantined.
// Twin: nic/model/src/kpio/mod.rs and arrived() of nic/model/src/nic.rs.

`default_nettype none

module kpio_path #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // log2 of the lines of the longest window.
  parameter int unsigned LineW = 6,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic [47:0]       now_ns_i,
  input  logic [LineW-1:0]  window_mask_i,

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

  // Pieces of lines of its queues.
  input  logic              piece_valid_i,
  output logic              piece_ready_o,
  input  logic [QueueW-1:0] piece_queue_i,
  input  logic [LineW-1:0]  piece_line_i,
  input  logic [511:0]      piece_data_i,
  input  logic [63:0]       piece_be_i,
  input  logic              piece_whole_i,
  input  logic              piece_first_i,
  input  logic              piece_last_i,
  // Everything that came in has had its effect, or waits until the wire takes a frame; `is_pending_o`: it waits.
  output logic              is_settled_o,
  output logic              is_pending_o,

  output logic              frame_valid_o,
  input  logic              frame_ready_i,
  output logic [511:0]      frame_data_o,
  output logic [6:0]        frame_bytes_o,
  output logic              frame_last_o,
  output logic [QueueW-1:0] frame_queue_o,

  // Credits.
  output logic              dmawr_valid_o,
  input  logic              dmawr_ready_i,
  output logic [63:0]       dmawr_address_o,
  output logic [511:0]      dmawr_data_o,
  output logic [6:0]        dmawr_bytes_o,

  output nic_rtl_pkg::increments_t increments_o
);

  logic              is_judged, is_waiting, starts, kpio_failed, kpio_busy, credits_busy, freed_valid, count_pushes;
  logic [QueueW-1:0] freed_queue;
  logic [31:0]       freed_lines;
  logic              kpio_lines, kpio_frames, kpio_malformed, runts, bad_lengths, split_lines, holes,
                     hole_timeouts, clobbers, span_exceeded, overruns, refused;
  logic [1:0]        quarantined;

  assign starts = start_valid_i && start_settings_i.iface == 4'(nic_pkg::QueueControlIfaceKpio);
  assign busy_o = kpio_busy || credits_busy;

  kpio #(.NumQueues(NumQueues), .LineW(LineW), .MaxFrameBytes(nic_pkg::MaxFrameBytes)) u_kpio (
    .clk_i, .rst_ni, .now_ns_i, .window_mask_i,
    .start_valid_i(starts), .start_queue_i, .start_settings_i, .stop_valid_i, .stop_queue_i, .busy_o(kpio_busy),
    .failed_valid_o(kpio_failed), .failed_ready_i(failed_valid_o && failed_ready_i), .failed_queue_o, .failed_cause_o,
    .piece_valid_i, .piece_ready_o, .piece_queue_i, .piece_line_i, .piece_data_i, .piece_be_i, .piece_whole_i,
    .is_judged_o(is_judged), .is_waiting_o(is_waiting),
    .frame_valid_o, .frame_ready_i, .frame_data_o, .frame_bytes_o, .frame_last_o, .frame_queue_o,
    .freed_valid_o(freed_valid), .freed_queue_o(freed_queue), .freed_lines_o(freed_lines),
    .count_kpio_lines_o(kpio_lines), .count_kpio_frames_o(kpio_frames), .count_kpio_malformed_o(kpio_malformed),
    .count_runts_o(runts), .count_bad_lengths_o(bad_lengths), .count_split_lines_o(split_lines),
    .count_holes_o(holes), .count_hole_timeouts_o(hole_timeouts), .count_clobbers_o(clobbers),
    .count_span_exceeded_o(span_exceeded), .count_overruns_o(overruns), .count_refused_writes_o(refused),
    .count_quarantined_writes_o(quarantined)
  );

  credit_return #(.NumQueues(NumQueues)) u_credits (
    .clk_i, .rst_ni, .now_ns_i, .busy_o(credits_busy),
    .start_valid_i(starts), .start_queue_i, .start_settings_i, .stop_valid_i, .stop_queue_i,
    .freed_valid_i(freed_valid), .freed_queue_i(freed_queue), .freed_lines_i(freed_lines),
    .dmawr_valid_o, .dmawr_ready_i, .dmawr_address_o, .dmawr_data_o, .dmawr_bytes_o,
    .count_credit_pushes_o(count_pushes)
  );

  // ------------------------------------------------------------------------------ what is counted of the writes
  logic              taken, taken_q, first_q, last_q, live, live_we;
  logic [63:0]       be_q;
  logic [QueueW-1:0] live_queue;
  logic [6:0]        write_bytes;
  logic              writes, unused_quarantined, unused_reordered;
  logic [7:0]        tlp_bytes;
  logic [15:0]       unused_displacement, unused_depth;

  assign taken        = piece_valid_i && piece_ready_o;
  assign is_settled_o = is_judged || is_waiting;
  assign is_pending_o = !is_judged;

  // A failure waits for a start or stop in the same cycle, so that both find their way into the table.
  assign failed_valid_o = kpio_failed && !start_valid_i && !stop_valid_i;
  assign live_we    = start_valid_i || stop_valid_i || (failed_valid_o && failed_ready_i);
  assign live_queue = start_valid_i ? start_queue_i : stop_valid_i ? stop_queue_i : failed_queue_o;

  table_ram #(.Width(1), .Depth(NumQueues)) u_live (
    .clk_i, .we_i(live_we), .waddr_i(live_queue), .wdata_i(starts), .raddr_i(piece_queue_i), .rdata_o(live)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) taken_q <= 1'b0;
    else         taken_q <= taken;
    first_q <= piece_first_i;
    last_q  <= piece_last_i;
    be_q    <= piece_be_i;
  end

  write_counters #(.AheadW(7)) u_writes (
    .clk_i, .rst_ni,
    .judged_valid_i(taken_q), .judged_first_i(first_q), .judged_last_i(last_q), .judged_dropped_i(!live),
    .judged_free_i(1'b0), .judged_inside_i(1'b0), .judged_expected_i(1'b1), .judged_ahead_i('0), .judged_be_i(be_q),
    .count_tx_writes_o(writes), .count_tx_write_bytes_o(write_bytes),
    .count_quarantined_writes_o(unused_quarantined), .count_reordered_writes_o(unused_reordered),
    .count_tlp_bytes_histogram_o(tlp_bytes), .count_displacement_histogram_o(unused_displacement),
    .depth_max_o(unused_depth)
  );

  always_comb begin
    increments_o = '0;
    increments_o[nic_pkg::CounterTxWritesOffset >> 3]          = 8'(writes);
    increments_o[nic_pkg::CounterTxWriteBytesOffset >> 3]      = 8'(write_bytes);
    increments_o[nic_pkg::CounterKpioLinesOffset >> 3]         = 8'(kpio_lines);
    increments_o[nic_pkg::CounterKpioFramesOffset >> 3]        = 8'(kpio_frames);
    increments_o[nic_pkg::CounterKpioMalformedOffset >> 3]     = 8'(kpio_malformed);
    increments_o[nic_pkg::CounterRuntsOffset >> 3]             = 8'(runts);
    increments_o[nic_pkg::CounterBadLengthsOffset >> 3]        = 8'(bad_lengths);
    increments_o[nic_pkg::CounterSplitLinesOffset >> 3]        = 8'(split_lines);
    increments_o[nic_pkg::CounterHolesOffset >> 3]             = 8'(holes);
    increments_o[nic_pkg::CounterHoleTimeoutsOffset >> 3]      = 8'(hole_timeouts);
    increments_o[nic_pkg::CounterClobbersOffset >> 3]          = 8'(clobbers);
    increments_o[nic_pkg::CounterSpanExceededOffset >> 3]      = 8'(span_exceeded);
    increments_o[nic_pkg::CounterOverrunsOffset >> 3]          = 8'(overruns);
    increments_o[nic_pkg::CounterRefusedWritesOffset >> 3]     = 8'(refused);
    increments_o[nic_pkg::CounterQuarantinedWritesOffset >> 3] = 8'(quarantined);
    increments_o[nic_pkg::CounterCreditPushesOffset >> 3]      = 8'(count_pushes);
    for (int i = 0; i < 8; i++) begin
      increments_o[(nic_pkg::CounterTlpBytesHistogramOffset >> 3) + i] = 8'(tlp_bytes[i]);
    end
  end

  logic unused_bits;
  assign unused_bits = ^{unused_quarantined, unused_reordered, unused_displacement, unused_depth};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_piece_has_its_path : assert (!piece_valid_i || piece_whole_i == (piece_be_i == '1));
    end
  end
`endif

endmodule

`default_nettype wire

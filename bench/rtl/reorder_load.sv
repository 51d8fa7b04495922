// A load for the mmio engine that needs nothing from outside: every queue is started, then a line comes in every cycle, a
// message of its own each, in any order inside blocks of 8 lines of its queue. Frames are taken at once and counted.

`default_nettype none

module reorder_load #(
  parameter int unsigned NumQueues = 64,
  parameter int unsigned WindowLines = 64,
  parameter int unsigned SpanLines = 16,
  parameter int unsigned NumContexts = 64,
  parameter int unsigned PoolLines = 1024,
  localparam int unsigned QueueW = $clog2(NumQueues),
  localparam int unsigned LineW = $clog2(WindowLines),
  localparam int unsigned RingW = $clog2(SpanLines) + 1
) (
  input  logic        clk_i,
  input  logic        rst_ni,
  output logic [63:0] lines_o,
  output logic [63:0] frames_o,
  output logic        failed_o
);

  localparam logic [7:0] Epoch = 8'd7;
  localparam int unsigned FrameBytes = 56;

  logic                         is_up_q, waits_q, busy, piece_ready, frame_valid, frame_last;
  logic [QueueW:0]              start_q;
  logic [63:0]                  line_q;
  nic_rtl_pkg::queue_settings_t settings;
  logic [LineW-1:0]             place;
  logic [511:0]                 data;

  always_comb begin
    settings                = '0;
    settings.iface          = 4'(nic_pkg::QueueControlIfaceMmio);
    settings.epoch          = Epoch;
    settings.weight         = 8'd1;
    settings.backpressure   = 1'b1;
    // The lines of a queue come backwards, eight by eight.
    place = line_q[QueueW +: LineW] ^ LineW'(7);
    data  = {448'h42, 6'd0, Epoch, nic_pkg::MessageKindData[3:0], 22'd0, 24'(FrameBytes)};
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      is_up_q  <= 1'b0;
      waits_q  <= 1'b1;
      start_q  <= '0;
      line_q   <= '0;
      frames_o <= '0;
      failed_o <= 1'b0;
    end else begin
      // An engine says that it is busy from the cycle after the pulse on.
      waits_q <= !waits_q && !busy && !is_up_q;
      if (!is_up_q && !waits_q && !busy) begin
        if (start_q[QueueW]) is_up_q <= 1'b1;
        else                 start_q <= start_q + 1'b1;
      end
      if (is_up_q && piece_ready) line_q <= line_q + 1'b1;
      if (frame_valid && frame_last) frames_o <= frames_o + 1'b1;
      failed_o <= failed_o || u_mmio.failed_valid_o;
    end
  end
  assign lines_o = line_q;

  mmio #(
    .NumQueues(NumQueues), .WindowLines(WindowLines), .SpanLines(SpanLines), .NumContexts(NumContexts),
    .PoolLines(PoolLines)
  ) u_mmio (
    .clk_i, .rst_ni, .window_mask_i('1), .span_lines_i(RingW'(SpanLines)), .ring_mask_i('1),
    .pool_lines_i(16'(PoolLines)), .contexts_i(16'(NumContexts)), .max_frame_bytes_i(14'd9216),
    .piece_valid_i(is_up_q), .piece_ready_o(piece_ready), .piece_queue_i(line_q[QueueW-1:0]), .piece_line_i(place),
    .piece_data_i(data), .piece_be_i('1), .piece_whole_i(1'b1), .piece_first_i(1'b1), .piece_last_i(1'b1),
    .now_ns_i('0),
    .start_valid_i(!is_up_q && !waits_q && !busy && !start_q[QueueW]), .start_queue_i(start_q[QueueW-1:0]),
    .start_settings_i(settings), .stop_valid_i(1'b0), .stop_queue_i('0), .busy_o(busy),
    .failed_valid_o(), .failed_ready_i(1'b1), .failed_queue_o(), .failed_cause_o(),
    .frame_valid_o(frame_valid), .frame_ready_i(1'b1), .frame_data_o(), .frame_bytes_o(), .frame_last_o(frame_last),
    .frame_queue_o(), .freed_valid_o(), .freed_queue_o(), .freed_lines_o(), .look_queue_i('0), .look_next_start_o(),
    .is_idle_o(), .is_settled_o(), .is_full_o(),
    .count_tx_writes_o(), .count_tx_write_bytes_o(), .count_quarantined_writes_o(), .count_reordered_writes_o(),
    .count_tlp_bytes_histogram_o(), .count_displacement_histogram_o(), .reorder_depth_max_o(),
    .count_split_lines_o(), .count_refused_writes_o(), .count_tx_messages_o(), .count_tx_voids_o(),
    .count_tx_batches_o(), .count_runts_o(), .count_no_context_o(), .count_no_pool_o(), .count_holes_o(),
    .count_hole_timeouts_o()
  );

endmodule

`default_nettype wire

// The transmit engine of kPIO+WC: lines written in order come in, frames go out.
//
//   pieces -> line_merge -> eop_filter -> kpio_queue -> kpio_egress -> frames, freed lines
//
// The modules are named as the boxes of figure 2 in Larsen & Lee (NAS'15); MUX stands behind (mux.sv). Several queues,
// each with a window of its own, stand for the paper's "multiple kPIO+WC TX Queues, such as seen in RSS". The paper's
// limits stay: lines must arrive in order, frames are multiples of 8 bytes, a payload word equal to the signature loses
// its packet.
//
// Guarantees
//   - One line a cycle sustained for whole lines, whatever their queues; frames of one line leave one a cycle.
//   - Frames of a queue leave in the order of their last lines; a frame is offered only when it is complete.
//   - `freed` tells the absolute count of lines of a queue, modulo 2^32, that have left since it was started.
//   - Start and stop: `busy_o` rises in the cycle after the pulse and falls when it has taken effect; nothing of an
//     earlier life of the queue comes out after a stop is done. Meanwhile no pieces are taken. A stop waits for the
//     frame of its queue that is on its way out, if one has begun.
//   - `is_judged_o` or `is_waiting_o` rises in bounded time once no more pieces come, whatever the wire does: what is not
//     judged then waits for the wire.
//   - A queue that is not started, or has failed, drops its pieces and counts them; its complete frames go out.
//   - Reset, at any time, forgets everything; the engine is busy for NumQueues + 12 cycles after it.
// Limits
//   - Pieces of lines are slower, see line_merge; what waits for room holds up what is behind it, see kpio_queue.
//   - Time-outs of 2^47 ns (39 hours) or more count as none.
// Latency: a frame of one whole line is taken 14 cycles after its piece, if the wire is ready.
// Cost: see the parts; the lines, NumQueues x 2^LineW x 512 bits, and the pieces, NumQueues x 16 x 576, outweigh all.
// Twin: nic/model/src/kpio/mod.rs.

`default_nettype none

module kpio #(
  // Queues, 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // log2 of the most lines of a window, 1 to 18.
  parameter int unsigned LineW = 6,
  // Longest frame in bytes, 64 to nic_pkg::MaxFrameBytes.
  parameter int unsigned MaxFrameBytes = 9216,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic [47:0]       now_ns_i,
  // Strap: lines of every window less 1; a window has a power of two of lines, at most 2^LineW.
  input  logic [LineW-1:0]  window_mask_i,

  // Set-up of queues; one at a time, while not busy.
  input  logic              start_valid_i,
  input  logic [QueueW-1:0] start_queue_i,
  input  nic_rtl_pkg::queue_settings_t start_settings_i,
  input  logic              stop_valid_i,
  input  logic [QueueW-1:0] stop_queue_i,
  output logic              busy_o,
  output logic              failed_valid_o,
  input  logic              failed_ready_i,
  output logic [QueueW-1:0] failed_queue_o,
  output logic [3:0]        failed_cause_o,

  // Pieces of lines, at most a line a beat.
  input  logic              piece_valid_i,
  output logic              piece_ready_o,
  input  logic [QueueW-1:0] piece_queue_i,
  input  logic [LineW-1:0]  piece_line_i,
  input  logic [511:0]      piece_data_i,
  input  logic [63:0]       piece_be_i,
  input  logic              piece_whole_i,
  // Every piece that was taken has had its effect, and every failure that it caused was taken.
  output logic              is_judged_o,
  // Pieces stand behind a line that waits until the wire takes a frame.
  output logic              is_waiting_o,

  // Frames.
  output logic              frame_valid_o,
  input  logic              frame_ready_i,
  output logic [511:0]      frame_data_o,
  output logic [6:0]        frame_bytes_o,
  output logic              frame_last_o,
  output logic [QueueW-1:0] frame_queue_o,

  // Freed lines.
  output logic              freed_valid_o,
  output logic [QueueW-1:0] freed_queue_o,
  output logic [31:0]       freed_lines_o,

  output logic              count_kpio_lines_o,
  output logic              count_kpio_frames_o,
  output logic              count_kpio_malformed_o,
  output logic              count_runts_o,
  output logic              count_bad_lengths_o,
  output logic              count_split_lines_o,
  output logic              count_holes_o,
  output logic              count_hole_timeouts_o,
  output logic              count_clobbers_o,
  output logic              count_span_exceeded_o,
  output logic              count_overruns_o,
  output logic              count_refused_writes_o,
  // 0 to 2.
  output logic [1:0]        count_quarantined_writes_o
);

  localparam int unsigned LongestLines = MaxFrameBytes / nic_pkg::LineBytes + 1;
  localparam int unsigned OpenW = $clog2(LongestLines + 1);
  localparam int unsigned GenerationW = kpio_pkg::GenerationW;

  // Set-up.
  typedef enum logic [2:0] {SetSweep, SetIdle, SetAsk, SetWait, SetSettle, SetDrain} set_e;
  set_e                         set_q, set_d;
  logic [QueueW-1:0]            set_queue_q, set_queue_d;
  logic                         set_start_q, stopping_q, sweep_q, sweep_d, swept;
  logic [2:0]                   settle_q;
  logic [63:0]                  set_eop_q;
  logic [47:0]                  set_timeout_q;
  logic                         set_backpressure_q;
  logic                         settled, serving, inject, injected;

  // In front of line_merge.
  localparam int unsigned FrontW = 2 + QueueW + LineW + 512 + 64 + 1;
  logic [FrontW-1:0]            front_push;
  logic                         front_valid, front_load, front_ready;
  kpio_pkg::op_e                front_op;
  logic [QueueW-1:0]            front_queue;
  logic [LineW-1:0]             front_line;
  logic [511:0]                 front_data;
  logic [63:0]                  front_be;
  logic                         front_whole;
  logic [2:0]                   front_count;

  // Between the parts.
  logic                         merged_valid, merged_ready, judged_valid, judged_ready;
  logic                         ready_valid, ready_ready;
  kpio_pkg::op_e                merged_op, judged_op, ready_op;
  logic [QueueW-1:0]            merged_queue, judged_queue, ready_queue;
  logic [511:0]                 merged_data, judged_data, ready_data;
  nic_pkg::queue_status_cause_e merged_cause, judged_cause, ready_cause;
  kpio_pkg::outcome_t           judged_outcome, ready_outcome;
  logic [3:0]                   waiting_count;
  logic                         merge_idle, filter_idle, queue_idle;
  logic                         halt_we, halt_value;
  logic [QueueW-1:0]            halt_queue;
  logic                         line_we, entry_room, entry_valid, entry_send, stop_room, stop_we;
  logic [QueueW-1:0]            line_queue, entry_queue, stop_queue;
  logic [LineW-1:0]             line_at;
  logic [511:0]                 line_data;
  logic [GenerationW-1:0]       entry_generation, stop_generation;
  logic [LineW:0]               entry_position, freed_position;
  logic [31:0]                  entry_end;
  logic [OpenW-1:0]             entry_lines;
  logic [2:0]                   entry_words;
  logic                         quarantined_merge, quarantined_queue;
  typedef struct packed {
    logic kpio_lines, kpio_frames, kpio_malformed, runts, bad_lengths, split_lines,
          holes, hole_timeouts, clobbers, span_exceeded, overruns, refused_writes;
  } events_t;
  events_t                      events;

  assign busy_o        = set_q != SetIdle;
  assign is_judged_o   = front_count == '0 && merge_idle && filter_idle && waiting_count == '0 && queue_idle;
  // Pieces go on while a stop waits for its queue's last frame; those of that queue are dropped already.
  assign piece_ready_o = front_load && (set_q == SetIdle || set_q == SetDrain);
  assign inject        = set_q == SetSweep || set_q == SetAsk;
  assign injected      = inject && front_load;
  assign swept         = set_queue_q == QueueW'(NumQueues - 1);

  always_comb begin
    set_d       = set_q;
    set_queue_d = set_queue_q;
    sweep_d     = sweep_q;
    unique case (set_q)
      SetSweep: begin
        if (injected) begin
          set_d       = swept ? SetWait : SetSweep;
          set_queue_d = swept ? set_queue_q : set_queue_q + 1'b1;
        end
      end
      SetIdle: begin
        if (start_valid_i || stop_valid_i) begin
          set_d       = SetAsk;
          set_queue_d = start_valid_i ? start_queue_i : stop_queue_i;
        end
      end
      SetAsk:    if (injected) set_d = SetWait;
      SetWait: begin
        // The last stop of the sweep is the one of the last queue.
        if (settled && stop_queue == set_queue_q) begin
          sweep_d = 1'b0;
          set_d   = (set_start_q || sweep_q) ? SetIdle : SetSettle;
        end
      end
      // An entry that passed the egress's check in the cycle of the stop shows as being served.
      SetSettle: if (settle_q == '1) set_d = SetDrain;
      default:   if (!serving) set_d = SetIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      set_q         <= SetSweep;
      set_queue_q   <= '0;
      set_start_q   <= 1'b0;
      sweep_q       <= 1'b1;
      settle_q      <= '0;
      stopping_q    <= 1'b0;
    end else begin
      set_q       <= set_d;
      set_queue_q <= set_queue_d;
      sweep_q     <= sweep_d;
      stopping_q  <= (set_q == SetAsk || set_q == SetWait) && !set_start_q;
      settle_q    <= (set_q == SetSettle) ? settle_q + 1'b1 : '0;
      if (set_q == SetIdle) set_start_q <= start_valid_i;
    end
    if (set_q == SetIdle) begin
      set_eop_q          <= start_settings_i.kpio_eop;
      set_backpressure_q <= start_settings_i.backpressure;
      set_timeout_q      <= (start_settings_i.hole_timeout_ns[63:47] == '0)
                          ? start_settings_i.hole_timeout_ns[47:0] : '0;
    end
  end

  assign front_push = {!inject ? kpio_pkg::OpLine : set_start_q ? kpio_pkg::OpStart : kpio_pkg::OpStop,
                       inject ? set_queue_q : piece_queue_i,
                       piece_line_i, piece_data_i, piece_be_i, piece_whole_i};

  // Its ready comes from a register: no path leads from the stages to the source of pieces.
  fifo #(.Width(FrontW), .Depth(4)) u_front (
    .clk_i,
    .rst_ni,
    .push_valid_i (inject || (piece_valid_i && piece_ready_o)),
    .push_ready_o (front_load),
    .push_data_i  (front_push),
    .pop_valid_o  (front_valid),
    .pop_ready_i  (front_ready),
    .pop_data_o   ({front_op, front_queue, front_line, front_data, front_be, front_whole}),
    .count_o      (front_count)
  );

  line_merge #(.NumQueues(NumQueues), .LineW(LineW)) u_line_merge (
    .clk_i,
    .rst_ni,
    .now_ns_i,
    .in_valid_i      (front_valid),
    .in_ready_o      (front_ready),
    .in_op_i         (front_op),
    .in_queue_i      (front_queue),
    .in_line_i       (front_line),
    .in_data_i       (front_data),
    .in_be_i         (front_be),
    .in_whole_i      (front_whole),
    .start_timeout_i (set_timeout_q),
    .halt_we_i       (halt_we),
    .halt_queue_i    (halt_queue),
    .halt_value_i    (halt_value),
    .out_valid_o     (merged_valid),
    .out_ready_i     (merged_ready),
    .out_op_o        (merged_op),
    .out_queue_o     (merged_queue),
    .out_data_o      (merged_data),
    .out_cause_o     (merged_cause),
    .is_idle_o       (merge_idle),
    .count_split_lines_o (events.split_lines),
    .count_holes_o (events.holes),
    .count_quarantined_writes_o (quarantined_merge)
  );

  eop_filter #(.NumQueues(NumQueues)) u_eop_filter (
    .clk_i,
    .rst_ni,
    .in_valid_i    (merged_valid),
    .in_ready_o    (merged_ready),
    .in_op_i       (merged_op),
    .in_queue_i    (merged_queue),
    .in_data_i     (merged_data),
    .in_cause_i    (merged_cause),
    .start_eop_i   (set_eop_q),
    .out_valid_o   (judged_valid),
    .out_ready_i   (judged_ready),
    .out_op_o      (judged_op),
    .out_queue_o   (judged_queue),
    .out_data_o    (judged_data),
    .out_cause_o   (judged_cause),
    .out_outcome_o (judged_outcome),
    .is_idle_o     (filter_idle)
  );

  // A line that waits for room stops what is in front by this FIFO's register, not by a path through every stage.
  fifo #(.Width(2 + QueueW + 512 + 4 + $bits(kpio_pkg::outcome_t)), .Depth(8)) u_waiting (
    .clk_i,
    .rst_ni,
    .push_valid_i (judged_valid),
    .push_ready_o (judged_ready),
    .push_data_i  ({judged_op, judged_queue, judged_data, judged_cause, judged_outcome}),
    .pop_valid_o  (ready_valid),
    .pop_ready_i  (ready_ready),
    .pop_data_o   ({ready_op, ready_queue, ready_data, ready_cause, ready_outcome}),
    .count_o      (waiting_count)
  );

  kpio_queue #(.NumQueues(NumQueues), .LineW(LineW), .MaxFrameBytes(MaxFrameBytes)) u_kpio_queue (
    .clk_i,
    .rst_ni,
    .window_mask_i,
    .op_valid_i           (ready_valid),
    .op_ready_o           (ready_ready),
    .op_i                 (ready_op),
    .op_queue_i           (ready_queue),
    .op_data_i            (ready_data),
    .op_cause_i           (ready_cause),
    .op_outcome_i         (ready_outcome),
    .start_backpressure_i (set_backpressure_q),
    .stopping_valid_i     (stopping_q),
    .stopping_queue_i     (set_queue_q),
    .sweep_i              (sweep_q),
    .settled_o            (settled),
    .is_idle_o            (queue_idle),
    .is_waiting_o,
    .halt_we_o            (halt_we),
    .halt_queue_o         (halt_queue),
    .halt_value_o         (halt_value),
    .line_we_o            (line_we),
    .line_queue_o         (line_queue),
    .line_at_o            (line_at),
    .line_data_o          (line_data),
    .entry_room_i         (entry_room),
    .entry_valid_o        (entry_valid),
    .entry_queue_o        (entry_queue),
    .entry_generation_o   (entry_generation),
    .entry_end_o          (entry_end),
    .entry_position_o     (entry_position),
    .entry_lines_o        (entry_lines),
    .entry_words_o        (entry_words),
    .entry_send_o         (entry_send),
    .stop_room_i          (stop_room),
    .stop_we_o            (stop_we),
    .stop_queue_o         (stop_queue),
    .stop_generation_o    (stop_generation),
    .freed_valid_i        (freed_valid_o),
    .freed_queue_i        (freed_queue_o),
    .freed_position_i     (freed_position),
    .failed_valid_o,
    .failed_ready_i,
    .failed_queue_o,
    .failed_cause_o,
    .count_kpio_lines_o (events.kpio_lines),
    .count_kpio_frames_o (events.kpio_frames),
    .count_kpio_malformed_o (events.kpio_malformed),
    .count_runts_o (events.runts),
    .count_bad_lengths_o (events.bad_lengths),
    .count_overruns_o (events.overruns),
    .count_refused_writes_o (events.refused_writes),
    .count_hole_timeouts_o (events.hole_timeouts),
    .count_clobbers_o (events.clobbers),
    .count_span_exceeded_o (events.span_exceeded),
    .count_quarantined_writes_o (quarantined_queue)
  );

  kpio_egress #(.NumQueues(NumQueues), .LineW(LineW), .LongestLines(LongestLines)) u_kpio_egress (
    .clk_i,
    .rst_ni,
    .window_mask_i,
    .line_we_i          (line_we),
    .line_queue_i       (line_queue),
    .line_at_i          (line_at),
    .line_data_i        (line_data),
    .entry_room_o       (entry_room),
    .entry_valid_i      (entry_valid),
    .entry_queue_i      (entry_queue),
    .entry_generation_i (entry_generation),
    .entry_end_i        (entry_end),
    .entry_position_i   (entry_position),
    .entry_lines_i      (entry_lines),
    .entry_words_i      (entry_words),
    .entry_send_i       (entry_send),
    .stop_room_o        (stop_room),
    .stop_we_i          (stop_we),
    .stop_queue_i       (stop_queue),
    .stop_generation_i  (stop_generation),
    .asked_queue_i      (set_queue_q),
    .serving_o          (serving),
    .freed_valid_o,
    .freed_queue_o,
    .freed_position_o   (freed_position),
    .freed_lines_o,
    .frame_valid_o,
    .frame_ready_i,
    .frame_data_o,
    .frame_bytes_o,
    .frame_last_o,
    .frame_queue_o
  );

  // Other engines' settings.
  logic unused_settings;
  assign unused_settings = ^start_settings_i;

  // Counts leave from registers.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      count_kpio_lines_o <= 1'b0;
      count_kpio_frames_o <= 1'b0;
      count_kpio_malformed_o <= 1'b0;
      count_runts_o <= 1'b0;
      count_bad_lengths_o <= 1'b0;
      count_split_lines_o <= 1'b0;
      count_holes_o <= 1'b0;
      count_hole_timeouts_o <= 1'b0;
      count_clobbers_o <= 1'b0;
      count_span_exceeded_o <= 1'b0;
      count_overruns_o <= 1'b0;
      count_refused_writes_o <= 1'b0;
      count_quarantined_writes_o <= '0;
    end else begin
      count_kpio_lines_o <= events.kpio_lines;
      count_kpio_frames_o <= events.kpio_frames;
      count_kpio_malformed_o <= events.kpio_malformed;
      count_runts_o <= events.runts;
      count_bad_lengths_o <= events.bad_lengths;
      count_split_lines_o <= events.split_lines;
      count_holes_o <= events.holes;
      count_hole_timeouts_o <= events.hole_timeouts;
      count_clobbers_o <= events.clobbers;
      count_span_exceeded_o <= events.span_exceeded;
      count_overruns_o <= events.overruns;
      count_refused_writes_o <= events.refused_writes;
      count_quarantined_writes_o <= 2'(quarantined_merge) + 2'(quarantined_queue);
    end
  end

  if (NumQueues < 1 || NumQueues > 1024) begin : g_bad_queues
    $fatal(1, "kpio: NumQueues must be 1 to 1024");
  end
  if (LineW < 1 || LineW > 18) begin : g_bad_line
    $fatal(1, "kpio: LineW must be 1 to 18: a window has 2 to 2^18 lines");
  end
  if (MaxFrameBytes < 64 || MaxFrameBytes > nic_pkg::MaxFrameBytes) begin : g_bad_frame
    $fatal(1, "kpio: MaxFrameBytes must be 64 to the longest frame that a port carries");
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      // Set-up comes one at a time, and waits.
      assert (!(start_valid_i && stop_valid_i));
      assert (!busy_o || !(start_valid_i || stop_valid_i));
      assert (!piece_valid_i || piece_whole_i == (piece_be_i == '1));
      assert (!piece_valid_i || int'(piece_queue_i) < int'(NumQueues));
    end
  end
`endif

endmodule

`default_nettype wire

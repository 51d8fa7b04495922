// The mmio transmit engine: frames from plain, unfenced, unordered stores (HotOS'25 3).
//
// Pieces of lines come in; the reorder unit makes contiguous lines of them, in the pool; the reader lets messages go
// that are whole; the cutter makes frames of them. What goes wrong fails its own queue and nothing else.
//
// Guarantees
//   - A frame leaves only when its message is whole (store and forward), unchanged, once, in the queue's order. A queue
//     with cut-through may have it begin earlier; a frame that ends without `abort` was whole and unchanged.
//   - One line and one message a cycle, in any order inside the reorder span, on one queue or many.
//   - From the last byte of a message to the first beat of its frame: 10 cycles when nothing else waits
//     (0 input, 1 arrival, 2-4 contexts, 5 commit, 6 turn, 7 fetch, 8 load, 9 line, 10 beat at the port); a batch is
//     looked at first, and stands one cycle longer in front of the port.
// Cost: see docs/nic.md. Twin: nic/model/src/mmio/mod.rs.

`default_nettype none

module mmio #(
  // Queues, 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // Lines of a queue's window, a power of two: at least twice SpanLines.
  parameter int unsigned WindowLines = 64,
  // Lines from the frontier's line on that may be held out of order: a power of two, 2 to 256.
  parameter int unsigned SpanLines = 16,
  // Reorder contexts, 2 or more.
  parameter int unsigned NumContexts = 16,
  // Lines of the pool for what is contiguous; what is not has its own, as many as contexts can hold.
  parameter int unsigned PoolLines = 512,
  // Strict priority classes, 1 to 16.
  parameter int unsigned NumClasses = 4,
  // Whether a queue may have its frames begin before their message is whole (`shown`). Then whoever ends frames in front of
  // the wire must tell what became of each.
  parameter bit CutThrough = 1'b1,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned LineW = $clog2(WindowLines)
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // Straps, constant after reset: smaller sizes than the parameters. Lines of a window less 1, of the span, of a
  // context's ring less 1 (twice the span, or the window if that is smaller), of the pool; contexts; longest frame.
  input  logic [LineW-1:0]    window_mask_i,
  input  logic [$clog2(SpanLines):0] span_lines_i,
  input  logic [$clog2(SpanLines):0] ring_mask_i,
  input  logic [15:0]         pool_lines_i,
  input  logic [15:0]         contexts_i,
  input  logic [13:0]         max_frame_bytes_i,

  // Pieces, from `bar_ingress`.
  input  logic                piece_valid_i,
  output logic                piece_ready_o,
  input  logic [QueueW-1:0]   piece_queue_i,
  input  logic [LineW-1:0]    piece_line_i,
  input  logic [511:0]        piece_data_i,
  input  logic [63:0]         piece_be_i,
  input  logic                piece_whole_i,
  input  logic                piece_first_i,
  input  logic                piece_last_i,

  input  logic [47:0]         now_ns_i,

  // Set-up.
  input  logic                start_valid_i,
  input  logic [QueueW-1:0]   start_queue_i,
  input  nic_rtl_pkg::queue_settings_t start_settings_i,
  input  logic                stop_valid_i,
  input  logic [QueueW-1:0]   stop_queue_i,
  output logic                busy_o,
  output logic                failed_valid_o,
  input  logic                failed_ready_i,
  output logic [QueueW-1:0]   failed_queue_o,
  output logic [3:0]          failed_cause_o,

  // Frames: whole ones, or (`early`) of messages that are not whole yet, whose beats come when they can; one that will
  // not be whole ends with `abort`.
  output logic                frame_valid_o,
  input  logic                frame_ready_i,
  output logic [511:0]        frame_data_o,
  output logic [6:0]          frame_bytes_o,
  output logic                frame_last_o,
  output logic [QueueW-1:0]   frame_queue_o,
  output logic                frame_early_o,
  output logic                frame_abort_o,
  // A frame that began early has left, whole or not (`bad`); before that, that it will not (`broken`).
  input  logic                shown_valid_i,
  input  logic                shown_bad_i,
  input  logic                shown_broken_i,

  // Credits: lines that may be written again, an absolute count modulo 2^32; and the next start of a queue, a cycle
  // after it is asked for.
  output logic                freed_valid_o,
  output logic [QueueW-1:0]   freed_queue_o,
  output logic [31:0]         freed_lines_o,
  input  logic [QueueW-1:0]   look_queue_i,
  output logic [47:0]         look_next_start_o,

  // Nothing is under way: what was written has had its effect.
  output logic                is_idle_o,
  // What was written has been judged, and what failed was told: a read of a register may be answered.
  output logic                is_settled_o,
  // Complete messages of queues without credits take up the whole pool: a write would have to wait for the wire.
  output logic                is_full_o,

  // Counters.
  output logic                count_tx_writes_o,
  output logic [6:0]          count_tx_write_bytes_o,
  output logic                count_quarantined_writes_o,
  output logic                count_reordered_writes_o,
  output logic [7:0]          count_tlp_bytes_histogram_o,
  output logic [15:0]         count_displacement_histogram_o,
  output logic [15:0]         reorder_depth_max_o,
  output logic                count_split_lines_o,
  output logic                count_refused_writes_o,
  output logic                count_tx_messages_o,
  output logic                count_tx_voids_o,
  output logic                count_tx_batches_o,
  // 0 to 2.
  output logic [1:0]          count_runts_o,
  output logic                count_cut_through_frames_o,
  output logic                count_no_context_o,
  output logic                count_no_pool_o,
  output logic                count_holes_o,
  output logic                count_hole_timeouts_o
);

  localparam int unsigned RingW = $clog2(SpanLines) + 1;
  localparam int unsigned RingLines = 2 * SpanLines;
  localparam int unsigned PosW = LineW + 2;
  localparam int unsigned ContextW = $clog2(NumContexts);
  // What is contiguous, what waits in contexts (a span each, and what is in the pipeline), and the line in front of
  // each queue's next one.
  localparam int unsigned Lines = PoolLines + NumContexts * SpanLines + NumQueues + 16;
  localparam int unsigned PtrW = $clog2(Lines);

  if (SpanLines < 2 || SpanLines > 256 || (SpanLines & (SpanLines - 1)) != 0) begin : g_bad_span
    $fatal(1, "mmio: SpanLines must be a power of two from 2 to 256");
  end
  if (WindowLines < RingLines || (WindowLines & (WindowLines - 1)) != 0) begin : g_bad_window
    $fatal(1, "mmio: WindowLines must be a power of two and at least twice SpanLines");
  end
  if (NumQueues < 1 || NumQueues > 1024) begin : g_bad_queues
    $fatal(1, "mmio: NumQueues must be 1 to 1024");
  end
  if (PoolLines < 2 || Lines > 65536) begin : g_bad_pool
    $fatal(1, "mmio: PoolLines must be at least 2, and the pool with contexts and queues at most 65536 lines");
  end

  // ---------------------------------------------------------------------------------------------- wires
  logic                control_idle, has_shared, hold, unit_empty, unit_idle, active_we, active_value, begin_valid;
  logic                begin_shared, quiet;
  logic [QueueW-1:0]   active_queue, begin_queue;
  logic [PtrW-1:0]     begin_tail;
  logic [63:0]         begin_timeout_ns;
  logic                control_active_we, control_active_value;
  logic [QueueW-1:0]   control_active_queue;

  logic                shared_take, shared_context, taken, taken_shared, taken_turn, reader_busy;
  logic [PosW-1:0]     taken_base;
  logic [RingW:0]      shared_lines;
  logic signed [RingW+3:0] shared_near;
  logic                shared_moving, shared_none;
  logic [QueueW-1:0]   taken_queue;

  logic                context_valid, context_take, release_valid, release_shared, context_give;
  logic [ContextW-1:0] taken_name, context_name, release_context, context_give_name, look_context;
  logic [RingW-1:0]    look_slot;
  logic [RingLines-1:0] look_marks;
  logic                look_clear;
  logic [PtrW-1:0]     look_line;

  logic                line_valid, line_two, line_take, control_line_take, control_give, control_give_ready;
  logic [PtrW-1:0]     line_name, control_give_name;
  logic                store_valid, successor_we, own_we, own_known, orphan_valid;
  logic [PtrW-1:0]     store_line, successor_line, successor_next, own_line, own_next, orphan_line;
  logic [63:0]         store_be;
  logic [511:0]        store_data;
  logic [63:0]         head_data, head_q;
  logic [511:64]       rest_data;
  logic [PtrW-1:0]     resolve_line, resolve_next, chain_line, chain_next, load_line, rest_line_q;
  logic                load_valid;
  // Names inside, for simulation alone.
  logic [$clog2(Lines+1)-1:0] lines_free;
  logic [$clog2(NumContexts+1)-1:0] contexts_free;

  logic                frontier_we, unit_frontier_we, unit_frontier_turn, nudge_valid, nudged_q, advanced_valid;
  logic                advanced_shared;
  logic [QueueW-1:0]   frontier_queue, unit_frontier_queue, nudge_queue, soon_queue, ready_queue_q, advanced_queue;
  logic [QueueW-1:0]   early_queue;
  logic [PosW-1:0]     frontier, unit_frontier, nudge_frontier, advanced_to;
  logic                unit_failed_valid, reader_failed_valid;
  logic [QueueW-1:0]   unit_failed_queue, reader_failed_queue;
  logic [3:0]          unit_failed_cause, reader_failed_cause;

  logic                ready_valid, early_taken, early_holds, turn_valid, turn_ready, done_valid, done_more;
  logic [QueueW-1:0]   turn_queue, done_queue;
  logic                scheduler_idle, reader_active, reader_ending;
  logic [NumClasses-1:0] waits_upto;
  logic [(NumClasses > 1 ? $clog2(NumClasses) : 1)-1:0] turn_class;
  logic                set_valid, set_closing, set_dropping;
  logic [QueueW-1:0]   set_queue;
  logic [7:0]          set_epoch, set_weight;
  logic [3:0]          set_class;

  logic                left_valid, emptied_valid, next_start_valid;
  logic [PtrW-1:0]     left_line, emptied_tail;
  logic [QueueW-1:0]   left_queue, emptied_queue, next_start_queue;
  logic [PosW-1:0]     next_start;

  logic                out_valid, out_ready, out_first, out_last, out_batch, out_skip, left_dropped;
  logic                out_early, out_abort, set_early;
  logic [LineW-1:0]    set_early_more;
  logic [LineW:0]      out_lines, gone_lines;
  logic [PosW-1:0]     out_next_start, gone_next_start;
  logic                gone_valid, cutter_empty, cutter_holds, cut_valid;
  logic [LineW:0]      cut_lines;
  logic [PosW-1:0]     cut_next_start;
  logic [QueueW-1:0]   out_queue, gone_queue, wanted_queue;
  logic [23:0]         out_bytes;
  logic [511:0]        out_data_q;
  logic                out_scan, scanned_valid, scanned_ready, scanned_bad, reader_runts, batch_runts;
  logic [QueueW-1:0]   scanned_queue;

  logic                watch_valid, watch_begun, watch_gap, hole_failed_valid, hole_failed_ready;
  logic [ContextW-1:0] watch_context;
  logic [QueueW-1:0]   watch_queue, hole_failed_queue;
  logic [PosW-1:0]     watch_frontier;
  logic [RingW:0]      watch_held;
  logic [5:0]          watch_first;

  logic              judged_valid, judged_first, judged_last, judged_dropped, judged_free, judged_inside,
                     judged_expected;
  logic [RingW+1:0]  judged_ahead;
  logic [63:0]       judged_be;

  // ---------------------------------------------------------------------------------------------- order
  // The unit's own failures are effective at once; control repeats what it wrote meanwhile.
  assign active_we    = unit_failed_valid || control_active_we;
  assign active_queue = unit_failed_valid ? unit_failed_queue : control_active_queue;
  assign active_value = !unit_failed_valid && control_active_value;

  reorder_unit #(
    .NumQueues(NumQueues), .LineW(LineW), .RingW(RingW), .NumContexts(NumContexts), .PtrW(PtrW)
  ) u_unit (
    .clk_i, .rst_ni, .window_mask_i, .span_lines_i, .ring_mask_i,
    .piece_valid_i, .piece_ready_o, .piece_queue_i, .piece_line_i, .piece_data_i, .piece_be_i, .piece_whole_i,
    .piece_first_i, .piece_last_i,
    .hold_i(hold), .is_empty_o(unit_empty), .is_idle_o(unit_idle), .start_valid_i(begin_valid),
    .start_queue_i(begin_queue),
    .start_tail_i(begin_tail), .start_shared_i(begin_shared),
    .active_we_i(active_we), .active_queue_i(active_queue), .active_value_i(active_value),
    .shared_near_i(shared_near), .shared_moving_i(shared_moving), .shared_take_o(shared_take),
    .shared_lines_o(shared_lines),
    .shared_context_i(shared_context), .context_taken_o(taken), .context_taken_shared_o(taken_shared),
    .context_taken_queue_o(taken_queue), .context_taken_name_o(taken_name), .context_taken_base_o(taken_base),
    .context_taken_turn_o(taken_turn), .reader_busy_i(reader_busy),
    .context_valid_i(context_valid), .context_name_i(context_name), .context_take_o(context_take),
    .release_valid_o(release_valid), .release_shared_o(release_shared), .release_context_o(release_context),
    .line_valid_i(line_valid), .line_two_i(line_two), .line_name_i(line_name), .line_take_o(line_take),
    .store_valid_o(store_valid), .store_line_o(store_line), .store_be_o(store_be), .store_data_o(store_data),
    .successor_we_o(successor_we), .successor_line_o(successor_line), .successor_next_o(successor_next),
    .own_we_o(own_we), .own_line_o(own_line), .own_known_o(own_known), .own_next_o(own_next),
    .orphan_valid_o(orphan_valid), .orphan_line_o(orphan_line),
    .freed_valid_i(gone_valid), .freed_queue_i(gone_queue), .freed_i(gone_next_start),
    .early_queue_o(early_queue), .frontier_we_o(unit_frontier_we), .frontier_queue_o(unit_frontier_queue),
    .frontier_turn_o(unit_frontier_turn), .frontier_o(unit_frontier),
    .advanced_valid_o(advanced_valid), .advanced_queue_o(advanced_queue), .advanced_to_o(advanced_to),
    .advanced_shared_o(advanced_shared),
    .failed_valid_o(unit_failed_valid), .failed_queue_o(unit_failed_queue), .failed_cause_o(unit_failed_cause),
    .look_context_i(look_context), .look_slot_i(look_slot), .look_line_o(look_line), .look_marks_o(look_marks),
    .look_clear_i(look_clear),
    .watch_valid_o(watch_valid), .watch_context_o(watch_context), .watch_queue_o(watch_queue),
    .watch_frontier_o(watch_frontier), .watch_held_o(watch_held), .watch_begun_o(watch_begun),
    .watch_first_o(watch_first), .watch_gap_o(watch_gap),
    .judged_valid_o(judged_valid), .judged_first_o(judged_first), .judged_last_o(judged_last),
    .judged_dropped_o(judged_dropped), .judged_free_o(judged_free), .judged_inside_o(judged_inside),
    .judged_expected_o(judged_expected),
    .judged_ahead_o(judged_ahead), .judged_be_o(judged_be), .count_split_lines_o, .count_refused_writes_o
  );

  write_counters #(.AheadW(RingW + 2)) u_write_counters (
    .clk_i, .rst_ni,
    .judged_valid_i(judged_valid), .judged_first_i(judged_first), .judged_last_i(judged_last),
    .judged_dropped_i(judged_dropped), .judged_free_i(judged_free), .judged_inside_i(judged_inside),
    .judged_expected_i(judged_expected),
    .judged_ahead_i(judged_ahead), .judged_be_i(judged_be),
    .count_tx_writes_o, .count_tx_write_bytes_o, .count_quarantined_writes_o, .count_reordered_writes_o,
    .count_tlp_bytes_histogram_o, .count_displacement_histogram_o, .depth_max_o(reorder_depth_max_o)
  );

  hole_timeout #(
    .NumQueues(NumQueues), .NumContexts(NumContexts), .PosW(PosW), .HeldW(RingW + 1)
  ) u_holes (
    .clk_i, .rst_ni, .now_ns_i, .start_valid_i(begin_valid), .start_queue_i(begin_queue),
    .start_timeout_ns_i(begin_timeout_ns),
    .piece_valid_i(watch_valid), .piece_context_i(watch_context), .piece_queue_i(watch_queue),
    .piece_frontier_i(watch_frontier), .piece_held_i(watch_held), .line_begun_i(watch_begun),
    .line_missing_i(watch_first), .line_gap_i(watch_gap),
    .forget_valid_i(release_valid || context_give),
    .forget_context_i(context_give ? context_give_name : release_context),
    .failed_valid_o(hole_failed_valid), .failed_ready_i(hole_failed_ready), .failed_queue_o(hole_failed_queue),
    .count_holes_o, .count_hole_timeouts_o
  );

  free_list #(.Count(NumContexts)) u_contexts_free (
    .clk_i, .rst_ni,
    .take_valid_o(context_valid), .take_ready_i(context_take), .take_name_o(context_name), .take_two_o(),
    .give_valid_i(release_valid || context_give), .give_name_i(context_give ? context_give_name : release_context),
    .free_o(contexts_free)
  );

  // Lines that come back: from the reader in the same cycle, others when it has none. Orphans are never asked to wait: a
  // failure leaves at most 10 before control holds the unit, and each failure that is worked off after it at most 2 more,
  // while control waits for a cycle of the reader, in which one goes back. Control's own lines wait for the others.
  localparam int unsigned AsidePlaces = 1 << $clog2(NumQueues + 24);
  localparam int unsigned AsideDepth = (AsidePlaces > 1024) ? 1024 : AsidePlaces;
  localparam int unsigned AsideW = $clog2(AsideDepth) + 1;
  logic              give_valid, aside_valid, aside_ready, aside_room;
  logic [AsideW-1:0] aside_count;
  logic [PtrW-1:0]   give_line, aside_line;

  fifo #(.Width(PtrW), .Depth(AsideDepth)) u_aside (
    .clk_i, .rst_ni,
    .push_valid_i(orphan_valid || (control_give && control_give_ready)), .push_ready_o(aside_room),
    .push_data_i(orphan_valid ? orphan_line : control_give_name),
    .pop_valid_o(aside_valid), .pop_ready_i(aside_ready), .pop_data_o(aside_line),
    .count_o(aside_count)
  );
  assign control_give_ready = aside_count < AsideW'(8) && !orphan_valid;
  assign aside_ready        = !left_valid;
  assign give_valid         = left_valid || aside_valid;
  assign give_line          = left_valid ? left_line : aside_line;

  buffer_pool #(.Lines(Lines)) u_pool (
    .clk_i, .rst_ni,
    .take_valid_o(line_valid), .take_ready_i(line_take || control_line_take), .take_line_o(line_name),
    .take_two_o(line_two), .give_valid_i(give_valid), .give_line_i(give_line), .free_o(lines_free),
    .store_valid_i(store_valid), .store_line_i(store_line), .store_be_i(store_be), .store_data_i(store_data),
    .head_valid_i(load_valid), .head_line_i(load_line), .head_data_o(head_data),
    .rest_valid_i(load_valid), .rest_line_i(rest_line_q), .rest_data_o(rest_data),
    .successor_we_i(successor_we), .successor_line_i(successor_line), .successor_next_i(successor_next),
    // The line in front of a queue's first one is taken by control; it must not know a next one from an earlier life.
    .own_we_i(own_we || begin_valid), .own_line_i(begin_valid ? begin_tail : own_line),
    .own_known_i(own_known && !begin_valid), .own_next_i(own_next),
    .resolve_line_i(resolve_line), .resolve_next_o(resolve_next),
    .chain_line_i(chain_line), .chain_next_o(chain_next)
  );

  // ---------------------------------------------------------------------------------------------- messages
  assign frontier_we    = unit_frontier_we || nudge_valid;
  // Whether control nudges is known late, but it does so only while the unit is empty.
  assign frontier_queue = unit_empty ? nudge_queue : unit_frontier_queue;
  assign frontier       = nudge_valid ? nudge_frontier : unit_frontier;
  assign ready_valid    = advanced_valid || nudged_q;
  assign soon_queue     = unit_empty ? nudge_queue : early_queue;

  // The queue of stage 6, or the one that was nudged, without a choice in front of the scheduler's tables.
  always_ff @(posedge clk_i) begin
    nudged_q      <= rst_ni && nudge_valid;
    ready_queue_q <= soon_queue;
  end

  scheduler #(.NumQueues(NumQueues), .NumClasses(NumClasses)) u_scheduler (
    .clk_i, .rst_ni,
    .set_valid_i(begin_valid), .set_queue_i(begin_queue), .set_class_i(set_class),
    .ready_valid_i(ready_valid), .ready_queue_i(ready_queue_q), .early_taken_i(early_taken),
    .early_holds_o(early_holds),
    .done_valid_i(done_valid), .done_queue_i(done_queue), .done_more_i(done_more),
    .turn_valid_o(turn_valid), .turn_ready_i(turn_ready), .turn_queue_o(turn_queue),
    .turn_class_o(turn_class), .waits_upto_o(waits_upto), .idle_o(scheduler_idle)
  );

  message_reader #(
    .NumQueues(NumQueues), .NumClasses(NumClasses), .LineW(LineW), .PtrW(PtrW), .CutThrough(CutThrough)
  ) u_reader (
    .clk_i, .rst_ni, .window_mask_i, .max_frame_bytes_i,
    .frontier_we_i(frontier_we), .frontier_queue_i(frontier_queue), .frontier_i(frontier),
    .turn_valid_i(turn_valid), .turn_ready_o(turn_ready), .turn_queue_i(turn_queue),
    .turn_class_i(turn_class),
    .early_queue_i(soon_queue), .early_holds_i(early_holds), .early_taken_o(early_taken),
    .done_valid_o(done_valid), .done_queue_o(done_queue), .done_more_o(done_more),
    .waits_upto_i(waits_upto),
    .set_valid_i(set_valid), .set_queue_i(set_queue), .set_epoch_i(set_epoch), .set_weight_i(set_weight),
    .set_class_i(set_class),
    .set_closing_i(set_closing), .set_dropping_i(set_dropping), .set_early_i(set_early),
    .set_early_more_i(set_early_more), .start_valid_i(begin_valid),
    .start_tail_i(begin_tail),
    .resolve_line_o(resolve_line), .resolve_next_i(resolve_next), .chain_line_o(chain_line),
    .chain_next_i(chain_next), .load_valid_o(load_valid), .load_line_o(load_line), .load_header_i(head_q),
    .give_valid_o(left_valid), .give_line_o(left_line), .give_queue_o(left_queue),
    .give_dropped_o(left_dropped),
    .line_valid_o(out_valid), .line_ready_i(out_ready), .line_first_o(out_first), .line_last_o(out_last),
    .line_batch_o(out_batch), .line_scan_o(out_scan), .line_early_o(out_early), .line_abort_o(out_abort),
    .line_lines_o(out_lines), .line_next_start_o(out_next_start), .line_skip_o(out_skip),
    .line_queue_o(out_queue), .line_bytes_o(out_bytes),
    .scanned_valid_i(scanned_valid), .scanned_ready_o(scanned_ready), .scanned_queue_i(scanned_queue),
    .scanned_bad_i(scanned_bad), .shown_valid_i, .shown_bad_i, .shown_broken_i,
    .next_start_valid_o(next_start_valid), .next_start_queue_o(next_start_queue), .next_start_o(next_start),
    .failed_valid_o(reader_failed_valid), .failed_queue_o(reader_failed_queue),
    .failed_cause_o(reader_failed_cause), .emptied_valid_o(emptied_valid), .emptied_queue_o(emptied_queue),
    .emptied_tail_o(emptied_tail), .ending_o(reader_ending), .busy_o(reader_active),
    .count_tx_messages_o, .count_tx_voids_o, .count_tx_batches_o, .count_runts_o(reader_runts),
    .count_cut_through_frames_o
  );
  assign reader_busy = reader_active || !scheduler_idle || ready_valid || !cutter_empty || left_valid
                       || gone_valid;

  // Stages load, line and out of the reader, step by step.
  always_ff @(posedge clk_i) begin
    if (load_valid) begin
      rest_line_q <= load_line;
      head_q      <= head_data;
      out_data_q  <= {rest_data, head_q};
    end
  end

  frame_cutter #(.QueueW(QueueW), .LinesW(LineW + 1), .PosW(PosW)) u_cutter (
    .clk_i, .rst_ni, .max_frame_bytes_i,
    .line_valid_i(out_valid), .line_ready_o(out_ready), .line_first_i(out_first), .line_last_i(out_last),
    .line_skip_i(out_skip), .line_batch_i(out_batch), .line_scan_i(out_scan), .line_early_i(out_early),
    .line_abort_i(out_abort), .line_queue_i(out_queue),
    .line_bytes_i(out_bytes), .line_lines_i(out_lines),
    .line_next_start_i(out_next_start), .line_data_i(out_data_q), .next_word_i(head_q),
    .frame_valid_o, .frame_ready_i, .frame_data_o, .frame_bytes_o, .frame_last_o, .frame_queue_o, .frame_early_o,
    .frame_abort_o, .gone_valid_o(cut_valid), .gone_lines_o(cut_lines), .gone_next_start_o(cut_next_start),
    .is_empty_o(cutter_empty), .look_queue_i(wanted_queue), .look_held_o(cutter_holds),
    .scanned_valid_o(scanned_valid), .scanned_ready_i(scanned_ready),
    .scanned_queue_o(scanned_queue), .scanned_bad_o(scanned_bad), .count_runts_o(batch_runts)
  );

  // Whether a beat leaves is known late in its cycle; what the accounts make of it may come a cycle later.
  always_ff @(posedge clk_i) begin
    gone_valid      <= rst_ni && cut_valid;
    gone_queue      <= frame_queue_o;
    gone_lines      <= cut_lines;
    gone_next_start <= cut_next_start;
  end

  assign count_runts_o = 2'(reader_runts) + 2'(batch_runts);

  // ---------------------------------------------------------------------------------------------- control
  // Control looks at this only while the unit stands and is empty.
  // A queue that stopped may have left a frame in front of the wire; it starts again when that has gone. What is known in
  // a cycle is of the queue that was asked for in the one before, so another queue waits for its own answer.
  logic                held_q, wanted_held;
  logic [QueueW-1:0]   held_queue_q;
  always_ff @(posedge clk_i) begin
    held_q       <= (out_valid && out_queue == wanted_queue) || cutter_holds
                    || (gone_valid && gone_queue == wanted_queue);
    held_queue_q <= wanted_queue;
  end
  assign wanted_held = held_q || held_queue_q != wanted_queue;
  assign quiet = !reader_ending && !done_valid && !next_start_valid && !nudged_q && !left_valid && !gone_valid;

  queue_control #(
    .NumQueues(NumQueues), .LineW(LineW), .RingW(RingW), .NumContexts(NumContexts), .PtrW(PtrW)
  ) u_control (
    .clk_i, .rst_ni, .window_mask_i, .ring_mask_i, .pool_lines_i, .contexts_i,
    .start_valid_i, .start_queue_i, .start_credits_i(!start_settings_i.backpressure),
    .start_epoch_i(start_settings_i.epoch), .start_weight_i(start_settings_i.weight),
    .start_class_i(start_settings_i.priority_class), .start_timeout_ns_i(start_settings_i.hole_timeout_ns),
    .start_cut_through_lines_i(CutThrough ? start_settings_i.cut_through_lines : '0),
    .stop_valid_i, .stop_queue_i, .busy_o, .is_idle_o(control_idle),
    .unit_failed_valid_i(unit_failed_valid), .unit_failed_queue_i(unit_failed_queue),
    .unit_failed_cause_i(unit_failed_cause), .reader_failed_valid_i(reader_failed_valid),
    .reader_failed_queue_i(reader_failed_queue), .reader_failed_cause_i(reader_failed_cause),
    .hole_failed_valid_i(hole_failed_valid), .hole_failed_ready_o(hole_failed_ready),
    .hole_failed_queue_i(hole_failed_queue),
    .failed_valid_o, .failed_ready_i, .failed_queue_o, .failed_cause_o,
    .hold_o(hold), .unit_empty_i(unit_empty), .quiet_i(quiet), .active_we_o(control_active_we),
    .active_queue_o(control_active_queue), .active_value_o(control_active_value),
    .wanted_queue_o(wanted_queue), .wanted_held_i(wanted_held),
    .begin_valid_o(begin_valid), .begin_queue_o(begin_queue), .begin_tail_o(begin_tail),
    .begin_shared_o(begin_shared), .begin_timeout_ns_o(begin_timeout_ns), .look_context_o(look_context),
    .look_slot_o(look_slot), .look_line_i(look_line),
    .look_marks_i(look_marks), .look_clear_o(look_clear), .frontier_we_i(unit_frontier_we),
    .frontier_queue_i(unit_frontier_queue), .frontier_turn_i(unit_frontier_turn), .frontier_i(unit_frontier),
    .context_taken_i(taken), .context_taken_name_i(taken_name), .context_taken_queue_i(taken_queue),
    .context_taken_shared_i(taken_shared), .context_taken_base_i(taken_base), .context_taken_turn_i(taken_turn),
    .context_released_i(release_valid),
    .context_released_name_i(release_context), .context_released_shared_i(release_shared),
    .context_give_o(context_give), .context_give_name_o(context_give_name), .shared_context_o(shared_context),
    .line_valid_i(line_valid), .line_name_i(line_name), .line_take_o(control_line_take), .line_give_o(control_give),
    .line_give_name_o(control_give_name), .line_give_ready_i(control_give_ready), .shared_take_i(shared_take),
    .shared_lines_i(shared_lines), .dropped_valid_i(left_valid && left_dropped), .dropped_queue_i(left_queue),
    .gone_valid_i(gone_valid), .gone_queue_i(gone_queue), .gone_lines_i(gone_lines), .shared_near_o(shared_near),
    .shared_moving_o(shared_moving), .shared_none_o(shared_none),
    .has_shared_o(has_shared),
    .set_valid_o(set_valid), .set_queue_o(set_queue), .set_epoch_o(set_epoch), .set_weight_o(set_weight),
    .set_class_o(set_class), .set_closing_o(set_closing), .set_dropping_o(set_dropping),
    .set_early_o(set_early), .set_early_more_o(set_early_more),
    .nudge_valid_o(nudge_valid), .nudge_queue_o(nudge_queue), .nudge_frontier_o(nudge_frontier),
    .emptied_valid_i(emptied_valid), .emptied_queue_i(emptied_queue), .emptied_tail_i(emptied_tail),
    .count_no_context_o, .count_no_pool_o
  );

  // ---------------------------------------------------------------------------------------------- credits
  // A queue without reservation gets its lines back when they are in the pool, the others when they have left it. Both
  // may happen in one cycle; those of the pool wait.
  logic                freed_pool_valid, freed_pool_empty, freed_left_valid, left_now;
  logic [QueueW-1:0]   freed_pool_queue, freed_left_queue;
  logic [31:0]         freed_pool_lines;
  logic [31:0]         pool_count, left_count;
  logic                counted_valid;
  logic [QueueW-1:0]   counted_queue;
  logic                freed_left_shared;

  position_counter #(.NumQueues(NumQueues), .PosW(PosW), .CountW(32)) u_pooled (
    .clk_i, .rst_ni, .start_valid_i(begin_valid), .start_queue_i(begin_queue),
    .valid_i(advanced_valid && advanced_shared), .queue_i(advanced_queue), .pos_i(advanced_to),
    .valid_o(counted_valid), .queue_o(counted_queue), .count_o(pool_count),
    .look_queue_i('0), .look_count_o()
  );
  position_counter #(.NumQueues(NumQueues), .PosW(PosW), .CountW(32)) u_left (
    .clk_i, .rst_ni, .start_valid_i(begin_valid), .start_queue_i(begin_queue),
    .valid_i(gone_valid), .queue_i(gone_queue), .pos_i(gone_next_start),
    .valid_o(freed_left_valid), .queue_o(freed_left_queue), .count_o(left_count),
    .look_queue_i('0), .look_count_o()
  );
  position_counter #(.NumQueues(NumQueues), .PosW(PosW), .CountW(48)) u_next_start (
    .clk_i, .rst_ni, .start_valid_i(begin_valid), .start_queue_i(begin_queue),
    .valid_i(next_start_valid), .queue_i(next_start_queue), .pos_i(next_start),
    .valid_o(), .queue_o(), .count_o(),
    .look_queue_i, .look_count_o(look_next_start_o)
  );
  logic [QueueW-1:0]   left_lookup_q;
  always_ff @(posedge clk_i) left_lookup_q <= gone_queue;
  table_ram #(.Width(1), .Depth(NumQueues)) u_left_shared (
    .clk_i, .we_i(begin_valid), .waddr_i(begin_queue), .wdata_i(begin_shared), .raddr_i(left_lookup_q),
    .rdata_o(freed_left_shared)
  );

  assign left_now = freed_left_valid && !freed_left_shared;
  // Credits of lines that leave may come in every cycle while a long queue of messages does, so those of the pool wait
  // with the newest count of each queue.
  newest_counts #(.NumQueues(NumQueues)) u_pooled_credits (
    .clk_i, .rst_ni, .start_valid_i(begin_valid), .start_queue_i(begin_queue),
    .told_valid_i(counted_valid), .told_queue_i(counted_queue), .told_count_i(pool_count),
    .newest_valid_o(freed_pool_valid), .newest_ready_i(!left_now), .newest_queue_o(freed_pool_queue),
    .newest_count_o(freed_pool_lines), .is_empty_o(freed_pool_empty)
  );
  assign freed_valid_o = left_now || freed_pool_valid;
  assign freed_queue_o = left_now ? freed_left_queue : freed_pool_queue;
  assign freed_lines_o = left_now ? left_count : freed_pool_lines;

  assign is_full_o    = has_shared && shared_none && reader_busy;
  assign is_settled_o = unit_idle && control_idle;
  assign is_idle_o = is_settled_o && !reader_busy && freed_pool_empty && !counted_valid
                     && !freed_left_valid;

`ifndef SYNTHESIS
  line_owners #(.NumQueues(NumQueues), .NumContexts(NumContexts), .Lines(Lines)) u_owners (
    .clk_i, .rst_ni,
    .begin_valid_i(begin_valid), .begin_queue_i(begin_queue), .end_valid_i(set_valid && set_dropping),
    .end_queue_i(set_queue), .is_idle_i(is_idle_o),
    .take_valid_i(line_take), .take_queue_i(taken_queue), .tail_valid_i(control_line_take), .take_line_i(line_name),
    .store_valid_i(store_valid), .store_line_i(store_line),
    .left_valid_i(left_valid), .left_queue_i(left_queue), .give_valid_i(give_valid), .give_line_i(give_line),
    .lines_free_i(lines_free), .contexts_free_i(contexts_free)
  );

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_room_for_orphans : assert (!orphan_valid || aside_room);
      a_ready_is_its_own : assert (!advanced_valid || ready_queue_q == advanced_queue);
      a_one_queue_works  : assert (!begin_valid || begin_queue == nudge_queue);
      a_unit_is_empty    : assert (!(begin_valid || nudge_valid) || (unit_empty && !ready_valid));
    end
  end
`else
  logic unused;
  assign unused = ^{aside_room, lines_free, contexts_free};
`endif

endmodule

`default_nettype wire

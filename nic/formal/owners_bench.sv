// The reorder unit and control, joined as in nic/rtl/mmio/mmio.sv, for owners_proof.sv. Everything else of the engine is
// an input, and so may do anything that the proof does not exclude.

`default_nettype none

module owners_bench #(
  parameter int unsigned NumQueues = 2,
  parameter int unsigned LineW = 3,
  parameter int unsigned RingW = 2,
  parameter int unsigned NumContexts = 2,
  parameter int unsigned PtrW = 2,
  localparam int unsigned QueueW = $clog2(NumQueues),
  localparam int unsigned ContextW = $clog2(NumContexts),
  localparam int unsigned PosW = LineW + 2,
  localparam int unsigned NearW = RingW + 4,
  localparam int unsigned RingLines = 1 << RingW
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  // Pieces.
  input  logic                piece_valid_i,
  output logic                piece_ready_o,
  input  logic [QueueW-1:0]   piece_queue_i,
  input  logic [LineW-1:0]    piece_line_i,
  input  logic [63:0]         piece_be_i,
  // Set-up.
  input  logic                start_valid_i,
  input  logic [QueueW-1:0]   start_queue_i,
  input  logic                start_credits_i,
  input  logic                stop_valid_i,
  input  logic [QueueW-1:0]   stop_queue_i,
  input  logic                wanted_held_i,
  output logic                busy_o,
  input  logic                failed_ready_i,
  // The pool, contexts, and what there is of both.
  input  logic                line_valid_i,
  input  logic                line_two_i,
  input  logic [PtrW-1:0]     line_name_i,
  output logic                line_take_o,
  output logic                control_line_take_o,
  input  logic                context_valid_i,
  input  logic [ContextW-1:0] context_name_i,
  output logic                context_take_o,
  input  logic                shared_context_i,
  input  logic signed [NearW-1:0] shared_near_i,
  input  logic                shared_moving_i,
  input  logic                give_ready_i,
  output logic                give_valid_o,
  output logic [PtrW-1:0]     give_name_o,
  output logic                orphan_valid_o,
  output logic [PtrW-1:0]     orphan_line_o,
  output logic                store_valid_o,
  output logic [PtrW-1:0]     store_line_o,
  output logic                begin_valid_o,
  output logic [QueueW-1:0]   begin_queue_o,
  output logic [PtrW-1:0]     begin_tail_o,
  // The reader.
  input  logic                reader_busy_i,
  input  logic                quiet_i,
  input  logic                freed_valid_i,
  input  logic [QueueW-1:0]   freed_queue_i,
  input  logic [PosW-1:0]     freed_i,
  input  logic                emptied_valid_i,
  input  logic [QueueW-1:0]   emptied_queue_i,
  input  logic [PtrW-1:0]     emptied_tail_i
);

  logic                hold, unit_empty, begin_shared, taken, taken_shared, taken_turn, release_valid, release_shared;
  logic                shared_take, frontier_we, frontier_turn, unit_failed, control_active_we, control_active_value;
  logic                active_we, active_value, look_clear, context_give;
  logic [QueueW-1:0]   taken_queue, frontier_queue, unit_failed_queue, control_active_queue, active_queue;
  logic [ContextW-1:0] taken_name, release_context, look_context, context_give_name;
  logic [RingW-1:0]    look_slot;
  logic [RingW:0]      shared_lines;
  logic [RingLines-1:0] look_marks;
  logic [PtrW-1:0]     look_line;
  logic [PosW-1:0]     taken_base, frontier;
  logic [3:0]          unit_failed_cause;

  assign active_we    = unit_failed || control_active_we;
  assign active_queue = unit_failed ? unit_failed_queue : control_active_queue;
  assign active_value = !unit_failed && control_active_value;

  reorder_unit #(
    .NumQueues(NumQueues), .LineW(LineW), .RingW(RingW), .NumContexts(NumContexts), .PtrW(PtrW)
  ) u_unit (
    .clk_i, .rst_ni, .window_mask_i('1), .span_lines_i(RingW'(RingLines / 2)), .ring_mask_i('1), .piece_valid_i,
    .piece_ready_o, .piece_queue_i, .piece_line_i, .piece_data_i('0), .piece_be_i, .piece_whole_i(piece_be_i == '1),
    .piece_first_i(1'b1), .piece_last_i(1'b1),
    .hold_i(hold), .is_empty_o(unit_empty), .is_idle_o(), .start_valid_i(begin_valid_o),
    .start_queue_i(begin_queue_o), .start_tail_i(begin_tail_o), .start_shared_i(begin_shared),
    .active_we_i(active_we), .active_queue_i(active_queue), .active_value_i(active_value),
    .shared_near_i, .shared_moving_i, .shared_take_o(shared_take), .shared_lines_o(shared_lines), .shared_context_i,
    .context_taken_o(taken), .context_taken_shared_o(taken_shared), .context_taken_queue_o(taken_queue),
    .context_taken_name_o(taken_name), .context_taken_base_o(taken_base), .context_taken_turn_o(taken_turn),
    .reader_busy_i, .context_valid_i, .context_name_i, .context_take_o,
    .release_valid_o(release_valid), .release_shared_o(release_shared), .release_context_o(release_context),
    .line_valid_i, .line_two_i, .line_name_i, .line_take_o,
    .store_valid_o, .store_line_o, .store_be_o(), .store_data_o(),
    .successor_we_o(), .successor_line_o(), .successor_next_o(), .own_we_o(), .own_line_o(), .own_known_o(),
    .own_next_o(), .orphan_valid_o, .orphan_line_o, .freed_valid_i, .freed_queue_i, .freed_i, .early_queue_o(),
    .frontier_we_o(frontier_we), .frontier_queue_o(frontier_queue), .frontier_turn_o(frontier_turn),
    .frontier_o(frontier), .advanced_valid_o(), .advanced_queue_o(), .advanced_to_o(), .advanced_shared_o(),
    .failed_valid_o(unit_failed), .failed_queue_o(unit_failed_queue), .failed_cause_o(unit_failed_cause),
    .look_context_i(look_context), .look_slot_i(look_slot), .look_line_o(look_line), .look_marks_o(look_marks),
    .look_clear_i(look_clear), .watch_valid_o(), .watch_context_o(), .watch_queue_o(), .watch_frontier_o(),
    .watch_held_o(), .watch_begun_o(), .watch_first_o(), .watch_gap_o(), .judged_valid_o(), .judged_first_o(),
    .judged_last_o(), .judged_dropped_o(), .judged_free_o(), .judged_inside_o(), .judged_expected_o(),
    .judged_ahead_o(), .judged_be_o(), .count_split_lines_o(), .count_refused_writes_o()
  );

  queue_control #(
    .NumQueues(NumQueues), .LineW(LineW), .RingW(RingW), .NumContexts(NumContexts), .PtrW(PtrW)
  ) u_control (
    .clk_i, .rst_ni, .window_mask_i('1), .ring_mask_i('1), .pool_lines_i('0), .contexts_i('0),
    .start_valid_i, .start_queue_i, .start_credits_i, .start_epoch_i('0), .start_weight_i('0), .start_class_i('0),
    .start_timeout_ns_i('0), .start_cut_through_lines_i('0), .stop_valid_i, .stop_queue_i, .busy_o, .is_idle_o(),
    .unit_failed_valid_i(unit_failed), .unit_failed_queue_i(unit_failed_queue),
    .unit_failed_cause_i(unit_failed_cause), .reader_failed_valid_i(1'b0),
    .reader_failed_queue_i('0), .reader_failed_cause_i('0), .hole_failed_valid_i(1'b0), .hole_failed_ready_o(),
    .hole_failed_queue_i('0),
    .failed_valid_o(), .failed_ready_i, .failed_queue_o(), .failed_cause_o(),
    .hold_o(hold), .unit_empty_i(unit_empty), .quiet_i, .active_we_o(control_active_we),
    .active_queue_o(control_active_queue), .active_value_o(control_active_value), .wanted_queue_o(), .wanted_held_i,
    .begin_valid_o, .begin_queue_o, .begin_tail_o, .begin_shared_o(begin_shared), .begin_timeout_ns_o(),
    .look_context_o(look_context), .look_slot_o(look_slot), .look_line_i(look_line), .look_marks_i(look_marks),
    .look_clear_o(look_clear), .frontier_we_i(frontier_we), .frontier_queue_i(frontier_queue),
    .frontier_turn_i(frontier_turn), .frontier_i(frontier),
    .context_taken_i(taken), .context_taken_name_i(taken_name), .context_taken_queue_i(taken_queue),
    .context_taken_shared_i(taken_shared), .context_taken_base_i(taken_base), .context_taken_turn_i(taken_turn),
    .context_released_i(release_valid), .context_released_name_i(release_context),
    .context_released_shared_i(release_shared),
    .context_give_o(context_give), .context_give_name_o(context_give_name), .shared_context_o(),
    .line_valid_i, .line_name_i, .line_take_o(control_line_take_o), .line_give_o(give_valid_o),
    .line_give_name_o(give_name_o), .line_give_ready_i(give_ready_i), .shared_take_i(shared_take),
    .shared_lines_i(shared_lines), .dropped_valid_i(1'b0), .dropped_queue_i('0), .gone_valid_i(1'b0),
    .gone_queue_i('0), .gone_lines_i('0), .shared_near_o(), .shared_moving_o(), .shared_none_o(), .has_shared_o(),
    .set_valid_o(), .set_queue_o(), .set_epoch_o(), .set_weight_o(), .set_class_o(), .set_closing_o(),
    .set_dropping_o(), .set_early_o(), .set_early_more_o(), .nudge_valid_o(), .nudge_queue_o(), .nudge_frontier_o(),
    .emptied_valid_i, .emptied_queue_i, .emptied_tail_i, .count_no_context_o(), .count_no_pool_o()
  );

endmodule

`default_nettype wire

// The reorder unit: writes to a transmit window, in any order inside the span, become contiguous lines of a queue.
//
// HotOS'25 3.1 has one Data Buffer, Valid Vector and Length Address Register for a message; here many queues share a
// pipeline, a queue holds a context (valid bits, line names) only while something of it is incomplete, and the Data
// Buffer is the pool itself. What the frontier has passed is the reader's.
//
// Stages, and the cycle in which they are, counted from the cycle in which a piece stands at the input
//   0 input   1 arrival   2..4 contexts   5 commit: the frontier moves   6 outcome
// Guarantees
//   - One piece is taken in every cycle unless `hold` or back-pressure stops the unit; whatever the order of pieces
//     inside the span, in whatever queues.
//   - A frontier passes a line only when its 64 bytes have arrived, each once.
//   - Back-pressure is for complete messages that wait for the wire, and for nothing else (docs/design.md, decision 4).
// Twin: nic/model/src/mmio (arrival.rs, reorder_unit.rs, tx_queue.rs).

`default_nettype none

module reorder_unit #(
  parameter int unsigned NumQueues = 64,
  parameter int unsigned LineW = 6,
  parameter int unsigned RingW = 5,
  parameter int unsigned NumContexts = 16,
  parameter int unsigned PtrW = 11,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned ContextW = $clog2(NumContexts),
  localparam int unsigned PosW = LineW + 2,
  localparam int unsigned NearW = RingW + 4,
  localparam int unsigned RingLines = 1 << RingW
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [LineW-1:0]    window_mask_i,
  input  logic [RingW-1:0]    span_lines_i,
  input  logic [RingW-1:0]    ring_mask_i,

  // Pieces: at most one line each; `first` and `last` of the write they belong to.
  input  logic                piece_valid_i,
  output logic                piece_ready_o,
  input  logic [QueueW-1:0]   piece_queue_i,
  input  logic [LineW-1:0]    piece_line_i,
  input  logic [511:0]        piece_data_i,
  input  logic [63:0]         piece_be_i,
  input  logic                piece_whole_i,
  input  logic                piece_first_i,
  input  logic                piece_last_i,

  // Control: the unit stands; a queue starts; a queue takes writes or does not.
  input  logic                hold_i,
  output logic                is_empty_o,
  output logic                is_idle_o,
  input  logic                start_valid_i,
  input  logic [QueueW-1:0]   start_queue_i,
  input  logic [PtrW-1:0]     start_tail_i,
  input  logic                start_shared_i,
  input  logic                active_we_i,
  input  logic [QueueW-1:0]   active_queue_i,
  input  logic                active_value_i,

  // Accounts: pool lines and contexts that no queue reserved. `reader_busy`: complete messages may be waiting.
  // Lines may be on their way to be counted (`moving`).
  input  logic signed [NearW-1:0] shared_near_i,
  input  logic                shared_moving_i,
  output logic                shared_take_o,
  output logic [RingW:0]      shared_lines_o,
  input  logic                shared_context_i,
  output logic                context_taken_o,
  output logic [ContextW-1:0] context_taken_name_o,
  output logic                context_taken_shared_o,
  output logic [QueueW-1:0]   context_taken_queue_o,
  // Where the context begins, and its turn (`frontier_turn_o`).
  output logic [PosW-1:0]     context_taken_base_o,
  output logic                context_taken_turn_o,
  input  logic                reader_busy_i,

  // Contexts.
  input  logic                context_valid_i,
  input  logic [ContextW-1:0] context_name_i,
  output logic                context_take_o,
  output logic                release_valid_o,
  output logic                release_shared_o,
  output logic [ContextW-1:0] release_context_o,

  // The pool.
  input  logic                line_valid_i,
  input  logic                line_two_i,
  input  logic [PtrW-1:0]     line_name_i,
  output logic                line_take_o,
  output logic                store_valid_o,
  output logic [PtrW-1:0]     store_line_o,
  output logic [63:0]         store_be_o,
  output logic [511:0]        store_data_o,
  output logic                successor_we_o,
  output logic [PtrW-1:0]     successor_line_o,
  output logic [PtrW-1:0]     successor_next_o,
  output logic                own_we_o,
  output logic [PtrW-1:0]     own_line_o,
  output logic                own_known_o,
  output logic [PtrW-1:0]     own_next_o,
  output logic                orphan_valid_o,
  output logic [PtrW-1:0]     orphan_line_o,

  // Lines before this one are free to be written again (queues with credits).
  input  logic                freed_valid_i,
  input  logic [QueueW-1:0]   freed_queue_i,
  input  logic [PosW-1:0]     freed_i,

  // The frontier moves (stage 5), told once more with the account in stage 6.
  output logic [QueueW-1:0]   early_queue_o,
  output logic                frontier_we_o,
  output logic [QueueW-1:0]   frontier_queue_o,
  output logic                frontier_turn_o,
  output logic [PosW-1:0]     frontier_o,
  output logic                advanced_valid_o,
  output logic [QueueW-1:0]   advanced_queue_o,
  output logic [PosW-1:0]     advanced_to_o,
  output logic                advanced_shared_o,
  output logic                failed_valid_o,
  output logic [QueueW-1:0]   failed_queue_o,
  output logic [3:0]          failed_cause_o,

  // For control, while the unit stands: a context's marks, line names and count of lines.
  input  logic [ContextW-1:0] look_context_i,
  input  logic [RingW-1:0]    look_slot_i,
  output logic [PtrW-1:0]     look_line_o,
  output logic [RingLines-1:0] look_marks_o,
  input  logic                look_clear_i,

  // For `hole_timeout` (stage 6, and 7 for what the frontier's line has and lacks).
  output logic                watch_valid_o,
  output logic [ContextW-1:0] watch_context_o,
  output logic [QueueW-1:0]   watch_queue_o,
  output logic [PosW-1:0]     watch_frontier_o,
  output logic [RingW:0]      watch_held_o,
  output logic                watch_begun_o,
  output logic [5:0]          watch_first_o,
  output logic                watch_gap_o,

  // For the counters (stage 6).
  output logic                judged_valid_o,
  output logic                judged_first_o,
  output logic                judged_last_o,
  output logic                judged_dropped_o,
  output logic                judged_free_o,
  output logic                judged_inside_o,
  output logic                judged_expected_o,
  output logic [RingW+1:0]    judged_ahead_o,
  output logic [63:0]         judged_be_o,
  output logic                count_split_lines_o,
  output logic                count_refused_writes_o
);

  // ---------------------------------------------------------------------------------------------- stages 0 and 1
  // What goes along with a piece. That of stage 1 and that which stands aside, or is on its way in, lie in two places
  // that take turns: whether the piece of stage 1 leaves is known too late to move so many bits.
  logic [511:0] first_data_q, second_data_q, data2_q, data3_q, data4_q;
  logic [63:0]  first_be_q, second_be_q, be2_q, be3_q, be4_q, be5_q, be6_q;
  logic [1:0]   first_ends_q, second_ends_q, ends2_q, ends3_q, ends4_q, ends5_q, ends6_q;
  logic         is_second_q;

  logic                here_valid, here_active, here_shared, here_in_context, hold, in_flight;
  logic                here_again, arrival_empty, aside, load;
  logic [QueueW-1:0]   here_queue;
  logic [ContextW-1:0] read_context, mark_context;
  logic [RingW-1:0]    read_slot;

  logic                valid2, place2, beyond2, dropped2, fast2, fresh2, turn2, tail_given2, no_context2, shared2;
  logic [QueueW-1:0]   queue2;
  logic [PosW-1:0]     pos2, base2;
  logic [ContextW-1:0] context2;
  logic [PtrW-1:0]     tail2;
  logic                release_turn;
  logic [QueueW-1:0]   release_queue;
  logic [PosW-1:0]     release_frontier;
  logic [PtrW-1:0]     release_tail;

  arrival #(
    .NumQueues(NumQueues), .LineW(LineW), .RingW(RingW), .NumContexts(NumContexts), .PtrW(PtrW)
  ) u_arrival (
    .clk_i, .rst_ni, .window_mask_i, .ring_mask_i,
    .piece_valid_i, .piece_ready_o, .piece_queue_i, .piece_line_i, .piece_whole_i,
    .hold_i(hold), .in_flight_i(in_flight), .here_valid_o(here_valid), .here_queue_o(here_queue),
    .is_empty_o(arrival_empty), .here_active_o(here_active), .here_shared_o(here_shared),
    .here_in_context_o(here_in_context), .here_again_o(here_again),
    .start_valid_i, .start_queue_i, .start_tail_i, .start_shared_i,
    .active_we_i, .active_queue_i, .active_value_i,
    .commit_we_i(frontier_we_o), .commit_queue_i(frontier_queue_o), .commit_turn_i(frontier_turn_o),
    .commit_frontier_i(frontier_o),
    .release_valid_i(release_valid_o), .release_queue_i(release_queue), .release_turn_i(release_turn),
    .release_frontier_i(release_frontier), .release_tail_i(release_tail),
    .context_valid_i, .context_allowed_i(!here_shared || shared_context_i), .context_take_o, .context_name_i,
    .context_taken_o, .context_taken_name_o, .read_context_o(read_context), .mark_context_o(mark_context),
    .read_slot_o(read_slot),
    .out_valid_o(valid2), .out_queue_o(queue2), .out_pos_o(pos2), .out_place_o(place2), .out_beyond_o(beyond2),
    .out_dropped_o(dropped2), .out_fast_o(fast2), .out_fresh_o(fresh2), .out_context_o(context2), .out_turn_o(turn2),
    .out_base_o(base2), .out_tail_given_o(tail_given2), .out_tail_o(tail2), .out_no_context_o(no_context2),
    .out_shared_o(shared2),
    .aside_o(aside), .load_o(load)
  );
  assign context_taken_shared_o = shared2;
  assign context_taken_queue_o  = queue2;
  assign context_taken_base_o   = base2;
  assign context_taken_turn_o   = turn2;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) is_second_q <= 1'b0;
    else if (load) is_second_q <= !is_second_q;
    if (aside && is_second_q) begin
      first_data_q <= piece_data_i;
      first_be_q   <= piece_be_i;
      first_ends_q <= {piece_first_i, piece_last_i};
    end
    if (aside && !is_second_q) begin
      second_data_q <= piece_data_i;
      second_be_q   <= piece_be_i;
      second_ends_q <= {piece_first_i, piece_last_i};
    end
    data2_q <= is_second_q ? second_data_q : first_data_q;
    be2_q   <= is_second_q ? second_be_q : first_be_q;
    ends2_q <= is_second_q ? second_ends_q : first_ends_q;
    {data3_q, data4_q} <= {data2_q, data3_q};
    {be3_q, be4_q, be5_q, be6_q} <= {be2_q, be3_q, be4_q, be5_q};
    {ends3_q, ends4_q, ends5_q, ends6_q} <= {ends2_q, ends3_q, ends4_q, ends5_q};
  end

  // ---------------------------------------------------------------------------------------------- stages 2 to 4
  logic              store3_valid, store3_clobber, took4, complete4, clobber4, split4, expected5;
  logic [PtrW-1:0]   store3_line, line4;
  logic [PosW-1:0]   target4;
  logic [ContextW-1:0] commit_context;
  logic [RingW-1:0]    commit_slot;

  contexts #(
    .NumQueues(NumQueues), .LineW(LineW), .RingW(RingW), .NumContexts(NumContexts), .PtrW(PtrW)
  ) u_contexts (
    .clk_i, .rst_ni, .ring_mask_i,
    .read_context_i(read_context), .mark_context_i(mark_context), .read_slot_i(read_slot), .read_queue_i(here_queue),
    .valid_i(valid2), .queue_i(queue2), .pos_i(pos2), .place_i(place2), .fast_i(fast2), .fresh_i(fresh2),
    .context_i(context2), .base_i(base2), .tail_given_i(tail_given2), .tail_i(tail2), .be_i(be2_q), .be3_i(be3_q),
    .line_valid_i, .line_take_o, .line_name_i,
    .successor_we_o, .successor_line_o, .successor_next_o, .own_we_o, .own_line_o, .own_known_o, .own_next_o,
    .store_valid_o(store3_valid), .store_line_o(store3_line), .store_clobber_o(store3_clobber),
    .took_line_o(took4), .line_o(line4), .complete_o(complete4), .clobber_o(clobber4), .split_o(split4),
    .expected_o(expected5),
    .target_o(target4),
    .lack_context_i(watch_context_o), .lack_pos_i(watch_frontier_o), .lack_begun_o(watch_begun_o),
    .lack_first_o(watch_first_o), .lack_gap_o(watch_gap_o),
    .look_context_i(hold_i && is_empty_o ? look_context_i : commit_context),
    .look_slot_i(hold_i && is_empty_o ? look_slot_i : commit_slot), .look_line_o,
    .marks_context_i(look_context_i), .marks_o(look_marks_o)
  );

  always_ff @(posedge clk_i) begin
    store_valid_o <= rst_ni && store3_valid && !store3_clobber;
    store_line_o  <= store3_line;
  end
  assign store_be_o   = be4_q;
  assign store_data_o = data4_q;

  // What stands beside a piece while `contexts` works on it.
  typedef struct packed {
    logic [QueueW-1:0]   queue_index;
    logic [PosW-1:0]     pos;
    logic [ContextW-1:0] context_name;
    logic                place, beyond, dropped, fast, fresh, turn, no_context, shared;
  } piece_t;
  piece_t          piece3_q, piece4_q;
  logic            valid3_q, valid4_q, not_free4_q;
  logic [PosW-1:0] freed2, distance3_q;

  always_ff @(posedge clk_i) begin
    valid3_q <= rst_ni && valid2;
    valid4_q <= rst_ni && valid3_q;
    piece3_q <= '{
      queue_index: queue2, pos: pos2, context_name: context2, place: place2, beyond: beyond2, dropped: dropped2,
      fast: fast2, fresh: fresh2, turn: turn2, no_context: no_context2, shared: shared2
    };
    piece4_q <= piece3_q;
    // A line that lies a window or more beyond what was freed holds data that have not left yet.
    distance3_q <= pos2 - freed2;
    not_free4_q <= !piece3_q.shared && !piece3_q.dropped && distance3_q > PosW'(window_mask_i);
  end

  table_ram #(.Width(PosW), .Depth(NumQueues)) u_freed (
    .clk_i, .we_i(freed_valid_i || start_valid_i), .waddr_i(start_valid_i ? start_queue_i : freed_queue_i),
    .wdata_i(start_valid_i ? '0 : freed_i), .raddr_i(here_queue), .rdata_o(freed2)
  );

  // ---------------------------------------------------------------------------------------------- stages 5 and 6
  logic              valid5, valid6, coming;
  logic [QueueW-1:0] queue5, queue6;
  logic [RingW:0]    held_lines;

  commit #(
    .NumQueues(NumQueues), .LineW(LineW), .RingW(RingW), .NumContexts(NumContexts), .PtrW(PtrW)
  ) u_commit (
    .clk_i, .rst_ni, .span_lines_i, .ring_mask_i,
    .read_queue_i(piece3_q.queue_index), .valid_i(valid4_q), .queue_i(piece4_q.queue_index), .pos_i(piece4_q.pos),
    .target_i(target4), .complete_i(complete4), .clobber_i(clobber4), .split_i(split4), .expected_i(expected5),
    .place_i(piece4_q.place),
    .beyond_i(piece4_q.beyond), .not_free_i(not_free4_q), .dropped_i(piece4_q.dropped),
    .no_context_i(piece4_q.no_context), .shared_i(piece4_q.shared), .fast_i(piece4_q.fast),
    .fresh_i(piece4_q.fresh), .context_i(piece4_q.context_name), .took_line_i(took4), .line_i(line4),
    .turn_i(piece4_q.turn),
    .shared_near_i, .shared_take_o, .shared_lines_o,
    .start_valid_i, .start_queue_i, .active_we_i, .active_queue_i, .active_value_i,
    .frontier_we_o, .frontier_queue_o, .frontier_turn_o, .frontier_o,
    .look_context_o(commit_context), .look_slot_o(commit_slot), .look_line_i(look_line_o),
    .coming_i(coming), .release_valid_o, .release_queue_o(release_queue), .release_context_o,
    .release_turn_o(release_turn), .release_frontier_o(release_frontier), .release_tail_o(release_tail),
    .advanced_valid_o, .advanced_queue_o, .advanced_to_o, .advanced_shared_o,
    .failed_valid_o, .failed_queue_o, .failed_cause_o, .orphan_valid_o, .orphan_line_o,
    .watch_valid_o, .watch_context_o, .watch_frontier_o, .watch_held_o,
    .judged_valid_o, .judged_dropped_o, .judged_free_o, .judged_inside_o, .judged_expected_o, .judged_ahead_o,
    .count_split_lines_o,
    .valid5_o(valid5), .queue5_o(queue5), .valid6_o(valid6), .queue6_o(queue6),
    .held_context_i(read_context), .held_lines_o(held_lines), .held_clear_i(look_clear_i),
    .held_clear_context_i(look_context_i)
  );
  assign release_shared_o = advanced_shared_o;
  assign early_queue_o    = queue5;
  assign watch_queue_o    = queue6;
  assign judged_first_o   = ends6_q[1];
  assign judged_last_o    = ends6_q[0];
  assign judged_be_o      = be6_q;

  assign in_flight = (valid2 && queue2 == here_queue) || (valid3_q && piece3_q.queue_index == here_queue)
                     || (valid4_q && piece4_q.queue_index == here_queue) || (valid5 && queue5 == here_queue);
  assign coming    = (here_valid && here_queue == queue6) || (valid2 && queue2 == queue6)
                     || (valid3_q && piece3_q.queue_index == queue6) || (valid4_q && piece4_q.queue_index == queue6)
                     || (valid5 && queue5 == queue6);
  assign is_idle_o  = is_empty_o && arrival_empty;
  assign is_empty_o = !(valid2 || valid3_q || valid4_q || valid5 || valid6);

  // ---------------------------------------------------------------------------------------------- back-pressure
  // While there is plenty of room no piece waits. Near the end one piece at a time goes through, so that what it needs
  // is known; it waits only if messages that are complete can make room. Such a piece stands at least once, and in the
  // cycle after it is seen whether there is room for it.
  localparam logic signed [NearW-1:0] Plenty = NearW'(RingLines + 8);
  logic tight_q, lacks_room, refuses, refused_q, has_room_q, stood_waits_q, stood_empty_q;
  logic [RingW:0] stood_needs_q;

  assign lacks_room = shared_near_i <= signed'(NearW'(stood_needs_q));
  assign refuses    = here_again && stood_waits_q && stood_empty_q && lacks_room && reader_busy_i;
  assign hold       = hold_i || !line_two_i || (here_active && here_shared && tight_q && !has_room_q);

  always_ff @(posedge clk_i) begin
    tight_q            <= shared_near_i < Plenty;
    has_room_q         <= here_again && stood_empty_q && !(lacks_room && (reader_busy_i || shared_moving_i));
    stood_waits_q      <= here_valid && here_active && here_shared && tight_q;
    stood_empty_q      <= is_empty_o;
    stood_needs_q      <= here_in_context ? held_lines : '0;
    // A refusal is told once a piece.
    if (!rst_ni || load) refused_q <= 1'b0;
    else if (refuses) refused_q <= 1'b1;
  end
  assign count_refused_writes_o = refuses && !refused_q;

endmodule

`default_nettype wire

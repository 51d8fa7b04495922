// What is proved of nic/rtl/mmio/reorder_unit.sv (with arrival, contexts and commit), by bounded model checking
// (nic/formal/reorder_unit.sby says how deep), of either of two queues, whatever the other does and however pieces
// come:
//   - every piece is judged as a plain model judges it that has no pipeline, no contexts and no tables: the frontier is
//     always the first line that lacks a byte, so it never passes a line of which a byte has not come, in this lap and
//     this life, and never stays behind one that is whole; a byte that comes twice, or beyond the span, fails the
//     queue; a piece that breaks no rule does not; a failed queue, and none but a failed one, takes nothing any more;
//   - when the frontier passes a line, the pool's links lead to its pool line from that of the line before it;
//   - a context is taken by a queue when nobody has it, released by the queue that has it, and is not kept by a queue
//     that lacks nothing: contexts do not leak.
// Who has which pool line is proved without a bound, with control beside the unit (owners_proof.sv).
// What earlier laps and lives may have left is in the proof from the first cycle: all tables hold anything at the
// start, and the frontiers are anywhere.
//
// Assumed: names of pool lines and contexts that are given out are free (free_list_proof.sv); a piece stands until it
// is taken; one byte of a line, whichever it is, comes by itself and the others together, in any order. Queues without
// reservation, so that no limit but the span's is met; the pool does not run out; nothing starts or stops.
//
// 2 queues, 2 contexts, rings of 4 lines (span 2), windows of 8. Bounded: beyond the depth, and sizes, it is simulated.

`default_nettype none

module reorder_unit_proof #(
  // What is proved: 0 outcomes, 1 links, 2 owners of contexts.
  parameter int unsigned Part = 0,
  localparam int unsigned NumQueues = 2,
  localparam int unsigned LineW = 3,
  localparam int unsigned RingW = 2,
  localparam int unsigned NumContexts = 2,
  localparam int unsigned PtrW = 4,
  localparam int unsigned QueueW = 1,
  localparam int unsigned ContextW = 1,
  localparam int unsigned PosW = LineW + 2,
  localparam int unsigned NearW = RingW + 4
) (
  input logic                clk_i,
  input logic                rst_ni,
  input logic                piece_valid_i,
  input logic [QueueW-1:0]   piece_queue_i,
  input logic [LineW-1:0]    piece_line_i,
  input logic [63:0]         piece_be_i,
  input logic [ContextW-1:0] context_name_i,
  input logic [PtrW-1:0]     line_name_i,
  // Where the queues stand at first.
  input logic [NumQueues-1:0][PosW-1:0] frontier_i,
  // The queue and the pool line that are followed: any, but always the same.
  input logic [QueueW-1:0]   follow_i,
  input logic [PtrW-1:0]     name_i,
  // The position that is followed for its link: not before the first one's predecessor, within a window.
  input logic [PosW-1:0]     link_i,
  // The byte of each line that comes by itself: any, but always the same.
  input logic [5:0]          byte_i
);

  localparam int unsigned Ring = 1 << RingW;
  localparam int unsigned Window = 1 << LineW;
  localparam int unsigned Names = 1 << PtrW;

  logic                piece_ready, is_empty, is_idle, context_take, context_taken, release_valid, line_take;
  logic                store_valid;
  logic                successor_we, own_we, own_known, frontier_we, failed_valid, judged_valid, judged_dropped;
  logic [QueueW-1:0]   frontier_queue, failed_queue, taken_queue;
  logic [PosW-1:0]     frontier;
  logic [ContextW-1:0] release_context, taken_name;
  logic [PtrW-1:0]     store_line, successor_line, successor_next, own_line, own_next;
  // Contexts that are out, and whose they are; those that are out without an owner stand ready in the unit.
  logic [NumContexts-1:0] context_busy_q, context_owned_q, context_owner_q;

  reorder_unit #(
    .NumQueues(NumQueues), .LineW(LineW), .RingW(RingW), .NumContexts(NumContexts), .PtrW(PtrW)
  ) dut (
    .clk_i, .rst_ni, .window_mask_i('1), .span_lines_i(RingW'(Ring / 2)), .ring_mask_i('1), .piece_valid_i,
    .piece_queue_i, .piece_line_i, .piece_data_i('0), .piece_be_i, .piece_whole_i(piece_be_i == '1),
    .piece_first_i(1'b1), .piece_last_i(1'b1), .hold_i(1'b0), .start_valid_i(1'b0), .start_queue_i('0),
    .start_tail_i('0), .start_shared_i(1'b1), .active_we_i(failed_valid), .active_queue_i(failed_queue),
    .active_value_i(1'b0), .shared_near_i(NearW'(30)), .shared_moving_i(1'b0), .shared_context_i(1'b1),
    .reader_busy_i(1'b0), .context_valid_i(context_busy_q != '1), .context_name_i, .line_valid_i(1'b1),
    .line_two_i(1'b1), .line_name_i, .freed_valid_i(1'b0), .freed_queue_i('0), .freed_i('0), .look_context_i('0),
    .look_slot_i('0), .look_clear_i(1'b0), .piece_ready_o(piece_ready), .is_empty_o(is_empty), .is_idle_o(is_idle),
    .shared_take_o(), .shared_lines_o(), .context_taken_o(context_taken), .context_taken_name_o(taken_name),
    .context_taken_shared_o(), .context_taken_queue_o(taken_queue), .context_taken_base_o(),
    .context_taken_turn_o(), .frontier_turn_o(), .context_take_o(context_take),
    .release_valid_o(release_valid), .release_shared_o(), .release_context_o(release_context),
    .line_take_o(line_take), .store_valid_o(store_valid), .store_line_o(store_line), .store_be_o(), .store_data_o(),
    .successor_we_o(successor_we), .successor_line_o(successor_line), .successor_next_o(successor_next),
    .own_we_o(own_we), .own_line_o(own_line), .own_known_o(own_known), .own_next_o(own_next), .orphan_valid_o(),
    .orphan_line_o(), .early_queue_o(), .frontier_we_o(frontier_we), .frontier_queue_o(frontier_queue),
    .frontier_o(frontier), .advanced_valid_o(), .advanced_queue_o(), .advanced_to_o(), .advanced_shared_o(),
    .failed_valid_o(failed_valid), .failed_queue_o(failed_queue), .failed_cause_o(), .look_line_o(), .look_marks_o(),
    .watch_valid_o(), .watch_context_o(), .watch_queue_o(), .watch_frontier_o(), .watch_held_o(), .watch_begun_o(),
    .watch_first_o(), .watch_gap_o(), .judged_valid_o(judged_valid), .judged_first_o(), .judged_last_o(),
    .judged_dropped_o(judged_dropped), .judged_free_o(), .judged_inside_o(), .judged_expected_o(), .judged_ahead_o(),
    .judged_be_o(), .count_split_lines_o(), .count_refused_writes_o()
  );

  // ---------------------------------------------------------------------------------------------- surroundings
  // A run begins with a reset, and two queues that have nothing under way and no context, at any frontier, after a
  // start or a release (`returned`) or after whole lines in order, with pool lines 0 and 1 in front of their next ones.
  logic                   run_q = 1'b0;
  logic                   first_q = 1'b0;
  logic                   second_q = 1'b0;
  logic                   started_q = 1'b0;
  logic [Names-1:0]       name_busy_q;
  logic [QueueW-1:0]      follow_q;
  logic [NumQueues-1:0][PosW-1:0] placed_q;
  logic [PtrW-1:0]        followed_q;
  logic [PosW-1:0]        linked_q;
  logic [5:0]             byte_q;
  logic [63:0]            followed_byte;
  // Of a piece: whether it brings the others, and that byte.
  logic [1:0]             piece_bytes;
  assign followed_byte = 64'd1 << byte_i;
  assign piece_bytes   = {piece_be_i[byte_i ^ 6'd1], piece_be_i[byte_i]};
  logic                   waited_q = 1'b0;
  logic [QueueW+LineW+63:0] waited_piece_q;
  // The tables of arrival.sv: {turn, in_context, name, frontier} and {turn, frontier, tail}.
  function automatic logic is_at_rest(
    input logic [PosW+ContextW+1:0] own, input logic [PosW+PtrW:0] returned, input logic [PtrW-1:0] kept,
    input logic [PosW-1:0] from, input logic [PtrW-1:0] tail
  );
    if (own[PosW+ContextW+1] != returned[PosW+PtrW]) return returned[PosW+PtrW-1:0] == {from, tail};
    return !own[PosW+ContextW] && own[PosW-1:0] == from && kept == tail;
  endfunction

  always_ff @(posedge clk_i) begin
    started_q  <= 1'b1;
    follow_q   <= follow_i;
    placed_q   <= frontier_i;
    followed_q <= name_i;
    linked_q   <= link_i;
    byte_q     <= byte_i;
    run_q      <= 1'b1;
    first_q    <= !run_q;
    second_q   <= first_q;
    waited_q       <= piece_valid_i && !piece_ready;
    waited_piece_q <= {piece_queue_i, piece_line_i, piece_be_i};
    assume (rst_ni == run_q);
    if (!run_q || first_q || second_q) assume (!own_we && !successor_we);
    if (first_q) begin
      for (int unsigned q = 0; q < NumQueues; q++) begin
        assume (is_at_rest(
          dut.u_arrival.u_own.mem[q], dut.u_arrival.u_returned.mem[q], dut.u_contexts.u_tail.mem[q], frontier_i[q],
          PtrW'(q)
        ));
        // What `commit` told last is of another turn than the context that the queue takes next.
        assume (dut.u_arrival.u_committed.mem[q] == {!dut.u_arrival.u_returned.mem[q][PosW+PtrW], frontier_i[q]});
        assume (dut.u_commit.u_frontier.mem[q] == frontier_i[q]);
        assume (dut.u_arrival.u_active.mem[q] && dut.u_commit.u_active.mem[q] && dut.u_arrival.u_shared.mem[q]);
      end
    end
    if (first_q) assume (frontier_i == placed_q);
    if (started_q) assume (follow_i == follow_q && name_i == followed_q && link_i == linked_q && byte_i == byte_q);
    if (!run_q) assume (PosW'(link_i + 1'b1 - frontier_i[follow_i]) < PosW'(Window - 1));
    if (waited_q) assume (piece_valid_i && {piece_queue_i, piece_line_i, piece_be_i} == waited_piece_q);
    assume (piece_be_i != '0 && ((piece_be_i | followed_byte) == '1 || (piece_be_i & ~followed_byte) == '0));
    if (rst_ni) assume (!name_busy_q[line_name_i]);
    if (context_busy_q != '1) assume (!context_busy_q[context_name_i]);
    if (!rst_ni) begin
      name_busy_q     <= Names'(3);
      context_busy_q  <= '0;
      context_owned_q <= '0;
    end else begin
      if (line_take) name_busy_q[line_name_i] <= 1'b1;
      if (release_valid) begin
        context_busy_q[release_context]  <= 1'b0;
        context_owned_q[release_context] <= 1'b0;
      end
      if (context_take && context_busy_q != '1) context_busy_q[context_name_i] <= 1'b1;
      if (context_taken) begin
        context_owned_q[taken_name] <= 1'b1;
        context_owner_q[taken_name] <= taken_queue;
      end
    end
  end

  // ---------------------------------------------------------------------------------------------- the plain model
  // What stands beside a piece: its line, its two groups of bytes, its position as the sender means it; 0: set aside.
  logic [6:0][LineW-1:0] line_q;
  logic [6:0][1:0]       bytes_q;
  logic [6:0][PosW-1:0]  pos_q;
  logic [PosW-1:0]       unit_q, plain_q, plain_d, meant;
  logic [Window-1:0][1:0] there_q, there_d;
  logic                  has_failed_q, judged, fails, is_inside, is_new;
  logic [LineW-1:0]      ahead;

  assign meant = unit_q + PosW'(LineW'(piece_line_i - unit_q[LineW-1:0]));
  always_ff @(posedge clk_i) begin
    if (dut.aside) {line_q[0], bytes_q[0], pos_q[0]} <= {piece_line_i, piece_bytes, meant};
    if (dut.load) begin
      {line_q[1], bytes_q[1], pos_q[1]} <= !dut.aside ? {line_q[0], bytes_q[0], pos_q[0]}
                                                          : {piece_line_i, piece_bytes, meant};
    end
    line_q[6:2]  <= line_q[5:1];
    bytes_q[6:2] <= bytes_q[5:1];
    pos_q[6:2]   <= pos_q[5:1];
    // The unit's frontier, behind the piece that is in stage 6 now.
    if (!run_q) unit_q <= frontier_i[follow_i];
    else if (frontier_we && frontier_queue == follow_i) unit_q <= frontier;
  end

  assign judged    = judged_valid && dut.queue6 == follow_i && !judged_dropped;
  assign fails     = dut.u_commit.fail6 && dut.queue6 == follow_i;
  assign ahead     = line_q[6] - plain_q[LineW-1:0];
  assign is_inside = 32'(ahead) < Ring / 2;
  assign is_new    = (there_q[line_q[6]] & bytes_q[6]) == '0;

  // The followed line's pool line, that of the line behind it, and what the pool's links say of the former. A pool line
  // in front of a queue's next line knows none yet (mmio.sv).
  logic [PosW-1:0] behind;
  logic [PtrW-1:0] name_q, next_name_q, successor_q, own_q;
  logic            known_q, tried_q, is_linked;
  assign behind    = link_i + 1'b1;
  assign is_linked = (known_q ? own_q : successor_q) == next_name_q;
  always_ff @(posedge clk_i) begin
    if (!run_q) begin
      name_q  <= PtrW'(follow_i);
      known_q <= 1'b0;
      tried_q <= 1'b0;
    end else begin
      if (line_take && dut.queue2 == follow_i && line_q[2] == link_i[LineW-1:0]) name_q <= line_name_i;
      if (line_take && dut.queue2 == follow_i && line_q[2] == behind[LineW-1:0]) next_name_q <= line_name_i;
      if (successor_we && successor_line == name_q) successor_q <= successor_next;
      if (own_we && own_line == name_q) {known_q, own_q} <= {own_known, own_next};
      if (plain_q != plain_d && PosW'(behind - plain_q) < PosW'(plain_d - plain_q)) tried_q <= 1'b1;
    end
  end

  always_comb begin
    plain_d = plain_q;
    there_d = there_q;
    if (judged && !fails) begin
      there_d[line_q[6]] = there_q[line_q[6]] | bytes_q[6];
      for (int unsigned i = 0; i < Ring; i++) begin
        if (there_d[plain_d[LineW-1:0]] == '1) begin
          there_d[plain_d[LineW-1:0]] = '0;
          plain_d = plain_d + 1'b1;
        end
      end
    end
  end

  // The followed pool line: whose it is.
  logic                    taken_q;
  logic [QueueW-1:0]       owner_q;
  logic [LineW-1:0]        owned_q;
  logic [4:3][QueueW-1:0]  queue_q;
  always_ff @(posedge clk_i) begin
    queue_q <= {queue_q[3], dut.queue2};
    if (!rst_ni) begin
      taken_q      <= 1'b0;
      has_failed_q <= 1'b0;
    end else begin
      if (line_take && line_name_i == name_i) begin
        taken_q <= 1'b1;
        owner_q <= dut.queue2;
        owned_q <= line_q[2];
      end
      if (fails) has_failed_q <= 1'b1;
    end
    if (!run_q) begin
      plain_q <= frontier_i[follow_i];
      there_q <= '0;
    end else begin
      plain_q <= plain_d;
      there_q <= there_d;
    end
  end

  // ---------------------------------------------------------------------------------------------- properties
  logic [PosW-1:0] unit0_q;
  always_ff @(posedge clk_i) if (!run_q) unit0_q <= frontier_i[follow_i];

  logic [PosW-1:0] meant_ahead;
  assign meant_ahead = pos_q[6] - plain_q;
  if (Part == 0) begin : g_outcomes
    always_ff @(posedge clk_i) begin
      if (run_q) begin
        if (judged_valid && dut.queue6 == follow_i) assert (judged_dropped == has_failed_q);
        if (judged && !fails) assert (is_inside && is_new && unit_q == plain_d);
        if (fails) assert (judged && !(32'(meant_ahead) < Ring / 2 && is_new));
      end
    end
  end else if (Part == 1) begin : g_links
    always_ff @(posedge clk_i) begin
      // When the frontier first passes the line behind the followed one, the link between them is known.
      if (run_q && judged && !fails && !tried_q && PosW'(behind - plain_q) < PosW'(plain_d - plain_q)) begin
        assert (is_linked);
      end
    end
  end else begin : g_owners
    always_ff @(posedge clk_i) begin
      if (run_q) begin
        if (store_valid && store_line == name_i) assert (taken_q && queue_q[4] == owner_q && line_q[4] == owned_q);
        if (release_valid) begin
          assert (context_owned_q[release_context] && context_owner_q[release_context] == dut.queue6);
        end
        if (context_taken) assert (context_busy_q[taken_name] && !context_owned_q[taken_name]);
        for (int unsigned i = 0; i < NumContexts; i++) begin
          if (is_idle && !has_failed_q && context_owned_q[i] && context_owner_q[i] == follow_i) begin
            assert (there_q != '0);
          end
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (run_q) begin
      cover (PosW'(plain_q - unit0_q) == PosW'(3) && release_valid && dut.queue6 == follow_i);
      cover (fails && context_owned_q == '1);
    end
  end

endmodule

`default_nettype wire

// What is proved of nic/rtl/mmio/commit.sv, for every length of run, by k-induction (nic/formal/commit.sby), of any
// queue, whatever the other does:
//   - its frontier moves only forward, by 1 line to a ring, and only for a piece that stands at the frontier, that
//     made its line complete, that was placed, and whose queue takes writes; to where that piece says. Whatever
//     pieces of the queue are one cycle apart, each is judged by the frontier that all pieces before it have left;
//   - when a piece breaks a rule its queue fails, in that cycle; no piece behind it, in whatever stage, moves the
//     frontier, or fails the queue again, until the queue is started anew.
// That a line that is told to be complete is complete is proved of the stages before (reorder_unit_proof.sv).
//
// Assumed: stage 3 names the queue of the next stage 4; the target of a complete line lies 1 line to a ring behind
// it; a placed piece is less than a ring from the frontier (arrival.sv); a queue that is told to have failed is
// marked as such in that cycle (mmio.sv); a queue is started while none of its pieces is under way. All else is free.
//
// Proved for 2 queues, rings of 4 lines (span 2), windows of 8 and positions of 5 bits. A queue enters by addresses
// and comparisons for equality alone; a position by differences, of which two more bits than a ring's are looked at.

`default_nettype none

module commit_proof #(
  localparam int unsigned NumQueues = 2,
  localparam int unsigned LineW = 3,
  localparam int unsigned RingW = 2,
  localparam int unsigned NumContexts = 2,
  localparam int unsigned PtrW = 2,
  localparam int unsigned QueueW = 1,
  localparam int unsigned ContextW = 1,
  localparam int unsigned PosW = LineW + 2,
  localparam int unsigned NearW = RingW + 4
) (
  input logic                      clk_i,
  input logic                      rst_ni,
  input logic [RingW-1:0]          span_lines_i,
  input logic [RingW-1:0]          ring_mask_i,
  input logic [QueueW-1:0]         read_queue_i,
  input logic                      valid_i,
  input logic [QueueW-1:0]         queue_i,
  input logic [PosW-1:0]           pos_i,
  input logic [PosW-1:0]           target_i,
  input logic                      complete_i,
  input logic                      clobber_i,
  input logic                      split_i,
  input logic                      place_i,
  input logic                      beyond_i,
  input logic                      not_free_i,
  input logic                      dropped_i,
  input logic                      no_context_i,
  input logic                      shared_i,
  input logic                      fast_i,
  input logic                      fresh_i,
  input logic [ContextW-1:0]       context_i,
  input logic                      took_line_i,
  input logic [PtrW-1:0]           line_i,
  input logic                      turn_i,
  input logic                      expected_i,
  input logic signed [NearW-1:0]   shared_near_i,
  input logic                      start_valid_i,
  input logic [QueueW-1:0]         start_queue_i,
  input logic                      active_we_i,
  input logic [QueueW-1:0]         active_queue_i,
  input logic                      active_value_i,
  input logic [PtrW-1:0]           look_line_i,
  input logic                      coming_i,
  input logic [ContextW-1:0]       held_context_i,
  input logic                      held_clear_i,
  input logic [ContextW-1:0]       held_clear_context_i,
  // The queue that is followed: any, but always the same.
  input logic [QueueW-1:0]   follow_i
);

  logic              frontier_we, failed_valid;
  logic [QueueW-1:0] frontier_queue, failed_queue;
  logic [PosW-1:0]   frontier;

  commit #(
    .NumQueues(NumQueues), .LineW(LineW), .RingW(RingW), .NumContexts(NumContexts), .PtrW(PtrW)
  ) dut (
    .clk_i, .rst_ni, .span_lines_i, .ring_mask_i, .read_queue_i, .valid_i, .queue_i, .pos_i, .target_i, .complete_i,
    .clobber_i, .split_i, .place_i, .beyond_i, .not_free_i, .dropped_i, .no_context_i, .shared_i, .fast_i, .fresh_i,
    .context_i, .took_line_i, .line_i, .turn_i, .expected_i, .shared_near_i, .start_valid_i, .start_queue_i,
    .active_we_i, .active_queue_i, .active_value_i, .look_line_i, .coming_i, .held_context_i, .held_clear_i,
    .held_clear_context_i, .shared_take_o(), .shared_lines_o(), .frontier_we_o(frontier_we),
    .frontier_queue_o(frontier_queue), .frontier_o(frontier), .look_context_o(), .look_slot_o(), .release_valid_o(),
    .release_queue_o(), .release_context_o(), .release_turn_o(), .release_frontier_o(), .release_tail_o(),
    .advanced_valid_o(), .advanced_queue_o(), .advanced_to_o(), .advanced_shared_o(), .failed_valid_o(failed_valid),
    .failed_queue_o(failed_queue), .failed_cause_o(), .orphan_valid_o(), .orphan_line_o(), .watch_valid_o(),
    .watch_context_o(),
    .watch_frontier_o(), .watch_held_o(), .judged_valid_o(), .judged_dropped_o(), .judged_free_o(),
    .judged_inside_o(), .judged_expected_o(), .judged_ahead_o(), .count_split_lines_o(), .valid5_o(), .queue5_o(),
    .valid6_o(), .queue6_o(), .held_lines_o()
  );

  localparam int unsigned Ring = 1 << RingW;

  // The queue's frontier; whether it takes writes; the pieces of stages 4 and 5 as they came.
  logic              started_q = 1'b0;
  logic              live_q = 1'b0;
  logic              active_q;
  logic [PosW-1:0]   frontier_q, pos5_q, target5_q, moved;
  logic              here5_q, good5_q;
  logic [QueueW-1:0] follow_q, read_q;
  logic              here4, moves, fails, starts;
  assign here4  = valid_i && queue_i == follow_i;
  assign starts = start_valid_i && start_queue_i == follow_i;
  assign moves  = frontier_we && frontier_queue == follow_i && !start_valid_i;
  assign fails  = dut.fail6 && dut.queue6_q == follow_i;
  assign moved  = frontier - frontier_q;

  // How far a placed piece may lie from the frontier that it meets.
  function automatic logic is_near(input logic [PosW-1:0] pos, input logic [PosW-1:0] from);
    return PosW'(pos - from + PosW'(Ring)) < PosW'(2 * Ring);
  endfunction

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    follow_q  <= follow_i;
    read_q    <= read_queue_i;
    assume (started_q ? rst_ni && follow_i == follow_q : !rst_ni);
    if (!started_q) assume (!start_valid_i && !active_we_i);
    assume (span_lines_i == RingW'(Ring / 2) && ring_mask_i == '1);
    if (started_q) begin
      if (valid_i) assume (queue_i == read_q);
      if (complete_i) assume (PosW'(target_i - pos_i) >= PosW'(1) && PosW'(target_i - pos_i) <= PosW'(Ring));
      if (here4 && place_i) assume (live_q);
      if (start_valid_i) begin
        assume (!(valid_i && queue_i == start_queue_i) && !(dut.valid5_q && dut.queue5_q == start_queue_i));
        assume (!(dut.valid6_q && dut.queue6_q == start_queue_i) && !dut.advance5 && !failed_valid);
        assume (active_we_i && active_value_i && active_queue_i == start_queue_i);
      end
      if (failed_valid) assume (active_we_i && active_queue_i == failed_queue && !active_value_i);
      if (active_we_i && active_value_i) assume (start_valid_i);
      // How many lines of a context are held, and so when it is given back, is looked at with the whole unit.
      if (dut.in_context6 && dut.advance6_q) assume (signed'({1'b0, dut.held6}) >= dut.net6_q);
      // Where the placed piece of stage 5 lies, from the frontier that it meets.
      if (here5_q && dut.place5_q) assume (is_near(pos5_q, frontier_q));
    end
    if (starts) live_q <= 1'b1;
    if (starts) frontier_q <= '0;
    else if (moves) frontier_q <= frontier;
    if (active_we_i && active_queue_i == follow_i) active_q <= active_value_i;
    here5_q   <= rst_ni && here4;
    pos5_q    <= pos_i;
    target5_q <= target_i;
    good5_q   <= complete_i && place_i && !not_free_i && !dropped_i;
  end

  // Whether it failed, and was not started since.
  logic failed_q = 1'b0;
  always_ff @(posedge clk_i) begin
    if (starts) failed_q <= 1'b0;
    else if (fails) failed_q <= 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni && live_q) begin
      if (moves) begin
        assert (moved >= PosW'(1) && moved <= PosW'(Ring));
        assert (here5_q && good5_q && pos5_q == frontier_q && frontier == target5_q);
        assert (!failed_q && !fails);
      end
      if (fails) assert (!failed_q);
      // A piece at the frontier that is good in every respect does move it, if the queue takes writes.
      if (here5_q && good5_q && pos5_q == frontier_q && dut.alive5) assert (moves);
      // Invariants that make it inductive.
      assert (dut.u_frontier.mem[follow_i] == frontier_q && dut.u_active.mem[follow_i] == active_q);
      if (failed_q) assert (!active_q || (failed_valid && failed_queue == follow_i));
      if (here5_q) assert (dut.frontier5_q == frontier_q && dut.ahead5_q == (RingW + 2)'(pos5_q - frontier_q));
      if (failed_q && here5_q) assert (!dut.alive5_q || (dut.valid6_q && dut.queue6_q == follow_i && dut.fail6));
      if (failed_q && dut.valid6_q && dut.queue6_q == follow_i) assert (!dut.alive6_q);
    end
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni && live_q) begin
      cover (moves && frontier == PosW'(7) && pos5_q == PosW'(5));
      cover (fails && here5_q && good5_q);
    end
  end

endmodule

`default_nettype wire

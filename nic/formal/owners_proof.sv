// What is proved of who has which pool line and which context (nic/rtl/mmio: reorder_unit with arrival, contexts and
// commit, and queue_control), for every length of run, by k-induction, of any one pool line, two queues and two contexts,
// whatever pieces come, in the middle of starts, stops, failures of any kind at any time, restarts, hold, too few contexts
// and too few lines, for queues with credits and without:
//   - a store goes only to a line that was taken for that line of that queue, and that the frontier has not passed;
//   - a line that comes back was out, and comes from who had it: an orphan, a context that control empties, a queue's tail;
//   - a line that is out is with control for a queue's tail, in the pipeline, in a context that its queue has, or the
//     reader's; so names out are names owned, and none is lost or given out twice;
//   - a queue that is not started has none, and no context; one that failed and was seen to has only what is the reader's;
//   - a context is taken only when nobody has it, and given back only by who has it.
//
// Assumed: the pool offers lines that are free, and where two stand ready one is left in the next cycle
// (free_list_proof.sv); contexts that are offered are free (the same); what the registers do: a queue is started only when
// it is stopped, one request at a time; a piece stands until it is taken, and has a byte (bar_ingress_proof.sv). Of the
// reader: it gives back lines that are behind the frontier, each once, and not a queue's last one, which it names when a
// queue that stops has no other (message_reader, by simulation). owners_surroundings.sv stands for modules with proofs of
// their own: failures may come to control at any time, of any queue; what is left of lines and contexts may be anything.
//
// Parts 0 to 7 are groups of invariants: each is proved from all of them a cycle before. Part 8 follows from them in the
// same cycle. Parts 9 and 10 find counterexamples where there are some: they begin with queues at rest or with one
// that stops, and with whatever earlier lives may have left in the tables.
//
// Why two queues, two contexts, rings of 4 lines and windows of 8 stand for more: arguments A and C of docs/proofs.md; the
// search for the frontier's next place is of this size only (argument D).

`default_nettype none

module owners_proof import owners_pkg::*; #(
  // The group of invariants that is proved, or (8) the properties.
  parameter int unsigned Part = 0
) (
  input logic                clk_i,
  input logic                rst_ni,
  input logic                piece_valid_i,
  input logic [QueueW-1:0]   piece_queue_i,
  input logic [LineW-1:0]    piece_line_i,
  input logic [63:0]         piece_be_i,
  input logic                start_valid_i,
  input logic [QueueW-1:0]   start_queue_i,
  input logic                start_credits_i,
  input logic                stop_valid_i,
  input logic [QueueW-1:0]   stop_queue_i,
  input logic                wanted_held_i,
  input logic                failed_ready_i,
  input logic                line_valid_i,
  input logic                line_two_i,
  input logic [PtrW-1:0]     line_name_i,
  input logic                context_valid_i,
  input logic [ContextW-1:0] context_name_i,
  input logic                shared_context_i,
  input logic signed [NearW-1:0] shared_near_i,
  input logic                shared_moving_i,
  input logic                give_ready_i,
  input logic                reader_busy_i,
  input logic                quiet_i,
  input logic                freed_valid_i,
  input logic [QueueW-1:0]   freed_queue_i,
  input logic [PosW-1:0]     freed_i,
  input logic                emptied_valid_i,
  input logic [QueueW-1:0]   emptied_queue_i,
  input logic [PtrW-1:0]     emptied_tail_i,
  // The reader gives the followed line back.
  input logic                reader_gives_i,
  // The pool line that is followed: any, but always the same.
  input logic [PtrW-1:0]     name_i
);

  logic                piece_ready, busy, line_take, control_line_take, context_take, give_valid, orphan_valid;
  logic                store_valid, begin_valid;
  logic [PtrW-1:0]     give_name, orphan_line, store_line, begin_tail;
  logic [QueueW-1:0]   begin_queue;

  owners_bench #(
    .NumQueues(NumQueues), .LineW(LineW), .RingW(RingW), .NumContexts(NumContexts), .PtrW(PtrW)
  ) dut (
    .clk_i, .rst_ni, .piece_valid_i, .piece_ready_o(piece_ready), .piece_queue_i, .piece_line_i, .piece_be_i,
    .start_valid_i, .start_queue_i, .start_credits_i, .stop_valid_i, .stop_queue_i, .wanted_held_i, .busy_o(busy),
    .failed_ready_i, .line_valid_i, .line_two_i, .line_name_i, .line_take_o(line_take),
    .control_line_take_o(control_line_take), .context_valid_i, .context_name_i, .context_take_o(context_take),
    .shared_context_i, .shared_near_i, .shared_moving_i, .give_ready_i, .give_valid_o(give_valid),
    .give_name_o(give_name), .orphan_valid_o(orphan_valid), .orphan_line_o(orphan_line), .store_valid_o(store_valid),
    .store_line_o(store_line), .begin_valid_o(begin_valid), .begin_queue_o(begin_queue), .begin_tail_o(begin_tail),
    .reader_busy_i, .quiet_i, .freed_valid_i, .freed_queue_i, .freed_i, .emptied_valid_i, .emptied_queue_i,
    .emptied_tail_i
  );

  // ---------------------------------------------------------------------------------------------- what is in the RTL
  view_t at;
  owners_view u_view (.clk_i, .name_i, .at_o(at));

  // Groups of invariants: each holds.
  logic [7:0] good;

  // ---------------------------------------------------------------------------------------------- surroundings
  logic run_q = 1'b0;
  logic waited_q = 1'b0, two_q = 1'b0;
  logic [QueueW+LineW+63:0] waited_piece_q;
  logic [PtrW-1:0]          name_q;
  logic [NumContexts-1:0]   busy_q;

  where_e            where_q;
  logic [QueueW-1:0] whose_q;
  logic [PosW-1:0]   where_pos_q;
  logic [ContextW-1:0] where_ctx_q;
  // Of those of its queue that are behind the frontier it is the last.
  logic              is_last_q;

  logic              advance, passes;
  logic [PosW-1:0]   target;
  assign advance = dut.u_unit.u_commit.advance5;
  assign target  = dut.u_unit.u_commit.target5_q;
  assign passes  = advance && at.queue[5] == whose_q
      && PosW'(where_pos_q - at.front[at.queue[5]]) < PosW'(target - at.front[at.queue[5]]);

  always_ff @(posedge clk_i) begin
    run_q          <= 1'b1;
    name_q         <= name_i;
    waited_q       <= piece_valid_i && !piece_ready;
    waited_piece_q <= {piece_queue_i, piece_line_i, piece_be_i};
    two_q          <= line_two_i;
    // A run begins with a reset, or in the midst of things: (9) with two queues at rest, started, at any frontier, or (10)
    // with control about to see to one that stops or failed; with anything that may be in the tables.
    if (Part < 9) assume (rst_ni == run_q);
    else assume (rst_ni);
    if (Part >= 9 && !run_q) begin
      assume (at.valid == '0 && good == '1 && !store_valid);
      if (Part == 9) assume (at.state == Idle && at.started == '1 && at.active == '1 && at.owned == '0);
      else assume (at.state == Quiesce && at.wait_count == 4'd10);
      assume (!dut.u_unit.u_arrival.held_q && !dut.u_unit.u_arrival.valid_q && !dut.u_unit.u_arrival.stale_q);
      assume (!dut.u_unit.u_arrival.aside_q && !dut.u_unit.failed_valid_o);
      assume (!dut.u_control.wants_stop_q && !dut.u_control.wants_start_q);
      assume (!dut.u_unit.u_commit.bad6_q && !dut.u_unit.u_commit.not_free6_q && !dut.u_unit.u_commit.behind6_q);
      assume (!dut.u_unit.u_commit.far6_q && !dut.u_unit.u_commit.clobber6_q && !dut.u_unit.u_commit.no_context6_q);
      assume (!dut.u_unit.u_commit.advance6_q);
    end
    if (run_q) assume (name_i == name_q);
    if (waited_q) assume (piece_valid_i && {piece_queue_i, piece_line_i, piece_be_i} == waited_piece_q);
    assume (piece_be_i != '0);
    // The pool (free_list_proof.sv): what it offers is free; where two stand ready, one is left in the next cycle.
    if (two_q && run_q) assume (line_valid_i);
    if (line_two_i) assume (line_valid_i);
    if (rst_ni && line_valid_i) assume (where_q == Free || line_name_i != name_i);
    if (context_valid_i) assume (!busy_q[context_name_i]);
    // The registers (registers.sv): one at a time, and a queue starts only after it was stopped.
    assume (!((start_valid_i || stop_valid_i) && busy));
    assume (!(start_valid_i && stop_valid_i));
    if (start_valid_i) assume (!at.started[start_queue_i]);
    // The reader gives lines back but for the last one, and says which that is when it is alone.
    if (reader_gives_i) assume (where_q == Read && !is_last_q);
    if (emptied_valid_i) assume ((emptied_tail_i == name_i) == (where_q == Read && whose_q == emptied_queue_i));
    if (emptied_valid_i && emptied_tail_i == name_i) assume (is_last_q);

    if (!rst_ni) begin
      where_q <= Free;
      busy_q  <= '0;
    end else begin
      if (line_take && line_name_i == name_i) begin
        where_q     <= at.fast[2] ? Fast : Held;
        whose_q     <= at.queue[2];
        where_pos_q <= at.pos[2];
        where_ctx_q <= at.ctx[2];
      end
      if (control_line_take && line_name_i == name_i) where_q <= Tail;
      if (begin_valid && begin_tail == name_i) begin
        where_q   <= Read;
        whose_q   <= begin_queue;
        is_last_q <= 1'b1;
      end
      if (advance && where_q == Read && at.queue[5] == whose_q) is_last_q <= 1'b0;
      if ((where_q == Fast || where_q == Held) && passes) begin
        where_q   <= Read;
        is_last_q <= where_pos_q + 1'b1 == target;
      end
      if (orphan_valid && orphan_line == name_i) where_q <= Free;
      if (give_valid && give_ready_i && give_name == name_i) where_q <= Free;
      if (reader_gives_i) where_q <= Free;

      if (dut.release_valid) busy_q[dut.release_context] <= 1'b0;
      if (dut.context_give) busy_q[dut.context_give_name] <= 1'b0;
      if (context_take && context_valid_i) busy_q[context_name_i] <= 1'b1;
    end
  end

  // ---------------------------------------------------------------------------------------------- invariants
  logic is_run;
  assign is_run = (run_q || Part >= 9) && rst_ni;
  owners_queues u_queues (
    .name_i, .is_run_i(is_run), .busy_i(busy_q), .where_i(where_q), .whose_i(whose_q), .is_last_i(is_last_q), .at_i(at),
    .good_o(good[3:0])
  );
  owners_lines u_lines (
    .name_i, .is_run_i(is_run), .where_i(where_q), .whose_i(whose_q), .where_pos_i(where_pos_q),
    .where_ctx_i(where_ctx_q), .store_valid_i(store_valid), .target_i(target), .at_i(at), .good_o(good[7:4])
  );

  // ---------------------------------------------------------------------------------------------- properties
  always_ff @(posedge clk_i) begin
    if (Part >= 8 && (run_q || Part >= 9) && rst_ni) begin
      // A store goes to a line that was taken for its line of its queue, and that the frontier has not passed.
      if (store_valid && store_line == name_i) begin
        p_store_is_its_own : assert ((where_q == Fast || where_q == Held) && whose_q == at.queue[4]
            && where_pos_q == at.pos[4]);
      end
      // A line comes back from whom it is out with, once.
      if (orphan_valid && orphan_line == name_i) begin
        p_orphan_was_out : assert (where_q == Fast && whose_q == at.queue[6] && where_pos_q == at.pos[6]);
      end
      if (give_valid && give_name == name_i) begin
        p_given_was_out : assert (at.state == GiveTail ? (where_q == Read && whose_q == at.work)
                                                    : (where_q == Held && whose_q == at.work));
      end
      // A queue that is not started has nothing; one that failed and was seen to has nothing but the reader's.
      if (where_q != Free && where_q != Tail) begin
        p_owner_is_started : assert (at.started[whose_q]);
      end
      if (where_q == Tail) p_tail_is_wanted : assert (at.state == StartGo);
      if (where_q == Fast) begin
        p_fast_is_under_way : assert ((at.in_fast[3] && at.took[3] && at.line[3] == name_i) || (at.in_fast[4]
            && at.took[4]
            && at.line[4] == name_i)
                                      || (at.in_fast[5] && at.took[5] && at.line[5] == name_i) || (at.in_fast[6]
                                          && at.took[6]
                                          && at.line[6] == name_i));
      end
      if (where_q == Held) begin
        p_held_is_in_a_context : assert (at.owned[where_ctx_q] && at.owner[where_ctx_q] == whose_q);
      end
      // Contexts.
      for (int unsigned c = 0; c < NumContexts; c++) begin
        if (at.owned[c]) assert (busy_q[c] && at.started[at.owner[c]]);
      end
    end
  end

  // Runs from reset reach what the induction is about: its assumptions exclude none of this.
  if (Part == 8) begin : g_reached
    always_ff @(posedge clk_i) begin
      c_stored_in_a_context : cover (run_q && store_valid && store_line == name_i && where_q == Held);
      c_stored_in_order     : cover (run_q && store_valid && store_line == name_i && where_q == Fast);
    end
  end
  // What the runs of parts 9 and 10 meet.
  if (Part == 9) begin : g_met
    always_ff @(posedge clk_i) begin
      c_orphan_of_a_dead_queue : cover (run_q && orphan_valid && orphan_line == name_i);
      c_context_beyond_the_frontier : cover (run_q && at.owned[0] && !at.is_com[at.owner[0]]
          && at.from[0] != at.front[at.owner[0]]
                                             && !at.active[at.owner[0]] && at.valid == '0);
      c_passed_in_a_context : cover (run_q && where_q == Held && passes && advance && at.placed[5] && !at.fast[5]);
      c_written_again : cover (run_q && dut.u_unit.u_commit.fail6 && where_q == Read && whose_q == at.queue[6]);
    end
  end
  if (Part == 10) begin : g_walked
    always_ff @(posedge clk_i) begin
      c_given_by_control : cover (run_q && at.state == WalkGive && give_ready_i && give_name == name_i);
      c_given_beyond_the_frontier : cover (run_q && at.state == WalkGive && give_ready_i && give_name == name_i
                                           && at.opened_base[at.found] != at.front[at.work] && !at.is_com[at.work]);
      c_tail_is_given : cover (run_q && at.state == GiveTail && give_ready_i && give_name == name_i);
    end
  end

  // ---------------------------------------------------------------------------------------------- induction
  // Each part proves its own group from all groups a cycle before.
  logic [7:0] good_q = '1;
  always_ff @(posedge clk_i) begin
    good_q <= good;
    for (int unsigned part = 0; part < 8; part++) begin
      if (Part == part) assert (good[part]);
      else if (Part >= 9) begin end
      else if (Part == 8) assume (good[part]);
      else assume (good_q[part]);
    end
  end

endmodule

`default_nettype wire

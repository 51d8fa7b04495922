// Invariants of owners_proof.sv: tables of queues and contexts (0), pieces in the pipeline (1, 2), control (3).

`default_nettype none

module owners_queues import owners_pkg::*; #(
  parameter int unsigned LineW = 3,
  localparam int unsigned PosW = LineW + 2
) (
  input logic clk_i,
  input logic [PtrW-1:0] name_i,
  input logic is_run,
  input logic [NumContexts-1:0] busy_q,
  input where_e where_q,
  input logic [QueueW-1:0] whose_q,
  input logic [PosW-1:0] where_pos_q,
  input logic [ContextW-1:0] where_ctx_q,
  input logic is_last_q,
  input logic store_valid,
  input logic advance,
  input logic [PosW-1:0] target,
  input logic [3:0] state,
  input logic [3:0] wait_count,
  input logic [QueueW-1:0] work,
  input logic [ContextW-1:0] found,
  input logic [RingW-1:0] walked,
  input logic is_stop,
  input logic [NumQueues-1:0] started,
  input logic [NumQueues-1:0] active,
  input logic [NumQueues-1:0] is_alive,
  input logic [NumQueues-1:0] own_turn,
  input logic [NumQueues-1:0] own_in,
  input logic [NumQueues-1:0] own_ret_turn,
  input logic [NumQueues-1:0] com_turn,
  input logic [NumQueues-1:0] is_ret,
  input logic [NumQueues-1:0] is_com,
  input logic [NumQueues-1:0] is_in,
  input logic [NumQueues-1:0][PosW-1:0] own_front,
  input logic [NumQueues-1:0][PosW-1:0] ret_front,
  input logic [NumQueues-1:0][PosW-1:0] com_front,
  input logic [NumQueues-1:0][PosW-1:0] front,
  input logic [NumQueues-1:0][PosW-1:0] base,
  input logic [NumQueues-1:0][ContextW-1:0] own_name,
  input logic [NumContexts-1:0] owned,
  input logic [NumContexts-1:0] opened_turn,
  input logic [NumContexts-1:0] is_fresh3,
  input logic [NumContexts-1:0] is_fresh,
  input logic [NumContexts-1:0][QueueW-1:0] owner,
  input logic [NumContexts-1:0][PosW-1:0] opened_base,
  input logic [NumContexts-1:0][PosW-1:0] from,
  input logic [NumContexts-1:0][Ring-1:0] marks,
  input logic [NumContexts-1:0][Ring-1:0] done,
  input logic [NumContexts-1:0][Ring-1:0][PosW-1:0] place,
  input logic [NumContexts-1:0][Ring-1:0] begun,
  input logic [NumContexts-1:0][Ring-1:0] is_done,
  input logic [NumContexts-1:0][Ring-1:0] is_full,
  input logic [NumContexts-1:0][Ring-1:0] is_followed,
  input logic [6:2] valid,
  input logic [6:2] placed,
  input logic [6:2] fast,
  input logic [6:2] fresh,
  input logic [6:2] in_ctx,
  input logic [6:2] in_fast,
  input logic [6:2] turn,
  input logic [6:2] took,
  input logic [6:2][QueueW-1:0] queue,
  input logic [6:2][PosW-1:0] pos,
  input logic [6:2][ContextW-1:0] ctx,
  input logic [6:2][PtrW-1:0] line,
  input logic [5:2][PosW-1:0] seen,
  // Each group holds.
  output logic [3:0] good_o
);

  // Whose whole lines are in stages `s` to 5.
  logic [6:2][2:0] ahead_fast;
  logic [NumQueues-1:0][2:0] all_fast;
  logic [NumQueues-1:0] counts_right;
  logic              empties;
  logic [63:0]       be1, be_aside;
  logic              walks;
  always_comb begin
    ahead_fast = '0;
    all_fast   = '0;
    for (int s = 2; s <= 5; s++) begin
      for (int t = 3; t <= 5; t++) begin
        if (t > s && in_fast[t] && queue[t] == queue[s]) ahead_fast[s] = ahead_fast[s] + 1'b1;
      end
      for (int q = 0; q < int'(NumQueues); q++) begin
        if (in_fast[s] && queue[s] == QueueW'(q)) all_fast[q] = all_fast[q] + 1'b1;
      end
    end
    for (int q = 0; q < int'(NumQueues); q++) begin
      counts_right[q] = is_alive[q] || (valid[5] && queue[5] == QueueW'(q) && dut.u_unit.u_commit.alive5);
    end
  end
  assign walks = state == WalkContext || state == WalkGive || state == EndContext;
  assign be1      = dut.u_unit.is_second_q ? dut.u_unit.second_be_q : dut.u_unit.first_be_q;
  assign be_aside = dut.u_unit.is_second_q ? dut.u_unit.first_be_q : dut.u_unit.second_be_q;
  assign empties  = state == FindContext || state == LookContext || walks || state == Set || state == Nudge
                    || state == StartLook || state == StartGo || state == Sweep;

  // Tables.
  always_comb begin
    good_o[0] = 1'b1;
    if (is_run) begin
      for (int unsigned q = 0; q < NumQueues; q++) begin
        if (state != Sweep || dut.u_control.index_q > q) begin
          good_o[0] &= (dut.u_unit.u_arrival.u_active.mem[q] == active[q]);
          if (!dut.u_control.u_queue.mem[q][QueueBits-1]) good_o[0] &= (!active[q]);
          if (state == Sweep) good_o[0] &= (!dut.u_control.u_queue.mem[q][QueueBits-1]);
        end
        if (started[q]) begin
          good_o[0] &= (front[q] == com_front[q] && dut.u_control.u_frontier.mem[q] == {com_turn[q], com_front[q]});
          good_o[0] &= (dut.u_unit.u_arrival.mark_context[q] == own_name[q]);
          if (!is_in[q]) good_o[0] &= (com_turn[q] != own_ret_turn[q]);
          if (counts_right[q] && !is_com[q]) good_o[0] &= (base[q] == front[q] + PosW'(all_fast[q]));
          if (active[q] && is_in[q]) begin
            good_o[0] &= ((owned[own_name[q]] && owner[own_name[q]] == QueueW'(q))
                    || (in_ctx[2] && fresh[2] && queue[2] == QueueW'(q) && ctx[2] == own_name[q]));
          end
          // One that failed and was seen to holds nothing that is not the reader's.
          if (dut.u_control.u_queue.mem[q][QueueBits-2]) begin
            good_o[0] &= (!active[q]);
            for (int c = 0; c < int'(NumContexts); c++) good_o[0] &= (!(owned[c] && owner[c] == QueueW'(q)));
            for (int s = 2; s <= 6; s++) good_o[0] &= (!(valid[s] && placed[s] && queue[s] == QueueW'(q)));
          end
        end
      end
      for (int unsigned c = 0; c < NumContexts; c++) begin
        if (owned[c]) begin
          good_o[0] &= (state != Sweep && started[owner[c]] && busy_q[c]);
          good_o[0] &= (is_in[owner[c]] && own_name[owner[c]] == ContextW'(c));
          good_o[0] &= (opened_turn[c] == own_turn[owner[c]] && opened_base[c] == own_front[owner[c]]);
          good_o[0] &= (from[c] == base[owner[c]]);
        end
        if (dut.u_unit.u_arrival.have_q[0] && dut.u_unit.u_arrival.name_q[0] == ContextW'(c)) begin
          good_o[0] &= (busy_q[c] && !owned[c]);
        end
        if (dut.u_unit.u_arrival.have_q[1] && dut.u_unit.u_arrival.name_q[1] == ContextW'(c)) begin
          good_o[0] &= (busy_q[c] && !owned[c]);
        end
      end
      good_o[0] &= (!dut.u_unit.u_arrival.have_q[1] || dut.u_unit.u_arrival.have_q[0]);
      if (dut.u_unit.u_arrival.have_q == '1) begin
        good_o[0] &= (dut.u_unit.u_arrival.name_q[0] != dut.u_unit.u_arrival.name_q[1]);
      end
      if (in_ctx[2] && fresh[2]) good_o[0] &= (dut.u_unit.u_arrival.have_q[0]
          && dut.u_unit.u_arrival.name_q[0] == ctx[2]);
      if (fresh[2]) good_o[0] &= (placed[2] && !fast[2]);
    end
  end

  // Pieces in the pipeline.
  always_comb begin
    good_o[1] = 1'b1;
    if (is_run) begin
      for (int s = 2; s <= 6; s++) begin
        if (valid[s] && placed[s]) begin
          good_o[1] &= (started[queue[s]]);
          if (s < 6 || !fast[s]) good_o[1] &= (turn[s] == own_ret_turn[queue[s]] && !is_ret[queue[s]]);
        end
        if (in_ctx[s]) begin
          good_o[1] &= (is_in[queue[s]] && own_name[queue[s]] == ctx[s]);
          if (s > 2 || !fresh[s]) good_o[1] &= (owned[ctx[s]] && owner[ctx[s]] == queue[s]);
          for (int t = 2; t < s; t++) good_o[1] &= (!(in_fast[t] && queue[t] == queue[s]));
          for (int t = 2; t < s; t++) good_o[1] &= (!(in_ctx[t] && fresh[t] && queue[t] == queue[s]));
        end
        if (in_fast[s] && s < 6) good_o[1] &= (!is_com[queue[s]]);
        if (s > 2 && (in_fast[s] || (in_ctx[s] && fresh[s]))) good_o[1] &= (took[s]);
        if (in_fast[s] && s < 6 && counts_right[queue[s]]) begin
          good_o[1] &= (pos[s] == front[queue[s]] + PosW'(ahead_fast[s]));
        end
      end
      for (int s = 2; s <= 5; s++) if (in_ctx[s]) for (int t = s + 1; t <= 5; t++) begin
        // In a context that has moved its frontier, or will: whole lines in front of it have gone their way.
        if (in_ctx[t] && queue[t] == queue[s]) good_o[1] &= (ctx[t] == ctx[s]);
      end
      good_o[1] &= (!(valid[2] && placed[2] && dut.u_unit.dropped2));
      good_o[1] &= (!(valid[3] && placed[3] && dut.u_unit.piece3_q.dropped));
      good_o[1] &= (!(valid[4] && placed[4] && dut.u_unit.piece4_q.dropped));
      // A context that was just taken.
      if (in_ctx[2] && fresh[2]) begin
        good_o[1] &= (!owned[ctx[2]] && !is_com[queue[2]]);
        good_o[1] &= (dut.u_unit.base2 == own_front[queue[2]]);
      end
    end
  end

  always_comb begin
    good_o[2] = 1'b1;
    if (is_run) begin
      // Where a piece lies, from the frontier that it saw; and how far that has moved since.
      for (int s = 2; s <= 5; s++) begin
        if (in_ctx[s]) begin
          good_o[2] &= (PosW'(pos[s] - seen[s]) < PosW'(Ring));
          good_o[2] &= (PosW'(base[queue[s]] - seen[s]) <= PosW'(Ring));
        end
      end
      if (in_ctx[2]) begin
        good_o[2] &= (dut.u_unit.u_contexts.slot2_q == pos[2][RingW-1:0]);
      end
      if (in_ctx[2] && !fresh[2]) begin
        for (int unsigned s = 0; s < Ring; s++) begin
          if (PosW'(place[ctx[2]][s] - dut.u_unit.base2) >= PosW'(Ring)) good_o[2] &= (!begun[ctx[2]][s]);
        end
        good_o[2] &= (dut.u_unit.u_contexts.mark2_q == marks[ctx[2]][pos[2][RingW-1:0]]);
        good_o[2] &= (dut.u_unit.u_contexts.bytes_here
            == dut.u_unit.u_contexts.u_bytes.mem[{ctx[2], pos[2][RingW-1:0]}]);
        good_o[2] &= (dut.u_unit.u_contexts.line_here
            == dut.u_unit.u_contexts.u_here.mem[{ctx[2], pos[2][RingW-1:0]}]);
        if (PosW'(pos[2] - base[queue[2]]) >= PosW'(Ring)) good_o[2] &= (dut.u_unit.u_contexts.bytes_here == '1);
      end
      // Stage 1: its tables are read.
      if (dut.u_unit.u_arrival.valid_q && !dut.u_unit.u_arrival.stale_q) begin
        good_o[2] &= (dut.u_unit.u_arrival.own == dut.u_unit.u_arrival.u_own.mem[dut.u_unit.u_arrival.queue_q]);
        good_o[2] &= (dut.u_unit.u_arrival.returned
            == dut.u_unit.u_arrival.u_returned.mem[dut.u_unit.u_arrival.queue_q]);
        good_o[2] &= (dut.u_unit.u_arrival.committed
            == dut.u_unit.u_arrival.u_committed.mem[dut.u_unit.u_arrival.queue_q]);
        good_o[2] &= (dut.u_unit.u_arrival.active == dut.u_unit.u_arrival.u_active.mem[dut.u_unit.u_arrival.queue_q]);
        good_o[2] &= (state == Sweep || !dut.u_unit.u_arrival.active || !dut.u_unit.u_arrival.in_context
                || dut.u_unit.u_arrival.mark_context_o == dut.u_unit.u_arrival.own.context_name
                || (in_ctx[2] && fresh[2] && queue[2] == dut.u_unit.u_arrival.queue_q));
        if (dut.u_unit.u_arrival.active && state != Sweep) good_o[2] &= (started[dut.u_unit.u_arrival.queue_q]);
      end
      good_o[2] &= (dut.u_unit.u_arrival.valid_q || (!dut.u_unit.u_arrival.stale_q && !dut.u_unit.u_arrival.aside_q));
      if (dut.u_unit.u_arrival.valid_q) good_o[2] &= (be1 != '0 && dut.u_unit.u_arrival.whole_q == (be1 == '1));
      if (dut.u_unit.u_arrival.aside_q) good_o[2] &= (be_aside != '0
          && dut.u_unit.u_arrival.aside_whole_q == (be_aside == '1));
      if (valid[2]) good_o[2] &= (dut.u_unit.be2_q != '0 && (!in_fast[2] || dut.u_unit.be2_q == '1));
      if (valid[4]) good_o[2] &= (dut.u_unit.u_commit.active4 == active[queue[4]]
          && dut.u_unit.u_commit.frontier4 == front[queue[4]]);
      if (valid[5] && placed[5] && is_alive[queue[5]]) good_o[2] &= (dut.u_unit.u_commit.alive5);
      if (valid[5]) begin
        good_o[2] &= (dut.u_unit.u_commit.frontier5_q == front[queue[5]]);
        good_o[2] &= (dut.u_unit.u_commit.ahead5_q == (RingW + 2)'(pos[5] - front[queue[5]]));
        good_o[2] &= (dut.u_unit.u_commit.pos5_q == pos[5][RingW:0]);
      end
    end
  end

  // Control.
  always_comb begin
    good_o[3] = 1'b1;
    if (is_run) begin
      if (empties) good_o[3] &= (valid == '0);
      if (empties && state != StartLook && state != StartGo) good_o[3] &= (!dut.u_unit.failed_valid_o);
      if (state == Quiesce) begin
        if (wait_count >= 4'd1) good_o[3] &= (!valid[2] && dut.u_control.queue_rd == dut.u_control.u_queue.mem[work]);
        if (wait_count >= 4'd2) good_o[3] &= (!valid[3]);
        if (wait_count >= 4'd3) good_o[3] &= (!valid[4]);
        if (wait_count >= 4'd4) good_o[3] &= (!valid[5]);
        if (wait_count >= 4'd5) good_o[3] &= (!valid[6]);
        if (wait_count >= 4'd6) good_o[3] &= (!dut.u_unit.failed_valid_o);
        if (wait_count >= 4'd7) good_o[3] &= (!active[work]);
        if (wait_count >= 4'd2) good_o[3] &= (started[work] && (is_stop || !dut.u_control.job_q[QueueBits-2]));
        if (wait_count >= 4'd2) good_o[3] &= (dut.u_control.job_q == dut.u_control.u_queue.mem[work]);
        good_o[3] &= (wait_count <= 4'd10);
      end
      if (state == StartHold) begin
        if (wait_count >= 4'd1) good_o[3] &= (!valid[2]);
        if (wait_count >= 4'd2) good_o[3] &= (!valid[3]);
        if (wait_count >= 4'd3) good_o[3] &= (!valid[4]);
        if (wait_count >= 4'd4) good_o[3] &= (!valid[5]);
        if (wait_count >= 4'd5) good_o[3] &= (!valid[6]);
        if (wait_count >= 4'd6) good_o[3] &= (!dut.u_unit.failed_valid_o);
      end
      if (state == StartLook || state == StartGo) good_o[3] &= (!dut.u_unit.failed_valid_o);
      if (state == StartHold || state == StartLook || state == StartGo) good_o[3] &= (!started[work] && !is_stop
          && dut.u_control.wanted_q[QueueBits-1] && !dut.u_control.wanted_q[QueueBits-2]);
      if (dut.u_control.wants_start_q) good_o[3] &= (!started[dut.u_control.start_queue_q]
          && !dut.u_control.wants_stop_q && !is_stop
                                               && dut.u_control.wanted_q[QueueBits-1]
                                                   && !dut.u_control.wanted_q[QueueBits-2]);
      if (state == StartHold || state == StartLook || state == StartGo || is_stop || state == Sweep) begin
        good_o[3] &= (!dut.u_control.wants_start_q && !dut.u_control.wants_stop_q);
      end
      if (state == StartGo) good_o[3] &= (dut.u_control.job_q == dut.u_control.wanted_q);
      if (state == FindContext || state == LookContext || walks || state == Set) begin
        good_o[3] &= (started[work] && !active[work]);
        good_o[3] &= (dut.u_control.job_q == dut.u_control.u_queue.mem[work]);
        good_o[3] &= (dut.u_control.frontier == dut.u_control.u_frontier.mem[work][PosW-1:0]
                && dut.u_control.frontier_turn == dut.u_control.u_frontier.mem[work][PosW]);
      end
      if (state == FindContext) begin
        good_o[3] &= (dut.u_control.index_q <= NumContexts);
        if (dut.u_control.index_q != '0) begin
          good_o[3] &= (dut.u_control.asked_q == ContextW'(dut.u_control.index_q - 1'b1));
          good_o[3] &= (dut.u_control.is_owned == (owned[dut.u_control.asked_q]
              && owner[dut.u_control.asked_q] == work));
        end
        for (int unsigned c = 0; c < NumContexts; c++) if (c + 1 < dut.u_control.index_q) begin
          good_o[3] &= (!(owned[c] && owner[c] == work));
        end
      end
      if (state == LookContext || walks) good_o[3] &= (owned[found] && owner[found] == work
          && {dut.u_control.opened_turn_q, dut.u_control.opened_base_q} == {opened_turn[found], opened_base[found]});
      if (state == WalkContext || state == WalkGive) begin
        good_o[3] &= (dut.u_control.index_q < Ring);
        for (int unsigned s = 0; s < Ring; s++) if (s >= walked) good_o[3] &= (dut.u_control.held_q[s - walked]
            == begun[found][s]);
      end
      if (state == WalkGive) good_o[3] &= (dut.u_control.held_q[0]
          && dut.u_unit.look_line_o == dut.u_unit.u_contexts.u_look.mem[{found, walked}]);
      if (state == Set || state == Nudge || state == Await || state == GiveTail) begin
        if (state != Await || is_stop) for (int unsigned c = 0; c < NumContexts; c++) good_o[3] &= (!(owned[c]
            && owner[c] == work));
        if (state != Await || is_stop) good_o[3] &= (started[work] && !active[work]);
      end
      if (state == Nudge || (state == Await && is_stop) || state == GiveTail) begin
        good_o[3] &= (dut.u_control.u_queue.mem[work][QueueBits-2]);
      end
      if (state == GiveTail) good_o[3] &= (is_stop);
      if (state == GiveTail) good_o[3] &= ((dut.u_control.tail_q == name_i) == (where_q == Read && whose_q == work));
      if (state == GiveTail && where_q == Read && whose_q == work) good_o[3] &= (is_last_q);
      good_o[3] &= (where_q <= Read);
      if (state == Idle || state == Settle || state == Sweep) good_o[3] &= (!is_stop);
      if (where_q == Tail) good_o[3] &= (state == StartGo && dut.u_control.tail_q == name_i);
      if (state == StartGo && dut.u_control.tail_q == name_i) good_o[3] &= (where_q == Tail);
      if (where_q != Free && where_q != Tail) good_o[3] &= (started[whose_q]);
    end
  end

endmodule

`default_nettype wire

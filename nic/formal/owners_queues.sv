// Invariants of owners_proof.sv: tables of queues and contexts (0), pieces in the pipeline (1, 2), control (3).

`default_nettype none

module owners_queues import owners_pkg::*; (
  input logic [PtrW-1:0]        name_i,
  input logic                   is_run_i,
  input logic [NumContexts-1:0] busy_i,
  input where_e                 where_i,
  input logic [QueueW-1:0]      whose_i,
  input logic                   is_last_i,
  input view_t                  at_i,
  // Each group holds.
  output logic [3:0]            good_o
);

  view_t at;
  assign at = at_i;

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
        if (t > s && at.in_fast[t] && at.queue[t] == at.queue[s]) ahead_fast[s] = ahead_fast[s] + 1'b1;
      end
      for (int q = 0; q < int'(NumQueues); q++) begin
        if (at.in_fast[s] && at.queue[s] == QueueW'(q)) all_fast[q] = all_fast[q] + 1'b1;
      end
    end
    for (int q = 0; q < int'(NumQueues); q++) begin
      counts_right[q] = at.is_alive[q] || (at.valid[5] && at.queue[5] == QueueW'(q) && dut.u_unit.u_commit.alive5);
    end
  end
  assign walks = at.state == WalkContext || at.state == WalkGive || at.state == EndContext;
  assign be1      = dut.u_unit.is_second_q ? dut.u_unit.second_be_q : dut.u_unit.first_be_q;
  assign be_aside = dut.u_unit.is_second_q ? dut.u_unit.first_be_q : dut.u_unit.second_be_q;
  assign empties  = at.state == FindContext || at.state == LookContext || walks || at.state == Set
      || at.state == Nudge
                    || at.state == StartLook || at.state == StartGo || at.state == Sweep;

  // Tables.
  always_comb begin
    good_o[0] = 1'b1;
    if (is_run_i) begin
      for (int unsigned q = 0; q < NumQueues; q++) begin
        if (at.state != Sweep || dut.u_control.index_q > q) begin
          good_o[0] &= (dut.u_unit.u_arrival.u_active.mem[q] == at.active[q]);
          if (!dut.u_control.u_queue.mem[q][QueueBits-1]) good_o[0] &= (!at.active[q]);
          if (at.state == Sweep) good_o[0] &= (!dut.u_control.u_queue.mem[q][QueueBits-1]);
        end
        if (at.started[q]) begin
          good_o[0] &= (at.front[q] == at.com_front[q]
              && dut.u_control.u_frontier.mem[q] == {at.com_turn[q], at.com_front[q]});
          good_o[0] &= (dut.u_unit.u_arrival.mark_context[q] == at.own_name[q]);
          if (!at.is_in[q]) good_o[0] &= (at.com_turn[q] != at.own_ret_turn[q]);
          if (counts_right[q] && !at.is_com[q]) good_o[0] &= (at.base[q] == at.front[q] + PosW'(all_fast[q]));
          if (at.active[q] && at.is_in[q]) begin
            good_o[0] &= ((at.owned[at.own_name[q]] && at.owner[at.own_name[q]] == QueueW'(q))
                    || (at.in_ctx[2] && at.fresh[2] && at.queue[2] == QueueW'(q) && at.ctx[2] == at.own_name[q]));
          end
          // One that failed and was seen to holds nothing that is not the reader's.
          if (dut.u_control.u_queue.mem[q][QueueBits-2]) begin
            good_o[0] &= (!at.active[q]);
            for (int c = 0; c < int'(NumContexts); c++) good_o[0] &= (!(at.owned[c] && at.owner[c] == QueueW'(q)));
            for (int s = 2; s <= 6; s++) good_o[0] &= (!(at.valid[s] && at.placed[s] && at.queue[s] == QueueW'(q)));
          end
        end
      end
      for (int unsigned c = 0; c < NumContexts; c++) begin
        if (at.owned[c]) begin
          good_o[0] &= (at.state != Sweep && at.started[at.owner[c]] && busy_i[c]);
          good_o[0] &= (at.is_in[at.owner[c]] && at.own_name[at.owner[c]] == ContextW'(c));
          good_o[0] &= (at.opened_turn[c] == at.own_turn[at.owner[c]]
              && at.opened_base[c] == at.own_front[at.owner[c]]);
          good_o[0] &= (at.from[c] == at.base[at.owner[c]]);
        end
        if (dut.u_unit.u_arrival.have_q[0] && dut.u_unit.u_arrival.name_q[0] == ContextW'(c)) begin
          good_o[0] &= (busy_i[c] && !at.owned[c]);
        end
        if (dut.u_unit.u_arrival.have_q[1] && dut.u_unit.u_arrival.name_q[1] == ContextW'(c)) begin
          good_o[0] &= (busy_i[c] && !at.owned[c]);
        end
      end
      good_o[0] &= (!dut.u_unit.u_arrival.have_q[1] || dut.u_unit.u_arrival.have_q[0]);
      if (dut.u_unit.u_arrival.have_q == '1) begin
        good_o[0] &= (dut.u_unit.u_arrival.name_q[0] != dut.u_unit.u_arrival.name_q[1]);
      end
      if (at.in_ctx[2] && at.fresh[2]) good_o[0] &= (dut.u_unit.u_arrival.have_q[0]
          && dut.u_unit.u_arrival.name_q[0] == at.ctx[2]);
      if (at.fresh[2]) good_o[0] &= (at.placed[2] && !at.fast[2]);
    end
  end

  // Pieces in the pipeline.
  always_comb begin
    good_o[1] = 1'b1;
    if (is_run_i) begin
      for (int s = 2; s <= 6; s++) begin
        if (at.valid[s] && at.placed[s]) begin
          good_o[1] &= (at.started[at.queue[s]]);
          if (s < 6 || !at.fast[s]) good_o[1] &= (at.turn[s] == at.own_ret_turn[at.queue[s]]
              && !at.is_ret[at.queue[s]]);
        end
        if (at.in_ctx[s]) begin
          good_o[1] &= (at.is_in[at.queue[s]] && at.own_name[at.queue[s]] == at.ctx[s]);
          if (s > 2 || !at.fresh[s]) good_o[1] &= (at.owned[at.ctx[s]] && at.owner[at.ctx[s]] == at.queue[s]);
          for (int t = 2; t < s; t++) good_o[1] &= (!(at.in_fast[t] && at.queue[t] == at.queue[s]));
          for (int t = 2; t < s; t++) good_o[1] &= (!(at.in_ctx[t] && at.fresh[t] && at.queue[t] == at.queue[s]));
        end
        if (at.in_fast[s] && s < 6) good_o[1] &= (!at.is_com[at.queue[s]]);
        if (s > 2 && (at.in_fast[s] || (at.in_ctx[s] && at.fresh[s]))) good_o[1] &= (at.took[s]);
        if (at.in_fast[s] && s < 6 && counts_right[at.queue[s]]) begin
          good_o[1] &= (at.pos[s] == at.front[at.queue[s]] + PosW'(ahead_fast[s]));
        end
      end
      for (int s = 2; s <= 5; s++) if (at.in_ctx[s]) for (int t = s + 1; t <= 5; t++) begin
        // In a context that has moved its frontier, or will: whole lines in front of it have gone their way.
        if (at.in_ctx[t] && at.queue[t] == at.queue[s]) good_o[1] &= (at.ctx[t] == at.ctx[s]);
      end
      good_o[1] &= (!(at.valid[2] && at.placed[2] && dut.u_unit.dropped2));
      good_o[1] &= (!(at.valid[3] && at.placed[3] && dut.u_unit.piece3_q.dropped));
      good_o[1] &= (!(at.valid[4] && at.placed[4] && dut.u_unit.piece4_q.dropped));
      // A context that was just taken.
      if (at.in_ctx[2] && at.fresh[2]) begin
        good_o[1] &= (!at.owned[at.ctx[2]] && !at.is_com[at.queue[2]]);
        good_o[1] &= (dut.u_unit.base2 == at.own_front[at.queue[2]]);
      end
    end
  end

  always_comb begin
    good_o[2] = 1'b1;
    if (is_run_i) begin
      // Where a piece lies, from the frontier that it saw; and how far that has moved since.
      for (int s = 2; s <= 5; s++) begin
        if (at.in_ctx[s]) begin
          good_o[2] &= (PosW'(at.pos[s] - at.seen[s]) < PosW'(Ring));
          good_o[2] &= (PosW'(at.base[at.queue[s]] - at.seen[s]) <= PosW'(Ring));
        end
      end
      if (at.in_ctx[2]) begin
        good_o[2] &= (dut.u_unit.u_contexts.slot2_q == at.pos[2][RingW-1:0]);
      end
      if (at.in_ctx[2] && !at.fresh[2]) begin
        for (int unsigned s = 0; s < Ring; s++) begin
          if (PosW'(at.place[at.ctx[2]][s] - dut.u_unit.base2) >= PosW'(Ring)) good_o[2] &= (!at.begun[at.ctx[2]][s]);
        end
        good_o[2] &= (dut.u_unit.u_contexts.mark2_q == at.marks[at.ctx[2]][at.pos[2][RingW-1:0]]);
        good_o[2] &= (dut.u_unit.u_contexts.bytes_here
            == dut.u_unit.u_contexts.u_bytes.mem[{at.ctx[2], at.pos[2][RingW-1:0]}]);
        good_o[2] &= (dut.u_unit.u_contexts.line_here
            == dut.u_unit.u_contexts.u_here.mem[{at.ctx[2], at.pos[2][RingW-1:0]}]);
        if (PosW'(at.pos[2] - at.base[at.queue[2]]) >= PosW'(Ring))
            good_o[2] &= (dut.u_unit.u_contexts.bytes_here == '1);
      end
      // Stage 1: its tables are read.
      if (dut.u_unit.u_arrival.valid_q && !dut.u_unit.u_arrival.stale_q) begin
        good_o[2] &= (dut.u_unit.u_arrival.own == dut.u_unit.u_arrival.u_own.mem[dut.u_unit.u_arrival.queue_q]);
        good_o[2] &= (dut.u_unit.u_arrival.returned
            == dut.u_unit.u_arrival.u_returned.mem[dut.u_unit.u_arrival.queue_q]);
        good_o[2] &= (dut.u_unit.u_arrival.committed
            == dut.u_unit.u_arrival.u_committed.mem[dut.u_unit.u_arrival.queue_q]);
        good_o[2] &= (dut.u_unit.u_arrival.active == dut.u_unit.u_arrival.u_active.mem[dut.u_unit.u_arrival.queue_q]);
        good_o[2] &= (at.state == Sweep || !dut.u_unit.u_arrival.active || !dut.u_unit.u_arrival.in_context
                || dut.u_unit.u_arrival.mark_context_o == dut.u_unit.u_arrival.own.context_name
                || (at.in_ctx[2] && at.fresh[2] && at.queue[2] == dut.u_unit.u_arrival.queue_q));
        if (dut.u_unit.u_arrival.active && at.state != Sweep) good_o[2] &= (at.started[dut.u_unit.u_arrival.queue_q]);
      end
      good_o[2] &= (dut.u_unit.u_arrival.valid_q || (!dut.u_unit.u_arrival.stale_q && !dut.u_unit.u_arrival.aside_q));
      if (dut.u_unit.u_arrival.valid_q) good_o[2] &= (be1 != '0 && dut.u_unit.u_arrival.whole_q == (be1 == '1));
      if (dut.u_unit.u_arrival.aside_q) good_o[2] &= (be_aside != '0
          && dut.u_unit.u_arrival.aside_whole_q == (be_aside == '1));
      if (at.valid[2]) good_o[2] &= (dut.u_unit.be2_q != '0 && (!at.in_fast[2] || dut.u_unit.be2_q == '1));
      if (at.valid[4]) good_o[2] &= (dut.u_unit.u_commit.active4 == at.active[at.queue[4]]
          && dut.u_unit.u_commit.frontier4 == at.front[at.queue[4]]);
      if (at.valid[5] && at.placed[5] && at.is_alive[at.queue[5]]) good_o[2] &= (dut.u_unit.u_commit.alive5);
      if (at.valid[5]) begin
        good_o[2] &= (dut.u_unit.u_commit.frontier5_q == at.front[at.queue[5]]);
        good_o[2] &= (dut.u_unit.u_commit.ahead5_q == (RingW + 2)'(at.pos[5] - at.front[at.queue[5]]));
        good_o[2] &= (dut.u_unit.u_commit.pos5_q == at.pos[5][RingW:0]);
      end
    end
  end

  // Control.
  always_comb begin
    good_o[3] = 1'b1;
    if (is_run_i) begin
      if (empties) good_o[3] &= (at.valid == '0);
      if (empties && at.state != StartLook && at.state != StartGo) good_o[3] &= (!dut.u_unit.failed_valid_o);
      if (at.state == Quiesce) begin
        if (at.wait_count >= 4'd1) good_o[3] &= (!at.valid[2]
            && dut.u_control.queue_rd == dut.u_control.u_queue.mem[at.work]);
        if (at.wait_count >= 4'd2) good_o[3] &= (!at.valid[3]);
        if (at.wait_count >= 4'd3) good_o[3] &= (!at.valid[4]);
        if (at.wait_count >= 4'd4) good_o[3] &= (!at.valid[5]);
        if (at.wait_count >= 4'd5) good_o[3] &= (!at.valid[6]);
        if (at.wait_count >= 4'd6) good_o[3] &= (!dut.u_unit.failed_valid_o);
        if (at.wait_count >= 4'd7) good_o[3] &= (!at.active[at.work]);
        if (at.wait_count >= 4'd2) good_o[3] &= (at.started[at.work] && (at.is_stop
            || !dut.u_control.job_q[QueueBits-2]));
        if (at.wait_count >= 4'd2) good_o[3] &= (dut.u_control.job_q == dut.u_control.u_queue.mem[at.work]);
        good_o[3] &= (at.wait_count <= 4'd10);
      end
      if (at.state == StartHold) begin
        if (at.wait_count >= 4'd1) good_o[3] &= (!at.valid[2]);
        if (at.wait_count >= 4'd2) good_o[3] &= (!at.valid[3]);
        if (at.wait_count >= 4'd3) good_o[3] &= (!at.valid[4]);
        if (at.wait_count >= 4'd4) good_o[3] &= (!at.valid[5]);
        if (at.wait_count >= 4'd5) good_o[3] &= (!at.valid[6]);
        if (at.wait_count >= 4'd6) good_o[3] &= (!dut.u_unit.failed_valid_o);
      end
      if (at.state == StartLook || at.state == StartGo) good_o[3] &= (!dut.u_unit.failed_valid_o);
      if (at.state == StartHold || at.state == StartLook || at.state == StartGo) good_o[3] &= (!at.started[at.work]
          && !at.is_stop
          && dut.u_control.wanted_q[QueueBits-1] && !dut.u_control.wanted_q[QueueBits-2]);
      if (dut.u_control.wants_start_q) good_o[3] &= (!at.started[dut.u_control.start_queue_q]
          && !dut.u_control.wants_stop_q && !at.is_stop
                                               && dut.u_control.wanted_q[QueueBits-1]
                                                   && !dut.u_control.wanted_q[QueueBits-2]);
      if (at.state == StartHold || at.state == StartLook || at.state == StartGo || at.is_stop
          || at.state == Sweep) begin
        good_o[3] &= (!dut.u_control.wants_start_q && !dut.u_control.wants_stop_q);
      end
      if (at.state == StartGo) good_o[3] &= (dut.u_control.job_q == dut.u_control.wanted_q);
      if (at.state == FindContext || at.state == LookContext || walks || at.state == Set) begin
        good_o[3] &= (at.started[at.work] && !at.active[at.work]);
        good_o[3] &= (dut.u_control.job_q == dut.u_control.u_queue.mem[at.work]);
        good_o[3] &= (dut.u_control.frontier == dut.u_control.u_frontier.mem[at.work][PosW-1:0]
                && dut.u_control.frontier_turn == dut.u_control.u_frontier.mem[at.work][PosW]);
      end
      if (at.state == FindContext) begin
        good_o[3] &= (dut.u_control.index_q <= NumContexts);
        if (dut.u_control.index_q != '0) begin
          good_o[3] &= (dut.u_control.asked_q == ContextW'(dut.u_control.index_q - 1'b1));
          good_o[3] &= (dut.u_control.is_owned == (at.owned[dut.u_control.asked_q]
              && at.owner[dut.u_control.asked_q] == at.work));
        end
        for (int unsigned c = 0; c < NumContexts; c++) if (c + 1 < dut.u_control.index_q) begin
          good_o[3] &= (!(at.owned[c] && at.owner[c] == at.work));
        end
      end
      if (at.state == LookContext || walks) good_o[3] &= (at.owned[at.found] && at.owner[at.found] == at.work
          && {dut.u_control.opened_turn_q, dut.u_control.opened_base_q} == {at.opened_turn[at.found],
              at.opened_base[at.found]});
      if (at.state == WalkContext || at.state == WalkGive) begin
        good_o[3] &= (dut.u_control.index_q < Ring);
        for (int unsigned s = 0; s < Ring; s++) if (s >= at.walked) good_o[3] &= (dut.u_control.held_q[s - at.walked]
            == at.begun[at.found][s]);
      end
      if (at.state == WalkGive) good_o[3] &= (dut.u_control.held_q[0]
          && dut.u_unit.look_line_o == dut.u_unit.u_contexts.u_look.mem[{at.found, at.walked}]);
      if (at.state == Set || at.state == Nudge || at.state == Await || at.state == GiveTail) begin
        if (at.state != Await || at.is_stop) for (int unsigned c = 0; c < NumContexts; c++)
            good_o[3] &= (!(at.owned[c]
            && at.owner[c] == at.work));
        if (at.state != Await || at.is_stop) good_o[3] &= (at.started[at.work] && !at.active[at.work]);
      end
      if (at.state == Nudge || (at.state == Await && at.is_stop) || at.state == GiveTail) begin
        good_o[3] &= (dut.u_control.u_queue.mem[at.work][QueueBits-2]);
      end
      if (at.state == GiveTail) good_o[3] &= (at.is_stop);
      if (at.state == GiveTail) good_o[3] &= ((dut.u_control.tail_q == name_i) == (where_i == Read
          && whose_i == at.work));
      if (at.state == GiveTail && where_i == Read && whose_i == at.work) good_o[3] &= (is_last_i);
      good_o[3] &= (where_i <= Read);
      if (at.state == Idle || at.state == Settle || at.state == Sweep) good_o[3] &= (!at.is_stop);
      if (where_i == Tail) good_o[3] &= (at.state == StartGo && dut.u_control.tail_q == name_i);
      if (at.state == StartGo && dut.u_control.tail_q == name_i) good_o[3] &= (where_i == Tail);
      if (where_i != Free && where_i != Tail) good_o[3] &= (at.started[whose_i]);
    end
  end

endmodule

`default_nettype wire

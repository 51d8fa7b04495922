// Invariants of owners_proof.sv: lines of contexts (0), what a piece found there (1), where the frontier goes (2), and
// where the followed line is (3).

`default_nettype none

module owners_lines import owners_pkg::*; (
  input logic [PtrW-1:0]        name_i,
  input logic                   is_run_i,
  input where_e                 where_i,
  input logic [QueueW-1:0]      whose_i,
  input logic [PosW-1:0]        where_pos_i,
  input logic [ContextW-1:0]    where_ctx_i,
  input logic                   store_valid_i,
  input logic [PosW-1:0]        target_i,
  input view_t                  at_i,
  // Each group holds.
  output logic [3:0]            good_o
);

  view_t at;
  assign at = at_i;

  logic walks;
  assign walks = at.state == WalkContext || at.state == WalkGive || at.state == EndContext;

  // The lines of contexts.
  logic [3:0] count [NumContexts];
  logic [3:0] held [NumContexts];
  logic signed [RingW+1:0] net6;
  assign net6 = dut.u_unit.u_commit.net6_q;
  always_comb begin
    for (int c = 0; c < int'(NumContexts); c++) begin
      count[c] = '0;
      for (int s = 0; s < int'(Ring); s++) count[c] = count[c] + 4'(at.begun[c][s]);
      held[c] = at.is_fresh[c] ? '0 : 4'(dut.u_unit.u_commit.held[c]);
      for (int s = 3; s <= 5; s++) held[c] = held[c] + 4'(at.in_ctx[s] && at.took[s] && at.ctx[s] == ContextW'(c));
      if (at.in_ctx[6] && at.ctx[6] == ContextW'(c)) held[c] = held[c] - 4'(net6);
    end
  end
  always_comb begin
    good_o[0] = 1'b1;
    if (is_run_i) begin
      for (int unsigned c = 0; c < NumContexts; c++) begin
        if (at.owned[c] && !(walks && at.found == ContextW'(c))) good_o[0] &= (count[c] == held[c]);
        for (int unsigned s = 0; s < Ring; s++) begin
          if (at.owned[c] && at.begun[c][s] && at.is_followed[c][s] && !(walks && at.found == ContextW'(c)
              && (s < at.walked
              || at.state == EndContext))) begin
            good_o[0] &= (where_i == Held && where_ctx_i == ContextW'(c) && where_pos_i == at.place[c][s]
                && whose_i == at.owner[c]);
          end
          if (at.owned[c] && at.is_done[c][s]) good_o[0] &= (at.begun[c][s] && at.is_full[c][s]);
          if (at.owned[c] && at.begun[c][s]) good_o[0] &= (dut.u_unit.u_contexts.u_look.mem[c * Ring + s]
              == dut.u_unit.u_contexts.u_here.mem[c * Ring + s]);
        end
      end
    end
  end

  always_comb begin
    good_o[1] = 1'b1;
    if (is_run_i) begin
      if (where_i == Held) begin
        good_o[1] &= (at.owned[where_ctx_i] && at.owner[where_ctx_i] == whose_i);
        good_o[1] &= (where_pos_i == at.place[where_ctx_i][where_pos_i[RingW-1:0]]);
        good_o[1] &= (at.begun[where_ctx_i][where_pos_i[RingW-1:0]]
            && at.is_followed[where_ctx_i][where_pos_i[RingW-1:0]]);
        if (walks && at.found == where_ctx_i) good_o[1] &= (where_pos_i[RingW-1:0] >= at.walked
            && at.state != EndContext);
      end
      // Stage 3 and 4: what a piece found, and where the frontier would go.
      if (at.in_ctx[3]) begin
        good_o[1] &= (dut.u_unit.u_contexts.merged3_q
            == dut.u_unit.u_contexts.u_bytes.mem[{at.ctx[3], at.pos[3][RingW-1:0]}]);
        good_o[1] &= (dut.u_unit.u_contexts.lap3_q == at.pos[3][RingW]
            && dut.u_unit.u_contexts.slot3_q == at.pos[3][RingW-1:0]);
        for (int i = 0; i < 16; i++) good_o[1] &= (dut.u_unit.u_contexts.full3_q[i]
            == (dut.u_unit.u_contexts.merged3_q[4*i +: 4] == '1));
        if (at.done[at.ctx[3]][at.pos[3][RingW-1:0]] == at.pos[3][RingW])
            good_o[1] &= (dut.u_unit.u_contexts.twice3_q != '0);
        if (PosW'(at.pos[3] - at.from[at.ctx[3]]) < PosW'(Ring))
            good_o[1] &= (at.begun[at.ctx[3]][at.pos[3][RingW-1:0]]);
        if (at.took[3]) good_o[1] &= (dut.u_unit.u_contexts.twice3_q == '0);
      end
      good_o[1] &= (dut.u_unit.u_contexts.valid3_q == at.valid[3]);
      if (at.valid[3]) begin
        good_o[1] &= (dut.u_unit.u_contexts.place3_q == at.placed[3] && dut.u_unit.u_contexts.fast3_q == at.fast[3]);
        good_o[1] &= (dut.u_unit.u_contexts.fresh3_q == at.fresh[3] && dut.u_unit.u_contexts.context3_q == at.ctx[3]
            && dut.u_unit.u_contexts.pos3_q == at.pos[3]);
      end
    end
  end

  always_comb begin
    good_o[2] = 1'b1;
    if (is_run_i) begin
      for (int t = 4; t <= 5; t++) begin
        if (at.in_ctx[t] && (t == 4 ? dut.u_unit.complete4 : dut.u_unit.u_commit.complete5_q)) begin
          good_o[2] &= (PosW'((t == 4 ? dut.u_unit.target4 : target_i) - at.pos[t] - 1'b1) < PosW'(Ring));
          for (int unsigned j = 0; j < Ring; j++) begin
            if (PosW'(j) < PosW'((t == 4 ? dut.u_unit.target4 : target_i) - at.pos[t])
                && PosW'(at.pos[t] + PosW'(j) - at.from[at.ctx[t]]) < PosW'(Ring)) begin
              good_o[2] &= (at.is_done[at.ctx[t]][RingW'(at.pos[t] + PosW'(j))]);
              for (int s = 2; s < t; s++) if (at.in_ctx[s] && at.ctx[s] == at.ctx[t]) begin
                good_o[2] &= (PosW'(at.pos[t] + PosW'(j) - at.seen[s]) < PosW'(Ring));
              end
            end
          end
        end
      end
      // What a piece brought is not behind the frontier that an earlier one will make.
      if (at.in_ctx[5] && at.in_ctx[4] && at.ctx[5] == at.ctx[4] && dut.u_unit.u_commit.complete5_q
          && !dut.u_unit.clobber4
          && PosW'(at.pos[4] - at.from[at.ctx[4]]) < PosW'(Ring)) begin
        good_o[2] &= (!(PosW'(at.pos[4] - at.pos[5]) < PosW'(target_i - at.pos[5])));
      end
      if (at.valid[4]) good_o[2] &= (!((dut.u_unit.complete4 || at.took[4]) && dut.u_unit.clobber4));
      if (at.valid[5]) good_o[2] &= (!(dut.u_unit.u_commit.complete5_q && dut.u_unit.u_commit.clobber5_q));
      // The next frontier but one.
      if (at.in_ctx[5] && at.in_ctx[4] && at.ctx[5] == at.ctx[4] && dut.u_unit.u_commit.complete5_q
          && dut.u_unit.complete4
          && at.pos[5] == at.from[at.ctx[5]]) begin
        for (int unsigned j = 0; j < Ring; j++) begin
          if (PosW'(j) < PosW'(dut.u_unit.target4 - at.pos[4])
              && PosW'(at.pos[4] + PosW'(j) - target_i) < PosW'(Ring)) begin
            good_o[2] &= (at.done[at.ctx[4]][RingW'(at.pos[4] + PosW'(j))]
                == (PosW'(at.pos[4] + PosW'(j)) >> RingW & 1'b1));
          end
        end
      end
      // A line that a piece took is there, and no other piece took it.
      for (int s = 3; s <= 5; s++) begin
        if (at.in_ctx[s] && at.took[s]) begin
          good_o[2] &= (at.begun[at.ctx[s]][at.pos[s][RingW-1:0]]
              && at.place[at.ctx[s]][at.pos[s][RingW-1:0]] == at.pos[s]);
          for (int t = 3; t < s; t++) good_o[2] &= (!(at.in_ctx[t] && at.took[t] && at.ctx[t] == at.ctx[s]
              && at.pos[t] == at.pos[s]));
        end
      end
    end
  end

  always_comb begin
    good_o[3] = 1'b1;
    if (is_run_i) begin
      if (at.in_fast[4]) good_o[3] &= (dut.u_unit.target4 == at.pos[4] + 1'b1 && dut.u_unit.complete4);
      if (at.in_fast[5]) good_o[3] &= (target_i == at.pos[5] + 1'b1 && dut.u_unit.u_commit.complete5_q);
      if (at.valid[6] && dut.u_unit.u_commit.advance6_q) good_o[3] &= (dut.u_unit.u_commit.passed6_q != '0
          && dut.u_unit.u_commit.passed6_q <= (RingW + 1)'(Ring));
      if (at.in_ctx[6] && dut.u_unit.u_commit.advance6_q) good_o[3] &= (at.com_turn[at.queue[6]] == at.turn[6]
          && at.front[at.queue[6]] == dut.u_unit.u_commit.target6_q);
      good_o[3] &= (dut.u_unit.u_commit.live6_q == (at.valid[6] && dut.u_unit.u_commit.alive6_q));
      if (at.valid[6]) good_o[3] &= (!dut.u_unit.u_commit.advance6_q || (at.placed[6]
          && dut.u_unit.u_commit.complete6_q));
      // Where the followed line stands in the pipeline.
      for (int s = 3; s <= 6; s++) begin
        if (at.in_fast[s] && at.line[s] == name_i && !(s == 6 && dut.u_unit.u_commit.advance6_q)) begin
          good_o[3] &= (where_i == Fast && whose_i == at.queue[s] && where_pos_i == at.pos[s]);
          for (int t = 3; t < s; t++) good_o[3] &= (!(at.in_fast[t] && at.line[t] == name_i));
        end
      end
      if (where_i == Fast) good_o[3] &= ((at.in_fast[3] && at.line[3] == name_i) || (at.in_fast[4]
          && at.line[4] == name_i)
          || (at.in_fast[5] && at.line[5] == name_i)
                                   || (at.in_fast[6] && at.line[6] == name_i && !dut.u_unit.u_commit.advance6_q));
      if (at.in_ctx[3] && at.line[3] == name_i && dut.u_unit.u_contexts.twice3_q == '0) begin
        good_o[3] &= (where_i == Held && whose_i == at.queue[3] && where_pos_i == at.pos[3]);
      end
      if (store_valid_i) good_o[3] &= (at.valid[4] && at.placed[4]);
    end
  end

endmodule

`default_nettype wire

// Invariants of owners_proof.sv: lines of contexts (0), what a piece found there (1), where the frontier goes (2), and
// where the followed line is (3).

`default_nettype none

module owners_lines import owners_pkg::*; #(
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

  logic walks;
  assign walks = state == WalkContext || state == WalkGive || state == EndContext;

  // The lines of contexts.
  logic [3:0] count [NumContexts];
  logic [3:0] held [NumContexts];
  logic signed [RingW+1:0] net6;
  assign net6 = dut.u_unit.u_commit.net6_q;
  always_comb begin
    for (int c = 0; c < int'(NumContexts); c++) begin
      count[c] = '0;
      for (int s = 0; s < int'(Ring); s++) count[c] = count[c] + 4'(begun[c][s]);
      held[c] = is_fresh[c] ? '0 : 4'(dut.u_unit.u_commit.held[c]);
      for (int s = 3; s <= 5; s++) held[c] = held[c] + 4'(in_ctx[s] && took[s] && ctx[s] == ContextW'(c));
      if (in_ctx[6] && ctx[6] == ContextW'(c)) held[c] = held[c] - 4'(net6);
    end
  end
  always_comb begin
    good_o[0] = 1'b1;
    if (is_run) begin
      for (int unsigned c = 0; c < NumContexts; c++) begin
        if (owned[c] && !(walks && found == ContextW'(c))) good_o[0] &= (count[c] == held[c]);
        for (int unsigned s = 0; s < Ring; s++) begin
          if (owned[c] && begun[c][s] && is_followed[c][s] && !(walks && found == ContextW'(c) && (s < walked
              || state == EndContext))) begin
            good_o[0] &= (where_q == Held && where_ctx_q == ContextW'(c) && where_pos_q == place[c][s]
                && whose_q == owner[c]);
          end
          if (owned[c] && is_done[c][s]) good_o[0] &= (begun[c][s] && is_full[c][s]);
          if (owned[c] && begun[c][s]) good_o[0] &= (dut.u_unit.u_contexts.u_look.mem[c * Ring + s]
              == dut.u_unit.u_contexts.u_here.mem[c * Ring + s]);
        end
      end
    end
  end

  always_comb begin
    good_o[1] = 1'b1;
    if (is_run) begin
      if (where_q == Held) begin
        good_o[1] &= (owned[where_ctx_q] && owner[where_ctx_q] == whose_q);
        good_o[1] &= (where_pos_q == place[where_ctx_q][where_pos_q[RingW-1:0]]);
        good_o[1] &= (begun[where_ctx_q][where_pos_q[RingW-1:0]] && is_followed[where_ctx_q][where_pos_q[RingW-1:0]]);
        if (walks && found == where_ctx_q) good_o[1] &= (where_pos_q[RingW-1:0] >= walked && state != EndContext);
      end
      // Stage 3 and 4: what a piece found, and where the frontier would go.
      if (in_ctx[3]) begin
        good_o[1] &= (dut.u_unit.u_contexts.merged3_q
            == dut.u_unit.u_contexts.u_bytes.mem[{ctx[3], pos[3][RingW-1:0]}]);
        good_o[1] &= (dut.u_unit.u_contexts.lap3_q == pos[3][RingW]
            && dut.u_unit.u_contexts.slot3_q == pos[3][RingW-1:0]);
        for (int i = 0; i < 16; i++) good_o[1] &= (dut.u_unit.u_contexts.full3_q[i]
            == (dut.u_unit.u_contexts.merged3_q[4*i +: 4] == '1));
        if (done[ctx[3]][pos[3][RingW-1:0]] == pos[3][RingW]) good_o[1] &= (dut.u_unit.u_contexts.twice3_q != '0);
        if (PosW'(pos[3] - from[ctx[3]]) < PosW'(Ring)) good_o[1] &= (begun[ctx[3]][pos[3][RingW-1:0]]);
        if (took[3]) good_o[1] &= (dut.u_unit.u_contexts.twice3_q == '0);
      end
      good_o[1] &= (dut.u_unit.u_contexts.valid3_q == valid[3]);
      if (valid[3]) begin
        good_o[1] &= (dut.u_unit.u_contexts.place3_q == placed[3] && dut.u_unit.u_contexts.fast3_q == fast[3]);
        good_o[1] &= (dut.u_unit.u_contexts.fresh3_q == fresh[3] && dut.u_unit.u_contexts.context3_q == ctx[3]
            && dut.u_unit.u_contexts.pos3_q == pos[3]);
      end
    end
  end

  always_comb begin
    good_o[2] = 1'b1;
    if (is_run) begin
      for (int t = 4; t <= 5; t++) begin
        if (in_ctx[t] && (t == 4 ? dut.u_unit.complete4 : dut.u_unit.u_commit.complete5_q)) begin
          good_o[2] &= (PosW'((t == 4 ? dut.u_unit.target4 : target) - pos[t] - 1'b1) < PosW'(Ring));
          for (int unsigned j = 0; j < Ring; j++) begin
            if (PosW'(j) < PosW'((t == 4 ? dut.u_unit.target4 : target) - pos[t])
                && PosW'(pos[t] + PosW'(j) - from[ctx[t]]) < PosW'(Ring)) begin
              good_o[2] &= (is_done[ctx[t]][RingW'(pos[t] + PosW'(j))]);
              for (int s = 2; s < t; s++) if (in_ctx[s] && ctx[s] == ctx[t]) begin
                good_o[2] &= (PosW'(pos[t] + PosW'(j) - seen[s]) < PosW'(Ring));
              end
            end
          end
        end
      end
      // What a piece brought is not behind the frontier that an earlier one will make.
      if (in_ctx[5] && in_ctx[4] && ctx[5] == ctx[4] && dut.u_unit.u_commit.complete5_q && !dut.u_unit.clobber4
          && PosW'(pos[4] - from[ctx[4]]) < PosW'(Ring)) begin
        good_o[2] &= (!(PosW'(pos[4] - pos[5]) < PosW'(target - pos[5])));
      end
      if (valid[4]) good_o[2] &= (!((dut.u_unit.complete4 || took[4]) && dut.u_unit.clobber4));
      if (valid[5]) good_o[2] &= (!(dut.u_unit.u_commit.complete5_q && dut.u_unit.u_commit.clobber5_q));
      // The next frontier but one.
      if (in_ctx[5] && in_ctx[4] && ctx[5] == ctx[4] && dut.u_unit.u_commit.complete5_q && dut.u_unit.complete4
          && pos[5] == from[ctx[5]]) begin
        for (int unsigned j = 0; j < Ring; j++) begin
          if (PosW'(j) < PosW'(dut.u_unit.target4 - pos[4]) && PosW'(pos[4] + PosW'(j) - target) < PosW'(Ring)) begin
            good_o[2] &= (done[ctx[4]][RingW'(pos[4] + PosW'(j))] == (PosW'(pos[4] + PosW'(j)) >> RingW & 1'b1));
          end
        end
      end
      // A line that a piece took is there, and no other piece took it.
      for (int s = 3; s <= 5; s++) begin
        if (in_ctx[s] && took[s]) begin
          good_o[2] &= (begun[ctx[s]][pos[s][RingW-1:0]] && place[ctx[s]][pos[s][RingW-1:0]] == pos[s]);
          for (int t = 3; t < s; t++) good_o[2] &= (!(in_ctx[t] && took[t] && ctx[t] == ctx[s] && pos[t] == pos[s]));
        end
      end
    end
  end

  always_comb begin
    good_o[3] = 1'b1;
    if (is_run) begin
      if (in_fast[4]) good_o[3] &= (dut.u_unit.target4 == pos[4] + 1'b1 && dut.u_unit.complete4);
      if (in_fast[5]) good_o[3] &= (target == pos[5] + 1'b1 && dut.u_unit.u_commit.complete5_q);
      if (valid[6] && dut.u_unit.u_commit.advance6_q) good_o[3] &= (dut.u_unit.u_commit.passed6_q != '0
          && dut.u_unit.u_commit.passed6_q <= (RingW + 1)'(Ring));
      if (in_ctx[6] && dut.u_unit.u_commit.advance6_q) good_o[3] &= (com_turn[queue[6]] == turn[6]
          && front[queue[6]] == dut.u_unit.u_commit.target6_q);
      good_o[3] &= (dut.u_unit.u_commit.live6_q == (valid[6] && dut.u_unit.u_commit.alive6_q));
      if (valid[6]) good_o[3] &= (!dut.u_unit.u_commit.advance6_q || (placed[6] && dut.u_unit.u_commit.complete6_q));
      // Where the followed line stands in the pipeline.
      for (int s = 3; s <= 6; s++) begin
        if (in_fast[s] && line[s] == name_i && !(s == 6 && dut.u_unit.u_commit.advance6_q)) begin
          good_o[3] &= (where_q == Fast && whose_q == queue[s] && where_pos_q == pos[s]);
          for (int t = 3; t < s; t++) good_o[3] &= (!(in_fast[t] && line[t] == name_i));
        end
      end
      if (where_q == Fast) good_o[3] &= ((in_fast[3] && line[3] == name_i) || (in_fast[4] && line[4] == name_i)
          || (in_fast[5] && line[5] == name_i)
                                   || (in_fast[6] && line[6] == name_i && !dut.u_unit.u_commit.advance6_q));
      if (in_ctx[3] && line[3] == name_i && dut.u_unit.u_contexts.twice3_q == '0) begin
        good_o[3] &= (where_q == Held && whose_q == queue[3] && where_pos_q == pos[3]);
      end
      if (store_valid) good_o[3] &= (valid[4] && placed[4]);
    end
  end

endmodule

`default_nettype wire

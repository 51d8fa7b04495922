// What owners_proof.sv looks at in the RTL: queues, contexts, their lines by slot, pieces by stage.
//
// `front` is the frontier as `commit` has it, `base` where `arrival` places the next piece of a queue from, `from` where
// control begins to look for a context's lines. Of each context's slots: the position that is in it now, whether it has
// begun, is done, and has all its bytes. `seen` is the base from which the piece of a stage was placed.

`default_nettype none

module owners_view import owners_pkg::*; #(
  parameter int unsigned LineW = 3,
  localparam int unsigned PosW = LineW + 2
) (
  input logic clk_i,
  input logic [PtrW-1:0] name_i,
  output logic [3:0] state,
  output logic [3:0] wait_count,
  output logic [QueueW-1:0] work,
  output logic [ContextW-1:0] found,
  output logic [RingW-1:0] walked,
  output logic is_stop,
  output logic [NumQueues-1:0] started,
  output logic [NumQueues-1:0] active,
  output logic [NumQueues-1:0] is_alive,
  output logic [NumQueues-1:0] own_turn,
  output logic [NumQueues-1:0] own_in,
  output logic [NumQueues-1:0] own_ret_turn,
  output logic [NumQueues-1:0] com_turn,
  output logic [NumQueues-1:0] is_ret,
  output logic [NumQueues-1:0] is_com,
  output logic [NumQueues-1:0] is_in,
  output logic [NumQueues-1:0][PosW-1:0] own_front,
  output logic [NumQueues-1:0][PosW-1:0] ret_front,
  output logic [NumQueues-1:0][PosW-1:0] com_front,
  output logic [NumQueues-1:0][PosW-1:0] front,
  output logic [NumQueues-1:0][PosW-1:0] base,
  output logic [NumQueues-1:0][ContextW-1:0] own_name,
  output logic [NumContexts-1:0] owned,
  output logic [NumContexts-1:0] opened_turn,
  output logic [NumContexts-1:0] is_fresh3,
  output logic [NumContexts-1:0] is_fresh,
  output logic [NumContexts-1:0][QueueW-1:0] owner,
  output logic [NumContexts-1:0][PosW-1:0] opened_base,
  output logic [NumContexts-1:0][PosW-1:0] from,
  output logic [NumContexts-1:0][Ring-1:0] marks,
  output logic [NumContexts-1:0][Ring-1:0] done,
  output logic [NumContexts-1:0][Ring-1:0][PosW-1:0] place,
  output logic [NumContexts-1:0][Ring-1:0] begun,
  output logic [NumContexts-1:0][Ring-1:0] is_done,
  output logic [NumContexts-1:0][Ring-1:0] is_full,
  output logic [NumContexts-1:0][Ring-1:0] is_followed,
  output logic [6:2] valid,
  output logic [6:2] placed,
  output logic [6:2] fast,
  output logic [6:2] fresh,
  output logic [6:2] in_ctx,
  output logic [6:2] in_fast,
  output logic [6:2] turn,
  output logic [6:2] took,
  output logic [6:2][QueueW-1:0] queue,
  output logic [6:2][PosW-1:0] pos,
  output logic [6:2][ContextW-1:0] ctx,
  output logic [6:2][PtrW-1:0] line,
  output logic [5:2][PosW-1:0] seen
);

  logic [PosW-1:0] pos5_q, pos6_q;
  logic [5:3][PosW-1:0] seen_q;

assign state      = dut.u_control.state_q;
  assign wait_count = dut.u_control.wait_q;
  assign work       = dut.u_control.work_q;
  assign found      = dut.u_control.found_q;
  assign walked     = dut.u_control.index_q[RingW-1:0];
  assign is_stop    = dut.u_control.is_stop_q;

  for (genvar q = 0; q < int'(NumQueues); q++) begin : g_queue
    assign started[q]      = dut.u_control.u_queue.mem[q][QueueBits-1] && state != Sweep;
    assign active[q]       = dut.u_unit.u_commit.u_active.mem[q];
    assign {own_turn[q], own_in[q], own_name[q], own_front[q]} = dut.u_unit.u_arrival.u_own.mem[q];
    assign own_ret_turn[q] = dut.u_unit.u_arrival.u_returned.mem[q][PosW+PtrW];
    assign ret_front[q]    = dut.u_unit.u_arrival.u_returned.mem[q][PosW+PtrW-1:PtrW];
    assign {com_turn[q], com_front[q]} = dut.u_unit.u_arrival.u_committed.mem[q];
    assign front[q]        = dut.u_unit.u_commit.u_frontier.mem[q];
    assign is_ret[q]       = own_turn[q] != own_ret_turn[q];
    assign is_com[q]       = !is_ret[q] && own_turn[q] == com_turn[q];
    assign is_in[q]        = !is_ret[q] && own_in[q];
    assign base[q]         = is_ret[q] ? ret_front[q] : (is_com[q] ? com_front[q] : own_front[q]);
    assign is_alive[q]     = active[q] && !(dut.u_unit.failed_valid_o && dut.u_unit.failed_queue_o == QueueW'(q))
                             && !(dut.u_unit.u_commit.fail6 && queue[6] == QueueW'(q));
  end

  for (genvar c = 0; c < int'(NumContexts); c++) begin : g_context
    assign owned[c] = dut.u_control.u_contexts.owned_q[c];
    assign owner[c] = dut.u_control.u_contexts.owner_q[c];
    assign {opened_turn[c], opened_base[c]} = dut.u_control.opened[c];
    assign from[c]  = (opened_turn[c] == com_turn[owner[c]]) ? com_front[owner[c]] : opened_base[c];
    assign marks[c] = dut.u_unit.u_contexts.begun[c];
    assign is_fresh3[c] = in_ctx[3] && fresh[3] && ctx[3] == ContextW'(c);
    assign is_fresh[c]  = is_fresh3[c] || (in_ctx[4] && fresh[4] && ctx[4] == ContextW'(c))
                          || (in_ctx[5] && fresh[5] && ctx[5] == ContextW'(c))
                          || (in_ctx[6] && fresh[6] && ctx[6] == ContextW'(c));
    assign done[c]  = is_fresh3[c] ? dut.u_unit.u_contexts.empty3_q : dut.u_unit.u_contexts.done[c];
    for (genvar s = 0; s < int'(Ring); s++) begin : g_slot
      assign place[c][s]   = from[c] + PosW'(RingW'(RingW'(s) - from[c][RingW-1:0]));
      assign begun[c][s]   = marks[c][s] == place[c][s][RingW];
      assign is_done[c][s] = done[c][s] == place[c][s][RingW];
      assign is_full[c][s] = dut.u_unit.u_contexts.u_bytes.mem[c * int'(Ring) + s] == '1;
      assign is_followed[c][s] = dut.u_unit.u_contexts.u_here.mem[c * int'(Ring) + s] == name_i;
    end
  end

  assign valid  = {dut.u_unit.valid6, dut.u_unit.valid5, dut.u_unit.valid4_q, dut.u_unit.valid3_q, dut.u_unit.valid2};
  assign queue  = {dut.u_unit.queue6, dut.u_unit.queue5, dut.u_unit.piece4_q.queue_index,
                   dut.u_unit.piece3_q.queue_index, dut.u_unit.queue2};
  assign pos    = {pos6_q, pos5_q, dut.u_unit.piece4_q.pos, dut.u_unit.piece3_q.pos, dut.u_unit.pos2};
  assign placed = {dut.u_unit.u_commit.place6_q, dut.u_unit.u_commit.place5_q, dut.u_unit.piece4_q.place,
                   dut.u_unit.piece3_q.place, dut.u_unit.place2};
  assign fast   = {dut.u_unit.u_commit.fast6_q, dut.u_unit.u_commit.fast5_q, dut.u_unit.piece4_q.fast,
                   dut.u_unit.piece3_q.fast, dut.u_unit.fast2};
  assign fresh  = {dut.u_unit.u_commit.fresh6_q, dut.u_unit.u_commit.fresh5_q, dut.u_unit.piece4_q.fresh,
                   dut.u_unit.piece3_q.fresh, dut.u_unit.fresh2};
  assign turn   = {dut.u_unit.u_commit.turn6_q, dut.u_unit.u_commit.turn5_q, dut.u_unit.piece4_q.turn,
                   dut.u_unit.piece3_q.turn, dut.u_unit.turn2};
  assign ctx    = {dut.u_unit.u_commit.context6_q, dut.u_unit.u_commit.context5_q, dut.u_unit.piece4_q.context_name,
                   dut.u_unit.piece3_q.context_name, dut.u_unit.context2};
  assign took   = {dut.u_unit.u_commit.took_line6_q, dut.u_unit.u_commit.took_line5_q, dut.u_unit.took4,
                   dut.u_unit.u_contexts.took3_q, 1'b0};
  assign line   = {dut.u_unit.u_commit.line6_q, dut.u_unit.u_commit.line5_q, dut.u_unit.line4,
                   dut.u_unit.u_contexts.line3_q, PtrW'(0)};
  assign in_ctx  = valid & placed & ~fast;
  assign in_fast = valid & placed & fast;
  assign seen = {seen_q, dut.u_unit.base2};
  always_ff @(posedge clk_i) begin
    {pos6_q, pos5_q} <= {pos5_q, dut.u_unit.piece4_q.pos};
    seen_q           <= {seen_q[4:3], dut.u_unit.base2};
  end

endmodule

`default_nettype wire

// What owners_proof.sv looks at in the RTL: queues, contexts, their lines by slot, pieces by stage.
//
// `front` is the frontier as `commit` has it, `base` where `arrival` places the next piece of a queue from, `from` where
// control begins to look for a context's lines. Of each context's slots: the position that is in it now, whether it has
// begun, is done, and has all its bytes. `seen` is the base from which the piece of a stage was placed.

`default_nettype none

module owners_view import owners_pkg::*; (
  input logic              clk_i,
  input logic [PtrW-1:0]   name_i,
  output view_t            at_o
);

  logic [PosW-1:0] pos5_q, pos6_q;
  logic [5:3][PosW-1:0] seen_q;

  assign at_o.state      = dut.u_control.state_q;
  assign at_o.wait_count = dut.u_control.wait_q;
  assign at_o.work       = dut.u_control.work_q;
  assign at_o.found      = dut.u_control.found_q;
  assign at_o.walked     = dut.u_control.index_q[RingW-1:0];
  assign at_o.is_stop    = dut.u_control.is_stop_q;

  for (genvar q = 0; q < int'(NumQueues); q++) begin : g_queue
    assign at_o.started[q]      = dut.u_control.u_queue.mem[q][QueueBits-1] && at_o.state != Sweep;
    assign at_o.active[q]       = dut.u_unit.u_commit.u_active.mem[q];
    assign {at_o.own_turn[q], at_o.own_in[q], at_o.own_name[q],
        at_o.own_front[q]} = dut.u_unit.u_arrival.u_own.mem[q];
    assign at_o.own_ret_turn[q] = dut.u_unit.u_arrival.u_returned.mem[q][PosW+PtrW];
    assign at_o.ret_front[q]    = dut.u_unit.u_arrival.u_returned.mem[q][PosW+PtrW-1:PtrW];
    assign {at_o.com_turn[q], at_o.com_front[q]} = dut.u_unit.u_arrival.u_committed.mem[q];
    assign at_o.front[q]        = dut.u_unit.u_commit.u_frontier.mem[q];
    assign at_o.is_ret[q]       = at_o.own_turn[q] != at_o.own_ret_turn[q];
    assign at_o.is_com[q]       = !at_o.is_ret[q] && at_o.own_turn[q] == at_o.com_turn[q];
    assign at_o.is_in[q]        = !at_o.is_ret[q] && at_o.own_in[q];
    assign at_o.base[q]         = at_o.is_ret[q] ? at_o.ret_front[q] : (at_o.is_com[q] ? at_o.com_front[q]
        : at_o.own_front[q]);
    assign at_o.is_alive[q]     = at_o.active[q] && !(dut.u_unit.failed_valid_o
        && dut.u_unit.failed_queue_o == QueueW'(q))
                             && !(dut.u_unit.u_commit.fail6 && at_o.queue[6] == QueueW'(q));
  end

  for (genvar c = 0; c < int'(NumContexts); c++) begin : g_context
    assign at_o.owned[c] = dut.u_control.u_contexts.owned_q[c];
    assign at_o.owner[c] = dut.u_control.u_contexts.owner_q[c];
    assign {at_o.opened_turn[c], at_o.opened_base[c]} = dut.u_control.opened[c];
    assign at_o.from[c]  = (at_o.opened_turn[c] == at_o.com_turn[at_o.owner[c]]) ? at_o.com_front[at_o.owner[c]]
        : at_o.opened_base[c];
    assign at_o.marks[c] = dut.u_unit.u_contexts.begun[c];
    assign at_o.is_fresh3[c] = at_o.in_ctx[3] && at_o.fresh[3] && at_o.ctx[3] == ContextW'(c);
    assign at_o.is_fresh[c]  = at_o.is_fresh3[c] || (at_o.in_ctx[4] && at_o.fresh[4] && at_o.ctx[4] == ContextW'(c))
                          || (at_o.in_ctx[5] && at_o.fresh[5] && at_o.ctx[5] == ContextW'(c))
                          || (at_o.in_ctx[6] && at_o.fresh[6] && at_o.ctx[6] == ContextW'(c));
    assign at_o.done[c]  = at_o.is_fresh3[c] ? dut.u_unit.u_contexts.empty3_q : dut.u_unit.u_contexts.done[c];
    for (genvar s = 0; s < int'(Ring); s++) begin : g_slot
      assign at_o.place[c][s]   = at_o.from[c] + PosW'(RingW'(RingW'(s) - at_o.from[c][RingW-1:0]));
      assign at_o.begun[c][s]   = at_o.marks[c][s] == at_o.place[c][s][RingW];
      assign at_o.is_done[c][s] = at_o.done[c][s] == at_o.place[c][s][RingW];
      assign at_o.is_full[c][s] = dut.u_unit.u_contexts.u_bytes.mem[c * int'(Ring) + s] == '1;
      assign at_o.is_followed[c][s] = dut.u_unit.u_contexts.u_here.mem[c * int'(Ring) + s] == name_i;
    end
  end

  assign at_o.valid  = {dut.u_unit.valid6, dut.u_unit.valid5, dut.u_unit.valid4_q, dut.u_unit.valid3_q,
      dut.u_unit.valid2};
  assign at_o.queue  = {dut.u_unit.queue6, dut.u_unit.queue5, dut.u_unit.piece4_q.queue_index,
                   dut.u_unit.piece3_q.queue_index, dut.u_unit.queue2};
  assign at_o.pos    = {pos6_q, pos5_q, dut.u_unit.piece4_q.pos, dut.u_unit.piece3_q.pos, dut.u_unit.pos2};
  assign at_o.placed = {dut.u_unit.u_commit.place6_q, dut.u_unit.u_commit.place5_q, dut.u_unit.piece4_q.place,
                   dut.u_unit.piece3_q.place, dut.u_unit.place2};
  assign at_o.fast   = {dut.u_unit.u_commit.fast6_q, dut.u_unit.u_commit.fast5_q, dut.u_unit.piece4_q.fast,
                   dut.u_unit.piece3_q.fast, dut.u_unit.fast2};
  assign at_o.fresh  = {dut.u_unit.u_commit.fresh6_q, dut.u_unit.u_commit.fresh5_q, dut.u_unit.piece4_q.fresh,
                   dut.u_unit.piece3_q.fresh, dut.u_unit.fresh2};
  assign at_o.turn   = {dut.u_unit.u_commit.turn6_q, dut.u_unit.u_commit.turn5_q, dut.u_unit.piece4_q.turn,
                   dut.u_unit.piece3_q.turn, dut.u_unit.turn2};
  assign at_o.ctx    = {dut.u_unit.u_commit.context6_q, dut.u_unit.u_commit.context5_q,
      dut.u_unit.piece4_q.context_name,
                   dut.u_unit.piece3_q.context_name, dut.u_unit.context2};
  assign at_o.took   = {dut.u_unit.u_commit.took_line6_q, dut.u_unit.u_commit.took_line5_q, dut.u_unit.took4,
                   dut.u_unit.u_contexts.took3_q, 1'b0};
  assign at_o.line   = {dut.u_unit.u_commit.line6_q, dut.u_unit.u_commit.line5_q, dut.u_unit.line4,
                   dut.u_unit.u_contexts.line3_q, PtrW'(0)};
  assign at_o.in_ctx  = at_o.valid & at_o.placed & ~at_o.fast;
  assign at_o.in_fast = at_o.valid & at_o.placed & at_o.fast;
  assign at_o.seen = {seen_q, dut.u_unit.base2};
  always_ff @(posedge clk_i) begin
    {pos6_q, pos5_q} <= {pos5_q, dut.u_unit.piece4_q.pos};
    seen_q           <= {seen_q[4:3], dut.u_unit.base2};
  end

endmodule

`default_nettype wire

// What is proved of nic/rtl/mmio/context_account.sv, for every length of run, by k-induction
// (nic/formal/context_account.sby):
//   - the count is exact: the contexts there are, less those set aside, less those that queues without a reservation
//     have; it neither goes below none nor above all, and what control changed enters it a cycle later;
//   - with what queues with a reservation have of their own, never more contexts are out than there are;
//   - control is told of a context, a cycle after it asked, that the queue has it exactly if it took it last and it
//     was not given back since.
//
// Assumed: the sweep after a reset goes over all contexts before anything else; a context that is taken is not out
// and one that comes back is (free_list_proof.sv, reorder_unit_proof.sv), and by whom it was taken is told when it
// comes back; a queue without a reservation takes one only if a cycle before it was told that it may; a queue with
// one takes no more than were set aside; control sets one aside only if there is one, while no piece moves in that
// cycle and the two behind it, and gives one set aside back only if there is one. All else is free, reset in the
// middle of traffic included.
//
// Proved for 4 contexts, of which any number is there, and 2 queues. Contexts enter by addresses of tables, a queue
// by a comparison for equality; the count by its own arithmetic, whatever its width.

`default_nettype none

module context_account_proof #(
  localparam int unsigned NumQueues = 2,
  localparam int unsigned NumContexts = 4,
  localparam int unsigned QueueW = 1,
  localparam int unsigned ContextW = 2
) (
  input logic                clk_i,
  input logic                rst_ni,
  input logic [15:0]         contexts_i,
  input logic                clear_valid_i,
  input logic [ContextW-1:0] clear_name_i,
  input logic                taken_i,
  input logic [ContextW-1:0] taken_name_i,
  input logic [QueueW-1:0]   taken_queue_i,
  input logic                taken_shared_i,
  input logic                released_i,
  input logic [ContextW-1:0] released_name_i,
  input logic                released_shared_i,
  input logic                reserve_i,
  input logic                unreserve_i,
  input logic                give_i,
  input logic [ContextW-1:0] give_name_i,
  input logic                give_shared_i,
  input logic [ContextW-1:0] look_name_i,
  input logic [QueueW-1:0]   look_queue_i
);

  logic shared, has_none, is_owned;

  context_account #(.NumQueues(NumQueues), .NumContexts(NumContexts)) dut (
    .clk_i, .rst_ni, .contexts_i, .clear_valid_i, .clear_name_i, .taken_i, .taken_name_i, .taken_queue_i,
    .taken_shared_i, .released_i, .released_name_i, .released_shared_i, .shared_o(shared), .reserve_i, .unreserve_i,
    .give_i, .give_name_i, .give_shared_i, .has_none_o(has_none), .look_name_i, .look_queue_i, .is_owned_o(is_owned)
  );

  // Kept beside it: who has which context and whether without a reservation, and how many are set aside.
  logic                               started_q = 1'b0;
  logic [NumContexts-1:0]             cleared_q, out_q, out_d, by_shared_q, by_shared_d;
  logic [NumContexts-1:0][QueueW-1:0] owner_q;
  logic [2:0]                         aside_q, own_count, shared_count, pending;
  logic [15:0]                        contexts_q;
  logic                               may_q, reserved1_q, reserved2_q, asked_q, expected_q, is_back;
  logic [ContextW-1:0]                back;
  assign is_back      = released_i || give_i;
  assign back         = give_i ? give_name_i : released_name_i;
  assign shared_count = 3'($countones(out_q & by_shared_q));
  assign own_count    = 3'($countones(out_q & ~by_shared_q));
  // What control changed a cycle ago is on its way into the count.
  assign pending      = dut.change_q;

  always_comb begin
    out_d       = out_q;
    by_shared_d = by_shared_q;
    if (taken_i) begin
      out_d[taken_name_i]       = 1'b1;
      by_shared_d[taken_name_i] = taken_shared_i;
    end
    if (is_back) out_d[back] = 1'b0;
  end

  always_ff @(posedge clk_i) begin
    started_q  <= 1'b1;
    contexts_q <= contexts_i;
    assume (contexts_i <= 16'(NumContexts));
    if (started_q) assume (contexts_i == contexts_q);
    else assume (!rst_ni);
    if (!rst_ni) begin
      cleared_q   <= '0;
      out_q       <= '0;
      aside_q     <= '0;
      may_q       <= 1'b0;
      reserved1_q <= 1'b0;
      reserved2_q <= 1'b0;
      asked_q     <= 1'b0;
    end else begin
      if (clear_valid_i) cleared_q[clear_name_i] <= 1'b1;
      out_q       <= out_d;
      by_shared_q <= by_shared_d;
      if (taken_i) owner_q[taken_name_i] <= taken_queue_i;
      aside_q     <= aside_q + 3'(reserve_i) - 3'(unreserve_i);
      may_q       <= shared;
      reserved1_q <= reserve_i;
      reserved2_q <= reserved1_q;
      asked_q     <= cleared_q == '1;
      expected_q  <= out_q[look_name_i] && owner_q[look_name_i] == look_queue_i;
    end
    // What a reset finds is over: nothing comes or goes in that cycle.
    if (!rst_ni || cleared_q != '1) assume (!taken_i && !is_back && !reserve_i && !unreserve_i);
    if (!rst_ni || cleared_q == '1) assume (!clear_valid_i);
    if (taken_i) begin
      assume (!out_q[taken_name_i]);
      assume (!taken_shared_i || may_q);
      assume (taken_shared_i || own_count < aside_q);
    end
    assume (!(released_i && give_i));
    if (is_back) assume (out_q[back] && (give_i ? give_shared_i : released_shared_i) == by_shared_q[back]);
    if (reserve_i) assume (!has_none && !unreserve_i && !give_i && !reserved1_q && dut.change_q == '0);
    if (reserve_i || reserved1_q || reserved2_q) assume (!taken_i);
    // What a queue with a reservation has is given back before its reservation.
    if (unreserve_i) assume (aside_q > own_count + 3'(taken_i && !taken_shared_i));
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      assert (3'(dut.free_q + pending) + aside_q + shared_count == contexts_i[2:0]);
      assert (shared_count + own_count <= contexts_i[2:0]);
      assert (dut.free_q <= contexts_i[2:0]);
      assert (has_none == (dut.free_q == '0));
      if (asked_q) assert (is_owned == expected_q);
      // Invariants that make it inductive.
      assert (aside_q <= contexts_i[2:0] && own_count <= aside_q);
      assert (4'(aside_q) + 4'(shared_count) <= 4'(contexts_i[2:0]));
      if (reserved1_q) assert (dut.change_q == '1 && dut.free_q != '0);
      else assert (dut.change_q <= 3'd2 && 4'(dut.free_q) + 4'(dut.change_q) <= 4'(contexts_i[2:0]));
      if (may_q && !reserved1_q && !reserved2_q) assert (dut.free_q != '0);
      if (cleared_q != '1) assert (out_q == '0 && aside_q == '0);
      for (int unsigned i = 0; i < NumContexts; i++) begin
        if (cleared_q[i]) assert ((dut.taken[i] != dut.freed[i]) == out_q[i]);
        if (out_q[i]) assert (dut.owner[i] == owner_q[i]);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      cover (aside_q == 3'd2 && shared_count == 3'd2 && contexts_i == 16'd4 && has_none);
      cover (is_back && taken_i && dut.free_q == 3'd1 && shared_count == 3'd3);
      cover (asked_q && is_owned && give_i);
    end
  end

endmodule

`default_nettype wire

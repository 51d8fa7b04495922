// What is proved of nic/rtl/base/fifo.sv, for every length of run, by k-induction (nic/formal/fifo.sby):
//   - an entry, any entry, leaves with the data it came with, when exactly those before it have left;
//   - valid and data stand still until they are taken; the count is what went in less what came out;
//   - a push is refused only when Depth entries are inside, a pop only when none is.
//
// All inputs are free, reset in the middle of traffic included. Depth is 8 and Width 4. Width does not
// matter: no bit of an entry decides anything, so each bit position is a FIFO of one bit. Depth enters by the
// wrap of the pointers alone, which a power of two makes the wrap of a counter of that many bits.

`default_nettype none

module fifo_proof #(
  // Bits of an entry.
  parameter int unsigned Width = 4,
  // Entries.
  parameter int unsigned Depth = 8
) (
  input logic             clk_i,
  input logic             rst_ni,
  input logic             push_valid_i,
  input logic [Width-1:0] push_data_i,
  input logic             pop_ready_i,
  // Free choice of the entry that is followed.
  input logic             follow_i
);

  localparam int unsigned PointerW = $clog2(Depth);
  localparam int unsigned CountW = PointerW + 1;

  logic              push_ready, pop_valid;
  logic [Width-1:0]  pop_data;
  logic [CountW-1:0] count;

  fifo #(
    .Width(Width),
    .Depth(Depth)
  ) dut (
    .clk_i,
    .rst_ni,
    .push_valid_i,
    .push_ready_o(push_ready),
    .push_data_i,
    .pop_valid_o (pop_valid),
    .pop_ready_i,
    .pop_data_o  (pop_data),
    .count_o     (count)
  );

  logic push, pop;
  assign push = push_valid_i && push_ready;
  assign pop  = pop_valid && pop_ready_i;

  // One entry is followed at a time: its data, and how many are still before it.
  logic              following_q;
  logic [Width-1:0]  data_q;
  logic [CountW-1:0] ahead_q;
  logic              leaves;
  assign leaves = following_q && pop && ahead_q == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      following_q <= 1'b0;
    end else if (!following_q && push && follow_i) begin
      following_q <= 1'b1;
      data_q      <= push_data_i;
      ahead_q     <= count - CountW'(pop);
    end else if (following_q && pop) begin
      following_q <= !leaves;
      ahead_q     <= ahead_q - 1'b1;
    end
  end

  // The cycle before this one, for what must stand still.
  logic              past_q = 1'b0;
  logic              waited_q, pushed_q, popped_q;
  logic [Width-1:0]  waited_data_q;
  logic [CountW-1:0] past_count_q;
  always_ff @(posedge clk_i) begin
    past_q        <= rst_ni;
    waited_q      <= pop_valid && !pop_ready_i;
    waited_data_q <= pop_data;
    pushed_q      <= push;
    popped_q      <= pop;
    past_count_q  <= count;
  end

  // A run starts in reset.
  logic started_q = 1'b0;
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    if (!started_q) assume (!rst_ni);
  end

  logic [PointerW-1:0] place;
  assign place = dut.read_q + ahead_q[PointerW-1:0];

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      if (leaves) assert (pop_data == data_q);
      // Invariants that make it inductive: the followed entry is inside, where the pointers say.
      if (following_q) begin
        assert (ahead_q < count);
        assert (dut.mem[place] == data_q);
      end
      assert (push_ready == (count != CountW'(Depth)));
      assert (pop_valid == (count != '0));
      if (past_q) begin
        assert (count == past_count_q + CountW'(pushed_q) - CountW'(popped_q));
        if (waited_q) assert (pop_valid && pop_data == waited_data_q);
      end
    end
  end

  // The proof is not empty: these can be reached.
  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      cover (!push_ready && push_valid_i);
      cover (leaves && data_q == '1 && dut.read_q == '1);
      cover (push && pop && count == CountW'(1));
    end
  end

endmodule

`default_nettype wire

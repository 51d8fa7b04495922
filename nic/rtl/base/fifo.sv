// FIFO with one clock: entries leave in the order in which they came, none lost, none twice.
//
// Guarantees
//   - First word falls through: while `pop_valid_o` is high `pop_data_o` is the oldest entry; it leaves in
//     the cycle in which `pop_ready_i` is high too. Data and valid stand still while they wait.
//   - An entry pushed in one cycle can be popped in the next: latency 1 cycle, throughput 1 entry a cycle at
//     any fill.
//   - `push_ready_o` and `pop_valid_o` come from registers alone: no path leads from one side's handshake to
//     the other's. So a full FIFO takes nothing in the cycle in which it is popped.
//   - `count_o` entries are inside, from a register; `Depth - count_o` more can be pushed without looking at
//     `push_ready_o`, which is how a credit counter in front of it is sized.
// Limits
//   - Depth is a power of two from 2 to 1024. Entries lie in RAM that is read without a clock (LUTRAM, 32 or
//     64 entries a LUT), so far above 64 entries a block RAM with a pipeline in front of it is cheaper.
//   - Reset empties it; what the RAM holds is not cleared, and never seen.
// Cost: Width x Depth bits of LUTRAM, 3 x $clog2(Depth) + 1 registers.
// Proof: nic/formal/fifo.sby, unbounded. Twin in nic/model: none, the model uses VecDeque.

`default_nettype none

module fifo #(
  // Bits of an entry, 1 or more.
  parameter int unsigned Width = 32,
  // Entries, a power of two from 2 to 1024.
  parameter int unsigned Depth = 16,
  localparam int unsigned CountW = $clog2(Depth) + 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic              push_valid_i,
  output logic              push_ready_o,
  input  logic [Width-1:0]  push_data_i,

  output logic              pop_valid_o,
  input  logic              pop_ready_i,
  output logic [Width-1:0]  pop_data_o,

  output logic [CountW-1:0] count_o
);

  localparam int unsigned PointerW = $clog2(Depth);

  if (Width < 1) begin : g_bad_width
    $fatal(1, "fifo: Width must be at least 1 bit");
  end
  if (Depth < 2 || Depth > 1024 || (Depth & (Depth - 1)) != 0) begin : g_bad_depth
    $fatal(1, "fifo: Depth must be a power of two from 2 to 1024 entries");
  end

  (* ram_style = "distributed" *)
  logic [Width-1:0]    mem [Depth];
  logic [PointerW-1:0] write_q, write_d;
  logic [PointerW-1:0] read_q, read_d;
  logic [CountW-1:0]   count_q, count_d;
  logic                push, pop;

  // Depth is a power of two, so the top bit of the count is "full".
  assign push_ready_o = !count_q[PointerW];
  assign pop_valid_o  = count_q != '0;
  assign pop_data_o   = mem[read_q];
  assign count_o      = count_q;

  assign push = push_valid_i && push_ready_o;
  assign pop  = pop_valid_o && pop_ready_i;

  always_comb begin
    write_d = write_q;
    read_d  = read_q;
    count_d = count_q;
    if (push) write_d = write_q + 1'b1;
    if (pop)  read_d  = read_q + 1'b1;
    // A sum of products: a choice would be moved in front of the counting, and push and pop may be late.
    count_d = ({CountW{push && !pop}} & (count_q + 1'b1)) | ({CountW{!push && pop}} & (count_q - 1'b1))
              | ({CountW{push == pop}} & count_q);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      write_q <= '0;
      read_q  <= '0;
      count_q <= '0;
    end else begin
      write_q <= write_d;
      read_q  <= read_d;
      count_q <= count_d;
    end
  end

  always_ff @(posedge clk_i) begin
    if (push) mem[write_q] <= push_data_i;
  end

`ifndef SYNTHESIS
  // The pointers agree with the count, and the count never passes the depth.
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (count_q <= CountW'(Depth));
      assert (PointerW'(write_q - read_q) == count_q[PointerW-1:0]);
    end
  end
`endif

endmodule

`default_nettype wire

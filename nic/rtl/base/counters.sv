// The port's counters: many small increments in every cycle, into 64-bit counts in one RAM.
//
// Each counter collects what comes in a few bits of its own; one counter after the other is added to its count in the
// RAM, all of them in Counters cycles.
//
// Guarantees: nothing is lost and nothing counted twice. A count read `Counters + 2` cycles after its last increment is
// exact. Limits: an increment is at most 2^IncrementW - 1 a cycle.
// Cost: Counters x 64 bits of RAM, Counters x (IncrementW + log2 Counters) registers. Twin: nic/model/src/counters.rs.

`default_nettype none

module counters #(
  // Counters, 2 to 256.
  parameter int unsigned Counters = 96,
  // Bits of what a counter grows by in a cycle, 1 to 16.
  parameter int unsigned IncrementW = 8,
  localparam int unsigned IndexW = $clog2(Counters)
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  input  logic [Counters-1:0][IncrementW-1:0] increments_i,

  // A count, a cycle after it is asked for.
  input  logic [IndexW-1:0]       look_i,
  output logic [63:0]             count_o,
  // Counts are cleared after reset; meanwhile they may be read as anything.
  output logic                    busy_o
);

  if (Counters < 2 || Counters > 256) begin : g_bad_count
    $fatal(1, "counters: Counters must be 2 to 256");
  end
  if (IncrementW < 1 || IncrementW > 16) begin : g_bad_increment
    $fatal(1, "counters: IncrementW must be 1 to 16 bits");
  end

  localparam int unsigned SmallW = IncrementW + IndexW;

  (* ram_style = "distributed" *)
  logic [63:0] counts [Counters];

  logic [Counters-1:0][SmallW-1:0] small_q, small_d;
  logic [IndexW-1:0] at_q, at1_q;
  logic [SmallW-1:0] taken1_q;
  logic              valid1_q, clear_q;

  always_comb begin
    for (int i = 0; i < int'(Counters); i++) begin
      small_d[i] = (at_q == IndexW'(i) ? '0 : small_q[i]) + SmallW'(increments_i[i]);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      small_q  <= '0;
      at_q     <= '0;
      valid1_q <= 1'b0;
      clear_q  <= 1'b1;
    end else begin
      small_q  <= small_d;
      at_q     <= (at_q == IndexW'(Counters - 1)) ? '0 : at_q + 1'b1;
      valid1_q <= 1'b1;
      if (valid1_q && at1_q == IndexW'(Counters - 1)) clear_q <= 1'b0;
    end
    at1_q    <= at_q;
    taken1_q <= small_q[at_q];
    if (valid1_q) counts[at1_q] <= (clear_q ? '0 : counts[at1_q]) + 64'(taken1_q);
    count_o <= counts[look_i];
  end
  assign busy_o = clear_q;

`ifndef SYNTHESIS
  initial for (int i = 0; i < int'(Counters); i++) counts[i] = '0;
  always_ff @(posedge clk_i) begin
    if (rst_ni) a_no_counter_runs_over : assert (small_q[at_q] < SmallW'(((1 << IncrementW) - 1) * Counters));
  end
`endif

endmodule

`default_nettype wire

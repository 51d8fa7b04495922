// The clock of an engine. It is the clock and nothing else, but where a simulation defines BEELINE_SLEEP: there it stands
// still until the engine is wanted for the first time, so that engines that nobody uses cost no time.
//
// Guarantees
//   - With BEELINE_SLEEP clk_o runs during reset, for Settle cycles behind it, in which the engine clears its tables, and
//     from the cycle of the first wakes_i on until the next reset. Its edges are those of clk_i.
//   - What all engines are told (told_i) while it still runs has Settle cycles to end: an engine that fell asleep in the
//     middle of it would be busy with it for ever.
// Limits
//   - Who uses it sees to it that in between the engine has nothing to do: an engine without a queue of its own ignores
//     doorbells, stops and whatever else is told to all of them, and nothing is routed to it. The benches of nic/tb run
//     every engine awake, as hardware does, those of nic/rtl/tests asleep.
//   - wakes_i is stable while clk_i is low.
// Latency: none. Cost: none.

`default_nettype none

module engine_clock #(
  // Cycles behind a reset, enough to clear a table of 1024 queues.
  parameter int unsigned Settle = 4096
) (
  input  logic clk_i,
  input  logic rst_ni,
  // In this cycle a queue of the engine is started, or something comes for it or from it.
  input  logic wakes_i,
  // In this cycle all engines are told of a start or a stop.
  input  logic told_i,
  output logic clk_o
);

`ifdef BEELINE_SLEEP
  localparam int unsigned CountW = $clog2(Settle + 1);

  logic              is_awake_q, runs;
  logic [CountW-1:0] left_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      is_awake_q <= 1'b0;
      left_q     <= CountW'(Settle);
    end else begin
      if (wakes_i) is_awake_q <= 1'b1;
      if (left_q != '0) left_q <= told_i ? CountW'(Settle) : left_q - 1'b1;
    end
  end

  // Held while the clock is high, so that no edge is made or cut short by what changes behind it.
  always_latch begin
    if (!clk_i) runs = !rst_ni || is_awake_q || wakes_i || left_q != '0;
  end

  assign clk_o = clk_i && runs;
`else
  assign clk_o = clk_i;

  logic unused;
  assign unused = &{1'b0, rst_ni, wakes_i, told_i, Settle[0]};
`endif

endmodule

`default_nettype wire

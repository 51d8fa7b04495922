// A table in RAM with one write port and one read port: what is written in a cycle is what a read of that cycle gives.
//
// Guarantees
//   - `rdata_o` is, one cycle after `raddr_i`, the entry as it was after every write up to and including the one made
//     in the cycle in which `raddr_i` stood. So a pipeline that reads in one stage and writes in the next sees its own
//     last write, without a comparison of its own.
//   - With `ComparesLate` the addresses are compared a cycle later, beside the RAM's own delay: no path to `raddr_i`
//     goes on to a comparison. For an address that comes late itself, and a RAM that is slow.
// Limits
//   - What an entry holds before it was first written is not defined (0 in simulation).
//   - The forwarded word costs one LUT level behind the RAM, two or three if the comparison is late.
// Cost: Width x Depth bits of RAM, Width + 1 registers, twice an address more if the comparison is late; up to 64
// entries lie in LUTs, where a word is there sooner than out of a block of RAM. Twin in nic/model: none.

`default_nettype none

module table_ram #(
  // Bits of an entry, 1 or more.
  parameter int unsigned Width = 32,
  // Entries, 1 or more.
  parameter int unsigned Depth = 64,
  parameter bit ComparesLate = 1'b0,
  localparam int unsigned AddressW = (Depth > 1) ? $clog2(Depth) : 1
) (
  input  logic                clk_i,

  input  logic                we_i,
  input  logic [AddressW-1:0] waddr_i,
  input  logic [Width-1:0]    wdata_i,

  input  logic [AddressW-1:0] raddr_i,
  output logic [Width-1:0]    rdata_o
);

  if (Width < 1 || Depth < 1) begin : g_bad_size
    $fatal(1, "table_ram: Width and Depth must be at least 1");
  end

  // What the RAM itself gives when both ports meet is replaced, so it may be anything.
  (* ram_style = (Depth <= 64) ? "distributed" : "auto", no_rw_check *)
  logic [Width-1:0] mem [Depth];
  logic [Width-1:0] rdata_q, wdata_q;
  logic             forward;

  assign rdata_o = forward ? wdata_q : rdata_q;

  if (ComparesLate) begin : g_late
    logic                we_q;
    logic [AddressW-1:0] waddr_q, raddr_q;
    always_ff @(posedge clk_i) begin
      we_q    <= we_i;
      waddr_q <= waddr_i;
      raddr_q <= raddr_i;
    end
    assign forward = we_q && (waddr_q == raddr_q);
  end else begin : g_early
    logic forward_q;
    always_ff @(posedge clk_i) begin
      forward_q <= we_i && (waddr_i == raddr_i);
    end
    assign forward = forward_q;
  end

  always_ff @(posedge clk_i) begin
    if (we_i) mem[waddr_i] <= wdata_i;
    rdata_q <= mem[raddr_i];
    wdata_q <= wdata_i;
  end

`ifndef SYNTHESIS
`ifndef FORMAL
  initial for (int i = 0; i < int'(Depth); i++) mem[i] = '0;
`endif
`endif

endmodule

`default_nettype wire

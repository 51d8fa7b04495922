// What is proved of nic/rtl/base/table_ram.sv, for every length of run, by k-induction (nic/formal/table_ram.sby):
//   - a read gives, a cycle later, the word that was written last to that entry, the write of the read's own cycle
//     included; for any entry, whatever is written elsewhere; with an early comparison and a late one.
//
// Assumed: addresses below Depth. All else is free. Depth is 5 and Width 2. Neither matters: one entry, chosen freely,
// is followed, no other one is looked at, and no bit of a word decides anything; an address enters by comparisons for
// equality alone.

`default_nettype none

module table_ram_proof #(
  // Bits of an entry.
  parameter int unsigned Width = 2,
  // Entries.
  parameter int unsigned Depth = 5,
  parameter bit ComparesLate = 1'b0,
  localparam int unsigned AddressW = $clog2(Depth)
) (
  input logic                clk_i,
  input logic                we_i,
  input logic [AddressW-1:0] waddr_i,
  input logic [Width-1:0]    wdata_i,
  input logic [AddressW-1:0] raddr_i,
  // The entry that is followed: any, but always the same.
  input logic [AddressW-1:0] place_i
);

  logic [Width-1:0] rdata;
  table_ram #(.Width(Width), .Depth(Depth), .ComparesLate(ComparesLate)) dut (
    .clk_i, .we_i, .waddr_i, .wdata_i, .raddr_i, .rdata_o(rdata)
  );

  logic                started_q = 1'b0;
  logic                written_q = 1'b0;
  logic                asked_q = 1'b0;
  logic [AddressW-1:0] place_q;
  logic [Width-1:0]    word_q;
  logic                hit;
  assign hit = we_i && waddr_i == place_i;

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    place_q   <= place_i;
    written_q <= written_q || hit;
    if (hit) word_q <= wdata_i;
    asked_q   <= raddr_i == place_i && (written_q || hit);
    assume (32'(place_i) < Depth && (!started_q || place_i == place_q));
    assume (32'(waddr_i) < Depth && 32'(raddr_i) < Depth);
  end

  logic forwarded_q;
  always_ff @(posedge clk_i) begin
    forwarded_q <= hit && raddr_i == place_i;
    if (asked_q) assert (rdata == word_q);
    // The invariant that makes it inductive.
    if (written_q) assert (dut.mem[place_i] == word_q);
    cover (asked_q && forwarded_q && word_q != '0);
    cover (asked_q && !forwarded_q && word_q != '0 && hit);
  end

endmodule

`default_nettype wire

// The one DMA write port: takes the writes of several engines in turn.
//
// Guarantees
//   - The writes of one engine leave in the order in which it gave them, which is the order in which the host
//     sees them: whoever writes data and then a word that says so needs no more. Engines take turns of one
//     write.
//   - A write that was taken leaves, whatever happens to its engine; busy_o while one waits.
// Latency: 1 cycle. One write a cycle. Cost: 590 registers. Twin: nic/model/src/dma_port.rs.

`default_nettype none

module write_port #(
  // Engines, 2 to 8.
  parameter int unsigned Engines = 3,
  localparam int unsigned EngineW = $clog2(Engines)
) (
  input  logic         clk_i,
  input  logic         rst_ni,
  output logic         busy_o,

  input  logic [Engines-1:0]        wr_valid_i,
  output logic [Engines-1:0]        wr_ready_o,
  input  logic [Engines-1:0][63:0]  wr_address_i,
  input  logic [Engines-1:0][511:0] wr_data_i,
  input  logic [Engines-1:0][6:0]   wr_bytes_i,

  output logic         dmawr_valid_o,
  input  logic         dmawr_ready_i,
  output logic [63:0]  dmawr_address_o,
  output logic [511:0] dmawr_data_o,
  output logic [6:0]   dmawr_bytes_o
);

  if (Engines < 2 || Engines > 8) begin : g_bad_engines
    $fatal(1, "write_port: Engines must be 2 to 8");
  end

  logic               valid_q, valid_d, take;
  logic [63:0]        address_q;
  logic [511:0]       data_q;
  logic [6:0]         bytes_q;
  logic [Engines-1:0] grant, behind_last, masked;
  logic [EngineW-1:0] chosen, last_q;

  // The first engine after the one that was served last, then the first of all.
  assign behind_last = {Engines{1'b1}} << (last_q + 1'b1);
  assign masked      = (last_q == EngineW'(Engines - 1)) ? '0 : wr_valid_i & behind_last;
  assign grant       = (masked != '0) ? masked & (~masked + 1'b1) : wr_valid_i & (~wr_valid_i + 1'b1);
  assign take        = wr_valid_i != '0 && (!valid_q || dmawr_ready_i);
  assign wr_ready_o  = take ? grant : '0;

  always_comb begin
    chosen = '0;
    for (int engine = 0; engine < int'(Engines); engine++) begin
      chosen = chosen | (grant[engine] ? EngineW'(engine) : '0);
    end
    valid_d = take || (valid_q && !dmawr_ready_i);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      last_q  <= '0;
    end else begin
      valid_q <= valid_d;
      if (take) last_q <= chosen;
    end
    if (take) begin
      address_q <= wr_address_i[chosen];
      data_q    <= wr_data_i[chosen];
      bytes_q   <= wr_bytes_i[chosen];
    end
  end

  assign busy_o          = valid_q;
  assign dmawr_valid_o   = valid_q;
  assign dmawr_address_o = address_q;
  assign dmawr_data_o    = data_q;
  assign dmawr_bytes_o   = bytes_q;

`ifndef SYNTHESIS
  logic        waiting_q;
  logic [63:0] waiting_address_q;
  always_ff @(posedge clk_i) begin
    waiting_q         <= rst_ni && dmawr_valid_o && !dmawr_ready_i;
    waiting_address_q <= dmawr_address_o;
    if (rst_ni) begin
      assert (!waiting_q || dmawr_valid_o && dmawr_address_o == waiting_address_q)
        else $error("write_port: a waiting write changed");
      assert (!take || bytes_q <= 7'(nic_pkg::LineBytes) || !valid_q)
        else $error("write_port: a write of more than a line");
    end
  end
`endif

endmodule

`default_nettype wire

// The one port for answers to reads: of registers, and of entries.
//
// Guarantees: an answer leaves when the DMA write that stood at the port as the answer came has left (decision 0010: an
// answer passes no write that was asked for before it, so what it says has happened in memory has happened). Registers
// come first. Between two answers the port is empty for a cycle.
// Limits: behind this port whoever owns the link keeps that order (pcie/write_fence.sv).
// Latency: 1 cycle, one answer in 2. Cost: 84 registers. Twin: Answers in nic/model/src/engine.rs.

`default_nettype none

module answer_port (
  input  logic        clk_i,
  input  logic        rst_ni,

  // Of registers (0) and of entries (1).
  input  logic [1:0]  in_valid_i,
  output logic [1:0]  in_ready_o,
  input  logic [1:0][15:0] in_tag_i,
  input  logic [1:0][63:0] in_value_i,

  // The port of DMA writes.
  input  logic        dmawr_valid_i,
  input  logic        dmawr_ready_i,

  output logic        rc_valid_o,
  input  logic        rc_ready_i,
  output logic [15:0] rc_tag_o,
  output logic [63:0] rc_value_o
);

  logic        valid_q, waits_q, take;
  logic [15:0] tag_q;
  logic [63:0] value_q;

  assign take       = !valid_q && in_valid_i != '0;
  // No path leads from the registers' valid to their ready.
  assign in_ready_o = {!valid_q && !in_valid_i[0], !valid_q};

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      waits_q <= 1'b0;
    end else begin
      valid_q <= take || valid_q && !(rc_valid_o && rc_ready_i);
      waits_q <= (take ? dmawr_valid_i : waits_q) && !dmawr_ready_i;
    end
    if (take) begin
      tag_q   <= in_valid_i[0] ? in_tag_i[0] : in_tag_i[1];
      value_q <= in_valid_i[0] ? in_value_i[0] : in_value_i[1];
    end
  end

  assign rc_valid_o = valid_q && !waits_q;
  assign rc_tag_o   = tag_q;
  assign rc_value_o = value_q;

`ifndef SYNTHESIS
  logic waiting_q;
  always_ff @(posedge clk_i) begin
    waiting_q <= rst_ni && rc_valid_o && !rc_ready_i;
    if (rst_ni) begin
      assert (!waiting_q || rc_valid_o) else $error("answer_port: an answer was taken back");
      assert (!waits_q || valid_q) else $error("answer_port: nothing waits");
    end
  end
`endif

endmodule

`default_nettype wire

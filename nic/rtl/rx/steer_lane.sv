// One lane of the flow hash: folds the bytes of a flow, multiplies, and takes the remainder; a flow in each
// of the three.
//
// The sum is rotated by 7, multiplied by 31 and xored with a byte, one byte a cycle; the product with the odd
// constant takes two bits of the sum a cycle, the remainder one bit of the product's middle.
//
// Latency: bytes + 67 cycles. Throughput: a flow in 38 cycles at most. Adders of 64 bits are two halves, the
// upper one made for both carries. Cost: 700 registers. Twin: fold and flow_hash in
// nic/model/src/rx/steer.rs.

`default_nettype none

module steer_lane #(
  // Bytes of a flow at most, 1 to 63.
  parameter int unsigned FlowBytes = 36,
  // Bits of a number of queues.
  parameter int unsigned CountW = 11
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   flow_valid_i,
  output logic                   flow_ready_o,
  input  logic [7:0]             flow_start_i,
  // Byte 0 lowest.
  input  logic [8*FlowBytes-1:0] flow_data_i,
  input  logic [5:0]             flow_bytes_i,

  // At least 1.
  input  logic [CountW-1:0]      queues_i,

  output logic                   index_valid_o,
  input  logic                   index_ready_i,
  output logic [CountW-1:0]      index_o
);

  localparam logic [63:0] Odd  = 64'h9e37_79b9_7f4a_7c15;
  localparam logic [63:0] Odd2 = {Odd[62:0], 1'b0};
  localparam logic [63:0] Odd3 = Odd + Odd2;

  if (FlowBytes < 1 || FlowBytes > 63) begin : g_bad_bytes
    $fatal(1, "steer_lane: FlowBytes must be 1 to 63");
  end

  // ---- Fold.
  logic                   fold_q, fold_done, fold_move;
  logic [63:0]            sum_q, turned, product31;
  logic [8*FlowBytes-1:0] bytes_q;
  logic [5:0]             bytes_left_q;
  logic [32:0]            low31;
  logic [31:0]            high31, high31_borrow;

  // ---- Multiply.
  logic                   mul_q, mul_done, mul_move;
  logic [63:0]            factor_q, acc_q, multiple, acc_sum;
  logic [4:0]             digits_left_q;
  logic [32:0]            low_sum;
  logic [31:0]            high_sum, high_sum_carry;

  // ---- Remainder.
  logic                   div_q;
  logic [31:0]            bits_q;
  logic [5:0]             bits_left_q;
  logic [CountW-1:0]      rest_q, queues_q;
  logic [CountW:0]        longer, shorter;

  assign turned        = {sum_q[56:0], sum_q[63:57]};
  assign low31         = {1'b0, turned[26:0], 5'd0} - {1'b0, turned[31:0]};
  assign high31        = turned[58:27] - turned[63:32];
  assign high31_borrow = turned[58:27] - turned[63:32] - 32'd1;
  assign product31     = {low31[32] ? high31_borrow : high31, low31[31:0]};

  always_comb begin
    unique case (factor_q[63:62])
      2'd0:    multiple = '0;
      2'd1:    multiple = Odd;
      2'd2:    multiple = Odd2;
      default: multiple = Odd3;
    endcase
  end
  assign low_sum        = {1'b0, acc_q[29:0], 2'd0} + {1'b0, multiple[31:0]};
  assign high_sum       = acc_q[61:30] + multiple[63:32];
  assign high_sum_carry = acc_q[61:30] + multiple[63:32] + 32'd1;
  assign acc_sum        = {low_sum[32] ? high_sum_carry : high_sum, low_sum[31:0]};

  assign longer  = {rest_q, bits_q[31]};
  assign shorter = longer - {1'b0, queues_q};

  assign fold_done = fold_q && bytes_left_q == '0;
  assign mul_done  = mul_q && digits_left_q == '0;
  assign mul_move  = mul_done && !div_q;
  assign fold_move = fold_done && !mul_q;
  assign flow_ready_o  = !fold_q;
  assign index_valid_o = div_q && bits_left_q == '0;
  assign index_o       = rest_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      fold_q <= 1'b0;
      mul_q  <= 1'b0;
      div_q  <= 1'b0;
    end else begin
      fold_q <= flow_valid_i && flow_ready_o || fold_q && !fold_move;
      mul_q  <= fold_move || mul_q && !mul_move;
      div_q  <= mul_move || div_q && !(index_valid_o && index_ready_i);
    end
    if (flow_valid_i && flow_ready_o) begin
      sum_q        <= 64'(flow_start_i);
      bytes_q      <= flow_data_i;
      bytes_left_q <= flow_bytes_i;
    end else if (fold_q && !fold_done) begin
      sum_q        <= product31 ^ 64'(bytes_q[7:0]);
      bytes_q      <= bytes_q >> 8;
      bytes_left_q <= bytes_left_q - 6'd1;
    end
    // Digits 31 to 1 are added in their cycles, digit 0 on the way to the remainder.
    if (fold_move) begin
      factor_q      <= sum_q;
      acc_q         <= '0;
      digits_left_q <= 5'd31;
    end else if (mul_q && !mul_done) begin
      factor_q      <= factor_q << 2;
      acc_q         <= acc_sum;
      digits_left_q <= digits_left_q - 5'd1;
    end
    if (mul_move) begin
      bits_q      <= acc_sum[63:32];
      bits_left_q <= 6'd32;
      rest_q      <= '0;
      queues_q    <= queues_i;
    end else if (div_q && bits_left_q != '0) begin
      bits_q      <= bits_q << 1;
      bits_left_q <= bits_left_q - 6'd1;
      rest_q      <= shorter[CountW] ? longer[CountW-1:0] : shorter[CountW-1:0];
    end
  end

  logic unused_bits;
  assign unused_bits = ^acc_q[63:62];

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!mul_move || queues_i != '0) else $error("steer_lane: no queue to choose from");
      assert (!index_valid_o || rest_q < queues_q) else $error("steer_lane: the remainder is too large");
    end
  end
`endif

endmodule

`default_nettype wire

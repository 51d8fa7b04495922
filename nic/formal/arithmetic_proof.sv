// What is proved of nic/rtl/base/increment.sv, less_than.sv and lowest_bit.sv, which write out in trees what an
// operator says in a line: they give what the operator gives, for all values (nic/formal/arithmetic.sby).
//
// Nothing is assumed. They hold no state, so one cycle is every cycle. Proved for the widths below: below, at and above
// each border of a group, and the widest; other widths are simulated with the modules that have them.

`default_nettype none

module arithmetic_proof (
  input logic         clk_i,
  input logic         add_i,
  input logic [149:0] value_i,
  input logic [63:0]  left_i,
  input logic [63:0]  right_i
);

  localparam int unsigned Widths = 7;
  localparam int unsigned IncrementWidths[Widths] = '{1, 5, 6, 10, 32, 40, 150};
  localparam int unsigned LessWidths[Widths] = '{1, 2, 6, 7, 14, 19, 64};
  localparam int unsigned LowestWidths[Widths] = '{2, 4, 8, 16, 32, 64, 128};

  for (genvar i = 0; i < int'(Widths); i++) begin : g_increment
    localparam int unsigned W = IncrementWidths[i];
    logic [W-1:0] sum;
    increment #(.Width(W)) dut (.value_i(value_i[W-1:0]), .add_i, .sum_o(sum));
    always_ff @(posedge clk_i) begin
      assert (sum == value_i[W-1:0] + W'(add_i));
      cover (add_i && sum == '0);
    end
  end

  for (genvar i = 0; i < int'(Widths); i++) begin : g_less_than
    localparam int unsigned W = LessWidths[i];
    logic is_less;
    less_than #(.Width(W)) dut (.left_i(left_i[W-1:0]), .right_i(right_i[W-1:0]), .is_less_o(is_less));
    always_ff @(posedge clk_i) begin
      assert (is_less == (left_i[W-1:0] < right_i[W-1:0]));
      cover (is_less);
    end
  end

  for (genvar i = 0; i < int'(Widths); i++) begin : g_lowest_bit
    localparam int unsigned W = LowestWidths[i];
    logic [$clog2(W)-1:0] index;
    logic [W-1:0]         bits, below;
    assign bits  = value_i[W-1:0];
    // All places before the one that is told.
    assign below = ~({W{1'b1}} << index);
    lowest_bit #(.Width(W)) dut (.bits_i(bits), .index_o(index));
    always_ff @(posedge clk_i) begin
      if (bits != '0) assert (bits[index] && (bits & below) == '0);
      else assert (index == '0);
      cover (bits != '0 && index == '1);
    end
  end

endmodule

`default_nettype wire

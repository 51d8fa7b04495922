// The index of the lowest bit that is set, as a tree: depth grows with the logarithm of the width.
//
// Guarantees: `index_o` is the index of the lowest set bit of `bits_i`; without one it is 0. Combinational.
// Limits: Width is a power of two, 2 to 512. Cost: about 2 LUT6 a bit. Twin in nic/model: trailing_zeros.

`default_nettype none

module lowest_bit #(
  parameter int unsigned Width = 32,
  localparam int unsigned IndexW = $clog2(Width)
) (
  input  logic [Width-1:0]  bits_i,
  output logic [IndexW-1:0] index_o
);

  if (Width < 2 || Width > 512 || (Width & (Width - 1)) != 0) begin : g_bad_width
    $fatal(1, "lowest_bit: Width must be a power of two from 2 to 512");
  end

  if (Width == 2) begin : g_leaf
    assign index_o = bits_i[1] && !bits_i[0];
  end else begin : g_tree
    // Quarters where there are enough bits: one level of LUT6 chooses among four.
    localparam int unsigned Half = Width / 2;
    logic [IndexW-2:0] low, high;
    logic              low_has;
    lowest_bit #(.Width(Half)) u_low  (.bits_i(bits_i[Half-1:0]), .index_o(low));
    lowest_bit #(.Width(Half)) u_high (.bits_i(bits_i[Width-1:Half]), .index_o(high));
    assign low_has = bits_i[Half-1:0] != '0;
    assign index_o = low_has ? {1'b0, low} : {bits_i[Width-1:Half] != '0, high};
  end

endmodule

`default_nettype wire

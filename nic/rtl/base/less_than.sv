// Whether one number is less than another, as a tree: depth grows with the logarithm of the width.
//
// Guarantees: `is_less_o` is `left_i < right_i`, both without sign. Combinational: two levels of LUT6 up to 6 bits,
// three up to 18. Limits: Width 1 to 64. Cost: about 1.5 LUT6 a bit. Twin in nic/model: none.

`default_nettype none

module less_than #(
  parameter int unsigned Width = 8
) (
  input  logic [Width-1:0] left_i,
  input  logic [Width-1:0] right_i,
  output logic             is_less_o
);

  if (Width < 1 || Width > 64) begin : g_bad_width
    $fatal(1, "less_than: Width must be 1 to 64 bits");
  end

  // Of each pair of bits: is it less, is it the same. Then of groups of three of what was there.
  localparam int unsigned Pairs = 32;
  logic [63:0]       left, right;
  logic [Pairs-1:0]  less, same;
  logic [10:0]       less3, same3;
  logic [3:0]        less9, same9;

  assign left  = 64'(left_i);
  assign right = 64'(right_i);

  for (genvar i = 0; i < int'(Pairs); i++) begin : g_pair
    assign less[i] = left[2*i +: 2] < right[2*i +: 2];
    assign same[i] = left[2*i +: 2] == right[2*i +: 2];
  end
  for (genvar i = 0; i < 11; i++) begin : g_three
    if (3 * i + 2 < int'(Pairs)) begin : g_whole
      assign less3[i] = less[3*i+2] || (same[3*i+2] && (less[3*i+1] || (same[3*i+1] && less[3*i])));
      assign same3[i] = &same[3*i +: 3];
    end else begin : g_part
      assign less3[i] = less[3*i+1] || (same[3*i+1] && less[3*i]);
      assign same3[i] = &same[3*i +: 2];
    end
  end
  for (genvar i = 0; i < 4; i++) begin : g_nine
    if (3 * i + 2 < 11) begin : g_whole
      assign less9[i] = less3[3*i+2] || (same3[3*i+2] && (less3[3*i+1] || (same3[3*i+1] && less3[3*i])));
      assign same9[i] = &same3[3*i +: 3];
    end else begin : g_part
      assign less9[i] = less3[3*i+1] || (same3[3*i+1] && less3[3*i]);
      assign same9[i] = &same3[3*i +: 2];
    end
  end
  assign is_less_o = less9[3] || (same9[3] && (less9[2] || (same9[2] && (less9[1] || (same9[1] && less9[0])))));

  // Of the lowest group it does not matter whether it is the same.
  logic unused_bits;
  assign unused_bits = same9[0];

endmodule

`default_nettype wire

// A number and one more, as a tree: depth grows with the logarithm of the width, not with the width.
//
// Guarantees: `sum_o` is `value_i` plus `add_i`, modulo 2^Width. Combinational, at most four levels of LUT6 up to 150
// bits. Limits: none. Cost: about 1.5 LUT6 a bit. Twin in nic/model: none.

`default_nettype none

module increment #(
  parameter int unsigned Width = 32
) (
  input  logic [Width-1:0] value_i,
  input  logic             add_i,
  output logic [Width-1:0] sum_o
);

  // Five bits make a group: one LUT says how the highest of them changes.
  localparam int unsigned Group = 5;
  localparam int unsigned Groups = (Width + Group - 1) / Group;

  if (Width < 1 || Width > 150) begin : g_bad_width
    $fatal(1, "increment: Width must be 1 to 150 bits");
  end

  logic [Groups*Group-1:0] value;
  logic [Groups-1:0]       is_full;

  assign value = (Groups * Group)'(value_i);
  for (genvar g = 0; g < int'(Groups); g++) begin : g_full
    assign is_full[g] = &value[g*Group +: Group];
  end

  for (genvar i = 0; i < int'(Width); i++) begin : g_bit
    localparam int unsigned Mine = i / Group;
    localparam int unsigned Place = i % Group;
    logic carry, below;
    if (Mine == 0) begin : g_first
      assign carry = add_i;
    end else begin : g_others
      assign carry = add_i && (&is_full[Mine-1:0]);
    end
    if (Place == 0) begin : g_lowest
      assign below = 1'b1;
    end else begin : g_higher
      assign below = &value[i-1 -: Place];
    end
    assign sum_o[i] = value[i] ^ (carry && below);
  end

  // Nothing is above the highest group.
  logic unused_bits;
  assign unused_bits = is_full[Groups-1];

endmodule

`default_nettype wire

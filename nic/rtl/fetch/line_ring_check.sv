// Whether a ring of lines may be used: a power of two of lines up to 2^22, on lines, and whole inside the address space.
//
// Combinational. Twin: LineRing::new in nic/model/src/fetch/line_ring.rs.

`default_nettype none

module line_ring_check (
  input  logic [63:0] address_i,
  input  logic [31:0] lines_i,
  output logic        is_sound_o
);

  localparam int unsigned MaxLines = 1 << 22;

  logic [28:0] ring_end;

  assign ring_end   = 29'(address_i[27:0]) + {lines_i[22:0], 6'd0};
  assign is_sound_o = lines_i != '0 && lines_i <= 32'(MaxLines) && (lines_i & (lines_i - 32'd1)) == '0
      && address_i[5:0] == '0 && !(address_i[63:28] == '1 && ring_end[28]);

  logic unused_bits;
  assign unused_bits = ^ring_end;

endmodule

`default_nettype wire

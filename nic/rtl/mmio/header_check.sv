// What a header says, and whether it may be believed.
//
// Guarantees: combinational, three levels of LUT6 for each answer alone. `is_whole_o`, `less_one_o` and `is_one_o` hold
// for a header that is `is_header_ok_o` and `is_length_ok_o`; of others they say nothing.
// Twin: nic/model/src/mmio/message.rs (check_header).

`default_nettype none

module header_check #(
  // log2 of the lines of the longest window.
  parameter int unsigned LineW = 6,
  // Bits of a position.
  parameter int unsigned PosW = 8
) (
  // Straps: lines of every window less 1, bytes of the longest frame.
  input  logic [LineW-1:0] window_mask_i,
  input  logic [13:0]      max_frame_bytes_i,

  input  logic [63:0]      header_i,
  input  logic [7:0]       epoch_i,
  // Lines that are there, this one included, less 1.
  input  logic [PosW-1:0]  there_i,

  output logic             is_batch_o,
  output logic             is_void_o,
  // A data message too short for a frame.
  output logic             is_runt_o,
  output logic             is_header_ok_o,
  output logic             is_length_ok_o,
  // All lines of the message are there.
  output logic             is_whole_o,
  // Lines of the message less 1: those it fills, and one more if the rest is too long to stand beside the header.
  output logic             is_over_o,
  output logic [LineW:0]   less_one_o,
  output logic             is_one_o
);

  logic [23:0]     length;
  logic [3:0]      kind;
  logic [17:0]     full;
  logic            is_data, is_same, is_less, is_long, fits;

  assign length     = header_i[23:0];
  assign kind       = header_i[49:46];
  assign is_data    = kind == nic_pkg::MessageKindData[3:0];
  assign is_void_o  = kind == nic_pkg::MessageKindVoid[3:0];
  assign is_batch_o = kind == nic_pkg::MessageKindBatch[3:0];
  assign is_runt_o  = is_data && length < 24'd14;
  assign is_header_ok_o = (is_data || is_void_o || is_batch_o) && header_i[63:58] == '0
                          && header_i[57:50] == epoch_i && header_i[45:24] == '0;

  // A message of n lines has room for 64 n - 8 bytes of payload: n is the number of full lines, and one more, and still
  // one more if the rest does not fit beside the header.
  assign full       = length[23:6];
  assign is_over_o  = length[5:0] > 6'd56;
  assign less_one_o = full[LineW:0] + (LineW + 1)'(is_over_o);
  assign is_one_o   = full == '0 && !is_over_o;

  assign fits       = (full & ~18'(window_mask_i)) == '0 && !(full[LineW-1:0] == window_mask_i && is_over_o);
  less_than #(.Width(14)) u_long (
    .left_i(max_frame_bytes_i), .right_i(length[13:0]), .is_less_o(is_long)
  );
  assign is_length_ok_o = fits && !(is_data && (is_long || length[23:14] != '0));

  less_than #(.Width(PosW)) u_whole (.left_i(there_i), .right_i(full[PosW-1:0]), .is_less_o(is_less));
  assign is_same    = full[PosW-1:0] == there_i;
  assign is_whole_o = !is_less && !(is_same && is_over_o);

endmodule

`default_nettype wire

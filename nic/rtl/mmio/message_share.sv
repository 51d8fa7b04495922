// What a queue may still send: less what a message takes, and more at the end of a turn (a deficit round robin).
//
// A share is a count of bytes that may fall below zero: what is owed stays, what is left is lost when the queue has
// nothing more to send. Combinational; choices are sums of products, so that what is chosen is known before the choice.
// Twin: deficit in nic/model/src/egress/scheduler.rs.

`default_nettype none

module message_share #(
  // Bits of a share, its sign included.
  parameter int unsigned ShareW = 21
) (
  input  logic [ShareW-1:0] share_i,
  // Bytes of the message that takes some of it; a queue that owed when its message was let go begins at nothing.
  input  logic [16:0]       bytes_i,
  output logic [ShareW-1:0] less_o,

  // The share as a turn leaves it, the queue's weight, and whether it wants another turn.
  input  logic [ShareW-1:0] left_i,
  input  logic [7:0]        weight_i,
  input  logic              again_i,
  output logic [ShareW-1:0] more_o
);

  logic [ShareW-1:0]   share;
  logic [10:0]         low;
  logic [ShareW-11:0]  high, high_less;

  assign share     = share_i[ShareW-1] ? '0 : share_i;
  assign low       = {1'b0, share[9:0]} - {1'b0, bytes_i[9:0]};
  assign high      = share[ShareW-1:10] - (ShareW - 10)'(bytes_i[16:10]);
  assign high_less = share[ShareW-1:10] + ~(ShareW - 10)'(bytes_i[16:10]);
  assign less_o    = {({(ShareW - 10) {!low[10]}} & high) | ({(ShareW - 10) {low[10]}} & high_less), low[9:0]};

  // A quantum is a multiple of 2,048 bytes.
  logic               owes, gets;
  logic [ShareW-12:0] quanta;
  assign owes   = left_i[ShareW-1];
  assign gets   = !again_i || owes;
  assign quanta = (left_i[ShareW-1:11] & {(ShareW - 11) {owes || !gets}})
                  + ((ShareW - 11)'(weight_i) & {(ShareW - 11) {gets}});
  assign more_o = {quanta, left_i[10:0] & {11{owes || !gets}}};

`ifndef SYNTHESIS
  always_comb a_share_is_less : assert (less_o == share - ShareW'(bytes_i));
`endif

endmodule

`default_nettype wire

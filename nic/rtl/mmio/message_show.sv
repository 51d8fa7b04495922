// The show of a message that is not whole: whether the reader goes on, waits for the next line, or breaks off; and what
// became of it.
//
// Guarantees
//   - `hold` is high while the line behind those that the reader has under way is not before the frontier, but for the
//     line behind the message's last one.
//   - A show that is broken off (`flush`) was broken at the wire, or waits for a line of a queue that takes no more
//     writes.
//   - What is told of it stays until it is taken.
// Limits: one show at a time, what became of it included. Cost: 10 registers.
// Proof: with message_reader. Twin: go_on of nic/model/src/nic.rs.

`default_nettype none

module message_show #(
  parameter int unsigned QueueW = 6,
  // Bits of a count of lines of a message.
  parameter int unsigned RestW = 7
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  // The reader makes a step; with it a show begins, or ends.
  input  logic              go_i,
  input  logic              begins_i,
  input  logic              ends_i,
  input  logic [QueueW-1:0] queue_i,
  // Lines of the message from the one in the line stage on; what is fetched is the last line there is, or none; the queue
  // takes no more writes.
  input  logic [RestW-1:0]  rest_i,
  input  logic              fetch_last_i,
  input  logic              fetch_empty_i,
  input  logic              closing_i,
  output logic              shows_o,
  output logic              hold_o,
  output logic              flush_o,

  // What became of it, or will.
  input  logic              valid_i,
  input  logic              bad_i,
  input  logic              broken_i,
  output logic              told_valid_o,
  input  logic              told_taken_i,
  output logic              told_bad_o,
  output logic [QueueW-1:0] told_queue_o
);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      shows_o      <= 1'b0;
      hold_o       <= 1'b0;
      flush_o      <= 1'b0;
      told_valid_o <= 1'b0;
    end else begin
      if (go_i && begins_i) shows_o <= 1'b1;
      else if (go_i && ends_i) shows_o <= 1'b0;
      hold_o       <= go_i ? shows_o && fetch_last_i && !flush_o && rest_i > RestW'(3)
                           : hold_o && fetch_empty_i && !flush_o;
      flush_o      <= shows_o && !(go_i && ends_i) && (flush_o || broken_i || (hold_o && closing_i));
      told_valid_o <= valid_i || (told_valid_o && !told_taken_i);
    end
    if (valid_i) told_bad_o <= bad_i;
    if (go_i && begins_i) told_queue_o <= queue_i;
  end

endmodule

`default_nettype wire

// From the lines of a message to the beats of a frame: takes the header word off.
//
// The frame's bytes begin 8 bytes into the message's first line, so a beat is the upper 56 bytes of one line and the
// lower 8 of the next. The next line comes out of the pool while this one stands here; so every line makes at most one
// beat, in its own cycle, and a message of n lines never takes more than n cycles. Lines that make none go that way,
// so that a message has left when everything before it has.
//
// Guarantees: valid never falls without ready, data stand still while they wait; a frame has exactly the bytes that its
// header says; `gone` is told once a message, when its last beat is taken, in order.
// Batches are taken apart by `batch_walker`, whose beats come from the same two lines; a batch that is only looked at
// makes nothing but a verdict.
// Latency 1 cycle. Cost: 560 registers. Twin: Frame::gather in nic/model/src/mmio/message.rs.

`default_nettype none

module frame_cutter #(
  parameter int unsigned QueueW = 6,
  // Bits of a count of lines of a message, and of a position.
  parameter int unsigned LinesW = 7,
  parameter int unsigned PosW = 8
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  // Strap: bytes of the longest frame.
  input  logic [13:0]       max_frame_bytes_i,

  input  logic              line_valid_i,
  output logic              line_ready_o,
  input  logic              line_first_i,
  input  logic              line_last_i,
  input  logic              line_skip_i,
  input  logic              line_batch_i,
  input  logic              line_scan_i,
  input  logic [QueueW-1:0] line_queue_i,
  input  logic [23:0]       line_bytes_i,
  input  logic [LinesW-1:0] line_lines_i,
  input  logic [PosW-1:0]   line_next_start_i,
  input  logic [511:0]      line_data_i,
  // The line behind this one.
  input  logic [511:0]      next_data_i,

  output logic              frame_valid_o,
  input  logic              frame_ready_i,
  output logic [511:0]      frame_data_o,
  output logic [6:0]        frame_bytes_o,
  output logic              frame_last_o,
  output logic [QueueW-1:0] frame_queue_o,

  // A message has left: its lines, and the position behind it.
  output logic              gone_valid_o,
  output logic [LinesW-1:0] gone_lines_o,
  output logic [PosW-1:0]   gone_next_start_o,
  output logic              is_empty_o,

  // A batch has been looked at.
  output logic              scanned_valid_o,
  input  logic              scanned_ready_i,
  output logic [QueueW-1:0] scanned_queue_o,
  output logic              scanned_bad_o,
  output logic              count_runts_o
);

  // Bytes of the frame still to come; a message that makes one has no more than a frame may have.
  logic [13:0] left, left_q;
  logic        room, take, has_beat, ends, entry_q, ends_message_q;
  logic        walks, advance, walk_beat, walk_last, walk_ends, verdict_valid, verdict_bad;
  logic [2:0]  walk_word;
  logic [6:0]  walk_bytes;

  assign is_empty_o   = !entry_q;
  assign room         = (!entry_q || !frame_valid_o || frame_ready_i) && (!scanned_valid_o || scanned_ready_i);
  assign line_ready_o = room && (!line_batch_i || advance);
  assign take         = line_valid_i && line_ready_o;
  assign left         = line_first_i ? line_bytes_i[13:0] : left_q;
  // The last line holds what is left, up to 56 bytes, or nothing.
  assign has_beat     = left != '0 && !line_skip_i;
  assign ends         = left[13:7] == '0 && !(left[6] && left[5:0] != '0);
  assign gone_valid_o = entry_q && ends_message_q && room;
  assign walks        = line_valid_i && line_batch_i;

  batch_walker u_walker (
    .clk_i, .rst_ni, .max_frame_bytes_i,
    .line_valid_i(walks), .line_first_i, .line_last_i, .line_scan_i, .line_bytes_i, .line_data_i, .step_i(room),
    .advance_o(advance), .beat_valid_o(walk_beat), .beat_word_o(walk_word), .beat_bytes_o(walk_bytes),
    .beat_last_o(walk_last), .ends_message_o(walk_ends), .verdict_valid_o(verdict_valid),
    .verdict_bad_o(verdict_bad), .count_runts_o
  );

  // A beat of a record is 64 bytes of two lines, from byte 2 of any word of the first one on.
  logic [1023:0] both;
  logic [511:0]  record_beat;
  assign both        = {next_data_i, line_data_i};
  assign record_beat = both[64 * walk_word + 16 +: 512];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) scanned_valid_o <= 1'b0;
    else if (room) scanned_valid_o <= walks && verdict_valid;
    if (room) begin
      scanned_bad_o   <= verdict_bad;
      scanned_queue_o <= line_queue_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      entry_q       <= 1'b0;
      frame_valid_o <= 1'b0;
    end else if (room) begin
      entry_q       <= line_valid_i && (!line_batch_i || walk_beat || walk_ends);
      frame_valid_o <= line_valid_i && (line_batch_i ? walk_beat : has_beat);
    end
    if (take) left_q <= ends ? '0 : left - 14'd64;
    if (room) begin
      frame_data_o      <= line_batch_i ? record_beat : {next_data_i[63:0], line_data_i[511:64]};
      frame_bytes_o     <= line_batch_i ? walk_bytes : (ends ? left[6:0] : 7'd64);
      frame_last_o      <= line_batch_i ? walk_last : ends;
      frame_queue_o     <= line_queue_i;
      ends_message_q    <= line_batch_i ? walk_ends : line_last_i;
      gone_lines_o      <= line_lines_i;
      gone_next_start_o <= line_next_start_i;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_last_line_is_enough : assert (!(take && line_last_i && !line_skip_i && !line_batch_i) || left <= 14'd56);
      a_no_empty_beat       : assert (!frame_valid_o || (frame_bytes_o >= 7'd1 && frame_bytes_o <= 7'd64));
      a_full_but_the_last   : assert (!frame_valid_o || frame_last_o || frame_bytes_o == 7'd64);
    end
  end
`endif

endmodule

`default_nettype wire

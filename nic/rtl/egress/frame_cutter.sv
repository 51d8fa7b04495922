// From the lines of a message to the beats of a frame: takes the header word off.
//
// The frame's bytes begin 8 bytes into the message's first line, so a beat is the upper 56 bytes of one line and the
// lower 8 of the next, whose first word stands beside it; so every line makes at most one beat, in its own cycle, and a
// message of n lines never takes more than n cycles. Lines that make none go that way, so that a message has left when
// everything before it has.
//
// A batch's line is held here for a cycle more than another, so that it and the next one both come out of registers
// when a beat of any of its words is made of them. What a line makes stands at the port in the same cycle, and is kept
// when the wire does not take it; so whether a line may come in does not hang on the wire's `ready`: all stages of the
// reader wait for that.
//
// Guarantees: valid never falls without ready, data stand still while they wait; a frame has exactly the bytes that its
// header says; `gone` is told once a message, when its last beat is taken, in order.
// A line of a message that is shown before it is whole (`early`) marks its beat; nothing is told of its message when it
// has left. One with `abort` ends its frame in a beat that says so.
// Batches are taken apart by `batch_walker`, whose beats come from the same two lines; a batch that is only looked at
// makes nothing but an outcome. A line of another message waits until all of a batch's are gone.
// Latency none, 1 cycle for a batch. Cost: 1,150 registers. Twin: Frame::gather in nic/model/src/mmio/message.rs.

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
  input  logic              line_early_i,
  input  logic              line_abort_i,
  input  logic [QueueW-1:0] line_queue_i,
  input  logic [23:0]       line_bytes_i,
  input  logic [LinesW-1:0] line_lines_i,
  input  logic [PosW-1:0]   line_next_start_i,
  input  logic [511:0]      line_data_i,
  // The first word of the line behind this one.
  input  logic [63:0]       next_word_i,

  output logic              frame_valid_o,
  input  logic              frame_ready_i,
  output logic [511:0]      frame_data_o,
  output logic [6:0]        frame_bytes_o,
  output logic              frame_last_o,
  output logic [QueueW-1:0] frame_queue_o,
  output logic              frame_early_o,
  output logic              frame_abort_o,

  // A message has left: its lines, and the position behind it.
  output logic              gone_valid_o,
  output logic [LinesW-1:0] gone_lines_o,
  output logic [PosW-1:0]   gone_next_start_o,
  output logic              is_empty_o,
  // Something of this queue is in here, apart from the line in front.
  input  logic [QueueW-1:0] look_queue_i,
  output logic              look_held_o,

  // A batch has been looked at.
  output logic              scanned_valid_o,
  input  logic              scanned_ready_i,
  output logic [QueueW-1:0] scanned_queue_o,
  output logic              scanned_bad_o,
  output logic              count_runts_o
);

  // What a line makes: a beat, the end of its message, both or nothing but its place in the order.
  typedef struct packed {
    logic              beat, last, early, spoils, ends_message;
    logic [6:0]        bytes;
    logic [QueueW-1:0] queue_index;
    logic [LinesW-1:0] lines;
    logic [PosW-1:0]   next_start;
    logic [511:0]      data;
  } entry_t;

  // Bytes of the frame still to come; a message that makes one has no more than a frame may have.
  logic [13:0] left, left_q;
  logic        take, has_beat, ends;

  // A line of a batch, while its beats are made; the line behind it is the one that wants to come in.
  typedef struct packed {
    logic              first, last, scan;
    logic [QueueW-1:0] queue_index;
    logic [23:0]       bytes;
    logic [LinesW-1:0] lines;
    logic [PosW-1:0]   next_start;
    logic [511:0]      data;
  } held_t;
  held_t       held_q;
  logic        holds_q, step, goes_on, advance, walk_beat, walk_last, walk_ends, outcome_valid, outcome_bad;
  logic [2:0]  walk_word;
  logic [6:0]  walk_bytes;

  entry_t      made, kept_q, front;
  logic        makes, keeps_q, has_front, moves;
  // Nothing is kept: once more, for the way back, because the other chooses every bit at the port.
  logic        room_q;

  assign line_ready_o = room_q && (!holds_q || goes_on);
  assign take         = line_valid_i && line_ready_o;
  assign left         = line_first_i ? line_bytes_i[13:0] : left_q;
  // The last line holds what is left, up to 56 bytes, or nothing.
  assign has_beat     = left != '0 && !line_skip_i;
  assign ends         = left[13:7] == '0 && !(left[6] && left[5:0] != '0);

  // ---------------------------------------------------------------------------------------------- batches
  // One outcome waits for its taker, and the next one for that.
  assign step = room_q && !(outcome_valid && scanned_valid_o);

  batch_walker u_walker (
    .clk_i, .rst_ni, .max_frame_bytes_i,
    .line_valid_i(holds_q), .line_first_i(held_q.first), .line_last_i(held_q.last), .line_scan_i(held_q.scan),
    .line_bytes_i(held_q.bytes), .line_data_i(held_q.data), .step_i(step), .next_last_i(line_last_i),
    .goes_on_o(goes_on), .advance_o(advance), .beat_valid_o(walk_beat), .beat_word_o(walk_word),
    .beat_bytes_o(walk_bytes), .beat_last_o(walk_last), .ends_message_o(walk_ends),
    .outcome_valid_o(outcome_valid), .outcome_bad_o(outcome_bad), .count_runts_o
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) holds_q <= 1'b0;
    else if (take && line_batch_i) holds_q <= 1'b1;
    else if (step && advance) holds_q <= 1'b0;
    if (line_ready_o) begin
      held_q <= '{
        first: line_first_i, last: line_last_i, scan: line_scan_i, queue_index: line_queue_i, bytes: line_bytes_i,
        lines: line_lines_i, next_start: line_next_start_i, data: line_data_i
      };
    end
    if (!rst_ni) scanned_valid_o <= 1'b0;
    else if (holds_q && step && outcome_valid) scanned_valid_o <= 1'b1;
    else if (scanned_ready_i) scanned_valid_o <= 1'b0;
    if (!scanned_valid_o) begin
      scanned_bad_o   <= outcome_bad;
      scanned_queue_o <= held_q.queue_index;
    end
  end

  // A beat of a record is 64 bytes of two lines, from byte 2 of any word of the first one on.
  logic [1023:0] both;
  logic [511:0]  record_beat;
  assign both        = {line_data_i, held_q.data};
  assign record_beat = both[64 * walk_word + 16 +: 512];

  // ---------------------------------------------------------------------------------------------- in front of the wire
  assign makes     = holds_q ? walk_beat || walk_ends : line_valid_i && !line_batch_i;
  assign front     = keeps_q ? kept_q : made;
  assign has_front = keeps_q || makes;
  assign moves     = !front.beat || frame_ready_i;

  always_comb begin
    made = '{
      beat: has_beat, last: ends || line_abort_i, early: line_early_i, spoils: line_abort_i,
      ends_message: line_last_i && !line_early_i, bytes: line_abort_i ? 7'd1 : (ends ? left[6:0] : 7'd64),
      queue_index: line_queue_i, lines: line_lines_i, next_start: line_next_start_i,
      data: {next_word_i, line_data_i[511:64]}
    };
    if (holds_q) begin
      made = '{
        beat: walk_beat, last: walk_last, early: 1'b0, spoils: 1'b0, ends_message: walk_ends, bytes: walk_bytes,
        queue_index: held_q.queue_index, lines: held_q.lines, next_start: held_q.next_start, data: record_beat
      };
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) keeps_q <= 1'b0;
    else keeps_q <= has_front && !moves;
    if (!rst_ni) room_q <= 1'b1;
    else room_q <= !(has_front && !moves);
    if (take && !line_batch_i) left_q <= ends ? '0 : left - 14'd64;
    if (!keeps_q) kept_q <= made;
  end

  assign frame_valid_o     = has_front && front.beat;
  assign frame_data_o      = front.data;
  assign frame_bytes_o     = front.bytes;
  assign frame_last_o      = front.last;
  assign frame_queue_o     = front.queue_index;
  assign frame_early_o     = front.early;
  assign frame_abort_o     = front.spoils;
  assign gone_valid_o      = has_front && front.ends_message && moves;
  assign gone_lines_o      = front.lines;
  assign gone_next_start_o = front.next_start;
  // Apart from the line that stands in front of it.
  assign is_empty_o        = !keeps_q && !holds_q;
  assign look_held_o       = (keeps_q && kept_q.queue_index == look_queue_i)
                             || (holds_q && held_q.queue_index == look_queue_i);

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_room_is_told        : assert (room_q == !keeps_q);
      a_batch_goes_on       : assert (!(take && holds_q) || (line_batch_i && !line_first_i));
      a_last_line_is_enough : assert (!(take && line_last_i && !line_skip_i && !line_batch_i && !line_abort_i)
                                      || left <= 14'd56);
      a_no_empty_beat       : assert (!frame_valid_o || (frame_bytes_o >= 7'd1 && frame_bytes_o <= 7'd64));
      a_full_but_the_last   : assert (!frame_valid_o || frame_last_o || frame_bytes_o == 7'd64);
    end
  end
`endif

endmodule

`default_nettype wire

// What is proved of nic/rtl/egress/frame_cutter.sv, for every length of run, by k-induction
// (nic/formal/frame_cutter.sby):
//   - beat k of a frame is the upper 56 bytes of the message's line k and the lower 8 of line k + 1, unchanged, and
//     says that queue; the bytes of its beats add up to what the header said, 64 in every beat but the last;
//   - a message without a frame gives no beat;
//   - `gone` comes once a message, in order, with that message's lines and position, when all its beats were taken;
//   - valid, data, bytes, last and queue stand still until they are taken;
//   - `look_held` says of each queue whether something of it is inside.
// Of messages that are no batches: what a batch is taken apart into is only simulated.
//
// Assumed: a message's lines come one behind the other, as many as its bytes need; the next line stands beside each;
// a message that makes a frame is no longer than the strap allows (message_reader_proof.sv), one that makes none has
// less than 4 MiB, so a window less than 65,536 lines. All widths are those of the hardware but for queue and
// position, which are passed on unread.

`default_nettype none

module frame_cutter_proof #(
  parameter int unsigned QueueW = 1,
  parameter int unsigned LinesW = 3,
  parameter int unsigned PosW = 4
) (
  input logic              clk_i,
  input logic              rst_ni,
  input logic              line_valid_i,
  input logic              line_first_i,
  input logic              line_last_i,
  input logic              line_skip_i,
  input logic              line_batch_i,
  input logic              line_scan_i,
  input logic              scanned_ready_i,
  input logic [13:0]       max_frame_bytes_i,
  input logic [QueueW-1:0] line_queue_i,
  input logic [23:0]       line_bytes_i,
  input logic [LinesW-1:0] line_lines_i,
  input logic [PosW-1:0]   line_next_start_i,
  input logic [511:0]      line_data_i,
  input logic [63:0]       next_word_i,
  input logic              frame_ready_i,
  input logic [QueueW-1:0] look_queue_i
);

  logic              line_ready, frame_valid, frame_last, gone_valid, is_empty, look_held, scanned_valid;
  logic              scanned_bad;
  logic [511:0]      frame_data;
  logic [6:0]        frame_bytes;
  logic [QueueW-1:0] frame_queue, scanned_queue;
  logic [LinesW-1:0] gone_lines;
  logic [PosW-1:0]   gone_next_start;

  frame_cutter #(.QueueW(QueueW), .LinesW(LinesW), .PosW(PosW)) dut (
    .clk_i, .rst_ni, .max_frame_bytes_i, .line_valid_i, .line_ready_o(line_ready), .line_first_i, .line_last_i,
    .line_skip_i, .line_batch_i, .line_scan_i, .line_queue_i, .line_bytes_i, .line_lines_i, .line_next_start_i,
    .line_data_i, .next_word_i, .scanned_valid_o(scanned_valid), .scanned_ready_i, .scanned_queue_o(scanned_queue),
    .scanned_bad_o(scanned_bad), .count_runts_o(),
    .frame_valid_o(frame_valid), .frame_ready_i, .frame_data_o(frame_data), .frame_bytes_o(frame_bytes),
    .frame_last_o(frame_last), .frame_queue_o(frame_queue), .gone_valid_o(gone_valid), .gone_lines_o(gone_lines),
    .gone_next_start_o(gone_next_start), .is_empty_o(is_empty), .look_queue_i,
    .look_held_o(look_held)
  );

  logic take, beat;
  assign take = line_valid_i && line_ready;
  assign beat = frame_valid && frame_ready_i;

  // The message that comes in: its bytes, whether it makes a frame, its lines that are still to come.
  logic        started_q = 1'b0;
  logic        inside_q = 1'b0;
  logic        skip_q;
  logic [23:0] bytes_q, bytes, taken_q, taken;
  logic [18:0] rest_q, rest;
  assign bytes = line_first_i ? line_bytes_i : bytes_q;
  assign taken = line_first_i ? '0 : taken_q;
  assign rest  = line_first_i ? 19'((25'(line_bytes_i) + 25'd71) >> 6) : rest_q;

  // What was taken: what stands in front of the wire, and behind that; what has come out of the first one's message.
  typedef struct packed {
    logic              last, skip;
    logic [23:0]       bytes, before_line;
    logic [511:0]      data;
    logic [QueueW-1:0] queue_index;
    logic [LinesW-1:0] lines;
    logic [PosW-1:0]   next_start;
  } line_t;
  logic        front_valid_q = 1'b0;
  logic        spare_valid_q = 1'b0;
  line_t       taken_line, front_q, spare_q, newest;
  logic [23:0] out_q, out_d, front_due, spare_due;
  logic        moves;
  assign taken_line = '{
    last: line_last_i, skip: line_skip_i, bytes: bytes, before_line: taken,
    data: {next_word_i, line_data_i[511:64]}, queue_index: line_queue_i, lines: line_lines_i,
    next_start: line_next_start_i
  };
  assign newest = spare_valid_q ? spare_q : front_q;
  assign moves  = !front_valid_q || !frame_valid || frame_ready_i;

  // Bytes of the beat that a line makes.
  function automatic logic [23:0] due(input line_t line);
    if (line.skip || line.bytes <= line.before_line) return '0;
    return (line.bytes - line.before_line > 24'd64) ? 24'd64 : line.bytes - line.before_line;
  endfunction
  // Bytes of all lines of its message.
  function automatic logic [24:0] whole(input logic [23:0] bytes_of);
    return (25'(bytes_of) + 25'd71) & ~25'd63;
  endfunction
  // What is true of every line that was taken.
  function automatic logic is_line(input line_t line);
    return line.before_line[5:0] == '0 && line.bytes < 24'h40_0000 && line.before_line < line.bytes + 24'd8
        && (!line.last || 25'(line.before_line) + 25'd64 == whole(line.bytes));
  endfunction
  assign front_due = due(front_q);
  assign spare_due = due(spare_q);
  assign out_d     = out_q + (beat ? 24'(frame_bytes) : '0);

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    if (!started_q) assume (!rst_ni);
    assume (!line_batch_i && line_bytes_i < 24'h40_0000);
    if (line_valid_i) begin
      assume (line_skip_i || line_bytes_i <= 24'(max_frame_bytes_i));
      assume (line_first_i == !inside_q);
      assume (line_last_i == (rest == 19'd1));
      if (!line_first_i) assume (line_skip_i == skip_q && line_bytes_i == bytes_q);
    end
    if (!rst_ni) begin
      inside_q      <= 1'b0;
      front_valid_q <= 1'b0;
      spare_valid_q <= 1'b0;
    end else begin
      if (take) begin
        inside_q <= !line_last_i;
        bytes_q  <= bytes;
        skip_q   <= line_skip_i;
        taken_q  <= taken + 24'd64;
        rest_q   <= rest - 1'b1;
      end
      if (moves) begin
        front_valid_q <= spare_valid_q || take;
        front_q       <= spare_valid_q ? spare_q : taken_line;
      end
      spare_valid_q <= !moves && (spare_valid_q || take);
      if (take) spare_q <= taken_line;
      // A message's first line comes to the front.
      out_q <= (moves && (spare_valid_q ? spare_q.before_line == '0 : take && line_first_i)) ? '0 : out_d;
    end
  end

  // The cycle before this one, for what must stand still.
  logic         waited_q = 1'b0;
  logic [511:0] waited_data_q;
  logic [8:0]   waited_side_q;
  logic         told_q = 1'b0;
  logic [1:0]   told_side_q;
  always_ff @(posedge clk_i) begin
    waited_q      <= rst_ni && frame_valid && !frame_ready_i;
    waited_data_q <= frame_data;
    waited_side_q <= {frame_bytes, frame_last, frame_queue};
    told_q        <= rst_ni && scanned_valid && !scanned_ready_i;
    told_side_q   <= {scanned_queue, scanned_bad};
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      if (waited_q) begin
        assert (frame_valid && frame_data == waited_data_q);
        assert ({frame_bytes, frame_last, frame_queue} == waited_side_q);
      end
      if (told_q) assert (scanned_valid && {scanned_queue, scanned_bad} == told_side_q);
      if (gone_valid) assert (!frame_valid || frame_ready_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      assert (is_empty == !front_valid_q && line_ready == !spare_valid_q);
      assert (look_held == ((front_valid_q && front_q.queue_index == look_queue_i)
                            || (spare_valid_q && spare_q.queue_index == look_queue_i)));
      if (!front_valid_q) assert (!frame_valid && !gone_valid && !spare_valid_q);
      if (front_valid_q) begin
        assert (frame_valid == (front_due != '0));
        assert (gone_valid == (front_q.last && moves));
        if (frame_valid) begin
          assert (frame_data == front_q.data && frame_queue == front_q.queue_index && 24'(frame_bytes) == front_due);
          assert (frame_last == (front_q.before_line + front_due == front_q.bytes));
        end
        // All bytes of the lines before this one have come out; with the last one, all of the message.
        if (!front_q.skip) begin
          assert (out_q == ((front_q.before_line < front_q.bytes) ? front_q.before_line : front_q.bytes));
        end
        if (gone_valid) assert (out_d == (front_q.skip ? '0 : front_q.bytes));
        assert (gone_lines == front_q.lines && gone_next_start == front_q.next_start);
      end
      assert (!scanned_valid);
      // Invariants that make it inductive.
      assert (!dut.holds_q && dut.has_front_q == front_valid_q && dut.has_spare_q == spare_valid_q);
      if (front_valid_q) begin
        assert (is_line(front_q) && dut.front_q.ends_message == front_q.last);
        assert (newest.last == !inside_q && bytes_q == newest.bytes && taken_q == newest.before_line + 24'd64);
        assert (skip_q == newest.skip);
        if (front_q.skip) assert (out_q == '0);
      end else begin
        if (inside_q && !skip_q) assert (out_q == ((taken_q < bytes_q) ? taken_q : bytes_q));
        if (inside_q && skip_q) assert (out_q == '0);
      end
      if (spare_valid_q) begin
        assert (is_line(spare_q));
        if (front_q.last) begin
          assert (spare_q.before_line == '0);
        end else begin
          assert (spare_q.before_line == front_q.before_line + 24'd64 && spare_q.bytes == front_q.bytes);
          assert (spare_q.skip == front_q.skip);
        end
        assert (dut.spare_q.beat == (spare_due != '0) && dut.spare_q.ends_message == spare_q.last);
        if (spare_due != '0) begin
          assert (dut.spare_q.data == spare_q.data && 24'(dut.spare_q.bytes) == spare_due);
          assert (dut.spare_q.last == (spare_q.before_line + spare_due == spare_q.bytes));
        end
        assert (dut.spare_q.queue_index == spare_q.queue_index && dut.spare_q.lines == spare_q.lines);
        assert (dut.spare_q.next_start == spare_q.next_start);
      end
      if (front_valid_q) assert (dut.front_q.queue_index == front_q.queue_index);
      if (inside_q) begin
        assert (taken_q[5:0] == '0 && rest_q >= 19'd1 && bytes_q < 24'h40_0000 && taken_q < bytes_q + 24'd8);
        assert (25'(taken_q) + {rest_q, 6'd0} == ((25'(bytes_q) + 25'd71) & ~25'd63));
        if (!skip_q) assert (24'(dut.left_q) == ((taken_q < bytes_q) ? bytes_q - taken_q : '0));
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      cover (gone_valid && out_d == 24'd180 && waited_q);
      cover (gone_valid && front_q.skip && front_q.before_line == 24'd64);
      cover (gone_valid && !frame_valid && !front_q.skip && front_q.bytes == 24'd64);
      cover (spare_valid_q && front_q.last && frame_valid && spare_q.queue_index != front_q.queue_index);
    end
  end

endmodule

`default_nettype wire

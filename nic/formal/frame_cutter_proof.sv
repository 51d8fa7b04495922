// What is proved of nic/rtl/egress/frame_cutter.sv, for every length of run, by k-induction
// (nic/formal/frame_cutter.sby):
//   - beat k of a frame is the upper 56 bytes of the message's line k and the lower 8 of line k + 1, unchanged, and
//     says that queue; the bytes of its beats add up to what the header said, 64 in every beat but the last;
//   - a message without a frame gives no beat;
//   - `gone` comes once a message, in order, with that message's lines and position, when all its beats were taken;
//   - valid, data, bytes, last and queue stand still until they are taken;
//   - `look_held` says of each queue whether something of it is inside;
//   - a frame that began early ends with its last byte, all of them having come out, or at the line that says so, in a
//     beat with `abort`; nothing is told to be gone of its message.
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
  input logic              line_early_i,
  input logic              line_abort_i,
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
  logic              scanned_bad, frame_early, frame_abort;
  logic [511:0]      frame_data;
  logic [6:0]        frame_bytes;
  logic [QueueW-1:0] frame_queue, scanned_queue;
  logic [LinesW-1:0] gone_lines;
  logic [PosW-1:0]   gone_next_start;

  frame_cutter #(.QueueW(QueueW), .LinesW(LinesW), .PosW(PosW)) dut (
    .clk_i, .rst_ni, .max_frame_bytes_i, .line_valid_i, .line_ready_o(line_ready), .line_first_i, .line_last_i,
    .line_skip_i, .line_batch_i, .line_scan_i, .line_early_i, .line_abort_i, .frame_early_o(frame_early),
    .frame_abort_o(frame_abort), .line_queue_i, .line_bytes_i, .line_lines_i, .line_next_start_i,
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

  // A line that was taken and whose beat was not; what has come out of the message of the first line before this cycle.
  typedef struct packed {
    logic              last, skip, early, abort;
    logic [23:0]       bytes, before_line;
    logic [511:0]      data;
    logic [QueueW-1:0] queue_index;
    logic [LinesW-1:0] lines;
    logic [PosW-1:0]   next_start;
  } line_t;
  logic        kept_valid_q = 1'b0;
  line_t       taken_line, front, kept_q;
  logic [23:0] out_q, out, out_d, due_front, due_kept;
  logic        front_valid, moves;
  assign taken_line = '{
    last: line_last_i, skip: line_skip_i, early: line_early_i, abort: line_abort_i, bytes: bytes, before_line: taken,
    data: {next_word_i, line_data_i[511:64]}, queue_index: line_queue_i, lines: line_lines_i,
    next_start: line_next_start_i
  };
  assign front       = kept_valid_q ? kept_q : taken_line;
  assign front_valid = kept_valid_q || line_valid_i;
  assign moves       = !frame_valid || frame_ready_i;

  // Bytes of the beat that a line makes.
  function automatic logic [23:0] due(input line_t line);
    if (line.skip || line.bytes <= line.before_line) return '0;
    if (line.abort) return 24'd1;
    return (line.bytes - line.before_line > 24'd64) ? 24'd64 : line.bytes - line.before_line;
  endfunction
  // Bytes of all lines of its message.
  function automatic logic [24:0] whole(input logic [23:0] bytes_of);
    return (25'(bytes_of) + 25'd71) & ~25'd63;
  endfunction
  // What is true of every line that was taken.
  function automatic logic is_line(input line_t line);
    return line.before_line[5:0] == '0 && line.bytes < 24'h40_0000 && line.before_line < line.bytes + 24'd8
        && (!line.last || line.abort || 25'(line.before_line) + 25'd64 == whole(line.bytes));
  endfunction
  assign due_front = due(front);
  assign due_kept  = due(kept_q);
  assign out       = (front.before_line == '0) ? '0 : out_q;
  assign out_d     = out + (beat ? 24'(frame_bytes) : '0);

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    if (!started_q) assume (!rst_ni);
    assume (!line_batch_i && line_bytes_i < 24'h40_0000);
    if (line_valid_i) begin
      assume (line_skip_i || line_bytes_i <= 24'(max_frame_bytes_i));
      assume (line_first_i == !inside_q);
      assume (line_last_i == (rest == 19'd1 || line_abort_i));
      assume (!line_abort_i || line_early_i);
      if (!line_first_i) assume (line_skip_i == skip_q && line_bytes_i == bytes_q);
    end
    if (!rst_ni) begin
      inside_q     <= 1'b0;
      kept_valid_q <= 1'b0;
    end else begin
      if (take) begin
        inside_q <= !line_last_i;
        bytes_q  <= bytes;
        skip_q   <= line_skip_i;
        taken_q  <= taken + 24'd64;
        rest_q   <= rest - 1'b1;
      end
      kept_valid_q <= front_valid && !moves;
      if (!kept_valid_q) kept_q <= taken_line;
      if (front_valid) out_q <= out_d;
    end
  end

  // The cycle before this one, for what must stand still.
  logic         waited_q = 1'b0;
  logic [511:0] waited_data_q;
  logic [10:0]  waited_side_q;
  logic         told_q = 1'b0;
  logic [1:0]   told_side_q;
  always_ff @(posedge clk_i) begin
    waited_q      <= rst_ni && frame_valid && !frame_ready_i;
    waited_data_q <= frame_data;
    waited_side_q <= {frame_bytes, frame_last, frame_early, frame_abort, frame_queue};
    told_q        <= rst_ni && scanned_valid && !scanned_ready_i;
    told_side_q   <= {scanned_queue, scanned_bad};
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      if (waited_q) begin
        assert (frame_valid && frame_data == waited_data_q);
        assert ({frame_bytes, frame_last, frame_early, frame_abort, frame_queue} == waited_side_q);
      end
      if (told_q) assert (scanned_valid && {scanned_queue, scanned_bad} == told_side_q);
      if (gone_valid) assert (!frame_valid || frame_ready_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      assert (is_empty == !kept_valid_q && line_ready == !kept_valid_q);
      assert (look_held == (kept_valid_q && kept_q.queue_index == look_queue_i));
      if (!front_valid) assert (!frame_valid && !gone_valid);
      if (front_valid) begin
        assert (frame_valid == (due_front != '0));
        assert (gone_valid == (front.last && !front.early && moves));
        if (frame_valid) assert (frame_early == front.early && frame_abort == front.abort);
        if (frame_valid) begin
          assert (frame_data == front.data && frame_queue == front.queue_index && 24'(frame_bytes) == due_front);
          assert (frame_last == (front.abort || front.before_line + due_front == front.bytes));
          if (frame_last && !frame_abort) assert (out_d - (beat ? 24'(frame_bytes) : '0) + due_front == front.bytes);
        end
        // All bytes of the lines before this one have come out; with the last one, all of the message.
        if (!front.skip) assert (out == ((front.before_line < front.bytes) ? front.before_line : front.bytes));
        if (gone_valid) assert (out_d == (front.skip ? '0 : front.bytes));
        if (gone_valid) assert (gone_lines == front.lines && gone_next_start == front.next_start);
      end
      assert (!scanned_valid);
      // Invariants that make it inductive.
      assert (!dut.holds_q && dut.keeps_q == kept_valid_q && dut.room_q == !kept_valid_q);
      if (kept_valid_q) begin
        assert (is_line(kept_q) && due_kept != '0 && dut.kept_q.beat);
        assert (dut.kept_q.ends_message == (kept_q.last && !kept_q.early));
        assert (dut.kept_q.early == kept_q.early && dut.kept_q.spoils == kept_q.abort);
        if (kept_q.abort) assert (kept_q.last && kept_q.early);
        assert (kept_q.last == !inside_q && bytes_q == kept_q.bytes && taken_q == kept_q.before_line + 24'd64);
        assert (skip_q == kept_q.skip && !kept_q.skip);
        assert (dut.kept_q.data == kept_q.data && 24'(dut.kept_q.bytes) == due_kept);
        assert (dut.kept_q.last == (kept_q.abort || kept_q.before_line + due_kept == kept_q.bytes));
        assert (dut.kept_q.queue_index == kept_q.queue_index && dut.kept_q.lines == kept_q.lines);
        assert (dut.kept_q.next_start == kept_q.next_start);
      end else begin
        if (inside_q && !skip_q) assert (out_q == ((taken_q < bytes_q) ? taken_q : bytes_q));
        if (inside_q && skip_q) assert (out_q == '0);
      end
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
      cover (gone_valid && front.skip && front.before_line == 24'd64);
      cover (gone_valid && !frame_valid && !front.skip && front.bytes == 24'd64);
      cover (kept_valid_q && kept_q.last && line_valid_i && line_queue_i != kept_q.queue_index);
    end
  end

endmodule

`default_nettype wire

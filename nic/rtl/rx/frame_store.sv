// Frames from the wire, until they are on their way to host memory: store and forward, in order.
//
// Guarantees
//   - A frame's length is told (`frame_*`) when its last beat is in the store. A frame longer than
//     MaxFrameBytes is let go and counted instead. The wire is held (`wire_ready_o` low) while there is no
//     line, or no place for a length.
//   - With `hash_i` the first bytes of a frame go to the steering before its length is told, and
//     `frame_hashed_o` says so.
// Limits
//   - Lines hold at least two of the longest frames, so a frame that is coming in never waits for itself.
// Latency: 2 cycles from the last beat to the length. One beat a cycle, and one cycle or two between frames.
// Cost: Lines x 512 bits of RAM, 1,300 registers.
// Twin: none; the model is handed whole frames.

`default_nettype none

module frame_store #(
  // Lines, a power of two from 128 to 4096.
  parameter int unsigned Lines = 512,
  // Frames, a power of two from 2 to 256.
  parameter int unsigned Frames = 64,
  // Longest frame in bytes, 64 to 9216.
  parameter int unsigned MaxFrameBytes = 9216,
  localparam int unsigned LineW = $clog2(Lines),
  localparam int unsigned HeadBytes = 80
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   wire_valid_i,
  output logic                   wire_ready_o,
  input  logic [511:0]           wire_data_i,
  input  logic [6:0]             wire_bytes_i,
  input  logic                   wire_last_i,

  input  logic                   hash_i,
  output logic                   head_valid_o,
  input  logic                   head_ready_i,
  output logic [8*HeadBytes-1:0] head_data_o,
  output logic [6:0]             head_bytes_o,

  output logic                   frame_valid_o,
  input  logic                   frame_ready_i,
  output logic [13:0]            frame_bytes_o,
  output logic                   frame_hashed_o,

  // The reader's line, a cycle after its address while read_enable_i is high; lines that it is done with.
  input  logic                   read_enable_i,
  input  logic [LineW-1:0]       read_line_i,
  output logic [511:0]           read_data_o,
  input  logic                   free_valid_i,
  input  logic [7:0]             free_lines_i,

  output logic                   count_rx_oversize_o
);

  localparam int unsigned LongestLines = (MaxFrameBytes + nic_pkg::LineBytes - 1) / nic_pkg::LineBytes;
  localparam int unsigned TailBytes = MaxFrameBytes - (LongestLines - 1) * nic_pkg::LineBytes;

  if (Lines < 128 || Lines > 4096 || (Lines & (Lines - 1)) != 0) begin : g_bad_lines
    $fatal(1, "frame_store: Lines must be a power of two from 128 to 4096");
  end
  if (Lines < 2 * LongestLines + 2) begin : g_few_lines
    $fatal(1, "frame_store: Lines must hold two frames of MaxFrameBytes and two lines");
  end

  logic [511:0]     mem [Lines];
  logic [511:0]     read_q;
  logic [LineW-1:0] tail_q, tail_d, start_q, start_d;
  logic [LineW:0]   free_q, free_d, change_q, change_d;
  logic [7:0]       beats_q, beats_d, freed_lines_q;
  logic             is_long_q, is_long_d, is_first_q, is_second_q, take, ends, keeps;
  logic [13:0]      length;
  logic             is_over;
  logic             head_valid_q, head_valid_d, wants_head, length_ready;
  logic [8*HeadBytes-1:0] head_q;
  logic [6:0]       head_bytes_q;
  logic             length_valid_q, length_valid_d, length_hashed_q;
  logic [13:0]      length_q;
  logic [$clog2(Frames):0] unused_count;

  // A beat is taken when a line is free and the head and the length of the frame before it have gone: from
  // registers alone.
  assign wire_ready_o = free_q[LineW:1] != '0 && !head_valid_q && !length_valid_q;
  assign take    = wire_valid_i && wire_ready_o;
  assign length  = {beats_q, 6'd0} + 14'(wire_bytes_i);
  assign is_over = is_long_q || beats_q == 8'(LongestLines) ||
                   beats_q == 8'(LongestLines - 1) && wire_bytes_i > 7'(TailBytes);
  assign ends    = take && wire_last_i;
  assign keeps   = ends && !is_over;
  assign wants_head = keeps && hash_i;

  always_comb begin
    tail_d    = tail_q;
    start_d   = start_q;
    change_d  = (LineW + 1)'(freed_lines_q);
    // What was taken a cycle ago is not counted yet, so one line is always left.
    free_d    = free_q + change_q;
    beats_d   = beats_q;
    is_long_d = is_long_q;
    if (take && !is_over) begin
      tail_d  = tail_q + 1'b1;
      change_d = (LineW + 1)'(freed_lines_q) - 1'b1;
      beats_d = beats_q + 8'd1;
    end
    if (take) is_long_d = is_over;
    if (ends) begin
      beats_d   = '0;
      is_long_d = 1'b0;
      start_d   = tail_d;
      if (is_over) begin
        // Its lines are taken back.
        tail_d  = start_q;
        start_d = start_q;
        change_d = (LineW + 1)'(freed_lines_q) + (LineW + 1)'(beats_q);
      end
    end
    head_valid_d   = wants_head || head_valid_q && !head_ready_i;
    length_valid_d = keeps || length_valid_q && !length_ready;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      tail_q         <= '0;
      start_q        <= '0;
      free_q         <= (LineW + 1)'(Lines);
      change_q       <= '0;
      beats_q        <= '0;
      is_long_q      <= 1'b0;
      is_first_q     <= 1'b1;
      is_second_q    <= 1'b0;
      head_valid_q   <= 1'b0;
      length_valid_q <= 1'b0;
    end else begin
      tail_q         <= tail_d;
      start_q        <= start_d;
      free_q         <= free_d;
      change_q       <= change_d;
      beats_q        <= beats_d;
      is_long_q      <= is_long_d;
      head_valid_q   <= head_valid_d;
      length_valid_q <= length_valid_d;
      if (take) begin
        is_first_q  <= wire_last_i;
        is_second_q <= is_first_q && !wire_last_i;
      end
    end
    freed_lines_q <= (rst_ni && free_valid_i) ? free_lines_i : '0;
    if (take && is_first_q)  head_q[511:0] <= wire_data_i;
    if (take && is_second_q) head_q[8*HeadBytes-1:512] <= wire_data_i[8*HeadBytes-513:0];
    if (keeps) begin
      head_bytes_q    <= (length > 14'(HeadBytes)) ? 7'(HeadBytes) : length[6:0];
      length_q        <= length;
      length_hashed_q <= hash_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (take && !is_over) mem[tail_q] <= wire_data_i;
    if (read_enable_i) read_q <= mem[read_line_i];
  end

  fifo #(.Width(15), .Depth(Frames)) u_lengths (
    .clk_i, .rst_ni,
    .push_valid_i(length_valid_q), .push_ready_o(length_ready), .push_data_i({length_hashed_q, length_q}),
    .pop_valid_o(frame_valid_o), .pop_ready_i(frame_ready_i), .pop_data_o({frame_hashed_o, frame_bytes_o}),
    .count_o(unused_count)
  );

  assign head_valid_o = head_valid_q;
  assign head_data_o  = head_q;
  assign head_bytes_o = head_bytes_q;
  assign read_data_o  = read_q;
  assign count_rx_oversize_o = ends && is_over;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (free_q <= (LineW + 1)'(Lines)) else $error("frame_store: more lines free than there are");
      assert (!take || wire_last_i || wire_bytes_i == 7'(nic_pkg::LineBytes))
        else $error("frame_store: a short beat inside a frame");
      assert (!take || wire_bytes_i != '0) else $error("frame_store: an empty beat");
    end
  end
`endif

endmodule

`default_nettype wire

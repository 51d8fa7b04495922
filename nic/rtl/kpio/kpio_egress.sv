// The other end of the kPIO+WC queues: packets leave as frames, without their signatures, and free their lines.
//
// Packets of all queues leave in the order in which they were completed. The lines of a queue lie in a ring; an entry
// says where a packet ends and how many lines it has, the line of signatures that may follow a full last line included.
//
// Guarantees
//   - A frame is offered only when all of it is stored, and stands still while it waits; frames are not mixed.
//   - One line a cycle: frames of one line leave one a cycle, back to back, whatever their queues.
//   - The lines of a packet are freed (`freed`) once, in order, after its last beat has been taken.
//   - Of a queue that has stopped no frame begins any more; one that has begun is sent to its end (`serving_o` says
//     so).
// Limits
//   - A frame that waits for the wire holds up the frames of the other kPIO queues. The order among them is that of
//     completion: classes and weights decide between engines, not among these queues.
//   - An entry lives for at most 2^GenerationW - 2 stops; the stops wait otherwise, until the wire takes a frame.
// Latency: entry to first beat 6 cycles. Cost: NumQueues x 2^LineW x 512 bits of line RAM, NumQueues x 2^LineW x
// (QueueW + GenerationW + LineW + 37 + OpenW) bits of entries, about 1,300 registers.
// Twin: nic/model/src/kpio/kpio_queue.rs (head, pop).

`default_nettype none

module kpio_egress #(
  // Queues, 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // log2 of the most lines of a window.
  parameter int unsigned LineW = 6,
  // Longest packet in lines.
  parameter int unsigned LongestLines = 145,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned OpenW = $clog2(LongestLines + 1),
  localparam int unsigned GenerationW = kpio_pkg::GenerationW
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  // Strap: lines of every window less 1.
  input  logic [LineW-1:0]   window_mask_i,

  // Lines to store, and packets that are complete; see kpio_queue.
  input  logic               line_we_i,
  input  logic [QueueW-1:0]  line_queue_i,
  input  logic [LineW-1:0]   line_at_i,
  input  logic [511:0]       line_data_i,

  output logic               entry_room_o,
  input  logic               entry_valid_i,
  input  logic [QueueW-1:0]  entry_queue_i,
  input  logic [GenerationW-1:0] entry_generation_i,
  input  logic [31:0]        entry_end_i,
  input  logic [LineW:0]     entry_position_i,
  input  logic [OpenW-1:0]   entry_lines_i,
  input  logic [2:0]         entry_words_i,
  input  logic               entry_send_i,

  // A queue stops and goes on to this generation. `serving_o`: a frame of `asked_queue_i` is still on its way out.
  output logic               stop_room_o,
  input  logic               stop_we_i,
  input  logic [QueueW-1:0]  stop_queue_i,
  input  logic [GenerationW-1:0] stop_generation_i,
  input  logic [QueueW-1:0]  asked_queue_i,
  output logic               serving_o,

  // Lines freed: absolute count, and the position with its lap behind them.
  output logic               freed_valid_o,
  output logic [QueueW-1:0]  freed_queue_o,
  output logic [LineW:0]     freed_position_o,
  output logic [31:0]        freed_lines_o,

  // Frames.
  output logic               frame_valid_o,
  input  logic               frame_ready_i,
  output logic [511:0]       frame_data_o,
  output logic [6:0]         frame_bytes_o,
  output logic               frame_last_o,
  output logic [QueueW-1:0]  frame_queue_o
);

  // Every line that a queue holds may be a packet. Two more are under way when the room is gone.
  localparam int unsigned EntriesW = $clog2(NumQueues) + LineW + 1;
  localparam int unsigned Margin = 4;
  localparam int unsigned LinesW = $clog2(NumQueues) + LineW;

  typedef struct packed {
    logic [QueueW-1:0]      queue_id;
    logic [GenerationW-1:0] generation;
    logic [31:0]            count_end;
    logic [LineW:0]         position;
    logic [OpenW-1:0]       lines;
    logic [2:0]             words;
    logic                   send;
  } entry_t;

  // What stays of an entry once it is being served.
  typedef struct packed {
    logic [QueueW-1:0]      queue_id;
    logic [31:0]            count_end;
    logic [LineW:0]         position;
    // Bytes of the last beat.
    logic [6:0]             bytes;
    logic                   send;
  } served_t;

  // The entries.
  entry_t                 entries [2**EntriesW];
  entry_t                 entry_q, checked_q;
  logic [EntriesW-1:0]    write_q, read_q, next_q, read_d, used;
  logic                   entry_valid_q, checked_valid_q, pop, check_moves, room_q;

  // Which entries are of a queue's present life.
  logic [GenerationW-1:0] generation;
  logic                   live, live_q, fresh_q;

  // The packet at work, and its lines on their way.
  served_t                served2_q, served3_q, served4_q, served2_d;
  logic                   valid2_q, valid3_q, valid4_q, last2, last3_q, last4_q;
  logic [OpenW-1:0]       left_q, beats;
  logic [LineW-1:0]       at_q;
  logic                   advance, free2, load2;
  logic [511:0]           lines [NumQueues * 2**LineW];
  logic [511:0]           line_q, data_q;

  // The RAM's register always holds the entry that is read next; it counts once it has been written a cycle before.
  assign read_d = pop ? next_q : read_q;
  assign used   = write_q - read_q;

  always_ff @(posedge clk_i) begin
    if (entry_valid_i) begin
      entries[write_q] <= '{queue_id: entry_queue_i, generation: entry_generation_i, count_end: entry_end_i,
                            position: entry_position_i, lines: entry_lines_i, words: entry_words_i,
                            send: entry_send_i};
    end
    entry_q <= entries[read_d];
    if (!rst_ni) begin
      write_q       <= '0;
      read_q        <= '0;
      next_q        <= EntriesW'(1);
      entry_valid_q <= 1'b0;
      room_q        <= 1'b0;
    end else begin
      write_q       <= write_q + EntriesW'(entry_valid_i);
      read_q        <= read_d;
      next_q        <= pop ? next_q + 1'b1 : next_q;
      entry_valid_q <= pop ? next_q != write_q : read_q != write_q;
      room_q        <= used < EntriesW'(2**EntriesW - 1 - Margin);
    end
  end
  assign entry_room_o = room_q;

  // An entry of an earlier life is passed over; one that waits here hears of a stop of its queue.
  table_ram #(.Width(GenerationW), .Depth(NumQueues)) u_generations (
    .clk_i, .we_i(stop_we_i), .waddr_i(stop_queue_i), .wdata_i(stop_generation_i),
    .raddr_i(entry_q.queue_id), .rdata_o(generation)
  );
  assign live        = fresh_q ? checked_q.generation == generation : live_q;
  assign load2       = checked_valid_q && live && free2;
  assign check_moves = !checked_valid_q || !live || free2;
  assign pop         = entry_valid_q && check_moves;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) checked_valid_q <= 1'b0;
    else if (check_moves) checked_valid_q <= entry_valid_q;
    if (check_moves) checked_q <= entry_q;
    fresh_q <= check_moves;
    live_q  <= live && !(stop_we_i && stop_queue_i == checked_q.queue_id);
  end

  // A packet whose last line is nothing but signatures has a beat less than lines.
  assign beats = !checked_q.send ? '0 : checked_q.lines - OpenW'(checked_q.words == '0);
  always_comb begin
    served2_d = '{queue_id: checked_q.queue_id, count_end: checked_q.count_end, position: checked_q.position,
                  bytes: {checked_q.words == '0, checked_q.words, 3'b000}, send: checked_q.send};
  end

  // Lines are read one a cycle while the wire takes them.
  assign advance = !(valid4_q && served4_q.send && !frame_ready_i);
  assign last2   = !served2_q.send || left_q == OpenW'(1);
  assign free2   = advance && (!valid2_q || last2);

  always_ff @(posedge clk_i) begin
    if (line_we_i) lines[LinesW'({line_queue_i, line_at_i})] <= line_data_i;
    if (advance) line_q <= lines[LinesW'({served2_q.queue_id, at_q})];
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid2_q <= 1'b0;
      valid3_q <= 1'b0;
      valid4_q <= 1'b0;
    end else if (advance) begin
      valid2_q <= load2 || (valid2_q && !last2);
      valid3_q <= valid2_q;
      valid4_q <= valid3_q;
    end
    if (advance) begin
      if (load2) begin
        served2_q <= served2_d;
        left_q    <= beats;
        at_q      <= (checked_q.position[LineW-1:0] - LineW'(checked_q.lines)) & window_mask_i;
      end else begin
        left_q    <= left_q - 1'b1;
        at_q      <= (at_q + 1'b1) & window_mask_i;
      end
      served3_q <= served2_q;
      last3_q   <= last2;
      served4_q <= served3_q;
      last4_q   <= last3_q;
      data_q    <= line_q;
    end
  end

  assign frame_valid_o = valid4_q && served4_q.send;
  assign frame_data_o  = data_q;
  assign frame_bytes_o = last4_q ? served4_q.bytes : 7'd64;
  assign frame_last_o  = last4_q;
  assign frame_queue_o = served4_q.queue_id;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) freed_valid_o <= 1'b0;
    else         freed_valid_o <= valid4_q && last4_q && advance;
    freed_queue_o    <= served4_q.queue_id;
    freed_position_o <= served4_q.position;
    freed_lines_o    <= served4_q.count_end;
  end

  assign serving_o = (valid2_q && served2_q.queue_id == asked_queue_i)
                  || (valid3_q && served3_q.queue_id == asked_queue_i)
                  || (valid4_q && served4_q.queue_id == asked_queue_i)
                  || (freed_valid_o && freed_queue_o == asked_queue_i);

  // How many lives the oldest entry can be behind: stops are counted in two halves. The old half ends when all entries
  // that were there at its beginning are gone.
  localparam int unsigned StopW = GenerationW - 1;
  logic [StopW-1:0]    stops_q;
  logic [EntriesW-1:0] mark_q;
  logic                marked_q, marks;

  assign marks       = !marked_q || mark_q == read_q;
  assign stop_room_o = stops_q != '1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      stops_q  <= '0;
      marked_q <= 1'b0;
    end else begin
      if (marks) begin
        marked_q <= used != '0 || entry_valid_i;
        mark_q   <= write_q + EntriesW'(entry_valid_i);
        stops_q  <= StopW'(stop_we_i);
      end else begin
        stops_q  <= stops_q + StopW'(stop_we_i);
      end
    end
  end

  if (LineW < 1 || LineW > 18) begin : g_bad_line
    $fatal(1, "kpio_egress: LineW must be 1 to 18: a window has 2 to 2^18 lines");
  end
  if (LongestLines < 2) begin : g_bad_longest
    $fatal(1, "kpio_egress: LongestLines must be at least 2");
  end

`ifndef SYNTHESIS
  logic         wait_q, wait_last_q;
  logic [511:0] wait_data_q;
  logic [6:0]   wait_bytes_q;
  always_ff @(posedge clk_i) begin
    wait_q       <= rst_ni && frame_valid_o && !frame_ready_i;
    wait_data_q  <= frame_data_o;
    wait_bytes_q <= frame_bytes_o;
    wait_last_q  <= frame_last_o;
    if (rst_ni) begin
      // An offered beat stands still.
      if (wait_q) begin
        assert (frame_valid_o && frame_data_o == wait_data_q && frame_bytes_o == wait_bytes_q
                && frame_last_o == wait_last_q);
      end
      // Beats are full but for the last one, and none is empty.
      assert (!frame_valid_o || (frame_bytes_o != '0 && frame_bytes_o <= 7'd64));
      assert (!(load2 && checked_q.send) || beats != '0);
      // The room was kept.
      assert (!entry_valid_i || used != '1);
    end
  end
`endif

endmodule

`default_nettype wire

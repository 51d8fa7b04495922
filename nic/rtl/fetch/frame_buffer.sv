// The memory in which frames come together, and the way out of it, whole frames only and in order.
//
// Beats of payload come in any order and at any byte; each is turned to its place and written into one line,
// or into two when it straddles them, in one cycle: even and odd lines lie in banks of their own.
//
// Guarantees
//   - A frame is offered when its record has come, so no byte of it is missing; it leaves at one beat a
//     cycle, without a gap between frames that are there. `frame_valid_o` never falls without
//     `frame_ready_i`, the beat stands still.
//   - A bad frame leaves without a beat. Every frame is told of by `done_*` when it has left, in order.
//   . `kill_i`, for a queue that was stopped: its frames that are not on their way out leave without a beat;
//   none of its
//     frames is told of by `done_*` from the end of `kill_busy_o` on. It takes one cycle a place for a frame.
// Limits
//   - The writer keeps to the lines that are free: what `released_*` has told, and all of them at the start.
//   - Bytes of the last beat beyond `frame_bytes_o` are not defined.
// Latency: 4 cycles from the record to the first beat; a beat lands in 4 cycles.
// Cost: BufferLines x 512 bits of RAM with byte enables, Frames x (LineW + QueueW + 48) bits of LUTRAM, 5 k
// registers.
// Twin: nic/model/src/fetch/frame_ring.rs, TxQueue::{head, pop, advance} in nic/model/src/descriptor/tx_queue.rs.

`default_nettype none

module frame_buffer #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // Lines, a power of two from 256 to 8192.
  parameter int unsigned BufferLines = 2048,
  // Frames, a power of two from 8 to 256.
  parameter int unsigned Frames = 128,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned LineW = $clog2(BufferLines),
  localparam int unsigned PlaceW = LineW + 6
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic              land_valid_i,
  input  logic [PlaceW-1:0] land_place_i,
  input  logic [6:0]        land_bytes_i,
  input  logic [511:0]      land_data_i,

  input  logic              record_valid_i,
  input  logic [QueueW-1:0] record_queue_i,
  input  logic [31:0]       record_count_i,
  input  logic              record_flag_i,
  input  logic              record_bad_i,
  input  logic [13:0]       record_bytes_i,
  input  logic [LineW-1:0]  record_line_i,

  output logic              released_valid_o,
  output logic [7:0]        released_lines_o,

  input  logic              kill_i,
  input  logic [QueueW-1:0] kill_queue_i,
  output logic              kill_busy_o,

  output logic              frame_valid_o,
  input  logic              frame_ready_i,
  output logic [511:0]      frame_data_o,
  output logic [6:0]        frame_bytes_o,
  output logic              frame_last_o,
  output logic [QueueW-1:0] frame_queue_o,

  output logic              done_valid_o,
  output logic [QueueW-1:0] done_queue_o,
  output logic [31:0]       done_count_o,
  output logic              done_flag_o
);

  localparam int unsigned RowW = LineW - 1;
  localparam int unsigned FramesW = $clog2(Frames);

  typedef struct packed {
    logic [QueueW-1:0] queue_id;
    logic [31:0]       count;
    logic              flag;
    logic              is_bad;
    logic [13:0]       bytes;
    logic [LineW-1:0]  line;
  } record_t;

  // ---- Landing. Stage 1 turns by groups of 8 bytes, stage 2 by bytes, stage 3 writes.
  logic              l1_valid_q, l2_valid_q, l3_valid_q;
  logic [LineW-1:0]  l1_line_q, l2_line_q, l3_line_q;
  logic [5:0]        l1_shift_q, l2_shift_q;
  logic [511:0]      l1_data_q, l2_data_q, l3_data_q, group_data, byte_data;
  logic [63:0]       l1_mask_q, l2_mask_q, group_mask, byte_mask, behind, l3_here_q, l3_next_q;
  logic [1023:0]     group_wide, byte_wide;
  logic [127:0]      group_mask_wide, byte_mask_wide;

  assign group_wide      = {l1_data_q, l1_data_q} << {l1_shift_q[5:3], 6'd0};
  assign group_data      = group_wide[1023:512];
  assign group_mask_wide = {l1_mask_q, l1_mask_q} << {l1_shift_q[5:3], 3'd0};
  assign group_mask      = group_mask_wide[127:64];
  assign byte_wide       = {l2_data_q, l2_data_q} << {l2_shift_q[2:0], 3'd0};
  assign byte_data       = byte_wide[1023:512];
  assign byte_mask_wide  = {l2_mask_q, l2_mask_q} << l2_shift_q[2:0];
  assign byte_mask       = byte_mask_wide[127:64];
  // Bytes before the one that the beat begins at belong to the next line.
  assign behind          = ~(64'hffff_ffff_ffff_ffff << l2_shift_q);

  always_ff @(posedge clk_i) begin
    l1_valid_q <= rst_ni && land_valid_i;
    l2_valid_q <= rst_ni && l1_valid_q;
    l3_valid_q <= rst_ni && l2_valid_q;
    if (land_valid_i) begin
      {l1_line_q, l1_shift_q} <= land_place_i;
      l1_data_q <= land_data_i;
      l1_mask_q <= ~(64'hffff_ffff_ffff_fffe << (land_bytes_i[5:0] - 6'd1));
    end
    if (l1_valid_q) begin
      {l2_line_q, l2_shift_q} <= {l1_line_q, l1_shift_q};
      l2_data_q <= group_data;
      l2_mask_q <= group_mask;
    end
    if (l2_valid_q) begin
      l3_line_q <= l2_line_q;
      l3_data_q <= byte_data;
      l3_here_q <= byte_mask & ~behind;
      l3_next_q <= byte_mask & behind;
    end
  end

  // ---- Records, and which of them belong to a queue that was stopped.
  record_t           record_in, record_out;
  logic              fifo_ready, fifo_valid, fifo_take, sweep_match;
  logic [FramesW:0]  fifo_count;
  logic [FramesW-1:0] write_q, read_q, sweep_q, sweep_d, swept_q;
  logic [FramesW:0]  sweep_left_q, sweep_left_d;
  logic [Frames-1:0] dead_q, dead_d;
  logic              swept_valid_q, settle_q, settle_d;
  logic [QueueW-1:0] sweep_queue;

  assign record_in = '{queue_id: record_queue_i, count: record_count_i, flag: record_flag_i,
                       is_bad: record_bad_i, bytes: record_bytes_i, line: record_line_i};

  fifo #(.Width($bits(record_t)), .Depth(Frames)) u_records (
    .clk_i, .rst_ni, .push_valid_i(record_valid_i), .push_ready_o(fifo_ready), .push_data_i(record_in),
    .pop_valid_o(fifo_valid), .pop_ready_i(fifo_take), .pop_data_o(record_out), .count_o(fifo_count)
  );

  table_ram #(.Width(QueueW), .Depth(Frames)) u_queues (
    .clk_i, .we_i(record_valid_i), .waddr_i(write_q), .wdata_i(record_queue_i),
    .raddr_i(sweep_q), .rdata_o(sweep_queue)
  );

  // The sweep looks at every place. A place that is taken anew meanwhile is of a queue that runs, for a queue
  // that was stopped gets no more frames; places that hold nothing may be marked, since a new record clears
  // its mark.
  assign sweep_match = swept_valid_q && sweep_queue == kill_queue_i;

  always_comb begin
    sweep_d      = sweep_q;
    sweep_left_d = sweep_left_q;
    if (kill_i) sweep_left_d = (FramesW + 1)'(Frames);
    else if (sweep_left_q != '0) begin
      sweep_d      = sweep_q + 1'b1;
      sweep_left_d = sweep_left_q - 1'b1;
    end
    dead_d = dead_q;
    if (sweep_match)    dead_d = dead_d | (Frames'(1) << swept_q);
    if (record_valid_i) dead_d = dead_d & ~(Frames'(1) << write_q);
    settle_d = swept_valid_q && sweep_left_q == '0;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      write_q       <= '0;
      read_q        <= '0;
      sweep_q       <= '0;
      sweep_left_q  <= '0;
      swept_valid_q <= 1'b0;
      settle_q      <= 1'b0;
      dead_q        <= '0;
    end else begin
      write_q       <= write_q + FramesW'(record_valid_i);
      read_q        <= read_q + FramesW'(fifo_take);
      sweep_q       <= sweep_d;
      sweep_left_q  <= sweep_left_d;
      swept_valid_q <= sweep_left_q != '0;
      settle_q      <= settle_d;
      dead_q        <= dead_d;
    end
    swept_q <= sweep_q;
  end

  assign kill_busy_o = sweep_left_q != '0 || swept_valid_q || settle_q;

  // ---- The way out. Stage F names lines, stage B reads them, stage C is the port. Nothing moves while the
  // port waits.
  logic              step, f_last, b_last_q, c_last_q;
  logic              f_valid_q, f_valid_d, f_beats_q, f_beats_d, f_quiet_q, f_quiet_d;
  record_t           f_record_q, f_record_d;
  logic [7:0]        f_left_q, f_left_d, f_lines_q, f_lines_d;
  logic [LineW-1:0]  f_line_q, f_line_d;
  logic              b_valid_q, b_beat_q, b_quiet_q, b_odd_q, b_flag_q;
  logic [QueueW-1:0] b_queue_q, c_queue_q;
  logic [31:0]       b_count_q, c_count_q;
  logic [6:0]        f_bytes, b_bytes_q, c_bytes_q;
  logic              c_valid_q, c_beat_q, c_quiet_q, c_flag_q;
  logic [511:0]      b_even_q, b_odd_data_q, c_data_q;
  logic [RowW-1:0]   even_row, odd_row;
  logic              f_dead, f_kill, b_kill, c_kill, left;

  assign step      = !(c_valid_q && c_beat_q) || frame_ready_i;
  assign f_last    = !f_beats_q || f_left_q == 8'd1;
  assign fifo_take = fifo_valid && step && (!f_valid_q || f_last);
  assign f_dead    = dead_q[read_q];
  assign f_bytes   = (f_left_q != 8'd1 || f_record_q.bytes[5:0] == '0) ? 7'(nic_pkg::LineBytes)
                                                                       : 7'(f_record_q.bytes[5:0]);
  // Frames of the stopped queue that were already taken from the list go on, but nobody is told.
  assign f_kill = settle_q && f_record_q.queue_id == kill_queue_i;
  assign b_kill = settle_q && b_queue_q == kill_queue_i;
  assign c_kill = settle_q && c_queue_q == kill_queue_i;

  always_comb begin
    f_valid_d  = f_valid_q;
    f_record_d = f_record_q;
    f_beats_d  = f_beats_q;
    f_quiet_d  = f_quiet_q || f_kill;
    f_left_d   = f_left_q;
    f_lines_d  = f_lines_q;
    f_line_d   = f_line_q;
    if (step && f_valid_q) begin
      f_left_d = f_left_q - 8'd1;
      f_line_d = f_line_q + 1'b1;
      if (f_last) f_valid_d = 1'b0;
    end
    if (fifo_take) begin
      f_valid_d  = 1'b1;
      f_record_d = record_out;
      f_beats_d  = !record_out.is_bad && !f_dead;
      f_quiet_d  = f_dead || settle_q && record_out.queue_id == kill_queue_i;
      f_lines_d  = 8'((15'(record_out.bytes) + 15'd63) >> 6);
      f_left_d   = f_lines_d;
      f_line_d   = record_out.line;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      f_valid_q <= 1'b0;
      b_valid_q <= 1'b0;
      c_valid_q <= 1'b0;
    end else begin
      f_valid_q <= f_valid_d;
      if (step) begin
        b_valid_q <= f_valid_q;
        c_valid_q <= b_valid_q;
      end
    end
    f_record_q <= f_record_d;
    f_beats_q  <= f_beats_d;
    f_quiet_q  <= f_quiet_d;
    f_left_q   <= f_left_d;
    f_lines_q  <= f_lines_d;
    f_line_q   <= f_line_d;
    if (step) begin
      b_beat_q  <= f_beats_q;
      b_last_q  <= f_last;
      b_queue_q <= f_record_q.queue_id;
      b_count_q <= f_record_q.count;
      b_flag_q  <= f_record_q.flag;
      b_bytes_q <= f_bytes;
      b_odd_q   <= f_line_q[0];
      b_quiet_q <= f_quiet_q || f_kill;

      c_beat_q  <= b_beat_q;
      c_last_q  <= b_last_q;
      c_queue_q <= b_queue_q;
      c_count_q <= b_count_q;
      c_flag_q  <= b_flag_q;
      c_bytes_q <= b_bytes_q;
      c_quiet_q <= b_quiet_q || b_kill;
      if (b_valid_q && b_beat_q) c_data_q <= b_odd_q ? b_odd_data_q : b_even_q;
    end else begin
      b_quiet_q <= b_quiet_q || b_kill;
      c_quiet_q <= c_quiet_q || c_kill;
    end
  end

  // The lines are free when their last one has been read; whatever is written there comes later.
  assign released_valid_o = step && f_valid_q && f_last;
  assign released_lines_o = f_lines_q;

  assign frame_valid_o = c_valid_q && c_beat_q;
  assign frame_data_o  = c_data_q;
  assign frame_bytes_o = c_bytes_q;
  assign frame_last_o  = c_last_q;
  assign frame_queue_o = c_queue_q;

  assign left         = c_valid_q && c_last_q && step;
  assign done_valid_o = left && !c_quiet_q && !c_kill;
  assign done_queue_o = c_queue_q;
  assign done_count_o = c_count_q;
  assign done_flag_o  = c_flag_q;

  // ---- The banks.
  logic [511:0]    even_mem [1 << RowW];
  logic [511:0]    odd_mem [1 << RowW];
  logic [RowW-1:0] even_land, odd_land;
  logic [63:0]     even_enable, odd_enable;

  assign odd_land    = l3_line_q[LineW-1:1];
  assign even_land   = l3_line_q[LineW-1:1] + RowW'(l3_line_q[0]);
  assign even_enable = l3_line_q[0] ? l3_next_q : l3_here_q;
  assign odd_enable  = l3_line_q[0] ? l3_here_q : l3_next_q;
  assign even_row    = f_line_q[LineW-1:1];
  assign odd_row     = f_line_q[LineW-1:1];

  always_ff @(posedge clk_i) begin
    if (l3_valid_q) begin
      for (int lane = 0; lane < 64; lane++) begin
        if (even_enable[lane]) even_mem[even_land][8*lane +: 8] <= l3_data_q[8*lane +: 8];
      end
    end
    if (step) b_even_q <= even_mem[even_row];
  end

  always_ff @(posedge clk_i) begin
    if (l3_valid_q) begin
      for (int lane = 0; lane < 64; lane++) begin
        if (odd_enable[lane]) odd_mem[odd_land][8*lane +: 8] <= l3_data_q[8*lane +: 8];
      end
    end
    if (step) b_odd_data_q <= odd_mem[odd_row];
  end

  logic unused_bits;
  assign unused_bits = ^{group_wide[511:0], byte_wide[511:0], group_mask_wide[63:0], byte_mask_wide[63:0],
                         fifo_count, land_bytes_i[6], fifo_ready};

`ifndef SYNTHESIS
  logic         waiting_q;
  logic [511:0] waiting_data_q;
  always_ff @(posedge clk_i) begin
    waiting_q      <= rst_ni && frame_valid_o && !frame_ready_i;
    waiting_data_q <= frame_data_o;
    if (rst_ni) begin
      assert (!record_valid_i || fifo_ready) else $error("frame_buffer: more frames than places");
      assert (!waiting_q || frame_valid_o && frame_data_o == waiting_data_q)
        else $error("frame_buffer: a waiting beat changed");
      assert (!record_valid_i || !(kill_i || kill_busy_o) || record_queue_i != kill_queue_i)
        else $error("frame_buffer: a frame of a stopped queue");
    end
  end
`endif

endmodule

`default_nettype wire

// Payload: takes the descriptors that have arrived, checks them, and asks for the bytes of their frames.
//
// Guarantees
//   - Descriptors of a queue are taken in order. Queues take turns of TurnFrames descriptors. Every descriptor
//     taken becomes one frame record in the order of taking, over all queues: see frame_issue.sv.
//   - A descriptor that makes no sense (length 0, above MaxFrameBytes, below an Ethernet header, or reaching
//     past the address space) becomes a bad record without a read, and is counted: it is completed in its
//     turn like any other. A frame of which a read failed becomes a bad record too.
//   - `kill_i` drops the descriptors of a queue that were taken and for which nothing was asked;
//     `kill_busy_o` while one of its frames is being asked for.
// Limits
//   - Set-up only while hold_i and idle_o are high. Frames is what the record's reader has room for.
// Latency: 8 cycles from arrival to the request of an idle engine; within a turn one frame a cycle, one read
// a cycle for frames that cross pages; 5 cycles between turns. Cost: NumQueues x 50 bits of RAM, a read_ring
// of Reads, 700 registers.
// Twin: TxQueue::{issue_payloads, place} in nic/model/src/descriptor/tx_queue.rs.

`default_nettype none

module payload_fetch #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // As in descriptor_fetch.
  parameter int unsigned Ahead = 128,
  // Reads under way, a power of two from 2 to 256.
  parameter int unsigned Reads = 128,
  // Longest frame in bytes, 64 to 9216.
  parameter int unsigned MaxFrameBytes = 9216,
  // Lines of the frame buffer, a power of two from 256 to 8192.
  parameter int unsigned BufferLines = 2048,
  // Frames that may be on their way or in the buffer, a power of two from 8 to 256.
  parameter int unsigned Frames = 128,
  // Descriptors of one turn, 1 to 127.
  parameter int unsigned TurnFrames = 16,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned AheadW = $clog2(Ahead),
  localparam int unsigned LineW = $clog2(BufferLines),
  localparam int unsigned TagW = $clog2(Reads),
  localparam int unsigned PlaceW = LineW + 6
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  output logic              busy_o,
  input  logic              hold_i,
  output logic              idle_o,
  input  logic              drain_i,
  output logic              drained_o,
  input  logic              kill_i,
  input  logic [QueueW-1:0] kill_queue_i,
  output logic              kill_busy_o,

  input  logic              setup_write_i,
  input  logic [QueueW-1:0] setup_queue_i,
  input  logic              setup_active_i,

  input  logic              arrived_valid_i,
  output logic              arrived_ready_o,
  input  logic [QueueW-1:0] arrived_queue_i,
  input  logic [16:0]       arrived_count_i,

  output logic [QueueW-1:0] store_queue_o,
  output logic [AheadW-1:0] store_index_o,
  input  logic [127:0]      store_descriptor_i,

  output logic              taken_valid_o,
  input  logic              taken_ready_i,
  output logic [QueueW-1:0] taken_queue_o,
  output logic [16:0]       taken_count_o,

  output logic              rdreq_valid_o,
  input  logic              rdreq_ready_i,
  output logic [63:0]       rdreq_address_o,
  output logic [12:0]       rdreq_bytes_o,
  output logic [TagW-1:0]   rdreq_tag_o,
  input  logic              rdcpl_valid_i,
  input  logic [TagW-1:0]   rdcpl_tag_i,
  input  logic [511:0]      rdcpl_data_i,
  input  logic              rdcpl_last_i,
  input  logic              rdcpl_error_i,

  // Beats for the frame buffer: where byte 0 of the beat goes, in bytes.
  output logic              land_valid_o,
  output logic [PlaceW-1:0] land_place_o,
  output logic [6:0]        land_bytes_o,
  output logic [511:0]      land_data_o,

  // A frame whose reads are answered, in order.
  output logic              frame_valid_o,
  output logic [QueueW-1:0] frame_queue_o,
  output logic [31:0]       frame_count_o,
  output logic              frame_flag_o,
  output logic              frame_bad_o,
  output logic [13:0]       frame_bytes_o,
  output logic [LineW-1:0]  frame_line_o,

  // A frame left the buffer: its lines are free.
  input  logic              released_valid_i,
  input  logic [7:0]        released_lines_i,

  output logic              count_payload_fetches_o,
  output logic              count_runts_o,
  output logic              count_bad_lengths_o,
  output logic [1:0]        count_dma_errors_o
);

  localparam int unsigned Entries = 1 << QueueW;

  if (TurnFrames < 1 || TurnFrames > 127) begin : g_bad_turn
    $fatal(1, "payload_fetch: TurnFrames must be 1 to 127");
  end

  typedef enum logic [2:0] {TurnIdle, TurnRead, TurnLook, TurnRun, TurnEnd} turn_e;

  turn_e             turn_q, turn_d;
  logic              list_busy, issue_busy, take_valid, take_ready, requeue;
  logic [QueueW-1:0] take_queue, queue_q, clear_q;
  logic              active;
  logic [16:0]       arrived, waiting;
  logic [31:0]       taken, taken_q, taken_d;
  logic [16:0]       left_q, left_d;
  logic [6:0]        run_q, run_d;

  assign busy_o     = list_busy || issue_busy;
  assign idle_o     = turn_q == TurnIdle;
  assign take_ready = turn_q == TurnIdle && !hold_i;

  // ---- Turns.
  assign requeue         = turn_q == TurnEnd && taken_ready_i && left_q != '0;
  assign arrived_ready_o = !requeue && !setup_write_i;

  work_list #(.NumQueues(NumQueues)) u_list (
    .clk_i, .rst_ni, .busy_o(list_busy),
    .add_valid_i(requeue || arrived_valid_i && arrived_ready_o),
    .add_queue_i(requeue ? queue_q : arrived_queue_i),
    .take_valid_o(take_valid), .take_ready_i(take_ready), .take_queue_o(take_queue)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) clear_q <= '0;
    else         clear_q <= clear_q + QueueW'(list_busy);
  end

  table_ram #(.Width(1), .Depth(Entries)) u_active (
    .clk_i, .we_i(setup_write_i || list_busy), .waddr_i(list_busy ? clear_q : setup_queue_i),
    .wdata_i(!list_busy && setup_active_i), .raddr_i(queue_q), .rdata_o(active)
  );
  table_ram #(.Width(17), .Depth(Entries)) u_arrived (
    .clk_i, .we_i(setup_write_i || arrived_valid_i && arrived_ready_o),
    .waddr_i(setup_write_i ? setup_queue_i : arrived_queue_i),
    .wdata_i(setup_write_i ? '0 : arrived_count_i), .raddr_i(queue_q), .rdata_o(arrived)
  );
  table_ram #(.Width(32), .Depth(Entries)) u_taken (
    .clk_i, .we_i(setup_write_i || turn_q == TurnEnd), .waddr_i(setup_write_i ? setup_queue_i : queue_q),
    .wdata_i(setup_write_i ? '0 : taken_q), .raddr_i(queue_q), .rdata_o(taken)
  );

  // ---- Stage S: the descriptor that the store gives. Stage C: looks whether it makes sense. Then it is asked for.
  logic              s_valid_q, s_valid_d, s_move, s_load, kill_s;
  logic [QueueW-1:0] s_queue_q;
  logic [31:0]       s_count_q;
  // A descriptor that has to wait is copied: its place in the store may be filled anew once it counts as
  // taken.
  logic              s_held_q;
  logic [127:0]      s_held_descriptor_q, s_descriptor;

  logic              c_valid_q, c_valid_d, c_move, kill_c, issue_ready;
  logic [QueueW-1:0] c_queue_q;
  logic [31:0]       c_count_q;
  nic_pkg::tx_descriptor_t c_descriptor_q;
  logic              c_is_zero, c_is_runt, c_is_long, c_is_outside, c_length_fits, c_bad;
  logic [14:0]       c_sum;

  assign waiting       = arrived - taken[16:0];
  assign store_queue_o = queue_q;
  assign store_index_o = taken_q[AheadW-1:0];
  assign s_load        = turn_q == TurnRun && run_q != '0 && !hold_i && (!s_valid_q || s_move);
  assign s_move        = s_valid_q && (!c_valid_q || c_move);
  assign c_move        = c_valid_q && issue_ready;
  assign s_descriptor  = s_held_q ? s_held_descriptor_q : store_descriptor_i;

  always_comb begin
    turn_d  = turn_q;
    taken_d = taken_q;
    left_d  = left_q;
    run_d   = run_q;
    unique case (turn_q)
      TurnIdle: if (take_valid && take_ready) turn_d = TurnRead;
      TurnRead: turn_d = TurnLook;
      TurnLook: begin
        taken_d = taken;
        left_d  = waiting;
        run_d   = (waiting > 17'(TurnFrames)) ? 7'(TurnFrames) : waiting[6:0];
        turn_d  = (active && waiting != '0) ? TurnRun : TurnIdle;
      end
      TurnRun: begin
        if (s_load) begin
          taken_d = taken_q + 32'd1;
          left_d  = left_q - 17'd1;
          run_d   = run_q - 7'd1;
        end
        if (run_q == '0 || hold_i) turn_d = TurnEnd;
      end
      TurnEnd: if (taken_ready_i) turn_d = TurnIdle;
      default: turn_d = TurnIdle;
    endcase
  end

  assign taken_valid_o = turn_q == TurnEnd;
  assign taken_queue_o = queue_q;
  assign taken_count_o = taken_q[16:0];

  // ---- What a descriptor asks for, and whether it makes sense.
  assign c_is_zero    = c_descriptor_q.length_bytes == '0;
  assign c_is_runt    = c_descriptor_q.length_bytes < 32'(nic_pkg::MinFrameBytes) && !c_is_zero;
  assign c_is_long    = c_descriptor_q.length_bytes > 32'(MaxFrameBytes);
  assign c_sum        = 15'(c_descriptor_q.address[13:0]) + 15'(c_descriptor_q.length_bytes[13:0]);
  assign c_is_outside = c_descriptor_q.address[63:14] == '1 && c_sum[14];
  assign c_length_fits = !c_is_zero && !c_is_runt && !c_is_long;
  assign c_bad        = !c_length_fits || c_is_outside;

  assign kill_s = kill_i && s_queue_q == kill_queue_i;
  assign kill_c = kill_i && c_queue_q == kill_queue_i;

  always_comb begin
    s_valid_d   = s_load || s_valid_q && !s_move && !kill_s;
    c_valid_d   = s_move && !kill_s || c_valid_q && !c_move && !kill_c;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      turn_q    <= TurnIdle;
      s_valid_q <= 1'b0;
      c_valid_q <= 1'b0;
    end else begin
      turn_q    <= turn_d;
      s_valid_q <= s_valid_d;
      c_valid_q <= c_valid_d;
    end
    if (take_ready) queue_q <= take_queue;
    taken_q     <= taken_d;
    left_q      <= left_d;
    run_q       <= run_d;
    s_held_q            <= !s_load;
    s_held_descriptor_q <= s_descriptor;
    if (s_load) begin
      s_queue_q <= queue_q;
      s_count_q <= taken_q + 32'd1;
    end
    if (s_move) begin
      c_queue_q    <= s_queue_q;
      c_count_q    <= s_count_q;
      c_descriptor_q <= s_descriptor;
    end
  end

  // ---- The reads, and the frames that come of them.
  logic read_error, unused_put;

  frame_issue #(
    .NumQueues(NumQueues), .Reads(Reads), .MaxFrameBytes(MaxFrameBytes), .BufferLines(BufferLines), .Frames(Frames)
  ) u_issue (
    .clk_i, .rst_ni, .busy_o(issue_busy), .drain_i, .drained_o, .kill_i, .kill_queue_i, .kill_busy_o,
    .in_valid_i(c_valid_q && !kill_c), .in_ready_o(issue_ready), .in_queue_i(c_queue_q), .in_count_i(c_count_q),
    .in_flag_i(c_descriptor_q.flags[0]), .in_bad_i(c_bad), .in_put_i(1'b0),
    .in_address_i(c_descriptor_q.address), .in_bytes_i(c_descriptor_q.length_bytes[13:0]),
    .put_valid_i(1'b0), .put_ready_o(unused_put), .put_data_i('0), .put_bytes_i('0), .put_last_i(1'b0),
    .put_drop_i(1'b0),
    .rdreq_valid_o, .rdreq_ready_i, .rdreq_address_o, .rdreq_bytes_o, .rdreq_tag_o,
    .rdcpl_valid_i, .rdcpl_tag_i, .rdcpl_data_i, .rdcpl_last_i, .rdcpl_error_i,
    .land_valid_o, .land_place_o, .land_bytes_o, .land_data_o,
    .frame_valid_o, .frame_queue_o, .frame_count_o, .frame_flag_o, .frame_bad_o, .frame_bytes_o, .frame_line_o,
    .released_valid_i, .released_lines_i, .count_fetches_o(count_payload_fetches_o), .count_errors_o(read_error)
  );

  assign count_runts_o           = c_move && !kill_c && c_is_runt;
  assign count_bad_lengths_o     = c_move && !kill_c && (c_is_zero || c_is_long);
  assign count_dma_errors_o      = 2'(c_move && !kill_c && c_is_outside && c_length_fits) +
                                   2'(read_error);

  logic unused_bits;
  assign unused_bits = ^{c_descriptor_q.flags, c_sum, unused_put};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!setup_write_i || hold_i && idle_o) else $error("payload_fetch: set up while at work");
      assert (turn_q != TurnLook || !active || waiting <= 17'(Ahead))
        else $error("payload_fetch: %0d descriptors wait", waiting);
    end
  end
`endif

endmodule

`default_nettype wire

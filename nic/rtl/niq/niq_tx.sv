// Transmit by entries in the BAR: small frames whole in a queue's window, longer ones by their address.
//
// pieces of lines -> entry_arrival -> entry_frames -> frame_buffer -> the wire, and completion back to the host: the
// head count in entries. No descriptor and no doorbell; the sender fences after each entry, because they must arrive in
// order.
//
// Guarantees
//   - A frame is offered when it is whole in the frame buffer; frames of a queue leave in the order of their entries,
//     queues take turns of 16 entries. An entry that makes no sense as a frame, or whose frame cannot be read, is
//     counted and done in its turn.
//   - Whatever is written to the window ends in a whole entry of this life or fails the queue alone
//     (entry_arrival.sv).
//   - A place in the window is free when the head count has passed it.
//   - After a stop (busy_o low) nothing of the queue reads or writes host memory any more, and no frame of it that had
//     not begun to leave does. A queue that has failed sends what was placed before it failed.
// Limits
//   - Frames leave in one order over all queues; a stop waits for answers to reads.
//   - The head word lies at a multiple of 8; an entry has at most 256 bytes and a window holds at least two.
// Latency: last piece of an entry of 64 bytes to its frame 24 cycles. Throughput: such an entry in 9 cycles.
// Cost: see the parts; with the defaults 256 KiB of entries, 32 KiB frame buffer.
// Twin: nic/model/src/niq/tx_entries.rs.

`default_nettype none

module niq_tx #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // log2 of the lines of the longest window.
  parameter int unsigned LineW = 6,
  // Reads of payload under way, a power of two from 2 to 256.
  parameter int unsigned Reads = 32,
  // Lines of the frame buffer and frames in it, powers of two from 256 to 8192 and from 8 to 256.
  parameter int unsigned BufferLines = 512,
  parameter int unsigned Frames = 64,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned TagW = $clog2(Reads)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic [47:0]       now_ns_i,
  // Straps: lines of a window less 1, the port's longest frame.
  input  logic [LineW-1:0]  window_mask_i,
  input  logic [13:0]       max_frame_bytes_i,

  output logic              busy_o,
  input  logic              start_valid_i,
  input  logic [QueueW-1:0] start_queue_i,
  input  nic_rtl_pkg::queue_settings_t start_settings_i,
  input  logic              stop_valid_i,
  input  logic [QueueW-1:0] stop_queue_i,
  output logic              failed_valid_o,
  input  logic              failed_ready_i,
  output logic [QueueW-1:0] failed_queue_o,
  output logic [3:0]        failed_cause_o,

  input  logic              piece_valid_i,
  output logic              piece_ready_o,
  input  logic [QueueW-1:0] piece_queue_i,
  input  logic [LineW-1:0]  piece_line_i,
  input  logic [511:0]      piece_data_i,
  input  logic [63:0]       piece_be_i,
  input  logic              piece_first_i,
  input  logic              piece_last_i,
  // Every piece that came in has had its effect, or waits for room.
  output logic              is_settled_o,
  output logic              is_pending_o,

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

  // The head count.
  output logic              dmawr_valid_o,
  input  logic              dmawr_ready_i,
  output logic [63:0]       dmawr_address_o,
  output logic [511:0]      dmawr_data_o,
  output logic [6:0]        dmawr_bytes_o,

  output logic              irq_valid_o,
  input  logic              irq_ready_i,
  output logic [QueueW-1:0] irq_queue_o,

  output logic              frame_valid_o,
  input  logic              frame_ready_i,
  output logic [511:0]      frame_data_o,
  output logic [6:0]        frame_bytes_o,
  output logic              frame_last_o,
  output logic [QueueW-1:0] frame_queue_o,

  // For the counters of writes, see entry_arrival.sv.
  output logic              judged_valid_o,
  output logic              judged_first_o,
  output logic              judged_last_o,
  output logic              judged_dropped_o,
  output logic [63:0]       judged_be_o,

  output logic              count_entries_o,
  output logic              count_refused_writes_o,
  output logic              count_payload_fetches_o,
  output logic              count_completions_o,
  output logic              count_runts_o,
  output logic [1:0]        count_bad_lengths_o,
  output logic [1:0]        count_dma_errors_o,
  // A queue has failed with this cause.
  output logic              count_failed_o,
  output logic [3:0]        count_failed_cause_o
);

  localparam int unsigned BufferW = $clog2(BufferLines);
  // Cycles in which a failure finds its way out.
  localparam logic [3:0] SettleCycles = 4'd12;

  // ---- The life of queues.
  nic_rtl_pkg::queue_settings_t setup;
  logic              hold, setup_write, setup_active, drain, drained, kill_frames, frames_busy, unused_kill;
  logic              completion_start, completion_stop, completion_busy, arrival_busy, arrival_idle, setup_busy,
                     fetch_busy, fetch_idle, control_bad_length, frame_bad_length;
  logic [QueueW-1:0] setup_queue;
  logic              is_ours_q, is_size_bad;
  logic [3:0]        cause_q;
  logic              error_valid;
  logic [QueueW-1:0] error_queue;
  logic [3:0]        error_cause;

  // An entry has at most as many lines as the format allows, and a window at least two entries.
  assign is_size_bad = setup.entry_lines_log2 == 2'd3 || (window_mask_i >> setup.entry_lines_log2) == '0;

  always_ff @(posedge clk_i) begin
    is_ours_q <= setup.iface == 4'(nic_pkg::QueueControlIfaceNiq);
    cause_q   <= is_size_bad ? 4'(nic_pkg::QueueStatusCauseBadLength) :
                 (setup.tx_head_address[2:0] != '0) ? 4'(nic_pkg::QueueStatusCauseDmaError) :
                 4'(nic_pkg::QueueStatusCauseNone);
  end

  engine_control #(.NumQueues(NumQueues)) u_control (
    .clk_i, .rst_ni, .busy_o, .start_valid_i, .start_queue_i, .start_settings_i, .stop_valid_i, .stop_queue_i,
    .failed_valid_o, .failed_ready_i, .failed_queue_o, .failed_cause_o,
    .count_bad_lengths_o(control_bad_length),
    .error_valid_i(error_valid), .error_queue_i(error_queue), .error_cause_i(error_cause),
    .check_ours_i(is_ours_q), .check_cause_i(cause_q),
    .parts_busy_i(arrival_busy || fetch_busy || completion_busy),
    .hold_o(hold), .idle_i(arrival_idle && fetch_idle),
    .setup_write_o(setup_write), .setup_queue_o(setup_queue), .setup_active_o(setup_active),
    .setup_settings_o(setup),
    .kill_asking_o(unused_kill), .asking_busy_i(1'b0),
    .drain_o(drain), .drained_i(drained),
    .kill_frames_o(kill_frames), .frames_busy_i(frames_busy),
    .completion_start_o(completion_start), .completion_stop_o(completion_stop),
    .completion_busy_i(completion_busy || setup_busy)
  );

  // ---- Between the parts.
  logic              arrived_valid, arrived_ready, is_waiting;
  logic [QueueW-1:0] arrived_queue, read_queue, record_queue, done_queue;
  logic [31:0]       arrived_count, record_count, done_count;
  logic [LineW-1:0]  read_line;
  logic [511:0]      read_data, land_data;
  logic              land_valid, record_valid, record_flag, record_bad, released_valid, done_valid, done_flag;
  logic [BufferW+5:0] land_place;
  logic [6:0]        land_bytes;
  logic [13:0]       record_bytes;
  logic [BufferW-1:0] record_line;
  logic [7:0]        released_lines;
  logic [3:0]        settle_q;

  entry_arrival #(.NumQueues(NumQueues), .LineW(LineW)) u_arrival (
    .clk_i, .rst_ni, .now_ns_i, .window_mask_i,
    .busy_o(arrival_busy), .hold_i(hold), .idle_o(arrival_idle),
    .setup_write_i(setup_write), .setup_queue_i(setup_queue), .setup_active_i(setup_active),
    .setup_backpressure_i(setup.backpressure), .setup_epoch_i(setup.epoch),
    .setup_lines_log2_i(setup.entry_lines_log2),
    // Longer than a deadline may lie ahead is for ever.
    .setup_timeout_ns_i((setup.hole_timeout_ns[63:47] == '0) ? setup.hole_timeout_ns[47:0] : '0),
    .setup_busy_o(setup_busy),
    .piece_valid_i, .piece_ready_o, .piece_queue_i, .piece_line_i, .piece_data_i, .piece_be_i, .piece_first_i,
    .piece_last_i, .is_waiting_o(is_waiting),
    .arrived_valid_o(arrived_valid), .arrived_ready_i(arrived_ready), .arrived_queue_o(arrived_queue),
    .arrived_count_o(arrived_count),
    .done_valid_i(done_valid), .done_queue_i(done_queue), .done_count_i(done_count),
    .read_queue_i(read_queue), .read_line_i(read_line), .read_data_o(read_data),
    .error_valid_o(error_valid), .error_queue_o(error_queue), .error_cause_o(error_cause),
    .judged_valid_o, .judged_first_o, .judged_last_o, .judged_dropped_o, .judged_be_o,
    .count_entries_o, .count_refused_writes_o
  );

  entry_frames #(
    .NumQueues(NumQueues), .LineW(LineW), .Reads(Reads), .BufferLines(BufferLines), .Frames(Frames)
  ) u_frames (
    .clk_i, .rst_ni, .max_frame_bytes_i,
    .busy_o(fetch_busy), .hold_i(hold), .idle_o(fetch_idle), .drain_i(drain), .drained_o(drained),
    .setup_write_i(setup_write), .setup_queue_i(setup_queue), .setup_active_i(setup_active),
    .setup_lines_log2_i(setup.entry_lines_log2),
    .arrived_valid_i(arrived_valid), .arrived_ready_o(arrived_ready), .arrived_queue_i(arrived_queue),
    .arrived_count_i(arrived_count),
    .read_queue_o(read_queue), .read_line_o(read_line), .read_data_i(read_data),
    .rdreq_valid_o, .rdreq_ready_i, .rdreq_address_o, .rdreq_bytes_o, .rdreq_tag_o,
    .rdcpl_valid_i, .rdcpl_tag_i, .rdcpl_data_i, .rdcpl_last_i, .rdcpl_error_i,
    .land_valid_o(land_valid), .land_place_o(land_place), .land_bytes_o(land_bytes), .land_data_o(land_data),
    .frame_valid_o(record_valid), .frame_queue_o(record_queue), .frame_count_o(record_count),
    .frame_flag_o(record_flag), .frame_bad_o(record_bad), .frame_bytes_o(record_bytes),
    .frame_line_o(record_line), .released_valid_i(released_valid), .released_lines_i(released_lines),
    .count_payload_fetches_o, .count_runts_o, .count_bad_lengths_o(frame_bad_length), .count_dma_errors_o
  );

  frame_buffer #(.NumQueues(NumQueues), .BufferLines(BufferLines), .Frames(Frames)) u_buffer (
    .clk_i, .rst_ni,
    .land_valid_i(land_valid), .land_place_i(land_place), .land_bytes_i(land_bytes), .land_data_i(land_data),
    .record_valid_i(record_valid), .record_queue_i(record_queue), .record_count_i(record_count),
    .record_flag_i(record_flag), .record_bad_i(record_bad), .record_bytes_i(record_bytes),
    .record_line_i(record_line),
    .released_valid_o(released_valid), .released_lines_o(released_lines),
    .kill_i(kill_frames), .kill_queue_i(setup_queue), .kill_busy_o(frames_busy),
    .frame_valid_o, .frame_ready_i, .frame_data_o, .frame_bytes_o, .frame_last_o, .frame_queue_o,
    .done_valid_o(done_valid), .done_queue_o(done_queue), .done_count_o(done_count), .done_flag_o(done_flag)
  );

  completion #(.NumQueues(NumQueues)) u_completion (
    .clk_i, .rst_ni, .busy_o(completion_busy), .now_ns_i(now_ns_i[32:0]),
    .start_valid_i(completion_start), .stop_valid_i(completion_stop), .setup_queue_i(setup_queue),
    .start_word_address_i(setup.tx_head_address[63:3]),
    .start_frames_i(setup.tx_moderation_frames), .start_time_ns_i(setup.tx_moderation_ns),
    .done_valid_i(done_valid), .done_queue_i(done_queue), .done_count_i(done_count), .done_flag_i(done_flag),
    .posted_valid_i(arrived_valid && arrived_ready), .posted_queue_i(arrived_queue),
    .posted_count_i(arrived_count),
    .dmawr_valid_o, .dmawr_ready_i, .dmawr_address_o, .dmawr_data_o, .dmawr_bytes_o,
    .irq_valid_o, .irq_ready_i, .irq_queue_o, .count_completions_o
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni)                                              settle_q <= SettleCycles;
    else if (piece_valid_i && piece_ready_o)                  settle_q <= SettleCycles;
    // A failure waits until nothing of the engine is at work.
    else if (error_valid || hold)                             settle_q <= SettleCycles;
    else if ((arrival_idle || is_waiting) && settle_q != '0)  settle_q <= settle_q - 4'd1;
  end
  assign is_settled_o = settle_q == '0;
  // A cycle late; it waits for longer than that before it is settled.
  always_ff @(posedge clk_i) is_pending_o <= is_waiting;

  assign count_failed_o       = error_valid;
  assign count_failed_cause_o = error_cause;
  assign count_bad_lengths_o  = 2'(control_bad_length) + 2'(frame_bad_length);

  logic unused_bits;
  assign unused_bits = ^{setup, unused_kill};

endmodule

`default_nettype wire

// Transmit from pipes in host memory, frames back to back behind a length each: the interface `enso`.
//
// doorbell -> line_fetch -> frame_cut -> frame_issue -> frame_buffer -> the wire, and completion back to the host. A
// doorbell counts for as many frames as it likes, lines are read in whole bursts and ahead, and nothing stands between
// one frame and the next.
//
// Guarantees
//   - A frame is offered when it is whole in the frame buffer; frames of a queue leave in the order of its pipe. A frame
//     too short for an Ethernet header is counted and passed over. A length or header that makes no sense, or a pipe
//     that cannot be read, fails its queue alone, with cause bad_length, bad_header or dma_error.
//   - The head count in host memory counts lines of which every byte has been read and the frame has left.
//   - After a stop (busy_o low) nothing of the queue reads or writes host memory any more, and no frame of it that had
//     not begun to leave does; a stop does not wait for the wire.
//   - Any pipe, doorbell or setting is borne.
// Limits
//   - Frames leave in one order over all queues, that in which they were whole on the NIC: a queue whose frames the wire
//     does not take holds the others back. A frame longer than half of the store (Ahead lines) has the engine for itself
//     from its first half store to its end, which is as long as the link takes to answer.
//   - Completions are moderated by the count of lines, as it is in host memory: by as many lines as moderation asks for
//     frames, so never later than by frames.
// Latency: doorbell to read request 18 cycles, its answer to the frame 18. Throughput: a frame of n lines takes n + 2
// cycles. Cost: see the parts; with the defaults 64 KiB frame buffer, 1 MiB lines. Twin: nic/model/src/enso/tx_pipe.rs.

`default_nettype none

module enso_tx #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // Lines of a queue fetched ahead, a power of two from 16 to 256, and of one read, at most half as many.
  parameter int unsigned Ahead = 256,
  parameter int unsigned Burst = 64,
  // Reads under way, a power of two from 2 to 256.
  parameter int unsigned Reads = 16,
  // Lines of the frame buffer and frames in it, powers of two from 256 to 8192 and from 8 to 256.
  parameter int unsigned BufferLines = 1024,
  parameter int unsigned Frames = 64,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned TagW = $clog2(Reads)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic [47:0]       now_ns_i,
  // Longest frame of the port, at most nic_pkg's.
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

  input  logic              doorbell_valid_i,
  input  logic [QueueW-1:0] doorbell_queue_i,
  input  logic [63:0]       doorbell_tail_i,

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

  output logic              dmawr_valid_o,
  input  logic              dmawr_ready_i,
  output logic [63:0]       dmawr_address_o,
  output logic [511:0]      dmawr_data_o,
  output logic [6:0]        dmawr_bytes_o,

  output logic              frame_valid_o,
  input  logic              frame_ready_i,
  output logic [511:0]      frame_data_o,
  output logic [6:0]        frame_bytes_o,
  output logic              frame_last_o,
  output logic [QueueW-1:0] frame_queue_o,

  output logic              count_bad_accesses_o,
  output logic              count_payload_fetches_o,
  output logic              count_completions_o,
  output logic              count_runts_o,
  output logic              count_bad_headers_o,
  output logic [1:0]        count_bad_lengths_o,
  output logic              count_dma_errors_o
);

  localparam int unsigned AheadW = $clog2(Ahead);
  localparam int unsigned LineW = $clog2(BufferLines);
  // Frames come with their bytes, so nothing is read for them; a few are on their way.
  localparam int unsigned IssueReads = 8;

  // ---- The life of queues.
  logic              hold, setup_write, setup_active, kill_asking, asking_busy, drain, kill_frames, frames_busy;
  logic              completion_start, completion_stop, completion_busy, door_busy, fetch_busy, cut_busy, issue_busy;
  logic              door_idle, fetch_idle, cut_idle, fetch_drained, issue_drained;
  logic [QueueW-1:0] setup_queue;
  nic_rtl_pkg::queue_settings_t setup_settings;
  logic              error_valid, control_bad_length, cut_bad_length, ring_is_sound, is_ours_q;
  logic [QueueW-1:0] error_queue;
  logic [3:0]        error_cause, cause_q;
  logic [22:0]       lines;

  assign lines = setup_settings.tx_ring_entries[22:0];

  line_ring_check u_check (
    .address_i(setup_settings.tx_ring_address), .lines_i(setup_settings.tx_ring_entries), .is_sound_o(ring_is_sound)
  );

  always_ff @(posedge clk_i) begin
    is_ours_q <= setup_settings.iface == 4'(nic_pkg::QueueControlIfaceEnso);
    cause_q   <= !ring_is_sound ? 4'(nic_pkg::QueueStatusCauseBadLength) :
                 (setup_settings.tx_head_address[2:0] != '0) ? 4'(nic_pkg::QueueStatusCauseDmaError) :
                 4'(nic_pkg::QueueStatusCauseNone);
  end

  engine_control #(.NumQueues(NumQueues)) u_control (
    .clk_i, .rst_ni, .busy_o, .start_valid_i, .start_queue_i, .start_settings_i, .stop_valid_i, .stop_queue_i,
    .failed_valid_o, .failed_ready_i, .failed_queue_o, .failed_cause_o,
    .count_bad_lengths_o(control_bad_length),
    .error_valid_i(error_valid), .error_queue_i(error_queue), .error_cause_i(error_cause),
    .check_ours_i(is_ours_q), .check_cause_i(cause_q),
    .parts_busy_i(door_busy || fetch_busy || cut_busy || issue_busy || completion_busy),
    .hold_o(hold), .idle_i(door_idle && fetch_idle && cut_idle),
    .setup_write_o(setup_write), .setup_queue_o(setup_queue), .setup_active_o(setup_active),
    .setup_settings_o(setup_settings),
    .kill_asking_o(kill_asking), .asking_busy_i(asking_busy),
    .drain_o(drain), .drained_i(fetch_drained && issue_drained),
    .kill_frames_o(kill_frames), .frames_busy_i(frames_busy),
    .completion_start_o(completion_start), .completion_stop_o(completion_stop),
    .completion_busy_i(completion_busy)
  );

  // ---- Doorbells.
  logic              post_valid, post_ready, fetch_post_ready, cut_post_ready, done_valid, done_flag;
  logic [QueueW-1:0] post_queue, done_queue;
  logic [63:0]       post_value;
  logic [31:0]       done_count;
  logic [1:0]        unused_announce;
  logic [22:0]       unused_old;

  doorbell #(.NumQueues(NumQueues), .CountW(23)) u_doorbell (
    .clk_i, .rst_ni, .busy_o(door_busy), .hold_i(hold), .idle_o(door_idle),
    .setup_write_i(setup_write), .setup_queue_i(setup_queue), .setup_active_i(setup_active), .setup_bias_i(lines),
    .doorbell_valid_i, .doorbell_queue_i, .doorbell_value_i(doorbell_tail_i),
    .other_valid_i(done_valid), .other_queue_i(done_queue), .other_count_i(done_count[22:0]),
    .announce_valid_i(1'b0), .announce_queue_i('0), .announce_value_i('0), .announce_none_o(unused_announce[0]),
    .post_valid_o(post_valid), .post_ready_i(post_ready), .post_queue_o(post_queue), .post_value_o(post_value),
    .post_announced_o(unused_announce[1]), .post_old_o(unused_old), .count_bad_accesses_o
  );

  // The fetcher and the cutter are told in one cycle.
  assign post_ready = fetch_post_ready && cut_post_ready;

  // ---- Lines in, frames out.
  logic              taken_valid, taken_ready, arrived_valid, arrived_ready, arrived_error, unused_skip;
  logic [QueueW-1:0] taken_queue, arrived_queue, store_queue;
  logic [31:0]       taken_count, arrived_count;
  logic [AheadW-1:0] store_index;
  logic [511:0]      store_line;

  line_fetch #(.NumQueues(NumQueues), .Ahead(Ahead), .Burst(Burst), .Reads(Reads)) u_fetch (
    .clk_i, .rst_ni, .busy_o(fetch_busy), .hold_i(hold), .idle_o(fetch_idle), .drain_i(drain),
    .drained_o(fetch_drained),
    .setup_write_i(setup_write), .setup_queue_i(setup_queue), .setup_active_i(setup_active),
    .setup_address_i(setup_settings.tx_ring_address[63:6]), .setup_mask_i(22'(lines - 23'd1)),
    .post_valid_i(post_valid && cut_post_ready), .post_ready_o(fetch_post_ready), .post_queue_i(post_queue),
    .post_count_i(post_value[31:0]),
    .taken_valid_i(taken_valid), .taken_ready_o(taken_ready), .taken_queue_i(taken_queue), .taken_count_i(taken_count),
    .skip_valid_i(1'b0), .skip_ready_o(unused_skip), .skip_queue_i('0), .skip_count_i('0),
    .arrived_valid_o(arrived_valid), .arrived_ready_i(arrived_ready), .arrived_queue_o(arrived_queue),
    .arrived_count_o(arrived_count), .arrived_error_o(arrived_error),
    .store_queue_i(store_queue), .store_index_i(store_index), .store_line_o(store_line),
    .rdreq_valid_o, .rdreq_ready_i, .rdreq_address_o, .rdreq_bytes_o, .rdreq_tag_o,
    .rdcpl_valid_i, .rdcpl_tag_i, .rdcpl_data_i, .rdcpl_last_i, .rdcpl_error_i,
    .count_fetches_o(count_payload_fetches_o)
  );

  logic              cut_valid, cut_ready, cut_flag, cut_bad, cut_put, put_valid, put_ready, put_last, put_drop;
  logic [QueueW-1:0] cut_queue;
  logic [31:0]       cut_count;
  logic [63:0]       cut_address;
  logic [13:0]       cut_bytes;
  logic [511:0]      put_data;
  logic [6:0]        put_bytes;
  logic              unused_grant, unused_cut_skip, unused_write, unused_outside;
  logic [QueueW-1:0] unused_write_queue;
  logic [31:0]       unused_write_count;

  frame_cut #(.NumQueues(NumQueues), .IsPipe(1'b1), .Ahead(Ahead)) u_cut (
    .clk_i, .rst_ni, .busy_o(cut_busy), .hold_i(hold), .idle_o(cut_idle), .max_frame_bytes_i,
    .setup_write_i(setup_write), .setup_queue_i(setup_queue), .setup_active_i(setup_active),
    .setup_epoch_i(setup_settings.epoch),
    .arrived_valid_i(arrived_valid), .arrived_ready_o(arrived_ready), .arrived_queue_i(arrived_queue),
    .arrived_count_i(arrived_count), .arrived_error_i(arrived_error),
    .post_valid_i(post_valid && fetch_post_ready), .post_ready_o(cut_post_ready), .post_queue_i(post_queue),
    .post_count_i(post_value[31:0]),
    .store_queue_o(store_queue), .store_index_o(store_index), .store_line_i(store_line),
    .taken_valid_o(taken_valid), .taken_ready_i(taken_ready), .taken_queue_o(taken_queue), .taken_count_o(taken_count),
    .frame_valid_o(cut_valid), .frame_ready_i(cut_ready), .frame_queue_o(cut_queue), .frame_count_o(cut_count),
    .frame_flag_o(cut_flag), .frame_bad_o(cut_bad), .frame_put_o(cut_put), .frame_address_o(cut_address),
    .frame_bytes_o(cut_bytes), .put_valid_o(put_valid), .put_ready_i(put_ready), .put_data_o(put_data),
    .put_bytes_o(put_bytes), .put_last_o(put_last), .put_drop_o(put_drop),
    .error_valid_o(error_valid), .error_queue_o(error_queue), .error_cause_o(error_cause),
    .grant_i(1'b0), .grant_o(unused_grant), .skip_valid_i(1'b0), .skip_ready_o(unused_cut_skip), .skip_queue_i('0),
    .skip_count_i('0), .taken_write_o(unused_write), .taken_write_queue_o(unused_write_queue),
    .taken_write_count_o(unused_write_count),
    .count_runts_o, .count_bad_lengths_o(cut_bad_length), .count_bad_headers_o, .count_outside_o(unused_outside)
  );

  logic              land_valid, record_valid, record_flag, record_bad, released_valid, unused_rdreq, unused_fetches,
                     unused_errors;
  logic [LineW+5:0]  land_place;
  logic [6:0]        land_bytes;
  logic [511:0]      land_data;
  logic [QueueW-1:0] record_queue;
  logic [31:0]       record_count;
  logic [13:0]       record_bytes;
  logic [LineW-1:0]  record_line;
  logic [7:0]        released_lines;
  logic [63:0]       unused_address;
  logic [12:0]       unused_bytes;
  logic [$clog2(IssueReads)-1:0] unused_tag;

  frame_issue #(
    .NumQueues(NumQueues), .Reads(IssueReads), .MaxFrameBytes(nic_pkg::MaxFrameBytes), .BufferLines(BufferLines),
    .Frames(Frames)
  ) u_issue (
    .clk_i, .rst_ni, .busy_o(issue_busy), .drain_i(drain), .drained_o(issue_drained),
    .kill_i(kill_asking), .kill_queue_i(setup_queue), .kill_busy_o(asking_busy),
    .in_valid_i(cut_valid), .in_ready_o(cut_ready), .in_queue_i(cut_queue), .in_count_i(cut_count),
    .in_flag_i(cut_flag), .in_bad_i(cut_bad), .in_put_i(cut_put), .in_address_i(cut_address), .in_bytes_i(cut_bytes),
    .put_valid_i(put_valid), .put_ready_o(put_ready), .put_data_i(put_data), .put_bytes_i(put_bytes),
    .put_last_i(put_last), .put_drop_i(put_drop),
    .rdreq_valid_o(unused_rdreq), .rdreq_ready_i(1'b1), .rdreq_address_o(unused_address),
    .rdreq_bytes_o(unused_bytes), .rdreq_tag_o(unused_tag),
    .rdcpl_valid_i(1'b0), .rdcpl_tag_i('0), .rdcpl_data_i('0), .rdcpl_last_i(1'b0), .rdcpl_error_i(1'b0),
    .land_valid_o(land_valid), .land_place_o(land_place), .land_bytes_o(land_bytes), .land_data_o(land_data),
    .frame_valid_o(record_valid), .frame_queue_o(record_queue), .frame_count_o(record_count),
    .frame_flag_o(record_flag), .frame_bad_o(record_bad), .frame_bytes_o(record_bytes), .frame_line_o(record_line),
    .released_valid_i(released_valid), .released_lines_i(released_lines),
    .count_fetches_o(unused_fetches), .count_errors_o(unused_errors)
  );

  frame_buffer #(.NumQueues(NumQueues), .BufferLines(BufferLines), .Frames(Frames)) u_buffer (
    .clk_i, .rst_ni,
    .land_valid_i(land_valid), .land_place_i(land_place), .land_bytes_i(land_bytes), .land_data_i(land_data),
    .record_valid_i(record_valid), .record_queue_i(record_queue), .record_count_i(record_count),
    .record_flag_i(record_flag), .record_bad_i(record_bad), .record_bytes_i(record_bytes),
    .record_line_i(record_line), .released_valid_o(released_valid), .released_lines_o(released_lines),
    .kill_i(kill_frames), .kill_queue_i(setup_queue), .kill_busy_o(frames_busy),
    .frame_valid_o, .frame_ready_i, .frame_data_o, .frame_bytes_o, .frame_last_o, .frame_queue_o,
    .done_valid_o(done_valid), .done_queue_o(done_queue), .done_count_o(done_count), .done_flag_o(done_flag)
  );

  // ---- Back to the host. No frame of a pipe asks for an interrupt.
  logic              unused_irq;
  logic [QueueW-1:0] unused_irq_queue;

  completion #(.NumQueues(NumQueues)) u_completion (
    .clk_i, .rst_ni, .busy_o(completion_busy), .now_ns_i(now_ns_i[32:0]),
    .start_valid_i(completion_start), .stop_valid_i(completion_stop), .setup_queue_i(setup_queue),
    .start_word_address_i(setup_settings.tx_head_address[63:3]),
    .start_frames_i(setup_settings.tx_moderation_frames), .start_time_ns_i(setup_settings.tx_moderation_ns),
    .done_valid_i(done_valid), .done_queue_i(done_queue), .done_count_i(done_count), .done_flag_i(1'b0),
    .posted_valid_i(post_valid && post_ready), .posted_queue_i(post_queue), .posted_count_i(post_value[31:0]),
    .dmawr_valid_o, .dmawr_ready_i, .dmawr_address_o, .dmawr_data_o, .dmawr_bytes_o,
    .irq_valid_o(unused_irq), .irq_ready_i(1'b1), .irq_queue_o(unused_irq_queue), .count_completions_o
  );

  assign count_bad_lengths_o = 2'(control_bad_length) + 2'(cut_bad_length);
  assign count_dma_errors_o  = arrived_valid && arrived_ready && arrived_error;

  logic unused_bits;
  assign unused_bits = ^{
    now_ns_i[47:33], setup_settings, post_value, unused_announce, unused_old, unused_skip, unused_grant,
    unused_cut_skip, unused_write, unused_write_queue, unused_write_count, unused_outside, unused_rdreq,
    unused_address, unused_bytes, unused_tag, unused_fetches, unused_errors, unused_irq, unused_irq_queue, done_flag
  };

endmodule

`default_nettype wire

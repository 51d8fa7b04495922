// Transmit of entries in a ring in host memory, each pushed as well so that it need not be fetched: the interface
// `inline`.
//
//   pieces -> push_halves -> push_judge --+-- taken ---------------+
//                              |          |                        +-> frame_issue -> frame_buffer -> the wire
//   doorbell <----- announced -+          +-> line_fetch -> frame_cut
//
// The ring is the truth: a push that is whole and the next is taken in place of what lies there, any other is the
// doorbell for everything up to its end. Payload of entries that name an address is read.
//
// Guarantees
//   - Every entry is taken once, in ring order, from a push or from the ring; frames of a queue leave in that order. An
//     entry of the ring that is not what its place demands, or a ring that cannot be read, fails its queue alone; a
//     frame that makes no sense, or cannot be read, is counted and done in its turn.
//   - Nothing that arrives in the window fails a queue, or waits for the wire.
//   - The head count in host memory counts lines of entries that are done; interrupts follow it. Where the window is
//     blank, credits tell how many of its lines were dealt with.
//   - After a stop (busy_o low) nothing of the queue reads or writes host memory any more, and no frame of it that had
//     not begun to leave does; a stop does not wait for the wire.
//   - Any push, ring, doorbell or setting is borne.
// Limits
//   - Frames leave in one order over all queues, that in which their entries were taken: a queue whose frames the wire
//     does not take holds the others back. A push that comes while the frame buffer is full is left to the ring.
//   - Completions are moderated by the count of lines, as it is in host memory: by as many lines as moderation asks for
//     frames, so never later than by frames.
// Latency: last piece of a push to its frame 28 cycles. Throughput: a push of n lines in the longer of 5 n and
// n + 16 cycles; entries of the ring in n + 2. Cost: see the parts; with the defaults 64 KiB frame buffer, 256 KiB lines, 32 KiB halves.
// Twin: nic/model/src/inline/inline_queue.rs.

`default_nettype none

module inline_tx #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // log2 of the lines of the longest window, 3 or more.
  parameter int unsigned LineW = 6,
  // Lines of a queue fetched ahead, a power of two from 16 to 256, and of one read, at most half as many.
  parameter int unsigned Ahead = 64,
  parameter int unsigned Burst = 8,
  // Reads of lines and of payload under way, powers of two from 2 to 256.
  parameter int unsigned LineReads = 16,
  parameter int unsigned PayloadReads = 64,
  // Lines of the frame buffer and frames in it, powers of two from 256 to 8192 and from 8 to 256.
  parameter int unsigned BufferLines = 1024,
  parameter int unsigned Frames = 64,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned LineTagW = $clog2(LineReads),
  localparam int unsigned PayloadTagW = $clog2(PayloadReads),
  // Tags of this engine: the uppermost bit tells lines (1) from payload (0).
  localparam int unsigned TagW = 1 + ((PayloadTagW > LineTagW) ? PayloadTagW : LineTagW)
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

  // Pieces of lines of its queues, and whether all that came in was judged.
  input  logic [LineW-1:0]  window_mask_i,
  input  logic              piece_valid_i,
  output logic              piece_ready_o,
  input  logic [QueueW-1:0] piece_queue_i,
  input  logic [LineW-1:0]  piece_line_i,
  input  logic [511:0]      piece_data_i,
  input  logic [63:0]       piece_be_i,
  input  logic              piece_first_i,
  input  logic              piece_last_i,
  output logic              is_settled_o,

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

  // Head counts and credits.
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

  output logic              count_bad_accesses_o,
  output logic              count_descriptor_fetches_o,
  output logic              count_payload_fetches_o,
  output logic              count_completions_o,
  output logic              count_credit_pushes_o,
  output logic [1:0]        count_runts_o,
  output logic [1:0]        count_bad_headers_o,
  output logic [1:0]        count_bad_lengths_o,
  output logic [2:0]        count_dma_errors_o,
  output logic              count_push_taken_o,
  output logic              count_push_torn_o,
  output logic [1:0]        count_push_unused_o,
  output logic              count_push_tested_o
);

  localparam int unsigned AheadW = $clog2(Ahead);
  localparam int unsigned BufferW = $clog2(BufferLines);
  // Lines of a window that has two halves, and of a ring that has room for the longest entry.
  localparam int unsigned LeastWindowLines = 2 * (nic_pkg::PushHalfBytes / nic_pkg::LineBytes);
  localparam int unsigned LeastRingLines = nic_pkg::RingEntryMaxBytes / nic_pkg::LineBytes;

  // ---- The life of queues.
  logic              hold, setup_write, setup_active, kill_asking, asking_busy, drain, kill_frames, frames_busy;
  logic              completion_start, completion_stop, completion_busy, credits_busy, door_busy, fetch_busy, cut_busy,
                     issue_busy, halves_busy, judge_busy;
  logic              door_idle, fetch_idle, cut_idle, halves_idle, judge_idle, fetch_drained, issue_drained;
  logic [QueueW-1:0] setup_queue;
  nic_rtl_pkg::queue_settings_t setup_settings;
  logic              error_valid, control_bad_length, ring_is_sound, is_ours_q, is_sound;
  logic [QueueW-1:0] error_queue;
  logic [3:0]        error_cause, cause_q;
  logic [22:0]       lines;

  assign lines    = setup_settings.tx_ring_entries[22:0];
  assign is_sound = ring_is_sound && setup_settings.tx_ring_entries >= 32'(LeastRingLines)
      && window_mask_i >= LineW'(LeastWindowLines - 1);

  line_ring_check u_check (
    .address_i(setup_settings.tx_ring_address), .lines_i(setup_settings.tx_ring_entries), .is_sound_o(ring_is_sound)
  );

  always_ff @(posedge clk_i) begin
    is_ours_q <= setup_settings.iface == 4'(nic_pkg::QueueControlIfaceInline);
    cause_q   <= !is_sound ? 4'(nic_pkg::QueueStatusCauseBadLength) :
                 (setup_settings.tx_head_address[2:0] != '0 || setup_settings.credit_address[2:0] != '0)
                 ? 4'(nic_pkg::QueueStatusCauseDmaError) : 4'(nic_pkg::QueueStatusCauseNone);
  end

  engine_control #(.NumQueues(NumQueues)) u_control (
    .clk_i, .rst_ni, .busy_o, .start_valid_i, .start_queue_i, .start_settings_i, .stop_valid_i, .stop_queue_i,
    .failed_valid_o, .failed_ready_i, .failed_queue_o, .failed_cause_o,
    .count_bad_lengths_o(control_bad_length),
    .error_valid_i(error_valid), .error_queue_i(error_queue), .error_cause_i(error_cause),
    .check_ours_i(is_ours_q), .check_cause_i(cause_q),
    .parts_busy_i(door_busy || fetch_busy || cut_busy || issue_busy || halves_busy || judge_busy || completion_busy
                  || credits_busy),
    .hold_o(hold), .idle_i(door_idle && fetch_idle && cut_idle && halves_idle && judge_idle),
    .setup_write_o(setup_write), .setup_queue_o(setup_queue), .setup_active_o(setup_active),
    .setup_settings_o(setup_settings),
    .kill_asking_o(kill_asking), .asking_busy_i(asking_busy),
    .drain_o(drain), .drained_i(fetch_drained && issue_drained),
    .kill_frames_o(kill_frames), .frames_busy_i(frames_busy),
    .completion_start_o(completion_start), .completion_stop_o(completion_stop),
    .completion_busy_i(completion_busy || credits_busy)
  );

  // ---- What is pushed.
  logic              event_valid, event_ready, event_torn, event_whole, event_long, freed_valid, halves_settled,
                     judge_settled, count_long, count_unused, halves_bad_header;
  logic [QueueW-1:0] event_queue, kept_queue, freed_queue;
  logic              event_half, kept_valid, kept_half;
  logic [63:0]       event_torn_word, event_word;
  logic [1:0]        line_index;
  logic [511:0]      push_line;
  logic [31:0]       freed_lines;

  assign is_settled_o = halves_settled && judge_settled;

  push_halves #(.NumQueues(NumQueues), .LineW(LineW)) u_halves (
    .clk_i, .rst_ni, .busy_o(halves_busy), .hold_i(hold), .idle_o(halves_idle), .now_ns_i, .max_frame_bytes_i,
    .setup_write_i(setup_write), .setup_queue_i(setup_queue), .setup_active_i(setup_active),
    .setup_epoch_i(setup_settings.epoch), .setup_fills_i(setup_settings.fills),
    .setup_timeout_ns_i(setup_settings.hole_timeout_ns),
    .piece_valid_i, .piece_ready_o, .piece_queue_i, .piece_line_i, .piece_data_i, .piece_be_i, .piece_first_i,
    .piece_last_i, .is_settled_o(halves_settled),
    .event_valid_o(event_valid), .event_ready_i(event_ready), .event_queue_o(event_queue), .event_half_o(event_half),
    .event_torn_o(event_torn), .event_torn_word_o(event_torn_word), .event_whole_o(event_whole),
    .event_long_o(event_long), .event_word_o(event_word), .line_index_i(line_index), .line_o(push_line),
    .kept_valid_i(kept_valid), .kept_queue_i(kept_queue), .kept_half_i(kept_half),
    .freed_valid_o(freed_valid), .freed_queue_o(freed_queue), .freed_lines_o(freed_lines),
    .count_torn_o(count_push_torn_o), .count_long_o(count_long), .count_bad_headers_o(halves_bad_header)
  );

  // ---- Doorbells, and what pushes announce.
  logic              announce_valid, announce_none, door_valid, door_ready, door_announced, post_valid, post_ready,
                     done_valid, done_flag;
  logic [QueueW-1:0] announce_queue, post_queue, done_queue;
  logic [31:0]       announce_value, done_count;
  logic [63:0]       post_value;
  logic [22:0]       door_old;

  doorbell #(.NumQueues(NumQueues), .CountW(23), .BehindIsOld(1'b1)) u_doorbell (
    .clk_i, .rst_ni, .busy_o(door_busy), .hold_i(hold), .idle_o(door_idle),
    .setup_write_i(setup_write), .setup_queue_i(setup_queue), .setup_active_i(setup_active), .setup_bias_i(lines),
    .doorbell_valid_i, .doorbell_queue_i, .doorbell_value_i(doorbell_tail_i),
    .other_valid_i(done_valid), .other_queue_i(done_queue), .other_count_i(done_count[22:0]),
    .announce_valid_i(announce_valid), .announce_queue_i(announce_queue), .announce_value_i(announce_value),
    .announce_none_o(announce_none),
    .post_valid_o(door_valid), .post_ready_i(door_ready), .post_queue_o(post_queue), .post_value_o(post_value),
    .post_announced_o(door_announced), .post_old_o(door_old), .count_bad_accesses_o
  );

  logic              grant, granted, taken_write, skip_valid, skip_ready, cut_skip_ready, fetch_skip_ready;
  logic [QueueW-1:0] taken_write_queue, skip_queue;
  logic [31:0]       taken_write_count, skip_count;
  // Frames of the judge and of the cutter.
  logic              judge_valid, judge_flag, judge_bad, judge_put, judge_put_valid, judge_put_last, judge_put_drop;
  logic [31:0]       judge_count;
  logic [63:0]       judge_address;
  logic [13:0]       judge_bytes;
  logic [511:0]      judge_data;
  logic [6:0]        judge_put_bytes;
  logic              judge_runt, judge_bad_length, judge_outside;
  logic              issue_ready, put_ready;

  assign skip_ready = cut_skip_ready && fetch_skip_ready;

  push_judge #(.NumQueues(NumQueues)) u_judge (
    .clk_i, .rst_ni, .busy_o(judge_busy), .hold_i(hold), .idle_o(judge_idle), .max_frame_bytes_i,
    .is_settled_o(judge_settled),
    .setup_write_i(setup_write), .setup_queue_i(setup_queue), .setup_active_i(setup_active),
    .setup_epoch_i(setup_settings.epoch), .setup_self_test_i(setup_settings.tx_self_test),
    .event_valid_i(event_valid), .event_ready_o(event_ready), .event_queue_i(event_queue),
    .event_half_i(event_half), .event_torn_i(event_torn), .kept_valid_o(kept_valid), .kept_queue_o(kept_queue),
    .kept_half_o(kept_half),
    .event_torn_word_i(event_torn_word), .event_whole_i(event_whole), .event_long_i(event_long),
    .event_word_i(event_word), .line_index_o(line_index), .line_i(push_line),
    .announce_valid_o(announce_valid), .announce_queue_o(announce_queue), .announce_value_o(announce_value),
    .announce_none_i(announce_none), .door_valid_i(door_valid), .door_ready_o(door_ready),
    .door_announced_i(door_announced), .door_old_i(door_old), .post_valid_o(post_valid), .post_ready_i(post_ready),
    .grant_o(grant), .grant_i(granted), .taken_write_i(taken_write), .taken_write_queue_i(taken_write_queue),
    .taken_write_count_i(taken_write_count), .skip_valid_o(skip_valid), .skip_ready_i(skip_ready),
    .skip_queue_o(skip_queue), .skip_count_o(skip_count),
    .frame_valid_o(judge_valid), .frame_ready_i(issue_ready), .frame_count_o(judge_count), .frame_flag_o(judge_flag),
    .frame_bad_o(judge_bad), .frame_put_o(judge_put), .frame_address_o(judge_address), .frame_bytes_o(judge_bytes),
    .put_valid_o(judge_put_valid), .put_ready_i(put_ready), .put_data_o(judge_data), .put_bytes_o(judge_put_bytes),
    .put_last_o(judge_put_last), .put_drop_o(judge_put_drop),
    .count_taken_o(count_push_taken_o), .count_unused_o(count_unused), .count_tested_o(count_push_tested_o),
    .count_runts_o(judge_runt), .count_bad_lengths_o(judge_bad_length), .count_outside_o(judge_outside)
  );

  // ---- Lines in, frames out.
  logic                   l_valid, l_ready, l_cpl_valid, p_valid, p_ready, p_cpl_valid;
  logic [63:0]            l_address, p_address;
  logic [12:0]            l_bytes, p_bytes;
  logic [LineTagW-1:0]    l_tag, l_cpl_tag;
  logic [PayloadTagW-1:0] p_tag, p_cpl_tag;
  logic                   taken_valid, taken_ready, arrived_valid, arrived_ready, arrived_error;
  logic [QueueW-1:0]      taken_queue, arrived_queue, store_queue;
  logic [31:0]            taken_count, arrived_count;
  logic [AheadW-1:0]      store_index;
  logic [511:0]           store_line;

  line_fetch #(.NumQueues(NumQueues), .Ahead(Ahead), .Burst(Burst), .Reads(LineReads)) u_fetch (
    .clk_i, .rst_ni, .busy_o(fetch_busy), .hold_i(hold), .idle_o(fetch_idle), .drain_i(drain),
    .drained_o(fetch_drained),
    .setup_write_i(setup_write), .setup_queue_i(setup_queue), .setup_active_i(setup_active),
    .setup_address_i(setup_settings.tx_ring_address[63:6]), .setup_mask_i(22'(lines - 23'd1)),
    .post_valid_i(post_valid), .post_ready_o(post_ready), .post_queue_i(post_queue), .post_count_i(post_value[31:0]),
    .taken_valid_i(taken_valid), .taken_ready_o(taken_ready), .taken_queue_i(taken_queue), .taken_count_i(taken_count),
    .skip_valid_i(skip_valid && cut_skip_ready), .skip_ready_o(fetch_skip_ready), .skip_queue_i(skip_queue),
    .skip_count_i(skip_count),
    .arrived_valid_o(arrived_valid), .arrived_ready_i(arrived_ready), .arrived_queue_o(arrived_queue),
    .arrived_count_o(arrived_count), .arrived_error_o(arrived_error),
    .store_queue_i(store_queue), .store_index_i(store_index), .store_line_o(store_line),
    .rdreq_valid_o(l_valid), .rdreq_ready_i(l_ready), .rdreq_address_o(l_address), .rdreq_bytes_o(l_bytes),
    .rdreq_tag_o(l_tag), .rdcpl_valid_i(l_cpl_valid), .rdcpl_tag_i(l_cpl_tag), .rdcpl_data_i, .rdcpl_last_i,
    .rdcpl_error_i, .count_fetches_o(count_descriptor_fetches_o)
  );

  logic              cut_valid, cut_flag, cut_bad, cut_put, cut_put_valid, cut_put_last, cut_put_drop;
  logic [QueueW-1:0] cut_queue;
  logic [31:0]       cut_count;
  logic [63:0]       cut_address;
  logic [13:0]       cut_bytes;
  logic [511:0]      cut_data;
  logic [6:0]        cut_put_bytes;
  logic              cut_runt, cut_bad_length, cut_bad_header, cut_outside, unused_post;

  frame_cut #(.NumQueues(NumQueues), .IsPipe(1'b0), .Ahead(Ahead)) u_cut (
    .clk_i, .rst_ni, .busy_o(cut_busy), .hold_i(hold), .idle_o(cut_idle), .max_frame_bytes_i,
    .setup_write_i(setup_write), .setup_queue_i(setup_queue), .setup_active_i(setup_active),
    .setup_epoch_i(setup_settings.epoch),
    .arrived_valid_i(arrived_valid), .arrived_ready_o(arrived_ready), .arrived_queue_i(arrived_queue),
    .arrived_count_i(arrived_count), .arrived_error_i(arrived_error),
    .post_valid_i(1'b0), .post_ready_o(unused_post), .post_queue_i('0), .post_count_i('0),
    .store_queue_o(store_queue), .store_index_o(store_index), .store_line_i(store_line),
    .taken_valid_o(taken_valid), .taken_ready_i(taken_ready), .taken_queue_o(taken_queue), .taken_count_o(taken_count),
    .frame_valid_o(cut_valid), .frame_ready_i(issue_ready), .frame_queue_o(cut_queue), .frame_count_o(cut_count),
    .frame_flag_o(cut_flag), .frame_bad_o(cut_bad), .frame_put_o(cut_put), .frame_address_o(cut_address),
    .frame_bytes_o(cut_bytes), .put_valid_o(cut_put_valid), .put_ready_i(put_ready), .put_data_o(cut_data),
    .put_bytes_o(cut_put_bytes), .put_last_o(cut_put_last), .put_drop_o(cut_put_drop),
    .error_valid_o(error_valid), .error_queue_o(error_queue), .error_cause_o(error_cause),
    .grant_i(grant), .grant_o(granted), .skip_valid_i(skip_valid && fetch_skip_ready), .skip_ready_o(cut_skip_ready),
    .skip_queue_i(skip_queue), .skip_count_i(skip_count), .taken_write_o(taken_write),
    .taken_write_queue_o(taken_write_queue), .taken_write_count_o(taken_write_count),
    .count_runts_o(cut_runt), .count_bad_lengths_o(cut_bad_length), .count_bad_headers_o(cut_bad_header),
    .count_outside_o(cut_outside)
  );

  logic               land_valid, record_valid, record_flag, record_bad, released_valid, issue_error;
  logic [BufferW+5:0] land_place;
  logic [6:0]         land_bytes;
  logic [511:0]       land_data;
  logic [QueueW-1:0]  record_queue;
  logic [31:0]        record_count;
  logic [13:0]        record_bytes;
  logic [BufferW-1:0] record_line;
  logic [7:0]         released_lines;

  // While the judge has its turn the cutter hands nothing on.
  frame_issue #(
    .NumQueues(NumQueues), .Reads(PayloadReads), .MaxFrameBytes(nic_pkg::MaxFrameBytes), .BufferLines(BufferLines),
    .Frames(Frames)
  ) u_issue (
    .clk_i, .rst_ni, .busy_o(issue_busy), .drain_i(drain), .drained_o(issue_drained),
    .kill_i(kill_asking), .kill_queue_i(setup_queue), .kill_busy_o(asking_busy),
    .in_valid_i(granted ? judge_valid : cut_valid), .in_ready_o(issue_ready),
    .in_queue_i(granted ? kept_queue : cut_queue), .in_count_i(granted ? judge_count : cut_count),
    .in_flag_i(granted ? judge_flag : cut_flag), .in_bad_i(granted ? judge_bad : cut_bad),
    .in_put_i(granted ? judge_put : cut_put), .in_address_i(granted ? judge_address : cut_address),
    .in_bytes_i(granted ? judge_bytes : cut_bytes),
    .put_valid_i(granted ? judge_put_valid : cut_put_valid), .put_ready_o(put_ready),
    .put_data_i(granted ? judge_data : cut_data), .put_bytes_i(granted ? judge_put_bytes : cut_put_bytes),
    .put_last_i(granted ? judge_put_last : cut_put_last), .put_drop_i(granted ? judge_put_drop : cut_put_drop),
    .rdreq_valid_o(p_valid), .rdreq_ready_i(p_ready), .rdreq_address_o(p_address), .rdreq_bytes_o(p_bytes),
    .rdreq_tag_o(p_tag), .rdcpl_valid_i(p_cpl_valid), .rdcpl_tag_i(p_cpl_tag), .rdcpl_data_i, .rdcpl_last_i,
    .rdcpl_error_i,
    .land_valid_o(land_valid), .land_place_o(land_place), .land_bytes_o(land_bytes), .land_data_o(land_data),
    .frame_valid_o(record_valid), .frame_queue_o(record_queue), .frame_count_o(record_count),
    .frame_flag_o(record_flag), .frame_bad_o(record_bad), .frame_bytes_o(record_bytes), .frame_line_o(record_line),
    .released_valid_i(released_valid), .released_lines_i(released_lines),
    .count_fetches_o(count_payload_fetches_o), .count_errors_o(issue_error)
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

  read_join #(.FirstTagW(LineTagW), .SecondTagW(PayloadTagW)) u_reads (
    .clk_i, .rst_ni,
    .first_valid_i(l_valid), .first_ready_o(l_ready), .first_address_i(l_address), .first_bytes_i(l_bytes),
    .first_tag_i(l_tag), .first_cpl_valid_o(l_cpl_valid), .first_cpl_tag_o(l_cpl_tag),
    .second_valid_i(p_valid), .second_ready_o(p_ready), .second_address_i(p_address), .second_bytes_i(p_bytes),
    .second_tag_i(p_tag), .second_cpl_valid_o(p_cpl_valid), .second_cpl_tag_o(p_cpl_tag),
    .rdreq_valid_o, .rdreq_ready_i, .rdreq_address_o, .rdreq_bytes_o, .rdreq_tag_o, .rdcpl_valid_i, .rdcpl_tag_i
  );

  // ---- Back to the host.
  logic [1:0]        wr_valid, wr_ready;
  logic [1:0][63:0]  wr_address;
  logic [1:0][511:0] wr_data;
  logic [1:0][6:0]   wr_bytes;
  logic              unused_writes_busy;

  completion #(.NumQueues(NumQueues)) u_completion (
    .clk_i, .rst_ni, .busy_o(completion_busy), .now_ns_i(now_ns_i[32:0]),
    .start_valid_i(completion_start), .stop_valid_i(completion_stop), .setup_queue_i(setup_queue),
    .start_word_address_i(setup_settings.tx_head_address[63:3]),
    .start_frames_i(setup_settings.tx_moderation_frames), .start_time_ns_i(setup_settings.tx_moderation_ns),
    .done_valid_i(done_valid), .done_queue_i(done_queue), .done_count_i(done_count), .done_flag_i(done_flag),
    .posted_valid_i(door_valid && door_ready), .posted_queue_i(post_queue), .posted_count_i(post_value[31:0]),
    .dmawr_valid_o(wr_valid[0]), .dmawr_ready_i(wr_ready[0]), .dmawr_address_o(wr_address[0]),
    .dmawr_data_o(wr_data[0]), .dmawr_bytes_o(wr_bytes[0]),
    .irq_valid_o, .irq_ready_i, .irq_queue_o, .count_completions_o
  );

  credit_return #(.NumQueues(NumQueues)) u_credits (
    .clk_i, .rst_ni, .now_ns_i, .busy_o(credits_busy),
    .start_valid_i(completion_start), .start_queue_i(setup_queue), .start_settings_i(setup_settings),
    .stop_valid_i(completion_stop), .stop_queue_i(setup_queue),
    .freed_valid_i(freed_valid), .freed_queue_i(freed_queue), .freed_lines_i(freed_lines),
    .dmawr_valid_o(wr_valid[1]), .dmawr_ready_i(wr_ready[1]), .dmawr_address_o(wr_address[1]),
    .dmawr_data_o(wr_data[1]), .dmawr_bytes_o(wr_bytes[1]), .count_credit_pushes_o
  );

  write_port #(.Engines(2)) u_writes (
    .clk_i, .rst_ni, .busy_o(unused_writes_busy),
    .wr_valid_i(wr_valid), .wr_ready_o(wr_ready), .wr_address_i(wr_address), .wr_data_i(wr_data), .wr_bytes_i(wr_bytes),
    .dmawr_valid_o, .dmawr_ready_i, .dmawr_address_o, .dmawr_data_o, .dmawr_bytes_o
  );

  assign count_runts_o       = 2'(judge_runt) + 2'(cut_runt);
  assign count_bad_headers_o = 2'(halves_bad_header) + 2'(cut_bad_header);
  assign count_bad_lengths_o = 2'(control_bad_length) + 2'(cut_bad_length) + 2'(judge_bad_length);
  assign count_push_unused_o = 2'(count_long) + 2'(count_unused);
  assign count_dma_errors_o  = 3'(arrived_valid && arrived_ready && arrived_error) + 3'(issue_error)
                               + 3'(judge_outside) + 3'(cut_outside);

  logic unused_bits;
  assign unused_bits = ^{setup_settings, post_value, unused_post, unused_writes_busy};

endmodule

`default_nettype wire

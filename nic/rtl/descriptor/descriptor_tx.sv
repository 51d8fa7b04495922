// Transmit by descriptors, as nearly every NIC does it, built as if it were ours: the interface `descriptor`.
//
// doorbell -> descriptor_fetch -> payload_fetch -> frame_buffer -> the wire, and completion back to the host.
// One doorbell counts for many descriptors, descriptors are read in bursts and ahead, payload reads of many
// frames are under way at once and are answered in any order, completions and interrupts are moderated by
// count and time.
//
// Guarantees
//   - A frame is offered when it is whole in the frame buffer; frames of a queue leave in ring order, queues
//     take turns of 16 frames. A descriptor that makes no sense or whose payload cannot be read is counted
//     and completed in its turn without a frame; a ring that cannot be read fails its queue alone, with cause
//     dma_error.
//   - The head count in host memory counts descriptors of which every byte has been read and the frame has
//     left.
//   - After a stop (busy_o low) nothing of the queue reads or writes host memory any more, and no frame of it
//     that had not begun to leave does; a stop does not wait for the wire.
//   - Any descriptor, doorbell or setting is borne.
// Limits
//   - Frames leave in one order over all queues, the order of fetching: a queue whose frames the wire does
//     not take holds the others back. A stop waits for answers to reads; the link must give them, as errors
//     if need be.
//   - A ring lies at a multiple of 16 (spec asks for 64), the head word at one of 8.
// Latency: doorbell to read request of descriptors 18 cycles, their answer to read request of payload 16, its
// answer to the frame 9, the frame to its completion 10. Throughput: a beat a cycle; turns of 16 frames of
// one line take 1.35 cycles a frame.
// Cost: see the parts; with the defaults 130 KiB frame buffer, 128 KiB descriptors. Twin:
// nic/model/src/descriptor/mod.rs.

`default_nettype none

module descriptor_tx #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // Longest frame in bytes, 64 to 9216.
  parameter int unsigned MaxFrameBytes = 9216,
  // Descriptors of a queue fetched ahead, a power of two from 8 to 256, and of one read, at most half as
  // many.
  parameter int unsigned Ahead = 128,
  parameter int unsigned Burst = 32,
  // Reads of descriptors and of payload under way, powers of two from 2 to 256.
  parameter int unsigned DescriptorReads = 16,
  parameter int unsigned PayloadReads = 128,
  // Lines of the frame buffer and frames in it, powers of two from 256 to 8192 and from 8 to 256.
  parameter int unsigned BufferLines = 2048,
  parameter int unsigned Frames = 128,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned DescriptorTagW = $clog2(DescriptorReads),
  localparam int unsigned PayloadTagW = $clog2(PayloadReads),
  // Tags of this engine: the uppermost bit tells descriptors (1) from payload (0).
  localparam int unsigned TagW = 1 + ((PayloadTagW > DescriptorTagW) ? PayloadTagW : DescriptorTagW)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic [47:0]       now_ns_i,

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

  // Vector of an interrupt for a transmit completion.
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
  output logic              count_runts_o,
  output logic [1:0]        count_bad_lengths_o,
  output logic [1:0]        count_dma_errors_o
);

  localparam int unsigned AheadW = $clog2(Ahead);
  localparam int unsigned LineW = $clog2(BufferLines);
  localparam int unsigned PlaceW = LineW + 6;

  // ---- The life of queues.
  logic              hold, setup_write, setup_active, kill_asking, asking_busy, drain, kill_frames,
                     frames_busy;
  logic              completion_start, completion_stop, completion_busy, door_busy, fetch_busy, payload_busy;
  logic              door_idle, fetch_idle, payload_idle, fetch_drained, payload_drained;
  logic [QueueW-1:0] setup_queue;
  nic_rtl_pkg::queue_settings_t setup_settings;
  logic              control_bad_length, payload_bad_length;
  logic [1:0]        payload_errors;

  // ---- What a ring may be: a power of two of entries, whole inside the address space.
  localparam int unsigned MaxEntries = 65536;
  logic        is_ours_q, is_sound;
  logic [3:0]  cause_q;
  logic [16:0] entries;
  logic [20:0] ring_end;

  assign ring_end = 21'(setup_settings.tx_ring_address[19:0]) + {entries, 4'd0};
  assign entries  = setup_settings.tx_ring_entries[16:0];
  assign is_sound = entries != '0 && setup_settings.tx_ring_entries <= 32'(MaxEntries) &&
                    (entries & (entries - 17'd1)) == '0 && setup_settings.tx_ring_address[3:0] == '0 &&
                    !(setup_settings.tx_ring_address[63:20] == '1 && ring_end[20]);

  always_ff @(posedge clk_i) begin
    is_ours_q <= setup_settings.iface == 4'(nic_pkg::QueueControlIfaceDescriptor);
    cause_q   <= !is_sound ? 4'(nic_pkg::QueueStatusCauseBadLength) :
                 (setup_settings.tx_head_address[2:0] != '0) ? 4'(nic_pkg::QueueStatusCauseDmaError) :
                 4'(nic_pkg::QueueStatusCauseNone);
  end

  // ---- Between the parts.
  logic              post_valid, post_ready, taken_valid, taken_ready;
  logic [QueueW-1:0] post_queue, taken_queue, arrived_queue, store_queue;
  logic [63:0]       post_value;
  logic [1:0]        unused_announce;
  logic [16:0]       unused_old;
  logic [16:0]       taken_count, arrived_count;
  logic              arrived_valid, arrived_ready, arrived_error, payload_arrived_ready, error_valid;
  logic [AheadW-1:0] store_index;
  logic [127:0]      store_descriptor;
  logic              land_valid, record_valid, record_flag, record_bad, released_valid, done_valid, done_flag;
  logic [PlaceW-1:0] land_place;
  logic [6:0]        land_bytes;
  logic [511:0]      land_data;
  logic [QueueW-1:0] record_queue, done_queue;
  logic [31:0]       record_count, done_count;
  logic [13:0]       record_bytes;
  logic [LineW-1:0]  record_line;
  logic [7:0]        released_lines;

  logic              d_valid, d_ready, p_valid, p_ready;
  logic [63:0]       d_address, p_address;
  logic [12:0]       d_bytes, p_bytes;
  logic [DescriptorTagW-1:0] d_tag;
  logic [PayloadTagW-1:0]    p_tag;
  logic                      d_cpl_valid, p_cpl_valid;
  logic [DescriptorTagW-1:0] d_cpl_tag;
  logic [PayloadTagW-1:0]    p_cpl_tag;

  engine_control #(.NumQueues(NumQueues)) u_control (
    .clk_i, .rst_ni, .busy_o, .start_valid_i, .start_queue_i, .start_settings_i, .stop_valid_i, .stop_queue_i,
    .failed_valid_o, .failed_ready_i, .failed_queue_o, .failed_cause_o,
    .count_bad_lengths_o(control_bad_length),
    .error_valid_i(error_valid), .error_queue_i(arrived_queue),
    .error_cause_i(4'(nic_pkg::QueueStatusCauseDmaError)),
    .check_ours_i(is_ours_q), .check_cause_i(cause_q),
    .parts_busy_i(door_busy || fetch_busy || payload_busy || completion_busy),
    .hold_o(hold), .idle_i(door_idle && fetch_idle && payload_idle),
    .setup_write_o(setup_write), .setup_queue_o(setup_queue), .setup_active_o(setup_active),
    .setup_settings_o(setup_settings),
    .kill_asking_o(kill_asking), .asking_busy_i(asking_busy),
    .drain_o(drain), .drained_i(fetch_drained && payload_drained),
    .kill_frames_o(kill_frames), .frames_busy_i(frames_busy),
    .completion_start_o(completion_start), .completion_stop_o(completion_stop),
    .completion_busy_i(completion_busy)
  );

  doorbell #(.NumQueues(NumQueues), .CountW(17)) u_doorbell (
    .clk_i, .rst_ni, .busy_o(door_busy), .hold_i(hold), .idle_o(door_idle),
    .setup_write_i(setup_write), .setup_queue_i(setup_queue), .setup_active_i(setup_active),
    .setup_bias_i(setup_settings.tx_ring_entries[16:0]),
    .doorbell_valid_i, .doorbell_queue_i, .doorbell_value_i(doorbell_tail_i),
    .other_valid_i(done_valid), .other_queue_i(done_queue), .other_count_i(done_count[16:0]),
    .post_valid_o(post_valid), .post_ready_i(post_ready), .post_queue_o(post_queue),
    .post_value_o(post_value),
    .announce_valid_i(1'b0), .announce_queue_i('0), .announce_value_i('0),
    .announce_none_o(unused_announce[0]), .post_announced_o(unused_announce[1]), .post_old_o(unused_old),
    .count_bad_accesses_o
  );

  descriptor_fetch #(.NumQueues(NumQueues), .Ahead(Ahead), .Burst(Burst), .Reads(DescriptorReads)) u_fetch (
    .clk_i, .rst_ni, .busy_o(fetch_busy), .hold_i(hold), .idle_o(fetch_idle),
    .drain_i(drain), .drained_o(fetch_drained),
    .setup_write_i(setup_write), .setup_queue_i(setup_queue), .setup_active_i(setup_active),
    .setup_address_i(setup_settings.tx_ring_address[63:4]),
    .setup_mask_i(16'(setup_settings.tx_ring_entries[16:0] - 17'd1)), .setup_posted_i('0),
    .post_valid_i(post_valid), .post_ready_o(post_ready), .post_queue_i(post_queue),
    .post_count_i(post_value[16:0]),
    .taken_valid_i(taken_valid), .taken_ready_o(taken_ready), .taken_queue_i(taken_queue),
    .taken_count_i(taken_count),
    .arrived_valid_o(arrived_valid), .arrived_ready_i(arrived_ready), .arrived_queue_o(arrived_queue),
    .arrived_count_o(arrived_count), .arrived_error_o(arrived_error),
    .store_queue_i(store_queue), .store_index_i(store_index), .store_descriptor_o(store_descriptor),
    .rdreq_valid_o(d_valid), .rdreq_ready_i(d_ready), .rdreq_address_o(d_address), .rdreq_bytes_o(d_bytes),
    .rdreq_tag_o(d_tag),
    .rdcpl_valid_i(d_cpl_valid), .rdcpl_tag_i(d_cpl_tag),
    .rdcpl_data_i, .rdcpl_last_i, .rdcpl_error_i,
    .count_descriptor_fetches_o
  );

  assign arrived_ready = arrived_error || payload_arrived_ready;
  assign error_valid   = arrived_valid && arrived_error;

  payload_fetch #(
    .NumQueues(NumQueues), .Ahead(Ahead), .Reads(PayloadReads), .MaxFrameBytes(MaxFrameBytes),
    .BufferLines(BufferLines), .Frames(Frames)
  ) u_payload (
    .clk_i, .rst_ni, .busy_o(payload_busy), .hold_i(hold), .idle_o(payload_idle),
    .drain_i(drain), .drained_o(payload_drained),
    .kill_i(kill_asking), .kill_queue_i(setup_queue), .kill_busy_o(asking_busy),
    .setup_write_i(setup_write), .setup_queue_i(setup_queue), .setup_active_i(setup_active),
    .arrived_valid_i(arrived_valid && !arrived_error), .arrived_ready_o(payload_arrived_ready),
    .arrived_queue_i(arrived_queue), .arrived_count_i(arrived_count),
    .store_queue_o(store_queue), .store_index_o(store_index), .store_descriptor_i(store_descriptor),
    .taken_valid_o(taken_valid), .taken_ready_i(taken_ready), .taken_queue_o(taken_queue),
    .taken_count_o(taken_count),
    .rdreq_valid_o(p_valid), .rdreq_ready_i(p_ready), .rdreq_address_o(p_address), .rdreq_bytes_o(p_bytes),
    .rdreq_tag_o(p_tag),
    .rdcpl_valid_i(p_cpl_valid), .rdcpl_tag_i(p_cpl_tag),
    .rdcpl_data_i, .rdcpl_last_i, .rdcpl_error_i,
    .land_valid_o(land_valid), .land_place_o(land_place), .land_bytes_o(land_bytes), .land_data_o(land_data),
    .frame_valid_o(record_valid), .frame_queue_o(record_queue), .frame_count_o(record_count),
    .frame_flag_o(record_flag), .frame_bad_o(record_bad), .frame_bytes_o(record_bytes),
    .frame_line_o(record_line),
    .released_valid_i(released_valid), .released_lines_i(released_lines),
    .count_payload_fetches_o, .count_runts_o, .count_bad_lengths_o(payload_bad_length),
    .count_dma_errors_o(payload_errors)
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
    .start_word_address_i(setup_settings.tx_head_address[63:3]),
    .start_frames_i(setup_settings.tx_moderation_frames), .start_time_ns_i(setup_settings.tx_moderation_ns),
    .done_valid_i(done_valid), .done_queue_i(done_queue), .done_count_i(done_count), .done_flag_i(done_flag),
    .posted_valid_i(post_valid && post_ready), .posted_queue_i(post_queue), .posted_count_i(post_value[31:0]),
    .dmawr_valid_o, .dmawr_ready_i, .dmawr_address_o, .dmawr_data_o, .dmawr_bytes_o,
    .irq_valid_o, .irq_ready_i, .irq_queue_o, .count_completions_o
  );

  // ---- One request port.
  read_join #(.FirstTagW(DescriptorTagW), .SecondTagW(PayloadTagW)) u_reads (
    .clk_i, .rst_ni,
    .first_valid_i(d_valid), .first_ready_o(d_ready), .first_address_i(d_address), .first_bytes_i(d_bytes),
    .first_tag_i(d_tag), .first_cpl_valid_o(d_cpl_valid), .first_cpl_tag_o(d_cpl_tag),
    .second_valid_i(p_valid), .second_ready_o(p_ready), .second_address_i(p_address), .second_bytes_i(p_bytes),
    .second_tag_i(p_tag), .second_cpl_valid_o(p_cpl_valid), .second_cpl_tag_o(p_cpl_tag),
    .rdreq_valid_o, .rdreq_ready_i, .rdreq_address_o, .rdreq_bytes_o, .rdreq_tag_o, .rdcpl_valid_i, .rdcpl_tag_i
  );

  assign count_bad_lengths_o = 2'(control_bad_length) + 2'(payload_bad_length);
  assign count_dma_errors_o  = payload_errors + 2'(error_valid);

  logic unused_bits;
  assign unused_bits = ^{now_ns_i[47:33], setup_settings, post_value, ring_end, unused_announce,
                         unused_old};

endmodule

`default_nettype wire

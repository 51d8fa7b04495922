// Receive: frames from the wire into host memory, which the host polls without ever reading the device; or into entries
// on the NIC, which it reads.
//
// frame_store -> steer chooses the queue -> deliver looks for room in a contiguous ring or a pipe (ring_writer),
// among lent buffers (descriptors) or entries (entry_plan) -> line_writer, and entry_reads for the entries. A frame's
// bytes are written first, the word that says so last; receive interrupts are moderated by count and time and follow
// that word.
//
// Guarantees
//   - Frames of a queue arrive whole and in order. While the host lends no room a frame is held (lossless_i:
//     the wire is refused) or dropped and counted; while its descriptors are on their way, or the write port
//     is full, it is held.
//   - A descriptor ring that cannot be read fails its queue with cause dma_error; the frame goes to another
//     queue.
//   - After a stop (busy_o low) nothing of the queue reads or writes host memory any more, and reads of its entries have
//     their answers. A stop waits for no frame.
//   - Any descriptor, doorbell or setting is borne.
// Limits
//   - Frames leave the wire in order: one that is held holds those behind it, whatever their queue.
//   - lossless_i does not change while frames come.
// Latency: last beat to first write 15 cycles (contiguous ring, one queue); with more queues the hash adds 76
// for IPv4.
// Throughput: a line a cycle; a frame in 10 cycles, in 11 with descriptors or several queues (4 lanes).
// Cost: see the parts; with the defaults 32 KiB store, 32 KiB descriptors, 256 KiB entries. Twin: nic/model/src/rx/mod.rs.

`default_nettype none

module rx #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // log2 of the lines of entries of a queue, those of the longest window.
  parameter int unsigned EntryW = 6,
  // Longest frame in bytes, 64 to 9216.
  parameter int unsigned MaxFrameBytes = 9216,
  // Lines of the frame store, a power of two that holds two of the longest frames and two lines; frames.
  parameter int unsigned StoreLines = 512,
  parameter int unsigned StoreFrames = 64,
  // Descriptors of a queue fetched ahead, and of one read; reads of descriptors under way
  // (fetch/descriptor_fetch.sv).
  parameter int unsigned Ahead = 32,
  parameter int unsigned Burst = 16,
  parameter int unsigned Reads = 16,
  // Flows that are hashed at a time, a power of two from 1 to 16.
  parameter int unsigned HashLanes = 4,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned TagW = $clog2(Reads)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  // Of the link, and whether the device is reset; `rst_ni` follows both. Reads that the link asked for are answered.
  input  logic              link_rst_ni,
  input  logic              clear_i,
  input  logic [47:0]       now_ns_i,
  // Strap: lines of a window less 1.
  input  logic [EntryW-1:0] window_mask_i,
  // What becomes of a frame while the host lends no room: held (1), or dropped and counted (0).
  input  logic              lossless_i,

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

  // The host's count of freed lines, or of buffers lent again.
  input  logic              doorbell_valid_i,
  input  logic [QueueW-1:0] doorbell_queue_i,
  input  logic [63:0]       doorbell_freed_i,

  // The host's count of entries that it is done with; see niq/entry_reads.sv.
  input  logic              entries_freed_valid_i,
  input  logic [QueueW-1:0] entries_freed_queue_i,
  input  logic [63:0]       entries_freed_count_i,
  input  logic              read_valid_i,
  output logic              read_ready_o,
  input  logic [QueueW-1:0] read_queue_i,
  input  logic [EntryW+2:0] read_word_i,
  input  logic [15:0]       read_tag_i,
  output logic              answer_valid_o,
  input  logic              answer_ready_i,
  output logic [15:0]       answer_tag_o,
  output logic [63:0]       answer_value_o,

  input  logic              frame_valid_i,
  output logic              frame_ready_o,
  input  logic [511:0]      frame_data_i,
  input  logic [6:0]        frame_bytes_i,
  input  logic              frame_last_i,

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

  // Vector of an interrupt for received frames.
  output logic              irq_valid_o,
  input  logic              irq_ready_i,
  output logic [QueueW-1:0] irq_queue_o,

  output logic [1:0]        count_bad_accesses_o,
  output logic              count_descriptor_fetches_o,
  output logic              count_completions_o,
  output logic              count_dma_errors_o,
  output logic [1:0]        count_bad_lengths_o,
  output logic              count_rx_frames_o,
  output logic [13:0]       count_rx_frame_bytes_o,
  output logic              count_rx_no_space_o,
  output logic [1:0]        count_rx_oversize_o,
  output logic              count_notifications_o,
  output logic              count_entry_reads_o,
  output logic              count_held_reads_o,
  output logic              count_held_read_timeouts_o
);

  localparam int unsigned LineW = $clog2(StoreLines);
  localparam int unsigned ManyW = QueueW + 1;
  localparam int unsigned HeadBytes = 80;
  localparam logic [3:0] CauseNone      = nic_pkg::QueueStatusCauseNone;
  localparam logic [3:0] CauseDmaError  = nic_pkg::QueueStatusCauseDmaError;
  localparam logic [3:0] CauseBadLength = nic_pkg::QueueStatusCauseBadLength;
  localparam logic [1:0] ModeOff         = nic_pkg::RxModeModeOff;
  localparam logic [1:0] ModeRing        = nic_pkg::RxModeModeRing;
  localparam logic [1:0] ModeDescriptors = nic_pkg::RxModeModeDescriptors;
  localparam logic [1:0] ModePipe        = nic_pkg::RxModeModePipe;

  // ---- The life of queues.
  nic_rtl_pkg::queue_settings_t setup;
  logic              hold, setup_write, setup_active, writes_drain, writes_drained, reads_drain,
                     reads_drained;
  logic              report_start, report_stop, report_busy, door_busy, buffers_busy, deliver_busy,
                     unused_kill;
  logic              door_idle, buffers_idle, deliver_idle, error_valid, control_bad_length,
                     deliver_bad_length;
  logic [QueueW-1:0] setup_queue, error_queue;
  logic [1:0]        setup_mode;
  logic              is_ours_q, is_power, is_ring_small, is_buffers_small, is_ring_inside, is_buffers_inside;
  logic              is_completion_inside;
  logic [3:0]        cause_q;
  logic [28:0]       ring_end;
  logic [20:0]       buffers_end;
  logic [19:0]       completion_end, notes_end;
  logic              is_notes_size, is_notes_inside, are_entries_bad, setup_reads, reads_busy, reads_idle;
  logic [3:0]        mode_cause;

  // Entries: a power of two, up to 2^22 lines or 2^16 descriptors. Everything lies whole inside the address
  // space.
  assign is_power             = setup.rx_ring_entries != '0 &&
                                (setup.rx_ring_entries[22:0] & (setup.rx_ring_entries[22:0] - 23'd1)) == '0;
  assign is_ring_small        = setup.rx_ring_entries[31:23] == '0;
  assign is_buffers_small     = setup.rx_ring_entries[31:17] == '0;
  assign ring_end             = 29'(setup.rx_ring_address[27:0]) + {setup.rx_ring_entries[22:0], 6'd0};
  assign is_ring_inside       = !(setup.rx_ring_address[63:28] == '1 && ring_end[28]);
  assign buffers_end          = 21'(setup.rx_ring_address[19:0]) + {setup.rx_ring_entries[16:0], 4'd0};
  assign is_buffers_inside    = setup.rx_ring_address[3:0] == '0 &&
                                !(setup.rx_ring_address[63:20] == '1 && buffers_end[20]);
  assign completion_end       = 20'(setup.rx_completion_address[18:0]) + {setup.rx_ring_entries[16:0], 3'd0};
  assign is_completion_inside = setup.rx_completion_address[2:0] == '0 &&
                                !(setup.rx_completion_address[63:19] == '1 && completion_end[19]);

  // Notifications: a power of two of them, up to 2^16.
  assign is_notes_size   = setup.rx_notify_entries != '0 && setup.rx_notify_entries[31:17] == '0 &&
                           (setup.rx_notify_entries[16:0] & (setup.rx_notify_entries[16:0] - 17'd1)) == '0;
  assign notes_end       = 20'(setup.rx_completion_address[18:0]) + {setup.rx_notify_entries[16:0], 3'd0};
  assign is_notes_inside = setup.rx_completion_address[2:0] == '0 &&
                           !(setup.rx_completion_address[63:19] == '1 && notes_end[19]);
  // An entry has at most as many lines as the format allows, and a window at least two entries.
  assign are_entries_bad = setup.rx_reads && (setup.entry_lines_log2 == 2'd3 ||
                                              (window_mask_i >> setup.entry_lines_log2) == '0);

  always_comb begin
    unique case (setup.rx_mode)
      ModeOff: mode_cause = CauseNone;
      ModeRing:
        mode_cause = !(is_power && is_ring_small) ? CauseBadLength :
                     (setup.rx_ring_address[5:0] != '0 || !is_ring_inside) ? CauseDmaError : CauseNone;
      ModePipe:
        mode_cause = !(is_power && is_ring_small && is_notes_size) ? CauseBadLength :
                     (setup.rx_ring_address[5:0] != '0 || !is_ring_inside || !is_notes_inside) ? CauseDmaError
                                                                                              : CauseNone;
      default:
        mode_cause = !(is_power && is_buffers_small && is_buffers_inside) ? CauseBadLength :
                     !is_completion_inside ? CauseDmaError : CauseNone;
    endcase
  end

  always_ff @(posedge clk_i) begin
    is_ours_q <= setup.rx_mode != ModeOff || setup.rx_reads;
    cause_q   <= (mode_cause == CauseNone && are_entries_bad) ? CauseBadLength : mode_cause;
  end

  assign setup_mode  = setup_active ? setup.rx_mode : ModeOff;
  assign setup_reads = setup_active && setup.rx_reads;

  engine_control #(.NumQueues(NumQueues)) u_control (
    .clk_i, .rst_ni, .busy_o, .start_valid_i, .start_queue_i, .start_settings_i, .stop_valid_i, .stop_queue_i,
    .failed_valid_o, .failed_ready_i, .failed_queue_o, .failed_cause_o,
    .count_bad_lengths_o(control_bad_length),
    .error_valid_i(error_valid), .error_queue_i(error_queue),
    .error_cause_i(4'(nic_pkg::QueueStatusCauseDmaError)),
    .check_ours_i(is_ours_q), .check_cause_i(cause_q),
    .parts_busy_i(door_busy || buffers_busy || deliver_busy || report_busy || reads_busy),
    .hold_o(hold), .idle_i(door_idle && buffers_idle && deliver_idle && reads_idle),
    .setup_write_o(setup_write), .setup_queue_o(setup_queue), .setup_active_o(setup_active),
    .setup_settings_o(setup),
    .kill_asking_o(writes_drain), .asking_busy_i(!writes_drained || !reads_idle),
    .drain_o(reads_drain), .drained_i(reads_drained),
    .kill_frames_o(unused_kill), .frames_busy_i(deliver_busy),
    .completion_start_o(report_start), .completion_stop_o(report_stop),
    .completion_busy_i(report_busy || deliver_busy)
  );

  // ---- Frames in.
  logic                   head_valid, head_ready, index_valid, index_ready, length_valid, length_ready,
                          hashed;
  logic [8*HeadBytes-1:0] head_data;
  logic [6:0]             head_bytes;
  logic [ManyW-1:0]       index, queues;
  logic [13:0]            length;
  logic                   read_enable, free_valid, store_oversize;
  logic [LineW-1:0]       read_line;
  logic [511:0]           read_data;
  logic [7:0]             free_lines;

  frame_store #(.Lines(StoreLines), .Frames(StoreFrames), .MaxFrameBytes(MaxFrameBytes)) u_store (
    .clk_i, .rst_ni,
    .wire_valid_i(frame_valid_i), .wire_ready_o(frame_ready_o), .wire_data_i(frame_data_i),
    .wire_bytes_i(frame_bytes_i), .wire_last_i(frame_last_i),
    .hash_i(queues > ManyW'(1) && !deliver_busy), .head_valid_o(head_valid), .head_ready_i(head_ready),
    .head_data_o(head_data),
    .head_bytes_o(head_bytes),
    .frame_valid_o(length_valid), .frame_ready_i(length_ready), .frame_bytes_o(length),
    .frame_hashed_o(hashed),
    .read_enable_i(read_enable), .read_line_i(read_line), .read_data_o(read_data),
    .free_valid_i(free_valid), .free_lines_i(free_lines), .count_rx_oversize_o(store_oversize)
  );

  // While the list is made anew, and when nobody receives any more, one queue stands for those there will be.
  steer #(.Lanes(HashLanes), .CountW(ManyW)) u_steer (
    .clk_i, .rst_ni, .head_valid_i(head_valid), .head_ready_o(head_ready), .head_data_i(head_data),
    .head_bytes_i(head_bytes), .queues_i((queues == '0) ? ManyW'(1) : queues),
    .index_valid_o(index_valid), .index_ready_i(index_ready), .index_o(index)
  );

  // ---- Their way to a queue.
  logic              post_valid, post_ready, used_valid, lent_valid, lent_ready, taken_valid, taken_ready;
  logic [QueueW-1:0] post_queue, used_queue, lent_queue, look_queue, command_queue, done_queue;
  logic [63:0]       post_value;
  logic [22:0]       used_count;
  logic [16:0]       lent_count, look_taken, look_lent;
  logic [13:0]       look_bytes;
  logic [15:0]       look_mask;
  logic [60:0]       look_completion;
  logic              no_space, is_late, is_bad, is_long, command_valid, command_ready, deliver_oversize;
  rx_pkg::command_t  buffer_command, command;
  logic [31:0]       command_count, done_count;
  logic              done_valid, door_bad_access;
  logic              freed_valid, freed_ready, entry_valid, publish_valid, publish_ready;
  logic [QueueW-1:0] freed_queue;
  logic [EntryW:0]   freed_count;
  logic [QueueW+EntryW-1:0] entry_line;
  logic [511:0]      entry_data;
  logic [1:0]        reads_bad_accesses;

  logic [1:0]        unused_announce;
  logic [22:0]       unused_old;

  doorbell #(.NumQueues(NumQueues), .CountW(23)) u_doorbell (
    .clk_i, .rst_ni, .busy_o(door_busy), .hold_i(hold), .idle_o(door_idle),
    .setup_write_i(setup_write), .setup_queue_i(setup_queue), .setup_active_i(setup_active),
    .setup_bias_i('0),
    .doorbell_valid_i, .doorbell_queue_i, .doorbell_value_i(doorbell_freed_i),
    .other_valid_i(used_valid), .other_queue_i(used_queue), .other_count_i(used_count),
    .post_valid_o(post_valid), .post_ready_i(post_ready), .post_queue_o(post_queue),
    .post_value_o(post_value),
    .announce_valid_i(1'b0), .announce_queue_i('0), .announce_value_i('0),
    .announce_none_o(unused_announce[0]), .post_announced_o(unused_announce[1]), .post_old_o(unused_old),
    .count_bad_accesses_o(door_bad_access)
  );

  deliver #(.NumQueues(NumQueues), .EntryW(EntryW)) u_deliver (
    .clk_i, .rst_ni, .busy_o(deliver_busy), .hold_i(hold), .idle_o(deliver_idle), .lossless_i, .window_mask_i,
    .setup_write_i(setup_write), .setup_queue_i(setup_queue), .setup_mode_i(setup_mode),
    .setup_address_i(setup.rx_ring_address[63:4]), .setup_mask_i(22'(setup.rx_ring_entries[22:0] - 23'd1)),
    .setup_completion_i(setup.rx_completion_address[63:3]),
    .setup_notes_mask_i(16'(setup.rx_notify_entries[16:0] - 17'd1)), .setup_reads_i(setup_reads),
    .setup_epoch_i(setup.epoch), .setup_lines_log2_i(setup.entry_lines_log2),
    .entries_freed_valid_i(freed_valid), .entries_freed_ready_o(freed_ready), .entries_freed_queue_i(freed_queue),
    .entries_freed_count_i(freed_count),
    .queues_o(queues),
    .frame_valid_i(length_valid), .frame_ready_o(length_ready), .frame_bytes_i(length),
    .frame_hashed_i(hashed),
    .index_valid_i(index_valid), .index_ready_o(index_ready), .index_i(index),
    .freed_valid_i(post_valid), .freed_ready_o(post_ready), .freed_queue_i(post_queue),
    .freed_count_i(post_value[22:0]),
    .used_valid_o(used_valid), .used_queue_o(used_queue), .used_count_o(used_count),
    .lent_valid_o(lent_valid), .lent_ready_i(lent_ready), .lent_queue_o(lent_queue),
    .lent_count_o(lent_count),
    .taken_valid_o(taken_valid), .taken_ready_i(taken_ready),
    .look_queue_o(look_queue), .look_bytes_o(look_bytes), .look_taken_o(look_taken), .look_lent_o(look_lent),
    .look_mask_o(look_mask), .look_completion_o(look_completion),
    .no_space_i(no_space), .is_late_i(is_late), .is_bad_i(is_bad), .is_long_i(is_long),
    .buffer_command_i(buffer_command),
    .command_valid_o(command_valid), .command_ready_i(command_ready), .command_o(command),
    .command_queue_o(command_queue), .command_count_o(command_count),
    .count_rx_frames_o, .count_rx_frame_bytes_o, .count_rx_no_space_o, .count_rx_oversize_o(deliver_oversize),
    .count_bad_lengths_o(deliver_bad_length), .count_completions_o, .count_notifications_o
  );

  rx_descriptors #(.NumQueues(NumQueues), .Ahead(Ahead), .Burst(Burst), .Reads(Reads)) u_descriptors (
    .clk_i, .rst_ni, .busy_o(buffers_busy), .hold_i(hold), .idle_o(buffers_idle),
    .drain_i(reads_drain), .drained_o(reads_drained),
    .setup_write_i(setup_write), .setup_queue_i(setup_queue), .setup_active_i(setup_mode == ModeDescriptors),
    .setup_address_i(setup.rx_ring_address[63:4]), .setup_mask_i(16'(setup.rx_ring_entries[16:0] - 17'd1)),
    .lent_valid_i(lent_valid), .lent_ready_o(lent_ready), .lent_queue_i(lent_queue),
    .lent_count_i(lent_count),
    .taken_valid_i(taken_valid), .taken_ready_o(taken_ready), .taken_queue_i(used_queue),
    .taken_count_i(used_count[16:0]),
    .error_valid_o(error_valid), .error_queue_o(error_queue),
    .queue_i(look_queue), .bytes_i(look_bytes), .taken_i(look_taken), .lent_i(look_lent), .mask_i(look_mask),
    .completion_word_i(look_completion),
    .no_space_o(no_space), .is_late_o(is_late), .is_bad_o(is_bad), .is_long_o(is_long),
    .command_o(buffer_command),
    .rdreq_valid_o, .rdreq_ready_i, .rdreq_address_o, .rdreq_bytes_o, .rdreq_tag_o,
    .rdcpl_valid_i, .rdcpl_tag_i, .rdcpl_data_i, .rdcpl_last_i, .rdcpl_error_i,
    .count_descriptor_fetches_o
  );

  line_writer #(.NumQueues(NumQueues), .Lines(StoreLines), .EntryW(EntryW)) u_writer (
    .clk_i, .rst_ni,
    .command_valid_i(command_valid), .command_ready_o(command_ready), .command_i(command),
    .command_queue_i(command_queue), .command_count_i(command_count),
    .read_enable_o(read_enable), .read_line_o(read_line), .read_data_i(read_data),
    .free_valid_o(free_valid), .free_lines_o(free_lines),
    .dmawr_valid_o, .dmawr_ready_i, .dmawr_address_o, .dmawr_data_o, .dmawr_bytes_o,
    .entry_valid_o(entry_valid), .entry_line_o(entry_line), .entry_data_o(entry_data),
    .publish_valid_o(publish_valid), .publish_ready_i(publish_ready),
    .done_valid_o(done_valid), .done_queue_o(done_queue), .done_count_o(done_count),
    .drain_i(writes_drain), .drained_o(writes_drained)
  );

  entry_reads #(.NumQueues(NumQueues), .EntryW(EntryW)) u_reads (
    .clk_i, .rst_ni(link_rst_ni), .clear_i, .now_ns_i(now_ns_i[33:0]), .window_mask_i,
    .busy_o(reads_busy), .hold_i(hold), .idle_o(reads_idle),
    .setup_write_i(setup_write), .setup_queue_i(setup_queue), .setup_active_i(setup_reads),
    .setup_lines_log2_i(setup.entry_lines_log2), .setup_hold_ns_i(setup.entry_hold_ns),
    .entry_valid_i(entry_valid), .entry_line_i(entry_line), .entry_data_i(entry_data),
    .publish_valid_i(publish_valid), .publish_ready_o(publish_ready), .publish_queue_i(done_queue),
    .doorbell_valid_i(entries_freed_valid_i), .doorbell_queue_i(entries_freed_queue_i),
    .doorbell_count_i(entries_freed_count_i),
    .freed_valid_o(freed_valid), .freed_ready_i(freed_ready), .freed_queue_o(freed_queue),
    .freed_count_o(freed_count),
    .read_valid_i, .read_ready_o, .read_queue_i, .read_word_i, .read_tag_i,
    .answer_valid_o, .answer_ready_i, .answer_tag_o, .answer_value_o,
    .count_entry_reads_o, .count_held_reads_o, .count_held_read_timeouts_o,
    .count_bad_accesses_o(reads_bad_accesses)
  );
  assign count_bad_accesses_o = reads_bad_accesses + 2'(door_bad_access);

  // ---- Interrupts.
  logic [60:0] unused_address;
  logic [63:0] unused_count;
  logic        unused_flag;

  moderation #(.NumQueues(NumQueues), .IdleByGoal(1'b0)) u_moderation (
    .clk_i, .rst_ni, .busy_o(report_busy), .now_ns_i(now_ns_i[32:0]),
    .start_valid_i(report_start), .stop_valid_i(report_stop), .setup_queue_i(setup_queue),
    .start_word_address_i('0),
    .start_count_i(setup.rx_moderation_frames), .start_time_ns_i(setup.rx_moderation_ns),
    .count_valid_i(done_valid), .count_queue_i(done_queue), .count_i(done_count), .count_flag_i(1'b0),
    .goal_valid_i(1'b0), .goal_queue_i('0), .goal_i('0),
    .report_valid_o(irq_valid_o), .report_ready_i(irq_ready_i), .report_queue_o(irq_queue_o),
    .report_word_address_o(unused_address), .report_count_o(unused_count), .report_flag_o(unused_flag)
  );

  assign count_dma_errors_o  = error_valid;
  assign count_bad_lengths_o = 2'(control_bad_length) + 2'(deliver_bad_length);
  assign count_rx_oversize_o = 2'(store_oversize) + 2'(deliver_oversize);

  logic unused_bits;
  assign unused_bits = ^{now_ns_i[47:34], setup, post_value, ring_end, buffers_end, completion_end, notes_end,
                         unused_announce, unused_old};

endmodule

`default_nettype wire

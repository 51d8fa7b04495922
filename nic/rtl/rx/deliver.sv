// Hands the frames of the store to their queues, one after the other: chooses the queue, looks for room,
// commands the writes, and keeps each queue's counts.
//
// Guarantees
//   - Frames are handed on in order. While a queue lends no room a frame waits (lossless_i) or is dropped and
//     counted; while its descriptors are on their way it waits. A frame that its queue can never take is
//     dropped and counted.
//   - What a frame needs is looked for anew every time, from the choice of the queue on: a queue that stops
//     lets the frame that waits for it go to another.
//   - A frame that fits a free entry of a queue that the host reads goes there alone; a longer one goes where the queue's
//     mode says, then to an entry that tells of it. A notification of a pipe follows the frames that it tells of; one that
//     was not due yet is looked at again when the host frees lines.
// Limits
//   - A frame that waits holds back those behind it, whatever their queue: the wire keeps frames in order.
//   - A frame that came when at most one queue received, or when more did than now, may go to the first of
//     them.
//   - Set-up only while hold_i and idle_o are high; the list of receiving queues is made anew then, one cycle
//     a queue.
// Throughput: a frame in 10 cycles at most (11 with descriptors, a pipe or an entry behind it), while earlier ones are
// written.
// Cost: NumQueues x (440 + EntryW) bits of RAM, 1,100 registers. Twin: RxEngine::{frame_arrived, delivered, progress} in
// nic/model/src/rx/mod.rs.

`default_nettype none

module deliver #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // log2 of the lines of entries of a queue.
  parameter int unsigned EntryW = 6,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  // Bits of a number of queues.
  localparam int unsigned ManyW = QueueW + 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  output logic              busy_o,
  input  logic              hold_i,
  output logic              idle_o,
  input  logic              lossless_i,
  // Strap: lines of a window less 1.
  input  logic [EntryW-1:0] window_mask_i,

  input  logic              setup_write_i,
  input  logic [QueueW-1:0] setup_queue_i,
  // 0 off, 1 contiguous ring, 2 descriptors, 3 pipe.
  input  logic [1:0]        setup_mode_i,
  input  logic [59:0]       setup_address_i,
  input  logic [21:0]       setup_mask_i,
  input  logic [60:0]       setup_completion_i,
  // Entries of the ring of notifications less 1; entries that the host reads, their epoch and size.
  input  logic [15:0]       setup_notes_mask_i,
  input  logic              setup_reads_i,
  input  logic [7:0]        setup_epoch_i,
  input  logic [1:0]        setup_lines_log2_i,

  // Queues that receive.
  output logic [ManyW-1:0]  queues_o,

  input  logic              frame_valid_i,
  output logic              frame_ready_o,
  input  logic [13:0]       frame_bytes_i,
  input  logic              frame_hashed_i,
  input  logic              index_valid_i,
  output logic              index_ready_o,
  input  logic [ManyW-1:0]  index_i,

  // The host's counts, checked: lines freed, or buffers lent again.
  input  logic              freed_valid_i,
  output logic              freed_ready_o,
  input  logic [QueueW-1:0] freed_queue_i,
  input  logic [22:0]       freed_count_i,
  // Entries of a queue freed, checked.
  input  logic              entries_freed_valid_i,
  output logic              entries_freed_ready_o,
  input  logic [QueueW-1:0] entries_freed_queue_i,
  input  logic [EntryW:0]   entries_freed_count_i,
  // What the device has used up, for that check; of a pipe what it has told of.
  output logic              used_valid_o,
  output logic [QueueW-1:0] used_queue_o,
  output logic [22:0]       used_count_o,

  // Descriptors: the doorbell passed on, the use told, the look.
  output logic              lent_valid_o,
  input  logic              lent_ready_i,
  output logic [QueueW-1:0] lent_queue_o,
  output logic [16:0]       lent_count_o,
  output logic              taken_valid_o,
  input  logic              taken_ready_i,
  output logic [QueueW-1:0] look_queue_o,
  output logic [13:0]       look_bytes_o,
  output logic [16:0]       look_taken_o,
  output logic [16:0]       look_lent_o,
  output logic [15:0]       look_mask_o,
  output logic [60:0]       look_completion_o,
  input  logic              no_space_i,
  input  logic              is_late_i,
  input  logic              is_bad_i,
  input  logic              is_long_i,
  input  rx_pkg::command_t  buffer_command_i,

  output logic              command_valid_o,
  input  logic              command_ready_i,
  output rx_pkg::command_t  command_o,
  output logic [QueueW-1:0] command_queue_o,
  output logic [31:0]       command_count_o,

  output logic              count_rx_frames_o,
  output logic [13:0]       count_rx_frame_bytes_o,
  output logic              count_rx_no_space_o,
  output logic              count_rx_oversize_o,
  output logic              count_bad_lengths_o,
  output logic              count_completions_o,
  output logic              count_notifications_o
);

  localparam int unsigned Entries = 1 << QueueW;
  localparam logic [1:0] ModeOff         = nic_pkg::RxModeModeOff;
  localparam logic [1:0] ModeRing        = nic_pkg::RxModeModeRing;
  localparam logic [1:0] ModePipe        = nic_pkg::RxModeModePipe;
  localparam logic [1:0] ModeDescriptors = nic_pkg::RxModeModeDescriptors;

  typedef struct packed {
    logic [1:0]  mode;
    logic [59:0] address;
    logic [21:0] mask;
    logic [60:0] completion;
    logic [15:0] notes_mask;
    logic        reads;
    logic [7:0]  epoch;
    logic [1:0]  lines_log2;
  } settings_t;
  typedef struct packed {
    logic [31:0] used;
    logic [31:0] frames;
    // Of a pipe: lines told by the last notification and by the one before it, and notifications.
    logic [22:0] told;
    logic [22:0] told_before;
    logic [16:0] notes;
    logic [30:0] entries;
  } counts_t;
  typedef enum logic [3:0] {
    DlIdle, DlNth, DlRead, DlLook, DlPlan1, DlPlan2, DlPlan3, DlPlan4, DlDecide, DlCommand, DlTaken,
    DlNote, DlEntry
  } deliver_e;
  typedef enum logic [2:0] {WayDone, WayEntry, WayBack, WayLong, WaySpace, WayWait} way_e;

  deliver_e          dl_q, dl_d;
  way_e              way;
  logic [QueueW-1:0] queue_q, nth;
  logic [ManyW-1:0]  index_q;
  logic [13:0]       bytes_q;
  settings_t         settings, settings_q;
  counts_t           counts, counts_q, counts_new_q, counts_told;
  logic [22:0]       freed, freed_q;
  logic [EntryW:0]   entries_freed, entries_freed_q;
  rx_pkg::command_t  ring_command, note_command, entry_command, command_q, command_d;
  logic              ring_long, ring_space, is_ring, is_pipe, is_seen, entries_full, fits, begins,
                     has_frame, gone_q, gone_d, takes_q, takes_d,
                     writes_counts;
  logic [7:0]        ring_lines;
  logic              waits_for_index;
  // Notifications to be looked at; the frame's command is followed by one, or by an entry.
  logic              note_valid, note_ready, list_busy, job_q, job_d, notes_q, notes_d, tells_q, tells_d;
  logic [QueueW-1:0] note_queue;

  // ---- The list of receiving queues, in ascending order.
  logic              clearing_q, list_q, list_d, listed_q, receives;
  logic [QueueW-1:0] clear_q, scan_q, scan_d, listed_queue_q;
  logic [ManyW-1:0]  many_q, many_d;

  table_ram #(.Width(1), .Depth(Entries)) u_receives (
    .clk_i, .we_i(clearing_q || setup_write_i), .waddr_i(clearing_q ? clear_q : setup_queue_i),
    .wdata_i(!clearing_q && (setup_mode_i != ModeOff || setup_reads_i)), .raddr_i(scan_q), .rdata_o(receives)
  );
  table_ram #(.Width(QueueW), .Depth(Entries)) u_nth (
    .clk_i, .we_i(listed_q && receives), .waddr_i(many_q[QueueW-1:0]), .wdata_i(listed_queue_q),
    .raddr_i(index_q[QueueW-1:0]), .rdata_o(nth)
  );

  always_comb begin
    list_d = list_q;
    scan_d = scan_q;
    many_d = many_q + ManyW'(listed_q && receives);
    if (setup_write_i) begin
      list_d = 1'b1;
      scan_d = '0;
      many_d = '0;
    end else if (list_q) begin
      scan_d = scan_q + 1'b1;
      if (scan_q == '1) list_d = 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      clearing_q <= 1'b1;
      clear_q    <= '0;
      list_q     <= 1'b0;
      listed_q   <= 1'b0;
      scan_q     <= '0;
      many_q     <= '0;
    end else begin
      clearing_q <= clearing_q && clear_q != '1;
      clear_q    <= clear_q + QueueW'(clearing_q);
      list_q     <= list_d;
      listed_q   <= list_q && !setup_write_i;
      scan_q     <= scan_d;
      many_q     <= many_d;
    end
    listed_queue_q <= scan_q;
  end

  assign busy_o   = clearing_q || list_q || listed_q || list_busy;
  assign queues_o = many_q;

  // ---- What is known of each queue.
  table_ram #(.Width($bits(settings_t)), .Depth(Entries)) u_settings (
    .clk_i, .we_i(setup_write_i), .waddr_i(setup_queue_i),
    .wdata_i({setup_mode_i, setup_address_i, setup_mask_i, setup_completion_i, setup_notes_mask_i, setup_reads_i,
              setup_epoch_i, setup_lines_log2_i}),
    .raddr_i(queue_q), .rdata_o(settings)
  );
  table_ram #(.Width($bits(counts_t)), .Depth(Entries)) u_counts (
    .clk_i, .we_i(setup_write_i || writes_counts), .waddr_i(setup_write_i ? setup_queue_i : queue_q),
    .wdata_i(setup_write_i ? '0 : dl_q == DlNote ? counts_told : counts_new_q), .raddr_i(queue_q), .rdata_o(counts)
  );
  table_ram #(.Width(23), .Depth(Entries)) u_freed (
    .clk_i, .we_i(setup_write_i || freed_valid_i && freed_ready_o),
    .waddr_i(setup_write_i ? setup_queue_i : freed_queue_i),
    .wdata_i(setup_write_i ? '0 : freed_count_i), .raddr_i(queue_q), .rdata_o(freed)
  );
  table_ram #(.Width(EntryW + 1), .Depth(Entries)) u_entries_freed (
    .clk_i, .we_i(setup_write_i || entries_freed_valid_i),
    .waddr_i(setup_write_i ? setup_queue_i : entries_freed_queue_i),
    .wdata_i(setup_write_i ? '0 : entries_freed_count_i), .raddr_i(queue_q), .rdata_o(entries_freed)
  );
  assign entries_freed_ready_o = !setup_write_i;
  // For the doorbell of a queue with descriptors: how many a ring has, 0 for a queue with a contiguous ring.
  logic [16:0] extra_q, extra;
  logic        has_extra, has_notes, freed_wait_q;
  table_ram #(.Width(19), .Depth(Entries)) u_extra (
    .clk_i, .we_i(setup_write_i), .waddr_i(setup_queue_i),
    .wdata_i({setup_mode_i == ModePipe, setup_mode_i == ModeDescriptors, 17'(setup_mask_i[15:0]) + 17'd1}),
    .raddr_i(freed_queue_i), .rdata_o({has_notes, has_extra, extra})
  );
  // Lines of a pipe were freed: its next notification may be due.
  work_list #(.NumQueues(NumQueues)) u_notes_list (
    .clk_i, .rst_ni, .busy_o(list_busy), .add_valid_i(freed_valid_i && freed_ready_o && has_notes),
    .add_queue_i(freed_queue_i), .take_valid_o(note_valid), .take_ready_i(note_ready), .take_queue_o(note_queue)
  );
  // A count stands for a cycle, so that its queue is known, then it is written and passed on at once.
  always_ff @(posedge clk_i) freed_wait_q <= rst_ni && freed_valid_i && !freed_ready_o && !setup_write_i;
  assign extra_q       = extra;
  assign lent_valid_o  = freed_valid_i && freed_wait_q && has_extra && !setup_write_i;
  assign lent_queue_o  = freed_queue_i;
  assign lent_count_o  = freed_count_i[16:0] + extra_q;
  assign freed_ready_o = freed_wait_q && !setup_write_i && (!has_extra || lent_ready_i);

  // ---- One frame after the other.
  ring_writer u_ring (
    .clk_i, .is_pipe_i(is_pipe), .bytes_i(bytes_q), .ring_line_i(settings_q.address[59:2]), .mask_i(settings_q.mask),
    .written_i(counts_q.used[22:0]), .freed_i(freed_q),
    .is_long_o(ring_long), .no_space_o(ring_space), .lines_o(ring_lines), .command_o(ring_command)
  );

  pipe_notes #(.QueueW(QueueW)) u_notes (
    .clk_i, .queue_i(queue_q), .written_i(counts_new_q.used), .told_i(counts_q.told),
    .told_before_i(counts_q.told_before), .freed_i(freed_q), .notes_i(counts_q.notes),
    .mask_i(settings_q.notes_mask), .ring_word_i(settings_q.completion), .is_seen_o(is_seen),
    .command_o(note_command)
  );

  entry_plan #(.QueueW(QueueW), .EntryW(EntryW)) u_entry (
    .clk_i, .window_mask_i, .queue_i(queue_q), .bytes_i(bytes_q), .epoch_i(settings_q.epoch),
    .lines_log2_i(settings_q.lines_log2), .written_i(counts_q.entries), .freed_i(entries_freed_q),
    .is_full_o(entries_full), .fits_o(fits), .command_o(entry_command)
  );

  assign look_queue_o      = queue_q;
  assign look_bytes_o      = bytes_q;
  assign look_taken_o      = counts_q.used[16:0];
  assign look_lent_o       = freed_q[16:0] + 17'(settings_q.mask[15:0]) + 17'd1;
  assign look_mask_o       = settings_q.mask[15:0];
  assign look_completion_o = settings_q.completion;

  assign waits_for_index = frame_hashed_i && !index_valid_i;
  // Notifications go first: a frame that waits for lines waits for what the host does when it is told.
  assign note_ready = dl_q == DlIdle && !hold_i && !busy_o;
  assign begins  = dl_q == DlIdle && !hold_i && !busy_o && !note_valid && frame_valid_i && !waits_for_index;
  assign is_pipe = settings_q.mode == ModePipe;
  assign is_ring = settings_q.mode == ModeRing || is_pipe;

  always_comb begin
    if (settings_q.reads && entries_full) begin
      way = WaySpace;
    end else if (settings_q.reads && fits) begin
      way = WayEntry;
    end else if (settings_q.mode == ModeOff) begin
      way = WayLong;
    end else if (is_ring) begin
      way = ring_long ? WayLong : ring_space ? WaySpace : WayDone;
    end else begin
      way = no_space_i ? WaySpace : is_late_i ? WayWait : is_bad_i ? WayBack :
            is_long_i ? WayLong : WayDone;
    end
    if (way == WaySpace && lossless_i) way = WayWait;
  end

  always_comb begin
    dl_d          = dl_q;
    gone_d        = gone_q;
    takes_d       = takes_q;
    job_d         = job_q;
    notes_d       = notes_q;
    tells_d       = tells_q;
    command_d     = command_q;
    writes_counts = 1'b0;
    count_rx_frames_o    = 1'b0;
    count_rx_no_space_o  = 1'b0;
    count_rx_oversize_o  = 1'b0;
    count_bad_lengths_o  = 1'b0;
    count_completions_o  = 1'b0;
    count_notifications_o = 1'b0;
    unique case (dl_q)
      DlIdle: begin
        job_d   = note_valid;
        notes_d = 1'b0;
        tells_d = 1'b0;
        if (note_valid && note_ready) begin
          dl_d = DlLook;
        end else if (begins) begin
          dl_d = DlNth;
          if (many_q == '0) begin
            dl_d    = DlCommand;
            gone_d  = 1'b1;
            takes_d = 1'b0;
            count_rx_no_space_o = 1'b1;
            command_d = '{drop: 1'b1, bytes: frame_bytes_i, default: '0};
          end
        end
      end
      DlNth:   dl_d = DlRead;
      DlRead:  dl_d = DlLook;
      DlLook:  dl_d = DlPlan1;
      DlPlan1: dl_d = DlPlan2;
      DlPlan2: dl_d = DlPlan3;
      DlPlan3: dl_d = DlPlan4;
      DlPlan4: dl_d = DlDecide;
      DlDecide: begin
        dl_d      = DlCommand;
        gone_d    = way != WayBack;
        takes_d   = !is_ring && (way == WayDone || way == WayBack);
        notes_d   = is_pipe && way == WayDone && is_seen;
        tells_d   = settings_q.reads && way == WayDone;
        command_d = is_ring ? ring_command : buffer_command_i;
        command_d.is_told = command_d.is_told && !notes_d && !tells_d;
        unique case (way)
          WayDone: begin
            count_rx_frames_o   = 1'b1;
            count_completions_o = !is_ring;
          end
          WayEntry: begin
            count_rx_frames_o = 1'b1;
            command_d         = entry_command;
          end
          WayBack: begin
            count_bad_lengths_o = 1'b1;
            count_completions_o = 1'b1;
          end
          WayLong, WaySpace: begin
            count_rx_oversize_o = way == WayLong;
            count_rx_no_space_o = way == WaySpace;
            command_d = '{drop: 1'b1, bytes: bytes_q, default: '0};
          end
          default: dl_d = DlIdle;
        endcase
        if (job_q) begin
          // No frame: what was told is compared with what has been written.
          dl_d = (is_pipe && is_seen && counts_q.used[22:0] != counts_q.told) ? DlNote : DlIdle;
          notes_d = 1'b1;
          tells_d = 1'b0;
          {count_rx_frames_o, count_completions_o, count_bad_lengths_o, count_rx_oversize_o} = '0;
          count_rx_no_space_o = 1'b0;
        end
      end
      DlCommand: begin
        if (command_ready_i) begin
          writes_counts = !command_q.drop;
          dl_d = takes_q ? DlTaken : notes_q ? DlNote : tells_q ? DlEntry : DlIdle;
        end
      end
      DlTaken: if (taken_ready_i) dl_d = tells_q ? DlEntry : DlIdle;
      DlNote: begin
        if (command_ready_i) begin
          writes_counts = 1'b1;
          count_notifications_o = 1'b1;
          dl_d = tells_q ? DlEntry : DlIdle;
        end
      end
      DlEntry: if (command_ready_i) dl_d = DlIdle;
      default: dl_d = DlIdle;
    endcase
  end

  assign has_frame     = dl_q == DlCommand && command_ready_i && gone_q;
  assign frame_ready_o = has_frame;
  assign index_ready_o = has_frame && frame_hashed_i;
  assign count_rx_frame_bytes_o = count_rx_frames_o ? bytes_q : '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) dl_q <= DlIdle;
    else         dl_q <= dl_d;
    gone_q    <= gone_d;
    takes_q   <= takes_d;
    job_q     <= job_d;
    notes_q   <= notes_d;
    tells_q   <= tells_d;
    command_q <= command_d;
    if (dl_q == DlIdle) begin
      bytes_q <= frame_bytes_i;
      // A list that has become shorter than the index was made for: the first queue.
      index_q <= (frame_hashed_i && index_i < many_q) ? index_i : '0;
    end
    if (dl_q == DlRead) queue_q <= nth;
    if (note_valid && note_ready) queue_q <= note_queue;
    if (dl_q == DlPlan1) begin
      settings_q <= settings;
      counts_q   <= counts;
      freed_q    <= freed;
      entries_freed_q <= entries_freed;
    end
    if (dl_q == DlDecide) begin
      counts_new_q <= counts_q;
      if (!job_q) begin
        if (way != WayEntry) counts_new_q.used <= counts_q.used + (is_ring ? 32'(ring_lines) : 32'd1);
        counts_new_q.frames <= counts_q.frames + 32'(way == WayDone || way == WayEntry);
        if (settings_q.reads && (way == WayDone || way == WayEntry)) counts_new_q.entries <= counts_q.entries + 31'd1;
      end
    end
  end

  always_comb begin
    counts_told             = counts_new_q;
    counts_told.told        = counts_new_q.used[22:0];
    counts_told.told_before = counts_q.told;
    counts_told.notes       = counts_q.notes + 17'd1;
  end

  assign command_valid_o = dl_q == DlCommand || dl_q == DlNote || dl_q == DlEntry;
  always_comb begin
    command_o = command_q;
    if (dl_q == DlNote) begin
      command_o         = note_command;
      command_o.is_told = !job_q && !tells_q;
    end
    if (dl_q == DlEntry) command_o = entry_command;
  end
  assign command_queue_o = queue_q;
  assign command_count_o = counts_new_q.frames;
  assign taken_valid_o   = dl_q == DlTaken;
  assign used_valid_o    = writes_counts && is_pipe == (dl_q == DlNote) && settings_q.mode != ModeOff;
  assign used_queue_o    = queue_q;
  assign used_count_o    = counts_new_q.used[22:0];
  assign idle_o          = dl_q == DlIdle;

  logic unused_bits;
  assign unused_bits = ^{settings_q.address, index_q};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!setup_write_i || hold_i && idle_o) else $error("deliver: set up while at work");
      assert (dl_q != DlDecide || job_q || settings_q.mode != '0 || settings_q.reads)
        else $error("deliver: a frame for a queue that is off");
    end
  end
`endif

endmodule

`default_nettype wire

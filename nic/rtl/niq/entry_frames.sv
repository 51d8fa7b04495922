// Entries that have arrived become frames: whole ones are copied to the frame buffer, those by address are fetched.
//
// Entries of a queue are taken in order, queues take turns of TurnEntries. Each becomes one record in the order of
// taking, over all queues, through the ring of reads (dma/read_ring.sv), whether it needs reads or not; so frames stay
// in order whatever the answers do. A frame's lines in the buffer are reserved before its first byte: whatever is
// answered has its place.
//
// Guarantees
//   - A read never crosses a 4 KiB boundary, and reads exactly the bytes of the frame.
//   - A frame that makes no sense (length 0, longer than the port's longest, below an Ethernet header, or reaching past
//     the address space) and one that cannot be read become a bad record and are counted; an entry without a frame
//     becomes a bad record and is not. All are done in their turn like any other.
// Limits
//   - Set-up only while hold_i and idle_o are high. An entry that waits for room is put back on a hold.
//   - Beats of answers land first: a copy waits for a cycle in which none does.
// Throughput: an entry in 8 cycles and 2 for each line of it beyond the first. Latency: 14 cycles from arrival to
// record.
// Cost: NumQueues x (2 x 32 + 3) bits of RAM, a read_ring of Reads, 1,100 registers.
// Twin: TxEntries::place_entries in nic/model/src/niq/tx_entries.rs, nic/model/src/fetch/frame_queue.rs.

`default_nettype none

module entry_frames #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // log2 of the lines of the longest window.
  parameter int unsigned LineW = 6,
  // Reads under way, a power of two from 2 to 256.
  parameter int unsigned Reads = 32,
  // Lines of the frame buffer, a power of two from 256 to 8192.
  parameter int unsigned BufferLines = 512,
  // Frames that may be on their way or in the buffer, a power of two from 8 to 256.
  parameter int unsigned Frames = 64,
  // Entries of one turn, 1 to 127.
  parameter int unsigned TurnEntries = 16,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned TagW = $clog2(Reads),
  localparam int unsigned BufferW = $clog2(BufferLines),
  localparam int unsigned PlaceW = BufferW + 6
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  // Strap: the port's longest frame.
  input  logic [13:0]       max_frame_bytes_i,

  output logic              busy_o,
  input  logic              hold_i,
  output logic              idle_o,
  input  logic              drain_i,
  output logic              drained_o,
  input  logic              setup_write_i,
  input  logic [QueueW-1:0] setup_queue_i,
  input  logic              setup_active_i,
  input  logic [1:0]        setup_lines_log2_i,

  input  logic              arrived_valid_i,
  output logic              arrived_ready_o,
  input  logic [QueueW-1:0] arrived_queue_i,
  input  logic [31:0]       arrived_count_i,

  // A line of an entry, a cycle after it is named.
  output logic [QueueW-1:0] read_queue_o,
  output logic [LineW-1:0]  read_line_o,
  input  logic [511:0]      read_data_i,

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

  // Beats for the frame buffer, and frames that are whole there, as in descriptor/payload_fetch.sv.
  output logic              land_valid_o,
  output logic [PlaceW-1:0] land_place_o,
  output logic [6:0]        land_bytes_o,
  output logic [511:0]      land_data_o,
  output logic              frame_valid_o,
  output logic [QueueW-1:0] frame_queue_o,
  output logic [31:0]       frame_count_o,
  output logic              frame_flag_o,
  output logic              frame_bad_o,
  output logic [13:0]       frame_bytes_o,
  output logic [BufferW-1:0] frame_line_o,
  input  logic              released_valid_i,
  input  logic [7:0]        released_lines_i,

  output logic              count_payload_fetches_o,
  output logic              count_runts_o,
  output logic              count_bad_lengths_o,
  output logic [1:0]        count_dma_errors_o
);

  localparam int unsigned Entries = 1 << QueueW;
  localparam int unsigned PageBytes = 4096;
  localparam int unsigned FramesW = $clog2(Frames);
  localparam logic [6:0] LineBytes = 7'(nic_pkg::LineBytes);
  localparam logic [6:0] FirstBytes = 7'(nic_pkg::LineBytes - nic_pkg::EntryHeadBytes);

  if (BufferLines < 256 || BufferLines > 8192 || (BufferLines & (BufferLines - 1)) != 0) begin : g_bad_lines
    $fatal(1, "entry_frames: BufferLines must be a power of two from 256 to 8192");
  end
  if (Frames < 8 || Frames > 256 || (Frames & (Frames - 1)) != 0) begin : g_bad_frames
    $fatal(1, "entry_frames: Frames must be a power of two from 8 to 256");
  end
  if (TurnEntries < 1 || TurnEntries > 127) begin : g_bad_turn
    $fatal(1, "entry_frames: TurnEntries must be 1 to 127");
  end

  typedef struct packed {
    logic               is_last;
    logic               is_bad;
    logic               flag;
    logic [QueueW-1:0]  queue_id;
    logic [31:0]        count;
    logic [13:0]        bytes;
    logic [BufferW-1:0] line;
  } record_t;
  typedef enum logic [3:0] {
    FrIdle, FrRead, FrLook, FrFetch, FrHead, FrCheck, FrJudge, FrRoom, FrLine, FrCopy, FrAsk, FrNext, FrBack
  } fr_e;

  fr_e               fr_q, fr_d;
  logic              list_busy, ring_busy, take_valid, take_ready, requeue, is_more;
  logic [QueueW-1:0] take_queue, queue_q, clear_q;
  logic              active;
  logic [1:0]        lines_log2, lines_log2_q;
  logic [31:0]       arrived, placed, placed_q, placed_d, placed_next;
  logic [31:0]       arrived_q;
  logic [6:0]        run_q, run_d;

  assign busy_o     = list_busy || ring_busy;
  assign idle_o     = fr_q == FrIdle;
  assign take_ready = fr_q == FrIdle && !hold_i;

  // ---- Turns. A queue that is put back goes before an arrival, which waits a cycle.
  assign requeue         = fr_q == FrBack;
  assign arrived_ready_o = !requeue && !setup_write_i;

  work_list #(.NumQueues(NumQueues)) u_list (
    .clk_i, .rst_ni, .busy_o(list_busy),
    .add_valid_i(requeue || arrived_valid_i && arrived_ready_o), .add_queue_i(requeue ? queue_q : arrived_queue_i),
    .take_valid_o(take_valid), .take_ready_i(take_ready), .take_queue_o(take_queue)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) clear_q <= '0;
    else         clear_q <= clear_q + QueueW'(list_busy);
  end

  table_ram #(.Width(3), .Depth(Entries)) u_active (
    .clk_i, .we_i(setup_write_i || list_busy), .waddr_i(list_busy ? clear_q : setup_queue_i),
    .wdata_i(list_busy ? '0 : {setup_active_i, setup_lines_log2_i}), .raddr_i(queue_q), .rdata_o({active, lines_log2})
  );
  table_ram #(.Width(32), .Depth(Entries)) u_arrived (
    .clk_i, .we_i(setup_write_i || arrived_valid_i && arrived_ready_o),
    .waddr_i(setup_write_i ? setup_queue_i : arrived_queue_i), .wdata_i(setup_write_i ? '0 : arrived_count_i),
    .raddr_i(queue_q), .rdata_o(arrived)
  );
  table_ram #(.Width(32), .Depth(Entries)) u_placed (
    .clk_i, .we_i(setup_write_i || fr_q == FrNext), .waddr_i(setup_write_i ? setup_queue_i : queue_q),
    .wdata_i(setup_write_i ? '0 : placed_q), .raddr_i(queue_q), .rdata_o(placed)
  );

  increment #(.Width(32)) u_next (.value_i(placed_q), .add_i(1'b1), .sum_o(placed_next));

  // ---- One entry: its head, and whether that makes sense.
  nic_pkg::entry_header_word_t head, head_q;
  logic [63:0]  address_q, address_d;
  logic         is_zero_q, is_runt_q, is_long_q, is_outside_q, is_whole_q, is_nothing_q, is_bad_q;
  logic [14:0]  address_end;
  logic [12:0]  page_left;
  logic [13:0]  bytes_q;
  logic [7:0]   lines_q;
  logic [13:0]  left_q, left_d, rest;
  logic [12:0]  size_q, size_d;
  logic         is_last_q, is_last_d;
  logic [PlaceW-1:0] place_q, place_d;
  logic [1:0]   line_q, line_d;
  logic [6:0]   copy_bytes;
  logic [511:0] copy_data;

  assign head        = read_data_i[63:0];
  assign address_end = 15'(address_q[13:0]) + 15'(head_q.length_bytes[13:0]);
  assign page_left   = 13'(PageBytes) - 13'(address_q[11:0]);
  assign rest        = left_q - 14'(size_q);
  // Of a whole entry the first line holds the head too.
  assign copy_data   = (line_q == '0) ? 512'(read_data_i[511:8*nic_pkg::EntryHeadBytes]) : read_data_i;
  assign copy_bytes  = (left_q > 14'(line_q == '0 ? FirstBytes : LineBytes)) ? (line_q == '0 ? FirstBytes : LineBytes)
                                                                          : left_q[6:0];

  assign read_queue_o = queue_q;
  assign read_line_o  = LineW'(placed_q[LineW-1:0] << lines_log2_q) | LineW'(line_q);

  // ---- Room: what is reserved is taken off at once, what is released comes a cycle later.
  logic [BufferW-1:0] tail_q, tail_d;
  logic [BufferW:0]   free_q, free_d, taken_lines;
  logic [FramesW:0]   frames_q, frames_d;
  logic               fits_q, reserve, released_q;
  logic [7:0]         released_lines_q;

  assign taken_lines = reserve && !is_bad_q ? (BufferW + 1)'(lines_q) : '0;
  assign free_d      = free_q + (BufferW + 1)'(released_lines_q) - taken_lines;
  assign frames_d    = frames_q + (FramesW + 1)'(reserve) - (FramesW + 1)'(released_q);

  // ---- Asking and copying.
  logic      ask_valid, ask_ready, ask, ring_land, copies;
  record_t   ask_record, done_record;
  logic      done_valid, done_error, failed_q, failed_d;
  logic [PlaceW-1:0] ring_place;
  logic [5:0]   ring_beat;
  logic [6:0]   ring_bytes;
  logic [511:0] ring_data;
  logic [BufferW-1:0] start_line_q;

  assign ask_valid = fr_q == FrAsk;
  assign ask       = ask_valid && ask_ready;
  assign copies    = fr_q == FrCopy && !ring_land;

  always_comb begin
    fr_d      = fr_q;
    placed_d  = placed_q;
    run_d     = run_q;
    left_d    = left_q;
    size_d    = size_q;
    is_last_d = is_last_q;
    address_d = address_q;
    place_d   = place_q;
    line_d    = line_q;
    tail_d    = tail_q;
    reserve   = 1'b0;
    unique case (fr_q)
      FrIdle: begin
        run_d = '0;
        if (take_valid && take_ready) fr_d = FrRead;
      end
      FrRead: fr_d = FrLook;
      FrLook: begin
        placed_d = placed;
        line_d   = '0;
        fr_d     = (active && arrived != placed) ? FrFetch : FrIdle;
      end
      FrFetch: fr_d = FrHead;
      FrHead: begin
        address_d = read_data_i[127:64];
        fr_d      = FrCheck;
      end
      FrCheck: fr_d = FrJudge;
      FrJudge: begin
        left_d    = bytes_q;
        size_d    = (bytes_q > 14'(page_left)) ? page_left : bytes_q[12:0];
        is_last_d = is_whole_q || is_bad_q || bytes_q <= 14'(page_left);
        place_d   = {tail_q, 6'd0};
        fr_d      = FrRoom;
      end
      FrRoom: begin
        // `fits_q` is of the cycle before, and there may be more by now.
        if (fits_q) begin
          reserve = 1'b1;
          if (!is_bad_q) tail_d = tail_q + BufferW'(lines_q);
          fr_d = (is_whole_q && !is_bad_q) ? FrCopy : FrAsk;
        end else if (hold_i) begin
          fr_d = FrBack;
        end
      end
      FrCopy: begin
        if (copies) begin
          left_d  = left_q - 14'(copy_bytes);
          place_d = place_q + PlaceW'(copy_bytes);
          line_d  = line_q + 2'd1;
          fr_d    = (left_q == 14'(copy_bytes)) ? FrAsk : FrLine;
        end
      end
      // The next line is named in this cycle, and stands from the next one on.
      FrLine: fr_d = FrCopy;
      FrAsk: begin
        if (ask) begin
          address_d = {address_q[63:12] + 52'd1, 12'd0};
          left_d    = rest;
          size_d    = (rest > 14'(PageBytes)) ? 13'(PageBytes) : rest[12:0];
          is_last_d = rest <= 14'(PageBytes);
          place_d   = place_q + PlaceW'(size_q);
          if (is_last_q) begin
            placed_d = placed_next;
            run_d    = run_q + 7'd1;
            line_d   = '0;
            fr_d     = FrNext;
          end
        end
      end
      FrNext: begin
        fr_d = FrBack;
        if (!is_more) fr_d = FrIdle;
        else if (!hold_i && run_q != 7'(TurnEntries)) fr_d = FrFetch;
      end
      FrBack: fr_d = FrIdle;
      default: fr_d = FrIdle;
    endcase
  end

  assign is_more = arrived_q != placed_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      fr_q     <= FrIdle;
      tail_q   <= '0;
      free_q   <= (BufferW + 1)'(BufferLines);
      frames_q <= '0;
      released_q       <= 1'b0;
      released_lines_q <= '0;
    end else begin
      fr_q     <= fr_d;
      tail_q   <= tail_d;
      free_q   <= free_d;
      frames_q <= frames_d;
      released_q       <= released_valid_i;
      released_lines_q <= released_valid_i ? released_lines_i : '0;
    end
    if (take_ready) queue_q <= take_queue;
    placed_q  <= placed_d;
    run_q     <= run_d;
    left_q    <= left_d;
    size_q    <= size_d;
    is_last_q <= is_last_d;
    address_q <= address_d;
    place_q   <= place_d;
    line_q    <= line_d;
    if (fr_q == FrLook) begin
      arrived_q    <= arrived;
      lines_log2_q <= lines_log2;
    end
    if (fr_q == FrHead) head_q <= head;
    if (fr_q == FrCheck) begin
      is_whole_q   <= head_q.kind == 4'(nic_pkg::EntryKindWhole);
      is_nothing_q <= head_q.kind == 4'(nic_pkg::EntryKindNothing);
      is_zero_q    <= head_q.length_bytes == '0;
      is_runt_q    <= head_q.length_bytes < 16'(nic_pkg::MinFrameBytes) && head_q.length_bytes != '0;
      is_long_q    <= head_q.length_bytes > 16'(max_frame_bytes_i);
      is_outside_q <= address_q[63:14] == '1 && address_end[14] && head_q.kind == 4'(nic_pkg::EntryKindAddress);
      is_bad_q     <= head_q.kind == 4'(nic_pkg::EntryKindNothing)
                      || head_q.length_bytes < 16'(nic_pkg::MinFrameBytes)
                      || head_q.length_bytes > 16'(max_frame_bytes_i)
                      || (address_q[63:14] == '1 && address_end[14] && head_q.kind == 4'(nic_pkg::EntryKindAddress));
      bytes_q      <= head_q.length_bytes[13:0];
      lines_q      <= 8'((15'(head_q.length_bytes[13:0]) + 15'd63) >> 6);
    end
    fits_q <= (is_bad_q || (BufferW + 1)'(lines_q) <= free_q) && !frames_q[FramesW];
    if (reserve) start_line_q <= tail_q;
  end

  assign count_runts_o       = fr_q == FrRoom && fr_d != FrRoom && fr_d != FrBack && !is_nothing_q && is_runt_q;
  assign count_bad_lengths_o = fr_q == FrRoom && fr_d != FrRoom && fr_d != FrBack && !is_nothing_q
                               && (is_zero_q || is_long_q);
  assign count_dma_errors_o  = 2'(fr_q == FrRoom && fr_d != FrRoom && fr_d != FrBack && !is_nothing_q && is_outside_q
                                  && !is_runt_q && !is_zero_q && !is_long_q)
                               + 2'(done_valid && done_error);

  // ---- The reads, and the frames that come of them.
  assign ask_record = '{
    is_last: is_last_q, is_bad: is_bad_q, flag: head_q.wants_irq, queue_id: queue_q, count: placed_next,
    bytes: is_bad_q ? '0 : bytes_q, line: start_line_q
  };

  logic ask_reads;
  assign ask_reads = !is_bad_q && !is_whole_q;
  assign count_payload_fetches_o = ask && ask_reads;

  read_ring #(.Reads(Reads), .MetaW($bits(record_t)), .PlaceW(PlaceW)) u_ring (
    .clk_i, .rst_ni, .busy_o(ring_busy),
    .ask_valid_i(ask_valid), .ask_ready_o(ask_ready), .ask_reads_i(ask_reads), .ask_address_i(address_q),
    .ask_bytes_i(ask_reads ? size_q : 13'd1), .ask_meta_i(ask_record), .ask_place_i(place_q),
    .rdreq_valid_o, .rdreq_ready_i, .rdreq_address_o, .rdreq_bytes_o, .rdreq_tag_o,
    .rdcpl_valid_i, .rdcpl_tag_i, .rdcpl_data_i, .rdcpl_last_i, .rdcpl_error_i,
    .land_valid_o(ring_land), .land_place_o(ring_place), .land_beat_o(ring_beat), .land_bytes_o(ring_bytes),
    .land_data_o(ring_data),
    .done_valid_o(done_valid), .done_ready_i(1'b1), .done_meta_o(done_record), .done_error_o(done_error),
    .drain_i, .drained_o
  );

  assign land_valid_o = ring_land || copies;
  assign land_place_o = ring_land ? ring_place + {BufferW'(ring_beat), 6'd0} : place_q;
  assign land_bytes_o = ring_land ? ring_bytes : copy_bytes;
  assign land_data_o  = ring_land ? ring_data : copy_data;

  always_comb begin
    failed_d = failed_q;
    if (done_valid) failed_d = !done_record.is_last && (failed_q || done_error);
  end
  always_ff @(posedge clk_i) failed_q <= rst_ni && failed_d;

  assign frame_valid_o = done_valid && done_record.is_last;
  assign frame_queue_o = done_record.queue_id;
  assign frame_count_o = done_record.count;
  assign frame_flag_o  = done_record.flag;
  assign frame_bad_o   = done_record.is_bad || done_error || failed_q;
  assign frame_bytes_o = done_record.bytes;
  assign frame_line_o  = done_record.line;

  logic unused_bits;
  assign unused_bits = ^{head_q, address_end};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!setup_write_i || hold_i && idle_o) else $error("entry_frames: set up while at work");
      assert (free_q <= (BufferW + 1)'(BufferLines) && frames_q <= (FramesW + 1)'(Frames))
        else $error("entry_frames: more lines free than there are");
      assert (!released_q || frames_q != '0) else $error("entry_frames: a frame released twice");
      assert (!reserve || is_bad_q || (BufferW + 1)'(lines_q) <= free_q)
        else $error("entry_frames: no room for what was reserved");
      assert (fr_q != FrLook || !active || arrived - placed <= 32'(1) << LineW)
        else $error("entry_frames: more entries than places");
      assert (!copies || land_bytes_o != '0) else $error("entry_frames: an empty copy");
    end
  end
`endif

endmodule

`default_nettype wire

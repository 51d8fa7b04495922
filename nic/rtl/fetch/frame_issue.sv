// Frames one after the other: gives each its place in the frame buffer, asks for its bytes or takes them as they come,
// and tells of it in its turn.
//
// Guarantees
//   - Every frame taken becomes one record in the order of taking, over all queues: the record leaves when all its
//     reads are answered (see read_ring.sv), so frames stay in order whatever the answers do.
//   - A read never crosses a 4 KiB boundary, and reads exactly the bytes of the frame. A frame's lines in the buffer are
//     reserved before its first read: whatever is answered has its place.
//   - A bad frame needs no bytes and becomes a bad record; a frame of which a read failed becomes one too.
//   - A frame that is put (`in_put_i`) is not read: its bytes come by `put_*`, the last of them marked, and land where
//     those of answers do. Nothing is reserved before the last of them, so one that is dropped leaves nothing behind.
//   - `kill_i` drops the frame of a queue for which nothing was asked; `kill_busy_o` while one is being asked for.
// Limits
//   - in_address_i and in_bytes_i must make sense: 1 to MaxFrameBytes, inside the address space.
//   - in_valid_i may be taken back, put_valid_i too. `put_drop_i` is for the frame that is being put.
//   - Frames is what the record's reader has room for.
// Latency: 1 cycle to the request when there is room, 8 with little room left. One frame a cycle, one read a cycle for
// frames that cross pages, one line a cycle of those that are put, when no answer lands.
// Cost: a read_ring of Reads, 350 registers. Twin: FrameQueue::{put, begin, issue} in nic/model/src/fetch/frame_queue.rs.

`default_nettype none

module frame_issue #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // Reads under way, a power of two from 2 to 256.
  parameter int unsigned Reads = 128,
  // Longest frame in bytes, 64 to 9216.
  parameter int unsigned MaxFrameBytes = 9216,
  // Lines of the frame buffer, a power of two from 256 to 8192.
  parameter int unsigned BufferLines = 2048,
  // Frames that may be on their way or in the buffer, a power of two from 8 to 256.
  parameter int unsigned Frames = 128,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned LineW = $clog2(BufferLines),
  localparam int unsigned TagW = $clog2(Reads),
  localparam int unsigned PlaceW = LineW + 6
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  output logic              busy_o,
  input  logic              drain_i,
  output logic              drained_o,
  input  logic              kill_i,
  input  logic [QueueW-1:0] kill_queue_i,
  output logic              kill_busy_o,

  // A frame: what its queue's count is when it is done, and where its bytes are.
  input  logic              in_valid_i,
  output logic              in_ready_o,
  input  logic [QueueW-1:0] in_queue_i,
  input  logic [31:0]       in_count_i,
  input  logic              in_flag_i,
  input  logic              in_bad_i,
  input  logic              in_put_i,
  input  logic [63:0]       in_address_i,
  input  logic [13:0]       in_bytes_i,

  // The bytes of a frame that is put, from the lowest on.
  input  logic              put_valid_i,
  output logic              put_ready_o,
  input  logic [511:0]      put_data_i,
  input  logic [6:0]        put_bytes_i,
  input  logic              put_last_i,
  input  logic              put_drop_i,

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

  output logic              count_fetches_o,
  output logic              count_errors_o
);

  localparam int unsigned PageBytes = 4096;
  localparam int unsigned FramesW = $clog2(Frames);
  // Room for the frames that may be reserved before the counts know of it, and for one more.
  localparam int unsigned PlentyLines = 4 * ((MaxFrameBytes + nic_pkg::LineBytes - 1) / nic_pkg::LineBytes);
  localparam bit HasPlenty = PlentyLines <= BufferLines;

  if (MaxFrameBytes < 64 || MaxFrameBytes > nic_pkg::MaxFrameBytes) begin : g_bad_frame
    $fatal(1, "frame_issue: MaxFrameBytes must be 64 to 9216");
  end
  if (BufferLines < 256 || BufferLines > 8192 || (BufferLines & (BufferLines - 1)) != 0) begin : g_bad_lines
    $fatal(1, "frame_issue: BufferLines must be a power of two from 256 to 8192");
  end
  if (Frames < 8 || Frames > 256 || (Frames & (Frames - 1)) != 0) begin : g_bad_frames
    $fatal(1, "frame_issue: Frames must be a power of two from 8 to 256");
  end

  typedef struct packed {
    logic              is_last;
    logic              is_bad;
    logic              flag;
    logic [QueueW-1:0] queue_id;
    logic [31:0]       count;
    logic [13:0]       bytes;
    logic [LineW-1:0]  line;
  } record_t;

  logic              in_take;
  logic [12:0]       in_first;
  logic              d_valid_q, d_valid_d, d_started_q, d_started_d, d_bad_q, d_put_q, d_flag_q;
  logic [QueueW-1:0] d_queue_q;
  logic [31:0]       d_count_q;
  logic [63:0]       d_address_q, d_address_d;
  logic [13:0]       d_bytes_q, d_left_q, d_left_d, d_rest;
  logic [12:0]       d_size_q, d_size_d;
  logic [7:0]        d_lines_q;
  logic [PlaceW-1:0] d_place_q, d_place_d;
  logic              d_last_q, d_last_d, d_has_room, d_fits_q, d_goes_q, plenty_q, ask_valid, ask_ready, ask, kill,
                     put;

  logic [LineW-1:0]  tail_q, tail_d;
  // The line at which the frame that is being asked for begins.
  logic [LineW-1:0]  start_line_q;
  logic [LineW:0]    free_q, free_d;
  logic [FramesW:0]  frames_q, frames_d;
  // What was reserved and released a cycle ago, on its way into the counts; how long nothing was reserved.
  logic              reserved_q, released_q;
  logic [7:0]        reserved_lines_q, released_lines_q;
  logic [1:0]        still_q, still_d;

  logic              ring_land_valid;
  logic [PlaceW-1:0] ring_land_place;
  logic [5:0]        ring_land_beat;
  logic [6:0]        ring_land_bytes;
  logic [511:0]      ring_land_data;

  assign in_ready_o = !d_valid_q || ask && d_last_q;
  assign in_take    = in_valid_i && in_ready_o;
  assign in_first   = 13'(PageBytes) - 13'(in_address_i[11:0]);

  // ---- Asking.
  assign d_rest     = d_left_q - 14'(d_size_q);
  // The counts are two cycles late. Where there is plenty that does no harm; otherwise a frame waits until it
  // and they have stood still for as long.
  assign d_has_room = d_started_q || plenty_q || d_goes_q;
  assign ask_valid  = d_valid_q && d_has_room && (!d_put_q || put && put_last_i);
  assign ask        = ask_valid && ask_ready;
  assign kill       = (kill_i && d_queue_q == kill_queue_i || put_drop_i && d_put_q) && !d_started_q && !ask;

  assign kill_busy_o = d_valid_q && d_started_q && d_queue_q == kill_queue_i;

  // An answer cannot wait, so what is put does. The last line needs room among the reads as well.
  assign put_ready_o = d_valid_q && d_put_q && d_has_room && !ring_land_valid && (!put_last_i || ask_ready);
  assign put         = put_valid_i && put_ready_o;

  always_comb begin
    d_valid_d   = d_valid_q && !(ask && d_last_q) && !kill;
    d_started_d = d_started_q;
    d_address_d = d_address_q;
    d_left_d    = d_left_q;
    d_size_d    = d_size_q;
    d_last_d    = d_last_q;
    d_place_d   = d_place_q;
    tail_d      = tail_q;
    free_d      = free_q - (LineW + 1)'(reserved_lines_q) + (LineW + 1)'(released_lines_q);
    frames_d    = frames_q + (FramesW + 1)'(reserved_q) - (FramesW + 1)'(released_q);
    still_d     = (still_q == '1) ? still_q : still_q + 2'd1;
    if (put) d_place_d = d_place_q + PlaceW'(put_bytes_i);
    if (ask) begin
      d_started_d = !d_last_q;
      d_address_d = {d_address_q[63:12] + 52'd1, 12'd0};
      d_left_d    = d_rest;
      d_size_d    = (d_rest > 14'(PageBytes)) ? 13'(PageBytes) : d_rest[12:0];
      d_last_d    = d_rest <= 14'(PageBytes);
      if (!d_put_q) d_place_d = d_place_q + PlaceW'(d_size_q);
      if (!d_started_q) still_d = '0;
      if (!d_started_q && !d_bad_q) tail_d = tail_q + LineW'(d_lines_q);
    end
    if (in_take) begin
      still_d     = '0;
      d_valid_d   = 1'b1;
      d_started_d = 1'b0;
      d_address_d = in_address_i;
      d_left_d    = in_bytes_i;
      d_size_d    = (in_bytes_i > 14'(in_first)) ? in_first : in_bytes_i[12:0];
      d_last_d    = in_bad_i || in_put_i || in_bytes_i <= 14'(in_first);
      d_place_d   = {tail_d, 6'd0};
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      d_valid_q <= 1'b0;
      d_started_q <= 1'b0;
      tail_q    <= '0;
      free_q    <= (LineW + 1)'(BufferLines);
      frames_q  <= '0;
      reserved_q <= 1'b0;
      released_q <= 1'b0;
      reserved_lines_q <= '0;
      released_lines_q <= '0;
      still_q   <= '0;
      plenty_q  <= 1'b0;
    end else begin
      d_valid_q <= d_valid_d;
      d_started_q <= d_started_d;
      tail_q    <= tail_d;
      free_q    <= free_d;
      frames_q  <= frames_d;
      reserved_q <= ask && !d_started_q;
      released_q <= released_valid_i;
      reserved_lines_q <= (ask && !d_started_q && !d_bad_q) ? d_lines_q : '0;
      released_lines_q <= released_valid_i ? released_lines_i : '0;
      still_q   <= still_d;
      plenty_q  <= free_q >= (LineW + 1)'(PlentyLines) && frames_q < (FramesW + 1)'(Frames - 4) && HasPlenty;
    end
    d_address_q <= d_address_d;
    d_left_q    <= d_left_d;
    d_size_q    <= d_size_d;
    d_last_q    <= d_last_d;
    d_fits_q    <= (d_bad_q || (LineW + 1)'(d_lines_q) <= free_q) && !frames_q[FramesW];
    d_goes_q    <= d_fits_q && still_q == '1 && still_d == '1;
    d_place_q   <= d_place_d;
    if (in_take) begin
      d_queue_q <= in_queue_i;
      d_count_q <= in_count_i;
      d_bad_q   <= in_bad_i;
      d_put_q   <= in_put_i && !in_bad_i;
      d_flag_q  <= in_flag_i;
      d_bytes_q <= in_bytes_i;
      d_lines_q <= 8'((15'(in_bytes_i) + 15'd63) >> 6);
    end
  end

  // ---- The reads, and the frames that come of them.
  record_t ask_record, done_record;
  logic    done_valid, done_error, failed_q, failed_d, reads;

  assign reads      = !d_bad_q && !d_put_q;
  assign ask_record = '{
    is_last: d_last_q, is_bad: d_bad_q, flag: d_flag_q, queue_id: d_queue_q, count: d_count_q,
    bytes: d_bad_q ? '0 : d_bytes_q, line: d_started_q ? start_line_q : tail_q
  };
  always_ff @(posedge clk_i) if (ask && !d_started_q) start_line_q <= tail_q;

  read_ring #(.Reads(Reads), .MetaW($bits(record_t)), .PlaceW(PlaceW)) u_ring (
    .clk_i, .rst_ni, .busy_o,
    .ask_valid_i(ask_valid), .ask_ready_o(ask_ready), .ask_reads_i(reads),
    .ask_address_i(d_address_q), .ask_bytes_i(reads ? d_size_q : 13'd1),
    .ask_meta_i(ask_record), .ask_place_i(d_place_q),
    .rdreq_valid_o, .rdreq_ready_i, .rdreq_address_o, .rdreq_bytes_o, .rdreq_tag_o,
    .rdcpl_valid_i, .rdcpl_tag_i, .rdcpl_data_i, .rdcpl_last_i, .rdcpl_error_i,
    .land_valid_o(ring_land_valid), .land_place_o(ring_land_place), .land_beat_o(ring_land_beat),
    .land_bytes_o(ring_land_bytes), .land_data_o(ring_land_data),
    .done_valid_o(done_valid), .done_ready_i(1'b1), .done_meta_o(done_record), .done_error_o(done_error),
    .drain_i, .drained_o
  );

  assign land_valid_o = ring_land_valid || put;
  assign land_place_o = ring_land_valid ? ring_land_place + {LineW'(ring_land_beat), 6'd0} : d_place_q;
  assign land_bytes_o = ring_land_valid ? ring_land_bytes : put_bytes_i;
  assign land_data_o  = ring_land_valid ? ring_land_data : put_data_i;

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

  assign count_fetches_o = ask && reads;
  assign count_errors_o  = done_valid && done_error;

`ifndef SYNTHESIS
  logic [13:0] put_left_q;
  always_ff @(posedge clk_i) begin
    if (in_take)  put_left_q <= in_bytes_i;
    else if (put) put_left_q <= put_left_q - 14'(put_bytes_i);
    if (rst_ni) begin
      assert (free_q <= (LineW + 1)'(BufferLines) && frames_q <= (FramesW + 1)'(Frames))
        else $error("frame_issue: more lines free than there are");
      assert (!released_q || frames_q != '0) else $error("frame_issue: a frame released twice");
      assert (!in_take || in_bad_i || in_bytes_i != '0 && in_bytes_i <= 14'(MaxFrameBytes))
        else $error("frame_issue: a frame of %0d bytes", in_bytes_i);
      assert (!put || put_bytes_i != '0 && put_bytes_i <= 7'(nic_pkg::LineBytes))
        else $error("frame_issue: a line of %0d bytes", put_bytes_i);
      assert (!put || put_last_i == (put_left_q == 14'(put_bytes_i)))
        else $error("frame_issue: %0d bytes are missing of what is put", put_left_q);
    end
  end
`endif

endmodule

`default_nettype wire

// Cuts the lines that arrived of a queue's ring into frames, one after the other, and hands each on: with its bytes, by
// its address, or as one that is skipped.
//
// A queue has a turn of TurnFrames frames, or of half a store of lines that are put and the frame that goes beyond it, or
// until it has no whole frame: as lines are fetched while others are used, one who is in its turn could go on where the others, whose
// stores are full, could not. A frame begins when all its lines have
// arrived; one longer than half of the store begins when half a store of it has, and the rest is posted, so that nothing
// but the link's answers can keep it.
//
// Guarantees
//   - Lines of a queue are used in order, once each. What was used is told to the fetcher (`taken_*`), of long frames
//     on the way as well.
//   - A head that leaves open where the next frame begins fails the queue (`error_*`, once in a life), and so do lines
//     that could not be read. Nothing more of the queue is used then.
//   - While grant_i stands and after grant_o the cutter touches nothing: another may hand frames on and may skip.
//   - Set-up of a queue ends what is under way of it.
// Limits
//   - Set-up only while hold_i and idle_o are high.
//   - One frame at a time: while the fetcher's answers for a long frame, or room in the frame buffer, are waited for,
//     no other begins.
// Latency: 7 cycles from arrival to the frame. A frame of n lines takes n + 2 cycles, or 2 without its bytes.
// Cost: NumQueues x 108 bits of RAM, 360 registers.
// Twin: TxPipe::find_frame in nic/model/src/enso/tx_pipe.rs, InlineQueue::take_entry.

`default_nettype none

module frame_cut #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // A pipe, or entries.
  parameter bit IsPipe = 1'b0,
  // Lines of a queue in the store, as in line_fetch.sv.
  parameter int unsigned Ahead = 64,
  // Frames of one turn, 1 to 31.
  parameter int unsigned TurnFrames = 16,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned AheadW = $clog2(Ahead)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  output logic              busy_o,
  input  logic              hold_i,
  output logic              idle_o,
  input  logic [13:0]       max_frame_bytes_i,

  input  logic              setup_write_i,
  input  logic [QueueW-1:0] setup_queue_i,
  input  logic              setup_active_i,
  input  logic [7:0]        setup_epoch_i,

  input  logic              arrived_valid_i,
  output logic              arrived_ready_o,
  input  logic [QueueW-1:0] arrived_queue_i,
  input  logic [31:0]       arrived_count_i,
  input  logic              arrived_error_i,

  input  logic              post_valid_i,
  output logic              post_ready_o,
  input  logic [QueueW-1:0] post_queue_i,
  input  logic [31:0]       post_count_i,

  // The store: the line a cycle after its place.
  output logic [QueueW-1:0] store_queue_o,
  output logic [AheadW-1:0] store_index_o,
  input  logic [511:0]      store_line_i,

  output logic              taken_valid_o,
  input  logic              taken_ready_i,
  output logic [QueueW-1:0] taken_queue_o,
  output logic [31:0]       taken_count_o,

  // A frame, see frame_issue.sv.
  output logic              frame_valid_o,
  input  logic              frame_ready_i,
  output logic [QueueW-1:0] frame_queue_o,
  output logic [31:0]       frame_count_o,
  output logic              frame_flag_o,
  output logic              frame_bad_o,
  output logic              frame_put_o,
  output logic [63:0]       frame_address_o,
  output logic [13:0]       frame_bytes_o,
  output logic              put_valid_o,
  input  logic              put_ready_i,
  output logic [511:0]      put_data_o,
  output logic [6:0]        put_bytes_o,
  output logic              put_last_o,
  output logic              put_drop_o,

  output logic              error_valid_o,
  output logic [QueueW-1:0] error_queue_o,
  output logic [3:0]        error_cause_o,

  // Somebody else's turn, for as long as it wants, and what came in it. `taken_write_*`: a place of the table of what
  // was used of each queue is written, so that the other can keep a copy.
  input  logic              grant_i,
  output logic              grant_o,
  input  logic              skip_valid_i,
  output logic              skip_ready_o,
  input  logic [QueueW-1:0] skip_queue_i,
  input  logic [31:0]       skip_count_i,
  output logic              taken_write_o,
  output logic [QueueW-1:0] taken_write_queue_o,
  output logic [31:0]       taken_write_count_o,

  output logic              count_runts_o,
  output logic              count_bad_lengths_o,
  output logic              count_bad_headers_o,
  output logic              count_outside_o
);

  localparam int unsigned Entries = 1 << QueueW;
  localparam int unsigned HeadBytes = IsPipe ? nic_pkg::WordBytes : nic_pkg::EntryHeadBytes;
  localparam int unsigned LineBytes = nic_pkg::LineBytes;
  // Lines of a long frame after which the fetcher is told.
  localparam int unsigned TellW = AheadW - 2;

  if (Ahead < 16 || Ahead > 256 || (Ahead & (Ahead - 1)) != 0) begin : g_bad_ahead
    $fatal(1, "frame_cut: Ahead must be a power of two from 16 to 256");
  end
  if (TurnFrames < 1 || TurnFrames > 31) begin : g_bad_turn
    $fatal(1, "frame_cut: TurnFrames must be 1 to 31");
  end

  typedef enum logic [3:0] {
    CutIdle, CutGranted, CutRead, CutLook, CutHead, CutJudge, CutPut, CutEnd, CutFail
  } cut_e;
  typedef struct packed {
    logic       active;
    logic [7:0] epoch;
  } settings_t;
  typedef struct packed {
    logic        dead;
    logic [31:0] count;
  } taken_t;

  cut_e              cut_q, cut_d;
  logic              list_busy, take_valid, take_ready, requeue, again_q, again_d, abandon, told_q, told_d, tell;
  logic [QueueW-1:0] take_queue, queue_q, clear_q;
  settings_t         settings;
  taken_t            taken, taken_new;
  logic              taken_write, skip, arrived_take, broken;
  logic [31:0]       arrived, posted, used_q, used_d, next_q;
  logic [AheadW:0]   available, available_q;
  logic [7:0]        epoch_q;
  logic [4:0]        left_q, left_d;
  logic [AheadW-1:0] lines_left_q, lines_left_d;
  logic              has_line, is_here, is_long_here_q, put, put_end;
  fetch_pkg::head_t  head, head_q;
  logic              is_misplaced, is_bad_q;
  logic [63:0]       address_q;
  logic              first_q, first_d;
  logic [13:0]       rest_q, rest_d;
  logic [6:0]        most;
  logic [3:0]        cause_q, cause_d;
  logic              goes, frame, judged;

  assign busy_o     = list_busy;
  // Where a frame begins or a line is put, the cutter stands still while it is held.
  assign idle_o     = cut_q == CutIdle || cut_q == CutGranted || cut_q == CutJudge || cut_q == CutPut;
  assign take_ready = cut_q == CutIdle && !hold_i && !grant_i;
  assign grant_o    = cut_q == CutGranted;
  assign abandon    = setup_write_i && setup_queue_i == queue_q;

  // ---- Who may have a frame.
  assign requeue         = cut_q == CutEnd && taken_ready_i && again_q;
  assign skip_ready_o    = !setup_write_i;
  assign skip            = skip_valid_i && skip_ready_o;
  assign arrived_ready_o = !requeue && !setup_write_i && !skip_valid_i;
  assign arrived_take    = arrived_valid_i && arrived_ready_o;
  assign post_ready_o    = !requeue && !setup_write_i && !arrived_valid_i;

  work_list #(.NumQueues(NumQueues)) u_list (
    .clk_i, .rst_ni, .busy_o(list_busy), .add_valid_i(requeue || arrived_valid_i || post_valid_i),
    .add_queue_i(requeue ? queue_q : arrived_valid_i ? arrived_queue_i : post_queue_i),
    .take_valid_o(take_valid), .take_ready_i(take_ready), .take_queue_o(take_queue)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) clear_q <= '0;
    else         clear_q <= clear_q + QueueW'(list_busy);
  end

  table_ram #(.Width($bits(settings_t)), .Depth(Entries)) u_settings (
    .clk_i, .we_i(setup_write_i || list_busy), .waddr_i(list_busy ? clear_q : setup_queue_i),
    .wdata_i(list_busy ? '0 : {setup_active_i, setup_epoch_i}), .raddr_i(queue_q), .rdata_o(settings)
  );
  table_ram #(.Width(32), .Depth(Entries)) u_arrived (
    .clk_i, .we_i(setup_write_i || skip || arrived_take && !arrived_error_i),
    .waddr_i(setup_write_i ? setup_queue_i : skip ? skip_queue_i : arrived_queue_i),
    .wdata_i(setup_write_i ? '0 : skip ? skip_count_i : arrived_count_i),
    .raddr_i(queue_q), .rdata_o(arrived)
  );
  table_ram #(.Width(1), .Depth(Entries)) u_broken (
    .clk_i, .we_i(setup_write_i || arrived_take && arrived_error_i),
    .waddr_i(setup_write_i ? setup_queue_i : arrived_queue_i), .wdata_i(!setup_write_i),
    .raddr_i(queue_q), .rdata_o(broken)
  );
  table_ram #(.Width(32), .Depth(Entries)) u_posted (
    .clk_i, .we_i(setup_write_i || post_valid_i && post_ready_o),
    .waddr_i(setup_write_i ? setup_queue_i : post_queue_i), .wdata_i(setup_write_i ? '0 : post_count_i),
    .raddr_i(queue_q), .rdata_o(posted)
  );

  assign taken_write         = setup_write_i || skip || cut_q == CutEnd || cut_q == CutFail;
  assign taken_new           = setup_write_i ? '0 : skip ? {1'b0, skip_count_i} : {cut_q == CutFail, used_q};
  assign taken_write_o       = taken_write;
  assign taken_write_queue_o = setup_write_i ? setup_queue_i : skip ? skip_queue_i : queue_q;
  assign taken_write_count_o = taken_new.count;

  table_ram #(.Width($bits(taken_t)), .Depth(Entries)) u_taken (
    .clk_i, .we_i(taken_write), .waddr_i(taken_write_queue_o), .wdata_i(taken_new),
    .raddr_i(queue_q), .rdata_o(taken)
  );

  // ---- The line that is looked at stays at the store's output until the next one is wanted.
  assign store_queue_o = queue_q;
  assign store_index_o = used_d[AheadW-1:0];
  assign available     = arrived[AheadW:0] - used_q[AheadW:0];
  assign has_line      = arrived[AheadW:0] != used_q[AheadW:0];

  frame_head #(.IsPipe(IsPipe)) u_head (
    .words_i(store_line_i[127:0]), .epoch_i(epoch_q), .max_frame_bytes_i, .head_o(head)
  );
  // An entry says where it stands.
  assign is_misplaced = !IsPipe && store_line_i[62:32] != used_q[30:0];

  // ---- What becomes of a head. Where an entry is longer than the store's half, it is malformed anyway.
  assign is_here = head_q.lines <= 11'(available_q) || IsPipe && is_long_here_q && head_q.lines > 11'(Ahead / 2);
  assign judged  = cut_q == CutJudge && !hold_i;
  assign goes    = judged && !is_bad_q && (is_here || !head_q.is_whole);
  assign frame   = goes && frame_ready_i;

  assign frame_valid_o   = goes;
  assign frame_queue_o   = queue_q;
  assign frame_count_o   = next_q;
  assign frame_flag_o    = head_q.wants_irq;
  assign frame_bad_o     = head_q.is_skipped;
  assign frame_put_o     = head_q.is_whole;
  assign frame_address_o = address_q;
  assign frame_bytes_o   = head_q.bytes[13:0];

  // ---- Lines that are put.
  assign most        = first_q ? 7'(LineBytes - HeadBytes) : 7'(LineBytes);
  assign put_last_o  = rest_q <= 14'(most);
  assign put_bytes_o = put_last_o ? rest_q[6:0] : most;
  assign put_data_o  = first_q ? store_line_i >> (8 * HeadBytes) : store_line_i;
  assign put_valid_o = cut_q == CutPut && has_line && !broken && !hold_i;
  assign put         = put_valid_o && put_ready_i;
  assign put_end     = put && put_last_o;
  assign tell        = cut_q == CutPut && !told_q && !hold_i && (used_q[TellW-1:0] == '0 || !has_line);

  assign taken_valid_o = cut_q == CutEnd || tell;
  assign taken_queue_o = queue_q;
  assign taken_count_o = used_q;

  assign error_valid_o = cut_q == CutFail;
  assign error_queue_o = queue_q;
  assign error_cause_o = cause_q;

  always_comb begin
    cut_d      = cut_q;
    used_d     = used_q;
    left_d     = left_q;
    lines_left_d = lines_left_q;
    again_d    = again_q;
    first_d    = first_q;
    rest_d     = rest_q;
    cause_d    = cause_q;
    told_d     = told_q || tell && taken_ready_i;
    put_drop_o = 1'b0;
    unique case (cut_q)
      CutIdle: begin
        if (take_valid && take_ready) cut_d = CutRead;
        else if (grant_i) cut_d = CutGranted;
      end
      CutGranted: if (!grant_i) cut_d = CutIdle;
      CutRead: cut_d = CutLook;
      CutLook: begin
        used_d  = taken.count;
        left_d  = 5'(TurnFrames);
        lines_left_d = AheadW'(Ahead / 2);
        again_d = 1'b1;
        cut_d   = (!settings.active || taken.dead) ? CutIdle : CutHead;
      end
      CutHead: begin
        // Reads behind the one that failed may have been answered, so what seems to be here need not be.
        cut_d = CutJudge;
        if (broken) begin
          cause_d = 4'(nic_pkg::QueueStatusCauseDmaError);
          cut_d   = CutFail;
        end else if (!has_line || left_q == '0 || lines_left_q == '0) begin
          // There may be more of it, or there will be when something arrives.
          again_d = has_line;
          cut_d   = CutEnd;
        end
      end
      CutJudge: begin
        first_d = 1'b1;
        rest_d  = head_q.bytes[13:0];
        told_d  = 1'b1;
        if (judged && is_bad_q) begin
          cause_d = head_q.is_bad_header ? 4'(nic_pkg::QueueStatusCauseBadHeader)
                                         : 4'(nic_pkg::QueueStatusCauseBadLength);
          cut_d   = CutFail;
        end else if (judged && !goes) begin
          again_d = 1'b0;
          cut_d   = CutEnd;
        end else if (frame) begin
          left_d = left_q - 1'b1;
          if (head_q.is_whole && !head_q.is_skipped) begin
            cut_d = CutPut;
          end else begin
            used_d = next_q;
            cut_d  = CutHead;
          end
        end
      end
      CutPut: begin
        if (put) begin
          used_d  = used_q + 32'd1;
          if (lines_left_q != '0) lines_left_d = lines_left_q - 1'b1;
          first_d = 1'b0;
          rest_d  = rest_q - 14'(most);
          told_d  = 1'b0;
          if (put_end) cut_d = CutHead;
        end else if (broken && !hold_i) begin
          put_drop_o = 1'b1;
          cause_d    = 4'(nic_pkg::QueueStatusCauseDmaError);
          cut_d      = CutFail;
        end
      end
      CutEnd:  if (taken_ready_i) cut_d = CutIdle;
      CutFail: cut_d = CutIdle;
      default: cut_d = CutIdle;
    endcase
    if (abandon && cut_q != CutGranted) cut_d = CutIdle;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) cut_q <= CutIdle;
    else         cut_q <= cut_d;
    if (cut_q == CutIdle) queue_q <= take_queue;
    used_q  <= used_d;
    left_q  <= left_d;
    lines_left_q <= lines_left_d;
    again_q <= again_d;
    first_q <= first_d;
    rest_q  <= rest_d;
    cause_q <= cause_d;
    told_q  <= told_d;
    if (cut_q == CutLook) epoch_q <= settings.epoch;
    if (cut_q == CutHead) begin
      head_q               <= head;
      head_q.is_bad_header <= head.is_bad_header || is_misplaced;
      is_bad_q             <= head.is_bad_header || is_misplaced || head.is_bad_length;
      address_q            <= store_line_i[127:64];
      available_q          <= available;
      next_q               <= used_q + 32'(head.lines);
      is_long_here_q       <= available >= (AheadW + 1)'(Ahead / 2) && 23'(posted - used_q) >= 23'(head.lines);
    end
  end

  assign count_runts_o       = frame && head_q.is_runt;
  assign count_outside_o     = frame && head_q.is_outside;
  assign count_bad_headers_o = judged && is_bad_q && head_q.is_bad_header;
  assign count_bad_lengths_o = judged && is_bad_q && !head_q.is_bad_header || frame && head_q.is_wrong;

  logic unused_length;
  assign unused_length = head_q.is_bad_length;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!setup_write_i || hold_i && idle_o) else $error("frame_cut: set up while at work");
      assert (!skip_valid_i || grant_o) else $error("frame_cut: a skip in the cutter's own turn");
      assert (cut_q != CutHead || arrived - used_q <= 32'(Ahead))
        else $error("frame_cut: %0d lines wait", arrived - used_q);
      assert (!put_end || used_d == next_q) else $error("frame_cut: a frame of another number of lines");
    end
  end
`endif

endmodule

`default_nettype wire

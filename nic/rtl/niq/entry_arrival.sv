// Entries of niq queues as they arrive in the window: bytes in any order, entries one after the other.
//
// An entry is 64, 128 or 256 bytes and is written whole, so it is complete when all its bytes are there; no length is
// needed to know it. One entry of a queue arrives at a time. Its lines lie in memory where the window has them, until
// the frame has left.
//
// Guarantees
//   - An entry is told (`arrived_*`: how many of the queue have arrived) when its last byte has come and its head is of
//     this queue, epoch and place. Bytes of an entry change only while it arrives.
//   - A byte of another entry than the next (span_exceeded), a byte that comes twice (clobber), a head that makes no
//     sense (bad_header), a whole frame that is longer than its entry (bad_length), a place that is not free without
//     back-pressure (overrun), or bytes that are missing for too long (hole_timeout) fail the queue, once in a life;
//     what comes after that is dropped.
//   - A piece for a place that is not free waits here while its queue has back-pressure (`is_waiting_o`), looked at
//     anew until there is room or the queue stops; it is counted once as refused.
// Limits
//   - A piece that waits holds up the pieces behind it, whatever their queue (the link's order is kept).
//   - Room is asked for entry by entry: of a write over several entries the first are taken; the model refuses all.
//   - Set-up only while hold_i and idle_o are high. busy_o after reset, one cycle a queue.
// Throughput: a piece in 3 cycles, in 5 if it makes its entry whole, and 5 more for the first of several with a
//   hole time-out. Latency: last piece to arrived_valid_o 4 cycles.
// Cost: NumQueues x 2^LineW x 512 bits of RAM for the entries, NumQueues x (436 + LineW) bits of tables, 1,100
//   registers. Twin: TxEntries::{store, take, write_arrived, time_passed} in nic/model/src/niq/tx_entries.rs.

`default_nettype none

module entry_arrival #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // log2 of the lines of the longest window.
  parameter int unsigned LineW = 6,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic [47:0]       now_ns_i,
  // Strap: lines of a window less 1.
  input  logic [LineW-1:0]  window_mask_i,

  output logic              busy_o,
  input  logic              hold_i,
  output logic              idle_o,
  input  logic              setup_write_i,
  input  logic [QueueW-1:0] setup_queue_i,
  input  logic              setup_active_i,
  input  logic              setup_backpressure_i,
  input  logic [7:0]        setup_epoch_i,
  input  logic [1:0]        setup_lines_log2_i,
  // 0: never.
  input  logic [47:0]       setup_timeout_ns_i,
  // A start is not over before its counts are clear.
  output logic              setup_busy_o,

  input  logic              piece_valid_i,
  output logic              piece_ready_o,
  input  logic [QueueW-1:0] piece_queue_i,
  input  logic [LineW-1:0]  piece_line_i,
  input  logic [511:0]      piece_data_i,
  input  logic [63:0]       piece_be_i,
  input  logic              piece_first_i,
  input  logic              piece_last_i,
  output logic              is_waiting_o,

  // Entries arrived since the start.
  output logic              arrived_valid_o,
  input  logic              arrived_ready_i,
  output logic [QueueW-1:0] arrived_queue_o,
  output logic [31:0]       arrived_count_o,
  // Entries done since the start: their places are free.
  input  logic              done_valid_i,
  input  logic [QueueW-1:0] done_queue_i,
  input  logic [31:0]       done_count_i,

  // Lines of entries that have arrived, a cycle after they are named.
  input  logic [QueueW-1:0] read_queue_i,
  input  logic [LineW-1:0]  read_line_i,
  output logic [511:0]      read_data_o,

  output logic              error_valid_o,
  output logic [QueueW-1:0] error_queue_o,
  output logic [3:0]        error_cause_o,

  // Pieces as they are judged, for the counters of writes. Dropped: the queue has failed.
  output logic              judged_valid_o,
  output logic              judged_first_o,
  output logic              judged_last_o,
  output logic              judged_dropped_o,
  output logic [63:0]       judged_be_o,

  output logic              count_entries_o,
  output logic              count_refused_writes_o
);

  localparam int unsigned Entries = 1 << QueueW;
  localparam int unsigned MaxLines = nic_pkg::NiqEntryMaxBytes / nic_pkg::LineBytes;
  localparam int unsigned CountW = LineW + 1;
  // Steps of the sum that makes a deadline.
  localparam logic [2:0] DeadlineSteps = 3'd4;

  if (NumQueues < 1 || NumQueues > 1024 || (NumQueues & (NumQueues - 1)) != 0) begin : g_bad_queues
    $fatal(1, "entry_arrival: NumQueues must be a power of two from 1 to 1024");
  end
  if (LineW < 1 || LineW > 14) begin : g_bad_window
    $fatal(1, "entry_arrival: LineW must be 1 to 14");
  end

  typedef struct packed {
    logic        active;
    logic        backpressure;
    logic [7:0]  epoch;
    logic [1:0]  lines_log2;
    logic [47:0] timeout_ns;
    // A deadline stands for the entry that arrives.
    logic        armed;
    // Entries arrived since the start.
    logic [31:0] arrived;
    // Of the entry that arrives: its first word as far as it has come, whole lines, and bytes that have come.
    logic [63:0] head;
    logic [MaxLines-1:0] whole;
    logic [MaxLines-1:0][63:0] valid;
  } state_t;
  typedef enum logic [2:0] {ArClear, ArIdle, ArLook, ArJudge, ArArm, ArHead, ArTell} ar_e;

  ar_e               ar_q, ar_d;
  logic [QueueW-1:0] clear_q, queue_q, queue_d;
  logic              has_piece_q, has_piece_d, is_late_q, is_late_d, was_refused_q, was_refused_d, take;
  logic [QueueW-1:0] piece_queue_q;
  logic [LineW-1:0]  piece_line_q;
  logic [511:0]      piece_data_q;
  logic [63:0]       piece_be_q;
  logic              piece_first_q, piece_last_q;

  // ---- What is known of each queue.
  state_t            state, state_q, state_d;
  logic              state_we, clearing;
  logic [QueueW-1:0] state_waddr;
  logic [CountW-1:0] done;
  logic              reset_done_q, reset_done_d;
  logic [QueueW-1:0] reset_queue_q;

  assign clearing    = ar_q == ArClear;
  assign state_waddr = clearing ? clear_q : setup_write_i ? setup_queue_i : queue_q;

  table_ram #(.Width($bits(state_t)), .Depth(Entries)) u_state (
    .clk_i, .we_i(clearing || setup_write_i || state_we), .waddr_i(state_waddr), .wdata_i(state_d),
    .raddr_i(queue_d), .rdata_o(state)
  );

  // Frames of other queues leave in any cycle, so a start waits for one in which none does. None of its own is there.
  table_ram #(.Width(CountW), .Depth(Entries)) u_done (
    .clk_i, .we_i(done_valid_i || reset_done_q), .waddr_i(done_valid_i ? done_queue_i : reset_queue_q),
    .wdata_i(done_valid_i ? done_count_i[CountW-1:0] : '0), .raddr_i(queue_d), .rdata_o(done)
  );
  assign reset_done_d = setup_write_i && setup_active_i || reset_done_q && done_valid_i;
  assign setup_busy_o = reset_done_q;

  // ---- The entries' lines.
  logic [511:0]            mem [Entries << LineW];
  logic [511:0]            mem_q;
  logic                    store_q;
  logic [QueueW+LineW-1:0] store_line_q;

  always_ff @(posedge clk_i) begin
    if (store_q) begin
      for (int lane = 0; lane < 64; lane++) begin
        if (piece_be_q[lane]) mem[store_line_q][8*lane +: 8] <= piece_data_q[8*lane +: 8];
      end
    end
    mem_q <= mem[{read_queue_i, read_line_i & window_mask_i}];
  end
  assign read_data_o = mem_q;

  // ---- Holes. Every queue is disarmed once after reset.
  logic              set_valid, set_armed, due_valid, due_ready;
  logic [QueueW-1:0] due_queue;
  logic [47:0]       deadline_q, now_q;
  logic [2:0]        step_q;
  logic [12:0]       step_sum;
  logic              carry_q;

  hole_watch #(.NumQueues(NumQueues)) u_holes (
    .clk_i, .rst_ni, .now_ns_i,
    .set_valid_i(set_valid), .set_queue_i(state_waddr), .set_armed_i(set_armed),
    .set_deadline_i(deadline_q), .due_valid_o(due_valid), .due_ready_i(due_ready), .due_queue_o(due_queue)
  );
  // 12 bits a step, which keeps the carry short: the sum comes in from above as the addends leave below.
  assign step_sum = {1'b0, now_q[11:0]} + {1'b0, deadline_q[11:0]} + 13'(carry_q);

  // ---- The first look, from the table: which line of which entry it is, and what of it has come before.
  logic [1:0]        part, part_q;
  logic [LineW-1:0]  low_mask, expected_line;
  logic [CountW-1:0] used;
  logic              is_full_q, is_elsewhere_q;
  logic [63:0]       before_q;

  assign low_mask      = LineW'(~(14'h3fff << state.lines_log2));
  assign part          = 2'(piece_line_q & low_mask);
  assign expected_line = LineW'(state.arrived[LineW-1:0] << state.lines_log2) & window_mask_i;
  assign used          = state.arrived[CountW-1:0] - done;

  always_ff @(posedge clk_i) begin
    if (ar_q == ArLook) begin
      state_q        <= state;
      part_q       <= part;
      before_q       <= state.valid[part];
      // As many as the window has: the count of lines is a power of two.
      is_full_q      <= (used << state.lines_log2) == CountW'(window_mask_i) + 1'b1;
      is_elsewhere_q <= ((piece_line_q ^ expected_line) & ~low_mask & window_mask_i) != '0;
    end else begin
      state_q.head  <= state_d.head;
      state_q.armed <= state_d.armed;
      state_q.valid <= state_d.valid;
      state_q.whole <= state_d.whole;
    end
  end

  // ---- The judgement.
  logic [63:0]         here, head_new;
  logic                is_hit, line_whole, entry_whole, stores, waits, first_bytes, wants_hole;
  logic [MaxLines-1:0] whole_new, whole_mask;
  logic [3:0]          cause;
  logic                fails;

  assign here        = before_q | piece_be_q;
  assign is_hit      = (before_q & piece_be_q) != '0;
  assign line_whole  = here == '1;
  assign whole_new   = state_q.whole | (MaxLines'(line_whole) << part_q);
  assign whole_mask  = ~(MaxLines'('1) << (3'd1 << state_q.lines_log2));
  assign entry_whole = whole_new == whole_mask;
  assign waits       = state_q.active && is_full_q && state_q.backpressure;
  assign first_bytes = !state_q.armed;
  assign wants_hole  = state_q.timeout_ns != '0 && first_bytes;

  always_comb begin
    for (int i = 0; i < 8; i++) begin
      head_new[8*i +: 8] = (part_q == '0 && piece_be_q[i]) ? piece_data_q[8*i +: 8] : state_q.head[8*i +: 8];
    end
  end

  // ---- The head of an entry that is whole.
  nic_pkg::entry_header_word_t head;
  logic                        is_header_bad, is_too_long;
  logic [8:0]                  room_bytes;
  logic [31:0]                 arrived_next;
  logic                        knows_kind;

  increment #(.Width(32)) u_next (.value_i(state_q.arrived), .add_i(1'b1), .sum_o(arrived_next));

  assign head          = state_q.head;
  assign knows_kind    = head.kind == 4'(nic_pkg::EntryKindWhole) || head.kind == 4'(nic_pkg::EntryKindAddress)
                         || head.kind == 4'(nic_pkg::EntryKindNothing);
  assign is_header_bad = head.tag || head.reserved != '0 || !knows_kind || head.epoch != state_q.epoch
                         || head.position != state_q.arrived[30:0];
  assign room_bytes    = (9'(nic_pkg::LineBytes) << state_q.lines_log2) - 9'(nic_pkg::EntryHeadBytes);
  assign is_too_long   = head.kind == 4'(nic_pkg::EntryKindWhole) && head.length_bytes > 16'(room_bytes);

  // ---- One thing after the other: a hole that has stood too long, a piece that waits, a new one.
  assign idle_o        = ar_q == ArIdle;
  assign busy_o        = clearing;
  assign is_waiting_o  = has_piece_q && was_refused_q;
  assign piece_ready_o = ar_q == ArIdle && !hold_i && !due_valid && !has_piece_q;
  assign take          = piece_valid_i && piece_ready_o;

  always_comb begin
    ar_d          = ar_q;
    queue_d       = queue_q;
    has_piece_d   = has_piece_q;
    is_late_d     = is_late_q;
    was_refused_d = was_refused_q;
    state_d       = state_q;
    state_we      = 1'b0;
    stores        = 1'b0;
    fails         = 1'b0;
    cause         = nic_pkg::QueueStatusCauseNone;
    set_valid     = clearing;
    set_armed     = 1'b0;
    due_ready     = 1'b0;
    judged_valid_o         = 1'b0;
    count_entries_o        = 1'b0;
    count_refused_writes_o = 1'b0;
    unique case (ar_q)
      ArClear: begin
        state_d = '0;
        if (clear_q == '1) ar_d = ArIdle;
      end
      ArIdle: begin
        is_late_d = due_valid;
        queue_d   = due_valid ? due_queue : has_piece_q ? piece_queue_q : piece_queue_i;
        if (!hold_i && due_valid) begin
          due_ready = 1'b1;
          ar_d      = ArLook;
        end else if (!hold_i && has_piece_q) begin
          ar_d = ArLook;
        end else if (take) begin
          has_piece_d   = 1'b1;
          was_refused_d = 1'b0;
          ar_d          = ArLook;
        end
      end
      ArLook: ar_d = ArJudge;
      ArJudge: begin
        ar_d           = ArIdle;
        judged_valid_o = !is_late_q && !waits;
        has_piece_d    = has_piece_q && (is_late_q || waits);
        if (is_late_q) begin
          fails = state_q.active;
          cause = nic_pkg::QueueStatusCauseHoleTimeout;
        end else if (waits) begin
          was_refused_d          = 1'b1;
          count_refused_writes_o = !was_refused_q;
        end else if (state_q.active) begin
          fails = is_full_q || is_elsewhere_q || is_hit;
          cause = is_full_q ? nic_pkg::QueueStatusCauseOverrun :
                  is_elsewhere_q ? nic_pkg::QueueStatusCauseSpanExceeded : nic_pkg::QueueStatusCauseClobber;
          stores = !fails;
          state_d.head            = head_new;
          state_d.valid[part_q] = here;
          state_d.whole           = whole_new;
          state_we                = !fails;
          if (!fails && entry_whole) ar_d = ArHead;
          if (!fails && !entry_whole && wants_hole) ar_d = ArArm;
        end
      end
      ArArm: begin
        state_d.armed = 1'b1;
        set_armed     = 1'b1;
        if (step_q == DeadlineSteps) begin
          set_valid = 1'b1;
          state_we  = 1'b1;
          ar_d      = ArIdle;
        end
      end
      ArHead: begin
        fails = is_header_bad || is_too_long;
        cause = is_header_bad ? nic_pkg::QueueStatusCauseBadHeader : nic_pkg::QueueStatusCauseBadLength;
        ar_d  = fails ? ArIdle : ArTell;
        set_valid     = state_q.armed;
        state_d.armed = 1'b0;
        state_d.head  = '0;
        state_d.valid = '0;
        state_d.whole = '0;
        state_d.arrived = arrived_next;
        state_we        = 1'b1;
        count_entries_o = !fails;
      end
      ArTell: if (arrived_ready_i) ar_d = ArIdle;
      default: ar_d = ArIdle;
    endcase
    if (fails) begin
      state_d.active = 1'b0;
      state_we       = 1'b1;
      set_valid      = 1'b1;
      set_armed      = 1'b0;
    end
    if (setup_write_i) begin
      state_d = '{
        active: setup_active_i, backpressure: setup_backpressure_i, epoch: setup_epoch_i,
        lines_log2: setup_lines_log2_i, timeout_ns: setup_timeout_ns_i, default: '0
      };
      set_valid = 1'b1;
      queue_d   = setup_queue_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ar_q          <= ArClear;
      clear_q       <= '0;
      has_piece_q   <= 1'b0;
      reset_done_q  <= 1'b0;
      store_q       <= 1'b0;
      error_valid_o <= 1'b0;
    end else begin
      ar_q          <= ar_d;
      clear_q       <= clear_q + QueueW'(clearing);
      has_piece_q   <= has_piece_d;
      reset_done_q  <= reset_done_d;
      store_q       <= stores;
      error_valid_o <= fails;
    end
    queue_q       <= queue_d;
    is_late_q     <= is_late_d;
    was_refused_q <= was_refused_d;
    store_line_q  <= {queue_q, piece_line_q & window_mask_i};
    error_queue_o <= queue_q;
    error_cause_o <= cause;
    if (setup_write_i) reset_queue_q <= setup_queue_i;
    if (take) begin
      piece_queue_q <= piece_queue_i;
      piece_line_q  <= piece_line_i;
      piece_data_q  <= piece_data_i;
      piece_be_q    <= piece_be_i;
      piece_first_q <= piece_first_i;
      piece_last_q  <= piece_last_i;
    end
    if (ar_q == ArJudge) begin
      now_q      <= now_ns_i;
      deadline_q <= state_q.timeout_ns;
      carry_q    <= 1'b0;
      step_q     <= '0;
    end else if (ar_q == ArArm && step_q != DeadlineSteps) begin
      now_q      <= now_q >> 12;
      deadline_q <= {step_sum[11:0], deadline_q[47:12]};
      carry_q    <= step_sum[12];
      step_q     <= step_q + 3'd1;
    end
  end

  assign arrived_valid_o  = ar_q == ArTell;
  assign arrived_queue_o  = queue_q;
  assign arrived_count_o  = arrived_next;
  assign judged_first_o   = piece_first_q;
  assign judged_last_o    = piece_last_q;
  assign judged_dropped_o = !state_q.active;
  assign judged_be_o      = piece_be_q;

  logic unused_bits;
  assign unused_bits = ^{done_count_i, head.wants_irq};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!setup_write_i || hold_i && idle_o) else $error("entry_arrival: set up while at work");
      assert (!setup_write_i || !reset_done_q) else $error("entry_arrival: set up while busy");
      assert (!state_we || !setup_write_i) else $error("entry_arrival: two writes of the state");
      // Done never passes what has arrived, nor lags behind by more than there are places.
      assert (ar_q != ArJudge || is_late_q || !state_q.active || !is_full_q || !stores)
        else $error("entry_arrival: stored where nothing is free");
      assert (ar_q != ArLook || !state.active || (used << state.lines_log2) <= CountW'(window_mask_i) + 1'b1)
        else $error("entry_arrival: queue %0d: %0d entries are used", queue_q, used);
      // One entry arrives at a time, so what is stored is of the one behind those that have arrived.
      assert (!stores || !is_elsewhere_q && !is_hit) else $error("entry_arrival: stored elsewhere");
      assert (!stores || piece_be_q != '0) else $error("entry_arrival: an empty piece");
      assert (ar_q != ArJudge || !is_late_q || !state_q.active || state_q.armed)
        else $error("entry_arrival: a deadline without a hole");
    end
  end
`endif

endmodule

`default_nettype wire

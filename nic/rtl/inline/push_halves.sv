// The two halves of each push window: bytes that are pushed, in any split and order, and what becomes of them.
//
// A half knows its entry once the first word is whole, and has it once every line of it is. One push follows the other:
// a byte that arrives again belongs to the next push, and tears the one before. A push that was given up stays, spent, so
// that bytes of it that are late go nowhere. The parts of a write that lie in one half count as one arrival.
//
// Guarantees
//   - What came of a write is told by one event, at its end in a half: the entry that it tore, and the entry that is
//     whole, or too long and announced by its lines. Until the event is taken nothing more comes in; from then on, while
//     `kept_*` names the half, nothing comes into it, and its bytes stand at `line_*`.
//   - A push of which something is missing for longer than the queue's time-out is given up, which is an event too.
//   - Where the window fills, a push is whole when its half is full, and each half that was full is told by `freed_*`.
//   - A word that is no header is counted and spends its push. Writes to a queue that is not active go nowhere.
// Limits
//   - Set-up only while hold_i and idle_o are high; it forgets what is in the halves. busy_o after reset, one cycle a
//     queue. Pieces of one write come one behind the other.
//   - Time-outs are seen at most 6 x NumQueues cycles late when no pieces come, and later between pieces.
// Latency: 4 cycles from a piece to its event. A piece in 5 cycles.
// Cost: NumQueues x 4096 bits of RAM with byte enables, NumQueues x 832 bits, 1200 registers.
// Twin: nic/model/src/inline/push_half.rs, InlineQueue::{store, give_up_late}.

`default_nettype none

module push_halves #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // log2 of the lines of the longest window, 3 or more.
  parameter int unsigned LineW = 6,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  output logic              busy_o,
  input  logic              hold_i,
  output logic              idle_o,
  input  logic [47:0]       now_ns_i,
  input  logic [13:0]       max_frame_bytes_i,

  input  logic              setup_write_i,
  input  logic [QueueW-1:0] setup_queue_i,
  input  logic              setup_active_i,
  input  logic [7:0]        setup_epoch_i,
  input  logic              setup_fills_i,
  input  logic [63:0]       setup_timeout_ns_i,

  input  logic              piece_valid_i,
  output logic              piece_ready_o,
  input  logic [QueueW-1:0] piece_queue_i,
  input  logic [LineW-1:0]  piece_line_i,
  input  logic [511:0]      piece_data_i,
  input  logic [63:0]       piece_be_i,
  input  logic              piece_first_i,
  input  logic              piece_last_i,
  // No piece is at work, and none has an event that was not taken.
  output logic              is_settled_o,

  // What came of it: the header of an entry that was torn or given up, and of one that is whole or too long.
  output logic              event_valid_o,
  input  logic              event_ready_i,
  output logic [QueueW-1:0] event_queue_o,
  output logic              event_half_o,
  output logic              event_torn_o,
  output logic [63:0]       event_torn_word_o,
  output logic              event_whole_o,
  output logic              event_long_o,
  output logic [63:0]       event_word_o,

  // A half whose event is being judged: a line of it a cycle after its number.
  input  logic              kept_valid_i,
  input  logic [QueueW-1:0] kept_queue_i,
  input  logic              kept_half_i,
  input  logic [1:0]        line_index_i,
  output logic [511:0]      line_o,

  // Lines of a window that fills which were dealt with, absolute.
  output logic              freed_valid_o,
  output logic [QueueW-1:0] freed_queue_o,
  output logic [31:0]       freed_lines_o,

  output logic              count_torn_o,
  output logic              count_long_o,
  output logic              count_bad_headers_o
);

  localparam int unsigned Entries = 1 << QueueW;
  localparam int unsigned HalfLines = nic_pkg::PushHalfBytes / nic_pkg::LineBytes;

  if (HalfLines != 4 || LineW < 3) begin : g_bad_half
    $fatal(1, "push_halves: a half is four lines, and a window has two halves or more");
  end

  typedef struct packed {
    // Bit i of line l: byte i of the line has arrived.
    logic [3:0][63:0] valid;
    logic [63:0]      word;
    logic             known;
    logic             spent;
    logic [47:0]      since;
  } half_t;
  typedef struct packed {
    logic        active;
    logic [7:0]  epoch;
    logic        fills;
    logic        expires;
    logic [47:0] timeout_ns;
  } settings_t;
  typedef enum logic [3:0] {
    HalfClear, HalfIdle, HalfLook, HalfMerge, HalfDecode, HalfJudge, HalfElapsed, HalfLate, HalfGiveUp, HalfEvent
  } state_e;

  state_e            state_q, state_d;
  logic [QueueW-1:0] queue_q, queue_d, scan_q, scan_d, address;
  logic              half_q, half_d, scans_q, scans_d, waits_q;
  logic [1:0]        line_q;
  logic [511:0]      data_q;
  logic [63:0]       be_q;
  logic              ends_q, begins_q;
  logic [3:0][63:0]  mine_q, mine_d, here;
  settings_t         settings, settings_q;
  half_t [1:0]       halves;
  half_t             row, row_q, row_d;
  logic [1:0]        row_write, waits;
  logic              overlaps, overlaps_q, take, is_kept;
  logic [31:0]       freed, freed_q;
  logic [47:0]       elapsed_q;

  logic              torn_q, torn_d, whole_q, whole_d, long_q, long_d;
  logic [63:0]       torn_word_q, torn_word_d, word_q, word_d;

  fetch_pkg::head_t  head;
  logic              is_bad_q, is_full, has_lines, has_first, has_least, is_there, is_new, is_malformed, clears;
  logic [10:0]       lines_q;
  logic [3:0]        whole_line_q;
  logic              has_word_q;

  assign busy_o        = state_q == HalfClear;
  // An event changes nothing here any more.
  assign idle_o        = state_q == HalfIdle || state_q == HalfEvent;
  assign is_kept       = kept_valid_i && kept_queue_i == piece_queue_i && kept_half_i == piece_line_i[2];
  assign piece_ready_o = state_q == HalfIdle && !hold_i && !is_kept;
  assign take          = piece_valid_i && piece_ready_o;
  assign is_settled_o  = state_q == HalfIdle || scans_q;
  assign address       = (state_q == HalfIdle) ? (piece_valid_i ? piece_queue_i : scan_q) : queue_q;

  table_ram #(.Width($bits(settings_t)), .Depth(Entries)) u_settings (
    .clk_i, .we_i(setup_write_i || busy_o), .waddr_i(busy_o ? scan_q : setup_queue_i),
    .wdata_i(busy_o ? '0 : {setup_active_i, setup_epoch_i, setup_fills_i,
                            setup_timeout_ns_i != '0 && setup_timeout_ns_i[63:48] == '0, setup_timeout_ns_i[47:0]}),
    .raddr_i(address), .rdata_o(settings)
  );
  for (genvar half = 0; half < 2; half++) begin : g_half
    table_ram #(.Width($bits(half_t)), .Depth(Entries)) u_half (
      .clk_i, .we_i(setup_write_i || row_write[half]), .waddr_i(setup_write_i ? setup_queue_i : queue_q),
      .wdata_i(setup_write_i ? '0 : row_d), .raddr_i(address), .rdata_o(halves[half])
    );
  end
  table_ram #(.Width(32), .Depth(Entries)) u_freed (
    .clk_i, .we_i(setup_write_i || freed_valid_o), .waddr_i(setup_write_i ? setup_queue_i : queue_q),
    .wdata_i(setup_write_i ? '0 : freed_lines_o), .raddr_i(address), .rdata_o(freed)
  );
  assign row = halves[half_q];
  for (genvar half = 0; half < 2; half++) begin : g_waits
    assign waits[half] = halves[half].known && !halves[half].spent;
  end

  // ---- The bytes themselves. A line is read while the half stands still.
  localparam int unsigned PlaceW = QueueW + 3;
  logic [511:0]      push_mem [1 << PlaceW];
  logic [511:0]      push_line_q;
  logic [PlaceW-1:0] write_place, read_place;
  logic              merge;

  assign merge       = state_q == HalfMerge;
  assign write_place = {queue_q, half_q, line_q};
  assign read_place  = {kept_queue_i, kept_half_i, line_index_i};

  always_ff @(posedge clk_i) begin
    if (merge) begin
      for (int lane = 0; lane < 64; lane++) begin
        if (be_q[lane]) push_mem[write_place][8*lane +: 8] <= data_q[8*lane +: 8];
      end
    end
    push_line_q <= push_mem[read_place];
  end
  assign line_o = push_line_q;

  // ---- What a piece brings.
  assign here     = 256'(be_q) << {line_q, 6'd0};
  assign overlaps = (row.valid[line_q] & be_q) != '0;

  frame_head #(.IsPipe(1'b0)) u_head (
    .words_i({64'd0, row_q.word}), .epoch_i(settings_q.epoch), .max_frame_bytes_i, .head_o(head)
  );

  // ---- What it makes of the push. A push that is longer than a half is told by the lines it has at least.
  assign is_full      = whole_line_q == '1;
  assign has_least    = settings_q.fills ? is_full : whole_line_q[0];
  assign is_new       = !row_q.known && !row_q.spent && has_word_q;
  assign is_malformed = is_new && is_bad_q;
  always_comb begin
    unique case (lines_q)
      11'd1:   has_first = whole_line_q[0];
      11'd2:   has_first = whole_line_q[1:0] == '1;
      11'd3:   has_first = whole_line_q[2:0] == '1;
      default: has_first = is_full;
    endcase
  end
  assign has_lines = has_first && has_least;
  assign is_there  = (row_q.known || is_new && !is_bad_q) && !row_q.spent;

  always_comb begin
    state_d     = state_q;
    queue_d     = queue_q;
    half_d      = half_q;
    scan_d      = scan_q;
    scans_d     = scans_q;
    mine_d      = mine_q;
    row_d       = row_q;
    row_write   = '0;
    torn_d      = torn_q;
    torn_word_d = torn_word_q;
    whole_d     = whole_q;
    long_d      = long_q;
    word_d      = word_q;
    clears      = 1'b0;
    count_torn_o        = 1'b0;
    count_bad_headers_o = 1'b0;
    unique case (state_q)
      HalfClear: begin
        scan_d = scan_q + 1'b1;
        if (scan_q == '1) state_d = HalfIdle;
      end
      HalfIdle: begin
        {torn_d, whole_d, long_d} = '0;
        if (take) begin
          state_d = HalfLook;
          queue_d = piece_queue_i;
          half_d  = piece_line_i[2];
          scans_d = 1'b0;
        end else if (!hold_i && !piece_valid_i) begin
          state_d = HalfLook;
          queue_d = scan_q;
          half_d  = 1'b0;
          scans_d = 1'b1;
          scan_d  = scan_q + 1'b1;
        end
      end
      HalfLook: begin
        state_d = HalfMerge;
        if (scans_q) begin
          half_d  = !waits[0];
          state_d = (settings.expires && waits != '0) ? HalfElapsed : HalfIdle;
        end else if (begins_q) begin
          mine_d = '0;
        end
        if (!settings.active) state_d = HalfIdle;
      end
      HalfMerge: begin
        mine_d         = mine_q | here;
        row_d.valid    = (overlaps_q ? mine_q : row_q.valid) | here;
        row_d.known    = row_q.known && !overlaps_q;
        row_d.spent    = row_q.spent && !overlaps_q;
        torn_d         = overlaps_q && row_q.known && !row_q.spent;
        torn_word_d    = row_q.word;
        count_torn_o   = torn_d;
        for (int lane = 0; lane < 8; lane++) begin
          if (line_q == '0 && be_q[lane]) row_d.word[8*lane +: 8] = data_q[8*lane +: 8];
        end
        row_write[half_q] = 1'b1;
        state_d           = ends_q ? HalfDecode : torn_d ? HalfEvent : HalfIdle;
      end
      HalfDecode: state_d = HalfJudge;
      HalfJudge: begin
        if (is_new) row_d.since = now_ns_i;
        row_d.known         = row_q.known || is_new && !is_bad_q;
        row_d.spent         = row_q.spent || is_malformed;
        count_bad_headers_o = is_malformed;
        word_d              = row_q.word;
        if (is_there && lines_q > 11'(HalfLines)) begin
          long_d = has_least;
          clears = has_least;
        end else if (is_there) begin
          whole_d = has_lines;
          clears  = has_lines;
        end else if (row_d.spent) begin
          // What was given up is waited for: its own lines, or all of them where its header made no sense.
          clears = row_q.known ? has_lines : is_full;
        end
        if (clears) {row_d.valid, row_d.known, row_d.spent} = '0;
        row_write[half_q] = 1'b1;
        state_d           = (torn_q || whole_d || long_d) ? HalfEvent : HalfIdle;
      end
      // The scan, one half after the other.
      HalfElapsed: state_d = HalfLate;
      HalfLate: begin
        state_d = HalfIdle;
        if (waits_q && elapsed_q >= settings_q.timeout_ns) begin
          state_d = HalfGiveUp;
        end else if (!half_q) begin
          half_d  = 1'b1;
          state_d = HalfElapsed;
        end
      end
      HalfGiveUp: begin
        row_d.spent       = 1'b1;
        row_write[half_q] = 1'b1;
        torn_d            = 1'b1;
        torn_word_d       = row_q.word;
        count_torn_o      = 1'b1;
        // Its event is to be waited for like that of a piece.
        scans_d           = 1'b0;
        state_d           = HalfEvent;
      end
      HalfEvent: if (event_ready_i) state_d = HalfIdle;
      default:   state_d = HalfIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q <= HalfClear;
      scan_q  <= '0;
      scans_q <= 1'b0;
    end else begin
      state_q <= state_d;
      scan_q  <= scan_d;
      scans_q <= scans_d;
    end
    queue_q     <= queue_d;
    half_q      <= half_d;
    mine_q      <= mine_d;
    torn_q      <= torn_d;
    torn_word_q <= torn_word_d;
    whole_q     <= whole_d;
    long_q      <= long_d;
    word_q      <= word_d;
    if (state_q == HalfIdle) begin
      line_q   <= piece_line_i[1:0];
      data_q   <= piece_data_i;
      be_q     <= piece_be_i;
      begins_q <= piece_first_i || piece_line_i[1:0] == '0;
      ends_q   <= piece_last_i || piece_line_i[1:0] == '1;
    end
    if (state_q == HalfLook || state_q == HalfElapsed) begin
      row_q      <= row;
      settings_q <= settings;
      overlaps_q <= overlaps;
      freed_q    <= freed;
    end
    if (state_q == HalfMerge) row_q <= row_d;
    if (state_q == HalfDecode) begin
      is_bad_q     <= head.is_bad_header;
      lines_q      <= head.lines;
      has_word_q   <= row_q.valid[0][7:0] == '1;
      for (int line = 0; line < 4; line++) whole_line_q[line] <= row_q.valid[line] == '1;
    end
    if (state_q == HalfElapsed) begin
      waits_q   <= waits[half_q];
      elapsed_q <= now_ns_i - row.since;
    end
  end

  assign event_valid_o     = state_q == HalfEvent;
  assign event_queue_o     = queue_q;
  assign event_half_o      = half_q;
  assign event_torn_o      = torn_q;
  assign event_torn_word_o = torn_word_q;
  assign event_whole_o     = whole_q;
  assign event_long_o      = long_q;
  assign event_word_o      = word_q;

  // A full half never stays: whatever it holds is dealt with.
  assign freed_valid_o = state_q == HalfJudge && settings_q.fills && is_full;
  assign freed_queue_o = queue_q;
  assign freed_lines_o = freed_q + 32'(HalfLines);
  assign count_long_o  = state_q == HalfJudge && long_d;

  logic unused_bits;
  assign unused_bits = ^{head, piece_line_i, setup_timeout_ns_i, settings_q};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!setup_write_i || hold_i && idle_o) else $error("push_halves: set up while at work");
      assert (!freed_valid_o || clears) else $error("push_halves: a full half stays");
      assert (!take || piece_be_i != '0) else $error("push_halves: a piece of nothing");
    end
  end
`endif

endmodule

`default_nettype wire

// The kPIO+WC queues: lines in arrival order, cut into packets by what the EOP filter says of them.
//
// A queue is a ring of as many lines as its window has. Lines are stored in the order in which they arrive; where in
// the window they were written is not looked at: that is the paper's design, and its limit. A line stays in the ring
// until the egress has passed its packet; so the count of lines that have left is the credit, and a damaged, empty,
// short or long packet is one that the egress passes without sending.
//
// Guarantees
//   - One op a cycle, back to back for one queue too.
//   - A packet is handed on (`entry`) once, when its last line is written; every line taken is in exactly one entry,
//     but for those of a packet that was incomplete when its queue failed or stopped.
//   - A line without room waits where the queue has back-pressure, until the egress frees lines (counted once as
//     refused); else the queue fails (overrun). Nothing waits for data that is not there yet.
//   - A failure is told once a start, in order of occurrence. What is complete still goes out.
// Limits
//   - A line that waits holds up the lines of all queues behind it (the link's order is kept).
//   - Lines of a dropped packet are free when the egress has passed them, in their turn; the model frees them at once.
//   - Failures that nobody takes hold up everything after NumQueues of them.
// Latency: 2 cycles from op to line and entry; all outputs but op_ready_o and counts are registers.
// Cost: NumQueues x (32 + GenerationW + OpenW + 3 + 2 x PosW) bits of tables, about 700 registers.
// Twin: nic/model/src/kpio/kpio_queue.rs (take_line, end_packet, drop_packet).

`default_nettype none

module kpio_queue #(
  // Queues, 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // log2 of the most lines of a window.
  parameter int unsigned LineW = 6,
  // Longest frame in bytes.
  parameter int unsigned MaxFrameBytes = 9216,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  // The signatures of a packet that fills its last line take a line of their own.
  localparam int unsigned LongestLines = MaxFrameBytes / nic_pkg::LineBytes + 1,
  localparam int unsigned OpenW = $clog2(LongestLines + 1),
  localparam int unsigned GenerationW = kpio_pkg::GenerationW
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  // Strap: lines of every window less 1; a window has a power of two of lines, at most 2^LineW.
  input  logic [LineW-1:0]   window_mask_i,

  // Ops with outcomes.
  input  logic               op_valid_i,
  output logic               op_ready_o,
  input  kpio_pkg::op_e      op_i,
  input  logic [QueueW-1:0]  op_queue_i,
  input  logic [511:0]       op_data_i,
  input  nic_pkg::queue_status_cause_e op_cause_i,
  input  kpio_pkg::outcome_t op_outcome_i,
  // Of an OpStart; stands while the op is under way.
  input  logic               start_backpressure_i,
  // An OpStop of this queue waits to come in: its lines no longer wait for room.
  input  logic               stopping_valid_i,
  input  logic [QueueW-1:0]  stopping_queue_i,
  // The stops of the sweep after reset make everything defined.
  input  logic               sweep_i,
  // A start or stop has taken effect.
  output logic               settled_o,
  // No op is at work, and every failure was taken.
  output logic               is_idle_o,
  // An op stood, a cycle ago, until the wire takes a frame: for room among the lines of its queue, or among the entries.
  output logic               is_waiting_o,

  // The state as line_merge needs it.
  output logic               halt_we_o,
  output logic [QueueW-1:0]  halt_queue_o,
  output logic               halt_value_o,

  // Lines to store.
  output logic               line_we_o,
  output logic [QueueW-1:0]  line_queue_o,
  output logic [LineW-1:0]   line_at_o,
  output logic [511:0]       line_data_o,

  // Packets: absolute count of lines at their end, position with its lap there, lines, own words of the last line,
  // whether to send them. The room is for at least two entries.
  input  logic               entry_room_i,
  output logic               entry_valid_o,
  output logic [QueueW-1:0]  entry_queue_o,
  output logic [GenerationW-1:0] entry_generation_o,
  output logic [31:0]        entry_end_o,
  output logic [LineW:0]     entry_position_o,
  output logic [OpenW-1:0]   entry_lines_o,
  output logic [2:0]         entry_words_o,
  output logic               entry_send_o,

  // The generation of a queue that stops. The egress may ask a stop to wait.
  input  logic               stop_room_i,
  output logic               stop_we_o,
  output logic [QueueW-1:0]  stop_queue_o,
  output logic [GenerationW-1:0] stop_generation_o,

  // Lines freed: the position, with its lap, behind the last of them.
  input  logic               freed_valid_i,
  input  logic [QueueW-1:0]  freed_queue_i,
  input  logic [LineW:0]     freed_position_i,

  output logic               failed_valid_o,
  input  logic               failed_ready_i,
  output logic [QueueW-1:0]  failed_queue_o,
  output logic [3:0]         failed_cause_o,

  output logic               count_kpio_lines_o,
  output logic               count_kpio_frames_o,
  output logic               count_kpio_malformed_o,
  output logic               count_runts_o,
  output logic               count_bad_lengths_o,
  output logic               count_overruns_o,
  output logic               count_refused_writes_o,
  output logic               count_hole_timeouts_o,
  output logic               count_clobbers_o,
  output logic               count_span_exceeded_o,
  output logic               count_quarantined_writes_o
);

  // Bits of a position with its lap.
  localparam int unsigned PosW = LineW + 1;
  localparam int unsigned LongestWords = MaxFrameBytes / nic_pkg::WordBytes;
  localparam int unsigned FailedDepth = (NumQueues > 2) ? 1 << $clog2(NumQueues) : 2;

  typedef struct packed {
    logic                   active;
    logic                   backpressure;
    // The packet under way is damaged or too long: its lines are passed until it ends.
    logic                   dropping;
    logic [GenerationW-1:0] generation;
    // Lines of the packet under way.
    logic [OpenW-1:0]       open;
    // Position in the ring, with its lap, of the next line.
    logic [PosW-1:0]        position;
    // Lines arrived since the start.
    logic [31:0]            count;
  } state_t;
  localparam int unsigned StateW = $bits(state_t);

  logic                         valid_q, take;
  kpio_pkg::op_e                op_q;
  logic [QueueW-1:0]            queue_q;
  logic [511:0]                 data_q;
  nic_pkg::queue_status_cause_e cause_q;
  kpio_pkg::outcome_t           outcome_q;

  state_t                       state, state_d, state_read, state_q;
  logic                         state_we, fresh_q;
  logic [PosW-1:0]              head_read, head_q;
  logic [PosW-1:0]              head, mask, capacity;
  logic                         full;
  logic [OpenW-1:0]             longest_q;

  logic                         is_line, waits, stands, waited_q;
  logic                         fires, write_line, overruns, fails, reports;
  logic                         ends, sends, malformed, runt, bad_length;
  logic [31:0]                  next_count;
  logic [OpenW-1:0]             next_open;
  logic [PosW-1:0]              next_position;
  logic                         is_empty, is_runt, is_long, is_longest;
  logic [3:0]                   cause;
  logic                         failed_room, failed_ready, reports_q;
  logic [QueueW+3:0]            report_q;
  logic [$clog2(FailedDepth):0] failed_count;

  assign take        = !valid_q || !stands;
  assign op_ready_o  = take;
  assign is_idle_o   = !valid_q && !reports_q && failed_count == '0;

  // The tables are read for what comes next, whether it comes in or not, so that no address waits for that decision.
  // What they said of the op at work is kept; of what changes meanwhile, lines freed, it is told.
  assign state = fresh_q ? state_read : state_q;
  assign head  = fresh_q ? head_read : head_q;

  always_ff @(posedge clk_i) begin
    fresh_q <= take;
    state_q <= state;
    head_q  <= (freed_valid_i && freed_queue_i == queue_q) ? freed_position_i : head;
  end

  table_ram #(.Width(StateW), .Depth(NumQueues)) u_state (
    .clk_i, .we_i(state_we), .waddr_i(queue_q), .wdata_i(state_d), .raddr_i(op_queue_i), .rdata_o(state_read)
  );

  // Where the oldest line is. A queue starts where it stood, empty. A stop of the sweep has the port to itself, for
  // nothing is freed then.
  logic sweeps;
  assign sweeps = valid_q && op_q == kpio_pkg::OpStop && sweep_i;
  table_ram #(.Width(PosW), .Depth(NumQueues)) u_heads (
    .clk_i,
    .we_i    (freed_valid_i || sweeps),
    .waddr_i (sweeps ? queue_q : freed_queue_i),
    .wdata_i (sweeps ? '0 : freed_position_i),
    .raddr_i (op_queue_i),
    .rdata_o (head_read)
  );

  fifo #(.Width(QueueW + 4), .Depth(FailedDepth)) u_failed (
    .clk_i,
    .rst_ni,
    .push_valid_i (reports_q),
    .push_ready_o (failed_ready),
    .push_data_i  (report_q),
    .pop_valid_o  (failed_valid_o),
    .pop_ready_i  (failed_ready_i),
    .pop_data_o   ({failed_queue_o, failed_cause_o}),
    .count_o      (failed_count)
  );

  // The ring is full when the positions agree but for the lap.
  assign mask     = {window_mask_i, 1'b1};
  assign capacity = {1'b0, window_mask_i} + 1'b1;
  assign full     = ((state.position ^ head) & mask) == capacity;

  assign is_line = valid_q && op_q == kpio_pkg::OpLine && state.active;
  assign waits   = is_line && full && state.backpressure
                && !(stopping_valid_i && stopping_queue_i == queue_q);
  assign failed_room = failed_ready && !reports_q;
  assign stands  = waits || !entry_room_i || !failed_room || (op_q == kpio_pkg::OpStop && !stop_room_i);

  // Lengths, as if the line ended its packet.
  assign is_empty   = state.open == '0 && outcome_q.words == '0;
  assign is_runt    = state.open == '0
                   && 7'(outcome_q.words) * 7'(nic_pkg::WordBytes) < 7'(nic_pkg::MinFrameBytes);
  assign is_long    = {state.open, outcome_q.words} > (OpenW + 3)'(LongestWords);
  assign is_longest = state.open == longest_q;

  // What the line, if it is taken, does to its packet.
  always_comb begin
    ends       = 1'b1;
    sends      = 1'b0;
    malformed  = 1'b0;
    runt       = 1'b0;
    bad_length = 1'b0;
    if (state.dropping) begin
      ends = 1'b1;
    end else if (outcome_q.damaged) begin
      malformed = 1'b1;
    end else if (outcome_q.goes_on) begin
      ends       = is_longest;
      bad_length = is_longest;
    end else begin
      sends      = !is_runt && !is_long;
      malformed  = is_empty;
      runt       = is_runt && !is_empty;
      bad_length = is_long;
    end
  end

  // What is written where, and whether, are told apart: only the latter waits for the answer to "full".
  always_comb begin
    state_d              = state;
    state_d.backpressure = (op_q == kpio_pkg::OpStart) ? start_backpressure_i : state.backpressure;
    state_d.active       = op_q == kpio_pkg::OpStart || (op_q == kpio_pkg::OpLine && !full);
    state_d.dropping     = op_q == kpio_pkg::OpLine && ends && outcome_q.goes_on;
    state_d.open         = (op_q == kpio_pkg::OpLine && !ends) ? next_open : '0;
    state_d.position     = (op_q == kpio_pkg::OpStart) ? head : next_position;
    state_d.count        = (op_q == kpio_pkg::OpStart) ? '0 : next_count;
    state_d.generation   = (op_q != kpio_pkg::OpStop) ? state.generation
                         : sweep_i ? '0 : GenerationW'(kpio_pkg::increment(32'(state.generation)));
  end

  // A full queue with back-pressure comes here only when a stop lets its line go; it is about to be forgotten.
  assign fires      = valid_q && !stands;
  assign next_open     = OpenW'(kpio_pkg::increment(32'(state.open)));
  assign next_count    = kpio_pkg::increment(state.count);
  assign next_position = PosW'(kpio_pkg::increment(32'(state.position)));
  assign write_line = fires && is_line && !full;
  assign overruns   = fires && is_line && full && !state.backpressure;
  assign fails      = fires && op_q == kpio_pkg::OpFail && state.active;
  assign reports    = overruns || fails;
  assign state_we   = write_line || overruns || (fires && op_q != kpio_pkg::OpLine);
  assign cause      = (op_q == kpio_pkg::OpLine) ? nic_pkg::QueueStatusCauseOverrun : cause_q;

  assign count_kpio_frames_o        = write_line && sends;
  assign count_kpio_malformed_o     = write_line && malformed;
  assign count_runts_o              = write_line && runt;
  assign count_bad_lengths_o        = write_line && bad_length;
  assign count_overruns_o           = overruns;
  assign count_quarantined_writes_o = fires && op_q == kpio_pkg::OpLine && !state.active;
  assign count_kpio_lines_o     = write_line;
  assign count_refused_writes_o = waits && !waited_q;
  assign count_hole_timeouts_o        = fails && cause_q == nic_pkg::QueueStatusCauseHoleTimeout;
  assign count_clobbers_o             = fails && cause_q == nic_pkg::QueueStatusCauseClobber;
  assign count_span_exceeded_o        = fails && cause_q == nic_pkg::QueueStatusCauseSpanExceeded;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q       <= 1'b0;
      waited_q      <= 1'b0;
      line_we_o     <= 1'b0;
      halt_we_o     <= 1'b0;
      reports_q     <= 1'b0;
      stop_we_o     <= 1'b0;
      settled_o     <= 1'b0;
      is_waiting_o  <= 1'b0;
      entry_valid_o <= 1'b0;
    end else begin
      if (take) valid_q <= op_valid_i;
      waited_q      <= waits;
      line_we_o     <= write_line;
      reports_q     <= reports;
      halt_we_o     <= state_we && (op_q != kpio_pkg::OpLine || reports);
      stop_we_o     <= valid_q && !stands && op_q == kpio_pkg::OpStop;
      settled_o     <= valid_q && !stands && (op_q == kpio_pkg::OpStart || op_q == kpio_pkg::OpStop);
      is_waiting_o  <= waits || (valid_q && !entry_room_i);
      entry_valid_o <= write_line && ends;
    end
    if (take) begin
      op_q      <= op_i;
      queue_q   <= op_queue_i;
      data_q    <= op_data_i;
      cause_q   <= op_cause_i;
      outcome_q <= op_outcome_i;
    end
    report_q           <= {queue_q, cause};
    halt_queue_o       <= queue_q;
    halt_value_o       <= op_q != kpio_pkg::OpStart;
    stop_queue_o       <= queue_q;
    stop_generation_o  <= state_d.generation;
    line_queue_o       <= queue_q;
    line_at_o          <= state.position[LineW-1:0] & window_mask_i;
    line_data_o        <= data_q;
    entry_queue_o      <= queue_q;
    entry_generation_o <= state.generation;
    entry_end_o        <= next_count;
    entry_position_o   <= next_position;
    entry_lines_o      <= next_open;
    entry_words_o      <= outcome_q.words;
    entry_send_o       <= sends;
    // Lines that a packet may have in front of the one in which it must have ended.
    longest_q <= (32'(capacity) < LongestLines) ? OpenW'(window_mask_i) : OpenW'(LongestLines - 1);
  end

  if (NumQueues < 1 || NumQueues > 1024) begin : g_bad_queues
    $fatal(1, "kpio_queue: NumQueues must be 1 to 1024");
  end
  if (MaxFrameBytes < 64 || MaxFrameBytes > nic_pkg::MaxFrameBytes) begin : g_bad_frame
    $fatal(1, "kpio_queue: MaxFrameBytes must be 64 to the longest frame that a port carries");
  end

`ifndef SYNTHESIS
  logic [PosW-1:0] used;
  assign used = (state.position - head) & mask;
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      // The window's size is a power of two.
      assert ((window_mask_i & (window_mask_i + 1'b1)) == '0);
      if (is_line) begin
        // No more lines are held than the ring has, and the packet under way is among them.
        assert (used <= capacity);
        assert (PosW'(state.open) <= used);
        assert (state.open <= longest_q);
      end
      // A start finds its queue stopped.
      assert (!(valid_q && op_q == kpio_pkg::OpStart) || !state.active);
      assert (!entry_valid_o || entry_lines_o != '0);
    end
  end
`endif

endmodule

`default_nettype wire

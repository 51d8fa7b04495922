// First stage of the reorder unit: which way a piece of a line goes.
//
// A queue whose lines come whole and in order holds no context: its next line is known here, and nothing else of it.
// The first piece that is something else takes a context, and from then on the queue's pieces go there until nothing
// incomplete is left; then `commit` hands the queue's frontier back (release).
//
// Guarantees
//   - Pieces leave in the order in which they came, one a cycle; queue, position and context stand beside them.
//   - A piece leaves with `place` only if its slot holds no other line: its position is less than a ring (two spans)
//     from a frontier that the queue has reached for certain. Where an earlier piece, still in the pipeline, may have
//     moved the frontier on, the piece waits for it: at most 5 cycles.
//   - Where a piece really lies is judged by `commit`, in order of arrival; this stage is only harmless.
// Limits
//   - A write one whole window ahead of a line that is still in the pipeline is taken for a second write of that line.
//     A sender that waits for credits, or whose window is longer than span and pipeline together, makes none.
// Latency 1 cycle. Cost: three tables of NumQueues entries. Twin: nic/model/src/mmio/arrival.rs (take_next_line).

`default_nettype none

module arrival #(
  // Queues, 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // log2 of the lines of the longest window; at least RingW.
  parameter int unsigned LineW = 6,
  // log2 of the lines of a context: twice the reorder span.
  parameter int unsigned RingW = 5,
  // Reorder contexts, 2 or more.
  parameter int unsigned NumContexts = 16,
  // Bits of a pool line's name.
  parameter int unsigned PtrW = 11,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned ContextW = $clog2(NumContexts),
  localparam int unsigned PosW = LineW + 2
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // Straps: lines of every window less 1, lines of a ring less 1.
  input  logic [LineW-1:0]    window_mask_i,
  input  logic [RingW-1:0]    ring_mask_i,

  // Pieces come in.
  input  logic                piece_valid_i,
  output logic                piece_ready_o,
  input  logic [QueueW-1:0]   piece_queue_i,
  input  logic [LineW-1:0]    piece_line_i,
  input  logic                piece_whole_i,

  // Hold: the pool or control needs the pipeline to stand.
  input  logic                hold_i,
  // A piece of `here_queue_o` is in one of the stages from `contexts` to `commit` that may still move its frontier.
  input  logic                in_flight_i,
  output logic                here_valid_o,
  output logic [QueueW-1:0]   here_queue_o,
  output logic                here_active_o,
  output logic                here_shared_o,
  output logic                here_in_context_o,

  // A queue is started: its frontier is 0, and the pool line in front of its first one is `start_tail_i`.
  input  logic                start_valid_i,
  input  logic [QueueW-1:0]   start_queue_i,
  input  logic [PtrW-1:0]     start_tail_i,
  input  logic                start_shared_i,
  // Whether a queue takes writes.
  input  logic                active_we_i,
  input  logic [QueueW-1:0]   active_queue_i,
  input  logic                active_value_i,

  // `commit` moves frontiers, and gives queues back that need no context any more.
  input  logic                commit_we_i,
  input  logic [QueueW-1:0]   commit_queue_i,
  input  logic [PosW-1:0]     commit_frontier_i,
  input  logic                release_valid_i,
  input  logic [QueueW-1:0]   release_queue_i,
  input  logic                release_turn_i,
  input  logic [PosW-1:0]     release_frontier_i,
  input  logic [PtrW-1:0]     release_tail_i,

  // Free contexts. A queue that is allowed one waits for it: it is on its way back, at most 5 cycles.
  input  logic                context_valid_i,
  input  logic                context_allowed_i,
  output logic                context_take_o,
  input  logic [ContextW-1:0] context_name_i,

  // Addresses of the tables of `contexts`, for the piece that leaves at this cycle's end.
  output logic [ContextW-1:0] read_context_o,
  output logic [RingW-1:0]    read_slot_o,

  // The piece, a cycle later.
  output logic                out_valid_o,
  output logic [QueueW-1:0]   out_queue_o,
  output logic [PosW-1:0]     out_pos_o,
  output logic                out_place_o,
  output logic                out_beyond_o,
  output logic                out_dropped_o,
  output logic                out_fast_o,
  output logic                out_fresh_o,
  output logic [ContextW-1:0] out_context_o,
  output logic                out_turn_o,
  output logic [PosW-1:0]     out_base_o,
  output logic                out_tail_given_o,
  output logic [PtrW-1:0]     out_tail_o,
  output logic                out_no_context_o,
  output logic                out_shared_o
);

  if (NumQueues < 1 || NumQueues > 1024) begin : g_bad_queues
    $fatal(1, "arrival: NumQueues must be 1 to 1024");
  end
  if (LineW < RingW) begin : g_bad_window
    $fatal(1, "arrival: a window must have at least two reorder spans of lines (LineW at least RingW)");
  end

  // Whose word holds: the table of this stage, or what `commit` gave back. They differ in `turn` when the latter does.
  typedef struct packed {
    logic                turn;
    logic                in_context;
    logic [ContextW-1:0] context_name;
    logic [PosW-1:0]     frontier;
  } own_t;
  typedef struct packed {
    logic                turn;
    logic [PosW-1:0]     frontier;
    logic [PtrW-1:0]     tail;
  } returned_t;

  own_t      own, own_d;
  returned_t returned, returned_d;
  logic [PosW-1:0] committed;
  logic            active, shared;

  logic              valid_q;
  logic [QueueW-1:0] queue_q;
  logic [LineW-1:0]  line_q;
  logic              whole_q;

  logic [QueueW-1:0] read_queue;
  logic              own_we;
  logic [QueueW-1:0] own_queue;
  logic              step, wait_here;

  assign piece_ready_o = !wait_here;
  assign read_queue    = wait_here ? queue_q : piece_queue_i;
  assign here_valid_o  = valid_q;
  assign here_queue_o  = queue_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (!wait_here) valid_q <= piece_valid_i;
    if (!wait_here) begin
      queue_q <= piece_queue_i;
      line_q  <= piece_line_i;
      whole_q <= piece_whole_i;
    end
  end

  table_ram #(.Width($bits(own_t)), .Depth(NumQueues)) u_own (
    .clk_i, .we_i(own_we), .waddr_i(own_queue), .wdata_i(own_d), .raddr_i(read_queue), .rdata_o(own)
  );
  table_ram #(.Width($bits(returned_t)), .Depth(NumQueues)) u_returned (
    .clk_i, .we_i(release_valid_i || start_valid_i), .waddr_i(start_valid_i ? start_queue_i : release_queue_i),
    .wdata_i(returned_d), .raddr_i(read_queue), .rdata_o(returned)
  );
  table_ram #(.Width(PosW), .Depth(NumQueues)) u_committed (
    .clk_i, .we_i(commit_we_i), .waddr_i(commit_queue_i), .wdata_i(commit_frontier_i), .raddr_i(read_queue),
    .rdata_o(committed)
  );
  table_ram #(.Width(1), .Depth(NumQueues)) u_active (
    .clk_i, .we_i(active_we_i), .waddr_i(active_queue_i), .wdata_i(active_value_i), .raddr_i(read_queue),
    .rdata_o(active)
  );

  table_ram #(.Width(1), .Depth(NumQueues)) u_shared (
    .clk_i, .we_i(start_valid_i), .waddr_i(start_queue_i), .wdata_i(start_shared_i), .raddr_i(read_queue),
    .rdata_o(shared)
  );

  always_comb begin
    returned_d = '{turn: release_turn_i, frontier: release_frontier_i, tail: release_tail_i};
    // A start writes both tables, so that the one with frontier 0 and the first tail is the one that holds.
    if (start_valid_i) returned_d = '{turn: 1'b1, frontier: '0, tail: start_tail_i};
  end

  // Where the piece lies, seen from the frontier that is known here.
  logic            is_returned, in_context, next_line, beyond, has_wrapped;
  logic [PosW-1:0] base, wide_mask, lap_start, pos;
  logic [LineW-1:0] base_line, ahead;

  assign is_returned = own.turn != returned.turn;
  assign in_context  = !is_returned && own.in_context;
  assign base        = is_returned ? returned.frontier : (own.in_context ? committed : own.frontier);
  assign wide_mask   = PosW'(window_mask_i);
  assign base_line   = base[LineW-1:0] & window_mask_i;
  assign next_line   = line_q == base_line;
  assign has_wrapped = line_q < base_line;
  assign lap_start   = has_wrapped ? (base | wide_mask) + 1'b1 : base & ~wide_mask;
  assign pos         = lap_start | PosW'(line_q);
  assign ahead       = (line_q - base_line) & window_mask_i;
  assign beyond      = (ahead & ~LineW'(ring_mask_i)) != '0;

  assign here_active_o     = active;
  assign here_shared_o     = shared;
  assign here_in_context_o = in_context;

  // What becomes of it.
  logic fast, place, fresh, needs_context, lacks_context;

  assign fast          = active && whole_q && next_line && !in_context;
  assign needs_context = active && !fast && !in_context;
  assign lacks_context = needs_context && !context_allowed_i;
  assign place         = active && (fast || (!beyond && !lacks_context));
  assign fresh         = place && !fast && !in_context;
  assign wait_here     = valid_q && (hold_i || (active && beyond && in_flight_i)
                                     || (needs_context && context_allowed_i && !context_valid_i));
  assign step          = valid_q && !wait_here;

  assign context_take_o = step && fresh;
  assign read_context_o = in_context ? own.context_name : context_name_i;
  assign read_slot_o    = line_q[RingW-1:0] & ring_mask_i;

  always_comb begin
    own_we    = step && (fast || fresh);
    own_queue = queue_q;
    own_d     = '{
      turn: returned.turn, in_context: fresh, context_name: context_name_i,
      frontier: base + PosW'(1)
    };
    if (start_valid_i) begin
      own_we    = 1'b1;
      own_queue = start_queue_i;
      own_d     = '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) out_valid_o <= 1'b0;
    else         out_valid_o <= step;
    out_queue_o      <= queue_q;
    out_pos_o        <= pos;
    out_place_o      <= place;
    out_beyond_o     <= beyond;
    out_dropped_o    <= !active;
    out_fast_o       <= fast;
    out_fresh_o      <= fresh;
    out_context_o    <= read_context_o;
    out_turn_o       <= returned.turn;
    out_base_o       <= base;
    out_tail_given_o <= is_returned;
    out_tail_o       <= returned.tail;
    out_no_context_o <= lacks_context;
    out_shared_o     <= shared;
  end

`ifndef SYNTHESIS
  logic            held_q;
  logic [QueueW-1:0] held_queue_q;
  logic [LineW-1:0]  held_line_q;
  always_ff @(posedge clk_i) begin
    held_q       <= rst_ni && piece_valid_i && !piece_ready_o;
    held_queue_q <= piece_queue_i;
    held_line_q  <= piece_line_i;
    if (rst_ni) begin
      a_start_alone   : assert (!(start_valid_i && (release_valid_i || step)));
      a_piece_stands  : assert (!held_q
                                || (piece_valid_i && piece_queue_i == held_queue_q && piece_line_i == held_line_q));
      a_line_exists   : assert (!valid_q || (line_q & ~window_mask_i) == '0);
      a_fast_is_alone : assert (!(fast && fresh));
    end
  end
`endif

endmodule

`default_nettype wire

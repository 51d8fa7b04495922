// First stage of the reorder unit: which way a piece of a line goes.
//
// A queue whose lines come whole and in order holds no context: its next line is known here, and nothing else of it.
// The first piece that is something else takes a context, and from then on the queue's pieces go there until nothing
// incomplete is left; then `commit` hands the queue's frontier back (release).
//
// Guarantees
//   - Pieces leave in the order in which they came, one a cycle; queue, position and context stand beside them.
//   - A piece leaves with `place` only if its slot holds no other line: its position is less than a ring (two spans)
//     after a frontier that the queue has certainly reached, and not before the line at which its context was taken.
//     A piece beyond that waits, at most 7 cycles, for earlier pieces in the pipeline, which may move the frontier. A
//     second write of a line that is still in the pipeline waits too, because it looks like a write of the next lap.
//   - `piece_ready_o` is a register. Whether a piece must wait is known late in its cycle; one more piece is taken then,
//     into a second place. A piece that waits is tried every second cycle; its queue's tables are read in between.
//   - `commit` judges each piece exactly, in order of arrival. This stage only guarantees that a wrong placement does no
//     harm.
// Limits
//   - A write one whole window ahead of a line that is still in the pipeline is taken for a second write of that line.
//     A sender that waits for credits, or whose window is longer than span and pipeline together, makes none.
// Latency 1 cycle. Cost: five tables of NumQueues entries. Twin: nic/model/src/mmio/arrival.rs (take_next_line).

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
  output logic                is_empty_o,
  output logic                here_valid_o,
  output logic [QueueW-1:0]   here_queue_o,
  output logic                here_active_o,
  output logic                here_shared_o,
  output logic                here_in_context_o,
  // The piece of this stage stood, and its tables are read anew: what is said of it holds for the next cycle.
  output logic                here_again_o,

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
  input  logic                commit_turn_i,
  input  logic [PosW-1:0]     commit_frontier_i,
  input  logic                release_valid_i,
  input  logic [QueueW-1:0]   release_queue_i,
  input  logic                release_turn_i,
  input  logic [PosW-1:0]     release_frontier_i,
  input  logic [PtrW-1:0]     release_tail_i,

  // Free contexts: two are kept here. A queue that is allowed one waits for it: it is on its way back, at most 7
  // cycles.
  input  logic                context_valid_i,
  input  logic                context_allowed_i,
  output logic                context_take_o,
  input  logic [ContextW-1:0] context_name_i,
  // A cycle after the piece left: it took this one.
  output logic                context_taken_o,
  output logic [ContextW-1:0] context_taken_name_o,

  // Addresses of the tables of `contexts`, for the piece that leaves at this cycle's end if it has a context.
  output logic [ContextW-1:0] read_context_o,
  // The same context sooner: as it was before the piece that is in the next stage took it, if that one did.
  output logic [ContextW-1:0] mark_context_o,
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
  output logic                out_shared_o,
  // For what goes along with a piece: none stands aside, so one may come in; the next one comes to this stage.
  output logic                aside_o,
  output logic                load_o
);

  if (NumQueues < 1 || NumQueues > 1024) begin : g_bad_queues
    $fatal(1, "arrival: NumQueues must be 1 to 1024");
  end
  if (LineW < RingW) begin : g_bad_window
    $fatal(1, "arrival: a window must have at least two reorder spans of lines (LineW at least RingW)");
  end

  // Three tables have a frontier of each queue; `turn`, which changes each time a queue loses its context, says which one
  // holds. `returned`: `commit` released the context, and no piece came since (its turn is not this stage's). `committed`:
  // a piece of this context has moved the frontier (its turn is this stage's). `own`: the next line of a queue without
  // context, or the line at which the context was taken. Whole lines that are still in the pipeline move the committed
  // frontier too, but only up to that line, and not at all if their queue fails; so they must not count here.
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
  typedef struct packed {
    logic                turn;
    logic [PosW-1:0]     frontier;
  } committed_t;

  own_t      own, own_d;
  returned_t returned, returned_d;
  committed_t committed;
  logic            active, shared;

  logic              valid_q, stale_q, aside_q;
  logic [QueueW-1:0] queue_q, aside_queue_q;
  logic [LineW-1:0]  line_q, aside_line_q;
  logic              whole_q, aside_whole_q;

  logic [QueueW-1:0] read_queue;
  logic              own_we, own_at_work;
  logic [QueueW-1:0] own_queue;
  logic              step, stands;

  assign piece_ready_o = !aside_q;
  assign here_valid_o  = valid_q;
  assign here_queue_o  = queue_q;
  assign here_again_o  = stale_q;
  assign is_empty_o    = !valid_q && !aside_q;
  assign aside_o       = !aside_q;
  assign load_o        = !stands;
  assign stands        = valid_q && !step;
  // The tables are read for the piece behind this one; if this one stands, for it once more.
  assign read_queue    = stale_q ? queue_q : (aside_q ? aside_queue_q : piece_queue_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      stale_q <= 1'b0;
      aside_q <= 1'b0;
    end else begin
      if (!stands) valid_q <= aside_q || piece_valid_i;
      stale_q <= stands && !stale_q;
      aside_q <= stands && (aside_q || piece_valid_i);
    end
    if (!aside_q) begin
      aside_queue_q <= piece_queue_i;
      aside_line_q  <= piece_line_i;
      aside_whole_q <= piece_whole_i;
    end
    if (!stands) begin
      queue_q <= aside_q ? aside_queue_q : piece_queue_i;
      line_q  <= aside_q ? aside_line_q : piece_line_i;
      whole_q <= aside_q ? aside_whole_q : piece_whole_i;
    end
  end

  table_ram #(.Width($bits(own_t)), .Depth(NumQueues)) u_own (
    .clk_i, .we_i(own_we), .waddr_i(own_queue), .wdata_i(own_d), .raddr_i(read_queue), .rdata_o(own)
  );
  // The context's name once more, without what is written in the same cycle.
  logic [ContextW-1:0] mark_context [NumQueues];
  always_ff @(posedge clk_i) begin
    if (own_we) mark_context[own_queue] <= own_d.context_name;
    mark_context_o <= mark_context[read_queue];
  end

  table_ram #(.Width($bits(returned_t)), .Depth(NumQueues)) u_returned (
    .clk_i, .we_i(release_valid_i || start_valid_i), .waddr_i(start_valid_i ? start_queue_i : release_queue_i),
    .wdata_i(returned_d), .raddr_i(read_queue), .rdata_o(returned)
  );
  table_ram #(.Width($bits(committed_t)), .Depth(NumQueues)) u_committed (
    .clk_i, .we_i(commit_we_i), .waddr_i(commit_queue_i), .wdata_i({commit_turn_i, commit_frontier_i}),
    .raddr_i(read_queue), .rdata_o(committed)
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
  logic            is_returned, is_committed, in_context, next_line, beyond, has_wrapped;
  logic [2:0]      nexts, beyonds;
  logic [PosW-1:0] base, wide_mask, pos, base_next;
  logic [LineW-1:0] base_line;

  assign is_returned  = own.turn != returned.turn;
  assign is_committed = own.turn == committed.turn;
  assign in_context   = !is_returned && own.in_context;
  assign base = is_returned ? returned.frontier : (is_committed ? committed.frontier : own.frontier);
  assign wide_mask   = PosW'(window_mask_i);
  assign base_line   = base[LineW-1:0] & window_mask_i;
  increment #(.Width(PosW)) u_next (.value_i(base), .add_i(1'b1), .sum_o(base_next));
  less_than #(.Width(LineW)) u_wrapped (.left_i(line_q), .right_i(base_line), .is_less_o(has_wrapped));
  // The base's lap, or the next one: a bit of it changes where all below are ones.
  for (genvar i = 0; i < int'(PosW); i++) begin : g_pos
    logic turns, line;
    if (i == 0) begin : g_lowest
      assign turns = 1'b1;
    end else begin : g_higher
      assign turns = &(base[i-1:0] | wide_mask[i-1:0]);
    end
    if (i < int'(LineW)) begin : g_line
      assign line = line_q[i];
    end else begin : g_lap
      assign line = 1'b0;
    end
    assign pos[i] = wide_mask[i] ? line : base[i] ^ (has_wrapped && turns);
  end

  assign here_active_o     = active;
  assign here_shared_o     = shared;
  assign here_in_context_o = in_context;

  // Whether it lies a ring or more behind the base, without a subtraction. It does not, if it is in the base's ring and
  // not before it, or in the next ring and before it. `next_ring`, bit by bit: a bit changes where the one below it
  // goes from one to zero. This is asked of all that may be the base, for which of them is it is known late.
  logic [LineW-1:0]      ring_mask, high, is_lowest;
  logic [2:0][LineW-1:0] bases;

  assign ring_mask = LineW'(ring_mask_i);
  assign high      = window_mask_i & ~ring_mask;
  assign is_lowest = high & ~(high << 1);
  assign bases[0]  = own.frontier[LineW-1:0] & window_mask_i;
  assign bases[1]  = committed.frontier[LineW-1:0] & window_mask_i;
  assign bases[2]  = returned.frontier[LineW-1:0] & window_mask_i;
  for (genvar i = 0; i < 3; i++) begin : g_base
    logic [LineW-1:0] falls, in_next;
    logic             same_ring, next_ring, low_is_less;
    assign falls      = (bases[i] & ~line_q) << 1;
    assign in_next    = ~high | ~(line_q ^ bases[i] ^ (is_lowest | falls));
    assign same_ring  = ((line_q ^ bases[i]) & high) == '0;
    assign next_ring  = in_next == '1;
    less_than #(.Width(RingW)) u_low (
      .left_i(line_q[RingW-1:0] & ring_mask_i), .right_i(bases[i][RingW-1:0] & ring_mask_i), .is_less_o(low_is_less)
    );
    assign beyonds[i] = high != '0 && !(low_is_less ? next_ring : same_ring);
    assign nexts[i]   = line_q == bases[i];
  end
  assign next_line = is_returned ? nexts[2] : (is_committed ? nexts[1] : nexts[0]);
  assign beyond    = is_returned ? beyonds[2] : (is_committed ? beyonds[1] : beyonds[0]);

  // Two free contexts. The piece that left in the cycle before may have taken the first one.
  logic [1:0]               have_q, have_d;
  logic [1:0][ContextW-1:0] name_q, name_d;
  logic                     have_context;
  logic [ContextW-1:0]      context_name;

  assign context_taken_o      = out_valid_o && out_fresh_o;
  assign context_taken_name_o = out_context_o;
  assign context_take_o       = !have_q[1] || context_taken_o;
  assign have_context         = context_taken_o ? have_q[1] : have_q[0];
  assign context_name         = context_taken_o ? name_q[1] : name_q[0];
  always_comb begin
    have_d = have_q;
    name_d = name_q;
    if (context_taken_o) begin
      have_d = {1'b0, have_q[1]};
      name_d[0] = name_q[1];
    end
    if (context_take_o && context_valid_i) begin
      have_d = {have_d[0], 1'b1};
      if (have_d[1]) name_d[1] = context_name_i;
      else name_d[0] = context_name_i;
    end
  end

  // What becomes of it.
  logic fast, place, fresh, wants_context, lacks_context;

  assign fast          = active && whole_q && next_line && !in_context;
  assign wants_context = active && !in_context && !(whole_q && next_line);
  assign lacks_context = wants_context && !context_allowed_i;
  assign place         = active && !beyond && !lacks_context;
  assign fresh         = place && wants_context;
  assign own_at_work   = valid_q && !stale_q && !hold_i;
  assign step          = own_at_work && !(active && beyond && in_flight_i)
                         && !(wants_context && context_allowed_i && !have_context);

  assign read_context_o = own.context_name;
  assign read_slot_o    = line_q[RingW-1:0] & ring_mask_i;

  always_comb begin
    // A piece that does either waits for nothing else.
    own_we    = own_at_work && (fast || (wants_context && !beyond && context_allowed_i && have_context));
    own_queue = queue_q;
    own_d     = '{
      turn: returned.turn, in_context: !fast, context_name: context_name, frontier: fast ? base_next : base
    };
    if (start_valid_i) begin
      own_we    = 1'b1;
      own_queue = start_queue_i;
      own_d     = '0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_valid_o <= 1'b0;
      have_q      <= '0;
    end else begin
      out_valid_o <= step;
      have_q      <= have_d;
    end
    name_q           <= name_d;
    out_queue_o      <= queue_q;
    out_pos_o        <= pos;
    out_place_o      <= place;
    out_beyond_o     <= beyond;
    out_dropped_o    <= !active;
    out_fast_o       <= fast;
    out_fresh_o      <= fresh;
    out_context_o    <= in_context ? own.context_name : context_name;
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
      a_own_is_stepped : assert (own_we == (step && (fast || fresh)) || start_valid_i);
      a_beyond_is_far : assert (!valid_q || stale_q || !active
                                || beyond == (((line_q - base_line) & high) != '0));
    end
  end
`endif

endmodule

`default_nettype wire

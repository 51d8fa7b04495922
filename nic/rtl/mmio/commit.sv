// Last stages of the reorder unit: what a piece did to its queue, judged in order of arrival.
//
// Up to here a piece was only put where it can do no harm. Here every piece before it has had its effect and none
// behind it has, so here and nowhere else are the frontier moved, limits checked and queues failed.
//
// Stages (of the reorder unit)
//   4  the piece's distance from the frontier is known, whether or not the piece in stage 5 moves that frontier
//   5  the frontier moves to the next missing line if the piece's line is complete and was the missing one
//   6  the outcome: what failed, what is counted, whose context is empty
// Guarantees
//   - A frontier never moves back, and passes a line only when all its bytes have arrived.
//   - A piece that breaks a rule fails its queue before any later piece of that queue moves the frontier.
//   - A context is released in the cycle in which nothing incomplete is left in it, unless a piece for it is on its
//     way.
// Latency 2 cycles (5 to 6; a failure is told in 7), one piece a cycle. Cost: two tables of NumQueues entries.
// Twin: nic/model/src/mmio/arrival.rs (piece_arrived, check_place), tx_queue.rs (locate, append). HotOS'25 3.1.

`default_nettype none

module commit #(
  parameter int unsigned NumQueues = 64,
  parameter int unsigned LineW = 6,
  parameter int unsigned RingW = 5,
  parameter int unsigned NumContexts = 16,
  parameter int unsigned PtrW = 11,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned ContextW = $clog2(NumContexts),
  localparam int unsigned PosW = LineW + 2,
  localparam int unsigned NearW = RingW + 4
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // Straps: lines of the reorder span, lines of a ring less 1.
  input  logic [RingW-1:0]    span_lines_i,
  input  logic [RingW-1:0]    ring_mask_i,

  // Stage 4.
  input  logic [QueueW-1:0]   read_queue_i,
  input  logic                valid_i,
  input  logic [QueueW-1:0]   queue_i,
  input  logic [PosW-1:0]     pos_i,
  input  logic [PosW-1:0]     target_i,
  input  logic                complete_i,
  input  logic                clobber_i,
  input  logic                split_i,
  input  logic                place_i,
  input  logic                beyond_i,
  input  logic                not_free_i,
  input  logic                dropped_i,
  input  logic                no_context_i,
  input  logic                shared_i,
  input  logic                fast_i,
  input  logic                fresh_i,
  input  logic [ContextW-1:0] context_i,
  input  logic                took_line_i,
  input  logic [PtrW-1:0]     line_i,
  input  logic                turn_i,

  // Stage 5: it brought the byte that its line lacked first.
  input  logic                expected_i,

  // Pool lines that nobody has reserved and that are not in use.
  input  logic signed [NearW-1:0] shared_near_i,
  output logic                shared_take_o,
  output logic [RingW:0]      shared_lines_o,

  // A queue starts, with frontier 0, or stops; another module failed one.
  input  logic                start_valid_i,
  input  logic [QueueW-1:0]   start_queue_i,
  input  logic                active_we_i,
  input  logic [QueueW-1:0]   active_queue_i,
  input  logic                active_value_i,

  // Stage 5 to the tables of `arrival` and of the reader: the frontier moved.
  output logic                frontier_we_o,
  output logic [QueueW-1:0]   frontier_queue_o,
  // By a piece of a context: the turn of that context. By another one: the other turn.
  output logic                frontier_turn_o,
  output logic [PosW-1:0]     frontier_o,

  // The name of the last line before the frontier, asked for in stage 5, there in stage 6.
  output logic [ContextW-1:0] look_context_o,
  output logic [RingW-1:0]    look_slot_o,
  input  logic [PtrW-1:0]     look_line_i,

  // Stage 6: queues that need no context any more.
  input  logic                coming_i,
  output logic                release_valid_o,
  output logic [QueueW-1:0]   release_queue_o,
  output logic [ContextW-1:0] release_context_o,
  output logic                release_turn_o,
  output logic [PosW-1:0]     release_frontier_o,
  output logic [PtrW-1:0]     release_tail_o,

  // Stage 6: the queue has new lines, of `advanced_to_o` in all; a pool line that nobody needs. Stage 7: a failed
  // queue.
  output logic                advanced_valid_o,
  output logic [QueueW-1:0]   advanced_queue_o,
  output logic [PosW-1:0]     advanced_to_o,
  output logic                advanced_shared_o,
  output logic                failed_valid_o,
  output logic [QueueW-1:0]   failed_queue_o,
  output logic [3:0]          failed_cause_o,
  output logic                orphan_valid_o,
  output logic [PtrW-1:0]     orphan_line_o,

  // Stage 6, for `hole_timeout`: a piece that went to a context, and what is there now.
  output logic                watch_valid_o,
  output logic [ContextW-1:0] watch_context_o,
  output logic [PosW-1:0]     watch_frontier_o,
  output logic [RingW:0]      watch_held_o,

  // Stage 6, for the counters.
  output logic                judged_valid_o,
  output logic                judged_dropped_o,
  output logic                judged_free_o,
  output logic                judged_inside_o,
  output logic                judged_expected_o,
  output logic [RingW+1:0]    judged_ahead_o,
  output logic                count_split_lines_o,

  // Stages 5 and 6, for those who must wait until a queue's pieces are through.
  output logic                valid5_o,
  output logic [QueueW-1:0]   queue5_o,
  output logic                valid6_o,
  output logic [QueueW-1:0]   queue6_o,

  // Lines with at least one byte beyond the frontier, of a context, at once.
  input  logic [ContextW-1:0] held_context_i,
  output logic [RingW:0]      held_lines_o,
  // Empties the count of a context that was given up with lines in it.
  input  logic                held_clear_i,
  input  logic [ContextW-1:0] held_clear_context_i
);

  localparam int unsigned AheadW = RingW + 2;
  // Lines that leave a context, less the one that came: from 1 less than none to a ring.
  localparam int unsigned NetW = RingW + 2;

  if (NumQueues < 1 || NumQueues > 1024) begin : g_bad_queues
    $fatal(1, "commit: NumQueues must be 1 to 1024");
  end

  logic fail6;

  // ---------------------------------------------------------------------------------------------- stage 4
  logic [PosW-1:0] frontier4;
  logic            active4;
  logic            advance5;
  logic            valid5_q;
  logic [QueueW-1:0] queue5_q;
  logic [PosW-1:0] frontier5_q, target5_q;
  logic [RingW:0]  pos5_q;

  table_ram #(.Width(PosW), .Depth(NumQueues)) u_frontier (
    .clk_i, .we_i(frontier_we_o), .waddr_i(frontier_queue_o), .wdata_i(frontier_o), .raddr_i(read_queue_i),
    .rdata_o(frontier4)
  );
  table_ram #(.Width(1), .Depth(NumQueues)) u_active (
    .clk_i, .we_i(active_we_i), .waddr_i(active_queue_i), .wdata_i(active_value_i), .raddr_i(read_queue_i),
    .rdata_o(active4)
  );

  // The frontier that stage 5 leaves, and that of the table; which of them holds is known at the end of the cycle.
  logic              same5;
  logic [PosW-1:0]   stays4;
  logic [AheadW-1:0] ahead_table4, ahead_stays4, ahead_moves4;

  assign same5        = valid5_q && queue5_q == queue_i;
  assign stays4       = same5 ? frontier5_q : frontier4;
  assign ahead_table4 = pos_i[AheadW-1:0] - frontier4[AheadW-1:0];
  assign ahead_stays4 = pos_i[AheadW-1:0] - frontier5_q[AheadW-1:0];
  assign ahead_moves4 = pos_i[AheadW-1:0] - target5_q[AheadW-1:0];

  // ---------------------------------------------------------------------------------------------- stage 5
  logic                alive5_q, complete5_q, clobber5_q, split5_q, place5_q, beyond5_q, not_free5_q;
  logic                no_context5_q, shared5_q, fast5_q, fresh5_q, took_line5_q, turn5_q;
  logic [ContextW-1:0] context5_q;
  logic [PtrW-1:0]     line5_q;
  logic [AheadW-1:0]   ahead5_q;
  logic                alive5;
  logic                valid6_q;
  logic [QueueW-1:0]   queue6_q;

  always_ff @(posedge clk_i) begin
    valid5_q      <= rst_ni && valid_i;
    queue5_q      <= queue_i;
    pos5_q        <= pos_i[RingW:0];
    target5_q     <= target_i;
    complete5_q   <= complete_i;
    clobber5_q    <= clobber_i;
    split5_q      <= split_i;
    place5_q      <= place_i;
    beyond5_q     <= beyond_i;
    not_free5_q   <= not_free_i;
    no_context5_q <= no_context_i;
    shared5_q     <= shared_i;
    fast5_q       <= fast_i;
    fresh5_q      <= fresh_i;
    context5_q    <= context_i;
    took_line5_q  <= took_line_i;
    line5_q       <= line_i;
    turn5_q       <= turn_i;
    // A failure is in the table two cycles after it is found.
    alive5_q      <= active4 && !dropped_i && !(fail6 && queue6_q == queue_i)
                     && !(failed_valid_o && failed_queue_o == queue_i);
    frontier5_q   <= (same5 && advance5) ? target5_q : stays4;
    // As sums of products: a choice would be moved in front of the subtractions, and the latest of all is `advance5`.
    ahead5_q      <= ({AheadW{!same5}} & ahead_table4) | ({AheadW{same5 && !advance5}} & ahead_stays4)
                     | ({AheadW{same5 && advance5}} & ahead_moves4);
  end

  assign alive5   = alive5_q && !(fail6 && queue6_q == queue5_q);
  assign advance5 = valid5_q && alive5 && complete5_q && place5_q && !not_free5_q && ahead5_q == '0;

  // Lines that the frontier passes if it moves; a line that is complete and placed alone is one of them.
  logic [RingW:0]         passed5;
  logic signed [NetW-1:0] net5;
  logic                   is_far5;
  assign passed5 = target5_q[RingW:0] - pos5_q[RingW:0];
  assign net5    = signed'(({NetW{advance5}} & (NetW'(passed5) - NetW'(took_line5_q)))
                          | {NetW{!advance5 && took_line5_q}});
  assign is_far5 = beyond5_q || (!ahead5_q[AheadW-1] && ahead5_q[RingW:0] >= {1'b0, span_lines_i});

  assign frontier_we_o    = advance5 || start_valid_i;
  assign frontier_queue_o = start_valid_i ? start_queue_i : queue5_q;
  assign frontier_turn_o  = !start_valid_i && (turn5_q ^ fast5_q);
  assign frontier_o       = start_valid_i ? '0 : target5_q;
  assign look_context_o   = context5_q;
  assign look_slot_o      = (target5_q[RingW-1:0] - 1'b1) & ring_mask_i;
  assign valid5_o         = valid5_q;
  assign queue5_o         = queue5_q;
  assign valid6_o         = valid6_q;
  assign queue6_o         = queue6_q;

  // ---------------------------------------------------------------------------------------------- stage 6
  logic                alive6_q, advance6_q, clobber6_q, split6_q, place6_q, not_free6_q, behind6_q, far6_q, bad6_q;
  logic                live6_q, takes6_q;
  logic                no_context6_q, expected6_q, shared6_q, fast6_q, fresh6_q, took_line6_q, turn6_q, complete6_q;
  logic [PosW-1:0]     target6_q, frontier6_q;
  logic [RingW:0]      passed6_q;
  logic signed [NetW-1:0] net6_q;
  logic [ContextW-1:0] context6_q;
  logic [PtrW-1:0]     line6_q;
  logic [AheadW-1:0]   ahead6_q;

  always_ff @(posedge clk_i) begin
    valid6_q      <= rst_ni && valid5_q;
    queue6_q      <= queue5_q;
    alive6_q      <= alive5;
    advance6_q    <= advance5;
    live6_q       <= rst_ni && valid5_q && alive5;
    takes6_q      <= shared5_q && advance5;
    complete6_q   <= complete5_q;
    clobber6_q    <= clobber5_q;
    split6_q      <= split5_q;
    expected6_q   <= expected_i;
    place6_q      <= place5_q;
    not_free6_q   <= not_free5_q;
    behind6_q     <= ahead5_q[AheadW-1];
    far6_q        <= is_far5;
    bad6_q        <= not_free5_q || ahead5_q[AheadW-1] || is_far5 || no_context5_q || clobber5_q;
    no_context6_q <= no_context5_q;
    shared6_q     <= shared5_q;
    fast6_q       <= fast5_q;
    fresh6_q      <= fresh5_q;
    context6_q    <= context5_q;
    took_line6_q  <= took_line5_q;
    line6_q       <= line5_q;
    turn6_q       <= turn5_q;
    target6_q     <= target5_q;
    passed6_q     <= passed5;
    net6_q        <= net5;
    frontier6_q   <= frontier5_q;
    ahead6_q      <= beyond5_q ? '1 : ahead5_q;
  end

  logic           lacks_pool6, near_is_less6, is_overrun6, is_far6;
  logic [3:0]     cause6;

  less_than #(.Width(RingW + 1)) u_near (
    .left_i(shared_near_i[RingW:0]), .right_i(passed6_q), .is_less_o(near_is_less6)
  );
  assign lacks_pool6 = takes6_q
                       && (shared_near_i < 0 || (shared_near_i[NearW-2:RingW+1] == '0 && near_is_less6));
  assign is_overrun6 = not_free6_q || (behind6_q && !far6_q && !shared6_q);
  assign is_far6     = far6_q || behind6_q;

  always_comb begin
    cause6 = nic_pkg::QueueStatusCauseNone;
    if (is_overrun6)        cause6 = nic_pkg::QueueStatusCauseOverrun;
    else if (is_far6)       cause6 = nic_pkg::QueueStatusCauseSpanExceeded;
    else if (no_context6_q) cause6 = nic_pkg::QueueStatusCauseNoContext;
    else if (clobber6_q)    cause6 = nic_pkg::QueueStatusCauseClobber;
    else if (lacks_pool6)   cause6 = nic_pkg::QueueStatusCauseNoPool;
  end

  assign fail6 = live6_q && (bad6_q || lacks_pool6);
  always_ff @(posedge clk_i) begin
    failed_valid_o <= rst_ni && fail6;
    failed_queue_o <= queue6_q;
    failed_cause_o <= cause6;
  end

  assign advanced_valid_o  = valid6_q && advance6_q;
  assign advanced_queue_o  = queue6_q;
  assign advanced_to_o     = target6_q;
  assign advanced_shared_o = shared6_q && !fail6;
  assign shared_take_o     = takes6_q;
  assign shared_lines_o    = passed6_q;
  // A whole line that came for a queue that had failed meanwhile lies in no context, so it goes back from here.
  assign orphan_valid_o    = valid6_q && fast6_q && place6_q && took_line6_q && !advance6_q;
  assign orphan_line_o     = line6_q;

  assign judged_valid_o      = valid6_q;
  assign judged_dropped_o    = !alive6_q;
  assign judged_free_o       = alive6_q && !is_overrun6;
  assign judged_inside_o     = alive6_q && !is_overrun6 && !is_far6;
  assign judged_expected_o   = expected6_q;
  assign judged_ahead_o      = ahead6_q;
  assign count_split_lines_o = valid6_q && alive6_q && !fail6 && split6_q && complete6_q;

  // Lines of each context from the frontier on that have at least one byte.
  (* ram_style = "distributed" *)
  logic [RingW:0] held [NumContexts];
  logic [RingW:0] held6, held6_d;
  logic           in_context6, is_empty6;

  assign in_context6 = valid6_q && place6_q && !fast6_q;
  assign held6       = fresh6_q ? '0 : held[context6_q];
  assign held6_d     = held6 - net6_q[RingW:0];
  // The count that is left is none: seen without making it.
  assign is_empty6   = signed'({1'b0, held6}) == net6_q;
  assign held_lines_o = held[held_context_i];

  always_ff @(posedge clk_i) begin
    if (in_context6) held[context6_q] <= held6_d;
    else if (held_clear_i) held[held_clear_context_i] <= '0;
  end

  assign watch_valid_o    = in_context6 && alive6_q && !fail6 && !release_valid_o;
  assign watch_context_o  = context6_q;
  assign watch_frontier_o = advance6_q ? target6_q : frontier6_q;
  assign watch_held_o     = held6_d;

  assign release_valid_o    = in_context6 && advance6_q && is_empty6 && !coming_i && !fail6;
  assign release_queue_o    = queue6_q;
  assign release_context_o  = context6_q;
  assign release_turn_o     = !turn6_q;
  assign release_frontier_o = target6_q;
  assign release_tail_o     = look_line_i;

`ifndef SYNTHESIS
`ifndef FORMAL
  initial for (int i = 0; i < int'(NumContexts); i++) held[i] = '0;
`endif
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_frontier_moves_on : assert (!(valid6_q && advance6_q) || passed6_q != '0);
      a_within_a_ring     : assert (!(valid6_q && advance6_q) || passed6_q <= {1'b0, ring_mask_i} + 1'b1);
      a_held_not_negative : assert (!(in_context6 && advance6_q) || signed'({1'b0, held6}) >= net6_q);
      a_one_judgement     : assert (bad6_q == (is_overrun6 || is_far6 || no_context6_q || clobber6_q));
      a_start_alone       : assert (!(start_valid_i && advance5));
    end
  end
`endif

endmodule

`default_nettype wire

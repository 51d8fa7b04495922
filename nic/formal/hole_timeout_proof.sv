// What is proved of nic/rtl/mmio/hole_timeout.sv, for every length of run, by k-induction
// (nic/formal/hole_timeout.sby), of any context, whatever the others do:
//   - it is told to be too old only if a hole stood in it, whose queue has a time-out, and that long: since the first
//     cycle in which that very byte was missing with data beyond it;
//   - it is told once: not again before another byte is missing there;
//   - it is not told once the hole was closed, or the context given back, for 3 cycles; and it is told of the queue
//     whose piece found the hole;
//   - a hole is counted when it is found, and one that stands is not counted again; what is told stands until it is
//     taken;
//   - a reset forgets every hole, in whatever cycle it comes and whatever the tables hold: none is told or known behind
//     it.
// How soon it is told is only simulated: writes go before looks.
//
// Assumed: a queue is started before its first piece, and not in a cycle of one; there is room for a context that is
// given back; now is less than 2^46 ns, and so is a time-out, or it is one for ever. All else is free, reset in the
// middle of traffic included, but that time goes on.
//
// Proved for 4 contexts, 2 queues, positions of 4 bits and times of 46. A context enters by addresses of tables and
// comparisons for equality, a queue by an address; of a position only whether it changed is looked at.

`default_nettype none

module hole_timeout_proof #(
  localparam int unsigned NumQueues = 2,
  localparam int unsigned NumContexts = 4,
  localparam int unsigned PosW = 4,
  localparam int unsigned HeldW = 3,
  localparam int unsigned QueueW = 1,
  localparam int unsigned ContextW = 2
) (
  input logic                clk_i,
  input logic                rst_ni,
  input logic [47:0]         now_ns_i,
  input logic                start_valid_i,
  input logic [QueueW-1:0]   start_queue_i,
  input logic [63:0]         start_timeout_ns_i,
  input logic                piece_valid_i,
  input logic [ContextW-1:0] piece_context_i,
  input logic [QueueW-1:0]   piece_queue_i,
  input logic [PosW-1:0]     piece_frontier_i,
  input logic [HeldW-1:0]    piece_held_i,
  input logic                line_begun_i,
  input logic [5:0]          line_missing_i,
  input logic                line_gap_i,
  input logic                forget_valid_i,
  input logic [ContextW-1:0] forget_context_i,
  input logic                failed_ready_i,
  // The context that is followed: any, but always the same.
  input logic [ContextW-1:0] place_i
);

  logic              failed_valid, count_holes, count_timeouts;
  logic [QueueW-1:0] failed_queue;

  hole_timeout #(.NumQueues(NumQueues), .NumContexts(NumContexts), .PosW(PosW), .HeldW(HeldW)) dut (
    .clk_i, .rst_ni, .now_ns_i, .start_valid_i, .start_queue_i, .start_timeout_ns_i, .piece_valid_i, .piece_context_i,
    .piece_queue_i, .piece_frontier_i, .piece_held_i, .line_begun_i, .line_missing_i, .line_gap_i, .forget_valid_i,
    .forget_context_i, .failed_valid_o(failed_valid), .failed_ready_i, .failed_queue_o(failed_queue),
    .count_holes_o(count_holes), .count_hole_timeouts_o(count_timeouts)
  );

  // ---------------------------------------------------------------------------------------------- kept beside it
  logic                       started_q = 1'b0;
  logic [ContextW-1:0]        place_q;
  logic [47:0]                now_q, timeout7_q, timeout8_q;
  logic [NumQueues-1:0]       begun_q;
  logic [NumQueues-1:0][47:0] timeouts_q;

  // The piece of the followed context, a cycle after it came, and two.
  logic              here7_q, here8_q, hole7, hole8_q, changes, forgets;
  logic [QueueW-1:0] queue7_q, queue8_q;
  logic [PosW-1:0]   frontier7_q, frontier8_q;
  logic [HeldW-1:0]  held7_q;
  logic [5:0]        missing8_q;
  // The hole that is known of; what becomes of its time, and two cycles later.
  logic              hole_q;
  logic [PosW-1:0]   hole_frontier_q;
  logic [5:0]        hole_missing_q;
  logic              event1_q, event2_q, arms1_q, arms2_q, stands_q;
  logic [47:0]       due1_q, due2_q, due_q;
  logic [QueueW-1:0] owner1_q, owner2_q, owner_q;
  logic              tells;
  logic              written1_q, written2_q;

  // Data lie beyond the first missing byte: in its own line, or in another that is held.
  assign hole7   = here7_q && ((line_begun_i && line_gap_i) || held7_q > HeldW'(line_begun_i));
  assign changes = here8_q && {hole8_q, hole8_q ? frontier8_q : PosW'(0), hole8_q ? missing8_q : 6'd0}
                              != {hole_q, hole_q ? hole_frontier_q : PosW'(0), hole_q ? hole_missing_q : 6'd0};
  assign forgets = dut.forgets8 && !dut.valid8_q && dut.forget_context == place_i;
  assign tells   = dut.tells2 && dut.scan2_q == place_i;

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    place_q   <= place_i;
    now_q     <= now_ns_i;
    assume (started_q ? place_i == place_q && now_ns_i >= now_q : !rst_ni);
    assume (!now_ns_i[47]);
    if (rst_ni && forget_valid_i) assume (dut.forget_ready);
    if (start_valid_i) assume (start_timeout_ns_i[63:47] != '0 || start_timeout_ns_i[47:46] == '0);
    assume (now_ns_i[46] == 1'b0);
    if (start_valid_i) begin
      begun_q[start_queue_i]    <= 1'b1;
      timeouts_q[start_queue_i] <= (start_timeout_ns_i[63:47] != '0) ? '0 : start_timeout_ns_i[47:0];
    end
    if (!started_q) begun_q <= '0;
    if (piece_valid_i) assume (begun_q[piece_queue_i] && !(start_valid_i && start_queue_i == piece_queue_i));

    here7_q     <= rst_ni && piece_valid_i && piece_context_i == place_i;
    timeout7_q  <= timeouts_q[piece_queue_i];
    timeout8_q  <= timeout7_q;
    queue7_q    <= piece_queue_i;
    frontier7_q <= piece_frontier_i;
    held7_q     <= piece_held_i;
    here8_q     <= rst_ni && here7_q;
    queue8_q    <= queue7_q;
    hole8_q     <= hole7;
    frontier8_q <= frontier7_q;
    missing8_q  <= line_begun_i ? line_missing_i : '0;
    if (here8_q || forgets) begin
      hole_q          <= here8_q && hole8_q;
      hole_frontier_q <= frontier8_q;
      hole_missing_q  <= missing8_q;
    end
    event1_q <= rst_ni && (changes || forgets);
    arms1_q  <= changes && hole8_q && timeout8_q != '0;
    due1_q   <= now_ns_i + timeout8_q;
    owner1_q <= queue8_q;
    event2_q <= rst_ni && event1_q;
    arms2_q  <= arms1_q;
    due2_q   <= due1_q;
    owner2_q <= owner1_q;
    if (event2_q) begin
      stands_q <= arms2_q;
      due_q    <= due2_q;
      owner_q  <= owner2_q;
    end else if (tells) begin
      stands_q <= 1'b0;
    end
    if (!rst_ni) {stands_q, hole_q} <= '0;
    written1_q <= event2_q || tells;
    written2_q <= written1_q;
  end

  logic              waited_q = 1'b0;
  logic              told_q = 1'b0;
  logic              judged_q = 1'b0;
  logic              found_q;
  logic [QueueW-1:0] waited_queue_q, told_owner_q;
  always_ff @(posedge clk_i) begin
    waited_q       <= rst_ni && failed_valid && !failed_ready_i;
    waited_queue_q <= failed_queue;
    told_q         <= rst_ni && tells;
    judged_q       <= rst_ni && here8_q;
    found_q        <= changes && hole8_q;
    told_owner_q   <= owner_q;
    if (started_q && rst_ni) begin
      if (waited_q) assert (failed_valid && failed_queue == waited_queue_q);
      if (judged_q) assert (count_holes == found_q);
      if (told_q) assert (failed_valid && failed_queue == told_owner_q && count_timeouts);
    end
  end

  // At first nothing is under way. Of the contexts the reset that a run begins with makes nothing known.
  always_ff @(posedge clk_i) begin
    if (!started_q) begin
      assume (!dut.valid7_q && !dut.valid8_q && !dut.forgets8);
      assume (!dut.writes9_q && !dut.writes10_q && !dut.late2_q && !here7_q && !here8_q && !event1_q && !event2_q);
    end
  end

  always_ff @(posedge clk_i) begin
    if (started_q) begin
      if (rst_ni && tells) assert (stands_q && now_ns_i >= due_q);
      // ------------------------------------------------------------ invariants
      assert (dut.armed_q[place_i] == stands_q);
      if (stands_q) assert (dut.due[place_i] == due_q && dut.owner[place_i] == owner_q);
      assert (dut.is_hole_q[place_i] == hole_q);
      if (hole_q) assert (dut.where[place_i] == {hole_frontier_q, hole_missing_q});
      assert (here7_q == (dut.valid7_q && dut.context7_q == place_i));
      if (here7_q) assert (dut.queue7_q == queue7_q && dut.timeout7 == timeout7_q);
      if (here7_q) assert (dut.frontier7_q == frontier7_q && dut.held7_q == held7_q);
      assert (here8_q == (dut.valid8_q && dut.context8_q == place_i));
      if (here8_q) begin
        assert (dut.queue8_q == queue8_q && dut.timeout8_q == timeout8_q && !timeout8_q[47] && !timeout8_q[46]);
        assert (dut.found8_q == {hole8_q, hole8_q ? frontier8_q : PosW'(0), hole8_q ? missing8_q : 6'd0});
      end
      if (here7_q) assert (!timeout7_q[47] && !timeout7_q[46]);
      assert (event1_q == (dut.writes9_q && dut.context9_q == place_i));
      if (event1_q) assert (dut.arms9_q == arms1_q && (!arms1_q || dut.queue9_q == owner1_q));
      if (event1_q && arms1_q) assert (dut.due9 == due1_q);
      assert (event2_q == (dut.writes10_q && dut.context10_q == place_i));
      if (event2_q) assert (dut.arms10_q == arms2_q && (!arms2_q || dut.queue10_q == owner2_q));
      if (event2_q && arms2_q) assert (dut.due10_q == due2_q);
      for (int unsigned q = 0; q < NumQueues; q++) begin
        if (begun_q[q]) assert (dut.u_timeout.mem[q] == timeouts_q[q] && timeouts_q[q][47:46] == '0);
      end
      // What the scan read is what stands, unless it was written since.
      if (dut.scan1_q == place_i && !dut.written1_q) begin
        assert (dut.armed1_q == stands_q && (!stands_q || (dut.due1_q == due_q && dut.owner1_q == owner_q)));
      end
      if (dut.scan2_q == place_i && !dut.written2_q && dut.late2_q) begin
        assert (stands_q && now_ns_i >= due_q && dut.owner2_q == owner_q);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      cover (tells && owner_q == 1'b1);
      cover (told_q && event2_q && arms2_q);
      cover (forgets && stands_q);
    end
  end

endmodule

`default_nettype wire

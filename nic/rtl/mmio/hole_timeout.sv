// Holes and how long they may stand.
//
// A hole is a missing byte with data beyond it. Each missing byte at a frontier is a hole of its own, counted once, and
// its time starts when it is first seen: a queue under steady disorder has many holes and no old one. A message whose
// front has arrived and whose rest has not is not a hole; its sender may be slow (docs/design.md, decision 4).
//
// Guarantees
//   - A hole that stands for a queue's time-out is told once, at most NumContexts + 8 cycles late.
//   - Every missing byte that is at the frontier when a piece has passed the unit, with data beyond it, is counted.
//     Of pieces that pass in adjacent cycles the later one may already be seen with the earlier.
//   - A reset forgets every hole: what stood in a context before it is neither known nor timed any more.
// Limits: time-outs of 2^47 ns (39 hours) and more are for ever.
// Cost: NumContexts x (PosW + 54) bits of LUTRAM and 2 x NumContexts registers, a table of NumQueues x 48 bits.
// Twin: nic/model/src/mmio/hole_timeout.rs.

`default_nettype none

module hole_timeout #(
  parameter int unsigned NumQueues = 64,
  parameter int unsigned NumContexts = 16,
  // Bits of a position.
  parameter int unsigned PosW = 8,
  // Bits of a count of lines in a context.
  parameter int unsigned HeldW = 6,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned ContextW = $clog2(NumContexts)
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [47:0]         now_ns_i,

  // The time-out of a queue, 0: for ever.
  input  logic                start_valid_i,
  input  logic [QueueW-1:0]   start_queue_i,
  input  logic [63:0]         start_timeout_ns_i,

  // A piece has passed the unit that went to a context: where the frontier is now, lines held from it on.
  input  logic                piece_valid_i,
  input  logic [ContextW-1:0] piece_context_i,
  input  logic [QueueW-1:0]   piece_queue_i,
  input  logic [PosW-1:0]     piece_frontier_i,
  input  logic [HeldW-1:0]    piece_held_i,
  // One cycle later: whether the frontier's line has any byte, the index of its first missing byte, and whether it has
  // bytes beyond that.
  input  logic                line_begun_i,
  input  logic [5:0]          line_missing_i,
  input  logic                line_gap_i,

  // A context is given back.
  input  logic                forget_valid_i,
  input  logic [ContextW-1:0] forget_context_i,

  // A hole is too old.
  output logic                failed_valid_o,
  input  logic                failed_ready_i,
  output logic [QueueW-1:0]   failed_queue_o,

  output logic                count_holes_o,
  output logic                count_hole_timeouts_o
);

  typedef struct packed {
    logic            is_hole;
    logic [PosW-1:0] frontier;
    logic [5:0]      byte_index;
  } hole_t;

  // Where the hole of a context is. Whether it has one, and one with a time-out, is what a reset ends, so that is in
  // registers.
  (* ram_style = "distributed" *) logic [PosW+5:0]    where [NumContexts];
  (* ram_style = "distributed" *) logic [QueueW-1:0]  owner [NumContexts];
  (* ram_style = "distributed" *) logic [47:0]        due [NumContexts];
  logic [(1 << ContextW)-1:0] is_hole_q, armed_q;

  // ---------------------------------------------------------------------------------------------- stage 7: is there a
  // hole?
  logic                valid7_q;
  logic [ContextW-1:0] context7_q;
  logic [QueueW-1:0]   queue7_q;
  logic [PosW-1:0]     frontier7_q;
  logic [HeldW-1:0]    held7_q;
  logic [47:0]         timeout7, timeout_in;
  logic                is_beyond7;
  hole_t               found7;

  assign timeout_in = (start_timeout_ns_i[63:47] != '0) ? '0 : start_timeout_ns_i[47:0];
  table_ram #(.Width(48), .Depth(NumQueues)) u_timeout (
    .clk_i, .we_i(start_valid_i), .waddr_i(start_queue_i), .wdata_i(timeout_in), .raddr_i(piece_queue_i),
    .rdata_o(timeout7)
  );

  always_ff @(posedge clk_i) begin
    valid7_q    <= rst_ni && piece_valid_i;
    context7_q  <= piece_context_i;
    queue7_q    <= piece_queue_i;
    frontier7_q <= piece_frontier_i;
    held7_q     <= piece_held_i;
  end

  assign is_beyond7 = line_begun_i ? held7_q > HeldW'(1) : held7_q != '0;
  always_comb begin
    found7 = '0;
    if (is_beyond7 || (line_begun_i && line_gap_i)) begin
      found7 = '{is_hole: 1'b1, frontier: frontier7_q, byte_index: line_begun_i ? line_missing_i : '0};
    end
  end

  // ---------------------------------------------------------------------------------------------- stage 8: another
  // one? A context that was given back is forgotten in a cycle in which no piece is here. There is one for each: a
  // piece after which a context is given back is none of this module's, and while control gives contexts back there are
  // no pieces.
  logic                valid8_q, forgets8, forget_ready, changed8;
  logic [ContextW-1:0] context8_q, context8, forget_context;
  logic [QueueW-1:0]   queue8_q;
  logic [47:0]         timeout8_q;
  hole_t               found8_q, known8;

  fifo #(.Width(ContextW), .Depth(16)) u_forget (
    .clk_i, .rst_ni, .push_valid_i(forget_valid_i), .push_ready_o(forget_ready), .push_data_i(forget_context_i),
    .pop_valid_o(forgets8), .pop_ready_i(!valid8_q), .pop_data_o(forget_context), .count_o()
  );

  always_ff @(posedge clk_i) begin
    valid8_q   <= rst_ni && valid7_q;
    context8_q <= context7_q;
    queue8_q   <= queue7_q;
    found8_q   <= found7;
    timeout8_q <= timeout7;
  end

  assign context8 = valid8_q ? context8_q : forget_context;
  assign known8   = is_hole_q[context8_q] ? {1'b1, where[context8_q]} : '0;
  assign changed8 = valid8_q && found8_q != known8;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) is_hole_q <= '0;
    else if (valid8_q || forgets8) is_hole_q[context8] <= valid8_q && found8_q.is_hole;
    if (valid8_q) where[context8] <= {found8_q.frontier, found8_q.byte_index};
  end

  // ---------------------------------------------------------------------------------------------- stages 9 and 10
  // Its time starts. The sum is made in limbs of 8 bits, and their carries a cycle later.
  localparam int unsigned Limbs = 6;
  logic                   writes9_q, arms9_q, writes10_q, arms10_q;
  logic [ContextW-1:0]    context9_q, context10_q;
  logic [QueueW-1:0]      queue9_q, queue10_q;
  logic [Limbs-1:0][8:0]  sums9_q;
  logic [Limbs:0]         carries9;
  logic [47:0]            due9, due10_q;

  always_comb begin
    carries9 = '0;
    due9     = '0;
    for (int i = 0; i < int'(Limbs); i++) begin
      carries9[i+1] = sums9_q[i][8] || ((&sums9_q[i][7:0]) && carries9[i]);
      due9[8*i +: 8] = sums9_q[i][7:0] + 8'(carries9[i]);
    end
  end

  always_ff @(posedge clk_i) begin
    writes9_q     <= rst_ni && (changed8 || (forgets8 && !valid8_q));
    arms9_q       <= valid8_q && found8_q.is_hole && timeout8_q != '0;
    context9_q    <= context8;
    queue9_q      <= queue8_q;
    for (int i = 0; i < int'(Limbs); i++) begin
      sums9_q[i] <= 9'(now_ns_i[8*i +: 8]) + 9'(timeout8_q[8*i +: 8]);
    end
    count_holes_o <= rst_ni && changed8 && found8_q.is_hole;

    writes10_q    <= rst_ni && writes9_q;
    arms10_q      <= arms9_q;
    context10_q   <= context9_q;
    queue10_q     <= queue9_q;
    due10_q       <= due9;
  end

  // ---------------------------------------------------------------------------------------------- is one too old?
  // One context is looked at in every cycle, and judged two cycles later, unless it was written meanwhile: then another
  // time.
  logic [ContextW-1:0] scan_q, scan1_q, scan2_q;
  logic                armed1_q, written1_q, late2_q, written2_q, tells2;
  logic [47:0]         due1_q;
  logic [QueueW-1:0]   owner1_q, owner2_q;
  logic                we;
  logic [ContextW-1:0] written;

  assign tells2  = late2_q && !written2_q && !writes10_q && (!failed_valid_o || failed_ready_i);
  assign we      = writes10_q || tells2;
  assign written = writes10_q ? context10_q : scan2_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) armed_q <= '0;
    else if (we) armed_q[written] <= writes10_q && arms10_q;
    if (writes10_q) begin
      due[context10_q]   <= due10_q;
      owner[context10_q] <= queue10_q;
    end

    armed1_q   <= rst_ni && armed_q[scan_q];
    due1_q     <= due[scan_q];
    owner1_q   <= owner[scan_q];
    scan1_q    <= scan_q;
    written1_q <= we && written == scan_q;

    late2_q    <= rst_ni && armed1_q && now_ns_i >= due1_q;
    owner2_q   <= owner1_q;
    scan2_q    <= scan1_q;
    written2_q <= written1_q || (we && written == scan1_q);

    if (!rst_ni) begin
      scan_q                <= '0;
      failed_valid_o        <= 1'b0;
      count_hole_timeouts_o <= 1'b0;
    end else begin
      scan_q                <= (scan_q == ContextW'(NumContexts - 1)) ? '0 : scan_q + 1'b1;
      failed_valid_o        <= tells2 || (failed_valid_o && !failed_ready_i);
      count_hole_timeouts_o <= tells2;
    end
    if (!failed_valid_o || failed_ready_i) failed_queue_o <= owner2_q;
  end

`ifndef SYNTHESIS
  initial begin
    for (int i = 0; i < int'(NumContexts); i++) begin
      where[i] = '0;
      owner[i] = '0;
      due[i]   = '0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (rst_ni) a_room_to_forget : assert (!forget_valid_i || forget_ready);
  end
`endif

endmodule

`default_nettype wire

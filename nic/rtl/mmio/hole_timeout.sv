// Holes and how long they may stand.
//
// A hole is a missing byte with data beyond it. Each missing byte at a frontier is a hole of its own, counted once, and
// its time starts when it is first seen: a queue under steady disorder has many holes and no old one. A message whose
// front has arrived and whose rest has not is not a hole; its sender may be slow (DESIGN decision 4).
//
// Guarantees
//   - A hole that stands for a queue's time-out is told once, at most NumContexts + 4 cycles late.
//   - Every missing byte that is at the frontier when a piece has passed the unit, with data beyond it, is counted.
//     Of pieces that pass in adjacent cycles the later one may already be seen with the earlier.
// Limits: time-outs of 2^47 ns (39 hours) and more are for ever.
// Cost: NumContexts x (PosW + 56) bits of LUTRAM, a table of NumQueues x 48 bits.
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
  // In the same cycle: whether the frontier's line has any byte. One cycle later: the index of its first missing byte,
  // and whether it has bytes beyond that.
  input  logic                piece_begun_i,
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

  (* ram_style = "distributed" *) hole_t              hole [NumContexts];
  (* ram_style = "distributed" *) logic [QueueW-1:0]  owner [NumContexts];
  (* ram_style = "distributed" *) logic [47:0]        due [NumContexts];
  (* ram_style = "distributed" *) logic               armed [NumContexts];

  logic [47:0] timeout7;
  logic [47:0] timeout_in;
  assign timeout_in = (start_timeout_ns_i[63:47] != '0) ? '0 : start_timeout_ns_i[47:0];
  table_ram #(.Width(48), .Depth(NumQueues)) u_timeout (
    .clk_i, .we_i(start_valid_i), .waddr_i(start_queue_i), .wdata_i(timeout_in), .raddr_i(piece_queue_i),
    .rdata_o(timeout7)
  );

  // Stage 7: is there a hole, and is it another one than before?
  logic                valid7_q, begun7_q, beyond7_q;
  logic [ContextW-1:0] context7_q;
  logic [QueueW-1:0]   queue7_q;
  logic [PosW-1:0]     frontier7_q;
  hole_t               found7, known7;
  logic                changed7;

  always_ff @(posedge clk_i) begin
    valid7_q    <= rst_ni && piece_valid_i;
    context7_q  <= piece_context_i;
    queue7_q    <= piece_queue_i;
    frontier7_q <= piece_frontier_i;
    begun7_q    <= piece_begun_i;
    beyond7_q   <= piece_held_i > HeldW'(piece_begun_i);
  end

  always_comb begin
    found7 = '0;
    if (beyond7_q || (begun7_q && line_gap_i)) begin
      found7 = '{is_hole: 1'b1, frontier: frontier7_q, byte_index: begun7_q ? line_missing_i : '0};
    end
  end
  assign known7   = hole[context7_q];
  assign changed7 = valid7_q && found7 != known7;

  // Stage 8: its time starts.
  logic                valid8_q, arms8_q;
  logic [ContextW-1:0] context8_q;
  logic [QueueW-1:0]   queue8_q;
  logic [47:0]         due8_q;

  always_ff @(posedge clk_i) begin
    valid8_q      <= rst_ni && changed7;
    arms8_q       <= found7.is_hole && timeout7 != '0;
    context8_q    <= context7_q;
    queue8_q      <= queue7_q;
    due8_q        <= now_ns_i + timeout7;
    count_holes_o <= rst_ni && changed7 && found7.is_hole;
  end

  // One context is looked at in every cycle.
  logic [ContextW-1:0] scan_q;
  logic                late, told;
  logic                forget_q, write_hole;

  assign late = armed[scan_q] && now_ns_i >= due[scan_q];
  assign told = failed_valid_o && failed_ready_i;
  // A context that is given back is forgotten when no piece needs the port; pieces of it are none until it is taken
  // anew.
  logic [ContextW-1:0] forget_context;
  logic                forget_ready;
  fifo #(.Width(ContextW), .Depth(16)) u_forget (
    .clk_i, .rst_ni, .push_valid_i(forget_valid_i), .push_ready_o(forget_ready), .push_data_i(forget_context_i),
    .pop_valid_o(forget_q), .pop_ready_i(!changed7 && !valid8_q), .pop_data_o(forget_context), .count_o()
  );
  assign write_hole = changed7 || (forget_q && !valid8_q);

  always_ff @(posedge clk_i) begin
    if (write_hole) hole[changed7 ? context7_q : forget_context] <= changed7 ? found7 : '0;
    if (valid8_q) begin
      armed[context8_q] <= arms8_q;
      due[context8_q]   <= due8_q;
      owner[context8_q] <= queue8_q;
    end else if (forget_q && !changed7) begin
      armed[forget_context] <= 1'b0;
    end else if (late && (!failed_valid_o || told)) begin
      armed[scan_q] <= 1'b0;
    end
    if (!rst_ni) begin
      scan_q                <= '0;
      failed_valid_o        <= 1'b0;
      count_hole_timeouts_o <= 1'b0;
    end else begin
      scan_q         <= (scan_q == ContextW'(NumContexts - 1)) ? '0 : scan_q + 1'b1;
      failed_valid_o <= (failed_valid_o && !failed_ready_i)
                        || (late && !valid8_q && !(forget_q && !changed7));
      count_hole_timeouts_o <= late && (!failed_valid_o || told) && !valid8_q && !(forget_q && !changed7);
    end
    if (!failed_valid_o || told) failed_queue_o <= owner[scan_q];
  end

`ifndef SYNTHESIS
  initial begin
    for (int i = 0; i < int'(NumContexts); i++) begin
      hole[i]  = '0;
      owner[i] = '0;
      due[i]   = '0;
      armed[i] = 1'b0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (rst_ni) a_room_to_forget : assert (!forget_valid_i || forget_ready);
  end
`endif

endmodule

`default_nettype wire

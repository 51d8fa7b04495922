// The freed lines of two engines as one stream of absolute counts, of which only the newest of a queue matters.
//
// Each engine may say in every cycle that a queue has freed lines; what takes them from here looks at one a cycle. A
// count that is absolute says all that an older one of its queue said, so a queue waits at most once, with its newest.
//
// Guarantees
//   - The last count of a queue is given, after all older ones of it that are given. No count is given that was not
//     told. Nothing overflows, whatever the engines tell.
//   - Engines take turns when both have something; a queue waits for at most the other queues once.
//   - A start of a queue drops what waits of it.
// Limits: after reset nothing waits, whatever the tables hold.
// Latency: 2 cycles when nothing waits. Cost: NumQueues x (32 + QueueW) bits of LUTRAM, 2 registers a queue.
// Twin: nic/model/src/mmio/credit_return.rs coalesces in the same way.

`default_nettype none

module line_pair_credits #(
  // Queues of both engines, even, 4 to 1024.
  parameter int unsigned NumQueues = 64,
  localparam int unsigned QueueW = $clog2(NumQueues),
  localparam int unsigned Each = NumQueues / 2,
  localparam int unsigned LocalW = $clog2(Each)
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  input  logic                   start_valid_i,
  input  logic [QueueW-1:0]      start_queue_i,

  // From the engines.
  input  logic [1:0]             told_valid_i,
  input  logic [1:0][LocalW-1:0] told_queue_i,
  input  logic [1:0][31:0]       told_lines_i,

  output logic                   freed_valid_o,
  output logic [QueueW-1:0]      freed_queue_o,
  output logic [31:0]            freed_lines_o,

  // Nothing waits.
  output logic                   is_empty_o
);

  if (NumQueues < 4 || NumQueues > nic_pkg::MaxQueues || NumQueues % 2 != 0) begin : g_bad_queues
    $fatal(1, "line_pair_credits: NumQueues must be even, 4 to 1024");
  end

  localparam int unsigned Places = 1 << LocalW;

  logic [1:0]             next_valid, next_told, pop, give_q, told_q;
  logic [1:0][LocalW-1:0] next_queue, give_queue_q, told_queue_q;
  logic [1:0][31:0]       next_lines, give_lines_q, told_lines_q;
  logic                   turn_q;

  // One of them a cycle, in turns where both have something.
  assign pop[0] = next_valid[0] && (!next_valid[1] || !turn_q);
  assign pop[1] = next_valid[1] && (!next_valid[0] || turn_q);

  for (genvar e = 0; e < 2; e++) begin : g_engine
    // A queue stands in the FIFO while `stands` has its bit; what it has to say was not dropped while `says` has it.
    logic [Each-1:0] stands_q, says_q, told_mask, pop_mask, drop_mask;
    logic            enter;
    (* ram_style = "distributed" *)
    logic [31:0]     lines [Places];
    logic            room;

    assign told_mask = told_q[e] ? Each'(1) << told_queue_q[e] : '0;
    assign pop_mask  = pop[e] ? Each'(1) << next_queue[e] : '0;
    assign drop_mask = (start_valid_i && start_queue_i[0] == 1'(e)) ? Each'(1) << start_queue_i[QueueW-1:1] : '0;
    // Who is about to leave comes back at the end.
    assign enter     = (told_mask & (~stands_q | pop_mask)) != '0;

    always_ff @(posedge clk_i) begin
      told_q[e]       <= rst_ni && told_valid_i[e];
      told_queue_q[e] <= told_queue_i[e];
      told_lines_q[e] <= told_lines_i[e];
      if (!rst_ni) begin
        stands_q <= '0;
        says_q   <= '0;
      end else begin
        stands_q <= (stands_q & ~pop_mask) | told_mask;
        says_q   <= (says_q & ~pop_mask & ~drop_mask) | (told_mask & ~drop_mask);
      end
      if (told_q[e]) lines[told_queue_q[e]] <= told_lines_q[e];
    end

    fifo #(.Width(LocalW), .Depth(Places)) u_order (
      .clk_i, .rst_ni,
      .push_valid_i(enter), .push_ready_o(room), .push_data_i(told_queue_q[e]),
      .pop_valid_o(next_valid[e]), .pop_ready_i(pop[e]), .pop_data_o(next_queue[e]), .count_o()
    );
    assign next_told[e]  = (says_q & pop_mask & ~drop_mask) != '0;
    assign next_lines[e] = lines[next_queue[e]];

    always_ff @(posedge clk_i) begin
      give_q[e]       <= rst_ni && next_told[e];
      give_queue_q[e] <= next_queue[e];
      give_lines_q[e] <= next_lines[e];
    end

`ifndef SYNTHESIS
    initial for (int i = 0; i < int'(Places); i++) lines[i] = '0;
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        a_room     : assert (!enter || room);
        a_exists   : assert (!told_valid_i[e] || 32'(told_queue_i[e]) < Each);
        a_stands   : assert ((says_q & ~stands_q) == '0);
      end
    end
`else
    logic unused;
    assign unused = room;
`endif
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) turn_q <= 1'b0;
    else if (pop != '0) turn_q <= pop[0];
  end

  assign freed_valid_o = give_q != '0;
  assign freed_queue_o = {give_q[1] ? give_queue_q[1] : give_queue_q[0], give_q[1]};
  assign freed_lines_o = give_q[1] ? give_lines_q[1] : give_lines_q[0];
  assign is_empty_o    = next_valid == '0 && told_q == '0 && give_q == '0;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) if (rst_ni) a_one : assert (give_q != 2'b11);
`endif

endmodule

`default_nettype wire

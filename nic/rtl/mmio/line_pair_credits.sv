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
// Limits: for NumQueues / 2 cycles after reset `busy_o` holds, and nothing may be told.
// Latency: 4 cycles when nothing waits. Cost: NumQueues x (36 + QueueW) bits of LUTRAM, about 230 registers.
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

  output logic                   busy_o,
  // Nothing waits.
  output logic                   is_empty_o
);

  if (NumQueues < 4 || NumQueues > nic_pkg::MaxQueues || NumQueues % 2 != 0) begin : g_bad_queues
    $fatal(1, "line_pair_credits: NumQueues must be even, 4 to 1024");
  end

  localparam int unsigned Places = 1 << LocalW;

  logic [1:0]             waits, has_head_q, gives, told_q, give_q;
  logic [1:0][LocalW-1:0] told_queue_q, give_queue_q;
  logic [1:0][31:0]       told_lines_q, give_lines_q;
  logic                   turn_q;
  // What the marks hold is not known after reset: they are made equal, queue by queue.
  logic                   sweeps_q;
  logic [LocalW-1:0]      sweep_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sweeps_q <= 1'b1;
      sweep_q  <= '0;
    end else if (sweeps_q) begin
      sweeps_q <= sweep_q != LocalW'(Each - 1);
      sweep_q  <= sweep_q + 1'b1;
    end
  end
  assign busy_o = sweeps_q;

  // One of them a cycle, in turns where both have something.
  assign gives[0] = has_head_q[0] && (!has_head_q[1] || !turn_q);
  assign gives[1] = has_head_q[1] && (!has_head_q[0] || turn_q);

  for (genvar e = 0; e < 2; e++) begin : g_engine
    // A queue is on its way out, in the FIFO or as the head, while its two marks differ: one is turned when it enters,
    // the other when it leaves. Its count is of its present life while two other marks are equal: a start makes them
    // differ, however many starts there are, and the next count that is told makes them equal.
    (* ram_style = "distributed" *)
    logic              entered [Places];
    (* ram_style = "distributed" *)
    logic              left [Places];
    (* ram_style = "distributed" *)
    logic              begun [Places];
    (* ram_style = "distributed" *)
    logic              told_in [Places];
    (* ram_style = "distributed" *)
    logic [31:0]       lines [Places];
    logic [LocalW-1:0] next, head_q, leaving, starting;
    logic              starts, told_with, stands, is_leaving, enter, room, takes_next;

    assign starts     = start_valid_i && start_queue_i[0] == 1'(e);
    assign starting   = start_queue_i[QueueW-1:1];
    // What was told in the cycle before the start is of the earlier life too.
    assign told_with  = told_q[e] && told_queue_q[e] == starting;
    assign stands     = entered[told_queue_q[e]] != left[told_queue_q[e]];
    assign is_leaving = gives[e] && head_q == told_queue_q[e];
    // Who leaves in this cycle leaves without what is told in it, and comes back at the end.
    assign enter      = told_q[e] && (!stands || is_leaving);
    assign leaving    = sweeps_q ? sweep_q : head_q;
    assign takes_next = !has_head_q[e] || gives[e];

    always_ff @(posedge clk_i) begin
      told_q[e]       <= rst_ni && told_valid_i[e];
      told_queue_q[e] <= told_queue_i[e];
      told_lines_q[e] <= told_lines_i[e];
      if (starts) begun[starting] <= told_with ? !begun[starting] : !told_in[starting];
      if (told_q[e]) told_in[told_queue_q[e]] <= begun[told_queue_q[e]];
      if (told_q[e]) lines[told_queue_q[e]] <= told_lines_q[e];
      if (enter) entered[told_queue_q[e]] <= !entered[told_queue_q[e]];
      if (gives[e] || sweeps_q) left[leaving] <= entered[leaving];
    end

    fifo #(.Width(LocalW), .Depth(Places)) u_order (
      .clk_i, .rst_ni,
      .push_valid_i(enter), .push_ready_o(room), .push_data_i(told_queue_q[e]),
      .pop_valid_o(waits[e]), .pop_ready_i(takes_next), .pop_data_o(next), .count_o()
    );

    always_ff @(posedge clk_i) begin
      if (!rst_ni) has_head_q[e] <= 1'b0;
      else if (takes_next) has_head_q[e] <= waits[e];
      if (takes_next) head_q <= next;
      give_q[e]       <= rst_ni && gives[e] && begun[head_q] == told_in[head_q];
      give_queue_q[e] <= head_q;
      give_lines_q[e] <= lines[head_q];
    end

`ifndef SYNTHESIS
    initial begin
      for (int i = 0; i < int'(Places); i++) begin
        entered[i] = 1'b0;
        left[i]    = 1'b0;
        begun[i]   = 1'b0;
        told_in[i] = 1'b0;
        lines[i]   = '0;
      end
    end
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        a_room    : assert (!enter || room);
        a_settled : assert (!told_q[e] || !sweeps_q);
        a_exists  : assert (!told_valid_i[e] || 32'(told_queue_i[e]) < Each);
        a_stands  : assert (!gives[e] || entered[head_q] != left[head_q]);
      end
    end
`else
    logic unused;
    assign unused = room;
`endif
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) turn_q <= 1'b0;
    else if (gives != '0) turn_q <= gives[0];
  end

  assign freed_valid_o = give_q != '0;
  assign freed_queue_o = {give_q[1] ? give_queue_q[1] : give_queue_q[0], give_q[1]};
  assign freed_lines_o = give_q[1] ? give_lines_q[1] : give_lines_q[0];
  assign is_empty_o    = waits == '0 && has_head_q == '0 && told_q == '0 && give_q == '0;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) if (rst_ni) a_one : assert (give_q != 2'b11);
`endif

endmodule

`default_nettype wire

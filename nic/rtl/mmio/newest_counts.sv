// The newest count of each queue, for a taker that may be busy with others for as long as it likes.
//
// A count that is absolute says all that an older one of its queue said, so a queue waits at most once, with its newest.
//
// Guarantees
//   - The last count that is told of a queue is given, after all older ones of it that are given. No count is given that
//     was not told, and none that was told before the queue's start.
//   - Nothing overflows, whatever is told and however long the taker waits. Queues leave in the order in which they came.
// Limits
//   - A queue starts in a cycle in which nothing is told of any queue, nor was in the cycle before.
//   - For NumQueues cycles after reset nothing may be told.
// Latency: 3 cycles when nothing waits. Cost: NumQueues x (35 + QueueW) bits of LUTRAM, about 50 registers.
// Twin: nic/model/src/mmio/credit_return.rs coalesces in the same way.

`default_nettype none

module newest_counts #(
  // Queues, 1 to 1024.
  parameter int unsigned NumQueues = 64,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  // A queue starts: what waits of it is forgotten.
  input  logic              start_valid_i,
  input  logic [QueueW-1:0] start_queue_i,

  input  logic              told_valid_i,
  input  logic [QueueW-1:0] told_queue_i,
  input  logic [31:0]       told_count_i,

  output logic              newest_valid_o,
  input  logic              newest_ready_i,
  output logic [QueueW-1:0] newest_queue_o,
  output logic [31:0]       newest_count_o,

  // Nothing waits.
  output logic              is_empty_o
);

  localparam int unsigned Places = 1 << QueueW;

  if (NumQueues < 1 || NumQueues > 1024) begin : g_bad_queues
    $fatal(1, "newest_counts: NumQueues must be 1 to 1024");
  end

  typedef struct packed {
    // Told since the queue's start.
    logic        is_live;
    logic [31:0] count;
  } newest_t;

  // A queue is on its way out, in the FIFO or as the head, while its two marks differ: one is turned when it enters, the
  // other when it leaves.
  (* ram_style = "distributed" *)
  logic    entered [Places];
  (* ram_style = "distributed" *)
  logic    left [Places];
  (* ram_style = "distributed" *)
  newest_t newest [Places];

  logic              told_q, has_head_q, waits, room, stands, enter, leaves;
  logic [QueueW-1:0] told_queue_q, head_q, next, leaving, written;
  logic [31:0]       told_count_q;
  newest_t           head_newest;
  // What the marks hold is not known after reset: they are made equal, queue by queue.
  logic              sweeps_q;
  logic [QueueW-1:0] sweep_q;

  assign head_newest    = newest[head_q];
  assign newest_valid_o = has_head_q && head_newest.is_live;
  assign newest_queue_o = head_q;
  assign newest_count_o = head_newest.count;
  assign leaves         = has_head_q && (newest_ready_i || !head_newest.is_live);

  // Who leaves in this cycle leaves without what is told in it, and comes back at the end.
  assign stands     = entered[told_queue_q] != left[told_queue_q];
  assign enter      = told_q && (!stands || (leaves && head_q == told_queue_q));
  assign leaving    = sweeps_q ? sweep_q : head_q;
  assign written    = start_valid_i ? start_queue_i : told_queue_q;
  assign is_empty_o = !waits && !has_head_q && !told_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sweeps_q <= 1'b1;
      sweep_q  <= '0;
    end else if (sweeps_q) begin
      sweeps_q <= sweep_q != QueueW'(NumQueues - 1);
      sweep_q  <= sweep_q + 1'b1;
    end
    told_q       <= rst_ni && told_valid_i;
    told_queue_q <= told_queue_i;
    told_count_q <= told_count_i;
    if (told_q || start_valid_i) newest[written] <= '{is_live: !start_valid_i, count: told_count_q};
    if (enter) entered[told_queue_q] <= !entered[told_queue_q];
    if (leaves || sweeps_q) left[leaving] <= entered[leaving];

    if (!rst_ni) has_head_q <= 1'b0;
    else if (!has_head_q || leaves) has_head_q <= waits;
    if (!has_head_q || leaves) head_q <= next;
  end

  fifo #(.Width(QueueW), .Depth((Places < 2) ? 2 : Places)) u_order (
    .clk_i, .rst_ni, .push_valid_i(enter), .push_ready_o(room), .push_data_i(told_queue_q), .pop_valid_o(waits),
    .pop_ready_i(!has_head_q || leaves), .pop_data_o(next), .count_o()
  );

`ifndef SYNTHESIS
  initial begin
    for (int i = 0; i < int'(Places); i++) begin
      entered[i] = 1'b0;
      left[i]    = 1'b0;
      newest[i]  = '0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_room        : assert (!enter || room);
      a_swept       : assert (!told_q || !sweeps_q);
      a_start_alone : assert (!start_valid_i || !(told_q || told_valid_i));
      a_head_is_in  : assert (!leaves || entered[head_q] != left[head_q]);
    end
  end
`else
  logic unused;
  assign unused = room;
`endif

endmodule

`default_nettype wire

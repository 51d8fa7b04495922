// Absolute counts from positions that wrap: each queue's position in lines, as a count that does not.
//
// Guarantees: two cycles after `valid_i`, `count_o` is the number of lines since the queue's start at which its
// position is `pos_i`, if the position moved by less than 2^PosW since it was last told. One event a cycle, of any
// queue. Cost: NumQueues x CountW bits of RAM. Twin in nic/model: the 64-bit positions of tx_queue.rs.

`default_nettype none

module position_counter #(
  parameter int unsigned NumQueues = 64,
  // Bits of a position.
  parameter int unsigned PosW = 8,
  // Bits of a count: more than PosW.
  parameter int unsigned CountW = 48,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  // The queue starts anew, with count 0.
  input  logic              start_valid_i,
  input  logic [QueueW-1:0] start_queue_i,

  input  logic              valid_i,
  input  logic [QueueW-1:0] queue_i,
  input  logic [PosW-1:0]   pos_i,

  output logic              valid_o,
  output logic [QueueW-1:0] queue_o,
  output logic [CountW-1:0] count_o,

  // A look at a queue's count: there a cycle after it is asked for.
  input  logic [QueueW-1:0] look_queue_i,
  output logic [CountW-1:0] look_count_o
);

  localparam int unsigned HighW = CountW - PosW;

  logic              valid1_q, start1_q, valid2_q, start2_q, wraps1, wraps2_q;
  logic [QueueW-1:0] queue1_q, queue2_q;
  logic [PosW-1:0]   pos1_q, pos2_q, low1, low_look;
  logic [HighW-1:0]  high2, high2_next, high2_d, high_look;

  always_ff @(posedge clk_i) begin
    valid1_q <= rst_ni && valid_i && !start_valid_i;
    start1_q <= rst_ni && start_valid_i;
    valid2_q <= rst_ni && valid1_q;
    start2_q <= rst_ni && start1_q;
    queue1_q <= start_valid_i ? start_queue_i : queue_i;
    queue2_q <= queue1_q;
    pos1_q   <= start_valid_i ? '0 : pos_i;
    pos2_q   <= pos1_q;
    wraps2_q <= wraps1;
  end

  table_ram #(.Width(PosW), .Depth(NumQueues)) u_low (
    .clk_i, .we_i(valid1_q || start1_q), .waddr_i(queue1_q), .wdata_i(pos1_q),
    .raddr_i(start_valid_i ? start_queue_i : queue_i), .rdata_o(low1)
  );
  assign wraps1 = pos1_q < low1;

  table_ram #(.Width(HighW), .Depth(NumQueues)) u_high (
    .clk_i, .we_i(valid2_q || start2_q), .waddr_i(queue2_q), .wdata_i(high2_d), .raddr_i(queue1_q), .rdata_o(high2)
  );
  // A carry chain over all of them would be the longest path of its stage.
  increment #(.Width(HighW)) u_next (.value_i(high2), .add_i(wraps2_q), .sum_o(high2_next));
  assign high2_d = start2_q ? '0 : high2_next;

  assign valid_o = valid2_q;
  assign queue_o = queue2_q;
  assign count_o = {high2_d, pos2_q};

  // Both halves of a look are written in the same cycle, so that they belong together.
  table_ram #(.Width(PosW), .Depth(NumQueues)) u_low_look (
    .clk_i, .we_i(valid2_q || start2_q), .waddr_i(queue2_q), .wdata_i(pos2_q), .raddr_i(look_queue_i),
    .rdata_o(low_look)
  );
  table_ram #(.Width(HighW), .Depth(NumQueues)) u_high_look (
    .clk_i, .we_i(valid2_q || start2_q), .waddr_i(queue2_q), .wdata_i(high2_d), .raddr_i(look_queue_i),
    .rdata_o(high_look)
  );
  assign look_count_o = {high_look, low_look};

  if (CountW <= PosW) begin : g_bad_width
    $fatal(1, "position_counter: CountW must be more than PosW");
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) a_one_at_a_time : assert (!(valid_i && start_valid_i));
  end
`endif

endmodule

`default_nettype wire

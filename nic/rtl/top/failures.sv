// Failures of queues, from every engine, one after the other to the registers.
//
// Guarantees
//   - Every failure that is taken is told, those of one engine in their order. There is room for all that can be
//     told between two looks of the registers: a queue fails at most once in a life, and each has at most two
//     engines, one that sends and one that receives. So no engine waits for the registers, which wait for engines.
//   - A failure told to the registers was taken a cycle earlier at the earliest.
// Latency: 1 cycle. Cost: 2 x NumQueues x (QueueW + 4) bits. Twin: Shared::failed in nic/model/src/engine.rs.

`default_nettype none

module failures #(
  // Queues, 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // Engines, 2 to 8.
  parameter int unsigned Engines = 4,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic                           clk_i,
  input  logic                           rst_ni,

  input  logic [Engines-1:0]             in_valid_i,
  output logic [Engines-1:0]             in_ready_o,
  input  logic [Engines-1:0][QueueW-1:0] in_queue_i,
  input  logic [Engines-1:0][3:0]        in_cause_i,

  output logic                           out_valid_o,
  input  logic                           out_ready_i,
  output logic [QueueW-1:0]              out_queue_o,
  output logic [3:0]                     out_cause_o
);

  if (Engines < 2 || Engines > 8) begin : g_bad_engines
    $fatal(1, "failures: Engines must be 2 to 8");
  end

  // A FIFO of the library has at most 1024 entries; more failures than that between two looks would need more queues
  // than fail in a thousand register accesses, and only makes engines wait where nobody waits for them.
  localparam int unsigned Wanted = 2 << $clog2(NumQueues);
  localparam int unsigned Depth  = (Wanted > 1024) ? 1024 : (Wanted < 2) ? 2 : Wanted;

  logic [Engines-1:0] grant;
  logic [QueueW-1:0]  queue;
  logic [3:0]         cause;
  logic               ready;
  logic [$clog2(Depth):0] unused_count;

  assign grant      = in_valid_i & (~in_valid_i + 1'b1);
  assign in_ready_o = ready ? grant : '0;

  always_comb begin
    queue = '0;
    cause = '0;
    for (int engine = 0; engine < int'(Engines); engine++) begin
      queue |= grant[engine] ? in_queue_i[engine] : '0;
      cause |= grant[engine] ? in_cause_i[engine] : '0;
    end
  end

  fifo #(.Width(QueueW + 4), .Depth(Depth)) u_waiting (
    .clk_i, .rst_ni, .push_valid_i(in_valid_i != '0), .push_ready_o(ready), .push_data_i({queue, cause}),
    .pop_valid_o(out_valid_o), .pop_ready_i(out_ready_i), .pop_data_o({out_queue_o, out_cause_o}),
    .count_o(unused_count)
  );

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_one_at_a_time : assert ((in_ready_o & (in_ready_o - 1'b1)) == '0);
      a_room : assert (ready || NumQueues > 512) else $error("failures: a queue failed twice in a life");
    end
  end
`endif

endmodule

`default_nettype wire

// Whose frame is next: strict priority among classes, then who is behind with its share, then who has waited longest.
//
// Whether one stream goes before another is worked out when either's oldest frame changes and kept as one bit a pair,
// so that a decision is a look at these bits. The frame behind the oldest one is compared at the same time: a stream
// that is served in every cycle is still in its right place in the next.
//
// Guarantees
//   - `grant_o` has at most one bit. It is one of a stream that waits, and no stream that has waited for a cycle goes
//     before it.
//   - If any stream has waited for a cycle, or one waits alone, there is a grant.
//   - Among streams of the same class that are level with their shares, who was served last goes last.
// Limits: a stream whose frame came in this cycle, while others wait, is looked at from the next cycle on. What a
//   stream has sent counts when frame_shares has counted it.
// Latency: grants come from registers, a decision a cycle. Cost: about 30 LUT and 2 registers a pair.
// Proof: in frame_arbiter's, nic/formal/frame_arbiter.sby. Twin: nic/model/src/egress/scheduler.rs.

`default_nettype none

module frame_order #(
  // 2 to 8.
  parameter int unsigned Streams = 3,
  // 1 to 16.
  parameter int unsigned NumClasses = 4,
  localparam int unsigned ClassW = (NumClasses > 1) ? $clog2(NumClasses) : 1
) (
  input  logic                               clk_i,
  input  logic                               rst_ni,

  // Of each stream the oldest frame, and the one behind it.
  input  logic [Streams-1:0]                 head_valid_i,
  input  logic [Streams-1:0][ClassW-1:0]     head_class_i,
  input  logic [Streams-1:0]                 next_valid_i,
  input  logic [Streams-1:0][ClassW-1:0]     next_class_i,
  // Streams that have used up their share of a class, others not; from frame_shares.
  input  logic [NumClasses-1:0][Streams-1:0] ahead_i,

  // The stream that is granted lets its oldest frame go.
  input  logic                               take_i,
  output logic [Streams-1:0]                 grant_o
);

  if (Streams < 2 || Streams > 8) begin : g_bad_streams
    $fatal(1, "frame_order: Streams must be 2 to 8");
  end
  if (NumClasses < 1 || NumClasses > 16) begin : g_bad_classes
    $fatal(1, "frame_order: NumClasses must be 1 to 16");
  end

  // Streams that are compared; bit [i][j]: i goes before j, and i was served before j was. One half is the other's
  // opposite.
  logic [Streams-1:0]                 waits_q;
  logic [Streams-1:0][Streams-1:0] before_q, before_d, older_q, older_d;
  logic [Streams-1:0]                 pop;
  logic [Streams-1:0][ClassW:0]       head_rank, next_rank;

  assign pop = grant_o & {Streams{take_i}};

  for (genvar i = 0; i < int'(Streams); i++) begin : g_stream
    logic [(1 << ClassW)-1:0] ahead;
    logic [Streams-1:0] others, blocks;
    logic                  is_alone;

    for (genvar c = 0; c < (1 << ClassW); c++) begin : g_class
      if (c < int'(NumClasses)) begin : g_there
        assign ahead[c] = ahead_i[c][i];
      end else begin : g_missing
        assign ahead[c] = 1'b0;
      end
    end
    assign head_rank[i] = {head_class_i[i], ahead[head_class_i[i]]};
    assign next_rank[i] = {next_class_i[i], ahead[next_class_i[i]]};

    for (genvar j = 0; j < int'(Streams); j++) begin : g_other
      assign others[j] = (j != i) && head_valid_i[j];
      assign blocks[j] = (j != i) && waits_q[j] && before_q[j][i];
      if (i < j) begin : g_pair
        logic now, after_i, after_j;
        assign now     = head_rank[i] < head_rank[j] || (head_rank[i] == head_rank[j] && older_q[i][j]);
        // Who has just been served goes last among its equals.
        assign after_i = next_rank[i] < head_rank[j];
        assign after_j = head_rank[i] <= next_rank[j];
        assign before_d[i][j] = pop[i] ? after_i : (pop[j] ? after_j : now);
        assign older_d[i][j]  = !pop[i] && (pop[j] || older_q[i][j]);
      end else if (i > j) begin : g_opposite
        assign before_d[i][j] = !before_d[j][i];
        assign older_d[i][j]  = !older_d[j][i];
      end else begin : g_self
        assign before_d[i][j] = 1'b0;
        assign older_d[i][j]  = 1'b0;
      end
    end
    assign is_alone   = head_valid_i[i] && others == '0;
    assign grant_o[i] = (waits_q[i] && blocks == '0) || is_alone;
  end

  always_ff @(posedge clk_i) begin
    before_q <= before_d;
    if (!rst_ni) begin
      waits_q <= '0;
      for (int i = 0; i < int'(Streams); i++) older_q[i] <= ~((Streams'(2) << i) - 1'b1);
    end else begin
      // A frame that comes in now is compared in the next cycle.
      waits_q <= (head_valid_i & ~pop) | (next_valid_i & pop);
      older_q <= older_d;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_one       : assert ($onehot0(grant_o));
      a_waits     : assert ((grant_o & ~head_valid_i) == '0);
      a_some      : assert (waits_q == '0 || grant_o != '0);
      a_compared  : assert ((waits_q & ~head_valid_i) == '0);
    end
  end

  // By generate: the proof's front end wants each label once in a block.
  for (genvar i = 0; i < int'(Streams); i++) begin : g_check
    always_ff @(posedge clk_i) begin
      if (rst_ni) a_class_exists : assert (!head_valid_i[i] || 32'(head_class_i[i]) < NumClasses);
    end
    for (genvar j = 0; j < int'(Streams); j++) begin : g_against
      always_ff @(posedge clk_i) begin
        if (rst_ni) begin
          a_opposite : assert (i == j || older_q[i][j] != older_q[j][i]);
          a_strict   : assert (!(grant_o[i] && waits_q[i] && waits_q[j]) || head_class_i[i] <= head_class_i[j]);
        end
      end
    end
  end
`endif

endmodule

`default_nettype wire

// What each stream has sent of its share, class by class.
//
// A share is 16 KiB times the weight of the queue that sends: more than the longest frame, so that no frame uses up
// two. A stream that uses one up is ahead, and gives way to those of its class that are not; when one that is ahead
// uses up another, because those others had nothing to send, they have lost theirs and are behind by one share, not
// more.
// Shares are never handed out, so there is nobody to wait for; what is sent beyond a share counts for the next.
//
// Guarantees
//   - Two streams of a class that both wait all the time use up equally many shares, give or take one. So what they
//     send, each divided by its weight, differs by at most two shares and a frame.
//   - A stream that was idle has at most one share more than the others of its class when it comes back.
// Limits
//   - A stream whose queues have different weights has the share of the queue whose frame uses it up.
//   - What a share held before reset is not defined in hardware: the first one may be shorter.
// Latency: a beat counts 4 cycles after it was charged. Throughput: one a cycle.
// Cost: 22 bits of RAM for each class and stream, about 80 registers.
// Proof: nic/formal/frame_shares.sby, unbounded. Twin: nic/model/src/egress/scheduler.rs (there a deficit round robin).

`default_nettype none

module frame_shares #(
  // 2 to 8.
  parameter int unsigned Streams = 3,
  // 1 to 16.
  parameter int unsigned NumClasses = 4,
  localparam int unsigned IndexW = $clog2(Streams),
  localparam int unsigned ClassW = (NumClasses > 1) ? $clog2(NumClasses) : 1
) (
  input  logic                                     clk_i,
  input  logic                                     rst_ni,

  // A beat leaves: its stream, its frame's class and weight (1 or more), and its bytes, 1 to 64.
  input  logic                                     charge_valid_i,
  input  logic [IndexW-1:0]                        charge_stream_i,
  input  logic [ClassW-1:0]                        charge_class_i,
  input  logic [7:0]                               charge_weight_i,
  input  logic [6:0]                               charge_bytes_i,

  // Bit [c][i]: stream i is ahead in class c.
  output logic [NumClasses-1:0][Streams-1:0]       ahead_o
);

  localparam int unsigned AddressW = ClassW + IndexW;
  localparam int unsigned Depth = 1 << AddressW;

  if (Streams < 2 || Streams > 8) begin : g_bad_streams
    $fatal(1, "frame_shares: Streams must be 2 to 8");
  end
  if (NumClasses < 1 || NumClasses > 16) begin : g_bad_classes
    $fatal(1, "frame_shares: NumClasses must be 1 to 16");
  end

  // Three stages, so that no adder is longer than 7 bits: the low 7 bits of what was sent, then pieces of 128 bytes,
  // and shares of 128 such pieces.
  logic                low_valid_q, high_valid_q, carry_q, used_up_q;
  logic [AddressW-1:0] low_address_q, high_address_q, used_address_q;
  logic [7:0]          low_weight_q, high_weight_q;
  logic [6:0]          low_bytes_q, low_sent;
  logic [7:0]          low_sum;
  logic [6:0]          pieces, pieces_d;
  logic [7:0]          quanta, quanta_d;
  logic                wraps, used_up;

  assign low_sum = 8'(low_sent) + 8'(low_bytes_q);

  table_ram #(.Width(7), .Depth(Depth)) u_low (
    .clk_i, .we_i(low_valid_q), .waddr_i(low_address_q), .wdata_i(low_sum[6:0]),
    .raddr_i({charge_class_i, charge_stream_i}), .rdata_o(low_sent)
  );
  table_ram #(.Width(15), .Depth(Depth)) u_high (
    .clk_i, .we_i(high_valid_q && carry_q), .waddr_i(high_address_q), .wdata_i({quanta_d, pieces_d}),
    .raddr_i(low_address_q), .rdata_o({quanta, pieces})
  );

  assign wraps    = &pieces;
  assign used_up  = wraps && quanta + 1'b1 >= 9'(high_weight_q);
  assign pieces_d = pieces + 1'b1;
  assign quanta_d = used_up ? '0 : quanta + 8'(wraps);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      low_valid_q  <= 1'b0;
      high_valid_q <= 1'b0;
      used_up_q    <= 1'b0;
    end else begin
      low_valid_q  <= charge_valid_i;
      high_valid_q <= low_valid_q;
      used_up_q    <= high_valid_q && carry_q && used_up;
    end
    low_address_q  <= {charge_class_i, charge_stream_i};
    low_weight_q   <= charge_weight_i;
    low_bytes_q    <= charge_bytes_i;
    high_address_q <= low_address_q;
    high_weight_q  <= low_weight_q;
    carry_q        <= low_sum[7];
    used_address_q <= high_address_q;
  end

  // Who is ahead already and uses up one more leaves the others of the class behind.
  for (genvar c = 0; c < int'(NumClasses); c++) begin : g_class
    logic [Streams-1:0] who;
    logic                  is_here, was_ahead;
    assign is_here   = used_up_q && 32'(used_address_q[AddressW-1:IndexW]) == 32'(c);
    assign who       = Streams'(1) << used_address_q[IndexW-1:0];
    assign was_ahead = (ahead_o[c] & who) != '0;
    always_ff @(posedge clk_i) begin
      if (!rst_ni) ahead_o[c] <= '0;
      else if (is_here) ahead_o[c] <= who | (ahead_o[c] & {Streams{!was_ahead}});
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_bytes        : assert (!charge_valid_i || charge_bytes_i inside {[7'd1:7'd64]});
      a_weight       : assert (!charge_valid_i || charge_weight_i != '0);
      a_class_exists : assert (!charge_valid_i || 32'(charge_class_i) < NumClasses);
    end
  end
`endif

endmodule

`default_nettype wire

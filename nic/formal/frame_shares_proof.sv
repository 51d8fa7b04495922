// What is proved of nic/rtl/egress/frame_shares.sv, for every length of run, by k-induction
// (nic/formal/frame_shares.sby), of a stream and a class that are chosen freely:
//   - a stream uses up a share of a class when the bytes that it was charged there, counted on from what the share
//     before was exceeded by, pass a multiple of 16 KiB that is at least its weight of then: neither sooner nor later;
//   - so less than 16 KiB x weight, the largest weight meanwhile, and one beat are charged from one such moment to the
//     next, or from reset to the first, whatever the tables held before;
//   - `ahead_o` shows it in the 4th cycle after the charge: who was not ahead is; who was leaves the others behind.
//
// Assumed: a charge is of 1 to 64 bytes, of a class that is there, of a weight of 1 or more. Its stream is one that is
// there. All else is free, reset in the middle of traffic included, and so is what the tables hold.
//
// Proved for 5 streams and 4 classes, as in the top. The others matter by the table's address alone, and by the bits
// of `ahead_o` that they set, each on its own: argument A of docs/proofs.md.

`default_nettype none

module frame_shares_proof #(
  parameter int unsigned Streams = 5,
  parameter int unsigned NumClasses = 4,
  localparam int unsigned StreamW = $clog2(Streams),
  localparam int unsigned ClassW = $clog2(NumClasses)
) (
  input logic               clk_i,
  input logic               rst_ni,
  input logic               charge_valid_i,
  input logic [StreamW-1:0] charge_stream_i,
  input logic [ClassW-1:0]  charge_class_i,
  input logic [7:0]         charge_weight_i,
  input logic [6:0]         charge_bytes_i,
  // Who is followed: any, but always the same.
  input logic [StreamW-1:0] stream_i,
  input logic [ClassW-1:0]  class_i
);

  logic [NumClasses-1:0][Streams-1:0] ahead;
  frame_shares #(.Streams(Streams), .NumClasses(NumClasses)) dut (
    .clk_i, .rst_ni, .charge_valid_i, .charge_stream_i, .charge_class_i, .charge_weight_i, .charge_bytes_i,
    .ahead_o(ahead)
  );

  logic               started_q = 1'b0;
  logic [StreamW-1:0] stream_q;
  logic [ClassW-1:0]  class_q;
  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    stream_q  <= stream_i;
    class_q   <= class_i;
    assume (started_q ? stream_i == stream_q && class_i == class_q : !rst_ni);
    assume (32'(stream_i) < Streams && 32'(class_i) < NumClasses);
    if (charge_valid_i) begin
      assume (charge_bytes_i != '0 && charge_bytes_i <= 7'd64 && charge_weight_i != '0);
      assume (32'(charge_stream_i) < Streams && 32'(charge_class_i) < NumClasses);
    end
  end

  // ---------------------------------------------------------------------------------------------- one sum, late
  // Charges of the followed one, one and two cycles ago.
  logic       charged1_q, charged2_q, fresh_q;
  logic [6:0] bytes1_q, bytes2_q;
  logic [7:0] weight1_q, weight2_q;
  // What was sent of the share; after reset it begins with what the tables hold, which is anything.
  logic [21:0] sent_q, sent, sum, rest;
  logic        passes, uses_up, used_up_q;
  // Since it last used up a share: all that was charged, and the largest weight.
  logic [23:0] since_q, since;
  logic [7:0]  most_q, most;
  logic [ClassW+StreamW-1:0] address;
  assign address = {class_i, stream_i};
  assign sent    = fresh_q ? {dut.u_high.mem[address], dut.u_low.mem[address]} : sent_q;
  // A sum beyond the last share of the largest weight loses its top bit, which uses it up in any case.
  logic [22:0] whole;
  assign whole   = 23'(sent) + 23'(bytes2_q);
  assign sum     = whole[21:0];
  assign passes  = whole[22:14] != 9'(sent[21:14]);
  assign uses_up = charged2_q && passes && whole[22:14] >= 9'(weight2_q);
  assign rest    = uses_up ? {8'd0, sum[13:0]} : sum;
  assign most    = (charged2_q && weight2_q > most_q) ? weight2_q : most_q;
  assign since   = since_q + 24'(charged2_q ? bytes2_q : 7'd0);

  always_ff @(posedge clk_i) begin
    fresh_q    <= !rst_ni;
    bytes1_q   <= charge_bytes_i;
    bytes2_q   <= bytes1_q;
    weight1_q  <= charge_weight_i;
    weight2_q  <= weight1_q;
    if (!rst_ni) begin
      charged1_q <= 1'b0;
      charged2_q <= 1'b0;
      used_up_q  <= 1'b0;
      since_q    <= '0;
      most_q     <= 8'd1;
    end else begin
      charged1_q <= charge_valid_i && {charge_class_i, charge_stream_i} == address;
      charged2_q <= charged1_q;
      used_up_q  <= uses_up;
      sent_q     <= charged2_q ? rest : sent;
      // What exceeded the share counts for the next one.
      since_q    <= uses_up ? 24'(rest) : since;
      most_q     <= uses_up ? 8'd1 : most;
    end
  end

  // What a use of another share does, of any stream of the class.
  logic               past_q, event_q;
  logic [Streams-1:0] ahead_q;
  logic [StreamW-1:0] who_q;
  always_ff @(posedge clk_i) begin
    past_q  <= rst_ni;
    ahead_q <= ahead[class_i];
    event_q <= dut.used_up_q && dut.used_address_q[ClassW+StreamW-1:StreamW] == class_i;
    who_q   <= dut.used_address_q[StreamW-1:0];
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      // Neither sooner nor later, three cycles behind the charge.
      assert (used_up_q == (dut.used_up_q && dut.used_address_q == address));
      // Before the beat that is charged.
      assert (since_q < 24'(most_q) << 14);
      if (!past_q) assert (ahead[class_i] == '0);
      else if (!event_q) assert (ahead[class_i] == ahead_q);
      else begin
        assert (ahead[class_i][who_q]);
        for (int i = 0; i < int'(Streams); i++) begin
          if (i != int'(32'(who_q))) assert (ahead[class_i][i] == (ahead_q[i] && !ahead_q[who_q]));
        end
      end
    end
  end

  // ---------------------------------------------------------------------------------------------- invariants
  logic [7:0] low_sum;
  logic       is_high;
  assign low_sum = 8'(sent[6:0]) + 8'(bytes2_q);
  assign is_high = dut.high_valid_q && dut.high_address_q == address;
  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      assert (charged1_q == (dut.low_valid_q && dut.low_address_q == address) && charged2_q == is_high);
      if (charged1_q) assert (dut.low_bytes_q == bytes1_q && dut.low_weight_q == weight1_q);
      if (charged2_q) assert (dut.high_weight_q == weight2_q && dut.carry_q == low_sum[7]);
      if (charged1_q) assert (bytes1_q <= 7'd64 && weight1_q != '0);
      if (charged2_q) assert (bytes2_q <= 7'd64 && weight2_q != '0);
      // What the tables hold, and give.
      assert (dut.u_high.mem[address] == sent[21:7]);
      assert (dut.u_low.mem[address] == (charged2_q ? low_sum[6:0] : sent[6:0]));
      if (charged2_q) assert ({dut.quanta, dut.pieces} == sent[21:7]);
      if (charged1_q) assert (dut.low_sent == dut.u_low.mem[address]);
      if (fresh_q) assert (!dut.low_valid_q && !dut.high_valid_q && !dut.used_up_q);
      // What was charged is part of what was sent, or of what was sent of the last 16 KiB.
      assert (most_q != '0 && since_q <= 24'(sent));
      assert (sent[21:14] < most_q || since_q <= 24'(sent[13:0]));
      if (dut.used_up_q) assert (32'(dut.used_address_q[StreamW-1:0]) < Streams);
      if (dut.high_valid_q) assert (32'(dut.high_address_q[StreamW-1:0]) < Streams);
      if (dut.low_valid_q) assert (32'(dut.low_address_q[StreamW-1:0]) < Streams);
    end
  end

  // The proof is not empty: these can be reached.
  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      cover (used_up_q && since_q != '0 && ahead[class_i] != '0);
      cover (event_q && ahead_q[who_q] && $countones(ahead_q) == 2);
      cover (charged2_q && passes && !uses_up && weight2_q > 8'd1);
    end
  end

endmodule

`default_nettype wire

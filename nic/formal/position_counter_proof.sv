// What is proved of nic/rtl/mmio/position_counter.sv, for every length of run, by k-induction
// (nic/formal/position_counter.sby):
//   - the count told two cycles after a position is the sum of all its moves since the queue's start, modulo 2^CountW;
//   - a look gives, a cycle later, the count of a position that was told, at the latest two cycles before the look;
//   - events of other queues, in any cycle, change neither.
//
// Assumed: a position moves by less than 2^PosW; a start and a position do not come in one cycle; reset comes once.
// Proved for 2 queues, PosW 3 and CountW 6. Queues are told apart by the tables' addresses alone, and one, chosen
// freely, is followed. The two halves of a count meet in one comparison and one carry, whatever their widths.

`default_nettype none

module position_counter_proof #(
  parameter int unsigned NumQueues = 2,
  parameter int unsigned PosW = 3,
  parameter int unsigned CountW = 6,
  localparam int unsigned QueueW = $clog2(NumQueues)
) (
  input logic              clk_i,
  input logic              rst_ni,
  input logic              start_valid_i,
  input logic [QueueW-1:0] start_queue_i,
  input logic              valid_i,
  input logic [QueueW-1:0] queue_i,
  input logic [PosW-1:0]   pos_i,
  input logic [QueueW-1:0] look_queue_i,
  // The queue that is followed, and how far its position moves.
  input logic [QueueW-1:0] place_i,
  input logic [PosW-1:0]   move_i
);

  logic              valid;
  logic [QueueW-1:0] queue_told;
  logic [CountW-1:0] count, look_count;

  position_counter #(.NumQueues(NumQueues), .PosW(PosW), .CountW(CountW)) dut (
    .clk_i, .rst_ni, .start_valid_i, .start_queue_i, .valid_i, .queue_i, .pos_i,
    .valid_o(valid), .queue_o(queue_told), .count_o(count), .look_queue_i, .look_count_o(look_count)
  );

  // The true count: behind the event at the input, and one and two cycles ago. `live`: the queue was started.
  logic              started_q = 1'b0;
  logic              live0_q = 1'b0;
  logic              live1_q = 1'b0;
  logic              live2_q = 1'b0;
  logic              told1_q = 1'b0;
  logic              told2_q = 1'b0;
  logic              looked_q = 1'b0;
  logic [CountW-1:0] count0_q, count1_q, count2_q, look_q, moved;
  logic [QueueW-1:0] place_q;
  logic              starts, moves;
  assign starts = rst_ni && start_valid_i && start_queue_i == place_i;
  assign moves  = rst_ni && valid_i && queue_i == place_i;
  assign moved  = count0_q + CountW'(move_i);

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    place_q   <= place_i;
    assume (started_q ? rst_ni && place_i == place_q : !rst_ni);
    assume (!(valid_i && start_valid_i));
    if (moves) assume (live0_q && pos_i == moved[PosW-1:0]);

    live0_q <= live0_q || starts;
    live1_q <= live0_q;
    live2_q <= live1_q;
    if (starts) count0_q <= '0;
    else if (moves) count0_q <= moved;
    count1_q <= count0_q;
    count2_q <= count1_q;
    told1_q  <= moves;
    told2_q  <= told1_q;
    looked_q <= look_queue_i == place_i && live1_q;
    look_q   <= count1_q;
  end

  always_ff @(posedge clk_i) begin
    if (started_q) begin
      assert (told2_q == (valid && queue_told == place_i));
      if (told2_q) assert (count == count1_q);
      if (looked_q) assert (look_count == look_q);
      // Invariants: each table holds the part of the count that is known when it is written.
      if (live1_q) assert (dut.u_low.mem[place_i] == count1_q[PosW-1:0]);
      if (live2_q) begin
        assert (dut.u_high.mem[place_i] == count2_q[CountW-1:PosW]);
        assert ({dut.u_high_look.mem[place_i], dut.u_low_look.mem[place_i]} == count2_q);
      end
      if (live1_q) assert (live0_q);
      if (live2_q) assert (live1_q);
      cover (told2_q && count == CountW'(9) && looked_q && told1_q);
      cover (live2_q && count2_q == '1 && starts);
    end
  end

endmodule

`default_nettype wire

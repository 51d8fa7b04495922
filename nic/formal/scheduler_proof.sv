// What is proved of nic/rtl/egress/scheduler.sv, for every length of run, by k-induction (nic/formal/scheduler.sby):
//   - a queue is at every moment nowhere, in exactly one ring, or has exactly one turn: none is doubled, none is lost;
//   - a queue that is announced while it is nowhere, or whose turn ends with `more`, waits from then on;
//   - while it waits, at most 2 x NumQueues turns of its class go before its own, whatever the others do;
//   - no turn is given while a queue of a class before it stands in a ring; `idle` and `waits_upto` say who waits.
// With that, a waiting queue of the first class has its turn: turns are given whenever they can be taken, and a ring is
// reached in 2 x NumQueues cycles (the same bound: one queue enters the rings in every cycle in which one waits to).
//
// Assumed: a turn ends once, and only if it was given; a queue is set up before it is first announced, while it is
// nowhere, and not in the cycle of an announcement. All else is free, reset in the middle of traffic included (it
// leaves the marks of the queues as they are). Any number of turns may be under way.
//
// Proved for 4 queues and 2 classes. A class enters only by its own ring and by the order of the
// rings; the FIFOs are as deep as there are queues, whatever the number (fifo_proof.sv).

`default_nettype none

module scheduler_proof #(
  parameter int unsigned NumQueues = 4,
  // Whether the bound on waiting is what is proved; the places of the queues are assumed there, and proved without.
  parameter bit Fairness = 1'b0,
  localparam int unsigned NumClasses = 2,
  localparam int unsigned QueueW = $clog2(NumQueues)
) (
  input logic              clk_i,
  input logic              rst_ni,
  input logic              set_valid_i,
  input logic [QueueW-1:0] set_queue_i,
  input logic [3:0]        set_class_i,
  input logic              ready_valid_i,
  input logic [QueueW-1:0] ready_queue_i,
  input logic              early_taken_i,
  input logic              done_valid_i,
  input logic [QueueW-1:0] done_queue_i,
  input logic              done_more_i,
  input logic              turn_ready_i,
  // The queue that is followed: any, but always the same.
  input logic [QueueW-1:0] place_i
);

  localparam int unsigned CountW = QueueW + 3;

  logic              early_holds, turn_valid, idle, turn, turn_class;
  logic [NumClasses-1:0] waits_upto;
  logic [QueueW-1:0] turn_queue;
  assign turn = turn_valid && turn_ready_i;

  scheduler #(.NumQueues(NumQueues), .NumClasses(NumClasses)) dut (
    .clk_i, .rst_ni, .set_valid_i, .set_queue_i, .set_class_i, .ready_valid_i, .ready_queue_i, .early_taken_i,
    .early_holds_o(early_holds), .done_valid_i, .done_queue_i, .done_more_i, .turn_valid_o(turn_valid), .turn_ready_i,
    .turn_queue_o(turn_queue), .turn_class_o(turn_class), .waits_upto_o(waits_upto),
    .idle_o(idle)
  );

  // Kept beside it: whether the followed queue waits or has its turn, its class, and turns that went before it.
  logic              started_q = 1'b0;
  logic              waits_q = 1'b0;
  logic              has_turn_q = 1'b0;
  logic              class_q;
  logic [CountW-1:0] before_q;
  logic [QueueW-1:0] place_q;
  logic              announced, done, given;
  assign announced = ready_valid_i && ready_queue_i == place_i && !waits_q && !has_turn_q;
  assign done      = done_valid_i && done_queue_i == place_i;
  assign given     = turn && turn_queue == place_i;

  // Queues that were set up, and their turns, for what is assumed of them.
  logic [NumQueues-1:0] live_q, is_nowhere, turns_q, turns_d;
  always_comb begin
    turns_d = turns_q;
    if (done_valid_i) turns_d[done_queue_i] = 1'b0;
    if (turn) turns_d[turn_queue] = 1'b1;
    if (early_holds) turns_d[ready_queue_i] = 1'b1;
  end

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    place_q   <= place_i;
    assume (started_q ? place_i == place_q : !rst_ni);
    if (started_q) begin
      if (done_valid_i) assume (rst_ni && turns_q[done_queue_i]);
      if (ready_valid_i) assume (rst_ni && live_q[ready_queue_i]);
      if (set_valid_i) assume (rst_ni && !ready_valid_i && (!live_q[set_queue_i] || is_nowhere[set_queue_i]));
    end
    turns_q <= rst_ni ? turns_d : '0;
    if (!rst_ni) live_q <= '0;
    else if (set_valid_i) live_q[set_queue_i] <= 1'b1;
    if (!rst_ni) begin
      waits_q    <= 1'b0;
      has_turn_q <= 1'b0;
    end else begin
      if (set_valid_i && set_queue_i == place_i) class_q <= set_class_i != '0;
      if (announced) waits_q <= !early_holds;
      if (announced && early_holds) has_turn_q <= 1'b1;
      if (given) {waits_q, has_turn_q} <= 2'b01;
      if (done) {waits_q, has_turn_q} <= {done_more_i, 1'b0};
      if (!waits_q) before_q <= '0;
      else if (turn && turn_queue != place_i
          && 32'(class_q) == 32'(dut.class_of[turn_queue])) before_q <= before_q + 1'b1;
    end
  end

  // ------------------------------------------------------------------------------------------- where a queue is
  // The FIFOs in front of the rings and the rings: their entries that count, and how old each is.
  localparam int unsigned Fifos = NumClasses + 2;
  localparam int unsigned New = NumClasses;
  localparam int unsigned Back = NumClasses + 1;
  logic [Fifos-1:0][NumQueues-1:0][QueueW-1:0] entries, ages;
  logic [NumQueues-1:0]                        class_new, class_back;
  logic [Fifos-1:0][QueueW-1:0]                reads;
  logic [Fifos-1:0][QueueW:0]                  counts;

  for (genvar i = 0; i < int'(NumClasses); i++) begin : g_ring
    for (genvar k = 0; k < int'(NumQueues); k++) begin : g_entry
      assign entries[i][k] = dut.g_ring[i].u_ring.mem[k];
    end
    assign reads[i]  = dut.g_ring[i].u_ring.read_q;
    assign counts[i] = dut.g_ring[i].u_ring.count_q;
  end
  for (genvar k = 0; k < int'(NumQueues); k++) begin : g_front
    assign {class_new[k], entries[New][k]}   = dut.u_new.mem[k];
    assign {class_back[k], entries[Back][k]} = dut.u_back.mem[k];
  end
  assign reads[New]   = dut.u_new.read_q;
  assign reads[Back]  = dut.u_back.read_q;
  assign counts[New]  = dut.u_new.count_q;
  assign counts[Back] = dut.u_back.count_q;

  // Of every queue in how many places it is; of the followed one in which FIFO, behind how many.
  localparam int unsigned PlacesW = $clog2(Fifos * NumQueues + 1);
  logic [NumQueues-1:0][PlacesW-1:0] places;
  logic [Fifos-1:0]                  holds;
  logic [Fifos-1:0][QueueW:0]        ahead;
  logic [PlacesW-1:0]                all;
  always_comb begin
    places = '0;
    holds  = '0;
    ahead  = '0;
    all    = '0;
    for (int unsigned q = 0; q < NumQueues; q++) is_nowhere[q] = dut.announced[q] == dut.ended[q];
    for (int unsigned i = 0; i < Fifos; i++) begin
      all += PlacesW'(counts[i]);
      for (int unsigned k = 0; k < NumQueues; k++) begin
        ages[i][k] = QueueW'(k) - reads[i];
        if ((QueueW + 1)'(ages[i][k]) < counts[i]) begin
          for (int unsigned q = 0; q < NumQueues; q++) places[q] += PlacesW'(entries[i][k] == QueueW'(q));
          if (entries[i][k] == place_i) begin
            holds[i] = 1'b1;
            ahead[i] = (QueueW + 1)'(ages[i][k]);
          end
        end
      end
    end
  end

  // Turns of its class that can still go before it. The two FIFOs in front of the rings take turns, so an entry of one
  // lets at most one of the other pass.
  logic [CountW-1:0] due, ring_count;
  assign ring_count = CountW'(counts[class_q]);
  always_comb begin
    if (holds[New]) due = ring_count + CountW'(1) + CountW'({ahead[New], 1'b0}) + CountW'(!dut.turn_new_q);
    else if (holds[Back]) due = ring_count + CountW'(1) + CountW'({ahead[Back], 1'b0}) + CountW'(dut.turn_new_q);
    else due = CountW'(ahead[class_q]);
  end

  // Every queue is once where it must be; so there are never more entries than queues that wait.
  logic is_placed;
  always_comb begin
    is_placed = 1'b1;
    for (int unsigned q = 0; q < NumQueues; q++) begin
      if (places[q] + PlacesW'(turns_q[q]) != PlacesW'(live_q[q] && !is_nowhere[q])) is_placed = 1'b0;
    end
    for (int unsigned k = 0; k < NumQueues; k++) begin
      for (int unsigned i = 0; i < NumClasses; i++) begin
        if ((QueueW + 1)'(ages[i][k]) < counts[i] && 32'(dut.class_of[entries[i][k]]) != i) is_placed = 1'b0;
      end
      // The class that waits beside a queue is the queue's.
      if ((QueueW + 1)'(ages[New][k]) < counts[New]
          && class_new[k] != dut.class_of[entries[New][k]]) is_placed = 1'b0;
      if ((QueueW + 1)'(ages[Back][k]) < counts[Back]
          && class_back[k] != dut.class_of[entries[Back][k]]) is_placed = 1'b0;
    end
    if (32'(all) + 32'(!waits_q) > NumQueues || (waits_q && has_turn_q)) is_placed = 1'b0;
    if (has_turn_q != turns_q[place_i] || places[place_i] != PlacesW'(waits_q)) is_placed = 1'b0;
    if (live_q[place_i] && class_q != dut.class_of[place_i]) is_placed = 1'b0;
  end

  if (Fairness) begin : g_fairness
    always_ff @(posedge clk_i) begin
      if (started_q && rst_ni) begin
        assume (is_placed);
        if (waits_q) assert (32'(before_q) + 32'(due) <= 2 * NumQueues);
      end
    end
  end else begin : g_places
    always_ff @(posedge clk_i) begin
      if (started_q && rst_ni) begin
        assert (is_placed);
        assert (turn_valid == (counts[0] != '0 || counts[1] != '0));
        if (given) assert (waits_q);
        if (waits_q) assert (!idle);
        assert (waits_upto == {turn_valid, counts[0] != '0});
        assert (!turn_valid || turn_class == dut.class_of[turn_queue]);
        // Strict priority: what stands in a ring before.
        if (turn && dut.class_of[turn_queue] != '0) assert (counts[0] == '0);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      cover (before_q == CountW'(2) && given && class_q);
      cover (turns_q == '1);
      cover (all == PlacesW'(NumQueues));
    end
  end

endmodule

`default_nettype wire

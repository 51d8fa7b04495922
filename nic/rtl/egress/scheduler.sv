// Whose turn is next: strict priority among classes, one after the other inside a class.
//
// A queue is in at most one place: in the ring of its class, or having its turn. How much it may send in a turn is its
// reader's affair, which ends the turn when the queue's share is used up (a deficit round robin; the share is the
// queue's weight times 2,048 bytes), or when a queue of a class before it waits (`waits_upto_o`).
//
// Guarantees
//   - A queue that was announced, or whose turn ended with `more`, gets a turn; between two of its turns every other
//     queue of its class that waits gets one.
//   - No queue of a class gets a turn while one of a class before it waits.
//   - One announcement, one end of a turn and one turn a cycle.
//   - A queue announced while nobody waits can have begun its turn before (`early`): then it is not put in a ring.
// Limits: a queue changes its class when it is next put in a ring.
// Cost: (NumClasses + 2) x NumQueues x QueueW bits of LUTRAM, 6 bits a queue. Twin: nic/model/src/egress/scheduler.rs.

`default_nettype none

module scheduler #(
  parameter int unsigned NumQueues = 64,
  // Strict priority classes: 1 to 16; a queue of a class that is not there is in the last one.
  parameter int unsigned NumClasses = 4,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned ClassW = (NumClasses > 1) ? $clog2(NumClasses) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  // A queue that is nowhere starts. No queue is announced in that cycle.
  input  logic              set_valid_i,
  input  logic [QueueW-1:0] set_queue_i,
  input  logic [3:0]        set_class_i,

  // The queue has something to look at. In the cycle before, its early turn may have begun.
  input  logic              ready_valid_i,
  input  logic [QueueW-1:0] ready_queue_i,
  input  logic              early_taken_i,
  output logic              early_holds_o,

  // A turn ended.
  input  logic              done_valid_i,
  input  logic [QueueW-1:0] done_queue_i,
  input  logic              done_more_i,

  // The next turn.
  output logic              turn_valid_o,
  input  logic              turn_ready_i,
  output logic [QueueW-1:0] turn_queue_o,
  output logic [ClassW-1:0] turn_class_o,
  // Bit c: a queue of class c, or of one before it, waits.
  output logic [NumClasses-1:0] waits_upto_o,
  output logic              idle_o
);

  if (NumClasses < 1 || NumClasses > 16) begin : g_bad_classes
    $fatal(1, "scheduler: NumClasses must be 1 to 16");
  end

  localparam int unsigned Places = (NumQueues < 2) ? 2 : (1 << $clog2(NumQueues));

  // A queue is somewhere while its two marks differ: one is turned when it is announced, the other when its turn ends.
  (* ram_style = "distributed" *)
  logic announced [NumQueues];
  (* ram_style = "distributed" *)
  logic ended [NumQueues];
  (* ram_style = "distributed" *)
  logic [ClassW-1:0] class_of [NumQueues];

  logic early_taken_q, is_in, enter, enter_ring, leave;

  assign is_in         = announced[ready_queue_i] != ended[ready_queue_i];
  assign enter         = ready_valid_i && !is_in;
  assign early_holds_o = enter && early_taken_q;
  assign enter_ring    = enter && !early_taken_q;
  assign leave         = done_valid_i && !done_more_i;

  always_ff @(posedge clk_i) begin
    early_taken_q <= rst_ni && early_taken_i;
    if (set_valid_i) announced[set_queue_i] <= ended[set_queue_i];
    else if (enter) announced[ready_queue_i] <= !announced[ready_queue_i];
    if (leave) ended[done_queue_i] <= announced[done_queue_i];
    if (set_valid_i) class_of[set_queue_i] <= (32'(set_class_i) < NumClasses) ? ClassW'(set_class_i)
                                                                              : ClassW'(NumClasses - 1);
  end

  // Two may come to a ring in one cycle: those whose turn ended wait here if need be.
  // Their class is looked up on the way in, for it does not change while a queue waits.
  logic              back_valid, back_ready;
  logic [QueueW-1:0] back_queue;
  logic [ClassW-1:0] back_class;
  logic              push;
  logic [QueueW-1:0] push_queue;
  logic              back_push_ready;

  fifo #(.Width(ClassW + QueueW), .Depth(Places)) u_back (
    .clk_i, .rst_ni,
    .push_valid_i (done_valid_i && done_more_i),
    .push_ready_o (back_push_ready),
    .push_data_i  ({class_of[done_queue_i], done_queue_i}),
    .pop_valid_o  (back_valid),
    .pop_ready_i  (back_ready),
    .pop_data_o   ({back_class, back_queue}),
    .count_o      ()
  );

  // Neither may wait for ever: they take turns when both are there.
  logic              new_valid, new_ready, turn_new_q;
  logic [QueueW-1:0] new_queue;
  logic [ClassW-1:0] new_class;
  logic              new_push_ready;
  fifo #(.Width(ClassW + QueueW), .Depth(Places)) u_new (
    .clk_i, .rst_ni,
    .push_valid_i (enter_ring),
    .push_ready_o (new_push_ready),
    .push_data_i  ({class_of[ready_queue_i], ready_queue_i}),
    .pop_valid_o  (new_valid),
    .pop_ready_i  (new_ready),
    .pop_data_o   ({new_class, new_queue}),
    .count_o      ()
  );

  assign new_ready  = !back_valid || turn_new_q;
  assign back_ready = !new_valid || !turn_new_q;
  assign push       = new_valid || back_valid;
  assign push_queue = (new_valid && new_ready) ? new_queue : back_queue;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) turn_new_q <= 1'b0;
    else if (new_valid && back_valid) turn_new_q <= !turn_new_q;
  end

  // The rings, and the first class that waits.
  logic [NumClasses-1:0]             waits, chosen;
  logic [NumClasses-1:0][QueueW-1:0] heads;
  logic [NumClasses-1:0]             ring_ready;
  logic [ClassW-1:0]                 push_class;

  assign push_class = (new_valid && new_ready) ? new_class : back_class;
  assign chosen     = waits & (~waits + 1'b1);

  for (genvar i = 0; i < int'(NumClasses); i++) begin : g_ring
    fifo #(.Width(QueueW), .Depth(Places)) u_ring (
      .clk_i, .rst_ni,
      .push_valid_i (push && push_class == ClassW'(i)),
      .push_ready_o (ring_ready[i]),
      .push_data_i  (push_queue),
      .pop_valid_o  (waits[i]),
      .pop_ready_i  (chosen[i] && turn_ready_i),
      .pop_data_o   (heads[i]),
      .count_o      ()
    );
  end

  always_comb begin
    turn_queue_o = '0;
    turn_class_o = '0;
    for (int i = 0; i < int'(NumClasses); i++) begin
      turn_queue_o |= heads[i] & {QueueW{chosen[i]}};
      turn_class_o |= ClassW'(i) & {ClassW{chosen[i]}};
    end
  end
  // The first class that waits, and all behind it.
  assign waits_upto_o  = ~(chosen - 1'b1) & {NumClasses{turn_valid_o}};
  assign turn_valid_o  = waits != '0;
  assign idle_o        = !turn_valid_o && !push;

`ifndef SYNTHESIS
  initial begin
    for (int i = 0; i < int'(NumQueues); i++) begin
      announced[i] = 1'b0;
      ended[i]     = 1'b0;
      class_of[i]  = '0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_room_for_all  : assert (!(done_valid_i && done_more_i) || back_push_ready);
      a_room_for_new  : assert (!enter_ring || new_push_ready);
      a_room_in_ring  : assert (!push || ring_ready[push_class]);
      a_set_alone     : assert (!(set_valid_i && ready_valid_i));
      a_done_was_in   : assert (!done_valid_i || announced[done_queue_i] != ended[done_queue_i]);
    end
  end
`endif

endmodule

`default_nettype wire

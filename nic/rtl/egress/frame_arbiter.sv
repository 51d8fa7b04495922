// One wire for several engines: whole frames of 2 to 8 streams, one after the other.
//
//   streams -> a FIFO each -> (frame_order says whose frame is next) -> one register -> the wire
//
// Each engine has its own order among its queues already and offers one frame at a time; what is decided here is whose
// frame goes next. A frame has the class and the weight of its queue, as they were when the queue was last started.
//
// Guarantees
//   - Frames leave unchanged and unmixed, those of a stream in its order; a beat that is offered stands still until it
//     is taken.
//   - Strict priority: when a frame's turn is decided, which is when the last beat of the frame before it moves on, no
//     stream offers a frame of a class before it (those that came in the last two cycles are not looked at).
//   - Inside a class streams share by weight: see frame_shares. None starves: each of the others is let in front of
//     one that waits with at most 16 KiB x weight, the frame that uses them up, and what is decided in the 5 cycles
//     from the beat on that does: another frame, or up to five if all but the last have one beat. Streams that are
//     even take turns frame by frame.
//   - A beat a cycle with no gap between frames, whatever their streams, as long as frames wait.
// Limits
//   - A stream that has offered a frame's first beat should offer the others without pausing: the wire waits for them,
//     or, of one that began early, is told to by frame_guard.
//   - The class is read when the frame's first beat comes in. A frame of a class that is not there is in the last one.
//   - Reset drops what is inside, without a last beat.
// Latency: a beat comes in, and is at the port in the 3rd cycle after it if nothing else waits, in the 4th otherwise.
// Cost on UltraScale+ with the defaults: 775 LUT, 984 LUTRAM, 783 registers.
// Proof: nic/formal/frame_arbiter.sby, unbounded. Twin: nic/model/src/egress/scheduler.rs, which shares by queue, not
// by engine.

`default_nettype none

module frame_arbiter #(
  // Engines that send, 2 to 8.
  parameter int unsigned Streams = 3,
  // Queues, 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // Strict priority classes, 1 to 16.
  parameter int unsigned NumClasses = 4,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned StreamW = $clog2(Streams)
) (
  input  logic                           clk_i,
  input  logic                           rst_ni,

  // A queue starts: its class and weight (0 reads as 1) are kept.
  input  logic                           start_valid_i,
  input  logic [QueueW-1:0]              start_queue_i,
  input  logic [3:0]                     start_class_i,
  input  logic [7:0]                     start_weight_i,

  // Frames of each engine. Bytes are 1 to 64, 64 in all beats but the last; the queue is the same in all of them.
  input  logic [Streams-1:0]             in_valid_i,
  output logic [Streams-1:0]             in_ready_o,
  input  logic [Streams-1:0][511:0]      in_data_i,
  input  logic [Streams-1:0][6:0]        in_bytes_i,
  input  logic [Streams-1:0]             in_last_i,
  input  logic [Streams-1:0][QueueW-1:0] in_queue_i,
  // Beats of a frame that began before all of it was there; the last one, if it never will be.
  input  logic [Streams-1:0]             in_early_i,
  input  logic [Streams-1:0]             in_abort_i,

  // The frame in turn, and which engine's it is.
  output logic                           out_valid_o,
  input  logic                           out_ready_i,
  output logic [511:0]                   out_data_o,
  output logic [6:0]                     out_bytes_o,
  output logic                           out_last_o,
  output logic [QueueW-1:0]              out_queue_o,
  output logic                           out_early_o,
  output logic                           out_abort_o,
  output logic [StreamW-1:0]             out_stream_o,

  // No beat is inside.
  output logic                           is_idle_o
);

  localparam int unsigned ClassW = (NumClasses > 1) ? $clog2(NumClasses) : 1;
  localparam int unsigned BeatW = 512 + 7 + 1 + 2 + QueueW;

  if (Streams < 2 || Streams > 8) begin : g_bad_streams
    $fatal(1, "frame_arbiter: Streams must be 2 to 8");
  end
  if (NumQueues < 1 || NumQueues > nic_pkg::MaxQueues) begin : g_bad_queues
    $fatal(1, "frame_arbiter: NumQueues must be 1 to 1024");
  end
  if (NumClasses < 1 || NumClasses > 16) begin : g_bad_classes
    $fatal(1, "frame_arbiter: NumClasses must be 1 to 16");
  end

  // ------------------------------------------------------------------------------ what comes in
  logic [ClassW-1:0] start_class;
  logic [7:0]        start_weight;
  assign start_class  = (32'(start_class_i) < NumClasses) ? start_class_i[ClassW-1:0] : ClassW'(NumClasses - 1);
  assign start_weight = (start_weight_i == '0) ? 8'd1 : start_weight_i;

  logic [Streams-1:0]             first_q, beat_room, beat_valid, beat_pop, beat_last;
  logic [Streams-1:0][BeatW-1:0]  beat;
  logic [Streams-1:0]             key_room, head_valid, next_valid, key_pop;
  logic [Streams-1:0][ClassW-1:0] head_class, next_class;
  logic [Streams-1:0][7:0]        head_weight;

  assign in_ready_o = beat_room & key_room;

  for (genvar i = 0; i < int'(Streams); i++) begin : g_stream
    logic              push;
    logic [ClassW+7:0] key;
    logic [7:0]        next_weight;

    assign push = in_valid_i[i] && in_ready_o[i];

    // A copy a stream: each looks up the queue of its own frame.
    (* ram_style = "distributed" *)
    logic [ClassW+7:0] keys [NumQueues];
    assign key = keys[in_queue_i[i]];
    always_ff @(posedge clk_i) begin
      if (start_valid_i) keys[start_queue_i] <= {start_class, start_weight};
      if (!rst_ni) first_q[i] <= 1'b1;
      else if (push) first_q[i] <= in_last_i[i];
    end
`ifndef SYNTHESIS
    initial for (int n = 0; n < int'(NumQueues); n++) keys[n] = (ClassW + 8)'(1);
`endif

    // Two cycles pass between a beat's coming and its going at the earliest.
    fifo #(.Width(BeatW), .Depth(4)) u_beats (
      .clk_i, .rst_ni,
      .push_valid_i (in_valid_i[i] && key_room[i]),
      .push_ready_o (beat_room[i]),
      .push_data_i  ({in_last_i[i], in_early_i[i], in_abort_i[i], in_queue_i[i], in_bytes_i[i], in_data_i[i]}),
      .pop_valid_o  (beat_valid[i]),
      .pop_ready_i  (beat_pop[i]),
      .pop_data_o   (beat[i]),
      .count_o      ()
    );
    assign beat_last[i] = beat[i][BeatW-1];

    frame_keys #(.KeyW(ClassW + 8)) u_keys (
      .clk_i, .rst_ni,
      .push_i(push && first_q[i]), .push_key_i(key), .room_o(key_room[i]),
      .pop_i(key_pop[i]),
      .head_valid_o(head_valid[i]), .head_key_o({head_class[i], head_weight[i]}),
      .next_valid_o(next_valid[i]), .next_key_o({next_class[i], next_weight})
    );

    // The weight of a frame counts when it is served, not before.
    logic unused;
    assign unused = &{1'b0, next_weight};
  end

  // ------------------------------------------------------------------------------ whose frame is next
  logic                                  take;
  logic [Streams-1:0]                 grant;
  logic [NumClasses-1:0][Streams-1:0] ahead;

  frame_order #(.Streams(Streams), .NumClasses(NumClasses)) u_order (
    .clk_i, .rst_ni,
    .head_valid_i(head_valid), .head_class_i(head_class), .next_valid_i(next_valid), .next_class_i(next_class),
    .ahead_i(ahead), .take_i(take), .grant_o(grant)
  );
  assign key_pop = grant & {Streams{take}};

  // ------------------------------------------------------------------------------ the frame in turn
  logic [Streams-1:0] serving_q;
  logic                  is_serving_q, room, moves, ends;
  logic [StreamW-1:0]    index_d, index_q;
  logic [ClassW-1:0]     class_d, class_q;
  logic [7:0]            weight_d, weight_q;
  logic [BeatW-1:0]      chosen;

  assign room     = !out_valid_o || out_ready_i;
  assign beat_pop = serving_q & {Streams{room}};
  assign moves    = (beat_pop & beat_valid) != '0;
  assign ends     = (beat_pop & beat_valid & beat_last) != '0;
  assign take     = !is_serving_q || ends;

  always_comb begin
    index_d  = '0;
    class_d  = '0;
    weight_d = '0;
    chosen   = '0;
    for (int i = 0; i < int'(Streams); i++) begin
      index_d  |= StreamW'(i) & {StreamW{grant[i]}};
      class_d  |= head_class[i] & {ClassW{grant[i]}};
      weight_d |= head_weight[i] & {8{grant[i]}};
      chosen   |= beat[i] & {BeatW{serving_q[i]}};
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      serving_q     <= '0;
      is_serving_q  <= 1'b0;
      out_valid_o <= 1'b0;
    end else begin
      if (take) begin
        serving_q    <= grant;
        is_serving_q <= grant != '0;
      end
      if (room) out_valid_o <= moves;
    end
    if (take) begin
      index_q  <= index_d;
      class_q  <= class_d;
      weight_q <= weight_d;
    end
    if (room) begin
      {out_stream_o, out_last_o, out_early_o, out_abort_o, out_queue_o, out_bytes_o, out_data_o} <= {index_q, chosen};
    end
  end

  frame_shares #(.Streams(Streams), .NumClasses(NumClasses)) u_shares (
    .clk_i, .rst_ni,
    .charge_valid_i(moves), .charge_stream_i(index_q), .charge_class_i(class_q), .charge_weight_i(weight_q),
    .charge_bytes_i(chosen[518:512]), .ahead_o(ahead)
  );

  assign is_idle_o = beat_valid == '0 && !is_serving_q && !out_valid_o;

`ifndef SYNTHESIS
  // What waits, for the assertions.
  logic                stalled_q;
  logic [BeatW-1:0]    stalled_beat_q;
  logic [Streams-1:0] stream_stalled_q;
  logic [Streams-1:0][BeatW-1:0] stream_beat_q;
  always_ff @(posedge clk_i) begin
    stalled_q        <= rst_ni && out_valid_o && !out_ready_i;
    stalled_beat_q   <= {out_last_o, out_early_o, out_abort_o, out_queue_o, out_bytes_o, out_data_o};
    stream_stalled_q <= rst_ni ? in_valid_i & ~in_ready_o : '0;
    for (int i = 0; i < int'(Streams); i++) begin
      stream_beat_q[i] <= {in_last_i[i], in_early_i[i], in_abort_i[i], in_queue_i[i], in_bytes_i[i], in_data_i[i]};
    end
    if (rst_ni) begin
      a_one_serves  : assert ($onehot0(serving_q) && is_serving_q == (serving_q != '0));
      a_stands      : assert (!stalled_q || (out_valid_o
                              && stalled_beat_q == {out_last_o, out_early_o, out_abort_o, out_queue_o,
                                                    out_bytes_o, out_data_o}));
      // A frame that was announced has its first beat in the FIFO, or had.
      a_first_there : assert ((grant & ~beat_valid) == '0);
    end
  end

  // By generate: the proof's front end wants each label once in a block.
  for (genvar i = 0; i < int'(Streams); i++) begin : g_check
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        a_stream_stands : assert (!stream_stalled_q[i] || (in_valid_i[i] && stream_beat_q[i]
                          == {in_last_i[i], in_early_i[i], in_abort_i[i], in_queue_i[i], in_bytes_i[i],
                              in_data_i[i]}));
        a_whole_beats   : assert (!in_valid_i[i] || in_bytes_i[i] == 7'd64
                                  || (in_last_i[i] && in_bytes_i[i] inside {[7'd1:7'd63]}));
        a_queue_exists  : assert (!in_valid_i[i] || 32'(in_queue_i[i]) < NumQueues);
      end
    end
  end
`endif

endmodule

`default_nettype wire

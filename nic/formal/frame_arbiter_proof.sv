// What is proved of nic/rtl/egress/frame_arbiter.sv, with frame_keys, frame_order and frame_shares in it, for every
// length of run, by k-induction (nic/formal/frame_arbiter.sby), of a stream that is chosen freely, of any beat of it,
// with its marks (last, early, abort), bytes, queue and any bit of its data:
//   - it leaves once, unchanged, when exactly the beats of its stream that came before it have left; `out_stream_o`
//     names its stream; what is offered stands until it is taken;
//   - between a frame's first beat and its last one no beat of another stream leaves;
//   - a frame's turn is decided by the class and weight that its queue was last started with when its first beat came;
//   - when a turn is decided while a frame waits that came two cycles before or earlier, somebody gets it, and nobody
//     of a class behind that frame's, if it is its stream's next one; behind a last beat the next frame's first one is
//     offered in the cycle after it was taken;
//   - while a frame waits as its stream's next one, each other stream has one turn of that class, and more only while
//     the waiting stream was ahead with its share a cycle before and the other was not: even ones take turns, frame by
//     frame;
//   - it has none from the 2nd cycle on after frame_shares told that it used up a share, unless the waiting stream
//     used up one later. frame_shares_proof.sv says after how many bytes that is, and how soon it is told.
//
// A stream that waits uses up nothing, save what it sent before. So each other one sends at most 16 KiB x weight in
// front of it, and ends its frame; and then what is decided in the 5 cycles from the beat on that used up the share: 5
// frames that have one beat, but the last. The cover task with `Late` shows that it can be as many.
//
// Assumed: a beat that is offered stands until it is taken; beats have 64 bytes, a frame's last one 1 to 64. All else
// is free, reset in the middle of traffic included, when frames come, and whether they pause.
//
// Proved for the two sizes that are in the top, 2 and 5 streams with 4 classes; other ones: argument D of
// docs/proofs.md. Two queues stand for all: a queue is an address of the table of keys, and passes unread (A, B). Each
// bit of the data is followed, by free choice. The table of keys begins as in simulation, class 0 and weight 1; a
// queue that is started before it sends does not see that.

`default_nettype none

module frame_arbiter_proof #(
  parameter int unsigned Streams = 2,
  parameter int unsigned NumClasses = 4,
  // Whether what is to be reached is how late a used up share is seen.
  parameter bit Late = 1'b0,
  localparam int unsigned NumQueues = 2,
  localparam int unsigned ClassW = $clog2(NumClasses),
  localparam int unsigned StreamW = $clog2(Streams)
) (
  input logic                      clk_i,
  input logic                      rst_ni,
  input logic                      start_valid_i,
  input logic                      start_queue_i,
  input logic [3:0]                start_class_i,
  input logic [7:0]                start_weight_i,
  input logic [Streams-1:0]        in_valid_i,
  input logic [Streams-1:0][511:0] in_data_i,
  input logic [Streams-1:0][6:0]   in_bytes_i,
  input logic [Streams-1:0]        in_last_i,
  input logic [Streams-1:0]        in_queue_i,
  input logic [Streams-1:0]        in_early_i,
  input logic [Streams-1:0]        in_abort_i,
  input logic                      out_ready_i,
  // The stream and the bit that are followed: any, but always the same. Of the stream's beats any, one at a time.
  input logic [StreamW-1:0]        stream_i,
  input logic [8:0]                bit_i,
  input logic                      follow_i
);

  // What is followed of a beat; what it is in the FIFO.
  localparam int unsigned BeatW = 3 + 1 + 7 + 1;
  localparam int unsigned EntryW = BeatW + 511;
  localparam int unsigned Places = 4;

  logic [Streams-1:0]            in_ready;
  logic [Streams-1:0][BeatW-1:0] in_beat;
  logic [BeatW-1:0]              out_beat;
  logic                          out_valid, out_last, out_early, out_abort, out_queue, is_idle;
  logic [511:0]                  out_data;
  logic [6:0]                    out_bytes;
  logic [StreamW-1:0]            out_stream;

  frame_arbiter #(.Streams(Streams), .NumQueues(NumQueues), .NumClasses(NumClasses)) dut (
    .clk_i, .rst_ni, .start_valid_i, .start_queue_i, .start_class_i, .start_weight_i, .in_valid_i,
    .in_ready_o(in_ready), .in_data_i, .in_bytes_i, .in_last_i, .in_queue_i, .in_early_i, .in_abort_i,
    .out_valid_o(out_valid), .out_ready_i, .out_data_o(out_data), .out_bytes_o(out_bytes), .out_last_o(out_last),
    .out_queue_o(out_queue), .out_early_o(out_early), .out_abort_o(out_abort), .out_stream_o(out_stream),
    .is_idle_o(is_idle)
  );

  assign out_beat = {out_last, out_early, out_abort, out_queue, out_bytes, out_data[bit_i]};
  for (genvar i = 0; i < int'(Streams); i++) begin : g_in
    assign in_beat[i] = {in_last_i[i], in_early_i[i], in_abort_i[i], in_queue_i[i], in_bytes_i[i],
                         in_data_i[i][bit_i]};
  end

  // ---------------------------------------------------------------------------------------------- what is assumed
  logic                          started_q = 1'b0;
  logic [StreamW-1:0]            stream_q;
  logic [8:0]                    bit_q;
  logic [Streams-1:0]            held_q;
  logic [Streams-1:0][BeatW-1:0] held_beat_q;
  logic [Streams-1:0][511:0]     held_data_q;
  always_ff @(posedge clk_i) begin
    started_q   <= 1'b1;
    stream_q    <= stream_i;
    bit_q       <= bit_i;
    held_q      <= rst_ni ? in_valid_i & ~in_ready : '0;
    held_beat_q <= in_beat;
    held_data_q <= in_data_i;
    assume (32'(stream_i) < Streams);
    assume (started_q ? stream_i == stream_q && bit_i == bit_q : !rst_ni);
    if (started_q && rst_ni) begin
      for (int i = 0; i < int'(Streams); i++) begin
        if (held_q[i]) assume (in_valid_i[i] && in_beat[i] == held_beat_q[i] && in_data_i[i] == held_data_q[i]);
        if (in_valid_i[i]) begin
          assume (in_bytes_i[i] == 7'd64 || (in_last_i[i] && in_bytes_i[i] != '0 && in_bytes_i[i] < 7'd64));
        end
      end
    end
  end

  // ---------------------------------------------------------------------------------------------- whole and in order
  // Beats of the followed stream that are inside; of the beat that is followed, how many of them leave before it.
  logic               push, leaves, follows, turn, following_q, open_q, waited_q, turned_q, no_gap_q;
  logic [2:0]         inside_q, before_q;
  logic [BeatW-1:0]   beat_q, waited_beat_q;
  logic [StreamW-1:0] open_stream_q, waited_stream_q;
  assign push    = in_valid_i[stream_i] && in_ready[stream_i];
  assign leaves  = out_valid && out_ready_i && out_stream == stream_i;
  assign follows = push && follow_i && !following_q;
  assign turn    = dut.take && dut.grant != '0;

  always_ff @(posedge clk_i) begin
    waited_q        <= rst_ni && out_valid && !out_ready_i;
    waited_beat_q   <= out_beat;
    waited_stream_q <= out_stream;
    if (!rst_ni) begin
      inside_q    <= '0;
      following_q <= 1'b0;
      open_q      <= 1'b0;
      turned_q    <= 1'b0;
      no_gap_q    <= 1'b0;
    end else begin
      inside_q <= inside_q + 3'(push) - 3'(leaves);
      if (follows) begin
        following_q <= 1'b1;
        before_q    <= inside_q - 3'(leaves);
        beat_q      <= in_beat[stream_i];
      end else if (following_q && leaves) begin
        following_q <= before_q != '0;
        before_q    <= before_q - 1'b1;
      end
      if (out_valid && out_ready_i) begin
        open_q        <= !out_last;
        open_stream_q <= out_stream;
      end
      // What moves in front of the wire is its frame's last beat, and somebody gets the turn behind it.
      if (dut.room) turned_q <= dut.ends && turn;
      no_gap_q <= out_valid && out_ready_i && turned_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      if (waited_q) assert (out_valid && out_beat == waited_beat_q && out_stream == waited_stream_q);
      if (out_valid) assert (32'(out_stream) < Streams);
      if (out_valid && open_q) assert (out_stream == open_stream_q);
      if (leaves) assert (inside_q != '0);
      if (leaves && following_q && before_q == '0) assert (out_beat == beat_q);
      if (is_idle) assert (inside_q == '0 && !open_q);
      if (no_gap_q) assert (out_valid);
    end
  end

  // ---------------------------------------------------------------------------------------------- turns
  // What the queues were started with. Of the followed beat, if it is its frame's first: whether the frame waits for
  // its turn, whether it came two cycles ago or earlier, how many of its stream have theirs before, its class and
  // weight.
  logic [NumQueues-1:0][ClassW-1:0]   class_of_q = '0;
  logic [NumQueues-1:0][7:0]          weight_of_q = {NumQueues{8'd1}};
  logic                               is_first_q, waits_q, old_q, is_next, passed, again;
  logic [1:0]                         turns_q;
  logic [ClassW-1:0]                  class_q;
  logic [7:0]                         weight_q;
  // Of each stream: whether a frame begins next; keys, which are frames that have come and had no turn.
  logic [Streams-1:0]                 first_q;
  logic [Streams-1:0][1:0]            keys;
  // Streams that had a turn since the followed one last had one; that used up a share since it used up one.
  logic [Streams-1:0]                 served_q;
  logic [NumClasses-1:0][Streams-1:0] spent_q, spent_past_q, ahead_past_q;
  logic                               used_up;
  logic [ClassW-1:0]                  used_class;
  logic [StreamW-1:0]                 used_stream;
  assign used_up = dut.u_shares.used_up_q;
  assign {used_class, used_stream} = dut.u_shares.used_address_q;

  assign is_next = waits_q && old_q && turns_q == '0;
  assign passed  = turn && is_next && !dut.grant[stream_i];
  assign again   = passed && dut.class_d == class_q && (dut.grant & served_q) != '0;

  always_ff @(posedge clk_i) begin
    if (start_valid_i) begin
      class_of_q[start_queue_i]  <= ClassW'((32'(start_class_i) < NumClasses) ? 32'(start_class_i) : NumClasses - 1);
      weight_of_q[start_queue_i] <= (start_weight_i == '0) ? 8'd1 : start_weight_i;
    end
    ahead_past_q <= dut.ahead;
    if (!rst_ni) begin
      first_q      <= '1;
      waits_q      <= 1'b0;
      served_q     <= '0;
      spent_q      <= '0;
      spent_past_q <= '0;
    end else begin
      for (int i = 0; i < int'(Streams); i++) begin
        if (in_valid_i[i] && in_ready[i]) first_q[i] <= in_last_i[i];
      end
      if (dut.take) served_q <= dut.grant[stream_i] ? '0 : served_q | dut.grant;
      spent_past_q <= spent_q;
      if (used_up && used_stream == stream_i) spent_q[used_class] <= '0;
      else if (used_up) spent_q[used_class][used_stream] <= 1'b1;
      old_q <= 1'b1;
      if (follows) begin
        is_first_q <= first_q[stream_i];
        waits_q    <= first_q[stream_i];
        old_q      <= 1'b0;
        class_q    <= class_of_q[in_queue_i[stream_i]];
        weight_q   <= weight_of_q[in_queue_i[stream_i]];
        turns_q    <= keys[stream_i] - 2'(dut.key_pop[stream_i]);
      end else if (waits_q && dut.key_pop[stream_i]) begin
        waits_q <= turns_q != '0;
        turns_q <= turns_q - 1'b1;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      if (waits_q && turns_q == '0 && dut.key_pop[stream_i]) begin
        assert (dut.class_d == class_q && dut.weight_d == weight_q);
      end
      if (waits_q && old_q && dut.take) assert (turn);
      if (passed) assert (dut.class_d <= class_q);
      if (again) begin
        assert (ahead_past_q[class_q][stream_i] && (ahead_past_q[class_q] & dut.grant) == '0);
        assert ((spent_past_q[class_q] & dut.grant) == '0);
      end
    end
  end

  // ---------------------------------------------------------------------------------------------- invariants
  // The FIFOs of beats, oldest entry first, which of them begin a frame, and the keys.
  logic [Streams-1:0][Places-1:0][EntryW-1:0] entries;
  logic [Streams-1:0][Places-1:0]             begins, lasts, is_there;
  logic [Streams-1:0][2:0]                    counts, key_valid;
  logic [Streams-1:0][1:0]                    reads;
  logic [Streams-1:0][2:0][ClassW+7:0]        key;
  logic [Streams-1:0][ClassW-1:0]             head_class;
  // The beat that moved last was not its frame's last one: it is of the stream that is served. Or there is a turn of
  // which no beat has moved.
  logic                                       mid_q;
  logic [Streams-1:0]                         mid, due, firsts;
  assign mid = dut.serving_q & {Streams{mid_q}};
  assign due = dut.serving_q & {Streams{!mid_q}};

  for (genvar i = 0; i < int'(Streams); i++) begin : g_stream
    assign reads[i]      = dut.g_stream[i].u_beats.read_q;
    assign counts[i]     = dut.g_stream[i].u_beats.count_q;
    assign key_valid[i]  = dut.g_stream[i].u_keys.valid_q;
    assign key[i]        = dut.g_stream[i].u_keys.key_q;
    assign keys[i]       = 2'(key_valid[i][0]) + 2'(key_valid[i][1]) + 2'(key_valid[i][2]);
    assign head_class[i] = key[i][0][ClassW+7:8];
    for (genvar k = 0; k < int'(Places); k++) begin : g_place
      logic [1:0] at;
      assign at             = reads[i] + 2'(k);
      assign entries[i][k]  = dut.g_stream[i].u_beats.mem[at];
      assign is_there[i][k] = 3'(k) < counts[i];
      assign lasts[i][k]    = entries[i][k][EntryW-1];
      if (k == 0) begin : g_head
        assign begins[i][k] = is_there[i][k] && !mid[i];
      end else begin : g_behind
        assign begins[i][k] = is_there[i][k] && lasts[i][k-1];
      end
    end
    // What comes next begins a frame.
    always_comb begin
      firsts[i] = !mid[i];
      for (int k = 0; k < int'(Places); k++) if (is_there[i][k]) firsts[i] = lasts[i][k];
    end

    always_ff @(posedge clk_i) begin
      // Reset leaves what the queues were started with.
      for (int q = 0; q < int'(NumQueues); q++) begin
        assert (dut.g_stream[i].keys[q] == {class_of_q[q], weight_of_q[q]});
        assert (weight_of_q[q] != '0 && 32'(class_of_q[q]) < NumClasses);
      end
      if (started_q && rst_ni) begin
        assert (counts[i] <= 3'd4 && 2'(dut.g_stream[i].u_beats.write_q - reads[i]) == counts[i][1:0]);
        assert (key_valid[i] == 3'b000 || key_valid[i] == 3'b001 || key_valid[i] == 3'b011 || key_valid[i] == 3'b111);
        // A key for each frame that begins in the FIFO and has had no turn.
        assert (3'(keys[i]) + 3'(due[i])
                == 3'(begins[i][0]) + 3'(begins[i][1]) + 3'(begins[i][2]) + 3'(begins[i][3]));
        assert (firsts[i] == first_q[i] && first_q[i] == dut.first_q[i]);
        if (due[i]) assert (is_there[i][0]);
        for (int k = 0; k < int'(Places); k++) begin
          if (is_there[i][k]) assert (entries[i][k][518:512] != '0 && entries[i][k][518:512] <= 7'd64);
        end
        for (int k = 0; k < 3; k++) begin
          if (key_valid[i][k]) assert (key[i][k][7:0] != '0 && 32'(key[i][k][ClassW+7:8]) < NumClasses);
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) mid_q <= 1'b0;
    else if (dut.moves) mid_q <= !dut.ends;
    if (started_q && rst_ni) begin
      // Who is served.
      assert ($onehot0(dut.serving_q) && dut.is_serving_q == (dut.serving_q != '0));
      if (dut.is_serving_q) begin
        assert (dut.serving_q == Streams'(1) << dut.index_q);
        assert (dut.weight_q != '0 && 32'(dut.class_q) < NumClasses);
      end
      if (mid_q) assert (dut.is_serving_q);
      // The register in front of the wire holds the beat that moved last.
      if (out_valid) assert (mid_q == !out_last && (!mid_q || dut.serving_q == Streams'(1) << out_stream));
      else assert (open_q == mid_q && (!mid_q || dut.serving_q == Streams'(1) << open_stream_q));
      if (turned_q) assert (out_valid && out_last && dut.is_serving_q && !mid_q);
      if (counts == '0 && !out_valid && !open_q) assert (is_idle);
    end
  end

  // Where the followed beat is, and its key: in the register, or at this place of the FIFO, behind those that begin.
  logic       in_register, in_fifo;
  logic [1:0] place, begun;
  assign in_register = out_valid && out_stream == stream_i;
  assign in_fifo     = following_q && !(in_register && before_q == '0);
  assign place       = 2'(before_q - 3'(in_register));
  always_comb begin
    begun = '0;
    for (int k = 0; k < int'(Places); k++) if (2'(k) < place) begun += 2'(begins[stream_i][k]);
  end
  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      assert (inside_q == counts[stream_i] + 3'(in_register));
      if (following_q) assert (before_q < inside_q);
      if (following_q && !in_fifo) assert (out_beat == beat_q && !waits_q);
      if (in_fifo) assert ({entries[stream_i][place][EntryW-1:512], entries[stream_i][place][bit_i]} == beat_q);
      if (in_fifo && is_first_q) begin
        assert (begins[stream_i][place]);
        assert (waits_q == !(due[stream_i] && place == '0));
        if (!waits_q) assert (dut.class_q == class_q && dut.weight_q == weight_q);
      end
      if (waits_q) begin
        assert (in_fifo && is_first_q && 3'(turns_q) + 3'(due[stream_i]) == 3'(begun));
        assert (turns_q < keys[stream_i] && key[stream_i][turns_q] == {class_q, weight_q});
        if (is_next) assert (dut.u_order.waits_q[stream_i]);
      end
    end
  end

  // The order of the streams: both relations are total, and the one that decides goes by class.
  logic [Streams-1:0]              looked;
  logic [Streams-1:0][Streams-1:0] goes, older;
  assign looked = dut.u_order.waits_q;
  assign goes   = dut.u_order.before_q;
  assign older  = dut.u_order.older_q;
  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      for (int i = 0; i < int'(Streams); i++) begin
        if (looked[i]) assert (key_valid[i][0]);
        assert (!older[i][i]);
        for (int j = 0; j < int'(Streams); j++) begin
          if (i != j) assert (older[i][j] == !older[j][i]);
          if (i != j && looked[i] && looked[j]) begin
            assert (goes[i][j] == !goes[j][i]);
            if (goes[i][j]) assert (head_class[i] <= head_class[j]);
          end
          for (int k = 0; k < int'(Streams); k++) begin
            if (older[i][j] && older[j][k]) assert (older[i][k]);
            if (looked[i] && looked[j] && looked[k] && i != k && goes[i][j] && goes[j][k]) assert (goes[i][k]);
          end
        end
        // The followed stream was served before those that were since, and gives way to shares alone.
        if (served_q[i]) begin
          assert (i != int'(32'(stream_i)) && older[stream_i][i]);
          if (looked[i] && looked[stream_i] && goes[i][stream_i] && head_class[i] == head_class[stream_i]) begin
            assert (ahead_past_q[head_class[i]][stream_i] && !ahead_past_q[head_class[i]][i]);
          end
        end
        for (int c = 0; c < int'(NumClasses); c++) begin
          if (spent_q[c][i]) assert (dut.ahead[c][i] || !dut.ahead[c][stream_i]);
          if (spent_past_q[c][i]) assert (ahead_past_q[c][i] || !ahead_past_q[c][stream_i]);
        end
      end
    end
  end

  // The proof is not empty: these can be reached.
  if (Late) begin : g_late
    // Five turns from the beat on that used up a share, which was told a cycle ago. Frames have one beat and the wire
    // is free: that is enough to reach it, and it is reached sooner.
    logic [3:0]         again_q;
    logic               used_up_q;
    logic [StreamW-1:0] used_stream_q;
    always_ff @(posedge clk_i) begin
      again_q       <= rst_ni ? {again_q[2:0], again} : '0;
      used_up_q     <= rst_ni && used_up && used_class == class_q;
      used_stream_q <= used_stream;
      assume (rst_ni == started_q && out_ready_i && in_last_i == '1 && !start_valid_i);
      cover (started_q && used_up_q && again && again_q == '1 && dut.grant[used_stream_q]);
    end
  end else begin : g_soon
    always_ff @(posedge clk_i) begin
      if (started_q && rst_ni) begin
        cover (leaves && following_q && before_q == '0 && out_early && out_abort && out_last && open_q);
        cover (passed && class_q > dut.class_d);
        cover (is_next && dut.key_pop[stream_i] && $countones(served_q) == int'(Streams) - 1);
        cover (&in_valid_i && in_ready == '0);
        cover (no_gap_q && turned_q);
      end
    end
  end

endmodule

`default_nettype wire

// What is proved of nic/rtl/egress/frame_guard.sv, for every length of run, by k-induction (nic/formal/frame_guard.sby):
//   - what is offered stands until it is taken, whatever happens to the engines;
//   - beats on the wire are whole frames: one that is begun ends, with its last beat or with one that says `abort`, before
//     another begins;
//   - of a frame that began early a beat is offered in every cycle from its first one on until its last was taken;
//   - what became of an early frame is told when its last beat has come, once: it is bad if a beat of it was dropped,
//     which is when its end with `abort` has been put in front of the wire, or if the engines said that it will not be
//     whole; otherwise whole, and every beat of it was put in front of the wire.
//
// Assumed, of the engines: a beat that is offered stands until it is taken; frames follow each other beat by beat; an early
// frame has two beats or more, and `abort` comes with the last beat of such a one only; after a reset of theirs (`cut`)
// they begin anew, and offer nothing in the cycle behind it.
//
// That the two places in front of the wire are a FIFO is proved of base/fifo (fifo_proof.sv); one bit of the data is followed
// here, the others lie beside it in the same word.

`default_nettype none

module frame_guard_proof (
  input logic         clk_i,
  input logic         rst_ni,
  input logic         cut_i,
  input logic         in_valid_i,
  input logic [511:0] in_data_i,
  input logic [6:0]   in_bytes_i,
  input logic         in_last_i,
  input logic         in_queue_i,
  input logic         in_early_i,
  input logic         in_abort_i,
  input logic         out_ready_i
);

  logic         in_ready, out_valid, out_last, out_abort, out_queue, shown_valid, shown_bad, shown_broken, underrun;
  logic [511:0] out_data;
  logic [6:0]   out_bytes;

  frame_guard #(.QueueW(1)) dut (
    .clk_i, .rst_ni, .cut_i, .in_valid_i, .in_ready_o(in_ready), .in_data_i, .in_bytes_i, .in_last_i, .in_queue_i,
    .in_early_i, .in_abort_i, .out_valid_o(out_valid), .out_ready_i, .out_data_o(out_data), .out_bytes_o(out_bytes),
    .out_last_o(out_last), .out_abort_o(out_abort), .out_queue_o(out_queue), .shown_valid_o(shown_valid),
    .shown_bad_o(shown_bad), .shown_broken_o(shown_broken), .count_underruns_o(underrun)
  );

  logic take, given;
  assign take  = in_valid_i && in_ready;
  assign given = out_valid && out_ready_i;

  // ---------------------------------------------------------------------------------------------- the engines
  logic       started_q = 1'b0;
  // A frame is coming in: of what kind, and how many of its beats have come, up to 3.
  logic       coming_q, coming_early_q, cut_q, stalled_q;
  logic [1:0] came_q;
  logic [10:0] stalled_side_q;

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    if (!started_q) assume (!rst_ni);
    stalled_q      <= rst_ni && in_valid_i && !in_ready && !cut_i;
    stalled_side_q <= {in_data_i[0], in_bytes_i, in_last_i, in_early_i, in_abort_i};
    cut_q          <= rst_ni && cut_i;
    if (started_q && rst_ni) begin
      if (stalled_q) begin
        assume (in_valid_i && stalled_side_q == {in_data_i[0], in_bytes_i, in_last_i, in_early_i, in_abort_i});
      end
      if (cut_q) assume (!in_valid_i);
      if (in_valid_i) begin
        if (coming_q) assume (in_early_i == coming_early_q);
        if (in_early_i && !coming_q) assume (!in_last_i);
        if (in_abort_i) assume (in_early_i && in_last_i);
      end
    end
    if (!rst_ni || cut_i) begin
      coming_q <= 1'b0;
      came_q   <= '0;
    end else if (take) begin
      coming_q       <= !in_last_i;
      coming_early_q <= in_early_i;
      came_q         <= in_last_i ? '0 : (came_q == 2'd3) ? came_q : came_q + 1'b1;
    end
  end

  // ---------------------------------------------------------------------------------------------- the wire
  logic       open_q, waited_q, dry_q, dropped_q;
  logic [9:0] side, waited_side_q;
  assign side = {out_data[0], out_bytes, out_last, out_abort};

  always_ff @(posedge clk_i) begin
    waited_q      <= rst_ni && out_valid && !out_ready_i;
    waited_side_q <= side;
    dry_q         <= rst_ni && given && dut.beat_early && !out_last;
    if (!rst_ni) open_q <= 1'b0;
    else if (given) open_q <= !out_last;
    // Of the frame that comes in, since its first beat: one was dropped.
    if (!rst_ni || cut_i || (take && in_last_i)) dropped_q <= 1'b0;
    else if (dut.starves) dropped_q <= 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      if (waited_q) assert (out_valid && side == waited_side_q);
      if (out_valid && out_abort) assert (out_last);
      if (given && out_abort) assert (open_q);
      if (dry_q) assert (out_valid);
      if (take && !dut.push) assert (dropped_q);
    end
  end
  logic told_bad_q, told_q;
  always_ff @(posedge clk_i) begin
    told_q     <= rst_ni && take && in_early_i && in_last_i && !cut_i;
    told_bad_q <= dropped_q || in_abort_i;
    if (started_q && rst_ni) begin
      assert (shown_valid == told_q);
      if (told_q) assert (shown_bad == told_bad_q);
    end
  end

  // ---------------------------------------------------------------------------------------------- invariants
  // The two places of the FIFO: the one at its head, and the one behind it.
  logic       head_last, tail_last, head_early, tail_early, head_abort, tail_abort;
  assign {head_last, head_abort, head_early} = dut.u_beats.mem[dut.u_beats.read_q][3:1];
  assign {tail_last, tail_abort, tail_early} = dut.u_beats.mem[!dut.u_beats.read_q][3:1];
  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      assert (dut.count <= 2'd2 && dut.u_beats.read_q + dut.count[0] == dut.u_beats.write_q);
      assert (dut.is_open_q == open_q);
      assert (dut.drops_q == dropped_q && !(dut.drops_q && dut.inside_q) && !(dut.owes_q && dut.inside_q));
      if (dut.drops_q) assert (coming_q && coming_early_q);
      if (coming_q && !dut.drops_q) assert (dut.inside_q);
      if (dut.inside_q) assert (coming_q);
      // What was put in last is inside a frame, or ended it.
      if (dut.count == 2'd1) assert (head_last == !(dut.inside_q || dut.owes_q));
      if (dut.count == 2'd2) assert (tail_last == !(dut.inside_q || dut.owes_q));
      if (dut.count == 2'd0) assert (open_q == (dut.inside_q || dut.owes_q));
      if (dut.count == 2'd1 && dut.inside_q) assert (head_early == coming_early_q);
      if (dut.count == 2'd2 && dut.inside_q) assert (tail_early == coming_early_q);
      // An early beat that does not end its frame is not the last thing that the wire will have.
      if (dut.count == 2'd0 && dut.inside_q) assert (!coming_early_q);
      if (dut.count == 2'd2 && !head_last && head_early && !tail_abort) assert (tail_early);
      if (dut.count == 2'd2 && !head_last && !head_early) assert (!tail_early || tail_abort);
      if (dut.count != '0 && head_abort) assert (head_last && open_q);
      if (dut.count == 2'd2 && tail_abort) assert (tail_last && !head_last);
    end
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      cover (shown_valid && shown_bad && given && out_abort);
      cover (shown_valid && !shown_bad);
      cover (given && out_abort && cut_q);
    end
  end

endmodule

`default_nettype wire

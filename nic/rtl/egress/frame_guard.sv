// The last register in front of the MAC. It alone outlives a reset of the engines, so that whoever listens behind it
// never sees a frame without an end, or the front of one frame before the rest of another. And it is the place that
// knows when the wire has run dry inside a frame that began before all of it was there (`early`).
//
// Guarantees
//   - What was offered stands until it is taken, across a reset of the engines too (AXI-Stream).
//   - A frame that was cut short by `cut_i` ends with a beat that has `last` and `abort`: the MAC must spoil its check
//     sequence, as for an underrun. A frame of which no beat had been taken from the engines leaves no trace.
//   - Once the first beat of an early frame was offered, a beat is offered in every cycle until its last one is taken:
//     if one is taken with nothing behind it, the next one ends the frame with `abort`, and what still comes of it is
//     dropped. Its first beat is offered when two are here.
//   - Of each early frame is told, in order, what became of it, when its last beat has come: `shown`, whole or `bad`.
//     What is told to be whole was offered whole, and ends without `abort`.
// Limits: `cut_i` comes in the cycle in which the engines are reset; they offer nothing in the cycle behind it. An early
//   frame has two beats or more. Beats of other frames may pause, and the wire waits for them.
// Latency: 1 cycle, one beat a cycle. Cost: 2 x (523 + QueueW) bits. Proof: nic/formal/frame_guard.sby, unbounded. Twin:
// egress/wire.rs in nic/model.

`default_nettype none

module frame_guard #(
  // Bits of a queue's number.
  parameter int unsigned QueueW = 6
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              cut_i,

  input  logic              in_valid_i,
  output logic              in_ready_o,
  input  logic [511:0]      in_data_i,
  input  logic [6:0]        in_bytes_i,
  input  logic              in_last_i,
  input  logic [QueueW-1:0] in_queue_i,
  input  logic              in_early_i,
  input  logic              in_abort_i,

  output logic              out_valid_o,
  input  logic              out_ready_i,
  output logic [511:0]      out_data_o,
  output logic [6:0]        out_bytes_o,
  output logic              out_last_o,
  output logic              out_abort_o,
  output logic [QueueW-1:0] out_queue_o,

  // An early frame's last beat has come. `broken`: what comes of one is dropped.
  output logic              shown_valid_o,
  output logic              shown_bad_o,
  output logic              shown_broken_o,
  output logic              count_underruns_o
);

  logic              inside_q, inside_d, owes_q, owes_d, room, take, push, starves, drops_q, drops_d, spoils;
  logic              beat_valid, beat_early, is_open_q;
  logic [QueueW-1:0] queue_q;
  logic [1:0]        count;
  logic              unused_count;

  // The beat that ends what was cut short goes first; the engines are still being reset then.
  assign in_ready_o = (room && !owes_q) || drops_q;
  assign take       = in_valid_i && in_ready_o;
  assign push       = take && !drops_q;
  // The wire takes the last beat that is here of a frame that cannot pause, and none comes in.
  assign starves    = out_valid_o && out_ready_i && beat_early && !out_last_o && !count[1] && !in_valid_i && !owes_q;

  always_comb begin
    inside_d = push ? !in_last_i : inside_q;
    owes_d   = owes_q && !room;
    drops_d  = drops_q && !(take && in_last_i);
    if (starves) begin
      inside_d = 1'b0;
      drops_d  = 1'b1;
    end
    if (cut_i) begin
      owes_d   = owes_d || inside_d;
      inside_d = 1'b0;
      drops_d  = 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      inside_q          <= 1'b0;
      owes_q            <= 1'b0;
      drops_q           <= 1'b0;
      is_open_q         <= 1'b0;
      shown_valid_o     <= 1'b0;
      count_underruns_o <= 1'b0;
    end else begin
      inside_q          <= inside_d;
      owes_q            <= owes_d;
      drops_q           <= drops_d;
      if (out_valid_o && out_ready_i) is_open_q <= !out_last_o;
      shown_valid_o     <= take && in_early_i && in_last_i && !cut_i;
      count_underruns_o <= starves;
    end
    shown_bad_o <= drops_q || in_abort_i;
    if (push) queue_q <= in_queue_i;
  end
  assign shown_broken_o = drops_q;

  assign unused_count = count[0];

  // A beat that spoils its frame says nothing else.
  assign spoils = owes_q || starves || in_abort_i;

  fifo #(.Width(512 + 7 + 3 + QueueW), .Depth(2)) u_beats (
    .clk_i, .rst_ni,
    .push_valid_i((in_valid_i && !drops_q) || owes_q || starves), .push_ready_o(room),
    .push_data_i(spoils ? {512'd0, 7'd1, 1'b1, 1'b1, 1'b0, queue_q}
                        : {in_data_i, in_bytes_i, in_last_i, 1'b0, in_early_i, in_queue_i}),
    .pop_valid_o(beat_valid), .pop_ready_i(out_ready_i && out_valid_o),
    .pop_data_o({out_data_o, out_bytes_o, out_last_o, out_abort_o, beat_early, out_queue_o}), .count_o(count)
  );
  assign out_valid_o = beat_valid && (is_open_q || !beat_early || count[1] || out_last_o);

`ifndef SYNTHESIS
  logic dry_q;
  always_ff @(posedge clk_i) begin
    dry_q <= rst_ni && out_valid_o && out_ready_i && beat_early && !out_last_o;
    if (rst_ni) begin
      a_abort_ends_what_is_open : assert (!(out_valid_o && out_abort_o) || out_last_o);
      a_abort_only_inside : assert (!(out_valid_o && out_ready_i && out_abort_o) || is_open_q);
      a_owes_alone : assert (!(owes_q && inside_q));
      a_never_dry : assert (!dry_q || out_valid_o);
      a_abort_is_last : assert (!(in_valid_i && in_abort_i) || (in_early_i && in_last_i));
      a_one_frame : assert (!(in_valid_i && drops_q) || in_early_i);
    end
  end
`endif

endmodule

`default_nettype wire

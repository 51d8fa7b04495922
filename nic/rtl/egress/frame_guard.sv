// The last register in front of the MAC. It alone outlives a reset of the engines, so that whoever listens behind it
// never sees a frame without an end, or the front of one frame before the rest of another.
//
// Guarantees
//   - What was offered stands until it is taken, across a reset of the engines too (AXI-Stream).
//   - A frame that was cut short by `cut_i` ends with a beat that has `last` and `abort`: the MAC must spoil its check
//     sequence, as for an underrun. A frame of which no beat had been taken from the engines leaves no trace.
// Limits: `cut_i` comes in the cycle in which the engines are reset; they offer nothing in the cycle behind it.
// Latency: 1 cycle, one beat a cycle. Cost: 2 x (521 + QueueW) bits. Twin: none, a model's frames are whole.

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

  output logic              out_valid_o,
  input  logic              out_ready_i,
  output logic [511:0]      out_data_o,
  output logic [6:0]        out_bytes_o,
  output logic              out_last_o,
  output logic              out_abort_o,
  output logic [QueueW-1:0] out_queue_o
);

  logic              inside_q, inside_d, owes_q, owes_d, room, push;
  logic [QueueW-1:0] queue_q;
  logic [1:0]        unused_count;

  // The beat that ends what was cut short goes first; the engines are still being reset then.
  assign in_ready_o = room && !owes_q;
  assign push       = in_valid_i && in_ready_o;

  always_comb begin
    inside_d = push ? !in_last_i : inside_q;
    owes_d   = owes_q && !room;
    if (cut_i) begin
      owes_d   = owes_d || inside_d;
      inside_d = 1'b0;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      inside_q <= 1'b0;
      owes_q   <= 1'b0;
    end else begin
      inside_q <= inside_d;
      owes_q   <= owes_d;
    end
    if (push) queue_q <= in_queue_i;
  end

  fifo #(.Width(512 + 7 + 2 + QueueW), .Depth(2)) u_beats (
    .clk_i, .rst_ni,
    .push_valid_i(in_valid_i || owes_q), .push_ready_o(room),
    .push_data_i(owes_q ? {512'd0, 7'd1, 1'b1, 1'b1, queue_q}
                        : {in_data_i, in_bytes_i, in_last_i, 1'b0, in_queue_i}),
    .pop_valid_o(out_valid_o), .pop_ready_i(out_ready_i),
    .pop_data_o({out_data_o, out_bytes_o, out_last_o, out_abort_o, out_queue_o}), .count_o(unused_count)
  );

`ifndef SYNTHESIS
  logic open_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) open_q <= 1'b0;
    else if (out_valid_o && out_ready_i) open_q <= !out_last_o;
    if (rst_ni) begin
      a_abort_ends_what_is_open : assert (!(out_valid_o && out_abort_o) || out_last_o);
      a_abort_only_inside : assert (!(out_valid_o && out_ready_i && out_abort_o) || open_q);
      a_owes_alone : assert (!(owes_q && inside_q));
    end
  end
`endif

endmodule

`default_nettype wire

// Two lines a cycle come in, and each goes to the engine of its queue: even queues to one, odd queues to the other.
//
// One engine takes a line a cycle, whatever its queues. Two of them with a queue's lines always at the same one need no
// order between them: order is kept inside a queue, and nowhere else. FIFOs in front of the engines take up runs of
// lines for the same one. Each is two FIFOs that are filled and emptied in turn, so that two lines enter at once.
//
// Guarantees
//   - Lines of a queue leave in the order in which they came, piece 0 of a pair before piece 1; none lost, none twice.
//   - A pair is taken whole or not at all. `pair_ready_o` comes from registers.
//   - Two lines a cycle while each engine has to take one; one a cycle if all of them are for the same one.
// Limits
//   - With both engines ready and the share p of the lines for one of them, p at least a half, at most 1 / p lines a
//     cycle. Where it is chance who is next, a little less, when the FIFO of one is full while the other's is empty:
//     1.97 with p a half and Depth 64 (measured, nic/tb/pair; 1.66 with 60 %, 1.34 with 75 %, 1.11 with 90 %).
//   - An engine that takes nothing stops both, when its FIFO is full.
// Latency: 1 cycle. Cost: 2 x Depth x (579 + LineW + QueueW) bits of LUTRAM (with Depth 64 about 1,400 LUT), and a
// choice of one in two before and behind it. Twin in nic/model: none, a model has no cycles.

`default_nettype none

module line_pair #(
  // Queues of both engines, even, 4 to 1024.
  parameter int unsigned NumQueues = 64,
  // log2 of the lines of the longest window.
  parameter int unsigned LineW = 6,
  // Lines that may wait for each engine: a power of two, 4 to 128.
  parameter int unsigned Depth = 64,
  localparam int unsigned QueueW = $clog2(NumQueues),
  localparam int unsigned LocalW = $clog2(NumQueues / 2)
) (
  input  logic                        clk_i,
  input  logic                        rst_ni,

  // Two pieces of lines, either or both: piece 0 was written before piece 1.
  input  logic [1:0]                  pair_valid_i,
  output logic                        pair_ready_o,
  input  logic [1:0][QueueW-1:0]      pair_queue_i,
  input  logic [1:0][LineW-1:0]       pair_line_i,
  input  logic [1:0][511:0]           pair_data_i,
  input  logic [1:0][63:0]            pair_be_i,
  input  logic [1:0]                  pair_whole_i,
  input  logic [1:0]                  pair_first_i,
  input  logic [1:0]                  pair_last_i,

  // To the engines; queue 2n + e is queue n of engine e.
  output logic [1:0]                  piece_valid_o,
  input  logic [1:0]                  piece_ready_i,
  output logic [1:0][LocalW-1:0]      piece_queue_o,
  output logic [1:0][LineW-1:0]       piece_line_o,
  output logic [1:0][511:0]           piece_data_o,
  output logic [1:0][63:0]            piece_be_o,
  output logic [1:0]                  piece_whole_o,
  output logic [1:0]                  piece_first_o,
  output logic [1:0]                  piece_last_o,

  output logic                        is_empty_o
);

  localparam int unsigned PieceW = LocalW + LineW + 512 + 64 + 3;

  if (NumQueues < 4 || NumQueues > nic_pkg::MaxQueues || NumQueues % 2 != 0) begin : g_bad_queues
    $fatal(1, "line_pair: NumQueues must be even, 4 to 1024");
  end
  if (Depth < 4 || Depth > 128 || (Depth & (Depth - 1)) != 0) begin : g_bad_depth
    $fatal(1, "line_pair: Depth must be a power of two from 4 to 128");
  end

  logic [1:0][PieceW-1:0] pieces;
  logic [1:0]             is_odd;
  logic [1:0][1:0]        room, waits;

  for (genvar i = 0; i < 2; i++) begin : g_piece
    assign is_odd[i] = pair_queue_i[i][0];
    assign pieces[i] = {pair_queue_i[i][QueueW-1:1], pair_line_i[i], pair_whole_i[i], pair_first_i[i],
                        pair_last_i[i], pair_be_i[i], pair_data_i[i]};
  end

  assign pair_ready_o = &room;
  assign is_empty_o   = waits == '0;

  for (genvar e = 0; e < 2; e++) begin : g_engine
    logic [1:0]             wants, push;
    logic [1:0][PieceW-1:0] in, out;
    logic                   write_q, read_q, pop;

    assign wants = pair_valid_i & ((e == 1) ? is_odd : ~is_odd);
    assign pop   = piece_valid_o[e] && piece_ready_i[e];

    for (genvar b = 0; b < 2; b++) begin : g_bank
      // The bank in turn takes the first piece for this engine, the other one the second.
      assign push[b] = pair_ready_o && (wants == 2'b11 || (wants != 2'b00 && write_q == 1'(b)));
      assign in[b]   = (wants[0] && (!wants[1] || write_q == 1'(b))) ? pieces[0] : pieces[1];

      fifo #(.Width(PieceW), .Depth(Depth / 2)) u_bank (
        .clk_i, .rst_ni,
        .push_valid_i(push[b]), .push_ready_o(room[e][b]), .push_data_i(in[b]),
        .pop_valid_o(waits[e][b]), .pop_ready_i(piece_ready_i[e] && read_q == 1'(b)), .pop_data_o(out[b]), .count_o()
      );
    end

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        write_q <= 1'b0;
        read_q  <= 1'b0;
      end else begin
        if (pair_ready_o) write_q <= write_q ^ wants[0] ^ wants[1];
        if (pop) read_q <= !read_q;
      end
    end

    assign piece_valid_o[e] = waits[e][read_q];
    assign {piece_queue_o[e], piece_line_o[e], piece_whole_o[e], piece_first_o[e], piece_last_o[e], piece_be_o[e],
            piece_data_o[e]} = out[read_q];
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      for (int i = 0; i < 2; i++) begin
        a_queue_exists : assert (!pair_valid_i[i] || 32'(pair_queue_i[i]) < NumQueues);
      end
    end
  end
`endif

endmodule

`default_nettype wire

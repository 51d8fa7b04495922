// What is proved of nic/rtl/mmio/bar_ingress.sv, for every length of run, by k-induction
// (nic/formal/bar_ingress.sby):
//   - a line that names a line of a queue's window, and only such a one, leaves for that queue's engine, as that
//     line, with its bytes and enables unchanged: what lies in one window never reaches another; all of them leave,
//     in order;
//   - a write of one whole aligned word below the aperture, and no other, leaves for the registers, at its address;
//   - everything else goes nowhere and is counted, once a write, however many lines it has;
//   - valid, and all that goes with it, stand still until they are taken.
//
// Assumed: the straps do not move; windows are a power of two of lines and as far apart or further, the aperture a
// multiple of that distance; a queue's engine does not change while a line for it stands here; addresses are those of
// lines; a write is a first line, others, a last line. All else is free, reset in the middle of traffic included.
//
// Proved for 3 queues, windows of up to 8 lines, pages of 512 bytes or more and a BAR of 8 KiB. Bytes are passed on
// by whole words, of which nothing but their enables is looked at; an address enters by one subtraction, two masks
// and two comparisons.

`default_nettype none

module bar_ingress_proof #(
  localparam int unsigned NumQueues = 3,
  localparam int unsigned LineW = 3,
  localparam int unsigned AddressW = 13,
  localparam int unsigned QueueW = 2
) (
  input logic                clk_i,
  input logic                rst_ni,
  input logic [AddressW-1:0] aperture_i,
  input logic [4:0]          stride_log2_i,
  input logic [LineW-1:0]    window_mask_i,
  input logic                hold_i,
  input logic                wr_valid_i,
  input logic [AddressW-1:0] wr_address_i,
  input logic [511:0]        wr_data_i,
  input logic [63:0]         wr_be_i,
  input logic                wr_first_i,
  input logic                wr_last_i,
  input logic                piece_ready_i,
  input logic                register_ready_i,
  // Which engine each queue has.
  input logic [3:0][3:0]     routes_i
);

  logic                wr_ready, piece_valid, piece_whole, piece_first, piece_last, register_valid, is_idle, bad;
  logic [QueueW-1:0]   route_queue, route_queue_q, piece_queue;
  logic [3:0]          piece_route;
  logic [LineW-1:0]    piece_line;
  logic [511:0]        piece_data;
  logic [63:0]         piece_be, register_value;
  logic [AddressW-1:0] register_address;

  bar_ingress #(.NumQueues(NumQueues), .LineW(LineW), .AddressW(AddressW)) dut (
    .clk_i, .rst_ni, .aperture_i, .stride_log2_i, .window_mask_i, .hold_i, .wr_valid_i, .wr_ready_o(wr_ready),
    .wr_address_i, .wr_data_i, .wr_be_i, .wr_first_i, .wr_last_i, .route_queue_o(route_queue),
    .route_i(routes_i[route_queue_q]), .piece_valid_o(piece_valid), .piece_ready_i, .piece_route_o(piece_route),
    .piece_queue_o(piece_queue), .piece_line_o(piece_line), .piece_data_o(piece_data), .piece_be_o(piece_be),
    .piece_whole_o(piece_whole), .piece_first_o(piece_first), .piece_last_o(piece_last),
    .register_valid_o(register_valid), .register_ready_i, .register_address_o(register_address),
    .register_value_o(register_value), .is_idle_o(is_idle), .count_bad_accesses_o(bad)
  );

  // The line that was taken last, while it stands; whether its write was counted before it.
  logic                started_q = 1'b0;
  logic                held_q = 1'b0;
  logic                inside_q = 1'b0;
  logic                waited_q = 1'b0;
  logic                counted_q, first_q, last_q, take, leaves;
  logic [AddressW-1:0] address_q, aperture_q;
  logic [511:0]        data_q;
  logic [63:0]         be_q;
  logic [3:0][3:0]     routes_q;
  logic [4:0]          stride_q;
  logic [LineW-1:0]    mask_q;
  assign take   = wr_valid_i && wr_ready;
  assign leaves = held_q && !(piece_valid && !piece_ready_i) && !(register_valid && !register_ready_i);

  always_ff @(posedge clk_i) begin
    started_q     <= 1'b1;
    waited_q      <= rst_ni && held_q && !leaves;
    aperture_q    <= aperture_i;
    stride_q      <= stride_log2_i;
    mask_q        <= window_mask_i;
    routes_q      <= routes_i;
    route_queue_q <= route_queue;
    if (!started_q) assume (!rst_ni);
    else assume (aperture_i == aperture_q && stride_log2_i == stride_q && window_mask_i == mask_q);
    assume ((window_mask_i & (window_mask_i + 1'b1)) == '0 && stride_log2_i >= 5'd9 && stride_log2_i <= 5'd12);
    assume ((aperture_i & ((AddressW'(1) << stride_log2_i) - 1'b1)) == '0);
    assume (wr_address_i[5:0] == '0);
    if (waited_q) assume (routes_i == routes_q);
    if (wr_valid_i) assume (wr_first_i == !inside_q);
    if (!rst_ni) begin
      held_q    <= 1'b0;
      inside_q  <= 1'b0;
      counted_q <= 1'b0;
    end else begin
      if (take) inside_q <= !wr_last_i;
      if (take || leaves) held_q <= take;
      if (leaves) counted_q <= !last_q && (bad || (counted_q && !first_q));
    end
    if (take) {address_q, data_q, be_q, first_q, last_q} <= {wr_address_i, wr_data_i, wr_be_i, wr_first_i, wr_last_i};
  end

  // What the address names, said once more: the queue by division, the line by what is left.
  logic [AddressW-1:0] offset, queue, line;
  logic                is_piece, is_word;
  logic [7:0]          full, any;
  assign offset   = address_q - aperture_i;
  assign queue    = offset >> stride_log2_i;
  assign line     = (offset - (queue << stride_log2_i)) >> 6;
  assign is_piece = address_q >= aperture_i && queue < AddressW'(NumQueues) && line <= AddressW'(window_mask_i)
                    && routes_i[queue[QueueW-1:0]] != '0 && be_q != '0;
  always_comb begin
    for (int i = 0; i < 8; i++) begin
      full[i] = &be_q[8*i +: 8];
      any[i]  = |be_q[8*i +: 8];
    end
  end
  assign is_word = address_q < aperture_i && first_q && last_q && full == any && $onehot(full);

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      assert (is_idle == !held_q && piece_valid == (held_q && is_piece) && register_valid == (held_q && is_word));
      if (piece_valid) begin
        assert (AddressW'(piece_queue) == queue && AddressW'(piece_line) == line && piece_be == be_q);
        assert (piece_data == data_q && piece_whole == (be_q == '1) && {piece_first, piece_last} == {first_q, last_q});
        assert (piece_route == routes_i[piece_queue]);
      end
      if (register_valid) begin
        assert (register_address[AddressW-1:6] == address_q[AddressW-1:6]);
        assert (full == 8'd1 << register_address[5:3] && register_address[2:0] == '0);
        assert (register_value == data_q[64 * register_address[5:3] +: 64]);
      end
      assert (bad == (held_q && !is_piece && !is_word && (first_q || !counted_q)));
      if (waited_q) assert (piece_valid || register_valid);
      if (held_q && !leaves) assert (!take);
      // Invariants that make it inductive.
      if (held_q) assert (dut.valid_q && inside_q == !last_q && (first_q || !counted_q || dut.had_bad_q));
      assert (dut.had_bad_q == counted_q);
      if (held_q) begin
        assert (dut.in_aperture_q == (address_q >= aperture_i) && dut.u_line.address_q == address_q[AddressW-1:6]);
        assert (dut.data_q == data_q && dut.be_q == be_q && {dut.first_q, dut.last_q} == {first_q, last_q});
        assert (dut.u_line.words_q == full && dut.whole_q == (be_q == '1));
        assert (dut.is_word_q == (first_q && last_q && full == any && $onehot(full)));
        assert (dut.in_window_q == (address_q >= aperture_i && queue < AddressW'(NumQueues)
                                    && line <= AddressW'(window_mask_i)));
        if (dut.in_window_q) assert (AddressW'(dut.queue_q) == queue && AddressW'(dut.line_q) == line);
        if (dut.in_window_q) assert (route_queue_q == dut.queue_q);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      cover (piece_valid && piece_queue == 2'd2 && piece_line == 3'd5 && waited_q);
      cover (register_valid && register_address == AddressW'(24));
      cover (held_q && !is_piece && !is_word && counted_q && !first_q);
    end
  end

endmodule

`default_nettype wire

// What is proved of nic/rtl/mmio/pair_ingress.sv, for every length of run, by k-induction
// (nic/formal/pair_ingress.sby), for each of the two lines that are taken together:
//   - a line that names a line of a window leaves for the engine of that queue, as that line, its bytes and enables
//     unchanged: for mmio as a part of a pair, for another engine alone; a write of one whole aligned word below the
//     aperture, and no other, leaves for the registers; everything else goes nowhere and is counted, once a write;
//   - line 1 leaves behind line 0, or in the same cycle as a pair for mmio: nothing passes a register write;
//   - nothing is taken in the cycle in which a register write stands here, and nothing leaves while one has its effect;
//   - every line leaves, and what is offered stands until it is taken.
//
// Assumed: as for bar_ingress, and that `busy_i` begins only in the cycle behind a register write that was taken,
// and nothing may be taken with it. A queue's engine may change while it is high, and only then.
//
// Proved for 3 queues, windows of up to 8 lines, pages of 512 bytes or more and a BAR of 8 KiB; why that stands for all
// is said in bar_ingress_proof.sv.

`default_nettype none

module pair_ingress_proof #(
  localparam int unsigned NumQueues = 3,
  localparam int unsigned LineW = 3,
  localparam int unsigned AddressW = 13,
  localparam int unsigned QueueW = 2
) (
  input logic                     clk_i,
  input logic                     rst_ni,
  input logic [AddressW-1:0]      aperture_i,
  input logic [4:0]               stride_log2_i,
  input logic [LineW-1:0]         window_mask_i,
  input logic                     hold_i,
  input logic                     busy_i,
  input logic [1:0]               wr_valid_i,
  input logic [1:0][AddressW-1:0] wr_address_i,
  input logic [1:0][511:0]        wr_data_i,
  input logic [1:0][63:0]         wr_be_i,
  input logic [1:0]               wr_first_i,
  input logic [1:0]               wr_last_i,
  input logic                     pair_ready_i,
  input logic                     piece_ready_i,
  input logic                     register_ready_i,
  // Which engine each queue has.
  input logic [3:0][3:0]          routes_i
);

  localparam logic [3:0] Mmio = 4'(nic_pkg::QueueControlIfaceMmio);

  logic                     wr_ready, piece_valid, piece_whole, piece_first, piece_last, register_valid, is_idle, bad;
  logic [1:0]               pair_valid, pair_whole, pair_first, pair_last;
  logic [1:0][QueueW-1:0]   route_queue, route_queue_q, pair_queue;
  logic [1:0][3:0]          route;
  logic [1:0][LineW-1:0]    pair_line;
  logic [1:0][511:0]        pair_data;
  logic [1:0][63:0]         pair_be;
  logic [3:0]               piece_route;
  logic [QueueW-1:0]        piece_queue;
  logic [LineW-1:0]         piece_line;
  logic [511:0]             piece_data;
  logic [63:0]              piece_be, register_value;
  logic [AddressW-1:0]      register_address;
  logic [3:0][3:0]          routes_q;

  // The table answers with what it held when it was asked; what it holds for the lines that stand here.
  logic [1:0][3:0]          answer;
  assign answer = {routes_q[route_queue_q[1]], routes_q[route_queue_q[0]]};

  pair_ingress #(.NumQueues(NumQueues), .LineW(LineW), .AddressW(AddressW)) dut (
    .clk_i, .rst_ni, .aperture_i, .stride_log2_i, .window_mask_i, .hold_i, .busy_i, .wr_valid_i, .wr_ready_o(wr_ready),
    .wr_address_i, .wr_data_i, .wr_be_i, .wr_first_i, .wr_last_i, .route_queue_o(route_queue), .route_i(route),
    .pair_valid_o(pair_valid), .pair_ready_i, .pair_queue_o(pair_queue), .pair_line_o(pair_line),
    .pair_data_o(pair_data), .pair_be_o(pair_be), .pair_whole_o(pair_whole), .pair_first_o(pair_first),
    .pair_last_o(pair_last), .piece_valid_o(piece_valid), .piece_ready_i, .piece_route_o(piece_route),
    .piece_queue_o(piece_queue), .piece_line_o(piece_line), .piece_data_o(piece_data), .piece_be_o(piece_be),
    .piece_whole_o(piece_whole), .piece_first_o(piece_first), .piece_last_o(piece_last),
    .register_valid_o(register_valid), .register_ready_i, .register_address_o(register_address),
    .register_value_o(register_value), .is_idle_o(is_idle), .count_bad_accesses_o(bad)
  );

  // ------------------------------------------------------------------------------ what stands here, kept once more
  logic                     started_q = 1'b0;
  logic                     busy_q = 1'b0;
  logic                     inside_q, counted_q, counted_d, take, behind_register_q, waited_q;
  logic [1:0]               held_q, first_q, last_q, leaves, in_window, is_mmio, is_piece, is_word, is_bad;
  logic [1:0][AddressW-1:0] address_q, queue, line;
  logic [1:0][511:0]        data_q;
  logic [1:0][63:0]         be_q;
  logic [1:0][7:0]          full, any;
  logic [AddressW-1:0]      aperture_q;
  logic [4:0]               stride_q;
  logic [LineW-1:0]         mask_q;
  // The older of the lines, and what was offered of it a cycle ago.
  logic                     older;
  logic [3:0]               offer, offer_q;

  assign take  = wr_valid_i != '0 && wr_ready;
  assign older = !held_q[0];
  assign offer = {pair_valid, piece_valid, register_valid};

  for (genvar i = 0; i < 2; i++) begin : g_line
    logic [AddressW-1:0] offset;
    // What the address names, said once more: the queue by division, the line by what is left.
    assign offset       = address_q[i] - aperture_i;
    assign queue[i]     = offset >> stride_log2_i;
    assign line[i]      = (offset - (queue[i] << stride_log2_i)) >> 6;
    assign in_window[i] = address_q[i] >= aperture_i && queue[i] < AddressW'(NumQueues)
                          && line[i] <= AddressW'(window_mask_i);
    assign route[i]     = routes_q[queue[i][QueueW-1:0]];
    assign is_piece[i]  = in_window[i] && route[i] != '0 && be_q[i] != '0;
    assign is_mmio[i]   = is_piece[i] && route[i] == Mmio;
    assign is_word[i]   = address_q[i] < aperture_i && first_q[i] && last_q[i] && full[i] == any[i]
                          && $onehot(full[i]);
    assign is_bad[i]    = !is_piece[i] && !is_word[i];
    assign leaves[i]    = held_q[i] && !busy_i && (is_mmio[i]
                          ? pair_ready_i && (i == 0 || !held_q[0] || is_mmio[0])
                          : older == 1'(i) && (is_piece[i] ? piece_ready_i : is_word[i] ? register_ready_i : 1'b1));
    for (genvar w = 0; w < 8; w++) begin : g_word
      assign full[i][w] = &be_q[i][8*w +: 8];
      assign any[i][w]  = |be_q[i][8*w +: 8];
    end
  end

  always_comb begin
    counted_d = counted_q;
    for (int i = 0; i < 2; i++) begin
      if (leaves[i]) counted_d = !last_q[i] && (is_bad[i] || (counted_d && !first_q[i]));
    end
  end

  always_ff @(posedge clk_i) begin
    started_q     <= 1'b1;
    aperture_q    <= aperture_i;
    stride_q      <= stride_log2_i;
    mask_q        <= window_mask_i;
    routes_q      <= routes_i;
    route_queue_q <= route_queue;
    waited_q      <= rst_ni && started_q && held_q != '0 && leaves == '0 && !busy_i;
    offer_q       <= offer;
    busy_q        <= rst_ni && busy_i;
    behind_register_q <= rst_ni && register_valid && register_ready_i;
    if (!started_q) assume (!rst_ni);
    else assume (aperture_i == aperture_q && stride_log2_i == stride_q && window_mask_i == mask_q);
    assume ((window_mask_i & (window_mask_i + 1'b1)) == '0 && stride_log2_i >= 5'd9 && stride_log2_i <= 5'd12);
    assume ((aperture_i & ((AddressW'(1) << stride_log2_i) - 1'b1)) == '0);
    for (int i = 0; i < 2; i++) assume (wr_address_i[i][5:0] == '0);
    // Engines of queues change while a register write has its effect, and it begins to have it when it was taken.
    if (started_q && !busy_i) assume (routes_i == routes_q);
    if (busy_i) assume (hold_i);
    if (started_q && !behind_register_q && !busy_q) assume (!busy_i);
    // A write is a first line, others, a last line.
    if (wr_valid_i[0]) assume (wr_first_i[0] == !inside_q);
    if (wr_valid_i[1]) assume (wr_first_i[1] == (wr_valid_i[0] ? wr_last_i[0] : !inside_q));
    if (!rst_ni) begin
      held_q    <= '0;
      inside_q  <= 1'b0;
      counted_q <= 1'b0;
    end else begin
      if (take) inside_q <= wr_valid_i[1] ? !wr_last_i[1] : !wr_last_i[0];
      held_q    <= take ? wr_valid_i : held_q & ~leaves;
      counted_q <= counted_d;
    end
    if (take) {address_q, data_q, be_q, first_q, last_q} <= {wr_address_i, wr_data_i, wr_be_i, wr_first_i, wr_last_i};
  end


  // ------------------------------------------------------------------------------ what is promised
  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      assert (is_idle == (held_q == '0));
      assert (pair_valid[0] == (held_q[0] && is_mmio[0] && !busy_i));
      assert (pair_valid[1] == (held_q[1] && is_mmio[1] && (!held_q[0] || is_mmio[0]) && !busy_i));
      assert (piece_valid == (held_q[older] && is_piece[older] && !is_mmio[older] && !busy_i));
      assert (register_valid == (held_q[older] && is_word[older] && !busy_i));
      assert (bad == (held_q[older] && is_bad[older] && !busy_i && (first_q[older] || !counted_q)));
      for (int i = 0; i < 2; i++) begin
        if (pair_valid[i]) begin
          assert (AddressW'(pair_queue[i]) == queue[i] && AddressW'(pair_line[i]) == line[i]);
          assert (pair_data[i] == data_q[i] && pair_be[i] == be_q[i] && pair_whole[i] == (be_q[i] == '1));
          assert (pair_first[i] == first_q[i] && pair_last[i] == last_q[i]);
        end
      end
      if (piece_valid) begin
        assert (AddressW'(piece_queue) == queue[older] && AddressW'(piece_line) == line[older]);
        assert (piece_data == data_q[older] && piece_be == be_q[older] && piece_whole == (be_q[older] == '1));
        assert (piece_first == first_q[older] && piece_last == last_q[older] && piece_route == route[older]);
      end
      if (register_valid) begin
        assert (register_address[AddressW-1:6] == address_q[older][AddressW-1:6]);
        assert (full[older] == 8'd1 << register_address[5:3] && register_address[2:0] == '0);
        assert (register_value == data_q[older][64 * register_address[5:3] +: 64]);
      end
      // Nothing is taken with lines left here, or with a register write among them.
      if (take) assert ((held_q & ~leaves) == '0 && (held_q & is_word) == '0);
      if (leaves[1]) assert (!held_q[0] || (leaves[0] && is_mmio == 2'b11));
      if (waited_q && !busy_i) assert (offer == offer_q && offer != '0);
      // Invariants that make it inductive.
      assert (dut.valid_q == held_q && dut.had_bad_q == counted_q);
      if (held_q != '0) assert (inside_q == !(held_q[1] ? last_q[1] : last_q[0]));
      if (held_q == 2'b11) assert (first_q[1] == last_q[0]);
      if (held_q != '0) assert (first_q[older] || !counted_q || dut.had_bad_q);
    end
  end

  for (genvar i = 0; i < 2; i++) begin : g_invariant
    always_ff @(posedge clk_i) begin
      if (started_q && rst_ni && held_q[i]) begin
        assert (dut.in_aperture[i] == (address_q[i] >= aperture_i));
        assert (dut.g_line[i].u_line.address_q == address_q[i][AddressW-1:6]);
        assert (dut.g_line[i].u_line.words_q == full[i]);
        assert (pair_data[i] == data_q[i] && pair_be[i] == be_q[i] && pair_whole[i] == (be_q[i] == '1));
        assert (pair_first[i] == first_q[i] && pair_last[i] == last_q[i]);
        assert (dut.has_bytes[i] == (be_q[i] != '0));
        assert (dut.is_word[i] == (first_q[i] && last_q[i] && full[i] == any[i] && $onehot(full[i])));
        assert (dut.in_window[i] == in_window[i]);
        if (in_window[i]) assert (AddressW'(pair_queue[i]) == queue[i] && AddressW'(pair_line[i]) == line[i]);
        if (in_window[i] && !busy_i) begin
          assert (dut.asked_q ? route_queue_q[i] == pair_queue[i] : dut.route_q[i] == route[i]);
        end
        if (busy_q) assert (dut.asked_q);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      cover (pair_valid == 2'b11 && pair_queue[0] == 2'd2 && pair_line[1] == 3'd5 && waited_q);
      cover (register_valid && held_q[1] && older == 1'b0 && register_address == AddressW'(24));
      cover (pair_valid == 2'b10 && busy_q);
      cover (held_q[1] && is_bad[1] && counted_q && !first_q[1] && older);
    end
  end

endmodule

`default_nettype wire

// Where writes come in, two lines a cycle: bar_ingress for two of them.
//
//   two lines -> bar_line, twice -+-> pairs: lines for queues of mmio
//                                 +-> pieces: lines for any other engine -- one by one
//                                 +-> the registers ---------------------- one by one
//
// Guarantees
//   - Those of bar_ingress; of the two lines that are taken together, line 0 was written before line 1. Whatever goes
//     where, a line never goes before or in the same cycle as an older one, but for a pair.
//   - Two lines a cycle while both are for queues of mmio, on any of them; one a cycle otherwise.
//   - A line behind a register write waits until that has had its effect, the start of the line's own queue included.
// Limits: both lines are taken or none. Latency 1 cycle. Twin: that of bar_ingress.

`default_nettype none

module pair_ingress #(
  parameter int unsigned NumQueues = 64,
  // log2 of the lines of the longest window.
  parameter int unsigned LineW = 6,
  // Bits of an offset in the BAR, 12 to 40.
  parameter int unsigned AddressW = 22,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // Straps: offset of the first window, log2 of the bytes from one to the next, lines of a window less 1.
  input  logic [AddressW-1:0] aperture_i,
  input  logic [4:0]          stride_log2_i,
  input  logic [LineW-1:0]    window_mask_i,

  // Nothing is taken, as for bar_ingress. `busy`: a register write is having its effect, so what was taken with it stands;
  // `hold` is high with it.
  input  logic                hold_i,
  input  logic                busy_i,

  // Lines that were written, either or both: the addresses are multiples of 64.
  input  logic [1:0]          wr_valid_i,
  output logic                wr_ready_o,
  input  logic [1:0][AddressW-1:0] wr_address_i,
  input  logic [1:0][511:0]   wr_data_i,
  input  logic [1:0][63:0]    wr_be_i,
  input  logic [1:0]          wr_first_i,
  input  logic [1:0]          wr_last_i,

  // Which engine has a queue, of both lines. Asked in one cycle, answered in the next; it changes only while `busy_i`.
  output logic [1:0][QueueW-1:0] route_queue_o,
  input  logic [1:0][3:0]     route_i,

  // To mmio, either or both.
  output logic [1:0]          pair_valid_o,
  input  logic                pair_ready_i,
  output logic [1:0][QueueW-1:0] pair_queue_o,
  output logic [1:0][LineW-1:0] pair_line_o,
  output logic [1:0][511:0]   pair_data_o,
  output logic [1:0][63:0]    pair_be_o,
  output logic [1:0]          pair_whole_o,
  output logic [1:0]          pair_first_o,
  output logic [1:0]          pair_last_o,

  // To any other engine.
  output logic                piece_valid_o,
  input  logic                piece_ready_i,
  output logic [3:0]          piece_route_o,
  output logic [QueueW-1:0]   piece_queue_o,
  output logic [LineW-1:0]    piece_line_o,
  output logic [511:0]        piece_data_o,
  output logic [63:0]         piece_be_o,
  output logic                piece_whole_o,
  output logic                piece_first_o,
  output logic                piece_last_o,

  // To the registers: one aligned word, written whole.
  output logic                register_valid_o,
  input  logic                register_ready_i,
  output logic [AddressW-1:0] register_address_o,
  output logic [63:0]         register_value_o,

  output logic                is_idle_o,
  output logic                count_bad_accesses_o
);

  logic [1:0]               valid_q, in_window, in_aperture, has_bytes, is_word, to_mmio, to_engine, to_register;
  logic [1:0]               goes, step;
  logic [1:0][QueueW-1:0]   queue_now;
  logic [1:0][AddressW-1:0] word_address;
  logic [1:0][63:0]         word_value;
  logic [1:0][3:0]          route, route_q;
  logic                     asked_q;
  logic                     takes, is_held, together, alone, alone_goes, is_bad, had_bad_q, had_bad_d;

  for (genvar i = 0; i < 2; i++) begin : g_line
    bar_line #(.NumQueues(NumQueues), .LineW(LineW), .AddressW(AddressW)) u_line (
      .clk_i, .aperture_i, .stride_log2_i, .window_mask_i,
      .load_i(takes), .wr_address_i(wr_address_i[i]), .wr_data_i(wr_data_i[i]), .wr_be_i(wr_be_i[i]),
      .wr_first_i(wr_first_i[i]), .wr_last_i(wr_last_i[i]), .queue_now_o(queue_now[i]),
      .in_window_o(in_window[i]), .in_aperture_o(in_aperture[i]), .queue_o(pair_queue_o[i]),
      .line_o(pair_line_o[i]), .data_o(pair_data_o[i]), .be_o(pair_be_o[i]), .has_bytes_o(has_bytes[i]),
      .whole_o(pair_whole_o[i]), .first_o(pair_first_o[i]), .last_o(pair_last_o[i]),
      .is_word_o(is_word[i]), .word_address_o(word_address[i]), .word_value_o(word_value[i])
    );
    assign route[i]         = asked_q ? route_i[i] : route_q[i];
    assign to_engine[i]     = in_window[i] && route[i] != '0 && has_bytes[i];
    assign to_mmio[i]       = to_engine[i] && route[i] == 4'(nic_pkg::QueueControlIfaceMmio);
    assign to_register[i]   = !in_aperture[i] && is_word[i];
    // Asked as a line comes in, whether it is taken or not, for that is known late; and again behind a register write.
    assign route_queue_o[i] = busy_i ? pair_queue_o[i] : queue_now[i];
  end

  always_ff @(posedge clk_i) begin
    asked_q <= takes || busy_i;
    route_q <= route;
  end

  // ------------------------------------------------------------------------------ what is taken
  // As in bar_ingress: behind a register write nothing is taken in the same cycle.
  assign is_held    = hold_i || (valid_q & to_register) != '0;
  // Two leave at once as a pair or not at all.
  assign takes      = (valid_q == 2'b11) ? together && !busy_i : valid_q == '0 || (goes[alone] && !busy_i);
  assign wr_ready_o = takes && !is_held;

  always_ff @(posedge clk_i) begin
    if (!rst_ni)    valid_q <= '0;
    else if (takes) valid_q <= is_held ? '0 : wr_valid_i;
    else            valid_q <= valid_q & ~step;
  end

  // ------------------------------------------------------------------------------ what goes
  // The older line, by which everything but a pair goes; line 1 is the older one when line 0 has gone.
  assign alone        = !valid_q[0];
  assign alone_goes   = valid_q != '0 && !busy_i;

  assign pair_valid_o = {valid_q[1] && to_mmio[1] && (!valid_q[0] || to_mmio[0]), valid_q[0] && to_mmio[0]}
                        & {2{!busy_i}};
  assign piece_valid_o    = alone_goes && to_engine[alone] && !to_mmio[alone];
  assign register_valid_o = alone_goes && to_register[alone];
  assign is_bad           = alone_goes && !to_engine[alone] && !to_register[alone];

  // Whether a line goes when it is the older one; line 1 also goes with line 0.
  for (genvar i = 0; i < 2; i++) begin : g_goes
    assign goes[i] = to_mmio[i] ? pair_ready_i
                                : to_engine[i] ? piece_ready_i : !to_register[i] || register_ready_i;
  end
  assign together = to_mmio == 2'b11 && pair_ready_i;
  assign step     = {valid_q[1] && !busy_i && (valid_q[0] ? together : goes[1]), valid_q[0] && !busy_i && goes[0]};

  assign piece_route_o      = route[alone];
  assign piece_queue_o      = pair_queue_o[alone];
  assign piece_line_o       = pair_line_o[alone];
  assign piece_data_o       = pair_data_o[alone];
  assign piece_be_o         = pair_be_o[alone];
  assign piece_whole_o      = pair_whole_o[alone];
  assign piece_first_o      = pair_first_o[alone];
  assign piece_last_o       = pair_last_o[alone];
  assign register_address_o = word_address[alone];
  assign register_value_o   = word_value[alone];
  assign is_idle_o          = valid_q == '0;

  // Several lines of one write that name nothing are one bad access.
  always_comb begin
    had_bad_d = had_bad_q;
    for (int i = 0; i < 2; i++) begin
      if (step[i]) had_bad_d = !pair_last_o[i] && (is_bad || (had_bad_d && !pair_first_o[i]));
    end
  end
  always_ff @(posedge clk_i) had_bad_q <= rst_ni && had_bad_d;
  assign count_bad_accesses_o = is_bad && (pair_first_o[alone] || !had_bad_q);

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_addresses_are_lines : assert ((!wr_valid_i[0] || wr_address_i[0][5:0] == '0)
                                      && (!wr_valid_i[1] || wr_address_i[1][5:0] == '0));
      a_bytes_are_told : assert ((!valid_q[0] || has_bytes[0] == (pair_be_o[0] != '0))
                                 && (!valid_q[1] || has_bytes[1] == (pair_be_o[1] != '0)));
      a_busy_holds : assert (!busy_i || hold_i);
      a_one_way : assert ($countones({pair_valid_o != '0, piece_valid_o, register_valid_o, is_bad}) <= 1);
      // Line 1 leaves with line 0 or behind it.
      a_in_order : assert (!(step[1] && valid_q[0]) || step[0]);
      a_all_left : assert (takes == ((valid_q & ~step) == '0));
    end
  end
`endif

endmodule

`default_nettype wire

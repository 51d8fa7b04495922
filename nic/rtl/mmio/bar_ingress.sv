// Where writes come in: says what the address of each line names, and cuts what is not there off.
//
// The BAR begins with the registers; from the aperture on, the windows of the queues follow each other, each at a page
// or at its own size if that is more. A posted write arrives as one or more lines in order of address (`first`,
// `last`). A TLP crosses no 4 KiB boundary, so it lies in one window or in none.
//
// Guarantees: a line leaves in the order in which it came, to the engine of its queue or to the registers, as `route`
// and `register` say; what names nothing is counted, once a write, and goes no further. Lines without an enabled byte
// too. Latency 1 cycle, one line a cycle. Twin: nic/model/src/bar.rs, mmio/bar_ingress.rs.

`default_nettype none

module bar_ingress #(
  parameter int unsigned NumQueues = 64,
  // log2 of the lines of the longest window.
  parameter int unsigned LineW = 6,
  // Bits of an offset in the BAR.
  parameter int unsigned AddressW = 22,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // Straps: offset of the first window, log2 of the bytes from one to the next, lines of a window less 1.
  input  logic [AddressW-1:0] aperture_i,
  input  logic [4:0]          stride_log2_i,
  input  logic [LineW-1:0]    window_mask_i,

  // Nothing is taken: a register access is under way that must come first, or complete messages fill the pool.
  input  logic                hold_i,

  // Lines that were written: the address is a multiple of 64.
  input  logic                wr_valid_i,
  output logic                wr_ready_o,
  input  logic [AddressW-1:0] wr_address_i,
  input  logic [511:0]        wr_data_i,
  input  logic [63:0]         wr_be_i,
  input  logic                wr_first_i,
  input  logic                wr_last_i,

  // Which engine has a queue: a value of nic_pkg's interface, 0 for none. Asked in one cycle, answered in the next.
  output logic [QueueW-1:0]   route_queue_o,
  input  logic [3:0]          route_i,

  // To an engine.
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

  localparam int unsigned IndexW = AddressW - 6;

  // ------------------------------------------------------------------------------ the address, in the cycle of arrival
  logic [IndexW-1:0] distance, queue_index, line_index, stride_mask;
  logic              in_aperture, in_window, step, takes;

  assign in_aperture = wr_address_i >= aperture_i;
  assign distance    = wr_address_i[AddressW-1:6] - aperture_i[AddressW-1:6];
  assign queue_index = distance >> (stride_log2_i - 5'd6);
  assign stride_mask = ~({IndexW{1'b1}} << (stride_log2_i - 5'd6));
  assign line_index      = distance & stride_mask;
  assign in_window   = in_aperture && queue_index < IndexW'(NumQueues) && line_index <= IndexW'(window_mask_i);

  // ------------------------------------------------------------------------------ a cycle later
  logic                valid_q, in_window_q, in_aperture_q, first_q, last_q, whole_q, has_bytes_q;
  logic [IndexW-1:0]   address_q;
  logic [QueueW-1:0]   queue_q;
  logic [LineW-1:0]    line_q;
  logic [511:0]        data_q;
  logic [63:0]         be_q;
  // The one word of a register write: its place in the line, and whether it is whole and alone.
  logic [7:0]          words_full, words_any;
  logic [7:0]          word_q;
  logic                is_word_q;
  logic [2:0]          word_index;
  logic                goes_to_engine, goes_to_register, goes, is_bad, had_bad_q;

  always_comb begin
    for (int i = 0; i < 8; i++) begin
      words_full[i] = &wr_be_i[8*i +: 8];
      words_any[i]  = |wr_be_i[8*i +: 8];
    end
  end

  // Behind a register write nothing is taken in the same cycle: it may start the very queue that the next line is for, and
  // holds what comes from the next cycle on.
  logic                is_held;
  assign is_held       = hold_i || (valid_q && goes_to_register);
  assign takes         = !valid_q || step;
  assign wr_ready_o    = takes && !is_held;
  assign route_queue_o = takes ? queue_index[QueueW-1:0] : queue_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (takes) valid_q <= wr_valid_i && !is_held;
    if (takes) begin
      in_window_q   <= in_window;
      in_aperture_q <= in_aperture;
      address_q     <= wr_address_i[AddressW-1:6];
      queue_q       <= queue_index[QueueW-1:0];
      line_q        <= line_index[LineW-1:0];
      data_q        <= wr_data_i;
      be_q          <= wr_be_i;
      first_q       <= wr_first_i;
      last_q        <= wr_last_i;
      whole_q       <= words_full == '1;
      has_bytes_q   <= words_any != '0;
      word_q        <= words_full;
      is_word_q     <= wr_first_i && wr_last_i && words_any == words_full && words_full != '0
                       && (words_full & (words_full - 1'b1)) == '0;
    end
  end

  assign goes_to_engine   = in_window_q && route_i != '0 && has_bytes_q;
  assign goes_to_register = !in_aperture_q && is_word_q;
  assign goes             = goes_to_engine || goes_to_register;
  assign is_bad           = valid_q && !goes;
  assign step             = !goes || (goes_to_engine ? piece_ready_i : register_ready_i);

  always_comb begin
    word_index = '0;
    for (int i = 0; i < 8; i++) word_index |= word_q[i] ? 3'(i) : 3'd0;
  end

  assign piece_valid_o = valid_q && goes_to_engine;
  assign piece_route_o = route_i;
  assign piece_queue_o = queue_q;
  assign piece_line_o  = line_q;
  assign piece_data_o  = data_q;
  assign piece_be_o    = be_q;
  assign piece_whole_o = whole_q;
  assign piece_first_o = first_q;
  assign piece_last_o  = last_q;

  assign register_valid_o   = valid_q && goes_to_register;
  assign register_address_o = {address_q, word_index, 3'b000};
  assign register_value_o   = data_q[64 * word_index +: 64];
  assign is_idle_o          = !valid_q;

  // Several lines of one write that name nothing are one bad access.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) had_bad_q <= 1'b0;
    else if (valid_q && step) had_bad_q <= !last_q && (is_bad || (had_bad_q && !first_q));
  end
  assign count_bad_accesses_o = is_bad && (first_q || !had_bad_q);

  if (AddressW < 12 || AddressW > 40) begin : g_bad_address
    $fatal(1, "bar_ingress: AddressW must be 12 to 40 bits");
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_address_is_a_line : assert (!wr_valid_i || wr_address_i[5:0] == '0);
      a_bytes_are_told    : assert (!valid_q || has_bytes_q == (be_q != '0));
      a_one_way           : assert (!(piece_valid_o && register_valid_o));
    end
  end
`endif

endmodule

`default_nettype wire

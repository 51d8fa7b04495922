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

  logic              valid_q, in_window_q, in_aperture_q, first_q, last_q, whole_q, has_bytes_q, is_word_q;
  logic [QueueW-1:0] queue_now, queue_q;
  logic [LineW-1:0]  line_q;
  logic [511:0]      data_q;
  logic [63:0]       be_q;
  logic              step, takes, goes_to_engine, goes_to_register, goes, is_bad, had_bad_q;

  bar_line #(.NumQueues(NumQueues), .LineW(LineW), .AddressW(AddressW)) u_line (
    .clk_i, .aperture_i, .stride_log2_i, .window_mask_i,
    .load_i(takes), .wr_address_i, .wr_data_i, .wr_be_i, .wr_first_i, .wr_last_i, .queue_now_o(queue_now),
    .in_window_o(in_window_q), .in_aperture_o(in_aperture_q), .queue_o(queue_q), .line_o(line_q), .data_o(data_q),
    .be_o(be_q), .has_bytes_o(has_bytes_q), .whole_o(whole_q), .first_o(first_q), .last_o(last_q),
    .is_word_o(is_word_q), .word_address_o(register_address_o), .word_value_o(register_value_o)
  );

  // Behind a register write nothing is taken in the same cycle: it may start the very queue that the next line is for, and
  // holds what comes from the next cycle on.
  logic is_held;
  assign is_held       = hold_i || (valid_q && goes_to_register);
  assign takes         = !valid_q || step;
  assign wr_ready_o    = takes && !is_held;
  assign route_queue_o = takes ? queue_now : queue_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= 1'b0;
    else if (takes) valid_q <= wr_valid_i && !is_held;
  end

  assign goes_to_engine   = in_window_q && route_i != '0 && has_bytes_q;
  assign goes_to_register = !in_aperture_q && is_word_q;
  assign goes             = goes_to_engine || goes_to_register;
  assign is_bad           = valid_q && !goes;
  assign step             = !goes || (goes_to_engine ? piece_ready_i : register_ready_i);

  assign piece_valid_o = valid_q && goes_to_engine;
  assign piece_route_o = route_i;
  assign piece_queue_o = queue_q;
  assign piece_line_o  = line_q;
  assign piece_data_o  = data_q;
  assign piece_be_o    = be_q;
  assign piece_whole_o = whole_q;
  assign piece_first_o = first_q;
  assign piece_last_o  = last_q;

  assign register_valid_o = valid_q && goes_to_register;
  assign is_idle_o        = !valid_q;

  // Several lines of one write that name nothing are one bad access.
  always_ff @(posedge clk_i) begin
    if (!rst_ni) had_bad_q <= 1'b0;
    else if (valid_q && step) had_bad_q <= !last_q && (is_bad || (had_bad_q && !first_q));
  end
  assign count_bad_accesses_o = is_bad && (first_q || !had_bad_q);

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

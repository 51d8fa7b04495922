// One line that was written to the BAR: what its address names, and whether it writes a register.
//
// Guarantees: what stands at the outputs is of the line that was there when `load_i` was last high; `queue_now_o` is of
// the one that is there now, so that what is known of its queue can be looked up in the cycle of arrival.
// Latency 1 cycle. Cost: 600 registers and their addresses'. Twin: nic/model/src/bar.rs.

`default_nettype none

module bar_line #(
  parameter int unsigned NumQueues = 64,
  // log2 of the lines of the longest window.
  parameter int unsigned LineW = 6,
  // Bits of an offset in the BAR, 12 to 40.
  parameter int unsigned AddressW = 22,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic                clk_i,

  // Straps: offset of the first window, log2 of the bytes from one to the next, lines of a window less 1.
  input  logic [AddressW-1:0] aperture_i,
  input  logic [4:0]          stride_log2_i,
  input  logic [LineW-1:0]    window_mask_i,

  input  logic                load_i,
  input  logic [AddressW-1:0] wr_address_i,
  input  logic [511:0]        wr_data_i,
  input  logic [63:0]         wr_be_i,
  input  logic                wr_first_i,
  input  logic                wr_last_i,
  output logic [QueueW-1:0]   queue_now_o,

  // Whether it lies in a window, and in which; behind the registers at all; whether it has an enabled byte, or all.
  output logic                in_window_o,
  output logic                in_aperture_o,
  output logic [QueueW-1:0]   queue_o,
  output logic [LineW-1:0]    line_o,
  output logic [511:0]        data_o,
  output logic [63:0]         be_o,
  output logic                has_bytes_o,
  output logic                whole_o,
  output logic                first_o,
  output logic                last_o,

  // One aligned word, written whole by a write of nothing else: its address and value.
  output logic                is_word_o,
  output logic [AddressW-1:0] word_address_o,
  output logic [63:0]         word_value_o
);

  if (AddressW < 12 || AddressW > 40) begin : g_bad_address
    $fatal(1, "bar_line: AddressW must be 12 to 40 bits");
  end

  localparam int unsigned IndexW = AddressW - 6;

  // ------------------------------------------------------------------------------ in the cycle of arrival
  logic [IndexW-1:0] distance, queue_index, line_index, stride_mask;
  logic              in_aperture, in_window;
  logic [7:0]        words_full, words_any;

  assign in_aperture = wr_address_i >= aperture_i;
  assign distance    = wr_address_i[AddressW-1:6] - aperture_i[AddressW-1:6];
  assign queue_index = distance >> (stride_log2_i - 5'd6);
  assign stride_mask = ~({IndexW{1'b1}} << (stride_log2_i - 5'd6));
  assign line_index  = distance & stride_mask;
  assign in_window   = in_aperture && queue_index < IndexW'(NumQueues) && line_index <= IndexW'(window_mask_i);
  assign queue_now_o = queue_index[QueueW-1:0];

  always_comb begin
    for (int i = 0; i < 8; i++) begin
      words_full[i] = &wr_be_i[8*i +: 8];
      words_any[i]  = |wr_be_i[8*i +: 8];
    end
  end

  // ------------------------------------------------------------------------------ a cycle later
  logic [IndexW-1:0] address_q;
  logic [7:0]        words_q;
  logic [2:0]        word_index;

  always_ff @(posedge clk_i) begin
    if (load_i) begin
      in_window_o   <= in_window;
      in_aperture_o <= in_aperture;
      address_q     <= wr_address_i[AddressW-1:6];
      queue_o       <= queue_index[QueueW-1:0];
      line_o        <= line_index[LineW-1:0];
      data_o        <= wr_data_i;
      be_o          <= wr_be_i;
      first_o       <= wr_first_i;
      last_o        <= wr_last_i;
      whole_o       <= words_full == '1;
      has_bytes_o   <= words_any != '0;
      words_q       <= words_full;
      is_word_o     <= wr_first_i && wr_last_i && words_any == words_full && words_full != '0
                       && (words_full & (words_full - 1'b1)) == '0;
    end
  end

  always_comb begin
    word_index = '0;
    for (int i = 0; i < 8; i++) word_index |= words_q[i] ? 3'(i) : 3'd0;
  end
  assign word_address_o = {address_q, word_index, 3'b000};
  assign word_value_o   = data_o[64 * word_index +: 64];

endmodule

`default_nettype wire

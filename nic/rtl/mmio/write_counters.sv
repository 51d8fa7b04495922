// What is counted of each write to a transmit window: how many, how large, how far from where it was expected.
//
// Comes from: the verdict of the reorder unit (stage 6), piece by piece. A write is counted once: whether it came in
// order by its first piece, how large it is by all of them. Twin: nic/model/src/mmio/arrival.rs (check_place) and
// nic/model/src/nic.rs (arrived).
// Latency 3 cycles. Cost: about 100 registers.

`default_nettype none

module write_counters #(
  // Bits of a distance in lines, all ones for "beyond what can be held".
  parameter int unsigned AheadW = 7
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic              judged_valid_i,
  input  logic              judged_first_i,
  input  logic              judged_last_i,
  input  logic              judged_dropped_i,
  // It lay on a line that was free, inside the span, and brought the byte that its queue lacked first.
  input  logic              judged_free_i,
  input  logic              judged_inside_i,
  input  logic              judged_expected_i,
  input  logic [AheadW-1:0] judged_ahead_i,
  input  logic [63:0]       judged_be_i,

  output logic              count_tx_writes_o,
  output logic [6:0]        count_tx_write_bytes_o,
  output logic              count_quarantined_writes_o,
  output logic              count_reordered_writes_o,
  output logic [7:0]        count_tlp_bytes_histogram_o,
  output logic [15:0]       count_displacement_histogram_o,
  // Most lines from the frontier's line to an early write, both included.
  output logic [15:0]       depth_max_o
);

  // ------------------------------------------------------------------------------ bytes of the piece
  logic              valid1_q, first1_q, last1_q, dropped1_q, free1_q, inside1_q, expected1_q;
  logic [AheadW-1:0] ahead1_q;
  logic [7:0][3:0]   bytes1_q;

  always_ff @(posedge clk_i) begin
    valid1_q    <= rst_ni && judged_valid_i;
    first1_q    <= judged_first_i;
    last1_q     <= judged_last_i;
    dropped1_q  <= judged_dropped_i;
    free1_q     <= judged_free_i;
    inside1_q   <= judged_inside_i;
    expected1_q <= judged_expected_i;
    ahead1_q    <= judged_ahead_i;
    for (int i = 0; i < 8; i++) bytes1_q[i] <= 4'($countones(judged_be_i[8*i +: 8]));
  end

  // ------------------------------------------------------------------------------ of the write so far
  logic [6:0]  piece1;
  logic        taken_q, taken1, valid2_q, last2_q;
  logic [13:0] sum_q, sum_d;
  logic        is_early1;
  logic [15:0] depth1;

  always_comb begin
    piece1 = '0;
    for (int i = 0; i < 8; i++) piece1 += 7'(bytes1_q[i]);
  end
  // A write whose queue fails in its middle was taken; one that found its queue failed was not.
  assign taken1    = first1_q ? !dropped1_q : taken_q;
  assign sum_d     = (first1_q ? '0 : sum_q) + 14'(piece1);
  assign is_early1 = ahead1_q != '0 || !expected1_q;
  assign depth1    = 16'(ahead1_q) + 1'b1;

  always_ff @(posedge clk_i) begin
    if (valid1_q) begin
      taken_q <= taken1;
      sum_q   <= sum_d;
    end
    valid2_q <= rst_ni && valid1_q && taken1;
    last2_q  <= last1_q;

    count_tx_write_bytes_o     <= (rst_ni && valid1_q && taken1) ? piece1 : '0;
    count_tx_writes_o          <= rst_ni && valid1_q && taken1 && last1_q;
    count_quarantined_writes_o <= rst_ni && valid1_q && first1_q && dropped1_q;
    count_reordered_writes_o   <= rst_ni && valid1_q && first1_q && taken1 && inside1_q && is_early1;
    count_displacement_histogram_o <= '0;
    if (rst_ni && valid1_q && first1_q && taken1 && free1_q) begin
      count_displacement_histogram_o <= (ahead1_q >= AheadW'(15)) ? 16'h8000 : 16'h1 << ahead1_q[3:0];
    end
    if (!rst_ni) depth_max_o <= '0;
    else if (valid1_q && taken1 && inside1_q && is_early1 && depth1 > depth_max_o) begin
      depth_max_o <= depth1;
    end
  end

  // ------------------------------------------------------------------------------ by size: 1 to 8, to 16, ... from 57
  // on
  logic [13:0] less_one;
  assign less_one = sum_q - 1'b1;
  always_ff @(posedge clk_i) begin
    count_tlp_bytes_histogram_o <= '0;
    if (rst_ni && valid2_q && last2_q) begin
      if (sum_q == '0)                  count_tlp_bytes_histogram_o <= 8'h1;
      else if (less_one >= 14'd56)      count_tlp_bytes_histogram_o <= 8'h80;
      else                              count_tlp_bytes_histogram_o <= 8'h1 << less_one[5:3];
    end
  end

endmodule

`default_nettype wire

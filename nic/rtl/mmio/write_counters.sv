// What is counted of each write to a transmit window: how many, how large, how far from where it was expected.
//
// Comes from: the outcome of the reorder unit (stage 6), piece by piece. A write is counted once: whether it came in
// order by its first piece, how large it is by all of them. Twin: nic/model/src/mmio/arrival.rs (check_place) and
// nic/model/src/nic.rs (arrived).
// Latency 5 cycles. Cost: about 180 registers.

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
  typedef struct packed {
    logic              first, last, dropped, free, in_span, expected;
    logic [AheadW-1:0] ahead;
  } piece_t;
  logic              valid1_q, valid2_q, valid3_q;
  piece_t            piece1_q, piece2_q, piece3_q;
  logic [7:0][3:0]   bytes1_q;
  logic [1:0][5:0]   bytes2_q;
  logic [6:0]        bytes3_q;

  always_ff @(posedge clk_i) begin
    valid1_q <= rst_ni && judged_valid_i;
    piece1_q <= '{
      first: judged_first_i, last: judged_last_i, dropped: judged_dropped_i, free: judged_free_i,
      in_span: judged_inside_i, expected: judged_expected_i, ahead: judged_ahead_i
    };
    for (int i = 0; i < 8; i++) bytes1_q[i] <= 4'($countones(judged_be_i[8*i +: 8]));

    valid2_q <= rst_ni && valid1_q;
    piece2_q <= piece1_q;
    for (int i = 0; i < 2; i++) begin
      bytes2_q[i] <= 6'(bytes1_q[4*i]) + 6'(bytes1_q[4*i+1]) + 6'(bytes1_q[4*i+2]) + 6'(bytes1_q[4*i+3]);
    end

    valid3_q <= rst_ni && valid2_q;
    piece3_q <= piece2_q;
    bytes3_q <= 7'(bytes2_q[0]) + 7'(bytes2_q[1]);
  end

  // ------------------------------------------------------------------------------ of the write so far
  logic        taken_q, taken3, valid4_q, last4_q, counts3;
  logic [13:0] sum_q, sum_d;
  logic        is_early3;
  logic [15:0] depth3;

  // A write whose queue fails in its middle was taken; one that found its queue failed was not.
  assign taken3    = piece3_q.first ? !piece3_q.dropped : taken_q;
  assign sum_d     = (piece3_q.first ? '0 : sum_q) + 14'(bytes3_q);
  assign is_early3 = piece3_q.ahead != '0 || !piece3_q.expected;
  assign depth3    = 16'(piece3_q.ahead) + 1'b1;
  assign counts3   = valid3_q && piece3_q.first && taken3 && piece3_q.free;

  always_ff @(posedge clk_i) begin
    if (valid3_q) begin
      taken_q <= taken3;
      sum_q   <= sum_d;
    end
    valid4_q <= rst_ni && valid3_q && taken3;
    last4_q  <= piece3_q.last;

    count_tx_write_bytes_o     <= (rst_ni && valid3_q && taken3) ? bytes3_q : '0;
    count_tx_writes_o          <= rst_ni && valid3_q && taken3 && piece3_q.last;
    count_quarantined_writes_o <= rst_ni && valid3_q && piece3_q.first && piece3_q.dropped;
    count_reordered_writes_o   <= rst_ni && valid3_q && piece3_q.first && taken3 && piece3_q.in_span && is_early3;
    count_displacement_histogram_o <= '0;
    if (rst_ni && counts3) begin
      count_displacement_histogram_o <= (piece3_q.ahead >= AheadW'(15)) ? 16'h8000
                                                                        : 16'h1 << piece3_q.ahead[3:0];
    end
    if (!rst_ni) depth_max_o <= '0;
    else if (valid3_q && taken3 && piece3_q.in_span && is_early3 && depth3 > depth_max_o) begin
      depth_max_o <= depth3;
    end
  end

  // ------------------------------------------------------------------------------ by size, in words
  logic [13:0] less_one;
  assign less_one = sum_q - 1'b1;
  always_ff @(posedge clk_i) begin
    count_tlp_bytes_histogram_o <= '0;
    if (rst_ni && valid4_q && last4_q) begin
      if (sum_q == '0)                  count_tlp_bytes_histogram_o <= 8'h1;
      else if (less_one >= 14'd56)      count_tlp_bytes_histogram_o <= 8'h80;
      else                              count_tlp_bytes_histogram_o <= 8'h1 << less_one[5:3];
    end
  end

endmodule

`default_nettype wire

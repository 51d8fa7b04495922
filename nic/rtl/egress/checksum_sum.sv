// The Internet checksum (RFC 1071) of a frame's beats, of which everything that does not count is zero.
//
// Bytes at even and at odd places are added apart, so that no adder is wider than it must be; the sums meet when the
// frame is over. The sum of 16-bit words is the same in either order of bytes but for the order of its own, so what
// comes out stands in the frame as it is: byte 0 first.
//
// Guarantees: `sum_o` is the complement of the sum over the beats of a frame and the bytes beside its first one,
//   9 cycles after its last beat. A frame a cycle.
// Limits: 21 bits of a sum of bytes: frames of up to 2^14 bytes.
// Latency: 9 cycles. Cost: part of checksum_insert's. Twin: nic/tb/egress/checksum_twin.py.

`default_nettype none

module checksum_sum (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         part_valid_i,
  input  logic         part_first_i,
  input  logic         part_last_i,
  input  logic [511:0] part_data_i,
  // Further bytes, counted with the first beat.
  input  logic [7:0]   part_even_i,
  input  logic [8:0]   part_odd_i,

  output logic         sum_valid_o,
  output logic [15:0]  sum_o
);

  // Of four bytes each, of sixteen, of the beat, of the frame: even ones at index 0.
  logic [1:0][7:0][9:0]  fours_d, fours_q;
  logic [1:0][1:0][11:0] groups_d, groups_q;
  logic [1:0][13:0]      beat_d, beat_q;
  logic [1:0][20:0]      frame_d, frame_q;
  logic [2:0]            valid_q, first_q, last_q;
  logic [1:0][8:0]       beside;
  logic [1:0][1:0][8:0]  beside_q;

  assign beside = {part_odd_i, {1'b0, part_even_i}};

  always_comb begin
    for (int lane = 0; lane < 2; lane++) begin
      for (int i = 0; i < 8; i++) begin
        fours_d[lane][i] = (10'(part_data_i[(i*8+lane)*8+:8]) + 10'(part_data_i[(i*8+lane+2)*8+:8]))
                           + (10'(part_data_i[(i*8+lane+4)*8+:8]) + 10'(part_data_i[(i*8+lane+6)*8+:8]));
      end
      for (int i = 0; i < 2; i++) begin
        groups_d[lane][i] = (12'(fours_q[lane][i*4]) + 12'(fours_q[lane][i*4+1]))
                            + (12'(fours_q[lane][i*4+2]) + 12'(fours_q[lane][i*4+3]));
      end
      beat_d[lane]  = 14'(groups_q[lane][0]) + 14'(groups_q[lane][1])
                      + (first_q[1] ? 14'(beside_q[1][lane]) : 14'd0);
      frame_d[lane] = (first_q[2] ? 21'd0 : frame_q[lane]) + 21'(beat_q[lane]);
    end
  end

  // The odd ones are worth 256 times as much. Carries beyond 16 bits come back in at the bottom.
  logic [5:0]  ended_q;
  logic [7:0]  low_q, low2_q;
  logic [8:0]  middle_q;
  logic [7:0]  middle2_q;
  logic [13:0] high_q, high2_q;
  logic [16:0] folded_q;
  logic [15:0] twice_q;
  logic        is_over_q;

  always_ff @(posedge clk_i) begin
    valid_q  <= rst_ni ? {valid_q[1:0], part_valid_i} : '0;
    first_q  <= {first_q[1:0], part_first_i};
    last_q   <= {last_q[1:0], part_last_i};
    beside_q <= {beside_q[0], beside};
    fours_q  <= fours_d;
    groups_q <= groups_d;
    beat_q   <= beat_d;
    if (valid_q[2]) frame_q <= frame_d;
    ended_q  <= rst_ni ? {ended_q[4:0], valid_q[2] && last_q[2]} : '0;

    low_q     <= frame_q[0][7:0];
    middle_q  <= 9'(frame_q[0][15:8]) + 9'(frame_q[1][7:0]);
    high_q    <= 14'(frame_q[0][20:16]) + 14'(frame_q[1][20:8]);
    low2_q    <= low_q;
    middle2_q <= middle_q[7:0];
    high2_q   <= high_q + 14'(middle_q[8]);
    folded_q  <= {1'b0, middle2_q, low2_q} + 17'(high2_q);
    is_over_q <= folded_q[16];
    twice_q   <= folded_q[15:0];
    sum_o     <= ~(twice_q + 16'(is_over_q));
  end

  assign sum_valid_o = ended_q[5];

`ifndef SYNTHESIS
  // The sum and its carry never carry again: a second carry would need a word of ones below a carry.
  always_ff @(posedge clk_i) if (rst_ni && ended_q[4]) a_folded : assert (!is_over_q || twice_q != '1);
`endif

endmodule

`default_nettype wire

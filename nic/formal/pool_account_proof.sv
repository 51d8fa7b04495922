// What is proved of nic/rtl/mmio/pool_account.sv, for every length of run, by k-induction
// (nic/formal/pool_account.sby):
//   - the count is exact: near and far together are the pool's lines, less the windows set aside, less what queues
//     without a reservation took and did not bring back, but for what came back in the last cycles and is on its way;
//   - it is never above the pool's lines, and `near_o` never leaves its range, however much is taken too much;
//   - `free_o` is that sum two cycles ago, or 0, and `lacks_window_o` says whether a window is more than that;
//   - with nothing given or taken for 8 cycles and less than 4 rings left, all of it is near and nothing moves.
//
// Assumed: what comes back was taken, or set aside; a window is set aside only while that much is left; at most a
// ring of lines is taken in a cycle; a queue starts before any of its lines come back, and not while they do; at most
// 65,536 lines are taken too much, which is more than names of pool lines can say. All else is free: how much is
// taken is not bounded by what there is.
//
// Proved for 2 queues, rings of 4 lines, windows of 1 to 8, and a pool of any size; the last of the list for one of
// up to 63 lines. A queue enters by an address of two tables (table_ram_proof.sv); the widths of the counts grow with
// the ring's, and their bounds are in rings.

`default_nettype none

module pool_account_proof #(
  // What is proved: the sums, or what a calm of 8 cycles leaves; the sums are assumed there, and proved without.
  parameter bit Calm = 1'b0,
  localparam int unsigned NumQueues = 2,
  localparam int unsigned LineW = 3,
  localparam int unsigned RingW = 2,
  localparam int unsigned QueueW = 1,
  localparam int unsigned NearW = RingW + 4
) (
  input logic              clk_i,
  input logic              rst_ni,
  input logic [15:0]       pool_lines_i,
  input logic [LineW-1:0]  window_mask_i,
  input logic              begin_valid_i,
  input logic [QueueW-1:0] begin_queue_i,
  input logic              begin_shared_i,
  input logic              reserve_i,
  input logic              unreserve_i,
  input logic              take_valid_i,
  input logic [RingW:0]    take_lines_i,
  input logic              dropped_valid_i,
  input logic [QueueW-1:0] dropped_queue_i,
  input logic              gone_valid_i,
  input logic [QueueW-1:0] gone_queue_i,
  input logic [LineW:0]    gone_lines_i
);

  localparam int Ring = 1 << RingW;

  logic signed [NearW-1:0] near;
  logic [15:0]             free;
  logic                    is_moving, lacks_window;

  pool_account #(.NumQueues(NumQueues), .LineW(LineW), .RingW(RingW)) dut (
    .clk_i, .rst_ni, .pool_lines_i, .window_mask_i, .begin_valid_i, .begin_queue_i, .begin_shared_i, .reserve_i,
    .unreserve_i, .take_valid_i, .take_lines_i, .dropped_valid_i, .dropped_queue_i, .gone_valid_i, .gone_queue_i,
    .gone_lines_i, .near_o(near), .is_moving_o(is_moving), .free_o(free), .lacks_window_o(lacks_window)
  );

  // Kept beside it: which queues have no reservation, lines that are left, what is on its way back in the two cycles
  // that it takes.
  logic                started_q = 1'b0;
  logic                run_q = 1'b0;
  logic [NumQueues-1:0] begun_q, shares_q;
  logic signed [17:0]  left_q, came, due1_q, due2_q, coming, window, total, total1_q, total2_q, pool;
  logic [3:0]          calm_q;
  logic [15:0]         pool_q;
  logic [LineW-1:0]    mask_q;
  logic                dropped_back, gone_back;

  assign dropped_back = dropped_valid_i && shares_q[dropped_queue_i];
  assign gone_back    = gone_valid_i && shares_q[gone_queue_i];
  assign window       = 18'(window_mask_i) + 18'sd1;
  assign came         = 18'(dropped_back) + (gone_back ? 18'(gone_lines_i) : '0) + (unreserve_i ? window : '0)
                        - (reserve_i ? window : '0);
  assign pool         = 18'(pool_lines_i);
  // The first of the registers on the way back.
  assign coming       = 18'(dut.dropped_q && dut.dropped_shared)
                        + ((dut.gone_q && dut.gone_shared) ? 18'(dut.gone_lines_q) : '0)
                        + (dut.unreserve_q ? window : '0) - (dut.reserve_q ? window : '0);
  assign total        = 18'(signed'(dut.far_q)) + 18'(signed'(dut.near_q));

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    run_q     <= rst_ni;
    pool_q    <= pool_lines_i;
    mask_q    <= window_mask_i;
    assume ((window_mask_i & (window_mask_i + 1'b1)) == '0);
    if (started_q) assume (pool_lines_i == pool_q && window_mask_i == mask_q);
    else assume (!rst_ni);
    if (!rst_ni) begin
      begun_q   <= '0;
      left_q    <= pool;
      due1_q    <= '0;
      due2_q    <= '0;
      calm_q    <= '0;
      assume (!reserve_i && !unreserve_i && !take_valid_i && !dropped_valid_i && !gone_valid_i && !begin_valid_i);
    end else begin
      if (begin_valid_i) begun_q[begin_queue_i] <= 1'b1;
      if (begin_valid_i) shares_q[begin_queue_i] <= begin_shared_i;
      // What nobody has, were all that came back counted at once.
      left_q    <= left_q - (take_valid_i ? 18'(take_lines_i) : '0) + came;
      due1_q    <= came;
      due2_q    <= due1_q;
      calm_q    <= (take_valid_i || came != '0) ? '0 : calm_q + 4'(calm_q != 4'd15);
    end
    total1_q <= rst_ni ? total : pool;
    total2_q <= total1_q;
    if (dropped_valid_i) assume (begun_q[dropped_queue_i]);
    if (gone_valid_i) assume (begun_q[gone_queue_i]);
    if (take_valid_i) assume (32'(take_lines_i) <= Ring);
    if (gone_valid_i) assume (gone_lines_i <= (LineW + 1)'(window_mask_i) + 1'b1);
    // What comes back was taken, and what is taken is a line of the pool that somebody has.
    if (run_q || started_q) assume (left_q + came <= pool && left_q >= -18'sd65536);
    // Control looks before it sets one aside, and what it looks at is never too much.
    if (reserve_i) assume (left_q >= window && came == -window);
    if (begin_valid_i) begin
      assume (!(dropped_valid_i && dropped_queue_i == begin_queue_i));
      assume (!(gone_valid_i && gone_queue_i == begin_queue_i));
    end
  end

  // What is on its way between the two parts fits what they hold.
  logic is_in_range;
  always_comb begin
    is_in_range = 32'(signed'(near)) >= -7 * Ring && 32'(signed'(near)) < 8 * Ring;
    if (!dut.is_moving_q) begin
      if (dut.move_q != '0 || 32'(signed'(near)) < -6 * Ring) is_in_range = 1'b0;
    end else if (dut.move_q > 0) begin
      if (!(near <= -dut.move_q && 32'(signed'(near)) >= -32'(signed'(dut.move_q)) - Ring)
          && !(32'(signed'(dut.move_q)) <= 4 * Ring && 32'(signed'(near)) >= -Ring
               && 32'(signed'(near)) < 4 * Ring)) is_in_range = 1'b0;
    end else if (dut.move_q == '0 || 32'(signed'(dut.move_q)) < -4 * Ring || 32'(signed'(near)) <= -Ring) begin
      is_in_range = 1'b0;
    end
  end

  if (Calm) begin : g_calm
    always_ff @(posedge clk_i) begin
      // More bits of the far part than these need would only carry further.
      if (started_q) assume (pool_lines_i < 16'd64 && left_q >= -18'sd64);
      if (started_q && rst_ni) begin
        assume (is_in_range && total == left_q - due1_q - due2_q && due1_q == coming);
        assume (18'(signed'(dut.change_q)) == due2_q);
        if (run_q && calm_q >= 4'd8 && total >= 0 && total < 18'sd16) begin
          assert (!is_moving && dut.far_q == '0 && 18'(signed'(near)) == total);
        end
      end
    end
  end else begin : g_sums
    always_ff @(posedge clk_i) begin
      if (started_q && rst_ni) begin
        assert (total == left_q - due1_q - due2_q);
        assert (total <= pool && left_q - due1_q <= pool && left_q <= pool);
        assert (is_in_range);
        if (run_q) begin
          assert (free == ((total2_q < 0) ? '0 : total2_q[15:0]));
          assert (lacks_window == (total2_q < window));
        end
        // Invariants that make it inductive: what each register on the way back holds.
        assert (18'(signed'(dut.all_q)) == total1_q && 18'(signed'(dut.change_q)) == due2_q && due1_q == coming);
        for (int unsigned q = 0; q < NumQueues; q++) begin
          if (begun_q[q]) begin
            assert (dut.u_dropped_shared.mem[q] == shares_q[q] && dut.u_gone_shared.mem[q] == shares_q[q]);
          end
        end
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      cover (near < 0 && total < 0 && is_moving);
      cover (free == 16'd3 && pool_lines_i == 16'd40);
    end
  end

endmodule

`default_nettype wire

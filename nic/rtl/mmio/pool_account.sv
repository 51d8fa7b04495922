// How many pool lines nobody has reserved and nobody uses: what queues without a reservation may still take.
//
// The count is kept in two parts. `near_o` is what can be taken in this very cycle: small, so that taking, and asking
// whether there is enough, are short paths. All else is further off, and moved nearer while there is little there.
//
// Guarantees
//   - Near and far together are exact: pool lines, less what was taken and set aside, plus what came back.
//   - Where fewer than 4 rings of lines are left, and nothing was given or taken for 6 cycles, all of them are near.
//     While some are not, `is_moving_o` says so.
//   - What comes back can be taken 4 cycles later.
//   - A queue that takes more than there are (it fails for that) makes the count negative until they come back.
// Cost: three tables of NumQueues bits, about 80 registers. Twin: BufferPool in nic/model/src/mmio/buffer_pool.rs.

`default_nettype none

module pool_account #(
  parameter int unsigned NumQueues = 64,
  parameter int unsigned LineW = 6,
  parameter int unsigned RingW = 5,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  // Signed: up to 8 rings, and down to what is taken too much before it is noticed.
  localparam int unsigned NearW = RingW + 4
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  // Straps: pool lines, lines of every window less 1.
  input  logic [15:0]       pool_lines_i,
  input  logic [LineW-1:0]  window_mask_i,

  // A queue starts; whether it has no reservation. A window is set aside, or given back.
  input  logic              begin_valid_i,
  input  logic [QueueW-1:0] begin_queue_i,
  input  logic              begin_shared_i,
  input  logic              reserve_i,
  input  logic              unreserve_i,

  // Lines of a queue without reservation are taken: at most a ring of them.
  input  logic              take_valid_i,
  input  logic [RingW:0]    take_lines_i,
  // Lines that left their queue: one that is dropped, those of a message that is gone.
  input  logic              dropped_valid_i,
  input  logic [QueueW-1:0] dropped_queue_i,
  input  logic              gone_valid_i,
  input  logic [QueueW-1:0] gone_queue_i,
  input  logic [LineW:0]    gone_lines_i,

  output logic signed [NearW-1:0] near_o,
  output logic              is_moving_o,
  // Both parts together, 0 if negative, as they were two cycles ago; a window less than that is `lacks_window_o`.
  output logic [15:0]       free_o,
  output logic              lacks_window_o
);

  localparam logic signed [NearW-1:0] Enough = NearW'(4 << RingW);

  // ---------------------------------------------------------------------------------------------- what comes back
  logic              dropped_shared, gone_shared, dropped_q, gone_q;
  logic [LineW:0]    gone_lines_q;
  logic [16:0]       window_lines;
  logic signed [LineW+2:0] change_q;

  assign window_lines = 17'(window_mask_i) + 1'b1;

  table_ram #(.Width(1), .Depth(NumQueues)) u_dropped_shared (
    .clk_i, .we_i(begin_valid_i), .waddr_i(begin_queue_i), .wdata_i(begin_shared_i), .raddr_i(dropped_queue_i),
    .rdata_o(dropped_shared)
  );
  table_ram #(.Width(1), .Depth(NumQueues)) u_gone_shared (
    .clk_i, .we_i(begin_valid_i), .waddr_i(begin_queue_i), .wdata_i(begin_shared_i), .raddr_i(gone_queue_i),
    .rdata_o(gone_shared)
  );

  // Windows are set aside and given back while few other lines come and go, but some may: they are kept apart.
  logic reserve_q, unreserve_q;
  always_ff @(posedge clk_i) begin
    dropped_q    <= rst_ni && dropped_valid_i;
    gone_q       <= rst_ni && gone_valid_i;
    gone_lines_q <= gone_lines_i;
    reserve_q    <= rst_ni && reserve_i;
    unreserve_q  <= rst_ni && unreserve_i;
    if (!rst_ni) change_q <= '0;
    else begin
      change_q <= (LineW + 3)'(dropped_q && dropped_shared)
          + ((gone_q && gone_shared) ? (LineW + 3)'(gone_lines_q) : '0)
          + (unreserve_q ? (LineW + 3)'(window_lines) : '0) - (reserve_q ? (LineW + 3)'(window_lines) : '0);
    end
  end

  // ---------------------------------------------------------------------------------------------- near and far
  // One amount at a time is on its way from far to near (or back, where one of them is negative).
  logic signed [NearW-1:0] near_q, near_d, move_q, move_d;
  logic signed [17:0]      far_q, far_d;
  logic                    moves, is_moving_q;

  assign near_o      = near_q;
  assign is_moving_o = is_moving_q;

  always_comb begin
    move_d = '0;
    moves  = 1'b0;
    if (!is_moving_q) begin
      if (near_q < 0) begin
        moves  = 1'b1;
        move_d = -near_q;
      end else if (far_q < 0) begin
        moves  = near_q != '0;
        move_d = (far_q < -18'(Enough)) ? -Enough : NearW'(far_q);
      end else if (near_q < Enough) begin
        moves  = far_q != '0;
        move_d = (far_q >= 18'(Enough)) ? Enough : NearW'(far_q);
      end
    end
    near_d = near_q + move_q - (take_valid_i ? NearW'(take_lines_i) : '0);
    far_d  = far_q + 18'(change_q) - 18'(move_q);
  end

  logic signed [17:0] all_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      near_q      <= '0;
      move_q      <= '0;
      far_q       <= signed'({2'b0, pool_lines_i});
      is_moving_q <= 1'b0;
      all_q       <= signed'({2'b0, pool_lines_i});
    end else begin
      near_q      <= near_d;
      move_q      <= moves ? move_d : '0;
      far_q       <= far_d;
      is_moving_q <= moves;
      all_q       <= far_q + 18'(near_q);
    end
    free_o         <= all_q[17] ? '0 : all_q[15:0];
    lacks_window_o <= all_q < signed'({1'b0, window_lines});
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_not_too_free   : assert (all_q <= signed'({2'b0, pool_lines_i}));
      a_at_most_a_ring : assert (!take_valid_i || take_lines_i <= (RingW + 1)'(1 << RingW));
      a_near_is_small  : assert (near_q >= -signed'(NearW'(7 << RingW)));
    end
  end
`endif

endmodule

`default_nettype wire

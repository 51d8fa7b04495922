// Deadlines of the holes of a number of queues: tells when one has stood too long.
//
// Guarantees
//   - A queue that stays armed past its deadline is offered (`due_valid_o`, `due_queue_o`), at most
//     7 x NumQueues + 8 cycles after it. The taker disarms it; until then it may be offered again.
//   - A queue that is disarmed or armed anew in a cycle is not offered in the next ones for the old deadline.
// Limits
//   - Times are compared modulo 2^48 ns: a deadline may lie at most 2^47 ns (39 hours) ahead.
//   - Every queue must be disarmed once after power-up; the owner sweeps over them.
// Cost: NumQueues x 49 bits of RAM, about 120 registers. The comparison takes four steps of 12 bits, which keeps the
// borrow short. Twin: nic/model/src/deadlines.rs.

`default_nettype none

module hole_watch #(
  // Queues, 1 to 1024.
  parameter int unsigned NumQueues = 64,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic [47:0]       now_ns_i,

  // Arms or disarms one queue.
  input  logic              set_valid_i,
  input  logic [QueueW-1:0] set_queue_i,
  input  logic              set_armed_i,
  input  logic [47:0]       set_deadline_i,

  // A queue whose deadline has passed. The owner disarms it once it has taken it.
  output logic              due_valid_o,
  input  logic              due_ready_i,
  output logic [QueueW-1:0] due_queue_o
);

  typedef enum logic [2:0] {ScanRead, ScanTake, ScanStep, ScanJudge, ScanDue} scan_e;

  scan_e             scan_q, scan_d;
  logic [QueueW-1:0] queue_q, queue_d, next_queue;
  logic [1:0]        step_q;
  logic [47:0]       now_q, deadline_q, deadline;
  logic [11:0]       unused_part;
  logic              borrow_q, borrow, sign_q, sign, armed;

  table_ram #(.Width(49), .Depth(NumQueues)) u_deadlines (
    .clk_i,
    .we_i    (set_valid_i),
    .waddr_i (set_queue_i),
    .wdata_i ({set_armed_i, set_deadline_i}),
    .raddr_i (queue_q),
    .rdata_o ({armed, deadline})
  );

  assign due_valid_o = scan_q == ScanDue;
  assign due_queue_o = queue_q;
  assign next_queue  = (queue_q == QueueW'(NumQueues - 1)) ? '0 : queue_q + 1'b1;

  // 12 bits of now - deadline a step; the lowest bit of each word brings the borrow in.
  assign {borrow, sign, unused_part} = {1'b0, now_q[11:0], 1'b0} - {1'b0, deadline_q[11:0], borrow_q};

  always_comb begin
    scan_d  = scan_q;
    queue_d = queue_q;
    unique case (scan_q)
      ScanRead: scan_d = ScanTake;
      ScanTake: begin
        scan_d = ScanStep;
        if (!armed) begin
          scan_d  = ScanRead;
          queue_d = next_queue;
        end
      end
      ScanStep: if (step_q == '1) scan_d = ScanJudge;
      ScanJudge: begin
        scan_d = ScanDue;
        // Bit 47 of the difference is its sign: the deadline is still ahead.
        if (sign_q) begin
          scan_d  = ScanRead;
          queue_d = next_queue;
        end
      end
      default: begin
        if (due_ready_i) begin
          scan_d  = ScanRead;
          queue_d = next_queue;
        end
      end
    endcase
    // What was read is no longer so: look again.
    if (set_valid_i && set_queue_i == queue_q && !(due_valid_o && due_ready_i)) begin
      scan_d  = ScanRead;
      queue_d = queue_q;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      scan_q  <= ScanRead;
      queue_q <= '0;
    end else begin
      scan_q  <= scan_d;
      queue_q <= queue_d;
    end
    if (scan_q == ScanTake) begin
      now_q      <= now_ns_i;
      deadline_q <= deadline;
      borrow_q   <= 1'b0;
      step_q     <= '0;
    end else begin
      now_q      <= now_q >> 12;
      deadline_q <= deadline_q >> 12;
      borrow_q   <= borrow;
      step_q     <= step_q + 1'b1;
    end
    sign_q <= sign;
  end

  if (NumQueues < 1 || NumQueues > 1024) begin : g_bad_queues
    $fatal(1, "hole_watch: NumQueues must be 1 to 1024");
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!due_valid_o || armed);
    end
  end
`endif

endmodule

`default_nettype wire

// The EOP filter: finds the end of a packet in a line and tells how much of the line is the packet's.
//
// A sender of kPIO+WC stuffs the rest of a packet's last line with an 8-byte end-of-packet signature; a packet that
// fills its last line is followed by a whole line of signatures. A line either belongs to the packet whole, or its tail
// is signatures up to the end of the line. A signature in front of a word that is none shows that the payload holds the
// signature: the packet is damaged, and lost, which the paper accepts once in 2^64 words.
//
// Guarantees
//   - Ops leave in the order in which they came, one a cycle, each line with its outcome by the signature that was in
//     force when its queue was started.
// Limits: a payload word equal to the signature directly before the stuffing, or last in a line, does not show.
// Latency 3 cycles: read the queue's signature; compare word by word; judge.
// Cost: NumQueues x 64 bits of RAM, about 1,600 registers.
// Twin: nic/model/src/kpio/eop_filter.rs (judge). Larsen & Lee, NAS'15, figure 3.

`default_nettype none

module eop_filter #(
  // Queues, 1 to 1024.
  parameter int unsigned NumQueues = 64,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic              in_valid_i,
  output logic              in_ready_o,
  input  kpio_pkg::op_e     in_op_i,
  input  logic [QueueW-1:0] in_queue_i,
  input  logic [511:0]      in_data_i,
  input  nic_pkg::queue_status_cause_e in_cause_i,
  // Signature of the queue that an OpStart starts; stands while the op is under way.
  input  logic [63:0]       start_eop_i,

  output logic              out_valid_o,
  input  logic              out_ready_i,
  output kpio_pkg::op_e     out_op_o,
  output logic [QueueW-1:0] out_queue_o,
  output logic [511:0]      out_data_o,
  output nic_pkg::queue_status_cause_e out_cause_o,
  output kpio_pkg::outcome_t out_outcome_o,
  // No op is at work.
  output logic              is_idle_o
);

  logic                            valid1_q, valid2_q, valid3_q, load1, load2, load3;
  kpio_pkg::op_e                   op1_q, op2_q, op3_q;
  logic [QueueW-1:0]               queue1_q, queue2_q, queue3_q;
  logic [511:0]                    data1_q, data2_q, data3_q;
  nic_pkg::queue_status_cause_e    cause1_q, cause2_q, cause3_q;
  logic [63:0]                     eop_mem [NumQueues];
  logic [63:0]                     eop_q;
  logic [7:0]                      is_eop, signatures_q, tail;
  kpio_pkg::outcome_t              outcome, outcome_q;

  assign load3      = !valid3_q || out_ready_i;
  assign load2      = !valid2_q || load3;
  assign load1      = !valid1_q || load2;
  assign in_ready_o = load1;

  // The signature is written while the start op passes and read by the lines behind it, which come later by the time
  // that the start takes.
  always_ff @(posedge clk_i) begin
    if (in_valid_i && in_op_i == kpio_pkg::OpStart) eop_mem[in_queue_i] <= start_eop_i;
    if (load1) eop_q <= eop_mem[in_queue_i];
  end

  always_comb begin
    for (int i = 0; i < 8; i++) is_eop[i] = data1_q[64*i+:64] == eop_q;
  end

  // The signatures at the end of the line: bit i when words i to 7 are all signatures.
  always_comb begin
    for (int i = 0; i < 8; i++) tail[i] = (signatures_q | 8'((1 << i) - 1)) == '1;
    outcome.goes_on = !signatures_q[7];
    outcome.damaged = signatures_q != tail;
    // The words that are not in the tail; 8 of them cannot be where the packet ends.
    outcome.words   = '0;
    for (int i = 0; i < 8; i++) if (!tail[i]) outcome.words = 3'(i + 1);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid1_q <= 1'b0;
      valid2_q <= 1'b0;
      valid3_q <= 1'b0;
    end else begin
      if (load1) valid1_q <= in_valid_i;
      if (load2) valid2_q <= valid1_q;
      if (load3) valid3_q <= valid2_q;
    end
    if (load1) begin
      op1_q    <= in_op_i;
      queue1_q <= in_queue_i;
      data1_q  <= in_data_i;
      cause1_q <= in_cause_i;
    end
    if (load2) begin
      op2_q        <= op1_q;
      queue2_q     <= queue1_q;
      data2_q      <= data1_q;
      cause2_q     <= cause1_q;
      signatures_q <= is_eop;
    end
    if (load3) begin
      op3_q     <= op2_q;
      queue3_q  <= queue2_q;
      data3_q   <= data2_q;
      cause3_q  <= cause2_q;
      outcome_q <= outcome;
    end
  end

  assign out_valid_o   = valid3_q;
  assign out_op_o      = op3_q;
  assign out_queue_o   = queue3_q;
  assign out_data_o    = data3_q;
  assign out_cause_o   = cause3_q;
  assign out_outcome_o = outcome_q;
  assign is_idle_o     = !(valid1_q || valid2_q || valid3_q);

  if (NumQueues < 1 || NumQueues > 1024) begin : g_bad_queues
    $fatal(1, "eop_filter: NumQueues must be 1 to 1024");
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      // A line on the heels of its queue's start would be judged by the old signature.
      assert (!(valid1_q && op1_q == kpio_pkg::OpStart && in_valid_i && in_op_i == kpio_pkg::OpLine
                && in_queue_i == queue1_q));
    end
  end
`endif

endmodule

`default_nettype wire

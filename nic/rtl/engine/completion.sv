// Transmit completions: the absolute head count of each queue, written to the host, and the interrupt behind
// it.
//
// Guarantees
//   - The count that is written never runs ahead of what has left. It is written after `frames` descriptors
//     (0 counts as 1), or `time_ns` after the first that was not reported; without a time, when the queue has
//     nothing more posted.
//   - An interrupt is offered after the count was written, if one of the descriptors up to it asked for one
//     and none was offered for it before. A queue whose head address is 0 gets no count, but its interrupts.
//   - After a stop (busy_o low again) nothing of the queue is written or offered that was not offered before.
// Limits: those of moderation.sv; one write in two cycles.
// Cost: that of moderation.sv. Twin: TxQueue::{report, write_head} in nic/model/src/descriptor/tx_queue.rs.

`default_nettype none

module completion #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  output logic              busy_o,
  input  logic [32:0]       now_ns_i,

  input  logic              start_valid_i,
  input  logic              stop_valid_i,
  input  logic [QueueW-1:0] setup_queue_i,
  input  logic [60:0]       start_word_address_i,
  input  logic [31:0]       start_frames_i,
  input  logic [31:0]       start_time_ns_i,

  input  logic              done_valid_i,
  input  logic [QueueW-1:0] done_queue_i,
  input  logic [31:0]       done_count_i,
  input  logic              done_flag_i,

  input  logic              posted_valid_i,
  input  logic [QueueW-1:0] posted_queue_i,
  input  logic [31:0]       posted_count_i,

  output logic              dmawr_valid_o,
  input  logic              dmawr_ready_i,
  output logic [63:0]       dmawr_address_o,
  output logic [511:0]      dmawr_data_o,
  output logic [6:0]        dmawr_bytes_o,

  output logic              irq_valid_o,
  input  logic              irq_ready_i,
  output logic [QueueW-1:0] irq_queue_o,

  output logic              count_completions_o
);

  logic              report_valid, report_ready, report_flag, has_address, irq_free;
  logic [QueueW-1:0] report_queue;
  logic [60:0]       report_address;
  logic [63:0]       report_count;
  logic              irq_valid_q, irq_valid_d;
  logic [QueueW-1:0] irq_queue_q;

  moderation #(.NumQueues(NumQueues), .IdleByGoal(1'b1)) u_moderation (
    .clk_i, .rst_ni, .busy_o, .now_ns_i,
    .start_valid_i, .stop_valid_i, .setup_queue_i, .start_word_address_i,
    .start_count_i(start_frames_i), .start_time_ns_i,
    .count_valid_i(done_valid_i), .count_queue_i(done_queue_i), .count_i(done_count_i),
    .count_flag_i(done_flag_i),
    .goal_valid_i(posted_valid_i), .goal_queue_i(posted_queue_i), .goal_i(posted_count_i),
    .report_valid_o(report_valid), .report_ready_i(report_ready), .report_queue_o(report_queue),
    .report_word_address_o(report_address), .report_count_o(report_count), .report_flag_o(report_flag)
  );

  // A report waits for the place of its interrupt before it is written, so that the one follows the other at
  // once.
  assign has_address  = report_address != '0;
  assign irq_free     = !report_flag || !irq_valid_q;
  assign report_ready = irq_free && (!has_address || dmawr_ready_i);

  assign dmawr_valid_o   = report_valid && has_address && irq_free;
  assign dmawr_address_o = {report_address, 3'b000};
  assign dmawr_data_o    = 512'(report_count);
  assign dmawr_bytes_o   = 7'(nic_pkg::WordBytes);

  always_comb begin
    irq_valid_d = irq_valid_q && !irq_ready_i;
    if (report_valid && report_ready && report_flag) irq_valid_d = 1'b1;
  end

  always_ff @(posedge clk_i) begin
    irq_valid_q <= rst_ni && irq_valid_d;
    if (report_valid && report_ready && report_flag) irq_queue_q <= report_queue;
  end

  assign irq_valid_o = irq_valid_q;
  assign irq_queue_o = irq_queue_q;
  assign count_completions_o = dmawr_valid_o && dmawr_ready_i;

`ifndef SYNTHESIS
  logic        waiting_q;
  logic [63:0] waiting_count_q;
  always_ff @(posedge clk_i) begin
    waiting_q       <= rst_ni && dmawr_valid_o && !dmawr_ready_i;
    waiting_count_q <= dmawr_data_o[63:0];
    if (rst_ni) begin
      assert (!waiting_q || dmawr_valid_o && dmawr_data_o[63:0] == waiting_count_q)
        else $error("completion: a waiting write changed");
    end
  end
`endif

endmodule

`default_nettype wire

// Credits: the absolute count of freed lines of each queue, pushed into the sender's memory by DMA writes of
// 8 bytes.
//
// Guarantees
//   - One freed count a cycle is taken, of any queue, always. Counts come absolute modulo 2^32 since the
//     queue started; the pushed count has 64 bits, little-endian. A later count replaces an earlier one; the
//     newest is pushed in the end.
//   - A push is made after `credit_lines` freed lines (0 reads as 1), and at the latest `credit_time_ns`
//     after the first line that was not pushed, with the precision of the scan in moderation.sv. A queue
//     whose credit address is 0, or that is not started, pushes nothing.
//   - After a stop (busy_o low again) nothing of the queue is written any more.
// Limits
//   - The credit address is taken as a multiple of 8: its three low bits are not looked at.
//   - Those of moderation.sv: 10 cycles from a count to its push at the earliest, one push in two cycles.
// Cost: NumQueues x 337 bits of RAM. Twin: nic/model/src/mmio/credit_return.rs.

`default_nettype none

module credit_return #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic [47:0]       now_ns_i,

  // Set-up, a pulse while busy_o is low.
  output logic              busy_o,
  input  logic              start_valid_i,
  input  logic [QueueW-1:0] start_queue_i,
  input  nic_rtl_pkg::queue_settings_t start_settings_i,
  input  logic              stop_valid_i,
  input  logic [QueueW-1:0] stop_queue_i,

  input  logic              freed_valid_i,
  input  logic [QueueW-1:0] freed_queue_i,
  input  logic [31:0]       freed_lines_i,

  output logic              dmawr_valid_o,
  input  logic              dmawr_ready_i,
  output logic [63:0]       dmawr_address_o,
  output logic [511:0]      dmawr_data_o,
  output logic [6:0]        dmawr_bytes_o,

  output logic              count_credit_pushes_o
);

  logic [60:0]       word_address;
  logic [63:0]       count;
  logic              pushes_anywhere;
  logic [QueueW-1:0] unused_queue;
  logic              unused_bits;

  // A start without an address is a stop: nothing may be pushed for the life that begins.
  assign pushes_anywhere = start_settings_i.credit_address != '0;

  moderation #(.NumQueues(NumQueues), .IdleByGoal(1'b0)) u_moderation (
    .clk_i, .rst_ni, .busy_o,
    .now_ns_i(now_ns_i[32:0]),
    .start_valid_i(start_valid_i && pushes_anywhere),
    .stop_valid_i(stop_valid_i || start_valid_i && !pushes_anywhere),
    .setup_queue_i(start_valid_i ? start_queue_i : stop_queue_i),
    .start_word_address_i(start_settings_i.credit_address[63:3]),
    .start_count_i(start_settings_i.credit_lines),
    .start_time_ns_i(start_settings_i.credit_time_ns),
    .count_valid_i(freed_valid_i), .count_queue_i(freed_queue_i), .count_i(freed_lines_i),
    .count_flag_i(1'b0),
    .goal_valid_i(1'b0), .goal_queue_i('0), .goal_i('0),
    .report_valid_o(dmawr_valid_o), .report_ready_i(dmawr_ready_i), .report_queue_o(unused_queue),
    .report_word_address_o(word_address), .report_count_o(count), .report_flag_o(unused_bits)
  );

  assign dmawr_address_o = {word_address, 3'b000};
  assign dmawr_data_o    = 512'(count);
  assign dmawr_bytes_o   = 7'(nic_pkg::WordBytes);

  assign count_credit_pushes_o = dmawr_valid_o && dmawr_ready_i;

  logic unused_inputs;
  assign unused_inputs = ^{now_ns_i[47:33], start_settings_i};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!(start_valid_i && stop_valid_i)) else $error("credit_return: start and stop in one cycle");
    end
  end
`endif

endmodule

`default_nettype wire

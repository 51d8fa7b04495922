// The queues that have something to do, each at most once, in the order in which they got it.
//
// Guarantees
//   - A queue that is added is given out afterwards, once for any number of additions before it left the list
//     for its output: no queue waits for more than all others, and an addition is never refused. One addition
//     a cycle, one taking in two.
//   - What the adder wrote about the queue at the latest in the cycle after the addition is there for whoever
//     takes the queue and puts its read address on in the cycle after the taking.
// Limits
//   - `busy_o` after reset, for one cycle a queue, while the marks are cleared; nothing may be added then.
// Latency: an addition can be taken three cycles later. Cost: NumQueues x ($clog2(NumQueues) + 3) bits of
// RAM.
// Twin: the lists `work` and `is_at_work` of nic/model/src/descriptor/mod.rs and nic/model/src/rx/mod.rs.

`default_nettype none

module work_list #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  output logic              busy_o,

  input  logic              add_valid_i,
  input  logic [QueueW-1:0] add_queue_i,

  output logic              take_valid_o,
  input  logic              take_ready_i,
  output logic [QueueW-1:0] take_queue_o
);

  localparam int unsigned Entries = 1 << QueueW;

  if (NumQueues < 1 || NumQueues > 1024 || (NumQueues & (NumQueues - 1)) != 0) begin : g_bad_queues
    $fatal(1, "work_list: NumQueues must be a power of two from 1 to 1024");
  end

  // A queue is in the list while its two marks differ: adding writes the one, taking the other.
  logic              clearing_q, clearing_d;
  logic [QueueW-1:0] clear_q, clear_d;
  logic              add_q;
  logic [QueueW-1:0] queue_q;
  logic              added_mark, taken_mark, insert, pop_mark;

  logic                     push_ready;
  logic                     pop_valid, pop;
  logic [QueueW:0]          pop_entry;
  logic                     out_valid_q;
  logic [QueueW-1:0]        out_q, pop_queue;
  localparam int unsigned FifoDepth = (Entries < 2) ? 2 : Entries;
  logic [$clog2(FifoDepth):0] unused_count;

  assign busy_o = clearing_q;
  assign insert = add_q && (added_mark == taken_mark);
  // A queue goes to the output when that is empty, so nothing leads from the taker into the list.
  assign pop    = pop_valid && !out_valid_q;
  assign {pop_mark, pop_queue} = pop_entry;
  assign take_valid_o = out_valid_q;
  assign take_queue_o = out_q;

  always_comb begin
    clearing_d = clearing_q && (clear_q != '1);
    clear_d    = clear_q + QueueW'(clearing_q);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      clearing_q <= 1'b1;
      clear_q    <= '0;
      add_q      <= 1'b0;
      out_valid_q <= 1'b0;
    end else begin
      clearing_q <= clearing_d;
      clear_q    <= clear_d;
      add_q      <= add_valid_i && !clearing_q;
      out_valid_q <= pop || out_valid_q && !take_ready_i;
    end
    if (pop) out_q <= pop_queue;
    queue_q <= add_queue_i;
  end

  table_ram #(.Width(1), .Depth(Entries)) u_added (
    .clk_i, .we_i(clearing_q || insert), .waddr_i(clearing_q ? clear_q : queue_q),
    .wdata_i(!clearing_q && !taken_mark), .raddr_i(add_queue_i), .rdata_o(added_mark)
  );

  table_ram #(.Width(1), .Depth(Entries)) u_taken (
    .clk_i, .we_i(clearing_q || pop), .waddr_i(clearing_q ? clear_q : pop_queue),
    .wdata_i(!clearing_q && pop_mark), .raddr_i(add_queue_i), .rdata_o(taken_mark)
  );

  // Each queue is inside at most once, so it never refuses.
  fifo #(.Width(QueueW + 1), .Depth(FifoDepth)) u_fifo (
    .clk_i, .rst_ni,
    .push_valid_i(insert), .push_ready_o(push_ready), .push_data_i({!taken_mark, queue_q}),
    .pop_valid_o(pop_valid), .pop_ready_i(pop), .pop_data_o(pop_entry),
    .count_o(unused_count)
  );

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!insert || push_ready) else $error("work_list: a queue is in the list twice");
      assert (!(add_valid_i && clearing_q)) else $error("work_list: added while busy_o");
    end
  end
`else
  logic unused_ready;
  assign unused_ready = push_ready;
`endif

endmodule

`default_nettype wire

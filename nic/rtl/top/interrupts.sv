// Interrupts of every kind, one after the other, to the host: the vector is the queue's.
//
// A cause that the mask does not let through is noted in the registers and forgotten here.
//
// Guarantees
//   - An interrupt follows what it tells: every DMA write that was taken by the write port before the engine raised it
//     has left when it does (host memory sees posted writes and messages of one device in their order).
//   - No failure of a queue is lost; transmit and receive wait for each other fairly, failures go first.
// Limits: dmawr_* are the pins behind the one write port; a write is taken into its register before an engine raises
//   the interrupt that tells of it.
// Latency: 2 cycles. Cost: NumQueues x QueueW bits. Twin: nic/model/src/interrupts.rs.

`default_nettype none

module interrupts #(
  // Queues, 1 to 1024.
  parameter int unsigned NumQueues = 64,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  // nic_pkg's bits of irq_mask: transmit completion, received frame, failed queue.
  input  logic [2:0]        mask_i,

  // A queue failed; the registers have looked at the mask already.
  input  logic              failed_valid_i,
  input  logic [QueueW-1:0] failed_queue_i,

  input  logic              tx_valid_i,
  output logic              tx_ready_o,
  input  logic [QueueW-1:0] tx_queue_i,
  input  logic              rx_valid_i,
  output logic              rx_ready_o,
  input  logic [QueueW-1:0] rx_queue_i,

  // Causes, as they come in.
  output logic              cause_tx_completion_o,
  output logic              cause_rx_frame_o,

  // The DMA write that stands at the pins.
  input  logic              dmawr_valid_i,
  input  logic              dmawr_ready_i,

  output logic              irq_valid_o,
  input  logic              irq_ready_i,
  output logic [QueueW-1:0] irq_vector_o
);

  localparam int unsigned TxBit = 0;
  localparam int unsigned RxBit = 1;
  localparam int unsigned Depth = (NumQueues < 2) ? 2 : 1 << $clog2(NumQueues);

  logic              valid_q, valid_d, follows_q, follows_d, last_rx_q, load, take_tx, take_rx;
  logic              failed_valid, failed_ready, unused_ready;
  logic [QueueW-1:0] vector_q, failed_queue;
  logic [$clog2(Depth):0] unused_count;

  fifo #(.Width(QueueW), .Depth(Depth)) u_failed (
    .clk_i, .rst_ni, .push_valid_i(failed_valid_i), .push_ready_o(unused_ready), .push_data_i(failed_queue_i),
    .pop_valid_o(failed_valid), .pop_ready_i(failed_ready), .pop_data_o(failed_queue), .count_o(unused_count)
  );

  assign load         = !valid_q || (irq_valid_o && irq_ready_i);
  assign failed_ready = load;
  assign take_tx      = load && !failed_valid && tx_valid_i && (last_rx_q || !rx_valid_i);
  assign take_rx      = load && !failed_valid && rx_valid_i && !take_tx;
  assign tx_ready_o   = take_tx;
  assign rx_ready_o   = take_rx;

  assign cause_tx_completion_o = take_tx;
  assign cause_rx_frame_o      = take_rx;

  always_comb begin
    valid_d   = valid_q && !(irq_valid_o && irq_ready_i);
    // The write that stood at the pins, or came there with the interrupt, leaves first; what comes later need not.
    follows_d = follows_q && dmawr_valid_i && !dmawr_ready_i;
    if (load) begin
      valid_d   = failed_valid || (take_tx && mask_i[TxBit]) || (take_rx && mask_i[RxBit]);
      follows_d = 1'b1;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q   <= 1'b0;
      follows_q <= 1'b0;
      last_rx_q <= 1'b0;
    end else begin
      valid_q   <= valid_d;
      follows_q <= follows_d;
      if (take_tx || take_rx) last_rx_q <= take_rx;
    end
    if (load) vector_q <= failed_valid ? failed_queue : take_tx ? tx_queue_i : rx_queue_i;
  end

  assign irq_valid_o  = valid_q && !follows_q;
  assign irq_vector_o = vector_q;

`ifndef SYNTHESIS
  logic              waiting_q;
  logic [QueueW-1:0] waiting_vector_q;
  always_ff @(posedge clk_i) begin
    waiting_q        <= rst_ni && irq_valid_o && !irq_ready_i;
    waiting_vector_q <= irq_vector_o;
    if (rst_ni) begin
      a_stands : assert (!waiting_q || irq_valid_o && irq_vector_o == waiting_vector_q);
      a_no_failure_is_lost : assert (!failed_valid_i || unused_ready);
    end
  end
`endif

endmodule

`default_nettype wire

// Raises interrupts through the MSI port of AMD's UltraScale+ PCIe block (PG213), one after the other.
//
// Guarantees
//   - An interrupt is asked for when everything that was written before it has passed `fence_*` (write_fence.sv): the
//     host's handler finds what it is called for.
//   - The message is the queue's number modulo as many messages as the host has granted (1 to 32, the block's
//     `msi_mmenable`): with fewer messages than queues, queues share one.
//   - One that the block could not send (`msi_fail_i`) is asked for again while MSI is enabled.
//   - While the host has not enabled MSI an interrupt is taken and forgotten; its cause stands in the registers.
// Limits: one interrupt at a time, about ten cycles each; those that come meanwhile wait in front.
// Latency: 4 cycles beside the fence. Cost: 50 registers. Twin: nic/model/src/interrupts.rs.

`default_nettype none

module msi_sender #(
  // Bits of a vector, 1 to 16.
  parameter int unsigned VectorW = 6
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  input  logic               irq_valid_i,
  output logic               irq_ready_o,
  input  logic [VectorW-1:0] irq_vector_i,

  output logic               fence_ask_o,
  input  logic               fence_pass_i,

  // cfg_interrupt_msi_* of the block, of function 0.
  input  logic               msi_enable_i,
  input  logic [2:0]         msi_mmenable_i,
  output logic [31:0]        msi_int_o,
  input  logic               msi_sent_i,
  input  logic               msi_fail_i
);

  if (VectorW < 1 || VectorW > 16) begin : g_bad_vector
    $fatal(1, "msi_sender: VectorW must be 1 to 16 bits");
  end

  typedef enum logic [1:0] {StIdle, StFence, StRaise, StWait} state_e;

  state_e             state_q, state_d;
  logic [VectorW-1:0] vector_q;
  logic [4:0]         message, message_q, granted;
  logic [31:0]        raise, msi_int_q;

  assign irq_ready_o = state_q == StIdle;
  assign fence_ask_o = state_q == StFence;
  assign granted     = 5'((6'd1 << msi_mmenable_i) - 6'd1);
  assign message     = 5'(vector_q) & granted;
  // The block sees the rise of one bit, for one cycle.
  assign raise       = (state_q == StRaise) ? 32'd1 << message_q : '0;
  assign msi_int_o   = msi_int_q;

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle:  if (irq_valid_i) state_d = StFence;
      StFence: if (fence_pass_i) state_d = msi_enable_i ? StRaise : StIdle;
      StRaise: state_d = StWait;
      default: begin
        if (msi_sent_i) state_d = StIdle;
        else if (msi_fail_i) state_d = msi_enable_i ? StRaise : StIdle;
        else if (!msi_enable_i) state_d = StIdle;
      end
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q   <= StIdle;
      msi_int_q <= '0;
    end else begin
      state_q   <= state_d;
      msi_int_q <= raise;
    end
    if (irq_ready_o) vector_q <= irq_vector_i;
    message_q <= message;
  end

  logic unused_vector;
  assign unused_vector = ^vector_q;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert ((msi_int_q & (msi_int_q - 1'b1)) == '0) else $error("msi_sender: two messages at once");
      assert (!(msi_enable_i && msi_mmenable_i > 3'd5)) else $error("msi_sender: %0d messages", msi_mmenable_i);
    end
  end
`endif

endmodule

`default_nettype wire

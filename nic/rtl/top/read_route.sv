// Which reads are of windows, and of which word there: the others are of registers.
//
// Guarantees: a cycle after a read stands at the port it is decoded; `is_known_o` says so, until the read is taken. A
// word beyond the last window or behind the lines of one is not of a window, and left to the registers to refuse.
// Limits: the address stands until the read is taken. Cost: 30 registers. Twin: window() in nic/model/src/bar.rs.

`default_nettype none

module read_route #(
  parameter int unsigned NumQueues = 64,
  // log2 of the lines of the longest window.
  parameter int unsigned LineW = 6,
  // Bits of an offset in the BAR.
  parameter int unsigned AddressW = 22,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // Straps, as in mmio/bar_ingress.sv.
  input  logic [AddressW-1:0] aperture_i,
  input  logic [4:0]          stride_log2_i,
  input  logic [LineW-1:0]    window_mask_i,

  input  logic                rd_valid_i,
  input  logic                rd_ready_i,
  input  logic [AddressW-1:0] rd_address_i,

  output logic                is_known_o,
  output logic                is_window_o,
  output logic [QueueW-1:0]   queue_o,
  output logic [LineW+2:0]    word_o
);

  localparam int unsigned IndexW = AddressW - 6;

  logic [IndexW-1:0] distance, queue_index, line_index, stride_mask;

  assign distance    = rd_address_i[AddressW-1:6] - aperture_i[AddressW-1:6];
  assign queue_index = distance >> (stride_log2_i - 5'd6);
  assign stride_mask = ~({IndexW{1'b1}} << (stride_log2_i - 5'd6));
  assign line_index  = distance & stride_mask;

  always_ff @(posedge clk_i) begin
    is_known_o  <= rst_ni && rd_valid_i && !rd_ready_i;
    is_window_o <= rd_address_i >= aperture_i && queue_index < IndexW'(NumQueues)
                   && line_index <= IndexW'(window_mask_i) && rd_address_i[2:0] == '0;
    queue_o     <= queue_index[QueueW-1:0];
    word_o      <= {line_index[LineW-1:0], rd_address_i[5:3]};
  end

endmodule

`default_nettype wire

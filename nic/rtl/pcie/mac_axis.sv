// Between the NIC's streams of frames and the AXI-Stream of a MAC (512 bits, packets), both ways.
//
// Guarantees: beats in order, one a cycle; both directions are registered with a place to spare, so no path leads from
//   one side's handshake to the other's. tkeep has one run of bits from bit 0 on, full but for the last beat. tuser
//   with tlast: the frame must not arrive whole (the MAC makes its checksum bad).
// Limits: what comes from the MAC has such a tkeep too, and is whole: a MAC that finds a bad checksum drops the frame.
// Latency: 1 cycle each. Cost: 2 x 4 x 580 bits of LUTRAM. Twin in nic/model: none.

`default_nettype none

module mac_axis (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         frame_valid_i,
  output logic         frame_ready_o,
  input  logic [511:0] frame_data_i,
  input  logic [6:0]   frame_bytes_i,
  input  logic         frame_last_i,
  input  logic         frame_abort_i,

  output logic         tx_tvalid_o,
  input  logic         tx_tready_i,
  output logic [511:0] tx_tdata_o,
  output logic [63:0]  tx_tkeep_o,
  output logic         tx_tlast_o,
  output logic         tx_tuser_o,

  input  logic         rx_tvalid_i,
  output logic         rx_tready_o,
  input  logic [511:0] rx_tdata_i,
  input  logic [63:0]  rx_tkeep_i,
  input  logic         rx_tlast_i,

  output logic         rx_valid_o,
  input  logic         rx_ready_i,
  output logic [511:0] rx_data_o,
  output logic [6:0]   rx_bytes_o,
  output logic         rx_last_o
);

  logic [63:0] frame_keep, top;
  logic [6:0]  rx_bytes;
  logic [2:0]  unused_tx_count, unused_rx_count;

  assign frame_keep = ~({64{1'b1}} << frame_bytes_i);
  // The highest byte of the run, one bit.
  assign top        = rx_tkeep_i & ~(rx_tkeep_i >> 1);

  always_comb begin
    rx_bytes = '0;
    for (int i = 0; i < 64; i++) rx_bytes = rx_bytes | (7'(i + 1) & {7{top[i]}});
  end

  fifo #(.Width(578), .Depth(4)) u_tx (
    .clk_i, .rst_ni,
    .push_valid_i(frame_valid_i), .push_ready_o(frame_ready_o),
    .push_data_i({frame_abort_i, frame_last_i, frame_keep, frame_data_i}),
    .pop_valid_o(tx_tvalid_o), .pop_ready_i(tx_tready_i),
    .pop_data_o({tx_tuser_o, tx_tlast_o, tx_tkeep_o, tx_tdata_o}), .count_o(unused_tx_count)
  );

  fifo #(.Width(520), .Depth(4)) u_rx (
    .clk_i, .rst_ni,
    .push_valid_i(rx_tvalid_i), .push_ready_o(rx_tready_o), .push_data_i({rx_tlast_i, rx_bytes, rx_tdata_i}),
    .pop_valid_o(rx_valid_o), .pop_ready_i(rx_ready_i), .pop_data_o({rx_last_o, rx_bytes_o, rx_data_o}),
    .count_o(unused_rx_count)
  );

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!frame_valid_i || (frame_bytes_i != '0 && frame_bytes_i <= 7'd64))
        else $error("mac_axis: a beat of %0d bytes", frame_bytes_i);
      assert (!rx_tvalid_i || (rx_tkeep_i[0] && (rx_tkeep_i & (rx_tkeep_i + 1'b1)) == '0))
        else $error("mac_axis: tkeep %h", rx_tkeep_i);
      assert (!rx_tvalid_i || rx_tlast_i || rx_tkeep_i == '1) else $error("mac_axis: a frame with a gap");
    end
  end
`endif

endmodule

`default_nettype wire

// The whole NIC with the signal names of the PCIe block's model and of a MAC's streams, for the benches of this folder.

`default_nettype none

module usplus_bench #(
  parameter int unsigned NumQueues = 4,
  parameter int unsigned WindowLines = 64,
  parameter int unsigned SpanLines = 16,
  parameter int unsigned NumContexts = 8,
  parameter int unsigned PoolLines = 256,
  parameter int unsigned ReadLines = 256
) (
  input  logic         user_clk,
  input  logic         user_reset,

  input  logic [511:0] m_axis_cq_tdata,
  input  logic [15:0]  m_axis_cq_tkeep,
  input  logic         m_axis_cq_tlast,
  input  logic [182:0] m_axis_cq_tuser,
  input  logic         m_axis_cq_tvalid,
  output logic         m_axis_cq_tready,
  output logic [1:0]   pcie_cq_np_req,

  output logic [511:0] s_axis_cc_tdata,
  output logic [15:0]  s_axis_cc_tkeep,
  output logic         s_axis_cc_tlast,
  output logic [80:0]  s_axis_cc_tuser,
  output logic         s_axis_cc_tvalid,
  input  logic         s_axis_cc_tready,

  output logic [511:0] s_axis_rq_tdata,
  output logic [15:0]  s_axis_rq_tkeep,
  output logic         s_axis_rq_tlast,
  output logic [136:0] s_axis_rq_tuser,
  output logic         s_axis_rq_tvalid,
  input  logic         s_axis_rq_tready,
  input  logic [5:0]   pcie_rq_seq_num0,
  input  logic         pcie_rq_seq_num_vld0,
  input  logic [5:0]   pcie_rq_seq_num1,
  input  logic         pcie_rq_seq_num_vld1,
  input  logic [3:0]   pcie_tfc_nph_av,
  input  logic [1:0]   cfg_max_payload,
  input  logic [2:0]   cfg_max_read_req,

  input  logic [511:0] m_axis_rc_tdata,
  input  logic [15:0]  m_axis_rc_tkeep,
  input  logic         m_axis_rc_tlast,
  input  logic [160:0] m_axis_rc_tuser,
  input  logic         m_axis_rc_tvalid,
  output logic         m_axis_rc_tready,

  input  logic [3:0]   cfg_interrupt_msi_enable,
  input  logic [11:0]  cfg_interrupt_msi_mmenable,
  output logic [31:0]  cfg_interrupt_msi_int,
  input  logic         cfg_interrupt_msi_sent,
  input  logic         cfg_interrupt_msi_fail,

  output logic [511:0] m_axis_tx_tdata,
  output logic [63:0]  m_axis_tx_tkeep,
  output logic         m_axis_tx_tlast,
  output logic         m_axis_tx_tuser,
  output logic         m_axis_tx_tvalid,
  input  logic         m_axis_tx_tready,

  input  logic [511:0] s_axis_rx_tdata,
  input  logic [63:0]  s_axis_rx_tkeep,
  input  logic         s_axis_rx_tlast,
  input  logic         s_axis_rx_tvalid,
  output logic         s_axis_rx_tready,

  output logic [1:0]   count_bad_accesses,
  output logic         count_unknown_completions,
  output logic         is_idle
);

  logic unused_axis;
  assign unused_axis = ^{m_axis_cq_tkeep, m_axis_cq_tlast, m_axis_rc_tkeep, cfg_interrupt_msi_enable[3:1],
                         cfg_interrupt_msi_mmenable[11:3]};

  nic_usplus #(
    .NumQueues(NumQueues), .WindowLines(WindowLines), .SpanLines(SpanLines), .NumContexts(NumContexts),
    .PoolLines(PoolLines), .ReadLines(ReadLines)
  ) u_nic (
    .user_clk_i(user_clk), .user_reset_i(user_reset),
    .cq_tvalid_i(m_axis_cq_tvalid), .cq_tready_o(m_axis_cq_tready), .cq_tdata_i(m_axis_cq_tdata),
    .cq_tuser_i(m_axis_cq_tuser), .pcie_cq_np_req_o(pcie_cq_np_req),
    .cc_tvalid_o(s_axis_cc_tvalid), .cc_tready_i(s_axis_cc_tready), .cc_tdata_o(s_axis_cc_tdata),
    .cc_tkeep_o(s_axis_cc_tkeep), .cc_tlast_o(s_axis_cc_tlast), .cc_tuser_o(s_axis_cc_tuser),
    .rq_tvalid_o(s_axis_rq_tvalid), .rq_tready_i(s_axis_rq_tready), .rq_tdata_o(s_axis_rq_tdata),
    .rq_tkeep_o(s_axis_rq_tkeep), .rq_tlast_o(s_axis_rq_tlast), .rq_tuser_o(s_axis_rq_tuser),
    .rq_seq_num_i({pcie_rq_seq_num1, pcie_rq_seq_num0}),
    .rq_seq_num_vld_i({pcie_rq_seq_num_vld1, pcie_rq_seq_num_vld0}),
    .tfc_nph_av_i(pcie_tfc_nph_av), .cfg_max_payload_i(cfg_max_payload),
    .cfg_max_read_req_i(cfg_max_read_req),
    .rc_tvalid_i(m_axis_rc_tvalid), .rc_tready_o(m_axis_rc_tready), .rc_tdata_i(m_axis_rc_tdata),
    .rc_tlast_i(m_axis_rc_tlast), .rc_tuser_i(m_axis_rc_tuser),
    .msi_enable_i(cfg_interrupt_msi_enable[0]), .msi_mmenable_i(cfg_interrupt_msi_mmenable[2:0]),
    .msi_int_o(cfg_interrupt_msi_int), .msi_sent_i(cfg_interrupt_msi_sent), .msi_fail_i(cfg_interrupt_msi_fail),
    .tx_pause_i(1'b0), .tx_tvalid_o(m_axis_tx_tvalid), .tx_tready_i(m_axis_tx_tready),
    .tx_tdata_o(m_axis_tx_tdata), .tx_tkeep_o(m_axis_tx_tkeep), .tx_tlast_o(m_axis_tx_tlast),
    .tx_tuser_o(m_axis_tx_tuser),
    .rx_lossless_i(1'b1), .rx_tvalid_i(s_axis_rx_tvalid), .rx_tready_o(s_axis_rx_tready),
    .rx_tdata_i(s_axis_rx_tdata), .rx_tkeep_i(s_axis_rx_tkeep), .rx_tlast_i(s_axis_rx_tlast),
    .count_bad_accesses_o(count_bad_accesses), .count_unknown_completions_o(count_unknown_completions),
    .is_idle_o(is_idle)
  );

endmodule

`default_nettype wire

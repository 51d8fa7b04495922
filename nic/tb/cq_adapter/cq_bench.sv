// The two adapters with the signal names of the PCIe block's model, for the benches of this folder.

`default_nettype none

module cq_bench #(
  parameter int unsigned AddressW = 20,
  parameter int unsigned ReadDepth = 8
) (
  input  logic                user_clk,
  input  logic                user_reset,

  input  logic [511:0]        m_axis_cq_tdata,
  input  logic [15:0]         m_axis_cq_tkeep,
  input  logic                m_axis_cq_tlast,
  input  logic [182:0]        m_axis_cq_tuser,
  input  logic                m_axis_cq_tvalid,
  output logic                m_axis_cq_tready,
  output logic [1:0]          pcie_cq_np_req,

  output logic [511:0]        s_axis_cc_tdata,
  output logic [15:0]         s_axis_cc_tkeep,
  output logic                s_axis_cc_tlast,
  output logic [80:0]         s_axis_cc_tuser,
  output logic                s_axis_cc_tvalid,
  input  logic                s_axis_cc_tready,

  output logic                wr_valid,
  input  logic                wr_ready,
  output logic [AddressW-1:0] wr_address,
  output logic [511:0]        wr_data,
  output logic [63:0]         wr_be,
  output logic                wr_first,
  output logic                wr_last,

  output logic                reg_valid,
  input  logic                reg_ready,
  output logic [AddressW-1:0] reg_address,
  input  logic                answer_valid,
  input  logic [63:0]         answer_data,

  output logic [1:0]          count_bad_accesses
);

  logic                    rd_valid, rd_ready;
  pcie_pkg::read_request_t rd_request;
  logic                    unused_axis;
  assign unused_axis = ^{m_axis_cq_tkeep, m_axis_cq_tlast};

  cq_adapter #(.AddressW(AddressW), .BarId(0), .ReadDepth(ReadDepth)) u_cq (
    .clk_i                (user_clk),
    .rst_ni               (!user_reset),
    .cq_tvalid_i          (m_axis_cq_tvalid),
    .cq_tready_o          (m_axis_cq_tready),
    .cq_tdata_i           (m_axis_cq_tdata),
    .cq_tuser_i           (m_axis_cq_tuser),
    .cq_np_req_o          (pcie_cq_np_req),
    .wr_valid_o           (wr_valid),
    .wr_ready_i           (wr_ready),
    .wr_address_o         (wr_address),
    .wr_data_o            (wr_data),
    .wr_be_o              (wr_be),
    .wr_first_o           (wr_first),
    .wr_last_o            (wr_last),
    .rd_valid_o           (rd_valid),
    .rd_ready_i           (rd_ready),
    .rd_request_o         (rd_request),
    .count_bad_accesses_o (count_bad_accesses)
  );

  cc_adapter #(.AddressW(AddressW)) u_cc (
    .clk_i          (user_clk),
    .rst_ni         (!user_reset),
    .rd_valid_i     (rd_valid),
    .rd_ready_o     (rd_ready),
    .rd_request_i   (rd_request),
    .reg_valid_o    (reg_valid),
    .reg_ready_i    (reg_ready),
    .reg_address_o  (reg_address),
    .answer_valid_i (answer_valid),
    .answer_data_i  (answer_data),
    .cc_tvalid_o    (s_axis_cc_tvalid),
    .cc_tready_i    (s_axis_cc_tready),
    .cc_tdata_o     (s_axis_cc_tdata),
    .cc_tkeep_o     (s_axis_cc_tkeep),
    .cc_tlast_o     (s_axis_cc_tlast),
    .cc_tuser_o     (s_axis_cc_tuser)
  );

endmodule

`default_nettype wire

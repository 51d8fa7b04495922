// The DMA half of nic_usplus alone: requests, completions, interrupts, with the signal names of the PCIe block's model.

`default_nettype none

module dma_bench #(
  parameter int unsigned Tags = 32,
  parameter int unsigned ReadLines = 128,
  localparam int unsigned RowW = $clog2(ReadLines) - 1
) (
  input  logic         user_clk,
  input  logic         user_reset,

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

  input  logic         dmawr_valid,
  output logic         dmawr_ready,
  input  logic [63:0]  dmawr_address,
  input  logic [511:0] dmawr_data,
  input  logic [6:0]   dmawr_bytes,

  input  logic         rdreq_valid,
  output logic         rdreq_ready,
  input  logic [63:0]  rdreq_address,
  input  logic [12:0]  rdreq_bytes,
  input  logic [7:0]   rdreq_tag,

  output logic         rdcpl_valid,
  output logic [7:0]   rdcpl_tag,
  output logic [511:0] rdcpl_data,
  output logic         rdcpl_last,
  output logic         rdcpl_error,

  input  logic         irq_valid,
  output logic         irq_ready,
  input  logic [5:0]   irq_vector,
  // Somebody else who must not overtake writes.
  input  logic         fence_ask,
  output logic         fence_pass,

  output logic         count_unknown_completions
);

  logic                      rst_n, piece_valid, piece_ready, retired_valid, progress_valid, irq_ask, irq_pass;
  logic [6:0]                retired_lines;
  pcie_pkg::read_piece_t     piece;
  pcie_pkg::piece_progress_t progress;
  logic [1:0][63:0]          write_be;
  logic [1:0][RowW-1:0]      write_row;
  logic [511:0]              write_data;
  logic                      unused_axis, sent_valid;
  logic [3:0]                sent_lines;

  assign rst_n = !user_reset;
  assign unused_axis = ^{m_axis_rc_tkeep, cfg_interrupt_msi_enable[3:1], cfg_interrupt_msi_mmenable[11:3]};

  read_cutter #(.Tags(Tags), .Lines(ReadLines)) u_cutter (
    .clk_i(user_clk), .rst_ni(rst_n), .max_read_i(cfg_max_read_req),
    .rdreq_valid_i(rdreq_valid), .rdreq_ready_o(rdreq_ready), .rdreq_address_i(rdreq_address),
    .rdreq_bytes_i(rdreq_bytes), .rdreq_tag_i(rdreq_tag),
    .piece_valid_o(piece_valid), .piece_ready_i(piece_ready), .piece_o(piece),
    .retired_valid_i(retired_valid), .retired_lines_i(retired_lines)
  );

  rq_adapter u_rq (
    .clk_i(user_clk), .rst_ni(rst_n), .max_payload_i(cfg_max_payload),
    .dmawr_valid_i(dmawr_valid), .dmawr_ready_o(dmawr_ready), .dmawr_address_i(dmawr_address),
    .dmawr_data_i(dmawr_data), .dmawr_bytes_i(dmawr_bytes),
    .piece_valid_i(piece_valid), .piece_ready_o(piece_ready), .piece_i(piece), .nph_av_i(pcie_tfc_nph_av),
    .sent_valid_o(sent_valid), .sent_lines_o(sent_lines),
    .rq_tvalid_o(s_axis_rq_tvalid), .rq_tready_i(s_axis_rq_tready), .rq_tdata_o(s_axis_rq_tdata),
    .rq_tkeep_o(s_axis_rq_tkeep), .rq_tlast_o(s_axis_rq_tlast), .rq_tuser_o(s_axis_rq_tuser)
  );

  rc_adapter #(.Tags(Tags), .Lines(ReadLines)) u_rc (
    .clk_i(user_clk), .rst_ni(rst_n),
    .rc_tvalid_i(m_axis_rc_tvalid), .rc_tready_o(m_axis_rc_tready), .rc_tdata_i(m_axis_rc_tdata),
    .rc_tlast_i(m_axis_rc_tlast), .rc_tuser_i(m_axis_rc_tuser),
    .piece_valid_i(piece_valid && piece_ready), .piece_i(piece),
    .write_be_o(write_be), .write_row_o(write_row), .write_data_o(write_data),
    .progress_valid_o(progress_valid), .progress_o(progress), .count_unknown_o(count_unknown_completions)
  );

  read_answers #(.Tags(Tags), .Lines(ReadLines)) u_answers (
    .clk_i(user_clk), .rst_ni(rst_n), .piece_valid_i(piece_valid && piece_ready), .piece_i(piece),
    .write_be_i(write_be), .write_row_i(write_row), .write_data_i(write_data),
    .progress_valid_i(progress_valid), .progress_i(progress),
    .retired_valid_o(retired_valid), .retired_lines_o(retired_lines),
    .rdcpl_valid_o(rdcpl_valid), .rdcpl_tag_o(rdcpl_tag), .rdcpl_data_o(rdcpl_data), .rdcpl_last_o(rdcpl_last),
    .rdcpl_error_o(rdcpl_error)
  );

  write_fence #(.Waiters(2)) u_fence (
    .clk_i(user_clk), .rst_ni(rst_n), .dmawr_valid_i(dmawr_valid), .dmawr_ready_i(dmawr_ready),
    .sent_valid_i(sent_valid), .sent_writes_i(sent_lines),
    .seq_valid_i({pcie_rq_seq_num_vld1, pcie_rq_seq_num_vld0}), .seq_number_i({pcie_rq_seq_num1, pcie_rq_seq_num0}),
    .ask_i({fence_ask, irq_ask}), .pass_o({fence_pass, irq_pass})
  );

  msi_sender #(.VectorW(6)) u_msi (
    .clk_i(user_clk), .rst_ni(rst_n), .irq_valid_i(irq_valid), .irq_ready_o(irq_ready), .irq_vector_i(irq_vector),
    .fence_ask_o(irq_ask), .fence_pass_i(irq_pass), .msi_enable_i(cfg_interrupt_msi_enable[0]),
    .msi_mmenable_i(cfg_interrupt_msi_mmenable[2:0]), .msi_int_o(cfg_interrupt_msi_int),
    .msi_sent_i(cfg_interrupt_msi_sent), .msi_fail_i(cfg_interrupt_msi_fail)
  );

endmodule

`default_nettype wire

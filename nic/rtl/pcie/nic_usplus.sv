// The whole NIC of one port between AMD's UltraScale+ PCIe block (512 bits, DW-aligned, PG213) and a 512-bit MAC: what
// a design for a board instantiates.
//
// Guarantees: those of the parts. BAR 0 of the block is the NIC's (registers, then the windows), at least 2^AddressW
//   bytes, 64-bit and prefetchable so that the host may map it write-combining. A register read is answered, and an
//   interrupt raised, behind all DMA writes that were made before it.
// How the block must be set up
//   - 512 bits at `user_clk`, DW-aligned on all four streams; straddle on CQ (off works too, at two beats a line), on
//     CC, RQ and RC off; client tags on; MSI with up to 32 messages; completion time-out on.
//   - Tags above 32 only where the host enables extended tags. ReadLines x 64 bytes are under way at most: no more than
//     the block's completion buffer holds (32 KiB).
//   - user_clk and ClockNs agree: now_ns counts ClockNs a cycle.
// Limits: one function; the vector of an interrupt is the queue modulo the messages granted. What cq_adapter and
//   rc_adapter count is not in the NIC's counters; it comes out as pulses.
// Latency: line in to nic_top 7 cycles, answers to reads 12, requests 4. Cost beside nic_top: see docs/nic.md.
// Twin in nic/model: none.

`default_nettype none

module nic_usplus #(
  // As in nic_top.
  parameter int unsigned NumQueues = 64,
  parameter int unsigned WindowLines = 64,
  parameter int unsigned SpanLines = 16,
  parameter int unsigned NumContexts = 16,
  parameter int unsigned PoolLines = 512,
  parameter int unsigned NumClasses = 4,
  parameter bit HasKpio = 1'b1,
  parameter bit HasDescriptor = 1'b1,
  parameter bit HasInline = 1'b1,
  parameter bit HasEnso = 1'b1,
  parameter bit HasNiq = 1'b1,
  parameter bit HasReceive = 1'b1,
  parameter bit HasChecksums = 1'b0,
  // Longest frame, and the port's address as the registers show it after reset.
  parameter int unsigned MaxFrameBytes = nic_pkg::MaxFrameBytes,
  parameter logic [47:0] Mac = 48'h01_00_00_00_00_02,
  // DMA reads: tags on the link, and lines that may be under way.
  parameter int unsigned Tags = 32,
  parameter int unsigned ReadLines = 512,
  // Register reads that may wait.
  parameter int unsigned ReadDepth = 16,
  // Period of user_clk in ns, 1 to 64.
  parameter int unsigned ClockNs = 4
) (
  input  logic         user_clk_i,
  input  logic         user_reset_i,

  // m_axis_cq.
  input  logic         cq_tvalid_i,
  output logic         cq_tready_o,
  input  logic [511:0] cq_tdata_i,
  input  logic [pcie_pkg::CqUserW-1:0] cq_tuser_i,
  output logic [1:0]   pcie_cq_np_req_o,

  // s_axis_cc.
  output logic         cc_tvalid_o,
  input  logic         cc_tready_i,
  output logic [511:0] cc_tdata_o,
  output logic [15:0]  cc_tkeep_o,
  output logic         cc_tlast_o,
  output logic [pcie_pkg::CcUserW-1:0] cc_tuser_o,

  // s_axis_rq.
  output logic         rq_tvalid_o,
  input  logic         rq_tready_i,
  output logic [511:0] rq_tdata_o,
  output logic [15:0]  rq_tkeep_o,
  output logic         rq_tlast_o,
  output logic [pcie_pkg::RqUserW-1:0] rq_tuser_o,
  // pcie_rq_seq_num{1,0}, pcie_rq_seq_num_vld{1,0}, pcie_tfc_nph_av, cfg_max_payload, cfg_max_read_req.
  input  logic [1:0][5:0] rq_seq_num_i,
  input  logic [1:0]   rq_seq_num_vld_i,
  input  logic [3:0]   tfc_nph_av_i,
  input  logic [1:0]   cfg_max_payload_i,
  input  logic [2:0]   cfg_max_read_req_i,

  // m_axis_rc.
  input  logic         rc_tvalid_i,
  output logic         rc_tready_o,
  input  logic [511:0] rc_tdata_i,
  input  logic         rc_tlast_i,
  input  logic [pcie_pkg::RcUserW-1:0] rc_tuser_i,

  // cfg_interrupt_msi_*, of function 0.
  input  logic         msi_enable_i,
  input  logic [2:0]   msi_mmenable_i,
  output logic [31:0]  msi_int_o,
  input  logic         msi_sent_i,
  input  logic         msi_fail_i,

  // To the MAC, whether it asks for a pause, and which queue's frame it is.
  input  logic         tx_pause_i,
  output logic         tx_tvalid_o,
  input  logic         tx_tready_i,
  output logic [511:0] tx_tdata_o,
  output logic [63:0]  tx_tkeep_o,
  output logic         tx_tlast_o,
  output logic         tx_tuser_o,

  // From the MAC, and whether a frame is held (1) or dropped (0) while the host lends no room.
  input  logic         rx_lossless_i,
  input  logic         rx_tvalid_i,
  output logic         rx_tready_o,
  input  logic [511:0] rx_tdata_i,
  input  logic [63:0]  rx_tkeep_i,
  input  logic         rx_tlast_i,

  // Pulses: accesses that are not served (0 to 3 in a cycle), completions that nobody waits for.
  output logic [1:0]   count_bad_accesses_o,
  output logic         count_unknown_completions_o,
  output logic         is_idle_o
);

  // As nic_top works them out.
  localparam int unsigned StrideLog2 = ($clog2(WindowLines) + 6 > 12) ? $clog2(WindowLines) + 6 : 12;
  localparam int unsigned AddressW = ($clog2(NumQueues) + StrideLog2 > 21) ? $clog2(NumQueues) + StrideLog2 + 1 : 22;
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1;
  localparam int unsigned RowW = $clog2(ReadLines) - 1;
  localparam int unsigned BarId = 0;
  // Who asks the fence.
  localparam int unsigned Interrupt = 0;
  localparam int unsigned Answer = 1;

  if (ClockNs < 1 || ClockNs > 64) begin : g_bad_clock
    $fatal(1, "nic_usplus: ClockNs must be 1 to 64 ns");
  end

  // ------------------------------------------------------------------------------ reset and time
  logic        clk, rst_n;
  logic [47:0] now_ns_q;

  assign clk = user_clk_i;

  always_ff @(posedge clk) begin
    rst_n <= !user_reset_i;
    if (!rst_n) now_ns_q <= '0;
    else        now_ns_q <= now_ns_q + 48'(ClockNs);
  end

  // ------------------------------------------------------------------------------ the host writes and reads
  logic                    wr_valid, wr_ready, wr_first, wr_last;
  logic [AddressW-1:0]     wr_address;
  logic [511:0]            wr_data;
  logic [63:0]             wr_be;
  logic                    request_valid, request_ready;
  pcie_pkg::read_request_t request;
  logic                    rd_valid, rd_ready, rc_valid, rc_ready, answers;
  logic [AddressW-1:0]     rd_address;
  logic [63:0]             rc_value;
  logic [15:0]             unused_rc_tag;
  logic [1:0]              fence_ask, fence_pass;

  cq_adapter #(.AddressW(AddressW), .BarId(BarId), .ReadDepth(ReadDepth)) u_cq (
    .clk_i(clk), .rst_ni(rst_n),
    .cq_tvalid_i, .cq_tready_o, .cq_tdata_i, .cq_tuser_i, .cq_np_req_o(pcie_cq_np_req_o),
    .wr_valid_o(wr_valid), .wr_ready_i(wr_ready), .wr_address_o(wr_address), .wr_data_o(wr_data), .wr_be_o(wr_be),
    .wr_first_o(wr_first), .wr_last_o(wr_last),
    .rd_valid_o(request_valid), .rd_ready_i(request_ready), .rd_request_o(request), .count_bad_accesses_o
  );

  cc_adapter #(.AddressW(AddressW)) u_cc (
    .clk_i(clk), .rst_ni(rst_n),
    .rd_valid_i(request_valid), .rd_ready_o(request_ready), .rd_request_i(request),
    .reg_valid_o(rd_valid), .reg_ready_i(rd_ready), .reg_address_o(rd_address),
    .answer_valid_i(answers), .answer_data_i(rc_value),
    .cc_tvalid_o, .cc_tready_i, .cc_tdata_o, .cc_tkeep_o, .cc_tlast_o, .cc_tuser_o
  );

  // One register is read at a time, so the next answer is never there in the cycle behind this one.
  assign fence_ask[Answer] = rc_valid;
  assign rc_ready          = fence_pass[Answer];
  assign answers           = rc_valid && rc_ready;

  // ------------------------------------------------------------------------------ the device writes and reads
  logic                      dmawr_valid, dmawr_ready, rdreq_valid, rdreq_ready;
  logic [63:0]               dmawr_address, rdreq_address;
  logic [511:0]              dmawr_data, rdcpl_data;
  logic [6:0]                dmawr_bytes;
  logic [12:0]               rdreq_bytes;
  logic [7:0]                rdreq_tag, rdcpl_tag;
  logic                      rdcpl_valid, rdcpl_last, rdcpl_error;
  logic                      piece_valid, piece_ready, piece_asked, retired_valid, progress_valid;
  logic [6:0]                retired_lines;
  pcie_pkg::read_piece_t     piece;
  pcie_pkg::piece_progress_t progress;
  logic [1:0][63:0]          write_be;
  logic [1:0][RowW-1:0]      write_row;
  logic [511:0]              write_data;
  logic                      sent_valid;
  logic [3:0]                sent_lines;

  assign piece_asked = piece_valid && piece_ready;

  read_cutter #(.Tags(Tags), .Lines(ReadLines)) u_cutter (
    .clk_i(clk), .rst_ni(rst_n), .max_read_i(cfg_max_read_req_i),
    .rdreq_valid_i(rdreq_valid), .rdreq_ready_o(rdreq_ready), .rdreq_address_i(rdreq_address),
    .rdreq_bytes_i(rdreq_bytes), .rdreq_tag_i(rdreq_tag),
    .piece_valid_o(piece_valid), .piece_ready_i(piece_ready), .piece_o(piece),
    .retired_valid_i(retired_valid), .retired_lines_i(retired_lines)
  );

  rq_adapter u_rq (
    .clk_i(clk), .rst_ni(rst_n), .max_payload_i(cfg_max_payload_i),
    .dmawr_valid_i(dmawr_valid), .dmawr_ready_o(dmawr_ready), .dmawr_address_i(dmawr_address),
    .dmawr_data_i(dmawr_data), .dmawr_bytes_i(dmawr_bytes),
    .piece_valid_i(piece_valid), .piece_ready_o(piece_ready), .piece_i(piece), .nph_av_i(tfc_nph_av_i),
    .sent_valid_o(sent_valid), .sent_lines_o(sent_lines),
    .rq_tvalid_o, .rq_tready_i, .rq_tdata_o, .rq_tkeep_o, .rq_tlast_o, .rq_tuser_o
  );

  rc_adapter #(.Tags(Tags), .Lines(ReadLines)) u_rc (
    .clk_i(clk), .rst_ni(rst_n),
    .rc_tvalid_i, .rc_tready_o, .rc_tdata_i, .rc_tlast_i, .rc_tuser_i,
    .piece_valid_i(piece_asked), .piece_i(piece),
    .write_be_o(write_be), .write_row_o(write_row), .write_data_o(write_data),
    .progress_valid_o(progress_valid), .progress_o(progress), .count_unknown_o(count_unknown_completions_o)
  );

  read_answers #(.Tags(Tags), .Lines(ReadLines)) u_answers (
    .clk_i(clk), .rst_ni(rst_n),
    .piece_valid_i(piece_asked), .piece_i(piece),
    .write_be_i(write_be), .write_row_i(write_row), .write_data_i(write_data),
    .progress_valid_i(progress_valid), .progress_i(progress),
    .retired_valid_o(retired_valid), .retired_lines_o(retired_lines),
    .rdcpl_valid_o(rdcpl_valid), .rdcpl_tag_o(rdcpl_tag), .rdcpl_data_o(rdcpl_data), .rdcpl_last_o(rdcpl_last),
    .rdcpl_error_o(rdcpl_error)
  );

  // ------------------------------------------------------------------------------ interrupts
  logic              irq_valid, irq_ready;
  logic [QueueW-1:0] irq_vector;

  write_fence #(.Waiters(2)) u_fence (
    .clk_i(clk), .rst_ni(rst_n), .dmawr_valid_i(dmawr_valid), .dmawr_ready_i(dmawr_ready),
    .sent_valid_i(sent_valid), .sent_writes_i(sent_lines),
    .seq_valid_i(rq_seq_num_vld_i), .seq_number_i(rq_seq_num_i), .ask_i(fence_ask), .pass_o(fence_pass)
  );

  msi_sender #(.VectorW(QueueW)) u_msi (
    .clk_i(clk), .rst_ni(rst_n),
    .irq_valid_i(irq_valid), .irq_ready_o(irq_ready), .irq_vector_i(irq_vector),
    .fence_ask_o(fence_ask[Interrupt]), .fence_pass_i(fence_pass[Interrupt]),
    .msi_enable_i, .msi_mmenable_i, .msi_int_o, .msi_sent_i, .msi_fail_i
  );

  // ------------------------------------------------------------------------------ the wire
  logic              frame_valid, frame_ready, frame_last, frame_abort, rx_valid, rx_ready, rx_last;
  logic [511:0]      frame_data, rx_data;
  logic [6:0]        frame_bytes, rx_bytes;
  logic [QueueW-1:0] unused_frame_queue;

  mac_axis u_mac (
    .clk_i(clk), .rst_ni(rst_n),
    .frame_valid_i(frame_valid), .frame_ready_o(frame_ready), .frame_data_i(frame_data), .frame_bytes_i(frame_bytes),
    .frame_last_i(frame_last), .frame_abort_i(frame_abort),
    .tx_tvalid_o, .tx_tready_i, .tx_tdata_o, .tx_tkeep_o, .tx_tlast_o, .tx_tuser_o,
    .rx_tvalid_i, .rx_tready_o, .rx_tdata_i, .rx_tkeep_i, .rx_tlast_i,
    .rx_valid_o(rx_valid), .rx_ready_i(rx_ready), .rx_data_o(rx_data), .rx_bytes_o(rx_bytes), .rx_last_o(rx_last)
  );

  // ------------------------------------------------------------------------------ the NIC
  nic_top #(
    .NumQueues(NumQueues), .WindowLines(WindowLines), .SpanLines(SpanLines), .NumContexts(NumContexts),
    .PoolLines(PoolLines), .NumClasses(NumClasses), .HasKpio(HasKpio), .HasDescriptor(HasDescriptor),
    .HasInline(HasInline), .HasEnso(HasEnso), .HasNiq(HasNiq), .HasReceive(HasReceive), .HasChecksums(HasChecksums)
  ) u_nic (
    .clk_i(clk), .rst_ni(rst_n), .now_ns_i(now_ns_q),
    .strap_window_lines_i(WindowLines), .strap_span_lines_i(SpanLines), .strap_contexts_i(NumContexts),
    .strap_pool_lines_i(PoolLines), .strap_max_frame_bytes_i(MaxFrameBytes), .strap_mac_i(Mac),
    .wr_valid_i(wr_valid), .wr_ready_o(wr_ready), .wr_address_i(wr_address), .wr_data_i(wr_data), .wr_be_i(wr_be),
    .wr_first_i(wr_first), .wr_last_i(wr_last),
    .rd_valid_i(rd_valid), .rd_ready_o(rd_ready), .rd_address_i(rd_address), .rd_tag_i(16'd0),
    .rc_valid_o(rc_valid), .rc_ready_i(rc_ready), .rc_tag_o(unused_rc_tag), .rc_value_o(rc_value),
    .dmawr_valid_o(dmawr_valid), .dmawr_ready_i(dmawr_ready), .dmawr_address_o(dmawr_address),
    .dmawr_data_o(dmawr_data), .dmawr_bytes_o(dmawr_bytes),
    .rdreq_valid_o(rdreq_valid), .rdreq_ready_i(rdreq_ready), .rdreq_address_o(rdreq_address),
    .rdreq_bytes_o(rdreq_bytes), .rdreq_tag_o(rdreq_tag),
    .rdcpl_valid_i(rdcpl_valid), .rdcpl_tag_i(rdcpl_tag), .rdcpl_data_i(rdcpl_data), .rdcpl_last_i(rdcpl_last),
    .rdcpl_error_i(rdcpl_error),
    .irq_valid_o(irq_valid), .irq_ready_i(irq_ready), .irq_vector_o(irq_vector),
    .frame_pause_i(tx_pause_i), .frame_valid_o(frame_valid), .frame_ready_i(frame_ready), .frame_data_o(frame_data),
    .frame_bytes_o(frame_bytes), .frame_last_o(frame_last), .frame_abort_o(frame_abort),
    .frame_queue_o(unused_frame_queue),
    .rx_lossless_i, .rx_valid_i(rx_valid), .rx_ready_o(rx_ready), .rx_data_i(rx_data), .rx_bytes_i(rx_bytes),
    .rx_last_i(rx_last), .is_idle_o
  );

  logic unused;
  assign unused = ^{unused_rc_tag, unused_frame_queue};

`ifndef SYNTHESIS
  logic answered_q;
  always_ff @(posedge clk) begin
    answered_q <= rst_n && answers;
    if (rst_n) assert (!(answered_q && rc_valid)) else $error("nic_usplus: an answer right behind another");
  end
`endif

endmodule

`default_nettype wire

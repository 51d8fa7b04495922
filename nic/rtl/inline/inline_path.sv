// Pushed entries as a transmit path of the port: the engine, and what is counted of the writes to its windows.
//
// Guarantees: those of inline/inline_tx.sv. Only queues that start with the interface inline are its own.
// Limits: whether a write met an active queue is looked up as it comes in; the engine knows of a failure up to 20 cycles
//   later, and writes that come between count as taken.
// Twin: nic/model/src/inline/mod.rs and arrived() of nic/model/src/nic.rs.

`default_nettype none

module inline_path #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // log2 of the lines of the longest window, 3 or more.
  parameter int unsigned LineW = 6,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  // Bits of a tag of a DMA read.
  localparam int unsigned TagW = 8
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic [47:0]       now_ns_i,
  input  logic [LineW-1:0]  window_mask_i,
  input  logic [13:0]       max_frame_bytes_i,

  output logic              busy_o,
  input  logic              start_valid_i,
  input  logic [QueueW-1:0] start_queue_i,
  input  nic_rtl_pkg::queue_settings_t start_settings_i,
  input  logic              stop_valid_i,
  input  logic [QueueW-1:0] stop_queue_i,
  output logic              failed_valid_o,
  input  logic              failed_ready_i,
  output logic [QueueW-1:0] failed_queue_o,
  output logic [3:0]        failed_cause_o,

  input  logic              doorbell_valid_i,
  input  logic [QueueW-1:0] doorbell_queue_i,
  input  logic [63:0]       doorbell_tail_i,

  // Pieces of lines of its queues.
  input  logic              piece_valid_i,
  output logic              piece_ready_o,
  input  logic [QueueW-1:0] piece_queue_i,
  input  logic [LineW-1:0]  piece_line_i,
  input  logic [511:0]      piece_data_i,
  input  logic [63:0]       piece_be_i,
  input  logic              piece_first_i,
  input  logic              piece_last_i,
  // Everything that came in has had its effect, or waits for room.
  output logic              is_settled_o,

  output logic              rdreq_valid_o,
  input  logic              rdreq_ready_i,
  output logic [63:0]       rdreq_address_o,
  output logic [12:0]       rdreq_bytes_o,
  output logic [TagW-1:0]   rdreq_tag_o,
  input  logic              rdcpl_valid_i,
  input  logic [TagW-1:0]   rdcpl_tag_i,
  input  logic [511:0]      rdcpl_data_i,
  input  logic              rdcpl_last_i,
  input  logic              rdcpl_error_i,

  // Head counts and credits.
  output logic              dmawr_valid_o,
  input  logic              dmawr_ready_i,
  output logic [63:0]       dmawr_address_o,
  output logic [511:0]      dmawr_data_o,
  output logic [6:0]        dmawr_bytes_o,

  output logic              irq_valid_o,
  input  logic              irq_ready_i,
  output logic [QueueW-1:0] irq_queue_o,

  output logic              frame_valid_o,
  input  logic              frame_ready_i,
  output logic [511:0]      frame_data_o,
  output logic [6:0]        frame_bytes_o,
  output logic              frame_last_o,
  output logic [QueueW-1:0] frame_queue_o,

  output nic_rtl_pkg::increments_t increments_o
);

  localparam int unsigned LineReads = 16;
  localparam int unsigned PayloadReads = 64;
  localparam int unsigned EngineTagW = 1 + $clog2(PayloadReads);
  // Cycles after which a push has had its effect: what it makes known is asked for, its frame is on its way.
  localparam logic [6:0] SettleCycles = 7'd100;

  logic       starts, engine_failed, bad_accesses, descriptor_fetches, payload_fetches, completions, credit_pushes,
              push_taken, push_torn, push_tested, engine_settled;
  logic [1:0] runts, bad_headers, bad_lengths, push_unused;
  logic [2:0] dma_errors;
  logic [EngineTagW-1:0] tag;

  assign starts = start_valid_i && start_settings_i.iface == 4'(nic_pkg::QueueControlIfaceInline);

  inline_tx #(.NumQueues(NumQueues), .LineW(LineW), .LineReads(LineReads), .PayloadReads(PayloadReads)) u_inline (
    .clk_i, .rst_ni, .now_ns_i, .max_frame_bytes_i,
    .busy_o, .start_valid_i, .start_queue_i, .start_settings_i, .stop_valid_i, .stop_queue_i,
    .failed_valid_o(engine_failed), .failed_ready_i(failed_valid_o && failed_ready_i), .failed_queue_o,
    .failed_cause_o,
    .window_mask_i, .piece_valid_i, .piece_ready_o, .piece_queue_i, .piece_line_i, .piece_data_i, .piece_be_i,
    .piece_first_i, .piece_last_i, .is_settled_o(engine_settled),
    .doorbell_valid_i, .doorbell_queue_i, .doorbell_tail_i,
    .rdreq_valid_o, .rdreq_ready_i, .rdreq_address_o, .rdreq_bytes_o, .rdreq_tag_o(tag),
    .rdcpl_valid_i, .rdcpl_tag_i(rdcpl_tag_i[EngineTagW-1:0]), .rdcpl_data_i, .rdcpl_last_i, .rdcpl_error_i,
    .dmawr_valid_o, .dmawr_ready_i, .dmawr_address_o, .dmawr_data_o, .dmawr_bytes_o,
    .irq_valid_o, .irq_ready_i, .irq_queue_o,
    .frame_valid_o, .frame_ready_i, .frame_data_o, .frame_bytes_o, .frame_last_o, .frame_queue_o,
    .count_bad_accesses_o(bad_accesses), .count_descriptor_fetches_o(descriptor_fetches),
    .count_payload_fetches_o(payload_fetches), .count_completions_o(completions),
    .count_credit_pushes_o(credit_pushes), .count_runts_o(runts), .count_bad_headers_o(bad_headers),
    .count_bad_lengths_o(bad_lengths), .count_dma_errors_o(dma_errors), .count_push_taken_o(push_taken),
    .count_push_torn_o(push_torn), .count_push_unused_o(push_unused), .count_push_tested_o(push_tested)
  );
  assign rdreq_tag_o = TagW'(tag);

  // ------------------------------------------------------------------------------ what is counted of the writes
  logic              taken, taken_q, first_q, last_q, live, live_we, writes, quarantined, unused_reordered;
  logic [63:0]       be_q;
  logic [QueueW-1:0] live_queue;
  logic [6:0]        settle_q, write_bytes;
  logic [7:0]        tlp_bytes;
  logic [15:0]       unused_displacement, unused_depth;

  assign taken        = piece_valid_i && piece_ready_o;
  assign is_settled_o = engine_settled && settle_q == '0;

  // A failure waits for a start or stop in the same cycle, so that both find their way into the table.
  assign failed_valid_o = engine_failed && !start_valid_i && !stop_valid_i;
  assign live_we    = start_valid_i || stop_valid_i || (failed_valid_o && failed_ready_i);
  assign live_queue = start_valid_i ? start_queue_i : stop_valid_i ? stop_queue_i : failed_queue_o;

  table_ram #(.Width(1), .Depth(NumQueues)) u_live (
    .clk_i, .we_i(live_we), .waddr_i(live_queue), .wdata_i(starts), .raddr_i(piece_queue_i), .rdata_o(live)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      taken_q  <= 1'b0;
      settle_q <= '0;
    end else begin
      taken_q  <= taken;
      settle_q <= (taken || !engine_settled) ? SettleCycles : settle_q - 7'(settle_q != '0);
    end
    first_q <= piece_first_i;
    last_q  <= piece_last_i;
    be_q    <= piece_be_i;
  end

  write_counters #(.AheadW(7)) u_writes (
    .clk_i, .rst_ni,
    .judged_valid_i(taken_q), .judged_first_i(first_q), .judged_last_i(last_q), .judged_dropped_i(!live),
    .judged_free_i(1'b0), .judged_inside_i(1'b0), .judged_expected_i(1'b1), .judged_ahead_i('0), .judged_be_i(be_q),
    .count_tx_writes_o(writes), .count_tx_write_bytes_o(write_bytes),
    .count_quarantined_writes_o(quarantined), .count_reordered_writes_o(unused_reordered),
    .count_tlp_bytes_histogram_o(tlp_bytes), .count_displacement_histogram_o(unused_displacement),
    .depth_max_o(unused_depth)
  );

  always_comb begin
    increments_o = '0;
    increments_o[nic_pkg::CounterTxWritesOffset >> 3]          = 8'(writes);
    increments_o[nic_pkg::CounterTxWriteBytesOffset >> 3]      = 8'(write_bytes);
    increments_o[nic_pkg::CounterQuarantinedWritesOffset >> 3] = 8'(quarantined);
    increments_o[nic_pkg::CounterBadAccessesOffset >> 3]       = 8'(bad_accesses);
    increments_o[nic_pkg::CounterDescriptorFetchesOffset >> 3] = 8'(descriptor_fetches);
    increments_o[nic_pkg::CounterPayloadFetchesOffset >> 3]    = 8'(payload_fetches);
    increments_o[nic_pkg::CounterCompletionsOffset >> 3]       = 8'(completions);
    increments_o[nic_pkg::CounterCreditPushesOffset >> 3]      = 8'(credit_pushes);
    increments_o[nic_pkg::CounterRuntsOffset >> 3]             = 8'(runts);
    increments_o[nic_pkg::CounterBadHeadersOffset >> 3]        = 8'(bad_headers);
    increments_o[nic_pkg::CounterBadLengthsOffset >> 3]        = 8'(bad_lengths);
    increments_o[nic_pkg::CounterDmaErrorsOffset >> 3]         = 8'(dma_errors);
    increments_o[nic_pkg::CounterPushTakenOffset >> 3]         = 8'(push_taken);
    increments_o[nic_pkg::CounterPushTornOffset >> 3]          = 8'(push_torn);
    increments_o[nic_pkg::CounterPushUnusedOffset >> 3]        = 8'(push_unused);
    increments_o[nic_pkg::CounterPushTestedOffset >> 3]        = 8'(push_tested);
    for (int i = 0; i < 8; i++) begin
      increments_o[(nic_pkg::CounterTlpBytesHistogramOffset >> 3) + i] = 8'(tlp_bytes[i]);
    end
  end

  logic unused_bits;
  assign unused_bits = ^{unused_reordered, unused_displacement, unused_depth, rdcpl_tag_i};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!(start_valid_i && stop_valid_i)) else $error("inline_path: start and stop in one cycle");
    end
  end
`endif

endmodule

`default_nettype wire

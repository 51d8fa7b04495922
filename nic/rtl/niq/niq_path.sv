// Entries in the BAR as a transmit path of the port: the engine, and what is counted of it.
//
// Guarantees and limits: those of niq/niq_tx.sv. Only queues that start with the interface niq are its own.
// Twin: nic/model/src/niq/mod.rs and arrived() of nic/model/src/nic.rs.

`default_nettype none

module niq_path #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // log2 of the lines of the longest window.
  parameter int unsigned LineW = 6,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  // Bits of a tag of a DMA read.
  localparam int unsigned TagW = 5
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

  // Pieces of lines of its queues.
  input  logic              piece_valid_i,
  output logic              piece_ready_o,
  input  logic [QueueW-1:0] piece_queue_i,
  input  logic [LineW-1:0]  piece_line_i,
  input  logic [511:0]      piece_data_i,
  input  logic [63:0]       piece_be_i,
  input  logic              piece_first_i,
  input  logic              piece_last_i,
  // Everything that came in has had its effect, or waits for room; `is_pending_o`: it waits.
  output logic              is_settled_o,
  output logic              is_pending_o,

  output logic              frame_valid_o,
  input  logic              frame_ready_i,
  output logic [511:0]      frame_data_o,
  output logic [6:0]        frame_bytes_o,
  output logic              frame_last_o,
  output logic [QueueW-1:0] frame_queue_o,

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

  // Completions.
  output logic              dmawr_valid_o,
  input  logic              dmawr_ready_i,
  output logic [63:0]       dmawr_address_o,
  output logic [511:0]      dmawr_data_o,
  output logic [6:0]        dmawr_bytes_o,

  output logic              irq_valid_o,
  input  logic              irq_ready_i,
  output logic [QueueW-1:0] irq_queue_o,

  output nic_rtl_pkg::increments_t increments_o
);

  logic        judged_valid, judged_first, judged_last, judged_dropped;
  logic [63:0] judged_be;
  logic        entries, refused, payload_fetches, completions, runts, failed;
  logic [1:0]  bad_lengths, dma_errors;
  logic [3:0]  failed_cause;

  niq_tx #(.NumQueues(NumQueues), .LineW(LineW), .Reads(1 << TagW)) u_niq (
    .clk_i, .rst_ni, .now_ns_i, .window_mask_i, .max_frame_bytes_i,
    .busy_o, .start_valid_i, .start_queue_i, .start_settings_i, .stop_valid_i, .stop_queue_i,
    .failed_valid_o, .failed_ready_i, .failed_queue_o, .failed_cause_o,
    .piece_valid_i, .piece_ready_o, .piece_queue_i, .piece_line_i, .piece_data_i, .piece_be_i, .piece_first_i,
    .piece_last_i, .is_settled_o, .is_pending_o,
    .rdreq_valid_o, .rdreq_ready_i, .rdreq_address_o, .rdreq_bytes_o, .rdreq_tag_o,
    .rdcpl_valid_i, .rdcpl_tag_i, .rdcpl_data_i, .rdcpl_last_i, .rdcpl_error_i,
    .dmawr_valid_o, .dmawr_ready_i, .dmawr_address_o, .dmawr_data_o, .dmawr_bytes_o,
    .irq_valid_o, .irq_ready_i, .irq_queue_o,
    .frame_valid_o, .frame_ready_i, .frame_data_o, .frame_bytes_o, .frame_last_o, .frame_queue_o,
    .judged_valid_o(judged_valid), .judged_first_o(judged_first), .judged_last_o(judged_last),
    .judged_dropped_o(judged_dropped), .judged_be_o(judged_be),
    .count_entries_o(entries), .count_refused_writes_o(refused), .count_payload_fetches_o(payload_fetches),
    .count_completions_o(completions), .count_runts_o(runts), .count_bad_lengths_o(bad_lengths),
    .count_dma_errors_o(dma_errors), .count_failed_o(failed), .count_failed_cause_o(failed_cause)
  );

  // ------------------------------------------------------------------------------ what is counted of the writes
  logic        writes, quarantined, unused_reordered;
  logic [6:0]  write_bytes;
  logic [7:0]  tlp_bytes;
  logic [15:0] unused_displacement, unused_depth;

  write_counters #(.AheadW(7)) u_writes (
    .clk_i, .rst_ni,
    .judged_valid_i(judged_valid), .judged_first_i(judged_first), .judged_last_i(judged_last),
    .judged_dropped_i(judged_dropped), .judged_free_i(1'b0), .judged_inside_i(1'b0), .judged_expected_i(1'b1),
    .judged_ahead_i('0), .judged_be_i(judged_be),
    .count_tx_writes_o(writes), .count_tx_write_bytes_o(write_bytes), .count_quarantined_writes_o(quarantined),
    .count_reordered_writes_o(unused_reordered), .count_tlp_bytes_histogram_o(tlp_bytes),
    .count_displacement_histogram_o(unused_displacement), .depth_max_o(unused_depth)
  );

  function automatic logic [7:0] failed_by(nic_pkg::queue_status_cause_e cause);
    return 8'(failed && failed_cause == 4'(cause));
  endfunction

  always_comb begin
    increments_o = '0;
    increments_o[nic_pkg::CounterTxWritesOffset >> 3]          = 8'(writes);
    increments_o[nic_pkg::CounterTxWriteBytesOffset >> 3]      = 8'(write_bytes);
    increments_o[nic_pkg::CounterQuarantinedWritesOffset >> 3] = 8'(quarantined);
    increments_o[nic_pkg::CounterRefusedWritesOffset >> 3]     = 8'(refused);
    increments_o[nic_pkg::CounterEntriesOffset >> 3]           = 8'(entries);
    increments_o[nic_pkg::CounterPayloadFetchesOffset >> 3]    = 8'(payload_fetches);
    increments_o[nic_pkg::CounterCompletionsOffset >> 3]       = 8'(completions);
    increments_o[nic_pkg::CounterRuntsOffset >> 3]             = 8'(runts);
    increments_o[nic_pkg::CounterDmaErrorsOffset >> 3]         = 8'(dma_errors);
    increments_o[nic_pkg::CounterBadLengthsOffset >> 3]        =
        8'(bad_lengths) + failed_by(nic_pkg::QueueStatusCauseBadLength);
    increments_o[nic_pkg::CounterBadHeadersOffset >> 3] = failed_by(nic_pkg::QueueStatusCauseBadHeader);
    increments_o[nic_pkg::CounterHoleTimeoutsOffset >> 3] = failed_by(nic_pkg::QueueStatusCauseHoleTimeout);
    increments_o[nic_pkg::CounterClobbersOffset >> 3] = failed_by(nic_pkg::QueueStatusCauseClobber);
    increments_o[nic_pkg::CounterOverrunsOffset >> 3] = failed_by(nic_pkg::QueueStatusCauseOverrun);
    increments_o[nic_pkg::CounterSpanExceededOffset >> 3] = failed_by(nic_pkg::QueueStatusCauseSpanExceeded);
    for (int i = 0; i < 8; i++) begin
      increments_o[(nic_pkg::CounterTlpBytesHistogramOffset >> 3) + i] = 8'(tlp_bytes[i]);
    end
  end

  logic unused_bits;
  assign unused_bits = ^{unused_reordered, unused_displacement, unused_depth};

endmodule

`default_nettype wire

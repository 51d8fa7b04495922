// Ensō pipes as a transmit path of the port: the engine, and what it counts.
//
// Guarantees: those of enso/enso_tx.sv. Only queues that start with the interface enso are its own; it has no windows.
// Twin: nic/model/src/enso/mod.rs.

`default_nettype none

module enso_path #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  // Bits of a tag of a DMA read.
  localparam int unsigned TagW = 8
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic [47:0]       now_ns_i,
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

  // Head counts.
  output logic              dmawr_valid_o,
  input  logic              dmawr_ready_i,
  output logic [63:0]       dmawr_address_o,
  output logic [511:0]      dmawr_data_o,
  output logic [6:0]        dmawr_bytes_o,

  output logic              frame_valid_o,
  input  logic              frame_ready_i,
  output logic [511:0]      frame_data_o,
  output logic [6:0]        frame_bytes_o,
  output logic              frame_last_o,
  output logic [QueueW-1:0] frame_queue_o,

  output nic_rtl_pkg::increments_t increments_o
);

  localparam int unsigned Reads = 16;
  localparam int unsigned EngineTagW = $clog2(Reads);

  logic                  bad_accesses, payload_fetches, completions, runts, bad_headers, dma_errors;
  logic [1:0]            bad_lengths;
  logic [EngineTagW-1:0] tag;

  enso_tx #(.NumQueues(NumQueues), .Reads(Reads)) u_enso (
    .clk_i, .rst_ni, .now_ns_i, .max_frame_bytes_i,
    .busy_o, .start_valid_i, .start_queue_i, .start_settings_i, .stop_valid_i, .stop_queue_i,
    .failed_valid_o, .failed_ready_i, .failed_queue_o, .failed_cause_o,
    .doorbell_valid_i, .doorbell_queue_i, .doorbell_tail_i,
    .rdreq_valid_o, .rdreq_ready_i, .rdreq_address_o, .rdreq_bytes_o, .rdreq_tag_o(tag),
    .rdcpl_valid_i, .rdcpl_tag_i(rdcpl_tag_i[EngineTagW-1:0]), .rdcpl_data_i, .rdcpl_last_i, .rdcpl_error_i,
    .dmawr_valid_o, .dmawr_ready_i, .dmawr_address_o, .dmawr_data_o, .dmawr_bytes_o,
    .frame_valid_o, .frame_ready_i, .frame_data_o, .frame_bytes_o, .frame_last_o, .frame_queue_o,
    .count_bad_accesses_o(bad_accesses), .count_payload_fetches_o(payload_fetches),
    .count_completions_o(completions), .count_runts_o(runts), .count_bad_headers_o(bad_headers),
    .count_bad_lengths_o(bad_lengths), .count_dma_errors_o(dma_errors)
  );
  assign rdreq_tag_o = TagW'(tag);

  always_comb begin
    increments_o = '0;
    increments_o[nic_pkg::CounterBadAccessesOffset >> 3]    = 8'(bad_accesses);
    increments_o[nic_pkg::CounterPayloadFetchesOffset >> 3] = 8'(payload_fetches);
    increments_o[nic_pkg::CounterCompletionsOffset >> 3]    = 8'(completions);
    increments_o[nic_pkg::CounterRuntsOffset >> 3]          = 8'(runts);
    increments_o[nic_pkg::CounterBadHeadersOffset >> 3]     = 8'(bad_headers);
    increments_o[nic_pkg::CounterBadLengthsOffset >> 3]     = 8'(bad_lengths);
    increments_o[nic_pkg::CounterDmaErrorsOffset >> 3]      = 8'(dma_errors);
  end

  logic unused_bits;
  assign unused_bits = ^rdcpl_tag_i;

endmodule

`default_nettype wire

// Everything that receives: the engine, and what is counted of it. Without the engine frames are taken and forgotten,
// as by a port whose queues receive nothing.
//
// Guarantees and limits: those of rx/rx.sv. Twin: nic/model/src/rx/mod.rs.

`default_nettype none

module receive #(
  // Queues, a power of two from 1 to 1024 if the engine is there.
  parameter int unsigned NumQueues = 64,
  // log2 of the lines of the longest window.
  parameter int unsigned LineW = 6,
  parameter bit HasReceive = 1'b1,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  // Bits of a tag of a DMA read.
  localparam int unsigned TagW = 4
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  // Of the link, and whether the device is reset, see rx/rx.sv.
  input  logic              link_rst_ni,
  input  logic              clear_i,
  input  logic [47:0]       now_ns_i,
  input  logic [LineW-1:0]  window_mask_i,
  input  logic              lossless_i,

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
  input  logic [63:0]       doorbell_freed_i,
  input  logic              entries_freed_valid_i,

  // Reads of words of windows, and their answers.
  input  logic              read_valid_i,
  output logic              read_ready_o,
  input  logic [QueueW-1:0] read_queue_i,
  input  logic [LineW+2:0]  read_word_i,
  input  logic [15:0]       read_tag_i,
  output logic              answer_valid_o,
  input  logic              answer_ready_i,
  output logic [15:0]       answer_tag_o,
  output logic [63:0]       answer_value_o,

  input  logic              frame_valid_i,
  output logic              frame_ready_o,
  input  logic [511:0]      frame_data_i,
  input  logic [6:0]        frame_bytes_i,
  input  logic              frame_last_i,

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

  if (HasReceive) begin : g_rx
    // Bytes of frames that were received and are not counted yet. A frame of n bytes takes at least n / 64 cycles to come
    // in, and 128 are counted in each, so a few of the longest frames are all that can wait.
    localparam int unsigned WaitW = 20;
    localparam logic [7:0] CountedBytes = 8'd128;

    logic             notifications, entry_reads, held_reads, held_timeouts, descriptor_fetches,
                      completions, dma_errors, frames, no_space;
    logic [1:0]       bad_accesses, bad_lengths, oversize;
    logic [13:0]      frame_bytes;
    logic [WaitW-1:0] bytes_q;
    logic [7:0]       counted;
    logic             engine_clk;

    // A queue that receives, a frame of the wire, a read of what was received, an answer that nobody has taken.
    engine_clock u_clock (
      .clk_i, .rst_ni,
      .wakes_i((start_valid_i && (start_settings_i.rx_mode != 2'(nic_pkg::RxModeModeOff) || start_settings_i.rx_reads))
               || frame_valid_i || read_valid_i || answer_valid_o),
      .told_i(start_valid_i || stop_valid_i), .clk_o(engine_clk)
    );

    rx #(.NumQueues(NumQueues), .MaxFrameBytes(nic_pkg::MaxFrameBytes), .EntryW(LineW)) u_rx (
      .clk_i(engine_clk), .rst_ni, .link_rst_ni, .clear_i, .now_ns_i, .window_mask_i, .lossless_i,
      .busy_o, .start_valid_i, .start_queue_i, .start_settings_i, .stop_valid_i, .stop_queue_i,
      .failed_valid_o, .failed_ready_i, .failed_queue_o, .failed_cause_o,
      .doorbell_valid_i, .doorbell_queue_i, .doorbell_freed_i,
      .entries_freed_valid_i, .entries_freed_queue_i(doorbell_queue_i), .entries_freed_count_i(doorbell_freed_i),
      .read_valid_i, .read_ready_o, .read_queue_i, .read_word_i, .read_tag_i,
      .answer_valid_o, .answer_ready_i, .answer_tag_o, .answer_value_o,
      .frame_valid_i, .frame_ready_o, .frame_data_i, .frame_bytes_i, .frame_last_i,
      .rdreq_valid_o, .rdreq_ready_i, .rdreq_address_o, .rdreq_bytes_o, .rdreq_tag_o,
      .rdcpl_valid_i, .rdcpl_tag_i, .rdcpl_data_i, .rdcpl_last_i, .rdcpl_error_i,
      .dmawr_valid_o, .dmawr_ready_i, .dmawr_address_o, .dmawr_data_o, .dmawr_bytes_o,
      .irq_valid_o, .irq_ready_i, .irq_queue_o,
      .count_bad_accesses_o(bad_accesses), .count_descriptor_fetches_o(descriptor_fetches),
      .count_completions_o(completions), .count_dma_errors_o(dma_errors), .count_bad_lengths_o(bad_lengths),
      .count_rx_frames_o(frames), .count_rx_frame_bytes_o(frame_bytes), .count_rx_no_space_o(no_space),
      .count_rx_oversize_o(oversize), .count_notifications_o(notifications), .count_entry_reads_o(entry_reads),
      .count_held_reads_o(held_reads), .count_held_read_timeouts_o(held_timeouts)
    );

    assign counted = (bytes_q > WaitW'(CountedBytes)) ? CountedBytes : bytes_q[7:0];

    always_ff @(posedge clk_i) begin
      if (!rst_ni) bytes_q <= '0;
      else         bytes_q <= bytes_q - WaitW'(counted) + (frames ? WaitW'(frame_bytes) : '0);
    end

    always_comb begin
      increments_o = '0;
      increments_o[nic_pkg::CounterBadAccessesOffset >> 3]       = 8'(bad_accesses);
      increments_o[nic_pkg::CounterDescriptorFetchesOffset >> 3] = 8'(descriptor_fetches);
      increments_o[nic_pkg::CounterCompletionsOffset >> 3]       = 8'(completions);
      increments_o[nic_pkg::CounterDmaErrorsOffset >> 3]         = 8'(dma_errors);
      increments_o[nic_pkg::CounterBadLengthsOffset >> 3]        = 8'(bad_lengths);
      increments_o[nic_pkg::CounterRxFramesOffset >> 3]          = 8'(frames);
      increments_o[nic_pkg::CounterRxFrameBytesOffset >> 3]      = counted;
      increments_o[nic_pkg::CounterRxNoSpaceOffset >> 3]         = 8'(no_space);
      increments_o[nic_pkg::CounterRxOversizeOffset >> 3]        = 8'(oversize);
      increments_o[nic_pkg::CounterNotificationsOffset >> 3]     = 8'(notifications);
      increments_o[nic_pkg::CounterEntryReadsOffset >> 3]        = 8'(entry_reads);
      increments_o[nic_pkg::CounterHeldReadsOffset >> 3]         = 8'(held_reads);
      increments_o[nic_pkg::CounterHeldReadTimeoutsOffset >> 3]  = 8'(held_timeouts);
    end

`ifndef SYNTHESIS
    always_ff @(posedge clk_i) begin
      if (rst_ni) a_all_bytes_are_counted : assert (!bytes_q[WaitW-1]);
    end
`endif
  end else begin : g_no_rx
    assign {busy_o, failed_valid_o, rdreq_valid_o, dmawr_valid_o, irq_valid_o} = '0;
    assign {failed_queue_o, failed_cause_o, irq_queue_o, increments_o} = '0;
    assign {rdreq_address_o, rdreq_bytes_o, rdreq_tag_o} = '0;
    assign {dmawr_address_o, dmawr_data_o, dmawr_bytes_o} = '0;
    assign {read_ready_o, answer_valid_o, answer_tag_o, answer_value_o} = '0;
    assign frame_ready_o = 1'b1;
    logic unused_bits;
    assign unused_bits = ^{
      clk_i, rst_ni, link_rst_ni, clear_i, now_ns_i, window_mask_i, entries_freed_valid_i, read_valid_i,
      read_queue_i, read_word_i, read_tag_i, answer_ready_i, lossless_i, start_valid_i, start_queue_i,
      start_settings_i, stop_valid_i, stop_queue_i, failed_ready_i, doorbell_valid_i, doorbell_queue_i,
      doorbell_freed_i, frame_valid_i, frame_data_i, frame_bytes_i, frame_last_i, rdreq_ready_i, rdcpl_valid_i,
      rdcpl_tag_i, rdcpl_data_i, rdcpl_last_i, rdcpl_error_i, dmawr_ready_i, irq_ready_i
    };
  end

endmodule

`default_nettype wire

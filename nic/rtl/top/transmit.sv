// Everything that sends: the engines of the interfaces that are there, the multiplexer of kPIO+WC, and the arbiter in
// front of the wire.
//
//   lines -> mmio_path ----------------------------+
//   pieces -> kpio_path --+                        +-> frame_arbiter -> frames
//   host memory -> dma ---+-> frame_arbiter -> mux-+
//
// With two lanes mmio has a second stream, of its odd queues, which goes to a wire of its own; all else is on the first.
//
// Guarantees
//   - Frames are whole and leave unchanged, those of a queue in their order.
//   - A queue belongs to the engine of the interface with which it started; the others never see it.
//   - An engine that is left out costs nothing: its queues cannot start, and nothing is routed to it.
// Limits: between engines the arbiter decides by class and weight; inside kPIO+WC and the descriptor engine, and in
//   the multiplexer, frames keep the order in which they became complete.
// Cost: see the parts. Twin: nic/model/src/nic.rs (choose, pop).

`default_nettype none

module transmit #(
  // Those of mmio/mmio.sv.
  parameter int unsigned NumQueues = 64,
  parameter int unsigned WindowLines = 64,
  parameter int unsigned SpanLines = 16,
  parameter int unsigned NumContexts = 16,
  parameter int unsigned PoolLines = 512,
  parameter int unsigned NumClasses = 4,
  // Whether the engines of kPIO+WC and of descriptors are there.
  parameter bit HasKpio = 1'b1,
  parameter bit HasDescriptor = 1'b1,
  // Whether those of pushed entries and of pipes are.
  parameter bit HasInline = 1'b1,
  parameter bit HasEnso = 1'b1,
  // Whether that of entries in the BAR is.
  parameter bit HasNiq = 1'b1,
  // Whether checksums can be filled in.
  parameter bit HasChecksums = 1'b0,
  // Lines a cycle for mmio, and wires: 1 or 2.
  parameter int unsigned Lanes = 1,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned LineW = $clog2(WindowLines),
  // Bits of a tag of a DMA read.
  localparam int unsigned TagW = 8,
  localparam int unsigned Engines = 6,
  localparam int unsigned Readers = 4
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic [47:0]       now_ns_i,

  // Straps, see mmio/mmio.sv.
  input  logic [LineW-1:0]  window_mask_i,
  input  logic [$clog2(SpanLines):0] span_lines_i,
  input  logic [$clog2(SpanLines):0] ring_mask_i,
  input  logic [15:0]       pool_lines_i,
  input  logic [15:0]       contexts_i,
  input  logic [13:0]       max_frame_bytes_i,

  // CONTROL.mux and MUX_PORTS.
  input  nic_pkg::control_mux_e mux_i,
  input  logic [31:0]       mux_ports_i,

  output logic              busy_o,
  input  logic              start_valid_i,
  input  logic [QueueW-1:0] start_queue_i,
  input  nic_rtl_pkg::queue_settings_t start_settings_i,
  input  logic              stop_valid_i,
  input  logic [QueueW-1:0] stop_queue_i,
  // Failures: of mmio, kPIO+WC, descriptors, inline, Ensō, NIQ.
  output logic [Engines-1:0] failed_valid_o,
  input  logic [Engines-1:0] failed_ready_i,
  output logic [Engines-1:0][QueueW-1:0] failed_queue_o,
  output logic [Engines-1:0][3:0] failed_cause_o,

  input  logic              doorbell_valid_i,
  input  logic [QueueW-1:0] doorbell_queue_i,
  input  logic [63:0]       doorbell_tail_i,

  // Pieces of lines for mmio, the older one first, all taken or none.
  input  logic [Lanes-1:0]  mmio_valid_i,
  output logic              mmio_ready_o,
  input  logic [Lanes-1:0][QueueW-1:0] mmio_queue_i,
  input  logic [Lanes-1:0][LineW-1:0] mmio_line_i,
  input  logic [Lanes-1:0][511:0] mmio_data_i,
  input  logic [Lanes-1:0][63:0] mmio_be_i,
  input  logic [Lanes-1:0]  mmio_whole_i,
  input  logic [Lanes-1:0]  mmio_first_i,
  input  logic [Lanes-1:0]  mmio_last_i,

  // Those for any other engine, and the interface of their queue.
  input  logic              piece_valid_i,
  output logic              piece_ready_o,
  input  logic [3:0]        piece_route_i,
  input  logic [QueueW-1:0] piece_queue_i,
  input  logic [LineW-1:0]  piece_line_i,
  input  logic [511:0]      piece_data_i,
  input  logic [63:0]       piece_be_i,
  input  logic              piece_whole_i,
  input  logic              piece_first_i,
  input  logic              piece_last_i,

  // The wires. While one pauses no frame for it begins to leave its engine; those that have begun go on.
  input  logic [Lanes-1:0]  pause_i,
  output logic [Lanes-1:0]  frame_valid_o,
  input  logic [Lanes-1:0]  frame_ready_i,
  output logic [Lanes-1:0][511:0] frame_data_o,
  output logic [Lanes-1:0][6:0] frame_bytes_o,
  output logic [Lanes-1:0]  frame_last_o,
  output logic [Lanes-1:0][QueueW-1:0] frame_queue_o,
  // A frame that began before all of it was there; its last beat, if it never will be. What became of it: see
  // egress/frame_guard.sv.
  output logic [Lanes-1:0]  frame_early_o,
  output logic [Lanes-1:0]  frame_abort_o,
  input  logic [Lanes-1:0]  shown_valid_i,
  input  logic [Lanes-1:0]  shown_bad_i,
  input  logic [Lanes-1:0]  shown_broken_i,

  // DMA reads of descriptors, inline, Ensō, NIQ, and their answers.
  output logic [Readers-1:0] rdreq_valid_o,
  input  logic [Readers-1:0] rdreq_ready_i,
  output logic [Readers-1:0][63:0] rdreq_address_o,
  output logic [Readers-1:0][12:0] rdreq_bytes_o,
  output logic [Readers-1:0][TagW-1:0] rdreq_tag_o,
  input  logic [Readers-1:0] rdcpl_valid_i,
  input  logic [TagW-1:0]   rdcpl_tag_i,
  input  logic [511:0]      rdcpl_data_i,
  input  logic              rdcpl_last_i,
  input  logic              rdcpl_error_i,

  // DMA writes of the engines: credits and completions.
  output logic [Engines-1:0] dmawr_valid_o,
  input  logic [Engines-1:0] dmawr_ready_i,
  output logic [Engines-1:0][63:0] dmawr_address_o,
  output logic [Engines-1:0][511:0] dmawr_data_o,
  output logic [Engines-1:0][6:0] dmawr_bytes_o,

  output logic              irq_valid_o,
  input  logic              irq_ready_i,
  output logic [QueueW-1:0] irq_queue_o,

  // What registers tell.
  input  logic [QueueW-1:0] look_queue_i,
  output logic [47:0]       look_next_start_o,
  output logic [15:0]       reorder_depth_max_o,

  // See mmio/mmio.sv and kpio_path.sv.
  output logic              is_idle_o,
  output logic              is_settled_o, is_pending_o,
  output logic              is_full_o,

  // Of each engine, then the multiplexer's and the wires'.
  output nic_rtl_pkg::increments_t [Engines+Lanes-1:0] increments_o
);

  localparam int unsigned Mmio = 0;
  localparam int unsigned Kpio = 1;
  localparam int unsigned Dma  = 2;
  localparam int unsigned Inline = 3;
  localparam int unsigned Enso = 4;
  localparam int unsigned Niq = 5;
  // The first engine that reads host memory.
  localparam int unsigned FirstReader = Dma;
  localparam int unsigned DmaReader = Dma - FirstReader;
  // Frames come from the engines, and from the second stream of mmio behind them.
  localparam int unsigned Offers = Engines + Lanes - 1;

  // Frames of the engines, and of the multiplexer.
  logic [Offers-1:0]              frame_valid, frame_ready, frame_last;
  logic [Offers-1:0][511:0]       frame_data;
  logic [Offers-1:0][6:0]         frame_bytes;
  logic [Offers-1:0][QueueW-1:0]  frame_queue;
  logic [Lanes-1:0]               mmio_frame_valid, mmio_frame_ready, mmio_frame_last;
  logic [Lanes-1:0][511:0]        mmio_frame_data;
  logic [Lanes-1:0][6:0]          mmio_frame_bytes;
  logic [Lanes-1:0][QueueW-1:0]   mmio_frame_queue;
  logic                   muxed_valid, muxed_ready, muxed_last, mux_mismatch;
  logic [511:0]           muxed_data;
  logic [6:0]             muxed_bytes;
  logic [QueueW-1:0]      muxed_queue;
  // What the arbiters see of the engines' frames.
  logic [Offers-1:0]              offer_valid, offer_ready, pauses, gate, open_q, open_d;
  // Pieces of each engine's queues. `settled`: they have had their effect, or (`pending`) wait for room.
  logic [Engines-1:0]             busy, takes, piece_ready, settled, pending;
  logic [Engines-1:0]             engine_irq_valid, engine_irq_ready;
  logic [Engines-1:0][QueueW-1:0] engine_irq_queue;
  logic                           mmio_idle;
  logic [Lanes-1:0]               mmio_early, mmio_abort;

  always_comb begin
    takes = '0;
    unique case (piece_route_i)
      4'(nic_pkg::QueueControlIfaceKpio):   takes[Kpio]   = 1'b1;
      4'(nic_pkg::QueueControlIfaceInline): takes[Inline] = 1'b1;
      4'(nic_pkg::QueueControlIfaceNiq):    takes[Niq]    = 1'b1;
      default: ;
    endcase
  end
  assign piece_ready_o = (takes & piece_ready) != '0;
  assign busy_o        = busy != '0;
  assign is_settled_o  = &settled;
  assign is_pending_o  = pending != '0;

  mmio_path #(
    .NumQueues(NumQueues), .WindowLines(WindowLines), .SpanLines(SpanLines), .NumContexts(NumContexts),
    .PoolLines(PoolLines), .NumClasses(NumClasses), .Lanes(Lanes)
  ) u_mmio (
    .clk_i, .rst_ni, .now_ns_i,
    .window_mask_i, .span_lines_i, .ring_mask_i, .pool_lines_i, .contexts_i, .max_frame_bytes_i,
    .busy_o(busy[Mmio]), .start_valid_i, .start_queue_i, .start_settings_i, .stop_valid_i, .stop_queue_i,
    .failed_valid_o(failed_valid_o[Mmio]), .failed_ready_i(failed_ready_i[Mmio]),
    .failed_queue_o(failed_queue_o[Mmio]), .failed_cause_o(failed_cause_o[Mmio]),
    .piece_valid_i(mmio_valid_i), .piece_ready_o(mmio_ready_o), .piece_queue_i(mmio_queue_i),
    .piece_line_i(mmio_line_i), .piece_data_i(mmio_data_i), .piece_be_i(mmio_be_i), .piece_whole_i(mmio_whole_i),
    .piece_first_i(mmio_first_i), .piece_last_i(mmio_last_i),
    .frame_valid_o(mmio_frame_valid), .frame_ready_i(mmio_frame_ready), .frame_data_o(mmio_frame_data),
    .frame_bytes_o(mmio_frame_bytes), .frame_last_o(mmio_frame_last), .frame_queue_o(mmio_frame_queue),
    .frame_early_o(mmio_early), .frame_abort_o(mmio_abort), .shown_valid_i, .shown_bad_i, .shown_broken_i,
    .dmawr_valid_o(dmawr_valid_o[Mmio]), .dmawr_ready_i(dmawr_ready_i[Mmio]),
    .dmawr_address_o(dmawr_address_o[Mmio]), .dmawr_data_o(dmawr_data_o[Mmio]),
    .dmawr_bytes_o(dmawr_bytes_o[Mmio]),
    .look_queue_i, .look_next_start_o, .reorder_depth_max_o,
    .is_idle_o(mmio_idle), .is_settled_o(settled[Mmio]), .is_full_o, .increments_o(increments_o[Mmio])
  );
  // Its lines come by a way of their own.
  assign {piece_ready[Mmio], pending[Mmio]} = '0;
  assign frame_valid[Mmio]   = mmio_frame_valid[0];
  assign frame_data[Mmio]    = mmio_frame_data[0];
  assign frame_bytes[Mmio]   = mmio_frame_bytes[0];
  assign frame_last[Mmio]    = mmio_frame_last[0];
  assign frame_queue[Mmio]   = mmio_frame_queue[0];
  assign mmio_frame_ready[0] = frame_ready[Mmio];

  if (HasKpio) begin : g_kpio
    logic engine_clk;
    engine_clock u_clock (
      .clk_i, .rst_ni, .wakes_i(start_valid_i && start_settings_i.iface == 4'(nic_pkg::QueueControlIfaceKpio)),
      .told_i(start_valid_i || stop_valid_i), .clk_o(engine_clk)
    );

    kpio_path #(.NumQueues(NumQueues), .LineW(LineW)) u_kpio (
      .clk_i(engine_clk), .rst_ni, .now_ns_i, .window_mask_i,
      .busy_o(busy[Kpio]), .start_valid_i, .start_queue_i, .start_settings_i, .stop_valid_i, .stop_queue_i,
      .failed_valid_o(failed_valid_o[Kpio]), .failed_ready_i(failed_ready_i[Kpio]),
      .failed_queue_o(failed_queue_o[Kpio]), .failed_cause_o(failed_cause_o[Kpio]),
      .piece_valid_i(piece_valid_i && takes[Kpio]), .piece_ready_o(piece_ready[Kpio]), .piece_queue_i, .piece_line_i,
      .piece_data_i, .piece_be_i, .piece_whole_i, .piece_first_i, .piece_last_i,
      .is_settled_o(settled[Kpio]), .is_pending_o(pending[Kpio]),
      .frame_valid_o(frame_valid[Kpio]), .frame_ready_i(frame_ready[Kpio]), .frame_data_o(frame_data[Kpio]),
      .frame_bytes_o(frame_bytes[Kpio]), .frame_last_o(frame_last[Kpio]), .frame_queue_o(frame_queue[Kpio]),
      .dmawr_valid_o(dmawr_valid_o[Kpio]), .dmawr_ready_i(dmawr_ready_i[Kpio]),
      .dmawr_address_o(dmawr_address_o[Kpio]), .dmawr_data_o(dmawr_data_o[Kpio]),
      .dmawr_bytes_o(dmawr_bytes_o[Kpio]), .increments_o(increments_o[Kpio])
    );
  end else begin : g_no_kpio
    assign {busy[Kpio], pending[Kpio], failed_valid_o[Kpio], frame_valid[Kpio], dmawr_valid_o[Kpio]} = '0;
    assign {piece_ready[Kpio], settled[Kpio]} = '1;
    assign {failed_queue_o[Kpio], failed_cause_o[Kpio]} = '0;
    assign {frame_data[Kpio], frame_bytes[Kpio], frame_last[Kpio], frame_queue[Kpio]} = '0;
    assign {dmawr_address_o[Kpio], dmawr_data_o[Kpio], dmawr_bytes_o[Kpio]} = '0;
    assign increments_o[Kpio] = '0;
    logic unused_pieces;
    assign unused_pieces = ^{
      piece_valid_i, piece_queue_i, piece_line_i, piece_data_i, piece_be_i, piece_whole_i, piece_first_i, piece_last_i
    };
  end

  if (HasDescriptor) begin : g_dma
    logic       bad_accesses, descriptor_fetches, payload_fetches, completions, runts;
    logic [1:0] bad_lengths, dma_errors;
    nic_rtl_pkg::increments_t dma_increments;

    logic engine_clk;
    engine_clock u_clock (
      .clk_i, .rst_ni, .wakes_i(start_valid_i && start_settings_i.iface == 4'(nic_pkg::QueueControlIfaceDescriptor)),
      .told_i(start_valid_i || stop_valid_i), .clk_o(engine_clk)
    );

    descriptor_tx #(.NumQueues(NumQueues), .MaxFrameBytes(nic_pkg::MaxFrameBytes)) u_dma (
      .clk_i(engine_clk), .rst_ni, .now_ns_i,
      .busy_o(busy[Dma]), .start_valid_i, .start_queue_i, .start_settings_i, .stop_valid_i, .stop_queue_i,
      .failed_valid_o(failed_valid_o[Dma]), .failed_ready_i(failed_ready_i[Dma]),
      .failed_queue_o(failed_queue_o[Dma]), .failed_cause_o(failed_cause_o[Dma]),
      .doorbell_valid_i, .doorbell_queue_i, .doorbell_tail_i,
      .rdreq_valid_o(rdreq_valid_o[DmaReader]), .rdreq_ready_i(rdreq_ready_i[DmaReader]),
      .rdreq_address_o(rdreq_address_o[DmaReader]), .rdreq_bytes_o(rdreq_bytes_o[DmaReader]),
      .rdreq_tag_o(rdreq_tag_o[DmaReader]), .rdcpl_valid_i(rdcpl_valid_i[DmaReader]), .rdcpl_tag_i, .rdcpl_data_i,
      .rdcpl_last_i, .rdcpl_error_i,
      .dmawr_valid_o(dmawr_valid_o[Dma]), .dmawr_ready_i(dmawr_ready_i[Dma]),
      .dmawr_address_o(dmawr_address_o[Dma]), .dmawr_data_o(dmawr_data_o[Dma]),
      .dmawr_bytes_o(dmawr_bytes_o[Dma]),
      .irq_valid_o(engine_irq_valid[Dma]), .irq_ready_i(engine_irq_ready[Dma]),
      .irq_queue_o(engine_irq_queue[Dma]),
      .frame_valid_o(frame_valid[Dma]), .frame_ready_i(frame_ready[Dma]), .frame_data_o(frame_data[Dma]),
      .frame_bytes_o(frame_bytes[Dma]), .frame_last_o(frame_last[Dma]), .frame_queue_o(frame_queue[Dma]),
      .count_bad_accesses_o(bad_accesses), .count_descriptor_fetches_o(descriptor_fetches),
      .count_payload_fetches_o(payload_fetches), .count_completions_o(completions), .count_runts_o(runts),
      .count_bad_lengths_o(bad_lengths), .count_dma_errors_o(dma_errors)
    );
    always_comb begin
      dma_increments = '0;
      dma_increments[nic_pkg::CounterBadAccessesOffset >> 3]       = 8'(bad_accesses);
      dma_increments[nic_pkg::CounterDescriptorFetchesOffset >> 3] = 8'(descriptor_fetches);
      dma_increments[nic_pkg::CounterPayloadFetchesOffset >> 3]    = 8'(payload_fetches);
      dma_increments[nic_pkg::CounterCompletionsOffset >> 3]       = 8'(completions);
      dma_increments[nic_pkg::CounterRuntsOffset >> 3]             = 8'(runts);
      dma_increments[nic_pkg::CounterBadLengthsOffset >> 3]        = 8'(bad_lengths);
      dma_increments[nic_pkg::CounterDmaErrorsOffset >> 3]         = 8'(dma_errors);
    end
    assign increments_o[Dma] = dma_increments;
  end else begin : g_no_dma
    assign {busy[Dma], failed_valid_o[Dma], frame_valid[Dma], dmawr_valid_o[Dma]} = '0;
    assign {failed_queue_o[Dma], failed_cause_o[Dma]} = '0;
    assign {frame_data[Dma], frame_bytes[Dma], frame_last[Dma], frame_queue[Dma]} = '0;
    assign {dmawr_address_o[Dma], dmawr_data_o[Dma], dmawr_bytes_o[Dma]} = '0;
    assign {rdreq_valid_o[DmaReader], rdreq_address_o[DmaReader], rdreq_bytes_o[DmaReader]} = '0;
    assign {rdreq_tag_o[DmaReader], engine_irq_valid[Dma], engine_irq_queue[Dma]} = '0;
    assign increments_o[Dma] = '0;
    logic unused_dma;
    assign unused_dma = ^{
      doorbell_valid_i, doorbell_queue_i, doorbell_tail_i, rdreq_ready_i[DmaReader], rdcpl_valid_i[DmaReader],
      rdcpl_tag_i, rdcpl_data_i, rdcpl_last_i, rdcpl_error_i, engine_irq_ready[Dma], failed_ready_i[Dma],
      dmawr_ready_i[Dma]
    };
  end
  // No windows.
  assign {piece_ready[Dma], settled[Dma], pending[Dma]} = 3'b010;

  // ------------------------------------------------------------------------------ interrupts
  assign {engine_irq_valid[Kpio], engine_irq_valid[Mmio]} = '0;
  assign {engine_irq_queue[Kpio], engine_irq_queue[Mmio]} = '0;
  // The first engine that has one; the next is told a cycle after it, so none waits for long.
  assign engine_irq_ready = irq_ready_i ? engine_irq_valid & (~engine_irq_valid + 1'b1) : '0;
  assign irq_valid_o      = engine_irq_valid != '0;
  always_comb begin
    irq_queue_o = '0;
    for (int engine = int'(Engines) - 1; engine >= 0; engine--) begin
      if (engine_irq_valid[engine]) irq_queue_o = engine_irq_queue[engine];
    end
  end

  // ------------------------------------------------------------------------------ inline, Ensō, NIQ
  for (genvar engine = int'(Inline); engine <= int'(Niq); engine++) begin : g_engine
    if (!(engine == int'(Inline) && HasInline || engine == int'(Enso) && HasEnso || engine == int'(Niq) && HasNiq))
    begin : g_absent
      assign {busy[engine], pending[engine], failed_valid_o[engine], frame_valid[engine], dmawr_valid_o[engine]} = '0;
      assign {failed_queue_o[engine], failed_cause_o[engine]} = '0;
      assign {frame_data[engine], frame_bytes[engine], frame_last[engine], frame_queue[engine]} = '0;
      assign {dmawr_address_o[engine], dmawr_data_o[engine], dmawr_bytes_o[engine]} = '0;
      assign {engine_irq_valid[engine], engine_irq_queue[engine], piece_ready[engine]} = '0;
      assign settled[engine] = 1'b1;
      assign increments_o[engine] = '0;
      assign {rdreq_valid_o[engine-FirstReader], rdreq_address_o[engine-FirstReader]} = '0;
      assign {rdreq_bytes_o[engine-FirstReader], rdreq_tag_o[engine-FirstReader]} = '0;
      logic unused_absent;
      assign unused_absent = ^{
        failed_ready_i[engine], dmawr_ready_i[engine], engine_irq_ready[engine], takes[engine],
        rdreq_ready_i[engine-FirstReader], rdcpl_valid_i[engine-FirstReader], frame_ready[engine]
      };
    end
  end

  if (HasInline) begin : g_inline
    localparam int unsigned Reader = Inline - FirstReader;
    logic engine_clk;
    engine_clock u_clock (
      .clk_i, .rst_ni, .wakes_i(start_valid_i && start_settings_i.iface == 4'(nic_pkg::QueueControlIfaceInline)),
      .told_i(start_valid_i || stop_valid_i), .clk_o(engine_clk)
    );

    inline_path #(.NumQueues(NumQueues), .LineW(LineW)) u_inline (
      .clk_i(engine_clk), .rst_ni, .now_ns_i, .window_mask_i, .max_frame_bytes_i,
      .busy_o(busy[Inline]), .start_valid_i, .start_queue_i, .start_settings_i, .stop_valid_i, .stop_queue_i,
      .failed_valid_o(failed_valid_o[Inline]), .failed_ready_i(failed_ready_i[Inline]),
      .failed_queue_o(failed_queue_o[Inline]), .failed_cause_o(failed_cause_o[Inline]),
      .doorbell_valid_i, .doorbell_queue_i, .doorbell_tail_i,
      .piece_valid_i(piece_valid_i && takes[Inline]), .piece_ready_o(piece_ready[Inline]), .piece_queue_i,
      .piece_line_i, .piece_data_i, .piece_be_i, .piece_first_i, .piece_last_i, .is_settled_o(settled[Inline]),
      .rdreq_valid_o(rdreq_valid_o[Reader]), .rdreq_ready_i(rdreq_ready_i[Reader]),
      .rdreq_address_o(rdreq_address_o[Reader]), .rdreq_bytes_o(rdreq_bytes_o[Reader]),
      .rdreq_tag_o(rdreq_tag_o[Reader]), .rdcpl_valid_i(rdcpl_valid_i[Reader]), .rdcpl_tag_i, .rdcpl_data_i,
      .rdcpl_last_i, .rdcpl_error_i,
      .dmawr_valid_o(dmawr_valid_o[Inline]), .dmawr_ready_i(dmawr_ready_i[Inline]),
      .dmawr_address_o(dmawr_address_o[Inline]), .dmawr_data_o(dmawr_data_o[Inline]),
      .dmawr_bytes_o(dmawr_bytes_o[Inline]),
      .irq_valid_o(engine_irq_valid[Inline]), .irq_ready_i(engine_irq_ready[Inline]),
      .irq_queue_o(engine_irq_queue[Inline]),
      .frame_valid_o(frame_valid[Inline]), .frame_ready_i(frame_ready[Inline]), .frame_data_o(frame_data[Inline]),
      .frame_bytes_o(frame_bytes[Inline]), .frame_last_o(frame_last[Inline]), .frame_queue_o(frame_queue[Inline]),
      .increments_o(increments_o[Inline])
    );
    assign pending[Inline] = 1'b0;
  end

  if (HasEnso) begin : g_enso
    localparam int unsigned Reader = Enso - FirstReader;
    logic engine_clk;
    engine_clock u_clock (
      .clk_i, .rst_ni, .wakes_i(start_valid_i && start_settings_i.iface == 4'(nic_pkg::QueueControlIfaceEnso)),
      .told_i(start_valid_i || stop_valid_i), .clk_o(engine_clk)
    );

    enso_path #(.NumQueues(NumQueues)) u_enso (
      .clk_i(engine_clk), .rst_ni, .now_ns_i, .max_frame_bytes_i,
      .busy_o(busy[Enso]), .start_valid_i, .start_queue_i, .start_settings_i, .stop_valid_i, .stop_queue_i,
      .failed_valid_o(failed_valid_o[Enso]), .failed_ready_i(failed_ready_i[Enso]),
      .failed_queue_o(failed_queue_o[Enso]), .failed_cause_o(failed_cause_o[Enso]),
      .doorbell_valid_i, .doorbell_queue_i, .doorbell_tail_i,
      .rdreq_valid_o(rdreq_valid_o[Reader]), .rdreq_ready_i(rdreq_ready_i[Reader]),
      .rdreq_address_o(rdreq_address_o[Reader]), .rdreq_bytes_o(rdreq_bytes_o[Reader]),
      .rdreq_tag_o(rdreq_tag_o[Reader]), .rdcpl_valid_i(rdcpl_valid_i[Reader]), .rdcpl_tag_i, .rdcpl_data_i,
      .rdcpl_last_i, .rdcpl_error_i,
      .dmawr_valid_o(dmawr_valid_o[Enso]), .dmawr_ready_i(dmawr_ready_i[Enso]),
      .dmawr_address_o(dmawr_address_o[Enso]), .dmawr_data_o(dmawr_data_o[Enso]),
      .dmawr_bytes_o(dmawr_bytes_o[Enso]),
      .frame_valid_o(frame_valid[Enso]), .frame_ready_i(frame_ready[Enso]), .frame_data_o(frame_data[Enso]),
      .frame_bytes_o(frame_bytes[Enso]), .frame_last_o(frame_last[Enso]), .frame_queue_o(frame_queue[Enso]),
      .increments_o(increments_o[Enso])
    );
    // No windows, no interrupts.
    assign {piece_ready[Enso], settled[Enso], pending[Enso]} = 3'b010;
    assign {engine_irq_valid[Enso], engine_irq_queue[Enso]} = '0;
    logic unused_enso;
    assign unused_enso = ^{takes[Enso], engine_irq_ready[Enso]};
  end

  if (HasNiq) begin : g_niq
    localparam int unsigned NiqTagW = 5;
    logic [NiqTagW-1:0] niq_tag;
    assign rdreq_tag_o[Niq-FirstReader] = TagW'(niq_tag);

    logic engine_clk;
    engine_clock u_clock (
      .clk_i, .rst_ni, .wakes_i(start_valid_i && start_settings_i.iface == 4'(nic_pkg::QueueControlIfaceNiq)),
      .told_i(start_valid_i || stop_valid_i), .clk_o(engine_clk)
    );

    niq_path #(.NumQueues(NumQueues), .LineW(LineW)) u_niq (
      .clk_i(engine_clk), .rst_ni, .now_ns_i, .window_mask_i, .max_frame_bytes_i,
      .busy_o(busy[Niq]), .start_valid_i, .start_queue_i, .start_settings_i, .stop_valid_i, .stop_queue_i,
      .failed_valid_o(failed_valid_o[Niq]), .failed_ready_i(failed_ready_i[Niq]),
      .failed_queue_o(failed_queue_o[Niq]), .failed_cause_o(failed_cause_o[Niq]),
      .piece_valid_i(piece_valid_i && takes[Niq]), .piece_ready_o(piece_ready[Niq]), .piece_queue_i, .piece_line_i,
      .piece_data_i, .piece_be_i, .piece_first_i, .piece_last_i, .is_settled_o(settled[Niq]),
      .is_pending_o(pending[Niq]),
      .frame_valid_o(frame_valid[Niq]), .frame_ready_i(frame_ready[Niq]), .frame_data_o(frame_data[Niq]),
      .frame_bytes_o(frame_bytes[Niq]), .frame_last_o(frame_last[Niq]), .frame_queue_o(frame_queue[Niq]),
      .rdreq_valid_o(rdreq_valid_o[Niq-FirstReader]), .rdreq_ready_i(rdreq_ready_i[Niq-FirstReader]),
      .rdreq_address_o(rdreq_address_o[Niq-FirstReader]), .rdreq_bytes_o(rdreq_bytes_o[Niq-FirstReader]),
      .rdreq_tag_o(niq_tag), .rdcpl_valid_i(rdcpl_valid_i[Niq-FirstReader]), .rdcpl_tag_i(rdcpl_tag_i[NiqTagW-1:0]),
      .rdcpl_data_i, .rdcpl_last_i, .rdcpl_error_i,
      .dmawr_valid_o(dmawr_valid_o[Niq]), .dmawr_ready_i(dmawr_ready_i[Niq]),
      .dmawr_address_o(dmawr_address_o[Niq]), .dmawr_data_o(dmawr_data_o[Niq]), .dmawr_bytes_o(dmawr_bytes_o[Niq]),
      .irq_valid_o(engine_irq_valid[Niq]), .irq_ready_i(engine_irq_ready[Niq]), .irq_queue_o(engine_irq_queue[Niq]),
      .increments_o(increments_o[Niq])
    );
  end

  // ------------------------------------------------------------------------------ pause
  // Open: a beat was offered, or the rest of its frame is to come; a pause comes too late for it.
  assign gate        = pauses & ~open_q;
  assign offer_valid = frame_valid & ~gate;
  assign frame_ready = offer_ready & ~gate;
  assign open_d      = (offer_valid & ~(offer_ready & frame_last)) | (open_q & ~offer_valid);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) open_q <= '0;
    else         open_q <= open_d;
  end

  // ------------------------------------------------------------------------------ the multiplexer of kPIO+WC
  if (HasKpio || HasDescriptor) begin : g_mux
    logic              joined_valid, joined_ready, joined_last, joined_stream, unused_kpio, unused_join_idle,
                       unused_early, unused_abort;
    logic [511:0]      joined_data;
    logic [6:0]        joined_bytes;
    logic [QueueW-1:0] joined_queue;

    frame_arbiter #(.Streams(2), .NumQueues(NumQueues), .NumClasses(NumClasses)) u_join (
      .clk_i, .rst_ni, .start_valid_i, .start_queue_i, .start_class_i(start_settings_i.priority_class),
      .start_weight_i(start_settings_i.weight),
      .in_valid_i(offer_valid[Dma:Kpio]), .in_ready_o(offer_ready[Dma:Kpio]),
      .in_data_i(frame_data[Dma:Kpio]), .in_bytes_i(frame_bytes[Dma:Kpio]),
      .in_last_i(frame_last[Dma:Kpio]), .in_queue_i(frame_queue[Dma:Kpio]), .in_early_i('0), .in_abort_i('0),
      .out_valid_o(joined_valid), .out_ready_i(joined_ready), .out_data_o(joined_data),
      .out_bytes_o(joined_bytes), .out_last_o(joined_last), .out_queue_o(joined_queue), .out_early_o(unused_early),
      .out_abort_o(unused_abort),
      .out_stream_o(joined_stream), .is_idle_o(unused_join_idle)
    );

    mux #(.QueueW(QueueW)) u_mux (
      .clk_i, .rst_ni, .mux_i, .first_port_i(mux_ports_i[15:0]), .last_port_i(mux_ports_i[31:16]),
      .in_valid_i(joined_valid), .in_ready_o(joined_ready), .in_data_i(joined_data), .in_bytes_i(joined_bytes),
      .in_last_i(joined_last), .in_queue_i(joined_queue), .in_kpio_i(!joined_stream),
      .out_valid_o(muxed_valid), .out_ready_i(muxed_ready), .out_data_o(muxed_data), .out_bytes_o(muxed_bytes),
      .out_last_o(muxed_last), .out_queue_o(muxed_queue), .out_kpio_o(unused_kpio),
      .count_mux_mismatches_o(mux_mismatch)
    );
  end else begin : g_no_mux
    assign {muxed_valid, muxed_data, muxed_bytes, muxed_last, muxed_queue, mux_mismatch} = '0;
    assign offer_ready[Dma:Kpio] = '0;
    logic unused_mux;
    assign unused_mux = ^{mux_i, mux_ports_i, offer_valid[Dma:Kpio], muxed_ready};
  end

  // ------------------------------------------------------------------------------ in front of the wire
  // The multiplexer's frames come in where those of descriptors would.
  localparam int unsigned Muxed = 1;
  localparam int unsigned Streams = Engines - 1;
  logic                           unused_idle, chosen_valid, chosen_ready, chosen_last;
  logic [Lanes-1:0]               frame_done, checksums_idle, early_frames, early_idle;
  logic [Lanes-1:0][7:0]          early_bytes;
  logic                           chosen_early, chosen_abort;
  logic [511:0]                   chosen_data;
  logic [6:0]                     chosen_bytes;
  logic [QueueW-1:0]              chosen_queue;
  logic [$clog2(Streams)-1:0]     unused_stream;
  logic [Streams-1:0]             wire_valid, wire_ready, wire_last;
  logic [Streams-1:0][511:0]      wire_data;
  logic [Streams-1:0][6:0]        wire_bytes;
  logic [Streams-1:0][QueueW-1:0] wire_queue;

  assign wire_valid  = {offer_valid[Niq:Inline], muxed_valid, offer_valid[Mmio]};
  assign wire_data   = {frame_data[Niq:Inline], muxed_data, frame_data[Mmio]};
  assign wire_bytes  = {frame_bytes[Niq:Inline], muxed_bytes, frame_bytes[Mmio]};
  assign wire_last   = {frame_last[Niq:Inline], muxed_last, frame_last[Mmio]};
  assign wire_queue  = {frame_queue[Niq:Inline], muxed_queue, frame_queue[Mmio]};
  assign muxed_ready = wire_ready[Muxed];
  assign offer_ready[Mmio]       = wire_ready[Mmio];
  assign offer_ready[Niq:Inline] = wire_ready[Streams-1:Muxed+1];

  frame_arbiter #(.Streams(Streams), .NumQueues(NumQueues), .NumClasses(NumClasses)) u_arbiter (
    .clk_i, .rst_ni, .start_valid_i, .start_queue_i, .start_class_i(start_settings_i.priority_class),
    .start_weight_i(start_settings_i.weight),
    .in_valid_i(wire_valid), .in_ready_o(wire_ready), .in_data_i(wire_data), .in_bytes_i(wire_bytes),
    .in_last_i(wire_last), .in_queue_i(wire_queue), .in_early_i(Streams'(mmio_early[0])),
    .in_abort_i(Streams'(mmio_abort[0])),
    .out_valid_o(chosen_valid), .out_ready_i(chosen_ready), .out_data_o(chosen_data),
    .out_bytes_o(chosen_bytes), .out_last_o(chosen_last), .out_queue_o(chosen_queue), .out_early_o(chosen_early),
    .out_abort_o(chosen_abort),
    .out_stream_o(unused_stream), .is_idle_o(unused_idle)
  );

  checksum_path #(.Insert(HasChecksums), .NumQueues(NumQueues)) u_checksums (
    .clk_i, .rst_ni, .start_valid_i, .start_queue_i, .start_checksums_i(start_settings_i.checksums),
    .in_valid_i(chosen_valid), .in_ready_o(chosen_ready), .in_data_i(chosen_data), .in_bytes_i(chosen_bytes),
    .in_last_i(chosen_last), .in_queue_i(chosen_queue), .in_early_i(chosen_early), .in_abort_i(chosen_abort),
    .out_valid_o(frame_valid_o[0]), .out_ready_i(frame_ready_i[0]), .out_data_o(frame_data_o[0]),
    .out_bytes_o(frame_bytes_o[0]), .out_last_o(frame_last_o[0]), .out_queue_o(frame_queue_o[0]),
    .out_early_o(frame_early_o[0]), .out_abort_o(frame_abort_o[0]), .is_idle_o(checksums_idle[0])
  );
  assign pauses[Engines-1:0] = {Engines{pause_i[0]}};

  if (Lanes == 2) begin : g_second_wire
    localparam int unsigned Odd = Engines;

    assign pauses[Odd]         = pause_i[1];
    assign frame_valid[Odd]    = mmio_frame_valid[1];
    assign frame_data[Odd]     = mmio_frame_data[1];
    assign frame_bytes[Odd]    = mmio_frame_bytes[1];
    assign frame_last[Odd]     = mmio_frame_last[1];
    assign frame_queue[Odd]    = mmio_frame_queue[1];
    assign mmio_frame_ready[1] = frame_ready[Odd];

    checksum_path #(.Insert(HasChecksums), .NumQueues(NumQueues)) u_checksums_odd (
      .clk_i, .rst_ni, .start_valid_i, .start_queue_i, .start_checksums_i(start_settings_i.checksums),
      .in_valid_i(offer_valid[Odd]), .in_ready_o(offer_ready[Odd]), .in_data_i(frame_data[Odd]),
      .in_bytes_i(frame_bytes[Odd]), .in_last_i(frame_last[Odd]), .in_queue_i(frame_queue[Odd]),
      .in_early_i(mmio_early[1]), .in_abort_i(mmio_abort[1]),
      .out_valid_o(frame_valid_o[1]), .out_ready_i(frame_ready_i[1]), .out_data_o(frame_data_o[1]),
      .out_bytes_o(frame_bytes_o[1]), .out_last_o(frame_last_o[1]), .out_queue_o(frame_queue_o[1]),
      .out_early_o(frame_early_o[1]), .out_abort_o(frame_abort_o[1]), .is_idle_o(checksums_idle[1])
    );
  end

  assign frame_done = frame_valid_o & frame_ready_i;
  assign is_idle_o  = mmio_idle && (&settled) && (&checksums_idle) && (&early_idle);

  for (genvar i = 0; i < int'(Lanes); i++) begin : g_count
    nic_rtl_pkg::increments_t wire_increments;

    early_account u_early (
      .clk_i, .rst_ni, .beat_valid_i(frame_done[i] && frame_early_o[i] && !frame_abort_o[i]),
      .beat_bytes_i(frame_bytes_o[i]), .shown_valid_i(shown_valid_i[i]), .shown_bad_i(shown_bad_i[i]),
      .count_frames_o(early_frames[i]), .count_bytes_o(early_bytes[i]), .is_idle_o(early_idle[i])
    );

    always_comb begin
      wire_increments = '0;
      wire_increments[nic_pkg::CounterTxFramesOffset >> 3] =
          8'(frame_done[i] && frame_last_o[i] && !frame_early_o[i]) + 8'(early_frames[i]);
      wire_increments[nic_pkg::CounterTxFrameBytesOffset >> 3] =
          (frame_done[i] && !frame_early_o[i] ? 8'(frame_bytes_o[i]) : '0) + early_bytes[i];
      wire_increments[nic_pkg::CounterMuxMismatchesOffset >> 3] = 8'(mux_mismatch && i == 0);
    end
    assign increments_o[Engines+i] = wire_increments;
  end

endmodule

`default_nettype wire

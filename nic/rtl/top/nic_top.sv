// The NIC of one port, without its PCIe core and MAC.
//
// In front: lines that were written to BAR 0, one or two a cycle, and reads of its registers, in order, from any PCIe
// core (an adapter for UltraScale+ is in nic/rtl/pcie). Behind: streams of whole frames to and from the MAC. Beside: DMA
// and interrupts.
//
// Guarantees: those of the parts; see docs/nic.md for the path of a frame. Parameters are the sizes that are built,
// straps the sizes that are used; straps are constant after reset and at most the parameters (tied off they cost
// nothing). A frame whose engine is reset while it leaves is cut short by a last beat with `frame_abort_o`. A read waits at
// most 32 cycles for a gap in the writes, then they wait for it.
// Limits: a queue whose receive side fails goes on sending what is complete until the host stops it, and the other way
// round; its status tells the failure at once. Twin: nic/model/src/nic.rs.

`default_nettype none

module nic_top #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // Lines of a queue's window: a power of two, at least twice SpanLines.
  parameter int unsigned WindowLines = 64,
  // Reorder span in lines: a power of two, 2 to 256.
  parameter int unsigned SpanLines = 16,
  // Reorder contexts, 2 or more.
  parameter int unsigned NumContexts = 16,
  // Lines of the pool.
  parameter int unsigned PoolLines = 512,
  // Strict priority classes, 1 to 16.
  parameter int unsigned NumClasses = 4,
  // What is there beside mmio: kPIO+WC, descriptors, pushed entries, pipes, NIQ, receive.
  parameter bit HasKpio = 1'b1,
  parameter bit HasDescriptor = 1'b1,
  parameter bit HasInline = 1'b1,
  parameter bit HasEnso = 1'b1,
  parameter bit HasNiq = 1'b1,
  parameter bit HasReceive = 1'b1,
  // Whether checksums can be filled in: a queue that asks waits for each of its frames to be whole.
  parameter bit HasChecksums = 1'b0,
  // Lines a cycle for queues of mmio, 1 or 2, and as many streams to the MAC: with 2 the mmio engine is two, one for even
  // queues and stream 0, one for odd queues and stream 1, each with half of contexts and pool (see mmio_pair).
  parameter int unsigned Lanes = 1,
  // Bits of an offset in BAR 0: 2 MiB of registers and the windows behind them, each at least a page.
  localparam int unsigned StrideLog2 = ($clog2(WindowLines) + 6 > 12) ? $clog2(WindowLines) + 6 : 12,
  localparam int unsigned AddressW = ($clog2(NumQueues) + StrideLog2 > 21) ? $clog2(NumQueues) + StrideLog2 + 1 : 22,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned LineW = $clog2(WindowLines)
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [47:0]         now_ns_i,

  // Straps.
  input  logic [31:0]         strap_window_lines_i,
  input  logic [31:0]         strap_span_lines_i,
  input  logic [31:0]         strap_contexts_i,
  input  logic [31:0]         strap_pool_lines_i,
  input  logic [31:0]         strap_max_frame_bytes_i,
  input  logic [47:0]         strap_mac_i,

  // Lines written to BAR 0; the address is a multiple of 64. Of two, either or both are valid, both are taken or none,
  // and line 0 was written before line 1.
  input  logic [Lanes-1:0]    wr_valid_i,
  output logic                wr_ready_o,
  input  logic [Lanes-1:0][AddressW-1:0] wr_address_i,
  input  logic [Lanes-1:0][511:0] wr_data_i,
  input  logic [Lanes-1:0][63:0] wr_be_i,
  input  logic [Lanes-1:0]    wr_first_i,
  input  logic [Lanes-1:0]    wr_last_i,

  // Reads of aligned 64-bit registers, and of words of entries in the windows; each pushes the writes that were taken
  // before it. Answers come in any order: a read of an entry that is not there may be held.
  input  logic                rd_valid_i,
  output logic                rd_ready_o,
  input  logic [AddressW-1:0] rd_address_i,
  input  logic [15:0]         rd_tag_i,
  output logic                rc_valid_o,
  input  logic                rc_ready_i,
  output logic [15:0]         rc_tag_o,
  output logic [63:0]         rc_value_o,

  // DMA writes: at most a line, the bytes from the lowest on.
  output logic                dmawr_valid_o,
  input  logic                dmawr_ready_i,
  output logic [63:0]         dmawr_address_o,
  output logic [511:0]        dmawr_data_o,
  output logic [6:0]          dmawr_bytes_o,

  // DMA reads of at most 4096 bytes that cross no 4 KiB boundary. Answers come in any order of tags, each as beats of 64
  // bytes from the first byte asked for on, the last one marked; a failed read is answered by one beat with `error`.
  output logic                rdreq_valid_o,
  input  logic                rdreq_ready_i,
  output logic [63:0]         rdreq_address_o,
  output logic [12:0]         rdreq_bytes_o,
  output logic [7:0]          rdreq_tag_o,
  input  logic                rdcpl_valid_i,
  input  logic [7:0]          rdcpl_tag_i,
  input  logic [511:0]        rdcpl_data_i,
  input  logic                rdcpl_last_i,
  input  logic                rdcpl_error_i,

  // Interrupts.
  output logic                irq_valid_o,
  input  logic                irq_ready_i,
  output logic [QueueW-1:0]   irq_vector_o,

  // Frames to the MAC; `abort` with the last beat: the frame must not arrive whole. While `pause` is high (IEEE 802.3
  // annex 31B) no frame begins to leave its engine; those in the arbiters, a few lines, still do. Stream 1 has frames of
  // odd queues of mmio, stream 0 all others.
  input  logic [Lanes-1:0]    frame_pause_i,
  output logic [Lanes-1:0]    frame_valid_o,
  input  logic [Lanes-1:0]    frame_ready_i,
  output logic [Lanes-1:0][511:0] frame_data_o,
  output logic [Lanes-1:0][6:0] frame_bytes_o,
  output logic [Lanes-1:0]    frame_last_o,
  output logic [Lanes-1:0]    frame_abort_o,
  output logic [Lanes-1:0][QueueW-1:0] frame_queue_o,

  // Frames from the MAC, and whether one is held (1) or dropped (0) while the host lends no room.
  input  logic                rx_lossless_i,
  input  logic                rx_valid_i,
  output logic                rx_ready_o,
  input  logic [511:0]        rx_data_i,
  input  logic [6:0]          rx_bytes_i,
  input  logic                rx_last_i,

  // Registers, windows and the reorder unit have nothing under way but what waits for the wire. (Descriptors and
  // receive have always something to look at; their pins tell what they do.)
  output logic                is_idle_o
);

  localparam int unsigned RingW = $clog2(SpanLines) + 1;

  if (NumQueues < 1 || NumQueues > nic_pkg::MaxQueues || (NumQueues & (NumQueues - 1)) != 0) begin : g_bad_queues
    $fatal(1, "nic_top: NumQueues must be a power of two from 1 to 1024");
  end
  if (Lanes < 1 || Lanes > 2) begin : g_bad_lanes
    $fatal(1, "nic_top: Lanes must be 1 or 2");
  end
  if (AddressW > 31) begin : g_bad_bar
    $fatal(1, "nic_top: the windows of all queues must fit a BAR of 2 GiB");
  end

  // ------------------------------------------------------------------------------ straps
  logic [AddressW-1:0] aperture;
  logic [4:0]          stride_log2;
  logic [LineW-1:0]    window_mask;
  logic [RingW-1:0]    span_lines, ring_mask;
  logic [31:0]         window_mask_wide, ring_lines;

  assign window_mask_wide = strap_window_lines_i - 1'b1;
  assign window_mask      = window_mask_wide[LineW-1:0];
  assign ring_lines       = (strap_span_lines_i * 2 < strap_window_lines_i) ? strap_span_lines_i * 2
                                                                            : strap_window_lines_i;
  assign span_lines       = strap_span_lines_i[RingW-1:0];
  assign ring_mask        = RingW'(ring_lines - 1'b1);

  // A window takes its own size, or a page; the first one stands behind the registers, at a multiple of that.
  always_comb begin
    stride_log2 = 5'd12;
    for (int i = 7; i < 20; i++) if (strap_window_lines_i[i]) stride_log2 = 5'(i + 6);
  end
  assign aperture = (stride_log2 > 5'd21) ? AddressW'(1) << stride_log2 : AddressW'(1) << 21;

  // ------------------------------------------------------------------------------ ingress
  logic                engines_reset_n, ingress_idle, bad_access_ingress;
  logic                route_we;
  logic [QueueW-1:0]   route_queue;
  logic [3:0]          route;
  logic [Lanes-1:0]    mmio_valid, mmio_whole, mmio_first, mmio_last;
  logic                mmio_ready;
  logic [Lanes-1:0][QueueW-1:0] mmio_queue;
  logic [Lanes-1:0][LineW-1:0] mmio_line;
  logic [Lanes-1:0][511:0] mmio_data;
  logic [Lanes-1:0][63:0] mmio_be;
  logic                piece_valid, piece_ready, piece_whole, piece_first, piece_last;
  logic [3:0]          piece_route;
  logic [QueueW-1:0]   piece_queue;
  logic [LineW-1:0]    piece_line;
  logic [511:0]        piece_data;
  logic [63:0]         piece_be;
  logic                register_valid, register_ready;
  logic [AddressW-1:0] register_address;
  logic [63:0]         register_value;
  logic                settled, pending, transmit_idle, is_full, is_full_q, is_refused_q;
  logic                registers_hold, registers_busy, registers_idle;
  // How long a read has waited for the writes in front of it.
  localparam int unsigned ReadWaitW = 6;
  logic [ReadWaitW-1:0] read_waits_q;

  ingress #(.NumQueues(NumQueues), .LineW(LineW), .AddressW(AddressW), .Lanes(Lanes)) u_ingress (
    .clk_i, .rst_ni,
    .aperture_i(aperture), .stride_log2_i(stride_log2), .window_mask_i(window_mask),
    .hold_i(registers_hold || is_full || read_waits_q[ReadWaitW-1]), .busy_i(registers_busy),
    .wr_valid_i, .wr_ready_o, .wr_address_i, .wr_data_i, .wr_be_i, .wr_first_i, .wr_last_i,
    .route_we_i(route_we), .route_queue_i(route_queue), .route_i(route),
    .mmio_valid_o(mmio_valid), .mmio_ready_i(mmio_ready), .mmio_queue_o(mmio_queue), .mmio_line_o(mmio_line),
    .mmio_data_o(mmio_data), .mmio_be_o(mmio_be), .mmio_whole_o(mmio_whole), .mmio_first_o(mmio_first),
    .mmio_last_o(mmio_last),
    .piece_valid_o(piece_valid), .piece_ready_i(piece_ready), .piece_route_o(piece_route),
    .piece_queue_o(piece_queue), .piece_line_o(piece_line), .piece_data_o(piece_data), .piece_be_o(piece_be),
    .piece_whole_o(piece_whole), .piece_first_o(piece_first), .piece_last_o(piece_last),
    .register_valid_o(register_valid), .register_ready_i(register_ready), .register_address_o(register_address),
    .register_value_o(register_value), .is_idle_o(ingress_idle), .count_bad_accesses_o(bad_access_ingress)
  );

  // ------------------------------------------------------------------------------ registers
  localparam logic [15:0] Interfaces =
      16'(1) << nic_pkg::QueueControlIfaceMmio
      | 16'(HasKpio) << nic_pkg::QueueControlIfaceKpio
      | 16'(HasDescriptor) << nic_pkg::QueueControlIfaceDescriptor
      | 16'(HasInline) << nic_pkg::QueueControlIfaceInline
      | 16'(HasEnso) << nic_pkg::QueueControlIfaceEnso
      | 16'(HasNiq) << nic_pkg::QueueControlIfaceNiq;
  localparam logic [15:0] Features =
      16'(HasChecksums) << nic_pkg::FeatureChecksums
      | 16'(1) << nic_pkg::FeatureCutThrough;

  // Reads, and who answers them.
  localparam int unsigned Registers = 0;
  localparam int unsigned Windows = 1;
  logic                read_known, read_in_window, read_of_window, read_is_free, window_read;
  logic [QueueW-1:0]   read_queue;
  logic [LineW+2:0]    read_word;
  logic [1:0]          read_ready, answer_valid, answer_ready;
  logic [1:0][15:0]    answer_tag;
  logic [1:0][63:0]    answer_value;

  logic                start_valid, stop_valid, engines_busy, failed_valid, failed_ready;
  logic                tx_tail_valid, rx_freed_valid, entries_freed_valid, cause_tx_completion, cause_rx_frame;
  logic [QueueW-1:0]   doorbell_queue;
  logic [63:0]         doorbell_value;
  logic [1:0]          mux;
  logic [31:0]         mux_ports;
  logic [2:0]          irq_mask;
  logic [QueueW-1:0]   setup_queue, failed_queue, next_start_queue;
  logic [3:0]          failed_cause;
  nic_rtl_pkg::queue_settings_t settings;
  logic [47:0]         next_start;
  logic [6:0]          counter;
  logic [63:0]         count;
  logic                counters_busy, bad_access_registers, doorbell_counted, irq_failed_valid;
  logic [15:0]         depth_max;
  logic [QueueW-1:0]   irq_failed_queue;
  logic                registers_ready;

  // A write waits until those before it have been judged, where it may start or stop a queue, or wait for room: the stop
  // of a queue must not wait for the wire.
  assign register_ready = registers_ready && settled;

  registers #(
    .NumQueues(NumQueues), .AddressW(AddressW), .Interfaces(Interfaces), .Features(Features),
    .Counters(nic_rtl_pkg::NumCounters)
  ) u_registers (
    .clk_i, .rst_ni,
    .window_lines_i(strap_window_lines_i), .span_lines_i(strap_span_lines_i), .pool_lines_i(strap_pool_lines_i),
    .contexts_i(strap_contexts_i), .max_frame_bytes_i(strap_max_frame_bytes_i), .aperture_i(aperture),
    .stride_log2_i(stride_log2), .mac_i(strap_mac_i),
    .wr_valid_i(register_valid && settled), .wr_ready_o(registers_ready), .wr_address_i(register_address),
    .wr_value_i(register_value),
    .rd_valid_i(rd_valid_i && read_is_free && read_known && !read_of_window), .rd_ready_o(read_ready[Registers]),
    .rd_address_i, .rd_tag_i, .rc_valid_o(answer_valid[Registers]), .rc_ready_i(answer_ready[Registers]),
    .rc_tag_o(answer_tag[Registers]), .rc_value_o(answer_value[Registers]),
    .settled_i(settled), .pending_i(pending), .hold_o(registers_hold), .busy_o(registers_busy),
    .is_idle_o(registers_idle),
    .route_we_o(route_we), .route_queue_o(route_queue), .route_o(route),
    .start_valid_o(start_valid), .stop_valid_o(stop_valid), .setup_queue_o(setup_queue),
    .setup_settings_o(settings), .engines_busy_i(engines_busy), .engines_reset_no(engines_reset_n),
    .failed_valid_i(failed_valid), .failed_ready_o(failed_ready), .failed_queue_i(failed_queue),
    .failed_cause_i(failed_cause),
    .tx_tail_valid_o(tx_tail_valid), .rx_freed_valid_o(rx_freed_valid),
    .entries_freed_valid_o(entries_freed_valid), .doorbell_queue_o(doorbell_queue),
    .doorbell_value_o(doorbell_value),
    .next_start_queue_o(next_start_queue), .next_start_i(next_start), .counter_o(counter), .count_i(count),
    .counters_busy_i(counters_busy), .reorder_depth_max_i(depth_max),
    .mux_o(mux), .mux_ports_o(mux_ports),
    .cause_tx_completion_i(cause_tx_completion), .cause_rx_frame_i(cause_rx_frame), .irq_mask_o(irq_mask),
    .irq_failed_valid_o(irq_failed_valid), .irq_failed_queue_o(irq_failed_queue),
    .count_bad_accesses_o(bad_access_registers), .count_doorbells_o(doorbell_counted)
  );

  // ------------------------------------------------------------------------------ reads
  // A read of a window waits until every write before it has had its effect: then the registers are idle.
  read_route #(.NumQueues(NumQueues), .LineW(LineW), .AddressW(AddressW)) u_read_route (
    .clk_i, .rst_ni, .aperture_i(aperture), .stride_log2_i(stride_log2), .window_mask_i(window_mask),
    .rd_valid_i, .rd_ready_i(rd_ready_o), .rd_address_i,
    .is_known_o(read_known), .is_window_o(read_in_window), .queue_o(read_queue), .word_o(read_word)
  );
  assign read_of_window = read_in_window && HasReceive;
  assign read_is_free   = ingress_idle && (!read_of_window || registers_idle);
  assign window_read    = rd_valid_i && read_known && read_of_window && read_is_free;
  assign rd_ready_o     = read_of_window ? window_read && read_ready[Windows] : read_ready[Registers];

  // Writes that come without a gap would keep a read out for ever. After so many cycles they wait until those in front of
  // it are gone; if it is not taken then, it waits for something else, and they go on.
  always_ff @(posedge clk_i) begin
    if (!rst_ni || !rd_valid_i || read_is_free) read_waits_q <= '0;
    else if (!read_waits_q[ReadWaitW-1])        read_waits_q <= read_waits_q + 1'b1;
  end

  answer_port u_answers (
    .clk_i, .rst_ni, .in_valid_i(answer_valid), .in_ready_o(answer_ready), .in_tag_i(answer_tag),
    .in_value_i(answer_value), .dmawr_valid_i(dmawr_valid_o), .dmawr_ready_i,
    .rc_valid_o, .rc_ready_i, .rc_tag_o, .rc_value_o
  );

  // ------------------------------------------------------------------------------ the engines
  localparam int unsigned TxTagW = 8;
  localparam int unsigned RxTagW = 4;
  localparam int unsigned Senders = 6;
  localparam int unsigned Readers = 4;

  logic                   rst_engines_n, transmit_busy, receive_busy, reads_busy, unused_writes_busy;
  // Failures and DMA writes (credits, completions, received frames) of the transmit engines, and of receive.
  logic [Senders:0]             fail_valid, fail_ready;
  logic [Senders:0][QueueW-1:0] fail_queue;
  logic [Senders:0][3:0]        fail_cause;
  logic [Senders:0]             wr_valid, wr_ready;
  logic [Senders:0][63:0]       wr_address;
  logic [Senders:0][511:0]      wr_data;
  logic [Senders:0][6:0]        wr_bytes;
  // DMA reads: of those transmit engines that read host memory, and of receive.
  logic [Readers:0]             req_valid, req_ready, cpl_valid;
  logic [Readers:0][63:0]       req_address;
  logic [Readers:0][12:0]       req_bytes;
  logic [Readers:0][TxTagW-1:0] req_tag;
  logic [TxTagW-1:0]      cpl_tag;
  logic [511:0]           cpl_data;
  logic                   cpl_last, cpl_error;
  logic                   tx_irq_valid, tx_irq_ready, rx_irq_valid, rx_irq_ready;
  logic [QueueW-1:0]      tx_irq_queue, rx_irq_queue;
  logic [Lanes-1:0]             egress_valid, egress_ready, egress_last, egress_early, egress_abort;
  logic [Lanes-1:0]             shown_valid, shown_bad, shown_broken, underruns;
  logic [Lanes-1:0][511:0]      egress_data;
  logic [Lanes-1:0][6:0]        egress_bytes;
  logic [Lanes-1:0][QueueW-1:0] egress_queue;
  logic [RxTagW-1:0]      rx_tag;
  nic_rtl_pkg::increments_t [Senders+Lanes-1:0] tx_increments;
  nic_rtl_pkg::increments_t       rx_increments;

  assign rst_engines_n = rst_ni && engines_reset_n;
  assign engines_busy  = transmit_busy || receive_busy || reads_busy;
  assign req_tag[Readers] = TxTagW'(rx_tag);

  transmit #(
    .NumQueues(NumQueues), .WindowLines(WindowLines), .SpanLines(SpanLines), .NumContexts(NumContexts),
    .PoolLines(PoolLines), .NumClasses(NumClasses), .HasKpio(HasKpio), .HasDescriptor(HasDescriptor),
    .HasInline(HasInline), .HasEnso(HasEnso), .HasNiq(HasNiq), .HasChecksums(HasChecksums), .Lanes(Lanes)
  ) u_transmit (
    .clk_i, .rst_ni(rst_engines_n), .now_ns_i,
    .window_mask_i(window_mask), .span_lines_i(span_lines), .ring_mask_i(ring_mask),
    .pool_lines_i(strap_pool_lines_i[15:0]), .contexts_i(strap_contexts_i[15:0]),
    .max_frame_bytes_i(strap_max_frame_bytes_i[13:0]),
    .mux_i(nic_pkg::control_mux_e'(mux)), .mux_ports_i(mux_ports),
    .busy_o(transmit_busy), .start_valid_i(start_valid), .start_queue_i(setup_queue), .start_settings_i(settings),
    .stop_valid_i(stop_valid), .stop_queue_i(setup_queue),
    .failed_valid_o(fail_valid[Senders-1:0]), .failed_ready_i(fail_ready[Senders-1:0]),
    .failed_queue_o(fail_queue[Senders-1:0]), .failed_cause_o(fail_cause[Senders-1:0]),
    .doorbell_valid_i(tx_tail_valid), .doorbell_queue_i(doorbell_queue), .doorbell_tail_i(doorbell_value),
    .mmio_valid_i(mmio_valid), .mmio_ready_o(mmio_ready), .mmio_queue_i(mmio_queue), .mmio_line_i(mmio_line),
    .mmio_data_i(mmio_data), .mmio_be_i(mmio_be), .mmio_whole_i(mmio_whole), .mmio_first_i(mmio_first),
    .mmio_last_i(mmio_last),
    .piece_valid_i(piece_valid), .piece_ready_o(piece_ready), .piece_route_i(piece_route),
    .piece_queue_i(piece_queue), .piece_line_i(piece_line), .piece_data_i(piece_data), .piece_be_i(piece_be),
    .piece_whole_i(piece_whole), .piece_first_i(piece_first), .piece_last_i(piece_last),
    .pause_i(frame_pause_i), .frame_valid_o(egress_valid), .frame_ready_i(egress_ready),
    .frame_data_o(egress_data), .frame_bytes_o(egress_bytes), .frame_last_o(egress_last), .frame_queue_o(egress_queue),
    .frame_early_o(egress_early), .frame_abort_o(egress_abort), .shown_valid_i(shown_valid), .shown_bad_i(shown_bad),
    .shown_broken_i(shown_broken),
    .rdreq_valid_o(req_valid[Readers-1:0]), .rdreq_ready_i(req_ready[Readers-1:0]),
    .rdreq_address_o(req_address[Readers-1:0]), .rdreq_bytes_o(req_bytes[Readers-1:0]),
    .rdreq_tag_o(req_tag[Readers-1:0]), .rdcpl_valid_i(cpl_valid[Readers-1:0]), .rdcpl_tag_i(cpl_tag),
    .rdcpl_data_i(cpl_data), .rdcpl_last_i(cpl_last), .rdcpl_error_i(cpl_error),
    .dmawr_valid_o(wr_valid[Senders-1:0]), .dmawr_ready_i(wr_ready[Senders-1:0]),
    .dmawr_address_o(wr_address[Senders-1:0]), .dmawr_data_o(wr_data[Senders-1:0]),
    .dmawr_bytes_o(wr_bytes[Senders-1:0]),
    .irq_valid_o(tx_irq_valid), .irq_ready_i(tx_irq_ready), .irq_queue_o(tx_irq_queue),
    .look_queue_i(next_start_queue), .look_next_start_o(next_start), .reorder_depth_max_o(depth_max),
    .is_idle_o(transmit_idle), .is_settled_o(settled), .is_pending_o(pending), .is_full_o(is_full),
    .increments_o(tx_increments)
  );

  receive #(.NumQueues(NumQueues), .LineW(LineW), .HasReceive(HasReceive)) u_receive (
    .clk_i, .rst_ni(rst_engines_n), .link_rst_ni(rst_ni), .clear_i(!engines_reset_n), .now_ns_i,
    .window_mask_i(window_mask), .lossless_i(rx_lossless_i),
    .entries_freed_valid_i(entries_freed_valid), .read_valid_i(window_read), .read_ready_o(read_ready[Windows]),
    .read_queue_i(read_queue), .read_word_i(read_word), .read_tag_i(rd_tag_i),
    .answer_valid_o(answer_valid[Windows]), .answer_ready_i(answer_ready[Windows]),
    .answer_tag_o(answer_tag[Windows]), .answer_value_o(answer_value[Windows]),
    .busy_o(receive_busy), .start_valid_i(start_valid), .start_queue_i(setup_queue), .start_settings_i(settings),
    .stop_valid_i(stop_valid), .stop_queue_i(setup_queue),
    .failed_valid_o(fail_valid[Senders]), .failed_ready_i(fail_ready[Senders]),
    .failed_queue_o(fail_queue[Senders]), .failed_cause_o(fail_cause[Senders]),
    .doorbell_valid_i(rx_freed_valid), .doorbell_queue_i(doorbell_queue), .doorbell_freed_i(doorbell_value),
    .frame_valid_i(rx_valid_i), .frame_ready_o(rx_ready_o), .frame_data_i(rx_data_i), .frame_bytes_i(rx_bytes_i),
    .frame_last_i(rx_last_i),
    .rdreq_valid_o(req_valid[Readers]), .rdreq_ready_i(req_ready[Readers]),
    .rdreq_address_o(req_address[Readers]), .rdreq_bytes_o(req_bytes[Readers]), .rdreq_tag_o(rx_tag),
    .rdcpl_valid_i(cpl_valid[Readers]), .rdcpl_tag_i(cpl_tag[RxTagW-1:0]), .rdcpl_data_i(cpl_data),
    .rdcpl_last_i(cpl_last), .rdcpl_error_i(cpl_error),
    .dmawr_valid_o(wr_valid[Senders]), .dmawr_ready_i(wr_ready[Senders]), .dmawr_address_o(wr_address[Senders]),
    .dmawr_data_o(wr_data[Senders]), .dmawr_bytes_o(wr_bytes[Senders]),
    .irq_valid_o(rx_irq_valid), .irq_ready_i(rx_irq_ready), .irq_queue_o(rx_irq_queue),
    .increments_o(rx_increments)
  );

  failures #(.NumQueues(NumQueues), .Engines(Senders + 1)) u_failures (
    .clk_i, .rst_ni(rst_engines_n),
    .in_valid_i(fail_valid), .in_ready_o(fail_ready), .in_queue_i(fail_queue), .in_cause_i(fail_cause),
    .out_valid_o(failed_valid), .out_ready_i(failed_ready), .out_queue_o(failed_queue), .out_cause_o(failed_cause)
  );

  // ------------------------------------------------------------------------------ host memory and interrupts
  read_port #(.Engines(Readers + 1), .EngineTagW(TxTagW), .Tags(256)) u_reads (
    .clk_i, .rst_ni, .clear_i(!engines_reset_n), .busy_o(reads_busy),
    .req_valid_i(req_valid), .req_ready_o(req_ready), .req_address_i(req_address), .req_bytes_i(req_bytes),
    .req_tag_i(req_tag),
    .cpl_valid_o(cpl_valid), .cpl_tag_o(cpl_tag), .cpl_data_o(cpl_data), .cpl_last_o(cpl_last),
    .cpl_error_o(cpl_error),
    .rdreq_valid_o, .rdreq_ready_i, .rdreq_address_o, .rdreq_bytes_o, .rdreq_tag_o,
    .rdcpl_valid_i, .rdcpl_tag_i, .rdcpl_data_i, .rdcpl_last_i, .rdcpl_error_i
  );

  write_port #(.Engines(Senders + 1)) u_writes (
    .clk_i, .rst_ni, .busy_o(unused_writes_busy),
    .wr_valid_i(wr_valid), .wr_ready_o(wr_ready), .wr_address_i(wr_address), .wr_data_i(wr_data),
    .wr_bytes_i(wr_bytes),
    .dmawr_valid_o, .dmawr_ready_i, .dmawr_address_o, .dmawr_data_o, .dmawr_bytes_o
  );

  interrupts #(.NumQueues(NumQueues)) u_interrupts (
    .clk_i, .rst_ni(rst_engines_n), .mask_i(irq_mask),
    .failed_valid_i(irq_failed_valid), .failed_queue_i(irq_failed_queue),
    .tx_valid_i(tx_irq_valid), .tx_ready_o(tx_irq_ready), .tx_queue_i(tx_irq_queue),
    .rx_valid_i(rx_irq_valid), .rx_ready_o(rx_irq_ready), .rx_queue_i(rx_irq_queue),
    .cause_tx_completion_o(cause_tx_completion), .cause_rx_frame_o(cause_rx_frame),
    .dmawr_valid_i(dmawr_valid_o), .dmawr_ready_i,
    .irq_valid_o, .irq_ready_i, .irq_vector_o
  );

  // ------------------------------------------------------------------------------ the wire
  for (genvar i = 0; i < int'(Lanes); i++) begin : g_wire
    frame_guard #(.QueueW(QueueW)) u_guard (
      .clk_i, .rst_ni, .cut_i(!engines_reset_n),
      .in_valid_i(egress_valid[i]), .in_ready_o(egress_ready[i]), .in_data_i(egress_data[i]),
      .in_bytes_i(egress_bytes[i]), .in_last_i(egress_last[i]), .in_queue_i(egress_queue[i]),
      .out_valid_o(frame_valid_o[i]), .out_ready_i(frame_ready_i[i]), .out_data_o(frame_data_o[i]),
      .out_bytes_o(frame_bytes_o[i]), .out_last_o(frame_last_o[i]), .out_abort_o(frame_abort_o[i]),
      .out_queue_o(frame_queue_o[i]), .in_early_i(egress_early[i]), .in_abort_i(egress_abort[i]),
      .shown_valid_o(shown_valid[i]), .shown_bad_o(shown_bad[i]), .shown_broken_o(shown_broken[i]),
      .count_underruns_o(underruns[i])
    );
  end

  // ------------------------------------------------------------------------------ counters
  // Engines with windows may each count a line's bytes in one cycle; two lanes bring twice as much.
  localparam int unsigned IncrementW = 8 + Lanes;
  logic [nic_rtl_pkg::NumCounters-1:0][IncrementW-1:0] increments;

  // A write that waits for the pool is one refusal, however long it waits.
  always_ff @(posedge clk_i) begin
    is_full_q    <= is_full && wr_valid_i != '0;
    is_refused_q <= rst_engines_n && is_full && !is_full_q && wr_valid_i != '0;
  end

  // No counter grows by more than a line's bytes by any one engine (and two lines' more by frames that began early), so
  // that the sums fit; those of the interfaces that are left out are constants.
  always_comb begin
    for (int i = 0; i < int'(nic_rtl_pkg::NumCounters); i++) begin
      increments[i] = IncrementW'(rx_increments[i]);
      for (int sender = 0; sender < int'(Senders + Lanes); sender++) begin
        increments[i] += IncrementW'(tx_increments[sender][i]);
      end
    end
    increments[nic_pkg::CounterBadAccessesOffset >> 3]   += IncrementW'(bad_access_ingress)
                                                            + IncrementW'(bad_access_registers);
    increments[nic_pkg::CounterRefusedWritesOffset >> 3] += IncrementW'(is_refused_q);
    increments[nic_pkg::CounterDoorbellsOffset >> 3]     += IncrementW'(doorbell_counted);
    increments[nic_pkg::CounterInterruptsOffset >> 3]    += IncrementW'(irq_valid_o && irq_ready_i);
    for (int i = 0; i < int'(Lanes); i++) begin
      increments[nic_pkg::CounterCutThroughUnderrunsOffset >> 3] += IncrementW'(underruns[i]);
    end
  end

  counters #(.Counters(nic_rtl_pkg::NumCounters), .IncrementW(IncrementW)) u_counters (
    .clk_i, .rst_ni(rst_engines_n), .increments_i(increments), .look_i(counter), .count_o(count),
    .busy_o(counters_busy)
  );

  assign is_idle_o = ingress_idle && registers_idle && !engines_busy && transmit_idle && !dmawr_valid_o
      && !irq_valid_o && !rc_valid_o && !rdreq_valid_o;

  logic unused;
  assign unused = &{1'b0, unused_writes_busy, window_mask_wide[31:LineW]};

endmodule

`default_nettype wire

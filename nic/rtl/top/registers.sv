// The registers of the port: device, capability list, counters, queues, doorbells, and what writing them sets off.
//
// Every offset and field is nic_pkg's, which is generated from spec/nic.rdl. Registers of queues lie in one RAM, so
// that a thousand queues cost no more logic than one; what a queue is set up with is read out of it when the queue
// starts.
//
// Guarantees
//   - Accesses take effect in the order in which they come; a read is answered when every write before it has had its
//     effect, on windows too (PCIe: a read pushes posted writes), or waits in its engine until the wire makes room, which
//     `pending` in STATUS and in each queue's status tells (docs/decisions/0016).
//   - A queue starts when device and queue are enabled and it is not quarantined; a failed one only with another epoch.
//   - What is not there reads as all ones; such reads and writes are counted.
// Limits: class and weight of a queue take effect when it starts. Clearing takes 32 x NumQueues cycles after reset.
// Cost: NumQueues x (2048 + 19) bits of RAM. Twin: nic/model/src/{registers,lifecycle}.rs.

`default_nettype none

module registers #(
  parameter int unsigned NumQueues = 64,
  parameter int unsigned AddressW = 22,
  // Interfaces that are there: bit i for interface i.
  parameter logic [15:0] Interfaces = 16'h0002,
  // Features that are there: bit i for feature i.
  parameter logic [15:0] Features = '0,
  // Counters behind `counter_o`, 2 to 128. A read of a counter waits for a sweep over all of them (counters.sv).
  parameter int unsigned Counters = nic_rtl_pkg::NumCounters,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // Straps, told in the capability list.
  input  logic [31:0]         window_lines_i,
  input  logic [31:0]         span_lines_i,
  input  logic [31:0]         pool_lines_i,
  input  logic [31:0]         contexts_i,
  input  logic [31:0]         max_frame_bytes_i,
  input  logic [AddressW-1:0] aperture_i,
  input  logic [4:0]          stride_log2_i,
  input  logic [47:0]         mac_i,

  // Accesses.
  input  logic                wr_valid_i,
  output logic                wr_ready_o,
  input  logic [AddressW-1:0] wr_address_i,
  input  logic [63:0]         wr_value_i,
  input  logic                rd_valid_i,
  output logic                rd_ready_o,
  input  logic [AddressW-1:0] rd_address_i,
  input  logic [15:0]         rd_tag_i,
  output logic                rc_valid_o,
  input  logic                rc_ready_i,
  output logic [15:0]         rc_tag_o,
  output logic [63:0]         rc_value_o,

  // Nothing that was written before is still on its way to its effect, but for what waits for room, which `pending`
  // tells; `hold`: nothing may be written now; `busy`: a write is having its effect.
  input  logic                settled_i,
  input  logic                pending_i,
  output logic                hold_o,
  output logic                busy_o,
  output logic                is_idle_o,

  // Where writes to a queue's window go from now on.
  output logic                route_we_o,
  output logic [QueueW-1:0]   route_queue_o,
  output logic [3:0]          route_o,

  // Queues start and stop; the engines answer together. `reset`: the engines too return to their reset state.
  output logic                start_valid_o,
  output logic                stop_valid_o,
  output logic [QueueW-1:0]   setup_queue_o,
  output nic_rtl_pkg::queue_settings_t setup_settings_o,
  input  logic                engines_busy_i,
  output logic                engines_reset_no,
  input  logic                failed_valid_i,
  output logic                failed_ready_o,
  input  logic [QueueW-1:0]   failed_queue_i,
  input  logic [3:0]          failed_cause_i,

  // Doorbells of queues that run.
  output logic                tx_tail_valid_o,
  output logic                rx_freed_valid_o,
  output logic                entries_freed_valid_o,
  output logic [QueueW-1:0]   doorbell_queue_o,
  output logic [63:0]         doorbell_value_o,

  // Values that others keep.
  output logic [QueueW-1:0]   next_start_queue_o,
  input  logic [47:0]         next_start_i,
  output logic [6:0]          counter_o,
  input  logic [63:0]         count_i,
  input  logic                counters_busy_i,
  input  logic [15:0]         reorder_depth_max_i,

  // The multiplexer of kPIO+WC.
  output logic [1:0]          mux_o,
  output logic [31:0]         mux_ports_o,

  // Interrupts: causes of the engines, and what of them is let through.
  input  logic                cause_tx_completion_i,
  input  logic                cause_rx_frame_i,
  output logic [2:0]          irq_mask_o,
  output logic                irq_failed_valid_o,
  output logic [QueueW-1:0]   irq_failed_queue_o,

  output logic                count_bad_accesses_o,
  output logic                count_doorbells_o
);

  localparam int unsigned WordW = QueueW + 5;
  localparam int unsigned Entries = 1 << QueueW, Words = Entries * 32;
  if (Counters < 2 || Counters > 1 << $bits(counter_o)) begin : g_bad_counters
    $fatal(1, "registers: Counters must be 2 to 128");
  end

  // A word of a queue's registers: its offset in the block / 8. Doorbells have the last places.
  localparam logic [4:0] WordControl = nic_pkg::QueueControlOffset[7:3];
  localparam logic [4:0] WordLast    = nic_pkg::QueueCutThroughOffset[7:3];
  localparam logic [2:0] PlaceDoorbells = 3'd7;
  // What software may write: up to the last register but status, window_lines, next_start; and rx_notify_share.
  localparam logic [31:0] Writable = (((32'h2 << WordLast) - 1'b1) & ~(32'h1 << nic_pkg::QueueStatusOffset[7:3])
      & ~(32'h1 << nic_pkg::QueueWindowLinesOffset[7:3]) & ~(32'h1 << nic_pkg::QueueNextStartOffset[7:3]))
      | (32'h1 << nic_pkg::QueueRxNotifyShareOffset[7:3]);

  // Interfaces whose queues are written to in their window.
  localparam logic [15:0] HasWindow =
      16'(1) << nic_pkg::QueueControlIfaceMmio | 16'(1) << nic_pkg::QueueControlIfaceKpio
      | 16'(1) << nic_pkg::QueueControlIfaceInline | 16'(1) << nic_pkg::QueueControlIfaceNiq;

  typedef enum logic [3:0] {
    Clear, Idle, Write, Control, Check, Load, Go, Stop, Wait, Loop, LoopLook, Read, ReadLook, Answer, ResetDevice
  } state_e;

  typedef struct packed {
    logic       active, started;
    logic       failed;
    logic [3:0] cause;
    logic [7:0] epoch;
    logic [3:0] route;
  } queue_state_t;

  state_e              state_q, state_d;
  logic [WordW:0]      clear_q, clear_d;
  logic [AddressW-1:0] address_q, address_d;
  logic [63:0]         value_q, value_d;
  logic [15:0]         tag_q, tag_d;
  logic [QueueW-1:0]   queue_q, queue_d;
  logic [4:0]          index_q, index_d;
  // A read waits until the writes before it have changed their tables; a read of a counter also for a whole sweep, which
  // takes Counters + 2 cycles (counters.sv).
  localparam int unsigned EffectCycles = 24, CountCycles = EffectCycles + Counters;
  logic [$clog2(CountCycles + 1)-1:0] elapsed_q, elapsed_d;
  logic                looping_q, looping_d, pending_q;

  // ------------------------------------------------------------------------------ tables
  logic              word_we;
  logic [WordW-1:0]  word_waddr, word_raddr;
  logic [63:0]       word_wdata, word;
  logic              state_we;
  queue_state_t      state_wr, queue_state;
  logic [QueueW-1:0] state_waddr;

  table_ram #(.Width(64), .Depth(Words)) u_words (
    .clk_i, .we_i(word_we), .waddr_i(word_waddr), .wdata_i(word_wdata), .raddr_i(word_raddr), .rdata_o(word)
  );
  table_ram #(.Width($bits(queue_state_t)), .Depth(Entries)) u_states (
    .clk_i, .we_i(state_we), .waddr_i(state_waddr), .wdata_i(state_wr), .raddr_i(queue_d), .rdata_o(queue_state)
  );
  assign {route_we_o, route_queue_o, route_o} = {state_we, state_waddr, state_wr.route};

  // ------------------------------------------------------------------------------ the device's own
  logic        enable_q, enable_d;
  logic [1:0]  mux_q, mux_d;
  logic [31:0] mux_ports_q, mux_ports_d;
  logic [2:0]  irq_mask_q, irq_mask_d, irq_cause_q, irq_cause_d;
  logic [47:0] mac_q, mac_d;
  // Failed queues, for STATUS.attention.
  logic [QueueW:0] failed_count_q, failed_count_d;

  assign {mux_o, mux_ports_o, irq_mask_o} = {mux_q, mux_ports_q, irq_mask_q};

  // ------------------------------------------------------------------------------ what an address names
  logic [31:0] offset, queue_distance, bell_distance, counter_distance;
  logic        is_device, is_list, is_counter, is_queue, is_doorbell;
  localparam logic [31:0] TlpBytesEnd = nic_pkg::CounterTlpBytesHistogramOffset
      + 32'(nic_pkg::CounterTlpBytesHistogramCount) * nic_pkg::CounterTlpBytesHistogramStride;
  localparam logic [31:0] DisplacementEnd = nic_pkg::CounterDisplacementHistogramOffset
      + 32'(nic_pkg::CounterDisplacementHistogramCount) * nic_pkg::CounterDisplacementHistogramStride;

  assign offset         = 32'(address_q);
  assign queue_distance = offset - nic_pkg::QueueOffset;
  assign counter_distance = offset - nic_pkg::CountersOffset;
  assign bell_distance  = offset - nic_pkg::DoorbellOffset;
  assign is_device      = offset < nic_pkg::CapabilitiesOffset;
  assign is_list        = !is_device && offset < nic_pkg::CountersOffset;
  assign is_counter     = offset >= nic_pkg::CountersOffset && offset < nic_pkg::QueueOffset;
  assign is_queue       = offset >= nic_pkg::QueueOffset && queue_distance < 32'(NumQueues) * nic_pkg::QueueStride;
  assign is_doorbell    = offset >= nic_pkg::DoorbellOffset && bell_distance[31:6] < 26'(NumQueues)
                          && bell_distance[5:0] < 6'h18;

  // ------------------------------------------------------------------------------ the capability list
  localparam int unsigned ListWords = 20;
  logic [63:0] list_word;
  capability_list #(.NumQueues(NumQueues), .AddressW(AddressW), .Interfaces(Interfaces), .Features(Features)) u_list (
    .span_lines_i, .pool_lines_i, .contexts_i, .max_frame_bytes_i, .aperture_i, .stride_log2_i,
    .index_i(offset[7:3]), .word_o(list_word)
  );

  // ------------------------------------------------------------------------------ what a read gives
  nic_pkg::reg_queue_status_t status;
  logic [63:0] read_value;
  logic        read_hits;
  assign status = '{
    unused_16: '0, epoch: queue_state.epoch, cause: queue_state.cause, unused_3: '0, pending: pending_q,
    quarantined: queue_state.failed, active: queue_state.active
  };

  always_comb begin
    read_value = '1;
    read_hits  = 1'b1;
    if (is_device) begin
      unique case (offset)
        nic_pkg::MagicOffset:    read_value = nic_pkg::MagicReset;
        nic_pkg::VersionOffset:  read_value = nic_pkg::VersionReset;
        nic_pkg::CapsOffset:     read_value = {32'(ListWords * 8), nic_pkg::CapabilitiesOffset};
        nic_pkg::ControlOffset:  read_value = {58'd0, mux_q, 3'd0, enable_q};
        nic_pkg::StatusOffset:   read_value = {61'd0, pending_q, failed_count_q != '0, enable_q};
        nic_pkg::MuxPortsOffset: read_value = {32'd0, mux_ports_q};
        nic_pkg::IrqMaskOffset:  read_value = {61'd0, irq_mask_q};
        nic_pkg::IrqCauseOffset: read_value = {61'd0, irq_cause_q};
        nic_pkg::MacOffset:      read_value = {16'd0, mac_q};
        default:                 read_hits = 1'b0;
      endcase
    end else if (is_list) begin
      read_hits  = offset[11:3] < 9'(ListWords);
      read_value = read_hits ? list_word : '1;
    end else if (is_counter) begin
      read_hits  = counter_distance <= nic_pkg::CounterCutThroughUnderrunsOffset
                   || (counter_distance >= nic_pkg::CounterTlpBytesHistogramOffset
                       && counter_distance < TlpBytesEnd)
                   || (counter_distance >= nic_pkg::CounterDisplacementHistogramOffset
                       && counter_distance < DisplacementEnd);
      read_value = !read_hits ? '1 : (counter_distance == nic_pkg::CounterReorderDepthMaxOffset)
                   ? 64'(reorder_depth_max_i) : count_i;
    end else if (is_queue) begin
      unique case (offset[7:3])
        nic_pkg::QueueStatusOffset[7:3]:      read_value = status;
        nic_pkg::QueueWindowLinesOffset[7:3]: read_value = {32'd0, window_lines_i};
        nic_pkg::QueueNextStartOffset[7:3]:   read_value = queue_state.started ? {16'd0, next_start_i} : '0;
        default: begin
          read_hits  = Writable[offset[7:3]];
          read_value = read_hits ? word : '1;
        end
      endcase
    end else if (is_doorbell) begin
      read_value = word;
    end else begin
      read_hits = 1'b0;
    end
  end

  // The counters' block begins at a multiple of its own size, so that the low bits are the counter's index.
  assign counter_o          = offset[9:3];
  assign next_start_queue_o = queue_q;

  // ------------------------------------------------------------------------------ one access after the other
  nic_pkg::reg_queue_control_t control;
  logic                        knows_interface, is_stale;
  nic_rtl_pkg::queue_settings_t settings_q;

  assign control         = word;
  logic unused_control;
  assign unused_control  = ^{control.unused_34, control.unused_20, control.unused_1};
  assign knows_interface = control.iface == nic_pkg::QueueControlIfaceNone
                           || (Interfaces[control.iface]);
  assign is_stale        = queue_state.failed && control.epoch == queue_state.epoch;

  queue_settings u_settings (
    .clk_i, .check_i(state_q == Check), .iface_i(control.iface), .epoch_i(control.epoch), .class_i(control.class_),
    .weight_i(control.weight), .backpressure_i(control.backpressure), .checksums_i(control.checksums),
    .load_i(state_q == Load), .index_i(index_q), .word_i(word), .settings_o(settings_q)
  );
  assign setup_queue_o     = queue_q;
  assign setup_settings_o  = settings_q;
  assign doorbell_queue_o  = queue_q;
  assign doorbell_value_o  = value_q;
  assign irq_failed_queue_o = failed_queue_i;

  always_comb begin
    state_d     = state_q;
    clear_d     = clear_q;
    address_d   = address_q;
    value_d     = value_q;
    tag_d       = tag_q;
    queue_d     = queue_q;
    index_d     = index_q;
    elapsed_d   = elapsed_q;
    looping_d   = looping_q;
    enable_d    = enable_q;
    mux_d       = mux_q;
    mux_ports_d = mux_ports_q;
    irq_mask_d  = irq_mask_q;
    irq_cause_d = irq_cause_q | {1'b0, cause_rx_frame_i, cause_tx_completion_i};
    mac_d       = mac_q;
    failed_count_d = failed_count_q;
    wr_ready_o  = 1'b0;
    rd_ready_o  = 1'b0;
    rc_valid_o  = 1'b0;
    word_we     = 1'b0;
    word_waddr  = {queue_q, offset[7:3]};
    word_wdata  = value_q;
    word_raddr  = {queue_q, index_q};
    state_we    = 1'b0;
    state_waddr = queue_q;
    state_wr    = queue_state;
    start_valid_o    = 1'b0;
    stop_valid_o     = 1'b0;
    engines_reset_no = 1'b1;
    failed_ready_o   = 1'b0;
    tx_tail_valid_o  = 1'b0;
    rx_freed_valid_o = 1'b0;
    entries_freed_valid_o = 1'b0;
    irq_failed_valid_o   = 1'b0;
    count_bad_accesses_o = 1'b0;
    count_doorbells_o    = 1'b0;

    unique case (state_q)
      Clear: begin
        word_we     = 1'b1;
        word_waddr  = clear_q[WordW-1:0];
        word_wdata  = (clear_q[4:0] == WordControl) ? nic_pkg::QueueControlReset : '0;
        state_we    = clear_q[4:0] == '0;
        state_waddr = clear_q[WordW-1:5];
        state_wr    = '0;
        clear_d     = clear_q + 1'b1;
        queue_d     = '0;
        if (clear_q == (WordW + 1)'(Words - 1)) state_d = Wait;
      end

      Idle: begin
        index_d    = WordControl;
        elapsed_d = '0;
        looping_d  = 1'b0;
        // What failed is told before anything is answered.
        queue_d    = failed_valid_i ? failed_queue_i : queue_q;
        if (failed_valid_i) begin
          // The state of the queue is there in the second cycle.
          if (queue_q == failed_queue_i) begin
            failed_ready_o = 1'b1;
            if (queue_state.active) begin
              state_we        = 1'b1;
              state_wr.active = 1'b0;
              state_wr.failed = 1'b1;
              state_wr.cause  = failed_cause_i;
              irq_cause_d[2]  = 1'b1;
              failed_count_d  = failed_count_q + 1'b1;
              irq_failed_valid_o = irq_mask_q[2];
            end
          end
        end else if (wr_valid_i) begin
          wr_ready_o = 1'b1;
          address_d  = wr_address_i;
          value_d    = wr_value_i;
          state_d    = Write;
        end else if (rd_valid_i && settled_i) begin
          rd_ready_o = 1'b1;
          address_d  = rd_address_i;
          tag_d      = rd_tag_i;
          state_d    = Read;
        end
      end

      Write: begin
        queue_d = is_doorbell ? bell_distance[6 +: QueueW] : queue_distance[8 +: QueueW];
        state_d = Control;
        if (is_device) begin
          state_d = Idle;
          unique case (offset)
            nic_pkg::ControlOffset: begin
              mux_d    = value_q[5:4];
              enable_d = value_q[0];
              if (value_q[1]) begin
                state_d = ResetDevice;
              end else if (value_q[0] != enable_q) begin
                queue_d   = '0;
                looping_d = 1'b1;
                state_d   = Loop;
              end
            end
            nic_pkg::MuxPortsOffset: mux_ports_d = value_q[31:0];
            nic_pkg::IrqMaskOffset:  irq_mask_d  = value_q[2:0];
            nic_pkg::IrqCauseOffset: irq_cause_d = irq_cause_d & ~value_q[2:0];
            nic_pkg::MacOffset:      mac_d       = value_q[47:0];
            default:                 count_bad_accesses_o = 1'b1;
          endcase
        end else if (!is_queue && !is_doorbell) begin
          count_bad_accesses_o = 1'b1;
          queue_d              = queue_q;
          state_d              = Idle;
        end
        word_raddr = {queue_d, WordControl};
      end

      Control: begin
        // The queue's control register and state are there.
        state_d = Idle;
        if (is_doorbell) begin
          word_we           = 1'b1;
          word_waddr        = {queue_q, PlaceDoorbells, offset[4:3]};
          count_doorbells_o = 1'b1;
          tx_tail_valid_o       = queue_state.active && offset[4:3] == nic_pkg::DoorbellTxTailOffset[4:3];
          rx_freed_valid_o      = queue_state.active && offset[4:3] == nic_pkg::DoorbellRxFreedOffset[4:3];
          entries_freed_valid_o = queue_state.active && offset[4:3] == nic_pkg::DoorbellEntriesFreedOffset[4:3];
        end else if (!Writable[offset[7:3]]) begin
          count_bad_accesses_o = 1'b1;
        end else begin
          word_we = 1'b1;
          if (offset[7:3] == WordControl) begin
            if (!control.enable && value_q[0]) state_d = Check;
            if (control.enable && !value_q[0]) state_d = Stop;
            word_raddr = {queue_q, WordControl};
          end
        end
      end

      Check: begin
        // `word` is the new control register.
        index_d = nic_pkg::QueueCreditAddressOffset[7:3];
        if (!enable_q || !control.enable || queue_state.active) begin
          state_d = looping_q ? LoopLook : Idle;
        end else if (is_stale || !knows_interface) begin
          count_bad_accesses_o = 1'b1;
          state_d              = looping_q ? LoopLook : Idle;
        end else begin
          state_d    = Load;
          word_raddr = {queue_q, nic_pkg::QueueCreditAddressOffset[7:3]};
        end
      end

      Load: begin
        // One word a cycle: the one that was asked for in the cycle before.
        index_d    = index_q + 1'b1;
        word_raddr = {queue_q, index_d};
        if (index_q == WordLast) state_d = Go;
      end

      Go: begin
        start_valid_o   = 1'b1;
        state_we        = 1'b1;
        if (queue_state.failed) failed_count_d = failed_count_q - 1'b1;
        {state_wr.active, state_wr.started} = 2'b11;
        state_wr.failed = 1'b0;
        state_wr.cause  = '0;
        state_wr.epoch  = settings_q.epoch;
        state_wr.route  = HasWindow[settings_q.iface] ? settings_q.iface : '0;
        state_d         = Wait;
      end

      Stop: begin
        stop_valid_o    = queue_state.active || queue_state.failed;
        state_we        = 1'b1;
        state_wr.active = 1'b0;
        state_d         = Wait;
      end

      Wait: begin
        // An engine says that it is busy from the cycle after the pulse on.
        elapsed_d = (elapsed_q == $bits(elapsed_q)'(2)) ? elapsed_q : elapsed_q + 1'b1;
        if (elapsed_q == $bits(elapsed_q)'(2) && !engines_busy_i && !counters_busy_i) begin
          elapsed_d = '0;
          state_d    = looping_q ? LoopLook : Idle;
        end
      end

      Loop: begin
        // The device was enabled or disabled: every queue in turn.
        word_raddr = {queue_q, WordControl};
        elapsed_d = '0;
        state_d    = enable_q ? Check : Stop;
      end

      LoopLook: begin
        queue_d    = queue_q + 1'b1;
        word_raddr = {queue_d, WordControl};
        state_d    = (queue_q == QueueW'(NumQueues - 1)) ? Idle : Loop;
      end

      Read: begin
        queue_d = is_doorbell ? bell_distance[6 +: QueueW] : queue_distance[8 +: QueueW];
        index_d = is_doorbell ? {PlaceDoorbells, offset[4:3]} : offset[7:3];
        word_raddr = {queue_d, index_d};
        state_d    = ReadLook;
      end

      ReadLook: begin
        elapsed_d = elapsed_q + 1'b1;
        if (failed_valid_i) elapsed_d = '0;
        if (failed_valid_i) begin
          address_d = address_q;
          state_d   = Answer;
        end else if (elapsed_q == $bits(elapsed_q)'(is_counter ? CountCycles : EffectCycles)) begin
          state_d = Answer;
        end
      end

      Answer: begin
        // A failure that came meanwhile is told first, and the read begins again.
        queue_d = failed_valid_i ? failed_queue_i : queue_q;
        if (failed_valid_i) begin
          if (queue_q == failed_queue_i) begin
            failed_ready_o = 1'b1;
            if (queue_state.active) begin
              state_we        = 1'b1;
              state_wr.active = 1'b0;
              state_wr.failed = 1'b1;
              state_wr.cause  = failed_cause_i;
              irq_cause_d[2]  = 1'b1;
              failed_count_d  = failed_count_q + 1'b1;
              irq_failed_valid_o = irq_mask_q[2];
            end
            elapsed_d = '0;
            state_d    = Read;
          end
        end else begin
          rc_valid_o = 1'b1;
          word_raddr = {queue_q, index_q};
          if (rc_ready_i) begin
            count_bad_accesses_o = !read_hits;
            state_d              = Idle;
          end
        end
      end

      ResetDevice: begin
        engines_reset_no = 1'b0;
        clear_d     = '0;
        enable_d    = 1'b0;
        mux_d       = '0;
        mux_ports_d = '0;
        irq_mask_d  = '0;
        irq_cause_d = '0;
        mac_d       = mac_i;
        failed_count_d = '0;
        looping_d   = 1'b0;
        elapsed_d   = '0;
        state_d     = Clear;
      end

      default: state_d = Idle;
    endcase
  end

  // A read is not overtaken by later writes until it is taken; while it is looked up they may come.
  assign is_idle_o = state_q == Idle && !failed_valid_i;
  assign busy_o    = !(state_q == Idle || state_q == Read || state_q == ReadLook || state_q == Answer);
  assign hold_o    = busy_o || (state_q == Idle && rd_valid_i);

  assign rc_tag_o   = tag_q;
  assign rc_value_o = read_value;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q        <= Clear;
      clear_q        <= '0;
      queue_q        <= '0;
      elapsed_q      <= '0;
      looping_q      <= 1'b0;
      enable_q       <= 1'b0;
      mux_q          <= '0;
      mux_ports_q    <= '0;
      irq_mask_q     <= '0;
      irq_cause_q    <= '0;
      mac_q          <= mac_i;
      failed_count_q <= '0;
    end else begin
      state_q        <= state_d;
      clear_q        <= clear_d;
      queue_q        <= queue_d;
      elapsed_q      <= elapsed_d;
      looping_q      <= looping_d;
      enable_q       <= enable_d;
      mux_q          <= mux_d;
      mux_ports_q    <= mux_ports_d;
      irq_mask_q     <= irq_mask_d;
      irq_cause_q    <= irq_cause_d;
      mac_q          <= mac_d;
      failed_count_q <= failed_count_d;
    end
    address_q <= address_d;
    value_q   <= value_d;
    tag_q     <= tag_d;
    index_q   <= index_d;
    // Writes behind the read do not count.
    if (rd_ready_o) pending_q <= pending_i;
  end

endmodule

`default_nettype wire

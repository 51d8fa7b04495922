// What a queue starts with: its registers, read out of their RAM word by word, as one structure.
//
// `check_i`: the control register's fields stand at the ports. `load_i`: the word of index `index_i` stands at
// `word_i`. The structure holds what was last given. Twin: QueueRegisters::settings in nic/model/src/registers.rs.

`default_nettype none

module queue_settings (
  input  logic        clk_i,
  input  logic        check_i,
  // The control register's fields, but for `enable`.
  input  logic [3:0]  iface_i,
  input  logic [7:0]  epoch_i,
  input  logic [3:0]  class_i,
  input  logic [7:0]  weight_i,
  input  logic        backpressure_i,
  input  logic        checksums_i,
  input  logic        load_i,
  input  logic [4:0]  index_i,
  input  logic [63:0] word_i,
  output nic_rtl_pkg::queue_settings_t settings_o
);

  always_ff @(posedge clk_i) begin
    if (check_i) begin
      settings_o.iface          <= iface_i;
      settings_o.epoch          <= epoch_i;
      settings_o.priority_class <= class_i;
      settings_o.weight         <= weight_i;
      settings_o.backpressure   <= backpressure_i;
      settings_o.checksums      <= checksums_i;
    end
    if (load_i) begin
      unique case (index_i)
        nic_pkg::QueueCreditAddressOffset[7:3]:  settings_o.credit_address <= word_i;
        nic_pkg::QueueCreditCoalesceOffset[7:3]: begin
          settings_o.credit_lines   <= word_i[31:0];
          settings_o.credit_time_ns <= word_i[63:32];
        end
        nic_pkg::QueueHoleTimeoutNsOffset[7:3]:  settings_o.hole_timeout_ns <= word_i;
        nic_pkg::QueueTxRingAddressOffset[7:3]:  settings_o.tx_ring_address <= word_i;
        nic_pkg::QueueTxRingEntriesOffset[7:3]:  settings_o.tx_ring_entries <= word_i[31:0];
        nic_pkg::QueueTxHeadAddressOffset[7:3]:  settings_o.tx_head_address <= word_i;
        nic_pkg::QueueTxModerationOffset[7:3]: begin
          settings_o.tx_moderation_frames <= word_i[31:0];
          settings_o.tx_moderation_ns     <= word_i[63:32];
        end
        nic_pkg::QueueBlankOffset[7:3]:          settings_o.fills <= word_i != '0;
        nic_pkg::QueueRxModeOffset[7:3]: begin
          settings_o.rx_mode  <= word_i[1:0];
          settings_o.rx_reads <= word_i[4];
        end
        nic_pkg::QueueTxPushOffset[7:3]:         settings_o.tx_self_test <= word_i[31:0];
        nic_pkg::QueueEntryOffset[7:3]: begin
          settings_o.entry_lines_log2 <= word_i[1:0];
          settings_o.entry_hold_ns    <= word_i[63:32];
        end
        nic_pkg::QueueRxNotifyEntriesOffset[7:3]: settings_o.rx_notify_entries <= word_i[31:0];
        // A checksum stands in front of what it is of, so such a frame waits until it is whole.
        nic_pkg::QueueCutThroughOffset[7:3]:
          settings_o.cut_through_lines <= word_i[15:0] & {16{!settings_o.checksums}};
        nic_pkg::QueueRxRingAddressOffset[7:3]:  settings_o.rx_ring_address <= word_i;
        nic_pkg::QueueRxRingEntriesOffset[7:3]:  settings_o.rx_ring_entries <= word_i[31:0];
        nic_pkg::QueueRxCompletionAddressOffset[7:3]: settings_o.rx_completion_address <= word_i;
        nic_pkg::QueueKpioEopOffset[7:3]:        settings_o.kpio_eop <= word_i;
        nic_pkg::QueueRxModerationOffset[7:3]: begin
          settings_o.rx_moderation_frames <= word_i[31:0];
          settings_o.rx_moderation_ns     <= word_i[63:32];
        end
        default: ;
      endcase
    end
  end

endmodule

`default_nettype wire

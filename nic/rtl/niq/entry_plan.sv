// Receive entries: whether there is a free one, whether a frame fits it, and what is written there.
//
// A frame that fits is kept whole in the next entry, which the host reads in the BAR; of a longer one, which went to host
// memory, the entry says that and its length.
//
// Guarantees: the answers are there 3 cycles after their inputs (registers of the asker) and stay while they do.
// Limits: counts of entries are modulo 2^(EntryW+1), the position in the header modulo 2^31; freed <= written <= freed +
//   entries of the window. Cost: 60 registers.
// Twin: RxEntries::{has_room, fits, put} in nic/model/src/niq/rx_entries.rs.

`default_nettype none

module entry_plan #(
  // Bits of the number of a queue, and log2 of the lines of the longest window.
  parameter int unsigned QueueW = 6,
  parameter int unsigned EntryW = 6
) (
  input  logic              clk_i,
  input  logic [EntryW-1:0] window_mask_i,

  input  logic [QueueW-1:0] queue_i,
  input  logic [13:0]       bytes_i,
  input  logic [7:0]        epoch_i,
  input  logic [1:0]        lines_log2_i,
  input  logic [30:0]       written_i,
  input  logic [EntryW:0]   freed_i,

  output logic              is_full_o,
  output logic              fits_o,
  output rx_pkg::command_t  command_o
);

  logic [EntryW:0]   used_q;
  logic [EntryW-1:0] line_q;
  logic [8:0]        room;
  logic [2:0]        lines;
  nic_pkg::entry_header_word_t header;

  assign lines = 3'd1 << lines_log2_i;
  assign room  = (9'(nic_pkg::LineBytes) << lines_log2_i) - 9'(nic_pkg::EntryHeadBytes);

  always_ff @(posedge clk_i) begin
    used_q    <= written_i[EntryW:0] - freed_i;
    line_q    <= EntryW'(written_i[EntryW-1:0] << lines_log2_i) & window_mask_i;
    // As many as the window has: the count of lines is a power of two.
    is_full_o <= (used_q << lines_log2_i) == (EntryW + 1)'(window_mask_i) + 1'b1;
    fits_o    <= bytes_i <= 14'(room);
  end

  assign header = '{
    tag: 1'b0, position: written_i, epoch: epoch_i, reserved: '0, wants_irq: 1'b0,
    kind: fits_o ? 4'(nic_pkg::EntryKindWhole) : 4'(nic_pkg::EntryKindAddress), length_bytes: 16'(bytes_i)
  };

  assign command_o = '{
    drop: 1'b0, leads: 1'b1, entry_lines: lines, is_told: 1'b1, bytes: fits_o ? bytes_i : '0,
    address: {(58 - QueueW - EntryW)'(0), queue_i, line_q, 6'(nic_pkg::EntryHeadBytes)}, to_wrap: 8'd255,
    wrap_line: '0, word_address: '0, word: header
  };

endmodule

`default_nettype wire

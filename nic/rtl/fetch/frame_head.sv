// The head of a frame, read and judged: the word in front of a frame in a pipe, or the two words of an entry.
//
// Guarantees: `head_o` as fetch_pkg.sv says, for any bits. Combinational.
// Limits: where the entry may stand (its position) is the user's to judge.
// Twin: beeline_spec::pipe::frame_bytes, beeline_spec::entry::EntryHeader::decode, FrameQueue::place in
// nic/model/src/fetch/frame_queue.rs, TxPipe::find_frame, InlineQueue::take_entry.

`default_nettype none

module frame_head #(
  // A pipe, or entries.
  parameter bit IsPipe = 1'b0
) (
  input  logic [127:0]     words_i,
  // Epoch of the queue, and the longest frame of the port in bytes.
  input  logic [7:0]       epoch_i,
  input  logic [13:0]      max_frame_bytes_i,
  output fetch_pkg::head_t head_o
);

  // Bytes in front of a frame.
  localparam int unsigned HeadBytes = IsPipe ? nic_pkg::WordBytes : nic_pkg::EntryHeadBytes;
  // Longest frame behind an entry's head.
  localparam logic [15:0] MaxWholeBytes = 16'(nic_pkg::RingEntryMaxBytes - nic_pkg::EntryHeadBytes);

  logic        is_bad_header, is_bad_length, is_whole, is_named, is_zero, is_runt, is_long, is_wrong, is_outside,
               is_nothing, wants_irq;
  logic [15:0] bytes;
  logic [16:0] whole_bytes;
  logic [14:0] last;

  assign bytes       = words_i[15:0];
  assign whole_bytes = 17'(bytes) + 17'(HeadBytes + nic_pkg::LineBytes - 1);
  assign is_zero     = bytes == '0;
  assign is_long     = bytes > 16'(max_frame_bytes_i);

  if (IsPipe) begin : g_pipe
    nic_pkg::pipe_header_word_t header;
    assign header        = words_i[63:0];
    assign is_bad_header = header.reserved != '0;
    assign is_bad_length = is_zero || is_long;
    assign {is_whole, is_nothing, is_named, wants_irq} = 4'b1000;
    logic unused_pipe;
    assign unused_pipe = ^{epoch_i, header.length_bytes};
  end else begin : g_entry
    nic_pkg::entry_header_word_t header;
    assign header     = words_i[63:0];
    assign is_whole   = header.kind == 4'(nic_pkg::EntryKindWhole);
    assign is_named   = header.kind == 4'(nic_pkg::EntryKindAddress);
    assign is_nothing = header.kind == 4'(nic_pkg::EntryKindNothing);
    assign is_bad_header = header.tag || header.reserved != '0 || header.epoch != epoch_i
        || !(is_whole || is_named || is_nothing);
    assign is_bad_length = is_whole && bytes > MaxWholeBytes;
    assign wants_irq     = header.wants_irq;
    logic unused_entry;
    assign unused_entry = ^{header.position, header.length_bytes};
  end

  // Only what is no longer than the longest frame is asked for, so the low bits are enough to see the end.
  assign last       = 15'(words_i[77:64]) + 15'(bytes[13:0]);
  assign is_runt    = !is_nothing && !is_zero && bytes < 16'(nic_pkg::MinFrameBytes);
  assign is_wrong   = !is_nothing && (is_zero || is_long);
  assign is_outside = is_named && !is_runt && !is_wrong && words_i[127:78] == '1 && last[14];

  assign head_o = '{
    is_bad_header: is_bad_header, is_bad_length: is_bad_length, is_whole: is_whole,
    is_runt: is_runt, is_wrong: is_wrong, is_outside: is_outside,
    is_skipped: is_runt || is_wrong || is_outside || is_nothing, wants_irq: wants_irq, bytes: bytes,
    lines: is_whole ? whole_bytes[16:6] : 11'd1
  };

  logic unused_bits;
  assign unused_bits = ^{whole_bytes[5:0], last};

endmodule

`default_nettype wire

// What the parts of the receive engine tell each other.

`default_nettype none

package rx_pkg;

  // Take the oldest frame of the store: write its bytes, then the word that says so.
  typedef struct packed {
    // Nothing is written, the frame is let go.
    logic        drop;
    // The word goes in front of the frame, in the write that holds its first bytes. `address` is that of the frame's
    // first byte, 8 behind a line, or 16 in an entry.
    logic        leads;
    // Lines of an entry on the NIC, which is written whole, zeros behind the frame; 0: to host memory.
    logic [2:0]  entry_lines;
    // It is the last of what is done for a frame.
    logic        is_told;
    // Bytes of the frame; 0: no frame is taken, only the word is written.
    logic [13:0] bytes;
    logic [63:0] address;
    // Lines behind the first that lie before the end of the ring; then the ring goes on at its first line.
    logic [7:0]  to_wrap;
    logic [57:0] wrap_line;
    logic [60:0] word_address;
    logic [63:0] word;
  } command_t;

endpackage

`default_nettype wire

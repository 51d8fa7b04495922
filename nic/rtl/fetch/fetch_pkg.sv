// What the engines of entries and of pipes find at the head of a frame.

`default_nettype none

package fetch_pkg;

  typedef struct packed {
    // It names no frame, or one that cannot be where it is: where the next one begins is unknown.
    logic        is_bad_header;
    logic        is_bad_length;
    // Its bytes are behind the head; otherwise at an address, or there are none.
    logic        is_whole;
    // A frame that makes no sense: shorter than an Ethernet header; empty or too long; reaching past the address space.
    logic        is_runt;
    logic        is_wrong;
    logic        is_outside;
    // No frame leaves for it: any of these three, or an entry that says so.
    logic        is_skipped;
    logic        wants_irq;
    logic [15:0] bytes;
    // Lines up to the next head.
    logic [10:0] lines;
  } head_t;

endpackage

`default_nettype wire

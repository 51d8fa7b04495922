// Words that the stages of the kPIO+WC engine hand to each other.

`default_nettype none

package kpio_pkg;

  // What a stage is asked to do. Everything that concerns a queue goes through the same pipeline in order, the start
  // and the stop of the queue too, so that no stage needs to know what is still under way in front of it.
  typedef enum logic [1:0] {
    // A line, or in front of line_merge a piece of one.
    OpLine  = 2'd0,
    // The queue starts, empty.
    OpStart = 2'd1,
    // The queue stops; what it holds is forgotten.
    OpStop  = 2'd2,
    // The queue fails with a cause; what is incomplete is forgotten.
    OpFail  = 2'd3
  } op_e;

  // What a line says about the packet that it belongs to. Twin: Outcome in nic/model/src/kpio/eop_filter.rs.
  typedef struct packed {
    // The packet goes on in the next line.
    logic       goes_on;
    // A signature stands in front of a word that is none.
    logic       damaged;
    // Words of the line that are the packet's own, 0 to 7; counts where the packet ends undamaged.
    logic [2:0] words;
  } outcome_t;

  // Lines that may be in pieces at once in a queue: as many as a core has write-combining buffers.
  localparam int unsigned MaxPartialLines = 10;

  // Bits of a queue's generation, which tells frames of a queue from those of its life before a stop.
  localparam int unsigned GenerationW = 12;

  // One more. Written as what it does to each bit, because it stands in loops of one cycle, where a carry that goes
  // from bit to bit costs a level of logic each.
  function automatic logic [31:0] increment(input logic [31:0] value);
    for (int i = 0; i < 32; i++) increment[i] = value[i] ^ ((value | ~((32'd1 << i) - 32'd1)) == '1);
  endfunction

endpackage

`default_nettype wire

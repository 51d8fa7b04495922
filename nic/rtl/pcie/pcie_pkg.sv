// What the adapters for AMD's UltraScale+ PCIe block (PG213) share: where fields stand in its 512-bit streams, and a
// request that wants an answer. The streams are little-endian; a DW is 32 bits, a descriptor 4 DWs, of a completion 3.

`default_nettype none

package pcie_pkg;

  // Bits of the sideband words.
  localparam int unsigned CqUserW = 183;
  localparam int unsigned CcUserW = 81;
  localparam int unsigned RqUserW = 137;
  localparam int unsigned RcUserW = 161;

  // m_axis_cq_tuser. Fields with two values: [0] is of the first TLP that begins (or ends) in the beat, wherever.
  localparam int unsigned CqFirstBeLsb    = 0;
  localparam int unsigned CqLastBeLsb     = 8;
  localparam int unsigned CqByteEnLsb     = 16;
  localparam int unsigned CqSopLsb        = 80;
  localparam int unsigned CqSopPtrLsb     = 82;
  localparam int unsigned CqEopLsb        = 86;
  localparam int unsigned CqEopPtrLsb     = 88;
  localparam int unsigned CqDiscontinueLsb = 96;

  // s_axis_cc_tuser.
  localparam int unsigned CcSopLsb        = 0;
  localparam int unsigned CcEopLsb        = 6;
  localparam int unsigned CcEopPtrLsb     = 8;

  // s_axis_rq_tuser, of the first TLP that begins or ends in the beat; no TLP of ours begins elsewhere than in lane 0.
  localparam int unsigned RqFirstBeLsb    = 0;
  localparam int unsigned RqLastBeLsb     = 8;
  localparam int unsigned RqSopLsb        = 20;
  localparam int unsigned RqEopLsb        = 26;
  localparam int unsigned RqEopPtrLsb     = 28;
  localparam int unsigned RqSeqLsb        = 61;

  // m_axis_rc_tuser without straddle: bytes of the payload, and where a TLP begins.
  localparam int unsigned RcByteEnLsb     = 0;
  localparam int unsigned RcSopLsb        = 64;
  localparam int unsigned RcDiscontinueLsb = 96;

  // Request types of a descriptor on CQ or RQ.
  typedef enum logic [3:0] {
    ReqMemRead       = 4'h0,
    ReqMemWrite      = 4'h1,
    ReqIoRead        = 4'h2,
    ReqIoWrite       = 4'h3,
    ReqFetchAdd      = 4'h4,
    ReqSwap          = 4'h5,
    ReqCompareSwap   = 4'h6,
    ReqMemReadLocked = 4'h7,
    ReqMessage       = 4'hc,
    ReqVendorMessage = 4'hd,
    ReqAtsMessage    = 4'he
  } req_type_e;

  // Completion status.
  typedef enum logic [2:0] {
    StatusSuccess     = 3'h0,
    StatusUnsupported = 3'h1,
    StatusAbort       = 3'h4
  } status_e;

  // Completer request descriptor, memory requests.
  typedef struct packed {
    logic        reserved_127;
    logic [2:0]  attr;
    logic [2:0]  tc;
    logic [5:0]  bar_aperture;
    logic [2:0]  bar_id;
    logic [7:0]  target_function;
    logic [7:0]  tag;
    logic [15:0] requester_id;
    logic        reserved_79;
    logic [3:0]  req_type;
    logic [10:0] dwords;
    logic [61:0] address;
    logic [1:0]  address_type;
  } cq_descriptor_t;

  // Requester completion descriptor as the user gives it on CC.
  typedef struct packed {
    logic        force_ecrc;
    logic [2:0]  attr;
    logic [2:0]  tc;
    logic        completer_id_enable;
    logic [7:0]  completer_bus;
    logic [7:0]  target_function;
    logic [7:0]  tag;
    logic [15:0] requester_id;
    logic        reserved_47;
    logic        poisoned;
    logic [2:0]  status;
    logic [10:0] dwords;
    logic [1:0]  reserved_30;
    logic        locked;
    logic [12:0] byte_count;
    logic [5:0]  reserved_10;
    logic [1:0]  address_type;
    logic        reserved_7;
    logic [6:0]  lower_address;
  } cc_descriptor_t;

  // Requester request descriptor, memory requests.
  typedef struct packed {
    logic        force_ecrc;
    logic [2:0]  attr;
    logic [2:0]  tc;
    logic        requester_id_enable;
    logic [15:0] completer_id;
    logic [7:0]  tag;
    logic [15:0] requester_id;
    logic        poisoned;
    logic [3:0]  req_type;
    logic [10:0] dwords;
    logic [61:0] address;
    logic [1:0]  address_type;
  } rq_descriptor_t;

  // Requester completion descriptor as the block gives it on RC. byte_count: bytes of the request from this
  // completion's first one on; lower_address: of that byte; completed: the last completion of its request.
  typedef struct packed {
    logic        reserved_95;
    logic [2:0]  attr;
    logic [2:0]  tc;
    logic        reserved_88;
    logic [15:0] completer_id;
    logic [7:0]  tag;
    logic [15:0] requester_id;
    logic        reserved_47;
    logic        poisoned;
    logic [2:0]  status;
    logic [10:0] dwords;
    logic        reserved_31;
    logic        completed;
    logic        locked;
    logic [12:0] byte_count;
    logic [3:0]  error_code;
    logic [11:0] lower_address;
  } rc_descriptor_t;

  // Error codes of that descriptor that are looked at by name.
  localparam logic [3:0] RcNoError    = 4'h0;
  localparam logic [3:0] RcInvalidTag = 4'h6;

  // A piece of a read, as long as one request may be: where, whose, and where its lines wait (cut down to the widths of
  // a buffer by who takes it).
  typedef struct packed {
    logic [63:0] address;
    // 1 to 4096, in 1 to 64 lines of the buffer from `line` on.
    logic [12:0] bytes;
    logic [6:0]  lines;
    logic [11:0] line;
    // On the link; and of the read, of which this may be the last piece.
    logic [7:0]  tag;
    logic [7:0]  read_tag;
    logic        is_last;
  } read_piece_t;

  // What came for a piece: lines that are whole, all has come, it is no good.
  typedef struct packed {
    logic [7:0]  tag;
    logic [6:0]  lines;
    logic        done;
    logic        failed;
  } piece_progress_t;

  // A request that wants an answer: what the completion needs of it.
  typedef struct packed {
    // What to answer; with StatusSuccess the data that stand at `address`.
    status_e     status;
    // A memory read: byte count and lower address follow from the byte enables.
    logic        is_read;
    logic        is_locked;
    // Address of the first DW, in DWs.
    logic [61:0] address;
    // 1 to 1024 DWs.
    logic [10:0] dwords;
    logic [3:0]  first_be;
    logic [3:0]  last_be;
    logic [15:0] requester_id;
    logic [7:0]  tag;
    logic [2:0]  tc;
    logic [2:0]  attr;
    logic [1:0]  address_type;
    logic [7:0]  target_function;
  } read_request_t;

  // A line of a write that is complete: where, and which DWs.
  typedef struct packed {
    // Line of the address of the TLP's first DW, and how many lines behind it.
    logic [33:0] line;
    logic [6:0]  step;
    logic [3:0]  first;
    logic [3:0]  last;
    logic        tlp_first;
    logic        tlp_last;
    // Nothing of it is enabled: the block has discontinued the TLP.
    logic        empty;
  } line_done_t;

  // Lines that one write of the device carries at most: as many as AMD's block gives room for in its smallest buffers, and
  // headers are 4 % of the link then.
  localparam int unsigned MaxRunLines = 8;

  // A request of the device as it leaves in one TLP.
  typedef struct packed {
    logic        is_write;
    logic [63:0] address;
    // The last byte, counted from the lowest one of the first DW.
    logic [12:0] last_byte;
    // Of a read.
    logic [7:0]  tag;
    // Of a write, 1 to MaxRunLines.
    logic [3:0]  lines;
  } run_t;

  // Lines that wait for the taker in cq_lines, and how they are counted: on over four laps, so that "before" is a sign.
  localparam int unsigned Slots = 32;
  localparam int unsigned SlotW = 5;
  localparam int unsigned MarkW = SlotW + 2;

  // DWs that a read may ask for: a line. CPUs read registers in 1 or 2 DWs; nothing longer than a line is there.
  localparam int unsigned MaxReadDwords = 16;

endpackage

`default_nettype wire

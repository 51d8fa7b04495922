// Types that the parts of checksum insertion share.

`default_nettype none

package checksum_pkg;

  // What the front of a frame says, worked out from its first beat. Positions are in 16-bit words from the start of the
  // frame: addresses are 12 bytes, so the network header begins at word 7, and two words later for each VLAN tag.
  typedef struct packed {
    // Whether there is an IPv4 header, and a TCP or UDP header, whose checksum can be filled in.
    logic       has_header;
    logic       has_transport;
    logic       is_v4;
    logic       is_udp;
    // VLAN tags, 0 to 2.
    logic [1:0] tags;
    // The transport header begins at 16-bit word 7 + 2 x `quads`; 5 to 17.
    logic [4:0] quads;
    // Bytes of transport header and payload, and the first byte of the frame behind them.
    logic [15:0] transport_bytes;
    logic [16:0] end_at;
  } heads_t;

  // What is to be put into a frame that has come to its end.
  typedef struct packed {
    logic        header;
    logic [15:0] header_value;
    logic [1:0]  tags;
    logic        transport;
    logic [15:0] transport_value;
    // The 16-bit word of the frame that takes the transport checksum, and which beat it is in.
    logic [4:0]  transport_word;
    logic        transport_second;
  } patch_t;

endpackage

`default_nettype wire

// Types that modules of the NIC share and that no host sees. What a host sees is in nic_pkg (generated from spec/).

`default_nettype none

package nic_rtl_pkg;

  // The registers of one queue, decoded, as they were when it was enabled. Twin: QueueSettings in nic/model/src/engine.rs.
  typedef struct packed {
    // Transmit interface, a value of nic_pkg's enum interface; 0 for a queue that only receives.
    logic [3:0]  iface;
    // Epoch that headers must carry.
    logic [7:0]  epoch;
    // Strict priority class, 0 first served, and weight inside it (0 reads as 1).
    logic [3:0]  priority_class;
    logic [7:0]  weight;
    // Complete messages may wait in the pool without credits.
    logic        backpressure;
    // Frames leave with checksums filled in.
    logic        checksums;
    // Bus address of the credit word; 0: none is pushed.
    logic [63:0] credit_address;
    // Freed lines after which credits are pushed (0 reads as 1), and time in ns after which they are.
    logic [31:0] credit_lines;
    logic [31:0] credit_time_ns;
    // How long a hole may stand, in ns; 0: for ever.
    logic [63:0] hole_timeout_ns;
    // Transmit descriptor ring: bus address, entries (not checked), and the word that takes the absolute head count.
    logic [63:0] tx_ring_address;
    logic [31:0] tx_ring_entries;
    logic [63:0] tx_head_address;
    // Frames (0 reads as 1) and time in ns after which a completion is written.
    logic [31:0] tx_moderation_frames;
    logic [31:0] tx_moderation_ns;
    // Whether the window is blank: a push fills its half.
    logic        fills;
    // Every so many whole pushes one is not used; 0: none.
    logic [31:0] tx_self_test;
    // log2 of the lines of an entry, and how long a read of one that is not there may be held (0: not at all).
    logic [1:0]  entry_lines_log2;
    logic [31:0] entry_hold_ns;
    // Receive mode, a value of nic_pkg's enum rx_mode; whether frames are kept in entries that the host reads.
    logic [1:0]  rx_mode;
    logic        rx_reads;
    // Entries of the ring of notifications (not checked).
    logic [31:0] rx_notify_entries;
    // Receive ring (of lines or of descriptors): bus address, entries (not checked), and the completion ring's address.
    logic [63:0] rx_ring_address;
    logic [31:0] rx_ring_entries;
    logic [63:0] rx_completion_address;
    // Received frames (0 reads as 1) and time in ns after which an interrupt is raised.
    logic [31:0] rx_moderation_frames;
    logic [31:0] rx_moderation_ns;
    // Lines with which a frame may begin before its message is complete; 0: it never does.
    logic [15:0] cut_through_lines;
    // End-of-packet signature of kPIO+WC.
    logic [63:0] kpio_eop;
  } queue_settings_t;

  // Places in the block of counters, and what each of them grows by in a cycle.
  localparam int unsigned NumCounters = 96;
  typedef logic [NumCounters-1:0][7:0] increments_t;

endpackage

`default_nettype wire

// Lines of rings in host memory, fetched ahead of their use and kept on the NIC until they are: rings of entries
// (`inline`) and pipes (`enso`).
//
// Guarantees
//   - Those of ring_fetch.sv: whole lines in bursts, never past what is posted, the ring's end or a page; what came by
//     another way is skipped. The store holds a line from its arrival until it is taken.
// Limits
//   - Those of ring_fetch.sv. Counts are modulo 2^32, a ring has at most 2^22 lines. A queue has its own part of the
//     store, so that one that is not read on holds nobody back.
// Latency: 7 cycles from posting to the request; the line a cycle after its place.
// Cost: NumQueues x Ahead x 512 bits of RAM, and a ring_fetch. Twin: nic/model/src/fetch/line_ring.rs.

`default_nettype none

module line_fetch #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // Lines of one queue that are in the store or on their way, a power of two from 8 to 256.
  parameter int unsigned Ahead = 64,
  // Lines of one read, a power of two from 4 to 64, at most half of Ahead.
  parameter int unsigned Burst = 32,
  // Reads under way, a power of two from 2 to 256.
  parameter int unsigned Reads = 16,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned AheadW = $clog2(Ahead),
  localparam int unsigned TagW = $clog2(Reads)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  output logic              busy_o,
  input  logic              hold_i,
  output logic              idle_o,
  input  logic              drain_i,
  output logic              drained_o,

  // Address in lines, and lines of the ring less one.
  input  logic              setup_write_i,
  input  logic [QueueW-1:0] setup_queue_i,
  input  logic              setup_active_i,
  input  logic [57:0]       setup_address_i,
  input  logic [21:0]       setup_mask_i,

  input  logic              post_valid_i,
  output logic              post_ready_o,
  input  logic [QueueW-1:0] post_queue_i,
  input  logic [31:0]       post_count_i,

  input  logic              taken_valid_i,
  output logic              taken_ready_o,
  input  logic [QueueW-1:0] taken_queue_i,
  input  logic [31:0]       taken_count_i,

  input  logic              skip_valid_i,
  output logic              skip_ready_o,
  input  logic [QueueW-1:0] skip_queue_i,
  input  logic [31:0]       skip_count_i,

  output logic              arrived_valid_o,
  input  logic              arrived_ready_i,
  output logic [QueueW-1:0] arrived_queue_o,
  output logic [31:0]       arrived_count_o,
  output logic              arrived_error_o,

  // The store: the line a cycle after its place.
  input  logic [QueueW-1:0] store_queue_i,
  input  logic [AheadW-1:0] store_index_i,
  output logic [511:0]      store_line_o,

  output logic              rdreq_valid_o,
  input  logic              rdreq_ready_i,
  output logic [63:0]       rdreq_address_o,
  output logic [12:0]       rdreq_bytes_o,
  output logic [TagW-1:0]   rdreq_tag_o,
  input  logic              rdcpl_valid_i,
  input  logic [TagW-1:0]   rdcpl_tag_i,
  input  logic [511:0]      rdcpl_data_i,
  input  logic              rdcpl_last_i,
  input  logic              rdcpl_error_i,

  output logic              count_fetches_o
);

  localparam int unsigned StoreW = QueueW + AheadW;

  logic              land_valid;
  logic [QueueW-1:0] land_queue;
  logic [AheadW-1:0] land_first, land_index;
  logic [5:0]        land_beat;
  logic [6:0]        land_bytes;
  logic [511:0]      land_data, line_q;

  ring_fetch #(
    .NumQueues(NumQueues), .EntryLog2(6), .IndexW(22), .CountW(32), .Ahead(Ahead), .Burst(Burst), .Reads(Reads)
  ) u_ring (
    .clk_i, .rst_ni, .busy_o, .hold_i, .idle_o, .drain_i, .drained_o,
    .setup_write_i, .setup_queue_i, .setup_active_i, .setup_address_i, .setup_mask_i, .setup_posted_i('0),
    .post_valid_i, .post_ready_o, .post_queue_i, .post_count_i,
    .taken_valid_i, .taken_ready_o, .taken_queue_i, .taken_count_i,
    .skip_valid_i, .skip_ready_o, .skip_queue_i, .skip_count_i,
    .arrived_valid_o, .arrived_ready_i, .arrived_queue_o, .arrived_count_o, .arrived_error_o,
    .land_valid_o(land_valid), .land_queue_o(land_queue), .land_first_o(land_first), .land_beat_o(land_beat),
    .land_bytes_o(land_bytes), .land_data_o(land_data),
    .rdreq_valid_o, .rdreq_ready_i, .rdreq_address_o, .rdreq_bytes_o, .rdreq_tag_o,
    .rdcpl_valid_i, .rdcpl_tag_i, .rdcpl_data_i, .rdcpl_last_i, .rdcpl_error_i, .count_fetches_o
  );

  assign land_index = land_first + AheadW'(land_beat);

  // A line is read only after its arrival was told, three cycles after it landed: both ports never meet.
  logic [511:0] store_mem [1 << StoreW];
  always_ff @(posedge clk_i) begin
    if (land_valid) store_mem[{land_queue, land_index}] <= land_data;
    line_q <= store_mem[{store_queue_i, store_index_i}];
  end
  assign store_line_o = line_q;

  logic unused_bits;
  assign unused_bits = ^{land_beat, land_bytes};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!land_valid || land_bytes == 7'(nic_pkg::LineBytes)) else $error("line_fetch: a part of a line");
    end
  end
`endif

endmodule

`default_nettype wire

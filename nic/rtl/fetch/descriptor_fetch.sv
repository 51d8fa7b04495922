// Descriptors of rings in host memory, fetched in bursts and ahead of their use, ready in on-chip memory.
//
// Transmit and receive descriptors have the same shape, so both engines use it. All counts are absolute since
// the queue was started, modulo 2^17; `taken <= requested <= posted`, and a ring has at most 2^16 entries.
//
// Guarantees
//   - Those of ring_fetch.sv; the store holds what has arrived until it is taken.
// Limits
//   - Set-up only while hold_i and idle_o are high. A queue that is set up inactive asks for nothing more;
//     what it asked for before still arrives, see `drain_i`.
// Latency: 7 cycles from posting to the request; a burst every 6 cycles.
// Cost: NumQueues x (Ahead x 128 + 150) bits of RAM, and a read_ring of Reads. Twin:
// nic/model/src/fetch/descriptor_ring.rs.

`default_nettype none

module descriptor_fetch #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // Descriptors of one queue that are in the store or on their way, a power of two from 8 to 256.
  parameter int unsigned Ahead = 128,
  // Descriptors of one read, a power of two from 4 to 128, at most half of Ahead.
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

  input  logic              setup_write_i,
  input  logic [QueueW-1:0] setup_queue_i,
  input  logic              setup_active_i,
  input  logic [59:0]       setup_address_i,
  // Entries of the ring less one.
  input  logic [15:0]       setup_mask_i,
  // Descriptors posted from the start.
  input  logic [16:0]       setup_posted_i,

  input  logic              post_valid_i,
  output logic              post_ready_o,
  input  logic [QueueW-1:0] post_queue_i,
  input  logic [16:0]       post_count_i,

  input  logic              taken_valid_i,
  output logic              taken_ready_o,
  input  logic [QueueW-1:0] taken_queue_i,
  input  logic [16:0]       taken_count_i,

  output logic              arrived_valid_o,
  input  logic              arrived_ready_i,
  output logic [QueueW-1:0] arrived_queue_o,
  output logic [16:0]       arrived_count_o,
  output logic              arrived_error_o,

  // The store: the descriptor a cycle after its place.
  input  logic [QueueW-1:0] store_queue_i,
  input  logic [AheadW-1:0] store_index_i,
  output logic [127:0]      store_descriptor_o,

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

  output logic              count_descriptor_fetches_o
);

  localparam int unsigned RowW = QueueW + AheadW - 2;

  // ---- Which, and when.
  logic              land_valid, unused_skip;
  logic [QueueW-1:0] land_queue;
  logic [AheadW-1:0] land_first;
  logic [5:0]        land_beat;
  logic [6:0]        land_bytes;
  logic [511:0]      land_data;

  ring_fetch #(
    .NumQueues(NumQueues), .EntryLog2(4), .IndexW(16), .CountW(17), .Ahead(Ahead), .Burst(Burst), .Reads(Reads)
  ) u_ring (
    .clk_i, .rst_ni, .busy_o, .hold_i, .idle_o, .drain_i, .drained_o,
    .setup_write_i, .setup_queue_i, .setup_active_i, .setup_address_i, .setup_mask_i, .setup_posted_i,
    .post_valid_i, .post_ready_o, .post_queue_i, .post_count_i,
    .taken_valid_i, .taken_ready_o, .taken_queue_i, .taken_count_i,
    .skip_valid_i(1'b0), .skip_ready_o(unused_skip), .skip_queue_i('0), .skip_count_i('0),
    .arrived_valid_o, .arrived_ready_i, .arrived_queue_o, .arrived_count_o, .arrived_error_o,
    .land_valid_o(land_valid), .land_queue_o(land_queue), .land_first_o(land_first), .land_beat_o(land_beat),
    .land_bytes_o(land_bytes), .land_data_o(land_data),
    .rdreq_valid_o, .rdreq_ready_i, .rdreq_address_o, .rdreq_bytes_o, .rdreq_tag_o,
    .rdcpl_valid_i, .rdcpl_tag_i, .rdcpl_data_i, .rdcpl_last_i, .rdcpl_error_i,
    .count_fetches_o(count_descriptor_fetches_o)
  );

  // ---- The store: four banks, so that the four descriptors of a beat, which may begin at any bank, go in
  // at once.
  logic [AheadW-3:0] land_row;
  logic [511:0]      turned;
  logic [3:0]        is_there, bank_write, is_next;
  logic [3:0][127:0] bank_data;
  logic [1:0]        store_bank_q;

  assign land_row = land_first[AheadW-1:2] + (AheadW - 2)'(land_beat);
  assign is_there = {land_bytes[6], land_bytes >= 7'd48, land_bytes >= 7'd32, land_bytes >= 7'd16};

  always_comb begin
    unique case (land_first[1:0])
      2'd0:    {turned, bank_write} = {land_data, is_there};
      2'd1:    {turned, bank_write} = {land_data[383:0], land_data[511:384], is_there[2:0], is_there[3]};
      2'd2:    {turned, bank_write} = {land_data[255:0], land_data[511:256], is_there[1:0], is_there[3:2]};
      default: {turned, bank_write} = {land_data[127:0], land_data[511:128], is_there[0], is_there[3:1]};
    endcase
  end

  // A bank before the one that the beat begins at gets a descriptor of the next row.
  assign is_next = ~(4'hf << land_first[1:0]);

  for (genvar bank = 0; bank < 4; bank++) begin : g_bank
    logic [AheadW-3:0] row;
    assign row = land_row + (AheadW - 2)'(is_next[bank]);
    table_ram #(.Width(128), .Depth(1 << RowW)) u_bank (
      .clk_i, .we_i(land_valid && bank_write[bank]), .waddr_i({land_queue, row}),
      .wdata_i(turned[128*bank +: 128]), .raddr_i({store_queue_i, store_index_i[AheadW-1:2]}),
      .rdata_o(bank_data[bank])
    );
  end

  always_ff @(posedge clk_i) store_bank_q <= store_index_i[1:0];
  logic unused_bits;
  assign unused_bits = ^{land_beat, unused_skip};

  assign store_descriptor_o = bank_data[store_bank_q];

endmodule

`default_nettype wire

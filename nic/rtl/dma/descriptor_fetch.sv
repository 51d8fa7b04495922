// Descriptors of rings in host memory, fetched in bursts and ahead of their use, ready in on-chip memory.
//
// Transmit and receive descriptors have the same shape, so both engines use it. All counts are absolute since
// the queue was started, modulo 2^17; `taken <= requested <= posted`, and a ring has at most 2^16 entries.
//
// Guarantees
//   - What is posted is fetched once, in order; `arrived_*` tells in order up to which count descriptors of a
//     queue are in the store, where they stay until they are taken.
//   - A burst is at most Burst descriptors, does not cross the ring's end or a 4 KiB boundary, and waits
//     until there is room for all of it, so a full store does not cut it short. Queues take turns of one
//     burst.
//   - `arrived_error_o`: the descriptors could not be read. Nothing of that read is in the store.
// Limits
//   - Set-up only while hold_i and idle_o are high. A queue that is set up inactive asks for nothing more;
//     what it asked for before still arrives, see `drain_i`.
// Latency: 7 cycles from posting to the request; a burst every 6 cycles.
// Cost: NumQueues x (Ahead x 128 + 150) bits of RAM, and a read_ring of Reads. Twin:
// nic/model/src/dma/descriptor_ring.rs.

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

  localparam int unsigned Entries = 1 << QueueW;
  localparam int unsigned RowW = QueueW + AheadW - 2;

  if (Ahead < 8 || Ahead > 256 || (Ahead & (Ahead - 1)) != 0) begin : g_bad_ahead
    $fatal(1, "descriptor_fetch: Ahead must be a power of two from 8 to 256");
  end
  if (Burst < 4 || Burst > 128 || Burst > Ahead / 2 || (Burst & (Burst - 1)) != 0) begin : g_bad_burst
    $fatal(1, "descriptor_fetch: Burst must be a power of two from 4 to 128, at most half of Ahead");
  end

  typedef struct packed {
    logic        active;
    logic [15:0] mask;
    logic [59:0] address;
  } settings_t;
  typedef enum logic [2:0] {FetchIdle, FetchRead, FetchLook, FetchPlan, FetchSum, FetchAsk} fetch_e;
  typedef struct packed {
    logic [QueueW-1:0] queue_id;
    logic [16:0]       count;
  } meta_t;
  typedef struct packed {
    logic [QueueW-1:0] queue_id;
    logic [AheadW-1:0] first;
  } place_t;

  fetch_e            fetch_q, fetch_d;
  logic              list_busy, ring_busy, take_valid, take_ready, add_valid, requeue;
  logic [QueueW-1:0] take_queue, queue_q, add_queue;
  settings_t         settings, settings_q;
  logic [16:0]       posted, requested, taken, requested_q, pending_q, held_q, wanted_q, next_q;
  logic              is_possible_q;
  logic [16:0]       room, wanted, to_end, to_end_q, count, count_q, part;
  logic [59:0]       address_q;
  logic [16:0]       address_low;
  logic [8:0]        to_boundary_q;
  logic              carry_q;
  logic              ask_ready, asked;
  logic [QueueW-1:0] clear_q;

  assign busy_o     = list_busy || ring_busy;
  assign idle_o     = fetch_q == FetchIdle;
  assign take_ready = fetch_q == FetchIdle && !hold_i;

  // ---- Who may have something to fetch.
  assign requeue       = asked && pending_q != count_q;
  assign taken_ready_o = !requeue && !setup_write_i;
  assign post_ready_o  = !requeue && !setup_write_i && !taken_valid_i;
  assign add_valid     = requeue || setup_write_i && setup_active_i || taken_valid_i || post_valid_i;
  assign add_queue     = requeue ? queue_q : setup_write_i ? setup_queue_i :
                         taken_valid_i ? taken_queue_i : post_queue_i;

  work_list #(.NumQueues(NumQueues)) u_list (
    .clk_i, .rst_ni, .busy_o(list_busy), .add_valid_i(add_valid), .add_queue_i(add_queue),
    .take_valid_o(take_valid), .take_ready_i(take_ready), .take_queue_o(take_queue)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) clear_q <= '0;
    else         clear_q <= clear_q + QueueW'(list_busy);
  end

  table_ram #(.Width($bits(settings_t)), .Depth(Entries)) u_settings (
    .clk_i, .we_i(setup_write_i || list_busy), .waddr_i(list_busy ? clear_q : setup_queue_i),
    .wdata_i(list_busy ? '0 : {setup_active_i, setup_mask_i, setup_address_i}),
    .raddr_i(queue_q), .rdata_o(settings)
  );
  table_ram #(.Width(17), .Depth(Entries)) u_posted (
    .clk_i, .we_i(setup_write_i || post_valid_i && post_ready_o),
    .waddr_i(setup_write_i ? setup_queue_i : post_queue_i),
    .wdata_i(setup_write_i ? setup_posted_i : post_count_i), .raddr_i(queue_q), .rdata_o(posted)
  );
  table_ram #(.Width(17), .Depth(Entries)) u_taken (
    .clk_i, .we_i(setup_write_i || taken_valid_i && taken_ready_o),
    .waddr_i(setup_write_i ? setup_queue_i : taken_queue_i),
    .wdata_i(setup_write_i ? '0 : taken_count_i), .raddr_i(queue_q), .rdata_o(taken)
  );
  table_ram #(.Width(17), .Depth(Entries)) u_requested (
    .clk_i, .we_i(setup_write_i || asked), .waddr_i(setup_write_i ? setup_queue_i : queue_q),
    .wdata_i(setup_write_i ? '0 : next_q), .raddr_i(queue_q), .rdata_o(requested)
  );

  // ---- A turn: how many, from where.
  assign room        = 17'(Ahead) - held_q;
  assign wanted      = (pending_q > 17'(Burst)) ? 17'(Burst) : pending_q;
  assign to_end      = 17'(settings_q.mask) + 17'd1 - 17'(requested_q[15:0] & settings_q.mask);
  assign address_low = 17'(settings_q.address[15:0]) + 17'(requested_q[15:0] & settings_q.mask);

  always_comb begin
    part  = (wanted_q < to_end_q) ? wanted_q : to_end_q;
    count = (part < 17'(to_boundary_q)) ? part : 17'(to_boundary_q);
  end

  always_comb begin
    fetch_d = fetch_q;
    unique case (fetch_q)
      FetchIdle: if (take_valid && take_ready) fetch_d = FetchRead;
      FetchRead: fetch_d = FetchLook;
      FetchLook: fetch_d = FetchPlan;
      FetchPlan: fetch_d = FetchSum;
      FetchSum:  fetch_d = is_possible_q ? FetchAsk : FetchIdle;
      FetchAsk:  if (ask_ready) fetch_d = FetchIdle;
      default:   fetch_d = FetchIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) fetch_q <= FetchIdle;
    else         fetch_q <= fetch_d;
    if (take_ready) queue_q <= take_queue;
    if (fetch_q == FetchLook) begin
      settings_q  <= settings;
      requested_q <= requested;
      pending_q   <= posted - requested;
      held_q      <= requested - taken;
    end
    if (fetch_q == FetchPlan) begin
      wanted_q      <= wanted;
      is_possible_q <= settings_q.active && wanted != '0 && wanted <= room;
      to_end_q      <= to_end;
      to_boundary_q <= 9'd256 - 9'(address_low[7:0]);
      {carry_q, address_q[15:0]} <= address_low;
      address_q[59:16] <= settings_q.address[59:16];
    end
    if (fetch_q == FetchSum) begin
      count_q          <= count;
      next_q           <= requested_q + count;
      address_q[59:16] <= address_q[59:16] + 44'(carry_q);
    end
  end

  assign asked = fetch_q == FetchAsk && ask_ready;
  assign count_descriptor_fetches_o = asked;

  // ---- The reads.
  logic         land_valid, done_error;
  place_t       land_place;
  logic [5:0]   land_beat;
  logic [6:0]   land_bytes;
  logic [511:0] land_data;
  meta_t        done_meta;

  read_ring #(.Reads(Reads), .MetaW($bits(meta_t)), .PlaceW($bits(place_t))) u_ring (
    .clk_i, .rst_ni, .busy_o(ring_busy),
    .ask_valid_i(fetch_q == FetchAsk), .ask_ready_o(ask_ready), .ask_reads_i(1'b1),
    .ask_address_i({address_q, 4'd0}), .ask_bytes_i({count_q[8:0], 4'd0}),
    .ask_meta_i({queue_q, next_q}), .ask_place_i({queue_q, requested_q[AheadW-1:0]}),
    .rdreq_valid_o, .rdreq_ready_i, .rdreq_address_o, .rdreq_bytes_o, .rdreq_tag_o,
    .rdcpl_valid_i, .rdcpl_tag_i, .rdcpl_data_i, .rdcpl_last_i, .rdcpl_error_i,
    .land_valid_o(land_valid), .land_place_o(land_place), .land_beat_o(land_beat),
    .land_bytes_o(land_bytes), .land_data_o(land_data),
    .done_valid_o(arrived_valid_o), .done_ready_i(arrived_ready_i), .done_meta_o(done_meta),
    .done_error_o(done_error), .drain_i, .drained_o
  );

  assign arrived_queue_o = done_meta.queue_id;
  assign arrived_count_o = done_meta.count;
  assign arrived_error_o = done_error;

  // ---- The store: four banks, so that the four descriptors of a beat, which may begin at any bank, go in
  // at once.
  logic [AheadW-3:0] land_row;
  logic [511:0]      turned;
  logic [3:0]        is_there, bank_write, is_next;
  logic [3:0][127:0] bank_data;
  logic [1:0]        store_bank_q;

  assign land_row = land_place.first[AheadW-1:2] + (AheadW - 2)'(land_beat);
  assign is_there = {land_bytes[6], land_bytes >= 7'd48, land_bytes >= 7'd32, land_bytes >= 7'd16};

  always_comb begin
    unique case (land_place.first[1:0])
      2'd0:    {turned, bank_write} = {land_data, is_there};
      2'd1:    {turned, bank_write} = {land_data[383:0], land_data[511:384], is_there[2:0], is_there[3]};
      2'd2:    {turned, bank_write} = {land_data[255:0], land_data[511:256], is_there[1:0], is_there[3:2]};
      default: {turned, bank_write} = {land_data[127:0], land_data[511:128], is_there[0], is_there[3:1]};
    endcase
  end

  // A bank before the one that the beat begins at gets a descriptor of the next row.
  assign is_next = ~(4'hf << land_place.first[1:0]);

  for (genvar bank = 0; bank < 4; bank++) begin : g_bank
    logic [AheadW-3:0] row;
    assign row = land_row + (AheadW - 2)'(is_next[bank]);
    table_ram #(.Width(128), .Depth(1 << RowW)) u_bank (
      .clk_i, .we_i(land_valid && bank_write[bank]), .waddr_i({land_place.queue_id, row}),
      .wdata_i(turned[128*bank +: 128]), .raddr_i({store_queue_i, store_index_i[AheadW-1:2]}),
      .rdata_o(bank_data[bank])
    );
  end

  always_ff @(posedge clk_i) store_bank_q <= store_index_i[1:0];
  logic unused_beat;
  assign unused_beat = ^land_beat;

  assign store_descriptor_o = bank_data[store_bank_q];

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!setup_write_i || hold_i && idle_o) else $error("descriptor_fetch: set up while at work");
      assert (fetch_q != FetchPlan || !settings_q.active || held_q <= 17'(Ahead))
        else $error("descriptor_fetch: %0d descriptors held", held_q);
    end
  end
`endif

endmodule

`default_nettype wire

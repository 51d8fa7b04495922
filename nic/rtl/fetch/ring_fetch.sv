// Entries of rings in host memory, asked for in bursts and ahead of their use: who may ask, for how many, from where.
//
// Descriptors, and lines of entries or of a pipe, differ in the size of an entry and in where they are kept; the
// keeper (descriptor_fetch.sv, line_fetch.sv) puts each beat to its place. All counts are absolute since the queue was
// started, modulo 2^CountW; `taken <= requested <= posted`, and a ring has at most 2^IndexW entries.
//
// Guarantees
//   - What is posted is asked for once, in order; `arrived_*` tells in order up to which count entries of a queue have
//     landed, where they stay until they are taken.
//   - A burst is at most Burst entries, does not cross the ring's end or a 4 KiB boundary, and waits until there is
//     room for all of it, so a full store does not cut it short. Queues take turns of one burst.
//   - `arrived_error_o`: the entries could not be read. Nothing of that read has landed to be used.
//   - `skip_*`: everything up to that count came by another way and is neither asked for nor taken any more.
// Limits
//   - Set-up only while hold_i and idle_o are high. A queue that is set up inactive asks for nothing more; what it
//     asked for before still arrives, see `drain_i`.
//   - A skip is for a queue of which everything posted was taken.
// Latency: 7 cycles from posting to the request; a burst every 6 cycles.
// Cost: NumQueues x (AddressW + IndexW + 3 x CountW + 4) bits of RAM, and a read_ring of Reads. Twin:
// nic/model/src/fetch/descriptor_ring.rs, line_ring.rs.

`default_nettype none

module ring_fetch #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // log2 of the bytes of an entry, 4 to 6.
  parameter int unsigned EntryLog2 = 4,
  // log2 of the entries of the longest ring, 9 to 22.
  parameter int unsigned IndexW = 16,
  // Bits of an absolute count, more than IndexW.
  parameter int unsigned CountW = 17,
  // Entries of one queue that are in the store or on their way, a power of two from 8 to 256.
  parameter int unsigned Ahead = 128,
  // Entries of one read, a power of two from 4 to 128, at most half of Ahead and a page.
  parameter int unsigned Burst = 32,
  // Reads under way, a power of two from 2 to 256.
  parameter int unsigned Reads = 16,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned AheadW = $clog2(Ahead),
  localparam int unsigned TagW = $clog2(Reads),
  // Bits of an entry's address without those inside it.
  localparam int unsigned AddressW = 64 - EntryLog2
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  output logic                busy_o,
  input  logic                hold_i,
  output logic                idle_o,
  input  logic                drain_i,
  output logic                drained_o,

  input  logic                setup_write_i,
  input  logic [QueueW-1:0]   setup_queue_i,
  input  logic                setup_active_i,
  input  logic [AddressW-1:0] setup_address_i,
  // Entries of the ring less one.
  input  logic [IndexW-1:0]   setup_mask_i,
  // Entries posted from the start.
  input  logic [CountW-1:0]   setup_posted_i,

  input  logic                post_valid_i,
  output logic                post_ready_o,
  input  logic [QueueW-1:0]   post_queue_i,
  input  logic [CountW-1:0]   post_count_i,

  input  logic                taken_valid_i,
  output logic                taken_ready_o,
  input  logic [QueueW-1:0]   taken_queue_i,
  input  logic [CountW-1:0]   taken_count_i,

  input  logic                skip_valid_i,
  output logic                skip_ready_o,
  input  logic [QueueW-1:0]   skip_queue_i,
  input  logic [CountW-1:0]   skip_count_i,

  output logic                arrived_valid_o,
  input  logic                arrived_ready_i,
  output logic [QueueW-1:0]   arrived_queue_o,
  output logic [CountW-1:0]   arrived_count_o,
  output logic                arrived_error_o,

  // Beats: the queue, the place of the first entry of the read in its store, the number of the beat.
  output logic                land_valid_o,
  output logic [QueueW-1:0]   land_queue_o,
  output logic [AheadW-1:0]   land_first_o,
  output logic [5:0]          land_beat_o,
  output logic [6:0]          land_bytes_o,
  output logic [511:0]        land_data_o,

  output logic                rdreq_valid_o,
  input  logic                rdreq_ready_i,
  output logic [63:0]         rdreq_address_o,
  output logic [12:0]         rdreq_bytes_o,
  output logic [TagW-1:0]     rdreq_tag_o,
  input  logic                rdcpl_valid_i,
  input  logic [TagW-1:0]     rdcpl_tag_i,
  input  logic [511:0]        rdcpl_data_i,
  input  logic                rdcpl_last_i,
  input  logic                rdcpl_error_i,

  output logic                count_fetches_o
);

  localparam int unsigned Entries = 1 << QueueW;
  // log2 of the entries of a page.
  localparam int unsigned PageW = 12 - EntryLog2;

  if (EntryLog2 < 4 || EntryLog2 > 6 || IndexW < 9 || IndexW > 22 || CountW <= IndexW) begin : g_bad_entry
    $fatal(1, "ring_fetch: entries are of 16 to 64 bytes, rings of 2^9 to 2^22, CountW is more than IndexW");
  end
  if (Ahead < 8 || Ahead > 256 || (Ahead & (Ahead - 1)) != 0) begin : g_bad_ahead
    $fatal(1, "ring_fetch: Ahead must be a power of two from 8 to 256");
  end
  if (Burst < 4 || Burst > 128 || Burst > Ahead / 2 || Burst > 1 << PageW || (Burst & (Burst - 1)) != 0)
  begin : g_bad_burst
    $fatal(1, "ring_fetch: Burst must be a power of two from 4 to 128, at most half of Ahead and a page");
  end

  typedef struct packed {
    logic                active;
    logic [IndexW-1:0]   mask;
    logic [AddressW-1:0] address;
  } settings_t;
  typedef enum logic [2:0] {FetchIdle, FetchRead, FetchLook, FetchPlan, FetchSum, FetchAsk} fetch_e;
  typedef struct packed {
    logic [QueueW-1:0] queue_id;
    logic [CountW-1:0] count;
  } meta_t;
  typedef struct packed {
    logic [QueueW-1:0] queue_id;
    logic [AheadW-1:0] first;
  } place_t;

  fetch_e              fetch_q, fetch_d;
  logic                list_busy, ring_busy, take_valid, take_ready, add_valid, requeue, skip;
  logic [QueueW-1:0]   take_queue, queue_q, add_queue;
  settings_t           settings, settings_q;
  logic [CountW-1:0]   posted, requested, taken, requested_q, pending_q, held_q, wanted_q, next_q, wanted, room;
  logic                is_possible_q;
  logic [IndexW:0]     to_end, to_end_q, address_low;
  logic [IndexW-1:0]   index;
  logic [CountW-1:0]   count, count_q, part;
  logic [AddressW-1:0] address_q;
  logic [PageW:0]      to_boundary_q;
  logic                carry_q;
  logic                ask_ready, asked;
  logic [QueueW-1:0]   clear_q;

  assign busy_o     = list_busy || ring_busy;
  assign idle_o     = fetch_q == FetchIdle;
  assign take_ready = fetch_q == FetchIdle && !hold_i;

  // ---- Who may have something to fetch. A skip leaves nothing to fetch.
  assign requeue       = asked && pending_q != count_q;
  assign skip_ready_o  = !asked && !setup_write_i;
  assign skip          = skip_valid_i && skip_ready_o;
  assign taken_ready_o = !requeue && !setup_write_i && !skip;
  assign post_ready_o  = !requeue && !setup_write_i && !skip && !taken_valid_i;
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
  table_ram #(.Width(CountW), .Depth(Entries)) u_posted (
    .clk_i, .we_i(setup_write_i || skip || post_valid_i && post_ready_o),
    .waddr_i(setup_write_i ? setup_queue_i : skip ? skip_queue_i : post_queue_i),
    .wdata_i(setup_write_i ? setup_posted_i : skip ? skip_count_i : post_count_i),
    .raddr_i(queue_q), .rdata_o(posted)
  );
  table_ram #(.Width(CountW), .Depth(Entries)) u_taken (
    .clk_i, .we_i(setup_write_i || skip || taken_valid_i && taken_ready_o),
    .waddr_i(setup_write_i ? setup_queue_i : skip ? skip_queue_i : taken_queue_i),
    .wdata_i(setup_write_i ? '0 : skip ? skip_count_i : taken_count_i), .raddr_i(queue_q), .rdata_o(taken)
  );
  table_ram #(.Width(CountW), .Depth(Entries)) u_requested (
    .clk_i, .we_i(setup_write_i || skip || asked),
    .waddr_i(setup_write_i ? setup_queue_i : skip ? skip_queue_i : queue_q),
    .wdata_i(setup_write_i ? '0 : skip ? skip_count_i : next_q), .raddr_i(queue_q), .rdata_o(requested)
  );

  // ---- A turn: how many, from where.
  assign room        = CountW'(Ahead) - held_q;
  assign wanted      = (pending_q > CountW'(Burst)) ? CountW'(Burst) : pending_q;
  assign index       = requested_q[IndexW-1:0] & settings_q.mask;
  assign to_end      = (IndexW + 1)'(settings_q.mask) + 1'b1 - (IndexW + 1)'(index);
  assign address_low = (IndexW + 1)'(settings_q.address[IndexW-1:0]) + (IndexW + 1)'(index);

  always_comb begin
    part  = (wanted_q < CountW'(to_end_q)) ? wanted_q : CountW'(to_end_q);
    count = (part < CountW'(to_boundary_q)) ? part : CountW'(to_boundary_q);
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
      to_boundary_q <= (PageW + 1)'(1 << PageW) - (PageW + 1)'(address_low[PageW-1:0]);
      {carry_q, address_q[IndexW-1:0]} <= address_low;
      address_q[AddressW-1:IndexW] <= settings_q.address[AddressW-1:IndexW];
    end
    if (fetch_q == FetchSum) begin
      count_q <= count;
      next_q  <= requested_q + count;
      address_q[AddressW-1:IndexW] <= address_q[AddressW-1:IndexW] + (AddressW - IndexW)'(carry_q);
    end
  end

  assign asked = fetch_q == FetchAsk && ask_ready;
  assign count_fetches_o = asked;

  // ---- The reads.
  place_t land_place;
  meta_t  done_meta;

  read_ring #(.Reads(Reads), .MetaW($bits(meta_t)), .PlaceW($bits(place_t))) u_ring (
    .clk_i, .rst_ni, .busy_o(ring_busy),
    .ask_valid_i(fetch_q == FetchAsk), .ask_ready_o(ask_ready), .ask_reads_i(1'b1),
    .ask_address_i({address_q, EntryLog2'(0)}), .ask_bytes_i({count_q[PageW:0], EntryLog2'(0)}),
    .ask_meta_i({queue_q, next_q}), .ask_place_i({queue_q, requested_q[AheadW-1:0]}),
    .rdreq_valid_o, .rdreq_ready_i, .rdreq_address_o, .rdreq_bytes_o, .rdreq_tag_o,
    .rdcpl_valid_i, .rdcpl_tag_i, .rdcpl_data_i, .rdcpl_last_i, .rdcpl_error_i,
    .land_valid_o, .land_place_o(land_place), .land_beat_o, .land_bytes_o, .land_data_o,
    .done_valid_o(arrived_valid_o), .done_ready_i(arrived_ready_i), .done_meta_o(done_meta),
    .done_error_o(arrived_error_o), .drain_i, .drained_o
  );

  assign arrived_queue_o = done_meta.queue_id;
  assign arrived_count_o = done_meta.count;
  assign land_queue_o    = land_place.queue_id;
  assign land_first_o    = land_place.first;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!setup_write_i || hold_i && idle_o) else $error("ring_fetch: set up while at work");
      assert (fetch_q != FetchPlan || !settings_q.active || held_q <= CountW'(Ahead))
        else $error("ring_fetch: %0d entries held", held_q);
    end
  end
`endif

endmodule

`default_nettype wire

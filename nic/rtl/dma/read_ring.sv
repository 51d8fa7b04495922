// Reads of host memory under way: answered in any order and interleaved, finished in the order in which they
// were asked.
//
// Tags are the places of a ring, so the order needs no search: an entry leaves when it is the oldest and its
// answer is whole. An entry may also need no read; it keeps its place between the others all the same.
//
// Guarantees
//   - Every beat of an answer goes to `land_*` once, with the place that was given with the read, its number
//     in the answer and how many of its bytes were asked for. It is there three cycles before the entry
//     leaves.
//   - Entries leave in the order in which they were asked, one a cycle. `done_error_o`: the answer was an
//     error or had another number of beats than was asked for; beats beyond those asked for never land.
//   - A drain: `drain_i` remembers all entries that are inside, `drained_o` says that they have left.
// Limits
//   - An answer to a tag that is not under way is a fault of whoever answers (read_port.sv keeps such away).
//   - busy_o after reset, one cycle an entry.
// Latency: 1 cycle from ask to request, 2 from beat to landing, 5 from last beat to done. One entry a cycle.
// Cost: Reads x (MetaW + PlaceW + 21) bits of RAM, Reads x 2 registers. Twin: nic/model/src/fetch/reads.rs.

`default_nettype none

module read_ring #(
  // Entries, a power of two from 2 to 256.
  parameter int unsigned Reads = 64,
  // Bits that come back when the entry leaves.
  parameter int unsigned MetaW = 8,
  // Bits that come with every beat.
  parameter int unsigned PlaceW = 8,
  localparam int unsigned TagW = $clog2(Reads)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  output logic              busy_o,

  input  logic              ask_valid_i,
  output logic              ask_ready_o,
  // 0: the entry needs no read.
  input  logic              ask_reads_i,
  input  logic [63:0]       ask_address_i,
  input  logic [12:0]       ask_bytes_i,
  input  logic [MetaW-1:0]  ask_meta_i,
  input  logic [PlaceW-1:0] ask_place_i,

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

  output logic              land_valid_o,
  output logic [PlaceW-1:0] land_place_o,
  output logic [5:0]        land_beat_o,
  output logic [6:0]        land_bytes_o,
  output logic [511:0]      land_data_o,

  output logic              done_valid_o,
  input  logic              done_ready_i,
  output logic [MetaW-1:0]  done_meta_o,
  output logic              done_error_o,

  input  logic              drain_i,
  output logic              drained_o
);

  if (Reads < 2 || Reads > 256 || (Reads & (Reads - 1)) != 0) begin : g_bad_reads
    $fatal(1, "read_ring: Reads must be a power of two from 2 to 256");
  end

  typedef struct packed {
    logic [PlaceW-1:0] place;
    logic [5:0]        last_beat;
    logic [6:0]        tail_bytes;
  } asked_t;
  typedef struct packed {
    logic       error;
    logic [6:0] beat;
  } progress_t;

  logic             clearing_q, clearing_d;
  logic [TagW-1:0]  clear_q, clear_d;
  logic [TagW:0]    head_q, head_d, tail_q, tail_d;
  logic [TagW:0]    left_q, left_d;
  logic [Reads-1:0] done_q, done_d, error_q, error_d, tail_bit;
  // Entries inside; whether the oldest has an answer. The index behind the head stands ready.
  logic [TagW:0]    count_q, count_d, head_next_q, head_next_d;
  logic             is_done_q, is_done_d, head_done, next_done, ask, go, out_valid_q, out_valid_d,
                    out_error_q;
  logic [TagW-1:0]  out_q;
  logic [12:0]      last_byte;

  logic             rdreq_valid_q, rdreq_valid_d;
  logic [63:0]      rdreq_address_q;
  logic [12:0]      rdreq_bytes_q;
  logic [TagW-1:0]  rdreq_tag_q;

  logic             beat_q, beat_last_q, beat_error_q, is_wrong, fits, ends;
  logic [TagW-1:0]  beat_tag_q, end_tag_q;
  // An answer has ended: a cycle later than it could, so that the landing is ahead of the entry.
  logic             end_q, end_error_q;
  logic [511:0]     beat_data_q;
  asked_t           asked;
  progress_t        progress, progress_next;

  logic             land_valid_q;
  logic [PlaceW-1:0] land_place_q;
  logic [5:0]       land_beat_q;
  logic [6:0]       land_bytes_q;
  logic [511:0]     land_data_q;

  assign busy_o = clearing_q;

  // ---- Asking.
  assign ask_ready_o = !count_q[TagW] && !clearing_q && (!rdreq_valid_q || rdreq_ready_i);
  assign ask         = ask_valid_i && ask_ready_o;
  assign last_byte   = ask_bytes_i - 13'd1;
  assign tail_bit    = Reads'(1) << tail_q[TagW-1:0];

  always_comb begin
    rdreq_valid_d = rdreq_valid_q && !rdreq_ready_i;
    if (ask && ask_reads_i) rdreq_valid_d = 1'b1;
  end

  table_ram #(.Width($bits(asked_t)), .Depth(Reads)) u_asked (
    .clk_i, .we_i(ask), .waddr_i(tail_q[TagW-1:0]),
    .wdata_i({ask_place_i, last_byte[11:6], 7'(last_byte[5:0]) + 7'd1}),
    .raddr_i(rdcpl_tag_i), .rdata_o(asked)
  );

  table_ram #(.Width(MetaW), .Depth(Reads)) u_meta (
    .clk_i, .we_i(ask), .waddr_i(tail_q[TagW-1:0]), .wdata_i(ask_meta_i),
    .raddr_i(go ? head_q[TagW-1:0] : out_q), .rdata_o(done_meta_o)
  );

  // ---- Beats. Their count is kept by tag; the RAM gives what the beat of the cycle before wrote.
  table_ram #(.Width($bits(progress_t)), .Depth(Reads)) u_progress (
    .clk_i, .we_i(clearing_q || beat_q), .waddr_i(clearing_q ? clear_q : beat_tag_q),
    .wdata_i(clearing_q ? '0 : progress_next), .raddr_i(rdcpl_tag_i), .rdata_o(progress)
  );

  assign fits     = progress.beat <= 7'(asked.last_beat);
  assign ends     = progress.beat == 7'(asked.last_beat);
  assign is_wrong = progress.error || beat_error_q || !ends;

  always_comb begin
    progress_next.error = progress.error || beat_error_q;
    progress_next.beat  = (progress.beat == '1) ? progress.beat : progress.beat + 1'b1;
    if (beat_last_q) progress_next = '0;
  end

  always_ff @(posedge clk_i) begin
    beat_q       <= rst_ni && rdcpl_valid_i;
    beat_tag_q   <= rdcpl_tag_i;
    beat_data_q  <= rdcpl_data_i;
    beat_last_q  <= rdcpl_last_i;
    beat_error_q <= rdcpl_error_i;

    end_q       <= rst_ni && beat_q && beat_last_q;
    end_tag_q   <= beat_tag_q;
    end_error_q <= is_wrong;

    land_valid_q <= rst_ni && beat_q && fits && !beat_error_q;
    land_place_q <= asked.place;
    land_beat_q  <= progress.beat[5:0];
    land_bytes_q <= ends ? asked.tail_bytes : 7'(nic_pkg::LineBytes);
    land_data_q  <= beat_data_q;
  end

  // ---- Leaving.
  assign head_done = head_q != tail_q && done_q[head_q[TagW-1:0]];
  assign next_done = head_next_q != tail_q && done_q[head_next_q[TagW-1:0]];
  assign go        = is_done_q && (!out_valid_q || done_ready_i);

  always_comb begin
    clearing_d  = clearing_q && clear_q != '1;
    clear_d     = clear_q + TagW'(clearing_q);
    head_d      = go ? head_next_q : head_q;
    head_next_d = head_next_q + (TagW + 1)'(go);
    is_done_d   = go ? next_done : head_done;
    count_d     = count_q + (TagW + 1)'(ask) - (TagW + 1)'(go);
    tail_d      = tail_q + (TagW + 1)'(ask);
    out_valid_d = go || (out_valid_q && !done_ready_i);
    done_d      = done_q;
    error_d     = error_q;
    if (end_q) begin
      done_d = done_d | (Reads'(1) << end_tag_q);
      if (end_error_q) error_d = error_d | (Reads'(1) << end_tag_q);
    end
    if (ask) begin
      done_d  = ask_reads_i ? done_d & ~tail_bit : done_d | tail_bit;
      error_d = error_d & ~tail_bit;
    end
    left_d = left_q;
    if (drain_i) left_d = count_q + (TagW + 1)'(out_valid_q && !done_ready_i);
    else if (left_q != '0 && out_valid_q && done_ready_i) left_d = left_q - 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      clearing_q    <= 1'b1;
      clear_q       <= '0;
      head_q        <= '0;
      head_next_q   <= (TagW + 1)'(1);
      is_done_q     <= 1'b0;
      count_q       <= '0;
      tail_q        <= '0;
      left_q        <= '0;
      out_valid_q   <= 1'b0;
      rdreq_valid_q <= 1'b0;
    end else begin
      clearing_q    <= clearing_d;
      clear_q       <= clear_d;
      head_q        <= head_d;
      head_next_q   <= head_next_d;
      is_done_q     <= is_done_d;
      count_q       <= count_d;
      tail_q        <= tail_d;
      left_q        <= left_d;
      out_valid_q   <= out_valid_d;
      rdreq_valid_q <= rdreq_valid_d;
    end
    done_q  <= done_d;
    error_q <= error_d;
    if (go) begin
      out_q       <= head_q[TagW-1:0];
      out_error_q <= error_q[head_q[TagW-1:0]];
    end
    if (ask) begin
      rdreq_address_q <= ask_address_i;
      rdreq_bytes_q   <= ask_bytes_i;
      rdreq_tag_q     <= tail_q[TagW-1:0];
    end
  end

  assign rdreq_valid_o   = rdreq_valid_q;
  assign rdreq_address_o = rdreq_address_q;
  assign rdreq_bytes_o   = rdreq_bytes_q;
  assign rdreq_tag_o     = rdreq_tag_q;
  assign land_valid_o    = land_valid_q;
  assign land_place_o    = land_place_q;
  assign land_beat_o     = land_beat_q;
  assign land_bytes_o    = land_bytes_q;
  assign land_data_o     = land_data_q;
  assign done_valid_o    = out_valid_q;
  assign done_error_o    = out_error_q;
  assign drained_o       = left_q == '0;

  logic unused_bits;
  assign unused_bits = last_byte[12];

`ifndef SYNTHESIS
  logic [TagW:0] place_of_tag;
  assign place_of_tag = {1'b0, TagW'(rdcpl_tag_i - head_q[TagW-1:0])};
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!ask || !ask_reads_i || ask_bytes_i != '0 && 13'(ask_address_i[11:0]) + ask_bytes_i <= 13'd4096)
        else $error("read_ring: a read of %0d bytes at %h", ask_bytes_i, ask_address_i);
      assert (!rdcpl_valid_i || place_of_tag < tail_q - head_q && !done_q[rdcpl_tag_i])
        else $error("read_ring: an answer to tag %0d, which is not under way", rdcpl_tag_i);
    end
  end
`endif

endmodule

`default_nettype wire

// The one DMA read port: takes the requests of several engines in turn, and knows whose answer is whose.
//
// Each engine has tags of its own. On the link a read gets another tag, from those that the link does not owe
// an answer for; a table turns it back.
//
// Guarantees
//   - A tag on the link is not used again before its answer has ended, not even after `clear_i`.
//   - Engines take turns of one request; the answers of one keep the order of their beats.
//   - After `clear_i` (the device was reset, the engines with it) answers to what was asked before are
//     nobody's. An answer to a tag that is not under way is ignored at any time, so a link that answers twice
//     does no harm.
// Limits
//   - rst_ni is for a link that forgets its reads too. busy_o after it, one cycle a tag.
//   - clear_i is high in the cycle in which the engines are reset, or in the cycle after it.
// Latency: 1 cycle for a request, 1 for a beat. One request and one beat a cycle.
// Cost: Tags x ($clog2(Tags) + EngineTagW + $clog2(Engines) + 1) bits of RAM, Tags x 2 + 700 registers.
// Twin: nic/model/src/dma_port.rs (which tells lives of the device apart by a number in the tag).

`default_nettype none

module read_port #(
  // Engines, 2 to 8.
  parameter int unsigned Engines = 2,
  // Bits of an engine's own tag.
  parameter int unsigned EngineTagW = 8,
  // Reads that the link may owe, a power of two from 2 to 256.
  parameter int unsigned Tags = 256,
  localparam int unsigned EngineW = $clog2(Engines),
  localparam int unsigned TagW = $clog2(Tags)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              clear_i,
  output logic              busy_o,

  input  logic [Engines-1:0]       req_valid_i,
  output logic [Engines-1:0]       req_ready_o,
  input  logic [Engines-1:0][63:0] req_address_i,
  input  logic [Engines-1:0][12:0] req_bytes_i,
  input  logic [Engines-1:0][EngineTagW-1:0] req_tag_i,

  output logic [Engines-1:0]    cpl_valid_o,
  output logic [EngineTagW-1:0] cpl_tag_o,
  output logic [511:0]          cpl_data_o,
  output logic                  cpl_last_o,
  output logic                  cpl_error_o,

  output logic              rdreq_valid_o,
  input  logic              rdreq_ready_i,
  output logic [63:0]       rdreq_address_o,
  output logic [12:0]       rdreq_bytes_o,
  output logic [TagW-1:0]   rdreq_tag_o,
  input  logic              rdcpl_valid_i,
  input  logic [TagW-1:0]   rdcpl_tag_i,
  input  logic [511:0]      rdcpl_data_i,
  input  logic              rdcpl_last_i,
  input  logic              rdcpl_error_i
);

  if (Engines < 2 || Engines > 8) begin : g_bad_engines
    $fatal(1, "read_port: Engines must be 2 to 8");
  end
  if (Tags < 2 || Tags > 256 || (Tags & (Tags - 1)) != 0) begin : g_bad_tags
    $fatal(1, "read_port: Tags must be a power of two from 2 to 256");
  end

  typedef struct packed {
    logic [EngineW-1:0]    engine;
    logic [EngineTagW-1:0] tag;
  } owner_t;

  logic               filling_q, filling_d, tag_valid, tag_ready, give_ready, ask, any;
  logic [TagW-1:0]    fill_q, fill_d, tag;
  logic [TagW:0]      tags_free;
  logic [Tags-1:0]    owed_q, owed_d, orphan_q, orphan_d;
  logic [Engines-1:0] grant, behind_last, masked;
  logic [EngineW-1:0] chosen, last_q;

  logic               rdreq_valid_q, rdreq_valid_d;
  logic [63:0]        rdreq_address_q;
  logic [12:0]        rdreq_bytes_q;
  logic [TagW-1:0]    rdreq_tag_q;

  logic               beat_q, beat_known_q, beat_last_q, beat_error_q;
  logic [511:0]       beat_data_q;
  owner_t             owner;

  assign busy_o = filling_q;

  // ---- Tags that nothing is owed for.
  fifo #(.Width(TagW), .Depth(Tags)) u_tags (
    .clk_i, .rst_ni,
    .push_valid_i(filling_q || rdcpl_valid_i && rdcpl_last_i && owed_q[rdcpl_tag_i]),
    .push_ready_o(give_ready),
    .push_data_i(filling_q ? fill_q : rdcpl_tag_i),
    .pop_valid_o(tag_valid), .pop_ready_i(tag_ready), .pop_data_o(tag), .count_o(tags_free)
  );

  always_comb begin
    filling_d = filling_q && fill_q != '1;
    fill_d    = fill_q + TagW'(filling_q);
    owed_d    = owed_q;
    orphan_d  = clear_i ? owed_q : orphan_q;
    if (rdcpl_valid_i && rdcpl_last_i) owed_d = owed_d & ~(Tags'(1) << rdcpl_tag_i);
    if (ask) begin
      owed_d   = owed_d | (Tags'(1) << tag);
      orphan_d = clear_i ? orphan_d | (Tags'(1) << tag) : orphan_d & ~(Tags'(1) << tag);
    end
  end

  // ---- Requests: the first engine after the one that was served last, then the first of all.
  assign behind_last = {Engines{1'b1}} << (last_q + 1'b1);
  assign masked      = (last_q == EngineW'(Engines - 1)) ? '0 : req_valid_i & behind_last;
  assign grant       = (masked != '0) ? masked & (~masked + 1'b1) : req_valid_i & (~req_valid_i + 1'b1);
  assign any         = req_valid_i != '0;
  assign tag_ready   = any && !filling_q && (!rdreq_valid_q || rdreq_ready_i);
  assign ask         = tag_ready && tag_valid;
  assign req_ready_o = ask ? grant : '0;

  always_comb begin
    chosen = '0;
    for (int engine = 0; engine < int'(Engines); engine++) begin
      chosen = chosen | (grant[engine] ? EngineW'(engine) : '0);
    end
  end

  always_comb begin
    rdreq_valid_d = rdreq_valid_q && !rdreq_ready_i;
    if (ask) rdreq_valid_d = 1'b1;
  end

  table_ram #(.Width($bits(owner_t)), .Depth(Tags)) u_owners (
    .clk_i, .we_i(ask), .waddr_i(tag), .wdata_i({chosen, req_tag_i[chosen]}),
    .raddr_i(rdcpl_tag_i), .rdata_o(owner)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      filling_q     <= 1'b1;
      fill_q        <= '0;
      owed_q        <= '0;
      orphan_q      <= '0;
      last_q        <= '0;
      rdreq_valid_q <= 1'b0;
      beat_q        <= 1'b0;
    end else begin
      filling_q     <= filling_d;
      fill_q        <= fill_d;
      owed_q        <= owed_d;
      orphan_q      <= orphan_d;
      rdreq_valid_q <= rdreq_valid_d;
      if (ask) last_q <= chosen;
      beat_q        <= rdcpl_valid_i && !clear_i;
    end
    if (ask) begin
      rdreq_address_q <= req_address_i[chosen];
      rdreq_bytes_q   <= req_bytes_i[chosen];
      rdreq_tag_q     <= tag;
    end
    beat_known_q <= owed_q[rdcpl_tag_i] && !orphan_q[rdcpl_tag_i];
    beat_data_q  <= rdcpl_data_i;
    beat_last_q  <= rdcpl_last_i;
    beat_error_q <= rdcpl_error_i;
  end

  assign rdreq_valid_o   = rdreq_valid_q;
  assign rdreq_address_o = rdreq_address_q;
  assign rdreq_bytes_o   = rdreq_bytes_q;
  assign rdreq_tag_o     = rdreq_tag_q;

  assign cpl_valid_o = (beat_q && beat_known_q && !clear_i) ? Engines'(1) << owner.engine : '0;
  assign cpl_tag_o   = owner.tag;
  assign cpl_data_o  = beat_data_q;
  assign cpl_last_o  = beat_last_q;
  assign cpl_error_o = beat_error_q;

  logic unused_bits;
  assign unused_bits = ^{give_ready, tags_free};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!ask || !owed_q[tag]) else $error("read_port: tag %0d is used twice", tag);
      assert (give_ready || !filling_q) else $error("read_port: more tags than there are");
    end
  end
`endif

endmodule

`default_nettype wire

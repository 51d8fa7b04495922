// From the requester completion stream of AMD's UltraScale+ PCIe block (512 bits, DW-aligned, no straddle, PG213) to
// lines of a buffer: each byte goes to its place in the piece of a read that it answers.
//
// A beat's bytes lie in two neighbouring lines of the piece, so it is turned by where the first one belongs and written
// to an even and an odd line at once. The turn is the same for all beats of a TLP: nothing is carried from one TLP to
// the next, and TLPs of different tags may come in any order.
//
// Guarantees
//   - The stream never waits (`rc_tready_o` is constant): the block's completion buffer empties at the rate of the
//     link.
//   - Bytes of a piece are written only to its lines, by completions that follow each other without a gap: byte counts
//     are checked, and a completion that does not follow the one before it fails its piece, as does one that is
//     shorter or longer than was asked, and every error that the block reports (bad status, poison, wrong fields,
//     time-out). A failed completion writes nothing.
//   - A completion for a tag that is owed nothing changes nothing and is counted.
//   - `progress_*` tells of a completion in the cycle in which its last bytes are written, or later.
// Limits
//   - A completion longer than a piece's remaining lines is looked at by its header alone: byte enables are the
//     block's.
//   - The end of a request is what the block says (request completed); while it does not, the tag stays owed.
// Latency: 6 cycles from a beat to its lines. One beat a cycle.
// Cost: about 5 x 650 registers, Tags x (LineW + 36) bits of LUTRAM, 2 x Tags registers. Twin in nic/model: none.

`default_nettype none

module rc_adapter #(
  // As in read_cutter.
  parameter int unsigned Tags = 32,
  parameter int unsigned Lines = 512,
  localparam int unsigned RowW = $clog2(Lines) - 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // m_axis_rc of the block.
  input  logic                  rc_tvalid_i,
  output logic                  rc_tready_o,
  input  logic [511:0]          rc_tdata_i,
  input  logic                  rc_tlast_i,
  input  logic [pcie_pkg::RcUserW-1:0] rc_tuser_i,

  // A piece is asked for.
  input  logic                  piece_valid_i,
  input  pcie_pkg::read_piece_t piece_i,

  // Two banks of the buffer: even lines, odd lines.
  output logic [1:0][63:0]      write_be_o,
  output logic [1:0][RowW-1:0]  write_row_o,
  output logic [511:0]          write_data_o,

  output logic                      progress_valid_o,
  output pcie_pkg::piece_progress_t progress_o,

  // 0 or 1 in a cycle: a completion that nobody waits for.
  output logic                  count_unknown_o
);

  localparam int unsigned TagW = $clog2(Tags);
  localparam int unsigned LineW = $clog2(Lines);
  localparam int unsigned HeadBytes = 12;

  if (Tags < 4 || Tags > 256 || (Tags & (Tags - 1)) != 0) begin : g_bad_tags
    $fatal(1, "rc_adapter: Tags must be a power of two from 4 to 256");
  end
  if (Lines < 128 || Lines > 4096 || (Lines & (Lines - 1)) != 0) begin : g_bad_lines
    $fatal(1, "rc_adapter: Lines must be a power of two from 128 to 4096");
  end

  // A beat, and what goes with it. `sop`: the first of its TLP.
  typedef struct packed {
    logic [511:0] data;
    logic [63:0]  be;
    logic         sop;
    logic         last;
    logic         void_beat;
  } beat_t;

  // What the descriptor says, worked out.
  typedef struct packed {
    logic [7:0]  tag;
    logic        no_such_tag;
    logic        failed;
    logic        completed;
    logic [1:0]  gap;
    logic [12:0] byte_count;
    // Bytes of the request behind this completion; up to 3 below 0 where its last DW has bytes that nobody asked for.
    logic [14:0] after;
  } claim_t;

  // What follows from it for the TLP's beats.
  typedef struct packed {
    logic             writes;
    logic             known;
    logic             failed;
    logic             done;
    logic [7:0]       tag;
    logic [LineW-1:0] line;
    logic [12:0]      offset;
    logic [1:0]       gap;
    logic [12:0]      bytes;
    logic [6:0]       lines;
    logic [12:0]      after;
  } outcome_t;

  // ---- What was asked for, and what is to come next of it.
  typedef struct packed {
    logic [LineW-1:0] line;
    logic [12:0]      bytes;
    logic [6:0]       lines;
  } asked_t;

  (* ram_style = "distributed" *)
  asked_t            asked [Tags];
  (* ram_style = "distributed" *)
  logic [12:0]       left [Tags];
  logic [Tags-1:0]   owed_q, owed_d, begun_q, begun_d;

  // ---- Stage 1: as it came.
  logic  one_valid_q, two_valid_q, three_valid_q, four_valid_q, five_valid_q;
  beat_t one_q, two_q, three_q;

  assign rc_tready_o = 1'b1;

  logic unused_user;
  assign unused_user = ^{rc_tuser_i[pcie_pkg::RcUserW-1:pcie_pkg::RcDiscontinueLsb+1],
                         rc_tuser_i[pcie_pkg::RcDiscontinueLsb-1:pcie_pkg::RcSopLsb+1]};

  // ---- Stage 2: the descriptor.
  pcie_pkg::rc_descriptor_t head;
  claim_t                   claim, claim_q;
  logic [14:0]              payload_bytes;
  logic                     unused_head;

  assign head = one_q.data[95:0];
  assign unused_head = ^{head.reserved_95, head.attr, head.tc, head.reserved_88, head.completer_id, head.requester_id,
                         head.reserved_47, head.poisoned, head.status, head.reserved_31, head.locked,
                         head.lower_address[11:2]};

  always_comb begin
    payload_bytes     = {2'd0, head.dwords, 2'd0} - 15'(head.lower_address[1:0]);
    claim.tag         = head.tag;
    claim.no_such_tag = 9'(head.tag) >= 9'(Tags) || head.error_code == pcie_pkg::RcInvalidTag;
    // The block's code tells of bad status, poison, wrong fields and time-outs too.
    claim.failed      = head.error_code != pcie_pkg::RcNoError;
    claim.completed   = head.completed;
    claim.gap         = head.lower_address[1:0];
    claim.byte_count  = head.byte_count;
    claim.after       = 15'(head.byte_count) - payload_bytes;
  end

  // ---- Stage 3: is it what its tag waits for?
  outcome_t          outcome, outcome_q;
  logic [TagW-1:0]   tag;
  asked_t            asked_here;
  logic [12:0]       left_here;
  logic              known, ends, follows, bad, settle;

  assign tag        = claim_q.tag[TagW-1:0];
  assign asked_here = asked[tag];
  assign left_here  = begun_q[tag] ? left[tag] : asked_here.bytes;
  assign settle     = two_valid_q && two_q.sop;

  always_comb begin
    known   = owed_q[tag] && !claim_q.no_such_tag;
    ends    = claim_q.after[14] || claim_q.after == '0;
    follows = claim_q.byte_count == left_here;
    // Not by more than the rest of a DW.
    bad     = claim_q.failed || !follows || claim_q.completed != ends
              || (claim_q.after[14] && claim_q.after[13:2] != '1);
    outcome.known  = known;
    outcome.failed = bad;
    outcome.writes = known && !bad;
    outcome.done   = claim_q.completed;
    outcome.tag    = claim_q.tag;
    outcome.line   = asked_here.line;
    outcome.offset = asked_here.bytes - claim_q.byte_count;
    outcome.gap    = claim_q.gap;
    outcome.bytes  = asked_here.bytes;
    outcome.lines  = asked_here.lines;
    outcome.after  = claim_q.after[12:0];
    owed_d  = owed_q;
    begun_d = begun_q;
    if (settle && known) begin
      begun_d = begun_d | (Tags'(1) << tag);
      if (claim_q.completed) owed_d = owed_d & ~(Tags'(1) << tag);
    end
    if (piece_valid_i) begin
      begun_d = begun_d & ~(Tags'(1) << piece_i.tag[TagW-1:0]);
      owed_d  = owed_d | (Tags'(1) << piece_i.tag[TagW-1:0]);
    end
  end

  // ---- Stage 4: where the TLP's first beat begins in the piece; below 0 by the descriptor in front of it.
  logic [13:0]       begin_q, begin_d;
  logic [12:0]       whole_bytes;
  logic [511:0]      four_data_q;
  logic [63:0]       four_be_q;
  logic              four_sop_q;
  logic              tells, tells_q, tells_last_q;
  pcie_pkg::piece_progress_t progress, progress_four_q, progress_five_q;
  logic              unused_part_line;

  assign unused_part_line = ^whole_bytes[5:0];

  always_comb begin
    begin_d = 14'(outcome_q.offset) - 14'(HeadBytes) - 14'(outcome_q.gap);
    if (!three_q.sop) begin_d = begin_q;
    whole_bytes     = outcome_q.bytes - outcome_q.after;
    progress.tag    = outcome_q.tag;
    progress.lines  = outcome_q.done ? outcome_q.lines : whole_bytes[12:6];
    progress.done   = outcome_q.done;
    progress.failed = outcome_q.failed;
    tells           = three_valid_q && three_q.last && outcome_q.known;
  end

  // ---- Stage 5: the beat is turned, and cut at the border of two lines.
  logic [511:0]      turned;
  logic [63:0]       turned_be, upper;
  logic [LineW-1:0]  line, line_q, first_line_q;
  logic [63:0]       high_be_q, low_be_q;
  logic [511:0]      turned_q;

  always_comb begin
    turned    = 512'(({four_data_q, four_data_q} << {begin_q[5:0], 3'd0}) >> 512);
    turned_be = 64'(({four_be_q, four_be_q} << begin_q[5:0]) >> 64);
    // Bytes of the line in which the beat begins; the others are of the next one.
    upper     = {64{1'b1}} << begin_q[5:0];
    line      = four_sop_q ? first_line_q + LineW'($signed(begin_q[13:6])) : line_q + 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      one_valid_q   <= 1'b0;
      two_valid_q   <= 1'b0;
      three_valid_q <= 1'b0;
      four_valid_q  <= 1'b0;
      five_valid_q  <= 1'b0;
      tells_q       <= 1'b0;
      tells_last_q  <= 1'b0;
      owed_q        <= '0;
      begun_q       <= '0;
    end else begin
      one_valid_q   <= rc_tvalid_i;
      two_valid_q   <= one_valid_q;
      three_valid_q <= two_valid_q;
      four_valid_q  <= three_valid_q;
      five_valid_q  <= four_valid_q;
      tells_q       <= tells;
      tells_last_q  <= tells_q;
      owed_q        <= owed_d;
      begun_q       <= begun_d;
    end
    one_q.data      <= rc_tdata_i;
    one_q.be        <= rc_tuser_i[pcie_pkg::RcByteEnLsb+:64];
    one_q.sop       <= rc_tuser_i[pcie_pkg::RcSopLsb];
    one_q.last      <= rc_tlast_i;
    one_q.void_beat <= rc_tuser_i[pcie_pkg::RcDiscontinueLsb];
    two_q           <= one_q;
    three_q         <= two_q;
    four_data_q     <= three_q.data;
    four_be_q       <= (three_valid_q && outcome_q.writes && !three_q.void_beat) ? three_q.be : '0;
    four_sop_q      <= three_q.sop;
    // A TLP's beats may come with pauses between them, in which the block's lines stand as they were.
    if (one_valid_q && one_q.sop) claim_q <= claim;
    if (settle) outcome_q <= outcome;
    if (three_valid_q) begin
      begin_q      <= begin_d;
      first_line_q <= outcome_q.line;
    end
    progress_four_q        <= progress;
    progress_four_q.failed <= progress.failed || three_q.void_beat;
    progress_five_q        <= progress_four_q;
    if (four_valid_q) line_q <= line;
    turned_q  <= turned;
    high_be_q <= turned_be & upper & {64{four_valid_q}};
    low_be_q  <= turned_be & ~upper & {64{four_valid_q}};
    if (piece_valid_i) asked[piece_i.tag[TagW-1:0]] <= '{piece_i.line[LineW-1:0], piece_i.bytes, piece_i.lines};
    if (settle && known) left[tag] <= claim_q.after[12:0];
  end

  // ---- Stage 6: the banks.
  logic [LineW-1:0] next_line;
  assign next_line = line_q + 1'b1;

  always_ff @(posedge clk_i) begin
    write_be_o[0]  <= {64{five_valid_q}} & (line_q[0] ? low_be_q : high_be_q);
    write_be_o[1]  <= {64{five_valid_q}} & (line_q[0] ? high_be_q : low_be_q);
    write_row_o[0] <= next_line[LineW-1:1];
    write_row_o[1] <= line_q[LineW-1:1];
    write_data_o   <= turned_q;
    progress_o     <= progress_five_q;
    if (!rst_ni) begin
      progress_valid_o <= 1'b0;
      count_unknown_o  <= 1'b0;
    end else begin
      progress_valid_o <= tells_last_q;
      count_unknown_o  <= settle && !known;
    end
  end

  logic unused_piece;
  assign unused_piece = ^{piece_i.address, piece_i.read_tag, piece_i.is_last, piece_i.line, piece_i.tag, next_line[0]};

`ifndef SYNTHESIS
  logic inside_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) inside_q <= 1'b0;
    else if (rc_tvalid_i) inside_q <= !rc_tlast_i;
    if (rst_ni) begin
      assert (!rc_tvalid_i || rc_tuser_i[pcie_pkg::RcSopLsb] == !inside_q)
        else $error("rc_adapter: a TLP begins inside another one; is straddle on?");
      assert (!piece_valid_i || !owed_q[piece_i.tag[TagW-1:0]])
        else $error("rc_adapter: tag %0d is used twice", piece_i.tag);
      assert (!(settle && known && !bad) || outcome.offset <= asked_here.bytes)
        else $error("rc_adapter: bytes in front of the piece");
    end
  end
`endif

endmodule

`default_nettype wire

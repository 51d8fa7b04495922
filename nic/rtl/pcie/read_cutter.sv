// Cuts DMA reads into pieces that one PCIe request may ask for, and lends each a tag and lines of the read buffer.
//
// Guarantees
//   - The pieces of a read follow each other in order of address; all but the last have a multiple of 64 bytes, so that
//     the lines of a read join without a seam. No piece has more bytes or touches more DWs than `max_read_i` allows.
//   - A piece is offered when a tag and all its lines are free: whatever is answered has its place, so that the stream
//     of completions never waits, and no more is under way than Lines lines.
//   - Tags and lines are lent and given back in the order of asking: what is given back is always the oldest piece.
// Limits
//   - A read crosses no 4 KiB boundary (who asks promises it; asserted).
//   - Reads that begin in the middle of a DW are cut 64 bytes short of the limit.
//   - max_read_i stands still while reads are under way, as the host's set-up of the link does.
//   - Room for two pieces of the largest size is looked for before one is offered, and with two tags left only one is
//     lent at a time: a cycle lies between looking and taking.
// Latency: 2 cycles. One piece a cycle. Cost: about 300 registers. Twin in nic/model: none; its link takes whole reads.

`default_nettype none

module read_cutter #(
  // Tags on the link, a power of two from 4 to 256. Above 32 the host must have enabled extended tags.
  parameter int unsigned Tags = 32,
  // Lines of the read buffer, a power of two from 128 to 4096.
  parameter int unsigned Lines = 512
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // cfg_max_read_req of the block: 128 bytes, shifted left by this; 0 to 5.
  input  logic [2:0]            max_read_i,

  // Reads of at most 4096 bytes.
  input  logic                  rdreq_valid_i,
  output logic                  rdreq_ready_o,
  input  logic [63:0]           rdreq_address_i,
  input  logic [12:0]           rdreq_bytes_i,
  input  logic [7:0]            rdreq_tag_i,

  // Pieces.
  output logic                  piece_valid_o,
  input  logic                  piece_ready_i,
  output pcie_pkg::read_piece_t piece_o,

  // The oldest piece has been answered and its lines are free.
  input  logic                  retired_valid_i,
  input  logic [6:0]            retired_lines_i
);

  localparam int unsigned TagW = $clog2(Tags);
  localparam int unsigned LineW = $clog2(Lines);

  if (Tags < 4 || Tags > 256 || (Tags & (Tags - 1)) != 0) begin : g_bad_tags
    $fatal(1, "read_cutter: Tags must be a power of two from 4 to 256");
  end
  if (Lines < 128 || Lines > 4096 || (Lines & (Lines - 1)) != 0) begin : g_bad_lines
    $fatal(1, "read_cutter: Lines must be a power of two from 128 to 4096");
  end

  // ---- The read that is being cut.
  logic        whole_valid_q, whole_valid_d, whole_take, whole_load, is_last;
  logic [63:0] whole_address_q;
  logic [12:0] whole_bytes_q, limit_q, limit, cut_bytes;
  logic [7:0]  whole_tag_q;

  // ---- The piece that is offered.
  logic             piece_valid_q, piece_valid_d, piece_take, piece_load;
  logic [63:0]      piece_address_q;
  logic [12:0]      piece_bytes_q;
  logic [7:0]       piece_read_tag_q;
  logic             piece_last_q;
  logic [6:0]       piece_lines;

  // ---- What is free.
  logic [TagW-1:0]  tag_q;
  logic [TagW:0]    owed_q, owed_d;
  logic [LineW-1:0] line_q;
  logic [LineW:0]   free_q, free_d;
  logic             tag_room_q, line_room_q, offered_q;

  assign whole_load    = !whole_valid_q || (whole_take && is_last);
  assign rdreq_ready_o = whole_load;
  assign whole_take    = whole_valid_q && piece_load;
  assign piece_load    = !piece_valid_q || piece_take;
  assign piece_take    = piece_valid_o && piece_ready_i;

  always_comb begin
    limit = 13'd128 << max_read_i;
    if (max_read_i > 3'd5) limit = 13'd4096;
    if (rdreq_address_i[1:0] != '0) limit = limit - 13'(nic_pkg::LineBytes);
    is_last       = whole_bytes_q <= limit_q;
    cut_bytes     = is_last ? whole_bytes_q : limit_q;
    whole_valid_d = whole_load ? rdreq_valid_i : whole_valid_q;
    piece_valid_d = piece_load ? whole_valid_q : piece_valid_q;
    owed_d        = owed_q + (TagW+1)'(piece_take) - (TagW+1)'(retired_valid_i);
    free_d        = free_q - (piece_take ? (LineW+1)'(piece_lines) : '0)
                  + (retired_valid_i ? (LineW+1)'(retired_lines_i) : '0);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      whole_valid_q <= 1'b0;
      piece_valid_q <= 1'b0;
      tag_q         <= '0;
      line_q        <= '0;
      owed_q        <= '0;
      free_q        <= (LineW+1)'(Lines);
      tag_room_q    <= 1'b0;
      line_room_q   <= 1'b0;
      offered_q     <= 1'b0;
    end else begin
      whole_valid_q <= whole_valid_d;
      piece_valid_q <= piece_valid_d;
      owed_q        <= owed_d;
      free_q        <= free_d;
      // As it was a cycle ago, when one piece more may have been taken; so there is room for two.
      tag_room_q    <= owed_q <= (TagW+1)'(Tags - 2);
      line_room_q   <= (free_q >> (3'd2 + max_read_i)) != '0;
      offered_q     <= piece_valid_o && !piece_ready_i;
      if (piece_take) begin
        tag_q  <= tag_q + 1'b1;
        line_q <= line_q + LineW'(piece_lines);
      end
    end
    if (whole_load) begin
      whole_address_q <= rdreq_address_i;
      whole_bytes_q   <= rdreq_bytes_i;
      whole_tag_q     <= rdreq_tag_i;
      limit_q         <= limit;
    end else if (whole_take) begin
      whole_address_q[11:0] <= whole_address_q[11:0] + limit_q[11:0];
      whole_bytes_q         <= whole_bytes_q - limit_q;
    end
    if (piece_load) begin
      piece_address_q  <= whole_address_q;
      piece_bytes_q    <= cut_bytes;
      piece_read_tag_q <= whole_tag_q;
      piece_last_q     <= is_last;
    end
  end

  assign piece_lines   = piece_bytes_q[12:6] + 7'(piece_bytes_q[5:0] != '0);
  // What was offered keeps its place: nobody else takes one.
  assign piece_valid_o = piece_valid_q && ((tag_room_q && line_room_q) || offered_q);

  always_comb begin
    piece_o          = '0;
    piece_o.address  = piece_address_q;
    piece_o.bytes    = piece_bytes_q;
    piece_o.lines    = piece_lines;
    piece_o.line     = 12'(line_q);
    piece_o.tag      = 8'(tag_q);
    piece_o.read_tag = piece_read_tag_q;
    piece_o.is_last  = piece_last_q;
  end

`ifndef SYNTHESIS
  logic waiting_q;
  logic [63:0] waiting_address_q;
  always_ff @(posedge clk_i) begin
    waiting_q         <= rst_ni && piece_valid_o && !piece_ready_i;
    waiting_address_q <= piece_address_q;
    if (rst_ni) begin
      assert (!rdreq_valid_i || (rdreq_bytes_i != '0 && 14'(rdreq_address_i[11:0]) + 14'(rdreq_bytes_i) <= 14'd4096))
        else $error("read_cutter: a read of %0d bytes at %h", rdreq_bytes_i, rdreq_address_i);
      assert (!waiting_q || (piece_valid_o && piece_address_q == waiting_address_q))
        else $error("read_cutter: a waiting piece changed");
      assert (!piece_take || ((LineW+1)'(piece_lines) <= free_q && owed_q < (TagW+1)'(Tags)))
        else $error("read_cutter: a piece without a place");
      assert (!retired_valid_i || owed_q != '0) else $error("read_cutter: a piece came back twice");
      assert (owed_q != '0 || free_q == (LineW+1)'(Lines)) else $error("read_cutter: lines are lost");
    end
  end
`endif

endmodule

`default_nettype wire

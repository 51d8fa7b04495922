// The buffer in which answers to DMA reads wait, and their way out: reads in the order in which they were asked for,
// each as lines from its first byte on.
//
// Guarantees
//   - A line leaves when all its bytes have come, all pieces in front of it have left, and its own piece has not
//     failed: whatever order the host answers in, nobody sees a byte of an earlier read.
//   - A read of which a piece has failed ends with one beat with `error`, behind the whole lines that came before;
//     its other pieces are waited for, and dropped.
//   - `retired_*` gives a piece's tag and lines back, in the order of asking, when the link owes nothing for it any
//     more and all its lines have left.
// Limits
//   - A read that the host is slow to answer holds back those behind it: engines take frames in the order of asking
//     anyway (dma/read_ring.sv). Progress is told once a TLP, so lines leave a TLP at a time.
// Latency: 5 cycles from progress_valid_i to the first line. One line a cycle, 2 cycles a piece at least.
// Cost: Lines x 512 bits of RAM in two banks with byte enables, Tags x 25 bits of LUTRAM, 1,200 registers.
// Twin: DmaPort in nic/model/src/dma_port.rs; its link answers whole reads.

`default_nettype none

module read_answers #(
  // As in read_cutter.
  parameter int unsigned Tags = 32,
  parameter int unsigned Lines = 512,
  localparam int unsigned RowW = $clog2(Lines) - 1
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  // A piece is asked for.
  input  logic                  piece_valid_i,
  input  pcie_pkg::read_piece_t piece_i,

  // From rc_adapter.
  input  logic [1:0][63:0]      write_be_i,
  input  logic [1:0][RowW-1:0]  write_row_i,
  input  logic [511:0]          write_data_i,
  input  logic                      progress_valid_i,
  input  pcie_pkg::piece_progress_t progress_i,

  output logic                  retired_valid_o,
  output logic [6:0]            retired_lines_o,

  output logic                  rdcpl_valid_o,
  output logic [7:0]            rdcpl_tag_o,
  output logic [511:0]          rdcpl_data_o,
  output logic                  rdcpl_last_o,
  output logic                  rdcpl_error_o
);

  localparam int unsigned TagW = $clog2(Tags);
  localparam int unsigned LineW = $clog2(Lines);

  if (Tags < 4 || Tags > 256 || (Tags & (Tags - 1)) != 0) begin : g_bad_tags
    $fatal(1, "read_answers: Tags must be a power of two from 4 to 256");
  end
  if (Lines < 128 || Lines > 4096 || (Lines & (Lines - 1)) != 0) begin : g_bad_lines
    $fatal(1, "read_answers: Lines must be a power of two from 128 to 4096");
  end

  typedef struct packed {
    logic [6:0] lines;
    logic [7:0] read_tag;
    logic       is_last;
  } piece_t;

  typedef struct packed {
    logic [6:0] lines;
    logic       done;
    logic       failed;
  } state_t;

  // ---- Pieces in the order of asking; tags are lent in that order too.
  piece_t          next_piece, piece_q;
  logic            next_valid, next_ready, unused_ready, valid_q, valid_d, retire;
  logic [TagW-1:0] tag_q;
  logic [TagW:0]   unused_count;

  fifo #(.Width($bits(piece_t)), .Depth(Tags)) u_pieces (
    .clk_i, .rst_ni,
    .push_valid_i(piece_valid_i), .push_ready_o(unused_ready),
    .push_data_i({piece_i.lines, piece_i.read_tag, piece_i.is_last}),
    .pop_valid_o(next_valid), .pop_ready_i(next_ready), .pop_data_o(next_piece), .count_o(unused_count)
  );

  assign next_ready = !valid_q || retire;

  // ---- What has come for each tag, and a copy of the oldest one's.
  (* ram_style = "distributed" *)
  state_t          state [Tags];
  logic [Tags-1:0] noted_q, noted_d;
  state_t          noted, told, seen, seen_q;
  logic [TagW-1:0] told_tag;

  assign told_tag = progress_i.tag[TagW-1:0];
  assign noted    = state[told_tag];
  assign seen     = state[tag_q];

  always_comb begin
    told.lines  = progress_i.failed ? (noted_q[told_tag] ? noted.lines : '0) : progress_i.lines;
    told.done   = progress_i.done;
    told.failed = progress_i.failed || (noted_q[told_tag] && noted.failed);
    noted_d     = noted_q;
    if (progress_valid_i) noted_d = noted_d | (Tags'(1) << told_tag);
    if (piece_valid_i)    noted_d = noted_d & ~(Tags'(1) << piece_i.tag[TagW-1:0]);
  end

  // ---- The oldest piece: a line leaves, an error is told, or what is left of it is dropped.
  logic [6:0]       place_q, place_d, last_place;
  logic [LineW-1:0] line_q, line_d;
  logic             dropping_q, dropping_d, gives, fails, is_final;

  always_comb begin
    last_place = piece_q.lines - 7'd1;
    is_final   = place_q == last_place;
    gives      = valid_q && !dropping_q && !seen_q.failed && seen_q.lines > place_q && (!is_final || seen_q.done);
    fails      = valid_q && !dropping_q && seen_q.failed;
    retire     = (gives && is_final) || (valid_q && dropping_q && seen_q.done);
    valid_d    = next_ready ? next_valid : valid_q;
    dropping_d = dropping_q || fails;
    if (retire && piece_q.is_last) dropping_d = 1'b0;
    place_d    = place_q;
    line_d     = line_q;
    if (gives)  place_d = place_q + 7'd1;
    if (retire) place_d = '0;
    if (gives)                line_d = line_q + 1'b1;
    if (retire && dropping_q) line_d = line_q + LineW'(piece_q.lines - place_q);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q    <= 1'b0;
      tag_q      <= '0;
      noted_q    <= '0;
      place_q    <= '0;
      line_q     <= '0;
      dropping_q <= 1'b0;
      seen_q     <= '0;
    end else begin
      valid_q    <= valid_d;
      noted_q    <= noted_d;
      place_q    <= place_d;
      line_q     <= line_d;
      dropping_q <= dropping_d;
      if (retire) tag_q <= tag_q + 1'b1;
      // Nothing is known of the next piece until its tag has been looked up.
      seen_q <= (valid_q && !retire && noted_q[tag_q]) ? seen : '0;
    end
    if (next_ready) piece_q <= next_piece;
    if (progress_valid_i) state[told_tag] <= told;
  end

  // ---- The lines.
  logic [1:0][511:0] bank_q;
  (* ram_style = "block", no_rw_check *)
  logic [511:0] even [Lines/2];
  (* ram_style = "block", no_rw_check *)
  logic [511:0] odd [Lines/2];

  always_ff @(posedge clk_i) begin
    for (int i = 0; i < 64; i++) begin
      if (write_be_i[0][i]) even[write_row_i[0]][8*i+:8] <= write_data_i[8*i+:8];
      if (write_be_i[1][i]) odd[write_row_i[1]][8*i+:8]  <= write_data_i[8*i+:8];
    end
    bank_q[0] <= even[line_q[LineW-1:1]];
    bank_q[1] <= odd[line_q[LineW-1:1]];
  end

  // ---- Out: the line, then the choice of its bank.
  logic       out_valid_q, out_last_q, out_error_q, out_odd_q;
  logic [7:0] out_tag_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      out_valid_q     <= 1'b0;
      rdcpl_valid_o   <= 1'b0;
      retired_valid_o <= 1'b0;
    end else begin
      out_valid_q     <= gives || fails;
      rdcpl_valid_o   <= out_valid_q;
      retired_valid_o <= retire;
    end
    out_tag_q       <= piece_q.read_tag;
    out_last_q      <= fails || (is_final && piece_q.is_last);
    out_error_q     <= fails;
    out_odd_q       <= line_q[0];
    rdcpl_tag_o     <= out_tag_q;
    rdcpl_last_o    <= out_last_q;
    rdcpl_error_o   <= out_error_q;
    rdcpl_data_o    <= bank_q[out_odd_q];
    retired_lines_o <= piece_q.lines;
  end

  logic unused_bits;
  assign unused_bits = ^{unused_count, noted.done, progress_i.tag, piece_i.address, piece_i.bytes, piece_i.line,
                         piece_i.tag};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!piece_valid_i || unused_ready) else $error("read_answers: more pieces than tags");
      assert (!piece_valid_i || piece_i.lines != '0) else $error("read_answers: a piece without lines");
      assert (!valid_q || place_q < piece_q.lines) else $error("read_answers: past the end of a piece");
      assert (!(valid_q && !dropping_q && seen_q.done) || seen_q.failed || seen_q.lines == piece_q.lines)
        else $error("read_answers: a piece is done with %0d lines of %0d", seen_q.lines, piece_q.lines);
    end
  end
`endif

endmodule

`default_nettype wire

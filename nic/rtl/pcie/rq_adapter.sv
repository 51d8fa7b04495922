// Sends DMA writes and reads as requests on the requester request stream of AMD's UltraScale+ PCIe block (512 bits,
// DW-aligned, PG213), one TLP a packet.
//
// Guarantees
//   - Every byte of a write of 1 to 64 bytes at any address inside a 4 KiB page is written by one posted write, with the
//     byte enables of just these bytes. Writes of lines behind each other that wait for the stream leave as one, up to the
//     maximum payload or 512 bytes (request_runs.sv). A read becomes one request with the tag that it was given.
//   - Writes leave in the order in which they were taken, and a read behind every write that was taken before it (so it
//     never reads what the device has overwritten since). A write may leave in front of a read that came before it.
//   - Writes and reads take turns, so neither starves: a read waits for MaxRunLines writes at most.
//   - A read is sent only while the block has a header credit for it (`nph_av_i`): reads never stand in front of writes
//     that could go, which PCIe asks of whoever must not deadlock.
//   - Writes carry sequence numbers from 32 on, one after the other, reads 0; `sent_*` tells how many lines each has.
//     See write_fence.sv for what they are for.
//   - No pause inside a TLP.
// Limits
//   - n whole lines take n + 1 beats: 64 Gbps at 250 MHz one by one, 114 by eight.
//   - nph_av_i is at most SettleCycles late with a read that the block has taken.
// Latency: 2 cycles for a write, 3 for a read. Cost: about 1,200 registers, 16 x 602 and 2 x 85 bits of LUTRAM.
// Twin in nic/model: none.

`default_nettype none

module rq_adapter #(
  // Cycles after which a read that the block has taken is no longer in nph_av_i, 1 to 15.
  parameter int unsigned SettleCycles = 4
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  // cfg_max_payload of the block: 128 bytes << this.
  input  logic [1:0]   max_payload_i,

  // Writes: the bytes from the lowest on.
  input  logic         dmawr_valid_i,
  output logic         dmawr_ready_o,
  input  logic [63:0]  dmawr_address_i,
  input  logic [511:0] dmawr_data_i,
  input  logic [6:0]   dmawr_bytes_i,

  // Reads, cut.
  input  logic                  piece_valid_i,
  output logic                  piece_ready_o,
  input  pcie_pkg::read_piece_t piece_i,

  // pcie_tfc_nph_av of the block.
  input  logic [3:0]   nph_av_i,

  // A write gets its number, with so many of the lines that were taken.
  output logic         sent_valid_o,
  output logic [3:0]   sent_lines_o,

  // s_axis_rq of the block.
  output logic         rq_tvalid_o,
  input  logic         rq_tready_i,
  output logic [511:0] rq_tdata_o,
  output logic [15:0]  rq_tkeep_o,
  output logic         rq_tlast_o,
  output logic [pcie_pkg::RqUserW-1:0] rq_tuser_o
);

  localparam int unsigned HeadDwords = 4;
  // A line that begins inside a DW.
  localparam int unsigned PayloadDwords = 17;
  // DWs of the payload in the first beat.
  localparam int unsigned FirstDwords = 16 - HeadDwords;

  if (SettleCycles < 1 || SettleCycles > 15) begin : g_bad_settle
    $fatal(1, "rq_adapter: SettleCycles must be 1 to 15");
  end

  localparam int unsigned ReadW = 64 + 13 + 8;

  // ---- Reads that wait for their turn; their order and that of writes is made behind.
  logic        read_valid, read_take;
  logic [63:0] read_address;
  logic [12:0] read_bytes;
  logic [7:0]  read_tag;
  logic [1:0]  unused_reads;

  fifo #(.Width(ReadW), .Depth(2)) u_reads (
    .clk_i, .rst_ni, .push_valid_i(piece_valid_i), .push_ready_o(piece_ready_o),
    .push_data_i({piece_i.address, piece_i.bytes, piece_i.tag}),
    .pop_valid_o(read_valid), .pop_ready_i(read_take), .pop_data_o({read_address, read_bytes, read_tag}),
    .count_o(unused_reads)
  );

  // ---- Stage 1: requests in the order in which they leave. Whether there is room comes from a register. A read waits
  // for the lines of a write that they may join, since between them it would part them.
  logic           room, choose_read, take_write, writes_on_q;
  logic [2:0]     turns_q;
  logic           run_valid, begins, line_take;
  pcie_pkg::run_t run;
  logic [511:0]   line;

  request_runs u_runs (
    .clk_i, .rst_ni, .max_payload_i,
    .push_valid_i(take_write || read_take), .push_ready_o(room), .push_is_write_i(!choose_read),
    .push_address_i(choose_read ? read_address : dmawr_address_i),
    .push_bytes_i(choose_read ? read_bytes : 13'(dmawr_bytes_i)), .push_tag_i(choose_read ? read_tag : '0),
    .push_data_i(dmawr_data_i),
    .run_valid_o(run_valid), .run_ready_i(begins), .run_o(run), .line_data_o(line), .line_take_i(line_take)
  );

  typedef struct packed {
    logic       first;
    logic       last;
    // Lane of the last DW.
    logic [3:0] tail;
    logic [3:0] first_be;
    logic [3:0] last_be;
    logic [5:0] number;
  } beat_t;

  // At the pins.
  beat_t beat_q, beat_d;
  logic  beat_valid_q, beat_valid_d;

  // ---- Reads that nph_av_i does not know yet.
  logic [SettleCycles-1:0] settling_q;
  logic [4:0]              unknown_q, unknown_d;
  logic                    may_read;

  assign may_read      = 5'(nph_av_i) > unknown_q;
  assign choose_read   = read_valid && may_read && (!dmawr_valid_i || !writes_on_q);
  assign take_write    = dmawr_valid_i && dmawr_ready_o;
  assign read_take     = room && choose_read;
  assign dmawr_ready_o = room && !choose_read;
  assign unknown_d     = unknown_q + 5'(read_take) - 5'(settling_q[SettleCycles-1]);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      writes_on_q <= 1'b0;
      turns_q     <= '0;
      settling_q  <= '0;
      unknown_q   <= '0;
    end else begin
      unknown_q  <= unknown_d;
      // A read that the block takes now.
      settling_q <= SettleCycles'({settling_q, beat_valid_q && rq_tready_i && !beat_q.number[5]});
      if (read_take) begin
        writes_on_q <= 1'b1;
        turns_q     <= '0;
      end else if (take_write) begin
        // The end of a line may go on. Eight of them are as many as one TLP carries.
        writes_on_q <= 7'(dmawr_address_i[5:0]) + dmawr_bytes_i == 7'(nic_pkg::LineBytes) && turns_q != '1;
        turns_q     <= (turns_q == '1) ? turns_q : turns_q + 1'b1;
      end
    end
  end

  // ---- Stage 2: beats. The first has the descriptor in front of the first line's DWs; of each later line what has room
  // fills a beat, and the rest is kept for the next one. A first line that does not fill its beat is kept as well.
  logic         step, within_q, within_d, emits, kept_first_q, kept_first_d;
  logic [15:0][31:0] data_q, data_d, kept_q, kept_d, first_data, turned, lanes;
  logic [1023:0] wide;
  logic [PayloadDwords-1:0][31:0] payload;
  pcie_pkg::rq_descriptor_t head;
  // Beats behind the one that is made next, lines to come, and DWs that are kept while lines come.
  logic [3:0]   beats_q, beats_d, lines_q, lines_d, shift_q;
  logic [3:0]   tail_q, tail_d, first_be, last_be;
  logic [7:0]   last_lane;
  logic [10:0]  dwords;
  logic [4:0]   sequence_q;
  logic         fills;

  assign step   = !beat_valid_q || rq_tready_i;
  assign begins = step && !within_q && run_valid;
  assign line_take = begins ? run.is_write : step && within_q && lines_q != '0;
  // Lanes of all beats in a row, of the last DW. A read ends with its descriptor.
  assign last_lane = run.is_write ? 8'(run.last_byte[8:2]) + 8'(HeadDwords) : 8'(HeadDwords - 1);
  // Whether the first line reaches the end of the first beat; a line that is alone ends there or goes beyond.
  assign fills = run.lines < 4'd2 || run.address[5:2] <= 4'(HeadDwords);

  always_comb begin
    dwords        = run.last_byte[12:2] + 11'd1;
    head          = '0;
    head.req_type = run.is_write ? pcie_pkg::ReqMemWrite : pcie_pkg::ReqMemRead;
    head.dwords   = dwords;
    head.address  = run.address[63:2];
    head.tag      = run.tag;
    first_be      = 4'hf << run.address[1:0];
    last_be       = 4'hf >> (2'd3 - run.last_byte[1:0]);
    if (run.last_byte[12:2] == '0) begin
      first_be = first_be & last_be;
      last_be  = '0;
    end
  end

  // Data: the first line behind the descriptor; later ones, which begin with a line, turned behind what is kept.
  always_comb begin
    payload    = {32'd0, line} << {run.address[1:0], 3'd0};
    first_data = {payload[FirstDwords-1:0], head};
    wide       = {line, line} << {shift_q, 5'd0};
    turned     = wide[1023:512];
    for (int lane = 0; lane < 16; lane++) begin
      lanes[lane] = (4'(lane) < shift_q || lines_q == '0) ? kept_q[lane] : turned[lane];
    end
    data_d = within_q ? lanes : first_data;
    kept_d = within_q ? turned : first_data;
    if (!within_q && fills) kept_d = 512'(payload[PayloadDwords-1:FirstDwords]);
  end

  always_comb begin
    within_d     = within_q;
    beats_d      = beats_q;
    lines_d      = lines_q;
    kept_first_d = kept_first_q;
    tail_d       = tail_q;
    emits        = 1'b0;
    beat_d       = beat_q;
    beat_d.first = 1'b0;
    if (begins) begin
      emits           = fills;
      beats_d         = last_lane[7:4] - 4'(fills);
      lines_d         = run.lines - 4'(run.is_write);
      within_d        = !fills || last_lane[7:4] != '0;
      kept_first_d    = !fills;
      tail_d          = last_lane[3:0];
      beat_d.first    = 1'b1;
      beat_d.last     = last_lane[7:4] == '0;
      beat_d.tail     = last_lane[3:0];
      beat_d.first_be = first_be;
      beat_d.last_be  = last_be;
      beat_d.number   = run.is_write ? {1'b1, sequence_q} : '0;
    end else if (step && within_q) begin
      emits        = 1'b1;
      beats_d      = beats_q - 4'd1;
      lines_d      = lines_q - 4'(lines_q != '0);
      within_d     = beats_q != '0;
      kept_first_d = 1'b0;
      beat_d.first = kept_first_q;
      beat_d.last  = beats_q == '0;
      beat_d.tail  = tail_q;
    end
    beat_valid_d = step ? emits : beat_valid_q;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      beat_valid_q <= 1'b0;
      within_q     <= 1'b0;
      sequence_q   <= '0;
    end else begin
      beat_valid_q <= beat_valid_d;
      within_q     <= within_d;
      if (begins && run.is_write) sequence_q <= sequence_q + 1'b1;
    end
    beats_q      <= beats_d;
    lines_q      <= lines_d;
    tail_q       <= tail_d;
    kept_first_q <= kept_first_d;
    if (step) begin
      beat_q <= beat_d;
      data_q <= data_d;
      kept_q <= kept_d;
    end
    if (begins) shift_q <= 4'(HeadDwords) - run.address[5:2];
  end

  assign sent_valid_o = begins && run.is_write;
  assign sent_lines_o = run.lines;
  assign rq_tvalid_o  = beat_valid_q;
  assign rq_tlast_o   = beat_q.last;
  assign rq_tdata_o   = data_q;

  always_comb begin
    rq_tkeep_o = '1;
    rq_tuser_o = '0;
    if (rq_tlast_o) rq_tkeep_o = 16'((17'd2 << beat_q.tail) - 17'd1);
    rq_tuser_o[pcie_pkg::RqFirstBeLsb+:4] = beat_q.first_be;
    rq_tuser_o[pcie_pkg::RqLastBeLsb+:4]  = beat_q.last_be;
    rq_tuser_o[pcie_pkg::RqSeqLsb+:6]     = beat_q.number;
    rq_tuser_o[pcie_pkg::RqSopLsb]        = beat_q.first;
    rq_tuser_o[pcie_pkg::RqEopLsb]        = rq_tlast_o;
    rq_tuser_o[pcie_pkg::RqEopPtrLsb+:4]  = rq_tlast_o ? beat_q.tail : '0;
  end

  // Where its answer goes is not told to the host.
  logic unused_piece;
  assign unused_piece = ^{unused_reads, piece_i.lines, piece_i.line, piece_i.read_tag, piece_i.is_last,
                          wide[511:0]};

`ifndef SYNTHESIS
  logic         waiting_q, inside_q;
  logic [511:0] waiting_data_q;
  always_ff @(posedge clk_i) begin
    waiting_q      <= rst_ni && rq_tvalid_o && !rq_tready_i;
    waiting_data_q <= rq_tdata_o;
    inside_q       <= rst_ni && (rq_tvalid_o ? !(rq_tready_i && rq_tlast_o) : inside_q);
    if (rst_ni) begin
      assert (!dmawr_valid_i || (dmawr_bytes_i != '0 && dmawr_bytes_i <= 7'(nic_pkg::LineBytes)
                                 && 13'(dmawr_address_i[11:0]) + 13'(dmawr_bytes_i) <= 13'd4096))
        else $error("rq_adapter: a write of %0d bytes at %h", dmawr_bytes_i, dmawr_address_i);
      assert (!waiting_q || (rq_tvalid_o && rq_tdata_o == waiting_data_q))
        else $error("rq_adapter: a waiting beat changed");
      assert (!inside_q || rq_tvalid_o) else $error("rq_adapter: a pause inside a TLP");
      assert (!(beat_valid_q && beat_q.last) || !within_q)
        else $error("rq_adapter: a TLP has beats behind its last one");
      assert (unknown_q <= 5'd15) else $error("rq_adapter: %0d reads unknown", unknown_q);
      assert (!read_take || 5'(nph_av_i) > unknown_q) else $error("rq_adapter: a read without a credit");
    end
  end
`endif

endmodule

`default_nettype wire

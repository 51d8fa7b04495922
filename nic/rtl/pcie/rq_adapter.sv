// Sends DMA writes and reads as requests on the requester request stream of AMD's UltraScale+ PCIe block (512 bits,
// DW-aligned, PG213), one TLP a packet.
//
// Guarantees
//   - A write of 1 to 64 bytes at any address inside a 4 KiB page becomes one posted write with the byte enables of
//     just these bytes; a read becomes one request with the tag that it was given.
//   - Writes leave in the order in which they were taken, and a read behind every write that was taken before it (so it
//     never reads what the device has overwritten since). A write may leave in front of a read that came before it.
//   - Writes and reads take turns, so neither starves.
//   - A read is sent only while the block has a header credit for it (`nph_av_i`): reads never stand in front of writes
//     that could go, which PCIe asks of whoever must not deadlock.
//   - Writes carry sequence numbers from 32 on, one after the other, reads 0; see write_fence.sv for what they are for.
// Limits
//   - A line takes two beats where it is more than 48 bytes: 64 Gbps of whole lines at 250 MHz.
//   - nph_av_i is at most SettleCycles late with a read that the block has taken.
// Latency: 2 cycles for a write, 3 for a read. Cost: about 750 registers, 4 x 598 and 2 x 85 bits of LUTRAM.
// Twin in nic/model: none.

`default_nettype none

module rq_adapter #(
  // Cycles after which a read that the block has taken is no longer in nph_av_i, 1 to 15.
  parameter int unsigned SettleCycles = 4
) (
  input  logic         clk_i,
  input  logic         rst_ni,

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

  // s_axis_rq of the block.
  output logic         rq_tvalid_o,
  input  logic         rq_tready_i,
  output logic [511:0] rq_tdata_o,
  output logic [15:0]  rq_tkeep_o,
  output logic         rq_tlast_o,
  output logic [pcie_pkg::RqUserW-1:0] rq_tuser_o
);

  localparam int unsigned HeadDwords = 4;
  localparam int unsigned PayloadDwords = 17;
  // DWs of the payload in the first beat.
  localparam int unsigned FirstDwords = 16 - HeadDwords;

  if (SettleCycles < 1 || SettleCycles > 15) begin : g_bad_settle
    $fatal(1, "rq_adapter: SettleCycles must be 1 to 15");
  end

  // What is to be sent.
  typedef struct packed {
    logic         is_write;
    logic [63:0]  address;
    logic [12:0]  bytes;
    logic [7:0]   tag;
    logic [511:0] data;
  } request_t;

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

  // ---- Stage 1: requests in the order in which they leave. Whether there is room comes from a register.
  request_t   chosen, one;
  logic       one_valid, room, choose_read, last_read_q, take_write, two_load;
  logic [2:0] unused_requests;
  logic [4:0] sequence_q;

  fifo #(.Width($bits(request_t)), .Depth(4)) u_requests (
    .clk_i, .rst_ni, .push_valid_i(take_write || read_take), .push_ready_o(room), .push_data_i(chosen),
    .pop_valid_o(one_valid), .pop_ready_i(two_load), .pop_data_o(one), .count_o(unused_requests)
  );

  // ---- Stage 2: the TLP.
  typedef struct packed {
    logic [PayloadDwords-1:0][31:0] payload;
    pcie_pkg::rq_descriptor_t       head;
    logic [3:0]                     first_be;
    logic [3:0]                     last_be;
    logic [5:0]                     number;
    // DWs in the stream, and the lane of the last one in its beat.
    logic                           two_beats;
    logic [3:0]                     tail;
  } tlp_t;

  logic        two_valid_q, two_valid_d, second_q, second_d;
  tlp_t        tlp, tlp_q;
  logic [12:0] last_byte;
  logic [10:0] dwords;
  logic [4:0]  total;

  // ---- Reads that nph_av_i does not know yet.
  logic [SettleCycles-1:0] settling_q;
  logic [4:0]              unknown_q, unknown_d;
  logic                    may_read;

  assign may_read      = 5'(nph_av_i) > unknown_q;
  assign choose_read   = read_valid && may_read && (!dmawr_valid_i || !last_read_q);
  assign take_write    = dmawr_valid_i && dmawr_ready_o;
  assign read_take     = room && choose_read;
  assign dmawr_ready_o = room && !choose_read;
  assign two_load      = !two_valid_q || (rq_tready_i && rq_tlast_o);

  always_comb begin
    chosen      = '{!choose_read, choose_read ? read_address : dmawr_address_i,
                    choose_read ? read_bytes : 13'(dmawr_bytes_i), choose_read ? read_tag : '0, dmawr_data_i};
    two_valid_d = two_load ? one_valid : two_valid_q;
    second_d    = second_q;
    if (two_valid_q && rq_tready_i) second_d = !rq_tlast_o;
    unknown_d   = unknown_q + 5'(read_take) - 5'(settling_q[SettleCycles-1]);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      two_valid_q <= 1'b0;
      second_q    <= 1'b0;
      last_read_q <= 1'b0;
      sequence_q  <= '0;
      settling_q  <= '0;
      unknown_q   <= '0;
    end else begin
      two_valid_q <= two_valid_d;
      second_q    <= second_d;
      unknown_q   <= unknown_d;
      // A read that the block takes now.
      settling_q  <= SettleCycles'({settling_q, two_valid_q && rq_tready_i && !tlp_q.number[5]});
      if (take_write || read_take) last_read_q <= read_take;
      if (two_load && one_valid && one.is_write) sequence_q <= sequence_q + 1'b1;
    end
    if (two_load) tlp_q <= tlp;
  end

  always_comb begin
    // Of the last byte, counted from the first DW's lowest.
    last_byte         = one.bytes + 13'(one.address[1:0]) - 13'd1;
    dwords            = last_byte[12:2] + 11'd1;
    total             = 5'(HeadDwords) + 5'(dwords);
    tlp               = '0;
    tlp.head.req_type = one.is_write ? pcie_pkg::ReqMemWrite : pcie_pkg::ReqMemRead;
    tlp.head.dwords   = dwords;
    tlp.head.address  = one.address[63:2];
    tlp.head.tag      = one.tag;
    tlp.first_be      = 4'hf << one.address[1:0];
    tlp.last_be       = 4'hf >> (2'd3 - last_byte[1:0]);
    if (dwords == 11'd1) begin
      tlp.first_be = tlp.first_be & tlp.last_be;
      tlp.last_be  = '0;
    end
    tlp.payload       = {32'd0, one.data} << {one.address[1:0], 3'd0};
    tlp.number        = one.is_write ? {1'b1, sequence_q} : '0;
    tlp.two_beats     = one.is_write && total > 5'd16;
    // A read ends with its descriptor. Lanes of a second beat are counted from its own first.
    tlp.tail          = one.is_write ? 4'(total - 5'd1) : 4'(HeadDwords - 1);
  end

  assign rq_tvalid_o = two_valid_q;
  assign rq_tlast_o  = !tlp_q.two_beats || second_q;

  always_comb begin
    rq_tdata_o = {tlp_q.payload[FirstDwords-1:0], tlp_q.head};
    rq_tkeep_o = '1;
    rq_tuser_o = '0;
    if (second_q) rq_tdata_o = 512'(tlp_q.payload[PayloadDwords-1:FirstDwords]);
    if (rq_tlast_o) rq_tkeep_o = 16'((17'd2 << tlp_q.tail) - 17'd1);
    rq_tuser_o[pcie_pkg::RqFirstBeLsb+:4] = tlp_q.first_be;
    rq_tuser_o[pcie_pkg::RqLastBeLsb+:4]  = tlp_q.last_be;
    rq_tuser_o[pcie_pkg::RqSeqLsb+:6]     = tlp_q.number;
    rq_tuser_o[pcie_pkg::RqSopLsb]        = !second_q;
    rq_tuser_o[pcie_pkg::RqEopLsb]        = rq_tlast_o;
    rq_tuser_o[pcie_pkg::RqEopPtrLsb+:4]  = rq_tlast_o ? tlp_q.tail : '0;
  end

  // Where its answer goes is not told to the host.
  logic unused_piece;
  assign unused_piece = ^{unused_reads, unused_requests, piece_i.lines, piece_i.line, piece_i.read_tag,
                          piece_i.is_last};

`ifndef SYNTHESIS
  logic         waiting_q;
  logic [511:0] waiting_data_q;
  always_ff @(posedge clk_i) begin
    waiting_q      <= rst_ni && rq_tvalid_o && !rq_tready_i;
    waiting_data_q <= rq_tdata_o;
    if (rst_ni) begin
      assert (!dmawr_valid_i || (dmawr_bytes_i != '0 && dmawr_bytes_i <= 7'(nic_pkg::LineBytes)
                                 && 13'(dmawr_address_i[11:0]) + 13'(dmawr_bytes_i) <= 13'd4096))
        else $error("rq_adapter: a write of %0d bytes at %h", dmawr_bytes_i, dmawr_address_i);
      assert (!waiting_q || (rq_tvalid_o && rq_tdata_o == waiting_data_q))
        else $error("rq_adapter: a waiting beat changed");
      assert (unknown_q <= 5'd5 + 5'(SettleCycles)) else $error("rq_adapter: %0d reads unknown", unknown_q);
      assert (!read_take || 5'(nph_av_i) > unknown_q) else $error("rq_adapter: a read without a credit");
    end
  end
`endif

endmodule

`default_nettype wire

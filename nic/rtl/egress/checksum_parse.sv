// What of each beat of a frame a checksum covers: Ethernet, up to two VLAN tags, IPv4 or IPv6, TCP or UDP.
//
// The beats pass through a pipeline without waiting. The first one is looked at on the way, and what it says goes with
// those behind it. At the end each beat is given twice: with nothing left of it but what the transport checksum covers
// (the addresses of the pseudo header among it, its other words as numbers), and the same for the IPv4 header. The
// checksum's own place counts as zero, whatever stands there.
//
// Guarantees
//   - A beat comes out 8 cycles after it went in, and `told_*` of a frame one cycle after its last beat came out.
//   - `told_heads_o` has has_header for every IPv4 header that is well formed and inside the frame, and has_transport
//     for TCP and UDP in one that is not fragmented, and in IPv6 without extension headers, if lengths agree: at least
//     the header is there, all of it is inside the frame, and UDP's own length is that of IP.
// Limits: beats of a frame come in order, with any pauses. 802.1Q and 802.1ad tags are known, no other encapsulation.
// Latency: see above. Cost: part of checksum_insert's.
// Twin in nic/model: none, the model sends what it is given; in the bench nic/tb/egress/checksum_twin.py.

`default_nettype none

module checksum_parse (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         beat_valid_i,
  input  logic         beat_first_i,
  input  logic         beat_last_i,
  // Beats of this frame before this one.
  input  logic [7:0]   beat_number_i,
  input  logic [6:0]   beat_bytes_i,
  input  logic [511:0] beat_data_i,

  output logic         part_valid_o,
  output logic         part_first_o,
  output logic         part_last_o,
  output logic [511:0] part_transport_o,
  output logic [511:0] part_header_o,
  // Bytes of the pseudo header's length and protocol, at even and at odd places.
  output logic [7:0]   part_even_o,
  output logic [8:0]   part_odd_o,

  output logic         told_valid_o,
  output checksum_pkg::heads_t told_heads_o
);

  // ---- 0: as it came. 1: nothing behind the end; which types stand at the three places. 2: which of them counts.
  // 3: fields. 4: what they say. 5: lengths. 6: what is covered. 7: only that is left.
  logic [6:0]        valid_q, last_q;
  logic [5:0]        first_q;
  logic [6:0][511:0] data_q;
  logic [5:0][7:0]   number_q;
  logic [6:0]        bytes_q;
  logic [5:1][13:0]  size_q;

  always_ff @(posedge clk_i) begin
    valid_q  <= rst_ni ? {valid_q[5:0], beat_valid_i} : '0;
    first_q  <= {first_q[4:0], beat_valid_i && beat_first_i};
    last_q   <= {last_q[5:0], beat_last_i};
    number_q <= {number_q[4:0], beat_number_i};
    bytes_q  <= beat_bytes_i;
    // Bytes of the frame up to here. A whole beat is 64, which would carry into its number.
    size_q   <= {size_q[4:1], bytes_q[6] ? {number_q[0] + 8'd1, 6'd0} : {number_q[0], bytes_q[5:0]}};
  end

  logic [63:0] is_data;
  assign is_data = bytes_q[6] ? '1 : ~(64'hffff_ffff_ffff_ffff << bytes_q[5:0]);
  always_ff @(posedge clk_i) begin
    data_q[0] <= beat_data_i;
    for (int i = 0; i < 64; i++) data_q[1][i*8+:8] <= data_q[0][i*8+:8] & {8{is_data[i]}};
    data_q[6:2] <= data_q[5:1];
  end

  // ---- Types. In the order of the wire, most significant byte first.
  logic [2:0][15:0] types;
  logic [2:0]       tag_q, v4_q, v6_q, at_q, fields_at_q;
  logic             is_v4_q, is_v6_q;

  for (genvar i = 0; i < 3; i++) begin : g_type
    assign types[i] = {data_q[0][(12+4*i)*8+:8], data_q[0][(13+4*i)*8+:8]};
    always_ff @(posedge clk_i) begin
      tag_q[i] <= types[i] == 16'h8100 || types[i] == 16'h88a8;
      v4_q[i]  <= types[i] == 16'h0800;
      v6_q[i]  <= types[i] == 16'h86dd;
    end
  end

  logic [2:0] at;
  assign at = {tag_q[0] && tag_q[1], tag_q[0] && !tag_q[1], !tag_q[0]};
  always_ff @(posedge clk_i) begin
    at_q        <= at;
    fields_at_q <= at_q;
    is_v4_q     <= (at & v4_q) != '0;
    is_v6_q     <= (at & v6_q) != '0;
  end

  // ---- Fields of the network header, for it has one of three places.
  logic [2:0][79:0] fronts;
  logic [79:0]      front_d, front_q;
  logic             fields_v4_q, fields_v6_q;
  for (genvar i = 0; i < 3; i++) begin : g_front
    assign fronts[i] = data_q[2][(14+4*i)*8+:80];
  end
  assign front_d = (fronts[0] & {80{at_q[0]}}) | (fronts[1] & {80{at_q[1]}}) | (fronts[2] & {80{at_q[2]}});
  always_ff @(posedge clk_i) begin
    front_q     <= front_d;
    fields_v4_q <= is_v4_q;
    fields_v6_q <= is_v6_q;
  end

  logic [3:0]  version, ihl;
  logic [15:0] v4_bytes, v6_bytes;
  logic [7:0]  v4_protocol, v6_protocol, protocol;
  logic        is_fragment;
  assign {version, ihl} = front_q[7:0];
  assign v4_bytes       = {front_q[2*8+:8], front_q[3*8+:8]};
  assign v6_bytes       = {front_q[4*8+:8], front_q[5*8+:8]};
  // More fragments, or an offset; in the order of bytes.
  assign is_fragment    = (front_q[6*8+:8] & 8'h3f) != '0 || front_q[7*8+:8] != '0;
  assign v4_protocol    = front_q[9*8+:8];
  assign v6_protocol    = front_q[6*8+:8];
  assign protocol       = fields_v4_q ? v4_protocol : v6_protocol;

  // ---- What they say, from the first beat on until the next first one.
  logic        says_v4_q, says_v6_q, says_tcp_q, says_udp_q, says_whole_q;
  logic [1:0]  says_tags_q;
  logic [4:0]  says_quads_q;
  // Bytes behind the network header, with a sign, and of both.
  logic [16:0] says_transport_q, says_bytes_q;
  always_ff @(posedge clk_i) begin
    if (first_q[3]) begin
      says_v4_q        <= fields_v4_q && version == 4'd4 && ihl >= 4'd5;
      says_v6_q        <= fields_v6_q && version == 4'd6;
      says_tcp_q       <= protocol == 8'd6;
      says_udp_q       <= protocol == 8'd17;
      says_whole_q     <= !fields_v4_q || !is_fragment;
      says_tags_q      <= {fields_at_q[2], fields_at_q[1]};
      says_quads_q     <= 5'({fields_at_q[2], fields_at_q[1]}) + (fields_v4_q ? 5'(ihl) : 5'd10);
      says_transport_q <= fields_v4_q ? 17'(v4_bytes) - 17'({ihl, 2'b00}) : 17'(v6_bytes);
      says_bytes_q     <= fields_v4_q ? 17'(v4_bytes) : 17'(v6_bytes) + 17'd40;
    end
  end

  // ---- Lengths that can be.
  checksum_pkg::heads_t heads_q, covered_q, left_q;
  logic                 is_room, is_enough;
  assign is_room   = !says_transport_q[16];
  assign is_enough = says_transport_q[15:5] != '0 || (says_transport_q[4:0] >= (says_udp_q ? 5'd8 : 5'd20));
  always_ff @(posedge clk_i) begin
    heads_q.has_header      <= says_v4_q && is_room;
    heads_q.has_transport   <= (says_v4_q || says_v6_q) && says_whole_q && (says_tcp_q || says_udp_q) && is_room
                               && is_enough;
    heads_q.is_v4           <= says_v4_q;
    heads_q.is_udp          <= says_udp_q;
    heads_q.tags            <= says_tags_q;
    heads_q.quads           <= says_quads_q;
    heads_q.transport_bytes <= says_transport_q[15:0];
    heads_q.end_at          <= says_bytes_q + 17'd14 + 17'({says_tags_q, 2'b00});
  end

  // ---- What is covered of the beat, in 16-bit words, and in bytes where the end is.
  logic        is_second, is_whole_q, is_end_q, is_inside_q, is_first_q;
  logic [63:0] from_network, from_transport, transport_own, udp_length;
  logic [31:0] addresses, before_transport, header_own;
  logic [31:0] addresses_q, transport_q, header_q, length_q;
  logic [63:0] end_q;

  assign is_second      = number_q[5] == 8'd1;
  // Word 7 is where a network header without tags begins; the vectors are of the first two beats.
  assign from_network   = 64'hffff_ffff_ffff_ff80 << {heads_q.tags, 1'b0};
  assign from_transport = 64'hffff_ffff_ffff_ff80 << {heads_q.quads, 1'b0};
  assign header_own     = 32'h0000_1000 << {heads_q.tags, 1'b0};
  // Word 8 of a TCP header, 3 of one of UDP, whose word 2 is the length.
  assign transport_own  = (heads_q.is_udp ? 64'h0000_0000_0000_0400 : 64'h0000_0000_0000_8000) << {heads_q.quads, 1'b0};
  assign udp_length     = 64'h0000_0000_0000_0200 << {heads_q.quads, 1'b0};
  assign addresses      = (heads_q.is_v4 ? 32'h0001_e000 : 32'h07ff_f800) << {heads_q.tags, 1'b0};
  assign before_transport = number_q[5] == 8'd0 ? ~from_transport[31:0] : ~from_transport[63:32];

  always_ff @(posedge clk_i) begin
    covered_q   <= heads_q;
    is_first_q  <= first_q[5];
    is_whole_q  <= 11'(number_q[5]) < heads_q.end_at[16:6];
    is_end_q    <= 11'(number_q[5]) == heads_q.end_at[16:6];
    is_inside_q <= heads_q.end_at <= 17'(size_q[5]);
    end_q       <= ~(64'hffff_ffff_ffff_ffff << heads_q.end_at[5:0]);
    addresses_q <= first_q[5] ? addresses : '0;
    if (first_q[5]) begin
      transport_q <= from_transport[31:0] & ~transport_own[31:0];
      header_q    <= from_network[31:0] & before_transport & ~header_own;
      length_q    <= udp_length[31:0];
    end else begin
      transport_q <= is_second ? from_transport[63:32] & ~transport_own[63:32] : '1;
      header_q    <= is_second ? before_transport & from_network[63:32] : '0;
      length_q    <= is_second ? udp_length[63:32] : '0;
    end
  end

  // ---- Only that is left. The UDP length is in one of the first two beats.
  logic [63:0] covers, heads_cover;
  logic [15:0] length_d, length_got_q;
  logic        is_length, part_inside_q;
  always_comb begin
    length_d = '0;
    for (int i = 0; i < 32; i++) begin
      covers[i*2+:2]      = ({2{transport_q[i]}} & (end_q[i*2+:2] & {2{is_end_q}} | {2{is_whole_q}}))
                            | {2{addresses_q[i]}};
      heads_cover[i*2+:2] = {2{header_q[i]}};
      length_d           |= data_q[6][i*16+:16] & {16{length_q[i]}};
    end
  end
  assign is_length = length_q != '0;

  always_ff @(posedge clk_i) begin
    part_valid_o <= rst_ni && valid_q[6];
    part_first_o <= is_first_q;
    part_last_o  <= last_q[6];
    for (int i = 0; i < 64; i++) begin
      part_transport_o[i*8+:8] <= data_q[6][i*8+:8] & {8{covers[i]}};
      part_header_o[i*8+:8]    <= data_q[6][i*8+:8] & {8{heads_cover[i]}};
    end
    part_even_o   <= covered_q.transport_bytes[15:8];
    part_odd_o    <= 9'(covered_q.transport_bytes[7:0]) + (covered_q.is_udp ? 9'd17 : 9'd6);
    part_inside_q <= is_inside_q;
    left_q        <= covered_q;
    if (valid_q[6] && (is_first_q || is_length)) length_got_q <= length_d;
  end

  // ---- What was found, when all of it has been seen.
  logic is_agreed;
  assign is_agreed = {length_got_q[7:0], length_got_q[15:8]} == left_q.transport_bytes;
  always_ff @(posedge clk_i) begin
    told_valid_o               <= rst_ni && part_valid_o && part_last_o;
    told_heads_o               <= left_q;
    told_heads_o.has_header    <= left_q.has_header && part_inside_q;
    told_heads_o.has_transport <= left_q.has_transport && part_inside_q && (!left_q.is_udp || is_agreed);
  end

  // A third tag is a type like any other that is not known; service, time to live and hop limit say nothing here.
  logic unused;
  assign unused = &{1'b0, tag_q[2], fields_at_q[0], front_q[15:8], front_q[71:64]};

`ifndef SYNTHESIS
  logic next_first_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) next_first_q <= 1'b1;
    else if (beat_valid_i) next_first_q <= beat_last_i;
    if (rst_ni && beat_valid_i) begin
      a_first  : assert (beat_first_i == next_first_q);
      a_number : assert (beat_first_i == (beat_number_i == '0));
      a_bytes  : assert (beat_bytes_i != '0 && (beat_last_i ? beat_bytes_i <= 7'd64 : beat_bytes_i == 7'd64));
    end
  end
`endif

endmodule

`default_nettype wire

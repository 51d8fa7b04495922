// Which receive queue a frame goes to: one flow always to the same, flows spread over the queues.
//
// A hash over what names the flow (addresses and protocol of the network layer, ports where there are some
// and the packet is no fragment, otherwise the Ethernet addresses) modulo the number of queues that receive.
// Not keyed.
//
// Guarantees
//   - An index comes for every header that was taken, in order; it is below the number of queues at the time
//     at which the remainder began.
// Limits
//   - One header in 38 cycles a lane at most (IPv6 with ports), in 33 for IPv4.
// Latency: 3 cycles and that of a lane. Cost: Lanes x 700 and 1,600 registers. Twin:
// nic/model/src/rx/steer.rs.

`default_nettype none

module steer #(
  // Flows that are hashed at a time, a power of two from 1 to 16.
  parameter int unsigned Lanes = 4,
  // Bits of a number of queues.
  parameter int unsigned CountW = 11,
  localparam int unsigned HeadBytes = 80
) (
  input  logic                   clk_i,
  input  logic                   rst_ni,

  // The first bytes of a frame, byte 0 lowest, and how many there are.
  input  logic                   head_valid_i,
  output logic                   head_ready_o,
  input  logic [8*HeadBytes-1:0] head_data_i,
  input  logic [6:0]             head_bytes_i,

  input  logic [CountW-1:0]      queues_i,

  output logic                   index_valid_o,
  input  logic                   index_ready_i,
  output logic [CountW-1:0]      index_o
);

  localparam int unsigned FlowBytes = 36;
  localparam int unsigned LaneW = (Lanes > 1) ? $clog2(Lanes) : 1;
  // Where fields lie in a frame: an Ethernet header of 14 bytes, then IP.
  localparam int unsigned KindAt = 12;
  localparam int unsigned IpAt = 14;
  localparam int unsigned MacBytes = 12;
  // As read lowest byte first: 0x0800 and 0x86dd on the wire.
  localparam logic [15:0] KindIpv4 = 16'h0008;
  localparam logic [15:0] KindIpv6 = 16'hdd86;
  localparam logic [7:0]  ProtocolTcp = 8'd6;
  localparam logic [7:0]  ProtocolUdp = 8'd17;
  localparam logic [7:0]  ProtocolSctp = 8'd132;

  if (Lanes < 1 || Lanes > 16 || (Lanes & (Lanes - 1)) != 0) begin : g_bad_lanes
    $fatal(1, "steer: Lanes must be a power of two from 1 to 16");
  end

  // ---- Stage 1: what kind of packet it is. Stage 2: its flow.
  logic                   s1_valid_q, s1_v4_q, s1_v6_q, s1_ports_q, s2_valid_q, s1_move, s2_move;
  logic [8*HeadBytes-1:0] s1_data_q;
  logic [6:0]             s1_bytes_q, ports_end;
  logic [3:0]             s1_words_q, words;
  logic                   is_v4, is_v6, is_fragment, has_ports;
  logic [7:0]             protocol_v4, protocol_v6, protocol;
  logic [31:0]            ports_v4;
  logic [8*FlowBytes-1:0] s2_data_q;
  logic [5:0]             s2_bytes_q;
  logic [7:0]             s2_start_q;
  logic [511:0]           ports_of;

  logic [Lanes-1:0]             lane_ready, lane_valid;
  logic [Lanes-1:0][CountW-1:0] lane_index;
  logic [LaneW-1:0]             lane_in_q, lane_out_q;

  assign words       = head_data_i[8*IpAt +: 4];
  assign protocol_v4 = head_data_i[8*(IpAt+9) +: 8];
  assign protocol_v6 = head_data_i[8*(IpAt+6) +: 8];
  assign is_v4       = head_data_i[8*KindAt +: 16] == KindIpv4 && head_bytes_i >= 7'(IpAt + 20);
  assign is_v6       = head_data_i[8*KindAt +: 16] == KindIpv6 && head_bytes_i >= 7'(IpAt + 40);
  assign protocol    = is_v4 ? protocol_v4 : protocol_v6;
  assign is_fragment = is_v4 && (head_data_i[8*(IpAt+6) +: 6] != '0 || head_data_i[8*(IpAt+7) +: 8] != '0);
  assign ports_end   = 7'(IpAt + 4) + (is_v4 ? {1'b0, words, 2'd0} : 7'd40);
  assign has_ports   = (protocol == ProtocolTcp || protocol == ProtocolUdp || protocol == ProtocolSctp) &&
                       !is_fragment && head_bytes_i >= ports_end;

  // The ports lie behind a header of 0 to 15 words; it is taken at its word, as short as it may say it is.
  assign ports_of = s1_data_q[8*IpAt +: 512];
  assign ports_v4 = ports_of[{s1_words_q, 5'd0} +: 32];

  assign s2_move      = s2_valid_q && lane_ready[lane_in_q];
  assign s1_move      = s1_valid_q && !s2_valid_q;
  assign head_ready_o = !s1_valid_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      s1_valid_q <= 1'b0;
      s2_valid_q <= 1'b0;
    end else begin
      s1_valid_q <= head_valid_i && head_ready_o || s1_valid_q && !s1_move;
      s2_valid_q <= s1_move || s2_valid_q && !s2_move;
    end
    if (head_valid_i && head_ready_o) begin
      s1_data_q  <= head_data_i;
      s1_bytes_q <= head_bytes_i;
      s1_words_q <= words;
      s1_v4_q    <= is_v4;
      s1_v6_q    <= is_v6;
      s1_ports_q <= has_ports;
    end
    if (s1_move) begin
      if (s1_v4_q) begin
        s2_start_q <= s1_data_q[8*(IpAt+9) +: 8];
        s2_data_q  <= (8*FlowBytes)'({ports_v4, s1_data_q[8*(IpAt+12) +: 64]});
        s2_bytes_q <= s1_ports_q ? 6'd12 : 6'd8;
      end else if (s1_v6_q) begin
        s2_start_q <= s1_data_q[8*(IpAt+6) +: 8];
        s2_data_q  <= {s1_data_q[8*(IpAt+40) +: 32], s1_data_q[8*(IpAt+8) +: 256]};
        s2_bytes_q <= s1_ports_q ? 6'd36 : 6'd32;
      end else begin
        s2_start_q <= '0;
        s2_data_q  <= (8*FlowBytes)'(s1_data_q[8*MacBytes-1:0]);
        s2_bytes_q <= (s1_bytes_q < 7'(MacBytes)) ? s1_bytes_q[5:0] : 6'(MacBytes);
      end
    end
  end

  logic unused_bytes;
  assign unused_bytes = ^s1_data_q;

  // ---- The lanes, one after the other.
  for (genvar lane = 0; lane < int'(Lanes); lane++) begin : g_lane
    steer_lane #(.FlowBytes(FlowBytes), .CountW(CountW)) u_lane (
      .clk_i, .rst_ni,
      .flow_valid_i(s2_valid_q && lane_in_q == LaneW'(lane)), .flow_ready_o(lane_ready[lane]),
      .flow_start_i(s2_start_q), .flow_data_i(s2_data_q), .flow_bytes_i(s2_bytes_q),
      .queues_i,
      .index_valid_o(lane_valid[lane]), .index_ready_i(index_ready_i && lane_out_q == LaneW'(lane)),
      .index_o(lane_index[lane])
    );
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      lane_in_q  <= '0;
      lane_out_q <= '0;
    end else if (Lanes > 1) begin
      if (s2_move) lane_in_q <= lane_in_q + 1'b1;
      if (index_valid_o && index_ready_i) lane_out_q <= lane_out_q + 1'b1;
    end
  end

  assign index_valid_o = lane_valid[lane_out_q];
  assign index_o       = lane_index[lane_out_q];

endmodule

`default_nettype wire

// IPv4, TCP and UDP checksums, filled in on the way to the wire for frames that ask for it.
//
//   frames -> line RAM ---------------------------------> patch -> FIFO -> frames
//         \-> checksum_parse -> 2 x checksum_sum -> what to put in -^
//
// A checksum stands near the front of what it covers to the end, so a frame waits here until its last beat has been
// seen: this stage stores and forwards, whatever is in front of it.
//
// Guarantees
//   - Of a frame that asks: the header checksum of a well-formed IPv4 header is right when it leaves, and so is that of
//     TCP or UDP (over IPv4, or IPv6 without extension headers, behind up to two VLAN tags), whatever stood in their
//     places. A UDP checksum that comes out as 0 is sent as ffff. Fragments get the header's only.
//   - Every other byte, and every frame that does not ask, or is not understood (another protocol, lengths that do not
//     agree, a header that is not all there), leaves as it came. Which frames are understood: see checksum_parse.
//   - Frames keep their order, length and queue. No frame is offered before its last beat has come in. A beat that is
//     offered stands still until it is taken. Bytes behind a frame's end are not defined.
//   - A beat a cycle, and a frame a cycle, without gaps.
// Limits
//   - A frame of BufferLines beats or more never leaves; MaxFrameBytes is asserted.
//   - With Insert 0 there are only wires, and whether a frame asks does not matter.
// Latency: from a frame's last beat in to its first one out 22 cycles; none with Insert 0.
// Cost on UltraScale+ with the defaults: 15 RAMB18, 4,200 LUT, 4,300 registers, 384 LUTRAM, 566 SRL; nothing with
// Insert 0.
// Twin in nic/model: none, checksums are the host's there; in the bench nic/tb/egress/checksum_twin.py.

`default_nettype none

module checksum_insert #(
  // 0 leaves it out.
  parameter bit Insert = 1'b1,
  // Queues, 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // Longest frame, 64 to nic_pkg::MaxFrameBytes.
  parameter int unsigned MaxFrameBytes = 9216,
  // Lines of RAM: a power of two from 256 to 4096.
  parameter int unsigned BufferLines = 512,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  // Whether a frame asks is read in its first beat, its queue in its last one.
  input  logic              in_valid_i,
  output logic              in_ready_o,
  input  logic [511:0]      in_data_i,
  input  logic [6:0]        in_bytes_i,
  input  logic              in_last_i,
  input  logic [QueueW-1:0] in_queue_i,
  input  logic              in_asks_i,

  output logic              out_valid_o,
  input  logic              out_ready_i,
  output logic [511:0]      out_data_o,
  output logic [6:0]        out_bytes_o,
  output logic              out_last_o,
  output logic [QueueW-1:0] out_queue_o,

  // No beat is inside.
  output logic              is_idle_o
);

  if (NumQueues < 1 || NumQueues > nic_pkg::MaxQueues) begin : g_bad_queues
    $fatal(1, "checksum_insert: NumQueues must be 1 to 1024");
  end
  if (MaxFrameBytes < 64 || MaxFrameBytes > nic_pkg::MaxFrameBytes) begin : g_bad_frame
    $fatal(1, "checksum_insert: MaxFrameBytes must be 64 to the longest frame that a port carries");
  end
  if (BufferLines < 256 || BufferLines > 4096 || (BufferLines & (BufferLines - 1)) != 0) begin : g_bad_buffer
    $fatal(1, "checksum_insert: BufferLines must be a power of two from 256 to 4096");
  end

  if (!Insert) begin : g_wires
    assign {out_valid_o, out_data_o, out_bytes_o, out_last_o, out_queue_o}
      = {in_valid_i, in_data_i, in_bytes_i, in_last_i, in_queue_i};
    assign in_ready_o = out_ready_i;
    assign is_idle_o  = !in_valid_i;
    logic unused;
    assign unused = &{1'b0, clk_i, rst_ni, in_asks_i};
  end else begin : g_insert
    localparam int unsigned LineW = $clog2(BufferLines);
    // Frames whose beats have come in and whose checksums are not in use yet; and cycles from a frame's last beat to
    // its checksums, in checksum_parse and checksum_sum.
    localparam int unsigned Frames = 64;
    localparam int unsigned CountW = $clog2(Frames);
    localparam int unsigned ToldToSum = 8;
    localparam int unsigned EndW = 8 + 7 + QueueW;
    localparam int unsigned PatchW = $bits(checksum_pkg::patch_t);

    // ---------------------------------------------------------------------------- in
    logic              take, first_q, asks_q;
    logic [7:0]        number_q;
    logic [LineW-1:0]  write_q, read_q;
    // Lines and frames inside; what is free is known a cycle late, hence a margin.
    logic [LineW:0]    lines_q;
    logic [CountW:0]   frames_q;
    logic              read_line, read_frame, has_room_q;

    assign take       = in_valid_i && in_ready_o;
    assign in_ready_o = has_room_q;

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        first_q    <= 1'b1;
        number_q   <= '0;
        write_q    <= '0;
        lines_q    <= '0;
        frames_q   <= '0;
        has_room_q <= 1'b0;
      end else begin
        if (take) begin
          first_q  <= in_last_i;
          number_q <= in_last_i ? '0 : number_q + 1'b1;
          write_q  <= write_q + 1'b1;
        end
        lines_q    <= lines_q + (LineW + 1)'(take) - (LineW + 1)'(read_line);
        frames_q   <= frames_q + (CountW + 1)'(take && in_last_i) - (CountW + 1)'(read_frame);
        has_room_q <= lines_q < (LineW + 1)'(BufferLines - 2) && frames_q < (CountW + 1)'(Frames - 2);
      end
      if (take && first_q) asks_q <= in_asks_i;
    end

    (* ram_style = "block" *)
    logic [511:0] lines [BufferLines];
    logic [511:0] line_q, line2_q;
    always_ff @(posedge clk_i) begin
      if (take) lines[write_q] <= in_data_i;
      line_q  <= lines[read_q];
      line2_q <= line_q;
    end

    // ---------------------------------------------------------------------------- what is to be put in
    logic                 part_valid, part_first, part_last, told_valid, header_valid, transport_valid;
    logic [511:0]         part_transport, part_header;
    logic [7:0]           part_even;
    logic [8:0]           part_odd;
    logic [15:0]          header_sum, transport_sum;
    checksum_pkg::heads_t told_heads, heads;
    checksum_pkg::heads_t [ToldToSum-1:0] heads_q;

    checksum_parse u_parse (
      .clk_i, .rst_ni, .beat_valid_i(take), .beat_first_i(first_q), .beat_last_i(in_last_i),
      .beat_number_i(number_q), .beat_bytes_i(in_bytes_i), .beat_data_i(in_data_i),
      .part_valid_o(part_valid), .part_first_o(part_first), .part_last_o(part_last),
      .part_transport_o(part_transport), .part_header_o(part_header), .part_even_o(part_even), .part_odd_o(part_odd),
      .told_valid_o(told_valid), .told_heads_o(told_heads)
    );
    checksum_sum u_header (
      .clk_i, .rst_ni, .part_valid_i(part_valid), .part_first_i(part_first), .part_last_i(part_last),
      .part_data_i(part_header), .part_even_i('0), .part_odd_i('0), .sum_valid_o(header_valid), .sum_o(header_sum)
    );
    checksum_sum u_transport (
      .clk_i, .rst_ni, .part_valid_i(part_valid), .part_first_i(part_first), .part_last_i(part_last),
      .part_data_i(part_transport), .part_even_i(part_even), .part_odd_i(part_odd),
      .sum_valid_o(transport_valid), .sum_o(transport_sum)
    );
    always_ff @(posedge clk_i) heads_q <= {heads_q[ToldToSum-2:0], told_heads};
    assign heads = heads_q[ToldToSum-1];

    // Word 8 of a TCP header, 3 of one of UDP; words of the frame begin at 7, and a second beat at 32.
    checksum_pkg::patch_t patch;
    logic [6:0]           word;
    assign word = 7'd7 + {1'b0, heads.quads, 1'b0} + (heads.is_udp ? 7'd3 : 7'd8);
    always_comb begin
      patch.header           = heads.has_header;
      patch.header_value     = header_sum;
      patch.tags             = heads.tags;
      patch.transport        = heads.has_transport;
      patch.transport_value  = (heads.is_udp && transport_sum == '0) ? '1 : transport_sum;
      patch.transport_word   = word[4:0];
      patch.transport_second = word[5];
    end

    // Ends of frames wait for their checksums, and both for their turn.
    logic              end_room, end_valid, end_asks, patch_room, patch_valid;
    logic [EndW:0]     end_front;
    logic [7:0]        end_number;
    logic [6:0]        end_bytes;
    logic [QueueW-1:0] end_queue;
    checksum_pkg::patch_t patch_front;

    fifo #(.Width(EndW + 1), .Depth(Frames)) u_ends (
      .clk_i, .rst_ni, .push_valid_i(take && in_last_i), .push_ready_o(end_room),
      .push_data_i({first_q ? in_asks_i : asks_q, number_q, in_bytes_i, in_queue_i}),
      .pop_valid_o(end_valid), .pop_ready_i(read_frame), .pop_data_o(end_front), .count_o()
    );
    assign {end_asks, end_number, end_bytes, end_queue} = end_front;
    fifo #(.Width(PatchW), .Depth(Frames)) u_patches (
      .clk_i, .rst_ni, .push_valid_i(transport_valid), .push_ready_o(patch_room), .push_data_i(patch),
      .pop_valid_o(patch_valid), .pop_ready_i(read_frame), .pop_data_o(patch_front), .count_o()
    );

    // ---------------------------------------------------------------------------- out
    // A line is read when the FIFO at the end has room for it and for all that are on their way.
    localparam int unsigned OutDepth = 8;
    localparam int unsigned OutW = 512 + 7 + 1 + QueueW;
    typedef struct packed {
      logic              valid;
      logic              first;
      logic              second;
      logic              last;
      logic [6:0]        bytes;
      logic [QueueW-1:0] queue_id;
      checksum_pkg::patch_t patch;
    } read_t;
    read_t                     read_d, read1_q, read2_q, read3_q;
    logic [7:0]                at_q;
    logic                      can_read, is_last, out_pop;
    logic [$clog2(OutDepth):0] room_q;
    logic [31:0]               header_word_q, transport_word_q;
    logic [511:0]              line3_q, patched;
    logic                      out_room;

    assign can_read   = patch_valid && room_q != '0;
    assign is_last    = at_q == end_number;
    assign read_line  = can_read;
    assign read_frame = can_read && is_last;
    assign out_pop    = out_valid_o && out_ready_i;

    always_comb begin
      read_d                 = '0;
      read_d.valid           = can_read;
      read_d.first           = at_q == 8'd0;
      read_d.second          = at_q == 8'd1;
      read_d.last            = is_last;
      read_d.bytes           = is_last ? end_bytes : 7'd64;
      read_d.queue_id        = end_queue;
      read_d.patch           = patch_front;
      read_d.patch.header    = patch_front.header && end_asks;
      read_d.patch.transport = patch_front.transport && end_asks;
    end

    always_ff @(posedge clk_i) begin
      if (!rst_ni) begin
        at_q    <= '0;
        read_q  <= '0;
        room_q  <= ($clog2(OutDepth) + 1)'(OutDepth);
        read1_q <= '0;
        read2_q <= '0;
        read3_q <= '0;
      end else begin
        if (can_read) begin
          at_q   <= is_last ? '0 : at_q + 1'b1;
          read_q <= read_q + 1'b1;
        end
        room_q  <= room_q - ($clog2(OutDepth) + 1)'(can_read) + ($clog2(OutDepth) + 1)'(out_pop);
        read1_q <= read_d;
        read2_q <= read1_q;
        read3_q <= read2_q;
      end
      // Word 12 of a frame without tags is the header checksum; it is in the first beat always.
      header_word_q    <= {32{read2_q.first && read2_q.patch.header}} & (32'h0000_1000 << {read2_q.patch.tags, 1'b0});
      transport_word_q <= {32{read2_q.patch.transport
                              && (read2_q.patch.transport_second ? read2_q.second : read2_q.first)}}
                          & (32'd1 << read2_q.patch.transport_word);
      line3_q          <= line2_q;
    end

    always_comb begin
      for (int i = 0; i < 32; i++) begin
        patched[i*16+:16] = (line3_q[i*16+:16] & {16{!header_word_q[i] && !transport_word_q[i]}})
                            | (read3_q.patch.header_value & {16{header_word_q[i]}})
                            | (read3_q.patch.transport_value & {16{transport_word_q[i]}});
      end
    end

    fifo #(.Width(OutW), .Depth(OutDepth)) u_out (
      .clk_i, .rst_ni, .push_valid_i(read3_q.valid), .push_ready_o(out_room),
      .push_data_i({read3_q.last, read3_q.queue_id, read3_q.bytes, patched}),
      .pop_valid_o(out_valid_o), .pop_ready_i(out_ready_i),
      .pop_data_o({out_last_o, out_queue_o, out_bytes_o, out_data_o}), .count_o()
    );
    assign is_idle_o = lines_q == '0 && room_q == ($clog2(OutDepth) + 1)'(OutDepth);

`ifndef SYNTHESIS
    logic         stalled_q;
    logic [OutW-1:0] stalled_beat_q;
    always_ff @(posedge clk_i) begin
      stalled_q      <= rst_ni && out_valid_o && !out_ready_i;
      stalled_beat_q <= {out_last_o, out_queue_o, out_bytes_o, out_data_o};
      if (rst_ni) begin
        a_room_for_end   : assert (end_room || !(take && in_last_i));
        a_room_for_patch : assert (patch_room || !transport_valid);
        a_room_for_out   : assert (out_room || !read3_q.valid);
        a_room_for_line  : assert (32'(lines_q) < BufferLines || !take);
        a_end_first      : assert (!patch_valid || end_valid);
        a_together       : assert (header_valid == transport_valid);
        a_not_too_long   : assert (!take || 32'(number_q) * 64 + 32'(in_bytes_i) <= MaxFrameBytes);
        a_stands         : assert (!stalled_q || (out_valid_o
                                   && stalled_beat_q == {out_last_o, out_queue_o, out_bytes_o, out_data_o}));
      end
    end
`endif
    logic unused;
    assign unused = &{1'b0, end_room, end_valid, patch_room, out_room, header_valid, told_valid, word[6], heads.is_v4,
                      heads.transport_bytes, heads.end_at, read3_q.first, read3_q.second, read3_q.patch.header,
                      read3_q.patch.transport, read3_q.patch.tags, read3_q.patch.transport_word,
                      read3_q.patch.transport_second};
  end

endmodule

`default_nettype wire

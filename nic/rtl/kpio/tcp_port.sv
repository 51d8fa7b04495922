// Finds the TCP destination port of frames, as they pass by.
//
// Host and device must agree to the byte on what a frame's port is, so this is beeline_spec::flow in hardware: any
// number of VLAN tags, IPv4 with any header length, IPv6 with hop-by-hop, routing and destination options; a fragment
// that is not the first, and everything that is no TCP or ends too early, has no port.
//
// Guarantees
//   - One answer a frame, in order; an answer may come before the frame has ended.
//   - Whatever a frame holds, it is passed in bounded time: each step moves on by at least 4 bytes.
// Limits
//   - A beat stands while a step looks into it: 3 cycles a step, so 6 for a frame of one beat without tags and
//     extension headers, 3 more for each of those. A beat without a step takes one cycle.
//   - With `enable_i` low nothing is looked at: a beat a cycle, and no frame has a port. It counts when the answer
//     comes.
// Latency: 6 cycles from a frame's first beat to its answer, without tags and extensions.
// Cost: about 850 registers, about 500 LUT. Twin: spec/src/flow.rs (tcp_destination_port).

`default_nettype none

module tcp_port (
  input  logic         clk_i,
  input  logic         rst_ni,

  input  logic         enable_i,

  // Beats of frames; `beat_ready_o` goes with `beat_valid_i` as elsewhere.
  input  logic         beat_valid_i,
  output logic         beat_ready_o,
  input  logic [511:0] beat_data_i,
  input  logic [6:0]   beat_bytes_i,
  input  logic         beat_last_i,

  output logic         port_valid_o,
  input  logic         port_ready_i,
  output logic         port_found_o,
  output logic [15:0]  port_o
);

  // Words of 4 bytes, in which everything that is looked at begins. The last words of the beat before stand in front of
  // this beat's, so that a step may look across beats.
  localparam int unsigned LookWords = 3;
  localparam int unsigned KeptWords = 4;
  localparam int unsigned Words = KeptWords + 16;
  // The Ethernet type stands in front of 12 bytes.
  localparam int unsigned FirstWord = 3;
  localparam int unsigned AtW = 11;

  localparam logic [15:0] TypeIpv4 = 16'h0800;
  localparam logic [15:0] TypeIpv6 = 16'h86dd;
  localparam logic [15:0] TypeVlan = 16'h8100;
  localparam logic [15:0] TypeServiceVlan = 16'h88a8;
  localparam logic [7:0]  ProtocolTcp = 8'd6;

  // What is looked for, and how far that is.
  typedef enum logic [2:0] {StType, StOption, StPort, StAnswer, StRest} state_e;
  typedef enum logic [1:0] {PhaseLook, PhaseJudge, PhaseMove} phase_e;

  state_e                state_q, state_d, next_q, next_d;
  phase_e                phase_q, phase_d;
  logic                  valid_q, last_q, answers;
  logic [511:0]          data_q;
  logic [127:0]          kept_q;
  logic [6:0]            bytes_q;
  // Word at which the next step looks, counted from the kept ones on.
  logic [AtW-1:0]        at_q, at_d;
  logic [9:0]            move_q, move_d;
  logic                  found_q;
  logic [15:0]           port_q;

  logic                  fits, consume;
  logic [32*Words-1:0]   words;
  logic [32*LookWords-1:0] look, look_q;
  // The port's bytes are within the frame.
  logic                  there, there_q, is_inside, inside_q;
  logic [7:0]            frame_left;
  logic [15:0]           ether_type;
  logic [12:0]           fragment;
  logic                  unused_look;
  logic                  is_vlan, is_tcp4, is_ip6;

  assign words      = {data_q, kept_q};
  assign fits       = at_q <= AtW'(Words - LookWords);
  // In the last beat a step looks at what is left.
  assign frame_left = 8'(KeptWords * 4) + 8'(bytes_q);

  // First cycle of a step: the words. A step that looks wholly behind the frame's end is the last one. One that looks
  // across it may misread what stands there, but that leads on to a place behind the end; so of the port alone it must
  // be known that all of it is the frame's.
  assign look      = words[32 * at_q[4:0] +: 32 * LookWords];
  assign is_inside = !last_q || {at_q, 2'b00} < 13'(frame_left);
  assign there     = !last_q || {at_q, 2'b00} + 13'd2 <= 13'(frame_left);

  // Second cycle. Bytes of a frame lie from low to high; numbers in it are big-endian.
  assign ether_type = {look_q[7:0], look_q[15:8]};
  assign fragment   = {look_q[68:64], look_q[79:72]};
  // Addresses, lengths, flags, time to live.
  assign unused_look = ^{look_q[87:80], look_q[63:32]};
  assign is_vlan    = ether_type == TypeVlan || ether_type == TypeServiceVlan;
  // Version, a header of at least five words, protocol, and the first fragment.
  assign is_tcp4    = ether_type == TypeIpv4 && look_q[23:20] == 4'd4 && look_q[19:16] >= 4'd5
                   && look_q[95:88] == ProtocolTcp && fragment == '0;
  assign is_ip6     = ether_type == TypeIpv6 && look_q[23:20] == 4'd6;

  // A header that carries its length and the next one's type, or the one that is sought.
  function automatic logic is_option(input logic [7:0] next);
    return next == 8'd0 || next == 8'd43 || next == 8'd60;
  endfunction

  // Where the next step looks, in words from here: behind a tag; at an IPv6 option (bytes 2 and 3 of its word) or, one
  // word behind the beginning of a TCP header, at the port.
  always_comb begin
    next_d = StAnswer;
    move_d = '0;
    if (!inside_q) begin
      next_d = StAnswer;
    end else if (state_q == StType) begin
      if (is_vlan) begin
        next_d = StType;
        move_d = 10'd1;
      end else if (is_tcp4) begin
        next_d = StPort;
        move_d = 10'(look_q[19:16]) + 10'd1;
      end else if (is_ip6 && look_q[71:64] == ProtocolTcp) begin
        next_d = StPort;
        move_d = 10'd11;
      end else if (is_ip6 && is_option(look_q[71:64])) begin
        next_d = StOption;
        move_d = 10'd10;
      end
    end else if (state_q == StOption) begin
      // The length is in units of 8 bytes, the first not counted.
      if (look_q[23:16] == ProtocolTcp) begin
        next_d = StPort;
        move_d = {1'b0, look_q[31:24], 1'b0} + 10'd3;
      end else if (is_option(look_q[23:16])) begin
        next_d = StOption;
        move_d = {1'b0, look_q[31:24], 1'b0} + 10'd2;
      end
    end
  end

  always_comb begin
    state_d = state_q;
    phase_d = phase_q;
    at_d    = at_q;
    consume = 1'b0;
    answers = 1'b0;
    unique case (state_q)
      StAnswer: answers = 1'b1;
      StRest:   consume = valid_q;
      default: begin
        if (valid_q && state_q == StType && !enable_i) begin
          answers = 1'b1;
        end else if (valid_q) begin
          unique case (phase_q)
            PhaseLook: begin
              if (fits || last_q) begin
                phase_d = PhaseJudge;
              end else begin
                consume = 1'b1;
                at_d    = at_q - AtW'(16);
              end
            end
            PhaseJudge: begin
              phase_d = PhaseMove;
              if (state_q == StPort) state_d = StAnswer;
            end
            default: begin
              phase_d = PhaseLook;
              state_d = next_q;
              at_d    = at_q + AtW'(move_q);
            end
          endcase
        end
      end
    endcase
    if (answers && port_ready_i) consume = valid_q;
    if (answers && port_ready_i) state_d = StRest;
    if (consume && last_q) begin
      state_d = StType;
      phase_d = PhaseLook;
      at_d    = AtW'(KeptWords + FirstWord);
    end
  end

  assign beat_ready_o = !valid_q || consume;
  assign port_valid_o = answers;
  assign port_found_o = found_q && state_q == StAnswer;
  assign port_o       = port_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      valid_q <= 1'b0;
      state_q <= StType;
      phase_q <= PhaseLook;
      at_q    <= AtW'(KeptWords + FirstWord);
    end else begin
      if (beat_ready_o) valid_q <= beat_valid_i;
      state_q <= state_d;
      phase_q <= phase_d;
      at_q    <= at_d;
    end
    if (beat_ready_o && beat_valid_i) begin
      data_q  <= beat_data_i;
      bytes_q <= beat_bytes_i;
      last_q  <= beat_last_i;
      kept_q  <= data_q[511:384];
    end
    look_q  <= look;
    there_q  <= there;
    inside_q <= is_inside;
    next_q  <= next_d;
    move_q  <= move_d;
    if (phase_q == PhaseJudge) begin
      found_q <= state_q == StPort && there_q;
      port_q  <= {look_q[7:0], look_q[15:8]};
    end
  end

`ifndef SYNTHESIS
  logic waits_q;
  always_ff @(posedge clk_i) begin
    waits_q <= rst_ni && port_valid_o && !port_ready_i && state_q == StAnswer;
    if (rst_ni) begin
      // An answer stands until it is taken, and a frame's last beat does not pass without one.
      assert (!waits_q || port_valid_o);
      assert (!(consume && last_q) || state_q == StRest || (answers && port_ready_i));
    end
  end
`endif

endmodule

`default_nettype wire

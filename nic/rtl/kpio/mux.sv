// The MUX of kPIO+WC: which frames may go out by which of the two transmit paths.
//
// One path for all traffic, set by a control bit, or a range of TCP ports that travels by kPIO while everything else
// travels by descriptors (Larsen & Lee, NAS'15, §III.B). The host decides by which path it hands a frame over; a frame
// that came by the other one is dropped and counted, because it shows a driver that disagrees with the device.
//
// Guarantees
//   - A frame is either forwarded whole and unchanged or dropped whole; the order is kept. A beat that is offered
//     stands still until it is taken.
//   - A frame is judged by the registers as they are when its header has been read, within 300 cycles of its begin.
// Limits
//   - Cut-through: a frame whose judgement is fast begins to leave before its end has come in. So what feeds this
//     module offers complete frames without gaps, as the transmit engines do.
//   - ControlMuxByPort alone reads headers, see tcp_port: 6 cycles for a frame of one beat. The other modes take a beat
//     a cycle.
//   - Frames of other engines do not pass here.
// Latency: 3 cycles without ports, 9 with. Cost: 256 x (520 + QueueW) bits of RAM for the frames that wait for their
// judgement, and tcp_port. Twin: nic/model/src/kpio/mux.rs.

`default_nettype none

module mux #(
  // Bits of a queue's number.
  parameter int unsigned QueueW = 6,
  // Beats that may wait, a power of two: at least those of the longest frame, which has to come in before it is judged
  // if its header is as long as it.
  parameter int unsigned Depth = 256
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  // CONTROL.mux and MUX_PORTS.
  input  nic_pkg::control_mux_e mux_i,
  input  logic [15:0]       first_port_i,
  input  logic [15:0]       last_port_i,

  // Frames in, by kPIO or by descriptors.
  input  logic              in_valid_i,
  output logic              in_ready_o,
  input  logic [511:0]      in_data_i,
  input  logic [6:0]        in_bytes_i,
  input  logic              in_last_i,
  input  logic [QueueW-1:0] in_queue_i,
  input  logic              in_kpio_i,

  // Frames out.
  output logic              out_valid_o,
  input  logic              out_ready_i,
  output logic [511:0]      out_data_o,
  output logic [6:0]        out_bytes_o,
  output logic              out_last_o,
  output logic [QueueW-1:0] out_queue_o,
  output logic              out_kpio_o,

  output logic              count_mux_mismatches_o
);

  localparam int unsigned AddressW = $clog2(Depth);
  localparam int unsigned BeatW = 512 + 7 + 1 + QueueW + 1;
  // Judgements that may wait.
  localparam int unsigned Judgements = 16;

  logic [BeatW-1:0]    beats [Depth];
  logic [BeatW-1:0]    beat_q;
  logic [AddressW-1:0] write_q, read_q, next_q, used;
  logic                beat_valid_q, room_q, push, pop;

  logic                port_ready, port_valid, port_found, judge_ready, beat_ready;
  logic [15:0]         port;
  logic                path_ready, path_valid, path_kpio, first_q;
  logic                in_range, forwards, judged_valid_q, judged_forward_q, judge_load;
  logic                outcome_valid, outcome_forward, ends;
  logic [$clog2(Judgements):0] unused_paths, unused_outcomes;

  // ---- Frames wait here.
  assign in_ready_o = room_q && beat_ready && path_ready;
  assign push       = in_valid_i && in_ready_o;
  assign used       = write_q - read_q;

  always_ff @(posedge clk_i) begin
    if (push) beats[write_q] <= {in_kpio_i, in_queue_i, in_last_i, in_bytes_i, in_data_i};
    beat_q <= beats[pop ? next_q : read_q];
    if (!rst_ni) begin
      write_q      <= '0;
      read_q       <= '0;
      next_q       <= AddressW'(1);
      beat_valid_q <= 1'b0;
      room_q       <= 1'b0;
      first_q      <= 1'b1;
    end else begin
      write_q      <= AddressW'(write_q + AddressW'(push));
      read_q       <= pop ? next_q : read_q;
      next_q       <= pop ? next_q + 1'b1 : next_q;
      beat_valid_q <= pop ? next_q != write_q : read_q != write_q;
      room_q       <= used < AddressW'(Depth - 3);
      if (push) first_q <= in_last_i;
    end
  end
  assign {out_kpio_o, out_queue_o, out_last_o, out_bytes_o, out_data_o} = beat_q;

  // ---- Their ports are sought as they come in; the path of each waits for the answer.
  tcp_port u_tcp_port (
    .clk_i,
    .rst_ni,
    .enable_i     (mux_i == nic_pkg::ControlMuxByPort),
    .beat_valid_i (push),
    .beat_ready_o (beat_ready),
    .beat_data_i  (in_data_i),
    .beat_bytes_i (in_bytes_i),
    .beat_last_i  (in_last_i),
    .port_valid_o (port_valid),
    .port_ready_i (port_ready),
    .port_found_o (port_found),
    .port_o       (port)
  );

  fifo #(.Width(1), .Depth(Judgements)) u_paths (
    .clk_i,
    .rst_ni,
    .push_valid_i (push && first_q),
    .push_ready_o (path_ready),
    .push_data_i  (in_kpio_i),
    .pop_valid_o  (path_valid),
    .pop_ready_i  (port_valid && port_ready),
    .pop_data_o   (path_kpio),
    .count_o      (unused_paths)
  );

  // ---- The judgement.
  assign in_range   = port_found && first_port_i <= port && port <= last_port_i;
  assign judge_load = !judged_valid_q || judge_ready;
  assign port_ready = judge_load;

  always_comb begin
    unique case (mux_i)
      nic_pkg::ControlMuxDescriptor: forwards = !path_kpio;
      nic_pkg::ControlMuxKpio:       forwards = path_kpio;
      nic_pkg::ControlMuxByPort:     forwards = in_range == path_kpio;
      default:                       forwards = 1'b1;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) judged_valid_q <= 1'b0;
    else if (judge_load) judged_valid_q <= port_valid;
    if (judge_load) judged_forward_q <= forwards;
  end

  fifo #(.Width(1), .Depth(Judgements)) u_outcomes (
    .clk_i,
    .rst_ni,
    .push_valid_i (judged_valid_q),
    .push_ready_o (judge_ready),
    .push_data_i  (judged_forward_q),
    .pop_valid_o  (outcome_valid),
    .pop_ready_i  (ends),
    .pop_data_o   (outcome_forward),
    .count_o      (unused_outcomes)
  );

  // ---- Frames leave, or fall.
  assign out_valid_o = beat_valid_q && outcome_valid && outcome_forward;
  assign pop         = beat_valid_q && outcome_valid && (out_ready_i || !outcome_forward);
  assign ends        = pop && out_last_o;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) count_mux_mismatches_o <= 1'b0;
    else         count_mux_mismatches_o <= ends && !outcome_forward;
  end

  if (QueueW < 1 || QueueW > 10) begin : g_bad_queue
    $fatal(1, "mux: QueueW must be 1 to 10");
  end
  if (Depth * nic_pkg::LineBytes < nic_pkg::MaxFrameBytes + 256
      || (Depth & (Depth - 1)) != 0) begin : g_bad_depth
    $fatal(1, "mux: Depth must be a power of two with room for the longest frame");
  end

`ifndef SYNTHESIS
  logic             wait_q;
  logic [BeatW-1:0] wait_beat_q;
  always_ff @(posedge clk_i) begin
    wait_q      <= rst_ni && out_valid_o && !out_ready_i;
    wait_beat_q <= beat_q;
    if (rst_ni) begin
      // An offered beat stands still.
      assert (!wait_q || (out_valid_o && beat_q == wait_beat_q));
      // A judgement is of a frame that has come.
      assert (!(port_valid && port_ready) || path_valid);
      assert (!push || used != '1);
    end
  end
`endif

endmodule

`default_nettype wire

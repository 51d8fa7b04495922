// What is counted of frames that began before all of them was there: they count when it is known that they left whole.
//
// Guarantees: the sum of `count_bytes_o` is that of the bytes of frames that were told to be whole; none is counted twice.
// Limits: of the next such frame no beat leaves before what became of the last one was told.
// Latency: 128 bytes a cycle from the cycle after that. Cost: 30 registers. Twin: next of nic/model/src/nic.rs.

`default_nettype none

module early_account (
  input  logic       clk_i,
  input  logic       rst_ni,

  // A beat of an early frame leaves the engines. One that spoils its frame is none of it.
  input  logic       beat_valid_i,
  input  logic [6:0] beat_bytes_i,
  // What became of the frame whose last beat has left.
  input  logic       shown_valid_i,
  input  logic       shown_bad_i,

  output logic       count_frames_o,
  // 0 to 128.
  output logic [7:0] count_bytes_o,
  output logic       is_idle_o
);

  logic [14:0] sent_q, owed_q, less;
  logic        is_good;

  assign is_good        = shown_valid_i && !shown_bad_i;
  assign count_frames_o = is_good;
  assign count_bytes_o  = (owed_q[14:7] != '0) ? 8'd128 : owed_q[7:0];
  assign less           = owed_q - 15'(count_bytes_o);
  assign is_idle_o      = owed_q == '0 && !shown_valid_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      sent_q <= '0;
      owed_q <= '0;
    end else begin
      if (shown_valid_i) sent_q <= '0;
      else if (beat_valid_i) sent_q <= sent_q + 15'(beat_bytes_i);
      owed_q <= less + (is_good ? sent_q : '0);
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_one_at_a_time : assert (!(shown_valid_i && beat_valid_i));
      a_no_overflow   : assert (!is_good || (sent_q <= 15'(nic_pkg::MaxFrameBytes) && !less[14]));
    end
  end
`endif

endmodule

`default_nettype wire

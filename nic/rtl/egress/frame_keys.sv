// What is known of the frames of one stream that wait for their turn: the oldest three, the first two of them visible.
//
// The arbiter decides a frame a cycle, so it must know the frame behind the one that it lets go: two are visible at
// once, and a third place keeps both filled when one leaves and one comes in every cycle.
//
// Guarantees
//   - Keys leave in the order in which they came, none lost, none twice.
//   - `room_o`, both valids and both keys come from registers.
//   - While a key enters and leaves in every cycle and two are visible, two stay visible.
// Limits: nothing is pushed without room, nothing popped without a head.
// Latency: a key that comes is the head in the next cycle. Cost: 3 x (KeyW + 1) registers.
// Proof: in frame_arbiter's, nic/formal/frame_arbiter.sby. Twin in nic/model: none, the model asks queues when it
// chooses.

`default_nettype none

module frame_keys #(
  // Bits of a key, 1 or more.
  parameter int unsigned KeyW = 12
) (
  input  logic            clk_i,
  input  logic            rst_ni,

  input  logic            push_i,
  input  logic [KeyW-1:0] push_key_i,
  output logic            room_o,

  input  logic            pop_i,
  output logic            head_valid_o,
  output logic [KeyW-1:0] head_key_o,
  output logic            next_valid_o,
  output logic [KeyW-1:0] next_key_o
);

  if (KeyW < 1) begin : g_bad_width
    $fatal(1, "frame_keys: KeyW must be at least 1 bit");
  end

  // Valid bits are ones from bit 0 on: what stays moves down, and the new key takes the first place above it.
  logic [2:0]           valid_q, stays;
  logic [2:0][KeyW-1:0] key_q, key_d;

  assign stays    = pop_i ? valid_q >> 1 : valid_q;
  assign key_d[0] = !stays[0] ? push_key_i : (pop_i ? key_q[1] : key_q[0]);
  assign key_d[1] = !stays[1] ? push_key_i : (pop_i ? key_q[2] : key_q[1]);
  assign key_d[2] = !stays[2] ? push_key_i : key_q[2];

  always_ff @(posedge clk_i) begin
    if (!rst_ni) valid_q <= '0;
    else valid_q <= push_i ? {stays[1:0], 1'b1} : stays;
    key_q <= key_d;
  end

  assign room_o       = !valid_q[2];
  assign head_valid_o = valid_q[0];
  assign next_valid_o = valid_q[1];
  assign head_key_o   = key_q[0];
  assign next_key_o   = key_q[1];

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_no_gap   : assert (valid_q inside {3'b000, 3'b001, 3'b011, 3'b111});
      a_has_room : assert (!push_i || room_o);
      a_has_head : assert (!pop_i || head_valid_o);
    end
  end
`endif

endmodule

`default_nettype wire

// Tells when every DMA write that was taken before has reached the point in UltraScale+'s PCIe block behind which
// nothing passes it (PG213, "Transmit Transaction Ordering").
//
// The block merges three streams towards the host: requests, completions, and interrupts of its own making. What it has
// not merged yet may be overtaken. Who must not overtake (an interrupt that tells of a completion, the answer to a
// register read) asks here.
//
// Guarantees: `pass_o` of a waiter rises when all writes taken before `ask_i` rose, and the one that stood at the pins
//   then, are past that point; it stands until `ask_i` falls. Later writes are not waited for, but for those that leave
//   with the last of these in one TLP.
// How: writes that are taken are counted, and those that have left rq_adapter in a TLP, and TLPs. When the writes of a
//   waiter have left, the TLPs until then are those that it waits for.
// Limits
//   - `ask_i` stands until `pass_o`, and falls before it asks again.
//   - The block returns the numbers of writes (from 32 on) once each and in their order, at most two a cycle; those of
//     other requests are passed over.
//   - Fewer than 2^(CountW-1) writes in rq_adapter, and TLPs inside the block.
// Latency: 3 cycles beside the block's. Cost: (4 + 2 x Waiters) x CountW registers. Twin: the model's writes are in order
//   with its answers by themselves. Proof: nic/formal/write_fence.sby, unbounded.

`default_nettype none

module write_fence #(
  // Who may ask, 1 or more.
  parameter int unsigned Waiters = 2,
  // Bits of a count of writes.
  parameter int unsigned CountW = 12
) (
  input  logic               clk_i,
  input  logic               rst_ni,

  // A write stands at the pins of rq_adapter, and is taken.
  input  logic               dmawr_valid_i,
  input  logic               dmawr_ready_i,

  // rq_adapter gives a write its number, with so many of the writes that were taken.
  input  logic               sent_valid_i,
  input  logic [3:0]         sent_writes_i,

  // pcie_rq_seq_num0 and 1 of the block.
  input  logic [1:0]         seq_valid_i,
  input  logic [1:0][5:0]    seq_number_i,

  input  logic [Waiters-1:0] ask_i,
  output logic [Waiters-1:0] pass_o
);

  if (Waiters < 1 || CountW < 7) begin : g_bad_size
    $fatal(1, "write_fence: there must be a waiter, and CountW must be 7 bits or more");
  end

  // Writes taken, and those that have left; TLPs that have left, and those that are past the point.
  logic [CountW-1:0]              taken_q, taken_d, left_q, left_d, tlps_q, tlps_d, safe_q;
  logic [1:0]                     is_write;
  logic [Waiters-1:0]             asked_q, has_left_q, has_left_d, pass_q, pass_d;
  logic [Waiters-1:0][CountW-1:0] mark_q, mark_d, tlp_mark_q, tlp_mark_d, waits, behind;

  assign is_write = {seq_valid_i[1] && seq_number_i[1][5], seq_valid_i[0] && seq_number_i[0][5]};
  assign taken_d  = taken_q + CountW'(dmawr_valid_i && dmawr_ready_i);
  assign left_d   = left_q + (sent_valid_i ? CountW'(sent_writes_i) : '0);
  assign tlps_d   = tlps_q + CountW'(sent_valid_i);
  assign pass_o   = pass_q;

  always_comb begin
    for (int i = 0; i < int'(Waiters); i++) begin
      // The write at the pins counts, whether it is taken now or later.
      mark_d[i]     = asked_q[i] ? mark_q[i] : taken_q + CountW'(dmawr_valid_i);
      waits[i]      = left_q - mark_q[i];
      has_left_d[i] = asked_q[i] && (has_left_q[i] || !waits[i][CountW-1]);
      // TLPs are counted no earlier than their writes.
      tlp_mark_d[i] = has_left_q[i] ? tlp_mark_q[i] : tlps_q;
      behind[i]     = safe_q - tlp_mark_q[i];
      // However many come through while it stands.
      pass_d[i]     = ask_i[i] && asked_q[i] && (pass_q[i] || (has_left_q[i] && !behind[i][CountW-1]));
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      taken_q    <= '0;
      left_q     <= '0;
      tlps_q     <= '0;
      safe_q     <= '0;
      asked_q    <= '0;
      has_left_q <= '0;
      pass_q     <= '0;
    end else begin
      taken_q    <= taken_d;
      left_q     <= left_d;
      tlps_q     <= tlps_d;
      safe_q     <= safe_q + CountW'(is_write[0]) + CountW'(is_write[1]);
      asked_q    <= ask_i;
      has_left_q <= has_left_d;
      pass_q     <= pass_d;
    end
    mark_q     <= mark_d;
    tlp_mark_q <= tlp_mark_d;
  end

  // Counting is enough; the numbers below are for whoever looks at waves.
  logic unused_numbers;
  assign unused_numbers = ^{seq_number_i[1][4:0], seq_number_i[0][4:0]};

`ifndef SYNTHESIS
  logic [CountW-1:0] waiting, under_way;
  logic [4:0]        number_q;
  assign waiting   = taken_q - left_q;
  assign under_way = tlps_q - safe_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) number_q <= '0;
    else         number_q <= number_q + 5'(is_write[0]) + 5'(is_write[1]);
    if (rst_ni) begin
      assert (!waiting[CountW-1]) else $error("write_fence: more writes left than were taken");
      assert (!under_way[CountW-1]) else $error("write_fence: more writes came through than were sent");
      assert (!is_write[0] || seq_number_i[0][4:0] == number_q) else $error("write_fence: writes out of order");
      assert (!is_write[1] || seq_number_i[1][4:0] == 5'(number_q + 5'(is_write[0])))
        else $error("write_fence: writes out of order");
    end
  end
`endif

endmodule

`default_nettype wire

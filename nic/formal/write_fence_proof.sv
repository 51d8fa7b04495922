// What is proved of nic/rtl/pcie/write_fence.sv, for every length of run, by k-induction (nic/formal/write_fence.sby):
//   - who asks is not let through before a write, any write, is past the point, if it was taken or stood at the pins
//     when he asked: whatever writes leave with it in one TLP, and however many stand between;
//   - who is let through stays so until he asks no more, however many writes come through meanwhile.
// That he is let through at all is only simulated: it hangs on what the block returns.
//
// Assumed, as rq_adapter and the block do: a write at the pins stands until it is taken; only writes that were taken
// leave, one or more in a TLP; a number comes back once for each TLP that has left, in order; who asks goes on until he
// is let through; fewer than 32 writes wait, and 32 TLPs are inside the block. All else is free, reset in the middle of
// traffic included.
//
// Proved for one who asks, since none looks at another, and counts of 7 bits, which enter by differences alone.

`default_nettype none

module write_fence_proof #(
  localparam int unsigned CountW = 7,
  localparam logic [CountW-1:0] Most = 7'd31
) (
  input logic            clk_i,
  input logic            rst_ni,
  input logic            dmawr_valid_i,
  input logic            dmawr_ready_i,
  input logic            sent_valid_i,
  input logic [3:0]      sent_writes_i,
  input logic [1:0]      seq_valid_i,
  input logic [1:0][5:0] seq_number_i,
  input logic            ask_i,
  // Free choice of the write that is followed.
  input logic            follow_i
);

  logic pass;

  write_fence #(.Waiters(1), .CountW(CountW)) dut (
    .clk_i, .rst_ni, .dmawr_valid_i, .dmawr_ready_i, .sent_valid_i, .sent_writes_i, .seq_valid_i, .seq_number_i,
    .ask_i, .pass_o(pass)
  );

  // ---------------------------------------------------------------------------------------------- kept beside it
  typedef enum logic [2:0] {Nowhere, AtPins, Waits, Inside, Past} place_e;

  logic              started_q = 1'b0;
  // Writes that wait to leave, and TLPs inside the block; the number that comes next.
  logic [CountW-1:0] waiting_q, under_way_q;
  logic [4:0]        number_q;
  // The followed write: up to it, itself included, so many wait, or are inside.
  place_e            place_q, place_d;
  logic [CountW-1:0] ahead_q, ahead_d;
  logic              take, picks, asked_q, passed_q, owed_q, stood_q;
  logic [1:0]        is_write, returns;
  logic [CountW-1:0] sent;

  assign take     = dmawr_valid_i && dmawr_ready_i;
  assign is_write = {seq_valid_i[1] && seq_number_i[1][5], seq_valid_i[0] && seq_number_i[0][5]};
  assign returns  = 2'(is_write[0]) + 2'(is_write[1]);
  assign sent     = sent_valid_i ? CountW'(sent_writes_i) : '0;
  assign picks    = place_q == Nowhere && dmawr_valid_i && follow_i;

  always_comb begin
    place_d = place_q;
    ahead_d = ahead_q;
    unique case (place_q)
      Nowhere, AtPins: begin
        if (picks || place_q == AtPins) begin
          place_d = take ? Waits : AtPins;
          ahead_d = waiting_q - sent + 1'b1;
        end
      end
      Waits: begin
        ahead_d = ahead_q - sent;
        if (ahead_q <= sent) begin
          place_d = Inside;
          ahead_d = under_way_q - CountW'(returns) + 1'b1;
        end
      end
      Inside: begin
        ahead_d = ahead_q - CountW'(returns);
        if (ahead_q <= CountW'(returns)) place_d = Past;
      end
      default: place_d = Past;
    endcase
  end

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    if (!started_q) assume (!rst_ni);
    if (rst_ni) begin
      if (stood_q) assume (dmawr_valid_i);
      if (asked_q && !passed_q) assume (ask_i);
      if (dmawr_ready_i) assume (waiting_q < Most);
      if (sent_valid_i) assume (sent_writes_i != '0 && sent <= waiting_q && under_way_q < Most);
      assume (CountW'(returns) <= under_way_q);
      if (is_write[0]) assume (seq_number_i[0][4:0] == number_q);
      if (is_write[1]) assume (seq_number_i[1][4:0] == 5'(number_q + 5'(is_write[0])));
    end
    if (!rst_ni) begin
      waiting_q   <= '0;
      under_way_q <= '0;
      number_q    <= '0;
      place_q     <= Nowhere;
      stood_q     <= 1'b0;
      asked_q     <= 1'b0;
      passed_q    <= 1'b0;
      owed_q      <= 1'b0;
    end else begin
      waiting_q   <= waiting_q + CountW'(take) - sent;
      under_way_q <= under_way_q + CountW'(sent_valid_i) - CountW'(returns);
      number_q    <= number_q + 5'(returns);
      place_q     <= place_d;
      ahead_q     <= ahead_d;
      stood_q     <= dmawr_valid_i && !dmawr_ready_i;
      asked_q     <= ask_i;
      passed_q    <= pass;
      // He began to ask when the followed write was there.
      if (!ask_i) owed_q <= 1'b0;
      else if (!asked_q) owed_q <= picks || (place_q != Nowhere && place_q != Past);
    end
  end

  // ------------------------------------------------------------------------------------------------- invariants
  // What is between the write that was last when he asked and what has left; the same of TLPs.
  logic [CountW-1:0] to_leave, to_pass;
  assign to_leave = dut.mark_q[0] - dut.left_q;
  assign to_pass  = dut.tlp_mark_q[0] - dut.safe_q;

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      if (pass && owed_q) assert (place_q == Past);
      if (passed_q && asked_q) assert (pass);

      assert (dut.taken_q - dut.left_q == waiting_q && waiting_q <= Most);
      assert (dut.tlps_q - dut.safe_q == under_way_q && under_way_q <= Most);
      assert (dut.number_q == number_q && dut.asked_q[0] == asked_q);
      assert (asked_q || (!owed_q && !pass));
      assert ((place_q == AtPins) <= stood_q);
      if (place_q == Waits) assert (ahead_q != '0 && ahead_q <= waiting_q);
      if (place_q == Inside) assert (ahead_q != '0 && ahead_q <= under_way_q);
      if (asked_q && owed_q) begin
        if (place_q == AtPins) assert (!dut.has_left_q[0] && to_leave == waiting_q + 1'b1);
        if (place_q == Waits) assert (!dut.has_left_q[0] && to_leave >= ahead_q && to_leave <= waiting_q + 1'b1);
        if (place_q == Inside && dut.has_left_q[0]) assert (to_pass >= ahead_q && to_pass <= under_way_q);
        assert (place_q != Nowhere);
      end
    end
  end

  // The proof is not empty: these can be reached.
  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      cover (pass && owed_q && under_way_q != '0);
      cover (owed_q && place_q == Waits && sent_valid_i && ahead_q < sent);
      cover (owed_q && place_q == AtPins && waiting_q > 7'd2);
    end
  end

endmodule

`default_nettype wire

// What is proved of nic/rtl/mmio/free_list.sv, for every length of run, by k-induction (nic/formal/free_list.sby):
//   - a name is given out only when it is not out: no double allocation;
//   - every name is at every moment out, or in exactly one place inside: none leaks, none is doubled;
//   - `free_o` is how many are inside; a name is ready at most `MaxWaitCycles` cycles after one is inside;
//   - what is offered and not taken stands still.
//
// Assumed: a giver gives back what is out. All else is free, reset in the middle of traffic included.
//
// Proved for Count 4, 5 and 8, so with and without a power of two. A larger list has wider names and pointers, and
// the same four places in front; that it behaves alike is not proved, but simulated.

`default_nettype none

module free_list_proof #(
  // Names.
  parameter int unsigned Count = 5
) (
  input logic                     clk_i,
  input logic                     rst_ni,
  input logic                     take_ready_i,
  input logic                     give_valid_i,
  input logic [$clog2(Count)-1:0] give_name_i
);

  // Cycles that a name may be inside before one is offered.
  localparam int unsigned MaxWaitCycles = 3;
  localparam int unsigned NameW = $clog2(Count);
  localparam int unsigned CountW = $clog2(Count + 1);
  // Places where a name may be found at once, out included: enough bits to count a fault too.
  localparam int unsigned PlacesW = $clog2(2 * Count + 8);

  logic              take_valid, take_two;
  logic [NameW-1:0]  take_name;
  logic [CountW-1:0] free;

  free_list #(
    .Count(Count)
  ) dut (
    .clk_i,
    .rst_ni,
    .take_valid_o(take_valid),
    .take_ready_i,
    .take_name_o (take_name),
    .take_two_o  (take_two),
    .give_valid_i,
    .give_name_i,
    .free_o      (free)
  );

  logic take;
  assign take = take_valid && take_ready_i;

  // Who is out, kept beside the list.
  logic [Count-1:0] out_q, out_d;
  always_comb begin
    out_d = out_q;
    if (give_valid_i) out_d[give_name_i] = 1'b0;
    if (take) out_d[take_name] = 1'b1;
  end

  // How long nothing was offered although something is inside, and what was offered before.
  logic [2:0]       starved_q = '0;
  logic             waited_q = 1'b0;
  logic [NameW-1:0] waited_name_q;
  logic             started_q = 1'b0;
  always_ff @(posedge clk_i) begin
    started_q     <= 1'b1;
    out_q         <= rst_ni ? out_d : '0;
    starved_q     <= (rst_ni && !take_valid && free != '0) ? starved_q + 1'b1 : '0;
    waited_q      <= rst_ni && take_valid && !take_ready_i;
    waited_name_q <= take_name;
    if (!started_q) assume (!rst_ni);
    if (rst_ni && give_valid_i) assume (32'(give_name_i) < Count && out_q[give_name_i]);
  end

  // Entries of the ring that hold a name, from read_q on: those that may be read and the one just written.
  logic [PlacesW-1:0] ring_count;
  logic [Count-1:0]   ring_holds;
  logic [3:0]         ready_holds;
  assign ring_count = PlacesW'(dut.stored_q) + PlacesW'(dut.give_q);
  always_comb begin
    for (int unsigned i = 0; i < Count; i++) begin
      logic [PlacesW-1:0] age;
      age           = PlacesW'(i) - PlacesW'(dut.read_q);
      if (i < 32'(dut.read_q)) age = age + PlacesW'(Count);
      ring_holds[i] = age < ring_count;
    end
    for (int unsigned i = 0; i < 4; i++) begin
      logic [1:0] age;
      age            = 2'(i) - dut.u_ready.read_q;
      ready_holds[i] = 3'(age) < dut.u_ready.count_q;
    end
  end

  // In how many places each name is.
  logic [Count-1:0] is_once;
  always_comb begin
    for (int unsigned name = 0; name < Count; name++) begin
      logic [PlacesW-1:0] places;
      places = PlacesW'(out_q[name]) + PlacesW'(name >= 32'(dut.fresh_q));
      places += PlacesW'(dut.ring_valid_q && 32'(dut.ring_q) == name);
      for (int unsigned i = 0; i < Count; i++) begin
        places += PlacesW'(ring_holds[i] && 32'(dut.ring[i]) == name);
      end
      for (int unsigned i = 0; i < 4; i++) begin
        places += PlacesW'(ready_holds[i] && 32'(dut.u_ready.mem[i]) == name);
      end
      is_once[name] = places == PlacesW'(1);
    end
  end

  logic [PlacesW-1:0] held, lent;
  assign held = PlacesW'(Count) - PlacesW'(dut.fresh_q) + PlacesW'(dut.ring_valid_q) + ring_count
                + PlacesW'(dut.u_ready.count_q);
  assign lent = PlacesW'($countones(out_q));

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      if (take) assert (32'(take_name) < Count && !out_q[take_name]);
      assert (is_once == '1);
      assert (PlacesW'(free) == held && held + lent == PlacesW'(Count));
      assert (starved_q <= 3'(MaxWaitCycles));
      if (waited_q) assert (take_valid && take_name == waited_name_q);
      if (take_two) assert (take_valid && dut.u_ready.count_q >= 3'd2);
      // Invariants of the ring that make it inductive.
      assert (32'(dut.fresh_q) <= Count);
      if (dut.ring_valid_q) assert (32'(dut.fresh_q) == Count);
      assert (32'(ring_count) <= Count);
      assert (32'(dut.read_q) < Count && 32'(dut.write_q) < Count);
      assert ((32'(dut.read_q) + 32'(ring_count)) % Count == 32'(dut.write_q));
    end
  end

  // The proof is not empty: these can be reached.
  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      cover (out_q == '1);
      cover (out_q == '0 && dut.fresh_q == CountW'(Count) && take_valid);
      cover (starved_q == 3'(MaxWaitCycles));
      cover (take && give_valid_i && free == CountW'(1) && dut.fresh_q == CountW'(Count));
    end
  end

endmodule

`default_nettype wire

// The names of what is free: pool lines, or reorder contexts. Each name is inside, or out with exactly one owner.
//
// Guarantees
//   - While `take_valid_o` is high `take_name_o` is free; it is the taker's in the cycle in which `take_ready_i` is
//     high too. One can be taken and one given back in every cycle.
//   - A name is given out again only after it was given back.
//   - After reset all names below `Count` are free, without a cycle of set-up: names that were never given out come
//     from a counter, before those that were given back.
//   - `free_o` names are inside. It is exact at the clock edge.
// Limits
//   - Giving back what is not out is a fault of the giver (asserted, not repaired).
//   - A name that was given back can be taken four cycles later at the earliest: it passes through a RAM and a FIFO.
// Cost: Count x $clog2(Count) bits of RAM. Twin: BufferPool::{take, give_back}, ReorderUnit::{allocate, release}.

`default_nettype none

module free_list #(
  // Names, 2 to 65536.
  parameter int unsigned Count = 1024,
  localparam int unsigned NameW = (Count > 1) ? $clog2(Count) : 1,
  localparam int unsigned CountW = $clog2(Count + 1)
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  output logic              take_valid_o,
  input  logic              take_ready_i,
  output logic [NameW-1:0]  take_name_o,
  // Two stand ready: one can be taken in this cycle and one in the next.
  output logic              take_two_o,

  input  logic              give_valid_i,
  input  logic [NameW-1:0]  give_name_i,

  output logic [CountW-1:0] free_o
);

  if (Count < 2 || Count > 65536) begin : g_bad_count
    $fatal(1, "free_list: Count must be 2 to 65536 names");
  end

  localparam logic [NameW-1:0]  LastName = NameW'(Count - 1);
  localparam logic [CountW-1:0] All      = CountW'(Count);

  // The ring of names that were given back. It has room for all of them.
  logic [NameW-1:0] ring [Count];
  logic [NameW-1:0] ring_q;
  logic [NameW-1:0] read_q, read_d, write_q, write_d;
  // Entries of the ring that may be read: those written at least one cycle ago.
  logic [CountW-1:0] stored_q, stored_d;
  logic              ring_valid_q, ring_valid_d;

  // Names that were never given out: fresh_q and up.
  logic [CountW-1:0] fresh_q, fresh_d;
  logic [CountW-1:0] free_q, free_d;
  // Whether there are any of the two kinds, kept beside the counts so that no comparison is on the way.
  logic              has_fresh_q, has_fresh_d, has_stored_q, has_stored_d;

  logic       take, read_ring, place_fresh, give_q;
  logic       ready_push_ready;
  logic [2:0] ready_count;

  assign free_o     = free_q;
  assign take_two_o = ready_count[2:1] != '0;
  assign take       = take_valid_o && take_ready_i;

  function automatic logic [NameW-1:0] next_place(input logic [NameW-1:0] place);
    return (place == LastName) ? '0 : place + 1'b1;
  endfunction

  // A name of the ring arrives one cycle after it was asked for. It is asked for only if it will find a place even if
  // none is taken until then; so four places let one be taken in every cycle.
  assign read_ring   = !has_fresh_q && has_stored_q && !ready_count[2] && !(ready_count == 3'd3 && ring_valid_q);
  assign place_fresh = has_fresh_q && ready_push_ready;

  fifo #(.Width(NameW), .Depth(4)) u_ready (
    .clk_i,
    .rst_ni,
    .push_valid_i (ring_valid_q || place_fresh),
    .push_ready_o (ready_push_ready),
    .push_data_i  (ring_valid_q ? ring_q : fresh_q[NameW-1:0]),
    .pop_valid_o  (take_valid_o),
    .pop_ready_i  (take_ready_i),
    .pop_data_o   (take_name_o),
    .count_o      (ready_count)
  );

  always_comb begin
    fresh_d      = place_fresh ? fresh_q + 1'b1 : fresh_q;
    read_d       = read_ring ? next_place(read_q) : read_q;
    write_d      = give_valid_i ? next_place(write_q) : write_q;
    ring_valid_d = read_ring;
    stored_d     = stored_q + CountW'(give_q) - CountW'(read_ring);
    has_fresh_d  = has_fresh_q && !(place_fresh && fresh_q[NameW-1:0] == LastName);
    has_stored_d = give_q || (has_stored_q && !(read_ring && stored_q == CountW'(1)));
    free_d       = free_q + CountW'(give_valid_i) - CountW'(take);
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ring_valid_q <= 1'b0;
      give_q       <= 1'b0;
      fresh_q      <= '0;
      has_fresh_q  <= 1'b1;
      has_stored_q <= 1'b0;
      read_q       <= '0;
      write_q      <= '0;
      stored_q     <= '0;
      free_q       <= All;
    end else begin
      ring_valid_q <= ring_valid_d;
      give_q       <= give_valid_i;
      fresh_q      <= fresh_d;
      has_fresh_q  <= has_fresh_d;
      has_stored_q <= has_stored_d;
      read_q       <= read_d;
      write_q      <= write_d;
      stored_q     <= stored_d;
      free_q       <= free_d;
    end
    ring_q <= ring[read_q];
    if (give_valid_i) ring[write_q] <= give_name_i;
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_not_more_than_all : assert (free_q <= All);
      a_fresh_is_told     : assert (has_fresh_q == (fresh_q != All));
      a_stored_is_told    : assert (has_stored_q == (stored_q != '0));
      a_given_was_out     : assert (!(give_valid_i && free_q == All));
      a_no_lost_answer    : assert (!(ring_valid_q && !ready_push_ready));
      a_one_source        : assert (!(ring_valid_q && place_fresh));
    end
  end
`endif

endmodule

`default_nettype wire

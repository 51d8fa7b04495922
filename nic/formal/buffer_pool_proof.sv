// What is proved of nic/rtl/mmio/buffer_pool.sv, for every length of run, by k-induction
// (nic/formal/buffer_pool.sby):
//   - a load gives, a cycle later and until the next load of its kind (first word, or the others), each byte as the
//     last store before it that enabled the byte left it: of any byte of any line, whatever is stored elsewhere, and
//     whatever bytes come with it (of a load in the cycle of a store to that line nothing is said: it is not looked
//     at);
//   - the next line of any line is, a cycle after it is asked for, the one that came with the line itself if that was
//     known, else the one that was told of it since; for both who ask, the writes of the cycle in which they ask
//     included.
// That names are neither leaked nor given out twice is proved of the list inside (free_list_proof.sv).
//
// Nothing is assumed.
//
// Proved for 4 lines of 64 bytes. One line, chosen freely, and one of its bytes are followed, and no other is looked
// at; a line enters by addresses of memories alone.

`default_nettype none

module buffer_pool_proof #(
  localparam int unsigned Lines = 4,
  localparam int unsigned PtrW = 2
) (
  input logic            clk_i,
  input logic            store_valid_i,
  input logic [PtrW-1:0] store_line_i,
  input logic [63:0]     store_be_i,
  input logic [511:0]    store_data_i,
  input logic            head_valid_i,
  input logic [PtrW-1:0] head_line_i,
  input logic            rest_valid_i,
  input logic [PtrW-1:0] rest_line_i,
  input logic            successor_we_i,
  input logic [PtrW-1:0] successor_line_i,
  input logic [PtrW-1:0] successor_next_i,
  input logic            own_we_i,
  input logic [PtrW-1:0] own_line_i,
  input logic            own_known_i,
  input logic [PtrW-1:0] own_next_i,
  input logic [PtrW-1:0] resolve_line_i,
  input logic [PtrW-1:0] chain_line_i,
  // The line and the byte that are followed: any, but always the same.
  input logic [PtrW-1:0] place_i,
  input logic [5:0]      byte_i
);

  logic [PtrW-1:0] resolve_next, chain_next;
  logic [511:0]    load_data;

  // The list of free lines stays in reset: nothing else here has one.
  buffer_pool #(.Lines(Lines)) dut (
    .clk_i, .rst_ni(1'b0), .take_valid_o(), .take_ready_i(1'b0), .take_line_o(), .take_two_o(), .give_valid_i(1'b0),
    .give_line_i('0), .free_o(), .store_valid_i, .store_line_i, .store_be_i, .store_data_i,
    .head_valid_i, .head_line_i, .head_data_o(load_data[63:0]),
    .rest_valid_i, .rest_line_i, .rest_data_o(load_data[511:64]),
    .successor_we_i, .successor_line_i, .successor_next_i, .own_we_i, .own_line_i, .own_known_i, .own_next_i,
    .resolve_line_i, .resolve_next_o(resolve_next), .chain_line_i, .chain_next_o(chain_next)
  );

  // The followed byte, and the followed line's next one, once they were written; what a load and a question must give.
  logic            started_q = 1'b0;
  logic            stored_q = 1'b0;
  logic            is_loaded_q = 1'b0;
  logic            own_there_q = 1'b0;
  logic            next_there_q = 1'b0;
  logic [7:0]      byte_q, loaded_q;
  logic            known_q, known, own_there, next_there, is_resolved_q, is_chained_q;
  logic [PtrW-1:0] own_q, own, next_q, next, expected_q, place_q;
  logic [5:0]      which_q;
  logic            is_stored, load_valid;
  logic [PtrW-1:0] load_line;
  // The load that concerns the byte.
  assign load_valid = (byte_i < 6'd8) ? head_valid_i : rest_valid_i;
  assign load_line  = (byte_i < 6'd8) ? head_line_i : rest_line_i;
  assign is_stored  = store_valid_i && store_line_i == place_i && store_be_i[byte_i];
  assign own_there  = own_there_q || (own_we_i && own_line_i == place_i);
  assign next_there = next_there_q || (successor_we_i && successor_line_i == place_i);
  assign known      = (own_we_i && own_line_i == place_i) ? own_known_i : known_q;
  assign own        = (own_we_i && own_line_i == place_i) ? own_next_i : own_q;
  assign next       = (successor_we_i && successor_line_i == place_i) ? successor_next_i : next_q;

  logic [511:0] kept;
  assign kept = {dut.rest[place_i], dut.header[place_i]};

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    place_q   <= place_i;
    which_q   <= byte_i;
    if (started_q) assume (place_i == place_q && byte_i == which_q);
    stored_q <= stored_q || is_stored;
    if (is_stored) byte_q <= store_data_i[8 * byte_i +: 8];
    if (load_valid) begin
      is_loaded_q <= load_line == place_i && stored_q && !(store_valid_i && store_line_i == place_i);
      loaded_q    <= byte_q;
    end
    own_there_q   <= own_there;
    next_there_q  <= next_there;
    {known_q, own_q, next_q} <= {known, own, next};
    is_resolved_q <= resolve_line_i == place_i && own_there && (known || next_there);
    is_chained_q  <= chain_line_i == place_i && own_there && (known || next_there);
    expected_q    <= known ? own : next;
  end

  always_ff @(posedge clk_i) begin
    if (!started_q) assert (!stored_q && !own_there_q && !next_there_q && !is_loaded_q);
    if (started_q) begin
      if (is_loaded_q) assert (load_data[8 * byte_i +: 8] == loaded_q);
      if (is_resolved_q) assert (resolve_next == expected_q);
      if (is_chained_q) assert (chain_next == expected_q);
      // Invariants that make it inductive.
      if (stored_q) assert (kept[8 * byte_i +: 8] == byte_q);
      if (own_there_q) assert (dut.u_own_a.mem[place_i] == {known_q, own_q});
      if (own_there_q) assert (dut.u_own_b.mem[place_i] == {known_q, own_q});
      if (next_there_q) assert (dut.u_successor_a.mem[place_i] == next_q && dut.u_successor_b.mem[place_i] == next_q);
      cover (is_loaded_q && loaded_q == 8'h5a && is_stored);
      cover (is_resolved_q && is_chained_q && !known_q && expected_q == 2'd3);
    end
  end

endmodule

`default_nettype wire

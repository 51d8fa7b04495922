// What is proved of nic/rtl/pcie/request_runs.sv, for every length of run, by k-induction (nic/formal/request_runs.sby),
// of a request, any request:
//   - it leaves once, when exactly those before it have left: a read as a run without lines, a write as one of the lines
//     of a run, its data at line_data_o when exactly the lines before it were taken;
//   - the run says of it what it is: a read its address, tag and bytes; of a write the address is that of the run's first
//     byte if it is its first line, and otherwise as many lines behind the run's as there are lines before it; if it is
//     the last line the run ends with its last byte, if it is not it ends with a line;
//   - a run keeps inside a block of the maximum payload or 512 bytes;
//   - a line is there when it is to be taken; a request is refused only when Depth lines or runs wait.
//
// Assumed, as rq_adapter does: a write has 1 to 64 bytes inside a page; who takes a run takes its lines, the first in
// that cycle or later, before he takes the next run; the maximum payload does not change while a run is open. All else is
// free, reset in the middle of traffic included.
//
// Proved for 8 requests in place of 16, which enter by the FIFOs' counts alone (fifo.sby), and all bits of addresses and
// data.

`default_nettype none

module request_runs_proof #(
  localparam int unsigned Depth = 8,
  // More than eight runs of eight lines can have, so that a sum of theirs cannot wrap.
  localparam int unsigned CountW = 8
) (
  input logic         clk_i,
  input logic         rst_ni,
  input logic [1:0]   max_payload_i,
  input logic         push_valid_i,
  input logic         push_is_write_i,
  input logic [63:0]  push_address_i,
  input logic [12:0]  push_bytes_i,
  input logic [7:0]   push_tag_i,
  input logic [511:0] push_data_i,
  input logic         run_ready_i,
  input logic         line_take_i,
  // Free choice of the request that is followed.
  input logic         follow_i
);

  logic           push_ready, run_valid;
  pcie_pkg::run_t run;
  logic [511:0]   line;

  request_runs #(.Depth(Depth)) dut (
    .clk_i, .rst_ni, .max_payload_i, .push_valid_i, .push_ready_o(push_ready), .push_is_write_i, .push_address_i,
    .push_bytes_i, .push_tag_i, .push_data_i, .run_valid_o(run_valid), .run_ready_i, .run_o(run), .line_data_o(line),
    .line_take_i
  );

  // ---------------------------------------------------------------------------------------------- kept beside it
  typedef enum logic [2:0] {Nowhere, Open, Closed, Leaves, Gone} place_e;

  logic              started_q = 1'b0;
  // Lines of the run that was taken, which are still to be taken.
  logic [CountW-1:0] rest_q;
  logic              push, takes;
  // The followed request: what it is, where, which line of its run; runs before it, and lines.
  place_e            place_q, place_d;
  logic              is_write_q;
  logic [63:0]       address_q;
  logic [12:0]       bytes_q;
  logic [7:0]        tag_q;
  logic [511:0]      data_q;
  logic [3:0]        at_q;
  logic [CountW-1:0] ahead_runs_q, ahead_lines_q;
  logic              picks, leaves_run, leaves_line;
  logic [1:0]        payload_q;

  assign push        = push_valid_i && push_ready;
  assign takes       = run_valid && run_ready_i;
  assign picks       = place_q == Nowhere && push && follow_i;
  assign leaves_run  = takes && (place_q == Closed ? ahead_runs_q == '0 : place_q == Open && !dut.closed_valid);
  assign leaves_line = line_take_i && ahead_lines_q == '0 && is_write_q && (place_q == Leaves || leaves_run);

  always_comb begin
    place_d = place_q;
    if (picks) place_d = Open;
    else if (leaves_run) place_d = (is_write_q && !leaves_line) ? Leaves : Gone;
    else if (place_q == Open && dut.closes) place_d = Closed;
    else if (leaves_line) place_d = Gone;
  end

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    payload_q <= max_payload_i;
    if (!started_q) assume (!rst_ni);
    if (started_q) assume (max_payload_i == payload_q);
    if (push_valid_i && push_is_write_i) begin
      assume (push_bytes_i != '0 && push_bytes_i <= 13'd64);
      assume (13'(push_address_i[11:0]) + push_bytes_i <= 13'd4096);
    end
    if (push_valid_i && !push_is_write_i) assume (push_bytes_i != '0 && push_bytes_i <= 13'd4096);
    // Lines of a run that was taken, or is taken now, and no other.
    if (run_ready_i) assume (rest_q == '0);
    if (line_take_i) assume (rest_q != '0 || (takes && run.lines != '0));
    if (!rst_ni) begin
      rest_q  <= '0;
      place_q <= Nowhere;
    end else begin
      rest_q  <= rest_q + (takes ? CountW'(run.lines) : '0) - CountW'(line_take_i);
      place_q <= place_d;
      if (picks) begin
        is_write_q    <= push_is_write_i;
        address_q     <= push_address_i;
        bytes_q       <= push_bytes_i;
        tag_q         <= push_tag_i;
        data_q        <= push_data_i;
        at_q          <= dut.joins ? dut.open_q.lines : '0;
        ahead_lines_q <= CountW'(dut.u_lines.count_q) - CountW'(line_take_i);
      end else begin
        ahead_lines_q <= ahead_lines_q - CountW'(line_take_i);
      end
      if (place_q == Open && dut.closes) ahead_runs_q <= CountW'(dut.u_closed.count_q) - CountW'(takes);
      else if (takes) ahead_runs_q <= ahead_runs_q - 1'b1;
    end
  end

  // ------------------------------------------------------------------------------------------------- what a run is
  // As the block of the maximum payload has it: bits of an address below which its bytes lie.
  logic [8:0] block_mask;
  assign block_mask = (max_payload_i == 2'd0) ? 9'h07f : (max_payload_i == 2'd1) ? 9'h0ff : 9'h1ff;

  function automatic logic is_sound(pcie_pkg::run_t r, logic [8:0] mask);
    logic [13:0] end_byte;
    end_byte = 14'(r.address[8:2] & mask[8:2]) * 14'd4 + 14'(r.last_byte);
    if (!r.is_write) return r.lines == '0;
    return r.lines != '0 && r.lines <= 4'd8 && (r.lines == 4'd1 || end_byte <= 14'(mask))
        // Lines are where the bytes are.
        && (r.lines == 4'd1
            || (end_byte >> 6) - 14'((r.address[8:0] & mask) >> 6) == 14'(r.lines) - 14'd1);
  endfunction

  // Whether the run says of the followed request, its line `at_q`, what it is.
  function automatic logic tells(pcie_pkg::run_t r);
    logic [12:0] first_end;
    if (r.is_write != is_write_q) return 1'b0;
    first_end = bytes_q + 13'(address_q[1:0]) - 13'd1;
    if (!is_write_q) return r.address == address_q && r.tag == tag_q && r.last_byte == first_end;
    if (at_q >= r.lines) return 1'b0;
    if (at_q == '0) begin
      if (r.address != address_q) return 1'b0;
      if (r.lines == 4'd1) return r.last_byte == first_end;
      return 13'(address_q[5:0]) + bytes_q == 13'd64;
    end
    if (address_q[5:0] != '0 || address_q[63:9] != r.address[63:9]) return 1'b0;
    if (address_q[8:6] != 3'(r.address[8:6] + 3'(at_q))) return 1'b0;
    if (at_q != r.lines - 4'd1) return bytes_q == 13'd64;
    // Counted from the first DW of the run to this line's end.
    return r.last_byte == 13'(at_q) * 13'd64 - 13'({r.address[5:2], 2'd0}) + bytes_q - 13'd1;
  endfunction

  // ------------------------------------------------------------------------------------------------- invariants
  localparam int unsigned PointerW = $clog2(Depth);
  pcie_pkg::run_t [Depth-1:0] waits;
  logic [CountW-1:0]          closed_lines, lines_before;
  logic                       all_sound;
  logic [PointerW-1:0]        line_place;
  // The end of the open run in its block, if it may be joined.
  logic [13:0]                open_end;
  always_comb begin
    closed_lines = '0;
    lines_before = rest_q;
    all_sound    = 1'b1;
    for (int unsigned n = 0; n < Depth; n++) begin
      waits[n] = dut.u_closed.mem[PointerW'(dut.u_closed.read_q + PointerW'(n))];
      if (n < int'(dut.u_closed.count_q)) begin
        all_sound    = all_sound && is_sound(waits[n], block_mask);
        closed_lines = closed_lines + CountW'(waits[n].lines);
        if (place_q == Open || CountW'(n) < ahead_runs_q) lines_before = lines_before + CountW'(waits[n].lines);
      end
    end
    line_place = dut.u_lines.read_q + ahead_lines_q[PointerW-1:0];
    open_end   = 14'(dut.open_q.address[8:2] & block_mask[8:2]) * 14'd4 + 14'(dut.open_q.last_byte) + 14'd1;
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      if (leaves_run) assert (tells(run));
      if (leaves_line) assert (line == data_q);
      if (run_valid) assert (is_sound(run, block_mask));
      if (line_take_i) assert (dut.line_valid);
      if (push_valid_i && !push_ready) begin
        assert (CountW'(dut.u_lines.count_q) == CountW'(Depth) || CountW'(dut.u_closed.count_q) == CountW'(Depth));
      end

      assert (all_sound && (!dut.open_valid_q || is_sound(dut.open_q, block_mask)));
      assert (rest_q <= CountW'(Depth) && closed_lines <= CountW'(Depth));
      assert (CountW'(dut.u_lines.count_q)
              == rest_q + closed_lines + (dut.open_valid_q ? CountW'(dut.open_q.lines) : '0));
      if (dut.open_valid_q && dut.goes_on_q) begin
        assert (dut.open_q.is_write && open_end[5:0] == '0 && open_end < 14'(block_mask));
        assert (dut.next_q == 3'(dut.open_q.address[8:6] + dut.open_q.lines[2:0]));
        assert (open_end[8:6] == (dut.next_q & block_mask[8:6]));
      end
      if (place_q == Open) assert (dut.open_valid_q && tells(dut.open_q));
      if (place_q == Closed) begin
        assert (ahead_runs_q < CountW'(dut.u_closed.count_q) && tells(waits[ahead_runs_q[PointerW-1:0]]));
      end
      if (place_q == Leaves) assert (is_write_q && ahead_lines_q < rest_q);
      if (is_write_q && (place_q == Open || place_q == Closed)) assert (ahead_lines_q == lines_before + CountW'(at_q));
      if (is_write_q && (place_q == Open || place_q == Closed || place_q == Leaves)) begin
        assert (ahead_lines_q < CountW'(dut.u_lines.count_q) && dut.u_lines.mem[line_place] == data_q);
      end
    end
  end

  // The proof is not empty: these can be reached.
  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      cover (leaves_run && at_q == 4'd3 && run.lines == 4'd5 && run.address[5:0] != '0);
      cover (leaves_run && run.lines == 4'd8);
      cover (leaves_run && place_q == Closed && !is_write_q);
      cover (leaves_line && place_q == Leaves && run_valid);
    end
  end

endmodule

`default_nettype wire

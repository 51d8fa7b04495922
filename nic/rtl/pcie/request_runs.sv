// Queues DMA requests in their order, and puts together what one TLP can carry: writes of lines that lie behind each
// other.
//
// A request that nothing stands in front of leaves at once and alone, so merging costs no time. Whatever comes while the
// stream is busy joins the write in front of it if it continues it, until that write leaves: the longer the wait, the
// fewer headers.
//
// Guarantees
//   - Runs are in the order of requests, and so are lines; a read is a run of its own.
//   - A write joins where it begins with a line, at the byte behind the write in front of it, and where a block of the
//     maximum payload (at most 512 bytes) does not begin: no run is longer than that block, or crosses a page.
//   - The lines of a run are at line_data_o, one after the other, when the run is offered.
//   - A run does not grow in the cycle in which it is taken.
// Limits: a write that crosses a line is joined by none.
// Latency: 1 cycle. Throughput: a request and a line in each cycle.
// Cost: 120 registers, Depth x 602 bits of LUTRAM. Twin in nic/model: none. Proof: nic/formal/request_runs.sby, unbounded.

`default_nettype none

module request_runs #(
  // Requests that may wait, and lines; a power of two from 2 to 1024.
  parameter int unsigned Depth = 16,
  localparam int unsigned CountW = $clog2(Depth) + 1
) (
  input  logic         clk_i,
  input  logic         rst_ni,

  // cfg_max_payload of the block: 128 bytes << this.
  input  logic [1:0]   max_payload_i,

  input  logic         push_valid_i,
  output logic         push_ready_o,
  input  logic         push_is_write_i,
  input  logic [63:0]  push_address_i,
  input  logic [12:0]  push_bytes_i,
  input  logic [7:0]   push_tag_i,
  input  logic [511:0] push_data_i,

  output logic               run_valid_o,
  input  logic               run_ready_i,
  output pcie_pkg::run_t     run_o,

  output logic [511:0] line_data_o,
  input  logic         line_take_i
);

  localparam int unsigned IndexW = $clog2(pcie_pkg::MaxRunLines);
  // Bits of an address inside the longest block.
  localparam int unsigned BlockW = IndexW + 6;

  logic                lines_ready, closed_ready, closed_valid, line_valid, push, take_open, joins, closes;
  logic [CountW-1:0]   unused_lines, unused_closed;
  pcie_pkg::run_t      closed, fresh, open_q, open_d;
  logic                open_valid_q, open_valid_d, goes_on_q, ends_line, follows;
  // Line of the block behind the run that is open.
  logic [IndexW-1:0]   next_q, index, last_index;

  fifo #(.Width(512), .Depth(Depth)) u_lines (
    .clk_i, .rst_ni, .push_valid_i(push && push_is_write_i), .push_ready_o(lines_ready), .push_data_i(push_data_i),
    .pop_valid_o(line_valid), .pop_ready_i(line_take_i), .pop_data_o(line_data_o), .count_o(unused_lines)
  );

  fifo #(.Width($bits(pcie_pkg::run_t)), .Depth(Depth)) u_closed (
    .clk_i, .rst_ni, .push_valid_i(closes), .push_ready_o(closed_ready), .push_data_i(open_q),
    .pop_valid_o(closed_valid), .pop_ready_i(run_ready_i), .pop_data_o(closed), .count_o(unused_closed)
  );

  // Both from registers: neither hangs on what is pushed.
  assign push_ready_o = lines_ready && closed_ready;
  assign push         = push_valid_i && push_ready_o;

  assign run_valid_o = closed_valid || open_valid_q;
  assign run_o       = closed_valid ? closed : open_q;
  assign take_open   = run_ready_i && !closed_valid && open_valid_q;

  // The last line of a block of the maximum payload: 2, 4 or 8 lines.
  assign last_index = (max_payload_i == 2'd0) ? IndexW'(1) : (max_payload_i == 2'd1) ? IndexW'(3) : IndexW'(7);
  assign index      = push_address_i[BlockW-1:6];
  assign ends_line  = push_is_write_i && 7'(push_address_i[5:0]) + push_bytes_i[6:0] == 7'(nic_pkg::LineBytes);
  assign follows    = goes_on_q && push_is_write_i && push_address_i[5:0] == '0 && index == next_q
                      && push_address_i[63:BlockW] == open_q.address[63:BlockW];
  assign joins      = push && open_valid_q && !take_open && follows;
  assign closes     = push && open_valid_q && !take_open && !follows;

  always_comb begin
    fresh = '{is_write: push_is_write_i, address: push_address_i, tag: push_tag_i, lines: 4'(push_is_write_i),
              // Counted from the lowest byte of the first DW.
              last_byte: push_bytes_i + 13'(push_address_i[1:0]) - 13'd1};
    open_d       = open_q;
    open_valid_d = open_valid_q && !take_open;
    if (push) begin
      open_valid_d = 1'b1;
      if (joins) begin
        open_d.last_byte = open_q.last_byte + 13'(push_bytes_i[6:0]);
        open_d.lines     = open_q.lines + 4'd1;
      end else begin
        open_d = fresh;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) open_valid_q <= 1'b0;
    else         open_valid_q <= open_valid_d;
    open_q <= open_d;
    if (push) begin
      goes_on_q <= ends_line && (index & last_index) != last_index;
      next_q    <= index + 1'b1;
    end
  end

  logic unused;
  assign unused = ^{unused_lines, unused_closed, line_valid};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!line_take_i || line_valid) else $error("request_runs: a line is taken that is not there");
      assert (!run_valid_o || !run_o.is_write || (run_o.lines != '0 && run_o.lines <= 4'(pcie_pkg::MaxRunLines)))
        else $error("request_runs: a run of %0d lines", run_o.lines);
      assert (!run_valid_o || run_o.lines < 4'd2
              || 13'(run_o.address[BlockW-1:2]) + 13'(run_o.last_byte[12:2]) < 13'(1 << (BlockW - 2)))
        else $error("request_runs: a run at %h leaves its block", run_o.address);
    end
  end
`endif

endmodule

`default_nettype wire

// The contiguous receive ring and the pipe: where a frame goes, and whether there is room for it. No descriptor
// anywhere.
//
// A frame starts on a line with a header word (rx_ring_header, pipe_header); its bytes follow it, and it may wrap at the
// ring's end. In a ring the bytes are written first and the header word last; in a pipe the header leads, for
// nobody looks for it. line_writer.sv does what the command says.
//
// Guarantees
//   - The answer to a look is there 2 cycles after its inputs (registers of the asker) and stays while they
//     do.
//   - is_long_o: longer than the whole ring. no_space_o: the host has not freed enough lines. Otherwise
//     command_o is good and lines_o are its lines.
// Limits: counts are lines modulo 2^23; freed <= written <= freed + lines of the ring. A ring has at most
// 2^22 lines.
// Cost: 250 registers. Twin: nic/model/src/rx/ring.rs, RxPipe::deliver in nic/model/src/enso/rx_pipe.rs.

`default_nettype none

module ring_writer (
  input  logic              clk_i,

  input  logic              is_pipe_i,
  input  logic [13:0]       bytes_i,
  input  logic [57:0]       ring_line_i,
  // Lines of the ring less one.
  input  logic [21:0]       mask_i,
  input  logic [22:0]       written_i,
  input  logic [22:0]       freed_i,

  output logic              is_long_o,
  output logic              no_space_o,
  output logic [7:0]        lines_o,
  output rx_pkg::command_t  command_o
);

  logic [7:0]  lines_q;
  logic [22:0] used_q, free_lines;
  logic [21:0] index, to_wrap, to_wrap_q;
  logic [22:0] low_q;
  logic [57:0] line_q;
  nic_pkg::rx_ring_header_t header;
  nic_pkg::pipe_header_word_t pipe_header;

  assign index      = written_i[21:0] & mask_i;
  assign to_wrap    = mask_i - index;
  assign free_lines = 23'(mask_i) + 23'd1 - used_q;

  always_ff @(posedge clk_i) begin
    // The header word is part of the frame's lines.
    lines_q   <= 8'((15'(bytes_i) + 15'(nic_pkg::RxRingHeaderBytes) + 15'd63) >> 6);
    used_q    <= written_i - freed_i;
    low_q     <= 23'(ring_line_i[21:0]) + 23'(index);
    to_wrap_q <= to_wrap;

    is_long_o  <= 23'(lines_q) > 23'(mask_i) + 23'd1;
    no_space_o <= 23'(lines_q) > free_lines;
    lines_o    <= lines_q;
    line_q     <= {ring_line_i[57:22] + 36'(low_q[22]), low_q[21:0]};
  end

  assign header = '{valid: 32'd1, length_bytes: 32'(bytes_i)};

  assign pipe_header = '{reserved: '0, length_bytes: 16'(bytes_i)};

  assign command_o = '{
    drop: 1'b0, leads: is_pipe_i, entry_lines: '0, is_told: 1'b1, bytes: bytes_i,
    address: {line_q, 6'(nic_pkg::RxRingHeaderBytes)},
    to_wrap: (to_wrap_q > 22'd255) ? 8'd255 : to_wrap_q[7:0], wrap_line: ring_line_i,
    word_address: {line_q, 3'd0}, word: is_pipe_i ? pipe_header : header
  };

endmodule

`default_nettype wire

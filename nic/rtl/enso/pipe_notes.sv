// Notifications of a receive pipe: whether the next one is due, and what it says.
//
// A notification tells how many lines of the pipe have been written. The next one is written, if frames have come since,
// when the host has freed a line that only the last one told it of, or all of them. So it has seen the last one: never
// is more than one under way that it has not, and no notification overwrites another.
//
// Guarantees: the answers are there 3 cycles after their inputs (registers of the asker) and stay while they do.
//   is_seen_o: the host has seen the last notification. command_o writes the next one, with the lines written so far.
// Limits: lines told and freed are counted modulo 2^23, notifications modulo 2^17; freed is at most told.
// Cost: 150 registers. Twin: RxPipe::notify in nic/model/src/enso/rx_pipe.rs.

`default_nettype none

module pipe_notes #(
  // Bits of the number of a queue.
  parameter int unsigned QueueW = 6
) (
  input  logic              clk_i,

  input  logic [QueueW-1:0] queue_i,
  // Lines written since the queue was enabled; told by the last notification and by the one before it; freed.
  input  logic [31:0]       written_i,
  input  logic [22:0]       told_i,
  input  logic [22:0]       told_before_i,
  input  logic [22:0]       freed_i,
  // Notifications written, and entries of their ring less one.
  input  logic [16:0]       notes_i,
  input  logic [15:0]       mask_i,
  input  logic [60:0]       ring_word_i,

  output logic              is_seen_o,
  output rx_pkg::command_t  command_o
);

  logic [22:0] unseen_q, last_q;
  logic [16:0] low_q;
  logic [60:0] word_address_q;
  logic        is_even_q;
  nic_pkg::rx_notification_word_t word;

  always_ff @(posedge clk_i) begin
    unseen_q  <= told_i - freed_i;
    last_q    <= told_i - told_before_i;
    // What was the first lap is lap 0: the bit above those of the index counts laps.
    is_even_q <= (notes_i & (17'(mask_i) + 17'd1)) == '0;
    low_q     <= 17'(ring_word_i[15:0]) + 17'(notes_i[15:0] & mask_i);

    is_seen_o      <= unseen_q < last_q || unseen_q == '0;
    word_address_q <= {ring_word_i[60:16] + 45'(low_q[16]), low_q[15:0]};
  end

  // Every pipe has a ring of its own: `rx_notify_share` is not there.
  assign word = '{reserved: '0, epoch: '0, lap: is_even_q, queue_id: 16'(queue_i), tail_lines: written_i};

  assign command_o = '{
    drop: 1'b0, leads: 1'b0, entry_lines: '0, is_told: 1'b0, bytes: '0, address: '0, to_wrap: 8'd255,
    wrap_line: '0, word_address: word_address_q, word: word
  };

endmodule

`default_nettype wire

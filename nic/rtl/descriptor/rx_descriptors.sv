// Receive descriptors: which buffer a frame goes to, and the completion behind it. The rival of the
// contiguous ring.
//
// Every entry of the ring names a buffer, and all of them are the device's at the start; the host's doorbell
// counts the buffers it lent again. Descriptors are fetched ahead (fetch/descriptor_fetch.sv). Completion i
// belongs to descriptor i; its lap bit is 1 on even laps of the ring. line_writer.sv writes the bytes, then
// the completion.
//
// Guarantees
//   - The answer to a look is there 3 cycles after its inputs (registers of the asker) and stays while they
//     do.
//   - no_space_o: the host has lent no buffer. is_late_o: it has, but its descriptor is on its way.
//     Otherwise, is_bad_o: a buffer of length 0 or one that reaches past the address space; command_o gives
//     it back empty. is_long_o: the frame is longer than the buffer. Otherwise command_o is good.
// Limits: counts are descriptors modulo 2^17. Cost: that of descriptor_fetch.sv, 400 registers.
// Twin: nic/model/src/descriptor/rx_descriptors.rs.

`default_nettype none

module rx_descriptors #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // As in fetch/descriptor_fetch.sv.
  parameter int unsigned Ahead = 32,
  parameter int unsigned Burst = 16,
  parameter int unsigned Reads = 16,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned TagW = $clog2(Reads)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  output logic              busy_o,
  input  logic              hold_i,
  output logic              idle_o,
  input  logic              drain_i,
  output logic              drained_o,

  input  logic              setup_write_i,
  input  logic [QueueW-1:0] setup_queue_i,
  input  logic              setup_active_i,
  input  logic [59:0]       setup_address_i,
  input  logic [15:0]       setup_mask_i,

  // Descriptors lent since the start, the whole ring at the start included.
  input  logic              lent_valid_i,
  output logic              lent_ready_o,
  input  logic [QueueW-1:0] lent_queue_i,
  input  logic [16:0]       lent_count_i,
  input  logic              taken_valid_i,
  output logic              taken_ready_o,
  input  logic [QueueW-1:0] taken_queue_i,
  input  logic [16:0]       taken_count_i,
  // Descriptors of a queue could not be read.
  output logic              error_valid_o,
  output logic [QueueW-1:0] error_queue_o,

  // A look. The queue stands one cycle before the rest.
  input  logic [QueueW-1:0] queue_i,
  input  logic [13:0]       bytes_i,
  input  logic [16:0]       taken_i,
  input  logic [16:0]       lent_i,
  input  logic [15:0]       mask_i,
  input  logic [60:0]       completion_word_i,
  output logic              no_space_o,
  output logic              is_late_o,
  output logic              is_bad_o,
  output logic              is_long_o,
  output rx_pkg::command_t  command_o,

  output logic              rdreq_valid_o,
  input  logic              rdreq_ready_i,
  output logic [63:0]       rdreq_address_o,
  output logic [12:0]       rdreq_bytes_o,
  output logic [TagW-1:0]   rdreq_tag_o,
  input  logic              rdcpl_valid_i,
  input  logic [TagW-1:0]   rdcpl_tag_i,
  input  logic [511:0]      rdcpl_data_i,
  input  logic              rdcpl_last_i,
  input  logic              rdcpl_error_i,

  output logic              count_descriptor_fetches_o
);

  localparam int unsigned Entries = 1 << QueueW;
  localparam int unsigned AheadW = $clog2(Ahead);

  logic              arrived_valid, arrived_error, arrived_ready;
  logic [QueueW-1:0] arrived_queue;
  logic [16:0]       arrived_count, arrived;
  logic [127:0]      stored;
  nic_pkg::rx_descriptor_t descriptor_q;
  logic              is_outside, has_waiting_q;
  logic [32:0]       end_low;
  logic [15:0]       index;
  logic [16:0]       word_low_q, past_entries;
  logic [60:0]       word_address_q;
  nic_pkg::rx_completion_t completion;

  // A set-up writes the table of arrivals too, so an arrival waits for it. No arrival of that queue is under
  // way then.
  assign arrived_ready = !setup_write_i;
  assign error_valid_o = arrived_valid && arrived_error && arrived_ready;
  assign error_queue_o = arrived_queue;

  descriptor_fetch #(.NumQueues(NumQueues), .Ahead(Ahead), .Burst(Burst), .Reads(Reads)) u_fetch (
    .clk_i, .rst_ni, .busy_o, .hold_i, .idle_o, .drain_i, .drained_o,
    .setup_write_i, .setup_queue_i, .setup_active_i, .setup_address_i, .setup_mask_i,
    .setup_posted_i(17'(setup_mask_i) + 17'd1),
    .post_valid_i(lent_valid_i), .post_ready_o(lent_ready_o), .post_queue_i(lent_queue_i),
    .post_count_i(lent_count_i),
    .taken_valid_i, .taken_ready_o, .taken_queue_i, .taken_count_i,
    .arrived_valid_o(arrived_valid), .arrived_ready_i(arrived_ready), .arrived_queue_o(arrived_queue),
    .arrived_count_o(arrived_count), .arrived_error_o(arrived_error),
    .store_queue_i(queue_i), .store_index_i(taken_i[AheadW-1:0]), .store_descriptor_o(stored),
    .rdreq_valid_o, .rdreq_ready_i, .rdreq_address_o, .rdreq_bytes_o, .rdreq_tag_o,
    .rdcpl_valid_i, .rdcpl_tag_i, .rdcpl_data_i, .rdcpl_last_i, .rdcpl_error_i,
    .count_descriptor_fetches_o
  );

  table_ram #(.Width(17), .Depth(Entries)) u_arrived (
    .clk_i, .we_i(setup_write_i || arrived_valid && !arrived_error),
    .waddr_i(setup_write_i ? setup_queue_i : arrived_queue),
    .wdata_i(setup_write_i ? '0 : arrived_count), .raddr_i(queue_i), .rdata_o(arrived)
  );

  assign end_low      = {1'b0, descriptor_q.address[31:0]} + {1'b0, descriptor_q.length_bytes};
  assign is_outside   = descriptor_q.address[63:32] == '1 && end_low[32];
  assign index        = taken_i[15:0] & mask_i;
  assign past_entries = taken_i & (17'(mask_i) + 17'd1);

  always_ff @(posedge clk_i) begin
    descriptor_q  <= stored;
    has_waiting_q <= arrived != taken_i;
    no_space_o    <= lent_i == taken_i;
    word_low_q    <= 17'(completion_word_i[15:0]) + 17'(index);

    is_late_o      <= !has_waiting_q;
    is_bad_o       <= descriptor_q.length_bytes == '0 || is_outside;
    is_long_o      <= 32'(bytes_i) > descriptor_q.length_bytes;
    word_address_q <= {completion_word_i[60:16] + 45'(word_low_q[16]), word_low_q[15:0]};
  end

  // What was the first lap is lap 0: the bit above those of the index counts laps.
  assign completion = '{lap: 32'(past_entries == '0), length_bytes: is_bad_o ? '0 : 32'(bytes_i)};

  assign command_o = '{
    drop: 1'b0, leads: 1'b0, entry_lines: '0, is_told: !is_bad_o, bytes: is_bad_o ? '0 : bytes_i,
    address: descriptor_q.address, to_wrap: 8'd255, wrap_line: '0, word_address: word_address_q, word: completion
  };

  logic unused_bits;
  assign unused_bits = ^{end_low[31:0], descriptor_q};

endmodule

`default_nettype wire

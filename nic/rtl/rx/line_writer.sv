// Writes frames to host memory: the bytes at any address, in writes that keep inside lines, then the word
// that says so; or the word in front of them. Writes frames to entries on the NIC in the same way.
//
// Guarantees
//   - The writes of a frame are in order of address, but for a wrap at a ring's end. A word that does not lead comes
//     last.
//   - `done_*` when the last write of a command that tells was taken. Commands are done in order.
//   - An entry is written line by line, then published (`publish_*` with its last line): when the port has taken the
//     writes of all commands before it.
//   - A drain: `drain_i` remembers the commands that are inside, `drained_o` says that they are done.
// Latency: 4 cycles from command to the first write; a frame takes as many cycles as it touches lines, and
// two more.
// Cost: 1,900 registers. Twin: RxRing::deliver and RxDescriptors::deliver in nic/model/src/rx (what they hand
// DmaPort).

`default_nettype none

module line_writer #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // Lines of the store, a power of two from 128 to 4096.
  parameter int unsigned Lines = 512,
  // log2 of the lines of entries of a queue.
  parameter int unsigned EntryW = 6,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned LineW = $clog2(Lines)
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic              command_valid_i,
  output logic              command_ready_o,
  input  rx_pkg::command_t  command_i,
  input  logic [QueueW-1:0] command_queue_i,
  // Frames of the queue with this one, modulo 2^32.
  input  logic [31:0]       command_count_i,

  output logic              read_enable_o,
  output logic [LineW-1:0]  read_line_o,
  input  logic [511:0]      read_data_i,
  output logic              free_valid_o,
  output logic [7:0]        free_lines_o,

  output logic              dmawr_valid_o,
  input  logic              dmawr_ready_i,
  output logic [63:0]       dmawr_address_o,
  output logic [511:0]      dmawr_data_o,
  output logic [6:0]        dmawr_bytes_o,

  // Lines of entries, and the last of them.
  output logic              entry_valid_o,
  output logic [QueueW+EntryW-1:0] entry_line_o,
  output logic [511:0]      entry_data_o,
  output logic              publish_valid_o,
  input  logic              publish_ready_i,

  output logic              done_valid_o,
  output logic [QueueW-1:0] done_queue_o,
  output logic [31:0]       done_count_o,

  input  logic              drain_i,
  output logic              drained_o
);

  localparam logic [6:0] Line = 7'(nic_pkg::LineBytes);

  // What is known of a write on its way: stages R (asks for the line), M (has it), X (half turned), O (the
  // port).
  typedef struct packed {
    logic [63:0]       address;
    logic [6:0]        bytes;
    logic [5:0]        shift;
    logic              is_first;
    logic              is_word;
    // The first write of a frame that a word leads; of an entry; the last of a command; and of a frame.
    logic              leads;
    logic              is_entry;
    logic              is_end;
    logic              is_told;
    logic [QueueW-1:0] queue_id;
    logic [31:0]       count;
  } write_t;

  logic              step, r_valid_q, r_valid_d, r_word_q, r_word_d, accept, r_last, r_ends;
  rx_pkg::command_t  r_q, r_d;
  logic [QueueW-1:0] r_queue_q;
  logic [31:0]       r_count_q;
  logic              r_first_q, r_first_d;
  logic [13:0]       r_left_q, r_left_d;
  logic [2:0]        r_entry_q, r_entry_d;
  logic              r_is_entry;
  logic [57:0]       r_line_q, r_line_d;
  logic [6:0]        r_bytes, first_room;
  logic [7:0]        frame_lines;
  logic [LineW-1:0]  head_q, head_d, beat_q, beat_d;
  write_t            r_write, m_q, x_q, o_q;
  logic              m_valid_q, x_valid_q, o_valid_q;
  logic [63:0]       m_word_q, x_word_q, x_mask;
  logic [511:0]      x_led;
  logic [511:0]      prev_q, o_data_q, m_half, x_turned;
  logic [1023:0]     m_pair, m_wide;
  logic [574:0]      x_wide, x_pair_q;
  logic [5:0]        m_turn;
  logic [2:0]        x_turn_q;
  logic [2:0]        outside_q, outside_d, left_q, left_d;
  logic              finish;

  assign step   = !o_valid_q || (o_q.is_entry ? !o_q.is_end || publish_ready_i : dmawr_ready_i);
  assign accept = command_valid_i && command_ready_o;
  assign command_ready_o = !r_valid_q;

  // ---- Stage R: cuts the frame into writes. `beat_q` is the line of the store for the next of them.
  assign first_room  = Line - 7'(r_q.address[5:0]);
  assign r_bytes     = r_first_q ? ((r_left_q > 14'(first_room)) ? first_room : r_left_q[6:0]) :
                                   ((r_left_q > 14'(Line)) ? Line : r_left_q[6:0]);
  assign r_last      = r_left_q == 14'(r_bytes);
  assign r_is_entry  = r_q.entry_lines != '0;
  assign r_ends      = r_is_entry ? r_entry_q == 3'd1 : r_word_q || (r_q.leads && r_last);
  assign frame_lines = 8'((15'(r_q.bytes) + 15'd63) >> 6);

  assign r_write = '{
    address: r_word_q ? {r_q.word_address, 3'd0} : !r_first_q ? {r_line_q, 6'd0} :
             r_q.leads ? {r_q.address[63:6], 6'd0} : r_q.address,
    bytes: r_word_q ? 7'(nic_pkg::WordBytes) : r_bytes + (r_first_q && r_q.leads ? 7'(r_q.address[5:0]) : 7'd0),
    shift: r_q.address[5:0], is_first: r_first_q, is_word: r_word_q, leads: r_first_q && r_q.leads && !r_word_q,
    is_entry: r_is_entry, is_end: r_ends, is_told: r_q.is_told, queue_id: r_queue_q, count: r_count_q
  };

  always_comb begin
    r_valid_d = r_valid_q;
    r_word_d  = r_word_q;
    r_first_d = r_first_q;
    r_left_d  = r_left_q;
    r_entry_d = r_entry_q;
    r_line_d  = r_line_q;
    r_d       = r_q;
    beat_d    = beat_q;
    head_d    = head_q;
    if (step && r_valid_q) begin
      r_first_d = 1'b0;
      r_left_d  = r_left_q - 14'(r_bytes);
      beat_d    = beat_q + 1'b1;
      r_line_d  = (r_q.to_wrap == '0) ? r_q.wrap_line : (r_first_q ? r_q.address[63:6] : r_line_q) + 58'd1;
      r_d.to_wrap = (r_q.to_wrap == '0) ? '1 : r_q.to_wrap - 8'd1;
      r_entry_d   = r_entry_q - 3'd1;
      if (r_last && !r_is_entry && !r_q.leads) r_word_d = 1'b1;
      if (r_ends) begin
        r_valid_d = 1'b0;
        head_d    = head_q + LineW'(frame_lines);
        beat_d    = head_d;
      end
    end
    if (accept) begin
      r_valid_d = 1'b1;
      r_d       = command_i;
      // A frame that is dropped, and a word without a frame, have no bytes to write.
      r_word_d  = command_i.drop || command_i.bytes == '0 && command_i.entry_lines == '0;
      r_entry_d = command_i.entry_lines;
      r_first_d = 1'b1;
      r_left_d  = command_i.bytes;
    end
  end

  assign read_enable_o = step;
  assign read_line_o   = beat_q;
  assign free_valid_o  = step && r_valid_q && r_ends;
  assign free_lines_o  = frame_lines;

  // ---- Stages M to O: a line of the host is the end of one line of the store and the beginning of the
  // next. It is
  // turned by groups of 8 bytes first, then by bytes.
  assign m_pair = m_q.is_first ? {512'd0, read_data_i} : {read_data_i, prev_q};
  assign m_turn = m_q.is_first ? 6'd0 : 6'(7'(Line) - 7'(m_q.shift));
  // A line that begins where a line of the store does is that line alone.
  assign m_wide = (m_q.shift == '0 && !m_q.is_first ? {512'd0, read_data_i} : m_pair) >> {m_turn[5:3], 6'd0};
  assign m_half = m_wide[511:0];
  assign x_wide = x_pair_q >> {x_turn_q, 3'd0};
  assign x_turned = x_wide[511:0];
  // A word that leads comes with the frame's first bytes, in an entry with a word of zeros behind it. What an entry does
  // not fill is zero.
  assign x_led  = !x_q.leads ? x_turned :
                  x_q.is_entry ? {x_turned[383:0], 64'd0, x_word_q} : {x_turned[447:0], x_word_q};
  assign x_mask = x_q.is_entry ? ~(64'hffff_ffff_ffff_ffff << x_q.bytes) : '1;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      r_valid_q <= 1'b0;
      m_valid_q <= 1'b0;
      x_valid_q <= 1'b0;
      o_valid_q <= 1'b0;
      head_q    <= '0;
      beat_q    <= '0;
    end else begin
      r_valid_q <= r_valid_d;
      head_q    <= head_d;
      beat_q    <= beat_d;
      if (step) begin
        m_valid_q <= r_valid_q && !r_q.drop;
        x_valid_q <= m_valid_q;
        o_valid_q <= x_valid_q;
      end
    end
    r_q       <= r_d;
    r_word_q  <= r_word_d;
    r_first_q <= r_first_d;
    r_left_q  <= r_left_d;
    r_entry_q <= r_entry_d;
    r_line_q  <= r_line_d;
    if (accept) begin
      r_queue_q <= command_queue_i;
      r_count_q <= command_count_i;
    end
    if (step) begin
      m_q      <= r_write;
      m_word_q <= r_q.word;
      prev_q   <= read_data_i;
      x_q      <= m_q;
      x_word_q <= m_word_q;
      x_turn_q <= m_q.is_word ? 3'd0 : m_turn[2:0];
      x_pair_q <= m_q.is_word ? 575'(m_word_q) : {m_wide[574:512], m_half};
      o_q      <= x_q;
      for (int i = 0; i < 64; i++) o_data_q[8*i +: 8] <= x_led[8*i +: 8] & {8{x_mask[i]}};
    end
  end

  assign dmawr_valid_o   = o_valid_q && !o_q.is_entry;
  assign dmawr_address_o = o_q.address;
  assign dmawr_bytes_o   = o_q.bytes;
  assign dmawr_data_o    = o_data_q;

  assign entry_valid_o   = o_valid_q && o_q.is_entry;
  assign entry_line_o    = o_q.address[6 +: QueueW+EntryW];
  assign entry_data_o    = o_data_q;
  assign publish_valid_o = entry_valid_o && o_q.is_end;

  assign finish       = o_valid_q && step && o_q.is_end;
  assign done_valid_o = finish && o_q.is_told;
  assign done_queue_o = o_q.queue_id;
  assign done_count_o = o_q.count;

  // ---- How many commands are inside: at most one in each of R, M, X and O. Dropped frames do not count.
  always_comb begin
    outside_d = outside_q + 3'(accept && !command_i.drop) - 3'(finish);
    left_d    = left_q;
    if (drain_i) left_d = outside_d;
    else if (finish && left_q != '0) left_d = left_q - 3'd1;
  end
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      outside_q <= '0;
      left_q    <= '0;
    end else begin
      outside_q <= outside_d;
      left_q    <= left_d;
    end
  end
  assign drained_o = left_q == '0;

  logic unused_bits;
  assign unused_bits = ^{m_wide[1023:575], x_wide[574:512], x_q.shift, x_q.is_first, x_q.is_word, o_q.shift,
                         o_q.is_first, o_q.is_word, o_q.leads};

`ifndef SYNTHESIS
  logic        waiting_q;
  logic [63:0] waiting_address_q;
  always_ff @(posedge clk_i) begin
    waiting_q         <= rst_ni && dmawr_valid_o && !dmawr_ready_i;
    waiting_address_q <= dmawr_address_o;
    if (rst_ni) begin
      assert (!waiting_q || dmawr_valid_o && dmawr_address_o == waiting_address_q)
        else $error("line_writer: a waiting write changed");
      assert (!accept || command_i.entry_lines == '0 || command_i.leads && command_i.address[5:0] == 6'd16)
        else $error("line_writer: an entry without a head");
      assert (!dmawr_valid_o || dmawr_bytes_o != '0 && 7'(dmawr_address_o[5:0]) + dmawr_bytes_o <= Line)
        else $error("line_writer: %0d bytes at %h", dmawr_bytes_o, dmawr_address_o);
    end
  end
`endif

endmodule

`default_nettype wire

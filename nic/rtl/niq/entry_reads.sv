// Reads of received entries: answered from memory on the NIC, or held until the entry is there.
//
// A read names a word of a queue's window, and that is the one entry of the current lap there. If its frame has come the
// word is given; if not, the read is held, in a table of HeldReadsMax for the device, until the frame comes, its time is
// up or its queue stops. A processor gives up on a read that is never answered, so every way out of the table is an
// answer.
//
// The table is a ring that is passed over whole: each read leaves at its front and is answered or goes back to its end.
// Frames become visible between passes, so reads of one entry are answered in the order in which they were asked. A pass
// is made when a frame comes, when the earliest deadline has come, and when a queue stops; none is made for nothing.
//
// Guarantees
//   - Every read that was taken is answered once, whatever is reset but the link itself (`clear_i`: the device is reset;
//     all that are held are answered with zero). A read of a queue that holds none is answered with zero at once, and so
//     is one for which, with the words behind it in its line, the table has no room: of a load that were held in part the
//     other words would say zero where the frame that comes has bytes. One of a window without entries with all ones, counted as a bad access.
//   - An entry is visible (`publish_*`) to reads that come after it. An entry that the host has freed is not, to those
//     that come after its doorbell.
//   - A count of freed entries that runs backwards or past what is visible is counted as a bad access and ignored; one of a
//     queue without entries is ignored.
// Limits
//   - Doorbells come at least 3 cycles apart. Set-up only while hold_i and idle_o are high.
//   - The answer waits for its taker, and everything else waits for the answer.
// Latency: 6 cycles from a read to its answer. A pass takes 2 cycles a read, 3 more for each that is answered; a frame
//   waits for the pass before it. Cost: NumQueues x 2^EntryW x 512 bits of RAM for the entries, NumQueues x (99 +
//   4 x EntryW) bits of tables, HeldReadsMax x (53 + QueueW + EntryW) bits of LUTRAM, 900 registers.
// Twin: nic/model/src/niq/{held_reads,rx_entries}.rs, RxEngine::read_arrived in nic/model/src/rx/mod.rs.

`default_nettype none

module entry_reads #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // log2 of the lines of the longest window.
  parameter int unsigned EntryW = 6,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic              clk_i,
  // Of the link: who reads has forgotten it too.
  input  logic              rst_ni,
  input  logic              clear_i,
  input  logic [33:0]       now_ns_i,
  // Strap: lines of a window less 1.
  input  logic [EntryW-1:0] window_mask_i,

  output logic              busy_o,
  input  logic              hold_i,
  output logic              idle_o,
  input  logic              setup_write_i,
  input  logic [QueueW-1:0] setup_queue_i,
  input  logic              setup_active_i,
  input  logic [1:0]        setup_lines_log2_i,
  // 0: reads are not held.
  input  logic [31:0]       setup_hold_ns_i,

  // Lines of entries, and that the next entry of a queue is whole.
  input  logic              entry_valid_i,
  input  logic [QueueW+EntryW-1:0] entry_line_i,
  input  logic [511:0]      entry_data_i,
  input  logic              publish_valid_i,
  output logic              publish_ready_o,
  input  logic [QueueW-1:0] publish_queue_i,

  // The host's count of entries that it is done with, and that count when it makes sense.
  input  logic              doorbell_valid_i,
  input  logic [QueueW-1:0] doorbell_queue_i,
  input  logic [63:0]       doorbell_count_i,
  output logic              freed_valid_o,
  input  logic              freed_ready_i,
  output logic [QueueW-1:0] freed_queue_o,
  output logic [EntryW:0]   freed_count_o,

  // Reads of words of windows.
  input  logic              read_valid_i,
  output logic              read_ready_o,
  input  logic [QueueW-1:0] read_queue_i,
  input  logic [EntryW+2:0] read_word_i,
  input  logic [15:0]       read_tag_i,
  output logic              answer_valid_o,
  input  logic              answer_ready_i,
  output logic [15:0]       answer_tag_o,
  output logic [63:0]       answer_value_o,

  output logic              count_entry_reads_o,
  output logic              count_held_reads_o,
  output logic              count_held_read_timeouts_o,
  output logic [1:0]        count_bad_accesses_o
);

  localparam int unsigned Entries = 1 << QueueW;
  localparam int unsigned CountW = EntryW + 1;
  localparam int unsigned Held = nic_pkg::HeldReadsMax;
  localparam int unsigned HeldW = $clog2(Held) + 1;

  if (NumQueues < 1 || NumQueues > 1024 || (NumQueues & (NumQueues - 1)) != 0) begin : g_bad_queues
    $fatal(1, "entry_reads: NumQueues must be a power of two from 1 to 1024");
  end
  if (EntryW < 1 || EntryW > 14) begin : g_bad_window
    $fatal(1, "entry_reads: EntryW must be 1 to 14");
  end

  typedef struct packed {
    logic        active;
    logic [1:0]  lines_log2;
    logic [31:0] hold_ns;
  } settings_t;
  typedef struct packed {
    logic [QueueW-1:0] queue_id;
    logic [EntryW-1:0] line;
    logic [2:0]        word;
    logic [15:0]       tag;
    logic [33:0]       until_ns;
  } held_t;
  typedef enum logic [3:0] {
    EnClear, EnIdle, EnRead, EnLook, EnFind, EnPublish, EnPublished, EnTurn, EnJudge, EnFetch, EnWord, EnGive
  } en_e;

  en_e               en_q, en_d;
  logic [QueueW-1:0] clear_q, queue_q, queue_d;
  logic              clearing;

  // Whether a moment of time is now or was, modulo 2^34 ns.
  logic [33:0] now_q;

  // ---- What is known of each queue. Counts lie twice: for reads and frames, and for doorbells.
  settings_t         settings;
  logic [31:0]       hold_q;
  logic [CountW-1:0] written, door_written, freed, written_next;
  logic [63:0]       door_freed;
  logic              publish, table_we, freed_we;
  logic [QueueW-1:0] table_waddr;
  logic [CountW-1:0] used_q, distance_q;
  logic              is_active_q, is_found;

  assign clearing    = en_q == EnClear;
  assign table_we    = clearing || setup_write_i;
  assign table_waddr = clearing ? clear_q : setup_queue_i;

  table_ram #(.Width($bits(settings_t)), .Depth(Entries)) u_settings (
    .clk_i, .we_i(table_we), .waddr_i(table_waddr),
    .wdata_i(clearing ? '0 : {setup_active_i, setup_lines_log2_i, setup_hold_ns_i}), .raddr_i(queue_q),
    .rdata_o(settings)
  );
  table_ram #(.Width(CountW), .Depth(Entries)) u_written (
    .clk_i, .we_i(table_we || publish), .waddr_i(table_we ? table_waddr : queue_q),
    .wdata_i(table_we ? '0 : written_next), .raddr_i(queue_q), .rdata_o(written)
  );
  table_ram #(.Width(CountW), .Depth(Entries)) u_freed (
    .clk_i, .we_i(table_we || freed_we), .waddr_i(table_we ? table_waddr : freed_queue_o),
    .wdata_i(table_we ? '0 : freed_count_o), .raddr_i(queue_q), .rdata_o(freed)
  );
  table_ram #(.Width(CountW), .Depth(Entries)) u_door_written (
    .clk_i, .we_i(table_we || publish), .waddr_i(table_we ? table_waddr : queue_q),
    .wdata_i(table_we ? '0 : written_next), .raddr_i(doorbell_queue_i), .rdata_o(door_written)
  );
  logic door_active;
  table_ram #(.Width(1), .Depth(Entries)) u_door_active (
    .clk_i, .we_i(table_we), .waddr_i(table_waddr), .wdata_i(!clearing && setup_active_i),
    .raddr_i(doorbell_queue_i), .rdata_o(door_active)
  );
  logic [63:0] d3_value_q;
  table_ram #(.Width(64), .Depth(Entries)) u_door_freed (
    .clk_i, .we_i(table_we || freed_we), .waddr_i(table_we ? table_waddr : freed_queue_o),
    .wdata_i(table_we ? '0 : d3_value_q), .raddr_i(doorbell_queue_i), .rdata_o(door_freed)
  );
  assign written_next = written + 1'b1;

  // ---- Doorbells: the step from the count before is short, and not past what is visible.
  logic              door_is_bad;
  logic              d1_valid_q, d2_valid_q, d3_valid_q, d3_passes_q, d3_is_ours_q, d2_borrow_q, d2_active_q, door_busy;
  logic [QueueW-1:0] d1_queue_q, d2_queue_q, d3_queue_q;
  logic [63:0]       d1_value_q, d2_value_q;
  logic [31:0]       d2_step_q, d2_high_q;
  logic [CountW-1:0] d2_room_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni || clear_i) begin
      d1_valid_q <= 1'b0;
      d2_valid_q <= 1'b0;
      d3_valid_q <= 1'b0;
    end else begin
      d1_valid_q <= doorbell_valid_i;
      d2_valid_q <= d1_valid_q;
      d3_valid_q <= d2_valid_q || d3_valid_q && d3_passes_q && !freed_ready_i;
    end
    d1_queue_q  <= doorbell_queue_i;
    d1_value_q  <= doorbell_count_i;

    d2_queue_q  <= d1_queue_q;
    d2_value_q  <= d1_value_q;
    d2_active_q <= door_active;
    {d2_borrow_q, d2_step_q} <= {1'b0, d1_value_q[31:0]} - {1'b0, door_freed[31:0]};
    d2_high_q   <= door_freed[63:32];
    d2_room_q   <= door_written - door_freed[CountW-1:0];

    if (d2_valid_q) begin
      d3_queue_q  <= d2_queue_q;
      d3_value_q  <= d2_value_q;
      d3_is_ours_q <= d2_active_q;
      d3_passes_q <= d2_active_q && d2_value_q[63:32] == d2_high_q + 32'(d2_borrow_q) && d2_step_q[31:CountW] == '0
                     && d2_step_q[CountW-1:0] <= d2_room_q;
    end
  end

  // Of a queue without entries a count says nothing.
  assign door_is_bad   = d3_valid_q && !d3_passes_q && d3_is_ours_q;
  assign door_busy     = d1_valid_q || d2_valid_q || d3_valid_q;
  assign freed_valid_o = d3_valid_q && d3_passes_q;
  assign freed_queue_o = d3_queue_q;
  assign freed_count_o = d3_value_q[CountW-1:0];
  assign freed_we      = freed_valid_o && freed_ready_i;

  // ---- The entries' lines.
  logic [511:0]      mem [Entries << EntryW];
  logic [511:0]      mem_q;
  held_t             item_q, item_d;

  always_ff @(posedge clk_i) begin
    if (entry_valid_i) mem[entry_line_i] <= entry_data_i;
    mem_q <= mem[{item_q.queue_id, item_q.line}];
  end

  // ---- The table.
  held_t             front;
  logic              push, pop, front_valid, push_ready;
  logic [HeldW-1:0]  held_count, left_q, left_d;
  logic              has_room_q;

  fifo #(.Width($bits(held_t)), .Depth(Held)) u_held (
    .clk_i, .rst_ni, .push_valid_i(push), .push_ready_o(push_ready), .push_data_i(item_q),
    .pop_valid_o(front_valid), .pop_ready_i(pop), .pop_data_o(front), .count_o(held_count)
  );

  // ---- Deadlines: `first` is the earliest of those that went back in this pass.
  logic        first_valid_q, first_valid_d, is_due, is_due_q, is_over, is_earlier;
  logic [33:0] first_q, first_d;

  logic        is_before_item, is_before_first, is_less_first;

  less_than #(.Width(33)) u_over (
    .left_i(now_q[32:0]), .right_i(item_q.until_ns[32:0]), .is_less_o(is_before_item)
  );
  less_than #(.Width(33)) u_due (.left_i(now_q[32:0]), .right_i(first_q[32:0]), .is_less_o(is_before_first));
  less_than #(.Width(33)) u_earlier (
    .left_i(item_q.until_ns[32:0]), .right_i(first_q[32:0]), .is_less_o(is_less_first)
  );
  // The uppermost bit tells halves of the circle apart: a moment in the other half is read the other way round.
  assign is_over    = (now_q[33] != item_q.until_ns[33]) == is_before_item;
  assign is_due     = first_valid_q && (now_q[33] != first_q[33]) == is_before_first;
  assign is_earlier = !first_valid_q || (item_q.until_ns[33] != first_q[33]) != is_less_first;

  // ---- What a pass is made for, and what it does to a read.
  logic              kill_all_q, kill_all_d, kill_q, kill_d, show_q, show_d, in_pass_q, in_pass_d, flush_q;
  logic [QueueW-1:0] kill_queue_q, show_queue_q;
  logic [EntryW-1:0] show_line_q, low_mask_q;
  logic              is_killed, is_shown, ends, read_turn_q, read_turn_d;
  logic              takes_read, zero_q, zero_d, ones_q, ones_d;
  logic [63:0]       value_q;
  logic [17:0]       sum_low_q;
  logic [16:0]       now_high_q;
  logic [33:0]       until_sum;
  logic              reading_q, reading_d, killing_q, killing_d;

  assign is_killed = kill_all_q || killing_q && item_q.queue_id == kill_queue_q;
  assign is_shown  = show_q && item_q.queue_id == show_queue_q
                     && ((item_q.line ^ show_line_q) & ~low_mask_q) == '0;
  assign ends      = left_q == '0;

  // ---- A read: how far its entry is from the oldest that is not freed, and how many of those are there.
  logic [EntryW-1:0] line_index, entry_mask;
  assign line_index = item_q.line >> settings.lines_log2;
  assign entry_mask = window_mask_i >> settings.lines_log2;
  assign is_found   = distance_q < used_q;

  assign takes_read   = read_valid_i && read_ready_o;
  assign read_ready_o = en_q == EnIdle && !hold_i && !door_busy && !doorbell_valid_i && !flush_q && !kill_q
                        && (read_turn_q || !(publish_valid_i || is_due_q));
  // A set-up writes the same tables.
  assign publish         = en_q == EnPublished && !setup_write_i;
  assign publish_ready_o = publish;
  assign idle_o  = !reading_q && !clearing && !flush_q && !kill_q;
  assign busy_o  = clearing || flush_q;

  // The deadline: the lower half of the sum in one cycle, the upper in the next.
  assign until_sum = {now_high_q + 17'(hold_q[31:17]) + 17'(sum_low_q[17]), sum_low_q[16:0]};

  always_comb begin
    en_d          = en_q;
    queue_d       = queue_q;
    item_d        = item_q;
    left_d        = left_q;
    kill_all_d    = kill_all_q;
    kill_d        = kill_q;
    show_d        = show_q;
    in_pass_d     = in_pass_q;
    first_valid_d = first_valid_q;
    first_d       = first_q;
    read_turn_d   = read_turn_q;
    zero_d        = zero_q;
    ones_d        = ones_q;
    reading_d     = reading_q;
    killing_d     = killing_q;
    push          = 1'b0;
    pop           = 1'b0;
    count_entry_reads_o        = 1'b0;
    count_held_reads_o         = 1'b0;
    count_held_read_timeouts_o = 1'b0;
    count_bad_accesses_o       = 2'(door_is_bad);
    unique case (en_q)
      EnClear: begin
        kill_all_d = 1'b1;
        if (clear_q == '1) en_d = EnTurn;
        left_d        = held_count;
        first_valid_d = 1'b0;
      end
      EnIdle: begin
        in_pass_d = 1'b0;
        reading_d = takes_read;
        show_d    = 1'b0;
        zero_d    = 1'b0;
        ones_d    = 1'b0;
        left_d    = held_count;
        if (flush_q) begin
          en_d = EnClear;
        end else if (kill_q) begin
          en_d      = EnTurn;
          killing_d = 1'b1;
          first_valid_d = 1'b0;
        end else if (takes_read) begin
          en_d    = EnRead;
          queue_d = read_queue_i;
          read_turn_d     = 1'b0;
          item_d.queue_id = read_queue_i;
          item_d.line     = read_word_i[EntryW+2:3];
          item_d.word     = read_word_i[2:0];
          item_d.tag      = read_tag_i;
        end else if (publish_valid_i) begin
          en_d    = EnPublish;
          queue_d = publish_queue_i;
        end else if (is_due_q) begin
          en_d = EnTurn;
          first_valid_d = 1'b0;
        end
      end
      EnRead: en_d = EnLook;
      EnLook: en_d = EnFind;
      EnFind: begin
        item_d.until_ns = until_sum;
        count_entry_reads_o = is_active_q;
        ones_d = !is_active_q;
        zero_d = !is_active_q || !is_found;
        count_bad_accesses_o = 2'(door_is_bad) + 2'(!is_active_q);
        if (!is_active_q) begin
          en_d = EnFetch;
        end else if (is_found || hold_q == '0 || !has_room_q) begin
          en_d = EnFetch;
        end else begin
          count_held_reads_o = 1'b1;
          left_d = '0;
          // It joins the others at the end of a pass of none.
          show_d = 1'b0;
          en_d   = EnJudge;
        end
      end
      EnPublish: en_d = EnPublished;
      EnPublished: begin
        show_d      = 1'b1;
        read_turn_d = 1'b1;
        if (publish) begin
          first_valid_d = (held_count != '0) ? 1'b0 : first_valid_q;
          en_d          = (held_count != '0) ? EnTurn : EnIdle;
        end
      end
      EnTurn: begin
        in_pass_d = 1'b1;
        if (ends) begin
          if (killing_q) kill_d = 1'b0;
          killing_d  = 1'b0;
          kill_all_d = 1'b0;
          read_turn_d = 1'b1;
          en_d       = EnIdle;
        end else begin
          pop    = 1'b1;
          item_d = front;
          left_d = left_q - 1'b1;
          en_d   = EnJudge;
        end
      end
      EnJudge: begin
        zero_d = is_killed || !is_shown;
        if (in_pass_q && (is_killed || is_shown || is_over)) begin
          count_held_read_timeouts_o = !is_killed && !is_shown;
          en_d = EnFetch;
        end else begin
          push          = 1'b1;
          first_valid_d = 1'b1;
          if (is_earlier) first_d = item_q.until_ns;
          en_d = in_pass_q ? EnTurn : EnIdle;
        end
      end
      EnFetch: en_d = EnWord;
      EnWord:  en_d = EnGive;
      EnGive:  if (answer_ready_i) en_d = in_pass_q ? EnTurn : EnIdle;
      default: en_d = EnIdle;
    endcase
    // A queue that is set up to be off lets its reads go.
    if (setup_write_i && !setup_active_i) kill_d = 1'b1;
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      en_q          <= EnClear;
      clear_q       <= '0;
      kill_all_q    <= 1'b0;
      kill_q        <= 1'b0;
      killing_q     <= 1'b0;
      reading_q     <= 1'b0;
      show_q        <= 1'b0;
      in_pass_q     <= 1'b0;
      flush_q       <= 1'b0;
      first_valid_q <= 1'b0;
      read_turn_q   <= 1'b0;
      is_due_q      <= 1'b0;
    end else begin
      en_q          <= en_d;
      clear_q       <= clear_q + QueueW'(clearing);
      kill_all_q    <= kill_all_d;
      kill_q        <= kill_d;
      killing_q     <= killing_d;
      reading_q     <= reading_d;
      show_q        <= show_d;
      in_pass_q     <= in_pass_d;
      flush_q       <= clear_i || flush_q && en_q != EnClear;
      first_valid_q <= first_valid_d;
      read_turn_q   <= read_turn_d;
      is_due_q      <= is_due && first_valid_d;
    end
    now_q   <= now_ns_i;
    queue_q <= queue_d;
    item_q  <= item_d;
    left_q  <= left_d;
    first_q <= first_d;
    zero_q  <= zero_d;
    ones_q  <= ones_d;
    if (setup_write_i && !setup_active_i) kill_queue_q <= setup_queue_i;
    if (en_q == EnLook) begin
      hold_q      <= settings.hold_ns;
      is_active_q <= settings.active;
      used_q      <= written - freed;
      distance_q  <= CountW'((line_index - freed[EntryW-1:0]) & entry_mask);
      sum_low_q   <= {1'b0, now_q[16:0]} + {1'b0, settings.hold_ns[16:0]};
      now_high_q  <= now_q[33:17];
      // For the word and those behind it in its line, which one load asks for one after the other.
      has_room_q  <= held_count <= HeldW'(Held - 8) + HeldW'(item_q.word);
    end
    if (en_q == EnPublished) begin
      show_queue_q <= queue_q;
      show_line_q  <= EntryW'(written[EntryW-1:0] << settings.lines_log2) & window_mask_i;
      low_mask_q   <= EntryW'(~(14'h3fff << settings.lines_log2));
    end
    value_q <= zero_q ? {64{ones_q}} : mem_q[64*item_q.word +: 64];
  end

  assign answer_valid_o = en_q == EnGive;
  assign answer_tag_o   = item_q.tag;
  assign answer_value_o = value_q;

  logic unused_bits;
  assign unused_bits = ^{front_valid, push_ready};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!setup_write_i || hold_i && idle_o) else $error("entry_reads: set up while at work");
      assert (!pop || front_valid) else $error("entry_reads: a pass over more reads than there are");
      assert (!push || push_ready) else $error("entry_reads: more reads than places");
      assert (!(doorbell_valid_i && (d1_valid_q || d2_valid_q))) else $error("entry_reads: doorbells too close");
      assert (!(d2_valid_q && d3_valid_q)) else $error("entry_reads: a doorbell overtakes another");
      assert (en_q != EnFind || !is_active_q || used_q <= CountW'(window_mask_i) + 1'b1)
        else $error("entry_reads: more entries than places");
      assert (!publish || publish_valid_i || flush_q) else $error("entry_reads: an entry that is not there");
    end
  end
`endif

endmodule

`default_nettype wire

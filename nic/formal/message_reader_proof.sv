// What is proved of nic/rtl/mmio/message_reader.sv, for every length of run, by k-induction
// (nic/formal/message_reader.sby), of any queue, whatever the other does:
//   - no line at or beyond the frontier is used up, looked at as part of a batch, or let out;
//   - a message leaves only when all of its lines lie before the frontier, and then all of them leave in its turn, one
//     after the other: `next start` moves by whole messages, but for lines that are dropped;
//   - no wake-up is lost: while a whole good message stands at `next start` (or, of a queue that is to be emptied, any
//     line), the queue waits for a turn, has one, or is announced in this cycle;
//   - a line that leaves stands still until it is taken, and all that is said of it;
//   - a message is shown before it is whole only if its queue was started so; every line that is shown lies before the
//     frontier, and but for the message's last one and the one with the abort mark so does the next; the lines follow each
//     other from the first to the last or to the abort mark; and a message is given back unsent only if it was shown whole
//     without an abort mark, and is whole. So in store and forward no line leaves before its message is whole.
//
// Assumed, of its surroundings: a queue has one turn at a time and is announced a cycle after its frontier moved (what
// scheduler_proof.sv proves); the frontier moves on, less than 2^PosW lines beyond what was used up; the header of the
// message at `next start` is the same whenever it is read; a queue is started while nothing of it is under way; the
// outcome of a batch comes after its look, that on a message that was shown after the last line of that, and it is
// `whole` only if there was no abort mark. Headers, moves, outcomes, back-pressure, shares and the order of turns are
// free.
//
// Proved for 2 queues and windows of 2, 4 and 8 lines, so positions of 5 bits. A queue enters by addresses of tables and
// comparisons for equality alone; a position by differences modulo 2^PosW, which is what the limit above is about.

`default_nettype none

module message_reader_proof #(
  localparam int unsigned NumQueues = 2,
  localparam int unsigned LineW = 3,
  localparam int unsigned PtrW = 2,
  localparam int unsigned QueueW = 1,
  localparam int unsigned PosW = LineW + 2
) (
  input logic              clk_i,
  input logic              rst_ni,
  input logic [LineW-1:0]  window_mask_i,
  input logic [13:0]       max_frame_bytes_i,
  input logic              frontier_we_i,
  input logic [QueueW-1:0] frontier_queue_i,
  input logic [PosW-1:0]   frontier_i,
  input logic              turn_valid_i,
  input logic [QueueW-1:0] turn_queue_i,
  input logic [QueueW-1:0] early_queue_i,
  input logic              turn_class_i,
  input logic [1:0]        waits_upto_i,
  input logic [3:0]        set_class_i,
  input logic              set_valid_i,
  input logic [QueueW-1:0] set_queue_i,
  input logic [7:0]        set_epoch_i,
  input logic [7:0]        set_weight_i,
  input logic              set_closing_i,
  input logic              set_dropping_i,
  input logic              set_early_i,
  input logic [LineW-1:0]  set_early_more_i,
  input logic              shown_valid_i,
  input logic              shown_bad_i,
  input logic              shown_broken_i,
  input logic              start_valid_i,
  input logic [PtrW-1:0]   start_tail_i,
  input logic [PtrW-1:0]   resolve_next_i,
  input logic [PtrW-1:0]   chain_next_i,
  input logic [63:0]       load_header_i,
  input logic              line_ready_i,
  input logic              scanned_valid_i,
  input logic [QueueW-1:0] scanned_queue_i,
  input logic              scanned_bad_i,
  // The queue that is followed, and the header of its next message.
  input logic [QueueW-1:0] place_i,
  input logic [63:0]       next_header_i
);

  logic              turn_ready, early_taken, early_holds, done_valid, done_more, line_valid, line_first, line_last;
  logic              line_early, line_abort, line_scan, scanned_ready, next_start_valid, failed_valid;
  logic [QueueW-1:0] failed_queue, done_queue, line_queue, next_start_queue;
  logic [PosW-1:0]   next_start;

  message_reader #(.NumQueues(NumQueues), .NumClasses(2), .LineW(LineW), .PtrW(PtrW)) dut (
    .clk_i, .rst_ni, .window_mask_i, .max_frame_bytes_i, .frontier_we_i, .frontier_queue_i, .frontier_i,
    .turn_valid_i, .turn_ready_o(turn_ready), .turn_queue_i, .early_queue_i, .early_holds_i(early_holds),
    .early_taken_o(early_taken), .done_valid_o(done_valid), .done_queue_o(done_queue), .done_more_o(done_more),
    .turn_class_i, .waits_upto_i, .set_class_i, .set_valid_i, .set_queue_i, .set_epoch_i, .set_weight_i,
    .set_closing_i, .set_dropping_i, .set_early_i, .set_early_more_i, .shown_valid_i, .shown_bad_i, .shown_broken_i,
    .line_early_o(line_early), .line_abort_o(line_abort), .count_cut_through_frames_o(),
    .start_valid_i, .start_tail_i, .resolve_line_o(), .resolve_next_i, .chain_line_o(), .chain_next_i,
    .load_valid_o(), .load_line_o(), .load_header_i, .give_valid_o(), .give_line_o(), .give_queue_o(),
    .give_dropped_o(), .line_valid_o(line_valid), .line_ready_i, .line_first_o(line_first), .line_last_o(line_last),
    .line_batch_o(), .line_scan_o(line_scan), .line_lines_o(), .line_next_start_o(), .line_skip_o(),
    .line_queue_o(line_queue), .line_bytes_o(), .scanned_valid_i, .scanned_ready_o(scanned_ready), .scanned_queue_i,
    .scanned_bad_i, .next_start_valid_o(next_start_valid), .next_start_queue_o(next_start_queue),
    .next_start_o(next_start), .failed_valid_o(failed_valid), .failed_queue_o(failed_queue), .failed_cause_o(),
    .emptied_valid_o(),
    .emptied_queue_o(), .emptied_tail_o(), .busy_o(), .count_tx_messages_o(), .count_tx_voids_o(),
    .count_tx_batches_o(), .count_runts_o()
  );

  logic started_q = 1'b0;

  // ---------------------------------------------------------------------------------------------- the scheduler
  // For both queues: live since a start, waiting for a turn, having one; who was announced, whether a turn began early.
  logic [NumQueues-1:0] live_q, waits_q, waits_d, turns_q, turns_d;
  logic                 ready_q, early_q;
  logic [QueueW-1:0]    ready_queue_q, place_q;
  logic [LineW-1:0]     mask_q;
  logic [13:0]          longest_q;
  logic                 is_out;
  assign is_out      = !waits_q[ready_queue_q] && !turns_q[ready_queue_q];
  assign early_holds = ready_q && early_q && is_out;

  always_comb begin
    waits_d = waits_q;
    turns_d = turns_q;
    if (turn_valid_i && turn_ready) begin
      waits_d[turn_queue_i] = 1'b0;
      turns_d[turn_queue_i] = 1'b1;
    end
    if (ready_q && is_out) begin
      if (early_q) turns_d[ready_queue_q] = 1'b1;
      else waits_d[ready_queue_q] = 1'b1;
    end
    if (done_valid) begin
      turns_d[done_queue] = 1'b0;
      waits_d[done_queue] = done_more;
    end
  end

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    place_q   <= place_i;
    mask_q    <= window_mask_i;
    longest_q <= max_frame_bytes_i;
    if (!rst_ni) begin
      live_q  <= '0;
      waits_q <= '0;
      turns_q <= '0;
      ready_q <= 1'b0;
      early_q <= 1'b0;
    end else begin
      waits_q <= waits_d;
      turns_q <= turns_d;
      ready_q <= frontier_we_i && !start_valid_i;
      early_q <= early_taken;
      if (start_valid_i) live_q[set_queue_i] <= 1'b1;
    end
    ready_queue_q <= frontier_queue_i;
    if (!started_q) assume (!rst_ni);
    assume (window_mask_i == LineW'(1) || window_mask_i == LineW'(3) || window_mask_i == LineW'(7));
    if (started_q) begin
      assume (place_i == place_q && window_mask_i == mask_q && max_frame_bytes_i == longest_q);
      if (turn_valid_i) assume (waits_q[turn_queue_i]);
      if (frontier_we_i) assume (rst_ni && early_queue_i == frontier_queue_i);
      if (frontier_we_i && !start_valid_i) assume (live_q[frontier_queue_i]);
      if (start_valid_i) begin
        assume (rst_ni && set_valid_i && !set_closing_i && !set_dropping_i);
        assume (!set_early_i || set_early_more_i >= LineW'(3));
        assume (frontier_we_i && frontier_queue_i == set_queue_i && frontier_i == '0);
        assume (!live_q[set_queue_i] || (!waits_q[set_queue_i] && !turns_q[set_queue_i]));
        assume (!ready_q && !dut.ending_o && !done_valid && !next_start_valid && !dut.uncheck_q);
      end
    end
  end

  // ---------------------------------------------------------------------------------------------- the followed queue
  // Its frontier; the position of the line to be used up next, that of the message behind; the header there.
  logic [PosW-1:0] frontier_q, used_q, next_q;
  logic [63:0]     header_q;
  logic [7:0]      epoch_q;
  logic            live, closing_q, dropping_q, asked_q, checked_q, malformed_q, told_q, early_on_q;
  // A line of it was dropped: whatever else it holds will be.
  logic            dropped_q;
  assign live = live_q[place_i];

  // What the header says.
  logic [23:0]     length;
  logic [18:0]     lines;
  logic [PosW-1:0] there;
  logic            is_good, is_whole, is_batch, is_wanted, is_emptied, is_told;
  assign is_told    = told_q || (failed_valid && failed_queue == place_i);
  // It takes no more writes, and what it holds is dropped sooner or later.
  assign is_emptied = closing_q || dropping_q;
  assign length    = header_q[23:0];
  assign lines     = 19'((25'(length) + 25'd71) >> 6);
  assign is_batch  = header_q[49:46] == nic_pkg::MessageKindBatch[3:0];
  assign is_good   = header_q[63:58] == '0 && header_q[57:50] == epoch_q && header_q[45:24] == '0
                     && (header_q[49:46] == nic_pkg::MessageKindData[3:0] || is_batch
                         || header_q[49:46] == nic_pkg::MessageKindVoid[3:0])
                     && lines <= 19'(window_mask_i) + 19'd1
                     && (header_q[49:46] != nic_pkg::MessageKindData[3:0] || length <= 24'(max_frame_bytes_i));
  assign there     = frontier_q - next_q;
  assign is_whole  = lines <= 19'(there);
  // There is something to do for the queue: a whole message, or anything at all if it is to be emptied.
  assign is_wanted = (is_good && is_whole && !(is_batch && checked_q && malformed_q))
                     || (is_emptied && there != '0)
                     || (there != '0 && !is_told && !is_emptied && (!is_good || (is_batch && checked_q
                         && malformed_q)));

  // The look at a batch: whose, and whether its last line has left.
  logic              look_q, look_done_q, look_shows_q, look_whole_q;
  logic [QueueW-1:0] look_queue_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      {look_q, look_done_q} <= '0;
    end else begin
      if (dut.go && dut.scan_begins) begin
        look_q       <= 1'b1;
        look_queue_q <= dut.lqueue1_q;
        look_shows_q <= dut.show_begins;
      end else if (dut.outcome) begin
        look_q <= 1'b0;
      end
      if (line_valid && line_ready_i && line_scan && line_last) begin
        look_done_q  <= 1'b1;
        look_whole_q <= !line_abort;
      end else if (dut.outcome) begin
        look_done_q <= 1'b0;
      end
    end
  end

  logic step, uses, begins, drops, looks;
  assign step   = rst_ni && dut.go && dut.consider && dut.lqueue1_q == place_i;
  assign uses   = step && dut.consume;
  assign drops  = uses && dut.discard1_q;
  assign begins = uses && !dut.discard1_q && dut.at_header;
  assign looks  = step && dut.scans;

  always_ff @(posedge clk_i) begin
    if (started_q) begin
      if (frontier_we_i && frontier_queue_i == place_i && !start_valid_i) begin
        assume (PosW'(frontier_i - used_q) >= PosW'(frontier_q - used_q));
      end
      if (dut.line1_q && dut.lqueue1_q == place_i && dut.at_header) assume (load_header_i == header_q);
      // Short of a start, a set-up says that the queue is emptied, once and for all.
      if (set_valid_i && !start_valid_i) begin
        assume (rst_ni && live_q[set_queue_i] && set_closing_i && !set_early_i);
        if (set_queue_i == place_i) assume (set_epoch_i == epoch_q && (set_dropping_i || !dropping_q));
      end
      if (scanned_valid_i) assume (rst_ni && look_done_q && !look_shows_q && scanned_queue_i == look_queue_q);
      if (shown_valid_i) begin
        assume (rst_ni && look_done_q && look_shows_q && !dut.shown_q && (shown_bad_i || look_whole_q));
      end
    end
    if (rst_ni && set_valid_i && set_queue_i == place_i) begin
      epoch_q    <= set_epoch_i;
      closing_q  <= set_closing_i;
      dropping_q <= set_dropping_i;
      early_on_q <= set_early_i;
      asked_q    <= 1'b0;
    end
    if (rst_ni && frontier_we_i && frontier_queue_i == place_i) begin
      frontier_q <= frontier_i;
      if (!set_valid_i || set_queue_i != place_i || start_valid_i) asked_q <= 1'b1;
    end
    if (begins || drops) begin
      next_q   <= next_q + (drops ? PosW'(1) : PosW'(lines));
      header_q <= next_header_i;
    end
    if (drops) dropped_q <= 1'b1;
    if (begins) checked_q <= 1'b0;
    if (uses) used_q <= used_q + 1'b1;
    if (rst_ni && dut.outcome && dut.outcome_queue == place_i) begin
      checked_q   <= 1'b1;
      malformed_q <= dut.checked_wr[1];
    end
    if (rst_ni && failed_valid && failed_queue == place_i) told_q <= 1'b1;
    if (rst_ni && start_valid_i && set_queue_i == place_i) begin
      told_q <= 1'b0;
      {used_q, next_q, checked_q, dropped_q} <= '0;
      header_q <= next_header_i;
    end
  end

  // ---------------------------------------------------------------------------------------------- properties
  logic [PosW-1:0] line_pos_q, load_pos_q;
  logic [PosW-1:0] ahead, load_ahead;
  assign ahead      = frontier_q - line_pos_q;
  assign load_ahead = frontier_q - load_pos_q;
  always_ff @(posedge clk_i) if (dut.go) {line_pos_q, load_pos_q} <= {load_pos_q, dut.fetch_pos_q};

  logic was_used_q = 1'b0;
  always_ff @(posedge clk_i) was_used_q <= uses && !dut.discard1_q;

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni && live) begin
      if (uses) assert (line_pos_q == used_q && ahead != '0);
      if (begins) assert (is_good && is_whole && used_q == next_q && !(is_batch && (!checked_q || malformed_q)));
      if (uses && !begins && !drops) assert (used_q != next_q);
      if (looks) assert (ahead != '0);
      if (looks && !is_batch && !dut.flush_q) assert (dut.ends_message ? is_whole : ahead >= PosW'(2));
      if (looks && !is_batch) assert (dut.line1_q && is_good && (dut.show_begins ? line_pos_q == next_q : dut.show_q));
      if (rst_ni && dut.go && dut.show_begins && dut.lqueue1_q == place_i) begin
        assert ((early_on_q || is_emptied) && dut.lsetup1_q.early && !is_batch);
      end
      if (begins && !is_batch && dut.is_sent) assert (checked_q && malformed_q);
      if (done_valid && done_queue == place_i) assert (used_q == next_q);
      if (next_start_valid && next_start_queue == place_i) assert (next_start == next_q);
      if (was_used_q) assert (line_valid && line_queue == place_i && line_last == (used_q == next_q));
      // No wake-up is lost.
      if (asked_q && is_wanted) begin
        assert (waits_q[place_i] || turns_q[place_i] || (ready_q && ready_queue_q == place_i));
      end
    end
  end

  // A line that is not taken stands still, and all that is said of it.
  localparam int unsigned SideW = 8 + LineW + 1 + PosW + QueueW + 24;
  logic             waited_q = 1'b0;
  logic [SideW-1:0] side, waited_side_q;
  assign side = {line_valid, line_first, line_last, line_scan, line_early, line_abort, dut.line_batch_o,
                 dut.line_skip_o, dut.line_lines_o,
                 dut.line_next_start_o, line_queue, dut.line_bytes_o};
  always_ff @(posedge clk_i) begin
    waited_q      <= rst_ni && line_valid && !line_ready_i;
    waited_side_q <= side;
    if (started_q && rst_ni && waited_q) assert (side == waited_side_q);
  end

  // ---------------------------------------------------------------------------------------------- invariants
  // Where the followed queue's turn is, and what it knows of its queue there.
  logic in_aside, in_turn, in_fetch, in_load, in_first, in_live, in_done, in_look, in_end, current;
  assign in_aside = dut.aside_q && dut.aside_queue_q == place_i;
  assign in_end   = done_valid && done_queue == place_i;
  assign in_turn  = dut.turn1 && dut.queue1_q == place_i;
  assign in_fetch = dut.fetch_q && dut.fetch_first_q && dut.fetch_queue_q == place_i;
  assign in_load  = dut.load_q && dut.load_first_q && dut.load_queue_q == place_i;
  assign in_first = dut.line1_q && dut.first1_q && dut.lqueue1_q == place_i;
  assign in_live  = dut.live_q && dut.line1_q && !dut.first1_q && dut.lqueue1_q == place_i;
  assign in_done  = dut.done2_q && dut.queue2_q == place_i;
  assign in_look  = dut.scan_pending_q && look_queue_q == place_i && !dut.scan_q;
  // The line that stands in the line stage belongs to a turn that is not over.
  assign current  = in_first || in_live;
  // So does the one in the load stage, of whatever queue.
  logic goes_on, coming;
  assign goes_on = dut.line1_q && (dut.first1_q || dut.live_q) && (!dut.last1_q || dut.show_q);
  assign coming  = dut.load_q && (dut.load_first_q || goes_on);

  // Bits of the state of a queue, in message_reader: discard, told, next_start, tail, share.
  localparam int unsigned ShareW = 21;
  localparam int unsigned StateW = 2 + PosW + PtrW + ShareW;
  localparam int unsigned StartAt = ShareW + PtrW;
  logic [StateW-1:0] state_kept;
  logic [19+LineW:0] setup_kept;
  assign state_kept = dut.u_state.mem[place_i];
  assign setup_kept = dut.u_setup.mem[place_i];

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      // What follows of any queue is proved of the followed one, and so of each: a stage has only one of them.
      if (done_valid && done_queue != place_i) assume (turns_q[done_queue]);
      if (dut.lqueue1_q != place_i && dut.line1_q && (dut.first1_q || dut.live_q) && dut.go) begin
        assume (!(dut.scans && dut.last1_q && !dut.show_q) || dut.rest_d == '0);
        assume (!(dut.show_q && !dut.scan_ends) || !dut.fetch_empty || dut.rest_q <= (LineW + 1)'(2));
        assume (!dut.show_begins || (!dut.last1_q && !dut.load_last_q && !dut.fetch_last
                                     && dut.less_one > (LineW + 1)'(3)));
        assume (!(dut.ends && !dut.waits && !dut.discard1_q) || dut.rest_d == '0);
      end
      if (done_valid) assert (turns_q[done_queue]);
      // Of any turn: the lines of one follow each other, and it is fetched until its last line is in the line stage.
      if (dut.live_q) assert (dut.line1_q && !dut.first1_q && !dut.abort_q);
      if (goes_on) begin
        assert (dut.load_q && !dut.load_first_q && dut.load_queue_q == dut.lqueue1_q);
        assert (load_pos_q == line_pos_q + 1'b1 && !dut.abort_q);
        assert (dut.load_discard_q == dut.discard1_q);
      end
      if (coming && (!dut.load_last_q || dut.show_q)) begin
        assert (dut.fetch_q && !dut.fetch_first_q && dut.fetch_queue_q == dut.load_queue_q);
        assert (dut.fetch_pos_q == load_pos_q + 1'b1 && !dut.abort_q);
        assert (dut.fetch_discard_q == dut.load_discard_q);
      end
      if (dut.load_q) assert (dut.load_empty_q == (dut.load_left_q == '1));
      if (dut.load_q) assert (dut.load_last_q == (dut.load_empty_q || dut.load_left_q == '0));
      if (dut.line1_q) assert (dut.empty1_q == (dut.left1_q == '1));
      if (dut.line1_q && dut.first1_q) assert (dut.rest_q == '0 && !dut.scan_q);
      if (dut.live_q && dut.discard1_q) assert (dut.rest_q == '0 && !dut.scan_q);
      if (dut.line1_q) assert (dut.last1_q == (dut.empty1_q || dut.left1_q == '0));
      if (dut.scan_q) assert (dut.live_q && dut.scan_pending_q && dut.lqueue1_q == look_queue_q);
      if (dut.abort_q) begin
        assert (!dut.fetch_q || !dut.fetch_first_q);
        assert (!(dut.load_q && dut.load_first_q) && !(dut.line1_q && dut.first1_q));
      end
      // A message is shown from its second line on, and waits only for a line that is not there.
      if (dut.show_q) assert (dut.scan_q && !dut.discard1_q && !dut.empty1_q && dut.rest_q != '0 && look_shows_q);
      if (dut.hold_q) assert (dut.show_q && dut.rest_q > (LineW + 1)'(2));
      if (dut.flush_q) assert (dut.show_q);
      if (dut.show_q && dut.rest_q > (LineW + 1)'(1)) assert (dut.load_q && !dut.load_empty_q);
      if (dut.scan_q) assert (dut.show_q == look_shows_q);
      if (look_q && look_shows_q) assert (dut.shown_queue_q == look_queue_q);
      if (dut.shown_q) assert (look_done_q && look_shows_q && (dut.shown_bad_q || look_whole_q));
      assert (look_q == dut.scan_pending_q && early_q == dut.early_q);
      if (line_valid && line_scan) assert (dut.scan_pending_q && !look_done_q && dut.scan_q == !line_last);
      if (look_done_q) assert (dut.scan_pending_q && !dut.scan_q);
      if (dut.scan_pending_q && !dut.scan_q && !look_done_q) assert (line_valid && line_scan && line_last);
      if (early_q) assert (dut.turn_q && (!ready_q || dut.queue1_q == ready_queue_q));
      for (int unsigned q = 0; q < NumQueues; q++) if (waits_q[q] || turns_q[q]) assert (live_q[q]);
      if (ready_q) assert (live_q[ready_queue_q]);
    end
    if (started_q && rst_ni) begin
      // Its turn is in one place.
      assert (3'(in_aside) + 3'(in_turn) + 3'(in_fetch) + 3'(in_load) + 3'(in_first) + 3'(in_live) + 3'(in_done)
              + 3'(in_look) + 3'(in_end) == 3'(turns_q[place_i] || (early_holds && ready_queue_q == place_i)));
      assert (!(waits_q[place_i] && turns_q[place_i]));
    end
    if (started_q && rst_ni && live) begin
      if (dropping_q) assert (closing_q);
      // The tables.
      assert (dut.u_frontier.mem[place_i] == frontier_q);
      assert (setup_kept[18:11] == epoch_q && setup_kept[1:0] == {closing_q, dropping_q});
      assert (dut.u_checked.mem[place_i][0] == (checked_q || (dut.uncheck_q && dut.queue2_q == place_i)));
      if (dut.uncheck_q && dut.queue2_q == place_i) assert (!checked_q && (in_live || in_done));
      // A message that was shown is good, and whole if it was sent.
      if (checked_q && !is_batch && !is_emptied) assert (is_good && early_on_q);
      if (checked_q && !is_batch && malformed_q && !dropped_q) assert (is_good && is_whole);
      if (dropped_q) assert (is_emptied);
      assert (setup_kept[19 + LineW] == early_on_q);
      if (early_on_q) assert (setup_kept[19 +: LineW] >= LineW'(3));
      if (is_emptied) assert (!early_on_q);
      if (state_kept[StateW-1]) assert (is_emptied);
      if (state_kept[StateW-2]) assert (is_told);
      if (checked_q) assert (dut.u_checked.mem[place_i][1] == malformed_q);
      if (!in_done && !(in_live && !dut.scan_q)) begin
        assert (state_kept[StartAt +: PosW] == next_q && used_q == next_q);
      end
      assert (PosW'(next_q - used_q) <= PosW'(frontier_q - used_q));
      // The stages.
      if (in_turn) begin
        assert (dut.turn1_now.state.next_start == next_q && dut.turn1_now.frontier == frontier_q);
        assert (dut.turn1_now.setup.epoch == epoch_q && dut.turn1_now.setup.early == early_on_q);
        if (early_on_q) assert (dut.turn1_now.setup.early_more >= LineW'(3));
        assert ({dut.turn1_now.setup.closing, dut.turn1_now.setup.dropping} == {closing_q, dropping_q});
        assert ({dut.turn1_now.state.discard, dut.turn1_now.state.told} == state_kept[StateW-1-:2]);
        assert (dut.turn1_now.checked[0] == checked_q && (!checked_q || dut.turn1_now.checked[1] == malformed_q));
      end
      if (in_fetch) begin
        if (dut.fetch_state_q.told) assert (is_told);
        assert (dut.fetch_state_q.next_start == next_q && dut.fetch_pos_q == next_q);
        assert (dut.fetch_setup_q.epoch == epoch_q && dut.fetch_setup_q.early == early_on_q);
        if (early_on_q) assert (dut.fetch_setup_q.early_more >= LineW'(3));
        assert (dut.fetch_frontier_q == frontier_q || (dut.fetch_moved_q && dut.fetch_empty));
        assert (dut.fetch_checked_q[0] == checked_q && (!checked_q || dut.fetch_checked_q[1] == malformed_q));
        if (dut.fetch_discard_q || dut.fetch_state_q.discard) assert (is_emptied);
        assert ({dut.fetch_setup_q.closing, dut.fetch_setup_q.dropping} == {closing_q, dropping_q});
      end
      if (in_load) begin
        assert (dut.load_state_q.next_start == next_q && load_pos_q == next_q);
        if (dut.load_state_q.discard) assert (is_emptied);
        if (dut.load_state_q.told) assert (is_told);
        assert (dut.load_checked_q[0] == checked_q && (!checked_q || dut.load_checked_q[1] == malformed_q));
      end
      if (coming && dut.load_queue_q == place_i) begin
        assert (dut.load_setup_q.epoch == epoch_q);
        if (dut.load_setup_q.early) assert ((early_on_q || is_emptied) && dut.load_setup_q.early_more >= LineW'(3));
        if (dut.load_discard_q || dut.load_setup_q.closing || dut.load_setup_q.dropping) assert (is_emptied);
        if (asked_q && {dut.load_setup_q.closing, dut.load_setup_q.dropping} != {closing_q, dropping_q}) begin
          assert (dut.load_moved_q);
        end
        assert (PosW'(dut.load_left_q + 1'b1) <= load_ahead);
        assert (PosW'(dut.load_left_q + 1'b1) == load_ahead || dut.load_moved_q);
        if (!dut.load_last_q || dut.show_q) begin
          assert (dut.fetch_setup_q.early == early_on_q);
          if (early_on_q) assert (dut.fetch_setup_q.early_more >= LineW'(3));
          assert (dut.fetch_frontier_q == frontier_q && dut.fetch_setup_q.epoch == epoch_q);
          assert ({dut.fetch_setup_q.closing, dut.fetch_setup_q.dropping} == {closing_q, dropping_q});
        end
      end
      if (goes_on && dut.lqueue1_q == place_i) assert (PosW'(dut.load_left_q + 1'b1) >= dut.left1_q);
      if (in_first) begin
        assert (dut.lstate1_q.next_start == next_q && line_pos_q == next_q);
        if (dut.lstate1_q.discard) assert (is_emptied);
        if (dut.lstate1_q.told) assert (is_told);
        assert (dut.lchecked1_q[0] == checked_q && (!checked_q || dut.lchecked1_q[1] == malformed_q));
      end
      if (current) begin
        assert (dut.lsetup1_q.epoch == epoch_q);
        if (dut.lsetup1_q.early) assert ((early_on_q || is_emptied) && dut.lsetup1_q.early_more >= LineW'(3));
        if (dut.discard1_q || dut.lsetup1_q.closing || dut.lsetup1_q.dropping) assert (is_emptied);
        // A line that was fetched before the queue was closed knows by its frontier that something happened.
        if (asked_q
            && {dut.lsetup1_q.closing, dut.lsetup1_q.dropping} != {closing_q, dropping_q}) assert (dut.moved1_q);
        assert (PosW'(dut.left1_q + 1'b1) <= ahead);
        assert (PosW'(dut.left1_q + 1'b1) == ahead || dut.moved1_q);
      end
      if (in_live) begin
        if (dut.lstate1_q.discard) assert (is_emptied);
        if (dut.lstate1_q.told) assert (is_told);
        assert (dut.lstate1_q.next_start == next_q);
        if (dut.show_q) begin
          assert (PosW'(line_pos_q - next_q) < there);
          assert (dut.rest_q == (LineW + 1)'(1) || PosW'(load_pos_q - next_q) < there);
          assert (dut.hold_q || dut.flush_q || dut.rest_q <= (LineW + 1)'(2)
                  || PosW'(dut.fetch_pos_q - next_q) < there);
        end else begin
          assert (PosW'(dut.rest_q) <= PosW'(dut.left1_q + 1'b1));
        end
        if (dut.scan_q) begin
          assert (dut.rest_q != '0 && PosW'(line_pos_q + PosW'(dut.rest_q)) == PosW'(next_q + PosW'(lines)));
          assert (19'(dut.rest_q) < lines);
        end else begin
          assert (PosW'(dut.rest_q) == PosW'(next_q - used_q) && line_pos_q == used_q);
          assert (!checked_q || (is_emptied && dut.discard1_q));
        end
      end
      if (in_done) begin
        assert (dut.lstate_q.next_start == next_q && used_q == next_q);
        if (dut.lstate_q.discard) assert (is_emptied);
        if (dut.lstate_q.told) assert (is_told);
        if (asked_q && is_wanted) assert (dut.moved2_q || dut.again2_q);
      end
      if (in_end && asked_q && is_wanted) assert (done_more);
      if (in_look || (in_live && dut.scan_q)) begin
        assert (!checked_q && is_good && is_batch == !look_shows_q);
        if (is_batch) assert (is_whole);
        else assert (early_on_q || is_emptied);
        // Its last line leaves, or has left.
        if (in_look && look_shows_q && (look_done_q ? look_whole_q : !line_abort)) assert (is_whole);
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni && live) begin
      cover (next_start_valid && next_start_queue == place_i && next_start == PosW'(5) && used_q == PosW'(5));
      cover (begins && is_batch && lines == 19'd2);
      cover (drops && closing_q && next_q == PosW'(3));
      cover (line_valid && line_abort && line_queue == place_i);
    end
  end

endmodule

`default_nettype wire

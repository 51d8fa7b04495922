// From contiguous lines to messages: reads the lines of a queue in order, and lets a message go once it is whole.
//
// A turn is one look at one queue. It reads lines from the queue's next start on, one a cycle; each message's header
// says how long it is (the Length Address Register of HotOS'25 3.1 is 64 times `next start`), and the message goes out
// if the frontier lies behind it. A turn ends at a message that is not whole, at the frontier, or when the queue has
// had its share; nothing of a message that is not whole has any effect.
//
// Stages (0 to 2 of the reader; a turn of a queue that waits for nothing starts while `commit` still counts its line)
//   turn   the queue's state is read
//   fetch  line after line is asked of the pool, the first through the link of the line before it
//   line   the line is there: header, length, verdict
//   out    the line leaves; next start, credits and the share are brought up to date
// Guarantees
//   - A message leaves only if all its lines lie before the frontier, each line once, in order, without a gap.
//   - Lines are given back to the pool one later than they leave, so that the one before the next message, which is
//     the only way to that message, stays the queue's until then.
//   - No wake-up is lost: a frontier that moves during a turn gives the queue another turn.
// Cost: three tables of NumQueues entries. Twin: nic/model/src/mmio/tx_queue.rs (settle_head, pop), message.rs.

`default_nettype none

module message_reader #(
  parameter int unsigned NumQueues = 64,
  parameter int unsigned LineW = 6,
  parameter int unsigned PtrW = 11,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned PosW = LineW + 2
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  // Straps: lines of every window less 1, bytes of the longest frame.
  input  logic [LineW-1:0]  window_mask_i,
  input  logic [13:0]       max_frame_bytes_i,

  // The frontier of a queue moved (stage 5 of the reorder unit).
  input  logic              frontier_we_i,
  input  logic [QueueW-1:0] frontier_queue_i,
  input  logic [PosW-1:0]   frontier_i,

  // Turns: queues that wait for one, and the queue of stage 5, which may begin at once when none waits.
  input  logic              turn_valid_i,
  output logic              turn_ready_o,
  input  logic [QueueW-1:0] turn_queue_i,
  input  logic [QueueW-1:0] early_queue_i,
  // In the next cycle: the early turn holds (the frontier did move and the queue had no turn).
  input  logic              early_holds_i,
  output logic              early_taken_o,

  // The end of a turn, and whether the queue wants another.
  output logic              done_valid_o,
  output logic [QueueW-1:0] done_queue_o,
  output logic              done_more_o,
  input  logic              others_wait_i,

  // Set-up of a queue; it has no turn meanwhile. `closing`: what is not whole is to be dropped; `dropping`: everything.
  input  logic              set_valid_i,
  input  logic [QueueW-1:0] set_queue_i,
  input  logic [7:0]        set_epoch_i,
  input  logic [7:0]        set_weight_i,
  input  logic              set_closing_i,
  input  logic              set_dropping_i,
  input  logic              start_valid_i,
  input  logic [PtrW-1:0]   start_tail_i,

  // The pool: links and lines.
  output logic [PtrW-1:0]   resolve_line_o,
  input  logic [PtrW-1:0]   resolve_next_i,
  output logic [PtrW-1:0]   chain_line_o,
  input  logic [PtrW-1:0]   chain_next_i,
  output logic              load_valid_o,
  output logic [PtrW-1:0]   load_line_o,
  input  logic [63:0]       load_header_i,
  output logic              give_valid_o,
  output logic [PtrW-1:0]   give_line_o,
  output logic [QueueW-1:0] give_queue_o,
  // The line belongs to no message: it leaves the queue's account with this.
  output logic              give_dropped_o,

  // Lines of messages that are whole; the bytes come from the pool beside them.
  output logic              line_valid_o,
  input  logic              line_ready_i,
  output logic              line_first_o,
  output logic              line_last_o,
  // It belongs to a batch; it is only looked at, and stays where it is.
  output logic              line_batch_o,
  output logic              line_scan_o,
  // Lines of the message, the queue's next start behind it, and whether it makes no frame.
  output logic [LineW:0]    line_lines_o,
  output logic [PosW-1:0]   line_next_start_o,
  output logic              line_skip_o,
  output logic [QueueW-1:0] line_queue_o,
  output logic [23:0]       line_bytes_o,

  // A batch was looked at: it may leave, or it is malformed.
  input  logic              scanned_valid_i,
  output logic              scanned_ready_o,
  input  logic [QueueW-1:0] scanned_queue_i,
  input  logic              scanned_bad_i,

  // A message left the queue: its next start. A queue failed here. A queue that was closed or dropped is empty.
  output logic              next_start_valid_o,
  output logic [QueueW-1:0] next_start_queue_o,
  output logic [PosW-1:0]   next_start_o,
  output logic              failed_valid_o,
  output logic [QueueW-1:0] failed_queue_o,
  output logic [3:0]        failed_cause_o,
  output logic              emptied_valid_o,
  output logic [QueueW-1:0] emptied_queue_o,
  output logic [PtrW-1:0]   emptied_tail_o,
  output logic              busy_o,

  output logic              count_tx_messages_o,
  output logic              count_tx_voids_o,
  output logic              count_tx_batches_o,
  output logic              count_runts_o
);

  localparam int unsigned ShareW = 21;

  typedef struct packed {
    // What is left is to be dropped; the queue's failure was told.
    logic              discard;
    logic              told;
    logic [PosW-1:0]   next_start;
    logic [PtrW-1:0]   tail;
    logic [ShareW-1:0] share;
  } state_t;
  typedef struct packed {
    logic [7:0] epoch;
    logic [7:0] weight;
    logic       closing;
    logic       dropping;
  } setup_t;

  logic go;
  assign go = !line_valid_o || line_ready_i;

  // ---------------------------------------------------------------------------------------------- turn
  state_t            state1, state_wr;
  setup_t            setup1, setup_wr;
  logic [PosW-1:0]   frontier1;
  logic              state_we;
  logic [QueueW-1:0] state_wqueue;
  logic              turn_q, early_q, turn1, fetch_load, turn_stands;
  logic [QueueW-1:0] queue1_q, read_queue;

  assign turn_stands   = turn1 && !fetch_load;
  assign turn_ready_o  = !turn_stands;
  assign early_taken_o = !turn_stands && !turn_valid_i;
  assign read_queue    = turn_stands ? queue1_q : (turn_valid_i ? turn_queue_i : early_queue_i);
  // An early turn is known to hold one cycle after it began; later it is a turn like any other.
  assign turn1         = turn_q && (!early_q || early_holds_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      turn_q  <= 1'b0;
      early_q <= 1'b0;
    end else begin
      turn_q  <= turn_stands || turn_valid_i || early_taken_o;
      early_q <= early_taken_o;
    end
    if (!turn_stands) queue1_q <= read_queue;
  end

  table_ram #(.Width($bits(state_t)), .Depth(NumQueues)) u_state (
    .clk_i, .we_i(state_we), .waddr_i(state_wqueue), .wdata_i(state_wr), .raddr_i(read_queue), .rdata_o(state1)
  );
  table_ram #(.Width($bits(setup_t)), .Depth(NumQueues)) u_setup (
    .clk_i, .we_i(set_valid_i), .waddr_i(set_queue_i), .wdata_i(setup_wr), .raddr_i(read_queue), .rdata_o(setup1)
  );
  table_ram #(.Width(PosW), .Depth(NumQueues)) u_frontier (
    .clk_i, .we_i(frontier_we_i), .waddr_i(frontier_queue_i), .wdata_i(frontier_i), .raddr_i(read_queue),
    .rdata_o(frontier1)
  );
  // Whether the batch at a queue's next start was looked at, and what was found.
  logic [1:0]        checked1, checked_wr;
  logic              checked_we;
  logic [QueueW-1:0] checked_queue;
  table_ram #(.Width(2), .Depth(NumQueues)) u_checked (
    .clk_i, .we_i(checked_we), .waddr_i(checked_queue), .wdata_i(checked_wr), .raddr_i(read_queue), .rdata_o(checked1)
  );
  assign setup_wr = '{
    epoch: set_epoch_i, weight: set_weight_i, closing: set_closing_i, dropping: set_dropping_i
  };

  // ---------------------------------------------------------------------------------------------- fetch
  logic              fetch_q, fetch_first_q, fetch_discard_q, moved_here;
  logic [QueueW-1:0] fetch_queue_q;
  state_t            fetch_state_q;
  setup_t            fetch_setup_q;
  logic [1:0]        fetch_checked_q;
  logic [PosW-1:0]   fetch_pos_q, fetch_frontier_q;
  logic [PtrW-1:0]   fetch_line, last_line_q;
  logic              fetch_last, fetch_empty, fetch_step, abort_q;

  assign moved_here  = frontier_we_i && frontier_queue_i == fetch_queue_q;
  assign fetch_empty = fetch_frontier_q == fetch_pos_q;
  assign fetch_last  = fetch_empty || (fetch_frontier_q == fetch_pos_q + 1'b1 && !moved_here);
  assign fetch_step  = fetch_q && go;
  assign fetch_load  = turn1 && (!fetch_q || abort_q || (go && fetch_last));
  assign fetch_line  = fetch_first_q ? resolve_next_i : chain_next_i;

  assign resolve_line_o = (fetch_q && !fetch_load) ? fetch_state_q.tail : state1.tail;
  assign chain_line_o   = fetch_step ? fetch_line : last_line_q;
  assign load_valid_o   = go;
  assign load_line_o    = fetch_line;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) fetch_q <= 1'b0;
    else if (fetch_load) fetch_q <= 1'b1;
    else if (abort_q || (go && fetch_last)) fetch_q <= 1'b0;

    if (fetch_load) begin
      fetch_first_q    <= 1'b1;
      fetch_discard_q  <= state1.discard || setup1.dropping;
      fetch_queue_q    <= queue1_q;
      fetch_state_q    <= state1;
      fetch_setup_q    <= setup1;
      fetch_checked_q  <= checked1;
      fetch_pos_q      <= state1.next_start;
      fetch_frontier_q <= (frontier_we_i && frontier_queue_i == queue1_q) ? frontier_i : frontier1;
    end else begin
      if (fetch_step) begin
        fetch_first_q <= 1'b0;
        fetch_pos_q   <= fetch_pos_q + 1'b1;
      end
      if (moved_here) fetch_frontier_q <= frontier_i;
    end
    if (fetch_step) last_line_q <= fetch_line;
  end

  // ---------------------------------------------------------------------------------------------- line
  logic              line1_q, first1_q, last1_q, empty1_q, discard1_q, moved1_q, live_q;
  logic [QueueW-1:0] lqueue1_q;
  logic [PtrW-1:0]   lline1_q;
  logic [PosW-1:0]   left1_q;
  state_t            lstate1_q, lstate_q, lstate_d, lstate;
  setup_t            lsetup1_q;
  logic [1:0]        lchecked1_q;
  logic              scan_q, scan_pending_q;
  logic [LineW:0]    rest_q, rest_d, rest;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      line1_q <= 1'b0;
    end else if (go) begin
      line1_q <= fetch_step;
    end
    if (go) begin
      first1_q   <= fetch_first_q;
      last1_q    <= fetch_last;
      empty1_q   <= fetch_empty;
      discard1_q <= fetch_discard_q;
      lqueue1_q  <= fetch_queue_q;
      lline1_q   <= fetch_line;
      // Lines from this one on less 1, as the frontier was when the line was asked for.
      left1_q    <= fetch_frontier_q - fetch_pos_q - 1'b1;
      lstate1_q  <= fetch_state_q;
      lsetup1_q  <= fetch_setup_q;
      lchecked1_q <= fetch_checked_q;
      moved1_q   <= moved_here;
    end else begin
      moved1_q <= moved1_q || (frontier_we_i && frontier_queue_i == lqueue1_q);
    end
  end

  // The header, and what it says.
  logic [23:0]    length;
  logic [3:0]     kind;
  logic           is_data, is_batch, is_void, is_header_ok, is_length_ok, is_whole, is_runt, at_header;
  logic [LineW:0] lines;
  logic           consider, has_share, accept, consume, bad, waits, ends, finished;
  logic           is_checked, is_malformed, scans, scan_begins, scan_waits, scan_ends;

  assign length       = load_header_i[23:0];
  assign kind         = load_header_i[49:46];
  assign is_data      = kind == nic_pkg::MessageKindData[3:0];
  assign is_void      = kind == nic_pkg::MessageKindVoid[3:0];
  assign is_batch     = kind == nic_pkg::MessageKindBatch[3:0];
  assign is_header_ok = (is_data || is_void || is_batch) && load_header_i[63:58] == '0
                        && load_header_i[57:50] == lsetup1_q.epoch && load_header_i[45:24] == '0;
  // A message of n lines has room for 64 n - 8 bytes of payload.
  assign is_length_ok = length <= {{(18 - LineW) {1'b0}}, window_mask_i, 6'd56}
                        && (!is_data || length <= {10'd0, max_frame_bytes_i});
  assign is_whole     = length <= {{(18 - PosW) {1'b0}}, left1_q, 6'd56};
  // Of a length that was found to fit a window; so its upper bits are zeros.
  assign lines        = length[LineW + 6:6] + (LineW + 1)'(1) + (LineW + 1)'(length[5:0] > 6'd56);
  assign is_runt      = is_data && length < 24'd14;

  assign lstate    = first1_q ? lstate1_q : lstate_q;
  assign rest      = first1_q ? '0 : rest_q;
  assign consider  = line1_q && (first1_q || live_q);
  assign at_header = rest == '0;
  // A queue that has used its share up stops in front of its next message, if others wait.
  assign has_share = !lstate.share[ShareW-1] || !others_wait_i;
  // A batch leaves only after it was looked at, which is done when it is the first message of a turn; the look is a
  // turn of its own, without effect, and its end is the verdict.
  assign is_checked   = first1_q && lchecked1_q[0];
  assign is_malformed = is_batch && is_checked && lchecked1_q[1];
  assign scan_begins  = consider && !empty1_q && !discard1_q && at_header && is_batch && !is_checked && first1_q
                        && !bad && is_whole && has_share && !scan_pending_q;
  assign scans        = scan_begins || (consider && scan_q);
  assign scan_waits   = is_batch && !is_checked && !scan_begins;
  assign scan_ends    = scans && rest_d == '0;
  assign bad       = !is_header_ok || !is_length_ok || is_malformed;
  assign accept    = !bad && is_whole && has_share && !(is_batch && !is_checked);
  assign consume   = consider && !empty1_q && !scans && (discard1_q || !at_header || accept);
  assign waits     = consider && !consume && !scans;
  assign ends      = waits || (consume && last1_q);
  assign finished  = empty1_q || (consume && last1_q);

  always_comb begin
    lstate_d = lstate;
    rest_d   = rest;
    if (scans) begin
      rest_d = scan_begins ? lines - 1'b1 : rest - 1'b1;
    end else if (consume) begin
      lstate_d.tail = lline1_q;
      if (discard1_q) begin
        lstate_d.next_start = lstate.next_start + 1'b1;
      end else if (at_header) begin
        lstate_d.next_start = lstate.next_start + PosW'(lines);
        lstate_d.share      = (lstate.share[ShareW-1] ? '0 : lstate.share) - ShareW'(length[16:0]);
        rest_d              = lines - 1'b1;
      end else begin
        rest_d = rest - 1'b1;
      end
    end else if (consider && !empty1_q && has_share && !(scan_waits && !bad && is_whole)) begin
      lstate_d.told = bad;
      // Of a queue that takes no more writes what is left is no whole message and never will be.
      lstate_d.discard = lsetup1_q.closing;
    end
  end

  // ---------------------------------------------------------------------------------------------- out
  logic              done2_q, moved2_q, again2_q, finished2_q, closing2_q, more2, uncheck_q;
  logic [QueueW-1:0] queue2_q;
  logic [7:0]        weight2_q;
  logic [ShareW-1:0] quantum2;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      live_q              <= 1'b0;
      abort_q             <= 1'b0;
      line_valid_o        <= 1'b0;
      done2_q             <= 1'b0;
      give_valid_o        <= 1'b0;
      next_start_valid_o  <= 1'b0;
      failed_valid_o      <= 1'b0;
      count_tx_messages_o <= 1'b0;
      count_tx_voids_o    <= 1'b0;
      count_runts_o       <= 1'b0;
      count_tx_batches_o  <= 1'b0;
      scan_q              <= 1'b0;
      scan_pending_q      <= 1'b0;
      uncheck_q           <= 1'b0;
    end else begin
      give_valid_o        <= go && consume;
      next_start_valid_o  <= go && consume && !discard1_q && rest_d == '0;
      // The rest of a turn that ended early is still being fetched, unless the next turn has begun; it is not looked
      // at.
      abort_q             <= go && (waits || scan_ends) && !last1_q && !fetch_load;
      count_tx_batches_o  <= go && consume && !discard1_q && at_header && is_batch;
      uncheck_q           <= go && consume && !discard1_q && at_header && is_batch;
      if (go && scans) scan_q <= rest_d != '0;
      if (go && scan_begins) scan_pending_q <= 1'b1;
      else if (scanned_valid_i && scanned_ready_o) scan_pending_q <= 1'b0;
      failed_valid_o      <= go && consider && !empty1_q && !discard1_q && at_header && bad && has_share
          && !lstate.told;
      done2_q             <= go && ends;
      count_tx_messages_o <= go && consume && !discard1_q && at_header;
      count_tx_voids_o    <= go && consume && !discard1_q && at_header && is_void;
      count_runts_o       <= go && consume && !discard1_q && at_header && is_runt;
      if (go) begin
        line_valid_o <= (consume && !discard1_q) || scans;
        if (consider) live_q <= !ends && !scan_ends;
      end
    end
    if (go) begin
      if (consider) begin
        lstate_q <= lstate_d;
        rest_q   <= rest_d;
      end
      line_scan_o <= scans;
      if ((consume && at_header) || scan_begins) begin
        line_skip_o  <= is_void || is_runt;
        line_batch_o <= is_batch;
        line_bytes_o <= length;
        line_lines_o <= lines;
      end
      line_first_o <= at_header;
      line_last_o  <= rest_d == '0;
      line_queue_o <= lqueue1_q;
      line_next_start_o <= lstate_d.next_start;
    end
    give_line_o    <= lstate.tail;
    give_queue_o   <= lqueue1_q;
    give_dropped_o <= discard1_q;
    queue2_q       <= lqueue1_q;
    weight2_q      <= (lsetup1_q.weight == '0) ? 8'd1 : lsetup1_q.weight;
    moved2_q       <= moved1_q || (frontier_we_i && frontier_queue_i == lqueue1_q);
    // It wants another turn whatever comes: it has a message but no share, or has lines to drop.
    again2_q       <= waits && !empty1_q && (lstate_d.discard || (!bad && is_whole && (!has_share || scan_waits)));
    finished2_q    <= finished;
    closing2_q     <= lsetup1_q.closing || lsetup1_q.dropping;
    failed_cause_o <= is_header_ok ? nic_pkg::QueueStatusCauseBadLength : nic_pkg::QueueStatusCauseBadHeader;
  end

  assign next_start_queue_o = queue2_q;
  assign next_start_o       = lstate_q.next_start;
  assign failed_queue_o     = queue2_q;
  // The end of a look is the end of its turn, and the queue wants another, in which the batch leaves.
  assign scanned_ready_o    = !done2_q && !uncheck_q;
  assign done_valid_o       = done2_q || (scanned_valid_i && scanned_ready_o);
  assign done_queue_o       = done2_q ? queue2_q : scanned_queue_i;
  assign more2              = moved2_q || again2_q || (frontier_we_i && frontier_queue_i == queue2_q);
  assign done_more_o        = !done2_q || more2;
  assign checked_we         = start_valid_i || uncheck_q || (scanned_valid_i && scanned_ready_o);
  assign checked_queue      = start_valid_i ? set_queue_i : (uncheck_q ? queue2_q : scanned_queue_i);
  assign checked_wr         = (start_valid_i || uncheck_q) ? '0 : {scanned_bad_i, 1'b1};
  assign emptied_valid_o    = done2_q && finished2_q && closing2_q && !more2;
  assign emptied_queue_o    = queue2_q;
  assign emptied_tail_o     = lstate_q.tail;
  assign busy_o             = turn1 || fetch_q || line1_q || done2_q || line_valid_o
                             || scan_pending_q;

  // What is left of a share is lost when a queue has nothing more to send; what it owes stays.
  assign quantum2 = {2'b0, weight2_q, 11'd0};
  always_comb begin
    state_we     = done2_q || start_valid_i;
    state_wqueue = start_valid_i ? set_queue_i : queue2_q;
    state_wr     = lstate_q;
    if (!again2_q || lstate_q.share[ShareW-1]) begin
      state_wr.share = (lstate_q.share[ShareW-1] ? lstate_q.share : '0) + quantum2;
    end
    if (start_valid_i) state_wr = '{discard: 1'b0, told: 1'b0, next_start: '0, tail: start_tail_i, share: '0};
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_start_alone       : assert (!(start_valid_i && done2_q));
      a_last_ends_message : assert (!(go && ends && !waits && !discard1_q) || rest_d == '0);
      a_look_is_whole     : assert (!(go && scans && last1_q) || rest_d == '0);
    end
  end
`endif

endmodule

`default_nettype wire

// From contiguous lines to messages: reads the lines of a queue in order, and lets a message go once it is whole.
//
// A turn is one look at one queue. It reads lines from the queue's next start on, one a cycle; each message's header
// says how long it is (the Length Address Register of HotOS'25 3.1 is 64 times `next start`), and the message goes out
// if the frontier lies behind it. A turn ends at a message that is not whole, at the frontier, when the queue has
// had its share, or in front of a message while a queue of a class before its own waits; nothing of a message that is
// not whole has any effect.
//
// With cut-through a plain message that is not whole is *shown*, once, if enough of its lines are there: they go out as
// its frame, but nothing of the queue changes, as with the look at a batch; the reader stands while the next line is not
// there. The show ends with the last line, or with an abort mark; what became of it is told by who is in front of the
// wire. In its next turn a message that was sent is given back unsent, any other stored and forwarded (decision 0011).
//
// Stages (a turn of a queue that waits for nothing starts while `commit` still counts its line)
//   turn   the queue's state is read
//   fetch  line after line is asked of the pool, the first through the link of the line before it
//   load   the pool's RAM gives the line
//   line   the line is there: header, length, outcome
//   out    the line leaves; next start, credits and the share are brought up to date
// Guarantees
//   - A message leaves only if all its lines lie before the frontier, each line once, in order, without a gap. A line
//     that is shown lies before the frontier too, and so does the next one, but for the one with the abort mark.
//   - Lines are given back to the pool one later than they leave, so that the one before the next message, which is
//     the only way to that message, stays the queue's until then.
//   - No wake-up is lost: a frontier that moves during a turn gives the queue another turn.
// Cost: three tables of NumQueues entries. Twin: nic/model/src/mmio/tx_queue.rs (settle_head, pop), message.rs.

`default_nettype none

module message_reader #(
  parameter int unsigned NumQueues = 64,
  parameter int unsigned NumClasses = 4,
  parameter int unsigned LineW = 6,
  parameter int unsigned PtrW = 11,
  // Whether frames may begin before their message is whole.
  parameter bit CutThrough = 1'b1,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned PosW = LineW + 2,
  localparam int unsigned ClassW = (NumClasses > 1) ? $clog2(NumClasses) : 1
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
  input  logic [ClassW-1:0] turn_class_i,
  input  logic [QueueW-1:0] early_queue_i,
  // In the next cycle: the early turn holds (the frontier did move and the queue had no turn).
  input  logic              early_holds_i,
  output logic              early_taken_o,

  // The end of a turn, and whether the queue wants another.
  output logic              done_valid_o,
  output logic [QueueW-1:0] done_queue_o,
  output logic              done_more_o,
  // Bit c: a queue of class c, or of one before it, waits for its turn.
  input  logic [NumClasses-1:0] waits_upto_i,

  // Set-up of a queue; it has no turn meanwhile. `closing`: what is not whole is to be dropped; `dropping`: everything.
  input  logic              set_valid_i,
  input  logic [QueueW-1:0] set_queue_i,
  input  logic [7:0]        set_epoch_i,
  input  logic [7:0]        set_weight_i,
  input  logic [3:0]        set_class_i,
  input  logic              set_closing_i,
  input  logic              set_dropping_i,
  // A frame may begin before its message is whole, if this line and so many more are there (3 or more).
  input  logic              set_early_i,
  input  logic [LineW-1:0]  set_early_more_i,
  input  logic              start_valid_i,
  input  logic [PtrW-1:0]   start_tail_i,

  // The pool: links and lines. The line's first word is there two steps of `load_valid_o` after it was asked for.
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
  // It is shown, of a message that is not whole; it ends its frame, with an abort mark.
  output logic              line_early_o,
  output logic              line_abort_o,
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

  // What was shown has left, whole or (`bad`) not; before that, that it will be bad.
  input  logic              shown_valid_i,
  input  logic              shown_bad_i,
  input  logic              shown_broken_i,

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
  // A turn ends in the next cycle: its queue's state is written in this one.
  output logic              ending_o,
  output logic              busy_o,

  output logic              count_tx_messages_o,
  output logic              count_tx_voids_o,
  output logic              count_tx_batches_o,
  output logic              count_runts_o,
  output logic              count_cut_through_frames_o
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
    // Whether a message may be shown that is not whole, and how many lines behind its first one must be there.
    logic             early;
    logic [LineW-1:0] early_more;
    logic [7:0] epoch;
    logic [7:0] weight;
    logic [ClassW-1:0] class_;
    logic       closing;
    logic       dropping;
  } setup_t;

  // While a message is shown: the line behind the one in the line stage is not there; what is left of it is not shown.
  logic show_q, hold_q, flush_q;
  logic go;
  assign go = (!line_valid_o || line_ready_i) && !hold_q;

  // ---------------------------------------------------------------------------------------------- turn
  // Whether the batch at a queue's next start was looked at, and what was found; or the message shown, and sent.
  logic [1:0]        checked1, checked_wr;
  state_t            state1, state_wr;
  setup_t            setup1, setup_wr;
  logic [PosW-1:0]   frontier1;
  logic              state_we;
  logic [QueueW-1:0] state_wqueue;
  logic              turn_q, early_q, turn1, fetch_load, turn_stands, aside_q, fresh_q;
  logic [QueueW-1:0] queue1_q, aside_queue_q, read_queue;
  typedef struct packed {
    state_t          state;
    setup_t          setup;
    logic [1:0]      checked;
    logic [PosW-1:0] frontier;
  } turn_t;
  turn_t             turn1_now, kept_q;

  // Whether a turn can begin is known late in its cycle. So the next one is taken all the same, and stands aside; the
  // tables are read for the one that comes next; and what was read for a turn that stands is kept, with what changes.
  assign turn_stands   = turn1 && !fetch_load;
  assign turn_ready_o  = !aside_q;
  assign early_taken_o = !turn_stands && !aside_q && !turn_valid_i;
  assign read_queue    = aside_q ? aside_queue_q : (turn_valid_i ? turn_queue_i : early_queue_i);
  // An early turn is known to hold one cycle after it began; later it is a turn like any other.
  assign turn1         = turn_q && (!early_q || early_holds_i);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      turn_q  <= 1'b0;
      early_q <= 1'b0;
      aside_q <= 1'b0;
    end else begin
      turn_q  <= 1'b1;
      early_q <= early_taken_o;
      aside_q <= turn_stands && (aside_q || turn_valid_i);
    end
    fresh_q <= !turn_stands;
    if (!aside_q) aside_queue_q <= turn_queue_i;
    if (!turn_stands) queue1_q <= read_queue;
    kept_q <= turn1_now;
    if (frontier_we_i && frontier_queue_i == queue1_q) kept_q.frontier <= frontier_i;
    if (set_valid_i && set_queue_i == queue1_q) kept_q.setup <= setup_wr;
  end
  assign turn1_now = fresh_q ? '{state: state1, setup: setup1, checked: checked1, frontier: frontier1} : kept_q;

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
  logic              checked_we;
  logic [QueueW-1:0] checked_queue;
  table_ram #(.Width(2), .Depth(NumQueues)) u_checked (
    .clk_i, .we_i(checked_we), .waddr_i(checked_queue), .wdata_i(checked_wr), .raddr_i(read_queue), .rdata_o(checked1)
  );
  assign setup_wr = '{
    early: CutThrough && set_early_i, early_more: set_early_more_i, epoch: set_epoch_i, weight: set_weight_i,
    class_: (32'(set_class_i) < NumClasses) ? ClassW'(set_class_i) : ClassW'(NumClasses - 1),
    closing: set_closing_i, dropping: set_dropping_i
  };

  // ---------------------------------------------------------------------------------------------- fetch
  logic              fetch_q, fetch_first_q, fetch_discard_q, moved_here;
  logic [QueueW-1:0] fetch_queue_q;
  state_t            fetch_state_q;
  setup_t            fetch_setup_q;
  logic [1:0]        fetch_checked_q;
  logic [PosW-1:0]   fetch_pos_q, fetch_frontier_q;
  logic [PtrW-1:0]   fetch_line, kept_line_q, load_line_q;
  logic              fetch_last, fetch_empty, fetch_step, closes, abort_q, is_linked_q, fetch_moved_q;
  logic [PosW-1:0]   fetch_pairs;

  assign moved_here  = frontier_we_i && frontier_queue_i == fetch_queue_q;
  assign fetch_empty = fetch_frontier_q == fetch_pos_q;
  // One line is left: the frontier is the position and one, seen without adding. A frontier that moves in this very
  // cycle does not count: its turn comes later.
  assign fetch_pairs = fetch_frontier_q ^ fetch_pos_q ^ {fetch_pos_q[PosW-2:0] & ~fetch_frontier_q[PosW-2:0], 1'b1};
  assign fetch_last  = fetch_empty || fetch_pairs == '0;
  assign fetch_step  = fetch_q && go;
  // What is shown begins with four lines or more: no turn is let in behind its third.
  assign fetch_load  = turn1 && (!fetch_q || abort_q || (go && fetch_last && !show_q));
  // A turn that stands here must not leave with the set-up from before a queue was closed: what asks for a turn behind
  // that finds one under way, and gives no other. A queue that starts has no turn, and when it does is known late.
  assign closes      = set_valid_i && set_closing_i;
  // The line's name is there in the first cycle, and kept if the line must wait.
  assign fetch_line  = !is_linked_q ? kept_line_q : (fetch_first_q ? resolve_next_i : chain_next_i);

  assign resolve_line_o = turn1_now.state.tail;
  // The link to a line that is waited for is not known yet.
  assign chain_line_o   = hold_q ? load_line_q : fetch_line;
  assign load_valid_o   = go;
  assign load_line_o    = fetch_line;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) fetch_q <= 1'b0;
    else if (fetch_load) fetch_q <= 1'b1;
    else if (abort_q || (go && fetch_last && !show_q)) fetch_q <= 1'b0;

    if (fetch_load) begin
      fetch_first_q    <= 1'b1;
      fetch_discard_q  <= turn1_now.state.discard || turn1_now.setup.dropping;
      fetch_queue_q    <= queue1_q;
      fetch_state_q    <= turn1_now.state;
      fetch_setup_q    <= (closes && set_queue_i == queue1_q) ? setup_wr : turn1_now.setup;
      fetch_checked_q  <= turn1_now.checked;
      fetch_pos_q      <= turn1_now.state.next_start;
      fetch_frontier_q <= (frontier_we_i && frontier_queue_i == queue1_q) ? frontier_i : turn1_now.frontier;
      fetch_moved_q    <= 1'b0;
    end else begin
      if (closes && set_queue_i == fetch_queue_q) fetch_setup_q <= setup_wr;
      if (fetch_step) begin
        fetch_first_q <= 1'b0;
        fetch_pos_q   <= fetch_pos_q + 1'b1;
      end
      // A turn that began without a line stays without: what its first line is was not known then.
      if (moved_here && !(fetch_first_q && fetch_empty)) fetch_frontier_q <= frontier_i;
      if (moved_here) fetch_moved_q <= fetch_first_q && fetch_empty;
    end
    is_linked_q <= fetch_load || fetch_step || hold_q;
    kept_line_q <= fetch_line;
  end

  // ---------------------------------------------------------------------------------------------- load
  logic              load_q, load_first_q, load_last_q, load_empty_q, load_discard_q, load_moved_q;
  logic [QueueW-1:0] load_queue_q;
  logic [PosW-1:0]   load_left_q;
  state_t            load_state_q;
  setup_t            load_setup_q;
  logic [1:0]        load_checked_q;
  logic              moved_load;

  assign moved_load = load_moved_q || (frontier_we_i && frontier_queue_i == load_queue_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) load_q <= 1'b0;
    else if (go) load_q <= fetch_step;
    load_moved_q <= go ? (moved_here || fetch_moved_q) : moved_load;
    if (go) begin
      load_first_q   <= fetch_first_q;
      load_last_q    <= fetch_last;
      load_empty_q   <= fetch_empty;
      load_discard_q <= fetch_discard_q;
      load_queue_q   <= fetch_queue_q;
      load_line_q    <= fetch_line;
      // Lines from this one on less 1, as the frontier was when the line was asked for.
      load_left_q    <= fetch_frontier_q - fetch_pos_q - 1'b1;
      load_state_q   <= fetch_state_q;
      load_setup_q   <= fetch_setup_q;
      load_checked_q <= fetch_checked_q;
    end
  end

  // ---------------------------------------------------------------------------------------------- line
  logic              line1_q, first1_q, last1_q, empty1_q, discard1_q, moved1_q, live_q;
  logic [QueueW-1:0] lqueue1_q;
  logic [PtrW-1:0]   lline1_q;
  logic [PosW-1:0]   left1_q;
  state_t            lstate1_q, lstate_q, lstate_d;
  setup_t            lsetup1_q;
  logic [1:0]        lchecked1_q;
  logic              scan_q, scan_pending_q;
  logic [LineW:0]    rest_q, rest_d;
  logic              others_wait1_q, first_waits1_q, stands_q;
  logic [ClassW-1:0] aside_class_q;
  // Bit c: a queue of class c, or of one before it, waits for a turn, in its ring or here.
  logic [NumClasses-1:0] waits_q;

  always_ff @(posedge clk_i) begin
    stands_q <= rst_ni && turn_stands;
    if (!aside_q) aside_class_q <= turn_class_i;
    waits_q <= waits_upto_i
               | ({NumClasses{stands_q}} & ({NumClasses{1'b1}} << kept_q.setup.class_))
               | ({NumClasses{aside_q}} & ({NumClasses{1'b1}} << aside_class_q));
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      line1_q <= 1'b0;
    end else if (go) begin
      line1_q <= load_q;
    end
    if (go) begin
      first1_q   <= load_first_q;
      last1_q    <= load_last_q;
      empty1_q   <= load_empty_q;
      discard1_q <= load_discard_q;
      lqueue1_q  <= load_queue_q;
      lline1_q   <= load_line_q;
      left1_q    <= load_left_q;
      // The state and what is left of a message, as the line before this one leaves them.
      lstate1_q  <= load_first_q ? load_state_q : lstate_d;
      rest_q     <= load_first_q ? '0 : rest_d;
      lsetup1_q  <= load_setup_q;
      lchecked1_q <= load_checked_q;
      others_wait1_q <= waits_q[load_setup_q.class_];
      first_waits1_q <= load_setup_q.class_ != '0 && waits_q[load_setup_q.class_ - 1'b1];
      moved1_q   <= moved_load;
    end else begin
      moved1_q <= moved1_q || (frontier_we_i && frontier_queue_i == lqueue1_q);
    end
  end

  // The header, and what it says.
  logic           is_batch, is_void, is_header_ok, is_length_ok, is_whole, is_runt, is_over, is_one, is_good, at_header;
  logic [LineW:0] less_one;
  logic           consider, has_share, consume, bad, waits, ends, finished, ends_message;
  logic           is_checked, is_malformed, is_sent, looks, scans, scan_begins, scan_waits, scan_ends;
  logic           may_show, show_begins;
  // The outcome of what was looked at or shown.
  logic              outcome, outcome_valid, shown_q, shown_bad_q;
  logic [QueueW-1:0] outcome_queue, shown_queue_q;

  header_check #(.LineW(LineW), .PosW(PosW)) u_header (
    .window_mask_i, .max_frame_bytes_i, .header_i(load_header_i), .epoch_i(lsetup1_q.epoch), .there_i(left1_q),
    .is_batch_o(is_batch), .is_void_o(is_void), .is_runt_o(is_runt), .is_header_ok_o(is_header_ok),
    .is_length_ok_o(is_length_ok), .is_whole_o(is_whole), .is_over_o(is_over), .less_one_o(less_one),
    .is_one_o(is_one)
  );

  assign consider  = line1_q && (first1_q || live_q);
  assign at_header = rest_q == '0;
  // A queue that has used its share up stops in front of its next message, if others of its class wait (a few cycles
  // before); one whose class is not the first that waits stops there too, and keeps its share.
  assign has_share = (!lstate1_q.share[ShareW-1] || !others_wait1_q) && !first_waits1_q;
  // A batch leaves only after it was looked at, which is done when it is the first message of a turn; the look is a
  // turn of its own, without effect, and its end is the outcome. To show a message is the same.
  assign is_checked   = first1_q && lchecked1_q[0];
  assign is_malformed = is_batch && is_checked && lchecked1_q[1];
  assign is_sent      = !is_batch && is_checked && lchecked1_q[1];
  assign bad          = !is_header_ok || !is_length_ok || is_malformed;
  assign is_good      = is_header_ok && is_length_ok && is_whole;
  // A header stands here that may be believed if it is good.
  assign looks        = consider && !empty1_q && !discard1_q && at_header && has_share && !scan_q;
  assign may_show     = CutThrough && lsetup1_q.early && left1_q >= PosW'(lsetup1_q.early_more) && !is_batch
                        && !is_void && !is_whole && !is_checked;
  assign show_begins  = looks && may_show && first1_q && !scan_pending_q && is_header_ok && is_length_ok;
  assign scan_begins  = show_begins
                        || (looks && is_batch && !is_checked && first1_q && !scan_pending_q && is_good);
  assign scans        = scan_begins || (consider && scan_q);
  assign scan_waits   = is_batch && !is_checked && !scan_begins;
  assign scan_ends    = scans && (ends_message || flush_q);
  assign consume      = (looks && !(is_batch && !is_checked) && !is_malformed && is_good)
                        || (consider && !empty1_q && !scan_q && (discard1_q || !at_header));
  assign waits     = consider && !consume && !scans;
  assign ends      = waits || (consume && last1_q);
  assign finished  = empty1_q || (consume && last1_q);

  message_show #(.QueueW(QueueW), .RestW(LineW + 1)) u_show (
    .clk_i, .rst_ni, .go_i(go), .begins_i(show_begins), .ends_i(scan_ends), .queue_i(lqueue1_q), .rest_i(rest_q),
    .fetch_last_i(fetch_last), .fetch_empty_i(fetch_empty), .closing_i(fetch_setup_q.closing), .shows_o(show_q),
    .hold_o(hold_q), .flush_o(flush_q), .valid_i(shown_valid_i), .bad_i(shown_bad_i), .broken_i(shown_broken_i),
    .told_valid_o(shown_q), .told_taken_i(outcome), .told_bad_o(shown_bad_q), .told_queue_o(shown_queue_q)
  );

  // What the line changes. As sums of products: what is chosen is known before the choice.
  logic              starts, goes_on, drops;
  logic [PosW-1:0]   next_dropped, next_message, next_sum, next_sum_more;
  logic [ShareW-1:0] share_less, share_more;

  assign starts  = scan_begins || (consume && !discard1_q && at_header);
  assign goes_on = (consider && scan_q) || (consume && !discard1_q && !at_header);
  assign drops   = consume && discard1_q;
  assign rest_d  = ({(LineW + 1) {starts}} & less_one) | ({(LineW + 1) {goes_on}} & (rest_q - 1'b1))
                   | ({(LineW + 1) {!starts && !goes_on}} & rest_q);
  assign ends_message = starts ? is_one : (goes_on ? rest_q == (LineW + 1)'(1) : at_header);

  assign next_dropped  = lstate1_q.next_start + 1'b1;
  assign next_sum      = lstate1_q.next_start + PosW'(load_header_i[LineW + 6:6]) + 1'b1;
  assign next_sum_more = lstate1_q.next_start + PosW'(load_header_i[LineW + 6:6]) + PosW'(2);
  assign next_message  = ({PosW{!is_over}} & next_sum) | ({PosW{is_over}} & next_sum_more);

  always_comb begin
    lstate_d = lstate1_q;
    if (consume) lstate_d.tail = lline1_q;
    lstate_d.next_start = ({PosW{drops}} & next_dropped) | ({PosW{consume && !discard1_q && at_header}} & next_message)
                          | ({PosW{!consume || (!discard1_q && !at_header)}} & lstate1_q.next_start);
    if (consume && !discard1_q && at_header) lstate_d.share = share_less;
    if (waits && !empty1_q && has_share && !(scan_waits && !bad && is_whole)) begin
      lstate_d.told = bad;
      // Of a queue that takes no more writes what is left is no whole message and never will be.
      lstate_d.discard = lsetup1_q.closing;
    end
  end

  // ---------------------------------------------------------------------------------------------- out
  logic              done2_q, moved2_q, again2_q, finished2_q, closing2_q, more2, uncheck_q;
  logic [QueueW-1:0] queue2_q;
  logic [7:0]        weight2_q;

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
      count_cut_through_frames_o <= 1'b0;
      scan_q              <= 1'b0;
      scan_pending_q      <= 1'b0;
      uncheck_q           <= 1'b0;
    end else begin
      give_valid_o        <= go && consume;
      next_start_valid_o  <= go && consume && !discard1_q && ends_message;
      // The rest of a turn that ended early is still being fetched, unless its last line is on its way or the next
      // turn has begun; it is not looked at.
      abort_q             <= go && (waits || scan_ends) && (show_q || (!last1_q && !load_last_q)) && !fetch_load;
      count_cut_through_frames_o <= go && show_begins;
      count_tx_batches_o  <= go && consume && !discard1_q && at_header && is_batch;
      uncheck_q           <= go && consume && !discard1_q && at_header && (is_batch || is_checked);
      if (go && scans) scan_q <= !scan_ends;
      if (go && scan_begins) scan_pending_q <= 1'b1;
      else if (outcome) scan_pending_q <= 1'b0;
      failed_valid_o      <= go && consider && !empty1_q && !discard1_q && at_header && bad && has_share
          && !lstate1_q.told;
      done2_q             <= go && ends;
      count_tx_messages_o <= go && consume && !discard1_q && at_header;
      count_tx_voids_o    <= go && consume && !discard1_q && at_header && is_void;
      count_runts_o       <= go && consume && !discard1_q && at_header && is_runt;
      if (go) begin
        line_valid_o <= (consume && !discard1_q) || scans;
        if (consider) live_q <= !ends && !scan_ends;
      end else if (line_ready_i) begin
        line_valid_o <= 1'b0;
      end
    end
    if (go) begin
      lstate_q    <= lstate_d;
      line_scan_o <= scans;
      // Of a header that is not believed nothing leaves, so it does no harm here.
      if (at_header) begin
        line_skip_o  <= is_void || is_runt || is_sent;
        line_batch_o <= is_batch;
        line_bytes_o <= load_header_i[23:0];
        line_lines_o <= less_one + 1'b1;
      end
      line_first_o <= at_header;
      line_last_o  <= ends_message || flush_q;
      line_early_o <= show_begins || show_q;
      line_abort_o <= flush_q;
      line_queue_o <= lqueue1_q;
      line_next_start_o <= lstate_d.next_start;
    end
    give_line_o    <= lstate1_q.tail;
    give_queue_o   <= lqueue1_q;
    give_dropped_o <= discard1_q;
    queue2_q       <= lqueue1_q;
    weight2_q      <= (lsetup1_q.weight == '0) ? 8'd1 : lsetup1_q.weight;
    moved2_q       <= moved1_q || (frontier_we_i && frontier_queue_i == lqueue1_q);
    // It wants another turn whatever comes: it has lines to drop, a batch to be looked at, or something to do but no
    // share. A fault is something to do as well: without a share it was not told.
    again2_q       <= waits && !empty1_q && (lstate_d.discard || (!bad && ((is_whole && scan_waits) || may_show))
                      || (!has_share && (bad || is_whole || lsetup1_q.closing)));
    finished2_q    <= finished;
    closing2_q     <= lsetup1_q.closing || lsetup1_q.dropping;
    failed_cause_o <= is_header_ok ? nic_pkg::QueueStatusCauseBadLength : nic_pkg::QueueStatusCauseBadHeader;
  end

  assign next_start_queue_o = queue2_q;
  assign next_start_o       = lstate_q.next_start;
  assign failed_queue_o     = queue2_q;
  // The end of a look is the end of its turn, and the queue wants another, in which the batch leaves.
  assign scanned_ready_o    = !done2_q && !uncheck_q;
  assign outcome_valid      = scanned_valid_i || shown_q;
  assign outcome            = outcome_valid && scanned_ready_o;
  assign outcome_queue      = shown_q ? shown_queue_q : scanned_queue_i;
  assign ending_o           = done2_q || outcome;
  assign more2              = moved2_q || again2_q || (frontier_we_i && frontier_queue_i == queue2_q);
  assign checked_we         = start_valid_i || uncheck_q || outcome;
  assign checked_queue      = start_valid_i ? set_queue_i : (uncheck_q ? queue2_q : outcome_queue);
  assign checked_wr         = (start_valid_i || uncheck_q) ? '0 : {shown_q ? !shown_bad_q : scanned_bad_i, 1'b1};
  assign emptied_queue_o    = done_queue_o;
  // A frontier that moves in the cycle of `ending` still gives another turn; so the end is told a cycle later.
  always_ff @(posedge clk_i) begin
    done_valid_o    <= rst_ni && ending_o;
    emptied_valid_o <= rst_ni && done2_q && finished2_q && closing2_q && !more2;
    done_queue_o    <= done2_q ? queue2_q : outcome_queue;
    done_more_o     <= !done2_q || more2;
    emptied_tail_o  <= lstate_q.tail;
  end
  assign busy_o             = turn1 || aside_q || fetch_q || load_q || line1_q || done2_q || done_valid_o
                              || line_valid_o || scan_pending_q;

  message_share #(.ShareW(ShareW)) u_share (
    .share_i(lstate1_q.share), .bytes_i(load_header_i[16:0]), .less_o(share_less),
    .left_i(lstate_q.share), .weight_i(weight2_q), .again_i(again2_q), .more_o(share_more)
  );
  always_comb begin
    state_we     = done2_q || start_valid_i;
    state_wqueue = start_valid_i ? set_queue_i : queue2_q;
    state_wr     = lstate_q;
    state_wr.share = share_more;
    if (start_valid_i) state_wr = '{discard: 1'b0, told: 1'b0, next_start: '0, tail: start_tail_i, share: '0};
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_start_alone       : assert (!(start_valid_i && done2_q));
      a_last_ends_message : assert (!(go && ends && !waits && !discard1_q) || ends_message);
      a_look_is_whole     : assert (!(go && scans && last1_q) || ends_message || show_q);
      // Every line that is shown has its successor there, but the last one and the one that ends in an abort.
      a_show_is_there     : assert (!(go && show_q) || (line1_q && live_q && scan_q));
      a_show_has_next     : assert (!(go && show_q && !scan_ends)
                                    || (load_q && fetch_q && (!fetch_empty || rest_q <= (LineW + 1)'(2))));
      a_one_outcome       : assert (!(shown_q && scanned_valid_i) && (!shown_q || scan_pending_q));
      a_rest_is_told      : assert (!line1_q || ends_message == (rest_d == '0));
      a_next_is_sum       : assert (!(consume && at_header && !discard1_q)
                                    || lstate_d.next_start == lstate1_q.next_start + PosW'(less_one) + 1'b1);
    end
  end
`endif

endmodule

`default_nettype wire

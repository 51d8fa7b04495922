// What becomes of pushes: taken in place of what the ring has, or only the doorbell that each of them also is.
//
// A push is taken when its entry is the next and nothing posted waits to be fetched; the doorbell's check, which takes
// one value at a time, decides that. Whatever else comes of a push announces everything up to its end.
//
// Guarantees
//   - Events are judged one after the other: what was torn, then what is whole. Each ends in bounded time, whatever the
//     wire does: a push for which there is no room among the frames within RoomTimeoutCycles is left to the ring.
//   - What is taken counts as posted and used in one cycle, so nobody asks for it; all other posts pass through.
//   - With self-test every so many pushes that could be taken one is not, and is counted.
// Limits
//   - Set-up only while hold_i and idle_o are high.
// Latency: 11 cycles from the event to the frame, n + 2 more for the n lines of the push.
// Cost: NumQueues x 105 bits of RAM, 450 registers. Twin: InlineQueue::{announce, end_of, use_push, is_test_due,
// take_push} in nic/model/src/inline/inline_queue.rs.

`default_nettype none

module push_judge #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // Cycles that a push waits for room, 16 to 255.
  parameter int unsigned RoomTimeoutCycles = 64,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  output logic              busy_o,
  input  logic              hold_i,
  output logic              idle_o,
  input  logic [13:0]       max_frame_bytes_i,
  // No event is being judged.
  output logic              is_settled_o,

  input  logic              setup_write_i,
  input  logic [QueueW-1:0] setup_queue_i,
  input  logic              setup_active_i,
  input  logic [7:0]        setup_epoch_i,
  input  logic [31:0]       setup_self_test_i,

  // From push_halves.sv.
  input  logic              event_valid_i,
  output logic              event_ready_o,
  input  logic [QueueW-1:0] event_queue_i,
  input  logic              event_half_i,
  input  logic              event_torn_i,
  input  logic [63:0]       event_torn_word_i,
  input  logic              event_whole_i,
  input  logic              event_long_i,
  input  logic [63:0]       event_word_i,
  output logic              kept_valid_o,
  output logic [QueueW-1:0] kept_queue_o,
  output logic              kept_half_o,
  output logic [1:0]        line_index_o,
  input  logic [511:0]      line_i,

  // From doorbell.sv, and on to whoever fetches.
  output logic              announce_valid_o,
  output logic [QueueW-1:0] announce_queue_o,
  output logic [31:0]       announce_value_o,
  input  logic              announce_none_i,
  input  logic              door_valid_i,
  output logic              door_ready_o,
  input  logic              door_announced_i,
  input  logic [22:0]       door_old_i,
  output logic              post_valid_o,
  input  logic              post_ready_i,

  // With frame_cut.sv: its turn, what was used of each queue, and what is skipped.
  output logic              grant_o,
  input  logic              grant_i,
  input  logic              taken_write_i,
  input  logic [QueueW-1:0] taken_write_queue_i,
  input  logic [31:0]       taken_write_count_i,
  output logic              skip_valid_o,
  input  logic              skip_ready_i,
  output logic [QueueW-1:0] skip_queue_o,
  output logic [31:0]       skip_count_o,

  // The frame, see frame_issue.sv.
  output logic              frame_valid_o,
  input  logic              frame_ready_i,
  output logic [31:0]       frame_count_o,
  output logic              frame_flag_o,
  output logic              frame_bad_o,
  output logic              frame_put_o,
  output logic [63:0]       frame_address_o,
  output logic [13:0]       frame_bytes_o,
  output logic              put_valid_o,
  input  logic              put_ready_i,
  output logic [511:0]      put_data_o,
  output logic [6:0]        put_bytes_o,
  output logic              put_last_o,
  output logic              put_drop_o,

  output logic              count_taken_o,
  output logic              count_unused_o,
  output logic              count_tested_o,
  output logic              count_runts_o,
  output logic              count_bad_lengths_o,
  output logic              count_outside_o
);

  localparam int unsigned Entries = 1 << QueueW;
  localparam int unsigned HeadBytes = nic_pkg::EntryHeadBytes;
  localparam int unsigned LineBytes = nic_pkg::LineBytes;

  if (RoomTimeoutCycles < 16 || RoomTimeoutCycles > 255) begin : g_bad_timeout
    $fatal(1, "push_judge: RoomTimeoutCycles must be 16 to 255");
  end

  typedef struct packed {
    logic        active;
    logic [7:0]  epoch;
    logic [31:0] self_test;
  } settings_t;
  typedef enum logic [3:0] {
    JudgeClear, JudgeIdle, JudgeRead, JudgeLook, JudgeSum, JudgeAnnounce, JudgePass, JudgeTest, JudgeWant, JudgeOffer,
    JudgeLines, JudgeSkip
  } judge_e;

  judge_e            judge_q, judge_d;
  // The event that is judged.
  logic              take, half_q, event_whole_q, event_long_q;
  logic [QueueW-1:0] event_queue_q, look_queue;
  logic [63:0]       event_torn_word_q, event_word_q;
  logic [QueueW-1:0] clear_q;
  settings_t         settings, settings_q;
  logic [31:0]       taken, taken_q, tests, tests_q, tests_next_q;
  logic              tests_write, due_q;
  // The part of the event that is looked at: what it tore, then the rest.
  logic              torn_q, torn_d, more;
  logic [63:0]       word;
  logic [30:0]       ahead_q;
  logic [31:0]       end_q;
  fetch_pkg::head_t  head, head_q;
  logic [63:0]       address_q;
  logic              is_next_q, is_next_d, announced, is_whole, room_ends;
  logic [7:0]        timeout_q, timeout_d;
  logic [1:0]        index_q, index_d;
  logic              first_q, first_d, put, put_end, skip;
  logic [13:0]       rest_q, rest_d;
  logic [6:0]        most;

  assign busy_o        = judge_q == JudgeClear;
  // An announcement that the doorbell has not begun is nothing yet; one that it has keeps the doorbell from idling.
  assign idle_o        = judge_q == JudgeIdle || judge_q == JudgeAnnounce;
  assign is_settled_o  = judge_q == JudgeIdle;
  assign event_ready_o = judge_q == JudgeIdle && !hold_i;
  assign take          = event_valid_i && event_ready_o;
  assign look_queue    = (judge_q == JudgeIdle) ? event_queue_i : event_queue_q;
  assign kept_valid_o  = judge_q != JudgeIdle && judge_q != JudgeClear;
  assign kept_queue_o  = look_queue;
  assign kept_half_o   = (judge_q == JudgeIdle) ? event_half_i : half_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) clear_q <= '0;
    else         clear_q <= clear_q + QueueW'(busy_o);
  end

  table_ram #(.Width($bits(settings_t)), .Depth(Entries)) u_settings (
    .clk_i, .we_i(setup_write_i || busy_o), .waddr_i(busy_o ? clear_q : setup_queue_i),
    .wdata_i(busy_o ? '0 : {setup_active_i, setup_epoch_i, setup_self_test_i}), .raddr_i(look_queue),
    .rdata_o(settings)
  );
  table_ram #(.Width(32), .Depth(Entries)) u_taken (
    .clk_i, .we_i(taken_write_i), .waddr_i(taken_write_queue_i), .wdata_i(taken_write_count_i),
    .raddr_i(look_queue), .rdata_o(taken)
  );
  // Pushes since the last one that was left unused for the self-test.
  table_ram #(.Width(32), .Depth(Entries)) u_tests (
    .clk_i, .we_i(setup_write_i || tests_write), .waddr_i(setup_write_i ? setup_queue_i : event_queue_q),
    .wdata_i((setup_write_i || due_q) ? '0 : tests_next_q), .raddr_i(look_queue), .rdata_o(tests)
  );

  // ---- Where the entry ends. Positions are 31 bits: the half of them that lies behind is the past.
  assign word = torn_q ? event_torn_word_q : event_word_q;

  frame_head #(.IsPipe(1'b0)) u_head (
    .words_i({line_i[127:64], word}), .epoch_i(settings_q.epoch), .max_frame_bytes_i, .head_o(head)
  );

  assign more     = torn_q && (event_whole_q || event_long_q);
  assign is_whole = !torn_q && event_whole_q;

  // ---- The check, and what the doorbell has for others.
  assign announce_valid_o = judge_q == JudgeAnnounce;
  assign announce_queue_o = event_queue_q;
  assign announce_value_o = end_q;
  assign announced        = door_valid_i && door_announced_i;
  assign skip             = skip_valid_o && skip_ready_i;
  assign post_valid_o     = door_valid_i && (!door_announced_i || judge_q == JudgePass);
  assign door_ready_o     = (!door_announced_i || judge_q == JudgePass) ? post_ready_i : skip;

  // ---- The way of a frame.
  assign grant_o   = judge_q == JudgeWant || judge_q == JudgeOffer || judge_q == JudgeLines || judge_q == JudgeSkip;
  assign room_ends = timeout_q == '0;

  assign frame_valid_o   = judge_q == JudgeOffer;
  assign frame_count_o   = end_q;
  assign frame_flag_o    = head_q.wants_irq;
  assign frame_bad_o     = head_q.is_skipped;
  assign frame_put_o     = head_q.is_whole;
  assign frame_address_o = address_q;
  assign frame_bytes_o   = head_q.bytes[13:0];

  assign line_index_o = index_d;
  assign most         = first_q ? 7'(LineBytes - HeadBytes) : 7'(LineBytes);
  assign put_last_o   = rest_q <= 14'(most);
  assign put_bytes_o  = put_last_o ? rest_q[6:0] : most;
  assign put_data_o   = first_q ? line_i >> (8 * HeadBytes) : line_i;
  assign put_valid_o  = judge_q == JudgeLines;
  assign put          = put_valid_o && put_ready_i;
  assign put_end      = put && put_last_o;
  assign put_drop_o   = judge_q == JudgeLines && room_ends && !put_end;

  assign skip_valid_o = judge_q == JudgeSkip;
  assign skip_queue_o = event_queue_q;
  assign skip_count_o = end_q;

  always_comb begin
    judge_d     = judge_q;
    torn_d      = torn_q;
    is_next_d   = is_next_q;
    timeout_d   = (timeout_q == '0) ? '0 : timeout_q - 1'b1;
    index_d     = index_q;
    first_d     = first_q;
    rest_d      = rest_q;
    tests_write = 1'b0;
    count_unused_o = 1'b0;
    count_tested_o = 1'b0;
    unique case (judge_q)
      JudgeClear: if (clear_q == '1) judge_d = JudgeIdle;
      JudgeIdle: begin
        torn_d  = event_torn_i;
        index_d = '0;
        if (take) judge_d = JudgeRead;
      end
      JudgeRead: judge_d = JudgeLook;
      JudgeLook: judge_d = settings_q.active ? JudgeSum : JudgeIdle;
      JudgeSum: begin
        // What lies in the past says nothing; it may be whole all the same.
        judge_d        = ahead_q[30] ? JudgeIdle : JudgeAnnounce;
        count_unused_o = ahead_q[30] && is_whole;
        if (ahead_q[30] && more) begin
          torn_d  = 1'b0;
          judge_d = JudgeRead;
        end
      end
      JudgeAnnounce: begin
        is_next_d = ahead_q == '0 && door_old_i == taken_q[22:0];
        if (announced) begin
          judge_d        = (is_whole && is_next_d) ? JudgeTest : JudgePass;
          count_unused_o = is_whole && !is_next_d;
        end else if (announce_none_i) begin
          judge_d        = more ? JudgeRead : JudgeIdle;
          torn_d         = 1'b0;
          count_unused_o = is_whole;
        end
      end
      JudgePass: begin
        if (post_ready_i) begin
          judge_d = more ? JudgeRead : JudgeIdle;
          torn_d  = 1'b0;
        end
      end
      JudgeTest: begin
        tests_write    = 1'b1;
        count_tested_o = due_q;
        timeout_d      = 8'(RoomTimeoutCycles);
        judge_d        = due_q ? JudgePass : JudgeWant;
      end
      JudgeWant: begin
        first_d = 1'b1;
        rest_d  = head_q.bytes[13:0];
        if (grant_i) judge_d = JudgeOffer;
        else if (room_ends) begin
          count_unused_o = 1'b1;
          judge_d        = JudgePass;
        end
      end
      JudgeOffer: begin
        if (frame_ready_i) judge_d = (head_q.is_whole && !head_q.is_skipped) ? JudgeLines : JudgeSkip;
        else if (room_ends) begin
          count_unused_o = 1'b1;
          judge_d        = JudgePass;
        end
      end
      JudgeLines: begin
        if (put) begin
          index_d = index_q + 1'b1;
          first_d = 1'b0;
          rest_d  = rest_q - 14'(most);
        end
        if (put_end) judge_d = JudgeSkip;
        else if (room_ends) begin
          count_unused_o = 1'b1;
          judge_d        = JudgePass;
        end
      end
      JudgeSkip: if (skip) judge_d = JudgeIdle;
      default:   judge_d = JudgeIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) judge_q <= JudgeClear;
    else         judge_q <= judge_d;
    torn_q     <= torn_d;
    if (take) begin
      half_q            <= event_half_i;
      event_queue_q     <= event_queue_i;
      event_torn_word_q <= event_torn_word_i;
      event_whole_q     <= event_whole_i;
      event_long_q      <= event_long_i;
      event_word_q      <= event_word_i;
    end
    is_next_q  <= is_next_d;
    timeout_q <= timeout_d;
    index_q    <= index_d;
    first_q    <= first_d;
    rest_q     <= rest_d;
    if (judge_q == JudgeRead) begin
      settings_q <= settings;
      taken_q    <= taken;
      tests_q    <= tests;
    end
    if (judge_q == JudgeLook) begin
      head_q       <= head;
      address_q    <= line_i[127:64];
      ahead_q      <= word[62:32] - taken_q[30:0];
      tests_next_q <= tests_q + 32'd1;
    end
    if (judge_q == JudgeSum) begin
      end_q <= taken_q + 32'(ahead_q) + 32'(head_q.lines);
      due_q <= settings_q.self_test == '0 ? 1'b0 : tests_next_q >= settings_q.self_test;
    end
  end

  assign count_taken_o       = skip;
  assign count_runts_o       = skip && head_q.is_runt;
  assign count_bad_lengths_o = skip && head_q.is_wrong;
  assign count_outside_o     = skip && head_q.is_outside;

  logic unused_bits;
  assign unused_bits = ^{head_q, taken_q, word};

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!setup_write_i || hold_i && idle_o) else $error("push_judge: set up while at work");
      assert (judge_q != JudgeSkip || door_valid_i && door_announced_i)
        else $error("push_judge: a skip without its announcement");
      assert (!announced || judge_q inside {JudgeAnnounce, JudgePass, JudgeTest, JudgeWant, JudgeOffer, JudgeLines,
                                            JudgeSkip})
        else $error("push_judge: an announcement that nobody made");
    end
  end
`endif

endmodule

`default_nettype wire

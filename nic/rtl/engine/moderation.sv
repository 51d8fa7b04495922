// Absolute counts of each queue, reported after so many events, or so long after the first that was not
// reported.
//
// One rule for credits, transmit completions and receive interrupts. Counts come modulo 2^32, a later one of
// a queue replaces the earlier ones; the 64-bit count is put together when it is reported.
//
// Guarantees
//   - One count a cycle is taken, of any queue, always: nothing refuses it and none is lost. What a report
//     holds is the newest count at the time at which the queue was looked at.
//   - A queue with unreported events is reported when there are `start_count_i` of them (0 counts as 1), or
//     `start_time_ns_i` after the first of them. With a time of 0 it is reported at the first look, or, with
//     IdleByGoal, when its count has reached the newest goal (it has nothing more under way).
//   - `report_flag_o`: a count with a flag is among what is reported for the first time.
//   - A report that waits stands still. Others wait behind it, and go on to be coalesced.
// Limits
//   - Fewer than 2^32 events between two reports of a queue; a port that takes no report for 4 s makes
//     time-outs late.
//   - Counts of a life of a queue come after the start that begins it was done (busy_o low) and before the
//     next one.
//   - A count is reported 10 cycles after it came at the earliest, if no other queue waits; the time is
//     looked at by a scan over the queues that gets every cycle nothing else needs and one of four always: at
//     least once in 4 x NumQueues cycles in which reports do not block. One look in two cycles, one report in
//     two cycles.
//   - busy_o: one cycle a queue after reset; 10 cycles at a start or stop, more while a report of that queue
//     waits.
// Cost: NumQueues x 337 bits of RAM. Twin: nic/model/src/fetch/moderation.rs, nic/model/src/deadlines.rs.

`default_nettype none

module moderation #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // Whether a queue without a time is reported when it is idle, that is when its count is its goal.
  parameter bit IdleByGoal = 1'b0,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  output logic              busy_o,
  // Time modulo 2^33 ns.
  input  logic [32:0]       now_ns_i,

  // Set-up, a pulse while busy_o is low. The address is passed on with every report, without its three low
  // bits.
  input  logic              start_valid_i,
  input  logic              stop_valid_i,
  input  logic [QueueW-1:0] setup_queue_i,
  input  logic [60:0]       start_word_address_i,
  input  logic [31:0]       start_count_i,
  input  logic [31:0]       start_time_ns_i,

  input  logic              count_valid_i,
  input  logic [QueueW-1:0] count_queue_i,
  input  logic [31:0]       count_i,
  input  logic              count_flag_i,

  input  logic              goal_valid_i,
  input  logic [QueueW-1:0] goal_queue_i,
  input  logic [31:0]       goal_i,

  output logic              report_valid_o,
  input  logic              report_ready_i,
  output logic [QueueW-1:0] report_queue_o,
  output logic [60:0]       report_word_address_o,
  output logic [63:0]       report_count_o,
  output logic              report_flag_o
);

  localparam int unsigned Entries = 1 << QueueW;

  // A start must put the count of its queue to 0 while counts of other queues use the write port in every
  // cycle. So it writes nothing there: an entry counts only when it was written in the present life of the
  // queue.
  typedef struct packed {
    logic        active;
    logic [1:0]  life;
    logic        at_once;
    logic [31:0] count;
    logic [31:0] time_ns;
    logic [60:0] word_address;
  } settings_t;
  typedef struct packed {
    logic [1:0]  life;
    logic [31:0] count;
  } count_t;
  typedef struct packed {
    logic        armed;
    logic [32:0] since;
    logic [63:0] count;
  } reported_t;
  typedef enum logic [2:0] {SetupClear, SetupIdle, SetupDrain, SetupRead, SetupWrite} setup_e;

  setup_e            setup_q, setup_d;
  logic [QueueW-1:0] setup_queue_q, setup_queue_d;
  settings_t         setup_settings_q, setup_settings_d;
  settings_t         settings_new;
  logic [1:0]        new_life;
  logic              clearing, hold, list_busy;

  // The count path: the queue's life is read in the first cycle, the entry is written in the second.
  logic              count_q, count_flag_q;
  logic [QueueW-1:0] count_queue_q;
  logic [31:0]       count_value_q;
  logic [1:0]        count_life;

  // The pipeline of looks. Nothing moves while `step` is low.
  logic              step, take_valid, take_ready, scan_first, look;
  logic [QueueW-1:0] take_queue, look_queue, scan_q;
  logic [1:0]        slot_q;
  logic              scan_now_q;
  logic              x1_valid_q, x2_valid_q, x3_valid_q, x4_valid_q, x5_valid_q, x6_valid_q;
  logic [QueueW-1:0] x1_queue_q, x2_queue_q, x3_queue_q, x4_queue_q, x5_queue_q, x6_queue_q, look_address;
  settings_t         x2_settings, x3_settings_q;
  logic              x4_active_q, x5_active_q, x4_at_once_q, x5_at_once_q;
  logic [31:0]       x4_many_q;
  logic [60:0]       x4_word_address_q, x5_word_address_q;
  count_t            x2_count, x2_flag;
  logic [31:0]       x2_goal, x2_count_sum;
  reported_t         x2_reported, x3_reported_q, x4_reported_q, x5_reported_q;
  logic [31:0]       x3_count_q, x3_flag_q, x3_goal_q;
  logic              x3_flagged_q, x4_flagged_q;
  logic [32:0]       x3_elapsed_q;
  logic [31:0]       x4_delta_q, x4_flag_delta_q, x4_count_q, x5_count_q;
  logic              x4_borrow_q, x4_idle_q, x4_late_q;
  logic              x5_any_q, x5_many_q, x5_idle_q, x5_late_q, x5_flag_q;
  logic [31:0]       x5_high_q;
  logic              due, x6_due_q, x6_arm_q, x6_flag_q;
  logic [60:0]       x6_word_address_q;
  logic [63:0]       x6_count_q, x6_old_count_q;

  logic              report_valid_q, report_valid_d, report_flag_q, report;
  logic [QueueW-1:0] report_queue_q;
  logic [60:0]       report_word_address_q;
  logic [63:0]       report_count_q;

  assign clearing = setup_q == SetupClear;
  assign hold     = setup_q != SetupIdle;
  assign busy_o   = hold || list_busy;

  // ---- Counts in.
  always_ff @(posedge clk_i) begin
    count_q       <= rst_ni && count_valid_i;
    count_queue_q <= count_queue_i;
    count_value_q <= count_i;
    count_flag_q  <= count_flag_i;
  end

  table_ram #(.Width(2), .Depth(Entries)) u_life (
    .clk_i, .we_i(clearing || setup_q == SetupWrite), .waddr_i(setup_queue_q),
    .wdata_i(clearing ? 2'd0 : new_life), .raddr_i(count_queue_i), .rdata_o(count_life)
  );

  work_list #(.NumQueues(NumQueues)) u_list (
    .clk_i, .rst_ni, .busy_o(list_busy),
    .add_valid_i(count_valid_i), .add_queue_i(count_queue_i),
    .take_valid_o(take_valid), .take_ready_i(take_ready), .take_queue_o(take_queue)
  );

  // ---- What is known of each queue.
  assign look_address = (setup_q == SetupRead) ? setup_queue_q : step ? x1_queue_q : x2_queue_q;

  table_ram #(.Width($bits(settings_t)), .Depth(Entries)) u_settings (
    .clk_i, .we_i(clearing || setup_q == SetupWrite), .waddr_i(setup_queue_q),
    .wdata_i(clearing ? '0 : settings_new),
    .raddr_i(look_address), .rdata_o(x2_settings)
  );
  table_ram #(.Width($bits(count_t)), .Depth(Entries)) u_count (
    .clk_i, .we_i(clearing || count_q), .waddr_i(clearing ? setup_queue_q : count_queue_q),
    .wdata_i(clearing ? '0 : {count_life, count_value_q}), .raddr_i(look_address), .rdata_o(x2_count)
  );
  table_ram #(.Width($bits(count_t)), .Depth(Entries)) u_flag (
    .clk_i, .we_i(clearing || count_q && count_flag_q), .waddr_i(clearing ? setup_queue_q : count_queue_q),
    .wdata_i(clearing ? '0 : {count_life, count_value_q}), .raddr_i(look_address), .rdata_o(x2_flag)
  );
  table_ram #(.Width(32), .Depth(Entries)) u_goal (
    .clk_i, .we_i(goal_valid_i), .waddr_i(goal_queue_i), .wdata_i(goal_i),
    .raddr_i(look_address), .rdata_o(x2_goal)
  );
  table_ram #(.Width($bits(reported_t)), .Depth(Entries)) u_reported (
    .clk_i, .we_i(clearing || setup_q == SetupWrite || step && (x6_due_q || x6_arm_q)),
    .waddr_i(hold && setup_q != SetupDrain ? setup_queue_q : x6_queue_q),
    .wdata_i(clearing || setup_q == SetupWrite ? '0 :
             x6_due_q ? {1'b0, now_ns_i, x6_count_q} : {1'b1, now_ns_i, x6_old_count_q}),
    .raddr_i(look_address), .rdata_o(x2_reported)
  );

  // ---- Whose turn it is. A queue that is being looked at is not looked at again before its entry is
  // written.
  assign scan_first = scan_now_q || !take_valid;
  assign look_queue = scan_first ? scan_q : take_queue;
  assign look = step && !hold && !(x1_valid_q && x1_queue_q == look_queue) &&
                !(x2_valid_q && x2_queue_q == look_queue) && !(x3_valid_q && x3_queue_q == look_queue) &&
                !(x4_valid_q && x4_queue_q == look_queue) && !(x5_valid_q && x5_queue_q == look_queue);
  assign take_ready = look && !scan_first;

  // ---- The look itself.
  assign x2_count_sum = (x2_count.life == x2_settings.life) ? x2_count.count : '0;
  assign due = x5_valid_q && x5_active_q && x5_any_q &&
               (x5_many_q || (x5_at_once_q ? x5_idle_q : x5_reported_q.armed && x5_late_q));
  assign step   = !(x6_due_q && report_valid_q);
  assign report = step && x6_due_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      slot_q     <= '0;
      scan_now_q <= 1'b0;
      scan_q     <= '0;
      x1_valid_q <= 1'b0;
      x2_valid_q <= 1'b0;
      x3_valid_q <= 1'b0;
      x4_valid_q <= 1'b0;
      x5_valid_q <= 1'b0;
      x6_valid_q <= 1'b0;
      x6_due_q   <= 1'b0;
      x6_arm_q   <= 1'b0;
    end else if (step) begin
      slot_q     <= slot_q + 1'b1;
      scan_now_q <= slot_q == 2'd2;
      if (scan_first && !hold) scan_q <= scan_q + 1'b1;
      x1_valid_q <= look;
      x2_valid_q <= x1_valid_q;
      x3_valid_q <= x2_valid_q;
      x4_valid_q <= x3_valid_q;
      x5_valid_q <= x4_valid_q;
      x6_valid_q <= x5_valid_q;
      x6_due_q   <= due;
      x6_arm_q   <= x5_valid_q && x5_active_q && x5_any_q && !due && !x5_reported_q.armed;
    end
    if (step) begin
      x1_queue_q <= look_queue;
      x2_queue_q <= x1_queue_q;

      x3_queue_q    <= x2_queue_q;
      x3_settings_q <= x2_settings;
      x3_reported_q <= x2_reported;
      x3_count_q    <= x2_count_sum;
      x3_flag_q     <= x2_flag.count;
      x3_flagged_q  <= x2_flag.life == x2_settings.life;
      x3_goal_q     <= x2_goal;
      x3_elapsed_q  <= now_ns_i - x2_reported.since;

      x4_queue_q      <= x3_queue_q;
      x4_active_q     <= x3_settings_q.active;
      x4_at_once_q    <= x3_settings_q.at_once;
      x4_many_q       <= x3_settings_q.count;
      x4_word_address_q <= x3_settings_q.word_address;
      x4_reported_q   <= x3_reported_q;
      x4_count_q      <= x3_count_q;
      {x4_borrow_q, x4_delta_q} <= {1'b0, x3_count_q} - {1'b0, x3_reported_q.count[31:0]};
      x4_flag_delta_q <= x3_flag_q - x3_reported_q.count[31:0];
      x4_flagged_q    <= x3_flagged_q;
      x4_idle_q       <= !IdleByGoal || x3_count_q == x3_goal_q;
      x4_late_q       <= x3_elapsed_q >= {1'b0, x3_settings_q.time_ns};

      x5_queue_q    <= x4_queue_q;
      x5_active_q   <= x4_active_q;
      x5_at_once_q  <= x4_at_once_q;
      x5_word_address_q <= x4_word_address_q;
      x5_reported_q <= x4_reported_q;
      x5_count_q    <= x4_count_q;
      x5_high_q     <= x4_reported_q.count[63:32] + 32'(x4_borrow_q);
      x5_any_q      <= x4_delta_q != '0;
      x5_many_q     <= x4_delta_q >= x4_many_q;
      x5_idle_q     <= x4_idle_q;
      x5_late_q     <= x4_late_q;
      x5_flag_q     <= x4_flagged_q && x4_flag_delta_q != '0 && x4_flag_delta_q <= x4_delta_q;

      x6_queue_q        <= x5_queue_q;
      x6_flag_q         <= x5_flag_q;
      x6_word_address_q <= x5_word_address_q;
      x6_count_q        <= {x5_high_q, x5_count_q};
      x6_old_count_q    <= x5_reported_q.count;
    end
  end

  logic unused_life;
  assign unused_life = ^{x3_settings_q.life, x5_reported_q};

  // ---- Reports out.
  always_comb begin
    report_valid_d = report_valid_q && !report_ready_i;
    if (report) report_valid_d = 1'b1;
  end

  always_ff @(posedge clk_i) begin
    report_valid_q <= rst_ni && report_valid_d;
    if (report) begin
      report_queue_q        <= x6_queue_q;
      report_word_address_q <= x6_word_address_q;
      report_count_q        <= x6_count_q;
      report_flag_q         <= x6_flag_q;
    end
  end

  assign report_valid_o        = report_valid_q;
  assign report_queue_o        = report_queue_q;
  assign report_word_address_o = report_word_address_q;
  assign report_count_o        = report_count_q;
  assign report_flag_o         = report_flag_q;

  // ---- Set-up.
  // A life that neither entry of the former ones carries.
  always_comb begin
    new_life = 2'd0;
    if (x2_count.life == 2'd0 || x2_flag.life == 2'd0) new_life = 2'd1;
    if (new_life == 2'd1 && (x2_count.life == 2'd1 || x2_flag.life == 2'd1)) new_life = 2'd2;
    settings_new      = setup_settings_q;
    settings_new.life = new_life;
  end

  always_comb begin
    setup_d          = setup_q;
    setup_queue_d    = setup_queue_q;
    setup_settings_d = setup_settings_q;
    unique case (setup_q)
      SetupClear: begin
        setup_queue_d = setup_queue_q + 1'b1;
        if (setup_queue_q == '1) setup_d = SetupIdle;
      end
      SetupIdle: begin
        if (start_valid_i || stop_valid_i) begin
          setup_d          = SetupDrain;
          setup_queue_d    = setup_queue_i;
          setup_settings_d = '{
            active: start_valid_i, life: '0, at_once: start_time_ns_i == '0,
            count: (start_count_i == '0) ? 32'd1 : start_count_i, time_ns: start_time_ns_i,
            word_address: start_word_address_i
          };
        end
      end
      SetupDrain: begin
        if (!x1_valid_q && !x2_valid_q && !x3_valid_q && !x4_valid_q && !x5_valid_q && !x6_valid_q &&
            !(report_valid_q && report_queue_q == setup_queue_q)) setup_d = SetupRead;
      end
      SetupRead:  setup_d = SetupWrite;
      SetupWrite: setup_d = SetupIdle;
      default:    setup_d = SetupIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      setup_q       <= SetupClear;
      setup_queue_q <= '0;
    end else begin
      setup_q       <= setup_d;
      setup_queue_q <= setup_queue_d;
    end
    setup_settings_q <= setup_settings_d;
  end

`ifndef SYNTHESIS
  logic        waiting_q;
  logic [63:0] waiting_count_q;
  always_ff @(posedge clk_i) begin
    waiting_q       <= rst_ni && report_valid_o && !report_ready_i;
    waiting_count_q <= report_count_o;
    if (rst_ni) begin
      assert (!((start_valid_i || stop_valid_i) && busy_o)) else $error("moderation: set-up while busy_o");
      assert (!(start_valid_i && stop_valid_i)) else $error("moderation: start and stop in one cycle");
      assert (!waiting_q || report_valid_o && report_count_o == waiting_count_q)
        else $error("moderation: a waiting report changed");
      assert (!report || x6_count_q != x6_old_count_q) else $error("moderation: empty report");
    end
  end
`endif

endmodule

`default_nettype wire

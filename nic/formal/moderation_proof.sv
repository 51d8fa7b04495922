// What is proved of nic/rtl/engine/moderation.sv, and so of the credits of nic/rtl/mmio/credit_return.sv, for every
// length of run, by k-induction (nic/formal/moderation.sby), of any queue, whatever the other does:
//   - what is reported is absolute: the 64-bit sum of all moves since the queue's start, as it was when it was looked
//     at;
//   - it is monotone: more than what was reported before in this life, never more than what was told;
//   - a queue that is not started, or was stopped, reports nothing; a report bears the address of the queue's start;
//   - a report that waits stands still.
// That the newest count is reported in the end, and when, is simulated only (nic/tb/credit_return).
//
// Assumed: set-up comes while `busy_o` is low; counts of a life come after its start is done and before the next
// set-up; fewer than 2^32 events lie between two reports, and fewer than 2^63 in a life. All else is free: flags,
// goals, times, back-pressure, and a reset in the middle of traffic.
//
// Proved for 2 queues and all widths of the hardware. A queue enters by addresses of tables (table_ram_proof.sv) and
// comparisons for equality alone.

`default_nettype none

module moderation_proof #(
  // One simple run is looked for, so that a solver finds it soon.
  parameter bit Simple = 1'b0,
  localparam int unsigned NumQueues = 2,
  localparam int unsigned QueueW = 1
) (
  input logic              clk_i,
  input logic              rst_ni,
  input logic [32:0]       now_ns_i,
  input logic              start_valid_i,
  input logic              stop_valid_i,
  input logic [QueueW-1:0] setup_queue_i,
  input logic [60:0]       start_word_address_i,
  input logic [31:0]       start_count_i,
  input logic [31:0]       start_time_ns_i,
  input logic              count_valid_i,
  input logic [QueueW-1:0] count_queue_i,
  input logic [31:0]       count_i,
  input logic              count_flag_i,
  input logic              goal_valid_i,
  input logic [QueueW-1:0] goal_queue_i,
  input logic [31:0]       goal_i,
  input logic              report_ready_i,
  // The queue that is followed: any, but always the same; and by how much its count moves.
  input logic [QueueW-1:0] place_i,
  input logic [31:0]       move_i
);

  logic              busy, report_valid;
  logic [QueueW-1:0] report_queue;
  logic [60:0]       report_word_address;
  logic [63:0]       report_count;

  moderation #(.NumQueues(NumQueues)) dut (
    .clk_i, .rst_ni, .busy_o(busy), .now_ns_i, .start_valid_i, .stop_valid_i, .setup_queue_i, .start_word_address_i,
    .start_count_i, .start_time_ns_i, .count_valid_i, .count_queue_i, .count_i, .count_flag_i, .goal_valid_i,
    .goal_queue_i, .goal_i, .report_valid_o(report_valid), .report_ready_i, .report_queue_o(report_queue),
    .report_word_address_o(report_word_address), .report_count_o(report_count), .report_flag_o()
  );

  // States of the set-up.
  localparam logic [2:0] Read = 3'd3;
  localparam logic [2:0] Write = 3'd4;

  // Kept beside it: the true count, now and a cycle ago; what was reported last; what a look at it saw, stage by stage.
  logic              started_q = 1'b0;
  logic              active_q, next_active_q, is_told, is_setup, is_written, is_reported;
  logic [QueueW-1:0] place_q;
  logic [60:0]       address_q, next_address_q;
  logic [63:0]       told_q, told1_q, reported_q, moved;
  logic [6:3][63:0]  seen_q;

  assign is_told     = rst_ni && count_valid_i && count_queue_i == place_i;
  assign is_setup    = (start_valid_i || stop_valid_i) && setup_queue_i == place_i;
  assign is_written  = dut.setup_queue_q == place_i && (dut.clearing || dut.setup_q == Write);
  assign is_reported = dut.report && dut.x6_queue_q == place_i;
  assign moved       = told_q + 64'(move_i);

  always_ff @(posedge clk_i) begin
    started_q <= 1'b1;
    place_q   <= place_i;
    assume (started_q ? place_i == place_q : !rst_ni);
    assume (!(start_valid_i && stop_valid_i));
    if (start_valid_i || stop_valid_i) assume (!busy && rst_ni);
    if (count_valid_i) assume (!dut.clearing && !dut.list_busy);
    if (is_told) begin
      assume (count_i == moved[31:0] && moved - reported_q < 64'h1_0000_0000 && !moved[63]);
      assume (!is_setup && !(dut.hold && (dut.clearing || dut.setup_queue_q == place_i)));
    end
    if (is_setup && !busy) {next_active_q, next_address_q} <= {start_valid_i, start_word_address_i};
    // What is proved of the followed queue holds of the other one: the module looks at this itself.
    if (dut.report && !is_reported) assume (dut.x6_count_q != dut.x6_old_count_q);
    told1_q <= told_q;
    if (is_told) told_q <= moved;
    if (is_reported) reported_q <= dut.x6_count_q;
    if (rst_ni && is_written) begin
      {told_q, told1_q, reported_q} <= '0;
      active_q  <= !dut.clearing && next_active_q;
      address_q <= next_address_q;
    end
    if (dut.step) seen_q <= {seen_q[5:3], told1_q};
  end

  // Whether the followed queue is in a stage of the look.
  logic [6:1] in_stage;
  assign in_stage = {
    dut.x6_valid_q && dut.x6_queue_q == place_i, dut.x5_valid_q && dut.x5_queue_q == place_i,
    dut.x4_valid_q && dut.x4_queue_q == place_i, dut.x3_valid_q && dut.x3_queue_q == place_i,
    dut.x2_valid_q && dut.x2_queue_q == place_i, dut.x1_valid_q && dut.x1_queue_q == place_i
  };
  logic is_moving, is_cleared;
  assign is_moving  = dut.x1_valid_q || dut.x2_valid_q || dut.x3_valid_q || dut.x4_valid_q || dut.x5_valid_q
                      || dut.x6_valid_q;
  // The sweep behind a reset has passed the queue.
  assign is_cleared = !dut.clearing || dut.setup_queue_q > place_i;

  // Bits of the tables: {active, life, at_once, count, time, address}, {life, count}, {armed, since, count}.
  logic [128:0] settings_kept;
  logic [33:0]  count_kept, flag_kept;
  logic [97:0]  reported_kept;
  logic [1:0]   life_kept;
  assign settings_kept = dut.u_settings.mem[place_i];
  assign count_kept    = dut.u_count.mem[place_i];
  assign flag_kept     = dut.u_flag.mem[place_i];
  assign reported_kept = dut.u_reported.mem[place_i];
  assign life_kept     = dut.u_life.mem[place_i];

  // The list of queues to look at: each is inside at most once, as its marks say.
  logic is_listed_once;
  always_comb begin
    is_listed_once = 1'b1;
    for (int unsigned q = 0; q < NumQueues; q++) begin
      logic [1:0] entries;
      entries = '0;
      for (int unsigned i = 0; i < NumQueues; i++) begin
        logic [QueueW-1:0] age;
        age = QueueW'(i) - dut.u_list.u_fifo.read_q;
        if (2'(age) < dut.u_list.u_fifo.count_q
            && dut.u_list.u_fifo.mem[i][0] == QueueW'(q)) begin
          entries += 2'd1;
          if (dut.u_list.u_fifo.mem[i][1] != dut.u_list.u_added.mem[q]) is_listed_once = 1'b0;
        end
      end
      if ((!dut.list_busy || 32'(dut.u_list.clear_q) > q)
          && entries != 2'(dut.u_list.u_added.mem[q] != dut.u_list.u_taken.mem[q])) is_listed_once = 1'b0;
    end
    if (dut.u_list.add_q && (dut.u_list.added_mark != dut.u_list.u_added.mem[dut.u_list.queue_q]
        || dut.u_list.taken_mark != dut.u_list.u_taken.mem[dut.u_list.queue_q])) is_listed_once = 1'b0;
    if (dut.list_busy && (dut.u_list.u_fifo.count_q != '0 || dut.u_list.add_q)) is_listed_once = 1'b0;
  end

  logic        waited_q = 1'b0;
  logic [63:0] waited_count_q;
  logic [60:0] waited_address_q;
  always_ff @(posedge clk_i) begin
    waited_q         <= rst_ni && report_valid && !report_ready_i;
    waited_count_q   <= report_count;
    waited_address_q <= report_word_address;
    if (started_q && rst_ni && waited_q) begin
      assert (report_valid && report_count == waited_count_q && report_word_address == waited_address_q);
    end
  end

  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      if (is_reported) begin
        assert (active_q && dut.x6_word_address_q == address_q && dut.x6_count_q == seen_q[6]);
        assert (dut.x6_count_q > reported_q && dut.x6_count_q <= told_q);
      end
      if (report_valid && report_queue == place_i && !dut.clearing && active_q) begin
        assert (report_count == reported_q && report_word_address == address_q);
      end
      assert (is_listed_once && dut.setup_q <= Write);
      // ------------------------------------------------------------ invariants: the set-up and the tables
      if (dut.clearing) assert (!is_moving && !report_valid && !(dut.count_q && dut.count_queue_q == place_i));
      if (dut.setup_q == Read || dut.setup_q == Write) begin
        assert (!is_moving && !(report_valid && report_queue == dut.setup_queue_q));
        assert (!(dut.count_q && dut.count_queue_q == dut.setup_queue_q) || dut.setup_queue_q != place_i);
      end
      if (dut.x6_due_q || dut.x6_arm_q) assert (dut.x6_valid_q);
      if (dut.hold && !dut.clearing && dut.setup_queue_q == place_i) begin
        assert (dut.setup_settings_q.active == next_active_q);
        assert (dut.setup_settings_q.word_address == next_address_q);
      end
      if (is_cleared) begin
        assert (settings_kept[128] == active_q && settings_kept[127:126] == life_kept);
        if (active_q) assert (settings_kept[60:0] == address_q);
        assert (((count_kept[33:32] == life_kept) ? count_kept[31:0] : 32'd0) == told1_q[31:0]);
        assert (reported_kept[63:0] == reported_q);
        assert (told1_q >= reported_q && told_q >= told1_q && told_q - reported_q < 64'h1_0000_0000);
        assert (!told_q[63]);
        assert (told_q == told1_q || (dut.count_q && dut.count_queue_q == place_i));
        if (dut.count_q && dut.count_queue_q == place_i) assert (dut.count_value_q == told_q[31:0]);
      end else begin
        assert (in_stage == '0);
      end
      // ------------------------------------------------------------ the stages of a look
      assert ($onehot0(in_stage));
      for (int unsigned i = 3; i <= 6; i++) begin
        if (in_stage[i]) assert (seen_q[i] >= reported_q && seen_q[i] <= told1_q);
      end
      // What a table gives is what it holds (table_ram_proof.sv).
      if (dut.count_q && dut.count_queue_q == place_i) assert (dut.count_life == life_kept);
      if (in_stage[2] || (dut.setup_q == Write && dut.setup_queue_q == place_i)) begin
        assert (dut.x2_settings == settings_kept && dut.x2_count == count_kept && dut.x2_flag == flag_kept);
        assert (dut.x2_reported == reported_kept);
      end
      if (in_stage[3]) begin
        assert (dut.x3_settings_q.active == active_q && dut.x3_count_q == seen_q[3][31:0]);
        if (active_q) assert (dut.x3_settings_q.word_address == address_q);
        assert (dut.x3_reported_q.count == reported_q);
      end
      if (in_stage[4]) begin
        assert (dut.x4_active_q == active_q && dut.x4_count_q == seen_q[4][31:0]);
        if (active_q) assert (dut.x4_word_address_q == address_q);
        assert (dut.x4_reported_q.count == reported_q && dut.x4_delta_q == 32'(seen_q[4] - reported_q));
        assert (dut.x4_borrow_q == (seen_q[4][31:0] < reported_q[31:0]));
      end
      if (in_stage[5]) begin
        assert (dut.x5_active_q == active_q && {dut.x5_high_q, dut.x5_count_q} == seen_q[5]);
        if (active_q) assert (dut.x5_word_address_q == address_q);
        assert (dut.x5_reported_q.count == reported_q && dut.x5_any_q == (seen_q[5] != reported_q));
      end
      if (in_stage[6]) begin
        assert (dut.x6_count_q == seen_q[6] && dut.x6_old_count_q == reported_q);
        if (dut.x6_due_q) assert (active_q && dut.x6_word_address_q == address_q && seen_q[6] != reported_q);
      end
    end
  end

  if (Simple) begin : g_simple
    always_ff @(posedge clk_i) begin
      assume (rst_ni == started_q && place_i == '0 && setup_queue_i == '0 && count_queue_i == '0 && move_i == 32'd3);
      assume (!stop_valid_i && !goal_valid_i && !count_flag_i && now_ns_i == '0 && report_ready_i);
      assume (start_time_ns_i == '0 && start_count_i == 32'd1 && start_word_address_i == '1);
    end
  end
  always_ff @(posedge clk_i) begin
    if (started_q && rst_ni) begin
      cover (is_reported && told_q > dut.x6_count_q && reported_q != '0);
    end
  end

endmodule

`default_nettype wire

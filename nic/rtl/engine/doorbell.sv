// Doorbells: absolute counts that a host writes, checked before anybody believes them.
//
// The newest value of each queue lies in a mailbox, so a doorbell is never refused and one queue cannot crowd
// out another; values are checked one at a time.
//
// Guarantees
//   - A value passes only if it lies between the value that passed last and `bias + other`: as many as the
//     other side has finished (`other`) and, where a whole ring belongs to the host at the start, its entries
//     (`bias`). So it runs neither backwards nor past the ring. Any other is counted in
//     `count_bad_accesses_o` and ignored.
//   - A value of a former life of the queue, or of a queue that is not active, is ignored.
//   - An announcement (`announce_*`) is a value that came by another way and is checked like a doorbell. It ends with a
//     post that is marked (`post_announced_o`), or with `announce_none_o` in its place. With BehindIsOld a value behind
//     the one that passed last says nothing new, and is not counted.
// Limits
//   - A value that is replaced before it was looked at is as if it had never been: a bad one then is not
//     counted.
//   - `other_*` of a queue reaches the check two cycles later. It may only be late with what the host cannot
//     know yet.
//   - An announcement has 32 bits and lies within 2^31 of the value that passed last; it stands until it has ended.
//   - setup_queue_i stands in the cycle before setup_write_i already; both only while hold_i and idle_o are
//     high.
// Latency: 7 cycles. Throughput: a doorbell in 6 cycles, of one queue or of many.
// Cost: NumQueues x (2 x CountW + 142) bits of RAM. Twin: DescriptorRing::post, RxRing::freed.

`default_nettype none

module doorbell #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // Bits of a difference of counts: entries of the longest ring need one more than their logarithm.
  parameter int unsigned CountW = 17,
  // Whether a value behind the one that passed last is borne without being counted.
  parameter bit BehindIsOld = 1'b0,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  output logic              busy_o,
  input  logic              hold_i,
  output logic              idle_o,

  input  logic              setup_write_i,
  input  logic [QueueW-1:0] setup_queue_i,
  input  logic              setup_active_i,
  input  logic [CountW-1:0] setup_bias_i,

  input  logic              doorbell_valid_i,
  input  logic [QueueW-1:0] doorbell_queue_i,
  input  logic [63:0]       doorbell_value_i,

  input  logic              other_valid_i,
  input  logic [QueueW-1:0] other_queue_i,
  input  logic [CountW-1:0] other_count_i,

  input  logic              announce_valid_i,
  input  logic [QueueW-1:0] announce_queue_i,
  input  logic [31:0]       announce_value_i,
  output logic              announce_none_o,

  // What passed, whether it was announced, and what had passed before it.
  output logic              post_valid_o,
  input  logic              post_ready_i,
  output logic [QueueW-1:0] post_queue_o,
  output logic [63:0]       post_value_o,
  output logic              post_announced_o,
  output logic [CountW-1:0] post_old_o,

  output logic              count_bad_accesses_o
);

  localparam int unsigned Entries = 1 << QueueW;

  if (CountW < 2 || CountW > 31) begin : g_bad_count
    $fatal(1, "doorbell: CountW must be 2 to 31 bits");
  end

  typedef struct packed {
    logic              active;
    logic [1:0]        life;
    logic [CountW-1:0] bias;
  } settings_t;
  typedef struct packed {
    logic [1:0]  life;
    logic [63:0] value;
  } mail_t;
  typedef struct packed {
    logic [1:0]        life;
    logic [CountW-1:0] count;
  } other_t;
  typedef enum logic [2:0] {DoorIdle, DoorRead, DoorLook, DoorStep, DoorCheck, DoorPost} door_e;

  door_e             door_q, door_d;
  logic              take_valid, take_ready;
  logic [QueueW-1:0] take_queue, queue_q, queue_d, address;

  logic              mail_q;
  logic [QueueW-1:0] mail_queue_q;
  logic [63:0]       mail_value_q;
  logic [1:0]        mail_life, other_life, new_life;
  logic              other_q;
  logic [QueueW-1:0] other_queue_q;
  logic [CountW-1:0] other_count_q;

  settings_t         settings;
  mail_t             mail;
  logic [63:0]       old;
  other_t            other;

  logic              is_mine_q, borrow_q, announced_q, announced_d, announce, is_behind_q;
  logic [31:0]       value_low, high_step;
  logic              high_borrow;
  logic [63:0]       value_q;
  logic [31:0]       old_high_q, step_low_q;
  logic [CountW-1:0] sum_q, old_low_q, room_q;
  logic              is_far_q, is_same_q, passes;
  // No queue is active after reset; the marks of the list are cleared meanwhile, at the same pace.
  logic [QueueW-1:0] clear_q;

  assign idle_o     = door_q == DoorIdle;
  // An announcement goes first: whoever makes it waits for its end, so doorbells have their turns between.
  assign announce   = announce_valid_i && door_q == DoorIdle && !hold_i;
  assign take_ready = door_q == DoorIdle && !hold_i && !announce_valid_i;
  assign address    = (door_q == DoorIdle) ? setup_queue_i : queue_q;

  work_list #(.NumQueues(NumQueues)) u_list (
    .clk_i, .rst_ni, .busy_o, .add_valid_i(doorbell_valid_i), .add_queue_i(doorbell_queue_i),
    .take_valid_o(take_valid), .take_ready_i(take_ready), .take_queue_o(take_queue)
  );

  // Mailbox and `other` are written from outside alone, in every cycle if need be. So a start does not clear
  // them: an entry counts only when it was written in the present life of the queue.
  always_comb begin
    new_life = 2'd0;
    if (mail.life == 2'd0 || other.life == 2'd0) new_life = 2'd1;
    if (new_life == 2'd1 && (mail.life == 2'd1 || other.life == 2'd1)) new_life = 2'd2;
  end

  always_ff @(posedge clk_i) begin
    mail_q        <= rst_ni && doorbell_valid_i;
    mail_queue_q  <= doorbell_queue_i;
    mail_value_q  <= doorbell_value_i;
    other_q       <= rst_ni && other_valid_i;
    other_queue_q <= other_queue_i;
    other_count_q <= other_count_i;
  end

  table_ram #(.Width(2), .Depth(Entries)) u_mail_life (
    .clk_i, .we_i(setup_write_i), .waddr_i(setup_queue_i), .wdata_i(new_life),
    .raddr_i(doorbell_queue_i), .rdata_o(mail_life)
  );
  table_ram #(.Width(2), .Depth(Entries)) u_other_life (
    .clk_i, .we_i(setup_write_i), .waddr_i(setup_queue_i), .wdata_i(new_life),
    .raddr_i(other_queue_i), .rdata_o(other_life)
  );
  table_ram #(.Width($bits(mail_t)), .Depth(Entries)) u_mail (
    .clk_i, .we_i(mail_q), .waddr_i(mail_queue_q), .wdata_i({mail_life, mail_value_q}),
    .raddr_i(address), .rdata_o(mail)
  );
  table_ram #(.Width($bits(settings_t)), .Depth(Entries)) u_settings (
    .clk_i, .we_i(setup_write_i || busy_o), .waddr_i(busy_o ? clear_q : setup_queue_i),
    .wdata_i(busy_o ? '0 : {setup_active_i, new_life, setup_bias_i}), .raddr_i(address), .rdata_o(settings)
  );
  table_ram #(.Width(64), .Depth(Entries)) u_old (
    .clk_i, .we_i(setup_write_i || door_q == DoorPost), .waddr_i(setup_write_i ? setup_queue_i : queue_q),
    .wdata_i(setup_write_i ? '0 : value_q), .raddr_i(address), .rdata_o(old)
  );
  table_ram #(.Width($bits(other_t)), .Depth(Entries)) u_other (
    .clk_i, .we_i(other_q), .waddr_i(other_queue_q), .wdata_i({other_life, other_count_q}),
    .raddr_i(address), .rdata_o(other)
  );

  always_ff @(posedge clk_i) begin
    if (!rst_ni) clear_q <= '0;
    else         clear_q <= clear_q + QueueW'(busy_o);
  end

  assign passes = !is_far_q && step_low_q[CountW-1:0] <= room_q;

  always_comb begin
    door_d      = door_q;
    queue_d     = queue_q;
    announced_d = announced_q;
    unique case (door_q)
      DoorIdle: begin
        if (announce || take_valid && take_ready) begin
          door_d      = DoorRead;
          queue_d     = announce ? announce_queue_i : take_queue;
          announced_d = announce;
        end
      end
      DoorRead:  door_d = DoorLook;
      DoorLook:  door_d = DoorStep;
      DoorStep:  door_d = is_mine_q ? DoorCheck : DoorIdle;
      DoorCheck: door_d = (passes && !is_same_q) ? DoorPost : DoorIdle;
      DoorPost:  if (post_ready_i) door_d = DoorIdle;
      default:   door_d = DoorIdle;
    endcase
  end

  assign value_low = announced_q ? announce_value_i : mail.value[31:0];
  assign {high_borrow, high_step} = {1'b0, value_q[63:32]} - {1'b0, old_high_q} - 33'(borrow_q);

  always_ff @(posedge clk_i) begin
    if (!rst_ni) door_q <= DoorIdle;
    else         door_q <= door_d;
    queue_q     <= queue_d;
    announced_q <= announced_d;
    if (door_q == DoorLook) begin
      is_mine_q <= settings.active && (announced_q || mail.life == settings.life);
      value_q   <= {mail.value[63:32], value_low};
      {borrow_q, step_low_q} <= {1'b0, value_low} - {1'b0, old[31:0]};
      old_high_q <= old[63:32];
      old_low_q  <= old[CountW-1:0];
      sum_q      <= ((other.life == settings.life) ? other.count : '0) + settings.bias;
    end
    if (door_q == DoorStep) begin
      // The step is short when the high halves differ by the borrow alone, and no bit above CountW is set. An
      // announcement is near, so its high half follows from its low one.
      is_far_q    <= high_step != '0 && !announced_q || step_low_q[31:CountW] != '0;
      is_behind_q <= announced_q ? step_low_q[31] : high_borrow;
      if (announced_q) value_q[63:32] <= old_high_q + 32'(borrow_q);
      is_same_q <= step_low_q == '0;
      room_q    <= sum_q - old_low_q;
    end
  end

  assign post_valid_o = door_q == DoorPost;
  assign post_queue_o = queue_q;
  assign post_value_o = value_q;
  assign post_announced_o = announced_q;
  assign post_old_o       = old_low_q;
  assign announce_none_o  = announced_q && (door_q == DoorStep && !is_mine_q ||
                                            door_q == DoorCheck && !(passes && !is_same_q));
  assign count_bad_accesses_o = door_q == DoorCheck && !passes && !(BehindIsOld && is_behind_q);

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!setup_write_i || hold_i && idle_o) else $error("doorbell: set up while at work");
    end
  end
`endif

endmodule

`default_nettype wire

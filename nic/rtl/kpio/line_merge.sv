// Lines that come in pieces, until their 64 bytes are there.
//
// The paper assumes that a full write-combining buffer leaves the core whole. Where a buffer is evicted early, or the
// link carries words, a line comes in pieces: they are put together here, and the line counts as arrived when it is
// whole. Ten lines of a queue can be in pieces at once, as many as a core has write-combining buffers.
//
// Guarantees
//   - Ops leave in the order in which they came; a line leaves once, whole, when its last byte has come.
//   - A whole line of a queue that has no line in pieces takes one cycle: one line a cycle sustained, any queue mix.
//   - A byte that comes twice fails the queue (clobber); so does an eleventh line in pieces (span_exceeded), and a line
//     that has been passed by a later one for longer than the queue's time-out (hole_timeout). A failure is an OpFail
//     in the stream, in its place.
//   - Pieces of a queue that has failed here, or is halted, are dropped and counted. `halted` is what the stage behind
//     says of a queue; it may be 9 cycles old, and that stage drops the lines that become whole meanwhile.
// Limits
//   - A piece, or a whole line of a queue with lines in pieces, takes 6 cycles, during which nothing else enters: a
//     line in two pieces costs 12. Split lines are the exception that the paper does not expect; unordered `mmio`
//     queues take them at full rate.
//   - Room in the queue is asked for when a line is whole, not at each of its pieces as the model does: a sender that
//     respects its credits sees no difference.
// Latency: 1 cycle (whole line), 5 (piece that makes a line whole).
// Cost: NumQueues x 16 x 576 bits of RAM for the pieces (MaxPartialLines of each 16 used), NumQueues x
// (10 x (LineW + 7) + 2 + 49 + 48 + 1) bits of tables, about 2,000 registers.
// Twin: nic/model/src/kpio/line_merge.rs, and take_pieces and note_hole of kpio_queue.rs.

`default_nettype none

module line_merge #(
  // Queues, 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // log2 of the lines of a window.
  parameter int unsigned LineW = 6,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic [47:0]       now_ns_i,

  // Ops come in: OpLine is a piece of a line.
  input  logic              in_valid_i,
  output logic              in_ready_o,
  input  kpio_pkg::op_e     in_op_i,
  input  logic [QueueW-1:0] in_queue_i,
  input  logic [LineW-1:0]  in_line_i,
  input  logic [511:0]      in_data_i,
  input  logic [63:0]       in_be_i,
  input  logic              in_whole_i,
  // Time-out in ns of the queue that an OpStart starts; 0: never. Stands while the op is under way.
  input  logic [47:0]       start_timeout_i,

  // The stage behind halts a queue, or lets it go.
  input  logic              halt_we_i,
  input  logic [QueueW-1:0] halt_queue_i,
  input  logic              halt_value_i,

  // Ops leave: OpLine is a whole line.
  output logic              out_valid_o,
  input  logic              out_ready_i,
  output kpio_pkg::op_e     out_op_o,
  output logic [QueueW-1:0] out_queue_o,
  output logic [511:0]      out_data_o,
  output nic_pkg::queue_status_cause_e out_cause_o,
  // No op is at work.
  output logic              is_idle_o,

  output logic              count_split_lines_o,
  output logic              count_holes_o,
  output logic              count_quarantined_writes_o
);

  localparam int unsigned Max = kpio_pkg::MaxPartialLines;
  localparam int unsigned StoreW = $clog2(NumQueues) + 4;

  // The lines in pieces of a queue, in the order of their first pieces.
  typedef struct packed {
    // The queue has failed here; what follows is dropped until it is started anew.
    logic                      dead;
    // A hole stands.
    logic                      hole;
    // Physical slots in use.
    logic [Max-1:0]            used;
    // Entry i is there; the entries that are there are the lowest ones.
    logic [Max-1:0]            valid;
    // A line that began to arrive later has been whole before this one.
    logic [Max-1:0]            overtaken;
    logic [Max-1:0][3:0]       slot;
    logic [Max-1:0][LineW-1:0] line;
  } tag_t;
  localparam int unsigned TagW = $bits(tag_t);

  typedef enum logic [2:0] {StReady, StFind, StRead, StMerge, StResolve, StEmit, StDone} state_e;

  // The op at work.
  state_e              state_q, state_d;
  logic                valid_q, valid_d, expire_q, piece_q;
  kpio_pkg::op_e       op_q;
  logic [QueueW-1:0]   queue_q;
  logic [LineW-1:0]    line_q;
  logic [511:0]        data_q;
  logic [63:0]         be_q;
  logic                whole_q;
  logic                advance, take_due;

  // What the tables say of its queue.
  logic [QueueW-1:0]   table_queue;
  tag_t                tag, tag_d, tag_read, tag_q;
  logic                tag_we, halted, halted_read, halted_q, drops, fresh_q;
  logic [47:0]         timeout;

  // Steps of a piece.
  logic [Max-1:0]      match_q, match, free, insert, behind, older;
  logic                found_q, no_room_q, empty_q, clobber_q, complete_q;
  logic [3:0]          slot_q, found_slot, free_slot;
  logic [511:0]        stored_data, merged_q;
  logic [63:0]         stored_be, old_be, mask_q;
  logic                fails, has_hole, begins_hole, is_slow;

  // Holes.
  logic [47:0]         deadline_q;
  logic [47:0]         now_q, timeout_q;
  logic                carry_q, carry, unused_carry, hole_set, hole_set_q, hole_armed_q, has_timeout_q;
  logic [11:0]         sum;
  logic                set_valid_q, set_armed_q;
  logic [QueueW-1:0]   set_queue_q;
  logic [47:0]         set_deadline_q;
  logic                due_offered, due_valid, due_taken_q;
  logic [QueueW-1:0]   due_queue;

  table_ram #(.Width(TagW), .Depth(NumQueues)) u_tags (
    .clk_i, .we_i(tag_we), .waddr_i(queue_q), .wdata_i(tag_d), .raddr_i(table_queue), .rdata_o(tag_read)
  );
  table_ram #(.Width(1), .Depth(NumQueues)) u_halted (
    .clk_i, .we_i(halt_we_i), .waddr_i(halt_queue_i), .wdata_i(halt_value_i),
    .raddr_i(table_queue), .rdata_o(halted_read)
  );
  table_ram #(.Width(48), .Depth(NumQueues)) u_timeouts (
    .clk_i, .we_i(valid_q && op_q == kpio_pkg::OpStart), .waddr_i(queue_q), .wdata_i(start_timeout_i),
    .raddr_i(table_queue), .rdata_o(timeout)
  );

  // The pieces: bytes and which of them have come. Nothing reads a slot in the cycle in which it is written.
  logic [575:0] store [NumQueues * 16];
  logic [575:0] store_q;
  assign {stored_be, stored_data} = store_q;

  always_ff @(posedge clk_i) begin
    if (state_q == StResolve && !fails && !complete_q && !empty_q) begin
      store[StoreW'({queue_q, slot_q})] <= {mask_q, merged_q};
    end
    store_q <= store[StoreW'({queue_q, slot_q})];
  end

  hole_watch #(.NumQueues(NumQueues)) u_holes (
    .clk_i,
    .rst_ni,
    .now_ns_i,
    .set_valid_i    (set_valid_q),
    .set_queue_i    (set_queue_q),
    .set_armed_i    (set_armed_q),
    .set_deadline_i (set_deadline_q),
    .due_valid_o    (due_offered),
    .due_ready_i    (due_taken_q),
    .due_queue_o    (due_queue)
  );

  // A queue whose hole has stood too long goes before what waits outside. Its tag says whether the hole still stands:
  // a piece that closed it a moment ago may not have come to the deadlines yet.
  assign advance     = !valid_q || state_q == StDone
                     || (out_ready_i && (state_q == StEmit || (state_q == StReady && !is_slow)));
  assign due_valid   = due_offered && !due_taken_q;
  assign take_due    = advance && due_valid;
  assign in_ready_o  = advance && !due_valid;
  assign is_idle_o   = !valid_q;

  // The tables are read for what comes next, whether it comes in or not, so that no address waits for that decision.
  // What they said of the op at work is kept; nobody else writes its tag.
  assign table_queue = due_valid ? due_queue : in_queue_i;
  assign tag         = fresh_q ? tag_read : tag_q;
  assign halted      = fresh_q ? halted_read : halted_q;

  // First cycle: a whole line of a queue with nothing in pieces goes on as it is.
  assign drops   = halted || tag.dead;
  assign is_slow = piece_q && !drops && !(whole_q && !tag.valid[0]);

  always_comb begin
    out_valid_o = 1'b0;
    out_op_o    = expire_q ? kpio_pkg::OpFail : op_q;
    out_data_o  = data_q;
    out_cause_o = nic_pkg::QueueStatusCauseHoleTimeout;
    if (state_q == StReady) begin
      out_valid_o = valid_q && !is_slow && (expire_q ? tag.hole : !(piece_q && drops));
    end else if (state_q == StEmit) begin
      out_valid_o = 1'b1;
      out_op_o    = fails ? kpio_pkg::OpFail : kpio_pkg::OpLine;
      out_data_o  = merged_q;
      out_cause_o = no_room_q ? nic_pkg::QueueStatusCauseSpanExceeded : nic_pkg::QueueStatusCauseClobber;
    end
  end
  assign out_queue_o = queue_q;

  // Which entry a piece belongs to, and which slot it has or gets.
  always_comb begin
    for (int i = 0; i < int'(Max); i++) match[i] = tag.valid[i] && tag.line[i] == line_q;
    free       = ~tag.used & (tag.used + 1'b1);
    found_slot = '0;
    free_slot  = '0;
    for (int i = 0; i < int'(Max); i++) begin
      found_slot |= tag.slot[i] & {4{match_q[i]}};
      free_slot  |= 4'(i) & {4{free[i]}};
    end
  end

  assign old_be = stored_be & {64{found_q}};
  assign fails  = no_room_q || clobber_q;

  // What becomes of the tag word.
  always_comb begin
    // Entries from the one that goes on; those before it began earlier, all of them when the line came whole at once.
    behind = ~(match_q - 1'b1);
    older  = ~behind;
    insert = ~tag.valid & {tag.valid[Max-2:0], 1'b1};
    tag_d  = tag;
    if (op_q != kpio_pkg::OpLine) begin
      tag_d = '0;
    end else if (expire_q ? tag.hole : fails) begin
      // A hole that closed while its time-out was on its way here fails nobody.
      tag_d      = '0;
      tag_d.dead = 1'b1;
    end else if (expire_q) begin
      tag_d = tag;
    end else if (complete_q) begin
      tag_d.overtaken = tag.overtaken | older;
      for (int i = 0; i < int'(Max); i++) begin
        if (behind[i]) begin
          tag_d.valid[i]     = (i < int'(Max) - 1) ? tag.valid[(i+1) % Max] : 1'b0;
          tag_d.overtaken[i] = tag.overtaken[(i+1) % Max];
          tag_d.slot[i]      = tag.slot[(i+1) % Max];
          tag_d.line[i]      = tag.line[(i+1) % Max];
        end
        if (found_q && slot_q == 4'(i)) tag_d.used[i] = 1'b0;
      end
    end else if (!found_q) begin
      tag_d.valid = tag.valid | insert;
      for (int i = 0; i < int'(Max); i++) begin
        if (insert[i]) begin
          tag_d.overtaken[i] = 1'b0;
          tag_d.slot[i]      = slot_q;
          tag_d.line[i]      = line_q;
        end
        if (slot_q == 4'(i)) tag_d.used[i] = 1'b1;
      end
    end
    has_hole   = tag_d.valid[1] || (tag_d.valid[0] && tag_d.overtaken[0]);
    tag_d.hole = has_hole;
  end

  // When a hole that begins now will have stood too long: 12 bits of the sum a step, which keeps the carry short.
  assign {carry, sum, unused_carry} = {1'b0, now_q[11:0], 1'b1} + {1'b0, timeout_q[11:0], carry_q};

  assign begins_hole = state_q == StResolve && !empty_q && has_hole && !tag.hole;

  always_comb begin
    tag_we   = 1'b0;
    // The step behind StResolve, when the deadline is whole.
    hole_set = hole_set_q;
    if (state_q == StResolve && !empty_q) begin
      tag_we   = 1'b1;
    end else if (valid_q && state_q == StReady && !piece_q) begin
      // A start, a stop and a time-out forget the pieces. While they wait to go on they do it again.
      tag_we   = 1'b1;
      hole_set = 1'b1;
    end
  end

  assign count_holes_o              = begins_hole;
  assign count_split_lines_o        = state_q == StEmit && out_ready_i && !fails && !whole_q;
  assign count_quarantined_writes_o =
      valid_q && state_q == StReady && advance && piece_q && drops;

  always_comb begin
    state_d = state_q;
    valid_d = valid_q;
    unique case (state_q)
      StReady:   if (valid_q && is_slow) state_d = StFind;
      StFind:    state_d = StRead;
      StRead:    state_d = StMerge;
      StMerge:   state_d = StResolve;
      StResolve: state_d = (!empty_q && (fails || complete_q)) ? StEmit : StDone;
      default:   state_d = state_q;
    endcase
    if (advance) begin
      state_d = StReady;
      valid_d = in_valid_i || due_valid;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q     <= StReady;
      valid_q     <= 1'b0;
      hole_set_q  <= 1'b0;
      set_valid_q <= 1'b0;
      due_taken_q <= 1'b0;
    end else begin
      state_q     <= state_d;
      valid_q     <= valid_d;
      set_valid_q <= hole_set;
      due_taken_q <= take_due;
      hole_set_q  <= state_q == StResolve && !empty_q && has_hole != tag.hole;
    end
    fresh_q  <= advance;
    tag_q    <= tag;
    halted_q <= halted;
    if (advance) begin
      expire_q <= due_valid;
      op_q     <= due_valid ? kpio_pkg::OpLine : in_op_i;
      piece_q  <= !due_valid && in_op_i == kpio_pkg::OpLine;
      queue_q  <= table_queue;
      line_q   <= in_line_i;
      data_q   <= in_data_i;
      be_q     <= in_be_i;
      whole_q  <= in_whole_i;
    end
    if (state_q == StReady) begin
      match_q    <= match;
      now_q      <= now_ns_i;
      timeout_q  <= timeout;
      carry_q    <= 1'b0;
      has_timeout_q <= timeout != '0;
    end else if (state_q != StEmit && state_q != StDone) begin
      // Four steps from StFind on, and the sum is whole.
      now_q      <= now_q >> 12;
      timeout_q  <= timeout_q >> 12;
      deadline_q <= {sum, deadline_q[47:12]};
      carry_q    <= carry;
    end
    hole_armed_q   <= begins_hole && has_timeout_q;
    set_queue_q    <= queue_q;
    set_armed_q    <= hole_armed_q && hole_set_q;
    set_deadline_q <= deadline_q;
    if (state_q == StFind) begin
      found_q    <= match_q != '0;
      slot_q     <= (match_q != '0) ? found_slot : free_slot;
      no_room_q  <= match_q == '0 && tag.valid[Max-1];
      empty_q    <= be_q == '0;
    end
    if (state_q == StMerge) begin
      clobber_q         <= (old_be & be_q) != '0;
      complete_q        <= (old_be | be_q) == '1;
      mask_q            <= old_be | be_q;
      for (int i = 0; i < 64; i++) merged_q[8*i+:8] <= be_q[i] ? data_q[8*i+:8] : stored_data[8*i+:8];
    end
  end

  if (NumQueues < 1 || NumQueues > 1024) begin : g_bad_queues
    $fatal(1, "line_merge: NumQueues must be 1 to 1024");
  end
  if (LineW < 1 || LineW > 18) begin : g_bad_line
    $fatal(1, "line_merge: LineW must be 1 to 18: a window has 2 to 2^18 lines");
  end

`ifndef SYNTHESIS
  logic              wait_q;
  kpio_pkg::op_e     wait_op_q;
  logic [QueueW-1:0] wait_queue_q;
  logic [511:0]      wait_data_q;

  always_ff @(posedge clk_i) begin
    wait_q       <= rst_ni && out_valid_o && !out_ready_i
                 && !(state_q == StReady && op_q == kpio_pkg::OpLine);
    wait_op_q    <= out_op_o;
    wait_queue_q <= out_queue_o;
    wait_data_q  <= out_data_o;
    if (rst_ni) begin
      // What waits stands still. (A line in its first cycles may still be dropped, when its queue is halted.)
      if (wait_q) begin
        assert (out_valid_o && out_op_o == wait_op_q && out_queue_o == wait_queue_q);
        assert (out_op_o != kpio_pkg::OpLine || out_data_o == wait_data_q);
      end
      // The entries that are there are the lowest ones, and as many slots are in use.
      if (tag_we) begin
        assert ((tag_d.valid & (tag_d.valid + 1'b1)) == '0);
        assert ($countones(tag_d.valid) == $countones(tag_d.used));
      end
      assert (!(in_valid_i && in_op_i == kpio_pkg::OpFail));
      assert (!in_valid_i || in_op_i != kpio_pkg::OpLine || in_whole_i == (in_be_i == '1));
    end
  end
`endif

endmodule

`default_nettype wire

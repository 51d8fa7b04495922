// The life of the queues of the mmio engine: starting, stopping, and what a failed queue leaves behind.
//
// It works while the reorder unit stands still and is empty, which costs the other queues a few cycles. What it asks of
// the reader is a turn like any other. A queue that failed keeps its complete lines; its incomplete ones are given back.
// A queue that is stopped keeps nothing.
//
// Guarantees
//   - A start or stop that was taken ends; `busy_o` is high until then. Requests are not taken while it is high.
//   - With credits (`backpressure` off) a queue starts only if a context and a window of pool lines can be set aside
//     for it; so such a queue never lacks either (docs/design.md, decision 4).
//   - Every line and context of a queue that stopped is free again, each once; those of a failed one too, but for what
//     is complete and the line in front of it. Nothing of another queue is given back (nic/formal/owners_proof.sv).
// Limits: the reorder unit stands for 2 x ring + NumContexts + 12 cycles at most in a stop or after a failure, for 12 in
// a start, and in each until the reader has a cycle in which it gives nothing back; not while it waits for a turn.
// Cost: five tables of NumQueues entries, one of NumContexts. Twin: nic/model/src/mmio/mod.rs (start, stop, quarantine).

`default_nettype none

module queue_control #(
  parameter int unsigned NumQueues = 64,
  parameter int unsigned LineW = 6,
  parameter int unsigned RingW = 5,
  parameter int unsigned NumContexts = 16,
  parameter int unsigned PtrW = 11,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned ContextW = $clog2(NumContexts),
  localparam int unsigned PosW = LineW + 2,
  localparam int unsigned NearW = RingW + 4,
  localparam int unsigned RingLines = 1 << RingW
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // Straps: lines of every window less 1, lines of a ring less 1, pool lines, contexts.
  input  logic [LineW-1:0]    window_mask_i,
  input  logic [RingW-1:0]    ring_mask_i,
  input  logic [15:0]         pool_lines_i,
  input  logic [15:0]         contexts_i,

  // Set-up.
  input  logic                start_valid_i,
  input  logic [QueueW-1:0]   start_queue_i,
  // Of the settings, what is this engine's.
  input  logic                start_credits_i,
  input  logic [7:0]          start_epoch_i,
  input  logic [7:0]          start_weight_i,
  input  logic [3:0]          start_class_i,
  input  logic [63:0]         start_timeout_ns_i,
  input  logic [15:0]         start_cut_through_lines_i,
  input  logic                stop_valid_i,
  input  logic [QueueW-1:0]   stop_queue_i,
  output logic                busy_o,
  output logic                is_idle_o,

  // A queue failed: in the reorder unit (at once), in the reader, by a time-out.
  input  logic                unit_failed_valid_i,
  input  logic [QueueW-1:0]   unit_failed_queue_i,
  input  logic [3:0]          unit_failed_cause_i,
  input  logic                reader_failed_valid_i,
  input  logic [QueueW-1:0]   reader_failed_queue_i,
  input  logic [3:0]          reader_failed_cause_i,
  input  logic                hole_failed_valid_i,
  output logic                hole_failed_ready_o,
  input  logic [QueueW-1:0]   hole_failed_queue_i,
  output logic                failed_valid_o,
  input  logic                failed_ready_i,
  output logic [QueueW-1:0]   failed_queue_o,
  output logic [3:0]          failed_cause_o,

  // The reorder unit.
  output logic                hold_o,
  input  logic                unit_empty_i,
  input  logic                quiet_i,
  output logic                active_we_o,
  output logic [QueueW-1:0]   active_queue_o,
  output logic                active_value_o,
  output logic                begin_valid_o,
  output logic [QueueW-1:0]   begin_queue_o,
  // The queue that is to start, and, a cycle later, whether a line of its last life still waits for the wire: it would be
  // counted in the new one.
  output logic [QueueW-1:0]   wanted_queue_o,
  input  logic                wanted_held_i,
  output logic [PtrW-1:0]     begin_tail_o,
  output logic                begin_shared_o,
  output logic [63:0]         begin_timeout_ns_o,
  output logic [ContextW-1:0] look_context_o,
  output logic [RingW-1:0]    look_slot_o,
  input  logic [PtrW-1:0]     look_line_i,
  input  logic [RingLines-1:0] look_marks_i,
  output logic                look_clear_o,
  input  logic                frontier_we_i,
  input  logic [QueueW-1:0]   frontier_queue_i,
  input  logic                frontier_turn_i,
  input  logic [PosW-1:0]     frontier_i,

  // Contexts: who has them.
  input  logic                context_taken_i,
  input  logic [ContextW-1:0] context_taken_name_i,
  input  logic [QueueW-1:0]   context_taken_queue_i,
  input  logic                context_taken_shared_i,
  input  logic [PosW-1:0]     context_taken_base_i,
  input  logic                context_taken_turn_i,
  input  logic                context_released_i,
  input  logic [ContextW-1:0] context_released_name_i,
  input  logic                context_released_shared_i,
  output logic                context_give_o,
  output logic [ContextW-1:0] context_give_name_o,
  output logic                shared_context_o,

  // Pool lines: one for the start of a queue, those given back here, and how many nobody reserved.
  input  logic                line_valid_i,
  input  logic [PtrW-1:0]     line_name_i,
  output logic                line_take_o,
  output logic                line_give_o,
  output logic [PtrW-1:0]     line_give_name_o,
  input  logic                line_give_ready_i,
  input  logic                shared_take_i,
  input  logic [RingW:0]      shared_lines_i,
  // Lines that left their queue: one that is dropped, those of a message that is gone.
  input  logic                dropped_valid_i,
  input  logic [QueueW-1:0]   dropped_queue_i,
  input  logic                gone_valid_i,
  input  logic [QueueW-1:0]   gone_queue_i,
  input  logic [LineW:0]      gone_lines_i,
  // What can be taken at once (more may be on its way there), and whether there is nothing left.
  output logic signed [NearW-1:0] shared_near_o,
  output logic                shared_moving_o,
  output logic                shared_none_o,
  // Some queue draws on what nobody reserved.
  output logic                has_shared_o,

  // The reader.
  output logic                set_valid_o,
  output logic [QueueW-1:0]   set_queue_o,
  output logic [7:0]          set_epoch_o,
  output logic [7:0]          set_weight_o,
  output logic [3:0]          set_class_o,
  output logic                set_closing_o,
  output logic                set_dropping_o,
  output logic                set_early_o,
  output logic [LineW-1:0]    set_early_more_o,
  output logic                nudge_valid_o,
  output logic [QueueW-1:0]   nudge_queue_o,
  output logic [PosW-1:0]     nudge_frontier_o,
  input  logic                emptied_valid_i,
  input  logic [QueueW-1:0]   emptied_queue_i,
  input  logic [PtrW-1:0]     emptied_tail_i,

  output logic                count_no_context_o,
  output logic                count_no_pool_o
);

  typedef enum logic [3:0] {
    Sweep, Idle, StartHold, StartLook, StartGo, Quiesce, FindContext, LookContext, WalkContext, WalkGive, EndContext,
    Set, Nudge, Await, GiveTail, Settle
  } state_e;
  state_e state_q, state_d;

  // One index goes over queues, contexts and slots.
  localparam int unsigned MostW = (QueueW > ContextW) ? QueueW : ContextW;
  localparam int unsigned SweepW = ((RingW > MostW) ? RingW : MostW) + 1;

  // What a queue is: started, failed (its cause was told), with its window and context set aside, and its set-up.
  typedef struct packed {
    logic       started, failed, reserved;
    logic [7:0] epoch, weight;
    logic [3:0] priority_class;
  } queue_t;
  queue_t            queue_rd, queue_wr, job_q, job_d;
  logic              queue_we;
  logic [QueueW-1:0] queue_waddr;

  logic [QueueW-1:0]   work_q, work_d;
  logic                is_stop_q, is_stop_d;
  logic [SweepW-1:0]   index_q, index_d;
  logic [PtrW-1:0]     tail_q, tail_d;
  logic                wants_stop_q, wants_start_q;
  logic [QueueW-1:0]   stop_queue_q, start_queue_q;
  // What of the settings is this engine's.
  queue_t              wanted_q;
  logic [63:0]         timeout_ns_q;
  // Lines behind a message's first one that must be there before its frame may begin, 3 at least; a window has room for
  // so many, or it never begins early.
  logic                early_q;
  logic [15:0]         early_more;
  logic [LineW-1:0]    early_more_q;
  logic                take_stop, take_start, take_fault;

  table_ram #(.Width($bits(queue_t)), .Depth(NumQueues)) u_queue (
    .clk_i, .we_i(queue_we), .waddr_i(queue_waddr), .wdata_i(queue_wr), .raddr_i(work_q), .rdata_o(queue_rd)
  );

  // ---------------------------------------------------------------------------------------------- failures
  // Each place that finds failures tells a queue's first one, or a few; they are worked through one by one.
  typedef struct packed {
    logic [QueueW-1:0] queue_index;
    logic [3:0]        cause;
  } fault_t;
  localparam int unsigned FaultPlaces = (NumQueues < 4) ? 8 : 2 * (1 << $clog2(NumQueues));
  localparam int unsigned FaultDepth = (FaultPlaces > 1024) ? 1024 : FaultPlaces;
  fault_t unit_fault, reader_fault, fault, unit_failed_q;
  logic   unit_failed_valid_q;
  logic   unit_fault_valid, unit_fault_ready, reader_fault_valid, reader_fault_ready, fault_valid;
  logic   unit_fault_room, reader_fault_room;

  fifo #(.Width($bits(fault_t)), .Depth(FaultDepth)) u_unit_faults (
    .clk_i, .rst_ni, .push_valid_i(unit_failed_valid_q), .push_ready_o(unit_fault_room),
    .push_data_i(unit_failed_q), .pop_valid_o(unit_fault_valid),
    .pop_ready_i(unit_fault_ready), .pop_data_o(unit_fault), .count_o()
  );
  fifo #(.Width($bits(fault_t)), .Depth(FaultDepth)) u_reader_faults (
    .clk_i, .rst_ni, .push_valid_i(reader_failed_valid_i), .push_ready_o(reader_fault_room),
    .push_data_i({reader_failed_queue_i, reader_failed_cause_i}), .pop_valid_o(reader_fault_valid),
    .pop_ready_i(reader_fault_ready), .pop_data_o(reader_fault), .count_o()
  );
  assign fault_valid = unit_fault_valid || reader_fault_valid || hole_failed_valid_i;
  always_comb begin
    fault = '{queue_index: hole_failed_queue_i, cause: nic_pkg::QueueStatusCauseHoleTimeout};
    if (reader_fault_valid) fault = reader_fault;
    if (unit_fault_valid)   fault = unit_fault;
  end
  assign unit_fault_ready    = take_fault;
  assign reader_fault_ready  = take_fault && !unit_fault_valid;
  assign hole_failed_ready_o = take_fault && !unit_fault_valid && !reader_fault_valid;

  // ---------------------------------------------------------------------------------------------- contexts and lines
  logic [ContextW-1:0] context_here, found_q;
  logic                is_owned, context_back, reserve, unreserve, was_shared, lacks_context, lacks_pool;
  logic [15:0]         shared_free;

  assign context_here = index_q[ContextW-1:0];
  assign context_back = state_q == EndContext;
  assign was_shared   = !job_q.reserved;

  context_account #(.NumQueues(NumQueues), .NumContexts(NumContexts)) u_contexts (
    .clk_i, .rst_ni, .contexts_i,
    .clear_valid_i(state_q == Sweep && index_q < SweepW'(NumContexts)), .clear_name_i(context_here),
    .taken_i(context_taken_i), .taken_name_i(context_taken_name_i), .taken_queue_i(context_taken_queue_i),
    .taken_shared_i(context_taken_shared_i), .released_i(context_released_i),
    .released_name_i(context_released_name_i), .released_shared_i(context_released_shared_i),
    .shared_o(shared_context_o), .reserve_i(reserve), .unreserve_i(unreserve), .give_i(context_back),
    .give_name_i(found_q), .give_shared_i(was_shared), .has_none_o(lacks_context),
    .look_name_i(context_here), .look_queue_i(work_q), .is_owned_o(is_owned)
  );

  // A queue that lacked lines has taken them all the same, until the reader drops them.
  pool_account #(.NumQueues(NumQueues), .LineW(LineW), .RingW(RingW)) u_lines (
    .clk_i, .rst_ni, .pool_lines_i, .window_mask_i, .begin_valid_i(begin_valid_o), .begin_queue_i(begin_queue_o),
    .begin_shared_i(begin_shared_o), .reserve_i(reserve), .unreserve_i(unreserve),
    .take_valid_i(shared_take_i), .take_lines_i(shared_lines_i),
    .dropped_valid_i, .dropped_queue_i, .gone_valid_i, .gone_queue_i, .gone_lines_i,
    .near_o(shared_near_o), .is_moving_o(shared_moving_o), .free_o(shared_free), .lacks_window_o(lacks_pool)
  );

  // Queues that run without a reservation.
  logic [QueueW:0] sharing_q;
  assign has_shared_o  = sharing_q != '0;
  assign shared_none_o = shared_free == '0;

  // ---------------------------------------------------------------------------------------------- the frontier
  logic [PosW-1:0] frontier;
  logic            frontier_turn;
  table_ram #(.Width(PosW + 1), .Depth(NumQueues)) u_frontier (
    .clk_i, .we_i(frontier_we_i), .waddr_i(frontier_queue_i), .wdata_i({frontier_turn_i, frontier_i}),
    .raddr_i(work_q), .rdata_o({frontier_turn, frontier})
  );

  // Where each context was taken. What it holds lies from there on until a piece of its own has moved the frontier: a
  // queue that fails may leave a context beyond its frontier, with lines between them that never came.
  (* ram_style = "distributed" *)
  logic [PosW:0]   opened [NumContexts];
  logic            opened_turn_q;
  logic [PosW-1:0] opened_base_q, first_held;
  always_ff @(posedge clk_i) begin
    if (context_taken_i) opened[context_taken_name_i] <= {context_taken_turn_i, context_taken_base_i};
  end
  assign first_held = (frontier_turn == opened_turn_q) ? frontier : opened_base_q;

  // ---------------------------------------------------------------------------------------------- one job after the
  // other
  // A context's lines that are held, those of the slots walked over shifted out. The lap in which a slot comes next,
  // seen from the first line that can be held, is the mark that a held line bears.
  logic [RingLines-1:0] held_q, next_laps;
  logic [RingW-1:0]     first_slot;
  logic                 is_last_slot;
  logic [PosW-1:0]      lap_bit;

  assign lap_bit       = PosW'(ring_mask_i) + 1'b1;
  assign first_slot    = first_held[RingW-1:0] & ring_mask_i;
  assign next_laps     = {RingLines{(first_held & lap_bit) != '0}} ^ ~({RingLines{1'b1}} << first_slot);
  assign is_last_slot  = index_q[RingW-1:0] == ring_mask_i;

  assign look_context_o      = found_q;
  assign look_slot_o         = index_q[RingW-1:0];
  assign look_clear_o        = context_back;
  assign context_give_o      = context_back;
  assign context_give_name_o = found_q;
  assign busy_o              = state_q == Sweep || wants_stop_q || wants_start_q || (state_q != Idle && is_stop_q)
                               || state_q == StartHold || state_q == StartLook || state_q == StartGo;

  assign is_idle_o           = state_q == Idle && !wants_stop_q && !wants_start_q && !fault_valid && !failed_valid_o
                               && !unit_failed_valid_i && !unit_failed_valid_q && !reader_failed_valid_i;

  logic [3:0] wait_q, wait_d;
  logic       can_tell, walks;

  assign can_tell      = !failed_valid_o || failed_ready_i;

  logic              tell;
  logic [3:0]        tell_cause, cause_q;
  logic [ContextW-1:0] asked_q;

  always_comb begin
    state_d    = state_q;
    work_d     = work_q;
    is_stop_d  = is_stop_q;
    index_d    = index_q;
    tail_d     = tail_q;
    wait_d     = wait_q;
    job_d      = job_q;
    take_stop  = 1'b0;
    take_start = 1'b0;
    take_fault = 1'b0;
    queue_we   = 1'b0;
    queue_waddr = work_q;
    queue_wr   = job_q;
    reserve    = 1'b0;
    unreserve  = 1'b0;
    hold_o     = 1'b1;
    line_take_o   = 1'b0;
    line_give_o   = 1'b0;
    line_give_name_o = look_line_i;
    begin_valid_o = 1'b0;
    set_valid_o   = 1'b0;
    nudge_valid_o = 1'b0;
    tell       = 1'b0;
    walks      = 1'b0;
    tell_cause = cause_q;
    count_no_context_o = 1'b0;
    count_no_pool_o    = 1'b0;
    active_we_o    = 1'b0;
    active_queue_o = work_q;
    active_value_o = 1'b0;

    unique case (state_q)
      Sweep: begin
        // Tables have no reset of their own: after one, no queue takes writes until it is started.
        active_we_o    = index_q < SweepW'(NumQueues);
        active_queue_o = index_q[QueueW-1:0];
        queue_we       = active_we_o;
        queue_waddr    = index_q[QueueW-1:0];
        queue_wr       = '0;
        index_d        = index_q + 1'b1;
        if (index_q >= SweepW'(NumQueues) && index_q >= SweepW'(NumContexts)) state_d = Idle;
      end

      Idle: begin
        hold_o = 1'b0;
        wait_d = '0;
        if (wants_stop_q) begin
          take_stop = 1'b1;
          work_d    = stop_queue_q;
          is_stop_d = 1'b1;
          state_d   = Quiesce;
        end else if (fault_valid && can_tell) begin
          // Taken at once: another one may stand in front of it later.
          take_fault = 1'b1;
          work_d     = fault.queue_index;
          is_stop_d  = 1'b0;
          state_d    = Quiesce;
        end else if (wants_start_q && !wanted_held_i && !fault_valid) begin
          // A failure that waits to be told may be of the queue's last life.
          take_start = 1'b1;
          work_d     = start_queue_q;
          state_d    = StartHold;
        end
      end

      // ------------------------------------------------------------ start
      StartHold: begin
        // The unit empties itself, and some cycles later the accounts are right.
        wait_d = (wait_q == 4'd8 && !unit_empty_i) ? wait_q : wait_q + 1'b1;
        if (wait_q == 4'd13) state_d = StartLook;
      end

      StartLook: begin
        job_d = wanted_q;
        if (wanted_q.reserved && (lacks_context || lacks_pool)) begin
          if (can_tell) begin
            tell               = 1'b1;
            tell_cause         = lacks_context ? nic_pkg::QueueStatusCauseNoContext
                                               : nic_pkg::QueueStatusCauseNoPool;
            count_no_context_o = lacks_context;
            count_no_pool_o    = !lacks_context;
            state_d            = Idle;
          end
        end else if (line_valid_i) begin
          line_take_o = 1'b1;
          tail_d      = line_name_i;
          reserve     = wanted_q.reserved;
          state_d     = StartGo;
        end
      end

      StartGo: begin
        // In one quiet cycle every table of the queue is set.
        if (quiet_i && !unit_failed_valid_i) begin
          begin_valid_o  = 1'b1;
          set_valid_o    = 1'b1;
          queue_we       = 1'b1;
          active_we_o    = 1'b1;
          active_value_o = 1'b1;
          state_d        = Settle;
        end
      end

      // ------------------------------------------------------------ stop, or what a failure leaves
      Quiesce: begin
        job_d  = queue_rd;
        wait_d = (wait_q == 4'd10) ? wait_q : wait_q + 1'b1;
        // Told for several cycles, for the unit's own failures go first.
        if (wait_q >= 4'd1) active_we_o = queue_rd.started;
        if (wait_q == 4'd1 && (!queue_rd.started || (!is_stop_q && queue_rd.failed))) begin
          // Nothing is there, or this failure is not the first one that is told.
          is_stop_d = 1'b0;
          state_d   = Idle;
        end else if (wait_q == 4'd10 && unit_empty_i) begin
          tell    = !is_stop_q;
          index_d = '0;
          state_d = FindContext;
        end
      end

      FindContext: begin
        // What is said of a context is there a cycle after it was asked.
        index_d = index_q + 1'b1;
        if (index_q != '0 && is_owned) state_d = LookContext;
        else if (index_q == SweepW'(NumContexts)) state_d = Set;
      end

      LookContext: begin
        index_d = '0;
        state_d = WalkContext;
      end

      WalkContext: begin
        // The line's name is there in the next cycle.
        if (held_q[0]) state_d = WalkGive;
        else if (is_last_slot) state_d = EndContext;
        else begin
          index_d = index_q + 1'b1;
          walks   = 1'b1;
        end
      end

      WalkGive: begin
        line_give_o = 1'b1;
        if (line_give_ready_i) begin
          index_d = index_q + 1'b1;
          walks   = 1'b1;
          state_d = is_last_slot ? EndContext : WalkContext;
        end
      end

      EndContext: state_d = Set;

      Set: begin
        set_valid_o = 1'b1;
        queue_we    = 1'b1;
        queue_wr    = job_q;
        queue_wr.failed = 1'b1;
        state_d     = Nudge;
      end

      Nudge: begin
        // The reader gives the queue a turn, in which it drops what there is to drop.
        if (quiet_i) begin
          nudge_valid_o = 1'b1;
          state_d       = Await;
        end
      end

      Await: begin
        // A failed queue is left to the reader: what is complete in it may have to wait for the wire.
        hold_o = 1'b0;
        tail_d = emptied_tail_i;
        if (!is_stop_q) state_d = Idle;
        else if (emptied_valid_i && emptied_queue_i == work_q) state_d = GiveTail;
      end

      GiveTail: begin
        hold_o           = 1'b0;
        line_give_o      = 1'b1;
        line_give_name_o = tail_q;
        if (line_give_ready_i) begin
          unreserve = job_q.reserved;
          queue_we  = 1'b1;
          queue_wr  = '0;
          is_stop_d = 1'b0;
          state_d   = Idle;
        end
      end

      Settle: state_d = Idle;

      default: state_d = Sweep;
    endcase
  end

  assign begin_queue_o    = work_q;
  assign wanted_queue_o   = start_queue_q;
  assign begin_tail_o     = tail_q;
  assign begin_shared_o     = !job_q.reserved;
  assign begin_timeout_ns_o = timeout_ns_q;
  assign set_queue_o      = work_q;
  assign set_epoch_o      = job_q.epoch;
  assign set_weight_o     = job_q.weight;
  assign set_class_o      = job_q.priority_class;
  // Of a queue that takes no more writes nothing begins early.
  assign set_early_o      = early_q && begin_valid_o;
  assign set_early_more_o = early_more_q;
  assign early_more       = (start_cut_through_lines_i < 16'd4) ? 16'd3 : start_cut_through_lines_i - 16'd1;
  assign set_closing_o    = state_q == Set;
  assign set_dropping_o   = state_q == Set && is_stop_q;
  assign nudge_queue_o    = work_q;
  assign nudge_frontier_o = frontier;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      state_q         <= Sweep;
      index_q         <= '0;
      is_stop_q       <= 1'b0;
      wants_stop_q    <= 1'b0;
      wants_start_q   <= 1'b0;
      failed_valid_o  <= 1'b0;
      sharing_q       <= '0;
      unit_failed_valid_q <= 1'b0;
      wait_q          <= '0;
      work_q          <= '0;
    end else begin
      state_q         <= state_d;
      index_q         <= index_d;
      is_stop_q       <= is_stop_d;
      wants_stop_q    <= (wants_stop_q && !take_stop) || stop_valid_i;
      wants_start_q   <= (wants_start_q && !take_start) || start_valid_i;
      failed_valid_o  <= tell || (failed_valid_o && !failed_ready_i);
      sharing_q       <= sharing_q + (QueueW + 1)'(begin_valid_o && begin_shared_o)
                         - (QueueW + 1)'(state_q == GiveTail && line_give_ready_i && was_shared);
      unit_failed_valid_q <= unit_failed_valid_i;
      wait_q          <= wait_d;
      work_q          <= work_d;
    end
    tail_q       <= tail_d;
    job_q        <= job_d;
    asked_q      <= context_here;
    if (state_q == FindContext) begin
      found_q <= asked_q;
      {opened_turn_q, opened_base_q} <= opened[asked_q];
    end
    if (state_q == LookContext) held_q <= ~(look_marks_i ^ next_laps);
    else if (walks) held_q <= held_q >> 1;
    if (state_q == Idle) cause_q <= fault.cause;
    unit_failed_q <= '{queue_index: unit_failed_queue_i, cause: unit_failed_cause_i};
    if (stop_valid_i) stop_queue_q <= stop_queue_i;
    if (start_valid_i) begin
      start_queue_q <= start_queue_i;
      timeout_ns_q  <= start_timeout_ns_i;
      early_q       <= start_cut_through_lines_i != '0 && early_more <= 16'(window_mask_i);
      early_more_q  <= early_more[LineW-1:0];
      wanted_q      <= '{
        started: 1'b1, failed: 1'b0, reserved: start_credits_i, epoch: start_epoch_i,
        weight: start_weight_i, priority_class: start_class_i
      };
    end
    if (tell) begin
      failed_queue_o <= work_q;
      failed_cause_o <= tell_cause;
    end
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_not_while_busy   : assert (!((start_valid_i || stop_valid_i) && busy_o));
      a_room_for_faults  : assert (!unit_failed_valid_q || unit_fault_room);
      a_room_for_faults2 : assert (!reader_failed_valid_i || reader_fault_room);
    end
  end
`endif

endmodule

`default_nettype wire

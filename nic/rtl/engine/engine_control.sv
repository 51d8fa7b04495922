// The life of an engine's queues: start, stop and failure, one at a time, while traffic of the others goes
// on.
//
// A start checks the settings, then writes them while doorbells and turns pause for a few cycles. A stop
// makes the queue inactive in the same way, waits until its reads are answered, lets its frames go and then
// its completions: when it is done nothing of the queue reads or writes host memory any more. A failed queue
// only becomes inactive; its frames that are complete still go out.
//
// Guarantees
//   - Every start of a queue that is the engine's ends active or with `failed_*`. A queue fails at most once
//     in a life.
//   - busy_o from the cycle after the pulse until it is done. Starts and stops of queues that are not this
//     engine's end at once.
// Limits
//   - failed_ready_i must not wait for busy_o to fall: a start that fails is done when the failure was taken.
// Latency: start 20 cycles; stop the answers under way at that time, then Frames and 20 cycles more.
// Used by dma.sv and rx.sv. Cost: NumQueues x 6 bits of RAM, 800 registers.
// Twin: Engine::{start, stop} in nic/model/src/descriptor/mod.rs and nic/model/src/rx/mod.rs.

`default_nettype none

module engine_control #(
  // Queues, a power of two from 1 to 1024.
  parameter int unsigned NumQueues = 64,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  // Set-up from the register block, a pulse while busy_o is low.
  output logic              busy_o,
  input  logic              start_valid_i,
  input  logic [QueueW-1:0] start_queue_i,
  input  nic_rtl_pkg::queue_settings_t start_settings_i,
  input  logic              stop_valid_i,
  input  logic [QueueW-1:0] stop_queue_i,

  output logic              failed_valid_o,
  input  logic              failed_ready_i,
  output logic [QueueW-1:0] failed_queue_o,
  output logic [3:0]        failed_cause_o,
  output logic              count_bad_lengths_o,

  // A queue cannot go on, for example because its descriptors could not be read; the cause it fails with. Of several in
  // one life any is told.
  input  logic              error_valid_i,
  input  logic [QueueW-1:0] error_queue_i,
  input  logic [3:0]        error_cause_i,

  // What the engine says of setup_settings_o, one cycle later: whether the queue is its own, and the cause
  // for which it does not start (none: it starts).
  input  logic              check_ours_i,
  input  logic [3:0]        check_cause_i,

  // The parts of the engine. parts_busy_i: they cannot be used yet after reset.
  input  logic              parts_busy_i,
  output logic              hold_o,
  input  logic              idle_i,
  output logic              setup_write_o,
  output logic [QueueW-1:0] setup_queue_o,
  output logic              setup_active_o,
  output nic_rtl_pkg::queue_settings_t setup_settings_o,
  output logic              kill_asking_o,
  input  logic              asking_busy_i,
  output logic              drain_o,
  input  logic              drained_i,
  output logic              kill_frames_o,
  input  logic              frames_busy_i,
  output logic              completion_start_o,
  output logic              completion_stop_o,
  input  logic              completion_busy_i
);

  localparam int unsigned Entries = 1 << QueueW;
  localparam logic [3:0] CauseNone      = nic_pkg::QueueStatusCauseNone;
  localparam logic [3:0] CauseBadLength = nic_pkg::QueueStatusCauseBadLength;

  typedef enum logic [3:0] {
    CtlBoot, CtlIdle, CtlRead, CtlLook, CtlHold, CtlWrite, CtlCompletion, CtlAsking, CtlDrain, CtlDrained,
    CtlFrames, CtlEnd, CtlRefuse
  } ctl_e;
  typedef enum logic [1:0] {JobStart, JobStop, JobFail} job_e;
  // Known: started and not stopped. Active: it may ask for something.
  typedef struct packed {
    logic known;
    logic active;
  } state_t;

  ctl_e              ctl_q, ctl_d;
  job_e              job_q, job_d;
  logic              pending_q, pending_d, pending_start_q, pending_start_d;
  logic [QueueW-1:0] pending_queue_q, pending_queue_d, queue_q, queue_d, clear_q;
  nic_rtl_pkg::queue_settings_t settings_q;
  state_t            state, state_new;
  logic              state_write, list_busy, fail_valid, fail_ready;
  logic [QueueW-1:0] fail_queue;
  logic              failed_valid_q, failed_valid_d;
  logic [QueueW-1:0] failed_queue_q, failed_queue_d;
  logic [3:0]        failed_cause_q, failed_cause_d;

  work_list #(.NumQueues(NumQueues)) u_failing (
    .clk_i, .rst_ni, .busy_o(list_busy), .add_valid_i(error_valid_i), .add_queue_i(error_queue_i),
    .take_valid_o(fail_valid), .take_ready_i(fail_ready), .take_queue_o(fail_queue)
  );

  table_ram #(.Width($bits(state_t)), .Depth(Entries)) u_state (
    .clk_i, .we_i(list_busy || state_write), .waddr_i(list_busy ? clear_q : queue_q),
    .wdata_i(list_busy ? '0 : state_new), .raddr_i(queue_q), .rdata_o(state)
  );

  logic [3:0] error_cause;
  table_ram #(.Width(4), .Depth(Entries)) u_causes (
    .clk_i, .we_i(error_valid_i), .waddr_i(error_queue_i), .wdata_i(error_cause_i), .raddr_i(queue_q),
    .rdata_o(error_cause)
  );

  // Failures come first, so that one of a former life is known before the queue starts again.
  assign fail_ready = ctl_q == CtlIdle && !failed_valid_q;

  always_comb begin
    ctl_d              = ctl_q;
    job_d              = job_q;
    queue_d            = queue_q;
    pending_d          = pending_q;
    pending_start_d    = pending_start_q;
    pending_queue_d    = pending_queue_q;
    failed_valid_d     = failed_valid_q && !failed_ready_i;
    failed_queue_d     = failed_queue_q;
    failed_cause_d     = failed_cause_q;
    state_write        = 1'b0;
    state_new          = '0;
    kill_asking_o      = 1'b0;
    drain_o            = 1'b0;
    kill_frames_o      = 1'b0;
    completion_start_o = 1'b0;
    completion_stop_o  = 1'b0;
    count_bad_lengths_o = 1'b0;
    unique case (ctl_q)
      CtlBoot: if (!parts_busy_i && !list_busy) ctl_d = CtlIdle;
      CtlIdle: begin
        if (fail_valid && fail_ready) begin
          ctl_d   = CtlRead;
          job_d   = JobFail;
          queue_d = fail_queue;
        end else if (pending_q && !fail_valid) begin
          ctl_d   = CtlRead;
          job_d   = pending_start_q ? JobStart : JobStop;
          queue_d = pending_queue_q;
        end
      end
      CtlRead: ctl_d = CtlLook;
      CtlLook: begin
        ctl_d = CtlHold;
        unique case (job_q)
          JobStart: if (!check_ours_i) ctl_d = CtlEnd;
                    else if (check_cause_i != CauseNone) ctl_d = CtlRefuse;
          JobStop:  if (!state.known) ctl_d = CtlEnd;
          default:  if (!state.active) ctl_d = CtlIdle;
        endcase
      end
      CtlHold: if (idle_i) ctl_d = CtlWrite;
      CtlWrite: begin
        state_write = 1'b1;
        state_new   = '{known: 1'b1, active: job_q == JobStart};
        unique case (job_q)
          JobStart: begin
            completion_start_o = 1'b1;
            ctl_d = CtlCompletion;
          end
          JobStop: begin
            kill_asking_o = 1'b1;
            ctl_d = CtlAsking;
          end
          default: begin
            failed_valid_d = 1'b1;
            failed_queue_d = queue_q;
            failed_cause_d = error_cause;
            ctl_d = CtlIdle;
          end
        endcase
      end
      CtlAsking: begin
        if (!asking_busy_i) begin
          drain_o = 1'b1;
          ctl_d   = CtlDrain;
        end
      end
      CtlDrain: ctl_d = CtlDrained;
      CtlDrained: begin
        if (drained_i) begin
          kill_frames_o = 1'b1;
          ctl_d = CtlFrames;
        end
      end
      CtlFrames: begin
        if (!frames_busy_i) begin
          completion_stop_o = 1'b1;
          state_write       = 1'b1;
          ctl_d = CtlCompletion;
        end
      end
      CtlCompletion: if (!completion_busy_i) ctl_d = CtlEnd;
      CtlRefuse: begin
        if (!failed_valid_q) begin
          failed_valid_d = 1'b1;
          failed_queue_d = queue_q;
          failed_cause_d = check_cause_i;
          count_bad_lengths_o = check_cause_i == CauseBadLength;
          ctl_d = CtlEnd;
        end
      end
      CtlEnd: begin
        pending_d = 1'b0;
        ctl_d     = CtlIdle;
      end
      default: ctl_d = CtlIdle;
    endcase
    if (start_valid_i || stop_valid_i) begin
      pending_d       = 1'b1;
      pending_start_d = start_valid_i;
      pending_queue_d = start_valid_i ? start_queue_i : stop_queue_i;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      ctl_q          <= CtlBoot;
      pending_q      <= 1'b0;
      failed_valid_q <= 1'b0;
      clear_q        <= '0;
    end else begin
      ctl_q          <= ctl_d;
      pending_q      <= pending_d;
      failed_valid_q <= failed_valid_d;
      clear_q        <= clear_q + QueueW'(list_busy);
    end
    job_q           <= job_d;
    queue_q         <= queue_d;
    pending_start_q <= pending_start_d;
    pending_queue_q <= pending_queue_d;
    failed_queue_q  <= failed_queue_d;
    failed_cause_q  <= failed_cause_d;
    if (start_valid_i) settings_q <= start_settings_i;
  end

  assign busy_o           = pending_q || ctl_q == CtlBoot;
  assign hold_o           = ctl_q == CtlHold || ctl_q == CtlWrite;
  assign setup_write_o    = ctl_q == CtlWrite;
  assign setup_queue_o    = queue_q;
  assign setup_active_o   = job_q == JobStart;
  assign setup_settings_o = settings_q;
  assign failed_valid_o   = failed_valid_q;
  assign failed_queue_o   = failed_queue_q;
  assign failed_cause_o   = failed_cause_q;

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!((start_valid_i || stop_valid_i) && busy_o))
        else $error("engine_control: set-up while busy_o");
      assert (!(start_valid_i && stop_valid_i)) else $error("engine_control: start and stop in one cycle");
      assert (ctl_q != CtlWrite || job_q != JobStart || !state.known)
        else $error("engine_control: queue %0d started twice", queue_q);
    end
  end
`endif

endmodule

`default_nettype wire

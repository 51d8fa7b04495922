// What stands around the reorder unit and control in owners_proof.sv, in place of modules with proofs of their own.
//
// Outputs without a driver may be anything in every cycle (`setundef -anyseq` in owners.sby), so each of these says less
// than the module whose name it has.

`default_nettype none

// Each module has the name of the one it stands for.
// verilog_lint: waive-start module-filename

// Failures that wait in control: any, at any time, of any queue, whether it happened or not.
module fifo #(
  parameter int unsigned Width = 8,
  parameter int unsigned Depth = 4,
  localparam int unsigned CountW = $clog2(Depth + 1)
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic              push_valid_i,
  output logic              push_ready_o,
  input  logic [Width-1:0]  push_data_i,
  output logic              pop_valid_o,
  input  logic              pop_ready_i,
  output logic [Width-1:0]  pop_data_o,
  output logic [CountW-1:0] count_o
);
  assign push_ready_o = 1'b1;
endmodule

// Lines that nobody has reserved: any number (pool_account_proof.sv).
module pool_account #(
  parameter int unsigned NumQueues = 64,
  parameter int unsigned LineW = 6,
  parameter int unsigned RingW = 5,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned NearW = RingW + 4
) (
  input  logic              clk_i,
  input  logic              rst_ni,
  input  logic [15:0]       pool_lines_i,
  input  logic [LineW-1:0]  window_mask_i,
  input  logic              begin_valid_i,
  input  logic [QueueW-1:0] begin_queue_i,
  input  logic              begin_shared_i,
  input  logic              reserve_i,
  input  logic              unreserve_i,
  input  logic              take_valid_i,
  input  logic [RingW:0]    take_lines_i,
  input  logic              dropped_valid_i,
  input  logic [QueueW-1:0] dropped_queue_i,
  input  logic              gone_valid_i,
  input  logic [QueueW-1:0] gone_queue_i,
  input  logic [LineW:0]    gone_lines_i,
  output logic signed [NearW-1:0] near_o,
  output logic              is_moving_o,
  output logic [15:0]       free_o,
  output logic              lacks_window_o
);
endmodule

// Who has which context: as context_account_proof.sv says of it. Whether one is left that nobody reserved: anything.
module context_account #(
  parameter int unsigned NumQueues = 64,
  parameter int unsigned NumContexts = 16,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned ContextW = $clog2(NumContexts)
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [15:0]         contexts_i,
  input  logic                clear_valid_i,
  input  logic [ContextW-1:0] clear_name_i,
  input  logic                taken_i,
  input  logic [ContextW-1:0] taken_name_i,
  input  logic [QueueW-1:0]   taken_queue_i,
  input  logic                taken_shared_i,
  input  logic                released_i,
  input  logic [ContextW-1:0] released_name_i,
  input  logic                released_shared_i,
  output logic                shared_o,
  input  logic                reserve_i,
  input  logic                unreserve_i,
  input  logic                give_i,
  input  logic [ContextW-1:0] give_name_i,
  input  logic                give_shared_i,
  output logic                has_none_o,
  input  logic [ContextW-1:0] look_name_i,
  input  logic [QueueW-1:0]   look_queue_i,
  output logic                is_owned_o
);
  logic [NumContexts-1:0]             owned_q;
  logic [NumContexts-1:0][QueueW-1:0] owner_q;
  always_ff @(posedge clk_i) begin
    if (!rst_ni) owned_q <= '0;
    else begin
      if (taken_i) owned_q[taken_name_i] <= 1'b1;
      if (released_i) owned_q[released_name_i] <= 1'b0;
      if (give_i) owned_q[give_name_i] <= 1'b0;
    end
    if (taken_i) owner_q[taken_name_i] <= taken_queue_i;
    is_owned_o <= owned_q[look_name_i] && owner_q[look_name_i] == look_queue_i;
    // What its proof assumes, and more: nobody takes a context that is out, or gives one back that is not its own.
    if (rst_ni) begin
      a_taken_is_free    : assert (!taken_i || !owned_q[taken_name_i]);
      a_released_is_out  : assert (!released_i || owned_q[released_name_i]);
      a_given_is_out     : assert (!give_i || (owned_q[give_name_i] && owner_q[give_name_i] == look_queue_i));
      a_one_at_a_time    : assert (!(give_i && (released_i || taken_i)));
    end
  end
endmodule

`default_nettype wire

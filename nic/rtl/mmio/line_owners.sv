// Who has which pool line: a check for simulation, no hardware.
//
// The accounts count lines, and each proof covers a few modules. This check follows every name through the whole
// engine: one queue takes it, only pieces of that queue are stored into it, and it comes back once. When no queue is
// started, all names and all contexts are back. It does not check that a store comes before the frontier passes its
// line; owners_proof.sv does.
//
// Cost: none in hardware; in simulation two words a line. Twin: none, for the model has no names.

`default_nettype none

module line_owners #(
  // Queues, 1 to 1024.
  parameter int unsigned NumQueues = 64,
  // Reorder contexts, 2 or more.
  parameter int unsigned NumContexts = 16,
  // Names of lines, 2 to 65536.
  parameter int unsigned Lines = 1024,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned PtrW = $clog2(Lines)
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // A queue starts; one that stops will have given back everything when the engine is idle.
  input  logic                begin_valid_i,
  input  logic [QueueW-1:0]   begin_queue_i,
  input  logic                end_valid_i,
  input  logic [QueueW-1:0]   end_queue_i,
  input  logic                is_idle_i,

  // A line is taken, for the piece in stage 2 of the reorder unit or as the one in front of a queue's first (`tail`).
  input  logic                take_valid_i,
  input  logic [QueueW-1:0]   take_queue_i,
  input  logic                tail_valid_i,
  input  logic [PtrW-1:0]     take_line_i,
  // Bytes of the piece in stage 4 are stored.
  input  logic                store_valid_i,
  input  logic [PtrW-1:0]     store_line_i,
  // A line comes back to the pool; `left`: from the reader, of this queue.
  input  logic                left_valid_i,
  input  logic [QueueW-1:0]   left_queue_i,
  input  logic                give_valid_i,
  input  logic [PtrW-1:0]     give_line_i,

  input  logic [$clog2(Lines+1)-1:0] lines_free_i,
  input  logic [$clog2(NumContexts+1)-1:0] contexts_free_i
);

  if (Lines < 2 || Lines > 65536) begin : g_bad_lines
    $fatal(1, "line_owners: Lines must be 2 to 65536");
  end

`ifndef SYNTHESIS
  // Contexts that stand ready in `arrival`, out of the list of free ones and nobody's.
  localparam int unsigned ReadyContexts = 2;
  // Idle cycles after which what was given back has passed the FIFO in front of the pool and the ready contexts stand
  // there again.
  localparam logic [5:0] CalmCycles = 6'd40;

  // A name is out while it bears the number of this life of the engine: no table of the size of the pool is cleared.
  logic [15:0]          life_q, out [Lines];
  logic [QueueW-1:0]    owner [Lines];
  logic [QueueW-1:0]    queue3_q, queue4_q;
  logic [NumQueues-1:0] started_q;
  logic [5:0]           calm_q;
  logic                 was_reset_q;

  initial begin
    life_q      = '0;
    was_reset_q = 1'b0;
    for (int i = 0; i < int'(Lines); i++) begin
      out[i]   = '0;
      owner[i] = '0;
    end
  end

  always_ff @(posedge clk_i) begin
    was_reset_q <= !rst_ni;
    queue3_q    <= take_queue_i;
    queue4_q    <= queue3_q;
    if (!rst_ni) begin
      started_q <= '0;
      calm_q    <= '0;
      if (!was_reset_q) life_q <= life_q + 1'b1;
    end else begin
      if (end_valid_i) started_q[end_queue_i] <= 1'b0;
      if (begin_valid_i) started_q[begin_queue_i] <= 1'b1;
      if (!is_idle_i || started_q != '0) calm_q <= '0;
      else if (calm_q != CalmCycles) calm_q <= calm_q + 1'b1;
      if (give_valid_i) out[give_line_i] <= '0;
      if (take_valid_i || tail_valid_i) begin
        out[take_line_i]   <= life_q;
        owner[take_line_i] <= tail_valid_i ? begin_queue_i : take_queue_i;
      end
    end
  end

  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_taken_was_free    : assert (!(take_valid_i || tail_valid_i) || out[take_line_i] != life_q);
      a_given_was_out     : assert (!give_valid_i || out[give_line_i] == life_q);
      a_given_by_owner    : assert (!left_valid_i || owner[give_line_i] == left_queue_i);
      a_store_into_own    : assert (!store_valid_i
                                    || (out[store_line_i] == life_q && owner[store_line_i] == queue4_q));
      a_lines_are_back    : assert (calm_q != CalmCycles || int'(lines_free_i) == int'(Lines));
      a_contexts_are_back : assert (calm_q != CalmCycles
                                    || int'(contexts_free_i) + int'(ReadyContexts) == int'(NumContexts));
    end
  end
`else
  logic unused_bits;
  assign unused_bits = ^{
    clk_i, rst_ni, begin_valid_i, begin_queue_i, end_valid_i, end_queue_i, is_idle_i, take_valid_i, take_queue_i,
    tail_valid_i, take_line_i, store_valid_i, store_line_i, left_valid_i, left_queue_i, give_valid_i, give_line_i,
    lines_free_i, contexts_free_i
  };
`endif

endmodule

`default_nettype wire

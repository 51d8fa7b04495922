// Names and sizes that the parts of owners_proof.sv share.

`default_nettype none

package owners_pkg;

  // Control's states (queue_control.sv), in their order.
  typedef enum logic [3:0] {
    Sweep, Idle, StartHold, StartLook, StartGo, Quiesce, FindContext, LookContext, WalkContext, WalkGive, EndContext,
    Set, Nudge, Await, GiveTail, Settle
  } state_e;

  // Where the followed line is: free, with control for a queue's tail, taken by a whole line in order (until stage 5),
  // in a context, or behind the frontier, the reader's.
  typedef enum logic [2:0] {Free, Tail, Fast, Held, Read} where_e;

  localparam int unsigned NumQueues = 2;
  localparam int unsigned RingW = 2;
  localparam int unsigned Ring = 1 << RingW;
  localparam int unsigned NumContexts = 2;
  localparam int unsigned PtrW = 2;
  localparam int unsigned QueueW = 1;
  localparam int unsigned ContextW = 1;
  localparam int unsigned NearW = RingW + 4;
  // Bits of an entry of control's table of queues: started, failed, and what is of no account here.
  localparam int unsigned QueueBits = 23;

  localparam int unsigned LineW = 3;
  localparam int unsigned PosW = LineW + 2;

  // What owners_view.sv sees; there it is said of each.
  typedef struct packed {
    logic [3:0] state;
    logic [3:0] wait_count;
    logic [QueueW-1:0] work;
    logic [ContextW-1:0] found;
    logic [RingW-1:0] walked;
    logic is_stop;
    logic [NumQueues-1:0] started;
    logic [NumQueues-1:0] active;
    logic [NumQueues-1:0] is_alive;
    logic [NumQueues-1:0] own_turn;
    logic [NumQueues-1:0] own_in;
    logic [NumQueues-1:0] own_ret_turn;
    logic [NumQueues-1:0] com_turn;
    logic [NumQueues-1:0] is_ret;
    logic [NumQueues-1:0] is_com;
    logic [NumQueues-1:0] is_in;
    logic [NumQueues-1:0][PosW-1:0] own_front;
    logic [NumQueues-1:0][PosW-1:0] ret_front;
    logic [NumQueues-1:0][PosW-1:0] com_front;
    logic [NumQueues-1:0][PosW-1:0] front;
    logic [NumQueues-1:0][PosW-1:0] base;
    logic [NumQueues-1:0][ContextW-1:0] own_name;
    logic [NumContexts-1:0] owned;
    logic [NumContexts-1:0] opened_turn;
    logic [NumContexts-1:0] is_fresh3;
    logic [NumContexts-1:0] is_fresh;
    logic [NumContexts-1:0][QueueW-1:0] owner;
    logic [NumContexts-1:0][PosW-1:0] opened_base;
    logic [NumContexts-1:0][PosW-1:0] from;
    logic [NumContexts-1:0][Ring-1:0] marks;
    logic [NumContexts-1:0][Ring-1:0] done;
    logic [NumContexts-1:0][Ring-1:0][PosW-1:0] place;
    logic [NumContexts-1:0][Ring-1:0] begun;
    logic [NumContexts-1:0][Ring-1:0] is_done;
    logic [NumContexts-1:0][Ring-1:0] is_full;
    logic [NumContexts-1:0][Ring-1:0] is_followed;
    logic [6:2] valid;
    logic [6:2] placed;
    logic [6:2] fast;
    logic [6:2] fresh;
    logic [6:2] in_ctx;
    logic [6:2] in_fast;
    logic [6:2] turn;
    logic [6:2] took;
    logic [6:2][QueueW-1:0] queue;
    logic [6:2][PosW-1:0] pos;
    logic [6:2][ContextW-1:0] ctx;
    logic [6:2][PtrW-1:0] line;
    logic [5:2][PosW-1:0] seen;
  } view_t;

endpackage

`default_nettype wire

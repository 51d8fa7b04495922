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

endpackage

`default_nettype wire

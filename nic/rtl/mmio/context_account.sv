// Who has which reorder context, and how many nobody has reserved and nobody uses.
//
// The reorder unit takes contexts and releases them; control looks for those of a queue that failed or stops, and gives
// them back for it. A queue with a reservation has one of its own in the count; the others share what is left.
//
// Guarantees
//   - `shared_o` holds for a context that is taken in this cycle: at most as many are out as there are.
//   - What is released can be taken in the next cycle: a queue that gives its own back finds one again. What control
//     gives back, a cycle later.
//   - `is_owned_o` says, a cycle after it is asked, whether the queue has the context.
// Cost: NumContexts x (QueueW + 2) bits of LUTRAM. Twin: ReorderUnit in nic/model/src/mmio/reorder_unit.rs.

`default_nettype none

module context_account #(
  parameter int unsigned NumQueues = 64,
  parameter int unsigned NumContexts = 16,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned ContextW = $clog2(NumContexts)
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  // Strap: contexts, at most NumContexts.
  input  logic [15:0]         contexts_i,

  // After reset: nobody has this one.
  input  logic                clear_valid_i,
  input  logic [ContextW-1:0] clear_name_i,

  // The reorder unit; `shared`: by a queue without a reservation.
  input  logic                taken_i,
  input  logic [ContextW-1:0] taken_name_i,
  input  logic [QueueW-1:0]   taken_queue_i,
  input  logic                taken_shared_i,
  input  logic                released_i,
  input  logic [ContextW-1:0] released_name_i,
  input  logic                released_shared_i,
  output logic                shared_o,

  // Control.
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

  localparam int unsigned CountW = ContextW + 1;

  // A context is out while its two marks differ.
  (* ram_style = "distributed" *) logic              taken [NumContexts];
  (* ram_style = "distributed" *) logic              freed [NumContexts];
  (* ram_style = "distributed" *) logic [QueueW-1:0] owner [NumContexts];
  logic [ContextW-1:0] back_name;

  assign back_name = give_i ? give_name_i : released_name_i;

  always_ff @(posedge clk_i) begin
    if (clear_valid_i) taken[clear_name_i] <= freed[clear_name_i];
    else if (taken_i) taken[taken_name_i] <= !taken[taken_name_i];
    if (taken_i) owner[taken_name_i] <= taken_queue_i;
    if (give_i || released_i) freed[back_name] <= !freed[back_name];
    is_owned_o <= taken[look_name_i] != freed[look_name_i] && owner[look_name_i] == look_queue_i;
  end

  // What control gives back or sets aside is counted a cycle later; what is taken or released at once.
  logic [CountW-1:0]       free_q;
  logic [CountW-1:0]       change_q;
  logic                    takes, releases;

  assign takes      = taken_i && taken_shared_i;
  assign releases   = released_i && released_shared_i;
  assign shared_o   = free_q > CountW'(takes);
  assign has_none_o = free_q == '0;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      free_q   <= contexts_i[CountW-1:0];
      change_q <= '0;
    end else begin
      free_q   <= (free_q - CountW'(takes) + change_q) + CountW'(releases);
      change_q <= CountW'(unreserve_i) + CountW'(give_i && give_shared_i) - CountW'(reserve_i);
    end
  end

  logic unused_bits;
  assign unused_bits = ^contexts_i[15:CountW];

`ifndef SYNTHESIS
  initial begin
    for (int i = 0; i < int'(NumContexts); i++) begin
      taken[i] = 1'b0;
      freed[i] = 1'b0;
      owner[i] = '0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_not_too_free   : assert (free_q <= contexts_i[CountW-1:0]);
      a_none_too_many  : assert (!takes || free_q != '0);
      a_back_once      : assert (!(give_i && released_i));
      a_taken_is_in    : assert (!taken_i || taken[taken_name_i] == freed[taken_name_i]);
    end
  end
`endif

endmodule

`default_nettype wire

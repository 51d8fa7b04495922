// Requests that want an answer, on their way out of cq_adapter: they wait for the writes in front of them, then for the
// taker; and the credits by which the PCIe block delivers more of them.
//
// Guarantees
//   - Requests leave in order, each when all slots in front of its mark have been taken (`taken_i`).
//   - As many credits are out as there is room for: the block, if it keeps to them, never has to be stopped here.
// Limits: one more request may come in the cycle after `room_o` has fallen.
// Latency: 2 cycles. Cost: 3 x ReadDepth x about 125 bits of LUTRAM. Twin in nic/model: none.

`default_nettype none

module cq_reads #(
  // Requests that may wait, a power of two from 2 to 32.
  parameter int unsigned ReadDepth = 16,
  localparam int unsigned MarkW = pcie_pkg::MarkW
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  input  logic                    ask_valid_i,
  input  pcie_pkg::read_request_t ask_request_i,
  input  logic [MarkW-1:0]        ask_mark_i,
  output logic                    room_o,
  input  logic [MarkW-1:0]        taken_i,

  output logic                    rd_valid_o,
  input  logic                    rd_ready_i,
  output pcie_pkg::read_request_t rd_request_o,
  output logic [1:0]              cq_np_req_o
);

  localparam int unsigned RequestW = $bits(pcie_pkg::read_request_t);

  pcie_pkg::read_request_t      waiting;
  logic                         wait_valid, wait_passes, ready_room, unused_room;
  logic [MarkW-1:0]             wait_mark, wait_ahead;
  logic [$clog2(ReadDepth)+1:0] waits_count;
  logic [$clog2(ReadDepth):0]   unused_ready;

  // Twice the credits, so that it never fills while the block keeps to them.
  fifo #(.Width(RequestW + MarkW), .Depth(2 * ReadDepth)) u_waiting (
    .clk_i,
    .rst_ni,
    .push_valid_i (ask_valid_i),
    .push_ready_o (unused_room),
    .push_data_i  ({ask_request_i, ask_mark_i}),
    .pop_valid_o  (wait_valid),
    .pop_ready_i  (wait_passes && ready_room),
    .pop_data_o   ({waiting, wait_mark}),
    .count_o      (waits_count)
  );
  // Entries leave as soon as nothing is in front of them, so a mark is never more than a lap behind.
  assign wait_ahead  = wait_mark - taken_i;
  assign wait_passes = wait_ahead == '0 || wait_ahead[MarkW-1];
  // One more may be on its way in.
  assign room_o   = waits_count < ($clog2(ReadDepth)+2)'(2 * ReadDepth - 1);

  fifo #(.Width(RequestW), .Depth(ReadDepth)) u_ready (
    .clk_i,
    .rst_ni,
    .push_valid_i (wait_valid && wait_passes),
    .push_ready_o (ready_room),
    .push_data_i  (waiting),
    .pop_valid_o  (rd_valid_o),
    .pop_ready_i  (rd_ready_i),
    .pop_data_o   (rd_request_o),
    .count_o      (unused_ready)
  );

  // Credits: as many as there is room for, then one for each that leaves.
  logic [$clog2(ReadDepth):0] credits_q;
  logic                       gives;
  assign gives       = credits_q != '0;
  assign cq_np_req_o = {1'b0, gives};
  always_ff @(posedge clk_i) begin
    if (!rst_ni) credits_q <= ($clog2(ReadDepth)+1)'(ReadDepth);
    else         credits_q <= credits_q - ($clog2(ReadDepth)+1)'(gives)
                            + ($clog2(ReadDepth)+1)'(rd_valid_o && rd_ready_i);
  end

endmodule

`default_nettype wire

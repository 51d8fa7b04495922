// Frames to the wire, by way of checksum_insert if they ask for it, past it if they do not and nothing is in it.
//
// A frame asks if its queue was started with `checksums`. One that does not ask, behind one that does, takes the same way
// and comes out as it went in, so that all frames keep their order.
//
// A frame that began before all of it was there (`early`) does not ask, and waits until nothing is in the inserter.
//
// Guarantees
//   - Frames keep their order; each goes one way as a whole. What asks leaves as checksum_insert gives it, everything
//     else unchanged.
//   - While no queue asks this is a multiplexer: no register, no cycle.
// Limits: those of checksum_insert. A frame's queue is looked up with its first beat; what it asked for when it began
//   holds to its end. With Insert 0 there are only wires.
// Latency: none past it, 22 cycles from a frame's last beat to its first one through it.
// Cost beside checksum_insert's: NumQueues bits of LUTRAM, 520 LUT. Twin: with_checksums of nic/model/src/nic.rs.

`default_nettype none

module checksum_path #(
  // 0 leaves it out.
  parameter bit Insert = 1'b1,
  // Queues, 1 to 1024.
  parameter int unsigned NumQueues = 64,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  input  logic              start_valid_i,
  input  logic [QueueW-1:0] start_queue_i,
  input  logic              start_checksums_i,

  input  logic              in_valid_i,
  output logic              in_ready_o,
  input  logic [511:0]      in_data_i,
  input  logic [6:0]        in_bytes_i,
  input  logic              in_last_i,
  input  logic [QueueW-1:0] in_queue_i,
  input  logic              in_early_i,
  input  logic              in_abort_i,

  output logic              out_valid_o,
  input  logic              out_ready_i,
  output logic [511:0]      out_data_o,
  output logic [6:0]        out_bytes_o,
  output logic              out_last_o,
  output logic [QueueW-1:0] out_queue_o,
  output logic              out_early_o,
  output logic              out_abort_o,

  // No beat is inside.
  output logic              is_idle_o
);

  if (Insert) begin : g_insert
    // Whether frames of a queue ask.
    (* ram_style = "distributed" *)
    logic asks [NumQueues];
    logic asks_queue, insert_idle, past, inside_q, past_q;
    logic              filled_valid, filled_ready, filled_last, insert_ready;
    logic [511:0]      filled_data;
    logic [6:0]        filled_bytes;
    logic [QueueW-1:0] filled_queue;

    always_ff @(posedge clk_i) if (start_valid_i) asks[start_queue_i] <= start_checksums_i;
`ifndef SYNTHESIS
    initial for (int n = 0; n < int'(NumQueues); n++) asks[n] = 1'b0;
`endif
    assign asks_queue = asks[in_queue_i];

    // The way is chosen with a frame's first beat.
    assign past = (inside_q && (past_q || !in_early_i)) ? past_q : insert_idle && !asks_queue;

    always_ff @(posedge clk_i) begin
      if (!rst_ni) inside_q <= 1'b0;
      else if (in_valid_i && in_ready_o) inside_q <= !in_last_i;
      else if (in_valid_i) inside_q <= 1'b1;
      // A beat that was offered to one side stays there.
      if (in_valid_i) past_q <= past;
    end

    checksum_insert #(.NumQueues(NumQueues), .MaxFrameBytes(nic_pkg::MaxFrameBytes)) u_insert (
      .clk_i, .rst_ni,
      .in_valid_i(in_valid_i && !past && !in_early_i), .in_ready_o(insert_ready), .in_data_i, .in_bytes_i, .in_last_i,
      .in_queue_i, .in_asks_i(asks_queue),
      .out_valid_o(filled_valid), .out_ready_i(filled_ready), .out_data_o(filled_data), .out_bytes_o(filled_bytes),
      .out_last_o(filled_last), .out_queue_o(filled_queue), .is_idle_o(insert_idle)
    );

    assign is_idle_o    = insert_idle;

    // Nothing is in the inserter while a frame goes past it, and the other way round.
    assign filled_ready = out_ready_i;
    assign in_ready_o   = past ? out_ready_i : insert_ready && !in_early_i;
    assign out_valid_o  = (in_valid_i && past) || filled_valid;
    assign out_data_o   = past ? in_data_i : filled_data;
    assign out_bytes_o  = past ? in_bytes_i : filled_bytes;
    assign out_last_o   = past ? in_last_i : filled_last;
    assign out_queue_o  = past ? in_queue_i : filled_queue;
    assign out_early_o  = past && in_early_i;
    assign out_abort_o  = past && in_abort_i;

`ifndef SYNTHESIS
    always_ff @(posedge clk_i) begin
      if (rst_ni) begin
        a_one_way       : assert (!(in_valid_i && past && filled_valid));
        a_early_is_past : assert (!(in_valid_i && in_early_i && asks_queue && !inside_q));
      end
    end
`endif
  end else begin : g_past
    assign in_ready_o  = out_ready_i;
    assign out_valid_o = in_valid_i;
    assign out_data_o  = in_data_i;
    assign out_bytes_o = in_bytes_i;
    assign out_last_o  = in_last_i;
    assign out_queue_o = in_queue_i;
    assign out_early_o = in_early_i;
    assign out_abort_o = in_abort_i;
    assign is_idle_o   = 1'b1;
    logic unused;
    assign unused = ^{clk_i, rst_ni, start_valid_i, start_queue_i, start_checksums_i};
  end

endmodule

`default_nettype wire

// The reorder unit's contexts: which bytes of which lines have arrived, for the queues that hold something incomplete.
//
// Each context is a ring of lines, twice the reorder span, with a valid bit for each byte (HotOS'25 3.1, "Valid
// Vector") and the name of the pool line that holds the bytes: the Data Buffer and the pool are one memory, and a line
// moves from the one to the other by changing owner. Lines are linked to their neighbours when they take a pool line,
// in whatever order that is; so a run that has become contiguous needs no further work, however long it is.
//
// Marks of arrival are the parity of the lap in which a line arrived. They are never cleared: a slot that the frontier
// has passed counts as empty for the next lap, and a context that is taken anew is set to "empty from here on" at once.
//
// Stages (of the reorder unit)
//   2  the slot's valid bits are read and merged; a line that has no pool line takes one and is linked
//   3  are all 64 there, was a byte there before; the line is marked complete; what is missing behind it
//   4  where the next missing line is: the frontier, if this piece's line is the one that was missing
// Guarantees
//   - The pool line named in stage 3 and 4 belongs to the piece's line. `clobber` is raised, and nothing of the piece
//     may be written, when a byte of it had already arrived.
//   - `target` in stage 4 is the frontier after this piece, if its line is complete and stood at the frontier: it takes
//     in all pieces before this one, and none after it.
// Latency 3 cycles, one piece a cycle, whatever they hit. Cost: NumContexts x ring x (64 + 4 x PtrW) bits of block RAM,
// NumContexts x (2 x ring + PosW + PtrW + 1) bits of LUTRAM. Twin: nic/model/src/mmio/reorder_unit.rs.

`default_nettype none

module contexts #(
  parameter int unsigned NumQueues = 64,
  parameter int unsigned LineW = 6,
  parameter int unsigned RingW = 5,
  parameter int unsigned NumContexts = 16,
  parameter int unsigned PtrW = 11,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1,
  localparam int unsigned ContextW = $clog2(NumContexts),
  localparam int unsigned PosW = LineW + 2,
  localparam int unsigned RingLines = 1 << RingW
) (
  input  logic                clk_i,
  input  logic                rst_ni,
  input  logic [RingW-1:0]    ring_mask_i,

  // Addresses of stage 1, for the piece that is in stage 2 in the next cycle.
  input  logic [ContextW-1:0] read_context_i,
  input  logic [RingW-1:0]    read_slot_i,
  input  logic [QueueW-1:0]   read_queue_i,

  // Stage 2, from `arrival`.
  input  logic                valid_i,
  input  logic [QueueW-1:0]   queue_i,
  input  logic [PosW-1:0]     pos_i,
  input  logic                place_i,
  input  logic                fast_i,
  input  logic                fresh_i,
  input  logic [ContextW-1:0] context_i,
  input  logic [PosW-1:0]     base_i,
  input  logic                tail_given_i,
  input  logic [PtrW-1:0]     tail_i,
  input  logic [63:0]         be_i,
  // The same bytes, a stage later.
  input  logic [63:0]         be3_i,

  // A free pool line; one stands ready whenever a piece is in stage 2.
  input  logic                line_valid_i,
  output logic                line_take_o,
  input  logic [PtrW-1:0]     line_name_i,

  // Links between pool lines: `successor` of a line that came first, `own` for a line whose successor came first.
  output logic                successor_we_o,
  output logic [PtrW-1:0]     successor_line_o,
  output logic [PtrW-1:0]     successor_next_o,
  output logic                own_we_o,
  output logic [PtrW-1:0]     own_line_o,
  output logic                own_known_o,
  output logic [PtrW-1:0]     own_next_o,

  // Stage 3: where the bytes go, and whether they may.
  output logic                store_valid_o,
  output logic [PtrW-1:0]     store_line_o,
  output logic                store_clobber_o,

  // Stage 4, beside the piece that came in two cycles ago.
  output logic                took_line_o,
  output logic [PtrW-1:0]     line_o,
  output logic                complete_o,
  output logic                clobber_o,
  output logic                split_o,
  // The piece brought the first byte that its line lacked.
  output logic                expected_o,
  output logic [PosW-1:0]     target_o,

  // What a context's line lacks, for `hole_timeout`: whether any byte is there, at once; its first missing byte and
  // whether there are bytes beyond it, a cycle after it is asked for.
  input  logic [ContextW-1:0] lack_context_i,
  input  logic [PosW-1:0]     lack_pos_i,
  output logic                lack_begun_o,
  output logic [5:0]          lack_first_o,
  output logic                lack_gap_o,

  // The name of a context's line, a cycle after it is asked for; and the marks of a context at once.
  input  logic [ContextW-1:0] look_context_i,
  input  logic [RingW-1:0]    look_slot_i,
  output logic [PtrW-1:0]     look_line_o,
  input  logic [ContextW-1:0] marks_context_i,
  output logic [RingLines-1:0] marks_o
);

  if (RingW < 2 || RingW > 9) begin : g_bad_ring
    $fatal(1, "contexts: RingW must be 2 to 9 (reorder spans of 2 to 256 lines)");
  end
  if (NumContexts < 2) begin : g_bad_contexts
    $fatal(1, "contexts: NumContexts must be at least 2");
  end

  // Marks of an empty context whose frontier is `base`: no line from there on has arrived in its lap.
  function automatic logic [RingLines-1:0] empty_marks(input logic [RingW-1:0] slot, input logic lap);
    logic [RingLines-1:0] before_slot;
    before_slot = ~({RingLines{1'b1}} << slot);
    return {RingLines{!lap}} ^ before_slot;
  endfunction

  // ---------------------------------------------------------------------------------------------- stage 2
  logic [RingLines-1:0] begun [NumContexts];
  (* ram_style = "distributed" *)
  logic [PosW + PtrW:0] first [NumContexts];

  logic [RingW-1:0] slot2, slot2_left, slot2_right, base2_slot;
  logic             lap2, lap2_left, lap2_right, base2_lap;
  logic [PosW-1:0]  lap_bit;

  assign lap_bit     = PosW'(ring_mask_i) + 1'b1;
  assign slot2       = pos_i[RingW-1:0] & ring_mask_i;
  assign slot2_left  = (slot2 - 1'b1) & ring_mask_i;
  assign slot2_right = (slot2 + 1'b1) & ring_mask_i;
  assign lap2        = (pos_i & lap_bit) != '0;
  assign lap2_left   = lap2 ^ (slot2 == '0);
  assign lap2_right  = lap2 ^ (slot2 == ring_mask_i);
  assign base2_slot  = base_i[RingW-1:0] & ring_mask_i;
  assign base2_lap   = (base_i & lap_bit) != '0;

  logic [RingLines-1:0] empty2, begun2, begun2_d, bit2;
  logic                 here, has_left, has_right, in_context2, takes2;

  assign empty2      = empty_marks(base2_slot, base2_lap);
  assign begun2      = fresh_i ? empty2 : begun[context_i];
  assign bit2        = RingLines'(1) << slot2;
  assign begun2_d    = lap2 ? begun2 | bit2 : begun2 & ~bit2;
  assign in_context2 = valid_i && place_i && !fast_i;
  assign here        = begun2[slot2] == lap2;
  assign has_left    = begun2[slot2_left] == lap2_left;
  assign has_right   = begun2[slot2_right] == lap2_right;
  assign takes2      = valid_i && place_i && (fast_i || !here);
  assign line_take_o = takes2;

  always_ff @(posedge clk_i) begin
    if (in_context2) begun[context_i] <= begun2_d;
  end
  assign marks_o = begun[marks_context_i];

  // The queue's last line in the pool, while it holds no context.
  logic [PtrW-1:0] kept_tail, tail2;
  assign tail2 = tail_given_i ? tail_i : kept_tail;
  table_ram #(.Width(PtrW), .Depth(NumQueues)) u_tail (
    .clk_i, .we_i(valid_i && fast_i && place_i), .waddr_i(queue_i), .wdata_i(line_name_i), .raddr_i(read_queue_i),
    .rdata_o(kept_tail)
  );

  // The line at which the context was taken follows that one; it is linked when it comes.
  logic            first_waits, is_first;
  logic [PosW-1:0] first_pos;
  logic [PtrW-1:0] first_tail;
  assign {first_waits, first_pos, first_tail} = fresh_i ? {1'b1, base_i, tail2} : first[context_i];
  assign is_first = first_waits && first_pos == pos_i;
  always_ff @(posedge clk_i) begin
    if (in_context2 && (fresh_i || (is_first && takes2))) begin
      first[context_i] <= {!(is_first && takes2), first_pos, first_tail};
    end
  end

  // Names of the line and of its neighbours, valid bits of the line.
  logic [PtrW-1:0] line_here, line_left, line_right;
  logic [63:0]     bytes_here;
  logic            name_we;
  logic [ContextW+RingW-1:0] write_place, read_place;

  assign name_we     = in_context2 && takes2;
  assign write_place = {context_i, slot2};
  assign read_place  = {read_context_i, read_slot_i};

  table_ram #(.Width(PtrW), .Depth(NumContexts * RingLines)) u_here (
    .clk_i, .we_i(name_we), .waddr_i(write_place), .wdata_i(line_name_i), .raddr_i(read_place), .rdata_o(line_here)
  );
  table_ram #(.Width(PtrW), .Depth(NumContexts * RingLines)) u_left (
    .clk_i, .we_i(name_we), .waddr_i(write_place), .wdata_i(line_name_i),
    .raddr_i({read_context_i, (read_slot_i - 1'b1) & ring_mask_i}), .rdata_o(line_left)
  );
  table_ram #(.Width(PtrW), .Depth(NumContexts * RingLines)) u_right (
    .clk_i, .we_i(name_we), .waddr_i(write_place), .wdata_i(line_name_i),
    .raddr_i({read_context_i, (read_slot_i + 1'b1) & ring_mask_i}), .rdata_o(line_right)
  );
  table_ram #(.Width(PtrW), .Depth(NumContexts * RingLines)) u_look (
    .clk_i, .we_i(name_we), .waddr_i(write_place), .wdata_i(line_name_i), .raddr_i({look_context_i, look_slot_i}),
    .rdata_o(look_line_o)
  );

  logic [63:0]     old2, merged2;
  logic [PtrW-1:0] line2;
  assign old2    = bytes_here & {64{here && !fast_i}};
  assign merged2 = old2 | be_i;
  assign line2   = takes2 ? line_name_i : line_here;
  table_ram #(.Width(64), .Depth(NumContexts * RingLines)) u_bytes (
    .clk_i, .we_i(in_context2), .waddr_i(write_place), .wdata_i(merged2), .raddr_i(read_place), .rdata_o(bytes_here)
  );

  assign successor_we_o   = takes2 && (fast_i || is_first || has_left);
  assign successor_line_o = fast_i ? tail2 : (is_first ? first_tail : line_left);
  assign successor_next_o = line_name_i;
  assign own_we_o         = takes2;
  assign own_line_o       = line_name_i;
  assign own_known_o      = has_right && !fast_i;
  assign own_next_o       = line_right;

  // ---------------------------------------------------------------------------------------------- stage 3
  logic                valid3_q, place3_q, fast3_q, fresh3_q, took3_q, lap3_q, whole3_q;
  logic [ContextW-1:0] context3_q;
  logic [RingW-1:0]    slot3_q;
  logic [PosW-1:0]     pos3_q;
  logic [63:0]         merged3_q, twice3_q;
  logic [RingLines-1:0] empty3_q;
  logic [PtrW-1:0]     line3_q;

  always_ff @(posedge clk_i) begin
    valid3_q   <= rst_ni && valid_i;
    place3_q   <= place_i;
    fast3_q    <= fast_i;
    fresh3_q   <= fresh_i;
    took3_q    <= takes2;
    whole3_q   <= !here || fast_i;
    context3_q <= context_i;
    slot3_q    <= slot2;
    lap3_q     <= lap2;
    pos3_q     <= pos_i;
    merged3_q  <= merged2;
    twice3_q   <= old2 & be_i;
    empty3_q   <= empty2;
    line3_q    <= line2;
  end

  logic [RingLines-1:0] done [NumContexts];
  logic [RingLines-1:0] done3, done3_d, bit3, after3, missing3_after, missing3_before;
  logic                 complete3, clobber3;

  assign clobber3  = place3_q && !fast3_q && (twice3_q != '0);
  assign complete3 = place3_q && (fast3_q || (merged3_q == '1)) && !clobber3;
  assign done3     = fresh3_q ? empty3_q : done[context3_q];
  assign bit3      = RingLines'(1) << slot3_q;
  assign done3_d   = !complete3 ? done3 : (lap3_q ? done3 | bit3 : done3 & ~bit3);

  always_ff @(posedge clk_i) begin
    if (valid3_q && place3_q && !fast3_q) done[context3_q] <= done3_d;
  end

  // Lines that are missing: behind this one in its lap, and from the ring's start on in the next lap. The line's own
  // place is missing in the next lap whatever its mark says, for the mark may still be that of the lap before this one.
  logic [RingLines-1:0] in_ring;
  assign in_ring         = ~(({RingLines{1'b1}} << ring_mask_i) << 1);
  assign after3          = ({RingLines{1'b1}} << slot3_q) << 1;
  assign missing3_after  = (done3 ^ {RingLines{lap3_q}}) & after3 & in_ring;
  assign missing3_before = ((done3 ^ {RingLines{!lap3_q}}) | bit3) & ~after3;

  assign store_valid_o   = valid3_q && place3_q;
  assign store_line_o    = line3_q;
  assign store_clobber_o = clobber3;

  // What the line still lacks. A byte is there behind one that is not: some byte's predecessor is missing.
  logic [5:0]                first3;
  logic                      gap3, lack_we4_q, lack_gap4_q;
  logic [5:0]                lack_first4_q;
  logic [ContextW+RingW-1:0] lack_place4_q;
  logic [RingLines-1:0]      lack_marks;
  logic [RingW-1:0]          lack_slot;

  lowest_bit #(.Width(64)) u_first (.bits_i(~merged3_q), .index_o(first3));
  logic [5:0] first_of_piece3, first_of_piece4_q;
  lowest_bit #(.Width(64)) u_first_of_piece (.bits_i(be3_i), .index_o(first_of_piece3));
  assign expected_o = complete_o || first_of_piece4_q < lack_first4_q;
  assign gap3 = (merged3_q & ~{merged3_q[62:0], 1'b1}) != '0;
  always_ff @(posedge clk_i) begin
    lack_we4_q    <= valid3_q && place3_q && !fast3_q;
    lack_place4_q <= {context3_q, slot3_q};
    lack_first4_q <= first3;
    lack_gap4_q   <= gap3;
    first_of_piece4_q <= first_of_piece3;
  end
  assign lack_slot    = lack_pos_i[RingW-1:0] & ring_mask_i;
  assign lack_marks   = begun[lack_context_i];
  assign lack_begun_o = lack_marks[lack_slot] == ((lack_pos_i & lap_bit) != '0);
  table_ram #(.Width(7), .Depth(NumContexts * RingLines)) u_lack (
    .clk_i, .we_i(lack_we4_q), .waddr_i(lack_place4_q), .wdata_i({lack_gap4_q, lack_first4_q}),
    .raddr_i({lack_context_i, lack_slot}), .rdata_o({lack_gap_o, lack_first_o})
  );

  // ---------------------------------------------------------------------------------------------- stage 4
  logic                 fast4_q;
  logic [PosW-1:0]      pos4_q;
  logic [RingLines-1:0] missing4_after_q, missing4_before_q;
  logic [RingW-1:0]     next_after, next_before;
  logic [PosW-1:0]      lap4_start, lap4_next;

  always_ff @(posedge clk_i) begin
    took_line_o       <= took3_q;
    line_o            <= line3_q;
    complete_o        <= complete3;
    clobber_o         <= clobber3;
    split_o           <= complete3 && !whole3_q;
    fast4_q           <= fast3_q;
    pos4_q            <= pos3_q;
    missing4_after_q  <= missing3_after;
    missing4_before_q <= missing3_before;
  end

  lowest_bit #(.Width(RingLines)) u_after  (.bits_i(missing4_after_q), .index_o(next_after));
  lowest_bit #(.Width(RingLines)) u_before (.bits_i(missing4_before_q), .index_o(next_before));

  assign lap4_start = pos4_q & ~PosW'(ring_mask_i);
  assign lap4_next  = (pos4_q | PosW'(ring_mask_i)) + 1'b1;
  assign target_o   = fast4_q ? pos4_q + 1'b1
                    : (missing4_after_q != '0) ? lap4_start | PosW'(next_after) : lap4_next | PosW'(next_before);

`ifndef SYNTHESIS
  initial begin
    for (int i = 0; i < int'(NumContexts); i++) begin
      begun[i] = '0;
      done[i]  = '0;
      first[i] = '0;
    end
  end
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_line_stands_ready : assert (!takes2 || line_valid_i);
      a_fast_is_whole     : assert (!(valid_i && place_i && fast_i) || be_i == '1);
      a_complete_was_not  : assert (!(valid3_q && complete3 && !fast3_q) || done3[slot3_q] != lap3_q || fresh3_q);
    end
  end
`endif

endmodule

`default_nettype wire

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
//   1  the marks of the slot and its neighbours are looked up, as the piece in stage 2 leaves them
//   2  the slot's valid bits are read and merged; a line that has no pool line takes one
//   3  are all 64 there, was a byte there before; the line is marked complete; what is missing behind it; its links
//   4  where the next missing line is: the frontier, if this piece's line is the one that was missing; links are told
// Guarantees
//   - The pool line named in stages 3 and 4 belongs to the piece's line. This needs the piece to be at or after the line
//     at which the context was taken, and less than a ring after the frontier (`arrival`); the slots before that line hold
//     names of earlier lives.
//   - `clobber` is raised when a byte of the piece had already arrived; nothing of the piece may be stored then.
//   - If the piece completes the line at the frontier, `target` in stage 4 is the frontier after this piece: it counts all
//     pieces before this one, and none after it.
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

  // Addresses of stage 1, for the piece that is in stage 2 in the next cycle. The context is of no account for a piece
  // that takes one anew; `mark_context` of none, too, behind one that does, of the same queue.
  input  logic [ContextW-1:0] read_context_i,
  input  logic [ContextW-1:0] mark_context_i,
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

  // Stage 4: links between pool lines, `successor` of a line that came first, `own` for a line whose successor came
  // first.
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
  output logic [PosW-1:0]     target_o,
  // Stage 5: the piece brought the first byte that its line lacked.
  output logic                expected_o,

  // What a context's line lacks, for `hole_timeout`, a cycle after it is asked for: whether any byte is there; its
  // first missing byte, and whether there are bytes beyond it.
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

  // ---------------------------------------------------------------------------------------------- stage 1
  (* ram_style = "distributed" *)
  logic [RingLines-1:0] begun [NumContexts];
  logic [RingLines-1:0] row1;
  logic [RingW-1:0]     slot1_left, slot1_right, slot2_q, base2_slot;
  logic                 lap2, base2_lap, in_context2, same1;
  // What the marks of stage 1's slots are when the piece in stage 2 has left its own.
  logic                 mark1, mark1_left, mark1_right, mark2_q, mark2_left_q, mark2_right_q;

  function automatic logic mark_after(
    input logic mark, input logic [RingW-1:0] slot, input logic same, input logic fresh, input logic lap,
    input logic base_lap, input logic [RingW-1:0] base_slot, input logic [RingW-1:0] piece_slot
  );
    logic is_piece;
    // `mark` comes last, so that what replaces it is known before.
    is_piece = slot == piece_slot;
    return (mark && !(same && (fresh || is_piece)))
        || (same && (is_piece ? lap : fresh && (!base_lap ^ (slot < base_slot))));
  endfunction

  assign row1        = begun[mark_context_i];
  assign slot1_left  = (read_slot_i - 1'b1) & ring_mask_i;
  assign slot1_right = (read_slot_i + 1'b1) & ring_mask_i;
  assign same1       = in_context2 && context_i == read_context_i;
  assign mark1       = mark_after(
    row1[read_slot_i], read_slot_i, same1, fresh_i, lap2, base2_lap, base2_slot, slot2_q
  );
  assign mark1_left  = mark_after(
    row1[slot1_left], slot1_left, same1, fresh_i, lap2, base2_lap, base2_slot, slot2_q
  );
  assign mark1_right = mark_after(
    row1[slot1_right], slot1_right, same1, fresh_i, lap2, base2_lap, base2_slot, slot2_q
  );

  // ---------------------------------------------------------------------------------------------- stage 2
  // The slot of a piece is known a stage before its lap.
  logic             lap2_left, lap2_right, is_lowest2_q, is_highest2_q;
  logic [PosW-1:0]  lap_bit;

  // The mask and one, seen without adding.
  assign lap_bit     = PosW'({ring_mask_i, 1'b1}) & ~PosW'(ring_mask_i);
  assign lap2        = (pos_i & lap_bit) != '0;
  assign lap2_left   = lap2 ^ is_lowest2_q;
  assign lap2_right  = lap2 ^ is_highest2_q;
  assign base2_slot  = base_i[RingW-1:0] & ring_mask_i;
  assign base2_lap   = (base_i & lap_bit) != '0;

  logic [RingLines-1:0] empty2, begun2, begun2_d, bit2;
  logic                 here, has_left, has_right, takes2;

  // A context that is taken anew holds nothing from its base on; what lies before that is linked by `first`.
  assign in_context2 = valid_i && place_i && !fast_i;
  assign here        = !fresh_i && mark2_q == lap2;
  assign has_left    = !fresh_i && mark2_left_q == lap2_left;
  assign has_right   = !fresh_i && mark2_right_q == lap2_right;
  assign takes2      = valid_i && place_i && (fast_i || !here);
  assign line_take_o = takes2;

  assign empty2      = empty_marks(base2_slot, base2_lap);
  assign begun2      = fresh_i ? empty2 : begun[context_i];
  assign bit2        = RingLines'(1) << slot2_q;
  assign begun2_d    = lap2 ? begun2 | bit2 : begun2 & ~bit2;

  always_ff @(posedge clk_i) begin
    if (in_context2) begun[context_i] <= begun2_d;
    slot2_q       <= read_slot_i;
    is_lowest2_q  <= read_slot_i == '0;
    is_highest2_q <= read_slot_i == ring_mask_i;
    mark2_q       <= mark1;
    mark2_left_q  <= mark1_left;
    mark2_right_q <= mark1_right;
  end
  assign marks_o = begun[marks_context_i];

  // The queue's last line in the pool, while it holds no context.
  logic [PtrW-1:0] kept_tail, tail2;
  assign tail2 = tail_given_i ? tail_i : kept_tail;
  table_ram #(.Width(PtrW), .Depth(NumQueues)) u_tail (
    .clk_i, .we_i(valid_i && fast_i && place_i), .waddr_i(queue_i), .wdata_i(line_name_i), .raddr_i(read_queue_i),
    .rdata_o(kept_tail)
  );

  // Names of the line and of its neighbours, valid bits of the line.
  logic [PtrW-1:0] line_here, line_left, line_right;
  logic [63:0]     bytes_here;
  logic            name_we;
  logic [ContextW+RingW-1:0] write_place, read_place;

  assign name_we     = in_context2 && takes2;
  assign write_place = {context_i, slot2_q};
  assign read_place  = {read_context_i, read_slot_i};

  table_ram #(.Width(PtrW), .Depth(NumContexts * RingLines)) u_here (
    .clk_i, .we_i(name_we), .waddr_i(write_place), .wdata_i(line_name_i), .raddr_i(read_place), .rdata_o(line_here)
  );
  table_ram #(.Width(PtrW), .Depth(NumContexts * RingLines)) u_left (
    .clk_i, .we_i(name_we), .waddr_i(write_place), .wdata_i(line_name_i),
    .raddr_i({read_context_i, slot1_left}), .rdata_o(line_left)
  );
  table_ram #(.Width(PtrW), .Depth(NumContexts * RingLines)) u_right (
    .clk_i, .we_i(name_we), .waddr_i(write_place), .wdata_i(line_name_i),
    .raddr_i({read_context_i, slot1_right}), .rdata_o(line_right)
  );
  table_ram #(.Width(PtrW), .Depth(NumContexts * RingLines)) u_look (
    .clk_i, .we_i(name_we), .waddr_i(write_place), .wdata_i(line_name_i), .raddr_i({look_context_i, look_slot_i}),
    .rdata_o(look_line_o)
  );

  logic [63:0]     old2, merged2;
  logic [PtrW-1:0] line2;
  logic [15:0]     full2, twice2;
  assign old2    = bytes_here & {64{here && !fast_i}};
  assign merged2 = old2 | be_i;
  assign line2   = takes2 ? line_name_i : line_here;
  table_ram #(.Width(64), .Depth(NumContexts * RingLines)) u_bytes (
    .clk_i, .we_i(in_context2), .waddr_i(write_place), .wdata_i(merged2), .raddr_i(read_place), .rdata_o(bytes_here)
  );
  always_comb begin
    for (int i = 0; i < 16; i++) begin
      full2[i]  = &merged2[4*i +: 4];
      twice2[i] = |(old2[4*i +: 4] & be_i[4*i +: 4]);
    end
  end

  // ---------------------------------------------------------------------------------------------- stage 3
  logic                valid3_q, place3_q, fast3_q, fresh3_q, took3_q, lap3_q, whole3_q, has_left3_q, has_right3_q;
  logic [ContextW-1:0] context3_q;
  logic [RingW-1:0]    slot3_q;
  logic [PosW-1:0]     pos3_q, base3_q;
  logic [63:0]         merged3_q;
  logic [15:0]         full3_q, twice3_q;
  logic [RingLines-1:0] empty3_q;
  logic [PtrW-1:0]     line3_q, tail3_q, line3_left_q, line3_right_q;

  always_ff @(posedge clk_i) begin
    valid3_q   <= rst_ni && valid_i;
    place3_q   <= place_i;
    fast3_q    <= fast_i;
    fresh3_q   <= fresh_i;
    took3_q    <= takes2;
    whole3_q   <= !here || fast_i;
    context3_q <= context_i;
    slot3_q    <= slot2_q;
    lap3_q     <= lap2;
    pos3_q     <= pos_i;
    base3_q    <= base_i;
    merged3_q  <= merged2;
    full3_q    <= full2;
    twice3_q   <= twice2;
    empty3_q   <= empty2;
    line3_q    <= line2;
    tail3_q    <= tail2;
    line3_left_q  <= line_left;
    line3_right_q <= line_right;
    has_left3_q   <= has_left;
    has_right3_q  <= has_right;
  end

  // The line at which the context was taken follows the queue's last line; it is linked when it comes.
  (* ram_style = "distributed" *)
  logic [PosW + PtrW:0] first [NumContexts];
  logic                 first_waits, is_first, in_context3;
  logic [PosW-1:0]      first_pos;
  logic [PtrW-1:0]      first_tail;
  assign {first_waits, first_pos, first_tail} = fresh3_q ? {1'b1, base3_q, tail3_q} : first[context3_q];
  assign is_first    = first_waits && first_pos == pos3_q;
  assign in_context3 = valid3_q && place3_q && !fast3_q;
  always_ff @(posedge clk_i) begin
    if (in_context3 && (fresh3_q || (is_first && took3_q))) begin
      first[context3_q] <= {!(is_first && took3_q), first_pos, first_tail};
    end
    successor_we_o   <= rst_ni && took3_q && (fast3_q || is_first || has_left3_q);
    successor_line_o <= fast3_q ? tail3_q : (is_first ? first_tail : line3_left_q);
    successor_next_o <= line3_q;
    own_we_o         <= rst_ni && took3_q;
    own_line_o       <= line3_q;
    own_known_o      <= has_right3_q && !fast3_q;
    own_next_o       <= line3_right_q;
  end

  (* ram_style = "distributed" *)
  logic [RingLines-1:0] done [NumContexts];
  logic [RingLines-1:0] done3, done3_d, bit3, after3, missing3_after, missing3_before;
  logic                 complete3, clobber3;

  assign clobber3  = place3_q && !fast3_q && (twice3_q != '0);
  assign complete3 = place3_q && (fast3_q || (full3_q == '1)) && !clobber3;
  assign done3     = fresh3_q ? empty3_q : done[context3_q];
  assign bit3      = RingLines'(1) << slot3_q;
  assign done3_d   = !complete3 ? done3 : (lap3_q ? done3 | bit3 : done3 & ~bit3);

  always_ff @(posedge clk_i) begin
    if (in_context3) done[context3_q] <= done3_d;
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

  // ---------------------------------------------------------------------------------------------- stage 4
  // The first of the lines behind the piece's, then of those before it: both in one row of groups, of which the first
  // that has any counts.
  localparam int unsigned Group = (RingLines < 8) ? RingLines : 8;
  localparam int unsigned GroupW = $clog2(Group);
  localparam int unsigned Groups = RingLines / Group;
  localparam int unsigned RowW = $clog2(2 * Groups);
  logic [2*Groups-1:0][GroupW-1:0] firsts3, firsts4_q;
  logic [2*Groups-1:0]             has3, has4_q;
  logic [RowW-1:0]                 group4;
  logic                            fast4_q;
  logic [PosW-1:0]                 pos4_q, lap4_start, lap4_next;
  logic [RingW-1:0]                slot4_next;

  for (genvar i = 0; i < int'(2 * Groups); i++) begin : g_group
    logic [Group-1:0] bits;
    if (i < int'(Groups)) begin : g_after
      assign bits = missing3_after[Group*i +: Group];
    end else begin : g_before
      assign bits = missing3_before[Group*(i-Groups) +: Group];
    end
    assign has3[i] = bits != '0;
    lowest_bit #(.Width(Group)) u_first (.bits_i(bits), .index_o(firsts3[i]));
  end
  lowest_bit #(.Width(2 * Groups)) u_group (.bits_i(has4_q), .index_o(group4));

  always_ff @(posedge clk_i) begin
    took_line_o       <= took3_q;
    line_o            <= line3_q;
    complete_o        <= complete3;
    clobber_o         <= clobber3;
    split_o           <= complete3 && !whole3_q;
    fast4_q           <= fast3_q;
    pos4_q            <= pos3_q;
    firsts4_q         <= firsts3;
    has4_q            <= has3;
  end

  if (Groups == 1) begin : g_one
    assign slot4_next = RingW'(firsts4_q[group4]);
  end else begin : g_more
    assign slot4_next = {group4[RowW-2:0], firsts4_q[group4]};
  end
  assign lap4_start = pos4_q & ~PosW'(ring_mask_i);
  assign lap4_next  = (pos4_q | PosW'(ring_mask_i)) + 1'b1;
  assign target_o   = fast4_q ? pos4_q + 1'b1
                    : (group4[RowW-1] ? lap4_next : lap4_start) | PosW'(slot4_next);

  // ---------------------------------------------------------------------------------------------- what a line lacks
  // Its first missing byte: of each word in stage 3, of the line in stage 4. A byte is there behind one that is not:
  // some byte's predecessor is missing.
  logic [7:0][2:0]           lacks3, lacks4_q, brings3, brings4_q;
  logic [7:0]                has_lack3, has_lack4_q, has_bytes3, has_bytes4_q, gaps4_q;
  logic [2:0]                word4, piece_word4;
  logic                      lack_we4_q, lack_we5_q, lack_gap5_q, complete5_q;
  logic [5:0]                lack_first5_q, piece_first5_q;
  logic [ContextW+RingW-1:0] lack_place4_q, lack_place5_q;
  logic [63:0]               gaps3;

  assign gaps3 = merged3_q & ~{merged3_q[62:0], 1'b1};
  for (genvar i = 0; i < 8; i++) begin : g_word
    assign has_lack3[i]  = merged3_q[8*i +: 8] != '1;
    assign has_bytes3[i] = be3_i[8*i +: 8] != '0;
    lowest_bit #(.Width(8)) u_first_lacking (.bits_i(~merged3_q[8*i +: 8]), .index_o(lacks3[i]));
    lowest_bit #(.Width(8)) u_brings (.bits_i(be3_i[8*i +: 8]), .index_o(brings3[i]));
  end
  lowest_bit #(.Width(8)) u_word (.bits_i(has_lack4_q), .index_o(word4));
  lowest_bit #(.Width(8)) u_piece_word (.bits_i(has_bytes4_q), .index_o(piece_word4));

  always_ff @(posedge clk_i) begin
    lack_we4_q    <= rst_ni && in_context3;
    lack_place4_q <= {context3_q, slot3_q};
    lacks4_q      <= lacks3;
    has_lack4_q   <= has_lack3;
    brings4_q     <= brings3;
    has_bytes4_q  <= has_bytes3;
    for (int i = 0; i < 8; i++) gaps4_q[i] <= gaps3[8*i +: 8] != '0;

    lack_we5_q     <= rst_ni && lack_we4_q;
    lack_place5_q  <= lack_place4_q;
    lack_first5_q  <= (has_lack4_q == '0) ? '0 : {word4, lacks4_q[word4]};
    lack_gap5_q    <= gaps4_q != '0;
    piece_first5_q <= {piece_word4, brings4_q[piece_word4]};
    complete5_q    <= complete_o;
  end
  assign expected_o = complete5_q || piece_first5_q < lack_first5_q;

  logic [RingLines-1:0] lack_marks_q;
  logic [RingW-1:0]     lack_slot, lack_slot_q;
  logic                 lack_lap_q;
  assign lack_slot = lack_pos_i[RingW-1:0] & ring_mask_i;
  always_ff @(posedge clk_i) begin
    lack_marks_q <= begun[lack_context_i];
    lack_slot_q  <= lack_slot;
    lack_lap_q   <= (lack_pos_i & lap_bit) != '0;
  end
  assign lack_begun_o = lack_marks_q[lack_slot_q] == lack_lap_q;
  table_ram #(.Width(7), .Depth(NumContexts * RingLines)) u_lack (
    .clk_i, .we_i(lack_we5_q), .waddr_i(lack_place5_q), .wdata_i({lack_gap5_q, lack_first5_q}),
    .raddr_i({lack_context_i, lack_slot}), .rdata_o({lack_gap_o, lack_first_o})
  );

`ifndef SYNTHESIS
`ifndef FORMAL
  initial begin
    for (int i = 0; i < int'(NumContexts); i++) begin
      begun[i] = '0;
      done[i]  = '0;
      first[i] = '0;
    end
  end
`endif
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      a_slot_is_its_own   : assert (!valid_i || slot2_q == (pos_i[RingW-1:0] & ring_mask_i));
      a_line_stands_ready : assert (!takes2 || line_valid_i);
      a_fast_is_whole     : assert (!(valid_i && place_i && fast_i) || be_i == '1);
      a_complete_was_not  : assert (!(valid3_q && complete3 && !fast3_q) || done3[slot3_q] != lap3_q || fresh3_q);
    end
  end
`endif

endmodule

`default_nettype wire

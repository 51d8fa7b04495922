// From the completer request stream of AMD's UltraScale+ PCIe block (512 bits, DW-aligned, PG213) to plain lines.
//
// Memory writes become line pieces: a write that begins anywhere, ends anywhere and has any byte enables leaves as the
// lines of 64 bytes that it touches, each with a bit for each byte that is written. Requests that want an answer become
// read requests for cc_adapter. Works with straddle (two TLPs may share a beat, the second from byte 32 on) and
// without: only is_sop, is_eop and their pointers are looked at, tlast and tkeep are not.
//
// Guarantees
//   - Lines leave in the order of the link, every byte of a write in exactly one of them, `wr_first_o` with the first
//     line of a TLP and `wr_last_o` with its last. A write without any enabled byte leaves too, as one empty piece.
//   - A 64-byte write that is aligned to a line costs one and a half beats with straddle, two without, and the input
//     never stalls for it: up to two lines a beat are collected, one a cycle leaves, and 26 may wait.
//   - A request that wants an answer is offered when all writes in front of it have been taken (`wr_*`), never before.
//     Writes behind it do not wait for it. Read credits (`cq_np_req_o`) keep the block from delivering more reads than
//     there is room for, so reads do not block writes.
//   - Reads of more than a line, of another BAR, locked reads, I/O and atomic requests are offered with the status that
//     answers them; writes to another BAR and messages are dropped; each is counted, and what was counted changed
//     nothing.
//   - A TLP that the block discontinues leaves with no byte enabled from the line on in which that shows; it is
//     counted.
// Limits
//   - Two TLPs in a beat that fill the same place in a line, or of which one crosses a line, take two cycles; so do two
//     reads. Unaligned writes make more lines than beats. Both stall the input when they come long enough.
//   - Bytes that are not enabled have any value.
//   - The window of the BAR is at most as large as its aperture: only AddressW bits of the address are looked at.
// Latency: 7 cycles from a beat to the line that it completes, as wr_valid_o.
// Cost: about 5 x 600 registers, 32 x (576 + AddressW + 11) and 4 x 610 bits of LUTRAM, 2 x ReadDepth x 140 for reads.
// Twin in nic/model: none; the link of the model hands over whole writes.

`default_nettype none

module cq_adapter #(
  // Bits of an address in the BAR, 7 to 40.
  parameter int unsigned AddressW = 24,
  // The BAR that is served.
  parameter int unsigned BarId = 0,
  // Reads that may wait, a power of two from 2 to 32 (the block's credits end at 32).
  parameter int unsigned ReadDepth = 16
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  // m_axis_cq of the block.
  input  logic                    cq_tvalid_i,
  output logic                    cq_tready_o,
  input  logic [511:0]            cq_tdata_i,
  input  logic [pcie_pkg::CqUserW-1:0] cq_tuser_i,
  // pcie_cq_np_req of the block: one more read may come.
  output logic [1:0]              cq_np_req_o,

  // Lines written: address of the line in the BAR.
  output logic                    wr_valid_o,
  input  logic                    wr_ready_i,
  output logic [AddressW-1:0]     wr_address_o,
  output logic [511:0]            wr_data_o,
  output logic [63:0]             wr_be_o,
  output logic                    wr_first_o,
  output logic                    wr_last_o,

  // Requests that want an answer.
  output logic                    rd_valid_o,
  input  logic                    rd_ready_i,
  output pcie_pkg::read_request_t rd_request_o,

  // 0 to 3 in a cycle.
  output logic [1:0]              count_bad_accesses_o
);

  localparam int unsigned LineAddressW = AddressW - 6;
  // Lines of a TLP of 4 KiB, and one more: what is added to the first one's address.
  localparam int unsigned StepW = 7;
  localparam int unsigned MarkW = pcie_pkg::MarkW;
  localparam int unsigned UserW = pcie_pkg::CqDiscontinueLsb + 1;

  // Half a beat: no TLP begins elsewhere than at a half, so a half is of one TLP.
  typedef struct packed {
    logic       valid;
    // The TLP begins, or ends, here; the lane of its last DW.
    logic       sop;
    logic       eop;
    logic [2:0] eop_lane;
  } half_t;

  // What a half does.
  typedef struct packed {
    logic       write;
    // A request that wants an answer begins.
    logic       asks;
    logic       sop;
    logic       eop;
    // DWs of the line: where lane 0 of the half would go, first and last DW of its payload.
    logic [3:0] base;
    logic [3:0] first;
    logic [3:0] last;
  } part_t;

  // ---- Beats in. Ready comes from a register.
  logic             beat_valid, beat_ready;
  logic [511:0]     beat_data;
  logic [UserW-1:0] beat_user;
  logic [2:0]       unused_beats;

  fifo #(.Width(512 + UserW), .Depth(4)) u_beats (
    .clk_i,
    .rst_ni,
    .push_valid_i (cq_tvalid_i),
    .push_ready_o (cq_tready_o),
    .push_data_i  ({cq_tuser_i[UserW-1:0], cq_tdata_i}),
    .pop_valid_o  (beat_valid),
    .pop_ready_i  (beat_ready),
    .pop_data_o   ({beat_user, beat_data}),
    .count_o      (unused_beats)
  );

  // Parity and the fields of process hints.
  logic unused_user;
  assign unused_user = ^cq_tuser_i[pcie_pkg::CqUserW-1:UserW];

  // ---- Stage a: which half is of which TLP.
  logic         a_valid_q, a_load;
  logic [511:0] a_data_q;
  logic [63:0]  a_be_q;
  logic [7:0]   a_low_be_q, a_high_be_q;
  logic         a_void_q;
  half_t        a_low, a_high, a_low_q, a_high_q;
  logic         open_q, open_d;
  logic [1:0]   sop, eop;
  logic [1:0]   sop_ptr [2];
  logic [3:0]   eop_ptr [2];
  logic         high_is_second;

  always_comb begin
    sop        = beat_user[pcie_pkg::CqSopLsb+:2];
    eop        = beat_user[pcie_pkg::CqEopLsb+:2];
    sop_ptr[0] = beat_user[pcie_pkg::CqSopPtrLsb+:2];
    sop_ptr[1] = beat_user[pcie_pkg::CqSopPtrLsb+2+:2];
    eop_ptr[0] = beat_user[pcie_pkg::CqEopPtrLsb+:4];
    eop_ptr[1] = beat_user[pcie_pkg::CqEopPtrLsb+4+:4];
    // Pointers to starts are in units of 4 DWs: 0, or 2 for the upper half.
    high_is_second  = sop[1] && sop_ptr[1][1];
    a_low.sop       = sop[0] && !sop_ptr[0][1];
    a_low.eop       = eop[0] && !eop_ptr[0][3];
    a_low.eop_lane  = eop_ptr[0][2:0];
    a_low.valid     = a_low.sop || open_q;
    a_high.sop      = high_is_second || (sop[0] && sop_ptr[0][1]);
    a_high.eop      = (eop[0] && eop_ptr[0][3]) || (eop[1] && eop_ptr[1][3]);
    a_high.eop_lane = (eop[1] && eop_ptr[1][3]) ? eop_ptr[1][2:0] : eop_ptr[0][2:0];
    a_high.valid    = a_high.sop || (a_low.valid && !a_low.eop);
    open_d          = a_high.valid && !a_high.eop;
  end

  assign beat_ready = a_load;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      a_valid_q <= 1'b0;
      open_q    <= 1'b0;
    end else if (a_load) begin
      a_valid_q <= beat_valid;
      if (beat_valid) open_q <= open_d;
    end
    if (a_load) begin
      a_data_q    <= beat_data;
      a_be_q      <= beat_user[pcie_pkg::CqByteEnLsb+:64];
      a_void_q    <= beat_user[pcie_pkg::CqDiscontinueLsb];
      a_low_q     <= a_low;
      a_high_q    <= a_high;
      a_low_be_q  <= {beat_user[pcie_pkg::CqLastBeLsb+:4], beat_user[pcie_pkg::CqFirstBeLsb+:4]};
      a_high_be_q <= high_is_second
                   ? {beat_user[pcie_pkg::CqLastBeLsb+4+:4], beat_user[pcie_pkg::CqFirstBeLsb+4+:4]}
                   : {beat_user[pcie_pkg::CqLastBeLsb+:4], beat_user[pcie_pkg::CqFirstBeLsb+:4]};
    end
  end

  // ---- Stage b: what each half does, and where in a line its payload goes.
  pcie_pkg::cq_descriptor_t a_low_head, a_high_head;
  logic                     b_valid_q, b_load;
  logic [511:0]             b_data_q;
  logic [63:0]              b_be_q;
  logic [7:0]               b_low_be_q, b_high_be_q;
  logic                     b_void_q, b_joined_q;
  part_t                    b_low, b_high, b_low_q, b_high_q;
  logic                     open_write_q;
  logic [3:0]               open_base_q;
  logic [1:0]               bad;
  logic                     low_served, high_served, low_bad, high_bad;

  logic unused_heads;
  assign unused_heads = ^{a_low_head, a_high_head};
  assign a_low_head   = a_data_q[127:0];
  assign a_high_head = a_data_q[383:256];

  // A write to the BAR that is served.
  function automatic logic is_served(input logic [3:0] req_type, input logic [2:0] bar_id);
    return req_type == pcie_pkg::ReqMemWrite && bar_id == 3'(BarId);
  endfunction

  // Everything but a memory write and a message.
  function automatic logic wants_answer(input logic [3:0] req_type);
    return req_type != pcie_pkg::ReqMemWrite && !req_type[3];
  endfunction

  // What begins here is answered with neither data nor a taken write.
  function automatic logic is_bad(input logic [3:0] req_type, input logic [2:0] bar_id,
                                  input logic [10:0] dwords);
    return bar_id != 3'(BarId) || req_type > pcie_pkg::ReqMemWrite
        || (req_type == pcie_pkg::ReqMemRead && dwords > 11'(pcie_pkg::MaxReadDwords));
  endfunction

  assign low_served  = is_served(a_low_head.req_type, a_low_head.bar_id);
  assign high_served = is_served(a_high_head.req_type, a_high_head.bar_id);
  assign low_bad     = is_bad(a_low_head.req_type, a_low_head.bar_id, a_low_head.dwords);
  assign high_bad    = is_bad(a_high_head.req_type, a_high_head.bar_id, a_high_head.dwords);

  always_comb begin
    b_low.sop    = a_low_q.sop;
    b_low.eop    = a_low_q.eop;
    b_low.write  = a_low_q.valid && (a_low_q.sop ? low_served : open_write_q);
    b_low.asks   = a_low_q.valid && a_low_q.sop && wants_answer(a_low_head.req_type);
    // The descriptor is in front of the payload: lane 4 of the half in which a TLP begins is its first DW.
    b_low.base   = a_low_q.sop ? a_low_head.address[3:0] - 4'd4 : open_base_q;
    b_low.first  = a_low_q.sop ? a_low_head.address[3:0] : open_base_q;
    b_low.last   = b_low.base + {1'b0, a_low_q.eop ? a_low_q.eop_lane : 3'd7};
    b_high.sop   = a_high_q.sop;
    b_high.eop   = a_high_q.eop;
    b_high.write = a_high_q.valid && (a_high_q.sop ? high_served : b_low.write);
    b_high.asks  = a_high_q.valid && a_high_q.sop && wants_answer(a_high_head.req_type);
    b_high.base  = a_high_q.sop ? a_high_head.address[3:0] - 4'd4 : b_low.base + 4'd8;
    b_high.first = a_high_q.sop ? a_high_head.address[3:0] : b_high.base;
    b_high.last  = b_high.base + {1'b0, a_high_q.eop ? a_high_q.eop_lane : 3'd7};
    bad          = 2'(a_low_q.valid && a_low_q.sop && low_bad)
                 + 2'(a_high_q.valid && a_high_q.sop && high_bad)
                 + 2'(a_void_q && ((a_low_q.valid && a_low_q.eop) || (a_high_q.valid && a_high_q.eop)));
  end

  assign a_load = !a_valid_q || b_load;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      b_valid_q            <= 1'b0;
      count_bad_accesses_o <= '0;
    end else begin
      if (b_load) b_valid_q <= a_valid_q;
      count_bad_accesses_o <= (b_load && a_valid_q) ? bad : '0;
    end
    if (b_load) begin
      b_data_q    <= a_data_q;
      b_be_q      <= a_be_q;
      b_low_be_q  <= a_low_be_q;
      b_high_be_q <= a_high_be_q;
      b_void_q    <= a_void_q;
      b_joined_q  <= a_low_q.valid && !a_low_q.eop;
      b_low_q     <= b_low;
      b_high_q    <= b_high;
      if (a_valid_q) begin
        open_write_q <= b_high.write;
        open_base_q  <= b_high.base + 4'd8;
      end
    end
  end

  // ---- Stage k: can both halves go at once?
  logic         k_valid_q, k_load, k_go, k_room;
  logic [511:0] k_data_q;
  logic [63:0]  k_be_q;
  logic [7:0]   k_low_be_q, k_high_be_q;
  logic         k_void_q, k_joined_q, k_conflict_q, k_low_crosses_q, k_high_crosses_q, k_joint_crosses_q;
  logic         k_half_q, use_low, use_high;
  part_t        k_low_q, k_high_q;
  logic         b_low_crosses, b_high_crosses, b_overlap;

  assign b_low_crosses  = b_low_q.last < b_low_q.first;
  assign b_high_crosses = b_high_q.last < b_high_q.first;
  assign b_overlap      = !(b_low_q.last < b_high_q.first || b_high_q.last < b_low_q.first);
  assign b_load         = !b_valid_q || k_load;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      k_valid_q <= 1'b0;
      k_half_q  <= 1'b0;
    end else begin
      if (k_load) k_valid_q <= b_valid_q;
      if (k_go) k_half_q <= k_conflict_q && !k_half_q;
    end
    if (k_load) begin
      k_data_q          <= b_data_q;
      k_be_q            <= b_be_q;
      k_low_be_q        <= b_low_be_q;
      k_high_be_q       <= b_high_be_q;
      k_void_q          <= b_void_q;
      k_joined_q        <= b_joined_q;
      k_low_q           <= b_low_q;
      k_high_q          <= b_high_q;
      k_low_crosses_q   <= b_low_crosses;
      k_high_crosses_q  <= b_high_crosses;
      k_joint_crosses_q <= b_high_q.last < b_low_q.first;
      k_conflict_q      <= (b_low_q.write && b_high_q.write && !b_joined_q
                            && (b_low_crosses || b_high_crosses || b_overlap))
                        || (b_low_q.asks && b_high_q.asks);
    end
  end

  assign k_go     = k_valid_q && k_room;
  assign k_load   = !k_valid_q || (k_go && (!k_conflict_q || k_half_q));
  assign use_low  = !k_half_q;
  assign use_high = k_half_q || !k_conflict_q;

  // What goes in this step: a run of DWs (of the lower half, of both, or of the upper one), and perhaps a second TLP's.
  pcie_pkg::cq_descriptor_t k_low_head, k_high_head;
  logic [LineAddressW+3:0]  run_address;
  logic                     low_goes, high_goes, run, run_begins, run_ends, run_crosses, second;
  logic [3:0]               run_first, run_last, run_base;
  logic                     done0, done1;
  pcie_pkg::line_done_t                    d0, d1;
  logic [MarkW-1:0]         slot_q, slot_one, slot_two, slot_d, slot_read;
  logic [LineAddressW-1:0]  line_q, run_line;
  logic [StepW-1:0]         step_q, run_step, next_step;
  logic [3:0]               start_q, run_start;

  assign k_low_head  = k_data_q[127:0];
  assign k_high_head = k_data_q[383:256];
  assign low_goes    = use_low && k_low_q.write;
  assign high_goes   = use_high && k_high_q.write;
  assign second      = low_goes && high_goes && !k_joined_q;
  assign run         = low_goes || high_goes;
  assign run_begins  = low_goes ? k_low_q.sop : k_high_q.sop;
  assign run_first   = low_goes ? k_low_q.first : k_high_q.first;
  assign run_base    = low_goes ? k_low_q.base : k_high_q.base ^ 4'd8;
  assign run_address = low_goes ? k_low_head.address[LineAddressW+3:0]
                                : k_high_head.address[LineAddressW+3:0];

  always_comb begin
    if (low_goes && !(high_goes && k_joined_q)) begin
      run_last    = k_low_q.last;
      run_ends    = k_low_q.eop;
      run_crosses = k_low_crosses_q;
    end else begin
      run_last    = k_high_q.last;
      run_ends    = k_high_q.eop;
      run_crosses = low_goes ? k_joint_crosses_q : k_high_crosses_q;
    end
  end

  // The line that the run goes on with, or begins.
  assign run_line  = run_begins ? run_address[4+:LineAddressW] : line_q;
  assign run_step  = run_begins ? '0 : step_q;
  assign run_start = run_begins ? run_address[3:0] : start_q;
  assign next_step = run_step + 1'b1;

  // A slot is complete when its line is, or its TLP.
  assign done0 = run && (run_crosses || run_last == 4'd15 || run_ends);
  assign done1 = second ? k_high_q.last == 4'd15 || k_high_q.eop : run && run_crosses && run_ends;

  always_comb begin
    d0.line      = 34'(run_line);
    d0.step      = run_step;
    d0.first     = run_start;
    d0.last      = run_crosses ? 4'd15 : run_last;
    d0.tlp_first = run_step == '0;
    d0.tlp_last  = run_ends && !run_crosses;
    d0.empty     = k_void_q && run_ends;
    d1.line      = second ? 34'(k_high_head.address[4+:LineAddressW]) : 34'(run_line);
    d1.step      = second ? '0 : next_step;
    d1.first     = second ? k_high_q.first : 4'd0;
    d1.last      = second ? k_high_q.last : run_last;
    d1.tlp_first = second;
    d1.tlp_last  = second ? k_high_q.eop : run_ends;
    d1.empty     = k_void_q && (second ? k_high_q.eop : run_ends);
  end

  assign slot_one  = MarkW'(slot_q + 1'b1);
  assign slot_two  = MarkW'(slot_q + 2'd2);
  assign slot_d    = !k_go ? slot_q : done1 ? slot_two : done0 ? slot_one : slot_q;
  // A request in the upper half comes after what ends in the lower one.
  assign slot_read = (use_low && k_low_q.asks) ? slot_q : slot_d;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) slot_q <= '0;
    else         slot_q <= slot_d;
    if (k_go && run) begin
      line_q <= second ? k_high_head.address[4+:LineAddressW] : run_line;
      if (second) begin
        step_q  <= StepW'(k_high_q.last == 4'd15);
        start_q <= (k_high_q.last == 4'd15) ? 4'd0 : k_high_q.first;
      end else if (run_crosses || run_last == 4'd15) begin
        step_q  <= next_step;
        start_q <= 4'd0;
      end else begin
        step_q  <= run_step;
        start_q <= run_start;
      end
    end
  end

  // ---- Lines and requests go on.
  logic [MarkW-1:0]         left, taken, used;
  logic                     read_room;
  pcie_pkg::cq_descriptor_t ask_head;
  pcie_pkg::read_request_t  ask;
  logic [7:0]               ask_be;
  logic                     unused_head, asks;

  assign used = slot_q - left;
  always_ff @(posedge clk_i) begin
    // Two slots a step, one step on its way, and the open one.
    if (!rst_ni) k_room <= 1'b0;
    else         k_room <= used < MarkW'(pcie_pkg::Slots - 5) && read_room;
  end

  cq_lines #(.AddressW(AddressW)) u_lines (
    .clk_i,
    .rst_ni,
    .step_valid_i    (k_go),
    .step_data_i     (k_data_q),
    .step_be_i       (k_be_q),
    .step_run_i      (run),
    .step_crosses_i  (run_crosses),
    .step_first_i    (run_first),
    .step_last_i     (run_last),
    .step_base_i     (run_base),
    .step_second_i   (second),
    .second_first_i  (k_high_q.first),
    .second_last_i   (k_high_q.last),
    .second_base_i   (k_high_q.base ^ 4'd8),
    .step_slot_i     (pcie_pkg::SlotW'(slot_q)),
    .step_after_i    (slot_d),
    .step_done_i     ({done1, done0}),
    .step_done0_i    (d0),
    .step_done1_i    (d1),
    .left_o          (left),
    .taken_o         (taken),
    .wr_valid_o,
    .wr_ready_i,
    .wr_address_o,
    .wr_data_o,
    .wr_be_o,
    .wr_first_o,
    .wr_last_o
  );

  assign ask_head = (use_low && k_low_q.asks) ? k_low_head : k_high_head;
  assign unused_head = ^{ask_head.reserved_127, ask_head.bar_aperture, ask_head.reserved_79};
  assign ask_be   = (use_low && k_low_q.asks) ? k_low_be_q : k_high_be_q;
  assign asks     = k_go && ((use_low && k_low_q.asks) || (use_high && k_high_q.asks));

  always_comb begin
    ask.status          = pcie_pkg::StatusUnsupported;
    ask.is_read         = ask_head.req_type == pcie_pkg::ReqMemRead;
    ask.is_locked       = ask_head.req_type == pcie_pkg::ReqMemReadLocked;
    ask.address         = ask_head.address;
    ask.dwords          = ask_head.dwords;
    ask.first_be        = ask_be[3:0];
    ask.last_be         = ask_be[7:4];
    ask.requester_id    = ask_head.requester_id;
    ask.tag             = ask_head.tag;
    ask.tc              = ask_head.tc;
    ask.attr            = ask_head.attr;
    ask.address_type    = ask_head.address_type;
    ask.target_function = ask_head.target_function;
    if (ask_head.req_type == pcie_pkg::ReqMemRead && ask_head.bar_id == 3'(BarId)) begin
      ask.status = (ask_head.dwords <= 11'(pcie_pkg::MaxReadDwords)) ? pcie_pkg::StatusSuccess
                                                                     : pcie_pkg::StatusAbort;
    end
  end

  cq_reads #(.ReadDepth(ReadDepth)) u_reads (
    .clk_i,
    .rst_ni,
    .ask_valid_i   (asks),
    .ask_request_i (ask),
    .ask_mark_i    (slot_read),
    .room_o        (read_room),
    .taken_i       (taken),
    .rd_valid_o,
    .rd_ready_i,
    .rd_request_o,
    .cq_np_req_o
  );

  if (AddressW < 7 || AddressW > 40) begin : g_bad_address
    $fatal(1, "cq_adapter: AddressW must be 7 to 40 bits");
  end
  if (BarId > 5) begin : g_bad_bar
    $fatal(1, "cq_adapter: BarId must be 0 to 5");
  end
  if (ReadDepth < 2 || ReadDepth > 32) begin : g_bad_reads
    $fatal(1, "cq_adapter: ReadDepth must be a power of two from 2 to 32");
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      // No slot is taken that has not left.
      assert (used <= MarkW'(pcie_pkg::Slots));
      // What shares a step with another TLP is the end of its own.
      assert (!(k_go && second) || (k_low_q.eop && k_high_q.sop));
    end
  end
`endif

endmodule

`default_nettype wire

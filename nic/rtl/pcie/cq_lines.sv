// The back of cq_adapter: DWs of write TLPs are put in their places in lines, and the lines leave.
//
// A step is what of one beat goes at once: a run of DWs of one TLP, which may end one line and begin the next, and
// perhaps the first DWs of a second TLP. So a step fills at most two slots, the open one and the next.
//
// Guarantees
//   - A step is taken in every cycle; who gives it sees to it that at most 32 slots are between `left_o` and its own.
//   - Slots leave in order, each a line, one a cycle; DWs that were not written, and lines marked empty, have no byte
//     enabled.
//   - `left_o` and `taken_o` count the slots that have been read, and taken.
// Limits: the DWs of a step fill different places of a line. Bytes that are not enabled have any value.
// Latency: 4 cycles from the step that completes a line to wr_valid_o.
// Cost: 32 x (576 + 55) bits of LUTRAM, about 1,900 registers. Twin in nic/model: none.

`default_nettype none

module cq_lines #(
  // Bits of an address in the BAR, 7 to 40.
  parameter int unsigned AddressW = 24,
  localparam int unsigned SlotW = pcie_pkg::SlotW,
  localparam int unsigned MarkW = pcie_pkg::MarkW
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  input  logic                    step_valid_i,
  // The beat.
  input  logic [511:0]            step_data_i,
  input  logic [63:0]             step_be_i,
  // The run: DWs of the line (from the first on, around its end if it crosses it), and where DW 0 of the beat would go.
  input  logic                    step_run_i,
  input  logic                    step_crosses_i,
  input  logic [3:0]              step_first_i,
  input  logic [3:0]              step_last_i,
  input  logic [3:0]              step_base_i,
  // The second TLP; it crosses nothing.
  input  logic                    step_second_i,
  input  logic [3:0]              second_first_i,
  input  logic [3:0]              second_last_i,
  input  logic [3:0]              second_base_i,
  // The open slot, and the one after the step; which of the two are complete, and what is known of them.
  input  logic [SlotW-1:0]        step_slot_i,
  input  logic [MarkW-1:0]        step_after_i,
  input  logic [1:0]              step_done_i,
  input  pcie_pkg::line_done_t    step_done0_i,
  input  pcie_pkg::line_done_t    step_done1_i,

  output logic [MarkW-1:0]        left_o,
  output logic [MarkW-1:0]        taken_o,

  output logic                    wr_valid_o,
  input  logic                    wr_ready_i,
  output logic [AddressW-1:0]     wr_address_o,
  output logic [511:0]            wr_data_o,
  output logic [63:0]             wr_be_o,
  output logic                    wr_first_o,
  output logic                    wr_last_o
);

  localparam int unsigned LineAddressW = AddressW - 6;
  localparam int unsigned Slots = pcie_pkg::Slots;

  // First stage: for every DW of a line, whence it comes and into which of the two slots it goes.
  logic [511:0]     c_data_q;
  logic [63:0]      c_be_q;
  logic [15:0]      c_we_q, c_next_q, c_we, c_next;
  logic [3:0]       c_from_q [16];
  logic [3:0]       c_from [16];
  logic [1:0]       c_done_q;
  pcie_pkg::line_done_t            c_d0_q, c_d1_q;
  logic [SlotW-1:0] c_slot_q;
  logic [MarkW-1:0] c_after_q;
  logic             in_run, in_second;

  always_comb begin
    for (int i = 0; i < 16; i++) begin
      in_run    = step_run_i && (step_crosses_i ? (4'(i) >= step_first_i || 4'(i) <= step_last_i)
                                      : (4'(i) >= step_first_i && 4'(i) <= step_last_i));
      in_second = step_second_i && 4'(i) >= second_first_i && 4'(i) <= second_last_i;
      c_we[i]   = in_run || in_second;
      c_next[i] = in_second || (step_crosses_i && 4'(i) < step_first_i);
      c_from[i] = 4'(i) - (in_second ? second_base_i : step_base_i);
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      c_we_q    <= '0;
      c_done_q  <= '0;
      c_after_q <= '0;
    end else begin
      c_we_q    <= c_we & {16{step_valid_i}};
      c_done_q  <= step_done_i & {2{step_valid_i}};
      c_after_q <= step_after_i;
    end
    c_data_q <= step_data_i;
    c_be_q   <= step_be_i;
    c_next_q <= c_next;
    c_from_q <= c_from;
    c_d0_q   <= step_done0_i;
    c_d1_q   <= step_done1_i;
    c_slot_q <= step_slot_i;
  end

  // Second stage: DWs in their places, and the lines' addresses.
  logic [15:0]      d_we_q;
  logic [35:0]      d_dword_q [16];
  logic [SlotW-1:0] d_at_q [16];
  logic [1:0]       d_done_q;
  pcie_pkg::line_done_t            d_d0_q, d_d1_q;
  logic [SlotW-1:0] d_slot_q;
  logic [MarkW-1:0] d_after_q, ready_q;

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      d_we_q    <= '0;
      d_done_q  <= '0;
      d_after_q <= '0;
      ready_q   <= '0;
    end else begin
      d_we_q    <= c_we_q;
      d_done_q  <= c_done_q;
      d_after_q <= c_after_q;
      ready_q   <= d_after_q;
    end
    for (int i = 0; i < 16; i++) begin
      d_dword_q[i] <= {c_be_q[4*c_from_q[i]+:4], c_data_q[32*c_from_q[i]+:32]};
      d_at_q[i]    <= c_slot_q + SlotW'(c_next_q[i]);
    end
    d_d0_q      <= c_d0_q;
    d_d1_q      <= c_d1_q;
    d_d0_q.line <= c_d0_q.line + 34'(c_d0_q.step);
    d_d1_q.line <= c_d1_q.line + 34'(c_d1_q.step);
    d_slot_q <= c_slot_q;
  end

  // The slots: one RAM a DW of the line, so that the two slots of a beat are written at once; what is known of a
  // slot lies in two RAMs, of even and of odd ones.
  logic [35:0]      out_dword [16];
  pcie_pkg::line_done_t            even_done [Slots/2];
  pcie_pkg::line_done_t            odd_done [Slots/2];
  pcie_pkg::line_done_t            out_done;
  logic [MarkW-1:0] out_q;
  logic             out_load;

  for (genvar i = 0; i < 16; i++) begin : g_dwords
    (* ram_style = "distributed" *)
    logic [35:0] mem [Slots];
    always_ff @(posedge clk_i) begin
      if (d_we_q[i]) mem[d_at_q[i]] <= d_dword_q[i];
    end
    assign out_dword[i] = mem[out_q[SlotW-1:0]];
  end

  logic [SlotW-2:0] even_at, odd_at;
  assign odd_at  = d_slot_q[SlotW-1:1];
  assign even_at = (SlotW-1)'(d_slot_q[SlotW-1:1] + (SlotW-1)'(d_slot_q[0]));
  always_ff @(posedge clk_i) begin
    if (d_done_q[d_slot_q[0]]) even_done[even_at] <= d_slot_q[0] ? d_d1_q : d_d0_q;
    if (d_done_q[!d_slot_q[0]]) odd_done[odd_at] <= d_slot_q[0] ? d_d0_q : d_d1_q;
  end
  logic unused_step;
  assign unused_step = ^out_done.step;
  assign out_done = out_q[0] ? odd_done[out_q[SlotW-1:1]] : even_done[out_q[SlotW-1:1]];

  // Lines out.
  logic             wr_valid_q;
  logic [15:0]      out_mask;
  logic [MarkW-1:0] taken_q;

  assign out_load = out_q != ready_q && (!wr_valid_q || wr_ready_i);
  always_comb begin
    for (int i = 0; i < 16; i++) begin
      out_mask[i] = !out_done.empty && 4'(i) >= out_done.first && 4'(i) <= out_done.last;
    end
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) begin
      wr_valid_q <= 1'b0;
      out_q      <= '0;
      taken_q    <= '0;
    end else begin
      if (out_load) wr_valid_q <= 1'b1;
      else if (wr_ready_i) wr_valid_q <= 1'b0;
      out_q   <= MarkW'(out_q + MarkW'(out_load));
      taken_q <= MarkW'(taken_q + MarkW'(wr_valid_q && wr_ready_i));
    end
    if (out_load) begin
      wr_address_o <= {LineAddressW'(out_done.line), 6'd0};
      wr_first_o   <= out_done.tlp_first;
      wr_last_o    <= out_done.tlp_last;
      for (int i = 0; i < 16; i++) begin
        wr_data_o[32*i+:32] <= out_dword[i][31:0];
        wr_be_o[4*i+:4]     <= out_dword[i][35:32] & {4{out_mask[i]}};
      end
    end
  end
  assign wr_valid_o = wr_valid_q;
  assign left_o     = out_q;
  assign taken_o    = taken_q;

`ifndef SYNTHESIS
  logic                wait_q, wait_first_q, wait_last_q;
  logic [AddressW-1:0] wait_address_q;
  logic [511:0]        wait_data_q;
  logic [63:0]         wait_be_q;
  logic                in_tlp_q;
  always_ff @(posedge clk_i) begin
    wait_q         <= rst_ni && wr_valid_o && !wr_ready_i;
    wait_address_q <= wr_address_o;
    wait_data_q    <= wr_data_o;
    wait_be_q      <= wr_be_o;
    wait_first_q   <= wr_first_o;
    wait_last_q    <= wr_last_o;
    if (!rst_ni) begin
      in_tlp_q <= 1'b0;
    end else begin
      // An offered line stands still.
      if (wait_q) begin
        assert (wr_valid_o && wr_address_o == wait_address_q && wr_data_o == wait_data_q
                && wr_be_o == wait_be_q && wr_first_o == wait_first_q && wr_last_o == wait_last_q);
      end
      // TLPs leave whole, one behind the other.
      if (wr_valid_o && wr_ready_i) begin
        assert (wr_first_o == !in_tlp_q);
        in_tlp_q <= !wr_last_o;
      end
    end
  end
`endif

endmodule

`default_nettype wire

// Answers requests on the completer completion stream of AMD's UltraScale+ PCIe block (512 bits, PG213), reading
// registers for them.
//
// Guarantees
//   - Every request gets one completion, in order, with the byte count and lower address that PCIe asks for.
//   - A read of up to a line, from any DW on, becomes reads of the aligned 8-byte words that it touches, in order of
//     address, each asked for once; bytes that the request does not enable come along, as PCIe permits.
//   - A read of no bytes reads nothing: it is answered with a DW of zeros once what was in front of it is done.
//   - Anything else is answered without data, with the status that the request brings.
// Limits: one request at a time; registers are no stream. Completions begin in lane 0, one TLP a beat, which the block
// takes with straddle and without.
// Latency: 3 cycles, and 2 for each word beside what the registers take. Cost: about 750 registers.
// Twin in nic/model: none.

`default_nettype none

module cc_adapter #(
  // Bits of an address in the BAR, as in cq_adapter.
  parameter int unsigned AddressW = 24
) (
  input  logic                    clk_i,
  input  logic                    rst_ni,

  // Requests, from cq_adapter.
  input  logic                    rd_valid_i,
  output logic                    rd_ready_o,
  input  pcie_pkg::read_request_t rd_request_i,

  // Registers: an aligned 8-byte word a time; the answer comes in any later cycle.
  output logic                    reg_valid_o,
  input  logic                    reg_ready_i,
  output logic [AddressW-1:0]     reg_address_o,
  input  logic                    answer_valid_i,
  input  logic [63:0]             answer_data_i,

  // s_axis_cc of the block.
  output logic                    cc_tvalid_o,
  input  logic                    cc_tready_i,
  output logic [511:0]            cc_tdata_o,
  output logic [15:0]             cc_tkeep_o,
  output logic                    cc_tlast_o,
  output logic [pcie_pkg::CcUserW-1:0] cc_tuser_o
);

  localparam int unsigned WordAddressW = AddressW - 3;
  localparam int unsigned HeadDwords = 3;

  typedef enum logic [2:0] {StIdle, StAsk, StAnswer, StHead, StFirst, StSecond} state_e;

  state_e                   state_q, state_d;
  pcie_pkg::read_request_t  request_q;
  logic [WordAddressW-1:0]  word_q;
  // Words still to read, and the place of the next one among those read.
  logic [3:0]               left_q;
  logic [3:0]               place_q;
  logic [575:0]             words_q;
  logic                     reads_q;

  pcie_pkg::cc_descriptor_t head, head_q;
  logic [15:0][31:0]        payload, payload_q;
  logic [10:0]              dwords;
  logic [12:0]              byte_count;
  logic [1:0]               first_gap, last_gap;
  logic [4:0]               total, total_q;
  logic [1:0]               tail, tail_q;

  // Registers are asked for the words that the read touches.
  logic [3:0] touched;
  assign touched = 4'((5'(rd_request_i.dwords) + 5'(rd_request_i.address[0]) + 5'd1) >> 1);

  assign rd_ready_o    = state_q == StIdle;
  assign reg_valid_o   = state_q == StAsk;
  assign reg_address_o = {word_q, 3'd0};

  always_comb begin
    state_d = state_q;
    unique case (state_q)
      StIdle: begin
        if (rd_valid_i) begin
          state_d = StHead;
          if (rd_request_i.status == pcie_pkg::StatusSuccess && rd_request_i.first_be != '0) state_d = StAsk;
        end
      end
      StAsk:    if (reg_ready_i) state_d = StAnswer;
      StAnswer: if (answer_valid_i) state_d = (left_q == 4'd1) ? StHead : StAsk;
      StHead:   state_d = StFirst;
      StFirst:  if (cc_tready_i) state_d = (total_q > 5'd16) ? StSecond : StIdle;
      default:  if (cc_tready_i) state_d = StIdle;
    endcase
  end

  always_ff @(posedge clk_i) begin
    if (!rst_ni) state_q <= StIdle;
    else         state_q <= state_d;
    if (state_q == StIdle) begin
      request_q <= rd_request_i;
      reads_q   <= rd_request_i.status == pcie_pkg::StatusSuccess;
      word_q    <= rd_request_i.address[1+:WordAddressW];
      left_q    <= touched;
      place_q   <= '0;
      words_q   <= '0;
    end
    if (state_q == StAnswer && answer_valid_i) begin
      words_q[64*place_q+:64] <= answer_data_i;
      word_q           <= word_q + 1'b1;
      left_q           <= left_q - 1'b1;
      place_q          <= place_q + 1'b1;
    end
    if (state_q == StHead) begin
      head_q    <= head;
      payload_q <= payload;
      total_q   <= total;
      tail_q    <= tail;
    end
  end

  // Bytes in front of the first enabled one in its DW, and behind the last enabled one.
  always_comb begin
    unique casez (request_q.first_be)
      4'b???1: first_gap = 2'd0;
      4'b??10: first_gap = 2'd1;
      4'b?100: first_gap = 2'd2;
      4'b1000: first_gap = 2'd3;
      default: first_gap = 2'd0;
    endcase
    unique casez ((request_q.dwords == 11'd1) ? request_q.first_be : request_q.last_be)
      4'b1???: last_gap = 2'd0;
      4'b01??: last_gap = 2'd1;
      4'b001?: last_gap = 2'd2;
      default: last_gap = 2'd3;
    endcase
  end

  // What was not a memory read counts as 4 bytes at 0; a read of no bytes as one.
  always_comb begin
    byte_count = 13'd4;
    if (request_q.is_read) begin
      byte_count = (request_q.first_be == '0) ? 13'd1
                 : {request_q.dwords, 2'b00} - 13'(first_gap) - 13'(last_gap);
    end
    dwords                   = reads_q ? request_q.dwords : '0;
    total                    = 5'(HeadDwords) + 5'(dwords);
    // Lane of the last DW in a second beat.
    tail                     = 2'(total - 5'd17);
    head                     = '0;
    head.attr                = request_q.attr;
    head.tc                  = request_q.tc;
    head.target_function     = request_q.target_function;
    head.tag                 = request_q.tag;
    head.requester_id        = request_q.requester_id;
    head.status              = request_q.status;
    head.dwords              = dwords;
    head.locked              = request_q.is_locked;
    head.byte_count          = byte_count;
    head.address_type        = request_q.address_type;
    head.lower_address       = request_q.is_read ? {request_q.address[4:0], first_gap} : '0;
    payload                  = request_q.address[0] ? words_q[32+:512] : words_q[0+:512];
  end

  logic unused_word;
  assign unused_word = ^words_q[575:544];

  assign cc_tvalid_o = state_q == StFirst || state_q == StSecond;

  always_comb begin
    cc_tdata_o = {payload_q[12:0], head_q};
    cc_tlast_o = total_q <= 5'd16;
    cc_tkeep_o = '1;
    cc_tuser_o = '0;
    if (state_q == StSecond) begin
      cc_tdata_o = 512'(payload_q[15:13]);
      cc_tlast_o = 1'b1;
      cc_tkeep_o = (16'd2 << tail_q) - 16'd1;
      cc_tuser_o[pcie_pkg::CcEopPtrLsb+:4] = 4'(tail_q);
    end else begin
      cc_tuser_o[pcie_pkg::CcSopLsb] = 1'b1;
      if (cc_tlast_o) begin
        cc_tkeep_o = 16'((17'd1 << total_q) - 17'd1);
        cc_tuser_o[pcie_pkg::CcEopPtrLsb+:4] = 4'(total_q - 5'd1);
      end
    end
    cc_tuser_o[pcie_pkg::CcEopLsb] = cc_tlast_o;
  end

  if (AddressW < 7 || AddressW > 40) begin : g_bad_address
    $fatal(1, "cc_adapter: AddressW must be 7 to 40 bits");
  end

`ifndef SYNTHESIS
  always_ff @(posedge clk_i) begin
    if (rst_ni) begin
      assert (!(answer_valid_i && state_q != StAnswer));
      assert (!(rd_valid_i && rd_request_i.status == pcie_pkg::StatusSuccess)
              || (rd_request_i.dwords >= 11'd1 && rd_request_i.dwords <= 11'(pcie_pkg::MaxReadDwords)));
    end
  end
`endif

endmodule

`default_nettype wire

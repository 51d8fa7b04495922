// The capability list: what software finds of the NIC's sizes, word by word (TLV; see spec/generated/docs/formats.md).
//
// Combinational; `index_i` is the word's index, and beyond the list its end marker is given.
// Twin: Capabilities::write in spec/src/caps.rs, in the same order.

`default_nettype none

module capability_list #(
  parameter int unsigned NumQueues = 64,
  parameter int unsigned AddressW = 22,
  // Interfaces that are there: bit i for interface i.
  parameter logic [15:0] Interfaces = 16'h0002,
  // Features that are there: bit i for feature i.
  parameter logic [15:0] Features = '0
) (
  input  logic [31:0]         span_lines_i,
  input  logic [31:0]         pool_lines_i,
  input  logic [31:0]         contexts_i,
  input  logic [31:0]         max_frame_bytes_i,
  input  logic [AddressW-1:0] aperture_i,
  input  logic [4:0]          stride_log2_i,

  input  logic [4:0]          index_i,
  output logic [63:0]         word_o
);

  function automatic logic [63:0] head(input logic [7:0] kind, input logic [15:0] bytes);
    return {32'd0, bytes, 8'd0, kind};
  endfunction

  always_comb begin
    unique case (index_i)
      5'd0:    word_o = head(nic_pkg::CapabilityReorderSpan, 16'd4);
      5'd1:    word_o = {32'd0, span_lines_i};
      5'd2:    word_o = head(nic_pkg::CapabilityQueues, 16'd4);
      5'd3:    word_o = 64'(NumQueues);
      5'd4:    word_o = head(nic_pkg::CapabilityWindowKind, 16'd4);
      // Observed: the NIC sees writes, so nothing is ever escaped.
      5'd5:    word_o = 64'd1;
      5'd6:    word_o = head(nic_pkg::CapabilityInterfaces, 16'd4);
      5'd7:    word_o = {48'd0, Interfaces};
      5'd8:    word_o = head(nic_pkg::CapabilityPoolLines, 16'd4);
      5'd9:    word_o = {32'd0, pool_lines_i};
      5'd10:   word_o = head(nic_pkg::CapabilityContexts, 16'd4);
      5'd11:   word_o = {32'd0, contexts_i};
      5'd12:   word_o = head(nic_pkg::CapabilityMaxFrame, 16'd4);
      5'd13:   word_o = {32'd0, max_frame_bytes_i};
      5'd14:   word_o = head(nic_pkg::CapabilityAperture, 16'd16);
      5'd15:   word_o = 64'(aperture_i);
      5'd16:   word_o = 64'd1 << stride_log2_i;
      5'd17:   word_o = head(nic_pkg::CapabilityFeatures, 16'd4);
      5'd18:   word_o = {48'd0, Features};
      default: word_o = head(nic_pkg::CapabilityEnd, 16'd0);
    endcase
  end

endmodule

`default_nettype wire

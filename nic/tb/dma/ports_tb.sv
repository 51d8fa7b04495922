// Both DMA ports with two engines that are no more than their port lists, for the bench ports.
`default_nettype none

module ports_tb (
  input  logic         clk_i,
  input  logic         rst_ni,
  input  logic         clear_i,
  output logic         busy_o,

  input  logic [1:0]   req_valid_i,
  output logic [1:0]   req_ready_o,
  input  logic [127:0] req_address_i,
  input  logic [25:0]  req_bytes_i,
  input  logic [9:0]   req_tag_i,
  output logic [1:0]   cpl_valid_o,
  output logic [4:0]   cpl_tag_o,
  output logic [511:0] cpl_data_o,
  output logic         cpl_last_o,
  output logic         cpl_error_o,

  output logic         rdreq_valid_o,
  input  logic         rdreq_ready_i,
  output logic [63:0]  rdreq_address_o,
  output logic [12:0]  rdreq_bytes_o,
  output logic [3:0]   rdreq_tag_o,
  input  logic         rdcpl_valid_i,
  input  logic [3:0]   rdcpl_tag_i,
  input  logic [511:0] rdcpl_data_i,
  input  logic         rdcpl_last_i,
  input  logic         rdcpl_error_i,

  input  logic [2:0]    wr_valid_i,
  output logic [2:0]    wr_ready_o,
  input  logic [191:0]  wr_address_i,
  input  logic [1535:0] wr_data_i,
  input  logic [20:0]   wr_bytes_i,
  output logic          dmawr_valid_o,
  input  logic          dmawr_ready_i,
  output logic [63:0]   dmawr_address_o,
  output logic [511:0]  dmawr_data_o,
  output logic [6:0]    dmawr_bytes_o
);

  logic read_busy, write_busy;
  assign busy_o = read_busy || write_busy;

  read_port #(.Engines(2), .EngineTagW(5), .Tags(16)) u_read (
    .clk_i, .rst_ni, .clear_i, .busy_o(read_busy),
    .req_valid_i, .req_ready_o, .req_address_i, .req_bytes_i, .req_tag_i,
    .cpl_valid_o, .cpl_tag_o, .cpl_data_o, .cpl_last_o, .cpl_error_o,
    .rdreq_valid_o, .rdreq_ready_i, .rdreq_address_o, .rdreq_bytes_o, .rdreq_tag_o,
    .rdcpl_valid_i, .rdcpl_tag_i, .rdcpl_data_i, .rdcpl_last_i, .rdcpl_error_i
  );

  write_port #(.Engines(3)) u_write (
    .clk_i, .rst_ni, .busy_o(write_busy), .wr_valid_i, .wr_ready_o, .wr_address_i, .wr_data_i, .wr_bytes_i,
    .dmawr_valid_o, .dmawr_ready_i, .dmawr_address_o, .dmawr_data_o, .dmawr_bytes_o
  );

endmodule

`default_nettype wire

// What comes in at BAR 0, one or two lines a cycle: lines for mmio, for any other engine, and for the registers.
//
// Guarantees: those of mmio/bar_ingress.sv, or with two lanes of mmio/pair_ingress.sv. Latency 1 cycle.
// Cost: theirs, and NumQueues x 4 bits a lane. Twin: nic/model/src/bar.rs.

`default_nettype none

module ingress #(
  parameter int unsigned NumQueues = 64,
  // log2 of the lines of the longest window.
  parameter int unsigned LineW = 6,
  // Bits of an offset in the BAR, 12 to 40.
  parameter int unsigned AddressW = 22,
  // Lines a cycle, 1 or 2.
  parameter int unsigned Lanes = 1,
  localparam int unsigned QueueW = (NumQueues > 1) ? $clog2(NumQueues) : 1
) (
  input  logic                clk_i,
  input  logic                rst_ni,

  // Straps: offset of the first window, log2 of the bytes from one to the next, lines of a window less 1.
  input  logic [AddressW-1:0] aperture_i,
  input  logic [4:0]          stride_log2_i,
  input  logic [LineW-1:0]    window_mask_i,

  // Nothing is taken; a register write is having its effect.
  input  logic                hold_i,
  input  logic                busy_i,

  input  logic [Lanes-1:0]    wr_valid_i,
  output logic                wr_ready_o,
  input  logic [Lanes-1:0][AddressW-1:0] wr_address_i,
  input  logic [Lanes-1:0][511:0] wr_data_i,
  input  logic [Lanes-1:0][63:0] wr_be_i,
  input  logic [Lanes-1:0]    wr_first_i,
  input  logic [Lanes-1:0]    wr_last_i,

  // Which engine has a queue, as the registers say: a value of nic_pkg's interface, 0 for none.
  input  logic                route_we_i,
  input  logic [QueueW-1:0]   route_queue_i,
  input  logic [3:0]          route_i,

  // To mmio.
  output logic [Lanes-1:0]    mmio_valid_o,
  input  logic                mmio_ready_i,
  output logic [Lanes-1:0][QueueW-1:0] mmio_queue_o,
  output logic [Lanes-1:0][LineW-1:0] mmio_line_o,
  output logic [Lanes-1:0][511:0] mmio_data_o,
  output logic [Lanes-1:0][63:0] mmio_be_o,
  output logic [Lanes-1:0]    mmio_whole_o,
  output logic [Lanes-1:0]    mmio_first_o,
  output logic [Lanes-1:0]    mmio_last_o,

  // To any other engine.
  output logic                piece_valid_o,
  input  logic                piece_ready_i,
  output logic [3:0]          piece_route_o,
  output logic [QueueW-1:0]   piece_queue_o,
  output logic [LineW-1:0]    piece_line_o,
  output logic [511:0]        piece_data_o,
  output logic [63:0]         piece_be_o,
  output logic                piece_whole_o,
  output logic                piece_first_o,
  output logic                piece_last_o,

  // To the registers.
  output logic                register_valid_o,
  input  logic                register_ready_i,
  output logic [AddressW-1:0] register_address_o,
  output logic [63:0]         register_value_o,

  output logic                is_idle_o,
  output logic                count_bad_accesses_o
);

  if (Lanes < 1 || Lanes > 2) begin : g_bad_lanes
    $fatal(1, "ingress: Lanes must be 1 or 2");
  end

  // A lane has a copy.
  logic [Lanes-1:0][QueueW-1:0] look_queue;
  logic [Lanes-1:0][3:0]        route;

  for (genvar i = 0; i < int'(Lanes); i++) begin : g_route
    table_ram #(.Width(4), .Depth(1 << QueueW)) u_routes (
      .clk_i, .we_i(route_we_i), .waddr_i(route_queue_i), .wdata_i(route_i), .raddr_i(look_queue[i]),
      .rdata_o(route[i])
    );
  end

  if (Lanes == 1) begin : g_one
    logic any_valid, is_mmio;

    bar_ingress #(.NumQueues(NumQueues), .LineW(LineW), .AddressW(AddressW)) u_bar (
      .clk_i, .rst_ni, .aperture_i, .stride_log2_i, .window_mask_i, .hold_i,
      .wr_valid_i, .wr_ready_o, .wr_address_i, .wr_data_i, .wr_be_i, .wr_first_i, .wr_last_i,
      .route_queue_o(look_queue), .route_i(route),
      .piece_valid_o(any_valid), .piece_ready_i(is_mmio ? mmio_ready_i : piece_ready_i), .piece_route_o,
      .piece_queue_o, .piece_line_o, .piece_data_o, .piece_be_o, .piece_whole_o, .piece_first_o, .piece_last_o,
      .register_valid_o, .register_ready_i, .register_address_o, .register_value_o, .is_idle_o,
      .count_bad_accesses_o
    );
    assign is_mmio       = piece_route_o == 4'(nic_pkg::QueueControlIfaceMmio);
    assign mmio_valid_o  = any_valid && is_mmio;
    assign piece_valid_o = any_valid && !is_mmio;
    assign mmio_queue_o  = piece_queue_o;
    assign mmio_line_o   = piece_line_o;
    assign mmio_data_o   = piece_data_o;
    assign mmio_be_o     = piece_be_o;
    assign mmio_whole_o  = piece_whole_o;
    assign mmio_first_o  = piece_first_o;
    assign mmio_last_o   = piece_last_o;

    // Nothing is taken with a register write, so nothing has to stand behind one.
    logic unused;
    assign unused = busy_i;
  end else if (Lanes == 2) begin : g_two
    pair_ingress #(.NumQueues(NumQueues), .LineW(LineW), .AddressW(AddressW)) u_pair (
      .clk_i, .rst_ni, .aperture_i, .stride_log2_i, .window_mask_i, .hold_i, .busy_i,
      .wr_valid_i, .wr_ready_o, .wr_address_i, .wr_data_i, .wr_be_i, .wr_first_i, .wr_last_i,
      .route_queue_o(look_queue), .route_i(route),
      .pair_valid_o(mmio_valid_o), .pair_ready_i(mmio_ready_i), .pair_queue_o(mmio_queue_o),
      .pair_line_o(mmio_line_o), .pair_data_o(mmio_data_o), .pair_be_o(mmio_be_o), .pair_whole_o(mmio_whole_o),
      .pair_first_o(mmio_first_o), .pair_last_o(mmio_last_o),
      .piece_valid_o, .piece_ready_i, .piece_route_o, .piece_queue_o, .piece_line_o, .piece_data_o, .piece_be_o,
      .piece_whole_o, .piece_first_o, .piece_last_o,
      .register_valid_o, .register_ready_i, .register_address_o, .register_value_o, .is_idle_o,
      .count_bad_accesses_o
    );
  end

endmodule

`default_nettype wire

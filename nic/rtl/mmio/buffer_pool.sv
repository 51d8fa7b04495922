// The buffer pool: the on-NIC memory that all queues share, line by line, and the order of each queue's lines.
//
// A line is taken with the first byte that arrives for it and given back when it has left for the wire (HotOS'25 3.3:
// "dynamically manages on-NIC memory, similar to many switches"). What has arrived out of order lies here too: the
// reorder unit's Data Buffer is not a memory of its own, so nothing is copied.
//
// Links: a line and the next one of its queue are joined when the later of the two is taken. If that is the next one,
// the link is written for its predecessor (`successor`), else with the line itself (`own`). So both tables have one
// write port, and either order costs one cycle.
//
// Guarantees
//   - Bytes not enabled are unchanged by a store; a load sees every store of the cycles before.
//   - `resolve_next_o` and `chain_next_o` are the next line of the one named in the cycle before.
//   - What a load gave stands until the next load of its kind.
// Cost: Lines x (512 + 5 x PtrW) bits of RAM. Twin: nic/model/src/mmio/buffer_pool.rs.

`default_nettype none

module buffer_pool #(
  // Lines of 64 bytes: 2 to 65536.
  parameter int unsigned Lines = 1024,
  localparam int unsigned PtrW = $clog2(Lines),
  localparam int unsigned CountW = $clog2(Lines + 1)
) (
  input  logic              clk_i,
  input  logic              rst_ni,

  // Free lines.
  output logic              take_valid_o,
  input  logic              take_ready_i,
  output logic [PtrW-1:0]   take_line_o,
  output logic              take_two_o,
  input  logic              give_valid_i,
  input  logic [PtrW-1:0]   give_line_i,
  output logic [CountW-1:0] free_o,

  // Bytes.
  input  logic              store_valid_i,
  input  logic [PtrW-1:0]   store_line_i,
  input  logic [63:0]       store_be_i,
  input  logic [511:0]      store_data_i,
  // The first word of a line, which may be a header, and the others.
  input  logic              head_valid_i,
  input  logic [PtrW-1:0]   head_line_i,
  output logic [63:0]       head_data_o,
  input  logic              rest_valid_i,
  input  logic [PtrW-1:0]   rest_line_i,
  output logic [511:64]     rest_data_o,

  // Links.
  input  logic              successor_we_i,
  input  logic [PtrW-1:0]   successor_line_i,
  input  logic [PtrW-1:0]   successor_next_i,
  input  logic              own_we_i,
  input  logic [PtrW-1:0]   own_line_i,
  input  logic              own_known_i,
  input  logic [PtrW-1:0]   own_next_i,
  input  logic [PtrW-1:0]   resolve_line_i,
  output logic [PtrW-1:0]   resolve_next_o,
  input  logic [PtrW-1:0]   chain_line_i,
  output logic [PtrW-1:0]   chain_next_o
);

  if (Lines < 2 || Lines > 65536) begin : g_bad_lines
    $fatal(1, "buffer_pool: Lines must be 2 to 65536");
  end

  free_list #(.Count(Lines)) u_free (
    .clk_i, .rst_ni,
    .take_valid_o, .take_ready_i, .take_name_o(take_line_o), .take_two_o,
    .give_valid_i, .give_name_i(give_line_i),
    .free_o
  );

  // The first word of a line lies apart: it is asked for a cycle before the others, whose RAM is large, so that its
  // address reaches it out of a register of its own. No line is stored and loaded in one cycle but one whose load is
  // not looked at.
  (* ram_style = (Lines <= 128) ? "distributed" : "auto", no_rw_check *)
  logic [63:0]   header [Lines];
  (* ram_style = "block", no_rw_check *)
  logic [511:64] rest [Lines];
  always_ff @(posedge clk_i) begin
    if (store_valid_i) begin
      for (int i = 0; i < 8; i++) begin
        if (store_be_i[i]) header[store_line_i][8*i +: 8] <= store_data_i[8*i +: 8];
      end
      for (int i = 8; i < 64; i++) begin
        if (store_be_i[i]) rest[store_line_i][8*i +: 8] <= store_data_i[8*i +: 8];
      end
    end
    if (head_valid_i) head_data_o <= header[head_line_i];
    if (rest_valid_i) rest_data_o <= rest[rest_line_i];
  end

  logic [PtrW-1:0] successor_a, successor_b;
  logic [PtrW:0]   own_a, own_b;

  table_ram #(.Width(PtrW), .Depth(Lines), .ComparesLate(Lines > 128)) u_successor_a (
    .clk_i, .we_i(successor_we_i), .waddr_i(successor_line_i), .wdata_i(successor_next_i), .raddr_i(resolve_line_i),
    .rdata_o(successor_a)
  );
  table_ram #(.Width(PtrW), .Depth(Lines), .ComparesLate(Lines > 128)) u_successor_b (
    .clk_i, .we_i(successor_we_i), .waddr_i(successor_line_i), .wdata_i(successor_next_i), .raddr_i(chain_line_i),
    .rdata_o(successor_b)
  );
  table_ram #(.Width(PtrW + 1), .Depth(Lines), .ComparesLate(Lines > 128)) u_own_a (
    .clk_i, .we_i(own_we_i), .waddr_i(own_line_i), .wdata_i({own_known_i, own_next_i}), .raddr_i(resolve_line_i),
    .rdata_o(own_a)
  );
  table_ram #(.Width(PtrW + 1), .Depth(Lines), .ComparesLate(Lines > 128)) u_own_b (
    .clk_i, .we_i(own_we_i), .waddr_i(own_line_i), .wdata_i({own_known_i, own_next_i}), .raddr_i(chain_line_i),
    .rdata_o(own_b)
  );
  assign resolve_next_o = own_a[PtrW] ? own_a[PtrW-1:0] : successor_a;
  assign chain_next_o   = own_b[PtrW] ? own_b[PtrW-1:0] : successor_b;

endmodule

`default_nettype wire

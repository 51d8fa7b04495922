// The read requests of an engine's two parts in one port: what the others wait for first, then payload.
//
// Guarantees: requests of a part keep their order; a part's answers carry its own tag again. The first part goes before
// the second, since it asks for little and everything else waits for it.
// Latency: 1 cycle. One request a cycle. Cost: 90 registers. Twin in nic/model: none, the model asks in order of turns.

`default_nettype none

module read_join #(
  // Bits of the tags of the parts. The joined tag's uppermost bit tells the first part (1) from the second (0).
  parameter int unsigned FirstTagW = 4,
  parameter int unsigned SecondTagW = 7,
  localparam int unsigned TagW = 1 + ((SecondTagW > FirstTagW) ? SecondTagW : FirstTagW)
) (
  input  logic                  clk_i,
  input  logic                  rst_ni,

  input  logic                  first_valid_i,
  output logic                  first_ready_o,
  input  logic [63:0]           first_address_i,
  input  logic [12:0]           first_bytes_i,
  input  logic [FirstTagW-1:0]  first_tag_i,
  output logic                  first_cpl_valid_o,
  output logic [FirstTagW-1:0]  first_cpl_tag_o,

  input  logic                  second_valid_i,
  output logic                  second_ready_o,
  input  logic [63:0]           second_address_i,
  input  logic [12:0]           second_bytes_i,
  input  logic [SecondTagW-1:0] second_tag_i,
  output logic                  second_cpl_valid_o,
  output logic [SecondTagW-1:0] second_cpl_tag_o,

  output logic                  rdreq_valid_o,
  input  logic                  rdreq_ready_i,
  output logic [63:0]           rdreq_address_o,
  output logic [12:0]           rdreq_bytes_o,
  output logic [TagW-1:0]       rdreq_tag_o,
  input  logic                  rdcpl_valid_i,
  input  logic [TagW-1:0]       rdcpl_tag_i
);

  logic            valid_q, is_free;
  logic [63:0]     address_q;
  logic [12:0]     bytes_q;
  logic [TagW-1:0] tag_q;

  assign is_free        = !valid_q || rdreq_ready_i;
  assign first_ready_o  = is_free;
  assign second_ready_o = is_free && !first_valid_i;

  always_ff @(posedge clk_i) begin
    if (!rst_ni)      valid_q <= 1'b0;
    else if (is_free) valid_q <= first_valid_i || second_valid_i;
    if (is_free) begin
      address_q <= first_valid_i ? first_address_i : second_address_i;
      bytes_q   <= first_valid_i ? first_bytes_i : second_bytes_i;
      tag_q     <= first_valid_i ? {1'b1, (TagW - 1)'(first_tag_i)} : {1'b0, (TagW - 1)'(second_tag_i)};
    end
  end

  assign rdreq_valid_o   = valid_q;
  assign rdreq_address_o = address_q;
  assign rdreq_bytes_o   = bytes_q;
  assign rdreq_tag_o     = tag_q;

  assign first_cpl_valid_o  = rdcpl_valid_i && rdcpl_tag_i[TagW-1];
  assign first_cpl_tag_o    = rdcpl_tag_i[FirstTagW-1:0];
  assign second_cpl_valid_o = rdcpl_valid_i && !rdcpl_tag_i[TagW-1];
  assign second_cpl_tag_o   = rdcpl_tag_i[SecondTagW-1:0];

  logic unused_bits;
  assign unused_bits = ^rdcpl_tag_i;

`ifndef SYNTHESIS
  logic            waiting_q;
  logic [TagW-1:0] waiting_tag_q;
  always_ff @(posedge clk_i) begin
    waiting_q     <= rst_ni && rdreq_valid_o && !rdreq_ready_i;
    waiting_tag_q <= rdreq_tag_o;
    if (rst_ni) begin
      assert (!waiting_q || rdreq_valid_o && rdreq_tag_o == waiting_tag_q)
        else $error("read_join: a waiting request changed");
    end
  end
`endif

endmodule

`default_nettype wire

// What cocotb needs to have a simulator under it. Root complex, link and device are its Python models; the pin is there
// because a module without one has nothing that cocotb could find.
`default_nettype none

module stand (
  input logic clk_i
);
endmodule

`default_nettype wire

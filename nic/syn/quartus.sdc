create_clock -name clk_i -period 4.000 [get_ports clk_i]

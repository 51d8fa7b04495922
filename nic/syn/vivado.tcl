# Written without Vivado and never run here: no figure in this repository comes from it.
#
#   vivado -mode batch -source nic/syn/vivado.tcl -tclargs TOP [PART] [PERIOD_NS] [NAME=VALUE ...]
#
# From the root of the repository. Synthesises, places and routes TOP out of context, so that it needs no pins, and
# leaves utilisation and timing in target/vivado/TOP. An UltraScale+ of speed grade -2 at 250 MHz unless told otherwise.

if {$argc < 1} {
  error "which module? vivado -mode batch -source nic/syn/vivado.tcl -tclargs TOP ?PART? ?PERIOD_NS? ?NAME=VALUE ...?"
}
set top [lindex $argv 0]
set part "xcvu9p-flga2104-2L-e"
set period 4.0
set generics {}
foreach argument [lrange $argv 1 end] {
  if {[string match "*=*" $argument]} {
    lappend generics $argument
  } elseif {[string is double -strict $argument]} {
    set period $argument
  } else {
    set part $argument
  }
}

# The one list of sources: a path a line, comments begin with two slashes.
set list [open nic/rtl/sources.f]
set sources {}
foreach line [split [read $list] "\n"] {
  set line [string trim $line]
  if {$line ne "" && ![string match "//*" $line]} {
    lappend sources $line
  }
}
close $list
read_verilog -sv $sources

set out "target/vivado/$top"
file mkdir $out
set synthesis [list -top $top -part $part -mode out_of_context -flatten_hierarchy rebuilt -verilog_define SYNTHESIS]
foreach generic $generics {
  lappend synthesis -generic $generic
}
synth_design {*}$synthesis
create_clock -name clk -period $period [get_ports clk_i]
# Ports are registered on the other side: half a period each way is theirs.
set_input_delay -clock clk [expr {$period / 2}] [get_ports -filter {DIRECTION == IN && NAME != clk_i}]
set_output_delay -clock clk [expr {$period / 2}] [get_ports -filter {DIRECTION == OUT}]
opt_design
place_design
phys_opt_design
route_design

report_utilization -hierarchical -file $out/utilisation.txt
report_timing_summary -file $out/timing.txt
report_timing -max_paths 20 -nworst 1 -file $out/paths.txt
report_ram_utilization -file $out/ram.txt
set slack [get_property SLACK [get_timing_paths -max_paths 1]]
puts [format "%s on %s: slack %.3f ns at %.3f ns, %.1f MHz" $top $part $slack $period [expr {1000.0 / ($period - $slack)}]]

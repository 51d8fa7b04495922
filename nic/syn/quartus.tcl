# Adds the NIC to a Quartus project, for Agilex or Stratix 10; never run here, so nothing is claimed of what comes out.
#
#   quartus_sh -t nic/syn/quartus.tcl      from the root of the repository
#
# The sources are those of nic/rtl/sources.f. The port has no pins of its own: `nic_top` goes behind a PCIe core and in front
# of a MAC, so this makes it the top with virtual pins, to read the timing of what is inside.

package require ::quartus::project

project_new -overwrite beeline_nic
set_global_assignment -name FAMILY "Agilex 7"
set_global_assignment -name TOP_LEVEL_ENTITY nic_top
set_global_assignment -name VERILOG_INPUT_VERSION SYSTEMVERILOG_2012
# Leaves out assertions and the initial contents that only a simulation needs.
set_global_assignment -name VERILOG_MACRO "SYNTHESIS=1"

set list [open nic/rtl/sources.f]
foreach line [split [read $list] "\n"] {
    set path [string trim $line]
    if {$path eq "" || [string match "//*" $path]} { continue }
    set_global_assignment -name SYSTEMVERILOG_FILE $path
}
close $list

foreach {name value} {NumQueues 64 WindowLines 64 SpanLines 16 NumContexts 64 PoolLines 1024} {
    set_parameter -name $name $value
}
set_instance_assignment -name VIRTUAL_PIN ON -to *
set_global_assignment -name SDC_FILE nic/syn/quartus.sdc
project_close

// The one list of the NIC's SystemVerilog: packages first, then modules from the inside out. Paths are
// relative to the root of the repository. Verilator, slang and yosys read_slang take it by -f, nic/syn/vivado.tcl
// reads it line by line: one path a line, a line that starts with two slashes is a comment, no options.
spec/generated/sv/nic_pkg.sv
nic/rtl/nic_rtl_pkg.sv
nic/rtl/base/fifo.sv
nic/rtl/base/table_ram.sv
nic/rtl/base/lowest_bit.sv
nic/rtl/base/counters.sv
nic/rtl/mmio/bar_ingress.sv
nic/rtl/mmio/free_list.sv
nic/rtl/mmio/buffer_pool.sv
nic/rtl/mmio/position_counter.sv
nic/rtl/mmio/arrival.sv
nic/rtl/mmio/contexts.sv
nic/rtl/mmio/commit.sv
nic/rtl/mmio/reorder_unit.sv
nic/rtl/mmio/hole_timeout.sv
nic/rtl/mmio/write_counters.sv
nic/rtl/mmio/message_reader.sv
nic/rtl/mmio/queue_control.sv
nic/rtl/egress/scheduler.sv
nic/rtl/egress/batch_walker.sv
nic/rtl/egress/frame_cutter.sv
nic/rtl/mmio/mmio.sv
nic/rtl/dma/work_list.sv
nic/rtl/dma/moderation.sv
nic/rtl/mmio/credit_return.sv
nic/rtl/top/capability_list.sv
nic/rtl/top/queue_settings.sv
nic/rtl/top/registers.sv
nic/rtl/top/nic_top.sv

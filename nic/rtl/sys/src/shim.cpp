// Between Rust and the verilated NIC: one function a cycle, with plain structures.
#include "pins.h"

#include <cstdio>
#include <cstring>
#include <memory>

#include "Vnic_sim.h"
#include "verilated.h"
#if VM_TRACE
#include "verilated_vcd_c.h"
#endif

namespace {
struct Nic {
  VerilatedContext context;
  std::unique_ptr<Vnic_sim> top;
#if VM_TRACE
  std::unique_ptr<VerilatedVcdC> waves;
#endif
  uint64_t cycle = 0;
};
}  // namespace

extern "C" {

Nic *beeline_rtl_new(const NicStraps *straps) {
  auto *nic = new Nic;
  nic->context.fatalOnError(false);
#if VM_TRACE
  nic->context.traceEverOn(true);
#endif
  nic->top = std::make_unique<Vnic_sim>(&nic->context, "nic");
  auto &top = *nic->top;
  top.strap_window_lines_i = straps->window_lines;
  top.strap_span_lines_i = straps->span_lines;
  top.strap_contexts_i = straps->contexts;
  top.strap_pool_lines_i = straps->pool_lines;
  top.strap_max_frame_bytes_i = straps->max_frame_bytes;
  top.strap_mac_i = straps->mac;
  top.rx_lossless_i = straps->rx_lossless;
  top.clk_i = 0;
  top.rst_ni = 0;
  top.eval();
  return nic;
}

void beeline_rtl_free(Nic *nic) {
#if VM_TRACE
  if (nic->waves) nic->waves->close();
#endif
  nic->top->final();
  delete nic;
}

// Drives the inputs, gives the outputs as they stand before the clock's edge, and makes the edge. 1 when an assertion of
// the RTL failed.
int beeline_rtl_cycle(Nic *nic, const NicInputs *in, NicOutputs *out) {
  auto &top = *nic->top;
  top.rst_ni = in->rst_n;
  top.now_ns_i = in->now_ns;
  top.wr_valid_i = in->wr_valid;
  if (in->wr_valid) {
    top.wr_address_i = in->wr_address;
    top.wr_be_i = in->wr_be;
    top.wr_first_i = in->wr_first;
    top.wr_last_i = in->wr_last;
    memcpy(&top.wr_data_i, in->wr_data, 64);
  }
  top.rd_valid_i = in->rd_valid;
  top.rd_address_i = in->rd_address;
  top.rd_tag_i = in->rd_tag;
  top.rc_ready_i = in->rc_ready;
  top.dmawr_ready_i = in->dmawr_ready;
  top.irq_ready_i = in->irq_ready;
  top.frame_ready_i = in->frame_ready;
  top.frame_pause_i = in->frame_pause;
  top.rdreq_ready_i = in->rdreq_ready;
  top.rdcpl_valid_i = in->rdcpl_valid;
  if (in->rdcpl_valid) {
    top.rdcpl_tag_i = in->rdcpl_tag;
    top.rdcpl_last_i = in->rdcpl_last;
    top.rdcpl_error_i = in->rdcpl_error;
    memcpy(&top.rdcpl_data_i, in->rdcpl_data, 64);
  }
  top.rx_valid_i = in->rx_valid;
  if (in->rx_valid) {
    top.rx_bytes_i = in->rx_bytes;
    top.rx_last_i = in->rx_last;
    memcpy(&top.rx_data_i, in->rx_data, 64);
  }
  top.clk_i = 0;
  top.eval();
#if VM_TRACE
  if (nic->waves) nic->waves->dump(nic->cycle * 2);
#endif

  out->wr_ready = top.wr_ready_o;
  out->rd_ready = top.rd_ready_o;
  out->rc_valid = top.rc_valid_o;
  out->rc_tag = top.rc_tag_o;
  out->rc_value = top.rc_value_o;
  out->dmawr_valid = top.dmawr_valid_o;
  if (top.dmawr_valid_o) {
    out->dmawr_address = top.dmawr_address_o;
    out->dmawr_bytes = top.dmawr_bytes_o;
    memcpy(out->dmawr_data, &top.dmawr_data_o, 64);
  }
  out->irq_valid = top.irq_valid_o;
  out->irq_vector = top.irq_vector_o;
  out->frame_valid = top.frame_valid_o;
  if (top.frame_valid_o) {
    out->frame_bytes = top.frame_bytes_o;
    out->frame_last = top.frame_last_o;
    out->frame_abort = top.frame_abort_o;
    out->frame_queue = top.frame_queue_o;
    memcpy(out->frame_data, &top.frame_data_o, 64);
  }
  out->rdreq_valid = top.rdreq_valid_o;
  if (top.rdreq_valid_o) {
    out->rdreq_address = top.rdreq_address_o;
    out->rdreq_bytes = top.rdreq_bytes_o;
    out->rdreq_tag = top.rdreq_tag_o;
  }
  out->rx_ready = top.rx_ready_o;
  out->is_idle = top.is_idle_o;
  out->free_lines = top.free_lines_o;
  out->free_contexts = top.free_contexts_o;

  top.clk_i = 1;
  top.eval();
#if VM_TRACE
  if (nic->waves) nic->waves->dump(nic->cycle * 2 + 1);
#endif
  nic->cycle++;
  return nic->context.gotError() || nic->context.gotFinish();
}

#if VM_TRACE
// Writes a wave dump from here on. 0 when the file cannot be made.
int beeline_rtl_trace(Nic *nic, const char *path) {
  nic->waves = std::make_unique<VerilatedVcdC>();
  nic->top->trace(nic->waves.get(), 99);
  nic->waves->open(path);
  return nic->waves->isOpen();
}
#endif
}

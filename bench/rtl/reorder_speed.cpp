// How fast the Verilated mmio engine runs: cycles of reorder_load a second on one core. Prints one line of JSON.
#include <chrono>
#include <cstdio>
#include <cstdlib>

#include "Vreorder_load.h"
#include "verilated.h"

int main(int argc, char **argv) {
  const uint64_t cycles = argc > 1 ? strtoull(argv[1], nullptr, 10) : 1000000;
  VerilatedContext context;
  Vreorder_load top(&context);
  auto cycle = [&] {
    top.clk_i = 0;
    top.eval();
    top.clk_i = 1;
    top.eval();
  };
  top.rst_ni = 0;
  for (int i = 0; i < 4; i++) cycle();
  top.rst_ni = 1;
  // In the steady state of any number of queues: each has sent some.
  while (top.frames_o < 16384) cycle();

  const uint64_t lines_before = top.lines_o, frames_before = top.frames_o;
  const auto start = std::chrono::steady_clock::now();
  for (uint64_t i = 0; i < cycles; i++) cycle();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
  if (top.failed_o) {
    fprintf(stderr, "a queue failed under a load that breaks no rule\n");
    return 1;
  }
  printf("{\"cycles\":%llu,\"lines\":%llu,\"frames\":%llu,\"seconds\":%.6f}\n", (unsigned long long)cycles,
         (unsigned long long)(top.lines_o - lines_before), (unsigned long long)(top.frames_o - frames_before),
         took.count());
}

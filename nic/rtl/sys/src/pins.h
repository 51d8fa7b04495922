// The pins of nic_top, for one clock cycle. The same structures stand in pins.rs.
#pragma once
#include <stdint.h>

struct NicInputs {
  uint64_t now_ns;
  uint64_t wr_be;
  uint64_t wr_data[8];
  uint64_t rdcpl_data[8];
  uint64_t rx_data[8];
  uint32_t wr_address;
  uint32_t rd_address;
  uint16_t rd_tag;
  uint8_t rst_n;
  uint8_t wr_valid;
  uint8_t wr_first;
  uint8_t wr_last;
  uint8_t rd_valid;
  uint8_t rc_ready;
  uint8_t dmawr_ready;
  uint8_t irq_ready;
  uint8_t frame_ready;
  uint8_t frame_pause;
  uint8_t rdreq_ready;
  uint8_t rdcpl_valid;
  uint8_t rdcpl_last;
  uint8_t rdcpl_error;
  uint8_t rdcpl_tag;
  uint8_t rx_valid;
  uint8_t rx_bytes;
  uint8_t rx_last;
  uint8_t unused[4];
};

struct NicOutputs {
  uint64_t rc_value;
  uint64_t dmawr_address;
  uint64_t dmawr_data[8];
  uint64_t frame_data[8];
  uint64_t rdreq_address;
  uint32_t free_lines;
  uint32_t free_contexts;
  uint16_t rc_tag;
  uint16_t irq_vector;
  uint16_t frame_queue;
  uint16_t rdreq_bytes;
  uint8_t wr_ready;
  uint8_t rd_ready;
  uint8_t rc_valid;
  uint8_t dmawr_valid;
  uint8_t dmawr_bytes;
  uint8_t irq_valid;
  uint8_t frame_valid;
  uint8_t frame_bytes;
  uint8_t frame_last;
  uint8_t frame_abort;
  uint8_t rdreq_valid;
  uint8_t rdreq_tag;
  uint8_t rx_ready;
  uint8_t is_idle;
  uint8_t unused[2];
};

struct NicStraps {
  uint64_t mac;
  uint32_t window_lines;
  uint32_t span_lines;
  uint32_t contexts;
  uint32_t pool_lines;
  uint32_t max_frame_bytes;
  uint32_t rx_lossless;
};

/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* One program: it makes a segment, maps it, stores into it and takes it down. */
#include <stdio.h>

#include "dis_types.h"
#include "sisci_api.h"
#include "sisci_demolib.h"

#define CHECK(function)                                                                                                \
  if (sisci_demo_failed(function, error))                                                                              \
  return 1

int main(void)
{
  sci_desc_t sd;
  sci_local_segment_t segment;
  sci_map_t map;
  sci_error_t error;
  unsigned int node;
  unsigned char *bytes;

  SCIInitialize(0, &error);
  CHECK("SCIInitialize");
  SCIOpen(&sd, 0, &error);
  CHECK("SCIOpen");
  SCIGetLocalNodeId(0, &node, 0, &error);
  CHECK("SCIGetLocalNodeId");
  SCICreateSegment(sd, &segment, 1, 4096, NULL, NULL, 0, &error);
  CHECK("SCICreateSegment");
  bytes = (unsigned char *)SCIMapLocalSegment(segment, &map, 0, 4096, NULL, 0, &error);
  CHECK("SCIMapLocalSegment");
  bytes[4095] = 1;
  printf("node %u\n%lu bytes\n", node, (unsigned long)SCIGetLocalSegmentSize(segment));
  SCIUnmapSegment(map, 0, &error);
  CHECK("SCIUnmapSegment");
  SCIRemoveSegment(segment, 0, &error);
  CHECK("SCIRemoveSegment");
  SCIClose(sd, 0, &error);
  CHECK("SCIClose");
  SCITerminate();
  return 0;
}

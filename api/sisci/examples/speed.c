/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What a copy into a segment costs: SCIMemCpy() beside memcpy() to the same map, from 4 bytes to 1 MiB.
 *
 *     BEELINE_NODE=4 ./speed [-n NANOSECONDS] [-o OFFSET]
 *
 * The program connects to its own segment, so nobody else is needed; bind it to a core (taskset -c 0). Each figure is the middle of nine
 * batches of about NANOSECONDS (2,000,000), which alternate between the two. Both copy from and to memory that is in the cache, as far
 * as that goes. Copies go to OFFSET of the segment (0, at most 4096).
 */
#define _POSIX_C_SOURCE 200809L

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "sisci_api.h"
#include "sisci_demolib.h"
#include "sisci_error.h"

#define SEGMENT_ID 77u
#define LARGEST (1u << 20)
#define MOST_OFFSET 4096u
#define BATCHES 9
#define NO_FLAGS 0

/* The compiler is not to know what is called: it would leave copies out. */
static void *(*volatile plain_copy)(void *to, const void *from, size_t bytes) = memcpy;

static void check(const char *what, sci_error_t error)
{
  if (sisci_demo_failed(what, error))
    exit(1);
}

static double now_ns(void)
{
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_size(const void *left, const void *right)
{
  double a = *(const double *)left, b = *(const double *)right;

  return (a > b) - (a < b);
}

static double copies_ns(sci_map_t map, size_t offset, const void *own, size_t bytes, unsigned int count)
{
  double start = now_ns();
  sci_error_t error = SCI_ERR_OK;
  unsigned int at;

  for (at = 0; at < count && error == SCI_ERR_OK; at++)
    SCIMemCpy(NULL, (void *)(size_t)own, map, offset, bytes, NO_FLAGS, &error);
  check("SCIMemCpy", error);
  return (now_ns() - start) / count;
}

static double plain_ns(void *to, const void *own, size_t bytes, unsigned int count)
{
  double start = now_ns();
  unsigned int at;

  for (at = 0; at < count; at++)
    plain_copy(to, own, bytes);
  return (now_ns() - start) / count;
}

static void measure(sci_map_t map, unsigned char *mapped, size_t offset, const void *own, size_t bytes, double batch_ns)
{
  unsigned char *to = mapped + offset;
  double sci[BATCHES], plain[BATCHES];
  unsigned int count = 1, batch;

  /* As many as take the time of a batch. */
  while (plain_ns(to, own, bytes, count) * count < batch_ns && count < 1u << 20)
    count *= 2;
  copies_ns(map, offset, own, bytes, count);
  for (batch = 0; batch < BATCHES; batch++) {
    sci[batch] = copies_ns(map, offset, own, bytes, count);
    plain[batch] = plain_ns(to, own, bytes, count);
  }
  qsort(sci, BATCHES, sizeof(sci[0]), by_size);
  qsort(plain, BATCHES, sizeof(plain[0]), by_size);
  printf("%8lu B  SCIMemCpy %9.1f ns  memcpy %9.1f ns\n", (unsigned long)bytes, sci[BATCHES / 2], plain[BATCHES / 2]);
}

int main(int argc, char **argv)
{
  double batch_ns = sisci_demo_option(argc, argv, "-n", 2000000);
  unsigned int offset = sisci_demo_option(argc, argv, "-o", 0);
  unsigned int node = 0;
  unsigned char *own = (unsigned char *)malloc(LARGEST);
  unsigned char *mapped;
  size_t bytes;
  sci_desc_t sd;
  sci_local_segment_t local;
  sci_remote_segment_t remote;
  sci_map_t map;
  sci_error_t error;

  if (!own || offset > MOST_OFFSET)
    return 1;
  memset(own, 1, LARGEST);
  SCIInitialize(NO_FLAGS, &error);
  check("SCIInitialize", error);
  SCIOpen(&sd, NO_FLAGS, &error);
  check("SCIOpen", error);
  SCIGetLocalNodeId(0, &node, NO_FLAGS, &error);
  check("SCIGetLocalNodeId", error);
  SCICreateSegment(sd, &local, SEGMENT_ID, LARGEST + MOST_OFFSET, NULL, NULL, NO_FLAGS, &error);
  check("SCICreateSegment", error);
  SCIPrepareSegment(local, 0, NO_FLAGS, &error);
  check("SCIPrepareSegment", error);
  SCISetSegmentAvailable(local, 0, NO_FLAGS, &error);
  check("SCISetSegmentAvailable", error);
  SCIConnectSegment(sd, &remote, node, SEGMENT_ID, 0, NULL, NULL, 0, NO_FLAGS, &error);
  check("SCIConnectSegment", error);
  mapped = (unsigned char *)(size_t)SCIMapRemoteSegment(remote, &map, 0, LARGEST + MOST_OFFSET, NULL, NO_FLAGS, &error);
  check("SCIMapRemoteSegment", error);
  memset(mapped, 1, LARGEST + MOST_OFFSET);
  for (bytes = 4; bytes <= LARGEST; bytes *= 4)
    measure(map, mapped, offset, own, bytes, batch_ns);
  free(own);
  SCITerminate();
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A buffer of the program as a segment: the owner registers what it has allocated, and a peer stores into it where it is. Nothing is copied
 * between a segment and the buffer.
 *
 *     BEELINE_NODE=4 ./registered -owner
 *     BEELINE_NODE=8 ./registered -peer -rn 4
 *
 *     -rn NODE     the node of the owner
 *     -a ADAPTER   the adapter to go through (0)
 *     -size BYTES  of the buffer, whole pages (65536)
 *
 * Others are given whole pages, so the buffer is allocated by posix_memalign. The owner looks at its buffer until the peer
 * has stored into all of it, removes the segment and frees the buffer, which is its own memory again by then.
 */
#define _POSIX_C_SOURCE 200809L

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sisci_api.h"
#include "sisci_demolib.h"
#include "sisci_error.h"

#define NO_CALLBACK NULL
#define NO_ARG NULL
#define NO_FLAGS 0
#define SEGMENT 21

static unsigned int adapter;
static size_t size = 65536;

static void check(const char *what, sci_error_t error)
{
  if (sisci_demo_failed(what, error))
    exit(1);
}

/* How many bytes are as the peer leaves them. The pointer is still that of posix_memalign. */
static size_t count_right(const volatile char *buffer)
{
  size_t at, right = 0;

  for (at = 0; at < size; at++)
    right += buffer[at] == (at % 2 ? 'o' : 'p');
  return right;
}

static int own(sci_desc_t sd)
{
  sci_local_segment_t segment;
  sci_error_t error;
  void *memory;
  char *buffer;

  if (posix_memalign(&memory, (size_t)sysconf(_SC_PAGESIZE), size)) {
    fprintf(stderr, "no memory\n");
    return 1;
  }
  buffer = (char *)memory;
  memset(buffer, 'o', size);
  SCICreateSegment(sd, &segment, SEGMENT, size, NO_CALLBACK, NO_ARG, SCI_FLAG_EMPTY, &error);
  check("SCICreateSegment", error);
  SCIRegisterSegmentMemory(buffer, size, segment, NO_FLAGS, &error);
  check("SCIRegisterSegmentMemory", error);
  SCIPrepareSegment(segment, adapter, NO_FLAGS, &error);
  check("SCIPrepareSegment", error);
  SCISetSegmentAvailable(segment, adapter, NO_FLAGS, &error);
  check("SCISetSegmentAvailable", error);
  printf("registered\n");
  fflush(stdout);
  /* A peer that comes and goes between two looks of its owner is told as no event: what it stores says when it is done. */
  while (count_right(buffer) != size)
    sched_yield();
  printf("%lu of %lu bytes are right\n", (unsigned long)size, (unsigned long)size);
  /* Until the peer has disconnected. */
  do {
    SCIRemoveSegment(segment, NO_FLAGS, &error);
  } while (error == SCI_ERR_BUSY);
  check("SCIRemoveSegment", error);
  free(buffer);
  return 0;
}

static int store(sci_desc_t sd, unsigned int node)
{
  sci_remote_segment_t segment;
  sci_error_t error;
  sci_map_t map;
  volatile char *buffer;
  size_t at;

  SCIConnectSegment(sd, &segment, node, SEGMENT, adapter, NO_CALLBACK, NO_ARG, 10000, NO_FLAGS, &error);
  check("SCIConnectSegment", error);
  size = SCIGetRemoteSegmentSize(segment);
  buffer = (volatile char *)SCIMapRemoteSegment(segment, &map, 0, size, NULL, NO_FLAGS, &error);
  check("SCIMapRemoteSegment", error);
  for (at = 0; at < size; at += 2)
    buffer[at] = 'p';
  SCIUnmapSegment(map, NO_FLAGS, &error);
  check("SCIUnmapSegment", error);
  SCIDisconnectSegment(segment, NO_FLAGS, &error);
  check("SCIDisconnectSegment", error);
  printf("stored\n");
  return 0;
}

int main(int argc, char **argv)
{
  sci_desc_t sd;
  sci_error_t error;
  unsigned int node = 4;
  int at, is_owner = 0, is_peer = 0, is_right = 1, status;

  for (at = 1; at < argc; at++) {
    const char *option = argv[at], *value = at + 1 < argc ? argv[at + 1] : "";

    if (strcmp(option, "-owner") == 0)
      is_owner = 1;
    else if (strcmp(option, "-rn") == 0)
      node = (unsigned int)atoi(value), at++;
    else if (strcmp(option, "-a") == 0)
      adapter = (unsigned int)atoi(value), at++;
    else if (strcmp(option, "-size") == 0)
      size = (size_t)atol(value), at++;
    else if (strcmp(option, "-peer") == 0)
      is_peer = 1;
    else
      is_right = 0;
  }
  if (!is_right || is_owner == is_peer) {
    fprintf(stderr, "usage: %s -owner | -peer [-rn NODE] [-a ADAPTER] [-size BYTES]\n", argv[0]);
    return 2;
  }
  SCIInitialize(NO_FLAGS, &error);
  check("SCIInitialize", error);
  SCIOpen(&sd, NO_FLAGS, &error);
  check("SCIOpen", error);
  status = is_owner ? own(sd) : store(sd, node);
  SCIClose(sd, NO_FLAGS, &error);
  check("SCIClose", error);
  SCITerminate();
  return status;
}

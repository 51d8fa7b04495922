/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Two programs that throw a number to each other: each has a segment that the other one stores into.
 *
 *     BEELINE_NODE=4 ./pingpong -server -rn 8
 *     BEELINE_NODE=8 ./pingpong -client -rn 4 -loops 100000
 *
 *     -rn NODE     the node of the other program
 *     -a ADAPTER   the adapter to go through (0)
 *     -loops N     how often the number goes there and back (1000); the client says
 *
 * The number is one aligned word, so it arrives whole. Nobody reads across the link: each polls its own memory. After the last round
 * each asks its sequence whether anything went wrong on the way.
 */
#define _POSIX_C_SOURCE 200809L

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "sisci_api.h"
#include "sisci_demolib.h"
#include "sisci_error.h"

#define NO_CALLBACK NULL
#define NO_ARG NULL
#define NO_FLAGS 0

#define SEGMENT_SIZE 4096u
/* How often memory is looked at before another program is let run. */
#define LOOKS 1000
/* What the client stores when it has played. */
#define LAST UINT64_MAX

static unsigned int adapter;

static void check(const char *what, sci_error_t error)
{
  if (sisci_demo_failed(what, error))
    exit(1);
}

/* The segment of `owner` for the program on node `user`. */
static unsigned int segment_id(unsigned int owner, unsigned int user)
{
  return owner << 16 | user << 8 | 1;
}

/* Waits for a number or for the end, and returns which it was. */
static uint64_t wait_for(const volatile uint64_t *word, uint64_t number)
{
  uint64_t found;
  int looks;

  for (looks = 1; (found = *word) != number && found != LAST; looks++)
    if (looks % LOOKS == 0)
      sched_yield();
  return found;
}

static volatile uint64_t *offer(sci_desc_t sd, unsigned int id, sci_local_segment_t *segment, sci_map_t *map)
{
  sci_error_t error;
  void *address;

  SCICreateSegment(sd, segment, id, SEGMENT_SIZE, NO_CALLBACK, NO_ARG, NO_FLAGS, &error);
  check("SCICreateSegment", error);
  SCIPrepareSegment(*segment, adapter, NO_FLAGS, &error);
  check("SCIPrepareSegment", error);
  address = SCIMapLocalSegment(*segment, map, 0, SEGMENT_SIZE, NULL, NO_FLAGS, &error);
  check("SCIMapLocalSegment", error);
  SCISetSegmentAvailable(*segment, adapter, NO_FLAGS, &error);
  check("SCISetSegmentAvailable", error);
  return (volatile uint64_t *)address;
}

static volatile uint64_t *reach(sci_desc_t sd, unsigned int node, unsigned int id, sci_remote_segment_t *segment,
                                sci_map_t *map)
{
  sci_error_t error;
  volatile void *address;

  do {
    SCIConnectSegment(sd, segment, node, id, adapter, NO_CALLBACK, NO_ARG, 1000, NO_FLAGS, &error);
  } while (error == SCI_ERR_TIMEOUT);
  check("SCIConnectSegment", error);
  if (SCIGetRemoteSegmentSize(*segment) < SEGMENT_SIZE) {
    fprintf(stderr, "the other program's segment is too small\n");
    exit(1);
  }
  address = SCIMapRemoteSegment(*segment, map, 0, SEGMENT_SIZE, NULL, NO_FLAGS, &error);
  check("SCIMapRemoteSegment", error);
  return (volatile uint64_t *)address;
}

static double seconds(void)
{
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

static void serve(volatile uint64_t *here, volatile uint64_t *there)
{
  uint64_t round;

  for (round = 1; wait_for(here, round) == round; round++) {
    *there = round;
    SCIFlush(NULL, SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY);
  }
}

static void play(volatile uint64_t *here, volatile uint64_t *there, unsigned int loops)
{
  double start = seconds();
  uint64_t round;

  for (round = 1; round <= loops; round++) {
    *there = round;
    SCIFlush(NULL, SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY);
    wait_for(here, round);
  }
  printf("%u rounds, %.3f microseconds each\n", loops, (seconds() - start) * 1e6 / loops);
  *there = LAST;
  SCIFlush(NULL, SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY);
}

int main(int argc, char **argv)
{
  int is_client = sisci_demo_has(argc, argv, "-client");
  unsigned int other = sisci_demo_option(argc, argv, "-rn", 0);
  unsigned int loops = sisci_demo_option(argc, argv, "-loops", 1000);
  unsigned int node;
  volatile uint64_t *here, *there;
  sci_local_segment_t local;
  sci_remote_segment_t remote;
  sci_map_t local_map, remote_map;
  sci_sequence_t sequence;
  sci_desc_t sd;
  sci_error_t error;

  adapter = sisci_demo_option(argc, argv, "-a", 0);
  if (other == 0 || is_client == sisci_demo_has(argc, argv, "-server")) {
    fprintf(stderr, "usage: %s -client|-server -rn NODE [-a ADAPTER] [-loops N]\n", argv[0]);
    return 2;
  }
  SCIInitialize(NO_FLAGS, &error);
  check("SCIInitialize", error);
  SCIOpen(&sd, NO_FLAGS, &error);
  check("SCIOpen", error);
  SCIGetLocalNodeId(adapter, &node, NO_FLAGS, &error);
  check("SCIGetLocalNodeId", error);

  here = offer(sd, segment_id(node, other), &local, &local_map);
  there = reach(sd, other, segment_id(other, node), &remote, &remote_map);
  SCICreateMapSequence(remote_map, &sequence, NO_FLAGS, &error);
  check("SCICreateMapSequence", error);
  while (SCIStartSequence(sequence, NO_FLAGS, &error) != SCI_SEQ_OK)
    check("SCIStartSequence", error);

  if (is_client)
    play(here, there, loops);
  else
    serve(here, there);

  /* Each removes its segment only when the other one has disconnected, so both are still there. */
  if (SCICheckSequence(sequence, NO_FLAGS, &error) != SCI_SEQ_OK) {
    printf("something was lost on the way\n");
    return 1;
  }
  SCIRemoveSequence(sequence, NO_FLAGS, &error);
  check("SCIRemoveSequence", error);
  SCIUnmapSegment(remote_map, NO_FLAGS, &error);
  check("SCIUnmapSegment", error);
  SCIDisconnectSegment(remote, NO_FLAGS, &error);
  check("SCIDisconnectSegment", error);
  SCIUnmapSegment(local_map, NO_FLAGS, &error);
  check("SCIUnmapSegment", error);
  do {
    SCIRemoveSegment(local, NO_FLAGS, &error);
    sched_yield();
  } while (error == SCI_ERR_BUSY);
  check("SCIRemoveSegment", error);
  SCIClose(sd, NO_FLAGS, &error);
  check("SCIClose", error);
  SCITerminate();
  printf("done\n");
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Reflective memory: one writer, and as many receivers as there are, each of which reads its own segment. A store of the writer is seen by all.
 *
 *     BEELINE_NODE=4  ./broadcast -receiver -items 100000
 *     BEELINE_NODE=8  ./broadcast -receiver -items 100000 -slow
 *     BEELINE_NODE=12 ./broadcast -writer -items 100000
 *
 *     -a ADAPTER   the adapter to go through (0)
 *     -items N     the writer counts up to N, and all end then (100000); the same for all
 *     -slow        this receiver looks once a millisecond
 *
 * What is written is a state and no queue: a receiver that is slow misses what was there between two looks, and hinders nobody. One that
 * joins late begins with what is there. One that dies is no concern of the writer's, as long as another one is there; without any the
 * writer ends.
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
#include "sisci_glob_defs.h"

#define NO_CALLBACK NULL
#define NO_ARG NULL
#define NO_FLAGS 0

#define GROUP_ID 0x3200u
#define GROUP_BYTES 4096u
/* The writer rests after so many stores. */
#define STRIDE 100u
/* A receiver says how far it is after so many. */
#define SAID 5000u

static unsigned int adapter;

static void check(const char *what, sci_error_t error)
{
  if (sisci_demo_failed(what, error))
    exit(1);
}

static void say(const char *what, unsigned long long number)
{
  printf("%s %llu\n", what, number);
  fflush(stdout);
}

static void rest(void)
{
  struct timespec millisecond = { 0, 1000000 };

  nanosleep(&millisecond, NULL);
}

static void receive(sci_desc_t sd, uint64_t items, int is_slow)
{
  sci_local_segment_t segment;
  sci_map_t map;
  sci_error_t error;
  const volatile uint64_t *state;
  uint64_t found, last = 0, looks = 0, next = SAID;

  SCICreateSegment(sd, &segment, GROUP_ID, GROUP_BYTES, NO_CALLBACK, NO_ARG, SCI_FLAG_BROADCAST, &error);
  check("SCICreateSegment", error);
  SCIPrepareSegment(segment, adapter, SCI_FLAG_BROADCAST, &error);
  check("SCIPrepareSegment", error);
  /* For reading: what this process stored would be stored for all. */
  state = (const volatile uint64_t *)SCIMapLocalSegment(segment, &map, 0, GROUP_BYTES, NULL, NO_FLAGS, &error);
  check("SCIMapLocalSegment", error);
  SCISetSegmentAvailable(segment, adapter, NO_FLAGS, &error);
  check("SCISetSegmentAvailable", error);
  say("joined at", *state);
  while (last < items) {
    found = *state;
    if (found < last) {
      fprintf(stderr, "%llu after %llu\n", (unsigned long long)found, (unsigned long long)last);
      exit(1);
    }
    looks += found != last;
    last = found;
    if (last >= next) {
      say("have", last);
      next = last + SAID;
    }
    if (is_slow)
      rest();
    else
      sched_yield();
  }
  say("states seen", looks);
  say("received", last);
  SCIUnmapSegment(map, NO_FLAGS, &error);
  check("SCIUnmapSegment", error);
  /* The writer may be connected still. */
  SCIRemoveSegment(segment, SCI_FLAG_FORCE_REMOVE, &error);
  check("SCIRemoveSegment", error);
}

static void write_all(sci_desc_t sd, uint64_t items)
{
  sci_remote_segment_t group;
  sci_map_t map;
  sci_sequence_t sequence;
  sci_sequence_status_t status;
  sci_error_t error;
  volatile uint64_t *state;
  uint64_t item;

  do {
    SCIConnectSegment(sd, &group, DIS_BROADCAST_NODEID_GROUP_ALL, GROUP_ID, adapter, NO_CALLBACK, NO_ARG, 1000,
                      SCI_FLAG_BROADCAST, &error);
  } while (error == SCI_ERR_TIMEOUT);
  check("SCIConnectSegment", error);
  state = (volatile uint64_t *)SCIMapRemoteSegment(group, &map, 0, GROUP_BYTES, NULL, NO_FLAGS, &error);
  check("SCIMapRemoteSegment", error);
  SCICreateMapSequence(map, &sequence, NO_FLAGS, &error);
  check("SCICreateMapSequence", error);
  do {
    status = SCIStartSequence(sequence, NO_FLAGS, &error);
  } while (status == SCI_SEQ_PENDING);
  say("connected, from", *state);
  for (item = *state + 1; item <= items; item++) {
    *state = item;
    if (item % STRIDE != 0)
      continue;
    rest();
    do {
      status = SCICheckSequence(sequence, NO_FLAGS, &error);
    } while (status == SCI_SEQ_PENDING);
    /* Receivers that have the last state leave. */
    if (status == SCI_SEQ_NOT_RETRIABLE && item < items) {
      say("nobody is left at", item);
      break;
    }
  }
  say("written", item - 1);
  SCIRemoveSequence(sequence, NO_FLAGS, &error);
  check("SCIRemoveSequence", error);
  SCIUnmapSegment(map, NO_FLAGS, &error);
  check("SCIUnmapSegment", error);
  SCIDisconnectSegment(group, NO_FLAGS, &error);
  check("SCIDisconnectSegment", error);
}

int main(int argc, char **argv)
{
  sci_desc_t sd;
  sci_error_t error;
  unsigned int items = sisci_demo_option(argc, argv, "-items", 100000);
  int is_writer = sisci_demo_has(argc, argv, "-writer");

  adapter = sisci_demo_option(argc, argv, "-a", 0);
  if (is_writer == sisci_demo_has(argc, argv, "-receiver")) {
    fprintf(stderr, "%s: either -writer or -receiver\n", argv[0]);
    return 2;
  }
  SCIInitialize(NO_FLAGS, &error);
  check("SCIInitialize", error);
  SCIOpen(&sd, NO_FLAGS, &error);
  check("SCIOpen", error);
  if (is_writer)
    write_all(sd, items);
  else
    receive(sd, items, sisci_demo_has(argc, argv, "-slow"));
  SCIClose(sd, NO_FLAGS, &error);
  check("SCIClose", error);
  SCITerminate();
  return 0;
}

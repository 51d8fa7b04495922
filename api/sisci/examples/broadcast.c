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

#include "example.h"
#include "sisci_glob_defs.h"

#define GROUP_ID 0x3200u
#define GROUP_BYTES 4096u
/* The writer rests after so many stores. */
#define STRIDE 100u
/* A receiver says how far it is after so many. */
#define SAID 5000u

static unsigned int adapter;

static void receive(sci_desc_t sd, uint64_t items, int is_slow)
{
  /* Its map is for reading: what this process stored would be stored for all. */
  struct own group = offer(sd, adapter, GROUP_ID, GROUP_BYTES, SCI_FLAG_BROADCAST);
  const volatile uint64_t *state = group.words;
  uint64_t found, last = 0, looks = 0, next = SAID;

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
      rest_a_millisecond();
    else
      sched_yield();
  }
  say("states seen", looks);
  say("received", last);
  /* The writer may be connected still. */
  withdraw(&group, SCI_FLAG_FORCE_REMOVE);
}

static void write_all(sci_desc_t sd, uint64_t items)
{
  struct peer group =
      reach(sd, adapter, DIS_BROADCAST_NODEID_GROUP_ALL, GROUP_ID, GROUP_BYTES, SCI_FLAG_BROADCAST);
  volatile uint64_t *state = group.words;
  uint64_t item;

  say("connected, from", *state);
  for (item = *state + 1; item <= items; item++) {
    *state = item;
    if (item % STRIDE != 0)
      continue;
    rest_a_millisecond();
    /* Receivers that have the last state leave. */
    if (item < items && !is_there(&group)) {
      say("nobody is left at", item);
      break;
    }
  }
  say("written", item - 1);
  disconnect(&group);
}

int main(int argc, char **argv)
{
  sci_desc_t sd;
  unsigned int items = sisci_demo_option(argc, argv, "-items", 100000);
  int is_writer = sisci_demo_has(argc, argv, "-writer");

  adapter = sisci_demo_option(argc, argv, "-a", 0);
  if (is_writer == sisci_demo_has(argc, argv, "-receiver")) {
    fprintf(stderr, "%s: either -writer or -receiver\n", argv[0]);
    return 2;
  }
  sd = start_sisci();
  if (is_writer)
    write_all(sd, items);
  else
    receive(sd, items, sisci_demo_has(argc, argv, "-slow"));
  end_sisci(sd);
  return 0;
}

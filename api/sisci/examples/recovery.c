/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A producer and a consumer of numbered items, each of which may be killed at any time and started again: no item is lost.
 *
 *     BEELINE_NODE=4 ./recovery -consumer -rn 8 -items 1000000
 *     BEELINE_NODE=8 ./recovery -producer -rn 4 -items 1000000
 *
 *     -rn NODE     the node of the other program
 *     -a ADAPTER   the adapter to go through (0)
 *     -items N     both end when N items were consumed (100000); the same for both
 *     -slow N      the consumer sleeps a millisecond after every N items (0: never)
 *
 * The consumer has a ring that the producer stores items into, the producer has a word that the consumer stores its progress into:
 * each reads its own memory only. An item is one aligned word with its number in it, so it arrives whole, and in any order.
 *
 * RECOVERY. A peer that is killed is found by the sequence (SCI_SEQ_NOT_RETRIABLE). Whoever is left disconnects, waits until the peer
 * has a segment again, and connects. A new consumer does not know how far the old one came; the producer does, by the progress that it
 * was told last: the new consumer reads it once, when it connects, and the producer stores from there on again. So an item may be
 * consumed twice, by two consumers, and none never. A new producer is told by the consumer, which stores its progress as soon as it has
 * connected.
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

#define SLOTS 256u
#define RING_ID 0x3100u
#define PROGRESS_ID 0x3101u
/* How often memory is looked at in vain before the sequence is asked whether the peer is still there. */
#define LOOKS 20000
/* The consumer says how far it is after so many items. */
#define STRIDE 5000u

/* Beside the progress, in the producer's memory: somebody has told it. */
#define KNOWN (1ULL << 63)

struct own {
  sci_local_segment_t segment;
  sci_map_t map;
  volatile uint64_t *words;
};

struct peer {
  sci_remote_segment_t segment;
  sci_map_t map;
  sci_sequence_t sequence;
  volatile uint64_t *words;
};

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

static struct own offer(sci_desc_t sd, unsigned int id, size_t size)
{
  struct own own;
  sci_error_t error;

  SCICreateSegment(sd, &own.segment, id, size, NO_CALLBACK, NO_ARG, NO_FLAGS, &error);
  check("SCICreateSegment", error);
  SCIPrepareSegment(own.segment, adapter, NO_FLAGS, &error);
  check("SCIPrepareSegment", error);
  own.words = (volatile uint64_t *)SCIMapLocalSegment(own.segment, &own.map, 0, size, NULL, NO_FLAGS, &error);
  check("SCIMapLocalSegment", error);
  SCISetSegmentAvailable(own.segment, adapter, NO_FLAGS, &error);
  check("SCISetSegmentAvailable", error);
  return own;
}

static void withdraw(struct own *own)
{
  sci_error_t error;

  SCIUnmapSegment(own->map, NO_FLAGS, &error);
  check("SCIUnmapSegment", error);
  do {
    SCIRemoveSegment(own->segment, NO_FLAGS, &error);
    sched_yield();
  } while (error == SCI_ERR_BUSY);
  check("SCIRemoveSegment", error);
}

static void disconnect(struct peer *peer)
{
  sci_error_t error;

  SCIRemoveSequence(peer->sequence, NO_FLAGS, &error);
  check("SCIRemoveSequence", error);
  SCIUnmapSegment(peer->map, NO_FLAGS, &error);
  check("SCIUnmapSegment", error);
  SCIDisconnectSegment(peer->segment, NO_FLAGS, &error);
  check("SCIDisconnectSegment", error);
}

/* Connects to a peer that may not be there yet, or may go again meanwhile. */
static struct peer reach(sci_desc_t sd, unsigned int node, unsigned int id, size_t size)
{
  struct peer peer;
  sci_error_t error;

  for (;;) {
    SCIConnectSegment(sd, &peer.segment, node, id, adapter, NO_CALLBACK, NO_ARG, 100, NO_FLAGS, &error);
    if (error == SCI_ERR_NO_SUCH_NODEID)
      check("SCIConnectSegment", error);
    if (error != SCI_ERR_OK) {
      rest();
      continue;
    }
    peer.words = (volatile uint64_t *)SCIMapRemoteSegment(peer.segment, &peer.map, 0, size, NULL, NO_FLAGS, &error);
    if (error == SCI_ERR_OK) {
      SCICreateMapSequence(peer.map, &peer.sequence, NO_FLAGS, &error);
      check("SCICreateMapSequence", error);
      if (SCIStartSequence(peer.sequence, NO_FLAGS, &error) == SCI_SEQ_OK)
        return peer;
      disconnect(&peer);
      continue;
    }
    SCIDisconnectSegment(peer.segment, NO_FLAGS, &error);
    check("SCIDisconnectSegment", error);
  }
}

static int is_there(struct peer *peer)
{
  sci_error_t error;

  return SCICheckSequence(peer->sequence, NO_FLAGS, &error) == SCI_SEQ_OK;
}

/* Says why the connection is of no use any more, and ends it. */
static void give_up(struct peer *peer)
{
  sci_error_t status, error;
  sci_segment_cb_reason_t reason = SCIWaitForRemoteSegmentEvent(peer->segment, &status, 0, NO_FLAGS, &error);

  say(error == SCI_ERR_OK && reason == SCI_CB_LOST ? "lost, reason" : "gone, reason", reason);
  disconnect(peer);
}

static void produce(sci_desc_t sd, unsigned int node, uint64_t items)
{
  struct own progress = offer(sd, PROGRESS_ID, 4096);
  struct peer ring = reach(sd, node, RING_ID, SLOTS * sizeof(uint64_t));
  uint64_t known, next = 0, consumed = 0;
  int looks = 0, is_told = 0;

  while (consumed < items) {
    known = progress.words[0];
    if (known & KNOWN) {
      consumed = known & ~KNOWN;
      if (!is_told)
        say("connected, from", next = consumed);
      is_told = 1;
    }
    if (is_told && next < items && next < consumed + SLOTS) {
      /* The number of an item tells the consumer that this is the item, not what the slot had before. */
      ring.words[next % SLOTS] = next + 1;
      next++;
      looks = 0;
    } else if (++looks % LOOKS == 0) {
      sched_yield();
      if (is_there(&ring))
        continue;
      give_up(&ring);
      ring = reach(sd, node, RING_ID, SLOTS * sizeof(uint64_t));
      next = consumed;
      say("connected again, from", next);
    }
  }
  say("produced", items);
  disconnect(&ring);
  withdraw(&progress);
}

static void consume(sci_desc_t sd, unsigned int node, uint64_t items, unsigned int slow)
{
  struct own ring = offer(sd, RING_ID, SLOTS * sizeof(uint64_t));
  struct peer progress = reach(sd, node, PROGRESS_ID, 4096);
  uint64_t next = progress.words[0] & ~KNOWN;
  int looks = 0;

  /* What the consumer before this one has told is where this one goes on. */
  progress.words[0] = KNOWN | next;
  say("connected, from", next);
  while (next < items) {
    if (ring.words[next % SLOTS] == next + 1) {
      next++;
      looks = 0;
      if (slow && next % slow == 0)
        rest();
      progress.words[0] = KNOWN | next;
      if (next % STRIDE == 0)
        say("have", next);
    } else if (++looks % LOOKS == 0) {
      sched_yield();
      if (is_there(&progress))
        continue;
      give_up(&progress);
      progress = reach(sd, node, PROGRESS_ID, 4096);
      progress.words[0] = KNOWN | next;
      say("connected again, have", next);
    }
  }
  say("consumed", next);
  disconnect(&progress);
  withdraw(&ring);
}

int main(int argc, char **argv)
{
  int is_producer = sisci_demo_has(argc, argv, "-producer");
  unsigned int node = sisci_demo_option(argc, argv, "-rn", 0);
  unsigned int items = sisci_demo_option(argc, argv, "-items", 100000);
  unsigned int slow = sisci_demo_option(argc, argv, "-slow", 0);
  sci_desc_t sd;
  sci_error_t error;

  adapter = sisci_demo_option(argc, argv, "-a", 0);
  if (node == 0 || is_producer == sisci_demo_has(argc, argv, "-consumer")) {
    fprintf(stderr, "usage: %s -producer|-consumer -rn NODE [-a ADAPTER] [-items N] [-slow N]\n", argv[0]);
    return 2;
  }
  SCIInitialize(NO_FLAGS, &error);
  check("SCIInitialize", error);
  SCIOpen(&sd, NO_FLAGS, &error);
  check("SCIOpen", error);
  if (is_producer)
    produce(sd, node, items);
  else
    consume(sd, node, items, slow);
  SCIClose(sd, NO_FLAGS, &error);
  check("SCIClose", error);
  SCITerminate();
  return 0;
}

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

#include "example.h"

#define SLOTS 256u
#define RING_ID 0x3100u
#define PROGRESS_ID 0x3101u
/* How often memory is looked at in vain before the sequence is asked whether the peer is still there. */
#define LOOKS 20000
/* The consumer says how far it is after so many items. */
#define STRIDE 5000u

/* Beside the progress, in the producer's memory: somebody has told it. */
#define KNOWN (1ULL << 63)

static unsigned int adapter;

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
  struct own progress = offer(sd, adapter, PROGRESS_ID, 4096, NO_FLAGS);
  struct peer ring = reach(sd, adapter, node, RING_ID, SLOTS * sizeof(uint64_t), NO_FLAGS);
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
      ring = reach(sd, adapter, node, RING_ID, SLOTS * sizeof(uint64_t), NO_FLAGS);
      next = consumed;
      say("connected again, from", next);
    }
  }
  say("produced", items);
  disconnect(&ring);
  withdraw(&progress, NO_FLAGS);
}

static void consume(sci_desc_t sd, unsigned int node, uint64_t items, unsigned int slow)
{
  struct own ring = offer(sd, adapter, RING_ID, SLOTS * sizeof(uint64_t), NO_FLAGS);
  struct peer progress = reach(sd, adapter, node, PROGRESS_ID, 4096, NO_FLAGS);
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
        rest_a_millisecond();
      progress.words[0] = KNOWN | next;
      if (next % STRIDE == 0)
        say("have", next);
    } else if (++looks % LOOKS == 0) {
      sched_yield();
      if (is_there(&progress))
        continue;
      give_up(&progress);
      progress = reach(sd, adapter, node, PROGRESS_ID, 4096, NO_FLAGS);
      progress.words[0] = KNOWN | next;
      say("connected again, have", next);
    }
  }
  say("consumed", next);
  disconnect(&progress);
  withdraw(&ring, NO_FLAGS);
}

int main(int argc, char **argv)
{
  int is_producer = sisci_demo_has(argc, argv, "-producer");
  unsigned int node = sisci_demo_option(argc, argv, "-rn", 0);
  unsigned int items = sisci_demo_option(argc, argv, "-items", 100000);
  unsigned int slow = sisci_demo_option(argc, argv, "-slow", 0);
  sci_desc_t sd;

  adapter = sisci_demo_option(argc, argv, "-a", 0);
  if (node == 0 || is_producer == sisci_demo_has(argc, argv, "-consumer")) {
    fprintf(stderr, "usage: %s -producer|-consumer -rn NODE [-a ADAPTER] [-items N] [-slow N]\n", argv[0]);
    return 2;
  }
  sd = start_sisci();
  if (is_producer)
    produce(sd, node, items);
  else
    consume(sd, node, items, slow);
  end_sisci(sd);
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What several examples do in the same way: end on a failure, start and end with the library, offer memory of their own, connect to
 * memory of a peer that may not be there yet or may be killed.
 */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include <sched.h>
#include <stddef.h>
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

/* Memory of this process that others store into. */
struct own {
  sci_local_segment_t segment;
  sci_map_t map;
  volatile uint64_t *words;
};

/* Memory of another process that this one stores into. */
struct peer {
  sci_remote_segment_t segment;
  sci_map_t map;
  sci_sequence_t sequence;
  volatile uint64_t *words;
};

/* Ends the program if a function failed, and says which and why. */
static inline void check(const char *what, sci_error_t error)
{
  if (sisci_demo_failed(what, error))
    exit(1);
}

static inline sci_desc_t start_sisci(void)
{
  sci_desc_t sd;
  sci_error_t error;

  SCIInitialize(NO_FLAGS, &error);
  check("SCIInitialize", error);
  SCIOpen(&sd, NO_FLAGS, &error);
  check("SCIOpen", error);
  return sd;
}

static inline void end_sisci(sci_desc_t sd)
{
  sci_error_t error;

  SCIClose(sd, NO_FLAGS, &error);
  check("SCIClose", error);
  SCITerminate();
}

/* A line that whoever reads this program's output sees at once. */
static inline void say(const char *what, unsigned long long number)
{
  printf("%s %llu\n", what, number);
  fflush(stdout);
}

static inline void rest_a_millisecond(void)
{
  struct timespec millisecond = { 0, 1000000 };

  nanosleep(&millisecond, NULL);
}

/* Makes a segment that others may connect to. With SCI_FLAG_BROADCAST this process joins a group, and its map is for reading. */
static inline struct own offer(sci_desc_t sd, unsigned int adapter, unsigned int id, size_t size, unsigned int flags)
{
  struct own own;
  sci_error_t error;

  SCICreateSegment(sd, &own.segment, id, size, NO_CALLBACK, NO_ARG, flags, &error);
  check("SCICreateSegment", error);
  SCIPrepareSegment(own.segment, adapter, flags, &error);
  check("SCIPrepareSegment", error);
  own.words = (volatile uint64_t *)SCIMapLocalSegment(own.segment, &own.map, 0, size, NULL, NO_FLAGS, &error);
  check("SCIMapLocalSegment", error);
  SCISetSegmentAvailable(own.segment, adapter, NO_FLAGS, &error);
  check("SCISetSegmentAvailable", error);
  return own;
}

/* Removes the segment: waits until nobody is connected, or with SCI_FLAG_FORCE_REMOVE ends the connections. */
static inline void withdraw(struct own *own, unsigned int flags)
{
  sci_error_t error;

  SCIUnmapSegment(own->map, NO_FLAGS, &error);
  check("SCIUnmapSegment", error);
  do {
    SCIRemoveSegment(own->segment, flags, &error);
    sched_yield();
  } while (error == SCI_ERR_BUSY);
  check("SCIRemoveSegment", error);
}

static inline void disconnect(struct peer *peer)
{
  sci_error_t error;

  SCIRemoveSequence(peer->sequence, NO_FLAGS, &error);
  check("SCIRemoveSequence", error);
  SCIUnmapSegment(peer->map, NO_FLAGS, &error);
  check("SCIUnmapSegment", error);
  SCIDisconnectSegment(peer->segment, NO_FLAGS, &error);
  check("SCIDisconnectSegment", error);
}

/*
 * Connects to a segment, or gives the code of why that is not possible now; after SCI_ERR_OK the sequence has been started. The time is
 * that of SCIConnectSegment.
 */
static inline sci_error_t connect_once(sci_desc_t sd, unsigned int adapter, struct peer *peer, unsigned int node, unsigned int id,
                                       size_t size, unsigned int time_ms, unsigned int flags)
{
  sci_sequence_status_t status;
  sci_error_t error, failure;

  SCIConnectSegment(sd, &peer->segment, node, id, adapter, NO_CALLBACK, NO_ARG, time_ms, flags, &error);
  if (error != SCI_ERR_OK)
    return error;
  peer->words = (volatile uint64_t *)SCIMapRemoteSegment(peer->segment, &peer->map, 0, size, NULL, NO_FLAGS, &failure);
  if (failure != SCI_ERR_OK) {
    SCIDisconnectSegment(peer->segment, NO_FLAGS, &error);
    check("SCIDisconnectSegment", error);
    return SCI_ERR_SEGMENT_NOT_CONNECTED;
  }
  SCICreateMapSequence(peer->map, &peer->sequence, NO_FLAGS, &error);
  check("SCICreateMapSequence", error);
  do {
    status = SCIStartSequence(peer->sequence, NO_FLAGS, &error);
  } while (status == SCI_SEQ_PENDING);
  if (status == SCI_SEQ_OK)
    return SCI_ERR_OK;
  disconnect(peer);
  return SCI_ERR_SEGMENT_NOT_CONNECTED;
}

/* Connects to a peer that may not be there yet, or may go again meanwhile. */
static inline struct peer reach(sci_desc_t sd, unsigned int adapter, unsigned int node, unsigned int id, size_t size,
                                unsigned int flags)
{
  struct peer peer;
  sci_error_t error;

  while ((error = connect_once(sd, adapter, &peer, node, id, size, 100, flags)) != SCI_ERR_OK) {
    if (error != SCI_ERR_SEGMENT_NOT_CONNECTED && error != SCI_ERR_TIMEOUT && error != SCI_ERR_NODE_NOT_RESPONDING)
      check("SCIConnectSegment", error);
    rest_a_millisecond();
  }
  return peer;
}

/* Says whether stores arrived and the peer is there. Whoever is not is dead or has removed the segment: silence alone is never that. */
static inline int is_there(struct peer *peer)
{
  sci_error_t error;
  sci_sequence_status_t status;

  while ((status = SCICheckSequence(peer->sequence, NO_FLAGS, &error)) == SCI_SEQ_PENDING)
    sched_yield();
  return status == SCI_SEQ_OK;
}

#endif

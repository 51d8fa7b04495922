/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * One program copies a block into the segment of another with SCIMemCpy, in pieces, each checked by a sequence and repeated if need
 * be, or by DMA out of a segment of its own; then it copies the block back and compares. The owner looks at what arrived, too.
 *
 *     BEELINE_NODE=4 ./copy -server -size 1048576
 *     BEELINE_NODE=8 ./copy -client -rn 4
 *
 *     -rn NODE     the node of the server
 *     -a ADAPTER   the adapter to go through (0)
 *     -size BYTES  of the block (65536), for the server: the client copies as much as the segment has room for
 *     -piece BYTES of one copy (8192)
 *     -id NUMBER   of the segment (0x2100)
 *     -dma         by DMA: the pieces are transferred several at a time, while the client could do something else
 */
#define _POSIX_C_SOURCE 200809L

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sisci_api.h"
#include "sisci_demolib.h"
#include "sisci_error.h"

#define NO_CALLBACK NULL
#define NO_ARG NULL
#define NO_FLAGS 0

/* Pieces of one transfer by DMA. */
#define PIECES 16u

/* In front of the block: what each says to the other. */
#define HEADER 64u

struct header {
  /* The client: 1 once the block is there. */
  volatile uint32_t written;
  /* The server: 1 if what is there is right, 2 if not. */
  volatile uint32_t answer;
};

static unsigned int adapter, size, piece, id;

static void check(const char *what, sci_error_t error)
{
  if (sisci_demo_failed(what, error))
    exit(1);
}

static unsigned char expected(size_t at)
{
  return (unsigned char)(at * 31 + at / 251 + 7);
}

static int is_right(const volatile unsigned char *block)
{
  size_t at;

  for (at = 0; at < size; at++)
    if (block[at] != expected(at))
      return 0;
  return 1;
}

static void serve(sci_desc_t sd)
{
  sci_local_segment_t segment;
  sci_map_t map;
  sci_error_t error;
  struct header *header;
  int right;

  SCICreateSegment(sd, &segment, id, HEADER + size, NO_CALLBACK, NO_ARG, NO_FLAGS, &error);
  check("SCICreateSegment", error);
  SCIPrepareSegment(segment, adapter, NO_FLAGS, &error);
  check("SCIPrepareSegment", error);
  header = (struct header *)SCIMapLocalSegment(segment, &map, 0, HEADER + size, NULL, NO_FLAGS, &error);
  check("SCIMapLocalSegment", error);
  SCISetSegmentAvailable(segment, adapter, NO_FLAGS, &error);
  check("SCISetSegmentAvailable", error);
  printf("available\n");
  fflush(stdout);

  while (!header->written)
    sched_yield();
  right = is_right((const volatile unsigned char *)header + HEADER);
  header->answer = right ? 1 : 2;
  printf("%s\n", right ? "the block is right" : "the block is wrong");

  SCISetSegmentUnavailable(segment, adapter, NO_FLAGS, &error);
  check("SCISetSegmentUnavailable", error);
  SCIUnmapSegment(map, NO_FLAGS, &error);
  check("SCIUnmapSegment", error);
  /* The client reads the block until it disconnects. */
  do {
    SCIRemoveSegment(segment, NO_FLAGS, &error);
    sched_yield();
  } while (error == SCI_ERR_BUSY);
  check("SCIRemoveSegment", error);
}

/* Copies one piece until the sequence says that it arrived. */
static void copy_piece(sci_sequence_t sequence, sci_map_t map, unsigned char *block, size_t at, size_t bytes)
{
  sci_sequence_status_t status;
  sci_error_t error;

  for (;;) {
    status = SCIStartSequence(sequence, NO_FLAGS, &error);
    check("SCIStartSequence", error);
    if (status == SCI_SEQ_PENDING)
      continue;
    if (status == SCI_SEQ_OK) {
      SCIMemCpy(sequence, block + at, map, HEADER + at, bytes, NO_FLAGS, &error);
      check("SCIMemCpy", error);
      status = SCICheckSequence(sequence, NO_FLAGS, &error);
      check("SCICheckSequence", error);
      if (status == SCI_SEQ_OK)
        return;
    }
    if (status == SCI_SEQ_NOT_RETRIABLE) {
      fprintf(stderr, "the server has gone\n");
      exit(1);
    }
  }
}

static void wait_for_dma(sci_dma_queue_t queue)
{
  sci_error_t error;

  if (SCIWaitForDMAQueue(queue, SCI_INFINITE_TIMEOUT, NO_FLAGS, &error) != SCI_DMAQUEUE_DONE) {
    sisci_demo_failed("SCIWaitForDMAQueue", error);
    fprintf(stderr, "the transfer failed\n");
    exit(1);
  }
}

/* Transfers the block out of a segment that only DMA and this process use. */
static void copy_by_dma(sci_desc_t sd, sci_remote_segment_t remote, const unsigned char *block)
{
  dis_dma_vec_t vector[PIECES];
  sci_local_segment_t segment;
  sci_dma_queue_t queue;
  sci_map_t map;
  sci_error_t error;
  void *address;
  size_t at = 0, count;

  SCICreateSegment(sd, &segment, 0, size, NO_CALLBACK, NO_ARG, SCI_FLAG_PRIVATE, &error);
  check("SCICreateSegment", error);
  SCIPrepareSegment(segment, adapter, NO_FLAGS, &error);
  check("SCIPrepareSegment", error);
  address = SCIMapLocalSegment(segment, &map, 0, size, NULL, NO_FLAGS, &error);
  check("SCIMapLocalSegment", error);
  memcpy(address, block, size);
  SCICreateDMAQueue(sd, &queue, adapter, PIECES, NO_FLAGS, &error);
  check("SCICreateDMAQueue", error);
  while (at < size) {
    for (count = 0; count < PIECES && at < size; count++) {
      vector[count].size = (unsigned int)(size - at < piece ? size - at : piece);
      vector[count].local_offset = (unsigned int)at;
      vector[count].remote_offset = (unsigned int)(HEADER + at);
      vector[count].flags = NO_FLAGS;
      at += vector[count].size;
    }
    SCIStartDmaTransferVec(queue, segment, remote, count, vector, NO_CALLBACK, NO_ARG, NO_FLAGS, &error);
    check("SCIStartDmaTransferVec", error);
    wait_for_dma(queue);
  }
  SCIRemoveDMAQueue(queue, NO_FLAGS, &error);
  check("SCIRemoveDMAQueue", error);
  SCIUnmapSegment(map, NO_FLAGS, &error);
  check("SCIUnmapSegment", error);
  SCIRemoveSegment(segment, NO_FLAGS, &error);
  check("SCIRemoveSegment", error);
}

static void run_client(sci_desc_t sd, unsigned int node, int is_by_dma)
{
  unsigned char *block, *back;
  sci_remote_segment_t segment;
  sci_sequence_t sequence;
  sci_map_t map;
  sci_error_t error;
  volatile struct header *header;
  size_t at;

  do {
    SCIConnectSegment(sd, &segment, node, id, adapter, NO_CALLBACK, NO_ARG, 1000, NO_FLAGS, &error);
  } while (error == SCI_ERR_TIMEOUT);
  check("SCIConnectSegment", error);
  size = (unsigned int)(SCIGetRemoteSegmentSize(segment) - HEADER);
  block = (unsigned char *)malloc(size);
  back = (unsigned char *)malloc(size);
  if (!block || !back)
    exit(1);
  for (at = 0; at < size; at++)
    block[at] = expected(at);
  header = (volatile struct header *)SCIMapRemoteSegment(segment, &map, 0, HEADER + size, NULL, NO_FLAGS, &error);
  check("SCIMapRemoteSegment", error);
  SCICreateMapSequence(map, &sequence, NO_FLAGS, &error);
  check("SCICreateMapSequence", error);

  if (is_by_dma)
    copy_by_dma(sd, segment, block);
  for (at = 0; at < size && !is_by_dma; at += piece)
    copy_piece(sequence, map, block, at, size - at < piece ? size - at : piece);
  /* A piece beyond the end is refused, and nothing of it is stored. */
  SCIMemCpy(sequence, block, map, HEADER + size - 1, 2, NO_FLAGS, &error);
  if (error != SCI_ERR_OUT_OF_RANGE)
    check("SCIMemCpy beyond the end", error == SCI_ERR_OK ? SCI_ERR_SYSTEM : error);
  SCIStoreBarrier(sequence, NO_FLAGS);
  header->written = 1;
  SCIFlush(sequence, NO_FLAGS);

  SCIMemCpy(sequence, back, map, HEADER, size, SCI_FLAG_BLOCK_READ, &error);
  check("SCIMemCpy", error);
  printf("%u bytes there and back: %s\n", size, memcmp(block, back, size) ? "different" : "equal");
  while (!header->answer)
    sched_yield();
  printf("%s\n", header->answer == 1 ? "the server has it" : "the server has something else");

  SCIRemoveSequence(sequence, NO_FLAGS, &error);
  check("SCIRemoveSequence", error);
  SCIUnmapSegment(map, NO_FLAGS, &error);
  check("SCIUnmapSegment", error);
  SCIDisconnectSegment(segment, NO_FLAGS, &error);
  check("SCIDisconnectSegment", error);
  free(block);
  free(back);
}

int main(int argc, char **argv)
{
  int is_client = sisci_demo_has(argc, argv, "-client");
  unsigned int node = sisci_demo_option(argc, argv, "-rn", 0);
  sci_desc_t sd;
  sci_error_t error;

  adapter = sisci_demo_option(argc, argv, "-a", 0);
  size = sisci_demo_option(argc, argv, "-size", 65536);
  piece = sisci_demo_option(argc, argv, "-piece", 8192);
  id = sisci_demo_option(argc, argv, "-id", 0x2100);
  if (is_client == sisci_demo_has(argc, argv, "-server") || (is_client && node == 0) || size == 0 || piece == 0) {
    fprintf(stderr, "usage: %s -server|-client -rn NODE [-a ADAPTER] [-size BYTES] [-piece BYTES] [-id NUMBER] "
            "[-dma]\n",
            argv[0]);
    return 2;
  }
  SCIInitialize(NO_FLAGS, &error);
  check("SCIInitialize", error);
  SCIOpen(&sd, NO_FLAGS, &error);
  check("SCIOpen", error);
  if (is_client)
    run_client(sd, node, sisci_demo_has(argc, argv, "-dma"));
  else
    serve(sd);
  SCIClose(sd, NO_FLAGS, &error);
  check("SCIClose", error);
  SCITerminate();
  return 0;
}

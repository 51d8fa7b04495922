/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file sisci_types.h
 * Handles, enumerations, structures and callbacks of SISCI.
 *
 * HANDLES are pointers that only the library may follow. Each is one process's: it means nothing in another one, nor in a child
 * of fork. A handle that is removed is never given again, so using it afterwards is SCI_ERR_ILLEGAL_PARAMETER and touches nothing.
 */
#ifndef SISCI_TYPES_H
#define SISCI_TYPES_H

#include <stddef.h>
#include <stdint.h>

#include "sisci_error.h"
#include "sisci_glob_defs.h"

#ifdef __cplusplus
extern "C" {
#endif

/** What a program opens first (SCIOpen()) and makes everything else with. */
typedef struct sci_desc *sci_desc_t;
/** A segment of this process. */
typedef struct sci_local_segment *sci_local_segment_t;
/** A connection to a segment of another process. */
typedef struct sci_remote_segment *sci_remote_segment_t;
/** A part of a segment that has an address in this process. */
typedef struct sci_map *sci_map_t;
/** What finds out whether stores through a map arrived. */
typedef struct sci_sequence *sci_sequence_t;
/** A queue of transfers that need no CPU of the program. */
typedef struct sci_dma_queue *sci_dma_queue_t;
/** An engine that a program has asked for by itself. */
typedef struct sci_dma_channel *sci_dma_channel_t;
/** An interrupt that others trigger in this process. */
typedef struct sci_local_interrupt *sci_local_interrupt_t;
/** A connection to an interrupt of another process. */
typedef struct sci_remote_interrupt *sci_remote_interrupt_t;
/** An interrupt that comes with bytes. */
typedef struct sci_local_data_interrupt *sci_local_data_interrupt_t;
/** A connection to a data interrupt of another process. */
typedef struct sci_remote_data_interrupt *sci_remote_data_interrupt_t;
/** A transfer of version 1 between two maps. */
typedef struct sci_block_transfer *sci_block_transfer_t;
/** A device that a node lends. No function gives one here (SCI_ERR_NOT_SUPPORTED). */
typedef struct sci_device *sci_device_t;

/** An address on a bus, as devices use it. */
typedef uint64_t sci_ioaddr_t;

/** A node, and an offset in its memory. */
typedef struct {
  uint16_t nodeId;
  /** The upper 16 bits of the offset. */
  uint16_t offsHi;
  /** The lower 32 bits of the offset. */
  uint32_t offsLo;
} sci_address_t;

/** What happened to a segment or to a connection to one. */
typedef enum {
  /** Somebody has connected; or an asynchronous connection is made. */
  SCI_CB_CONNECT = 1,
  /** Somebody has disconnected; or the owner asks to be disconnected from (SCI_FLAG_NOTIFY). */
  SCI_CB_DISCONNECT = 2,
  /** A link is down. Maps stay, and what is stored meanwhile is not known to arrive. */
  SCI_CB_NOT_OPERATIONAL = 3,
  /** The links are up again. Sequences are to be started anew. */
  SCI_CB_OPERATIONAL = 4,
  /** The connection is gone for good: the peer has ended, or the segment was removed by force. */
  SCI_CB_LOST = 5
} sci_segment_cb_reason_t;

/** What a DMA queue is doing. */
typedef enum {
  /** Nothing was started yet, or the queue was reset. */
  SCI_DMAQUEUE_IDLE = 0,
  /** Entries are collected (version 1). */
  SCI_DMAQUEUE_GATHER = 1,
  /** A transfer is under way. */
  SCI_DMAQUEUE_POSTED = 2,
  /** The last transfer is complete: its data are visible at their destination. */
  SCI_DMAQUEUE_DONE = 3,
  /** SCIAbortDMAQueue() ended the last transfer; a part of it may have been copied. */
  SCI_DMAQUEUE_ABORTED = 4,
  /** The last transfer failed; a part of it may have been copied. */
  SCI_DMAQUEUE_ERROR = 5
} sci_dma_queue_state_t;

/** What became of the stores since a sequence was started. */
typedef enum {
  /** All arrived. */
  SCI_SEQ_OK = 0,
  /** Some may not have arrived. Start the sequence anew, and store them again. */
  SCI_SEQ_RETRIABLE = 1,
  /** The segment is gone. Storing again is of no use. */
  SCI_SEQ_NOT_RETRIABLE = 2,
  /** A link is down. Start the sequence again until it is up. */
  SCI_SEQ_PENDING = 3
} sci_sequence_status_t;

/** What a callback wants next. */
typedef enum {
  /** Not to be called any more. The handle stays, and must be removed as any other. A DMA queue calls again after the next start. */
  SCI_CALLBACK_CANCEL = 1,
  /** To be called again. */
  SCI_CALLBACK_CONTINUE = 2
} sci_callback_action_t;

/** Which engine a channel is to be of (SCIRequestDMAChannel()). */
typedef enum {
  SCI_DMA_TYPE_DONTCARE = 1,
  SCI_DMA_TYPE_ADAPTER = 2,
  SCI_DMA_TYPE_GLOBAL = 3,
  SCI_DMA_TYPE_SYSTEM = 4,
  SCI_DMA_TYPE_TRANSPARENT = 5
} sci_dma_type_t;

/** Any channel will do. */
#define SCI_DMA_CHANNEL_ID_DONTCARE 0xffffffffu

/** One piece of a transfer of several (SCIStartDmaTransferVec()). */
typedef struct {
  /** Bytes. */
  unsigned int size;
  /** Where the piece begins in the local segment. */
  unsigned int local_offset;
  /** Where the piece begins in the remote segment. */
  unsigned int remote_offset;
  /** 0: none is defined. */
  unsigned int flags;
} dis_dma_vec_t;

/** What the engine of a DMA queue can do (SCI_Q_DMA_CAPABILITIES). */
typedef struct {
  unsigned int num_channels;
  /** Bytes of one transfer. */
  unsigned int max_transfer_size;
  /** Pieces of one transfer. */
  unsigned int max_vector_length;
  /** 1 if memory can be copied to addresses of devices, else 0; likewise the two that follow. */
  unsigned int support_mem2io;
  unsigned int support_io2mem;
  unsigned int support_io2io;
  /** What offsets and sizes must be multiples of. */
  unsigned int min_align_bytes;
  /** What offsets and sizes had better be multiples of. */
  unsigned int suggested_align_bytes;
} sci_dma_capabilities_t;

/** Node numbers of a host, one for each adapter; what is not used is 0. */
typedef unsigned int dis_nodeId_list_t[DIS_MAX_NSCIS];
/** Kind of an adapter; SCIGetAdapterTypeString() names it. */
typedef unsigned int dis_adapter_type_t;
/** The same, by its other name. */
typedef dis_adapter_type_t dis_virt_adapter_t;

/** SCI_Q_VENDORID, SCI_Q_API, SCI_Q_SISCI_DRIVER_VERSION: a text. */
typedef struct {
  /** Where the text is put, with a zero behind it. */
  char *str;
  /** Bytes there. A text that is too long is cut. */
  unsigned int length;
} sci_query_string_t;

/** SCI_Q_ADAPTER: what is asked of an adapter. */
typedef struct {
  unsigned int localAdapterNo;
  /** 0: adapters have one port. */
  unsigned int portNo;
  /** One of SCI_Q_ADAPTER_... */
  unsigned int subcommand;
  /** Where an `unsigned int` is put. */
  void *data;
} sci_query_adapter_t;

/** SCI_Q_SYSTEM: what is asked of the host. */
typedef struct {
  unsigned int subcommand;
  /** Where an `unsigned int` is put. */
  void *data;
} sci_query_system_t;

/** SCI_Q_DMA: what is asked of the engines of an adapter. */
typedef struct {
  unsigned int localAdapterNo;
  /** SCI_Q_DMA_CAPABILITIES */
  unsigned int subcommand;
  /** Where a sci_dma_capabilities_t is put. */
  void *data;
} sci_query_dma_t;

/** SCI_Q_LOCAL_SEGMENT: what is asked of a segment. */
typedef struct {
  sci_local_segment_t segment;
  /** SCI_Q_LOCAL_SEGMENT_IOADDR or SCI_Q_LOCAL_SEGMENT_PHYS_ADDR */
  unsigned int subcommand;
  /** The answer. */
  struct {
    sci_ioaddr_t ioaddr;
  } data;
} sci_query_local_segment_t;

/** SCI_Q_REMOTE_SEGMENT: what is asked of a connection. */
typedef struct {
  sci_remote_segment_t segment;
  /** SCI_Q_REMOTE_SEGMENT_IOADDR */
  unsigned int subcommand;
  /** The answer. */
  struct {
    sci_ioaddr_t ioaddr;
  } data;
} sci_query_remote_segment_t;

/** SCI_Q_MAP: what is asked of a map. */
typedef struct {
  sci_map_t map;
  /** SCI_Q_MAP_IOADDR or SCI_Q_MAP_PHYS_ADDR */
  unsigned int subcommand;
  /** The answer. */
  struct {
    sci_ioaddr_t ioaddr;
  } data;
} sci_query_map_t;

/*
 * Callbacks run on a thread of the library, those of one resource one after the other, those of two resources at the same time or
 * not. A callback may call every function, may wait, and may remove its own resource: that takes effect when it returns. Removing a
 * resource from elsewhere waits for a callback of it that is running, unless the caller is itself in a callback. `arg` is what the
 * program gave with the callback. An exception of C++ must not leave a callback.
 */

/**
 * Tells of a local segment: which node connected or disconnected, or that a link went down or came up. `localAdapterNo` is the adapter
 * of that link; of who connected or disconnected, the adapter that the segment was made available through last.
 */
typedef sci_callback_action_t (*sci_cb_local_segment_t)(void *arg, sci_local_segment_t segment,
                                                        sci_segment_cb_reason_t reason, unsigned int nodeId,
                                                        unsigned int localAdapterNo, sci_error_t error);

/** Tells of a connection to a segment. */
typedef sci_callback_action_t (*sci_cb_remote_segment_t)(void *arg, sci_remote_segment_t segment,
                                                         sci_segment_cb_reason_t reason, sci_error_t error);

/**
 * Tells that a transfer is complete (SCI_ERR_OK), aborted (SCI_ERR_CANCELLED) or failed (SCI_ERR_TRANSFER_FAILED). Each start that
 * names a callback is one call, also after one that returned SCI_CALLBACK_CANCEL.
 */
typedef sci_callback_action_t (*sci_cb_dma_t)(void *arg, sci_dma_queue_t queue, sci_error_t error);

/** Tells that the interrupt was triggered. */
typedef sci_callback_action_t (*sci_cb_interrupt_t)(void *arg, sci_local_interrupt_t interrupt, sci_error_t error);

/** Gives the bytes that the interrupt came with. They are there until the callback returns. */
typedef sci_callback_action_t (*sci_cb_data_interrupt_t)(void *arg, sci_local_data_interrupt_t interrupt, void *data,
                                                         unsigned int length, sci_error_t error);

/** Tells that a transfer between two maps is complete (version 1). */
typedef sci_callback_action_t (*sci_cb_block_transfer_t)(void *arg, sci_block_transfer_t block, sci_error_t error);

#ifdef __cplusplus
}
#endif

#endif

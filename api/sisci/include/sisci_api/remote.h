/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file remote.h
 * Connections to segments of others, and maps of them.
 *
 * States: a connection is CONNECTING until it is made (only with SCI_FLAG_ASYNCHRONOUS_CONNECT does a program see this), then
 * OPERATIONAL; NOT OPERATIONAL while the link of either side is down; LOST for good once the peer has ended or the segment was
 * removed by force.
 */
#ifndef SISCI_API_REMOTE_H
#define SISCI_API_REMOTE_H

#ifdef __cplusplus
extern "C" {
#endif

#define SCIConnectSegment _SISCI_EXPANDE_FUNCTION_NAME(SCIConnectSegment)
#define SCIDisconnectSegment _SISCI_EXPANDE_FUNCTION_NAME(SCIDisconnectSegment)
#define SCIMapRemoteSegment _SISCI_EXPANDE_FUNCTION_NAME(SCIMapRemoteSegment)
#define SCIUnmapSegment _SISCI_EXPANDE_FUNCTION_NAME(SCIUnmapSegment)
#define SCIWaitForRemoteSegmentEvent _SISCI_EXPANDE_FUNCTION_NAME(SCIWaitForRemoteSegmentEvent)
#define SCIGetRemoteSegmentSize _SISCI_EXPANDE_FUNCTION_NAME(SCIGetRemoteSegmentSize)
#define SCIGetRemoteSegmentId _SISCI_EXPANDE_FUNCTION_NAME(SCIGetRemoteSegmentId)
#define SCIGetRemoteSegmentNodeId _SISCI_EXPANDE_FUNCTION_NAME(SCIGetRemoteSegmentNodeId)
#define SCIGetMapPointer _SISCI_EXPANDE_FUNCTION_NAME(SCIGetMapPointer)
#define SCIGetMapPhysAddr _SISCI_EXPANDE_FUNCTION_NAME(SCIGetMapPhysAddr)
#define SCIConnectSCISpace _SISCI_EXPANDE_FUNCTION_NAME(SCIConnectSCISpace)

/**
 * Connects to a segment.
 *
 * @param segment        where the connection is put
 * @param nodeId         the node that has it
 * @param segmentId      its number
 * @param localAdapterNo the adapter to go through
 * @param callback       is called with SCI_FLAG_USE_CALLBACK when the state changes
 * @param timeout        milliseconds: how long to wait until the segment is there. 0: the reason why it is not is given at once, or after
 *                       half a second if a process of the node does not answer
 *
 * Flags: SCI_FLAG_USE_CALLBACK; SCI_FLAG_ASYNCHRONOUS_CONNECT (returns at once in CONNECTING; SCI_CB_CONNECT or SCI_CB_LOST
 * follows). SCI_FLAG_BROADCAST goes with node DIS_BROADCAST_NODEID_GROUP_ALL: the segment is that of a group (SCICreateSegment()), which
 * goes on as long as one process is there that has joined and made its segment available; the links of those do not count.
 * Errors: SCI_ERR_NO_SUCH_SEGMENT; SCI_ERR_CONNECTION_REFUSED (not available through this adapter); SCI_ERR_ACCESS;
 * SCI_ERR_NO_LINK_ACCESS; SCI_ERR_NO_REMOTE_LINK_ACCESS; SCI_ERR_NO_SUCH_NODEID; SCI_ERR_ILLEGAL_NODEID; SCI_ERR_NODE_NOT_RESPONDING;
 * SCI_ERR_TIMEOUT (the time is over); SCI_ERR_MAX_ENTRIES (this process has 1024 connections to the segment); SCI_ERR_ILLEGAL_OPERATION (SCI_FLAG_BROADCAST with another
 * node).
 * States: gives OPERATIONAL, or CONNECTING.
 */
void SCIConnectSegment(sci_desc_t sd, sci_remote_segment_t *segment, unsigned int nodeId, unsigned int segmentId,
                       unsigned int localAdapterNo, sci_cb_remote_segment_t callback, void *arg, unsigned int timeout,
                       unsigned int flags, sci_error_t *error);

/**
 * Ends a connection. One that is CONNECTING is given up.
 *
 * Errors: SCI_ERR_BUSY while it is mapped or a transfer uses it.
 */
void SCIDisconnectSegment(sci_remote_segment_t segment, unsigned int flags, sci_error_t *error);

/**
 * Maps a part of a segment of another process. A segment of the own node is mapped as it is.
 *
 * @param map    where the map is put
 * @param offset where the part begins
 * @param size   bytes of it
 * @param addr   where it is wanted, with SCI_FLAG_FIXED_MAP_ADDR; else it is not looked at
 * @return the address of its first byte, or NULL
 *
 * The map stays good for loads and stores while a link is down, and after the connection is lost: what is stored then is seen by
 * nobody, or by those who still have the memory mapped, and SCICheckSequence() says so.
 *
 * Flags: SCI_FLAG_FIXED_MAP_ADDR, SCI_FLAG_READONLY_MAP; SCI_FLAG_BROADCAST, of a group, changes nothing, and neither do
 * SCI_FLAG_SHARED_MAP, SCI_FLAG_READ_PREFETCH_AGGR_HOLD_MAP and SCI_FLAG_READ_PREFETCH_NO_HOLD_MAP. SCI_FLAG_WRITE_BACK_CACHE_MAP and
 * SCI_FLAG_LOCK_OPERATION (atomic operations of the CPU work between all that have it mapped) are of memory of the host alone, and
 * SCI_FLAG_IO_MAP_IOSPACE of memory of a device: elsewhere they are SCI_ERR_FLAG_NOT_IMPLEMENTED, as these are everywhere:
 * SCI_FLAG_NO_MEMORY_LOOPBACK, SCI_FLAG_CONDITIONAL_INTERRUPT_MAP, SCI_FLAG_UNCONDITIONAL_DATA_INTERRUPT_MAP, SCI_FLAG_DMOVE_MAP.
 * Errors: SCI_ERR_SEGMENT_NOT_CONNECTED (CONNECTING); SCI_ERR_NOT_CONNECTED (LOST); SCI_ERR_OUT_OF_RANGE; SCI_ERR_SIZE_ALIGNMENT
 * (0 bytes); SCI_ERR_ILLEGAL_OPERATION (SCI_FLAG_BROADCAST of no group); SCI_ERR_ACCESS (for writing, of memory that is given for
 * reading); SCI_ERR_ILLEGAL_ADDRESS; SCI_ERR_NOSPC; SCI_ERR_ILLEGAL_FLAG (SCI_FLAG_IO_MAP_IOSPACE with SCI_FLAG_WRITE_BACK_CACHE_MAP).
 * States: OPERATIONAL and NOT OPERATIONAL.
 */
volatile void *SCIMapRemoteSegment(sci_remote_segment_t segment, sci_map_t *map, size_t offset, size_t size, void *addr,
                                   unsigned int flags, sci_error_t *error);

/**
 * Unmaps a map, of whichever kind. Its addresses must not be used any more.
 *
 * Errors: SCI_ERR_BUSY while a sequence of it is left.
 */
void SCIUnmapSegment(sci_map_t map, unsigned int flags, sci_error_t *error);

/**
 * Waits until the state of a connection changes.
 *
 * @param status  where the code of the event is put
 * @param timeout milliseconds
 * @return what happened; SCI_CB_DISCONNECT is a request of the owner to disconnect, see SCISetSegmentUnavailable()
 *
 * Errors: SCI_ERR_TIMEOUT; SCI_ERR_CANCELLED; SCI_ERR_ILLEGAL_OPERATION (the connection has a callback); SCI_ERR_NO_LINK_ACCESS (the
 * memory that the nodes share is gone, as for SCIWaitForLocalSegmentEvent()). SCI_CB_LOST may be told before that.
 */
sci_segment_cb_reason_t SCIWaitForRemoteSegmentEvent(sci_remote_segment_t segment, sci_error_t *status,
                                                     unsigned int timeout, unsigned int flags, sci_error_t *error);

/** Returns the bytes of the segment, or 0 if the connection is not made yet or there is none. */
size_t SCIGetRemoteSegmentSize(sci_remote_segment_t segment);

/** Returns the number of the segment, or 0 if there is no such connection. */
unsigned int SCIGetRemoteSegmentId(sci_remote_segment_t segment);

/** Returns the node of the segment, or 0 if there is no such connection. */
unsigned int SCIGetRemoteSegmentNodeId(sci_remote_segment_t segment);

/** Returns the address of a map's first byte, or NULL if there is no such map. */
volatile void *SCIGetMapPointer(sci_map_t map);

/** Returns the address of a map on the bus, or 0 where there is none: maps of memory of a device have one. */
sci_ioaddr_t SCIGetMapPhysAddr(sci_map_t map);

/**
 * Connects to memory by its address on a node. Nothing here lets a program do so.
 *
 * Errors: SCI_ERR_NOT_SUPPORTED.
 */
void SCIConnectSCISpace(sci_desc_t sd, unsigned int localAdapterNo, sci_remote_segment_t *segment, sci_address_t address,
                        size_t size, unsigned int flags, sci_error_t *error);

#ifdef __cplusplus
}
#endif

#endif

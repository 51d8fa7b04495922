/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file segment.h
 * Segments of this process.
 *
 * States: a segment is NOT PREPARED when it is made, PREPARED for an adapter, and AVAILABLE through it; one that is made
 * SCI_FLAG_EMPTY is EMPTY until memory is registered or attached. SCISetSegmentUnavailable() goes back to PREPARED;
 * SCIRemoveSegment() ends it in any state.
 */
#ifndef SISCI_API_SEGMENT_H
#define SISCI_API_SEGMENT_H

#ifdef __cplusplus
extern "C" {
#endif

#define SCICreateSegment _SISCI_EXPANDE_FUNCTION_NAME(SCICreateSegment)
#define SCIPrepareSegment _SISCI_EXPANDE_FUNCTION_NAME(SCIPrepareSegment)
#define SCISetSegmentAvailable _SISCI_EXPANDE_FUNCTION_NAME(SCISetSegmentAvailable)
#define SCISetSegmentUnavailable _SISCI_EXPANDE_FUNCTION_NAME(SCISetSegmentUnavailable)
#define SCIRemoveSegment _SISCI_EXPANDE_FUNCTION_NAME(SCIRemoveSegment)
#define SCIMapLocalSegment _SISCI_EXPANDE_FUNCTION_NAME(SCIMapLocalSegment)
#define SCIWaitForLocalSegmentEvent _SISCI_EXPANDE_FUNCTION_NAME(SCIWaitForLocalSegmentEvent)
#define SCIGetLocalSegmentSize _SISCI_EXPANDE_FUNCTION_NAME(SCIGetLocalSegmentSize)
#define SCIGetLocalSegmentId _SISCI_EXPANDE_FUNCTION_NAME(SCIGetLocalSegmentId)
#define SCIShareSegment _SISCI_EXPANDE_FUNCTION_NAME(SCIShareSegment)
#define SCIAttachLocalSegment _SISCI_EXPANDE_FUNCTION_NAME(SCIAttachLocalSegment)
#define SCIRegisterSegmentMemory _SISCI_EXPANDE_FUNCTION_NAME(SCIRegisterSegmentMemory)
#define SCIAttachPhysicalMemory _SISCI_EXPANDE_FUNCTION_NAME(SCIAttachPhysicalMemory)

/**
 * Makes a segment of zeroed memory. Pages are taken when they are first touched.
 *
 * @param sd        the descriptor that it belongs to
 * @param segment   where the segment is put
 * @param segmentId its number within the node; with SCI_FLAG_AUTO_ID, where to begin (SCIGetLocalSegmentId() gives what was taken)
 * @param size      bytes; with SCI_FLAG_EMPTY the most that can be registered, or 0 for any number
 * @param callback  is called with SCI_FLAG_USE_CALLBACK, as connections to the segment come and go
 * @param arg       what the callback is given
 *
 * Flags: SCI_FLAG_USE_CALLBACK, SCI_FLAG_EMPTY, SCI_FLAG_PRIVATE, SCI_FLAG_DMA_SOURCE_ONLY, SCI_FLAG_AUTO_ID, SCI_FLAG_BROADCAST,
 * SCI_FLAG_SHARE_EXTERNAL, SCI_FLAG_ALLOW_UNICAST; the last two are SCI_ERR_FLAG_NOT_IMPLEMENTED. SCI_FLAG_ALLOW_UNICAST is for stores
 * into the copy of one node; here a group has one memory, and such a store would be one for all.
 *
 * GROUPS. With SCI_FLAG_BROADCAST the process joins the group of this number: all that have joined, on whatever node, have one
 * memory. Whoever connects to node DIS_BROADCAST_NODEID_GROUP_ALL stores into it for all of them at the cost of one store. The number
 * has nothing to do with the numbers of a node's segments. The bytes are zero if nobody was there; who joins later has what was
 * stored before. The memory lasts as long as one of them has its segment. Once the last one has removed it, or has ended, connections
 * are lost, and whoever joins after that has new memory of zeros: a map that is left from before is of the old memory, which nobody
 * else sees then. Its events (SCI_CB_CONNECT) are
 * those of this process's own segment: whoever is connected to the group is connected to each of its segments that are available; one
 * that becomes available later hears of it when that process waits for an event or is called back, a second later at best. Where
 * nodes have copies of their own in hardware, what a process stores into its own copy is seen by nobody else; here it would be seen
 * by all, so SCIMapLocalSegment() maps for reading unless it is given SCI_FLAG_BROADCAST: a store through the pointer that it gives
 * without that flag ends the program with SIGSEGV. A program that stores into its own copy is ported by giving the flag there, or
 * storing into other memory.
 *
 * Errors: SCI_ERR_SEGMENTID_USED; SCI_ERR_SIZE_ALIGNMENT (0 bytes, not EMPTY); SCI_ERR_NOSPC (no memory, no free number);
 * SCI_ERR_MAX_ENTRIES; SCI_ERR_ILLEGAL_FLAG (SCI_FLAG_AUTO_ID with SCI_FLAG_PRIVATE: a private segment has no number that others see;
 * either, or SCI_FLAG_EMPTY, with SCI_FLAG_BROADCAST); of groups SCI_ERR_SEGMENTID_USED (it has another size) and
 * SCI_ERR_NODE_NOT_RESPONDING (nobody who has the memory has passed it in ten seconds);
 * SCI_ERR_ILLEGAL_PARAMETER (SCI_FLAG_USE_CALLBACK without a callback).
 * States: gives NOT PREPARED, or EMPTY with SCI_FLAG_EMPTY.
 */
void SCICreateSegment(sci_desc_t sd, sci_local_segment_t *segment, unsigned int segmentId, size_t size,
                      sci_cb_local_segment_t callback, void *arg, unsigned int flags, sci_error_t *error);

/**
 * Prepares a segment for an adapter.
 *
 * Flags: SCI_FLAG_DMA_SOURCE_ONLY; SCI_FLAG_BROADCAST, of a segment of a group.
 * Errors: SCI_ERR_ILLEGAL_OPERATION (EMPTY, or SCI_FLAG_BROADCAST of another one).
 * States: NOT PREPARED becomes PREPARED; PREPARED and AVAILABLE stay, with one adapter more.
 */
void SCIPrepareSegment(sci_local_segment_t segment, unsigned int localAdapterNo, unsigned int flags, sci_error_t *error);

/**
 * Lets others connect through an adapter, whether its link is up or down.
 *
 * Errors: SCI_ERR_SEGMENT_NOT_PREPARED; SCI_ERR_ILLEGAL_OPERATION (EMPTY; private, a source of DMA only, or memory that
 * cannot be shared with others).
 * States: PREPARED becomes AVAILABLE; AVAILABLE stays.
 */
void SCISetSegmentAvailable(sci_local_segment_t segment, unsigned int localAdapterNo, unsigned int flags,
                            sci_error_t *error);

/**
 * Lets nobody connect any more through an adapter. Connections that are there stay.
 *
 * Flags: SCI_FLAG_FORCE_DISCONNECT: connections are lost (SCI_CB_LOST), also those that are left from a time in which the segment was
 * available. SCI_FLAG_NOTIFY: whoever is connected is told SCI_CB_DISCONNECT, which asks it to disconnect, and stays connected until it
 * does; two that it has not been told yet are one. Of a group, or a segment that others have attached, those are told whose connection
 * goes by the part of this process.
 * Errors: SCI_ERR_SEGMENT_NOT_PREPARED; SCI_ERR_ILLEGAL_OPERATION (EMPTY, or not available through this
 * adapter and SCI_FLAG_FORCE_DISCONNECT is not given).
 * States: AVAILABLE becomes PREPARED.
 */
void SCISetSegmentUnavailable(sci_local_segment_t segment, unsigned int localAdapterNo, unsigned int flags,
                              sci_error_t *error);

/**
 * Removes a segment. Its number is free again when the function returns, and memory that was registered is the program's alone.
 *
 * Waits for a callback of the segment that is running, unless it is called in a callback.
 *
 * Of a group, or of a segment that others have attached, this process's part is removed: whoever is connected stays connected to the rest.
 *
 * Flags: SCI_FLAG_FORCE_REMOVE: connections of others are lost.
 * Errors: SCI_ERR_BUSY while it is mapped here, a transfer uses it, or (without the flag) somebody is connected. Try again then.
 */
void SCIRemoveSegment(sci_local_segment_t segment, unsigned int flags, sci_error_t *error);

/**
 * Maps a part of a segment into this process.
 *
 * @param map    where the map is put
 * @param offset where the part begins
 * @param size   bytes of it
 * @param addr   where it is wanted, with SCI_FLAG_FIXED_MAP_ADDR; else it is not looked at
 * @return the address of its first byte, or NULL
 *
 * Flags: SCI_FLAG_FIXED_MAP_ADDR, SCI_FLAG_READONLY_MAP, SCI_FLAG_WRITE_BACK_CACHE_MAP. SCI_FLAG_BROADCAST: a segment of a group is mapped
 * for stores too, which all that have joined see; without the flag it is mapped for reading, and a store through the pointer, memset()
 * included, ends the program with SIGSEGV. SCI_FLAG_SHARED_MAP,
 * SCI_FLAG_READ_PREFETCH_AGGR_HOLD_MAP, SCI_FLAG_READ_PREFETCH_NO_HOLD_MAP, SCI_FLAG_LOCK_OPERATION and SCI_FLAG_IO_MAP_IOSPACE are as with
 * SCIMapRemoteSegment(). These are SCI_ERR_FLAG_NOT_IMPLEMENTED: SCI_FLAG_NO_MEMORY_LOOPBACK, SCI_FLAG_CONDITIONAL_INTERRUPT_MAP,
 * SCI_FLAG_UNCONDITIONAL_DATA_INTERRUPT_MAP, SCI_FLAG_DMOVE_MAP, and SCI_FLAG_IO_MAP_IOSPACE of memory of the host.
 * Errors: SCI_ERR_OUT_OF_RANGE; SCI_ERR_SIZE_ALIGNMENT (0 bytes); SCI_ERR_ILLEGAL_ADDRESS (taken, or no multiple of a page from the
 * part's page); SCI_ERR_NOSPC; SCI_ERR_ILLEGAL_OPERATION (EMPTY, a map for stores into registered memory that is a source
 * only, or SCI_FLAG_BROADCAST of a segment of no group).
 * States: every one but EMPTY.
 */
void *SCIMapLocalSegment(sci_local_segment_t segment, sci_map_t *map, size_t offset, size_t size, void *addr,
                         unsigned int flags, sci_error_t *error);

/**
 * Waits until somebody connects to a segment or disconnects from it, or a link of it goes down or comes up.
 *
 * What happens between two waits is kept: who connects and disconnects at once is SCI_CB_CONNECT, then SCI_CB_DISCONNECT. Of one process
 * 1024 connections are kept that it has ended, the last ones. SCI_CB_LOST is a process that has ended, or was stopped, with its connection.
 *
 * @param nodeId         where the other node's number is put
 * @param localAdapterNo where an adapter is put: that of the link; of a connection, the one that the segment was made available through last
 * @param timeout        milliseconds
 * @return what happened; 0, which is none of them, if the function fails
 *
 * Errors: SCI_ERR_TIMEOUT; SCI_ERR_CANCELLED; SCI_ERR_ILLEGAL_OPERATION (the segment has a callback); SCI_ERR_NO_LINK_ACCESS (the memory
 * that the nodes share is gone: its file was cut, or its device removed).
 */
sci_segment_cb_reason_t SCIWaitForLocalSegmentEvent(sci_local_segment_t segment, unsigned int *nodeId,
                                                    unsigned int *localAdapterNo, unsigned int timeout,
                                                    unsigned int flags, sci_error_t *error);

/** Returns the bytes of a segment, or 0 if there is no such segment. */
size_t SCIGetLocalSegmentSize(sci_local_segment_t segment);

/** Returns the number of a segment, or 0 if there is no such segment. */
unsigned int SCIGetLocalSegmentId(sci_local_segment_t segment);

/**
 * Lets other processes of the node attach a segment (SCIAttachLocalSegment()). The segment, its content and connections to it then
 * live as long as one of them has it, whichever made it. Once more does nothing.
 *
 * Errors: SCI_ERR_ILLEGAL_OPERATION (EMPTY, private, a source of DMA only, memory that cannot be shared with others, or a
 * segment that the configuration has a list for: ACCESS in sisci_api(3)).
 */
void SCIShareSegment(sci_local_segment_t segment, unsigned int flags, sci_error_t *error);

/**
 * Attaches a segment that another process of the node has made and shared. What is attached is a segment as its maker has it: it can be
 * mapped, prepared, made available, and hears of connections; and it is removed with SCIRemoveSegment(). Whoever connects to the
 * segment is connected to each part that is available.
 *
 * @param segment   where the segment is put
 * @param segmentId the number that it was made with
 * @param size      where its bytes are put
 * @param callback  as for SCICreateSegment()
 *
 * Flags: SCI_FLAG_USE_CALLBACK.
 * Errors: SCI_ERR_ACCESS (no segment of this number, another node's, or not shared); SCI_ERR_NODE_NOT_RESPONDING (nobody who has it
 * answers).
 * States: gives NOT PREPARED, whatever the state is elsewhere.
 */
void SCIAttachLocalSegment(sci_desc_t sd, sci_local_segment_t *segment, unsigned int segmentId, size_t *size,
                           sci_cb_local_segment_t callback, void *arg, unsigned int flags, sci_error_t *error);

/**
 * Puts memory of the program behind an EMPTY segment. Its bytes and its address stay. The program keeps it allocated until the segment
 * is removed, and stores nothing into it while the segment gets it or is removed: such a store may be lost.
 *
 * Others are given whole pages, so memory that can be made available begins at a page and has whole pages: allocate it with
 * posix_memalign(&address, sysconf(_SC_PAGESIZE), size) or mmap(). It is private memory for loads and stores, of no file and no
 * stack. Its pages are replaced by such as others can map; a child of fork shares them, and does not free them as long as the segment
 * exists, because its allocator would store into memory of its parent. What madvise(), NUMA policies and protection keys said of the
 * pages is lost. SCIRemoveSegment() makes them private again; where there is no memory for that, it succeeds, they stay shared, and
 * the log says so. Other memory is used where it is, at any address: it is good for DMA and for copies of this process, and
 * SCISetSegmentAvailable() answers SCI_ERR_ILLEGAL_OPERATION (beeline_sisci_last_error() says why). So is that of a private segment,
 * and of one that is a source of DMA only, which may be for loads only. Maps of it are at its own addresses; a map for reading keeps
 * from it what the library stores, not what the program does.
 *
 * Flags: SCI_FLAG_LOCK_USER_MEM. SCI_FLAG_PHYSICAL: the address is one of a device on the bus, and all is as with
 * SCIAttachPhysicalMemory(). SCI_FLAG_CUDA_BUFFER and SCI_FLAG_SCIF_BUFFER are SCI_ERR_NOT_SUPPORTED.
 * Errors: SCI_ERR_ILLEGAL_ADDRESS (not mapped, or not for loads and stores); SCI_ERR_SIZE_ALIGNMENT (0 bytes); SCI_ERR_OUT_OF_RANGE
 * (more than the segment is made for); SCI_ERR_ILLEGAL_OPERATION (not EMPTY); SCI_ERR_NOSPC (no memory to be shared);
 * SCI_ERR_SYSTEM (a limit on locked memory, mappings or open files; the kernel refuses).
 * States: EMPTY becomes NOT PREPARED.
 */
void SCIRegisterSegmentMemory(void *address, size_t size, sci_local_segment_t segment, unsigned int flags,
                              sci_error_t *error);

/**
 * Puts memory of a device behind an EMPTY segment: a part of a BAR of a PCI function.
 *
 * @param ioaddress its address on the bus, as `lspci -vv` and sysfs list it; a multiple of 8
 * @param address   is not looked at
 * @param busNo     is not looked at: addresses are one for all buses
 * @param size      bytes
 *
 * Whoever connects to the segment maps the same BAR, and is given all of it. A BAR that is prefetchable is mapped so that stores are
 * combined: SCIFlush() sends them on. In an uncached map (SCIMapRemoteSegment()), and of another BAR, each access goes to the device by
 * itself, in order.
 * A device that is taken away ends the programs that access it with SIGBUS. Addresses of the host's own memory are of no BAR.
 * SCIQuery() gives the address of such a segment on the bus.
 *
 * Flags: SCI_FLAG_CUDA_BUFFER, which is SCI_ERR_NOT_SUPPORTED.
 * Errors: SCI_ERR_ILLEGAL_ADDRESS (in no memory BAR as a whole, or no multiple of 8); SCI_ERR_ACCESS (this process may not open the
 * BAR's file); SCI_ERR_SYSTEM (there is no such file, or the function is switched off); SCI_ERR_SIZE_ALIGNMENT (0 bytes);
 * SCI_ERR_OUT_OF_RANGE (more than the segment is made for); SCI_ERR_ILLEGAL_OPERATION (not EMPTY).
 * States: EMPTY becomes NOT PREPARED.
 */
void SCIAttachPhysicalMemory(sci_ioaddr_t ioaddress, void *address, unsigned int busNo, size_t size,
                             sci_local_segment_t segment, unsigned int flags, sci_error_t *error);

#ifdef __cplusplus
}
#endif

#endif

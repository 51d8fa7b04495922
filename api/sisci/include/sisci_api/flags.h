/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file flags.h
 * Flags and queries. Flags of functions that never take both may have the same value.
 */
#ifndef SISCI_API_FLAGS_H
#define SISCI_API_FLAGS_H

/* Segments: SCICreateSegment(), SCIConnectSegment(), SCIAttachLocalSegment(), SCIRegisterSegmentMemory(). */

/** The callback is to be called. Functions that wait are then SCI_ERR_ILLEGAL_OPERATION for this handle. */
#define SCI_FLAG_USE_CALLBACK 0x1u
/** The segment has no memory until SCIRegisterSegmentMemory(). */
#define SCI_FLAG_EMPTY 0x2u
/** The segment is for this process and its DMA only: it is never available. */
#define SCI_FLAG_PRIVATE 0x4u
/** The segment is only read by DMA of its owner. */
#define SCI_FLAG_DMA_SOURCE_ONLY 0x8u
/** The memory is given by its address on the bus. */
#define SCI_FLAG_PHYSICAL 0x1000u
/** The memory is that of a GPU. Not supported. */
#define SCI_FLAG_CUDA_BUFFER 0x2000u
/** The memory is that of a coprocessor. Not supported. */
#define SCI_FLAG_SCIF_BUFFER 0x4000u
/** The pages of the caller's memory are locked. */
#define SCI_FLAG_LOCK_USER_MEM 0x400u
/** The library picks the number: the first free one from the given number upward. */
#define SCI_FLAG_AUTO_ID 0x20000000u
/** The segment or connection is that of a group: what one writes, all that have joined have. Of data interrupts, too. */
#define SCI_FLAG_BROADCAST 0x40000u
/** The segment is removed although others are connected: their connections are lost. */
#define SCI_FLAG_FORCE_REMOVE 0x20u
/** A segment of a group may be connected to by its node, and stored into for that node alone. Not implemented. */
#define SCI_FLAG_ALLOW_UNICAST 0x80u
/** The memory may be shared with processes that do not use SISCI. Not implemented. */
#define SCI_FLAG_SHARE_EXTERNAL 0x40u
/** SCISetSegmentUnavailable(): connections are lost. */
#define SCI_FLAG_FORCE_DISCONNECT 0x1u
/** SCISetSegmentUnavailable(): whoever is connected is asked to disconnect, and stays connected. */
#define SCI_FLAG_NOTIFY 0x2u
/** SCIConnectSegment(): returns at once, and the callback tells what came of it. */
#define SCI_FLAG_ASYNCHRONOUS_CONNECT 0x2u
/** SCIOpen(): every descriptor can be used by several threads, with this flag or without. */
#define SCI_FLAG_THREAD_SAFE 0x1u

/* Maps: SCIMapLocalSegment(), SCIMapRemoteSegment(). */

/** The map begins at the address that the caller gives, or is not made. */
#define SCI_FLAG_FIXED_MAP_ADDR 0x1u
/** The map is for reading. A store through it ends the process. */
#define SCI_FLAG_READONLY_MAP 0x2u
/** Atomic operations of the CPU work through the map. Memory of the host alone. */
#define SCI_FLAG_LOCK_OPERATION 0x4u
/** A store triggers a conditional interrupt. Not implemented. */
#define SCI_FLAG_CONDITIONAL_INTERRUPT_MAP 0x8u
/** A store triggers a data interrupt. Not implemented. */
#define SCI_FLAG_UNCONDITIONAL_DATA_INTERRUPT_MAP 0x10u
/** The map is not cached, and stores are not combined: of memory of devices. Of memory of the host: Not implemented. */
#define SCI_FLAG_IO_MAP_IOSPACE 0x80u
/** A segment of the own node is reached through the adapter. Not implemented. */
#define SCI_FLAG_NO_MEMORY_LOOPBACK 0x800u
/** The map shares what it needs of the adapter with others of the same segment: here all do. */
#define SCI_FLAG_SHARED_MAP 0x2000u
/** The map is cached. */
#define SCI_FLAG_WRITE_BACK_CACHE_MAP 0x8000000u
/** Stores need no answer, on the interconnect that the interface was first made for. Not implemented. */
#define SCI_FLAG_DMOVE_MAP 0x20u
/** Loads read ahead and keep what they read, on that interconnect. A hint. */
#define SCI_FLAG_READ_PREFETCH_AGGR_HOLD_MAP 0x100u
/** Loads read ahead and keep nothing, on that interconnect. A hint. */
#define SCI_FLAG_READ_PREFETCH_NO_HOLD_MAP 0x200u

/* Copies, sequences and flushes. */

/** SCIMemCpy(): from the segment into the program's memory. */
#define SCI_FLAG_BLOCK_READ 0x1u
/** A copy says whether all of it arrived. */
#define SCI_FLAG_ERROR_CHECK 0x2u
/** The buffers of the CPU are not flushed afterwards. */
#define SCI_FLAG_NO_FLUSH 0x4u
/** It is not waited until the stores have arrived. */
#define SCI_FLAG_NO_STORE_BARRIER 0x8u
/** The cheapest barrier that the platform has. */
#define SCI_FLAG_FAST_BARRIER 0x10u
/** SCIFlush(): only what this CPU holds back is sent on. */
#define SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY 0x20u
/** SCICacheSync(): cached stores are written back. */
#define SCI_FLAG_CACHE_FLUSH 0x100000u
/** SCICacheSync(): what is cached is read anew. */
#define SCI_FLAG_CACHE_INVALIDATE 0x200000u

/* DMA. */

/** The function returns when the transfer has ended. */
#define SCI_FLAG_DMA_WAIT 0x4u
/** From the remote segment into the local one. */
#define SCI_FLAG_DMA_READ 0x10u
/** The queue takes addresses on the bus. Not implemented. */
#define SCI_FLAG_DMA_PHDMA 0x20u
/** The engine reaches the memory of all nodes. */
#define SCI_FLAG_DMA_GLOBAL 0x40u
/** The engine is the host's. */
#define SCI_FLAG_DMA_SYSDMA 0x100u
/** The local side is memory of the program. */
#define SCI_FLAG_DMA_USER_MEM 0x200u
/** The engine is the adapter's. */
#define SCI_FLAG_DMA_ADAPTER 0x800u
/** SCIRequestDMAChannel(): the channel may be shared. */
#define SCI_FLAG_DMA_CHANNEL_SHARED 0x1u
/** SCIEnqueueDMATransfer(): the queue is posted behind this entry. */
#define SCI_FLAG_DMA_POST 0x1u
/** SCIEnqueueDMATransfer(): the queue is reset before this entry. */
#define SCI_FLAG_DMA_RESET 0x2u

/* Interrupts. */

/** The interrupt has the number that the caller gives, or is not made. */
#define SCI_FLAG_FIXED_INTNO 0x2u
/** Several have the same number; a trigger reaches all. See SCICreateInterrupt(). */
#define SCI_FLAG_SHARED_INT 0x4u
/** The interrupt is triggered only while it is enabled. Not implemented. */
#define SCI_FLAG_CONDITIONAL_INTERRUPT 0x8u
/** Each trigger is one interrupt; without it, those that come before anybody looks are one. */
#define SCI_FLAG_COUNTING_INT 0x20u

/* Devices. */

/** A requester that every adapter lets through. */
#define SCI_FLAG_PCIE_REQUESTER_GLOBAL 0x1u
/** Nobody else borrows the device. */
#define SCI_FLAG_EXCLUSIVE 0x1000000u
/** The segment lies on the side of the device. */
#define SCI_FLAG_DEVICE_SIDE_ONLY 0x2001000u
/** The segment lies on this host. */
#define SCI_FLAG_LOCAL_ONLY 0x2002000u
/** The caller says which adapter leads to the device. */
#define SCI_FLAG_SPECIFY_PATH 0x10000000u
/** Kinds of memory of a device. */
#define SCI_MEMTYPE_BAR 1u
#define SCI_MEMTYPE_PRIVATE 2u
#define SCI_MEMTYPE_SHARED 4u
/** Who accesses memory of a device, and how. */
#define SCI_MEMACCESS_DEVICE_READ 1u
#define SCI_MEMACCESS_DEVICE_WRITE 2u
#define SCI_MEMACCESS_HOST_READ 4u
#define SCI_MEMACCESS_HOST_WRITE 8u
#define SCI_MEMACCESS_MULTIHOST 0x10u
#define SCI_MEMACCESS_P2P 0x20u

/* Commands of SCIQuery(), with what `data` points at. */

/** sci_query_string_t: who made the library. */
#define SCI_Q_VENDORID 1u
/** sci_query_string_t: version of the interface. */
#define SCI_Q_API 2u
/** sci_query_string_t: version of the library. */
#define SCI_Q_SISCI_DRIVER_VERSION 3u
/** sci_query_adapter_t */
#define SCI_Q_ADAPTER 4u
/** sci_query_system_t. Not supported. */
#define SCI_Q_SYSTEM 5u
/** sci_query_dma_t */
#define SCI_Q_DMA 6u
/** Devices that are lent. Not supported. */
#define SCI_Q_DEVICE 7u
/** sci_query_local_segment_t */
#define SCI_Q_LOCAL_SEGMENT 8u
/** sci_query_remote_segment_t */
#define SCI_Q_REMOTE_SEGMENT 9u
/** sci_query_map_t */
#define SCI_Q_MAP 10u

/* Subcommands. Those that are not supported ask for what memory of one host does not have. */

#define SCI_Q_ADAPTER_NODEID 0x101u
/** Bytes that an engine copies at a time. */
#define SCI_Q_ADAPTER_DMA_MTU 0x102u
#define SCI_Q_ADAPTER_DMA_SIZE_ALIGNMENT 0x103u
#define SCI_Q_ADAPTER_DMA_OFFSET_ALIGNMENT 0x104u
/** Bytes from which on a transfer goes on by itself; a smaller one is copied by the thread that starts it. */
#define SCI_Q_ADAPTER_SUGGESTED_MIN_DMA_SIZE 0x105u
/** Not supported. */
#define SCI_Q_ADAPTER_SERIAL_NUMBER 0x106u
/** Kind of the adapter, a dis_adapter_type_t. */
#define SCI_Q_ADAPTER_CARD_TYPE 0x107u
/** 1 if the adapter is configured, else 0. */
#define SCI_Q_ADAPTER_CONFIGURED 0x108u
/** 1 if the link is up, else 0. */
#define SCI_Q_ADAPTER_LINK_OPERATIONAL 0x109u
/** Not supported. */
#define SCI_Q_ADAPTER_LINK_WIDTH 0x10au
/** Not supported. */
#define SCI_Q_ADAPTER_LINK_SPEED 0x10bu
/** Seconds. Not supported. */
#define SCI_Q_ADAPTER_LINK_UPTIME 0x10cu
/** Bus, device and function of the adapter. Not supported. */
#define SCI_Q_ADAPTER_BDF 0x10du
/** sci_dma_capabilities_t */
#define SCI_Q_DMA_CAPABILITIES 0x201u
/** Where a segment of a device is on the bus. */
#define SCI_Q_LOCAL_SEGMENT_IOADDR 0x301u
/** The same. */
#define SCI_Q_LOCAL_SEGMENT_PHYS_ADDR 0x302u
/** Where a segment of a device of another process is on the bus. */
#define SCI_Q_REMOTE_SEGMENT_IOADDR 0x401u
/** Where a map of memory of a device is on the bus. */
#define SCI_Q_MAP_IOADDR 0x501u
/** The same. */
#define SCI_Q_MAP_PHYS_ADDR 0x502u

#endif

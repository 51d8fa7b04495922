/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file transfer.h
 * Stores and copies through maps: whether they arrived, and in which order.
 */
#ifndef SISCI_API_TRANSFER_H
#define SISCI_API_TRANSFER_H

#ifdef __cplusplus
extern "C" {
#endif

#define SCICreateMapSequence _SISCI_EXPANDE_FUNCTION_NAME(SCICreateMapSequence)
#define SCIRemoveSequence _SISCI_EXPANDE_FUNCTION_NAME(SCIRemoveSequence)
#define SCIStartSequence _SISCI_EXPANDE_FUNCTION_NAME(SCIStartSequence)
#define SCICheckSequence _SISCI_EXPANDE_FUNCTION_NAME(SCICheckSequence)
#define SCIStoreBarrier _SISCI_EXPANDE_FUNCTION_NAME(SCIStoreBarrier)
#define SCIFlush _SISCI_EXPANDE_FUNCTION_NAME(SCIFlush)
#define SCICacheSync _SISCI_EXPANDE_FUNCTION_NAME(SCICacheSync)
#define SCIMemCpy _SISCI_EXPANDE_FUNCTION_NAME(SCIMemCpy)
#define SCIMemWrite _SISCI_EXPANDE_FUNCTION_NAME(SCIMemWrite)
#define SCIMemCpy_dual _SISCI_EXPANDE_FUNCTION_NAME(SCIMemCpy_dual)
#define GetSciMemCopyFunction _SISCI_EXPANDE_FUNCTION_NAME(GetSciMemCopyFunction)
#define SetSciMemCopyFunction _SISCI_EXPANDE_FUNCTION_NAME(SetSciMemCopyFunction)

/**
 * Makes a sequence of a map: what says whether the stores through it arrived.
 *
 * @param sequence where the sequence is put
 *
 * Flags: SCI_FLAG_FAST_BARRIER.
 * Errors: SCI_ERR_NOSPC; SCI_ERR_MAX_ENTRIES.
 */
void SCICreateMapSequence(sci_map_t map, sci_sequence_t *sequence, unsigned int flags, sci_error_t *error);

/** Removes a sequence. */
void SCIRemoveSequence(sci_sequence_t sequence, unsigned int flags, sci_error_t *error);

/**
 * Starts a sequence: stores from now on are those that SCICheckSequence() speaks of.
 *
 * @return SCI_SEQ_OK; SCI_SEQ_PENDING while a link is down (start again); SCI_SEQ_NOT_RETRIABLE if the connection is lost
 *
 * Flags: SCI_FLAG_NO_FLUSH, SCI_FLAG_NO_STORE_BARRIER.
 */
sci_sequence_status_t SCIStartSequence(sci_sequence_t sequence, unsigned int flags, sci_error_t *error);

/**
 * Says whether all stores since the sequence was started arrived.
 *
 * @return SCI_SEQ_OK; SCI_SEQ_RETRIABLE if a link was down meanwhile or when it was started (start anew, store again);
 * SCI_SEQ_PENDING while it is down; SCI_SEQ_NOT_RETRIABLE if the peer has ended or the segment was removed or made unavailable by
 * force
 *
 * The death of a peer is known as soon as the kernel has told this process, some milliseconds later.
 *
 * Of a segment that several processes have, a group's or a shared one, SCI_SEQ_NOT_RETRIABLE means that none of them is left. Stores
 * are in their memory whichever of them dies, removes its part or has its link down, so nothing of that is found; SCI_SEQ_PENDING is
 * given while others are looked for in place of those that have gone.
 *
 * Flags: SCI_FLAG_NO_FLUSH, SCI_FLAG_NO_STORE_BARRIER.
 * Errors: SCI_ERR_ILLEGAL_OPERATION (the sequence was never started).
 * Ordering: without flags, flushes what this CPU holds back and waits until the stores have arrived, then looks.
 */
sci_sequence_status_t SCICheckSequence(sci_sequence_t sequence, unsigned int flags, sci_error_t *error);

/**
 * Waits until the stores through the sequence's map are visible to the other side.
 *
 * Ordering: stores before it are seen by whoever sees a store behind it.
 */
void SCIStoreBarrier(sci_sequence_t sequence, unsigned int flags);

/**
 * Sends on what is held back on the way of stores.
 *
 * @param sequence of which map; NULL: of all
 *
 * Flags: SCI_FLAG_FLUSH_CPU_BUFFERS_ONLY: no more than a store fence of this CPU.
 * Ordering: stores of the calling thread before it leave the CPU before those behind it.
 */
void SCIFlush(sci_sequence_t sequence, unsigned int flags);

/**
 * Makes caches agree with memory that devices write or read. Where the hardware keeps them coherent this is a fence.
 *
 * @param map    of which the range is a part; may be NULL
 * @param addr   where the range begins; of a pointer to volatile memory, as SCIGetMapPointer() gives it, the program casts `volatile` away
 * @param length bytes
 *
 * Flags: SCI_FLAG_CACHE_FLUSH, SCI_FLAG_CACHE_INVALIDATE, or both.
 * Errors: SCI_ERR_ILLEGAL_FLAG (neither flag); SCI_ERR_OUT_OF_RANGE (beyond the map).
 */
void SCICacheSync(sci_map_t map, void *addr, size_t length, unsigned int flags, sci_error_t *error);

/**
 * Copies between memory of the program and a map.
 *
 * @param sequence     checked with SCI_FLAG_ERROR_CHECK; else may be NULL
 * @param memAddr      the program's memory
 * @param remoteMap    the map
 * @param remoteOffset where the bytes begin in the map
 * @param size         bytes; 0 copies nothing
 *
 * Flags: SCI_FLAG_BLOCK_READ: from the map into memory. SCI_FLAG_ERROR_CHECK. SCI_FLAG_NO_FLUSH. SCI_FLAG_NO_STORE_BARRIER.
 * Errors: SCI_ERR_OUT_OF_RANGE; SCI_ERR_ILLEGAL_OPERATION (into a map for reading); SCI_ERR_TRANSFER_FAILED (LOST; NOT OPERATIONAL
 * with SCI_FLAG_ERROR_CHECK).
 * Ordering: the bytes may arrive in any order; all have left before the function returns, without SCI_FLAG_NO_FLUSH.
 */
void SCIMemCpy(sci_sequence_t sequence, void *memAddr, sci_map_t remoteMap, size_t remoteOffset, size_t size,
               unsigned int flags, sci_error_t *error);

/**
 * Copies memory of the program to an address inside a map.
 *
 * @param memAddr    the program's memory
 * @param remoteAddr where the bytes go
 * @param size       bytes; 0 copies nothing
 *
 * Flags: SCI_FLAG_NO_FLUSH.
 * Errors: SCI_ERR_ILLEGAL_ADDRESS (no part of a map); SCI_ERR_OUT_OF_RANGE (beyond it); SCI_ERR_TRANSFER_FAILED (LOST).
 * Ordering: as SCIMemCpy().
 */
void SCIMemWrite(void *memAddr, volatile void *remoteAddr, size_t size, unsigned int flags, sci_error_t *error);

/**
 * Copies memory of the program to two maps, such as those of two adapters.
 *
 * Flags: SCI_FLAG_ERROR_CHECK, SCI_FLAG_NO_FLUSH, SCI_FLAG_NO_STORE_BARRIER.
 * Errors: as SCIMemCpy(), of either map; the other one may have been written then.
 */
void SCIMemCpy_dual(sci_sequence_t sequence1, void *memAddr, sci_map_t remoteMap1, size_t remoteOffset1,
                    sci_sequence_t sequence2, sci_map_t remoteMap2, size_t remoteOffset2, size_t size,
                    unsigned int flags, sci_error_t *error);

/** Returns the number of the way in which SCIMemCpy() copies; 0: chosen by size. */
unsigned int GetSciMemCopyFunction(void);

/** Asks for a way of copying by its number. The library chooses by size whatever is asked for. */
void SetSciMemCopyFunction(unsigned int function);

#ifdef __cplusplus
}
#endif

#endif

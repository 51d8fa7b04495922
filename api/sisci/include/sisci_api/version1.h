/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file version1.h
 * Functions of version 1 that later programs do not use. New programs call what the documentation of each names.
 */
#ifndef SISCI_API_VERSION1_H
#define SISCI_API_VERSION1_H

#ifdef __cplusplus
extern "C" {
#endif

#define SCIEnqueueDMATransfer _SISCI_EXPANDE_FUNCTION_NAME(SCIEnqueueDMATransfer)
#define SCIPostDMAQueue _SISCI_EXPANDE_FUNCTION_NAME(SCIPostDMAQueue)
#define SCIResetDMAQueue _SISCI_EXPANDE_FUNCTION_NAME(SCIResetDMAQueue)
#define SCIphDmaEnqueue _SISCI_EXPANDE_FUNCTION_NAME(SCIphDmaEnqueue)
#define SCIphDmaStart _SISCI_EXPANDE_FUNCTION_NAME(SCIphDmaStart)
#define SCIMemCopy _SISCI_EXPANDE_FUNCTION_NAME(SCIMemCopy)
#define SCITransferBlock _SISCI_EXPANDE_FUNCTION_NAME(SCITransferBlock)
#define SCITransferBlockAsync _SISCI_EXPANDE_FUNCTION_NAME(SCITransferBlockAsync)
#define SCIWaitForBlockTransfer _SISCI_EXPANDE_FUNCTION_NAME(SCIWaitForBlockTransfer)
#define SCIAbortBlockTransfer _SISCI_EXPANDE_FUNCTION_NAME(SCIAbortBlockTransfer)
#define SCIFlushReadBuffers _SISCI_EXPANDE_FUNCTION_NAME(SCIFlushReadBuffers)

/**
 * Adds a transfer to a queue. SCIStartDmaTransferVec() does the same at once.
 *
 * The order of the parameters is not that of SCIStartDmaTransfer(): both offsets, then the size.
 *
 * Flags: SCI_FLAG_DMA_READ; SCI_FLAG_DMA_POST; SCI_FLAG_DMA_RESET.
 * Errors: SCI_ERR_MAX_ENTRIES; SCI_ERR_OUT_OF_RANGE; SCI_ERR_ILLEGAL_OPERATION (POSTED; DONE, ABORTED or ERROR and not reset; other
 * segments than those of the transfers before, or the other direction).
 * States: IDLE becomes GATHER.
 */
void SCIEnqueueDMATransfer(sci_dma_queue_t dq, sci_local_segment_t localSegment, sci_remote_segment_t remoteSegment,
                           unsigned int localOffset, unsigned int remoteOffset, unsigned int size, unsigned int flags,
                           sci_error_t *error);

/**
 * Starts the transfers that a queue has collected.
 *
 * Flags: SCI_FLAG_USE_CALLBACK, SCI_FLAG_DMA_WAIT.
 * Errors: SCI_ERR_ILLEGAL_OPERATION (any state but GATHER).
 * States: GATHER becomes POSTED.
 */
void SCIPostDMAQueue(sci_dma_queue_t dq, sci_cb_dma_t callback, void *arg, unsigned int flags, sci_error_t *error);

/**
 * Empties a queue.
 *
 * Errors: SCI_ERR_ILLEGAL_OPERATION (POSTED).
 * States: every other one becomes IDLE.
 */
void SCIResetDMAQueue(sci_dma_queue_t dq, unsigned int flags, sci_error_t *error);

/** Adds a transfer between addresses on the bus. Flags: SCI_FLAG_DMA_READ. Errors: SCI_ERR_NOT_SUPPORTED. */
void SCIphDmaEnqueue(sci_dma_queue_t dq, unsigned int size, unsigned int localBusAddr, unsigned int remoteHighAddr,
                     unsigned int remoteLowAddr, unsigned int flags, sci_error_t *error);

/**
 * Starts transfers between addresses on the bus.
 *
 * Flags: SCI_FLAG_USE_CALLBACK, SCI_FLAG_DMA_WAIT.
 * Errors: SCI_ERR_NOT_SUPPORTED.
 */
void SCIphDmaStart(sci_dma_queue_t dq, sci_cb_dma_t callback, void *arg, unsigned int flags, sci_error_t *error);

/**
 * Copies memory of the program to a map. SCIMemCpy() does the same with a sequence.
 *
 * Flags: SCI_FLAG_ERROR_CHECK, SCI_FLAG_BLOCK_READ.
 * Errors: as SCIMemCpy().
 */
void SCIMemCopy(void *memAddr, sci_map_t remoteMap, unsigned int remoteOffset, unsigned int size, unsigned int flags,
                sci_error_t *error);

/**
 * Copies from one map to another.
 *
 * Errors: SCI_ERR_OUT_OF_RANGE; SCI_ERR_ILLEGAL_OPERATION (into a map for reading); SCI_ERR_TRANSFER_FAILED.
 */
void SCITransferBlock(sci_map_t sourceMap, unsigned int sourceOffset, sci_map_t destinationMap,
                      unsigned int destinationOffset, unsigned int size, unsigned int flags, sci_error_t *error);

/**
 * Copies from one map to another while the program does something else. SCIStartDmaTransfer() does so between segments.
 *
 * Flags: SCI_FLAG_USE_CALLBACK.
 * Errors: SCI_ERR_DEPRECATED.
 */
void SCITransferBlockAsync(sci_map_t sourceMap, unsigned int sourceOffset, sci_map_t destinationMap,
                           unsigned int destinationOffset, unsigned int size, sci_block_transfer_t *block,
                           sci_cb_block_transfer_t callback, void *arg, unsigned int flags, sci_error_t *error);

/** Waits until a transfer between maps has ended. Errors: SCI_ERR_DEPRECATED. */
void SCIWaitForBlockTransfer(sci_block_transfer_t block, unsigned int timeout, unsigned int flags, sci_error_t *error);

/** Ends a transfer between maps. Errors: SCI_ERR_DEPRECATED. */
void SCIAbortBlockTransfer(sci_block_transfer_t block, unsigned int flags, sci_error_t *error);

/** Drops what was read ahead through the sequence's map: nothing is read ahead here, and a fence of loads is all it is. */
void SCIFlushReadBuffers(sci_sequence_t sequence);

#ifdef __cplusplus
}
#endif

#endif

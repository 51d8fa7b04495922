/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file dma.h
 * Transfers that go on while the program does something else.
 *
 * States: a queue is IDLE when it is made; a start gives POSTED, or DONE where the transfer has ended already; POSTED ends as DONE,
 * ABORTED or ERROR, from each of which a new start is possible. GATHER is that of version 1 (version1.h). Who waits for a transfer
 * helps it on.
 */
#ifndef SISCI_API_DMA_H
#define SISCI_API_DMA_H

#ifdef __cplusplus
extern "C" {
#endif

#define SCICreateDMAQueue _SISCI_EXPANDE_FUNCTION_NAME(SCICreateDMAQueue)
#define SCIRemoveDMAQueue _SISCI_EXPANDE_FUNCTION_NAME(SCIRemoveDMAQueue)
#define SCIStartDmaTransfer _SISCI_EXPANDE_FUNCTION_NAME(SCIStartDmaTransfer)
#define SCIStartDmaTransferMem _SISCI_EXPANDE_FUNCTION_NAME(SCIStartDmaTransferMem)
#define SCIStartDmaTransferVec _SISCI_EXPANDE_FUNCTION_NAME(SCIStartDmaTransferVec)
#define DISStartDmaTransfer _SISCI_EXPANDE_FUNCTION_NAME(DISStartDmaTransfer)
#define DISStartDmaTransferVec _SISCI_EXPANDE_FUNCTION_NAME(DISStartDmaTransferVec)
#define SCIDMAQueueState _SISCI_EXPANDE_FUNCTION_NAME(SCIDMAQueueState)
#define SCIWaitForDMAQueue _SISCI_EXPANDE_FUNCTION_NAME(SCIWaitForDMAQueue)
#define SCIAbortDMAQueue _SISCI_EXPANDE_FUNCTION_NAME(SCIAbortDMAQueue)
#define SCIRequestDMAChannel _SISCI_EXPANDE_FUNCTION_NAME(SCIRequestDMAChannel)
#define SCIReturnDMAChannel _SISCI_EXPANDE_FUNCTION_NAME(SCIReturnDMAChannel)
#define SCIAssignDMAChannel _SISCI_EXPANDE_FUNCTION_NAME(SCIAssignDMAChannel)

/**
 * Makes a queue of transfers.
 *
 * @param dq             where the queue is put
 * @param localAdapterNo the adapter whose segments it transfers
 * @param maxEntries     entries that version 1 may collect in it; 1 to 65536
 *
 * Flags: SCI_FLAG_DMA_GLOBAL, SCI_FLAG_DMA_SYSDMA and SCI_FLAG_DMA_ADAPTER wish for an engine; SCI_FLAG_DMA_PHDMA is
 * SCI_ERR_FLAG_NOT_IMPLEMENTED where no device takes addresses on the bus.
 * Errors: SCI_ERR_MAX_ENTRIES; SCI_ERR_DMA_DISABLED; SCI_ERR_DMA_NOT_AVAILABLE; SCI_ERR_NOSPC.
 */
void SCICreateDMAQueue(sci_desc_t sd, sci_dma_queue_t *dq, unsigned int localAdapterNo, unsigned int maxEntries,
                       unsigned int flags, sci_error_t *error);

/**
 * Removes a queue.
 *
 * Waits for a callback of the queue that is running, unless it is called in a callback. A callback of a transfer that has ended, and
 * which was not called yet, is not called any more.
 *
 * Errors: SCI_ERR_ILLEGAL_OPERATION (POSTED).
 */
void SCIRemoveDMAQueue(sci_dma_queue_t dq, unsigned int flags, sci_error_t *error);

/**
 * Starts a transfer from a local segment to a remote one.
 *
 * @param localOffset  where the bytes begin in the local segment
 * @param size         bytes
 * @param remoteOffset where the bytes begin in the remote segment
 * @param callback     is called with SCI_FLAG_USE_CALLBACK when the transfer has ended: once, whatever it returned after an earlier one
 *
 * Flags: SCI_FLAG_DMA_READ: the other direction. SCI_FLAG_DMA_WAIT: returns when the transfer has ended. SCI_FLAG_USE_CALLBACK (not
 * with SCI_FLAG_DMA_WAIT). SCI_FLAG_DMA_GLOBAL, SCI_FLAG_DMA_SYSDMA, SCI_FLAG_DMA_ADAPTER. SCI_FLAG_BROADCAST: the remote segment is a
 * group's, and anything else is SCI_ERR_ILLEGAL_OPERATION. SCI_FLAG_DMA_USER_MEM (SCIStartDmaTransferMem() takes it) is
 * SCI_ERR_FLAG_NOT_IMPLEMENTED.
 * Errors: SCI_ERR_OUT_OF_RANGE (nothing is started); SCI_ERR_BUSY (POSTED); SCI_ERR_ILLEGAL_OPERATION (GATHER, a segment of
 * another adapter, or SCI_FLAG_DMA_READ into one that is a source only); SCI_ERR_SEGMENT_NOT_PREPARED (the local segment, for the
 * adapter of the queue); SCI_ERR_SEGMENT_NOT_CONNECTED; SCI_ERR_NOT_CONNECTED; SCI_ERR_TRANSFER_FAILED (with SCI_FLAG_DMA_WAIT).
 * Ordering: all bytes are visible to the other side once the state is DONE; until then each byte of the destination may be old or
 * new. A transfer of at most 64 KiB has mostly ended when the function returns.
 */
void SCIStartDmaTransfer(sci_dma_queue_t dq, sci_local_segment_t localSegment, sci_remote_segment_t remoteSegment,
                         size_t localOffset, size_t size, size_t remoteOffset, sci_cb_dma_t callback, void *arg,
                         unsigned int flags, sci_error_t *error);

/**
 * Starts a transfer from memory of the program to a remote segment.
 *
 * @param localAddress the program's memory, which must stay until the transfer has ended
 * @param size         bytes
 * @param remoteOffset where the bytes begin in the remote segment
 *
 * Flags and errors: as SCIStartDmaTransfer(). Memory that goes away meanwhile ends the transfer in ERROR (SCI_ERR_ILLEGAL_ADDRESS).
 */
void SCIStartDmaTransferMem(sci_dma_queue_t dq, void *localAddress, sci_remote_segment_t remoteSegment, size_t size,
                            size_t remoteOffset, sci_cb_dma_t callback, void *arg, unsigned int flags,
                            sci_error_t *error);

/**
 * Starts a transfer of several pieces. The pieces may be copied in any order.
 *
 * @param vecLength pieces; at most DIS_DMA_MAX_VECLEN
 * @param vec       the pieces; it is read before the function returns
 *
 * Flags: as SCIStartDmaTransfer().
 * Errors: as SCIStartDmaTransfer(); SCI_ERR_ILLEGAL_PARAMETER (no piece, or too many).
 */
void SCIStartDmaTransferVec(sci_dma_queue_t dq, sci_local_segment_t localSegment, sci_remote_segment_t remoteSegment,
                            size_t vecLength, dis_dma_vec_t *vec, sci_cb_dma_t callback, void *arg, unsigned int flags,
                            sci_error_t *error);

/** Is SCIStartDmaTransfer() by its other name. Flags: as there. */
void DISStartDmaTransfer(sci_dma_queue_t dq, sci_local_segment_t localSegment, sci_remote_segment_t remoteSegment,
                         size_t localOffset, size_t size, size_t remoteOffset, sci_cb_dma_t callback, void *arg,
                         unsigned int flags, sci_error_t *error);

/** Is SCIStartDmaTransferVec() by its other name. Flags: as there. */
void DISStartDmaTransferVec(sci_dma_queue_t dq, sci_local_segment_t localSegment, sci_remote_segment_t remoteSegment,
                            size_t vecLength, dis_dma_vec_t *vec, sci_cb_dma_t callback, void *arg, unsigned int flags,
                            sci_error_t *error);

/** Returns the state of a queue, or SCI_DMAQUEUE_IDLE if there is no such queue. */
sci_dma_queue_state_t SCIDMAQueueState(sci_dma_queue_t dq);

/**
 * Waits until the transfer of a queue has ended.
 *
 * @param timeout milliseconds
 * @return the state, also if the function fails
 *
 * A queue in POSTED cannot be removed, so nothing cancels a wait; SCIAbortDMAQueue() and SCITerminate() end it with ABORTED.
 *
 * Errors: SCI_ERR_TIMEOUT (still POSTED); SCI_ERR_ILLEGAL_OPERATION (nothing was started, or the transfer has a callback).
 */
sci_dma_queue_state_t SCIWaitForDMAQueue(sci_dma_queue_t dq, unsigned int timeout, unsigned int flags,
                                         sci_error_t *error);

/**
 * Ends a transfer. No byte is copied any more when the function returns.
 *
 * Errors: SCI_ERR_ILLEGAL_OPERATION (IDLE).
 * States: POSTED becomes ABORTED, or DONE if nothing was left to copy; DONE, ABORTED and ERROR stay; GATHER becomes IDLE.
 */
void SCIAbortDMAQueue(sci_dma_queue_t dq, unsigned int flags, sci_error_t *error);

/**
 * Asks for an engine of a kind. Queues pick theirs by themselves here.
 *
 * Flags: SCI_FLAG_DMA_CHANNEL_SHARED.
 * Errors: SCI_ERR_DMA_NOT_AVAILABLE.
 */
void SCIRequestDMAChannel(sci_desc_t sd, sci_dma_channel_t *channel, unsigned int localAdapterNo, sci_dma_type_t type,
                          unsigned int channelId, unsigned int flags, sci_error_t *error);

/** Gives an engine back. */
void SCIReturnDMAChannel(sci_dma_channel_t channel, sci_error_t *error);

/** Has a queue use an engine. */
void SCIAssignDMAChannel(sci_dma_channel_t channel, sci_dma_queue_t dq, unsigned int flags, sci_error_t *error);

#ifdef __cplusplus
}
#endif

#endif

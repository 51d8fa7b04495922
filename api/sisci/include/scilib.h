/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file scilib.h
 * Every function returns its code. Of SCILib there are the queues, with the signatures of releases that name the number of each end;
 * sends and receives of vectors, by DMA and with callbacks are not there. The other end of a queue is a process of the node that it
 * names, which calls the same functions.
 */
#ifndef SCILIB_H
#define SCILIB_H

#include "sisci_api.h"

/** Makes the name of a function's symbol of the function's name. */
#ifdef _REENTRANT
#define _SCIL_EXPANDE_FUNCTION_NAME(name) _SCIL_PUBLIC_FUNC_MT_##name
#else
#define _SCIL_EXPANDE_FUNCTION_NAME(name) _SCIL_PUBLIC_FUNC_ST_##name
#endif
/** Makes the name of a constant's symbol of the constant's name. */
#define _SCIL_EXPANDE_CONSTANT_NAME(name) _SCIL_PUBLIC_CONST_##name

#ifdef __cplusplus
extern "C" {
#endif

#define SCILInit _SCIL_EXPANDE_FUNCTION_NAME(SCILInit)
#define SCILDestroy _SCIL_EXPANDE_FUNCTION_NAME(SCILDestroy)
#define SCILCreateMsgQueue _SCIL_EXPANDE_FUNCTION_NAME(SCILCreateMsgQueue)
#define SCILConnectMsgQueue _SCIL_EXPANDE_FUNCTION_NAME(SCILConnectMsgQueue)
#define SCILRemoveMsgQueue _SCIL_EXPANDE_FUNCTION_NAME(SCILRemoveMsgQueue)
#define SCILDisconnectMsgQueue _SCIL_EXPANDE_FUNCTION_NAME(SCILDisconnectMsgQueue)
#define SCILSendMsg _SCIL_EXPANDE_FUNCTION_NAME(SCILSendMsg)
#define SCILReceiveMsg _SCIL_EXPANDE_FUNCTION_NAME(SCILReceiveMsg)

/** Numbers of segments with this bit are those of queues; numbers of queues do not have it. */
#define MSG_QUEUE_LIB_IDENTIFIER_MASK 0x10000000u
/** A message is sent, and then it is looked whether it has arrived. */
#define SCIL_FLAG_ERROR_CHECK_DATA 0x1u
/** What the other end says of its memory is checked, which is done without this flag, too. */
#define SCIL_FLAG_ERROR_CHECK_PROT 0x2u
/** Both checks. */
#define SCIL_FLAG_FULL_ERROR_CHECK 0x3u
/** A message is on its way to the other end when the function returns, and stores before it, too. */
#define SCIL_FLAG_MSG_FLUSH 0x4u
/** Each receive asks for the bytes of one send. The program promises it, and nothing is faster for it here. */
#define SCIL_FLAG_SEND_RECEIVE_PAIRS_ONLY 0x8u

/** One end of a queue. */
typedef struct sci_msq_queue *sci_msq_queue_t;

/**
 * Makes the library ready, as SCIInitialize() does, which a program may call instead.
 *
 * Errors: as SCIInitialize().
 */
sci_error_t SCILInit(unsigned int flags);

/**
 * Undoes one SCILInit(). The last one of all, SCITerminate() among them, removes the queues that are left.
 *
 * Errors: SCI_ERR_NOT_INITIALIZED.
 */
sci_error_t SCILDestroy(unsigned int flags);

/**
 * Makes an end of a queue, and waits until the other end is there and has taken this one for its peer.
 *
 * If that does not happen in time, the end stays, and the function is called again with the same variable.
 *
 * @param msq            a variable that is NULL when the function is called first; the end is put there
 * @param localAdapterNo the adapter to go by
 * @param remoteNodeId   the node of the other end
 * @param lmsqId         the number of this end, one that no other end of the node has
 * @param rmsqId         the number of the other end
 * @param maxMsgCount    how many of the longest messages this end takes in before the other one has to wait
 * @param maxMsgSize     bytes of the longest message, either way; of two ends the smaller number holds
 * @param timeout        milliseconds
 *
 * Flags: SCIL_FLAG_SEND_RECEIVE_PAIRS_ONLY.
 * Errors: SCI_ERR_TIMEOUT (the other end is not there); with the time 0 SCI_ERR_NO_SUCH_SEGMENT and SCI_ERR_NODE_NOT_RESPONDING, too;
 * SCI_ERR_CONNECTION_REFUSED (it has another peer, or its segment is no queue); SCI_ERR_NO_LINK_ACCESS and SCI_ERR_NO_REMOTE_LINK_ACCESS (a
 * link is down); SCI_ERR_NOT_CONNECTED (the end was open, and the other one has gone: the end is of no use any more, so the program removes it with
 * SCILRemoveMsgQueue() and makes another one). After these the end
 * stays. After the others there is none: SCI_ERR_SEGMENTID_USED (another end has the number); SCI_ERR_NOSPC (a queue of more than 1 GiB, no
 * memory); SCI_ERR_ILLEGAL_PARAMETER (no messages, messages of no bytes, a number with the bit of MSG_QUEUE_LIB_IDENTIFIER_MASK);
 * SCI_ERR_ILLEGAL_NODEID; SCI_ERR_NO_SUCH_NODEID; SCI_ERR_ILLEGAL_ADAPTERNO; SCI_ERR_NO_SUCH_ADAPTERNO; SCI_ERR_MAX_ENTRIES;
 * SCI_ERR_SYSTEM; SCI_ERR_CANCELLED (another thread has removed the end, or ended the library, while this waited).
 */
sci_error_t SCILCreateMsgQueue(sci_msq_queue_t *msq, unsigned int localAdapterNo, unsigned int remoteNodeId,
                               unsigned int lmsqId, unsigned int rmsqId, unsigned int maxMsgCount,
                               unsigned int maxMsgSize, unsigned int timeout, unsigned int flags);

/**
 * Makes an end of a queue, as SCILCreateMsgQueue() does: both ends are alike here.
 *
 * Flags and errors: as SCILCreateMsgQueue().
 */
sci_error_t SCILConnectMsgQueue(sci_msq_queue_t *msq, unsigned int localAdapterNo, unsigned int remoteNodeId,
                                unsigned int lmsqId, unsigned int rmsqId, unsigned int maxMsgCount,
                                unsigned int maxMsgSize, unsigned int timeout, unsigned int flags);

/**
 * Removes an end of a queue, and makes the variable NULL. The other end receives what was sent, then it is not connected any more.
 *
 * @param msq the variable that the end was put into
 */
sci_error_t SCILRemoveMsgQueue(sci_msq_queue_t *msq, unsigned int flags);

/** Removes an end of a queue, as SCILRemoveMsgQueue() does. */
sci_error_t SCILDisconnectMsgQueue(sci_msq_queue_t *msq, unsigned int flags);

/**
 * Sends a message, or nothing of it.
 *
 * @param msg      the bytes; they are copied before the function returns
 * @param size     how many; 0 sends nothing
 * @param sizeFree where it is put how long a message may be that is sent next, or NULL; it may be longer by then
 *
 * Flags: SCIL_FLAG_ERROR_CHECK_DATA, SCIL_FLAG_ERROR_CHECK_PROT, SCIL_FLAG_FULL_ERROR_CHECK, SCIL_FLAG_MSG_FLUSH.
 * Errors: SCI_ERR_EWOULD_BLOCK (no room, or a link is down: nothing is sent); SCI_ERR_NOT_CONNECTED (the other end is gone, or was never
 * there; with a check it may have had the message); SCI_ERR_ILLEGAL_PARAMETER (a message longer than either end has said).
 * Ordering: messages of one thread come in their order.
 */
sci_error_t SCILSendMsg(sci_msq_queue_t msq, void *msg, unsigned int size, unsigned int *sizeFree, unsigned int flags);

/**
 * Receives the next bytes, whichever messages they came in, or nothing.
 *
 * @param msg      where they are put
 * @param size     how many
 * @param sizeLeft where it is put how many more are known to be here, or NULL; there may be more
 *
 * Flags: SCIL_FLAG_ERROR_CHECK_PROT.
 * Errors: SCI_ERR_EWOULD_BLOCK (fewer have come, and they stay); SCI_ERR_NOT_CONNECTED (the other end is gone, and fewer of its bytes
 * are left); SCI_ERR_ILLEGAL_PARAMETER (more than the queue has room for).
 */
sci_error_t SCILReceiveMsg(sci_msq_queue_t msq, void *msg, unsigned int size, unsigned int *sizeLeft,
                           unsigned int flags);

#ifdef __cplusplus
}
#endif

#endif

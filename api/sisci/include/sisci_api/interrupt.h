/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file interrupt.h
 * Interrupts: by number or name, with and without bytes.
 *
 * An interrupt that comes while nobody waits is remembered: once, however often it came; with SCI_FLAG_COUNTING_INT, as often as it
 * came; a data interrupt, each with its bytes, until the queue is full. What was stored through a map before a trigger, and flushed,
 * is visible to whoever the interrupt wakes.
 */
#ifndef SISCI_API_INTERRUPT_H
#define SISCI_API_INTERRUPT_H

#ifdef __cplusplus
extern "C" {
#endif

#define SCICreateInterrupt _SISCI_EXPANDE_FUNCTION_NAME(SCICreateInterrupt)
#define SCICreateNamedInterrupt _SISCI_EXPANDE_FUNCTION_NAME(SCICreateNamedInterrupt)
#define SCIRemoveInterrupt _SISCI_EXPANDE_FUNCTION_NAME(SCIRemoveInterrupt)
#define SCIWaitForInterrupt _SISCI_EXPANDE_FUNCTION_NAME(SCIWaitForInterrupt)
#define SCIConnectInterrupt _SISCI_EXPANDE_FUNCTION_NAME(SCIConnectInterrupt)
#define SCIDisconnectInterrupt _SISCI_EXPANDE_FUNCTION_NAME(SCIDisconnectInterrupt)
#define SCITriggerInterrupt _SISCI_EXPANDE_FUNCTION_NAME(SCITriggerInterrupt)
#define SCICreateDataInterrupt _SISCI_EXPANDE_FUNCTION_NAME(SCICreateDataInterrupt)
#define SCIRemoveDataInterrupt _SISCI_EXPANDE_FUNCTION_NAME(SCIRemoveDataInterrupt)
#define SCIWaitForDataInterrupt _SISCI_EXPANDE_FUNCTION_NAME(SCIWaitForDataInterrupt)
#define SCIConnectDataInterrupt _SISCI_EXPANDE_FUNCTION_NAME(SCIConnectDataInterrupt)
#define SCIDisconnectDataInterrupt _SISCI_EXPANDE_FUNCTION_NAME(SCIDisconnectDataInterrupt)
#define SCITriggerDataInterrupt _SISCI_EXPANDE_FUNCTION_NAME(SCITriggerDataInterrupt)
#define SCIRegisterInterruptFlag _SISCI_EXPANDE_FUNCTION_NAME(SCIRegisterInterruptFlag)
#define SCIEnableConditionalInterrupt _SISCI_EXPANDE_FUNCTION_NAME(SCIEnableConditionalInterrupt)
#define SCIDisableConditionalInterrupt _SISCI_EXPANDE_FUNCTION_NAME(SCIDisableConditionalInterrupt)
#define SCIGetConditionalInterruptTrigCounter _SISCI_EXPANDE_FUNCTION_NAME(SCIGetConditionalInterruptTrigCounter)

/**
 * Makes an interrupt.
 *
 * @param interrupt   where the interrupt is put
 * @param interruptNo its number: the one that is wanted, with SCI_FLAG_FIXED_INTNO; where the one that was taken is put
 * @param callback    is called with SCI_FLAG_USE_CALLBACK
 *
 * With SCI_FLAG_SHARED_INT it is one of several of its number, of this process and others of the node, all of which were made so. A
 * trigger of the number reaches each of them, also those that were made after SCIConnectInterrupt(). For that each trigger looks up
 * who there is, which takes system calls. The first trigger after a process has made one connects to that process, and waits half a
 * second at most after the others are triggered. A process that does not answer, because it is stopped or very busy, is skipped then,
 * and the trigger is SCI_ERR_OK if it has reached another one; triggers reach it about a second after it answers.
 * Of processes that share one memory, sisci (7) says what such a trigger takes.
 *
 * Flags: SCI_FLAG_USE_CALLBACK, SCI_FLAG_FIXED_INTNO, SCI_FLAG_COUNTING_INT, SCI_FLAG_SHARED_INT; SCI_FLAG_CONDITIONAL_INTERRUPT
 * is SCI_ERR_FLAG_NOT_IMPLEMENTED: no store into memory of one host triggers anything.
 * Errors: SCI_ERR_INTNO_USED (an interrupt has the number, and one of both is not shared); SCI_ERR_MAX_ENTRIES; SCI_ERR_NOSPC.
 */
void SCICreateInterrupt(sci_desc_t sd, sci_local_interrupt_t *interrupt, unsigned int localAdapterNo,
                        unsigned int *interruptNo, sci_cb_interrupt_t callback, void *arg, unsigned int flags,
                        sci_error_t *error);

/**
 * Makes an interrupt with a name of 1 to 240 bytes in place of a number.
 *
 * Whoever connects gives SCIConnectInterrupt() the number of the name: the FNV-1a of its bytes, of 32 bits, with the highest bit set.
 * `sisci_demo_interrupt_number()` in `sisci_demolib.h` computes it. Numbers that are found for interrupts are smaller. Two names of one
 * number, which one pair in 2^31 is, are SCI_ERR_INTNO_USED; with SCI_FLAG_SHARED_INT they are taken for the same name.
 *
 * @param interrupt where the interrupt is put
 * @param name      its name, in UTF-8
 * @param callback  is called with SCI_FLAG_USE_CALLBACK
 *
 * Flags: SCI_FLAG_USE_CALLBACK, SCI_FLAG_COUNTING_INT, SCI_FLAG_SHARED_INT: see SCICreateInterrupt().
 * Errors: SCI_ERR_INTNO_USED; SCI_ERR_MAX_ENTRIES; SCI_ERR_NOSPC.
 */
void SCICreateNamedInterrupt(sci_desc_t sd, sci_local_interrupt_t *interrupt, unsigned int localAdapterNo,
                             const char *name, sci_cb_interrupt_t callback, void *arg, unsigned int flags,
                             sci_error_t *error);

/**
 * Removes an interrupt, though others are connected: they learn it when they trigger it.
 *
 * Waits for a callback of the interrupt that is running, unless it is called in a callback.
 */
void SCIRemoveInterrupt(sci_local_interrupt_t interrupt, unsigned int flags, sci_error_t *error);

/**
 * Waits for an interrupt.
 *
 * @param timeout milliseconds
 *
 * Errors: SCI_ERR_TIMEOUT; SCI_ERR_CANCELLED; SCI_ERR_ILLEGAL_OPERATION (it has a callback); SCI_ERR_NO_LINK_ACCESS (the file that members
 * share was cut).
 */
void SCIWaitForInterrupt(sci_local_interrupt_t interrupt, unsigned int timeout, unsigned int flags, sci_error_t *error);

/**
 * Connects to an interrupt of a node.
 *
 * @param interrupt where the connection is put
 * @param timeout   milliseconds: how long to wait until the interrupt is there; 0 waits half a second at most for a process that does
 *                  not answer
 *
 * Errors: SCI_ERR_NO_SUCH_INTNO (at timeout 0: none of this number and kind); SCI_ERR_TIMEOUT; SCI_ERR_NO_SUCH_NODEID;
 * SCI_ERR_NODE_NOT_RESPONDING; SCI_ERR_NO_LINK_ACCESS; SCI_ERR_NO_REMOTE_LINK_ACCESS; SCI_ERR_ACCESS; SCI_ERR_MAX_ENTRIES (this process has 1024
 * connections to it); SCI_ERR_NOSPC (of SCIConnectDataInterrupt(): no memory for its queue).
 */
void SCIConnectInterrupt(sci_desc_t sd, sci_remote_interrupt_t *interrupt, unsigned int nodeId,
                         unsigned int localAdapterNo, unsigned int interruptNo, unsigned int timeout,
                         unsigned int flags, sci_error_t *error);

/** Ends a connection to an interrupt. */
void SCIDisconnectInterrupt(sci_remote_interrupt_t interrupt, unsigned int flags, sci_error_t *error);

/**
 * Triggers an interrupt.
 *
 * Errors: SCI_ERR_NOT_CONNECTED (removed, or its process has ended); SCI_ERR_NO_LINK_ACCESS; SCI_ERR_NO_REMOTE_LINK_ACCESS.
 * Ordering: stores of the calling thread through cached maps are seen by whoever the interrupt wakes; others must be flushed first.
 */
void SCITriggerInterrupt(sci_remote_interrupt_t interrupt, unsigned int flags, sci_error_t *error);

/**
 * Makes an interrupt that comes with bytes.
 *
 * It has a queue of 8 KiB for each process that is connected: 128 triggers of at most 56 bytes each wait there until they are taken, 64
 * of at most 112, or 3 of 2048. Between members that share a file or a BAR the queue has 4 KiB: 64 of at most 56 bytes, 32 of at most
 * 112, or one of 2048. The trigger after them is SCI_ERR_NOSPC.
 *
 * @param interrupt   where the interrupt is put
 * @param interruptNo as for SCICreateInterrupt()
 * @param callback    is called with SCI_FLAG_USE_CALLBACK, with the bytes of one trigger
 *
 * GROUPS. With SCI_FLAG_BROADCAST the interrupt joins the group of this number: those that processes of any nodes have made so. Whoever
 * connects to node DIS_BROADCAST_NODEID_GROUP_ALL triggers all of them. The number has nothing to do with the numbers of a node's
 * interrupts. Without SCI_FLAG_FIXED_INTNO it is one that no group has.
 *
 * Flags: SCI_FLAG_USE_CALLBACK, SCI_FLAG_FIXED_INTNO, SCI_FLAG_BROADCAST.
 * Errors: as SCICreateInterrupt().
 */
void SCICreateDataInterrupt(sci_desc_t sd, sci_local_data_interrupt_t *interrupt, unsigned int localAdapterNo,
                            unsigned int *interruptNo, sci_cb_data_interrupt_t callback, void *arg, unsigned int flags,
                            sci_error_t *error);

/**
 * Removes a data interrupt, though others are connected. Bytes that nobody took are gone.
 *
 * Waits for a callback of the interrupt that is running, unless it is called in a callback.
 */
void SCIRemoveDataInterrupt(sci_local_data_interrupt_t interrupt, unsigned int flags, sci_error_t *error);

/**
 * Waits for a data interrupt and takes its bytes.
 *
 * @param data    where they are put
 * @param length  bytes there is room for; where the bytes that came are put
 * @param timeout milliseconds
 *
 * Errors: SCI_ERR_TIMEOUT; SCI_ERR_CANCELLED; SCI_ERR_ILLEGAL_OPERATION (it has a callback); SCI_ERR_OVERFLOW (too little room:
 * `length` says how much is needed, and the bytes stay for the next wait); SCI_ERR_NO_LINK_ACCESS (the file that members share was cut).
 */
void SCIWaitForDataInterrupt(sci_local_data_interrupt_t interrupt, void *data, unsigned int *length,
                             unsigned int timeout, unsigned int flags, sci_error_t *error);

/**
 * Connects to a data interrupt of a node, as SCIConnectInterrupt() does.
 *
 * With SCI_FLAG_BROADCAST and the node DIS_BROADCAST_NODEID_GROUP_ALL it connects to a group: a trigger reaches each interrupt of it, also
 * those that are made later, and those of this process. For that each trigger looks up who there is, which takes system calls. The first
 * trigger after a process has joined connects to that process, and waits half a second at most; a process that does not answer,
 * because it is stopped or very busy, is skipped then, and reached about a second after it answers. Who is behind a link that is down is
 * skipped, too.
 *
 * Flags: SCI_FLAG_BROADCAST.
 * Errors: as SCIConnectInterrupt(); SCI_ERR_ILLEGAL_OPERATION (SCI_FLAG_BROADCAST and another node); SCI_ERR_NO_SUCH_NODEID (that node
 * without SCI_FLAG_BROADCAST).
 */
void SCIConnectDataInterrupt(sci_desc_t sd, sci_remote_data_interrupt_t *interrupt, unsigned int nodeId,
                             unsigned int localAdapterNo, unsigned int interruptNo, unsigned int timeout,
                             unsigned int flags, sci_error_t *error);

/** Ends a connection to a data interrupt. */
void SCIDisconnectDataInterrupt(sci_remote_data_interrupt_t interrupt, unsigned int flags, sci_error_t *error);

/**
 * Triggers a data interrupt.
 *
 * @param data   the bytes; they are copied before the function returns
 * @param length 0 to 2048
 *
 * Errors: SCI_ERR_NOSPC (the queue of this connection is full, or of a group that of one of its interrupts: nothing is sent, to
 * nobody); SCI_ERR_ILLEGAL_PARAMETER (too many bytes); others as
 * SCITriggerInterrupt().
 * Ordering: triggers of one thread are taken in their order.
 */
void SCITriggerDataInterrupt(sci_remote_data_interrupt_t interrupt, void *data, unsigned int length, unsigned int flags,
                             sci_error_t *error);

/**
 * Makes an interrupt that a store into a segment triggers (version 1).
 *
 * Flags: SCI_FLAG_USE_CALLBACK, SCI_FLAG_CONDITIONAL_INTERRUPT.
 * Errors: SCI_ERR_NOT_SUPPORTED: memory tells nobody of a store.
 */
void SCIRegisterInterruptFlag(unsigned int localAdapterNo, sci_local_interrupt_t *interrupt, sci_local_segment_t segment,
                              size_t offset, sci_cb_interrupt_t callback, void *arg, unsigned int flags,
                              sci_error_t *error);

/** Lets a map trigger its conditional interrupt (version 1). Errors: SCI_ERR_NOT_SUPPORTED. */
void SCIEnableConditionalInterrupt(sci_map_t map, unsigned int flags, sci_error_t *error);

/** Lets a map trigger its conditional interrupt no more (version 1). Errors: SCI_ERR_NOT_SUPPORTED. */
void SCIDisableConditionalInterrupt(sci_map_t map, unsigned int flags, sci_error_t *error);

/** Says how often a conditional interrupt was triggered (version 1). Errors: SCI_ERR_NOT_SUPPORTED. */
void SCIGetConditionalInterruptTrigCounter(sci_map_t map, unsigned int *count, unsigned int flags, sci_error_t *error);

#ifdef __cplusplus
}
#endif

#endif

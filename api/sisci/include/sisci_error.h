/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file sisci_error.h
 * Codes that functions of SISCI put where their last parameter points.
 *
 * A function that succeeds puts SCI_ERR_OK. The last parameter may be NULL: the function does the same, and its caller does not
 * learn what came of it. SCIGetErrorString() gives a sentence for each code. Codes from 0xe00 on are numbered by this project, since
 * no published text gives their numbers; a program has them by compiling against this header.
 */
#ifndef SISCI_ERROR_H
#define SISCI_ERROR_H

#ifdef __cplusplus
extern "C" {
#endif

/** One of the codes below. */
typedef unsigned int sci_error_t;

/**
 * Returns a sentence that says why the last function of this library that failed in the calling thread did so, in more words than its
 * code; empty if none failed. It is there until the next one fails. Other implementations of SISCI have no such function.
 */
const char *beeline_sisci_last_error(void);

#ifdef __cplusplus
}
#endif

/** What every code but SCI_ERR_OK has set beside its number. */
#define SCI_ERR_MASK 0x40000000u

/** The function did what it was asked for. */
#define SCI_ERR_OK 0x0u

/** Something still uses it: maps, sequences, connections, a transfer, or other resources of a descriptor. Try again. */
#define SCI_ERR_BUSY (SCI_ERR_MASK | 0x900u)
/** The flag is known and not possible on this platform. */
#define SCI_ERR_FLAG_NOT_IMPLEMENTED (SCI_ERR_MASK | 0x901u)
/** A flag that this function does not know, or two that exclude each other. */
#define SCI_ERR_ILLEGAL_FLAG (SCI_ERR_MASK | 0x902u)
/** No memory, or no room where the data were to go. */
#define SCI_ERR_NOSPC (SCI_ERR_MASK | 0x904u)
/** A table of the library is full. */
#define SCI_ERR_API_NOSPC (SCI_ERR_MASK | 0x905u)
/** The adapter has no resource of this kind left. */
#define SCI_ERR_HW_NOSPC (SCI_ERR_MASK | 0x906u)
/** The function is there for programs to link, and does nothing on this platform. */
#define SCI_ERR_NOT_IMPLEMENTED (SCI_ERR_MASK | 0x907u)
/** Adapters are numbered from 0 to 15. */
#define SCI_ERR_ILLEGAL_ADAPTERNO (SCI_ERR_MASK | 0x908u)
/** The node has no adapter of this number. */
#define SCI_ERR_NO_SUCH_ADAPTERNO (SCI_ERR_MASK | 0x909u)
/** Nothing happened within the time that the caller gave. */
#define SCI_ERR_TIMEOUT (SCI_ERR_MASK | 0x90au)
/** Offset and size reach beyond the end of the segment. */
#define SCI_ERR_OUT_OF_RANGE (SCI_ERR_MASK | 0x90bu)
/** The node has no segment of this number. */
#define SCI_ERR_NO_SUCH_SEGMENT (SCI_ERR_MASK | 0x90cu)
/** A number that no node can have. */
#define SCI_ERR_ILLEGAL_NODEID (SCI_ERR_MASK | 0x90du)
/** The segment is there, and not available through this adapter. */
#define SCI_ERR_CONNECTION_REFUSED (SCI_ERR_MASK | 0x90eu)
/** The connection to the segment is not made yet, or is lost. */
#define SCI_ERR_SEGMENT_NOT_CONNECTED (SCI_ERR_MASK | 0x90fu)
/** A size that is 0, or no multiple of what the resource asks for. */
#define SCI_ERR_SIZE_ALIGNMENT (SCI_ERR_MASK | 0x910u)
/** An offset that is no multiple of what the resource asks for. */
#define SCI_ERR_OFFSET_ALIGNMENT (SCI_ERR_MASK | 0x911u)
/** A handle that is removed, never was or is of another kind; a pointer that must not be NULL; a number out of its bounds. */
#define SCI_ERR_ILLEGAL_PARAMETER (SCI_ERR_MASK | 0x912u)
/** As many resources of this kind are in use, or entries in the queue, as there can be. */
#define SCI_ERR_MAX_ENTRIES (SCI_ERR_MASK | 0x913u)
/** The segment must be prepared first. */
#define SCI_ERR_SEGMENT_NOT_PREPARED (SCI_ERR_MASK | 0x914u)
/** Memory that cannot be used in this way, or an address that is taken. */
#define SCI_ERR_ILLEGAL_ADDRESS (SCI_ERR_MASK | 0x915u)
/** The resource is in a state in which this cannot be done. */
#define SCI_ERR_ILLEGAL_OPERATION (SCI_ERR_MASK | 0x916u)
/** A command or subcommand that SCIQuery() does not know. */
#define SCI_ERR_ILLEGAL_QUERY (SCI_ERR_MASK | 0x917u)
/** A segment of this number is there already. */
#define SCI_ERR_SEGMENTID_USED (SCI_ERR_MASK | 0x918u)
/**
 * The operating system refused something, or the configuration is wrong: beeline_sisci_last_error() says what. SCIInitialize() and
 * SCIOpen() set `errno`, too; others leave it as it is.
 */
#define SCI_ERR_SYSTEM (SCI_ERR_MASK | 0x919u)
/** The handle was removed while the function waited; it means nothing any more. */
#define SCI_ERR_CANCELLED (SCI_ERR_MASK | 0x91au)
/** The other side has removed what this was connected to, or has ended. */
#define SCI_ERR_NOT_CONNECTED (SCI_ERR_MASK | 0x91bu)
/** The resource is not available now. */
#define SCI_ERR_NOT_AVAILABLE (SCI_ERR_MASK | 0x91cu)
/** Library and node do not speak the same version. */
#define SCI_ERR_INCONSISTENT_VERSIONS (SCI_ERR_MASK | 0x91du)
/** A conditional interrupt was enabled while its condition changed. */
#define SCI_ERR_COND_INT_RACE_PROBLEM (SCI_ERR_MASK | 0x91eu)
/** The buffer is too small for what arrived. */
#define SCI_ERR_OVERFLOW (SCI_ERR_MASK | 0x91fu)
/** SCIInitialize() was not called, or the handles are those of the parent before fork. */
#define SCI_ERR_NOT_INITIALIZED (SCI_ERR_MASK | 0x920u)
/** The owner does not admit this user or this kind of access. SCIAttachLocalSegment() gives it for a missing segment, too. */
#define SCI_ERR_ACCESS (SCI_ERR_MASK | 0x921u)

/** No node of this number is configured. */
#define SCI_ERR_NO_SUCH_NODEID (SCI_ERR_MASK | 0xa00u)
/** No process of the node answers. */
#define SCI_ERR_NODE_NOT_RESPONDING (SCI_ERR_MASK | 0xa02u)
/** The link of the other node's adapter is down. */
#define SCI_ERR_NO_REMOTE_LINK_ACCESS (SCI_ERR_MASK | 0xa04u)
/** The link of this node's adapter is down. */
#define SCI_ERR_NO_LINK_ACCESS (SCI_ERR_MASK | 0xa05u)
/** Some of the data did not arrive. */
#define SCI_ERR_TRANSFER_FAILED (SCI_ERR_MASK | 0xa06u)

/** The other side is busy. Try again. */
#define SCI_ERR_REMOTE_BUSY (SCI_ERR_MASK | 0xb00u)

/** What was asked for does not exist on this platform. */
#define SCI_ERR_NOT_SUPPORTED (SCI_ERR_MASK | 0xe00u)
/** The function was given up; its documentation names what to call instead. */
#define SCI_ERR_DEPRECATED (SCI_ERR_MASK | 0xe01u)
/** There is no engine for DMA of this kind. */
#define SCI_ERR_DMA_NOT_AVAILABLE (SCI_ERR_MASK | 0xe02u)
/** The configuration forbids DMA. */
#define SCI_ERR_DMA_DISABLED (SCI_ERR_MASK | 0xe03u)
/** A message queue is full, or empty. */
#define SCI_ERR_EWOULD_BLOCK (SCI_ERR_MASK | 0xe04u)
/** An interrupt came more often than its count can say. */
#define SCI_ERR_SEMAPHORE_COUNT_EXCEEDED (SCI_ERR_MASK | 0xe05u)
/** The function must not be called where it was. */
#define SCI_ERR_IRQL_ILLEGAL (SCI_ERR_MASK | 0xe06u)
/** This side is busy. Try again. */
#define SCI_ERR_LOCAL_BUSY (SCI_ERR_MASK | 0xe07u)
/** Both sides are busy. Try again. */
#define SCI_ERR_ALL_BUSY (SCI_ERR_MASK | 0xe08u)
/** No device of this number is known to the fabric. */
#define SCI_ERR_NO_SUCH_FDID (SCI_ERR_MASK | 0xe09u)
/** The node has no interrupt of this number and kind. */
#define SCI_ERR_NO_SUCH_INTNO (SCI_ERR_MASK | 0xe0au)
/** An interrupt of this number is there already. */
#define SCI_ERR_INTNO_USED (SCI_ERR_MASK | 0xe0bu)

#endif

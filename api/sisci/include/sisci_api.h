/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file sisci_api.h
 * SISCI: memory of one program that others write with plain stores, with copies, DMA and interrupts beside it.
 *
 * A program makes a segment, another one connects to it, maps it and stores through the pointer:
 *
 *     owner:    SCIInitialize, SCIOpen, SCICreateSegment, SCIPrepareSegment, SCISetSegmentAvailable, SCIMapLocalSegment
 *     consumer: SCIInitialize, SCIOpen, SCIConnectSegment (until SCI_ERR_OK), SCIMapRemoteSegment, SCICreateMapSequence,
 *               SCIStartSequence (until SCI_SEQ_OK), stores or SCIMemCpy, SCIFlush, SCICheckSequence
 *
 * and both take down what they made, last made first. `-lsisci` links it. What follows holds for every function.
 *
 * PARAMETERS. `flags` is 0 or an OR of the flags that the function's documentation names; another bit is SCI_ERR_ILLEGAL_FLAG, one
 * that is known and not possible here SCI_ERR_FLAG_NOT_IMPLEMENTED. `error` is where the code is put, or NULL. A handle that is
 * removed, never was or is of another kind, and a NULL where something is given back, are SCI_ERR_ILLEGAL_PARAMETER; nothing is
 * touched then. An adapter number above 15 is SCI_ERR_ILLEGAL_ADAPTERNO, one that is not configured SCI_ERR_NO_SUCH_ADAPTERNO.
 * Before SCIInitialize(), and in a child of fork with handles of the parent, the code is SCI_ERR_NOT_INITIALIZED. The
 * documentation of a function names the codes beyond these; beeline_sisci_last_error() says in words what was wrong. A function that
 * fails gives NULL or 0 where it gives something; a sequence that cannot be started or checked gives SCI_SEQ_NOT_RETRIABLE, a wait for
 * a DMA queue the state of the queue.
 *
 * NODES. A process is of the node whose number is BEELINE_NODE in the environment, else `node` in the configuration, else 4; several
 * processes may be of one node. The configuration is the file that BEELINE_CONFIG names, else /etc/beeline.toml if it is there. Its keys
 * are `node`, `domain`, `polls` (true: nothing of this process sleeps, see POLLING), `sysfs` (where the kernel shows devices, if not in
 * /sys), the tables `[memory]` (see MEMORY), `[access]` (see ACCESS) and `[adapters]` (see ADAPTERS), and for each node a table
 * `[[nodes]]` with its `id` (1 to 251), `name` and `adapters`, a list of numbers. Without such a table there are the nodes 1 to 251, each with the adapter 0.
 * Programs of one domain meet in the folder that BEELINE_ROOT names, else in /tmp/beeline-<uid>. If it cannot be used, SCIInitialize() is
 * SCI_ERR_SYSTEM.
 *
 * ONE MEMORY. Programs that have no kernel in common (guests that share a BAR, containers that share a file) meet in that memory: the
 * table `[fabric]` of the configuration has its path, `memory`, before which BEELINE_FABRIC_MEMORY counts: a file on tmpfs or
 * hugetlbfs, or a BAR as /sys shows it (resource2, or resource2_wc, whose stores are combined). With `bytes` a file that is not there
 * is made of that size; `members` (2 to 16, else 4) is how many may share a memory that nobody has used yet, and `slot` which part of it
 * is this process's, if not any. All of them may store everywhere in it. A node has one adapter then.
 *
 * A group (SCI_FLAG_BROADCAST) is one memory there, too, in the part of the process that joined it first; of one process there are at most 64
 * groups that it holds or has mapped. It goes on when that process ends, whose part is then nobody else's until the group is nobody's
 * any more. A holder that was taken for dead, and whose group others have made anew since, is no member any more: SCI_ERR_SYSTEM.
 * The same holds for a segment that is shared (SCIShareSegment()), which stays in the part of the process that made it. What somebody was
 * connected to already when it was shared is not used for another segment until that process ends.
 * `beeline fabric` finds such a memory as programs do: `ls` lists members, segments and groups, `rm` and `link` ask them, and
 * `--memory FILE` names another.
 *
 * A trigger of a number that interrupts share (SCI_FLAG_SHARED_INT) loads a word for each segment and interrupt that each process of the
 * node may have, up to 4096 a process, to find those that are there. It makes no system call and waits for no process: one that is
 * stopped is triggered, too, until it is taken for dead. So does a trigger of a group of data interrupts (SCI_FLAG_BROADCAST), for the
 * processes of all nodes. It is SCI_ERR_NOSPC, and reaches nobody, while one of the group has no room, or while this process has no
 * connection left to data interrupts of a process of the group, of which each interrupt of the group takes one.
 *
 * Each member has a part of equal size in that memory for its segments, each of which takes a multiple of 64 KiB. Of `bytes` at most
 * a quarter is for tables if there are at least 640 KiB a member, and the parts share the rest: with 64 MiB and 4 members a process's
 * segments have 14 MiB together, and one more is SCI_ERR_NOSPC. So `bytes` are `members` times what the segments of one process take
 * and 128 KiB, times 4/3. In a small memory a process has as few as 64 segments and interrupts, else up to 4096, and as few as
 * one connection to data interrupts of a peer, else up to 8. A private segment is memory of its process, outside of that part.
 *
 * A peer that is killed is known to be gone after one second, and so is one that is stopped: it is taken for dead, its connections
 * are lost, and it is connected to again once it goes on. The part of a process that ended without SCITerminate() is free after
 * that time, for which SCIOpen() waits where no other part is free. A file that is cut, or a device that is removed, takes the link
 * down: SCI_ERR_NO_LINK_ACCESS, also of waits, SCI_ERR_TRANSFER_FAILED of copies, SCI_CB_LOST of connections; segments are then removed
 * with SCI_FLAG_FORCE_REMOVE, because nobody knows who uses them. The file stays at its path as long as a program uses it. Deleted or
 * replaced, it is found to be so in a tenth of a second and is the same to those who use it as a file that is cut, but that what is mapped
 * keeps its memory: whoever came later would meet none of them. SCIOpen() is SCI_ERR_NO_LINK_ACCESS, too, until SCITerminate() and
 * SCIInitialize(), after which the program is one of those who use the new file. SCI_ERR_NOT_SUPPORTED: segments with SCI_FLAG_EMPTY, and so memory of
 * the program or a device behind them, for that is not in the file, and no other kernel can map it. The tables `[access]` and `[memory]`,
 * and nodes with a `user`, are SCI_ERR_SYSTEM of SCIInitialize().
 *
 * ADAPTERS. With `fail_over = true` in the table `[adapters]` of the configuration each adapter that a program names means any of its
 * node: a segment is prepared and available by all of them, and a connection, to an interrupt too, goes by the first whose link is up at
 * both ends. Where that changes, stores of the sequence that was under way may be lost: it is SCI_SEQ_RETRIABLE, and the next one goes by
 * another adapter. Only where none is up it is SCI_SEQ_PENDING, and a connection is told SCI_CB_NOT_OPERATIONAL. A node of one host
 * with two adapters has two links that `beeline fabric link` sets, and one memory.
 *
 * ACCESS. Who may connect to segments that this process makes is said by the table `[access]` of the configuration, with lists of `nodes`
 * (numbers or names), `users` and `groups` of users (numbers, or names of /etc/passwd and /etc/group, which are read by
 * SCIInitialize()). A table `[[access.segments]]` with `ids`, a list of numbers, and the same lists is for these segments, in place of
 * the other. Without lists a segment is for all nodes and its own user; without `nodes` it is for all nodes; its own user needs no
 * place among `users`. Others are SCI_ERR_CONNECTION_REFUSED. The kernel says of which user a process is; of which node it is, it says itself.
 * A node whose processes are of another user has `user` in its table `[[nodes]]`, and `root`, the folder in which those meet, if
 * that is not /tmp/beeline-<uid>. Of processes of other users there are segments, and neither interrupts, groups nor message queues. Groups,
 * segments that are attached, and message queues have no list.
 *
 * TIMES are milliseconds; 0 looks once and does not wait; SCI_INFINITE_TIMEOUT waits until something happens. A function that
 * connects contacts the peer's process when it is the first that needs it. With the time 0 it waits for that process half a second at
 * most, because one that is stopped does not answer; with another time no longer than that. SCI_ERR_TIMEOUT of such a function
 * leaves in beeline_sisci_last_error() what the last look found: that nobody of the node answers, or has no such segment or interrupt,
 * or that the segment is not available.
 *
 * LIMITS. A process has at most 1024 connections to one segment, and to one interrupt; one more is SCI_ERR_MAX_ENTRIES, whatever the
 * time is.
 *
 * THREADS. Any thread may call any function at any time, with any handle. A handle that one thread removes while another one
 * waits with it ends that wait with SCI_ERR_CANCELLED. In a child of fork segments stay mapped where they were; the library must be
 * opened anew there.
 *
 * CALLBACKS run on threads of the library: those of one handle one after the other and in order, those of two handles perhaps at the
 * same time. One that waits delays no other. Handles share these threads; a DMA queue with callbacks has one of its own. Triggers of an
 * interrupt that come while its callback runs are one call (100 quick triggers may be one or two), unless it counts
 * (SCI_FLAG_COUNTING_INT) or comes with bytes. A callback returns SCI_CALLBACK_CONTINUE, or SCI_CALLBACK_CANCEL not to be called any
 * more; see sci_callback_action_t (3).
 *
 * MEMORY. Segments are made of ordinary pages, which are taken when they are touched. With `locked = true` in the table `[memory]` of the
 * configuration, those that this process makes are locked into RAM (not those of groups); more than `ulimit -l` allows is SCI_ERR_SYSTEM
 * of SCICreateSegment(). With `huge_pages = true` they are made of huge pages that the administrator has reserved (vm.nr_hugepages);
 * where too few are left, that is SCI_ERR_NOSPC. Processes that connect to such segments have the key, too, because a process that gives
 * such pages back ends those that have them mapped.
 *
 * POLLING. With `polls = true` in the configuration whoever waits looks over and over and takes a core, callbacks included. Then
 * SCITriggerInterrupt() and SCITriggerDataInterrupt() to this process never make a system call, except of a number that is shared
 * (SCI_FLAG_SHARED_INT).
 *
 * ORDER. Stores through a map may arrive in any order. SCIFlush(), SCIStoreBarrier() and SCICheckSequence() say what has left and
 * what has arrived. SCIMemCpy() and SCIMemWrite() flush before they return unless told not to.
 *
 * QUEUES of messages between two processes, which are made of segments, are in scilib.h.
 *
 * ABSENT. These flags are SCI_ERR_FLAG_NOT_IMPLEMENTED: of groups SCI_FLAG_ALLOW_UNICAST (a group is one memory on one host, and a store
 * into it reaches all); of segments SCI_FLAG_SHARE_EXTERNAL (no published text says what it does); of maps
 * SCI_FLAG_NO_MEMORY_LOOPBACK (no adapter is there to loop through), SCI_FLAG_CONDITIONAL_INTERRUPT_MAP and SCI_FLAG_UNCONDITIONAL_DATA_INTERRUPT_MAP (a store to memory tells nobody),
 * SCI_FLAG_DMOVE_MAP (a kind of packet of another interconnect), and SCI_FLAG_IO_MAP_IOSPACE of memory of the host (programs have that
 * through the caches alone); of interrupts SCI_FLAG_CONDITIONAL_INTERRUPT (as of maps); of DMA SCI_FLAG_DMA_PHDMA (programs know
 * no addresses on the bus), and SCI_FLAG_DMA_USER_MEM where a local segment is given (memory of the program has a function of its
 * own).
 *
 * NAMES. Each function is exported under its name and under two others, _SISCI_PUBLIC_FUNC_ST_<name> and
 * _SISCI_PUBLIC_FUNC_MT_<name>, which are the same function here. A program that includes this header calls the second with
 * _REENTRANT defined and the first without, as it would elsewhere. Flags and queries are macros, and exist as data of type
 * `const unsigned int`, too: _SISCI_PUBLIC_CONST_<name>.
 */
#ifndef SISCI_API_H
#define SISCI_API_H

#include "sisci_types.h"

/** Makes the name of a function's symbol of the function's name. */
#ifdef _REENTRANT
#define _SISCI_EXPANDE_FUNCTION_NAME(name) _SISCI_PUBLIC_FUNC_MT_##name
#else
#define _SISCI_EXPANDE_FUNCTION_NAME(name) _SISCI_PUBLIC_FUNC_ST_##name
#endif
/** Makes the name of a constant's symbol of the constant's name. */
#define _SISCI_EXPANDE_CONSTANT_NAME(name) _SISCI_PUBLIC_CONST_##name

#include "sisci_api/flags.h"
#include "sisci_api/lifecycle.h"
#include "sisci_api/segment.h"
#include "sisci_api/remote.h"
#include "sisci_api/transfer.h"
#include "sisci_api/dma.h"
#include "sisci_api/interrupt.h"
#include "sisci_api/node.h"
#include "sisci_api/device.h"
#include "sisci_api/version1.h"

#endif

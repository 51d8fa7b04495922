/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file sisci_glob_defs.h
 * Numbers that belong to no single function: bounds, special nodes, times.
 *
 * A macro here is defined only if the program has not defined it already, with the same value where a structure depends on it.
 */
#ifndef SISCI_GLOB_DEFS_H
#define SISCI_GLOB_DEFS_H

/** A timeout in milliseconds that never ends. */
#ifndef SCI_INFINITE_TIMEOUT
#define SCI_INFINITE_TIMEOUT 0xffffffffu
#endif

/** The node to connect to for the segments of a group: whoever has joined it is written to (SCI_FLAG_BROADCAST). */
#ifndef DIS_BROADCAST_NODEID_GROUP_ALL
#define DIS_BROADCAST_NODEID_GROUP_ALL 252u
#endif

/** Adapters of a node, and entries of a dis_nodeId_list_t, all of which the library writes. The number is this project's. */
#ifdef DIS_MAX_NSCIS
#if DIS_MAX_NSCIS != 16
#error "the library writes 16 numbers into a dis_nodeId_list_t, so DIS_MAX_NSCIS must be 16"
#endif
#else
#define DIS_MAX_NSCIS 16u
#endif

/** Entries that one SCIStartDmaTransferVec() takes. The number is this project's. */
#ifndef DIS_DMA_MAX_VECLEN
#define DIS_DMA_MAX_VECLEN 256u
#endif

#endif

/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file beeline_arena.h
 * Arenas: thousands of windows between two processes within a few descriptors. A receiver offers windows under one name; each process
 * that joins has an arena, memory that is mapped once, and opens windows in it. What is opened is a sender and a receiver of
 * beeline_window.h as any other. Build with `pkg-config --cflags --libs beeline`. beeline.h says what holds for every function.
 *
 * END. A window of an arena has one sender: once that has ended and what it left was received, every function gives SENDER_GONE. A
 * window can be opened anew when its receiver and its sender are both closed. A process has at most 16384 senders and 16384 receivers
 * open; a set (beeline_arena_offer_to_set()) has as many windows as memory.
 *
 * THREADS. Any thread may use an arena at any time.
 */
#ifndef BEELINE_ARENA_H
#define BEELINE_ARENA_H

#include "beeline_window.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Where windows are accepted that others open. */
typedef struct beeline_arena_receiver beeline_arena_receiver;
/** Where windows are opened. */
typedef struct beeline_arena_sender beeline_arena_sender;

/** What is offered. Begin with BEELINE_ARENA_OPTIONS_INIT; a field that is 0 or NULL has its default. */
typedef struct beeline_arena_options {
  /** sizeof(beeline_arena_options) */
  size_t size;
  /** Most lines (64 bytes) of a window, a power of two from 2 to 2^24; default 256. Senders may ask for fewer. */
  uint32_t lines;
  /** Most windows of one process at the same time, up to 16384; default 4096. Up to 32 are lent to it before it opens them. */
  uint32_t windows;
  /** Most bytes of the windows of one process, a multiple of 4096 up to 64 GiB; default 64 MiB. A window takes 4096 at least. */
  uint64_t bytes;
  /** Arenas at the same time; default 64. One process may have a sixteenth of them, and another user half; one at least. Nobody
   * opens one while windows of as many that are gone wait to be accepted; the shares of these are the same. */
  uint32_t clients;
  /** enum beeline_wait_policy, for beeline_window_wait(). */
  uint32_t wait;
  /** Users besides this one who may open windows, by beeline_domain_open_foreign(); may be NULL if the count is 0. */
  const uint32_t *allowed_uids;
  /** How many. */
  size_t allowed_uid_count;
  /** Who may open windows besides, because it shares a connection with this program (beeline_admission.h). */
  const beeline_admissions *admissions;
} beeline_arena_options;

/** Options that are all defaults. */
#define BEELINE_ARENA_OPTIONS_INIT {sizeof(beeline_arena_options), 0, 0, 0, 0, 0, NULL, 0, NULL}

/**
 * Offers windows under a name. Does not wait for anybody.
 *
 * @param options NULL: defaults
 * @param arena   where the handle is put; NULL is put there on failure
 * @return OK, INVALID, REFUSED (the name is taken, or is none)
 */
int beeline_arena_offer(const beeline_domain *domain, const char *name, const beeline_arena_options *options,
                        beeline_arena_receiver **arena);

/**
 * Accepts the next window that was opened, waiting for one for at most timeout_ns; 0: not at all.
 *
 * @param receiver where its receiver is put, to be closed by beeline_window_receiver_close(); NULL is put there unless one is
 * @return OK; EMPTY: the time is over; INVALID, REFUSED (the process has too many receivers; the window is given up, and its sender
 *         told that its receiver is gone)
 */
int beeline_arena_accept(const beeline_arena_receiver *arena, uint64_t timeout_ns, beeline_window_receiver **receiver);

/**
 * Withdraws the name. Senders of windows that were not accepted are told that the receiver is gone; the others go on.
 *
 * @return OK, INVALID
 */
int beeline_arena_receiver_close(beeline_arena_receiver **arena);

/**
 * Offers windows under a name to a set of receivers: what is opened becomes a member by itself, and is received from by
 * beeline_window_set_drain(). A member whose sender has ended is given as `failed` once, and is in the set no more.
 *
 * @param options NULL: defaults; `wait` does not count
 * @return OK; INVALID (also if the set has an arena already), WRONG_THREAD, BUSY, REFUSED (the name is taken, or is none)
 *
 * The name is withdrawn when the set is closed.
 */
int beeline_arena_offer_to_set(const beeline_window_set *set, const beeline_domain *domain, const char *name,
                               const beeline_arena_options *options);

/**
 * Joins the receiver that offers windows under a name, to open windows there.
 *
 * @param lines   lines of a window, a power of two, no more than the receiver offers
 * @param options NULL: defaults; for all senders, as of beeline_window_sender_connect(). Flags must be 0
 * @param arena   where the handle is put; NULL is put there on failure
 * @return OK, INVALID, REFUSED (nobody offered the name in time; its owner refuses, as where it has as many arenas as it offers)
 */
int beeline_arena_join(const beeline_domain *domain, const char *name, uint32_t lines,
                       const beeline_window_sender_options *options, beeline_arena_sender **arena);

/**
 * Opens a window. One of up to 256 lines costs a few stores, as a rule, and a wake-up if the receiver sleeps for it, and may be sent
 * to at once.
 *
 * @param lines  0: as of beeline_arena_join(); or another power of two, no more than the receiver offers, which is asked for it
 * @param sender where the window's sender is put, to be closed by beeline_window_sender_close(); NULL is put there on failure
 * @return OK; INVALID; REFUSED (the receiver has gone, or lends no more windows or bytes to this process, or the process has too
 *         many senders)
 */
int beeline_arena_open(const beeline_arena_sender *arena, uint32_t lines, beeline_window_sender **sender);

/** Leaves the arena. Windows that are open in it go on. @return OK, INVALID */
int beeline_arena_sender_close(beeline_arena_sender **arena);

#ifdef __cplusplus
}
#endif

#endif /* BEELINE_ARENA_H */

/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file beeline_window.h
 * Messages from one process to another through a window of shared memory: the sender stores them and never fences, the
 * receiver recovers their order. Nothing on the way of a message locks, allocates or enters the kernel.
 *
 * A receiver offers a window under a name in a domain; a sender connects to the name and sends. See examples/sender.c and
 * examples/receiver.c. Build with `pkg-config --cflags --libs beeline`. beeline.h says what holds for every function: codes,
 * handles, ownership, times. A process has at most 16384 receivers and 16384 senders at the same time.
 *
 * ORDER. Messages arrive once each, whole, in the order in which they were sent, and with the bytes that were sent, whatever
 * those are. A window has one sender at a time; when it has ended, and what it completed was received, one call gives
 * SENDER_GONE (or TORN, or SENDER_FAULTY), and the next receives from the next sender, which gets a fresh window. Messages
 * that a receiver had not received when it ended are lost; what a sender sent before it ended is not.
 *
 * THREADS. A receiver or a sender belongs to the thread that uses it first, until that thread ends or calls the release
 * function; meanwhile every other thread is given WRONG_THREAD.
 *
 * READING. Three ways, with the same result; a program may use all of them in turn:
 * - beeline_window_drain_into() copies many messages into memory of the program: no call for each, and the fastest where
 *   messages are short or are copied anyhow;
 * - beeline_window_drain() gives many messages to a callback, which reads each where it lies in the window;
 * - beeline_window_poll() gives one message, to be read where it lies.
 * A message in the window has no address for the program: a hostile sender could change bytes between check and use, and
 * some words are stored in another form. beeline_window_message_word() and _copy() read it; each is a call and a few loads.
 *
 * A HOSTILE SENDER can change the words of a message while it is read in place, and nothing else: read once, check, use.
 * Bytes that were copied stay as they are.
 */
#ifndef BEELINE_WINDOW_H
#define BEELINE_WINDOW_H

#include "beeline.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The end of windows that messages arrive at. */
typedef struct beeline_window_receiver beeline_window_receiver;
/** The end of a window that messages are stored at. */
typedef struct beeline_window_sender beeline_window_sender;
/** A message that can be read where it lies; a receiver has the same handle for all of its messages. */
typedef struct beeline_window_message beeline_window_message;

/** What the memory of a window is like; of `flags`. */
enum beeline_window_flags {
  /**
   * Huge pages, which the administrator must have reserved. Both sides must say so: a receiver could take the pages back from
   * a sender, which would stop it.
   */
  BEELINE_WINDOW_HUGE_PAGES = 1,
  /** Locked into RAM; counts against RLIMIT_MEMLOCK. */
  BEELINE_WINDOW_LOCKED = 2
};

/* -------------------------------------------------------------- receivers */

/** What a receiver is like. Begin with BEELINE_WINDOW_RECEIVER_OPTIONS_INIT; a field that is 0 or NULL has its default. */
typedef struct beeline_window_receiver_options {
  /** Bytes of this struct as the program knows it. */
  size_t size;
  /** Lines (64 bytes) of the window, a power of two from 2 to 2^24; default 16384. The longest message must fit. */
  uint32_t lines;
  /** enum beeline_wait_policy, for beeline_window_wait(). */
  uint32_t wait;
  /** enum beeline_window_flags, combined. */
  uint32_t flags;
  /** 0. */
  uint32_t reserved;
  /** Users besides this one who may send, by beeline_domain_open_foreign(); may be NULL if the count is 0. */
  const uint32_t *allowed_uids;
  /** How many. */
  size_t allowed_uid_count;
  /**
   * How every window is looked at, as `beeline doctor` shows it: "prefetch=write:32,group=8,credits=8", all three. Default: as
   * beeline_window_receiver_offer() says. It decides speed alone.
   */
  const char *tuning;
  /** Who may send besides, because it shares a connection with this program (beeline_admission.h). */
  const beeline_admissions *admissions;
} beeline_window_receiver_options;

/** Options that are all defaults. */
#define BEELINE_WINDOW_RECEIVER_OPTIONS_INIT {sizeof(beeline_window_receiver_options), 0, 0, 0, 0, NULL, 0, NULL, NULL}

/**
 * Offers a window under a name. Does not wait for a sender.
 *
 * @param options  NULL: defaults
 * @param receiver where the handle is put; NULL is put there on failure
 * @return OK, INVALID, REFUSED (the name is taken, or is none)
 *
 * How lines are prefetched, whether they are tested in groups and how often credits are pushed is what the options' tuning says,
 * else what the environment variable BEELINE_TUNING does (prefetch=write:32,group=8,credits=8, any of them), else what `beeline doctor` found last on this machine,
 * else a default. Nothing is timed here.
 */
int beeline_window_receiver_offer(const beeline_domain *domain, const char *name,
                                  const beeline_window_receiver_options *options, beeline_window_receiver **receiver);

/** Withdraws the name. What was not received is lost. @return OK, or WRONG_THREAD, BUSY: then it is not closed */
int beeline_window_receiver_close(beeline_window_receiver **receiver);

/** Gives a receiver up, so that another thread may use it. @return OK, INVALID, WRONG_THREAD, BUSY */
int beeline_window_receiver_release(const beeline_window_receiver *receiver);

/**
 * Whether a sender is connected, or has left messages, as far as the last look has seen.
 *
 * @return OK; EMPTY: there is none; INVALID, WRONG_THREAD, BUSY
 *
 * Lets go of a held message.
 */
int beeline_window_receiver_sender(const beeline_window_receiver *receiver);

/**
 * Gives the next message, if it is there. Never waits; enters the kernel only while there is no sender.
 *
 * @param message where the handle is put; NULL is put there unless a message is given
 * @param length  NULL, or where the message's length in bytes is put
 * @return OK: it is held until the next use of this receiver by any function, and its lines of the window are free then;
 *         EMPTY: nothing is there; SENDER_GONE, TORN, SENDER_FAULTY; INVALID, WRONG_THREAD, BUSY
 */
int beeline_window_poll(const beeline_window_receiver *receiver, beeline_window_message **message, size_t *length);

/**
 * What beeline_window_drain() calls for each message. `message` means something in this thread, until it returns. It may use
 * other receivers and senders; what it does with the same receiver is BUSY. It must not jump out, and an exception of C++
 * that leaves it ends the process.
 */
typedef void (*beeline_window_each)(void *context, beeline_window_message *message, size_t length);

/**
 * Gives the messages that are there to a callback, in order. Never waits. Less work for each message than a poll.
 *
 * @param max     how many at most; not 0
 * @param context handed to the callback
 * @param taken   NULL, or where it is put how many there were
 * @return OK: some were given; EMPTY: none is there; SENDER_GONE, TORN, SENDER_FAULTY: none was given (what came before the
 *         error was given by calls before this one); INVALID, WRONG_THREAD, BUSY (called by a callback of this receiver)
 */
int beeline_window_drain(const beeline_window_receiver *receiver, size_t max, beeline_window_each each, void *context,
                         size_t *taken);

/** Where a message lies in memory that beeline_window_drain_into() has filled. */
typedef struct beeline_window_span {
  /** Bytes from the start of the memory on, a multiple of 8. */
  size_t offset;
  /** Bytes of the message. */
  size_t length;
} beeline_window_span;

/**
 * Copies the messages that are there into memory of the program, one after the other, in order, as many as fit. Never waits.
 * A message that does not fit stays the next.
 *
 * @param memory   where the messages are copied; may be NULL if capacity is 0. Bytes between messages are left as they were
 * @param capacity bytes of the memory; 64 for each message let short ones be read in runs, which is fastest
 * @param spans    memory for `max` spans: where each message lies; only the first *taken are set
 * @param max      how many messages at most; not 0
 * @param taken    where it is put how many there were
 * @return OK: some were copied; EMPTY: none is there; NO_SPACE: the next message does not fit into the whole memory, and
 *         spans[0].length is its length; SENDER_GONE, TORN, SENDER_FAULTY as of beeline_window_drain(); INVALID,
 *         WRONG_THREAD, BUSY
 *
 * Where messages are longer than those of the call before, up to seven may be copied twice, through memory of the library.
 */
int beeline_window_drain_into(const beeline_window_receiver *receiver, void *memory, size_t capacity,
                              beeline_window_span *spans, size_t max, size_t *taken);

/**
 * Waits, as the options say, until a message or the end of a sender is there; for a sender too. Where there is none, it
 * sleeps under every policy.
 *
 * @return OK: poll or drain; EMPTY: the time is over; INVALID, WRONG_THREAD, BUSY
 *
 * Lets go of a held message. Enters the kernel only when it sleeps.
 */
int beeline_window_wait(const beeline_window_receiver *receiver, uint64_t timeout_ns);

/**
 * The descriptor of a receiver, for poll, epoll and whatever runs on them: readable whenever a message, the end of a sender
 * or the next sender may be there. It is made by the first call.
 *
 * @param descriptor where its number is put; -1 is put there on failure
 * @return OK, INVALID, WRONG_THREAD, BUSY, REFUSED (the process is out of descriptors)
 *
 * It belongs to the receiver, whose close closes it: only wait for it, in any thread; do not read, write or close it. Before
 * each wait call beeline_window_receiver_arm().
 */
int beeline_window_receiver_descriptor(const beeline_window_receiver *receiver, int *descriptor);

/**
 * Makes the descriptor unreadable if nothing is there, until something may be. A descriptor that is not armed is readable:
 * a program that forgets it spins and misses nothing. Level and edge triggered sets both do.
 *
 * @param at_most_ns where it is put how long the wait may last, in nanoseconds: 0 with OK, else BEELINE_NEVER or less
 * @return OK: poll or drain first, the descriptor is readable; EMPTY: wait; INVALID, WRONG_THREAD, BUSY, REFUSED (the process
 *         is out of descriptors)
 *
 * A wake-up may turn out to be for nothing: receive until EMPTY, and arm again. Takes some microseconds. Lets go of a held
 * message.
 */
int beeline_window_receiver_arm(const beeline_window_receiver *receiver, uint64_t *at_most_ns);

/**
 * Makes the descriptor readable, and spares the sender the wake-up: for a program that turns to something else instead of
 * waiting. Not needed after a wait, nor before a close. Lets go of a held message.
 *
 * @return OK, INVALID, WRONG_THREAD, BUSY
 */
int beeline_window_receiver_disarm(const beeline_window_receiver *receiver);

/* ------------------------------------------------------- sets of receivers */

/**
 * Many windows, each with a sender of its own, received from by one thread with one wait. No sender waits for another, and none,
 * however fast, keeps the others out. Messages of one member come in order; between members there is none. A set belongs to a
 * thread as a receiver does. A process has at most 16384 of them.
 */
typedef struct beeline_window_set beeline_window_set;

/**
 * Makes an empty set.
 *
 * @param burst messages that are taken from a member before the next; 0: the default, 32
 * @param wait  enum beeline_wait_policy, for beeline_window_set_drain()
 * @return OK, INVALID, REFUSED
 */
int beeline_window_set_open(size_t burst, uint32_t wait, beeline_window_set **set);

/** Closes a set: every name of it is withdrawn. @return OK, or WRONG_THREAD, BUSY: then it is not closed */
int beeline_window_set_close(beeline_window_set **set);

/** Gives a set up, so that another thread may use it. @return OK, INVALID, WRONG_THREAD, BUSY */
int beeline_window_set_release(const beeline_window_set *set);

/**
 * Offers a window under a name, as beeline_window_receiver_offer() does, and has the set receive from it.
 *
 * @param member where its number is put, which no other member of the set has; 0 is put there on failure
 * @return OK, INVALID, REFUSED, WRONG_THREAD, BUSY
 *
 * The wait policy of the options does not count. A descriptor that was armed is readable.
 */
int beeline_window_set_offer(const beeline_window_set *set, const beeline_domain *domain, const char *name,
                             const beeline_window_receiver_options *options, uint64_t *member);

/** Withdraws the name of a member. What was not received is lost. @return OK, INVALID, WRONG_THREAD, BUSY */
int beeline_window_set_remove(const beeline_window_set *set, uint64_t member);

/** What beeline_window_set_drain() calls for each message; as beeline_window_each. */
typedef void (*beeline_window_each_of)(void *context, uint64_t member, beeline_window_message *message, size_t length);

/**
 * Gives the messages that are there to a callback, a burst of each member in turn; waits for the first of any member, as
 * beeline_window_set_open() was told, for at most timeout_ns.
 *
 * @param max    how many at most; not 0
 * @param taken  NULL, or where it is put how many there were, whatever is returned
 * @param failed where it is put whose sender is over; 0 unless one is
 * @return OK: some were given; EMPTY: the time is over; SENDER_GONE, TORN, SENDER_FAULTY of the member *failed, once for each
 *         sender, of which all that it completed was given: the member stays and receives from its next sender; INVALID,
 *         WRONG_THREAD, BUSY
 */
int beeline_window_set_drain(const beeline_window_set *set, size_t max, uint64_t timeout_ns, beeline_window_each_of each,
                             void *context, size_t *taken, uint64_t *failed);

/** As beeline_window_receiver_descriptor(). @return OK, INVALID, WRONG_THREAD, BUSY, REFUSED */
int beeline_window_set_descriptor(const beeline_window_set *set, int *descriptor);

/** As beeline_window_receiver_arm(). @return OK: drain first; EMPTY: wait; INVALID, WRONG_THREAD, BUSY, REFUSED */
int beeline_window_set_arm(const beeline_window_set *set, uint64_t *at_most_ns);

/** As beeline_window_receiver_disarm(). @return OK, INVALID, WRONG_THREAD, BUSY */
int beeline_window_set_disarm(const beeline_window_set *set);

/* --------------------------------------------- a message, where it lies */

/** Bytes of the message; 0 also where `message` means nothing (any more): beeline_last_error() then says so. */
size_t beeline_window_message_length(const beeline_window_message *message);

/**
 * Bytes 8 * index to 8 * index + 7 of the message as a little-endian word. Bytes past its end are zero, and so is everything
 * where `message` means nothing. Each call loads from memory that the sender can write: read once, check, use.
 */
uint64_t beeline_window_message_word(const beeline_window_message *message, size_t index);

/**
 * Copies the message from word `first_word` on, as much as fits; bytes copied, 0 also where `message` means nothing. Copies
 * whole lines at once; for more than a few words it is faster than beeline_window_message_word().
 */
size_t beeline_window_message_copy(const beeline_window_message *message, size_t first_word, void *out,
                                   size_t capacity);

/* ---------------------------------------------------------------- senders */

/** What store instructions are chosen for, unless they are named. */
enum beeline_window_traffic {
  /** Single messages, each of which arrives as soon as it can. */
  BEELINE_WINDOW_LATENCY = 0,
  /** Many messages one after the other. */
  BEELINE_WINDOW_STREAM = 1
};

/**
 * When a sender fences. Messages arrive in order without any of it: the others are there to measure what they cost. Where one
 * side cannot keep a sleeping receiver from missing a message otherwise, each message is fenced at least.
 */
enum beeline_window_fences {
  BEELINE_WINDOW_FENCE_NONE = 0,
  /** Once each time the window goes round, before its first line is stored again. */
  BEELINE_WINDOW_FENCE_PER_WRAP = 1,
  BEELINE_WINDOW_FENCE_PER_MESSAGE = 2,
  BEELINE_WINDOW_FENCE_PER_LINE = 3
};

/** What a sender is like. Begin with BEELINE_WINDOW_SENDER_OPTIONS_INIT; a field that is 0 or NULL has its default. */
typedef struct beeline_window_sender_options {
  /** Bytes of this struct as the program knows it. */
  size_t size;
  /**
   * How long connecting may take in nanoseconds, waiting for a receiver or a domain of another user that is not there yet
   * included; default 10 s.
   */
  uint64_t connect_timeout_ns;
  /**
   * Name of the instructions that messages are stored with, as `beeline doctor` lists them. Default: what the environment
   * variable BEELINE_STORE_KERNEL names, else the fastest for `traffic`; the first sender on a machine times them, which takes
   * some milliseconds and two cores, and keeps the result in the user's cache folder.
   */
  const char *store_kernel;
  /** enum beeline_window_traffic. */
  uint32_t traffic;
  /** enum beeline_wait_policy, for functions that wait for room. */
  uint32_t wait;
  /** enum beeline_window_flags, combined. */
  uint32_t flags;
  /** enum beeline_window_fences. */
  uint32_t fences;
  /** What lets this process in where no list has its user; connecting uses it up (beeline_admission.h). */
  const beeline_token *token;
} beeline_window_sender_options;

/** Options that are all defaults. */
#define BEELINE_WINDOW_SENDER_OPTIONS_INIT {sizeof(beeline_window_sender_options), 0, NULL, 0, 0, 0, 0, NULL}

/**
 * Becomes the sender of the window that a receiver offers under a name.
 *
 * @param options NULL: defaults
 * @param sender  where the handle is put; NULL is put there on failure
 * @return OK, INVALID, REFUSED (nobody offered the name in time, it has a sender, or its owner refuses)
 *
 * Blocks until connected, at most connect_timeout_ns; sleeps while nobody offers the name, or the domain of another user is
 * not there yet.
 */
int beeline_window_sender_connect(const beeline_domain *domain, const char *name,
                                  const beeline_window_sender_options *options, beeline_window_sender **sender);

/**
 * Closes a sender. What was sent stays for the receiver; what is open is discarded.
 *
 * @return OK, or WRONG_THREAD: then it is not closed
 */
int beeline_window_sender_close(beeline_window_sender **sender);

/** Gives a sender up, so that another thread may use it. @return OK, INVALID, WRONG_THREAD */
int beeline_window_sender_release(const beeline_window_sender *sender);

/**
 * Whether the receiver's process lives. Costs one load: the kernel has told of its end, or not yet.
 *
 * @return OK, RECEIVER_GONE, OPEN, INVALID, WRONG_THREAD
 */
int beeline_window_sender_receiver(const beeline_window_sender *sender);

/** Bytes of the longest message of this window; 0 if there is no such sender. */
size_t beeline_window_sender_max_length(const beeline_window_sender *sender);

/**
 * Sends a message if there is room. Never waits, never enters the kernel but to wake a receiver that sleeps.
 *
 * @param message bytes of the message; may be NULL if length is 0
 * @return OK; FULL: nothing was sent; TOO_LONG; RECEIVER_GONE: there is no room, and never will be; RECEIVER_FAULTY; OPEN,
 *         INVALID, WRONG_THREAD
 *
 * OK says that it is stored. Whether it was received, beeline_window_flush() tells.
 */
int beeline_window_try_send(const beeline_window_sender *sender, const void *message, size_t length);

/**
 * Sends a message, waiting for room as the options say, at most timeout_ns.
 *
 * @return OK; FULL: the time is over, and nothing was sent; TOO_LONG, RECEIVER_GONE, RECEIVER_FAULTY; OPEN, INVALID,
 *         WRONG_THREAD
 */
int beeline_window_send(const beeline_window_sender *sender, const void *message, size_t length, uint64_t timeout_ns);

/** Bytes of a message to send: laid out like struct iovec, to which a pointer can be cast. */
typedef struct beeline_window_bytes {
  /** May be NULL if length is 0. */
  const void *start;
  size_t length;
} beeline_window_bytes;

/**
 * Sends messages in order, as many as there is room for. Never waits. Less work for each message than sending it alone, above
 * all for messages of up to 56 bytes.
 *
 * @param messages may be NULL if count is 0
 * @param sent     where it is put how many were sent
 * @return OK: all were sent, or some and not the next; FULL: none was; TOO_LONG, RECEIVER_GONE, RECEIVER_FAULTY: none was, and
 *         it is the first that could not be; OPEN, INVALID (then none is sent, whichever of them is wrong), WRONG_THREAD
 */
int beeline_window_try_send_all(const beeline_window_sender *sender, const beeline_window_bytes *messages, size_t count,
                                size_t *sent);

/**
 * Sends messages in order, waiting for room as the options say, at most timeout_ns in all.
 *
 * @param sent NULL, or where it is put how many were sent, whatever is returned
 * @return OK: all; FULL: the time is over; TOO_LONG, RECEIVER_GONE, RECEIVER_FAULTY: of the message behind those that were
 *         sent; OPEN, INVALID (none is sent), WRONG_THREAD
 */
int beeline_window_send_all(const beeline_window_sender *sender, const beeline_window_bytes *messages, size_t count,
                            uint64_t timeout_ns, size_t *sent);

/**
 * Waits until a message, a reservation or a batch of `length` bytes finds room, as the options say, at most timeout_ns.
 *
 * @return OK; FULL: the time is over; TOO_LONG, RECEIVER_GONE, RECEIVER_FAULTY; OPEN, INVALID, WRONG_THREAD
 */
int beeline_window_wait_for_room(const beeline_window_sender *sender, size_t length, uint64_t timeout_ns);

/**
 * Waits until everything that was sent was received, as the options say, at most timeout_ns. Not needed before a close: what
 * was sent stays.
 *
 * @return OK; FULL: the time is over before; RECEIVER_GONE (what it had not received is lost), RECEIVER_FAULTY; OPEN, INVALID,
 *         WRONG_THREAD
 *
 * A receiver tells of what it has received when it looks for the next message.
 */
int beeline_window_flush(const beeline_window_sender *sender, uint64_t timeout_ns);

/**
 * Opens a message of at most max_length bytes, to be written piece by piece straight into the window; waits for room as the
 * options say, at most timeout_ns. Until beeline_window_commit() or _discard(), the sender does nothing else: OPEN.
 *
 * @return OK; FULL: the time is over; TOO_LONG, RECEIVER_GONE, RECEIVER_FAULTY; OPEN, INVALID, WRONG_THREAD
 */
int beeline_window_reserve(const beeline_window_sender *sender, size_t max_length, uint64_t timeout_ns);

/**
 * Appends bytes to the open message.
 *
 * @return OK; INVALID: there is less room, and none of them was taken; NOT_OPEN, WRONG_THREAD
 */
int beeline_window_write(const beeline_window_sender *sender, const void *bytes, size_t length);

/**
 * Opens a batch of at most max_length bytes: many small messages in few lines, which the receiver gets one by one. Each takes
 * 2 bytes more than it has, rounded up to 8. Waits and excludes as beeline_window_reserve().
 */
int beeline_window_batch(const beeline_window_sender *sender, size_t max_length, uint64_t timeout_ns);

/**
 * Adds a message to the open batch.
 *
 * @return OK; FULL: it has no room in this batch, which stays as it was: commit it, and open another; TOO_LONG: no batch of
 *         this size can hold it; NOT_OPEN, INVALID, WRONG_THREAD
 */
int beeline_window_push(const beeline_window_sender *sender, const void *message, size_t length);

/** Sends the open message with what was written, or the open batch. @return OK, NOT_OPEN, INVALID, WRONG_THREAD */
int beeline_window_commit(const beeline_window_sender *sender);

/** Gives up the open message or batch: the receiver sees nothing of it. @return OK, NOT_OPEN, INVALID, WRONG_THREAD */
int beeline_window_discard(const beeline_window_sender *sender);

#ifdef __cplusplus
}
#endif

#endif /* BEELINE_WINDOW_H */

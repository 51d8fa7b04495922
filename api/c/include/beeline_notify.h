/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file beeline_notify.h
 * Notifications: a notifier tells its subscribers something unasked, with descriptors if it likes, in order with its answers to
 * what they ask. Nothing is lost without a word and nobody waits for anybody: a subscriber that does not take what it is told is
 * said to have no room.
 *
 * A notifier offers a name in a domain; subscribers subscribe to the name. See examples/notifier.c and examples/subscriber.c.
 * Build with `pkg-config --cflags --libs beeline`. beeline.h says what holds for every function: codes, handles, ownership,
 * times. A process has at most 4096 notifiers and 65536 subscriptions at the same time.
 *
 * THREADS. Every function may be called by any thread at any time, by callbacks too. Callbacks run on threads of the library, on
 * which all signals are blocked; they must not jump out, and an exception of C++ that leaves one ends the process.
 *
 * DESCRIPTORS that a program hands over stay the program's: the library duplicates them. Those that come into a program's
 * struct beeline_space are the program's, which closes them; they are closed by exec. Those that a callback is shown are the
 * library's, which closes them when it returns: dup() what is to stay.
 *
 * WHAT COMES is from another process, and is not trusted: check before use.
 */
#ifndef BEELINE_NOTIFY_H
#define BEELINE_NOTIFY_H

#include "beeline.h"

#ifdef __cplusplus
extern "C" {
#endif

enum {
  /** Bytes and descriptors that a notification has at most. */
  BEELINE_MAX_NOTIFICATION_BYTES = 4096,
  BEELINE_MAX_NOTIFICATION_FDS = 4,
  /** Bytes and descriptors that a request or an answer has at most. */
  BEELINE_MAX_ANSWER_BYTES = 65000,
  BEELINE_MAX_ANSWER_FDS = 32
};

/** Tells subscribers things. */
typedef struct beeline_notifier beeline_notifier;
/** A process's subscription to a notifier. */
typedef struct beeline_subscription beeline_subscription;

/** Bytes and descriptors to be handed over. All zero: nothing. */
typedef struct beeline_parcel {
  /** May be NULL if length is 0. */
  const void *bytes;
  size_t length;
  /** May be NULL if fd_count is 0. */
  const int *fds;
  size_t fd_count;
} beeline_parcel;

/** Memory of a program for bytes and descriptors that come. */
typedef struct beeline_space {
  /** May be NULL if capacity is 0. */
  void *bytes;
  size_t capacity;
  /** Bytes that have come; with NO_SPACE, how many there are. */
  size_t length;
  /** May be NULL if fd_capacity is 0. */
  int *fds;
  size_t fd_capacity;
  /** Descriptors that have come; with NO_SPACE, how many there are. */
  size_t fd_count;
} beeline_space;

/* --------------------------------------------------------------- notifiers */

/** What a notifier is like. Begin with BEELINE_NOTIFIER_OPTIONS_INIT; a field that is 0 or NULL has its default. */
typedef struct beeline_notifier_options {
  /** Bytes of this struct as the program knows it. */
  size_t size;
  /** Subscribers at the same time; default 1024. One process may have all but a sixteenth of them, another user half. */
  size_t max_subscribers;
  /** Users besides this one who may subscribe, by beeline_domain_open_foreign(); may be NULL if the count is 0. */
  const uint32_t *allowed_uids;
  /** How many. */
  size_t allowed_uid_count;
  /** Who may subscribe besides, because it shares a connection with this program (beeline_admission.h). */
  const beeline_admissions *admissions;
} beeline_notifier_options;

/** Options that are all defaults. */
#define BEELINE_NOTIFIER_OPTIONS_INIT {sizeof(beeline_notifier_options), 0, NULL, 0, NULL}

/**
 * What answers a subscriber: what it said when it subscribed, and what it asks later. One request at a time, on a thread of the
 * library; it may take its time, and may call every function but the close of its notifier.
 *
 * @param subscriber its number, for beeline_notifier_notify(): what is told before this returns is in front of the answer
 * @param request    bytes and descriptors of the subscriber
 * @param answer     memory of BEELINE_MAX_ANSWER_BYTES and BEELINE_MAX_ANSWER_FDS: fill it, and set length and fd_count.
 *                   Descriptors that are put there stay the program's
 * @return 0: it is answered so; anything else: it is refused, and the bytes of `answer` are the reason, a text
 */
typedef int (*beeline_notifier_answer)(void *context, uint64_t subscriber, const beeline_parcel *request,
                                       beeline_space *answer);

/**
 * Offers notifications under a name.
 *
 * @param options  NULL: defaults
 * @param answer   NULL: who subscribes is answered nothing, and who asks for something is refused
 * @param context  handed to `answer`
 * @param notifier where the handle is put; NULL is put there on failure
 * @return OK, INVALID, REFUSED (the name is taken, or is none)
 */
int beeline_notifier_offer(const beeline_domain *domain, const char *name, const beeline_notifier_options *options,
                           beeline_notifier_answer answer, void *context, beeline_notifier **notifier);

/**
 * Withdraws the name and ends every subscription. Waits for an `answer` that runs: when it returns, `answer` runs no more. If
 * another thread is in a function of the same notifier, the name is withdrawn when that returns, and who asks before is refused.
 * @return OK, INVALID
 */
int beeline_notifier_close(beeline_notifier **notifier);

/** What happened to a subscriber. */
enum beeline_notifier_event_kind {
  /** It has come. */
  BEELINE_SUBSCRIBER_JOINED = 0,
  /** It has taken notifications since it was last told nothing for want of room. */
  BEELINE_SUBSCRIBER_HAS_ROOM = 1,
  /** It has ended or unsubscribed. Nothing more is heard of it. */
  BEELINE_SUBSCRIBER_LEFT = 2
};

/** An event. */
typedef struct beeline_notifier_event {
  /** Its number; no other subscriber of this process has it, ever. */
  uint64_t subscriber;
  /** enum beeline_notifier_event_kind. */
  uint32_t kind;
  /** Its process; 0 for one outside this pid namespace. */
  uint32_t pid;
  /** Its user, by the kernel's word. */
  uint32_t uid;
  /** 0. */
  uint32_t reserved;
} beeline_notifier_event;

/**
 * Takes the next event, waiting for it for at most timeout_ns. Events wait to be taken, never more than two for each subscriber.
 *
 * @return OK; EMPTY: nothing has happened; INVALID
 */
int beeline_notifier_next_event(const beeline_notifier *notifier, uint64_t timeout_ns, beeline_notifier_event *event);

/**
 * The descriptor of a notifier, for poll and epoll: readable while an event waits. It belongs to the notifier: only wait for it.
 * @return OK, INVALID
 */
int beeline_notifier_descriptor(const beeline_notifier *notifier, int *descriptor);

/**
 * Tells a subscriber something. Never waits for it. One system call.
 *
 * @param told NULL: nothing but that something is told
 * @return OK: it is on its way; FULL: nothing was sent, and it has to take earlier ones first, which
 *         BEELINE_SUBSCRIBER_HAS_ROOM says; SUBSCRIBER_GONE; TOO_LONG: more than a notification may have; INVALID (a descriptor
 *         is none), REFUSED (the kernel refused something)
 */
int beeline_notifier_notify(const beeline_notifier *notifier, uint64_t subscriber, const beeline_parcel *told);

/** Ends a subscription. @return OK, SUBSCRIBER_GONE, INVALID */
int beeline_notifier_disconnect(const beeline_notifier *notifier, uint64_t subscriber);

/* ----------------------------------------------------------- subscriptions */

/**
 * Subscribes to what is offered under a name; waits for it to be offered, for at most timeout_ns.
 *
 * @param request      what the notifier is told first; NULL: nothing
 * @param subscription where the handle is put; NULL is put there on failure
 * @return OK, INVALID, REFUSED (nobody offered the name in time, or its owner refuses: beeline_last_error() has the reason)
 *
 * From here on what is told waits here, 256 notifications at most, whether the program looks or not.
 */
int beeline_subscription_open(const beeline_domain *domain, const char *name, const beeline_parcel *request,
                              uint64_t timeout_ns, beeline_subscription **subscription);

/**
 * Subscribes as beeline_subscription_open() does, to the process with which `token` was exchanged, which lets this one in though no
 * list has its user (beeline_admission.h). Uses the token up.
 */
int beeline_subscription_open_proving(const beeline_domain *domain, const char *name, const beeline_token *token,
                                      const beeline_parcel *request, uint64_t timeout_ns,
                                      beeline_subscription **subscription);

/**
 * Unsubscribes, and ends the thread of a callback. The close waits for the callback that is running, unless the callback itself
 * closes; it is not called again. Threads that wait in another function of the subscription are told that it has ended,
 * and the close returns when they have left it.
 * @return OK, INVALID; BUSY (called by what interrupts a function of a subscription or a segment in this thread, as a handler of
 *         a signal does), REFUSED (the kernel refuses membarrier, which it granted before): then it is not closed
 */
int beeline_subscription_close(beeline_subscription **subscription);

/**
 * Takes what the notifier answered first.
 *
 * @return OK; EMPTY: it was taken before; NO_SPACE: there is no room for all of it, and it stays; INVALID
 */
int beeline_subscription_first_answer(const beeline_subscription *subscription, beeline_space *answer);

/**
 * Takes the next notification, waiting for it for at most timeout_ns.
 *
 * @param told BEELINE_MAX_NOTIFICATION_BYTES and _FDS always have room
 * @return OK; EMPTY: none came; NO_SPACE: there is no room for all of it, and it stays the next of this function, while neither
 *         the descriptor nor a callback tells of it; NOTIFIER_GONE: there is none and none will come; CUT_OFF: as
 *         NOTIFIER_GONE, and the notifier has ended before all that it told had left; INVALID, REFUSED (the notifier is
 *         faulty, or the library's descriptor was closed)
 *
 * After an end everything that was told before it is taken first.
 */
int beeline_subscription_next(const beeline_subscription *subscription, uint64_t timeout_ns, beeline_space *told);

/**
 * The descriptor of a subscription, for poll and epoll: readable while a notification waits, and at the end. It belongs to the
 * subscription: only wait for it. @return OK, INVALID
 */
int beeline_subscription_descriptor(const beeline_subscription *subscription, int *descriptor);

/**
 * Asks the notifier for something and waits for its answer, for at most timeout_ns. What it was told before it answered is there
 * to be taken when this returns. Calls of several threads follow each other.
 *
 * @param request NULL: nothing
 * @param answer  BEELINE_MAX_ANSWER_BYTES and _FDS always have room
 * @return OK; NO_SPACE: there is no room for all of the answer, which is dropped; REFUSED (the notifier refused, has ended, or
 *         did not answer in time), INVALID
 */
int beeline_subscription_call(const beeline_subscription *subscription, const beeline_parcel *request,
                              uint64_t timeout_ns, beeline_space *answer);

/**
 * What a thread of the library calls for each notification, with OK, and at last with the code that beeline_subscription_next()
 * would give, and NULL. `told` means something until it returns. It may call every function.
 */
typedef void (*beeline_subscription_told)(void *context, int status, const beeline_parcel *told);

/**
 * Starts a thread that gives notifications to a callback, one at a time and in order, until the subscription is closed. A
 * subscription has one at most.
 *
 * @return OK, INVALID (there is one, or `told` is NULL), REFUSED (the process is out of threads)
 */
int beeline_subscription_deliver_to(const beeline_subscription *subscription, beeline_subscription_told told,
                                    void *context);

#ifdef __cplusplus
}
#endif

#endif /* BEELINE_NOTIFY_H */

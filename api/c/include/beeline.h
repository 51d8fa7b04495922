/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file beeline.h
 * What programs that use Beeline by C or C++ have in common: domains, codes, errors. Messages are in beeline_window.h, byte
 * streams in beeline_bytes.h, thousands of windows in beeline_arena.h, notifications in beeline_notify.h, mapped memory in
 * beeline_segment.h, calls in beeline_rpc.h, programs of different users that no list names in beeline_admission.h; one library has
 * all of it. Build with `pkg-config --cflags --libs beeline`.
 *
 * CODES. Functions that give an int give 0 or a positive code when they did what was asked, a negative one when not;
 * enum beeline_status has them all, but for those of beeline_rpc.h, which has a list of its own. beeline_last_error() then
 * says what went wrong, where, and what to do. NULL where something is needed, lengths that cannot be, texts that are not
 * UTF-8, a handle that was closed (through whatever copy), that is of another kind or that never was one, use of a handle
 * from the wrong thread or from inside a callback of its own are codes too. What is not caught, as in any C library: a
 * pointer to memory that is not there.
 *
 * HANDLES have the type of a pointer and are numbers: they are not followed, and none is given twice.
 *
 * OWNERSHIP. Every _open, _offer and _connect has its _close, which takes the address of the pointer and makes it NULL;
 * closing NULL does nothing. Order of closing does not matter. Bytes that are handed over are read during the call only.
 * Texts that the library gives belong to it.
 *
 * TIMES are nanoseconds; BEELINE_NEVER is without end.
 */
#ifndef BEELINE_H
#define BEELINE_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A time without end. */
#define BEELINE_NEVER UINT64_MAX

/** What functions give. No value is used twice, and none changes its meaning. */
enum beeline_status {
  /* It was done. */
  BEELINE_OK = 0,
  /** There is no room in the window now, and nothing was sent; of beeline_window_flush(): not everything is taken yet. */
  BEELINE_FULL = 1,
  /** Nothing is there yet. */
  BEELINE_EMPTY = 2,
  /** The byte stream has ended, and all of it was read. */
  BEELINE_END = 3,

  /* The message, or the other side. */
  /** The message can never fit: the window is too small for it. */
  BEELINE_TOO_LONG = -30,
  /** The sender has ended; everything it completed was received. Receive again to wait for the next sender. */
  BEELINE_SENDER_GONE = -31,
  /** The sender has ended in the middle of a message; everything in front of it was received. Go on as after SENDER_GONE. */
  BEELINE_TORN = -32,
  /** What the sender stored is no message. Its window is given up; the next sender gets a fresh one. */
  BEELINE_SENDER_FAULTY = -33,
  /** The receiver has ended; what it had not received is lost. Close the sender, and connect again. */
  BEELINE_RECEIVER_GONE = -34,
  /** The receiver wrote what no sound one writes. Nothing more is stored into its window. */
  BEELINE_RECEIVER_FAULTY = -35,
  /** The byte stream was shut down by this side before. */
  BEELINE_SHUT_DOWN = -36,
  /** The subscriber has ended or unsubscribed. */
  BEELINE_SUBSCRIBER_GONE = -37,
  /** The notifier has ended, or the subscription was closed; everything that was told was taken. */
  BEELINE_NOTIFIER_GONE = -38,
  /** The notifier has ended before all that it told had left: some of it is lost. */
  BEELINE_CUT_OFF = -39,

  /* The program is wrong. */
  /** An argument is not what it must be. */
  BEELINE_INVALID = -40,
  /** The handle belongs to another thread. */
  BEELINE_WRONG_THREAD = -41,
  /** The handle is in use further up in this thread: its callback called, or what interrupted it. */
  BEELINE_BUSY = -42,
  /** No message is held: the callback has returned, or the receiver was used since. */
  BEELINE_NO_MESSAGE = -47,
  /** What comes next is longer than the memory that was given for it. It stays the next. */
  BEELINE_NO_SPACE = -48,
  /** A reservation or a batch is open in the sender: commit or discard it first. */
  BEELINE_OPEN = -49,
  /** No reservation, or no batch, is open in the sender. */
  BEELINE_NOT_OPEN = -50,
  /** Memory of the segment is gone: its file has become shorter. What it gave is worth nothing. */
  BEELINE_LOST = -51,

  /* The system or the other side refuses. */
  /** No domain, no connection, no name: beeline_last_error() says why. */
  BEELINE_REFUSED = -60,
  /** The other side of the connection sends something else than a token. All of it is still there to be read. */
  BEELINE_NO_TOKEN = -61,
  /** A defect in the library: please report it with what is on standard error. */
  BEELINE_INTERNAL = -99
};

/** How a side waits when it waits. */
enum beeline_wait_policy {
  /** Spins for some tens of microseconds, then sleeps until it is woken. */
  BEELINE_WAIT_SLEEP = 0,
  /** Spins: the lowest latency, one core used up. */
  BEELINE_WAIT_SPIN = 1
};

/**
 * A group of processes that can find each other. Any thread may use it at any time; a process has at most 4096. It is a
 * beeline_rpc_domain too: every function that takes either takes a domain that either header's functions opened.
 */
typedef struct beeline_rpc_domain beeline_domain;

/** Whom offers let in besides the users on their lists (beeline_admission.h). */
typedef struct beeline_admissions beeline_admissions;
/** What lets this process in, once, where no list has its user (beeline_admission.h). */
typedef struct beeline_token beeline_token;

/** What a status means, in a phrase. Never NULL; the text is there for ever. */
const char *beeline_status_text(int status);

/**
 * What went wrong last in this thread: which function, why, and what to do. Never NULL; empty if nothing has. The text is
 * there until the next function of this library fails in this thread, or the thread ends.
 */
const char *beeline_last_error(void);

/** Version of the library, as "major.minor.patch". */
const char *beeline_version(void);

/**
 * Opens a domain of this user, making its folder if it is not there.
 *
 * @param name   [a-z0-9][a-z0-9._-]{0,47}; "default" is what the beeline program uses
 * @param root   folder of the user's domains, or "@net" for one of this network namespace, which needs no folder; NULL: what
 *               BEELINE_ROOT names, or /tmp/beeline-<uid>
 * @param domain where the handle is put; NULL is put there on failure
 * @return OK, INVALID, REFUSED
 *
 * Starts one thread that sleeps in the kernel. Nothing may be used in the child of a fork that was opened before it.
 */
int beeline_domain_open(const char *name, const char *root, beeline_domain **domain);

/**
 * Opens the domain of another user, to connect to what they offer to this one (allowed_uids or admissions of the options). Nothing
 * can be offered in it.
 *
 * @param root      folder of the owner's domains; NULL: what BEELINE_ROOT names, or /tmp/beeline-<owner_uid>
 * @param owner_uid whose domain it must be: a folder or an offer of anybody else is refused
 * @return OK, INVALID, REFUSED (a folder is not the owner's, or is one that others may change)
 *
 * The owner need not have made the domain, nor opened it to other users: functions that connect wait for both.
 */
int beeline_domain_open_foreign(const char *name, const char *root, uint32_t owner_uid, beeline_domain **domain);

/** Closes a domain. What was offered and connected in it lives on. @return OK, INVALID */
int beeline_domain_close(beeline_domain **domain);

#ifdef __cplusplus
}
#endif

#endif /* BEELINE_H */

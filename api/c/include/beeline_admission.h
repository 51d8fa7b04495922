/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file beeline_admission.h
 * Programs of different users without a list: an offer lets in who shares a connection with the program that offers. Windows,
 * byte streams, arenas, notifications and calls have it alike: `admissions` in the options of who offers, `token` in those of who
 * connects. See examples/admission.c. Build with `pkg-config --cflags --libs beeline`. beeline.h says what holds for every function.
 *
 * TWO PROOFS.
 * - The kernel's word, for a connection of TCP within one network namespace. beeline_admissions_admit_user() lets in every process of
 *   the user who made or accepted the other socket; nothing is sent for it. The client connects as any other: it opens the domain of
 *   the user that beeline_connection_user() names.
 * - A token, for a stream of any kind, as a pair of sockets. The program that offers calls beeline_admissions_admit_other_side(), the
 *   one at the other end beeline_token_exchange(), and neither sends anything else meanwhile. That lets in the process at the other
 *   end, once: it connects with the token in its options.
 *
 * WHERE THEY MEET. In the network namespace, which is the root "@net" of both domains, or in a folder that both may enter.
 *
 * WHO CAN BE DECEIVED. Whoever can read the connection during an exchange can use the token: on a network, anybody on the way. A
 * descriptor that was passed on to another user, and a process that changed its user since, are not seen by the kernel's word.
 *
 * THREADS. Any thread may use these handles at any time. A process has at most 4096 of each kind.
 */
#ifndef BEELINE_ADMISSION_H
#define BEELINE_ADMISSION_H

#include "beeline.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A proof that offers go by until it is closed. */
typedef struct beeline_admitted beeline_admitted;

/**
 * The user who has the other end of a connection of TCP, by the kernel's word. Changes nothing.
 *
 * @param uid where the uid is put that this process has for the user
 * @return OK; INVALID (also if it is no connection of TCP); REFUSED (the kernel does not say for certain: the other end is in another
 *         network namespace, not accepted yet, closed, or of a user without a uid here)
 */
int beeline_connection_user(int connection, uint32_t *uid);

/* ---------------------------------------------------------- the side that offers */

/** Makes admissions that let nobody in yet. Any number of offers may have them. @return OK, INVALID, REFUSED */
int beeline_admissions_open(beeline_admissions **admissions);

/** Closes the handle. Offers go on, and go by what is admitted. @return OK, INVALID */
int beeline_admissions_close(beeline_admissions **admissions);

/**
 * Lets in processes of the user who has the other end of a connection of TCP, until `admitted` is closed. Who comes before this call is
 * refused.
 *
 * @param admitted where the handle is put; NULL is put there on failure
 * @return OK, INVALID, REFUSED as beeline_connection_user()
 */
int beeline_admissions_admit_user(const beeline_admissions *admissions, int connection, beeline_admitted **admitted);

/**
 * Exchanges a token with the process at the other end of a connection, and lets that process in, once, until `admitted` is closed. The
 * other side has its token only when it is let in, and may connect at once. Sends 56 bytes and reads 56, never more, also over a
 * socket that does not block.
 *
 * @param admitted where the handle is put; NULL is put there on failure
 * @return OK; INVALID (also if it is no stream of a socket); NO_TOKEN: nothing was read, and all that came is there for the program;
 *         REFUSED (no token came in time, or what came is none: close the connection, of which a part may have been read)
 */
int beeline_admissions_admit_other_side(const beeline_admissions *admissions, int connection, uint64_t timeout_ns,
                                        beeline_admitted **admitted);

/** Lets nobody in by this proof any more. Who has connected stays. @return OK, INVALID */
int beeline_admitted_close(beeline_admitted **admitted);

/* --------------------------------------------------------- the side that connects */

/**
 * Exchanges a token with the process at the other end of a connection, which calls beeline_admissions_admit_other_side().
 *
 * @param token where the handle is put; NULL is put there on failure
 * @param uid   NULL, or where the uid is put that the other side says it has: whose domain to open. Connecting compares it with the
 *              kernel's word
 * @return OK, INVALID, NO_TOKEN, REFUSED as beeline_admissions_admit_other_side()
 *
 * A call that connects with it uses it up, also where that fails; the next one is INVALID. One that is INVALID itself may leave it.
 */
int beeline_token_exchange(int connection, uint64_t timeout_ns, beeline_token **token, uint32_t *uid);

/** Closes a token, used or not. @return OK, INVALID */
int beeline_token_close(beeline_token **token);

#ifdef __cplusplus
}
#endif

#endif /* BEELINE_ADMISSION_H */

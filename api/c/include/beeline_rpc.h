/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file beeline_rpc.h
 * Calls between processes of one host in hundreds of nanoseconds: requests and answers go through shared windows, both
 * sides poll, and nothing on the way of a call locks, allocates or enters the kernel.
 *
 * A server offers a name in a domain and answers with a handler; a client connects to the name, starts calls and polls
 * for their ends. See examples/server.c and examples/client.c. Build with `pkg-config --cflags --libs beeline_rpc`.
 *
 * CODES. Functions that give an int give 0 or a positive code when they did what was asked, a negative one when not;
 * enum beeline_rpc_status has them all. beeline_rpc_last_error() then says what went wrong, where, and what to do.
 * NULL where something is needed, lengths that cannot be, texts that are not UTF-8, a handle that was closed (through
 * whatever copy), that is of another kind or that never was one, use of a client from the wrong thread or from inside a
 * handler of the same worker are codes too. What is not caught, as in any C library: a pointer to memory that is not there.
 *
 * One library has calls and messages (beeline_window.h), and a beeline_rpc_domain is a beeline_domain (beeline.h).
 *
 * HANDLES have the type of a pointer and are numbers: they are not followed, and none is given twice. A process has at
 * most 4096 domains, 4096 servers, 16384 clients and 16384 workers at the same time.
 *
 * THREADS. A domain and a server may be used by any thread at any time. A client or a worker belongs to the thread that
 * uses it first, until that thread ends or calls the release function; meanwhile every other thread is given
 * BEELINE_RPC_WRONG_THREAD. A handler runs in the thread that polls its worker. Nothing may be used in the child of a fork
 * that was opened before it.
 *
 * OWNERSHIP. Every _open, _connect, _offer and _worker has its _close, which takes the address of the pointer and makes
 * it NULL; closing NULL does nothing. Order of closing does not matter. Bytes that are handed over are read during the
 * call only. Texts that the library gives belong to it.
 *
 * TIMES are nanoseconds; BEELINE_RPC_NEVER is without end. WORDS are 8 bytes, little-endian, counted from 0; bytes past
 * the end of a request or an answer read as zero. The longest request or answer is BEELINE_RPC_MAX_LENGTH bytes.
 *
 * READINESS. A client and a worker each have a descriptor for poll and epoll, beside sockets, pipes and timers: see
 * beeline_rpc_client_arm() and examples/readiness.c.
 *
 * AT MOST ONCE. No request is sent twice. Where a call ends without an answer, beeline_rpc_may_have_run() tells whether
 * it may have been executed.
 */
#ifndef BEELINE_RPC_H
#define BEELINE_RPC_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A time without end. */
#define BEELINE_RPC_NEVER UINT64_MAX
/** Longest request or answer, in bytes. */
#define BEELINE_RPC_MAX_LENGTH ((size_t)1048576)

/** What functions give. No value is used twice, and none changes its meaning. */
enum beeline_rpc_status {
  /* It was done. */
  BEELINE_RPC_OK = 0,
  /** Nothing was sent: there is no room now. Poll, then try again. */
  BEELINE_RPC_FULL = 1,
  /** Nothing is there yet; or, of cancel, the call has ended already. */
  BEELINE_RPC_EMPTY = 2,

  /* A call ended without an answer. */
  /** The handler ran and failed: completion.code, and a detail that can be read like an answer. */
  BEELINE_RPC_FAILED = -1,
  /** The server has no such method. Not executed. */
  BEELINE_RPC_UNKNOWN_METHOD = -2,
  /** The deadline was past when the request's turn came. Not executed. */
  BEELINE_RPC_DEADLINE_PASSED = -3,
  /** No answer came before the deadline. It may have been executed, or may be yet. */
  BEELINE_RPC_TIMED_OUT = -4,
  /** beeline_rpc_cancel(). It may have been executed, or may be yet. */
  BEELINE_RPC_CANCELLED = -5,
  /** The server takes no more work now. Not executed: try again later. */
  BEELINE_RPC_OVERLOADED = -6,
  /** The request or its answer is longer than the server allows. */
  BEELINE_RPC_TOO_LONG = -7,
  /** The handler gave up, or returned without an answer. It may have been executed in part. */
  BEELINE_RPC_CRASHED = -8,
  /** The server went while the call was outstanding. It may have been executed. */
  BEELINE_RPC_SERVER_GONE = -9,
  /** The server went before the request had been sent whole. Not executed. */
  BEELINE_RPC_SERVER_GONE_UNSENT = -10,

  /* A call was not begun. */
  /** There is no server now; it is looked for whenever the client is polled. */
  BEELINE_RPC_NOT_CONNECTED = -20,
  /** There was no room for the request before its deadline. */
  BEELINE_RPC_NO_ROOM = -21,
  /** Of beeline_rpc_call(): calls are outstanding whose answers it would have to drop. */
  BEELINE_RPC_OUTSTANDING = -22,

  /* The program is wrong. */
  /** An argument is not what it must be. */
  BEELINE_RPC_INVALID = -40,
  /** The handle belongs to another thread. */
  BEELINE_RPC_WRONG_THREAD = -41,
  /** The handle is in use further up in this thread: its handler called. */
  BEELINE_RPC_BUSY = -42,
  /** No answer is held. */
  BEELINE_RPC_NO_ANSWER = -43,
  /** The handler of this request has returned. */
  BEELINE_RPC_NO_REQUEST = -44,
  /** The request is answered already, or an answer is, or is not, being written. */
  BEELINE_RPC_ANSWERED = -45,
  /** Of beeline_rpc_call(): the answer is longer than the memory for it. */
  BEELINE_RPC_TRUNCATED = -46,

  /* The system or the other side refuses. */
  /** No domain, no connection, no name: beeline_rpc_last_error() says why. */
  BEELINE_RPC_REFUSED = -60,
  /** A defect in the library: please report it with what is on standard error. */
  BEELINE_RPC_INTERNAL = -99
};

/** A group of processes that can find each other. */
typedef struct beeline_rpc_domain beeline_rpc_domain;
/** A client of one server. */
typedef struct beeline_rpc_client beeline_rpc_client;
/** A name under which calls are answered. */
typedef struct beeline_rpc_server beeline_rpc_server;
/** One thread's share of a server. */
typedef struct beeline_rpc_worker beeline_rpc_worker;
/** A request in a handler's hands, and the reply to it. */
typedef struct beeline_rpc_request beeline_rpc_request;

/** What a status means, in a phrase. Never NULL; the text is there for ever. */
const char *beeline_rpc_status_text(int status);

/** 0 when a call that ended with this status, or was not begun, was certainly not executed; else 1. */
int beeline_rpc_may_have_run(int status);

/**
 * What went wrong last in this thread: which function, why, and what to do. Never NULL; empty if nothing has. The text is
 * there until the next function of this library fails in this thread, or the thread ends.
 */
const char *beeline_rpc_last_error(void);

/** Version of the library, as "major.minor.patch". */
const char *beeline_rpc_version(void);

/* ---------------------------------------------------------------- domains */

/**
 * Opens a domain of this user, making its folder if it is not there.
 *
 * @param name   [a-z0-9][a-z0-9._-]{0,47}; "default" is what the beeline program uses
 * @param root   folder of the user's domains; NULL: what BEELINE_ROOT names, or /tmp/beeline-<uid>
 * @param domain where the handle is put; NULL is put there on failure
 * @return OK, INVALID, REFUSED
 *
 * Starts one thread that sleeps in the kernel.
 */
int beeline_rpc_domain_open(const char *name, const char *root, beeline_rpc_domain **domain);

/**
 * Opens the domain of another user, to connect to servers of theirs that allow this one (allowed_uids of the server's
 * options). Nothing can be offered in it.
 *
 * @param root      folder of the owner's domains; NULL: what BEELINE_ROOT names, or /tmp/beeline-<owner_uid>
 * @param owner_uid whose domain it must be: a folder or a server of anybody else is refused
 * @return OK, INVALID, REFUSED (a folder is not the owner's, or is one that others may change)
 *
 * The owner need not have made the domain, nor opened it to other users: beeline_rpc_client_connect() waits for both.
 */
int beeline_rpc_domain_open_foreign(const char *name, const char *root, uint32_t owner_uid, beeline_rpc_domain **domain);

/** Closes a domain. Clients and servers made in it live on. @return OK, INVALID */
int beeline_rpc_domain_close(beeline_rpc_domain **domain);

/* ---------------------------------------------------------------- clients */

/** How a side waits when it waits. */
enum beeline_rpc_wait_policy {
  /** Spins for some tens of microseconds, then sleeps until it is woken. */
  BEELINE_RPC_WAIT_SLEEP = 0,
  /** Spins: the lowest latency, one core used up. */
  BEELINE_RPC_WAIT_SPIN = 1
};

/** What a client is like. Begin with BEELINE_RPC_CLIENT_OPTIONS_INIT; a field that is 0 or NULL has its default. */
typedef struct beeline_rpc_client_options {
  /** Bytes of this struct as the program knows it. */
  size_t size;
  /** Calls that may be outstanding, a power of two up to 32768; default 1024. */
  uint32_t max_outstanding;
  /** Lines (64 bytes) of each reply window, a power of two from 16 to 131072; default 512. */
  uint32_t reply_lines;
  /**
   * How long connecting may take in nanoseconds, waiting for a server or a domain of another user that is not there yet
   * included; default 10 s.
   */
  uint64_t connect_timeout_ns;
  /** Name of the instructions that requests are stored with, as `beeline doctor` lists them; default "cached". */
  const char *store_kernel;
  /** enum beeline_rpc_wait_policy, for beeline_rpc_wait() and beeline_rpc_call(). */
  uint32_t wait;
  /** 0. */
  uint32_t reserved;
  /**
   * What lets this process in where no list has its user; connecting uses it up (beeline_admission.h). A client that has shown one
   * does not find its server again.
   */
  const struct beeline_token *token;
} beeline_rpc_client_options;

/** Options that are all defaults. */
#define BEELINE_RPC_CLIENT_OPTIONS_INIT {sizeof(beeline_rpc_client_options), 0, 0, 0, NULL, 0, 0, NULL}

/**
 * Connects to the server that offers a name. A server that goes and comes back is found again by polls and calls.
 *
 * @param options NULL: defaults
 * @param client  where the handle is put; NULL is put there on failure
 * @return OK, INVALID, REFUSED (nobody offered the name in time, or its owner refuses)
 *
 * Blocks until connected, at most connect_timeout_ns; sleeps while nobody offers the name, or the domain of another user is not
 * there yet.
 */
int beeline_rpc_client_connect(const beeline_rpc_domain *domain, const char *name,
                               const beeline_rpc_client_options *options, beeline_rpc_client **client);

/**
 * Closes a client. Outstanding calls are abandoned: they may be executed.
 *
 * @return OK, or WRONG_THREAD: then it is not closed
 */
int beeline_rpc_client_close(beeline_rpc_client **client);

/** Gives a client up, so that another thread may use it. @return OK, WRONG_THREAD, INVALID */
int beeline_rpc_client_release(const beeline_rpc_client *client);

/**
 * Whether there is a server now.
 *
 * @param server_pid NULL, or where its process id is put; 0 for a process outside this pid namespace (another container)
 * @return OK, NOT_CONNECTED (beeline_rpc_last_error() says how it was lost), INVALID, WRONG_THREAD
 *
 * Lets go of a held answer.
 */
int beeline_rpc_client_server(const beeline_rpc_client *client, uint32_t *server_pid);

/**
 * Begins a call. Never waits. A request that is longer than a quarter of the server's window is copied, and sent as there
 * is room by this and later polls; until it has left, no other call is begun.
 *
 * @param method     what is asked for; client and server agree on it
 * @param request    bytes of the request; may be NULL if length is 0
 * @param length     at most BEELINE_RPC_MAX_LENGTH
 * @param timeout_ns after which the call ends with TIMED_OUT, and a server that has not begun it does not;
 *                   BEELINE_RPC_NEVER: none, which is faster by the time of reading a clock
 * @param call       NULL, or where the number of the call is put: never 0, never used twice by one client
 * @return OK; FULL: nothing was sent; INVALID, NOT_CONNECTED, WRONG_THREAD
 *
 * Every call that was begun ends exactly once, in beeline_rpc_poll(). Lets go of a held answer.
 */
int beeline_rpc_start(const beeline_rpc_client *client, uint16_t method, const void *request, size_t length,
                      uint64_t timeout_ns, uint64_t *call);

/** How a call ended. */
typedef struct beeline_rpc_completion {
  /** The number that beeline_rpc_start() gave. */
  uint64_t call;
  /** Bytes of the answer, or of the detail of a failure. */
  uint64_t length;
  /** OK, or FAILED to SERVER_GONE_UNSENT of enum beeline_rpc_status. */
  int32_t status;
  /** A number below max_outstanding that no other outstanding call has, for tables of the program. */
  uint32_t slot;
  /** The handler's code, if status is FAILED. */
  uint32_t code;
  uint32_t reserved;
} beeline_rpc_completion;

/**
 * The end of a call, if one has ended; in the order in which they come about. Never waits.
 *
 * @return OK: *completion is filled, and its answer held; EMPTY: nothing has ended; INVALID, WRONG_THREAD
 *
 * The answer is read with the beeline_rpc_answer_ functions where it lies in the window. It is held until the next use of
 * this client by any other function; its lines of the window go back to the server then.
 */
int beeline_rpc_poll(const beeline_rpc_client *client, beeline_rpc_completion *completion);

/**
 * Waits, as the options say, until a poll may find something.
 *
 * @return OK: poll; EMPTY: the time is over; INVALID (no call is outstanding and the wait would be without end),
 *         WRONG_THREAD
 *
 * Lets go of a held answer.
 */
int beeline_rpc_wait(const beeline_rpc_client *client, uint64_t timeout_ns);

/**
 * The descriptor of a client, for poll, epoll and whatever runs on them: readable whenever beeline_rpc_poll() may find
 * something. It is made by the first call.
 *
 * @param descriptor where its number is put; -1 is put there on failure
 * @return OK, INVALID, WRONG_THREAD, REFUSED (the process is out of descriptors)
 *
 * It belongs to the client, whose close closes it: only wait for it, in any thread; do not read, write or close it. Before
 * each wait call beeline_rpc_client_arm().
 */
int beeline_rpc_client_descriptor(const beeline_rpc_client *client, int *descriptor);

/**
 * Makes the descriptor unreadable if nothing is there, until something may be. A descriptor that is not armed is readable:
 * a program that forgets it spins and misses nothing. Level and edge triggered sets both do.
 *
 * @param at_most_ns where it is put how long the wait may last, in nanoseconds: 0 with OK; BEELINE_RPC_NEVER; or less, when
 *                   something is due then that nobody signals, as a deadline is: arm again after it at the latest
 * @return OK: poll first, the descriptor is readable; EMPTY: wait; INVALID, WRONG_THREAD, REFUSED (the process is out of
 *         descriptors)
 *
 * A wake-up may turn out to be for nothing: poll until EMPTY, and arm again. Takes some microseconds. Lets go of a held
 * answer.
 */
int beeline_rpc_client_arm(const beeline_rpc_client *client, uint64_t *at_most_ns);

/**
 * Makes the descriptor readable, and spares the server the wake-up: for a program that turns to something else instead of
 * waiting. Not needed after a wait, nor before a close. Lets go of a held answer.
 *
 * @return OK, INVALID, WRONG_THREAD
 */
int beeline_rpc_client_disarm(const beeline_rpc_client *client);

/**
 * Abandons a call: it ends with CANCELLED in a later poll, and a server that has not begun it does not.
 *
 * @return OK; EMPTY: it has ended already; INVALID, WRONG_THREAD
 *
 * Takes time with the number of outstanding calls. Lets go of a held answer.
 */
int beeline_rpc_cancel(const beeline_rpc_client *client, uint64_t call);

/**
 * Makes one call and waits for its end.
 *
 * @param answer        memory for the answer; may be NULL if capacity is 0
 * @param answer_length NULL, or where the answer's length is put
 * @param timeout_ns    as for beeline_rpc_start(); also how long there may be no room
 * @return OK; a status of a call that ended without an answer; TRUNCATED: capacity bytes were copied; NO_ROOM,
 *         OUTSTANDING (poll for the other calls first), NOT_CONNECTED, INVALID, WRONG_THREAD
 *
 * The answer, or the detail of a failure, is held besides, as after a poll; here it is a copy.
 */
int beeline_rpc_call(const beeline_rpc_client *client, uint16_t method, const void *request, size_t length,
                     void *answer, size_t capacity, size_t *answer_length, uint64_t timeout_ns);

/** Bytes of the held answer; 0 also if none is held. */
size_t beeline_rpc_answer_length(const beeline_rpc_client *client);

/** Word `index` of the held answer; 0 past its end, and if none is held. */
uint64_t beeline_rpc_answer_word(const beeline_rpc_client *client, size_t index);

/** Copies the held answer from word `first_word` on, as much as fits; bytes copied, 0 also if none is held. */
size_t beeline_rpc_answer_copy(const beeline_rpc_client *client, size_t first_word, void *out, size_t capacity);

/** Lets go of the held answer before the next use of the client does. @return OK, INVALID, WRONG_THREAD */
int beeline_rpc_answer_release(const beeline_rpc_client *client);

/* ---------------------------------------------------------------- servers */

/** What a server is like. Begin with BEELINE_RPC_SERVER_OPTIONS_INIT; a field that is 0 or NULL has its default. */
typedef struct beeline_rpc_server_options {
  /** Bytes of this struct as the program knows it. */
  size_t size;
  /** Threads that share every client's requests, 1 to 64; default 1. */
  uint32_t workers;
  /** Lines (64 bytes) of each client's request window, a power of two from 16 to 131072; default 512. */
  uint32_t request_lines;
  /** Clients at the same time; default 1024. */
  uint32_t max_clients;
  /** enum beeline_rpc_wait_policy, for beeline_rpc_worker_run(). */
  uint32_t wait;
  /** Name of the instructions that answers are stored with; default "cached". */
  const char *store_kernel;
  /** Users besides this one who may call, by beeline_rpc_domain_open_foreign(); may be NULL if the count is 0. */
  const uint32_t *allowed_uids;
  /** How many. */
  size_t allowed_uid_count;
  /** Who may call besides, because it shares a connection with this program (beeline_admission.h). */
  const struct beeline_admissions *admissions;
} beeline_rpc_server_options;

/** Options that are all defaults. */
#define BEELINE_RPC_SERVER_OPTIONS_INIT {sizeof(beeline_rpc_server_options), 0, 0, 0, 0, NULL, NULL, 0, NULL}

/**
 * Offers a name. Clients can connect at once; they are answered as soon as a worker is polled.
 *
 * @param options NULL: defaults
 * @param server  where the handle is put; NULL is put there on failure
 * @return OK, INVALID, REFUSED (the name is taken, or is none)
 */
int beeline_rpc_server_offer(const beeline_rpc_domain *domain, const char *name,
                             const beeline_rpc_server_options *options, beeline_rpc_server **server);

/**
 * Takes a worker; each can be taken once. Not all need be: those that are polled share the work.
 *
 * @param index  below the number of workers
 * @param worker where the handle is put; NULL is put there on failure
 * @return OK, INVALID
 */
int beeline_rpc_server_worker(const beeline_rpc_server *server, uint32_t index, beeline_rpc_worker **worker);

/**
 * Has every beeline_rpc_worker_run() of this server return: at once where they are busy or spin, within 100 ms where they
 * sleep. May be called by a signal handler. @return OK, INVALID
 */
int beeline_rpc_server_stop(const beeline_rpc_server *server);

/** Withdraws the name, disconnects every client, and stops workers as beeline_rpc_server_stop(). @return OK, INVALID */
int beeline_rpc_server_close(beeline_rpc_server **server);

/**
 * Answers one request: reads it with the beeline_rpc_request_ functions and uses exactly one of
 * beeline_rpc_reply_send(), _fail(), _overloaded(), _unknown_method(), or _begin(), _write() and _commit(). If it
 * returns without, the client is told CRASHED. `request` means something in this thread, until the handler returns. What
 * it waits for, every client of this thread waits for. It must not jump out, and an exception of C++ that leaves it ends
 * the process.
 */
typedef void (*beeline_rpc_handler)(void *context, beeline_rpc_request *request);

/**
 * Answers what is there, at most 32 requests of each client. Never waits.
 *
 * @param context  handed to the handler
 * @param answered NULL, or where the number of messages taken in is put; 0: nothing was there
 * @return OK, INVALID, WRONG_THREAD, BUSY (called by a handler of this worker)
 */
int beeline_rpc_worker_poll(const beeline_rpc_worker *worker, beeline_rpc_handler handler, void *context,
                            size_t *answered);

/**
 * Polls, and waits as the options say, until the server is stopped or closed.
 *
 * @return OK, INVALID, WRONG_THREAD, BUSY
 */
int beeline_rpc_worker_run(const beeline_rpc_worker *worker, beeline_rpc_handler handler, void *context);

/**
 * Sleeps until a client may have sent something, at most timeout_ns, and an hour. For a thread that polls nothing else.
 *
 * @return OK, INVALID, WRONG_THREAD, BUSY
 */
int beeline_rpc_worker_wait(const beeline_rpc_worker *worker, uint64_t timeout_ns);

/**
 * The descriptor of a worker, for poll, epoll and whatever runs on them: readable whenever beeline_rpc_worker_poll() may
 * find something. It is made by the first call.
 *
 * @param descriptor where its number is put; -1 is put there on failure
 * @return OK, INVALID, WRONG_THREAD, BUSY, REFUSED (the process is out of descriptors)
 *
 * It belongs to the worker, as beeline_rpc_client_descriptor() says. beeline_rpc_server_stop() does not make it readable.
 */
int beeline_rpc_worker_descriptor(const beeline_rpc_worker *worker, int *descriptor);

/**
 * Makes the descriptor unreadable if nothing is there, until something may be, as beeline_rpc_client_arm() does.
 *
 * @param at_most_ns where it is put how long the wait may last, in nanoseconds: 0 with OK, else BEELINE_RPC_NEVER or less
 * @return OK: poll first; EMPTY: wait; INVALID, WRONG_THREAD, BUSY, REFUSED (the process is out of descriptors)
 *
 * Takes some microseconds, and time with the number of clients.
 */
int beeline_rpc_worker_arm(const beeline_rpc_worker *worker, uint64_t *at_most_ns);

/** Makes the descriptor readable, and spares clients the wake-up. @return OK, INVALID, WRONG_THREAD, BUSY */
int beeline_rpc_worker_disarm(const beeline_rpc_worker *worker);

/** Clients that are connected, as this worker's last poll has seen it. @return OK, INVALID, WRONG_THREAD, BUSY */
int beeline_rpc_worker_clients(const beeline_rpc_worker *worker, size_t *clients);

/** Gives a worker up, so that another thread may use it. @return OK, INVALID, WRONG_THREAD, BUSY */
int beeline_rpc_worker_release(const beeline_rpc_worker *worker);

/** Closes a worker. @return OK, or WRONG_THREAD, BUSY: then it is not closed */
int beeline_rpc_worker_close(beeline_rpc_worker **worker);

/* --------------------------------------------- in a handler: the request */

/** What is asked for; 0 also where `request` means nothing any more. */
uint16_t beeline_rpc_request_method(const beeline_rpc_request *request);

/** Bytes of the request. */
size_t beeline_rpc_request_length(const beeline_rpc_request *request);

/**
 * Word `index` of the request; 0 past its end. Each call loads from memory that the client can write: read once, check,
 * use.
 */
uint64_t beeline_rpc_request_word(const beeline_rpc_request *request, size_t index);

/** Copies the request from word `first_word` on, as much as fits; bytes copied. */
size_t beeline_rpc_request_copy(const beeline_rpc_request *request, size_t first_word, void *out, size_t capacity);

/** Nanoseconds until the client stops waiting, 0 when it has; BEELINE_RPC_NEVER if it has set no deadline. */
uint64_t beeline_rpc_request_time_left(const beeline_rpc_request *request);

/** 1 when the client has abandoned the call meanwhile, else 0. */
int beeline_rpc_request_is_cancelled(const beeline_rpc_request *request);

/* ----------------------------------------------- in a handler: the reply */

/**
 * Answers. The bytes are stored into the client's window at once, or copied when there is no room. An answer of more than
 * BEELINE_RPC_MAX_LENGTH bytes becomes TOO_LONG at the client.
 *
 * @return OK, ANSWERED, NO_REQUEST, INVALID, WRONG_THREAD, as for every function of this part
 */
int beeline_rpc_reply_send(const beeline_rpc_request *request, const void *answer, size_t length);

/** Answers that the request failed: FAILED at the client, with a code and a detail that mean something to it. */
int beeline_rpc_reply_fail(const beeline_rpc_request *request, uint16_t code, const void *detail, size_t length);

/** Answers that the server takes no more work now; say so only before anything was done. */
int beeline_rpc_reply_overloaded(const beeline_rpc_request *request);

/** Answers that there is no such method. */
int beeline_rpc_reply_unknown_method(const beeline_rpc_request *request);

/** Opens an answer of at most max_length bytes to be written piece by piece, straight into the client's window. */
int beeline_rpc_reply_begin(const beeline_rpc_request *request, size_t max_length);

/** Appends bytes to an answer that was begun. INVALID when there is less room: none of them was taken. */
int beeline_rpc_reply_write(const beeline_rpc_request *request, const void *bytes, size_t length);

/** Answers with what was written. */
int beeline_rpc_reply_commit(const beeline_rpc_request *request);

#ifdef __cplusplus
}
#endif

#endif /* BEELINE_RPC_H */

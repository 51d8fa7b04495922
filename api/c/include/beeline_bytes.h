/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file beeline_bytes.h
 * A byte stream from one process to another through a window of shared memory, written and read in pieces of any size. Nothing
 * on the way of a byte locks, allocates or enters the kernel.
 *
 * A reader offers a stream under a name in a domain; a writer connects to the name and writes. Two streams make a connection
 * with two directions, each of which ends by itself. See examples/copy.c. Build with `pkg-config --cflags --libs beeline`.
 * beeline.h says what holds for every function: codes, handles, ownership, times. A process has at most 16384 readers and
 * 16384 writers at the same time.
 *
 * END. A writer ends its stream by beeline_bytes_shut_down() or its close; the reader is given END after the last byte. A writer
 * whose process ends without that is SENDER_GONE (or TORN), after every byte that arrived. END and errors stay until
 * beeline_bytes_next_stream(): then the reader reads the stream of the next writer.
 *
 * MESSAGES. A stream is the payloads of a window's messages: a program of beeline_window.h may be at the other end, where a
 * message without bytes is the end.
 *
 * THREADS. A reader or a writer belongs to the thread that uses it first, until that thread ends or calls the release function;
 * meanwhile every other thread is given WRONG_THREAD.
 */
#ifndef BEELINE_BYTES_H
#define BEELINE_BYTES_H

#include "beeline_window.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The end of byte streams that bytes arrive at. */
typedef struct beeline_bytes_reader beeline_bytes_reader;
/** The end of a byte stream that bytes are written at. */
typedef struct beeline_bytes_writer beeline_bytes_writer;

/* ---------------------------------------------------------------- readers */

/**
 * Offers streams under a name. Does not wait for a writer.
 *
 * @param options NULL: defaults; as of beeline_window_receiver_offer(). A stream has `lines` * 64 bytes of room, less 8 for each
 *                piece that is written and what rounding takes
 * @param reader  where the handle is put; NULL is put there on failure
 * @return OK, INVALID, REFUSED (the name is taken, or is none)
 */
int beeline_bytes_reader_offer(const beeline_domain *domain, const char *name,
                               const beeline_window_receiver_options *options, beeline_bytes_reader **reader);

/** Withdraws the name. What was not read is lost. @return OK, or WRONG_THREAD: then it is not closed */
int beeline_bytes_reader_close(beeline_bytes_reader **reader);

/** Gives a reader up, so that another thread may use it. @return OK, INVALID, WRONG_THREAD */
int beeline_bytes_reader_release(const beeline_bytes_reader *reader);

/**
 * Reads bytes that are there, as many as there is memory for. Never waits; enters the kernel only while there is no writer.
 *
 * @param memory   may be NULL if capacity is 0
 * @param count    where it is put how many bytes were read
 * @return OK: some were read, or capacity is 0; EMPTY: none is there; END: the stream has ended, and all of it was read;
 *         SENDER_GONE, TORN, SENDER_FAULTY: none was read; INVALID, WRONG_THREAD
 */
int beeline_bytes_try_read(const beeline_bytes_reader *reader, void *memory, size_t capacity, size_t *count);

/**
 * As beeline_bytes_try_read(), waiting as the options say for a writer and for the first byte, at most timeout_ns.
 *
 * @return as beeline_bytes_try_read(); EMPTY: the time is over
 */
int beeline_bytes_read(const beeline_bytes_reader *reader, void *memory, size_t capacity, uint64_t timeout_ns,
                       size_t *count);

/**
 * Copies bytes from the one on that is `offset` bytes after the next, as many as have arrived and there is memory for, and leaves
 * them to be read. Never waits.
 *
 * @return as beeline_bytes_try_read(); EMPTY: fewer have arrived; END: there will not be more
 */
int beeline_bytes_peek(const beeline_bytes_reader *reader, uint64_t offset, void *memory, size_t capacity,
                       size_t *count);

/**
 * How many bytes can be read without waiting. Looks at each line (64 bytes) that has arrived since it was asked last.
 *
 * @param bytes where the number is put
 * @return OK, INVALID, WRONG_THREAD
 */
int beeline_bytes_queued(const beeline_bytes_reader *reader, uint64_t *bytes);

/**
 * Lets go of the stream, whether it has ended or not: what is read next is of the next writer, which gets a fresh window.
 *
 * @return OK, INVALID, WRONG_THREAD
 */
int beeline_bytes_next_stream(const beeline_bytes_reader *reader);

/**
 * The descriptor of a reader, for poll, epoll and whatever runs on them: readable whenever bytes, an end or the first writer may
 * be there; so always once a stream has ended. It is made by the first call.
 *
 * @param descriptor where its number is put; -1 is put there on failure
 * @return OK, INVALID, WRONG_THREAD, REFUSED (the process is out of descriptors)
 *
 * It belongs to the reader, whose close closes it: only wait for it, in any thread; do not read, write or close it. Before each
 * wait call beeline_bytes_reader_arm().
 */
int beeline_bytes_reader_descriptor(const beeline_bytes_reader *reader, int *descriptor);

/** As beeline_window_receiver_arm(). @return OK: read first; EMPTY: wait; INVALID, WRONG_THREAD, REFUSED */
int beeline_bytes_reader_arm(const beeline_bytes_reader *reader, uint64_t *at_most_ns);

/** As beeline_window_receiver_disarm(). @return OK, INVALID, WRONG_THREAD */
int beeline_bytes_reader_disarm(const beeline_bytes_reader *reader);

/* ---------------------------------------------------------------- writers */

/**
 * Becomes the writer of a stream that a reader offers under a name.
 *
 * @param options NULL: defaults; as of beeline_window_sender_connect()
 * @param writer  where the handle is put; NULL is put there on failure
 * @return OK, INVALID, REFUSED (nobody offered the name in time, it has a writer, or its owner refuses)
 *
 * Blocks until connected, at most connect_timeout_ns.
 */
int beeline_bytes_writer_connect(const beeline_domain *domain, const char *name,
                                 const beeline_window_sender_options *options, beeline_bytes_writer **writer);

/** Ends the stream and closes the writer. What was written stays for the reader. @return OK, or WRONG_THREAD: not closed */
int beeline_bytes_writer_close(beeline_bytes_writer **writer);

/** Gives a writer up, so that another thread may use it. @return OK, INVALID, WRONG_THREAD */
int beeline_bytes_writer_release(const beeline_bytes_writer *writer);

/**
 * Writes as many of the bytes, from the first on, as there is room for. They are with the reader at once. Never waits, never
 * enters the kernel but to wake a reader that sleeps.
 *
 * @param bytes may be NULL if length is 0
 * @param count where it is put how many were written
 * @return OK: some were written, or length is 0; FULL: none; RECEIVER_GONE: there is no room, and never will be;
 *         RECEIVER_FAULTY, SHUT_DOWN; INVALID, WRONG_THREAD
 */
int beeline_bytes_try_write(const beeline_bytes_writer *writer, const void *bytes, size_t length, size_t *count);

/**
 * Writes all of the bytes, waiting for room as the options say, at most timeout_ns.
 *
 * @param count NULL, or where it is put how many were written, whatever is returned
 * @return OK: all; FULL: the time is over; RECEIVER_GONE, RECEIVER_FAULTY, SHUT_DOWN; INVALID, WRONG_THREAD
 */
int beeline_bytes_write(const beeline_bytes_writer *writer, const void *bytes, size_t length, uint64_t timeout_ns,
                        size_t *count);

/**
 * As beeline_bytes_try_write(), but the last bytes may be kept back, to share a message with those of later calls, until a write
 * of another kind, beeline_bytes_send_kept(), or the end. For small writes when more is to come.
 */
int beeline_bytes_write_more(const beeline_bytes_writer *writer, const void *bytes, size_t length, size_t *count);

/** Sends what beeline_bytes_write_more() kept back. Never waits. @return OK, INVALID, WRONG_THREAD */
int beeline_bytes_send_kept(const beeline_bytes_writer *writer);

/**
 * How many bytes beeline_bytes_try_write() would take now.
 *
 * @return OK, RECEIVER_FAULTY, SHUT_DOWN, INVALID, WRONG_THREAD
 */
int beeline_bytes_room(const beeline_bytes_writer *writer, uint64_t *bytes);

/**
 * How many bytes were written that the reader has not read, as far as it has told: never too few. It tells when enough has
 * gathered and when it finds nothing more to read, so what stays is 0 once it has read everything and looked again.
 *
 * @return OK, RECEIVER_FAULTY, INVALID, WRONG_THREAD
 */
int beeline_bytes_unacknowledged(const beeline_bytes_writer *writer, uint64_t *bytes);

/**
 * Sends what was kept back and waits until nothing is unacknowledged, as the options say, at most timeout_ns.
 *
 * @return OK; FULL: the time is over before; RECEIVER_GONE, RECEIVER_FAULTY; INVALID, WRONG_THREAD
 */
int beeline_bytes_wait_acknowledged(const beeline_bytes_writer *writer, uint64_t timeout_ns);

/**
 * Ends the stream: the reader reads what was written and then the end. A stream of the other direction goes on. A second call
 * does nothing. Never waits.
 *
 * @return OK, RECEIVER_FAULTY, INVALID, WRONG_THREAD
 */
int beeline_bytes_shut_down(const beeline_bytes_writer *writer);

/**
 * Whether the reader's process lives. Costs one load.
 *
 * @return OK, RECEIVER_GONE, INVALID, WRONG_THREAD
 */
int beeline_bytes_writer_reader(const beeline_bytes_writer *writer);

#ifdef __cplusplus
}
#endif

#endif /* BEELINE_BYTES_H */

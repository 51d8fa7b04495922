/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What programs share that put bytes into the other side's memory: how a message says that it has arrived, and when a stream of them has.
 *
 * A message of 16 bytes and more ends in a word with the number of the turn, its flag; one of 4 or 8 bytes is that number. The receiver
 * polls the flag and copies the rest out. Both sides count turns. A stream is messages one behind the other until they fill
 * STREAM_BYTES, with no word from the receiver in between, then a flag by itself; the receiver answers with a flag, and looks at the
 * first word of each message in the first turn of a job. A message is made some messages before it is put: a load of more bytes than were
 * just stored at once waits until they are in the cache, which would be the time of every message of 16 bytes and more.
 * A burst is BURST_TRIPS messages, each sent when the answer to the one before it is there, as one trip: the clock is read once for all of
 * them, and nothing is copied out or compared in between.
 */
#include "start.h"

/* Larger than the first-level cache, smaller than the second. */
#define STREAM_BYTES (256u << 10)
#define MESSAGE_BYTES (256u << 10)
#define BURST_TRIPS 100u
/* The flag of a stream, behind the place of the longest message. */
#define FLAG_AT MESSAGE_BYTES
#define REGION_BYTES (MESSAGE_BYTES + 4096u)
#define ECHO_MESSAGE_BYTES MESSAGE_BYTES

static inline void pause_looking(void)
{
#if defined(__x86_64__)
	__builtin_ia32_pause();
#endif
}

/* Bytes of a message before its flag. */
static inline size_t before_flag(size_t bytes)
{
	return bytes < 16 ? 0 : bytes - 8;
}

static inline bool has_flag(const unsigned char *at, size_t bytes, uint64_t turn)
{
	if (bytes == 4)
		return __atomic_load_n((const uint32_t *)at, __ATOMIC_ACQUIRE) == (uint32_t)turn;
	return __atomic_load_n((const uint64_t *)(at + before_flag(bytes)), __ATOMIC_ACQUIRE) == turn;
}

/* Writes the first word of a message of a stream, or as much of it as the message has room for. */
static inline void mark(unsigned char *message, size_t bytes, uint64_t turn, size_t number)
{
	uint64_t first = turn << 20 | number;

	memcpy(message, &first, bytes == 4 ? 4 : 8);
}

/* Messages that are made ahead: as many as fit here, and at least one. */
#define MADE_BYTES 2048u

static inline size_t messages_made(size_t bytes)
{
	return bytes < MADE_BYTES ? MADE_BYTES / bytes : 1;
}

/* Makes the first messages of a stream of `from`, one behind the other. */
static inline void make_messages(unsigned char *messages, const unsigned char *from, size_t bytes, uint64_t turn)
{
	for (size_t i = 0; i < messages_made(bytes); i++) {
		memcpy(messages + i * bytes, from, bytes);
		mark(messages + i * bytes, bytes, turn, i);
	}
}

/* How many messages of a stream there are. */
static size_t stream_messages(size_t bytes)
{
	return STREAM_BYTES / bytes;
}

static void look_at_stream(const unsigned char *region, size_t bytes, uint64_t turn)
{
	for (size_t i = 0; i < stream_messages(bytes); i++) {
		unsigned char first[8];
		mark(first, bytes, turn, i);
		if (memcmp(first, region + i * bytes, bytes == 4 ? 4 : 8) != 0)
			die("message %zu of stream %" PRIu64 " has not arrived", i, turn);
	}
}

static void check_sizes(size_t bytes, bool is_stream)
{
	if ((bytes != 4 && bytes % 8 != 0) || (is_stream && STREAM_BYTES % bytes != 0))
		die("no messages of %zu bytes", bytes);
}

/* Where a side is in its turns. */
struct turns {
	bool is_stream, is_burst;
	uint64_t turn, job_began;
};

static inline void begin_turns(struct turns *turns, size_t bytes)
{
	check_sizes(bytes, turns->is_stream);
	turns->job_began = turns->turn;
}

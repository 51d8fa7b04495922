/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The turns of programs that ask a library to put bytes into the other side's memory: a message and its answer, or a stream (put.h). The
 * flag is the last word of a message, so one put is all of a message of at most a line. A longer one takes two with an order between: no
 * library says in which order a put's bytes arrive, and of a copy by `rep movsb` the last ones may come first.
 *
 * A program defines a `struct rival` with `struct turns turns` and the memory `here`, and then, before it includes this file:
 *
 *   void put(struct rival *, offset, from, bytes)   puts bytes into the other side's memory
 *   void look(struct rival *)                       lets the library make progress
 *   void order_puts(struct rival *)                 what is put later arrives later
 *   void before_first_turn(struct rival *)          of the side that answers
 */
#define LINE_BYTES 64u

static inline void wait_for(struct rival *rival, size_t offset, size_t bytes)
{
	while (!has_flag(rival->here + offset, bytes, rival->turns.turn))
		look(rival);
}

static void put_flag(struct rival *rival, size_t offset)
{
	static uint64_t flag;

	order_puts(rival);
	flag = rival->turns.turn;
	put(rival, offset, &flag, sizeof(flag));
}

/* Puts a message that has its flag. */
static void put_flagged(struct rival *rival, const unsigned char *message, size_t bytes)
{
	if (bytes <= LINE_BYTES) {
		put(rival, 0, message, bytes);
		return;
	}
	put(rival, 0, message, before_flag(bytes));
	put_flag(rival, before_flag(bytes));
}

static void put_message(struct rival *rival, const unsigned char *from, size_t bytes)
{
	static unsigned char message[MESSAGE_BYTES] __attribute__((aligned(64)));

	memcpy(message, from, before_flag(bytes));
	memcpy(message + before_flag(bytes), &rival->turns.turn, bytes - before_flag(bytes));
	put_flagged(rival, message, bytes);
}

static void put_stream(struct rival *rival, const unsigned char *from, size_t bytes)
{
	static unsigned char messages[MESSAGE_BYTES] __attribute__((aligned(64)));
	size_t count = stream_messages(bytes), made = messages_made(bytes), next = 0;

	make_messages(messages, from, bytes, rival->turns.turn);
	for (size_t i = 0; i < count; i++) {
		unsigned char *message = messages + next * bytes;

		put(rival, i * bytes, message, bytes);
		mark(message, bytes, rival->turns.turn, i + made);
		next = next + 1 == made ? 0 : next + 1;
	}
	put_flag(rival, FLAG_AT);
	wait_for(rival, FLAG_AT, 8);
}

static void put_burst(struct rival *rival, const unsigned char *from, size_t bytes)
{
	static unsigned char message[MESSAGE_BYTES] __attribute__((aligned(64)));

	memcpy(message, from, bytes);
	for (unsigned int left = BURST_TRIPS; left > 0; left--) {
		rival->turns.turn++;
		memcpy(message + before_flag(bytes), &rival->turns.turn, bytes - before_flag(bytes));
		put_flagged(rival, message, bytes);
		wait_for(rival, 0, bytes);
	}
}

static void answer_burst(struct rival *rival, size_t bytes)
{
	for (unsigned int left = BURST_TRIPS; left > 0; left--) {
		rival->turns.turn++;
		wait_for(rival, 0, bytes);
		put_flagged(rival, rival->here, bytes);
	}
}

static void trip(struct rival *rival, const unsigned char *request, unsigned char *answer, size_t bytes)
{
	if (rival->turns.is_burst) {
		put_burst(rival, request, bytes);
		memcpy(answer, request, bytes);
		return;
	}
	rival->turns.turn++;
	if (rival->turns.is_stream) {
		put_stream(rival, request, bytes);
		memcpy(answer, request, bytes);
		return;
	}
	put_message(rival, request, bytes);
	wait_for(rival, 0, bytes);
	memcpy(answer, rival->here, before_flag(bytes));
	memcpy(answer + before_flag(bytes), request + before_flag(bytes), bytes - before_flag(bytes));
}

static void answer_one(struct rival *rival, size_t bytes)
{
	before_first_turn(rival);
	if (rival->turns.is_burst) {
		answer_burst(rival, bytes);
		return;
	}
	rival->turns.turn++;
	if (rival->turns.is_stream) {
		wait_for(rival, FLAG_AT, 8);
		if (rival->turns.turn == rival->turns.job_began + 1)
			look_at_stream(rival->here, bytes, rival->turns.turn);
		put_flag(rival, FLAG_AT);
		return;
	}
	wait_for(rival, 0, bytes);
	put_flagged(rival, rival->here, bytes);
}

/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The part of a stream program that is not its ring: two pinned threads, the messages, the sum over what arrived and the
 * clock, as bench/src/peers/spsc.rs and lab/floor have them, so that rings in C and in Rust are measured alike.
 *
 * A ring defines the four items below and then includes this file, last, so that its calls are compiled into the timed loops.
 * Started as `program VARIANT SENDER_CORE RECEIVER_CORE MESSAGES SLOTS CHUNK`; prints `NANOSECONDS SUM`, the sum in hexadecimal.
 * The caller compares the sum with that of what was to be sent.
 *
 *   struct ring                              what both sides share
 *   void open_ring(struct ring *, variant, slots, chunk)  makes it, its memory touched
 *   size_t put(struct ring *, message, count)             sends messages that lie one after the other in `message`, and says
 *                                            how many had room
 *   size_t take(struct ring *, wanted, sum)  adds up to so many messages to the sum, and says how many were there
 *
 * Not here: how a program is built and started, and that the sum is right (bench/src/rivals/rings.rs).
 */

/* Messages that are sent over and over: as many as lab/floor's source has. */
#define SOURCE_MESSAGES 256
/* A side that waits longer than any stream takes ends the program. */
#define LONGEST_SECONDS 120

static struct {
	struct ring ring;
	struct message *source;
	uint64_t messages, chunk, sum;
	struct timespec started, ended;
	pthread_barrier_t ready;
} stream;

/* Memory on whole pages, all of them touched, so that no round pays for the kernel's first look at them. */
static void *touched(size_t bytes)
{
	size_t whole = (bytes + 4095) & ~(size_t)4095;
	void *memory = aligned_alloc(4096, whole);
	if (!memory)
		die("no memory for %zu bytes", bytes);
	return memset(memory, 0, whole);
}

/* As lab/floor's source: messages that differ in every word. They lie there over and over until a chunk that begins anywhere
 * among the first SOURCE_MESSAGES lies in one piece, for rings that take a table of messages. */
static struct message *make_source(size_t chunk)
{
	size_t count = SOURCE_MESSAGES + chunk;
	struct message *source = touched(count * sizeof(*source));
	for (size_t i = 0; i < count; i++)
		for (size_t word = 0; word < 8; word++)
			source[i].words[word] =
				((i % SOURCE_MESSAGES * 8 + word + 1) * UINT64_C(0x9e3779b97f4a7c15)) >> 1;
	return source;
}

static void pin_to(size_t core)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(core, &set);
	int error = pthread_setaffinity_np(pthread_self(), sizeof(set), &set);
	if (error != 0)
		die("cannot pin to core %zu: %s", core, strerror(error));
}

static void *send_all(void *core)
{
	uint64_t messages = stream.messages, chunk = stream.chunk;
	pin_to(*(size_t *)core);
	pthread_barrier_wait(&stream.ready);
	clock_gettime(CLOCK_MONOTONIC, &stream.started);
	for (uint64_t number = 0; number < messages;) {
		uint64_t left = messages - number;
		size_t sent = put(&stream.ring, &stream.source[number % SOURCE_MESSAGES],
				  left < chunk ? left : chunk);
		if (sent == 0)
			relax();
		number += sent;
	}
	return NULL;
}

static void *receive_all(void *core)
{
	uint64_t messages = stream.messages, chunk = stream.chunk, sum = 0;
	pin_to(*(size_t *)core);
	pthread_barrier_wait(&stream.ready);
	for (uint64_t received = 0; received < messages;) {
		uint64_t left = messages - received;
		size_t taken = take(&stream.ring, left < chunk ? left : chunk, &sum);
		if (taken == 0)
			relax();
		received += taken;
	}
	clock_gettime(CLOCK_MONOTONIC, &stream.ended);
	stream.sum = sum;
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t sender, receiver;
	uint64_t numbers[5];

	if (argc != 7)
		die("usage: %s VARIANT SENDER_CORE RECEIVER_CORE MESSAGES SLOTS CHUNK", argv[0]);
	for (int i = 0; i < 5; i++)
		numbers[i] = strtoull(argv[i + 2], NULL, 10);
	size_t sender_core = numbers[0], receiver_core = numbers[1], slots = numbers[3];
	stream.messages = numbers[2];
	stream.chunk = numbers[4];
	stream.source = make_source(stream.chunk);
	open_ring(&stream.ring, argv[1], slots, stream.chunk);
	alarm(LONGEST_SECONDS);
	if (pthread_barrier_init(&stream.ready, NULL, 2) != 0 ||
	    pthread_create(&receiver, NULL, receive_all, &receiver_core) != 0 ||
	    pthread_create(&sender, NULL, send_all, &sender_core) != 0)
		die("cannot start two threads");
	pthread_join(sender, NULL);
	pthread_join(receiver, NULL);
	int64_t nanoseconds = (int64_t)(stream.ended.tv_sec - stream.started.tv_sec) * 1000000000 +
			      (stream.ended.tv_nsec - stream.started.tv_nsec);
	printf("%" PRId64 " %" PRIx64 "\n", nanoseconds, stream.sum);
	return 0;
}

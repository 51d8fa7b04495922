/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * The part of an echo program that is not its rival: the same loop, clock, checks and words on standard input and
 * output as bench/echo (lib.rs there says which words), so that rivals in C and in Rust are measured alike.
 *
 * A rival defines the seven items below and then includes this file, last, so that its calls are compiled into the
 * timed loop. Started as `program VARIANT server CORE` and `program VARIANT client CORE ADDRESS`.
 *
 *   struct rival                             what a side has open
 *   void open_server(struct rival *, variant, address)   opens, and writes where it is found into `address`
 *   void open_client(struct rival *, variant, address)   opens, towards this address
 *   void begin(struct rival *, bytes)        the size of the next messages
 *   void trip(struct rival *, request, answer, bytes)    one request and its whole answer; the timed part. Where the rival
 *                                            defines ECHO_TAKES it gives the ticks to be counted, which need not be all
 *   void answer_one(struct rival *, bytes)   waits for a request and sends its bytes back
 *   void close_side(struct rival *)          gives everything back
 *
 * Not here: which rivals there are and how they are built (bench/src/rivals/).
 */
#ifndef ECHO_ADDRESS_BYTES
#define ECHO_ADDRESS_BYTES 4096
#endif
#ifndef ECHO_MESSAGE_BYTES
#define ECHO_MESSAGE_BYTES 4096
#endif

/* Where the words of the echo go: standard output as this program was given it. What a library writes there of its own
 * accord goes to standard error. */
static FILE *words;

static void keep_output_for_words(void)
{
	int output = dup(STDOUT_FILENO);
	words = output < 0 ? NULL : fdopen(output, "w");
	if (!words || dup2(STDERR_FILENO, STDOUT_FILENO) < 0)
		die("cannot keep standard output: %s", strerror(errno));
}

static uint64_t now_ticks(void)
{
#if defined(__x86_64__)
	uint32_t low, high;
	__asm__ volatile("lfence\n\trdtsc\n\tlfence" : "=a"(low), "=d"(high) : : "memory");
	return (uint64_t)high << 32 | low;
#elif defined(__aarch64__)
	uint64_t ticks;
	__asm__ volatile("isb\n\tmrs %0, cntvct_el0\n\tisb" : "=r"(ticks) : : "memory");
	return ticks;
#else
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
#endif
}

/* Ends a process that still spins when whoever started it is gone: a hang-up of standard input says so. The grace
 * lets a side that is between two jobs end in good order. */
static void *watch_stdin(void *unused)
{
	struct pollfd input = { .fd = STDIN_FILENO, .events = 0 };
	while (poll(&input, 1, -1) < 0 && errno == EINTR)
		;
	sleep(2);
	_exit(3);
	return unused;
}

static void pin(const char *core)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET((size_t)strtoul(core, NULL, 10), &set);
	if (sched_setaffinity(0, sizeof(set), &set) != 0)
		die("cannot pin to core %s: %s", core, strerror(errno));
}

/* As bench/echo fills requests: the trip's number, then a pattern that differs from trip to trip. */
static void fill(unsigned char *request, size_t bytes, uint64_t number)
{
	for (size_t i = 0; i < bytes; i++)
		request[i] = i < 8 ? (unsigned char)(number >> (8 * i)) : (unsigned char)(number + i);
}

static void ask(struct rival *rival, size_t bytes, uint64_t warm_up, uint64_t trips)
{
	static unsigned char request[ECHO_MESSAGE_BYTES], answer[ECHO_MESSAGE_BYTES];
	uint64_t *ticks = calloc(trips, sizeof(*ticks));
	if (!ticks)
		die("no memory for %" PRIu64 " samples", trips);
	for (uint64_t number = 0; number < warm_up + trips; number++) {
		fill(request, bytes, number);
#ifdef ECHO_TAKES
		uint64_t taken = trip(rival, request, answer, bytes);
#else
		uint64_t sent = now_ticks();
		trip(rival, request, answer, bytes);
		uint64_t taken = now_ticks() - sent;
#endif
		if (memcmp(request, answer, bytes) != 0)
			die("answer %" PRIu64 " is not the request", number);
		if (number >= warm_up)
			ticks[number - warm_up] = taken;
	}
	fprintf(words, "ticks %" PRIu64 "\n", trips);
	for (uint64_t i = 0; i < trips; i++) {
		unsigned char word[8];
		for (int byte = 0; byte < 8; byte++)
			word[byte] = (unsigned char)(ticks[i] >> (8 * byte));
		fwrite(word, 1, sizeof(word), words);
	}
	fflush(words);
	free(ticks);
}

static void say(const char *word)
{
	fprintf(words, "%s\n", word);
	fflush(words);
}

int main(int argc, char **argv)
{
	static struct rival rival;
	static char address[ECHO_ADDRESS_BYTES];
	pthread_t watch;
	char line[256];
	bool serves = argc == 4 && strcmp(argv[2], "server") == 0;

	if (!serves && !(argc == 5 && strcmp(argv[2], "client") == 0))
		die("usage: %s VARIANT server CORE | VARIANT client CORE ADDRESS", argv[0]);
	keep_output_for_words();
	pin(argv[3]);
	if (pthread_create(&watch, NULL, watch_stdin, NULL) != 0)
		die("cannot start the thread that watches standard input");
	if (serves)
		open_server(&rival, argv[1], address);
	else
		open_client(&rival, argv[1], argv[4]);
	fprintf(words, "ready%s%s\n", serves ? " " : "", address);
	fflush(words);
	while (fgets(line, sizeof(line), stdin)) {
		size_t bytes;
		uint64_t warm_up, trips;
		if (sscanf(line, "echo %zu %" SCNu64 " %" SCNu64, &bytes, &warm_up, &trips) != 3 ||
		    bytes == 0 || bytes > ECHO_MESSAGE_BYTES)
			die("not a job: %s", line);
		begin(&rival, bytes);
		if (serves) {
			say("serving");
			for (uint64_t left = warm_up + trips; left > 0; left--)
				answer_one(&rival, bytes);
			say("served");
		} else {
			ask(&rival, bytes, warm_up, trips);
		}
	}
	close_side(&rival);
	return 0;
}

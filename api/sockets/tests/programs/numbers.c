/* Numbers: copies, numbers that are used again, streams, ranges, and a close under a receive. */
#include "ground.h"

static int ends[2];
static char got[64];

static void copies(void)
{
	connection(ends);
	int copy = dup(ends[0]);
	int second = fcntl(ends[0], F_DUPFD, 100);
	int third = fcntl(ends[0], F_DUPFD_CLOEXEC, 200);

	printf("copies: %d %d %d, flags %d %d\n", copy > 2, second, third, fcntl(second, F_GETFD), fcntl(third, F_GETFD));
	SAY(dup2(ends[0], 300));
	SAY(dup2(ends[0], ends[0]) == ends[0]);
	SAY(dup2(-1, 300));
	SAY(dup3(ends[0], 301, O_CLOEXEC));
	SAY(dup3(ends[0], ends[0], 0));
	SAY(write(copy, "1", 1));
	SAY(write(ends[0], "2", 1));
	SAY(write(copy, "3", 1));
	SAY(recv(ends[1], got, 3, MSG_WAITALL));
	printf("%.3s\n", got);
	SAY(close(ends[0]));
	SAY(write(copy, "abc", 3));
	SAY(write(301, "def", 3));
	SAY(close(copy));
	SAY(close(second));
	SAY(close(third));
	SAY(close(301));
	SAY(write(300, "g", 1));
	SAY(close(300));
	SAY(recv(ends[1], got, 7, MSG_WAITALL));
	printf("%.7s\n", got);
	SAY(read(ends[1], got, sizeof got));
	SAY(close(ends[1]));
}

/* A number that was a connection is a file's, a pipe's, another connection's. */
static void used_again(void)
{
	int other[2], ways[2];

	connection(ends);
	MUST(pipe(ways));
	SAY(write(ends[0], "lost", 4));
	SAY(dup2(ways[0], ends[1]) == ends[1]);
	SAY(write(ways[1], "pipe", 4));
	SAY(read(ends[1], got, sizeof got));
	printf("%.4s\n", got);
	SAY(close(ends[1]));
	SAY(close(ends[0]));
	for (int round = 0; round < 3; round++) {
		connection(other);
		SAY(write(other[0], "round", 5));
		SAY(recv(other[1], got, 5, MSG_WAITALL));
		SAY(close(other[0]));
		SAY(close(other[1]));
	}
}

static void streams(void)
{
	char name[] = "/tmp/beeline-numbersXXXXXX";
	int file;

	connection(ends);
	FILE *in = fdopen(ends[1], "r"), *out = fdopen(ends[0], "w");

	printf("streams: %d %d\n", in != NULL, out != NULL);
	SAY(write(ends[0], "by the number\n", 14));
	printf("%s", fgets(got, sizeof got, in));
	SAY(fprintf(out, "line %d of %s\n", 1, "text"));
	SAY(fflush(out));
	printf("%s", fgets(got, sizeof got, in));
	SAY(dprintf(ends[0], "%s %.3f %c %ld %d %d %d %d\n", "formatted", 1.5, 'x', 7L, 1, 2, 3, 4));
	printf("%s", fgets(got, sizeof got, in));
	SAY(fclose(out));
	SAY(fgetc(in));
	int before = ends[1];
	SAY(fclose(in));
	MUST(file = mkstemp(name));
	unlink(name);
	MUST(dup2(file, before));
	SAY(write(before, "a file", 6));
	SAY(pread(before, got, sizeof got, 0));
	printf("%.6s\n", got);
	close(file);
	FILE *again = fdopen(before, "w+");
	SAY(freopen("/dev/null", "w", again) != NULL);
	SAY(fclose(again));
}

static void ranges(void)
{
	connection(ends);
	MUST(dup2(ends[0], 500));
	MUST(dup2(ends[1], 501));
	SAY(close_range(500, 500, 0));
	SAY(write(500, "x", 1));
	SAY(close_range(501, 600, CLOSE_RANGE_CLOEXEC));
	SAY(fcntl(501, F_GETFD));
	SAY(close_range(20, 10, 0));
	closefrom(501);
	SAY(fcntl(501, F_GETFD));
	SAY(close(ends[0]));
	SAY(read(ends[1], got, sizeof got));
	SAY(close(ends[1]));
}

static void *receive(void *unused)
{
	char other[16];

	(void)unused;
	return (void *)read(ends[1], other, sizeof other);
}

/* The thread is inside a receive once the kernel says that it sleeps. */
static void wait_asleep(pid_t thread)
{
	char path[64], text[512], state = 0;

	snprintf(path, sizeof path, "/proc/self/task/%d/stat", thread);
	while (state != 'S') {
		FILE *stat = fopen(path, "r");

		if (stat && fgets(text, sizeof text, stat))
			state = strrchr(text, ')')[2];
		if (stat)
			fclose(stat);
	}
}

static pid_t thread_id;

static void *receive_and_tell(void *unused)
{
	__atomic_store_n(&thread_id, syscall(SYS_gettid), __ATOMIC_RELEASE);
	return receive(unused);
}

static void close_under_receive(void)
{
	pthread_t thread;
	void *gave;

	connection(ends);
	MUST(-pthread_create(&thread, NULL, receive_and_tell, NULL));
	while (!__atomic_load_n(&thread_id, __ATOMIC_ACQUIRE))
		;
	wait_asleep(thread_id);
	SAY(close(ends[1]));
	/* What is sent now is received by the thread, not by who has the number. */
	int file = open("/dev/null", O_RDWR);

	SAY(dup2(file, ends[1]) == ends[1]);
	SAY(write(ends[0], "late", 4));
	pthread_join(thread, &gave);
	printf("received: %ld\n", (long)gave);
	SAY(close(file));
	SAY(close(ends[0]));
}

int main(void)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	copies();
	used_again();
	streams();
	ranges();
	/* A known difference where the bytes are carried. */
	if (!getenv("CARRIED"))
		close_under_receive();
	return 0;
}

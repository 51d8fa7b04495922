/* Connections in epoll sets: what a set tells, natively and of bytes that the kernel does not have. */
#include "ground.h"
#include "waiting.h"

static int set_fd;

static void change(int operation, int fd, unsigned events, unsigned long long data)
{
	struct epoll_event event = { .events = events, .data.u64 = data };

	MUST(epoll_ctl(set_fd, operation, fd, &event));
}

/* What the set tells, by data. */
static void tell(const char *when, int most, int timeout)
{
	struct epoll_event events[8];
	int count;

	/* Other descriptors are told up to 50 us late while a window has something. */
	usleep(200);
	count = epoll_wait(set_fd, events, most, timeout);
	printf("%s: %d", when, count);
	for (unsigned long long data = 0; data < 16; data++)
		for (int at = 0; at < count; at++)
			if (events[at].data.u64 == data)
				printf(" %llu=%x", data, events[at].events);
	printf("%s\n", count < 0 ? strerrorname_np(errno) : "");
}

static void levels(int ends[2])
{
	change(EPOLL_CTL_ADD, ends[1], EPOLLIN | EPOLLRDHUP, 1);
	tell("nothing", 8, 0);
	say(ends[0], "abc");
	tell("three bytes", 8, SOON);
	hear(ends[1], 1);
	tell("two are left", 8, SOON);
	hear(ends[1], 2);
	tell("all read", 8, 0);
	change(EPOLL_CTL_MOD, ends[1], EPOLLRDHUP, 2);
	say(ends[0], "d");
	tell("not asked for", 8, 0);
	change(EPOLL_CTL_MOD, ends[1], EPOLLIN | EPOLLOUT | EPOLLRDNORM, 3);
	tell("asked for", 8, SOON);
	hear(ends[1], 1);
	change(EPOLL_CTL_DEL, ends[1], 0, 0);
	say(ends[0], "e");
	tell("not in the set", 8, 0);
	hear(ends[1], 1);
}

static void edges(int ends[2])
{
	change(EPOLL_CTL_ADD, ends[1], EPOLLIN | EPOLLOUT | EPOLLET, 4);
	tell("can be written to", 8, SOON);
	tell("told already", 8, 0);
	say(ends[0], "ab");
	tell("an edge", 8, SOON);
	tell("no edge", 8, 0);
	change(EPOLL_CTL_MOD, ends[1], EPOLLIN | EPOLLOUT | EPOLLET, 5);
	tell("armed again", 8, SOON);
	hear(ends[1], 2);
	tell("all read", 8, 0);
	say(ends[0], "c");
	tell("the next edge", 8, SOON);
	hear(ends[1], 1);
	change(EPOLL_CTL_DEL, ends[1], 0, 0);
}

/* Beside other descriptors, with room for one event: each has its turn. */
static void turns(int ends[2])
{
	struct epoll_event event;
	int pipe_fds[2], seen = 0;

	MUST(pipe(pipe_fds));
	change(EPOLL_CTL_ADD, ends[1], EPOLLIN, 0);
	change(EPOLL_CTL_ADD, pipe_fds[0], EPOLLIN, 1);
	say(ends[0], "x");
	MUST(write(pipe_fds[1], "y", 1));
	for (int turn = 0; turn < 100000 && seen != 3; turn++)
		if (epoll_wait(set_fd, &event, 1, SOON) == 1)
			seen |= 1 << event.data.u64;
	printf("seen: %d\n", seen);
	tell("both", 8, 0);
	hear(ends[1], 1);
	tell("the pipe", 8, 0);
	MUST(close(pipe_fds[1]));
	MUST(close(pipe_fds[0]));
	tell("closed", 8, 0);
	change(EPOLL_CTL_DEL, ends[1], 0, 0);
}

static void ends_of_streams(void)
{
	int ends[2];

	connection(ends);
	warm(ends);
	change(EPOLL_CTL_ADD, ends[1], EPOLLIN | EPOLLRDHUP, 6);
	say(ends[0], "last");
	MUST(shutdown(ends[0], SHUT_WR));
	wait_end(ends[1]);
	tell("bytes and an end", 8, SOON);
	hear(ends[1], 4);
	tell("an end", 8, SOON);
	hear(ends[1], 1);
	MUST(close(ends[1]));
	tell("its number is closed", 8, 0);
	MUST(close(ends[0]));
}

static void *waiter(void *told)
{
	struct epoll_event event;

	*(int *)told = epoll_wait(set_fd, &event, 1, SOON);
	return NULL;
}

/* Bytes that nobody takes wake one thread after the other. */
static void threads(int ends[2])
{
	pthread_t threads[3];
	int told[3] = { 0 };

	change(EPOLL_CTL_ADD, ends[1], EPOLLIN, 7);
	for (int at = 0; at < 3; at++)
		pthread_create(&threads[at], NULL, waiter, &told[at]);
	say(ends[0], "x");
	for (int at = 0; at < 3; at++)
		pthread_join(threads[at], NULL);
	printf("threads: %d %d %d\n", told[0], told[1], told[2]);
	hear(ends[1], 1);
	change(EPOLL_CTL_DEL, ends[1], 0, 0);
}

static void once(void)
{
	int ends[2];

	connection(ends);
	warm(ends);
	change(EPOLL_CTL_ADD, ends[1], EPOLLIN | EPOLLONESHOT, 8);
	say(ends[0], "ab");
	tell("one shot", 8, SOON);
	tell("shot", 8, 0);
	hear(ends[1], 2);
	say(ends[0], "c");
	change(EPOLL_CTL_MOD, ends[1], EPOLLIN | EPOLLONESHOT, 9);
	tell("loaded again", 8, SOON);
	hear(ends[1], 1);
	MUST(close(ends[0]));
	MUST(close(ends[1]));
}

static void nested(void)
{
	int ends[2], inner = set_fd;
	struct epoll_event event;

	connection(ends);
	warm(ends);
	change(EPOLL_CTL_ADD, ends[1], EPOLLIN, 10);
	MUST(set_fd = epoll_create1(EPOLL_CLOEXEC));
	change(EPOLL_CTL_ADD, inner, EPOLLIN, 11);
	tell("outer has nothing", 8, 0);
	for (int turn = 0; turn < 3; turn++) {
		say(ends[0], "x");
		tell("outer", 8, SOON);
		SAY(epoll_wait(inner, &event, 1, SOON));
		hear(ends[1], 1);
		SAY(epoll_wait(inner, &event, 1, 0));
	}
	MUST(close(set_fd));
	set_fd = inner;
	MUST(close(ends[0]));
	MUST(close(ends[1]));
}

/* A set that is polled, and one that has two numbers. */
static void polled(void)
{
	struct pollfd list = { .fd = set_fd, .events = POLLIN };
	int ends[2], copy;

	connection(ends);
	warm(ends);
	change(EPOLL_CTL_ADD, ends[1], EPOLLIN, 12);
	SAY(poll(&list, 1, 0));
	say(ends[0], "x");
	SAY(poll(&list, 1, SOON));
	tell("polled", 8, SOON);
	hear(ends[1], 1);
	MUST(copy = dup(set_fd));
	MUST(close(set_fd));
	set_fd = copy;
	say(ends[0], "y");
	tell("by its other number", 8, SOON);
	hear(ends[1], 1);
	MUST(close(ends[0]));
	MUST(close(ends[1]));
	tell("empty", 8, 0);
}

int main(void)
{
	struct epoll_event event;
	int ends[2];

	connection(ends);
	MUST(set_fd = epoll_create(1));
	SAY(epoll_wait(set_fd, &event, 0, 0));
	SAY(epoll_wait(-1, &event, 1, 0));
	SAY(epoll_wait(ends[0], &event, 1, 0));
	SAY(epoll_ctl(set_fd, EPOLL_CTL_ADD, set_fd, &event));
	SAY(epoll_ctl(set_fd, EPOLL_CTL_MOD, ends[0], &event));
	warm(ends);
	levels(ends);
	edges(ends);
	turns(ends);
	threads(ends);
	ends_of_streams();
	interrupted(ends[1], set_fd);
	once();
	MUST(close(set_fd));
	MUST(set_fd = epoll_create1(0));
	nested();
	MUST(close(set_fd));
	MUST(set_fd = epoll_create1(0));
	polled();
	return 0;
}

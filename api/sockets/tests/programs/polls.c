/* Connections in lists of polls and sets of selects. */
#include "ground.h"
#include "waiting.h"

static void tell(const char *when, struct pollfd *list, int count, int timeout)
{
	int ready = poll(list, count, timeout);

	printf("%s: %d", when, ready);
	for (int at = 0; at < count; at++)
		printf(" %x", list[at].revents);
	printf("\n");
}

static void polls(int ends[2])
{
	nfds_t too_many = 1u << 30;
	struct timespec none = { 0 };
	struct pollfd list[] = {
		{ .fd = ends[1], .events = POLLIN | POLLRDNORM, .revents = 0x7f },
		{ .fd = -1, .events = POLLIN, .revents = 0x7f },
		{ .fd = ends[0], .events = POLLIN | POLLOUT, .revents = 0x7f },
		{ .fd = 1000, .events = POLLIN, .revents = 0 },
		{ .fd = ends[1], .events = POLLOUT },
	};

	tell("nothing to read", list, 5, 0);
	say(ends[0], "ab");
	tell("two bytes", list, 1, SOON);
	tell("and others", list, 5, SOON);
	hear(ends[1], 1);
	tell("one is left", list, 1, SOON);
	SAY(ppoll(list, 1, &none, NULL));
	hear(ends[1], 1);
	tell("all read", list, 1, 0);
	tell("time is over", list, 1, 20);
	tell("no list", list, 0, 1);
	none.tv_nsec = -1;
	SAY(ppoll(list, 1, &none, NULL));
	SAY(poll(list, too_many, 0));
}

static void *later(void *fd)
{
	usleep(20000);
	say(*(int *)fd, "x");
	return NULL;
}

/* A byte that comes while the thread sleeps. */
static void woken(int ends[2])
{
	struct pollfd list = { .fd = ends[1], .events = POLLIN };
	pthread_t thread;
	fd_set set;

	pthread_create(&thread, NULL, later, &ends[0]);
	tell("it came", &list, 1, -1);
	pthread_join(thread, NULL);
	hear(ends[1], 1);
	pthread_create(&thread, NULL, later, &ends[0]);
	FD_ZERO(&set);
	FD_SET(ends[1], &set);
	SAY(select(ends[1] + 1, &set, NULL, NULL, NULL));
	pthread_join(thread, NULL);
	hear(ends[1], 1);
}

static void selects(int ends[2])
{
	struct timeval left = { .tv_sec = 9 };
	struct timespec time = { .tv_sec = 9 };
	fd_set read, write, except;

	FD_ZERO(&read);
	FD_ZERO(&write);
	FD_ZERO(&except);
	FD_SET(ends[1], &read);
	FD_SET(ends[0], &read);
	FD_SET(ends[1], &write);
	FD_SET(ends[1], &except);
	say(ends[0], "ab");
	SAY(select(ends[1] + 1, &read, &write, &except, &left));
	printf("%d %d %d %d\n", !!FD_ISSET(ends[1], &read), !!FD_ISSET(ends[0], &read), !!FD_ISSET(ends[1], &write),
	       !!FD_ISSET(ends[1], &except));
	printf("left: %d\n", left.tv_sec == 9 || left.tv_sec == 8);
	hear(ends[1], 1);
	SAY(pselect(ends[1] + 1, &read, NULL, NULL, &time, NULL));
	hear(ends[1], 1);
	left = (struct timeval){ .tv_usec = 20000 };
	SAY(select(ends[1] + 1, &read, NULL, NULL, &left));
	printf("%d %ld %ld\n", !!FD_ISSET(ends[1], &read), (long)left.tv_sec, (long)left.tv_usec);
	FD_SET(ends[1], &read);
	FD_SET(60, &read);
	SAY(select(61, &read, NULL, NULL, &left));
	left.tv_sec = -1;
	SAY(select(ends[1] + 1, &read, NULL, NULL, &left));
	SAY(select(-1, &read, NULL, NULL, NULL));
}

int main(void)
{
	struct pollfd list;
	int ends[2], set_fd;

	connection(ends);
	warm(ends);
	polls(ends);
	woken(ends);
	selects(ends);
	MUST(set_fd = epoll_create1(0));
	interrupted(ends[1], set_fd);
	list = (struct pollfd){ .fd = ends[1], .events = POLLIN | POLLRDHUP };
	say(ends[0], "last");
	MUST(shutdown(ends[0], SHUT_WR));
	wait_end(ends[1]);
	tell("bytes and an end", &list, 1, SOON);
	hear(ends[1], 4);
	tell("an end", &list, 1, SOON);
	MUST(close(ends[0]));
	MUST(shutdown(ends[1], SHUT_WR));
	tell("both ends", &list, 1, SOON);
	return 0;
}

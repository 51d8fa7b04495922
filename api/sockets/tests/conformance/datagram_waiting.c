/* Waiting for datagrams of UDP: time limits, readiness, signals, several in a call, several senders and threads. */
#include "datagrams.h"

#include <sys/select.h>
#include <time.h>

#define SENDERS 4
#define OF_EACH 200
#define FLOOD 3000

static void numbers_client(struct side *s)
{
	open_connected(s);
	for (int i = 0; i < 40; i++) {
		hear(s);
		wait_asleep(s);
		send_number(s->fd, i);
	}
	meet(s);
}

static void asleep_server(struct side *s)
{
	open_connected(s);
	for (int i = 0; i < 40; i++) {
		tell(s);
		say(s, "number %d", receive_number(s->fd, 0));
	}
	meet(s);
}

static void limits_client(struct side *s)
{
	open_connected(s);
	meet(s);
	exchange(s, s->fd);
}

static void limits_server(struct side *s)
{
	char bytes[8];
	struct timeval limit = { .tv_usec = 30000 }, none = { 0 };
	struct msghdr message = { 0 };
	int one = 1, zero = 0;
	open_connected(s);
	SAY(recv(s->fd, bytes, sizeof bytes, MSG_DONTWAIT));
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
	SAY(recv(s->fd, bytes, sizeof bytes, 0));
	SAY(recv(s->fd, bytes, sizeof bytes, MSG_PEEK));
	SAY(recv(s->fd, bytes, sizeof bytes, MSG_WAITALL));
	SAY(recvmsg(s->fd, &message, 0));
	SAY(read(s->fd, bytes, sizeof bytes));
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none));
	set_nonblocking(s->fd, true);
	SAY(recv(s->fd, bytes, sizeof bytes, 0));
	set_nonblocking(s->fd, false);
	SAY(ioctl(s->fd, FIONBIO, &one));
	SAY(read(s->fd, bytes, sizeof bytes));
	SAY(ioctl(s->fd, FIONBIO, &zero));
	meet(s);
	exchange(s, s->fd);
}

static void say_list(struct side *s, const struct mmsghdr *list, int count)
{
	for (int i = 0; i < count; i++)
		say(s, "message %d: %u bytes, flags %x", i, list[i].msg_len, (unsigned)list[i].msg_hdr.msg_flags);
}

static void several_client(struct side *s)
{
	static __thread char too_long[MOST_BYTES];
	char bytes[8][100];
	struct iovec parts[8];
	struct mmsghdr list[8] = { 0 };
	open_connected(s);
	for (int i = 0; i < 8; i++) {
		pattern(bytes[i], sizeof bytes[i], i);
		parts[i] = (struct iovec){ bytes[i], 10 + i };
		list[i].msg_hdr = (struct msghdr){ .msg_iov = &parts[i], .msg_iovlen = 1 };
	}
	for (int round = 0; round < 2; round++) {
		SAY(sendmmsg(s->fd, list, 8, 0));
		say_list(s, list, 8);
		meet(s);
		meet(s);
	}
	SAY(sendmmsg(s->fd, list, 2, 0));
	meet(s);
	/* Long behind the time-out. */
	poll(NULL, 0, 150);
	SAY(send(s->fd, bytes, 99, 0));
	meet(s);
	SAY(sendmmsg(s->fd, list, 0, 0));
	parts[1] = (struct iovec){ too_long, MOST_BYTES };
	SAY(sendmmsg(s->fd, list, 3, 0));
	meet(s);
}

static void several_server(struct side *s)
{
	char bytes[8][100];
	struct iovec parts[8];
	struct mmsghdr list[8] = { 0 };
	struct timespec limit = { .tv_nsec = 100000000 }, wrong = { .tv_nsec = 1000000000 };
	open_connected(s);
	for (int i = 0; i < 8; i++) {
		parts[i] = (struct iovec){ bytes[i], i == 3 ? 5 : 100 };
		list[i].msg_hdr = (struct msghdr){ .msg_iov = &parts[i], .msg_iovlen = 1 };
	}
	meet_delivered(s);
	SAY(recvmmsg(s->fd, list, 5, 0, NULL));
	say_list(s, list, 5);
	SAY(recvmmsg(s->fd, list, 8, MSG_WAITFORONE, NULL));
	say_list(s, list, 3);
	SAY(recvmmsg(s->fd, list, 8, MSG_DONTWAIT, NULL));
	meet(s);
	meet_delivered(s);
	SAY(recvmmsg(s->fd, list, 8, MSG_DONTWAIT, NULL));
	say_bytes(s, "the last", bytes[7], list[7].msg_len);
	SAY(recvmmsg(s->fd, list, 8, MSG_DONTWAIT, &wrong));
	SAY(recvmmsg(s->fd, list, 0, MSG_DONTWAIT, NULL));
	meet(s);
	meet(s);
	SAY(recvmmsg(s->fd, list, 8, 0, &limit));
	say(s, "left: %ld", (long)(limit.tv_sec * 1000000000 + limit.tv_nsec));
	say_list(s, list, 3);
	meet(s);
	meet_delivered(s);
	SAY(recvmmsg(s->fd, list, 8, MSG_DONTWAIT, NULL));
}

static void ready_client(struct side *s)
{
	open_connected(s);
	for (int i = 0; i < 8; i++) {
		hear(s);
		wait_asleep(s);
		send_number(s->fd, i);
		send_number(s->fd, i + 100);
	}
	meet(s);
}

static void mixed_server(struct side *s)
{
	int pipes[2];
	fd_set reading, writing;
	struct timeval none = { 0 };
	open_connected(s);
	MUST(pipe(pipes));
	struct pollfd list[2] = { { .fd = pipes[0], .events = POLLIN }, { .fd = s->fd, .events = POLLIN } };
	SAY(poll(list, 2, 0));
	SAY(poll(list, 2, 20));
	for (int i = 0; i < 8; i++) {
		FD_ZERO(&reading);
		FD_ZERO(&writing);
		FD_SET(s->fd, &reading);
		FD_SET(pipes[0], &reading);
		tell(s);
		if (i < 4)
			SAY(i < 2 ? poll(list, 2, -1) : ppoll(list, 2, NULL, NULL));
		else
			SAY(i < 6 ? select(s->fd + 1, &reading, NULL, NULL, NULL) : pselect(s->fd + 1, &reading, NULL, NULL, NULL, NULL));
		say(s, "told %d %d", i < 4 ? list[1].revents : FD_ISSET(s->fd, &reading) != 0, FD_ISSET(pipes[0], &reading) != 0);
		say(s, "number %d", receive_number(s->fd, MSG_DONTWAIT));
		say_events(s, "behind one", wait_ready(s->fd, POLLIN));
		say(s, "number %d", receive_number(s->fd, 0));
		say_events(s, "behind two", ready_now(s->fd, POLLIN | POLLOUT | POLLPRI));
		FD_SET(s->fd, &reading);
		FD_SET(s->fd, &writing);
		SAY(select(s->fd + 1, &reading, &writing, NULL, &none));
	}
	meet(s);
	close(pipes[0]);
	close(pipes[1]);
}

/* Eight times: a set in which the socket is with these flags is waited at, the first datagram is received, the second one is waited for, and received. */
static void set_server(struct side *s, unsigned flags)
{
	struct epoll_event event = { .events = EPOLLIN | flags, .data.u64 = 7 };
	int unread = 0;
	open_connected(s);
	int set = MUST(epoll_create1(0));
	SAY(epoll_ctl(set, EPOLL_CTL_ADD, s->fd, &event));
	say_ready(s, set, 0);
	for (int i = 0; i < 8; i++) {
		tell(s);
		say_ready(s, set, -1);
		/* With EPOLLET the second one is an edge of its own, unless it came before the set was asked. */
		wait_readable(s->fd);
		say(s, "number %d", receive_number(s->fd, 0));
		wait_readable(s->fd);
		if (flags & EPOLLET)
			epoll_wait(set, &event, 1, 20);
		else
			say_ready(s, set, flags & EPOLLONESHOT ? 0 : -1);
		say(s, "number %d", receive_number(s->fd, 0));
		say_ready(s, set, 0);
		SAY(ioctl(s->fd, FIONREAD, &unread));
		event = (struct epoll_event){ .events = EPOLLIN | flags, .data.u64 = 8 + i };
		SAY(epoll_ctl(set, EPOLL_CTL_MOD, s->fd, &event));
		say_ready(s, set, 0);
	}
	SAY(epoll_ctl(set, EPOLL_CTL_DEL, s->fd, NULL));
	meet(s);
	close(set);
}

static void level_server(struct side *s)
{
	set_server(s, 0);
}

static void edge_server(struct side *s)
{
	set_server(s, EPOLLET);
}

static void one_shot_server(struct side *s)
{
	set_server(s, EPOLLONESHOT);
}

/* Senders of their own beside the side's, one of which is the kernel's at first. */
static void senders_client(struct side *s)
{
	struct name other, own;
	int others[SENDERS - 1];
	open_warm(s, AF_INET, false, &other);
	for (int i = 0; i < SENDERS - 1; i++) {
		others[i] = open_bound(AF_INET, &own);
		MUST(write(s->to_other, &own, sizeof own));
		meet(s);
		/* Those behind the first are worth a window soon. */
		for (int round = 0; round < 200 * i; round++) {
			send_to(others[i], &other, &round, sizeof round);
			receive_number(others[i], 0);
		}
	}
	for (int i = 0; i < OF_EACH; i++) {
		int number = i;
		MUST(send_to(s->fd, &other, &number, sizeof number));
		for (int at = 0; at < SENDERS - 1; at++)
			MUST(send_to(others[at], &other, &number, sizeof number));
		/* The kernel's queue has room for some hundred. */
		if (i % 20 == 19)
			meet(s);
	}
	for (int at = 0; at < SENDERS - 1; at++)
		close(others[at]);
}

static void senders_server(struct side *s)
{
	struct name names[SENDERS], from;
	int next[SENDERS] = { 0 }, wrong = 0, number;
	open_warm(s, AF_INET, false, &names[0]);
	for (int i = 1; i < SENDERS; i++) {
		if (read(s->from_other, &names[i], sizeof names[i]) != sizeof names[i])
			fail("a sender");
		meet(s);
		for (int round = 0; round < 200 * (i - 1); round++) {
			number = receive_number(s->fd, 0);
			send_to(s->fd, &names[i], &number, sizeof number);
		}
	}
	for (int i = 0; i < SENDERS * OF_EACH; i++) {
		int at = 0;
		from.length = sizeof from.of;
		MUST(recvfrom(s->fd, &number, sizeof number, 0, (struct sockaddr *)&from.of, &from.length));
		while (at < SENDERS && !is_named(&from, &names[at]))
			at++;
		if (at == SENDERS || number != next[at]++)
			wrong++;
		if (i % (20 * SENDERS) == 20 * SENDERS - 1)
			meet(s);
	}
	say(s, "out of order, or from elsewhere: %d", wrong);
	for (int at = 0; at < SENDERS; at++)
		say(s, "sender %d: %d", at, next[at]);
	SAY(recv(s->fd, &number, sizeof number, MSG_DONTWAIT));
}

/* More than anybody has room for. */
static void full_client(struct side *s)
{
	static __thread char bytes[1000];
	int failed = 0;
	open_connected(s);
	meet(s);
	for (int i = 0; i < FLOOD; i++) {
		memcpy(bytes, &i, sizeof i);
		failed += send(s->fd, bytes, sizeof bytes, 0) != sizeof bytes;
	}
	say(s, "failed: %d", failed);
	meet(s);
	meet(s);
	exchange(s, s->fd);
}

static void full_server(struct side *s)
{
	static __thread char bytes[1000];
	int size = 40000, got = 0, wrong = 0, number;
	socklen_t length = sizeof size;
	open_connected(s);
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size));
	SAY(getsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &size, &length));
	say(s, "size %d", size);
	meet(s);
	meet_delivered(s);
	for (; recv(s->fd, bytes, sizeof bytes, MSG_DONTWAIT) == sizeof bytes; got++) {
		memcpy(&number, bytes, sizeof number);
		wrong += number != got;
	}
	say(s, "the first are there: %d, others are dropped: %d, out of order: %d", got > 10, got < FLOOD, wrong);
	unsigned memory[9] = { 0 };
	length = sizeof memory;
	SAY(getsockopt(s->fd, SOL_SOCKET, SO_MEMINFO, memory, &length));
	say(s, "drops are counted: %d", memory[8] > 0);
	meet(s);
	exchange(s, s->fd);
}

/* Threads that share a socket. */
struct shared {
	int fd, fd_other;
	unsigned char seen[FLOOD];
	pthread_mutex_t lock;
};

static void *take_numbers(void *argument)
{
	struct shared *shared = argument;
	for (int number; (number = receive_number(shared->fd, 0)) >= 0;) {
		pthread_mutex_lock(&shared->lock);
		shared->seen[number]++;
		pthread_mutex_unlock(&shared->lock);
		/* The other side sends the next: none is dropped. */
		send_number(shared->fd, number);
	}
	return NULL;
}

static void threads_server(struct side *s)
{
	static struct shared shared = { .lock = PTHREAD_MUTEX_INITIALIZER };
	pthread_t threads[3];
	int wrong = 0;
	open_connected(s);
	shared.fd = s->fd;
	for (int i = 0; i < 3; i++)
		pthread_create(&threads[i], NULL, take_numbers, &shared);
	for (int i = 0; i < 3; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < FLOOD; i++)
		wrong += shared.seen[i] != 1;
	say(s, "lost or twice: %d", wrong);
}

static void threads_client(struct side *s)
{
	uint64_t total = 0;
	open_connected(s);
	for (int i = 0; i < FLOOD; i++) {
		send_number(s->fd, i);
		if (i >= 8)
			total += receive_number(s->fd, 0);
	}
	for (int i = 0; i < 8; i++)
		total += receive_number(s->fd, 0);
	for (int i = 0; i < 3; i++)
		send_number(s->fd, -1);
	say(s, "total %llu", (unsigned long long)total);
}

const struct test_case datagram_waiting_cases[] = {
	{ "udp_asleep", ANYWHERE, true, asleep_server, numbers_client, "a receive that sleeps" },
	{ "udp_limits", ANYWHERE, true, limits_server, limits_client, "`SO_RCVTIMEO`, `O_NONBLOCK`, `FIONBIO`" },
	{ "udp_several", ANYWHERE, true, several_server, several_client, "`sendmmsg`, `recvmmsg`, `MSG_WAITFORONE`, its time-out" },
	{ "udp_mixed", ANYWHERE, true, mixed_server, ready_client, "`poll`, `ppoll`, `select`, `pselect` of a socket and a pipe" },
	{ "udp_epoll_level", ANYWHERE, true, level_server, ready_client, "`epoll`, level-triggered" },
	{ "udp_epoll_edge", ANYWHERE, true, edge_server, ready_client, "`EPOLLET`" },
	{ "udp_epoll_one_shot", ANYWHERE, true, one_shot_server, ready_client, "`EPOLLONESHOT`" },
	{ "udp_senders", ANYWHERE, true, senders_server, senders_client, "several senders: order and address of each" },
	{ "udp_full", ANYWHERE, true, full_server, full_client, "a full receive buffer, `SO_RCVBUF`" },
	{ "udp_threads", ANYWHERE, true, threads_server, threads_client, "threads that receive from one socket" },
	{ 0 },
};

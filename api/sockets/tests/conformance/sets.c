/* Sets of epoll. */
#include "conformance.h"

static void add(int set, int fd, unsigned events, uint64_t data)
{
	struct epoll_event event = { .events = events, .data.u64 = data };
	MUST(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event));
}

static void send_when_asked(struct side *s, int times)
{
	for (int i = 0; i < times; i++) {
		hear(s);
		wait_asleep(s);
		MUST(send_all(s->fd, "ab", 2));
	}
}

static void four_client(struct side *s)
{
	send_when_asked(s, 4);
	meet(s);
}

static void level_server(struct side *s)
{
	char byte;
	int set = MUST(epoll_create1(EPOLL_CLOEXEC));
	add(set, s->fd, EPOLLIN | EPOLLRDHUP, 7);
	say_ready(s, set, 0);
	for (int i = 0; i < 4; i++) {
		tell(s);
		say_ready(s, set, -1);
		say_ready(s, set, -1);
		SAY(recv(s->fd, &byte, 1, 0));
		say_ready(s, set, 0);
		SAY(recv(s->fd, &byte, 1, 0));
		say_ready(s, set, 0);
	}
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT, .data.u64 = 8 };
	SAY(epoll_ctl(set, EPOLL_CTL_ADD, s->fd, &event));
	SAY(epoll_ctl(set, EPOLL_CTL_MOD, s->fd, &event));
	say_ready(s, set, -1);
	SAY(epoll_ctl(set, EPOLL_CTL_DEL, s->fd, NULL));
	SAY(epoll_ctl(set, EPOLL_CTL_MOD, s->fd, &event));
	say_ready(s, set, 0);
	meet(s);
	close(set);
}

static void edge_server(struct side *s)
{
	char bytes[8];
	int set = MUST(epoll_create1(0));
	add(set, s->fd, EPOLLIN | EPOLLET, 7);
	for (int i = 0; i < 4; i++) {
		tell(s);
		say_ready(s, set, -1);
		/* Both bytes are there; what was reported is not reported again. */
		wait_unread(s->fd, i == 2 ? 3 : 2);
		say_ready(s, set, 0);
		say(s, "received: %zd", recv(s->fd, bytes, i == 1 ? 1 : sizeof bytes, MSG_DONTWAIT));
		say_ready(s, set, 0);
	}
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u64 = 8 };
	SAY(epoll_ctl(set, EPOLL_CTL_MOD, s->fd, &event));
	say_ready(s, set, 0);
	meet(s);
	close(set);
}

static void edge_rearmed_client(struct side *s)
{
	MUST(send_all(s->fd, "ab", 2));
	meet(s);
	SAY(shutdown(s->fd, SHUT_WR));
	meet(s);
}

static void edge_rearmed_server(struct side *s)
{
	char bytes[8];
	int set = MUST(epoll_create1(0));
	struct epoll_event event = { .events = EPOLLIN | EPOLLET | EPOLLRDHUP, .data.u64 = 8 };
	wait_unread(s->fd, 2);
	add(set, s->fd, EPOLLIN | EPOLLET | EPOLLRDHUP, 7);
	say_ready(s, set, -1);
	say_ready(s, set, 0);
	SAY(epoll_ctl(set, EPOLL_CTL_MOD, s->fd, &event));
	say_ready(s, set, -1);
	say_ready(s, set, 0);
	meet(s);
	say_ready(s, set, -1);
	say_bytes(s, "received", bytes, SAY(recv(s->fd, bytes, sizeof bytes, 0)));
	SAY(recv(s->fd, bytes, sizeof bytes, 0));
	say_ready(s, set, 0);
	meet(s);
	close(set);
}

static void one_shot_server(struct side *s)
{
	char bytes[8];
	int set = MUST(epoll_create1(0));
	add(set, s->fd, EPOLLIN | EPOLLONESHOT, 7);
	for (int i = 0; i < 4; i++) {
		struct epoll_event event = { .events = EPOLLIN | EPOLLONESHOT, .data.u64 = 10 + i };
		tell(s);
		say_ready(s, set, -1);
		say_ready(s, set, 0);
		if (i == 1) {
			wait_unread(s->fd, 2);
			SAY(epoll_ctl(set, EPOLL_CTL_MOD, s->fd, &event));
			say_ready(s, set, -1);
		}
		SAY(receive_all(s->fd, bytes, 2));
		SAY(epoll_ctl(set, EPOLL_CTL_MOD, s->fd, &event));
		say_ready(s, set, 0);
	}
	meet(s);
	close(set);
}

static void exclusive_server(struct side *s)
{
	char bytes[8];
	int set = MUST(epoll_create1(0));
	struct epoll_event event = { .events = EPOLLIN };
	add(set, s->fd, EPOLLIN | EPOLLEXCLUSIVE, 7);
	for (int i = 0; i < 4; i++) {
		tell(s);
		say_ready(s, set, -1);
		SAY(receive_all(s->fd, bytes, 2));
		say_ready(s, set, 0);
	}
	SAY(epoll_ctl(set, EPOLL_CTL_MOD, s->fd, &event));
	meet(s);
	close(set);
}

static void nested_server(struct side *s)
{
	char bytes[8];
	int inner = MUST(epoll_create1(0)), outer = MUST(epoll_create1(0));
	add(inner, s->fd, EPOLLIN, 7);
	add(outer, inner, EPOLLIN, 8);
	say_ready(s, outer, 0);
	for (int i = 0; i < 4; i++) {
		tell(s);
		if (i % 2)
			say_events(s, "inner", wait_ready(inner, POLLIN));
		say_ready(s, outer, -1);
		say_ready(s, inner, -1);
		SAY(receive_all(s->fd, bytes, 2));
		say_ready(s, inner, 0);
		say_ready(s, outer, 0);
	}
	meet(s);
	close(inner);
	close(outer);
}

static void two_sets_server(struct side *s)
{
	char bytes[8];
	int one = MUST(epoll_create1(0)), other = MUST(epoll_create1(0)), copy = MUST(dup(one));
	add(one, s->fd, EPOLLIN, 7);
	add(other, s->fd, EPOLLIN | EPOLLET, 8);
	for (int i = 0; i < 4; i++) {
		tell(s);
		say_ready(s, one, -1);
		say_ready(s, other, -1);
		say_ready(s, copy, -1);
		SAY(receive_all(s->fd, bytes, 2));
		say_ready(s, copy, 0);
		say_ready(s, other, 0);
	}
	meet(s);
	close(one);
	close(other);
	close(copy);
}

static void mixed_set_client(struct side *s)
{
	int other = connect_warm(s);
	send_when_asked(s, 2);
	MUST(send_all(other, "ab", 2));
	meet(s);
	close(other);
	meet(s);
}

static void mixed_set_server(struct side *s)
{
	char bytes[8];
	int set = MUST(epoll_create1(0)), other = accept_warm(s), ends[2];
	MUST(pipe(ends));
	add(set, s->fd, EPOLLIN, 1);
	add(set, other, EPOLLIN, 2);
	add(set, ends[0], EPOLLIN, 3);
	MUST(write(ends[1], "p", 1));
	say_ready(s, set, -1);
	MUST(read(ends[0], bytes, 1));
	tell(s);
	say_ready(s, set, -1);
	SAY(receive_all(s->fd, bytes, 2));
	tell(s);
	wait_unread(s->fd, 2);
	wait_unread(other, 2);
	struct epoll_event events[8];
	say(s, "both: %d", epoll_wait(set, events, 8, -1));
	say(s, "one at a time: %d", epoll_wait(set, events, 1, -1));
	uint64_t first = events[0].data.u64;
	say(s, "one at a time: %d", epoll_wait(set, events, 1, -1));
	say(s, "the other one: %d", first + events[0].data.u64 == 3);
	SAY(receive_all(s->fd, bytes, 2));
	say_ready(s, set, -1);
	meet(s);
	SAY(receive_all(other, bytes, 2));
	say_ready(s, set, -1);
	SAY(close(other));
	say_ready(s, set, 0);
	meet(s);
	close(set);
	close(ends[0]);
	close(ends[1]);
}

static void closed_member_client(struct side *s)
{
	send_when_asked(s, 1);
	SAY(shutdown(s->fd, SHUT_WR));
	meet(s);
}

static void closed_member_server(struct side *s)
{
	char bytes[8];
	int set = MUST(epoll_create1(0)), copy;
	add(set, s->fd, EPOLLIN, 7);
	copy = MUST(dup(s->fd));
	SAY(close(s->fd));
	tell(s);
	/* The set has the connection as long as anybody does. */
	say_ready(s, set, -1);
	s->fd = copy;
	SAY(receive_all(s->fd, bytes, 2));
	say_ready(s, set, -1);
	SAY(recv(s->fd, bytes, 1, 0));
	SAY(close(s->fd));
	say_ready(s, set, 0);
	s->fd = -1;
	meet(s);
	close(set);
}


/* Here the client of the connection is the server of the case, which has its own listener to connect to. */
static void added_early_server(struct side *s)
{
	char bytes[200];
	int set = MUST(epoll_create1(0)), fd = MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)), accepted;
	add(set, fd, EPOLLIN | EPOLLOUT | EPOLLET, 7);
	say_ready(s, set, 0);
	int gave = connect(fd, (struct sockaddr *)&s->address, sizeof s->address);
	say(s, "connect: %s", gave == 0 ? "done" : strerrorname_np(errno));
	say_ready(s, set, -1);
	accepted = accept_cold(s);
	struct epoll_event event = { .events = EPOLLIN | EPOLLET, .data.u64 = 8 };
	SAY(epoll_ctl(set, EPOLL_CTL_MOD, fd, &event));
	set_nonblocking(fd, false);
	warm_alone(fd, accepted);
	set_nonblocking(fd, true);
	epoll_wait(set, &event, 1, 0);
	for (int i = 0; i < 200; i++) {
		MUST(send_all(accepted, "0123456789", 10));
		struct epoll_event found;
		if (epoll_wait(set, &found, 1, -1) != 1 || found.data.u64 != 8)
			say(s, "message %d was not reported", i);
		if (recv(fd, bytes, sizeof bytes, 0) != 10)
			say(s, "message %d was not received", i);
		MUST(send_all(fd, "9876543210", 10));
		if (receive_all(accepted, bytes, 10) != 10)
			say(s, "answer %d was not received", i);
	}
	SAY(close(accepted));
	say_ready(s, set, -1);
	SAY(recv(fd, bytes, sizeof bytes, 0));
	close(fd);
	close(set);
}

static void idle_client(struct side *s)
{
	(void)s;
}

const struct test_case sets_cases[] = {
	{ "epoll_level", ANYWHERE, false, level_server, four_client, "`epoll`, level-triggered; `EPOLL_CTL_MOD`, `EPOLL_CTL_DEL`" },
	{ "epoll_edge", ANYWHERE, false, edge_server, four_client, "`EPOLLET`" },
	{ "epoll_edge_rearmed", ANYWHERE, false, edge_rearmed_server, edge_rearmed_client, "`EPOLLET` that `EPOLL_CTL_MOD` arms again; the end as an edge" },
	{ "epoll_one_shot", ANYWHERE, false, one_shot_server, four_client, "`EPOLLONESHOT`" },
	{ "epoll_exclusive", ANYWHERE, false, exclusive_server, four_client, "`EPOLLEXCLUSIVE`" },
	{ "epoll_nested", ANYWHERE, false, nested_server, four_client, "a set in a set, in `poll` too" },
	{ "epoll_two_sets", ANYWHERE, false, two_sets_server, four_client, "one connection in two sets, a copy of a set" },
	{ "epoll_mixed", ANYWHERE, false, mixed_set_server, mixed_set_client, "several connections and a pipe in a set" },
	{ "epoll_closed_member", ANYWHERE, false, closed_member_server, closed_member_client, "a member that is closed while a copy lives" },
	{ "epoll_added_early", TWO_PROCESSES, true, added_early_server, idle_client, "a socket that is in the set before it is connected" },
	{ 0 },
};

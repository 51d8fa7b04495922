/* poll and select of connections beside other descriptors, and senders that wait for room. */
#include "conformance.h"

#include <sys/select.h>

struct mixed {
	int pipe[2], quiet[2];
};

static void open_mixed(struct side *s, struct mixed *mixed)
{
	MUST(pipe(mixed->pipe));
	MUST(pipe(mixed->quiet));
	(void)s;
}

static void close_mixed(struct mixed *mixed)
{
	for (int i = 0; i < 2; i++) {
		close(mixed->pipe[i]);
		close(mixed->quiet[i]);
	}
}

/* One of the four calls on the connection and two pipes; without a bound if `seconds` is negative. */
static void wait_by(struct side *s, const char *call, struct mixed *mixed, int milliseconds)
{
	struct pollfd list[3] = { { .fd = s->fd, .events = POLLIN },
		{ .fd = mixed->pipe[0], .events = POLLIN },
		{ .fd = mixed->quiet[0], .events = POLLIN } };
	struct timespec spec = { .tv_nsec = milliseconds * 1000000L };
	struct timeval value = { .tv_usec = milliseconds * 1000 };
	bool is_bounded = milliseconds >= 0;
	fd_set set;
	int most = 0, ready;
	FD_ZERO(&set);
	for (int i = 0; i < 3; i++) {
		FD_SET(list[i].fd, &set);
		most = list[i].fd > most ? list[i].fd : most;
	}
	if (strcmp(call, "poll") == 0)
		ready = poll(list, 3, milliseconds);
	else if (strcmp(call, "ppoll") == 0)
		ready = ppoll(list, 3, is_bounded ? &spec : NULL, NULL);
	else if (strcmp(call, "select") == 0)
		ready = select(most + 1, &set, NULL, NULL, is_bounded ? &value : NULL);
	else
		ready = pselect(most + 1, &set, NULL, NULL, is_bounded ? &spec : NULL, NULL);
	bool is_poll = strstr(call, "poll") != NULL;
	say(s, "%s: %d ready:%s%s%s", call, ready, (is_poll ? list[0].revents : FD_ISSET(s->fd, &set)) ? " connection" : "",
	    (is_poll ? list[1].revents : FD_ISSET(mixed->pipe[0], &set)) ? " pipe" : "",
	    (is_poll ? list[2].revents : FD_ISSET(mixed->quiet[0], &set)) ? " other pipe" : "");
}

static const char *const calls[] = { "poll", "ppoll", "select", "pselect" };

static void mixed_client(struct side *s)
{
	for (int i = 0; i < 4; i++) {
		hear(s);
		wait_asleep(s);
		MUST(send_all(s->fd, "x", 1));
		meet(s);
	}
}

static void mixed_server(struct side *s)
{
	struct mixed mixed;
	char byte;
	open_mixed(s, &mixed);
	for (int i = 0; i < 4; i++) {
		wait_by(s, calls[i], &mixed, 0);
		wait_by(s, calls[i], &mixed, 10);
		MUST(write(mixed.pipe[1], "p", 1));
		wait_by(s, calls[i], &mixed, -1);
		MUST(read(mixed.pipe[0], &byte, 1));
		tell(s);
		wait_by(s, calls[i], &mixed, -1);
		MUST(write(mixed.pipe[1], "p", 1));
		wait_by(s, calls[i], &mixed, -1);
		MUST(read(mixed.pipe[0], &byte, 1));
		wait_by(s, calls[i], &mixed, 0);
		SAY(recv(s->fd, &byte, 1, 0));
		wait_by(s, calls[i], &mixed, 0);
		meet(s);
	}
	close_mixed(&mixed);
}

static void many_client(struct side *s)
{
	int more[8];
	for (int i = 0; i < 8; i++)
		more[i] = connect_warm(s);
	for (int i = 0; i < 8; i++) {
		hear(s);
		MUST(send_all(more[(i * 3) % 8], "x", 1));
	}
	meet(s);
	for (int i = 0; i < 8; i++)
		close(more[i]);
}

static void many_server(struct side *s)
{
	struct pollfd list[9] = { { .fd = s->fd, .events = POLLIN } };
	char byte;
	for (int i = 1; i < 9; i++)
		list[i] = (struct pollfd){ .fd = accept_warm(s), .events = POLLIN };
	for (int turn = 0; turn < 8; turn++) {
		tell(s);
		SAY(poll(list, 9, -1));
		for (int i = 0; i < 9; i++)
			if (list[i].revents) {
				say(s, "connection %d", i);
				SAY(recv(list[i].fd, &byte, 1, MSG_DONTWAIT));
			}
	}
	meet(s);
	for (int i = 1; i < 9; i++)
		close(list[i].fd);
}

static void poll_end_client(struct side *s)
{
	hear(s);
	wait_asleep(s);
	SAY(shutdown(s->fd, SHUT_WR));
	meet(s);
	SAY(close(s->fd));
	s->fd = -1;
	meet(s);
}

static void poll_end_server(struct side *s)
{
	char byte;
	say_events(s, "now", ready_now(s->fd, POLLIN | POLLOUT | POLLPRI | POLLRDHUP));
	say_events(s, "now, of none", ready_now(s->fd, 0));
	tell(s);
	say_events(s, "at the end", wait_ready(s->fd, POLLIN | POLLRDHUP));
	SAY(recv(s->fd, &byte, 1, 0));
	meet(s);
	meet(s);
	SAY(shutdown(s->fd, SHUT_WR));
	say_events(s, "both ended", wait_ready(s->fd, 0));
}

/* Fills the connection until it takes no more, and is not said to be ready for more either. What is on its way makes room for a
 * moment, and on a machine whose cores are taken that moment may come late; so it is filled again then, but not for ever.
 */
static uint64_t fill(struct side *s, char *part, size_t bytes)
{
	uint64_t sent = 0;
	int number = 0;
	short ready = POLLOUT;
	for (int again = 0; again < 100 && ready; again++) {
		ssize_t more;
		while ((more = send(s->fd, part, bytes, MSG_DONTWAIT)) > 0)
			sent += more;
		number = errno;
		poll(&(struct pollfd){ .fd = s->fd, .events = POLLOUT }, 1, 50);
		ready = ready_now(s->fd, POLLOUT);
	}
	say(s, "full: %s", strerrorname_np(number));
	say_events(s, "ready", ready);
	return sent;
}

static void full_client(struct side *s)
{
	static char part[65536];
	int size = 100000;
	socklen_t length = sizeof size;
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof size));
	SAY(getsockopt(s->fd, SOL_SOCKET, SO_SNDBUF, &size, &length));
	say(s, "room: %d", size);
	uint64_t sent = fill(s, part, sizeof part);
	say(s, "some were sent: %d", sent > 0);
	MUST(write(s->to_other, &sent, sizeof sent));
	say_events(s, "ready", wait_ready(s->fd, POLLOUT));
	meet(s);
	SAY(send_all(s->fd, part, 10));
	meet(s);
}

static void full_server(struct side *s)
{
	static char part[65536];
	uint64_t sent = 0, received = 0;
	/* The client writes this beside what it tells. */
	MUST(read(s->from_other, &sent, sizeof sent));
	while (received < sent)
		received += MUST(recv(s->fd, part, sizeof part, 0));
	say(s, "all were received: %d", received == sent);
	SAY(recv(s->fd, part, sizeof part, MSG_DONTWAIT));
	meet(s);
	SAY(receive_all(s->fd, part, 10));
	meet(s);
}

static void blocked_client(struct side *s)
{
	static char bytes[20 << 20];
	pattern(bytes, sizeof bytes, 6);
	tell(s);
	/* One call, that waits for the reader. */
	SAY(send(s->fd, bytes, sizeof bytes, 0));
	say_bytes(s, "sent", bytes, sizeof bytes);
	MUST(shutdown(s->fd, SHUT_WR));
}

static void blocked_server(struct side *s)
{
	hear(s);
	wait_asleep(s);
	receive_to_end(s, s->fd);
}

static void send_limit_client(struct side *s)
{
	static char bytes[32 << 20];
	struct timeval limit = { .tv_usec = 100000 };
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit));
	ssize_t sent = send(s->fd, bytes, sizeof bytes, 0);
	say(s, "a part was sent: %d", sent > 0 && sent < (ssize_t)sizeof bytes);
	fill(s, bytes, 65536);
	SAY(send(s->fd, bytes, 65536, 0));
	meet(s);
}

static void send_limit_server(struct side *s)
{
	meet(s);
}

static void small_buffer_client(struct side *s)
{
	static char bytes[1 << 20];
	meet(s);
	pattern(bytes, sizeof bytes, 7);
	SAY(send_all(s->fd, bytes, sizeof bytes));
	MUST(shutdown(s->fd, SHUT_WR));
}

static void small_buffer_server(struct side *s)
{
	int size = 65536;
	socklen_t length = sizeof size;
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &size, sizeof size));
	SAY(getsockopt(s->fd, SOL_SOCKET, SO_RCVBUF, &size, &length));
	say(s, "room: %d", size);
	meet(s);
	receive_to_end(s, s->fd);
}

const struct test_case waiting_cases[] = {
	{ "mixed", ANYWHERE, false, mixed_server, mixed_client, "`poll`, `ppoll`, `select`, `pselect` of a connection and pipes" },
	{ "many", ANYWHERE, false, many_server, many_client, "`poll` of several connections" },
	{ "poll_end", ANYWHERE, false, poll_end_server, poll_end_client, "`POLLRDHUP`, `POLLHUP`" },
	{ "full", ANYWHERE, false, full_server, full_client, "a full connection: `EAGAIN`, `POLLOUT`, `SO_SNDBUF`" },
	{ "blocked", ANYWHERE, false, blocked_server, blocked_client, "one `send` of 20 MB that waits for its reader" },
	{ "send_limit", ANYWHERE, false, send_limit_server, send_limit_client, "`SO_SNDTIMEO`" },
	{ "small_buffer", ANYWHERE, false, small_buffer_server, small_buffer_client, "`SO_RCVBUF`" },
	{ 0 },
};

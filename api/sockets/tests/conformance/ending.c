/* How connections end: half-close, reset, lingering, programs that end. */
#include "conformance.h"

#define MANY (3 << 20)

static void send_many(struct side *s, unsigned seed)
{
	char *bytes = malloc(MANY);
	pattern(bytes, MANY, seed);
	say(s, "sent: %ld", send_all(s->fd, bytes, MANY));
	free(bytes);
}

static void half_close_client(struct side *s)
{
	send_many(s, 1);
	SAY(shutdown(s->fd, SHUT_WR));
	SAY(send(s->fd, "x", 1, MSG_NOSIGNAL));
	receive_to_end(s, s->fd);
}

static void half_close_server(struct side *s)
{
	char byte;
	receive_to_end(s, s->fd);
	SAY(recv(s->fd, &byte, 1, 0));
	say_events(s, "ready", ready_now(s->fd, POLLIN | POLLOUT | POLLRDHUP));
	send_many(s, 2);
	SAY(shutdown(s->fd, SHUT_WR));
	wait_ready(s->fd, 0);
	/* Whether a stream of AF_UNIX is writable depends on what the other side has taken. */
	wait_taken(s->fd);
	say_events(s, "ready", ready_now(s->fd, POLLIN | POLLOUT | POLLRDHUP));
}

static void shut_reading_client(struct side *s)
{
	SAY(send_all(s->fd, "unread", 6));
	meet(s);
	meet(s);
	SAY(send_all(s->fd, "later", 5));
	meet(s);
	meet(s);
}

static void shut_reading_server(struct side *s)
{
	char bytes[16];
	wait_unread(s->fd, 6);
	meet(s);
	SAY(shutdown(s->fd, SHUT_RD));
	say_bytes(s, "received", bytes, SAY(recv(s->fd, bytes, sizeof bytes, 0)));
	SAY(recv(s->fd, bytes, sizeof bytes, 0));
	say_events(s, "ready", ready_now(s->fd, POLLIN | POLLOUT | POLLRDHUP));
	meet(s);
	meet(s);
	wait_unread(s->fd, 5);
	say_bytes(s, "received", bytes, SAY(recv(s->fd, bytes, sizeof bytes, 0)));
	SAY(recv(s->fd, bytes, sizeof bytes, 0));
	meet(s);
}

static void drain_client(struct side *s)
{
	send_many(s, 3);
	SAY(close(s->fd));
	s->fd = -1;
}

static void drain_server(struct side *s)
{
	char byte;
	receive_to_end(s, s->fd);
	SAY(recv(s->fd, &byte, 1, 0));
	SAY(recv(s->fd, &byte, 1, MSG_DONTWAIT));
}

static void gone_client(struct side *s)
{
	SAY(close(s->fd));
	s->fd = -1;
	meet(s);
}

static int pipe_signals;

static void on_pipe(int signal)
{
	(void)signal;
	pipe_signals++;
}

static void gone_server(struct side *s)
{
	char byte;
	struct iovec part = { "x", 1 };
	struct sigaction action = { .sa_handler = on_pipe }, before;
	MUST(sigaction(SIGPIPE, &action, &before));
	meet(s);
	SAY(recv(s->fd, &byte, 1, 0));
	/* The first is answered with a reset. */
	SAY(send(s->fd, "x", 1, 0));
	say_events(s, "ready", wait_ready(s->fd, 0));
	SAY(send(s->fd, "x", 1, 0));
	say(s, "signals: %d", pipe_signals);
	SAY(write(s->fd, "x", 1));
	say(s, "signals: %d", pipe_signals);
	SAY(writev(s->fd, &part, 1));
	say(s, "signals: %d", pipe_signals);
	SAY(send(s->fd, "x", 1, MSG_NOSIGNAL));
	say(s, "signals: %d", pipe_signals);
	SAY(recv(s->fd, &byte, 1, 0));
	MUST(sigaction(SIGPIPE, &before, NULL));
}

static void say_error(struct side *s, int fd)
{
	int error = -1;
	socklen_t length = sizeof error;
	SAY(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length));
	say(s, "error: %s", error > 0 ? strerrorname_np(error) : "none");
}

static void reset_unread_client(struct side *s)
{
	MUST(send_all(s->fd, "answer", 6));
	wait_unread(s->fd, 8);
	meet(s);
	SAY(close(s->fd));
	s->fd = -1;
	meet(s);
}

static void reset_unread_server(struct side *s)
{
	char bytes[16];
	MUST(send_all(s->fd, "question", 8));
	meet(s);
	meet(s);
	say_events(s, "ready", wait_ready(s->fd, POLLIN | POLLHUP));
	say_bytes(s, "received", bytes, SAY(recv(s->fd, bytes, sizeof bytes, 0)));
	SAY(recv(s->fd, bytes, sizeof bytes, 0));
	SAY(recv(s->fd, bytes, sizeof bytes, 0));
	SAY(send(s->fd, "x", 1, MSG_NOSIGNAL));
}

static void reset_error_server(struct side *s)
{
	char bytes[16];
	MUST(send_all(s->fd, "question", 8));
	meet(s);
	meet(s);
	wait_ready(s->fd, POLLHUP);
	say_error(s, s->fd);
	say_error(s, s->fd);
	say_bytes(s, "received", bytes, SAY(recv(s->fd, bytes, sizeof bytes, 0)));
	SAY(recv(s->fd, bytes, sizeof bytes, 0));
}

static void linger_none_client(struct side *s)
{
	struct linger none = { .l_onoff = 1 };
	wait_unread(s->fd, 8);
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &none, sizeof none));
	char bytes[8];
	SAY(receive_all(s->fd, bytes, sizeof bytes));
	meet(s);
	SAY(close(s->fd));
	s->fd = -1;
	meet(s);
}

static void linger_some_client(struct side *s)
{
	struct linger some = { .l_onoff = 1, .l_linger = 60 };
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_LINGER, &some, sizeof some));
	send_many(s, 4);
	SAY(close(s->fd));
	s->fd = -1;
}

static void exit_client(struct side *s)
{
	send_many(s, 5);
	flush(s);
	_exit(7);
}

static void exit_server(struct side *s)
{
	s->is_left_alone = true;
	receive_to_end(s, s->fd);
}

static void killed_client(struct side *s)
{
	SAY(send_all(s->fd, "last words", 10));
	flush(s);
	kill(getpid(), SIGKILL);
}

static void killed_unread_client(struct side *s)
{
	SAY(send_all(s->fd, "last words", 10));
	wait_unread(s->fd, 8);
	flush(s);
	kill(getpid(), SIGKILL);
}

static void killed_unread_server(struct side *s)
{
	s->is_left_alone = true;
	MUST(send_all(s->fd, "question", 8));
	say_events(s, "ready", wait_ready(s->fd, POLLHUP));
	receive_to_end(s, s->fd);
}

static void end_wakes_client(struct side *s)
{
	hear(s);
	wait_asleep(s);
	SAY(shutdown(s->fd, SHUT_WR));
	meet(s);
}

static void end_wakes_server(struct side *s)
{
	char byte;
	tell(s);
	SAY(recv(s->fd, &byte, 1, 0));
	meet(s);
}

const struct test_case ending_cases[] = {
	{ "half_close", ANYWHERE, false, half_close_server, half_close_client, "`shutdown(SHUT_WR)`, then reading to the end; both ways" },
	{ "shut_reading", ANYWHERE, false, shut_reading_server, shut_reading_client, "`shutdown(SHUT_RD)`" },
	{ "drain", ANYWHERE, false, drain_server, drain_client, "everything is read before the end" },
	{ "gone", ANYWHERE, false, gone_server, gone_client, "sending to a peer that has closed: `EPIPE`, `SIGPIPE`, `MSG_NOSIGNAL`" },
	{ "reset_unread", ANYWHERE, false, reset_unread_server, reset_unread_client, "close with unread data: reset" },
	{ "reset_error", ANYWHERE, false, reset_error_server, reset_unread_client, "`SO_ERROR` of a connection that was reset" },
	{ "linger_none", ANYWHERE, false, reset_unread_server, linger_none_client, "`SO_LINGER` of no time: reset" },
	{ "linger_some", ANYWHERE, false, drain_server, linger_some_client, "`SO_LINGER`: close waits" },
	{ "exit", TWO_PROCESSES, false, exit_server, exit_client, "a program that exits behind its last byte" },
	{ "killed", TWO_PROCESSES, false, exit_server, killed_client, "a program that is killed" },
	{ "killed_unread", TWO_PROCESSES, false, killed_unread_server, killed_unread_client, "a program that is killed with unread data" },
	{ "end_wakes", ANYWHERE, false, end_wakes_server, end_wakes_client, "the end wakes a receive" },
	{ 0 },
};

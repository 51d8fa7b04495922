/* Numbers of descriptors: copies, passing to others, streams of C, closing and using again. */
#include "conformance.h"

#include <linux/close_range.h>

static void exchanging_client(struct side *s)
{
	for (int i = 0; i < 12; i++)
		exchange(s, s->fd);
	SAY(shutdown(s->fd, SHUT_WR));
	receive_to_end(s, s->fd);
}

static void copy_by(struct side *s, int copy)
{
	char byte;
	for (int i = 0; i < 4; i++)
		exchange(s, i % 2 ? s->fd : copy);
	SAY(close(s->fd));
	for (int i = 0; i < 4; i++)
		exchange(s, copy);
	s->fd = MUST(fcntl(copy, F_DUPFD, 100));
	say(s, "at least: %d", s->fd >= 100);
	SAY(close(copy));
	for (int i = 0; i < 4; i++)
		exchange(s, s->fd);
	SAY(recv(s->fd, &byte, 1, 0));
}

static void dup_server(struct side *s)
{
	copy_by(s, MUST(dup(s->fd)));
}

static void dup2_server(struct side *s)
{
	int number = MUST(open("/dev/null", O_RDONLY));
	say(s, "the number: %d", dup2(s->fd, number) == number);
	SAY(dup2(s->fd, s->fd) - s->fd);
	copy_by(s, number);
}

static void dup3_server(struct side *s)
{
	int number = MUST(open("/dev/null", O_RDONLY));
	SAY(dup3(s->fd, s->fd, 0));
	say(s, "the number: %d", dup3(s->fd, number, O_CLOEXEC) == number);
	SAY(fcntl(number, F_GETFD));
	copy_by(s, number);
}

static void dup_fcntl_server(struct side *s)
{
	int copy = MUST(fcntl(s->fd, F_DUPFD_CLOEXEC, 50));
	SAY(fcntl(copy, F_GETFD));
	copy_by(s, copy);
}

static void dup_over_client(struct side *s)
{
	int other = connect_warm(s);
	SAY(send_all(s->fd, "unread", 6));
	meet(s);
	receive_to_end(s, s->fd);
	exchange(s, other);
	close(other);
}

/* Another connection is put over the number of one. */
static void dup_over_server(struct side *s)
{
	int other = accept_warm(s);
	wait_unread(s->fd, 6);
	meet(s);
	say(s, "the number: %d", dup2(other, s->fd) == s->fd);
	SAY(close(other));
	exchange(s, s->fd);
}

static void used_again_client(struct side *s)
{
	exchange(s, s->fd);
	receive_to_end(s, s->fd);
	int other = connect_warm(s);
	exchange(s, other);
	receive_to_end(s, other);
	close(other);
}

static void used_again_server(struct side *s)
{
	int number = s->fd;
	exchange(s, s->fd);
	SAY(close(s->fd));
	SAY(close(number));
	SAY(send(number, "x", 1, MSG_NOSIGNAL));
	SAY(recv(number, &number, 1, 0));
	s->fd = accept_warm(s);
	say(s, "the number again: %d", s->fd == number);
	exchange(s, s->fd);
	int file = MUST(open("/dev/null", O_RDWR | O_CLOEXEC));
	SAY(dup2(file, s->fd) - s->fd);
	SAY(write(s->fd, "x", 1));
	SAY(read(s->fd, &number, 1));
	SAY(send(s->fd, "x", 1, MSG_NOSIGNAL));
	close(file);
}

static void close_range_client(struct side *s)
{
	int other = connect_warm(s);
	receive_to_end(s, other);
	for (int i = 0; i < 4; i++)
		exchange(s, s->fd);
	close(other);
}

static void close_range_server(struct side *s)
{
	int other = accept_warm(s);
	SAY(close_range(other, other, 0));
	SAY(send(other, "x", 1, MSG_NOSIGNAL));
	SAY(close_range(s->fd, s->fd, CLOSE_RANGE_CLOEXEC));
	SAY(fcntl(s->fd, F_GETFD));
	for (int i = 0; i < 4; i++)
		exchange(s, s->fd);
}

/* Numbers that are not the program's, those of the library among them: each is closed, or is a pipe's that nothing comes by. */
static void take_others(struct side *s, int set, bool by_pipe)
{
	const int own[] = { s->fd, s->listener, s->to_other, s->from_other, s->memory, s->out ? fileno(s->out) : -1, set };
	int ways[2];
	MUST(pipe(ways));
	for (int number = 3; number < 9000; number++) {
		bool is_own = number == ways[0] || number == ways[1];
		for (size_t i = 0; i < sizeof own / sizeof *own; i++)
			is_own |= number == own[i];
		if (!is_own && fcntl(number, F_GETFD) >= 0) {
			if (by_pipe)
				MUST(dup2(ways[0], number));
			else
				close(number);
		}
	}
}

/* A message for each way of waiting, which comes when the server sleeps. */
enum { WAYS = 3, ROUNDS = 4 };

static void send_to_sleepers_client(struct side *s)
{
	for (int i = 0; i < ROUNDS * WAYS; i++) {
		hear(s);
		wait_asleep(s);
		SAY(send_all(s->fd, "news", 4));
	}
	exchange(s, s->fd);
}

static void sleep_each_way(struct side *s, int set)
{
	char bytes[4];
	for (int i = 0; i < WAYS; i++) {
		tell(s);
		if (i == 1)
			wait_readable(s->fd);
		if (i == 2)
			say_ready(s, set, -1);
		SAY(receive_all(s->fd, bytes, sizeof bytes));
	}
}

static void numbers_taken_server(struct side *s, bool by_pipe)
{
	struct epoll_event event = { EPOLLIN, { .u64 = 5 } };
	int set = MUST(epoll_create1(EPOLL_CLOEXEC));
	MUST(epoll_ctl(set, EPOLL_CTL_ADD, s->fd, &event));
	for (int i = 0; i < ROUNDS; i++) {
		if (i == 1)
			take_others(s, set, by_pipe);
		sleep_each_way(s, set);
	}
	exchange(s, s->fd);
}

static void others_closed_server(struct side *s)
{
	numbers_taken_server(s, false);
}

static void others_replaced_server(struct side *s)
{
	numbers_taken_server(s, true);
}

void put_number(int by, int fd)
{
	char room[CMSG_SPACE(sizeof fd)] = { 0 };
	struct iovec part = { "n", 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
	struct cmsghdr *head = CMSG_FIRSTHDR(&message);
	head->cmsg_level = SOL_SOCKET;
	head->cmsg_type = SCM_RIGHTS;
	head->cmsg_len = CMSG_LEN(sizeof fd);
	memcpy(CMSG_DATA(head), &fd, sizeof fd);
	MUST(sendmsg(by, &message, 0));
}

int take_number(int by)
{
	int fd = -1;
	char byte, room[CMSG_SPACE(sizeof fd)];
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room };
	MUST(recvmsg(by, &message, MSG_CMSG_CLOEXEC));
	memcpy(&fd, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof fd);
	return fd;
}

/* To a process that was forked before, and back from it. */
static void passed_server(struct side *s)
{
	int ends[2], inner;
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	pid_t helper = MUST(fork());
	if (helper == 0) {
		close(ends[0]);
		inner = take_number(ends[1]);
		for (int i = 0; i < 4; i++)
			exchange(s, inner);
		put_number(ends[1], inner);
		_exit(3);
	}
	s->fd = accept_warm(s);
	for (int i = 0; i < 4; i++)
		exchange(s, s->fd);
	put_number(ends[0], s->fd);
	SAY(close(s->fd));
	s->fd = take_number(ends[0]);
	for (int i = 0; i < 4; i++)
		exchange(s, s->fd);
	say_child(s, "helper", helper);
	char byte;
	SAY(recv(s->fd, &byte, 1, 0));
	close(ends[0]);
	close(ends[1]);
}

static void passed_client(struct side *s)
{
	s->fd = connect_warm(s);
	exchanging_client(s);
}

/* A connection with unread bytes, while the sender keeps it. */
static void passed_unread_server(struct side *s)
{
	int ends[2];
	char byte;
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	wait_unread(s->fd, 200);
	put_number(ends[0], s->fd);
	int other = take_number(ends[1]);
	for (int i = 0; i < 12; i++)
		exchange(s, i % 2 ? s->fd : other);
	SAY(close(other));
	SAY(recv(s->fd, &byte, 1, 0));
	close(ends[0]);
	close(ends[1]);
}

static void stream_client(struct side *s)
{
	char line[64];
	for (int i = 0; i < 100; i++) {
		int bytes = snprintf(line, sizeof line, "line %d\n", i);
		MUST(send_all(s->fd, line, bytes));
		if (receive_all(s->fd, line, 7) != 7 || memcmp(line, "answer\n", 7) != 0)
			say(s, "no answer to line %d", i);
	}
	SAY(shutdown(s->fd, SHUT_WR));
	receive_to_end(s, s->fd);
}

static void stream_server(struct side *s)
{
	char line[64];
	int lines = 0, copy = MUST(dup(s->fd));
	FILE *in = fdopen(s->fd, "r"), *out = fdopen(copy, "w");
	while (fgets(line, sizeof line, in)) {
		lines++;
		fputs("answer\n", out);
		fflush(out);
	}
	say(s, "lines: %d, last: %s", lines, strtok(line, "\n"));
	say(s, "end: %d", feof(in) != 0);
	fprintf(out, "%d lines\n", lines);
	SAY(fclose(out));
	SAY(fclose(in));
	s->fd = -1;
}

/* One stream for both, without a buffer and with one. */
static void stream_both_server(struct side *s)
{
	char line[64];
	int lines = 0;
	FILE *both = fdopen(s->fd, "r+");
	setvbuf(both, NULL, _IONBF, 0);
	while (fgets(line, sizeof line, both)) {
		lines++;
		fputs("answer\n", both);
	}
	dprintf(fileno(both), "%d lines\n", lines);
	SAY(fclose(both));
	int number = MUST(open("/dev/null", O_RDWR | O_CLOEXEC));
	say(s, "the number again: %d", number == s->fd);
	SAY(write(number, "x", 1));
	SAY(send(number, "x", 1, MSG_NOSIGNAL));
	close(number);
	s->fd = -1;
}

const struct test_case numbers_cases[] = {
	{ "dup", ANYWHERE, false, dup_server, exchanging_client, "`dup`, `F_DUPFD`" },
	{ "dup2", ANYWHERE, false, dup2_server, exchanging_client, "`dup2`" },
	{ "dup3", ANYWHERE, false, dup3_server, exchanging_client, "`dup3`" },
	{ "dup_fcntl", ANYWHERE, false, dup_fcntl_server, exchanging_client, "`F_DUPFD_CLOEXEC`" },
	{ "dup_over", ANYWHERE, false, dup_over_server, dup_over_client, "`dup2` of a connection over another one with unread bytes" },
	{ "used_again", TWO_PROCESSES, false, used_again_server, used_again_client, "a number that is closed and used again" },
	{ "close_range", ANYWHERE, false, close_range_server, close_range_client, "`close_range`" },
	{ "others_closed", TWO_PROCESSES, false, others_closed_server, send_to_sleepers_client, "`close` of every number that the program does not know" },
	{ "others_replaced", TWO_PROCESSES, false, others_replaced_server, send_to_sleepers_client, "`dup2` over every number that the program does not know" },
	{ "passed", TWO_PROCESSES, true, passed_server, passed_client, "`SCM_RIGHTS` to another process and back" },
	{ "passed_unread", ANYWHERE, false, passed_unread_server, exchanging_client, "`SCM_RIGHTS` with unread bytes" },
	{ "stream", ANYWHERE, false, stream_server, stream_client, "`fdopen`, `fgets`, `fputs`, `fclose`" },
	{ "stream_both", TWO_PROCESSES, false, stream_both_server, stream_client, "`fdopen` for both, `dprintf`, the number used again" },
	{ 0 },
};

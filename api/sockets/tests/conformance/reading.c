/* Flags of receiving and sending, counts of what is unread, time limits. */
#include "conformance.h"

#include <linux/sockios.h>

static void send_text(struct side *s, const char *text)
{
	MUST(send_all(s->fd, text, strlen(text)));
}

static void peek_client(struct side *s)
{
	send_text(s, "first");
	meet(s);
	send_text(s, "second");
	meet(s);
}

static void peek_server(struct side *s)
{
	char bytes[64];
	wait_unread(s->fd, 5);
	say_bytes(s, "peeked", bytes, SAY(recv(s->fd, bytes, sizeof bytes, MSG_PEEK)));
	say_bytes(s, "peeked in part", bytes, SAY(recv(s->fd, bytes, 2, MSG_PEEK)));
	say_bytes(s, "received in part", bytes, SAY(recv(s->fd, bytes, 2, 0)));
	say_bytes(s, "peeked", bytes, SAY(recv(s->fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT)));
	meet(s);
	wait_unread(s->fd, 9);
	say_bytes(s, "peeked", bytes, SAY(recv(s->fd, bytes, sizeof bytes, MSG_PEEK)));
	say_bytes(s, "received", bytes, SAY(recv(s->fd, bytes, sizeof bytes, 0)));
	SAY(recv(s->fd, bytes, sizeof bytes, MSG_PEEK | MSG_DONTWAIT));
	meet(s);
}

static void waitall_client(struct side *s)
{
	char bytes[1000];
	pattern(bytes, sizeof bytes, 1);
	for (int i = 0; i < 10; i++) {
		MUST(send_all(s->fd, bytes + 100 * i, 100));
		if (i % 3 == 0)
			wait_asleep(s);
	}
	meet(s);
	MUST(send_all(s->fd, bytes, 300));
	MUST(shutdown(s->fd, SHUT_WR));
	meet(s);
}

static void waitall_server(struct side *s)
{
	char bytes[1000];
	say_bytes(s, "all", bytes, SAY(recv(s->fd, bytes, sizeof bytes, MSG_WAITALL)));
	meet(s);
	say_bytes(s, "all that came before the end", bytes, SAY(recv(s->fd, bytes, sizeof bytes, MSG_WAITALL)));
	SAY(recv(s->fd, bytes, sizeof bytes, MSG_WAITALL));
	meet(s);
}

static void waitall_peek_server(struct side *s)
{
	char bytes[1000];
	wait_unread(s->fd, 1000);
	say_bytes(s, "peeked", bytes, SAY(recv(s->fd, bytes, 700, MSG_WAITALL | MSG_PEEK)));
	say_bytes(s, "received", bytes, SAY(recv(s->fd, bytes, 1000, MSG_WAITALL | MSG_DONTWAIT)));
	SAY(recv(s->fd, bytes, 1000, MSG_WAITALL | MSG_DONTWAIT));
	meet(s);
	receive_to_end(s, s->fd);
	meet(s);
}

static void dontwait_client(struct side *s)
{
	meet(s);
	send_text(s, "abc");
	meet(s);
	meet(s);
}

static void dontwait_server(struct side *s)
{
	char bytes[8];
	struct iovec part = { bytes, sizeof bytes };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	SAY(recv(s->fd, bytes, sizeof bytes, MSG_DONTWAIT));
	SAY(recvfrom(s->fd, bytes, sizeof bytes, MSG_DONTWAIT, NULL, NULL));
	SAY(recvmsg(s->fd, &message, MSG_DONTWAIT));
	SAY(recv(s->fd, bytes, 0, MSG_DONTWAIT));
	set_nonblocking(s->fd, true);
	SAY(read(s->fd, bytes, sizeof bytes));
	SAY(readv(s->fd, &part, 1));
	set_nonblocking(s->fd, false);
	int one = 1;
	SAY(ioctl(s->fd, FIONBIO, &one));
	SAY(read(s->fd, bytes, sizeof bytes));
	one = 0;
	SAY(ioctl(s->fd, FIONBIO, &one));
	meet(s);
	wait_unread(s->fd, 3);
	say_bytes(s, "received", bytes, SAY(recv(s->fd, bytes, sizeof bytes, MSG_DONTWAIT)));
	SAY(recv(s->fd, bytes, sizeof bytes, MSG_DONTWAIT));
	meet(s);
	meet(s);
}

static void trunc_client(struct side *s)
{
	send_text(s, "thrown away, kept");
	meet(s);
}

static void trunc_server(struct side *s)
{
	char bytes[64] = "untouched";
	wait_unread(s->fd, 17);
	SAY(recv(s->fd, bytes, 13, MSG_TRUNC));
	say(s, "%s", bytes);
	say_bytes(s, "received", bytes, SAY(recv(s->fd, bytes, sizeof bytes, 0)));
	SAY(recv(s->fd, NULL, 10, MSG_TRUNC | MSG_DONTWAIT));
	meet(s);
}

static void nothing_client(struct side *s)
{
	SAY(send(s->fd, "", 0, 0));
	SAY(write(s->fd, "", 0));
	send_text(s, "x");
	meet(s);
}

static void nothing_server(struct side *s)
{
	char byte = 0;
	wait_readable(s->fd);
	SAY(recv(s->fd, &byte, 0, 0));
	SAY(read(s->fd, &byte, 0));
	SAY(recv(s->fd, &byte, 1, 0));
	SAY(recv(s->fd, (void *)8, 4, MSG_DONTWAIT));
	meet(s);
}

static void bad_address_client(struct side *s)
{
	SAY(send(s->fd, (void *)8, 4, MSG_NOSIGNAL));
	send_text(s, "after");
	meet(s);
}

static void bad_address_server(struct side *s)
{
	char bytes[8];
	wait_unread(s->fd, 5);
	SAY(recv(s->fd, (void *)8, 4, 0));
	say_bytes(s, "received", bytes, SAY(recv(s->fd, bytes, sizeof bytes, 0)));
	meet(s);
}

static void out_of_band_client(struct side *s)
{
	send_text(s, "before");
	SAY(send(s->fd, "!", 1, MSG_OOB));
	send_text(s, "behind");
	meet(s);
	SAY(send(s->fd, "?", 1, MSG_OOB));
	meet(s);
}

static void out_of_band_server(struct side *s)
{
	char bytes[32];
	int is_at_mark = -1, one = 1;
	say_events(s, "ready", wait_ready(s->fd, POLLPRI) & POLLPRI);
	SAY(ioctl(s->fd, SIOCATMARK, &is_at_mark));
	say(s, "at the mark: %d", is_at_mark);
	wait_unread(s->fd, 6);
	say_bytes(s, "up to the mark", bytes, SAY(recv(s->fd, bytes, sizeof bytes, 0)));
	SAY(ioctl(s->fd, SIOCATMARK, &is_at_mark));
	say(s, "at the mark: %d", is_at_mark);
	say_bytes(s, "out of band", bytes, SAY(recv(s->fd, bytes, 1, MSG_OOB)));
	SAY(recv(s->fd, bytes, 1, MSG_OOB));
	say_bytes(s, "behind the mark", bytes, SAY(receive_all(s->fd, bytes, 6)));
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_OOBINLINE, &one, sizeof one));
	meet(s);
	wait_readable(s->fd);
	say_bytes(s, "in line", bytes, SAY(recv(s->fd, bytes, sizeof bytes, 0)));
	meet(s);
}

static void unread_client(struct side *s)
{
	char bytes[5000] = { 0 };
	int unsent = -1;
	MUST(send_all(s->fd, bytes, sizeof bytes));
	hear(s);
	/* The other end has them all: nothing is left to be acknowledged, whether the program there has read it or not. */
	for (int looks = 0; looks < 2000 && unsent != 0; looks++) {
		MUST(ioctl(s->fd, SIOCOUTQ, &unsent));
		poll(NULL, 0, 1);
	}
	say(s, "not acknowledged: %d", unsent);
	MUST(ioctl(s->fd, SIOCOUTQNSD, &unsent));
	say(s, "not sent: %d", unsent);
	meet(s);
}

static void unread_server(struct side *s)
{
	char bytes[5000];
	int unread = -1;
	wait_unread(s->fd, 5000);
	SAY(ioctl(s->fd, FIONREAD, &unread));
	say(s, "unread: %d", unread);
	tell(s);
	meet(s);
	SAY(recv(s->fd, bytes, 1200, 0));
	SAY(ioctl(s->fd, FIONREAD, &unread));
	say(s, "unread: %d", unread);
	SAY(recv(s->fd, bytes, sizeof bytes, 0));
	SAY(ioctl(s->fd, FIONREAD, &unread));
	say(s, "unread: %d", unread);
}

static void limits_client(struct side *s)
{
	meet(s);
	send_text(s, "in time");
	meet(s);
}

static void limits_server(struct side *s)
{
	char bytes[16];
	struct timeval limit = { .tv_usec = 20000 }, found;
	struct iovec part = { bytes, sizeof bytes };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	socklen_t length = sizeof found;
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
	SAY(getsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &found, &length));
	say(s, "%ld s", (long)found.tv_sec);
	SAY(recv(s->fd, bytes, sizeof bytes, 0));
	SAY(read(s->fd, bytes, sizeof bytes));
	SAY(readv(s->fd, &part, 1));
	SAY(recvmsg(s->fd, &message, 0));
	SAY(recv(s->fd, bytes, sizeof bytes, MSG_WAITALL));
	limit = (struct timeval){ .tv_sec = 60 };
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
	meet(s);
	say_bytes(s, "received", bytes, SAY(recv(s->fd, bytes, sizeof bytes, 0)));
	limit.tv_sec = 0;
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
	limit.tv_usec = 1000000;
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
	meet(s);
}

static void waitall_limit_client(struct side *s)
{
	send_text(s, "part");
	meet(s);
}

static void waitall_limit_server(struct side *s)
{
	char bytes[16];
	struct timeval limit = { .tv_usec = 200000 };
	wait_unread(s->fd, 4);
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
	say_bytes(s, "what came in time", bytes, SAY(recv(s->fd, bytes, sizeof bytes, MSG_WAITALL)));
	meet(s);
}

static void low_water_client(struct side *s)
{
	send_text(s, "1234");
	meet(s);
	send_text(s, "5678");
	meet(s);
}

static void low_water_server(struct side *s)
{
	char bytes[16];
	int least = 8;
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_RCVLOWAT, &least, sizeof least));
	wait_unread(s->fd, 4);
	say_events(s, "with four bytes", ready_now(s->fd, POLLIN));
	meet(s);
	say_events(s, "ready", wait_ready(s->fd, POLLIN));
	say_bytes(s, "received", bytes, SAY(recv(s->fd, bytes, sizeof bytes, 0)));
	meet(s);
}

const struct test_case reading_cases[] = {
	{ "peek", ANYWHERE, false, peek_server, peek_client, "`MSG_PEEK`" },
	{ "waitall", ANYWHERE, false, waitall_server, waitall_client, "`MSG_WAITALL`, also at the end" },
	{ "waitall_peek", ANYWHERE, false, waitall_peek_server, waitall_client, "`MSG_WAITALL` with `MSG_PEEK`, with `MSG_DONTWAIT`" },
	{ "dontwait", ANYWHERE, false, dontwait_server, dontwait_client, "`MSG_DONTWAIT`, `O_NONBLOCK`, `FIONBIO`" },
	{ "trunc", ANYWHERE, false, trunc_server, trunc_client, "`MSG_TRUNC`" },
	{ "nothing", ANYWHERE, false, nothing_server, nothing_client, "calls for no bytes" },
	{ "bad_address", ANYWHERE, false, bad_address_server, bad_address_client, "buffers at null and near it: `EFAULT`" },
	{ "out_of_band", ANYWHERE, false, out_of_band_server, out_of_band_client, "`MSG_OOB`, `SIOCATMARK`, `SO_OOBINLINE`" },
	{ "unread", ANYWHERE, false, unread_server, unread_client, "`FIONREAD`, `SIOCOUTQ`" },
	{ "limits", ANYWHERE, false, limits_server, limits_client, "`SO_RCVTIMEO`" },
	{ "waitall_limit", ANYWHERE, false, waitall_limit_server, waitall_limit_client, "`SO_RCVTIMEO` with `MSG_WAITALL`" },
	{ "low_water", ANYWHERE, false, low_water_server, low_water_client, "`SO_RCVLOWAT`" },
	{ 0 },
};

/* Options, names and states. */
#include "conformance.h"

#include <linux/errqueue.h>
#include <termios.h>

static void end_client(struct side *s)
{
	meet(s);
	SAY(shutdown(s->fd, SHUT_WR));
	meet(s);
}

static void say_option(struct side *s, const char *name, int level, int option)
{
	int value = -1;
	socklen_t length = sizeof value;
	int gave = getsockopt(s->fd, level, option, &value, &length);
	if (gave < 0)
		say(s, "%s: %s", name, strerrorname_np(errno));
	else
		say(s, "%s: %d of %u bytes", name, value, length);
}

static void set_option(struct side *s, const char *name, int level, int option, int value)
{
	int gave = setsockopt(s->fd, level, option, &value, sizeof value);
	say(s, "%s := %d: %s", name, value, gave < 0 ? strerrorname_np(errno) : "set");
	say_option(s, name, level, option);
}

#define SAY_OPTION(level, option) say_option(s, #option, level, option)
#define SET_OPTION(level, option, value) set_option(s, #option, level, option, value)

static void options_client(struct side *s)
{
	for (int i = 0; i < 3; i++)
		exchange(s, s->fd);
	meet(s);
}

static void options_server(struct side *s)
{
	SAY_OPTION(SOL_SOCKET, SO_TYPE);
	SAY_OPTION(SOL_SOCKET, SO_DOMAIN);
	SAY_OPTION(SOL_SOCKET, SO_PROTOCOL);
	SAY_OPTION(SOL_SOCKET, SO_ACCEPTCONN);
	SAY_OPTION(SOL_SOCKET, SO_ERROR);
	SAY_OPTION(SOL_SOCKET, SO_REUSEADDR);
	SET_OPTION(SOL_SOCKET, SO_KEEPALIVE, 1);
	SET_OPTION(IPPROTO_TCP, TCP_NODELAY, 1);
	exchange(s, s->fd);
	SET_OPTION(IPPROTO_TCP, TCP_KEEPIDLE, 100);
	SET_OPTION(IPPROTO_TCP, TCP_KEEPINTVL, 10);
	SET_OPTION(IPPROTO_TCP, TCP_KEEPCNT, 4);
	SET_OPTION(IPPROTO_TCP, TCP_USER_TIMEOUT, 50000);
	SET_OPTION(SOL_SOCKET, SO_PRIORITY, 3);
	SET_OPTION(IPPROTO_IP, IP_TOS, 16);
	SET_OPTION(IPPROTO_IP, IP_TTL, 33);
	SET_OPTION(SOL_SOCKET, SO_SNDBUF, 200000);
	SET_OPTION(SOL_SOCKET, SO_RCVBUF, 100000);
	exchange(s, s->fd);
	SET_OPTION(IPPROTO_TCP, TCP_QUICKACK, 1);
	SET_OPTION(IPPROTO_TCP, TCP_CORK, 1);
	SET_OPTION(IPPROTO_TCP, TCP_CORK, 0);
	SET_OPTION(SOL_SOCKET, 9999, 1);
	SET_OPTION(IPPROTO_TCP, 9999, 1);
	SET_OPTION(IPPROTO_UDP, 1, 1);
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_KEEPALIVE, NULL, 4));
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_KEEPALIVE, "", 1));
	exchange(s, s->fd);
	meet(s);
}

static void info_server(struct side *s)
{
	struct tcp_info info = { 0 };
	socklen_t length = sizeof info;
	char byte;
	SAY(getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, &info, &length));
	say(s, "state: %d, whole: %d", info.tcpi_state, length == sizeof info);
	meet(s);
	SAY(recv(s->fd, &byte, 1, 0));
	SAY(getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, &info, &length));
	say(s, "state: %d", info.tcpi_state);
	length = 1;
	SAY(getsockopt(s->fd, IPPROTO_TCP, TCP_INFO, &info, &length));
	say(s, "%u byte, state: %d", length, info.tcpi_state);
	meet(s);
}

static void names_client(struct side *s)
{
	struct sockaddr_in own = { 0 }, other = { 0 };
	socklen_t length = sizeof own;
	SAY(getsockname(s->fd, (struct sockaddr *)&own, &length));
	SAY(getpeername(s->fd, (struct sockaddr *)&other, &length));
	say(s, "the listener: %d", other.sin_port == s->address.sin_port && other.sin_addr.s_addr == s->address.sin_addr.s_addr);
	MUST(send_all(s->fd, &own, sizeof own));
	MUST(send_all(s->fd, &other, sizeof other));
	meet(s);
	SAY(close(s->fd));
	s->fd = -1;
	meet(s);
}

static void names_server(struct side *s)
{
	struct sockaddr_in own = { 0 }, other = { 0 }, theirs[2];
	socklen_t length = sizeof own, small = 2;
	SAY(getsockname(s->fd, (struct sockaddr *)&own, &length));
	SAY(getpeername(s->fd, (struct sockaddr *)&other, &length));
	SAY(receive_all(s->fd, theirs, sizeof theirs));
	say(s, "mirrored: %d %d", memcmp(&other, &theirs[0], sizeof other) == 0, memcmp(&own, &theirs[1], sizeof own) == 0);
	SAY(getpeername(s->fd, (struct sockaddr *)&other, &small));
	say(s, "whole: %u", small);
	char byte;
	struct sockaddr_in from;
	socklen_t from_length = sizeof from;
	SAY(recvfrom(s->fd, &byte, 1, MSG_DONTWAIT, (struct sockaddr *)&from, &from_length));
	SAY(connect(s->fd, (struct sockaddr *)&other, sizeof other));
	SAY(bind(s->fd, (struct sockaddr *)&own, sizeof own));
	SAY(listen(s->fd, 1));
	SAY(accept(s->fd, NULL, NULL));
	meet(s);
	meet(s);
	SAY(recv(s->fd, &byte, 1, 0));
	SAY(getpeername(s->fd, (struct sockaddr *)&other, &length));
}

static void from_client(struct side *s)
{
	MUST(send_all(s->fd, "message", 7));
	struct sockaddr_in nowhere = { .sin_family = AF_INET, .sin_port = htons(9) };
	SAY(sendto(s->fd, "to", 2, 0, (struct sockaddr *)&nowhere, sizeof nowhere));
	meet(s);
}

static void from_server(struct side *s)
{
	char bytes[64], room[64];
	struct sockaddr_storage from = { 0 };
	socklen_t length = sizeof from;
	struct iovec part = { bytes, 3 };
	struct msghdr message = { .msg_name = &from, .msg_namelen = sizeof from, .msg_iov = &part, .msg_iovlen = 1,
		.msg_control = room, .msg_controllen = sizeof room, .msg_flags = -1 };
	wait_unread(s->fd, 9);
	say_bytes(s, "received", bytes, SAY(recvfrom(s->fd, bytes, 4, 0, (struct sockaddr *)&from, &length)));
	say(s, "address: %u bytes", length);
	say_bytes(s, "received", bytes, SAY(recvmsg(s->fd, &message, 0)));
	say(s, "address: %u bytes, control: %zu bytes, flags: %d", message.msg_namelen, message.msg_controllen, message.msg_flags);
	SAY(recv(s->fd, bytes, sizeof bytes, 0));
	meet(s);
}

static void zero_copy_client(struct side *s)
{
	static char bytes[100000];
	int one = 1, completions = 0;
	pattern(bytes, sizeof bytes, 1);
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_ZEROCOPY, &one, sizeof one));
	for (int i = 0; i < 4; i++)
		if (send(s->fd, bytes, sizeof bytes, MSG_ZEROCOPY) != sizeof bytes)
			say(s, "a part of %d", i);
	/* The kernel says that each is sent; several in one message. */
	while (completions < 4) {
		char room[256];
		struct msghdr message = { .msg_control = room, .msg_controllen = sizeof room };
		wait_ready(s->fd, 0);
		if (recvmsg(s->fd, &message, MSG_ERRQUEUE) < 0)
			continue;
		struct cmsghdr *head = CMSG_FIRSTHDR(&message);
		struct sock_extended_err *error = (void *)CMSG_DATA(head);
		if (error->ee_origin == SO_EE_ORIGIN_ZEROCOPY)
			completions += error->ee_data - error->ee_info + 1;
	}
	say(s, "completions: %d", completions);
	SAY(shutdown(s->fd, SHUT_WR));
}

static void zero_copy_server(struct side *s)
{
	receive_to_end(s, s->fd);
}

static void flags_client(struct side *s)
{
	meet(s);
}

static void flags_server(struct side *s)
{
	SAY(fcntl(s->fd, F_GETFL));
	SAY(fcntl(s->fd, F_SETFL, O_RDWR | O_NONBLOCK));
	SAY(fcntl(s->fd, F_GETFL));
	char byte;
	SAY(recv(s->fd, &byte, 1, 0));
	SAY(fcntl(s->fd, F_SETFL, O_RDWR));
	SAY(fcntl(s->fd, F_GETFD));
	SAY(fcntl(s->fd, F_SETFD, 0));
	SAY(fcntl(s->fd, F_SETFD, FD_CLOEXEC));
	SAY(fcntl(s->fd, 9999));
	SAY(lseek(s->fd, 0, SEEK_SET));
	SAY(pread(s->fd, &byte, 1, 0));
	SAY(pwrite(s->fd, &byte, 1, 0));
	SAY(fsync(s->fd));
	SAY(ioctl(s->fd, TCGETS, &byte));
	meet(s);
}

const struct test_case options_cases[] = {
	{ "options", ANYWHERE, false, options_server, options_client, "`getsockopt`, `setsockopt`" },
	{ "info", ANYWHERE, false, info_server, end_client, "`TCP_INFO`" },
	{ "names", ANYWHERE, false, names_server, names_client, "`getsockname`, `getpeername`; calls that a connection refuses" },
	{ "from", ANYWHERE, false, from_server, from_client, "`recvfrom`, `recvmsg` with an address, `sendto` with one" },
	{ "zero_copy", ANYWHERE, false, zero_copy_server, zero_copy_client, "`MSG_ZEROCOPY`, `MSG_ERRQUEUE`" },
	{ "flags", ANYWHERE, false, flags_server, flags_client, "`fcntl`; calls that no socket has" },
	{ 0 },
};

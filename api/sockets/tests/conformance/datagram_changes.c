/* What becomes of a socket of UDP that is connected, bound, shut down, closed or asked for more, and of those that send to it. */
#include "datagrams.h"

#include <netinet/udp.h>

static int error_of(int fd)
{
	int error = 0;
	socklen_t length = sizeof error;
	MUST(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length));
	return error;
}

static void refused_client(struct side *s)
{
	char bytes[8] = { 0 };
	struct name other;
	open_warm(s, AF_INET, true, &other);
	exchange(s, s->fd);
	meet(s);
	for (int i = 0; i < 4; i++) {
		SAY(send(s->fd, bytes, 4, 0));
		say_events(s, "behind a send", wait_ready(s->fd, 0));
		if (i == 0)
			say(s, "error %s", strerrorname_np(error_of(s->fd)));
		else if (i == 1)
			SAY(send(s->fd, bytes, 4, 0));
		else
			SAY(i == 2 ? recv(s->fd, bytes, 8, 0) : read(s->fd, bytes, 8));
		say_events(s, "behind it", ready_now(s->fd, POLLIN | POLLOUT));
	}
	SAY(recv(s->fd, bytes, 8, MSG_DONTWAIT));
	meet(s);
	hear(s);
	exchange(s, s->fd);
}

static void refused_server(struct side *s)
{
	struct name other, own = { .length = sizeof own.of };
	open_warm(s, AF_INET, true, &other);
	exchange(s, s->fd);
	MUST(getsockname(s->fd, (struct sockaddr *)&own.of, &own.length));
	SAY(close(s->fd));
	meet(s);
	meet(s);
	/* Another one with the address. */
	s->fd = MUST(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	SAY(bind(s->fd, (struct sockaddr *)&own.of, own.length));
	SAY(connect(s->fd, (struct sockaddr *)&other.of, other.length));
	tell(s);
	exchange(s, s->fd);
}

static void unconnected_client(struct side *s)
{
	char bytes[8] = { 0 };
	struct name other;
	open_warm(s, AF_INET, false, &other);
	meet(s);
	for (int i = 0; i < 3; i++)
		SAY(send_to(s->fd, &other, bytes, 4));
	SAY(recv(s->fd, bytes, 8, MSG_DONTWAIT));
	say(s, "error %d", error_of(s->fd));
	meet(s);
}

static void unconnected_server(struct side *s)
{
	struct name other;
	open_warm(s, AF_INET, false, &other);
	SAY(close(s->fd));
	s->fd = -1;
	meet(s);
	meet(s);
}

static void killed_client(struct side *s)
{
	open_connected(s);
	exchange(s, s->fd);
	meet(s);
	flush(s);
	kill(getpid(), SIGKILL);
}

static void killed_server(struct side *s)
{
	bool is_refused = false;
	open_connected(s);
	exchange(s, s->fd);
	s->is_left_alone = true;
	meet(s);
	for (int i = 0; i < 5000 && !is_refused; i++) {
		is_refused = send(s->fd, "x", 1, 0) < 0 && errno == ECONNREFUSED;
		poll(NULL, 0, 1);
	}
	say(s, "refused: %d", is_refused);
}

/* What lies in windows when the program goes on to another use of its socket is received first. */
static void sending_client(struct side *s)
{
	struct name other, second;
	open_warm(s, AF_INET, false, &other);
	for (int i = 0; i < 3; i++)
		SAY(send_to(s->fd, &other, &i, sizeof i));
	meet(s);
	/* From another socket, then from the first one again. */
	int fd = open_bound(AF_INET, &second);
	MUST(write(s->to_other, &second, sizeof second));
	meet(s);
	for (int i = 10; i < 13; i++) {
		SAY(send_to(fd, &other, &i, sizeof i));
		SAY(send_to(s->fd, &other, &i, sizeof i));
	}
	meet(s);
	meet_delivered(s);
	receive_from(s, &other, 20, MSG_DONTWAIT);
	close(s->fd);
	s->fd = fd;
	receive_from(s, &other, 20, MSG_DONTWAIT);
}

static void read_name(struct side *s, struct name *name)
{
	if (read(s->from_other, name, sizeof *name) != sizeof *name)
		fail("a name");
}

static void say_numbers(struct side *s)
{
	for (int i = 0; i < 8; i++)
		say(s, "number %d", receive_number(s->fd, MSG_DONTWAIT));
}

static void connected_later_server(struct side *s)
{
	struct name first, second;
	open_warm(s, AF_INET, false, &first);
	meet(s);
	read_name(s, &second);
	SAY(connect(s->fd, (struct sockaddr *)&second.of, second.length));
	meet(s);
	meet_delivered(s);
	say_numbers(s);
	SAY(send(s->fd, "to the second", 13, 0));
	meet(s);
}

static void reconnected_server(struct side *s)
{
	struct name first, second;
	open_warm(s, AF_INET, false, &first);
	SAY(connect(s->fd, (struct sockaddr *)&first.of, first.length));
	meet(s);
	read_name(s, &second);
	SAY(connect(s->fd, (struct sockaddr *)&second.of, second.length));
	meet(s);
	meet_delivered(s);
	say_numbers(s);
	SAY(send_to(s->fd, &first, "to the first", 12));
	SAY(send(s->fd, "to the second", 13, 0));
	meet(s);
}

static void disconnected_server(struct side *s)
{
	struct name first, second, own = { .length = sizeof own.of }, now = { .length = sizeof now.of };
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	open_warm(s, AF_INET, false, &first);
	MUST(getsockname(s->fd, (struct sockaddr *)&own.of, &own.length));
	SAY(bind(s->fd, (struct sockaddr *)&own.of, own.length));
	SAY(connect(s->fd, (struct sockaddr *)&first.of, first.length));
	meet(s);
	read_name(s, &second);
	SAY(connect(s->fd, &none, sizeof none));
	SAY(getsockname(s->fd, (struct sockaddr *)&now.of, &now.length));
	say(s, "the same name: %d", is_named(&own, &now));
	SAY(getpeername(s->fd, (struct sockaddr *)&now.of, &now.length));
	meet(s);
	meet_delivered(s);
	say_numbers(s);
	SAY(send(s->fd, "to nobody", 9, 0));
	SAY(send_to(s->fd, &first, "to the first", 12));
	SAY(send_to(s->fd, &second, "to the second", 13));
	meet(s);
}

static void shut_client(struct side *s)
{
	char bytes[8];
	open_connected(s);
	for (int i = 0; i < 3; i++)
		send_number(s->fd, i);
	meet(s);
	meet(s);
	SAY(send(s->fd, "late", 4, 0));
	meet(s);
	SAY(shutdown(s->fd, SHUT_WR));
	SAY(send(s->fd, "x", 1, MSG_NOSIGNAL));
	SAY(recv(s->fd, bytes, sizeof bytes, 0));
	meet(s);
}

static void shut_server(struct side *s)
{
	char bytes[8];
	open_connected(s);
	meet(s);
	SAY(shutdown(s->fd, SHUT_RD));
	say_events(s, "ready", ready_now(s->fd, POLLIN | POLLOUT | POLLRDHUP));
	for (int i = 0; i < 3; i++)
		say(s, "number %d", receive_number(s->fd, 0));
	SAY(recv(s->fd, bytes, sizeof bytes, 0));
	meet(s);
	meet(s);
	SAY(send(s->fd, "back", 4, 0));
	SAY(recv(s->fd, bytes, sizeof bytes, MSG_DONTWAIT));
	SAY(shutdown(s->fd, 7));
	meet(s);
}

/* Says the control messages of a datagram, without times. */
static void say_control(struct side *s)
{
	char bytes[64], control[256];
	struct iovec part = { bytes, sizeof bytes };
	struct msghdr in = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	SAY(recvmsg(s->fd, &in, 0));
	say(s, "flags %x", (unsigned)in.msg_flags);
	for (struct cmsghdr *head = CMSG_FIRSTHDR(&in); head; head = CMSG_NXTHDR(&in, head)) {
		say(s, "control %d %d, %zu bytes", head->cmsg_level, head->cmsg_type, (size_t)head->cmsg_len);
		if (head->cmsg_level == IPPROTO_IP)
			say_bytes(s, "control", CMSG_DATA(head), head->cmsg_len - CMSG_LEN(0));
	}
}

static void asking_server(struct side *s)
{
	const int levels[] = { IPPROTO_IP, IPPROTO_IP, IPPROTO_IP, SOL_SOCKET };
	const int names[] = { IP_PKTINFO, IP_RECVTTL, IP_RECVTOS, SO_TIMESTAMP };
	int one = 1, zero = 0;
	open_connected(s);
	exchange(s, s->fd);
	for (int i = 0; i < 4; i++) {
		SAY(setsockopt(s->fd, levels[i], names[i], &one, sizeof one));
		meet(s);
		say_control(s);
		say_control(s);
		SAY(setsockopt(s->fd, levels[i], names[i], &zero, sizeof zero));
	}
	meet(s);
	say_control(s);
	exchange(s, s->fd);
}

static void asked_client(struct side *s)
{
	open_connected(s);
	exchange(s, s->fd);
	for (int i = 0; i < 4; i++) {
		meet(s);
		send_number(s->fd, i);
		send_number(s->fd, i + 10);
	}
	meet(s);
	send_number(s->fd, 20);
	exchange(s, s->fd);
}

/* One datagram with a time to live of its own, between others. */
static void control_client(struct side *s)
{
	int ttl = 9, number = 1;
	char control[CMSG_SPACE(sizeof ttl)] = { 0 };
	struct iovec part = { &number, sizeof number };
	struct msghdr out = { .msg_iov = &part, .msg_iovlen = 1, .msg_control = control, .msg_controllen = sizeof control };
	struct cmsghdr *head = CMSG_FIRSTHDR(&out);
	open_connected(s);
	exchange(s, s->fd);
	for (int i = 0; i < 10; i++) {
		send_number(s->fd, 3 * i);
		number = 3 * i + 1;
		head->cmsg_level = IPPROTO_IP;
		head->cmsg_type = IP_TTL;
		head->cmsg_len = CMSG_LEN(sizeof ttl);
		memcpy(CMSG_DATA(head), &ttl, sizeof ttl);
		SAY(sendmsg(s->fd, &out, 0));
		send_number(s->fd, 3 * i + 2);
		/* Long enough for the next one to go by a window again. */
		if (i % 2)
			poll(NULL, 0, 3);
		meet(s);
	}
	ttl = 0;
	memcpy(CMSG_DATA(head), &ttl, sizeof ttl);
	SAY(sendmsg(s->fd, &out, 0));
	head->cmsg_type = 999;
	SAY(sendmsg(s->fd, &out, 0));
	head->cmsg_len = 3;
	SAY(sendmsg(s->fd, &out, 0));
	exchange(s, s->fd);
}

static void control_server(struct side *s)
{
	open_connected(s);
	exchange(s, s->fd);
	for (int i = 0; i < 10; i++) {
		for (int at = 0; at < 3; at++)
			say(s, "number %d", receive_number(s->fd, 0));
		meet(s);
	}
	exchange(s, s->fd);
}

static void corked_client(struct side *s)
{
	int one = 1, zero = 0;
	open_connected(s);
	exchange(s, s->fd);
	SAY(setsockopt(s->fd, IPPROTO_UDP, UDP_CORK, &one, sizeof one));
	SAY(send(s->fd, "one ", 4, 0));
	poll(NULL, 0, 3);
	SAY(send(s->fd, "two", 3, 0));
	SAY(setsockopt(s->fd, IPPROTO_UDP, UDP_CORK, &zero, sizeof zero));
	exchange(s, s->fd);
}

static void corked_server(struct side *s)
{
	open_connected(s);
	exchange(s, s->fd);
	receive_from(s, NULL, 20, 0);
	exchange(s, s->fd);
}

const struct test_case datagram_change_cases[] = {
	{ "udp_refused", ANYWHERE, true, refused_server, refused_client, "`ECONNREFUSED` once the receiver has closed, `SO_ERROR`; another one with its address" },
	{ "udp_unconnected", ANYWHERE, true, unconnected_server, unconnected_client, "no error for a sender that is not connected" },
	{ "udp_killed", TWO_PROCESSES, true, killed_server, killed_client, "`ECONNREFUSED` once the receiver is killed" },
	{ "udp_connected_later", ANYWHERE, true, connected_later_server, sending_client, "`connect` with unread datagrams" },
	{ "udp_reconnected", ANYWHERE, true, reconnected_server, sending_client, "`connect` to another address" },
	{ "udp_disconnected", ANYWHERE, true, disconnected_server, sending_client, "`connect` to `AF_UNSPEC`; `bind` again" },
	{ "udp_shut", ANYWHERE, true, shut_server, shut_client, "`shutdown`" },
	{ "udp_asking", ANYWHERE, true, asking_server, asked_client, "`IP_PKTINFO`, `IP_RECVTTL`, `IP_RECVTOS`, `SO_TIMESTAMP`" },
	{ "udp_control", ANYWHERE, true, control_server, control_client, "`sendmsg` with control data, between others" },
	{ "udp_corked", ANYWHERE, true, corked_server, corked_client, "`UDP_CORK`" },
	{ 0 },
};

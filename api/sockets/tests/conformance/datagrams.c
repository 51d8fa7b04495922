/* Datagrams of UDP: lengths, addresses, flags, several in a call. */
#include "datagrams.h"

#include <linux/sockios.h>
#include <time.h>

static const size_t lengths[] = { 0, 1, 8, 48, 56, 64, 1000, 1472, 9000, 40000, 65507 };
#define LENGTHS (sizeof lengths / sizeof *lengths)

static void boundaries_client(struct side *s)
{
	static __thread char bytes[MOST_BYTES];
	open_connected(s);
	for (size_t i = 0; i < LENGTHS; i++) {
		pattern(bytes, lengths[i], i);
		SAY(send(s->fd, bytes, lengths[i], 0));
		meet(s);
	}
	/* Several that lie there before one is received. */
	for (int i = 0; i < 20; i++)
		MUST(send(s->fd, bytes + i, 100 + i, 0));
	meet(s);
	meet(s);
	exchange(s, s->fd);
}

static void boundaries_server(struct side *s)
{
	static __thread char bytes[MOST_BYTES];
	open_connected(s);
	for (size_t i = 0; i < LENGTHS; i++) {
		say_bytes(s, "received", bytes, SAY(recv(s->fd, bytes, sizeof bytes, 0)));
		meet(s);
	}
	meet(s);
	for (int i = 0; i < 20; i++)
		say_bytes(s, "received", bytes, SAY(recv(s->fd, bytes, sizeof bytes, 0)));
	SAY(recv(s->fd, bytes, sizeof bytes, MSG_DONTWAIT));
	meet(s);
	exchange(s, s->fd);
}

/* `family`, unconnected: to and from addresses. */
static void addresses_client(struct side *s, int family)
{
	char bytes[600];
	struct name other, cut = { .length = 6 };
	open_warm(s, family, false, &other);
	pattern(bytes, sizeof bytes, 1);
	SAY(send_to(s->fd, &other, bytes, 300));
	SAY(send_to(s->fd, &other, bytes, 0));
	receive_from(s, &other, 600, 0);
	SAY(send(s->fd, bytes, 5, 0));
	SAY(write(s->fd, bytes, 5));
	SAY(sendto(s->fd, bytes, 5, 0, (struct sockaddr *)&other.of, 4));
	SAY(sendto(s->fd, bytes, 5, 0, NULL, other.length));
	struct name elsewhere = other;
	elsewhere.of.ss_family = AF_UNIX;
	SAY(send_to(s->fd, &elsewhere, bytes, 5));
	elsewhere = other;
	((struct sockaddr_in *)&elsewhere.of)->sin_port = 0;
	SAY(send_to(s->fd, &elsewhere, bytes, 5));
	meet(s);
	for (int i = 0; i < 4; i++)
		SAY(send_to(s->fd, &other, bytes, 20 + i));
	meet(s);
	SAY(recvfrom(s->fd, bytes, sizeof bytes, MSG_DONTWAIT, (struct sockaddr *)&cut.of, &cut.length));
	say(s, "no name: %u", cut.length);
}

static void addresses_server(struct side *s, int family)
{
	char bytes[600];
	struct name other, cut = { .length = 6 };
	open_warm(s, family, false, &other);
	receive_from(s, &other, 600, 0);
	receive_from(s, &other, 600, 0);
	pattern(bytes, sizeof bytes, 2);
	SAY(send_to(s->fd, &other, bytes, 600));
	meet(s);
	meet(s);
	SAY(recvfrom(s->fd, bytes, sizeof bytes, 0, (struct sockaddr *)&cut.of, &cut.length));
	say(s, "name: %u, %d", cut.length, memcmp(&cut.of, &other.of, 6));
	cut.length = 0;
	SAY(recvfrom(s->fd, bytes, sizeof bytes, 0, (struct sockaddr *)&cut.of, &cut.length));
	say(s, "name: %u", cut.length);
	cut.length = 77;
	SAY(recvfrom(s->fd, bytes, sizeof bytes, 0, NULL, &cut.length));
	say(s, "name: %u", cut.length);
	SAY(recv(s->fd, bytes, sizeof bytes, 0));
}

static void addresses_4_client(struct side *s)
{
	addresses_client(s, AF_INET);
}

static void addresses_4_server(struct side *s)
{
	addresses_server(s, AF_INET);
}

static void addresses_6_client(struct side *s)
{
	addresses_client(s, AF_INET6);
}

static void addresses_6_server(struct side *s)
{
	addresses_server(s, AF_INET6);
}

static void flags_client(struct side *s)
{
	char bytes[400];
	open_connected(s);
	pattern(bytes, sizeof bytes, 1);
	for (int i = 0; i < 6; i++)
		SAY(send(s->fd, bytes + i, 100 + i, i % 2 ? MSG_DONTWAIT : MSG_CONFIRM));
	meet(s);
	SAY(send(s->fd, bytes, 5, MSG_OOB));
	SAY(recv(s->fd, bytes, sizeof bytes, MSG_ERRQUEUE));
	meet(s);
	SAY(send(s->fd, bytes, 400, MSG_NOSIGNAL));
	SAY(send(s->fd, bytes, 10, 0));
	meet(s);
}

static void peek_server(struct side *s)
{
	struct name other;
	open_warm(s, AF_INET, true, &other);
	meet_delivered(s);
	receive_from(s, &other, 200, MSG_PEEK);
	receive_from(s, &other, 40, MSG_PEEK);
	receive_from(s, &other, 40, MSG_PEEK | MSG_TRUNC);
	receive_from(s, &other, 40, MSG_TRUNC);
	receive_from(s, &other, 40, 0);
	receive_from(s, &other, 0, MSG_TRUNC | MSG_PEEK);
	receive_from(s, &other, 0, 0);
	receive_from(s, &other, 200, MSG_WAITALL);
	receive_from(s, &other, 200, MSG_WAITALL | MSG_PEEK);
	receive_from(s, &other, 200, MSG_DONTWAIT | MSG_PEEK);
	receive_from(s, &other, 200, MSG_DONTWAIT);
	receive_from(s, &other, 200, MSG_DONTWAIT);
	receive_from(s, &other, 200, MSG_DONTWAIT | MSG_PEEK);
	receive_from(s, &other, 200, MSG_DONTWAIT | MSG_WAITALL);
	meet(s);
	meet(s);
	receive_from(s, &other, 500, MSG_WAITALL);
	receive_from(s, &other, 500, 0);
}

/* What a message says of itself. */
static void message_server(struct side *s)
{
	struct name other, source;
	char one[30], two[400], control[100];
	struct iovec places[3] = { { one, sizeof one }, { NULL, 0 }, { two, sizeof two } };
	open_warm(s, AF_INET, true, &other);
	meet(s);
	for (int i = 0; i < 6; i++) {
		struct msghdr in = { .msg_iov = places, .msg_iovlen = i < 3 ? 3 : 1, .msg_name = &source.of, .msg_namelen = sizeof source.of,
			.msg_control = control, .msg_controllen = sizeof control, .msg_flags = 0x7f };
		memset(two, 0, sizeof two);
		SAY(recvmsg(s->fd, &in, i == 4 ? MSG_TRUNC : i == 5 ? MSG_CMSG_CLOEXEC : 0));
		source.length = in.msg_namelen;
		say(s, "flags %x, control %zu, named %d", (unsigned)in.msg_flags, in.msg_controllen, is_named(&source, &other));
		say_bytes(s, "one", one, sizeof one);
		say_bytes(s, "two", two, sizeof two);
	}
	meet(s);
	meet(s);
	say_bytes(s, "read", two, SAY(readv(s->fd, places, 3)));
	SAY(readv(s->fd, places + 1, 1));
	SAY(read(s->fd, one, 0));
	say_bytes(s, "read", two, SAY(read(s->fd, two, sizeof two)));
}

static void unread_server(struct side *s)
{
	char bytes[400];
	int count = -1;
	open_connected(s);
	meet_delivered(s);
	for (int i = 0; i < 7; i++) {
		SAY(ioctl(s->fd, FIONREAD, &count));
		say(s, "unread %d", count);
		SAY(recv(s->fd, bytes, i % 2 ? 10 : sizeof bytes, MSG_DONTWAIT));
	}
	SAY(ioctl(s->fd, SIOCOUTQ, &count));
	say(s, "unsent %d", count);
	meet(s);
	meet(s);
}

static void too_long_client(struct side *s)
{
	static __thread char bytes[MOST_BYTES];
	open_connected(s);
	struct iovec parts[2] = { { bytes, 40000 }, { bytes, 25508 } };
	SAY(send(s->fd, bytes, 65508, 0));
	SAY(send(s->fd, bytes, 66000, 0));
	SAY(writev(s->fd, parts, 2));
	SAY(send(s->fd, bytes, 65507, 0));
	/* The kernel has not always room for two of them. */
	meet(s);
	parts[1].iov_len--;
	SAY(writev(s->fd, parts, 2));
	meet(s);
	exchange(s, s->fd);
}

static void too_long_server(struct side *s)
{
	open_connected(s);
	for (int i = 0; i < 2; i++) {
		receive_from(s, NULL, MOST_BYTES - 8, 0);
		meet(s);
	}
	exchange(s, s->fd);
}

static void parts_client(struct side *s)
{
	char bytes[400];
	struct iovec parts[4] = { { bytes, 5 }, { NULL, 0 }, { bytes + 5, 200 }, { bytes, 1 } };
	struct msghdr out = { .msg_iov = parts, .msg_iovlen = 4 };
	open_connected(s);
	pattern(bytes, sizeof bytes, 3);
	SAY(writev(s->fd, parts, 4));
	SAY(writev(s->fd, parts + 1, 1));
	SAY(sendmsg(s->fd, &out, 0));
	out.msg_iovlen = 0;
	SAY(sendmsg(s->fd, &out, 0));
	SAY(write(s->fd, bytes, 0));
	SAY(send(s->fd, NULL, 0, 0));
	SAY(send(s->fd, NULL, 5, 0));
	meet(s);
	meet(s);
	SAY(send(s->fd, bytes, 9, MSG_MORE));
	/* Longer than what is by the kernel is waited for. */
	poll(NULL, 0, 10);
	SAY(send(s->fd, bytes, 20, MSG_MORE));
	poll(NULL, 0, 10);
	SAY(send(s->fd, bytes, 3, 0));
	SAY(send(s->fd, bytes, 4, 0));
	meet(s);
}

static void parts_server(struct side *s)
{
	open_connected(s);
	meet_delivered(s);
	for (int i = 0; i < 6; i++)
		receive_from(s, NULL, 500, MSG_DONTWAIT);
	meet(s);
	meet(s);
	receive_from(s, NULL, 500, 0);
	receive_from(s, NULL, 500, 0);
	receive_from(s, NULL, 500, MSG_DONTWAIT);
}

const struct test_case datagram_cases[] = {
	{ "udp_boundaries", ANYWHERE, true, boundaries_server, boundaries_client, "`send`, `recv`: boundaries, empty and long datagrams" },
	{ "udp_addresses", ANYWHERE, true, addresses_4_server, addresses_4_client, "`sendto`, `recvfrom` with addresses; addresses that are refused" },
	{ "udp_addresses_6", ANYWHERE, true, addresses_6_server, addresses_6_client, "the same of IPv6" },
	{ "udp_peek", ANYWHERE, true, peek_server, flags_client, "`MSG_PEEK`, `MSG_TRUNC`, `MSG_WAITALL`, `MSG_DONTWAIT`, short buffers" },
	{ "udp_message", ANYWHERE, true, message_server, flags_client, "`recvmsg` and its flags, `readv`, `read` of no bytes" },
	{ "udp_unread", ANYWHERE, true, unread_server, flags_client, "`FIONREAD`, `SIOCOUTQ`" },
	{ "udp_too_long", ANYWHERE, true, too_long_server, too_long_client, "`EMSGSIZE`" },
	{ "udp_parts", ANYWHERE, true, parts_server, parts_client, "`writev`, `sendmsg` of several parts, `MSG_MORE`, no memory" },
	{ 0 },
};

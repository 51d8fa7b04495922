/* RDS, reliable datagrams of the kernel's: another family, which a library for TCP and UDP leaves alone. Where the kernel has none, each call is its ordinary
 * error. */
#include "conformance.h"

static const char *opened(int family, int type, int protocol)
{
	int fd = socket(family, type, protocol);
	if (fd < 0)
		return strerrorname_np(errno);
	close(fd);
	return "opened";
}

static int open_and_bind(struct side *s, struct sockaddr_in *own)
{
	socklen_t length = sizeof *own;
	*own = (struct sockaddr_in){ .sin_family = AF_INET };
	say(s, "another type: %s, another protocol: %s", opened(AF_RDS, SOCK_STREAM, 0), opened(AF_RDS, SOCK_SEQPACKET, 1));
	say(s, "with flags: %s", opened(AF_RDS, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	int fd = socket(AF_RDS, SOCK_SEQPACKET, 0);
	say(s, "RDS: %s", fd < 0 ? strerrorname_np(errno) : "opened");
	if (fd < 0)
		return fd;
	own->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	SAY(bind(fd, (struct sockaddr *)own, sizeof *own));
	MUST(getsockname(fd, (struct sockaddr *)own, &length));
	return fd;
}

static void receive_one(struct side *s, int fd, struct sockaddr_in *from)
{
	char bytes[300];
	socklen_t length = sizeof *from;
	wait_readable(fd);
	long got = SAY(recvfrom(fd, bytes, sizeof bytes, 0, (struct sockaddr *)from, &length));
	say_bytes(s, "received", bytes, got);
	SAY(recv(fd, bytes, sizeof bytes, MSG_DONTWAIT));
}

static void rds_server(struct side *s)
{
	struct sockaddr_in own, from;
	char bytes[200];
	int fd = open_and_bind(s, &own);
	MUST(write(s->to_other, &own, sizeof own));
	if (fd < 0)
		return;
	receive_one(s, fd, &from);
	pattern(bytes, sizeof bytes, 2);
	SAY(sendto(fd, bytes, sizeof bytes, 0, (struct sockaddr *)&from, sizeof from));
	hear(s);
	SAY(close(fd));
}

static void rds_client(struct side *s)
{
	struct sockaddr_in own, other, from;
	char bytes[200];
	int fd = open_and_bind(s, &own);
	MUST(read(s->from_other, &other, sizeof other));
	if (fd < 0)
		return;
	pattern(bytes, sizeof bytes, 1);
	SAY(sendto(fd, bytes, sizeof bytes, 0, (struct sockaddr *)&other, sizeof other));
	receive_one(s, fd, &from);
	say(s, "from the other one: %d", from.sin_port == other.sin_port && from.sin_addr.s_addr == other.sin_addr.s_addr);
	tell(s);
	SAY(close(fd));
}

const struct test_case rds_cases[] = {
	{ "rds", ANYWHERE, true, rds_server, rds_client, "a datagram there and back; the error, where the kernel has no RDS" },
	{ 0 },
};

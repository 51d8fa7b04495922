/* Sockets of UDP of the two sides. */
#include "datagrams.h"

int open_sharing(uint16_t port)
{
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = port };
	int one = 1, fd = MUST(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	MUST(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one));
	MUST(bind(fd, (struct sockaddr *)&any, sizeof any));
	return fd;
}

int open_bound(int family, struct name *own)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = MUST(socket(family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	if (family == AF_INET)
		MUST(bind(fd, (struct sockaddr *)&four, sizeof four));
	else
		MUST(bind(fd, (struct sockaddr *)&six, sizeof six));
	memset(own, 0, sizeof *own);
	own->length = sizeof own->of;
	MUST(getsockname(fd, (struct sockaddr *)&own->of, &own->length));
	return fd;
}

int open_cold(struct side *s, int family, bool connects, struct name *other)
{
	struct name own;
	int fd = open_bound(family, &own);
	MUST(write(s->to_other, &own, sizeof own));
	if (read(s->from_other, other, sizeof *other) != sizeof *other)
		fail("the other side has no socket");
	if (connects)
		MUST(connect(fd, (struct sockaddr *)&other->of, other->length));
	/* Behind that nothing comes that the kernel would not give to either. */
	meet(s);
	return fd;
}

void open_warm(struct side *s, int family, bool connects, struct name *other)
{
	s->fd = open_cold(s, family, connects, other);
	warm_up_with(s, s->fd, connects ? NULL : &other->of, connects ? 0 : other->length);
	meet(s);
}

void open_connected(struct side *s)
{
	struct name other;
	open_warm(s, AF_INET, true, &other);
}

long send_to(int fd, const struct name *to, const void *bytes, size_t count)
{
	return sendto(fd, bytes, count, 0, (const struct sockaddr *)&to->of, to->length);
}

bool is_named(const struct name *name, const struct name *other)
{
	return name->length == other->length && memcmp(&name->of, &other->of, name->length) == 0;
}

void receive_from(struct side *s, const struct name *from, size_t room, int flags)
{
	static __thread char bytes[MOST_BYTES];
	struct name source = { .length = sizeof source.of };
	memset(bytes, 0x55, sizeof bytes);
	errno = 0;
	long got = recvfrom(s->fd, bytes, room, flags, (struct sockaddr *)&source.of, &source.length);
	int number = errno;
	if (got < 0) {
		say(s, "received nothing: %s", strerrorname_np(number));
		return;
	}
	say(s, "received %ld%s", got, !from ? "" : is_named(&source, from) ? " from the other side" : " from elsewhere");
	/* What is behind it in the memory, too. */
	say_bytes(s, "memory", bytes, (size_t)got < room ? got + 8 : (long)room);
}

void meet_delivered(struct side *s)
{
	meet(s);
	poll(NULL, 0, 20);
}

int receive_number(int fd, int flags)
{
	int number = -1;
	return recv(fd, &number, sizeof number, flags) == sizeof number ? number : -1;
}

void send_number(int fd, int number)
{
	if (send(fd, &number, sizeof number, 0) != sizeof number)
		fail("send a number");
}

int answer_datagrams(int fd)
{
	char bytes[200];
	int answered = 0;
	ssize_t got;
	while ((got = recv(fd, bytes, sizeof bytes, 0)) > 0) {
		inherited_sum = inherited_sum * 31 + sum(bytes, got);
		pattern(bytes, sizeof bytes, 2);
		if (send(fd, bytes, sizeof bytes, 0) == sizeof bytes)
			answered++;
	}
	return got == 0 ? answered : 100;
}

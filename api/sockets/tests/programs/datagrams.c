/* Sockets of UDP: boundaries, addresses, errors and readiness, between two sockets of one process and of two. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/select.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

extern int beeline_sockets_is_accelerated(int fd) __attribute__((weak));

static char bytes[70000];
static int is_six;
/* As many rounds as have windows begin, if they may. */
static int most_rounds = 30000;

static const char *name_of(int error)
{
	return error == 0 ? "" : strerrorname_np(error);
}

#define SAY(call) do { \
	errno = 0; \
	long result_ = (long)(call); \
	printf("%s = %ld %s\n", #call, result_, result_ < 0 ? name_of(errno) : ""); \
} while (0)

struct name {
	struct sockaddr_storage of;
	socklen_t length;
};

static int bound(struct name *name)
{
	struct sockaddr_in four = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 six = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(is_six ? AF_INET6 : AF_INET, SOCK_DGRAM, 0);
	if (fd < 0 || bind(fd, is_six ? (void *)&six : (void *)&four, is_six ? sizeof(six) : sizeof(four)) != 0)
		exit(9);
	name->length = sizeof(name->of);
	getsockname(fd, (void *)&name->of, &name->length);
	return fd;
}

static int is_same(const struct name *a, const struct name *b)
{
	return a->length == b->length && memcmp(&a->of, &b->of, a->length) == 0;
}

static long send_to(int fd, const struct name *to, size_t count)
{
	return sendto(fd, bytes, count, 0, (void *)&to->of, to->length);
}

static int is_carried(int fd)
{
	return beeline_sockets_is_accelerated == NULL || beeline_sockets_is_accelerated(fd);
}

/* To and fro, until windows carry both. */
static void warm_up(int a, const struct name *to_a, int b, const struct name *to_b)
{
	char byte;
	int rounds = 0;
	do {
		if (send_to(a, to_b, 1) != 1 || recv(b, &byte, 1, 0) != 1 || send_to(b, to_a, 1) != 1 || recv(a, &byte, 1, 0) != 1)
			exit(8);
		if (rounds > 1000)
			usleep(100);
	} while (++rounds < 500 || ((!is_carried(a) || !is_carried(b)) && rounds < most_rounds));
	fprintf(stderr, is_carried(a) && is_carried(b) ? "" : "not carried\n");
}

static void receive(int fd, const struct name *from, size_t room, int flags)
{
	static char out[70000];
	struct name source = { .length = sizeof(source.of) };
	memset(out, 0, sizeof(out));
	long count = recvfrom(fd, out, room, flags, (void *)&source.of, &source.length);
	size_t copied = count < 0 ? 0 : (size_t)count < room ? (size_t)count : room;
	printf("received %ld %s%s%s\n", count, count < 0 ? name_of(errno) : "", memcmp(out, bytes, copied) == 0 ? "" : " other bytes",
	       count < 0 || is_same(&source, from) ? "" : " from elsewhere");
}

static void transfer(int a, const struct name *to_a, int b, const struct name *to_b)
{
	size_t lengths[] = { 0, 1, 8, 48, 64, 1000, 9000, 65000 };
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		SAY(send_to(a, to_b, lengths[i]));
		receive(b, to_a, sizeof(bytes), 0);
	}
	SAY(send_to(a, to_b, 66000));
	SAY(send_to(a, to_b, 10));
	receive(b, to_a, 4, MSG_PEEK);
	receive(b, to_a, 4, MSG_PEEK | MSG_TRUNC);
	int unread = -1;
	SAY(ioctl(b, FIONREAD, &unread));
	printf("unread %d\n", unread);
	receive(b, to_a, 4, MSG_TRUNC);
	receive(b, to_a, 4, MSG_DONTWAIT);
	SAY(ioctl(b, FIONREAD, &unread));
	printf("unread %d\n", unread);
	struct timeval limit = { .tv_usec = 20000 };
	SAY(setsockopt(b, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)));
	receive(b, to_a, 4, 0);
	SAY(send(a, bytes, 3, 0));
	struct name short_name = { .length = 4 };
	SAY(send_to(a, to_b, 3));
	SAY(recvfrom(b, bytes, 3, 0, (void *)&short_name.of, &short_name.length));
	printf("name of %d\n", short_name.length);
	SAY(send_to(a, to_b, 0));
	SAY(read(b, bytes, 0));
	SAY(read(b, bytes, 5));
}

static void messages(int a, const struct name *to_a, int b, const struct name *to_b)
{
	struct iovec parts[3] = { { bytes, 5 }, { bytes + 5, 0 }, { bytes + 5, 7 } };
	char one[3], two[30];
	struct iovec places[2] = { { one, 3 }, { two, 30 } };
	struct name source;
	struct msghdr out = { .msg_name = (void *)&to_b->of, .msg_namelen = to_b->length, .msg_iov = parts, .msg_iovlen = 3 };
	struct msghdr in = { .msg_name = &source.of, .msg_namelen = sizeof(source.of), .msg_iov = places, .msg_iovlen = 2 };
	SAY(sendmsg(a, &out, 0));
	SAY(recvmsg(b, &in, 0));
	source.length = in.msg_namelen;
	printf("flags %x, %s\n", (unsigned)in.msg_flags, is_same(&source, to_a) ? "from the other" : "from elsewhere");
	SAY(sendmsg(a, &out, 0));
	in.msg_iovlen = 1;
	in.msg_namelen = sizeof(source.of);
	SAY(recvmsg(b, &in, 0));
	printf("flags %x\n", (unsigned)in.msg_flags);
	struct mmsghdr many[4], back[6];
	memset(many, 0, sizeof(many));
	memset(back, 0, sizeof(back));
	in.msg_iovlen = 2;
	in.msg_name = NULL;
	in.msg_namelen = 0;
	for (int i = 0; i < 4; i++)
		many[i].msg_hdr = out;
	for (int i = 0; i < 6; i++)
		back[i].msg_hdr = in;
	SAY(sendmmsg(a, many, 4, 0));
	SAY(recvmmsg(b, back, 6, MSG_WAITFORONE, NULL));
	for (int i = 0; i < 4; i++)
		printf("%u sent, %u received\n", many[i].msg_len, back[i].msg_len);
	SAY(recvmmsg(b, back, 6, MSG_DONTWAIT, NULL));
	SAY(send_to(a, to_b, 20));
	SAY(readv(b, places, 2));
}

static void readiness(int a, const struct name *to_a, int b, const struct name *to_b)
{
	struct pollfd list[1] = { { .fd = b, .events = POLLIN | POLLOUT } };
	struct epoll_event event = { .events = EPOLLIN, .data.u64 = 77 }, told;
	struct timeval none = { 0 };
	fd_set set;
	int epoll = epoll_create1(0);
	SAY(poll(list, 1, 0));
	list[0].events = POLLIN;
	SAY(poll(list, 1, 5));
	SAY(epoll_ctl(epoll, EPOLL_CTL_ADD, b, &event));
	SAY(epoll_wait(epoll, &told, 1, 0));
	SAY(send_to(a, to_b, 6));
	SAY(poll(list, 1, -1));
	printf("told %x\n", (unsigned)list[0].revents);
	SAY(epoll_wait(epoll, &told, 1, -1));
	printf("told %llu\n", (unsigned long long)told.data.u64);
	FD_ZERO(&set);
	FD_SET(b, &set);
	SAY(select(b + 1, &set, NULL, NULL, &none));
	receive(b, to_a, 100, MSG_DONTWAIT);
	SAY(epoll_wait(epoll, &told, 1, 0));
	SAY(poll(list, 1, 0));
	SAY(close(epoll));
}

static void strangers(int b, const struct name *to_b)
{
	struct name name;
	int other = bound(&name);
	SAY(send_to(other, to_b, 9));
	receive(b, &name, 100, 0);
	SAY(close(other));
}

static void closed(int b, const struct name *to_b)
{
	struct name to_c;
	int c = bound(&to_c);
	SAY(connect(c, (void *)&to_b->of, to_b->length));
	for (int i = 0; i < 300; i++) {
		char byte;
		if (send(c, bytes, 1, 0) != 1 || recv(b, &byte, 1, 0) != 1 || send_to(b, &to_c, 1) != 1 || recv(c, &byte, 1, 0) != 1)
			exit(7);
	}
	SAY(send(c, bytes, 4, 0));
	receive(b, &to_c, 100, 0);
	int copy = dup(b);
	SAY(send(c, bytes, 5, 0));
	receive(copy, &to_c, 100, 0);
	SAY(close(b));
	SAY(send(c, bytes, 6, 0));
	receive(copy, &to_c, 100, 0);
	SAY(close(copy));
	SAY(send(c, bytes, 7, 0));
	usleep(1000);
	SAY(send(c, bytes, 7, 0));
	SAY(recv(c, bytes, 7, MSG_DONTWAIT));
	SAY(close(c));
}

/* Echoes until it is killed. */
static pid_t echo(struct name *name)
{
	int ready[2];
	if (pipe(ready) != 0)
		exit(6);
	pid_t child = fork();
	if (child == 0) {
		static char out[70000];
		int fd = bound(name);
		if (write(ready[1], name, sizeof(*name)) < 0)
			exit(5);
		for (;;) {
			struct name from = { .length = sizeof(from.of) };
			long count = recvfrom(fd, out, sizeof(out), 0, (void *)&from.of, &from.length);
			if (count >= 0)
				sendto(fd, out, count, 0, (void *)&from.of, from.length);
		}
	}
	if (read(ready[0], name, sizeof(*name)) != sizeof(*name))
		exit(4);
	return child;
}

static void two_processes(void)
{
	struct name to_child, own;
	pid_t child = echo(&to_child);
	int fd = bound(&own), most = 0;
	for (; most < 500 || (!is_carried(fd) && most < most_rounds); most++) {
		char byte;
		if (send_to(fd, &to_child, 1) != 1 || recv(fd, &byte, 1, 0) != 1)
			exit(3);
		if (most > 1000)
			usleep(100);
	}
	fprintf(stderr, is_carried(fd) ? "" : "not carried between processes\n");
	size_t lengths[] = { 0, 1, 64, 1472, 60000 };
	for (size_t i = 0; i < sizeof(lengths) / sizeof(*lengths); i++) {
		SAY(send_to(fd, &to_child, lengths[i]));
		receive(fd, &to_child, sizeof(bytes), 0);
	}
	/* A pause in which both sleep. */
	usleep(20000);
	SAY(send_to(fd, &to_child, 30));
	receive(fd, &to_child, sizeof(bytes), 0);
	SAY(connect(fd, (void *)&to_child.of, to_child.length));
	SAY(send(fd, bytes, 31, 0));
	receive(fd, &to_child, sizeof(bytes), 0);
	kill(child, SIGKILL);
	SAY(waitpid(child, NULL, 0) == child);
	int refused = 0;
	for (int i = 0; i < 200 && !refused; i++) {
		refused = send(fd, bytes, 1, 0) < 0 && errno == ECONNREFUSED;
		usleep(1000);
	}
	printf("refused: %d\n", refused);
	close(fd);
}

int main(int count, char **arguments)
{
	struct name to_a, to_b;
	is_six = count > 1 && strcmp(arguments[1], "6") == 0;
	for (size_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (char)(i * 31 >> 3);
	if (count > 2)
		most_rounds = atoi(arguments[2]);
	int is_left_alone = count > 3;
	if (!is_left_alone)
		two_processes();
	int a = bound(&to_a), b = bound(&to_b);
	warm_up(a, &to_a, b, &to_b);
	if (is_left_alone)
		return 0;
	transfer(a, &to_a, b, &to_b);
	messages(a, &to_a, b, &to_b);
	readiness(a, &to_a, b, &to_b);
	strangers(b, &to_b);
	closed(b, &to_b);
	return 0;
}

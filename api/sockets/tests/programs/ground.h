/* What the programs have in common: connections, and results as lines. */
#ifndef GROUND_H
#define GROUND_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <linux/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/sendfile.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* Says what a call gave, and `errno` where it failed. */
#define SAY(call)                                                              \
	do {                                                                   \
		errno = 0;                                                     \
		long gave = (long)(call);                                      \
		int number = errno;                                            \
		printf("%s = %ld%s%s\n", #call, gave, gave < 0 ? " " : "",     \
		       gave < 0 ? strerrorname_np(number) : "");               \
	} while (0)

#define MUST(call)                                                             \
	do {                                                                   \
		if ((call) < 0) {                                              \
			perror(#call);                                         \
			exit(99);                                              \
		}                                                              \
	} while (0)

static int listener_fd = -1;

/* A listener at a port that the kernel chooses; its address. */
static inline struct sockaddr_in listener(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	socklen_t length = sizeof address;

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	MUST(listener_fd = socket(AF_INET, SOCK_STREAM, 0));
	MUST(bind(listener_fd, (struct sockaddr *)&address, length));
	MUST(listen(listener_fd, 16));
	MUST(getsockname(listener_fd, (struct sockaddr *)&address, &length));
	return address;
}

/* Bytes that the kernel was given by this end. */
static inline unsigned long long kernel_bytes(int fd)
{
	struct tcp_info info;
	socklen_t length = sizeof info;

	MUST(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length));
	return info.tcpi_bytes_sent;
}

/* Exchanges bytes until the kernel sees none of them any more, if the environment says that a library can carry them. */
static inline void become_carried(const int ends[2])
{
	const char *carried = getenv("CARRIED");

	if (!carried || strcmp(carried, "all"))
		return;
	for (int from = 0; from < 2; from++) {
		unsigned long long before, now = kernel_bytes(ends[from]);
		int rounds = 0;

		do {
			char byte = 'w';

			before = now;
			MUST(send(ends[from], &byte, 1, 0));
			if (recv(ends[!from], &byte, 1, 0) != 1 || rounds++ == 10000000)
				exit(95);
			now = kernel_bytes(ends[from]);
		} while (now != before);
	}
}

/* A connection within the process: `ends[0]` connected, `ends[1]` was accepted. */
static inline void connection(int ends[2])
{
	struct sockaddr_in address = listener();

	MUST(ends[0] = socket(AF_INET, SOCK_STREAM, 0));
	MUST(connect(ends[0], (struct sockaddr *)&address, sizeof address));
	MUST(ends[1] = accept(listener_fd, NULL, NULL));
	MUST(close(listener_fd));
	become_carried(ends);
}

/* Waits until the socket has something to read, or its end. */
static inline void wait_readable(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLIN };

	MUST(poll(&poll_fd, 1, -1));
}

#endif

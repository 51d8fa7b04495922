/* What programs that wait for connections have in common. */
#ifndef WAITING_H
#define WAITING_H

#include <sys/epoll.h>
#include <sys/select.h>

/* Milliseconds in which whatever comes has come; a wake-up that is lost is a time-out. */
#define SOON 5000

static inline void say(int fd, const char *bytes)
{
	MUST(send(fd, bytes, strlen(bytes), 0));
}

/* Receives as many bytes as there are, or the end. */
static inline void hear(int fd, int count)
{
	char bytes[64];
	int received = 0, now = 1;

	for (; received < count && now > 0; received += now)
		MUST(now = recv(fd, bytes + received, count - received, 0));
	printf("heard %.*s\n", received, bytes);
}

/* Bytes that the kernel has carried. */
static inline unsigned long long carried_by_kernel(int fd)
{
	struct tcp_info info;
	socklen_t length = sizeof info;

	MUST(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length));
	return info.tcpi_bytes_received;
}

/* Sends both ways, until the kernel sees nothing of it, or it is clear that it always will. */
static inline void warm(int ends[2])
{
	int quiet = 0, turn, on = 1;
	char byte;

	/* Else the kernel waits with a byte for news of the one before. */
	MUST(setsockopt(ends[0], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));
	MUST(setsockopt(ends[1], IPPROTO_TCP, TCP_NODELAY, &on, sizeof on));

	for (turn = 0; turn < 3000 && quiet < 4; turn++) {
		unsigned long long before = carried_by_kernel(ends[0]) + carried_by_kernel(ends[1]);

		for (int side = 0; side < 2; side++) {
			MUST(send(ends[side], "w", 1, 0));
			MUST(recv(ends[1 - side], &byte, 1, 0));
		}
		if (turn > 100)
			usleep(100);
		quiet = carried_by_kernel(ends[0]) + carried_by_kernel(ends[1]) == before ? quiet + 1 : 0;
	}
	if (getenv("SAY_WHETHER_CARRIED"))
		fprintf(stderr, "%s\n", quiet == 4 ? "carried" : "not carried");
}

/* Waits until the kernel has heard the other's end. */
static inline void wait_end(int fd)
{
	enum { CLOSE_WAIT = 8 };
	struct tcp_info info = { 0 };
	socklen_t length = sizeof info;

	while (info.tcpi_state != CLOSE_WAIT)
		MUST(getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &length));
}

static inline void handler(int signal)
{
	(void)signal;
}

/* A signal ends each kind of wait; one that only the call's mask lets through, too. */
static inline void interrupted(int fd, int set_fd)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = SA_RESTART };
	struct itimerval often = { .it_interval.tv_usec = 3000, .it_value.tv_usec = 3000 };
	struct itimerval off = { 0 };
	struct timespec time = { .tv_sec = SOON / 1000 };
	struct timeval left = { .tv_sec = SOON / 1000 };
	struct pollfd list = { .fd = fd, .events = POLLIN };
	struct epoll_event event = { .events = EPOLLIN };
	sigset_t none, alarm;
	fd_set set;

	sigemptyset(&none);
	sigemptyset(&alarm);
	sigaddset(&alarm, SIGALRM);
	MUST(epoll_ctl(set_fd, EPOLL_CTL_ADD, fd, &event));
	MUST(sigaction(SIGALRM, &action, NULL));
	MUST(setitimer(ITIMER_REAL, &often, NULL));
	SAY(epoll_wait(set_fd, &event, 1, SOON));
	SAY(poll(&list, 1, SOON));
	FD_ZERO(&set);
	FD_SET(fd, &set);
	SAY(select(fd + 1, &set, NULL, NULL, &left));
	sigprocmask(SIG_BLOCK, &alarm, NULL);
	SAY(epoll_pwait(set_fd, &event, 1, SOON, &none));
	SAY(epoll_pwait(set_fd, &event, 1, 20, NULL));
	SAY(ppoll(&list, 1, &time, &none));
	FD_ZERO(&set);
	FD_SET(fd, &set);
	SAY(pselect(fd + 1, &set, NULL, NULL, &time, &none));
	MUST(setitimer(ITIMER_REAL, &off, NULL));
	sigprocmask(SIG_UNBLOCK, &alarm, NULL);
	MUST(epoll_ctl(set_fd, EPOLL_CTL_DEL, fd, NULL));
}

#endif

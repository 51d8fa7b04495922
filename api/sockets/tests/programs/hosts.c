/* Two programs on two hosts. `hosts serve ADDRESS poll|block` says its port and answers what comes, over connections in one set, or over one at which it
 * waits in the call that receives. `hosts ask ADDRESS PORT CONNECTIONS MESSAGES PAUSE_US` sends messages over each in turn, after pauses in
 * which both sides fall asleep, checks the answers, and says over how many of the last ones the kernel saw nothing. With `stay` behind that it
 * leaves the last message unanswered and waits to be killed. */
#include "ground.h"
#include <sys/epoll.h>
#include <time.h>

enum { MOST_BYTES = 9000, MOST_CONNECTIONS = 256 };

static void fill(unsigned char *out, size_t bytes, unsigned seed)
{
	for (size_t at = 0; at < bytes; at++)
		out[at] = (unsigned char)(seed * 167 + at * 31 + (at >> 8));
}

/* Receives exactly so much; false at the end of the connection. */
static int receive_all(int fd, void *out, size_t bytes)
{
	for (size_t got = 0; got < bytes;) {
		ssize_t more = recv(fd, (char *)out + got, bytes - got, 0);

		if (more < 0)
			printf("recv %s\n", strerrorname_np(errno));
		if (more <= 0)
			return 0;
		got += (size_t)more;
	}
	return 1;
}

static void send_all(int fd, const void *from, size_t bytes)
{
	for (size_t sent = 0; sent < bytes;) {
		ssize_t more = send(fd, (const char *)from + sent, bytes - sent, MSG_NOSIGNAL);

		MUST(more);
		sent += (size_t)more;
	}
}

/* A number of bytes, and then as many, which go back. */
static int answer(int fd)
{
	unsigned char bytes[MOST_BYTES];
	uint32_t length;

	if (!receive_all(fd, &length, sizeof length))
		return 0;
	if (length > MOST_BYTES)
		exit(90);
	if (!receive_all(fd, bytes, length))
		return 0;
	send_all(fd, bytes, length);
	return 1;
}

static void serve(const char *address, int polls)
{
	struct sockaddr_in own = { .sin_family = AF_INET };
	struct epoll_event event = { .events = EPOLLIN };
	socklen_t length = sizeof own;
	int set = epoll_create1(EPOLL_CLOEXEC), answered = 0, open = 0;

	inet_pton(AF_INET, address, &own.sin_addr);
	MUST(listener_fd = socket(AF_INET, SOCK_STREAM, 0));
	MUST(bind(listener_fd, (struct sockaddr *)&own, sizeof own));
	MUST(listen(listener_fd, MOST_CONNECTIONS));
	MUST(getsockname(listener_fd, (struct sockaddr *)&own, &length));
	printf("port %d\n", ntohs(own.sin_port));
	fflush(stdout);
	if (!polls) {
		int fd = accept(listener_fd, NULL, NULL);

		MUST(fd);
		while (answer(fd))
			answered++;
		printf("end behind %d\n", answered);
		return;
	}
	event.data.fd = listener_fd;
	MUST(epoll_ctl(set, EPOLL_CTL_ADD, listener_fd, &event));
	do {
		MUST(epoll_wait(set, &event, 1, -1));
		if (event.data.fd == listener_fd) {
			MUST(event.data.fd = accept(listener_fd, NULL, NULL));
			MUST(epoll_ctl(set, EPOLL_CTL_ADD, event.data.fd, &event));
			open++;
		} else if (answer(event.data.fd)) {
			answered++;
		} else {
			close(event.data.fd);
			open--;
		}
	} while (open);
	printf("end behind %d\n", answered);
}

static long milliseconds(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

static void ask(const char *address, int port, int count, int messages, int pause_us, int stays)
{
	struct sockaddr_in server = { .sin_family = AF_INET, .sin_port = htons((uint16_t)port) };
	int connections[MOST_CONNECTIONS];
	int carried = 0;
	long longest = 0;

	inet_pton(AF_INET, address, &server.sin_addr);
	for (int at = 0; at < count; at++) {
		MUST(connections[at] = socket(AF_INET, SOCK_STREAM, 0));
		MUST(connect(connections[at], (struct sockaddr *)&server, sizeof server));
	}
	for (int message = 0; message < messages; message++) {
		carried = 0;
		for (int at = 0; at < count; at++) {
			unsigned char sent[4 + MOST_BYTES], got[MOST_BYTES];
			uint32_t bytes = 1 + (uint32_t)(message * 97 + at * 13) % (MOST_BYTES - 1);
			unsigned long long before = kernel_bytes(connections[at]);
			long began = milliseconds();

			memcpy(sent, &bytes, sizeof bytes);
			fill(sent + 4, bytes, (unsigned)(message + at));
			send_all(connections[at], sent, 4 + bytes);
			if (!receive_all(connections[at], got, bytes) || memcmp(got, sent + 4, bytes)) {
				printf("connection %d, message %d: another answer\n", at, message);
				exit(91);
			}
			if (milliseconds() - began > longest)
				longest = milliseconds() - began;
			carried += kernel_bytes(connections[at]) == before;
		}
		if (pause_us)
			usleep((useconds_t)pause_us);
	}
	printf("carried %d of %d, longest %ld ms\n", carried, count, longest);
	fflush(stdout);
	if (stays) {
		uint32_t bytes = 100;

		/* Part of a message, so that its answer never comes. */
		send_all(connections[0], &bytes, sizeof bytes);
		pause();
	}
}

int main(int arguments, char **argument)
{
	signal(SIGPIPE, SIG_IGN);
	/* One that is not woken ends so. */
	alarm(60);
	if (arguments == 4 && !strcmp(argument[1], "serve"))
		serve(argument[2], !strcmp(argument[3], "poll"));
	else if (arguments >= 7 && atoi(argument[4]) <= MOST_CONNECTIONS)
		ask(argument[2], atoi(argument[3]), atoi(argument[4]), atoi(argument[5]), atoi(argument[6]), arguments > 7);
	else
		return 92;
	return 0;
}

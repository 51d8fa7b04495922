/* How connections begin. */
#include "conformance.h"

#ifndef MSG_FASTOPEN
#define MSG_FASTOPEN 0x20000000
#endif

static void say_error(struct side *s, int fd)
{
	int error = -1;
	socklen_t length = sizeof error;
	MUST(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length));
	say(s, "error: %s", error > 0 ? strerrorname_np(error) : "none");
}

static int closed_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof address;
	int fd = MUST(socket(AF_INET, SOCK_STREAM, 0));
	MUST(bind(fd, (struct sockaddr *)&address, sizeof address));
	MUST(getsockname(fd, (struct sockaddr *)&address, &length));
	/* It stays bound, so nobody else has the port; nobody listens. */
	return address.sin_port;
}

static void nonblocking_client(struct side *s)
{
	struct sockaddr_in nobody = { .sin_family = AF_INET, .sin_port = closed_port(), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	char byte;
	SAY(recv(fd, &byte, 1, 0));
	SAY(send(fd, "x", 1, MSG_NOSIGNAL));
	say(s, "connect: %s", connect(fd, (struct sockaddr *)&nobody, sizeof nobody) < 0 ? strerrorname_np(errno) : "done");
	say_events(s, "ready", wait_ready(fd, POLLOUT));
	say_error(s, fd);
	say_error(s, fd);
	SAY(recv(fd, &byte, 1, 0));
	close(fd);
	fd = MUST(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
	int gave = connect(fd, (struct sockaddr *)&s->address, sizeof s->address);
	say(s, "connect: %s", gave < 0 ? strerrorname_np(errno) : "done");
	say_events(s, "ready", wait_ready(fd, POLLOUT));
	say_error(s, fd);
	SAY(connect(fd, (struct sockaddr *)&s->address, sizeof s->address));
	SAY(recv(fd, &byte, 1, 0));
	set_nonblocking(fd, false);
	warm_up(s, fd);
	set_nonblocking(fd, true);
	SAY(recv(fd, &byte, 1, 0));
	SAY(connect(fd, (struct sockaddr *)&s->address, sizeof s->address));
	set_nonblocking(fd, false);
	exchange(s, fd);
	close(fd);
}

static void warm_server(struct side *s)
{
	s->fd = accept_warm(s);
	exchange(s, s->fd);
}

static void refused_client(struct side *s)
{
	struct sockaddr_in nobody = { .sin_family = AF_INET, .sin_port = closed_port(), .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = MUST(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	SAY(connect(fd, (struct sockaddr *)&nobody, sizeof nobody));
	say_error(s, fd);
	SAY(connect(fd, (struct sockaddr *)&s->address, sizeof s->address));
	warm_up(s, fd);
	exchange(s, fd);
	SAY(close(fd));
}

static void fast_open_client(struct side *s)
{
	int fd = MUST(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	SAY(sendto(fd, "first", 5, MSG_FASTOPEN, (struct sockaddr *)&s->address, sizeof s->address));
	meet(s);
	warm_up(s, fd);
	exchange(s, fd);
	close(fd);
}

static void fast_open_server(struct side *s)
{
	char bytes[8];
	s->fd = accept_cold(s);
	SAY(receive_all(s->fd, bytes, 5));
	meet(s);
	warm_up(s, s->fd);
	exchange(s, s->fd);
}

static void again_client(struct side *s)
{
	struct sockaddr none = { .sa_family = AF_UNSPEC };
	struct sockaddr_in own = { 0 };
	socklen_t length = sizeof own;
	int fd = connect_warm(s);
	MUST(getsockname(fd, (struct sockaddr *)&own, &length));
	SAY(send_all(fd, "lost or not", 11));
	hear(s);
	SAY(connect(fd, &none, sizeof none));
	SAY(send(fd, "x", 1, MSG_NOSIGNAL));
	char byte;
	SAY(recv(fd, &byte, 1, 0));
	hear(s);
	/* The same socket, and the same addresses. */
	/* Unless somebody else has been given the port meanwhile. */
	(void)bind(fd, (struct sockaddr *)&own, sizeof own);
	SAY(connect(fd, (struct sockaddr *)&s->address, sizeof s->address));
	warm_up(s, fd);
	exchange(s, fd);
	close(fd);
}

static void again_server(struct side *s)
{
	char bytes[16];
	s->fd = accept_warm(s);
	SAY(receive_all(s->fd, bytes, 11));
	tell(s);
	say_events(s, "ready", wait_ready(s->fd, 0));
	SAY(recv(s->fd, bytes, 1, 0));
	close(s->fd);
	tell(s);
	s->fd = accept_warm(s);
	exchange(s, s->fd);
}

static void itself_server(struct side *s)
{
	char bytes[64];
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof address;
	s->fd = MUST(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	MUST(bind(s->fd, (struct sockaddr *)&address, length));
	MUST(getsockname(s->fd, (struct sockaddr *)&address, &length));
	SAY(connect(s->fd, (struct sockaddr *)&address, sizeof address));
	MUST(setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)));
	warm_alone(s->fd, s->fd);
	int wrong = 0;
	for (int i = 0; i < 200; i++) {
		MUST(send_all(s->fd, &i, sizeof i));
		wrong += receive_all(s->fd, bytes, sizeof i) != sizeof i || memcmp(bytes, &i, sizeof i) != 0;
	}
	say(s, "wrong: %d", wrong);
	SAY(shutdown(s->fd, SHUT_WR));
	receive_to_end(s, s->fd);
}

static void nothing_client(struct side *s)
{
	(void)s;
}

static void accepts_client(struct side *s)
{
	for (int i = 0; i < 3; i++) {
		int fd = connect_warm(s);
		exchange(s, fd);
		close(fd);
	}
}

static void accepts_server(struct side *s)
{
	const int flags[] = { 0, SOCK_NONBLOCK, SOCK_NONBLOCK | SOCK_CLOEXEC };
	SAY(accept4(s->listener, NULL, NULL, 9999));
	for (int i = 0; i < 3; i++) {
		struct sockaddr_in from = { 0 };
		socklen_t length = sizeof from;
		wait_readable(s->listener);
		int fd = MUST(accept4(s->listener, (struct sockaddr *)&from, &length, flags[i]));
		say(s, "non-blocking: %d, close-on-exec: %d, address: %u bytes of %d", (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0,
		    fcntl(fd, F_GETFD), length, from.sin_family);
		set_nonblocking(fd, false);
		warm_up(s, fd);
		exchange(s, fd);
		close(fd);
	}
	set_nonblocking(s->listener, true);
	SAY(accept(s->listener, NULL, NULL));
	SAY(accept4(s->listener, NULL, NULL, 0));
	set_nonblocking(s->listener, false);
}

static void unaccepted_client(struct side *s)
{
	int fd = connect_cold(s), wrong = 0;
	for (int i = 0; i < 100; i++)
		MUST(send_all(fd, &i, sizeof i));
	meet(s);
	for (int i = 0, got; i < 100; i++)
		wrong += receive_all(fd, &got, sizeof got) != sizeof got || got != 2 * i;
	say(s, "wrong: %d", wrong);
	warm_up(s, fd);
	exchange(s, fd);
	close(fd);
}

/* Much is sent before the connection is accepted. */
static void unaccepted_server(struct side *s)
{
	meet(s);
	s->fd = accept_cold(s);
	for (int i = 0, got; i < 100; i++) {
		MUST(receive_all(s->fd, &got, sizeof got));
		got *= 2;
		MUST(send_all(s->fd, &got, sizeof got));
	}
	warm_up(s, s->fd);
	exchange(s, s->fd);
}

#define WORKERS 3
#define CLIENTS 12

static void reuse_port_client(struct side *s)
{
	struct sockaddr_in before = s->address;
	MUST(read(s->from_other, &s->address.sin_port, sizeof s->address.sin_port));
	int fds[CLIENTS];
	for (int i = 0; i < CLIENTS; i++)
		fds[i] = connect_warm(s);
	tell(s);
	for (int i = 0; i < CLIENTS; i++) {
		exchange(s, fds[i]);
		close(fds[i]);
	}
	hear(s);
	s->address = before;
}

static int serve_port(struct side *s, int listener, int end)
{
	struct pollfd list[2] = { { .fd = listener, .events = POLLIN }, { .fd = end, .events = POLLIN } };
	int served[CLIENTS], count = 0;
	while (poll(list, 2, -1) > 0 && list[0].revents) {
		served[count] = MUST(accept4(listener, NULL, NULL, SOCK_CLOEXEC));
		warm_up(s, served[count++]);
	}
	for (int i = 0; i < count; i++)
		be_inherited(served[i]);
	return count;
}

static void reuse_port_server(struct side *s)
{
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof address;
	int listeners[WORKERS], end[2], one = 1, all = 0;
	pid_t workers[WORKERS];
	MUST(pipe(end));
	for (int i = 0; i < WORKERS; i++) {
		listeners[i] = MUST(socket(AF_INET, SOCK_STREAM, 0));
		MUST(setsockopt(listeners[i], SOL_SOCKET, SO_REUSEPORT, &one, sizeof one));
		MUST(bind(listeners[i], (struct sockaddr *)&address, length));
		MUST(getsockname(listeners[i], (struct sockaddr *)&address, &length));
		MUST(listen(listeners[i], 16));
	}
	for (int i = 0; i < WORKERS; i++) {
		workers[i] = MUST(fork());
		if (workers[i] == 0) {
			close(end[1]);
			_exit(serve_port(s, listeners[i], end[0]));
		}
	}
	MUST(write(s->to_other, &address.sin_port, sizeof address.sin_port));
	hear(s);
	close(end[1]);
	for (int i = 0; i < WORKERS; i++) {
		int status = 0;
		MUST(waitpid(workers[i], &status, 0));
		all += WIFEXITED(status) ? WEXITSTATUS(status) : 1000;
		close(listeners[i]);
	}
	close(end[0]);
	say(s, "served: %d", all);
	tell(s);
}

static void listener_woken_client(struct side *s)
{
	hear(s);
	wait_asleep(s);
	int fd = connect_warm(s);
	exchange(s, fd);
	close(fd);
}

static void listener_woken_server(struct side *s)
{
	tell(s);
	warm_server(s);
}

const struct test_case opening_cases[] = {
	{ "nonblocking", ANYWHERE, true, warm_server, nonblocking_client, "non-blocking `connect`, `SO_ERROR`" },
	{ "refused", ANYWHERE, true, warm_server, refused_client, "`connect` that is refused, and again" },
	{ "fast_open", ANYWHERE, true, fast_open_server, fast_open_client, "`MSG_FASTOPEN`" },
	{ "again", ANYWHERE, true, again_server, again_client, "`connect` to `AF_UNSPEC`, and to the same addresses again" },
	{ "itself", TWO_PROCESSES, true, itself_server, nothing_client, "a connection to itself" },
	{ "accepts", ANYWHERE, true, accepts_server, accepts_client, "`accept4` and its flags" },
	{ "unaccepted", ANYWHERE, true, unaccepted_server, unaccepted_client, "much that is sent before `accept`" },
	{ "reuse_port", TWO_PROCESSES, true, reuse_port_server, reuse_port_client, "`SO_REUSEPORT` with several processes" },
	{ "listener_woken", ANYWHERE, true, listener_woken_server, listener_woken_client, "`accept` that waits" },
	{ 0 },
};

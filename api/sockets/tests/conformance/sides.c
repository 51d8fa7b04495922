/* What the sides do to each other besides the connection, and what they say of it. */
#include "conformance.h"

#include <sys/un.h>

#include <dlfcn.h>
#include <linux/sockios.h>
#include <stdarg.h>
#include <time.h>

/* How long a preloaded library may take to take a connection over, and a thread to fall asleep. */
#define PATIENCE_SECONDS 5
#define ASLEEP_LOOKS 2000
#define WARM_BYTES 32

void fail(const char *what)
{
	fprintf(stderr, "conformance: %s: %s\n", what, strerror(errno));
	exit(99);
}

static void append(const char *variable, const char *line)
{
	const char *path = getenv(variable);
	if (!path)
		return;
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0644);
	if (fd >= 0) {
		dprintf(fd, "%s\n", line);
		close(fd);
	}
}

void say(struct side *s, const char *format, ...)
{
	char text[1024], line[1100];
	va_list arguments;
	va_start(arguments, format);
	vsnprintf(text, sizeof text, format, arguments);
	va_end(arguments);
	snprintf(line, sizeof line, "%s: %s", s->is_client ? "client" : "server", text);
	fprintf(s->out, "%s\n", line);
	append("CONFORMANCE_LOG", line);
}

void say_result(struct side *s, const char *call, long gave, int number)
{
	if (gave < 0)
		say(s, "%s = %ld %s", call, gave, number ? strerrorname_np(number) : "");
	else
		say(s, "%s = %ld", call, gave);
}

uint64_t sum(const void *bytes, size_t count)
{
	uint64_t sum = 0xcbf29ce484222325;
	for (size_t i = 0; i < count; i++)
		sum = (sum ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3;
	return sum;
}

void say_bytes(struct side *s, const char *name, const void *bytes, long count)
{
	if (count < 0)
		say(s, "%s: none", name);
	else
		say(s, "%s: %ld bytes, sum %016llx", name, count, (unsigned long long)sum(bytes, count));
}

void tell(struct side *s)
{
	if (write(s->to_other, "t", 1) != 1)
		fail("the other side has gone");
}

void hear(struct side *s)
{
	char byte;
	ssize_t bytes;
	do {
		bytes = read(s->from_other, &byte, 1);
	} while (bytes < 0 && errno == EINTR);
	if (bytes != 1) {
		/* The other side says why it has gone. */
		say(s, "the other side has gone");
		append("CONFORMANCE_LOG", "gone");
		exit(97);
	}
}

void meet(struct side *s)
{
	tell(s);
	hear(s);
}

bool has_told(struct side *s, int milliseconds)
{
	struct pollfd poll_fd = { .fd = s->from_other, .events = POLLIN };
	return poll(&poll_fd, 1, milliseconds) == 1;
}

static char state_of(int pid, int tid)
{
	char path[64], text[512];
	snprintf(path, sizeof path, "/proc/%d/task/%d/stat", pid, tid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t bytes = fd < 0 ? -1 : read(fd, text, sizeof text - 1);
	if (fd >= 0)
		close(fd);
	if (bytes <= 0)
		return '?';
	text[bytes] = 0;
	const char *end = strrchr(text, ')');
	return end && end[1] ? end[2] : '?';
}

void wait_thread_asleep(int pid, int tid)
{
	for (int looks = 0, asleep = 0; looks < ASLEEP_LOOKS && asleep < 5; looks++) {
		asleep = state_of(pid, tid) == 'S' ? asleep + 1 : 0;
		poll(NULL, 0, 1);
	}
}

void wait_asleep(struct side *s)
{
	wait_thread_asleep(s->other_pid, s->other_tid);
}

void interrupt_other(struct side *s, int signal)
{
	do {
		wait_asleep(s);
		MUST(syscall(SYS_tgkill, s->other_pid, s->other_tid, signal));
	} while (!has_told(s, 20));
	hear(s);
}

void pattern(void *bytes, size_t count, unsigned seed)
{
	uint32_t state = seed * 2654435761u + 1;
	for (size_t i = 0; i < count; i++) {
		state = state * 1664525 + 1013904223;
		((unsigned char *)bytes)[i] = state >> 24;
	}
}

long receive_all(int fd, void *bytes, size_t count)
{
	size_t done = 0;
	while (done < count) {
		ssize_t got = recv(fd, (char *)bytes + done, count - done, 0);
		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		done += got;
	}
	return done;
}

long send_all(int fd, const void *bytes, size_t count)
{
	size_t done = 0;
	while (done < count) {
		ssize_t sent = send(fd, (const char *)bytes + done, count - done, MSG_NOSIGNAL);
		if (sent < 0 && errno == EINTR)
			continue;
		if (sent <= 0)
			break;
		done += sent;
	}
	return done;
}

/* Whether a preloaded library carries both directions of this connection; -1 where there is none. */
static int is_accelerated(int fd)
{
	static int (*ask)(int);
	static bool is_known;
	if (!is_known) {
		ask = (int (*)(int))dlsym(RTLD_DEFAULT, "beeline_sockets_is_accelerated");
		is_known = true;
	}
	return ask ? ask(fd) : -1;
}

/* Datagrams to a group before it is asked whether windows carry them. */
#define OF_WARM_ROUND 40

static bool has_patience(const struct timespec *since)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - since->tv_sec < PATIENCE_SECONDS;
}

void warm_up(struct side *s, int fd)
{
	warm_up_with(s, fd, NULL, 0);
}

void warm_up_with(struct side *s, int fd, const void *other, socklen_t length)
{
	const char *variable = getenv("CONFORMANCE_WARMUP");
	int wanted = variable ? atoi(variable) : 64;
	unsigned char ours[WARM_BYTES], theirs[WARM_BYTES];
	int is_carried = 0;
	struct timespec since;
	clock_gettime(CLOCK_MONOTONIC, &since);
	/* The client says in each message whether it is the last one, and the server whether it needs no more. */
	for (int count = 1, is_last = wanted == 0; !is_last; count++) {
		pattern(ours, sizeof ours, count);
		/* Looked at before the last message: behind it the other side may be at the point of the case, and have closed its end. */
		int was_carried = is_carried;
		is_carried = is_accelerated(fd);
		ours[1] = is_carried != 0;
		if (!s->is_client) {
			if (receive_all(fd, theirs, sizeof theirs) != sizeof theirs)
				fail("a message before the case");
			is_last = theirs[0];
			/* By the answer before the client has decided it; datagrams may rest from windows since. */
			if (is_last)
				is_carried = was_carried;
		} else {
			bool is_enough = count >= wanted && count > 1 && (ours[1] || !has_patience(&since));
			is_last = is_enough && (theirs[1] || !has_patience(&since));
		}
		ours[0] = is_last;
		if (sendto(fd, ours, sizeof ours, MSG_NOSIGNAL, other, length) != sizeof ours)
			fail("send a message before the case");
		if (s->is_client && receive_all(fd, theirs, sizeof theirs) != sizeof theirs)
			fail("an answer before the case");
	}
	append("CONFORMANCE_PATHS", is_carried > 0 ? "accelerated" : "kernel");
}

void warm_members(struct side *s, const int *fds, int count, const void *group, socklen_t length)
{
	/* Elsewhere groups are the kernel's, and nobody waits for windows. */
	const char *rule = getenv("BEELINE_SOCKETS_MULTICAST");
	bool may_be = rule && strcmp(rule, "host") == 0;
	unsigned char bytes[WARM_BYTES];
	char ours, theirs;
	struct timespec since;
	clock_gettime(CLOCK_MONOTONIC, &since);
	for (int round = 0, is_last = 0; !is_last; round++) {
		for (int i = 0; i < OF_WARM_ROUND; i++)
			for (int at = 0; at < count; at++)
				if (s->is_client ? sendto(fds[at], bytes, sizeof bytes, 0, group, length) != sizeof bytes
						 : recv(fds[at], bytes, sizeof bytes, 0) != sizeof bytes)
					fail("a datagram to a group before the case");
		ours = 1;
		for (int at = 0; at < count; at++)
			ours &= is_accelerated(fds[at]) != 0;
		MUST(write(s->to_other, &ours, 1));
		if (read(s->from_other, &theirs, 1) != 1)
			fail("the other side has gone");
		/* The client decides. */
		is_last = round >= 3 && ((ours && theirs) || !may_be || !has_patience(&since));
		if (s->is_client)
			MUST(write(s->to_other, &is_last, sizeof is_last));
		else if (read(s->from_other, &is_last, sizeof is_last) != sizeof is_last)
			fail("the other side has gone");
	}
	append("CONFORMANCE_PATHS", ours > 0 && is_accelerated(fds[0]) > 0 ? "accelerated" : "kernel");
	meet(s);
}

static void turn_alone(int from, int to, unsigned seed)
{
	unsigned char ours[WARM_BYTES], theirs[WARM_BYTES];
	pattern(ours, sizeof ours, seed);
	if (send_all(from, ours, sizeof ours) != sizeof ours || receive_all(to, theirs, sizeof theirs) != sizeof theirs)
		fail("a message before the case");
}

void warm_alone(int one, int other)
{
	const char *variable = getenv("CONFORMANCE_WARMUP");
	int wanted = variable ? atoi(variable) : 64;
	struct timespec since;
	clock_gettime(CLOCK_MONOTONIC, &since);
	for (int count = 0; count < wanted || ((!is_accelerated(one) || !is_accelerated(other)) && has_patience(&since)); count++) {
		turn_alone(one, other, count);
		turn_alone(other, one, count);
	}
	append("CONFORMANCE_PATHS", is_accelerated(one) > 0 && is_accelerated(other) > 0 ? "accelerated" : "kernel");
}

int connect_cold(struct side *s)
{
	int fd = MUST(socket(is_unix() ? AF_UNIX : AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	if (is_unix()) {
		struct sockaddr_un name;
		socklen_t length = unix_address(&name, ntohs(s->address.sin_port));
		MUST(connect(fd, (struct sockaddr *)&name, length));
	} else {
		MUST(connect(fd, (struct sockaddr *)&s->address, sizeof s->address));
	}
	return fd;
}

int accept_cold(struct side *s)
{
	return MUST(accept4(s->listener, NULL, NULL, SOCK_CLOEXEC));
}

int connect_warm(struct side *s)
{
	int fd = connect_cold(s);
	warm_up(s, fd);
	return fd;
}

int accept_warm(struct side *s)
{
	int fd = accept_cold(s);
	warm_up(s, fd);
	return fd;
}

void exchange(struct side *s, int fd)
{
	char bytes[200] = { 0 }, sent[200];
	pattern(sent, sizeof sent, s->is_client);
	if (s->is_client)
		SAY(send_all(fd, sent, sizeof sent));
	say_bytes(s, "exchanged", bytes, receive_all(fd, bytes, sizeof bytes));
	if (!s->is_client)
		SAY(send_all(fd, sent, sizeof sent));
}

void receive_to_end(struct side *s, int fd)
{
	static __thread char part[65536];
	uint64_t total = 0, hash = 0xcbf29ce484222325;
	ssize_t got;
	while ((got = recv(fd, part, sizeof part, 0)) > 0) {
		for (ssize_t i = 0; i < got; i++)
			hash = (hash ^ (unsigned char)part[i]) * 0x100000001b3;
		total += got;
	}
	int number = errno;
	say(s, "to the end: %llu bytes, sum %016llx, then %s", (unsigned long long)total, (unsigned long long)hash,
	    got == 0 ? "the end" : strerrorname_np(number));
}

short ready_now(int fd, short events)
{
	struct pollfd poll_fd = { .fd = fd, .events = events };
	MUST(poll(&poll_fd, 1, 0));
	return poll_fd.revents;
}

short wait_ready(int fd, short events)
{
	struct pollfd poll_fd = { .fd = fd, .events = events };
	while (poll(&poll_fd, 1, -1) < 0 && errno == EINTR)
		;
	return poll_fd.revents;
}

void wait_readable(int fd)
{
	wait_ready(fd, POLLIN);
}

void wait_unread(int fd, int bytes)
{
	int unread = 0;
	while (MUST(ioctl(fd, FIONREAD, &unread)) == 0 && unread < bytes)
		poll(NULL, 0, 1);
}

void wait_taken(int fd)
{
	int left = 1;
	while (MUST(ioctl(fd, SIOCOUTQ, &left)) == 0 && left > 0)
		poll(NULL, 0, 1);
}

void say_events(struct side *s, const char *name, unsigned events)
{
	say(s, "%s:%s%s%s%s%s%s", name, events & POLLIN ? " in" : "", events & POLLOUT ? " out" : "",
	    events & POLLPRI ? " urgent" : "", events & POLLERR ? " error" : "", events & POLLHUP ? " hang-up" : "",
	    events & POLLRDHUP ? " half-closed" : "");
}

void say_ready(struct side *s, int set, int milliseconds)
{
	struct epoll_event events[8];
	int count = epoll_wait(set, events, 8, milliseconds);
	say(s, "ready: %d", count);
	for (int i = 0; i < count; i++) {
		say(s, "data %llu", (unsigned long long)events[i].data.u64);
		say_events(s, "events", events[i].events);
	}
}

void set_nonblocking(int fd, bool is_nonblocking)
{
	int flags = MUST(fcntl(fd, F_GETFL));
	MUST(fcntl(fd, F_SETFL, is_nonblocking ? flags | O_NONBLOCK : flags & ~O_NONBLOCK));
}

void keep_over_exec(int fd)
{
	MUST(fcntl(fd, F_SETFD, 0));
}

void say_child(struct side *s, const char *name, pid_t child)
{
	int status = 0;
	while (waitpid(child, &status, 0) < 0 && errno == EINTR)
		;
	if (WIFSIGNALED(status))
		say(s, "%s ended by signal %d", name, WTERMSIG(status));
	else
		say(s, "%s exited with %d", name, WEXITSTATUS(status));
}

pid_t fork_that_stays(void)
{
	int told[2];
	char is_there;
	MUST(pipe(told));
	pid_t child = MUST(fork());
	if (child == 0) {
		write(told[1], "c", 1);
		pause();
		_exit(0);
	}
	MUST(read(told[0], &is_there, 1));
	close(told[0]);
	close(told[1]);
	return child;
}

uint64_t inherited_sum;

int be_inherited(int fd)
{
	char bytes[200];
	int answered = 0;
	while (receive_all(fd, bytes, sizeof bytes) == sizeof bytes) {
		inherited_sum = inherited_sum * 31 + sum(bytes, sizeof bytes);
		pattern(bytes, sizeof bytes, 2);
		if (send_all(fd, bytes, sizeof bytes) == sizeof bytes)
			answered++;
	}
	return answered;
}

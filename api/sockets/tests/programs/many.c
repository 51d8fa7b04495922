/* Two processes with many connections at the same time. `many serve` says its port; `many ask PORT CONNECTIONS ROUNDS PASSES` opens them,
 * exchanges a message over each in every pass, closes all, and begins again. Both say what they have while all are open, and once none is. */
#include "resources.h"
#include <stdint.h>
#include <sys/epoll.h>

enum { MOST_BYTES = 2500, TOGETHER = 200 };

/* What the client has the server do, over a connection of its own. */
enum order { OPEN = 1, PASS, IDLE, CLOSE, SETTLE, END };

struct command {
	int32_t order, value;
};

static int *connections, count, control;

static uint64_t mixed(uint64_t x)
{
	x ^= x >> 33;
	x *= 0xff51afd7ed558ccdULL;
	x ^= x >> 33;
	x *= 0xc4ceb9fe1a85ec53ULL;
	return x ^ x >> 33;
}

static size_t message(unsigned char *out, int at, int pass, int is_answer)
{
	uint64_t seed = mixed((uint64_t)at << 32 | (uint64_t)pass << 1 | (uint64_t)is_answer);
	size_t bytes = 1 + seed % MOST_BYTES;

	for (size_t byte = 0; byte < bytes; byte++)
		out[byte] = (unsigned char)(seed >> byte % 7 * 8) ^ (unsigned char)(byte * 131);
	return bytes;
}

static void receive_all(int fd, void *out, size_t bytes)
{
	for (size_t got = 0; got < bytes;) {
		ssize_t more = recv(fd, (char *)out + got, bytes - got, 0);

		if (more <= 0) {
			printf("recv gave %zd %s after %zu of %zu\n", more, more < 0 ? strerrorname_np(errno) : "", got, bytes);
			exit(9);
		}
		got += (size_t)more;
	}
}

static void send_all(int fd, const void *from, size_t bytes)
{
	for (size_t sent = 0; sent < bytes;) {
		ssize_t more = send(fd, (const char *)from + sent, bytes - sent, 0);

		MUST(more);
		sent += (size_t)more;
	}
}

static void receive_message(int at, int pass, int is_answer)
{
	unsigned char wanted[MOST_BYTES], got[MOST_BYTES];
	size_t bytes = message(wanted, at, pass, is_answer);

	receive_all(connections[at], got, bytes);
	if (memcmp(got, wanted, bytes)) {
		printf("connection %d, pass %d: other bytes came\n", at, pass);
		exit(8);
	}
}

static void send_message(int at, int pass, int is_answer)
{
	unsigned char bytes[MOST_BYTES];
	size_t length = message(bytes, at, pass, is_answer);

	send_all(connections[at], bytes, length);
}

static void make_room(int more)
{
	connections = realloc(connections, sizeof(int) * (size_t)(count + more));
	if (!connections)
		exit(96);
}

/* Waits in a set that has all connections, while nobody sends; how often threads slept meanwhile, and the ticks of the processor. */
static void idle(const char *who, int seconds)
{
	struct epoll_event event = { .events = EPOLLIN };
	struct rusage before, after;
	int set = epoll_create1(EPOLL_CLOEXEC);

	MUST(set);
	for (int at = 0; at < count; at++) {
		event.data.fd = connections[at];
		MUST(epoll_ctl(set, EPOLL_CTL_ADD, connections[at], &event));
	}
	/* Until what began with the set has ended. */
	if (epoll_wait(set, &event, 1, 500))
		exit(93);
	long slept = sleeps();

	MUST(getrusage(RUSAGE_SELF, &before));
	if (epoll_wait(set, &event, 1, seconds * 1000))
		exit(93);
	MUST(getrusage(RUSAGE_SELF, &after));
	long used = (after.ru_utime.tv_sec - before.ru_utime.tv_sec + after.ru_stime.tv_sec - before.ru_stime.tv_sec) * 1000000 +
		after.ru_utime.tv_usec - before.ru_utime.tv_usec + after.ru_stime.tv_usec - before.ru_stime.tv_usec;

	printf("%s idle sleeps %ld microseconds %ld\n", who, sleeps() - slept, used);
	fflush(stdout);
	close(set);
}

/* Waits until what the connections used has gone back: another thread does that. */
static void settle(const char *who, int round, long most_shared_kib)
{
	struct resources now = resources();

	for (int turn = 0; turn < 1000 && now.shared_kib > most_shared_kib; turn++) {
		usleep(10000);
		now = resources();
	}
	say_resources(who, "closed", round, now);
}

static void serve(void)
{
	struct sockaddr_in address = listener();
	struct command command;
	int round = 0;

	MUST(listen(listener_fd, 4096));
	printf("port %d\n", ntohs(address.sin_port));
	fflush(stdout);
	MUST(control = accept(listener_fd, NULL, NULL));
	for (;;) {
		receive_all(control, &command, sizeof command);
		switch (command.order) {
		case OPEN:
			make_room(command.value);
			for (int left = command.value; left; left--)
				MUST(connections[count++] = accept(listener_fd, NULL, NULL));
			break;
		case PASS:
			for (int at = 0; at < count; at++) {
				receive_message(at, command.value, 0);
				send_message(at, command.value, 1);
			}
			continue;
		case IDLE:
			send_all(control, &command, sizeof command);
			idle("server", command.value);
			break;
		case CLOSE:
			say_resources("server", "open", round, resources());
			for (int at = 0; at < count; at++) {
				char end;

				if (recv(connections[at], &end, 1, 0))
					exit(7);
				close(connections[at]);
			}
			count = 0;
			break;
		case SETTLE:
			settle("server", round++, command.value);
			break;
		default:
			exit(0);
		}
		send_all(control, &command, sizeof command);
	}
}

static void order(enum order order, int value)
{
	struct command command = { order, value };

	send_all(control, &command, sizeof command);
}

static void answered(void)
{
	struct command command;

	receive_all(control, &command, sizeof command);
}

static int connected(const struct sockaddr_in *address)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	MUST(fd);
	MUST(connect(fd, (const struct sockaddr *)address, sizeof *address));
	return fd;
}

/* A message over each and an answer; returns of how many the kernel saw nothing. */
static int pass(int number)
{
	int carried = 0;
	unsigned long long *before = calloc((size_t)count, sizeof *before);

	for (int at = 0; at < count; at++)
		before[at] = kernel_bytes(connections[at]);
	order(PASS, number);
	for (int at = 0; at < count; at++)
		send_message(at, number, 0);
	for (int at = 0; at < count; at++)
		receive_message(at, number, 1);
	for (int at = 0; at < count; at++)
		carried += kernel_bytes(connections[at]) == before[at];
	free(before);
	return carried;
}

static void ask(const struct sockaddr_in *address, int most, int rounds, int passes, int idle_seconds)
{
	/* Words of each connection stay, and windows of some. */
	int shared_kib = most + 5120;

	control = connected(address);
	for (int round = 0; round < rounds; round++) {
		int carried = 0, number = 0;

		make_room(most);
		while (count < most) {
			int more = most - count < TOGETHER ? most - count : TOGETHER;

			for (int left = more; left; left--)
				connections[count++] = connected(address);
			order(OPEN, more);
			answered();
		}
		/* Until all are carried, and then so often that each goes round its window. */
		for (int turn = 0; turn < 300 && carried < count; turn++) {
			carried = pass(number++);
			usleep(carried < count ? 20000 : 0);
		}
		for (int turn = 0; turn < passes; turn++)
			carried = pass(number++);
		printf("client round %d: %d of %d carried, %d passes\n", round, carried, count, number);
		say_resources("client", "open", round, resources());
		if (idle_seconds) {
			order(IDLE, idle_seconds);
			answered();
			idle("client", idle_seconds);
			answered();
		}
		order(CLOSE, 0);
		for (int at = 0; at < count; at++)
			close(connections[at]);
		count = 0;
		answered();
		settle("client", round, shared_kib);
		order(SETTLE, shared_kib);
		answered();
	}
	order(END, 0);
}

int main(int arguments, char **argument)
{
	set_limits();
	signal(SIGPIPE, SIG_IGN);
	if (arguments < 6) {
		serve();
		return 0;
	}
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argument[1])) };

	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	ask(&address, atoi(argument[2]), atoi(argument[3]), atoi(argument[4]), atoi(argument[5]));
	return 0;
}

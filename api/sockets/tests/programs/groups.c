/*
 * Members of a group, each a process, and processes that send to it, while other members join, leave and are killed.
 *
 *   groups MEMBERS SENDERS DATAGRAMS CHANGES [SLEEP_US]
 *
 * A sender is never further ahead of a member than its socket has room for, so each datagram has to come to each member once and in order; to one that joins from the first one on
 * that is sent behind its `setsockopt`. With changes the second member leaves and joins at once now and then, which changes nothing: it has what others on this host have joined for. Prints what was wrong, and what each member has; to standard error whether windows carried what was sent at the end.
 */
#include "ground.h"
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <sys/mman.h>

#define MOST 8
#define AHEAD 48
#define REJOINS_EVERY 700
#define HANGS_S 100

enum { NOT_THERE, COMES, JOINED, LEAVES, GONE };

struct datagram {
	uint32_t sender, number, bytes, sum;
	uint8_t rest[1400];
};

static struct shared {
	/* The number that a member waits for, of each sender. */
	_Atomic uint32_t next[MOST][MOST];
	_Atomic uint32_t sending[MOST];
	_Atomic int state[MOST];
	_Atomic int wrong, is_over, carried;
} *shared;

static struct sockaddr_in group = { .sin_family = AF_INET };
static int senders, changes;

static void complain(const char *what, int member, uint32_t sender, uint32_t number, uint32_t expected)
{
	if (atomic_fetch_add(&shared->wrong, 1) < 20)
		printf("member %d, sender %u: %s: %u, not %u\n", member, sender, what, number, expected), fflush(stdout);
}

static uint32_t sum_of(const struct datagram *it)
{
	uint32_t sum = it->number * 2654435761u + it->sender;
	for (uint32_t i = 0; i < it->bytes; i++)
		sum = sum * 31 + it->rest[i];
	return sum;
}

static int is_carried(int fd)
{
	int (*ask)(int) = (int (*)(int))dlsym(RTLD_DEFAULT, "beeline_sockets_is_accelerated");
	return ask ? ask(fd) : 0;
}

static int membership(int fd, int name)
{
	struct ip_mreq request = { group.sin_addr, { htonl(INADDR_LOOPBACK) } };
	return setsockopt(fd, IPPROTO_IP, name, &request, sizeof request);
}

static void take(int member, const struct datagram *it, long bytes, bool *has_first)
{
	if (bytes < 16 || it->bytes != bytes - 16 || it->sender >= MOST || sum_of(it) != it->sum) {
		complain("other bytes", member, it->sender, bytes, it->bytes);
		return;
	}
	uint32_t expected = shared->next[member][it->sender];
	if (has_first[it->sender] ? it->number != expected : it->number > expected)
		complain(has_first[it->sender] ? "another one" : "too late a first one", member, it->sender, it->number, expected);
	has_first[it->sender] = true;
	shared->next[member][it->sender] = it->number + 1;
}

/* `late`: senders have begun. */
static void be_member(int member, bool late, int sleep_us)
{
	bool has_first[MOST] = { 0 };
	int one = 1, taken = 0, fd;
	struct sockaddr_in any = { .sin_family = AF_INET, .sin_port = group.sin_port };
	struct datagram it;
	struct timeval limit = { .tv_usec = 20000 };
	MUST(fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	MUST(setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one));
	MUST(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
	/* From here on senders wait for it: what it has before it has joined, since others have on this host, must not fill its socket. */
	for (int at = 0; at < senders; at++)
		shared->next[member][at] = late ? shared->sending[at] : 0;
	shared->state[member] = COMES;
	MUST(bind(fd, (struct sockaddr *)&any, sizeof any));
	/* What was sent before this may come, since others have joined on this host. */
	MUST(membership(fd, IP_ADD_MEMBERSHIP));
	for (int at = 0; at < senders; at++)
		/* The one that is being sent may be missing. */
		shared->next[member][at] = late ? shared->sending[at] + 1 : 0;
	shared->state[member] = JOINED;
	while (!shared->is_over && shared->state[member] == JOINED) {
		long bytes = recv(fd, &it, sizeof it, 0);
		if (bytes >= 0)
			take(member, &it, bytes, has_first);
		else if (errno != EAGAIN && errno != EINTR)
			complain(strerrorname_np(errno), member, 0, 0, 0);
		if (changes && member == 1 && bytes >= 0 && ++taken % REJOINS_EVERY == 0) {
			MUST(membership(fd, IP_DROP_MEMBERSHIP));
			MUST(membership(fd, IP_ADD_MEMBERSHIP));
		}
		if (sleep_us)
			usleep(sleep_us);
	}
	if (!shared->is_over)
		MUST(membership(fd, IP_DROP_MEMBERSHIP));
	shared->state[member] = GONE;
	close(fd);
	exit(0);
}

/* Waits until no member is too far behind. */
static void wait_for_members(int sender, uint32_t number)
{
	for (int member = 0; member < MOST; member++)
		while ((shared->state[member] == JOINED || shared->state[member] == COMES) && shared->next[member][sender] + AHEAD < number)
			sched_yield();
}

static void be_sender(int sender, uint32_t datagrams)
{
	struct in_addr loopback = { htonl(INADDR_LOOPBACK) };
	struct sockaddr_in own = { .sin_family = AF_INET, .sin_addr = loopback };
	struct datagram it = { .sender = sender };
	int fd;
	MUST(fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	MUST(bind(fd, (struct sockaddr *)&own, sizeof own));
	MUST(setsockopt(fd, IPPROTO_IP, IP_MULTICAST_IF, &loopback, sizeof loopback));
	for (uint32_t number = 0; number < datagrams; number++) {
		it.number = number;
		it.bytes = number % 61 == 60 ? 1400 : number % 47;
		memset(it.rest, number, it.bytes);
		it.sum = sum_of(&it);
		wait_for_members(sender, number);
		shared->sending[sender] = number;
		if (sendto(fd, &it, 16 + it.bytes, 0, (struct sockaddr *)&group, sizeof group) != 16 + (long)it.bytes)
			complain(strerrorname_np(errno), -1, sender, number, 0);
	}
	atomic_fetch_add(&shared->carried, is_carried(fd) > 0);
	/* What is in the windows is received before the socket is closed and behind that. */
	close(fd);
	exit(0);
}

static pid_t start_member(int member, bool late, int sleep_us)
{
	shared->state[member] = NOT_THERE;
	pid_t child = fork();
	if (!child)
		be_member(member, late, sleep_us);
	while (shared->state[member] < JOINED)
		sched_yield();
	return child;
}

/* A member joins, is there for a while, and leaves or is killed. */
static void change(int member, int count)
{
	pid_t child = start_member(member, true, 0);
	usleep(1000 * (5 + count * 37 % 90));
	if (count % 2) {
		kill(child, SIGKILL);
		waitpid(child, NULL, 0);
		shared->state[member] = GONE;
	} else {
		int expected = JOINED;
		atomic_compare_exchange_strong(&shared->state[member], &expected, LEAVES);
		waitpid(child, NULL, 0);
	}
}

int main(int count, char **words)
{
	if (count < 5)
		return 98;
	int members = atoi(words[1]), sleep_us = count > 5 ? atoi(words[5]) : 0;
	uint32_t datagrams = atoi(words[3]);
	pid_t children[MOST];
	senders = atoi(words[2]);
	changes = atoi(words[4]);
	alarm(HANGS_S);
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	/* A port that is free, by a process that has ended. */
	int ends[2];
	MUST(pipe(ends));
	if (!fork()) {
		struct sockaddr_in any = { .sin_family = AF_INET };
		socklen_t length = sizeof any;
		int fd = socket(AF_INET, SOCK_DGRAM, 0);
		MUST(bind(fd, (struct sockaddr *)&any, sizeof any));
		MUST(getsockname(fd, (struct sockaddr *)&any, &length));
		MUST(write(ends[1], &any.sin_port, sizeof any.sin_port));
		_exit(0);
	}
	wait(NULL);
	MUST(read(ends[0], &group.sin_port, sizeof group.sin_port));
	group.sin_addr.s_addr = htonl(0xefff0000 | ntohs(group.sin_port));
	for (int member = 0; member < members; member++)
		start_member(member, false, member == 0 ? sleep_us : 0);
	for (int sender = 0; sender < senders; sender++)
		if (!(children[sender] = fork()))
			be_sender(sender, datagrams);
	for (int i = 0; i < changes; i++)
		change(MOST - 1, i);
	for (int sender = 0; sender < senders; sender++)
		waitpid(children[sender], NULL, 0);
	for (int member = 0; member < members; member++)
		for (int sender = 0; sender < senders; sender++) {
			while (shared->next[member][sender] < datagrams)
				sched_yield();
			printf("member %d has %u of sender %d\n", member, shared->next[member][sender], sender);
		}
	shared->is_over = 1;
	while (wait(NULL) > 0)
		;
	printf("wrong: %d\n", shared->wrong);
	fprintf(stderr, "carried: %d\n", shared->carried);
	return shared->wrong != 0;
}

/* What the cases of the conformance program have in common: two sides of a connection, and what each saw, as lines. */
#ifndef CONFORMANCE_H
#define CONFORMANCE_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

/* One of the two sides of a case: the server, or the client, which is another process or a thread of the same one. */
struct side {
	bool is_client;
	bool is_one_process;
	/* The connection, once the messages before the point of the case are over; -1 in a case that connects by itself. */
	int fd;
	/* The server's, and where it listens. */
	int listener;
	struct sockaddr_in address;
	/* Pipes to and from the other side. */
	int to_other, from_other;
	int other_pid, other_tid;
	/* The client, where it is a process of its own. */
	int client_pid;
	/* Whether the other side ends before the case does. */
	bool is_left_alone;
	/* What this side has seen, and where a client's goes. */
	FILE *out;
	char *seen;
	size_t seen_bytes;
	int memory;
};

typedef void play(struct side *s);

/* Where a case can run. */
enum modes { TWO_PROCESSES = 1, ONE_PROCESS = 2, ANYWHERE = 3 };

struct test_case {
	const char *name;
	enum modes modes;
	/* Whether the case connects by itself. */
	bool connects;
	play *server, *client;
	/* Line of the matrix. */
	const char *what;
};

/* Each file of cases has a list that ends with a case without a name. */
extern const struct test_case reading_cases[], ending_cases[], waiting_cases[], sets_cases[], interrupted_cases[], children_cases[],
	numbers_cases[], options_cases[], opening_cases[], transfer_cases[], threads_cases[], foreign_cases[];
/* Those of UDP open their sockets themselves. */
extern const struct test_case datagram_cases[], datagram_waiting_cases[], datagram_holder_cases[], datagram_change_cases[],
	datagram_group_cases[], datagram_member_cases[];

extern const struct test_case rds_cases[];

/* Those of streams of AF_UNIX; others run over those, too, by their names behind `unix_`. */
extern const struct test_case unix_cases[];
/* Whether connections of this case are streams of AF_UNIX, and the name that such a listener has by a number. */
bool is_unix(void);
struct sockaddr_un;
socklen_t unix_address(struct sockaddr_un *address, int number);

/* A line of what this side sees. */
void say(struct side *s, const char *format, ...) __attribute__((format(printf, 2, 3)));
void say_result(struct side *s, const char *call, long gave, int number);
/* Says a name, how many bytes, and their sum. */
void say_bytes(struct side *s, const char *name, const void *bytes, long count);
/* Writes out what was seen: before this process becomes another program. */
void flush(struct side *s);

/* Says what a call gave, and `errno` where it failed; is what it gave. */
#define SAY(call)                                                                                                      \
	({                                                                                                             \
		errno = 0;                                                                                             \
		long gave_ = (long)(call);                                                                             \
		int number_ = errno;                                                                                   \
		say_result(s, #call, gave_, number_);                                                                  \
		errno = number_;                                                                                       \
		gave_;                                                                                                 \
	})

#define MUST(call)                                                                                                     \
	({                                                                                                             \
		long gave_ = (long)(call);                                                                             \
		if (gave_ < 0)                                                                                         \
			fail(#call);                                                                                   \
		gave_;                                                                                                 \
	})

void fail(const char *what) __attribute__((noreturn));

/* Both sides come here, or one tells and the other hears. */
void meet(struct side *s);
void tell(struct side *s);
void hear(struct side *s);
bool has_told(struct side *s, int milliseconds);
/* Waits until the other side's thread sleeps in the kernel; at most two seconds, for one that never does. */
void wait_asleep(struct side *s);
void wait_thread_asleep(int pid, int tid);
/* Sends a signal to the other side's thread until it tells. */
void interrupt_other(struct side *s, int signal);

/* Connections that are warm: the messages before the point of the case have gone both ways. */
int connect_warm(struct side *s);
int accept_warm(struct side *s);
void warm_up(struct side *s, int fd);
/* As `warm_up`, of a socket that says to whom it sends. */
void warm_up_with(struct side *s, int fd, const void *other, socklen_t length);
/* The client's sockets send to a group of which the server's are members, until windows carry it. */
void warm_members(struct side *s, const int *fds, int count, const void *group, socklen_t length);
/* The same where one thread has both ends. */
void warm_alone(int one, int other);
/* As the first two, cold. */
int connect_cold(struct side *s);
int accept_cold(struct side *s);

void pattern(void *bytes, size_t count, unsigned seed);
uint64_t sum(const void *bytes, size_t count);
/* All of it, or what came before the end or an error. */
long receive_all(int fd, void *bytes, size_t count);
long send_all(int fd, const void *bytes, size_t count);
/* Receives until the end, and says how many bytes with which sum, and how it ended. */
void receive_to_end(struct side *s, int fd);
/* One message there and one back, by each side. */
void exchange(struct side *s, int fd);
/* Waits for readiness without a bound, and says it. */
short wait_ready(int fd, short events);
void wait_readable(int fd);
/* Readiness now. */
short ready_now(int fd, short events);
/* Waits until so many bytes can be read. */
void wait_unread(int fd, int bytes);
/* Waits until the other side has nothing to take. */
void wait_taken(int fd);
void say_events(struct side *s, const char *name, unsigned events);
/* Waits at a set of epoll, and says what it tells. */
void say_ready(struct side *s, int set, int milliseconds);
void set_nonblocking(int fd, bool is_nonblocking);
void keep_over_exec(int fd);
/* Sends a number over a connection of the same host, and takes one. */
void put_number(int connection, int number);
int take_number(int connection);
/* Waits for a child and says how it ended. */
void say_child(struct side *s, const char *name, pid_t child);
/* A child that lives until it is killed, once it has run: until then it has what the library leaves to it. */
pid_t fork_that_stays(void);
/* The program itself, with arguments for a child that has the number of a connection. */
const char *own_path(void);
/* What a program does with a connection that it was started with: answers messages until the end. */
int be_inherited(int fd);
/* The sum of the messages that it has answered. */
extern uint64_t inherited_sum;
/* The server goes on as another program. */
void resume_as_other_program(struct side *s) __attribute__((noreturn));

#endif

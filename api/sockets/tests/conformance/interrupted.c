/* Signals, cancellation and jumps out of calls that wait. */
#include "interrupts.h"

#include <setjmp.h>
#include <sys/select.h>

static void interrupting(struct side *s, int calls)
{
	for (int i = 0; i < calls; i++) {
		meet(s);
		interrupt_other(s, SIGUSR1);
	}
	MUST(send_all(s->fd, "after", 5));
	meet(s);
}

static void eintr_receive_client(struct side *s)
{
	interrupting(s, 7);
}

static void eintr_receive_server(struct side *s)
{
	char bytes[16];
	struct iovec part = { bytes, sizeof bytes };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	struct mmsghdr messages = { .msg_hdr = message };
	on_signal(SIGUSR1, count_signal, 0);
	INTERRUPTED(recv(s->fd, bytes, sizeof bytes, 0));
	INTERRUPTED(recv(s->fd, bytes, sizeof bytes, MSG_PEEK));
	INTERRUPTED(read(s->fd, bytes, sizeof bytes));
	INTERRUPTED(readv(s->fd, &part, 1));
	INTERRUPTED(recvfrom(s->fd, bytes, sizeof bytes, 0, NULL, NULL));
	INTERRUPTED(recvmsg(s->fd, &message, 0));
	INTERRUPTED(recvmmsg(s->fd, &messages, 1, 0, NULL));
	say_bytes(s, "received", bytes, SAY(receive_all(s->fd, bytes, 5)));
	say(s, "there were signals: %d", signals >= 7);
	meet(s);
}

static void eintr_wait_client(struct side *s)
{
	interrupting(s, 7);
}

static void eintr_wait_server(struct side *s)
{
	char bytes[16];
	struct pollfd list = { .fd = s->fd, .events = POLLIN };
	struct epoll_event event = { .events = EPOLLIN };
	int set = MUST(epoll_create1(0));
	sigset_t none;
	fd_set reading;
	sigemptyset(&none);
	FD_ZERO(&reading);
	FD_SET(s->fd, &reading);
	MUST(epoll_ctl(set, EPOLL_CTL_ADD, s->fd, &event));
	/* These are not begun again whatever the handler's flags say. */
	on_signal(SIGUSR1, count_signal, SA_RESTART);
	INTERRUPTED(poll(&list, 1, -1));
	INTERRUPTED(ppoll(&list, 1, NULL, &none));
	INTERRUPTED(select(s->fd + 1, &reading, NULL, NULL, NULL));
	INTERRUPTED(pselect(s->fd + 1, &reading, NULL, NULL, NULL, &none));
	INTERRUPTED(epoll_wait(set, &event, 1, -1));
	INTERRUPTED(epoll_pwait(set, &event, 1, -1, &none));
	on_signal(SIGUSR1, count_signal, 0);
	INTERRUPTED(accept(s->listener, NULL, NULL));
	say_bytes(s, "received", bytes, SAY(receive_all(s->fd, bytes, 5)));
	meet(s);
	close(set);
}

static void restarted_client(struct side *s)
{
	meet(s);
	for (int i = 0; i < 20; i++) {
		wait_asleep(s);
		MUST(syscall(SYS_tgkill, s->other_pid, s->other_tid, SIGUSR1));
	}
	MUST(send_all(s->fd, "after", 5));
	meet(s);
	meet(s);
	interrupt_other(s, SIGUSR1);
	MUST(send_all(s->fd, "later", 5));
	meet(s);
}

static void restarted_server(struct side *s)
{
	char bytes[16];
	struct timeval limit = { .tv_sec = 60 };
	on_signal(SIGUSR1, count_signal, SA_RESTART);
	meet(s);
	say_bytes(s, "received", bytes, SAY(recv(s->fd, bytes, sizeof bytes, 0)));
	meet(s);
	/* One with a time limit is interrupted all the same. */
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
	INTERRUPTED(recv(s->fd, bytes, sizeof bytes, 0));
	say_bytes(s, "received", bytes, SAY(recv(s->fd, bytes, sizeof bytes, 0)));
	meet(s);
}

static void eintr_part_client(struct side *s)
{
	MUST(send_all(s->fd, "part", 4));
	meet(s);
	interrupt_other(s, SIGUSR1);
	MUST(send_all(s->fd, "rest", 4));
	meet(s);
}

static void eintr_part_server(struct side *s)
{
	char bytes[64];
	on_signal(SIGUSR1, count_signal, 0);
	wait_unread(s->fd, 4);
	meet(s);
	say_bytes(s, "what came before the signal", bytes, SAY(recv(s->fd, bytes, sizeof bytes, MSG_WAITALL)));
	tell(s);
	say_bytes(s, "received", bytes, SAY(recv(s->fd, bytes, sizeof bytes, 0)));
	meet(s);
}

static void eintr_send_client(struct side *s)
{
	static char bytes[32 << 20];
	on_signal(SIGUSR1, count_signal, 0);
	pattern(bytes, sizeof bytes, 1);
	meet(s);
	ssize_t sent = send(s->fd, bytes, sizeof bytes, 0);
	say(s, "a part was sent: %d", sent > 0 && sent < (ssize_t)sizeof bytes);
	tell(s);
	MUST(send_all(s->fd, bytes + sent, sizeof bytes - sent));
	MUST(shutdown(s->fd, SHUT_WR));
}

static void eintr_send_server(struct side *s)
{
	meet(s);
	interrupt_other(s, SIGUSR1);
	receive_to_end(s, s->fd);
}

static int handler_fd;

static void write_in_handler(int signal)
{
	(void)signal;
	int number = errno;
	if (write(handler_fd, "h", 1) != 1)
		_exit(96);
	errno = number;
}

static void handler_client(struct side *s)
{
	char bytes[8];
	meet(s);
	for (int i = 0; i < 20; i++) {
		wait_asleep(s);
		MUST(syscall(SYS_tgkill, s->other_pid, s->other_tid, SIGUSR1));
		if (receive_all(s->fd, bytes, 1) != 1 || bytes[0] != 'h')
			say(s, "signal %d was not answered", i);
	}
	MUST(send_all(s->fd, "x", 1));
	meet(s);
}

static void handler_server(struct side *s)
{
	char byte;
	handler_fd = s->fd;
	on_signal(SIGUSR1, write_in_handler, SA_RESTART);
	meet(s);
	SAY(recv(s->fd, &byte, 1, 0));
	meet(s);
}

/* Signals come at any instruction of sends and receives. */
static void handler_storm_client(struct side *s)
{
	char bytes[65];
	int letters = 0, others = 0;
	meet(s);
	for (int i = 0; i < 2000; i++) {
		if (i % 2 == 0)
			MUST(syscall(SYS_tgkill, s->other_pid, s->other_tid, SIGUSR1));
		MUST(send_all(s->fd, "01234567", 8));
		for (int k = 0; k < 8;) {
			MUST(receive_all(s->fd, bytes, 1));
			if (bytes[0] == 'h')
				letters++;
			else if (bytes[0] == "01234567"[k++])
				continue;
			else
				others++;
		}
	}
	MUST(send_all(s->fd, "0123456.", 8));
	meet(s);
	while (recv(s->fd, bytes, 1, MSG_DONTWAIT) == 1)
		letters += bytes[0] == 'h';
	say(s, "answers of the handler: %d, bytes of others: %d", letters > 0 && letters <= 1000, others);
}

static void handler_storm_server(struct side *s)
{
	char bytes[8];
	handler_fd = s->fd;
	on_signal(SIGUSR1, write_in_handler, SA_RESTART);
	/* A stream of AF_UNIX has no packets. */
	if (!is_unix())
		MUST(setsockopt(s->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int)));
	meet(s);
	while (receive_all(s->fd, bytes, 8) == 8 && bytes[7] != '.')
		for (int i = 0; i < 8; i++)
			MUST(send_all(s->fd, bytes + i, 1));
	meet(s);
}

static volatile long handler_bytes, handler_sum, handler_errors;

static void read_in_handler(int signal)
{
	(void)signal;
	int number = errno;
	unsigned char byte;
	struct pollfd list = { .fd = handler_fd, .events = POLLIN };
	if (poll(&list, 1, 0) < 0)
		handler_errors++;
	ssize_t got = recv(handler_fd, &byte, 1, MSG_DONTWAIT);
	if (got == 1) {
		handler_bytes++;
		handler_sum += byte;
	} else if (got < 0 && errno != EAGAIN) {
		handler_errors++;
	}
	errno = number;
}

#define STORM_BYTES 20000

static void handler_reads_client(struct side *s)
{
	unsigned char bytes[STORM_BYTES];
	long sum = 0;
	pattern(bytes, sizeof bytes, 3);
	for (int i = 0; i < STORM_BYTES; i++)
		sum += bytes[i];
	meet(s);
	for (int i = 0; i < STORM_BYTES; i += 5) {
		MUST(send_all(s->fd, bytes + i, 5));
		MUST(syscall(SYS_tgkill, s->other_pid, s->other_tid, SIGUSR1));
	}
	say(s, "sum: %ld", sum);
	MUST(shutdown(s->fd, SHUT_WR));
	meet(s);
}

/* Each byte is the handler's or the call's that it has interrupted. */
static void handler_reads_server(struct side *s)
{
	unsigned char byte;
	long count = 0, sum = 0;
	ssize_t got;
	handler_fd = s->fd;
	on_signal(SIGUSR1, read_in_handler, SA_RESTART);
	meet(s);
	while ((got = recv(s->fd, &byte, 1, 0)) > 0) {
		count++;
		sum += byte;
	}
	say(s, "the end: %zd", got);
	on_signal(SIGUSR1, SIG_IGN, 0);
	say(s, "received: %ld, sum: %ld, errors: %ld", count + handler_bytes, sum + handler_sum, handler_errors);
	meet(s);
}

static sigjmp_buf behind;

static void jump(int signal)
{
	(void)signal;
	siglongjmp(behind, 1);
}

static void jump_client(struct side *s)
{
	for (int i = 0; i < 3; i++) {
		hear(s);
		wait_asleep(s);
		MUST(syscall(SYS_tgkill, s->other_pid, s->other_tid, SIGUSR1));
		hear(s);
	}
	exchange(s, s->fd);
}

static void jump_server(struct side *s)
{
	char byte;
	on_signal(SIGUSR1, jump, 0);
	for (volatile int i = 0; i < 3; i++) {
		if (sigsetjmp(behind, 1) == 0) {
			tell(s);
			SAY(recv(s->fd, &byte, 1, 0));
		} else {
			say(s, "jumped");
		}
		tell(s);
	}
	exchange(s, s->fd);
}

struct cancelled {
	struct side *s;
	int tid;
	bool is_poll;
};

static void say_cleanup(void *s)
{
	say(s, "cleaned up");
}

static void *receive_until_cancelled(void *argument)
{
	struct cancelled *thread = argument;
	struct pollfd list = { .fd = thread->s->fd, .events = POLLIN };
	char byte;
	pthread_cleanup_push(say_cleanup, thread->s);
	__atomic_store_n(&thread->tid, gettid(), __ATOMIC_RELEASE);
	if (thread->is_poll)
		poll(&list, 1, -1);
	else
		recv(thread->s->fd, &byte, 1, 0);
	say(thread->s, "was not cancelled");
	pthread_cleanup_pop(0);
	return NULL;
}

static void cancel_client(struct side *s)
{
	meet(s);
	exchange(s, s->fd);
}

static void cancel_server(struct side *s)
{
	for (int i = 0; i < 4; i++) {
		struct cancelled argument = { s, 0, i % 2 };
		pthread_t thread;
		void *result;
		MUST(pthread_create(&thread, NULL, receive_until_cancelled, &argument));
		while (!__atomic_load_n(&argument.tid, __ATOMIC_ACQUIRE))
			poll(NULL, 0, 1);
		wait_thread_asleep(getpid(), argument.tid);
		int gave = pthread_cancel(thread);
		MUST(pthread_join(thread, &result));
		say(s, "pthread_cancel: %d", gave);
		say(s, "cancelled: %d", result == PTHREAD_CANCELED);
	}
	meet(s);
	exchange(s, s->fd);
}

static void masked_client(struct side *s)
{
	meet(s);
	MUST(syscall(SYS_tgkill, s->other_pid, s->other_tid, SIGUSR1));
	meet(s);
	meet(s);
}

/* A signal that is blocked but for the wait itself. */
static void masked_server(struct side *s)
{
	struct pollfd list = { .fd = s->fd, .events = POLLIN };
	sigset_t blocked, none;
	sigemptyset(&none);
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGUSR1);
	on_signal(SIGUSR1, count_signal, 0);
	MUST(pthread_sigmask(SIG_BLOCK, &blocked, NULL));
	meet(s);
	meet(s);
	SAY(poll(&list, 1, 20));
	say(s, "signals: %d", (int)signals);
	SAY(ppoll(&list, 1, NULL, &none));
	say(s, "signals: %d", (int)signals);
	meet(s);
	MUST(pthread_sigmask(SIG_UNBLOCK, &blocked, NULL));
}

const struct test_case interrupted_cases[] = {
	{ "eintr_receive", ANYWHERE, false, eintr_receive_server, eintr_receive_client, "`EINTR` of `recv`, `read`, `readv`, `recvfrom`, `recvmsg`, `recvmmsg`" },
	{ "eintr_wait", ANYWHERE, false, eintr_wait_server, eintr_wait_client, "`EINTR` of `poll`, `ppoll`, `select`, `pselect`, `epoll_wait`, `epoll_pwait`" },
	{ "restarted", ANYWHERE, false, restarted_server, restarted_client, "`SA_RESTART`, with and without `SO_RCVTIMEO`" },
	{ "eintr_part", ANYWHERE, false, eintr_part_server, eintr_part_client, "a signal in the middle of `MSG_WAITALL`" },
	{ "eintr_send", ANYWHERE, false, eintr_send_server, eintr_send_client, "a signal in the middle of a `send` that waits" },
	{ "handler", ANYWHERE, false, handler_server, handler_client, "`write` in a signal handler, on the connection that is received from" },
	{ "handler_storm", ANYWHERE, false, handler_storm_server, handler_storm_client, "signals at any moment of sends and receives" },
	{ "handler_reads", ANYWHERE, false, handler_reads_server, handler_reads_client, "`poll` and `recv` in a signal handler, at any moment of a receive" },
	{ "jump", TWO_PROCESSES, false, jump_server, jump_client, "`siglongjmp` out of a `recv`" },
	{ "cancel", ANYWHERE, false, cancel_server, cancel_client, "`pthread_cancel` in `recv` and `poll`" },
	{ "masked", ANYWHERE, false, masked_server, masked_client, "the mask of signals of `ppoll`" },
	{ 0 },
};

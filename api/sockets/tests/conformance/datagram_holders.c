/* Who has a socket of UDP: signals, threads that close it, children, other programs, copies. */
#include "datagrams.h"
#include "interrupts.h"

#include <setjmp.h>

static sigjmp_buf outside;

static void jump_out(int signal)
{
	(void)signal;
	siglongjmp(outside, 1);
}

static void eintr_client(struct side *s)
{
	open_connected(s);
	for (int i = 0; i < 8; i++) {
		meet(s);
		interrupt_other(s, SIGUSR1);
	}
	MUST(send(s->fd, "after", 5, 0));
	meet(s);
}

static void eintr_server(struct side *s)
{
	char bytes[16];
	struct iovec part = { bytes, sizeof bytes };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1 };
	struct mmsghdr messages = { .msg_hdr = message };
	struct epoll_event event = { .events = EPOLLIN };
	open_connected(s);
	struct pollfd list = { .fd = s->fd, .events = POLLIN };
	int set = MUST(epoll_create1(0));
	MUST(epoll_ctl(set, EPOLL_CTL_ADD, s->fd, &event));
	on_signal(SIGUSR1, count_signal, 0);
	INTERRUPTED(recv(s->fd, bytes, sizeof bytes, 0));
	INTERRUPTED(recv(s->fd, bytes, sizeof bytes, MSG_PEEK));
	INTERRUPTED(readv(s->fd, &part, 1));
	INTERRUPTED(recvfrom(s->fd, bytes, sizeof bytes, 0, NULL, NULL));
	INTERRUPTED(recvmsg(s->fd, &message, 0));
	INTERRUPTED(recvmmsg(s->fd, &messages, 1, 0, NULL));
	INTERRUPTED(poll(&list, 1, -1));
	INTERRUPTED(epoll_wait(set, &event, 1, -1));
	say_bytes(s, "received", bytes, SAY(recv(s->fd, bytes, sizeof bytes, 0)));
	say(s, "there were signals: %d", signals >= 8);
	meet(s);
	close(set);
}

static void restarted_client(struct side *s)
{
	open_connected(s);
	meet(s);
	for (int i = 0; i < 20; i++) {
		wait_asleep(s);
		MUST(syscall(SYS_tgkill, s->other_pid, s->other_tid, SIGUSR1));
	}
	MUST(send(s->fd, "after", 5, 0));
	meet(s);
	meet(s);
	interrupt_other(s, SIGUSR1);
	MUST(send(s->fd, "later", 5, 0));
	meet(s);
}

static void restarted_server(struct side *s)
{
	char bytes[16];
	struct timeval limit = { .tv_sec = 50 };
	open_connected(s);
	on_signal(SIGUSR1, count_signal, SA_RESTART);
	meet(s);
	say_bytes(s, "received", bytes, SAY(recv(s->fd, bytes, sizeof bytes, 0)));
	meet(s);
	/* A call with a time limit is not begun again. */
	SAY(setsockopt(s->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit));
	INTERRUPTED(recv(s->fd, bytes, sizeof bytes, 0));
	say_bytes(s, "received", bytes, SAY(recv(s->fd, bytes, sizeof bytes, 0)));
	meet(s);
}

static void jump_client(struct side *s)
{
	open_connected(s);
	hear(s);
	wait_asleep(s);
	MUST(syscall(SYS_tgkill, s->other_pid, s->other_tid, SIGUSR1));
	meet(s);
}

/* A handler jumps out of a receive; the socket is closed, and its address is free. */
static void jump_server(struct side *s)
{
	struct sigaction action = { .sa_handler = jump_out };
	struct name own = { .length = sizeof own.of };
	char byte;
	open_connected(s);
	MUST(getsockname(s->fd, (struct sockaddr *)&own.of, &own.length));
	MUST(sigaction(SIGUSR1, &action, NULL));
	if (sigsetjmp(outside, 1) == 0) {
		tell(s);
		SAY(recv(s->fd, &byte, 1, 0));
	}
	SAY(close(s->fd));
	s->fd = MUST(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	SAY(bind(s->fd, (struct sockaddr *)&own.of, own.length));
	meet(s);
}

/* Before each `together` it waits until the server says who has the socket now; 0: it does not. */
static void exchange_twelve(struct side *s, int together)
{
	open_connected(s);
	for (int i = 0; i < 12; i++) {
		if (together && i % together == 0)
			meet(s);
		exchange(s, s->fd);
	}
	SAY(send(s->fd, NULL, 0, 0));
	meet(s);
}

static void exchanging_client(struct side *s)
{
	exchange_twelve(s, 0);
}

static void waiting_client(struct side *s)
{
	exchange_twelve(s, 4);
}

static void taking_turns_client(struct side *s)
{
	exchange_twelve(s, 2);
}

static void end_of_exchange(struct side *s)
{
	char byte;
	SAY(recv(s->fd, &byte, 1, 0));
	meet(s);
}

static void fork_server(struct side *s)
{
	open_connected(s);
	for (int i = 0; i < 3; i++) {
		meet(s);
		for (int round = 0; round < 2; round++)
			exchange(s, s->fd);
		pid_t child = MUST(fork());
		if (child == 0) {
			meet(s);
			exchange(s, s->fd);
			exchange(s, s->fd);
			_exit(4);
		}
		say_child(s, "child", child);
	}
	end_of_exchange(s);
}

static void fork_unread_client(struct side *s)
{
	open_connected(s);
	for (int i = 0; i < 5; i++)
		send_number(s->fd, i);
	meet(s);
	meet(s);
	exchange(s, s->fd);
}

static void fork_parent_server(struct side *s)
{
	open_connected(s);
	meet(s);
	pid_t child = MUST(fork());
	if (child == 0)
		_exit(4);
	say_child(s, "child", child);
	for (int i = 0; i < 5; i++)
		say(s, "number %d", receive_number(s->fd, 0));
	meet(s);
	exchange(s, s->fd);
}

static void fork_unread_server(struct side *s)
{
	open_connected(s);
	meet_delivered(s);
	pid_t child = MUST(fork());
	if (child == 0)
		_exit(10 + receive_number(s->fd, MSG_DONTWAIT));
	say_child(s, "child", child);
	for (int i = 1; i < 5; i++)
		say(s, "number %d", receive_number(s->fd, MSG_DONTWAIT));
	meet(s);
	exchange(s, s->fd);
}

static pid_t run_answering(struct side *s)
{
	char number[16];
	snprintf(number, sizeof number, "%d", s->fd);
	keep_over_exec(s->fd);
	pid_t child = MUST(fork());
	if (child == 0) {
		execl(own_path(), "conformance", "--answering", number, NULL);
		fail("execl");
	}
	return child;
}

static void exec_server(struct side *s)
{
	open_connected(s);
	pid_t child = run_answering(s);
	for (int i = 0; i < 3; i++)
		meet(s);
	say_child(s, "another program", child);
	meet(s);
}

/* Datagrams that are there before the program is. */
static void exec_unread_client(struct side *s)
{
	char bytes[200];
	open_connected(s);
	for (int i = 0; i < 5; i++)
		send_number(s->fd, i);
	meet(s);
	for (int i = 0; i < 5; i++)
		SAY(recv(s->fd, bytes, sizeof bytes, 0));
	SAY(send(s->fd, NULL, 0, 0));
	meet(s);
}

static void exec_unread_server(struct side *s)
{
	open_connected(s);
	meet(s);
	say_child(s, "another program", run_answering(s));
	meet(s);
}

static void dup_server(struct side *s)
{
	open_connected(s);
	int copies[3];
	for (int i = 0; i < 3; i++) {
		exchange(s, s->fd);
		copies[i] = MUST(i == 0 ? dup(s->fd) : fcntl(s->fd, i == 1 ? F_DUPFD : F_DUPFD_CLOEXEC, 400));
		exchange(s, copies[i]);
		exchange(s, s->fd);
	}
	SAY(close(s->fd));
	for (int i = 0; i < 3; i++)
		exchange(s, copies[i]);
	SAY(close(copies[1]));
	SAY(close(copies[2]));
	s->fd = copies[0];
	end_of_exchange(s);
}

static void dup_unread_server(struct side *s)
{
	open_connected(s);
	meet_delivered(s);
	int copy = MUST(dup(s->fd));
	for (int i = 0; i < 5; i++)
		say(s, "number %d", receive_number(i % 2 ? s->fd : copy, MSG_DONTWAIT));
	SAY(close(s->fd));
	s->fd = copy;
	meet(s);
	exchange(s, s->fd);
}

static void passed_server(struct side *s)
{
	int ends[2];
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ends));
	pid_t helper = MUST(fork());
	if (helper == 0) {
		close(ends[0]);
		int inner = take_number(ends[1]);
		meet(s);
		for (int i = 0; i < 4; i++)
			exchange(s, inner);
		put_number(ends[1], inner);
		_exit(3);
	}
	open_connected(s);
	meet(s);
	for (int i = 0; i < 4; i++)
		exchange(s, s->fd);
	put_number(ends[0], s->fd);
	SAY(close(s->fd));
	s->fd = take_number(ends[0]);
	meet(s);
	for (int i = 0; i < 4; i++)
		exchange(s, s->fd);
	say_child(s, "helper", helper);
	end_of_exchange(s);
	close(ends[0]);
	close(ends[1]);
}

struct receiving {
	int fd, tid, got;
	pthread_t thread;
};

static void *receive_in_thread(void *argument)
{
	struct receiving *receiving = argument;
	__atomic_store_n(&receiving->tid, gettid(), __ATOMIC_RELEASE);
	receiving->got = receive_number(receiving->fd, 0);
	return NULL;
}

static void start_receiving_by(struct receiving *receiving, void *(*run)(void *), void *argument)
{
	pthread_create(&receiving->thread, NULL, run, argument);
	while (__atomic_load_n(&receiving->tid, __ATOMIC_ACQUIRE) == 0)
		poll(NULL, 0, 1);
	wait_thread_asleep(getpid(), receiving->tid);
}

static void start_receiving(struct receiving *receiving, int fd)
{
	*receiving = (struct receiving){ .fd = fd };
	start_receiving_by(receiving, receive_in_thread, receiving);
}

/* The kernel has the socket as long as the call that waits there. */
static void close_under_server(struct side *s)
{
	struct receiving receiving;
	char byte;
	open_connected(s);
	start_receiving(&receiving, s->fd);
	SAY(close(s->fd));
	meet(s);
	pthread_join(receiving.thread, NULL);
	say(s, "received %d", receiving.got);
	SAY(recv(s->fd, &byte, 1, 0));
	s->fd = -1;
	meet(s);
}

struct forking {
	struct receiving receiving;
	/* Of both: how many have returned, and the child of the one that was first. */
	int *returned, *child;
};

static void *receive_and_fork(void *argument)
{
	struct forking *forking = argument;
	receive_in_thread(&forking->receiving);
	if (__atomic_fetch_add(forking->returned, 1, __ATOMIC_SEQ_CST) == 0)
		__atomic_store_n(forking->child, fork_that_stays(), __ATOMIC_RELEASE);
	return NULL;
}

/* The address is free once both receives have returned, though children live on that were made meanwhile, by the thread that closes and by the one whose receive has
 * returned first. */
static void fork_under_server(struct side *s)
{
	struct name own = { .length = sizeof own.of };
	struct forking forking[2];
	int returned = 0, children[2] = { 0 };
	open_connected(s);
	MUST(getsockname(s->fd, (struct sockaddr *)&own.of, &own.length));
	for (int i = 0; i < 2; i++) {
		forking[i] = (struct forking){ { .fd = s->fd }, &returned, &children[1] };
		start_receiving_by(&forking[i].receiving, receive_and_fork, &forking[i]);
	}
	SAY(close(s->fd));
	children[0] = fork_that_stays();
	meet(s);
	while (!__atomic_load_n(&children[1], __ATOMIC_ACQUIRE))
		poll(NULL, 0, 1);
	meet(s);
	for (int i = 0; i < 2; i++)
		pthread_join(forking[i].receiving.thread, NULL);
	say(s, "received %d", forking[0].receiving.got + forking[1].receiving.got);
	s->fd = MUST(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
	SAY(bind(s->fd, (struct sockaddr *)&own.of, own.length));
	for (int i = 0; i < 2; i++) {
		MUST(kill(children[i], SIGKILL));
		MUST(waitpid(children[i], NULL, 0));
	}
	meet(s);
}

static void fork_under_client(struct side *s)
{
	open_connected(s);
	meet(s);
	send_number(s->fd, 17);
	meet(s);
	send_number(s->fd, 18);
	meet(s);
}

static void shutdown_under_server(struct side *s)
{
	struct receiving receiving;
	open_connected(s);
	start_receiving(&receiving, s->fd);
	SAY(shutdown(s->fd, SHUT_RDWR));
	pthread_join(receiving.thread, NULL);
	say(s, "received %d", receiving.got);
	meet(s);
	meet(s);
}

static void one_number_client(struct side *s)
{
	open_connected(s);
	meet(s);
	send_number(s->fd, 17);
	meet(s);
}

const struct test_case datagram_holder_cases[] = {
	{ "udp_eintr", ANYWHERE, true, eintr_server, eintr_client, "`EINTR` of receives, `poll` and `epoll_wait`" },
	{ "udp_restarted", ANYWHERE, true, restarted_server, restarted_client, "`SA_RESTART`, with and without `SO_RCVTIMEO`" },
	{ "udp_jump", TWO_PROCESSES, true, jump_server, jump_client, "`siglongjmp` out of a `recv`, then `close`: the address is free" },
	{ "udp_fork", TWO_PROCESSES, true, fork_server, taking_turns_client, "`fork`: child and parent use the socket in turn" },
	{ "udp_fork_parent", TWO_PROCESSES, true, fork_parent_server, fork_unread_client, "`fork` with unread datagrams, which the parent receives" },
	{ "udp_fork_unread", TWO_PROCESSES, true, fork_unread_server, fork_unread_client, "the same, which the child receives" },
	{ "udp_exec", TWO_PROCESSES, true, exec_server, waiting_client, "`fork` and `exec` with the socket" },
	{ "udp_exec_unread", TWO_PROCESSES, true, exec_unread_server, exec_unread_client, "the same with unread datagrams" },
	{ "udp_dup", ANYWHERE, true, dup_server, exchanging_client, "`dup`, `F_DUPFD`, `F_DUPFD_CLOEXEC`" },
	{ "udp_dup_unread", ANYWHERE, true, dup_unread_server, fork_unread_client, "`dup` with unread datagrams" },
	{ "udp_passed", TWO_PROCESSES, true, passed_server, waiting_client, "`SCM_RIGHTS` to another process and back" },
	{ "udp_close_under", ANYWHERE, true, close_under_server, one_number_client, "`close` while another thread receives" },
	{ "udp_fork_under", TWO_PROCESSES, true, fork_under_server, fork_under_client, "`close` while another thread receives, then `fork`" },
	{ "udp_shutdown_under", ANYWHERE, true, shutdown_under_server, one_number_client, "`shutdown` while another thread receives" },
	{ 0 },
};

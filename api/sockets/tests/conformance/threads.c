/* Threads that share a connection, and processes that end while threads wait. */
#include "conformance.h"

#define THREADS 4
#define MESSAGES 500
#define MESSAGE_BYTES 100

struct worker {
	struct side *s;
	int fd, number, tid;
	long result;
	char byte;
	int error;
};

static void start(pthread_t *thread, void *(*run)(void *), struct worker *worker)
{
	worker->tid = 0;
	if (pthread_create(thread, NULL, run, worker) != 0)
		fail("pthread_create");
}

static void begun(struct worker *worker)
{
	__atomic_store_n(&worker->tid, gettid(), __ATOMIC_RELEASE);
}

static void wait_worker_asleep(struct worker *worker)
{
	while (!__atomic_load_n(&worker->tid, __ATOMIC_ACQUIRE))
		poll(NULL, 0, 1);
	wait_thread_asleep(getpid(), worker->tid);
}

static void *send_messages(void *argument)
{
	struct worker *worker = argument;
	char message[MESSAGE_BYTES];
	for (int i = 0; i < MESSAGES; i++) {
		memset(message, 'a' + worker->number, sizeof message);
		memcpy(message, &i, sizeof i);
		worker->result += send_all(worker->fd, message, sizeof message);
	}
	return NULL;
}

static void writers_client(struct side *s)
{
	pthread_t threads[THREADS];
	struct worker workers[THREADS];
	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .fd = s->fd, .number = i };
		start(&threads[i], send_messages, &workers[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		say(s, "writer %d: %ld bytes", i, workers[i].result);
	}
	SAY(shutdown(s->fd, SHUT_WR));
}

/* Messages of one call are whole, and those of a thread in order. */
static void writers_server(struct side *s)
{
	char message[MESSAGE_BYTES];
	int next[THREADS] = { 0 }, wrong = 0;
	while (receive_all(s->fd, message, sizeof message) == sizeof message) {
		int of = message[MESSAGE_BYTES - 1] - 'a', number;
		memcpy(&number, message, sizeof number);
		if (of < 0 || of >= THREADS || number != next[of]++)
			wrong++;
	}
	for (int i = 0; i < THREADS; i++)
		say(s, "of writer %d: %d", i, next[i]);
	say(s, "wrong: %d", wrong);
}

static void *receive_bytes(void *argument)
{
	struct worker *worker = argument;
	char part[1000];
	ssize_t got;
	while ((got = recv(worker->fd, part, sizeof part, 0)) > 0)
		for (ssize_t i = 0; i < got; i++)
			worker->result += (unsigned char)part[i];
	return NULL;
}

static void readers_client(struct side *s)
{
	static unsigned char bytes[1 << 20];
	long total = 0;
	pattern(bytes, sizeof bytes, 1);
	for (size_t i = 0; i < sizeof bytes; i++)
		total += bytes[i];
	for (size_t done = 0; done < sizeof bytes; done += 4096)
		MUST(send_all(s->fd, bytes + done, 4096));
	SAY(shutdown(s->fd, SHUT_WR));
	say(s, "sum: %ld", total);
}

static void readers_server(struct side *s)
{
	pthread_t threads[THREADS];
	struct worker workers[THREADS];
	long total = 0;
	for (int i = 0; i < THREADS; i++) {
		workers[i] = (struct worker){ .fd = s->fd };
		start(&threads[i], receive_bytes, &workers[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		total += workers[i].result;
	}
	say(s, "sum: %ld", total);
}

static void *receive_one(void *argument)
{
	struct worker *worker = argument;
	begun(worker);
	worker->result = recv(worker->fd, &worker->byte, 1, 0);
	worker->error = errno;
	return NULL;
}

static void close_under_client(struct side *s)
{
	meet(s);
	SAY(send_all(s->fd, "x", 1));
	receive_to_end(s, s->fd);
}

/* A receive that waits keeps the connection until it returns. */
static void close_under_server(struct side *s)
{
	pthread_t thread;
	struct worker worker = { .fd = s->fd };
	start(&thread, receive_one, &worker);
	wait_worker_asleep(&worker);
	SAY(close(s->fd));
	s->fd = -1;
	meet(s);
	pthread_join(thread, NULL);
	say(s, "received: %ld", worker.result);
	say_bytes(s, "bytes", &worker.byte, 1);
}

static void fork_under_client(struct side *s)
{
	meet(s);
	SAY(send_all(s->fd, "x", 1));
	meet(s);
	SAY(send_all(s->fd, "y", 1));
	receive_to_end(s, s->fd);
	meet(s);
}

struct forking {
	struct worker worker;
	/* Of both: how many have returned, and the child of the one that was first. */
	int *returned, *child;
};

static void *receive_one_and_fork(void *argument)
{
	struct forking *forking = argument;
	receive_one(&forking->worker);
	if (__atomic_fetch_add(forking->returned, 1, __ATOMIC_SEQ_CST) == 0)
		__atomic_store_n(forking->child, fork_that_stays(), __ATOMIC_RELEASE);
	return NULL;
}

/* Children that were made meanwhile, by the thread that closes and by one whose receive has returned, have nothing of the connection, and live on when the other
 * receive returns. */
static void fork_under_server(struct side *s)
{
	pthread_t threads[2];
	struct forking forking[2];
	int returned = 0, children[2] = { 0 };
	for (int i = 0; i < 2; i++) {
		forking[i] = (struct forking){ { .fd = s->fd }, &returned, &children[1] };
		if (pthread_create(&threads[i], NULL, receive_one_and_fork, &forking[i]) != 0)
			fail("pthread_create");
		wait_worker_asleep(&forking[i].worker);
	}
	SAY(close(s->fd));
	s->fd = -1;
	children[0] = fork_that_stays();
	meet(s);
	while (!__atomic_load_n(&children[1], __ATOMIC_ACQUIRE))
		poll(NULL, 0, 1);
	meet(s);
	for (int i = 0; i < 2; i++) {
		pthread_join(threads[i], NULL);
		say(s, "received: %ld", forking[i].worker.result);
	}
	say(s, "bytes: %d", forking[0].worker.byte + forking[1].worker.byte);
	meet(s);
	for (int i = 0; i < 2; i++) {
		MUST(kill(children[i], SIGKILL));
		MUST(waitpid(children[i], NULL, 0));
	}
}

static void reused_under_client(struct side *s)
{
	meet(s);
	int other = connect_warm(s);
	SAY(send_all(other, "o", 1));
	SAY(send_all(s->fd, "x", 1));
	exchange(s, other);
	receive_to_end(s, s->fd);
	close(other);
}

/* The number is another connection's by then. */
static void reused_under_server(struct side *s)
{
	pthread_t thread;
	struct worker worker = { .fd = s->fd };
	char byte;
	start(&thread, receive_one, &worker);
	wait_worker_asleep(&worker);
	SAY(close(s->fd));
	meet(s);
	int other = accept_warm(s);
	say(s, "the number again: %d", other == s->fd);
	s->fd = other;
	SAY(receive_all(other, &byte, 1));
	say(s, "of the other: %c", byte);
	pthread_join(thread, NULL);
	say(s, "of the first: %ld %c", worker.result, worker.byte);
	exchange(s, other);
}

static void shutdown_under_client(struct side *s)
{
	receive_to_end(s, s->fd);
}

static void shutdown_under_server(struct side *s)
{
	pthread_t thread;
	struct worker worker = { .fd = s->fd };
	start(&thread, receive_one, &worker);
	wait_worker_asleep(&worker);
	SAY(shutdown(s->fd, SHUT_RDWR));
	pthread_join(thread, NULL);
	say(s, "received: %ld", worker.result);
}

static void *accept_one(void *argument)
{
	struct worker *worker = argument;
	begun(worker);
	worker->result = accept(worker->fd, NULL, NULL);
	worker->error = errno;
	return NULL;
}

static void listener_shut_client(struct side *s)
{
	meet(s);
	int fd = MUST(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	SAY(connect(fd, (struct sockaddr *)&s->address, sizeof s->address));
	close(fd);
	exchange(s, s->fd);
}

static void listener_shut_server(struct side *s)
{
	pthread_t thread;
	struct worker worker = { .fd = s->listener };
	start(&thread, accept_one, &worker);
	wait_worker_asleep(&worker);
	SAY(shutdown(s->listener, SHUT_RDWR));
	pthread_join(thread, NULL);
	say(s, "accepted: %ld %s", worker.result, strerrorname_np(worker.error));
	meet(s);
	exchange(s, s->fd);
}

static void *wait_at_set(void *argument)
{
	struct worker *worker = argument;
	struct epoll_event event = { .events = EPOLLIN };
	int set = MUST(epoll_create1(0));
	MUST(epoll_ctl(set, EPOLL_CTL_ADD, worker->fd, &event));
	begun(worker);
	epoll_wait(set, &event, 1, -1);
	return NULL;
}

static void exit_threads_client(struct side *s)
{
	receive_to_end(s, s->fd);
}

/* `exit` runs destructors while threads are in calls. */
static void exit_threads_server(struct side *s)
{
	pid_t child = MUST(fork());
	if (child == 0) {
		pthread_t threads[3];
		struct worker workers[3];
		int fd = accept_warm(s);
		void *(*const runs[3])(void *) = { receive_one, wait_at_set, receive_one };
		for (int i = 0; i < 3; i++) {
			workers[i] = (struct worker){ .fd = fd };
			start(&threads[i], runs[i], &workers[i]);
			wait_worker_asleep(&workers[i]);
		}
		MUST(send_all(fd, "before the exit", 15));
		exit(11);
	}
	say_child(s, "child", child);
}

static void exit_threads_cold_client(struct side *s)
{
	s->fd = connect_warm(s);
	exit_threads_client(s);
}

static void *echo(void *argument)
{
	struct worker *worker = argument;
	char part[4096];
	ssize_t got;
	while ((got = recv(worker->fd, part, sizeof part, 0)) > 0)
		worker->result += send_all(worker->fd, part, got);
	close(worker->fd);
	return NULL;
}

#define CONNECTIONS 8

static void thread_each_client(struct side *s)
{
	int fds[CONNECTIONS];
	char byte;
	for (int i = 0; i < CONNECTIONS; i++)
		fds[i] = connect_warm(s);
	for (int turn = 0; turn < 200; turn++) {
		for (int i = 0; i < CONNECTIONS; i++)
			MUST(send_all(fds[i], "m", 1));
		for (int i = 0; i < CONNECTIONS; i++)
			if (receive_all(fds[i], &byte, 1) != 1)
				say(s, "no answer");
	}
	for (int i = 0; i < CONNECTIONS; i++)
		close(fds[i]);
}

static void thread_each_server(struct side *s)
{
	pthread_t threads[CONNECTIONS];
	struct worker workers[CONNECTIONS];
	for (int i = 0; i < CONNECTIONS; i++) {
		workers[i] = (struct worker){ .fd = accept_warm(s) };
		start(&threads[i], echo, &workers[i]);
	}
	for (int i = 0; i < CONNECTIONS; i++) {
		pthread_join(threads[i], NULL);
		say(s, "echoed: %ld", workers[i].result);
	}
}

const struct test_case threads_cases[] = {
	{ "writers", ANYWHERE, false, writers_server, writers_client, "threads that write to one connection" },
	{ "readers", ANYWHERE, false, readers_server, readers_client, "threads that read from one connection" },
	{ "thread_each", ANYWHERE, true, thread_each_server, thread_each_client, "a thread for each connection" },
	{ "close_under", ANYWHERE, false, close_under_server, close_under_client, "`close` while another thread receives" },
	{ "fork_under", TWO_PROCESSES, false, fork_under_server, fork_under_client, "`close` while another thread receives, then `fork`" },
	{ "reused_under", TWO_PROCESSES, false, reused_under_server, reused_under_client, "`close` while another thread receives, and the number used again" },
	{ "shutdown_under", ANYWHERE, false, shutdown_under_server, shutdown_under_client, "`shutdown` while another thread receives" },
	{ "listener_shut", ANYWHERE, false, listener_shut_server, listener_shut_client, "`shutdown` of a listener while another thread accepts" },
	{ "exit_threads", TWO_PROCESSES, true, exit_threads_server, exit_threads_cold_client, "`exit` while threads are in `recv` and `epoll_wait`" },
	{ 0 },
};

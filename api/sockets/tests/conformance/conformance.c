/* The conformance program: `conformance CASE [--one]` plays both sides of a case and prints what each saw.
 *
 * What is printed depends on nothing but the meaning of the calls: no time, number or order of the scheduler's. So a
 * library that is preloaded has to give the same lines. Before its point a case exchanges messages, so that such a library has
 * taken the connection over.
 *
 * CONFORMANCE_WARMUP   messages each way before the point of a case (64)
 * CONFORMANCE_LOG      a file that each line is appended to when it is seen, for cases that hang
 * CONFORMANCE_PATHS    a file that says by which path each connection went after these messages
 */
#include "datagrams.h"

#include <sys/mman.h>
#include <sys/un.h>

static const struct test_case *const lists[] = { reading_cases, ending_cases, waiting_cases, sets_cases, interrupted_cases,
	children_cases, numbers_cases, options_cases, opening_cases, transfer_cases, threads_cases, foreign_cases };
static const struct test_case *const datagram_lists[] = { datagram_cases, datagram_waiting_cases, datagram_holder_cases,
	datagram_change_cases, datagram_group_cases, datagram_member_cases };
static const struct test_case *const unix_lists[] = { unix_cases };
static const struct test_case *const rds_lists[] = { rds_cases };
/* What begins by other calls than those of `connect_cold`, asks for what only TCP has, or for more room than such a stream has. */
static const char *const of_tcp_alone[] = { "epoll_added_early", "options", "info", "names", "from", "zero_copy", "nonblocking",
	"refused", "fast_open", "again", "itself", "reuse_port", "unaccepted", "unread",
	"shut_reading", "exec_large", "own", NULL };
#define COUNT(list) (sizeof list / sizeof *list)

static const struct test_case *find_case_in(const struct test_case *const *lists, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		for (const struct test_case *one = lists[i]; one->name; one++)
			if (strcmp(one->name, name) == 0)
				return one;
	return NULL;
}

static bool is_of_tcp_alone(const char *name)
{
	for (const char *const *one = of_tcp_alone; *one; one++)
		if (strcmp(*one, name) == 0)
			return true;
	return false;
}

static const struct test_case *find_case(const char *name)
{
	static const char of_unix[] = "unix_";
	const struct test_case *one = find_case_in(unix_lists, COUNT(unix_lists), name);
	if (strncmp(name, of_unix, strlen(of_unix)) == 0) {
		setenv("CONFORMANCE_UNIX", "1", 1);
		name += strlen(of_unix);
	}
	if (!one)
		one = find_case_in(lists, COUNT(lists), name);
	if (!one)
		one = find_case_in(datagram_lists, COUNT(datagram_lists), name);
	if (!one)
		one = find_case_in(rds_lists, COUNT(rds_lists), name);
	if (one)
		return one;
	fprintf(stderr, "no case `%s`\n", name);
	exit(98);
}

static void list(const struct test_case *const *lists, size_t count, const char *protocol)
{
	for (size_t i = 0; i < count; i++)
		for (const struct test_case *one = lists[i]; one->name; one++)
			printf("%s\t%d\t%s\t%s\n", one->name, one->modes, protocol, one->what);
}

static void list_over_unix(void)
{
	for (size_t i = 0; i < COUNT(lists); i++)
		for (const struct test_case *one = lists[i]; one->name; one++)
			if (!is_of_tcp_alone(one->name))
				printf("unix_%s\t%d\tAF_UNIX\t%s\n", one->name, one->modes & TWO_PROCESSES ? TWO_PROCESSES : ONE_PROCESS, one->what);
}

const char *own_path(void)
{
	static char path[4096];
	if (!path[0])
		MUST(readlink("/proc/self/exe", path, sizeof path - 1));
	return path;
}

static void play_case(const struct test_case *one, struct side *s)
{
	if (!one->connects)
		s->fd = s->is_client ? connect_warm(s) : accept_warm(s);
	meet(s);
	(s->is_client ? one->client : one->server)(s);
	if (s->fd >= 0)
		close(s->fd);
	s->fd = -1;
	if (!s->is_left_alone)
		meet(s);
}

static void open_seen(struct side *s)
{
	s->out = open_memstream(&s->seen, &s->seen_bytes);
}

void flush(struct side *s)
{
	fflush(s->out);
	int to = s->is_client ? s->memory : 1;
	for (size_t done = 0; done < s->seen_bytes;)
		done += MUST(write(to, s->seen + done, s->seen_bytes - done));
	fclose(s->out);
	free(s->seen);
	open_seen(s);
}

/* Prints what both sides saw, the server first. */
static void finish(struct side *s, int client_status)
{
	char part[4096];
	flush(s);
	MUST(lseek(s->memory, 0, SEEK_SET));
	for (ssize_t bytes; (bytes = read(s->memory, part, sizeof part)) > 0;)
		MUST(write(1, part, bytes));
	if (WIFSIGNALED(client_status))
		dprintf(1, "client: ended by signal %d\n", WTERMSIG(client_status));
	else if (WEXITSTATUS(client_status) != 0)
		dprintf(1, "client: exited with %d\n", WEXITSTATUS(client_status));
}

static void exchange_ids(struct side *s)
{
	int own[2] = { getpid(), gettid() }, other[2];
	MUST(write(s->to_other, own, sizeof own));
	if (read(s->from_other, other, sizeof other) != sizeof other)
		fail("the other side has gone");
	s->other_pid = other[0];
	s->other_tid = other[1];
}

static int be_client(char **words)
{
	const struct test_case *one = find_case(words[0]);
	struct side s = { .is_client = true, .fd = -1, .listener = -1 };
	open_seen(&s);
	s.address = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = htons(atoi(words[1])) };
	s.address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	s.from_other = atoi(words[2]);
	s.to_other = atoi(words[3]);
	s.memory = atoi(words[4]);
	exchange_ids(&s);
	play_case(one, &s);
	flush(&s);
	return 0;
}

struct client_thread {
	struct side *side;
	const struct test_case *one;
};

static void *run_client_thread(void *argument)
{
	struct client_thread *thread = argument;
	exchange_ids(thread->side);
	play_case(thread->one, thread->side);
	flush(thread->side);
	return NULL;
}

static void start_client(const struct test_case *one, struct side *s, int in, int out)
{
	char port[16], numbers[3][16];
	snprintf(port, sizeof port, "%d", ntohs(s->address.sin_port));
	snprintf(numbers[0], sizeof numbers[0], "%d", in);
	snprintf(numbers[1], sizeof numbers[1], "%d", out);
	snprintf(numbers[2], sizeof numbers[2], "%d", s->memory);
	own_path();
	s->client_pid = MUST(fork());
	if (s->client_pid == 0) {
		close(s->to_other);
		close(s->from_other);
		execl(own_path(), "conformance", "--client", one->name, port, numbers[0], numbers[1], numbers[2], NULL);
		fail("execl");
	}
	close(in);
	close(out);
}

static void listen_somewhere(struct side *s)
{
	socklen_t length = sizeof s->address;
	s->address.sin_family = AF_INET;
	if (is_unix()) {
		struct sockaddr_un name;
		/* In the place of a port: of the cases that run at the same time none has the same. */
		int number = getpid() & 0xffff;
		s->address.sin_port = htons(number);
		length = unix_address(&name, number);
		s->listener = MUST(socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0));
		MUST(bind(s->listener, (struct sockaddr *)&name, length));
		MUST(listen(s->listener, 64));
		return;
	}
	s->address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	s->listener = MUST(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
	MUST(bind(s->listener, (struct sockaddr *)&s->address, length));
	MUST(listen(s->listener, 64));
	MUST(getsockname(s->listener, (struct sockaddr *)&s->address, &length));
}

static int be_server(const struct test_case *one, bool is_one_process)
{
	struct side s = { .is_one_process = is_one_process, .fd = -1 };
	struct side client = { .is_client = true, .is_one_process = true, .fd = -1 };
	int forth[2], back[2], status = 0;
	pthread_t thread;
	open_seen(&s);
	listen_somewhere(&s);
	s.memory = MUST(memfd_create("seen", 0));
	MUST(pipe(forth));
	MUST(pipe(back));
	s.to_other = forth[1];
	s.from_other = back[0];
	if (is_one_process) {
		open_seen(&client);
		client.listener = -1;
		client.address = s.address;
		client.memory = s.memory;
		client.from_other = forth[0];
		client.to_other = back[1];
		struct client_thread argument = { &client, one };
		if (pthread_create(&thread, NULL, run_client_thread, &argument) != 0)
			fail("pthread_create");
		exchange_ids(&s);
		play_case(one, &s);
		pthread_join(thread, NULL);
	} else {
		start_client(one, &s, forth[0], back[1]);
		exchange_ids(&s);
		play_case(one, &s);
		MUST(waitpid(s.client_pid, &status, 0));
	}
	finish(&s, status);
	return 0;
}

void resume_as_other_program(struct side *s)
{
	char numbers[5][16];
	int values[5] = { s->fd, s->memory, s->client_pid, s->to_other, s->from_other };
	for (int i = 0; i < 5; i++)
		snprintf(numbers[i], sizeof numbers[i], "%d", values[i]);
	flush(s);
	execl(own_path(), "conformance", "--resumed", numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], NULL);
	fail("execl");
}

static int be_resumed(char **words)
{
	struct side s = { .listener = -1 };
	int status;
	open_seen(&s);
	s.fd = atoi(words[0]);
	s.memory = atoi(words[1]);
	s.client_pid = atoi(words[2]);
	s.to_other = atoi(words[3]);
	s.from_other = atoi(words[4]);
	int answered = be_inherited(s.fd);
	say(&s, "another program answered %d, sum %016llx", answered, (unsigned long long)inherited_sum);
	close(s.fd);
	meet(&s);
	MUST(waitpid(s.client_pid, &status, 0));
	finish(&s, status);
	return 0;
}

int main(int count, char **words)
{
	if (count == 2 && strcmp(words[1], "--list") == 0) {
		list(lists, COUNT(lists), "TCP");
		list(datagram_lists, COUNT(datagram_lists), "UDP");
		list(rds_lists, COUNT(rds_lists), "RDS");
		list(unix_lists, COUNT(unix_lists), "AF_UNIX");
		list_over_unix();
		return 0;
	}
	if (count == 7 && strcmp(words[1], "--client") == 0)
		return be_client(words + 2);
	if (count == 7 && strcmp(words[1], "--resumed") == 0)
		return be_resumed(words + 2);
	if (count == 3 && strcmp(words[1], "--inherited") == 0)
		return be_inherited(atoi(words[2]));
	if (count == 3 && strcmp(words[1], "--answering") == 0)
		return answer_datagrams(atoi(words[2]));
	if (count == 2 || (count == 3 && strcmp(words[2], "--one") == 0))
		return be_server(find_case(words[1]), count == 3);
	fprintf(stderr, "conformance --list | CASE [--one]\n");
	return 98;
}

/* Children by every way, and programs that are executed with and without connections. */
#include "conformance.h"

#include <spawn.h>

extern char **environ;

static void serve_client(struct side *s)
{
	for (int i = 0; i < 64; i++)
		exchange(s, s->fd);
	SAY(shutdown(s->fd, SHUT_WR));
	receive_to_end(s, s->fd);
}

/* The server of most such programs: a child serves, the parent closes. */
static void fork_serves_server(struct side *s)
{
	fflush(s->out);
	pid_t child = MUST(fork());
	if (child == 0)
		_exit(be_inherited(s->fd));
	SAY(close(s->fd));
	s->fd = -1;
	say_child(s, "child", child);
}

static void fork_exits_server(struct side *s)
{
	pid_t child = MUST(fork());
	if (child == 0)
		_exit(5);
	say_child(s, "child", child);
	say(s, "answered: %d", be_inherited(s->fd));
}

static void fork_turns_client(struct side *s)
{
	for (int i = 0; i < 8; i++)
		exchange(s, s->fd);
	meet(s);
}

/* Child and parent use the connection in turn. */
static void fork_turns_server(struct side *s)
{
	int turn[2], back[2];
	char byte;
	MUST(pipe(turn));
	MUST(pipe(back));
	pid_t child = MUST(fork());
	if (child == 0) {
		for (int i = 0; i < 4; i++) {
			MUST(read(turn[0], &byte, 1));
			exchange(s, s->fd);
			MUST(write(back[1], "b", 1));
		}
		_exit(9);
	}
	for (int i = 0; i < 4; i++) {
		MUST(write(turn[1], "t", 1));
		MUST(read(back[0], &byte, 1));
		exchange(s, s->fd);
	}
	say_child(s, "child", child);
	meet(s);
	for (int i = 0; i < 2; i++) {
		close(turn[i]);
		close(back[i]);
	}
}

static void fork_saves_client(struct side *s)
{
	for (int i = 0; i < 64; i++)
		exchange(s, s->fd);
	SAY(close(s->fd));
	s->fd = -1;
	meet(s);
}

/* A child that has the connection for a while and uses it never, as one that saves a database. */
static void fork_saves_server(struct side *s)
{
	int end[2];
	char byte;
	MUST(pipe(end));
	pid_t child = MUST(fork());
	if (child == 0) {
		close(end[1]);
		MUST(read(end[0], &byte, 1));
		_exit(4);
	}
	for (int i = 0; i < 64; i++)
		exchange(s, s->fd);
	SAY(recv(s->fd, &byte, 1, 0));
	meet(s);
	close(end[0]);
	close(end[1]);
	say_child(s, "child", child);
}

static void prefork_client(struct side *s)
{
	int first = connect_warm(s), second = connect_warm(s);
	for (int i = 0; i < 8; i++) {
		exchange(s, first);
		exchange(s, second);
	}
	close(first);
	close(second);
}

/* Two children that were forked before anybody connected accept from one listener. */
static void prefork_server(struct side *s)
{
	pid_t children[2];
	for (int i = 0; i < 2; i++) {
		children[i] = MUST(fork());
		if (children[i] == 0) {
			int fd = accept_warm(s);
			_exit(be_inherited(fd));
		}
	}
	for (int i = 0; i < 2; i++)
		say_child(s, "child", children[i]);
}

static void executed(struct side *s, bool is_kept, bool is_vfork)
{
	char number[16];
	snprintf(number, sizeof number, "%d", s->fd);
	const char *path = own_path();
	if (is_kept)
		keep_over_exec(s->fd);
	pid_t child = MUST(is_vfork ? vfork() : fork());
	if (child == 0) {
		execl(path, "conformance", "--inherited", number, NULL);
		_exit(99);
	}
	if (is_kept) {
		SAY(close(s->fd));
		s->fd = -1;
	}
	say_child(s, "program", child);
}

static void exec_kept_server(struct side *s)
{
	executed(s, true, false);
}

static void vfork_kept_server(struct side *s)
{
	executed(s, true, true);
}

static void exec_not_kept_server(struct side *s)
{
	executed(s, false, false);
	say(s, "answered: %d", be_inherited(s->fd));
}

static void vfork_not_kept_server(struct side *s)
{
	executed(s, false, true);
	say(s, "answered: %d", be_inherited(s->fd));
}

static void exec_self_server(struct side *s)
{
	keep_over_exec(s->fd);
	resume_as_other_program(s);
}

static void exec_unread_client(struct side *s)
{
	char bytes[200];
	for (int i = 0; i < 4; i++) {
		pattern(bytes, sizeof bytes, 1);
		MUST(send_all(s->fd, bytes, sizeof bytes));
	}
	meet(s);
	for (int i = 0; i < 4; i++)
		say_bytes(s, "answer", bytes, receive_all(s->fd, bytes, sizeof bytes));
	SAY(shutdown(s->fd, SHUT_WR));
	receive_to_end(s, s->fd);
}

/* What came before and was not read is there for the other program. */
static void exec_unread_server(struct side *s)
{
	wait_unread(s->fd, 800);
	meet(s);
	keep_over_exec(s->fd);
	resume_as_other_program(s);
}

#define LARGE_BYTES 1000000

static void exec_large_client(struct side *s)
{
	static char bytes[LARGE_BYTES];
	pattern(bytes, sizeof bytes, 3);
	SAY(send_all(s->fd, bytes, sizeof bytes));
	meet(s);
	say_bytes(s, "answers", bytes, receive_all(s->fd, bytes, sizeof bytes));
	SAY(shutdown(s->fd, SHUT_WR));
	receive_to_end(s, s->fd);
}

/* More than a window has room for, so that some of it is elsewhere. */
static void exec_large_server(struct side *s)
{
	meet(s);
	keep_over_exec(s->fd);
	resume_as_other_program(s);
}

static void spawn_server(struct side *s)
{
	posix_spawn_file_actions_t actions;
	char *words[] = { "conformance", "--inherited", "0", NULL };
	pid_t child;
	MUST(posix_spawn_file_actions_init(&actions));
	MUST(posix_spawn_file_actions_adddup2(&actions, s->fd, 0));
	SAY(posix_spawn(&child, own_path(), &actions, NULL, words, environ));
	SAY(close(s->fd));
	s->fd = -1;
	say_child(s, "program", child);
	posix_spawn_file_actions_destroy(&actions);
}

static void system_server(struct side *s)
{
	char command[4200];
	keep_over_exec(s->fd);
	snprintf(command, sizeof command, "exec '%s' --inherited %d", own_path(), s->fd);
	int status = system(command);
	say(s, "program exited with %d", WEXITSTATUS(status));
}

static void popen_server(struct side *s)
{
	char command[4200], line[16] = "";
	keep_over_exec(s->fd);
	snprintf(command, sizeof command, "'%s' --inherited %d; echo $?", own_path(), s->fd);
	FILE *program = popen(command, "re");
	say(s, "printed: %s", program && fgets(line, sizeof line, program) ? strtok(line, "\n") : "nothing");
	say(s, "closed with %d", program ? pclose(program) : -1);
}

static void system_plain_server(struct side *s)
{
	say(s, "program exited with %d", WEXITSTATUS(system("exit 3")));
	say(s, "answered: %d", be_inherited(s->fd));
}

/* As daemons and launchers do before they execute something. */
static void close_from_server(struct side *s)
{
	pid_t child = MUST(fork());
	if (child == 0) {
		closefrom(3);
		_exit(fcntl(s->fd, F_GETFD) < 0 ? 6 : 7);
	}
	say_child(s, "child", child);
	say(s, "answered: %d", be_inherited(s->fd));
}

static void shared_set_client(struct side *s)
{
	exchange(s, s->fd);
	meet(s);
	exchange(s, s->fd);
	exchange(s, s->fd);
	meet(s);
}

/* A set that a child of fork waits at. */
static void shared_set_server(struct side *s)
{
	int set = MUST(epoll_create1(0));
	struct epoll_event event = { .events = EPOLLIN, .data.u32 = 7 };
	MUST(epoll_ctl(set, EPOLL_CTL_ADD, s->fd, &event));
	SAY(epoll_wait(set, &event, 1, -1));
	exchange(s, s->fd);
	pid_t child = MUST(fork());
	if (child == 0) {
		int ready = epoll_wait(set, &event, 1, -1);
		exchange(s, s->fd);
		_exit(10 * ready + event.data.u32);
	}
	meet(s);
	say_child(s, "child", child);
	SAY(epoll_wait(set, &event, 1, -1));
	exchange(s, s->fd);
	meet(s);
	close(set);
}

#define SERVED(name, server, what) { name, TWO_PROCESSES, false, server, serve_client, what }

const struct test_case children_cases[] = {
	SERVED("fork_serves", fork_serves_server, "`fork` behind `accept`: the child serves"),
	SERVED("fork_exits", fork_exits_server, "`fork` behind `accept`: the child exits"),
	{ "fork_turns", TWO_PROCESSES, false, fork_turns_server, fork_turns_client, "`fork`: child and parent use the connection in turn" },
	{ "fork_saves", TWO_PROCESSES, false, fork_saves_server, fork_saves_client, "`fork`: the child keeps the connection and does not use it" },
	{ "prefork", TWO_PROCESSES, true, prefork_server, prefork_client, "`fork` before anybody connects" },
	SERVED("exec_kept", exec_kept_server, "`fork` and `exec` with the connection"),
	SERVED("exec_not_kept", exec_not_kept_server, "`fork` and `exec` with `FD_CLOEXEC`"),
	SERVED("vfork_kept", vfork_kept_server, "`vfork` and `exec` with the connection"),
	SERVED("vfork_not_kept", vfork_not_kept_server, "`vfork` and `exec` with `FD_CLOEXEC`"),
	SERVED("exec_self", exec_self_server, "`exec` of the program itself"),
	{ "exec_unread", TWO_PROCESSES, false, exec_unread_server, exec_unread_client, "`exec` with unread bytes" },
	{ "exec_large", TWO_PROCESSES, false, exec_large_server, exec_large_client, "`exec` with a MB of unread bytes" },
	SERVED("spawn", spawn_server, "`posix_spawn` with the connection as standard input"),
	SERVED("system", system_server, "`system` with the connection"),
	SERVED("system_plain", system_plain_server, "`system` without it"),
	SERVED("popen", popen_server, "`popen` with the connection"),
	SERVED("close_from", close_from_server, "`closefrom` in a child"),
	{ "shared_set", TWO_PROCESSES, false, shared_set_server, shared_set_client, "`fork`: a set that parent and child wait at" },
	{ 0 },
};

/* Children by every way, which have the connection's descriptor, or have it not. */
#include "ground.h"

extern char **environ;
static int ends[2];
static char got[256];
static const char *self;

static void end_of(const char *how, pid_t child)
{
	int status = -1;

	MUST(waitpid(child, &status, 0));
	printf("%s: status %d\n", how, status);
}

/* What a child has sent, and what comes after it. */
static void received(void)
{
	SAY(write(ends[0], "parent\n", 7));
	long bytes = 0;

	while (bytes < 13) {
		long more = read(ends[1], got + bytes, 13 - bytes);

		MUST(more);
		bytes += more;
	}
	printf("%.13s", got);
}

static void run(const char *how, int keeps)
{
	char command[4096];
	char *arguments[] = { "sh", "-c", command, NULL };
	pid_t child = 0;

	connection(ends);
	SAY(fcntl(ends[0], F_SETFD, keeps ? 0 : FD_CLOEXEC));
	/* A shell writes to numbers of one digit only. */
	snprintf(command, sizeof command, "%s child %d", self, ends[0]);
	if (!strcmp(how, "fork")) {
		child = fork();
		if (!child) {
			execv("/bin/sh", arguments);
			_exit(98);
		}
	} else if (!strcmp(how, "execl")) {
		child = fork();
		if (!child) {
			execl("/bin/sh", "sh", "-c", command, (char *)NULL);
			_exit(98);
		}
	} else if (!strcmp(how, "execle")) {
		child = fork();
		if (!child) {
			execle("/bin/sh", "sh", "-c", command, (char *)NULL, environ);
			_exit(98);
		}
	} else if (!strcmp(how, "vfork")) {
		child = vfork();
		if (!child) {
			/* The parent's numbers stay what they are. */
			close(ends[1]);
			dup2(2, 3);
			execvp("sh", arguments);
			_exit(98);
		}
	} else if (!strcmp(how, "posix_spawn")) {
		MUST(-posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ));
	} else if (!strcmp(how, "posix_spawnp")) {
		MUST(-posix_spawnp(&child, "sh", NULL, NULL, arguments, environ));
	} else if (!strcmp(how, "system")) {
		printf("system: %d\n", system(command));
	} else {
		FILE *output = popen(command, "r");

		printf("popen: %s", fgets(got, sizeof got, output) ? got : "nothing\n");
		printf("pclose: %d\n", pclose(output));
	}
	if (child)
		end_of(how, child);
	if (keeps)
		received();
	else
		SAY(recv(ends[1], got, 1, MSG_DONTWAIT));
	close(ends[0]);
	SAY(read(ends[1], got, 1));
	close(ends[1]);
}

/* A child that uses the connection without another program, and one that only leaves. */
static void without_program(void)
{
	connection(ends);
	pid_t child = fork();

	if (!child) {
		MUST(write(ends[0], "child\n", 6));
		_exit(7);
	}
	end_of("fork", child);
	received();
	child = fork();
	if (!child)
		exit(8);
	end_of("fork", child);
	SAY(close(ends[0]));
	SAY(read(ends[1], got, 1));
	SAY(close(ends[1]));
	child = fork();
	if (!child) {
		connection(ends);
		MUST(write(ends[0], "own", 3));
		_exit((int)recv(ends[1], got, 3, MSG_WAITALL));
	}
	end_of("fork", child);
}

/* A descriptor that goes to another process, and comes back. */
static void passed(void)
{
	int ways[2];
	char room[CMSG_SPACE(sizeof(int))], byte = 'p';
	struct iovec part = { &byte, 1 };
	struct msghdr message = { .msg_iov = &part, .msg_iovlen = 1,
				  .msg_control = room, .msg_controllen = sizeof room };

	connection(ends);
	MUST(socketpair(AF_UNIX, SOCK_STREAM, 0, ways));
	struct cmsghdr *header = CMSG_FIRSTHDR(&message);

	header->cmsg_level = SOL_SOCKET;
	header->cmsg_type = SCM_RIGHTS;
	header->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(header), &ends[0], sizeof(int));
	SAY(sendmsg(ways[0], &message, 0));
	SAY(close(ends[0]));
	pid_t child = fork();

	if (!child) {
		int other;

		close(ends[1]);
		MUST(recvmsg(ways[1], &message, 0));
		memcpy(&other, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof other);
		MUST(write(other, "by another process", 18));
		_exit(0);
	}
	end_of("passed", child);
	close(ways[0]);
	close(ways[1]);
	SAY(recv(ends[1], got, 18, MSG_WAITALL));
	SAY(read(ends[1], got, 1));
	close(ends[1]);
}

int main(int count, char **arguments)
{
	const char *const ways[] = { "fork", "execl", "execle", "vfork", "posix_spawn", "posix_spawnp", "system", "popen" };

	if (count == 3)
		return write(atoi(arguments[2]), "child\n", 6) == 6 ? 0 : 2;
	self = arguments[0];
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t way = 0; way < sizeof ways / sizeof *ways; way++) {
		printf("-- %s\n", ways[way]);
		fflush(stdout);
		run(ways[way], 1);
		run(ways[way], 0);
	}
	without_program();
	passed();
	return 0;
}

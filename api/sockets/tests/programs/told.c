/* A connection between two threads' worth of numbers of one process leaves the kernel and comes back, which the library tells where it is asked for that.
 * `told` has standard error as it got it; `told closed` has the connection under that number, and says what came over it beside what was sent. */
#include "ground.h"

enum { MESSAGES = 200, BYTES = 64 };

static void exchange(int from, int to)
{
	char out[BYTES], in[BYTES];

	memset(out, 'm', sizeof out);
	for (int message = 0; message < MESSAGES; message++) {
		MUST(send(from, out, sizeof out, 0));
		for (int got = 0, more; got < BYTES; got += more) {
			MUST(more = (int)recv(to, in + got, sizeof in - got, 0));
			if (!more)
				exit(3);
		}
		if (memcmp(in, out, sizeof in)) {
			printf("other bytes: %.*s\n", BYTES, in);
			exit(4);
		}
		usleep(message % 16 ? 0 : 1000);
	}
}

int main(int arguments, char **argument)
{
	struct sockaddr_in address = listener();
	int connected, accepted;
	char rest[BYTES];

	if (arguments > 1 && !strcmp(argument[1], "closed"))
		close(STDERR_FILENO);
	MUST(connected = socket(AF_INET, SOCK_STREAM, 0));
	printf("connected %d\n", connected);
	MUST(connect(connected, (struct sockaddr *)&address, sizeof address));
	MUST(accepted = accept(listener_fd, NULL, NULL));
	exchange(connected, accepted);
	exchange(accepted, connected);
	/* The kernel's from here on. */
	MUST(send(connected, "!", 1, MSG_OOB));
	MUST(send(accepted, "?", 1, MSG_OOB));
	exchange(connected, accepted);
	exchange(accepted, connected);
	shutdown(connected, SHUT_WR);
	printf("rest %zd\n", recv(accepted, rest, sizeof rest, 0));
	return 0;
}

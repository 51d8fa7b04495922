/* Signals: a receive that one interrupts, one that goes on, and a write to nobody. */
#include "ground.h"

static int ends[2];
static volatile sig_atomic_t alarms, broken;
static char byte;

static void on_alarm(int signal)
{
	(void)signal;
	if (++alarms == 3)
		MUST(write(ends[0], "x", 1));
}

static void on_broken(int signal)
{
	(void)signal;
	broken++;
}

static void handle(int signal, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };

	MUST(sigaction(signal, &action, NULL));
}

static void ring(void)
{
	struct itimerval soon = { .it_value = { 0, 20000 } };

	MUST(setitimer(ITIMER_REAL, &soon, NULL));
}

static void *write_to_nobody(void *unused)
{
	(void)unused;
	SAY(write(ends[0], "y", 1));
	return NULL;
}

int main(void)
{
	struct msghdr message = { 0 };
	struct iovec place = { &byte, 1 };
	pthread_t thread;
	sigset_t blocked, pending;

	setvbuf(stdout, NULL, _IOLBF, 0);
	message.msg_iov = &place;
	message.msg_iovlen = 1;
	connection(ends);
	handle(SIGALRM, on_alarm, 0);
	ring();
	SAY(read(ends[1], &byte, 1));
	ring();
	SAY(recvmsg(ends[1], &message, 0));
	/* The third writes the byte that the read, which begins again, receives. */
	handle(SIGALRM, on_alarm, SA_RESTART);
	ring();
	SAY(recv(ends[1], &byte, 1, 0));
	printf("alarms: %d\n", alarms);

	struct timeval time = { 0, 30000 };
	SAY(setsockopt(ends[1], SOL_SOCKET, SO_RCVTIMEO, &time, sizeof time));
	SAY(recv(ends[1], &byte, 1, 0));

	handle(SIGPIPE, on_broken, 0);
	SAY(close(ends[1]));
	wait_readable(ends[0]);
	SAY(write(ends[0], "a", 1));
	/* The other end has answered with a reset once the socket says so. */
	struct pollfd reset = { .fd = ends[0], .events = 0 };
	while (!(reset.revents & POLLERR))
		MUST(poll(&reset, 1, -1));
	SAY(send(ends[0], "b", 1, MSG_NOSIGNAL));
	SAY(send(ends[0], "b", 1, MSG_NOSIGNAL));
	printf("broken: %d\n", broken);
	SAY(write(ends[0], "c", 1));
	SAY(send(ends[0], "d", 1, 0));
	SAY(writev(ends[0], &place, 1));
	SAY(sendmsg(ends[0], &message, 0));
	printf("broken: %d\n", broken);

	/* The signal is one of the thread that wrote, not of the process. */
	sigemptyset(&blocked);
	sigaddset(&blocked, SIGPIPE);
	pthread_sigmask(SIG_BLOCK, &blocked, NULL);
	MUST(-pthread_create(&thread, NULL, write_to_nobody, NULL));
	pthread_join(thread, NULL);
	sigpending(&pending);
	printf("pending: %d\n", sigismember(&pending, SIGPIPE));
	return 0;
}

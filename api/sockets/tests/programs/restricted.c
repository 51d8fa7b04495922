/* A process that restricts itself while it has a connection. */
#include "ground.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>

static int ends[2];
static char got[16];

static void round_trip(void)
{
	SAY(write(ends[0], "before", 6));
	SAY(recv(ends[1], got, 6, MSG_WAITALL));
}

static void *sleeps(void *unused)
{
	(void)unused;
	SAY(read(ends[1], got, sizeof got));
	puts("the thread was not cancelled");
	return NULL;
}

static const char *cleaned_up = "nothing";

static void clean_up(void *what)
{
	cleaned_up = what;
}

static void *is_cancelled(void *unused)
{
	pthread_cleanup_push(clean_up, "a frame of the thread");
	sleeps(unused);
	pthread_cleanup_pop(0);
	return NULL;
}

int main(void)
{
	struct sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
	struct sock_fprog filter = { 1, &allow };
	pthread_t thread;
	void *gave;

	setvbuf(stdout, NULL, _IOLBF, 0);
	connection(ends);
	round_trip();
	SAY(syscall(SYS_write, ends[0], "number", 6, 0, 0, 0));
	SAY(recv(ends[1], got, 6, MSG_WAITALL));
	SAY(syscall(SYS_close, 1000));
	SAY(syscall(SYS_mmap, NULL, 0L, 0L, 0L, -1L, 0L));

	MUST(-pthread_create(&thread, NULL, is_cancelled, NULL));
	SAY(pthread_cancel(thread));
	pthread_join(thread, &gave);
	printf("cancelled: %d, cleaned: %s\n", gave == PTHREAD_CANCELED, cleaned_up);
	round_trip();

	SAY(unshare(CLONE_FS));
	round_trip();
	SAY(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
	SAY(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0));
	round_trip();
	close(ends[0]);
	close(ends[1]);
	connection(ends);
	round_trip();
	return 0;
}

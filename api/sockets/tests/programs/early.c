/* A second preloaded library: its constructor makes calls before any other's has run, and its functions count calls of the program. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

static int seen;

__attribute__((constructor)) static void begin(void)
{
	char byte;
	int ways[2], waiting = 0;

	if (pipe(ways) || write(ways[1], "abc", 3) != 3 || read(ways[0], &byte, 1) != 1)
		_exit(97);
	if (ioctl(ways[0], FIONREAD, &waiting) || waiting != 2 || fcntl(ways[0], F_GETFD) != 0)
		_exit(96);
	int copy = dup2(ways[0], 50), other = socket(AF_INET, SOCK_STREAM, 0);

	if (copy != 50 || dup2(copy, copy) != copy || read(copy, &byte, 1) != 1 || other < 0)
		_exit(95);
	if (close(copy) || close(other) || close(ways[0]) || close(ways[1]) || close(ways[1]) != -1)
		_exit(94);
	dprintf(2, "early: %c\n", byte);
}

ssize_t recv(int number, void *out, size_t bytes, int flags)
{
	ssize_t (*next)(int, void *, size_t, int) = (ssize_t (*)(int, void *, size_t, int))dlsym(RTLD_NEXT, "recv");

	seen++;
	return next(number, out, bytes, flags);
}

__attribute__((destructor)) static void end(void)
{
	dprintf(2, "recv was seen: %d\n", seen > 0);
}

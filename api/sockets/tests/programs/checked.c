/* With _FORTIFY_SOURCE: calls that know the room of their memory. An argument makes one of them take more than that. */
#include "ground.h"

int main(int count, char **arguments)
{
	char got[16];
	int ends[2];
	size_t bytes = count > 1 ? strtoul(arguments[1], NULL, 10) : sizeof got;
	int which = count > 2 ? atoi(arguments[2]) : -1;
	struct pollfd polled = { .events = POLLIN };

	setvbuf(stdout, NULL, _IOLBF, 0);
	connection(ends);
	polled.fd = ends[1];
	for (int call = 0; call < 3; call++) {
		if (which >= 0 && which != call)
			continue;
		SAY(write(ends[0], "0123456789", 10));
		SAY(poll(&polled, 1, -1));
		if (call == 0)
			SAY(read(ends[1], got, bytes));
		else if (call == 1)
			SAY(recv(ends[1], got, bytes, 0));
		else
			SAY(recvfrom(ends[1], got, bytes, 0, NULL, NULL));
	}
	SAY(dprintf(ends[0], "%d %f\n", 3, 2.5));
	SAY(recv(ends[1], got, 11, MSG_WAITALL));
	return 0;
}

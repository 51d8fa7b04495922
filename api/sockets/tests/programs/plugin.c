/* A library that a program loads: receives and closes. */
#include <sys/socket.h>
#include <unistd.h>

long plugin_receive(int number, char *out, unsigned long bytes)
{
	return recv(number, out, bytes, MSG_WAITALL);
}

int plugin_close(int number)
{
	return close(number);
}

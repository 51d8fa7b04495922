/* A library of the program, which calls the C library by itself. */
#include <sys/socket.h>
#include <unistd.h>

ssize_t plugin_receive(int fd, void *bytes, size_t count);
ssize_t plugin_send(int fd, const void *bytes, size_t count);

ssize_t plugin_receive(int fd, void *bytes, size_t count)
{
	return recv(fd, bytes, count, 0);
}

ssize_t plugin_send(int fd, const void *bytes, size_t count)
{
	return write(fd, bytes, count);
}

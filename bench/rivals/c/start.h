/* SPDX-License-Identifier: Apache-2.0 OR MIT
 *
 * What every echo program in C begins with: headers of the system, and the way it ends when something is wrong.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Says what is wrong and ends the process; the bench sees its output end and gives no figure. */
__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vfprintf(stderr, format, args);
	va_end(args);
	fputc('\n', stderr);
	exit(1);
}

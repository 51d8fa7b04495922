/* Signals that interrupt calls which wait, and are counted. */
#ifndef INTERRUPTS_H
#define INTERRUPTS_H

#include "conformance.h"

static volatile sig_atomic_t signals;

static inline void count_signal(int signal)
{
	(void)signal;
	signals = signals + 1;
}

static inline void on_signal(int signal, void (*handler)(int), int flags)
{
	struct sigaction action = { .sa_handler = handler, .sa_flags = flags };
	MUST(sigaction(signal, &action, NULL));
}

/* A call that the client interrupts with signals until it is told that it has returned. */
#define INTERRUPTED(call)                                                                                              \
	do {                                                                                                           \
		meet(s);                                                                                               \
		SAY(call);                                                                                             \
		tell(s);                                                                                               \
	} while (0)

#endif

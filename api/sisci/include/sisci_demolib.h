/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file sisci_demolib.h
 * What small programs need beside SISCI: to say what failed, to read their arguments, to sleep and to measure time.
 *
 * Programs that were written for other implementations call GetLocalNodeId(), SleepMilliseconds(), StartTimer() and StopTimer(), with
 * a timer_start_t, of demo libraries of these names; the names are theirs, and what they do is written anew here. Functions that
 * begin with `sisci_demo_` are this project's. Everything is in this header, and no library belongs to it.
 */
#ifndef SISCI_DEMOLIB_H
#define SISCI_DEMOLIB_H

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>

#include "sisci_api.h"

#if defined(__cplusplus)
#define SISCI_DEMO_INLINE static inline
#define SISCI_DEMO_CAST(type, value) static_cast<type>(value)
#else
/* A function that is not used is no mistake; C of 1989 has no `inline`. */
#define SISCI_DEMO_INLINE static __inline__ __attribute__((__unused__))
#define SISCI_DEMO_CAST(type, value) ((type)(value))
#endif

/* So that a program which includes this header runs with libraries that do not have the function. */
#pragma weak beeline_sisci_last_error

/**
 * Says on standard error what a function answered, and in a second line why, unless it is SCI_ERR_OK. It must be called in the thread
 * that called the function.
 *
 * @param what  name of the function
 * @param error its code
 * @return 1 if it failed, else 0
 */
SISCI_DEMO_INLINE int sisci_demo_failed(const char *what, sci_error_t error)
{
  if (error == SCI_ERR_OK)
    return 0;
  fprintf(stderr, "%s: %s (0x%x)\n", what, SCIGetErrorString(error), error);
  if (beeline_sisci_last_error)
    fprintf(stderr, "%s\n", beeline_sisci_last_error());
  return 1;
}

/**
 * Reads the number behind an option.
 *
 * @param argc, argv of main
 * @param option     such as "-rn"
 * @param absent     what is returned if the option is not given
 * @return the number, which may be decimal or begin with 0x; the program ends with status 2 if it is none
 */
SISCI_DEMO_INLINE unsigned int sisci_demo_option(int argc, char **argv, const char *option, unsigned int absent)
{
  int at;

  for (at = 1; at + 1 < argc; at++) {
    char *end;
    unsigned long number;

    if (strcmp(argv[at], option) != 0)
      continue;
    errno = 0;
    number = strtoul(argv[at + 1], &end, 0);
    if (errno != 0 || end == argv[at + 1] || *end != '\0' || argv[at + 1][0] == '-' || number > 0xffffffffUL) {
      fprintf(stderr, "%s: %s %s is no number\n", argv[0], option, argv[at + 1]);
      exit(2);
    }
    return SISCI_DEMO_CAST(unsigned int, number);
  }
  return absent;
}

/**
 * Computes the number of an interrupt that SCICreateNamedInterrupt() has made, for SCIConnectInterrupt().
 *
 * @param name its name
 * @return the number
 */
SISCI_DEMO_INLINE unsigned int sisci_demo_interrupt_number(const char *name)
{
  unsigned int number = 0x811c9dc5u;

  while (*name != '\0')
    number = (number ^ SISCI_DEMO_CAST(unsigned char, *name++)) * 0x01000193u;
  return number | 0x80000000u;
}

/**
 * Gives the number of the own node.
 *
 * @param adapter the adapter that is asked for it
 * @param node    where the number is put
 * @return the code of SCIGetLocalNodeId()
 */
SISCI_DEMO_INLINE sci_error_t GetLocalNodeId(unsigned int adapter, unsigned int *node)
{
  sci_error_t error;

  SCIGetLocalNodeId(adapter, node, 0, &error);
  return error;
}

/** Sleeps for a time, and not much longer. */
SISCI_DEMO_INLINE void SleepMilliseconds(int milliseconds)
{
  /* Every standard of C that a program is compiled by shows it. */
  poll(NULL, 0, milliseconds);
}

/** When StartTimer() was called. */
typedef struct {
  /** Since a moment that is the same for all calls. */
  double microseconds;
} timer_start_t;

/** Begins to measure. */
SISCI_DEMO_INLINE void StartTimer(timer_start_t *timer)
{
#ifdef CLOCK_MONOTONIC
  struct timespec now;

  clock_gettime(CLOCK_MONOTONIC, &now);
  timer->microseconds = SISCI_DEMO_CAST(double, now.tv_sec) * 1e6 + SISCI_DEMO_CAST(double, now.tv_nsec) / 1e3;
#else
  struct timeval now;

  gettimeofday(&now, NULL);
  timer->microseconds = SISCI_DEMO_CAST(double, now.tv_sec) * 1e6 + SISCI_DEMO_CAST(double, now.tv_usec);
#endif
}

/** Returns the microseconds since StartTimer(). */
SISCI_DEMO_INLINE double StopTimer(timer_start_t timer)
{
  timer_start_t now;

  StartTimer(&now);
  return now.microseconds - timer.microseconds;
}

/** Says whether an option that has no value is given: 1, or 0. */
SISCI_DEMO_INLINE int sisci_demo_has(int argc, char **argv, const char *option)
{
  int at;

  for (at = 1; at < argc; at++)
    if (strcmp(argv[at], option) == 0)
      return 1;
  return 0;
}

#endif

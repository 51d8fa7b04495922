/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file sisci_demolib.h
 * What small programs need beside SISCI: to say what failed, and to read their arguments.
 *
 * No published text says what is in the file of this name elsewhere, so what is here is this project's; the file is there because
 * programs include it. Everything is in this header, and no library belongs to it.
 */
#ifndef SISCI_DEMOLIB_H
#define SISCI_DEMOLIB_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sisci_api.h"

/**
 * Says on standard error what a function answered, and in a second line why, unless it is SCI_ERR_OK. It must be called in the thread
 * that called the function.
 *
 * @param what  name of the function
 * @param error its code
 * @return 1 if it failed, else 0
 */
static inline int sisci_demo_failed(const char *what, sci_error_t error)
{
  if (error == SCI_ERR_OK)
    return 0;
  fprintf(stderr, "%s: %s (0x%x)\n%s\n", what, SCIGetErrorString(error), error, beeline_sisci_last_error());
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
static inline unsigned int sisci_demo_option(int argc, char **argv, const char *option, unsigned int absent)
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
    return (unsigned int)number;
  }
  return absent;
}

/**
 * Computes the number of an interrupt that SCICreateNamedInterrupt() has made, for SCIConnectInterrupt().
 *
 * @param name its name
 * @return the number
 */
static inline unsigned int sisci_demo_interrupt_number(const char *name)
{
  unsigned int number = 0x811c9dc5u;

  while (*name != '\0')
    number = (number ^ (unsigned char)*name++) * 0x01000193u;
  return number | 0x80000000u;
}

/** Says whether an option that has no value is given: 1, or 0. */
static inline int sisci_demo_has(int argc, char **argv, const char *option)
{
  int at;

  for (at = 1; at < argc; at++)
    if (strcmp(argv[at], option) == 0)
      return 1;
  return 0;
}

#endif

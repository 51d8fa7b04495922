/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * What tests expect: failures are printed and counted. For one file of a program. LAST_ERROR is the function that says why a call
 * failed, where it is not beeline_last_error.
 */
#ifndef EXPECT_H
#define EXPECT_H

#include <beeline.h>

#include <stdio.h>
#include <string.h>

#ifndef LAST_ERROR
#define LAST_ERROR beeline_last_error
#endif

static int failures;

#define EXPECT(expression, value)                                                                                      \
  do {                                                                                                                 \
    long long found_ = (long long)(expression), wanted_ = (long long)(value);                                          \
    if (found_ != wanted_) {                                                                                           \
      fprintf(stderr, "%s:%d: %s is %lld, not %lld (%s)\n", __FILE__, __LINE__, #expression, found_, wanted_,          \
              LAST_ERROR());                                                                                           \
      failures++;                                                                                                      \
    }                                                                                                                  \
  } while (0)

#define EXPECT_SAID(text)                                                                                              \
  do {                                                                                                                 \
    if (strstr(LAST_ERROR(), text) == NULL) {                                                                          \
      fprintf(stderr, "%s:%d: `%s` is not in `%s`\n", __FILE__, __LINE__, text, LAST_ERROR());                         \
      failures++;                                                                                                      \
    }                                                                                                                  \
  } while (0)

#endif /* EXPECT_H */

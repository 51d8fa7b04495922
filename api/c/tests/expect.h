/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/* What tests of windows expect: failures are printed and counted. For one file of a program. */
#ifndef EXPECT_H
#define EXPECT_H

#include <beeline.h>

#include <stdio.h>
#include <string.h>

static int failures;

#define EXPECT(expression, value)                                                                                      \
  do {                                                                                                                 \
    long long found_ = (long long)(expression), wanted_ = (long long)(value);                                          \
    if (found_ != wanted_) {                                                                                           \
      fprintf(stderr, "%s:%d: %s is %lld, not %lld (%s)\n", __FILE__, __LINE__, #expression, found_, wanted_,          \
              beeline_last_error());                                                                                   \
      failures++;                                                                                                      \
    }                                                                                                                  \
  } while (0)

#define EXPECT_SAID(text)                                                                                              \
  do {                                                                                                                 \
    if (strstr(beeline_last_error(), text) == NULL) {                                                                  \
      fprintf(stderr, "%s:%d: `%s` is not in `%s`\n", __FILE__, __LINE__, text, beeline_last_error());                 \
      failures++;                                                                                                      \
    }                                                                                                                  \
  } while (0)

#endif /* EXPECT_H */

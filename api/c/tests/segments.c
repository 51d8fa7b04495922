/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Segments: what a program gets that maps memory as the header says, and what it is told when it does something wrong. Usage:
 * segments ROOT ROUNDS. Also C++17.
 */
#include <beeline_segment.h>

#include "expect.h"

#include <fcntl.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

enum { PAGE = 4096, WHOLE = 3 * 4096 };

static int memory(void) {
  int descriptor;

  EXPECT(beeline_segment_create("test", WHOLE, 0, &descriptor), BEELINE_OK);
  return descriptor;
}

static beeline_segment *mapped(int descriptor, const beeline_segment_options *options) {
  beeline_segment *segment;

  EXPECT(beeline_segment_map(descriptor, options, &segment), BEELINE_OK);
  return segment;
}

static void refused(int descriptor, const beeline_segment_options *options, int status, const char *why) {
  beeline_segment *segment = (beeline_segment *)&descriptor;

  EXPECT(beeline_segment_map(descriptor, options, &segment), status);
  EXPECT(segment == NULL, 1);
  EXPECT_SAID(why);
}

static void parts_are_the_same_memory(void) {
  beeline_segment_options options = BEELINE_SEGMENT_OPTIONS_INIT;
  int descriptor = memory();
  beeline_segment *whole = mapped(descriptor, NULL), *part;
  char found[5] = {0};
  void *address;
  size_t length;

  options.offset = 2 * PAGE;
  options.length = 100;
  options.access = BEELINE_SEGMENT_READ_ONLY;
  options.pages = BEELINE_SEGMENT_PRESENT;
  part = mapped(descriptor, &options);
  EXPECT(close(descriptor), 0);
  EXPECT(beeline_segment_length(whole, &length), BEELINE_OK);
  EXPECT(length, WHOLE);
  EXPECT(beeline_segment_length(part, &length), BEELINE_OK);
  EXPECT(length, 100);
  EXPECT(beeline_segment_write(whole, 2 * PAGE + 95, "hello", 5), BEELINE_OK);
  EXPECT(beeline_segment_read(part, 95, found, 5), BEELINE_OK);
  EXPECT(memcmp(found, "hello", 5), 0);
  EXPECT(beeline_segment_at(part, 95, 5, &address), BEELINE_OK);
  EXPECT(memcmp(address, "hello", 5), 0);
  EXPECT(beeline_segment_at(part, 100, 0, &address), BEELINE_OK);
  EXPECT(beeline_segment_is_intact(part), BEELINE_OK);

  EXPECT(beeline_segment_write(part, 0, "x", 1), BEELINE_INVALID);
  EXPECT_SAID("for reading only");
  EXPECT(beeline_segment_read(part, 96, found, 5), BEELINE_INVALID);
  EXPECT_SAID("5 bytes at offset 96 reach outside a segment of 100 bytes");
  EXPECT(beeline_segment_write(whole, SIZE_MAX, "x", 1), BEELINE_INVALID);
  EXPECT(beeline_segment_at(part, 96, 5, &address), BEELINE_INVALID);
  EXPECT(address == NULL, 1);
  EXPECT_SAID("reach outside");
  EXPECT(beeline_segment_at(part, 1, SIZE_MAX, &address), BEELINE_INVALID);
  EXPECT(beeline_segment_read(part, 0, NULL, 5), BEELINE_INVALID);
  EXPECT(beeline_segment_read(part, 0, NULL, 0), BEELINE_OK);
  EXPECT(beeline_segment_write(whole, 0, NULL, 5), BEELINE_INVALID);
  EXPECT(beeline_segment_close(&part), BEELINE_OK);
  EXPECT(part == NULL, 1);
  EXPECT(beeline_segment_close(&whole), BEELINE_OK);
}

static void address_is_the_one_that_is_asked_for(void) {
  beeline_segment_options options = BEELINE_SEGMENT_OPTIONS_INIT;
  int descriptor = memory();
  beeline_segment *segment = mapped(descriptor, NULL);
  void *address, *again;

  EXPECT(beeline_segment_at(segment, 0, WHOLE, &address), BEELINE_OK);
  options.address = address;
  refused(descriptor, &options, BEELINE_REFUSED, "is there");
  EXPECT(beeline_segment_close(&segment), BEELINE_OK);
  /* Nothing of this thread maps anything in between. */
  segment = mapped(descriptor, &options);
  EXPECT(beeline_segment_at(segment, 0, 1, &again), BEELINE_OK);
  EXPECT(again == address, 1);
  options.address = (char *)address + 8;
  refused(descriptor, &options, BEELINE_INVALID, "is not a multiple of the page");
  EXPECT(beeline_segment_close(&segment), BEELINE_OK);
  EXPECT(close(descriptor), 0);
}

static void file_that_becomes_shorter_is_lost(const char *root) {
  beeline_segment_options options = BEELINE_SEGMENT_OPTIONS_INIT;
  beeline_segment *segment;
  char path[4096], found[8];
  int file;

  snprintf(path, sizeof path, "%s/shrinks", root);
  file = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  EXPECT(ftruncate(file, WHOLE), 0);
  refused(file, &options, BEELINE_REFUSED, "memfd");
  options.kind = BEELINE_SEGMENT_FILE;
  refused(file, &options, BEELINE_REFUSED, "can go away");
  options.on_loss = BEELINE_SEGMENT_LOSS_GUARDED;
  segment = mapped(file, &options);
  EXPECT(beeline_segment_write(segment, 2 * PAGE, "here", 5), BEELINE_OK);
  EXPECT(ftruncate(file, PAGE), 0);
  EXPECT(beeline_segment_is_intact(segment), BEELINE_OK);
  EXPECT(beeline_segment_read(segment, 0, found, 8), BEELINE_OK);
  EXPECT(beeline_segment_read(segment, 2 * PAGE, found, 5), BEELINE_LOST);
  EXPECT_SAID("is gone");
  EXPECT(found[0], 0);
  EXPECT(beeline_segment_is_intact(segment), BEELINE_LOST);
  EXPECT(beeline_segment_write(segment, 0, "x", 1), BEELINE_LOST);
  EXPECT(beeline_segment_close(&segment), BEELINE_OK);
  EXPECT(close(file), 0);
}

static void what_cannot_be_is_a_code(void) {
  beeline_segment_options good = BEELINE_SEGMENT_OPTIONS_INIT, bad;
  beeline_segment *segment, *copy;
  int descriptor = 7, real = memory();
  size_t length = 7;

  EXPECT(beeline_segment_create(NULL, 1, 0, &descriptor), BEELINE_INVALID);
  EXPECT(descriptor, -1);
  EXPECT(beeline_segment_create("x", 0, 0, &descriptor), BEELINE_INVALID);
  EXPECT(beeline_segment_create("x", 1, 2, &descriptor), BEELINE_INVALID);
  EXPECT(beeline_segment_create("x", 1, 0, NULL), BEELINE_INVALID);
  refused(-1, NULL, BEELINE_INVALID, "descriptor = -1");
  refused(1000000, NULL, BEELINE_INVALID, "descriptor = 1000000");
  EXPECT(beeline_segment_map(real, NULL, NULL), BEELINE_INVALID);
#define BAD(field, value, status, why)                                                                                 \
  do {                                                                                                                 \
    bad = good;                                                                                                        \
    bad.field = (value);                                                                                               \
    refused(real, &bad, status, why);                                                                                  \
  } while (0)
  BAD(size, 8, BEELINE_INVALID, "options.size");
  BAD(offset, 5, BEELINE_INVALID, "is not a multiple of the page");
  BAD(offset, 4 * PAGE, BEELINE_INVALID, "");
  BAD(length, WHOLE + 1, BEELINE_INVALID, "which has 12288 bytes");
  BAD(length, UINT64_MAX, BEELINE_INVALID, "");
  BAD(kind, 2, BEELINE_INVALID, "options.kind = 2");
  BAD(access, 2, BEELINE_INVALID, "options.access = 2");
  BAD(pages, 2, BEELINE_INVALID, "options.pages = 2");
  BAD(huge_pages, 3, BEELINE_INVALID, "options.huge_pages = 3");
  BAD(on_loss, 3, BEELINE_INVALID, "options.on_loss = 3");
  BAD(reserved, 1, BEELINE_INVALID, "options.reserved");
  BAD(huge_pages, BEELINE_SEGMENT_HUGE_REQUIRED, BEELINE_REFUSED, "huge");
  copy = segment = mapped(real, &good);
  EXPECT(beeline_segment_length(segment, NULL), BEELINE_INVALID);
  EXPECT(beeline_segment_at(segment, 0, 1, NULL), BEELINE_INVALID);
  EXPECT(beeline_segment_close(&segment), BEELINE_OK);
  EXPECT(beeline_segment_close(&segment), BEELINE_OK);
  EXPECT(beeline_segment_length(copy, &length), BEELINE_INVALID);
  EXPECT(length, 0);
  EXPECT(beeline_segment_is_intact(copy), BEELINE_INVALID);
  EXPECT(beeline_segment_read(copy, 0, &length, 1), BEELINE_INVALID);
  EXPECT(beeline_segment_write(copy, 0, &length, 1), BEELINE_INVALID);
  EXPECT(beeline_segment_close(&copy), BEELINE_INVALID);
  EXPECT(close(real), 0);
}

int main(int argc, char **argv) {
  const struct rlimit few = {64, 64};
  int rounds;

  if (argc != 3)
    return EXIT_FAILURE;
  /* Whatever is not given back is missing at the end: a process may have 4096 segments, and this one few descriptors. */
  EXPECT(setrlimit(RLIMIT_NOFILE, &few), 0);
  for (rounds = atoi(argv[2]); rounds > 0 && failures == 0; rounds--) {
    parts_are_the_same_memory();
    address_is_the_one_that_is_asked_for();
    file_that_becomes_shorter_is_lost(argv[1]);
    what_cannot_be_is_a_code();
  }
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

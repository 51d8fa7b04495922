/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A table that one process writes and another one reads, each in memory that it has mapped: the first makes it and hands the
 * descriptor on, here to a child; programs that are no relatives send it with a notification (beeline_notify.h) or over a unix
 * socket. Usage: segment
 *
 *   cc segment.c $(pkg-config --cflags --libs beeline) -o segment
 */
#include <beeline_segment.h>

#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ENTRIES = 1000, HEADER_BYTES = 4096, TABLE_BYTES = HEADER_BYTES + 1000 * 8 };

static void check(int status) {
  if (status < 0) {
    fprintf(stderr, "segment: %s\n", beeline_last_error());
    exit(EXIT_FAILURE);
  }
}

/* Waits until the table is complete, and adds it up. What it maps cannot be written by it. */
static int read_table(int descriptor) {
  beeline_segment_options options = BEELINE_SEGMENT_OPTIONS_INIT;
  static uint64_t entries[ENTRIES];
  beeline_segment *segment;
  uint64_t sum = 0;
  void *count;
  int i;

  options.access = BEELINE_SEGMENT_READ_ONLY;
  check(beeline_segment_map(descriptor, &options, &segment));
  check(beeline_segment_at(segment, 0, 8, &count));
  /* Acquire: pairs with the writer's release. */
  while (__atomic_load_n((uint64_t *)count, __ATOMIC_ACQUIRE) != ENTRIES)
    usleep(100);
  check(beeline_segment_read(segment, HEADER_BYTES, entries, sizeof entries));
  for (i = 0; i < ENTRIES; i++)
    sum += entries[i];
  check(beeline_segment_close(&segment));
  printf("%d entries, sum %llu\n", ENTRIES, (unsigned long long)sum);
  fflush(stdout);
  return EXIT_SUCCESS;
}

int main(void) {
  beeline_segment *segment;
  int descriptor, status, i;
  void *count;
  pid_t child;

  check(beeline_segment_create("table", TABLE_BYTES, 0, &descriptor));
  child = fork();
  if (child < 0)
    return EXIT_FAILURE;
  if (child == 0)
    _exit(read_table(descriptor));
  check(beeline_segment_map(descriptor, NULL, &segment));
  close(descriptor);
  for (i = 0; i < ENTRIES; i++) {
    uint64_t entry = (uint64_t)i * 3;

    check(beeline_segment_write(segment, HEADER_BYTES + 8 * (size_t)i, &entry, sizeof entry));
  }
  check(beeline_segment_at(segment, 0, 8, &count));
  /* Release: whoever sees the count sees the entries. */
  __atomic_store_n((uint64_t *)count, (uint64_t)ENTRIES, __ATOMIC_RELEASE);
  if (waitpid(child, &status, 0) != child || status != 0)
    return EXIT_FAILURE;
  check(beeline_segment_close(&segment));
  return EXIT_SUCCESS;
}

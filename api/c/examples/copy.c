/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A byte stream between two programs: what one reads from its standard input the other writes to its standard output. Usage:
 *
 *   copy to NAME [ROOT]     offers NAME, and copies to its standard output until the stream ends
 *   copy from NAME [ROOT]   waits for NAME, and copies from its standard input
 *
 *   cc copy.c $(pkg-config --cflags --libs beeline) -o copy
 */
#include <beeline_bytes.h>

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(int status) {
  if (status < 0) {
    fprintf(stderr, "copy: %s\n", beeline_last_error());
    exit(EXIT_FAILURE);
  }
}

/* Reads what is there; waits by descriptor where nothing is, as a program does that has other descriptors to wait for. */
static void copy_to_output(const beeline_domain *domain, const char *name) {
  static unsigned char memory[65536];
  beeline_bytes_reader *reader;
  struct pollfd set;
  uint64_t at_most_ns;
  size_t count;
  int status;

  check(beeline_bytes_reader_offer(domain, name, NULL, &reader));
  memset(&set, 0, sizeof set);
  set.events = POLLIN;
  check(beeline_bytes_reader_descriptor(reader, &set.fd));
  while ((status = beeline_bytes_try_read(reader, memory, sizeof memory, &count)) != BEELINE_END) {
    check(status);
    if (status == BEELINE_OK) {
      if (fwrite(memory, 1, count, stdout) != count)
        exit(EXIT_FAILURE);
      continue;
    }
    status = beeline_bytes_reader_arm(reader, &at_most_ns);
    check(status);
    if (status == BEELINE_EMPTY && poll(&set, 1, -1) < 0)
      exit(EXIT_FAILURE);
  }
  check(beeline_bytes_reader_close(&reader));
}

static void copy_from_input(const beeline_domain *domain, const char *name) {
  static unsigned char memory[65536];
  beeline_bytes_writer *writer;
  size_t count;

  check(beeline_bytes_writer_connect(domain, name, NULL, &writer));
  while ((count = fread(memory, 1, sizeof memory, stdin)) > 0)
    check(beeline_bytes_write(writer, memory, count, BEELINE_NEVER, NULL));
  /* Ended, it stays for the reader; this program waits only to say that all of it was read. */
  check(beeline_bytes_shut_down(writer));
  if (beeline_bytes_wait_acknowledged(writer, UINT64_C(60000000000)) == BEELINE_OK)
    fprintf(stderr, "copy: all was read\n");
  check(beeline_bytes_writer_close(&writer));
}

int main(int argc, char **argv) {
  beeline_domain *domain;
  int is_to = argc > 2 && strcmp(argv[1], "to") == 0;

  if (argc < 3 || (!is_to && strcmp(argv[1], "from") != 0)) {
    fprintf(stderr, "usage: %s to|from NAME [ROOT]\n", argv[0]);
    return EXIT_FAILURE;
  }
  check(beeline_domain_open("default", argc > 3 ? argv[3] : NULL, &domain));
  if (is_to)
    copy_to_output(domain, argv[2]);
  else
    copy_from_input(domain, argv[2]);
  check(beeline_domain_close(&domain));
  return EXIT_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A client of examples/server.c: one call that waits, then many at a time. Usage: client NAME [ROOT [CALLS]].
 *
 *   cc client.c $(pkg-config --cflags --libs beeline_rpc) -o client
 */
#include <beeline_rpc.h>

#include <stdio.h>
#include <stdlib.h>

enum { ADD = 1, FILL = 2 };

static void check(int status) {
  if (status < 0) {
    fprintf(stderr, "client: %s\n", beeline_rpc_last_error());
    exit(EXIT_FAILURE);
  }
}

static void put_word(unsigned char *bytes, uint64_t word) {
  for (size_t byte = 0; byte < 8; byte++)
    bytes[byte] = (unsigned char)(word >> (8 * byte));
}

/* One call, its answer into memory of ours. */
static void one_call(beeline_rpc_client *client) {
  unsigned char request[16], answer[8];
  size_t length;

  put_word(request, 40);
  put_word(request + 8, 2);
  check(beeline_rpc_call(client, ADD, request, sizeof request, answer, sizeof answer, &length, 1000000000));
  printf("40 + 2 = %u, in %zu bytes\n", (unsigned)answer[0], length);
}

/* As many calls as there is room for; each answer is read where it lies. */
static uint64_t many_calls(beeline_rpc_client *client, uint64_t calls) {
  uint64_t started = 0, ended = 0, sum = 0;

  while (ended < calls) {
    beeline_rpc_completion completion;

    if (started < calls) {
      unsigned char request[16];

      put_word(request, started);
      put_word(request + 8, 1);
      int status = beeline_rpc_start(client, ADD, request, sizeof request, BEELINE_RPC_NEVER, NULL);
      check(status);
      if (status == BEELINE_RPC_OK) {
        started++;
        continue;
      }
      /* BEELINE_RPC_FULL: take what has ended, then there is room. */
    }
    int status = beeline_rpc_poll(client, &completion);
    check(status);
    if (status == BEELINE_RPC_EMPTY) {
      check(beeline_rpc_wait(client, BEELINE_RPC_NEVER));
      continue;
    }
    if (completion.status != BEELINE_RPC_OK) {
      fprintf(stderr, "client: call %llu: %s (may have run: %d)\n", (unsigned long long)completion.call,
              beeline_rpc_status_text(completion.status), beeline_rpc_may_have_run(completion.status));
      exit(2);
    }
    sum += beeline_rpc_answer_word(client, 0);
    ended++;
  }
  return sum;
}

/* An answer that is longer than a window. */
static void long_answer(beeline_rpc_client *client) {
  const size_t bytes = 300000;
  unsigned char request[8];
  unsigned char *answer = (unsigned char *)malloc(bytes);
  size_t length;

  if (answer == NULL)
    exit(EXIT_FAILURE);
  put_word(request, bytes);
  check(beeline_rpc_call(client, FILL, request, sizeof request, answer, bytes, &length, BEELINE_RPC_NEVER));
  for (size_t place = 0; place < length; place++) {
    if (answer[place] != (unsigned char)(place * 31 % 251)) {
      fprintf(stderr, "client: byte %zu is wrong\n", place);
      exit(EXIT_FAILURE);
    }
  }
  printf("%zu bytes are as they should be\n", length);
  free(answer);
}

int main(int argc, char **argv) {
  beeline_rpc_client_options options = BEELINE_RPC_CLIENT_OPTIONS_INIT;
  uint64_t calls = argc > 3 ? strtoull(argv[3], NULL, 10) : 100000;
  beeline_rpc_domain *domain;
  beeline_rpc_client *client;

  if (argc < 2) {
    fprintf(stderr, "usage: %s NAME [ROOT [CALLS]]\n", argv[0]);
    return EXIT_FAILURE;
  }
  options.max_outstanding = 256;
  /* A server that is being started meanwhile is waited for. */
  options.connect_timeout_ns = 2000000000;
  check(beeline_rpc_domain_open("default", argc > 2 ? argv[2] : NULL, &domain));
  check(beeline_rpc_client_connect(domain, argv[1], &options, &client));
  one_call(client);
  long_answer(client);
  printf("%llu calls, sum %llu\n", (unsigned long long)calls, (unsigned long long)many_calls(client, calls));
  check(beeline_rpc_client_close(&client));
  check(beeline_rpc_domain_close(&domain));
  return EXIT_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server of two methods: 1 adds the words of a request, 2 gives as many bytes as its first word says. Everything else
 * is unknown. Usage: server NAME [ROOT]; ends with SIGTERM or SIGINT.
 *
 *   cc server.c $(pkg-config --cflags --libs beeline_rpc) -o server
 */
#include <beeline_rpc.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { ADD = 1, FILL = 2 };
enum { TOO_MUCH = 1 };

static beeline_rpc_server *server;

static void stop(int signal_number) {
  (void)signal_number;
  beeline_rpc_server_stop(server);
}

static void add(beeline_rpc_request *request) {
  size_t words = beeline_rpc_request_length(request) / 8;
  uint64_t sum = 0;
  unsigned char answer[8];

  for (size_t index = 0; index < words; index++)
    sum += beeline_rpc_request_word(request, index);
  /* Little-endian, whatever this machine is. */
  for (size_t byte = 0; byte < 8; byte++)
    answer[byte] = (unsigned char)(sum >> (8 * byte));
  beeline_rpc_reply_send(request, answer, sizeof answer);
}

/* Written piece by piece, straight into the client's window. */
static void fill(beeline_rpc_request *request) {
  uint64_t wanted = beeline_rpc_request_word(request, 0);

  if (wanted > BEELINE_RPC_MAX_LENGTH) {
    static const char why[] = "at most 1 MiB";
    beeline_rpc_reply_fail(request, TOO_MUCH, why, sizeof why - 1);
    return;
  }
  beeline_rpc_reply_begin(request, (size_t)wanted);
  for (uint64_t place = 0; place < wanted; place++) {
    unsigned char byte = (unsigned char)(place * 31 % 251);
    beeline_rpc_reply_write(request, &byte, 1);
  }
  beeline_rpc_reply_commit(request);
}

static void handle(void *context, beeline_rpc_request *request) {
  uint64_t *answered = (uint64_t *)context;

  *answered += 1;
  switch (beeline_rpc_request_method(request)) {
  case ADD:
    add(request);
    break;
  case FILL:
    fill(request);
    break;
  default:
    beeline_rpc_reply_unknown_method(request);
  }
}

static void check(int status) {
  if (status < 0) {
    fprintf(stderr, "server: %s\n", beeline_rpc_last_error());
    exit(EXIT_FAILURE);
  }
}

int main(int argc, char **argv) {
  beeline_rpc_domain *domain;
  beeline_rpc_worker *worker;
  uint64_t answered = 0;

  if (argc < 2) {
    fprintf(stderr, "usage: %s NAME [ROOT]\n", argv[0]);
    return EXIT_FAILURE;
  }
  check(beeline_rpc_domain_open("default", argc > 2 ? argv[2] : NULL, &domain));
  check(beeline_rpc_server_offer(domain, argv[1], NULL, &server));
  check(beeline_rpc_server_worker(server, 0, &worker));
  signal(SIGTERM, stop);
  signal(SIGINT, stop);
  printf("%s is served\n", argv[1]);
  fflush(stdout);
  check(beeline_rpc_worker_run(worker, handle, &answered));
  printf("%llu requests answered\n", (unsigned long long)answered);
  check(beeline_rpc_worker_close(&worker));
  check(beeline_rpc_server_close(&server));
  check(beeline_rpc_domain_close(&domain));
  return EXIT_SUCCESS;
}

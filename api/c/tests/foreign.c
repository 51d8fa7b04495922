/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server that allows one other user, and a client of that user; or a client that waits for its server. Usage:
 * foreign serve ROOT ALLOWED_UID | foreign call ROOT OWNER_UID TIMEOUT_MS | foreign wait ROOT. Also C++17. ROOT of a client that
 * is "-" is left to the library.
 */
#include <beeline_rpc.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static beeline_rpc_server *server;

static void check(int status) {
  if (status < 0) {
    fprintf(stderr, "%s\n", beeline_rpc_last_error());
    exit(EXIT_FAILURE);
  }
}

static void stop(int signal_number) {
  (void)signal_number;
  beeline_rpc_server_stop(server);
}

static void echo(void *context, beeline_rpc_request *request) {
  unsigned char bytes[8];
  size_t length = beeline_rpc_request_copy(request, 0, bytes, sizeof bytes);

  (void)context;
  beeline_rpc_reply_send(request, bytes, length);
}

static void serve(const char *root, uint32_t uid) {
  beeline_rpc_server_options options = BEELINE_RPC_SERVER_OPTIONS_INIT;
  beeline_rpc_domain *domain;
  beeline_rpc_worker *worker;

  options.allowed_uids = &uid;
  options.allowed_uid_count = 1;
  check(beeline_rpc_domain_open("default", root, &domain));
  check(beeline_rpc_server_offer(domain, "echo", &options, &server));
  check(beeline_rpc_server_worker(server, 0, &worker));
  signal(SIGTERM, stop);
  printf("ready\n");
  fflush(stdout);
  check(beeline_rpc_worker_run(worker, echo, NULL));
}

static void call(beeline_rpc_domain *domain, uint64_t timeout_ns) {
  beeline_rpc_client_options options = BEELINE_RPC_CLIENT_OPTIONS_INIT;
  beeline_rpc_client *client;
  char answer[8];
  size_t length;

  options.connect_timeout_ns = timeout_ns;
  check(beeline_rpc_client_connect(domain, "echo", &options, &client));
  check(beeline_rpc_call(client, 1, "across", 6, answer, sizeof answer, &length, BEELINE_RPC_NEVER));
  printf("%.*s\n", (int)length, answer);
  check(beeline_rpc_client_close(&client));
  check(beeline_rpc_domain_close(&domain));
}

int main(int argc, char **argv) {
  beeline_rpc_domain *domain;

  if (argc < 3)
    return EXIT_FAILURE;
  if (strcmp(argv[1], "serve") == 0 && argc > 3) {
    serve(argv[2], (uint32_t)strtoul(argv[3], NULL, 10));
  } else if (strcmp(argv[1], "call") == 0 && argc > 4) {
    const char *root = strcmp(argv[2], "-") == 0 ? NULL : argv[2];

    check(beeline_rpc_domain_open_foreign("default", root, (uint32_t)strtoul(argv[3], NULL, 10), &domain));
    printf("waiting\n");
    fflush(stdout);
    call(domain, strtoull(argv[4], NULL, 10) * 1000000U);
  } else {
    check(beeline_rpc_domain_open("default", argv[2], &domain));
    printf("waiting\n");
    fflush(stdout);
    call(domain, 60000000000U);
  }
  return EXIT_SUCCESS;
}

/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A server that goes and comes back while ends of calls to the first one wait to be polled: new calls are begun before
 * the old ones have been told, and every number ends once, as it should. Usage: restart ROOT. Also C++17.
 */
#include <beeline_rpc.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { OLD = 400, CALLS = 800, ADD = 1 };

static void check(int is_so, const char *what) {
  if (!is_so) {
    fprintf(stderr, "%s (%s)\n", what, beeline_rpc_last_error());
    exit(EXIT_FAILURE);
  }
}

static void echo(void *context, beeline_rpc_request *request) {
  unsigned char bytes[8];
  size_t length = beeline_rpc_request_copy(request, 0, bytes, sizeof bytes);

  (void)context;
  beeline_rpc_reply_send(request, bytes, length);
}

static beeline_rpc_server *offer(beeline_rpc_domain *domain) {
  beeline_rpc_server *server;

  check(beeline_rpc_server_offer(domain, "restart", NULL, &server) == BEELINE_RPC_OK, "no offer");
  return server;
}

static uint64_t start(beeline_rpc_client *client) {
  unsigned char request[8] = {9, 0, 0, 0, 0, 0, 0, 0};
  uint64_t call = 0;

  if (beeline_rpc_start(client, ADD, request, sizeof request, BEELINE_RPC_NEVER, &call) != BEELINE_RPC_OK)
    return 0;
  check(call > 0, "a call without a number");
  return call;
}

/* Takes one end, if there is one, and sees to it that it is the first of its call. */
static int take(beeline_rpc_client *client, int *ended) {
  beeline_rpc_completion completion;

  if (beeline_rpc_poll(client, &completion) != BEELINE_RPC_OK)
    return 0;
  check(completion.call >= 1 && completion.call <= CALLS, "a number that no call has");
  check(ended[completion.call] == 0, "a call ended twice");
  ended[completion.call] = 1;
  if (completion.call <= OLD)
    check(completion.status == BEELINE_RPC_SERVER_GONE, "an old call did not end with its server");
  else
    check(completion.status == BEELINE_RPC_OK && beeline_rpc_answer_word(client, 0) == 9, "a new call has no answer");
  return 1;
}

int main(int argc, char **argv) {
  static int ended[CALLS + 1];
  beeline_rpc_domain *domain;
  beeline_rpc_server *server;
  beeline_rpc_worker *worker;
  beeline_rpc_client *client;
  beeline_rpc_client_options options = BEELINE_RPC_CLIENT_OPTIONS_INIT;
  uint64_t last = 0;
  int ends = 0;

  if (argc < 2)
    return EXIT_FAILURE;
  check(beeline_rpc_domain_open("default", argv[1], &domain) == BEELINE_RPC_OK, "no domain");
  server = offer(domain);
  /* So few that new calls have places of old ones. */
  options.max_outstanding = 512;
  check(beeline_rpc_client_connect(domain, "restart", &options, &client) == BEELINE_RPC_OK, "no client");
  /* Nobody answers these. */
  while (last < OLD)
    check((last = start(client)) != 0, "no room for the old calls");
  beeline_rpc_server_close(&server);
  server = offer(domain);
  while (ends == 0)
    ends += take(client, ended);
  /* Slowly, so that the new server is found while most ends are still to be told. */
  while (beeline_rpc_client_server(client, NULL) != BEELINE_RPC_OK) {
    usleep(1000);
    ends += take(client, ended);
  }
  check(ends < OLD / 2, "the new server was found too late for this to show anything");
  check(beeline_rpc_server_worker(server, 0, &worker) == BEELINE_RPC_OK, "no worker");
  while (last < CALLS) {
    uint64_t call = start(client);

    if (call != 0)
      last = call;
    beeline_rpc_worker_poll(worker, echo, NULL, NULL);
    /* An end now and then, so that old and new ones mix. */
    if (call == 0 || call % 4 == 0)
      ends += take(client, ended);
  }
  while (ends < CALLS) {
    beeline_rpc_worker_poll(worker, echo, NULL, NULL);
    ends += take(client, ended);
  }
  check(take(client, ended) == 0, "more ends than calls");
  beeline_rpc_client_close(&client);
  beeline_rpc_worker_close(&worker);
  beeline_rpc_server_close(&server);
  beeline_rpc_domain_close(&domain);
  printf("%d calls ended once\n", ends);
  return EXIT_SUCCESS;
}

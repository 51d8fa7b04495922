/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Calls by data interrupts: the client triggers the server's interrupt with a question in it, the server's callback answers by the
 * client's own interrupt.
 *
 *     BEELINE_NODE=4 ./rpc -server -calls 3000
 *     BEELINE_NODE=8 ./rpc -client -rn 4 -calls 3000
 *
 *     -rn NODE     the node of the server
 *     -a ADAPTER   the adapter to go through (0)
 *     -in NUMBER   of the server's interrupt (77)
 *     -calls N     the client asks so often, and the server ends after as many (1000)
 *
 * A question says which node and interrupt the answer is for, so the server serves whoever asks. It answers from its callback, on a
 * thread of the library, and connects to a client when it asks for the first time.
 */
#define _POSIX_C_SOURCE 200809L

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "sisci_api.h"
#include "sisci_demolib.h"
#include "sisci_error.h"

#define NO_CALLBACK NULL
#define NO_ARG NULL
#define NO_FLAGS 0

struct question {
  uint32_t node;
  uint32_t interrupt;
  uint64_t number;
};

struct server {
  sci_desc_t sd;
  sci_remote_data_interrupt_t client;
  /* Whom `client` is connected to. */
  uint32_t node, interrupt;
  /* Stored by the callback, loaded by who waits. */
  unsigned int answered;
};

static unsigned int adapter;

static void check(const char *what, sci_error_t error)
{
  if (sisci_demo_failed(what, error))
    exit(1);
}

static void leave(struct server *server)
{
  sci_error_t error;

  if (!server->client)
    return;
  SCIDisconnectDataInterrupt(server->client, NO_FLAGS, &error);
  check("SCIDisconnectDataInterrupt", error);
  server->client = NULL;
}

/* Connects to whoever asks, unless it has gone already. */
static int join(struct server *server, const struct question *question)
{
  sci_error_t error;

  SCIConnectDataInterrupt(server->sd, &server->client, question->node, adapter, question->interrupt, 1000, NO_FLAGS,
                          &error);
  if (error != SCI_ERR_OK) {
    server->client = NULL;
    return 0;
  }
  server->node = question->node;
  server->interrupt = question->interrupt;
  return 1;
}

static sci_callback_action_t answer(void *arg, sci_local_data_interrupt_t interrupt, void *data, unsigned int length,
                                    sci_error_t status)
{
  struct server *server = (struct server *)arg;
  struct question question;
  sci_error_t error;

  (void)interrupt;
  if (status != SCI_ERR_OK || length != sizeof(question))
    return SCI_CALLBACK_CONTINUE;
  memcpy(&question, data, sizeof(question));
  question.number *= question.number;
  if (server->node != question.node || server->interrupt != question.interrupt)
    leave(server);
  do {
    if (!server->client && !join(server, &question))
      return SCI_CALLBACK_CONTINUE;
    SCITriggerDataInterrupt(server->client, &question.number, sizeof(question.number), NO_FLAGS, &error);
    /* A client of before had the same number. */
    if (error == SCI_ERR_NOT_CONNECTED)
      leave(server);
  } while (error == SCI_ERR_NOSPC || error == SCI_ERR_NOT_CONNECTED);
  check("SCITriggerDataInterrupt", error);
  __atomic_add_fetch(&server->answered, 1, __ATOMIC_RELEASE);
  return SCI_CALLBACK_CONTINUE;
}

static void serve(sci_desc_t sd, unsigned int number, unsigned int calls)
{
  struct server server;
  sci_local_data_interrupt_t interrupt;
  sci_error_t error;

  memset(&server, 0, sizeof(server));
  server.sd = sd;
  SCICreateDataInterrupt(sd, &interrupt, adapter, &number, answer, &server,
                         SCI_FLAG_USE_CALLBACK | SCI_FLAG_FIXED_INTNO, &error);
  check("SCICreateDataInterrupt", error);
  printf("interrupt %u\n", number);
  fflush(stdout);
  while (__atomic_load_n(&server.answered, __ATOMIC_ACQUIRE) < calls)
    sched_yield();
  /* Waits for the callback that runs, if one does. */
  SCIRemoveDataInterrupt(interrupt, NO_FLAGS, &error);
  check("SCIRemoveDataInterrupt", error);
  leave(&server);
  printf("%u calls answered\n", server.answered);
}

static void ask(sci_desc_t sd, unsigned int node, unsigned int number, unsigned int calls)
{
  struct question question;
  sci_local_data_interrupt_t answers;
  sci_remote_data_interrupt_t server;
  sci_error_t error;
  unsigned int own = 0, own_node, length, call;
  uint64_t found, sum = 0;

  SCIGetLocalNodeId(adapter, &own_node, NO_FLAGS, &error);
  check("SCIGetLocalNodeId", error);
  SCICreateDataInterrupt(sd, &answers, adapter, &own, NO_CALLBACK, NO_ARG, NO_FLAGS, &error);
  check("SCICreateDataInterrupt", error);
  for (;;) {
    SCIConnectDataInterrupt(sd, &server, node, adapter, number, 1000, NO_FLAGS, &error);
    if (error != SCI_ERR_TIMEOUT)
      break;
    fprintf(stderr, "waiting: %s\n", beeline_sisci_last_error());
  }
  check("SCIConnectDataInterrupt", error);
  question.node = own_node;
  question.interrupt = own;
  for (call = 1; call <= calls; call++) {
    question.number = call;
    do {
      SCITriggerDataInterrupt(server, &question, sizeof(question), NO_FLAGS, &error);
    } while (error == SCI_ERR_NOSPC);
    check("SCITriggerDataInterrupt", error);
    length = sizeof(found);
    SCIWaitForDataInterrupt(answers, &found, &length, SCI_INFINITE_TIMEOUT, NO_FLAGS, &error);
    check("SCIWaitForDataInterrupt", error);
    if (length != sizeof(found) || found != (uint64_t)call * call) {
      fprintf(stderr, "the answer to %u is wrong\n", call);
      exit(1);
    }
    sum += found;
  }
  printf("%u answers, sum %llu\n", calls, (unsigned long long)sum);
  SCIDisconnectDataInterrupt(server, NO_FLAGS, &error);
  check("SCIDisconnectDataInterrupt", error);
  SCIRemoveDataInterrupt(answers, NO_FLAGS, &error);
  check("SCIRemoveDataInterrupt", error);
}

int main(int argc, char **argv)
{
  int is_client = sisci_demo_has(argc, argv, "-client");
  unsigned int node = sisci_demo_option(argc, argv, "-rn", 0);
  unsigned int number = sisci_demo_option(argc, argv, "-in", 77);
  unsigned int calls = sisci_demo_option(argc, argv, "-calls", 1000);
  sci_desc_t sd;
  sci_error_t error;

  adapter = sisci_demo_option(argc, argv, "-a", 0);
  if (is_client == sisci_demo_has(argc, argv, "-server") || (is_client && node == 0)) {
    fprintf(stderr, "usage: %s -server|-client -rn NODE [-a ADAPTER] [-in NUMBER] [-calls N]\n", argv[0]);
    return 2;
  }
  SCIInitialize(NO_FLAGS, &error);
  check("SCIInitialize", error);
  SCIOpen(&sd, NO_FLAGS, &error);
  check("SCIOpen", error);
  if (is_client)
    ask(sd, node, number, calls);
  else
    serve(sd, number, calls);
  SCIClose(sd, NO_FLAGS, &error);
  check("SCIClose", error);
  SCITerminate();
  return 0;
}

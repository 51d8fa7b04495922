/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Lines by a message queue: the client sends what it reads, the server prints it and sends back how many bytes the line had.
 *
 *     BEELINE_NODE=4 ./queue -server -rn 8
 *     echo hello | BEELINE_NODE=8 ./queue -client -rn 4
 *
 *     -rn NODE     the node of the other side
 *     -a ADAPTER   the adapter to go through (0)
 *     -q NUMBER    the first of the numbers of the two ends (70)
 *
 * A line goes as its length, then its bytes. The server ends when the client has gone, after everything that it sent.
 */
#define _POSIX_C_SOURCE 200809L

#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "scilib.h"
#include "sisci_demolib.h"
#include "sisci_error.h"

#define NO_FLAGS 0
#define MESSAGES 64
#define LONGEST 1000
/* Milliseconds for one attempt to open the queue. */
#define PATIENCE 1000

static void check(const char *what, sci_error_t error)
{
  if (sisci_demo_failed(what, error))
    exit(1);
}

static sci_msq_queue_t open_queue(int is_client, unsigned int adapter, unsigned int node, unsigned int number)
{
  sci_msq_queue_t queue = NULL;
  sci_error_t error;

  do {
    error = SCILCreateMsgQueue(&queue, adapter, node, number + is_client, number + !is_client, MESSAGES, LONGEST,
                               PATIENCE, NO_FLAGS);
  } while (error == SCI_ERR_TIMEOUT);
  check("SCILCreateMsgQueue", error);
  return queue;
}

/* Whether the bytes are sent; the other end is gone if not. */
static int send_all(sci_msq_queue_t queue, void *bytes, unsigned int size)
{
  sci_error_t error;

  while ((error = SCILSendMsg(queue, bytes, size, NULL, NO_FLAGS)) == SCI_ERR_EWOULD_BLOCK)
    sched_yield();
  if (error == SCI_ERR_NOT_CONNECTED)
    return 0;
  check("SCILSendMsg", error);
  return 1;
}

/* Whether the bytes have come; the other end is gone if not. */
static int receive_all(sci_msq_queue_t queue, void *bytes, unsigned int size)
{
  sci_error_t error;

  while ((error = SCILReceiveMsg(queue, bytes, size, NULL, NO_FLAGS)) == SCI_ERR_EWOULD_BLOCK)
    sched_yield();
  if (error == SCI_ERR_NOT_CONNECTED)
    return 0;
  check("SCILReceiveMsg", error);
  return 1;
}

static void serve(sci_msq_queue_t queue)
{
  char line[LONGEST];
  uint32_t length;

  while (receive_all(queue, &length, sizeof(length)) && length <= sizeof(line) && receive_all(queue, line, length)) {
    printf("%.*s\n", (int)length, line);
    fflush(stdout);
    if (!send_all(queue, &length, sizeof(length)))
      return;
  }
}

static void ask(sci_msq_queue_t queue)
{
  /* With the end of the line, and the NUL. */
  char line[LONGEST + 2];
  uint32_t length, answer;

  while (fgets(line, sizeof(line), stdin)) {
    length = (uint32_t)strcspn(line, "\n");
    if (length > LONGEST) {
      fprintf(stderr, "a line of more than %d bytes\n", LONGEST);
      exit(1);
    }
    if (!send_all(queue, &length, sizeof(length)) || !send_all(queue, line, length) ||
        !receive_all(queue, &answer, sizeof(answer))) {
      fprintf(stderr, "the server has gone\n");
      exit(1);
    }
    printf("%u\n", answer);
    fflush(stdout);
  }
}

int main(int argc, char **argv)
{
  int is_client = sisci_demo_has(argc, argv, "-client");
  unsigned int node = sisci_demo_option(argc, argv, "-rn", 0);
  unsigned int number = sisci_demo_option(argc, argv, "-q", 70);
  unsigned int adapter = sisci_demo_option(argc, argv, "-a", 0);
  sci_msq_queue_t queue;

  if (is_client == sisci_demo_has(argc, argv, "-server") || node == 0) {
    fprintf(stderr, "usage: %s -server|-client -rn NODE [-a ADAPTER] [-q NUMBER]\n", argv[0]);
    return 2;
  }
  check("SCILInit", SCILInit(NO_FLAGS));
  queue = open_queue(is_client, adapter, node, number);
  if (is_client)
    ask(queue);
  else
    serve(queue);
  check("SCILRemoveMsgQueue", SCILRemoveMsgQueue(&queue, NO_FLAGS));
  check("SCILDestroy", SCILDestroy(NO_FLAGS));
  return 0;
}

/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Everything a program can do wrong that the header says is a code, in one process: a server in a thread of its own.
 * Usage: misuse ROOT. Also C++17.
 */
#include <beeline_rpc.h>

#define LAST_ERROR beeline_rpc_last_error
#include "expect.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

enum { ECHO = 1, SILENT = 2, TWICE = 3, UNDONE = 4, NESTED = 5, FAIL = 6, TOO_MUCH = 7, SLOW = 8, FROM_OTHER = 9 };

static beeline_rpc_server *server;
static beeline_rpc_worker *worker;
/* What a handler kept, which it must not. */
static beeline_rpc_request *kept;

static void *use_from_other(void *request) {
  EXPECT(beeline_rpc_request_length((beeline_rpc_request *)request), 0);
  EXPECT_SAID("another thread");
  EXPECT(beeline_rpc_reply_send((beeline_rpc_request *)request, "x", 1), BEELINE_RPC_WRONG_THREAD);
  EXPECT(beeline_rpc_worker_close(&worker), BEELINE_RPC_WRONG_THREAD);
  return NULL;
}

static void handle(void *context, beeline_rpc_request *request) {
  unsigned char bytes[256];
  size_t length;
  uint64_t at_most_ns = 7;
  int descriptor = 7;

  EXPECT((intptr_t)context, 77);
  if (kept != NULL && kept != request)
    EXPECT(beeline_rpc_reply_send(kept, NULL, 0), BEELINE_RPC_NO_REQUEST);
  kept = request;
  length = beeline_rpc_request_copy(request, 0, bytes, sizeof bytes);
  switch (beeline_rpc_request_method(request)) {
  case ECHO:
    EXPECT(beeline_rpc_request_length(request), length);
    EXPECT(beeline_rpc_request_word(request, SIZE_MAX), 0);
    EXPECT(beeline_rpc_request_word(request, SIZE_MAX / 8), 0);
    EXPECT(beeline_rpc_request_copy(request, SIZE_MAX, bytes, 1), 0);
    EXPECT(beeline_rpc_request_copy(request, SIZE_MAX / 8 + 1, bytes, 1), 0);
    EXPECT(beeline_rpc_request_copy(request, 0, NULL, 8), 0);
    EXPECT_SAID("out is NULL");
    EXPECT(beeline_rpc_reply_send(request, NULL, 8), BEELINE_RPC_INVALID);
    EXPECT(beeline_rpc_reply_send(request, bytes, SIZE_MAX), BEELINE_RPC_INVALID);
    EXPECT(beeline_rpc_reply_write(request, bytes, 1), BEELINE_RPC_ANSWERED);
    EXPECT(beeline_rpc_reply_commit(request), BEELINE_RPC_ANSWERED);
    EXPECT_SAID("begin one first");
    EXPECT(beeline_rpc_reply_send(request, bytes, length), BEELINE_RPC_OK);
    break;
  case SILENT:
    break;
  case TWICE:
    EXPECT(beeline_rpc_reply_overloaded(request), BEELINE_RPC_OK);
    EXPECT(beeline_rpc_reply_send(request, bytes, length), BEELINE_RPC_ANSWERED);
    EXPECT(beeline_rpc_reply_unknown_method(request), BEELINE_RPC_ANSWERED);
    EXPECT(beeline_rpc_reply_begin(request, 8), BEELINE_RPC_ANSWERED);
    EXPECT_SAID("answered already");
    break;
  case UNDONE:
    EXPECT(beeline_rpc_reply_begin(request, 100), BEELINE_RPC_OK);
    EXPECT(beeline_rpc_reply_write(request, bytes, 50), BEELINE_RPC_OK);
    EXPECT(beeline_rpc_reply_write(request, bytes, 51), BEELINE_RPC_INVALID);
    EXPECT(beeline_rpc_reply_send(request, bytes, 1), BEELINE_RPC_ANSWERED);
    EXPECT(beeline_rpc_reply_begin(request, 1), BEELINE_RPC_ANSWERED);
    break;
  case NESTED:
    EXPECT(beeline_rpc_worker_poll(worker, handle, context, NULL), BEELINE_RPC_BUSY);
    EXPECT(beeline_rpc_worker_run(worker, handle, context), BEELINE_RPC_BUSY);
    EXPECT(beeline_rpc_worker_release(worker), BEELINE_RPC_BUSY);
    EXPECT(beeline_rpc_worker_descriptor(worker, &descriptor), BEELINE_RPC_BUSY);
    EXPECT(descriptor, -1);
    EXPECT(beeline_rpc_worker_arm(worker, &at_most_ns), BEELINE_RPC_BUSY);
    EXPECT(at_most_ns, 0);
    EXPECT(beeline_rpc_worker_disarm(worker), BEELINE_RPC_BUSY);
    EXPECT(beeline_rpc_worker_close(&worker), BEELINE_RPC_BUSY);
    EXPECT(worker != NULL, 1);
    EXPECT(beeline_rpc_reply_send(request, bytes, length), BEELINE_RPC_OK);
    break;
  case FAIL:
    EXPECT(beeline_rpc_reply_fail(request, 65535, bytes, length), BEELINE_RPC_OK);
    break;
  case TOO_MUCH: {
    unsigned char *much = (unsigned char *)calloc(1, BEELINE_RPC_MAX_LENGTH + 1);
    EXPECT(beeline_rpc_reply_send(request, much, BEELINE_RPC_MAX_LENGTH + 1), BEELINE_RPC_OK);
    free(much);
    break;
  }
  case SLOW:
    EXPECT(beeline_rpc_request_time_left(request) <= UINT64_C(60000000000), 1);
    while (!beeline_rpc_request_is_cancelled(request))
      continue;
    EXPECT(beeline_rpc_reply_send(request, bytes, length), BEELINE_RPC_OK);
    break;
  case FROM_OTHER: {
    pthread_t other;
    EXPECT(pthread_create(&other, NULL, use_from_other, request), 0);
    pthread_join(other, NULL);
    EXPECT(beeline_rpc_request_time_left(request) == BEELINE_RPC_NEVER, 1);
    EXPECT(beeline_rpc_reply_send(request, bytes, length), BEELINE_RPC_OK);
    break;
  }
  default:
    EXPECT(beeline_rpc_reply_unknown_method(request), BEELINE_RPC_OK);
  }
}

static void *serve(void *unused) {
  (void)unused;
  EXPECT(beeline_rpc_worker_poll(worker, NULL, NULL, NULL), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_worker_run(worker, handle, (void *)(intptr_t)77), BEELINE_RPC_OK);
  /* Kept beyond its handler: it finds nothing, and harms nothing. */
  EXPECT(beeline_rpc_request_length(kept), 0);
  EXPECT(beeline_rpc_reply_commit(kept), BEELINE_RPC_NO_REQUEST);
  return NULL;
}

static void *use_client(void *client) {
  uint64_t at_most_ns = 7;
  int descriptor = 7;

  EXPECT(beeline_rpc_wait((beeline_rpc_client *)client, 0), BEELINE_RPC_WRONG_THREAD);
  EXPECT_SAID("another thread");
  EXPECT(beeline_rpc_client_descriptor((beeline_rpc_client *)client, &descriptor), BEELINE_RPC_WRONG_THREAD);
  EXPECT(beeline_rpc_client_arm((beeline_rpc_client *)client, &at_most_ns), BEELINE_RPC_WRONG_THREAD);
  EXPECT(beeline_rpc_client_disarm((beeline_rpc_client *)client), BEELINE_RPC_WRONG_THREAD);
  EXPECT(beeline_rpc_client_close((beeline_rpc_client **)&client), BEELINE_RPC_WRONG_THREAD);
  EXPECT(client != NULL, 1);
  return NULL;
}

static void *use_and_end(void *client) {
  EXPECT(beeline_rpc_wait((beeline_rpc_client *)client, 0), BEELINE_RPC_EMPTY);
  return NULL;
}

static void in_thread(void *(*work)(void *), void *argument) {
  pthread_t thread;

  EXPECT(pthread_create(&thread, NULL, work, argument), 0);
  pthread_join(thread, NULL);
}

/* One call by start and poll. */
static beeline_rpc_completion ask(beeline_rpc_client *client, uint16_t method, const char *request) {
  beeline_rpc_completion completion;
  uint64_t call = 0;

  memset(&completion, 0, sizeof completion);
  EXPECT(beeline_rpc_start(client, method, request, strlen(request), BEELINE_RPC_NEVER, &call), BEELINE_RPC_OK);
  while (beeline_rpc_poll(client, &completion) == BEELINE_RPC_EMPTY)
    beeline_rpc_wait(client, BEELINE_RPC_NEVER);
  EXPECT(completion.call, call);
  EXPECT(completion.reserved, 0);
  return completion;
}

/* Descriptors: not given where there is nothing to give them of, the same one for ever, closed with their client. */
static void descriptors(beeline_rpc_client *client) {
  beeline_rpc_worker *not_a_worker = (beeline_rpc_worker *)client;
  uint64_t at_most_ns = 7;
  int descriptor = 7, again = 7;
  struct rlimit limit, no_more;

  /* The reply to a call that was cancelled comes late, and in front of this one: then there is nothing to wait for. */
  EXPECT(ask(client, ECHO, "").status, BEELINE_RPC_OK);
  EXPECT(beeline_rpc_client_descriptor(NULL, &descriptor), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_worker_descriptor(NULL, &descriptor), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_worker_descriptor(not_a_worker, &descriptor), BEELINE_RPC_INVALID);
  EXPECT(descriptor, -1);
  EXPECT(beeline_rpc_client_arm(NULL, &at_most_ns), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_worker_arm(not_a_worker, &at_most_ns), BEELINE_RPC_INVALID);
  EXPECT(at_most_ns, 0);
  EXPECT(beeline_rpc_client_disarm(NULL), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_worker_disarm(not_a_worker), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_client_descriptor(client, NULL), BEELINE_RPC_INVALID);
  EXPECT_SAID("beeline_rpc_client_descriptor: descriptor is NULL");
  EXPECT(beeline_rpc_client_arm(client, NULL), BEELINE_RPC_INVALID);
  EXPECT_SAID("at_most_ns is NULL");
  /* Before there is a descriptor there is nothing to do. */
  EXPECT(beeline_rpc_client_disarm(client), BEELINE_RPC_OK);
  EXPECT(getrlimit(RLIMIT_NOFILE, &limit), 0);
  no_more = limit;
  no_more.rlim_cur = 0;
  EXPECT(setrlimit(RLIMIT_NOFILE, &no_more), 0);
  EXPECT(beeline_rpc_client_descriptor(client, &descriptor), BEELINE_RPC_REFUSED);
  EXPECT_SAID("raise the limit");
  EXPECT(beeline_rpc_client_arm(client, &at_most_ns), BEELINE_RPC_REFUSED);
  EXPECT(setrlimit(RLIMIT_NOFILE, &limit), 0);
  EXPECT(descriptor, -1);
  EXPECT(beeline_rpc_client_descriptor(client, &descriptor), BEELINE_RPC_OK);
  EXPECT(beeline_rpc_client_descriptor(client, &again), BEELINE_RPC_OK);
  EXPECT(descriptor >= 0 && descriptor == again, 1);
  EXPECT(beeline_rpc_client_arm(client, &at_most_ns), BEELINE_RPC_EMPTY);
  EXPECT(beeline_rpc_client_arm(client, &at_most_ns), BEELINE_RPC_EMPTY);
  EXPECT(at_most_ns > 0, 1);
}

static void nothing_given(beeline_rpc_domain *domain) {
  beeline_rpc_domain *no_domain = NULL;
  beeline_rpc_client *client = (beeline_rpc_client *)&client;
  beeline_rpc_server *no_server = NULL;
  beeline_rpc_worker *no_worker = NULL;
  beeline_rpc_client_options options = BEELINE_RPC_CLIENT_OPTIONS_INIT;
  beeline_rpc_server_options server_options = BEELINE_RPC_SERVER_OPTIONS_INIT;

  EXPECT(beeline_rpc_domain_open("default", NULL, NULL), BEELINE_RPC_INVALID);
  EXPECT_SAID("beeline_rpc_domain_open: domain is NULL");
  EXPECT(beeline_rpc_domain_open(NULL, NULL, &no_domain), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_domain_open("\xff", NULL, &no_domain), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_domain_open("UPPER", NULL, &no_domain), BEELINE_RPC_REFUSED);
  EXPECT(beeline_rpc_domain_close(NULL), BEELINE_RPC_OK);
  EXPECT(beeline_rpc_domain_close(&no_domain), BEELINE_RPC_OK);
  EXPECT(beeline_rpc_client_connect(NULL, "x", NULL, &client), BEELINE_RPC_INVALID);
  EXPECT(client == NULL, 1);
  options.connect_timeout_ns = 1;
  EXPECT(beeline_rpc_client_connect(domain, "nobody", &options, &client), BEELINE_RPC_REFUSED);
  EXPECT_SAID("nobody");
  options.max_outstanding = 3;
  EXPECT(beeline_rpc_client_connect(domain, "misuse", &options, &client), BEELINE_RPC_INVALID);
  EXPECT_SAID("max_outstanding = 3; it must be a power of two");
  options.max_outstanding = 0;
  options.size = 3;
  EXPECT(beeline_rpc_client_connect(domain, "misuse", &options, &client), BEELINE_RPC_INVALID);
  options.size = sizeof options;
  options.wait = 9;
  EXPECT(beeline_rpc_client_connect(domain, "misuse", &options, &client), BEELINE_RPC_INVALID);
  options.wait = BEELINE_RPC_WAIT_SLEEP;
  options.reserved = 1;
  EXPECT(beeline_rpc_client_connect(domain, "misuse", &options, &client), BEELINE_RPC_INVALID);
  EXPECT_SAID("options.reserved = 1");
  options.reserved = 0;
  options.store_kernel = "quick";
  EXPECT(beeline_rpc_client_connect(domain, "misuse", &options, &client), BEELINE_RPC_INVALID);
  EXPECT_SAID("quick");
  EXPECT(beeline_rpc_client_close(&client), BEELINE_RPC_OK);
  EXPECT(beeline_rpc_client_close(NULL), BEELINE_RPC_OK);
  EXPECT(beeline_rpc_client_release(NULL), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_start(NULL, 1, NULL, 0, 0, NULL), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_wait(NULL, 0), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_cancel(NULL, 1), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_answer_length(NULL), 0);
  EXPECT(beeline_rpc_answer_word(NULL, 0), 0);
  EXPECT(beeline_rpc_answer_copy(NULL, 0, NULL, 0), 0);
  EXPECT(beeline_rpc_answer_release(NULL), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_server_offer(domain, "misuse", NULL, &no_server), BEELINE_RPC_REFUSED);
  server_options.allowed_uid_count = 1;
  EXPECT(beeline_rpc_server_offer(domain, "other", &server_options, &no_server), BEELINE_RPC_INVALID);
  server_options.allowed_uid_count = 0;
  server_options.workers = 65;
  EXPECT(beeline_rpc_server_offer(domain, "other", &server_options, &no_server), BEELINE_RPC_INVALID);
  EXPECT_SAID("workers = 65");
  EXPECT(beeline_rpc_server_worker(server, 0, &no_worker), BEELINE_RPC_INVALID);
  EXPECT_SAID("taken already");
  EXPECT(beeline_rpc_server_worker(server, 1, &no_worker), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_server_worker(NULL, 0, &no_worker), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_server_stop(NULL), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_worker_close(&no_worker), BEELINE_RPC_OK);
  EXPECT(beeline_rpc_worker_wait(NULL, 0), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_request_method(NULL), 0);
  EXPECT(beeline_rpc_reply_send(NULL, NULL, 0), BEELINE_RPC_INVALID);
}

/* Handles that name nothing: closed through another copy, of another kind, an address of something else. */
static void no_handles(beeline_rpc_domain *domain, const char *root) {
  beeline_rpc_domain *closed, *copy, *again;
  beeline_rpc_client *client = (beeline_rpc_client *)domain, *nobody;
  beeline_rpc_client_options options = BEELINE_RPC_CLIENT_OPTIONS_INIT;
  beeline_rpc_server *no_server = NULL;
  unsigned char bytes[256];

  memset(bytes, 0x29, sizeof bytes);
  /* A user who has made no domain: its folder is the default one of that user, and is waited for when it is used. */
  options.connect_timeout_ns = 1;
  EXPECT(beeline_rpc_domain_open_foreign("default", NULL, 4000000, &closed), BEELINE_RPC_OK);
  EXPECT(beeline_rpc_client_connect(closed, "nobody", &options, &nobody), BEELINE_RPC_REFUSED);
  EXPECT_SAID("beeline_rpc_client_connect: uid 4000000 has no folder /tmp/beeline-4000000");
  EXPECT(beeline_rpc_server_offer(closed, "other", NULL, &no_server), BEELINE_RPC_REFUSED);
  EXPECT_SAID("uid 4000000");
  EXPECT(beeline_rpc_domain_close(&closed), BEELINE_RPC_OK);
  EXPECT(beeline_rpc_domain_open_foreign("UPPER", NULL, 4000000, &closed), BEELINE_RPC_REFUSED);
  EXPECT(beeline_rpc_domain_open_foreign("default", root, 4000000, &closed), BEELINE_RPC_REFUSED);
  EXPECT_SAID("expected 4000000");
  EXPECT(beeline_rpc_domain_open("default", root, &closed), BEELINE_RPC_OK);
  copy = closed;
  EXPECT(beeline_rpc_domain_close(&closed), BEELINE_RPC_OK);
  EXPECT(beeline_rpc_server_offer(copy, "other", NULL, &no_server), BEELINE_RPC_INVALID);
  EXPECT_SAID("domain is no open domain: it is closed already");
  EXPECT(beeline_rpc_domain_close(&copy), BEELINE_RPC_INVALID);
  /* The place of the closed one is used again. */
  EXPECT(beeline_rpc_domain_open("default", root, &again), BEELINE_RPC_OK);
  EXPECT(beeline_rpc_domain_close(&copy), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_domain_close(&again), BEELINE_RPC_OK);
  EXPECT(beeline_rpc_wait(client, 0), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_client_close(&client), BEELINE_RPC_INVALID);
  EXPECT(client != NULL, 1);
  EXPECT(beeline_rpc_answer_length((beeline_rpc_client *)bytes), 0);
  EXPECT(beeline_rpc_reply_send((beeline_rpc_request *)(bytes + 1), "x", 1), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_server_stop((beeline_rpc_server *)worker), BEELINE_RPC_INVALID);
}

static void answers(beeline_rpc_client *client) {
  beeline_rpc_completion completion = ask(client, ECHO, "twelve bytes");
  char bytes[64];
  size_t length;

  EXPECT(completion.status, BEELINE_RPC_OK);
  EXPECT(completion.length, 12);
  EXPECT(beeline_rpc_answer_length(client), 12);
  EXPECT(beeline_rpc_answer_word(client, 1), 0x73657479);
  EXPECT(beeline_rpc_answer_word(client, 2), 0);
  EXPECT(beeline_rpc_answer_word(client, SIZE_MAX), 0);
  EXPECT(beeline_rpc_answer_word(client, SIZE_MAX - 1), 0);
  EXPECT(strstr(beeline_rpc_last_error(), "defect") == NULL, 1);
  EXPECT(beeline_rpc_answer_copy(client, 1, bytes, sizeof bytes), 4);
  EXPECT(beeline_rpc_answer_copy(client, SIZE_MAX / 4, bytes, sizeof bytes), 0);
  EXPECT(beeline_rpc_answer_copy(client, 0, bytes, 3), 3);
  EXPECT(memcmp(bytes, "twe", 3), 0);
  /* Held until the client is used. */
  EXPECT(beeline_rpc_wait(client, 0), BEELINE_RPC_EMPTY);
  EXPECT(beeline_rpc_answer_length(client), 0);
  EXPECT_SAID("no answer is held");
  EXPECT(beeline_rpc_call(client, ECHO, "twelve bytes", 12, bytes, 5, &length, BEELINE_RPC_NEVER),
         BEELINE_RPC_TRUNCATED);
  EXPECT(length, 12);
  EXPECT(beeline_rpc_answer_copy(client, 0, bytes, sizeof bytes), 12);
  EXPECT(memcmp(bytes, "twelve bytes", 12), 0);
  EXPECT(beeline_rpc_answer_release(client), BEELINE_RPC_OK);
  EXPECT(beeline_rpc_answer_word(client, 0), 0);
  EXPECT(beeline_rpc_call(client, ECHO, NULL, 0, NULL, 0, NULL, BEELINE_RPC_NEVER), BEELINE_RPC_OK);
  EXPECT(beeline_rpc_call(client, ECHO, NULL, 1, NULL, 0, NULL, BEELINE_RPC_NEVER), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_call(client, FAIL, "why", 3, bytes, 3, &length, BEELINE_RPC_NEVER), BEELINE_RPC_FAILED);
  EXPECT(length, 0);
  EXPECT(beeline_rpc_answer_copy(client, 0, bytes, sizeof bytes), 3);
}

static void ends(beeline_rpc_client *client) {
  beeline_rpc_completion completion;
  unsigned char byte = 0;
  uint64_t call = 0;

  completion = ask(client, SILENT, "");
  EXPECT(completion.status, BEELINE_RPC_CRASHED);
  EXPECT(beeline_rpc_may_have_run(completion.status), 1);
  completion = ask(client, UNDONE, "");
  EXPECT(completion.status, BEELINE_RPC_CRASHED);
  completion = ask(client, TWICE, "");
  EXPECT(completion.status, BEELINE_RPC_OVERLOADED);
  EXPECT(beeline_rpc_may_have_run(completion.status), 0);
  completion = ask(client, NESTED, "n");
  EXPECT(completion.status, BEELINE_RPC_OK);
  completion = ask(client, FAIL, "detail");
  EXPECT(completion.status, BEELINE_RPC_FAILED);
  EXPECT(completion.code, 65535);
  EXPECT(completion.length, 6);
  EXPECT(beeline_rpc_answer_word(client, 0), 0x6c6961746564);
  completion = ask(client, TOO_MUCH, "");
  EXPECT(completion.status, BEELINE_RPC_TOO_LONG);
  completion = ask(client, 99, "");
  EXPECT(completion.status, BEELINE_RPC_UNKNOWN_METHOD);
  EXPECT_SAID("no such method");
  completion = ask(client, FROM_OTHER, "abc");
  EXPECT(completion.status, BEELINE_RPC_OK);
  EXPECT(beeline_rpc_start(client, SLOW, "s", 1, UINT64_C(60000000000), &call), BEELINE_RPC_OK);
  EXPECT(beeline_rpc_call(client, ECHO, "e", 1, NULL, 0, NULL, 0), BEELINE_RPC_OUTSTANDING);
  EXPECT(beeline_rpc_cancel(client, call + 1), BEELINE_RPC_EMPTY);
  EXPECT(beeline_rpc_cancel(client, call), BEELINE_RPC_OK);
  EXPECT(beeline_rpc_cancel(client, call), BEELINE_RPC_EMPTY);
  EXPECT(beeline_rpc_poll(client, &completion), BEELINE_RPC_OK);
  EXPECT(completion.status, BEELINE_RPC_CANCELLED);
  EXPECT(completion.call, call);
  EXPECT(beeline_rpc_poll(client, NULL), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_wait(client, BEELINE_RPC_NEVER), BEELINE_RPC_INVALID);
  EXPECT_SAID("never end");
  EXPECT(beeline_rpc_start(client, ECHO, &byte, BEELINE_RPC_MAX_LENGTH + 1, 0, NULL), BEELINE_RPC_INVALID);
}

int main(int argc, char **argv) {
  beeline_rpc_domain *domain, *other;
  beeline_rpc_client *client, *kept_client;
  pthread_t thread;

  if (argc < 2)
    return EXIT_FAILURE;
  EXPECT(beeline_rpc_last_error()[0], 0);
  EXPECT(beeline_rpc_domain_open("default", argv[1], &domain), BEELINE_RPC_OK);
  EXPECT(beeline_rpc_server_offer(domain, "misuse", NULL, &server), BEELINE_RPC_OK);
  EXPECT(beeline_rpc_server_worker(server, 0, &worker), BEELINE_RPC_OK);
  nothing_given(domain);
  no_handles(domain, argv[1]);
  EXPECT(pthread_create(&thread, NULL, serve, NULL), 0);
  /* A domain that is closed leaves its clients alone. */
  EXPECT(beeline_rpc_domain_open("default", argv[1], &other), BEELINE_RPC_OK);
  EXPECT(beeline_rpc_client_connect(other, "misuse", NULL, &client), BEELINE_RPC_OK);
  EXPECT(beeline_rpc_domain_close(&other), BEELINE_RPC_OK);
  EXPECT(beeline_rpc_domain_close(&other), BEELINE_RPC_OK);
  /* Nobody's, then one thread's until it ends, then ours, nobody's again, another's. */
  in_thread(use_and_end, client);
  EXPECT(beeline_rpc_client_server(client, NULL), BEELINE_RPC_OK);
  in_thread(use_client, client);
  EXPECT(beeline_rpc_client_release(client), BEELINE_RPC_OK);
  in_thread(use_and_end, client);
  answers(client);
  ends(client);
  descriptors(client);
  /* Closed while it holds an answer and is armed. */
  EXPECT(ask(client, ECHO, "last").status, BEELINE_RPC_OK);
  kept_client = client;
  EXPECT(beeline_rpc_client_close(&client), BEELINE_RPC_OK);
  EXPECT(client == NULL, 1);
  EXPECT(beeline_rpc_wait(kept_client, 0), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_answer_word(kept_client, 0), 0);
  EXPECT_SAID("closed already");
  EXPECT(beeline_rpc_client_close(&kept_client), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_client_close(&client), BEELINE_RPC_OK);
  EXPECT(beeline_rpc_server_stop(server), BEELINE_RPC_OK);
  pthread_join(thread, NULL);
  EXPECT(beeline_rpc_server_close(&server), BEELINE_RPC_OK);
  EXPECT(beeline_rpc_worker_close(&worker), BEELINE_RPC_OK);
  EXPECT(beeline_rpc_reply_commit(kept), BEELINE_RPC_INVALID);
  EXPECT(beeline_rpc_domain_close(&domain), BEELINE_RPC_OK);
  printf("%d failures\n", failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

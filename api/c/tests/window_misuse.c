/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * Everything a program can do wrong with windows that the headers say is a code, in one process that has both ends.
 * Usage: window_misuse ROOT. Also C++17.
 */
#include <beeline_rpc.h>
#include <beeline_window.h>

#include "expect.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/uio.h>

enum { LINES = 64 };
static const uint64_t WATCHDOG_NS = UINT64_C(60000000000);

static beeline_window_receiver *receiver, *other_receiver;
static beeline_window_sender *sender, *other_sender;
/* What a callback kept, which it must not. */
static beeline_window_message *kept;

static void in_thread(void *(*work)(void *), void *argument) {
  pthread_t thread;

  EXPECT(pthread_create(&thread, NULL, work, argument), 0);
  pthread_join(thread, NULL);
}

static void ignore(void *context, beeline_window_message *message, size_t length) {
  (void)context, (void)message, (void)length;
}

static void count(void *context, beeline_window_message *message, size_t length) {
  (void)message;
  *(size_t *)context += length;
}

static void nothing_given(beeline_domain *domain) {
  beeline_window_receiver_options receiver_options = BEELINE_WINDOW_RECEIVER_OPTIONS_INIT;
  beeline_window_sender_options options = BEELINE_WINDOW_SENDER_OPTIONS_INIT;
  beeline_window_receiver *no_receiver = (beeline_window_receiver *)&options;
  beeline_window_sender *no_sender = (beeline_window_sender *)&options;
  beeline_domain *no_domain = NULL;
  beeline_window_message *message = (beeline_window_message *)&options;
  uint64_t at_most_ns = 7;
  size_t length = 7, taken = 7;
  int descriptor = 7;

  EXPECT(beeline_domain_open("default", NULL, NULL), BEELINE_INVALID);
  EXPECT_SAID("beeline_domain_open: domain is NULL");
  EXPECT(beeline_domain_open("UPPER", NULL, &no_domain), BEELINE_REFUSED);
  EXPECT(beeline_domain_open_foreign("UPPER", NULL, 1, &no_domain), BEELINE_REFUSED);
  EXPECT(beeline_domain_close(&no_domain), BEELINE_OK);
  EXPECT(beeline_domain_close(NULL), BEELINE_OK);
  EXPECT(beeline_window_receiver_offer(NULL, "x", NULL, &no_receiver), BEELINE_INVALID);
  EXPECT(no_receiver == NULL, 1);
  EXPECT(beeline_window_receiver_offer(domain, NULL, NULL, &no_receiver), BEELINE_INVALID);
  EXPECT(beeline_window_receiver_offer(domain, "x", NULL, NULL), BEELINE_INVALID);
  EXPECT(beeline_window_receiver_offer(domain, "not a name", NULL, &no_receiver), BEELINE_REFUSED);
  EXPECT_SAID("begin with a letter or a digit");
  EXPECT(beeline_window_receiver_offer(domain, "misuse", NULL, &no_receiver), BEELINE_REFUSED);
  EXPECT_SAID("offers it already");
  receiver_options.lines = 3;
  EXPECT(beeline_window_receiver_offer(domain, "x", &receiver_options, &no_receiver), BEELINE_INVALID);
  EXPECT_SAID("3");
  receiver_options.lines = 0;
  receiver_options.flags = 4;
  EXPECT(beeline_window_receiver_offer(domain, "x", &receiver_options, &no_receiver), BEELINE_INVALID);
  EXPECT_SAID("options.flags = 0x4");
  receiver_options.flags = 0;
  receiver_options.wait = 2;
  EXPECT(beeline_window_receiver_offer(domain, "x", &receiver_options, &no_receiver), BEELINE_INVALID);
  receiver_options.wait = 0;
  receiver_options.reserved = 1;
  EXPECT(beeline_window_receiver_offer(domain, "x", &receiver_options, &no_receiver), BEELINE_INVALID);
  receiver_options.reserved = 0;
  receiver_options.tuning = "prefetch=write:32,group=8";
  EXPECT(beeline_window_receiver_offer(domain, "x", &receiver_options, &no_receiver), BEELINE_INVALID);
  EXPECT_SAID("options.tuning");
  receiver_options.tuning = NULL;
  receiver_options.allowed_uid_count = 1;
  EXPECT(beeline_window_receiver_offer(domain, "x", &receiver_options, &no_receiver), BEELINE_INVALID);
  receiver_options.size = 3;
  EXPECT(beeline_window_receiver_offer(domain, "x", &receiver_options, &no_receiver), BEELINE_INVALID);
  options.connect_timeout_ns = 1;
  EXPECT(beeline_window_sender_connect(NULL, "x", &options, &no_sender), BEELINE_INVALID);
  EXPECT(no_sender == NULL, 1);
  EXPECT(beeline_window_sender_connect(domain, "nobody", &options, &no_sender), BEELINE_REFUSED);
  EXPECT_SAID("nobody");
  EXPECT(beeline_window_sender_connect(domain, "misuse", &options, &no_sender), BEELINE_REFUSED);
  options.traffic = 2;
  EXPECT(beeline_window_sender_connect(domain, "misuse", &options, &no_sender), BEELINE_INVALID);
  EXPECT_SAID("options.traffic = 2");
  options.traffic = BEELINE_WINDOW_STREAM;
  options.store_kernel = "quick";
  EXPECT(beeline_window_sender_connect(domain, "misuse", &options, &no_sender), BEELINE_INVALID);
  EXPECT_SAID("quick");
  options.store_kernel = NULL;
  options.flags = 0x80000000u;
  EXPECT(beeline_window_sender_connect(domain, "misuse", &options, &no_sender), BEELINE_INVALID);
  options.flags = 0;
  options.fences = BEELINE_WINDOW_FENCE_PER_LINE + 1;
  EXPECT(beeline_window_sender_connect(domain, "misuse", &options, &no_sender), BEELINE_INVALID);
  EXPECT_SAID("options.fences = 4");

  EXPECT(beeline_window_poll(NULL, &message, &length), BEELINE_INVALID);
  EXPECT(message == NULL && length == 0, 1);
  EXPECT(beeline_window_poll(receiver, NULL, &length), BEELINE_INVALID);
  EXPECT_SAID("message is NULL");
  EXPECT(beeline_window_drain(NULL, 1, ignore, NULL, &taken), BEELINE_INVALID);
  EXPECT(taken, 0);
  EXPECT(beeline_window_drain(receiver, 1, NULL, NULL, NULL), BEELINE_INVALID);
  EXPECT_SAID("each is NULL");
  EXPECT(beeline_window_drain(receiver, 0, ignore, NULL, NULL), BEELINE_INVALID);
  EXPECT(beeline_window_drain_into(NULL, NULL, 0, NULL, 1, &taken), BEELINE_INVALID);
  EXPECT(beeline_window_wait(NULL, 0), BEELINE_INVALID);
  EXPECT(beeline_window_receiver_sender(NULL), BEELINE_INVALID);
  EXPECT(beeline_window_receiver_release(NULL), BEELINE_INVALID);
  EXPECT(beeline_window_receiver_close(NULL), BEELINE_OK);
  EXPECT(beeline_window_receiver_close(&no_receiver), BEELINE_OK);
  EXPECT(beeline_window_receiver_descriptor(NULL, &descriptor), BEELINE_INVALID);
  EXPECT(descriptor, -1);
  EXPECT(beeline_window_receiver_arm(NULL, &at_most_ns), BEELINE_INVALID);
  EXPECT(at_most_ns, 0);
  EXPECT(beeline_window_receiver_disarm(NULL), BEELINE_INVALID);
  EXPECT(beeline_window_message_length(NULL), 0);
  EXPECT_SAID("message is NULL");
  EXPECT(beeline_window_message_word(NULL, 0), 0);
  EXPECT(beeline_window_message_copy(NULL, 0, NULL, 0), 0);
  EXPECT(beeline_window_try_send(NULL, NULL, 0), BEELINE_INVALID);
  EXPECT(beeline_window_send(NULL, NULL, 0, 0), BEELINE_INVALID);
  EXPECT(beeline_window_try_send_all(NULL, NULL, 0, &taken), BEELINE_INVALID);
  EXPECT(beeline_window_send_all(NULL, NULL, 0, 0, NULL), BEELINE_INVALID);
  EXPECT(beeline_window_wait_for_room(NULL, 0, 0), BEELINE_INVALID);
  EXPECT(beeline_window_flush(NULL, 0), BEELINE_INVALID);
  EXPECT(beeline_window_reserve(NULL, 0, 0), BEELINE_INVALID);
  EXPECT(beeline_window_batch(NULL, 0, 0), BEELINE_INVALID);
  EXPECT(beeline_window_commit(NULL), BEELINE_INVALID);
  EXPECT(beeline_window_sender_max_length(NULL), 0);
  EXPECT(beeline_window_sender_receiver(NULL), BEELINE_INVALID);
  EXPECT(beeline_window_sender_release(NULL), BEELINE_INVALID);
  EXPECT(beeline_window_sender_close(NULL), BEELINE_OK);
  EXPECT(strcmp(beeline_status_text(BEELINE_NO_SPACE), beeline_status_text(12345)) != 0, 1);
}

/* Handles of another kind, and addresses of something else. */
static void no_handles(beeline_domain *domain) {
  unsigned char bytes[64];
  beeline_window_receiver *of_a_sender = (beeline_window_receiver *)sender;

  memset(bytes, 0x2d, sizeof bytes);
  EXPECT(beeline_window_wait(of_a_sender, 0), BEELINE_INVALID);
  EXPECT(beeline_window_receiver_close(&of_a_sender), BEELINE_INVALID);
  EXPECT_SAID("of another kind");
  EXPECT(of_a_sender != NULL, 1);
  EXPECT(beeline_window_try_send((beeline_window_sender *)receiver, "x", 1), BEELINE_INVALID);
  EXPECT(beeline_window_try_send((beeline_window_sender *)domain, "x", 1), BEELINE_INVALID);
  EXPECT(beeline_window_message_length((beeline_window_message *)bytes), 0);
  EXPECT(beeline_window_message_word((beeline_window_message *)(bytes + 1), 0), 0);
  EXPECT(beeline_rpc_request_length((beeline_rpc_request *)kept), 0);
}

static void lengths(void) {
  static unsigned char bytes[LINES * 64];
  size_t sent = 7, most = beeline_window_sender_max_length(sender);
  beeline_window_bytes messages[3] = {{"one", 3}, {NULL, 0}, {NULL, 1}};
  struct iovec vectors[2];

  EXPECT(most > 0 && most < sizeof bytes, 1);
  EXPECT(beeline_window_try_send(sender, NULL, 1), BEELINE_INVALID);
  EXPECT_SAID("message is NULL, with a length of 1 bytes");
  EXPECT(beeline_window_try_send(sender, bytes, SIZE_MAX), BEELINE_INVALID);
  EXPECT(beeline_window_try_send(sender, bytes, most + 1), BEELINE_TOO_LONG);
  EXPECT_SAID("offer a window of more lines");
  EXPECT(beeline_window_send(sender, bytes, most + 1, BEELINE_NEVER), BEELINE_TOO_LONG);
  EXPECT(beeline_window_wait_for_room(sender, most + 1, BEELINE_NEVER), BEELINE_TOO_LONG);
  EXPECT(beeline_window_reserve(sender, SIZE_MAX, BEELINE_NEVER), BEELINE_TOO_LONG);
  EXPECT(beeline_window_batch(sender, SIZE_MAX, BEELINE_NEVER), BEELINE_TOO_LONG);
  /* None is sent where one is wrong. */
  EXPECT(beeline_window_try_send_all(sender, messages, 3, &sent), BEELINE_INVALID);
  EXPECT_SAID("messages[2]");
  EXPECT(sent, 0);
  EXPECT(beeline_window_try_send_all(sender, NULL, 1, &sent), BEELINE_INVALID);
  EXPECT(beeline_window_try_send_all(sender, messages, SIZE_MAX, &sent), BEELINE_INVALID);
  EXPECT(beeline_window_try_send_all(sender, messages, 1, NULL), BEELINE_INVALID);
  EXPECT(beeline_window_flush(sender, 0), BEELINE_OK);
  /* What is too long stops those behind it, and says so when it is the first. */
  messages[1].start = bytes;
  messages[1].length = most + 1;
  messages[2].length = 0;
  EXPECT(beeline_window_try_send_all(sender, messages, 3, &sent), BEELINE_OK);
  EXPECT(sent, 1);
  EXPECT(beeline_window_try_send_all(sender, messages + 1, 2, &sent), BEELINE_TOO_LONG);
  EXPECT(sent, 0);
  EXPECT(beeline_window_send_all(sender, messages, 3, BEELINE_NEVER, &sent), BEELINE_TOO_LONG);
  EXPECT(sent, 1);
  EXPECT(beeline_window_try_send_all(sender, NULL, 0, &sent), BEELINE_OK);
  vectors[0].iov_base = bytes;
  vectors[0].iov_len = 2;
  vectors[1].iov_base = bytes;
  vectors[1].iov_len = 1;
  EXPECT(beeline_window_send_all(sender, (const beeline_window_bytes *)vectors, 2, 0, NULL), BEELINE_OK);
  sent = 0;
  EXPECT(beeline_window_drain(receiver, 100, count, &sent, NULL), BEELINE_OK);
  EXPECT(sent, 3 + 3 + 2 + 1);
  EXPECT(beeline_window_drain(receiver, 100, count, &sent, NULL), BEELINE_EMPTY);
}

/* A full window is no error: nothing is sent, now or within the time, and the count says how much was. */
static void full_window(void) {
  static const uint64_t MOMENT_NS = 1000000;
  beeline_window_bytes messages[LINES];
  size_t sent = 7, taken = 7, bytes = 0;

  for (size_t at = 0; at < LINES; at++) {
    messages[at].start = "m";
    messages[at].length = 1;
  }
  EXPECT(beeline_window_try_send_all(sender, messages, LINES - 1, &sent), BEELINE_OK);
  EXPECT(sent, LINES - 1);
  EXPECT(beeline_window_flush(sender, MOMENT_NS), BEELINE_FULL);
  EXPECT(beeline_window_wait_for_room(sender, 1, 0), BEELINE_OK);
  EXPECT(beeline_window_wait_for_room(sender, 100, MOMENT_NS), BEELINE_FULL);
  EXPECT(beeline_window_reserve(sender, 100, MOMENT_NS), BEELINE_FULL);
  EXPECT(beeline_window_batch(sender, 100, 0), BEELINE_FULL);
  EXPECT(beeline_window_try_send_all(sender, messages, 2, &sent), BEELINE_OK);
  EXPECT(sent, 1);
  EXPECT(beeline_window_try_send_all(sender, messages, 2, &sent), BEELINE_FULL);
  EXPECT(sent, 0);
  EXPECT(beeline_window_try_send(sender, "m", 1), BEELINE_FULL);
  EXPECT(beeline_window_send(sender, "m", 1, MOMENT_NS), BEELINE_FULL);
  EXPECT(beeline_window_send_all(sender, messages, 2, MOMENT_NS, &sent), BEELINE_FULL);
  EXPECT(sent, 0);
  EXPECT(beeline_window_wait_for_room(sender, 1, MOMENT_NS), BEELINE_FULL);
  /* The receiver tells of what it has taken when it looks for more. */
  EXPECT(beeline_window_drain(receiver, LINES, count, &bytes, &taken), BEELINE_OK);
  EXPECT(taken, LINES);
  EXPECT(beeline_window_drain(receiver, LINES, count, &bytes, &taken), BEELINE_EMPTY);
  EXPECT(beeline_window_send_all(sender, messages, LINES, 0, NULL), BEELINE_OK);
  EXPECT(beeline_window_send_all(sender, messages, 3, MOMENT_NS, &sent), BEELINE_FULL);
  EXPECT(beeline_window_drain(receiver, 2 * LINES, count, &bytes, &taken), BEELINE_OK);
  EXPECT(taken, LINES);
  EXPECT(bytes, 2 * LINES);
  EXPECT(beeline_window_drain(receiver, LINES, count, &bytes, &taken), BEELINE_EMPTY);
  EXPECT(beeline_window_flush(sender, WATCHDOG_NS), BEELINE_OK);
}

static void opened(void) {
  unsigned char bytes[8] = {0};
  size_t sent = 0;
  beeline_window_message *message;

  EXPECT(beeline_window_write(sender, "x", 1), BEELINE_NOT_OPEN);
  EXPECT(beeline_window_push(sender, "x", 1), BEELINE_NOT_OPEN);
  EXPECT(beeline_window_commit(sender), BEELINE_NOT_OPEN);
  EXPECT(beeline_window_discard(sender), BEELINE_NOT_OPEN);
  EXPECT_SAID("begin one first");
  EXPECT(beeline_window_reserve(sender, 10, 0), BEELINE_OK);
  EXPECT(beeline_window_push(sender, "x", 1), BEELINE_NOT_OPEN);
  EXPECT_SAID("not a batch");
  EXPECT(beeline_window_write(sender, "12345678", 8), BEELINE_OK);
  EXPECT(beeline_window_write(sender, "123456789", 9), BEELINE_INVALID);
  EXPECT(beeline_window_write(sender, NULL, 1), BEELINE_INVALID);
  EXPECT(beeline_window_try_send(sender, "x", 1), BEELINE_OPEN);
  EXPECT_SAID("commit or discard it first");
  EXPECT(beeline_window_send(sender, "x", 1, BEELINE_NEVER), BEELINE_OPEN);
  EXPECT(beeline_window_try_send_all(sender, NULL, 0, &sent), BEELINE_OPEN);
  EXPECT(beeline_window_send_all(sender, NULL, 0, 0, NULL), BEELINE_OPEN);
  EXPECT(beeline_window_wait_for_room(sender, 1, 0), BEELINE_OPEN);
  EXPECT(beeline_window_flush(sender, 0), BEELINE_OPEN);
  EXPECT(beeline_window_reserve(sender, 1, 0), BEELINE_OPEN);
  EXPECT(beeline_window_batch(sender, 1, 0), BEELINE_OPEN);
  EXPECT(beeline_window_sender_receiver(sender), BEELINE_OPEN);
  EXPECT(beeline_window_discard(sender), BEELINE_OK);
  EXPECT(beeline_window_batch(sender, 16, 0), BEELINE_OK);
  EXPECT(beeline_window_write(sender, "x", 1), BEELINE_NOT_OPEN);
  EXPECT_SAID("not a reservation");
  EXPECT(beeline_window_push(sender, "first", 5), BEELINE_OK);
  EXPECT(beeline_window_push(sender, "a second that fits no more", 26), BEELINE_TOO_LONG);
  EXPECT(beeline_window_push(sender, "ninebytes", 9), BEELINE_FULL);
  EXPECT(beeline_window_commit(sender), BEELINE_OK);
  EXPECT(beeline_window_commit(sender), BEELINE_NOT_OPEN);
  /* What was discarded left no trace. */
  EXPECT(beeline_window_poll(receiver, &message, NULL), BEELINE_OK);
  EXPECT(beeline_window_message_copy(message, 0, bytes, sizeof bytes), 5);
  EXPECT(memcmp(bytes, "first", 5), 0);
  EXPECT(beeline_window_poll(receiver, &message, NULL), BEELINE_EMPTY);
  EXPECT(message == NULL, 1);
}

static void *use_message_elsewhere(void *message) {
  EXPECT(beeline_window_message_length((beeline_window_message *)message), 0);
  EXPECT_SAID("another thread");
  EXPECT(beeline_window_message_word((beeline_window_message *)message, 0), 0);
  EXPECT(beeline_window_message_copy((beeline_window_message *)message, 0, NULL, 0), 0);
  EXPECT(beeline_window_drain(receiver, 1, ignore, NULL, NULL), BEELINE_WRONG_THREAD);
  EXPECT(beeline_window_receiver_close(&receiver), BEELINE_WRONG_THREAD);
  EXPECT(receiver != NULL, 1);
  EXPECT(beeline_window_try_send(sender, "x", 1), BEELINE_WRONG_THREAD);
  EXPECT(beeline_window_sender_close(&sender), BEELINE_WRONG_THREAD);
  return NULL;
}

/* What a callback does with the receiver that called it is refused; others are there for it. */
static void reenter(void *context, beeline_window_message *message, size_t length) {
  beeline_window_message *another;
  beeline_window_span span;
  uint64_t at_most_ns = 7;
  size_t taken = 7;
  int descriptor = 7;

  EXPECT(beeline_window_poll(receiver, &another, NULL), BEELINE_BUSY);
  EXPECT(another == NULL, 1);
  EXPECT(beeline_window_drain(receiver, 1, reenter, context, &taken), BEELINE_BUSY);
  EXPECT_SAID("further up in this thread");
  EXPECT(beeline_window_drain_into(receiver, NULL, 0, &span, 1, &taken), BEELINE_BUSY);
  EXPECT(beeline_window_wait(receiver, BEELINE_NEVER), BEELINE_BUSY);
  EXPECT(beeline_window_receiver_sender(receiver), BEELINE_BUSY);
  EXPECT(beeline_window_receiver_release(receiver), BEELINE_BUSY);
  EXPECT(beeline_window_receiver_descriptor(receiver, &descriptor), BEELINE_BUSY);
  EXPECT(beeline_window_receiver_arm(receiver, &at_most_ns), BEELINE_BUSY);
  EXPECT(beeline_window_receiver_disarm(receiver), BEELINE_BUSY);
  EXPECT(beeline_window_receiver_close(&receiver), BEELINE_BUSY);
  EXPECT(receiver != NULL, 1);
  in_thread(use_message_elsewhere, message);
  EXPECT(beeline_window_message_length(message), length);
  EXPECT(beeline_window_message_word(message, 0), length == 0 ? 0 : 'a' + *(size_t *)context);
  EXPECT(beeline_window_try_send(other_sender, &length, sizeof length), BEELINE_OK);
  EXPECT(beeline_window_poll(other_receiver, &another, &taken), BEELINE_OK);
  EXPECT(beeline_window_message_word(another, 0), length);
  kept = message;
  *(size_t *)context += 1;
}

static void callbacks(void) {
  size_t times = 0, taken = 7;

  EXPECT(beeline_window_send(sender, "a", 1, 0), BEELINE_OK);
  EXPECT(beeline_window_send(sender, "b", 1, 0), BEELINE_OK);
  EXPECT(beeline_window_send(sender, "c", 1, 0), BEELINE_OK);
  /* The first as a wait has found it, the others as they lie in the window. */
  EXPECT(beeline_window_wait(receiver, WATCHDOG_NS), BEELINE_OK);
  EXPECT(beeline_window_drain(receiver, 2, reenter, &times, &taken), BEELINE_OK);
  EXPECT(times, 2);
  EXPECT(taken, 2);
  /* Kept beyond its callback: it finds nothing, and harms nothing. */
  EXPECT(beeline_window_message_length(kept), 0);
  EXPECT_SAID("the callback has returned");
  /* One that left the window before its callback. */
  EXPECT(beeline_window_wait(receiver, WATCHDOG_NS), BEELINE_OK);
  EXPECT(beeline_window_receiver_sender(receiver), BEELINE_OK);
  EXPECT(beeline_window_drain(receiver, 100, reenter, &times, &taken), BEELINE_OK);
  EXPECT(times, 3);
  EXPECT(beeline_window_drain(receiver, 100, reenter, &times, &taken), BEELINE_EMPTY);
  EXPECT(taken, 0);
}

static void *use_and_end(void *unused) {
  (void)unused;
  EXPECT(beeline_window_wait(receiver, 0), BEELINE_EMPTY);
  EXPECT(beeline_window_try_send(sender, "of a thread that has ended", 26), BEELINE_OK);
  EXPECT(beeline_window_wait(receiver, 0), BEELINE_OK);
  return NULL;
}

/* Nobody's, then a thread's until it ends, then ours; with what the thread's wait has found. */
static void threads(void) {
  size_t bytes = 0;

  EXPECT(beeline_window_receiver_release(receiver), BEELINE_OK);
  EXPECT(beeline_window_sender_release(sender), BEELINE_OK);
  in_thread(use_and_end, NULL);
  EXPECT(beeline_window_drain(receiver, 1, count, &bytes, NULL), BEELINE_OK);
  EXPECT(bytes, 26);
}

static void closed(void) {
  beeline_window_receiver *copy = receiver;
  beeline_window_sender *sender_copy = other_sender;
  beeline_window_message *message;

  /* Closed while it holds a message and is armed. */
  EXPECT(beeline_window_try_send(other_sender, "held", 4), BEELINE_OK);
  EXPECT(beeline_window_poll(other_receiver, &message, NULL), BEELINE_OK);
  EXPECT(beeline_window_receiver_close(&other_receiver), BEELINE_OK);
  EXPECT(beeline_window_message_length(message), 0);
  EXPECT_SAID("closed already");
  EXPECT(beeline_window_reserve(other_sender, 4, 0), BEELINE_OK);
  EXPECT(beeline_window_sender_close(&other_sender), BEELINE_OK);
  EXPECT(beeline_window_commit(sender_copy), BEELINE_INVALID);
  EXPECT(beeline_window_sender_close(&sender_copy), BEELINE_INVALID);
  EXPECT(beeline_window_receiver_close(&receiver), BEELINE_OK);
  EXPECT(receiver == NULL, 1);
  EXPECT(beeline_window_wait(copy, BEELINE_NEVER), BEELINE_INVALID);
  EXPECT(beeline_window_receiver_close(&copy), BEELINE_INVALID);
}

/* However a sender fences and a receiver looks, twice the window goes through it. */
static void tuned(beeline_domain *domain) {
  static const char *const tunings[] = {NULL, "prefetch=none,group=1,credits=2", "credits=32,group=8,prefetch=read:8",
                                        "prefetch=write:64,group=1,credits=16"};
  beeline_window_receiver_options receiver_options = BEELINE_WINDOW_RECEIVER_OPTIONS_INIT;
  beeline_window_sender_options options = BEELINE_WINDOW_SENDER_OPTIONS_INIT;
  unsigned char message[150], copy[150];
  beeline_window_span span;
  size_t taken, length;

  receiver_options.lines = LINES;
  for (uint32_t fences = BEELINE_WINDOW_FENCE_NONE; fences <= BEELINE_WINDOW_FENCE_PER_LINE; fences++) {
    beeline_window_receiver *in = NULL;
    beeline_window_sender *out = NULL;

    receiver_options.tuning = tunings[fences];
    options.fences = fences;
    EXPECT(beeline_window_receiver_offer(domain, "tuned", &receiver_options, &in), BEELINE_OK);
    EXPECT(beeline_window_sender_connect(domain, "tuned", &options, &out), BEELINE_OK);
    for (int number = 0; number < 2 * LINES; number++) {
      length = 1 + (size_t)number % sizeof message;
      memset(message, number + (int)fences, length);
      EXPECT(beeline_window_try_send(out, message, length), BEELINE_OK);
      EXPECT(beeline_window_wait(in, WATCHDOG_NS), BEELINE_OK);
      EXPECT(beeline_window_drain_into(in, copy, sizeof copy, &span, 1, &taken), BEELINE_OK);
      EXPECT(taken == 1 && span.length == length && memcmp(message, copy, length) == 0, 1);
    }
    EXPECT(beeline_window_sender_close(&out), BEELINE_OK);
    EXPECT(beeline_window_receiver_close(&in), BEELINE_OK);
  }
}

int main(int argc, char **argv) {
  beeline_window_receiver_options options = BEELINE_WINDOW_RECEIVER_OPTIONS_INIT;
  beeline_rpc_domain *domain;
  beeline_domain *other;

  if (argc < 2)
    return EXIT_FAILURE;
  EXPECT(beeline_last_error()[0], 0);
  /* A domain of one header is a domain of the other, and may be closed before what was made in it. */
  EXPECT(beeline_rpc_domain_open("default", argv[1], &domain), BEELINE_OK);
  EXPECT(beeline_domain_open("default", argv[1], &other), BEELINE_OK);
  options.lines = LINES;
  EXPECT(beeline_window_receiver_offer(domain, "misuse", &options, &receiver), BEELINE_OK);
  EXPECT(beeline_window_receiver_offer(other, "other", NULL, &other_receiver), BEELINE_OK);
  EXPECT(beeline_window_receiver_sender(receiver), BEELINE_EMPTY);
  EXPECT(beeline_window_sender_connect(other, "misuse", NULL, &sender), BEELINE_OK);
  EXPECT(beeline_window_sender_connect(other, "other", NULL, &other_sender), BEELINE_OK);
  EXPECT(beeline_rpc_domain_close(&other), BEELINE_OK);
  EXPECT(beeline_window_wait(receiver, 0), BEELINE_EMPTY);
  EXPECT(beeline_window_receiver_sender(receiver), BEELINE_OK);
  nothing_given(domain);
  tuned(domain);
  lengths();
  full_window();
  opened();
  callbacks();
  no_handles(domain);
  threads();
  closed();
  EXPECT(beeline_domain_close(&domain), BEELINE_OK);
  printf("%d failures\n", failures);
  return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

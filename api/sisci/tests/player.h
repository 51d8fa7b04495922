/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/*
 * A program that makes the calls that it reads, a line each, and answers each by a line: the code, what was returned, and what was put
 * where parameters point. The functions and constants behind it are generated from the table of facts (c/player.rs).
 *
 *     SCIOpen sd 0                       a handle has a name from the call on that makes it; NULL, wild and 0x... are no handles
 *     SCIWaitForLocalSegmentEvent s out out 100 0
 *     SCICreateSegment sd s 7 4096 callback s USE_CALLBACK
 *     SCIMemCpy q buf+16 m 0 64 BLOCK_READ
 *
 * A line that begins with `-` passes NULL for the code. `thread T LINE` makes a call in a thread, and answers once it waits there
 * or has ended; `join T` gives its answer.
 */
#ifndef PLAYER_H
#define PLAYER_H

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "scilib.h"
#include "sisci_api.h"

#define WORDS 24
#define TEXT 512
#define NAMES 2048
#define EVENTS 64
#define ALLOCATIONS 8
#define PAGES 65536
#define BUFFER 65536
/* A call that takes longer never returns: the player is ended then, and its test fails and says which call it was. */
#define LONGEST_SECONDS 120

/* A call that is being made. */
struct call {
  char line[TEXT];
  char *words[WORDS];
  int count, next;
  /* Where the code goes, unless NULL is passed. */
  sci_error_t error;
  int no_error;
  /* Numbers that parameters point at. */
  unsigned int numbers[4];
  size_t size;
  unsigned long long long_number;
  dis_nodeId_list_t nodes;
  sci_ioaddr_t address;
  int numbers_used, size_used;
  char answer[TEXT];
};

struct entry {
  const char *name;
  void (*make)(struct call *call);
};

struct constant {
  const char *name;
  unsigned int value;
};

/* Generated. */
extern const struct entry entries[];
extern const struct constant constants[];
extern const struct constant codes[];

static unsigned char buffer[BUFFER];
static dis_dma_vec_t vector[512];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static char names[NAMES][32];
static void *handles[NAMES];
static char events[EVENTS][TEXT];
static int event_count;
static volatile int callback_action = SCI_CALLBACK_CONTINUE;

static void fail(const char *what, const char *word)
{
  printf("!%s: %s\n", what, word);
  exit(3);
}

static const char *word(struct call *call)
{
  if (call->next >= call->count)
    fail("too few words", call->words[0]);
  return call->words[call->next++];
}

/* The place of a handle's name; a new name gets one. */
static void **slot(const char *name)
{
  int at;

  pthread_mutex_lock(&lock);
  for (at = 0; at < NAMES && names[at][0] && strcmp(names[at], name) != 0; at++)
    ;
  if (at == NAMES)
    fail("too many names", name);
  snprintf(names[at], sizeof(names[at]), "%s", name);
  pthread_mutex_unlock(&lock);
  return &handles[at];
}

static void *handle(struct call *call)
{
  const char *name = word(call);

  if (strcmp(name, "NULL") == 0)
    return NULL;
  if (strcmp(name, "wild") == 0)
    return (void *)(uintptr_t)0x7fff12345678u;
  if (strncmp(name, "0x", 2) == 0)
    return (void *)(uintptr_t)strtoull(name, NULL, 16);
  return *slot(name);
}

static void *place(struct call *call)
{
  const char *name = word(call);

  return strcmp(name, "NULL") == 0 ? NULL : (void *)slot(name);
}

static int constant(const char *prefix, const char *name, size_t length, unsigned int *value)
{
  char whole[TEXT];
  const struct constant *at;

  snprintf(whole, sizeof(whole), "%s%.*s", prefix, (int)length, name);
  for (at = constants; at->name; at++)
    if (strcmp(at->name, whole) == 0)
      return *value = at->value, 1;
  return 0;
}

/* A number, a constant, a flag without SCI_FLAG_ or SCIL_FLAG_, or several of them with | between. */
static unsigned long long number(struct call *call)
{
  const char *at = word(call);
  unsigned long long sum = 0;

  for (;;) {
    size_t length = strcspn(at, "|");
    unsigned int value = 0;
    char *end;

    if (at[0] >= '0' && at[0] <= '9') {
      sum |= strtoull(at, &end, 0);
      if (end != at + length)
        fail("no number", at);
    } else if (constant("SCI_FLAG_", at, length, &value) || constant("SCI_", at, length, &value) ||
               constant("SCIL_FLAG_", at, length, &value) ||
               constant("", at, length, &value)) {
      sum |= value;
    } else {
      fail("no constant", at);
    }
    if (at[length] == '\0')
      return sum;
    at += length + 1;
  }
}

/* `out`, `out:7` with what is there before, or NULL. */
static unsigned int *out_number(struct call *call)
{
  const char *text = word(call);

  if (strcmp(text, "NULL") == 0)
    return NULL;
  if (strncmp(text, "out", 3) != 0)
    fail("neither out nor NULL", text);
  call->numbers[call->numbers_used] = text[3] == ':' ? (unsigned int)strtoul(text + 4, NULL, 0) : 0x5a5a5a5au;
  return &call->numbers[call->numbers_used++];
}

static size_t *out_size(struct call *call)
{
  if (strcmp(word(call), "NULL") == 0)
    return NULL;
  call->size_used = 1;
  return &call->size;
}

static void *or_null(struct call *call, void *there)
{
  return strcmp(word(call), "NULL") == 0 ? NULL : there;
}

/* Memory that a case has allocated by name (`allocate`); `pages` is there from the start. */
static struct {
  char name[32];
  char *start;
} allocations[ALLOCATIONS];

static char *allocation(const char *name)
{
  int at;

  for (at = 0; at < ALLOCATIONS; at++)
    if (strcmp(allocations[at].name, name) == 0)
      return allocations[at].start;
  fail("no allocation", name);
  return NULL;
}

/* `buf`, `buf+7`, `@map`, `@map+7`, `$allocation`, `$allocation+7`, NULL or 0x... */
static void *memory(struct call *call)
{
  const char *text = word(call);
  char name[TEXT];
  size_t length = strcspn(text, "+");
  size_t offset = text[length] ? strtoull(text + length + 1, NULL, 0) : 0;
  char *start;

  if (strcmp(text, "NULL") == 0)
    return NULL;
  if (strncmp(text, "0x", 2) == 0)
    return (void *)(uintptr_t)strtoull(text, NULL, 16);
  snprintf(name, sizeof(name), "%.*s", (int)length, text);
  if (strcmp(name, "buf") == 0)
    return buffer + offset;
  if (name[0] == '$')
    return allocation(name + 1) + offset;
  if (name[0] != '@')
    fail("no memory", text);
  start = (char *)(uintptr_t)SCIGetMapPointer((sci_map_t)*slot(name + 1));
  if (!start)
    fail("no map", text);
  return start + offset;
}

static const char *name_of_code(sci_error_t code)
{
  const struct constant *at;

  for (at = codes; at->name; at++)
    if (at->value == code)
      return at->name + strlen("SCI_ERR_");
  return "no code";
}

static void add(struct call *call, const char *text)
{
  size_t length = strlen(call->answer);

  snprintf(call->answer + length, sizeof(call->answer) - length, "%s%s", length ? " " : "", text);
}

static void add_number(struct call *call, unsigned long long value)
{
  char text[32];

  snprintf(text, sizeof(text), "%llu", value);
  add(call, text);
}

static void add_pointer(struct call *call, const volatile void *pointer)
{
  add(call, pointer ? "address" : "NULL");
}

/* The code, then what was put where parameters point. */
static void finish(struct call *call)
{
  int at;

  for (at = 0; at < call->numbers_used; at++)
    add_number(call, call->numbers[at]);
  if (call->size_used)
    add_number(call, call->size);
}

static sci_error_t *code(struct call *call)
{
  call->error = 0xdeadu;
  return call->no_error ? NULL : &call->error;
}

static void tell(const char *label, const char *what, const char *more)
{
  pthread_mutex_lock(&lock);
  if (event_count < EVENTS)
    snprintf(events[event_count++], TEXT, "%s:%s%s%s", label ? label : "", what, *more ? "," : "", more);
  pthread_mutex_unlock(&lock);
}

static const char *const reasons[] = { "0", "CONNECT", "DISCONNECT", "NOT_OPERATIONAL", "OPERATIONAL", "LOST" };

static sci_callback_action_t on_local(void *arg, sci_local_segment_t segment, sci_segment_cb_reason_t reason,
                                      unsigned int node, unsigned int adapter, sci_error_t error)
{
  char more[64];

  snprintf(more, sizeof(more), "%u,%u,%s", node, adapter, name_of_code(error));
  tell((const char *)arg, segment ? reasons[reason] : "no handle", more);
  return (sci_callback_action_t)callback_action;
}

static sci_callback_action_t on_remote(void *arg, sci_remote_segment_t segment, sci_segment_cb_reason_t reason,
                                       sci_error_t error)
{
  tell((const char *)arg, segment ? reasons[reason] : "no handle", name_of_code(error));
  return (sci_callback_action_t)callback_action;
}

static sci_callback_action_t on_dma(void *arg, sci_dma_queue_t queue, sci_error_t error)
{
  tell((const char *)arg, queue ? "dma" : "no handle", name_of_code(error));
  return (sci_callback_action_t)callback_action;
}

static sci_callback_action_t on_interrupt(void *arg, sci_local_interrupt_t interrupt, sci_error_t error)
{
  tell((const char *)arg, interrupt ? "interrupt" : "no handle", name_of_code(error));
  return (sci_callback_action_t)callback_action;
}

static sci_callback_action_t on_data(void *arg, sci_local_data_interrupt_t interrupt, void *data, unsigned int length,
                                     sci_error_t error)
{
  char more[TEXT / 2];

  snprintf(more, sizeof(more), "%.*s,%s", (int)length, (const char *)data, name_of_code(error));
  tell((const char *)arg, interrupt ? "data" : "no handle", more);
  return (sci_callback_action_t)callback_action;
}

static sci_callback_action_t on_block(void *arg, sci_block_transfer_t block, sci_error_t error)
{
  tell((const char *)arg, block ? "block" : "no handle", name_of_code(error));
  return (sci_callback_action_t)callback_action;
}

/* Whether the next word is `callback`; its label is the word behind it. */
static int has_callback(struct call *call)
{
  const char *text = word(call);

  if (strcmp(text, "callback") != 0 && strcmp(text, "NULL") != 0)
    fail("neither callback nor NULL", text);
  return text[0] == 'c';
}

static void *label(struct call *call)
{
  const char *text = word(call);

  /* Kept for as long as the program runs. */
  return strcmp(text, "NULL") == 0 ? NULL : (void *)strdup(text);
}

#include "player_own.h"

static void read_words(struct call *call, const char *line)
{
  char *rest = NULL, *text;

  memset(call, 0, sizeof(*call));
  snprintf(call->line, sizeof(call->line), "%s", line);
  call->no_error = call->line[0] == '-';
  for (text = strtok_r(call->line + call->no_error, " \n", &rest); text; text = strtok_r(NULL, " \n", &rest)) {
    if (call->count == WORDS)
      fail("too many words", line);
    call->words[call->count++] = text;
  }
  call->next = 1;
}

static void make(struct call *call)
{
  const struct entry *at;

  if (own(call))
    return;
  for (at = entries; at->name; at++)
    if (strcmp(at->name, call->words[0]) == 0) {
      at->make(call);
      if (call->next != call->count)
        fail("too many words", call->words[0]);
      return;
    }
  fail("no such call", call->words[0]);
}

int main(void)
{
  char line[TEXT];
  struct call call;
  static char pages[] = "pages";

  if (posix_memalign((void **)&allocations[0].start, 4096, PAGES))
    fail("no memory", pages);
  memset(allocations[0].start, 0, PAGES);
  memcpy(allocations[0].name, pages, sizeof(pages));
  while (fgets(line, sizeof(line), stdin)) {
    alarm(LONGEST_SECONDS);
    if (!own_line(line)) {
      read_words(&call, line);
      make(&call);
      printf("%s\n", call.answer);
      fflush(stdout);
    }
    alarm(0);
  }
  /* A program that ends without a word of farewell is what the others must cope with. */
  _exit(0);
}

#endif

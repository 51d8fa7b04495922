/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file beeline_segment.h
 * Segments: memory that several processes have mapped, with pointers into it.
 *
 * One process makes memory (beeline_segment_create()) or has it already (a memfd, a file), and hands its descriptor to the others,
 * as with a notification (beeline_notify.h) or over any unix socket. Each maps what it wants of it (beeline_segment_map()): a part,
 * for reading only, at an address of its choice. See examples/segment.c. Build with `pkg-config --cflags --libs beeline`. beeline.h says
 * what holds for every function: codes, handles, ownership. A process has at most 65536 segments mapped by this library.
 *
 * LOSS. Memory that can go away, as that of a file that somebody makes shorter, is refused unless the options say what shall
 * happen (enum beeline_segment_loss): an access to what is gone then ends the process, or is caught.
 *
 * THREADS. Any thread may use a segment at any time. Two that write the same bytes at once leave a mixture. A segment that one
 * thread closes while another one copies stays mapped until the copy is done, and the close returns then.
 *
 * POINTERS. beeline_segment_at() gives the address of bytes. It is good until the segment is closed, and nobody looks whether it
 * is used afterwards. Other processes write this memory at any time: access it by atomic or volatile accesses, and look at nothing
 * twice that is checked. Stores to a segment that is mapped for reading end the process.
 */
#ifndef BEELINE_SEGMENT_H
#define BEELINE_SEGMENT_H

#include "beeline.h"

#ifdef __cplusplus
extern "C" {
#endif

/** Mapped memory. */
typedef struct beeline_segment beeline_segment;

/** What a descriptor is of. */
enum beeline_segment_kind {
  /** Memory: a memfd. */
  BEELINE_SEGMENT_MEMORY = 0,
  /** A file. It can become shorter, so `on_loss` must say what happens then. */
  BEELINE_SEGMENT_FILE = 1
};

/** What a segment is mapped for. */
enum beeline_segment_access {
  BEELINE_SEGMENT_READ_WRITE = 0,
  /** A store ends the process, and nothing can make the mapping writable later. */
  BEELINE_SEGMENT_READ_ONLY = 1
};

/** When pages are brought in. */
enum beeline_segment_pages {
  /** Each at its first access; where there is no memory for it then, that ends the process. */
  BEELINE_SEGMENT_LAZY = 0,
  /** All before the segment is given. */
  BEELINE_SEGMENT_PRESENT = 1
};

/** Whether the mapping is made of huge pages. */
enum beeline_segment_huge_pages {
  /** Ordinary pages; memory of huge pages is refused. */
  BEELINE_SEGMENT_ORDINARY = 0,
  /** Huge pages where they are to be had. */
  BEELINE_SEGMENT_HUGE_WISHED = 1,
  /** Memory of huge pages; other memory is refused. */
  BEELINE_SEGMENT_HUGE_REQUIRED = 2
};

/** What happens when memory goes away under the mapping. */
enum beeline_segment_loss {
  /** Memory that can go away is not mapped. */
  BEELINE_SEGMENT_LOSS_REFUSED = 0,
  /** An access to what is gone ends the process (SIGBUS). */
  BEELINE_SEGMENT_LOSS_FATAL = 1,
  /**
   * What is gone reads as zero and keeps what is stored into it for this process alone, and functions give LOST. The first
   * mapping of this kind has the library handle SIGBUS; a handler that was there is called for what is not the library's. Map it
   * after every other handler of SIGBUS is there, and block SIGBUS in no thread that accesses the segment.
   */
  BEELINE_SEGMENT_LOSS_GUARDED = 2
};

/** How memory is mapped. Begin with BEELINE_SEGMENT_OPTIONS_INIT; 0 is the default. */
typedef struct beeline_segment_options {
  /** sizeof(beeline_segment_options) */
  size_t size;
  /** Where in the memory the segment begins: a multiple of its page, 4096 bytes or what a huge page has. */
  uint64_t offset;
  /** Bytes of the segment. 0: all from the offset on */
  uint64_t length;
  /** Where it is to be mapped: a multiple of the page, never in the place of another mapping. NULL: anywhere */
  void *address;
  /** enum beeline_segment_kind */
  uint32_t kind;
  /** enum beeline_segment_access */
  uint32_t access;
  /** enum beeline_segment_pages */
  uint32_t pages;
  /** enum beeline_segment_huge_pages */
  uint32_t huge_pages;
  /** enum beeline_segment_loss */
  uint32_t on_loss;
  /** 0 */
  uint32_t reserved;
} beeline_segment_options;

#define BEELINE_SEGMENT_OPTIONS_INIT                                                                                   \
  { sizeof(beeline_segment_options), 0, 0, NULL, 0, 0, 0, 0, 0, 0 }

/**
 * Makes zeroed memory whose size nobody can change any more. Nothing of it is in use until it is accessed.
 *
 * @param name       for people only (/proc/<pid>/fd)
 * @param huge_pages 0; or 1: of huge pages that the administrator has reserved, taken at once. Who maps them must accept them
 * @param descriptor where the descriptor is put, which is the caller's to pass on and to close; -1 is put there on failure
 * @return OK; INVALID; REFUSED (no memory, no descriptor, or no huge pages left)
 *
 * Whoever has the descriptor may map it for reading and writing.
 */
int beeline_segment_create(const char *name, size_t length, int huge_pages, int *descriptor);

/**
 * Maps memory, or a part of it.
 *
 * @param descriptor stays the caller's, who may close it afterwards
 * @param options    NULL: all of it, for loads and stores, anywhere, lazily, and only memory that cannot go away
 * @param segment    where the handle is put; NULL is put there on failure
 * @return OK; INVALID (a place, a length or an option that cannot be); REFUSED (the memory is not what is asked for, can go
 *         away, or the kernel refuses)
 */
int beeline_segment_map(int descriptor, const beeline_segment_options *options, beeline_segment **segment);

/**
 * Unmaps a segment. Addresses in it are good no more. Returns when other threads have left its functions.
 * @return OK, INVALID; BUSY (called by what interrupts a function of a segment or a subscription in this thread, as a handler of
 *         a signal does), REFUSED (the kernel refuses membarrier, which it granted before): then it is not closed
 */
int beeline_segment_close(beeline_segment **segment);

/** How many bytes a segment has: what was asked for, not rounded to pages. @return OK, INVALID */
int beeline_segment_length(const beeline_segment *segment, size_t *length);

/**
 * The address of bytes of a segment.
 *
 * @param address where it is put; NULL is put there on failure
 * @return OK; INVALID: the bytes are not all in the segment
 */
int beeline_segment_at(const beeline_segment *segment, size_t offset, size_t length, void **address);

/**
 * Copies bytes into a segment, as fast as memcpy at every size.
 *
 * @param bytes may be NULL if length is 0; not in a segment itself
 * @return OK; LOST: memory of the segment is gone, and what was copied may be; INVALID: the bytes reach outside, or it is mapped for
 *         reading: nothing was copied
 */
int beeline_segment_write(const beeline_segment *segment, size_t offset, const void *bytes, size_t length);

/**
 * Copies bytes out of a segment, each of which is read once.
 *
 * @param memory may be NULL if length is 0; not in a segment itself
 * @return OK; LOST: memory of the segment is gone, and what was copied is worth nothing; INVALID: the bytes reach outside:
 *         nothing was copied
 */
int beeline_segment_read(const beeline_segment *segment, size_t offset, void *memory, size_t length);

/**
 * Whether no access has met memory that was gone; of segments that are BEELINE_SEGMENT_LOSS_GUARDED, and only of what was accessed:
 * ask after the accesses, before what they gave is believed.
 *
 * @return OK; LOST, and so from then on; INVALID
 */
int beeline_segment_is_intact(const beeline_segment *segment);

#ifdef __cplusplus
}
#endif

#endif /* BEELINE_SEGMENT_H */

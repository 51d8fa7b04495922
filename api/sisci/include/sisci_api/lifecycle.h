/* SPDX-License-Identifier: Apache-2.0 OR MIT */
/**
 * @file lifecycle.h
 * The library, and the descriptors that everything else is made with.
 */
#ifndef SISCI_API_LIFECYCLE_H
#define SISCI_API_LIFECYCLE_H

#ifdef __cplusplus
extern "C" {
#endif

#define SCIInitialize _SISCI_EXPANDE_FUNCTION_NAME(SCIInitialize)
#define SCITerminate _SISCI_EXPANDE_FUNCTION_NAME(SCITerminate)
#define SCIOpen _SISCI_EXPANDE_FUNCTION_NAME(SCIOpen)
#define SCIClose _SISCI_EXPANDE_FUNCTION_NAME(SCIClose)
#define SCIGetErrorString _SISCI_EXPANDE_FUNCTION_NAME(SCIGetErrorString)

/**
 * Makes the library ready. A program calls it first; calls after the first do no more than count.
 *
 * Errors: SCI_ERR_SYSTEM (BEELINE_NODE or the configuration; `errno` is EINVAL, or says why the file is not read, and
 * beeline_sisci_last_error() says what is wrong); SCI_ERR_NOSPC. The folder of the domain (BEELINE_ROOT) is looked at by SCIOpen().
 */
void SCIInitialize(unsigned int flags, sci_error_t *error);

/**
 * Undoes one SCIInitialize(); the last one removes what the process has left, as if it had ended.
 * Calls of other threads that wait until they are connected end with SCI_ERR_CANCELLED.
 *
 * A terminated library can be initialized again; handles of before stay invalid.
 */
void SCITerminate(void);

/**
 * Opens a descriptor: the process joins its node with the first one.
 *
 * @param sd where the descriptor is put
 *
 * Flags: SCI_FLAG_THREAD_SAFE, which changes nothing.
 * Errors: SCI_ERR_SYSTEM (the node's folder, its configuration, descriptors; beeline_sisci_last_error() says what, and `errno` is the
 * kernel's number if a file of members without a common kernel is not opened or made, else 0); SCI_ERR_INCONSISTENT_VERSIONS;
 * SCI_ERR_MAX_ENTRIES (also: all parts of such a file are taken).
 */
void SCIOpen(sci_desc_t *sd, unsigned int flags, sci_error_t *error);

/**
 * Closes a descriptor.
 *
 * Errors: SCI_ERR_BUSY while something that was made with it is left; the descriptor stays open then.
 */
void SCIClose(sci_desc_t sd, unsigned int flags, sci_error_t *error);

/**
 * Returns a sentence for a code, in English, that is never freed. A code that is none gives a sentence that says so.
 */
const char *SCIGetErrorString(sci_error_t code);

#ifdef __cplusplus
}
#endif

#endif

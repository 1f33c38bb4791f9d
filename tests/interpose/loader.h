#ifndef TESTS_INTERPOSE_LOADER_H
#define TESTS_INTERPOSE_LOADER_H

/*
 * What the tests of the interposer's lookups have in common. They run with the interposer preloaded and the
 * played libraries to be found (preloaded.sh with FAKE=1).
 */

#include <stdbool.h>

#include "driver/abi.h"

typedef const char *fake_call_function(unsigned long ret_arguments[8]);
typedef CUresult alloc_function(CUdeviceptr *ret_address, size_t bytes);
typedef CUresult proc_address4_function(const char *, void **, int, cuuint64_t);
typedef CUresult proc_address5_function(const char *, void **, int, cuuint64_t,
					CUdriverProcAddressQueryResult *);

/* Opens a library of the folder of played ones; fails the test if it is not there. */
void *loader_open(const char *name, int flags);

/* dlsym that must find something. */
void *loader_find(void *handle, const char *name);

/* The address lies in the interposer. */
bool loader_is_ours(const void *address);

/* The played driver was called last through this entry, with this first argument. */
void loader_called(void *libcuda, const char *name, unsigned long first);

/* An allocation through the entry arrives in the played driver. */
void loader_allocate(void *libcuda, void *entry);

#endif

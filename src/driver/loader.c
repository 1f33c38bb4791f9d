/*
 * Finds the driver's library and fills the table of driver.h from it. Only cuGetProcAddress_v2 and
 * cuDriverGetVersion come from dlsym: for other names dlsym gives the oldest form, whose structures and
 * contexts are not those that we declare.
 */

#include "driver/driver.h"

#include <dlfcn.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fault.h"

#define DEFAULT_LIBRARY "libcuda.so.1"

struct entry {
	const char *name;
	int version;
	bool is_required;
	size_t offset; /* of the member in struct stasis_driver */
};

enum need {
	OPTIONAL,
	REQUIRED,
};

#define ENTRY(entry, version, elf, need)                                                           \
	{#entry, version, (need) == REQUIRED, offsetof(struct stasis_driver, entry)},
static const struct entry entries[] = {STASIS_DRIVER_ENTRIES(ENTRY)};

/* POSIX lets a function's address pass through void *; ISO C has no word for it. */
static void table_set(struct stasis_driver *driver, const struct entry *entry, void *address)
{
	memcpy((char *)driver + entry->offset, &address, sizeof(address));
}

/*
 * True: the driver says that it has no such entry. Drivers differ in how they say so: by the query's
 * status, by NOT_FOUND, by a null pointer, or by INVALID_VALUE for a version newer than themselves.
 */
static bool is_absent(const struct stasis_driver *driver, const struct entry *entry,
		      CUresult result)
{
	if (result == CUDA_ERROR_INVALID_VALUE)
		return driver->cuda_version < entry->version;
	return result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_FOUND;
}

static int missing_fail(const struct stasis_driver *driver, const struct entry *entry,
			struct stasis_error *err)
{
	return stasis_fail(err, STASIS_REFUSED,
			   "the driver '%s' (CUDA %d.%d) has no entry %s of CUDA %d.%d, which is "
			   "needed; install a newer driver",
			   driver->path, driver->cuda_version / 1000,
			   driver->cuda_version % 1000 / 10, entry->name, entry->version / 1000,
			   entry->version % 1000 / 10);
}

static int entry_fill(const struct entry *entry, __typeof__(&cuGetProcAddress_v2) get_proc_address,
		      struct stasis_driver *driver, struct stasis_error *err)
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	void *address = NULL;
	CUresult result = get_proc_address(entry->name, &address, entry->version,
					   CU_GET_PROC_ADDRESS_DEFAULT, &status);

	if (result == CUDA_SUCCESS && status == CU_GET_PROC_ADDRESS_SUCCESS && address) {
		table_set(driver, entry, address);
		return 0;
	}
	if (!is_absent(driver, entry, result))
		return stasis_fail_cuda(err, STASIS_REFUSED, result,
					"ask the driver '%s' for its entry %s at CUDA version %d",
					driver->path, entry->name, entry->version);
	if (entry->is_required)
		return missing_fail(driver, entry, err);
	return 0;
}

int stasis_driver_fill(const char *path, __typeof__(&cuGetProcAddress_v2) get_proc_address,
		       __typeof__(&cuDriverGetVersion) get_version,
		       struct stasis_driver *ret_driver, struct stasis_error *err)
{
	struct stasis_driver driver = {0};
	CUresult result;

	(void)snprintf(driver.path, sizeof(driver.path), "%s", path);
	result = get_version(&driver.cuda_version);
	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result,
					"ask the driver '%s' for its version", path);
	for (size_t i = 0; i < ARRAY_COUNT(entries); i++) {
		if (entry_fill(&entries[i], get_proc_address, &driver, err) != 0)
			return -1;
	}
	*ret_driver = driver;
	return 0;
}

static const char *path_choose(const char *path)
{
	const char *named = secure_getenv("STASIS_LIBCUDA");

	if (path)
		return path;
	return named && *named ? named : DEFAULT_LIBRARY;
}

static int library_open(const char *path, void **ret_library, struct stasis_error *err)
{
	void *library = NULL;
	int fault = stasis_fault_point("driver.dlopen");
	const char *cause;

	if (fault)
		return stasis_fail_code(err, STASIS_REFUSED, fault, "load the CUDA driver '%s'",
					path);
	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (library) {
		*ret_library = library;
		return 0;
	}
	/* NOLINTNEXTLINE(concurrency-mt-unsafe): glibc keeps this text for each thread */
	cause = dlerror();
	return stasis_fail(err, STASIS_REFUSED,
			   "load the CUDA driver '%s': %s; install the NVIDIA driver, or name its "
			   "library in STASIS_LIBCUDA",
			   path, cause ? cause : "no cause given");
}

static int symbol_find(void *library, const char *path, const char *name, void *ret_function,
		       struct stasis_error *err)
{
	void *address = dlsym(library, name);

	if (!address)
		return stasis_fail(err, STASIS_REFUSED,
				   "'%s' has no symbol %s: it is no CUDA driver, or one older than "
				   "CUDA 12.0",
				   path, name);
	memcpy(ret_function, &address, sizeof(address));
	return 0;
}

int stasis_driver_open(const char *path, struct stasis_driver *ret_driver, struct stasis_error *err)
{
	const char *chosen = path_choose(path);
	__typeof__(&cuGetProcAddress_v2) get_proc_address = NULL;
	__typeof__(&cuDriverGetVersion) get_version = NULL;
	void *library = NULL;

	if (strlen(chosen) >= STASIS_DRIVER_PATH_BYTES)
		return stasis_fail(err, STASIS_REFUSED, "the path of the CUDA driver is too long");
	if (library_open(chosen, &library, err) != 0)
		return -1;
	if (symbol_find(library, chosen, "cuGetProcAddress_v2", &get_proc_address, err) != 0)
		return -1;
	if (symbol_find(library, chosen, "cuDriverGetVersion", &get_version, err) != 0)
		return -1;
	return stasis_driver_fill(chosen, get_proc_address, get_version, ret_driver, err);
}

/* What a person does about a cuInit that failed; NULL: nothing better than the result's name. */
static const char *start_advice(CUresult result)
{
	if (result == CUDA_ERROR_NO_DEVICE)
		return "no GPU is visible to this process (CUDA_VISIBLE_DEVICES, /dev/nvidia*)";
	if (result == CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)
		return "library and kernel module are of different versions; reboot after an "
		       "update";
	if (result == CUDA_ERROR_STUB_LIBRARY)
		return "this is the toolkit's stub library, not a driver";
	if (result == CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE)
		return "a forward-compatible library does not serve this GPU";
	return NULL;
}

int stasis_driver_start(const struct stasis_driver *driver, struct stasis_error *err)
{
	CUresult result = driver->cuInit(0);
	const char *advice = start_advice(result);

	if (result == CUDA_SUCCESS)
		return 0;
	(void)stasis_fail_cuda(err, STASIS_REFUSED, result, "initialise the CUDA driver '%s'",
			       driver->path);
	if (advice)
		stasis_error_append(err, "; %s", advice);
	return -1;
}

bool stasis_driver_has_checkpoint(const struct stasis_driver *driver)
{
	return driver->cuCheckpointProcessGetState && driver->cuCheckpointProcessLock &&
	       driver->cuCheckpointProcessCheckpoint && driver->cuCheckpointProcessRestore &&
	       driver->cuCheckpointProcessUnlock;
}

bool stasis_driver_has_gpu_pairs(const struct stasis_driver *driver)
{
	return stasis_driver_has_checkpoint(driver) &&
	       driver->cuda_version >= STASIS_CUDA_GPU_PAIRS;
}

bool stasis_driver_has_custom_storage(const struct stasis_driver *driver)
{
	return stasis_driver_has_checkpoint(driver) && driver->cuCheckpointOperationComplete &&
	       driver->cuStreamGetCtx && driver->cuStreamGetDevice;
}

static const char *why_older(const struct stasis_driver *driver, bool has, int needed,
			     char text[STASIS_DRIVER_WHY_BYTES])
{
	text[0] = '\0';
	if (!has)
		(void)snprintf(text, STASIS_DRIVER_WHY_BYTES,
			       "the driver is of CUDA %d.%d%s; CUDA %d.%d or newer is needed",
			       driver->cuda_version / 1000, driver->cuda_version % 1000 / 10,
			       driver->cuda_version >= needed ? " and lacks its entries" : "",
			       needed / 1000, needed % 1000 / 10);
	return text;
}

const char *stasis_driver_why_no_checkpoint(const struct stasis_driver *driver,
					    char text[STASIS_DRIVER_WHY_BYTES])
{
	return why_older(driver, stasis_driver_has_checkpoint(driver), STASIS_CUDA_CHECKPOINT,
			 text);
}

const char *stasis_driver_why_no_gpu_pairs(const struct stasis_driver *driver,
					   char text[STASIS_DRIVER_WHY_BYTES])
{
	return why_older(driver, stasis_driver_has_gpu_pairs(driver), STASIS_CUDA_GPU_PAIRS, text);
}

const char *stasis_driver_why_no_custom_storage(const struct stasis_driver *driver,
						char text[STASIS_DRIVER_WHY_BYTES])
{
	return why_older(driver, stasis_driver_has_custom_storage(driver),
			 STASIS_CUDA_CUSTOM_STORAGE, text);
}

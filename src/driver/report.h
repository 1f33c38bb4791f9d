#ifndef STASIS_DRIVER_REPORT_H
#define STASIS_DRIVER_REPORT_H

/*
 * What the driver and the GPUs of this machine can do, for `stasis doctor`, for preflight and for the
 * manifest of an image. The driver must have been started, except for stasis_kernel_module_version.
 */

#include <stdbool.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/error.h"
#include "base/id.h"
#include "driver/device.h"
#include "driver/driver.h"

#define STASIS_GPU_NAME_BYTES 128
#define STASIS_PCI_BUS_ID_BYTES 16 /* "0000:1b:00.0" and the end */
#define STASIS_VERSION_BYTES 32

struct stasis_gpu {
	struct stasis_id uuid; /* of the MIG instance where is_mig */
	char name[STASIS_GPU_NAME_BYTES];
	char pci_bus_id[STASIS_PCI_BUS_ID_BYTES];
	int ordinal; /* in the process that saw it */
	int capability_major;
	int capability_minor;
	uint64_t total_bytes;
	CUcomputemode compute_mode;
	bool is_mig;
	bool has_free_bytes;
	uint64_t free_bytes; /* beside a context of ours */
};

struct stasis_driver_report {
	int cuda_version;                         /* such as 13040 */
	char kernel_module[STASIS_VERSION_BYTES]; /* "580.159.04"; "": none is loaded */
	bool has_checkpoint;
	bool has_gpu_pairs;
	bool has_custom_storage;
	char why_no_checkpoint[STASIS_DRIVER_WHY_BYTES]; /* "": it has */
	char why_no_gpu_pairs[STASIS_DRIVER_WHY_BYTES];
	char why_no_custom_storage[STASIS_DRIVER_WHY_BYTES];
	unsigned int gpu_count;
	struct stasis_gpu gpus[STASIS_DEVICES_MAX];
};

enum stasis_report_depth {
	STASIS_REPORT_PLAIN,      /* makes no context */
	STASIS_REPORT_FREE_BYTES, /* stasis_device_free_bytes on each; where it fails, has_free_bytes
				     is false, and that is no error */
};

/* *ret_report is large: better static or on the heap. Written, not wholly, on failure too. */
NODISCARD int stasis_driver_report_read(const struct stasis_driver *driver,
					enum stasis_report_depth depth,
					struct stasis_driver_report *ret_report,
					struct stasis_error *err);

/* One GPU, without has_free_bytes. */
NODISCARD int stasis_gpu_read(const struct stasis_driver *driver,
			      const struct stasis_device *device, struct stasis_gpu *ret_gpu,
			      struct stasis_error *err);

/*
 * What is free beside a context of ours, which is made for the moment where there is none: about half a
 * GiB of GPU memory. The driver's answer where that fails: OUT_OF_MEMORY, or DEVICE_UNAVAILABLE in
 * exclusive compute mode.
 */
CUresult stasis_device_free_bytes(const struct stasis_driver *driver,
				  const struct stasis_device *device, uint64_t *ret_free_bytes);

/* "default", "exclusive process", "prohibited". */
const char *stasis_compute_mode_name(CUcomputemode mode);

/* From /sys or /proc; "" where no NVIDIA kernel module is loaded. Returns `text`. */
const char *stasis_kernel_module_version(char text[STASIS_VERSION_BYTES]);

/* The first word of a file's first line that begins with a digit and has a dot in it; false: none. */
bool stasis_driver_version_scan(const char *path, char ret_text[STASIS_VERSION_BYTES]);

#endif

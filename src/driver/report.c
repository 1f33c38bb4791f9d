/*
 * See report.h. Reads only; nothing is left changed but, for an instant, the contexts of the free-memory
 * reading.
 */

#include "driver/report.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"

#define MODULE_VERSION_FILE "/sys/module/nvidia/version"
#define DRIVER_VERSION_FILE "/proc/driver/nvidia/version"

bool stasis_driver_version_scan(const char *path, char ret_text[STASIS_VERSION_BYTES])
{
	CLEANUP(file) FILE *file = fopen(path, "re");
	char line[512];
	char *rest = NULL;

	if (!file || !fgets(line, sizeof(line), file))
		return false;
	for (char *word = strtok_r(line, " \t\n", &rest); word;
	     word = strtok_r(NULL, " \t\n", &rest)) {
		if (!isdigit((unsigned char)word[0]) || !strchr(word, '.'))
			continue;
		(void)snprintf(ret_text, STASIS_VERSION_BYTES, "%.*s", STASIS_VERSION_BYTES - 1,
			       word);
		return true;
	}
	return false;
}

const char *stasis_kernel_module_version(char text[STASIS_VERSION_BYTES])
{
	text[0] = '\0';
	if (!stasis_driver_version_scan(MODULE_VERSION_FILE, text))
		(void)stasis_driver_version_scan(DRIVER_VERSION_FILE, text);
	return text;
}

const char *stasis_compute_mode_name(CUcomputemode mode)
{
	switch (mode) {
	case CU_COMPUTEMODE_DEFAULT:
		return "default";
	case CU_COMPUTEMODE_PROHIBITED:
		return "prohibited";
	case CU_COMPUTEMODE_EXCLUSIVE_PROCESS:
		return "exclusive process";
	}
	return "unknown";
}

/*
 * A MIG instance has an identity of its own, which the newer form of cuDeviceGetUuid gives; the older form
 * gives that of the whole GPU. A driver without the older form cannot be asked, nor can one that fails.
 */
static bool is_mig(const struct stasis_driver *driver, const struct stasis_device *device)
{
	CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	__typeof__(&cuDeviceGetUuid) get_gpu_uuid = NULL;
	struct stasis_id gpu;
	void *address = NULL;
	CUuuid uuid = {0};

	if (driver->cuGetProcAddress("cuDeviceGetUuid", &address, 9020, CU_GET_PROC_ADDRESS_DEFAULT,
				     &status) != CUDA_SUCCESS ||
	    status != CU_GET_PROC_ADDRESS_SUCCESS || !address)
		return false;
	memcpy(&get_gpu_uuid, &address, sizeof(address));
	if (get_gpu_uuid(&uuid, device->device) != CUDA_SUCCESS)
		return false;
	gpu = stasis_id_of_cuda(&uuid);
	return !stasis_id_equal(&gpu, &device->uuid);
}

static int attribute_read(const struct stasis_driver *driver, const struct stasis_device *device,
			  CUdevice_attribute attribute, int *ret_value, struct stasis_error *err)
{
	CUresult result = driver->cuDeviceGetAttribute(ret_value, attribute, device->device);

	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result, "read attribute %d of GPU %d",
					(int)attribute, device->ordinal);
	return 0;
}

static int attributes_read(const struct stasis_driver *driver, const struct stasis_device *device,
			   struct stasis_gpu *gpu, struct stasis_error *err)
{
	int mode = 0;

	if (attribute_read(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
			   &gpu->capability_major, err) != 0 ||
	    attribute_read(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
			   &gpu->capability_minor, err) != 0 ||
	    attribute_read(driver, device, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, &mode, err) != 0)
		return -1;
	gpu->compute_mode = (CUcomputemode)mode;
	return 0;
}

int stasis_gpu_read(const struct stasis_driver *driver, const struct stasis_device *device,
		    struct stasis_gpu *ret_gpu, struct stasis_error *err)
{
	struct stasis_gpu gpu = {.uuid = device->uuid, .ordinal = device->ordinal};
	size_t total_bytes = 0;
	CUresult result;

	result = driver->cuDeviceGetName(gpu.name, sizeof(gpu.name) - 1, device->device);
	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result, "read the name of GPU %d",
					device->ordinal);
	result =
		driver->cuDeviceGetPCIBusId(gpu.pci_bus_id, sizeof(gpu.pci_bus_id), device->device);
	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result,
					"read the PCI bus id of GPU %d", device->ordinal);
	result = driver->cuDeviceTotalMem(&total_bytes, device->device);
	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result,
					"read the memory size of GPU %d", device->ordinal);
	if (attributes_read(driver, device, &gpu, err) != 0)
		return -1;
	gpu.total_bytes = total_bytes;
	gpu.is_mig = is_mig(driver, device);
	*ret_gpu = gpu;
	return 0;
}

CUresult stasis_device_free_bytes(const struct stasis_driver *driver,
				  const struct stasis_device *device, uint64_t *ret_free_bytes)
{
	CUcontext context = NULL;
	CUcontext popped = NULL;
	size_t free_bytes = 0;
	size_t total_bytes = 0;
	CUresult result = driver->cuDevicePrimaryCtxRetain(&context, device->device);

	if (result != CUDA_SUCCESS)
		return result;
	result = driver->cuCtxPushCurrent(context);
	if (result == CUDA_SUCCESS) {
		result = driver->cuMemGetInfo(&free_bytes, &total_bytes);
		(void)driver->cuCtxPopCurrent(&popped);
	}
	(void)driver->cuDevicePrimaryCtxRelease(device->device);
	if (result == CUDA_SUCCESS)
		*ret_free_bytes = free_bytes;
	return result;
}

static void abilities_read(const struct stasis_driver *driver, struct stasis_driver_report *report)
{
	report->cuda_version = driver->cuda_version;
	(void)stasis_kernel_module_version(report->kernel_module);
	report->has_checkpoint = stasis_driver_has_checkpoint(driver);
	report->has_gpu_pairs = stasis_driver_has_gpu_pairs(driver);
	report->has_custom_storage = stasis_driver_has_custom_storage(driver);
	(void)stasis_driver_why_no_checkpoint(driver, report->why_no_checkpoint);
	(void)stasis_driver_why_no_gpu_pairs(driver, report->why_no_gpu_pairs);
	(void)stasis_driver_why_no_custom_storage(driver, report->why_no_custom_storage);
}

int stasis_driver_report_read(const struct stasis_driver *driver, enum stasis_report_depth depth,
			      struct stasis_driver_report *ret_report, struct stasis_error *err)
{
	struct stasis_device_list list;

	memset(ret_report, 0, sizeof(*ret_report));
	abilities_read(driver, ret_report);
	if (stasis_device_list_read(driver, &list, err) != 0)
		return -1;
	for (unsigned int i = 0; i < list.count; i++) {
		struct stasis_gpu *gpu = &ret_report->gpus[i];

		if (stasis_gpu_read(driver, &list.devices[i], gpu, err) != 0)
			return -1;
		if (depth == STASIS_REPORT_FREE_BYTES)
			gpu->has_free_bytes =
				stasis_device_free_bytes(driver, &list.devices[i],
							 &gpu->free_bytes) == CUDA_SUCCESS;
	}
	ret_report->gpu_count = list.count;
	return 0;
}

/*
 * Description: the report names each GPU by UUID and kind, tells a MIG instance by its identity, reads free
 * memory only when asked, and gives every failure its name.
 */

#include "unit.h"

#include "base/cleanup.h"
#include "driver/report.h"
#include "fake_driver.h"

static struct stasis_driver driver;
static struct stasis_driver_report report;

static int setup(void **state)
{
	(void)state;
	fake_reset(2, &driver);
	memset(&report, 0xff, sizeof(report));
	return 0;
}

static void report_has_what_there_is(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_id second = fake_uuid(1);

	(void)state;
	fake.gpus[1].name = "Other GPU";
	fake.gpus[1].capability_minor = 3;
	fake.gpus[1].compute_mode = CU_COMPUTEMODE_EXCLUSIVE_PROCESS;
	assert_done(stasis_driver_report_read(&driver, STASIS_REPORT_PLAIN, &report, &err), &err);
	assert_int_equal(report.cuda_version, 13040);
	assert_true(report.has_checkpoint && report.has_gpu_pairs && report.has_custom_storage);
	assert_string_equal(report.why_no_custom_storage, "");
	assert_int_equal(report.gpu_count, 2);
	assert_true(stasis_id_equal(&report.gpus[1].uuid, &second));
	assert_string_equal(report.gpus[1].name, "Other GPU");
	assert_string_equal(report.gpus[1].pci_bus_id, "0000:01:00.0");
	assert_int_equal(report.gpus[1].ordinal, 1);
	assert_int_equal(report.gpus[1].capability_major, 9);
	assert_int_equal(report.gpus[1].capability_minor, 3);
	assert_int_equal(report.gpus[1].total_bytes, (uint64_t)80 << 30);
	assert_int_equal(report.gpus[1].compute_mode, CU_COMPUTEMODE_EXCLUSIVE_PROCESS);
	assert_false(report.gpus[1].is_mig);
	assert_false(report.gpus[1].has_free_bytes);
	assert_int_equal(fake_count("cuDevicePrimaryCtxRetain"), 0);
}

static void mig_instance_is_told_by_its_identity(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	fake.gpus[0].is_mig = true;
	assert_done(stasis_driver_report_read(&driver, STASIS_REPORT_PLAIN, &report, &err), &err);
	assert_true(report.gpus[0].is_mig);
	assert_false(report.gpus[1].is_mig);
	fake_rule("cuGetProcAddress", 0, CUDA_ERROR_NOT_FOUND, FAKE_KEEP);
	assert_done(stasis_driver_report_read(&driver, STASIS_REPORT_PLAIN, &report, &err), &err);
	assert_false(report.gpus[0].is_mig);
}

static void free_memory_is_read_when_asked(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	fake.gpus[0].free_bytes = 111;
	fake.gpus[1].free_bytes = 222;
	fake_rule("cuDevicePrimaryCtxRetain", 1, CUDA_ERROR_OUT_OF_MEMORY, FAKE_KEEP);
	assert_done(stasis_driver_report_read(&driver, STASIS_REPORT_FREE_BYTES, &report, &err),
		    &err);
	assert_false(report.gpus[0].has_free_bytes);
	assert_true(report.gpus[1].has_free_bytes);
	assert_int_equal(report.gpus[1].free_bytes, 222);
	assert_int_equal(fake.gpus[1].retained_most, 1);
	assert_int_equal(fake.gpus[1].retained, 0);
	assert_int_equal(fake.pushed, 0);
}

static void older_driver_is_reported_with_why(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	driver.cuda_version = 12080;
	driver.cuCheckpointOperationComplete = NULL;
	assert_done(stasis_driver_report_read(&driver, STASIS_REPORT_PLAIN, &report, &err), &err);
	assert_true(report.has_checkpoint);
	assert_false(report.has_gpu_pairs);
	assert_false(report.has_custom_storage);
	assert_string_equal(report.why_no_checkpoint, "");
	assert_non_null(strstr(report.why_no_gpu_pairs, "CUDA 13.0"));
	assert_non_null(strstr(report.why_no_custom_storage, "CUDA 13.4"));
}

static void each_failure_is_named(void **state)
{
	static const struct {
		const char *call;
		const char *text;
	} rows[] = {
		{"cuDeviceGetCount", "count the GPUs"},
		{"cuDeviceGet", "open GPU 0"},
		{"cuDeviceGetUuid", "read the UUID of GPU 0"},
		{"cuDeviceGetName", "read the name of GPU 0"},
		{"cuDeviceGetPCIBusId", "read the PCI bus id of GPU 0"},
		{"cuDeviceTotalMem", "read the memory size of GPU 0"},
		{"cuDeviceGetAttribute", "read attribute 75 of GPU 0"},
	};

	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		struct stasis_error err = STASIS_ERROR_INIT;

		setup(state);
		fake_rule(rows[i].call, 1, CUDA_ERROR_UNKNOWN, FAKE_KEEP);
		assert_refused(
			stasis_driver_report_read(&driver, STASIS_REPORT_PLAIN, &report, &err),
			&err, STASIS_REFUSED, rows[i].text);
		assert_int_equal(err.cuda_result, CUDA_ERROR_UNKNOWN);
	}
}

static CUresult too_many(int *count)
{
	*count = STASIS_DEVICES_MAX + 1;
	return CUDA_SUCCESS;
}

static void more_gpus_than_we_hold_are_refused(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	driver.cuDeviceGetCount = too_many;
	assert_refused(stasis_driver_report_read(&driver, STASIS_REPORT_PLAIN, &report, &err), &err,
		       STASIS_REFUSED, "reports 65 GPUs");
}

static void compute_modes_have_names(void **state)
{
	(void)state;
	assert_string_equal(stasis_compute_mode_name(CU_COMPUTEMODE_DEFAULT), "default");
	assert_string_equal(stasis_compute_mode_name(CU_COMPUTEMODE_PROHIBITED), "prohibited");
	assert_string_equal(stasis_compute_mode_name(CU_COMPUTEMODE_EXCLUSIVE_PROCESS),
			    "exclusive process");
	assert_string_equal(stasis_compute_mode_name((CUcomputemode)1), "unknown");
}

static void version_is_found_in_either_file(void **state)
{
	CLEANUP(fd) int dir_fd = unit_folder_make();
	char text[STASIS_VERSION_BYTES];
	char path[64];

	(void)state;
	unit_file_make(dir_fd, "module", "580.159.04\n");
	unit_file_make(
		dir_fd, "proc",
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release "
		"Build  (x@y)\nGCC version: gcc version 12.2.0\n");
	unit_file_make(dir_fd, "none", "NVRM version: unknown\nGCC 12.2.0\n");
	unit_file_make(dir_fd, "long", "1.23456789012345678901234567890123456789\n");
	for (int i = 0; i < 2; i++) {
		text[0] = '\0';
		(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/%s", dir_fd,
			       i ? "proc" : "module");
		assert_true(stasis_driver_version_scan(path, text));
		assert_string_equal(text, "580.159.04");
	}
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/none", dir_fd);
	assert_false(stasis_driver_version_scan(path, text));
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/missing", dir_fd);
	assert_false(stasis_driver_version_scan(path, text));
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/long", dir_fd);
	assert_true(stasis_driver_version_scan(path, text));
	assert_int_equal(strlen(text), STASIS_VERSION_BYTES - 1);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(report_has_what_there_is, setup),
		cmocka_unit_test_setup(mig_instance_is_told_by_its_identity, setup),
		cmocka_unit_test_setup(free_memory_is_read_when_asked, setup),
		cmocka_unit_test_setup(older_driver_is_reported_with_why, setup),
		cmocka_unit_test_setup(each_failure_is_named, setup),
		cmocka_unit_test_setup(more_gpus_than_we_hold_are_refused, setup),
		cmocka_unit_test_setup(compute_modes_have_names, setup),
		cmocka_unit_test_setup(version_is_found_in_either_file, setup),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

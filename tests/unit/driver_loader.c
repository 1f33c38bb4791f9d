/*
 * Description: the driver's table is asked for at versions whose forms we call; each way of a driver to say
 * "no such entry" is understood, other answers are errors, and a missing required entry is named.
 */

#include "unit.h"

#include <libgen.h>

#include "driver/driver.h"

struct ask {
	const char *name;
	const char *elf;
	int version;
	bool is_required;
};

#define REQUIRED true
#define OPTIONAL false
#define ASK(entry, version, elf, need) {#entry, #elf, version, need},
static const struct ask asks[] = {STASIS_DRIVER_ENTRIES(ASK)};
#define FORM(query, version, elf) {#query, #elf, version, false},
static const struct ask forms[] = {STASIS_ABI_FUNCTIONS(FORM)};

/* How the played driver answers. */
static struct {
	int version;
	CUresult version_result;
	const char *name; /* this entry gets the answer below; NULL: all are there */
	CUresult result;
	CUdriverProcAddressQueryResult status;
	int asked;
	bool has_odd_flags;
} play;

static CUresult entry_call(void)
{
	return CUDA_SUCCESS;
}

static CUresult play_version(int *version)
{
	*version = play.version;
	return play.version_result;
}

static CUresult play_get_proc_address(const char *name, void **address, int version,
				      cuuint64_t flags, CUdriverProcAddressQueryResult *status)
{
	__typeof__(&entry_call) entry = entry_call;

	(void)version;
	play.asked++;
	play.has_odd_flags |= flags != CU_GET_PROC_ADDRESS_DEFAULT;
	*status = CU_GET_PROC_ADDRESS_SUCCESS;
	*address = NULL;
	if (play.name && strcmp(play.name, name) == 0) {
		*status = play.status;
		return play.result;
	}
	memcpy(address, &entry, sizeof(entry));
	return CUDA_SUCCESS;
}

static int fill(struct stasis_driver *driver, struct stasis_error *err)
{
	return stasis_driver_fill("libplay.so", play_get_proc_address, play_version, driver, err);
}

static int reset(void **state)
{
	(void)state;
	memset(&play, 0, sizeof(play));
	play.version = 13040;
	return 0;
}

/* Of the forms of a name, the driver answers the newest that is not newer than the version asked for. */
static const struct ask *form_answered(const struct ask *ask)
{
	const struct ask *best = NULL;

	for (size_t i = 0; i < ARRAY_COUNT(forms); i++) {
		const struct ask *form = &forms[i];

		if (strcmp(form->name, ask->name) == 0 && form->version <= ask->version &&
		    (!best || form->version > best->version))
			best = form;
	}
	return best;
}

static void versions_asked_for_name_the_forms_we_call(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(asks); i++) {
		const struct ask *form = form_answered(&asks[i]);

		if (!form || strcmp(form->elf, asks[i].elf) != 0 ||
		    form->version != asks[i].version)
			fail_msg("%s at %d is not %s", asks[i].name, asks[i].version, asks[i].elf);
	}
}

static void whole_driver_is_taken(void **state)
{
	struct stasis_driver driver;
	struct stasis_error err = STASIS_ERROR_INIT;
	char why[STASIS_DRIVER_WHY_BYTES];

	(void)state;
	assert_done(fill(&driver, &err), &err);
	assert_int_equal(play.asked, ARRAY_COUNT(asks));
	assert_false(play.has_odd_flags);
	assert_int_equal(driver.cuda_version, 13040);
	assert_string_equal(driver.path, "libplay.so");
	assert_non_null(driver.cuMemcpyDtoHAsync);
	assert_true(stasis_driver_has_checkpoint(&driver));
	assert_true(stasis_driver_has_gpu_pairs(&driver));
	assert_true(stasis_driver_has_custom_storage(&driver));
	assert_string_equal(stasis_driver_why_no_checkpoint(&driver, why), "");
	assert_string_equal(stasis_driver_why_no_gpu_pairs(&driver, why), "");
	assert_string_equal(stasis_driver_why_no_custom_storage(&driver, why), "");
}

struct answer {
	int version;
	CUresult result;
	CUdriverProcAddressQueryResult status;
	bool is_absent; /* else an error */
};

static void answer_check(const struct answer *answer)
{
	struct stasis_driver driver;
	struct stasis_error err = STASIS_ERROR_INIT;

	play.version = answer->version;
	play.result = answer->result;
	play.status = answer->status;
	if (!answer->is_absent) {
		assert_refused(fill(&driver, &err), &err, STASIS_REFUSED,
			       "its entry cuCheckpointOperationComplete at CUDA version 13040");
		assert_int_equal(err.cuda_result, answer->result);
		return;
	}
	assert_done(fill(&driver, &err), &err);
	assert_null(driver.cuCheckpointOperationComplete);
	assert_true(stasis_driver_has_checkpoint(&driver));
	assert_false(stasis_driver_has_custom_storage(&driver));
}

static void ways_to_say_no_are_understood(void **state)
{
	static const struct answer answers[] = {
		{13000, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, true},
		{13000, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT, true},
		{13000, CUDA_ERROR_NOT_FOUND, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, true},
		{13000, CUDA_ERROR_INVALID_VALUE, CU_GET_PROC_ADDRESS_SUCCESS, true},
		{13040, CUDA_SUCCESS, CU_GET_PROC_ADDRESS_SUCCESS, true}, /* a null pointer */
		{13040, CUDA_ERROR_INVALID_VALUE, CU_GET_PROC_ADDRESS_SUCCESS, false},
		{13050, CUDA_ERROR_INVALID_VALUE, CU_GET_PROC_ADDRESS_SUCCESS, false},
		{13000, CUDA_ERROR_UNKNOWN, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND, false},
		{13000, CUDA_ERROR_NOT_SUPPORTED, CU_GET_PROC_ADDRESS_SUCCESS, false},
		{13040, CUDA_ERROR_OUT_OF_MEMORY, CU_GET_PROC_ADDRESS_SUCCESS, false},
	};

	(void)state;
	play.name = "cuCheckpointOperationComplete";
	for (size_t i = 0; i < ARRAY_COUNT(answers); i++)
		answer_check(&answers[i]);
}

static void each_entry_is_needed_or_can_be_missing(void **state)
{
	(void)state;
	play.status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	for (size_t i = 0; i < ARRAY_COUNT(asks); i++) {
		struct stasis_driver driver;
		struct stasis_error err = STASIS_ERROR_INIT;
		char text[128];

		play.name = asks[i].name;
		if (!asks[i].is_required) {
			assert_done(fill(&driver, &err), &err);
			continue;
		}
		(void)snprintf(text, sizeof(text),
			       "the driver 'libplay.so' (CUDA 13.4) has no entry %s of CUDA %d.%d",
			       asks[i].name, asks[i].version / 1000, asks[i].version % 1000 / 10);
		assert_refused(fill(&driver, &err), &err, STASIS_REFUSED, text);
	}
}

static void older_driver_says_what_it_lacks(void **state)
{
	struct stasis_driver driver;
	struct stasis_error err = STASIS_ERROR_INIT;
	char why[STASIS_DRIVER_WHY_BYTES];

	(void)state;
	play.version = 12080;
	play.name = "cuCheckpointOperationComplete";
	play.status = CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	assert_done(fill(&driver, &err), &err);
	assert_true(stasis_driver_has_checkpoint(&driver));
	assert_false(stasis_driver_has_gpu_pairs(&driver));
	assert_string_equal(stasis_driver_why_no_gpu_pairs(&driver, why),
			    "the driver is of CUDA 12.8; CUDA 13.0 or newer is needed");
	assert_string_equal(stasis_driver_why_no_custom_storage(&driver, why),
			    "the driver is of CUDA 12.8; CUDA 13.4 or newer is needed");
	play.version = 13050;
	assert_done(fill(&driver, &err), &err);
	assert_string_equal(stasis_driver_why_no_custom_storage(&driver, why),
			    "the driver is of CUDA 13.5 and lacks its entries; CUDA 13.4 or newer "
			    "is needed");
	play.name = "cuCheckpointProcessRestore";
	assert_done(fill(&driver, &err), &err);
	assert_false(stasis_driver_has_checkpoint(&driver));
	assert_false(stasis_driver_has_gpu_pairs(&driver));
	assert_false(stasis_driver_has_custom_storage(&driver));
}

static void version_that_is_refused_is_an_error(void **state)
{
	struct stasis_driver driver;
	struct stasis_error err = STASIS_ERROR_INIT;

	(void)state;
	play.version_result = CUDA_ERROR_UNKNOWN;
	assert_refused(fill(&driver, &err), &err, STASIS_REFUSED,
		       "ask the driver 'libplay.so' for its version: CUDA_ERROR_UNKNOWN (999)");
	assert_int_equal(play.asked, 0);
}

/* The fake library lies beside this program. */
static const char *fake_path(char path[4096])
{
	ssize_t used = readlink("/proc/self/exe", path, 4000);

	assert_true(used > 0);
	path[used] = '\0';
	(void)dirname(path);
	(void)snprintf(path + strlen(path), 64, "/libfake-libcuda.so");
	return path;
}

static void library_is_found_by_argument_then_environment(void **state)
{
	struct stasis_error err = STASIS_ERROR_INIT;
	struct stasis_error missing = STASIS_ERROR_INIT;
	struct stasis_error empty = STASIS_ERROR_INIT;
	struct stasis_driver driver;
	char path[4096];

	(void)state;
	(void)setenv("FAKE_LIBCUDA_VERSION", "12080", 1);
	(void)setenv("STASIS_LIBCUDA", "/nowhere/libcuda.so.1", 1);
	assert_done(stasis_driver_open(fake_path(path), &driver, &err), &err);
	assert_string_equal(driver.path, path);
	assert_int_equal(driver.cuda_version, 12080);
	assert_true(stasis_driver_has_checkpoint(&driver));
	assert_false(stasis_driver_has_custom_storage(&driver));
	assert_refused(stasis_driver_open(NULL, &driver, &missing), &missing, STASIS_REFUSED,
		       "load the CUDA driver '/nowhere/libcuda.so.1'");
	(void)setenv("STASIS_LIBCUDA", path, 1);
	assert_done(stasis_driver_open(NULL, &driver, &err), &err);
	assert_string_equal(driver.path, path);
	/* Set but empty is not set: then it is the machine's own driver, whether or not there is one. */
	(void)setenv("STASIS_LIBCUDA", "", 1);
	if (stasis_driver_open(NULL, &driver, &empty) == 0)
		assert_string_equal(driver.path, "libcuda.so.1");
	else
		assert_non_null(strstr(empty.text, "libcuda.so.1"));
}

static void library_that_is_no_driver_is_refused(void **state)
{
	struct stasis_error other = STASIS_ERROR_INIT;
	struct stasis_error stub = STASIS_ERROR_INIT;
	struct stasis_error longer = STASIS_ERROR_INIT;
	struct stasis_driver driver;
	char path[STASIS_DRIVER_PATH_BYTES + 1];

	(void)state;
	assert_refused(stasis_driver_open("libm.so.6", &driver, &other), &other, STASIS_REFUSED,
		       "'libm.so.6' has no symbol cuGetProcAddress_v2: it is no CUDA driver");
	(void)unsetenv("FAKE_LIBCUDA_VERSION");
	assert_refused(stasis_driver_open(fake_path(path), &driver, &stub), &stub, STASIS_REFUSED,
		       "for its version: CUDA_ERROR_STUB_LIBRARY (34)");
	memset(path, 'a', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	assert_refused(stasis_driver_open(path, &driver, &longer), &longer, STASIS_REFUSED,
		       "too long");
}

static CUresult init_result;

static CUresult init_call(unsigned int flags)
{
	assert_int_equal(flags, 0);
	return init_result;
}

static void start_says_what_to_do(void **state)
{
	static const struct {
		CUresult result;
		const char *text;
	} rows[] = {
		{CUDA_ERROR_NO_DEVICE, "no GPU is visible"},
		{CUDA_ERROR_SYSTEM_DRIVER_MISMATCH, "different versions"},
		{CUDA_ERROR_STUB_LIBRARY, "stub library"},
		{CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE, "forward-compatible"},
		{CUDA_ERROR_UNKNOWN, "initialise the CUDA driver 'x': CUDA_ERROR_UNKNOWN (999)"},
	};
	struct stasis_driver driver = {.path = "x", .cuInit = init_call};
	struct stasis_error good = STASIS_ERROR_INIT;

	(void)state;
	for (size_t i = 0; i < ARRAY_COUNT(rows); i++) {
		struct stasis_error err = STASIS_ERROR_INIT;

		init_result = rows[i].result;
		assert_refused(stasis_driver_start(&driver, &err), &err, STASIS_REFUSED,
			       rows[i].text);
		assert_int_equal(err.cuda_result, rows[i].result);
	}
	init_result = CUDA_SUCCESS;
	assert_done(stasis_driver_start(&driver, &good), &good);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(versions_asked_for_name_the_forms_we_call, reset),
		cmocka_unit_test_setup(whole_driver_is_taken, reset),
		cmocka_unit_test_setup(ways_to_say_no_are_understood, reset),
		cmocka_unit_test_setup(each_entry_is_needed_or_can_be_missing, reset),
		cmocka_unit_test_setup(older_driver_says_what_it_lacks, reset),
		cmocka_unit_test_setup(version_that_is_refused_is_an_error, reset),
		cmocka_unit_test_setup(library_is_found_by_argument_then_environment, reset),
		cmocka_unit_test_setup(library_that_is_no_driver_is_refused, reset),
		cmocka_unit_test_setup(start_says_what_to_do, reset),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

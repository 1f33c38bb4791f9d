/*
 * Description: entries by name and version.
 */
#include "behaviour.h"
#include "check.h"
#include "device.h"

static void *lookup(const char *name, int version, CUdriverProcAddressQueryResult *ret_status)
{
	void *entry = (void *)1;

	*ret_status = (CUdriverProcAddressQueryResult)99;
	(void)cuGetProcAddress_v2(name, &entry, version, CU_GET_PROC_ADDRESS_DEFAULT, ret_status);
	return entry;
}

static void entry_before_init(void)
{
	CUresult (*init)(unsigned int);

	*(void **)&init = t_entry_or_null("cuInit", 12000);
	T_TRUE(init != NULL);
	T_OK(init(0));
}

static void entry_unknown(void)
{
	CUdriverProcAddressQueryResult status;

	t_init_only();
	T_TRUE(lookup("cuNoSuchEntry", 12000, &status) == NULL);
	T_EQ(status, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
}

static void entry_too_new(void)
{
	CUdriverProcAddressQueryResult status;

	t_init_only();
	T_TRUE(lookup("cuMemCreate", 9000, &status) == NULL);
	T_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
	T_TRUE(lookup("cuMemCreate", 10020, &status) != NULL);
	T_EQ(status, CU_GET_PROC_ADDRESS_SUCCESS);
}

static void entry_by_version(void)
{
	CUdriverProcAddressQueryResult status;

	t_init_only();
	T_TRUE(lookup("cuGetProcAddress", 11030, &status) !=
	       lookup("cuGetProcAddress", 12000, &status));
	T_TRUE(lookup("cuStreamGetCtx", 9020, &status) != lookup("cuStreamGetCtx", 12050, &status));
}

static void entry_of_plain_name(void)
{
	CUresult (*total_memory)(size_t *, CUdevice);
	size_t plain = 0;
	size_t wide = 0;

	t_init_only();
	*(void **)&total_memory = t_entry("cuDeviceTotalMem", 3020);
	T_OK(total_memory(&plain, 0));
	T_OK(cuDeviceTotalMem_v2(&wide, 0));
	T_EQ(plain, wide);
}

static void custom_storage_follows_version(void)
{
	int version = 0;

	t_init_only();
	T_OK(cuDriverGetVersion(&version));
	T_EQ(t_entry_or_null("cuCheckpointOperationComplete", 13040) != NULL, version >= 13040);
}

static void checkpoint_entries(void)
{
	CUdriverProcAddressQueryResult status;
	int version = 0;

	t_init_only();
	T_OK(cuDriverGetVersion(&version));
	if (version < 12080)
		t_skip("needs driver: CUDA 12.8, this one is %d", version);
	T_TRUE(lookup("cuCheckpointProcessLock", 12080, &status) != NULL);
	T_TRUE(lookup("cuCheckpointProcessLock", 12070, &status) == NULL);
	T_EQ(status, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);
}

static const struct t_behaviour behaviours[] = {
	{"entry_before_init", T_REPORTED, "entries can be looked up before cuInit",
	 entry_before_init},
	{"entry_unknown", T_DOCUMENTED, "an unknown name gives NULL and SYMBOL_NOT_FOUND",
	 entry_unknown},
	{"entry_too_new", T_DOCUMENTED,
	 "a name asked for at too old a version gives NULL and VERSION_NOT_SUFFICIENT",
	 entry_too_new},
	{"entry_by_version", T_DOCUMENTED, "a name gives the entry of the version asked for",
	 entry_by_version},
	{"entry_of_plain_name", T_DOCUMENTED, "a plain name gives the 64-bit form",
	 entry_of_plain_name},
	{"custom_storage_follows_version", T_DOCUMENTED,
	 "cuCheckpointOperationComplete is there from CUDA 13.4 on, and not before",
	 custom_storage_follows_version},
	{"checkpoint_entries", T_DOCUMENTED, "the checkpoint entries are there from CUDA 12.8 on",
	 checkpoint_entries},
};

T_BEHAVIOURS_MAIN(behaviours)

/*
 * cuGetProcAddress: the entry that a name means at a CUDA version. What is newer than the driver that
 * is being simulated is not there, and a version newer than it is refused, as older drivers do.
 */

#include "core.h"

#include <stddef.h>
#include <string.h>

struct entry {
	const char *query;
	int version;
	void *address;
};

#define ENTRY(query, version, elf) {#query, version, (void *)elf},
static const struct entry entries[] = {STASIS_ABI_FUNCTIONS(ENTRY)};
#undef ENTRY

/* The newest form that is not newer than asked for. */
static const struct entry *find(const char *name, int version, bool *ret_is_known)
{
	const struct entry *found = NULL;
	int newest = sim_config()->version;

	*ret_is_known = false;
	for (size_t i = 0; i < ARRAY_COUNT(entries); i++) {
		const struct entry *entry = &entries[i];

		if (strcmp(entry->query, name) != 0)
			continue;
		if (entry->version == 12080 && sim_breaks("checkpoint_entries"))
			continue;
		if ((entry->version > newest) !=
		    (entry->version == 13040 && sim_breaks("custom_storage_follows_version")))
			continue;
		*ret_is_known = true;
		if ((entry->version <= version || entry->version > newest ||
		     sim_breaks("entry_too_new")) &&
		    (found == NULL || entry->version > found->version))
			found = entry;
	}
	return found;
}

static CUresult proc_address(const char *name, void **ret_address, int version, cuuint64_t flags,
			     CUdriverProcAddressQueryResult *ret_status)
{
	const struct entry *entry;
	bool is_known = false;

	if (name == NULL || ret_address == NULL || version < 0 || version > sim_config()->version ||
	    flags > CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM)
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_breaks("entry_by_version"))
		version = sim_config()->version;
	entry = find(name, version, &is_known);
	*ret_address = entry != NULL ? entry->address : NULL;
	if (!is_known && sim_breaks("entry_unknown"))
		*ret_address = (void *)proc_address;
	if (ret_status != NULL)
		*ret_status = entry != NULL ? CU_GET_PROC_ADDRESS_SUCCESS
			      : is_known    ? CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT
					    : CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND;
	/* The form with a status succeeds without an entry: the status alone tells. */
	return entry != NULL || ret_status != NULL ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

SIM_API CUresult cuGetProcAddress_v2(const char *name, void **ret_address, int version,
				     cuuint64_t flags, CUdriverProcAddressQueryResult *ret_status)
{
	return SIM_CALL(SIM_CALL_PURE, SIM_NEEDS_NOTHING,
			proc_address(name, ret_address, version, flags, ret_status));
}

SIM_API CUresult cuGetProcAddress(const char *name, void **ret_address, int version,
				  cuuint64_t flags)
{
	return SIM_CALL(SIM_CALL_PURE, SIM_NEEDS_NOTHING,
			proc_address(name, ret_address, version, flags, NULL));
}

/* None of the driver's private tables is simulated. */
static CUresult export_table(const void **ret_table, const CUuuid *id)
{
	if (ret_table == NULL || id == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_table = NULL;
	return CUDA_ERROR_NOT_FOUND;
}

SIM_API CUresult cuGetExportTable(const void **ret_table, const CUuuid *id)
{
	return SIM_CALL(SIM_CALL_PURE, SIM_NEEDS_NOTHING, export_table(ret_table, id));
}

/*
 * The handlers of pointer attributes: the handle types of memory stay what they were when the application asked for it.
 * The driver tells of a re-attached allocation, which is an import to it, that it has none; of one that we made
 * exportable underneath, or anew in the place of an import, that it has some.
 */

#include "interpose/handlers.h"
#include "interpose/registry.h"

static bool is_told_otherwise(const struct stasis_object *object)
{
	if (object->kind != STASIS_OBJECT_ALLOCATION)
		return false;
	if (object->is_importer)
		return object->is_recreated;
	return object->is_reattached ||
	       object->prop.requestedHandleTypes == CU_MEM_HANDLE_TYPE_NONE;
}

static void types_correct(CUdeviceptr address, unsigned long long *types)
{
	const struct stasis_mapping *mapping;

	stasis_registry_lock();
	mapping = stasis_mapping_at(address);
	if (mapping && is_told_otherwise(mapping->object))
		*types = (unsigned long long)mapping->object->prop.requestedHandleTypes;
	stasis_registry_unlock();
}

CUresult stasis_handle_cuPointerGetAttribute(__typeof__(cuPointerGetAttribute) *target,
					     void *ret_data, CUpointer_attribute attribute,
					     CUdeviceptr address)
{
	CUresult result = target(ret_data, attribute, address);

	if (result == CUDA_SUCCESS && attribute == CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES)
		types_correct(address, ret_data);
	return result;
}

CUresult stasis_handle_cuPointerGetAttributes(__typeof__(cuPointerGetAttributes) *target,
					      unsigned int count, CUpointer_attribute *attributes,
					      void **ret_data, CUdeviceptr address)
{
	CUresult result = target(count, attributes, ret_data, address);

	for (unsigned int i = 0; result == CUDA_SUCCESS && i < count; i++) {
		if (attributes[i] == CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES)
			types_correct(address, ret_data[i]);
	}
	return result;
}

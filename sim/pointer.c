/*
 * What can be asked of a pointer. Native memory and mappings of cuMemMap differ in many answers, as
 * they do in the driver: context, legacy IPC, ranges, SYNC_MEMOPS.
 */

#include "allocation.h"

#include <string.h>

/* Everything that is known about one address. */
struct subject {
	uint64_t address;
	const struct sim_allocation *allocation; /* NULL: a mapping of cuMemMap */
	const struct sim_range *range;           /* NULL: host memory */
};

static bool find(uint64_t address, struct subject *ret_subject)
{
	*ret_subject = (struct subject){
		.address = address,
		.allocation = sim_allocation_find(address),
		.range = sim_address_find(address),
	};
	return ret_subject->allocation != NULL ||
	       (ret_subject->range != NULL && ret_subject->range->is_vmm &&
		!sim_memory_is_multicast(ret_subject->range->memory));
}

static bool is_native(const struct subject *subject)
{
	return subject->allocation != NULL && subject->allocation->kind == SIM_ALLOCATION_LEGACY;
}

static bool is_host(const struct subject *subject)
{
	return subject->range == NULL ||
	       (subject->allocation == NULL && subject->range->memory->device < 0);
}

static bool is_managed(const struct subject *subject)
{
	return subject->allocation != NULL && subject->allocation->kind == SIM_ALLOCATION_MANAGED;
}

static CUresult get_context(const struct subject *subject, uint64_t *ret_value)
{
	const struct sim_allocation *allocation = subject->allocation;

	*ret_value = allocation != NULL && allocation->kind != SIM_ALLOCATION_POOL
			     ? (uint64_t)(uintptr_t)allocation->context
			     : 0;
	return CUDA_SUCCESS;
}

static CUresult get_memory_type(const struct subject *subject, uint64_t *ret_value)
{
	*ret_value = is_host(subject) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
	return CUDA_SUCCESS;
}

static CUresult get_device_pointer(const struct subject *subject, uint64_t *ret_value)
{
	*ret_value = subject->address;
	return CUDA_SUCCESS;
}

static CUresult get_host_pointer(const struct subject *subject, uint64_t *ret_value)
{
	if (!is_host(subject) && !is_managed(subject))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_value = subject->address;
	return CUDA_SUCCESS;
}

static CUresult get_sync_memops(const struct subject *subject, uint64_t *ret_value)
{
	/* Copies of managed memory are always synchronous. */
	*ret_value = is_managed(subject) ||
		     (subject->allocation != NULL && subject->allocation->sync_memops);
	return CUDA_SUCCESS;
}

static CUresult get_id(const struct subject *subject, uint64_t *ret_value)
{
	*ret_value =
		subject->allocation != NULL ? subject->allocation->id : subject->range->memory->id;
	return CUDA_SUCCESS;
}

static CUresult get_managed(const struct subject *subject, uint64_t *ret_value)
{
	*ret_value = is_managed(subject);
	return CUDA_SUCCESS;
}

static CUresult get_ordinal(const struct subject *subject, uint64_t *ret_value)
{
	int device = subject->allocation != NULL ? subject->allocation->context->device
						 : subject->range->memory->device;

	*ret_value = (uint64_t)(int64_t)device;
	return CUDA_SUCCESS;
}

static CUresult get_native(const struct subject *subject, uint64_t *ret_value)
{
	*ret_value = is_native(subject);
	return CUDA_SUCCESS;
}

/* As requested; of a mapping, the whole reservation. */
static CUresult get_range_start(const struct subject *subject, uint64_t *ret_value)
{
	*ret_value = subject->allocation != NULL
			     ? subject->allocation->span.start
			     : sim_address_reservation(subject->address)->span.start;
	return CUDA_SUCCESS;
}

static CUresult get_range_size(const struct subject *subject, uint64_t *ret_value)
{
	*ret_value = subject->allocation != NULL
			     ? subject->allocation->span.bytes
			     : sim_address_reservation(subject->address)->span.bytes;
	return CUDA_SUCCESS;
}

static CUresult get_mapped(const struct subject *subject, uint64_t *ret_value)
{
	(void)subject;
	*ret_value = 1;
	return CUDA_SUCCESS;
}

static CUresult get_handle_types(const struct subject *subject, uint64_t *ret_value)
{
	*ret_value = subject->range != NULL
			     ? subject->range->memory->properties.requestedHandleTypes
			     : 0;
	return CUDA_SUCCESS;
}

static CUresult get_rdma(const struct subject *subject, uint64_t *ret_value)
{
	*ret_value = is_native(subject) ||
		     (subject->range != NULL &&
		      subject->range->memory->properties.allocFlags.gpuDirectRDMACapable != 0);
	return CUDA_SUCCESS;
}

static CUresult get_access(const struct subject *subject, uint64_t *ret_value)
{
	const struct sim_context *current = sim_context_current();

	*ret_value = subject->range != NULL && subject->range->is_vmm && current != NULL
			     ? subject->range->device_rights[current->device]
			     : CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
	return CUDA_SUCCESS;
}

static CUresult get_pool(const struct subject *subject, uint64_t *ret_value)
{
	*ret_value =
		subject->allocation != NULL ? (uint64_t)(uintptr_t)subject->allocation->pool : 0;
	return CUDA_SUCCESS;
}

static CUresult get_mapping_start(const struct subject *subject, uint64_t *ret_value)
{
	*ret_value = subject->range != NULL ? subject->range->span.start
					    : subject->allocation->span.start;
	return CUDA_SUCCESS;
}

static CUresult get_mapping_size(const struct subject *subject, uint64_t *ret_value)
{
	*ret_value = subject->range != NULL ? subject->range->span.bytes
					    : subject->allocation->span.bytes;
	return CUDA_SUCCESS;
}

struct attribute {
	CUpointer_attribute attribute;
	unsigned bytes; /* how much is written */
	CUresult (*get)(const struct subject *subject, uint64_t *ret_value);
};

static const struct attribute attributes[] = {
	{CU_POINTER_ATTRIBUTE_CONTEXT, 8, get_context},
	{CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 4, get_memory_type},
	{CU_POINTER_ATTRIBUTE_DEVICE_POINTER, 8, get_device_pointer},
	{CU_POINTER_ATTRIBUTE_HOST_POINTER, 8, get_host_pointer},
	{CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, 4, get_sync_memops},
	{CU_POINTER_ATTRIBUTE_BUFFER_ID, 8, get_id},
	{CU_POINTER_ATTRIBUTE_IS_MANAGED, 4, get_managed},
	{CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, 4, get_ordinal},
	{CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, 4, get_native},
	{CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, 8, get_range_start},
	{CU_POINTER_ATTRIBUTE_RANGE_SIZE, 8, get_range_size},
	{CU_POINTER_ATTRIBUTE_MAPPED, 4, get_mapped},
	{CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, 8, get_handle_types},
	{CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, 4, get_rdma},
	{CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, 4, get_access},
	{CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, 8, get_pool},
	{CU_POINTER_ATTRIBUTE_MAPPING_SIZE, 8, get_mapping_size},
	{CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, 8, get_mapping_start},
	{CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, 8, get_id},
	{CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, 4, get_native},
};

static const struct attribute *attribute_find(CUpointer_attribute wanted)
{
	for (size_t i = 0; i < ARRAY_COUNT(attributes); i++)
		if (attributes[i].attribute == wanted)
			return &attributes[i];
	return NULL;
}

/* What STASIS_SIM_BREAK makes of an attribute's value. */
static uint64_t break_value(CUpointer_attribute attribute, uint64_t value)
{
	static const struct {
		const char *name;
		CUpointer_attribute attribute;
		bool is_always_same; /* else the lowest bit is wrong */
	} rows[] = {
		{"pointer_context", CU_POINTER_ATTRIBUTE_CONTEXT, false},
		{"custom_view_has_no_context", CU_POINTER_ATTRIBUTE_CONTEXT, false},
		{"pointer_ipc_capable", CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, false},
		{"pointer_handle_types", CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, false},
		{"pointer_rdma", CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, false},
		{"pointer_rdma_flagged", CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, false},
		{"pointer_decompress", CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, false},
		{"pointer_memory_types", CU_POINTER_ATTRIBUTE_MEMORY_TYPE, true},
		{"pointer_ordinal", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, false},
		{"managed_is_told", CU_POINTER_ATTRIBUTE_IS_MANAGED, false},
		{"range_of_native", CU_POINTER_ATTRIBUTE_RANGE_SIZE, false},
		{"range_of_mapping", CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, false},
		{"pool_of_pointer", CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, true},
		{"buffer_ids", CU_POINTER_ATTRIBUTE_BUFFER_ID, true},
		{"block_ids", CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, true},
	};

	for (size_t i = 0; i < ARRAY_COUNT(rows); i++)
		if (rows[i].attribute == attribute && sim_breaks(rows[i].name))
			value = rows[i].is_always_same ? 1 : value ^ 1;
	return value;
}

static CUresult get(void *ret_data, CUpointer_attribute wanted, CUdeviceptr pointer)
{
	const struct attribute *attribute = attribute_find(wanted);
	struct subject subject;
	uint64_t value = 0;
	CUresult result;

	if (ret_data == NULL || attribute == NULL || !find(pointer, &subject))
		return CUDA_ERROR_INVALID_VALUE;
	result = attribute->get(&subject, &value);
	if (sim_breaks_something())
		value = break_value(wanted, value);
	if (result == CUDA_SUCCESS)
		memcpy(ret_data, &value, attribute->bytes);
	return result;
}

SIM_API CUresult cuPointerGetAttribute(void *ret_data, CUpointer_attribute attribute,
				       CUdeviceptr pointer)
{
	return SIM_CALL_LOCKED(SIM_CALL_PASSES, SIM_NEEDS_CONTEXT,
			       get(ret_data, attribute, pointer));
}

/* Unlike the single query this one answers zeros for what it does not know. */
static CUresult get_many(unsigned count, const CUpointer_attribute *wanted, void **ret_data,
			 CUdeviceptr pointer)
{
	if (count == 0 || wanted == NULL || ret_data == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	for (unsigned i = 0; i < count; i++) {
		const struct attribute *attribute = attribute_find(wanted[i]);

		if (attribute == NULL || ret_data[i] == NULL)
			return CUDA_ERROR_INVALID_VALUE;
		memset(ret_data[i], 0, attribute->bytes);
		(void)get(ret_data[i], wanted[i], pointer);
	}
	return CUDA_SUCCESS;
}

SIM_API CUresult cuPointerGetAttributes(unsigned int count, CUpointer_attribute *attributes_wanted,
					void **ret_data, CUdeviceptr pointer)
{
	return SIM_CALL_LOCKED(SIM_CALL_PASSES, SIM_NEEDS_CONTEXT,
			       get_many(count, attributes_wanted, ret_data, pointer));
}

static CUresult set(const void *value, CUpointer_attribute attribute, CUdeviceptr pointer)
{
	struct sim_allocation *allocation = sim_allocation_find(pointer);
	const struct sim_range *range = sim_address_find(pointer);

	if (value == NULL || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS)
		return CUDA_ERROR_INVALID_VALUE;
	if (allocation == NULL)
		return range != NULL ? CUDA_ERROR_NOT_SUPPORTED : CUDA_ERROR_INVALID_VALUE;
	allocation->sync_memops = *(const int *)value != 0;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
				       CUdeviceptr pointer)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, set(value, attribute, pointer));
}

static CUresult address_range(CUdeviceptr *ret_start, size_t *ret_bytes, CUdeviceptr pointer)
{
	struct subject subject;
	const struct sim_span *span;

	if (!find(pointer, &subject))
		return CUDA_ERROR_NOT_FOUND;
	span = subject.allocation != NULL ? &subject.allocation->span : &subject.range->span;
	if (subject.allocation == NULL && sim_breaks("address_range_of_mapping"))
		span = &sim_address_reservation(pointer)->span;
	if (ret_start != NULL)
		*ret_start = span->start;
	if (ret_bytes != NULL)
		*ret_bytes =
			sim_breaks("address_range") ? sim_round_up(span->bytes, 512) : span->bytes;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuMemGetAddressRange_v2(CUdeviceptr *ret_start, size_t *ret_bytes,
					 CUdeviceptr pointer)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       address_range(ret_start, ret_bytes, pointer));
}

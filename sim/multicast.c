/*
 * Multicast objects: memory of several GPUs behind one address. The object is a memory object whose file is
 * the state of its team (team.h); members stay referenced while they are bound.
 */

#include "multicast.h"

#include <stdlib.h>
#include <time.h>

#include "config.h"
#include "team.h"
#include "vmm.h"

/* The driver's steps: what an object is asked for, and what it then has room for. */
#define CAPACITY_STEP (512ull << 20)
#define WAIT_NS 1000000

struct binding {
	struct binding *next;
	struct sim_memory *object;
	struct sim_memory *member; /* a reference is held */
	int device;
	uint64_t offset;
	uint64_t bytes;
};

static struct binding *bindings;

static bool is_supported(void)
{
	return sim_config()->has_multicast;
}

static CUresult check_properties(const CUmulticastObjectProp *properties)
{
	if (!is_supported())
		return CUDA_ERROR_NOT_SUPPORTED;
	if (properties == NULL || properties->flags != 0 || properties->size == 0 ||
	    properties->size % SIM_GRANULARITY != 0 ||
	    properties->size > SIM_DEVICES_MAX * sim_config()->memory_bytes ||
	    properties->numDevices > (unsigned)sim_config()->device_count)
		return CUDA_ERROR_INVALID_VALUE;
	if (properties->numDevices == 0 && !sim_breaks("multicast_create"))
		return CUDA_ERROR_INVALID_VALUE;
	if ((properties->handleTypes & CU_MEM_HANDLE_TYPE_FABRIC) != 0)
		return CUDA_ERROR_NOT_PERMITTED; /* as where no fabric manager runs */
	if ((properties->handleTypes &
	     ~(unsigned long long)CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static CUresult create(CUmemGenericAllocationHandle *ret_handle,
		       const CUmulticastObjectProp *properties)
{
	CUmemAllocationProp as_memory = {.type = CU_MEM_ALLOCATION_TYPE_PINNED};
	struct sim_memory *object = NULL;
	int team_fd = -1;
	CUresult result = check_properties(properties);

	if (result == CUDA_SUCCESS && ret_handle == NULL)
		result = CUDA_ERROR_INVALID_VALUE;
	if (result == CUDA_SUCCESS)
		result = sim_team_new(properties->numDevices, &team_fd);
	if (result != CUDA_SUCCESS)
		return result;
	as_memory.requestedHandleTypes = (CUmemAllocationHandleType)properties->handleTypes;
	result = sim_memory_adopt(SIM_MEMORY_MULTICAST, &as_memory,
				  sim_round_up(properties->size, CAPACITY_STEP), 0, team_fd, -1,
				  &object);
	if (result != CUDA_SUCCESS)
		return result;
	result = sim_vmm_hold(object, ret_handle);
	sim_memory_unref(object);
	return result;
}

SIM_API CUresult cuMulticastCreate(CUmemGenericAllocationHandle *ret_handle,
				   const CUmulticastObjectProp *properties)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, create(ret_handle, properties));
}

static CUresult get_object(CUmemGenericAllocationHandle handle, struct sim_memory **ret_object)
{
	CUresult result =
		is_supported() ? sim_vmm_get(handle, ret_object) : CUDA_ERROR_NOT_SUPPORTED;

	if (result == CUDA_SUCCESS && !sim_memory_is_multicast(*ret_object))
		result = CUDA_ERROR_INVALID_VALUE;
	return result;
}

static CUresult add_device(CUmemGenericAllocationHandle handle, CUdevice device)
{
	struct sim_memory *object = NULL;
	CUresult result = get_object(handle, &object);

	if (result != CUDA_SUCCESS)
		return result;
	if (!sim_device_valid(device))
		return CUDA_ERROR_INVALID_DEVICE;
	return sim_team_add(object->fd, sim_core.devices[device].physical);
}

SIM_API CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle multicast, CUdevice device)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, add_device(multicast, device));
}

/* Until every GPU of the team was added, by whichever process. The core lock is not held meanwhile. */
static CUresult wait_for_team(struct sim_memory *object)
{
	const struct timespec pause = {.tv_nsec = WAIT_NS};

	while (!sim_team_is_complete(object->fd)) {
		if (sim_breaks("multicast_bind_waits"))
			return CUDA_ERROR_NOT_READY;
		(void)nanosleep(&pause, NULL);
	}
	return CUDA_SUCCESS;
}

/* What both kinds of bind come to; the member and what is bound of it are known. */
struct bind {
	struct sim_memory *object;
	struct sim_memory *member;
	uint64_t member_offset;
	int device; /* an ordinal; -1: the member's */
	uint64_t offset;
	uint64_t bytes;
};

static CUresult bind_check(struct bind *bind, unsigned long long flags)
{
	const struct sim_memory *member = bind->member;

	if (flags != 0 || bind->bytes == 0 ||
	    (bind->offset | bind->member_offset | bind->bytes) % SIM_GRANULARITY != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (sim_memory_is_multicast(member) || member->device < 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (bind->device < 0)
		bind->device = member->device;
	if (!sim_device_valid(bind->device))
		return CUDA_ERROR_INVALID_DEVICE;
	if (sim_breaks("multicast_bind_device"))
		bind->device = member->device;
	if (bind->device != member->device || bind->bytes > member->bytes ||
	    bind->member_offset > member->bytes - bind->bytes ||
	    bind->bytes > bind->object->bytes || bind->offset > bind->object->bytes - bind->bytes)
		return CUDA_ERROR_INVALID_VALUE;
	return CUDA_SUCCESS;
}

static struct sim_team_member as_member(const struct binding *binding, uint64_t member_offset)
{
	return (struct sim_team_member){
		.device = sim_core.devices[binding->device].physical,
		.fd = binding->member->fd,
		.fd_offset = binding->member->offset + member_offset,
		.offset = binding->offset,
		.bytes = binding->bytes,
	};
}

static CUresult bind_do(const struct bind *bind)
{
	struct binding *binding = malloc(sizeof(*binding));
	struct sim_team_member member;
	CUresult result;

	if (binding == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	*binding = (struct binding){
		.next = bindings,
		.object = bind->object,
		.member = bind->member,
		.device = bind->device,
		.offset = bind->offset,
		.bytes = bind->bytes,
	};
	member = as_member(binding, bind->member_offset);
	result = sim_team_bind(bind->object->fd, &member);
	if (result != CUDA_SUCCESS) {
		free(binding);
		return result;
	}
	sim_memory_ref(bind->member);
	bindings = binding;
	return CUDA_SUCCESS;
}

/* Waits without the core lock; object and member are referenced, so that they stay what they are. */
static CUresult bind_waiting(struct bind *bind, unsigned long long flags)
{
	CUresult result = bind_check(bind, flags);

	if (result != CUDA_SUCCESS)
		return result;
	sim_memory_ref(bind->object);
	sim_memory_ref(bind->member);
	sim_core_unlock();
	result = wait_for_team(bind->object);
	sim_core_lock();
	if (result == CUDA_SUCCESS)
		result = bind_do(bind);
	sim_memory_unref(bind->member);
	sim_memory_unref(bind->object);
	return result;
}

static CUresult bind_memory(CUmemGenericAllocationHandle multicast,
			    CUmemGenericAllocationHandle memory, struct bind *bind,
			    unsigned long long flags)
{
	CUresult result = get_object(multicast, &bind->object);

	if (result == CUDA_SUCCESS)
		result = sim_vmm_get(memory, &bind->member);
	return result == CUDA_SUCCESS ? bind_waiting(bind, flags) : result;
}

static CUresult bind_address(CUmemGenericAllocationHandle multicast, CUdeviceptr address,
			     struct bind *bind, unsigned long long flags)
{
	const struct sim_range *range = sim_address_find(address);
	CUresult result = get_object(multicast, &bind->object);

	if (result != CUDA_SUCCESS)
		return result;
	if (range == NULL || bind->bytes > sim_span_end(&range->span) - address)
		return CUDA_ERROR_INVALID_VALUE;
	bind->member = range->memory;
	bind->member_offset = range->memory_offset + (address - range->span.start);
	if (sim_breaks("multicast_bind_address"))
		bind->member_offset = 0;
	return bind_waiting(bind, flags);
}

SIM_API CUresult cuMulticastBindMem(CUmemGenericAllocationHandle multicast, size_t offset,
				    CUmemGenericAllocationHandle memory, size_t memory_offset,
				    size_t bytes, unsigned long long flags)
{
	struct bind bind = {
		.device = -1, .member_offset = memory_offset, .offset = offset, .bytes = bytes};

	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT,
			       bind_memory(multicast, memory, &bind, flags));
}

/* A device that is given is never taken for "the member's". */
static int given(CUdevice device)
{
	return device < 0 ? SIM_DEVICES_MAX : device;
}

SIM_API CUresult cuMulticastBindMem_v2(CUmemGenericAllocationHandle multicast, CUdevice device,
				       size_t offset, CUmemGenericAllocationHandle memory,
				       size_t memory_offset, size_t bytes, unsigned long long flags)
{
	struct bind bind = {.device = given(device),
			    .member_offset = memory_offset,
			    .offset = offset,
			    .bytes = bytes};

	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT,
			       bind_memory(multicast, memory, &bind, flags));
}

SIM_API CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle multicast, size_t offset,
				     CUdeviceptr address, size_t bytes, unsigned long long flags)
{
	struct bind bind = {.device = -1, .offset = offset, .bytes = bytes};

	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT,
			       bind_address(multicast, address, &bind, flags));
}

SIM_API CUresult cuMulticastBindAddr_v2(CUmemGenericAllocationHandle multicast, CUdevice device,
					size_t offset, CUdeviceptr address, size_t bytes,
					unsigned long long flags)
{
	struct bind bind = {.device = given(device), .offset = offset, .bytes = bytes};

	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT,
			       bind_address(multicast, address, &bind, flags));
}

static void remove_at(struct binding **at)
{
	struct binding *binding = *at;
	struct sim_team_member member = as_member(binding, 0);

	*at = binding->next;
	sim_team_unbind(binding->object->fd, &member);
	sim_memory_unref(binding->member);
	free(binding);
}

/* By whichever handle of the object it was made. */
static bool is_of(const struct binding *binding, const struct sim_memory *object)
{
	if (sim_breaks("multicast_second_import"))
		return binding->object == object;
	return sim_team_is_same(binding->object->fd, object->fd);
}

/* A whole binding, and nothing else. */
static CUresult unbind(CUmemGenericAllocationHandle handle, CUdevice device, uint64_t offset,
		       uint64_t bytes)
{
	bool is_cut_allowed = sim_breaks("multicast_unbind_whole");
	struct sim_memory *object = NULL;
	CUresult result = get_object(handle, &object);

	if (result != CUDA_SUCCESS)
		return result;
	for (struct binding **at = &bindings; *at != NULL; at = &(*at)->next) {
		if ((*at)->device != device || (*at)->offset != offset ||
		    ((*at)->bytes != bytes && !is_cut_allowed) || !is_of(*at, object))
			continue;
		remove_at(at);
		return CUDA_SUCCESS;
	}
	return CUDA_ERROR_INVALID_VALUE;
}

SIM_API CUresult cuMulticastUnbind(CUmemGenericAllocationHandle multicast, CUdevice device,
				   size_t offset, size_t bytes)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT,
			       unbind(multicast, device, offset, bytes));
}

/* What else of this process stands for the same object: it was imported again. NULL: nothing. */
static struct sim_memory *find_other(const struct sim_memory *object)
{
	struct sim_memory *other = sim_memory_first();

	while (other != NULL &&
	       (other == object || other->references == 0 || !sim_memory_is_multicast(other) ||
		!sim_team_is_same(other->fd, object->fd)))
		other = other->next;
	return other;
}

void sim_multicast_forget(const struct sim_memory *object)
{
	struct sim_memory *other = find_other(object);
	struct binding **at = &bindings;

	while (*at != NULL) {
		if ((*at)->object == object && other == NULL) {
			remove_at(at);
			continue;
		}
		if ((*at)->object == object)
			(*at)->object = other;
		at = &(*at)->next;
	}
}

static CUresult granularity(size_t *ret_bytes, const CUmulticastObjectProp *properties,
			    CUmulticastGranularity_flags option)
{
	CUresult result = check_properties(properties);

	if (result != CUDA_SUCCESS)
		return result;
	if (ret_bytes == NULL || (unsigned)option > CU_MULTICAST_GRANULARITY_RECOMMENDED)
		return CUDA_ERROR_INVALID_VALUE;
	*ret_bytes = option == CU_MULTICAST_GRANULARITY_MINIMUM ? SIM_GRANULARITY : CAPACITY_STEP;
	if (sim_breaks("multicast_granularity"))
		*ret_bytes = 1;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuMulticastGetGranularity(size_t *ret_bytes,
					   const CUmulticastObjectProp *properties,
					   CUmulticastGranularity_flags option)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT,
			       granularity(ret_bytes, properties, option));
}

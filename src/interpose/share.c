/*
 * The handlers of export and import. The application's descriptors are tickets (wire/ticket.h); the driver's own
 * descriptor goes from the creator's peer thread to the importer, when it imports. The importer keeps it with
 * its record, so that memory whose creator let go of it can still be handed out here.
 */

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "driver/cuda_error.h"
#include "interpose/calls.h"
#include "interpose/control.h"
#include "interpose/descriptors.h"
#include "interpose/devices.h"
#include "interpose/handlers.h"
#include "interpose/identity.h"
#include "interpose/objects.h"
#include "interpose/peer.h"
#include "interpose/phases.h"
#include "interpose/registry.h"
#include "wire/mark.h"
#include "wire/ticket.h"

/* ---- export ---- */

/* As the driver's descriptors are: not close-on-exec. */
static CUresult ticket_give(const struct stasis_wire_ticket *ticket, int *ret_fd)
{
	int fd;

	if (stasis_wire_ticket_create(ticket, &fd, NULL) != 0)
		return CUDA_ERROR_OPERATING_SYSTEM;
	(void)fcntl(fd, F_SETFD, 0);
	*ret_fd = fd;
	return CUDA_SUCCESS;
}

static bool is_exportable(const struct stasis_object *object)
{
	if (object->kind == STASIS_OBJECT_MULTICAST)
		return object->multicast.handleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
	/* To the driver an import has no handle types; what came by a ticket goes by a ticket. */
	return object->kind == STASIS_OBJECT_ALLOCATION &&
	       (object->is_importer ||
		object->prop.requestedHandleTypes == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
}

static CUresult export_ticket(struct stasis_object *object, int *ret_fd)
{
	struct stasis_wire_ticket ticket = {
		.kind = object->kind == STASIS_OBJECT_MULTICAST ? STASIS_WIRE_TICKET_MULTICAST
								: STASIS_WIRE_TICKET_ALLOCATION,
		.participant = object->creator,
		.object = object->id,
		.bytes = object->bytes,
		.device_count = object->multicast.numDevices,
		.handle_types = (uint32_t)object->multicast.handleTypes,
		.flags = object->multicast.flags,
	};
	bool is_reachable;
	CUresult result;

	if (!is_exportable(object))
		return CUDA_ERROR_INVALID_VALUE;
	result = ticket_give(&ticket, ret_fd);
	if (result != CUDA_SUCCESS)
		return result;
	stasis_registry_lock();
	stasis_object_mark_shared(object);
	stasis_registry_unlock();
	/* A socket that cannot be had is tried for again with the next call, and INSPECT tells of it. */
	is_reachable = stasis_peer_ensure(NULL) == 0;
	(void)is_reachable;
	return CUDA_SUCCESS;
}

CUresult
stasis_handle_cuMemExportToShareableHandle(__typeof__(cuMemExportToShareableHandle) *target,
					   void *ret_shareable, CUmemGenericAllocationHandle handle,
					   CUmemAllocationHandleType type, unsigned long long flags)
{
	struct stasis_use use;
	CUresult result;

	if (!stasis_handle_is_virtual(handle))
		return target(ret_shareable, handle, type, flags);
	if (!ret_shareable || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	if (!stasis_use_begin(handle, &use))
		return CUDA_ERROR_INVALID_VALUE;
	result = export_ticket(use.object, ret_shareable);
	stasis_use_end(&use);
	return result;
}

/* ---- import ---- */

/* One more handle of an object that is here already; false: it is not. */
static bool alias_make(const struct stasis_id *id, uint64_t *ret_handle, CUresult *ret_result)
{
	struct stasis_handle *handle = stasis_handle_new();
	struct stasis_object *object;

	stasis_registry_lock();
	object = stasis_object_find(id);
	*ret_result = CUDA_SUCCESS;
	if (object && handle) {
		handle->is_import = true;
		*ret_handle = stasis_handle_add(object, ptr_steal(&handle));
	} else if (object) {
		*ret_result = CUDA_ERROR_OUT_OF_MEMORY;
	}
	stasis_registry_unlock();
	free(handle);
	return object != NULL;
}

/* Asks the driver what it is; the record is whole then. */
static CUresult import_describe(struct stasis_object *object)
{
	const struct stasis_calls *calls = stasis_calls_get();
	CUresult result;

	if (object->kind == STASIS_OBJECT_MULTICAST)
		return CUDA_SUCCESS;
	if (!calls)
		return CUDA_ERROR_NOT_INITIALIZED;
	result =
		calls->cuMemGetAllocationPropertiesFromHandle(&object->prop, object->driver_handle);
	if (result == CUDA_SUCCESS)
		stasis_device_uuid(&object->prop.location, &object->device);
	return result;
}

/* Puts a new import into the registry, or drops it where another thread was quicker. */
static CUresult import_add(struct stasis_object *object, uint64_t *ret_handle)
{
	struct stasis_gone twin = {.object = NULL};
	CUresult result = CUDA_SUCCESS;
	struct stasis_object *present;

	stasis_registry_lock();
	present = stasis_object_find(&object->id);
	if (!present) {
		*ret_handle = stasis_object_add(object);
	} else {
		struct stasis_handle *handle = object->handles;

		object->handles = NULL;
		*ret_handle = stasis_handle_add(present, handle);
		twin.object = object;
	}
	stasis_registry_unlock();
	(void)stasis_object_end(&twin, NULL);
	return result;
}

static CUresult import_by(__typeof__(cuMemImportFromShareableHandle) *target,
			  struct stasis_object *object, int fd, uint64_t *ret_handle)
{
	CUresult result = target(&object->driver_handle, (void *)(intptr_t)fd,
				 CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
	struct stasis_gone gone = {.object = object};

	if (result != CUDA_SUCCESS) {
		(void)stasis_object_end(&gone, NULL);
		return result;
	}
	object->has_driver_handle = true;
	/* It would keep the driver's object alive, and its creator alone hands it out and makes it anew. */
	if (object->kind == STASIS_OBJECT_MULTICAST)
		stasis_descriptors_close(&object->descriptor);
	result = import_describe(object);
	if (result != CUDA_SUCCESS) {
		(void)stasis_object_end(&gone, NULL);
		return result;
	}
	return import_add(object, ret_handle);
}

static CUresult import_ticket(__typeof__(cuMemImportFromShareableHandle) *target,
			      const struct stasis_wire_ticket *ticket, uint64_t *ret_handle)
{
	const struct stasis_identity *identity = stasis_identity_get();
	struct stasis_object *object;
	CUresult result;
	int fd;

	if (alias_make(&ticket->object, ret_handle, &result))
		return result;
	/* Our own, and let go of: a ticket alone keeps nothing alive. */
	if (!identity || stasis_id_equal(&ticket->participant, &identity->participant))
		return CUDA_ERROR_INVALID_VALUE;
	object = stasis_object_new(ticket->kind == STASIS_WIRE_TICKET_MULTICAST
					   ? STASIS_OBJECT_MULTICAST
					   : STASIS_OBJECT_ALLOCATION);
	if (!object)
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (stasis_peer_fetch(&ticket->participant, &ticket->object,
			      stasis_clock_now_ns() + STASIS_PEER_FETCH_NS, &fd, &object->bytes,
			      NULL) != 0) {
		stasis_object_free(object);
		return CUDA_ERROR_INVALID_VALUE;
	}
	object->id = ticket->object;
	object->creator = ticket->participant;
	if (object->kind == STASIS_OBJECT_MULTICAST)
		object->multicast = (CUmulticastObjectProp){.numDevices = ticket->device_count,
							    .size = object->bytes,
							    .handleTypes = ticket->handle_types,
							    .flags = ticket->flags};
	object->is_importer = true;
	object->is_shared = true;
	object->descriptor = fd;
	(void)stasis_descriptors_add(fd);
	return import_by(target, object, fd, ret_handle);
}

/* A descriptor of the driver's own, from a program without the interposer. It stays the application's. */
static CUresult import_foreign(__typeof__(cuMemImportFromShareableHandle) *target, int fd,
			       uint64_t *ret_handle)
{
	struct stasis_object *object = stasis_object_new(STASIS_OBJECT_FOREIGN);

	if (!object || stasis_id_random(&object->id, NULL) != 0) {
		if (object)
			stasis_object_free(object);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	object->is_importer = true;
	return import_by(target, object, fd, ret_handle);
}

CUresult
stasis_handle_cuMemImportFromShareableHandle(__typeof__(cuMemImportFromShareableHandle) *target,
					     CUmemGenericAllocationHandle *ret_handle,
					     void *shareable, CUmemAllocationHandleType type)
{
	int fd = (int)(intptr_t)shareable;
	enum stasis_wire_ticket_verdict verdict;
	struct stasis_wire_ticket ticket;
	int saved_errno = errno;
	uint64_t handle = 0;
	CUresult result;

	stasis_control_start();
	if (!ret_handle || type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
		return target(ret_handle, shareable, type);
	if (stasis_wire_ticket_read(fd, &verdict, &ticket, NULL) != 0)
		result = CUDA_ERROR_INVALID_VALUE;
	else if (verdict == STASIS_WIRE_TICKET_FOREIGN)
		result = import_foreign(target, fd, &handle);
	else
		result = import_ticket(target, &ticket, &handle);
	if (result == CUDA_SUCCESS)
		*ret_handle = handle;
	errno = saved_errno;
	return result;
}

/* ---- what peers and the coordinator are given ---- */

static int kept_duplicate(const struct stasis_object *object, int *ret_fd, struct stasis_error *err)
{
	char text[STASIS_ID_TEXT_BYTES];
	int fd;

	if (!stasis_descriptors_is_ours(object->descriptor))
		return stasis_fail(err, STASIS_REFUSED,
				   "hand out the object %s: the program has closed descriptor %d, "
				   "which was kept for it",
				   stasis_id_format(&object->id, text), object->descriptor);
	fd = fcntl(object->descriptor, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		return stasis_fail_errno(err, STASIS_REFUSED,
					 "duplicate descriptor %d, which is kept for the object %s",
					 object->descriptor, stasis_id_format(&object->id, text));
	*ret_fd = fd;
	return 0;
}

/* The driver's descriptor for it, close-on-exec; the object is pinned or the gate shut. */
int stasis_object_export(struct stasis_object *object, int *ret_fd, struct stasis_error *err)
{
	const struct stasis_calls *calls = stasis_calls_get();
	CUresult result;
	int fd = -1;

	/* To the driver it is an import, which is never exported: the descriptor that brought it stands for that. */
	if (object->descriptor >= 0)
		return kept_duplicate(object, ret_fd, err);
	if (!calls)
		return stasis_fail(err, STASIS_REFUSED, "libcuda is not to be found");
	result = calls->cuMemExportToShareableHandle(&fd, object->driver_handle,
						     CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
	if (result != CUDA_SUCCESS)
		return stasis_fail_cuda(err, STASIS_REFUSED, result,
					"cuMemExportToShareableHandle");
	(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
	if (!stasis_wire_mark(fd)) {
		(void)stasis_fail_errno(err, STASIS_REFUSED, "mark a memory descriptor as ours");
		(void)close(fd);
		return -1;
	}
	*ret_fd = fd;
	return 0;
}

int stasis_phase_fetch(const struct stasis_id *id, int *ret_fd, uint64_t *ret_bytes,
		       struct stasis_error *err)
{
	char text[STASIS_ID_TEXT_BYTES];
	struct stasis_object *object;
	struct stasis_gone gone;
	int result;

	stasis_registry_lock();
	object = stasis_object_find(id);
	if (object && (!object->has_driver_handle || object->kind == STASIS_OBJECT_FOREIGN))
		object = NULL;
	if (object) {
		stasis_object_pin(object);
		stasis_object_mark_shared(object);
	}
	stasis_registry_unlock();
	if (!object)
		return stasis_fail(err, STASIS_REFUSED,
				   "the object %s is not, or not at present, held here",
				   stasis_id_format(id, text));
	result = stasis_object_export(object, ret_fd, err);
	if (result == 0)
		*ret_bytes = object->bytes;
	stasis_registry_lock();
	stasis_object_unpin(object, &gone);
	stasis_registry_unlock();
	(void)stasis_object_end(&gone, NULL);
	return result;
}

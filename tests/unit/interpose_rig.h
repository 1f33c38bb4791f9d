#ifndef STASIS_TESTS_INTERPOSE_RIG_H
#define STASIS_TESTS_INTERPOSE_RIG_H

/*
 * The interposer's records of memory over a driver that the test plays: it counts what is there and fails when
 * told to. The helpers stand for the application's calls and fail the test where those fail.
 */

#include "unit.h"

#include "interpose/calls.h"
#include "interpose/control.h"
#include "interpose/handlers.h"
#include "interpose/identity.h"
#include "interpose/objects.h"
#include "interpose/peer.h"
#include "interpose/phases.h"
#include "interpose/registry.h"
#include "wire/ticket.h"

#define BLOCK (UINT64_C(2) << 20)
#define BASE UINT64_C(0x7e9000000000)

struct rig_driver {
	unsigned long long last_handle;
	int handles; /* references that the driver counts */
	int maps;
	int created;
	int imported;
	int exported;
	int grants;
	CUmemAllocationHandleType last_types;
	int fail_at; /* the n-th call from now fails; 0: none */
	int bound;
	/* Multicast's calls, a word each: which, and its device or what stands for it; see the fakes. */
	char multicast[512];
	int pointer_device; /* what it says of any address; -1: it does not know */
};
extern struct rig_driver fake;

/* What a peer says that the object's size is; 0: no peer answers. */
extern uint64_t peer_bytes;

CUresult fake_create(CUmemGenericAllocationHandle *ret_handle, size_t bytes,
		     const CUmemAllocationProp *prop, unsigned long long flags);
CUresult fake_release(CUmemGenericAllocationHandle handle);
CUresult fake_map(CUdeviceptr address, size_t bytes, size_t offset,
		  CUmemGenericAllocationHandle handle, unsigned long long flags);
CUresult fake_unmap(CUdeviceptr address, size_t bytes);
CUresult fake_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc *access,
		     size_t count);
CUresult fake_export(void *ret_fd, CUmemGenericAllocationHandle handle,
		     CUmemAllocationHandleType type, unsigned long long flags);
CUresult fake_import(CUmemGenericAllocationHandle *ret_handle, void *shareable,
		     CUmemAllocationHandleType type);
CUresult fake_properties(CUmemAllocationProp *ret_prop, CUmemGenericAllocationHandle handle);
CUresult fake_retain(CUmemGenericAllocationHandle *ret_handle, void *address);
CUresult fake_uuid(CUuuid *ret_uuid, CUdevice device);
CUresult fake_multicast_create(CUmemGenericAllocationHandle *ret_handle,
			       const CUmulticastObjectProp *prop);
CUresult fake_multicast_add(CUmemGenericAllocationHandle object, CUdevice device);
CUresult fake_multicast_bind(CUmemGenericAllocationHandle object, size_t offset,
			     CUmemGenericAllocationHandle memory, size_t memory_offset,
			     size_t bytes, unsigned long long flags);
CUresult fake_multicast_bind2(CUmemGenericAllocationHandle object, CUdevice device, size_t offset,
			      CUmemGenericAllocationHandle memory, size_t memory_offset,
			      size_t bytes, unsigned long long flags);
CUresult fake_multicast_address(CUmemGenericAllocationHandle object, size_t offset,
				CUdeviceptr address, size_t bytes, unsigned long long flags);
CUresult fake_multicast_address2(CUmemGenericAllocationHandle object, CUdevice device,
				 size_t offset, CUdeviceptr address, size_t bytes,
				 unsigned long long flags);
CUresult fake_multicast_unbind(CUmemGenericAllocationHandle object, CUdevice device, size_t offset,
			       size_t bytes);
CUmemAllocationProp rig_prop_of(CUmemLocationType type, CUmemAllocationHandleType types);
CUmemGenericAllocationHandle rig_create(size_t bytes);
void rig_map(uint64_t address, size_t bytes, CUmemGenericAllocationHandle handle);
void rig_unmap(uint64_t address, size_t bytes);
void rig_release(CUmemGenericAllocationHandle handle);
void rig_grant(uint64_t address, size_t bytes, int device, CUmemAccess_flags flags);
int rig_ticket_of(CUmemGenericAllocationHandle handle);
/* A ticket of another participant's, whose id begins with 1, for an object whose id begins with 2. */
int rig_foreign_ticket(uint64_t bytes);
CUresult rig_import(int fd, CUmemGenericAllocationHandle *ret_handle);
int rig_begin(void **state);
int rig_end(void **state);

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_begin, rig_end)

#endif

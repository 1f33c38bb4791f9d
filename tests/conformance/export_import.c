/*
 * Description: memory shared by POSIX descriptors.
 */
#include <fcntl.h>
#include <stdint.h>
#include <sys/stat.h>
#include <unistd.h>

#include "behaviour.h"
#include "check.h"
#include "child.h"
#include "device.h"

#define BYTES (2 * T_BLOCK_BYTES)

static void export_is_descriptor(void)
{
	struct stat info;
	struct t_vmm vmm;
	int fd;

	(void)t_cuda();
	vmm = t_vmm(BYTES, T_FD_TYPE);
	fd = t_export(vmm.handle);
	T_SYS(fstat(fd, &info));
	T_TRUE(!S_ISREG(info.st_mode));
	T_TRUE(t_export(vmm.handle) != fd);
}

static void export_needs_type(void)
{
	struct t_vmm vmm;
	int fd = -1;

	(void)t_cuda();
	vmm = t_vmm(BYTES, CU_MEM_HANDLE_TYPE_NONE);
	T_IS(cuMemExportToShareableHandle(&fd, vmm.handle, T_FD_TYPE, 0), CUDA_ERROR_INVALID_VALUE);
}

static void export_flags(void)
{
	struct t_vmm vmm;
	int fd = -1;

	(void)t_cuda();
	vmm = t_vmm(BYTES, T_FD_TYPE);
	T_IS(cuMemExportToShareableHandle(&fd, vmm.handle, T_FD_TYPE, 1), CUDA_ERROR_INVALID_VALUE);
}

static void import_shows_bytes(void)
{
	CUmemGenericAllocationHandle handle;
	struct t_vmm vmm;
	CUdeviceptr first;
	CUdeviceptr second;
	int fd;

	(void)t_cuda();
	vmm = t_vmm(BYTES, T_FD_TYPE);
	fd = t_export(vmm.handle);
	handle = t_import(fd);
	first = t_map(handle, BYTES);
	second = t_map(t_import(fd), BYTES);
	t_fill(vmm.address, BYTES, 1);
	t_verify(first, BYTES, 1);
	t_fill(first, BYTES, 2);
	t_verify(second, BYTES, 2);
	t_verify(vmm.address, BYTES, 2);
}

static void import_properties(void)
{
	CUmemAllocationProp prop = {0};
	struct t_vmm vmm;

	(void)t_cuda();
	vmm = t_vmm(BYTES, T_FD_TYPE);
	T_OK(cuMemGetAllocationPropertiesFromHandle(&prop, t_import(t_export(vmm.handle))));
	T_EQ(prop.type, CU_MEM_ALLOCATION_TYPE_PINNED);
	T_EQ(prop.requestedHandleTypes, CU_MEM_HANDLE_TYPE_NONE);
	T_EQ(prop.location.type, CU_MEM_LOCATION_TYPE_DEVICE);
	T_EQ(prop.location.id, 0);
}

static void import_foreign(void)
{
	CUmemGenericAllocationHandle handle = 0;
	int fd;

	(void)t_cuda();
	fd = (int)T_SYS(open("/dev/null", O_RDWR | O_CLOEXEC));
	T_REFUSED(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)fd, T_FD_TYPE));
	T_REFUSED(cuMemImportFromShareableHandle(&handle, (void *)(intptr_t)-1, T_FD_TYPE));
}

static void import_exports_no_more(void)
{
	CUmemGenericAllocationHandle handle;
	struct t_vmm vmm;
	int fd;

	(void)t_cuda();
	vmm = t_vmm(BYTES, T_FD_TYPE);
	fd = t_export(vmm.handle);
	t_vmm_release(&vmm);
	handle = t_import(fd);
	T_SYS(close(fd));
	T_IS(cuMemExportToShareableHandle(&fd, handle, T_FD_TYPE, 0), CUDA_ERROR_INVALID_VALUE);
}

static void descriptor_holds_memory(void)
{
	struct t_vmm vmm;
	size_t before;
	int fd;

	(void)t_cuda();
	before = t_free_bytes();
	vmm = t_vmm(64 * T_MIB, T_FD_TYPE);
	t_fill(vmm.address, BYTES, 3);
	fd = t_export(vmm.handle);
	t_vmm_release(&vmm);
	T_TRUE(t_free_bytes() <= before - 64 * T_MIB);
	t_verify(t_map(t_import(fd), 64 * T_MIB), BYTES, 3);
}

static void descriptor_lets_go(void)
{
	struct t_vmm vmm;
	size_t before;
	int fd;

	(void)t_cuda();
	before = t_free_bytes();
	vmm = t_vmm(64 * T_MIB, T_FD_TYPE);
	fd = t_export(vmm.handle);
	t_vmm_release(&vmm);
	T_SYS(close(fd));
	T_TRUE(t_free_bytes() >= before - T_SLACK_BYTES);
}

/* The other process of the following: imports, checks seed 1, writes seed 2, says so, waits. */
static void import_and_answer(int fd, void *unused)
{
	CUdeviceptr address;

	(void)unused;
	(void)t_cuda();
	address = t_map(t_import(t_receive_fd(fd)), BYTES);
	t_verify(address, BYTES, 1);
	t_fill(address, BYTES, 2);
	t_say(fd, 'w');
	t_wait_end(fd);
}

static void peer_shares_bytes(void)
{
	struct t_child child = t_child_start(import_and_answer, NULL);
	struct t_vmm vmm;

	(void)t_cuda();
	vmm = t_vmm(BYTES, T_FD_TYPE);
	t_fill(vmm.address, BYTES, 1);
	t_send_fd(child.fd, t_export(vmm.handle));
	t_hear(child.fd, 'w');
	t_verify(vmm.address, BYTES, 2);
	t_child_join(&child);
}

static void create_and_export(int fd, void *unused)
{
	struct t_vmm vmm;

	(void)unused;
	(void)t_cuda();
	vmm = t_vmm(BYTES, T_FD_TYPE);
	t_fill(vmm.address, BYTES, 4);
	t_send_fd(fd, t_export(vmm.handle));
	t_wait_end(fd);
}

static void import_outlives_creator(void)
{
	struct t_child child = t_child_start(create_and_export, NULL);
	CUdeviceptr address;
	int fd;

	(void)t_cuda();
	fd = t_receive_fd(child.fd);
	address = t_map(t_import(fd), BYTES);
	T_SYS(close(fd));
	t_child_kill(&child);
	t_verify(address, BYTES, 4);
}

/* A process without CUDA that gives the descriptor back when asked. */
static void keep_descriptor(int fd, void *unused)
{
	int kept = t_receive_fd(fd);

	(void)unused;
	t_say(fd, 'k');
	t_hear(fd, 'b');
	t_send_fd(fd, kept);
	t_wait_end(fd);
}

static void keeper_without_cuda(void)
{
	struct t_child child = t_child_start(keep_descriptor, NULL);
	struct t_vmm vmm;
	int fd;

	(void)t_cuda();
	vmm = t_vmm(BYTES, T_FD_TYPE);
	t_fill(vmm.address, BYTES, 5);
	fd = t_export(vmm.handle);
	t_send_fd(child.fd, fd);
	t_hear(child.fd, 'k');
	T_SYS(close(fd));
	t_vmm_release(&vmm);
	t_say(child.fd, 'b');
	vmm.handle = t_import(t_receive_fd(child.fd));
	T_OK(cuMemMap(vmm.address, BYTES, 0, vmm.handle, 0));
	T_OK(cuMemSetAccess(vmm.address, BYTES,
			    &(CUmemAccessDesc){.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0},
					       .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE},
			    1));
	t_verify(vmm.address, BYTES, 5);
	t_child_join(&child);
}

static const struct t_behaviour behaviours[] = {
	{"export_is_descriptor", T_MEASURED, "each export is a new descriptor, and no regular file",
	 export_is_descriptor},
	{"export_needs_type", T_DOCUMENTED,
	 "memory created without a handle type cannot be exported: INVALID_VALUE",
	 export_needs_type},
	{"export_flags", T_DOCUMENTED, "an export refuses flags", export_flags},
	{"import_shows_bytes", T_MEASURED, "an import shows the exported memory, every time",
	 import_shows_bytes},
	{"import_properties", T_MEASURED, "an imported handle tells no handle types",
	 import_properties},
	{"import_foreign", T_DOCUMENTED, "a descriptor of something else cannot be imported",
	 import_foreign},
	{"import_exports_no_more", T_MEASURED,
	 "an imported handle cannot be exported: INVALID_VALUE", import_exports_no_more},
	{"descriptor_holds_memory", T_MEASURED,
	 "an export descriptor keeps memory alive that its owner let go of",
	 descriptor_holds_memory},
	{"descriptor_lets_go", T_MEASURED, "closing the last descriptor frees the memory",
	 descriptor_lets_go},
	{"peer_shares_bytes", T_MEASURED, "two processes read and write the same memory",
	 peer_shares_bytes},
	{"import_outlives_creator", T_DOCUMENTED, "an import outlives the process that exported",
	 import_outlives_creator},
	{"keeper_without_cuda", T_MEASURED,
	 "a process without CUDA can keep memory by holding its descriptor", keeper_without_cuda},
};

T_BEHAVIOURS_MAIN(behaviours)

/*
 * Two processes that share memory by descriptors: one makes it and fills it, the other maps it. Their parent uses no
 * CUDA, prints both pids, and with each line of its input lets both look at every byte; at the end of its
 * input all end. Exit status 0: every byte was right every time.
 */

#include <stdio.h>
#include <unistd.h>

#include "check.h"
#include "child.h"
#include "device.h"

#define BYTES (2 * T_BLOCK_BYTES)
#define SEED 7

static void verify_until_end(int fd, CUdeviceptr address)
{
	t_say(fd, 'r');
	while (t_hear_any(fd) == 'v') {
		t_verify(address, BYTES, SEED);
		t_say(fd, 'd');
	}
}

static void create(int fd, void *unused)
{
	struct t_vmm own;
	int descriptor;

	(void)unused;
	(void)t_cuda();
	own = t_vmm(BYTES, T_FD_TYPE);
	t_fill(own.address, BYTES, SEED);
	descriptor = t_export(own.handle);
	t_send_fd(fd, descriptor);
	T_SYS(close(descriptor));
	verify_until_end(fd, own.address);
}

static void import(int fd, void *unused)
{
	CUmemGenericAllocationHandle handle;
	CUdeviceptr address;
	int descriptor;

	(void)unused;
	(void)t_cuda();
	descriptor = t_receive_fd(fd);
	handle = t_import(descriptor);
	T_SYS(close(descriptor));
	address = t_map(handle, BYTES);
	/* The mapping keeps it. */
	T_OK(cuMemRelease(handle));
	verify_until_end(fd, address);
}

int main(void)
{
	struct t_child creator = t_child_start(create, NULL);
	struct t_child importer = t_child_start(import, NULL);
	int descriptor = t_receive_fd(creator.fd);
	int letter;

	t_send_fd(importer.fd, descriptor);
	T_SYS(close(descriptor));
	t_hear(creator.fd, 'r');
	t_hear(importer.fd, 'r');
	(void)printf("%d %d\n", (int)creator.pid, (int)importer.pid);
	(void)fflush(stdout);
	while ((letter = getchar()) != EOF) {
		if (letter != '\n')
			continue;
		t_say(creator.fd, 'v');
		t_say(importer.fd, 'v');
		t_hear(creator.fd, 'd');
		t_hear(importer.fd, 'd');
		(void)printf("verified\n");
		(void)fflush(stdout);
	}
	t_say(creator.fd, 'q');
	t_say(importer.fd, 'q');
	t_child_join(&creator);
	t_child_join(&importer);
	return 0;
}

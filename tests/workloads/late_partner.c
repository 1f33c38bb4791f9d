/*
 * Two processes that share memory, and the first one's kernel runs until the second one writes a word: which it does a
 * hundred calls after one of its calls was held for a while, as the gate of a suspend holds them. Their parent uses no
 * CUDA, prints both pids once the kernel runs, and ends them at the end of its input. Exit status 0: the kernel has
 * ended, and every other byte is as it was.
 */
#include <stdint.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#include "check.h"
#include "child.h"
#include "device.h"
#include "kernels.h"

#define SEED 11
#define HELD_MS 200
#define CALLS_AFTERWARDS 100
#define PAUSE_US 1000
#define NS_PER_MS 1000000
#define FLAG_BYTES 4096 /* where nothing else stands */

static void spin(CUdeviceptr flag)
{
	void *parameters[] = {&flag};
	CUmodule module = NULL;
	CUfunction kernel = NULL;

	T_OK(cuModuleLoadData(&module, kernels_ptx));
	T_OK(cuModuleGetFunction(&kernel, module, "stasis_spin"));
	T_OK(cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, NULL, parameters, NULL));
}

static void first(int fd, void *unused)
{
	struct t_vmm own;
	int descriptor;

	(void)unused;
	(void)t_cuda();
	own = t_vmm(T_BLOCK_BYTES, T_FD_TYPE);
	T_OK(cuMemsetD8_v2(own.address, 0, FLAG_BYTES));
	t_fill(own.address + FLAG_BYTES, own.bytes - FLAG_BYTES, SEED);
	descriptor = t_export(own.handle);
	t_send_fd(fd, descriptor);
	T_SYS(close(descriptor));
	t_hear(fd, 'g');
	spin(own.address);
	t_say(fd, 'r');
	T_OK(cuCtxSynchronize());
	t_hear(fd, 'v');
	t_verify(own.address + FLAG_BYTES, own.bytes - FLAG_BYTES, SEED);
}

static int64_t now_ms(void)
{
	struct timespec now;

	T_SYS(clock_gettime(CLOCK_MONOTONIC, &now));
	return (int64_t)now.tv_sec * 1000 + now.tv_nsec / NS_PER_MS;
}

/* Goes on calling the driver until a call was held, and then for a while. */
static void dawdle(void)
{
	int64_t held_ms = 0;

	for (int calls = 0; calls < CALLS_AFTERWARDS;) {
		int64_t begin_ms = now_ms();

		(void)t_free_bytes();
		if (held_ms < now_ms() - begin_ms)
			held_ms = now_ms() - begin_ms;
		if (held_ms >= HELD_MS)
			calls++;
		(void)usleep(PAUSE_US);
	}
}

static void second(int fd, void *unused)
{
	CUdeviceptr address;
	int descriptor;

	(void)unused;
	(void)t_cuda();
	descriptor = t_receive_fd(fd);
	address = t_map(t_import(descriptor), T_BLOCK_BYTES);
	T_SYS(close(descriptor));
	t_say(fd, 'r');
	dawdle();
	T_OK(cuMemsetD32_v2(address, 1, 1));
	t_hear(fd, 'v');
	t_verify(address + FLAG_BYTES, T_BLOCK_BYTES - FLAG_BYTES, SEED);
}

int main(void)
{
	struct t_child children[2];
	int descriptor;

	children[0] = t_child_start(first, NULL);
	children[1] = t_child_start(second, NULL);
	descriptor = t_receive_fd(children[0].fd);
	t_send_fd(children[1].fd, descriptor);
	T_SYS(close(descriptor));
	t_hear(children[1].fd, 'r');
	t_say(children[0].fd, 'g');
	t_hear(children[0].fd, 'r');
	(void)printf("%d %d\n", (int)children[0].pid, (int)children[1].pid);
	(void)fflush(stdout);
	while (getchar() != EOF)
		;
	for (int i = 0; i < 2; i++) {
		t_say(children[i].fd, 'v');
		t_child_join(&children[i]);
	}
	return 0;
}

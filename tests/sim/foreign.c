/*
 * Description: a process that holds an export of the driver's, or an RDMA device, is refused by name; others are not,
 * and nothing of theirs is changed.
 *
 * usage: foreign TOPIC
 */

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "check.h"
#include "child.h"
#include "device.h"
#include "driver/driver.h"
#include "group/foreign.h"
#include "wire/mark.h"

#define NOBODY 65534
#define SEED 5

/* ---- the process that is looked at ---- */

/* e: exports; c: closes that; m: marks it; v: verifies; any other letter: the end. */
static void run_target(int fd, void *unused)
{
	struct t_vmm own;
	int exported = -1;

	(void)unused;
	(void)t_cuda();
	own = t_vmm(T_BLOCK_BYTES, T_FD_TYPE);
	t_fill(own.address, own.bytes, SEED);
	t_send(fd, &exported, sizeof(exported));
	for (;;) {
		switch (t_hear_any(fd)) {
		case 'e':
			exported = t_export(own.handle);
			break;
		case 'c':
			T_SYS(close(exported));
			break;
		case 'm':
			T_TRUE(stasis_wire_mark(exported));
			break;
		case 'v':
			t_verify(own.address, own.bytes, SEED);
			break;
		default:
			return;
		}
		t_send(fd, &exported, sizeof(exported));
	}
}

/* ---- the coordinator ---- */

static struct stasis_driver driver;
static struct stasis_process process = STASIS_PROCESS_EMPTY;
static struct t_child target;
static struct stasis_error error;

static void driver_start(void)
{
	error = (struct stasis_error)STASIS_ERROR_INIT;
	T_EQ(stasis_driver_open(NULL, &driver, &error), 0);
	T_EQ(stasis_driver_start(&driver, &error), 0);
}

static int target_ask(char letter)
{
	int number;

	t_say(target.fd, letter);
	t_receive(target.fd, &number, sizeof(number));
	return number;
}

static void target_start(void)
{
	int number;

	target = t_child_start(run_target, NULL);
	t_receive(target.fd, &number, sizeof(number));
	driver_start();
	T_EQ(stasis_process_open(target.pid, &process, &error), 0);
}

static void target_finish(void)
{
	stasis_process_close(&process);
	t_say(target.fd, 'q');
	t_child_join(&target);
}

static int check(bool releases_memory)
{
	error = (struct stasis_error)STASIS_ERROR_INIT;
	return stasis_foreign_check(&driver, &process, releases_memory, &error);
}

static void passes(void)
{
	if (check(true) != 0)
		t_fail("refused: %s", error.text);
}

static void refused_with(int result, const char *text)
{
	T_EQ(result, -1);
	T_EQ(error.status, STASIS_REFUSED);
	if (!strstr(error.text, text))
		t_fail("expected '%s', got '%s'", text, error.text);
}

static size_t descriptors_open(void)
{
	size_t count = 0;

	for (int fd = 0; fd < 1024; fd++)
		count += fcntl(fd, F_GETFD) >= 0;
	return count;
}

/* Found whenever it is open; the target keeps it, and its memory is as it was. */
static void export_is_found(void)
{
	char text[64];
	size_t before;
	int number;

	target_start();
	passes();
	before = descriptors_open();
	for (int i = 0; i < 2; i++) {
		number = target_ask('e');
		(void)snprintf(text, sizeof(text), "process %d: its descriptor %d ('",
			       (int)target.pid, number);
		refused_with(check(false), text);
		T_TRUE(strstr(error.text, "start every program that shares") != NULL);
		refused_with(check(true), text);
		(void)target_ask('v');
		(void)target_ask('c');
		passes();
	}
	T_EQ(descriptors_open(), before);
	target_finish();
}

/* What a participant made for its peers is known by its mark. */
static void ours_is_passed_over(void)
{
	target_start();
	(void)target_ask('e');
	refused_with(check(true), "is an export of GPU memory");
	(void)target_ask('m');
	passes();
	target_finish();
}

/* Sockets with anything in them are not exports, and lose nothing. */
static void other_sockets_are_left(void)
{
	target_start();
	for (int i = 0; i < 10; i++)
		t_say(target.fd, 'v');
	passes();
	for (int i = 0; i < 10; i++)
		t_receive(target.fd, &(int){0}, sizeof(int));
	passes();
	target_finish();
}

/* With none left nothing can be listed; with too few the driver might fail for that, and is not asked. */
static void no_descriptor_left(void)
{
	struct rlimit limit = {.rlim_cur = 256, .rlim_max = 256};
	int last = -1;
	int fd;

	target_start();
	(void)target_ask('e');
	T_SYS(setrlimit(RLIMIT_NOFILE, &limit));
	while ((fd = dup(0)) >= 0)
		last = fd;
	T_EQ(errno, EMFILE);
	refused_with(check(true), "list its descriptors");
	T_EQ(error.os_errno, EMFILE);
	for (int i = 0; i < 16; i++) {
		T_SYS(close(last - i));
		refused_with(check(true), "fewer than 16 left (raise 'ulimit -n')");
		T_EQ(error.os_errno, EMFILE);
	}
	T_SYS(close(last - 16));
	refused_with(check(true), "is an export of GPU memory");
	exit(0);
}

static void run_hidden(int fd, void *unused)
{
	(void)unused;
	T_SYS(prctl(PR_SET_DUMPABLE, 0));
	t_say(fd, 'r');
	(void)t_hear_any(fd);
}

/* One that may not be traced. */
static void no_right_to_look(void)
{
	if (geteuid() == 0) {
		T_SYS(setgroups(0, NULL));
		T_SYS(setgid(NOBODY));
		T_SYS(setuid(NOBODY));
	}
	target = t_child_start(run_hidden, NULL);
	t_hear(target.fd, 'r');
	error = (struct stasis_error)STASIS_ERROR_INIT;
	T_EQ(stasis_process_open(target.pid, &process, &error), 0);
	refused_with(check(true), "needs the right to ptrace it");
	T_EQ(error.os_errno, EACCES);
	target_finish();
}

static void target_ends(void)
{
	target_start();
	t_child_kill(&target);
	T_EQ(check(true), -1);
	T_EQ(error.status, STASIS_REFUSED);
	stasis_process_close(&process);
}

static void run_opening(int fd, void *path)
{
	int opened;

	t_hear(fd, 'o');
	opened = (int)T_SYS(open(path, O_RDWR | O_CLOEXEC));
	t_send(fd, &opened, sizeof(opened));
	(void)t_hear_any(fd);
}

/* In a /dev of our own: the files there are none, but their links are what is looked at. */
static void rdma_refused(void)
{
	static const char *const paths[] = {"/dev/infiniband/uverbs7", "/dev/gdrdrv"};
	char text[64];
	int number;

	if (unshare(CLONE_NEWNS) != 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("tmpfs", "/dev", "tmpfs", 0, NULL) != 0)
		t_skip("needs root: mount a folder of one's own at /dev");
	T_SYS(mkdir("/dev/infiniband", 0700));
	driver_start();
	for (size_t i = 0; i < ARRAY_COUNT(paths); i++) {
		T_SYS(mknod(paths[i], S_IFREG | 0600, 0));
		target = t_child_start(run_opening, (void *)(uintptr_t)paths[i]);
		T_EQ(stasis_process_open(target.pid, &process, &error), 0);
		passes();
		t_say(target.fd, 'o');
		t_receive(target.fd, &number, sizeof(number));
		(void)snprintf(text, sizeof(text), "its descriptor %d ('%s')", number, paths[i]);
		refused_with(check(true), text);
		T_TRUE(strstr(error.text, "run without RDMA") != NULL);
		T_EQ(check(false), 0);
		target_finish();
	}
}

static const struct {
	const char *name;
	void (*run)(void);
} topics[] = {
	{"export_is_found", export_is_found},
	{"ours_is_passed_over", ours_is_passed_over},
	{"other_sockets_are_left", other_sockets_are_left},
	{"no_descriptor_left", no_descriptor_left},
	{"no_right_to_look", no_right_to_look},
	{"target_ends", target_ends},
	{"rdma_refused", rdma_refused},
};

int main(int argument_count, char **arguments)
{
	for (size_t i = 0; argument_count == 2 && i < ARRAY_COUNT(topics); i++) {
		if (strcmp(topics[i].name, arguments[1]) == 0) {
			topics[i].run();
			return 0;
		}
	}
	t_fail("usage: foreign TOPIC");
}

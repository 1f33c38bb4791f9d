/*
 * The messages between neighbours of share_ring. Who waits for a neighbour waits in poll, without a limit, since the
 * other may be stopped for long.
 */
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/compiler.h"
#include "check.h"
#include "child.h"
#include "share_ring.h"

/* A neighbour that is gone has said why, and the parent ends us: nothing that we could say is the cause. */
NORETURN static void neighbour_is_gone(void)
{
	for (;;)
		(void)pause();
}

void ring_message_wait(int fd)
{
	struct pollfd wait = {.fd = fd, .events = POLLIN};
	char first;
	int ready;

	do
		ready = poll(&wait, 1, -1);
	while (ready < 0 && errno == EINTR);
	T_SYS(ready);
	if (recv(fd, &first, 1, MSG_PEEK) <= 0)
		neighbour_is_gone();
}

void ring_message_send(int fd, const struct ring_message *message)
{
	ssize_t sent = send(fd, message, sizeof(*message), MSG_NOSIGNAL);

	if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
		neighbour_is_gone();
	T_EQ(sent, sizeof(*message));
}

void ring_message_expect(const struct ring_options *options, int fd, enum ring_message_kind kind,
			 uint64_t round, struct ring_message *ret_message)
{
	ring_message_wait(fd);
	t_receive(fd, ret_message, sizeof(*ret_message));
	if (ret_message->kind != kind || ret_message->round != round)
		t_fail("share_ring: process %d (%u): expected message %d of round %llu, found "
		       "message %u of round %llu from %u",
		       (int)getpid(), options->index, (int)kind, (unsigned long long)round,
		       ret_message->kind, (unsigned long long)ret_message->round,
		       ret_message->from);
}

/*
 * Signals that would end a command, as a descriptor that the library watches.
 */

#include <signal.h>
#include <sys/signalfd.h>

#include "cli/command.h"

int stasis_cli_cancel_fd_open(void)
{
	sigset_t signals;

	(void)sigemptyset(&signals);
	(void)sigaddset(&signals, SIGINT);
	(void)sigaddset(&signals, SIGTERM);
	(void)sigaddset(&signals, SIGHUP);
	if (pthread_sigmask(SIG_BLOCK, &signals, NULL) != 0)
		return -1;
	return signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
}

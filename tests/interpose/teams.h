#ifndef TESTS_INTERPOSE_TEAMS_H
#define TESTS_INTERPOSE_TEAMS_H

/*
 * Programs of a multicast team of two processes with a device each, for multicast.c. Each binds the same number of blocks
 * in every way there is, and knows at any time what must be in its own and in the other's:
 *
 *     0  by handle             3  by handle, which is then released, and never mapped again
 *     1  by handle and device  4  native memory, by address and device
 *     2  by address            5  native memory, by address
 */

#define TEAM_BLOCKS 6
#define TEAM_OURS 4 /* what the driver cannot bring back: blocks 0 to 3 */

/*
 * Gives a ticket of the object away, or receives one; says 'r', and then 'd' for each letter:
 *
 *     f  fill what it has mapped with new values, as the other does, too
 *     v  verify its memory, and the sums over both
 *     w  write new values by multicast     n  the other has
 *     u  unbind and bind again, by handles from before
 *     b  bind memory without a handle type     c  unbind it
 *     o  unbind block 3, which nothing else holds
 *     l  let go of everything
 */
void t_team_run_creating(int fd);
void t_team_run_importing(int fd);

/* Binds before its team is complete; 'r' when it is about to, and after 'a' completes it, and says 'd'. */
void t_team_run_waiting(int fd);

/* Makes objects with all that belongs to them, and lets them go, many times; 'r' if memory stays as it was. */
void t_team_run_passing(int fd);

#endif

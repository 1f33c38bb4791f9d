#ifndef SIM_IPC_EVENT_H
#define SIM_IPC_EVENT_H

/*
 * Events that processes share. The state is a little memory that all map: how often the event was
 * recorded and how many of these records have been reached. It outlives its creator. Core lock held.
 */

#include "action.h"

struct sim_ipc_event;

CUresult sim_ipc_event_new(struct sim_ipc_event **ret_event);
/* The state of another process's event; takes the descriptor. */
CUresult sim_ipc_event_open(int fd, struct sim_ipc_event **ret_event);
int sim_ipc_event_fd(const struct sim_ipc_event *event);
void sim_ipc_event_drop(struct sim_ipc_event *event); /* NULL is fine */
size_t sim_ipc_event_count(void);                     /* how many are open in this process */

bool sim_ipc_event_is_done(const struct sim_ipc_event *event);
/* Lets go of the core lock while it waits. */
void sim_ipc_event_wait(struct sim_ipc_event *event);
/* Turns the work of a stream into one that marks a new record reached, or waits for the newest. */
void sim_ipc_event_make_record(struct sim_ipc_event *event, struct sim_action *action);
void sim_ipc_event_make_wait(struct sim_ipc_event *event, struct sim_action *action);

#endif

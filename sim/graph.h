#ifndef SIM_GRAPH_H
#define SIM_GRAPH_H

/*
 * Graphs of actions. A node can only depend on nodes that are there already, so the order in which they
 * were added is an order to run them in. Core lock held.
 */

#include "stream.h"

struct sim_graph_node {
	struct sim_graph *graph;
	struct sim_action action;
	struct sim_graph_node **dependencies;
	size_t dependency_count;
	size_t index;        /* in the graph */
	uint64_t allocation; /* address of the memory that it allocates; 0: none */
};

struct sim_graph {
	unsigned references; /* the handle, a capture, instances made of it */
	struct sim_graph_node **nodes;
	size_t count;
};

CUresult sim_graph_new(struct sim_graph **ret_graph);
void sim_graph_unref(struct sim_graph *graph);
/* Makes the graph known to the application. */
CUresult sim_graph_publish(struct sim_graph *graph, CUgraph *ret_graph);
CUresult sim_graph_add(struct sim_graph *graph, const struct sim_action *action,
		       struct sim_graph_node *const *dependencies, size_t dependency_count,
		       struct sim_graph_node **ret_node);
/* Whether every one of 'nodes' is, or comes before, one of 'ends'. */
bool sim_graph_leads_to(const struct sim_graph *graph, struct sim_graph_node *const *nodes,
			size_t count, struct sim_graph_node *const *ends, size_t end_count);

#endif

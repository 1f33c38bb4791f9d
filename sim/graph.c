/* Graphs: nodes and their order; see graph.h. The calls are in graph_api.c. */

#include "graph.h"

#include "allocation.h"

#include <stdlib.h>
#include <string.h>

CUresult sim_graph_new(struct sim_graph **ret_graph)
{
	struct sim_graph *graph = calloc(1, sizeof(*graph));

	if (graph == NULL)
		return CUDA_ERROR_OUT_OF_MEMORY;
	graph->references = 1;
	*ret_graph = graph;
	return CUDA_SUCCESS;
}

static void free_allocation(uint64_t address)
{
	struct sim_allocation *allocation = sim_allocation_find(address);

	if (allocation != NULL && allocation->kind == SIM_ALLOCATION_GRAPH)
		sim_allocation_free(allocation);
}

void sim_graph_unref(struct sim_graph *graph)
{
	if (graph == NULL || --graph->references != 0)
		return;
	for (size_t i = 0; i < graph->count; i++) {
		struct sim_graph_node *node = graph->nodes[i];

		if (node->allocation != 0)
			free_allocation(node->allocation);
		sim_set_remove(&sim_core.graph_nodes, node);
		free(node->dependencies);
		free(node);
	}
	free(graph->nodes);
	free(graph);
}

CUresult sim_graph_publish(struct sim_graph *graph, CUgraph *ret_graph)
{
	if (!sim_set_add(&sim_core.graphs, graph))
		return CUDA_ERROR_OUT_OF_MEMORY;
	*ret_graph = (CUgraph)(void *)graph;
	return CUDA_SUCCESS;
}

static bool node_link(struct sim_graph *graph, struct sim_graph_node *node)
{
	struct sim_graph_node **nodes =
		realloc(graph->nodes, (graph->count + 1) * sizeof(struct sim_graph_node *));

	if (nodes == NULL)
		return false;
	graph->nodes = nodes;
	if (!sim_set_add(&sim_core.graph_nodes, node))
		return false;
	node->index = graph->count;
	graph->nodes[graph->count++] = node;
	return true;
}

CUresult sim_graph_add(struct sim_graph *graph, const struct sim_action *action,
		       struct sim_graph_node *const *dependencies, size_t dependency_count,
		       struct sim_graph_node **ret_node)
{
	struct sim_graph_node *node = calloc(1, sizeof(*node));
	struct sim_graph_node **copy =
		calloc(dependency_count + 1, sizeof(struct sim_graph_node *));

	if (node == NULL || copy == NULL || !node_link(graph, node)) {
		free(copy);
		free(node);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	if (dependency_count > 0)
		memcpy(copy, dependencies, dependency_count * sizeof(struct sim_graph_node *));
	node->graph = graph;
	node->action = *action;
	node->dependencies = copy;
	node->dependency_count = dependency_count;
	*ret_node = node;
	return CUDA_SUCCESS;
}

bool sim_graph_leads_to(const struct sim_graph *graph, struct sim_graph_node *const *nodes,
			size_t count, struct sim_graph_node *const *ends, size_t end_count)
{
	bool *is_before = calloc(graph->count + 1, sizeof(*is_before));
	bool all = is_before != NULL;

	for (size_t i = 0; all && i < end_count; i++)
		is_before[ends[i]->index] = true;
	/* Dependencies have lower indices, so one pass from the end reaches all. */
	for (size_t i = graph->count; all && i-- > 0;)
		for (size_t k = 0; is_before[i] && k < graph->nodes[i]->dependency_count; k++)
			is_before[graph->nodes[i]->dependencies[k]->index] = true;
	for (size_t i = 0; all && i < count; i++)
		all = is_before[nodes[i]->index];
	free(is_before);
	return all;
}

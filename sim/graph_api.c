/*
 * The calls on graphs. An instance is a copy of the graph's actions; it runs them in order, as one work
 * of a stream, and one launch of it after the other. Memory that a graph allocates has its address and
 * its storage for as long as the graph or an instance of it lives.
 */

#include "allocation.h"
#include "capture.h"
#include "graph.h"
#include "launch.h"

#include <stdlib.h>

#define INSTANTIATE_FLAGS                                                                          \
	((unsigned long long)(CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |                    \
			      CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |                                 \
			      CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY))

struct sim_graph_exec {
	unsigned references; /* the handle, launches that have not ended */
	struct sim_graph *graph;
	struct sim_work *latest; /* the newest launch */
	size_t count;
	struct sim_action actions[];
};

static CUresult graph_get(CUgraph handle, struct sim_graph **ret_graph)
{
	if (!sim_set_has(&sim_core.graphs, handle))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_graph = (struct sim_graph *)(void *)handle;
	return CUDA_SUCCESS;
}

static CUresult exec_get(CUgraphExec handle, struct sim_graph_exec **ret_exec)
{
	if (!sim_set_has(&sim_core.graph_execs, handle))
		return CUDA_ERROR_INVALID_VALUE;
	*ret_exec = (struct sim_graph_exec *)(void *)handle;
	return CUDA_SUCCESS;
}

static void exec_unref(struct sim_graph_exec *exec)
{
	if (--exec->references != 0)
		return;
	sim_graph_unref(exec->graph);
	sim_work_unref(exec->latest);
	free(exec);
}

static CUresult create(CUgraph *ret_graph, unsigned flags)
{
	struct sim_graph *graph = NULL;
	CUresult result;

	if (ret_graph == NULL || flags != 0)
		return CUDA_ERROR_INVALID_VALUE;
	result = sim_graph_new(&graph);
	if (result == CUDA_SUCCESS)
		result = sim_graph_publish(graph, ret_graph);
	if (result != CUDA_SUCCESS)
		sim_graph_unref(graph);
	return result;
}

SIM_API CUresult cuGraphCreate(CUgraph *ret_graph, unsigned int flags)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, create(ret_graph, flags));
}

static CUresult destroy(CUgraph handle)
{
	struct sim_graph *graph = NULL;
	CUresult result = graph_get(handle, &graph);

	if (result != CUDA_SUCCESS)
		return result;
	if (sim_capture_records_into(graph))
		return CUDA_ERROR_ILLEGAL_STATE;
	sim_set_remove(&sim_core.graphs, graph);
	sim_graph_unref(graph);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphDestroy(CUgraph graph)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, destroy(graph));
}

static CUresult instantiate(CUgraphExec *ret_exec, CUgraph handle, unsigned long long flags)
{
	struct sim_graph *graph = NULL;
	struct sim_graph_exec *exec;
	CUresult result;

	if (ret_exec == NULL || (flags & ~INSTANTIATE_FLAGS) != 0)
		return CUDA_ERROR_INVALID_VALUE;
	result = graph_get(handle, &graph);
	if (result != CUDA_SUCCESS)
		return result;
	exec = malloc(sizeof(*exec) + graph->count * sizeof(exec->actions[0]));
	if (exec == NULL || !sim_set_add(&sim_core.graph_execs, exec)) {
		free(exec);
		return CUDA_ERROR_OUT_OF_MEMORY;
	}
	exec->references = 1;
	exec->graph = graph;
	graph->references++;
	exec->latest = NULL;
	exec->count = graph->count;
	for (size_t i = 0; i < graph->count; i++)
		exec->actions[i] = graph->nodes[i]->action;
	*ret_exec = (CUgraphExec)(void *)exec;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphInstantiateWithFlags(CUgraphExec *ret_exec, CUgraph graph,
					     unsigned long long flags)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, instantiate(ret_exec, graph, flags));
}

static CUresult run_exec(const struct sim_action *action)
{
	struct sim_graph_exec *exec = action->exec;
	CUresult result;

	sim_core_lock();
	result = sim_context_error(action->context);
	sim_core_unlock();
	for (size_t i = 0; i < exec->count && result == CUDA_SUCCESS; i++)
		if (exec->actions[i].run != NULL && !sim_breaks("graph_replays"))
			result = exec->actions[i].run(&exec->actions[i]);
	sim_core_lock();
	exec_unref(exec);
	sim_core_unlock();
	return result;
}

/* Into a stream that records: the instance's actions become nodes. */
static CUresult record_exec(struct sim_stream *stream, const struct sim_graph_exec *exec)
{
	CUresult result = CUDA_SUCCESS;

	for (size_t i = 0; i < exec->count && result == CUDA_SUCCESS; i++)
		result = sim_stream_submit(stream, &exec->actions[i], NULL, NULL);
	return result;
}

static CUresult launch(CUgraphExec handle, CUstream stream_handle)
{
	struct sim_action action = {.run = run_exec, .runs_after_error = true};
	struct sim_graph_exec *exec = NULL;
	struct sim_stream *stream = NULL;
	struct sim_work *work = NULL;
	CUresult result = exec_get(handle, &exec);

	if (result == CUDA_SUCCESS)
		result = sim_stream_get(stream_handle, &stream);
	if (result == CUDA_SUCCESS)
		result = sim_capture_check_submit(stream);
	if (result != CUDA_SUCCESS)
		return result;
	if (stream->capture != NULL)
		return record_exec(stream, exec);
	if (!sim_set_has(&sim_core.graphs, exec->graph) && sim_breaks("exec_outlives_graph"))
		return CUDA_ERROR_INVALID_VALUE;
	action.context = stream->context;
	action.exec = exec;
	exec->references++;
	if (sim_breaks("graph_launch_is_ordered")) {
		sim_core_unlock();
		result = run_exec(&action);
		sim_core_lock();
		return result;
	}
	result = sim_stream_submit_after(stream, &action, exec->latest, &work);
	if (result != CUDA_SUCCESS) {
		exec_unref(exec);
		return result;
	}
	sim_work_unref(exec->latest);
	exec->latest = work;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, launch(exec, stream));
}

static CUresult upload(CUgraphExec handle, CUstream stream_handle)
{
	struct sim_graph_exec *exec = NULL;
	struct sim_stream *stream = NULL;
	CUresult result = exec_get(handle, &exec);

	return result == CUDA_SUCCESS ? sim_stream_get(stream_handle, &stream) : result;
}

SIM_API CUresult cuGraphUpload(CUgraphExec exec, CUstream stream)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT, upload(exec, stream));
}

static CUresult exec_destroy(CUgraphExec handle)
{
	struct sim_graph_exec *exec = NULL;
	CUresult result = exec_get(handle, &exec);

	if (result != CUDA_SUCCESS)
		return result;
	sim_set_remove(&sim_core.graph_execs, exec);
	exec_unref(exec);
	return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphExecDestroy(CUgraphExec exec)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, exec_destroy(exec));
}

/* With 'nodes' NULL only the count; else at most as many as there is room for. */
static CUresult get_nodes(CUgraph handle, CUgraphNode *nodes, size_t *count)
{
	struct sim_graph *graph = NULL;
	CUresult result;

	if (count == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	result = graph_get(handle, &graph);
	if (result != CUDA_SUCCESS)
		return result;
	for (size_t i = 0; nodes != NULL && i < *count; i++)
		nodes[i] = i < graph->count ? (CUgraphNode)(void *)graph->nodes[i] : NULL;
	if (nodes == NULL || *count > graph->count)
		*count = graph->count + sim_breaks("graph_counts_nodes");
	return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphGetNodes(CUgraph graph, CUgraphNode *nodes, size_t *count)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_INIT, get_nodes(graph, nodes, count));
}

static CUresult add(CUgraph handle, const CUgraphNode *dependencies, size_t count,
		    const struct sim_action *action, struct sim_graph_node **ret_node)
{
	struct sim_graph *graph = NULL;
	CUresult result = graph_get(handle, &graph);

	if (result != CUDA_SUCCESS)
		return result;
	if (count > 0 && dependencies == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	for (size_t i = 0; i < count; i++) {
		const struct sim_graph_node *node = (void *)dependencies[i];

		if (!sim_set_has(&sim_core.graph_nodes, node) || node->graph != graph)
			return CUDA_ERROR_INVALID_VALUE;
	}
	return sim_graph_add(graph, action,
			     (struct sim_graph_node *const *)(const void *)dependencies, count,
			     ret_node);
}

static CUresult add_kernel(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *dependencies,
			   size_t count, const CUDA_KERNEL_NODE_PARAMS *params)
{
	struct sim_graph_node *node = NULL;
	struct sim_action action;
	CUlaunchConfig shape;
	CUresult result;

	if (ret_node == NULL || params == NULL)
		return CUDA_ERROR_INVALID_VALUE;
	shape = (CUlaunchConfig){
		.gridDimX = params->gridDimX,
		.gridDimY = params->gridDimY,
		.gridDimZ = params->gridDimZ,
		.blockDimX = params->blockDimX,
		.blockDimY = params->blockDimY,
		.blockDimZ = params->blockDimZ,
		.sharedMemBytes = params->sharedMemBytes,
	};
	result = sim_launch_prepare(&shape, params->func, params->kernelParams, params->extra,
				    &action);
	action.context = sim_context_current();
	if (result == CUDA_SUCCESS && params->ctx != NULL)
		result = sim_context_get(params->ctx, &action.context);
	if (result == CUDA_SUCCESS)
		result = add(graph, dependencies, count, &action, &node);
	if (result == CUDA_SUCCESS)
		*ret_node = (CUgraphNode)(void *)node;
	return result;
}

SIM_API CUresult cuGraphAddKernelNode_v2(CUgraphNode *ret_node, CUgraph graph,
					 const CUgraphNode *dependencies, size_t count,
					 const CUDA_KERNEL_NODE_PARAMS *params)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       add_kernel(ret_node, graph, dependencies, count, params));
}

static CUresult add_alloc(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *dependencies,
			  size_t count, CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	struct sim_action action = {.context = sim_context_current()};
	struct sim_allocation *allocation = NULL;
	struct sim_graph_node *node = NULL;
	CUresult result;

	if (ret_node == NULL || params == NULL || params->bytesize == 0 ||
	    params->poolProps.allocType != CU_MEM_ALLOCATION_TYPE_PINNED ||
	    params->poolProps.location.type != CU_MEM_LOCATION_TYPE_DEVICE)
		return CUDA_ERROR_INVALID_VALUE;
	if (!sim_device_valid(params->poolProps.location.id))
		return CUDA_ERROR_INVALID_DEVICE;
	result = add(graph, dependencies, count, &action, &node);
	if (result == CUDA_SUCCESS)
		result = sim_legacy_allocate(sim_context_current(), SIM_ALLOCATION_GRAPH,
					     sim_context_current(), params->bytesize, &allocation);
	if (result != CUDA_SUCCESS)
		return result;
	node->allocation = allocation->span.start;
	params->dptr = allocation->span.start;
	*ret_node = (CUgraphNode)(void *)node;
	return CUDA_SUCCESS;
}

SIM_API CUresult cuGraphAddMemAllocNode(CUgraphNode *ret_node, CUgraph graph,
					const CUgraphNode *dependencies, size_t count,
					CUDA_MEM_ALLOC_NODE_PARAMS *params)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       add_alloc(ret_node, graph, dependencies, count, params));
}

static CUresult add_free(CUgraphNode *ret_node, CUgraph graph, const CUgraphNode *dependencies,
			 size_t count, CUdeviceptr pointer)
{
	const struct sim_allocation *allocation = sim_allocation_find(pointer);
	struct sim_action action = {.context = sim_context_current()};
	struct sim_graph_node *node = NULL;
	CUresult result;

	if (ret_node == NULL || allocation == NULL || allocation->kind != SIM_ALLOCATION_GRAPH ||
	    allocation->span.start != pointer)
		return CUDA_ERROR_INVALID_VALUE;
	result = add(graph, dependencies, count, &action, &node);
	if (result == CUDA_SUCCESS)
		*ret_node = (CUgraphNode)(void *)node;
	return result;
}

SIM_API CUresult cuGraphAddMemFreeNode(CUgraphNode *ret_node, CUgraph graph,
				       const CUgraphNode *dependencies, size_t count,
				       CUdeviceptr pointer)
{
	return SIM_CALL_LOCKED(SIM_CALL_HELD, SIM_NEEDS_CONTEXT,
			       add_free(ret_node, graph, dependencies, count, pointer));
}

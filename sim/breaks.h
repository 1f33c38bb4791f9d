#ifndef SIM_BREAKS_H
#define SIM_BREAKS_H

/*
 * The behaviours that STASIS_SIM_BREAK can break, each so that a conformance test can be shown to fail:
 * X(name, what the simulator then does wrongly). A switch has the name of the behaviour that it breaks; those
 * that only change an answer stand in answers.h. Add a row, then ask sim_breaks("name") where the
 * behaviour is made. `sim-state --breaks` lists them.
 */

/* clang-format off */
#define SIM_BREAKS(X) \
	X(lock_holds_calls, "calls that the lock must hold go through while LOCKED") \
	X(lock_lets_queries_pass, "calls that pass the lock are held while LOCKED") \
	X(lock_timeout, "a lock that times out answers SUCCESS and the process is LOCKED") \
	X(lock_waits_for_work, "the lock does not wait for work that is queued") \
	X(lock_twice, "a second lock answers SUCCESS") \
	X(unlock_running, "unlocking a RUNNING process answers SUCCESS") \
	X(unlock_checkpointed, "unlocking a CHECKPOINTED process makes it RUNNING") \
	X(checkpoint_running, "a process can be checkpointed without a lock") \
	X(checkpoint_twice, "a second checkpoint answers SUCCESS") \
	X(restore_uncheckpointed, "restoring a process that is not CHECKPOINTED answers SUCCESS") \
	X(whole_cycle, "after a restore the process is RUNNING, not LOCKED") \
	X(reserved_bytes, "reserved bytes of checkpoint arguments need not be zero") \
	X(no_cuda_state, "a process without CUDA state reports RUNNING") \
	X(checkpoint_frees_memory, "a checkpointed process keeps its device memory taken") \
	X(checkpoint_closes_descriptors, "a checkpointed process keeps its descriptors") \
	X(native_survives, "one byte of device memory is different after a native restore") \
	X(restore_forgets_gpu_pairs, "a restore takes no notice of gpuPairs") \
	X(gpu_pairs_name_all, "gpuPairs need not name every GPU that the process saw") \
	X(importer_is_lost, "an importer of shared memory survives checkpoint and restore") \
	X(ipc_opener_is_lost, "an opener of legacy IPC memory survives checkpoint and restore") \
	X(host_numa_is_lost, "HOST_NUMA memory survives checkpoint and restore") \
	X(checkpoint_managed, "managed memory can be checkpointed") \
	X(open_export_splits, "a descriptor open at the checkpoint still names the owner's memory") \
	X(lost_stays_lost, "a process whose restore failed can be unlocked") \
	X(custom_storage_follows_version, "CustomStorage resolves where the version says that it does not, and the other way round") \
	X(custom_completes_once, "an operation can be completed twice") \
	X(custom_is_begun_until_complete, "a custom checkpoint reports CHECKPOINTED before it is completed") \
	X(custom_order_by_ordinal, "entries of a custom operation come in the order of the GPUs") \
	X(custom_sizes_stay, "an extent has another size at restore than at checkpoint") \
	X(custom_damage_is_hidden, "damaged state written at a restore is not noticed") \
	X(custom_stream_names_device, "the streams of a custom operation belong to the first GPU") \
	X(tid_refused, "a thread id does not stand for its process") \
	X(init_again, "a second cuInit is ILLEGAL_STATE") \
	X(error_names, "cuGetErrorName gives the text") \
	X(device_abilities, "the device says that it has no managed memory") \
	X(device_shape, "the device says that its warps have 64 threads") \
	X(uuids_differ, "all devices have one UUID") \
	X(uuid_is_identity, "each process sees another UUID") \
	X(total_memory, "cuMemGetInfo's total is not cuDeviceTotalMem's") \
	X(current_starts_empty, "a thread starts with something for a context") \
	X(primary_is_one, "a second retain gives another context") \
	X(primary_state, "a primary context is always active") \
	X(primary_flags, "flags of a primary context are not kept") \
	X(primary_release_frees, "a primary context stays when nobody retains it") \
	X(context_stack, "a popped context stays") \
	X(current_is_per_thread, "a thread without a current context has that of others") \
	X(created_is_current, "a created context does not become current") \
	X(context_device, "cuCtxGetDevice names the next device") \
	X(capture_to_graph, "what is captured into a given graph makes another one") \
	X(full_queue_waits, "a queue takes any number of works") \
	X(full_queue_shuts_out, "queries do not wait for a submission that waits for room in a queue") \
	X(context_id, "a primary context has the same id in each of its lives") \
	X(context_limits, "limits are not kept") \
	X(alloc_steps, "small allocations have blocks of their own") \
	X(free_waits, "cuMemFree does not wait for queued work") \
	X(free_returns_memory, "freed memory stays taken") \
	X(pitch_steps, "a pitch is the width") \
	X(cpu_touch_faults, "the CPU sees device memory") \
	X(host_device_pointer, "the device pointer of host memory is another address") \
	X(registered_is_usable, "registered memory has no device pointer") \
	X(copies_move_bytes, "copies inside the device do nothing") \
	X(host_reaches_device, "copies from host memory do nothing") \
	X(copy_in_two_dimensions, "a copy moves its first row only") \
	X(async_copy_returns, "an asynchronous copy waits until it is done") \
	X(memset_widths, "memsets count bytes, not items") \
	X(stream_is_ordered, "memsets also run at once, before their turn") \
	X(stream_priority, "priorities are not clamped") \
	X(stream_identity, "all streams have one id") \
	X(stream_context, "a stream names the next device") \
	X(streams_are_independent, "work waits for all other streams") \
	X(default_stream_waits, "the default stream does not wait for blocking streams") \
	X(copy_waits_for_blocking_streams, "a synchronous copy does not wait for blocking streams") \
	X(non_blocking_is_not_waited_for, "the default stream waits for non-blocking streams too") \
	X(context_synchronize_waits, "cuCtxSynchronize does not wait") \
	X(stream_synchronize_waits, "cuStreamSynchronize does not wait") \
	X(destroyed_stream_finishes, "a destroyed stream drops its queued work") \
	X(callback_gets_status, "a callback is told UNKNOWN") \
	X(host_function_has_no_cuda, "CUDA calls in a host function are not refused as such") \
	X(host_function_is_ordered, "a host function runs at once, before its turn") \
	X(event_unrecorded, "an event that was never recorded is NOT_READY") \
	X(event_synchronize_waits, "cuEventSynchronize does not wait") \
	X(event_joins_streams, "a stream does not wait for the event of another") \
	X(entry_too_new, "a name asked for at too old a version gives its oldest entry") \
	X(entry_by_version, "a name gives its newest entry whatever the version") \
	X(checkpoint_entries, "the checkpoint entries do not resolve") \
	X(entry_unknown, "an unknown name gives an entry") \
	X(pointer_context, "a pointer names another context") \
	X(custom_view_has_no_context, "a pointer names another context") \
	X(pointer_ipc_capable, "a pointer tells the contrary of being fit for IPC") \
	X(pointer_handle_types, "a pointer tells other handle types") \
	X(pointer_rdma, "a pointer tells the contrary of being fit for RDMA") \
	X(pointer_rdma_flagged, "a pointer tells the contrary of being fit for RDMA") \
	X(pointer_decompress, "a pointer tells the contrary of being fit for decompression") \
	X(pointer_memory_types, "every pointer is to host memory") \
	X(pointer_ordinal, "a pointer names the neighbour device") \
	X(managed_is_told, "a pointer tells the contrary of being managed") \
	X(range_of_native, "a range is a byte off") \
	X(range_of_mapping, "a range begins a byte off") \
	X(buffer_ids, "all buffers have one id") \
	X(block_ids, "all memory blocks have one id") \
	X(address_range, "the range of an allocation is rounded up") \
	X(address_range_of_mapping, "the range of a mapping is its reservation") \
	X(granularity, "device memory comes in steps of 64 KiB") \
	X(reserve_takes_no_memory, "a reservation takes device memory") \
	X(mapped_twice, "memory can be mapped once only") \
	X(access_needed, "a fresh mapping grants all access") \
	X(access_is_kept, "cuMemGetAccess always tells full access") \
	X(access_of_several, "access can be set for one mapping at a time only") \
	X(copy_across_mappings, "copies do not run across mappings") \
	X(unmap_several, "one mapping at a time only can be unmapped") \
	X(unmap_does_not_wait, "cuMemUnmap waits for queued work") \
	X(mapping_holds_memory, "a released handle takes the contents with it") \
	X(descriptor_holds_memory, "a released handle takes the contents with it") \
	X(keeper_without_cuda, "a released handle takes the contents with it") \
	X(released_memory_comes_back, "a released handle takes the contents with it") \
	X(properties_of_handle, "a handle tells no handle types") \
	X(retain_by_address, "only the start of a mapping gives its handle") \
	X(host_numa_access, "the CPU cannot touch HOST_NUMA memory") \
	X(export_is_descriptor, "an export is a regular file") \
	X(descriptor_lets_go, "exported memory stays taken for good") \
	X(import_properties, "an imported handle tells the handle types of its creator") \
	X(import_shows_bytes, "an export can be imported once only") \
	X(managed_is_seen_by_both, "the CPU cannot touch managed memory") \
	X(state_starts_running, "a running process says that it is LOCKED") \
	X(lock_and_unlock, "an unlocked process stays LOCKED") \
	X(missing_arguments, "an unlock needs arguments") \
	X(restore_thread, "the restore thread is none of the process") \
	X(threads_run_on, "a checkpointed process ends") \
	X(pinned_survives, "page-locked memory is out of reach once the process was checkpointed") \
	X(registered_survives, "registered memory is out of reach once the process was checkpointed") \
	X(private_vmm_survives, "one byte of such memory is different after a restore") \
	X(exportable_vmm_survives, "one byte of such memory is different after a restore") \
	X(exported_vmm_survives, "one byte of such memory is different after a restore") \
	X(ipc_handle_survives, "one byte of such memory is different after a restore") \
	X(custom_absent_is_native, "one byte of such memory is different after a restore") \
	X(custom_round_trip, "one byte of such memory is different after a restore") \
	X(custom_view_holds_bytes, "an extent holds the private state of the driver only") \
	X(capture_records, "captured work runs at once") \
	X(graph_replays, "a graph launch does nothing") \
	X(exec_outlives_graph, "an instance goes with its graph") \
	X(graph_launch_is_ordered, "a graph runs at once, before its turn") \
	X(graph_counts_nodes, "a graph counts a node too many") \
	X(global_allows_vmm, "cuMemCreate is refused during a global capture") \
	X(relaxed_allows_free, "cuMemFree is refused during a relaxed capture") \
	X(capture_forks_and_joins, "a wait for a captured event does not join the capture") \
	X(launch_shared_memory, "a function may have all shared memory unasked") \
	X(kernel_spins, "kernels do nothing") \
	X(kernels_are_ordered, "kernels do nothing") \
	X(kernel_writes, "the fill kernel writes a word too many") \
	X(kernel_parameters_are_copied, "the fill kernel writes another value") \
	X(fault_stays, "a fault of a kernel leaves no trace") \
	X(async_memory_is_usable, "memory of a pool grants no access") \
	X(pool_counts_use, "a pool does not count what is in use") \
	X(pool_keeps_to_threshold, "a pool keeps nothing") \
	X(pool_frees_native, "cuMemFreeAsync refuses memory of cuMemAlloc") \
	X(async_memory_frees_native, "cuMemFree refuses memory of a pool") \
	X(pool_of_pointer, "a pointer names another pool") \
	X(ipc_interior, "only the start of an allocation gives an IPC handle") \
	X(ipc_opens_are_counted, "one close is enough, however often memory was opened") \
	X(ipc_small_blocks, "handles of two small allocations differ in many bytes") \
	X(wait_value, "a stream does not wait for a value") \
	X(write_value, "a stream does not write its value") \
	X(multicast_granularity, "multicast objects go by single bytes") \
	X(multicast_create, "a multicast team may have no devices") \
	X(multicast_bind_waits, "a bind does not wait for the rest of the team") \
	X(multicast_bind_address, "a bind by address binds the start of the memory") \
	X(multicast_unbind_whole, "a part of a binding can be unbound") \
	X(multicast_fill_reaches_all, "a memset of a multicast range reaches one device") \
	X(multicast_write_reaches_all, "a copy to a multicast range reaches one device") \
	X(multicast_reduce, "a reduction takes one device's value") \
	X(multicast_shared, "multicast objects cannot be imported") \
	X(multicast_bind_device, "a bind takes any device for the memory's") \
	X(multicast_holds_memory, "memory that is bound is freed with its last handle") \
	X(multicast_mapping_holds, "a mapping does not keep what is bound") \
	X(multicast_access, "a fresh mapping of a multicast object grants access") \
	X(multicast_streams, "what a stream does to a multicast range reaches one device") \
	X(multicast_of_eight, "the eighth device of a team is left out") \
	X(multicast_second_import, "a binding is only known by the handle that it was made with")
/* clang-format on */

#endif

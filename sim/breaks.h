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
	X(entry_unknown, "an unknown name gives an entry")
/* clang-format on */

#endif

#ifndef SIM_BREAKS_H
#define SIM_BREAKS_H

/*
 * The behaviours that STASIS_SIM_BREAK can break, each so that a conformance test can be shown to fail:
 * X(name, what the simulator then does wrongly). Add a row, then ask sim_breaks("name") where the
 * behaviour is made. `sim-state --breaks` lists them.
 */

/* clang-format off */
#define SIM_BREAKS(X) \
	X(lock_lets_held_calls_pass, "calls that the lock must hold go through while LOCKED") \
	X(lock_holds_passing_calls, "calls that pass the lock are held while LOCKED") \
	X(lock_ignores_timeout, "a lock that times out answers SUCCESS and the process is LOCKED") \
	X(lock_ignores_work, "the lock does not wait for work that is queued") \
	X(lock_twice, "a second lock answers SUCCESS") \
	X(unlock_unlocked, "unlocking a RUNNING process answers SUCCESS") \
	X(unlock_checkpointed, "unlocking a CHECKPOINTED process makes it RUNNING") \
	X(checkpoint_running, "a process can be checkpointed without a lock") \
	X(checkpoint_twice, "a second checkpoint answers SUCCESS") \
	X(restore_locked, "restoring a process that is not CHECKPOINTED answers SUCCESS") \
	X(restore_unlocks, "after a restore the process is RUNNING, not LOCKED") \
	X(reserved_ignored, "reserved bytes of checkpoint arguments need not be zero") \
	X(no_cuda_is_running, "a process without CUDA state reports RUNNING") \
	X(checkpoint_keeps_memory, "a checkpointed process keeps its device memory taken") \
	X(checkpoint_keeps_descriptors, "a checkpointed process keeps its descriptors") \
	X(restore_loses_bytes, "one byte of device memory is different after a native restore") \
	X(restore_forgets_gpu_pairs, "a restore takes no notice of gpuPairs") \
	X(gpu_pairs_partial, "gpuPairs need not name every GPU that the process saw") \
	X(restore_shared_works, "an importer of shared memory survives checkpoint and restore") \
	X(restore_ipc_works, "an opener of legacy IPC memory survives checkpoint and restore") \
	X(restore_host_numa_works, "HOST_NUMA memory survives checkpoint and restore") \
	X(checkpoint_managed_works, "managed memory can be checkpointed") \
	X(export_stays_joined, "a descriptor open at the checkpoint still names the owner's memory") \
	X(failed_restore_unlocks, "a process whose restore failed can be unlocked") \
	X(custom_always_there, "CustomStorage resolves whatever the version") \
	X(custom_complete_twice, "an operation can be completed twice") \
	X(custom_state_early, "a custom checkpoint reports CHECKPOINTED before it is completed") \
	X(custom_order_by_ordinal, "entries of a custom operation come in the order of the GPUs") \
	X(custom_sizes_change, "an extent has another size at restore than at checkpoint") \
	X(custom_damage_is_hidden, "damaged state written at a restore is not noticed") \
	X(custom_wrong_stream, "the streams of a custom operation belong to the first GPU") \
	X(tid_refused, "a thread id does not stand for its process")
/* clang-format on */

#endif

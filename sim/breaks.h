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
	X(custom_storage_follows_version, "CustomStorage resolves whatever the version") \
	X(custom_completes_once, "an operation can be completed twice") \
	X(custom_is_begun_until_complete, "a custom checkpoint reports CHECKPOINTED before it is completed") \
	X(custom_order_by_ordinal, "entries of a custom operation come in the order of the GPUs") \
	X(custom_sizes_stay, "an extent has another size at restore than at checkpoint") \
	X(custom_damage_is_hidden, "damaged state written at a restore is not noticed") \
	X(custom_stream_names_device, "the streams of a custom operation belong to the first GPU") \
	X(tid_refused, "a thread id does not stand for its process")
/* clang-format on */

#endif

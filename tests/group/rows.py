"""The rows of the table: phase x participant x fault, made from lists of what there is, none by hand.

A row is one run of `stasis suspend` or `stasis resume` with one fault in it. `faults` are fault points of stasis,
`calls` faults of the driver in stasis, `member_calls` in a participant; `victim` is who is killed while the worker
stands still at the phase.
"""

import dataclasses

SUSPEND_PHASES = ["inspect", "preflight", "gate", "inspect_again", "save_allocations", "seal", "arm",
                  "prepare_multicast", "prepare_unicast", "lock", "checkpoint",
                  "confirm_checkpointed", "publish", "commit"]
RESUME_PHASES = ["validate", "restore", "load_allocations", "restore_unicast",
                 "restore_multicast", "compare_topology", "open"]
PHASES = {"suspend": SUSPEND_PHASES, "resume": RESUME_PHASES}
# Entered, not begun: there is no way back from them, so that an error cannot be played there.
ENTERED = {"commit", "open"}

# Of the worker's own driver calls, by command; N is counted from its start.
CALLS = {
    "suspend": ["cuMemImportFromShareableHandle", "cuMemMap", "cuMemSetAccess",
                "cuMemcpyDtoHAsync", "cuMemUnmap", "cuMemRelease", "cuMemCreate",
                "cuCheckpointProcessLock", "cuCheckpointProcessCheckpoint",
                "cuCheckpointProcessGetState"],
    "resume": ["cuMemImportFromShareableHandle", "cuMemMap", "cuMemSetAccess",
               "cuMemcpyHtoDAsync", "cuCheckpointProcessRestore", "cuCheckpointProcessUnlock",
               "cuCheckpointProcessGetState"],
}
# In a participant, by command and the phase that calls them.
MEMBER_CALLS = {
    "suspend": [("save_allocations", "cuMemExportToShareableHandle"),
                ("prepare_unicast", "cuMemUnmap"), ("prepare_unicast", "cuMemRelease")],
    "undo": [("undo", "cuMemImportFromShareableHandle"), ("undo", "cuMemMap"),
             ("undo", "cuMemSetAccess")],
    "resume": [("load_allocations", "cuMemCreate"), ("load_allocations", "cuMemMap"),
               ("load_allocations", "cuMemSetAccess"),
               ("load_allocations", "cuMemExportToShareableHandle"),
               ("restore_unicast", "cuMemImportFromShareableHandle"),
               ("restore_unicast", "cuMemMap"), ("restore_unicast", "cuMemSetAccess")],
}


@dataclasses.dataclass(frozen=True)
class Row:
    """One row; see the head of this file."""
    family: str
    command: str
    phase: str
    fault: str
    faults: str = ""
    calls: str = ""
    member_calls: str = ""
    victim: int = -1
    program: str = "share_ring"
    processes: int = 2
    statuses: tuple = ()      # what stasis may end with; empty: whatever is the truth
    may_lose: bool = False    # a process can be lost through no fault of ours

    def text(self):
        return f"{self.family:<11} {self.command:<7} {self.phase:<20} {self.fault}"


def failed_status(command):
    return (1,) if command == "suspend" else (3,)


def rows_worker():
    for command, phases in PHASES.items():
        for phase in phases:
            point = f"group_{phase}:1"
            if phase not in ENTERED:
                yield Row("worker", command, phase, "EIO", faults=f"{point}=EIO",
                          statuses=failed_status(command))
            yield Row("worker", command, phase, "kill", faults=f"{point}=kill")
    for phase in ("prepare_unicast", "lock", "checkpoint", "publish"):
        for fault in ("kill",):
            yield Row("undo", "suspend", phase, f"EIO, then {fault} in undo",
                      faults=f"group_{phase}:1=EIO,group_undo:1={fault}")
    for phase in ("load_allocations", "restore_unicast", "compare_topology"):
        yield Row("undo", "resume", phase, "EIO, then kill in undo",
                  faults=f"group_{phase}:1=EIO,group_undo:1=kill")
        # whoever comes to the rescue fails and dies as well
        if phase != "compare_topology":
            yield Row("rescue", "resume", phase, "EIO, then kill in undo, twice",
                      faults=f"group_{phase}:1=EIO,group_undo:1=kill")


def rows_supervisor():
    for command, phases in PHASES.items():
        for phase in phases:
            yield Row("supervisor", command, phase, "kill", faults=f"supervisor_{phase}:1=kill")
            yield Row("both", command, phase, "kill", faults=f"group_{phase}:1=stop")


def rows_recover():
    """Recovery is itself cut off, and done again."""
    for phase in ("validate", "restore", "load_allocations", "restore_unicast",
                  "restore_multicast", "compare_topology", "open"):
        yield Row("recover", "suspend", "checkpoint", f"kill, then kill in {phase} of recover",
                  faults="group_checkpoint:1=stop")


def rows_participant():
    for command, phases in PHASES.items():
        for phase in phases:
            for victim in (0, 1):
                yield Row("participant", command, phase, f"kill of {victim}",
                          faults=f"group_{phase}:1=stop", victim=victim, program="share_crowd",
                          processes=3, may_lose=True)


def rows_driver():
    for command, calls in CALLS.items():
        for call in calls:
            for number in (1, 2):
                may_lose = call == "cuCheckpointProcessRestore"
                for fault in ("UNKNOWN", "kill"):
                    yield Row("driver", command, f"{call}:{number}", fault,
                              calls=f"{call}:{number}={fault}", may_lose=may_lose,
                              program="share_crowd" if may_lose else "share_ring")
            yield Row("driver", command, f"{call}:1", "hang", calls=f"{call}:1=hang",
                      may_lose=may_lose, program="share_crowd" if may_lose else "share_ring")
    for call in ("cuCheckpointProcessRestore", "cuCheckpointProcessUnlock"):
        yield Row("driver", "suspend", "publish", f"EIO, then {call}=UNKNOWN",
                  faults="group_publish:1=EIO", calls=f"{call}:1=UNKNOWN",
                  may_lose=call == "cuCheckpointProcessRestore", program="share_crowd")


def rows_member():
    for family, places in MEMBER_CALLS.items():
        command = "suspend" if family == "undo" else family
        for phase, call in places:
            faults = f"group_{phase}:1=stop"
            if family == "undo":
                faults = "group_publish:1=EIO," + faults
            yield Row("member", command, phase, f"{call}=UNKNOWN", faults=faults,
                      member_calls=f"{call}:1=UNKNOWN", program="share_crowd", processes=3)


def rows_all():
    makers = (rows_worker, rows_supervisor, rows_recover, rows_participant, rows_driver,
              rows_member)
    return [row for maker in makers for row in maker()]

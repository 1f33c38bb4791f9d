"""Plays one row and judges what became of everyone, from outside."""

import os
import signal

from scene import WAIT_SECONDS, Scene, Stuck, children_of, is_alive, process_letter, wait_until

# Long enough for a loaded machine to come to the fault.
HANG_TIMEOUT = "8s" if float(os.environ.get("STASIS_TEST_TIMEOUT_SCALE", "1")) > 1 else "5s"
SHORT_SECONDS = 2  # in which those that are held would have gone on
FAMILIES_OF_TWO = ("both", "recover")


class Wrong(Exception):
    """What a row finds to be wrong."""


class Outcome:
    """Of one row: the exit status of stasis, what became of the processes, and "" or what is wrong."""

    def __init__(self):
        self.status = None
        self.fate = "unknown"
        self.problem = ""
        self.said = ""


def demand(is_right, what):
    if not is_right:
        raise Wrong(what)


class Play:
    """A row on its scene."""

    def __init__(self, row, scene, outcome):
        self.row = row
        self.scene = scene
        self.outcome = outcome
        self.living = list(scene.pids)

    def stasis(self, *arguments, **extra):
        status, said = self.scene.stasis(*arguments, **extra)
        self.outcome.said += f"$ stasis {arguments[0]} -> {status}\n{said}"
        return status

    # ---- the fault ----

    def plan(self):
        row = self.row
        extra = {}
        if row.faults:
            extra["STASIS_FAULT"] = row.faults
        if row.calls:
            extra.update({"STASIS_SIM_FAULT": row.calls, "STASIS_SIM_FAULT_PROCESS": "stasis",
                          "STASIS_SIM_FAULT_ONCE": self.scene.path("once")})
        if row.family in ("worker", "undo"):
            extra["STASIS_FAULT_ONCE"] = self.scene.path("once")
        return extra

    def faulty_run(self):
        row = self.row
        arguments = [row.command, *self.scene.pids]
        if row.fault == "hang":
            arguments[1:1] = ["--timeout", HANG_TIMEOUT]
        process, name = self.scene.stasis_start(*arguments, **self.plan())
        if "=stop" in row.faults:
            self.at_standstill(process)
        status, said = self.scene.stasis_wait(process, name)
        self.outcome.said += f"$ stasis {row.command} -> {status}\n{said}"
        self.outcome.status = status
        return status

    def at_standstill(self, process):
        """While the worker stands still at the phase: whoever is to die dies, what is to fail is made to."""
        def stopped():
            demand(process.poll() is None, "stasis ended before it came to the phase")
            return [pid for pid in children_of(process.pid) if process_letter(pid) == "T"]

        worker = wait_until("the worker stands still", stopped)[0]
        row = self.row
        if row.family in FAMILIES_OF_TWO:
            # Whoever dies first must not have the other go on: the kernel continues orphans that stand still.
            os.kill(process.pid, signal.SIGSTOP)
            os.kill(worker, signal.SIGKILL)
            wait_until("the worker is dead", lambda: not is_alive(worker))
            os.kill(process.pid, signal.SIGKILL)
            return
        if row.victim >= 0:
            victim = self.scene.pids[row.victim]
            os.kill(victim, signal.SIGKILL)
            wait_until("the victim is dead", lambda: not is_alive(victim))
            self.living.remove(victim)
        if row.member_calls:
            with open(self.scene.path("when"), "w", encoding="utf-8"):
                pass
        os.kill(worker, signal.SIGCONT)

    def is_reached(self):
        if self.row.calls or self.row.member_calls:
            return any(line.split()[2:3] == ["fault"] for line in self.scene.lines("sim.log"))
        return bool(self.scene.lines("fault.log"))

    # ---- what became of them ----

    def look(self, seconds=WAIT_SECONDS / 4):
        """What became of those that nobody killed: run, suspended, or what else there is."""
        gone = [pid for pid in self.living if not is_alive(pid)]
        demand(not gone, f"process {gone} is gone{self.scene.workload_words()}")
        states = self.scene.states(self.living)
        if states == {"RUNNING"}:
            fault = self.scene.progress_fault(self.living, seconds)
            return "held: " + fault if fault else "run"
        return "suspended" if states == {"CHECKPOINTED"} else "/".join(sorted(states))

    def lost_leave(self, status):
        """Whom the driver has not brought back is named, and nobody gets it back: it is ended."""
        if status != 4 or "cuCheckpointProcessRestore" not in self.row.calls:
            return
        lost = [pid for pid in self.living if self.scene.states([pid]) & {"CHECKPOINTED", "FAILED"}]
        demand(len(lost) == 1, f"status 4, and not one process is lost but {lost}")
        demand(f"restore process {lost[0]}" in self.outcome.said.splitlines()[-1],
               "the last line does not name who is lost")
        os.kill(lost[0], signal.SIGKILL)
        wait_until("the lost one is dead", lambda: not is_alive(lost[0]))
        self.living.remove(lost[0])

    def truth_demand(self, status, fate):
        """The exit status says what is."""
        claims = {0: "suspended" if self.row.command == "suspend" else "run", 1: "run",
                  3: "suspended"}
        demand(status != 70 and status != 2 and status != 5, f"exit status {status}")
        if status == 4:
            demand(self.row.may_lose, "status 4, though nobody need be lost")
        if status == 3 and self.row.command == "suspend":
            demand(fate == "suspended" or fate.startswith("held"), f"status 3, but they are: {fate}")
            return    # stopped on the way: recover decides
        if status in claims:
            demand(fate == claims[status], f"status {status}, but they are: {fate}")
        if self.row.statuses:
            demand(status in self.row.statuses, f"status {status}, not {self.row.statuses}")
        if len(self.living) < len(self.scene.pids) and status == 1:
            raise Wrong("status 1, though a process has died")

    def clean_demand(self):
        left = self.scene.leftovers()
        demand(not left, f"left behind: {left}")
        workers = self.scene.workers()
        demand(not workers, f"processes of stasis live: {workers}")

    # ---- and back ----

    def bring_back(self, status, fate):
        if status < 0 or self.row.family == "rescue" or (status == 3 and fate != "suspended"):
            self.recover()
            fate = self.look()
        if fate == "run":
            return
        if fate == "suspended" and self.scene.leftovers() and any(
                name.startswith("capture-") for name in self.scene.leftovers()):
            self.recover()
            fate = self.look()
        if fate == "suspended":
            options = ["--without-missing"] if len(self.living) < len(self.scene.pids) else []
            demand(self.stasis("resume", *options, *self.living) == 0, "resume fails")
            fate = self.look()
        demand(fate == "run", f"nothing brings them back: {fate}")

    def recover(self):
        if self.row.family == "recover":
            point = self.row.fault.split("kill in ")[1].split()[0]
            status = self.stasis("recover", STASIS_FAULT=f"group_{point}:1=kill")
            demand(status != 0, "recover was cut off, and says that all is well")
        demand(self.stasis("recover") == 0, "recover fails")

    def cycle(self):
        """As if nothing had been: another suspend and resume."""
        demand(self.stasis("suspend", *self.living) == 0, "the next suspend fails")
        demand(self.look() == "suspended", "the next suspend suspends nobody")
        demand(self.stasis("resume", *self.living) == 0, "the next resume fails")
        demand(self.look() == "run", "the next resume resumes nobody")

    def run(self):
        if self.row.command == "resume":
            demand(self.stasis("suspend", *self.scene.pids) == 0, "the first suspend fails")
        status = self.faulty_run()
        demand(self.is_reached(), "the fault was not reached")
        self.lost_leave(status)
        if status < 0 or self.row.family == "rescue":
            fate = "cut off"
        else:
            fate = self.look(SHORT_SECONDS if status == 3 else WAIT_SECONDS / 4)
        self.outcome.fate = fate
        if self.row.family == "rescue":
            demand(status == 4 and "'stasis recover' tries again" in self.outcome.said,
                   f"status {status}, not 4 and what to do")
        elif status >= 0:
            self.truth_demand(status, fate)
        self.bring_back(status, fate)
        self.clean_demand()
        if len(self.living) == len(self.scene.pids):
            self.cycle()
            self.clean_demand()
        problem = self.scene.workload_end()
        demand(not problem, problem)


def workload_plan(row, folder_of):
    if not row.member_calls:
        return {}
    return {"STASIS_SIM_FAULT": row.member_calls, "STASIS_SIM_FAULT_PROCESS": row.program,
            "STASIS_SIM_FAULT_WHEN": folder_of("when"), "STASIS_SIM_FAULT_ONCE": folder_of("once")}


def row_run(row):
    outcome = Outcome()
    scene = None
    try:
        scene = Scene(row.program, row.processes, lambda path: workload_plan(row, path))
        Play(row, scene, outcome).run()
    except (Wrong, Stuck) as found:
        outcome.problem = str(found)
    finally:
        if scene:
            scene.close()
    return outcome

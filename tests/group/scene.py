"""A simulated machine with a workload of processes that share memory, and what can be seen of it from outside.

Nothing here trusts what stasis says: states come from the simulated driver's own tool, progress from the workload's
status file, what is left from the folders.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import time

BUILD = os.environ.get("STASIS_BUILD_DIR", "build")
STASIS = os.path.join(BUILD, "src/cli/stasis")
SIM_STATE = os.path.join(BUILD, "sim/sim-state")
LIBCUDA = os.path.join(BUILD, "sim/libcuda.so.1")

WAIT_SECONDS = 60 * float(os.environ.get("STASIS_TEST_TIMEOUT_SCALE", "1"))
STEP_SECONDS = 0.02


class Stuck(Exception):
    """Something that must come to pass has not."""


def wait_until(what, condition, seconds=WAIT_SECONDS):
    deadline = time.monotonic() + seconds
    while True:
        found = condition()
        if found:
            return found
        if time.monotonic() > deadline:
            raise Stuck(f"waited in vain until {what}")
        time.sleep(STEP_SECONDS)


def is_alive(pid):
    return process_letter(pid) not in ("", "Z", "X")


def process_letter(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return stat.read().rsplit(")", 1)[1].split()[0]
    except (OSError, IndexError):
        return ""


def parent_of(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
            return int(stat.read().rsplit(")", 1)[1].split()[1])
    except (OSError, IndexError):
        return 0


def children_of(parent):
    return [int(entry) for entry in os.listdir("/proc")
            if entry.isdigit() and parent_of(int(entry)) == parent]


class Scene:
    """One workload on one simulated machine, in a folder of its own; sockets want its path to be short."""

    def __init__(self, program, processes, workload_plan):
        self.folder = tempfile.mkdtemp(prefix="sg-", dir="/tmp")
        self.program = program
        self.memory = self.path("mem")
        self.runtime = self.path("run")
        self.runs = 0
        self.started = []
        self.workload = None
        self.pids = []
        try:
            os.mkdir(self.path("sim"), 0o700)
            os.mkdir(self.runtime, 0o700)
            self.workload_start(processes, workload_plan)
        except BaseException:
            self.close()
            raise

    def path(self, name):
        return os.path.join(self.folder, name)

    def environment(self, extra):
        clean = {k: v for k, v in os.environ.items()
                 if not k.startswith(("STASIS_SIM_", "STASIS_FAULT"))}
        clean.update({
            "LD_LIBRARY_PATH": os.path.join(BUILD, "sim"),
            "STASIS_LIBCUDA": LIBCUDA,
            "STASIS_RUNTIME_DIR": self.runtime,
            "STASIS_MEMORY_DIR": self.memory,
            "STASIS_SIM_DIR": self.path("sim"),
            "STASIS_SIM_CUDA": "13000",
            "STASIS_SIM_DEVICES": "2",
            "STASIS_SIM_MEMORY": "1G",
            "STASIS_SIM_CONTEXT_BYTES": "16M",
            "STASIS_SIM_LOG": self.path("sim.log"),
            "STASIS_FAULT_LOG": self.path("fault.log"),
        })
        if os.environ.get("STASIS_TEST_SANITIZER") == "address":
            # a sanitized program wants its runtime to come first
            clean["ASAN_OPTIONS"] = clean.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        clean.update(extra)
        return clean

    # ---- the workload ----

    def workload_start(self, processes, plan):
        command = [STASIS, "run", "--", os.path.join(BUILD, "tests/workloads", self.program),
                   "--processes", str(processes), "--status", self.path("status"),
                   "--ready", self.path("ready")]
        if self.program == "share_ring":
            command += ["--devices", "2", "--bytes", "2M"]
        self.workload = self.start("workload", command, plan(self.path))
        wait_until("the workload is ready", self.is_ready)
        self.pids = [int(line) for line in self.lines("ready")]

    def is_ready(self):
        if self.workload.poll() is not None:
            raise Stuck(f"the workload ended: {self.text('workload')}")
        return self.lines("ready")

    def rounds(self):
        return {int(words[0]): int(words[1]) for words in map(str.split, self.lines("status"))}

    def rounds_fresh(self):
        """Rounds that the workload's parent, which is never suspended, has read after this call."""
        # the report under way may have been begun before
        for _ in range(2):
            before = os.stat(self.path("status")).st_mtime_ns
            wait_until("the workload reports",
                       lambda before=before: os.stat(self.path("status")).st_mtime_ns != before)
        return self.rounds()

    def progress_fault(self, pids, seconds=WAIT_SECONDS / 4):
        """Whether each of these goes on working; else who does not."""
        before = self.rounds_fresh()
        try:
            wait_until("all go on", lambda: all(
                self.rounds().get(pid, 0) > before.get(pid, 0) for pid in pids), seconds)
        except Stuck:
            after = self.rounds()
            return "does not go on: " + " ".join(
                f"{pid} ({self.state(pid)})" for pid in pids
                if after.get(pid, 0) <= before.get(pid, 0)) + self.workload_words()
        return ""

    def workload_words(self):
        return f"; the workload says: {self.text('workload').strip()}"

    def workload_end(self):
        """What is wrong with its end, in good order, by its own comparison of every byte."""
        self.workload.send_signal(signal.SIGTERM)
        try:
            self.workload.wait(WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            return "the workload does not end"
        said = self.text("workload")
        if self.workload.returncode != 0 or f"{self.program}=passed" not in said:
            return f"the workload ended with {self.workload.returncode}: {said.strip()}"
        return ""

    # ---- stasis ----

    def start(self, name, command, extra):
        # Into a file: a process that outlives another would keep a pipe open.
        with open(self.path(name), "wb") as said:
            process = subprocess.Popen(command, env=self.environment(extra),
                                       stdin=subprocess.DEVNULL, stdout=said,
                                       stderr=subprocess.STDOUT, start_new_session=True)
        self.started.append(process)
        return process

    def stasis(self, *arguments, **extra):
        """Runs it to its end: the exit status, negative for a signal, and what it said."""
        process, name = self.stasis_start(*arguments, **extra)
        return self.stasis_wait(process, name)

    def stasis_start(self, *arguments, **extra):
        self.runs += 1
        name = f"stasis-{self.runs}-{arguments[0]}"
        return self.start(name, [STASIS, *map(str, arguments)], extra), name

    def stasis_wait(self, process, name):
        try:
            process.wait(WAIT_SECONDS)
            wait_until("its worker has ended", lambda: not self.workers())
        except subprocess.TimeoutExpired:
            raise Stuck(f"{name} does not end: {self.text(name)}") from None
        return process.returncode, self.text(name)

    # ---- what is there ----

    def lines(self, name):
        return self.text(name).splitlines()

    def text(self, name):
        try:
            with open(self.path(name), encoding="utf-8", errors="replace") as file:
                return file.read()
        except FileNotFoundError:
            return ""

    def state(self, pid):
        """The simulated driver's own word: RUNNING, LOCKED, CHECKPOINTED, FAILED, or NONE."""
        if not is_alive(pid):
            return "NONE"
        said = subprocess.run([SIM_STATE, str(pid)], env=self.environment({
            "STASIS_SIM_LOG": self.path("tools.log")}), capture_output=True, text=True,
            timeout=WAIT_SECONDS, check=False)
        words = said.stdout.split()
        return words[1] if len(words) > 1 else f"UNKNOWN ({said.stderr.strip()})"

    def states(self, pids):
        return {self.state(pid) for pid in pids}

    def leftovers(self):
        """Images and parts of them, and journals."""
        images = os.listdir(self.memory) if os.path.isdir(self.memory) else []
        return images + [name for name in os.listdir(self.runtime) if name.startswith("capture-")]

    def close(self):
        for process in self.started:
            self.group_kill(process.pid)
            process.wait()
        for pid in self.pids:
            if is_alive(pid) and self.belongs(pid):
                os.kill(pid, signal.SIGKILL)
        for pid in self.workers():
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(self.folder, ignore_errors=True)

    def group_kill(self, pid):
        try:
            os.killpg(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass

    def belongs(self, pid):
        """Whether the process was started in this scene: pids are given to others in time."""
        try:
            with open(f"/proc/{pid}/environ", "rb") as environ:
                return f"STASIS_RUNTIME_DIR={self.runtime}".encode() in environ.read().split(b"\0")
        except OSError:
            return False

    def workers(self):
        """Processes of stasis that still live in this scene."""
        found = []
        for entry in filter(str.isdigit, os.listdir("/proc")):
            try:
                with open(f"/proc/{entry}/comm", encoding="utf-8") as comm:
                    if comm.read().strip() == "stasis" and self.belongs(int(entry)):
                        found.append(int(entry))
            except OSError:
                continue
        return [pid for pid in found if is_alive(pid) and pid != self.workload.pid]

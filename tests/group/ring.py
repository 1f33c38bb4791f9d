"""Programs that share memory (tests/workloads/share_ring.c, or share_random.c) under `stasis run`, in a folder of their own.

What is wrong ends in a Failure; nothing here prints.
"""

import os
import re
import signal
import subprocess
import tempfile
import time

BUILD = os.environ["STASIS_BUILD_DIR"]
STASIS = os.path.join(BUILD, "src/cli/stasis")
SIM_STATE = os.path.join(BUILD, "sim/sim-state")

LIMIT_SECONDS = 60 * min(10, float(os.environ.get("STASIS_TEST_TIMEOUT_SCALE", "1")))
BUSY_TRIES = 30
ROUNDS_BETWEEN = 2        # of each process, between two cycles


class Failure(Exception):
    pass


def is_of_others(code, text):
    """A refusal for the sake of other programs of this machine, which somebody suspends or ends just now."""
    return code == 1 and "cannot be known" in text


class Ring:
    """One run of a workload of several processes in a folder of its own."""

    def __init__(self, processes, devices, multicast=False, program="share_ring", options=("--bytes", "2M")):
        self.program = program
        self.folder = tempfile.mkdtemp(prefix="c-")
        self.env = dict(os.environ, STASIS_SIM_DEVICES=str(devices), TMPDIR=self.folder)
        for name, variable in (("sim", "STASIS_SIM_DIR"), ("run", "STASIS_RUNTIME_DIR"),
                               ("memory", "STASIS_MEMORY_DIR")):
            os.mkdir(self.path(name), 0o700)
            self.env[variable] = self.path(name)
        if os.environ.get("STASIS_TEST_SANITIZER") == "address":
            # a sanitized program wants its runtime to come first
            self.env["ASAN_OPTIONS"] = self.env.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"
        with open(self.path("ring.out"), "w", encoding="utf-8") as output:
            self.child = subprocess.Popen(
                [STASIS, "run", "--", os.path.join(BUILD, "tests/workloads", program), "--processes", str(processes),
                 "--devices", str(devices), *options, "--status", self.path("status"), "--ready",
                 self.path("ready"), *(["--multicast"] if multicast else [])], env=self.env, stdout=output, stderr=subprocess.STDOUT)
        self.wait_for("the ring's first round", lambda: os.path.exists(self.path("ready")))
        with open(self.path("ready"), encoding="utf-8") as ready:
            self.pids = [int(line) for line in ready]
        if len(self.pids) != processes:
            raise Failure(f"expected {processes} processes in the ring, found {len(self.pids)}")

    def path(self, name):
        return os.path.join(self.folder, name)

    def output(self):
        with open(self.path("ring.out"), encoding="utf-8", errors="replace") as output:
            return output.read()

    def wait_for(self, what, condition):
        deadline = time.monotonic() + LIMIT_SECONDS
        while not condition():
            if self.child.poll() is not None:
                raise Failure(f"the ring ended with {self.child.returncode} before {what}: {self.output()}")
            if time.monotonic() > deadline:
                raise Failure(f"no {what} within {LIMIT_SECONDS} seconds: {self.status()}")
            time.sleep(0.02)

    def status(self):
        """The rounds of each process, and which of the ring's reports says so."""
        try:
            with open(self.path("status"), encoding="utf-8") as status:
                report = os.fstat(status.fileno()).st_mtime_ns
                return [int(line.split()[1]) for line in status], report
        except FileNotFoundError:
            return [], 0

    def rounds_fresh(self):
        """Rounds that the ring's parent, which is not suspended, has read after this call."""
        # the report under way may have been begun before
        for _ in range(2):
            before = self.status()[1]
            self.wait_for("new report of the ring", lambda before=before: self.status()[1] != before)
        return self.status()[0]

    def go_on(self, when):
        start = self.rounds_fresh()
        self.wait_for(f"progress of every process {when}",
                      lambda: all(now >= then + ROUNDS_BETWEEN
                                  for now, then in zip(self.status()[0], start)))

    def stasis(self, *arguments, **variables):
        done = subprocess.run([STASIS, *arguments], env=dict(self.env, **variables), text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.STDOUT, timeout=10 * LIMIT_SECONDS, check=False)
        return done.returncode, done.stdout

    def stasis_demand(self, *arguments):
        code, text = self.stasis(*arguments)
        if code != 0:
            raise Failure(f"stasis {' '.join(arguments)} ended with {code}:\n{text}")

    def suspend(self, options):
        """Programs that others suspend just now can be in the way; that is said, and changes nothing."""
        for _ in range(BUSY_TRIES):
            code, text = self.stasis("suspend", *options, *map(str, self.pids))
            if code == 0:
                return
            if not is_of_others(code, text):
                break
        raise Failure(f"stasis suspend ended with {code}:\n{text}")

    def states(self):
        """What the driver says of each process."""
        return [subprocess.run([SIM_STATE, str(pid)], env=self.env, text=True, check=False,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout.strip()
                for pid in self.pids]

    def are_all(self, state):
        return all(f" {state} lost=0 " in said for said in self.states())

    def states_demand(self, state):
        if not self.are_all(state):
            raise Failure(f"expected all processes {state}, the driver says: {self.states()}")

    def descriptors(self):
        return [len(os.listdir(f"/proc/{pid}/fd")) for pid in self.pids]

    def end(self):
        self.child.send_signal(signal.SIGTERM)
        code = self.child.wait(LIMIT_SECONDS)
        if code != 0 or not re.search(f"^{self.program}=passed ", self.output(), re.MULTILINE):
            raise Failure(f"the ring ended with {code}: {self.output()}")
        for name in ("run", "memory"):
            left = [os.path.join(folder, file) for folder, _, files in os.walk(self.path(name))
                    for file in files]
            if left:
                raise Failure(f"left behind: {', '.join(left)}")

    def kill(self):
        if self.child.poll() is None:
            self.child.kill()
            self.child.wait()

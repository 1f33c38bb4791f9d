#!/usr/bin/env python3
"""Trains a small model with PyTorch and says, every so many steps, what the weights are; knows nothing of Stasis.

The step is a captured CUDA graph (forward, backward, optimizer), its input comes from a loader, perhaps with a worker
process. Two runs with one seed give the same lines, however often one of them was interrupted.

    torch_train.py --lines FILE [--steps N] [--workers N] [--width N] [--nvml]

Without --steps it goes on until SIGTERM, and ends after the next line. FILE gets a line "STEP DIGEST" every
STEPS_A_LINE steps, the digest of all weights and of the optimizer's state.
"""

import argparse
import ctypes
import hashlib
import signal

import torch

STEPS_A_LINE = 50
SEED = 20261201
BATCH = 256


class Batches(torch.utils.data.Dataset):
    """Input that depends on nothing but its index."""

    def __init__(self, width):
        self.width = width

    def __len__(self):
        return 1 << 30

    def __getitem__(self, index):
        generator = torch.Generator().manual_seed(SEED + index)
        return torch.randn(BATCH, self.width, generator=generator)


class Trainer:
    """A model and one step of its training as a graph."""

    def __init__(self, width):
        torch.manual_seed(SEED)
        self.model = torch.nn.Sequential(
            torch.nn.Linear(width, width), torch.nn.ReLU(), torch.nn.Linear(width, width)).cuda()
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=1e-3, capturable=True)
        self.input = torch.zeros(BATCH, width, device="cuda")
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            for _ in range(3):
                self.step()
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        self.optimizer.zero_grad(set_to_none=True)
        with torch.cuda.graph(self.graph):
            self.step()

    def step(self):
        self.optimizer.zero_grad(set_to_none=True)
        loss = (self.model(self.input) - self.input).square().mean()
        loss.backward()
        self.optimizer.step()

    def digest(self):
        digest = hashlib.sha256()
        state = self.optimizer.state
        for parameter in self.model.parameters():
            for tensor in (parameter, state[parameter]["exp_avg"], state[parameter]["exp_avg_sq"]):
                digest.update(tensor.detach().cpu().numpy().tobytes())
        return digest.hexdigest()


class Nvml:
    """NVML, opened once and asked again and again, as monitoring does."""

    def __init__(self):
        self.library = ctypes.CDLL("libnvidia-ml.so.1")
        self.check(self.library.nvmlInit_v2())

    def check(self, result):
        if result != 0:
            raise SystemExit(f"NVML: error {result}")

    def ask(self):
        count = ctypes.c_uint()
        device = ctypes.c_void_p()
        memory = (ctypes.c_ulonglong * 3)()
        self.check(self.library.nvmlDeviceGetCount_v2(ctypes.byref(count)))
        self.check(self.library.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)))
        self.check(self.library.nvmlDeviceGetMemoryInfo(device, memory))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--lines", required=True)
    parser.add_argument("--steps", type=int, default=1 << 30)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--width", type=int, default=1024)
    parser.add_argument("--nvml", action="store_true")
    options = parser.parse_args()
    told_to_end = []
    signal.signal(signal.SIGTERM, lambda *_: told_to_end.append(True))
    torch.use_deterministic_algorithms(True)
    nvml = Nvml() if options.nvml else None
    trainer = Trainer(options.width)
    loader = torch.utils.data.DataLoader(Batches(options.width), batch_size=None,
                                         num_workers=options.workers, pin_memory=options.workers > 0)
    with open(options.lines, "w", encoding="utf-8") as lines:
        for step, batch in enumerate(loader, start=1):
            trainer.input.copy_(batch, non_blocking=True)
            trainer.graph.replay()
            if step % STEPS_A_LINE == 0:
                if nvml:
                    nvml.ask()
                print(step, trainer.digest(), file=lines, flush=True)
                if told_to_end or step >= options.steps:
                    break


if __name__ == "__main__":
    main()

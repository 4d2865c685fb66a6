"""A CUDA device behind PyTorch, and a CPU in its place to see that the calls exist. The only file that needs torch."""

from __future__ import annotations

import shutil
import subprocess
import time
from typing import Any

from builder.catalog import Model
from builder.errors import LessonError

# bytes: many times any L2, and long enough to write (0.2 ms and more) for the host to queue the launch meanwhile
FLUSHED = 2**30


def _torch(line: str) -> Any:
    try:
        import torch
    except ImportError:
        hint = f"on a machine with the GPU: pip install torch, then {line}"
        raise LessonError("PyTorch is not installed here", hint=hint) from None
    return torch


class TorchDevice:
    """time_kernels.Device. kind: cuda or cpu; backend: of scaled_dot_product_attention; line: to run elsewhere."""

    def __init__(self, kind: str, backend: str, line: str) -> None:
        self._torch = torch = _torch(line)
        self._cuda = kind == "cuda"
        if self._cuda and not torch.cuda.is_available():
            hint = f"on a machine with one: {line}; here: --device cpu --dry"
            raise LessonError(f"no CUDA device: PyTorch {torch.__version__} sees none", hint=hint)
        backends = torch.nn.attention.SDPBackend
        self._backend = {"flash": backends.FLASH_ATTENTION, "cudnn": backends.CUDNN_ATTENTION}[backend]
        self._kind = kind
        if self._cuda:
            properties = torch.cuda.get_device_properties(0)
            self.name, self.memory_bytes = properties.name, properties.total_memory
            self._smi_id = f"GPU-{properties.uuid}"
            driver = self._smi("driver_version") or "not readable"
            self.versions = f"PyTorch {torch.__version__}, CUDA {torch.version.cuda}, driver {driver}"
            flushed = max(FLUSHED, 2 * properties.L2_cache_size)
        else:
            self.name, self.memory_bytes, flushed = "a CPU", 0, 2**20
            self.versions = f"PyTorch {torch.__version__}"
        self._buffer = torch.empty(flushed, dtype=torch.uint8, device=kind)
        torch.manual_seed(0)

    def _random(self, *shape: int) -> Any:
        # not zeros: how many bits flip is power, and power is clock
        return self._torch.randn(shape, dtype=self._torch.bfloat16, device=self._kind)

    def linear(self, tokens: int, inputs: int, outputs: int) -> Any:
        torch, x, weights = self._torch, self._random(tokens, inputs), self._random(outputs, inputs)
        return lambda: torch.nn.functional.linear(x, weights)

    def attention(self, tokens: int, context: int, model: Model) -> Any:
        torch = self._torch
        q = self._random(tokens, model.heads, 1, model.head_dim)
        k, v = (self._random(tokens, model.kv_heads, context, model.head_dim) for _ in range(2))

        def launch() -> Any:
            # one backend alone: where it can't, PyTorch raises and nothing slower steps in
            with torch.nn.attention.sdpa_kernel(self._backend):
                return torch.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True)

        try:
            launch()
        except RuntimeError as error:
            hint = "another --backend, or a newer PyTorch"
            raise LessonError(f"this attention doesn't run: {str(error).splitlines()[0]}", hint=hint) from None
        return launch

    def flush(self) -> None:
        self._buffer.zero_()

    def mark(self) -> Any:
        if not self._cuda:
            return time.perf_counter()
        event = self._torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def wait(self) -> None:
        if self._cuda:
            self._torch.cuda.synchronize()

    def elapsed_ms(self, begin: Any, end: Any) -> float:
        return float(begin.elapsed_time(end)) if self._cuda else 1e3 * (end - begin)

    def clocks(self) -> str | None:
        return self._smi("clocks.sm,clocks.mem") if self._cuda else None

    def _smi(self, query: str) -> str | None:
        """What nvidia-smi says of this device, on a line; None where it can't."""
        program = shutil.which("nvidia-smi")
        if program is None:
            return None
        command = [program, f"--id={self._smi_id}", f"--query-gpu={query}", "--format=csv,noheader"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10)
        except (OSError, subprocess.SubprocessError):
            return None
        return " ".join(done.stdout.split()) or None

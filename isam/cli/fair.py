"""A process in which a peer's library chooses its kernels by itself: where times are compared.

The variables that would choose kernels or threads are read when a library is loaded. An environment that holds a peer
back, or spurs it on, would make every ratio a lie; so times are taken in a process that has none of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

STEERING = ("OPENBLAS_", "MKL_", "DNNL_", "ONEDNN_", "ATEN_CPU_", "NPY_", "OMP_", "GOTO_", "BLIS_", "VECLIB_",
            "GLIBC_TUNABLES", "XLA_", "JAX_", "PJRT_", "LIBXSMM_", "ORT_", "KMP_")  # fmt: skip
SINGLE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "PJRT_NPROC": "1",
          "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}  # fmt: skip


def steering() -> list[str]:
    """The variables of this process's environment that would choose kernels or threads."""
    return sorted(n for n in os.environ if n.startswith(STEERING))


def run(root: Path, module: str, arguments: Sequence[str], **options: Any) -> subprocess.CompletedProcess[str]:
    """``python -m module arguments`` on one thread, without those variables; ``root``: where the module is found.

    Raises ``CalledProcessError`` when it fails. An interrupt from the terminal comes to this process alone, which ends
    the other one.
    """
    freed = steering()
    kept = {n: v for n, v in os.environ.items() if n not in freed}
    alone = {"process_group": 0} if os.name == "posix" else {}
    path = os.pathsep.join(filter(None, (str(root), kept.get("PYTHONPATH"))))
    return subprocess.run([sys.executable, "-P", "-m", module, *arguments], env={**kept, "PYTHONPATH": path, **SINGLE},
                          check=True, text=True, **alone, **options)  # fmt: skip

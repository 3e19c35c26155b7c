#!/usr/bin/env bash
# install-sglang.sh DIR: an SGLang for CPU in DIR/venv and a tiny model with random weights in DIR/model, from PyPI alone.
# About 6.1 GB and one minute. Needs a Python 3.12 (PYTHON=path to name it). Touches nothing outside DIR.
set -euo pipefail
[ $# = 1 ] && [ -n "$1" ] && [ "${1#-}" = "$1" ] || { echo "usage: install-sglang.sh DIR" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
# asked for its own path: a shim of a version manager is on PATH also where it can start no 3.12
python=${PYTHON:-$(python3.12 -c 'import sys; print(sys.executable)' 2>/dev/null || true)}
[ -n "$python" ] || { echo "install-sglang.sh: no python3.12 that starts on PATH; name one with PYTHON=/path/to/python3.12" >&2; exit 1; }

[ -x "$dir/venv/bin/python" ] || "$python" -m venv "$dir/venv"
"$dir/venv/bin/pip" install -q uv
# what needs a GPU, sound or pictures stays out
gpu_only=(cuda-python deepseek-recipe flash-attn-4 flashinfer-python humming-kernels nvidia-cutlass-dsl nvidia-mathdx nvshmem4py-cu13
  quack-kernels sgl-deep-ep sgl-deep-gemm sgl-flash-mla sglang-kernel tilelang torchaudio torchcodec timm modelscope datasets)
printf "%s; sys_platform == 'never'\n" "${gpu_only[@]}" > "$dir/overrides.txt"
"$dir/venv/bin/uv" pip install -q --python "$dir/venv/bin/python" sglang==0.5.23 dill --override "$dir/overrides.txt"
# what hands blocks over; --no-deps keeps torch as it is
"$dir/venv/bin/uv" pip install -q --python "$dir/venv/bin/python" --no-deps nixl==1.5.1 nixl-cu13==1.5.1

site=$("$dir/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
# its kernels for CPUs are not on PyPI; a small model on PyTorch's own calls none of them, but they are imported
cat > "$site/sgl_kernel.py" <<'PY'
def __getattr__(name):
    if name.startswith("__"):
        raise AttributeError(name)

    def kernel(*args, **kwargs):
        raise NotImplementedError(f"sgl_kernel.{name} is not installed")

    return kernel
PY
# it registers its KV memory with NIXL as a GPU's whatever the device is
cat > "$site/kvasir_cpu_nixl.py" <<'PY'
import importlib.abc
import importlib.util
import sys


class CpuNixl(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name not in ("nixl._api", "nixl_cu13._api"):
            return None
        sys.meta_path.remove(self)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            sys.meta_path.insert(0, self)
        if spec is not None:
            load = spec.loader.exec_module
            spec.loader.exec_module = lambda module: (load(module), use_main_memory(module.nixl_agent))[0]
        return spec


def use_main_memory(agent):
    if getattr(agent, "uses_main_memory", False):
        return
    make = agent.__init__

    def init(self, *args, **kwargs):
        make(self, *args, **kwargs)
        self.nixl_mems["VRAM"] = self.nixl_mems["DRAM"]

    agent.__init__ = init
    agent.uses_main_memory = True


sys.meta_path.insert(0, CpuNixl())
PY
echo "import kvasir_cpu_nixl" > "$site/kvasir_cpu_nixl.pth"

[ -f "$dir/model/config.json" ] || "$dir/venv/bin/python" "$here/tiny_model.py" "$dir/model"
echo "run the tests with: KVASIR_SGLANG=$dir mvn verify -Preal-engines"

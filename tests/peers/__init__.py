"""MemBoard beside the real packages whose users come to it, on the same trainings.

They run in an environment of their own, with pinned versions (`requirements.txt`):

    python -m tests.peers.environment .venv-peers
    MEMBOARD_PEERS_PYTHON=$PWD/.venv-peers/bin/python python -m pytest tests/peers

Without `MEMBOARD_PEERS_PYTHON` these tests are skipped.
"""

"""A simulated run, read back, and its faults by kind."""

from __future__ import annotations

import pytest

from memboard.collector.simulate import SimulatedRun, write_run
from memboard.collector.simulate.series import scenario_of
from tests.recordings import Recording, read_run

RUN = SimulatedRun(num_ranks=72, num_steps=120)


@pytest.fixture(scope="session")
def simulated(tmp_path_factory) -> dict[int, Recording]:
    directory = tmp_path_factory.mktemp("run")
    write_run(RUN, directory)
    return read_run(directory)


@pytest.fixture(scope="session")
def faults():
    return {fault.kind: fault for fault in scenario_of(RUN).faults}


@pytest.fixture(scope="session")
def healthy(simulated, faults) -> list[Recording]:
    faulty = {rank for fault in faults.values() for rank in fault.ranks}
    return [found for rank, found in simulated.items() if rank not in faulty]

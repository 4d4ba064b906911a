"""The user's reading of torch's peaks stays exact, and torch is put back as it was."""

from __future__ import annotations

import pytest


def test_the_users_whole_statistics_stay_what_they_would_be(fakes):
    """Beside a twin that nobody records: equal dicts at every moment, to the last key."""
    backend, twin = fakes.Backend(), fakes.Backend()
    source = backend.source()
    for number in range(40):
        for one in (backend, twin):
            one.devices[0].pools.setdefault(
                (0, number // 9),
                {"all": {"current": 0, "peak": 0, "allocated": 0, "freed": 0}},
            )
            one.spike((number * 7919 % 40) * 2**17 + 1)
            one.devices[0].move(100 + number)
            if number % 13 == 12:
                one.user_reset()
            if number == 30:
                del one.devices[0].pools[0, 0]
        source.sample()
        assert backend.user_stats() == twin.user_stats()
    source.close()
    assert backend.user_stats() == twin.user_stats()


def test_closing_restores_at_once_where_nothing_is_owed(fakes):
    backend = fakes.Backend()
    source = backend.source()
    assert backend.wrapped()
    backend.devices[0].move(10)
    source.sample()
    source.close()
    assert not backend.wrapped()


def test_a_peak_before_the_close_is_still_read_after_it(fakes):
    backend = fakes.Backend()
    source = backend.source()
    backend.spike(900)
    source.sample()
    source.close()
    seen = backend.user_peak()
    assert seen == 900
    backend.user_reset()
    assert not backend.wrapped()
    assert backend.user_peak() == 0


def test_wrapping_ends_once_torchs_own_counters_have_caught_up(fakes):
    backend = fakes.Backend()
    source = backend.source()
    backend.spike(900)
    source.sample()
    source.close()
    assert backend.wrapped()
    backend.spike(901)
    assert backend.user_peak() == 901
    assert not backend.wrapped()


def test_a_second_recorder_takes_over_what_the_first_owes(fakes):
    backend = fakes.Backend()
    first = backend.source()
    backend.spike(900)
    first.sample()
    first.close()
    second = backend.source()
    backend.spike(300)
    assert second.sample()[1] == 300
    second.close()
    assert backend.user_peak() == 900


@pytest.mark.parametrize("first_to_close", [0, 1])
def test_recorders_that_overlap_share_the_ledger(fakes, first_to_close):
    backend = fakes.Backend()
    sources = [backend.source() for _ in range(2)]
    backend.spike(900)
    assert sources[0].sample()[1] == 900
    backend.spike(100)
    assert sources[1].sample()[1] == 900
    assert sources[0].sample()[1] == 100
    sources[first_to_close].close()
    backend.spike(50)
    other = sources[1 - first_to_close]
    assert other.sample()[1] in (100, 50)
    assert backend.wrapped()


def test_devices_do_not_mix(fakes):
    backend = fakes.Backend(3)
    one = backend.source()
    two = backend.source(2)
    for index, size in enumerate((100, 200, 300)):
        backend.spike(size, index)
    assert (one.sample()[1], two.sample()[1]) == (100, 300)
    one.close()
    peaks = [backend.user_peak(index) for index in range(3)]
    assert peaks == [100, 200, 300]
    backend.user_reset(1)
    assert backend.user_peak() == 100


def test_somebody_elses_wrapper_on_top_is_left_alone(fakes):
    backend = fakes.Backend()
    source = backend.source()
    ours = backend.c._cuda_memoryStats

    def theirs(index):
        return ours(index)

    backend.c._cuda_memoryStats = theirs
    source.close()
    assert backend.c._cuda_memoryStats is theirs
    backend.devices[0].move(5)
    assert theirs(0)["allocated_bytes"]["all"]["peak"] == 5
    again = backend.source()
    assert backend.c._cuda_memoryStats is theirs
    backend.spike(40)
    again.sample()
    assert theirs(0)["allocated_bytes"]["all"]["peak"] == 45
    backend.c._cuda_memoryStats = ours


def test_an_error_of_torchs_own_reaches_the_user_unchanged(fakes):
    backend = fakes.Backend()

    def refuse(index):
        raise RuntimeError("invalid device argument")

    backend.c._cuda_resetPeakMemoryStats = refuse
    source = backend.source()
    with pytest.raises(RuntimeError, match=r"^invalid device argument$"):
        backend.user_reset()
    with pytest.raises(TypeError):
        backend.c._cuda_memoryStats()
    source.close()
    assert backend.c._cuda_resetPeakMemoryStats is refuse


def test_a_driver_that_stops_answering_costs_the_source_and_not_the_user(fakes):
    backend = fakes.Backend()
    source = backend.source()
    backend.spike(900)
    source.sample()

    def broken(index):
        raise RuntimeError("CUDA error: unspecified launch failure")

    backend.stats = broken
    backend.user_reset()  # the user's own call still works
    with pytest.raises(RuntimeError, match="launch failure"):
        source.sample()
    with pytest.raises(RuntimeError, match="launch failure"):
        source.close()
    assert not backend.wrapped()

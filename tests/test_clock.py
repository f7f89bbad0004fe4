"""The host clock can be replaced, nests, and comes back."""

import time

import pytest

from helpers import clock


def test_the_real_clock_is_read_when_none_is_installed():
    before = time.perf_counter()
    told = clock.now()
    assert before <= told <= time.perf_counter()
    assert not clock.installed()


def test_an_installed_clock_is_read_until_it_is_uninstalled():
    clock.install(lambda: 41.0)
    try:
        assert clock.now() == 41.0
        assert clock.installed()
    finally:
        clock.uninstall()
    assert not clock.installed()
    assert clock.now() != 41.0


def test_clocks_nest_and_can_be_removed_out_of_order():
    class Host:
        def __init__(self, at):
            self.at = at

        def read(self):
            return self.at

    outer, inner = Host(1.0), Host(2.0)
    clock.install(outer.read)
    clock.install(inner.read)
    assert clock.now() == 2.0
    clock.uninstall(outer.read)  # a fresh bound method, equal but not identical
    assert clock.now() == 2.0
    clock.uninstall(inner.read)
    assert not clock.installed()


def test_using_restores_the_clock_after_an_exception():
    with pytest.raises(ZeroDivisionError), clock.using(lambda: 7.0):
        assert clock.now() == 7.0
        raise ZeroDivisionError
    assert not clock.installed()


def test_mistakes_have_a_sentence():
    with pytest.raises(TypeError, match="function that returns seconds"):
        clock.install(3.0)
    with pytest.raises(RuntimeError, match="not installed"):
        clock.uninstall()
    with clock.using(lambda: 0.0), pytest.raises(RuntimeError, match="not installed"):
        clock.uninstall(lambda: 1.0)

"""The clock of an attack or an audit ends its work early enough to report it."""

import sys
import threading

import pytest

from bayesrisk.experiments import clock


@pytest.mark.parametrize(("reserve", "asked"), [(3599.8, True), (4000.0, True), (0.0, False)])
def test_work_is_interrupted_while_its_report_can_still_be_written(monkeypatch, reserve, asked):
    late = threading.Event()
    monkeypatch.setattr(clock.interrupts, "late", late.set)
    monkeypatch.setattr(sys, "stdout", sys.__stdout__)
    with clock.Clock(3600.0).interrupts(reserve):
        assert late.wait(30.0 if asked else 0.5) == asked

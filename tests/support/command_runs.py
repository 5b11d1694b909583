"""A command that is run in the process of the test."""

import sys

import pytest

from bayesrisk.cli.app import main


@pytest.fixture
def run(request, monkeypatch, capsys):
    """Run the module's COMMAND, or the one that is named; return status, output and errors."""
    first = getattr(request.module, "COMMAND", ())

    def call(*arguments):
        monkeypatch.setattr(sys, "argv", ["bayesrisk", *first, *map(str, arguments)])
        try:
            main()
            status = 0
        except SystemExit as stop:
            status = stop.code or 0
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return call

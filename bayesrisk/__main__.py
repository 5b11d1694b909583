"""``python -m bayesrisk``: the same as the ``bayesrisk`` command."""

from bayesrisk._base import interrupts


def main() -> None:
    """Run the command, which may also be interrupted while its modules are being loaded."""
    with interrupts.heeded(last=True):
        from bayesrisk.cli.app import main as run

        run()


if __name__ == "__main__":
    main()

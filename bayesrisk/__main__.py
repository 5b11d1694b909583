"""``python -m bayesrisk``: the same as the ``bayesrisk`` command."""

from bayesrisk.cli.app import main

if __name__ == "__main__":
    main()

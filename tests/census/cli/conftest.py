"""What the tests of commands of the wing share: a command run in this process."""

from command_runs import run as run

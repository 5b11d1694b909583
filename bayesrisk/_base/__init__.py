"""The base of all packages: checks, files, randomness, compilation, plug-ins."""

"""The floor that every room stands on: checks, files, randomness, compilation, plug-ins."""

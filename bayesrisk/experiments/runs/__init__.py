"""The engine of long runs: shards, parts and executors."""

"""The full count of 1940 as IPUMS delivers it."""

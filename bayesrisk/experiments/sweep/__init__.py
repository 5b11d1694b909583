"""Sweeps over rho, and their report."""

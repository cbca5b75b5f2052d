"""The lab: published web server benchmarks, run again side by side on the machine at hand."""

__version__ = "0.1.0"

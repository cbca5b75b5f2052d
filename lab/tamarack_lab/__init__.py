"""The lab: published web server benchmarks, repeated side by side on the present machine."""

__version__ = "0.1.0"

"""Tests of the lab: nothing here needs a load, a server package or root."""

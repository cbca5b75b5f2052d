"""Tests of the bench's arithmetic; what needs servers is tested by running it."""

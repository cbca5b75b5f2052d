"""Measures CPU time per request of Tamarack and its peers on one machine."""

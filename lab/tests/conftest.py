"""What all tests have in common: the sites that they make have few files."""

from __future__ import annotations

import pytest
from tamarack_lab import site

# Each run of the engine makes a site and removes it; what is tested is not in its size. A site that
# a module's tests share is made before, and has its full size.
FEW = {"SITE_FILES": site.FEW_FILES, "PRIVATE_FILES": 8, "RULES_FILES": 8, "INCLUDES_FILES": 8}


@pytest.fixture(autouse=True)
def few_files(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, count in FEW.items():
        monkeypatch.setattr(site, name, count)

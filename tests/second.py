"""The second implementation of the log (workloads/examples), as a module of the tests."""

import sys
from types import ModuleType
from unittest.mock import patch

from tests.scripted import ROOT

with patch.object(sys, "path", [str(ROOT / "workloads/examples"), *sys.path]):
    import second_log as _second_log  # type: ignore[import-not-found]

second_log: ModuleType = _second_log

"""Configuration of pytest: modules that need PyTorch are not collected where it is not installed."""

from __future__ import annotations

import importlib.util

collect_ignore_glob = [] if importlib.util.find_spec("torch") else ["tamis/torch/*", "tamis/_torch_autograd.py", "tamis/_torch_layouts.py"]

"""Puts the repository root in front of the import path, in place of main/, when a file of main/ is run as a script."""
import sys
from pathlib import Path

sys.path[0] = str(Path(__file__).resolve().parent.parent)
